// A transition system as a picture: a row for each number of steps from the initial state, drawn on a canvas so that thousands of states stay usable.
//
// Within a row states stand beside those that lead to them (the median of their places above), or together with those that have the same value of the
// parameter that they are grouped by. The picture is moved and scaled; names are written where there is room. What is selected is told in words beside.

import { count, h, plural } from "../src/dom";
import type { System } from "./server";

const [LEAST_GAP, MOST_GAP, ROW, RADIUS] = [26, 130, 64, 6];
/** Rows are further apart where they are long, so that the whole picture is no line. */
const MOST_ROW = 600;
/** A row is this wide, if its states are not so many that they would touch. */
const WIDTH = 620;
const COLOURS = 8;
/** Names are written from this scale on. */
const READABLE = 0.9;

interface Drawn {
  system: System;
  x: Float64Array;
  y: Float64Array;
  /** Edges into and out of each state, as numbers of edges. */
  out: number[][];
  /** The edge by which a state is first met; -1 for the initial one. */
  first: Int32Array;
}

function layout(system: System, group: number[] | null): Drawn {
  const n = system.levels.length;
  const out: number[][] = Array.from({ length: n }, () => []);
  const first = new Int32Array(n).fill(-1);
  const met = new Uint8Array(n);
  met[system.initial] = 1;
  system.edges.forEach(([from], e) => out[from]?.push(e));
  const queue = [system.initial];
  for (let at = 0; at < queue.length; at++) {
    for (const e of out[queue[at] ?? 0] ?? []) {
      const to = system.edges[e]?.[2] ?? 0;
      if (met[to]) continue;
      met[to] = 1;
      first[to] = e;
      queue.push(to);
    }
  }
  const rows: number[][] = [];
  queue.forEach((state) => (rows[system.levels[state] ?? 0] ??= []).push(state));
  const gap = Math.min(MOST_GAP, Math.max(LEAST_GAP, WIDTH / Math.max(1, ...rows.map((r) => r.length))));
  const widest = gap * Math.max(1, ...rows.map((r) => r.length));
  const down = Math.min(MOST_ROW, Math.max(ROW, (0.7 * widest) / rows.length));
  const x = new Float64Array(n);
  const y = new Float64Array(n);
  const above: number[][] = Array.from({ length: n }, () => []);
  for (const [from, , to] of system.edges) if ((system.levels[from] ?? 0) < (system.levels[to] ?? 0)) above[to]?.push(from);
  rows.forEach((row, level) => {
    const wish = (state: number) => {
      const places = (above[state] ?? []).map((s) => x[s] ?? 0).sort((a, b) => a - b);
      return places[places.length >> 1] ?? 0;
    };
    const keys = new Map(row.map((state) => [state, wish(state)]));
    row.sort((a, b) => (group?.[a] ?? 0) - (group?.[b] ?? 0) || (keys.get(a) ?? 0) - (keys.get(b) ?? 0));
    row.forEach((state, i) => {
      x[state] = (i - (row.length - 1) / 2) * gap;
      y[state] = level * down;
    });
  });
  return { system, x, y, out, first };
}

export class SystemPanel {
  readonly element = h("div", { class: "system" });
  private drawn: Drawn | null = null;
  private scale = 1;
  private left = 0;
  private top = 0;
  private selected = -1;
  private path: number[] = [];
  private found: number[] = [];
  private hit = -1;
  private cut = new Set<number>();
  private readonly canvas = h("canvas", { class: "picture", tabindex: 0, role: "img" });
  private readonly told = h("div", { class: "told", "aria-live": "polite" });
  private readonly legend = h("p", { class: "legend" });
  private readonly grouping = h("select", {});
  private readonly modulo = h("select", {}, ...["no quotient", "strong", "branching", "divergence-branching", "weak"].map((name) => h("option", { value: name }, name)));
  private readonly search = h("input", { type: "search", placeholder: "Search values and actions", "aria-label": "Search states and actions" });
  private readonly hits = h("output", { class: "hits", "aria-live": "polite" });
  private group: number[] | null = null;

  /** `wanted`: who draws another quotient; `walk`: who goes to a state by these steps. */
  constructor(
    private readonly wanted: (reduce: string | null, more: boolean) => void,
    private readonly walk: (way: { action: string; to: number }[]) => void,
  ) {
    this.modulo.addEventListener("change", () => this.wanted(this.reduce, false));
    this.grouping.addEventListener("change", () => this.regroup());
    this.search.addEventListener("input", () => this.find());
    this.search.addEventListener("keydown", (e) => e.key === "Enter" && this.next(e.shiftKey ? -1 : 1));
    const bar = h("div", { class: "toolbar", role: "toolbar", "aria-label": "Picture" }, h("label", {}, "Modulo ", this.modulo), h("label", {}, "Grouped by ", this.grouping), this.search, this.hits, h("button", { type: "button", click: () => this.fit() }, "Whole picture"));
    this.element.append(bar, this.legend, this.canvas, this.told);
    this.listen();
    new ResizeObserver(() => this.paint()).observe(this.canvas);
  }

  get reduce(): string | null {
    return this.modulo.value === "no quotient" ? null : this.modulo.value;
  }

  show(system: System): void {
    this.selected = -1;
    this.path = [];
    this.found = [];
    this.search.value = this.hits.textContent = "";
    const names = Object.keys(system.values ?? {});
    const chosen = this.grouping.value;
    this.grouping.replaceChildren(h("option", { value: "" }, "nothing"), ...names.map((name) => h("option", { value: name, selected: name === chosen }, name)));
    (this.grouping.parentElement as HTMLElement).hidden = names.length === 0;
    this.cut = new Set(system.cut);
    this.regroup(system);
    this.fit();
    this.tell();
    const n = system.levels.length;
    this.canvas.setAttribute("aria-label", `${plural(n, "state")}, ${plural(system.edges.length, "transition")}`);
  }

  private regroup(system = this.drawn?.system): void {
    if (!system) return;
    const column = system.values?.[this.grouping.value];
    this.group = column ? column.at : null;
    this.drawn = layout(system, this.group);
    const texts = column ? [...column.texts, ...(column.at.includes(-1) ? ["no meaning"] : [])] : [];
    const items = texts.slice(0, 24).map((text, i) => h("span", { class: `c${i % COLOURS}` }, i === column?.texts.length ? "○ " : "● ", text));
    this.legend.replaceChildren(...items, texts.length > 24 ? ` and ${texts.length - 24} more` : "");
    this.paint();
  }

  private fit(): void {
    const d = this.drawn;
    if (!d) return;
    const [low, high, deep] = d.x.reduce<[number, number, number]>(([a, b, c], x, i) => [Math.min(a, x), Math.max(b, x), Math.max(c, d.y[i] ?? 0)], [0, 0, 0]);
    const { clientWidth: width, clientHeight: height } = this.canvas;
    this.scale = Math.max(0.02, Math.min(1.6, width / (high - low + 4 * LEAST_GAP), height / (deep + 2 * ROW)));
    this.left = width / 2 - ((low + high) / 2) * this.scale;
    this.top = 0.6 * ROW * this.scale;
    this.paint();
  }

  private listen(): void {
    const { canvas } = this;
    let drag: { x: number; y: number; moved: boolean } | null = null;
    canvas.addEventListener("pointerdown", (e) => {
      drag = { x: e.offsetX, y: e.offsetY, moved: false };
      canvas.setPointerCapture(e.pointerId);
    });
    canvas.addEventListener("pointermove", (e) => {
      if (!drag) return;
      const [dx, dy] = [e.offsetX - drag.x, e.offsetY - drag.y];
      if (!drag.moved && Math.hypot(dx, dy) < 4) return;
      drag = { x: e.offsetX, y: e.offsetY, moved: true };
      this.left += dx;
      this.top += dy;
      this.paint();
    });
    canvas.addEventListener("pointerup", (e) => {
      if (drag && !drag.moved) this.select(this.stateAt(e.offsetX, e.offsetY));
      drag = null;
    });
    canvas.addEventListener("wheel", (e) => {
      e.preventDefault();
      this.zoom(Math.exp(-e.deltaY / 500), e.offsetX, e.offsetY);
    });
    canvas.addEventListener("keydown", (e) => {
      const middle: [number, number] = [canvas.clientWidth / 2, canvas.clientHeight / 2];
      const edges = this.drawn?.out[this.selected] ?? [];
      const to = (e: number | undefined) => (e === undefined ? -1 : (this.drawn?.system.edges[e]?.[2] ?? -1));
      const before = this.drawn?.first[this.selected] ?? -1;
      const actions: Record<string, () => void> = {
        "+": () => this.zoom(1.25, ...middle),
        "-": () => this.zoom(0.8, ...middle),
        ArrowDown: () => this.select(this.selected < 0 ? (this.drawn?.system.initial ?? -1) : to(edges[0]), true),
        ArrowUp: () => before >= 0 && this.select(this.drawn?.system.edges[before]?.[0] ?? -1, true),
      };
      const action = actions[e.key];
      if (!action) return;
      e.preventDefault();
      action();
    });
  }

  private zoom(by: number, x: number, y: number): void {
    const scale = Math.min(4, Math.max(0.01, this.scale * by));
    this.left = x - ((x - this.left) * scale) / this.scale;
    this.top = y - ((y - this.top) * scale) / this.scale;
    this.scale = scale;
    this.paint();
  }

  private stateAt(px: number, py: number): number {
    const d = this.drawn;
    if (!d) return -1;
    let [best, least] = [-1, Math.max(12, RADIUS * this.scale * 1.6)];
    for (let i = 0; i < d.x.length; i++) {
      const away = Math.hypot((d.x[i] ?? 0) * this.scale + this.left - px, (d.y[i] ?? 0) * this.scale + this.top - py);
      if (away < least) [best, least] = [i, away];
    }
    return best;
  }

  /** Selects a state, and shows a shortest path to it. */
  select(state: number, centre = false): void {
    const d = this.drawn;
    if (!d) return;
    this.selected = state;
    this.path = [];
    for (let e = state < 0 ? -1 : (d.first[state] ?? -1); e >= 0; ) {
      this.path.unshift(e);
      e = d.first[d.system.edges[e]?.[0] ?? 0] ?? -1;
    }
    if (centre && state >= 0) {
      this.scale = Math.max(this.scale, 0.6);
      this.left = this.canvas.clientWidth / 2 - (d.x[state] ?? 0) * this.scale;
      this.top = this.canvas.clientHeight / 2 - (d.y[state] ?? 0) * this.scale;
    }
    this.tell();
    this.paint();
  }

  private tell(): void {
    const d = this.drawn;
    if (!d) return;
    const { system } = d;
    const cut = system.complete ? "" : ", the first ones: there are more";
    const of = system.of === undefined ? "" : `, of ${plural(system.of, "state")} before reduction`;
    const facts = h("p", {}, `${plural(system.levels.length, "state")}, ${plural(system.edges.length, "transition")}, ${plural(Math.max(...system.levels) + 1, "level")}${of}${cut}.`);
    if (!system.complete) facts.append(" ", h("button", { type: "button", click: () => this.wanted(this.reduce, true) }, "Draw more"));
    if (this.selected < 0) {
      this.told.replaceChildren(facts, h("p", { class: "quiet" }, "A click selects a state and shows a shortest path to it. Drag moves the picture, the wheel scales it."));
      return;
    }
    const label = (e: number) => system.labels[system.edges[e]?.[1] ?? 0] ?? "";
    const target = (e: number) => system.edges[e]?.[2] ?? 0;
    const values = Object.entries(system.values ?? {}).map(([name, c]) => [name, c.texts[c.at[this.selected] ?? -1]] as const).filter(([, v]) => v !== undefined);
    const way = this.path.map((e) => ({ action: label(e), to: system.states?.[target(e)] ?? -1 }));
    const out = (d.out[this.selected] ?? []).slice(0, 40).map((e) => h("li", {}, h("button", { type: "button", click: () => this.select(target(e), true) }, label(e))));
    const parts = [
      facts,
      h("h3", {}, `State ${count(this.selected)}`),
      h("p", {}, this.path.length === 0 ? "The initial state." : h("span", {}, h("strong", {}, `Path to here, ${plural(this.path.length, "step")}: `), way.map((w) => w.action).join(" · "))),
      system.states ? h("button", { type: "button", click: () => this.walk(way) }, "Walk there") : null,
      h("h4", {}, this.cut.has(this.selected) ? "Steps; there are more, to states that are not drawn" : out.length > 0 ? "Steps" : "A deadlock: no steps"),
      h("ol", { class: "steps" }, ...out),
      values.length > 0 ? h("table", { class: "values" }, h("tbody", {}, ...values.map(([name, v]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, v ?? ""))))) : null,
    ];
    this.told.replaceChildren(...parts.filter((p) => p !== null));
  }

  private find(): void {
    const [d, text] = [this.drawn, this.search.value.trim()];
    const found = new Set<number>();
    if (d && text !== "") {
      for (const c of Object.values(d.system.values ?? {})) {
        const fits = c.texts.map((t) => t.includes(text));
        c.at.forEach((v, state) => v >= 0 && fits[v] && found.add(state));
      }
      const named = d.system.labels.map((l) => l.includes(text));
      for (const [from, label] of d.system.edges) if (named[label]) found.add(from);
    }
    this.found = [...found].sort((a, b) => (d?.system.levels[a] ?? 0) - (d?.system.levels[b] ?? 0) || a - b);
    this.hit = -1;
    this.hits.textContent = text === "" ? "" : plural(this.found.length, "state");
    this.paint();
  }

  private next(by: number): void {
    if (this.found.length === 0) return;
    this.hit = (this.hit + by + this.found.length) % this.found.length;
    this.hits.textContent = `${this.hit + 1} of ${this.found.length}`;
    this.select(this.found[this.hit] ?? -1, true);
  }

  private paint(): void {
    const [d, pen] = [this.drawn, this.canvas.getContext("2d")];
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!d || !pen || width === 0) return;
    const dense = window.devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(width * dense) || this.canvas.height !== Math.round(height * dense)) {
      this.canvas.width = Math.round(width * dense);
      this.canvas.height = Math.round(height * dense);
    }
    pen.setTransform(dense, 0, 0, dense, 0, 0);
    pen.clearRect(0, 0, width, height);
    const style = getComputedStyle(this.canvas);
    const known = new Map<string, string>();
    const colour = (name: string) => {
      const value = known.get(name) ?? style.getPropertyValue(name).trim();
      known.set(name, value);
      return value;
    };
    const X = (i: number) => (d.x[i] ?? 0) * this.scale + this.left;
    const Y = (i: number) => (d.y[i] ?? 0) * this.scale + this.top;
    const inside = (x: number, y: number) => x > -60 && x < width + 60 && y > -60 && y < height + 60;
    const onPath = new Set(this.path);
    const { edges, labels } = d.system;
    const line = (e: number) => {
      const [from, , to] = edges[e] ?? [0, 0, 0];
      const [x, y, u, v] = [X(from), Y(from), X(to), Y(to)];
      if (!inside(x, y) && !inside(u, v)) return;
      pen.moveTo(x, y);
      if (from === to) pen.arc(x + RADIUS * this.scale, y, RADIUS * this.scale, Math.PI, 3 * Math.PI);
      // Steps back and along a row are bent, so that they do not lie on others.
      else if (v > y + 1) pen.lineTo(u, v);
      else pen.quadraticCurveTo((x + u) / 2 + (y - v) * 0.25 + 14 * this.scale, (y + v) / 2 - 20 * this.scale, u, v);
    };
    pen.lineWidth = Math.min(1.2, Math.max(0.4, this.scale));
    pen.strokeStyle = colour("--strong-line");
    pen.globalAlpha = edges.length > 20_000 ? 0.25 : edges.length > 2_000 ? 0.5 : 1;
    pen.beginPath();
    edges.forEach((_, e) => onPath.has(e) || line(e));
    pen.stroke();
    pen.globalAlpha = 1;
    pen.lineWidth = 3;
    pen.strokeStyle = colour("--accent");
    pen.beginPath();
    onPath.forEach(line);
    pen.stroke();
    const radius = Math.max(1.2, RADIUS * this.scale);
    const found = new Set(this.found);
    for (let i = 0; i < d.x.length; i++) {
      const [x, y] = [X(i), Y(i)];
      if (!inside(x, y)) continue;
      pen.beginPath();
      pen.arc(x, y, radius, 0, 2 * Math.PI);
      const value = this.group?.[i];
      pen.fillStyle = value === undefined ? colour("--quiet") : value < 0 ? colour("--ground") : colour(`--c${value % COLOURS}`);
      pen.fill();
      pen.lineWidth = 1.5;
      pen.strokeStyle = (d.out[i] ?? []).length === 0 && !this.cut.has(i) ? colour("--bad") : colour("--ground");
      pen.stroke();
      if (found.has(i) || i === this.selected || i === d.system.initial) {
        pen.beginPath();
        pen.arc(x, y, radius + 3, 0, 2 * Math.PI);
        pen.lineWidth = i === this.selected ? 3 : 2;
        pen.strokeStyle = found.has(i) ? colour("--open") : colour("--accent");
        pen.stroke();
      }
    }
    if (this.scale < READABLE && onPath.size === 0) return;
    pen.font = `${Math.min(13, Math.max(11, 9 * this.scale))}px ${style.fontFamily}`;
    pen.fillStyle = colour("--ink");
    edges.forEach(([from, label, to], e) => {
      // Nearer to the target, where edges of one state are apart.
      const [x, y] = [0.4 * X(from) + 0.6 * X(to), 0.4 * Y(from) + 0.6 * Y(to)];
      if (inside(x, y) && from !== to && (onPath.has(e) || this.scale >= READABLE)) pen.fillText(labels[label] ?? "", x + 4, y);
    });
  }
}
