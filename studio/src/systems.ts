// Comparisons, quotients and properties of systems; logs under memory models; the order of models.

import { bytes, count, facts, fresh, h, plural, s, seconds, verdict, font, widest } from "./dom";
import { conflictGraph } from "./conflict";
import { baseName, code } from "./formula";
import { graphView } from "./graph";
import { saveButtons } from "./save";
import { table } from "./table";
import type { Compared, Info, Models, Reduced, Trace, TraceAnswer } from "./types";

export function compareView(compared: Compared): HTMLElement {
  const relation = compared.preorder ?? compared.equivalence ?? "";
  const [a, b] = [baseName(compared.a.file), baseName(compared.b.file)];
  const [yes, no] = compared.preorder ? [`${a} is below ${b} in the ${relation} preorder`, `${a} is not below ${b} in the ${relation} preorder`] : [`${a} and ${b} are equivalent (${relation})`, `${a} and ${b} differ (${relation})`];
  const { difference } = compared;
  const only = difference?.only_in === "b" ? [b, a] : [a, b];
  const parts: (Node | null)[] = [h("p", { class: "conclusion" }, verdict(compared.verdict, { true: yes, false: no, unknown: "unknown" }[compared.verdict]))];
  if (difference?.kind === "too-long") parts.push(h("p", {}, "The difference is too long to be shown."));
  if (difference?.labels) parts.push(h("p", {}, `Only ${only[0]} has the run `, ...difference.labels.flatMap((l, i) => [i > 0 ? " · " : "", h("code", {}, l)]), "."));
  if (difference?.formula) parts.push(h("p", {}, `True of ${only[0]}, false of ${only[1]}${compared.confirmed ? ", which is confirmed on both" : ""}:`), code(difference.formula, 1));
  if (difference?.not_checkable) parts.push(h("p", { class: "quiet" }, difference.not_checkable));
  const line = ({ file, states, transitions }: Compared["a"]) => ({ cells: [file, count(states), count(transitions)] });
  parts.push(table("Systems", ["System", "States", "Transitions"], [line(compared.a), line(compared.b)], [1, 2]).element);
  parts.push(facts([["Time", seconds(compared.seconds)], ["Memory", bytes(compared.peak_memory_bytes)], ["Stopped", compared.stop === "complete" ? "" : compared.stop]]));
  return h("div", {}, ...parts.filter((p) => p !== null));
}

export function reduceView(reduced: Reduced): HTMLElement {
  const share = (n: number | string, of: number | string) => (Number(of) > 0 ? `${((100 * Number(n)) / Number(of)).toPrecision(3).replace(/\.0+$/, "")} %` : "");
  const { states, transitions } = reduced.reduced;
  const lines = [
    { cells: ["System", count(reduced.states), "", count(reduced.transitions), ""] },
    { cells: [`Modulo ${reduced.equivalence} equivalence`, count(states), share(states, reduced.states), count(transitions), share(transitions, reduced.transitions)] },
  ];
  const same = String(states) === String(reduced.states) ? "No two states are equivalent." : `${plural(Number(states), "class")} of equivalent states.`;
  return h("div", {}, h("p", { class: "conclusion" }, same), table("Quotient", ["", "States", "Part", "Transitions", "Part"], lines, [1, 2, 3, 4]).element, facts([["Time", seconds(reduced.seconds)], ["Memory", bytes(reduced.peak_memory_bytes)]]));
}

export function infoView(info: Info): HTMLElement {
  const most = Math.max(1, ...Object.values(info.actions).map(Number));
  const actions = Object.entries(info.actions).sort((x, y) => Number(y[1]) - Number(x[1]));
  const lines = actions.map(([name, n]) => ({ cells: [h("code", {}, name), count(n), h("meter", { min: 0, max: most, value: Number(n), "aria-label": `share of ${name}` })] }));
  const declared = info.declared.map((p) => ({ cells: [h("code", {}, p.name), p.value ?? p.default, p.sort, p.constraint, p.help] }));
  return h(
    "div",
    {},
    facts([
      ["States", count(info.states)],
      ["Transitions", count(info.transitions)],
      ["Labels", count(info.labels)],
      ["Deadlocks", count(info.deadlocks)],
      ["Internal steps (tau)", count(info.taus)],
      ["States that diverge", count(info.divergences)],
      ["Unreachable states", Number(info.unreachable) > 0 ? count(info.unreachable) : ""],
      ["Steps of a state", `${info.branching.least} to ${info.branching.most}, ${Number(info.branching.mean.toPrecision(3))} on average`],
      ["Deterministic", info.deterministic ? "yes" : "no"],
      ["Cycles", info.acyclic ? "none" : "yes"],
      ["Time", seconds(info.seconds)],
    ]),
    table("Actions", ["Action", "Transitions", ""], lines, [1]).element,
    declared.length > 0 && table("Parameters", ["Parameter", "Value", "Sort", "Constraint", "Help"], declared).element,
  );
}

const WORD = { true: "allowed", false: "forbidden", unknown: "unknown" };

function traceAnswer(file: string, one: TraceAnswer): HTMLElement {
  const { conflict, litmus } = one;
  const lines = conflict?.operations.map((o) => ({ cells: [String(o.line), o.thread, h("code", {}, o.operation)] })) ?? [];
  const parts: (Node | null)[] = [
    h("h3", {}, `${one.model} `, verdict(one.verdict, WORD[one.verdict])),
    one.reason ? h("p", {}, one.reason) : null,
    conflict && conflict.cycle.length === 0 ? h("p", { class: "conclusion" }, conflict.message.charAt(0).toUpperCase() + conflict.message.slice(1), ".") : null,
    conflict && conflict.cycle.length > 0 ? graphView(conflictGraph(conflict)) : null,
    lines.length > 0 ? table(`Lines of ${file}`, ["Line", "Thread", "Operation"], lines).element : null,
    one.order ? h("details", {}, h("summary", {}, "An order of all operations"), code(one.order.join("\n"), 1)) : null,
    litmus?.text ? h("details", { open: true }, h("summary", {}, "Its smallest forbidden part as a litmus test"), code(litmus.text.trimEnd(), 1)) : null,
  ];
  return h("div", { class: "about" }, ...parts.filter((p) => p !== null));
}

export function traceView(trace: Trace): HTMLElement {
  const detail = h("div", {});
  const all = trace.traces.flatMap((t) => t.models.map((answer) => ({ t, answer })));
  const lines = all.map(({ t, answer }) => ({
    cells: [`${baseName(t.file)}${trace.traces.length > 1 ? `: ${t.name}` : ""} under ${answer.model}`, verdict(answer.verdict, WORD[answer.verdict]), answer.conflict?.message ?? answer.reason ?? ""],
    open: () => detail.replaceChildren(traceAnswer(t.file, answer)),
  }));
  const words = trace.models.filter((m) => Number(m.forbidden) > 0).map((m) => m.model);
  const [first] = trace.traces;
  const size = trace.traces.length === 1 && first ? `${plural(first.operations, "operation")} of ${plural(first.threads, "thread")}` : plural(trace.traces.length, "trace");
  const list = table("Answers", ["Trace and model", "Answer", "Reason"], lines);
  const at = all.findIndex(({ answer }) => answer.verdict === "false");
  queueMicrotask(() => all.length > 0 && list.select(Math.max(0, at)));
  return h("div", {}, h("p", { class: "conclusion" }, `${size}: `, words.length === 0 ? "allowed by all these models" : `forbidden by ${words.join(", ")}`), list.element, detail, facts([["Skipped lines", trace.skipped.length > 0 ? count(trace.skipped.length) : ""], ["Time", seconds(trace.seconds)], ["Stopped", trace.stop === "complete" ? "" : trace.stop]]));
}

const [CLASS_HEIGHT, CLASS_ROW, CLASS_GAP, CLASS_TOP] = [34, 84, 26, 20];

/** Draws the classes of equal models, the strongest on top: a row for the longest way from it. */
function lattice({ classes, edges }: Models): SVGSVGElement {
  const depth = classes.map(() => 0);
  // At most as many rounds as classes: the order has no cycle.
  for (let round = 0; round < classes.length; round++) for (const e of edges) depth[e.weaker] = Math.max(depth[e.weaker] ?? 0, (depth[e.stronger] ?? 0) + 1);
  const rows: number[][] = [];
  depth.forEach((d, i) => (rows[d] ??= []).push(i));
  const names = classes.map((c) => c.join(" = "));
  const widths = names.map((n) => widest([n], font(13, 600)) + 24);
  const wide = rows.map((row) => row.reduce((sum, i) => sum + (widths[i] ?? 0) + CLASS_GAP, -CLASS_GAP));
  const width = Math.max(...wide) + 40;
  const place: { x: number; y: number }[] = [];
  rows.forEach((row, d) => {
    let x = (width - (wide[d] ?? 0)) / 2;
    for (const i of row) {
      place[i] = { x: x + (widths[i] ?? 0) / 2, y: CLASS_TOP + d * CLASS_ROW };
      x += (widths[i] ?? 0) + CLASS_GAP;
    }
  });
  const height = CLASS_TOP * 2 + (rows.length - 1) * CLASS_ROW + CLASS_HEIGHT;
  const id = fresh("lattice");
  const picture = s("svg", { class: "lattice", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-labelledby": id });
  picture.append(s("title", { id }, "Memory models, each above the weaker ones"));
  for (const e of edges) {
    const [from, to] = [place[e.stronger], place[e.weaker]];
    if (from && to) picture.append(s("path", { class: "order", d: `M${from.x} ${from.y + CLASS_HEIGHT}C${from.x} ${from.y + CLASS_HEIGHT + 30} ${to.x} ${to.y - 30} ${to.x} ${to.y}`, fill: "none" }));
  }
  names.forEach((name, i) => {
    const { x, y } = place[i] ?? { x: 0, y: 0 };
    picture.append(s("rect", { class: "class", x: x - (widths[i] ?? 0) / 2, y, width: widths[i] ?? 0, height: CLASS_HEIGHT, rx: 6 }), s("text", { x, y: y + 22, "text-anchor": "middle" }, name));
  });
  return picture;
}

export function modelsView(models: Models): HTMLElement {
  const picture = lattice(models);
  const below = (i: number) => models.edges.filter((e) => e.stronger === i).map((e) => (models.classes[e.weaker] ?? []).join(" = ")).join(", ");
  const order = models.classes.map((c, i) => ({ cells: [c.join(" = "), below(i)] }));
  const tests = models.separating.slice(0, 500).map((t) => ({ cells: [`${t.allows} allows, ${t.forbids} forbids`, h("code", {}, t.test)] }));
  return h(
    "div",
    {},
    h("p", { class: "conclusion" }, `${models.classes.length} different models, by ${count(models.programs)} programs of up to ${plural(models.operations, "operation")}: the strongest is on top, a line leads down to each next weaker one.`),
    h("div", { class: "wide" }, picture),
    h("div", { class: "toolbar screen" }, ...saveButtons(picture, "memory models")),
    table("Order", ["Model", "Next weaker"], order).element,
    table("Smallest tests of differences", ["Models", "Test"], tests).element,
    facts([["Programs", count(models.programs)], ["Tests", count(models.tests)], ["Addresses", String(models.locations)], ["Time", seconds(models.seconds)], ["Stopped", models.stop === "complete" ? "" : models.stop]]),
  );
}
