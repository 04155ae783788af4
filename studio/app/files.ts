// Files of the folder: models can be opened, formulas can also be selected for checks.

import { h } from "../src/dom";

export const isFormula = (path: string) => path.endsWith(".mcf");
export const isModel = (path: string) => /\.(mcrl2|spec|cub|asm|litmus|m|lps|aut|aut\.gz|blts|lts|fsm)$/.test(path);

export class FilesPanel {
  readonly element = h("nav", { class: "files", "aria-label": "Files" });
  readonly chosen = new Set<string>();
  private files: string[] = [];
  private data = new Set<string>();
  /** Folders that the user has closed. */
  private readonly closed = new Set<string>();

  constructor(
    private readonly open: (path: string) => void,
    private readonly create: () => void,
    private readonly about: (path: string) => { current: boolean; changed: boolean; errors: number },
  ) {}

  show(name: string | null, files: string[], data: string[], all: boolean): void {
    this.files = [...files, ...data].sort((a, b) => (a.split("/").length > 1 ? 1 : 0) - (b.split("/").length > 1 ? 1 : 0) || (a < b ? -1 : 1));
    this.data = new Set(data);
    const title = h("h2", {}, name ?? "Files");
    const more = all ? null : h("p", { class: "quiet" }, "Only the first files are listed.");
    const add = h("button", { type: "button", click: () => this.create() }, "New file");
    const list = h("ul", {});
    this.element.replaceChildren(title, list, add, ...(more ? [more] : []));
    for (const path of [...this.chosen]) if (!files.includes(path)) this.chosen.delete(path);
    this.refresh();
  }

  isData(path: string): boolean {
    return this.data.has(path);
  }

  /** The line of a folder, which opens and closes it. */
  private folder(path: string): HTMLElement {
    const open = !this.closed.has(path);
    const toggle = () => {
      if (open) this.closed.add(path);
      else this.closed.delete(path);
      this.refresh();
    };
    const depth = path.split("/").length - 1;
    return h("li", { class: `folder in-${Math.min(depth, 12)}` }, h("button", { type: "button", class: "open", title: `${path}/`, "aria-expanded": String(open), click: toggle }, `${open ? "▾" : "▸"} ${path}/`));
  }

  /** Redraws the list: open, changed, and erroneous files. */
  refresh(): void {
    const list = this.element.querySelector("ul");
    if (!list) return;
    let folder = "";
    const items: HTMLElement[] = [];
    for (const path of this.files) {
      const at = path.lastIndexOf("/");
      const of = at < 0 ? "" : path.slice(0, at);
      if (of !== folder) items.push(this.folder(of));
      folder = of;
      if ([...this.closed].some((c) => of === c || of.startsWith(`${c}/`))) continue;
      const { current, changed, errors } = this.about(path);
      const name = path.slice(at + 1);
      const said = [changed ? "changed" : "", errors > 0 ? `${errors} errors` : ""].filter(Boolean).join(", ");
      if (this.data.has(path)) {
        items.push(h("li", {}, h("button", { type: "button", class: "open quiet", title: `${path}: a model or log that is not edited here; a click selects it`, click: () => this.open(path) }, name)));
        continue;
      }
      const button = h("button", { type: "button", class: "open", "aria-current": current ? "true" : null, title: path, click: () => this.open(path) }, name, changed ? " ●" : "", errors > 0 && h("span", { class: "errors" }, ` ${errors}`), said !== "" && h("span", { class: "unseen" }, ` ${said}`));
      const box = isFormula(path) ? h("input", { type: "checkbox", "aria-label": `Check ${path}`, checked: this.chosen.has(path) }) : null;
      box?.addEventListener("change", () => (box.checked ? this.chosen.add(path) : this.chosen.delete(path)));
      items.push(h("li", { class: current ? "is-current" : null }, box, button));
    }
    const focused = (document.activeElement as HTMLElement | null)?.title;
    list.replaceChildren(...items);
    if (focused) list.querySelector<HTMLElement>(`[title="${CSS.escape(focused)}"]`)?.focus();
  }
}
