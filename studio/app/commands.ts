// Commands other than check, explore and sweep: a list, and the fields of the chosen one.
//
// A command has the options that the server accepts for it (src/studio/request_args.rs).

import { h } from "../src/dom";

type Field =
  | { key: string; text: string; hint: string; title: string; offers?: string[] }
  | { key: string; text: string; files: RegExp; title: string }
  | { key: string; text: string; values: string[]; title: string };

interface Command {
  kind: string;
  title: string;
  /** The files that the command reads as its model; none: it has no model. */
  models: RegExp | null;
  fields: Field[];
}

/** Built-in memory models, strongest first. */
const MODELS = ["sc", "tso", "pso", "pc", "rvwmo", "armv8", "power", "armv7", "lkmm", "rc11", "location-order", "cpp-ra", "rcsc", "rcpc", "causal", "pram", "cache", "slow", "local"];
const SYSTEM = /\.(mcrl2|spec|cub|asm|litmus|m|lps|aut|aut\.gz|blts|lts|fsm)$/;
const AGAINST = { key: "against", text: "Against", hint: "sc,tso", title: "Memory models, separated by commas; empty: all", offers: MODELS };
const INTERFACE = { key: "interface", text: "Interface", files: /\.interface$/, title: "The file that maps labels to memory operations" };
const MACHINE = { key: "machine", text: "Machine", files: /\.(mcrl2|spec|cub|m)$/, title: "A machine that runs it, next to the memory model" };
const OPERATIONS = { key: "operations", text: "Operations", hint: "2 or any", title: "Operations of each processor of a machine: a bound, or any; empty: 2" };
const EQUIVALENCE = { key: "equivalence", text: "Equivalence", values: ["strong", "branching", "divergence-branching", "divergence-weak", "weak", "trace", "weak-trace", "probabilistic"], title: "The equivalence" };
const PREORDER = { key: "preorder", text: "Preorder", values: ["", "trace", "weak-trace", "simulation", "ready-simulation", "coupled-simulation", "failures", "weak-failures", "failures-divergences", "impossible-futures"], title: "The preorder, in place of the equivalence" };
const THREADS = { key: "threads_of", text: "Threads", hint: "2 or any", title: "Number of threads that run the program" };

const FAULTS = { key: "fault", text: "Faults", files: /\.faults$/, title: "Named edits of the machine: how many operations find each of them?" };
const SUITE = { key: "suite", text: "Suite", values: ["", "yes"], title: "The fewest litmus tests that find all faults; for one memory model" };

export const COMMANDS: Command[] = [
  { kind: "conform", title: "Conformance to memory models", models: /\.(mcrl2|spec|cub|m|lps)$/, fields: [INTERFACE, AGAINST, OPERATIONS, FAULTS, SUITE] },
  { kind: "litmus", title: "Litmus test", models: /\.litmus$/, fields: [{ key: "memory", text: "Memory model", hint: "tso", title: "A built-in memory model; empty: that of the architecture", offers: MODELS }, { key: "memory_file", text: "or file", files: /\.(cat|views)$/, title: "A file with a memory model" }, MACHINE, INTERFACE, OPERATIONS] },
  { kind: "trace", title: "Trace under memory models", models: /\.(axe|log|csv|jsonl|trace|txt)$/, fields: [AGAINST, MACHINE, INTERFACE] },
  { kind: "prove", title: "Proof for any number of processes", models: /\.(cub|asm)$/, fields: [] },
  { kind: "program", title: "Safety of a program", models: /\.asm$/, fields: [THREADS, { key: "memory", text: "Memory model", values: ["tso", "sc", "pso"], title: "The memory model" }] },
  { kind: "robust", title: "Robustness of a program", models: /\.asm$/, fields: [THREADS] },
  { kind: "reduce", title: "Quotient by an equivalence", models: SYSTEM, fields: [EQUIVALENCE] },
  { kind: "compare", title: "Comparison with another system", models: SYSTEM, fields: [{ key: "other", text: "With", files: SYSTEM, title: "The other system" }, EQUIVALENCE, PREORDER] },
  { kind: "info", title: "Properties of a system", models: SYSTEM, fields: [] },
  { kind: "models", title: "Memory models in order", models: null, fields: [] },
];

export class CommandsField {
  private readonly select = h("select", { "aria-label": "Command" }, h("option", { value: "" }, "Other commands"), ...COMMANDS.map((c) => h("option", { value: c.kind, title: c.title }, c.kind)));
  private readonly fields = h("span", { class: "options" });
  readonly choice = h("label", {}, "Command ", this.select);
  /** The line with the fields of the chosen command. */
  readonly line: HTMLElement;
  private readonly about = h("strong", { class: "about-command" });
  private files: string[] = [];
  private model = "";
  /** Fields that the user has set: a proposal does not change them. */
  private readonly set = new Set<string>();

  /** `chosen`: callback for the choice of a command, or of none. */
  constructor(chosen: (some: boolean) => void) {
    this.line = h("div", { class: "line", hidden: true }, this.about, this.fields);
    chosen(false);
    this.fields.addEventListener("input", (e) => this.set.add((e.target as HTMLInputElement).name));
    this.select.addEventListener("change", () => {
      this.set.clear();
      chosen(this.select.value !== "");
      this.show();
    });
  }

  /** Sets the files that fields offer. */
  list(files: string[]): void {
    this.files = files;
    this.show();
  }

  /** Proposes the files that belong to a model: its interface. */
  propose(model: string): void {
    this.model = model;
    this.show();
  }

  /** Returns the interface of a machine: of its name, or the only one of its folder. */
  private interfaceOf(machine: string): string {
    const all = this.files.filter((f) => INTERFACE.files.test(f));
    const [own, folder] = [machine.replace(/\.\w+$/, ".interface"), machine.replace(/[^/]*$/, "")];
    const beside = all.filter((f) => f.startsWith(folder) && !f.slice(folder.length).includes("/"));
    return all.includes(own) ? own : beside.length === 1 ? (beside[0] ?? "") : "";
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
    // Without a machine there is nothing to map.
    if (["litmus", "trace"].includes(command.kind)) {
      if (!values["machine"]) ["interface", "operations"].forEach((key) => delete values[key]);
      else if (!values["interface"]) throw new Error("Choose an interface: it maps the labels of the machine to memory operations.");
    }
    if (command.kind === "conform" && !values["interface"]) throw new Error("Choose an interface: it maps the labels of the machine to memory operations.");
    if (values["suite"] && (!values["fault"] || !values["against"] || values["against"].includes(","))) throw new Error("A suite is for the faults of a file and one memory model: choose *Faults*, and write one model in *Against*.");
    if (command.kind === "compare" && !values["other"]) throw new Error("Choose the other system.");
    return { kind: command.kind, ...values };
  }

  /** True if the chosen command takes parameters of a model. */
  get hasParameters(): boolean {
    return ["conform", "prove", "reduce", "compare"].includes(this.select.value);
  }

  private show(): void {
    const before = new Map<string, string>([...this.fields.querySelectorAll<HTMLInputElement | HTMLSelectElement>("input, select")].map((f) => [f.name, f.value]));
    const command = COMMANDS.find((c) => c.kind === this.select.value);
    this.about.textContent = command?.title ?? "";
    const machine = command?.kind === "conform" ? this.model : (before.get("machine") ?? "");
    if (!this.set.has("interface") && machine !== "") before.set("interface", this.interfaceOf(machine));
    const fields = (command?.fields ?? []).map((field) => {
      const common = { name: field.key, title: field.title, "aria-label": field.text };
      if ("hint" in field) {
        const list = field.offers && h("datalist", { id: `offers-${field.key}` }, ...field.offers.map((value) => h("option", { value })));
        return h("label", {}, `${field.text} `, h("input", { ...common, type: "text", size: 8, placeholder: field.hint, value: before.get(field.key) ?? "", list: list ? list.id : null }), list);
      }
      const values = "values" in field ? field.values : ["", ...this.files.filter((f) => field.files.test(f))];
      const options = values.map((v) => h("option", { value: v, selected: v === before.get(field.key) }, v === "" ? "none" : v));
      const select = h("select", common, ...options);
      // The interface belongs to the machine.
      if (field.key === "machine") select.addEventListener("change", () => this.show());
      return h("label", {}, `${field.text} `, select);
    });
    this.line.hidden = fields.length === 0;
    this.fields.replaceChildren(...fields);
  }
}
