// Help for interface files: problems from the parser of the server, the actions of the machine for
// completion, and labels of the machine that no line names.
//
// Labels are those of the machine's first states, from a simulator of its own. A label without a
// line is no error: it may be a step that is no memory operation. Hidden actions may have a line,
// which makes them visible for `conform`, but need none.

import type { Completion, Problem } from "./language";
import * as server from "./server";

/** Number of states from which labels are collected. */
const STATES = 2_000;
/** Delay between an edit and the request to the server. */
const PAUSE = 300;

const WORDS = ["initial", "load", "store", "update", "fence", "commit", "absorb", "observe", "internal", "program", "processors", "addresses", "values", "numbers from", "acquire", "release"];
const ROLES = ["p", "a", "v", "w", "n"];

export const isInterface = (path: string) => path.endsWith(".interface");

/** Labels of a machine, and examples of its hidden actions. */
interface Labels {
  visible: string[];
  hidden: string[];
}

const NONE: Labels = { visible: [], hidden: [] };
const nameOf = (label: string) => label.replace(/\(.*/, "");

export class InterfaceHelp {
  private later: ReturnType<typeof setTimeout> | undefined;
  private labels = new Map<string, Labels>();
  private machine = "";

  /** `shown`: callback for the problems of a file; `model`: callback for the machine of an interface. */
  constructor(
    private readonly shown: (path: string, problems: Problem[]) => void,
    private readonly model: (path: string) => { model: string; parameters: Record<string, string> } | null,
  ) {}

  /** Forgets labels of a machine that has changed. */
  forget(model: string): void {
    for (const key of this.labels.keys()) if (key.startsWith(`${model} `)) this.labels.delete(key);
  }

  /** Checks a text after a pause. */
  edited(path: string, text: string): void {
    clearTimeout(this.later);
    this.later = setTimeout(() => void this.check(path, text).catch(() => undefined), PAUSE);
  }

  /** Offers the words of the format, and the actions of the machine with their arguments. */
  completion(): Completion[] {
    const { visible, hidden } = this.labels.get(this.machine) ?? NONE;
    const actions = [...new Map([...visible, ...hidden].map((l) => [nameOf(l), l])).values()];
    const offered = actions.map((label): Completion => {
      const [name = label] = label.split("(");
      const n = label.includes("(") ? arity(label) : 0;
      const insert = n === 0 ? name : `${name}(${Array.from({ length: n }, (_, i) => ROLES[i] ?? "_").join(", ")})`;
      return { label: insert, detail: `label such as ${label}`, sortText: "0" };
    });
    return [...offered, ...WORDS.map((label): Completion => ({ label, sortText: "3" }))];
  }

  private async check(path: string, text: string): Promise<void> {
    const found = await server.interfaceProblems(text);
    const problems = [...found.problems];
    const labels = await this.labelsOf(path);
    if (found.actions) {
      const named = new Set(found.actions);
      const left = new Map<string, string>();
      for (const label of labels.visible) {
        const name = nameOf(label);
        if (name !== "tau" && !named.has(name)) left.set(name, label);
      }
      // They stand at the last line: there a further one belongs.
      const lines = text.split("\n");
      const line = Math.max(0, lines.findLastIndex((l) => l.trim() !== ""));
      const range = { start: { line, character: 0 }, end: { line, character: lines[line]?.length ?? 0 } };
      for (const label of left.values()) problems.push({ range, severity: 3, message: `no line names \`${label}\`, a label of ${this.machine.split(" ")[0]}: it is no memory operation` });
      const known = new Set([...labels.visible, ...labels.hidden].map(nameOf));
      if (known.size > 0) for (const name of named) if (!known.has(name)) problems.push({ ...at(text, name), severity: 2, message: `\`${name}\` is no label of the first ${STATES} states of ${this.machine.split(" ")[0]}` });
    }
    this.shown(path, problems);
  }

  /** Returns the labels of the machine of an interface; none if it has an error. */
  private async labelsOf(path: string): Promise<Labels> {
    const of = this.model(path);
    if (of === null) return NONE;
    const key = `${of.model} ${JSON.stringify(of.parameters)}`;
    this.machine = key;
    const known = this.labels.get(key);
    if (known) return known;
    this.labels.set(key, NONE);
    try {
      const hello = await server.walk(of.model, of.parameters);
      const { labels, hidden = [] } = await server.ask<server.System>(hello.walk, { graph: STATES });
      await server.leave(hello.walk);
      this.labels.set(key, { visible: labels.sort(), hidden });
    } catch {
      // The machine's own problems are shown with its text.
    }
    return this.labels.get(key) ?? NONE;
  }
}

/** Returns the number of arguments of a label. */
function arity(label: string): number {
  let [depth, n] = [0, 1];
  for (const c of label.slice(label.indexOf("(") + 1, -1)) {
    if ("([{".includes(c)) depth += 1;
    else if (")]}".includes(c)) depth -= 1;
    else if (c === "," && depth === 0) n += 1;
  }
  return n;
}

/** Returns the first place of a name in a text. */
function at(text: string, name: string): Pick<Problem, "range"> {
  const lines = text.split("\n");
  const line = Math.max(0, lines.findIndex((l) => new RegExp(`(?<!\\w)${name}\\(?`).test(l.replace(/\/\/.*/, ""))));
  const character = Math.max(0, lines[line]?.indexOf(`${name}(`) ?? 0);
  return { range: { start: { line, character }, end: { line, character: character + name.length } } };
}
