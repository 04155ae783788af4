"""Random transition systems, compared by preorders."""
from judge.programs import Differs, Unanswered, agree

# Our names and those of the toolset.
PREORDERS = [("trace", "trace"), ("weak-trace", "weak-trace"), ("simulation", "sim"), ("ready-simulation", "ready-sim"), ("failures", "failures"), ("weak-failures", "weak-failures"),
             ("impossible-futures", "impossible-futures")]


def system(r, labels="abc"):
    states = r.randrange(1, 6)
    steps = {(r.randrange(states), r.choice(["tau", *labels[: r.randrange(1, 3)]]), r.randrange(states)) for _ in range(r.randrange(0, 2 * states + 2))}
    return f"des (0,{len(steps)},{states})\n" + "".join(f'({s},"{l}",{t})\n' for s, l, t in sorted(steps))


def refinement(tools, r, d):
    (d / "a.aut").write_text(system(r))
    (d / "b.aut").write_text(system(r))
    refines = lambda name, a, b: tools.ours("compare", d / a, d / b, "--preorder", name)
    for mine, other in PREORDERS:
        j = refines(mine, "a.aut", "b.aut")
        agree(mine, j["verdict"], tools.theirs("ltscompare", "-q", f"-p{other}", d / "a.aut", d / "b.aut").strip())
        if j["verdict"] == "false" and not j["confirmed"]:
            raise Differs(f"{mine}: the difference is not confirmed")
    both = all(refines("coupled-simulation", a, b)["verdict"] == "true" for a, b in (("a.aut", "b.aut"), ("b.aut", "a.aut")))
    try:
        other = tools.theirs("ltscompare", "-q", "-ecoupled-sim", d / "a.aut", d / "b.aut").strip()
    except Unanswered:
        # It does not end on some systems with circles of taus.
        return
    agree("coupled simulation equivalence", str(both).lower(), other)
