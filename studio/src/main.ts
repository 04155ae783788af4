// The page of results: it displays the embedded JSON and computes no verdict.

import { command, h } from "./dom";
import type { Run } from "./run";
import { listenToKeys, section } from "./shown";
import type { Page } from "./types";
import { Viewer } from "./viewer";

const KEYS: [string, string][] = [
  ["← →", "previous and next step"],
  ["↑ ↓", "the same in the chart; Page Up and Page Down go by ten, Home and End to the ends"],
  ["/", "search"],
  ["n, N", "next and previous match"],
  ["h", "hidden steps on and off"],
];

function start(): void {
  const app = document.getElementById("app");
  const page = JSON.parse(document.getElementById("data")?.textContent ?? "{}") as Page;
  const runs: Run[] = [];
  const viewers: Viewer[] = [];
  const sections = page.shown.map((shown) => {
    const viewer = new Viewer(() => runs);
    viewers.push(viewer);
    return section(shown, viewer, runs);
  });
  const versions = new Set(page.shown.flatMap((s) => ("tool" in s.value && s.value.tool ? [`${s.value.tool.name} ${s.value.tool.version}`] : [])));
  const keys = h("details", { class: "keys screen" }, h("summary", {}, "Keys"), h("dl", {}, ...KEYS.flatMap(([key, what]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)])));
  const made = page.shown.some((s) => "command" in s.value && s.value.command === page.command) ? [] : [h("p", {}, "This page was made by"), command(page.command)];
  app?.append(h("header", {}, h("h1", {}, page.title)), h("main", {}, ...sections), h("footer", {}, ...made, h("p", { class: "quiet" }, [...versions].join(", ")), keys));

  listenToKeys(() => viewers);
  const print = (on: boolean) => viewers.forEach((v) => v.element.isConnected && v.print(on));
  addEventListener("beforeprint", () => print(true));
  addEventListener("afterprint", () => print(false));
}

start();
