// Commands other than check, explore and sweep: a list, and the fields of the chosen one.
//
// A command has the options that the server accepts for it (src/studio/request_args.rs).

import { h } from "../src/dom";

type Field =
  | { key: string; text: string; hint: string; title: string }
  | { key: string; text: string; files: RegExp; title: string }
  | { key: string; text: string; values: string[]; title: string };

interface Command {
  kind: string;
  title: string;
  /** The files that the command reads as its model; none: it has no model. */
  models: RegExp | null;
  fields: Field[];
}

const SYSTEM = /\.(mcrl2|spec|cub|asm|litmus|m|lps|aut|aut\.gz|blts|lts|fsm)$/;
const AGAINST = { key: "against", text: "Against", hint: "sc,tso", title: "Memory models, separated by commas; empty: all" };
const INTERFACE = { key: "interface", text: "Interface", files: /\.interface$/, title: "The file that maps labels to memory operations" };
const EQUIVALENCE = { key: "equivalence", text: "Equivalence", values: ["strong", "branching", "divergence-branching", "weak", "trace", "weak-trace", "probabilistic"], title: "The equivalence" };
const PREORDER = { key: "preorder", text: "Preorder", values: ["", "trace", "weak-trace", "simulation", "ready-simulation", "coupled-simulation", "failures", "weak-failures", "impossible-futures"], title: "The preorder, in place of the equivalence" };
const THREADS = { key: "threads_of", text: "Threads", hint: "2 or any", title: "Number of threads that run the program" };

export const COMMANDS: Command[] = [
  { kind: "conform", title: "Conformance to memory models", models: /\.(mcrl2|spec|cub|m|lps)$/, fields: [INTERFACE, AGAINST, { key: "operations", text: "Operations", hint: "2 or any", title: "Operations of each processor: a bound, or any" }] },
  { kind: "litmus", title: "Litmus test", models: /\.litmus$/, fields: [{ key: "memory", text: "Memory model", hint: "tso", title: "A built-in memory model; empty: that of the architecture" }, { key: "memory_file", text: "or file", files: /\.(cat|views)$/, title: "A file with a memory model" }] },
  { kind: "trace", title: "Trace under memory models", models: /\.(axe|log|csv|jsonl|trace|txt)$/, fields: [AGAINST, { key: "machine", text: "Machine", files: /\.(mcrl2|spec|cub)$/, title: "A machine, in place of memory models" }, INTERFACE] },
  { kind: "prove", title: "Proof for any number of processes", models: /\.(cub|asm)$/, fields: [] },
  { kind: "program", title: "Safety of a program", models: /\.asm$/, fields: [THREADS, { key: "memory", text: "Memory model", values: ["tso", "sc", "pso"], title: "The memory model" }] },
  { kind: "robust", title: "Robustness of a program", models: /\.asm$/, fields: [THREADS] },
  { kind: "reduce", title: "Quotient by an equivalence", models: SYSTEM, fields: [EQUIVALENCE] },
  { kind: "compare", title: "Comparison with another system", models: SYSTEM, fields: [{ key: "other", text: "With", files: SYSTEM, title: "The other system" }, EQUIVALENCE, PREORDER] },
  { kind: "info", title: "Properties of a system", models: SYSTEM, fields: [] },
  { kind: "models", title: "Memory models in order", models: null, fields: [] },
];

export class CommandsField {
  private readonly select = h("select", { "aria-label": "Command" }, h("option", { value: "" }, "Other commands"), ...COMMANDS.map((c) => h("option", { value: c.kind, title: c.title }, `${c.kind}: ${c.title}`)));
  private readonly fields = h("span", { class: "options" });
  readonly choice = h("label", {}, "Command ", this.select);
  /** The line with the fields of the chosen command, and the button that runs it. */
  readonly line: HTMLElement;
  private files: string[] = [];

  /** `run`: a button that runs the chosen command. */
  constructor(run: HTMLElement) {
    this.line = h("div", { class: "line", hidden: true }, this.fields, run);
    this.select.addEventListener("change", () => {
      this.line.hidden = this.select.value === "";
      this.show();
    });
  }

  /** Sets the files that fields offer. */
  list(files: string[]): void {
    this.files = files;
    this.show();
  }

  /** Returns the request of the chosen command for a model. */
  request(model: string): object {
    const command = COMMANDS.find((c) => c.kind === this.select.value);
    if (!command) throw new Error("Choose a command first.");
    if (command.models && !command.models.test(model)) throw new Error(`\`${command.kind}\` does not read \`${model}\`: choose another model.`);
    const values: Record<string, string> = {};
    for (const field of this.fields.querySelectorAll<HTMLInputElement | HTMLSelectElement>("input, select")) {
      const value = field.value.replace(/\s+/g, "");
      if (value !== "") values[field.name] = value;
    }
    // A preorder or a file replaces the other choice.
    if (values["preorder"]) delete values["equivalence"];
    if (values["memory_file"]) delete values["memory"];
    if (command.kind === "conform" && !values["interface"]) throw new Error("Choose an interface: it maps the labels of the machine to memory operations.");
    if (command.kind === "compare" && !values["other"]) throw new Error("Choose the other system.");
    return { kind: command.kind, ...values };
  }

  /** True if the chosen command takes parameters of a model. */
  get hasParameters(): boolean {
    return ["conform", "prove", "reduce", "compare"].includes(this.select.value);
  }

  private show(): void {
    const before = new Map([...this.fields.querySelectorAll<HTMLInputElement | HTMLSelectElement>("input, select")].map((f) => [f.name, f.value]));
    const command = COMMANDS.find((c) => c.kind === this.select.value);
    const fields = (command?.fields ?? []).map((field) => {
      const common = { name: field.key, title: field.title, "aria-label": field.text };
      if ("hint" in field) return h("label", {}, `${field.text} `, h("input", { ...common, type: "text", size: 8, placeholder: field.hint, value: before.get(field.key) ?? "" }));
      const values = "values" in field ? field.values : ["", ...this.files.filter((f) => field.files.test(f))];
      const options = values.map((v) => h("option", { value: v, selected: v === before.get(field.key) }, v === "" ? "none" : v));
      return h("label", {}, `${field.text} `, h("select", common, ...options));
    });
    this.fields.replaceChildren(...fields);
  }
}
