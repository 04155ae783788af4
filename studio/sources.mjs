// Whether the module of the page without a server is of the sources that are here: `npm run web` notes what it was built from, tests look.

import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
/** Where the page is built. */
export const site = process.env.MU_CHECK_SITE ?? join(root, "web", "site");
/** Beside it, since it is no file for a host. */
const note = join(root, "web", "target", "built-from");

const below = (folder) => readdirSync(join(root, folder), { withFileTypes: true }).flatMap((e) => (e.isDirectory() ? below(`${folder}/${e.name}`) : [`${folder}/${e.name}`]));

/** FNV-1a, 32 bits twice from different starts, over names and contents of what the module is made of: all crates but that of the server. */
export function fingerprint() {
  const names = [...below("src").filter((n) => !n.startsWith("src/studio/")), ...below("web/src"), "web/Cargo.toml", "web/Cargo.lock"].sort();
  let [a, b] = [0x811c9dc5, 0x050c5d1f];
  for (const name of names) {
    for (const byte of Buffer.concat([Buffer.from(`${name}\n`), readFileSync(join(root, name))])) {
      a = Math.imul(a ^ byte, 0x01000193);
      b = Math.imul(b ^ byte, 0x01000193) + 1;
    }
  }
  return [a, b].map((n) => (n >>> 0).toString(16).padStart(8, "0")).join("");
}

/** Notes what sources the module is of. */
export function built(from) {
  mkdirSync(dirname(note), { recursive: true });
  writeFileSync(note, from);
}

/** Why the module cannot be compared with the program that is built from these sources; nothing if it can. */
export function unfit() {
  if (!existsSync(join(site, "mu-check.wasm"))) return "web/site/mu-check.wasm is not there: `npm run web` makes it";
  // Who names a site knows what it is of.
  if (process.env.MU_CHECK_SITE) return undefined;
  const from = existsSync(note) ? readFileSync(note, "utf8") : "";
  return from === fingerprint() ? undefined : "web/site/mu-check.wasm is of other sources than these: `npm run web` makes it anew";
}
