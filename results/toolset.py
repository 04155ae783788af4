#!/usr/bin/env python3
"""Compares mu-check with the mCRL2 toolset on random inputs: the toolset as an outside judge.

    results/toolset.py TOOLSET [MU_CHECK] [--kinds LIST] [--seed N] [--cases N] [--jobs N] [--seconds N] [--minutes N] [--keep DIR] [--tally FILE]

TOOLSET is the folder of its programs (mcrl22lps, lps2lts, lps2pbes, pbessolve, txt2pbes, ltsconvert, ltscompare, ltspbisim, ltspcompare); its libraries are looked for in `lib` beside it.
Kinds, all of which are taken by default:

    spec       specifications with data: compared by `ltscompare`, and by their sizes modulo strong and branching bisimilarity
    chance     the same with choices by chance: compared by `ltspcompare`, and by their sizes modulo probabilistic bisimilarity
    time       the same with times of actions: compared by `ltscompare`
    data       expressions of type Bool: their values
    lps        linear processes in binary form: what the toolset wrote is explored, what mu-check wrote is read and explored by the toolset
    formula    formulas on such a specification: verdicts; also by the equation system that either tool writes and the other solves
    game       parity games as equation systems without data: verdicts
    equations  equation systems with data of many sorts: verdicts, as text and in binary form
    pbes       equation systems with numbers that grow and quantifiers without bound: likewise
    lts        two transition systems: refinement by each preorder that both tools have

Many cases are judged by one run of the programs (`BATCH` in `judge/kinds.py`): members of one specification behind different first actions, a conjunction of the formulas that mu-check
finds true and the negations of the others, equation systems beside each other. Where the tools do not agree, or one does not answer, the batch is halved until single cases are left.
Each case is made from its kind and a seed, which a difference names: `--kinds K --seed S --cases 1` makes it again alone, `--keep DIR` keeps its files. A case that one of the tools does
not answer in `--seconds` of processor time is counted apart, and so is one that a tool refuses. The tally is printed at the end, also after an interrupt; `--tally FILE` keeps it while the run goes on.
Exit 0 if nothing differs; 2 without the toolset.
"""
import argparse, collections, concurrent.futures, itertools, os, pathlib, shutil, signal, subprocess, sys, tempfile, time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from judge.kinds import BATCH, JUDGES, joint
from judge.programs import Differs, Refused, Shared, Tools, Unanswered
from judge.tally import Tally

GOOD = "agree"
scratch = tempfile.mkdtemp(prefix="judge")


def attempt(judge, tools, seeds):
    """The result of one joint judgement, why, whether halves may do better, and the folder of its files, which the caller removes."""
    d = pathlib.Path(tempfile.mkdtemp(dir=scratch))
    try:
        judge(tools, seeds, d)
        return GOOD, "", False, d
    except Shared as e:
        return *told(e.__cause__), False, d
    except (Unanswered, Refused, Differs) as e:
        return *told(e), True, d


def told(e):
    """The name of a result and why it is so."""
    if isinstance(e, Unanswered):
        return f"no answer of {e}", ""
    return ("refused by " + str(e).split(":")[0] if isinstance(e, Refused) else "DIFFERS"), str(e)


def judged(kind, seeds, tools, keep, found):
    """Judges these cases, by halves where it must; `found` gets each seed with its result."""
    result, why, divisible, d = attempt(JUDGES[kind], tools, seeds)
    try:
        if not divisible or len(seeds) == 1:
            found.extend((seed, result, why if seed == seeds[0] else "") for seed in seeds)
            if keep and result != GOOD:
                shutil.copytree(d, keep / f"{kind}-{seeds[0]}", dirs_exist_ok=True)
        else:
            before, half = len(found), len(seeds) // 2
            judged(kind, seeds[:half], tools, keep, found)
            judged(kind, seeds[half:], tools, keep, found)
            if result == "DIFFERS" and all(r == GOOD for _, r, _ in found[before:]):
                # Only together do they differ.
                found[before] = (seeds[0], "DIFFERS", f"with all of seeds {seeds[0]} to {seeds[-1]}: {why}")
                if keep:
                    shutil.copytree(d, keep / f"{kind}-{seeds[0]}-to-{seeds[-1]}", dirs_exist_ok=True)
    finally:
        shutil.rmtree(d, ignore_errors=True)


def batches(kinds, seed, cases):
    """Pieces of the seeds that do not cross the borders of batches, the kinds in turn."""
    rest = {k: seed for k in kinds}
    while any(at < seed + cases for at in rest.values()):
        for kind in kinds:
            at = rest[kind]
            if at < seed + cases:
                until = min((at // BATCH[kind] + 1) * BATCH[kind], seed + cases, at + joint(kind, at))
                yield kind, list(range(at, until))
                rest[kind] = until


def commit():
    try:
        return subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=pathlib.Path(__file__).parent).stdout.strip()
    except OSError:
        return ""


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("toolset", nargs="?")
    ap.add_argument("tool", nargs="?", default="target/release/mu-check")
    ap.add_argument("--kinds", default=",".join(JUDGES))
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--cases", type=int, default=100)
    ap.add_argument("--jobs", type=int, default=1)
    ap.add_argument("--seconds", type=float, default=6)
    ap.add_argument("--minutes", type=float, default=float("inf"))
    ap.add_argument("--keep", type=pathlib.Path)
    ap.add_argument("--tally", type=pathlib.Path)
    args = ap.parse_args()
    if not args.toolset or not (pathlib.Path(args.toolset) / "mcrl22lps").exists():
        print("this comparison needs the mCRL2 toolset: give the folder of its programs (https://www.mcrl2.org)", file=sys.stderr)
        return 2
    tools, tally = Tools(args.toolset, args.tool, args.seconds), Tally(args.tally, commit(), args.seed)
    # A request to end ends as an interrupt does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)

    def piece(work):
        if time.time() > tally.began + 60 * args.minutes:
            return work[0], []
        found = []
        judged(*work, tools, args.keep, found)
        return work[0], found

    todo, running = batches(args.kinds.split(","), args.seed, args.cases), collections.deque()
    pool, stopped = concurrent.futures.ThreadPoolExecutor(args.jobs), False
    try:
        while True:
            # Two pieces a job wait at most: many cases are made as they are needed.
            running.extend(pool.submit(piece, work) for work in itertools.islice(todo, 2 * args.jobs - len(running)))
            if not running:
                break
            kind, found = running.popleft().result()
            for seed, result, why in found:
                tally.add(kind, seed, result)
                if result != GOOD and (why or result.startswith("no answer of mu")):
                    print(f"{result} {kind} seed {seed}: {why}", flush=True)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        stopped = True
    tally.write()
    tally.show()
    sys.stdout.flush()
    if stopped:
        # Without waiting for what runs.
        tools.stop()
        shutil.rmtree(scratch, ignore_errors=True)
        os._exit(130)
    return int(any(counts["DIFFERS"] for counts in tally.counts.values()))


if __name__ == "__main__":
    try:
        sys.exit(main())
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
