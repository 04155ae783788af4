// One run on a page: slider, chart and state, with a common position.

import { count, h, plural } from "./dom";
import { Chart, type View } from "./chart";
import type { Run } from "./run";
import { StatePanel } from "./state";

/** Maximum number of steps with printed changes. */
const MOST_CHANGES = 200;

/** A table with the changes of each step of a path; none if it branches, is long, or changes nothing. */
function changes(run: Run): HTMLElement | null {
  if (!run.linear || run.steps.length > MOST_CHANGES) return null;
  const rows: HTMLElement[] = [];
  let before = run.values(0);
  run.steps.forEach((step, at) => {
    const after = run.values(at + 1);
    const parts = run.parameters.flatMap((p, i) => {
      const [old, value] = [before[i] ?? null, after[i] ?? null];
      // On paper, it does not matter that a value loses its meaning.
      if (old === value || value === null) return [];
      const name = run.lanes.length > 1 && p.component !== "" && !p.name.endsWith(` of ${p.component}`) ? `${p.component}: ${p.name}` : p.name;
      return [h("li", {}, `${name}: `, old !== null && h("del", {}, old), old !== null && " ", h("ins", {}, value))];
    });
    before = after;
    if (parts.length > 0) rows.push(h("tr", {}, h("th", { scope: "row" }, at + 1), h("td", {}, step.action), h("td", {}, h("ul", {}, ...parts))));
  });
  if (rows.length === 0) return null;
  const head = h("thead", {}, h("tr", {}, ...["Step", "Action", "Changes"].map((c) => h("th", { scope: "col" }, c))));
  return h("table", { class: "changes" }, h("caption", {}, "What each step changes"), head, h("tbody", {}, ...rows));
}

export class Pane {
  readonly element: HTMLElement;
  /** Called after each move, with the number of steps. */
  moved: (after: number) => void = () => {};
  after = 0;
  private readonly chart: Chart;
  private readonly state: StatePanel;
  private readonly slider = h("input", { type: "range", min: 0, step: 1, value: 0 });
  private readonly place = h("output", {});
  private changes: HTMLElement | null = null;
  /** Possible positions, as numbers of steps. */
  private stops: number[] = [];

  constructor(
    readonly run: Run,
    moveLane: (lane: number, to: number) => void,
  ) {
    this.chart = new Chart(run, (after) => this.go(after), moveLane);
    this.state = new StatePanel(run, (after) => this.go(after));
    this.slider.setAttribute("aria-label", `Step of ${run.title}`);
    this.slider.addEventListener("input", () => this.go(this.stops[Number(this.slider.value)] ?? 0));
    this.chart.element.addEventListener("go", (e) => this.by((e as CustomEvent<number>).detail));
    const button = (text: string, name: string, by: number) => h("button", { type: "button", title: name, "aria-label": name, click: () => this.by(by) }, text);
    const controls = h(
      "div",
      { class: "slider screen" },
      button("|◀", "Initial state", -Infinity),
      button("◀", "Previous step", -1),
      this.slider,
      button("▶", "Next step", 1),
      button("▶|", "Last step", Infinity),
      this.place,
    );
    const title = h("h4", { class: "pane-title" }, run.title);
    this.element = h("div", { class: "pane" }, title, controls, h("div", { class: "pane-body" }, this.chart.element, this.state.element));
  }

  /** Sets the position that is shown first. */
  begin(after: number): void {
    this.after = after;
  }

  show(view: View): void {
    this.stops = [0];
    this.run.steps.forEach((_, at) => (view.hidden || !this.run.isHidden(at) || at + 1 === this.run.steps.length) && this.stops.push(at + 1));
    this.slider.max = String(this.stops.length - 1);
    this.chart.show(view);
    this.go(this.after);
  }

  /** Moves by a number of visible steps. */
  by(steps: number): void {
    const at = this.near(this.after) + steps;
    this.go(this.stops[Math.max(0, Math.min(this.stops.length - 1, at))] ?? 0);
  }

  go(after: number, tell = true): void {
    const at = this.near(Math.max(0, Math.min(this.run.steps.length, after)));
    this.after = this.stops[at] ?? 0;
    this.slider.value = String(at);
    this.slider.setAttribute("aria-valuetext", this.run.say(this.after - 1));
    this.place.textContent = `${count(this.after)} of ${plural(this.run.steps.length, "step")}`;
    this.chart.at(this.after);
    this.state.show(this.after, this.run.linear ? (this.stops[at - 1] ?? 0) : this.run.previous(this.after));
    if (tell) this.moved(this.after);
  }

  mark(steps: number[]): void {
    this.chart.mark(steps);
  }

  /** Paper has no selection: print the changes of each step below the state. */
  print(on: boolean): void {
    this.chart.print(on);
    this.changes?.remove();
    this.changes = on ? changes(this.run) : null;
    if (this.changes) this.element.append(this.changes);
  }

  /** Returns the position at a number of steps, or the next one. */
  private near(after: number): number {
    let [low, high] = [0, this.stops.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.stops[middle] ?? 0) < after) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
