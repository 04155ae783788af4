// The page of results: the JSON that stands in it -> what people look at. It shows what the JSON says and computes no verdict.

import { command, facts, h } from "./dom";
import { checkView } from "./formula";
import { conformView, evidenceView, exploreView, litmusView } from "./others";
import { sweepView } from "./plot";
import type { Run } from "./run";
import type { Page, Shown } from "./types";
import { Viewer } from "./viewer";

const KINDS: Record<Shown["kind"], string> = {
  check: "Formulas",
  explore: "Exploration",
  sweep: "Sweep",
  litmus: "Litmus tests",
  conform: "Conformance",
  evidence: "Evidence",
};

const KEYS: [string, string][] = [
  ["← →", "previous and next step"],
  ["↑ ↓", "the same in the chart; Page Up and Page Down go by ten, Home and End to the ends"],
  ["/", "search"],
  ["n, N", "next and previous match"],
  ["h", "hidden steps on and off"],
];

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
  }
}

/** What stands above a result: of which model, by which command. */
function head(shown: Shown): HTMLElement[] {
  const { model } = shown.value;
  // Of evidence these are the parameters of the linear process.
  const given = "parameters" in shown.value && !Array.isArray(shown.value.parameters) ? shown.value.parameters : undefined;
  const parameters = Object.entries(given ?? {}).map(([name, value]) => `${name} = ${value}`);
  const made = "command" in shown.value ? shown.value.command : undefined;
  return [
    h("h2", {}, `${KINDS[shown.kind]}${model ? `: ${model}` : ""}`),
    facts([
      ["File", shown.file],
      ["Parameters", parameters.join(", ")],
    ]),
    ...(made ? [command(made)] : []),
  ];
}

function start(): void {
  const app = document.getElementById("app");
  const page = JSON.parse(document.getElementById("data")?.textContent ?? "{}") as Page;
  const runs: Run[] = [];
  const viewers: Viewer[] = [];
  const sections = page.shown.map((shown) => {
    const viewer = new Viewer(() => runs);
    viewers.push(viewer);
    return h("section", { class: "result" }, ...head(shown), view(shown, viewer, runs));
  });
  const versions = new Set(page.shown.flatMap((s) => ("tool" in s.value && s.value.tool ? [`${s.value.tool.name} ${s.value.tool.version}`] : [])));
  const keys = h("details", { class: "keys screen" }, h("summary", {}, "Keys"), h("dl", {}, ...KEYS.flatMap(([key, what]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)])));
  const made = page.shown.some((s) => "command" in s.value && s.value.command === page.command) ? [] : [h("p", {}, "This page was made by"), command(page.command)];
  app?.append(h("header", {}, h("h1", {}, page.title)), h("main", {}, ...sections), h("footer", {}, ...made, h("p", { class: "quiet" }, [...versions].join(", ")), keys));

  // Keys go to the viewer in sight.
  const current = () => viewers.find((v) => v.element.isConnected && v.element.getBoundingClientRect().bottom > 0) ?? viewers[0];
  document.addEventListener("keydown", (e) => {
    const target = e.target as HTMLElement;
    if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented || ["INPUT", "SELECT", "TEXTAREA"].includes(target.tagName)) return;
    const viewer = current();
    if (!viewer?.element.isConnected) return;
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
  const print = (on: boolean) => viewers.forEach((v) => v.element.isConnected && v.print(on));
  addEventListener("beforeprint", () => print(true));
  addEventListener("afterprint", () => print(false));
}

start();
