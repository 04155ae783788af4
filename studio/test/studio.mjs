// The local web page in a real browser: `node test/studio.mjs MU-CHECK [FOLDER FOR SHOTS]`. A model is opened, broken, mended and checked; its
// counterexample is stepped through and compared with another, then walked along; a sweep is run and stopped; the system is drawn. Another page's requests are refused.

import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { launch } from "./browser.mjs";
import { all, breaksAndMends, check, end, equal, open, pixels, recordTexts, savesAPage } from "./page.mjs";

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
write("never2.mcrl2", "act enter, leave, mid: Nat;\ninit enter(0) . delta;\n");
mkdirSync(join(folder, "machine"));
write("machine/sc.mcrl2", readFileSync(new URL("../../specs/machines/sc.spec", import.meta.url), "utf8"));
write("machine/sc.interface", readFileSync(new URL("../../specs/machines/direct.interface", import.meta.url), "utf8"));
write("lock.cub", readFileSync(new URL("../../specs/cubicle/naive_mutex.cub", import.meta.url), "utf8"));
write("run.axe", "0: M[0] := 1\n0: M[1] == 0\n1: M[1] := 1\n1: M[0] == 0\n");
write("never.mcf", `% Nothing but zero leaves ${BAD}\n[true* . leave(1)]false\n`);
write("always.mcf", "% It never stops.\n[true*]<true>true\n");
write("grow.mcrl2", "$param n: Nat = 3;\nact step: Nat;\nproc P(a: Nat, b: Nat, c: Nat) = (a < ${n} * 15) -> step(0) . P(a + 1, b, c) + (b < ${n} * 15) -> step(1) . P(a, b + 1, c) + (c < ${n} * 15) -> step(2) . P(a, b, c + 1);\ninit P(0, 0, 0);\n");

write("cube.mcrl2", "act step: Nat; back;\nproc P(a: Nat, b: Nat, c: Nat) = (a < 26) -> step(0) . P(a + 1, b, c) + (b < 26) -> step(1) . P(a, b + 1, c) + (c < 26) -> step(2) . P(a, b, c + 1)\n  + (a == 26 && b == 26 && c == 26) -> back . P(0, 0, 0);\ninit P(0, 0, 0);\n");

const server = spawn(program, ["studio", folder, "--threads", "1"], { stdio: ["ignore", "pipe", "inherit"] });
const address = await new Promise((found, lost) => {
  let said = "";
  server.stdout.on("data", (data) => (said += data).includes("\n") && found(said.trim()));
  server.on("exit", (code) => lost(new Error(`the server ended with ${code}`)));
});

const browser = await launch();
const it = await open(browser, address, { shots, patience: 300_000 });
const { context, page, errors, elsewhere, picture, press, list, tab } = it;

async function opens() {
  await page.goto(address);
  await page.locator(".files li").first().waitFor();
  equal("the files", await page.locator(".files .open").allInnerTexts().then((t) => t.map((s) => s.split("\n")[0])), ["always.mcf", "buffer.mcrl2", "cube.mcrl2", "grow.mcrl2", "lock.cub", "never.mcf", "never2.mcrl2", "run.axe", "▾ machine/", "sc.interface", "sc.mcrl2"]);
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
  await list().getByText("1 of 2 false").waitFor();
  // The result before has the other formula's as well.
  await page.getByRole("button", { name: /^Walk along the counterexample of \[/ }).waitFor({ state: "detached" });
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
  const description = page.locator(".description");
  await description.getByText("15 states, 22 transitions").waitFor();
  const written = await recordTexts(page);
  await page.getByRole("button", { name: "Whole picture" }).click();
  const names = await written();
  const apart = (a, b) => a === b || a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
  check("names are written, and none over another", names.length > 8 && names.every((a) => names.every((b) => apart(a, b))), names);
  await page.getByLabel("Grouped by").selectOption("state of Second");
  equal("grouped by the state of a component", (await page.locator(".legend span").allInnerTexts())[0], "● before take, [], ·");
  await page.getByLabel("Grouped by").selectOption("position of Second");
  equal("a legend", await page.locator(".legend span").allInnerTexts(), ["● before take", "● before leave"]);
  await page.getByLabel("Search states and actions").fill("leave(1)");
  await page.keyboard.press("Enter");
  check("search selects a state", (await description.innerText()).includes("Path to here"), await description.innerText());
  await picture("system");
  await page.getByRole("button", { name: "Walk there" }).click();
  await page.locator(".walk .here").getByText("After step").waitFor();
  await tab("System");
  await page.getByLabel("Modulo").selectOption("branching");
  await description.getByText("of 15 states before reduction").waitFor();
  check("a quotient", (await description.innerText()).startsWith("buffer.mcrl2, branching quotient: 7 states, "), await description.innerText());
  await page.getByLabel("Modulo").selectOption("no quotient");
}

/** A counterexample in the picture; states are dragged; the picture is saved. */
async function drawsAPath() {
  await tab("Results");
  await page.locator(".run-list .open", { hasText: "check" }).first().click();
  await page.getByRole("button", { name: /^Draw the counterexample of never/ }).click();
  const description = page.locator(".description");
  await description.getByText("The counterexample of never.mcf, 3 steps").waitFor();
  check("the counterexample is drawn", (await description.innerText()).includes("enter(1) · tau · leave(1)"), await description.innerText());
  const written = await recordTexts(page);
  await page.getByRole("button", { name: "Whole picture" }).click();
  const names = (await written()).map((t) => t.text);
  check("its actions have names", ["enter(1)", "leave(1)"].every((n) => names.some((t) => t.includes(n))), names);
  // The initial state is dragged; its place in the picture is at the top, in the middle.
  const canvas = page.locator("canvas.picture");
  const box = await canvas.boundingBox();
  const saved = async (kind) => {
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: kind, exact: true }).click()]);
    const file = join(folder, `saved.${kind}`);
    await download.saveAs(file);
    return { name: download.suggestedFilename(), bytes: readFileSync(file) };
  };
  const svg = await saved("SVG");
  const text = svg.bytes.toString();
  check("the picture is saved as SVG", svg.name === "buffer.mcrl2-n=2.svg" && text.startsWith("<svg ") && text.includes(">leave(1)</text>"), [svg.name, text.slice(0, 200)]);
  const parsed = await page.evaluate((t) => new DOMParser().parseFromString(t, "image/svg+xml").querySelectorAll("parsererror, path").length, text);
  check("which is well formed", parsed > 3, parsed);
  const png = await saved("PNG");
  equal("and as PNG", [png.name, png.bytes.subarray(1, 4).toString()], ["buffer.mcrl2-n=2.png", "PNG"]);
  const restore = page.getByRole("button", { name: "Restore layout" });
  equal("nothing is dragged", await restore.isVisible(), false);
  const circles = [...text.matchAll(/M([\d.]+) ([\d.]+)a([\d.]+) /g)].map((m) => [Number(m[1]) + Number(m[3]), Number(m[2])]);
  const [x, y] = circles[0];
  await page.mouse.move(box.x + x, box.y + y);
  await page.mouse.down();
  await page.mouse.move(box.x + x + 60, box.y + y + 20, { steps: 4 });
  await page.mouse.up();
  equal("a state is dragged", await restore.isVisible(), true);
  check("and drawn there", (await saved("SVG")).bytes.toString() !== text);
  await picture("dragged");
  await restore.click();
  equal("and moves back", [await restore.isVisible(), (await saved("SVG")).bytes.toString() === text], [false, true]);
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
  const description = page.locator(".description");
  await description.getByText("2,000 states").waitFor();
  console.log(`    from the click to 2,000 states: ${(performance.now() - begin).toFixed(0)} ms`);
  check("it says that there are more", (await description.innerText()).includes("there are more"), await description.innerText());
  const box = await page.locator("canvas.picture").boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  const scaled = performance.now();
  for (let i = 0; i < 10; i++) await page.mouse.wheel(0, i < 5 ? -120 : 120);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => done())));
  console.log(`    scaled ten times in ${(performance.now() - scaled).toFixed(0)} ms`);
  await page.locator("canvas.picture").focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  check("keys select a state", (await description.innerText()).includes("Path to here, 1 step"), await description.innerText());
  await picture("many");
}

/** Twenty thousand states: all are seen, found, coloured, and each has a path. */
async function drawsAll() {
  await page.getByLabel("Model", { exact: true }).selectOption("cube.mcrl2");
  await page.getByLabel("Parameters").fill("");
  await page.getByLabel("Grouped by").selectOption("nothing");
  await press("Draw");
  const description = page.locator(".description");
  await description.getByText("2,000 states").waitFor();
  const begin = performance.now();
  await page.getByRole("button", { name: "Draw more" }).click();
  await description.getByText("19,683 states").waitFor();
  console.log(`    to 19,683 states: ${(performance.now() - begin).toFixed(0)} ms`);
  equal("that is all", await page.getByRole("button", { name: "Draw more" }).count(), 0);
  const grey = (await pixels(page, ["--quiet"]))["--quiet"];
  check("states are seen in the whole picture", grey > 10_000, grey);
  await page.getByLabel("Search states and actions").fill("back");
  await page.keyboard.press("Enter");
  check("the farthest is found, with its path in few words", (await description.innerText()).includes("Path to here, 78 steps: step(0) × 26 · step(1) × 26 · step(2) × 26"), await description.innerText());
  await page.locator("canvas.picture").focus();
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("ArrowRight");
  check("keys go to the state beside", (await description.innerText()).includes("Path to here, 77 steps: ") && !(await description.innerText()).includes("step(2) × 25"), await description.innerText());
  await page.getByLabel("Search states and actions").fill("26");
  await page.getByRole("button", { name: "Whole picture" }).click();
  check("what is found is seen in the whole picture", (await pixels(page, ["--found-state"]))["--found-state"] > 2_000);
  await page.getByLabel("Search states and actions").fill("");
  await page.getByLabel("Grouped by").selectOption("a");
  const colours = await pixels(page, [0, 1, 2, 3, 4, 5, 6, 7].map((n) => `--c${n}`));
  check("so are the groups", Object.values(colours).every((n) => n > 500), colours);
  await picture("all");
  const frames = await page.evaluate(async () => {
    const canvas = document.querySelector("canvas.picture");
    const begin = performance.now();
    for (let i = 0; i < 10; i++) {
      canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: i < 5 ? -60 : 60, cancelable: true }));
      await new Promise((done) => requestAnimationFrame(done));
    }
    return (performance.now() - begin) / 10;
  });
  console.log(`    a picture of all of them: ${frames.toFixed(0)} ms`);
  // A quotient that cannot be drawn: no picture of something else in its place.
  await page.getByLabel("Modulo").selectOption("branching");
  await description.getByText("of 19,683 states before reduction").waitFor();
  await page.getByLabel("Model", { exact: true }).selectOption("grow.mcrl2");
  await page.getByLabel("Parameters").fill("n=40");
  await press("Draw");
  await description.locator(".error").waitFor();
  equal("what cannot be drawn says why, and no other picture stands there", [(await description.innerText()).includes("grow.mcrl2 n=40"), (await description.innerText()).includes("more than 20000 states"), await page.locator("canvas.picture").isVisible()], [true, true, false]);
  await page.getByLabel("Modulo").selectOption("no quotient");
  await description.getByText("2,000 states").waitFor();
}

/** The result as a file for somebody else, and on paper; tabs by keys. */
async function hands() {
  await tab("Results");
  await page.locator(".run-list .open").last().press("Enter");
  await page.locator(".refusal").waitFor();
  // A result that comes while another sheet is shown is laid out when its own is.
  await tab("Walk");
  await page.locator(".run-list .open", { hasText: "2. check" }).dispatchEvent("click");
  await page.locator(".chart").waitFor({ state: "attached" });
  equal("nothing is drawn where there is no room", await page.locator(".row").count(), 0);
  await tab("Results");
  await page.locator(".row").first().waitFor();
  await savesAPage(it, folder, "buffer-check.html", async (other) => {
    equal("the verdicts are in it", await other.locator(".results tbody .verdict").allInnerTexts(), ["✔ true", "✘ false"]);
    equal("and the run", await other.locator(".row .label").allInnerTexts(), ["enter(1)", "mid(1)", "leave(1)"]);
    equal("and the command", await other.locator(".command code").first().innerText(), "mu-check check buffer.mcrl2 always.mcf never.mcf");
  });
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  await page.emulateMedia({ media: "print" });
  equal("on paper the result alone", [await page.locator(".row:visible").count(), await page.locator(".files:visible, .middle:visible, .bar:visible, .tabs:visible").count()], [3, 0]);
  await page.emulateMedia({ media: "screen" });
  await page.evaluate(() => dispatchEvent(new Event("afterprint")));
  await page.getByRole("tab", { name: "Results" }).focus();
  await page.keyboard.press("ArrowRight");
  equal("arrow keys go from tab to tab", [await page.getByRole("tab", { selected: true }).innerText(), await page.locator("#panel-walk").isVisible()], ["Walk", true]);
  const wide = () => page.locator(".columns > .right").evaluate((e) => e.getBoundingClientRect().width);
  const bar = page.getByRole("separator", { name: "Room for the results" });
  const before = await wide();
  await bar.press("ArrowLeft");
  const more = await wide();
  const at = await bar.boundingBox();
  await page.mouse.move(at.x + 3, at.y + 200);
  await page.mouse.down();
  await page.mouse.move(at.x - 150, at.y + 200, { steps: 3 });
  await page.mouse.up();
  const most = await wide();
  await bar.dblclick();
  check("the bar gives the results more room, by keys and by the mouse, and goes back", before + 30 < more && more + 100 < most && Math.abs((await wide()) - before) < 2, [before, more, most, await wide()]);
  const unnamed = await page.evaluate(() => {
    const named = (e) => e.getAttribute("aria-label") || e.textContent?.trim() || e.labels?.length || e.title;
    return [...document.querySelectorAll("button, input, select, canvas, [role]")].filter((e) => !named(e) && e.getClientRects().length > 0).map((e) => e.outerHTML.slice(0, 200));
  });
  equal("all that can be used has a name", unnamed, []);
}

/** Parameters with blanks and in fields; commands of the list; nothing stays disabled. */
async function commands() {
  await tab("Results");
  await page.getByLabel("Model", { exact: true }).selectOption("buffer.mcrl2");
  const parameters = page.getByLabel("Parameters");
  await parameters.fill("n = 3");
  await press("Explore");
  await list().getByText("done").waitFor();
  check("blanks around = are allowed", (await page.locator(".command code").first().innerText()).includes("-D n=3"), await page.locator(".command code").first().innerText());
  await page.locator(".declared summary").click();
  equal("a field for each parameter, with its sort and its comment", [await page.getByLabel("Value of n").inputValue(), await page.locator(".declared label .quiet").allInnerTexts()], ["3", ["Nat, places"]]);
  await page.getByLabel("Value of n").fill("1");
  equal("a field edits the line", await parameters.inputValue(), "n=1");
  await picture("fields");
  await page.locator(".declared summary").click();
  for (const wrong of ["depth", "n=", "= 3", "n=3 =", "n 3"]) {
    await parameters.fill(wrong);
    for (const button of ["Explore", "Sweep", "Check"]) {
      await press(button);
      await page.locator(".message").getByText("Parameters:").waitFor();
    }
  }
  const disabled = await page.getByRole("toolbar", { name: "Runs" }).getByRole("button").evaluateAll((all) => all.filter((b) => b.disabled).map((b) => b.innerText));
  equal("an error disables no button", disabled, []);
  await parameters.fill("");
  const choose = async (kind) => page.getByLabel("Command", { exact: true }).selectOption(kind);
  await choose("reduce");
  await page.getByLabel("Equivalence").selectOption("branching");
  await press("Run");
  await page.getByText("7 classes of equivalent states").waitFor();
  await choose("compare");
  await press("Run");
  await page.locator(".message").getByText("Choose the other system").waitFor();
  await page.getByLabel("With", { exact: true }).selectOption("never2.mcrl2");
  await press("Run");
  await list().getByText("different").waitFor();
  // A field keeps its value when the command changes.
  await page.locator(".conclusion", { hasText: "differ (branching)" }).waitFor();
  check("the comparison is a sentence, with the difference", (await page.locator(".conclusion").innerText()).includes("differ (branching)") && (await page.locator(".result-place .code").count()) === 1, await page.locator(".result-place").innerText());
  await picture("compare");
  await choose("conform");
  await page.getByLabel("Model", { exact: true }).selectOption("machine/sc.mcrl2");
  await page.waitForFunction(() => document.querySelector('[name="interface"]')?.value !== "");
  equal("the interface of the machine is proposed", await page.getByLabel("Interface").inputValue(), "machine/sc.interface");
  await page.getByLabel("Against").fill("sc, tso");
  await page.getByLabel("Operations").fill("2");
  await press("Run");
  await list().getByText("strongest model: sc, up to 2 operations of each processor").waitFor();
  check("conformance in its own view", (await page.locator(".results tbody").first().innerText()).includes("conforms"), await page.locator(".results tbody").first().innerText());
  await picture("conform");
  await choose("prove");
  await press("Run");
  await page.locator(".message").getByText("does not read").waitFor();
  await page.getByLabel("Model", { exact: true }).selectOption("lock.cub");
  await press("Run");
  await list().getByText("safe").waitFor();
  check("a proof is a sentence", (await page.locator(".conclusion").innerText()).includes("safe for every number of processes"), await page.locator(".conclusion").innerText());
  await choose("trace");
  await page.getByLabel("Model", { exact: true }).selectOption("run.axe");
  await page.getByLabel("Against").fill("sc");
  await press("Run");
  await list().getByText("forbidden").waitFor();
  await page.locator(".result-place svg.graph").waitFor();
  check("a forbidden trace has its cycle and its lines", (await page.locator(".graph .edge-fr, .graph [class*=fr]").count()) > 0 && (await page.locator(".result-place .results").last().locator("tbody tr").count()) === 4, await page.locator(".result-place").innerText());
  await page.locator(".file-name", { hasText: "run.axe" }).waitFor();
  await picture("trace");
  await page.locator(".files .folder .open").first().click();
  equal("a folder closes", await page.locator(".files .open", { hasText: "sc.interface" }).count(), 0);
  await page.locator(".files .folder .open").first().click();
}

/** A file that another program changes; a reload of the page; a result that is out of date. */
async function changesOnDisk() {
  await page.locator(".files .open", { hasText: "always.mcf" }).first().click();
  await page.locator(".cm-line").first().click();
  await page.keyboard.press("Home");
  await page.keyboard.type("% mine ");
  write("always.mcf", "% theirs\n[true*]<true>true\n");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.locator(".message").getByText("Another program has changed").waitFor();
  await page.getByRole("button", { name: "Compare", exact: true }).click();
  const shown = await page.locator(".message pre").innerText();
  check("the lines that differ", shown.includes("- % theirs") && shown.includes("+ % mine"), shown);
  await picture("conflict");
  await page.getByRole("button", { name: "Overwrite" }).click();
  await page.locator(".message").waitFor({ state: "hidden" });
  check("mine is written", readFileSync(join(folder, "always.mcf"), "utf8").startsWith("% mine"));
  write("always.mcf", "% theirs again\n[true*]<true>true\n");
  await page.locator(".cm-line").first().click();
  await page.keyboard.type("x");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByRole("button", { name: "Reload" }).click();
  await page.locator(".cm-line", { hasText: "theirs again" }).waitFor();
  await page.getByLabel("Model", { exact: true }).selectOption("buffer.mcrl2");
  await page.getByLabel("Check always.mcf").check();
  await page.getByLabel("Formula", { exact: true }).press("Control+Enter");
  await list().getByText("true").waitFor();
  await page.locator(".result-place .result").waitFor();
  await page.locator(".cm-line", { hasText: "act enter" }).click();
  await page.keyboard.press("End");
  await page.keyboard.type(" ");
  await page.locator(".stale").waitFor();
  await page.keyboard.press("Backspace");
  await page.getByLabel("Parameters").fill("n=2");
  await it.formula("<true>true");
  await page.reload();
  await page.locator(".files li").first().waitFor();
  await page.waitForFunction(() => document.querySelector(".file-name")?.textContent === "buffer.mcrl2");
  equal("a reload keeps what is shown", [await page.getByLabel("Parameters").inputValue(), await page.getByLabel("Formula", { exact: true }).inputValue(), await page.getByLabel("Check always.mcf").isChecked()], ["n=2", "<true>true", true]);
}

/** All form fields with random texts: no control stays disabled, no error of the page. */
async function fuzzes() {
  let seed = Number(process.env.SEED ?? Date.now() % 1_000_000);
  console.log(`    SEED=${seed}`);
  const random = (n) => {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    return Math.floor((seed / 2147483648) * n);
  };
  const texts = ["", "=", "n", "n=", "n = 3", "n=1..=2", "[true*", "<img>", "${n}", "'\"", "--help", "n=any", "0", "-1", "any", "sc,,tso", "\u0000", "日本"];
  const bar = page.getByRole("toolbar", { name: "Runs" });
  for (let round = 0; round < 60; round++) {
    for (const field of await bar.locator("input:visible").all()) await field.fill(texts[random(texts.length)].replace("\u0000", ""));
    for (const field of await bar.locator("select:visible").all()) {
      const n = await field.locator("option").count();
      if (n > 0) await field.selectOption({ index: random(n) });
    }
    const buttons = await bar.locator("button:visible").all();
    await buttons[random(buttons.length)].click({ timeout: 10_000 });
    for (const stop of await page.locator(".run-list .stop:visible").all()) await stop.click({ timeout: 2_000 }).catch(() => undefined);
  }
  await page.waitForFunction(() => [...document.querySelectorAll(".bar button")].every((b) => !b.disabled), null, { timeout: 60_000 });
  check("no control stays disabled", true);
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

await all(it, [opens, breaks, checks, dragsAndCompares, walks, draws, drawsAPath, sweepsAndStops, drawsMany, drawsAll, hands, commands, changesOnDisk, fuzzes, others]);
equal("no image, no error, no request elsewhere", [await page.locator("img").count(), errors.filter((e) => !e.includes("status of 4")), elsewhere], [0, [], []]);
await browser.close();
const ended = new Promise((done) => server.on("exit", done));
server.kill("SIGINT");
equal("an interrupt ends the server", await ended, 0);
rmSync(folder, { recursive: true, force: true });
end();
