// Proofs for any number of processes, safety and robustness of programs.

import { bytes, count, facts, h, plural, seconds, verdict } from "./dom";
import { quoted } from "./formula";
import { table } from "./table";
import type { Interleaved, Program, Proof, Robust } from "./types";

const MODELS: Record<string, string> = { sc: "sequential consistency (sc)", tso: "total store order (tso)", pso: "partial store order (pso)" };
const named = (model: string | undefined) => MODELS[model ?? ""] ?? model ?? "the memory model";

/** A run of a program: a line for each instruction, with the memory and the buffers that it leaves. */
function steps(caption: string, all: Interleaved[]): HTMLElement {
  let before: Record<string, number> = {};
  const lines = all.map((step, at) => {
    // After the first step, only what changes.
    const cells = Object.entries(step.memory).flatMap(([name, value]) => {
      const text = `${name} = ${value}`;
      return at === 0 ? [h("span", {}, text)] : before[name] !== value ? [h("ins", {}, text)] : [];
    });
    before = step.memory;
    const waiting = step.buffers.flatMap((buffer, i) => (buffer.length > 0 ? [`P${i}: ${buffer.map(([name, value]) => `${name} := ${value}`).join(", ")}`] : []));
    return { cells: [String(at + 1), step.thread, h("code", {}, step.instruction), step.event, h("span", { class: "cells" }, ...cells.flatMap((c) => [c, " "])), waiting.join("; ")] };
  });
  return table(caption, ["Step", "Thread", "Instruction", "Effect", "Memory changes", "Waiting stores"], lines).element;
}

const threadsOf = (threads: number | string) => (typeof threads === "number" ? plural(threads, "thread") : "any number of threads");

export function programView(program: Program): HTMLElement {
  const what = { true: "safe", false: "not safe", unknown: "unknown" }[program.verdict];
  const by = Object.entries(program.unsafe_for ?? {}).map(([name, thread]) => `${name} = ${thread}`).join(", ");
  return h(
    "div",
    {},
    h("p", { class: "conclusion" }, verdict(program.verdict, what), ` under ${named(program.model)}, with ${threadsOf(program.threads)}`, program.bound_reached ? "; a store buffer was full, so that longer buffers are not covered" : ""),
    program.interleaving && steps(`A run to an unsafe state${by ? ` (${by})` : ""}`, program.interleaving),
    facts([
      ["States", count(program.states)],
      ["Transitions", count(program.transitions)],
      ["Time", seconds(program.seconds)],
      ["Memory", bytes(program.peak_memory_bytes)],
      ["Stopped", program.stop === "complete" ? "" : program.stop],
    ]),
  );
}

export function robustView(robust: Robust): HTMLElement {
  const what = { true: "robust: under total store order it behaves as under sequential consistency", false: "not robust: total store order adds behaviour", unknown: "unknown" }[robust.verdict];
  const { borderline, assertions, fences } = robust;
  const places = fences?.places?.map((f) => h("li", {}, h("code", {}, f.put), ` before `, h("code", {}, f.before), h("span", { class: "quiet" }, ` (line ${f.line})`)));
  return h(
    "div",
    {},
    h("p", { class: "conclusion" }, verdict(robust.verdict, what)),
    borderline && h("p", {}, `At the end, ${borderline.thread} can read the older value ${borderline.stale} of `, h("code", {}, borderline.cell), `, while its newest value is ${borderline.newest}.`),
    borderline && steps("A run in which the last load could read an older value", borderline.steps),
    places && h("section", {}, h("h3", {}, "Fences that make it robust"), h("ul", {}, ...places)),
    assertions && h("p", {}, `Unsafe states under ${named(assertions.model)}: ${assertions.property}.`),
    assertions?.interleaving && steps("A run to an unsafe state", assertions.interleaving),
    facts([
      ["Threads", String(robust.threads)],
      ["States", count(robust.states)],
      ["Time", seconds(robust.seconds)],
      ["Memory", bytes(robust.peak_memory_bytes)],
      ["Stopped", robust.stop === "complete" ? "" : robust.stop],
    ]),
  );
}

/** The states of a run as a table: a line for each step, with the values that it changes marked. */
function symbolicRun(run: NonNullable<Proof["run"]>): HTMLElement {
  let before = new Set<string>();
  const lines = run.states.map((state, at) => {
    const values = state.split(/, (?=[^\]]*(?:\[|$))/);
    const cells = values.map((v) => (at > 0 && !before.has(v) ? h("ins", {}, v) : h("span", {}, v)));
    before = new Set(values);
    return { cells: [at === 0 ? "start" : String(at), at === 0 ? "" : h("code", {}, run.steps[at - 1] ?? ""), h("span", { class: "cells" }, ...cells.flatMap((c) => [c, " "]))] };
  });
  return table(`A run of ${plural(run.processes, "process")} to an unsafe state`, ["Step", "Transition", "State after it"], lines).element;
}

export function proofView(proof: Proof): HTMLElement {
  const under = proof.model ? ` under ${named(proof.model)}` : "";
  const range = proof.instances && proof.instances.length === 2 ? ` (all states of ${proof.instances[0]} to ${proof.instances[1]} processes)` : "";
  const sentence = {
    true: `safe for every number of processes${under}${range}`,
    false: `not safe${under}${proof.run ? `: ${proof.run.processes} processes reach an unsafe state` : ""}`,
    unknown: `unknown${under}`,
  }[proof.verdict];
  const checked = proof.verified ? `the invariant of ${count(proof.verified["cubes"])} conditions, again and separately: each initial state satisfies it (${count(proof.verified["initiation"])}), each step keeps it (${count(proof.verified["consecution"])}), no unsafe state satisfies it (${count(proof.verified["safety"])})` : "";
  const samples = proof.checked?.["samples"];
  return h(
    "div",
    {},
    h("p", { class: "conclusion" }, verdict(proof.verdict, sentence), proof.why ? `: ${proof.why}` : ""),
    proof.run && symbolicRun(proof.run),
    proof.assumed && proof.assumed.length > 0 && h("section", {}, h("h3", {}, "The proof assumes"), h("ul", {}, ...proof.assumed.map((a) => h("li", {}, ...quoted(a))))),
    facts([
      ["Verified", checked],
      ["Compared with runs", samples ? `${count(Number(samples))} runs of up to ${String((proof.checked?.["processes"] as number[] | undefined)?.[1] ?? "")} processes` : ""],
      ["No initial state from", proof.empty_from === null ? "" : plural(proof.empty_from, "process")],
      ["Assumed invariants", Number(proof.assumptions) > 0 ? count(proof.assumptions) : ""],
      ["Conditions found", count(proof.search["cubes"])],
      ["Steps backwards", count(proof.search["pre_images"])],
      ["Searches", Number(proof.searches) > 1 ? count(proof.searches) : ""],
      ["Time", seconds(proof.seconds)],
      ["Verification", seconds(proof.verification_seconds)],
      ["Memory", bytes(proof.peak_memory_bytes)],
    ]),
  );
}
