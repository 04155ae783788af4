//! Naive evaluation of a linear process, state by state, for the check of certificates.
//!
//! In: a linear process, values of its parameters as texts. Out: the steps of a state. Terms are
//! evaluated by the naive rewriter (`data::naive`), summand by summand. A variable of a sum has the
//! value that an equation of the condition gives it, or all elements of its finite sort. Functions
//! over finite sorts, sets, and bags are compared by their contents. Neither the compiled process
//! nor its engine takes part. Cost: one evaluation of a summand for each value of the parameters
//! that occur in it. What the rewriter does not decide is an error.

use mu_base::ids::{SortId, VarId};
use mu_base::{Diagnostic, SourceId, Stage, narrow};
use mu_conform::every_length::verify::NaiveMachine;
use mu_conform::every_length::verify::labels::LabelPart;
use mu_data::expr::{DataSpec, Expr, ExprKind, Substitution};
use mu_data::naive::Naive;
use mu_data::print;
use mu_data::signature::{Builtin, Signature};
use mu_data::sort::SortKind;
use mu_data::typecheck::check_expression;
use mu_process::linear::{LinearProcess, Summand};
use mu_zones::verify::equation_value;
use std::collections::HashMap;
use std::rc::Rc;

/// Limit on the rewrite steps of one evaluation.
const STEP_LIMIT: u64 = 1_000_000;

/// A step of a summand: its label, and the parameters that it changes.
type SummandStep = (Vec<LabelPart>, Vec<(usize, u32)>);

/// A linear process that is evaluated naively.
pub(super) struct NaiveProcess<'p> {
    process: &'p LinearProcess,
    data: DataSpec,
    naive: Naive,
    /// Values by number, and the numbers of their contents.
    values: Vec<Expr>,
    numbers: HashMap<(SortId, String), u32>,
    /// The parameters that occur in each summand.
    used: Vec<Vec<usize>>,
    known: HashMap<(usize, Vec<u32>), Rc<Vec<SummandStep>>>,
    /// Texts of all labels found so far.
    labels: HashMap<Vec<LabelPart>, String>,
}

fn undecided_error(text: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Stage::Unsupported, text.into())
}

impl<'p> NaiveProcess<'p> {
    /// Creates an evaluator. Error: the process has times or probabilities.
    pub(super) fn new(process: &'p LinearProcess) -> Result<NaiveProcess<'p>, Diagnostic> {
        if process.is_timed() || process.is_probabilistic() {
            return Err(undecided_error(
                "machines with times or probabilities have no certificate",
            ));
        }
        let used = process.summands.iter().map(|s| {
            let mut free = Vec::new();
            let results =
                s.actions.iter().flat_map(|a| &a.args).chain(s.updates.iter().map(|u| &u.1));
            std::iter::once(&s.guard).chain(results).for_each(|e| e.free_vars(&mut free));
            let occurs = |i: &usize| free.contains(&process.params[*i].var);
            (0..process.params.len()).filter(occurs).collect()
        });
        Ok(NaiveProcess {
            process,
            data: process.data.clone(),
            naive: Naive::new(&process.data, STEP_LIMIT),
            values: Vec::new(),
            numbers: HashMap::new(),
            used: used.collect(),
            known: HashMap::new(),
            labels: HashMap::new(),
        })
    }

    /// Returns the texts of the labels found so far.
    pub(super) fn label_texts(&self) -> impl Iterator<Item = &str> + Clone {
        self.labels.values().map(String::as_str)
    }

    fn text(&self, e: &Expr) -> String {
        print::expression(self.naive.signature(), e)
    }

    fn normal(&mut self, e: &Expr) -> Result<Expr, Diagnostic> {
        self.naive.allow(STEP_LIMIT);
        self.naive.normal(e).ok_or_else(|| {
            undecided_error(format!("`{}` is not decided", self.text(e))).or_span(e.span)
        })
    }

    fn truth(&mut self, e: &Expr) -> Result<bool, Diagnostic> {
        let normal = self.normal(e)?;
        let known = normal.as_bool(self.naive.signature());
        known.ok_or_else(|| undecided_error(format!("`{}` is not decided", self.text(&normal))))
    }

    /// Returns the number of a value.
    fn number(&mut self, e: &Expr) -> Result<u32, Diagnostic> {
        let normal = self.normal(e)?;
        let contents = self.contents(&normal)?;
        let next = narrow::index(self.values.len());
        let number = *self.numbers.entry((normal.sort, contents)).or_insert(next);
        if number == next {
            self.values.push(normal);
        }
        Ok(number)
    }

    /// Returns a text that two values of a sort share exactly if they are equal.
    fn contents(&mut self, e: &Expr) -> Result<String, Diagnostic> {
        let kind = self.naive.signature().sorts.kind(e.sort).clone();
        match kind {
            SortKind::Function(domain, range) => {
                let mut arguments: Vec<Vec<Expr>> = vec![Vec::new()];
                for sort in domain {
                    let Some(all) = self.naive.elements(sort) else { return Ok(self.text(e)) };
                    let longer = |a: &Vec<Expr>| {
                        all.iter()
                            .map(|x| [&a[..], std::slice::from_ref(x)].concat())
                            .collect::<Vec<_>>()
                    };
                    arguments = arguments.iter().flat_map(longer).collect();
                }
                let mut out = String::from("[");
                for a in arguments {
                    let at = Expr::new(ExprKind::Apply(e.clone(), a), range, e.span);
                    let value = self.normal(&at)?;
                    out += &self.contents(&value)?;
                    out.push(';');
                }
                Ok(out + "]")
            }
            SortKind::Set(_) | SortKind::FSet(_) | SortKind::Bag(_) | SortKind::FBag(_) => {
                let (entries, rest) = entries(self.naive.signature(), e);
                let mut texts = Vec::new();
                for entry in entries {
                    let mut text = String::new();
                    for part in &entry {
                        text += &self.contents(part)?;
                        text.push(':');
                    }
                    texts.push(text);
                }
                texts.sort();
                Ok(format!("{{{}|{}}}", texts.join(";"), self.text(&rest)))
            }
            _ => match &e.kind {
                ExprKind::Apply(head, args) if matches!(head.kind, ExprKind::Op(_)) => {
                    let mut out = self.text(head);
                    for a in args.iter() {
                        out.push('(');
                        out += &self.contents(a)?;
                        out.push(')');
                    }
                    Ok(out)
                }
                _ => Ok(self.text(e)),
            },
        }
    }

    /// Returns the steps of a summand for these values of the parameters that occur in it.
    fn summand(&mut self, i: usize, key: &[u32]) -> Result<Vec<SummandStep>, Diagnostic> {
        let process = self.process;
        let summand = &process.summands[i];
        let values: Substitution = self.used[i]
            .iter()
            .zip(key)
            .map(|(p, v)| (process.params[*p].var, self.values[*v as usize].clone()))
            .collect();
        let mut solutions = Vec::new();
        let left = summand.guard.conjuncts(self.naive.signature());
        self.solve(summand, summand.sum_vars.clone(), left, values, &mut solutions)?;
        let mut out = Vec::new();
        for values in solutions {
            let mut label = Vec::new();
            for act in &summand.actions {
                let mut arguments = Vec::new();
                for e in &act.args {
                    let value = self.normal(&e.substitute(&values))?;
                    arguments.push(self.text(&value));
                }
                let action = process.actions[act.action.index()].name.clone();
                label.push(LabelPart { action, arguments });
            }
            label.sort();
            let mut changed = Vec::new();
            for (at, e) in &summand.updates {
                changed.push((*at, self.number(&e.substitute(&values))?));
            }
            out.push((label, changed));
        }
        Ok(out)
    }

    /// Collects the values of variables that satisfy all conditions.
    fn solve(
        &mut self,
        summand: &Summand,
        mut open: Vec<VarId>,
        left: Vec<Expr>,
        values: Substitution,
        out: &mut Vec<Substitution>,
    ) -> Result<(), Diagnostic> {
        // Conditions without open variables come first.
        let mut rest = Vec::new();
        for c in left {
            let mut free = Vec::new();
            c.free_vars(&mut free);
            if free.iter().any(|v| open.contains(v)) {
                rest.push(c);
            } else if !self.truth(&c.substitute(&values))? {
                return Ok(());
            }
        }
        if open.is_empty() {
            out.push(values);
            return Ok(());
        }
        let signature = self.naive.signature();
        let value = open.iter().enumerate().find_map(|(i, v)| {
            let is_variable = |x: &Expr| x.kind == ExprKind::Var(*v);
            let found = rest.iter().find_map(|c| equation_value(signature, c, &is_variable, &open));
            found.map(|e| (i, e))
        });
        let (i, choices) = match value {
            Some((i, e)) => (i, vec![self.normal(&e.substitute(&values))?]),
            None => {
                let sort = signature.var(open[0]).sort;
                let all = self.naive.elements(sort);
                let all = all.ok_or_else(|| {
                    undecided_error("a sum over a sort without a finite list of elements")
                        .or_span(summand.span())
                })?;
                (0, all)
            }
        };
        let var = open.remove(i);
        for value in choices {
            let mut values = values.clone();
            values.insert(var, value);
            self.solve(summand, open.clone(), rest.clone(), values, out)?;
        }
        Ok(())
    }
}

impl NaiveMachine for NaiveProcess<'_> {
    fn parameters(&self) -> usize {
        self.process.params.len()
    }

    fn read(&mut self, values: &[Vec<String>]) -> Result<Vec<Vec<u32>>, Diagnostic> {
        let mut all = Vec::new();
        for (param, texts) in self.process.params.iter().zip(values) {
            let sort = self.data.signature.var(param.var).sort;
            let mut own = Vec::new();
            for text in texts {
                let wrong = |d: Diagnostic| {
                    let message = format!("`{text}` in the certificate is no value: {}", d.message);
                    Diagnostic::new(Stage::File, message)
                };
                let tree = mu_syntax::parse_data(SourceId::default(), text).map_err(wrong)?;
                let e = check_expression(&tree, &mut self.data, Some(sort)).map_err(wrong)?;
                let mut free = Vec::new();
                e.free_vars(&mut free);
                if !free.is_empty() {
                    return Err(wrong(Diagnostic::new(Stage::Type, "it has variables")));
                }
                own.push(e);
            }
            all.push(own);
        }
        // The values may need operations that the process does not.
        self.naive = Naive::new(&self.data, STEP_LIMIT);
        all.iter().map(|own| own.iter().map(|e| self.number(e)).collect()).collect()
    }

    fn initial(&mut self) -> Result<Vec<u32>, Diagnostic> {
        let process = self.process;
        process.params.iter().map(|p| self.number(&p.init)).collect()
    }

    fn steps(&mut self, state: &[u32]) -> Result<Vec<(Vec<LabelPart>, Vec<u32>)>, Diagnostic> {
        let mut out = Vec::new();
        for i in 0..self.process.summands.len() {
            let key: Vec<u32> = self.used[i].iter().map(|p| state[*p]).collect();
            let steps = match self.known.get(&(i, key.clone())) {
                Some(known) => known.clone(),
                None => {
                    let steps = Rc::new(self.summand(i, &key)?);
                    self.known.insert((i, key), steps.clone());
                    steps
                }
            };
            for (label, changed) in steps.iter() {
                if !label.is_empty() && !self.labels.contains_key(label) {
                    let parts: Vec<String> = label.iter().map(LabelPart::text).collect();
                    self.labels.insert(label.clone(), parts.join("|"));
                }
                let mut next = state.to_vec();
                changed.iter().for_each(|(at, value)| next[*at] = *value);
                out.push((label.clone(), next));
            }
        }
        Ok(out)
    }
}

/// Returns the entries of a set or bag, each with its arguments, and the rest.
fn entries(signature: &Signature, e: &Expr) -> (Vec<Vec<Expr>>, Expr) {
    let (mut out, mut at) = (Vec::new(), e.clone());
    while let Some((Builtin::SetInsert | Builtin::BagInsert, args)) = at.as_builtin(signature) {
        let Some((rest, own)) = args.split_last() else { break };
        out.push(own.to_vec());
        let rest = rest.clone();
        at = rest;
    }
    (out, at)
}
