// Painter of transition systems on a canvas: the visible part, with the detail that its scale
// allows.
//
// Edges first, then states, then names. States of a colour are one path, so that twenty thousand
// take a tenth of a second. Names do not overlap; names of the path have priority, and names
// without space are left out. Edges between the same two states have one name.

import type { Drawn } from "./layout";

export const RADIUS = 6;
export const COLOURS = 8;
/** Minimum scale for names; the second for names of the path. */
const [READABLE, PATH_READABLE] = [0.9, 0.4];
/** States smaller than this have no outline. */
const SMALL = 3;
/** Maximum number of visible edges with heads; more edges are paler. */
const FEW = 800;
/** Number of names shown for edges between the same states. */
const NAMES = 3;

/** Highlighted elements. */
export interface Marks {
  selected: number;
  /** Edges from the initial state to the selected one. */
  path: number[];
  found: number[];
  cut: Set<number>;
  /** Colour number of each state; -1: none. Undefined: all states look the same. */
  group: number[] | null;
}

export interface Place {
  scale: number;
  left: number;
  top: number;
}

type Box = [left: number, top: number, right: number, bottom: number];

/** The line of an edge: straight, or a curve with one control point. */
interface Way {
  from: [number, number];
  beside: [number, number] | null;
  to: [number, number];
}

/** A point of a line with its direction. */
function along(way: Way, t: number): [x: number, y: number, dx: number, dy: number] {
  const [[x, y], [u, v]] = [way.from, way.to];
  const [a, b] = way.beside ?? [(x + u) / 2, (y + v) / 2];
  const of = (p: number, q: number, r: number) => (1 - t) * (1 - t) * p + 2 * t * (1 - t) * q + t * t * r;
  const slope = (p: number, q: number, r: number) => 2 * (1 - t) * (q - p) + 2 * t * (r - q);
  return [of(x, a, u), of(y, b, v), slope(x, a, u), slope(y, b, v)];
}

/** Returns the radius of a state at a scale: states of a line do not touch. */
export function radiusAt(d: Drawn, scale: number): number {
  return Math.max(0.8, Math.min(RADIUS * Math.max(scale, 0.3), 0.42 * d.gap * scale));
}

export class Painter {
  private readonly pen: CanvasRenderingContext2D;
  private readonly style: CSSStyleDeclaration;
  private readonly colours = new Map<string, string>();
  private readonly width: number;
  private readonly height: number;
  private readonly radius: number;
  private readonly onPath: Set<number>;

  constructor(
    canvas: HTMLCanvasElement,
    pen: CanvasRenderingContext2D,
    private readonly d: Drawn,
    private readonly place: Place,
    private readonly marks: Marks,
  ) {
    this.pen = pen;
    this.style = getComputedStyle(canvas);
    [this.width, this.height] = [canvas.clientWidth, canvas.clientHeight];
    const dense = window.devicePixelRatio || 1;
    const [across, down] = [Math.round(this.width * dense), Math.round(this.height * dense)];
    if (canvas.width !== across || canvas.height !== down) [canvas.width, canvas.height] = [across, down];
    pen.setTransform(dense, 0, 0, dense, 0, 0);
    pen.clearRect(0, 0, this.width, this.height);
    this.radius = radiusAt(d, place.scale);
    this.onPath = new Set(marks.path);
  }

  paint(): void {
    const seen = this.edgesInSight();
    this.edges(seen);
    this.states();
    this.names(seen);
  }

  private colour(name: string): string {
    let value = this.colours.get(name);
    if (value === undefined) this.colours.set(name, (value = this.style.getPropertyValue(name).trim()));
    return value;
  }

  private at(state: number): [number, number] {
    const { scale, left, top } = this.place;
    return [(this.d.x[state] ?? 0) * scale + left, (this.d.y[state] ?? 0) * scale + top];
  }

  private inside([x, y]: [number, number]): boolean {
    return x > -60 && x < this.width + 60 && y > -60 && y < this.height + 60;
  }

  private edgesInSight(): number[] {
    const seen: number[] = [];
    this.d.system.edges.forEach(([from, , to], e) => (this.inside(this.at(from)) || this.inside(this.at(to)) || this.onPath.has(e)) && seen.push(e));
    return seen;
  }

  private way(e: number): Way {
    const [from, , to] = this.d.system.edges[e] ?? [0, 0, 0];
    const [[x, y], [u, v]] = [this.at(from), this.at(to)];
    // Edges back and within a level are curved, so that they do not cover others.
    const straight = v > y + 1;
    return { from: [x, y], beside: straight ? null : [(x + u) / 2 + (y - v) * 0.25 + 14 * this.place.scale, (y + v) / 2 - 20 * this.place.scale], to: [u, v] };
  }

  private trace(e: number): void {
    const [from, , to] = this.d.system.edges[e] ?? [0, 0, 0];
    const way = this.way(e);
    const loop = RADIUS * this.place.scale;
    this.pen.moveTo(...way.from);
    if (from === to) this.pen.arc(way.from[0] + loop, way.from[1], loop, Math.PI, 3 * Math.PI);
    else if (way.beside) this.pen.quadraticCurveTo(...way.beside, ...way.to);
    else this.pen.lineTo(...way.to);
  }

  /** Draws the head of an edge. */
  private head(e: number): void {
    const [from, , to] = this.d.system.edges[e] ?? [0, 0, 0];
    if (from === to) return;
    const [, , dx, dy] = along(this.way(e), 1);
    const long = Math.hypot(dx, dy) || 1;
    const [ux, uy] = [dx / long, dy / long];
    const [x, y] = this.at(to);
    const [tip, size] = [this.radius + 2, 7];
    const [bx, by] = [x - ux * (tip + size), y - uy * (tip + size)];
    this.pen.moveTo(x - ux * tip, y - uy * tip);
    this.pen.lineTo(bx - uy * 3, by + ux * 3);
    this.pen.lineTo(bx + uy * 3, by - ux * 3);
    this.pen.closePath();
  }

  private edges(seen: number[]): void {
    const { pen } = this;
    const heads = seen.length <= FEW && this.radius >= SMALL;
    const draw = (some: Iterable<number>, colour: string, width: number) => {
      pen.strokeStyle = pen.fillStyle = this.colour(colour);
      pen.lineWidth = width;
      pen.beginPath();
      for (const e of some) this.trace(e);
      pen.stroke();
      if (!heads) return;
      pen.beginPath();
      for (const e of some) this.head(e);
      pen.fill();
    };
    pen.globalAlpha = seen.length > 20_000 ? 0.2 : seen.length > 5_000 ? 0.35 : seen.length > FEW ? 0.6 : 1;
    draw(seen.filter((e) => !this.onPath.has(e)), "--strong-line", Math.min(1.2, Math.max(0.4, this.place.scale)));
    pen.globalAlpha = 1;
    draw(this.onPath, "--accent", this.radius < SMALL ? 2 : 3);
  }

  private states(): void {
    const { d, pen, radius, marks } = this;
    const small = radius < SMALL;
    const [dots, ends, found, rings] = [new Map<string, number[]>(), [] as number[], [] as number[], [] as number[]];
    const isFound = new Set(marks.found);
    for (let i = 0; i < d.x.length; i++) {
      if (!this.inside(this.at(i))) continue;
      const value = marks.group?.[i];
      const name = value === undefined ? "--quiet" : value < 0 ? "--strong-line" : `--c${value % COLOURS}`;
      (dots.get(name) ?? dots.set(name, []).get(name))?.push(i);
      if ((d.out[i] ?? []).length === 0 && !marks.cut.has(i)) ends.push(i);
      if (isFound.has(i)) found.push(i);
      if (i === marks.selected || i === d.system.initial) rings.push(i);
    }
    const shape = (states: number[], r: number) => {
      pen.beginPath();
      for (const state of states) {
        const [x, y] = this.at(state);
        if (r < 2) pen.rect(x - r, y - r, 2 * r, 2 * r);
        else pen.moveTo(x + r, y), pen.arc(x, y, r, 0, 2 * Math.PI);
      }
    };
    const ring = (states: number[], r: number, colour: string, width: number) => {
      shape(states, r);
      pen.lineWidth = width;
      pen.strokeStyle = this.colour(colour);
      pen.stroke();
    };
    for (const [name, states] of dots) {
      shape(states, radius);
      pen.fillStyle = this.colour(name);
      pen.fill();
      if (!small) ring(states, radius, "--ground", 1.5);
    }
    ring(ends, small ? radius + 0.8 : radius, "--bad", small ? 1 : 1.5);
    // Search results are rings if there is space, otherwise larger states.
    if (small) {
      shape(found, Math.max(1.6, radius + 0.4));
      pen.fillStyle = this.colour("--found-state");
      pen.fill();
    } else ring(found, radius + 3, "--found-state", 2);
    ring(rings.filter((i) => i !== marks.selected), Math.max(4, radius + 3), "--accent", 2);
    ring(rings.filter((i) => i === marks.selected), Math.max(6, radius + 3), "--accent", 3);
  }

  private names(seen: number[]): void {
    const { pen, d } = this;
    const { scale } = this.place;
    if (scale < (this.onPath.size > 0 ? PATH_READABLE : READABLE)) return;
    pen.font = `${Math.min(13, Math.max(11, 9 * scale))}px ${this.style.fontFamily}`;
    const together = new Map<string, number[]>();
    for (const e of seen) {
      const [from, , to] = d.system.edges[e] ?? [0, 0, 0];
      if (from === to || (scale < READABLE && !this.onPath.has(e))) continue;
      const key = `${from} ${to}`;
      (together.get(key) ?? together.set(key, []).get(key))?.push(e);
    }
    const groups = [...together.values()];
    const isOn = (edges: number[]) => edges.some((e) => this.onPath.has(e));
    const taken: Box[] = [];
    for (const edges of [...groups.filter(isOn), ...groups.filter((g) => !isOn(g))]) this.name(edges, taken);
  }

  /** Draws the names of edges between the same states where there is space. */
  private name(edges: number[], taken: Box[]): void {
    const { system } = this.d;
    // The edge of the path has priority.
    const order = [...edges].sort((a, b) => Number(this.onPath.has(b)) - Number(this.onPath.has(a)));
    const all = [...new Set(order.map((e) => system.labels[system.edges[e]?.[1] ?? 0] ?? ""))];
    const text = all.slice(0, NAMES).join(", ") + (all.length > NAMES ? ` +${all.length - NAMES}` : "");
    const way = this.way(order[0] ?? 0);
    const wide = this.pen.measureText(text).width;
    for (const t of [0.6, 0.5, 0.7, 0.4, 0.8, 0.3]) {
      const [x, y] = along(way, t);
      const box: Box = [x + 4, y - 11, x + 4 + wide, y + 3];
      if (!this.inside([x, y]) || taken.some((b) => box[0] < b[2] && b[0] < box[2] && box[1] < b[3] && b[1] < box[3])) continue;
      taken.push(box);
      this.pen.lineWidth = 3;
      this.pen.strokeStyle = this.colour("--ground");
      this.pen.strokeText(text, x + 4, y);
      this.pen.fillStyle = this.colour("--ink");
      this.pen.fillText(text, x + 4, y);
      return;
    }
  }
}
