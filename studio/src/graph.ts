// Execution graphs: memory operations in a column for each thread, arrows for program order (po),
// reads-from (rf), coherence (co), from-read (fr), and other relations of a memory model. Relations
// can be hidden; the reason for a violation is red. A text version follows.

import { font, fresh, h, s, widest } from "./dom";
import type { Graph } from "./types";

const BOX_HEIGHT = 40;
const ROW = 92;
const GAP = 120;
const TOP = 46;
const FONT = font(13, 600);

interface Box {
  x: number;
  y: number;
  width: number;
}

type Point = [number, number];

/** Returns the name and operation of an event. */
function caption(graph: Graph, at: number): string {
  const event = graph.events[at];
  return event ? `${event.name}: ${event.text}` : "";
}

/** Returns the second line: its instruction or step, and a mark for reads of the initial value. */
function below(graph: Graph, at: number): string {
  const event = graph.events[at];
  return [event?.code, event?.reads_initial && "initial value"].filter(Boolean).join(", ");
}

/** Returns the class for the colour of a relation. */
function kind(relation: string): string {
  const base = ["po", "rf", "co", "fr"].find((name) => relation === name || relation === `${name}e` || relation === `${name}i`);
  return base ?? "other";
}

/** Boxes of events: initial writes in a row on top, each thread in a column. */
function layout(graph: Graph): { boxes: Box[]; width: number; height: number; columns: number[] } {
  const wide = graph.events.map((_, i) => Math.max(widest([caption(graph, i)], FONT), widest([below(graph, i)], "12px monospace")) + 28);
  const columns: number[] = [];
  let x = 30;
  const initial = graph.events.flatMap((e, i) => (e.thread === null ? [i] : []));
  const lefts = graph.threads.map((name, t) => {
    const own = graph.events.flatMap((e, i) => (e.thread === t ? [wide[i] ?? 0] : []));
    const width = Math.max(widest([name], FONT) + 20, ...own);
    const left = x;
    columns.push(left + width / 2);
    x += width + GAP;
    return { left, width };
  });
  const top = TOP + (initial.length > 0 ? ROW : 0);
  const rows = new Array<number>(graph.threads.length).fill(0);
  let start = 30;
  const boxes = graph.events.map((e, i): Box => {
    if (e.thread === null) {
      const box = { x: start, y: TOP - 18, width: wide[i] ?? 0 };
      start += box.width + 70;
      return box;
    }
    const column = lefts[e.thread] ?? { left: 30, width: 100 };
    const row = rows[e.thread] ?? 0;
    rows[e.thread] = row + 1;
    return { x: column.left, y: top + row * ROW, width: column.width };
  });
  return { boxes, columns, width: Math.max(x - GAP + 70, start + 30), height: top + Math.max(1, ...rows) * ROW - (ROW - BOX_HEIGHT) + 34 };
}

/** Returns the line of an arrow, and the centre of its label. `lane`: number of arrows between the same columns. */
function route(from: Box, to: Box, lane: number): { path: string; label: Point; tangent: Point } {
  const [fx, fy] = [from.x + from.width / 2, from.y + BOX_HEIGHT / 2];
  const [tx, ty] = [to.x + to.width / 2, to.y + BOX_HEIGHT / 2];
  const between = (a: Point, c: Point, b: Point, t: number): Point => [0, 1].map((i) => (1 - t) ** 2 * (a[i] ?? 0) + 2 * t * (1 - t) * (c[i] ?? 0) + t * t * (b[i] ?? 0)) as Point;
  if (Math.abs(fx - tx) < 4) {
    if (ty > fy && ty - fy < ROW + 4 && lane === 0) {
      const [a, b] = [from.y + BOX_HEIGHT, to.y];
      return { path: `M${fx} ${a}L${tx} ${b}`, label: [fx + 16, (a + b) / 2 + 4], tangent: [0, 1] };
    }
    // Within a column at a distance: around the right side.
    const x = Math.max(from.x + from.width, to.x + to.width);
    const control: Point = [x + 46 + 26 * lane, (fy + ty) / 2];
    const [a, b]: [Point, Point] = [[from.x + from.width, fy], [to.x + to.width, ty]];
    return { path: `M${a}Q${control} ${b}`, label: between(a, control, b, 0.5), tangent: [b[0] - control[0], b[1] - control[1]] };
  }
  const right = tx > fx;
  const shift = 9 * (lane - 0.5);
  const a: Point = [right ? from.x + from.width : from.x, fy + shift];
  const b: Point = [right ? to.x : to.x + to.width, ty + shift];
  const control: Point = [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2 - 14 + 30 * lane];
  // Labels of crossing arrows do not overlap.
  return { path: `M${a}Q${control} ${b}`, label: between(a, control, b, 0.26), tangent: [b[0] - control[0], b[1] - control[1]] };
}

export function graphView(graph: Graph): HTMLElement {
  const { boxes, columns, width, height } = layout(graph);
  const id = fresh("graph");
  const picture = s("svg", { class: "graph", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-labelledby": `${id}-title`, "aria-describedby": `${id}-list` });
  picture.append(s("title", { id: `${id}-title` }, graph.title));
  graph.threads.forEach((name, t) => {
    const top = boxes.find((_, i) => graph.events[i]?.thread === t)?.y ?? TOP;
    picture.append(s("text", { class: "thread", x: columns[t], y: top - 16, "text-anchor": "middle" }, name));
  });
  const known = ["po", "rf", "co", "fr"];
  const rank = (relation: string) => (known.includes(kind(relation)) ? known.indexOf(kind(relation)) : known.length);
  const relations = [...new Set(graph.edges.map((e) => e.relation))].sort((a, b) => rank(a) - rank(b));
  const drawn = new Map<string, SVGElement[]>(relations.map((r) => [r, []]));
  const lanes = new Map<string, number>();
  for (const edge of [...graph.edges].sort((a, b) => Number(a.relation !== "po") - Number(b.relation !== "po"))) {
    const [from, to] = [boxes[edge.from], boxes[edge.to]];
    if (!from || !to) continue;
    const pair = [edge.from, edge.to].sort((a, b) => a - b).join();
    const lane = lanes.get(pair) ?? 0;
    lanes.set(pair, lane + 1);
    const { path, label, tangent } = route(from, to, lane);
    const end = path.split(/[ LQ]/).slice(-1)[0]?.split(",").map(Number) ?? [];
    const tip: Point = end.length === 2 ? [end[0] ?? 0, end[1] ?? 0] : [to.x + to.width / 2, to.y];
    const size = Math.hypot(...tangent) || 1;
    const [ux, uy] = [tangent[0] / size, tangent[1] / size];
    const head = `M${tip}L${tip[0] - 10 * ux + 4 * uy},${tip[1] - 10 * uy - 4 * ux}L${tip[0] - 10 * ux - 4 * uy},${tip[1] - 10 * uy + 4 * ux}z`;
    const group = s(
      "g",
      { class: `edge edge-${kind(edge.relation)}${edge.forbids ? " forbids" : ""}` },
      s("title", {}, `${graph.events[edge.from]?.name} ${edge.relation} ${graph.events[edge.to]?.name}${edge.forbids ? ", forbidden" : ""}`),
      s("path", { class: "line", d: path }),
      s("path", { class: "head", d: head }),
      s("text", { x: label[0], y: label[1] + 4, "text-anchor": "middle" }, edge.relation),
    );
    drawn.get(edge.relation)?.push(group);
    picture.append(group);
  }
  graph.events.forEach((_, i) => {
    const box = boxes[i];
    if (!box) return;
    const middle = box.x + box.width / 2;
    const texts = [s("text", { class: "event", x: middle, y: box.y + (below(graph, i) ? 17 : 25), "text-anchor": "middle" }, caption(graph, i))];
    if (below(graph, i)) texts.push(s("text", { class: "code", x: middle, y: box.y + 33, "text-anchor": "middle" }, below(graph, i)));
    picture.append(s("g", {}, s("rect", { class: "box", x: box.x, y: box.y, width: box.width, height: BOX_HEIGHT, rx: 6 }), ...texts));
  });
  const toggles = relations.map((relation) => {
    const box = h("input", { type: "checkbox", checked: true });
    box.addEventListener("change", () => drawn.get(relation)?.forEach((g) => g.classList.toggle("off", !box.checked)));
    return h("label", { class: `edge-${kind(relation)}` }, box, h("span", { class: "swatch", "aria-hidden": "true" }), ` ${relation}`);
  });
  const list = graph.edges.map((e) => h("li", {}, `${caption(graph, e.from)} — ${e.relation}${e.forbids ? " (forbidden)" : ""} → ${caption(graph, e.to)}`));
  return h(
    "figure",
    { class: "execution" },
    h("figcaption", {}, graph.title),
    h("div", { class: "toolbar screen", role: "group", "aria-label": "Relations" }, ...toggles),
    h("div", { class: "wide" }, picture),
    h("details", { id: `${id}-list` }, h("summary", {}, "As text"), h("ul", {}, ...list)),
  );
}
