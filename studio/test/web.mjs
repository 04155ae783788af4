// The page that needs no server, in a real browser: `node test/web.mjs [MU-CHECK] [FOLDER FOR SHOTS] [PAIRS TO MEASURE]`, after `npm run web`. Its files are handed out by a server that
// knows nothing. A model is broken, mended and checked; its counterexample is walked along; a run is stopped; files stay when the page is opened again. What the
// program on this machine prints for the same commands is compared, but for times.

import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { dirname, extname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { executable, launch } from "./browser.mjs";

const [program = "../target/release/mu-check", shots, pairs = 1] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url));
const site = join(here, "..", "..", "web", "site");
for (const [there, what] of [[existsSync(join(site, "mu-check.wasm")), "web/site/mu-check.wasm is not there: `npm run web` makes it"], [executable(), "there is no Chromium"]]) {
  if (there) continue;
  console.log(`test/web.mjs: skipped, ${what}`);
  process.exit(0);
}
let failed = 0;
function check(what, good, seen) {
  console.log(`${good ? "  ok" : "FAIL"} ${what}${good ? "" : `: ${JSON.stringify(seen)}`}`);
  if (!good) failed += 1;
}
const equal = (what, seen, expected) => check(what, JSON.stringify(seen) === JSON.stringify(expected), { seen, expected });

// A host that does not even know what WebAssembly is.
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css" };
const asked = [];
const server = createServer((request, answer) => {
  const path = new URL(request.url, "http://here").pathname;
  asked.push(`${request.method} ${path}`);
  const file = join(site, path.replace(/^\/deep\/folder\//, "").replace(/^$/, "index.html"));
  if (!path.startsWith("/deep/folder/") || request.method !== "GET" || !existsSync(file)) return answer.writeHead(404).end();
  answer.writeHead(200, { "Content-Type": TYPES[extname(file)] ?? "application/octet-stream" }).end(readFileSync(file));
});
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const address = `http://127.0.0.1:${server.address().port}/deep/folder/`;

const browser = await launch();
const context = await browser.newContext({ viewport: { width: 1500, height: 950 } });
const page = await context.newPage();
const [errors, elsewhere] = [[], []];
page.on("pageerror", (e) => errors.push(String(e)));
page.on("console", (m) => ["error", "warning"].includes(m.type()) && errors.push(m.text()));
page.on("request", (r) => !r.url().startsWith(address) && !r.url().startsWith("data:") && elsewhere.push(r.url()));
page.setDefaultTimeout(60_000);
let shot = 0;
const picture = async (name) => {
  shot += 1;
  if (shots) await page.screenshot({ path: join(shots, `web-${shot}-${name}.png`) });
};
const press = (name) => page.getByRole("toolbar", { name: "Runs" }).getByRole("button", { name, exact: true }).click();
const list = () => page.locator(".run-list li").first();
const choose = (model) => page.getByLabel("Model", { exact: true }).selectOption(model);
const result = () => page.locator(".result-place");

async function opens() {
  const begin = performance.now();
  await page.goto(address);
  await page.locator(".files li").first().waitFor();
  await choose("tutorial/banks.mcrl2");
  await page.locator(".tok-keyword").first().waitFor();
  console.log(`    from the address to a coloured model: ${(performance.now() - begin).toFixed(0)} ms`);
  equal("no problem", await page.locator(".problems").innerText(), "No problems");
  check("the tutorial and ARCx are there", (await page.locator(".files .open").count()) > 8, await page.locator(".files .open").allInnerTexts());
  equal("what needs processes is not offered", await page.getByRole("button", { name: "Sweep" }).count(), 0);
  await picture("open");
}

async function breaksAndMends() {
  await page.locator(".cm-line", { hasText: "proc Bank" }).click();
  await page.keyboard.press("End");
  for (let i = 0; i < "Bank(d);".length; i++) await page.keyboard.press("Backspace");
  await page.keyboard.type("Bnak(d);");
  await page.locator(".problems .error").first().waitFor();
  check("the error is said", (await page.locator(".problems").innerText()).includes("Bnak"), await page.locator(".problems").innerText());
  await page.getByLabel("Formula", { exact: true }).fill("[true*]<true>true");
  await press("Check");
  await page.locator(".refusal .error").waitFor();
  check("a run refuses it too", (await page.locator(".refusal").innerText()).includes("Bnak"), await page.locator(".refusal").innerText());
  await picture("broken");
  await page.locator(".refusal button").click();
  await page.keyboard.type("Bank");
  await page.getByText("No problems").waitFor();
  await page.getByLabel("Formula", { exact: true }).fill("");
}

async function checks() {
  await page.getByLabel("Check tutorial/order.mcf").check();
  await press("Check");
  await page.locator(".results tbody .verdict").first().waitFor();
  equal("the verdict", await page.locator(".results tbody .verdict").allInnerTexts(), ["✘ false"]);
  equal("the run", await page.locator(".row .label").allInnerTexts(), ["enter(0)", "enter(1)", "leave(1)"]);
  await page.getByRole("slider").fill("3");
  equal("the slider goes to a step", await page.locator(".state h4").innerText(), "After step 3 of 3: leave(1)");
  await picture("checked");
  await page.getByRole("button", { name: /^Walk along the counterexample/ }).click();
  await page.locator(".walk .here").getByText("After step 3").waitFor();
  await page.getByRole("button", { name: "← Back" }).click();
  equal("the walk goes back", await page.locator(".walk .here").innerText(), "After step 2: enter(1)");
  await press("Draw");
  await page.locator(".told").getByText("16 states").waitFor();
  await page.getByLabel("Modulo").selectOption("branching");
  await page.locator(".told").getByText("before reduction").waitFor();
  await picture("drawn");
  await page.getByLabel("Modulo").selectOption("no quotient");
  await page.getByLabel("Check tutorial/order.mcf").uncheck();
}

async function stops() {
  await choose("arcx/arcx.spec");
  await page.getByLabel("Parameters").fill("max_operation_id=5");
  await press("Explore");
  await list().getByText(/[1-9][\d,]* states/).waitFor();
  await list().getByRole("button", { name: "Stop" }).click({ force: true });
  await list().getByText("stopped").waitFor();
  await page.getByLabel("Parameters").fill("");
}

async function keeps() {
  page.once("dialog", (d) => d.accept("own/small.mcrl2"));
  await page.getByRole("button", { name: "New file" }).click();
  await page.locator(".file-name", { hasText: "own/small.mcrl2" }).waitFor();
  await page.locator(".cm-content").click();
  await page.keyboard.insertText("act a: Nat;\nproc P(n: Nat) = (n < 3) -> a(n) . P(n + 1);\ninit P(0);\n");
  await page.keyboard.press("Control+s");
  await press("Explore");
  await list().getByText("done").waitFor();
  await result().getByText("States").first().waitFor();
  check("a pasted model runs", /States\s+4\s/.test(await result().innerText()), await result().innerText());
  await page.reload();
  await page.locator(".files li").first().waitFor();
  check("files stay", (await page.locator(".files .open").allInnerTexts()).join().includes("small.mcrl2"));
}

/** The module by itself, as the page's worker uses it. */
async function likeTheProgram() {
  const folder = mkdtempSync(join(tmpdir(), "mu-check-web-test-"));
  const files = await page.evaluate(() => Object.entries(JSON.parse(localStorage.getItem("mu-check files"))));
  for (const [name, text] of files) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  const formulas = files.map(([name]) => name).filter((n) => n.startsWith("arcx/") && n.endsWith(".mcf"));
  const without = (text) => text.replace(/"(seconds|peak_memory_bytes|store_bytes)":[\d.e-]+/g, '"$1":0').replace(/"command":"[^"]*"/, "");
  const commands = [
    // Whether symmetries are worth their while is found out by the clock.
    ["check", "--without=symmetry", "--", "arcx/arcx.spec", ...formulas],
    ["explore", "--", "arcx/arcx.spec"],
    ["explore", "--engine=symbolic", "--", "arcx/arcx.spec"],
    ["check", "--engine=symbolic", "--", "arcx/arcx.spec", formulas[0]],
    ["check", "--formula=mu X. [true]X", "--formula=nu X. <true>X && <true*>[true]false", "--", "tutorial/buffer.mcrl2"],
    ["check", "--formula=<leave>true", "--", "tutorial/buffer.mcrl2"],
    ["explore", "--deadlock", "--", "own/small.mcrl2"],
  ];
  for (const [kind, ...rest] of commands) {
    const line = [kind, "--format=json", "--timeout=300s", ...rest];
    const own = await page.evaluate(inWorker, ["mu-check", ...line]);
    const { stdout, status } = spawnSync(resolve(program), ["--threads=1", ...line].sort((a, b) => (a === kind ? -1 : b === kind ? 1 : 0)), { cwd: folder, encoding: "utf8" });
    equal(`${line.join(" ")}`, [own.over, without(own.printed)], [status, without(stdout)]);
  }
  const deep = await page.evaluate(inWorker, ["mu-check", "check", `--formula=${"(".repeat(30_000)}true${")".repeat(30_000)}`, "--", "tutorial/buffer.mcrl2"]);
  check("what nests too deep for a browser says so", deep.lost?.includes("nests too deep"), deep);
  const memory = await page.evaluate(inWorker, ["mu-check", "explore", "--format=json", "--max-memory=70MB", "-D", "max_operation_id=4", "--", "arcx/arcx.spec"]);
  equal("a limit of memory is an answer", [memory.over, JSON.parse(memory.printed || "{}").stop], [3, "max-memory"]);
  rmSync(folder, { recursive: true, force: true });
}

/** Runs in the page: a command in a worker of its own. */
async function inWorker(words) {
  window.compiled ??= await WebAssembly.compile(await (await fetch("mu-check.wasm")).arrayBuffer());
  const files = Object.entries(JSON.parse(localStorage.getItem("mu-check files")));
  const worker = new Worker("worker.js");
  const begin = performance.now();
  const over = await new Promise((done) => {
    worker.onmessage = (e) => ("over" in e.data || "lost" in e.data) && done(e.data);
    worker.postMessage({ first: "run", module: window.compiled, files, words });
  });
  worker.terminate();
  return { printed: "", ...over, milliseconds: performance.now() - begin };
}

/** ARCx at two operations beside the program with one thread on this machine: user time there, time of the worker here; pairs, one after the other. */
async function measures() {
  const ratios = [];
  for (let i = 0; i < Number(pairs); i++) {
    const own = await page.evaluate(inWorker, ["mu-check", "explore", "--format=json", "-D", "max_operation_id=2", "--", "arcx/arcx.spec"]);
    const begin = process.hrtime.bigint();
    execFileSync(resolve(program), ["explore", "--threads=1", "--format=json", "-D", "max_operation_id=2", "--", join(here, "../../specs/arcx.spec")], { encoding: "utf8" });
    const native = Number(process.hrtime.bigint() - begin) / 1e6;
    const { states } = JSON.parse(own.printed);
    ratios.push({ states, browser: Math.round(own.milliseconds), native: Math.round(native), ratio: own.milliseconds / native });
    console.log(`    ${states} states: browser ${own.milliseconds.toFixed(0)} ms, native ${native.toFixed(0)} ms, ${(own.milliseconds / native).toFixed(2)} times`);
  }
  const best = Math.min(...ratios.map((r) => r.ratio));
  check("ARCx at two operations within ten times the native single thread", best < 10, ratios);
}

for (const part of [opens, breaksAndMends, checks, keeps, stops, likeTheProgram, measures]) {
  console.log(part.name);
  try {
    await part();
  } catch (e) {
    check(part.name, false, `${e}; the page says: ${await page.locator(".message").innerText()}; ${await page.locator(".run-list").innerText()}`);
    await picture(`failed-${part.name}`);
  }
}
equal("no error, nothing asked elsewhere", [errors, elsewhere], [[], []]);
equal("only files are asked for", [...new Set(asked)].sort(), ["", "mu-check.wasm", "studio.css", "studio.js", "worker.js"].map((f) => `GET /deep/folder/${f}`));
await browser.close();
server.close();
process.exit(failed > 0 ? 1 : 0);
