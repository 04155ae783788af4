#!/usr/bin/env python3
"""Proves every system of a folder beside another prover, by turns, and prints the table of proofs.md, the bad rows first.

    results/proofs.py FOLDER PEER [PATTERN]

FOLDER/expected.tsv lists the systems: file, model (sc or tso), verdict, ..; PEER is the other program; PATTERN, a regular expression, keeps the lines that
match it. Variables: SECONDS_EACH, the limit of a run (60); CPU=1, that it limits the processor's time, for a machine with other work; MU_CHECK, the program (the release build); ROWS, a file to which each row is added as it is measured, and
whose rows are not measured again.

Times are of whole processes, from their start to their end. The two programs run by turns: 15 times where both take less than 0.1 s, three times
below a second, else once. The fastest run counts, for the wall clock and for the processor's time (user and system) each.
"""

import math
import os
import re
import signal
import sys
import tempfile
import time

EACH = float(os.environ.get("SECONDS_EACH", "60"))
CPU = bool(os.environ.get("CPU"))
# By the wall clock.
LIMIT = EACH * 30 if CPU else EACH
# `prlimit` ends what takes more of the processor's time; its own millisecond counts.
WITHIN = ["/usr/bin/prlimit", f"--cpu={EACH:.0f}"] if CPU else []
VERDICTS = ("safe", "unsafe")


class Killed(Exception):
    """The limit of a run."""


def alarm(*_):
    raise Killed


def once(command):
    """Runs the command: its output (None if it ran out of time), seconds by the wall clock, seconds of the processor."""
    with tempfile.TemporaryFile() as out:
        into = [(os.POSIX_SPAWN_DUP2, out.fileno(), 1), (os.POSIX_SPAWN_DUP2, out.fileno(), 2)]
        signal.setitimer(signal.ITIMER_REAL, LIMIT + 5)
        start = time.perf_counter()
        child = os.posix_spawn(command[0], command, os.environ, file_actions=into)
        stopped = False
        try:
            _, _, usage = os.wait4(child, 0)
        except Killed:
            os.kill(child, signal.SIGKILL)
            _, _, usage = os.wait4(child, 0)
            stopped = True
        took = time.perf_counter() - start
        signal.setitimer(signal.ITIMER_REAL, 0)
        out.seek(0)
        text = None if stopped else out.read().decode(errors="replace")
        return text, took, usage.ru_utime + usage.ru_stime


def ours(text):
    found = re.search(r"^verdict +(\w+)", text or "", re.M)
    if not (text or "").strip():
        return "unknown", "limit"
    why = re.search(r"^why +(.*)", text or "", re.M)
    return (found.group(1) if found else "error"), (why.group(1)[:80] if why else "")


def theirs(text):
    if text is None:
        return "open"
    if "UNSAFE" in text:
        return "unsafe"
    return "safe" if "is SAFE" in text else "refused" if text.strip() else "open"


def measure(program, peer, path, model):
    """One row: both verdicts, both times by both clocks, the reason for an unknown."""
    commands = (
        [*WITHIN, program, "prove", path, "--model", model, "--timeout", f"{LIMIT:.0f}s", "--max-memory", "4GB", "--no-progress", "-q"],
        [*WITHIN, peer, "-nocolor", "-quiet", *(["-model", "SC"] if model == "sc" else []), path],
    )
    runs, rounds, done = ([], []), 1, 0
    while done < rounds:
        for command, list_ in zip(commands, runs):
            list_.append(once(command))
        done += 1
        longest = max(min(r[1] for r in list_) for list_ in runs)
        rounds = 15 if longest < 0.1 else 3 if longest < 1 else 1
    (mine, why), other = ours(runs[0][0][0]), theirs(runs[1][0][0])
    least = [min(r[i] for r in list_) for list_ in runs for i in (1, 2)]
    return mine, other, *least, why


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else float("nan")


def table(rows):
    kinds = {"differs": [], "slow": [], "neither": [], "more": [], "same": []}
    for row in rows:
        _, _, mine, other, wall, _, peers, _, _ = row
        if other in VERDICTS:
            kind = "differs" if mine != other else "slow" if wall > 1 and wall > 2 * peers else "same"
        else:
            kind = "more" if mine in VERDICTS else "neither"
        kinds[kind].append(row)
    both = kinds["same"] + kinds["slow"]
    print(
        f"{len(rows)} systems; verdicts differ on {len(kinds['differs'])}; slower than twice and than a second: {len(kinds['slow'])}; "
        f"geometric mean of the ratios over {len(both)}: {mean([r[6] / r[4] for r in both]):.2f} by the wall clock, "
        f"{mean([r[7] / r[5] for r in both]):.2f} by the processor's; decided here and open there: {sum(r[3] == 'open' for r in kinds['more'])}, refused there: "
        f"{sum(r[3] == 'refused' for r in kinds['more'])}; by neither: {len(kinds['neither'])}\n"
    )
    print("| system | model | mu-check | s | of the processor | peer | s | of the processor | ratio | why |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for kind, list_ in kinds.items():
        for file, model, mine, other, wall, cpu, peers, peers_cpu, why in sorted(list_, key=lambda r: -r[6] / r[4]):
            ratio = f"{peers / wall:.1f}" if kind in ("same", "slow") else ""
            print(f"| `{file}` | {model} | {mine} | {wall:.4f} | {cpu:.4f} | {other} | {peers:.4f} | {peers_cpu:.4f} | {ratio} | {why} |")


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    folder, peer, pattern = sys.argv[1], os.path.abspath(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "."
    built = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../target/release/mu-check")
    program, kept = os.path.abspath(os.environ.get("MU_CHECK", built)), os.environ.get("ROWS")
    signal.signal(signal.SIGALRM, alarm)
    known = {}
    if kept and os.path.exists(kept):
        with open(kept, encoding="utf-8") as lines:
            for line in lines:
                f = line.rstrip("\n").split("\t")
                known[f[0], f[1]] = (*f[:4], *map(float, f[4:8]), f[8])
    rows = []
    with open(os.path.join(folder, "expected.tsv"), encoding="utf-8") as lines:
        listed = [line.split("\t")[:2] for line in lines if not line.startswith("#") and re.search(pattern, line)]
    for file, model in listed:
        row = known.get((file, model))
        if row is None:
            row = (file, model, *measure(program, peer, os.path.join(folder, file), model))
            line = "\t".join(f"{x:.6f}" if isinstance(x, float) else x for x in row)
            print(line, file=sys.stderr)
            if kept:
                with open(kept, "a", encoding="utf-8") as out:
                    print(line, file=out)
        rows.append(row)
    table(rows)


if __name__ == "__main__":
    main()
