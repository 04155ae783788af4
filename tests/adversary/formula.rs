//! Generator of closed formulas, driven by the productions of state, regular and action formulas.
//!
//! Fixed points carry data of each sort and alternate; a variable occurs under an even number of
//! negations. Quantifiers over numbers are bounded. *Weak* formulas cannot distinguish branching
//! bisimilar systems: `tau` occurs only as `tau*` around other actions.

use super::data::{BOOL, D, E, INT, Maker, Mapping, NAT, POS, REAL, Sort, Vars, grammar};
use super::process::actions;
use crate::support::random_text::Kind;
use crate::support::tape::Tape;

struct Writer<'m, 't> {
    m: &'m mut Maker<'t>,
    kind: Kind,
    real: bool,
    vars: Vars,
    /// Variables of fixed points: name, sorts of parameters, whether the number of negations above
    /// the binder is even.
    fixes: Vec<(String, Vec<Sort>, bool)>,
}

/// Writes a closed formula, at times with declarations of its own.
pub fn formula(t: &mut Tape, kind: Kind, mappings: &[Mapping], bound: u64) -> String {
    write(t, kind, mappings, bound, false)
}

/// Writes a closed formula that has a number as value.
pub fn quantity(t: &mut Tape, mappings: &[Mapping], bound: u64) -> String {
    write(t, Kind::Any, mappings, bound, true)
}

fn write(t: &mut Tape, kind: Kind, mappings: &[Mapping], bound: u64, real: bool) -> String {
    let depth = 2 + t.below(4);
    let declares = t.chance(1, 8);
    let mut m = Maker::new(t);
    (m.mappings, m.bound, m.may_declare, m.names) = (mappings.to_vec(), bound, declares, 500);
    m.large = m.t.chance(1, 4);
    let mut writer = Writer { m: &mut m, kind, real, vars: Vec::new(), fixes: Vec::new() };
    let state = match real {
        true => writer.quantity(depth),
        false if kind == Kind::Any && writer.m.t.chance(1, 3) => writer.usual(),
        false => writer.state(depth, true),
    };
    let more = ["", "sort S9 = struct s9;\n", "sort S9; cons s9: S9;\n", "act only: Nat;\n"]
        [if declares { m.t.below(4) } else { 0 }];
    if declares { format!("{more}{}form {state};", m.theory.concat()) } else { state }
}

impl Writer<'_, '_> {
    /// Returns a formula of a form that is in use: safety, reachability, ends of runs, what comes
    /// at last, what always may come, what comes for ever.
    fn usual(&mut self) -> String {
        let (a, b) = (self.action(1), self.action(1));
        match self.m.t.below(19) {
            0 | 16..=18 => "mu X. [true]X".into(),
            1 => format!("mu X. [!({a})]X"),
            2 => format!("[true*]mu X. [!({a})]X"),
            3 => format!("[true* . ({a})]mu X. [!({b})]X"),
            4 => format!("mu X. ([!({a})]X && <true>true)"),
            5 => format!("[true* . ({a})]mu X. ([!({b})]X && <true>true)"),
            6 => format!("nu X. (<true>X && [{a}]false)"),
            7 => format!("nu X. mu Y. (<{a}>X || <!({a})>Y)"),
            8 => format!("mu X. nu Y. ([{a}]X && [!({a})]Y)"),
            9 => format!("[true* . ({a}) . (!({b}))* . ({a})]false"),
            10 => format!("<true* . ({a})>true"),
            11 => format!("[true*]<true* . ({a})>true"),
            12 => "mu X. (<true>X || [true]false)".into(),
            13 => format!("[(!({a}))* . ({b})]false"),
            14 => format!("mu X. [true][!({a})]X"),
            _ => format!("nu X. ([true]X && ([{a}]false || mu Y. [!({b})]Y))"),
        }
    }
    fn condition(&mut self, depth: usize) -> String {
        let vars = self.vars.clone();
        self.m.expr(&BOOL, &vars, depth)
    }
    fn with<T>(&mut self, more: Vars, inner: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.vars.len();
        self.vars.extend(more);
        let found = inner(self);
        self.vars.truncate(outer);
        found
    }
    fn alternative(&mut self, productions: &[&'static str]) -> (&'static str, String) {
        let production = *self.m.t.choose(productions);
        (production, self.m.t.choose(&grammar().alternatives(production)).clone())
    }
    fn multi(&mut self) -> String {
        let all = actions();
        let vars = self.vars.clone();
        let count = [1, 1, 1, 1, 1, 1, 2, 3][self.m.t.below(8)];
        let one = |s: &mut Self| {
            let (name, sorts) = s.m.t.choose(&all).clone();
            let args: Vec<String> = sorts.iter().map(|sort| s.m.expr(sort, &vars, 1)).collect();
            if args.is_empty() { name.to_string() } else { format!("{name}({})", args.join(", ")) }
        };
        (0..count).map(|_| one(self)).collect::<Vec<_>>().join("|")
    }
    /// Returns a set of labels.
    fn action(&mut self, depth: usize) -> String {
        if depth == 0 {
            return if self.m.t.chance(1, 4) { "true".into() } else { self.multi() };
        }
        let (production, alternative) = self.alternative(&[
            "regular_primary",
            "regular_primary",
            "regular_prefix",
            "regular_infix",
        ]);
        match alternative.as_str() {
            "truth" => self.m.t.choose(&["true", "false"]).to_string(),
            "val" => format!("(val({}) && {})", self.condition(2), self.action(depth - 1)),
            "tau" => "tau".into(),
            "multi_action" => self.multi(),
            "regular_group" => format!("({})", self.action(depth - 1)),
            "not" => format!("!({})", self.action(depth - 1)),
            "action_quantifier" => self.quantified_action(depth),
            "op_implies" => format!("({} => {})", self.action(depth - 1), self.action(depth - 1)),
            "op_or" => format!("({} || {})", self.action(depth - 1), self.action(depth - 1)),
            "op_and" => format!("({} && {})", self.action(depth - 1), self.action(depth - 1)),
            "op_plus" | "op_dot" => self.action(depth - 1),
            other => {
                panic!("`{production}` has the alternative `{other}`, which no generator knows")
            }
        }
    }
    fn quantified_action(&mut self, depth: usize) -> String {
        let x = self.m.name("x");
        if self.m.t.chance(1, 2) {
            let sort = self.m.t.choose(&[E, BOOL, D]).clone();
            let word = *self.m.t.choose(&["exists", "forall"]);
            let inner = self.with(vec![(x.clone(), sort.clone())], |s| s.action(depth - 1));
            return format!("({word} {x}: {}. {inner})", sort.text());
        }
        // The label supplies the value.
        let all = actions();
        let unary: Vec<&(&str, Vec<Sort>)> =
            all.iter().filter(|a| a.1.len() == 1 && a.0 != "o").collect();
        let (name, sorts) = (*self.m.t.choose(&unary)).clone();
        let condition = self.with(vec![(x.clone(), sorts[0].clone())], |s| s.condition(2));
        format!("(exists {x}: {}. {name}({x}) && val({condition}))", sorts[0].text())
    }
    fn regular(&mut self, depth: usize) -> String {
        if self.kind == Kind::Weak && (depth == 0 || self.m.t.chance(1, 2)) {
            return if self.m.t.chance(1, 6) {
                "tau*".into()
            } else {
                format!("tau* . (({}) && !tau) . tau*", self.action(2))
            };
        }
        if depth == 0 {
            return self.action(2);
        }
        let (production, alternative) = self.alternative(&[
            "regular_postfix",
            "regular_infix",
            "regular_infix",
            "regular_primary",
        ]);
        match alternative.as_str() {
            "star" if self.kind == Kind::Weak => format!("(tau* . ({})*)", self.regular(depth - 1)),
            "star" if self.m.t.chance(1, 8) => format!("({})* *", self.regular(depth - 1)),
            "star" => format!("({})*", self.regular(depth - 1)),
            "iterate" => format!("({})+", self.regular(depth - 1)),
            "op_plus" => format!("({} + {})", self.regular(depth - 1), self.regular(depth - 1)),
            "op_dot" if self.m.t.chance(1, 4) => {
                format!("({} . {} . {})", self.regular(0), self.regular(0), self.regular(0))
            }
            "op_dot" => format!("({} . {})", self.regular(depth - 1), self.regular(depth - 1)),
            "regular_group" => format!("({})", self.regular(depth - 1)),
            // Times are refused; see `refused`.
            "at" | "op_implies" | "op_or" | "op_and" | "truth" | "val" | "tau" | "multi_action" => {
                self.regular(0)
            }
            other => {
                panic!("`{production}` has the alternative `{other}`, which no generator knows")
            }
        }
    }
    /// Returns an instance of a variable, or a formula about data.
    fn leaf(&mut self, usable: &[usize]) -> String {
        if !usable.is_empty() && self.m.t.chance(4, 5) {
            let (name, sorts, _) = self.fixes[*self.m.t.choose(usable)].clone();
            let vars = self.vars.clone();
            let args: Vec<String> = sorts.iter().map(|s| self.m.clip(s, &vars, 1)).collect();
            return if args.is_empty() { name } else { format!("{name}({})", args.join(", ")) };
        }
        match self.m.t.below(4) {
            0 => "true".into(),
            1 => "false".into(),
            _ => format!("val({})", self.condition(2)),
        }
    }
    fn state(&mut self, depth: usize, positive: bool) -> String {
        let usable: Vec<usize> =
            (0..self.fixes.len()).filter(|i| self.fixes[*i].2 == positive).collect();
        if depth == 0 || (!usable.is_empty() && self.m.t.chance(1, 5)) {
            return self.leaf(&usable);
        }
        let d = depth - 1;
        let (production, alternative) = self.alternative(&[
            "state_prefix",
            "state_prefix",
            "state_prefix",
            "state_infix",
            "state_primary",
        ]);
        match alternative.as_str() {
            "fix" => self.fix(d, positive),
            "state_quantifier" => self.quantifier(d, positive),
            "must" => format!("[{}]{}", self.regular(2), self.state(d, positive)),
            "may" => format!("<{}>{}", self.regular(2), self.state(d, positive)),
            "not" => format!("!({})", self.state(d, !positive)),
            "op_implies" => {
                format!("({} => {})", self.state(d, !positive), self.state(d, positive))
            }
            "op_or" => format!("({} || {})", self.state(d, positive), self.state(d, positive)),
            "op_and" if self.m.t.chance(1, 4) => {
                format!(
                    "({} && {} && {})",
                    self.state(d, positive),
                    self.state(d, positive),
                    self.state(d, positive)
                )
            }
            "op_and" => format!("({} && {})", self.state(d, positive), self.state(d, positive)),
            "state_group" => format!("({})", self.state(d, positive)),
            "variable" | "truth" | "val" => self.leaf(&usable),
            // Productions of formulas with numbers as values, and of times.
            "minus" | "op_plus" | "op_times" | "delay" | "yaled" => self.state(d, positive),
            other => {
                panic!("`{production}` has the alternative `{other}`, which no generator knows")
            }
        }
    }
    fn quantifier(&mut self, d: usize, positive: bool) -> String {
        let x = self.m.name("x");
        let forall = self.m.t.chance(1, 2);
        let word = if forall { "forall" } else { "exists" };
        let sort = self.m.t.choose(&[E, BOOL, NAT, D, POS, INT, E.to(BOOL)]).clone();
        let bound = match &sort {
            Sort::Plain("Nat" | "Pos") => Some(format!("{x} <= {}", self.m.bound)),
            Sort::Plain("Int") => Some(format!("-2 < {x} && {x} < 2")),
            _ => None,
        };
        if bound.is_none() && self.m.t.chance(1, 4) {
            let y = self.m.name("x");
            let inner = self
                .with(vec![(x.clone(), sort.clone()), (y.clone(), BOOL)], |s| s.state(d, positive));
            return format!("({word} {x}: {}, {y}: Bool. {inner})", sort.text());
        }
        let inner = self.with(vec![(x.clone(), sort.clone())], |s| s.state(d, positive));
        let bounded = bound.map_or(inner.clone(), |b| {
            if forall { format!("(val({b}) => {inner})") } else { format!("(val({b}) && {inner})") }
        });
        format!("({word} {x}: {}. {bounded})", sort.text())
    }
    fn fix(&mut self, d: usize, positive: bool) -> String {
        let name = self.m.name("X");
        let mut params = Vec::new();
        let sorts =
            [NAT, E, BOOL, POS, INT, D, REAL, Sort::of("List", E), Sort::of("FSet", E), E.to(BOOL)];
        for _ in 0..[0, 0, 1, 1, 2, 3][self.m.t.below(6)] {
            let sort = self.m.t.choose(&sorts).clone();
            let vars = self.vars.clone();
            let value = self.m.clip(&sort, &vars, 1);
            params.push((self.m.name("x"), sort, value));
        }
        let more: Vars = params.iter().map(|p| (p.0.clone(), p.1.clone())).collect();
        self.fixes.push((name.clone(), params.iter().map(|p| p.1.clone()).collect(), positive));
        let body = self.with(more, |s| if s.real { s.quantity(d) } else { s.state(d, positive) });
        self.fixes.pop();
        let declared: Vec<String> =
            params.iter().map(|(x, s, v)| format!("{x}: {} = {v}", s.text())).collect();
        let declared =
            if declared.is_empty() { String::new() } else { format!("({})", declared.join(", ")) };
        format!("({} {name}{declared}. {body})", self.m.t.choose(&["nu", "mu"]))
    }
    /// Writes a formula that has a number as value.
    fn quantity(&mut self, depth: usize) -> String {
        let usable: Vec<usize> = (0..self.fixes.len()).collect();
        let vars = self.vars.clone();
        if depth == 0 {
            return if usable.is_empty() || self.m.t.chance(1, 3) {
                format!("val({})", self.m.t.choose(&["0", "1", "1 / 2", "-1", "3"]))
            } else {
                self.leaf(&usable)
            };
        }
        let d = depth - 1;
        match self.m.t.below(10) {
            0 => format!("({} && {})", self.quantity(d), self.quantity(d)),
            1 => format!("({} || {})", self.quantity(d), self.quantity(d)),
            2 if self.m.t.chance(1, 3) => {
                format!("(-(val({})) + {})", self.m.t.below(3), self.quantity(d))
            }
            2 => format!("({} + val({}))", self.quantity(d), self.m.t.below(3)),
            3 => format!("(val(1 / 2) * {})", self.quantity(d)),
            4 => format!("[{}]{}", self.action(1), self.quantity(d)),
            5 | 6 => format!("<{}>{}", self.action(1), self.quantity(d)),
            7 => self.fix(d, true),
            8 => {
                let x = self.m.name("x");
                let word = *self.m.t.choose(&["inf", "sup", "sum"]);
                format!(
                    "({word} {x}: Bool. {})",
                    self.with(vec![(x.clone(), BOOL)], |s| s.quantity(d))
                )
            }
            _ => format!("val({})", self.m.expr(&REAL, &vars, 1)),
        }
    }
}
