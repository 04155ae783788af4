// Plots and table of a sweep: a figure over a parameter, a curve for each job.
//
// As in the plots of `sweep`: a full dot is a value, a diamond the cost of the verdict false, a
// cross a run that a limit ended. The vertical axis is logarithmic unless switched off. Each curve
// has its name at its end, so that no reader depends on colours.

import { bytes, count, font, fresh, h, s, seconds, verdict, widest } from "./dom";
import { baseName } from "./formula";
import { table } from "./table";
import type { Row, Sweep } from "./types";

interface Measure {
  name: string;
  value: (row: Row) => number | null;
  show: (n: number) => string;
  /** Factors of round axis values. */
  unit: number;
}

const whole = (n: number | string | null) => (n === null ? null : Number(n));
const number = (n: number) => count(Math.round(n));
const MEASURES: Measure[] = [
  { name: "Time", value: (r) => r.seconds, show: (n) => seconds(n), unit: 1 },
  { name: "Memory", value: (r) => r.peak_memory_bytes, show: (n) => bytes(n), unit: 1 << 20 },
  { name: "States", value: (r) => whole(r.states), show: number, unit: 1 },
  { name: "Transitions", value: (r) => whole(r.transitions), show: number, unit: 1 },
  { name: "Equations", value: (r) => whole(r.equations), show: number, unit: 1 },
];

const [HEIGHT, LEFT, BOTTOM, TOP] = [380, 78, 46, 18];
/** Limits on the width of a picture. */
const [NARROWEST, WIDEST] = [440, 980];
const COLOURS = 8;

interface Point {
  x: number;
  y: number;
  row: Row;
}

/** Returns the name of a row's curve: its job and all parameters except the horizontal one. */
function curve(row: Row, abscissa: string, several: boolean): string {
  const others = Object.entries(row.parameters).filter(([name]) => name !== abscissa);
  const given = others.map(([name, value]) => `${name}=${value}`).join(" ");
  const confluence = several && row.confluence ? ` (${row.confluence})` : "";
  return [baseName(row.job), given].filter(Boolean).join(" ") + confluence;
}

/** Returns round axis values around all values, few enough to be readable. */
function ticks(low: number, high: number, logarithmic: boolean): number[] {
  if (logarithmic) {
    const [from, to] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
    if (to - from <= 3) {
      const all = Array.from({ length: to - from + 1 }, (_, i) => [1, 2, 5].map((m) => m * 10 ** (from + i))).flat();
      const first = all.findLastIndex((n) => n <= low);
      const last = all.findIndex((n) => n >= high);
      // A single value is in the middle.
      return all.slice(Math.max(0, first === last ? first - 1 : first), (first === last ? last + 1 : last) + 1);
    }
    const each = Math.max(1, Math.ceil((to - from) / 7));
    return Array.from({ length: Math.ceil((to - from) / each) + 1 }, (_, i) => 10 ** (from + i * each));
  }
  const unit = 10 ** Math.floor(Math.log10(high / 4 || 1));
  const step = [1, 2, 5, 10].map((m) => m * unit).find((m) => high / m <= 6) ?? unit;
  return Array.from({ length: Math.ceil(high / step) + 1 }, (_, i) => i * step);
}

function mark(point: Point, [x, y]: [number, number], colour: number): SVGElement {
  const { row } = point;
  const known = row.stop === "complete";
  const attributes = { class: `mark c${colour}${known ? "" : " is-stopped"}` };
  if (!known) return s("path", { ...attributes, d: `M${x - 5} ${y - 5}l10 10m0 -10l-10 10` });
  if (row.verdict === "false") return s("path", { ...attributes, d: `M${x} ${y - 6.5}l6.5 6.5l-6.5 6.5l-6.5 -6.5z` });
  return s("circle", { ...attributes, cx: x, cy: y, r: 4 });
}

function picture(rows: Row[], abscissa: string, measure: Measure, logarithmic: boolean, width: number): SVGElement | null {
  const values = [...new Set(rows.map((r) => r.parameters[abscissa] ?? ""))];
  const numeric = values.every((v) => v !== "" && Number.isFinite(Number(v)));
  if (numeric) values.sort((a, b) => Number(a) - Number(b));
  const several = new Set(rows.map((r) => r.confluence)).size > 1;
  const curves = new Map<string, Point[]>();
  for (const row of rows) {
    const y = measure.value(row);
    if (y === null || !(y > 0 || (!logarithmic && y === 0))) continue;
    const name = curve(row, abscissa, several);
    const value = row.parameters[abscissa] ?? "";
    const points = curves.get(name) ?? [];
    points.push({ x: numeric ? Number(value) : values.indexOf(value), y, row });
    curves.set(name, points.sort((a, b) => a.x - b.x));
  }
  const all = [...curves.values()].flat();
  if (all.length === 0) return null;
  const xs = numeric ? values.map(Number) : values.map((_, i) => i);
  const [xLow, xHigh] = [Math.min(...xs), Math.max(...xs)];
  const heights = all.map((p) => p.y / measure.unit);
  const marks = ticks(Math.min(...heights), Math.max(...heights), logarithmic).map((n) => n * measure.unit);
  const [yLow, yHigh] = [marks[0] ?? 0, marks.at(-1) ?? 1];
  const names = Math.min(240, width / 3, widest([...curves.keys()], font(13, 600)) + 22);
  const right = width - names;
  const scale = (n: number) => (logarithmic ? Math.log10(n) : n);
  const px = (x: number) => (xHigh === xLow ? (LEFT + right) / 2 : LEFT + 14 + ((x - xLow) / (xHigh - xLow)) * (right - LEFT - 28));
  const py = (y: number) => HEIGHT - BOTTOM - ((scale(y) - scale(yLow)) / (scale(yHigh) - scale(yLow) || 1)) * (HEIGHT - BOTTOM - TOP);
  const id = fresh("plot");
  const svg = s("svg", { class: "plot", viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-labelledby": id });
  svg.append(s("title", { id }, `${measure.name} over ${abscissa}. The table has the values.`));
  for (const y of marks) {
    svg.append(s("line", { class: "grid", x1: LEFT, x2: right, y1: py(y), y2: py(y) }), s("text", { class: "tick", x: LEFT - 8, y: py(y) + 4, "text-anchor": "end" }, measure.show(y)));
  }
  xs.forEach((x, i) => svg.append(s("text", { class: "tick", x: px(x), y: HEIGHT - BOTTOM + 20, "text-anchor": "middle" }, values[i] ?? "")));
  svg.append(s("text", { class: "axis", x: (LEFT + right) / 2, y: HEIGHT - 8, "text-anchor": "middle" }, abscissa));
  const ends: { name: string; y: number; colour: number }[] = [];
  [...curves].forEach(([name, points], i) => {
    const colour = i % COLOURS;
    svg.append(s("polyline", { class: `curve c${colour}`, points: points.map((p) => `${px(p.x)},${py(p.y)}`).join(" ") }));
    for (const point of points) {
      const drawn = mark(point, [px(point.x), py(point.y)], colour);
      const { row } = point;
      const said = row.stop === "complete" ? (row.verdict ?? "") : row.stop;
      drawn.append(s("title", {}, `${name}, ${abscissa}=${row.parameters[abscissa]}: ${measure.show(point.y)} ${said}`));
      svg.append(drawn);
    }
    ends.push({ name, y: py(points.at(-1)?.y ?? yLow), colour });
  });
  // Names do not overlap, in the order of their curves.
  ends.sort((a, b) => a.y - b.y);
  let least = TOP;
  for (const end of ends) least = (end.y = Math.max(end.y, least)) + 17;
  const over = Math.max(0, (ends.at(-1)?.y ?? 0) - (HEIGHT - BOTTOM + 6));
  for (const { name, y, colour } of ends) svg.append(s("text", { class: `name c${colour}`, x: right + 10, y: y - over + 4 }, name));
  return svg;
}

function select(label: string, options: string[], changed: () => void): { element: HTMLElement; value: () => number } {
  const box = h("select", { change: changed }, ...options.map((o, i) => h("option", { value: i }, o)));
  return { element: h("label", {}, `${label} `, box), value: () => Number(box.value) };
}

export function sweepView(sweep: Sweep): HTMLElement {
  const rows = sweep.rows ?? [];
  const order = sweep.order ?? [];
  const known = MEASURES.filter((m) => rows.some((r) => m.value(r) !== null));
  const place = h("div", { class: "wide" });
  let width = 820;
  const draw = () => {
    const measure = known[what.value()];
    const abscissa = order[over.value()];
    const drawn = measure && abscissa !== undefined ? picture(rows, abscissa, measure, logarithmic.checked, width) : null;
    place.replaceChildren(drawn ?? h("p", { class: "quiet" }, "There is nothing to draw: no value above zero."));
  };
  const what = select("Figure", known.map((m) => m.name), draw);
  const over = select("over", order, draw);
  const logarithmic = h("input", { type: "checkbox", checked: true, change: draw });
  const columns = ["Job", ...order, "Verdict", "States", "Transitions", "Equations", "Time", "Memory"];
  const n = order.length;
  const lines = rows.map((r) => {
    const answer = r.stop === "complete" ? verdict(r.verdict) : verdict("unknown", r.stop);
    return { cells: [baseName(r.job), ...order.map((o) => r.parameters[o] ?? ""), answer, count(r.states), count(r.transitions), count(r.equations), seconds(r.seconds), bytes(r.peak_memory_bytes)] };
  });
  const listed = table("Rows", columns, lines, [...order.map((_, i) => i + 1), n + 2, n + 3, n + 4, n + 5, n + 6]).element;
  // Without values nothing is drawn.
  if (order.length === 0 || known.length === 0) return h("div", {}, listed);
  draw();
  new ResizeObserver(() => {
    const room = Math.max(NARROWEST, Math.min(WIDEST, place.clientWidth));
    if (place.clientWidth === 0 || room === width) return;
    width = room;
    draw();
  }).observe(place);
  const bar = h("div", { class: "toolbar screen", role: "group", "aria-label": "Plot" }, what.element, over.element, h("label", {}, logarithmic, " Logarithmic"));
  const legend = h("p", { class: "quiet" }, "● a value  ◆ the cost of the verdict false  ✕ a limit ended the run");
  return h("div", {}, h("figure", {}, bar, place, h("figcaption", {}, legend)), listed);
}
