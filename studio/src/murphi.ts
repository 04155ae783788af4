// Exploration of a Murphi model: its verdict, the failed claims with their places, and the shortest
// run to the first failure.

import { bytes, count, facts, h, plural, seconds, verdict } from "./dom";
import { notes } from "./formula";
import { place } from "./places";
import { Run } from "./run";
import type { Evidence, Explore, Murphi, Step } from "./types";
import type { Viewer } from "./viewer";

export const isMurphi = (value: Explore | Murphi): value is Murphi => "rules" in value && "failed" in value;

/** Words for the verdicts of a Murphi model. */
const WORDS: Record<string, string> = {
  ok: "no failure: every claim of the model holds",
  invariant: "an invariant is violated",
  assertion: "an assertion fails",
  deadlock: "a deadlock is reachable",
  error: "a rule fails",
  liveness: "a liveness claim fails",
  cover: "a covered state is not reached",
  unknown: "unknown",
};

/** Returns the label of a rule: `turn (i: 1)` is `turn(1)`. */
function label(rule: string): string {
  const [, name = rule, values] = /^(.*?)(?: \((.*)\))?$/.exec(rule) ?? [];
  const word = name.replace(/\W+/g, "_");
  const list = (values ?? "").split(", ").map((v) => v.replace(/^.*?: /, "")).filter(Boolean);
  return list.length > 0 ? `${word}(${list.join(", ")})` : word;
}

/** Returns the run to the failure as evidence: the start state, then a step for each rule. */
export function murphiRun({ path, failed, model }: Murphi): Evidence | null {
  const [start, ...rules] = path ?? [];
  if (!start) return null;
  const parameters = Object.entries(start.changes).map(([name, initial]) => ({ name, initial, component: name.replace(/[[.].*$/, "") }));
  const steps = rules.map(({ rule, changes }, at): Step => {
    const action = label(rule);
    const by = [...new Set(Object.keys(changes).map((name) => name.replace(/[[.].*$/, "")))];
    return { from: at, to: at + 1, action, hidden: [], changed: changes, parts: [{ action, hidden: false, from: by.map((component) => ({ component, action: `changes ${component}` })) }] };
  });
  const components = [...new Set(parameters.map((p) => p.component))];
  return { verdict: "false", kind: "counterexample", linear: true, back_to: null, components, parameters, steps, ...(model ? { model } : {}), formula: failed[0]?.message ?? "" };
}

export function murphiView(murphi: Murphi, viewer: Viewer, runs: Run[]): HTMLElement {
  const word = murphi.verdict === "ok" ? "true" : murphi.verdict === "unknown" ? "unknown" : "false";
  const failures = murphi.failed.map((f) => h("li", {}, h("strong", {}, f.message), f.line === undefined ? "" : h("span", {}, " ", place(`${murphi.model ?? "model"}:${f.line}:${f.column ?? 1}`, null, f.line, f.column ?? 1))));
  const evidence = murphiRun(murphi);
  const out = h("div", {}, h("p", { class: "conclusion" }, verdict(word, WORDS[murphi.verdict] ?? murphi.verdict), murphi.reason ? `: ${murphi.reason}` : ""), failures.length > 0 ? h("ul", { class: "failures" }, ...failures) : null);
  if (evidence) {
    const run = new Run(`run to the failure: ${evidence.formula}`, "counterexample", evidence);
    runs.push(run);
    out.append(viewer.element);
    queueMicrotask(() => viewer.show(run));
  }
  const about = facts([
    ["States", count(murphi.states)],
    ["Rules fired", count(murphi.rules)],
    ["Depth", plural(murphi.depth, "step")],
    ["Time", seconds(murphi.seconds)],
    ["Memory", bytes(murphi.peak_memory_bytes)],
    ["Stopped", murphi.stop === "complete" ? "" : murphi.stop],
  ]);
  out.append(about, ...[notes(murphi.warnings ?? [])].filter((n) => n !== null));
  return out;
}
