// Messages between the page and its workers. A worker holds one instance of the module: it runs one
// command, one simulator or the language server.

/** A file: its name, and its text or bytes; neither: it is deleted. */
export type File = [name: string, content: string | Uint8Array<ArrayBuffer> | null];

/** How a run hears that it is to end while its worker computes and hears no messages: a number in shared memory that is then 1, where the host allows that
 * memory; else the address of a thing that the page then takes back, so that a request for it fails. */
export type End = Int32Array | string;

/** `first`: the purpose of a worker. */
export type PageMessage =
  | { first: "run" | "walk"; module: WebAssembly.Module; files: File[]; words: string[]; end?: End }
  | { first: "language"; module: WebAssembly.Module; files: File[] }
  /** To a simulator: a request, which has one answer. */
  | { ask: string }
  /** To the language server: files that changed on the page's side, then a message. */
  | { files: File[] }
  | { message: string };

export type WorkerMessage =
  /** A line of standard error. */
  | { line: string }
  /** A file that the command wrote. */
  | { wrote: string; bytes: Uint8Array<ArrayBuffer> }
  /** The command has ended: its output. */
  | { over: number; printed: string }
  /** An answer of a simulator; not `good`: the reason for a missing one. */
  | { answer: string; good: boolean }
  /** A message of the language server. */
  | { language: string }
  /** The instance has ended. */
  | { lost: string };
