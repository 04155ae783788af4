// The extension: starts the language server, runs its commands in a terminal, and shows pictures of
// evidence next to the text.

import { existsSync } from "node:fs";
import { homedir } from "node:os";
import * as path from "node:path";
import * as vscode from "vscode";
import { LanguageClient, type LanguageClientOptions, type ServerOptions } from "vscode-languageclient/node";
import description from "../package.json";

/** A command line of a code lens. */
interface Run {
  arguments: string[];
  folder?: string;
}

let client: LanguageClient | undefined;
let lastPicture: vscode.Uri | undefined;
/** The open views, by their picture file. */
const views = new Map<string, vscode.WebviewPanel>();

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  context.subscriptions.push(
    vscode.commands.registerCommand("mu-check.run", (what?: Run) => run(context, what)),
    vscode.commands.registerCommand("mu-check.evidence", () => showEvidence(context)),
    vscode.commands.registerCommand("mu-check.restart", restart),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration("mu-check.path")) {
        void restart();
      }
    }),
  );
  await start();
}

export async function deactivate(): Promise<void> {
  await client?.stop();
  client = undefined;
}

/**
 * Returns the command in the settings. An editor started from a desktop often has another path than
 * a shell: a bare name that is not found there is searched in the folder of `cargo install`.
 */
function program(): string {
  const command = vscode.workspace.getConfiguration("mu-check").get<string>("path", "mu-check");
  const file = process.platform === "win32" ? `${command}.exe` : command;
  const onPath = (process.env.PATH ?? "").split(path.delimiter).some((folder) => folder !== "" && existsSync(path.join(folder, file)));
  const installed = path.join(process.env.CARGO_HOME ?? path.join(homedir(), ".cargo"), "bin", file);
  return !onPath && path.basename(command) === command && existsSync(installed) ? installed : command;
}

/** The languages that the server knows are those that the package contributes; they activate it. */
const languages: { id: string }[] = description.contributes.languages;

const OPEN_SETTING = "Open the setting";

async function start(): Promise<void> {
  const settings = vscode.workspace.getConfiguration("mu-check");
  const command = program();
  const server: ServerOptions = { command, args: ["lsp"] };
  const options: LanguageClientOptions = {
    documentSelector: languages.map(({ id }) => ({ language: id })),
    initializationOptions: { model: settings.get("model"), width: settings.get("width") },
    synchronize: {
      configurationSection: "mu-check",
      fileEvents: vscode.workspace.createFileSystemWatcher("**/*.{mcrl2,spec,mcf,cat}"),
    },
  };
  client = new LanguageClient("mu-check", "mu-check", server, options);
  try {
    await client.start();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const message = `\`${command} lsp\` does not start: ${reason}. The setting mu-check.path says where mu-check is.`;
    // With a button the message stays visible; the client's own message suggests no solution.
    void vscode.window.showErrorMessage(message, OPEN_SETTING).then((chosen) => {
      if (chosen === OPEN_SETTING) {
        void vscode.commands.executeCommand("workbench.action.openSettings", "mu-check.path");
      }
    });
  }
}

async function restart(): Promise<void> {
  await deactivate();
  await start();
}

/** Quotes a word for a POSIX shell, or for PowerShell. */
function quoted(word: string): string {
  if (/^[A-Za-z0-9_\-./:=]+$/.test(word)) {
    return word;
  }
  return process.platform === "win32" ? `'${word.replace(/'/g, "''")}'` : `'${word.replace(/'/g, "'\\''")}'`;
}

async function run(context: vscode.ExtensionContext, what?: Run): Promise<void> {
  if (!what || !Array.isArray(what.arguments)) {
    return;
  }
  // Commands read files: save all texts first.
  await vscode.workspace.saveAll(false);
  const picture = what.arguments[what.arguments.indexOf("--evidence") + 1];
  if (what.arguments.includes("--evidence") && picture) {
    lastPicture = vscode.Uri.file(picture);
  }
  const command = program();
  const name = "mu-check";
  const terminal =
    vscode.window.terminals.find((t) => t.name === name && t.exitStatus === undefined) ??
    vscode.window.createTerminal({ name, cwd: what.folder });
  terminal.show(true);
  const call = process.platform === "win32" ? "& " : "";
  terminal.sendText(call + [command, ...what.arguments].map(quoted).join(" "));
  if (lastPicture && lastPicture.fsPath === picture) {
    await showEvidence(context);
  }
}

/** Shows the last picture, or one selected by the user, in a view next to the text; it follows the file. */
async function showEvidence(context: vscode.ExtensionContext): Promise<void> {
  const picked = lastPicture ?? (await vscode.window.showOpenDialog({ filters: { Pictures: ["svg"] } }))?.[0];
  if (!picked) {
    return;
  }
  const open = views.get(picked.fsPath);
  if (open) {
    open.reveal(undefined, true);
    return;
  }
  const place = { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true };
  const panel = vscode.window.createWebviewPanel("mu-check.evidence", path.basename(picked.fsPath), place, {
    enableScripts: false,
    localResourceRoots: [],
  });
  views.set(picked.fsPath, panel);
  const draw = async (): Promise<void> => {
    let content: string;
    try {
      const bytes = await vscode.workspace.fs.readFile(picked);
      const data = Buffer.from(bytes).toString("base64");
      content = `<img alt="evidence" style="background: white; max-width: 100%" src="data:image/svg+xml;base64,${data}">`;
    } catch {
      content = "<p>There is no picture yet. A formula that holds everywhere has none.</p>";
    }
    const policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'";
    panel.webview.html = `<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${policy}"></head><body>${content}</body></html>`;
  };
  const folder = vscode.Uri.file(path.dirname(picked.fsPath));
  const watcher = vscode.workspace.createFileSystemWatcher(new vscode.RelativePattern(folder, path.basename(picked.fsPath)));
  watcher.onDidChange(draw);
  watcher.onDidCreate(draw);
  panel.onDidDispose(() => {
    views.delete(picked.fsPath);
    watcher.dispose();
  });
  context.subscriptions.push(panel);
  await draw();
}
