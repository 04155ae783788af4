#!/usr/bin/env python3
"""Counts and verdicts of one process beside those of several, on every model of a folder.

results/cluster.py FOLDER PROGRAM [SECONDS [PAIRS]]: explores each `.mcrl2` below FOLDER in one process, with a limit of SECONDS (default 20); of those that end, the states,
transitions, deadlocks and the length of a shortest way to a deadlock must be the same with 1, 2, 3 and 5 processes. PAIRS is a table whose lines `mcf MODEL FORMULA …`
name formulas: verdicts must be the same, the numbers of equations where the whole product was searched or a game was played, and the lengths of evidence; games must
be played by the first process alone. Prints two tables; a model that is not compared says why: it has no end within the limit, one process refuses it, or
several do, each with the message. Exit 1 if something differs."""

import json
import pathlib
import subprocess
import sys

folder, program = pathlib.Path(sys.argv[1]), sys.argv[2]
limit = int(sys.argv[3]) if len(sys.argv) > 3 else 20
pairs = pathlib.Path(sys.argv[4]) if len(sys.argv) > 4 else None
PATIENT = 10 * limit


def run(command, *words, seconds=limit):
    words = [program, command, *map(str, words), "--format", "json", "--timeout", f"{seconds}s", "--max-memory", "3G"]
    done = subprocess.run(words, capture_output=True, text=True)
    try:
        return done.returncode, json.loads(done.stdout)
    except json.JSONDecodeError:
        return done.returncode, {"message": done.stderr.strip().split("\n")[0]}


def message(result):
    error = result.get("error")
    return (error or {}).get("message") or result.get("message") or "?"


def figures(result):
    return [result.get(key) for key in ("states", "transitions", "deadlocks")] + [result.get("ends")]


def way(result):
    ways = result.get("ways")
    return [result.get("clean_ends"), len(ways[0]["steps"]) if ways else None] if ways is not None else None


def models():
    compared = differ = endless = refused = refused_by_all = 0
    print("| model | states | 1, 2, 3, 5 processes | way to a deadlock |")
    print("|---|---|---|---|")
    for model in sorted(folder.rglob("*.mcrl2")):
        code, one = run("explore", model)
        name = model.relative_to(folder)
        if code == 3:
            endless += 1
            print(f"| {name} | | not run by several: one process has no end ({one.get('stop', '')}) | |", flush=True)
            continue
        if code != 0:
            refused += 1
            print(f"| {name} | | not run by several: one process refuses it: {message(one)} | |", flush=True)
            continue
        counts = [run("explore", model, "--processes", n, seconds=PATIENT) for n in "1235"]
        if all(c == 2 for c, _ in counts):
            refused_by_all += 1
            # Several processes take all but probabilistic models.
            differ += "robabilis" not in message(counts[0][1])
            print(f"| {name} | {one['states']} | refused: {message(counts[0][1])} | |", flush=True)
            continue
        same = all(figures(many) == figures(one) for _, many in counts)
        sought = way(run("explore", model, "--deadlock", seconds=PATIENT)[1])
        ways = [way(run("explore", model, "--deadlock", "--processes", n, seconds=PATIENT)[1]) for n in "123"]
        alike = all(w is not None and sought is not None and w[1] == sought[1] for w in ways)
        compared += 1
        differ += not (same and alike)
        told = "same" if same else "; ".join(f"{n}: {c} {figures(m)}" for n, (c, m) in zip("1235", counts))
        steps = "none" if sought and sought[1] is None else f"{sought and sought[1]} steps"
        print(f"| {name} | {one['states']} | {told} | {steps if alike else f'{sought} {ways}'} |", flush=True)
    print(f"\n{compared} models compared, {differ} differ; {refused_by_all} refused by several processes; not run by several: {endless} without an end, {refused} refused by one\n")
    return differ


def verdict(result):
    """Verdict, route, equations where the whole product was searched or a game was played, steps of the evidence."""
    if not result.get("results"):
        return None
    found = result["results"][0]
    steps = len(found["evidence"]) + found["evidence_left_out"]
    # A search that was decided met what it met until then.
    whole = found["reason"] == "game" or not steps
    return [found["verdict"], found["reason"], found["equations"] if whole else None, steps]


def formulas():
    compared = differ = left = games = 0
    print("| model | formula | one process | 1, 2, 3, 5 processes |")
    print("|---|---|---|---|")
    for line in pairs.read_text().splitlines():
        words = line.split("\t")
        if words[0] != "mcf":
            continue
        model, formula = folder / words[1], folder / words[2]
        shown = f"| {words[1]} | {formula.name} |"
        code, one = run("check", model, formula, "--without", "por")
        expected = verdict(one)
        if expected is None or expected[0] == "unknown":
            left += 1
            print(f"{shown} not compared: exit {code} | |", flush=True)
            continue
        many = [run("check", model, formula, "--processes", n, seconds=PATIENT) for n in "1235"]
        refusals = [m.get("message") or str(m.get("error")) for c, m in many if c == 2]
        game = expected[1] == "game"
        same = all(verdict(m) == expected and m["results"][0].get("alone", False) == game for _, m in many)
        games += game
        compared += 1
        differ += not same
        told = ("same, by process 0" if game else "same") if same else f"{[verdict(m) for _, m in many]} {refusals[:1]}"
        print(f"{shown} {expected} | {told} |", flush=True)
    print(f"\n{compared} formulas compared, {games} of them by a game; {differ} differ, {left} not compared")
    return differ


wrong = formulas() if pairs else 0
sys.exit(wrong + models() > 0)
