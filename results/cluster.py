#!/usr/bin/env python3
"""Counts of one process beside those of several, on every model of a folder.

results/cluster.py FOLDER PROGRAM [SECONDS]: explores each `.mcrl2` below FOLDER in one process, with a limit of SECONDS (default 20); of those that end, the states, transitions,
deadlocks and the length of a shortest way to a deadlock must be the same with 1, 2, 3 and 5 processes. Prints a table; exit 1 if something differs."""

import json
import pathlib
import subprocess
import sys

folder, program = pathlib.Path(sys.argv[1]), sys.argv[2]
limit = sys.argv[3] if len(sys.argv) > 3 else "20"


def run(model, *options, seconds=limit):
    words = [program, "explore", str(model), "--format", "json", "--timeout", f"{seconds}s", "--max-memory", "3G", *options]
    done = subprocess.run(words, capture_output=True, text=True)
    try:
        return done.returncode, json.loads(done.stdout)
    except json.JSONDecodeError:
        return done.returncode, {}


def figures(result):
    return [result.get(key) for key in ("states", "transitions", "deadlocks")] + [result.get("ends")]


def way(result):
    ways = result.get("ways")
    return [result.get("clean_ends"), len(ways[0]["steps"]) if ways else None] if ways is not None else None


compared = differ = left = 0
print("| model | states | 1, 2, 3, 5 processes | way to a deadlock |")
print("|---|---|---|---|")
for model in sorted(folder.rglob("*.mcrl2")):
    code, one = run(model)
    name = model.relative_to(folder)
    if code != 0:
        left += 1
        print(f"| {name} | | not compared: exit {code} {one.get('stop', '')} | |", flush=True)
        continue
    patient = 10 * int(limit)
    counts = [run(model, "--processes", n, seconds=patient) for n in "1235"]
    same = all(figures(many) == figures(one) for _, many in counts)
    sought = way(run(model, "--deadlock", seconds=patient)[1])
    ways = [way(run(model, "--deadlock", "--processes", n, seconds=patient)[1]) for n in "123"]
    alike = all(w is not None and sought is not None and w[1] == sought[1] for w in ways)
    compared += 1
    differ += not (same and alike)
    told = "same" if same else "; ".join(f"{n}: {c} {figures(m)}" for n, (c, m) in zip("1235", counts))
    steps = "none" if sought and sought[1] is None else f"{sought and sought[1]} steps"
    print(f"| {name} | {one['states']} | {told} | {steps if alike else f'{sought} {ways}'} |", flush=True)
print(f"\n{compared} models compared, {differ} differ, {left} not compared")
sys.exit(differ > 0)
