// Execution graphs: memory operations in a column for each thread, arrows for program order (po),
// reads-from (rf), coherence (co), from-read (fr), and other relations of a memory model. Relations
// can be hidden; the reason for a violation is red. Names of relations cover no operation and no
// other name, and as few lines as possible. The picture can be saved. A text version follows.

import { Boxes, type Box as Area } from "./boxes";
import { along, type Curve, type Point } from "./curve";
import { font, fresh, h, s, widest } from "./dom";
import { saveButtons } from "./save";
import type { Graph } from "./types";

const BOX_HEIGHT = 40;
const ROW = 92;
const GAP = 120;
const TOP = 46;
const FONT = font(13, 600);
/** Parts of a line at which its name may stand, the best first. */
const POSITIONS = [0.26, 0.5, 0.35, 0.65, 0.74, 0.42, 0.58, 0.18, 0.82];
/** Number of points of a line that count as covered. */
const SAMPLES = 24;

interface Box {
  x: number;
  y: number;
  width: number;
}

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

/** Returns the line of an arrow. `lane`: number of arrows between the same two operations. */
function route(from: Box, to: Box, lane: number): Curve {
  const [fx, fy] = [from.x + from.width / 2, from.y + BOX_HEIGHT / 2];
  const [tx, ty] = [to.x + to.width / 2, to.y + BOX_HEIGHT / 2];
  if (Math.abs(fx - tx) < 4) {
    if (ty > fy && ty - fy < ROW + 4 && lane === 0) return { from: [fx, from.y + BOX_HEIGHT], control: null, to: [tx, to.y] };
    // Within a column at a distance: around the right side.
    const x = Math.max(from.x + from.width, to.x + to.width);
    return { from: [from.x + from.width, fy], control: [x + 46 + 26 * lane, (fy + ty) / 2], to: [to.x + to.width, ty] };
  }
  const right = tx > fx;
  const shift = 9 * (lane - 0.5);
  const a: Point = [right ? from.x + from.width : from.x, fy + shift];
  const b: Point = [right ? to.x : to.x + to.width, ty + shift];
  return { from: a, control: [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2 - 14 + 30 * lane], to: b };
}

/** Returns the centres of the names of arrows. `boxes`: the operations. */
function labelCentres(boxes: Box[], arrows: { route: Curve; text: string }[]): Point[] {
  const [taken, lines] = [new Boxes(), new Boxes()];
  for (const box of boxes) taken.add([box.x - 2, box.y - 2, box.x + box.width + 2, box.y + BOX_HEIGHT + 2]);
  arrows.forEach((arrow, owner) => {
    for (let i = 1; i < SAMPLES; i++) {
      const [x, y] = along(arrow.route, i / SAMPLES);
      lines.add([x - 1, y - 1, x + 1, y + 1], owner);
    }
  });
  return arrows.map(({ route: line, text }, owner) => {
    const width = widest([text], FONT) + 6;
    const area = ([x, y]: Point): Area => [x - width / 2, y - 8, x + width / 2, y + 8];
    const beside = line.control ? 0 : width / 2 + 4;
    const centres = POSITIONS.map((t): Point => {
      const [x, y] = along(line, t);
      return [x + beside, y];
    });
    const cost = (centre: Point) => (taken.meets(area(centre)) ? 1000 : 0) + lines.count(area(centre), owner);
    let best = centres[0] ?? [0, 0];
    for (const centre of centres) if (cost(centre) < cost(best)) best = centre;
    taken.add(area(best));
    return best;
  });
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
  const inOrder = [...graph.edges].sort((a, b) => Number(a.relation !== "po") - Number(b.relation !== "po"));
  const arrows = inOrder.flatMap((edge) => {
    const [from, to] = [boxes[edge.from], boxes[edge.to]];
    if (!from || !to) return [];
    const pair = [edge.from, edge.to].sort((a, b) => a - b).join();
    const lane = lanes.get(pair) ?? 0;
    lanes.set(pair, lane + 1);
    return [{ edge, text: edge.relation, route: route(from, to, lane) }];
  });
  const centres = labelCentres(boxes, arrows);
  arrows.forEach(({ edge, route: { from, control, to } }, i) => {
    const [cx, cy] = control ?? from;
    const size = Math.hypot(to[0] - cx, to[1] - cy) || 1;
    const [ux, uy] = [(to[0] - cx) / size, (to[1] - cy) / size];
    const head = `M${to}L${to[0] - 10 * ux + 4 * uy},${to[1] - 10 * uy - 4 * ux}L${to[0] - 10 * ux - 4 * uy},${to[1] - 10 * uy + 4 * ux}z`;
    const [x, y] = centres[i] ?? from;
    const group = s(
      "g",
      { class: `edge edge-${kind(edge.relation)}${edge.forbids ? " forbids" : ""}` },
      s("title", {}, `${graph.events[edge.from]?.name} ${edge.relation} ${graph.events[edge.to]?.name}${edge.forbids ? ", forbidden" : ""}`),
      s("path", { class: "line", d: control ? `M${from}Q${control} ${to}` : `M${from}L${to}` }),
      s("path", { class: "head", d: head }),
      s("text", { x, y: y + 4, "text-anchor": "middle" }, edge.relation),
    );
    drawn.get(edge.relation)?.push(group);
    picture.append(group);
  });
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
    h("div", { class: "toolbar screen", role: "group", "aria-label": "Relations" }, ...toggles, ...saveButtons(picture, graph.title)),
    h("div", { class: "wide" }, picture),
    h("details", { id: `${id}-list` }, h("summary", {}, "As text"), h("ul", {}, ...list)),
  );
}
