// Section of a page for a result: head, view, and keys of its runs.

import { command, facts, h } from "./dom";
import { checkView } from "./formula";
import { conformView, evidenceView, exploreView, litmusView } from "./others";
import { sweepView } from "./plot";
import { plainView } from "./plain";
import { isMurphi, murphiView } from "./murphi";
import { programView, proofView, robustView } from "./programs";
import type { Run } from "./run";
import { compareView, infoView, modelsView, reduceView, traceView } from "./systems";
import type { Shown } from "./types";
import { Viewer } from "./viewer";

const KINDS: Record<Exclude<Shown["kind"], "other">, string> = {
  check: "Formulas",
  explore: "Exploration",
  sweep: "Sweep",
  litmus: "Litmus tests",
  conform: "Conformance",
  evidence: "Evidence",
  trace: "Trace",
  prove: "Proof for any number of processes",
  program: "Program",
  robust: "Robustness",
  compare: "Comparison",
  reduce: "Quotient",
  info: "Properties",
  models: "Memory models",
};

function view(shown: Shown, viewer: Viewer, runs: Run[]): HTMLElement {
  switch (shown.kind) {
    case "check":
      return checkView(shown.value, viewer, runs);
    case "explore":
      return isMurphi(shown.value) ? murphiView(shown.value, viewer, runs) : exploreView(shown.value, viewer, runs);
    case "sweep":
      return sweepView(shown.value);
    case "litmus":
      return litmusView(shown.value);
    case "conform":
      return conformView(shown.value, viewer, runs);
    case "evidence":
      return evidenceView(shown.value, shown.file, viewer, runs);
    case "trace":
      return traceView(shown.value);
    case "prove":
      // Of a program, `prove` has the result of `program`.
      return "bound_reached" in shown.value ? programView(shown.value) : proofView(shown.value);
    case "program":
      return programView(shown.value);
    case "robust":
      return robustView(shown.value);
    case "compare":
      return compareView(shown.value);
    case "reduce":
      return reduceView(shown.value);
    case "info":
      return infoView(shown.value);
    case "models":
      return modelsView(shown.value);
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
  // The model of a proof or a program is a memory model; the page names the file.
  const about = ["prove", "program", "robust", "trace"].includes(shown.kind) ? (shown.file ?? "") : (model ?? shown.file ?? "");
  // For evidence, these are the parameters of the linear process.
  const given = "parameters" in shown.value && !Array.isArray(shown.value.parameters) ? shown.value.parameters : undefined;
  const parameters = Object.entries(given ?? {}).map(([name, value]) => `${name} = ${value}`);
  return [
    h("h2", {}, `${title(shown)}${about ? `: ${about}` : ""}`),
    facts([
      ["File", shown.file === about ? "" : shown.file],
      ["Parameters", parameters.join(", ")],
    ]),
  ];
}

/** A result with its head. `runs`: all runs of the page; its own are appended. */
export function section(shown: Shown, viewer: Viewer, runs: Run[]): HTMLElement {
  const made = "command" in shown.value ? shown.value.command : undefined;
  return h("section", { class: "result" }, ...head(shown), view(shown, viewer, runs), made ? command(made) : null);
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
