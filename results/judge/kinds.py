"""What is compared: for each kind, how many cases are judged at once, and how.

A judge takes a list of seeds and raises what is wrong. Seeds of one batch share what `seed // batch` gives; a judge of some of them judges the same cases as that of all.
"""
import random
from judge import equations
from judge.chance import Chancy, Timed
from judge.data import theory
from judge.formulas import Formula
from judge.lts import refinement
from judge.programs import Differs, Refused, Shared, Unanswered, agree, figures
from judge.specifications import Member, components, specification

# Cases that are judged at once.
BATCH = {"spec": 40, "lps": 40, "chance": 40, "time": 40, "data": 100, "formula": 100, "game": 50, "equations": 20, "pbes": 4, "lts": 1}
# States of a member that are few enough.
LIMIT = 1000


def joint(kind, seed):
    """How many cases from a batch on are judged together: fewer where the members have several components, whose steps multiply."""
    by_components = {"spec": (40, 20, 5), "lps": (40, 20, 5), "chance": (40, 10, 2), "time": (40, 2, 1)}.get(kind)
    return by_components[components(seed // BATCH[kind]) - 1] if by_components else BATCH[kind]


def merging(base):
    """By default the toolset merges summands with a sum over a new sort first, which takes three times as long: only in some batches."""
    return ["-n"] if random.Random(f"merged {base}").random() < 0.9 else []


def explored(tools, seeds, d, made=Member):
    """The toolset's linear process and transition system of a batch."""
    (d / "m.mcrl2").write_text(specification(seeds[0] // BATCH["spec"], seeds, made=made))
    tools.theirs("mcrl22lps", "-q", "-f", *merging(seeds[0] // BATCH["spec"]), d / "m.mcrl2", d / "m.lps")
    tools.theirs("lps2lts", "-q", "--cached", f"-l{LIMIT * len(seeds)}", d / "m.lps", d / "t.aut")
    sizes = figures(d / "t.aut")
    if sizes[0] >= LIMIT * len(seeds):
        raise Unanswered("toolset")
    return sizes


def same_system(tools, d, name, equivalence="bisim"):
    agree(f"ltscompare {equivalence}", "true", tools.theirs("ltscompare", "-q", f"-e{equivalence}", d / name, d / "t.aut").strip())


def reduced(tools, d, mine, other):
    tools.theirs("ltsconvert", "-q", f"-e{other}", d / "t.aut", d / "s.aut")
    j = tools.ours("explore", d / "m.mcrl2", "--reduce", mine, "--out", d / "r.aut")["reduced"]
    agree(f"states, transitions modulo {mine}", (j["states"], j["transitions"]), figures(d / "s.aut"))
    same_system(tools, d, "r.aut", other)


def spec(tools, seeds, d):
    explored(tools, seeds, d)
    tools.ours("explore", d / "m.mcrl2", "--out", d / "o.aut")
    same_system(tools, d, "o.aut")
    # Which equivalence is a matter of the batch, so that a case alone meets the same.
    reduced(tools, d, *(("strong", "bisim") if seeds[0] // BATCH["spec"] % 2 else ("branching", "branching-bisim")))


def chance(tools, seeds, d):
    """Chance decides: our system and its quotient are bisimilar to the toolset's system by its program, and the quotient is no larger than its own."""
    explored(tools, seeds, d, Chancy)
    tools.ours("explore", d / "m.mcrl2", "--reduce", "probabilistic", "--out", d / "r.aut")
    tools.ours("explore", d / "m.mcrl2", "--out", d / "o.aut")
    for mine in ("o.aut", "r.aut"):
        said = tools.theirs("ltspcompare", "-epbisim", d / mine, d / "t.aut", errors=True)
        agree(f"ltspcompare {mine}", "LTSs are equal", said[:14])
    # The other algorithm may write a wrong quotient; this one may leave states that nothing leads to.
    tools.theirs("ltspbisim", "-q", "-epbisim-bem", d / "t.aut", d / "s.aut")
    sizes = figures(d / "r.aut"), figures(d / "s.aut")
    if sizes[0] > sizes[1]:
        raise Differs(f"states, transitions modulo probabilistic bisimilarity: mu-check {sizes[0]}, toolset {sizes[1]}")


def time(tools, seeds, d):
    """Actions have times: the labels show them."""
    explored(tools, seeds, d, Timed)
    tools.ours("explore", d / "m.mcrl2", "--out", d / "o.aut")
    same_system(tools, d, "o.aut")


def lps(tools, seeds, d):
    sizes = explored(tools, seeds, d)
    j = tools.ours("explore", d / "m.lps")
    agree("states, transitions of the toolset's file", (j["states"], j["transitions"]), sizes)
    tools.ours("linearise", d / "m.mcrl2", "--out", d / "o.lps")
    j = tools.ours("explore", d / "o.lps")
    tools.reads_ours("lps2lts", "-q", "--cached", d / "o.lps", d / "o.aut")
    agree("states, transitions of our file", (j["states"], j["transitions"]), figures(d / "o.aut"))
    same_system(tools, d, "o.aut")


def interesting(tools, base, d):
    """Writes a specification with some states, but not many, as mu-check counts them, and its linear process by the toolset, which is slow on some."""
    for attempt in range(base * 10, base * 10 + 10):
        (d / "m.mcrl2").write_text(specification(attempt, [attempt], alone=True))
        try:
            j = tools.ours("explore", d / "m.mcrl2", "--max-states", "500", codes=(0, 1, 3))
            if 4 <= j["states"] <= 200:
                return tools.theirs("mcrl22lps", "-q", "-f", *merging(base), d / "m.mcrl2", d / "m.lps", processor=3)
        except Unanswered:
            continue
        except Refused as e:
            raise Shared from e
    raise Shared from Unanswered("toolset")


def formula(tools, seeds, d):
    base = seeds[0] // BATCH["formula"]
    interesting(tools, base, d)
    flat = random.Random(f"flat {base}").random() < 0.2
    conjunction(tools, seeds, base, [Formula(random.Random(f"formula {s}"), flat).make() for s in seeds], d, nested=not flat)


def data(tools, seeds, d):
    base = seeds[0] // BATCH["data"]
    (d / "m.mcrl2").write_text(theory(random.Random(f"theory {base}")) + "act a;\ninit a . delta;\n")
    try:
        tools.theirs("mcrl22lps", "-q", d / "m.mcrl2", d / "m.lps")
    except (Unanswered, Refused) as e:
        raise Shared from e
    conjunction(tools, seeds, base, [Formula(random.Random(f"data {s}")).test() for s in seeds], d)


def conjunction(tools, seeds, base, formulas, d, nested=False):
    """Our verdicts are judged by the toolset all at once, and in one of several other ways. Modalities that are nested are fixed points of their own (`lps2pbes -m`): without,
    a system has as many terms as there are summands to the power of their depth."""
    (d / "f.mcf").write_text("".join(f"%% property P{s}\n{f}\n" for s, f in zip(seeds, formulas)))
    verdicts = [j["verdict"] for j in tools.ours("check", d / "m.mcrl2", d / "f.mcf")["results"]]
    if len(verdicts) != len(seeds) or not set(verdicts) <= {"true", "false"}:
        raise Unanswered("mu-check")
    r = random.Random(f"way {base}")
    # Now and then one verdict is turned: then the toolset must say false, or it judges nothing.
    turned = r.randrange(BATCH["formula"]) + base * BATCH["formula"] if r.random() < 0.05 else None
    parts = [f"({f})" if (v == "true") != (s == turned) else f"(!({f}))" for s, f, v in zip(seeds, formulas, verdicts)]
    want = "false" if turned in seeds else "true"
    (d / "c.mcf").write_text("\n && ".join(parts) + "\n")
    tools.theirs("lps2pbes", "-q", *(["-m"] if nested else []), "-f", d / "c.mcf", d / "m.lps", d / "t.pbes")
    agree("our verdicts (" + " ".join(verdicts[:3]) + ")", want, tools.solved(d / "t.pbes"))
    way = r.random()
    if way < 0.2:
        agree("verdict of the toolset's .pbes", tools.ours("solve", d / "t.pbes")["verdict"], want)
    elif way < 0.4:
        tools.ours("pbes", d / "m.mcrl2", d / "c.mcf", "--out", d / "o.pbes")
        agree("verdict of our .pbes", tools.solved(d / "o.pbes", tools.reads_ours), want)
    elif way < 0.5:
        agree("verdict of the conjunction", tools.ours("check", d / "m.mcrl2", d / "c.mcf")["results"][0]["verdict"], want)
    elif way < 0.6:
        agree("verdict on the toolset's .lps", tools.ours("check", d / "m.lps", d / "c.mcf")["results"][0]["verdict"], want)


def systems(kind, make):
    """Each system is solved by us; the toolset solves the conjunction of those that hold and the disjunction of the others. Both are solved by us too, as text and in binary form."""

    def judge(tools, seeds, d):
        base = seeds[0] // BATCH[kind]
        head = equations.declarations(random.Random(f"theory {base}")) if kind == "equations" else ""
        mine = {"true": [], "false": []}
        for s in seeds:
            system = make(random.Random(f"{kind} {s}"), f"S{s}")
            (d / "one.pbes.txt").write_text(equations.text([system], "", head))
            try:
                mine[tools.ours("solve", d / "one.pbes.txt")["verdict"]].append(system)
            except Unanswered:
                if len(seeds) > 1:
                    raise
                # A fault of ours only if the toolset has an answer.
                tools.theirs("txt2pbes", "-q", d / "one.pbes.txt", d / "one.pbes")
                tools.solved(d / "one.pbes")
                raise
        for verdict, junction in (("true", " && "), ("false", " || ")):
            if not mine[verdict]:
                continue
            text, binary = d / f"{verdict}.pbes.txt", d / f"{verdict}.pbes"
            text.write_text(equations.text(mine[verdict], junction, head))
            tools.theirs("txt2pbes", "-q", text, binary)
            agree("verdict", verdict, tools.solved(binary))
            agree("verdict of the binary file", tools.ours("solve", binary)["verdict"], verdict)
            if len(seeds) > 1:
                agree("verdict of the joint file", tools.ours("solve", text)["verdict"], verdict)

    return judge


def lts(tools, seeds, d):
    for s in seeds:
        refinement(tools, random.Random(f"lts {s}"), d)


JUDGES = {"data": data, "spec": spec, "chance": chance, "time": time, "lps": lps, "formula": formula, "game": systems("game", equations.game), "equations": systems("equations", equations.with_data),
          "pbes": systems("pbes", equations.unbounded), "lts": lts}
