// Values of all parameters after a step, by component, with marked changes.

import { h } from "./dom";
import { place, toSource } from "./places";
import type { Run } from "./run";
import type { Ending } from "./types";

/** Explains why a run ends: what each component waits for, and why it does not get it. */
export function endingView(ending: Ending): HTMLElement {
  const what = { terminated: "The system has terminated.", finished: "The system has finished: all other components are idle.", hang: "The system is in a deadlock: no component can continue." };
  const components = ending.components.map((c) => {
    const offers = c.offers.map((o) => h("li", {}, "offers ", h("code", {}, o.action), o.why_not.length > 0 && h("span", { class: "quiet" }, `: ${o.why_not.join("; ")}`)));
    const falses = c.conditions_false.map((f) => h("li", {}, "condition false: ", h("code", {}, f.action), f.line !== null && h("span", {}, " ", place(`line ${f.line}`, null, f.line))));
    const line = c.line === null ? null : h("span", {}, " ", place(`line ${c.line}`, null, c.line));
    return h("li", {}, h("strong", {}, c.component || "model"), ` ${c.posture}`, line, h("ul", {}, ...offers, ...falses));
  });
  return h("div", { class: "ending" }, h("h5", {}, what[ending.kind]), h("ul", {}, ...components));
}

export class StatePanel {
  readonly element: HTMLElement;
  private readonly heading = h("h4", { "aria-live": "polite" });
  private readonly body = h("div", { class: "state-body" });
  private onlyChanges = false;
  private shown: [number, number] = [0, 0];

  constructor(
    private readonly run: Run,
    private readonly select: (after: number) => void,
  ) {
    const only = h("input", { type: "checkbox" });
    only.addEventListener("change", () => {
      this.onlyChanges = only.checked;
      this.show(...this.shown);
    });
    this.element = h("div", { class: "state" }, this.heading, h("label", { class: "screen" }, only, " Only what changed"), this.body);
  }

  /** Shows the state after a number of steps, and the changes from another number. */
  show(after: number, before: number): void {
    this.shown = [after, before];
    const step = this.run.steps[after - 1];
    this.heading.textContent = after === 0 ? "Initial state" : `After step ${after} of ${this.run.steps.length}: ${step?.action}`;
    const parts: (HTMLElement | null)[] = [this.behind(after)];
    const now = this.run.values(after);
    const then = after === 0 ? now : this.run.values(before);
    let groups = 0;
    for (const component of new Set(this.run.parameters.map((p) => p.component))) {
      const rows = this.run.parameters.flatMap((p, i) => {
        if (p.component !== component) return [];
        const [old, value] = [then[i] ?? null, now[i] ?? null];
        const changed = old !== value;
        if (this.onlyChanges && !changed) return [];
        if (value === null && !changed) return [];
        return [this.row(p.name === `position of ${component}` ? "position" : p.name, old, value, changed)];
      });
      if (rows.length === 0) continue;
      groups += 1;
      parts.push(h("table", { class: "values" }, h("caption", {}, component || "model"), h("tbody", {}, ...rows)));
    }
    if (groups === 0) parts.push(h("p", { class: "quiet" }, after === 0 ? "No parameter has a value." : "No parameter changes."));
    parts.push(this.goesOn(after), after === this.run.steps.length && this.run.ending ? endingView(this.run.ending) : null);
    this.body.replaceChildren(...parts.filter((p): p is HTMLElement => p !== null));
  }

  private row(name: string, old: string | null, value: string | null, changed: boolean): HTMLElement {
    const now = value === null ? h("i", {}, "no meaning here") : h("span", {}, value);
    const cell = changed
      ? h("td", {}, old !== null && h("del", {}, old), old !== null && " ", h("ins", {}, now))
      : h("td", {}, now);
    return h("tr", { class: changed ? "is-changed" : null }, h("th", { scope: "row" }, name), cell);
  }

  /** Returns the actions of a step, if there are more than the visible one. */
  private behind(after: number): HTMLElement | null {
    const parts = this.run.steps[after - 1]?.parts ?? [];
    const shown = parts.filter((p) => p.hidden || p.from.length > 0);
    if (shown.length === 0) return null;
    const items = shown.map((p) => {
      const from = p.from.flatMap((f, i) => [i > 0 ? ", " : " ", h("span", { class: "quiet" }, f.action.startsWith("changes ") ? f.action : `${f.component || "model"} performs ${f.action}`), " ", f.action.startsWith("changes ") ? null : toSource(f.component, f.action)]);
      return h("li", {}, h("code", {}, p.action), p.hidden && h("span", { class: "tag" }, "hidden"), ...from);
    });
    return h("ul", { class: "behind", "aria-label": "Actions behind this step" }, ...items);
  }

  private goesOn(after: number): HTMLElement | null {
    const next = this.run.following(after);
    if (next.length === 0) return null;
    const buttons = next.slice(0, 30).map((n) => {
      const button = h("button", { type: "button" }, this.run.steps[n - 1]?.action ?? "");
      button.addEventListener("click", () => this.select(n));
      return button;
    });
    const more = next.length > 30 ? ` and ${next.length - 30} more` : "";
    return h("p", { class: "goes-on" }, "The evidence continues with ", ...buttons.flatMap((b) => [b, " "]), more);
  }
}
