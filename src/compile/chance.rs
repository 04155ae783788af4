//! Choices by chance in a compiled process: which values have a probability, and what it is.
//!
//! A weight says the probability of all values; those that have one are found by enumeration. So
//! that enumeration finds bounds, a weight is turned into the condition that it is positive:
//! products ask it of both factors, conditionals of the branch that is taken, functions with one
//! equation of their right-hand side. What a weight asks before anything of the chosen values is
//! decided first, once for a choice: what is left is often the same choice everywhere. Cost: linear
//! in the weight with what it calls, up to [`MOST`] calls. Invariant: the probabilities of one
//! choice are positive and add up to 1 exactly.

use super::groups::Layout;
use ahash::AHashMap;
use mu_base::ids::{OpId, VarId};
use mu_base::{Diagnostic, Span, Stage};
use mu_data::engine::{Code, Engine, Problem, Value};
use mu_data::expr::{DataSpec, Equation, Expr, ExprKind, Substitution};
use mu_data::signature::{Builtin, Signature};
use mu_data::sort::basic;
use mu_process::linear::{Chance, LinearProcess};
use num_rational::BigRational;
use num_traits::{One, Signed, Zero};
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

/// Calls that are followed in one weight.
const MOST: usize = 64;

/// A choice by chance.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    pub vars: Vec<VarId>,
    pub weight: Expr,
    /// Conditions on what is known before, with what comes next if they hold and if not.
    tests: Vec<(Expr, [Next; 2])>,
    /// What the weight may come to after them.
    weighed: Vec<Weighed>,
    first: Next,
}

/// What comes next in deciding a choice: a test or a weight, by number.
#[derive(Clone, Copy, Debug)]
enum Next {
    Test(usize),
    Weighed(usize),
}

/// A weight, and when it is positive.
#[derive(Clone, Debug)]
struct Weighed {
    /// Holds for all values that have a probability; of functions that are not looked into it asks
    /// nothing.
    lenient: Expr,
    /// The same, where these are asked to be positive.
    possible: Expr,
    weight: Expr,
}

impl Chosen {
    pub(super) fn new(chance: &Chance, by: &Substitution, data: &mut DataSpec) -> Self {
        let weight = chance.weight.substitute(by);
        let mut single: AHashMap<OpId, Option<&Equation>> = AHashMap::new();
        for equation in &data.equations {
            let Some(op) = equation.lhs.head() else { continue };
            single.entry(op).and_modify(|e| *e = None).or_insert(Some(equation));
        }
        let mut positive =
            Positive { signature: &mut data.signature, single, calls: 0, lenient: true };
        let mut chosen = Self {
            vars: chance.vars.clone(),
            weight: weight.clone(),
            tests: Vec::new(),
            weighed: Vec::new(),
            first: Next::Weighed(0),
        };
        chosen.first = chosen.split(&weight, &mut positive);
        chosen
    }

    /// Separates conditions on what is known before from what follows.
    fn split(&mut self, weight: &Expr, positive: &mut Positive<'_>) -> Next {
        stacker::maybe_grow(64 << 10, 1 << 20, || {
            if let Some((Builtin::If, [test, yes, no])) = weight.as_builtin(positive.signature) {
                let mut vars = Vec::new();
                test.free_vars(&mut vars);
                if !vars.iter().any(|v| self.vars.contains(v)) {
                    let next = [self.split(yes, positive), self.split(no, positive)];
                    self.tests.push((test.clone(), next));
                    return Next::Test(self.tests.len() - 1);
                }
            }
            (positive.lenient, positive.calls) = (true, 0);
            let lenient = positive.condition(weight);
            (positive.lenient, positive.calls) = (false, 0);
            let possible = positive.condition(weight);
            self.weighed.push(Weighed { lenient, possible, weight: weight.clone() });
            Next::Weighed(self.weighed.len() - 1)
        })
    }
}

/// Makes the operations known that conditions on weights are made of, before the data are compiled.
pub(super) fn declare(process: &mut LinearProcess) {
    let chances: Vec<Chance> = process
        .chance
        .iter()
        .chain(process.summands.iter().filter_map(|s| s.chance.as_ref()))
        .cloned()
        .collect();
    for chance in chances {
        Chosen::new(&chance, &Substitution::new(), &mut process.data);
    }
}

struct Positive<'a> {
    signature: &'a mut Signature,
    /// The equation of each operation that has just one.
    single: AHashMap<OpId, Option<&'a Equation>>,
    calls: usize,
    /// Whether nothing is asked of what is not looked into.
    lenient: bool,
}

impl Positive<'_> {
    fn both(&mut self, builtin: Builtin, a: Expr, b: Expr) -> Expr {
        let (absorbs, neutral) =
            if builtin == Builtin::And { (false, true) } else { (true, false) };
        match (a.as_bool(self.signature), b.as_bool(self.signature)) {
            (Some(x), _) if x == absorbs => a,
            (Some(x), _) if x == neutral => b,
            (_, Some(x)) if x == absorbs => b,
            (_, Some(x)) if x == neutral => a,
            _ => Expr::builtin(self.signature, builtin, vec![a, b], basic::BOOL),
        }
    }

    /// When an expression that is not negative is positive.
    fn condition(&mut self, e: &Expr) -> Expr {
        stacker::maybe_grow(64 << 10, 1 << 20, || {
            if let ExprKind::Number(n) = &e.kind {
                return Expr::boolean(self.signature, n.is_positive());
            }
            match e.as_builtin(self.signature) {
                Some((Builtin::If, [c, a, b])) => {
                    let (c, a, b) = (c.clone(), a.clone(), b.clone());
                    let (a, b) = (self.condition(&a), self.condition(&b));
                    let other = Expr::negate(self.signature, c.clone());
                    let (a, b) = (self.both(Builtin::And, c, a), self.both(Builtin::And, other, b));
                    self.both(Builtin::Or, a, b)
                }
                Some((Builtin::Multiply, [a, b])) => {
                    let (a, b) = (a.clone(), b.clone());
                    let (a, b) = (self.condition(&a), self.condition(&b));
                    self.both(Builtin::And, a, b)
                }
                Some((Builtin::Divide, [a, _])) => {
                    let a = a.clone();
                    self.condition(&a)
                }
                Some((
                    Builtin::PosToNat
                    | Builtin::PosToInt
                    | Builtin::PosToReal
                    | Builtin::NatToInt
                    | Builtin::NatToReal
                    | Builtin::IntToReal,
                    [a],
                )) => {
                    let a = a.clone();
                    self.condition(&a)
                }
                _ => match self.called(e) {
                    Some(body) => self.condition(&body),
                    None if self.lenient => Expr::boolean(self.signature, true),
                    None => {
                        let mut zero = Expr::number(
                            0,
                            if e.sort == basic::REAL { basic::INT } else { e.sort },
                        );
                        if e.sort == basic::REAL {
                            zero = Expr::builtin(
                                self.signature,
                                Builtin::IntToReal,
                                vec![zero],
                                basic::REAL,
                            );
                        }
                        Expr::builtin(
                            self.signature,
                            Builtin::Greater,
                            vec![e.clone(), zero],
                            basic::BOOL,
                        )
                    }
                },
            }
        })
    }

    /// The right-hand side of a call of a function with one equation, without condition or
    /// patterns.
    fn called(&mut self, e: &Expr) -> Option<Expr> {
        let equation = *self.single.get(&e.head()?)?.as_ref()?;
        let args: &[Expr] = match &e.kind {
            ExprKind::Apply(_, args) => args,
            _ => &[],
        };
        let params: &[Expr] = match &equation.lhs.kind {
            ExprKind::Apply(_, params) => params,
            _ => &[],
        };
        if equation.condition.is_some() || params.len() != args.len() || self.calls >= MOST {
            return None;
        }
        let mut by = Substitution::new();
        for (param, arg) in params.iter().zip(args) {
            let ExprKind::Var(v) = param.kind else { return None };
            if by.insert(v, arg.clone()).is_some() {
                return None;
            }
        }
        self.calls += 1;
        Some(equation.rhs.substitute(&by))
    }
}

/// The error for a group of a probabilistic process whose probabilities nobody asked for.
pub(super) fn unexpected(span: Span) -> Diagnostic {
    Diagnostic::at(Stage::Unsupported, span, "chance decides where this step leads, and this way of searching knows no probabilities")
        .note("`explore` and `check` take probabilistic processes with the explicit engine, `compare` and `reduce` with `probabilistic`")
}

/// A weight as a number.
pub(super) fn weight(
    engine: &Engine,
    value: &Value,
    span: Span,
) -> Result<BigRational, Diagnostic> {
    let weight = value.to_rational().filter(|w| !w.is_negative());
    weight.ok_or_else(|| {
        let text = engine.text(value, 60);
        Diagnostic::at(
            Stage::Data,
            span,
            format!(
                "a probability is `{text}` here, where a number that is not negative is expected"
            ),
        )
    })
}

/// Refuses probabilities that do not add up to 1.
pub(super) fn expect_whole(weights: &[BigRational], span: Span) -> Result<(), Diagnostic> {
    let sum: BigRational = weights.iter().sum();
    if sum.is_one() {
        return Ok(());
    }
    let message =
        format!("the probabilities of a `dist` add up to {sum} here, where 1 is expected");
    Err(Diagnostic::at(Stage::Data, span, message)
        .note("they are summed over all values of its variables"))
}

/// What an update depends on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rests {
    /// Not on what is chosen: it has one value for all outcomes.
    Before,
    /// On what is chosen, and on what the weight depends on: it has the same values whenever the
    /// choice is between the same.
    Drawn,
    /// On others as well.
    Both,
}

/// A choice by chance as a group makes it.
pub(super) struct Drawing {
    tests: Vec<(Code, [Next; 2])>,
    first: Next,
    weighed: Vec<Weight>,
    /// Number of variables that are chosen.
    pub width: usize,
}

/// A weight as a group finds it.
pub(super) struct Weight {
    lenient: Problem,
    strict: Problem,
    code: Code,
    /// Positions in what is known before that the weight reads.
    reads: Vec<usize>,
    /// By update, what it depends on.
    pub rests: Vec<Rests>,
}

impl Weight {
    fn new(
        engine: &mut Engine,
        vars: &[VarId],
        of: &Weighed,
        before: &[VarId],
        updates: &[Expr],
    ) -> Result<Self, Diagnostic> {
        let mut used = Vec::new();
        of.weight.free_vars(&mut used);
        let reads: Vec<usize> = (0..before.len()).filter(|i| used.contains(&before[*i])).collect();
        let env: Vec<VarId> = reads.iter().map(|i| before[*i]).collect();
        let all: Vec<VarId> = env.iter().chain(vars).copied().collect();
        let rests = |e: &Expr| {
            let mut used = Vec::new();
            e.free_vars(&mut used);
            if !used.iter().any(|v| vars.contains(v)) {
                Rests::Before
            } else if used.iter().all(|v| all.contains(v)) {
                Rests::Drawn
            } else {
                Rests::Both
            }
        };
        Ok(Self {
            lenient: engine.problem(vars, &of.lenient, &env)?.bound_by("a `dist`"),
            strict: engine.problem(vars, &of.possible, &env)?.bound_by("a `dist`"),
            code: engine.code(&of.weight, &all)?,
            reads,
            rests: updates.iter().map(rests).collect(),
        })
    }
}

impl Drawing {
    /// `before`: the variables that have values before the choice.
    pub(super) fn new(
        engine: &mut Engine,
        chosen: &Chosen,
        before: &[VarId],
        updates: &[Expr],
    ) -> Result<Self, Diagnostic> {
        let tests = chosen
            .tests
            .iter()
            .map(|(test, next)| Ok((engine.code(test, before)?, *next)))
            .collect::<Result<_, Diagnostic>>()?;
        let weighed = chosen
            .weighed
            .iter()
            .map(|of| Weight::new(engine, &chosen.vars, of, before, updates))
            .collect::<Result<_, _>>()?;
        Ok(Self { tests, first: chosen.first, weighed, width: chosen.vars.len() })
    }

    /// The weight that counts, by number, for these values of what is known before.
    pub(super) fn decided(
        &self,
        engine: &mut Engine,
        before: &[Value],
    ) -> Result<usize, Diagnostic> {
        let mut next = self.first;
        loop {
            match next {
                Next::Weighed(at) => return Ok(at),
                Next::Test(at) => {
                    let (test, [yes, no]) = &self.tests[at];
                    next = if engine.eval(test, before)?.is_true() { *yes } else { *no };
                }
            }
        }
    }

    /// A weight by number.
    pub(super) fn weight(&self, at: usize) -> &Weight {
        &self.weighed[at]
    }
}

/// What chance chooses between: the values one after another, and their probabilities.
pub(super) struct Draw {
    pub values: Vec<Value>,
    pub weights: Arc<[BigRational]>,
    /// What updates come to for each outcome, by number, if that rests on the draw alone.
    pub columns: RefCell<AHashMap<usize, Rc<[u32]>>>,
    /// What is written for all outcomes, by the values that are the same for all.
    pub written: RefCell<AHashMap<Box<[u32]>, Arc<[u32]>>>,
}

/// Values in draws that are kept; with more, all are forgotten.
const MOST_DRAWN: usize = 1 << 20;
/// Lists of what is written that a draw keeps; with more, all are forgotten.
const MOST_WRITTEN: usize = 1 << 10;

/// Draws by group, weight, and what the weight reads.
#[derive(Default)]
pub(super) struct Draws {
    known: AHashMap<(usize, usize, Box<[Value]>), Rc<Draw>>,
    size: usize,
    certain: Option<Arc<[BigRational]>>,
}

impl Draw {
    /// What is written for all outcomes, where `same` are the values that do not depend on the
    /// outcome and all others rest on the draw.
    pub(super) fn written(
        &self,
        same: Box<[u32]>,
        make: impl FnOnce() -> Arc<[u32]>,
    ) -> Arc<[u32]> {
        let mut known = self.written.borrow_mut();
        if known.len() >= MOST_WRITTEN {
            known.clear();
        }
        known.entry(same).or_insert_with(make).clone()
    }
}

impl Draws {
    /// The one outcome that is certain.
    pub(super) fn certain(&mut self) -> Arc<[BigRational]> {
        self.certain.get_or_insert_with(|| [BigRational::one()].into()).clone()
    }

    /// What a group's choice is between by one of its weights, for these values of what is known
    /// before it.
    pub(super) fn draw(
        &mut self,
        engine: &mut Engine,
        (group, drawing, at): (usize, &Drawing, usize),
        before: &[Value],
        span: Span,
    ) -> Result<Rc<Draw>, Diagnostic> {
        let drawing = drawing.weight(at);
        let key: Box<[Value]> = drawing.reads.iter().map(|i| before[*i].clone()).collect();
        if let Some(known) = self.known.get(&(group, at, key.clone())) {
            return Ok(known.clone());
        }
        let mut all = key.to_vec();
        let negative = std::cell::Cell::new(false);
        let mut collect = |engine: &mut Engine, problem: &Problem| {
            let (mut values, mut weights) = (Vec::new(), Vec::new());
            engine.solve(problem, &key, &mut |engine: &mut Engine, chosen: &[Value]| {
                all.truncate(key.len());
                all.extend_from_slice(chosen);
                let value = engine.eval(&drawing.code, &all)?;
                let weight = weight(engine, &value, span).inspect_err(|_| negative.set(true))?;
                if !weight.is_zero() {
                    values.extend_from_slice(chosen);
                    weights.push(weight);
                }
                Ok(ControlFlow::Continue(()))
            })?;
            Ok::<_, Diagnostic>((values, weights))
        };
        let first = match collect(engine, &drawing.lenient) {
            // It may have no bound without what it does not ask.
            Err(d) if d.stage == Stage::Data => Err(d),
            found => Ok(found?),
        };
        let (values, weights) = match first {
            Ok(found) => found,
            Err(d) if negative.get() => return Err(d),
            Err(_) => collect(engine, &drawing.strict)?,
        };
        expect_whole(&weights, span)?;
        self.size += values.len() + 1;
        if self.size > MOST_DRAWN {
            self.known.clear();
            self.size = values.len() + 1;
        }
        let draw = Rc::new(Draw {
            values,
            weights: weights.into(),
            columns: RefCell::default(),
            written: RefCell::default(),
        });
        self.known.insert((group, at, key), draw.clone());
        Ok(draw)
    }
}

/// Where the process starts.
pub(super) fn starts(
    process: &LinearProcess,
    engine: &mut Engine,
    layout: &mut Layout,
) -> Result<(), Diagnostic> {
    let vector =
        |engine: &mut Engine,
         values: &mut dyn FnMut(&mut Engine, usize) -> Result<Value, Diagnostic>| {
            let mut vector = Vec::with_capacity(process.params.len());
            for (i, sort) in layout.sort_of.iter().enumerate() {
                let value = values(engine, i)?;
                vector.push(
                    layout.tables[layout.table_of[i]].intern(engine.term_at(&value, *sort)).0,
                );
            }
            Ok::<Vec<u32>, Diagnostic>(vector)
        };
    let Some(chance) = &process.chance else {
        let initial = vector(engine, &mut |engine, i| engine.from_expr(&process.params[i].init))?;
        layout.starts.push((BigRational::one(), initial.clone()));
        layout.initial = initial;
        return Ok(());
    };
    let mut data = process.data.clone();
    data.signature = engine.program().signature().clone();
    let chosen = Chosen::new(chance, &Substitution::new(), &mut data);
    let inits: Vec<Expr> = process.params.iter().map(|p| p.init.clone()).collect();
    let drawing = Drawing::new(engine, &chosen, &[], &inits)?;
    let codes = inits
        .iter()
        .map(|e| engine.code(e, &chosen.vars))
        .collect::<Result<Vec<_>, Diagnostic>>()?;
    let at = drawing.decided(engine, &[]).map_err(|e| e.or_span(chance.weight.span))?;
    let draw = Draws::default().draw(engine, (0, &drawing, at), &[], chance.weight.span)?;
    let mut starts: Vec<(BigRational, Vec<u32>)> = Vec::new();
    for (values, weight) in draw.values.chunks(drawing.width.max(1)).zip(draw.weights.iter()) {
        starts.push((
            weight.clone(),
            vector(engine, &mut |engine, i| engine.eval(&codes[i], values))?,
        ));
    }
    layout.initial = starts[0].1.clone();
    layout.starts = starts;
    Ok(())
}
