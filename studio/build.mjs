// Builds the page of reports: src/*.ts and src/report.css -> ../src/report/page/report.js,
// report.css, hashes.txt. And the page on this machine: app/*.ts, app/studio.css and their imports
// from src -> ../src/studio/page/studio.js, studio.css, hashes.txt, licences.txt.
//
// `--check` builds in memory and reports if a committed bundle differs. hashes.txt contains the
// SHA-256 of script and style for the page's content security policy, then the FNV-1a hash of all
// sources, which a test recomputes without node. licences.txt contains the licences of bundled
// packages.

import { build } from "esbuild";
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const PAGES = [
  { name: "report", folders: ["src"], script: "src/main.ts", style: "src/report.css", what: "report" },
  { name: "studio", folders: ["src", "app"], script: "app/main.ts", style: "app/studio.css", what: "studio" },
];

/** Computes the FNV-1a hash, 64 bits, over names and contents in the order of the names. */
function fingerprint(folders) {
  let hash = 0xcbf29ce484222325n;
  const names = folders.flatMap((folder) => readdirSync(join(here, folder)).sort().map((n) => `${folder}/${n}`));
  for (const name of [...names, "package-lock.json", "tsconfig.json", "build.mjs"]) {
    for (const byte of [...Buffer.from(name + "\n"), ...readFileSync(join(here, name))]) {
      hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
    }
  }
  return hash.toString(16).padStart(16, "0");
}

/** Returns the text of a bundle, and its packages. */
export async function bundle(entry, more = {}) {
  const result = await build({
    absWorkingDir: here,
    entryPoints: [entry],
    bundle: true,
    write: false,
    metafile: true,
    format: "iife",
    target: ["es2022"],
    minify: true,
    charset: "utf8",
    legalComments: "none",
    ...more,
  });
  const packages = Object.keys(result.metafile.inputs).map((input) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(input)?.[1]);
  return { text: result.outputFiles[0].text.trimEnd() + "\n", packages: [...new Set(packages)].filter((p) => p !== undefined).sort() };
}

/** Returns the bundled packages with the full text of their licences. */
export function licences(packages) {
  const one = (name) => {
    const folder = join(here, "node_modules", name);
    const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    return `${name} ${version} (${license})\n\n${readFileSync(join(folder, "LICENSE"), "utf8").trim()}\n`;
  };
  return packages.map(one).join("\n----\n\n");
}

const sha = (text) => `sha256-${createHash("sha256").update(text).digest("base64")}`;

/** Returns the files of a page. */
async function made({ name, folders, script, style, what }) {
  const sources = fingerprint(folders);
  const [code, css] = [await bundle(script), await bundle(style)];
  const others = code.packages.length > 0 ? "; licences.txt has the licences of what is bundled" : "";
  const text = `/* mu-check ${what}: built from studio/, sources ${sources}${others} */\n${code.text}`;
  return {
    [`${name}.js`]: text,
    [`${name}.css`]: css.text,
    "hashes.txt": `${sha(text)}\n${sha(css.text)}\nsources ${sources}\n`,
    ...(code.packages.length > 0 ? { "licences.txt": licences(code.packages) } : {}),
  };
}

/** Writes the committed bundles, or compares them. */
async function main() {
  for (const page of PAGES) {
    const files = await made(page);
    const folder = `src/${page.name}/page`;
    const out = join(here, "..", folder);
    if (process.argv.includes("--check")) {
      const read = (name) => { try { return readFileSync(join(out, name), "utf8"); } catch { return ""; } };
      const differing = Object.entries(files).filter(([name, text]) => read(name) !== text).map(([name]) => name);
      if (differing.length > 0) {
        console.error(`${folder} is not what studio/ gives: ${differing.join(", ")} differ; run \`npm run build\` in studio/`);
        process.exit(1);
      }
      console.log(`${folder} is what studio/ gives`);
    } else {
      mkdirSync(out, { recursive: true });
      for (const [name, text] of Object.entries(files)) writeFileSync(join(out, name), text);
      console.log(Object.entries(files).map(([name, text]) => `${folder}/${name}: ${text.length} bytes`).join("\n"));
    }
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
