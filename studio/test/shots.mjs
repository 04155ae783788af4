// Screenshots of pages, to be looked at: `node test/shots.mjs FOLDER FILE.html…` gives light, dark, narrow and printed ones.

import { mkdirSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { launch, open } from "./browser.mjs";

const [folder, ...files] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
const browser = await launch();
for (const file of files) {
  const name = basename(file, ".html");
  const kinds = { light: {}, dark: { colorScheme: "dark" }, narrow: { viewport: { width: 400, height: 850 } } };
  for (const [kind, options] of Object.entries(kinds)) {
    const { page, context, errors } = await open(browser, resolve(file), options);
    await page.screenshot({ path: join(folder, `${name}-${kind}.png`), fullPage: true });
    if (kind === "light") await page.pdf({ path: join(folder, `${name}.pdf`), format: "A4", margin: { top: "15mm", bottom: "15mm", left: "12mm", right: "12mm" } });
    if (errors.length > 0) console.error(`${name} ${kind}: ${errors.join("; ")}`);
    await context.close();
  }
}
await browser.close();
