"""Members of random specifications in which chance decides, or whose actions have times."""
from judge.specifications import Member


class Chancy(Member):
    """What follows an action is often a choice by chance, whose weights may depend on data and on an earlier choice."""

    def end(self, own, vs):
        if self.r.random() < 0.5:
            return super().end(own, vs)
        sort = self.r.choice(["Bool", "Bool", "E", "Nat", "Pos"])
        v = self.data.fresh(sort)
        return f"(dist {v}: {sort}[{self.weight(sort, v, vs)}]. {self.end(own, vs + [(v, sort)])})"

    def weight(self, sort, v, vs):
        """The weights of all values add up to 1, whatever the other variables are."""
        other = lambda s: self.data.make(s, [x for x in vs if x[0] != v], 1)
        half = lambda a, b: f"if({other('Bool')}, {a}, {b})"
        return self.r.choice({
            "Bool": ["1/2", f"if({v}, 1/3, 2/3)", f"if({v} == {other('Bool')}, 1/4, 3/4)", f"if({v} == {other('Bool')}, 1, 0)", half(f"if({v}, 1/5, 4/5)", "1/2")],
            "E": ["1/3", f"if({v} == e1, 1/2, 1/4)", f"if({v} == {other('E')}, 1/2, 1/4)", half("1/3", f"if({v} == e2, 0, 1/2)")],
            "Nat": [f"if({v} < 3, 1/3, 0)", f"if({v} < 2, 1/2, 0)", half(f"if({v} == 0, 1, 0)", f"if({v} < 2, 1/2, 0)")],
            "Pos": [f"if({v} <= 2, 1/2, 0)", f"if({v} < 4, if({v} == 2, 1/2, 1/4), 0)"],
        }[sort])


class Timed(Member):
    """Many actions have times, of a few values. The state holds the time of the last one, so the systems are finite."""

    def label(self, vs):
        label = super().label(vs)
        if self.r.random() < 0.45:
            return label
        time = self.r.choice(["1", "2", "3", "5/2", f"max(1/2, {self.data.make('Real', vs, 1)})", f"(Nat2Real({self.data.make('Nat', vs, 1)}) + 1)"])
        return f"{label}@{time if time[-1] == ')' or time.isdigit() else f'({time})'}"
