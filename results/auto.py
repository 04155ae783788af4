#!/usr/bin/env python3
"""How often `--engine auto` is as fast as the faster of both engines, on a folder of models with a list of models and formulas.

    results/auto.py FOLDER [MU_CHECK] [--limit S] [--only TEXT] [--slack X] [--floor S]

FOLDER has `expected.tsv` (rows: kind, model, formula or sizes; tab-separated) and `models/`. Each model is explored and each formula checked by
`explicit`, `symbolic` and `auto`, one after the other, with one thread. Seconds are processor seconds (user and system) of the whole program, so a busy machine
changes them little; a program that needs more than the limit is ended (`auto` gets three limits) and counts as not finished. A row is a hit if `auto`
takes at most X times the faster engine's time and the floor. Prints a table, misses first, and the shares of hits; exit 1 if answers differ.
"""
import argparse, json, pathlib, resource, subprocess, sys

ap = argparse.ArgumentParser()
ap.add_argument("folder", type=pathlib.Path)
ap.add_argument("tool", nargs="?", default="target/release/mu-check")
ap.add_argument("--limit", type=int, default=10)
ap.add_argument("--only", default="")
ap.add_argument("--slack", type=float, default=1.5)
ap.add_argument("--floor", type=float, default=0.1)
args = ap.parse_args()


def run(engine, words):
    limit = args.limit * (3 if engine == "auto" else 1)

    def before():
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))

    was = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [args.tool, *map(str, words), "--engine", engine, "--threads", "1", "--max-memory", "2GB", "--format", "json", "--no-progress"]
    p = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, preexec_fn=before)
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = now.ru_utime + now.ru_stime - was.ru_utime - was.ru_stime
    if p.returncode not in (0, 1):
        return seconds, None, f"exit {p.returncode}", ""
    found = json.loads(p.stdout)
    one = found["results"][0] if "results" in found else found
    answer = one["verdict"] if "results" in found else f"{one['states']} states"
    return seconds, answer, one.get("engine", ""), one.get("reason") or ""


rows, models = [], []
for line in (args.folder / "expected.tsv").read_text().splitlines():
    words = line.split("\t")
    if line.startswith("#") or words[0] == "reject" or words[-1] == "reject":
        continue
    model = args.folder / "models" / words[1]
    if model not in models:
        models.append(model)
    if words[0] == "mcf":
        rows.append((f"{model.stem} `{pathlib.Path(words[2]).stem}`", ["check", model, args.folder / "models" / words[2]]))
rows = [(m.stem, ["explore", m]) for m in models] + rows
table, differ = [], 0
for name, words in rows:
    if args.only not in name:
        continue
    found = {engine: run(engine, words) for engine in ("explicit", "symbolic", "auto")}
    answers = {str(a) for _, a, _, _ in found.values() if a is not None}
    if len(answers) > 1:
        differ += 1
        print(f"ANSWERS DIFFER: {name}: {found}", file=sys.stderr)
    times = [found[e][0] for e in ("explicit", "symbolic") if found[e][1] is not None]
    best = min(times, default=None)
    ended = found["auto"][1] is not None
    hit = None if best is None else ended and found["auto"][0] <= args.slack * best + args.floor
    table.append((hit, -(found["auto"][0] / max(best or 99, 0.01)), name, found, best))
    print(f"{name}: {found} {hit}", file=sys.stderr, flush=True)

table.sort(key=lambda r: ({False: 0, True: 1, None: 2}[r[0]], r[1]))
show = lambda f: f"{f[0]:.2f}" if f[1] is not None else "none"
print("| model | answer | explicit | symbolic | `auto` | of the faster | which answered |\n|---|---|--:|--:|--:|--:|---|")
for hit, _, name, found, best in table:
    ratio = "" if best is None else f"{found['auto'][0] / max(best, 0.01):.1f}"
    answer = next((a for _, a, _, _ in found.values() if a is not None), "none")
    print(f"| {name} | {answer} | {show(found['explicit'])} | {show(found['symbolic'])} | {show(found['auto'])} | {ratio} | {found['auto'][2]} |")
for what, least in (("all rows that an engine answers", 0), ("those where the faster engine takes more than 0.2 s", 0.2)):
    some = [r for r in table if r[0] is not None and r[4] > least]
    if some:
        hits = sum(r[0] for r in some)
        print(f"\n{what}: {hits} of {len(some)} hits ({100 * hits / len(some):.0f} %)")
sys.exit(1 if differ else 0)
