// Files of the folder: models can be opened, formulas can also be selected for checks.

import { h } from "../src/dom";

export const isFormula = (path: string) => path.endsWith(".mcf");
export const isModel = (path: string) => /\.(mcrl2|spec|cub|asm|litmus)$/.test(path);

export class FilesPanel {
  readonly element = h("nav", { class: "files", "aria-label": "Files" });
  readonly chosen = new Set<string>();
  private files: string[] = [];

  constructor(
    private readonly open: (path: string) => void,
    private readonly create: () => void,
    private readonly about: (path: string) => { current: boolean; changed: boolean; errors: number },
  ) {}

  show(name: string | null, files: string[], all: boolean): void {
    this.files = files;
    const title = h("h2", {}, name ?? "Files");
    const more = all ? null : h("p", { class: "quiet" }, "Only the first files are listed.");
    const add = h("button", { type: "button", click: () => this.create() }, "New file");
    const list = h("ul", {});
    this.element.replaceChildren(title, list, add, ...(more ? [more] : []));
    for (const path of [...this.chosen]) if (!files.includes(path)) this.chosen.delete(path);
    this.refresh();
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
      if (of !== folder) items.push(h("li", { class: "folder" }, `${of}/`));
      folder = of;
      const { current, changed, errors } = this.about(path);
      const name = path.slice(at + 1);
      const said = [changed ? "changed" : "", errors > 0 ? `${errors} errors` : ""].filter(Boolean).join(", ");
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
