// What the page and its workers say to each other. A worker holds one instance of the module: it runs one command, or serves one walk or the language server.

/** A file: its name, and its text or bytes; neither: it is gone. */
export type File = [name: string, content: string | Uint8Array<ArrayBuffer> | null];

/** How a run hears that it is to end while its worker computes and hears no messages: a number in shared memory that is then 1, where the host allows that
 * memory; else the address of a thing that the page then takes back, so that a request for it fails. */
export type End = Int32Array | string;

/** `first`: what a worker is for. */
export type Order =
  | { first: "run" | "walk"; module: WebAssembly.Module; files: File[]; words: string[]; end?: End }
  | { first: "language"; module: WebAssembly.Module; files: File[] }
  /** To a walk: a request, which has one answer. */
  | { ask: string }
  /** To the language server: files that changed on the page's side, then a message. */
  | { files: File[] }
  | { message: string };

export type News =
  /** A line of standard error. */
  | { line: string }
  /** A file that the command wrote. */
  | { wrote: string; bytes: Uint8Array<ArrayBuffer> }
  /** The command is over: what it printed. */
  | { over: number; printed: string }
  /** An answer of a walk; not `good`: why there is none. */
  | { answer: string; good: boolean }
  /** A message of the language server. */
  | { language: string }
  /** The instance is gone. */
  | { lost: string };
