#!/usr/bin/env bash
# One process with two threads beside two processes, in turn: medians of the ratios of wall and processor seconds, of memory a process, and the skew of states.
#
#   results/cluster-ratio.sh PROGRAM MODELS [PAIRS [CASE...]]
#
# PROGRAM: mu-check; MODELS: the folder of the shared models; PAIRS: pairs of runs a case (default 5). Cases: ARCx with five and seven operations and three shared
# models, or those whose name contains a CASE. RATIO_MODELS: other shared models; RATIO_BOUNDED: those that are ended at MODEL@STATES or at
# RATIO_STATES states (3,000,000), separated by colons, of which the time for each state is compared, since each run ends at its own moment.
# Prints a table; exit 1 if counts differ. A pair takes about 7 s with five operations, 28 s with seven, a second to a few for the others, on two processors of its own.
set -euo pipefail
exec python3 - "$@" <<'PYTHON'
import json, os, pathlib, resource, statistics, subprocess, sys, time

program, models = sys.argv[1], pathlib.Path(sys.argv[2])
pairs = int(sys.argv[3]) if len(sys.argv) > 3 else 5
wanted = sys.argv[4:]
arcx = "specs/arcx.spec"
shared = os.environ.get("RATIO_MODELS", "academic/dining/dining_10.mcrl2 games/snake/snake.mcrl2 games/tictactoe/tictactoe.mcrl2").split()
bounded = os.environ.get("RATIO_BOUNDED", "").split(":")
most = os.environ.get("RATIO_STATES", "3000000")
cases = [("ARCx N=5", [arcx, "-D", "max_operation_id=5"], False), ("ARCx N=7", [arcx, "-D", "max_operation_id=7"], False)]
cases += [(pathlib.Path(name).stem, [str(models / name)], False) for name in shared]
for name, _, states in (name.partition("@") for name in bounded if name):
    cases.append((pathlib.Path(name).stem, [str(models / name), "--max-states", states or most], True))


def run(words, how):
    """Result, wall seconds, processor seconds of it and all it started."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run([program, "explore", *words, *how, "--format", "json", "--max-memory", "4G"], capture_output=True, text=True)
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in ([3] if "--max-states" in words else [0]):
        sys.exit(f"{words} {how}: exit {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout), wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def shown(values):
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


counts = lambda result: [result.get(key) for key in ("states", "transitions", "deadlocks", "levels") if key in result]
print("| model | states | pairs | wall seconds, two processes / two threads | processor seconds | memory of one process of two / of the one | skew |")
print("|---|---|---|---|---|---|---|")
for name, words, ends_early in cases:
    if wanted and not any(part in name for part in wanted):
        continue
    walls, processors, memories, skews = [], [], [], []
    for _ in range(pairs):
        one, wall, used = run(words, ["--threads", "2"])
        two, wall2, used2 = run(words, ["--processes", "2"])
        if ends_early:
            share = two["states"] / one["states"]
            wall2, used2 = wall2 / share, used2 / share
        elif counts(one) != counts(two):
            sys.exit(f"{name}: {counts(one)} and {counts(two)}")
        each = two["processes"]["each"]
        walls.append(wall2 / wall)
        processors.append(used2 / used)
        memories.append(max(p["peak_memory_bytes"] for p in each) / one["peak_memory_bytes"])
        stored = [p["stored"] for p in each]
        skews.append(100 * (max(stored) * len(stored) / sum(stored) - 1))
    print(f"| {name} | {one['states']:,} | {pairs} | {shown(walls)} | {shown(processors)} | {shown(memories)} | {max(skews):.2f} % |", flush=True)
PYTHON
