// Splitter between two columns; dragged, or moved by arrow keys.

import { h } from "../src/dom";

/** Percentages of the width: minimum and maximum to the left of the splitter, initial value, and step of a key. */
const [LEAST, MOST, FIRST, STEP] = [25, 80, 55, 4];

/** A splitter in a row of columns that uses the style `--split`: the part to its left, in percent. */
export function splitter(columns: () => HTMLElement, label: string): HTMLElement {
  const bar = h("div", { class: "splitter", role: "separator", tabindex: 0, "aria-orientation": "vertical", "aria-label": label, "aria-valuemin": LEAST, "aria-valuemax": MOST, "aria-valuenow": FIRST, title: `${label}; a double click puts it back` });
  const place = (percent: number) => {
    const at = Math.round(Math.max(LEAST, Math.min(MOST, percent)));
    bar.setAttribute("aria-valuenow", String(at));
    columns().style.setProperty("--split", `${at}%`);
  };
  bar.addEventListener("pointerdown", (e) => bar.setPointerCapture(e.pointerId));
  bar.addEventListener("pointermove", (e) => {
    if (!bar.hasPointerCapture(e.pointerId)) return;
    const { left, width } = columns().getBoundingClientRect();
    place(((e.clientX - left) / width) * 100);
  });
  bar.addEventListener("dblclick", () => place(FIRST));
  bar.addEventListener("keydown", (e) => {
    const by = { ArrowLeft: -STEP, ArrowRight: STEP }[e.key];
    if (by === undefined) return;
    e.preventDefault();
    place(Number(bar.getAttribute("aria-valuenow")) + by);
  });
  return bar;
}
