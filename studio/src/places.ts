// Places in texts: plain words in a report, buttons where a page has an editor.

import { h } from "./dom";

/** What an editor does with places; a report has none. `model`: the file of the displayed result. */
export const editor: {
  model: string;
  open?: (file: string, line: number, column: number, length: number) => void;
  /** Shows where a component performs an action. */
  find?: (model: string, component: string, action: string) => void;
} = { model: "" };

/** A place in a file; without a file, in the model. */
export function place(text: string, file: string | null, line: number, column = 1, length = 0): HTMLElement {
  const { open, model } = editor;
  const name = file ?? model;
  if (!open || name === "") return h("span", { class: "quiet" }, text);
  return h("button", { type: "button", class: "place", title: `Go to line ${line} of ${name}`, click: () => open(name, line, column, length) }, text);
}

/** A button that goes to an action of a component in the model; nothing in a report. */
export function toSource(component: string, action: string): HTMLElement | null {
  const { find, model } = editor;
  if (!find || model === "") return null;
  const name = `Show ${action} of ${component || "the model"} in the text`;
  return h("button", { type: "button", class: "place", title: name, "aria-label": name, click: () => find(model, component, action) }, "text ↗");
}
