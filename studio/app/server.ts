// Requests to the server, and its events. All addresses are relative, because the page's address
// contains the token.

import type { Step } from "../src/types";
import type { Problem } from "./language";

export interface RunState {
  id: number;
  /** The command: `check`, `explore`, `conform`, … */
  kind: string;
  model: string;
  command: string;
  /** Number of changes: the higher number is newer. */
  version: number;
  state: "running" | "stopping" | "stopped" | "over";
  seconds: number;
  progress: Partial<{ stage: string; about: string | null; states: number; transitions: number; level: number; waiting: number; memory_bytes: number }>;
  verdicts: { formula: string; verdict: string }[];
  said: string[];
  code: number | null;
  failed: string | null;
  has_result: boolean;
  /** Completed rows of a sweep. */
  rows: number;
  result?: unknown;
}

/** A declared parameter of a model. */
export interface Parameter {
  name: string;
  sort: string;
  default: string;
  constraint: string;
  help: string;
}

/** A state of a model: its values in the order of the parameters, and its steps. `from` and `to` of a step are state numbers. */
export interface ModelState {
  state: number;
  values: (string | null)[];
  steps: Step[];
}

export interface Hello {
  walk: number;
  command: string;
  components: string[];
  parameters: { name: string; component: number; control: boolean }[];
  /** Names of the equivalences of pictures of quotients. */
  quotients: string[];
  first: ModelState;
}

/** A transition system: edges are source, label, target; a quotient has no state numbers and no values. */
export interface System {
  complete: boolean;
  /** States with steps to states outside the picture. */
  cut: number[];
  initial: number;
  labels: string[];
  /** Examples of hidden actions, of a system that is no quotient. */
  hidden?: string[];
  levels: number[];
  edges: [number, number, number][];
  states?: number[];
  values?: Record<string, { texts: string[]; at: number[] }>;
  of?: number;
  error?: string;
}

/** Name of this page among all open pages. */
const PAGE = [...crypto.getRandomValues(new Uint8Array(12))].map((b) => b.toString(16).padStart(2, "0")).join("");

/** The server refuses a request. */
export class Refused extends Error {
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message);
  }
}

/** The status of a file that another program has changed. */
export const CHANGED = 409;

async function answered<T>(response: Promise<Response>): Promise<T> {
  const answer = await response.catch(() => {
    throw new Error("the server does not answer: is `mu-check studio` still running?");
  });
  const value = (await answer.json()) as T & { error?: string };
  if (!answer.ok) throw new Refused(value.error ?? `status ${answer.status}`, answer.status);
  return value;
}

function query(values: Record<string, string | number>): string {
  const pairs = Object.entries(values).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  return pairs.length > 0 ? `?${pairs.join("&")}` : "";
}

function get<T>(path: string, values: Record<string, string | number> = {}): Promise<T> {
  return answered(fetch(`api/${path}${query(values)}`));
}

function post<T>(path: string, values: Record<string, string | number>, body: unknown): Promise<T> {
  return answered(fetch(`api/${path}${query(values)}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) }));
}

/** `files`: texts; `data`: other models, and logs. */
export const files = () => get<{ name: string | null; files: string[]; data: string[]; all: boolean }>("files");
export const parameters = async (model: string) => (await get<{ declared: Parameter[] }>("parameters", { model })).declared;
export const read = async (path: string) => (await get<{ text: string }>("file", { path })).text;
/** `before`: the text that the file must still have; undefined: it must not exist. */
export const write = (path: string, text: string, before: string | null) => post<object>("file", { path }, { text, before });
export const start = (request: object) => post<RunState>("run", {}, request);
export const stop = (id: number) => post<RunState>("stop", { id }, {});
export const result = (id: number) => get<RunState>("run", { id });
/** A run's result as one self-contained file. */
export const report = async (id: number) => (await get<{ text: string }>("report", { id })).text;
export const walk = (model: string, defines: Record<string, string>) => post<Hello>("walk", {}, { kind: "simulate", model, defines });
export const ask = async <T>(walk: number, request: object) => {
  const answer = await post<T & { error?: string }>("ask", { walk }, request);
  if (answer.error) throw new Error(answer.error);
  return answer as T;
};
/** Problems of an interface file; without an error the actions that its lines name. */
export const interfaceProblems = (text: string) => post<{ problems: Problem[]; actions?: string[] }>("interface", {}, { text });
export const leave = (walk: number) => post<object>("leave", { walk }, {}).catch(() => ({}));
export const sendToLanguageServer = (message: object) => post<object>("language", { page: PAGE }, message);

export interface Listener {
  hello: (runs: RunState[]) => void;
  run: (run: RunState) => void;
  language: (message: { id?: number; method?: string; params?: unknown; result?: unknown }) => void;
  /** `why`: reason if the connection is lost for good. */
  lost: (why?: string) => void;
}

/** Listens to the server until the page is closed. */
export function listen(listener: Listener): void {
  const events = new EventSource(`api/events${query({ page: PAGE })}`);
  const on = <T>(name: string, then: (value: T) => void) => events.addEventListener(name, (e) => then(JSON.parse((e as MessageEvent<string>).data) as T));
  on<{ runs: RunState[] }>("hello", (hello) => listener.hello(hello.runs));
  on<RunState>("run", (run) => listener.run(run));
  on<{ id?: number }>("language", (message) => listener.language(message));
  events.addEventListener("error", () => listener.lost());
}
