// The module under node, as the page's worker uses it, without a browser: `node test/module.mjs [MU-CHECK]`, after `npm run web`. Every command of the program is run, most of them
// in several ways; each answers as the program on this machine does, word for word but for times and memory, with the same exit code and the same files, or refuses by a
// message. None may trap. Then: runs are stopped, and answer with what they have.
//
// The list of commands is the program's own: one that nobody runs here fails the test.

import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { site, unfit } from "../sources.mjs";

const program = resolve(process.argv[2] ?? "../target/release/mu-check");
const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..");
const why = unfit();
if (why) {
  console.log(`test/module.mjs: skipped, ${why}`);
  process.exit(0);
}
let failed = 0;
function check(what, good, seen) {
  if (!good || process.env.VERBOSE) console.log(`${good ? "  ok" : "FAIL"} ${what}${good ? "" : `: ${JSON.stringify(seen)?.slice(0, 3000)}`}`);
  if (!good) failed += 1;
}

const module = await WebAssembly.compile(readFileSync(join(site, "mu-check.wasm")));
const worker = new Function("self", "XMLHttpRequest", readFileSync(join(site, "worker.js"), "utf8"));

/** Runs a command: all news of it. `hear` gets each as it comes. */
function command(words, files, end, hear = () => undefined) {
  const all = [];
  const scope = {
    postMessage: (news) => {
      all.push(news);
      hear(news);
    },
  };
  worker(scope, undefined);
  scope.onmessage({ data: { first: "run", module, files: [...files], words: ["mu-check", ...words], end } });
  const last = all.find((n) => "over" in n) ?? {};
  return {
    code: last.over,
    out: last.printed ?? "",
    err: all.flatMap((n) => ("line" in n ? [n.line] : [])).join("\n"),
    lost: all.find((n) => "lost" in n)?.lost,
    wrote: new Map(all.flatMap((n) => ("wrote" in n ? [[n.wrote, Buffer.from(n.bytes)]] : []))),
  };
}

const at = (name) => readFileSync(join(root, name), "utf8");
const GIVEN = new Map([
  ["arcx.spec", at("specs/arcx.spec")],
  ["1a.mcf", at("formulas/1a.gos.mcf")],
  ["small.mcrl2", "$param n: Nat = 3;  % steps\nact a, b, hid: Nat;\nproc P(i: Nat) = (i < ${n}) -> (a(i) . P(i + 1) + hid(i) . P(i));\ninit hide({hid}, P(0));\n"],
  ["wrong.mcrl2", "act a;\nproc P = a . Q;\ninit P;\n"],
  ["never.mcf", "% It does not get far.\n[true* . a(2)]false\n"],
  ["always.mcf", "[true*]<true>true\n"],
  ["chance.mcrl2", "act head, tail;\nproc P = dist b: Bool[1/2] . (b -> head . P <> tail . P);\ninit P;\n"],
  ["game.pg", "parity 2;\n0 0 0 1;\n1 1 1 0,2;\n2 2 0 2;\n"],
  ["sb.litmus", "X86 SB\n{ x=0; y=0; }\n P0          | P1          ;\n MOV [x],$1  | MOV [y],$1  ;\n MOV EAX,[y] | MOV EAX,[x] ;\nexists (0:EAX=0 /\\ 1:EAX=0)\n"],
  ["dekker.asm", at("specs/x86/dekker.asm")],
  ["mutex.cub", at("specs/cubicle/naive_mutex.cub")],
  ["unsafe.cub", at("specs/cubicle/naive_mutex_unsafe.cub")],
  ["tso.spec", at("specs/machines/tso.spec")],
  ["tso.faults", at("specs/machines/tso.faults")],
  ["machine.interface", at("specs/machines/machine.interface")],
  ["walk.txt", "random 4\nsave walk.json\nback\n"],
]);

// A dash before a line: only that it ends well is asked, since the other side has threads, processes, streams or a clock of its own. What a line writes is there for those below.
const LINES = `
check small.mcrl2 never.mcf always.mcf --format json
check small.mcrl2 never.mcf
check small.mcrl2 never.mcf --evidence why.html
check small.mcrl2 never.mcf --evidence why.svg
check small.mcrl2 never.mcf --evidence why.json --junit junit.xml --format json
check small.mcrl2 never.mcf --engine symbolic --format json
check small.mcrl2 never.mcf --engine auto --format json
check small.mcrl2 --formula nu_X.<true>X --format json
check small.mcrl2 always.mcf --game always.pg
check small.mcrl2 never.mcf -D n=any --format json
check small.mcrl2 never.mcf -D help
check wrong.mcrl2 never.mcf --format json
check missing.mcrl2 never.mcf --format json
check sb.litmus --formula [true]false --model tso --format json
-check small.mcrl2 never.mcf --timings timings.json
-check small.mcrl2 never.mcf --threads 4 --format json
-check small.mcrl2 never.mcf --checkpoint kept --format json
-check small.mcrl2 never.mcf --resume kept
-check small.mcrl2 never.mcf --processes 2
-check small.mcrl2 -
check arcx.spec 1a.mcf -D max_operation_id=1 -D memcommands_size=2 --without symmetry --format json
explore small.mcrl2 --format json
explore small.mcrl2 --deadlock --evidence deadlock.html
explore small.mcrl2 --action a --all 2 --trace-dir traces --format json
explore small.mcrl2 --divergence
explore small.mcrl2 --out small.aut
explore small.mcrl2 --out small.aut.gz
explore small.mcrl2 --out small.blts
explore small.mcrl2 --out small.lts
explore small.mcrl2 --reduce branching --out reduced.dot
explore small.mcrl2 --engine symbolic --format json
explore arcx.spec -D max_operation_id=1 --checkpoint kept --max-states 1000 --without symmetry --format json
-explore arcx.spec -D max_operation_id=1 --resume kept --without symmetry --format json
-explore arcx.spec -D max_operation_id=1 --spill disk --max-memory 300M
-explore arcx.spec -D max_operation_id=1 --threads 8
-explore arcx.spec -D max_operation_id=1 --processes 2
explore chance.mcrl2 --format json
explore mutex.cub --format json
expand small.mcrl2 -D n=5
expand dekker.asm
expand sb.litmus
linearise small.mcrl2
linearise small.mcrl2 --out small.lps
info small.lps
info small.aut --format json
info always.pg
info mutex.cub
reduce small.aut --equivalence branching --out small2.aut
reduce small.blts --equivalence weak-trace --out small3.aut
-reduce small.aut --equivalence strong --out small4.aut --threads 4
compare small.aut small2.aut --equivalence branching
compare small.aut small.lts --equivalence strong --format json
compare small.aut small3.aut --equivalence strong
convert small.aut small.fsm
convert small.lts small5.aut --hide a
convert small.aut.gz small6.aut
pbes small.mcrl2 always.mcf
pbes small.mcrl2 always.mcf --out always.pbes
solve always.pg --format json
solve always.pbes
solve game.pg --solver promotion --out won.txt
sweep small.mcrl2 never.mcf -D n=1..=3 --out rows --evidence rows/why --format json
sweep small.mcrl2 never.mcf -D n=1..=4 --out rows --evidence rows/why --format json
sweep small.mcrl2 always.mcf -D n=1..=2 --out others --no-explore --junit rows.xml
sweep wrong.mcrl2 --out wrong
report why.json rows/sweep.json --out all.html
report small.aut --out none.html
litmus sb.litmus --format json
litmus sb.litmus --model sc
litmus sb.litmus --by axioms --evidence sb.svg
litmus sb.litmus --evidence sb.html
litmus sb.litmus dekker.asm
-litmus sb.litmus sb.litmus --threads 4
models sc tso pso --operations 3 --plain 3 --format json
models sc tso --operations 3 --plain 3 --svg lattice.svg --tests separating
-models sc tso --operations 3 --plain 3 --threads 4 --format json
conform tso.spec --interface machine.interface --against sc --operations 2 --evidence run.html --litmus smallest.litmus
conform tso.spec --interface machine.interface --against tso --operations 2 --format json
-conform tso.spec --interface machine.interface --against tso --operations 2 --threads 4
conform tso.spec --interface machine.interface --against tso --operations 2 --fault tso.faults --suite suite
program dekker.asm
program dekker.asm --model sc --format json
-program dekker.asm --threads 4
robust dekker.asm
robust dekker.asm --fences --format json
robust sb.litmus --count
prove mutex.cub --certificate mutex.proof
prove unsafe.cub --format json
-prove mutex.cub --threads 4
verify mutex.cub mutex.proof
-verify mutex.cub mutex.proof --threads 4
verify unsafe.cub mutex.proof --smt-lib smt
simulate small.mcrl2 --script walk.txt
simulate small.mcrl2 --script walk.txt --format json
-simulate small.mcrl2
-simulate small.mcrl2 --script -
-simulate small.mcrl2 --requests
new mutex lock
new mutex lock
eval 2+3
eval exp(2,100) small.mcrl2 --format json
eval 1+
fmt small.mcrl2 never.mcf --check
fmt small.mcrl2 --width 40
-fmt --stdin
-lsp
-studio .
-cluster run hosts -- explore small.mcrl2
completions bash
completions fish
manual
manual --out pages
help
help check
chek small.mcrl2
check --nonsense
small.mcrl2 never.mcf
small.mcrl2
--version
`;

const folder = mkdtempSync(join(tmpdir(), "mu-check-module-test-"));
for (const [name, text] of GIVEN) writeFileSync(join(folder, name), text);
const here = new Map(GIVEN);

/** Times, memory, and what a page cannot have: a terminal's width at which lines end, the other's wording of the system's errors. */
const plain = (text) =>
  text
    .replace(/"(seconds|peak_memory_bytes|memory_bytes|memory|store_bytes)":\s*[\d.e-]+/g, '"$1":0')
    .replace(/\bseconds +[\d.]+/g, "seconds T")
    .replace(/,\d+\.\d+,\d+,/g, ",T,T,")
    .replace(/\| +\d+\.\d+ \| +\d+ \|/g, "| T | T |")
    .replace(/ time="[\d.]+"/g, "")
    .replace(/<td>\d[\d.,]* (ms|s|MiB|GiB)<\/td>/g, "")
    .replace(/\b\d[\d.,]*( |&#160;|\u00a0)?(ns|µs|ms|s|MB|MiB|KiB|kB|GB)\b/g, "T")
    .replace(/(cannot [a-z ]+`[^`]*`): .*/g, "$1")
    .replace(/[\d.]+ of them to verify/, "T of them to verify")
    .replace(/\s+/g, " ");
const isText = (name) => !/\.(blts|lts|lps|gz|pbes)$|\.checkpoint/.test(name);

/** All files below a folder. */
const below = (dir) => readdirSync(dir).flatMap((n) => (statSync(join(dir, n)).isDirectory() ? below(join(dir, n)) : [relative(folder, join(dir, n))]));

const ran = new Set();
for (const whole of LINES.trim().split("\n")) {
  const loose = whole.startsWith("-") && !whole.startsWith("--");
  const words = (loose ? whole.slice(1) : whole).split(" ").map((w) => w.replaceAll("_", whole.includes("nu_X") ? " " : "_"));
  ran.add(words[0]);
  const own = command(words, here);
  // What was only tried is gone again.
  for (const [name, bytes] of own.wrote) if (!/\.(part|probe)$/.test(name)) here.set(name, isText(name) ? bytes.toString("utf8") : bytes);
  check(`${whole}: it neither traps nor fails inside`, own.lost === undefined && [0, 1, 2, 3].includes(own.code) && !/internal error|panicked/.test(own.err), [own.code, own.lost, own.err]);
  check(`${whole}: it says something`, own.out + own.err !== "" || own.wrote.size > 0 || own.code === 0, own);
  if (own.code === 2) check(`${whole}: it says why it refuses`, own.err.includes("error") && own.err.length > 20, own.err);
  if (loose) continue;
  // On one processor, as a page has one thread.
  const other = spawnSync("taskset", ["-c", "0", program, ...words], { cwd: folder, encoding: "utf8", input: "", maxBuffer: 1 << 28 });
  check(`${whole}: the same code`, own.code === other.status, [own.code, other.status, own.err, other.stderr]);
  check(`${whole}: the same answer`, plain(own.out) === plain(other.stdout), [plain(own.out), plain(other.stdout)]);
  check(`${whole}: the same messages`, plain(own.err).trim() === plain(other.stderr).trim(), [plain(own.err), plain(other.stderr)]);
  for (const name of below(folder).filter((n) => !GIVEN.has(n) && !/(seconds|memory)\.svg$/.test(n))) {
    const [mine, theirs] = [here.get(name), readFileSync(join(folder, name))];
    const same = mine !== undefined && (isText(name) ? plain(String(mine)) === plain(theirs.toString("utf8")) : mine.length === theirs.length);
    check(`${whole}: the same ${name}`, same, [mine && plain(String(mine)), plain(theirs.toString("utf8"))]);
    // A difference is told once.
    if (!same) writeFileSync(join(folder, name), mine ?? theirs);
    if (!same && mine === undefined) here.set(name, theirs.toString("utf8"));
  }
}
const listed = command(["help"], here).out.split("Commands:\n")[1].split("\n\n")[0];
const commands = [...listed.matchAll(/^ {2}(\w+) /gm)].map((m) => m[1]);
check("the program lists its commands", commands.length > 25, commands);
check("every command was run", commands.every((c) => ran.has(c)), commands.filter((c) => !ran.has(c)));

/** Stops a run as soon as it has said so. */
function stopped(words, files, when) {
  const end = new Int32Array(new SharedArrayBuffer(4));
  return command(words, files, end, (news) => when(news) && Atomics.store(end, 0, 1));
}
const far = (news) => "line" in news && /"states":[1-9]/.test(news.line);
const ENDLESS = new Map([...GIVEN, ["endless.mcrl2", "$param n: Nat = 0;\nact a: Nat;\nproc P(i, j: Nat) = a(i) . P(i + 1, j) + a(j) . P(i, j + 1);\ninit P(0, ${n});\n"]]);
const explored = stopped(["explore", "endless.mcrl2", "--format=json", "--progress-lines"], ENDLESS, far);
const found = JSON.parse(explored.out || "{}");
check("an exploration that is stopped says what it has", explored.code === 3 && found.stop === "interrupted" && found.states > 0, explored);
const checked = stopped(["check", "endless.mcrl2", "always.mcf", "--format=json", "--progress-lines"], ENDLESS, far);
check("a check that is stopped is unknown", checked.code === 3 && JSON.parse(checked.out || "{}").results?.[0]?.verdict === "unknown", checked);
const symbolic = stopped(["explore", "endless.mcrl2", "--engine=symbolic", "--format=json", "--progress-lines"], ENDLESS, (news) => "line" in news && news.line.includes("searching"));
check("so is a symbolic search", symbolic.code === 3 && JSON.parse(symbolic.out || "{}").stop === "interrupted", symbolic);
const swept = stopped(["sweep", "small.mcrl2", "-D", "n=1..=50", "--out=rows", "--format=json"], GIVEN, (news) => "wrote" in news && news.wrote.endsWith("sweep.json") && JSON.parse(Buffer.from(news.bytes)).rows.length === 3);
const rows = JSON.parse(swept.out || "{}").rows?.length;
check("a sweep that is stopped keeps its rows", swept.code === 3 && rows >= 3 && rows < 50, [swept.code, rows, swept.err]);
const models = stopped(["models", "--format=json", "--progress-lines"], GIVEN, (news) => "line" in news);
check("a comparison of models can be stopped", models.lost === undefined && (models.code === 3 || models.code === 0), [models.code, models.err]);

/** Processor time, of all threads, of a command here and of the same there, in seconds. */
function pair(words) {
  const before = process.cpuUsage();
  const own = command(words, GIVEN);
  const used = process.cpuUsage(before);
  const line = spawnSync("bash", ["-c", `TIMEFORMAT='%U %S'; time "$0" "$@"`, program, ...words, "--threads", "1"], { cwd: folder, encoding: "utf8" });
  const native = line.stderr.trim().split("\n").at(-1).split(" ").reduce((sum, n) => sum + Number(n), 0);
  check("as many states", JSON.parse(own.out).states === JSON.parse(line.stdout).states, [own.out, line.stdout]);
  return { here: (used.user + used.system) / 1e6, native };
}
const pairs = [1, 2, 3].map(() => pair(["explore", "arcx.spec", "-D", "max_operation_id=2", "--format", "json"]));
const ratios = pairs.map((p) => p.here / p.native);
console.log(`    ARCx at two operations: ${pairs.map((p) => `${p.here.toFixed(2)} s here, ${p.native.toFixed(2)} s native`).join("; ")}`);
// The first has the compiler's work in it. The best of three, since it is processor time of a machine that others use.
check("ARCx at two operations within ten times the processor time of the program", Math.min(...ratios) < 10, pairs);

rmSync(folder, { recursive: true, force: true });
console.log(failed > 0 ? `${failed} failed` : `ok: ${LINES.trim().split("\n").length} commands of ${commands.length} kinds`);
process.exit(failed > 0 ? 1 : 0);
