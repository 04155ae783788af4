// Server functions in the browser: files in the browser's own storage, runs and simulators as
// workers with an instance of the module each, and one language server. The page uses the same
// interface. No data leaves the browser.

import type * as Served from "../app/server";
import type { Hello, Listener, Parameter, RunState } from "../app/server";
import { EXAMPLES } from "./examples";
import type { End, File, WorkerMessage, PageMessage } from "./protocol";

/** Time limit of a run; the module checks its clock. */
const TIMEOUT = "600s";
const KEY = "mu-check files";
/** Number of message lines that a run stores. */
const MOST_LINES = 200;
/** Time for a stopped run to print its partial result. */
const GRACE = 3_000;
/** The folder of a sweep's tables, and the file with its rows. */
const [SWEEP, ROWS] = ["sweep", "sweep/sweep.json"];

// Files.

function load(): Map<string, string> {
  try {
    const kept = localStorage.getItem(KEY);
    if (kept !== null) return new Map(Object.entries(JSON.parse(kept) as Record<string, string>));
  } catch {
    // Storage may be disabled, or contain other data: then the examples are used.
  }
  return new Map(EXAMPLES);
}

const texts = load();

const all = (): File[] => [...texts];

export async function files() {
  return { name: "Files in this browser", files: [...texts.keys()].sort(), data: [], all: true };
}

export async function read(path: string): Promise<string> {
  const text = texts.get(path);
  if (text === undefined) throw new Error(`there is no file \`${path}\``);
  return text;
}

export async function write(path: string, text: string, before: string | null): Promise<object> {
  if (before === null && texts.has(path)) throw new Error(`\`${path}\` already exists`);
  if (!/^[\w .-]+(\/[\w .-]+)*\.(mcrl2|spec|mcf|cub|asm|litmus|cat|pbes|md|txt)$/.test(path)) throw new Error(`\`${path}\`: expected a name such as model.mcrl2 or safety.mcf`);
  texts.set(path, text);
  send(language(), { files: [[path, text]] });
  try {
    localStorage.setItem(KEY, JSON.stringify(Object.fromEntries(texts)));
  } catch {
    throw new Error("this browser does not store files: the text is lost when the page is closed");
  }
  return {};
}

// Workers.

/** The module, compiled once. A server may send any content type. */
let compiled: Promise<WebAssembly.Module> | null = null;
function module(): Promise<WebAssembly.Module> {
  compiled ??= fetch("mu-check.wasm").then(async (answer) => {
    if (!answer.ok) throw new Error(`mu-check.wasm: status ${answer.status}`);
    return WebAssembly.compile(await answer.arrayBuffer());
  });
  return compiled;
}

interface Instance {
  worker: Worker;
  /** Messages wait for the initial one. */
  begun: Promise<void>;
}

function startInstance(begin: (module: WebAssembly.Module) => PageMessage, receive: (message: WorkerMessage) => void): Instance {
  const worker = new Worker("worker.js");
  worker.onmessage = (e: MessageEvent<WorkerMessage>) => receive(e.data);
  worker.onerror = (e) => receive({ lost: e.message || "the worker could not be started" });
  const begun = module().then(
    (m) => worker.postMessage(begin(m)),
    (e: unknown) => receive({ lost: e instanceof Error ? e.message : String(e) }),
  );
  return { worker, begun };
}

function send(instance: Instance, message: PageMessage): void {
  void instance.begun.then(() => instance.worker.postMessage(message));
}

// Runs.

const listeners: Listener[] = [];
const runs = new Map<number, { run: RunState; instance: Instance | null; begin: number; end: Wanted; clock: number }>();
/** The rows of sweeps, by model, so that a stopped sweep resumes. */
const rows = new Map<string, string>();

/** The stop signal of a run. */
class Wanted {
  readonly end: End;

  constructor() {
    // Memory is shared only if the host requests isolation from other sites.
    this.end = crossOriginIsolated ? new Int32Array(new SharedArrayBuffer(4)) : URL.createObjectURL(new Blob(["go on"]));
  }

  ask(): void {
    if (typeof this.end === "string") URL.revokeObjectURL(this.end);
    else Atomics.store(this.end, 0, 1);
  }
}

const quoted = (word: string) => (/^[\p{L}\p{N}\-_./=,:+]+$/u.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

interface RunRequest {
  kind?: RunState["kind"];
  model?: string;
  other?: string;
  formulas?: string[];
  texts?: string[];
  defines?: Record<string, string>;
  sought?: string;
  /** Values of options. */
  [key: string]: unknown;
}

/** Keys of a request that are options of the command line. */
const OPTIONS: Record<string, string> = {
  engine: "--engine", equivalence: "--equivalence", preorder: "--preorder", against: "--against", operations: "--operations",
  threads_of: "--threads-of", memory: "--model", memory_file: "--model", machine: "--machine", interface: "--interface",
};

/** Converts a request to command-line words: those for this module, and the equivalent command of a user. */
function words(kind: string, request: RunRequest, own: string[]): { words: string[]; command: string } {
  const defines = Object.entries(request.defines ?? {}).flatMap(([name, value]) => ["-D", `${name}=${value}`]);
  const options = Object.entries(OPTIONS).flatMap(([key, option]) => (typeof request[key] === "string" ? [option, request[key]] : []));
  const sought = request.sought === undefined ? [] : [`--${request.sought}`];
  const said = [...defines, ...options, ...sought, ...(request.texts ?? []).map((t) => `--formula=${t}`), ...(kind === "sweep" ? [`--out=${SWEEP}`] : [])];
  const named = [...(kind === "models" ? [] : [request.model ?? ""]), ...(request.other === undefined ? [] : [request.other]), ...(request.formulas ?? [])];
  const command = ["mu-check", kind, ...said, ...named].map(quoted).join(" ");
  return { words: ["mu-check", kind, ...own, ...said, "--", ...named], command };
}

function update(id: number, change: (run: RunState) => void): void {
  const known = runs.get(id);
  if (!known) return;
  change(known.run);
  known.run.version += 1;
  known.run.seconds = known.instance !== null ? (performance.now() - known.begin) / 1000 : known.run.seconds;
  const { result: _, ...message } = known.run;
  listeners.forEach((l) => l.run({ ...message }));
}

export async function start(request: object): Promise<RunState> {
  const wanted = request as RunRequest;
  const kind = wanted.kind ?? "check";
  const id = runs.size + 1;
  const limits = ["--format=json", "--progress-lines", `--timeout=${TIMEOUT}`];
  const { words: line, command } = words(kind, wanted, limits);
  const run: RunState = {
    id, kind, model: wanted.model ?? "", command, version: 0, state: "running", seconds: 0,
    progress: {}, verdicts: [], said: [], code: null, failed: null, has_result: false, rows: 0,
  };
  const begin = performance.now();
  const clock = setInterval(() => update(id, () => undefined), 500);
  const receive = (message: WorkerMessage) => {
    if ("line" in message) update(id, (r) => listen(r, message.line));
    if ("wrote" in message && message.wrote === ROWS) {
      const text = new TextDecoder().decode(message.bytes);
      rows.set(run.model, text);
      update(id, (r) => keep(r, text));
    }
    if ("lost" in message) finish(id, (r) => (r.failed = message.lost));
    if ("over" in message)
      finish(id, (r) => {
        r.code = message.over;
        if (!keep(r, message.printed) && !r.has_result) r.failed = `no result: exit code ${message.over}`;
      });
  };
  const before = kind === "sweep" ? rows.get(run.model) : undefined;
  const given: File[] = before === undefined ? all() : [...all(), [ROWS, before]];
  const end = new Wanted();
  runs.set(id, { run, instance: startInstance((m) => ({ first: "run", module: m, files: given, words: line, end: end.end }), receive), begin, end, clock });
  update(id, () => undefined);
  return { ...run };
}

/** Checks if a printed text is a result. */
function keep(run: RunState, text: string): boolean {
  try {
    const result = JSON.parse(text) as Record<string, unknown>;
    if (result["command"] !== undefined) result["command"] = run.command;
    run.result = result;
    run.has_result = true;
    run.rows = Array.isArray(result["rows"]) ? result["rows"].length : 0;
    return true;
  } catch {
    return false;
  }
}

/** Ends the worker of a run. */
function finish(id: number, change: (run: RunState) => void): void {
  const known = runs.get(id);
  if (!known?.instance) return;
  clearInterval(known.clock);
  known.instance.worker.terminate();
  known.instance = null;
  known.end.ask();
  update(id, (r) => {
    r.seconds = (performance.now() - known.begin) / 1000;
    r.state = r.state === "stopping" ? "stopped" : "over";
    change(r);
  });
}

/** Handles a line of standard error: progress, or a message. */
function listen(run: RunState, line: string): void {
  if (line.startsWith('{"progress":')) {
    const { progress } = JSON.parse(line) as { progress: RunState["progress"] & { verdict?: string; formula?: string } };
    if (progress.verdict !== undefined) run.verdicts.push({ formula: progress.formula ?? "", verdict: progress.verdict });
    else Object.assign(run.progress, progress);
  } else if (line !== "" && run.said.length < MOST_LINES) {
    run.said.push(line);
  }
}

/** Requests the end of a run. A run that does not react is ended with its output so far. */
export async function stop(id: number): Promise<RunState> {
  const known = runs.get(id);
  if (!known) throw new Error(`there is no run ${id}`);
  if (known.run.state === "running") {
    known.end.ask();
    update(id, (run) => (run.state = "stopping"));
    setTimeout(() => finish(id, () => undefined), GRACE);
  }
  return { ...known.run };
}

export async function result(id: number): Promise<RunState> {
  const known = runs.get(id);
  if (!known) throw new Error(`there is no run ${id}`);
  return known.run;
}

/** What a command leaves behind; `lost`: the reason if its worker ended without an answer. */
interface Finished {
  printed: string;
  messages: string;
  written: Map<string, string>;
  lost?: string;
}

/** Runs a command in an instance of its own. */
function runOnce(files: File[], words: string[]): Promise<Finished> {
  return new Promise((good) => {
    const finished: Finished = { printed: "", messages: "", written: new Map() };
    const receive = (message: WorkerMessage) => {
      if ("wrote" in message) finished.written.set(message.wrote, new TextDecoder().decode(message.bytes));
      if ("line" in message) finished.messages += `${message.line}\n`;
      if ("lost" in message) finished.lost = message.lost;
      if ("over" in message) finished.printed = message.printed;
      if (!("over" in message || "lost" in message)) return;
      instance.worker.terminate();
      good(finished);
    };
    const instance = startInstance((m) => ({ first: "run", module: m, files, words }), receive);
  });
}

/** Returns a run's result as one file, by `report`. */
export async function report(id: number): Promise<string> {
  const { run } = runs.get(id) ?? {};
  if (!run?.has_result) throw new Error(`run ${id} has no result`);
  const [from, to] = ["result.json", "report.html"];
  const { written, messages, lost } = await runOnce([[from, JSON.stringify(run.result)]], ["mu-check", "report", `--title=${run.model}`, `--out=${to}`, from]);
  const text = written.get(to);
  if (!text) throw new Error(lost ?? messages);
  return text;
}

/** Returns the declared parameters of a model, as `-D help` prints them; none for a model with an error, which the editor shows. */
export async function parameters(model: string): Promise<Parameter[]> {
  const { printed } = await runOnce(all(), ["mu-check", "explore", "--format=json", "-D", "help", "--", model]);
  try {
    return (JSON.parse(printed) as { declared?: Parameter[] }).declared ?? [];
  } catch {
    return [];
  }
}

/** A request that is refused. The browser's own files have no other writer, so none is. */
export class Refused extends Error {
  readonly status = 0;
}
export const CHANGED = 409;

// Walks.

interface Walk {
  instance: Instance;
  /** Pending requests, in order. */
  pending: { good: (answer: string) => void; bad: (why: Error) => void }[];
}

const walks = new Map<number, Walk>();
let lastWalk = 0;

function answer(walk: Walk): Promise<string> {
  return new Promise((good, bad) => walk.pending.push({ good, bad }));
}

export async function walk(model: string, defines: Record<string, string>): Promise<Hello> {
  const { words: line, command } = words("simulate", { model, defines }, ["--requests"]);
  const pending: Walk["pending"] = [];
  const receive = (message: WorkerMessage) => {
    const next = "answer" in message || "lost" in message ? pending.shift() : undefined;
    if ("answer" in message && message.good) next?.good(message.answer);
    if ("answer" in message && !message.good) next?.bad(new Error(message.answer));
    if ("lost" in message) [next, ...pending.splice(0)].forEach((n) => n?.bad(new Error(message.lost)));
  };
  const own: Walk = { instance: startInstance((m) => ({ first: "walk", module: m, files: all(), words: line }), receive), pending };
  const id = ++lastWalk;
  walks.set(id, own);
  try {
    return { ...(JSON.parse(await answer(own)) as Hello), walk: id, command };
  } catch (e) {
    await leave(id);
    throw e;
  }
}

export async function ask<T>(id: number, request: object): Promise<T> {
  const own = walks.get(id);
  if (!own) throw new Error("this simulator has ended; start another");
  send(own.instance, { ask: JSON.stringify(request) });
  const said = JSON.parse(await answer(own)) as T & { error?: string };
  if (said.error) throw new Error(said.error);
  return said as T;
}

export async function leave(id: number): Promise<object> {
  walks.get(id)?.instance.worker.terminate();
  walks.delete(id);
  return {};
}

// The language server.

let languageServer: Instance | null = null;
function language(): Instance {
  languageServer ??= startInstance(
    (m) => ({ first: "language", module: m, files: all() }),
    (message) => {
      if ("language" in message) listeners.forEach((l) => l.language(JSON.parse(message.language) as { id?: number }));
      if ("lost" in message) begin();
    },
  );
  return languageServer;
}

/** Starts a language server, again if the last one was lost. */
let begun = 0;
function begin(): void {
  languageServer?.worker.terminate();
  languageServer = null;
  begun += 1;
  // A server that is lost repeatedly is not restarted.
  if (begun < 5) listeners.forEach((l) => l.hello([...runs.values()].map((r) => ({ ...r.run }))));
}

export async function sendToLanguageServer(message: object): Promise<object> {
  send(language(), { message: JSON.stringify(message) });
  return {};
}

/** Starts when the module is loaded. */
function listenToModule(listener: Listener): void {
  listeners.push(listener);
  void module().then(begin, (e: unknown) => listener.lost(e instanceof Error ? e.message : String(e)));
}
export { listenToModule as listen };

/** Without a server, interface files have no problems before a run. */
async function interfaceProblems(): Promise<{ problems: [] }> {
  return { problems: [] };
}

/** The interface of a server. */
const same: Omit<typeof Served, "Refused"> = { files, parameters, read, write, start, stop, result, report, walk, ask, leave, sendToLanguageServer, interfaceProblems, CHANGED, listen: listenToModule };
void same;
