// Formulas of a model: the table of verdicts, and for the selected one its text, notes and run.

import { count, facts, h, plural, seconds, verdict } from "./dom";
import { graphView } from "./graph";
import { place } from "./places";
import { Run } from "./run";
import { table } from "./table";
import type { Check, CheckResult, Note, Refusal } from "./types";
import type { Viewer } from "./viewer";

const REASONS: Record<string, string> = {
  constant: "the formula does not depend on the model",
  product: "search of the product with the model",
  game: "a parity game",
  "symbolic product": "symbolic search of the product",
  "symbolic game": "a parity game over sets of states",
  regions: "regions of the parameters",
  "max-states": "stopped by the limit on states",
  "max-memory": "stopped by the limit on memory",
  timeout: "stopped by the limit on time",
  interrupted: "interrupted",
  error: "the formula is rejected",
};

/** Returns the last part of a path; a formula text is returned in full. */
export function baseName(path: string): string {
  return /[\s()[\]<>]/.test(path) ? path : (path.split(/[\\/]/).pop() ?? path);
}

/** Returns the first comment of a formula, and its number of lines. */
function comment(text: string): { said: string; lines: number } {
  const said: string[] = [];
  let lines = 0;
  for (const line of text.split("\n")) {
    const words = /^\s*%+\s?(.*)$/.exec(line);
    if (words) said.push(words[1] ?? "");
    else if (line.trim() !== "") break;
    lines += 1;
  }
  // A line continues in the next one, unless that is empty, indented or a list item.
  const joined = said.join("\n").trim().replace(/([^\n])\n(?![\n\s*-])/g, "$1 ");
  return { said: joined, lines: said.length > 0 ? lines : 0 };
}

/** A text with numbered lines and marked comments. */
export function code(text: string, first: number, marked: Map<number, string> = new Map()): HTMLElement {
  const lines = text.split("\n").map((line, i) => {
    const at = line.indexOf("%");
    const parts = at < 0 ? [line] : [line.slice(0, at), h("span", { class: "comment" }, line.slice(at))];
    const why = marked.get(first + i);
    return h("span", { class: why ? "line is-marked" : "line", "data-line": first + i, title: why ?? null }, ...parts);
  });
  return h("pre", { class: "code", tabindex: 0 }, ...lines);
}

/** A text with code between backticks. */
export function quoted(text: string): (Node | string)[] {
  return text.split("`").map((part, i) => (i % 2 === 1 ? h("code", {}, part) : part));
}

export function notes(list: Note[]): HTMLElement | null {
  if (list.length === 0) return null;
  const items = list.map((n) => {
    const place = n.file === null ? "" : ` (${n.file}${n.line === null ? "" : `:${n.line}`}${n.column === null ? "" : `:${n.column}`})`;
    return h("li", { class: n.kind }, h("strong", {}, n.kind === "warning" ? "Warning: " : "Note: "), ...quoted(n.text), h("span", { class: "quiet" }, place));
  });
  return h("ul", { class: "notes" }, ...items);
}

/** The run of a result, if it has one. */
function runOf(result: CheckResult): Run | null {
  if (result.evidence.length === 0) return null;
  const kind = result.verdict === "true" ? "witness" : "counterexample";
  return new Run(
    `${kind} of ${baseName(result.formula)}`,
    kind,
    {
      verdict: result.verdict,
      kind,
      // Older results do not state if the evidence is one path: it is if each state is followed by
      // the next.
      linear: result.linear ?? result.evidence.every((s, i, all) => i === 0 || s.from === all[i - 1]?.to || (s.at_once ?? false)),
      back_to: result.back_to ?? null,
      components: result.components ?? [],
      parameters: result.parameters ?? [],
      steps: result.evidence,
      ...(result.ending ? { ending: result.ending } : {}),
    },
    result.evidence_left_out ?? 0,
  );
}

/** The heading of a result; for an error its place and reason; for a run, the step that decides. */
function title(result: CheckResult): HTMLElement[] {
  return [h("h3", {}, baseName(result.formula), " ", verdict(result.verdict, result.error ? "error" : result.verdict)), ...(result.error ? refusal(result.error) : [])];
}

function about(result: CheckResult): HTMLElement {
  const parts: (Node | null)[] = [];
  const { said, lines } = comment(result.text ?? "");
  if (said) parts.push(...said.split(/\n\s*\n/).map((p) => h("p", { class: "comment-text" }, p)));
  parts.push(
    facts([
      ["Found by", result.error ? "" : REASONS[result.reason] ?? result.reason],
      ["For", result.for],
      ["Cases", count(result.cases)],
      ["Equations", result.error ? "" : count(result.equations)],
      ["States", result.error ? "" : count(result.states)],
      ["Engine", result.error ? "" : (result.engine_reason ?? result.engine)],
      ["Time", result.error ? "" : seconds(result.seconds)],
    ]),
  );
  if (result.vacuous.length > 0) {
    const items = result.vacuous.map((v) => h("li", { class: "warning" }, h("strong", {}, "Warning: "), "no transition ever matched ", h("code", {}, v.text), ` (line ${v.line}), so this part was not tested.`));
    parts.push(h("ul", { class: "notes" }, ...items));
  }
  parts.push(notes(result.notes ?? []));
  if (result.text) {
    const marked = new Map(result.vacuous.map((v) => [v.line, "No transition ever matched this modality."]));
    const all = result.text.split("\n");
    const blank = all.slice(lines).findIndex((l) => l.trim() !== "");
    const skip = lines + Math.max(0, blank);
    parts.push(h("details", { open: all.length - skip <= 25 }, h("summary", {}, "Formula"), code(all.slice(skip).join("\n"), (result.first_line ?? 1) + skip, marked)));
  }
  return h("div", { class: "about" }, ...parts.filter((p): p is Node => p !== null));
}

/** The place of an error, which a page with an editor goes to. */
function placeOf({ place: at }: Refusal, brief = false): HTMLElement | null {
  if (!at) return null;
  const words = `${brief ? "" : `${at.file}:`}${at.line}:${at.column}`;
  // A formula of the field is no file.
  return h("span", {}, at.file.startsWith("formula ") ? words : place(words, at.file, at.line, at.column, at.text.length), ": ");
}

/** Describes an error: its place, the message, and the notes. */
export function refusal(error: Refusal): HTMLElement[] {
  const { message, notes: more } = error;
  return [h("p", { class: "error" }, placeOf(error), message), ...more.map((n) => h("p", { class: "quiet" }, n))];
}

export function checkView(check: Check, viewer: Viewer, runs: Run[]): HTMLElement {
  const detail = h("div", {});
  const lines = check.results.map((result) => {
    const run = runOf(result);
    if (run) runs.push(run);
    const evidence = run ? plural(run.steps.length, "step") : "";
    const open = () => {
      detail.replaceChildren(...title(result));
      if (run) {
        detail.append(viewer.element);
        viewer.show(run);
        if (result.execution) detail.append(graphView(result.execution));
      }
      detail.append(about(result));
    };
    const said = comment(result.text ?? "").said.split(/\n\s*\n/)[0] ?? "";
    const refused = result.error ? h("span", { class: "error" }, placeOf(result.error, true), result.error.message) : null;
    const numbers = result.error ? ["", "", ""] : [seconds(result.seconds), count(result.states), count(result.equations)];
    return {
      cells: [baseName(result.formula), verdict(result.verdict, result.error ? "error" : result.verdict), refused ?? said, evidence, ...numbers],
      open,
    };
  });
  const list = table("Verdicts", ["Formula", "Verdict", "Comment", "Run", "Time", "States", "Equations"], lines, [3, 4, 5, 6]);
  const first = check.results.findIndex((r) => r.verdict === "false" && r.evidence.length > 0);
  const out = h("div", {}, notes(check.warnings ?? []), list.element, detail);
  queueMicrotask(() => check.results.length > 0 && list.select(Math.max(0, first)));
  return out;
}
