// Message sequence chart with virtual rows: only visible rows are drawn. A lane for each component,
// a row for each event, time from top to bottom.
//
// All rows have the same height, so that positions are known without drawing; ten thousand steps
// cost as much as forty. For assistive technology the chart is a list of steps with one selected;
// further rows of a step are part of it. For print, a range of rows is drawn in full.

import { font, fresh, h, s, widest } from "./dom";
import type { Event, Run } from "./run";

const ROW = 40;
/** Vertical position of arrow lines in a row. */
const LINE = 28;
const GUTTER = 64;
const LABEL = font(13, 600);
const NARROWEST = 104;
/** Space around the text of a lane's head: gaps, padding, borders. */
const AROUND = 26;
const BEYOND = 150;
/** Rows drawn above and below the visible ones. */
const MORE = 12;
/** Width of a chart on paper. */
const PAPER = 690;
/** Maximum number of rows on paper. */
const MOST_PRINTED = 600;

const HEADS = [LABEL, font(11)];

/** Splits a component's name from its arguments. */
function nameParts(name: string): string[] {
  const open = name.indexOf("(");
  return open > 0 && name.endsWith(")") ? [name.slice(0, open), name.slice(open + 1, -1)] : [name];
}

/** Cuts the middle of a text that is too wide, because names differ at their ends. */
function cut(text: string, width: number, face: string): string {
  let out = text;
  for (let left = text.length - 1; left > 4 && widest([out], face) > width; left--) {
    out = `${text.slice(0, Math.floor(left / 3))}…${text.slice(text.length - Math.ceil((left * 2) / 3))}`;
  }
  return out;
}

export interface View {
  /** Visible lanes in their order. */
  lanes: number[];
  /** True if hidden events are shown. */
  hidden: boolean;
}

export class Chart {
  readonly element: HTMLElement;
  private readonly head = h("div", { class: "chart-head", "aria-hidden": "true" });
  private readonly body = h("div", { class: "chart-body", role: "presentation" });
  private readonly scroller: HTMLElement;
  private readonly tail = h("div", { class: "chart-tail" });
  private readonly note = h("p", { class: "print-note", hidden: true });
  private readonly id = fresh("row");
  private events: Event[] = [];
  /** First row of each step, or of the next step with rows. */
  private rowOf: Int32Array = new Int32Array(0);
  private x: number[] = [];
  private width = 0;
  private view: View = { lanes: [], hidden: true };
  private selected = 0;
  private marked = new Set<number>();
  private drawn = new Map<number, HTMLElement>();
  private waiting = false;
  /** Replacement of the scrolling part on paper, and the note below it. */
  private paper: HTMLElement | null = null;
  private end: Node | null = null;

  constructor(
    private readonly run: Run,
    private readonly select: (after: number) => void,
    private readonly move: (lane: number, to: number) => void,
  ) {
    this.scroller = h("div", { class: "chart", tabindex: 0, role: "listbox", "aria-label": `Steps of ${run.title}` }, this.head, this.body, this.tail);
    this.element = h("div", { class: "chart-frame" }, this.scroller, this.note);
    this.scroller.addEventListener("scroll", () => this.later());
    this.scroller.addEventListener("keydown", (e) => this.key(e));
    this.body.addEventListener("click", (e) => {
      const row = (e.target as Element).closest<HTMLElement>("[data-step]");
      if (row) this.select(Number(row.dataset["step"]) + 1);
    });
    // The chart on paper is separate; this one has no size.
    new ResizeObserver(() => this.paper === null && this.layout()).observe(this.scroller);
  }

  show(view: View): void {
    this.view = view;
    const shown = new Set(view.lanes);
    this.events = this.run.events.filter((e) => (view.hidden || !e.hidden) && e.lanes.some((l) => shown.has(l)));
    this.rowOf = new Int32Array(this.run.steps.length + 1);
    let row = 0;
    for (let step = 0; step < this.run.steps.length; step++) {
      this.rowOf[step] = row;
      while (this.events[row]?.step === step) row += 1;
    }
    this.rowOf[this.run.steps.length] = row;
    this.layout();
    this.reveal();
  }

  /** Selects the state after a number of steps and scrolls to it. */
  at(after: number): void {
    this.selected = after;
    this.reveal();
    this.redraw();
  }

  mark(steps: number[]): void {
    this.marked = new Set(steps.map((n) => n - 1));
    this.redraw();
  }

  /** The number of rows. */
  get length(): number {
    return this.events.length;
  }

  private layout(available = this.scroller.clientWidth): void {
    const { lanes } = this.view;
    // A hidden sheet has no size; the layout happens when it is shown.
    if (available === 0) this.x = [];
    if (lanes.length === 0 || available === 0) return;
    // On a narrow screen, names are cut so that more lanes are visible.
    const narrow = available < 560;
    const most = narrow ? 96 : 230;
    const least = narrow ? 72 : NARROWEST;
    const heads = lanes.map((l) => Math.max(least, Math.min(most, Math.max(...nameParts(this.run.lanes[l] ?? "").map((part, i) => widest([part], HEADS[i] ?? LABEL))) + AROUND + 1)));
    // Whole names are worth more than room beside the last lane.
    const beyond = narrow ? 60 : Math.max(60, Math.min(BEYOND, available - GUTTER - heads.reduce((a, b) => a + b, 0)));
    const room = available - GUTTER - beyond;
    // Lanes divide the width: wide enough to follow, and no narrower than readable names.
    const all = heads.reduce((a, b) => a + b, 0);
    const wanted = heads.map((w) => Math.max(least, Math.min(w, (w * room) / all)));
    const factor = Math.max(1, Math.min(1.7, room / wanted.reduce((a, b) => a + b, 0)));
    let x = GUTTER;
    this.x = wanted.map((w) => {
      const middle = x + (w * factor) / 2;
      x += w * factor;
      return middle;
    });
    this.width = Math.max(available, x + beyond);
    const cells = lanes.map((l, i) => this.headCell(l, i, (this.x[i] ?? 0) - ((wanted[i] ?? 0) * factor) / 2, (wanted[i] ?? 0) * factor));
    this.head.replaceChildren(...cells);
    this.head.style.width = this.body.style.width = `${this.width}px`;
    this.body.style.height = `${this.events.length * ROW}px`;
    this.tail.replaceChildren(...this.endings());
    this.redraw();
  }

  private headCell(lane: number, place: number, left: number, width: number): HTMLElement {
    const name = this.run.lanes[lane] ?? "";
    const cell = h("div", { class: "lane-head", draggable: "true", title: `${name} (drag to move)` }, ...nameParts(name).map((part, i) => h("span", {}, cut(part, width - AROUND, HEADS[i] ?? LABEL))));
    cell.style.left = `${left + 4}px`;
    cell.style.width = `${width - 8}px`;
    cell.addEventListener("dragstart", (e) => e.dataTransfer?.setData("text/plain", String(lane)));
    cell.addEventListener("dragover", (e) => e.preventDefault());
    cell.addEventListener("drop", (e) => {
      e.preventDefault();
      const from = Number(e.dataTransfer?.getData("text/plain"));
      if (this.view.lanes.includes(from)) this.move(from, place);
    });
    return cell;
  }

  /** Returns the elements below the last row. */
  private endings(): HTMLElement[] {
    const { backTo, steps, linear, ending } = this.run;
    const out: HTMLElement[] = [];
    if (backTo !== null && linear) {
      const again = h("button", { type: "button" }, backTo === 0 ? "the start" : `after step ${backTo}`);
      again.addEventListener("click", () => this.select(backTo));
      out.push(h("p", {}, "↺ From here the run repeats from ", again, "."));
    } else if (linear && steps.length > 0) {
      out.push(h("p", {}, ending ? "The run ends in a state without outgoing transitions." : "The run ends here."));
    }
    if (this.run.leftOut > 0) out.push(h("p", {}, `${this.run.leftOut} more steps are not in this result.`));
    return out;
  }

  private later(): void {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      if (this.paper === null) this.draw();
    });
  }

  private redraw(): void {
    this.drawn.forEach((row) => row.remove());
    this.drawn.clear();
    this.draw();
  }

  /** Draws the visible rows, and removes the others. */
  private draw(): void {
    if (this.x.length === 0) return;
    const top = this.scroller.scrollTop;
    const first = Math.max(0, Math.floor(top / ROW) - MORE);
    const last = Math.min(this.events.length, Math.ceil((top + this.scroller.clientHeight) / ROW) + MORE);
    for (const [at, row] of this.drawn) {
      if (at < first || at >= last) {
        row.remove();
        this.drawn.delete(at);
      }
    }
    for (let at = first; at < last; at++) {
      if (this.drawn.has(at)) continue;
      const row = this.row(at);
      row.style.top = `${at * ROW}px`;
      this.drawn.set(at, row);
      this.body.append(row);
    }
    const active = this.selected > 0 && document.getElementById(`${this.id}-${this.selected - 1}`);
    if (active) this.scroller.setAttribute("aria-activedescendant", active.id);
    else this.scroller.removeAttribute("aria-activedescendant");
  }

  private row(at: number): HTMLElement {
    const event = this.events[at];
    if (!event) return h("div");
    const first = this.events[at - 1]?.step !== event.step;
    const step = this.run.steps[event.step];
    const last = event.step + 1 === this.run.steps.length && this.run.linear && this.run.kind !== "trace";
    const classes = ["row", event.hidden && "is-hidden", event.step + 1 === this.selected && "is-selected", this.marked.has(event.step) && "is-found"];
    if (last) classes.push(`is-last is-${this.run.kind}`);
    if (first) classes.push("is-first");
    const number = this.run.linear ? String(event.step + 1) : `${step?.from} → ${step?.to}`;
    const row = h(
      "div",
      { class: classes.filter(Boolean).join(" "), "data-step": event.step },
      h("span", { class: "number", "aria-hidden": "true" }, first ? number : "", event.step === this.run.backTo && first ? " ↺" : ""),
      this.drawing(event),
      this.label(event),
    );
    if (first) {
      row.id = `${this.id}-${event.step}`;
      row.setAttribute("role", "option");
      row.setAttribute("aria-selected", String(event.step + 1 === this.selected));
      row.setAttribute("aria-label", this.run.say(event.step));
      row.setAttribute("aria-posinset", String(event.step + 1));
      row.setAttribute("aria-setsize", String(this.run.steps.length));
    } else {
      row.setAttribute("aria-hidden", "true");
    }
    row.style.width = `${this.width}px`;
    return row;
  }

  /** Positions of an event's visible lanes. */
  private places(event: Event): { at: number[]; to: number | null } {
    const place = (lane: number) => this.x[this.view.lanes.indexOf(lane)];
    const at = event.lanes.map(place).filter((x): x is number => x !== undefined);
    return { at, to: event.receiver === null ? null : (place(event.receiver) ?? null) };
  }

  private drawing(event: Event): SVGElement {
    const { at, to } = this.places(event);
    const [low, high] = [Math.min(...at), Math.max(...at)];
    const lines = this.x.map((x) => s("line", { class: "lifeline", x1: x, x2: x, y1: 0, y2: ROW }));
    const marks: SVGElement[] = [];
    if (at.length > 1) {
      marks.push(s("line", { class: "arrow", x1: low, x2: high, y1: LINE, y2: LINE }));
      if (to !== null) {
        const back = to === low ? 9 : -9;
        marks.push(s("path", { class: "arrow-head", d: `M${to} ${LINE}l${back} -4.5v9z` }));
        marks.push(s("circle", { class: "dot", cx: to === low ? high : low, cy: LINE, r: 3 }));
      } else {
        at.forEach((x) => marks.push(s("circle", { class: "dot", cx: x, cy: LINE, r: 3.5 })));
      }
    } else {
      marks.push(s("circle", { class: "dot", cx: low, cy: LINE, r: 4.5 }));
      if (event.lanes.length > 1) marks.push(s("line", { class: "arrow arrow-away", x1: low, x2: low + 34, y1: LINE, y2: LINE }));
    }
    return s("svg", { width: this.width, height: ROW, "aria-hidden": "true" }, ...lines, ...marks);
  }

  private label(event: Event): HTMLElement {
    const { at } = this.places(event);
    const low = Math.min(...at);
    const away = event.lanes.filter((l) => !this.view.lanes.includes(l)).map((l) => this.run.lanes[l]);
    const label = h("span", { class: "label", title: event.text }, event.text, away.length > 0 && h("i", {}, ` with ${away.join(", ")}`));
    // A text that does not fit to the right of its lane begins further left.
    const room = this.width - low - 16;
    const wide = event.text.length * 9 < room ? 0 : widest([label.textContent ?? ""], LABEL) + 20;
    const left = Math.max(GUTTER, Math.min(low + 8, this.width - wide - 8));
    label.style.left = `${left}px`;
    label.style.maxWidth = `${this.width - left - 8}px`;
    return label;
  }

  private reveal(): void {
    if (this.selected === 0) {
      this.scroller.scrollTop = 0;
      return;
    }
    const top = (this.rowOf[this.selected - 1] ?? 0) * ROW;
    const { scrollTop, clientHeight } = this.scroller;
    const room = clientHeight - this.head.offsetHeight;
    if (top < scrollTop + ROW) this.scroller.scrollTop = Math.max(0, top - 2 * ROW);
    else if (top + 3 * ROW > scrollTop + room) this.scroller.scrollTop = top + 3 * ROW - room;
    // Print only some of the lanes if they do not fit.
    const event = this.events[this.rowOf[this.selected - 1] ?? 0];
    const { at } = event ? this.places(event) : { at: [] };
    if (at.length === 0) return;
    const { scrollLeft, clientWidth } = this.scroller;
    const [low, high] = [Math.min(...at) - GUTTER, Math.max(...at) + GUTTER];
    if (low < scrollLeft) this.scroller.scrollLeft = Math.max(0, low);
    else if (high > scrollLeft + clientWidth) this.scroller.scrollLeft = Math.min(low, high - clientWidth);
  }

  private key(e: KeyboardEvent): void {
    const jumps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };
    const by = jumps[e.key];
    if (by === undefined || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    this.element.dispatchEvent(new CustomEvent("go", { detail: by }));
  }

  /** Draws for paper: a range of rows around the selected one, as wide as a page. */
  print(on: boolean): void {
    this.element.classList.toggle("printing", on);
    this.paper?.remove();
    (this.end as Element | null)?.remove();
    this.paper = this.end = null;
    if (!on) {
      this.note.hidden = true;
      this.layout();
      return;
    }
    this.layout(PAPER);
    const middle = this.rowOf[Math.max(0, this.selected - 1)] ?? 0;
    const first = this.events.length <= MOST_PRINTED ? 0 : Math.max(0, Math.min(middle - MOST_PRINTED / 2, this.events.length - MOST_PRINTED));
    const last = Math.min(this.events.length, first + MOST_PRINTED);
    this.drawn.forEach((row) => row.remove());
    this.drawn.clear();
    // A table head is repeated on each sheet of paper.
    const line = (inside: Node) => h("tr", {}, h("td", {}, inside));
    const rows = Array.from({ length: last - first }, (_, i) => line(this.row(first + i)));
    this.paper = h("table", { class: "paper" }, h("thead", {}, line(this.head.cloneNode(true))), h("tbody", {}, ...rows));
    // The note about the end is below the last step.
    const end = last === this.events.length ? this.tail.cloneNode(true) : null;
    this.element.prepend(this.paper, ...(end ? [end] : []));
    this.end = end;
    if (last - first < this.events.length) {
      const steps = [this.events[first]?.step ?? 0, this.events[last - 1]?.step ?? 0].map((n) => n + 1);
      this.note.textContent = `Printed: steps ${steps.join(" to ")} of ${this.run.steps.length}. The page has all of them.`;
      this.note.hidden = false;
    }
  }
}
