// A worker: one instance of the module, which is for it what a process is elsewhere. Texts go in and out as bytes in the instance's memory.

import type { File, News, Order } from "./protocol";

interface Exports {
  memory: WebAssembly.Memory;
  begin(): void;
  room(length: number): number;
  word(): void;
  file(): void;
  run(): number;
  walk(): number;
  ask(): number;
  language(more: number): void;
}

const scope = self as unknown as { postMessage(news: News): void; onmessage: ((e: MessageEvent<Order>) => void) | null };
const tell = (news: News) => scope.postMessage(news);

class Instance {
  private readonly exports: Exports;
  private readonly decoders = [1, 2].map(() => new TextDecoder());
  /** What came on standard output. */
  printed = "";
  /** The last line of standard error, as far as it came. */
  private line = "";
  /** All of standard error, for who asks why. */
  said = "";

  constructor(module: WebAssembly.Module, files: File[]) {
    const host = { now: () => performance.now(), write: (stream: number, from: number, length: number) => this.hear(stream, from, length) };
    this.exports = new WebAssembly.Instance(module, { host }).exports as unknown as Exports;
    this.exports.begin();
    files.forEach((file) => this.put(file));
  }

  private hear(stream: number, from: number, length: number): void {
    const bytes = new Uint8Array(this.exports.memory.buffer, from >>> 0, length >>> 0);
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

  private hand(text: string): void {
    const bytes = new TextEncoder().encode(text);
    const at = this.exports.room(bytes.length);
    new Uint8Array(this.exports.memory.buffer, at >>> 0, bytes.length).set(bytes);
  }

  put([name, text]: File): void {
    this.hand(text === null ? name : `${name}\0${text}`);
    this.exports.file();
  }

  words(words: string[]): void {
    for (const word of words) {
      this.hand(word);
      this.exports.word();
    }
  }

  run(): void {
    const over = this.exports.run();
    if (this.line !== "") tell({ line: this.line });
    tell({ over, printed: this.printed });
  }

  /** What a call for a walk answered. */
  private answered(code: number): void {
    const answer = code === 0 ? this.printed : this.said;
    this.printed = this.said = "";
    tell({ answer: answer.trim(), good: code === 0 });
  }

  walk(): void {
    this.answered(this.exports.walk());
  }

  ask(request: string): void {
    this.hand(request);
    this.answered(this.exports.ask());
  }

  language(message: string, more: boolean): void {
    this.hand(message);
    this.exports.language(more ? 1 : 0);
  }
}

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
    instance = new Instance(order.module, order.files);
    if (order.first === "language") return;
    instance.words(order.words);
    return order.first === "run" ? instance.run() : instance.walk();
  }
  if ("ask" in order) return instance?.ask(order.ask);
  if ("files" in order) return order.files.forEach((file) => instance?.put(file));
  waiting.push(order.message);
  // Whatever came meanwhile is heard first, so that problems are looked for once.
  if (waiting.length === 1) setTimeout(() => guarded(speak), 0);
}

function guarded(act: () => void): void {
  try {
    act();
  } catch (e) {
    const why = e instanceof RangeError ? "it nests too deep for a browser's stack" : "it ran out of memory, or is at fault";
    tell({ lost: `the instance ended: ${why} (${e instanceof Error ? e.message : String(e)})` });
  }
}

scope.onmessage = (e) => guarded(() => obey(e.data));
