//! Obligations: what must be shown of states with numbers without a value, explored as a game.
//!
//! Input: a [`Question`]. Output: an [`Answer`]. An obligation is a position of the formula, the
//! values of the process parameters and of the formula's variables with numbered unknowns in the
//! place of numbers, and a system of differences over these. It stands for the concrete obligations
//! of all solutions. Each is expanded by evaluation along paths: a path's constraints hold for some
//! of the solutions, which have exactly the successors that the path computes. All paths together
//! are all solutions, so each concrete successor is covered by an abstract one (with all its
//! solutions, after rounding). Therefore, if the prover wins the abstract game, with one choice for
//! each obligation, it wins each concrete game. An obligation that is included in an explored one
//! is not explored.
//!
//! If the refuter reaches a violation, the comparisons that evaluations have made become
//! thresholds, and the exploration starts again; then thresholds follow numbers backwards through
//! steps. Cost: evaluations for each obligation; obligations up to a limit, for each round.

use crate::audit::AuditCounts;
use crate::differences::Differences;
use crate::path::SharedPath;
use crate::positions::{Position, Positions};
use crate::thresholds::{Flow, Thresholds, ZERO};
use crate::verify::{AnySize, Identities};
use ahash::{AHashMap, AHashSet};
use mu_base::ids::{OpId, SortId, VarId, VertexId};
use mu_base::{Budget, Diagnostic, Span, Stage};
use mu_data::builtins::linear::least;
use mu_data::engine::{Code, Engine, Problem, Program, Value};
use mu_data::expr::{DataSpec, Expr};
use mu_data::signature::{OpKind, Signature};
use mu_data::sort::{SortKind, basic};
use mu_formula::typed::TypedFormula;
use mu_game::{Game, Player};
use mu_process::linear::{LinearProcess, Param, ParamRole};
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

/// Limit on the numbers in one state.
const MAX_NUMBERS: usize = 48;
/// Limit on rounds of refinement.
const MAX_ROUNDS: usize = 80;
/// Limit on rounds in which thresholds follow numbers backwards further than before.
const MAX_REACH: i64 = 3;
/// Limit on thresholds between two places.
const MAX_THRESHOLDS: usize = 80;
/// Limit on paths over all rounds, for each obligation of the limit.
const PATHS: u64 = 40;
/// Limit on obligations, if the run has none.
const MAX_OBLIGATIONS: usize = 100_000;

/// A formula on a process with symbolic parameters.
pub struct Question<'a> {
    /// The process, in which symbolic parameters are parameters that never change.
    pub process: &'a LinearProcess,
    /// Initial values over symbolic parameters, by parameter; others are in the process.
    pub initial: &'a [(usize, Expr)],
    /// The symbolic parameters: parameter, least value.
    pub symbolic: &'a [(usize, i64)],
    /// Their names, for messages.
    pub names: &'a [String],
    /// Constants of the formula as expressions over symbolic parameters.
    pub constants: &'a AHashMap<OpId, Expr>,
    /// The formula.
    pub formula: &'a TypedFormula,
    /// The limits of the run.
    pub budget: &'a Budget,
    /// Limit on obligations.
    pub most: Option<usize>,
    /// True if a certificate is wanted.
    pub certificate: bool,
    /// Components of any number, for [`crate::confirm`].
    pub identities: Option<&'a Identities>,
    /// Sorts of any size, for [`crate::confirm`].
    pub sizes: &'a [AnySize],
}

/// The samples that audit a proof.
pub struct Samples<'a> {
    /// Their number, at most.
    pub most: usize,
    /// Seed of the random choices.
    pub seed: u64,
    /// True when the time is used up.
    pub enough: &'a dyn Fn() -> bool,
}

/// The result of a search for a proof.
#[derive(Debug)]
pub enum Answer {
    /// The formula is true for all values.
    True(Proof),
    /// There is no proof.
    Unknown(NoProof),
    /// The limit on obligations or on paths ended the search.
    Limit(NoProof),
}

/// The result of a search without a proof.
#[derive(Debug)]
pub struct NoProof {
    /// The reason.
    pub why: Diagnostic,
    /// The absolute values of the constants with which evaluations compared numbers and differences
    /// of numbers.
    pub compared: BTreeSet<u64>,
}

impl From<Diagnostic> for NoProof {
    fn from(why: Diagnostic) -> Self {
        NoProof { why, compared: BTreeSet::new() }
    }
}

/// Figures of a proof.
#[derive(Clone, Debug, Default)]
pub struct Proof {
    /// Number of obligations.
    pub obligations: usize,
    /// Number of moves between them.
    pub moves: usize,
    /// Number of paths that were evaluated, over all rounds.
    pub paths: u64,
    /// Number of explorations.
    pub rounds: usize,
    /// The check by samples.
    pub audited: AuditCounts,
    /// The text of the certificate, if it is wanted.
    pub certificate: Option<String>,
}

/// Compiled expression with the variables that it reads.
#[derive(Clone)]
pub(crate) struct Compiled {
    pub code: Code,
    pub env: Vec<VarId>,
    pub span: Span,
}

/// Compiled summand.
pub(crate) struct Step {
    /// Summed variables that are chosen before the condition is evaluated.
    pub drawn: Vec<VarId>,
    /// Summed variables that the condition is solved for.
    pub solved: Vec<VarId>,
    pub problem: Problem,
    pub env: Vec<VarId>,
    pub arguments: Vec<Compiled>,
    pub updates: Vec<(usize, Compiled)>,
    pub span: Span,
}

/// An obligation.
#[derive(Clone)]
pub(crate) struct Node {
    pub position: usize,
    /// Values of the process parameters, then of the live variables; unknown `k` is variable
    /// `k + 1`.
    pub values: Rc<[Value]>,
    pub places: Rc<[u64]>,
    pub sorts: Rc<[SortId]>,
    pub zone: Rc<Differences>,
}

/// The values of variables.
pub(crate) type Env = AHashMap<VarId, Value>;

/// The reason why an exploration ends without a proof.
pub(crate) enum Fail {
    /// The refuter may win, or an evaluation has no value.
    Refuted(Diagnostic),
    /// Operations need the values of numbers at these places.
    Exact(Vec<u64>, Box<Diagnostic>),
    /// A limit, or what no refinement changes.
    Stop(Diagnostic),
}

impl From<Diagnostic> for Fail {
    fn from(why: Diagnostic) -> Self {
        Fail::Stop(why)
    }
}

pub(crate) struct Prover<'a> {
    pub question: &'a Question<'a>,
    pub signature: Signature,
    /// The data of the process and the formula.
    pub data: DataSpec,
    pub positions: Positions,
    pub engine: Engine,
    pub steps: Vec<Step>,
    /// Tests and assigned values by position; conditions of labels by position and summand.
    pub tests: AHashMap<usize, Vec<(VarId, Compiled)>>,
    pub conditions: AHashMap<(usize, usize), Compiled>,
    /// Variables for unknowns.
    pub pool: Vec<VarId>,
    pub thresholds: Thresholds,
    pub met: AHashSet<(u64, u64, i64)>,
    /// See [`NoProof::compared`], of the rounds before this one.
    pub compared: BTreeSet<u64>,
    pub flows: AHashSet<Flow>,
    /// Places of numbers that sums and quantifiers choose.
    pub fresh: AHashSet<u64>,
    pub names: AHashMap<u64, String>,
    /// For each number that the current evaluation has chosen, its index and its name in messages.
    pub drawn: Vec<(usize, String)>,
    pub nodes: Vec<Node>,
    pub known: AHashMap<(usize, Rc<[Value]>), Vec<usize>>,
    pub paths: u64,
    /// Obligations that the prover loses: their successors are not explored.
    pub lost: AHashSet<usize>,
    /// After a proof: the obligations that the prover wins, and its choices.
    pub won: Vec<bool>,
    pub chosen: Vec<Option<usize>>,
    /// True after the limit on obligations or on paths.
    pub limited: bool,
}

/// Searches for a proof that a formula holds for all values of the symbolic parameters.
///
/// # Errors
///
/// Internal ones. Everything else is an [`Answer::Unknown`].
pub fn prove(question: &Question, samples: &Samples) -> Result<Answer, Diagnostic> {
    let mut limited = false;
    let mut compared = BTreeSet::new();
    let found = Prover::new(question).and_then(|mut prover| {
        let found = prover.rounds();
        limited = prover.limited;
        compared = std::mem::take(&mut prover.compared);
        compared.extend(prover.met.iter().map(|(_, _, c)| c.unsigned_abs()));
        let mut proof = found?;
        proof.audited = prover.audit(samples.most, samples.seed, samples.enough)?;
        Ok(proof)
    });
    match found {
        Err(why) if why.stage == Stage::Internal => Err(why),
        Err(why) if limited => Ok(Answer::Limit(NoProof { why, compared })),
        Err(why) => Ok(Answer::Unknown(NoProof { why, compared })),
        Ok(proof) => Ok(Answer::True(proof)),
    }
}

/// Returns the place of a whole value of a variable.
pub(crate) fn root(var: VarId) -> u64 {
    (u64::from(var.number()) + 1).wrapping_mul(0xd6e8_feb8_6659_fd93) | 1
}

impl<'a> Prover<'a> {
    fn new(question: &'a Question<'a>) -> Result<Self, Diagnostic> {
        let Question { process, formula, .. } = question;
        if process.is_probabilistic() || process.is_timed() || !process.globals.is_empty() {
            let text = "evaluation along paths supports no time, chance, and global variables";
            return Err(Diagnostic::new(Stage::Unsupported, text));
        }
        let mut signature = formula.data.signature.clone();
        let positions = Positions::new(process, &mut signature, question.constants, formula)?;
        let pool = crate::certificate::numbers(&mut signature, 2 * MAX_NUMBERS, basic::NAT);
        let data =
            DataSpec { signature: signature.clone(), equations: formula.data.equations.clone() };
        let program = Program::compile(&data)?;
        // Normal forms use the operations of the program.
        let signature = program.signature().clone();
        let data = DataSpec { signature: signature.clone(), ..data };
        let engine = Engine::new(program).with_budget(question.budget);
        let mut prover = Self {
            question,
            data,
            signature,
            positions,
            engine,
            steps: Vec::new(),
            tests: AHashMap::new(),
            conditions: AHashMap::new(),
            pool,
            thresholds: Thresholds::default(),
            met: AHashSet::new(),
            compared: BTreeSet::new(),
            flows: AHashSet::new(),
            fresh: AHashSet::new(),
            names: AHashMap::new(),
            drawn: Vec::new(),
            nodes: Vec::new(),
            known: AHashMap::new(),
            paths: 0,
            lost: AHashSet::new(),
            won: Vec::new(),
            chosen: Vec::new(),
            limited: false,
        };
        prover.compile()?;
        Ok(prover)
    }

    pub(crate) fn compile_expr(&mut self, e: &Expr) -> Result<Compiled, Diagnostic> {
        let mut env = Vec::new();
        e.free_vars(&mut env);
        Ok(Compiled { code: self.engine.code(e, &env)?, env, span: e.span })
    }

    fn compile(&mut self) -> Result<(), Diagnostic> {
        let process = self.question.process;
        for p in &process.params {
            let name = self.signature.var(p.var).name.clone();
            self.names.insert(root(p.var), name);
            // A location is a number that is only compared with literals.
            if matches!(p.role, ParamRole::Control(_)) {
                self.thresholds.exact.insert(root(p.var));
            }
        }
        for ((at, _), name) in self.question.symbolic.iter().zip(self.question.names) {
            self.names.insert(root(process.params[*at].var), name.clone());
        }
        for summand in &process.summands {
            let mut used = Vec::new();
            let results = summand.updates.iter().map(|u| &u.1);
            let results = results.chain(summand.actions.iter().flat_map(|a| &a.args));
            std::iter::once(&summand.guard).chain(results).for_each(|e| e.free_vars(&mut used));
            let (mut drawn, mut solved) = (Vec::new(), Vec::new());
            for v in summand.sum_vars.iter().filter(|v| used.contains(v)) {
                let sort = self.signature.var(*v).sort;
                if self.holds_numbers(sort, &mut Vec::new()) == Some(true) {
                    drawn.push(*v);
                } else {
                    solved.push(*v);
                }
            }
            let mut env = Vec::new();
            summand.guard.free_vars(&mut env);
            env.retain(|v| !solved.contains(v));
            let problem = self.engine.problem(&solved, &summand.guard, &env)?;
            let arguments = summand.actions.iter().flat_map(|a| &a.args);
            let arguments = arguments.map(|e| self.compile_expr(e)).collect::<Result<_, _>>()?;
            let updates = summand.updates.iter().map(|(at, e)| Ok((*at, self.compile_expr(e)?)));
            let updates = updates.collect::<Result<_, Diagnostic>>()?;
            let span = summand.span();
            self.steps.push(Step { drawn, solved, problem, env, arguments, updates, span });
        }
        for at in 0..self.positions.all.len() {
            match self.positions.all[at].clone() {
                Position::Test(e, ..) | Position::Unless(e, ..) => {
                    let test = self.compile_expr(&e)?;
                    self.tests.insert(at, vec![(VarId::of(u32::MAX), test)]);
                }
                Position::Assign(set, next) => {
                    let mut all = Vec::new();
                    let live = self.positions.live[next].clone();
                    for (v, e) in set.iter().filter(|(v, _)| live.contains(v)) {
                        all.push((*v, self.compile_expr(e)?));
                    }
                    self.tests.insert(at, all);
                }
                Position::Box(conditions, _) => {
                    for (i, e) in conditions.iter().enumerate() {
                        if let Some(e) =
                            e.as_ref().filter(|e| e.as_bool(&self.signature) != Some(true))
                        {
                            let condition = self.compile_expr(e)?;
                            self.conditions.insert((at, i), condition);
                        }
                    }
                }
                _ => {}
            }
        }
        for v in self.positions.live.iter().flatten() {
            let name = self.signature.var(*v).name.clone();
            self.names.insert(root(*v), name);
        }
        Ok(())
    }

    /// True if values of a sort contain numbers, at finitely many places; `None` if there may be
    /// any number of them.
    pub(crate) fn holds_numbers(&self, sort: SortId, path: &mut Vec<SortId>) -> Option<bool> {
        match self.signature.sorts.kind(sort) {
            SortKind::Pos | SortKind::Nat | SortKind::Int => Some(true),
            SortKind::Bool => Some(false),
            SortKind::Named(n) => {
                if path.contains(&sort) {
                    return None;
                }
                path.push(sort);
                let constructors = &self.signature.sorts.named[*n as usize].constructors;
                let mut any = false;
                for c in constructors {
                    let op = self.signature.op(*c);
                    if op.sort != sort && !matches!(op.kind, OpKind::Constructor(_)) {
                        return None;
                    }
                    for d in self.signature.domain_range(op.sort).0 {
                        any |= self.holds_numbers(*d, path)?;
                    }
                }
                path.pop();
                Some(any && !constructors.is_empty())
            }
            _ => None,
        }
    }

    /// Returns any value of a variable, by choices of the path; `None` if there are infinitely many
    /// shapes.
    pub(crate) fn any_value(
        &mut self,
        var: VarId,
        path: &SharedPath,
    ) -> Result<Option<Value>, Diagnostic> {
        let signature = &self.signature;
        let (sort, name) = (signature.var(var).sort, signature.var(var).name.clone());
        let is_number = [basic::POS, basic::NAT, basic::INT].contains(&sort);
        let name = if is_number { name } else { format!("a number in {name}") };
        let before = path.borrow().zone.size() - 1;
        let found = self.any_of_sort(sort, path);
        let drawn = before..path.borrow().zone.size() - 1;
        self.drawn.extend(drawn.map(|at| (at, name.clone())));
        found
    }

    fn any_of_sort(
        &mut self,
        sort: SortId,
        path: &SharedPath,
    ) -> Result<Option<Value>, Diagnostic> {
        match self.signature.sorts.kind(sort).clone() {
            SortKind::Pos | SortKind::Nat | SortKind::Int => {
                let at = path.borrow_mut().zone.add(least(sort));
                let Some(var) = self.pool.get(at - 1).copied() else {
                    let text = format!("a state has more than {} numbers", self.pool.len());
                    return Err(Diagnostic::new(Stage::Unsupported, text));
                };
                Ok(Some(self.engine.rigid(sort, var)))
            }
            SortKind::Named(n) if self.holds_numbers(sort, &mut Vec::new()) == Some(true) => {
                let constructors = self.signature.sorts.named[n as usize].constructors.clone();
                let chosen = path.borrow_mut().choose(constructors.len() as u32);
                let op = constructors[chosen as usize];
                let domain = self.signature.domain_range(self.signature.op(op).sort).0.to_vec();
                let mut args = Vec::new();
                for d in domain {
                    match self.any_of_sort(d, path)? {
                        Some(v) => args.push(v),
                        None => return Ok(None),
                    }
                }
                self.engine.construct(op, args).map(Some)
            }
            _ => {
                let Some(values) = self.engine.values_of(sort)? else { return Ok(None) };
                if values.is_empty() {
                    return Ok(None);
                }
                let chosen = path.borrow_mut().choose(values.len() as u32);
                Ok(Some(values[chosen as usize].clone()))
            }
        }
    }

    /// Explores with more and more thresholds.
    fn rounds(&mut self) -> Result<Proof, Diagnostic> {
        let mut reach = 0;
        let mut last = None;
        for round in 1..=MAX_ROUNDS {
            match self.explore() {
                Ok(moves) => {
                    let obligations = self.nodes.len();
                    let (paths, audited) = (self.paths, AuditCounts::default());
                    let certificate =
                        self.question.certificate.then(|| self.certificate().text(&self.data));
                    return Ok(Proof {
                        obligations,
                        moves,
                        paths,
                        rounds: round,
                        audited,
                        certificate,
                    });
                }
                Err(Fail::Stop(why)) => return Err(why),
                Err(Fail::Exact(places, why)) => {
                    let before = self.thresholds.exact.len();
                    self.thresholds.exact.extend(places);
                    if self.thresholds.exact.len() == before {
                        return Err(*why);
                    }
                }
                Err(Fail::Refuted(why)) => {
                    let met = std::mem::take(&mut self.met);
                    self.compared.extend(met.iter().map(|(_, _, c)| c.unsigned_abs()));
                    let mut new = met
                        .into_iter()
                        .fold(false, |new, (x, y, c)| self.thresholds.add(x, y, c) || new);
                    loop {
                        let most = self.thresholds.largest().saturating_add(reach);
                        let mut steps = 0;
                        while steps < 8 && self.thresholds.propagate(&self.flows, &self.fresh, most)
                        {
                            new = true;
                            steps += 1;
                        }
                        if new || reach >= MAX_REACH {
                            break;
                        }
                        reach += 1;
                    }
                    if let Some(((x, y), n)) = self.thresholds.widest()
                        && n > MAX_THRESHOLDS
                    {
                        let text = format!(
                            "{} is compared with more and more numbers",
                            self.difference(x, y)
                        );
                        return Err(Diagnostic::new(Stage::Unsupported, text));
                    }
                    if !new {
                        return Err(why);
                    }
                    last = Some(why);
                }
            }
        }
        let why = last.unwrap_or_else(|| Diagnostic::new(Stage::Unsupported, "no proof was found"));
        Err(why.note(format!("after {MAX_ROUNDS} refinements of the differences between numbers")))
    }

    pub(crate) fn place_name(&self, place: u64) -> String {
        match self.names.get(&place) {
            Some(name) => format!("`{name}`"),
            None => "a number in a structure".into(),
        }
    }

    /// Replaces the names of numbers in a message by those of their places.
    pub(crate) fn with_names(&self, node: &Node, text: &str) -> String {
        let name_of = |at: usize| match node.places.get(at) {
            Some(place) => self.names.get(place).cloned(),
            None => self.drawn.iter().find(|d| d.0 == at).map(|d| d.1.clone()),
        };
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '\'';
        let mut out = String::new();
        let mut rest = text;
        while let Some(start) = rest.find(is_word) {
            let length = rest[start..].find(|c| !is_word(c)).unwrap_or(rest.len() - start);
            let (before, word) = (&rest[..start], &rest[start..start + length]);
            let at = self.pool.iter().position(|v| self.signature.var(*v).name == word);
            out += before;
            match at {
                Some(at) => out += &name_of(at).unwrap_or_else(|| "(a number)".into()),
                None => out += word,
            }
            rest = &rest[start + length..];
        }
        out + rest
    }

    /// Describes the difference of two places.
    fn difference(&self, x: u64, y: u64) -> String {
        match (x, y) {
            (ZERO, p) | (p, ZERO) => format!("the number {}", self.place_name(p)),
            _ => {
                let (a, b) = (self.place_name(x), self.place_name(y));
                format!("the difference between {a} and {b}")
            }
        }
    }

    /// Explores all obligations. Returns the number of moves.
    fn explore(&mut self) -> Result<usize, Fail> {
        self.nodes.clear();
        self.known.clear();
        self.met.clear();
        self.lost.clear();
        let starts = self.start()?;
        let mut edges: Vec<(bool, Vec<usize>)> = Vec::new();
        let mut queue: VecDeque<usize> = (0..self.nodes.len()).collect();
        let mut expanded = 0;
        let most = self.question.most.unwrap_or(MAX_OBLIGATIONS);
        let mut refuted: Option<Diagnostic> = None;
        while let Some(at) = queue.pop_front() {
            debug_assert_eq!(at, expanded);
            expanded += 1;
            if expanded % 16 == 0 {
                self.question
                    .budget
                    .check(self.nodes.len() as u64)
                    .map_err(|stop| Fail::Stop(Diagnostic::stopped(stop)))?;
            }
            let before = self.nodes.len();
            match self.expand(at) {
                Ok(found) => edges.push(found),
                // Without choices of the prover, the refuter wins at once.
                Err(Fail::Refuted(why)) if self.positions.chooses => {
                    refuted.get_or_insert(why);
                    self.lost.insert(at);
                    edges.push((true, Vec::new()));
                }
                Err(why) => return Err(why),
            }
            if self.nodes.len() > most || self.paths > PATHS * most as u64 {
                self.limited = true;
                return Err(Fail::Stop(self.diverges(most)));
            }
            queue.extend(before..self.nodes.len());
        }
        let moves = edges.iter().map(|e| e.1.len()).sum();
        let mut game = Game::default();
        for (at, (any, next)) in edges.iter().enumerate() {
            let owner = if *any { Player::Even } else { Player::Odd };
            let priority = self.positions.priorities[self.nodes[at].position];
            game.push(owner, priority, next.iter().map(|n| VertexId::new(*n)));
        }
        game.initial = game.push(Player::Odd, 0, starts.iter().map(|n| VertexId::new(*n)));
        let solution = mu_game::solve::default_solver()
            .solve(&game, self.question.budget)
            .map_err(|stop| Fail::Stop(Diagnostic::stopped(stop)))?;
        if let Err(flaw) = mu_game::verify::verify(&game, &solution) {
            let text = format!("the solution of a game is wrong: {flaw:?}");
            return Err(Fail::Stop(Diagnostic::internal(text)));
        }
        if solution.winner(game.initial) == Player::Even {
            let of = |at: usize| VertexId::new(at);
            let count = self.nodes.len();
            self.won = (0..count).map(|at| solution.winner(of(at)) == Player::Even).collect();
            let choice = |at: usize| solution.strategy[at].filter(|_| edges[at].0);
            self.chosen = (0..count).map(|at| choice(at).map(VertexId::index)).collect();
            return Ok(moves);
        }
        Err(Fail::Refuted(refuted.unwrap_or_else(|| {
            let text = "the abstraction has runs that violate the formula, but possibly no value has such a run";
            Diagnostic::new(Stage::Unsupported, text)
        })))
    }

    /// Names the numbers with the most different values, or differences.
    fn diverges(&self, most: usize) -> Diagnostic {
        let control = |place: &u64| {
            let is = |p: &Param| matches!(p.role, ParamRole::Control(_)) && root(p.var) == *place;
            self.question.process.params.iter().any(is)
        };
        let mut seen: AHashMap<(u64, u64), AHashSet<i64>> = AHashMap::new();
        for node in self.nodes.iter().rev().take(2_000) {
            let place = |x: usize| if x == 0 { ZERO } else { node.places[x - 1] };
            for x in 0..node.zone.size() {
                for y in 0..x {
                    let c = node.zone.bound(x, y);
                    let named = !control(&place(x)) && !control(&place(y));
                    if named && c != crate::differences::NONE {
                        seen.entry((place(x), place(y))).or_default().insert(c);
                    }
                }
            }
        }
        // A difference explains more than one of its numbers.
        let is_difference = |(x, y): (u64, u64)| x != ZERO && y != ZERO;
        let most_values =
            seen.iter().max_by_key(|(pair, all)| (all.len(), is_difference(**pair), **pair));
        let what = match most_values {
            Some(((x, y), all)) if all.len() > 20 => {
                format!("{} takes more and more values", self.difference(*x, *y))
            }
            _ if self.nodes.len() > most => format!("there are more than {most} obligations"),
            _ => format!("more than {} paths are evaluated", PATHS * most as u64),
        };
        let mut why = Diagnostic::new(Stage::Unsupported, what);
        if let Some(place) = self.thresholds.exact.iter().filter(|p| !control(p)).min() {
            let text = format!("an operation needs the value of {}", self.place_name(*place));
            why = why.note(text);
        }
        why
    }
}
