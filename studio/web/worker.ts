// A worker: one instance of the module, which is for it what a process is elsewhere. Texts go in and out as bytes in the instance's memory. A command that starts
// processes elsewhere (`sweep`) has an instance for each here, one after the other.

import type { End, File, News, Order } from "./protocol";

interface Exports {
  memory: WebAssembly.Memory;
  begin(): void;
  room(length: number): number;
  word(): void;
  file(): void;
  output(stream: number): void;
  run(): number;
  walk(): number;
  ask(): number;
  language(more: number): void;
}

const scope = self as unknown as { postMessage(news: News): void; onmessage: ((e: MessageEvent<Order>) => void) | null };
const tell = (news: News) => scope.postMessage(news);

/** Milliseconds between looks at whether a run is to end, where a look takes a request. */
const LOOK = 100;

/** Whether a thing of the page is still at its address. */
function isThere(address: string): boolean {
  try {
    const request = new XMLHttpRequest();
    request.open("GET", address, false);
    request.send();
    return request.status === 200;
  } catch {
    return false;
  }
}

/** Whether the run is to end: once it is, it stays so. */
class Ending {
  private asked = false;
  private last = 0;
  private readonly end: End | undefined;

  /** An address that cannot even be read at first says nothing later: the page ends the worker then. */
  constructor(end?: End) {
    this.end = typeof end === "string" && !isThere(end) ? undefined : end;
  }

  isAsked(): boolean {
    if (this.asked || this.end === undefined) return this.asked;
    if (typeof this.end !== "string") return (this.asked = Atomics.load(this.end, 0) !== 0);
    const now = performance.now();
    if (now - this.last < LOOK) return false;
    this.last = now;
    return (this.asked = !isThere(this.end));
  }
}

/** Who hears what an instance says. */
interface Ear {
  hear(stream: number, bytes: Uint8Array<ArrayBuffer>): void;
  wrote(name: string, bytes: Uint8Array<ArrayBuffer>): void;
}

class Instance {
  private readonly exports: Exports;

  constructor(
    private readonly module: WebAssembly.Module,
    /** What is there, and what was written since. */
    private readonly files: Map<string, Uint8Array<ArrayBuffer>>,
    private readonly ending: Ending,
    private readonly ear: Ear,
  ) {
    const taken = (from: number, length: number) => new Uint8Array(this.exports.memory.buffer, from >>> 0, length >>> 0).slice() as Uint8Array<ArrayBuffer>;
    const host = {
      now: () => performance.now(),
      write: (stream: number, from: number, length: number) => ear.hear(stream, taken(from, length)),
      stopped: () => (ending.isAsked() ? 1 : 0),
      keep: (from: number, length: number) => this.keep(taken(from, length)),
      start: (from: number, length: number) => this.start(new TextDecoder().decode(taken(from, length)).split("\0")),
    };
    this.exports = new WebAssembly.Instance(module, { host }).exports as unknown as Exports;
    this.exports.begin();
    for (const [name, bytes] of files) this.put(name, bytes);
  }

  private keep(whole: Uint8Array<ArrayBuffer>): void {
    const end = whole.indexOf(0);
    const [name, bytes] = [new TextDecoder().decode(whole.subarray(0, end)), whole.slice(end + 1)];
    this.files.set(name, bytes);
    this.ear.wrote(name, bytes);
  }

  /** An instance for another command, which has these files, to its end: its exit code, or -1 if it was lost. What it wrote is this one's too. */
  private start(words: string[]): number {
    const said: Uint8Array[][] = [[], []];
    const ear: Ear = {
      hear: (stream, bytes) => said[stream - 1]?.push(bytes),
      wrote: (name, bytes) => {
        this.put(name, bytes);
        this.ear.wrote(name, bytes);
      },
    };
    let code = -1;
    try {
      const other = new Instance(this.module, this.files, this.ending, ear);
      other.words(words);
      code = other.run();
    } catch (e) {
      said[1]?.push(new TextEncoder().encode(lost(e)));
    }
    said.forEach((parts, i) => {
      this.hand(joined(parts));
      this.exports.output(i + 1);
    });
    return code;
  }

  private hand(bytes: Uint8Array): void {
    const at = this.exports.room(bytes.length);
    new Uint8Array(this.exports.memory.buffer, at >>> 0, bytes.length).set(bytes);
  }

  private say(text: string): void {
    this.hand(new TextEncoder().encode(text));
  }

  put(name: string, bytes: Uint8Array | null): void {
    const head = new TextEncoder().encode(name);
    this.hand(bytes === null ? head : joined([head, new Uint8Array(1), bytes]));
    this.exports.file();
  }

  words(words: string[]): void {
    for (const word of words) {
      this.say(word);
      this.exports.word();
    }
  }

  run(): number {
    return this.exports.run();
  }

  walk(): number {
    return this.exports.walk();
  }

  ask(request: string): number {
    this.say(request);
    return this.exports.ask();
  }

  language(message: string, more: boolean): void {
    this.say(message);
    this.exports.language(more ? 1 : 0);
  }
}

function joined(parts: Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((n, p) => n + p.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** Tells the page what the worker's own instance says, and keeps its standard output until the page wants it whole. */
class Page implements Ear {
  private readonly decoders = [1, 2].map(() => new TextDecoder());
  private printed = "";
  /** The last line of standard error, as far as it came. */
  private line = "";
  /** All of standard error, for who asks why. */
  private said = "";

  hear(stream: number, bytes: Uint8Array<ArrayBuffer>): void {
    if (stream === 3) return tell({ language: new TextDecoder().decode(bytes) });
    const text = this.decoders[stream - 1]?.decode(bytes, { stream: true }) ?? "";
    if (stream === 1) {
      this.printed += text;
      return;
    }
    this.said += text;
    const lines = (this.line + text).split("\n");
    this.line = lines.pop() ?? "";
    lines.forEach((line) => tell({ line }));
  }

  wrote(name: string, bytes: Uint8Array<ArrayBuffer>): void {
    tell({ wrote: name, bytes });
  }

  over(code: number): void {
    if (this.line !== "") tell({ line: this.line });
    tell({ over: code, printed: this.printed });
  }

  /** What a call for a walk answered. */
  answered(code: number): void {
    const answer = code === 0 ? this.printed : this.said;
    this.printed = this.said = "";
    tell({ answer: answer.trim(), good: code === 0 });
  }
}

const bytesOf = (content: string | Uint8Array<ArrayBuffer>) => (typeof content === "string" ? new TextEncoder().encode(content) : content);
const page = new Page();
let instance: Instance | null = null;
/** Messages to the language server that wait: those that came while it was at one. */
let waiting: string[] = [];

function speak(): void {
  const messages = waiting;
  waiting = [];
  messages.forEach((message, i) => instance?.language(message, i + 1 < messages.length));
}

function obey(order: Order): void {
  if ("first" in order) {
    const files = new Map(order.files.flatMap(([name, content]: File) => (content === null ? [] : [[name, bytesOf(content)] as const])));
    instance = new Instance(order.module, files, new Ending("end" in order ? order.end : undefined), page);
    if (order.first === "language") return;
    instance.words(order.words);
    return order.first === "run" ? page.over(instance.run()) : page.answered(instance.walk());
  }
  if ("ask" in order) return page.answered(instance?.ask(order.ask) ?? 2);
  if ("files" in order) return order.files.forEach(([name, content]) => instance?.put(name, content === null ? null : bytesOf(content)));
  waiting.push(order.message);
  // Whatever came meanwhile is heard first, so that problems are looked for once.
  if (waiting.length === 1) setTimeout(() => guarded(speak), 0);
}

/** Why an instance ended, which is no answer of it. */
function lost(e: unknown): string {
  const why = e instanceof RangeError ? "it nests too deep for a browser's stack" : "it ran out of memory, or is at fault";
  return `the instance ended: ${why} (${e instanceof Error ? e.message : String(e)})`;
}

function guarded(act: () => void): void {
  try {
    act();
  } catch (e) {
    tell({ lost: lost(e) });
  }
}

scope.onmessage = (e) => guarded(() => obey(e.data));
