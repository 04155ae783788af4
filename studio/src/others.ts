// Results other than verdicts of formulas: explorations, litmus tests, conformance, separate
// evidence.

import { bytes, count, facts, h, plural, seconds, verdict } from "./dom";
import { baseName, code, notes, refusal } from "./formula";
import { executionOf } from "./conflict";
import { graphView } from "./graph";
import { Run } from "./run";
import { table } from "./table";
import type { Conform, Conformance, EveryLength, Evidence, Explore, Fault, Litmus, LitmusTest, Meaning, Suite, Verdict } from "./types";
import type { Viewer } from "./viewer";

const list = (words: string[]) => words.join(", ");

export function exploreView(explore: Explore, viewer: Viewer, runs: Run[]): HTMLElement {
  const { ends, reduced } = explore;
  const what = explore.sought === "action" ? `the action ${explore.action}` : `a ${explore.sought}`;
  const about = h(
    "div",
    {},
    facts([
      ["States", count(explore.states)],
      ["Transitions", count(explore.transitions)],
      ["Deadlocks", count(explore.deadlocks)],
      ["Terminated", ends && count(ends.terminated)],
      ["Finished", ends && count(ends.finished)],
      ["Hangs", ends && count(ends.hang)],
      ["Levels", count(explore.levels)],
      ["Rounds", count(explore.rounds)],
      ["Engine", explore.reason ?? explore.engine],
      ["Reduced", reduced && `${count(reduced.states)} states, ${count(reduced.transitions)} transitions (${reduced.equivalence})`],
      ["Terminations", explore.clean_ends && count(explore.clean_ends)],
      ["Time", seconds(explore.seconds)],
      ["Memory", bytes(explore.peak_memory_bytes)],
      ["Stopped", explore.stop === "complete" ? "" : explore.stop],
    ]),
    notes(explore.warnings ?? []),
  );
  if (!explore.ways) return about;
  if (explore.ways.length === 0) {
    const seen = explore.stop === "complete" ? "all states searched" : `so far, stopped by ${explore.stop}`;
    return h("div", {}, h("p", { class: "conclusion" }, `No path to ${what}: ${seen}.`), about);
  }
  const detail = h("div", {});
  const lines = explore.ways.map((way, i) => {
    const run = new Run(`path ${i + 1} to ${what}`, way.kind, way);
    runs.push(run);
    const open = () => {
      detail.replaceChildren(viewer.element);
      viewer.show(run);
      if (way.execution) detail.append(graphView(way.execution));
    };
    const loop = way.back_to === null ? "" : `a loop from after step ${way.back_to}`;
    return { cells: [`Path ${i + 1}`, plural(way.steps.length, "step"), way.steps.at(-1)?.action ?? "", loop], open };
  });
  const ways = table(`Paths to ${what}`, ["Path", "Length", "Last action", "Ends in"], lines, [1]);
  queueMicrotask(() => ways.select(0));
  return h("div", {}, ways.element, detail, about);
}

export function evidenceView(evidence: Evidence, file: string | null, viewer: Viewer, runs: Run[]): HTMLElement {
  const what = evidence.formula ? baseName(evidence.formula) : baseName(file ?? evidence.model ?? "model");
  const run = new Run(`${evidence.kind} of ${what}`, evidence.kind, evidence);
  runs.push(run);
  queueMicrotask(() => viewer.show(run));
  return h("div", {}, evidence.verdict && h("p", {}, `${evidence.formula ?? ""} `, verdict(evidence.verdict)), viewer.element);
}

/** Outcomes as a table with a column for each register or cell. */
function outcomes(states: Record<string, string>[]): HTMLElement {
  const names = [...new Set(states.flatMap((state) => Object.keys(state)))];
  const rows = states.map((state) => h("tr", {}, ...names.map((n) => h("td", {}, state[n] ?? ""))));
  return h("div", { class: "wide" }, h("table", { class: "outcomes" }, h("caption", {}, `Outcomes: ${states.length}`), h("thead", {}, h("tr", {}, ...names.map((n) => h("th", { scope: "col" }, n)))), h("tbody", {}, ...rows)));
}

/** The details of a litmus test, or of a trace: its size and, if the answer is unknown, the reason. */
function test(one: LitmusTest, isTrace: boolean): HTMLElement {
  const observed = one.observation && `${one.observation}: the condition holds in ${plural(Number(one.positive), "outcome")}, not in ${one.negative}`;
  const parts: (Node | false | null | undefined)[] = [
    h("h3", {}, one.name ?? baseName(one.file), " ", one.verdict ? verdict(one.verdict, one.herd ?? one.verdict) : null),
    facts([
      ["File", one.file],
      [isTrace ? "Size" : "Condition", isTrace ? one.condition : one.condition && h("code", {}, one.condition)],
      [isTrace ? "Reason" : "Observed", isTrace ? one.observation : observed],
      ["Flags", one.flags && list(one.flags)],
      ["Stopped", one.stop === "complete" ? "" : one.stop],
      ["Not run", one.not_asked],
      ["Forbidden but shown", one.forbidden_but_shown && list(one.forbidden_but_shown)],
      ["Allowed, not shown", one.allowed_not_shown && list(one.allowed_not_shown)],
      ["Not compared", one.not_compared && one.not_compared.length > 0 && list(one.not_compared)],
      ["Shown", one.shown && list(one.shown)],
      ["Allowed", one.allowed && list(one.allowed)],
    ]),
    ...(one.error ? refusal(one.error) : []),
    one.states && one.states.length > 0 && outcomes(one.states),
    one.execution && graphView(one.execution),
    one.text ? h("details", { open: true }, h("summary", {}, "Test"), code(one.text.trimEnd(), 1)) : null,
  ];
  return h("div", { class: "about" }, ...parts);
}

export function litmusView(litmus: Litmus): HTMLElement {
  const detail = h("div", {});
  const all = litmus.tests ?? [];
  const word = (t: LitmusTest) => {
    if (t.error) return verdict("unknown", "refused");
    if (t.not_asked) return verdict("unknown", "not run");
    if (t.forbidden_but_shown) return t.forbidden_but_shown.length > 0 ? "shows forbidden outcomes" : "as allowed";
    return verdict(t.verdict, t.herd ?? t.verdict);
  };
  const isTrace = litmus.subject === "Traces";
  const lines = all.map((t) => {
    const counts = t.positive === undefined ? "" : ` ${t.positive} ${t.negative}`;
    const observed = t.observation ? `${t.observation}${counts}` : "";
    const cells = [t.name ?? baseName(t.file), word(t), ...(isTrace ? [t.condition ?? "", observed] : [observed, t.condition ?? ""]), t.execution ? "drawn" : ""];
    return { cells, open: () => detail.replaceChildren(test(t, isTrace)) };
  });
  const { summary } = litmus;
  const heads = isTrace ? ["Trace", "Answer", "Size", "Reason", "Conflict"] : ["Test", "Answer", "Observation", "Condition", "Execution"];
  const tests = table(litmus.subject ?? "Litmus tests", heads, lines);
  const counts = summary && (isTrace
    ? `${summary.ok} allowed, ${summary.no} forbidden, ${summary.unknown} unknown`
    : `${count(summary.tests)}: ${summary.ok} Ok, ${summary.no} No, ${summary.unknown} Unknown, ${summary.refused} refused`);
  const first = all.findIndex((t) => t.execution);
  queueMicrotask(() => all.length > 0 && tests.select(Math.max(0, first)));
  return h(
    "div",
    {},
    facts([
      ["Machine", litmus.machine],
      ["Against", litmus.against],
      [isTrace ? "Answers" : "Tests", counts],
      ["Time", seconds(litmus.seconds)],
    ]),
    tests.element,
    detail,
  );
}

function answer(word: Verdict): HTMLElement {
  return verdict(word, { true: "conforms", false: "does not conform", unknown: "unknown" }[word]);
}

/** Maps the names of a test to the machine: a row for each processor, address and value. */
function namesTable(names: NonNullable<Conformance["names"]>): HTMLElement {
  const line = (kind: string, m: Meaning) => ({ cells: [kind, h("code", {}, m.test), h("code", {}, m.machine)] });
  const addresses = names.addresses.flatMap((a) => [line("address", a), ...a.values.map((v) => line(`value at ${a.test}`, v))]);
  return table("Names", ["What", "In the test", "On the machine"], [...names.processors.map((p) => line("processor", p)), ...addresses]).element;
}

function conformance(one: Conformance, viewer: Viewer, run: Run | null): HTMLElement {
  const cycle = (one.cycle ?? []).flatMap((c) => [h("code", {}, c.event), c.relation ? ` —${c.relation}→ ` : " "]);
  const drawn = one.execution ?? executionOf(one.test ?? "", one.cycle ?? []);
  const closed = one.cycle?.at(-1)?.relation ? h("code", {}, one.cycle[0]?.event ?? "") : null;
  const parts: (Node | false | null | undefined)[] = [
    h("h3", {}, one.name, " ", answer(one.verdict)),
    facts([
      ["Reason", one.reason],
      ["Shows", one.test && h("code", {}, one.test)],
      ["Forbidden by", one.axiom],
      ["Cycle", cycle.length > 0 && h("span", {}, ...cycle, closed)],
      ["Confirmed", one.confirmed && (one.confirmed.litmus ? "forbidden as a litmus test too, and replayed on the machine" : "replayed on the machine")],
    ]),
    run && viewer.element,
    drawn && graphView(drawn),
    one.names && namesTable(one.names),
    one.litmus ? h("details", { open: true }, h("summary", {}, "Litmus test"), code(one.litmus.trimEnd(), 1)) : null,
  ];
  return h("div", { class: "about" }, ...parts);
}

/** Facts of an answer for programs of every length. */
function everyLength(any: EveryLength): HTMLElement {
  const searches = any.searches.map((s) => `${s.order ? `cycles under ${s.order}` : "one address"}: ${count(s.guesses)} guesses, ${count(s.states)} states${s.violated ? `, ${s.violated}` : ""}`);
  const lines = (all: { text: string }[]) => all.length > 0 && h("ul", {}, ...all.map((g) => h("li", {}, g.text)));
  return facts([
    ["Interface", any.interface],
    ["Programs", `of every length; ${plural(any.processors.length, "processor")}, ${count(any.addresses.length)} addresses, ${plural(any.values.length, "value")}`],
    ["Machine", `${count(any.states)} states, ${count(any.transitions)} transitions`],
    ["Searches", searches.join("; ")],
    ["Strongest", any.strongest ?? ""],
    ["Checked", lines(any.checked)],
    ["Assumed", lines(any.assumed)],
    ["Stopped", any.stop === "complete" ? "" : any.stop],
    ["Time", seconds(any.seconds)],
  ]);
}

/** Groups models with the same answer and test, if they are many: nineteen equal lines say less than one. */
function alike(models: Conformance[]): Conformance[][] {
  const groups: Conformance[][] = [];
  for (const one of models) {
    const known = groups.find(([m]) => m?.verdict === one.verdict && m.test === one.test && m.reason === one.reason && (one.verdict !== "false" || one.test !== undefined));
    if (known) known.push(one);
    else groups.push([one]);
  }
  // A few lines are clearer one by one.
  return groups.flatMap((g) => (g.length > 3 ? [g] : g.map((m) => [m])));
}

/** The answer of all models together, with its bound: a verdict, and a sentence. */
export function conclusionOf(conform: Conform | EveryLength): [Verdict, string] {
  const bound = conform.operations === "any" ? "programs of every length" : conform.complete_to === null || conform.complete_to >= conform.operations * (conform.processors?.length ?? Infinity) ? `up to ${plural(conform.operations, "operation")} of each processor` : `up to ${plural(conform.complete_to, "operation")} in all`;
  const of = (word: Verdict) => conform.models.filter((m) => m.verdict === word).map((m) => m.name);
  const [held, failed, open] = [of("true"), of("false"), of("unknown")];
  if (conform.models.length === 1) {
    const word = conform.models[0]?.verdict ?? "unknown";
    return [word, `${conform.models[0]?.name}: ${{ true: "conforms", false: "does not conform", unknown: "unknown" }[word]}, ${bound}`];
  }
  const strongest = typeof conform.strongest === "string" ? [conform.strongest] : (conform.strongest ?? []).map((m) => m.name);
  if (held.length > 0) return ["true", `strongest model: ${strongest.length > 0 ? strongest.join(", ") : held[0]}, ${bound}`];
  if (open.length === 0) return ["false", `conforms to none of ${failed.length} models, ${bound}`];
  return ["unknown", `unknown for ${open.length} of ${conform.models.length} models, ${bound}`];
}

/** The seeded faults: the number of operations that finds each, and its smallest test. */
function faultsTable(faults: Fault[]): HTMLElement {
  const lines = faults.map((f) => {
    const found = f.operations !== undefined;
    const word = found ? verdict("true", "found") : f.stop === "complete" ? verdict("false", "not found") : verdict("unknown", f.stop);
    return { cells: [f.name, word, f.operations ?? "", (f.models ?? []).join(", "), f.test ? h("code", {}, f.test) : ""] };
  });
  return table("Seeded faults", ["Fault", "Answer", "Operations", "Forbidden by", "Smallest test"], lines, [2]).element;
}

/** The tests of a suite, with the faults that each finds; a selected one is shown. */
function suiteTable(suite: Suite): HTMLElement {
  const detail = h("div", {});
  const lines = suite.tests.map((t) => ({
    cells: [t.name, h("code", {}, t.program), t.allowed, t.finds.map((f) => f.fault).join(", ")],
    open: () => detail.replaceChildren(code(t.litmus.trimEnd(), 1)),
  }));
  const caption = `Suite of ${plural(suite.tests.length, "test")}${suite.least ? ", the fewest that find all faults" : ""}`;
  const tests = table(caption, ["Test", "Program", "Allowed outcomes", "Finds"], lines, [2]);
  if (suite.tests.length > 0) queueMicrotask(() => tests.select(0));
  return h("div", {}, tests.element, detail);
}

export function conformView(conform: Conform | EveryLength, viewer: Viewer, runs: Run[]): HTMLElement {
  const detail = h("div", {});
  const groups = alike(conform.models);
  const lines = groups.flatMap((group) => {
    const [one] = group;
    if (!one) return [];
    const run = one.evidence ? new Run(`run that ${one.name} forbids`, "trace", one.evidence) : null;
    if (run) runs.push(run);
    const open = () => {
      detail.replaceChildren(conformance(one, viewer, run));
      if (run) viewer.show(run);
    };
    return [{ cells: [group.map((m) => m.name).join(", "), answer(one.verdict), one.test ?? "", one.operations ?? ""], open }];
  });
  const models = table("Memory models", ["Model", "Answer", "Smallest difference", "Operations"], lines, [3]);
  const first = groups.findIndex(([m]) => m?.verdict === "false");
  queueMicrotask(() => groups.length > 0 && models.select(Math.max(0, first)));
  const conclusion = h("p", { class: "conclusion" }, verdict(...conclusionOf(conform)));
  const faults = [conform.faults && faultsTable(conform.faults), conform.suite && suiteTable(conform.suite)].filter((e) => e !== undefined);
  if (conform.operations === "any") return h("div", {}, conclusion, models.element, detail, ...faults, everyLength(conform));
  const lengths = (conform.programs_by_length ?? []).slice(1).map((n, i) => `${count(n)} of ${i + 1}`);
  const programs = `${count(conform.programs)} judged${lengths.length > 0 ? ` (by number of operations: ${lengths.join(", ")})` : ""}`;
  const upTo = conform.complete_to === null ? "" : `complete for programs of up to ${plural(conform.complete_to, "operation")} in all`;
  return h(
    "div",
    {},
    conclusion,
    models.element,
    detail,
    ...faults,
    facts([
      ["Interface", conform.interface],
      ["Operations", `up to ${conform.operations} of each processor`],
      ["Searched", upTo],
      ["Machine", `${count(conform.states)} states, ${count(conform.transitions)} transitions, ${count(conform.reduced_states)} states after reduction`],
      ["Programs", programs],
      ["Never end", conform.endless_programs ? `${count(conform.endless_programs)} that begin and never end: not judged` : ""],
      ["Lines without a label", (conform.unmatched_lines ?? []).join("; ")],
      ["Idle processors", (conform.idle_processors ?? []).join(", ")],
      ["Histories", count(conform.histories)],
      ["Stopped", conform.stop === "complete" ? "" : conform.stop],
      ["Time", seconds(conform.seconds)],
    ]),
  );
}
