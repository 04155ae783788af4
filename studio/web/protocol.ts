// What the page and its workers say to each other. A worker holds one instance of the module: it runs one command, or serves one walk or the language server.

/** A file: its name and text; no text: it is gone. */
export type File = [name: string, text: string | null];

/** `first`: what a worker is for. */
export type Order =
  | { first: "run" | "walk"; module: WebAssembly.Module; files: File[]; words: string[] }
  | { first: "language"; module: WebAssembly.Module; files: File[] }
  /** To a walk: a request, which has one answer. */
  | { ask: string }
  /** To the language server: files that changed on the page's side, then a message. */
  | { files: File[] }
  | { message: string };

export type News =
  /** A line of standard error. */
  | { line: string }
  /** The command is over: what it printed. */
  | { over: number; printed: string }
  /** An answer of a walk; not `good`: why there is none. */
  | { answer: string; good: boolean }
  /** A message of the language server. */
  | { language: string }
  /** The instance is gone. */
  | { lost: string };
