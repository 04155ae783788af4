// The extension: starts the language server, runs its commands in a terminal, and shows pictures of evidence beside the text.

import * as path from "node:path";
import * as vscode from "vscode";
import { LanguageClient, type LanguageClientOptions, type ServerOptions } from "vscode-languageclient/node";

/** A command line that a code lens names. */
interface Run {
  arguments: string[];
  folder?: string;
}

let client: LanguageClient | undefined;
let lastPicture: vscode.Uri | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  context.subscriptions.push(
    vscode.commands.registerCommand("mu-check.run", run),
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

async function start(): Promise<void> {
  const settings = vscode.workspace.getConfiguration("mu-check");
  const command = settings.get<string>("path", "mu-check");
  const server: ServerOptions = { command, args: ["lsp"] };
  const options: LanguageClientOptions = {
    documentSelector: [...["mcrl2", "mcf", "cubicle", "cat", "litmus", "pbes"].map((language) => ({ language })), { scheme: "file", pattern: "**/*.asm" }],
    initializationOptions: { model: settings.get("model"), width: settings.get("width") },
    synchronize: {
      configurationSection: "mu-check",
      fileEvents: vscode.workspace.createFileSystemWatcher("**/*.{mcrl2,spec,mcf}"),
    },
  };
  client = new LanguageClient("mu-check", "mu-check", server, options);
  try {
    await client.start();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    void vscode.window.showErrorMessage(`\`${command} lsp\` does not start: ${reason}. The setting mu-check.path says where mu-check is.`);
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

async function run(what?: Run): Promise<void> {
  if (!what || !Array.isArray(what.arguments)) {
    return;
  }
  // A command reads files: what is on the screen must be in them.
  await vscode.workspace.saveAll(false);
  const picture = what.arguments[what.arguments.indexOf("--evidence") + 1];
  if (what.arguments.includes("--evidence") && picture) {
    lastPicture = vscode.Uri.file(picture);
  }
  const command = vscode.workspace.getConfiguration("mu-check").get<string>("path", "mu-check");
  const name = "mu-check";
  const terminal =
    vscode.window.terminals.find((t) => t.name === name && t.exitStatus === undefined) ??
    vscode.window.createTerminal({ name, cwd: what.folder });
  terminal.show(true);
  const call = process.platform === "win32" ? "& " : "";
  terminal.sendText(call + [command, ...what.arguments].map(quoted).join(" "));
}

/** Shows the last picture, or one that the user picks, in a view beside the text; it follows the file. */
async function showEvidence(context: vscode.ExtensionContext): Promise<void> {
  const picked = lastPicture ?? (await vscode.window.showOpenDialog({ filters: { Pictures: ["svg"] } }))?.[0];
  if (!picked) {
    return;
  }
  const panel = vscode.window.createWebviewPanel("mu-check.evidence", path.basename(picked.fsPath), vscode.ViewColumn.Beside, {
    enableScripts: false,
    localResourceRoots: [],
  });
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
  panel.onDidDispose(() => watcher.dispose());
  context.subscriptions.push(panel);
  await draw();
}
