//! Generator of specifications: components of several shapes below operators, as two texts.
//!
//! The shapes: counters of each sort of numbers up to a bound, that then stop, end, go round or go
//! on as another process; rings that a path leads into (lassos), with chords; free processes that
//! the productions `proc_prefix`, `proc_primary` and `proc_infix` make. In the text for the
//! program, bounded sums range over `Nat`; in the text for the operational rules, which know finite
//! sorts only, over an enumeration that is mapped to numbers.

use super::data::{
    BOOL, D, E, INT, Maker, NAT, POS, PRELUDE, REAL, Sort, T, Vars, grammar, in_brackets,
};
use crate::support::tape::Tape;

/// Actions with the sorts of their arguments.
pub fn actions() -> Vec<(&'static str, Vec<Sort>)> {
    vec![
        ("a", vec![]),
        ("an", vec![NAT]),
        ("ae", vec![E]),
        ("b", vec![]),
        ("bn", vec![NAT]),
        ("be", vec![E]),
        ("ap", vec![POS]),
        ("ai", vec![INT]),
        ("ab", vec![BOOL]),
        ("ne", vec![NAT, E]),
        ("ar", vec![REAL]),
        ("ad", vec![D]),
        ("at", vec![T]),
        ("al", vec![Sort::of("List", E)]),
        ("as", vec![Sort::of("FSet", E)]),
        ("am", vec![Sort::of("FBag", E)]),
        ("o", vec![NAT]),
        ("o", vec![BOOL]),
        ("g", vec![]),
        ("gn", vec![NAT]),
        ("ge", vec![E]),
    ]
}

/// Their declarations.
pub const DECLARED: &str =
    "act a, b, g; an, bn, gn: Nat; ae, be, ge: E; ap: Pos; ai: Int; ab: Bool; ne: Nat # E; ar: Real; ad: D; at: T; al: List(E);
    as: FSet(E); am: FBag(E); o: Nat; o: Bool;
";

/// The sums of the rules' text.
const SMALL: &str = "sort Small = struct n0 | n1 | n2 | n3;\nmap num: Small -> Nat;\neqn num(n0) = 0; num(n1) = 1; num(n2) = 2; num(n3) = 3;\n";

/// A specification.
#[derive(Clone, Debug)]
pub struct Specification {
    /// For the program.
    pub text: String,
    /// Text for the operational rules; `None` if they do not support some construct.
    pub rules: Option<String>,
    /// Declared mappings, for formulas.
    pub mappings: Vec<super::data::Mapping>,
    /// The bound of counters.
    pub bound: u64,
    /// Names of the shapes in it.
    pub shapes: Vec<&'static str>,
}

/// Special constructs that a specification has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// None.
    Usual,
    /// Choices by chance.
    Chance,
    /// Times of actions.
    Timed,
}

struct Equation {
    name: String,
    params: Vars,
}

struct Writer<'m, 't> {
    m: &'m mut Maker<'t>,
    kind: Kind,
    /// Equations of this component.
    equations: Vec<Equation>,
    stack: bool,
    by_rules: bool,
}

/// Writes a specification.
pub fn specification(t: &mut Tape, kind: Kind) -> Specification {
    let large = t.chance(1, 3);
    let mut m = Maker::new(t);
    m.large = large;
    let mut w = Writer {
        m: &mut m,
        kind,
        equations: Vec::new(),
        stack: false,
        by_rules: kind == Kind::Usual,
    };
    // A small lasso alone: the fewer states, the fewer steps hide one that is treated wrongly.
    let alone = w.m.t.chance(1, 5);
    let count = if alone { 1 } else { [1, 2, 1, 2, 3][w.m.t.below(5)] };
    let (mut processes, mut init, mut shapes) = (String::new(), String::new(), Vec::new());
    let mut copies: Vec<String> = Vec::new();
    for i in 0..count {
        // Copies of a component are symmetric.
        let copy = !copies.is_empty() && w.m.t.chance(1, 3);
        let call = if copy {
            w.m.t.choose(&copies).clone()
        } else {
            let name = ["P", "Q", "R"][i];
            let (text, call, shape) = if alone { w.ring(name, 3) } else { w.component(name) };
            processes += &text;
            shapes.push(shape);
            call
        };
        copies.push(call.clone());
        let op = *w.m.t.choose(&["||", "||", "||", "||", "||_", "|"]);
        init = if i == 0 { call } else { format!("({init} {op} {call})") };
        for _ in 0..if alone { 0 } else { w.m.t.below(3) } {
            init = w.operator(init, count);
        }
    }
    let glob = if w.m.t.chance(1, 8) {
        *w.m.t.choose(&[
            "glob dc: Nat; de, de2: E;\n",
            "glob dc: Nat, df: Bool, de: E;\n",
            "glob dc: Nat;\n",
        ])
    } else {
        ""
    };
    let by_rules = w.by_rules && glob.is_empty();
    let processes = if glob.is_empty() {
        processes
    } else {
        processes.replacen(". delta", ". delta + a . an(dc) . delta", 1)
    };
    let more = *w.m.t.choose(&[
        "",
        "",
        "",
        "sort R = struct r3(Nat, Bool, last: E);\n",
        "sort S1 = struct s1;\ncons s2: Third;\nact unused;\n",
    ]);
    let head = format!("{PRELUDE}{more}{}", m.theory.concat());
    let tail = format!("{DECLARED}{glob}proc {processes}init {init};\n");
    Specification {
        rules: by_rules.then(|| format!("{SMALL}{head}{}", bound_sums(&tail))),
        text: format!("{head}{tail}"),
        mappings: m.mappings,
        bound: m.bound,
        shapes,
    }
}

impl Writer<'_, '_> {
    fn chance(&mut self, n: usize, of: usize) -> bool {
        self.m.t.chance(n, of)
    }
    /// Returns the equations of a component, its first instance, and its shape.
    fn component(&mut self, name: &str) -> (String, String, &'static str) {
        match self.m.t.below(7) {
            0 => self.counter(name),
            1 | 2 => self.ring(name, 5),
            _ => self.free(name),
        }
    }
    fn action_of(&mut self, sort: &Sort, value: &str) -> String {
        match sort {
            Sort::Plain("Nat") => format!("{}({value})", self.m.t.choose(&["an", "bn", "o"])),
            Sort::Plain("Pos") => format!("ap({value})"),
            Sort::Plain("Int") => format!("ai({value})"),
            Sort::Plain("Real") => format!("ar({value})"),
            _ => format!("be({value})"),
        }
    }
    /// Returns a counter up to a bound.
    fn counter(&mut self, name: &str) -> (String, String, &'static str) {
        let sort = self.m.t.choose(&[NAT, POS, INT, REAL]).clone();
        let bound = self.m.bound;
        let start = match &sort {
            Sort::Plain("Pos") => "1".to_string(),
            Sort::Plain("Int") if self.chance(1, 2) => "-2".into(),
            _ => "0".into(),
        };
        let limit = match self.m.t.below(4) {
            0 => bound.to_string(),
            1 => {
                let name = self.m.name("k");
                self.m.theory.push(format!("map {name}: Nat;\neqn {name} = {bound};\n"));
                name
            }
            2 => format!("(lambda v: Nat. v)({bound})"),
            _ => format!("(v whr v = {bound} end)"),
        };
        let step = match (&sort, self.m.t.below(3)) {
            (Sort::Plain("Real"), _) => "n + 1 / 2",
            (_, 0) => "succ(n)",
            _ => "n + 1",
        };
        let (less, end) = *self.m.t.choose(&[("<", ">="), ("<=", ">"), ("!=", "==")]);
        let vars: Vars = vec![("n".into(), sort.clone())];
        let say = if self.chance(1, 2) { self.action_of(&sort, "n") } else { self.multi(&vars) };
        let last = match self.m.t.below(5) {
            0 => String::new(),
            1 => format!(" + (n {end} {limit}) -> {}", self.multi(&vars)),
            2 => format!(" + (n {end} {limit}) -> {} . {name}({start})", self.multi(&vars)),
            3 => format!(" + (n {end} {limit}) -> {} . delta", self.multi(&vars)),
            _ => {
                let back = if sort == REAL {
                    "n - 1 / 2".into()
                } else {
                    (if sort == POS { "max(1, pred(n))" } else { start.as_str() }).to_string()
                };
                format!(" + (n {end} {limit}) -> {} . {name}(n = {back})", self.multi(&vars))
            }
        };
        // `!=` reaches the bound only if the start is not above it and the step is whole.
        let (less, last) = if less == "!=" && (sort == REAL || sort == POS) {
            ("<", last.replace("n == ", "n >= "))
        } else {
            (less, last)
        };
        (
            format!(
                "{name}(n: {}) = (n {less} {limit}) -> {say} . {name}({step}){last};\n     ",
                sort.text()
            ),
            format!("{name}({start})"),
            "counter",
        )
    }
    /// Returns a path that leads into a cycle, with chords.
    fn ring(&mut self, name: &str, most: usize) -> (String, String, &'static str) {
        let size = 2 + self.m.t.below(most);
        let back = self.m.t.below(size);
        let sort = self.m.t.choose(&[NAT, INT, POS]).clone();
        let at = |i: usize| if sort == POS { i + 1 } else { i };
        let vars: Vars = vec![("n".into(), sort.clone())];
        let step = |w: &mut Self, from: usize, to: usize| {
            let say = if w.chance(1, 3) {
                w.multi(&vars)
            } else {
                w.m.t.choose(&["a", "b", "tau", "a", "an(1)"]).to_string()
            };
            format!("(n == {}) -> {say} . {name}({})", at(from), at(to))
        };
        let mut summands: Vec<String> =
            (0..size).map(|i| step(self, i, if i + 1 < size { i + 1 } else { back })).collect();
        for _ in 0..self.m.t.below(most - 2) {
            let (from, to) = (self.m.t.below(size), self.m.t.below(size));
            summands.push(step(self, from, to));
        }
        if most > 3 && self.chance(1, 4) {
            summands.remove(self.m.t.below(summands.len()));
        }
        (
            format!("{name}(n: {}) = {};\n     ", sort.text(), summands.join("\n  + ")),
            format!("{name}({})", at(0)),
            "lasso",
        )
    }
    /// Equations of any form.
    fn free(&mut self, name: &str) -> (String, String, &'static str) {
        let count = 1 + self.m.t.below(3);
        self.stack = self.chance(1, 10);
        self.equations = (0..count)
            .map(|i| {
                let params =
                    (0..self.m.t.below(3)).map(|k| (format!("r{k}"), self.m.parameter())).collect();
                Equation { name: format!("{name}{}", ["", "a", "b"][i]), params }
            })
            .collect();
        let mut text = String::new();
        for e in 0..count {
            let vars = self.equations[e].params.clone();
            let depth = 1 + self.m.t.below(3);
            let body = self.process(depth, &vars, e);
            let declared: Vec<String> =
                vars.iter().map(|(v, s)| format!("{v}: {}", s.text())).collect();
            let declared = match &declared[..] {
                [] => String::new(),
                [_, _] if vars[0].1 == vars[1].1 => format!("(r0, r1: {})", vars[0].1.text()),
                all => format!("({})", all.join(", ")),
            };
            text += &format!("{}{declared} = {body};\n     ", self.equations[e].name);
        }
        let params = self.equations[0].params.clone();
        let args: Vec<String> = params.iter().map(|p| self.m.clip(&p.1, &Vars::new(), 0)).collect();
        (text, call_text(name, &args), "free")
    }
    fn action(&mut self, vars: &Vars, depth: usize) -> String {
        let all = actions();
        let (name, sorts) = self.m.t.choose(&all[..18]).clone();
        let args: Vec<String> = sorts.iter().map(|s| self.m.expr(s, vars, depth)).collect();
        call_text(name, &args)
    }
    fn multi(&mut self, vars: &Vars) -> String {
        match self.m.t.below(12) {
            10 => "tau".into(),
            11 => format!("{}|{}", self.action(vars, 0), self.action(vars, 1)),
            9 => format!(
                "{}|{}|{}",
                self.action(vars, 0),
                self.action(vars, 0),
                self.action(vars, 0)
            ),
            8 if self.kind == Kind::Timed => {
                format!("{}@{}", self.action(vars, 0), 1 + self.m.t.below(3))
            }
            _ => self.action(vars, 2),
        }
    }
    fn condition(&mut self, vars: &Vars) -> String {
        let depth = 1 + self.m.t.below(3);
        let c = self.m.expr(&BOOL, vars, depth);
        if self.chance(1, 6) { format!("!{}", in_brackets(&c)) } else { in_brackets(&c) }
    }
    /// Returns a process that begins with an action.
    fn process(&mut self, depth: usize, vars: &Vars, level: usize) -> String {
        if depth == 0 {
            return format!("{} . {}", self.multi(vars), self.rest(depth, vars, level));
        }
        let production =
            *self.m.t.choose(&["proc_infix", "proc_infix", "proc_prefix", "proc_primary"]);
        let alternative = self.m.t.choose(&grammar().alternatives(production)).clone();
        match alternative.as_str() {
            "sum" => self.sum(depth, vars, level),
            "dist" if self.kind == Kind::Chance => {
                let b = self.m.name("p");
                let mut inner = vars.clone();
                inner.push((b.clone(), BOOL));
                let weight = [
                    "1 / 2".to_string(),
                    format!("if({b}, 1 / 3, 2 / 3)"),
                    format!("if({b}, 1, 0)"),
                ][self.m.t.below(3)]
                .clone();
                format!(
                    "{} . (dist {b}: Bool[{weight}]. {})",
                    self.multi(vars),
                    self.process(depth - 1, &inner, level)
                )
            }
            "op_else" => {
                let c = self.condition(vars);
                let p = self.process(depth - 1, vars, level);
                format!("({c} -> {p} <> {})", self.process(depth - 1, vars, level))
            }
            "arrow" => {
                let c = self.condition(vars);
                format!("({c} -> {})", self.process(depth - 1, vars, level))
            }
            // Conditions are processes to the grammar.
            "not" | "minus" | "size" | "binder" | "number" | "truth" | "list" | "braces" => {
                let c = self.condition(vars);
                format!("({c} -> {})", self.process(depth - 1, vars, level))
            }
            "op_at" if self.kind == Kind::Timed => {
                format!("({})@{}", self.process(depth - 1, vars, level), 1 + self.m.t.below(4))
            }
            "data_op" => format!(
                "({} + {})",
                self.process(depth - 1, vars, level),
                self.process(depth - 1, vars, level)
            ),
            "proc_group" => format!("({})", self.process(depth - 1, vars, level)),
            "op_bar" => format!(
                "{}|{} . {}",
                self.action(vars, 1),
                self.action(vars, 0),
                self.rest(depth, vars, level)
            ),
            "delta" => format!("({} + delta)", self.process(depth - 1, vars, level)),
            "tau" => format!("tau . {}", self.rest(depth, vars, level)),
            "ident" => format!("{} . {}", self.multi(vars), self.rest(depth, vars, level)),
            // These stand outside of recursion, or are refused: see `operator` and `refused`.
            "block" | "allow" | "hide" | "rename" | "comm" | "op_left_merge" | "op_until"
            | "dist" | "op_at" => {
                format!(
                    "({} . {})",
                    self.process(depth - 1, vars, level),
                    self.rest(depth - 1, vars, level)
                )
            }
            other => {
                panic!("`{production}` has the alternative `{other}`, which no generator knows")
            }
        }
    }
    fn sum(&mut self, depth: usize, vars: &Vars, level: usize) -> String {
        let mut inner = vars.clone();
        match self.m.t.below(8) {
            0..=3 => {
                let sort = self.m.t.choose(&[E, BOOL, D, super::data::C]).clone();
                let name = self.m.name("u");
                inner.push((name.clone(), sort.clone()));
                format!("(sum {name}: {}. {})", sort.text(), self.process(depth - 1, &inner, level))
            }
            4 | 5 => {
                let name = self.m.name("w");
                inner.push((name.clone(), NAT));
                let bound = match self.m.t.below(3) {
                    0 => format!("{name} < 3"),
                    1 => format!("{name} <= min(3, {})", self.m.expr(&NAT, vars, 1)),
                    _ => format!("{name} < 4 && {}", self.m.expr(&BOOL, &inner, 1)),
                };
                format!(
                    "(sum {name}: Nat. ({bound}) -> {})",
                    self.process(depth - 1, &inner, level)
                )
            }
            6 => {
                let (x, y) = (self.m.name("u"), self.m.name("u"));
                inner.extend([(x.clone(), BOOL), (y.clone(), E)]);
                format!("(sum {x}: Bool, {y}: E. {})", self.process(depth - 1, &inner, level))
            }
            _ => {
                self.by_rules = false;
                let sort =
                    self.m.t.choose(&[POS, INT, E.to(BOOL), Sort::of("FSet", BOOL), NAT]).clone();
                let name = self.m.name("u");
                inner.push((name.clone(), sort.clone()));
                let bound = match &sort {
                    Sort::Plain("Pos") => format!("{name} < 3"),
                    Sort::Plain("Int") => format!("-2 < {name} && {name} < 2"),
                    Sort::Plain("Nat") => format!("{name} in [2, 5, {}]", self.m.constant(&NAT)),
                    Sort::Function(..) => format!("{name}(e1)"),
                    _ => format!("#{name} < 2"),
                };
                format!(
                    "(sum {name}: {}. ({bound}) -> {})",
                    sort.text(),
                    self.process(depth - 1, &inner, level)
                )
            }
        }
    }
    /// Writes a process that may follow an action.
    fn rest(&mut self, depth: usize, vars: &Vars, level: usize) -> String {
        let count = self.equations.len();
        if count == 0 {
            return "delta".into();
        }
        match self.m.t.below(10) {
            9 if depth > 0 => {
                let callee = level + self.m.t.below(count - level);
                format!(
                    "({} + {})",
                    self.process(depth - 1, vars, level),
                    self.call(callee, vars, level)
                )
            }
            6 => "delta".into(),
            7 => self.multi(vars),
            8 if depth > 0 => {
                let c = self.condition(vars);
                format!(
                    "({c} -> {} <> {})",
                    self.rest(depth - 1, vars, level),
                    self.rest(depth - 1, vars, level)
                )
            }
            5 if depth > 0 => format!("({})", self.process(depth - 1, vars, level)),
            4 if level + 1 < count || self.stack => {
                let callee = if self.stack {
                    self.m.t.below(count)
                } else {
                    level + 1 + self.m.t.below(count - level - 1)
                };
                format!(
                    "{} . {}",
                    self.call(callee, vars, level),
                    self.rest(depth.saturating_sub(1), vars, level)
                )
            }
            _ => {
                let callee = level + self.m.t.below(count - level);
                self.call(callee, vars, level)
            }
        }
    }
    fn call(&mut self, callee: usize, vars: &Vars, level: usize) -> String {
        let params = self.equations[callee].params.clone();
        let name = self.equations[callee].name.clone();
        if callee == level && self.chance(1, 4) {
            // By name: the other parameters are unchanged.
            let some: Vec<_> = params.iter().filter(|_| self.m.t.chance(1, 2)).cloned().collect();
            let args: Vec<String> =
                some.iter().map(|p| format!("{} = {}", p.0, self.m.clip(&p.1, vars, 2))).collect();
            return if args.is_empty() { format!("{name}()") } else { call_text(&name, &args) };
        }
        let args: Vec<String> = params.iter().map(|p| self.m.clip(&p.1, vars, 2)).collect();
        call_text(&name, &args)
    }
    /// Returns an operator around a composition.
    fn operator(&mut self, p: String, components: usize) -> String {
        let production = "proc_primary";
        let operators: Vec<String> = grammar()
            .alternatives(production)
            .into_iter()
            .filter(|a| ["block", "allow", "hide", "rename", "comm"].contains(&a.as_str()))
            .collect();
        let some = |w: &mut Self, of: &[&str], least: usize| {
            let mut list: Vec<&str> = of.iter().filter(|_| w.m.t.chance(1, 2)).copied().collect();
            // Of the rest: the end of a tape always chooses the first item.
            while list.len() < least {
                let rest: Vec<&str> = of.iter().filter(|x| !list.contains(x)).copied().collect();
                list.push(*w.m.t.choose(&rest));
            }
            list.join(", ")
        };
        match self.m.t.choose(&operators).as_str() {
            "block" => format!("block({{{}}}, {p})", some(self, &["b", "bn", "ae", "ai"], 0)),
            "hide" => format!(
                "hide({{{}}}, {p})",
                some(self, &["a", "an", "g", "gn", "ab", "be", "at"], 0)
            ),
            "rename" => format!(
                "rename({{{}}}, {p})",
                self.m.t.choose(&[
                    "a -> b",
                    "ae -> be, an -> bn",
                    "b -> a, bn -> gn",
                    "g -> a",
                    "a -> b, b -> g, g -> a",
                    ""
                ])
            ),
            "comm" => {
                let rules = [
                    "a|b -> g",
                    "an|bn -> gn",
                    "ae|be -> ge",
                    "an|an -> gn",
                    "a|a -> a",
                    "ae|ae|be -> ge",
                    "a|b -> tau",
                    "",
                    "a|b -> g, an|bn -> gn",
                    "a|b -> g, an|bn -> gn, ae|be -> ge",
                ];
                format!("comm({{{}}}, {p})", self.m.t.choose(&rules))
            }
            _ => {
                let names = [
                    "g", "gn", "ge", "a", "b", "an", "ae", "ap", "ai", "ab", "ne", "ar", "ad",
                    "at", "al", "as", "am", "o", "a|b", "an|ae", "bn", "be",
                ];
                let inner = if components > 1 && self.chance(2, 3) {
                    format!("comm({{a|b -> g, an|bn -> gn, ae|be -> ge}}, {p})")
                } else {
                    p
                };
                let least = [8, 8, 8, 8, 12, 2, 1, 0][self.m.t.below(8)];
                let list = if least < 8 {
                    some(self, &names[..least], least)
                } else {
                    some(self, &names, least)
                };
                format!("allow({{{list}}}, {inner})")
            }
        }
    }
}

fn call_text(name: &str, args: &[String]) -> String {
    if args.is_empty() { name.to_string() } else { format!("{name}({})", args.join(", ")) }
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
