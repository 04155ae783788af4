#!/usr/bin/env python3
"""Holds the verdict of each proof of a folder against the explicit engine with 2, 3 and 4 processes, and prints the table of proofs.md.

    results/proofs-instances.py FOLDER [PATTERN]

FOLDER/expected.tsv lists the systems: file, model (sc or tso), ..; PATTERN, a regular expression, keeps the lines that match it. Variables: MU_CHECK, the program
(the release build); MOST, the states of an instance (300000); SECONDS_EACH, for a proof and for an instance (20).

An instance is `safe` if all its states were seen and none is unsafe (`given`, if numbers were), `unsafe` if one is, `-` if a limit came first, `refused` if the machine needs what is not
given (a number that `init` leaves open is 1 here: then a safe instance says nothing of a proof that says unsafe). A proof that says safe and an instance that is unsafe differ; so does a run of so many processes and an instance of that number that is safe.
"""

import json
import os
import re
import subprocess
import sys

BUILT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../target/release/mu-check")
PROGRAM = os.path.abspath(os.environ.get("MU_CHECK", BUILT))
MOST = os.environ.get("MOST", "300000")
EACH = os.environ.get("SECONDS_EACH", "20")
LIMITS = ["--timeout", f"{EACH}s", "--max-memory", "2GB", "--format", "json", "--no-progress", "-q"]


def told(arguments):
    done = subprocess.run([PROGRAM, *arguments, *LIMITS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        answer = {}
    answer["said"] = done.stderr + done.stdout
    return answer


def proof(path, model):
    answer = told(["prove", path, "--model", model])
    return answer.get("property", "error"), (answer.get("run") or {}).get("processes")


def instance(path, model, processes):
    given = []
    while True:
        answer = told(["explore", path, "--model", model, "-D", f"processes={processes}", "--action", "unsafe", "--max-states", MOST, "--threads", "1", *given])
        wanted = re.search(r"-D (\w+)=NUMBER gives one", answer["said"])
        if "found" in answer or not wanted or f"{wanted.group(1)}=1" in given:
            break
        given += ["-D", f"{wanted.group(1)}=1"]
    if "found" not in answer:
        return "refused", 0
    if answer["found"]:
        return "unsafe", answer["states"]
    return ("-" if answer["stop"] != "complete" else "given" if given else "safe"), answer["states"]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder, pattern = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "."
    with open(os.path.join(folder, "expected.tsv"), encoding="utf-8") as lines:
        rows = [line.split("\t")[:2] for line in lines if not line.startswith(("#", "file\t")) and re.search(pattern, line)]
    table, differ, counts = [], [], {}
    for file, model in rows:
        path = os.path.join(folder, file)
        verdict, needed = proof(path, model)
        with open(path, encoding="utf-8", errors="replace") as text:
            bound = re.search(r"^\s*number_procs\s+(\d+)", text.read(), re.M)
        cells = []
        for processes in (2, 3, 4):
            # The proof is of at most so many.
            if bound and processes > int(bound.group(1)):
                cells.append("")
                continue
            found, states = instance(path, model, processes)
            counts[found] = counts.get(found, 0) + 1
            cells.append(f"{found} {states:,}" if states else found)
            wrong = found == "unsafe" if verdict == "safe" else found == "safe" and needed == processes
            if wrong:
                differ.append(f"{file} ({model}): the proof says {verdict}, {processes} processes: {found}")
        line = f"| `{file}` | {model} | {verdict}{f', {needed}' if needed else ''} | {' | '.join(cells)} |"
        print(line, file=sys.stderr, flush=True)
        table.append(line)
    print(f"{len(rows)} systems; instances: {', '.join(f'{n} {k}' for k, n in sorted(counts.items()))}; differences: {len(differ)}\n")
    print(*differ, sep="\n")
    print("| system | model | proof | 2 | 3 | 4 |\n|---|---|---|---|---|---|")
    print(*table, sep="\n")


if __name__ == "__main__":
    main()
