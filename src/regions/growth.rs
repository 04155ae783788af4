//! Growth of counters in an evaluation: the largest sum of literals added along any path of a value
//! through it.
//!
//! Input: the types of [`crate::flow`]. Output: [`Flow::growth`] of an expression. Each addition
//! around a value, and each call of a mapping that adds, adds a literal once. So the sum along
//! nested terms is an upper bound, if each called function is known at its call.
//! `Flow::compute_growth` therefore checks two conditions: no mapping that adds is recursive, and
//! functions as values (passed lambda terms, mappings as arguments) add nothing if unknown
//! functions are called (variables, results of other calls). Cost: equations times length of call
//! chains.

use crate::flow::{Flow, FlowSort};
use mu_base::ids::OpId;
use mu_base::{Diagnostic, Span, Stage};
use mu_data::expr::{Binder, Expr, ExprKind};
use mu_data::signature::Builtin;
use std::mem::take;

impl Flow<'_> {
    /// Computes the largest offsets that mappings add to counters. Error: one without a bound.
    pub(crate) fn compute_growth(&mut self) -> Result<(), Diagnostic> {
        let data = self.data;
        // Growth propagates through at most as many mappings as there are, unless a mapping is
        // recursive.
        for round in 0..=data.equations.len() + 1 {
            let mut changed = None;
            for (i, equation) in data.equations.iter().enumerate() {
                let Some(op) = equation.lhs.head() else { continue };
                self.vars.extend(self.equation_var_types[i].iter().cloned());
                let growth = equation
                    .condition
                    .iter()
                    .chain([&equation.rhs])
                    .map(|e| self.growth(e))
                    .max()
                    .unwrap_or(0);
                equation.vars.iter().for_each(|v| drop(self.vars.remove(v)));
                let known = self.growth_of_mapping.entry(op).or_insert(0);
                if growth > *known {
                    *known = growth;
                    changed = Some(equation.span);
                }
            }
            match changed {
                None => break,
                Some(span) if round > data.equations.len() => {
                    let text = "a number that flows together with a symbolic parameter grows in a recursive mapping";
                    return Err(Diagnostic::new(Stage::Unsupported, text).or_span(span));
                }
                Some(_) => {}
            }
        }
        self.functions()
    }

    /// Rejects functions that add to counters if some called function is unknown.
    fn functions(&mut self) -> Result<(), Diagnostic> {
        let data = self.data;
        let mut uses = Uses::default();
        let roots = take(&mut self.roots);
        for e in &roots {
            self.uses(e, &mut uses);
        }
        let mut from: Vec<OpId> = Vec::new();
        roots.iter().for_each(|e| e.each_op(&mut |op| from.push(op)));
        self.roots = roots;
        for i in self.reachable(from) {
            let equation = &data.equations[i];
            self.vars.extend(self.equation_var_types[i].iter().cloned());
            for e in [&equation.lhs, &equation.rhs].into_iter().chain(&equation.condition) {
                self.uses(e, &mut uses);
            }
            equation.vars.iter().for_each(|v| drop(self.vars.remove(v)));
        }
        match uses {
            Uses { adds: Some(adds), calls: Some(calls) } => {
                let text = "a function adds to a number that flows together with a symbolic parameter, and the number of its calls is unknown";
                let error = Diagnostic::new(Stage::Unsupported, text).or_span(adds);
                Err(if calls == Span::default() {
                    error
                } else {
                    error.note("an unknown function is called").or_span(calls)
                })
            }
            _ => Ok(()),
        }
    }

    /// Records functions as values that add to counters, and calls of unknown functions.
    fn uses(&mut self, e: &Expr, uses: &mut Uses) {
        stacker::maybe_grow(128 << 10, 4 << 20, || match &e.kind {
            ExprKind::Var(_) | ExprKind::Number(_) => {}
            ExprKind::Op(op) => {
                // A constant has the growth of its definition; a function may be called anywhere.
                if self.is_function(e) && self.growth_of_mapping.get(op).is_some_and(|g| *g > 0) {
                    uses.adds.get_or_insert(e.span);
                }
            }
            ExprKind::Apply(head, args) => {
                match &head.kind {
                    ExprKind::Op(_) => {}
                    ExprKind::Bind(Binder::Lambda, _, body) => self.uses(body, uses),
                    _ => {
                        uses.calls.get_or_insert(e.span);
                        self.uses(head, uses);
                    }
                }
                // A call that returns a function: the lambda terms in it are recorded separately.
                args.iter().for_each(|a| self.uses(a, uses));
            }
            ExprKind::Bind(binder, _, body) => {
                if *binder == Binder::Lambda && self.growth(body) > 0 {
                    uses.adds.get_or_insert(e.span);
                }
                self.uses(body, uses);
            }
            ExprKind::Where(body, definitions) => {
                definitions.iter().for_each(|d| self.uses(&d.1, uses));
                self.uses(body, uses);
            }
        });
    }

    fn is_function(&self, e: &Expr) -> bool {
        matches!(self.signature.sorts.kind(e.sort), mu_data::sort::SortKind::Function(..))
    }

    /// Returns the largest offset that the evaluation of an expression adds to a counter, including
    /// literals and offsets of constants.
    pub fn growth(&mut self, e: &Expr) -> i64 {
        stacker::maybe_grow(128 << 10, 4 << 20, || match &e.kind {
            ExprKind::Var(_) | ExprKind::Number(_) => 0,
            ExprKind::Op(op) => self.growth_of_mapping.get(op).copied().unwrap_or(0),
            ExprKind::Apply(_, _) if self.literal(e).is_some() => 0,
            ExprKind::Apply(head, args) => {
                let inner = args.iter().map(|a| self.growth(a)).max().unwrap_or(0);
                let own = match e.as_builtin(self.signature) {
                    Some((Builtin::Add, [a, b])) => match (self.literal(a), self.literal(b)) {
                        (_, Some(n)) | (Some(n), _) if self.may_be_counter(e) => n,
                        _ => 0,
                    },
                    Some((Builtin::Succ, _)) if self.may_be_counter(e) => 1,
                    Some(_) => 0,
                    None => self.growth(head),
                };
                inner + own
            }
            ExprKind::Bind(_, _, body) => self.growth(body),
            ExprKind::Where(body, definitions) => {
                let inner = definitions.iter().map(|d| self.growth(&d.1)).max().unwrap_or(0);
                inner + self.growth(body)
            }
        })
    }

    /// True if the value of an expression may be a counter, or if its class is not determined, as
    /// for a choice of literals. A size is not one, since [`Flow::verify`] rejects sizes that flow
    /// together with counters.
    pub fn may_be_counter(&mut self, e: &Expr) -> bool {
        let known = self.class_count();
        match self.infer(e) {
            FlowSort::Number(class) => {
                self.is_counter(class)
                    || self.find(class).index() >= known && !self.is_marked(class)
            }
            _ => false,
        }
    }
}

/// Uses of functions.
#[derive(Default)]
struct Uses {
    /// The position of a function as a value that adds to a counter.
    adds: Option<Span>,
    /// The position of a call of an unknown function.
    calls: Option<Span>,
}
