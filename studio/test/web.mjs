// The page that needs no server, in a real browser: `node test/web.mjs [MU-CHECK] [FOLDER FOR SHOTS] [PAIRS TO TIME]`, after `npm run web`. Its files are handed out by a server that
// knows nothing. A model is broken, mended and checked; its counterexample is walked along; a sweep is run, stopped, and goes on; runs are stopped in each of the three ways that there
// are; files stay when the page is opened again. What the program on this machine prints for the same commands is compared, but for times.

import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { dirname, extname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { site, unfit } from "../sources.mjs";
import { executable, launch } from "./browser.mjs";
import { all, breaksAndMends, check, end, equal, open, savesAPage } from "./page.mjs";

const [program = "../target/release/mu-check", shots, pairs = 1] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url));
const why = unfit() ?? (executable() ? undefined : "there is no Chromium");
if (why) {
  console.log(`test/web.mjs: skipped, ${why}`);
  process.exit(0);
}
// A host that does not even know what WebAssembly is.
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css" };
const asked = [];
const PLACES = {
  "/deep/folder/": {},
  // A host that isolates its pages.
  "/isolated/": { "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp" },
  // One that lets workers ask for nothing at all.
  "/strict/": { "Content-Security-Policy": "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'; connect-src 'self'; worker-src 'self'; img-src data:" },
};
const server = createServer((request, answer) => {
  const path = new URL(request.url, "http://here").pathname;
  asked.push(`${request.method} ${path}`);
  const place = Object.keys(PLACES).find((p) => path.startsWith(p));
  const file = join(site, path.slice(place?.length ?? 0) || "index.html");
  if (place === undefined || request.method !== "GET" || !existsSync(file)) return answer.writeHead(404).end();
  answer.writeHead(200, { "Content-Type": TYPES[extname(file)] ?? "application/octet-stream", ...PLACES[place] }).end(readFileSync(file));
});
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const host = `http://127.0.0.1:${server.address().port}`;
const address = `${host}/deep/folder/`;

const browser = await launch();
const it = await open(browser, address, { shots, prefix: "web-", patience: 300_000 });
const { page, errors, elsewhere, picture, press, list, choose } = it;
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
  await picture("open");
}

const breaks = () => breaksAndMends(it, { line: "proc Bank", end: "Bank(d);", right: "Bank", wrong: "Bnak" });

async function checks() {
  await page.getByLabel("Check tutorial/order.mcf").check();
  await press("Check");
  await page.locator(".results tbody .verdict").first().waitFor();
  equal("the verdict", await page.locator(".results tbody .verdict").allInnerTexts(), ["✘ false"]);
  equal("the run", await page.locator(".row .label").allInnerTexts(), ["enter(0)", "enter(1)", "leave(1)"]);
  await page.getByRole("slider").fill("3");
  equal("the slider goes to a step", await page.locator(".state h4").innerText(), "After step 3 of 3: leave(1)");
  await picture("checked");
  const kept = mkdtempSync(join(tmpdir(), "mu-check-web-test-"));
  await savesAPage(it, kept, "banks-check.html", async (other) => {
    equal("the run is in the file that was saved", await other.locator(".row .label").allInnerTexts(), ["enter(0)", "enter(1)", "leave(1)"]);
  });
  rmSync(kept, { recursive: true, force: true });
  await page.getByRole("button", { name: /^Walk along the counterexample/ }).click();
  await page.locator(".walk .here").getByText("After step 3").waitFor();
  await page.getByRole("button", { name: "← Back" }).click();
  equal("the walk goes back", await page.locator(".walk .here").innerText(), "After step 2: enter(1)");
  await press("Draw");
  await page.locator(".description").getByText("16 states").waitFor();
  await page.getByLabel("Modulo").selectOption("branching");
  await page.locator(".description").getByText("before reduction").waitFor();
  await picture("drawn");
  await page.getByLabel("Modulo").selectOption("no quotient");
  await page.getByLabel("Check tutorial/order.mcf").uncheck();
}

/** Explores what takes long, stops it, and gives what the page then shows. */
async function stoppedRun({ page, press, list, choose, parameters }) {
  await choose("arcx/arcx.spec");
  await parameters("max_operation_id=5");
  await press("Explore");
  await list().getByText(/[1-9][\d,]* states/).waitFor();
  const begin = performance.now();
  await list().getByRole("button", { name: "Stop" }).click();
  await list().getByText("stopped").waitFor();
  await parameters("");
  return { shown: await page.locator(".result-place").innerText(), milliseconds: performance.now() - begin };
}

async function stops() {
  const { shown, milliseconds } = await stoppedRun(it);
  console.log(`    from the click to what it had: ${milliseconds.toFixed(0)} ms`);
  check("a run that is stopped says what it has", /States\s+[1-9][\d,]*/.test(shown) && shown.includes("interrupted"), shown);
  await picture("stopped");
  await choose("arcx/arcx.spec");
  await it.parameters("max_operation_id=5");
  await page.getByLabel("Check arcx/1a.gos.mcf").check();
  await press("Check");
  await list().getByText(/[1-9][\d,]* states/).waitFor();
  await list().getByRole("button", { name: "Stop" }).click();
  await list().getByText("stopped").waitFor();
  await page.locator(".results tbody .verdict").first().waitFor();
  equal("a check that is stopped is unknown", await page.locator(".results tbody .verdict").allInnerTexts(), ["? unknown"]);
  await page.getByLabel("Check arcx/1a.gos.mcf").uncheck();
  await it.parameters("");
}

/** The same where the host isolates the page, and where its workers cannot ask whether they are to end. */
async function stopsElsewhere() {
  for (const [place, isolated, says] of [["/isolated/", true, /States\s+[1-9][\d,]*/], ["/strict/", false, /unknown.*Stopped.*[1-9][\d,]* states so far/s]]) {
    const other = await open(browser, host + place, { shots, prefix: `web-${place.slice(1, -1)}-`, patience: 300_000 });
    await other.page.goto(host + place);
    await other.page.locator(".files li").first().waitFor();
    equal(`${place} is isolated`, await other.page.evaluate(() => crossOriginIsolated), isolated);
    const { shown } = await stoppedRun(other);
    check(`${place}: a run that is stopped says what it has`, says.test(shown), shown);
    await other.picture("stopped");
    equal(`${place}: nothing asked elsewhere`, other.elsewhere, []);
    await other.context.close();
  }
}

async function sweeps() {
  page.once("dialog", (d) => d.accept("own/grow.mcrl2"));
  await page.getByRole("button", { name: "New file" }).click();
  await page.locator(".file-name", { hasText: "own/grow.mcrl2" }).waitFor();
  await page.locator(".cm-content").click();
  await page.keyboard.insertText("$param n: Nat = 3;\nact s: Nat;\nproc P(a, b, c: Nat) = (a < ${n} * 30) -> s(0) . P(a + 1, b, c) + (b < ${n} * 30) -> s(1) . P(a, b + 1, c) + (c < ${n} * 30) -> s(2) . P(a, b, c + 1);\ninit P(0, 0, 0);\n");
  await page.keyboard.press("Control+s");
  await it.parameters("n=1..=9");
  await press("Sweep");
  await page.locator(".result-place .results tbody tr").nth(1).waitFor();
  check("rows come while it runs", (await list().innerText()).includes("Stop"), await list().innerText());
  check("and are drawn", (await page.locator(".result-place svg .mark").count()) >= 2);
  await list().getByRole("button", { name: "Stop" }).click();
  await list().getByText("stopped").waitFor();
  const rows = await it.rows();
  check("its rows stay", rows >= 2 && rows < 9, rows);
  await picture("sweep-stopped");
  await it.parameters("n=1..=4");
  await press("Sweep");
  await list().getByText("done").waitFor();
  await page.waitForFunction(() => document.querySelectorAll(".result-place .results tbody tr").length === 4);
  const shown = await page.locator(".result-place .results tbody tr").allInnerTexts();
  check("it goes on where it was: the states of each row", [31, 61, 91, 121].every((n, i) => shown[i]?.includes((n ** 3).toLocaleString("en"))), shown);
  await picture("sweep");
  await it.parameters("");
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
    ["explore", "--without=symmetry", "--", "arcx/arcx.spec"],
    ["explore", "--engine=symbolic", "--without=symmetry", "--", "arcx/arcx.spec"],
    ["check", "--engine=symbolic", "--without=symmetry", "--", "arcx/arcx.spec", formulas[0]],
    ["check", "--formula=mu X. [true]X", "--formula=nu X. <true>X && <true*>[true]false", "--", "tutorial/buffer.mcrl2"],
    ["check", "--formula=<leave>true", "--", "tutorial/buffer.mcrl2"],
    ["explore", "--deadlock", "--", "own/small.mcrl2"],
  ];
  for (const [kind, ...rest] of commands) {
    const line = [kind, "--format=json", "--timeout=3600s", ...rest];
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

/** ARCx at two operations beside the program with one thread on this machine, in pairs, one after the other: the time of the worker here, of the process there. Only description: others may
 * work on this machine. `module.mjs` compares processor time. */
async function measures() {
  for (let i = 0; i < Number(pairs); i++) {
    const own = await page.evaluate(inWorker, ["mu-check", "explore", "--format=json", "-D", "max_operation_id=2", "--", "arcx/arcx.spec"]);
    const begin = process.hrtime.bigint();
    const printed = execFileSync(resolve(program), ["explore", "--threads=1", "--format=json", "-D", "max_operation_id=2", "--", join(here, "../../specs/arcx.spec")], { encoding: "utf8" });
    const native = Number(process.hrtime.bigint() - begin) / 1e6;
    const [{ states }, other] = [own.printed, printed].map((text) => JSON.parse(text));
    equal("as many states of ARCx at two operations", states, other.states);
    console.log(`    ${states} states: browser ${own.milliseconds.toFixed(0)} ms, native ${native.toFixed(0)} ms, ${(own.milliseconds / native).toFixed(2)} times`);
  }
}

await all(it, [opens, breaks, checks, keeps, stops, stopsElsewhere, sweeps, likeTheProgram, measures]);
// A browser says in its console that what the page took back is not there any more: that is how a run hears of its end.
equal("no error, nothing asked elsewhere", [errors.filter((e) => !e.includes("ERR_FILE_NOT_FOUND")), elsewhere], [[], []]);
equal("only files are asked for", [...new Set(asked.filter((a) => a.includes("/deep/")))].sort(), ["", "mu-check.wasm", "studio.css", "studio.js", "worker.js"].map((f) => `GET /deep/folder/${f}`));
await browser.close();
server.close();
end();
