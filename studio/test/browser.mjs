// A headless Chromium for tests of pages: opens a file, collects errors of the page, counts requests to a network.

import { existsSync } from "node:fs";
import { chromium } from "playwright-core";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-headless-shell", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** Where a browser is: what `CHROMIUM` says, or a usual place. Nothing if there is none. */
export function executable() {
  return [process.env.CHROMIUM, ...PLACES].find((p) => p && existsSync(p));
}

export async function launch() {
  const flags = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync";
  return chromium.launch({ executablePath: executable(), headless: true, args: flags.split(" ") });
}

/** A page of a file. `errors`: what went wrong in it; `requests`: what it asked for besides itself; `processor()`: seconds of processor time that it took, of all
 * its threads, which say more than the clock where others work too. */
export async function open(browser, file, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1380, height: 900 }, ...options });
  const page = await context.newPage();
  const errors = [];
  const requests = [];
  page.on("pageerror", (e) => errors.push(String(e)));
  page.on("console", (m) => ["error", "warning"].includes(m.type()) && errors.push(m.text()));
  page.on("dialog", (d) => {
    errors.push(`a dialog: ${d.message()}`);
    d.dismiss();
  });
  page.on("request", (r) => r.url() !== `file://${file}` && requests.push(r.url()));
  const tools = await context.newCDPSession(page);
  await tools.send("Performance.enable", { timeDomain: "threadTicks" });
  await page.goto(`file://${file}`);
  const processor = async () => (await tools.send("Performance.getMetrics")).metrics.find((m) => m.name === "ProcessTime").value;
  return { page, context, errors, requests, processor };
}
