// Painter of transition systems, on a canvas or as SVG: the visible part, with the detail that its
// scale allows.
//
// Edges first, then states, then names. States of a colour are one path, so that twenty thousand
// take a tenth of a second. Names cover neither states nor other names, and avoid lines; names of
// the path have priority, and names without space are left out. Edges between the same two states
// have one name. Edges in opposite directions are curved to opposite sides.

import { Boxes, type Box } from "../src/boxes";
import { along, type Curve } from "../src/curve";
import type { Drawn } from "./layout";

export const RADIUS = 6;
export const COLOURS = 8;
/** Minimum scale for names; the second for names of the path. */
const [READABLE, PATH_READABLE] = [0.9, 0.4];
/** Maximum number of visible edges with names at a small scale. */
const NAMED = 160;
/** Distance of a name from lines of other edges, so that it is clear which edge is meant. */
const CLEAR = 5;
/** States smaller than this have no outline. */
const SMALL = 3;
/** Maximum number of visible edges with heads; more edges are paler. */
const FEW = 800;
/** Number of names shown for edges between the same states, and characters of each. */
const [NAMES, CHARACTERS] = [3, 36];
/** Minimum characters of a shortened name. */
const LEAST_CHARACTERS = 12;
/** Radius of a loop, in radii of a state. */
const LOOP = 1.5;
/** Distance of two points at which a line counts as covered. */
const SAMPLE = 12;
/** Positions of a name on its line, the best first. */
const POSITIONS = [0.5, 0.6, 0.4, 0.7, 0.3, 0.8, 0.2];

/** The operations of a canvas that the painter uses. */
export type Pen = Pick<
  CanvasRenderingContext2D,
  | "strokeStyle" | "fillStyle" | "lineWidth" | "globalAlpha" | "font"
  | "beginPath" | "moveTo" | "lineTo" | "quadraticCurveTo" | "arc" | "rect" | "closePath"
  | "stroke" | "fill" | "fillText" | "strokeText" | "measureText"
>;

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

/** The visible part: pixels for each unit of the layout, and the pixel of its origin. */
export interface Viewport {
  scale: number;
  left: number;
  top: number;
}

/** Returns the radius of a state at a scale: states of a line do not touch. */
export function radiusAt(d: Drawn, scale: number): number {
  return Math.max(0.8, Math.min(RADIUS * Math.max(scale, 0.3), 0.42 * d.gap * scale));
}

/** Cuts the middle of a text: names differ at their ends. */
export function middle(text: string, most: number): string {
  if (text.length <= most) return text;
  const left = Math.floor(most * 0.4);
  return `${text.slice(0, left)}…${text.slice(text.length - (most - left - 1))}`;
}

/** Shortens the labels that are too long; different labels stay different: equal ones get more characters. */
export function shortened(labels: string[], most: number): Map<string, string> {
  const out = new Map<string, string>();
  let open = [...new Set(labels)].filter((l) => l.length > most);
  for (let length = most; open.length > 0; length += 8) {
    const short = open.map((l) => middle(l, length));
    const times = new Map<string, number>();
    short.forEach((s) => times.set(s, (times.get(s) ?? 0) + 1));
    open.forEach((l, i) => out.set(l, short[i] ?? l));
    open = open.filter((l, i) => (times.get(short[i] ?? "") ?? 0) > 1 && l.length > length);
  }
  return out;
}

export class Painter {
  private readonly colours = new Map<string, string>();
  private readonly radius: number;
  private readonly onPath: Set<number>;
  /** Shortened names of long labels. */
  private short = new Map<string, string>();

  /** `size`: width and height in pixels; `style`: the colours of the page. */
  constructor(
    private readonly pen: Pen,
    private readonly size: [number, number],
    private readonly style: CSSStyleDeclaration,
    private readonly d: Drawn,
    private readonly viewport: Viewport,
    private readonly marks: Marks,
  ) {
    this.radius = radiusAt(d, viewport.scale);
    this.onPath = new Set(marks.path);
  }

  paint(): void {
    const visible = this.visibleEdges();
    this.edges(visible);
    this.states();
    this.names(visible);
  }

  /** Returns the edges at a point, for a description. */
  edgesAt(px: number, py: number): number[] {
    const near = (e: number) => this.points(e).some(([x, y]) => Math.hypot(x - px, y - py) <= SAMPLE / 2 + 2);
    const visible = this.visibleEdges();
    return visible.length > FEW ? [] : visible.filter(near);
  }

  private colour(name: string): string {
    let value = this.colours.get(name);
    if (value === undefined) this.colours.set(name, (value = this.style.getPropertyValue(name).trim()));
    return value;
  }

  private at(state: number): [number, number] {
    const { scale, left, top } = this.viewport;
    return [(this.d.x[state] ?? 0) * scale + left, (this.d.y[state] ?? 0) * scale + top];
  }

  private inside([x, y]: [number, number]): boolean {
    return x > -60 && x < this.size[0] + 60 && y > -60 && y < this.size[1] + 60;
  }

  private visibleEdges(): number[] {
    const visible: number[] = [];
    this.d.system.edges.forEach(([from, , to], e) => (this.inside(this.at(from)) || this.inside(this.at(to)) || this.onPath.has(e)) && visible.push(e));
    return visible;
  }

  private ends(e: number): [from: number, to: number] {
    const [from, , to] = this.d.system.edges[e] ?? [0, 0, 0];
    return [from, to];
  }

  private line(e: number): Curve {
    const [from, to] = this.ends(e);
    const [[x, y], [u, v]] = [this.at(from), this.at(to)];
    // Edges to the next levels are straight. Others bend to their right, so that edges in opposite
    // directions are on opposite sides.
    if (v > y + 1) return { from: [x, y], control: null, to: [u, v] };
    const length = Math.hypot(u - x, v - y) || 1;
    const bend = 0.25 + (16 * this.viewport.scale) / length;
    return { from: [x, y], control: [(x + u) / 2 - (v - y) * bend, (y + v) / 2 + (u - x) * bend], to: [u, v] };
  }

  private loopRadius(): number {
    return LOOP * this.radius;
  }

  /** Points of an edge, at most `SAMPLE` pixels apart. */
  private points(e: number): [number, number][] {
    const [from, to] = this.ends(e);
    if (from === to) {
      const [[x, y], r] = [this.at(from), this.loopRadius()];
      return [0.25, 0.75, 1].map((part) => [x + r - r * Math.cos(2 * Math.PI * part), y - r * Math.sin(2 * Math.PI * part)]);
    }
    const line = this.line(e);
    const parts = Math.min(200, Math.max(2, Math.ceil(Math.hypot(line.to[0] - line.from[0], line.to[1] - line.from[1]) / SAMPLE)));
    return Array.from({ length: parts - 1 }, (_, i) => along(line, (i + 1) / parts).slice(0, 2) as [number, number]);
  }

  private trace(e: number): void {
    const [from, to] = this.ends(e);
    const line = this.line(e);
    this.pen.moveTo(...line.from);
    if (from === to) this.pen.arc(line.from[0] + this.loopRadius(), line.from[1], this.loopRadius(), Math.PI, 3 * Math.PI);
    else if (line.control) this.pen.quadraticCurveTo(...line.control, ...line.to);
    else this.pen.lineTo(...line.to);
  }

  /** Draws the head of an edge. */
  private head(e: number): void {
    const [from, to] = this.ends(e);
    const [x, y] = this.at(to);
    const [tip, size] = [this.radius + 2, 7];
    let [px, py, ux, uy] = [0, 0, 0, 0];
    if (from === to) {
      // The loop meets the circle of radius `tip` at this angle of its own circle.
      const angle = 2 * Math.asin(Math.min(1, tip / (2 * this.loopRadius())));
      [px, py] = [x + this.loopRadius() * (1 - Math.cos(angle)), y + this.loopRadius() * Math.sin(angle)];
      [ux, uy] = [-Math.sin(angle), -Math.cos(angle)];
    } else {
      const [, , dx, dy] = along(this.line(e), 1);
      const length = Math.hypot(dx, dy) || 1;
      [ux, uy] = [dx / length, dy / length];
      [px, py] = [x - ux * tip, y - uy * tip];
    }
    const [bx, by] = [px - ux * size, py - uy * size];
    this.pen.moveTo(px, py);
    this.pen.lineTo(bx - uy * 3, by + ux * 3);
    this.pen.lineTo(bx + uy * 3, by - ux * 3);
    this.pen.closePath();
  }

  private edges(visible: number[]): void {
    const { pen } = this;
    const heads = visible.length <= FEW && this.radius >= SMALL;
    const draw = (some: Iterable<number>, colour: string, width: number, heads: boolean) => {
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
    pen.globalAlpha = visible.length > 20_000 ? 0.2 : visible.length > 5_000 ? 0.35 : visible.length > FEW ? 0.6 : 1;
    draw(visible.filter((e) => !this.onPath.has(e)), "--strong-line", Math.min(1.2, Math.max(0.4, this.viewport.scale)), heads);
    pen.globalAlpha = 1;
    draw(this.onPath, "--accent", this.radius < SMALL ? 2 : 3, true);
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

  private names(visible: number[]): void {
    const { pen, d } = this;
    const { scale } = this.viewport;
    const readable = visible.length <= NAMED ? PATH_READABLE : READABLE;
    if (scale < (this.onPath.size > 0 ? PATH_READABLE : readable)) return;
    pen.font = `${Math.min(13, Math.max(11, 9 * scale))}px ${this.style.fontFamily}`;
    const together = new Map<string, number[]>();
    for (const e of visible) {
      const key = this.ends(e).join(" ");
      (together.get(key) ?? together.set(key, []).get(key))?.push(e);
    }
    const groups = [...together.values()];
    const isOn = (edges: number[]) => edges.some((e) => this.onPath.has(e));
    const taken = new Boxes();
    for (let i = 0; i < d.x.length; i++) {
      const [x, y] = this.at(i);
      if (this.inside([x, y])) taken.add([x - this.radius - 2, y - this.radius - 2, x + this.radius + 2, y + this.radius + 2]);
    }
    const lines = new Boxes();
    groups.forEach((edges) => this.points(edges[0] ?? 0).forEach(([x, y]) => lines.add([x - 1, y - 1, x + 1, y + 1], edges[0] ?? 0)));
    this.short = shortened(this.d.system.labels, CHARACTERS);
    const numbered = groups.map((edges) => ({ edges, on: isOn(edges) }));
    const shown = numbered.filter((g) => g.on || scale >= readable).sort((a, b) => Number(b.on) - Number(a.on));
    for (const { edges } of shown) this.name(edges, taken, lines);
  }

  /** Returns the name of edges between the same states; names off the path are shortened. */
  private text(edges: number[]): string {
    const { system } = this.d;
    // The edge of the path has priority.
    const order = [...edges].sort((a, b) => Number(this.onPath.has(b)) - Number(this.onPath.has(a)));
    const all = [...new Set(order.map((e) => system.labels[system.edges[e]?.[1] ?? 0] ?? ""))];
    const whole = edges.some((e) => this.onPath.has(e));
    const short = (label: string) => (whole ? label : (this.short.get(label) ?? label));
    return all.slice(0, NAMES).map(short).join(", ") + (all.length > NAMES ? ` +${all.length - NAMES}` : "");
  }

  /** Draws the name of edges between the same states where it covers no state, no other name, and
   * the fewest lines. */
  private name(edges: number[], taken: Boxes, lines: Boxes): void {
    // A name wider than the picture is cut in the middle.
    let text = this.text(edges);
    while (text.length > LEAST_CHARACTERS && this.pen.measureText(text).width > this.size[0] - 8) text = middle(text, text.length - 4);
    const width = this.pen.measureText(text).width;
    let best: { box: Box; covered: number } | null = null;
    for (const box of this.candidates(edges[0] ?? 0, width)) {
      if (taken.meets(box) || box[1] > this.size[1] || box[3] < 0) continue;
      const around: Box = [box[0] - CLEAR, box[1] - CLEAR, box[2] + CLEAR, box[3] + CLEAR];
      const covered = 2 * lines.count(box) + lines.count(around, edges[0] ?? 0);
      if (best === null || covered < best.covered) best = { box, covered };
      if (covered === 0) break;
    }
    if (best === null) return;
    taken.add(best.box);
    const [x, y] = [best.box[0], best.box[3] - 3];
    this.pen.lineWidth = 3;
    this.pen.strokeStyle = this.colour("--ground");
    this.pen.strokeText(text, x, y);
    this.pen.fillStyle = this.colour("--ink");
    this.pen.fillText(text, x, y);
  }

  /** Boxes for a name of this width: beside steep lines, above and below flat ones, in the corners of
   * sloping ones. */
  private candidates(e: number, width: number): Box[] {
    const [from, to] = this.ends(e);
    // Names stay inside the picture, unless their edge is outside.
    const box = (wanted: number, y: number): Box => {
      const least = Math.max(4, this.size[0] - width - 4);
      const x = wanted < -width || wanted > this.size[0] ? wanted : Math.max(4, Math.min(least, wanted));
      return [x, y - 11, x + width, y + 3];
    };
    if (from === to) {
      const [[x, y], r] = [this.at(from), this.loopRadius()];
      return [box(x + 2 * r + 4, y + 4), box(x + r, y - r - 5), box(x + r, y + r + 13)];
    }
    const line = this.line(e);
    return POSITIONS.flatMap((t) => {
      const [x, y, dx, dy] = along(line, t);
      const [steep, flat] = [Math.abs(dy) > 4 * Math.abs(dx), Math.abs(dx) > 4 * Math.abs(dy)];
      if (steep) return [box(x + 5, y + 4), box(x - 5 - width, y + 4)];
      if (flat) return [box(x - width / 2, y - 5), box(x - width / 2, y + 14)];
      const [right, left] = [x + 4, x - 4 - width];
      return dx * dy > 0 ? [box(right, y - 5), box(left, y + 14)] : [box(left, y - 5), box(right, y + 14)];
    });
  }
}
