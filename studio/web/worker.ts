// Worker: one instance of the module, which replaces a process. Texts are passed as bytes in the
// instance's memory. A command that starts processes elsewhere (`sweep`) runs an instance for each
// here, one after the other.

import type { End, File, WorkerMessage, PageMessage } from "./protocol";

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

const scope = self as unknown as { postMessage(message: WorkerMessage): void; onmessage: ((e: MessageEvent<PageMessage>) => void) | null };
const post = (message: WorkerMessage) => scope.postMessage(message);

/** Milliseconds between checks of the stop signal, if a check needs a request. */
const LOOK = 100;

/** True if an object of the page still exists at its address. */
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

/** True if the run is to end; it stays true. */
class Ending {
  private stopped = false;
  private last = 0;
  private readonly end: End | undefined;

  /** An address that is unreadable from the start is ignored: the page then ends the worker. */
  constructor(end?: End) {
    this.end = typeof end === "string" && !isThere(end) ? undefined : end;
  }

  isAsked(): boolean {
    if (this.stopped || this.end === undefined) return this.stopped;
    if (typeof this.end !== "string") return (this.stopped = Atomics.load(this.end, 0) !== 0);
    const now = performance.now();
    if (now - this.last < LOOK) return false;
    this.last = now;
    return (this.stopped = !isThere(this.end));
  }
}

/** Receivers of an instance's output. */
interface Ear {
  receive(stream: number, bytes: Uint8Array<ArrayBuffer>): void;
  wrote(name: string, bytes: Uint8Array<ArrayBuffer>): void;
}

class Instance {
  private readonly exports: Exports;

  constructor(
    private readonly module: WebAssembly.Module,
    /** Existing files, and written ones. */
    private readonly files: Map<string, Uint8Array<ArrayBuffer>>,
    private readonly ending: Ending,
    private readonly ear: Ear,
  ) {
    const taken = (from: number, length: number) => new Uint8Array(this.exports.memory.buffer, from >>> 0, length >>> 0).slice() as Uint8Array<ArrayBuffer>;
    const host = {
      now: () => performance.now(),
      write: (stream: number, from: number, length: number) => ear.receive(stream, taken(from, length)),
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

  /** Runs another command in a new instance with these files. Returns its exit code, or -1 if it was lost. Its written files are added to this one's. */
  private start(words: string[]): number {
    const said: Uint8Array[][] = [[], []];
    const ear: Ear = {
      receive: (stream, bytes) => said[stream - 1]?.push(bytes),
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

/** Sends the output of the worker's own instance to the page, and collects its standard output. */
class Page implements Ear {
  private readonly decoders = [1, 2].map(() => new TextDecoder());
  private printed = "";
  /** The last line of standard error, possibly incomplete. */
  private line = "";
  /** All of standard error. */
  private said = "";

  receive(stream: number, bytes: Uint8Array<ArrayBuffer>): void {
    if (stream === 3) return post({ language: new TextDecoder().decode(bytes) });
    const text = this.decoders[stream - 1]?.decode(bytes, { stream: true }) ?? "";
    if (stream === 1) {
      this.printed += text;
      return;
    }
    this.said += text;
    const lines = (this.line + text).split("\n");
    this.line = lines.pop() ?? "";
    lines.forEach((line) => post({ line }));
  }

  wrote(name: string, bytes: Uint8Array<ArrayBuffer>): void {
    post({ wrote: name, bytes });
  }

  over(code: number): void {
    if (this.line !== "") post({ line: this.line });
    post({ over: code, printed: this.printed });
  }

  /** The answer of a simulator call. */
  answered(code: number): void {
    const answer = code === 0 ? this.printed : this.said;
    this.printed = this.said = "";
    post({ answer: answer.trim(), good: code === 0 });
  }
}

const bytesOf = (content: string | Uint8Array<ArrayBuffer>) => (typeof content === "string" ? new TextEncoder().encode(content) : content);
const page = new Page();
let instance: Instance | null = null;
/** Pending messages to the language server. */
let waiting: string[] = [];

function speak(): void {
  const messages = waiting;
  waiting = [];
  messages.forEach((message, i) => instance?.language(message, i + 1 < messages.length));
}

function handle(message: PageMessage): void {
  if ("first" in message) {
    const files = new Map(message.files.flatMap(([name, content]: File) => (content === null ? [] : [[name, bytesOf(content)] as const])));
    instance = new Instance(message.module, files, new Ending("end" in message ? message.end : undefined), page);
    if (message.first === "language") return;
    instance.words(message.words);
    return message.first === "run" ? page.over(instance.run()) : page.answered(instance.walk());
  }
  if ("ask" in message) return page.answered(instance?.ask(message.ask) ?? 2);
  if ("files" in message) return message.files.forEach(([name, content]) => instance?.put(name, content === null ? null : bytesOf(content)));
  waiting.push(message.message);
  // Handle all pending messages first, so that problems are computed once.
  if (waiting.length === 1) setTimeout(() => guarded(speak), 0);
}

/** Describes the reason for the end of an instance. */
function lost(e: unknown): string {
  const why = e instanceof RangeError ? "it nests too deep for a browser's stack" : "it ran out of memory, or has a fault";
  return `the instance ended: ${why} (${e instanceof Error ? e.message : String(e)})`;
}

function guarded(act: () => void): void {
  try {
    act();
  } catch (e) {
    post({ lost: lost(e) });
  }
}

scope.onmessage = (e) => guarded(() => handle(e.data));
