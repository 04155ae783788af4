#!/usr/bin/env python3
"""Compares mu-check with the mCRL2 toolset on random inputs: the toolset as an outside judge.

    results/toolset.py TOOLSET [MU_CHECK] [--kinds LIST] [--seed N] [--cases N] [--jobs N] [--seconds N] [--keep DIR]

TOOLSET is the folder of its programs (mcrl22lps, lps2lts, lps2pbes, pbessolve, txt2pbes, ltsconvert, ltscompare, lpspp, pbespp); its libraries are looked
for in `lib` beside it. Kinds, all of which are taken by default:

    spec      a random specification with data: sizes modulo strong bisimilarity, and the two systems are compared by `ltscompare`
    formula   a random formula on such a specification: verdicts; also by the equation system that either tool writes and the other solves
    lps       linear processes in binary form: what the toolset wrote is explored, what mu-check wrote is read and explored by the toolset
    game      a random parity game as an equation system without data: verdicts
    lts       two random transition systems: refinement by each preorder that both tools have
    pbes      a random equation system with numbers, truth values and quantifiers without bound, as text and in binary form: verdicts

Each case is made from its kind and a seed, which a difference names: `--kinds K --seed S --cases 1` makes it again, `--keep DIR` keeps its files. A case that one of the tools
does not answer in `--seconds` is counted apart, and so is one that only mu-check refuses. Exit 0 if nothing differs; 2 without the toolset.
"""
import argparse, collections, concurrent.futures, json, os, pathlib, random, re, shutil, subprocess, sys, tempfile

ap = argparse.ArgumentParser()
ap.add_argument("toolset", nargs="?")
ap.add_argument("tool", nargs="?", default="target/release/mu-check")
ap.add_argument("--kinds", default="spec,formula,lps,game,lts,pbes")
ap.add_argument("--seed", type=int, default=0)
ap.add_argument("--cases", type=int, default=100)
ap.add_argument("--jobs", type=int, default=2)
ap.add_argument("--seconds", type=float, default=6)
ap.add_argument("--keep", type=pathlib.Path)
args = ap.parse_args()
if not args.toolset or not (pathlib.Path(args.toolset) / "mcrl22lps").exists():
    print("this comparison needs the mCRL2 toolset: give the folder of its programs (https://www.mcrl2.org)", file=sys.stderr)
    sys.exit(2)
toolset = pathlib.Path(args.toolset).resolve()
mu_check = pathlib.Path(args.tool).resolve()
env = dict(os.environ, LD_LIBRARY_PATH=f"{toolset.parent / 'lib'}:{os.environ.get('LD_LIBRARY_PATH', '')}")


class Unanswered(Exception):
    """A tool gives no answer in time."""


class Refused(Exception):
    """A tool refuses the input."""


class Differs(Exception):
    """The tools do not agree."""


def run(who, words, limit=None):
    try:
        return subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=limit or args.seconds, stdin=subprocess.DEVNULL, env=env)
    except subprocess.TimeoutExpired:
        raise Unanswered(who)


def theirs(name, *words):
    p = run("toolset", [toolset / name, *words])
    if p.returncode != 0:
        raise Refused("toolset: " + (p.stderr.strip().split("\n") or [""])[-1][:160])
    return p.stdout


def reads_ours(name, *words):
    """A tool that is given a file of mu-check: it must not refuse it."""
    try:
        return theirs(name, *words)
    except Refused as e:
        raise Differs(f"{name} refuses our file: {e}")


def ours(*words, codes=(0, 1)):
    p = run("mu-check", [mu_check, *words, "--format", "json", "--no-progress", "--threads", "1", "--max-memory", "2GB"])
    if p.returncode == 3:
        raise Unanswered("mu-check")
    if p.returncode == 4:
        raise Differs("internal error: " + p.stderr.strip().split("\n")[0][:200])
    if p.returncode not in codes:
        raise Refused("mu-check: " + p.stderr.strip().split("\n")[0][:200])
    return json.loads(p.stdout)


# ---- random inputs ------------------------------------------------------------------------------------------------------------------------

SORTS = ["Bool", "Nat", "Int", "D", "List(Nat)", "Set(D)"]


def data(r, sort, vs, depth):
    """A closed or open expression of a sort; no partial operation is used where it has no value."""
    own = [v for v, s in vs if s == sort]
    if own and r.random() < 0.45:
        return r.choice(own)
    e = lambda s: data(r, s, vs, depth - 1)
    if depth <= 0:
        return {"Bool": r.choice(["true", "false"]), "Nat": str(r.randrange(3)), "Int": str(r.randrange(-2, 3)), "D": r.choice(["d1", "d2"]),
                "List(Nat)": r.choice(["[]", "[1]", "[0, 2]"]), "Set(D)": r.choice(["{}", "{d1}", "{d2}"])}[sort]
    return {
        "Bool": lambda: r.choice([lambda: f"!({e('Bool')})", lambda: f"({e('Bool')} && {e('Bool')})", lambda: f"({e('Bool')} || {e('Bool')})",
                                  lambda: f"({e('Nat')} < {e('Nat')})", lambda: f"({e('Int')} <= {e('Int')})", lambda: f"({e('D')} == {e('D')})",
                                  lambda: f"({e('D')} in {e('Set(D)')})", lambda: f"(#({e('List(Nat)')}) > {e('Nat')})", lambda: f"p({e('D')}, {e('Nat')})",
                                  lambda: f"({e('Set(D)')} == {e('Set(D)')})", lambda: f"is_d3({e('D')})",
                                  lambda: f"(exists q: D. {data(r, 'Bool', vs + [('q', 'D')], depth - 1)})"])(),
        "Nat": lambda: r.choice([lambda: f"(({e('Nat')} + {e('Nat')}) mod 3)", lambda: f"if({e('Bool')}, {e('Nat')}, {e('Nat')})", lambda: f"(#({e('List(Nat)')}) mod 4)",
                                 lambda: f"f({e('D')})", lambda: f"max({e('Nat')}, {e('Nat')})", lambda: f"((({e('Nat')} * {e('Nat')}) div 2) mod 5)"])(),
        "Int": lambda: r.choice([lambda: f"(({e('Int')} - {e('Nat')}) mod 3 - 1)", lambda: f"if({e('Bool')}, {e('Int')}, {e('Int')})", lambda: f"abs({e('Int')})"])(),
        "D": lambda: r.choice([lambda: f"next({e('D')})", lambda: f"if({e('Bool')}, {e('D')}, {e('D')})", lambda: f"d3({e('Bool')})"])(),
        "List(Nat)": lambda: r.choice([lambda: f"({e('Nat')} |> [])", lambda: f"if({e('Bool')}, {e('List(Nat)')}, {e('List(Nat)')})", lambda: f"([{e('Nat')}] <| {e('Nat')})"])(),
        "Set(D)": lambda: r.choice([lambda: f"({e('Set(D)')} + {{{e('D')}}})", lambda: f"({e('Set(D)')} * {e('Set(D)')})", lambda: f"({e('Set(D)')} - {e('Set(D)')})"])(),
    }[sort]()


HEAD = """sort D = struct d1 | d2 | d3(flag: Bool)?is_d3;
map next: D -> D; f: D -> Nat; p: D # Nat -> Bool;
var b: Bool; d: D; n: Nat;
eqn next(d1) = d2; next(d2) = d3(true); next(d3(b)) = if(b, d3(false), d1);
    f(d1) = 0; f(d2) = 1; f(d3(b)) = if(b, 2, 1);
    n > 1 -> p(d, n) = d == d1; n <= 1 -> p(d, n) = f(d) == n;
act a, b, c; in_, out: D; num: Nat; both: Nat # Bool;
"""
ACTIONS = [("a", []), ("b", []), ("c", []), ("in_", ["D"]), ("out", ["D"]), ("num", ["Nat"]), ("both", ["Nat", "Bool"])]


def act(r, vs, depth=1):
    name, sorts = r.choice(ACTIONS)
    return name + (f"({', '.join(data(r, s, vs, depth) for s in sorts)})" if sorts else "")


def sequential(r, name, params):
    def step():
        vs, text = list(params), ""
        if r.random() < 0.4:
            x, s = r.choice([("x", "D"), ("y", "Bool"), ("z", "Nat")])
            text += f"sum {x}: {s}. "
            vs.append((x, s))
            bound = [f"{x} < 3"] if s == "Nat" else []
        else:
            bound = []
        guard = bound + ([data(r, "Bool", vs, 2)] if r.random() < 0.7 else [])
        if guard:
            text += "(" + " && ".join(guard) + ") -> "
        label = r.choice([lambda: act(r, vs), lambda: act(r, vs), lambda: "tau", lambda: act(r, vs) + "|" + act(r, vs)])()
        then = r.choice([lambda: f"{name}({', '.join(data(r, s, vs, 2) for _, s in params)})", lambda: f"{name}({', '.join(data(r, s, vs, 2) for _, s in params)})", lambda: "delta",
                         lambda: f"{act(r, vs)} . {name}({', '.join(data(r, s, vs, 1) for _, s in params)})"])()
        return f"{text}({label}) . {then}"
    head = f"({', '.join(f'{v}: {s}' for v, s in params)})"
    return f"proc {name}{head} = " + "\n    + ".join(step() for _ in range(r.randrange(2, 5))) + ";\n"


def specification(r):
    text, calls = HEAD, []
    for name in ["P", "Q"][: r.randrange(1, 3)]:
        params = [(f"{v}{name}", r.choice(SORTS)) for v in "uvw"[: r.randrange(1, 4)]]
        text += sequential(r, name, params)
        calls.append(f"{name}({', '.join(data(r, s, [], 0) for _, s in params)})")
    if len(calls) == 1:
        return text + f"init {calls[0]};\n"
    system = " || ".join(calls)
    if r.random() < 0.6:
        system = f"comm({{in_|out -> in_, a|b -> c}}, {system})"
    if r.random() < 0.6:
        system = f"allow({{a, b, c, in_, num, both, a|c, out|num}}, {system})"
    if r.random() < 0.4:
        system = f"hide({{{r.choice('abc')}, num}}, {system})"
    return text + f"init {system};\n"


def formula(r):
    def regular(depth):
        x = r.random()
        if depth == 0 or x < 0.5:
            return modal(r)
        return r.choice([lambda: f"({regular(depth - 1)})*", lambda: f"({regular(depth - 1)}) . ({regular(depth - 1)})", lambda: f"({regular(depth - 1)}) + ({regular(depth - 1)})"])()

    def modal(r):
        return r.choice(["true", "a", "!b", "tau", "c", "(exists d: D. in_(d))", "(exists n: Nat. val(n < 2) && num(n))", "a || b", "in_(d1)", "!(exists d: D. out(d))",
                         "(exists n: Nat, q: Bool. both(n, q))"])

    def state(depth, names, vs):
        x = r.random()
        if names and x < 0.2:
            name, sort = r.choice(names)
            return name + (f"({data(r, sort, vs, 1)})" if sort else "")
        if depth == 0:
            return r.choice(["true", "false", f"val({data(r, 'Bool', vs, 1)})"])
        s = lambda: state(depth - 1, names, vs)
        def fix():
            name, sort = f"X{depth}", r.choice([None, None, "D", "Bool"])
            sign, var = r.choice(["mu", "nu"]), f"x{depth}"
            if sort:
                return f"({sign} {name}({var}: {sort} = {data(r, sort, vs, 0)}). {state(depth - 1, names + [(name, sort)], vs + [(var, sort)])})"
            return f"({sign} {name}. {state(depth - 1, names + [(name, None)], vs)})"
        def quantified():
            q, sort = r.choice(["forall", "exists"]), r.choice(["D", "Bool", "Nat"])
            var = f"y{depth}"
            body = state(depth - 1, names, vs + [(var, sort)])
            if sort == "Nat":
                body = f"val({var} < 3) => ({body})" if q == "forall" else f"val({var} < 3) && ({body})"
            return f"({q} {var}: {sort}. {body})"
        return r.choice([lambda: f"[{regular(2)}]({s()})", lambda: f"<{regular(2)}>({s()})", lambda: f"[{modal(r)}]({s()})", lambda: f"<{modal(r)}>({s()})",
                         lambda: f"({s()} && {s()})", lambda: f"({s()} || {s()})", fix, fix, quantified])()
    return state(4, [], []) + "\n"


def game(r):
    n = r.randrange(2, 12)
    lines = []
    for i in range(n):
        targets = [f"X{r.randrange(n)}" for _ in range(r.randrange(1, 4))]
        lines.append(f"  {r.choice(['mu', 'nu'])} X{i} = {r.choice([' && ', ' || ']).join(targets)};")
    return "pbes\n" + "\n".join(lines) + "\ninit X0;\n"


def system(r, labels="abc"):
    states = r.randrange(1, 6)
    steps = {(r.randrange(states), r.choice(["tau", *labels[: r.randrange(1, 3)]]), r.randrange(states)) for _ in range(r.randrange(0, 2 * states + 2))}
    return f"des (0,{len(steps)},{states})\n" + "".join(f'({s},"{l}",{t})\n' for s, l, t in sorted(steps))


# Our names and those of the toolset.
PREORDERS = [("trace", "trace"), ("weak-trace", "weak-trace"), ("simulation", "sim"), ("ready-simulation", "ready-sim"), ("failures", "failures"), ("weak-failures", "weak-failures"),
             ("impossible-futures", "impossible-futures")]


def refinement(d):
    refines = lambda name, a, b: ours("compare", d / a, d / b, "--preorder", name)
    for mine, other in PREORDERS:
        j = refines(mine, "a.aut", "b.aut")
        agree(mine, j["verdict"], theirs("ltscompare", "-q", f"-p{other}", d / "a.aut", d / "b.aut").strip())
        if j["verdict"] == "false" and not j["confirmed"]:
            raise Differs(f"{mine}: the difference is not confirmed")
    both = all(refines("coupled-simulation", a, b)["verdict"] == "true" for a, b in (("a.aut", "b.aut"), ("b.aut", "a.aut")))
    try:
        other = theirs("ltscompare", "-q", "-ecoupled-sim", d / "a.aut", d / "b.aut").strip()
    except Unanswered:
        # It does not end on some systems with circles of taus.
        return
    agree("coupled simulation equivalence", str(both).lower(), other)


def equations(r):
    """Numbers that grow, truth values, and quantifiers over all numbers: as random systems that are used to test solvers."""
    params = {f"X{i}": [(f"m{k}", r.choice(["Nat", "Nat", "Bool"])) for k in range(r.randrange(0, 3))] for i in range(r.randrange(1, 5))}

    def atom(vs):
        numbers, truths = [v for v, s in vs if s == "Nat"], [v for v, s in vs if s == "Bool"]
        out = truths + ["true", "false"] + [f"{v} {c}" for v in numbers for c in ("> 0", "> 1", "< 2", "< 3")] + [f"{v} == {w}" for v in numbers for w in numbers if v != w]
        return r.choice(out)

    def number(vs):
        return r.choice(["0", "1"] + [f"{v} + 1" for v, s in vs if s == "Nat"])

    def f(depth, vs, negated):
        x = r.random()
        if depth == 0 or x < 0.15:
            if r.random() < 0.5:
                return f"val({atom(vs)})"
            name = r.choice(list(params))
            values = [number(vs) if s == "Nat" else atom(vs) for _, s in params[name]]
            return ("!" if negated else "") + name + (f"({', '.join(values)})" if values else "")
        g = lambda n: f(depth - 1, vs, n)
        if x < 0.25:
            return f"!({g(not negated)})"
        if x < 0.45:
            return f"({g(negated)}) && ({g(negated)})"
        if x < 0.65:
            return f"({g(negated)}) || ({g(negated)})"
        if x < 0.8:
            return f"({g(not negated)}) => ({g(negated)})"
        q, var = r.choice(["forall", "exists"]), f"t{depth}"
        inner = f(depth - 1, vs + [(var, "Nat")], negated)
        # Mostly a bound that decides; sometimes one that says where the values lie.
        op = ("&&" if q == "forall" else "||") if r.random() < 0.6 else ("=>" if q == "forall" else "&&")
        return f"({q} {var}: Nat. (val({var} < 3)) {op} ({inner}))"

    text = "pbes\n"
    for name, ps in params.items():
        head = f"({', '.join(f'{v}: {s}' for v, s in ps)})" if ps else ""
        text += f"  {r.choice(['mu', 'nu'])} {name}{head} = {f(r.randrange(2, 5), ps, False)};\n"
    values = ", ".join("0" if s == "Nat" else "true" for _, s in params["X0"])
    return text + f"init X0{f'({values})' if values else ''};\n"


# ---- comparisons --------------------------------------------------------------------------------------------------------------------------

def figures(path):
    """States and different transitions: the toolset writes one for each value of a sum."""
    with open(path) as lines:
        m = re.match(r"des\s*\(\s*\d+\s*,\s*(\d+)\s*,\s*(\d+)", next(lines))
        return int(m[2]), len(set(lines))


def solved(path, read=theirs):
    out = read("pbessolve", path).strip().split("\n")
    if not out or out[-1] not in ("true", "false"):
        raise Refused("toolset: no verdict")
    return out[-1]


def agree(what, mine, other):
    if mine != other:
        raise Differs(f"{what}: mu-check {mine}, toolset {other}")


def lts_of(d):
    theirs("mcrl22lps", "-q", d / "m.mcrl2", d / "m.lps")
    theirs("lps2lts", "-q", "--cached", "-l3000", d / "m.lps", d / "t.aut")
    states, transitions = figures(d / "t.aut")
    if states >= 3000:
        raise Unanswered("toolset")
    return states, transitions


def case(kind, seed, d):
    r = random.Random(f"{kind} {seed}")
    if kind in ("spec", "lps", "formula"):
        (d / "m.mcrl2").write_text(specification(r))
        if kind != "formula":
            counts = lts_of(d)
    if kind == "spec":
        theirs("ltsconvert", "-q", "-ebisim", d / "t.aut", d / "s.aut")
        j = ours("explore", d / "m.mcrl2", "--reduce", "strong", "--out", d / "o.aut")["reduced"]
        agree("states, transitions", (j["states"], j["transitions"]), figures(d / "s.aut"))
        agree("ltscompare", "true", theirs("ltscompare", "-q", "-ebisim", d / "o.aut", d / "t.aut").strip())
    elif kind == "lps":
        j = ours("explore", d / "m.lps")
        agree("states, transitions of the toolset's file", (j["states"], j["transitions"]), counts)
        ours("linearise", d / "m.mcrl2", "--out", d / "o.lps")
        j = ours("explore", d / "o.lps")
        reads_ours("lpspp", d / "o.lps")
        reads_ours("lps2lts", "-q", "--cached", d / "o.lps", d / "o.aut")
        agree("states, transitions of our file", (j["states"], j["transitions"]), figures(d / "o.aut"))
        agree("ltscompare", "true", theirs("ltscompare", "-q", "-ebisim", d / "o.aut", d / "t.aut").strip())
    elif kind == "formula":
        (d / "f.mcf").write_text(formula(r))
        theirs("mcrl22lps", "-q", d / "m.mcrl2", d / "m.lps")
        theirs("lps2pbes", "-q", "-f", d / "f.mcf", d / "m.lps", d / "t.pbes")
        want = solved(d / "t.pbes")
        agree("verdict", ours("check", d / "m.mcrl2", d / "f.mcf")["results"][0]["verdict"], want)
        agree("verdict of the toolset's .pbes", ours("solve", d / "t.pbes")["verdict"], want)
        ours("pbes", d / "m.mcrl2", d / "f.mcf", "--out", d / "o.pbes")
        agree("verdict of our .pbes", solved(d / "o.pbes", reads_ours), want)
    elif kind == "lts":
        (d / "a.aut").write_text(system(r))
        (d / "b.aut").write_text(system(r))
        refinement(d)
    else:
        (d / "t.pbes.txt").write_text(game(r) if kind == "game" else equations(r))
        theirs("txt2pbes", "-q", d / "t.pbes.txt", d / "t.pbes")
        want = solved(d / "t.pbes")
        agree("verdict", ours("solve", d / "t.pbes.txt")["verdict"], want)
        agree("verdict of the binary file", ours("solve", d / "t.pbes")["verdict"], want)


def judged(kind, seed):
    with tempfile.TemporaryDirectory() as name:
        d = pathlib.Path(name)
        try:
            case(kind, seed, d)
            return kind, seed, "agree", ""
        except Unanswered as e:
            result = kind, seed, f"no answer of {e}", ""
        except Refused as e:
            result = kind, seed, "refused by " + str(e).split(":")[0], str(e)
        except Differs as e:
            result = kind, seed, "DIFFERS", str(e)
        if args.keep:
            shutil.copytree(d, args.keep / f"{kind}-{seed}", dirs_exist_ok=True)
        return result


tally = collections.defaultdict(collections.Counter)
cases = [(k, s) for s in range(args.seed, args.seed + args.cases) for k in args.kinds.split(",")]
with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
    for kind, seed, result, why in pool.map(lambda c: judged(*c), cases):
        tally[kind][result] += 1
        if result == "DIFFERS" or args.keep and result != "agree" or result in ("refused by mu-check", "no answer of mu-check"):
            print(f"{result} {kind} seed {seed}: {why}", flush=True)
for kind, counts in tally.items():
    print(f"{kind}: " + ", ".join(f"{n} {what}" for what, n in sorted(counts.items())))
sys.exit(any(counts["DIFFERS"] for counts in tally.values()))
