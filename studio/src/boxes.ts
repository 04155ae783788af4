// Boxes on a picture, in a grid, to find those that a new one meets: constant time for small boxes.

export type Box = [left: number, top: number, right: number, bottom: number];

/** Width of a cell of the grid, in pixels. */
const CELL = 32;
/** Owners of boxes without one, and for counting the boxes of all. */
const [ANYBODY, NOBODY] = [-1, -2];

export class Boxes {
  private readonly cells = new Map<string, { box: Box; owner: number }[]>();

  /** Adds a box. `owner`: boxes of the same owner are not counted. */
  add(box: Box, owner = ANYBODY): void {
    for (const key of this.keys(box)) (this.cells.get(key) ?? this.cells.set(key, []).get(key))?.push({ box, owner });
  }

  /** Returns true if the box meets one that was added. */
  meets(box: Box): boolean {
    return this.keys(box).some((key) => this.cells.get(key)?.some((other) => overlap(box, other.box)));
  }

  /** Returns the number of boxes that the box meets. `owner`: without the boxes of this owner. */
  count(box: Box, owner = NOBODY): number {
    const met = new Set<Box>();
    for (const key of this.keys(box)) for (const other of this.cells.get(key) ?? []) if (other.owner !== owner && overlap(box, other.box)) met.add(other.box);
    return met.size;
  }

  private keys([left, top, right, bottom]: Box): string[] {
    const keys: string[] = [];
    for (let x = Math.floor(left / CELL); x <= Math.floor(right / CELL); x++)
      for (let y = Math.floor(top / CELL); y <= Math.floor(bottom / CELL); y++) keys.push(`${x} ${y}`);
    return keys;
  }
}

function overlap(a: Box, b: Box): boolean {
  return a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
}
