"""Random equation systems: parity games, and systems with data; and many of them as one.

A system is a list of equations (sign, name, parameters, right-hand side) and a first instance. Names begin with a tag, so that systems stand beside each other.
"""
from judge.data import Data, theory


def game(r, tag):
    n = r.randrange(2, 12)
    equations = []
    for i in range(n):
        targets = [f"{tag}X{r.randrange(n)}" for _ in range(r.randrange(1, 4))]
        equations.append((r.choice(["mu", "nu"]), f"{tag}X{i}", "", r.choice([" && ", " || "]).join(targets)))
    return equations, f"{tag}X0"


def connective(x, bounds, g, negated):
    """A negation, conjunction, disjunction or implication, by the bound that `x` is below, of what `g` makes; it is told whether that stands under an odd number of negations."""
    if x < bounds[0]:
        return f"!({g(not negated)})"
    word = "&&" if x < bounds[1] else "||" if x < bounds[2] else "=>"
    return f"(({g(negated if word != '=>' else not negated)}) {word} ({g(negated)}))"


def with_data(r, tag):
    """Parameters of all sorts with few values, quantifiers over finite sorts and bounded numbers, implications and negations."""
    data = Data(r)
    sorts = ["Nat", "Nat", "Bool", "Bool", "D", "E", "Int", "Pos", "List(E)", "FSet(D)", "T"]
    params = {f"{tag}X{i}": list({data.fresh(s): s for s in (r.choice(sorts) for _ in range(r.choice([0, 1, 1, 2])))}.items()) for i in range(r.randrange(1, 6))}

    def f(depth, vs, negated):
        x = r.random()
        if depth == 0 or x < 0.12:
            if r.random() < 0.35:
                return f"val({data.make('Bool', vs, 2)})"
            name = r.choice(list(params))
            return ("!" if negated else "") + name + (f"({', '.join(data.make(s, vs, 2) for _, s in params[name])})" if params[name] else "")
        g = lambda n: f(depth - 1, vs, n)
        if x < 0.82:
            return connective(x, (0.2, 0.45, 0.7), g, negated)
        q, (sort, bound) = r.choice(["forall", "exists"]), r.choice([("D", None), ("E", None), ("Bool", None), ("Nat", "{} < 3"), ("Pos", "{} < 3"), ("Int", "-2 < {} && {} < 2")])
        v = data.fresh(sort)
        inner = f(depth - 1, vs + [(v, sort)], negated)
        if bound:
            inner = f"val({bound.replace('{}', v)}) {'=>' if q == 'forall' else '&&'} ({inner})"
        return f"({q} {v}: {sort}. {inner})"

    equations = []
    for name, ps in params.items():
        head = f"({', '.join(f'{v}: {s}' for v, s in ps)})" if ps else ""
        equations.append((r.choice(["mu", "nu"]), name, head, f(r.randrange(2, 5), ps, False)))
    name, ps = next(iter(params.items()))
    return equations, name + (f"({', '.join(data.constant(s) for _, s in ps)})" if ps else "")


def unbounded(r, tag):
    """Numbers that grow, truth values, and quantifiers over all numbers: as random systems that are used to test solvers."""
    params = {f"{tag}X{i}": [(f"m{k}", r.choice(["Nat", "Nat", "Bool"])) for k in range(r.randrange(0, 3))] for i in range(r.randrange(1, 5))}

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
        if x < 0.8:
            return connective(x, (0.25, 0.45, 0.65), g, negated)
        q, var = r.choice(["forall", "exists"]), f"t{depth}"
        inner = f(depth - 1, vs + [(var, "Nat")], negated)
        # Mostly a bound that decides; sometimes one that says where the values lie.
        op = ("&&" if q == "forall" else "||") if r.random() < 0.6 else ("=>" if q == "forall" else "&&")
        return f"({q} {var}: Nat. (val({var} < 3)) {op} ({inner}))"

    equations = []
    for name, ps in params.items():
        head = f"({', '.join(f'{v}: {s}' for v, s in ps)})" if ps else ""
        equations.append((r.choice(["mu", "nu"]), name, head, f(r.randrange(2, 5), ps, False)))
    first = list(params.items())[0]
    values = ", ".join("0" if s == "Nat" else "true" for _, s in first[1])
    return equations, first[0] + (f"({values})" if values else "")


def text(systems, junction, declarations=""):
    """All equations, and one in front that joins the first instances of the systems."""
    lines = [f"  nu First = {junction.join(first for _, first in systems)};"] if len(systems) != 1 else []
    for equations, _ in systems:
        lines += [f"  {sign} {name}{head} = {right};" for sign, name, head, right in equations]
    return declarations + "pbes\n" + "\n".join(lines) + f"\ninit {'First' if len(systems) != 1 else systems[0][1]};\n"


def declarations(r):
    return theory(r)
