// Executions from the cycles of results: what a memory model forbids, as a graph of operations.
//
// `conform` names the operations of a program and the cycle through some of them; `trace` names the
// operations of a cycle with their lines. Relations of the cycle are marked; program order between
// other neighbours of a thread is added, and for reads of a value that one write has, reads-from.

import type { Conflict, Graph } from "./types";

type Edge = Graph["edges"][number];

/** Short names of the relations that `trace` describes in words. */
const SHORT: Record<string, string> = { "program order": "po", "reads from": "rf", "from reads": "fr", coherence: "co", "coherence order": "co" };

/** Adds program order between neighbours of a thread that no edge connects yet. */
function withProgramOrder(events: Graph["events"], edges: Edge[]): Edge[] {
  const order = events.flatMap((event, to) => {
    const from = events.findLastIndex((e, i) => i < to && e.thread === event.thread);
    const known = edges.some((e) => e.from === from && e.to === to && e.relation === "po");
    return from < 0 || event.thread === null || known ? [] : [{ from, to, relation: "po", forbids: false }];
  });
  return [...edges, ...order];
}

/** Adds the write that a read has its value from, if only one write can be meant. */
function withReadsFrom(events: Graph["events"], edges: Edge[]): Edge[] {
  const parts = events.map((e) => /^(\S+) (\S+?)[ =](\S+)$/.exec(e.text));
  const reads = parts.flatMap((read, to) => {
    if (!read?.[1]?.startsWith("R") || edges.some((e) => e.to === to && e.relation === "rf")) return [];
    const writes = parts.flatMap((w, i) => (w?.[1]?.startsWith("W") && w[2] === read[2] && w[3] === read[3] ? [i] : []));
    const [from] = writes;
    return from === undefined || writes.length > 1 || read[3] === "0" ? [] : [{ from, to, relation: "rf", forbids: false }];
  });
  return [...edges, ...reads];
}

/** Returns the execution of a program such as `W x 1; R y 0 || W y 1; R x 0` with a forbidden cycle; null if an operation of the cycle is not in the program. */
export function executionOf(test: string, cycle: { event: string; relation: string }[]): Graph | null {
  const [program = ""] = test.split(" ~ ");
  const threads = program.split("||").map((part) => part.split(";").map((op) => op.trim()).filter(Boolean));
  let names = 0;
  const events = threads.flatMap((ops, thread) => ops.map((text) => ({ name: String.fromCharCode(97 + (names++ % 26)), thread, text, code: "", reads_initial: /^R\S* \S+ 0$/.test(text) })));
  const places = cycle.map(({ event }) => {
    const [, thread, text] = /^P(\d+): (.*)$/.exec(event) ?? [];
    return events.findIndex((e) => e.thread === Number(thread) && e.text === text);
  });
  if (cycle.length === 0 || places.includes(-1)) return null;
  const edges = cycle.map(({ relation }, i) => ({ from: places[i] ?? 0, to: places[(i + 1) % places.length] ?? 0, relation: relation || "po", forbids: true }));
  return { title: `The cycle in ${test}`, threads: threads.map((_, i) => `P${i}`), events, edges: withProgramOrder(events, withReadsFrom(events, edges)) };
}

/** Returns the conflict of a trace as a graph, each operation with its line in the log. */
export function conflictGraph({ operations, cycle, message }: Conflict): Graph {
  const threads = [...new Set(operations.map((o) => o.thread))];
  const order = operations.map((_, i) => i).sort((a, b) => (operations[a]?.line ?? 0) - (operations[b]?.line ?? 0));
  const place = new Map(order.map((from, to) => [from, to]));
  const events = order.map((i, at) => {
    const one = operations[i];
    return { name: String.fromCharCode(97 + (at % 26)), thread: threads.indexOf(one?.thread ?? ""), text: one?.operation ?? "", code: `line ${one?.line ?? ""}`, reads_initial: false };
  });
  const edges = cycle.map((c) => ({ from: place.get(c.from) ?? 0, to: place.get(c.to) ?? 0, relation: SHORT[c.relation] ?? c.relation, forbids: true }));
  return { title: message, threads, events, edges: withProgramOrder(events, edges) };
}
