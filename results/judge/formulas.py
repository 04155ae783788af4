"""Random closed formulas on the actions and sorts of `judge.specifications`."""
from judge.data import CONSTANTS, Data
from judge.specifications import ACTIONS, USUAL

PARAMETERS = ["D", "Bool", "Nat", "E", "Int", "FSet(D)", "List(E)", "Pos"]
# Sorts that state formulas quantify over, with the condition that bounds them if they are infinite.
QUANTIFIED = [("D", None), ("Bool", None), ("E", None), ("Nat", "{} < 3"), ("Pos", "{} <= 2"), ("Int", "-2 < {} && {} < 2")]


class Formula:
    """Makes formulas. The *flat* ones nest two modalities at most within one fixed point."""

    def __init__(self, r, flat=False):
        self.r, self.data, self.fixed, self.flat = r, Data(r), 0, flat

    def make(self):
        return self.state(2 if self.flat else 4, [], [], False, plain=False)

    def test(self):
        """A formula that says something of data only."""
        return f"val({self.data.make('Bool', [], 6)})"

    def action(self, vs):
        name, sorts = self.r.choice(USUAL if self.r.random() < 0.8 else ACTIONS)
        return name + (f"({', '.join(self.data.make(s, vs, 1) for s in sorts)})" if sorts else "")

    def quantified_action(self, vs):
        """An action some of whose arguments are any values; a condition may bound them."""
        name, sorts = self.r.choice([a for a in ACTIONS if a[1]])
        names = [self.data.fresh(s) if self.r.random() < 0.8 else None for s in sorts]
        names = [v if v not in names[:i] else None for i, v in enumerate(names)]
        inner = [(v, s) for v, s in zip(names, sorts) if v]
        body = f"{name}({', '.join(v or self.data.make(s, vs, 1) for v, s in zip(names, sorts))})"
        if not inner:
            return body
        if self.r.random() < 0.4:
            body = f"val({self.data.make('Bool', vs + inner, 1)}) && {body}"
        return f"(exists {', '.join(f'{v}: {s}' for v, s in inner)}. {body})"

    def actions(self, vs, depth):
        """A set of labels."""
        a = lambda: self.actions(vs, depth - 1)
        if depth == 0 or self.r.random() < 0.6:
            return self.r.choice([lambda: "true", lambda: "true", lambda: "tau", lambda: self.action(vs), lambda: self.action(vs), lambda: self.action([]), lambda: self.quantified_action(vs),
                                  lambda: self.quantified_action(vs), lambda: f"{self.action(vs)}|{self.action(vs)}", lambda: "a|b"])()
        return self.r.choice([lambda: f"!({a()})", lambda: f"!({a()})", lambda: f"({a()} && {a()})", lambda: f"({a()} || {a()})", lambda: f"({a()} => {a()})",
                              lambda: f"(val({self.data.make('Bool', vs, 1)}) && {a()})", self.forall_action(vs, depth)])()

    def forall_action(self, vs, depth):
        def make():
            s = self.r.choice(["D", "E", "Bool"])
            v = self.data.fresh(s)
            return f"(forall {v}: {s}. {self.actions(vs + [(v, s)], depth - 1)})"
        return make

    def regular(self, vs, depth):
        if depth == 0 or self.r.random() < 0.5:
            return self.actions(vs, 2)
        e = lambda: self.regular(vs, depth - 1)
        ways = [lambda: f"({e()})*", lambda: f"({e()})*", lambda: f"({e()})+", lambda: f"({e()}) + ({e()})", lambda: f"({e()}) . ({e()})"]
        return self.r.choice(ways[:-1] if self.flat else ways)()

    def state(self, depth, names, vs, negated, plain=True):
        """`names` are the fixed points in scope, with the sorts of their parameters and whether they stand under an odd number of negations. Unless `plain`, it begins with a modality or a
        junction, so that a fixed point is more than its first value."""
        r = self.r
        usable = [n for n in names if n[2] == negated]
        if plain and usable and r.random() < (0.25 if depth > 0 else 0.7):
            name, sorts, _ = r.choice(usable[-2:] if r.random() < 0.7 else usable)
            return name + (f"({', '.join(self.data.make(s, vs, 1) for s in sorts)})" if sorts else "")
        if depth == 0:
            return r.choice(["true", "false", f"val({self.data.make('Bool', vs, 1)})"])
        s = lambda n=negated: self.state(depth - 1, names, vs, n)
        modal = lambda what: r.choice([lambda: f"[{what()}]({s()})", lambda: f"<{what()}>({s()})"])()
        pair = lambda what: f"({s()} {what} {s()})"
        begins = [lambda: modal(lambda: self.regular(vs, 2)), lambda: modal(lambda: self.actions(vs, 2)), lambda: modal(lambda: self.actions(vs, 1)), lambda: modal(lambda: "true"),
                  lambda: pair("&&"), lambda: pair("||"), lambda: f"([true]({s()}) && {s()})", lambda: f"(<true>({s()}) || {s()})"]
        return r.choice(begins if not plain else begins + [lambda: f"({s(not negated)} => {s()})", lambda: f"!({s(not negated)})",
                         lambda: self.fixed_point(depth, names, vs, negated), lambda: self.fixed_point(depth, names, vs, negated), lambda: self.fixed_point(depth, names, vs, negated),
                         lambda: self.quantified(depth, names, vs, negated)])()

    def fixed_point(self, depth, names, vs, negated):
        r = self.r
        self.fixed += 1
        name = f"X{self.fixed}"
        params = dict((self.data.fresh(s), s) for s in (r.choice(PARAMETERS) for _ in range(r.choice([0, 0, 0, 1, 1, 2]))))
        params = list(params.items())
        head = f"({', '.join(f'{v}: {s} = {self.data.make(s, vs, 0)}' for v, s in params)})" if params else ""
        inner = self.state(depth - 1, names + [(name, [s for _, s in params], negated)], vs + params, negated, plain=depth < 2)
        return f"({r.choice(['mu', 'nu'])} {name}{head}. {inner})"

    def quantified(self, depth, names, vs, negated):
        q, (sort, bound) = self.r.choice(["forall", "exists"]), self.r.choice(QUANTIFIED)
        v = self.data.fresh(sort)
        body = self.state(depth - 1, names, vs + [(v, sort)], negated)
        if bound:
            body = f"val({bound.replace('{}', v)}) {'=>' if q == 'forall' else '&&'} ({body})"
        return f"({q} {v}: {sort}. {body})"
