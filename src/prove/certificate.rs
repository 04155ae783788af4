//! Certificates as text: the cubes that contain no reachable state. One line for each fact:
//!
//! ```text
//! mu-check certificate 1
//! memory tso
//! count PC in {Wait, CS} = word 32 1 N + -1 S + 0
//! never p1 p2
//!   PC[p1] in {CS}
//!   Turn in {p1, other}          processes: named ones, and all others
//!   p1@0.X[p2] in {True}         view of X[p2] by p1 at its first stage; p1@*: at the end
//!   same A[p1] B[p2]             differ A[p1] B[p2]
//!   before p1 Id[p2]             upto p1 Id[p2]: before it or the same
//!   sum 2 N[p1] + -1 Max + 3 <= 0     also <, =, !=
//!   word 32 1 T[p1] + -1 S + 0 < 1 N + 7   remainders modulo 2^32, from 0 on; also <=, =, !=
//!   fence p1@0                   all writes of p1 are in memory there
//! ```
//!
//! A line `count` states that the number of processes with such a value is the remainder of the sum
//! ([`crate::counts`]); it limits the number of processes to 2^bits - 1.
//!
//! `#1`, `#2` are the processes with these names. Distinct names are distinct processes. The
//! invariant states for each cube that there are no such processes. Stages are defined in
//! [`crate::stages`]. Writing takes time and space linear in the cubes.

use crate::atom::{Atom, Cell, JOINT, OTHER, Point, Signature, SymbolSort};
use crate::cube::Cube;
use crate::residues::ResidueSum;
use crate::simplex::ZeroRelation;
use mu_base::narrow;
use mu_cubicle::system::System;
use std::fmt::Write;

/// The first line of a certificate.
pub const HEADER: &str = "mu-check certificate 1";

struct CertificateWriter<'a> {
    system: &'a System,
    signature: &'a Signature,
}

impl CertificateWriter<'_> {
    fn process(&self, p: u8) -> String {
        let p = usize::from(p);
        if p < self.signature.fixed {
            format!("#{}", p + 1)
        } else {
            format!("p{}", p + 1 - self.signature.fixed)
        }
    }
    fn view(&self, view: (u8, u8)) -> String {
        match view {
            (p, JOINT) => format!("{}@*", self.process(p)),
            (p, stage) => format!("{}@{stage}", self.process(p)),
        }
    }
    fn cell(&self, cell: Cell) -> String {
        let mut text = cell.view().map_or_else(String::new, |v| self.view(v) + ".");
        text += &self.system.symbols[cell.symbol()].name;
        let args: Vec<String> = cell
            .args()
            .iter()
            .take(self.signature.arity[cell.symbol()])
            .map(|p| self.process(*p))
            .collect();
        if !args.is_empty() {
            let _ = write!(text, "[{}]", args.join(","));
        }
        text
    }
    fn set(&self, cell: Cell, set: u64, processes: usize) -> String {
        let mut names: Vec<String> = Vec::new();
        if self.signature.sort(cell) == SymbolSort::Process {
            names.extend(
                (0..narrow::byte(processes))
                    .filter(|p| set & (1 << p) != 0)
                    .map(|p| self.process(p)),
            );
            if set & OTHER != 0 {
                names.push("other".into());
            }
        } else {
            let constructors =
                &self.system.type_of(self.system.symbols[cell.symbol()].sort).constructors;
            let chosen = constructors.iter().enumerate().filter(|(i, _)| set & (1 << i) != 0);
            names.extend(chosen.map(|(_, c)| self.system.constructor(*c).name.clone()));
        }
        format!("{{{}}}", names.join(", "))
    }
    fn point(&self, p: Point) -> String {
        match p {
            Point::Variable(v) => self.process(v),
            Point::Cell(c) => self.cell(c),
        }
    }
    fn side(&self, side: &ResidueSum) -> String {
        let terms = side.terms.iter().map(|(c, f)| format!("{f} {} + ", self.cell(*c)));
        format!("{}{}", terms.collect::<String>(), side.constant)
    }
    fn atom(&self, atom: &Atom, processes: usize) -> String {
        match atom {
            Atom::In(c, set) => format!("{} in {}", self.cell(*c), self.set(*c, *set, processes)),
            Atom::Same(a, b, equal) => format!(
                "{} {} {}",
                if *equal { "same" } else { "differ" },
                self.cell(*a),
                self.cell(*b)
            ),
            Atom::Before(a, b, strict) => format!(
                "{} {} {}",
                if *strict { "before" } else { "upto" },
                self.point(*a),
                self.point(*b)
            ),
            Atom::Linear(l) => {
                let mut text = "sum ".to_string();
                for (c, f) in &l.terms {
                    let _ = write!(text, "{f} {} + ", self.cell(*c));
                }
                let sign = match l.relation {
                    ZeroRelation::Le => "<=",
                    ZeroRelation::Lt => "<",
                    ZeroRelation::Eq => "=",
                    ZeroRelation::Ne => "!=",
                };
                let _ = write!(text, "{} {sign} 0", l.constant);
                text
            }
            Atom::Residues(r) => {
                let sign = match r.relation {
                    ZeroRelation::Le => "<=",
                    ZeroRelation::Lt => "<",
                    ZeroRelation::Eq => "=",
                    ZeroRelation::Ne => "!=",
                };
                format!("word {} {} {sign} {}", r.bits, self.side(&r.left), self.side(&r.right))
            }
            Atom::Fence(p, stage) => format!("fence {}", self.view((*p, *stage))),
        }
    }
}

/// Prints the certificate.
pub fn write(system: &System, signature: &Signature, tso: bool, cubes: &[Cube]) -> String {
    let writer = CertificateWriter { system, signature };
    let mut out = format!("{HEADER}\nmemory {}\n", if tso { "tso" } else { "sc" });
    for count in &signature.counts {
        let values: Vec<String> = {
            let of = system.type_of(system.symbols[count.symbol].sort);
            let chosen = of.constructors.iter().enumerate();
            let chosen = chosen.filter(|(i, _)| count.set & (1 << i) != 0);
            chosen.map(|(_, c)| system.constructor(*c).name.clone()).collect()
        };
        let name = &system.symbols[count.symbol].name;
        let sum = writer.side(&count.sum);
        let _ =
            writeln!(out, "count {name} in {{{}}} = word {} {sum}", values.join(", "), count.bits);
    }
    for cube in cubes {
        out.push_str("never");
        for p in signature.fixed..cube.processes {
            let _ = write!(out, " {}", writer.process(narrow::byte(p)));
        }
        out.push('\n');
        for a in &cube.atoms {
            let _ = writeln!(out, "  {}", writer.atom(a, cube.processes));
        }
    }
    out
}

/// Prints a cube on one line, for users.
pub fn line(system: &System, signature: &Signature, cube: &Cube) -> String {
    let writer = CertificateWriter { system, signature };
    let atoms: Vec<String> = cube.atoms.iter().map(|a| writer.atom(a, cube.processes)).collect();
    if atoms.is_empty() { "true".into() } else { atoms.join(" && ") }
}
