// Section of a page for a result: head, view, and keys of its runs.

import { command, facts, h } from "./dom";
import { checkView } from "./formula";
import { conformView, evidenceView, exploreView, litmusView } from "./others";
import { sweepView } from "./plot";
import { plainView } from "./plain";
import type { Run } from "./run";
import type { Shown } from "./types";
import { Viewer } from "./viewer";

const KINDS: Record<Exclude<Shown["kind"], "other">, string> = {
  check: "Formulas",
  explore: "Exploration",
  sweep: "Sweep",
  litmus: "Litmus tests",
  conform: "Conformance",
  evidence: "Evidence",
};

function view(shown: Shown, viewer: Viewer, runs: Run[]): HTMLElement {
  switch (shown.kind) {
    case "check":
      return checkView(shown.value, viewer, runs);
    case "explore":
      return exploreView(shown.value, viewer, runs);
    case "sweep":
      return sweepView(shown.value);
    case "litmus":
      return litmusView(shown.value);
    case "conform":
      return conformView(shown.value, viewer, runs);
    case "evidence":
      return evidenceView(shown.value, shown.file, viewer, runs);
    case "other":
      return plainView(shown.value);
  }
}

/** Returns the title of a result. */
function title(shown: Shown): string {
  if (shown.kind === "litmus") return shown.value.subject ?? KINDS.litmus;
  return shown.kind === "other" ? shown.title : KINDS[shown.kind];
}

/** Returns the head of a result: model and command. */
function head(shown: Shown): HTMLElement[] {
  const { model } = shown.value;
  // For evidence, these are the parameters of the linear process.
  const given = "parameters" in shown.value && !Array.isArray(shown.value.parameters) ? shown.value.parameters : undefined;
  const parameters = Object.entries(given ?? {}).map(([name, value]) => `${name} = ${value}`);
  const made = "command" in shown.value ? shown.value.command : undefined;
  return [
    h("h2", {}, `${title(shown)}${model ? `: ${model}` : ""}`),
    facts([
      ["File", shown.file],
      ["Parameters", parameters.join(", ")],
    ]),
    ...(made ? [command(made)] : []),
  ];
}

/** A result with its head. `runs`: all runs of the page; its own are appended. */
export function section(shown: Shown, viewer: Viewer, runs: Run[]): HTMLElement {
  return h("section", { class: "result" }, ...head(shown), view(shown, viewer, runs));
}

/** Forwards key presses to the visible viewer. */
export function listenToKeys(viewers: () => Viewer[]): void {
  const current = () => viewers().find((v) => v.element.isConnected && v.element.getBoundingClientRect().bottom > 0) ?? viewers()[0];
  document.addEventListener("keydown", (e) => {
    const target = e.target as HTMLElement;
    if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented || ["INPUT", "SELECT", "TEXTAREA"].includes(target.tagName) || target.isContentEditable) return;
    const viewer = current();
    // Ignore viewers on a hidden sheet.
    if (!viewer || viewer.element.getClientRects().length === 0) return;
    const actions: Record<string, () => void> = {
      ArrowLeft: () => viewer.by(-1),
      ArrowRight: () => viewer.by(1),
      "/": () => viewer.focusSearch(),
      n: () => viewer.hit(1),
      N: () => viewer.hit(-1),
      h: () => viewer.toggleHidden(),
    };
    const action = actions[e.key];
    if (!action) return;
    e.preventDefault();
    action();
  });
}
