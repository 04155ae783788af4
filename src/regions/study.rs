//! Preparation of a formula on a process with symbolic parameters for checking case by case.
//!
//! Input: the compiled process, the formula. Output: cases, and for each case the abstract model
//! and the formula with the case's numbers for its quantified variables. The granularity of numbers
//! does not affect soundness ([`Levels`]). At first as many cases as possible are joined, and slots
//! that are neither increased nor ordered distinguish only the predicates of the formula. Then
//! cases are separated; then all numbers are distinguished by intervals; then the constants that
//! the process compares with are cuts as well. Cost: two passes over process and formula.

use crate::abstraction::{AbstractionFacts, Content, GroupFacts, Regions};
use crate::audit::draw::{Draw, literals_of};
use crate::audit::view::FormulaView;
use crate::cuts::{Case, CutLine, CutTerm, CutTest, Distinction, Grain, LabelPredicate};
use crate::flow::{Flow, FlowSort};
use crate::formula_constants::ConstantCollector;
use crate::numbers::{Layout, Layouts};
use crate::rewrite::{QuantifierClass, Rewriter, negation_normal_form, substitute};
use crate::symbolic_constants::SymbolicConstants;
use ahash::AHashMap;
use mu_base::ids::{OpId, SortId, VarId};
use mu_base::{Diagnostic, Span, Stage, narrow};
use mu_compile::Compiled;
use mu_data::engine::{Engine, Program};
use mu_data::expr::{Equation, Expr, ExprKind, Substitution};
use mu_data::signature::{Builtin, OpKind, Signature};
use mu_formula::typed::{Action, Regular, StateKind, TypedFormula, TypedStateFormula};
use mu_model::Model;

/// The granularity of numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Levels {
    /// As [`Levels::Coarse`], with joined cases: see [`CutLine::joint_cases`].
    Joined,
    /// Slots with numbers that are only copied and compared for equality have the granularity of
    /// labels.
    Coarse,
    /// All slots by intervals.
    Intervals,
    /// By intervals, with cuts at the constants that the process compares with.
    Guards,
}

impl Levels {
    /// All levels, from coarse to fine.
    pub const ALL: [Levels; 4] =
        [Levels::Joined, Levels::Coarse, Levels::Intervals, Levels::Guards];
}

/// Limit on the number of valuations that are enumerated for cases; beyond it the study is an
/// error.
const MAX_VALUATIONS: u64 = 5_000_000;

/// A formula with its cases and abstract models.
pub struct Study<'a> {
    compiled: &'a Compiled,
    defined: &'a SymbolicConstants,
    formula: TypedFormula,
    /// The numbers that the formula quantifies over.
    outer_variables: Vec<VarId>,
    facts: AbstractionFacts,
    line: CutLine,
    grains: Vec<Grain>,
    cases: Vec<Case>,
}

impl<'a> Study<'a> {
    /// Analyses a formula over the data of the compiled process. Errors describe the obstacle, with
    /// its position.
    pub fn new(
        compiled: &'a Compiled,
        defined: &'a SymbolicConstants,
        formula: &TypedFormula,
        level: Levels,
    ) -> Result<Self, Diagnostic> {
        let process = compiled.process();
        let mut signature = formula.data.signature.clone();
        let data = formula.data.clone();
        let operations: Vec<OpId> = defined.rigid.iter().map(|r| r.op).collect();
        let mut flow = Flow::new(&data, &formula.actions, &operations);
        let vars: Vec<VarId> = defined.rigid.iter().map(|r| r.var).collect();
        flow.add_process(process, &vars);
        for (_, e) in &defined.initial {
            flow.add_root(e);
        }
        let plain = negation_normal_form(&mut signature, &formula.formula, true);
        type_state(&mut flow, &plain, &mut AHashMap::new());
        flow.verify()?;
        let mut rewriter = Rewriter {
            class: QuantifierClass::Counters(&mut flow),
            signature: &mut signature,
            outer_variables: Vec::new(),
        };
        let rewritten = rewriter.formula(&plain)?;
        let outer_variables = rewriter.outer_variables;

        let mut least = vec![0];
        least.extend(defined.rigid.iter().map(|r| r.least));
        let mut terms: AHashMap<VarId, CutTerm> = AHashMap::new();
        for (i, r) in defined.rigid.iter().enumerate() {
            terms.insert(r.var, CutTerm::of(i + 1));
        }
        for v in &outer_variables {
            terms.insert(*v, CutTerm::of(least.len()));
            least.push(i64::from(signature.var(*v).sort == mu_data::sort::basic::POS));
        }
        let constants: AHashMap<OpId, CutTerm> = defined
            .constants
            .iter()
            .filter_map(|(op, e)| plain_term(&flow, &signature, &terms, e).map(|t| (*op, t)))
            .collect();
        let mut collector =
            ConstantCollector::new(&mut flow, &signature, terms.clone(), constants, least.len());
        collector.state(&rewritten)?;
        let mut tests = collector.tests();
        let mut predicates = collector.predicates;
        let mut facts = facts(compiled, defined, &mut flow, &signature)?;
        if facts.layouts.positive {
            // Separate zero from the numbers of sort Pos.
            predicates.push(LabelPredicate::Less(CutTerm::literal(1)));
        }
        predicates.sort_unstable();
        predicates.dedup();
        let mut cuts: Vec<CutTerm> = predicates.iter().flat_map(|p| p.cuts()).collect();

        facts.parameters = vars;
        facts.initial =
            defined.initial.iter().map(|(p, e)| (narrow::index(*p), e.clone())).collect();
        if level >= Levels::Guards {
            for summand in &process.summands {
                bounds(&flow, &signature, &terms, &summand.guard, &mut cuts);
            }
        }
        cuts.sort_unstable();
        cuts.dedup();
        let mut literals = flow.literals();
        literals.extend(initial_numbers(compiled, &facts, &signature)?);
        for cut in &cuts {
            // Determine the interval of each number of the initial state.
            tests.extend(literals.iter().map(|l| Distinction::side(*cut, CutTerm::literal(*l))));
            tests.extend(
                (1..=defined.rigid.len())
                    .filter(|_| !defined.initial.is_empty())
                    .map(|b| Distinction::side(*cut, CutTerm::of(b))),
            );
        }
        let grains = if level <= Levels::Coarse {
            grains(compiled, &facts, &signature)
        } else {
            vec![Grain::Intervals; facts.contents.len()]
        };
        let line = CutLine { least, cuts, tests, predicates };
        if line.valuations().is_none_or(|n| n > MAX_VALUATIONS) {
            let text = "the constants and literals that the formula and the process compare have too many possible orders";
            return Err(Diagnostic::new(Stage::Unsupported, text));
        }
        let cases = if level == Levels::Joined { line.joint_cases() } else { line.cases() };
        let formula =
            TypedFormula { data: formula.data.clone(), formula: rewritten, ..formula.clone() };
        let formula =
            TypedFormula { data: mu_data::expr::DataSpec { signature, ..formula.data }, ..formula };
        Ok(Self { compiled, defined, formula, outer_variables, facts, line, grains, cases })
    }

    /// Returns the cases.
    pub fn cases(&self) -> &[Case] {
        &self.cases
    }

    /// Returns the rewritten formula, with the quantified numbers as free variables.
    pub(crate) fn rewritten_formula(&self) -> &TypedFormula {
        &self.formula
    }

    /// Returns the sorts of the symbolic parameters, then of the quantified numbers.
    pub(crate) fn sorts(&self) -> Vec<SortId> {
        let signature = &self.formula.data.signature;
        let rigid = self.defined.rigid.iter().map(|r| signature.op(r.op).sort);
        rigid.chain(self.outer_variables.iter().map(|v| signature.var(*v).sort)).collect()
    }

    /// Returns their names.
    pub(crate) fn names(&self) -> Vec<String> {
        let names = self.defined.rigid.iter().map(|r| r.name.clone());
        names
            .chain(
                self.outer_variables
                    .iter()
                    .map(|v| self.formula.data.signature.var(*v).name.clone()),
            )
            .collect()
    }

    /// Returns the tests with outcomes in cases.
    pub(crate) fn tests(&self) -> Vec<CutTest> {
        self.line.tests_of_cases()
    }

    /// Fails if a random valuation belongs to no case.
    ///
    /// # Errors
    ///
    /// Internal, with the valuation.
    pub fn all_covered(&self, seed: u64) -> Result<(), Diagnostic> {
        let mut literals = literals_of(self.compiled.process(), &self.formula.data);
        literals.extend(FormulaView::new(&self.formula.formula).literals());
        let mut draw = Draw::new(seed, &literals, self.compiled.engine());
        let tests = self.tests();
        if draw.valuate(&self.sorts(), |v| !self.cases.iter().any(|case| case.has(&tests, v))) {
            let values = self
                .names()
                .into_iter()
                .zip(&draw.valuation[1..])
                .map(|(name, n)| format!("{name} = {n}"));
            let text = format!(
                "no case of the abstraction contains {}",
                values.collect::<Vec<_>>().join(", ")
            );
            return Err(Diagnostic::new(Stage::Internal, text));
        }
        Ok(())
    }

    /// Returns the symbolic constants with their values in a valuation.
    pub(crate) fn constants(&self, valuation: &[i64]) -> Vec<(OpId, i64)> {
        self.defined.rigid.iter().zip(&valuation[1..]).map(|(r, n)| (r.op, *n)).collect()
    }

    /// Returns the values of the process parameters that represent them.
    pub(crate) fn parameter_values(&self, valuation: &[i64]) -> Vec<Expr> {
        let signature = &self.formula.data.signature;
        self.defined
            .rigid
            .iter()
            .zip(&valuation[1..])
            .map(|(r, n)| Expr::number(*n, signature.op(r.op).sort))
            .collect()
    }

    /// Returns the values of the numbers that the formula quantifies over.
    pub(crate) fn outer_values(&self, valuation: &[i64]) -> Substitution {
        let signature = &self.formula.data.signature;
        let values = self.outer_variables.iter().zip(&valuation[1 + self.defined.rigid.len()..]);
        values.map(|(v, n)| (*v, Expr::number(*n, signature.var(*v).sort))).collect()
    }

    /// Describes a case for users, by its representative values.
    pub fn describe(&self, case: &Case) -> String {
        let names = self.defined.rigid.iter().map(|r| r.name.clone());
        let names = names.chain(
            self.outer_variables.iter().map(|v| self.formula.data.signature.var(*v).name.clone()),
        );
        names
            .zip(&case.valuation[1..])
            .map(|(name, n)| format!("{name} = {n}"))
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// Returns the representative values of the parameters of a case.
    pub fn values(&self, case: &Case) -> Vec<(String, usize)> {
        let names = self.defined.rigid.iter().map(|r| r.name.clone());
        names
            .zip(&case.valuation[1..])
            .filter_map(|(name, n)| Some((name, usize::try_from(*n).ok()?)))
            .collect()
    }

    /// Returns the abstract model of a case.
    pub fn model<'s>(&'s self, case: &'s Case) -> Result<Regions<'s>, Diagnostic> {
        Regions::new(self.compiled, &self.facts, &self.line, case, &self.grains)
    }

    /// Returns the formula of a case: closed, with the case's values, and simplified.
    pub fn formula(&self, case: &Case) -> Result<TypedFormula, Diagnostic> {
        let mut formula = self.formula.clone();
        let signature = &formula.data.signature;
        let first = 1 + self.defined.rigid.len();
        let by: Substitution = (self.outer_variables.iter().zip(&case.valuation[first..]))
            .map(|(v, n)| (*v, Expr::number(*n, signature.var(*v).sort)))
            .collect();
        formula.formula = substitute(&formula.formula, &by);
        for (rigid, n) in self.defined.rigid.iter().zip(&case.valuation[1..]) {
            let sort = signature.op(rigid.op).sort;
            let lhs = Expr::op(signature, rigid.op);
            let span = Span::default();
            formula.data.equations.push(Equation {
                vars: Vec::new(),
                condition: None,
                lhs,
                rhs: Expr::number(*n, sort),
                span,
            });
        }
        let mut engine = Engine::new(Program::compile(&formula.data)?);
        formula.formula = decide_closed_tests(&mut engine, &formula.formula)?;
        Ok(formula)
    }
}

/// Simplifies a formula without negations by deciding closed tests.
fn decide_closed_tests(
    engine: &mut Engine,
    f: &TypedStateFormula,
) -> Result<TypedStateFormula, Diagnostic> {
    stacker::maybe_grow(128 << 10, 4 << 20, || {
        let constant = |value: bool| TypedStateFormula {
            kind: if value { StateKind::True } else { StateKind::False },
            span: f.span,
        };
        let is = |g: &TypedStateFormula, value: bool| {
            matches!((&g.kind, value), (StateKind::True, true) | (StateKind::False, false))
        };
        let kind = match &f.kind {
            StateKind::Val(e) if e.is_closed() => {
                let value = engine.from_expr(e)?;
                if value.is_true() || value.is_false() {
                    return Ok(constant(value.is_true()));
                }
                f.kind.clone()
            }
            StateKind::And(a, b) | StateKind::Or(a, b) => {
                // The truth value that decides the conjunction or disjunction.
                let all = matches!(f.kind, StateKind::And(..));
                let a = decide_closed_tests(engine, a)?;
                if is(&a, !all) {
                    return Ok(a);
                }
                let b = decide_closed_tests(engine, b)?;
                if is(&b, !all) || is(&a, all) {
                    return Ok(b);
                }
                if is(&b, all) {
                    return Ok(a);
                }
                let (a, b) = (Box::new(a), Box::new(b));
                if all { StateKind::And(a, b) } else { StateKind::Or(a, b) }
            }
            StateKind::Forall(vars, g) | StateKind::Exists(vars, g) => {
                let g = decide_closed_tests(engine, g)?;
                match (&g.kind, &f.kind) {
                    (StateKind::True | StateKind::False, _) => return Ok(g),
                    (_, StateKind::Forall(..)) => StateKind::Forall(vars.clone(), Box::new(g)),
                    _ => StateKind::Exists(vars.clone(), Box::new(g)),
                }
            }
            StateKind::Must(r, g) => {
                let g = decide_closed_tests(engine, g)?;
                if is(&g, true) {
                    return Ok(g);
                }
                StateKind::Must(r.clone(), Box::new(g))
            }
            StateKind::Fix { least, var, params, body } => {
                let body = decide_closed_tests(engine, body)?;
                if matches!(body.kind, StateKind::True | StateKind::False) {
                    return Ok(body);
                }
                StateKind::Fix {
                    least: *least,
                    var: *var,
                    params: params.clone(),
                    body: Box::new(body),
                }
            }
            _ => f.kind.clone(),
        };
        Ok(TypedStateFormula { kind, span: f.span })
    })
}

/// Converts a constant over parameters to a term.
fn plain_term(
    flow: &Flow,
    signature: &Signature,
    terms: &AHashMap<VarId, CutTerm>,
    e: &Expr,
) -> Option<CutTerm> {
    match &e.kind {
        ExprKind::Var(v) => terms.get(v).copied(),
        _ if flow.literal(e).is_some() => flow.literal(e).map(CutTerm::literal),
        _ => match e.as_builtin(signature)? {
            (Builtin::PosToNat | Builtin::PosToInt | Builtin::NatToInt, [a]) => {
                plain_term(flow, signature, terms, a)
            }
            (Builtin::Succ, [a]) => plain_term(flow, signature, terms, a).map(|t| t.plus(1)),
            (Builtin::Add, [a, b]) => match (flow.literal(a), flow.literal(b)) {
                (_, Some(n)) => plain_term(flow, signature, terms, a).map(|t| t.plus(n)),
                (Some(n), _) => plain_term(flow, signature, terms, b).map(|t| t.plus(n)),
                _ => None,
            },
            _ => None,
        },
    }
}

/// Collects the terms over symbolic parameters that a condition compares with.
fn bounds(
    flow: &Flow,
    signature: &Signature,
    terms: &AHashMap<VarId, CutTerm>,
    e: &Expr,
    out: &mut Vec<CutTerm>,
) {
    stacker::maybe_grow(64 << 10, 1 << 20, || {
        if let Some((
            Builtin::Less
            | Builtin::LessEqual
            | Builtin::Greater
            | Builtin::GreaterEqual
            | Builtin::Equal
            | Builtin::NotEqual,
            [a, b],
        )) = e.as_builtin(signature)
        {
            for side in [a, b] {
                if let Some(term) = plain_term(flow, signature, terms, side).filter(|t| t.base > 0)
                {
                    out.extend([term, term.plus(1)]);
                }
            }
        }
        if let ExprKind::Apply(_, args) = &e.kind {
            args.iter().for_each(|a| bounds(flow, signature, terms, a, out));
        }
    });
}

/// Returns the counters of the initial state. Their intervals must be the same in the whole case.
fn initial_numbers(
    compiled: &Compiled,
    facts: &AbstractionFacts,
    signature: &Signature,
) -> Result<Vec<i64>, Diagnostic> {
    let mut found = Vec::new();
    for (slot, value) in compiled.initial().into_iter().enumerate() {
        if let Content::Value(layout) = &facts.contents[slot]
            && *layout != Layout::None
        {
            found.extend(facts.layouts.numbers(
                signature,
                layout,
                &compiled.value(narrow::index(slot), value),
            )?);
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// Computes the results of the analysis for slots, labels and groups.
fn facts(
    compiled: &Compiled,
    defined: &SymbolicConstants,
    flow: &mut Flow,
    signature: &Signature,
) -> Result<AbstractionFacts, Diagnostic> {
    let process = compiled.process();
    let mut layouts = Layouts::default();
    let mut contents = Vec::new();
    for (i, param) in process.params.iter().enumerate() {
        if let Some(base) = defined.rigid.iter().position(|r| r.param == i) {
            contents.push(Content::Parameter(base + 1));
            continue;
        }
        let var = signature.var(param.var);
        let ty = flow.type_of_var(param.var);
        let layout =
            layouts.of(flow, signature, &ty, Some(var.sort)).map_err(|d| d.or_span(var.span))?;
        contents.push(Content::Value(layout));
    }
    let mut arguments = Vec::new();
    for (i, action) in process.actions.iter().enumerate() {
        let mut own = Vec::new();
        for (j, sort) in action.sorts.iter().enumerate() {
            let Some(ty) = flow.argument(mu_base::ids::ActId::new(i), j).cloned() else { continue };
            own.push(layouts.of(flow, signature, &ty, Some(*sort))?);
        }
        arguments.push(own);
    }
    let mut groups = Vec::new();
    for group in 0..compiled.groups().len() {
        let summand = &process.summands[compiled.summand_of(group)];
        let updates = summand.updates.iter().map(|u| &u.1);
        let results: Vec<&Expr> =
            updates.chain(summand.actions.iter().flat_map(|a| &a.args)).collect();
        let literals =
            all_compared(flow, signature, results.iter().copied().chain([&summand.guard]));
        let growth = results
            .iter()
            .copied()
            .chain([&summand.guard])
            .map(|e| flow.growth(e))
            .max()
            .unwrap_or(0);
        let mut sums = 0;
        for v in &summand.sum_vars {
            let ty = flow.type_of_var(*v);
            if !flow.has_counter(&ty) || is_read(signature, &summand.guard, *v, &summand.sum_vars) {
                continue;
            }
            let var = signature.var(*v);
            let layout = layouts.of(flow, signature, &ty, Some(var.sort));
            let layout = layout.map_err(|d| d.or_span(var.span))?;
            let Some(count) = layouts.count(signature, &layout) else {
                let text =
                    format!("`sum {}` is over data that contain any number of counters", var.name);
                return Err(Diagnostic::new(Stage::Unsupported, text)
                    .or_span(var.span)
                    .or_span(summand.span()));
            };
            sums += count as i64;
        }
        let uses_symbolic =
            results.iter().copied().chain([&summand.guard]).any(|e| flow.uses_symbolic(e));
        groups.push(GroupFacts { growth, sums, literals, uses_symbolic });
    }
    let initial = || defined.initial.iter().map(|i| &i.1);
    let literals = all_compared(flow, signature, initial());
    let growth = initial().map(|e| flow.growth(e)).max().unwrap_or(0);
    let start = GroupFacts { growth, literals, ..GroupFacts::default() };
    Ok(AbstractionFacts {
        contents,
        arguments,
        layouts,
        groups,
        start,
        ..AbstractionFacts::default()
    })
}

/// True if a condition implies that a summed variable equals a number in the state: it equals a
/// part of the state, or is a number in an element of a list or finite bag there. (States contain
/// no sets or infinite bags of counters.)
pub(crate) fn is_read(
    signature: &Signature,
    condition: &Expr,
    var: VarId,
    summed: &[VarId],
) -> bool {
    stacker::maybe_grow(64 << 10, 1 << 20, || match condition.as_builtin(signature) {
        Some((Builtin::And, args)) => args.iter().any(|a| is_read(signature, a, var, summed)),
        Some((Builtin::In, [element, all])) => {
            has_argument(signature, element, var) && is_part(signature, all, summed)
        }
        Some((Builtin::Equal, [a, b])) => {
            let equals = |a, b| has_argument(signature, a, var) && is_part(signature, b, summed);
            equals(a, b) || equals(b, a)
        }
        _ => false,
    })
}

/// True if a term is a variable, or has it as an argument of constructors.
fn has_argument(signature: &Signature, e: &Expr, var: VarId) -> bool {
    match &e.kind {
        ExprKind::Var(v) => *v == var,
        ExprKind::Apply(head, args) => {
            let constructor = matches!(head.kind, ExprKind::Op(op) if matches!(signature.op(op).kind, OpKind::Constructor(_)));
            constructor && args.iter().any(|a| has_argument(signature, a, var))
        }
        _ => false,
    }
}

/// True if an expression is a parameter of the process or a part of one, so that all its numbers
/// occur in the state.
fn is_part(signature: &Signature, e: &Expr, summed: &[VarId]) -> bool {
    use Builtin::{FBagToBag, Head, NatToInt, PosToInt, PosToNat, RHead, RTail, Tail};
    match &e.kind {
        ExprKind::Var(v) => !summed.contains(v),
        ExprKind::Apply(head, args) => {
            let ExprKind::Op(op) = head.kind else { return false };
            let takes_apart = match signature.op(op).kind {
                OpKind::Projection(_) => true,
                OpKind::Builtin(b) => matches!(
                    b,
                    FBagToBag | Head | RHead | Tail | RTail | PosToNat | PosToInt | NatToInt
                ),
                _ => false,
            };
            takes_apart && args.iter().all(|a| is_part(signature, a, summed))
        }
        _ => false,
    }
}

/// Collects the literals that counters may be compared with when these expressions are evaluated.
fn all_compared<'e>(
    flow: &mut Flow,
    signature: &Signature,
    all: impl Iterator<Item = &'e Expr>,
) -> Vec<i64> {
    let mut literals = Vec::new();
    all.for_each(|e| collect_compared(flow, signature, e, false, &mut literals));
    literals.sort_unstable();
    literals.dedup();
    literals
}

/// Collects the literals that counters may be compared with in an evaluation: those below a
/// comparison, a mapping, a function or a sum, and those of all equations that the evaluation may
/// use. A literal that is only assigned is not compared here. A literal that is added is an offset,
/// not a number.
fn collect_compared(
    flow: &mut Flow,
    signature: &Signature,
    e: &Expr,
    within: bool,
    out: &mut Vec<i64>,
) {
    stacker::maybe_grow(64 << 10, 1 << 20, || {
        if let Some(n) = flow.literal(e) {
            if within {
                out.push(n);
            }
            return;
        }
        match &e.kind {
            ExprKind::Var(_) | ExprKind::Number(_) => {}
            // A constant that is only assigned is its definition.
            ExprKind::Op(op) => match flow.definition(*op).filter(|_| !within) {
                Some(definition) => collect_compared(flow, signature, definition, false, out),
                None => out.extend(flow.reachable_literals(*op).iter()),
            },
            ExprKind::Apply(head, args) => {
                let mut within = within;
                match head.kind {
                    ExprKind::Op(op) => match signature.op(op).kind {
                        OpKind::Constructor(_) | OpKind::Projection(_) | OpKind::Recogniser(_) => {}
                        OpKind::Mapping => {
                            within = true;
                            out.extend(flow.reachable_literals(op).iter());
                        }
                        OpKind::Builtin(b) => {
                            use Builtin::*;
                            let sum = matches!(b, Add | Succ);
                            let offsets = sum && args.iter().any(|a| flow.literal(a).is_some());
                            if offsets {
                                let rest: Vec<&Expr> =
                                    args.iter().filter(|a| flow.literal(a).is_none()).collect();
                                rest.into_iter()
                                    .for_each(|a| collect_compared(flow, signature, a, true, out));
                                return;
                            }
                            within |= !matches!(
                                b,
                                If | Not
                                    | And
                                    | Or
                                    | Implies
                                    | Cons
                                    | Snoc
                                    | Concat
                                    | Head
                                    | Tail
                                    | PosToNat
                                    | PosToInt
                                    | NatToInt
                            );
                            // For example a control location.
                            let others: Vec<&Expr> =
                                args.iter().filter(|a| flow.literal(a).is_none()).collect();
                            let compares = matches!(
                                b,
                                Equal | NotEqual | Less | LessEqual | Greater | GreaterEqual
                            );
                            let numbers = others.first().is_some_and(|a| flow.is_number(a.sort));
                            if compares && numbers && others.iter().all(|a| !flow.may_be_counter(a))
                            {
                                within = false;
                            }
                        }
                    },
                    // A computed function.
                    _ => {
                        within = true;
                        collect_compared(flow, signature, head, true, out);
                    }
                }
                args.iter().for_each(|a| collect_compared(flow, signature, a, within, out));
            }
            ExprKind::Bind(_, _, body) => collect_compared(flow, signature, body, true, out),
            ExprKind::Where(body, definitions) => {
                definitions.iter().for_each(|d| collect_compared(flow, signature, &d.1, true, out));
                collect_compared(flow, signature, body, within, out);
            }
        }
    });
}

/// Computes the granularity of slots: intervals for slots with numbers that are increased or
/// ordered, or flow to such a slot.
fn grains(compiled: &Compiled, facts: &AbstractionFacts, signature: &Signature) -> Vec<Grain> {
    let process = compiled.process();
    let slot_of: AHashMap<VarId, usize> =
        process.params.iter().enumerate().map(|(i, p)| (p.var, i)).collect();
    let counts =
        |slot: usize| matches!(&facts.contents[slot], Content::Value(l) if *l != Layout::None);
    let slots_in = |e: &Expr| {
        let mut free = Vec::new();
        e.free_vars(&mut free);
        free.into_iter()
            .filter_map(|v| slot_of.get(&v).copied())
            .filter(|s| counts(*s))
            .collect::<Vec<_>>()
    };
    let mut ordered = vec![false; process.params.len()];
    let mut flows: Vec<(usize, usize)> = Vec::new();
    for summand in &process.summands {
        let parts = std::iter::once(&summand.guard).chain(summand.updates.iter().map(|u| &u.1));
        for e in parts.chain(summand.actions.iter().flat_map(|a| &a.args)) {
            for_each_ordered_operand(signature, e, &mut |part| {
                slots_in(part).into_iter().for_each(|s| ordered[s] = true)
            });
        }
        for (to, e) in summand.updates.iter().filter(|(to, _)| counts(*to)) {
            flows.extend(slots_in(e).into_iter().map(|from| (from, *to)));
        }
    }
    loop {
        let more: Vec<usize> = flows
            .iter()
            .filter(|(from, to)| ordered[*to] && !ordered[*from])
            .map(|f| f.0)
            .collect();
        if more.is_empty() {
            break;
        }
        more.into_iter().for_each(|s| ordered[s] = true);
    }
    ordered.into_iter().map(|o| if o { Grain::Intervals } else { Grain::Predicates }).collect()
}

/// Calls `see` with each operand of an order or of an addition.
fn for_each_ordered_operand(signature: &Signature, e: &Expr, see: &mut dyn FnMut(&Expr)) {
    stacker::maybe_grow(64 << 10, 1 << 20, || {
        if let Some((builtin, args)) = e.as_builtin(signature) {
            use Builtin::*;
            if matches!(builtin, Less | LessEqual | Greater | GreaterEqual | Max | Min | Add | Succ)
            {
                let number = |e: &Expr| {
                    matches!(signature.sorts.text(e.sort).as_str(), "Pos" | "Nat" | "Int")
                };
                args.iter().filter(|a| number(a)).for_each(&mut *see);
            }
        }
        match &e.kind {
            ExprKind::Apply(head, args) => {
                for_each_ordered_operand(signature, head, see);
                args.iter().for_each(|a| for_each_ordered_operand(signature, a, see));
            }
            ExprKind::Bind(_, _, body) => for_each_ordered_operand(signature, body, see),
            ExprKind::Where(body, definitions) => {
                for_each_ordered_operand(signature, body, see);
                definitions.iter().for_each(|d| for_each_ordered_operand(signature, &d.1, see));
            }
            ExprKind::Var(_) | ExprKind::Number(_) | ExprKind::Op(_) => {}
        }
    });
}

/// Adds a formula's expressions to an analysis.
fn type_state(
    flow: &mut Flow,
    f: &TypedStateFormula,
    parameters: &mut AHashMap<u32, Vec<FlowSort>>,
) {
    stacker::maybe_grow(128 << 10, 4 << 20, || match &f.kind {
        StateKind::True | StateKind::False => {}
        StateKind::Val(e) => {
            flow.add_root(e);
        }
        StateKind::Not(g) | StateKind::Forall(_, g) | StateKind::Exists(_, g) => {
            type_state(flow, g, parameters)
        }
        StateKind::And(a, b) | StateKind::Or(a, b) | StateKind::Implies(a, b) => {
            type_state(flow, a, parameters);
            type_state(flow, b, parameters);
        }
        StateKind::Must(r, g) | StateKind::May(r, g) => {
            type_regular(flow, r);
            type_state(flow, g, parameters);
        }
        StateKind::Fix { var, params, body, .. } => {
            let mut types = Vec::new();
            for (v, e) in params {
                let (ty, init) = (flow.type_of_var(*v), flow.add_root(e));
                flow.unify(&ty, &init);
                types.push(ty);
            }
            parameters.insert(var.number(), types);
            type_state(flow, body, parameters);
        }
        StateKind::Var(x, args) => {
            let types = parameters.get(&x.number()).cloned().unwrap_or_default();
            for (e, ty) in args.iter().zip(types) {
                let given = flow.add_root(e);
                flow.unify(&ty, &given);
            }
        }
    });
}

fn type_regular(flow: &mut Flow, r: &Regular) {
    stacker::maybe_grow(128 << 10, 4 << 20, || match r {
        Regular::Action(a) => type_action(flow, a),
        Regular::Seq(a, b) | Regular::Alt(a, b) => {
            type_regular(flow, a);
            type_regular(flow, b);
        }
        Regular::Star(a) | Regular::Plus(a) => type_regular(flow, a),
    });
}

fn type_action(flow: &mut Flow, a: &Action) {
    stacker::maybe_grow(128 << 10, 4 << 20, || match a {
        Action::True | Action::False => {}
        Action::Val(e) => {
            flow.add_root(e);
        }
        Action::Multi(acts) => {
            acts.iter().for_each(|(action, args)| flow.add_action(*action, args))
        }
        Action::Not(a) | Action::Forall(_, a) | Action::Exists(_, a) => type_action(flow, a),
        Action::And(a, b) | Action::Or(a, b) | Action::Implies(a, b) => {
            type_action(flow, a);
            type_action(flow, b);
        }
    });
}
