// Runs: active runs with progress and a stop button, and the result of the selected run, displayed
// as in reports.

import { bytes, count, h, plural, saveFile, seconds, verdict } from "../src/dom";
import type { Run } from "../src/run";
import { section } from "../src/shown";
import type { Check, Shown, Step } from "../src/types";
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

/** Commands with a view of their own for results, and with a page. */
const REPORTED = ["check", "explore", "sweep", "litmus", "conform"];

/** Commands with a verdict as exit code. */
const JUDGED = ["conform", "trace", "prove", "program", "robust", "compare"];

const isOver = (run: RunState) => run.state === "over" || run.state === "stopped";

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
    private readonly failed: (why: unknown) => void,
  ) {
    this.element.append(this.list, this.place);
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
    if (JUDGED.includes(run.kind)) return run.code === 3 ? verdict("unknown") : verdict(run.code === 0 ? "true" : "false", run.code === 0 ? "holds" : "fails");
    return run.code === 3 ? verdict("unknown", "not complete") : h("span", { class: "quiet" }, "done");
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
    const kind = REPORTED.includes(run.kind) ? run.kind : "other";
    const shown = section({ kind, title: run.kind, file: null, value } as unknown as Shown, viewer, all);
    const save = h("button", { type: "button", title: "One self-contained file that opens in any browser, without a network", click: () => void this.save(run).catch(this.failed) }, "Save as a page");
    const walks = h("p", { class: "walks" }, kind === "other" ? null : save, ...(run.kind === "check" ? this.walks(value as unknown as Check) : []));
    const messages = run.said.length > 0 ? h("details", { class: "messages" }, h("summary", {}, plural(run.said.length, "message")), h("pre", {}, run.said.join("\n"))) : null;
    this.place.replaceChildren(...[walks, shown, messages].filter((e) => e !== null));
    this.note(this.stale.has(run.id));
  }

  /** Buttons to step along the evidence of formulas in the simulator, and to see it in the picture. */
  private walks(check: Check): HTMLElement[] {
    const linear = check.results.filter((r) => r.evidence.length > 0 && r.linear !== false && r.evidence_left_out !== undefined && r.evidence_left_out === 0);
    const parameters = check.parameters ?? {};
    const buttons = (r: Check["results"][number]) => {
      const name = `${r.verdict === "true" ? "the witness" : "the counterexample"} of ${r.formula}`;
      const button = (text: string, then: () => void) => h("button", { type: "button", click: then }, text);
      return [
        button(`Walk along ${name}`, () => this.walk(check.model ?? "", parameters, r.evidence)),
        button(`Draw ${name}`, () => this.drawPath(check.model ?? "", parameters, r.evidence, name)),
      ];
    };
    return linear.flatMap(buttons);
  }

  /** Downloads the result as a file. */
  private async save(run: RunState): Promise<void> {
    const name = run.model.replace(/^.*\//, "").replace(/\.\w+$/, "");
    saveFile(new Blob([await report(run.id)], { type: "text/html" }), `${name}-${run.kind}.html`);
  }

  private refusal(run: RunState, error: NonNullable<Refusal["error"]>): HTMLElement {
    const { place } = error;
    const where = place && h("button", { type: "button", click: () => this.goto(place.file, place.line, place.column, place.text.length) }, `${place.file}:${place.line}:${place.column}`);
    return h("section", { class: "result refusal" }, h("h2", {}, `${run.kind}: ${run.model}`), h("p", { class: "error" }, error.message), where && h("p", {}, where), ...error.notes.map((n) => h("p", { class: "quiet" }, n)));
  }
}
