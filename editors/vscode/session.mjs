// Test driver of `mu-check lsp` with the client library of Visual Studio Code: a session on a small
// project, then all files of a list, which must have no diagnostics. Arguments: the command, a
// folder with specs/a.mcrl2 and props/a.mcf, a file with one path per line.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import rpc from "vscode-jsonrpc/node.js";

const [command, folder, list] = process.argv.slice(2);
// A server that does not answer is a failure.
setTimeout(() => process.exit(1), 60_000).unref();
const server = spawn(command, ["lsp"], { stdio: ["pipe", "pipe", "inherit"] });
const connection = rpc.createMessageConnection(new rpc.StreamMessageReader(server.stdout), new rpc.StreamMessageWriter(server.stdin));

const published = new Map();
const waiting = new Map();
connection.onNotification("textDocument/publishDiagnostics", (params) => {
  const key = `${params.uri} ${params.version}`;
  published.set(key, params.diagnostics);
  waiting.get(key)?.(params.diagnostics);
});
connection.listen();

const diagnostics = (uri, version) =>
  published.get(`${uri} ${version}`) ?? new Promise((resolve) => waiting.set(`${uri} ${version}`, resolve));
const open = (path, text) => {
  const uri = pathToFileURL(path).href;
  void connection.sendNotification("textDocument/didOpen", { textDocument: { uri, languageId: "mcrl2", version: 1, text } });
  return uri;
};
const at = (text, word) => {
  const before = text.slice(0, text.indexOf(word)).split("\n");
  return { line: before.length - 1, character: before.at(-1).length };
};

const root = pathToFileURL(folder).href;
const { capabilities } = await connection.sendRequest("initialize", { processId: process.pid, rootUri: root, capabilities: {} });
assert.equal(capabilities.renameProvider.prepareProvider, true);
await connection.sendNotification("initialized", {});

const modelPath = join(folder, "specs/a.mcrl2");
const formulaPath = join(folder, "props/a.mcf");
const [modelText, formulaText] = [modelPath, formulaPath].map((p) => readFileSync(p, "utf8"));
const [model, formula] = [open(modelPath, modelText), open(formulaPath, formulaText)];
assert.deepEqual([await diagnostics(model, 1), await diagnostics(formula, 1)], [[], []]);

const hover = await connection.sendRequest("textDocument/hover", { textDocument: { uri: formula }, position: at(formulaText, "send") });
assert.match(hover.contents.value, /act send: Nat/);
const edit = await connection.sendRequest("textDocument/rename", {
  textDocument: { uri: model },
  position: at(modelText, "send, receive"),
  newName: "emit",
});
assert.deepEqual(Object.keys(edit.changes).sort(), [formula, model].sort());

// A change in the middle of a line after characters with two code units.
const place = at(modelText, "model\n");
await connection.sendNotification("textDocument/didChange", {
  textDocument: { uri: model, version: 2 },
  contentChanges: [{ range: { start: place, end: place }, text: "\nact ;\n% " }],
});
const found = await diagnostics(model, 2);
assert.equal(found.length, 1);
assert.equal(found[0].range.start.line, 1);

// A cancelled request ends as cancelled or with its result.
const source = new rpc.CancellationTokenSource();
const asked = connection.sendRequest("textDocument/semanticTokens/full", { textDocument: { uri: model } }, source.token);
source.cancel();
await asked.catch((error) => assert.equal(error.code, -32800));
await assert.rejects(connection.sendRequest("workspace/nothing", {}), { code: -32601 });

let count = 0;
for (const path of readFileSync(list, "utf8").split("\n").filter(Boolean)) {
  const uri = open(path, readFileSync(path, "utf8"));
  const errors = (await diagnostics(uri, 1)).filter((d) => d.severity < 4);
  assert.deepEqual(errors, [], path);
  await connection.sendNotification("textDocument/didClose", { textDocument: { uri } });
  count += 1;
}
await connection.sendRequest("shutdown");
await connection.sendNotification("exit");
const code = await new Promise((resolve) => server.on("exit", resolve));
assert.equal(code, 0);
console.log(`ok ${count}`);
process.exit(0);
