"""Random specifications: many small systems behind different first actions of one.

A batch shares a theory of data and a *shell*: how many components there are, and the operators above them. Each member of the batch has components of its own. All begin with an
action `start` that names the member, on which the components agree, so a batch of one member is a part of the batch of all.
"""
import random
from judge.data import PARAMETERS, LETTER, Data, theory

ACTIONS = [("a", []), ("b", []), ("c", []), ("in_", ["D"]), ("out", ["D"]), ("num", ["Nat"]), ("both", ["Nat", "Bool"]), ("int", ["Int"]), ("pos", ["Pos"]), ("real", ["Real"]), ("en", ["E"]),
           ("list", ["List(E)"]), ("tree", ["T"])]
DECLARED = "act a, b, c; in_, out: D; num: Nat; both: Nat # Bool; int: Int; pos: Pos; real: Real; en: E; list: List(E); tree: T; start, go: Nat;\n"
USUAL = ACTIONS[:7]


class Member:
    """The components of one member."""

    def __init__(self, r, number):
        self.r, self.number, self.data = r, number, Data(r)

    def action(self, vs, depth=1):
        name, sorts = self.r.choice(USUAL if self.r.random() < 0.8 else ACTIONS)
        return name + (f"({', '.join(self.data.make(s, vs, depth) for s in sorts)})" if sorts else "")

    def label(self, vs):
        x = self.r.random()
        if x < 0.15:
            return "tau"
        return self.action(vs) if x < 0.85 else f"({self.action(vs)}|{self.action(vs)})"

    def call(self, own, vs):
        """An instance of this process or of another one of the component; sometimes by names, which leaves the other parameters as they are."""
        name, params = own if self.r.random() < 0.7 else self.r.choice(self.processes)
        if name == own[0] and params and self.r.random() < 0.3:
            some = self.r.sample(params, self.r.randrange(0, len(params) + 1))
            return f"{name}({', '.join(f'{v} = {self.data.make(s, vs, 2)}' for v, s in some)})"
        return name + (f"({', '.join(self.data.make(s, vs, 2) for _, s in params)})" if params else "")

    def end(self, own, vs):
        x = self.r.random()
        return "delta" if x < 0.07 else self.action(vs) if x < 0.1 else self.call(own, vs)

    def steps(self, own, vs, depth):
        """A process that begins with an action."""
        x = self.r.random()
        if depth > 0 and x < 0.25:
            name, sort, bound = self.data.summed()
            inner = vs + [(name, sort)]
            cond = self.data.make("Bool", inner, 1) if self.r.random() < 0.5 else None
            cond = " && ".join(c for c in (bound, cond) if c)
            return f"(sum {name}: {sort}. {f'({cond}) -> ' if cond else ''}{self.steps(own, inner, depth - 1)})"
        if depth > 0 and x < 0.5:
            other = f" <> {self.steps(own, vs, depth - 1)}" if self.r.random() < 0.4 else ""
            return f"(({self.data.make('Bool', vs, 2)}) -> {self.steps(own, vs, depth - 1)}{other})"
        if depth > 0 and x < 0.6:
            return f"({self.steps(own, vs, depth - 1)} + {self.steps(own, vs, depth - 1)})"
        then = self.steps(own, vs, depth - 1) if depth > 0 and self.r.random() < 0.25 else self.end(own, vs)
        return f"{self.label(vs)} . {then}"

    def component(self, letter):
        """The text of its processes and the instance that it begins with. Parameters of a sort have the same names everywhere: then they share a place in the linear process."""
        self.processes = []
        for k in range(self.r.choice([1, 1, 2])):
            sorts = [self.r.choice(PARAMETERS) for _ in range(self.r.choice([0, 1, 1, 2, 2, 3]))]
            params = [(f"{LETTER[s]}{letter}{sorts[:i].count(s)}", s) for i, s in enumerate(sorts)]
            self.processes.append((f"{letter}{self.number}_{k}", params))
        text = ""
        for name, params in self.processes:
            head = f"({', '.join(f'{v}: {s}' for v, s in params)})" if params else ""
            text += f"proc {name}{head} = " + "\n    + ".join(self.steps((name, params), params, 2) for _ in range(self.r.randrange(1, 4))) + ";\n"
        name, params = self.processes[0]
        return text, name + (f"({', '.join(self.data.constant(s) for _, s in params)})" if params else "")


class Shell:
    """How many components there are, and what is above them. `comm` joins their first actions to `go`, and nothing else happens before. Without `allow` the linear process of many members
    has a summand for each pair of theirs, so only a shell for one member leaves it out."""

    def __init__(self, r, alone):
        self.components, self.r, self.alone = r.choice([1] * 8 + [2] * 7 + [3]), r, alone
        self.text = self.above("PQR"[: self.components])

    def wrapped(self, system, kinds):
        r = self.r
        for kind in kinds:
            if kind == "hide":
                system = f"hide({{{', '.join(r.sample(['a', 'b', 'c', 'num', 'in_', 'both', 'en'], r.randrange(1, 3)))}}}, {system})"
            elif kind == "rename":
                system = f"rename({{{r.choice(['a -> b', 'b -> c, c -> a', 'in_ -> out', 'a -> c, out -> in_'])}}}, {system})"
            elif kind == "block":
                system = f"block({{{', '.join(r.sample(['a', 'b', 'c', 'out', 'num', 'real'], r.randrange(1, 3)))}}}, {system})"
            elif kind == "allow":
                some = r.sample(["a", "b", "c", "in_", "out", "num", "both", "int", "pos", "real", "en", "list", "tree", "a|b", "a|c", "out|num", "b|b", "in_|in_", "en|a", "num|num"], r.randrange(13, 20))
                system = f"allow({{start, go, {', '.join(some)}}}, {system})"
            elif kind == "comm":
                some = r.sample(["in_|out -> in_", "a|b -> c", "num|num -> num", "en|en -> en", "a|a -> b"], r.randrange(1, 3))
                if any(c.startswith("a|b") for c in some) and any(c.startswith("a|a") for c in some):
                    some = some[:1]
                system = f"comm({{{', '.join(some)}}}, {system})"
        return system

    def above(self, letters):
        r = self.r
        kinds = lambda names, most: r.sample(names, r.randrange(0, most + 1))
        if len(letters) == 1:
            return self.wrapped("P", kinds(["hide", "rename", "block", "allow", "comm"], 2))
        inner = [self.wrapped(letter, kinds(["hide", "rename", "block"], 1)) for letter in letters]
        sync = "|".join(["start"] * len(letters)) + " -> go"
        joined = r.choice(["", "", ", in_|out -> in_", ", a|b -> c", ", num|num -> num, in_|out -> in_", ", en|en -> en, a|b -> c", ", a|a -> c, out|out -> in_"])
        system = self.wrapped(f"block({{start}}, comm({{{sync}{joined}}}, {' || '.join(inner)}))", kinds(["hide", "rename", "block", "allow", "comm"], 2))
        if "allow(" not in system and not (self.alone and len(letters) == 2 and r.random() < 0.5):
            system = self.wrapped(system, ["allow"])
        return system


def components(shell_seed):
    """How many components the members of a batch have."""
    r = random.Random(f"shell {shell_seed}")
    theory(r)
    return Shell(r, False).components


def specification(shell_seed, members, alone=False, made=Member):
    """The batch with these members, each a seed, as the class `made` makes them; `alone` leaves out the first actions, for a single member."""
    r = random.Random(f"shell {shell_seed}")
    text, shell = theory(r) + DECLARED, Shell(r, alone)
    starts = {letter: [] for letter in "PQR"[: shell.components]}
    for number, seed in enumerate(members):
        member = made(random.Random(f"member {seed}"), seed)
        for letter in starts:
            processes, first = member.component(letter)
            text += processes
            starts[letter].append(first if alone else f"start({seed}) . {first}")
    for letter, choices in starts.items():
        text += f"proc {letter} = " + "\n    + ".join(choices) + ";\n"
    return text + f"init {shell.text};\n"
