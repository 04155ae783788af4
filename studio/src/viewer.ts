// Viewer of runs: one run, or two to compare, with common tools: hidden steps, lanes, search.

import { fresh, h, plural } from "./dom";
import { Pane } from "./pane";
import { difference, type Run } from "./run";

/** Interface for other parts of the page. */
export class Viewer {
  readonly element = h("section", { class: "viewer", "aria-label": "Run" });
  private panes: Pane[] = [];
  private order: number[] = [];
  private off = new Set<number>();
  private found: number[] = [];
  private readonly hidden = h("input", { type: "checkbox", checked: true });
  private readonly together = h("input", { type: "checkbox", checked: true });
  private readonly query = h("input", { type: "search", placeholder: "Search steps", "aria-label": "Search steps" });
  private readonly hits = h("output", { class: "hits", "aria-live": "polite" });
  private readonly lanes = h("details", { class: "menu" });
  private readonly other = h("select", { "aria-label": "Compare with" });
  private readonly compared = h("div", { class: "compared" });
  private readonly row = h("div", { class: "panes" });

  /** `all`: the runs of the page, for comparisons. */
  constructor(private readonly all: () => Run[]) {
    this.hidden.addEventListener("change", () => this.refresh());
    this.query.addEventListener("input", () => this.search());
    this.query.addEventListener("keydown", (e) => e.key === "Enter" && this.hit(e.shiftKey ? -1 : 1));
    this.other.addEventListener("change", () => this.compare(this.all()[Number(this.other.value)]));
    const arrow = (text: string, name: string, by: number) => h("button", { type: "button", title: name, "aria-label": name, click: () => this.hit(by) }, text);
    const bar = h(
      "div",
      { class: "toolbar screen", role: "toolbar", "aria-label": "Run tools" },
      h("label", {}, this.hidden, " Hidden steps"),
      this.lanes,
      h("span", { class: "search" }, this.query, arrow("↑", "Previous match", -1), arrow("↓", "Next match", 1), this.hits),
      h("label", { class: "compare" }, "Compare with ", this.other),
    );
    this.element.append(bar, this.compared, this.row);
    // The menu of lanes closes like other menus.
    document.addEventListener("click", (e) => !e.composedPath().includes(this.lanes) && this.lanes.removeAttribute("open"));
    this.lanes.addEventListener("keydown", (e) => {
      if (e.key !== "Escape") return;
      this.lanes.removeAttribute("open");
      this.lanes.querySelector("summary")?.focus();
    });
  }

  show(run: Run): void {
    this.order = run.lanes.map((_, i) => i);
    this.off = new Set(this.order.filter((l) => !run.used[l]));
    if (this.off.size === this.order.length) this.off.clear();
    this.panes = [this.pane(run)];
    // A counterexample is decided by its last step; witnesses are read from the start.
    if (run.linear && run.kind !== "witness") this.panes[0]?.begin(run.steps.length);
    this.place();
    const others = this.all();
    const options = others.map((r, i) => (r === run ? null : h("option", { value: i }, r.title))).filter((o) => o !== null);
    this.other.replaceChildren(h("option", { value: -1 }, "no other"), ...options);
    (this.other.parentElement as HTMLElement).hidden = options.length === 0;
    this.menu();
    this.refresh();
    this.search();
  }

  focusSearch(): void {
    this.query.focus();
    this.query.select();
  }

  toggleHidden(): void {
    this.hidden.checked = !this.hidden.checked;
    this.refresh();
  }

  by(steps: number): void {
    this.panes[0]?.by(steps);
  }

  hit(by: number): void {
    const pane = this.panes[0];
    if (!pane || this.found.length === 0) return;
    const next = by > 0 ? this.found.find((n) => n > pane.after) : this.found.findLast((n) => n < pane.after);
    pane.go(next ?? (by > 0 ? this.found[0] : this.found.at(-1)) ?? 0);
    this.tellHits();
  }

  print(on: boolean): void {
    this.panes.forEach((p) => p.print(on));
  }

  private pane(run: Run): Pane {
    return new Pane(run, (lane, to) => this.move(lane, to));
  }

  private place(): void {
    this.row.className = this.panes.length > 1 ? "panes is-double" : "panes";
    this.row.replaceChildren(...this.panes.map((p) => p.element));
  }

  private compare(run: Run | undefined): void {
    const [first] = this.panes;
    if (!first) return;
    this.panes = run ? [first, this.pane(run)] : [first];
    this.place();
    this.compared.replaceChildren();
    first.moved = () => this.tellHits();
    const second = this.panes[1];
    if (run && second) {
      first.moved = (after) => {
        this.tellHits();
        if (this.together.checked) second.go(after, false);
      };
      second.moved = (after) => this.together.checked && first.go(after, false);
      this.compared.append(this.verdictOfComparison(first, second), h("label", {}, this.together, " Move together"));
    }
    this.refresh();
    this.search();
  }

  private verdictOfComparison(first: Pane, second: Pane): HTMLElement {
    const [a, b] = [first.run, second.run];
    if (!a.linear || !b.linear) return h("span", {}, "Branching runs are shown side by side, but not compared.");
    const at = difference(a, b);
    if (at === null && a.steps.length === b.steps.length) return h("span", {}, `The same actions in all ${plural(a.steps.length, "step")}.`);
    const after = at ?? Math.min(a.steps.length, b.steps.length);
    const go = h("button", { type: "button" }, `step ${after + 1}`);
    go.addEventListener("click", () => {
      first.go(after + 1, false);
      second.go(after + 1, false);
    });
    return h("span", {}, after === 0 ? "They differ from " : `The same actions up to step ${after}; they differ from `, go, " on.");
  }

  /** Returns the lanes of a pane's run in the order chosen for the first run, by name. */
  private lanesOf(run: Run): number[] {
    const first = this.panes[0]?.run;
    if (!first) return [];
    if (run === first) return this.order.filter((l) => !this.off.has(l));
    const rank = new Map(this.order.map((l, i) => [first.lanes[l], i]));
    const off = new Set([...this.off].map((l) => first.lanes[l]));
    const own = run.lanes.map((_, i) => i);
    const shown = own.filter((l) => run.used[l] || (rank.has(run.lanes[l]) && !off.has(run.lanes[l])));
    const place = (l: number) => rank.get(run.lanes[l]) ?? rank.size + l;
    return (shown.length > 0 ? shown : own).sort((x, y) => place(x) - place(y));
  }

  private refresh(): void {
    for (const pane of this.panes) pane.show({ lanes: this.lanesOf(pane.run), hidden: this.hidden.checked });
  }

  private move(lane: number, to: number): void {
    const shown = this.order.filter((l) => !this.off.has(l));
    const target = shown[to];
    if (target === undefined || target === lane) return;
    const forward = this.order.indexOf(lane) < this.order.indexOf(target);
    this.order = this.order.filter((l) => l !== lane);
    this.order.splice(this.order.indexOf(target) + (forward ? 1 : 0), 0, lane);
    this.menu();
    this.refresh();
  }

  private menu(focus?: [number, string]): void {
    const run = this.panes[0]?.run;
    if (!run) return;
    const shown = this.order.length - this.off.size;
    const items = this.order.map((lane, at) => {
      const id = fresh("lane");
      const box = h("input", { type: "checkbox", id, checked: !this.off.has(lane) });
      box.addEventListener("change", () => {
        if (box.checked) this.off.delete(lane);
        else if (this.order.length - this.off.size > 1) this.off.add(lane);
        else box.checked = true;
        this.menu([lane, "input"]);
        this.refresh();
      });
      const swap = (by: number, word: string, sign: string) => {
        const button = h("button", { type: "button", class: word, "aria-label": `Move ${run.lanes[lane]} ${word}`, disabled: this.order[at + by] === undefined }, sign);
        button.addEventListener("click", () => {
          [this.order[at], this.order[at + by]] = [this.order[at + by] ?? lane, lane];
          this.menu([lane, `.${word}`]);
          this.refresh();
        });
        return button;
      };
      return h("li", { "data-lane": lane }, box, h("label", { for: id }, run.lanes[lane] ?? ""), swap(-1, "left", "←"), swap(1, "right", "→"));
    });
    const open = this.lanes.open;
    this.lanes.replaceChildren(h("summary", {}, `Lanes ${shown} of ${this.order.length}`), h("ul", {}, ...items));
    this.lanes.open = open;
    if (!focus) return;
    // The list is new: restore the focus, or move it next to a disabled button.
    const item = this.lanes.querySelector(`[data-lane="${focus[0]}"]`);
    (item?.querySelector<HTMLElement>(`${focus[1]}:not(:disabled)`) ?? item?.querySelector<HTMLElement>("button:not(:disabled)"))?.focus();
  }

  private search(): void {
    const text = this.query.value.trim();
    this.panes.forEach((p, i) => {
      const found = text === "" ? [] : p.run.find(text);
      p.mark(found);
      if (i === 0) this.found = found;
    });
    this.tellHits();
  }

  private tellHits(): void {
    const at = this.found.indexOf(this.panes[0]?.after ?? -1);
    const many = this.found.length;
    this.hits.textContent = this.query.value.trim() === "" ? "" : many === 0 ? "no match" : at >= 0 ? `${at + 1} of ${many}` : plural(many, "match");
  }
}
