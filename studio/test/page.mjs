// What the tests of the studio's page have in common, whoever serves it: what is checked and counted, a page that tells its errors, and what a user does first.

import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

let failed = 0;

/** Prints whether something is as wanted, and counts it if not. */
export function check(what, good, seen) {
  console.log(`${good ? "  ok" : "FAIL"} ${what}${good ? "" : `: ${JSON.stringify(seen)}`}`);
  if (!good) failed += 1;
}

export const equal = (what, seen, expected) => check(what, JSON.stringify(seen) === JSON.stringify(expected), { seen, expected });

/** A page in a context of its own. `errors`: what went wrong in it; `elsewhere`: requests that leave the address. */
export async function open(browser, address, { shots, prefix = "", patience = 20_000 } = {}) {
  const context = await browser.newContext({ viewport: { width: 1500, height: 950 } });
  const page = await context.newPage();
  const [errors, elsewhere] = [[], []];
  page.on("pageerror", (e) => errors.push(String(e)));
  page.on("console", (m) => ["error", "warning"].includes(m.type()) && errors.push(m.text()));
  page.on("request", (r) => ![address, "data:", "blob:"].some((known) => r.url().startsWith(known)) && elsewhere.push(r.url()));
  // During development: the bundle of a folder in place of the one in the program.
  const own = process.env.PAGE;
  for (const [name, type] of own ? [["studio.js", "text/javascript"], ["studio.css", "text/css"]] : [])
    await page.route(`**/${name}`, (route) => route.fulfill({ contentType: type, body: readFileSync(join(own, name), "utf8") }));
  page.setDefaultTimeout(patience);
  if (shots) mkdirSync(shots, { recursive: true });
  let shot = 0;
  const picture = async (name) => {
    shot += 1;
    if (shots) await page.screenshot({ path: join(shots, `${prefix}${shot}-${name}.png`) });
  };
  return {
    context,
    page,
    errors,
    elsewhere,
    picture,
    /** Presses a button of the bar. */
    press: (name) => page.getByRole("toolbar", { name: "Runs" }).getByRole("button", { name, exact: true }).click(),
    /** The newest run in the list. */
    list: () => page.locator(".run-list li").first(),
    choose: (model) => page.getByLabel("Model", { exact: true }).selectOption(model),
    parameters: (text) => page.getByLabel("Parameters").fill(text),
    formula: (text) => page.getByLabel("Formula", { exact: true }).fill(text),
    rows: () => page.locator(".result-place .results tbody tr").count(),
    tab: (name) => page.getByRole("tab", { name }).click(),
  };
}

/** Misspells the last word of a line of the editor, sees the error, has a run refuse it too, goes to its place from there, and mends it: by hand, and as the server offers. */
export async function breaksAndMends(it, { line, end, right, wrong }) {
  const { page } = it;
  const misspell = async () => {
    await page.locator(".cm-line", { hasText: line }).click();
    await page.keyboard.press("End");
    for (let i = 0; i < end.length; i++) await page.keyboard.press("Backspace");
    await page.keyboard.type(end.replace(right, wrong));
  };
  await misspell();
  const begin = performance.now();
  // While one types there are others.
  await page.locator(".problems .error", { hasText: wrong }).first().waitFor();
  console.log(`    from the last key to the problem: ${(performance.now() - begin).toFixed(0)} ms`);
  const problems = await page.locator(".problems").innerText();
  check("the error is said", problems.includes(wrong), problems);
  const marked = (await page.locator(".cm-lintRange-error").allInnerTexts()).join("");
  check("and marked", marked.includes(wrong), marked);
  check("the file is marked as changed", (await page.locator(".file-name").innerText()).includes("●"));
  await it.picture("broken");
  await it.formula("[true*]<true>true");
  await it.press("Check");
  await page.locator(".refusal .error").waitFor();
  const refusal = await page.locator(".refusal").innerText();
  check("a run refuses it too", refusal.includes(wrong), refusal);
  await page.locator(".refusal button").click();
  await page.keyboard.type(right);
  await page.getByText("No problems").waitFor();
  // What the server offers does the same, by a click and by a key.
  const again = async () => {
    await misspell();
    await page.locator(".problems .error", { hasText: wrong }).first().waitFor();
    const fix = page.getByRole("button", { name: `replace \`${wrong}\` by \`${right}\`` }).first();
    await fix.waitFor();
    return fix;
  };
  const fix = await again();
  await it.picture("offered");
  await fix.click();
  await page.getByText("No problems").waitFor();
  const mended = () => page.locator(".cm-line", { hasText: line }).innerText();
  check("a click mends it", (await mended()).includes(right) && !(await mended()).includes(wrong), await mended());
  await again();
  await page.keyboard.press("Control+.");
  await page.getByText("No problems").waitFor();
  check("a key too", !(await mended()).includes(wrong), await mended());
  await it.formula("");
}

/** Saves the result that is shown as a file, and opens that as a colleague would: a page of its own, which `look` sees. */
export async function savesAPage({ page, context }, folder, name, look) {
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Save as a page" }).click()]);
  equal("the file's name", download.suggestedFilename(), name);
  const file = join(folder, name);
  await download.saveAs(file);
  const other = await context.newPage();
  const asked = [];
  other.on("request", (r) => !r.url().startsWith("file:") && asked.push(r.url()));
  await other.goto(`file://${file}`);
  await look(other);
  equal("it asks for nothing", asked, []);
  await other.close();
}

/** Records what a page writes on canvases from now on; gives each text with its box. */
export async function recordTexts(page) {
  await page.evaluate(() => {
    window.written = [];
    const write = CanvasRenderingContext2D.prototype.fillText;
    const clear = CanvasRenderingContext2D.prototype.clearRect;
    CanvasRenderingContext2D.prototype.clearRect = function (...all) {
      window.written = [];
      return clear.apply(this, all);
    };
    CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
      window.written.push({ text, left: x, right: x + this.measureText(text).width, top: y - 9, bottom: y + 2 });
      return write.call(this, text, x, y);
    };
  });
  return () => page.evaluate(() => window.written);
}

/** How many pixels of a picture have each of the colours, which are custom properties of the page. */
export const pixels = (page, names) =>
  page.locator("canvas.picture").evaluate((canvas, names) => {
    const style = getComputedStyle(canvas);
    const wanted = new Map(names.map((n) => [parseInt(style.getPropertyValue(n).trim().slice(1), 16), n]));
    const found = Object.fromEntries(names.map((n) => [n, 0]));
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
    for (let i = 0; i < data.length; i += 4) {
      const name = data[i + 3] === 255 && wanted.get((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
      if (name) found[name] += 1;
    }
    return found;
  }, names);

/** Runs the parts of a test; one that throws is a failure of its own. How many failures there were. */
export async function all(it, parts) {
  for (const part of parts) {
    console.log(part.name);
    try {
      await part();
    } catch (e) {
      check(part.name, false, `${e}; the page says: ${await it.page.locator(".message").innerText()}; ${await it.page.locator(".run-list").innerText()}`);
      await it.picture(`failed-${part.name}`);
    }
  }
}

/** Ends the test with what it found. */
export const end = () => process.exit(failed > 0 ? 1 : 0);
