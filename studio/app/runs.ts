// Runs: active runs with progress and a stop button, and the result of the selected run, displayed
// as in reports.

import { bytes, count, h, plural, saveFile, seconds, verdict } from "../src/dom";
import { isMurphi, murphiRun } from "../src/murphi";
import { conclusionOf } from "../src/others";
import { editor } from "../src/places";
import type { Run } from "../src/run";
import { section } from "../src/shown";
import type { Check, Conform, Explore, Litmus, Murphi, Shown, Step, Verdict } from "../src/types";
import { Viewer } from "../src/viewer";
import { report, result, stop, type RunState } from "./server";

interface Refusal {
  error?: { message: string; place: { file: string; line: number; column: number; text: string } | null; notes: string[] };
}

/** List element of a run. It remains the same element, because redrawn elements cannot be clicked. */
interface Row {
  element: HTMLElement;
  name: HTMLButtonElement;
  bar: HTMLElement;
  said: HTMLElement;
  stop: HTMLButtonElement;
  answer: HTMLElement;
  seconds: HTMLElement;
}

/** Commands with a verdict as exit code, and the words for true and false. */
const JUDGED: Record<string, [string, string]> = {
  conform: ["conforms", "does not conform"],
  trace: ["allowed", "forbidden"],
  prove: ["safe", "not safe"],
  program: ["safe", "not safe"],
  robust: ["robust", "not robust"],
  compare: ["equal", "different"],
};

/** Commands with an answer in the result alone. */
const READ = ["conform", "litmus"];

/** The words of a result for the list of runs. */
function answerOf(kind: string, value: object): [Verdict, string] | null {
  if (kind === "conform" && "models" in value) return conclusionOf(value as Conform);
  const tests = kind === "litmus" ? ((value as Litmus).tests ?? []) : [];
  const [first] = tests;
  if (!first) return null;
  if (tests.length === 1) return first.verdict ? [first.verdict, first.herd ?? first.verdict] : null;
  const { summary } = value as Litmus;
  return summary ? [summary.no > 0 ? "false" : summary.unknown + summary.refused > 0 ? "unknown" : "true", `${summary.ok} of ${summary.tests} Ok`] : null;
}

/** Phrases an error of the command line in terms of the page. */
export function pageWords(text: string): string {
  return text
    .replace(/`-D ([A-Za-z_]\w*=[^`]*)`/g, "`$1` in *Parameters*")
    .replace(/`--(operations|interface|against|machine|engine)(?: ([^`]*))?`/g, (_, name: string, value?: string) => `*${name.charAt(0).toUpperCase()}${name.slice(1)}*${value ? ` ${value}` : ""}`)
    .replace(/`--(deadlock|divergence)`/g, "*Explore for a $1*");
}

const isOver = (run: RunState) => run.state === "over" || run.state === "stopped";

/** The paths of a result that the simulator can follow, with their names. */
function runsOf(kind: string, value: object): { name: string; steps: Step[] }[] {
  if (kind === "check") {
    const linear = ((value as Check).results ?? []).filter((r) => r.evidence.length > 0 && r.linear !== false && r.evidence_left_out === 0);
    return linear.map((r) => ({ name: `${r.verdict === "true" ? "the witness" : "the counterexample"} of ${r.formula}`, steps: r.evidence }));
  }
  if (kind !== "explore") return [];
  const explore = value as Explore | Murphi;
  if (isMurphi(explore)) {
    const run = murphiRun(explore);
    return run ? [{ name: "the run to the failure", steps: run.steps }] : [];
  }
  const ways = (explore.ways ?? []).slice(0, 5).filter((w) => w.linear && w.steps.length > 0);
  return ways.map((w, i) => ({ name: `${ways.length > 1 ? `path ${i + 1}` : "the path"} to ${explore.sought === "action" ? `the action ${explore.action}` : `the ${explore.sought}`}`, steps: w.steps }));
}

export class RunsPanel {
  readonly element = h("div", { class: "runs" });
  /** The viewer of the displayed result. */
  viewer: Viewer | null = null;
  private readonly runs = new Map<number, RunState>();
  private readonly list = h("ul", { class: "run-list", "aria-label": "Runs" });
  private readonly place = h("div", { class: "result-place", "aria-live": "polite" });
  private readonly rows = new Map<number, Row>();
  private readonly nothing = h("li", { class: "quiet" }, "No runs yet. Open a model, select formulas on the left, and press Check.");
  private selected = -1;
  /** The displayed state of the selected run; it is redrawn only after changes. */
  private shown = "";

  /** Answers that are read in results; null: not known yet. */
  private readonly answers = new Map<number, [Verdict, string] | null>();
  /** Runs that read a file which has changed since. */
  private readonly stale = new Set<number>();

  /** Marks the ended runs that read a file as stale. */
  touch(path: string): void {
    for (const run of this.runs.values()) {
      const words = run.command.split(" ");
      if (!isOver(run) || this.stale.has(run.id) || !words.includes(path)) continue;
      this.stale.add(run.id);
      const row = this.rows.get(run.id);
      if (row) this.refresh(row, run);
      if (run.id === this.selected) this.note(true);
    }
  }

  /** Shows or hides the note that the displayed result is stale. */
  private note(shown: boolean): void {
    this.place.querySelector(".stale")?.remove();
    if (shown) this.place.prepend(h("p", { class: "stale" }, "A file of this run has changed since: the result may not be that of the text in the editor."));
  }

  /** `walk`: callback to step along a counterexample; `drawPath`: callback to draw it; `goto`: callback to show a place in a file. */
  constructor(
    private readonly walk: (model: string, parameters: Record<string, string>, steps: Step[]) => void,
    private readonly drawPath: (model: string, parameters: Record<string, string>, steps: Step[], name: string) => void,
    private readonly goto: (file: string, line: number, column: number, length: number) => void,
    find: (model: string, component: string, action: string) => void,
    private readonly judged: (verdicts: [string, string][]) => void,
    private readonly failed: (why: unknown) => void,
  ) {
    this.element.append(this.list, this.place);
    editor.open = goto;
    editor.find = find;
    this.drawList();
  }

  reset(runs: RunState[]): void {
    this.runs.clear();
    runs.forEach((run) => this.runs.set(run.id, run));
    this.drawList();
    this.follow();
  }

  /** Updates of the server by event and by answer may arrive in any order. */
  update(run: RunState): void {
    if ((this.runs.get(run.id)?.version ?? -1) > run.version) return;
    this.runs.set(run.id, run);
    if (isOver(run) && run.kind === "check") this.judged(run.verdicts.map((v) => [v.formula, v.verdict]));
    this.drawList();
    if (run.id === this.selected) this.follow();
  }

  select(id: number): void {
    if (this.selected === id) return;
    this.selected = id;
    this.shown = "";
    this.drawList();
    this.follow();
  }

  /** Updates the list. The newest run is first. */
  private drawList(): void {
    for (const [id, row] of this.rows) {
      if (this.runs.has(id)) continue;
      row.element.remove();
      this.rows.delete(id);
    }
    for (const run of this.runs.values()) {
      const known = this.rows.get(run.id);
      const row = known ?? this.row(run);
      if (known === undefined) {
        this.rows.set(run.id, row);
        this.list.prepend(row.element);
      }
      this.refresh(row, run);
    }
    if (this.rows.size > 0) this.nothing.remove();
    else this.list.append(this.nothing);
  }

  private row(run: RunState): Row {
    const name = h("button", { type: "button", class: "open", click: () => this.select(run.id) }, `${run.id}. ${run.kind} ${run.model}`);
    const bar = h("progress", { "aria-label": "under way" });
    const said = h("span", { class: "quiet" });
    const end = h("button", { type: "button", class: "stop", click: () => void stop(run.id).catch(this.failed) });
    const [answer, took] = [h("span"), h("span", { class: "quiet" })];
    return { element: h("li", {}, name, " ", answer, bar, said, end, took), name, bar, said, stop: end, answer, seconds: took };
  }

  /** Updates a run's row. */
  private refresh(row: Row, run: RunState): void {
    const over = isOver(run);
    row.element.classList.toggle("is-selected", run.id === this.selected);
    row.element.classList.toggle("is-stale", this.stale.has(run.id));
    row.name.setAttribute("aria-pressed", String(run.id === this.selected));
    row.bar.hidden = row.said.hidden = row.stop.hidden = over;
    row.answer.hidden = !over;
    row.seconds.textContent = ` ${seconds(run.seconds)}`;
    if (over) {
      row.answer.replaceChildren(run.state === "stopped" ? verdict("unknown", "stopped") : this.answer(run));
      return;
    }
    const p = run.progress;
    const parts = [run.kind === "sweep" ? run.said.at(-1) : p.stage, p.states !== undefined && `${count(p.states)} states`, p.waiting !== undefined && `${count(p.waiting)} waiting`, p.memory_bytes !== undefined && bytes(p.memory_bytes)];
    row.said.textContent = parts.filter(Boolean).join(", ");
    row.stop.disabled = run.state === "stopping";
    row.stop.textContent = run.state === "stopping" ? "Stopping" : "Stop";
  }

  private answer(run: RunState): HTMLElement {
    const known = run.verdicts.map((v) => v.verdict);
    if (run.code === 2 || run.code === 4 || run.code === null) return verdict("unknown", "error");
    if (run.kind === "check" && known.length > 0) {
      const bad = known.filter((v) => v === "false").length;
      if (known.length === 1) return verdict(known[0]);
      return bad > 0 ? verdict("false", `${bad} of ${known.length} false`) : known.includes("unknown") ? verdict("unknown") : verdict("true", `all ${known.length} true`);
    }
    if (READ.includes(run.kind) && run.has_result) {
      const known = this.answers.get(run.id);
      if (known === undefined) this.ask(run);
      else if (known !== null) return verdict(...known);
    }
    const words = JUDGED[run.kind];
    if (words) return run.code === 3 ? verdict("unknown") : verdict(run.code === 0 ? "true" : "false", words[run.code === 0 ? 0 : 1]);
    const sought = /--(deadlock|divergence|action)\b/.exec(run.command)?.[1];
    if (run.kind === "explore" && sought && run.code !== 3) return verdict(run.code === 0 ? "true" : "false", run.code === 0 ? `no ${sought}` : `${sought} found`);
    if (run.kind === "explore" && run.model.endsWith(".m") && run.code !== 3) return verdict(run.code === 0 ? "true" : "false", run.code === 0 ? "no failure" : "failure found");
    return run.code === 3 ? verdict("unknown", "not complete") : h("span", { class: "quiet" }, "done");
  }

  /** Reads the answer of a run in its result, once. */
  private ask(run: RunState): void {
    this.answers.set(run.id, null);
    void result(run.id).then((whole) => {
      this.answers.set(run.id, answerOf(run.kind, (whole.result ?? {}) as object));
      const row = this.rows.get(run.id);
      if (row) this.refresh(row, run);
    }, this.failed);
  }

  /** Fetches and displays the selected run. */
  private follow(): void {
    const run = this.runs.get(this.selected);
    if (!run) {
      this.place.replaceChildren();
      return;
    }
    // The rows of a sweep arrive during the run; other results at the end.
    const now = `${run.id} ${run.has_result} ${isOver(run)} ${run.rows} ${run.verdicts.length}`;
    if (now === this.shown) return;
    this.shown = now;
    if (!run.has_result) {
      this.place.replaceChildren(...this.soFar(run));
      return;
    }
    void result(run.id).then((whole) => whole.id === this.selected && this.draw(whole), this.failed);
  }

  /** Output of a run without a result: verdicts so far; for an ended run, its progress. */
  private soFar(run: RunState): HTMLElement[] {
    const parts: HTMLElement[] = [h("p", { class: "quiet" }, run.command)];
    if (run.verdicts.length > 0) {
      const rows = run.verdicts.map((v) => h("tr", {}, h("th", { scope: "row" }, v.formula), h("td", {}, verdict(v.verdict))));
      parts.push(h("table", { class: "results" }, h("tbody", {}, ...rows)));
    }
    if (!isOver(run)) return parts;
    if (run.state === "stopped") {
      const p = run.progress;
      const far = [p.states !== undefined && `${plural(p.states, "state")} so far`, p.transitions !== undefined && `${plural(p.transitions, "transition")}`, p.level !== undefined && `level ${count(p.level)}`];
      parts.push(h("p", {}, verdict("unknown"), ` Stopped${p.stage === undefined ? "" : ` while ${p.stage}`}: ${far.filter(Boolean).join(", ") || "nothing was found yet"}.`));
    }
    const said = [run.failed ?? "", ...run.said].filter(Boolean);
    if (said.length > 0) parts.push(h("pre", { class: "error" }, said.join("\n")));
    return parts;
  }

  private draw(run: RunState): void {
    const value = run.result as Refusal & Record<string, unknown>;
    if (value.error && !("results" in value)) {
      this.place.replaceChildren(this.refusal(run, value.error));
      this.note(this.stale.has(run.id));
      return;
    }
    const all: Run[] = [];
    const viewer = new Viewer(() => all);
    this.viewer = viewer;
    editor.model = run.model;
    if (run.kind === "check") this.judged((value as unknown as Check).results.map((r) => [r.formula, r.error ? "error" : r.verdict]));
    const shown = section({ kind: run.kind, file: run.model, value } as unknown as Shown, viewer, all);
    const save = h("button", { type: "button", title: "One self-contained file that opens in any browser, without a network", click: () => void this.save(run).catch(this.failed) }, "Save as a page");
    const walks = h("p", { class: "walks" }, ...this.walks(run.kind, value), save);
    const said = run.said.map(pageWords);
    const messages = said.length > 0 ? h("details", { class: "messages", open: said.length <= 3 && run.kind !== "check" }, h("summary", {}, plural(said.length, "message")), h("pre", {}, said.join("\n"))) : null;
    this.place.replaceChildren(...[walks, shown, messages].filter((e) => e !== null));
    this.note(this.stale.has(run.id));
  }

  /** Buttons to step along the evidence of formulas in the simulator, and to see it in the picture. */
  private walks(kind: string, value: object): HTMLElement[] {
    const { model = "", parameters = {} } = value as Check;
    return runsOf(kind, value).flatMap(({ name, steps }) => {
      const button = (text: string, then: () => void) => h("button", { type: "button", click: then }, text);
      return [button(`Walk along ${name}`, () => this.walk(model, parameters, steps)), button(`Draw ${name}`, () => this.drawPath(model, parameters, steps, name))];
    });
  }

  /** Downloads the result as a file. */
  private async save(run: RunState): Promise<void> {
    const name = run.model.replace(/^.*\//, "").replace(/\.\w+$/, "");
    saveFile(new Blob([await report(run.id)], { type: "text/html" }), `${name}-${run.kind}.html`);
  }

  private refusal(run: RunState, error: NonNullable<Refusal["error"]>): HTMLElement {
    const { place } = error;
    const where = place && h("button", { type: "button", click: () => this.goto(place.file, place.line, place.column, place.text.length) }, `${place.file}:${place.line}:${place.column}`);
    return h("section", { class: "result refusal" }, h("h2", {}, `${run.kind}: ${run.model}`), h("p", { class: "error" }, pageWords(error.message)), where && h("p", {}, where), ...error.notes.map((n) => h("p", { class: "quiet" }, pageWords(n))));
  }
}
