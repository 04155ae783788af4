// A run: steps of evidence become lanes, events for each chart row, and the values after each step.
//
// Values are computed from the initial ones and the changes of each step; every 256th state of a
// path is cached, so that a state costs at most 256 steps. If evidence branches, a state's values
// come from the first path to it.

import type { Ending, Evidence, Parameter, Step } from "./types";

/** An event of a row: a part of a step. */
export interface Event {
  step: number;
  /** True for the first event of its step. */
  first: boolean;
  lanes: number[];
  /** The lane that an arrow points to. */
  receiver: number | null;
  text: string;
  hidden: boolean;
}

export type Values = (string | null)[];

const EVERY = 256;

export class Run {
  readonly lanes: string[];
  /** Participating lanes of an event. */
  readonly used: boolean[];
  readonly events: Event[] = [];
  readonly parameters: Parameter[];
  readonly steps: Step[];
  readonly backTo: number | null;
  readonly linear: boolean;
  readonly ending: Ending | undefined;
  private readonly index = new Map<string, number>();
  private readonly stored: Values[] = [];
  /** The step before each step of branching evidence; -1 before the first. */
  private readonly before: Int32Array | null;
  private texts: string[] | null = null;

  constructor(readonly title: string, readonly kind: string, evidence: Evidence, readonly leftOut = 0) {
    this.steps = evidence.steps;
    this.backTo = evidence.back_to;
    this.linear = evidence.linear;
    this.ending = evidence.ending;
    this.parameters = parameters(evidence);
    this.parameters.forEach((p, i) => this.index.set(p.name, i));
    const names = new Map<string, number>();
    const lane = (name: string): number => {
      let at = names.get(name);
      if (at === undefined) {
        at = names.size;
        names.set(name, at);
      }
      return at;
    };
    evidence.components.forEach((c) => lane(c || "model"));
    this.parameters.forEach((p) => lane(p.component || "model"));
    if (names.size === 0) lane("model");
    this.steps.forEach((step, at) => this.tell(step, at, lane));
    this.lanes = [...names.keys()];
    this.used = this.lanes.map(() => this.ending !== undefined);
    for (const event of this.events) event.lanes.forEach((l) => (this.used[l] = true));
    this.before = this.linear ? null : predecessors(this.steps);
  }

  private tell(step: Step, at: number, lane: (name: string) => number): void {
    if (step.parts.length === 0) {
      this.events.push({ step: at, first: true, lanes: [0], receiver: null, text: step.action, hidden: step.action === "tau" });
      return;
    }
    step.parts.forEach((part, i) => {
      const lanes = [...new Set(part.from.map((f) => lane(f.component || "model")))];
      if (lanes.length === 0) lanes.push(0);
      const receiver = part.receiver === undefined || lanes.length !== 2 ? null : lane(part.receiver);
      this.events.push({ step: at, first: i === 0, lanes, receiver, text: part.action, hidden: part.hidden });
    });
  }

  /** True if a step is invisible to an observer. */
  isHidden(step: number): boolean {
    return this.steps[step]?.action === "tau";
  }

  /** Returns the values after a number of steps; for branching evidence, after that step. */
  values(after: number): Values {
    if (this.before) {
      const path: number[] = [];
      for (let at = after - 1; at >= 0; at = this.before[at] ?? -1) path.push(at);
      const values = this.initial();
      path.reverse().forEach((at) => this.apply(values, at));
      return values;
    }
    if (this.stored.length === 0) this.stored.push(this.initial());
    const wanted = Math.floor(after / EVERY);
    for (let have = this.stored.length; have <= wanted; have++) {
      const values = [...(this.stored[have - 1] ?? [])];
      for (let at = (have - 1) * EVERY; at < have * EVERY; at++) this.apply(values, at);
      this.stored.push(values);
    }
    const values = [...(this.stored[wanted] ?? [])];
    for (let at = wanted * EVERY; at < after; at++) this.apply(values, at);
    return values;
  }

  /** Returns the step before a step, as a number of steps: 0 is the initial state. */
  previous(after: number): number {
    return this.before ? (this.before[after - 1] ?? -1) + 1 : Math.max(0, after - 1);
  }

  /** Returns the steps that follow a step of branching evidence. */
  following(after: number): number[] {
    if (!this.before) return [];
    const out: number[] = [];
    this.before.forEach((b, at) => b === after - 1 && out.push(at + 1));
    const to = after === 0 ? 0 : this.steps[after - 1]?.to;
    this.steps.forEach((s, at) => s.from === to && !s.at_once && !out.includes(at + 1) && out.push(at + 1));
    return out.sort((a, b) => a - b);
  }

  private initial(): Values {
    return this.parameters.map((p) => p.initial);
  }

  private apply(values: Values, at: number): void {
    const step = this.steps[at];
    if (!step) return;
    if (step.state) values.fill(null);
    for (const change of [step.state, step.changed, step.meaning]) {
      for (const name in change) values[this.index.get(name) ?? -1] = change[name] ?? null;
    }
  }

  /** Returns the steps that contain a text: in actions, components, or new values. */
  find(text: string): number[] {
    this.texts ??= this.steps.map(searchable);
    const wanted = text.toLowerCase();
    const out: number[] = [];
    this.texts.forEach((t, at) => t.includes(wanted) && out.push(at + 1));
    return out;
  }

  /** Describes a step. */
  say(at: number): string {
    const step = this.steps[at];
    if (!step) return "the initial state";
    const by = [...new Set(step.parts.flatMap((p) => p.from.map((f) => f.component)))].join(" and ");
    const hidden = step.hidden.length > 0 ? `, hidden ${step.hidden.join(" and ")}` : "";
    return `step ${at + 1}: ${step.action}${hidden}${by ? `, by ${by}` : ""}`;
  }
}

function searchable(step: Step): string {
  const parts = step.parts.map((p) => `${p.action} ${p.from.map((f) => `${f.component} ${f.action}`).join(" ")}`);
  const changes = Object.entries(step.changed).map(([name, value]) => `${name} = ${value}`);
  return [step.action, ...parts, ...changes].join("\n").toLowerCase();
}

/** Returns the parameters, or infers them from the steps if the evidence does not list them. */
function parameters(evidence: Evidence): Parameter[] {
  if (evidence.parameters.length > 0) return evidence.parameters;
  const names = new Set<string>();
  for (const step of evidence.steps) {
    for (const change of [step.state, step.changed, step.meaning]) for (const name in change) names.add(name);
  }
  return [...names].map((name) => ({ name, component: "", initial: null }));
}

/** Returns for each step of branching evidence the step that first reached its source. */
function predecessors(steps: Step[]): Int32Array {
  const before = new Int32Array(steps.length).fill(-1);
  // Steps with priority follow the one above; steps without a predecessor come first.
  let prefix = -1;
  while (steps[prefix + 1]?.at_once && steps[prefix + 1]?.from === 0 && steps[prefix + 1]?.to === 0) {
    before[prefix + 1] = prefix;
    prefix += 1;
  }
  const from = new Map<number, number[]>();
  steps.forEach((step, at) => {
    if (at > prefix && step.at_once) before[at] = at - 1;
    else if (at > prefix) (from.get(step.from) ?? from.set(step.from, []).get(step.from))?.push(at);
  });
  const reached = new Set([0]);
  const todo: [number, number][] = [[0, prefix]];
  for (let i = 0; i < todo.length; i++) {
    const [state, by] = todo[i] ?? [0, -1];
    for (const start of from.get(state) ?? []) {
      before[start] = by;
      let last = start;
      while (steps[last + 1]?.at_once) last += 1;
      const to = steps[last]?.to ?? 0;
      if (!reached.has(to)) {
        reached.add(to);
        todo.push([to, last]);
      }
    }
  }
  return before;
}

/** Returns the number of steps after which two runs first differ; null if one is a prefix of the other. */
export function difference(a: Run, b: Run): number | null {
  const most = Math.min(a.steps.length, b.steps.length);
  for (let at = 0; at < most; at++) {
    const [x, y] = [a.steps[at], b.steps[at]];
    if (x?.action !== y?.action || x?.hidden.join("|") !== y?.hidden.join("|")) return at;
  }
  return null;
}
