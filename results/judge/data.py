"""Random data expressions of mCRL2 and a random theory that declares what they use.

Every expression has a value, and only a few: numbers are kept small by `mod`, collections by guards on their size, so that parameters of processes have few values.
"""
import re

NUMBERS = ["Pos", "Nat", "Int", "Real"]
# Sorts of parameters, small ones more often; `F` is `D -> Nat`.
PARAMETERS = ["Bool", "Bool", "Nat", "Nat", "Nat", "Int", "Pos", "Real", "E", "E", "D", "D", "T", "List(Nat)", "List(E)", "FSet(D)", "FSet(E)", "Set(E)", "FBag(E)", "F"]
SUMMED = [("Bool", None), ("D", None), ("E", None), ("E", None), ("Nat", "{} < 3"), ("Pos", "{} < 3"), ("Int", "-2 < {} && {} < 2"), ("FSet(E)", "#{} < 2"), ("E -> Bool", "{}(e1)")]
CONSTANTS = {
    "Bool": ["true", "false"], "Pos": ["1", "2", "3"], "Nat": ["0", "1", "2"], "Int": ["-2", "-1", "0", "1", "2"], "Real": ["0", "1/2", "-1/2", "1", "3/2", "1/3"],
    "E": ["e1", "e2", "e3"], "D": ["d1", "d2", "d3(true)", "d3(false)"], "T": ["leaf(0)", "leaf(1)", "node(leaf(1), leaf(0))"], "List(Nat)": ["[]", "[1]", "[0, 2]"],
    "List(E)": ["[]", "[e1]", "[e2, e1]"], "FSet(D)": ["{}", "{d1}", "{d2, d1}"], "Set(E)": ["{}", "{e1}", "{e2, e3}"], "FBag(E)": ["none", "{e1: 1}", "{e2: 2}"],
    "F": ["first", "second"], "FSet(E)": ["{}", "{e2}", "{e1, e3}"], "E -> Bool": ["third"],
}
LETTER = {"Bool": "b", "Pos": "p", "Nat": "n", "Int": "i", "Real": "r", "E": "e", "D": "d", "T": "t", "List(Nat)": "l", "List(E)": "k", "FSet(D)": "s", "Set(E)": "w", "FBag(E)": "m",
          "F": "f", "E -> Bool": "g", "FSet(E)": "z"}


class Data:
    """Makes expressions. `r` chooses."""

    def __init__(self, r):
        self.r, self.bound = r, 0

    def fresh(self, sort):
        if self.bound and sort in ("Bool", "D", "E") and self.r.random() < 0.1:
            # A name that may hide another one of the same sort.
            return f"{LETTER[sort]}v{self.r.randrange(self.bound) + 1}"
        self.bound += 1
        return f"{LETTER[sort]}v{self.bound}"

    def constant(self, sort):
        return self.r.choice(CONSTANTS[sort])

    def summed(self):
        """A variable of a sum with the condition that bounds it, if its sort is not finite."""
        sort, bound = self.r.choice(SUMMED)
        name = self.fresh(sort)
        return name, sort, bound and bound.replace("{}", name)

    def make(self, sort, vs, depth):
        own = [v for v, s in vs if s == sort]
        if own and self.r.random() < 0.4:
            return self.r.choice(own)
        if depth <= 0:
            return self.r.choice(own) if own and self.r.random() < 0.5 else self.constant(sort)
        e = lambda s: self.make(s, vs, depth - 1)
        x = self.r.random()
        if x < 0.1:
            return f"if({e('Bool')}, {e(sort)}, {e(sort)})"
        if x < 0.14:
            s = self.r.choice(["Nat", "D", "Bool"])
            v = self.fresh(s)
            return f"({self.make(sort, vs + [(v, s)], depth - 1)} whr {v} = {e(s)} end)"
        if x < 0.17:
            s = self.r.choice(["Nat", "D", "E"])
            v = self.fresh(s)
            return f"(lambda {v}: {s}. {self.make(sort, vs + [(v, s)], depth - 1)})({e(s)})"
        return self.r.choice(self.ways(sort, vs, depth, e))()

    def ways(self, sort, vs, depth, e):
        return {
            "Bool": lambda: self.bools(vs, depth, e),
            "Pos": lambda: [lambda: f"Nat2Pos({e('Nat')} mod 3 + 1)", lambda: f"max({e('Pos')}, {e('Pos')})", lambda: f"(({e('Pos')} * {e('Pos')}) mod 3 + 1)", lambda: f"min({e('Pos')}, 3)"],
            "Nat": lambda: self.naturals(e),
            "Int": lambda: [lambda: f"(({e('Int')} - {e('Nat')}) mod 3 - 1)", lambda: f"Nat2Int(abs({e('Int')}) mod 3)", lambda: f"max({e('Int')}, {e('Int')})",
                            lambda: f"floor({e('Real')})", lambda: f"(ceil({e('Real')}) mod 3 - 1)", lambda: f"(round({e('Real')}) mod 3)", lambda: f"(-{e('Nat')} div {e('Pos')})", lambda: f"(({e('Int')} * {e('Int')}) mod 4 - 2)", lambda: f"(-{e('Int')})", lambda: f"(({e('Int')} - 1) div 2)"],
            "Real": lambda: [lambda: f"((floor({e('Real')} + {e('Real')}) mod 3) / 2)", lambda: f"max({e('Real')}, {e('Real')})", lambda: f"min({e('Real')}, Int2Real({e('Int')}))",
                             lambda: f"(Pos2Real({e('Pos')}) / 2)", lambda: f"(-{e('Real')})", lambda: f"(({e('Nat')} mod 2) / (({e('Nat')} mod 2) + 2))"],
            "E": lambda: [lambda: f"turn({e('E')})", lambda: f"from({e('D')})", lambda: f"if({e('List(E)')} == [], {e('E')}, head({e('List(E)')} <| {e('E')}))"],
            "D": lambda: [lambda: f"next({e('D')})", lambda: f"d3({e('Bool')})", lambda: f"to({e('E')}, {e('Nat')})"],
            "T": lambda: [lambda: f"leaf({e('Nat')} mod 2)", lambda: f"mirror({e('T')})", lambda: f"node(leaf({e('Nat')} mod 2), leaf(1))", lambda: f"lower({e('T')})"],
            "List(Nat)": lambda: [lambda: f"(({e('Nat')} mod 3) |> [])", lambda: f"([0] <| ({e('Nat')} mod 3))", lambda: f"rev({e('List(Nat)')})", lambda: f"cut({e('List(Nat)')} ++ {e('List(Nat)')})",
                                  lambda: f"cut(({e('Nat')} mod 2) |> {e('List(Nat)')})"],
            "List(E)": lambda: [lambda: f"[{e('E')}]", lambda: f"if(#({e('List(E)')}) < 2, [{e('E')}, {e('E')}], [])", lambda: f"({e('E')} |> [e1])", lambda: f"pushed({e('List(E)')}, {e('E')})"],
            "FSet(D)": lambda: [lambda: f"({e('FSet(D)')} + {{{e('D')}}})", lambda: f"({e('FSet(D)')} - {{{e('D')}}})", lambda: f"({e('FSet(D)')} * {e('FSet(D)')})", lambda: f"{{{e('D')}, {e('D')}}}",
                                lambda: f"({e('FSet(D)')} - {e('FSet(D)')})"],
            "FSet(E)": lambda: [lambda: f"({e('FSet(E)')} + {{{e('E')}}})", lambda: f"({e('FSet(E)')} - {{{e('E')}}})"],
            "Set(E)": lambda: [lambda: f"({e('Set(E)')} + {{{e('E')}}})", lambda: f"({e('Set(E)')} - {{{e('E')}}})", lambda: f"({e('Set(E)')} * {e('Set(E)')})"],
            "FBag(E)": lambda: [lambda: f"({e('FBag(E)')} - {{{e('E')}: 1}})", lambda: f"({e('FBag(E)')} * {e('FBag(E)')})", lambda: f"more({e('FBag(E)')}, {e('E')})",
                                lambda: f"{{{e('E')}: {e('Nat')} mod 3}}"],
            "F": lambda: [lambda: f"{e('F')}[{e('D')} -> {e('Nat')} mod 2]", lambda: f"first[{e('D')} -> {e('Nat')} mod 3]"],
            "E -> Bool": lambda: [lambda: f"third[{e('E')} -> {e('Bool')}]", lambda: self.function(vs, depth)],
        }[sort]()

    def function(self, vs, depth):
        v = self.fresh("E")
        return f"(lambda {v}: E. {self.make('Bool', vs + [(v, 'E')], depth - 1)})"

    def bools(self, vs, depth, e):
        def compare():
            s = self.r.choice(["Nat", "Int", "Pos", "Real", "E", "D", "T", "List(Nat)", "List(E)"])
            return f"({e(s)} {self.r.choice(['<', '<=', '>', '>=', '==', '!='])} {e(s)})"

        def mixed():
            s, t = self.r.choice([("Pos", "Nat"), ("Nat", "Int"), ("Int", "Real"), ("Nat", "Real"), ("Pos", "Int")])
            s, t = (s, t) if self.r.random() < 0.5 else (t, s)
            return f"({e(s)} {self.r.choice(['<', '<=', '>', '>=', '==', '!='])} {e(t)})"

        def within():
            s = self.r.choice(["FSet(D)", "FSet(E)", "Set(E)", "FBag(E)"])
            return f"({e(s)} {self.r.choice(['<=', '==', '!=', '<'])} {e(s)})"

        def quantified():
            q, (s, bound) = self.r.choice(["exists", "forall"]), self.r.choice(SUMMED)
            v = self.fresh(s)
            body = self.make("Bool", vs + [(v, s)], depth - 1)
            if bound:
                bound = bound.replace("{}", v)
                body = f"({bound}) && {body}" if q == "exists" else f"({bound}) => {body}"
            return f"({q} {v}: {s}. {body})"

        def comprehension():
            s = self.r.choice(["D", "E"])
            v = self.fresh(s)
            members = f"{{{v}: {s} | {self.make('Bool', vs + [(v, s)], depth - 1)}}}"
            return f"({e(s)} in {members})" if s == "D" or self.r.random() < 0.5 else f"({members} {self.r.choice(['<=', '=='])} {e('Set(E)')})"

        return [lambda: f"!({e('Bool')})", lambda: f"({e('Bool')} && {e('Bool')})", lambda: f"({e('Bool')} || {e('Bool')})", lambda: f"({e('Bool')} => {e('Bool')})",
                compare, compare, compare, mixed, within, quantified, quantified, comprehension,
                lambda: f"({e('D')} in {e('FSet(D)')})", lambda: f"({e('E')} in {e('Set(E)')})", lambda: f"({e('Nat')} in {e('List(Nat)')})", lambda: f"({e('E')} in {e('FSet(E)')})", lambda: f"p({e('D')}, {e('Nat')})",
                lambda: f"same({e('D')}, {e('D')})", lambda: f"even({e('List(Nat)')})", lambda: f"is_d3({e('D')})", lambda: f"is_node({e('T')})", lambda: f"flagged({e('D')})", lambda: f"ap({e('E -> Bool')}, {e('E')})"]

    def naturals(self, e):
        return [lambda: f"(({e('Nat')} + {e('Nat')}) mod 3)", lambda: f"(#({e('List(Nat)')}) mod 4)", lambda: f"h({e('D')})", lambda: f"max({e('Nat')}, {e('Nat')})",
                lambda: f"((({e('Nat')} * {e('Nat')}) div 2) mod 5)", lambda: f"(abs({e('Int')}) mod 3)", lambda: f"Pos2Nat({e('Pos')})", lambda: f"(count({e('E')}, {e('FBag(E)')}) mod 3)",
                lambda: f"(ap({e('F')}, {e('D')}) mod 3)", lambda: f"(size({e('T')}) mod 4)", lambda: f"(total({e('List(Nat)')}) mod 3)", lambda: f"(({e('Int')}) mod 3)",
                lambda: f"min({e('Nat')}, {e('Nat')})", lambda: f"({e('Nat')} mod {e('Pos')})", lambda: f"(#({e('FSet(D)')}) mod 3)", lambda: f"(exp({e('Nat')}, 2) mod 5)",
                lambda: (lambda i: f"if({i} < 0, 0, Int2Nat({i}))")(e("Int")), lambda: f"value({e('T')})", lambda: f"(succ({e('Nat')}) mod 3)", lambda: f"(sqrt({e('Nat')} + {e('Nat')}) mod 3)",
                lambda: f"place({e('List(Nat)')}, {e('Nat')})", lambda: f"(pred({e('Pos')}) mod 4)",
                lambda: f"(fac({e('Nat')} mod 4) mod 5)"]


def theory(r):
    """Sorts and operations, some with random equations."""
    ds, es, n = ["d1", "d2", "d3(true)", "d3(false)"], ["e1", "e2", "e3"], lambda: r.randrange(3)
    d, e = lambda: r.choice(ds), lambda: r.choice(es)
    x, kept = Data(r), e()
    # No recursion of `p` and `same`: they must have a value.
    closed = lambda vs, depth: next(t for t in iter(lambda: x.make("Bool", vs, depth), None) if not re.search(r"\b(p|same)\(", t))
    guard, other = (closed([("d", "D"), ("n", "Nat")], 2) for _ in range(2))
    unlike = closed([("d", "D"), ("d'", "D")], 1) if r.random() < 0.5 else "false"
    return f"""sort D = struct d1 | d2 | d3(flag: Bool)?is_d3;
    E = struct e1 | e2 | e3;
    T = struct leaf(val_: Nat) | node(left: T, right: T)?is_node;
    F = D -> Nat;
map next: D -> D; h: D -> Nat; p: D # Nat -> Bool; flagged: D -> Bool; turn: E -> E; from: D -> E; to: E # Nat -> D;
    size, value: T -> Nat; mirror, lower: T -> T; rev, cut: List(Nat) -> List(Nat); total: List(Nat) -> Nat; pushed: List(E) # E -> List(E); more: FBag(E) # E -> FBag(E);
    first, second: F; none: FBag(E); third: E -> Bool; same: D # D -> Bool; even, odd: List(Nat) -> Bool; fac: Nat -> Nat; ap: F # D -> Nat; ap: (E -> Bool) # E -> Bool; place: List(Nat) # Nat -> Nat;
var b: Bool; d, d': D; e: E; n, m: Nat; l: List(Nat); k: List(E); t, u: T; g: FBag(E); f: F; y: E -> Bool;
eqn next(d1) = {d()}; next(d2) = {d()}; next(d3(b)) = if(b, {d()}, {d()});
    h(d1) = {n()}; h(d2) = {n()}; h(d3(b)) = if(b, {n()}, {n()});
    {guard} -> p(d, n) = {other};
    !({guard}) -> p(d, n) = h(d) == n;
    is_d3(d) -> flagged(d) = flag(d); !is_d3(d) -> flagged(d) = {r.choice(['true', 'false'])};
    turn(e1) = {e()}; turn(e2) = {e()}; turn(e3) = {e()};
    from(d) = if(d == {d()}, {e()}, {e()});
    n == 0 -> to(e, n) = {d()}; n > 0 && e == {kept} -> to(e, n) = {d()}; n > 0 && e != {kept} -> to(e, n) = {d()};
    size(leaf(n)) = 1; size(node(t, u)) = size(t) + size(u);
    value(leaf(n)) = n; value(node(t, u)) = {r.choice(['max(value(t), value(u))', 'value(u)', '(value(t) + value(u)) mod 3'])};
    mirror(leaf(n)) = leaf(n); mirror(node(t, u)) = node(mirror(u), mirror(t));
    lower(leaf(n)) = leaf({r.choice(['n', '0', '1'])}); lower(node(t, u)) = {r.choice(['t', 'u', 'lower(t)'])};
    same(d, d) = true; d != d' -> same(d, d') = {unlike}; even([]) = true; even(n |> l) = {r.choice(['odd(l)', 'n != 1 && odd(l)'])}; odd([]) = false; odd(n |> l) = even(l);
    ap(f, d) = f(d); ap(y, e) = y(e); n < #l -> place(l, n) = l . n mod 3; n >= #l -> place(l, n) = 2; fac(0) = 1; n > 0 -> fac(n) = n * fac(Int2Nat(n - 1));
    rev([]) = []; rev(n |> l) = rev(l) <| n;
    #l <= 2 -> cut(l) = l; #l > 2 -> cut(l) = {r.choice(['cut(tail(l))', 'cut(rtail(l))', '[head(l), rhead(l)]'])};
    total([]) = 0; total(n |> l) = n + total(l);
    #k < 2 -> pushed(k, e) = e |> k; #k >= 2 -> pushed(k, e) = [e, head(k)];
    count(e, g) < 2 -> more(g, e) = g + {{e: 1}}; count(e, g) >= 2 -> more(g, e) = {r.choice(['none', 'g', 'g - {e: 2}'])};
    first(d) = {r.choice(['h(d)', str(n()), 'if(is_d3(d), 1, 0)'])}; second = lambda x: D. {r.choice(['h(next(x))', str(n()), 'if(flagged(x), 2, 0)'])};
    none = {{:}}; third(e) = {r.choice(['e == e2', 'e != e1', 'true', 'e < e3'])};
"""
