// Client of the language server: protocol messages as functions, for the documents of the editor.

import { sendToLanguageServer } from "./server";

export interface Position {
  line: number;
  character: number;
}

export interface Range {
  start: Position;
  end: Position;
}

export interface Problem {
  range: Range;
  severity: 1 | 2 | 3 | 4;
  message: string;
}

/** A quick fix of the server. */
export interface Fix {
  title: string;
  diagnostics: Problem[];
  edit: { changes: Record<string, { range: Range; newText: string }[]> };
}

export interface Completion {
  label: string;
  kind?: number;
  detail?: string;
  insertText?: string;
  insertTextFormat?: number;
  sortText?: string;
  documentation?: string;
}

interface Legend {
  capabilities: { semanticTokensProvider?: { legend: { tokenTypes: string[] } } };
}

/** True if the server reads such files; others are plain text. */
const isRead = (path: string) => /\.(mcrl2|spec|mcf|cub|asm|cat|pbes|litmus)$/.test(path);

const ROOT = "file:///studio/";
const uriOf = (path: string) => ROOT + path.split("/").map(encodeURIComponent).join("/");
const pathOf = (uri: string) => decodeURIComponent(uri.replace(ROOT, ""));

export class Language {
  /** Types of coloured tokens, by number. */
  colours: string[] = [];
  private next = 1;
  private readonly waiting = new Map<number, (result: unknown) => void>();
  private readonly versions = new Map<string, number>();
  /** Messages are sent one after the other. */
  private last: Promise<unknown> = Promise.resolve();
  private ready = false;

  /** `shown`: callback for the problems of a file. */
  constructor(private readonly shown: (path: string, problems: Problem[]) => void) {}

  /** Restarts with the open documents: after a lost connection the server is a new one. */
  async begin(documents: () => [string, string][]): Promise<void> {
    this.ready = false;
    this.waiting.forEach((answer) => answer(null));
    this.waiting.clear();
    this.versions.clear();
    const answer = (await this.request("initialize", { rootUri: ROOT.slice(0, -1), capabilities: {} }, true)) as Legend | null;
    this.colours = answer?.capabilities.semanticTokensProvider?.legend.tokenTypes ?? [];
    this.ready = true;
    this.notify("initialized", {});
    documents().forEach(([path, text]) => this.open(path, text));
  }

  receive(message: { id?: number; method?: string; params?: unknown; result?: unknown }): void {
    if (message.method === "textDocument/publishDiagnostics") {
      const { uri, diagnostics } = message.params as { uri: string; diagnostics: Problem[] };
      this.shown(pathOf(uri), diagnostics);
    } else if (message.id !== undefined) {
      this.waiting.get(message.id)?.(message.result ?? null);
      this.waiting.delete(message.id);
    }
  }

  /** Documents opened before the server is ready are opened when it is. */
  open(path: string, text: string): void {
    if (!this.ready || !isRead(path)) return;
    if (this.versions.has(path)) return this.change(path, text);
    this.versions.set(path, 1);
    this.notify("textDocument/didOpen", { textDocument: { uri: uriOf(path), languageId: "mcrl2", version: 1, text } });
  }

  change(path: string, text: string): void {
    if (!this.ready || !isRead(path)) return;
    const version = (this.versions.get(path) ?? 0) + 1;
    this.versions.set(path, version);
    this.notify("textDocument/didChange", { textDocument: { uri: uriOf(path), version }, contentChanges: [{ text }] });
  }

  saved(path: string): void {
    if (!isRead(path)) return;
    this.notify("textDocument/didSave", { textDocument: { uri: uriOf(path) } });
  }

  hover(path: string, position: Position): Promise<{ contents: { value: string }; range: Range } | null> {
    return this.at("textDocument/hover", path, { position });
  }

  completion(path: string, position: Position): Promise<Completion[] | null> {
    return this.at("textDocument/completion", path, { position });
  }

  async definition(path: string, position: Position): Promise<{ path: string; range: Range } | null> {
    const [first] = (await this.at<{ uri: string; range: Range }[]>("textDocument/definition", path, { position })) ?? [];
    return first ? { path: pathOf(first.uri), range: first.range } : null;
  }

  formatting(path: string): Promise<{ range: Range; newText: string }[] | null> {
    return this.at("textDocument/formatting", path, { options: {} });
  }

  /** Returns the quick fixes for a range. */
  async fixes(path: string, range: Range): Promise<Fix[]> {
    return (await this.at<Fix[]>("textDocument/codeAction", path, { range, context: { diagnostics: [] } })) ?? [];
  }

  semanticTokens(path: string): Promise<{ data: number[] } | null> {
    return this.at("textDocument/semanticTokens/full", path, {});
  }

  private at<T>(method: string, path: string, params: object): Promise<T | null> {
    if (!isRead(path)) return Promise.resolve(null);
    return this.request(method, { ...params, textDocument: { uri: uriOf(path) } }) as Promise<T | null>;
  }

  /** `first`: true for the initial request; others wait for its answer. */
  private request(method: string, params: object, first = false): Promise<unknown> {
    if (!this.ready && !first) return Promise.resolve(null);
    const id = this.next++;
    return new Promise((answer) => {
      this.waiting.set(id, answer);
      this.send({ jsonrpc: "2.0", id, method, params });
    });
  }

  private notify(method: string, params: object): void {
    if (this.ready) this.send({ jsonrpc: "2.0", method, params });
  }

  private send(message: object): void {
    // The event stream reports a lost server.
    this.last = this.last.then(() => sendToLanguageServer(message)).catch(() => undefined);
  }
}
