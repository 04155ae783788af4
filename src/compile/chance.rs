//! Probabilistic choices of a compiled process: enumeration of the outcomes with positive
//! probability, and their weights.
//!
//! A weight gives the probability of each value. To enumerate the values with positive weight, the
//! weight is turned into the condition that it is positive: of a product, both factors; of a
//! conditional, the selected branch; of a function with one equation, its right-hand side.
//! Conditions that do not depend on the chosen values are decided first, once per choice: the
//! remaining choice is often the same everywhere. Cost: linear in the weight with the functions
//! that it calls, up to [`MAX_CALLS`] calls. Invariant: the probabilities of one choice are
//! positive and add up to 1 exactly.

use super::groups::SlotLayout;
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

/// Limit on the calls inlined in one weight; further calls stay as they are.
const MAX_CALLS: usize = 64;

/// Probabilistic choice of a summand.
#[derive(Clone, Debug)]
pub(crate) struct ProbabilisticChoice {
    pub vars: Vec<VarId>,
    pub weight: Expr,
    /// Conditions that do not depend on the chosen values, each with the next node if it holds and
    /// if not.
    tests: Vec<(Expr, [ChoiceNode; 2])>,
    /// Weights at the leaves of the decision tree.
    weighed: Vec<WeightCase>,
    first: ChoiceNode,
}

/// Next node in the decision tree of a choice: a test or a weight, by number.
#[derive(Clone, Copy, Debug)]
enum ChoiceNode {
    Test(usize),
    WeightCase(usize),
}

/// Weight with the conditions under which it is positive.
#[derive(Clone, Debug)]
struct WeightCase {
    /// Condition that holds for all values with positive weight; calls that are not inlined
    /// contribute nothing.
    lenient: Expr,
    /// The same condition, in which such calls must be positive as well.
    possible: Expr,
    weight: Expr,
}

impl ProbabilisticChoice {
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
            first: ChoiceNode::WeightCase(0),
        };
        chosen.first = chosen.split(&weight, &mut positive);
        chosen
    }

    /// Moves conditions that do not depend on the chosen values into the decision tree.
    fn split(&mut self, weight: &Expr, positive: &mut Positive<'_>) -> ChoiceNode {
        stacker::maybe_grow(64 << 10, 1 << 20, || {
            if let Some((Builtin::If, [test, yes, no])) = weight.as_builtin(positive.signature) {
                let mut vars = Vec::new();
                test.free_vars(&mut vars);
                if !vars.iter().any(|v| self.vars.contains(v)) {
                    let next = [self.split(yes, positive), self.split(no, positive)];
                    self.tests.push((test.clone(), next));
                    return ChoiceNode::Test(self.tests.len() - 1);
                }
            }
            (positive.lenient, positive.calls) = (true, 0);
            let lenient = positive.condition(weight);
            (positive.lenient, positive.calls) = (false, 0);
            let possible = positive.condition(weight);
            self.weighed.push(WeightCase { lenient, possible, weight: weight.clone() });
            ChoiceNode::WeightCase(self.weighed.len() - 1)
        })
    }
}

/// Declares the operations that occur in conditions on weights, before the data are compiled.
pub(super) fn declare(process: &mut LinearProcess) {
    let chances: Vec<Chance> = process
        .chance
        .iter()
        .chain(process.summands.iter().filter_map(|s| s.chance.as_ref()))
        .cloned()
        .collect();
    for chance in chances {
        ProbabilisticChoice::new(&chance, &Substitution::new(), &mut process.data);
    }
}

struct Positive<'a> {
    signature: &'a mut Signature,
    /// Equation of each operation that has exactly one.
    single: AHashMap<OpId, Option<&'a Equation>>,
    calls: usize,
    /// True if calls that are not inlined contribute no condition.
    lenient: bool,
}

impl Positive<'_> {
    fn combine(&mut self, builtin: Builtin, a: Expr, b: Expr) -> Expr {
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

    /// Returns the condition under which a non-negative expression is positive.
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
                    let (a, b) =
                        (self.combine(Builtin::And, c, a), self.combine(Builtin::And, other, b));
                    self.combine(Builtin::Or, a, b)
                }
                Some((Builtin::Multiply, [a, b])) => {
                    let (a, b) = (a.clone(), b.clone());
                    let (a, b) = (self.condition(&a), self.condition(&b));
                    self.combine(Builtin::And, a, b)
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
                _ => match self.inlined_body(e) {
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

    /// Returns the right-hand side of a call of a function with one equation without condition and
    /// patterns.
    fn inlined_body(&mut self, e: &Expr) -> Option<Expr> {
        let equation = *self.single.get(&e.head()?)?.as_ref()?;
        let args: &[Expr] = match &e.kind {
            ExprKind::Apply(_, args) => args,
            _ => &[],
        };
        let params: &[Expr] = match &equation.lhs.kind {
            ExprKind::Apply(_, params) => params,
            _ => &[],
        };
        if equation.condition.is_some() || params.len() != args.len() || self.calls >= MAX_CALLS {
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

/// Returns the error for a probabilistic group in a search without probabilities.
pub(super) fn choice_error(span: Span) -> Diagnostic {
    Diagnostic::at(Stage::Unsupported, span, "this step has a probabilistic choice (`dist`), which this kind of search does not support")
        .note("`explore` and `check` support probabilistic processes with the explicit engine, `compare` and `reduce` with `probabilistic`")
}

/// Converts a weight to a number.
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
            format!("this probability is `{text}`; expected a number that is not negative"),
        )
    })
}

/// Rejects probabilities that do not have the sum 1.
pub(super) fn expect_whole(weights: &[BigRational], span: Span) -> Result<(), Diagnostic> {
    let sum: BigRational = weights.iter().sum();
    if sum.is_one() {
        return Ok(());
    }
    let message = format!("the probabilities of this `dist` have the sum {sum}; expected 1");
    Err(Diagnostic::at(Stage::Data, span, message)
        .note("the sum is over all values of its variables"))
}

/// Dependency of an update.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Dependency {
    /// Independent of the chosen values: one value for all outcomes.
    Before,
    /// Depends on the chosen values and on variables of the weight only: equal distributions give
    /// equal values.
    Drawn,
    /// Depends on other variables as well.
    Both,
}

/// Compiled probabilistic choice of a group.
pub(super) struct CompiledChoice {
    tests: Vec<(Code, [ChoiceNode; 2])>,
    first: ChoiceNode,
    weighed: Vec<Weight>,
    /// Number of chosen variables.
    pub width: usize,
}

/// Compiled weight.
pub(super) struct Weight {
    lenient: Problem,
    strict: Problem,
    code: Code,
    /// Positions of the variables that the weight reads, among those with values before the choice.
    reads: Vec<usize>,
    /// Dependency of each update.
    pub rests: Vec<Dependency>,
}

impl Weight {
    fn new(
        engine: &mut Engine,
        vars: &[VarId],
        of: &WeightCase,
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
                Dependency::Before
            } else if used.iter().all(|v| all.contains(v)) {
                Dependency::Drawn
            } else {
                Dependency::Both
            }
        };
        Ok(Self {
            lenient: engine.problem(vars, &of.lenient, &env)?.with_binder("a `dist`"),
            strict: engine.problem(vars, &of.possible, &env)?.with_binder("a `dist`"),
            code: engine.code(&of.weight, &all)?,
            reads,
            rests: updates.iter().map(rests).collect(),
        })
    }
}

impl CompiledChoice {
    /// Compiles a choice. `before`: the variables that have values before the choice.
    pub(super) fn new(
        engine: &mut Engine,
        chosen: &ProbabilisticChoice,
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

    /// Returns the number of the weight that applies for these values of the earlier variables.
    pub(super) fn select_weight(
        &self,
        engine: &mut Engine,
        before: &[Value],
    ) -> Result<usize, Diagnostic> {
        let mut next = self.first;
        loop {
            match next {
                ChoiceNode::WeightCase(at) => return Ok(at),
                ChoiceNode::Test(at) => {
                    let (test, [yes, no]) = &self.tests[at];
                    let value = engine.eval(test, before)?;
                    if !value.is_true() && !value.is_false() {
                        let text = engine.text(&value, 60);
                        return Err(Diagnostic::new(
                            Stage::Data,
                            format!(
                                "a condition in a probability is neither true nor false: {text}"
                            ),
                        ));
                    }
                    next = if value.is_true() { *yes } else { *no };
                }
            }
        }
    }

    /// Returns a weight by number.
    pub(super) fn weight(&self, at: usize) -> &Weight {
        &self.weighed[at]
    }
}

/// Distribution over values: the outcomes one after another, and their probabilities.
pub(super) struct Distribution {
    pub values: Vec<Value>,
    pub weights: Arc<[BigRational]>,
    /// Value numbers of an update for each outcome, by update, if they depend on the distribution
    /// alone.
    pub columns: RefCell<AHashMap<usize, Rc<[u32]>>>,
    /// Written values for all outcomes, by the values that are common to all.
    pub written: RefCell<AHashMap<Box<[u32]>, Arc<[u32]>>>,
}

/// Limit on the values in cached distributions; beyond it, the cache is cleared.
const MAX_CACHED_VALUES: usize = 1 << 20;
/// Limit on the lists of written values that one distribution caches; beyond it, they are cleared.
const MAX_WRITTEN: usize = 1 << 10;

/// Cache of distributions by group, weight, and the values that the weight reads.
#[derive(Default)]
pub(super) struct DistributionCache {
    known: AHashMap<(usize, usize, Box<[Value]>), Rc<Distribution>>,
    size: usize,
    certain: Option<Arc<[BigRational]>>,
}

impl Distribution {
    /// Returns the written values for all outcomes. `same` holds the values that do not depend on
    /// the outcome; all others depend on the distribution alone.
    pub(super) fn written_values(
        &self,
        same: Box<[u32]>,
        make: impl FnOnce() -> Arc<[u32]>,
    ) -> Arc<[u32]> {
        let mut known = self.written.borrow_mut();
        if known.len() >= MAX_WRITTEN {
            known.clear();
        }
        known.entry(same).or_insert_with(make).clone()
    }
}

impl DistributionCache {
    /// Returns the distribution with one certain outcome.
    pub(super) fn certain(&mut self) -> Arc<[BigRational]> {
        self.certain.get_or_insert_with(|| [BigRational::one()].into()).clone()
    }

    /// Returns the distribution of a group's choice for one of its weights and these values of the
    /// earlier variables.
    pub(super) fn draw(
        &mut self,
        engine: &mut Engine,
        (group, drawing, at): (usize, &CompiledChoice, usize),
        before: &[Value],
        span: Span,
    ) -> Result<Rc<Distribution>, Diagnostic> {
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
            // Without the conditions that the lenient problem omits, enumeration may have no bound.
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
        if self.size > MAX_CACHED_VALUES {
            self.known.clear();
            self.size = values.len() + 1;
        }
        let draw = Rc::new(Distribution {
            values,
            weights: weights.into(),
            columns: RefCell::default(),
            written: RefCell::default(),
        });
        self.known.insert((group, at, key), draw.clone());
        Ok(draw)
    }
}

/// Computes the initial distribution of the process.
pub(super) fn starts(
    process: &LinearProcess,
    engine: &mut Engine,
    layout: &mut SlotLayout,
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
    let chosen = ProbabilisticChoice::new(chance, &Substitution::new(), &mut data);
    let inits: Vec<Expr> = process.params.iter().map(|p| p.init.clone()).collect();
    let drawing = CompiledChoice::new(engine, &chosen, &[], &inits)?;
    let codes = inits
        .iter()
        .map(|e| engine.code(e, &chosen.vars))
        .collect::<Result<Vec<_>, Diagnostic>>()?;
    let at = drawing.select_weight(engine, &[]).map_err(|e| e.or_span(chance.weight.span))?;
    let draw =
        DistributionCache::default().draw(engine, (0, &drawing, at), &[], chance.weight.span)?;
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
