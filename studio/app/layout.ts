// Layout of a state-space picture: a level for each distance from the initial state, from top to
// bottom.
//
// Within a level, states are close to their predecessors (the median of their positions above), or
// grouped by a common value. A level with many states has several lines, so that the whole picture
// is about as high as wide: the order runs down the lines, so that neighbours stay neighbours.

import type { System } from "./server";

const [LEAST_GAP, MOST_GAP, ROW] = [26, 130, 64];
/** Long levels have a larger distance, so that the picture does not become a line. */
const MOST_ROW = 600;
/** Width of a level with few states. */
const WIDTH = 620;
/** Approximate aspect ratio of the picture. */
const SHAPE = 1.4;

export interface Drawn {
  system: System;
  x: Float64Array;
  y: Float64Array;
  /** Distance of states in a line. */
  gap: number;
  /** Outgoing edges of each state, by index. */
  out: number[][];
  /** The edge that first reaches a state; -1 for the initial one. */
  first: Int32Array;
  /** The states of each level, in their order. */
  rows: number[][];
}

/** Returns the number of states in a line that makes the picture as large as possible. */
function lineLength(rows: number[][]): number {
  const widest = Math.max(1, ...rows.map((r) => r.length));
  let [best, largest] = [widest, 0];
  for (let parts = 1; parts <= widest; parts++) {
    const most = Math.ceil(widest / parts);
    if (parts > 1 && most < 24) break;
    const lines = rows.reduce((sum, row) => sum + Math.ceil(row.length / most) - 1, 0);
    const size = Math.min(SHAPE / (most * LEAST_GAP), 1 / (rows.length * ROW + lines * LEAST_GAP));
    // Fewer lines are easier to follow: prefer them unless the gain is large.
    if (size > largest * 1.1) [best, largest] = [most, size];
  }
  return best;
}

/** Computes the position of all states. `group`: the group of each state. */
export function layout(system: System, group: number[] | null): Drawn {
  const n = system.levels.length;
  const out: number[][] = Array.from({ length: n }, () => []);
  const first = new Int32Array(n).fill(-1);
  const met = new Uint8Array(n);
  met[system.initial] = 1;
  system.edges.forEach(([from], e) => out[from]?.push(e));
  const queue = [system.initial];
  for (let at = 0; at < queue.length; at++) {
    for (const e of out[queue[at] ?? 0] ?? []) {
      const to = system.edges[e]?.[2] ?? 0;
      if (met[to]) continue;
      met[to] = 1;
      first[to] = e;
      queue.push(to);
    }
  }
  const rows: number[][] = [];
  queue.forEach((state) => (rows[system.levels[state] ?? 0] ??= []).push(state));
  const length = lineLength(rows);
  const gap = Math.min(MOST_GAP, Math.max(LEAST_GAP, WIDTH / length));
  const lines = rows.reduce((sum, row) => sum + Math.ceil(row.length / length) - 1, 0);
  const down = Math.min(MOST_ROW, Math.max(ROW, ((length * gap) / SHAPE - lines * LEAST_GAP) / rows.length));
  const x = new Float64Array(n);
  const y = new Float64Array(n);
  const above: number[][] = Array.from({ length: n }, () => []);
  for (const [from, , to] of system.edges) if ((system.levels[from] ?? 0) < (system.levels[to] ?? 0)) above[to]?.push(from);
  let top = 0;
  for (const row of rows) {
    const request = (state: number) => {
      const places = (above[state] ?? []).map((s) => x[s] ?? 0).sort((a, b) => a - b);
      return places[places.length >> 1] ?? 0;
    };
    const keys = new Map(row.map((state) => [state, request(state)]));
    row.sort((a, b) => (group?.[a] ?? 0) - (group?.[b] ?? 0) || (keys.get(a) ?? 0) - (keys.get(b) ?? 0));
    const deep = Math.ceil(row.length / length);
    const columns = Math.ceil(row.length / deep);
    row.forEach((state, i) => {
      x[state] = (Math.floor(i / deep) - (columns - 1) / 2) * gap;
      y[state] = top + (i % deep) * LEAST_GAP;
    });
    top += down + (deep - 1) * LEAST_GAP;
  }
  return { system, x, y, gap, out, first, rows };
}
