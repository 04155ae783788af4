//! Certificates: the obligations of a proof, as a file.
//!
//! In: a finished exploration. Out: for each obligation its position in the formula, the values of
//! the variables with numbered names in the place of numbers, the bounds of differences between
//! these, and the prover's choice. The obligations are an inductive invariant: the first ones are
//! among them, each successor of one is covered by one, none is a violation. [`mod@crate::verify`]
//! checks it. Values are texts of the data language. Cost: linear in the obligations.

use crate::differences::NONE;
use crate::obligations::Prover;
use ahash::AHashMap;
use mu_base::ids::{SortId, VarId};
use mu_base::{Budget, Diagnostic, SourceId, Stage};
use mu_data::expr::{DataSpec, Expr};
use mu_data::print;
use mu_data::signature::Signature;
use mu_data::typecheck::check_expression_with;

/// The first line of a file.
pub const HEAD: &str = "mu-check certificate for every number, version 1";

/// An obligation.
#[derive(Clone, Debug, PartialEq)]
pub struct Obligation {
    /// The position in the formula.
    pub position: usize,
    /// Values of the process parameters, then of the live variables of the formula.
    pub values: Vec<Expr>,
    /// The sorts of the numbers.
    pub sorts: Vec<SortId>,
    /// Bounds `(x, y, c)` for `x - y <= c`; number `k` is `k + 1`, 0 is zero.
    pub bounds: Vec<(usize, usize, i64)>,
    /// The position that the prover chooses, at a choice.
    pub choice: Option<usize>,
}

/// The obligations of a proof.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Certificate {
    /// All obligations.
    pub obligations: Vec<Obligation>,
}

impl Prover<'_> {
    /// Returns the certificate of a proof.
    pub(crate) fn certificate(&mut self) -> Certificate {
        let mut obligations = Vec::new();
        for (at, node) in self.nodes.clone().iter().enumerate() {
            if !self.won[at] {
                continue;
            }
            self.engine.forget_unknowns();
            for (sort, var) in node.sorts.iter().zip(&self.pool) {
                self.engine.rigid(*sort, *var);
            }
            let params = self.question.process.params.iter().map(|p| p.var);
            let vars = params.chain(self.positions.live[node.position].iter().copied());
            let sorts: Vec<SortId> = vars.map(|v| self.signature.var(v).sort).collect();
            let values = node.values.iter().zip(sorts);
            let values = values.map(|(v, sort)| self.engine.to_expr_at(v, sort)).collect();
            let size = node.zone.size();
            let pairs = (0..size).flat_map(|x| (0..size).map(move |y| (x, y)));
            let bounds = pairs
                .filter(|(x, y)| x != y)
                .map(|(x, y)| (x, y, node.zone.bound(x, y)))
                .filter(|b| b.2 != NONE)
                .collect();
            let choice = self.chosen[at].map(|next| self.nodes[next].position);
            let sorts = node.sorts.to_vec();
            obligations.push(Obligation { position: node.position, values, sorts, bounds, choice });
        }
        Certificate { obligations }
    }
}

/// Creates variables for the numbers of a file, of a sort; no operation has their names.
pub(crate) fn numbers(signature: &mut Signature, count: usize, sort: SortId) -> Vec<VarId> {
    let of = |i: usize| signature.free_op_name(format!("number_{i}"));
    let names: Vec<String> = (0..count).map(of).collect();
    names.into_iter().map(|name| signature.fresh_var(name, sort)).collect()
}

impl Certificate {
    /// Returns the text of a file.
    pub fn text(&self, data: &DataSpec) -> String {
        let mut out = format!("{HEAD}\n");
        for o in &self.obligations {
            out += &format!("\nobligation {}\n", o.position);
            if let Some(choice) = o.choice {
                out += &format!("choice {choice}\n");
            }
            let sorts = o.sorts.iter().map(|s| data.signature.sorts.text(*s));
            out += &format!("numbers {}\n", sorts.collect::<Vec<_>>().join(" "));
            for e in &o.values {
                out += &format!("value {}\n", print::expression(&data.signature, e));
            }
            for (x, y, c) in &o.bounds {
                out += &format!("bound {x} {y} {c}\n");
            }
        }
        out
    }

    /// Reads a file. `pool`: variables for numbers of each sort, with the names of the file;
    /// `sorts`: those of the values at a position.
    ///
    /// # Errors
    ///
    /// A line that a certificate cannot have, with its place. A limit of the run.
    pub fn read(
        text: &str,
        data: &mut DataSpec,
        pool: &AHashMap<SortId, Vec<VarId>>,
        sorts: &dyn Fn(usize) -> Option<Vec<SortId>>,
        budget: &Budget,
    ) -> Result<Self, Diagnostic> {
        let mut obligations: Vec<Obligation> = Vec::new();
        let wrong = |(number, line): (usize, &str), part: &str, wanted: &str| {
            let message = format!("`{part}` is not {wanted}");
            Diagnostic::in_part(Stage::File, number as u64 + 1, line, part, message)
        };
        let mut lines = text.lines().enumerate();
        match lines.next() {
            Some((_, HEAD)) => {}
            other => {
                let first = other.map_or("", |l| l.1);
                return Err(wrong((0, first), first, &format!("`{HEAD}`")));
            }
        }
        let mut wanted: Vec<SortId> = Vec::new();
        // Most values occur in many obligations.
        let mut known: AHashMap<(String, SortId, Vec<SortId>), Expr> = AHashMap::new();
        for (at, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
            let (word, rest) = line.split_once(' ').unwrap_or((line, &line[line.len()..]));
            let wrong = |part: &str, wanted: &str| wrong((at, line), part, wanted);
            if at % 256 == 0 {
                budget
                    .check(0)
                    .and_then(|()| budget.check_memory())
                    .map_err(Diagnostic::stopped)?;
            }
            // The parameters of the run, for the reader of the model.
            if word == "define" {
                continue;
            }
            if word == "obligation" {
                let position = rest.trim().parse().map_err(|_| wrong(line, "an obligation"))?;
                wanted = sorts(position).ok_or_else(|| wrong(rest, "a position of the formula"))?;
                obligations.push(Obligation {
                    position,
                    values: Vec::new(),
                    sorts: Vec::new(),
                    bounds: Vec::new(),
                    choice: None,
                });
                continue;
            }
            let Some(o) = obligations.last_mut() else {
                return Err(wrong(line, "an obligation"));
            };
            match word {
                "choice" => {
                    let choice = rest.trim().parse().map_err(|_| wrong(rest, "a position"))?;
                    o.choice = Some(choice);
                }
                "numbers" => {
                    for name in rest.split_whitespace() {
                        let found = pool.keys().find(|s| data.signature.sorts.text(**s) == name);
                        o.sorts.push(*found.ok_or_else(|| wrong(name, "Pos, Nat, or Int"))?);
                    }
                }
                "value" => {
                    let sort = *wanted.get(o.values.len()).ok_or_else(|| {
                        wrong(line, "expected: there are more values than variables")
                    })?;
                    let key = (rest.to_string(), sort, o.sorts.clone());
                    if let Some(e) = known.get(&key) {
                        o.values.push(e.clone());
                        continue;
                    }
                    let vars: Vec<VarId> = o
                        .sorts
                        .iter()
                        .enumerate()
                        .filter_map(|(i, s)| pool.get(s)?.get(i).copied())
                        .collect();
                    let tree = mu_syntax::parse_data(SourceId::FIRST, rest)
                        .map_err(|_| wrong(rest, "an expression"))?;
                    let e = check_expression_with(&tree, data, &vars, Some(sort))
                        .map_err(|why| wrong(rest, &format!("a value: {}", why.message)))?;
                    o.values.push(e.clone());
                    known.insert(key, e);
                }
                "bound" => {
                    let numbers: Vec<i64> =
                        rest.split_whitespace().filter_map(|n| n.parse().ok()).collect();
                    let size = o.sorts.len() as i64;
                    match numbers[..] {
                        [x, y, c] if (0..=size).contains(&x) && (0..=size).contains(&y) => {
                            o.bounds.push((x as usize, y as usize, c));
                        }
                        _ => {
                            return Err(wrong(
                                rest,
                                "two numbers of this obligation and a constant",
                            ));
                        }
                    }
                }
                _ => return Err(wrong(word, "`choice`, `numbers`, `value`, or `bound`")),
            }
        }
        Ok(Self { obligations })
    }
}
