//! A formula as a graph of positions: what remains to be shown of a state.
//!
//! In: a typed formula. Out: positions without negations and regular formulas, each with the data
//! variables that it still needs. A modality over a regular formula becomes modalities over
//! actions, and fixed points for iterations. A fixed point is a position that sets its parameters;
//! it has a priority: the outermost fixed point has the highest, a least one an odd one. An action
//! formula becomes, for each summand of the process, a condition over variables that stand for the
//! arguments of its label. Cost: linear in the formula, times the summands for conditions.

use ahash::AHashMap;
use mu_base::ids::{ActId, FixId, OpId, VarId};
use mu_base::{Diagnostic, Span, Stage};
use mu_data::expr::{Binder, Expr, ExprKind};
use mu_data::signature::{Builtin, Signature};
use mu_data::sort::basic;
use mu_formula::typed::{Action, Regular, StateKind, TypedFormula, TypedStateFormula};
use mu_process::linear::{LinearProcess, Summand};
use mu_process::open_constants::OpenConstants;

/// A position.
#[derive(Clone, Debug)]
pub enum Position {
    /// Shown.
    True,
    /// Refuted.
    False,
    /// The test has this value.
    Test(Expr, bool, Span),
    /// The position, unless the test has this value.
    Unless(Expr, bool, Span, usize),
    /// All of these positions.
    All(Vec<usize>),
    /// One of these positions.
    Any(Vec<usize>),
    /// The position for all values of a variable.
    Forall(VarId, usize, Span),
    /// The position for some value of a variable.
    Exists(VarId, usize, Span),
    /// The position after each step that satisfies the conditions: for each summand, `None` if no
    /// step of it does.
    Box(Vec<Option<Expr>>, usize),
    /// The position after variables got values at once.
    Assign(Vec<(VarId, Expr)>, usize),
}

/// The positions of a formula.
#[derive(Debug)]
pub struct Positions {
    /// All positions.
    pub all: Vec<Position>,
    /// The priority of each position; 0 if it belongs to no fixed point.
    pub priorities: Vec<u32>,
    /// For each position the variables of the formula that it needs, ascending.
    pub live: Vec<Vec<VarId>>,
    /// The first position.
    pub start: usize,
    /// For each summand, variables that stand for the arguments of its label.
    pub arguments: Vec<Vec<VarId>>,
    /// True if some position is a choice of the prover.
    pub chooses: bool,
}

/// Limit on the nesting of fixed points.
const DEEPEST: u32 = 60;

struct Builder<'a> {
    process: &'a LinearProcess,
    signature: &'a mut Signature,
    /// Constants with expressions over the parameters of the process, and operations that use
    /// them.
    open: OpenConstants,
    all: Vec<Position>,
    priorities: Vec<u32>,
    /// The parameters and the position of each fixed point around.
    fixes: AHashMap<FixId, (Vec<VarId>, usize)>,
    arguments: Vec<Vec<VarId>>,
}

impl Positions {
    /// Builds the positions of a formula over the data of a process. New terms extend `signature`.
    ///
    /// # Errors
    ///
    /// Diamonds, with their places: paths of an abstraction do not show that a step exists. A
    /// mapping with equations that use a symbolic parameter, which evaluation does not see.
    pub fn new(
        process: &LinearProcess,
        signature: &mut Signature,
        constants: &AHashMap<OpId, Expr>,
        formula: &TypedFormula,
    ) -> Result<Self, Diagnostic> {
        let arguments = labels(process, signature);
        let mut builder = Builder {
            process,
            signature,
            open: OpenConstants::new(&formula.data.equations, constants.clone()),
            all: Vec::new(),
            priorities: Vec::new(),
            fixes: AHashMap::new(),
            arguments,
        };
        let start = builder.state(&formula.formula, true, 0)?;
        let Builder { all, priorities, arguments, .. } = builder;
        let live = live(process, &all, &arguments);
        let chooses = all.iter().any(|p| matches!(p, Position::Any(_) | Position::Exists(..)));
        Ok(Self { all, priorities, live, start, arguments, chooses })
    }

    /// Computes the variables again that each position needs.
    pub fn renew(&mut self, process: &LinearProcess) {
        self.live = live(process, &self.all, &self.arguments);
    }
}

/// Creates the variables for the arguments of each summand's label.
fn labels(process: &LinearProcess, signature: &mut Signature) -> Vec<Vec<VarId>> {
    let of = |summand: &Summand, signature: &mut Signature| {
        let args = summand.actions.iter().flat_map(|a| &a.args);
        args.map(|e| signature.fresh_var("an argument", e.sort)).collect()
    };
    process.summands.iter().map(|s| of(s, signature)).collect()
}

impl Builder<'_> {
    fn push(&mut self, position: Position) -> usize {
        self.all.push(position);
        self.priorities.push(0);
        self.all.len() - 1
    }

    /// Replaces constants by their expressions.
    fn expr(&self, e: &Expr) -> Result<Expr, Diagnostic> {
        if self.open.is_hidden_in(e) {
            let text = "the equations of a mapping in the formula use a symbolic parameter";
            return Err(Diagnostic::new(Stage::Unsupported, text).or_span(e.span));
        }
        Ok(e.replace_operations(&self.open.constants))
    }

    fn state(
        &mut self,
        f: &TypedStateFormula,
        sign: bool,
        depth: u32,
    ) -> Result<usize, Diagnostic> {
        stacker::maybe_grow(128 << 10, 4 << 20, || match &f.kind {
            StateKind::True | StateKind::False => {
                let truth = matches!(f.kind, StateKind::True) == sign;
                Ok(self.push(if truth { Position::True } else { Position::False }))
            }
            StateKind::Val(e) => {
                let e = self.expr(e)?;
                Ok(self.push(Position::Test(e, sign, f.span)))
            }
            StateKind::Not(g) => self.state(g, !sign, depth),
            StateKind::And(a, b) => self.both_positions((a, sign), (b, sign), sign, depth),
            StateKind::Or(a, b) => self.both_positions((a, sign), (b, sign), !sign, depth),
            StateKind::Implies(a, b) => self.both_positions((a, !sign), (b, sign), !sign, depth),
            StateKind::Forall(vars, g) | StateKind::Exists(vars, g) => {
                let all = matches!(f.kind, StateKind::Forall(..)) == sign;
                let mut at = self.state(g, sign, depth)?;
                for v in vars.iter().rev() {
                    at = self.push(if all {
                        Position::Forall(*v, at, f.span)
                    } else {
                        Position::Exists(*v, at, f.span)
                    });
                }
                Ok(at)
            }
            StateKind::Must(r, g) | StateKind::May(r, g) => {
                if matches!(f.kind, StateKind::Must(..)) != sign {
                    let text = "a diamond requires that a step exists, which an abstraction with more steps than the model cannot show";
                    return Err(Diagnostic::new(Stage::Unsupported, text).or_span(f.span));
                }
                let next = self.state(g, sign, depth)?;
                self.regular(r, next, depth)
            }
            StateKind::Fix { least, var, params, body } => {
                let vars: Vec<VarId> = params.iter().map(|p| p.0).collect();
                let values: Vec<Expr> =
                    params.iter().map(|p| self.expr(&p.1)).collect::<Result<_, _>>()?;
                let entry = self.fix(*least == sign, depth)?;
                let before = self.fixes.insert(*var, (vars.clone(), entry));
                let body = self.state(body, sign, depth + 1)?;
                match before {
                    Some(before) => self.fixes.insert(*var, before),
                    None => self.fixes.remove(var),
                };
                self.all[entry] = Position::All(vec![body]);
                Ok(self.push(Position::Assign(vars.into_iter().zip(values).collect(), entry)))
            }
            StateKind::Var(x, args) => {
                let Some((vars, entry)) = self.fixes.get(x).cloned() else {
                    return Err(Diagnostic::internal("a fixed-point variable is not bound"));
                };
                let values: Vec<Expr> =
                    args.iter().map(|e| self.expr(e)).collect::<Result<_, _>>()?;
                let set = vars.into_iter().zip(values).collect();
                Ok(self.push(Position::Assign(set, entry)))
            }
        })
    }

    fn both_positions(
        &mut self,
        (a, sign_a): (&TypedStateFormula, bool),
        (b, sign_b): (&TypedStateFormula, bool),
        all: bool,
        depth: u32,
    ) -> Result<usize, Diagnostic> {
        let (one, two) = (self.state(a, sign_a, depth)?, self.state(b, sign_b, depth)?);
        Ok(if all { self.push(Position::All(vec![one, two])) } else { self.either(one, two) })
    }

    /// Returns the disjunction of two positions. A test decides which side counts, so it is no
    /// choice.
    fn either(&mut self, one: usize, two: usize) -> usize {
        for (a, b) in [(one, two), (two, one)] {
            match self.all[a].clone() {
                Position::False => return b,
                Position::True => return a,
                Position::Test(e, expected, span) => {
                    return self.push(Position::Unless(e, expected, span, b));
                }
                Position::Unless(e, expected, span, rest) => {
                    let rest = self.either(rest, b);
                    return self.push(Position::Unless(e, expected, span, rest));
                }
                _ => {}
            }
        }
        self.push(Position::Any(vec![one, two]))
    }

    /// Creates the position of a fixed point.
    fn fix(&mut self, least: bool, depth: u32) -> Result<usize, Diagnostic> {
        if depth >= DEEPEST {
            return Err(Diagnostic::new(Stage::Unsupported, "too many nested fixed points"));
        }
        let entry = self.push(Position::True);
        self.priorities[entry] = 2 * (DEEPEST - depth) + u32::from(least);
        Ok(entry)
    }

    fn regular(&mut self, r: &Regular, next: usize, depth: u32) -> Result<usize, Diagnostic> {
        stacker::maybe_grow(128 << 10, 4 << 20, || match r {
            Regular::Action(a) => {
                let mut conditions = Vec::new();
                for i in 0..self.process.summands.len() {
                    let e = self.matches(a, i)?;
                    conditions.push((e.as_bool(self.signature) != Some(false)).then_some(e));
                }
                Ok(self.push(Position::Box(conditions, next)))
            }
            Regular::Seq(a, b) => {
                let next = self.regular(b, next, depth)?;
                self.regular(a, next, depth)
            }
            Regular::Alt(a, b) => {
                let (one, two) = (self.regular(a, next, depth)?, self.regular(b, next, depth)?);
                Ok(self.push(Position::All(vec![one, two])))
            }
            Regular::Star(a) => {
                let entry = self.fix(false, depth)?;
                let again = self.regular(a, entry, depth + 1)?;
                self.all[entry] = Position::All(vec![next, again]);
                Ok(entry)
            }
            Regular::Plus(a) => {
                let star = self.regular(&Regular::Star(a.clone()), next, depth)?;
                self.regular(a, star, depth)
            }
        })
    }

    /// Returns the condition that a step of a summand satisfies an action formula.
    fn matches(&mut self, a: &Action, summand: usize) -> Result<Expr, Diagnostic> {
        stacker::maybe_grow(128 << 10, 4 << 20, || {
            let truth = |this: &mut Self, b: bool| Expr::boolean(this.signature, b);
            Ok(match a {
                Action::True => truth(self, true),
                Action::False => truth(self, false),
                Action::Val(e) => self.expr(e)?,
                Action::Not(a) => {
                    let inner = self.matches(a, summand)?;
                    Expr::negate(self.signature, inner)
                }
                Action::And(a, b) => {
                    let (a, b) = (self.matches(a, summand)?, self.matches(b, summand)?);
                    Expr::and(self.signature, a, b)
                }
                Action::Or(a, b) => {
                    let (a, b) = (self.matches(a, summand)?, self.matches(b, summand)?);
                    self.or(a, b)
                }
                Action::Implies(a, b) => {
                    let (a, b) = (self.matches(a, summand)?, self.matches(b, summand)?);
                    let a = Expr::negate(self.signature, a);
                    self.or(a, b)
                }
                Action::Forall(vars, body) | Action::Exists(vars, body) => {
                    let inner = self.matches(body, summand)?;
                    if inner.as_bool(self.signature).is_some() {
                        return Ok(inner);
                    }
                    let forall = matches!(a, Action::Forall(..));
                    let binder = if forall { Binder::Forall } else { Binder::Exists };
                    let kind = ExprKind::Bind(binder, vars.clone(), inner);
                    Expr::new(kind, basic::BOOL, Span::default())
                }
                Action::Multi(acts) => self.is_multi(acts, summand)?,
            })
        })
    }

    fn or(&mut self, a: Expr, b: Expr) -> Expr {
        match (a.as_bool(self.signature), b.as_bool(self.signature)) {
            (Some(true), _) | (_, Some(false)) => a,
            (_, Some(true)) | (Some(false), _) => b,
            _ => Expr::builtin(self.signature, Builtin::Or, vec![a, b], basic::BOOL),
        }
    }

    /// Returns the condition that the label of a summand is this multi-action, in any order.
    fn is_multi(
        &mut self,
        acts: &[(ActId, Vec<Expr>)],
        summand: usize,
    ) -> Result<Expr, Diagnostic> {
        let own: Vec<(ActId, usize)> = self.process.summands[summand]
            .actions
            .iter()
            .map(|a| (a.action, a.args.len()))
            .collect();
        let mut starts = vec![0];
        own.iter().for_each(|(_, n)| starts.push(starts[starts.len() - 1] + n));
        let mut found = Expr::boolean(self.signature, false);
        if own.len() != acts.len() || own.len() > 6 {
            return match own.len() > 6 && own.len() == acts.len() {
                true => {
                    let text = "a label of more than six actions in a formula";
                    Err(Diagnostic::new(Stage::Unsupported, text))
                }
                false => Ok(found),
            };
        }
        for order in orders(acts.len()) {
            if !order.iter().zip(acts).all(|(at, act)| own[*at].0 == act.0) {
                continue;
            }
            let mut all = Expr::boolean(self.signature, true);
            for (at, (_, args)) in order.iter().zip(acts) {
                for (i, e) in args.iter().enumerate() {
                    let argument = self.arguments[summand][starts[*at] + i];
                    let (x, e) = (Expr::var(self.signature, argument), self.expr(e)?);
                    let equal = Expr::equal(self.signature, x, e);
                    all = Expr::and(self.signature, all, equal);
                }
            }
            found = self.or(found, all);
        }
        Ok(found)
    }
}

/// Returns all orders of the numbers below `n`.
fn orders(n: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for next in 0..n {
        let longer = |row: &Vec<usize>| -> Vec<Vec<usize>> {
            (0..=row.len()).map(|at| [&row[..at], &[next], &row[at..]].concat()).collect()
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

/// Computes the variables of the formula that each position needs.
fn live(process: &LinearProcess, all: &[Position], arguments: &[Vec<VarId>]) -> Vec<Vec<VarId>> {
    let mut foreign: Vec<VarId> = process.params.iter().map(|p| p.var).collect();
    foreign.extend(arguments.iter().flatten());
    foreign.sort_unstable();
    let free = |e: &Expr| {
        let mut out = Vec::new();
        e.free_vars(&mut out);
        out.retain(|v| foreign.binary_search(v).is_err());
        out
    };
    let mut live: Vec<Vec<VarId>> = vec![Vec::new(); all.len()];
    loop {
        let mut changed = false;
        for (at, position) in all.iter().enumerate().rev() {
            let mut own: Vec<VarId> = match position {
                Position::True | Position::False => Vec::new(),
                Position::Test(e, ..) => free(e),
                Position::Unless(e, _, _, next) => [free(e), live[*next].clone()].concat(),
                Position::All(next) | Position::Any(next) => {
                    next.iter().flat_map(|n| live[*n].iter().copied()).collect()
                }
                Position::Forall(v, next, _) | Position::Exists(v, next, _) => {
                    live[*next].iter().copied().filter(|w| w != v).collect()
                }
                Position::Box(conditions, next) => {
                    let of = conditions.iter().flatten().flat_map(free);
                    of.chain(live[*next].iter().copied()).collect()
                }
                Position::Assign(set, next) => {
                    let kept = live[*next].iter().copied();
                    let kept = kept.filter(|v| !set.iter().any(|(w, _)| w == v));
                    // A value that nothing reads is not evaluated.
                    let read = set.iter().filter(|(v, _)| live[*next].contains(v));
                    read.flat_map(|(_, e)| free(e)).chain(kept).collect()
                }
            };
            own.sort_unstable();
            own.dedup();
            if own != live[at] {
                live[at] = own;
                changed = true;
            }
        }
        if !changed {
            return live;
        }
    }
}
