// Checks if the module of the page without a server was built from the current sources: `npm run
// web` stores the hash of its sources.

import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
/** Folder of the built page. */
export const site = process.env.MU_CHECK_SITE ?? join(root, "web", "site");
/** File next to it, because it is not for a host. */
const note = join(root, "web", "target", "built-from");

const below = (folder) => readdirSync(join(root, folder), { withFileTypes: true }).flatMap((e) => (e.isDirectory() ? below(`${folder}/${e.name}`) : [`${folder}/${e.name}`]));

/** Computes FNV-1a, 32 bits twice with different seeds, over names and contents of the module's sources: all crates except the server. */
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

/** Stores the hash of the module's sources. */
export function built(from) {
  mkdirSync(dirname(note), { recursive: true });
  writeFileSync(note, from);
}

/** Returns the reason why the module does not match these sources; undefined if it does. */
export function unfit() {
  if (!existsSync(join(site, "mu-check.wasm"))) return "web/site/mu-check.wasm does not exist: build it with `npm run web`";
  // With an explicit site, the user knows its sources.
  if (process.env.MU_CHECK_SITE) return undefined;
  const from = existsSync(note) ? readFileSync(note, "utf8") : "";
  return from === fingerprint() ? undefined : "web/site/mu-check.wasm was built from other sources: rebuild it with `npm run web`";
}
