//! Generator of specifications with parameters, of formulas about their numbers, and of the parts
//! of a specification that have rules of their own.
//!
//! Three families: counters of each sort of numbers up to a parameter, which are compared with
//! literals in every disguise of the language (nullary mappings, structured constants, sets, lists,
//! `lambda`, heads of applications, `whr`, quantifiers, patterns); sorts with constants
//! that a parameter counts; components that a parameter counts.

use super::data::{BOOL, Maker, Vars};
use super::driver::formulas;
use crate::support::tape::Tape;

/// Texts of the parts that can be parsed alone, with their rules.
pub fn parts(t: &mut Tape) -> Vec<(&'static str, String)> {
    let mut m = Maker::new(t);
    m.may_declare = false;
    let sort = m.plain();
    let data = m.expr(&sort, &Vars::new(), 2);
    let condition = m.expr(&BOOL, &Vars::new(), 2);
    let labels =
        ["tau".to_string(), "a".into(), format!("an({})", m.number(0)), "a|b|ae(e1)".into()];
    let label = m.t.choose(&labels).clone();
    vec![
        ("data_file", data),
        ("sort_file", sort.text()),
        ("sort_file", format!("struct d | e({})?is_e", sort.text())),
        ("process_file", format!("({condition}) -> a . P(n = 1, m = 2) <> delta")),
        ("process_file", "(g)(1)[2 -> 3] == h -> a".into()),
        ("process_file", "f(1)(2)[3 -> 4] . (g[e -> 1] == h) -> a".into()),
        ("multi_action_file", label),
        ("multi_action_file", "a|b(1)".into()),
        ("specification", String::new()),
        ("specification", "sort A, B;".into()),
        ("specification", "init delta;".into()),
        ("sort_file", "struct d".into()),
        ("formula_file", "delay@#!1 - f(1) - f(1)(2)".into()),
        ("formula_file", "sort S; cons s: S; glob n: Nat; act c: S; form true;".into()),
    ]
}

/// A specification with parameters, and formulas.
#[derive(Clone, Debug)]
pub struct Parameterised {
    pub text: String,
    /// Parameters that may have any value, with the least one.
    pub any: Vec<(&'static str, u64)>,
    pub formulas: Vec<String>,
    /// Literals of the text, around which instances are compared.
    pub literals: Vec<u64>,
    /// The family.
    pub family: &'static str,
}

/// Writes a case of a family.
pub fn parameterised_case(t: &mut Tape, family: &str) -> Parameterised {
    match family {
        "counters" => {
            Counters { t, declared: String::new(), names: 0, literals: Vec::new(), sort: "Nat" }
                .case()
        }
        "sorts" => sorts(t),
        _ => components(t),
    }
}

struct Counters<'t> {
    t: &'t mut Tape,
    declared: String,
    names: usize,
    literals: Vec<u64>,
    /// Sort of the counter.
    sort: &'static str,
}

impl Counters<'_> {
    fn name(&mut self, letter: &str) -> String {
        self.names += 1;
        format!("{letter}{}", self.names)
    }
    fn declare(&mut self, text: String) {
        self.declared += &text;
    }
    fn literal(&mut self) -> u64 {
        let found = *self.t.choose(&[4, 7, 1, 0, 2, 5, 8, 10, 3]);
        self.literals.push(found);
        found
    }
    /// Returns the bound of the counter, in some disguise.
    fn bound_text(&mut self) -> String {
        match self.t.below(10) {
            0..=3 => "M".into(),
            4 => "${N}".into(),
            5 => "${N + 1}".into(),
            6 => {
                let k = self.name("k");
                self.declare(format!("map {k}: Nat;\neqn {k} = M;\n"));
                k
            }
            7 => {
                let (s, k) = (self.name("S"), self.name("k"));
                let l = self.literal();
                self.declare(format!(
                    "sort {s} = struct conf_{k}(low_{k}: Nat, high_{k}: Nat);\nmap {k}: {s};\neqn {k} = conf_{k}({l}, M);\n"
                ));
                format!("high_{k}({k})")
            }
            8 => {
                let k = self.name("f");
                self.declare(format!(
                    "map {k}: Bool -> Nat;\nvar b: Bool;\neqn {k}(b) = if(b, M, 0);\n"
                ));
                format!("{k}(true)")
            }
            _ => "(m_ whr m_ = M end)".into(),
        }
    }
    /// Returns a number that is a literal, in some disguise.
    fn number(&mut self) -> String {
        let l = self.literal();
        let k = self.name("k");
        match self.t.below(12) {
            0..=2 => l.to_string(),
            3 | 4 => {
                self.declare(format!("map {k}: Nat;\neqn {k} = {l};\n"));
                k
            }
            5 => {
                let j = self.name("k");
                self.declare(format!("map {k}, {j}: Nat;\neqn {k} = {j} + 1;\n    {j} = {l};\n"));
                self.literals.push(l + 1);
                k
            }
            6 => {
                let s = self.name("S");
                self.declare(format!("sort {s} = struct cfg_{k}(lim_{k}: Nat);\nmap {k}: {s};\neqn {k} = cfg_{k}({l});\n"));
                format!("lim_{k}({k})")
            }
            7 => format!("(lambda v_: Bool. if(v_, {l}, 0))(true)"),
            8 => format!("(v_ whr v_ = {l} end)"),
            9 => format!("head([{l}, 1])"),
            10 => "${K}".into(),
            _ => {
                self.declare(format!(
                    "map {k}: Bool -> Nat;\neqn {k}(true) = {l};\n    {k}(false) = 1;\n"
                ));
                format!("{k}(true)")
            }
        }
    }
    /// Returns a test of a number, in some disguise.
    fn test(&mut self, n: &str) -> String {
        let k = self.name("g");
        let x = self.number();
        let sort = self.sort;
        match self.t.below(16) {
            0..=2 => format!("{n} {} {x}", self.t.choose(&[">", "==", ">=", "<", "!="])),
            3 => format!("{n} in {{{x}, 1}} && {n} > 2"),
            4 => {
                self.declare(format!(
                    "map {k}: FSet({sort});\neqn {k} = {{3, {}}};\n",
                    self.literals.last().unwrap_or(&7).max(&1)
                ));
                format!("({n} in {k} && {n} > 3)")
            }
            5 => format!("(lambda v_: {sort}. v_ > {x})({n})"),
            6 => {
                self.declare(format!(
                    "map {k}: {sort} -> Bool;\neqn {k} = lambda v: {sort}. v > {x};\n"
                ));
                format!("{k}({n})")
            }
            7 => {
                self.declare(format!("map {k}: {sort} -> {sort} -> Bool;\nvar x, y: {sort};\neqn {k}(x)(y) = x < y;\n"));
                let l = self.literal().max(1);
                format!("{k}({l})({n})")
            }
            8 => {
                self.declare(format!(
                    "map {k}: {sort} -> Bool;\nvar v: {sort};\neqn v > {x} -> {k}(v) = true;\n    v <= {x} -> {k}(v) = false;\n"
                ));
                format!("{k}({n})")
            }
            9 => {
                let l = self.literal().max(1);
                self.declare(format!("map {k}: {sort} -> Bool;\nvar v: {sort};\neqn {k}({l}) = true;\n    v != {l} -> {k}(v) = false;\n"));
                format!("{k}({n})")
            }
            10 => format!("(exists v_: Nat. v_ < 3 && {n} == v_ + {x})"),
            11 => format!("{n} in [{x}, {x}]"),
            12 => format!("{n} in {{v_: {sort} | v_ > {x}}}"),
            13 => format!("max({n}, {x}) == {n}"),
            14 => format!("({n} > v_ whr v_ = {x} end)"),
            _ => format!("if({n} > {x}, true, {n} == M)"),
        }
    }
    /// Returns the next value of a counter.
    fn step(&mut self, n: &str) -> String {
        let k = self.name("h");
        let sort = self.sort;
        match self.t.below(12) {
            0..=4 => format!("{n} + 1"),
            5 => format!("succ({n})"),
            6 => format!("{n} + {}", 2 + self.t.below(2)),
            7 => {
                self.declare(format!(
                    "map {k}: {sort} -> {sort};\nvar v: {sort};\neqn {k}(v) = v + 1;\n"
                ));
                format!("{k}({n})")
            }
            8 => {
                self.declare(format!(
                    "map {k}: ({sort} -> {sort}) # {sort} -> {sort};\nvar f: {sort} -> {sort}; v: {sort};\neqn {k}(f, v) = f(f(f(v)));\n"
                ));
                format!("{k}(lambda v_: {sort}. v_ + 1, {n})")
            }
            9 => format!("(lambda v_: {sort}. v_ + 1)({n})"),
            10 => {
                let by = 1 + self.t.below(2);
                self.declare(format!("map {k}: Pos;\neqn {k} = {by};\n"));
                format!("{n} + {k}")
            }
            _ => format!("if({n} == {}, {n} + 2, {n} + 1)", self.literal()),
        }
    }
    fn case(mut self) -> Parameterised {
        self.sort = *self.t.choose(&["Nat", "Nat", "Nat", "Nat", "Nat", "Pos", "Int", "Real"]);
        let (sort, start) = (self.sort, if self.sort == "Pos" { 1 } else { 0 });
        let two = self.t.chance(1, 6);
        let bound = self.bound_text();
        let less = *self.t.choose(&["<", "<", "<", "<="]);
        let step = self.step("n");
        let vars = self.t.below(3);
        let second = if two {
            "R_".to_string()
        } else if vars == 2 {
            "M".into()
        } else {
            String::new()
        };
        let mut summands =
            vec![format!("(n {less} {bound}) -> u(n) . C({step}{})", ["", ", m", ", m"][vars])];
        if vars > 0 {
            let other = match self.t.below(4) {
                0 => format!("(m < n) -> w(m) . C(n, {})", self.step("m")),
                1 if !second.is_empty() => format!("(m < {second}) -> w(m) . C(n, m + 1)"),
                2 => "(n == M) -> w(m) . C(n, n)".into(),
                _ => format!("({}) -> w(n) . C(n, n)", self.test("n")),
            };
            summands.push(other);
        }
        for _ in 0..1 + self.t.below(2) {
            let tested = if vars > 0 && self.t.chance(1, 3) { "m" } else { "n" };
            let test = self.test(tested);
            let same = ["C(n)", "C(n, m)", "C(n, m)"][vars];
            let after = match self.t.below(4) {
                0 => "delta".to_string(),
                1 => [
                    format!("C({start})"),
                    format!("C({start}, m)"),
                    format!("C({start}, {start})"),
                ][vars]
                    .clone(),
                _ => same.into(),
            };
            summands.push(format!(
                "({test}) -> {} . {after}",
                self.t.choose(&["bad(n)", "bad(n)", "b", "p(n)"])
            ));
        }
        if self.t.chance(1, 4) {
            summands.push(format!(
                "sum k: {sort}. (k < n && k < M) -> w(k) . {}",
                ["C(n)", "C(n, k)", "C(n, m)"][vars]
            ));
        }
        // A value that holds two counters.
        if sort != "Real" && self.t.chance(1, 6) {
            let pair = self.name("S");
            let (a, b) = (format!("a_{pair}"), format!("b_{pair}"));
            self.declare(format!("sort {pair} = struct c_{pair}({a}: {sort}, {b}: {sort});\n"));
            let condition = match self.t.below(4) {
                0 => format!("{a}(z) < n && {b}(z) < M"),
                1 => format!("{a}(z) < {b}(z) && {b}(z) < n"),
                2 => format!("{a}(z) < n && n < {b}(z) && {b}(z) < M"),
                _ => format!("z == c_{pair}(n, {start}) || z == c_{pair}({start}, n)"),
            };
            let bound = if sort == "Int" {
                format!("0 <= {a}(z) && 0 <= {b}(z) && ")
            } else {
                String::new()
            };
            let label = self.t.choose(&["w", "bad", "p"]).to_string();
            let of = self.t.choose(&[&a, &b]).to_string();
            summands.push(format!(
                "sum z: {pair}. ({bound}({condition})) -> {label}({of}(z)) . {}",
                ["C(n)", "C(n, m)", "C(n, m)"][vars]
            ));
        }
        let params = ["n", "n, m", "n, m"][vars];
        let mut text = format!("proc C({params}: {sort}) = {};\n", summands.join("\n  + "));
        let first = ["C(S0)", "C(S0, S0)", "C(S0, S0)"][vars].replace("S0", &start.to_string());
        text += &self.other_components(&first);
        let mut head = "$param N: Nat = 3;  % the bound\n$param K: Nat = 4;\n".to_string();
        self.literals.push(4);
        let mut any = vec![("N", 0)];
        if two {
            head += "$param R: Nat = 2;\n";
            self.declare("map R_: Nat;\neqn R_ = ${R};\n".into());
            any.push(("R", 0));
        } else if self.t.chance(1, 8) {
            any.push(("K", 0));
        }
        let formulas = (0..formulas()).map(|_| self.formula()).collect();
        let text = format!(
            "{head}map M: Nat;\neqn M = ${{N}};\n{}act u, w, bad, p, q, r, s, t: {sort}; b, c; many: List({sort}) # Nat;\n{text}",
            self.declared
        );
        Parameterised { text, any, formulas, literals: self.literals, family: "counters" }
    }
    /// Writes the components other than the counter, and the initial process.
    fn other_components(&mut self, first: &str) -> String {
        let sort = self.sort;
        match self.t.below(9) {
            0 | 8 => format!(
                "proc S = b . p(1) . q(1) . delta + c . p(2) . q({}) . delta;\ninit allow({{u, w, bad, b, c, p, q}}, S || {first});\n",
                1 + self.t.below(2)
            ),
            1 => {
                let (x, y) = (self.number(), self.test("k"));
                format!(
                    "proc S(k: {sort}) = sum j: {sort}. r(j) . S(j) + ({y}) -> q(k) . S(k) + (k == {x}) -> c . S(k);\n\
                     init allow({{t, w, bad, b, c, p, q}}, comm({{u|r -> t}}, S(1) || {first}));\n"
                )
            }
            2 => format!(
                "proc S(l: List({sort})) = sum j: {sort}. (#l < 2) -> r(j) . S(j |> l) + (#l > 0) -> q(head(l)) . S(tail(l));\n\
                 init allow({{t, w, bad, b, c, p, q}}, comm({{u|r -> t}}, S([]) || {first}));\n"
            ),
            3 => format!(
                "proc S(k: {sort}, f: Bool) = sum j: {sort}. (!f) -> r(j) . S(j, true) + f -> q(k) . S(k, false);\n\
                 init hide({{w}}, allow({{t, w, bad, b, c, p, q}}, comm({{u|r -> t}}, S(1, false) || {first})));\n"
            ),
            4 => format!("init hide({{u}}, {first});\n"),
            _ => format!("init {first};\n"),
        }
    }
    /// Returns a term for a number in a formula.
    fn term(&mut self, vars: &[String]) -> String {
        match self.t.below(5) {
            0 => self.literal().max(1).to_string(),
            1 if self.sort != "Pos" => "M".into(),
            2 if self.sort != "Pos" => "0".into(),
            _ if vars.is_empty() => self.literal().max(1).to_string(),
            _ => self.t.choose(vars).clone(),
        }
    }
    fn guard(&mut self, vars: &[String]) -> String {
        let x = self.t.choose(vars).clone();
        let others: Vec<String> = vars.iter().filter(|v| **v != x).cloned().collect();
        let y = self.term(&others);
        let plus = ["", "", " + 1", " + 2"][self.t.below(4)];
        format!("{x} {} {y}{plus}", self.t.choose(&["<=", "<", "==", "!=", ">", ">="]))
    }
    fn label(&mut self, vars: &[String]) -> String {
        match self.t.below(9) {
            0 => self.t.choose(&["b", "c"]).to_string(),
            1 => format!(
                "(exists y_: {}. {}(y_))",
                self.sort,
                self.t.choose(&["bad", "u", "t", "q", "p"])
            ),
            2 => {
                let t = self.term(vars);
                format!(
                    "(exists y_: {}. val(y_ {} {t}) && {}(y_))",
                    self.sort,
                    self.t.choose(&[">", "<=", "=="]),
                    self.t.choose(&["u", "w", "t"])
                )
            }
            3 => format!("!({})", self.label(vars)),
            4 => "true".into(),
            _ => {
                let t = self.term(vars);
                format!("{}({t})", self.t.choose(&["u", "bad", "p", "q", "w", "t"]))
            }
        }
    }
    fn formula(&mut self) -> String {
        let sort = self.sort;
        match self.t.below(14) {
            0 | 1 => format!("[true* . (exists x: {sort}. bad(x))]false"),
            2 => format!("[true* . {}]false", self.label(&[])),
            3 => format!("[true* . {} . true* . {}]false", self.label(&[]), self.label(&[])),
            4 => "mu X. [true]X".into(),
            5 => format!("mu X. [!({})]X", self.label(&[])),
            6 => {
                let x = vec!["x".to_string()];
                format!(
                    "forall x: {sort}. val({}) => [true* . {} . true* . {}]false",
                    self.guard(&x),
                    self.label(&x),
                    self.label(&x)
                )
            }
            7 => {
                // A quantifier in a recursion that chooses: the choice may differ from value to
                // value.
                let x = vec!["x".to_string()];
                let label = |s: &mut Self| {
                    let plain = s.t.chance(3, 4);
                    if plain {
                        format!("{}(x)", s.t.choose(&["p", "q", "u", "bad"]))
                    } else {
                        s.label(&x)
                    }
                };
                let (first, second) = (label(self), label(self));
                let guard = if self.t.chance(1, 2) {
                    "true".into()
                } else {
                    format!("val({})", self.guard(&x))
                };
                let step = *self.t.choose(&["([b]X || [c]X)", "(<b>X || <c>X)", "([b]X && [c]X)"]);
                format!(
                    "nu X. ({step} && (forall x: {sort}. ({guard} => [{first}][{second}]false)))"
                )
            }
            8 => "[true*]<true>true".to_string(),
            _ => {
                let depth = 2 + self.t.below(3);
                self.state(depth, &mut Vec::new(), &mut Vec::new())
            }
        }
    }
    fn state(
        &mut self,
        depth: usize,
        vars: &mut Vec<String>,
        fixes: &mut Vec<(String, bool)>,
    ) -> String {
        if depth == 0 {
            return match self.t.below(4) {
                0 => "true".into(),
                1 if !vars.is_empty() => format!("val({})", self.guard(vars)),
                _ if !fixes.is_empty() => {
                    let (name, data) = self.t.choose(fixes).clone();
                    if !data {
                        return name;
                    }
                    let t = self.term(vars);
                    format!("{name}({t})")
                }
                _ => "false".into(),
            };
        }
        let d = depth - 1;
        match self.t.below(12) {
            0..=2 => format!("[{}]{}", self.label(vars), self.state(d, vars, fixes)),
            3 => format!("[true* . {}]{}", self.label(vars), self.state(d, vars, fixes)),
            4 => format!("<{}>{}", self.label(vars), self.state(d, vars, fixes)),
            5 => format!("({} || {})", self.state(d, vars, fixes), self.state(d, vars, fixes)),
            6 | 7 => format!("({} && {})", self.state(d, vars, fixes), self.state(d, vars, fixes)),
            8 | 9 => {
                let natural = if self.sort == "Pos" { "Pos" } else { "Nat" };
                let (x, sort) = (self.name("x"), *self.t.choose(&[self.sort, natural]));
                let sort = if self.sort == "Real" { "Real" } else { sort };
                vars.push(x.clone());
                let guard = self.guard(vars);
                let inner = self.state(d, vars, fixes);
                vars.retain(|v| *v != x);
                // A quantifier of the other kind over numbers needs a bound above.
                if self.t.chance(5, 6) {
                    format!("(forall {x}: {sort}. (val({guard}) => {inner}))")
                } else {
                    format!("(exists {x}: {natural}. (val({x} <= 3) && {inner}))")
                }
            }
            _ => {
                let (x, data) = (self.name("X"), self.t.chance(1, 3));
                let word = *self.t.choose(&["nu", "nu", "mu"]);
                fixes.push((x.clone(), data));
                let v = self.name("x");
                if data {
                    vars.push(v.clone());
                }
                let inner =
                    format!("{} && {}", self.state(d, vars, fixes), self.state(d, vars, fixes));
                vars.retain(|known| *known != v);
                fixes.pop();
                let first = self.literal().max(1);
                let param =
                    if data { format!("({v}: {} = {first})", self.sort) } else { String::new() };
                format!("({word} {x}{param}. {inner})")
            }
        }
    }
}

/// Formulas about values of a sort.
fn about_values(t: &mut Tape, sort: &str, actions: &[&str]) -> String {
    let act = |t: &mut Tape, x: &str| format!("{}({x})", t.choose(actions));
    let (a, b, c) = (act(t, "x"), act(t, "y"), act(t, "x"));
    match t.below(10) {
        0 => format!("forall x: {sort}. [true* . {a}]false"),
        1 => format!("forall x: {sort}. [(!{a})* . {c}]false"),
        2 => format!("forall x, y: {sort}. val(x != y) => [true* . {a} . true* . {b}]false"),
        3 => format!("forall x, y: {sort}. val(x != y) => [true* . {a} . (!{c})* . {b}]false"),
        4 => format!("[true* . (exists x: {sort}. {a}) . (exists x: {sort}. {a})]false"),
        5 => "mu X. [true]X".into(),
        6 => "[true*]<true>true".into(),
        7 => format!("nu X. (([go]X || [stop]X) && (forall x: {sort}. [{a}][{c}]false))"),
        8 => {
            format!(
                "forall x, y, z: {sort}. val(x != y && y != z && x != z) => [true* . {a} . true* . {b} . true* . {}]false",
                act(t, "z")
            )
        }
        _ => format!("forall x: {sort}. nu X. ([!{a}]X && [{c}]mu Y. [!go]Y)"),
    }
}

/// Generates a sort with constants that a parameter counts: values are chosen, stored, compared.
fn sorts(t: &mut Tape) -> Parameterised {
    let keep = *t.choose(&["x", "x", "y", "if(x == y, x, y)"]);
    let put = *t.choose(&["", "(x != y) -> ", "(x == y) -> "]);
    let mut summands = vec![
        format!("sum x: V. {put}in_(x) . P({keep}, {})", t.choose(&["true", "!f"])),
        format!(
            "{}out(y) . P(y, {})",
            t.choose(&["", "f -> ", "(!f) -> "]),
            t.choose(&["false", "f"])
        ),
    ];
    match t.below(5) {
        0 => summands.push("sum x, z: V. (x != z && f) -> both(x, z) . P(z, false)".into()),
        1 => summands.push("f -> go . P(y, f)".into()),
        2 => summands.push("sum x: V. (x != y && f) -> go . out(x) . P(y, false)".into()),
        3 => summands.push("(y == v_none) -> stop . P(y, f)".into()),
        _ => {}
    }
    let store = t.below(3);
    let other = match store {
        0 => String::new(),
        1 => "proc Q(l: List(V)) = sum x: V. (#l < 2) -> out_(x) . Q(x |> l) + (#l > 0) -> back(head(l)) . Q(tail(l));\n".into(),
        _ => "proc Q(m: V -> Bool) = sum x: V. out_(x) . Q(m[x -> true]) + sum x: V. (m(x)) -> back(x) . Q(m);\n".to_string(),
    };
    let init = match store {
        0 => "init P(v_none, false);".to_string(),
        1 => "init allow({in_, given, back, both, go, stop}, comm({out|out_ -> given}, P(v_none, false) || Q([])));".into(),
        _ => "init allow({in_, given, back, both, go, stop}, comm({out|out_ -> given}, P(v_none, false) || Q(lambda x: V. false)));".into(),
    };
    let text = format!(
        "$param K: Nat = 2;\nsort V = struct v_none $for i in 0 .. K join \"\" {{ | v${{i}} }};\nact in_, out, out_, given, back: V; both: V # V; go, stop;\n\
         proc P(y: V, f: Bool) = {};\n{other}{init}\n",
        summands.join("\n  + ")
    );
    let formulas =
        (0..formulas()).map(|_| about_values(t, "V", &["in_", "out", "given", "back"])).collect();
    Parameterised { text, any: vec![("K", 0)], formulas, literals: Vec::new(), family: "sorts" }
}

/// Generates components that a parameter counts, with shared data: a counter, a lock, a list of
/// all.
fn components(t: &mut Tape) -> Parameterised {
    let free = 1 + t.below(2);
    let shared = match t.below(4) {
        0 => format!("L(n: Nat) = (n > 0) -> sum i: Id. enter_s(i) . L(Int2Nat(n - 1)) + {}sum i: Id. leave_s(i) . L(n + 1)", t.choose(&["", "(n < 2) -> "])),
        1 => "L(n: Nat) = sum i: Id. (n > 0) -> enter_s(i) . K_(i) + (n < 0) -> sum i: Id. leave_s(i) . L(n);\n     K_(i: Id) = leave_s(i) . L(1)".into(),
        2 => "L(n: Nat) = sum i: Id. enter_s(i) . L(n) + sum i: Id. leave_s(i) . L(n)".into(),
        _ => format!("L(n: Nat) = M(all);\n     M(l: List(Id)) = (l != []) -> enter_s(head(l)) . M(tail(l)) + sum i: Id. leave_s(i) . M({})", t.choose(&["l", "all"])),
    };
    // The list of all needs a process that begins with it.
    let (shared, begin) = if shared.contains("M(all)") {
        (shared.replacen("L(n: Nat) = M(all);\n     ", "", 1), "M(all)".to_string())
    } else {
        (shared, format!("L({free})"))
    };
    let own = match t.below(4) {
        0 => "P(i: Id) = enter_p(i) . leave_p(i) . P(i)",
        1 => "P(i: Id) = enter_p(i) . (leave_p(i) . P(i) + work(i) . leave_p(i) . P(i))",
        2 => "P(i: Id) = enter_p(i) . leave_p(i) . delta",
        _ => "P(i: Id) = enter_p(i) . work(i) . leave_p(i) . P(i) + work(i) . P(i)",
    };
    let list = if begin == "M(all)" {
        "map all: List(Id);\neqn all = [$for i in 0 .. K join \", \" { c${i} }];\n"
    } else {
        ""
    };
    let text = format!(
        "$param K: Pos = 2;\nsort Id = struct $for i in 0 .. K join \" | \" {{ c${{i}} }};\n{list}act enter, leave, enter_s, leave_s, enter_p, leave_p, work: Id; go, stop;\n\
         proc {own};\n     {shared};\ninit allow({{enter, leave, work}}, comm({{enter_p|enter_s -> enter, leave_p|leave_s -> leave}}, $for i in 0 .. K join \"\" {{ P(c${{i}}) || }} {begin}));\n"
    );
    let formulas = (0..formulas())
        .map(|_| match t.below(4) {
            0 => "forall i, j: Id. (val(i != j) => [true* . enter(i) . (!leave(i))* . enter(j)]false)".to_string(),
            1 => "forall i, j, k: Id. (val(i != j && i != k && j != k) => [true* . enter(i) . (!leave(i))* . enter(j) . (!(leave(i) || leave(j)))* . enter(k)]false)".into(),
            _ => about_values(t, "Id", &["enter", "leave", "work"]),
        })
        .collect();
    Parameterised {
        text,
        any: vec![("K", 1)],
        formulas,
        literals: Vec::new(),
        family: "components",
    }
}
