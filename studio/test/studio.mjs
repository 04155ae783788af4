// The page of this machine in a real browser: `node test/studio.mjs MU-CHECK [FOLDER FOR SHOTS]`. A model is opened, broken, mended and checked; its
// counterexample is stepped through and compared with another, then walked along; a sweep is run and stopped; the system is drawn. Another page's requests are refused.

import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { launch } from "./browser.mjs";
import { all, breaksAndMends, check, end, equal, open } from "./page.mjs";

const [program = "../target/release/mu-check", shots] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "mu-check-studio-test-"));
const write = (name, text) => writeFileSync(join(folder, name), text);
const BAD = "<img src=x onerror=alert(1)>";
write("buffer.mcrl2", `% A buffer between two.
$param n: Nat = 2;  % places
act enter, leave, give, take, mid: Nat;
proc First = sum i: Nat. (i < \${n}) -> enter(i) . give(i) . First;
proc Second(held: List(Nat)) = sum i: Nat. take(i) . leave(i) . Second([i]);
init hide({mid}, allow({enter, leave, mid}, comm({give|take -> mid}, First || Second([]))));
`);
write("never.mcf", `% Nothing but zero leaves ${BAD}\n[true* . leave(1)]false\n`);
write("always.mcf", "% It never stops.\n[true*]<true>true\n");
write("grow.mcrl2", "$param n: Nat = 3;\nact step: Nat;\nproc P(a: Nat, b: Nat, c: Nat) = (a < ${n} * 15) -> step(0) . P(a + 1, b, c) + (b < ${n} * 15) -> step(1) . P(a, b + 1, c) + (c < ${n} * 15) -> step(2) . P(a, b, c + 1);\ninit P(0, 0, 0);\n");

const server = spawn(program, ["studio", folder, "--threads", "1"], { stdio: ["ignore", "pipe", "inherit"] });
const address = await new Promise((found, lost) => {
  let said = "";
  server.stdout.on("data", (data) => (said += data).includes("\n") && found(said.trim()));
  server.on("exit", (code) => lost(new Error(`the server ended with ${code}`)));
});

const browser = await launch();
const it = await open(browser, address, { shots, patience: 60_000 });
const { context, page, errors, elsewhere, picture, press, list, tab } = it;

async function opens() {
  await page.goto(address);
  await page.locator(".files li").first().waitFor();
  equal("the files", await page.locator(".files .open").allInnerTexts().then((t) => t.map((s) => s.split("\n")[0])), ["always.mcf", "buffer.mcrl2", "grow.mcrl2", "never.mcf"]);
  equal("the first model is open", await page.locator(".file-name").innerText(), "buffer.mcrl2");
  await page.locator(".tok-keyword").first().waitFor();
  check("it is coloured", (await page.locator(".tok-event").count()) > 5);
  equal("no problem", await page.locator(".problems").innerText(), "No problems");
  await picture("open");
}

const breaks = () => breaksAndMends(it, { line: "proc First", end: "First;", right: "First", wrong: "Frist" });

async function checks() {
  await page.getByLabel("Check never.mcf").check();
  await page.getByLabel("Check always.mcf").check();
  await press("Check");
  await page.locator(".results tbody .verdict").first().waitFor();
  equal("verdicts", await page.locator(".results tbody .verdict").allInnerTexts(), ["✔ true", "✘ false"]);
  check("it was saved before", readFileSync(join(folder, "buffer.mcrl2"), "utf8").includes(". First;"));
  await page.locator(".row").first().waitFor();
  equal("the run", await page.locator(".row .label").allInnerTexts(), ["enter(1)", "mid(1)", "leave(1)"]);
  check("the comment is a text", (await page.locator(".about").innerText()).includes(BAD));
  check("the command", (await page.locator(".command code").first().innerText()) === "mu-check check buffer.mcrl2 always.mcf never.mcf", await page.locator(".command code").first().innerText());
  const slider = page.getByRole("slider");
  await slider.fill("3");
  equal("the slider goes to a step", await page.locator(".state h4").innerText(), "After step 3 of 3: leave(1)");
  await picture("checked");
}

/** Drags the slider from one end to the other with the mouse; puts two counterexamples side by side. */
async function dragsAndCompares() {
  const slider = page.getByRole("slider").first();
  await slider.fill("0");
  await slider.scrollIntoViewIfNeeded();
  const box = await slider.boundingBox();
  await page.mouse.move(box.x + 8, box.y + box.height / 2);
  await page.mouse.down();
  for (const part of [0.3, 0.6, 1]) await page.mouse.move(box.x + box.width * part - 4, box.y + box.height / 2, { steps: 4 });
  await page.mouse.up();
  equal("the slider is dragged", await page.locator(".state h4").innerText(), "After step 3 of 3: leave(1)");
  await page.getByLabel("Check always.mcf").uncheck();
  await it.formula("[true* . enter(0) . true* . enter(1)]false");
  await press("Check");
  await list().getByText("2 of 2 false").waitFor();
  await page.locator(".results tbody tr").nth(1).waitFor();
  await page.getByLabel("Compare with").selectOption({ index: 1 });
  equal("two runs side by side", await page.locator(".pane").count(), 2);
  check("it says where they differ", /differ from step \d+ on/.test(await page.locator(".compared").innerText()), await page.locator(".compared").innerText());
  await page.getByRole("slider").first().fill("2");
  equal("both move", await page.locator(".slider output").allInnerTexts().then((all) => all.map((t) => t.split(" ")[0])), ["2", "2"]);
  await picture("compared");
  await it.formula("");
  await page.getByLabel("Check always.mcf").check();
  await press("Check");
  await page.getByRole("button", { name: /^Walk along the counterexample of never/ }).waitFor();
}

async function walks() {
  await page.getByRole("button", { name: /^Walk along the counterexample/ }).click();
  const here = page.locator(".walk .here");
  await here.getByText("After step 3").waitFor();
  equal("the walk goes along the counterexample", await here.innerText(), "After step 3: leave(1)");
  equal("what changed", await page.locator(".walk .is-changed th").allInnerTexts().then((t) => t.includes("held")), true);
  await page.getByRole("button", { name: "← Back" }).click();
  await page.getByRole("button", { name: "← Back" }).click();
  equal("back", await here.innerText(), "After step 1: enter(1)");
  await page.getByRole("button", { name: "Initial state", exact: true }).click();
  await page.locator(".steps button", { hasText: "enter(0)" }).click();
  await page.locator(".steps button", { hasText: "tau (mid(0))" }).click();
  await here.getByText("After step 2: tau (mid(0))").waitFor();
  equal("another branch", await here.innerText(), "After step 2: tau (mid(0))");
  equal("both ways are kept", await page.locator(".ways button").allInnerTexts(), ["initial state", "1. enter(0)", "2. tau (mid(0))", "1. enter(1)", "2. tau (mid(1))", "3. leave(1)"]);
  await page.locator(".ways button", { hasText: "3. leave(1)" }).click();
  equal("a click goes back to the other", await here.innerText(), "After step 3: leave(1)");
  await page.locator(".ways button", { hasText: "3. leave(1)" }).press("ArrowLeft");
  equal("keys too", await here.innerText(), "After step 2: tau (mid(1))");
  await picture("walk");
}

async function draws() {
  await press("Draw");
  const told = page.locator(".told");
  await told.getByText("15 states, 22 transitions").waitFor();
  await page.getByLabel("Grouped by").selectOption("position of Second");
  equal("a legend", await page.locator(".legend span").allInnerTexts(), ["● before take", "● before leave"]);
  await page.getByLabel("Search states and actions").fill("leave(1)");
  await page.keyboard.press("Enter");
  check("search selects a state", (await told.innerText()).includes("Path to here"), await told.innerText());
  await picture("system");
  await page.getByRole("button", { name: "Walk there" }).click();
  await page.locator(".walk .here").getByText("After step").waitFor();
  await tab("System");
  await page.getByLabel("Modulo").selectOption("branching");
  await told.getByText("of 15 states before reduction").waitFor();
  check("a quotient", (await told.innerText()).startsWith("7 states"), await told.innerText());
  await page.getByLabel("Modulo").selectOption("no quotient");
}

async function sweepsAndStops() {
  await page.getByLabel("Model", { exact: true }).selectOption("grow.mcrl2");
  await page.getByLabel("Check never.mcf").uncheck();
  await page.getByLabel("Parameters").fill("n=1..=40");
  await press("Sweep");
  await page.locator(".result-place .results tbody tr").nth(1).waitFor();
  check("rows come while it runs", (await list().innerText()).includes("Stop"), await list().innerText());
  await picture("sweep");
  await list().getByRole("button", { name: "Stop" }).click();
  await list().getByText("stopped").waitFor();
  const rows = await page.locator(".result-place .results tbody tr").count();
  check("its rows stay", rows >= 2 && rows < 80, rows);
  await press("Explore");
  await page.locator(".refusal").waitFor();
  check("a range is no value for a single run", (await page.locator(".refusal").innerText()).includes("n"), await page.locator(".refusal").innerText());
  await page.getByLabel("Parameters").fill("n=40");
  await press("Explore");
  await list().getByText("states").waitFor();
  await staysTheSame();
  await list().getByRole("button", { name: "Stop" }).click();
  await list().getByText("stopped").waitFor();
  await page.locator(".facts dt", { hasText: "Stopped" }).waitFor();
  check("an exploration that was stopped says what it has", (await page.locator(".facts").last().innerText()).includes("interrupted"), await page.locator(".facts").last().innerText());
  await picture("stopped");
}

/** A line of progress changes a run's text, and no element: what is drawn anew cannot be clicked, nor keep the focus. */
async function staysTheSame() {
  const stop = list().getByRole("button", { name: "Stop" });
  await stop.focus();
  const seen = await list().evaluate(
    (row) =>
      new Promise((done) => {
        const button = row.querySelector(".stop");
        const before = row.innerText;
        const look = () => (row.innerText === before ? setTimeout(look, 20) : done({ same: button === document.querySelector(".run-list li .stop"), shown: button.isConnected, focus: document.activeElement === button }));
        look();
      }),
  );
  equal("Stop is the same element after a line of progress", seen, { same: true, shown: true, focus: true });
}

/** The first two thousand states of many: drawn, moved, scaled. */
async function drawsMany() {
  const begin = performance.now();
  await press("Draw");
  const told = page.locator(".told");
  await told.getByText("2,000 states").waitFor();
  console.log(`    from the click to 2,000 states: ${(performance.now() - begin).toFixed(0)} ms`);
  check("it says that there are more", (await told.innerText()).includes("there are more"), await told.innerText());
  const box = await page.locator("canvas.picture").boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  const scaled = performance.now();
  for (let i = 0; i < 10; i++) await page.mouse.wheel(0, i < 5 ? -120 : 120);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => done())));
  console.log(`    scaled ten times in ${(performance.now() - scaled).toFixed(0)} ms`);
  await page.locator("canvas.picture").focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  check("keys select a state", (await told.innerText()).includes("Path to here, 1 step"), await told.innerText());
  await picture("many");
}

/** A page of another origin, in the same browser, that knows the address. */
async function others() {
  const other = createServer((_, answer) => answer.setHeader("Content-Type", "text/html").end("<title>other</title>"));
  await new Promise((done) => other.listen(0, "127.0.0.1", done));
  const evil = await context.newPage();
  await evil.goto(`http://127.0.0.1:${other.address().port}/`);
  const tried = await evil.evaluate(async (address) => {
    const attempt = (path, options) => fetch(address + path, options).then((r) => r.status, () => "refused");
    const body = JSON.stringify({ kind: "explore", model: "buffer.mcrl2" });
    const json = { method: "POST", headers: { "Content-Type": "application/json" }, body };
    return [await attempt("api/files", {}), await attempt("api/run", json), await attempt("api/run", { method: "POST", mode: "no-cors", body })];
  }, address);
  // A request without an answer that may be read still has to be refused: no run was started by it.
  equal("another origin reads nothing", tried.slice(0, 2), ["refused", "refused"]);
  const before = await page.locator(".run-list li").count();
  await page.waitForTimeout(300);
  equal("and starts nothing", await page.locator(".run-list li").count(), before);
  const framed = await evil.evaluate(async (address) => {
    const frame = document.createElement("iframe");
    frame.src = address;
    document.body.append(frame);
    await new Promise((done) => (frame.onload = done));
    try {
      return frame.contentDocument === null ? "not to be seen" : "seen";
    } catch {
      return "not to be seen";
    }
  }, address);
  equal("and embeds nothing", framed, "not to be seen");
  await evil.close();
  other.close();
}

await all(it, [opens, breaks, checks, dragsAndCompares, walks, draws, sweepsAndStops, drawsMany, others]);
equal("no image, no error, no request elsewhere", [await page.locator("img").count(), errors.filter((e) => !e.includes("status of 4")), elsewhere], [0, [], []]);
await browser.close();
const ended = new Promise((done) => server.on("exit", done));
server.kill("SIGINT");
equal("an interrupt ends the server", await ended, 0);
rmSync(folder, { recursive: true, force: true });
end();
