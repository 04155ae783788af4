// Step-by-step simulator: the current state, its enabled steps, and all visited paths as a tree.

import { h, plural, saveFile } from "../src/dom";
import { toSource } from "../src/places";
import type { Step } from "../src/types";
import { ask, leave, walk, type Hello, type ModelState } from "./server";

/** A node of the tree: a state, and the step to it. */
interface Place {
  state: ModelState;
  step: Step | null;
  before: Place | null;
  after: Place[];
  depth: number;
}

const same = (a: unknown, b: unknown) => JSON.stringify(a ?? null) === JSON.stringify(b ?? null);
/** A step's action and changes. */
const did = (a: Step, b: Step) => a.action === b.action && same(a.changed, b.changed) && same(a.meaning, b.meaning) && same(a.hidden, b.hidden);

export function stepTitle(step: Step): string {
  return step.hidden.length > 0 ? `${step.action} (${step.hidden.join(", ")})` : step.action;
}

export class WalkPanel {
  readonly element = h("div", { class: "walk" });
  private hello: Hello | null = null;
  private here: Place | null = null;
  private root: Place | null = null;
  private query = "";
  /** The model and its parameters, for saved walks. */
  private about: { model: string; parameters: Record<string, string> } = { model: "", parameters: {} };
  /** True while a random walk goes on. */
  private random = false;
  /** Answers arrive in the order of the requests. */
  private busy: Promise<unknown> = Promise.resolve();

  /** `drawPath`: callback to draw the path to the current state; `load`: callback to start the walk of a file; `moved`: callback after each step. */
  constructor(
    private readonly drawPath: () => void,
    private readonly load: (file: File) => void,
    private readonly moved: () => void,
    private readonly failed: (why: unknown) => void,
  ) {
    this.element.append(h("p", { class: "quiet" }, "Walk starts at the initial state of the model; each step that is enabled can be taken."), h("div", { class: "toolbar" }, this.loader()));
    this.element.addEventListener("keydown", (e) => {
      if ((e.target as HTMLElement).tagName === "INPUT") return;
      const then = { ArrowLeft: () => this.back(), ArrowRight: () => this.forward() }[e.key];
      if (!then) return;
      e.preventDefault();
      then();
    });
  }

  /** Number of the current simulator, for further requests about the same model. */
  get walk(): Hello | null {
    return this.hello;
  }

  async start(model: string, defines: Record<string, string>): Promise<Hello> {
    const old = this.hello;
    this.hello = null;
    this.random = false;
    this.about = { model, parameters: defines };
    if (old) await leave(old.walk);
    const hello = await walk(model, defines);
    this.hello = hello;
    this.root = { state: hello.first, step: null, before: null, after: [], depth: 0 };
    this.here = this.root;
    this.draw();
    return hello;
  }

  /** Replays the steps of a run from the initial state. Returns the number of steps that the model has. */
  async replay(steps: Step[]): Promise<number> {
    this.here = this.root;
    for (const [i, step] of steps.entries()) {
      const found = this.matching(step) ?? (i === 0 ? await this.afterStart(step) : undefined);
      if (!found) {
        this.moved();
        return i;
      }
      await this.to(found, false);
    }
    this.draw();
    this.moved();
    return steps.length;
  }

  /** Returns the enabled step that is a step of a run. Runs of Murphi models name rules by their texts, so that the changes decide. */
  private matching(step: Step): Step | undefined {
    const enabled = this.here?.state.steps ?? [];
    const exact = enabled.find((s) => did(s, step));
    const changed = enabled.filter((s) => same(s.changed, step.changed));
    const alike = changed.filter((s) => s.action.replace(/\(.*/, "") === step.action.replace(/\(.*/, ""));
    return exact ?? (alike.length === 1 ? alike[0] : changed.length === 1 ? changed[0] : undefined);
  }

  /** Takes the step to a start state after which a run begins, of a model with several. */
  private async afterStart(step: Step): Promise<Step | undefined> {
    for (const start of this.root?.state.steps.filter((s) => s.action.startsWith("startstate")) ?? []) {
      this.here = this.root;
      await this.to(start, false);
      const found = this.matching(step);
      if (found) return found;
    }
    return undefined;
  }

  /** Takes random steps, until there is none. */
  private async wander(most: number): Promise<void> {
    this.random = true;
    for (let i = 0; i < most && this.random; i++) {
      const steps = this.here?.state.steps ?? [];
      const step = steps[Math.floor(Math.random() * steps.length)];
      if (!step) break;
      await this.to(step);
      // A walk that can be followed by eye.
      await new Promise((go) => setTimeout(go, most > 1 ? 120 : 0));
    }
    this.random = false;
    this.draw();
  }

  /** The walk to the current state as a file: the form of evidence, with the model and its parameters. */
  saved(): { model: string; parameters: Record<string, string>; steps: Step[] } {
    const steps: Step[] = [];
    for (let place = this.here; place?.step; place = place.before) steps.unshift(place.step);
    return { ...this.about, steps };
  }

  private save(): void {
    const name = this.about.model.replace(/^.*\//, "").replace(/\.\w+$/, "");
    saveFile(new Blob([JSON.stringify(this.saved(), null, 1)], { type: "application/json" }), `${name || "model"}-walk.json`);
  }

  /** A button that loads the walk, or the evidence, of a file. */
  private loader(): HTMLElement {
    const file = h("input", { type: "file", accept: ".json,application/json", class: "unseen", "aria-label": "File with a walk", tabindex: -1 });
    file.addEventListener("change", () => {
      const [one] = file.files ?? [];
      if (one) this.load(one);
      file.value = "";
    });
    return h("span", {}, h("button", { type: "button", title: "Follow the steps of a saved walk, or of evidence as JSON", click: () => file.click() }, "Load"), file);
  }

  /** The changes that a step would make, from the values of the current state. */
  private preview(step: Step, hello: Hello): HTMLElement | null {
    const all = Object.entries({ ...step.changed, ...(step.meaning ?? {}) });
    const parts = all.slice(0, 4).flatMap(([name, value], i) => {
      const at = hello.parameters.findIndex((p) => p.name === name);
      const old = at < 0 ? null : (this.here?.state.values[at] ?? null);
      return [i > 0 ? "; " : "", `${name}: `, old !== null && h("del", {}, old), old !== null && " ", value === null ? h("i", {}, "no meaning") : h("ins", {}, value)];
    });
    if (parts.length === 0) return null;
    return h("span", { class: "preview" }, ...parts, all.length > 4 ? `; ${all.length - 4} more` : "");
  }

  /** Labels and states from the initial state to the current one. */
  get path(): { action: string; to: number }[] {
    const path: { action: string; to: number }[] = [];
    for (let place = this.here; place?.step; place = place.before) path.unshift({ action: place.step.action, to: place.state.state });
    return path;
  }

  /** Goes to a state by known labels and states from the initial one. */
  async along(way: { action: string; to: number }[]): Promise<void> {
    this.here = this.root;
    for (const { action, to } of way) {
      const found = this.here?.state.steps.find((s) => s.to === to && s.action === action);
      if (!found) break;
      await this.to(found, false);
    }
    this.draw();
    this.moved();
  }

  private async to(step: Step, draw = true): Promise<void> {
    const [from, hello] = [this.here, this.hello];
    if (!from || !hello) return;
    let next = from.after.find((p) => p.step?.to === step.to && p.step.action === step.action);
    if (!next) {
      const answer = this.busy.then(() => ask<ModelState>(hello.walk, { state: step.to }));
      this.busy = answer.catch(() => undefined);
      const state = await answer;
      next = { state, step, before: from, after: [], depth: from.depth + 1 };
      from.after.push(next);
    }
    this.here = next;
    if (!draw) return;
    this.draw();
    this.moved();
  }

  private back(): void {
    if (this.here?.before) this.go(this.here.before);
  }

  private forward(): void {
    const next = this.here?.after.at(-1);
    if (next) this.go(next);
  }

  private go(place: Place): void {
    this.here = place;
    this.draw();
  }

  /** The values of a node, by component; changed ones are marked, with the old value. */
  private values(place: Place, hello: Hello): HTMLElement {
    const rows: HTMLElement[] = [];
    let component = -1;
    hello.parameters.forEach((p, i) => {
      const value = place.state.values[i] ?? null;
      const old = place.before?.state.values[i] ?? null;
      if (value === null && (place.before === null || old === null)) return;
      if (p.component !== component && hello.components.length > 1) rows.push(h("tr", {}, h("th", { scope: "rowgroup", colspan: 2, class: "component" }, hello.components[p.component] ?? "")));
      component = p.component;
      const changed = place.before !== null && value !== old;
      const was = changed && old !== null ? [h("del", {}, old), " "] : [];
      const now = value === null ? h("span", { class: "quiet" }, "no meaning here") : changed ? h("ins", {}, value) : value;
      rows.push(h("tr", { class: changed ? "is-changed" : null }, h("th", { scope: "row" }, p.name), h("td", {}, ...was, now)));
    });
    return h("table", { class: "values" }, h("tbody", {}, ...rows));
  }

  private tree(): HTMLElement {
    const lines: HTMLElement[] = [];
    // The first path stays in its column; branches are indented.
    const follow = (start: Place, indent: number) => {
      for (let place: Place | undefined = start; place; ) {
        const at: Place = place;
        const [first, ...others] = at.after;
        const text = at.step ? `${at.depth}. ${stepTitle(at.step)}` : "initial state";
        const button = h("button", { type: "button", "aria-current": at === this.here ? "step" : null, click: () => this.go(at) }, text);
        lines.push(h("li", { class: `in-${Math.min(indent, 12)}` }, button));
        others.forEach((p) => follow(p, indent + 1));
        place = first;
      }
    };
    if (this.root) follow(this.root, 0);
    return h("ol", { class: "ways", "aria-label": "History" }, ...lines);
  }

  private draw(): void {
    const [hello, here] = [this.hello, this.here];
    if (!hello || !here) return;
    const title = here.step ? `After step ${here.depth}: ${stepTitle(here.step)}` : "Initial state";
    const steps = h("ol", { class: "steps" });
    const list = () => {
      const fits = (s: Step) => stepTitle(s).includes(this.query) || s.parts.some((p) => p.from.some((f) => f.component.includes(this.query)));
      const shown = here.state.steps.filter(fits);
      const items = shown.slice(0, 500).map((step) => {
        const taken = here.after.some((p) => p.step?.to === step.to && p.step.action === step.action);
        const by = [...new Set(step.parts.flatMap((p) => p.from.map((f) => f.component)))].join(", ");
        const button = h("button", { type: "button", class: taken ? "is-taken" : null, click: () => void this.to(step).catch(this.failed) }, stepTitle(step));
        const part = step.parts.flatMap((p) => p.from)[0];
        return h("li", {}, button, by !== "" && h("span", { class: "quiet" }, ` ${by}`), " ", part ? toSource(part.component, part.action) : null, this.preview(step, hello));
      });
      if (shown.length > 500) items.push(h("li", { class: "quiet" }, `and ${shown.length - 500} more: search`));
      steps.replaceChildren(...items);
    };
    const search = h("input", { type: "search", placeholder: "Action or component", "aria-label": "Search enabled steps", value: this.query });
    search.addEventListener("input", () => {
      this.query = search.value;
      list();
    });
    list();
    const n = here.state.steps.length;
    const bar = h(
      "div",
      { class: "toolbar", role: "toolbar", "aria-label": "Walk" },
      h("button", { type: "button", disabled: !here.before, click: () => this.back() }, "← Back"),
      h("button", { type: "button", disabled: here.after.length === 0, click: () => this.forward() }, "Forward →"),
      h("button", { type: "button", disabled: !here.before, click: () => this.root && this.go(this.root) }, "Initial state"),
      h("button", { type: "button", disabled: !here.before, title: "Show the path to this state in the picture of all states", click: this.drawPath }, "Draw path"),
      h("button", { type: "button", disabled: n === 0, title: "Take one of the enabled steps", click: () => void this.wander(1).catch(this.failed) }, "Random step"),
      this.random ? h("button", { type: "button", click: () => (this.random = false) }, "Stop") : h("button", { type: "button", disabled: n === 0, title: "Take 20 random steps, one after the other", click: () => void this.wander(20).catch(this.failed) }, "Random run"),
      h("button", { type: "button", disabled: !here.before, title: "Save the steps to this state as a file", click: () => this.save() }, "Save"),
      this.loader(),
      n > 6 && search,
    );
    this.element.replaceChildren(
      h("p", { class: "quiet" }, hello.command),
      bar,
      h("h3", { class: "here", "aria-live": "polite" }, title),
      n === 0 ? h("p", { class: "end" }, "A deadlock: there is no step.") : h("p", { class: "quiet" }, `${plural(n, "step")} enabled`),
      steps,
      h("div", { class: "beside" }, h("div", {}, h("h4", {}, "State"), this.values(here, hello)), h("div", {}, h("h4", {}, "History"), this.tree())),
    );
    this.element.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
  }
}
