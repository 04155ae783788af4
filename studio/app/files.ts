// Files of the folder as a tree: models can be opened, formulas can also be selected for checks. The
// last verdict of a formula stands beside its name.

import { h, verdict } from "../src/dom";

export const isFormula = (path: string) => path.endsWith(".mcf");
export const isModel = (path: string) => /\.(mcrl2|spec|cub|asm|litmus|m|lps|aut|aut\.gz|blts|lts|fsm)$/.test(path);
/** Logs are text; the server does not write them. */
export const isLog = (path: string) => /\.(axe|log|csv|jsonl|trace)$/.test(path);

interface Folder {
  path: string;
  folders: Map<string, Folder>;
  files: string[];
}

/** Builds the tree of some paths. */
function tree(paths: string[]): Folder {
  const root: Folder = { path: "", folders: new Map(), files: [] };
  for (const path of paths) {
    let at = root;
    for (const name of path.split("/").slice(0, -1)) {
      let next = at.folders.get(name);
      if (!next) at.folders.set(name, (next = { path: at.path === "" ? name : `${at.path}/${name}`, folders: new Map(), files: [] }));
      at = next;
    }
    at.files.push(path);
  }
  return root;
}

export class FilesPanel {
  readonly element = h("nav", { class: "files", "aria-label": "Files" });
  readonly chosen = new Set<string>();
  private files: string[] = [];
  private data = new Set<string>();
  /** Folders that the user has closed. */
  private readonly closed = new Set<string>();
  /** The last verdicts of formulas; old ones are those of another text. */
  private readonly verdicts = new Map<string, { word: string; old: boolean }>();

  constructor(
    private readonly open: (path: string) => void,
    private readonly create: () => void,
    private readonly about: (path: string) => { current: boolean; changed: boolean; errors: number },
  ) {}

  show(name: string | null, files: string[], data: string[], all: boolean): void {
    this.files = [...files, ...data].sort();
    this.data = new Set(data);
    const title = h("h2", {}, name ?? "Files");
    const more = all ? null : h("p", { class: "quiet" }, "Only the first files are listed.");
    const add = h("button", { type: "button", click: () => this.create() }, "New file");
    const box = h("input", { type: "checkbox", class: "every" });
    box.addEventListener("change", () => {
      this.files.filter(isFormula).forEach((f) => (box.checked ? this.chosen.add(f) : this.chosen.delete(f)));
      this.refresh();
    });
    const every = files.some(isFormula) ? h("label", { class: "all-formulas" }, box, " All formulas") : null;
    const list = h("ul", { class: "tree" });
    this.element.replaceChildren(...[title, every, list, add, more].filter((e) => e !== null));
    for (const path of [...this.chosen]) if (!files.includes(path)) this.chosen.delete(path);
    this.refresh();
  }

  isData(path: string): boolean {
    return this.data.has(path);
  }

  /** Shows the verdicts of formulas beside their names. */
  judged(verdicts: [string, string][]): void {
    verdicts.forEach(([formula, word]) => this.verdicts.set(formula, { word, old: false }));
    this.refresh();
  }

  /** Marks verdicts as old: of a formula, or all if a model has changed. */
  touch(path: string): void {
    for (const [formula, one] of this.verdicts) if (formula === path || !isFormula(path)) one.old = true;
  }

  /** The line of a folder, which opens and closes it. */
  private folder(one: Folder, depth: number): HTMLElement {
    const open = !this.closed.has(one.path);
    const toggle = () => {
      if (open) this.closed.add(one.path);
      else this.closed.delete(one.path);
      this.refresh();
    };
    const name = one.path.slice(one.path.lastIndexOf("/") + 1);
    return h("li", { class: `folder in-${Math.min(depth, 12)}` }, h("button", { type: "button", class: "open", title: `${one.path}/`, "aria-expanded": String(open), click: toggle }, `${open ? "▾" : "▸"} ${name}/`));
  }

  private file(path: string, depth: number): HTMLElement {
    const { current, changed, errors } = this.about(path);
    const name = path.slice(path.lastIndexOf("/") + 1);
    const at = `in-${Math.min(depth, 12)}`;
    if (this.data.has(path)) {
      const title = isLog(path) ? `${path}: a log, which is shown but not edited` : `${path}: a model that is no text; a click selects it`;
      return h("li", { class: `${at}${current ? " is-current" : ""}` }, h("button", { type: "button", class: "open quiet", "aria-current": current ? "true" : null, title, click: () => this.open(path) }, name));
    }
    const said = [changed ? "changed" : "", errors > 0 ? `${errors} errors` : ""].filter(Boolean).join(", ");
    const button = h("button", { type: "button", class: "open", "aria-current": current ? "true" : null, title: path, click: () => this.open(path) }, name, changed ? " ●" : "", errors > 0 && h("span", { class: "errors" }, ` ${errors}`), said !== "" && h("span", { class: "unseen" }, ` ${said}`));
    const box = isFormula(path) ? h("input", { type: "checkbox", "aria-label": `Check ${path}`, checked: this.chosen.has(path) }) : null;
    box?.addEventListener("change", () => {
      if (box.checked) this.chosen.add(path);
      else this.chosen.delete(path);
      this.every();
    });
    const known = this.verdicts.get(path);
    const mark = known && h("span", { class: known.old ? "last is-stale" : "last", title: known.old ? "The last verdict; a file has changed since" : "The last verdict" }, verdict(known.word === "error" ? "unknown" : known.word, known.word));
    return h("li", { class: `${at}${current ? " is-current" : ""}` }, box, button, mark);
  }

  /** Shows in the box of all formulas whether all, some, or none are chosen. */
  private every(): void {
    const box = this.element.querySelector<HTMLInputElement>(".every");
    if (!box) return;
    const all = this.files.filter(isFormula).length;
    box.checked = this.chosen.size === all;
    box.indeterminate = this.chosen.size > 0 && this.chosen.size < all;
  }

  /** Redraws the list: open, changed, and erroneous files. */
  refresh(): void {
    const list = this.element.querySelector("ul");
    if (!list) return;
    const items: HTMLElement[] = [];
    const add = (folder: Folder, depth: number) => {
      items.push(...folder.files.map((path) => this.file(path, depth)));
      for (const one of folder.folders.values()) {
        items.push(this.folder(one, depth));
        if (!this.closed.has(one.path)) add(one, depth + 1);
      }
    };
    add(tree(this.files), 0);
    const focused = (document.activeElement as HTMLElement | null)?.title;
    list.replaceChildren(...items);
    this.every();
    if (focused) list.querySelector<HTMLElement>(`[title="${CSS.escape(focused)}"]`)?.focus();
  }
}
