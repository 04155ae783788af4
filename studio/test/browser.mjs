// A headless Chromium for tests of pages: opens a file, collects errors of the page, counts requests to a network.

import { existsSync } from "node:fs";
import { chromium } from "playwright-core";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** Where a browser is: what `CHROMIUM` says, or a usual place. Nothing if there is none. */
export function executable() {
  return [process.env.CHROMIUM, ...PLACES].find((p) => p && existsSync(p));
}

export async function launch() {
  const flags = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync";
  return chromium.launch({ executablePath: executable(), headless: true, args: flags.split(" ") });
}

/** A page of a file. `errors`: what went wrong in it; `requests`: what it asked for besides itself. */
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
  await page.goto(`file://${file}`);
  return { page, context, errors, requests };
}
