// Picture of a transition system: a level for each distance from the initial state, on a canvas, so
// that thousands of states remain usable.
//
// `layout` computes positions, `picture` paints. The picture can be moved, scaled, and saved; states
// can be dragged. The selected state is described in text, with a shortest path to it, or with the
// path of a counterexample.

import { count, h, plural, saveFile } from "../src/dom";
import { layout, type Drawn } from "./layout";
import { COLOURS, Painter, radiusAt, type Pen } from "./picture";
import type { Hello, System } from "./server";
import { VectorPen } from "./vector";

/** Maximum number of colours in the legend, and of listed actions of a path. */
const [MOST_NAMES, MOST_ACTIONS] = [24, 60];
/** Text for a group of parameters without meaning in a state. */
const NONE = "·";

/** Choice of the picture of all states. */
const NO_QUOTIENT = "no quotient";

type Column = NonNullable<System["values"]>[string];

/** The state of a component: the values of all its parameters together. */
function together(columns: Column[]): Column {
  const [texts, at, known] = [[] as string[], [] as number[], new Map<string, number>()];
  const states = columns[0]?.at.length ?? 0;
  for (let state = 0; state < states; state++) {
    const text = columns.map((c) => c.texts[c.at[state] ?? -1] ?? NONE).join(", ");
    let number = known.get(text);
    if (number === undefined) {
      known.set(text, (number = texts.length));
      texts.push(text);
    }
    at.push(number);
  }
  return { texts, at };
}

/** Grouping criteria: each parameter, and the state of each component with several parameters. */
function columns(system: System, about: Hello | null): Map<string, Column> {
  const values = system.values ?? {};
  const out = new Map<string, Column>();
  about?.components.forEach((name, c) => {
    const own = about.parameters.filter((p) => p.component === c).flatMap((p) => values[p.name] ?? []);
    if (own.length > 1) out.set(`state of ${name || "the model"}`, together(own));
  });
  for (const [name, column] of Object.entries(values)) out.set(name, column);
  return out;
}

/** Lists actions; repeated ones are counted. */
function actions(list: string[]): string {
  const parts: string[] = [];
  for (let i = 0; i < list.length; ) {
    let to = i;
    while (to < list.length && list[to] === list[i]) to += 1;
    parts.push(to - i > 1 ? `${list[i]} × ${to - i}` : (list[i] ?? ""));
    i = to;
  }
  const left = parts.length - MOST_ACTIONS;
  return parts.slice(0, MOST_ACTIONS).join(" · ") + (left > 0 ? ` · and ${left} more` : "");
}

export class SystemPanel {
  readonly element = h("div", { class: "system" });
  private drawn: Drawn | null = null;
  private columns = new Map<string, Column>();
  /** The displayed system. */
  private title = "";
  private scale = 1;
  private left = 0;
  private top = 0;
  private selected = -1;
  private path: number[] = [];
  /** Description of the path, unless it is a shortest one. */
  private pathOf = "";
  private found: number[] = [];
  private hit = -1;
  private cut = new Set<number>();
  private more = false;
  private readonly canvas = h("canvas", { class: "picture", tabindex: 0, role: "application", "aria-roledescription": "picture of states" });
  private readonly description = h("div", { class: "description", "aria-live": "polite" });
  private readonly legend = h("p", { class: "legend" });
  private readonly grouping = h("select", {});
  private readonly modulo = h("select", {}, h("option", { value: NO_QUOTIENT }, NO_QUOTIENT));
  private readonly search = h("input", { type: "search", placeholder: "Search values and actions", "aria-label": "Search states and actions" });
  private readonly hits = h("output", { class: "hits", "aria-live": "polite" });
  private readonly restore = h("button", { type: "button", hidden: true, title: "Move dragged states back", click: () => this.regroup() }, "Restore layout");
  private group: number[] | null = null;

  /** `wanted`: callback to draw another quotient; `walk`: callback to go to a state by these steps. */
  constructor(
    private readonly wanted: (reduce: string | null, more: boolean) => void,
    private readonly walk: (way: { action: string; to: number }[]) => void,
  ) {
    this.modulo.addEventListener("change", () => this.wanted(this.reduce, false));
    this.grouping.addEventListener("change", () => this.regroup());
    this.search.addEventListener("input", () => this.find());
    this.search.addEventListener("keydown", (e) => e.key === "Enter" && this.next(e.shiftKey ? -1 : 1));
    const save = (kind: string, click: () => void) => h("button", { type: "button", title: `Save the visible part as ${kind}`, click }, kind);
    const bar = h("div", { class: "toolbar", role: "toolbar", "aria-label": "Picture" }, h("label", {}, "Modulo ", this.modulo), h("label", {}, "Grouped by ", this.grouping), this.search, this.hits, h("button", { type: "button", click: () => this.fit() }, "Whole picture"), this.restore, save("SVG", () => this.saveVector()), save("PNG", () => this.savePixels()));
    this.element.append(bar, this.legend, this.canvas, this.description);
    this.listen();
    new ResizeObserver(() => this.paint()).observe(this.canvas);
  }

  get reduce(): string | null {
    return this.modulo.value === NO_QUOTIENT ? null : this.modulo.value;
  }

  /** Chooses the picture of all states. */
  withoutQuotient(): void {
    this.modulo.value = NO_QUOTIENT;
  }

  /** Shows a system. `title`: its description; `about`: the model, for grouping by components; `more`: true if more states can be drawn. */
  show(system: System, title: string, about: Hello | null, more: boolean): void {
    this.selected = -1;
    this.more = more;
    this.path = [];
    this.found = [];
    this.title = title;
    this.search.value = this.hits.textContent = "";
    this.columns = columns(system, about);
    const quotient = this.modulo.value;
    const names = [NO_QUOTIENT, ...(about?.quotients ?? [])];
    this.modulo.replaceChildren(...names.map((name) => h("option", { value: name, selected: name === quotient }, name)));
    const chosen = this.grouping.value;
    this.grouping.replaceChildren(h("option", { value: "" }, "nothing"), ...[...this.columns.keys()].map((name) => h("option", { value: name, selected: name === chosen }, name)));
    (this.grouping.parentElement as HTMLElement).hidden = this.columns.size === 0;
    this.canvas.hidden = false;
    this.cut = new Set(system.cut);
    this.regroup(system);
    this.fit();
    this.describe();
    const n = system.levels.length;
    this.canvas.setAttribute("aria-label", `${title}: ${plural(n, "state")}, ${plural(system.edges.length, "transition")}. Arrow keys follow transitions and levels.`);
  }

  /** Shows the reason for a missing picture; the picture of another model would be misleading. */
  clear(title: string, why: string): void {
    this.drawn = null;
    this.canvas.hidden = true;
    this.legend.replaceChildren();
    this.hits.textContent = "";
    this.description.replaceChildren(h("h3", {}, title), h("p", { class: "error" }, why));
  }

  private regroup(system = this.drawn?.system): void {
    if (!system) return;
    const column = this.columns.get(this.grouping.value);
    this.group = column ? column.at : null;
    this.drawn = layout(system, this.group);
    const items = (column?.texts ?? []).slice(0, MOST_NAMES).map((text, i) => h("span", { class: `c${i % COLOURS}` }, "● ", text));
    if (column?.at.includes(-1)) items.push(h("span", { class: "quiet" }, "● no meaning"));
    const left = (column?.texts.length ?? 0) - MOST_NAMES;
    this.legend.replaceChildren(...items, left > 0 ? ` and ${count(left)} more` : "");
    this.restore.hidden = true;
    this.describe();
    this.paint();
  }

  private fit(): void {
    const d = this.drawn;
    if (!d) return;
    let [low, high, deep] = [0, 0, 0];
    d.x.forEach((x, i) => ([low, high, deep] = [Math.min(low, x), Math.max(high, x), Math.max(deep, d.y[i] ?? 0)]));
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const edge = 24;
    this.scale = Math.max(0.002, Math.min(1.6, (width - 2 * edge) / (high - low + d.gap), (height - 2 * edge) / Math.max(deep, 1)));
    this.left = width / 2 - ((low + high) / 2) * this.scale;
    this.top = Math.max(edge, Math.min(60, (height - deep * this.scale) / 2));
    this.paint();
  }

  private listen(): void {
    const { canvas } = this;
    // A drag moves the state under the pointer, or the whole picture.
    let drag: { x: number; y: number; moved: boolean; state: number } | null = null;
    canvas.addEventListener("pointerdown", (e) => {
      drag = { x: e.offsetX, y: e.offsetY, moved: false, state: this.stateAt(e.offsetX, e.offsetY) };
      canvas.setPointerCapture(e.pointerId);
    });
    canvas.addEventListener("pointermove", (e) => {
      if (!drag) return this.hover(e.offsetX, e.offsetY);
      const [dx, dy] = [e.offsetX - drag.x, e.offsetY - drag.y];
      if (!drag.moved && Math.hypot(dx, dy) < 4) return;
      drag = { ...drag, x: e.offsetX, y: e.offsetY, moved: true };
      this.move(drag.state, dx, dy);
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
      const keys: Record<string, () => void> = {
        "+": () => this.zoom(1.25, ...middle),
        "-": () => this.zoom(0.8, ...middle),
        ArrowDown: () => this.select(this.selected < 0 ? (this.drawn?.system.initial ?? -1) : to(edges[0]), true),
        ArrowUp: () => before >= 0 && this.select(this.drawn?.system.edges[before]?.[0] ?? -1, true),
        ArrowLeft: () => this.beside(-1),
        ArrowRight: () => this.beside(1),
      };
      const action = keys[e.key];
      if (!action || e.ctrlKey || e.metaKey || e.altKey) return;
      e.preventDefault();
      action();
    });
  }

  /** Moves a state by some pixels, or the whole picture if there is no state. */
  private move(state: number, dx: number, dy: number): void {
    if (this.drawn && state >= 0) {
      this.drawn.x[state] = (this.drawn.x[state] ?? 0) + dx / this.scale;
      this.drawn.y[state] = (this.drawn.y[state] ?? 0) + dy / this.scale;
      this.restore.hidden = false;
    } else {
      this.left += dx;
      this.top += dy;
    }
    this.paint();
  }

  /** Shows the whole names of the edges under the pointer, or the number of the state. */
  private hover(x: number, y: number): void {
    const d = this.drawn;
    if (!d) return;
    const state = this.stateAt(x, y);
    const edges = state >= 0 ? [] : (this.painter()?.edgesAt(x, y) ?? []);
    const names = edges.map((e) => d.system.labels[d.system.edges[e]?.[1] ?? 0] ?? "");
    this.canvas.title = state >= 0 ? `state ${state}` : [...new Set(names)].slice(0, MOST_NAMES).join("\n");
  }

  /** Selects the neighbour of the selected state in its level. */
  private beside(by: number): void {
    const row = this.drawn?.rows[this.drawn.system.levels[this.selected] ?? -1] ?? [];
    const next = row[row.indexOf(this.selected) + by];
    if (next !== undefined) this.select(next, true);
  }

  private zoom(by: number, x: number, y: number): void {
    const scale = Math.min(4, Math.max(0.002, this.scale * by));
    this.left = x - ((x - this.left) * scale) / this.scale;
    this.top = y - ((y - this.top) * scale) / this.scale;
    this.scale = scale;
    this.paint();
  }

  private stateAt(px: number, py: number): number {
    const d = this.drawn;
    if (!d) return -1;
    let [best, least] = [-1, Math.max(12, radiusAt(d, this.scale) * 1.6)];
    for (let i = 0; i < d.x.length; i++) {
      const away = Math.hypot((d.x[i] ?? 0) * this.scale + this.left - px, (d.y[i] ?? 0) * this.scale + this.top - py);
      if (away < least) [best, least] = [i, away];
    }
    return best;
  }

  /** Shows a path from the initial state, by labels and states of the model: a counterexample.
   * Returns the number of its steps that the picture has. */
  follow(path: { action: string; to: number }[], title: string): number {
    const { system, out } = this.drawn ?? {};
    if (!system?.states || !out) return 0;
    let at = system.initial;
    const edges: number[] = [];
    for (const { action, to } of path) {
      const fits = (e: number) => system.states?.[system.edges[e]?.[2] ?? -1] === to && system.labels[system.edges[e]?.[1] ?? -1] === action;
      const edge = out[at]?.find(fits);
      if (edge === undefined) break;
      edges.push(edge);
      at = system.edges[edge]?.[2] ?? at;
    }
    this.selected = at;
    this.path = edges;
    this.pathOf = title;
    this.describe();
    this.zoomToPath();
    return edges.length;
  }

  /** Shows the path as large as the picture allows, if it is a small part of the whole. */
  private zoomToPath(): void {
    const d = this.drawn;
    if (!d || this.path.length === 0) return this.paint();
    this.fit();
    const states = [d.system.initial, ...this.path.map((e) => d.system.edges[e]?.[2] ?? 0)];
    const [xs, ys] = [states.map((i) => d.x[i] ?? 0), states.map((i) => d.y[i] ?? 0)];
    const [low, high, top, deep] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const scale = Math.min(1.4, (width - 120) / Math.max(high - low, 1), (height - 120) / Math.max(deep - top, 1));
    if (scale > 1.3 * this.scale) {
      this.scale = scale;
      this.left = width / 2 - ((low + high) / 2) * scale;
      this.top = height / 2 - ((top + deep) / 2) * scale;
    }
    this.paint();
  }

  /** Selects a state, and shows a shortest path to it. */
  select(state: number, centre = false): void {
    const d = this.drawn;
    if (!d) return;
    this.selected = state;
    this.pathOf = "";
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
    this.describe();
    this.paint();
  }

  private describe(): void {
    const d = this.drawn;
    if (!d) return;
    const { system } = d;
    const cut = system.complete ? "" : ", the first ones: there are more";
    const of = system.of === undefined ? "" : `, of ${plural(system.of, "state")} before reduction`;
    const facts = h("p", {}, h("strong", {}, `${this.title}: `), `${plural(system.levels.length, "state")}, ${plural(system.edges.length, "transition")}, ${plural(d.rows.length, "level")}${of}${cut}.`);
    if (!system.complete && this.more) facts.append(" ", h("button", { type: "button", click: () => this.wanted(this.reduce, true) }, "Draw more"));
    if (this.selected < 0) {
      this.description.replaceChildren(facts, h("p", { class: "quiet" }, "A click selects a state and shows a shortest path to it. Drag moves a state or the picture, the wheel scales it."));
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
      h("p", {}, this.path.length === 0 ? "The initial state." : h("span", {}, h("strong", {}, `${this.pathOf || "Path to here"}, ${plural(this.path.length, "step")}: `), actions(way.map((w) => w.action)))),
      system.states ? h("button", { type: "button", click: () => this.walk(way) }, "Walk there") : null,
      h("h4", {}, this.cut.has(this.selected) ? "Steps; there are more, to states that are not drawn" : out.length > 0 ? "Steps" : "A deadlock: no steps"),
      h("ol", { class: "steps" }, ...out),
      values.length > 0 ? h("table", { class: "values" }, h("tbody", {}, ...values.map(([name, v]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, v ?? ""))))) : null,
    ];
    this.description.replaceChildren(...parts.filter((p) => p !== null));
  }

  private find(): void {
    const [d, text] = [this.drawn, this.search.value.trim()];
    const found = new Set<number>();
    if (d && text !== "") {
      // A position names the actions that may follow, also those that are not enabled.
      const fitting = d.system.labels.map((l) => l.includes(text));
      const isAction = fitting.includes(true);
      for (const [name, c] of Object.entries(d.system.values ?? {})) {
        if (isAction && name.startsWith("position")) continue;
        const fits = c.texts.map((t) => t.includes(text));
        c.at.forEach((v, state) => v >= 0 && fits[v] && found.add(state));
      }
      for (const [from, label] of d.system.edges) if (fitting[label]) found.add(from);
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

  private painter(pen: Pen | null = this.canvas.getContext("2d")): Painter | null {
    const { canvas, drawn, scale, left, top, selected, path, found, cut, group } = this;
    if (!drawn || !pen || canvas.clientWidth === 0) return null;
    return new Painter(pen, [canvas.clientWidth, canvas.clientHeight], getComputedStyle(canvas), drawn, { scale, left, top }, { selected, path, found, cut, group });
  }

  private paint(): void {
    const { canvas } = this;
    const pen = canvas.getContext("2d");
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (!pen || width === 0) return;
    const density = window.devicePixelRatio || 1;
    const [across, down] = [Math.round(width * density), Math.round(height * density)];
    if (canvas.width !== across || canvas.height !== down) [canvas.width, canvas.height] = [across, down];
    pen.setTransform(density, 0, 0, density, 0, 0);
    pen.clearRect(0, 0, width, height);
    this.painter(pen)?.paint();
  }

  private saveVector(): void {
    const measure = this.canvas.getContext("2d");
    if (!measure) return;
    const pen = new VectorPen(measure);
    this.painter(pen)?.paint();
    const ground = getComputedStyle(this.canvas).getPropertyValue("--ground").trim();
    this.save(new Blob([pen.document(this.title, this.canvas.clientWidth, this.canvas.clientHeight, ground)], { type: "image/svg+xml" }), "svg");
  }

  /** Saves the pixels on a ground, because a canvas is transparent. */
  private savePixels(): void {
    const copy = h("canvas", { width: this.canvas.width, height: this.canvas.height });
    const pen = copy.getContext("2d");
    if (!pen || copy.width === 0) return;
    pen.fillStyle = getComputedStyle(this.canvas).getPropertyValue("--ground").trim();
    pen.fillRect(0, 0, copy.width, copy.height);
    pen.drawImage(this.canvas, 0, 0);
    copy.toBlob((blob) => blob && this.save(blob, "png"));
  }

  private save(blob: Blob, ending: string): void {
    const name = this.title.replace(/^.*\//, "").replace(/[^\w.=-]+/g, "-");
    saveFile(blob, `${name || "picture"}.${ending}`);
  }
}
