// What a stranger looked for in the local web page and did not find: `node test/views.mjs MU-CHECK [FOLDER FOR SHOTS]`. The verdict, the reason and the run of
// every command; walks that are random, saved and loaded; the way from a step to its line; interfaces; the page at 400 pixels.

import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { launch } from "./browser.mjs";
import { all, check, end, equal, open, recordTexts } from "./page.mjs";

const [program = "../target/release/mu-check", shots] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "mu-check-views-test-"));
const write = (name, text) => writeFileSync(join(folder, name), text);
const specs = (name) => readFileSync(new URL(`../../specs/${name}`, import.meta.url), "utf8");
mkdirSync(join(folder, "cpu"));
mkdirSync(join(folder, "cpu/formulas"));
write("cpu/tso.mcrl2", specs("machines/tso.spec"));
// Each label of the machine has a line, and each line a label or a hidden action.
write("cpu/tso.interface", "initial v0;\nload load(p, a, v);\nstore store(p, a, v);\ncommit flush(p, a, v);\n");
write("cpu/tso.faults", `fault "forwards the oldest entry";
replace "address(e) == a && !holds(b, a), value(e)"
   with "address(e) == a, value(e)";

fault "the buffer is a stack";
replace "(b != []) -> c_write(p, address(head(b)), value(head(b))) . Core(p, tail(b))"
   with "(b != []) -> c_write(p, address(rhead(b)), value(rhead(b))) . Core(p, rtail(b))";
`);
write("cpu/formulas/live.mcf", "[true*]<true>true\n");
write("cpu/a.mcf", "<true>true\n");
write("SB.litmus", 'X86 SB\n{ x=0; y=0; }\n P0          | P1          ;\n MOV [x],$1  | MOV [y],$1  ;\n MOV EAX,[y] | MOV EAX,[x] ;\nexists (0:EAX=0 /\\ 1:EAX=0)\n');
write("run.csv", "time,thread,operation,address,value\n1,c0,store,0x10,1\n2,c1,store,0x20,1\n3,c0,load,0x20,0\n4,c1,load,0x10,0\n");
write("lock.m", `const N: 2;
type pid: 1..N; st: enum {Idle, Want, Crit};
var pc: array[pid] of st;
ruleset i: pid do
 rule "want" pc[i] = Idle ==> begin pc[i] := Want; endrule;
 rule "enter it" pc[i] = Want ==> begin pc[i] := Crit; endrule;
 rule "leave" pc[i] = Crit ==> begin pc[i] := Idle; endrule;
endruleset;
startstate begin for i: pid do pc[i] := Idle; end; endstartstate;
invariant "mutex" !(pc[1] = Crit & pc[2] = Crit);
`);
write("philosophers.mcrl2", `act take, put, up, down, got, back: Nat; think: Nat;
proc Phil(i: Nat) = think(i) . take(i) . take((i + 1) mod 2) . put(i) . put((i + 1) mod 2) . Phil(i);
proc Fork(i: Nat) = up(i) . down(i) . Fork(i);
init allow({got, back, think}, comm({take|up -> got, put|down -> back}, Phil(0) || Phil(1) || Fork(0) || Fork(1)));
`);
write("long.mcrl2", `act an_action_with_a_name_that_is_far_too_long_for_a_picture: Nat # List(Nat);
proc P(n: Nat, h: List(Nat)) = (n < 4) -> an_action_with_a_name_that_is_far_too_long_for_a_picture(n, h) . P(n + 1, h <| 1000 * n) + (n > 0) -> an_action_with_a_name_that_is_far_too_long_for_a_picture(n, []) . P(0, []);
init P(0, []);
`);
write("dekker.asm", specs("x86/dekker.asm"));
write("bad.mcf", "[true*]<vanish>true\n");

const server = spawn(program, ["studio", folder, "--threads", "1"], { stdio: ["ignore", "pipe", "inherit"] });
const address = await new Promise((found, lost) => {
  let said = "";
  server.stdout.on("data", (data) => (said += data).includes("\n") && found(said.trim()));
  server.on("exit", (code) => lost(new Error(`the server ended with ${code}`)));
});

const browser = await launch();
const it = await open(browser, address, { shots, prefix: "views-", patience: 120_000 });
const { page, errors, picture, press, list, tab, choose } = it;
const command = (kind) => page.getByLabel("Command", { exact: true }).selectOption(kind);
const conclusion = page.locator(".result-place .conclusion").first();
const inView = (locator) => locator.evaluate((e) => e.getBoundingClientRect().top >= 0 && e.getBoundingClientRect().bottom <= innerHeight);

async function tree() {
  await page.goto(address);
  await page.locator(".files li").first().waitFor();
  equal("each folder stands once, with its files below", await page.locator(".files .open").allInnerTexts(), ["SB.litmus", "bad.mcf", "dekker.asm", "lock.m", "long.mcrl2", "philosophers.mcrl2", "run.csv", "▾ cpu/", "a.mcf", "tso.faults", "tso.interface", "tso.mcrl2", "▾ formulas/", "live.mcf"]);
  await page.getByLabel("All formulas").check();
  equal("all formulas are chosen at once", await page.getByRole("checkbox", { checked: true }).count(), 4);
  await page.getByLabel("All formulas").uncheck();
  equal("and none", await page.locator(".tree input:checked").count(), 0);
}

/** A violated invariant is no "done". */
async function violations() {
  await choose("lock.m");
  await page.locator(".file-name", { hasText: "lock.m" }).waitFor();
  check("Murphi has colours", (await page.locator(".tok-keyword").count()) > 10, await page.locator(".tok-keyword").count());
  await press("Explore");
  await list().getByText("failure found").waitFor();
  equal("the verdict", await conclusion.innerText(), "✘ an invariant is violated");
  const failures = await page.locator(".failures").innerText();
  check("the invariant and its place", failures.includes('invariant "mutex" is false') && failures.includes("lock.m:10:11"), failures);
  equal("the run", await page.locator(".row .label").allInnerTexts().then((t) => t.length), 4);
  await picture("murphi");
  await page.locator(".failures button").click();
  await page.waitForFunction(() => getSelection().anchorNode?.parentElement?.closest(".cm-line")?.textContent.startsWith("invariant"));
  check("the place is a line of the model", true);
  await page.getByRole("button", { name: "Walk along the run to the failure" }).click();
  await page.locator(".walk .here", { hasText: "After step 4" }).waitFor();
  check("it can be walked, and leads to the violation", (await page.locator(".walk .steps").innerText()).includes("violation(mutex)"), await page.locator(".walk .steps").innerText());
  await tab("Results");
  await page.getByRole("button", { name: "Draw the run to the failure" }).click();
  await page.locator(".description").getByText("The run to the failure, 4 steps").waitFor();
  await picture("murphi-drawn");
}

async function deadlocks() {
  await choose("philosophers.mcrl2");
  await page.getByLabel("Look for").selectOption("deadlock");
  await press("Explore");
  await list().getByText("deadlock found").waitFor();
  await page.locator(".ending").waitFor();
  const ending = await page.locator(".ending").innerText();
  check("why no component continues", ending.includes("no component can continue") && ending.includes("offers take"), ending);
  const lanes = await page.locator(".lane-head").allInnerTexts();
  check("lanes have whole names", lanes.every((l) => !l.includes("…")), lanes);
  await page.getByRole("button", { name: "Walk along the path to the deadlock" }).click();
  await page.locator(".walk .end").waitFor();
  await tab("Results");
  await page.locator(".behind .place").first().click();
  await page.waitForFunction(() => getSelection().anchorNode?.parentElement?.closest(".cm-line")?.textContent.startsWith("proc "));
  check("a step leads to its line", true);
  await picture("deadlock");
  await page.getByLabel("Look for").selectOption("action");
  await page.getByLabel("Action", { exact: true }).fill("back");
  await press("Explore");
  await list().getByText("action found").waitFor();
  await page.locator(".row .label", { hasText: "back(" }).last().waitFor();
  equal("an action is found", (await page.locator(".row .label").allInnerTexts()).at(-1).startsWith("back("), true);
  await page.getByLabel("Look for").selectOption("");
}

/** The first screen of a false verdict, and of a refused formula. */
async function verdicts() {
  await page.setViewportSize({ width: 1440, height: 900 });
  await it.formula("[true* . got(0)]false");
  await page.getByLabel("Check bad.mcf").check();
  await page.getByLabel("Check cpu/a.mcf").check();
  await press("Check");
  await list().getByText("error").waitFor();
  await page.locator(".row").first().waitFor();
  check("the deciding step is on the first screen", await inView(page.locator(".row.is-selected")));
  check("and is the last one", /^(\d+) of \1 steps$/.test(await page.locator(".slider output").innerText()), await page.locator(".slider output").innerText());
  const row = await page.locator(".result-place .results tbody tr", { hasText: "bad.mcf" }).innerText();
  check("the reason and the place of an error are in its row", row.includes("error") && row.includes("1:9") && row.includes("vanish"), row);
  const time = page.locator(".results th.col-time").first();
  check("the column of the time is not cut", await time.evaluate((e) => e.getBoundingClientRect().right <= e.closest(".wide").getBoundingClientRect().right + 1));
  equal("the last verdicts stand beside the names", await page.locator(".files .last").allInnerTexts(), ["? error", "✔ true"]);
  await picture("verdicts");
  await page.locator(".results .place").first().click();
  await page.locator(".file-name", { hasText: "bad.mcf" }).waitFor();
  check("the place opens the formula", true);
  await it.formula("");
  await page.getByLabel("Check bad.mcf").uncheck();
  await page.getByLabel("Check cpu/a.mcf").uncheck();
}

async function walks() {
  await choose("philosophers.mcrl2");
  await press("Walk");
  const here = page.locator(".walk .here");
  await here.getByText("Initial state").waitFor();
  const preview = await page.locator(".walk .preview").first().innerText();
  check("each step shows what it would change", preview.includes("before") || preview.includes(":"), preview);
  await page.getByRole("button", { name: "Random run" }).click();
  await page.waitForFunction(() => document.querySelectorAll(".ways button").length > 3);
  await page.getByRole("button", { name: /^(Random run|Stop)$/ }).waitFor();
  if (await page.getByRole("button", { name: "Stop", exact: true }).count()) await page.locator(".walk").getByRole("button", { name: "Stop" }).click().catch(() => undefined);
  await page.locator(".walk").getByRole("button", { name: "Random run" }).waitFor();
  const [download] = await Promise.all([page.waitForEvent("download"), page.locator(".walk").getByRole("button", { name: "Save" }).click()]);
  const file = join(folder, "walk.json");
  await download.saveAs(file);
  const saved = JSON.parse(readFileSync(file, "utf8"));
  const title = await here.innerText();
  check("a walk is saved", saved.model === "philosophers.mcrl2" && title.includes(`After step ${saved.steps.length}:`), [title, saved.steps.length]);
  await page.getByRole("button", { name: "Initial state", exact: true }).click();
  await page.getByLabel("File with a walk").setInputFiles(file);
  await here.getByText(`After step ${saved.steps.length}:`).waitFor();
  equal("and loaded", await here.innerText(), title);
  await picture("walk");
  await page.reload();
  await page.locator(".files li").first().waitFor();
  await tab("Walk");
  await here.getByText(`After step ${saved.steps.length}:`).waitFor();
  equal("a reload keeps it", await here.innerText(), title);
}

/** Long names are cut in the middle, stay different, and stay inside the picture. */
async function labels() {
  await choose("long.mcrl2");
  await press("Draw");
  await page.locator(".description").getByText("5 states").waitFor();
  const written = await recordTexts(page);
  await page.getByRole("button", { name: "Whole picture" }).click();
  const names = await written();
  equal("eight names, all different", new Set(names.map((t) => t.text)).size, 8);
  check("cut in the middle", names.every((t) => /^an_act.*….*\)$/.test(t.text)), names.map((t) => t.text));
  const width = await page.locator("canvas.picture").evaluate((e) => e.clientWidth);
  check("inside the picture", names.every((t) => t.left >= 0 && t.right <= width), [width, names.map((t) => [t.left, t.right])]);
  await picture("labels");
}

/** Programs, and the order of memory models. */
async function programs() {
  await choose("dekker.asm");
  await command("program");
  await press("Run");
  await conclusion.getByText("not safe").waitFor();
  check("a program has its memory model and its run", (await conclusion.innerText()).includes("under total store order (tso), with 2 threads") && (await page.locator(".result-place .results tbody tr").count()) > 3, await page.locator(".result-place").innerText());
  await picture("program");
  await command("robust");
  await press("Run");
  await conclusion.getByText("not robust").waitFor();
  check("a program that is not robust has a run that shows it", (await page.locator(".result-place").innerText()).includes("A run in which the last load could read an older value"), await page.locator(".result-place").innerText());
  await picture("robust");
  await command("models");
  await press("Run");
  await conclusion.getByText("different models").waitFor();
  await page.locator(".result-place svg").first().waitFor();
  check("the order of the memory models is drawn", (await page.locator(".result-place svg text").count()) > 4 && (await page.locator(".result-place").innerText()).includes("Smallest tests of differences"), await page.locator(".result-place").innerText());
  await picture("models");
  await command("");
}

/** Results of other commands are sentences, tables and pictures; no key of the JSON is shown. */
async function results() {
  await choose("philosophers.mcrl2");
  await command("info");
  await press("Run");
  await page.locator(".col-action").first().waitFor();
  const info = await page.locator(".result-place").innerText();
  check("actions have their own names", info.includes("think") && !info.includes("Think") && !info.includes("Peak memory bytes"), info);
  await choose("cpu/tso.mcrl2");
  await command("conform");
  await page.waitForFunction(() => document.querySelector('[name="interface"]')?.value === "cpu/tso.interface");
  await page.getByLabel("Against").fill("sc");
  await press("Run");
  await list().getByText("sc: does not conform, up to").waitFor();
  await page.locator(".result-place svg.graph").waitFor();
  check("a cycle of conform is drawn", (await page.locator(".graph [class*=forbids], .graph .is-forbidding, .graph .edge-fr").count()) > 0, await page.locator(".graph").innerHTML().then((t) => t.slice(0, 300)));
  check("its run begins at the last step", /^(\d+) of \1 steps$/.test(await page.locator(".slider output").innerText()));
  await picture("conform");
  await page.getByLabel("Against").fill("tso");
  await page.getByLabel("Suite").selectOption("yes");
  await press("Run");
  await page.locator(".message", { hasText: "choose *Faults*" }).waitFor();
  check("a suite needs faults", true);
  await page.getByLabel("Faults").selectOption("cpu/tso.faults");
  await press("Run");
  await page.locator(".result-place caption", { hasText: "Suite of" }).waitFor();
  check("no old message stays", await page.locator(".message").isHidden());
  const faults = await page.locator(".result-place").innerText();
  check("the faults, and the tests that find them", faults.includes("forwards the oldest entry") && faults.includes("found") && faults.includes("the fewest that find all faults"), faults.slice(0, 2000));
  check("a test of the suite is shown", faults.includes("X86 tso-01") && faults.includes("forall ("), faults.slice(-1500));
  await picture("faults");
  await page.locator(".files .open", { hasText: "run.csv" }).click();
  await page.locator(".file-name", { hasText: "run.csv" }).waitFor();
  check("a log is shown", true);
  await command("trace");
  await page.getByLabel("Against").fill("sc");
  await press("Run");
  await list().getByText("forbidden").waitFor();
  await page.locator(".result-place svg.graph").waitFor();
  equal("the lines of the cycle", await page.locator(".result-place .results").last().locator("tbody th").allInnerTexts().then((t) => t.sort()), ["2", "3", "4", "5"]);
  await picture("trace");
  await choose("SB.litmus");
  await command("litmus");
  await press("Run");
  await list().getByText("Ok").waitFor();
  await page.getByLabel("Machine").selectOption("cpu/tso.mcrl2");
  await page.waitForFunction(() => document.querySelector('[name="interface"]')?.value === "cpu/tso.interface");
  await press("Run");
  await page.locator(".facts", { hasText: "cpu/tso.mcrl2" }).first().waitFor();
  check("a litmus test runs on a machine", (await page.locator(".command code").innerText()).includes("--machine=cpu/tso.mcrl2"), await page.locator(".command code").innerText());
  await picture("litmus");
  await command("");
}

async function interfaces() {
  await page.locator(".files .open", { hasText: "tso.interface" }).click();
  await page.locator(".file-name", { hasText: "tso.interface" }).waitFor();
  await page.locator(".tok-keyword").first().waitFor();
  await page.getByText("No problems").waitFor();
  await page.locator(".cm-content").click();
  await page.keyboard.press("Control+End");
  await page.keyboard.type("\nlaod x;");
  await page.locator(".problems .error", { hasText: "laod" }).waitFor();
  for (let i = 0; i < 7; i++) await page.keyboard.press("Backspace");
  await page.getByText("No problems").waitFor();
  await page.keyboard.type("commit fl");
  await page.keyboard.press("Control+Space");
  await page.locator(".cm-tooltip-autocomplete", { hasText: "flush(" }).waitFor();
  check("actions of the machine are offered", true);
  await page.keyboard.press("Escape");
  await page.locator(".cm-content").press("Control+a");
  await page.keyboard.type("initial v0;\nload load(p, a, v);\n");
  await page.locator(".problems li", { hasText: "no line names `store(" }).waitFor();
  check("labels without a line are marked, hidden actions are not", !(await page.locator(".problems").innerText()).includes("flush"));
  await page.keyboard.type("store sotre(p, a, v);\n");
  await page.locator(".problems li", { hasText: "`sotre` is no label" }).waitFor();
  check("names without a label are marked", true);
  await picture("interface");
}

/** One column, as wide as the screen; a run shows its result. */
async function narrow() {
  await page.setViewportSize({ width: 400, height: 850 });
  await page.reload();
  await page.locator(".files li").first().waitFor();
  const beyond = () => page.evaluate(() => document.documentElement.scrollWidth);
  equal("as wide as the screen", await beyond(), 400);
  await choose("philosophers.mcrl2");
  await it.formula("[true* . got(0)]false");
  await press("Check");
  await page.locator(".row.is-selected").waitFor();
  check("the result is in view", await inView(page.locator(".result-place .verdict").first()));
  equal("nor does a result widen it", await beyond(), 400);
  await picture("narrow-check");
  await press("Draw");
  await page.locator(".description strong").first().waitFor();
  check("so is the picture", await inView(page.locator(".system .toolbar")));
  equal("nor a picture", await beyond(), 400);
  await picture("narrow-draw");
}

await all(it, [tree, violations, deadlocks, verdicts, walks, labels, programs, results, interfaces, narrow]);
// Chromium keeps the style of text that typing replaces by an attribute, which the policy of the page blocks: the editor has styles of its own.
equal("no error of the page", errors.filter((e) => !e.includes("status of 4") && !e.startsWith("Applying inline style violates")), []);
await browser.close();
const ended = new Promise((done) => server.on("exit", done));
server.kill("SIGINT");
await ended;
rmSync(folder, { recursive: true, force: true });
end();
