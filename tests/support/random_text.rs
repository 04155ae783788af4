//! Random specifications and formulas as text: typed, with data of several sorts, finite most of
//! the time.
//!
//! A specification has two texts that mean the same. In the one for the tool, bounded sums are over
//! `Nat` (`sum w: Nat. (w < 3) -> …`); in the one for the operational rules, which range over
//! finite sorts only, they are over an enumeration mapped to numbers.

use super::tape::Tape;

/// Sorts of the vocabulary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sort {
    Enum,
    Bool,
    Nat,
    Pair,
    Record,
    List,
    Set,
    Update,
}

impl Sort {
    /// Returns its name in mCRL2.
    pub fn text(self) -> &'static str {
        match self {
            Sort::Enum => "D",
            Sort::Bool => "Bool",
            Sort::Nat => "Nat",
            Sort::Pair => "P",
            Sort::Record => "R",
            Sort::List => "List(Bool)",
            Sort::Set => "FSet(D)",
            Sort::Update => "D -> Bool",
        }
    }
}

/// Data, actions: what all specifications share. The actions: `a`, `b`, `g` plain; `c`, `e`, `f`,
/// `h: D`; `m`, `n`, `k: Nat`; `x: Bool`; `l: List(Bool)`; `p: P`; `v: Nat # D`.
const HEAD: &str = "sort D = struct d1?is_d1 | d2?is_d2 | d3;
     P = struct pair(fst: Bool, snd: D)?is_pair | none;
     R = struct rec(one: D, two: Both); Both = struct both(Bool, bit: Bool);
     Small = struct n0 | n1 | n2 | n3;
map next: D -> D;
    turn: R -> R;
    first: Both -> Bool;
    with: D # R -> R;
    up, down: Nat -> Nat;
    num: Small -> Nat;
    trues: List(Bool) -> Nat;
var i: Nat; q: List(Bool); x, y: D; s, t: Bool;
eqn turn(rec(x, both(s, t))) = rec(next(x), both(!t, s));
    first(both(s, t)) = s;
    with(d1, rec(x, both(s, t))) = rec(x, both(!s, t));
    with(d2, rec(x, both(s, t))) = rec(x, both(s, !t));
    with(d3, rec(x, both(s, t))) = rec(next(x), both(s, t));
    next(d1) = d2; next(d2) = d3; next(d3) = d1;
    up(i) = (i + 1) mod 3;
    i == 0 -> down(i) = 2;
    i > 0 -> down(i) = Int2Nat(i - 1);
    num(n0) = 0; num(n1) = 1; num(n2) = 2; num(n3) = 3;
    trues([]) = 0;
    trues(true |> q) = 1 + trues(q);
    trues(false |> q) = trues(q);
act a, b, g; c, e, f, h: D; m, n, k: Nat; x: Bool; l: List(Bool); p: P; v: Nat # D;
";

/// Actions with arguments.
const ACTIONS: [(&str, &[Sort]); 13] = [
    ("a", &[]),
    ("c", &[Sort::Enum]),
    ("m", &[Sort::Nat]),
    ("b", &[]),
    ("e", &[Sort::Enum]),
    ("n", &[Sort::Nat]),
    ("x", &[Sort::Bool]),
    ("l", &[Sort::List]),
    ("p", &[Sort::Pair]),
    ("v", &[Sort::Nat, Sort::Enum]),
    ("g", &[]),
    ("f", &[Sort::Enum]),
    ("k", &[Sort::Nat]),
];

type Vars = Vec<(String, Sort)>;

/// Returns an expression of a sort.
pub fn expression(t: &mut Tape, sort: Sort, vars: &Vars, depth: usize) -> String {
    let fitting: Vec<&String> = vars.iter().filter(|v| v.1 == sort).map(|v| &v.0).collect();
    if !fitting.is_empty() && (depth == 0 || t.chance(1, 2)) {
        return t.choose(&fitting).to_string();
    }
    if depth == 0 {
        return match sort {
            Sort::Enum => t.choose(&["d1", "d2", "d3"]).to_string(),
            Sort::Bool => t.choose(&["true", "false"]).to_string(),
            Sort::Nat => t.choose(&["0", "1", "2"]).to_string(),
            Sort::Pair => t.choose(&["none", "pair(true, d2)", "pair(false, d1)"]).to_string(),
            Sort::Record => {
                t.choose(&["rec(d2, both(true, false))", "rec(d1, both(false, false))"]).to_string()
            }
            Sort::List => t.choose(&["[]", "[true]", "[false, true]"]).to_string(),
            Sort::Set => t.choose(&["{}", "{d1}", "{d1, d3}"]).to_string(),
            Sort::Update => t
                .choose(&["(lambda d0: D. false)", "is_d1", "(lambda d0: D. d0 != d2)"])
                .to_string(),
        };
    }
    let d = depth - 1;
    match sort {
        Sort::Enum => match t.below(6) {
            0 => expression(t, Sort::Enum, vars, 0),
            1 => format!("next({})", expression(t, Sort::Enum, vars, d)),
            2 => {
                let (c, y, z) = (
                    expression(t, Sort::Bool, vars, d),
                    expression(t, sort, vars, d),
                    expression(t, sort, vars, d),
                );
                format!("if({c}, {y}, {z})")
            }
            3 => {
                let q = expression(t, Sort::Pair, vars, 0);
                format!("if(is_pair({q}), snd({q}), {})", expression(t, sort, vars, d))
            }
            4 => format!("one({})", expression(t, Sort::Record, vars, d)),
            _ => format!("(next(z) whr z = {} end)", expression(t, Sort::Enum, vars, d)),
        },
        Sort::Bool => match t.below(14) {
            0 => expression(t, sort, vars, 0),
            1 => format!("!{}", expression(t, sort, vars, d)),
            2 => format!("({} && {})", expression(t, sort, vars, d), expression(t, sort, vars, d)),
            3 => format!("({} || {})", expression(t, sort, vars, d), expression(t, sort, vars, d)),
            4 => format!("({} => {})", expression(t, sort, vars, d), expression(t, sort, vars, d)),
            5 => format!("is_{}({})", t.choose(&["d1", "d2"]), expression(t, Sort::Enum, vars, d)),
            6 => {
                let s = *t.choose(&[
                    Sort::Enum,
                    Sort::Nat,
                    Sort::Bool,
                    Sort::Pair,
                    Sort::List,
                    Sort::Set,
                    Sort::Record,
                ]);
                let op = t.choose(&["==", "!="]);
                let (y, z) = (expression(t, s, vars, d), expression(t, s, vars, 0));
                // Two literal sets or lists are typed from outside, which an equation does not do.
                if matches!(s, Sort::Set | Sort::List) && !vars.iter().any(|v| v.1 == s) {
                    "true".into()
                } else {
                    format!("({y} {op} {z})")
                }
            }
            7 | 8 => {
                let op = *t.choose(&["<", "<=", ">", ">="]);
                let (y, z) = (expression(t, Sort::Nat, vars, d), expression(t, Sort::Nat, vars, 0));
                if t.chance(1, 4) {
                    format!("({y} - 1 {op} {z})")
                } else {
                    format!("({y} {op} {z})")
                }
            }
            9 => match vars.iter().find(|v| v.1 == Sort::Set) {
                Some((set, _)) => format!("({} in {set})", expression(t, Sort::Enum, vars, d)),
                None => format!("fst(pair({}, d1))", expression(t, sort, vars, d)),
            },
            10 => match vars.iter().find(|v| v.1 == Sort::Update) {
                Some((function, _)) => {
                    format!("{function}({})", expression(t, Sort::Enum, vars, d))
                }
                None => format!("is_pair({})", expression(t, Sort::Pair, vars, d)),
            },
            11 => {
                let binder = *t.choose(&["exists", "forall"]);
                let mut inner = vars.clone();
                inner.push((format!("y{depth}"), Sort::Enum));
                format!("({binder} y{depth}: D. {})", expression(t, sort, &inner, d))
            }
            12 => format!(
                "{}(two({}))",
                t.choose(&["first", "bit"]),
                expression(t, Sort::Record, vars, d)
            ),
            _ => match vars.iter().find(|v| v.1 == Sort::List) {
                Some((list, _)) => format!("(#{list} > 0 && head({list}))"),
                None => expression(t, sort, vars, d),
            },
        },
        Sort::Nat => match t.below(5) {
            0 => expression(t, sort, vars, 0),
            1 => format!("up({})", expression(t, sort, vars, d)),
            2 => format!("down({})", expression(t, sort, vars, d)),
            3 => match vars.iter().find(|v| v.1 == Sort::List) {
                Some((list, _)) => format!("trues({list})"),
                None => format!("(({} * 2) mod 3)", expression(t, sort, vars, d)),
            },
            _ => {
                let (c, y, z) = (
                    expression(t, Sort::Bool, vars, d),
                    expression(t, sort, vars, d),
                    expression(t, sort, vars, d),
                );
                format!("if({c}, {y}, {z})")
            }
        },
        Sort::Pair => match t.below(3) {
            0 => expression(t, sort, vars, 0),
            _ => format!(
                "pair({}, {})",
                expression(t, Sort::Bool, vars, d),
                expression(t, Sort::Enum, vars, d)
            ),
        },
        Sort::Record => match t.below(5) {
            0 => expression(t, sort, vars, 0),
            1 => format!("turn({})", expression(t, sort, vars, d)),
            2 => {
                let (c, y, z) = (
                    expression(t, Sort::Bool, vars, d),
                    expression(t, sort, vars, d),
                    expression(t, sort, vars, 0),
                );
                format!("if({c}, {y}, {z})")
            }
            3 => format!(
                "with({}, {})",
                expression(t, Sort::Enum, vars, d),
                expression(t, sort, vars, d)
            ),
            _ => {
                let (x, y, z) = (
                    expression(t, Sort::Enum, vars, d),
                    expression(t, Sort::Bool, vars, 0),
                    expression(t, Sort::Bool, vars, 0),
                );
                format!("rec({x}, both({y}, {z}))")
            }
        },
        Sort::List => match (vars.iter().find(|v| v.1 == Sort::List), t.below(4)) {
            (Some((q, _)), 1) => {
                format!("if(#{q} < 2, {} |> {q}, {q})", expression(t, Sort::Bool, vars, d))
            }
            (Some((q, _)), 2) => {
                format!("if(#{q} < 2, {q} <| {}, [])", expression(t, Sort::Bool, vars, d))
            }
            (Some((q, _)), 3) => format!("if(#{q} > 0, tail({q}), [])"),
            (None, 1..) => format!("[{}]", expression(t, Sort::Bool, vars, d)),
            _ => expression(t, sort, vars, 0),
        },
        Sort::Set => match (vars.iter().find(|v| v.1 == Sort::Set), t.below(4)) {
            (Some((s, _)), 1) => format!("({s} + {{{}}})", expression(t, Sort::Enum, vars, d)),
            (Some((s, _)), 2) => format!("({s} - {{{}}})", expression(t, Sort::Enum, vars, d)),
            (Some((s, _)), 3) => format!("({s} * {{d1, {}}})", expression(t, Sort::Enum, vars, d)),
            (None, 1..) => format!("{{{}}}", expression(t, Sort::Enum, vars, d)),
            _ => expression(t, sort, vars, 0),
        },
        Sort::Update => match vars.iter().find(|v| v.1 == Sort::Update) {
            Some((f, _)) => format!(
                "{f}[{} -> {}]",
                expression(t, Sort::Enum, vars, d),
                expression(t, Sort::Bool, vars, d)
            ),
            None => expression(t, sort, vars, 0),
        },
    }
}

/// One action with arguments, or tau.
fn action(t: &mut Tape, vars: &Vars, depth: usize) -> String {
    let (name, sorts) = *t.choose(&ACTIONS[..10]);
    if sorts.is_empty() {
        return name.into();
    }
    let args: Vec<String> = sorts.iter().map(|s| expression(t, *s, vars, depth)).collect();
    format!("{name}({})", args.join(", "))
}

struct Writer<'t> {
    t: &'t mut Tape,
    /// Parameters of each equation.
    params: Vec<Vec<Sort>>,
    /// True if calls of any equation may precede other processes: sometimes infinite.
    stack: bool,
    fresh: usize,
}

impl Writer<'_> {
    fn multi(&mut self, vars: &Vars) -> String {
        match self.t.below(10) {
            8 => "tau".into(),
            9 => format!("{}|{}", action(self.t, vars, 0), action(self.t, vars, 1)),
            _ => action(self.t, vars, 1),
        }
    }
    /// Returns a process that begins with an action.
    fn process(&mut self, depth: usize, vars: &Vars, level: usize) -> String {
        match if depth == 0 { 0 } else { self.t.below(9) } {
            0 | 1 => format!("{} . {}", self.multi(vars), self.rest(depth, vars, level)),
            2 | 3 => format!(
                "({} + {})",
                self.process(depth - 1, vars, level),
                self.process(depth - 1, vars, level)
            ),
            4 => {
                let c = expression(self.t, Sort::Bool, vars, 2);
                let p = self.process(depth - 1, vars, level);
                if self.t.chance(1, 2) {
                    format!("({c} -> {p} <> {})", self.process(depth - 1, vars, level))
                } else {
                    format!("({c} -> {p})")
                }
            }
            5 => {
                let sort = *self.t.choose(&[Sort::Bool, Sort::Enum, Sort::Pair]);
                self.fresh += 1;
                let mut inner = vars.clone();
                inner.push((format!("u{}", self.fresh), sort));
                let binder = format!("sum u{}: {}.", self.fresh, sort.text());
                format!("({binder} {})", self.process(depth - 1, &inner, level))
            }
            6 => {
                // A bounded sum; `two_texts` finds its variable by the name.
                self.fresh += 1;
                let name = format!("w{}", self.fresh);
                let mut inner = vars.clone();
                inner.push((name.clone(), Sort::Nat));
                let bound = match self.t.below(3) {
                    0 => format!("{name} < 3"),
                    1 => format!("{name} <= {}", expression(self.t, Sort::Nat, vars, 1)),
                    _ => format!("{name} < 3 && {}", expression(self.t, Sort::Bool, &inner, 1)),
                };
                format!(
                    "(sum {name}: Nat. ({bound}) -> {})",
                    self.process(depth - 1, &inner, level)
                )
            }
            7 => format!(
                "({} . {})",
                self.process(depth - 1, vars, level),
                self.rest(depth - 1, vars, level)
            ),
            _ => self.multi(vars),
        }
    }
    /// Writes a process that may follow an action.
    fn rest(&mut self, depth: usize, vars: &Vars, level: usize) -> String {
        match self.t.below(10) {
            // Continues within the scope of a sum, by a step or by an equation, which may have the
            // same sums.
            9 if depth > 0 => {
                let callee = level + self.t.below(self.params.len() - level);
                format!("({} + {})", self.process(depth - 1, vars, level), self.call(callee, vars))
            }
            6 => "delta".into(),
            7 => self.multi(vars),
            8 if depth > 0 => {
                let c = expression(self.t, Sort::Bool, vars, 1);
                format!(
                    "({c} -> {} <> {})",
                    self.rest(depth - 1, vars, level),
                    self.rest(depth - 1, vars, level)
                )
            }
            5 if depth > 0 => format!("({})", self.process(depth - 1, vars, level)),
            4 if level + 1 < self.params.len() || self.stack => {
                let n = self.params.len();
                let callee = if self.stack {
                    self.t.below(n)
                } else {
                    level + 1 + self.t.below(n - level - 1)
                };
                format!(
                    "{} . {}",
                    self.call(callee, vars),
                    self.rest(depth.saturating_sub(1), vars, level)
                )
            }
            _ => {
                let callee = level + self.t.below(self.params.len() - level);
                self.call(callee, vars)
            }
        }
    }
    fn call(&mut self, process: usize, vars: &Vars) -> String {
        let sorts = self.params[process].clone();
        let name = ["X", "Y", "Z"][process];
        if sorts.is_empty() {
            return name.into();
        }
        let args: Vec<String> = sorts.iter().map(|s| expression(self.t, *s, vars, 2)).collect();
        format!("{name}({})", args.join(", "))
    }
}

/// Returns a specification: the text for the tool, the text for the operational rules.
pub fn specification(t: &mut Tape) -> (String, String) {
    const PARAMS: [Sort; 10] = [
        Sort::Enum,
        Sort::Nat,
        Sort::Bool,
        Sort::Record,
        Sort::Enum,
        Sort::List,
        Sort::Pair,
        Sort::Set,
        Sort::Update,
        Sort::Record,
    ];
    let equations = 1 + t.below(3);
    let params =
        (0..equations).map(|_| (0..t.below(3)).map(|_| *t.choose(&PARAMS)).collect()).collect();
    let stack = t.chance(1, 8);
    let mut w = Writer { t, params, stack, fresh: 0 };
    let mut text = String::from("proc ");
    for e in 0..equations {
        let vars: Vars =
            w.params[e].iter().enumerate().map(|(i, s)| (format!("r{i}"), *s)).collect();
        let depth = 1 + w.t.below(3);
        let body = w.process(depth, &vars, e);
        let declared: Vec<String> =
            vars.iter().map(|(v, s)| format!("{v}: {}", s.text())).collect();
        let declared =
            if declared.is_empty() { String::new() } else { format!("({})", declared.join(", ")) };
        text += &format!("{}{declared} = {body};\n     ", ["X", "Y", "Z"][e]);
    }
    let no_vars = Vars::new();
    let mut init = w.call(0, &no_vars);
    for _ in 0..w.t.below(3) {
        // Copies of a component are symmetric.
        let copy = !init.contains(' ') && w.t.chance(1, 2);
        let callee = w.t.below(equations);
        let other = if copy { init.clone() } else { w.call(callee, &no_vars) };
        let op = *w.t.choose(&["||", "||", "||", "||_", "|"]);
        init = format!("(({init}) {op} ({other}))");
        init = match w.t.below(10) {
            1 | 2 => format!("comm({{c|e -> f, m|n -> k}}, {init})"),
            3 => format!(
                "allow({{f, k, a, b, x, l, v, p, g, a|b}}, comm({{c|e -> f, m|n -> k, a|b -> g}}, {init}))"
            ),
            4 => format!(
                "hide({{f, k, g}}, allow({{f, k, a, g, x, m, l, v, p}}, comm({{c|e -> f, m|n -> k, a|b -> g}}, {init})))"
            ),
            5 => format!("block({{b, n}}, {init})"),
            6 => format!("rename({{a -> b, e -> c}}, {init})"),
            7 => format!("hide({{a, c, m}}, {init})"),
            8 => format!("allow({{a, b, c, e, m, n, x, l, v, p, a|c}}, {init})"),
            _ => init,
        };
    }
    if w.t.chance(1, 5) {
        init = format!("hide({{a, m, x}}, {init})");
    }
    let text = format!("{text}\ninit {init};\n");
    (format!("{HEAD}{text}"), format!("{HEAD}{}", bound_sums(&text)))
}

/// Returns the text with bounded sums over the enumeration: `sum w1: Nat.` becomes `sum w1:
/// Small.`, other occurrences of `w1` become `num(w1)`.
fn bound_sums(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('w') {
        let word_before =
            rest[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_');
        let digits = rest[at + 1..].chars().take_while(char::is_ascii_digit).count();
        let end = at + 1 + digits;
        if word_before || digits == 0 {
            out += &rest[..at + 1];
            rest = &rest[at + 1..];
            continue;
        }
        out += &rest[..at];
        let name = &rest[at..end];
        if out.ends_with("sum ") && rest[end..].starts_with(": Nat.") {
            out += &format!("{name}: Small.");
            rest = &rest[end + ": Nat.".len()..];
        } else {
            out += &format!("num({name})");
            rest = &rest[end..];
        }
    }
    out + rest
}

/// Class of formulas.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Any.
    Any,
    /// Formulas that cannot distinguish branching bisimilar systems: tau occurs only as `tau*`
    /// around other actions.
    Weak,
}

struct FormulaWriter<'t> {
    t: &'t mut Tape,
    kind: Kind,
    vars: Vars,
    /// Fixed-point variables: name, sorts of parameters, whether an even number of negations is
    /// above the binder.
    fixes: Vec<(String, Vec<Sort>, bool)>,
    fresh: usize,
}

/// Returns a closed formula.
pub fn formula(t: &mut Tape, kind: Kind) -> String {
    let depth = 2 + t.below(5);
    FormulaWriter { t, kind, vars: Vec::new(), fixes: Vec::new(), fresh: 0 }.state(depth, true)
}

impl FormulaWriter<'_> {
    fn fresh(&mut self) -> usize {
        self.fresh += 1;
        self.fresh
    }
    fn condition(&mut self) -> String {
        expression(self.t, Sort::Bool, &self.vars.clone(), 2)
    }
    fn multi(&mut self) -> String {
        let vars = self.vars.clone();
        match self.t.below(12) {
            10 => "tau".into(),
            11 => format!("{}|{}", action(self.t, &vars, 0), action(self.t, &vars, 0)),
            9 => {
                let (name, sorts) = *self.t.choose(&ACTIONS[10..]);
                let args: Vec<String> =
                    sorts.iter().map(|s| expression(self.t, *s, &vars, 1)).collect();
                if args.is_empty() { name.into() } else { format!("{name}({})", args.join(", ")) }
            }
            _ => action(self.t, &vars, 1),
        }
    }
    fn action(&mut self, depth: usize) -> String {
        if depth == 0 {
            return if self.t.chance(1, 4) { "true".into() } else { self.multi() };
        }
        match self.t.below(12) {
            3 => "true".into(),
            4 => format!("!({})", self.action(depth - 1)),
            5 => format!("({} && {})", self.action(depth - 1), self.action(depth - 1)),
            6 => format!("({} || {})", self.action(depth - 1), self.action(depth - 1)),
            7 => format!("({} => {})", self.action(depth - 1), self.action(depth - 1)),
            8 => {
                let n = self.fresh();
                self.vars.push((format!("x{n}"), Sort::Enum));
                let inner = self.action(depth - 1);
                self.vars.pop();
                format!("({} x{n}: D. {inner})", self.t.choose(&["exists", "forall"]))
            }
            9 => {
                let n = self.fresh();
                self.vars.push((format!("x{n}"), Sort::Nat));
                let condition = self.condition();
                self.vars.pop();
                format!(
                    "(exists x{n}: Nat. {}(x{n}) && val({condition}))",
                    self.t.choose(&["m", "n", "k"])
                )
            }
            10 => {
                let n = self.fresh();
                self.vars.push((format!("x{n}"), Sort::List));
                let condition = self.condition();
                self.vars.pop();
                format!("(exists x{n}: List(Bool). l(x{n}) && val({condition}))")
            }
            11 => format!("(val({}) && {})", self.condition(), self.action(depth - 1)),
            _ => self.multi(),
        }
    }
    fn regular(&mut self, depth: usize) -> String {
        if self.kind == Kind::Weak && (depth == 0 || self.t.chance(1, 2)) {
            return if self.t.chance(1, 6) {
                "tau*".into()
            } else {
                format!("tau* . (({}) && !tau) . tau*", self.action(2))
            };
        }
        if depth == 0 {
            return self.action(2);
        }
        match self.t.below(8) {
            4 => format!("({} . {})", self.regular(depth - 1), self.regular(depth - 1)),
            5 => format!("({} + {})", self.regular(depth - 1), self.regular(depth - 1)),
            // In weak formulas a star also allows silence.
            6 if self.kind == Kind::Weak => format!("(tau* . ({})*)", self.regular(depth - 1)),
            6 => format!("({})*", self.regular(depth - 1)),
            7 => format!("({})+", self.regular(depth - 1)),
            _ => self.regular(0),
        }
    }
    fn state(&mut self, depth: usize, positive: bool) -> String {
        let usable: Vec<usize> =
            (0..self.fixes.len()).filter(|i| self.fixes[*i].2 == positive).collect();
        if depth == 0 || (!usable.is_empty() && self.t.chance(1, 5)) {
            if !usable.is_empty() && self.t.chance(4, 5) {
                let (name, sorts, _) = self.fixes[*self.t.choose(&usable)].clone();
                let vars = self.vars.clone();
                let args: Vec<String> =
                    sorts.iter().map(|s| expression(self.t, *s, &vars, 1)).collect();
                return if args.is_empty() { name } else { format!("{name}({})", args.join(", ")) };
            }
            return match self.t.below(4) {
                0 => "true".into(),
                1 => "false".into(),
                _ => format!("val({})", self.condition()),
            };
        }
        let d = depth - 1;
        match self.t.below(14) {
            0 | 1 => format!("[{}]{}", self.regular(2), self.state(d, positive)),
            2 | 3 => format!("<{}>{}", self.regular(2), self.state(d, positive)),
            4 => format!("!({})", self.state(d, !positive)),
            5 => format!("({} && {})", self.state(d, positive), self.state(d, positive)),
            6 => format!("({} || {})", self.state(d, positive), self.state(d, positive)),
            7 => format!("({} => {})", self.state(d, !positive), self.state(d, positive)),
            8 => {
                let sort = *self.t.choose(&[Sort::Enum, Sort::Bool]);
                let n = self.fresh();
                self.vars.push((format!("x{n}"), sort));
                let inner = self.state(d, positive);
                self.vars.pop();
                format!("({} x{n}: {}. {inner})", self.t.choose(&["forall", "exists"]), sort.text())
            }
            9 => {
                // Over an infinite sort, guarded by a bound or by an action.
                let n = self.fresh();
                self.vars.push((format!("x{n}"), Sort::Nat));
                let bounded = self.kind == Kind::Weak || self.t.chance(1, 2);
                let guard = if bounded {
                    format!("val(x{n} < 3)")
                } else {
                    format!("val({})", self.condition())
                };
                let inner = self.state(d, positive);
                self.vars.pop();
                let name = *self.t.choose(&["m", "n", "k"]);
                let step = |open: &str, close: &str| format!("{open}{name}(x{n}){close}{inner}");
                match (bounded, self.t.chance(1, 2)) {
                    (true, true) => format!("(forall x{n}: Nat. {guard} => {inner})"),
                    (true, false) => format!("(exists x{n}: Nat. {guard} && {inner})"),
                    (false, true) => format!("(forall x{n}: Nat. {guard} => {})", step("[", "]")),
                    (false, false) => format!("(exists x{n}: Nat. {guard} && {})", step("<", ">")),
                }
            }
            _ => {
                let n = self.fresh();
                let mut params = Vec::new();
                for _ in 0..self.t.below(3) {
                    let sort = *self.t.choose(&[Sort::Enum, Sort::Bool, Sort::Nat]);
                    let vars = self.vars.clone();
                    let init = expression(self.t, sort, &vars, 1);
                    params.push((format!("x{}", self.fresh()), sort, init));
                }
                let outer = self.vars.len();
                self.vars.extend(params.iter().map(|p| (p.0.clone(), p.1)));
                self.fixes.push((format!("X{n}"), params.iter().map(|p| p.1).collect(), positive));
                let body = self.state(d, positive);
                self.fixes.pop();
                self.vars.truncate(outer);
                let declared: Vec<String> =
                    params.iter().map(|(v, s, e)| format!("{v}: {} = {e}", s.text())).collect();
                let declared = if declared.is_empty() {
                    String::new()
                } else {
                    format!("({})", declared.join(", "))
                };
                format!("({} X{n}{declared}. {body})", self.t.choose(&["nu", "mu"]))
            }
        }
    }
}
