//! Obligations of a certificate in SMT-LIB 2, one text each, for any solver: each must be
//! unsatisfiable.
//!
//! Processes are integers, the named ones distinct; a cell is a constant, in memory now or at a
//! stage. Constructors of an enumeration are integers from 0. The instances of the certificate's
//! cubes for the named processes are negated; stages of an instance are mapped to the stages of the
//! obligation as in the verifier.
//!
//! A counting invariant adds what it says of the named processes: the remainder of its sum is at
//! least the number of those that count, and at most the largest number of processes minus the
//! number of those that do not. Its own obligations are of kind `count-initiation` (initially no
//! process counts and the remainder is zero; without counting invariants) and `count` (a transition
//! changes the remainder by the number of processes that begin to count).

use super::counts::Count;
use super::inclusion::{Places, ends_last, instance};
use super::logic::{
    CertificateCell, Fact, JOINT, OTHER, Point, ValueKind, members, singleton, stages_of,
};
use super::sums::Sign;
use super::words::WordSum;
use super::{ExcludedCube, Verifier, choices};
use mu_base::narrow;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Printer of obligations.
pub(super) struct SmtWriter<'a> {
    pub(super) verifier: &'a Verifier<'a>,
    pub(super) write: &'a mut dyn FnMut(&str, &str),
    pub(super) number: usize,
}

struct Text<'a> {
    verifier: &'a Verifier<'a>,
    named: usize,
    cells: BTreeSet<CertificateCell>,
    body: String,
}

impl Text<'_> {
    fn cell(&mut self, c: &CertificateCell) -> String {
        self.cells.insert(*c);
        let mut name = self.verifier.system.symbols[c.symbol()].name.clone();
        for a in c.args() {
            let _ = write!(name, " p{a}");
        }
        if let Some((p, s)) = c.look {
            let _ = write!(name, " by p{p} at {s}");
        }
        format!("|{name}|")
    }
    fn point(&mut self, p: &Point) -> String {
        match p {
            Point::Named(n) => format!("p{n}"),
            Point::Held(c) => self.cell(c),
        }
    }
    fn number(n: i128, real: bool) -> String {
        let text = format!("{}{}", n.unsigned_abs(), if real { ".0" } else { "" });
        if n < 0 { format!("(- {text})") } else { text }
    }
    fn fact(&mut self, fact: &Fact) -> String {
        match fact {
            Fact::Among(c, set) => {
                let name = self.cell(c);
                let process = self.verifier.kinds[c.symbol()] == ValueKind::Process;
                let mut parts: Vec<String> = members(set & !singleton(OTHER))
                    .map(|v| {
                        if process { format!("(= {name} p{v})") } else { format!("(= {name} {v})") }
                    })
                    .collect();
                if set & singleton(OTHER) != 0 {
                    let distinct: Vec<String> =
                        (0..self.named).map(|p| format!("(distinct {name} p{p})")).collect();
                    parts.push(format!("(and true {})", distinct.join(" ")));
                }
                format!("(or false {})", parts.join(" "))
            }
            Fact::Twins(a, b, same) => {
                let (a, b) = (self.cell(a), self.cell(b));
                if *same { format!("(= {a} {b})") } else { format!("(distinct {a} {b})") }
            }
            Fact::Ahead(a, b, strict) => {
                let (a, b) = (self.point(a), self.point(b));
                format!("({} {a} {b})", if *strict { "<" } else { "<=" })
            }
            Fact::Sum(s) => {
                let real =
                    s.terms.iter().any(|t| self.verifier.kinds[t.0.symbol()] == ValueKind::Real);
                let mut sum = format!("(+ {}", Self::number(s.constant, real));
                for (c, f) in s.terms.iter() {
                    let name = self.cell(c);
                    let _ = write!(sum, " (* {} {name})", Self::number(*f, real));
                }
                sum.push_str(if s.terms.is_empty() { " 0)" } else { ")" });
                let zero = Self::number(0, real);
                match s.sign {
                    Sign::AtMost => format!("(<= {sum} {zero})"),
                    Sign::Less => format!("(< {sum} {zero})"),
                    Sign::Zero => format!("(= {sum} {zero})"),
                    Sign::NotZero => format!("(distinct {sum} {zero})"),
                }
            }
            Fact::Words(w) => {
                let (left, right) =
                    (self.remainder(&w.left, w.bits), self.remainder(&w.right, w.bits));
                match w.sign {
                    Sign::AtMost => format!("(<= {left} {right})"),
                    Sign::Less => format!("(< {left} {right})"),
                    Sign::Zero => format!("(= {left} {right})"),
                    Sign::NotZero => format!("(distinct {left} {right})"),
                }
            }
            Fact::Fence(..) => "true".into(),
            Fact::ExcludedCube => "false".into(),
        }
    }
    /// Prints the remainder of a sum of words.
    fn remainder(&mut self, part: &WordSum, bits: u32) -> String {
        let mut sum = format!("(mod (+ {} 0", Self::number(part.constant, false));
        for (c, f) in &part.terms {
            let name = self.cell(c);
            let _ = write!(sum, " (* {} {name})", Self::number(*f, false));
        }
        format!("{sum}) {})", 1i128 << bits)
    }
    /// Asserts what a counting invariant says of the named processes.
    fn assert_count(&mut self, count: &Count) {
        let (mut inside, mut outside) = ("(+ 0 0".to_string(), "(+ 0 0".to_string());
        for p in 0..narrow::byte(self.named) {
            let counts = self.fact(&count.counts(p));
            let _ = write!(inside, " (ite {counts} 1 0)");
            let _ = write!(outside, " (ite {counts} 0 1)");
        }
        let sum = self.remainder(&count.sum, count.bits);
        self.assert(&format!("(<= {inside}) {sum})"));
        self.assert(&format!("(<= (+ {sum} {outside})) {})", count.most));
    }
    fn assert(&mut self, text: &str) {
        let _ = writeln!(self.body, "(assert {text})");
    }
    /// Asserts the instances of `init` for the named processes.
    fn assert_initial(&mut self) {
        for dnf in self.verifier.initial(self.named) {
            let cubes: Vec<String> = dnf
                .iter()
                .map(|c| {
                    let facts: Vec<String> = c.iter().map(|f| self.fact(f)).collect();
                    format!("(and true {})", facts.join(" "))
                })
                .collect();
            self.assert(&format!("(or false {})", cubes.join(" ")));
        }
    }
    fn finish(self) -> String {
        let mut out = String::from("(set-logic ALL)\n");
        for p in 0..self.named {
            let _ = writeln!(out, "(declare-const p{p} Int)");
        }
        if self.named > 1 {
            let names: Vec<String> = (0..self.named).map(|p| format!("p{p}")).collect();
            let _ = writeln!(out, "(assert (distinct {}))", names.join(" "));
        }
        for p in 0..self.verifier.system.fixed as usize {
            for q in p + 1..self.named {
                let _ = writeln!(out, "(assert (< p{p} p{q}))");
            }
        }
        let cells = self.cells.clone();
        let mut names = Text {
            verifier: self.verifier,
            named: self.named,
            cells: BTreeSet::new(),
            body: String::new(),
        };
        for c in &cells {
            let name = names.cell(c);
            let kind = self.verifier.kinds[c.symbol()];
            let _ = writeln!(
                out,
                "(declare-const {name} {})",
                if kind == ValueKind::Real { "Real" } else { "Int" }
            );
            if let ValueKind::Values(n) = kind {
                let _ = writeln!(out, "(assert (and (<= 0 {name}) (< {name} {n})))");
            }
            if let ValueKind::Word(bits) = kind {
                let n = 1u64 << bits;
                let _ = writeln!(out, "(assert (and (<= 0 {name}) (< {name} {n})))");
            }
            // If all processes are named, a cell contains one of them.
            if kind == ValueKind::Process && self.verifier.world(self.named).closed {
                let values = (0..self.named).map(|p| format!("(= {name} p{p})"));
                let values = values.collect::<Vec<_>>().join(" ");
                let _ = writeln!(out, "(assert (or false {values}))");
            }
        }
        out + &self.body + "(check-sat)\n"
    }
}

impl SmtWriter<'_> {
    fn emit(&mut self, kind: &str, mut text: Text<'_>) {
        for count in &self.verifier.counts {
            text.assert_count(count);
        }
        self.emit_without_counts(kind, text);
    }
    fn emit_without_counts(&mut self, kind: &str, text: Text<'_>) {
        self.number += 1;
        (self.write)(&format!("{:05}-{kind}", self.number), &text.finish());
    }
    /// Prints the obligation that the cube has no initial state.
    pub(super) fn initiation(&mut self, cube: usize) {
        let v = self.verifier;
        let never = &v.cubes[cube];
        let named = never.named.max(1);
        let mut text = Text { verifier: v, named, cells: BTreeSet::new(), body: String::new() };
        for f in v.at_the_start(never) {
            let fact = text.fact(&f);
            text.assert(&fact);
        }
        text.assert_initial();
        self.emit("initiation", text);
    }
    /// Prints the obligation that a counting invariant holds initially.
    pub(super) fn count_initiation(&mut self, count: &Count) {
        let v = self.verifier;
        let named = v.named_for_count();
        let mut text = Text { verifier: v, named, cells: BTreeSet::new(), body: String::new() };
        let wrong = count.wrong_initially(named);
        let wrong: Vec<String> = wrong.iter().map(|f| text.fact(f)).collect();
        text.assert(&format!("(or false {})", wrong.join(" ")));
        text.assert_initial();
        self.emit_without_counts("count-initiation", text);
    }
    /// Prints the obligation that the cube is inside those of the certificate.
    pub(super) fn inside(&mut self, kind: &str, cube: &ExcludedCube) {
        let v = self.verifier;
        let cube = &v.with_a_name(cube);
        let mut text =
            Text { verifier: v, named: cube.named, cells: BTreeSet::new(), body: String::new() };
        for f in &cube.facts {
            let fact = text.fact(f);
            text.assert(&fact);
        }
        let fixed = v.system.fixed as usize;
        for inner in v.cubes.iter().filter(|c| c.named <= cube.named) {
            for names in choices(inner.named, cube.named, true) {
                if (0..fixed).any(|p| usize::from(names[p]) != p) {
                    continue;
                }
                for places in placements(v, cube, inner, &names) {
                    let facts: Vec<String> = inner
                        .facts
                        .iter()
                        .map(|f| instance(&v.kinds, f, &names, &places, cube.named))
                        .map(|f| text.fact(&f))
                        .collect();
                    text.assert(&format!("(not (and true {}))", facts.join(" ")));
                }
            }
        }
        self.emit(kind, text);
    }
}

/// Returns the possible maps of the stages of the inner cube to stages of the outer one, or to now,
/// with fences where the inner has them.
fn placements(
    verifier: &Verifier<'_>,
    cube: &ExcludedCube,
    inner: &ExcludedCube,
    names: &[u8],
) -> Vec<Places> {
    let is_alone = verifier.concerns_one_process(inner);
    let views: BTreeSet<(u8, u8)> = inner.facts.iter().flat_map(stages_of).collect();
    let mut list: Vec<Places> = vec![Vec::new()];
    let shares = cube.facts.iter().flat_map(stages_of).any(|v| v.1 == JOINT);
    for view in &views {
        let process = names[usize::from(view.0)];
        let stages: BTreeSet<u8> =
            cube.facts.iter().flat_map(stages_of).filter(|v| v.0 == process).map(|v| v.1).collect();
        let mut options: Vec<Option<u8>> = stages.into_iter().map(Some).chain([None]).collect();
        if view.1 == JOINT && !is_alone {
            options = shares.then_some(Some(JOINT)).into_iter().chain([None]).collect();
        }
        let fits = |so_far: &Places, option: &Option<u8>| {
            let late = |s: Option<u8>| s.map_or(u16::MAX, u16::from);
            let ordered = so_far.iter().all(|(v, s)| v.0 != view.0 || late(*s) <= late(*option));
            let shared = view.1 != JOINT || so_far.iter().all(|(v, s)| v.1 != JOINT || s == option);
            let fence = !inner.facts.contains(&Fact::Fence(view.0, view.1))
                || option.is_none_or(|s| {
                    cube.facts
                        .iter()
                        .any(|f| matches!(f, Fact::Fence(q, t) if *q == process && *t <= s))
                });
            ordered && shared && fence
        };
        list = list
            .iter()
            .flat_map(|p| {
                options
                    .iter()
                    .filter(|o| fits(p, o))
                    .map(|o| [p.as_slice(), &[(*view, *o)]].concat())
                    .collect::<Vec<_>>()
            })
            .collect();
    }
    list.retain(ends_last);
    list
}
