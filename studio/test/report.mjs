// Pages of results in a real browser: `node test/report.mjs MU-CHECK [FOLDER]`. Makes small models, has the program write pages, and drives them as a
// reader does. Prints a line for each thing checked; ends with 1 if one is not as wanted. With FOLDER the pages stay there.

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { launch, open } from "./browser.mjs";

const program = resolve(process.argv[2] ?? "../target/release/mu-check");
const kept = process.argv[3];
const folder = kept ? resolve(kept) : mkdtempSync(join(tmpdir(), "mu-check-pages-"));
mkdirSync(folder, { recursive: true });
const at = (name) => join(folder, name);
const write = (name, text) => writeFileSync(at(name), text);
const run = (...args) => {
  try {
    return execFileSync(program, args, { cwd: folder, stdio: ["ignore", "pipe", "pipe"], encoding: "utf8", maxBuffer: 1 << 28 });
  } catch (e) {
    // A formula that does not hold ends with 1.
    if (e.status !== 1) throw new Error(`${args.join(" ")}: ${e.status}\n${e.stderr}`);
    return e.stdout;
  }
};

let failed = 0;
const check = (what, good, seen = "") => {
  console.log(`${good ? "ok" : "FAILED"}  ${what}${good || seen === "" ? "" : `: ${JSON.stringify(seen)}`}`);
  if (!good) failed += 1;
};
const equal = (what, seen, wanted) => check(what, JSON.stringify(seen) === JSON.stringify(wanted), seen);

const BAD = "</script><img src=x onerror=alert(1)>";
write("chain.mcrl2", `act enter, leave, give, take, mid: Nat;
proc First = sum n: Nat. (n < 3) -> enter(n) . give(n) . First;
proc Second(held: List(Nat)) = sum n: Nat. take(n) . leave(n) . Second([n]);
init hide({mid}, allow({enter, leave, mid}, comm({give|take -> mid}, First || Second([]))));
`);
write("never.mcf", `% Nothing but zero leaves ${BAD}\n% the chain.\n\n[true* . leave(2)]false\n`);
write("always.mcf", "% It never stops.\n[true*]<true>true\n");
write("count.mcrl2", "act step: Nat # Bool;\n    done;\nproc P(n: Nat, even: Bool) = (n < 10000) -> step(n, even) . P(n + 1, !even) <> done . delta;\ninit P(0, true);\n");
write("SB.litmus", "X86 SB\n{ x=0; y=0; }\n P0          | P1          ;\n MOV [x],$1  | MOV [y],$1  ;\n MOV EAX,[y] | MOV EAX,[x] ;\nexists (0:EAX=0 /\\ 1:EAX=0)\n");

const browser = await launch();

async function counterexample() {
  run("check", "chain.mcrl2", "never.mcf", "always.mcf", "--evidence", "check.html");
  const { page, errors, requests, context } = await open(browser, at("check.html"));
  equal("verdicts", await page.locator(".results tbody .verdict").allInnerTexts(), ["✘ false", "✔ true"]);
  check("the comment stands above the formula", (await page.locator(".about").innerText()).includes(`Nothing but zero leaves ${BAD} the chain.`));
  equal("the formula without its comment", await page.locator(".code .line").allInnerTexts(), ["[true* . leave(2)]false"]);
  check("the command", (await page.locator(".command code").first().innerText()).includes("mu-check check chain.mcrl2 never.mcf always.mcf --evidence check.html"));
  check("one run has no other to be compared with", !(await page.getByLabel("Compare with").isVisible()));
  equal("lanes", await page.locator(".lane-head").allInnerTexts(), ["First", "Second"]);
  const rows = page.locator(".row");
  equal("rows", await rows.locator(".label").allInnerTexts(), ["enter(2)", "mid(2)", "leave(2)"]);
  equal("an arrow to the one that learns", await page.locator(".row .arrow-head").count(), 1);

  const slider = page.getByRole("slider");
  const heading = page.locator(".state h4");
  equal("the run begins at the step that decides it", await heading.innerText(), "After step 3 of 3: leave(2)");
  await slider.fill("0");
  equal("initial state", await heading.innerText(), "Initial state");
  await slider.fill("3");
  equal("the slider goes to a step", await heading.innerText(), "After step 3 of 3: leave(2)");
  equal("the slider says its step", await slider.getAttribute("aria-valuetext"), "step 3: leave(2), by Second");
  equal("what changed", await page.locator(".state .is-changed th").allInnerTexts().then((t) => t.includes("held")), true);
  const place = page.locator(".state .is-changed").filter({ hasText: "position" });
  equal("the old and the new value", [await place.locator("del").innerText(), await place.locator("ins").innerText()], ["before leave", "before take"]);
  await page.getByText("Only what changed").click();
  equal("only what changed", await page.locator(".values tr:not(.is-changed)").count(), 0);
  await page.getByText("Only what changed").click();

  await page.getByLabel("Hidden steps").uncheck();
  equal("hidden steps off", await page.locator(".row .label").allInnerTexts(), ["enter(2)", "leave(2)"]);
  equal("the slider has fewer places", await slider.getAttribute("max"), "2");
  await page.getByLabel("Hidden steps").check();

  await page.getByRole("button", { name: "Initial state" }).click();
  await page.keyboard.press("ArrowRight");
  equal("keys go on", await heading.innerText(), "After step 1 of 3: enter(2)");
  await page.locator(".chart").focus();
  await page.keyboard.press("End");
  equal("keys in the chart", await heading.innerText(), "After step 3 of 3: leave(2)");
  const active = await page.locator(".chart").getAttribute("aria-activedescendant");
  equal("the chart says which step is selected", await page.locator(`#${active}`).getAttribute("aria-label"), "step 3: leave(2), by Second");
  await page.locator(".row").first().click();
  equal("a click selects", await heading.innerText(), "After step 1 of 3: enter(2)");
  await page.keyboard.press("/");
  await page.keyboard.type("leave(2");
  await page.keyboard.press("Enter");
  equal("search", [await page.locator(".hits").innerText(), await heading.innerText()], ["1 of 1", "After step 3 of 3: leave(2)"]);

  await page.getByText("Lanes 2 of 2").click();
  await page.getByRole("button", { name: "Move Second left" }).click();
  equal("lanes change places", await page.locator(".lane-head").allInnerTexts(), ["Second", "First"]);
  check("the focus stays with the lane", await page.evaluate(() => document.activeElement?.getAttribute("aria-label") === "Move Second right"));
  await page.getByRole("checkbox", { name: "First" }).uncheck();
  equal("a lane is hidden", await page.locator(".lane-head").allInnerTexts(), ["Second"]);
  equal("what both did is still there", await page.locator(".row .label").allInnerTexts(), ["mid(2) with First", "leave(2)"]);
  await page.getByRole("checkbox", { name: "First" }).check();
  await page.keyboard.press("Escape");
  check("the menu closes", !(await page.locator(".menu ul").isVisible()));
  await page.dragAndDrop(".lane-head:nth-child(1)", ".lane-head:nth-child(2)");
  equal("lanes are dragged", await page.locator(".lane-head").allInnerTexts(), ["First", "Second"]);

  await page.getByRole("button", { name: "always.mcf" }).click();
  check("another formula", (await page.locator(".result h3").first().innerText()).startsWith("always.mcf"));
  await page.getByRole("button", { name: "never.mcf" }).click();

  const unnamed = await page.evaluate(() => {
    const named = (e) => e.getAttribute("aria-label") || e.textContent?.trim() || e.labels?.length;
    return [...document.querySelectorAll("button, input, select, [role=listbox], [role=toolbar]")].filter((e) => !named(e)).map((e) => e.outerHTML);
  });
  equal("all that can be used has a name", unnamed, []);
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  await page.emulateMedia({ media: "print" });
  // What has changed its size is told with the next frame.
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  equal("on paper all rows", await page.locator(".row").count(), 3);
  equal("on paper the end is told", await page.locator(".chart-tail:visible").innerText(), "The run ends here.");
  equal("on paper what each step changes", await page.locator(".changes tbody tr").count(), 3);
  check("with old and new values", (await page.locator(".changes tbody tr").nth(2).innerText()).includes("before leave before take"), await page.locator(".changes tbody tr").nth(2).innerText());
  check("on paper no tools", !(await page.locator(".toolbar").first().isVisible()));
  await page.emulateMedia({ media: "screen" });
  await page.evaluate(() => dispatchEvent(new Event("afterprint")));
  equal("on the screen the chart again", [await page.locator(".chart .row").count(), await page.locator(".paper, .changes").count(), await page.locator(".chart-tail").count()], [3, 0, 1]);
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await ground();
  await page.emulateMedia({ colorScheme: "dark" });
  check("dark and light", light !== (await ground()));
  equal("no image, no error, no request", [await page.locator("img").count(), errors, requests], [0, [], []]);
  await context.close();
}

async function hostile() {
  mkdirSync(at("<"), { recursive: true });
  const name = "<" + "/script><img src=x onerror=alert(1)>.mcrl2";
  write(name, readFileSync(at("chain.mcrl2"), "utf8"));
  const text = run("check", name, "never.mcf", "--format", "json");
  const plain = JSON.parse(text);
  // Everything that is a text in the result becomes markup that would be seen, if it were taken as such.
  const spoil = (value, key) => {
    if (typeof value === "string" && !["verdict", "reason", "kind", "engine", "name", "command"].includes(key)) return value + BAD;
    if (Array.isArray(value)) return value.map((v) => spoil(v, ""));
    if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([k, v]) => [["changed", "meaning", "parameters"].includes(key) && !Array.isArray(value) ? k + BAD : k, spoil(v, k)]));
    return value;
  };
  plain.results = plain.results.map((r) => ({ ...spoil(r, ""), evidence: r.evidence.map((s) => ({ ...s, action: s.action + BAD, parts: spoil(s.parts, ""), changed: spoil(s.changed, "changed") })) }));
  plain.model += BAD;
  write("bad.json", JSON.stringify(plain));
  run("report", "bad.json", "--title", BAD, "--out", "bad.html");
  const { page, errors, requests, context } = await open(browser, at("bad.html"));
  equal("the title is a text", [await page.title(), await page.locator("h1").innerText()], [BAD, BAD]);
  check("labels are texts", (await page.locator(".row .label").first().innerText()).includes("<img src=x"));
  await page.getByRole("slider").fill("3");
  equal("nothing became markup", [await page.locator("img").count(), await page.locator("script").count(), errors, requests], [0, 2, [], []]);
  // What is put into the page by hand is refused by its policy.
  await page.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = "document.title = 'taken over'";
    document.body.append(script);
  });
  equal("the policy refuses other scripts", await page.title(), BAD);
  check("and says so", errors.some((e) => e.includes("Content Security Policy")));
  await context.close();
}

async function two() {
  run("explore", "chain.mcrl2", "--action", "leave", "--all", "3", "--evidence", "ways.html");
  const { page, errors, context } = await open(browser, at("ways.html"));
  equal("ways", await page.locator(".results tbody tr").count(), 3);
  equal("a column that says nothing is left out", await page.locator(".results thead th").allInnerTexts(), ["Path", "Length", "Last action"]);
  await page.getByLabel("Compare with").selectOption({ index: 2 });
  equal("two runs", await page.locator(".pane").count(), 2);
  check("where they differ", /differ from step \d+ on|The same actions/.test(await page.locator(".compared").innerText()), await page.locator(".compared").innerText());
  await page.getByRole("slider").first().fill("2");
  const places = () => page.locator(".slider output").allInnerTexts().then((all) => all.map((t) => t.split(" ")[0]));
  equal("both move", await places(), ["2", "2"]);
  await page.getByLabel("Move together").uncheck();
  await page.getByRole("slider").first().fill("1");
  equal("one moves", await places(), ["1", "2"]);
  await page.getByLabel("Compare with").selectOption("no other");
  equal("one run again", await page.locator(".pane").count(), 1);
  // Beside an editor, or on a small screen.
  await page.getByLabel("Compare with").selectOption({ index: 2 });
  for (const width of [900, 620, 400]) {
    await page.setViewportSize({ width, height: 850 });
    const beyond = await page.locator(".pane").evaluateAll((panes) => panes.flatMap((p) => [...p.querySelectorAll(".slider, .slider > *, .chart")].filter((e) => e.getBoundingClientRect().right > p.getBoundingClientRect().right + 1).map((e) => e.outerHTML.slice(0, 80))));
    equal(`two runs fit in ${width} pixels`, beyond, []);
  }
  equal("no error", errors, []);
  await context.close();
}

async function shapes() {
  write("dead.mcrl2", "act a, b: Nat; e;\nproc P(n: Nat) = (n < 3) -> a(n) . P(n + 1) + b(n) . P(0) + (n == 2) -> e . delta;\ninit P(0);\n");
  run("check", "dead.mcrl2", "-f", "nu X. (<true*.e>true && [a(0)||b(1)]X)", "-f", "mu X. [!e]X", "--evidence", "shapes.html");
  const { page, errors, context } = await open(browser, at("shapes.html"));
  equal("columns without comments", await page.locator(".results thead th").allInnerTexts(), ["Formula", "Verdict", "Run", "Time", "States", "Equations"]);
  equal("a loop", await page.locator(".chart-tail").innerText(), "↺ From here the run repeats from the start.");
  await page.locator(".results .open").first().click();
  equal("states of evidence that branches", await page.locator(".row .number").allInnerTexts(), ["0 → 1", "1 → 2", "1 → 0", "2 → 3"]);
  const old = () => page.locator(".state .is-changed del").allInnerTexts().then((t) => t.at(-1));
  await page.locator(".row").nth(3).click();
  equal("values along the way to a step, not along the list", await old(), "2");
  await page.locator(".row").nth(2).click();
  equal("values of another branch", await old(), "1");
  await page.locator(".row").nth(0).click();
  equal("where it goes on", await page.locator(".goes-on button").allInnerTexts(), ["a(1)", "b(1)"]);
  await page.locator(".goes-on button").first().click();
  equal("it goes there", await page.locator(".state h4").innerText(), "After step 2 of 4: a(1)");
  equal("no error", errors, []);
  await context.close();
}

async function long() {
  run("explore", "count.mcrl2", "--action", "done", "--evidence", "long.html");
  const [times, took] = [[], []];
  for (let i = 0; i < 3; i++) {
    const start = performance.now();
    const { page, errors, context, processor } = await open(browser, at("long.html"));
    await page.locator(".row").first().waitFor();
    times.push(performance.now() - start);
    took.push(await processor());
    if (i === 0) {
      check("few rows are drawn", (await page.locator(".row").count()) < 100);
      await page.locator(".chart").focus();
      const begin = performance.now();
      await page.keyboard.press("End");
      await page.getByText("After step 10001 of 10001: done").waitFor();
      console.log(`    to the end in ${(performance.now() - begin).toFixed(0)} ms`);
      check("the values at the end", /^n\s+10000 no meaning here$/m.test(await page.locator(".values").innerText()), await page.locator(".values").innerText());
      const find = performance.now();
      await page.getByRole("searchbox").fill("step(7777,");
      await page.keyboard.press("Enter");
      await page.getByText("After step 7778 of 10001").waitFor();
      console.log(`    searched in ${(performance.now() - find).toFixed(0)} ms`);
      check("the row is in sight", await page.locator(".row.is-selected").isVisible());
      await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
      await page.emulateMedia({ media: "print" });
      equal("on paper so many rows", await page.locator(".row").count(), 600);
      equal("and no end that is not there", [await page.locator(".chart-tail:visible").count(), await page.locator(".print-note").innerText()], [0, "Printed: steps 7478 to 8077 of 10001. The page has all of them."]);
      equal("the lanes' heads stand in the head of a table, so on each sheet", await page.locator(".paper thead .lane-head").allInnerTexts(), ["P"]);
      await page.evaluate(() => dispatchEvent(new Event("afterprint")));
      await page.emulateMedia({ media: "screen" });
      equal("no error", errors, []);
    }
    await context.close();
  }
  const bytes = readFileSync(at("long.html")).length;
  console.log(`    10,001 steps, ${(bytes / 1e6).toFixed(1)} MB: first row after ${times.map((t) => t.toFixed(0)).join(", ")} ms, processor time ${took.map((t) => t.toFixed(2)).join(", ")} s`);
  // Not by the clock: others may work on this machine.
  check("ten thousand steps open in under two seconds of one processor", Math.min(...took) < 2, took);
}

async function memory() {
  run("litmus", "SB.litmus", "--evidence", "SB.html");
  const { page, errors, context } = await open(browser, at("SB.html"));
  equal("events", await page.locator(".graph .event").count(), 4);
  check("a name for the graph", ((await page.getByRole("img").first().getAttribute("aria-labelledby")) ?? "") !== "");
  const visible = () => page.locator(".graph .edge-fr").evaluateAll((all) => all.filter((e) => getComputedStyle(e).display !== "none").length);
  const before = await visible();
  await page.getByRole("checkbox", { name: "fr" }).uncheck();
  equal("relations can be hidden", [before, await visible()], [2, 0]);
  const covered = await page.locator(".graph").first().evaluate((picture) => {
    const box = (e) => e.getBoundingClientRect();
    const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
    const [names, operations] = [[...picture.querySelectorAll(".edge:not(.off) text")].map(box), [...picture.querySelectorAll(".box")].map(box)];
    return names.filter((n, i) => operations.some((o) => meet(n, o)) || names.some((m, j) => i < j && meet(n, m))).length;
  });
  equal("names of relations cover no operation and no other name", covered, 0);
  for (const [kind, start] of [["SVG", "<svg"], ["PNG", "PNG"]]) {
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: kind, exact: true }).first().click()]);
    const file = at(`saved.${kind}`);
    await download.saveAs(file);
    check(`the graph is saved as ${kind}`, readFileSync(file).subarray(0, 8).toString("latin1").includes(start));
  }
  check("the graph as text", (await page.locator(".execution details").textContent())?.includes("— fr →") ?? false);
  equal("no error", errors, []);
  await context.close();
}

async function sweep() {
  run("sweep", "chain.mcrl2", "never.mcf", "--out", "sweep", "--no-progress");
  run("report", "sweep/sweep.json", "--out", "sweep.html");
  write("sized.mcrl2", "$param n: Nat = 3;\nact a: Nat;\nproc P(i: Nat) = (i < n) -> a(i) . P(i + 1) <> a(0) . P(0);\ninit P(0);\n".replaceAll("i < n", "i < ${n}"));
  run("sweep", "sized.mcrl2", "always.mcf", "-D", "n=2..6", "--out", "sized", "--no-progress");
  run("report", "sized/sweep.json", "--out", "sized.html");
  const { page, errors, context } = await open(browser, at("sized.html"));
  equal("marks of a plot", await page.locator(".plot .mark").count(), 8);
  const ticks = () => page.locator(".plot .grid").count();
  check("an ordinate that can be read", (await ticks()) >= 3 && (await ticks()) <= 12, await ticks());
  const size = () => page.locator(".plot").evaluate((e) => e.getBoundingClientRect().width / Number(e.getAttribute("viewBox").split(" ")[2]));
  await page.setViewportSize({ width: 620, height: 850 });
  await page.waitForFunction(() => document.querySelector(".plot").getBoundingClientRect().width < 600);
  check("a narrow plot is drawn anew, not shrunk", Math.abs((await size()) - 1) < 0.02, await size());
  await page.getByLabel("Figure").selectOption("States");
  equal("another figure", await page.locator(".plot title").first().textContent(), "States over n. The table has the values.");
  equal("rows of a sweep", await page.locator(".results tbody tr").count(), 8);
  equal("no error", errors, []);
  await context.close();
  const plain = await open(browser, at("sweep.html"));
  equal("over no parameter nothing is drawn", [await plain.page.locator("figure, select").count(), await plain.page.locator(".results tbody tr").count()], [0, 2]);
  await plain.context.close();
}

/** All pages on the screen of a telephone: nothing is wider than it, but what scrolls by itself. */
async function narrow() {
  for (const name of ["check", "ways", "shapes", "SB", "sized", "sweep", "long"]) {
    const { page, context } = await open(browser, at(`${name}.html`), { viewport: { width: 400, height: 850 } });
    await page.locator(".result").first().waitFor();
    equal(`${name}: as wide as the screen`, await page.evaluate(() => document.documentElement.scrollWidth), 400);
    await context.close();
  }
}

for (const test of [counterexample, hostile, two, shapes, long, memory, sweep, narrow]) {
  console.log(test.name);
  try {
    await test();
  } catch (e) {
    check(test.name, false, String(e));
  }
}
await browser.close();
if (!kept) rmSync(folder, { recursive: true, force: true });
process.exit(failed > 0 ? 1 : 0);
