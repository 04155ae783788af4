// Editor: texts of files with the language server's problems, quick fixes, colours, completion and
// hovers.

import { autocompletion, closeBrackets, snippet, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching } from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics, type Diagnostic } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { EditorState, StateEffect, StateField, type Text } from "@codemirror/state";
import { Decoration, EditorView, hoverTooltip, keymap, lineNumbers, type DecorationSet } from "@codemirror/view";
import { h } from "../src/dom";
import { occurrences, simpleTokens } from "./tokens";
import { isInterface, type InterfaceHelp } from "./interface";
import type { Fix, Language, Position, Problem, Range } from "./language";

/** Delay between an edit and the message to the server. */
const PAUSE = 120;
/** The nonce that the content security policy requires for styles of the editor. */
const NONCE = document.body.dataset["nonce"] ?? "";

interface Open {
  state: EditorState;
  /** The last saved text of the file, as known to the page. */
  saved: string;
  problems: Problem[];
  /** Quick fixes of the problems. */
  fixes: Fix[];
}

const isOf = (fix: Fix, problem: Problem) => fix.diagnostics.some((d) => d.message === problem.message && JSON.stringify(d.range) === JSON.stringify(problem.range));

const place = (doc: Text, at: Position) => {
  if (at.line >= doc.lines) return doc.length;
  const line = doc.line(at.line + 1);
  return Math.min(line.to, line.from + at.character);
};
const position = (doc: Text, at: number): Position => {
  const line = doc.lineAt(at);
  return { line: line.number - 1, character: at - line.from };
};

const setColours = StateEffect.define<DecorationSet>();
const colours = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update: (old, change) => change.effects.reduce((now, e) => (e.is(setColours) ? e.value : now), old.map(change.changes)),
  provide: (field) => EditorView.decorations.from(field),
});

/** Formats the text of a hover: code between fences, and words. */
function hoverText(markdown: string): HTMLElement {
  const parts = markdown.split(/```\w*\n([\s\S]*?)\n```/).map((part, i) => (i % 2 === 1 ? h("code", {}, part) : h("span", {}, part.replaceAll("\n---\n", "").trim())));
  return h("div", { class: "hover" }, ...parts.filter((p) => p.textContent !== ""));
}

export class Editor {
  readonly element = h("div", { class: "editor" });
  path: string | null = null;
  private readonly open = new Map<string, Open>();
  private readonly view: EditorView;
  private later: ReturnType<typeof setTimeout> | undefined;

  /** `changed`: callback for changes of texts and problems; `follow`: callback to open another file. */
  constructor(
    private readonly language: Language,
    private readonly changed: () => void,
    private readonly follow: (path: string, range: Range) => void,
    private readonly help: InterfaceHelp,
  ) {
    this.view = new EditorView({ parent: this.element, state: EditorState.create({ extensions: [EditorView.cspNonce.of(NONCE), EditorState.readOnly.of(true)] }) });
  }

  /** Shows a file; `text` is the text on disk, for a file that is not open yet. */
  show(path: string, text: string, readOnly = false): void {
    this.keep();
    const known = this.open.get(path);
    const one = known ?? { state: this.fresh(text, readOnly), saved: text, problems: [], fixes: [] };
    this.open.set(path, one);
    this.path = path;
    this.view.setState(one.state);
    if (!known) this.language.open(path, text);
    if (isInterface(path)) this.help.edited(path, this.view.state.doc.toString());
    this.mark();
    this.colour();
    this.changed();
  }

  /** Replaces the text of an open file by that on disk. */
  reload(path: string, text: string): void {
    const one = this.open.get(path);
    if (!one) return;
    one.saved = text;
    if (path === this.path) {
      this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text } });
      this.sendEdits();
    } else {
      one.state = this.fresh(text);
      this.language.change(path, text);
    }
    this.changed();
  }

  isOpen(path: string): boolean {
    return this.open.has(path);
  }

  isChanged(path: string): boolean {
    const one = this.open.get(path);
    return one !== undefined && this.textOf(path) !== one.saved;
  }

  /** Returns the unsaved files: path, text, saved text. */
  unsaved(): [string, string, string][] {
    return [...this.open].map(([path, one]): [string, string, string] => [path, this.textOf(path), one.saved]).filter(([, text, saved]) => text !== saved);
  }

  documents(): [string, string][] {
    return [...this.open.keys()].map((path) => [path, this.textOf(path)]);
  }

  saved(path: string, text: string): void {
    const one = this.open.get(path);
    if (one) one.saved = text;
    this.language.saved(path);
    this.changed();
  }

  problems(path: string): Problem[] {
    return this.open.get(path)?.problems ?? [];
  }

  setProblems(path: string, problems: Problem[]): void {
    const one = this.open.get(path);
    if (!one) return;
    [one.problems, one.fixes] = [problems, []];
    if (path === this.path) {
      this.mark();
      this.colour();
    }
    this.changed();
    if (problems.length > 0) void this.seekFixes(path, one, problems);
  }

  /** Returns the titles of the quick fixes of a problem. */
  fixes(path: string, problem: Problem): string[] {
    return (this.open.get(path)?.fixes ?? []).filter((f) => isOf(f, problem)).map((f) => f.title);
  }

  /** Applies the quick fix with a title. The server is queried again, because its last answer may belong to an older text. */
  async mend(problem: Problem, title: string): Promise<void> {
    const path = this.path;
    if (!path) return;
    this.sendEdits();
    const doc = this.view.state.doc;
    const fix = (await this.language.fixes(path, problem.range)).find((f) => f.title === title && isOf(f, problem));
    if (!fix || path !== this.path || this.view.state.doc !== doc) return;
    const edits = Object.values(fix.edit.changes).flat();
    this.view.dispatch({ changes: edits.map((e) => ({ from: place(doc, e.range.start), to: place(doc, e.range.end), insert: e.newText })) });
    this.view.focus();
  }

  goto(range: Range): void {
    const doc = this.view.state.doc;
    const at = place(doc, range.start);
    this.view.dispatch({ selection: { anchor: at, head: Math.max(at, place(doc, range.end)) }, effects: EditorView.scrollIntoView(at, { y: "center" }) });
    this.view.focus();
  }

  async format(): Promise<void> {
    const path = this.path;
    if (!path) return;
    this.sendEdits();
    const edits = (await this.language.formatting(path)) ?? [];
    const doc = this.view.state.doc;
    if (path === this.path && edits.length > 0) {
      this.view.dispatch({ changes: edits.map((e) => ({ from: place(doc, e.range.start), to: place(doc, e.range.end), insert: e.newText })) });
    }
  }

  private textOf(path: string): string {
    return (path === this.path ? this.view.state : this.open.get(path)?.state)?.doc.toString() ?? "";
  }

  private keep(): void {
    const one = this.path === null ? undefined : this.open.get(this.path);
    if (!one) return;
    this.sendEdits();
    one.state = this.view.state;
  }

  private fresh(text: string, readOnly = false): EditorState {
    return EditorState.create({
      doc: text,
      extensions: [
        EditorState.readOnly.of(readOnly),
        EditorView.cspNonce.of(NONCE),
        lineNumbers(),
        EditorView.lineWrapping,
        history(),
        bracketMatching(),
        closeBrackets(),
        highlightSelectionMatches(),
        lintGutter(),
        colours,
        autocompletion({ override: [(c) => this.complete(c)] }),
        hoverTooltip((view, at) => this.hover(view, at)),
        EditorView.contentAttributes.of({ "aria-label": "Text of the file" }),
        EditorView.updateListener.of((u) => u.docChanged && this.edited()),
        keymap.of([
          { key: "F12", run: () => this.jump() },
          { key: "Mod-.", run: () => this.mendHere() },
          { key: "Shift-Alt-f", run: () => (void this.format(), true) },
          ...lintKeymap,
          ...searchKeymap,
          ...historyKeymap,
          ...defaultKeymap,
          indentWithTab,
        ]),
      ],
    });
  }

  private async seekFixes(path: string, one: Open, problems: Problem[]): Promise<void> {
    const last = problems.reduce((line, p) => Math.max(line, p.range.end.line), 0);
    const fixes = await this.language.fixes(path, { start: { line: 0, character: 0 }, end: { line: last + 1, character: 0 } });
    if (one.problems !== problems || fixes.length === 0) return;
    one.fixes = fixes;
    if (path === this.path) this.mark();
    this.changed();
  }

  /** Goes to where a component performs an action: the next place in its process, or else in the text. Returns false if there is none. */
  find(component: string, action: string): boolean {
    const text = this.view.state.doc.toString();
    const [name, process] = [action.replace(/\(.*/, ""), component.replace(/\(.*/, "")];
    const places = occurrences(text, process, name);
    const head = this.view.state.selection.main.from;
    const at = places.find((p) => p > head) ?? places[0];
    if (at === undefined) return false;
    this.goto({ start: position(this.view.state.doc, at), end: position(this.view.state.doc, at + name.length) });
    return true;
  }

  /** Applies the first quick fix in the cursor's line. */
  private mendHere(): boolean {
    const path = this.path ?? "";
    const line = position(this.view.state.doc, this.view.state.selection.main.head).line;
    const problem = this.problems(path).find((p) => p.range.start.line <= line && line <= p.range.end.line && this.fixes(path, p).length > 0);
    const title = problem && this.fixes(path, problem)[0];
    if (problem && title) void this.mend(problem, title);
    return title !== undefined;
  }

  private edited(): void {
    clearTimeout(this.later);
    this.later = setTimeout(() => this.sendEdits(), PAUSE);
    this.changed();
  }

  /** Sends pending edits to the server. */
  private sendEdits(): void {
    if (this.later === undefined || this.path === null) return;
    clearTimeout(this.later);
    this.later = undefined;
    this.language.change(this.path, this.view.state.doc.toString());
    if (isInterface(this.path)) this.help.edited(this.path, this.view.state.doc.toString());
    this.colour();
  }

  private mark(): void {
    const doc = this.view.state.doc;
    const severity = (["error", "error", "warning", "info", "hint"] as const);
    const path = this.path ?? "";
    const list = this.problems(path).map((p): Diagnostic => {
      const from = place(doc, p.range.start);
      const actions = this.fixes(path, p).map((name) => ({ name, apply: () => void this.mend(p, name) }));
      return { from, to: Math.max(from, place(doc, p.range.end)), severity: severity[p.severity] ?? "error", message: p.message, actions };
    });
    this.view.dispatch(setDiagnostics(this.view.state, list));
  }

  private async colour(): Promise<void> {
    const path = this.path;
    if (!path) return;
    const tokens = await this.language.semanticTokens(path);
    const doc = this.view.state.doc;
    // Text typed meanwhile is coloured with the next answer.
    if (path !== this.path || this.later !== undefined) return;
    if (!tokens) {
      const marks = simpleTokens(path, doc.toString()).map(({ from, to, kind }) => Decoration.mark({ class: `tok-${kind}` }).range(from, to));
      if (marks.length > 0) this.view.dispatch({ effects: setColours.of(Decoration.set(marks, true)) });
      return;
    }
    const marks = [];
    let [line, column] = [0, 0];
    for (let i = 0; i + 4 < tokens.data.length; i += 5) {
      const [down, right, length, kind] = tokens.data.slice(i, i + 4) as [number, number, number, number];
      column = down > 0 ? right : column + right;
      line += down;
      const from = place(doc, { line, character: column });
      const to = Math.min(doc.length, from + length);
      const name = this.language.colours[kind];
      if (name && to > from) marks.push(Decoration.mark({ class: `tok-${name}` }).range(from, to));
    }
    this.view.dispatch({ effects: setColours.of(Decoration.set(marks, true)) });
  }

  private async hover(view: EditorView, at: number) {
    const path = this.path;
    if (!path) return null;
    const found = await this.language.hover(path, position(view.state.doc, at));
    if (!found) return null;
    const doc = view.state.doc;
    return { pos: place(doc, found.range.start), end: place(doc, found.range.end), create: () => ({ dom: hoverText(found.contents.value) }) };
  }

  private async complete(context: CompletionContext): Promise<CompletionResult | null> {
    const word = context.matchBefore(/[\w']*$/);
    const macro = context.matchBefore(/\$$/);
    if (!this.path || (!context.explicit && !macro && (!word || word.from === word.to))) return null;
    this.sendEdits();
    const items = isInterface(this.path) ? this.help.completion() : await this.language.completion(this.path, position(context.state.doc, context.pos));
    if (!items || items.length === 0) return null;
    const options = items.map((i) => {
      const apply = i.insertTextFormat === 2 ? snippet((i.insertText ?? i.label).replace(/\$\{\d+:([^}]*)\}/g, "#{$1}").replace("$0", "#{}")) : undefined;
      return { label: i.label, ...(i.detail ? { detail: i.detail } : {}), ...(i.documentation ? { info: i.documentation } : {}), ...(apply ? { apply } : {}), boost: -Number(i.sortText?.[0] ?? 0) };
    });
    return { from: word?.from ?? context.pos, options, validFor: /^[\w']*$/ };
  }

  private jump(): boolean {
    const path = this.path;
    if (!path) return false;
    void this.language.definition(path, position(this.view.state.doc, this.view.state.selection.main.head)).then((found) => found && this.follow(found.path, found.range));
    return true;
  }
}
