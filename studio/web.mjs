// Builds the page without a server: `npm run web` -> ../web/site, static files for any host. Cargo
// compiles the module (../web); the page and its worker are bundled from app/, src/ and web/, with
// web/server.ts as ./server.
//
// `RUSTC` and `CARGO` select the toolchain. Default: Debian's (rustc-web, cargo-web, rust-web-src)
// if installed, otherwise the one on the path, which then needs the sources of the standard library
// (`rustup component add rust-src`). `--page`: build only the page; the module does not change.

import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundle, licences } from "./build.mjs";
import { built, fingerprint, site } from "./sources.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "..");

/** Compiles the module. */
function compile() {
  const debian = existsSync("/usr/bin/rustc") && existsSync("/usr/bin/cargo");
  const cargo = process.env.CARGO ?? (debian ? "/usr/bin/cargo" : "cargo");
  const rustc = process.env.RUSTC ?? (debian ? "/usr/bin/rustc" : "rustc");
  const target = process.env.CARGO_TARGET_DIR ?? join(root, "web", "target");
  const env = { ...process.env, RUSTC: rustc, CARGO_TARGET_DIR: target, RUSTC_BOOTSTRAP: "1" };
  const done = spawnSync(cargo, ["build", "--release"], { cwd: join(root, "web"), env, stdio: "inherit" });
  if (done.error || done.status !== 0) throw new Error(`${cargo} build failed${done.error ? `: ${done.error.message}` : ""}; docs/web.md says what it needs`);
  return join(target, "wasm32-unknown-unknown", "release", "mu_check_web.wasm");
}

/** Blocks of the tutorial that are files, and the ARCx model with its formulas. */
function examples() {
  const tutorial = readFileSync(join(root, "docs", "tutorial.md"), "utf8");
  const blocks = [...tutorial.matchAll(/^```(?:mcrl2|mcf) (\S+)\n([\s\S]*?)^```$/gm)].map((m) => [`tutorial/${m[1]}`, m[2]]);
  const formulas = readdirSync(join(root, "formulas")).filter((f) => /^[12].*\.mcf$/.test(f));
  const arcx = [["arcx/arcx.spec", "specs/arcx.spec"], ...formulas.map((f) => [`arcx/${f}`, `formulas/${f}`])];
  return [...new Map([...blocks, ...arcx.map(([name, file]) => [name, readFileSync(join(root, file), "utf8")])])];
}

const ownServer = {
  name: "a server of its own",
  setup(b) {
    b.onResolve({ filter: /^\.\/server$/ }, (wish) => (wish.importer.startsWith(join(here, "app")) ? { path: join(here, "web", "server.ts") } : undefined));
  },
};

/** The style is the editor's as well, which makes it at run time; scripts are this host's, and so is all that the page asks for. */
const POLICY = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'; connect-src 'self'; worker-src 'self'; img-src data:; base-uri 'none'; form-action 'none'";

const frame = (version) => `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>mu-check in the browser</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="studio.css">
</head>
<body data-nonce="" data-version="${version}">
<noscript><p>This page needs JavaScript and WebAssembly.</p></noscript>
<div id="app"></div>
<script src="studio.js"></script>
</body>
</html>
`;

if (!process.argv.includes("--page")) {
  // What changes while the compiler is at work may not be in it.
  const from = fingerprint();
  const wasm = compile();
  rmSync(site, { recursive: true, force: true });
  mkdirSync(site, { recursive: true });
  copyFileSync(wasm, join(site, "mu-check.wasm"));
  built(from);
}
mkdirSync(site, { recursive: true });
const page = await bundle("app/main.ts", { plugins: [ownServer], define: { FILES: JSON.stringify(examples()) } });
const { version } = JSON.parse(readFileSync(join(here, "package.json"), "utf8"));
const files = {
  "index.html": frame(version),
  "studio.js": page.text,
  "studio.css": (await bundle("app/studio.css")).text,
  "worker.js": (await bundle("web/worker.ts")).text,
  "licences.txt": licences(page.packages),
};
for (const [name, text] of Object.entries(files)) writeFileSync(join(site, name), text);
console.log(readdirSync(site).sort().map((f) => `web/site/${f}: ${statSync(join(site, f)).size} bytes`).join("\n"));
