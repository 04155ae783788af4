// Tables of results with one selectable row, by pointer or keyboard.

import { h } from "./dom";

type Cell = Node | string | number | null;

export interface Line {
  cells: Cell[];
  /** Returns the details of a selected line; without it the line cannot be selected. */
  open?: () => void;
}

const isEmpty = (cell: Cell | undefined) => (cell instanceof Node ? cell.textContent === "" : (cell ?? "") === "");

/** A table; the first column is the heading of a line. `numbers`: columns of numbers. Empty columns are left out. */
export function table(caption: string, columns: string[], lines: Line[], numbers: number[] = []): { element: HTMLElement; select: (at: number) => void } {
  const shown = columns.map((_, i) => i === 0 || lines.length === 0 || lines.some((line) => !isEmpty(line.cells[i])));
  // The style leaves out columns of details where there is little room.
  const kind = (i: number) => `col-${(columns[i] ?? "").toLowerCase().replace(/\W+/g, "-")}${numbers.includes(i) ? " number" : ""}`;
  const rows: HTMLElement[] = [];
  const buttons: (HTMLButtonElement | null)[] = [];
  const select = (at: number) => {
    rows.forEach((row, i) => row.classList.toggle("is-selected", i === at));
    buttons.forEach((b, i) => b?.setAttribute("aria-pressed", String(i === at)));
    lines[at]?.open?.();
  };
  lines.forEach((line, at) => {
    const [first, ...rest] = line.cells;
    const button = line.open ? h("button", { type: "button", class: "open", "aria-pressed": "false", click: () => select(at) }, first) : null;
    buttons.push(button);
    const row = h("tr", {}, h("th", { scope: "row" }, button ?? first), ...rest.flatMap((c, i) => (shown[i + 1] ? [h("td", { class: kind(i + 1) }, c)] : [])));
    if (line.open) {
      row.classList.add("can-open");
      row.addEventListener("click", (e) => !(e.target as Element).closest("button") && getSelection()?.isCollapsed !== false && select(at));
    }
    rows.push(row);
  });
  const head = h("tr", {}, ...columns.flatMap((c, i) => (shown[i] ? [h("th", { scope: "col", class: kind(i) }, c)] : [])));
  const element = h("div", { class: "wide" }, h("table", { class: "results" }, h("caption", {}, caption), h("thead", {}, head), h("tbody", {}, ...rows)));
  return { element, select };
}
