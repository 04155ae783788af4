//! Generator of texts of the parameter layer, each with its expansion.
//!
//! The expansion is generated together with the text, by an evaluation of its own, so that `expand`
//! is compared with the documentation.

use super::driver::Tally;
use super::inside::read;
use super::runs::Folder;
use crate::support::tape::Tape;
use mu_check::base::{Budget, SourceMap};
use mu_check::compile::{Compiled, Confluence};
use mu_check::explore::{self, Silent};
use mu_check::lts::equivalence::{Equivalence, distinguish};
use mu_check::lts::relabel::in_order;
use mu_check::process::linearise;
use mu_check::syntax::template;

/// A value of a parameter or of an expression.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Value {
    Int(i64),
    Bool(bool),
}

struct Layer<'t> {
    t: &'t mut Tape,
    params: Vec<(String, Value)>,
}

/// A text with parameters, options that give some of them values, and the plain text.
pub struct Expansion {
    pub text: String,
    pub defines: String,
    pub plain: String,
}

/// Directives and operators that must be generated, except those of [`operators`].
pub const FORMS: [&str; 12] = [
    ": Pos =",
    ": Nat =",
    ": Int =",
    ": Bool =",
    " where ",
    "; %",
    "${",
    "$for ",
    "..=",
    " join ",
    "$if ",
    "$else $if ",
];

/// Returns the operators of the layer, as its parser lists them.
pub fn operators() -> Vec<String> {
    let text =
        std::fs::read_to_string(crate::support::package("src/syntax/template/expression.rs"))
            .expect("the expressions of the layer");
    let list = text
        .split("const BINARY")
        .nth(1)
        .and_then(|t| t.split("];").next())
        .expect("its operators");
    list.split("(\"").skip(1).filter_map(|rest| rest.split('"').next()).map(String::from).collect()
}

impl Layer<'_> {
    fn int(&mut self, depth: usize) -> (String, i64) {
        let known: Vec<(String, i64)> = self
            .params
            .iter()
            .filter_map(|(n, v)| if let Value::Int(i) = v { Some((n.clone(), *i)) } else { None })
            .collect();
        if depth == 0 {
            if !known.is_empty() && self.t.chance(2, 3) {
                return self.t.choose(&known).clone();
            }
            let n = [0, 1, 2, 3, 7, 1 << 31, (1 << 32) - 1][self.t.below(7)];
            return (n.to_string(), n);
        }
        let (a, x) = self.int(depth - 1);
        if self.t.chance(1, 6) {
            return (format!("-({a})"), -x);
        }
        let (b, y) = self.int(depth - 1);
        // Numbers have 64 bits. Divisors are literals: a loop variable is 0 in some copy.
        let by = 1 + self.t.below(5) as i64;
        match self.t.below(5) {
            0 => (format!("({a} + {b})"), x + y),
            1 => (format!("({a} - {b})"), x - y),
            2 if x.abs() < 1 << 20 && y.abs() < 1 << 20 => (format!("{a} * {b}"), x * y),
            3 => (format!("(({a}) div {by})"), x.div_euclid(by)),
            4 => (format!("(({a}) mod {by})"), x.rem_euclid(by)),
            _ => (format!("({a} + {b})"), x + y),
        }
    }
    fn bool(&mut self, depth: usize) -> (String, bool) {
        let known: Vec<(String, bool)> = self
            .params
            .iter()
            .filter_map(|(n, v)| if let Value::Bool(b) = v { Some((n.clone(), *b)) } else { None })
            .collect();
        if depth == 0 {
            return if known.is_empty() {
                ("true".into(), true)
            } else {
                self.t.choose(&known).clone()
            };
        }
        if self.t.chance(1, 2) {
            let ((a, x), (b, y)) = (self.int(depth - 1), self.int(depth - 1));
            let all = [
                ("==", x == y),
                ("!=", x != y),
                ("<", x < y),
                ("<=", x <= y),
                (">", x > y),
                (">=", x >= y),
            ];
            let (op, value) = *self.t.choose(&all);
            return (format!("({a} {op} {b})"), value);
        }
        let (a, x) = self.bool(depth - 1);
        if self.t.chance(1, 5) {
            return (format!("!({a})"), !x);
        }
        let (b, y) = self.bool(depth - 1);
        let all = [("&&", x && y), ("||", x || y), ("=>", !x || y)];
        let (op, value) = *self.t.choose(&all);
        (format!("({a} {op} {b})"), value)
    }
    /// Copies and choices that a process begins with.
    fn summand(&mut self, depth: usize) -> (String, String) {
        match if depth == 0 { 0 } else { self.t.below(4) } {
            0 => {
                let (e, v) = self.int(1);
                (format!(" + x(${{{e}}})"), format!(" + x({v})"))
            }
            1 => {
                let (from, to) = (self.t.below(3) as i64, self.t.below(4) as i64);
                let inclusive = self.t.chance(1, 2);
                let name = format!("i{depth}");
                let last = if inclusive { to + 1 } else { to };
                let dots = if inclusive { "..=" } else { ".." };
                let (mut text, mut plain) = (String::new(), String::new());
                let body = |s: &mut Self, value: i64, tape: &mut Option<Vec<u32>>| {
                    // Each copy has the same text, so its choices are made once.
                    let mut replayed = tape.as_ref().map(|t| Tape::replay(t.clone()));
                    let before = s.params.len();
                    s.params.push((name.clone(), Value::Int(value)));
                    let found = match &mut replayed {
                        Some(own) => Layer { t: own, params: s.params.clone() }.summand(depth - 1),
                        None => {
                            let mut own = Tape::new(s.t.below(1 << 16) as u64);
                            let found =
                                Layer { t: &mut own, params: s.params.clone() }.summand(depth - 1);
                            *tape = Some(own.choices());
                            found
                        }
                    };
                    s.params.truncate(before);
                    found
                };
                let mut tape = None;
                for value in from..last.max(from + 1) {
                    let (t, p) = body(self, value, &mut tape);
                    text = t;
                    if value < last {
                        plain += &p;
                    }
                }
                let join = if self.t.chance(1, 2) { " join \" \"" } else { "" };
                (format!(" $for {name} in {from} {dots} {to}{join} {{{text} }}"), plain)
            }
            2 => {
                let (c, v) = self.bool(2);
                let (text, plain) = self.summand(depth - 1);
                (format!(" $if {c} {{{text} }}"), if v { plain } else { String::new() })
            }
            _ => {
                let ((c, v), (d, w)) = (self.bool(1), self.bool(1));
                let all =
                    [self.summand(depth - 1), self.summand(depth - 1), self.summand(depth - 1)];
                let chosen = if v {
                    0
                } else if w {
                    1
                } else {
                    2
                };
                (
                    format!(
                        " $if {c} {{{} }} $else $if {d} {{{} }} $else {{{} }}",
                        all[0].0, all[1].0, all[2].0
                    ),
                    all[chosen].1.clone(),
                )
            }
        }
    }
}

/// Writes a text of the layer.
pub fn expansion(t: &mut Tape) -> Expansion {
    let mut layer = Layer { t, params: Vec::new() };
    let (mut text, mut defines) = (String::new(), String::new());
    for i in 0..2 + layer.t.below(3) {
        let (name, value) = (format!("p{i}"), layer.t.below(4) as i64);
        let sort = *layer.t.choose(&["Nat", "Pos", "Int", "Bool"]);
        let (default, own) = match sort {
            "Bool" => (Value::Bool(value > 1), Value::Bool(value % 2 == 0)),
            "Pos" => (Value::Int(value + 1), Value::Int(2 * value + 1)),
            "Int" => (Value::Int(value - 2), Value::Int(-value)),
            _ => (Value::Int(value), Value::Int(value + 2)),
        };
        let word = |v: Value| match v {
            Value::Int(n) => n.to_string(),
            Value::Bool(b) => b.to_string(),
        };
        let limit = if sort == "Bool" {
            format!("{name} || !{name}")
        } else {
            format!("{name} <= 4294967296")
        };
        let limit = if layer.t.chance(1, 2) { format!(" where {limit}") } else { String::new() };
        let doc = if layer.t.chance(1, 2) { " % what it is for" } else { "" };
        text += &format!("$param {name}: {sort} = {}{limit};{doc}\n", word(default));
        let set = layer.t.chance(1, 2);
        if set {
            defines += &format!("-D {name}={} ", word(own));
        }
        layer.params.push((name, if set { own } else { default }));
    }
    let (mut summands, mut plain) = (String::new(), String::new());
    for _ in 0..2 + layer.t.below(3) {
        let (t, p) = layer.summand(2);
        summands += &t;
        plain += &p;
    }
    let (e, v) = layer.int(1);
    let glued = v.rem_euclid(50);
    let head = "act x: Int; y: Bool; % comments have no ${directives}\n";
    Expansion {
        text: format!(
            "{text}{head}proc P_${{({e}) mod 50}} = x(0) . delta;\ninit P_${{({e}) mod 50}}{summands};\n"
        ),
        defines,
        plain: format!("{head}proc P_{glued} = x(0) . delta;\ninit P_{glued}{plain};\n"),
    }
}

/// Compares the result of the stages of `expand` with the plain text, by their transition systems.
pub fn compare_within(name: &str, tape: &mut Tape, tally: &mut Tally) -> Result<(), String> {
    let made = expansion(tape);
    let said = |what: String| {
        format!(
            "{name}: {what}\n--- t.spec {}\n{}--- plain\n{}",
            made.defines, made.text, made.plain
        )
    };
    let defines = made.defines.split_whitespace().filter_map(|word| word.split_once('='));
    let defines: Vec<(String, String)> =
        defines.map(|(name, value)| (name.into(), value.into())).collect();
    let expanded = template::expand("t.spec", &made.text, &defines, &mut SourceMap::new());
    let expanded = expanded.map_err(|d| said(format!("expand: {}", d.message)))?;
    let system = |text: &str| {
        let spec = read(text)?;
        let model = Compiled::new(
            linearise::linearise(&spec, &linearise::LineariserOptions::default())?,
            &Confluence::None,
        )?;
        let options = explore::Options { threads: 1, expected_states: 64, ..Default::default() };
        explore::explore_lts(&model, &options, &Budget::default(), &Silent)
            .map(|(_, lts)| in_order(lts))
    };
    let (a, b) = (system(&expanded.text), system(&made.plain));
    let (a, b) = (
        a.map_err(|d| said(format!("expanded: {}", d.message)))?,
        b.map_err(|d| said(format!("plain: {}", d.message)))?,
    );
    tally.count("expansions", 1);
    match distinguish(&a, &b, Equivalence::STRONG, 1) {
        None => Ok(()),
        Some(difference) => Err(said(format!("compare: {difference:?}"))),
    }
}

/// Compares `expand` with the plain text.
pub fn compare(
    name: &str,
    tape: &mut Tape,
    folder: &Folder,
    tally: &mut Tally,
) -> Result<(), String> {
    let made = expansion(tape);
    folder.write("t.spec", &made.text);
    folder.write("plain.mcrl2", &made.plain);
    let said = |what: String| {
        format!(
            "{name}: {what}\n--- t.spec {}\n{}--- plain\n{}",
            made.defines, made.text, made.plain
        )
    };
    let expanded = folder.run(&format!("expand t.spec {}", made.defines));
    let Some(text) = expanded.json["specification"].as_str() else {
        return Err(said(format!("expand: exit {}: {}", expanded.code, expanded.stderr)));
    };
    folder.write("x.mcrl2", text);
    let run = folder.run("compare x.mcrl2 plain.mcrl2");
    tally.count("expansions", 1);
    if run.code == 0 {
        Ok(())
    } else {
        Err(said(format!("compare: exit {}: {}", run.code, run.stderr)))
    }
}
