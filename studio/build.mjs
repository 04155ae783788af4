// Builds the page of reports: src/*.ts and src/report.css -> ../src/report/page/report.js, report.css, hashes.txt.
//
// `--check` builds in memory and says whether the committed bundle differs. hashes.txt holds the SHA-256 of script and style for the page's content
// security policy, then the FNV-1a hash of all sources: a test without node computes it again.

import { build } from "esbuild";
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const out = join(here, "..", "src", "report", "page");

/** FNV-1a, 64 bits, over names and contents in the order of the names. */
function fingerprint() {
  let hash = 0xcbf29ce484222325n;
  const names = readdirSync(join(here, "src")).sort().map((n) => join("src", n));
  for (const name of [...names, "package-lock.json", "tsconfig.json", "build.mjs"]) {
    for (const byte of [...Buffer.from(name + "\n"), ...readFileSync(join(here, name))]) {
      hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
    }
  }
  return hash.toString(16).padStart(16, "0");
}

async function bundle(entry) {
  const result = await build({
    absWorkingDir: here,
    entryPoints: [entry],
    bundle: true,
    write: false,
    format: "iife",
    target: ["es2022"],
    minify: true,
    charset: "utf8",
    legalComments: "none",
  });
  return result.outputFiles[0].text.trimEnd() + "\n";
}

const sources = fingerprint();
const script = `/* mu-check report: built from studio/, sources ${sources} */\n` + (await bundle("src/main.ts"));
const style = await bundle("src/report.css");
const sha = (text) => `sha256-${createHash("sha256").update(text).digest("base64")}`;
const files = {
  "report.js": script,
  "report.css": style,
  "hashes.txt": `${sha(script)}\n${sha(style)}\nsources ${sources}\n`,
};

if (process.argv.includes("--check")) {
  const read = (name) => { try { return readFileSync(join(out, name), "utf8"); } catch { return ""; } };
  const differing = Object.entries(files).filter(([name, text]) => read(name) !== text).map(([name]) => name);
  if (differing.length > 0) {
    console.error(`src/report/page is not what studio/ gives: ${differing.join(", ")} differ; run \`npm run build\` in studio/`);
    process.exit(1);
  }
  console.log("src/report/page is what studio/ gives");
} else {
  mkdirSync(out, { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(out, name), text);
  console.log(Object.entries(files).map(([name, text]) => `${name}: ${text.length} bytes`).join("\n"));
}
