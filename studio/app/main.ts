// The page on this machine: files on the left, an editor in the middle, results, a simulator and a
// picture on the right. It runs the command line and displays its JSON; it computes no verdict.

import { h } from "../src/dom";
import { listenToKeys } from "../src/shown";
import type { Step } from "../src/types";
import { CommandsField } from "./commands";
import { Editor } from "./editor";
import { FilesPanel, isLog, isModel } from "./files";
import { InterfaceHelp } from "./interface";
import { Language, type Range } from "./language";
import { ParametersField } from "./parameters";
import { RunsPanel } from "./runs";
import * as server from "./server";
import { splitter } from "./split";
import { SystemPanel } from "./system";
import { WalkPanel } from "./walk";

/** Initial number of states of a picture; and the limit for more states, or for systems before reduction. */
const STATES = [2_000, 20_000];

/** Ends an action after its reason was shown. */
class Stopped extends Error {}

/** Returns the lines in which two texts differ, without common lines before and after. */
function difference(theirs: string, mine: string): string {
  const [a, b] = [theirs.split("\n"), mine.split("\n")];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const part = (lines: string[], mark: string) => lines.slice(start, lines.length - end).map((line) => `${mark} ${line}`);
  return [`From line ${start + 1}; - on disk, + in the editor`, ...part(a, "-"), ...part(b, "+")].join("\n");
}

class Studio {
  private readonly message = h("p", { class: "message", role: "alert", hidden: true });
  private readonly language = new Language((path, problems) => this.editor.setProblems(path, problems));
  private readonly help = new InterfaceHelp((path, problems) => this.editor.setProblems(path, problems), (path) => this.machineOf(path));
  private readonly editor: Editor = new Editor(this.language, () => this.changed(), (path, range) => void this.open(path, range).catch(this.failed), this.help);
  private readonly files = new FilesPanel(
    (path) => void this.open(path).catch(this.failed),
    () => void this.create().catch(this.failed),
    (path) => ({ current: path === (this.selectedData || this.editor.path), changed: this.editor.isChanged(path), errors: this.editor.problems(path).filter((p) => p.severity === 1).length }),
  );
  private readonly runs = new RunsPanel(
    (model, parameters, steps) => void this.walkAlong(model, parameters, steps).catch(this.failed),
    (model, parameters, steps, name) => void this.walkAlong(model, parameters, steps).then(() => this.drawPath(name)).catch(this.failed),
    (file, line, column, length) => void this.open(file, { start: { line: line - 1, character: column - 1 }, end: { line: line - 1, character: column - 1 + length } }).catch(this.failed),
    (model, component, action) => void this.toSource(model, component, action).catch(this.failed),
    (verdicts) => this.files.judged(verdicts),
    (why) => this.failed(why),
  );
  private readonly walk = new WalkPanel(
    () => void this.drawPath("The path of the walk").catch(this.failed),
    (file) => void this.loadWalk(file).catch(this.failed),
    () => this.remember(),
    (why) => this.failed(why),
  );
  private readonly system = new SystemPanel(
    (_, more) => void this.draw(false, more).catch(this.failed),
    (way) => void this.walk.along(way).then(() => this.tab("walk"), this.failed),
  );
  private readonly right = h("section", { class: "right", "aria-label": "Results" });
  private readonly title = h("h2", { class: "file-name" }, "No file is open");
  private readonly problems = h("ul", { class: "problems", "aria-label": "Problems" });
  private readonly model = h("select", { "aria-label": "Model" });
  private readonly parameters = new ParametersField(() => this.remember());
  private readonly formula = h("input", { type: "text", class: "formula", placeholder: "[true*]<true>true", "aria-label": "Formula", title: "A formula to check in addition to those selected on the left" });
  private readonly engine = h("select", { "aria-label": "Engine" }, ...["explicit", "symbolic", "auto"].map((e) => h("option", { value: e }, e)));
  private readonly seek = h("select", { "aria-label": "Look for" }, ...[["", "all states"], ["deadlock", "a deadlock"], ["divergence", "a divergence"], ["action", "an action"]].map(([value, text]) => h("option", { value }, text)));
  private readonly action = h("input", { type: "text", size: 10, hidden: true, placeholder: "action", "aria-label": "Action", title: "Explore looks for a shortest path to this action" });
  private commands!: CommandsField;
  private readonly tabs = new Map<string, { button: HTMLButtonElement; panel: HTMLElement }>();
  /** The selected model that is no text. */
  private selectedData = "";
  /** Title of the picture, and of the simulator. */
  private drawnOf = "";
  private walkOf = "";

  readonly failed = (why: unknown): void => {
    // The message is already shown.
    if (why instanceof Stopped) return;
    this.message.hidden = false;
    this.message.replaceChildren(why instanceof Error ? why.message : String(why), " ", h("button", { type: "button", click: () => (this.message.hidden = true) }, "Close"));
  };

  begin(app: HTMLElement): void {
    const act = (text: string, then: () => Promise<void>, title: string, main = false) => {
      const button = h("button", { type: "button", title, class: main ? "main" : null });
      button.textContent = text;
      button.addEventListener("click", () => {
        this.message.hidden = true;
        button.disabled = true;
        // An error in `then` itself is one of its promise too, so that the button is enabled again.
        void Promise.resolve().then(then).catch(this.failed).finally(() => (button.disabled = false));
      });
      return button;
    };
    const other = act("Run", () => this.other(), "Run the chosen command");
    this.commands = new CommandsField((chosen) => (other.hidden = !chosen));
    const bar = h(
      "div",
      { class: "bar", role: "toolbar", "aria-label": "Runs" },
      h(
        "div",
        { class: "line" },
        h("label", {}, "Model ", this.model),
        h("label", {}, "Parameters ", this.parameters.input),
        this.parameters.fields,
        h("label", { class: "grows" }, "Formula ", this.formula),
        act("Check", () => this.check(), "Check the selected formulas, and the one in the field (Ctrl-Enter)", true),
      ),
      h(
        "div",
        { class: "line" },
        act("Explore", () => this.explore(), "Count the states, or search for one"),
        h("label", {}, "for ", this.seek),
        this.action,
        act("Sweep", () => this.sweep(), "Run over ranges of the parameters: n=1..=5"),
        h("label", {}, "Engine ", this.engine),
        act("Walk", () => this.startWalk(), "Step through the model"),
        act("Draw", () => this.draw(true), "Draw the transition system"),
        this.commands.choice,
        other,
      ),
      this.commands.line,
    );
    const problems = h("div", { class: "below" }, this.problems);
    const tools = h("span", { class: "tools" }, act("Save", () => this.save(), "Save all files (Ctrl-S)"), act("Format", () => this.editor.format(), "Format the file (Shift-Alt-F)"));
    const middle = h("section", { class: "middle", "aria-label": "Editor" }, h("div", { class: "top" }, this.title, tools), this.editor.element, problems);
    const tabs = h("div", { class: "tabs", role: "tablist", "aria-label": "Results, walk, system" });
    tabs.addEventListener("keydown", (e) => this.tabKey(e));
    const { right } = this;
    right.append(tabs);
    const add = (name: string, text: string, panel: HTMLElement) => {
      const button = h("button", { type: "button", role: "tab", id: `tab-${name}`, "aria-controls": `panel-${name}`, click: () => this.tab(name) }, text);
      panel.id = `panel-${name}`;
      panel.setAttribute("role", "tabpanel");
      panel.setAttribute("aria-labelledby", `tab-${name}`);
      tabs.append(button);
      right.append(panel);
      this.tabs.set(name, { button, panel });
    };
    add("runs", "Results", this.runs.element);
    add("walk", "Walk", this.walk.element);
    add("system", "System", this.system.element);
    const columns: HTMLElement = h("main", { class: "columns" }, this.files.element, middle, splitter(() => columns, "Room for the results"), right);
    app.append(h("header", { class: "head" }, h("h1", {}, "mu-check studio"), bar), this.message, columns);
    this.model.addEventListener("change", () => void this.open(this.model.value).catch(this.failed));
    this.formula.addEventListener("input", () => this.remember());
    this.engine.addEventListener("change", () => this.remember());
    this.seek.addEventListener("change", () => (this.action.hidden = this.seek.value !== "action"));
    this.tab("runs");
    this.listen();
    void this.list().then((files) => this.restore(files)).catch(this.failed);
  }

  private listen(): void {
    server.listen({
      hello: (runs) => {
        this.message.hidden = true;
        this.runs.reset(runs);
        void this.language.begin(() => this.editor.documents()).catch(this.failed);
      },
      run: (run) => this.runs.update(run),
      language: (message) => this.language.receive(message),
      lost: (why) => this.failed(why ?? "The connection to the server is lost. The page reconnects when it is available again."),
    });
    listenToKeys(() => (this.runs.viewer ? [this.runs.viewer] : []));
    document.addEventListener("keydown", (e) => {
      if (!(e.ctrlKey || e.metaKey) || !["s", "Enter"].includes(e.key)) return;
      e.preventDefault();
      this.message.hidden = true;
      void Promise.resolve().then(() => (e.key === "s" ? this.save() : this.check())).catch(this.failed);
    }, true);
    addEventListener("beforeprint", () => this.runs.viewer?.print(true));
    addEventListener("afterprint", () => this.runs.viewer?.print(false));
    addEventListener("beforeunload", (e) => this.editor.unsaved().length > 0 && e.preventDefault());
  }

  /** Arrow keys switch between tabs. */
  private tabKey(e: KeyboardEvent): void {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
    const names = [...this.tabs.keys()];
    const at = names.findIndex((name) => this.tabs.get(name)?.button === e.target);
    const next = by === undefined || at < 0 ? undefined : names[(at + by + names.length) % names.length];
    if (next === undefined) return;
    e.preventDefault();
    this.tab(next);
    this.tabs.get(next)?.button.focus();
  }

  /** Shows a part of the page that is below the first screen of a narrow one. */
  private jump(): void {
    if (matchMedia("(max-width: 900px)").matches) this.right.scrollIntoView({ block: "start" });
  }

  private tab(name: string): void {
    for (const [other, { button, panel }] of this.tabs) {
      button.setAttribute("aria-selected", String(other === name));
      button.tabIndex = other === name ? 0 : -1;
      panel.hidden = other !== name;
    }
  }

  private async list(): Promise<string[]> {
    const { name, files, data, all } = await server.files();
    this.files.show(name, files, data, all);
    this.commands.list([...files, ...data]);
    const chosen = this.model.value;
    const models = [...files.filter(isModel), ...data];
    this.model.replaceChildren(...models.map((f) => h("option", { value: f, selected: f === chosen }, f)));
    return files;
  }

  /** Stores what the page shows, for the next time it is loaded. */
  private remember(): void {
    const shown = { file: this.editor.path, model: this.model.value, parameters: this.parameters.line, formula: this.formula.value, engine: this.engine.value, formulas: [...this.files.chosen], walk: this.walk.walk ? this.walk.saved() : null };
    try {
      sessionStorage.setItem("mu-check studio", JSON.stringify(shown));
    } catch {
      // Without storage, a reload begins anew.
    }
  }

  /** Shows what the page showed before it was loaded again; the first time, the first model. */
  private async restore(files: string[]): Promise<void> {
    let before: Partial<{ file: string; model: string; parameters: string; formula: string; engine: string; formulas: string[]; walk: { model: string; parameters: Record<string, string>; steps: Step[] } | null }> = {};
    try {
      before = JSON.parse(sessionStorage.getItem("mu-check studio") ?? "{}") as typeof before;
    } catch {
      // What cannot be read is not restored.
    }
    const first = files.find((f) => f === before.file) ?? files.find(isModel);
    this.parameters.line = before.parameters ?? "";
    this.formula.value = before.formula ?? "";
    this.engine.value = before.engine ?? "explicit";
    before.formulas?.filter((f) => files.includes(f)).forEach((f) => this.files.chosen.add(f));
    this.files.refresh();
    if (first !== undefined) await this.open(first);
    const { model } = before;
    if (model !== undefined && model !== this.model.value && [...this.model.options].some((o) => o.value === model)) {
      this.model.value = model;
      await this.declare();
    }
    const { walk } = before;
    if (!walk || !files.includes(walk.model)) return;
    await this.startWalk(walk.model, walk.parameters, true);
    await this.walk.replay(walk.steps);
  }

  /** Shows the parameters of the model. */
  private async declare(): Promise<void> {
    const model = this.model.value;
    const declared = this.files.isData(model) ? [] : await server.parameters(model).catch(() => []);
    if (model !== this.model.value) return;
    this.parameters.declare(declared);
    this.commands.propose(model);
  }

  /** Returns the machine of an interface: of its name, or the chosen model in its folder, or the only one there. */
  private machineOf(path: string): { model: string; parameters: Record<string, string> } | null {
    const folder = path.replace(/[^/]*$/, "");
    const all = [...this.model.options].map((o) => o.value).filter((m) => /\.(mcrl2|spec|cub|m)$/.test(m));
    const beside = all.filter((m) => m.startsWith(folder) && !m.slice(folder.length).includes("/"));
    const own = all.find((m) => m.replace(/\.\w+$/, "") === path.replace(/\.\w+$/, ""));
    const model = own ?? (beside.includes(this.model.value) ? this.model.value : beside.length === 1 ? beside[0] : undefined);
    if (model === undefined) return null;
    return { model, parameters: model === this.model.value ? this.parameters.known : {} };
  }

  /** Shows where a component performs an action. */
  private async toSource(model: string, component: string, action: string): Promise<void> {
    if (this.files.isData(model)) throw new Error(`\`${model}\` is no text.`);
    await this.open(model);
    if (!this.editor.find(component, action)) throw new Error(`\`${action}\` is not in the text of ${model}: an included or generated part has it.`);
  }

  private async open(path: string, range?: Range): Promise<void> {
    if (this.files.isData(path)) {
      this.model.value = path;
      if (!isLog(path)) {
        this.selectedData = path;
        this.files.refresh();
        return this.declare();
      }
    }
    this.selectedData = "";
    this.editor.show(path, this.editor.isOpen(path) ? "" : await server.read(path), isLog(path));
    if (range) this.editor.goto(range);
    if (isModel(path) || isLog(path)) {
      this.model.value = path;
      await this.declare();
    }
    this.remember();
  }

  private async create(): Promise<void> {
    const name = prompt("Name of the new file, such as model.mcrl2 or safety.mcf");
    if (!name) return;
    await server.write(name, "", null);
    await this.list();
    await this.open(name);
  }

  /** Saves all texts, because runs read the files. */
  private async save(): Promise<void> {
    for (const [path, text, before] of this.editor.unsaved()) {
      try {
        await server.write(path, text, before);
      } catch (why) {
        if (!(why instanceof server.Refused) || why.status !== server.CHANGED) throw why;
        this.conflict(path, text, await server.read(path));
        throw new Stopped();
      }
      this.editor.saved(path, text);
      this.help.forget(path);
      if (path === this.model.value) await this.declare();
    }
  }

  /** Offers what to do with a file that another program has changed. */
  private conflict(path: string, mine: string, theirs: string): void {
    const choose = (text: string, title: string, then: () => Promise<void> | void) =>
      h("button", { type: "button", title, click: () => void Promise.resolve().then(then).then(() => (this.message.hidden = true), this.failed) }, text);
    const compare = h("pre", { hidden: true }, difference(theirs, mine));
    const show = h("button", { type: "button", title: "Show the lines that differ", click: () => (compare.hidden = !compare.hidden) }, "Compare");
    this.message.hidden = false;
    this.message.replaceChildren(
      `Another program has changed ${path}. `,
      choose("Reload", "Take the text on disk; the changes made here are lost, but can be undone", () => this.editor.reload(path, theirs)),
      choose("Overwrite", "Write the text of the editor", async () => {
        await server.write(path, mine, theirs);
        this.editor.saved(path, mine);
      }),
      show,
      compare,
    );
  }

  private changed(): void {
    this.files.refresh();
    const path = this.editor.path;
    if (path === null) return;
    if (this.editor.isChanged(path)) {
      this.runs.touch(path);
      this.files.touch(path);
    }
    this.title.textContent = `${path}${this.editor.isChanged(path) ? " ●" : ""}`;
    const all = this.editor.problems(path);
    const items = all.slice(0, 50).map((p) => {
      const [line, column] = [p.range.start.line + 1, p.range.start.character + 1];
      const fixes = this.editor.fixes(path, p).flatMap((title) => [" ", h("button", { type: "button", class: "fix", click: () => void this.editor.mend(p, title) }, title)]);
      return h("li", { class: p.severity === 1 ? "error" : "quiet" }, h("button", { type: "button", click: () => this.editor.goto(p.range) }, `${line}:${column}`), ` ${p.message}`, ...fixes);
    });
    this.problems.replaceChildren(...(items.length > 0 ? items : [h("li", { class: "quiet" }, "No problems")]));
  }

  private defines(): Record<string, string> {
    return this.parameters.value;
  }

  /** Returns the engine, unless it is the default. */
  private how(): object {
    return this.engine.value === "explicit" ? {} : { engine: this.engine.value };
  }

  private async run(request: object): Promise<void> {
    await this.save();
    const run = await server.start({ model: this.model.value, ...request });
    this.runs.update(run);
    this.runs.select(run.id);
    this.tab("runs");
    this.jump();
  }

  /** Runs the chosen command of the list. */
  private other(): Promise<void> {
    const request = this.commands.request(this.model.value);
    return this.run(this.commands.hasParameters ? { ...request, defines: this.defines() } : request);
  }

  private async check(): Promise<void> {
    if (this.model.value.endsWith(".litmus")) return this.run({ kind: "litmus" });
    const texts = this.formula.value.trim() === "" ? [] : [this.formula.value];
    const formulas = [...this.files.chosen].sort();
    if (texts.length + formulas.length === 0) throw new Error("No formula is selected: select some on the left, or enter one.");
    await this.run({ kind: "check", formulas, texts, defines: this.defines(), ...this.how() });
  }

  private async explore(): Promise<void> {
    const action = this.action.value.trim();
    if (this.seek.value === "action" && action === "") throw new Error("Enter the action that Explore looks for.");
    const sought = this.seek.value === "" ? {} : this.seek.value === "action" ? { action } : { sought: this.seek.value };
    return this.run({ kind: "explore", defines: this.defines(), ...this.how(), ...sought });
  }

  private async sweep(): Promise<void> {
    return this.run({ kind: "sweep", formulas: [...this.files.chosen].sort(), defines: this.defines(), ...this.how() });
  }

  /** `silent`: without a change of the tab. */
  private async startWalk(model = this.model.value, defines = this.defines(), silent = false): Promise<void> {
    await this.save();
    await this.walk.start(model, defines);
    this.walkOf = [model, ...Object.entries(defines).map(([name, value]) => `${name}=${value}`)].join(" ");
    this.drawnOf = "";
    if (silent) return;
    this.tab("walk");
    this.jump();
  }

  /** Follows the walk, or the evidence, of a file. */
  private async loadWalk(file: File): Promise<void> {
    const saved = JSON.parse(await file.text()) as { model?: string; parameters?: Record<string, string>; steps?: Step[] };
    if (!Array.isArray(saved.steps)) throw new Error(`${file.name} has no steps: save a walk, or evidence as JSON.`);
    const model = [...this.model.options].some((o) => o.value === saved.model) ? (saved.model ?? "") : this.model.value;
    // The parameters of evidence are those of the linear process.
    const parameters = saved.parameters && !Array.isArray(saved.parameters) ? saved.parameters : this.defines();
    await this.walkAlong(model, parameters, saved.steps);
  }

  private async walkAlong(model: string, parameters: Record<string, string>, steps: Step[]): Promise<void> {
    await this.startWalk(model, parameters);
    const taken = await this.walk.replay(steps);
    if (taken < steps.length) throw new Error(`The model has no step ${taken + 1} of this run: the file has changed.`);
  }

  /** Shows the path of the simulator in the picture of all states. */
  private async drawPath(name: string): Promise<void> {
    this.system.withoutQuotient();
    await this.draw();
    const { path } = this.walk;
    const title = name.charAt(0).toUpperCase() + name.slice(1);
    if (this.system.follow(path, title) === path.length) return;
    await this.draw(false, true);
    const shown = this.system.follow(path, title);
    if (shown < path.length) throw new Error(`The picture has the first ${shown} of ${path.length} steps: the states of the others are not drawn.`);
  }

  /** Draws the system of the current simulator; `anew`: of the current model. */
  private async draw(anew = false, more = false): Promise<void> {
    if (anew || this.walk.walk === null) await this.startWalk();
    const walk = this.walk.walk?.walk;
    if (walk === undefined) return;
    this.tab("system");
    const reduce = this.system.reduce;
    const request = reduce === null ? { graph: STATES[more ? 1 : 0] } : { graph: STATES[1], reduce };
    const key = `${walk} ${JSON.stringify(request)}`;
    if (key === this.drawnOf) return;
    this.drawnOf = "";
    const title = `${this.walkOf}${reduce === null ? "" : `, ${reduce} quotient`}`;
    try {
      this.jump();
      this.system.show(await server.ask<server.System>(walk, request), title, this.walk.walk, reduce === null && !more);
    } catch (why) {
      return this.system.clear(title, why instanceof Error ? why.message : String(why));
    }
    this.drawnOf = key;
  }
}

const app = document.getElementById("app");
if (app) new Studio().begin(app);
