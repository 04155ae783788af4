//! Actions that each component enables by itself in a state, before communication: the basis of
//! explanations.
//!
//! In: a state vector. Out: for each component its location and the multi-actions that its
//! conditions enable there, with their values. A sum variable that no condition restricts stays
//! open: any value is possible. If a condition has more than [`MAX_INSTANCES`] solutions, all of
//! its variables stay open. Cost: one evaluation for each summand of a component and each of its
//! local states, cached. Used for explanations only.

use super::Compiled;
use super::worker::LinearWorker;
use ahash::AHashMap;
use mu_base::Diagnostic;
use mu_base::ids::{ActId, VarId};
use mu_base::narrow;
use mu_data::engine::{Code, Engine, Problem, Value};
use mu_data::expr::Expr;
use mu_model::Slot;
use std::ops::ControlFlow;
use std::rc::Rc;

/// Limit on the instances of one summand; beyond it, arguments that depend on sums stay open.
const MAX_INSTANCES: usize = 16;
/// Limit on the local states with cached offers; beyond it, the cache is cleared.
const MAX_CACHED: usize = 1 << 15;
/// Limit on the candidates for a variable of an infinite sort; further values are not tried.
const MAX_CANDIDATES: u64 = 2_000;

/// Argument: a value, or `None` if any value is possible.
pub(super) type Argument = Option<Value>;

/// Multi-action that a component enables.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct LocalOffer {
    /// The summand.
    pub edge: usize,
    /// The actions.
    pub acts: Vec<(ActId, Vec<Argument>)>,
}

/// Component in one of its local states.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct LocalOffers {
    /// The component.
    pub component: usize,
    /// Its location; `None` after the successful termination of the whole process.
    pub location: Option<usize>,
    /// Multi-actions that it enables.
    pub offers: Vec<LocalOffer>,
    /// Summands with false conditions.
    pub closed: Vec<usize>,
}

struct EdgeCode {
    problem: Problem,
    args: Vec<(ActId, Vec<ArgumentCode>)>,
}

struct ArgumentCode {
    /// `None` if the argument depends on a variable that no condition restricts.
    code: Option<Code>,
    /// True if it depends on a variable of the problem.
    varies: bool,
}

/// Cache of the offers of components in their local states.
pub(super) struct Offers<'m> {
    model: &'m Compiled,
    worker: LinearWorker<'m>,
    /// By component: its slots, and the one that is its control location.
    slots: Vec<(Vec<Slot>, Option<Slot>)>,
    codes: AHashMap<(usize, usize), Rc<EdgeCode>>,
    numbers: AHashMap<LocalOffers, u32>,
    /// Offers by number.
    pub all: Vec<Rc<LocalOffers>>,
    seen: AHashMap<(usize, Vec<u32>), u32>,
}

impl<'m> Offers<'m> {
    pub(super) fn new(model: &'m Compiled) -> Self {
        let mut slots = vec![(Vec::new(), None); model.process.anatomy.components.len()];
        for (i, slot) in model.slots.iter().enumerate() {
            if let Some((all, control)) = slots.get_mut(slot.component as usize) {
                all.push(i as Slot);
                if slot.control {
                    *control = Some(i as Slot);
                }
            }
        }
        let mut worker = LinearWorker::new(model);
        worker.engine.set_growth_limit(MAX_CANDIDATES);
        let (codes, numbers, seen) = (AHashMap::new(), AHashMap::new(), AHashMap::new());
        Self { model, worker, slots, codes, numbers, all: Vec::new(), seen }
    }

    /// Returns an action with its arguments as text.
    pub(super) fn text(&mut self, action: ActId, args: &[Argument]) -> String {
        let decl = &self.model.process.actions[action.index()];
        let mut texts = Vec::new();
        for (arg, sort) in args.iter().zip(&decl.sorts) {
            texts.push(match arg {
                Some(value) => mu_data::print::expression(
                    self.model.program.signature(),
                    &self.worker.engine.to_expr_at(value, *sort),
                ),
                None => "_".into(),
            });
        }
        if texts.is_empty() {
            decl.name.clone()
        } else {
            format!("{}({})", decl.name, texts.join(", "))
        }
    }

    /// Returns the normal form of a closed expression if it is a value with unique representation;
    /// `None` otherwise.
    pub(super) fn constant(&mut self, e: &Expr) -> Result<Option<Expr>, Diagnostic> {
        let value = self.worker.engine.from_expr(e)?;
        Ok(value.is_data().then(|| self.worker.engine.to_expr_at(&value, e.sort)))
    }

    /// Returns the number of a component's local state in terms of its offers: equal numbers mean
    /// equal offers.
    pub(super) fn local(&mut self, component: usize, state: &[u32]) -> Result<u32, Diagnostic> {
        let values: Vec<u32> = self.slots[component].0.iter().map(|s| state[*s as usize]).collect();
        if let Some(&known) = self.seen.get(&(component, values.clone())) {
            return Ok(known);
        }
        let local = self.compute(component, state)?;
        let all = &mut self.all;
        let number = *self.numbers.entry(local).or_insert_with_key(|local| {
            all.push(Rc::new(local.clone()));
            narrow::index(all.len()) - 1
        });
        if self.seen.len() >= MAX_CACHED {
            self.seen.clear();
        }
        self.seen.insert((component, values), number);
        Ok(number)
    }

    fn compute(&mut self, component: usize, state: &[u32]) -> Result<LocalOffers, Diagnostic> {
        let model = self.model;
        let automaton = &model.process.anatomy.components[component];
        let location = match self.slots[component].1 {
            None => Some(0),
            Some(slot) => self.location(slot, state[slot as usize]),
        };
        let location = location.filter(|l| *l < automaton.locations.len());
        let mut local = LocalOffers { component, location, offers: Vec::new(), closed: Vec::new() };
        let Some(location) = location else { return Ok(local) };
        let mut env = Vec::new();
        for slot in self.slots[component].0.clone() {
            env.push(self.worker.value(slot, state[slot as usize])?);
        }
        for (e, _) in automaton.edges.iter().enumerate().filter(|(_, e)| e.from == location) {
            let code = self.code(component, e)?;
            let offers = self.instances(e, &code, &env)?;
            if offers.is_empty() {
                local.closed.push(e);
            }
            local.offers.extend(offers);
        }
        Ok(local)
    }

    /// Returns the location that a value of a control slot stands for; `None` if there is none.
    fn location(&mut self, slot: Slot, value: u32) -> Option<usize> {
        location_of(&self.model.value(slot, value))
    }

    fn code(&mut self, component: usize, edge: usize) -> Result<Rc<EdgeCode>, Diagnostic> {
        if let Some(known) = self.codes.get(&(component, edge)) {
            return Ok(known.clone());
        }
        let process = &self.model.process;
        let (anatomy, engine) = (&process.anatomy, &mut self.worker.engine);
        let e = &anatomy.components[component].edges[edge];
        let params: Vec<VarId> =
            self.slots[component].0.iter().map(|s| process.params[*s as usize].var).collect();
        let guard = e.guard.substitute(&anatomy.defined);
        let mut used = Vec::new();
        guard.free_vars(&mut used);
        let sum_vars: Vec<VarId> =
            e.sum_vars.iter().copied().filter(|v| used.contains(v)).collect();
        let env: Vec<VarId> = params.iter().chain(&sum_vars).copied().collect();
        let problem = engine.problem(&sum_vars, &guard, &params)?;
        let mut args = Vec::new();
        for act in &e.acts {
            let mut codes = Vec::new();
            for arg in &act.args {
                let arg = arg.substitute(&anatomy.defined);
                let mut free = Vec::new();
                arg.free_vars(&mut free);
                let closed = free.iter().all(|v| env.contains(v));
                codes.push(ArgumentCode {
                    code: if closed { Some(engine.code(&arg, &env)?) } else { None },
                    varies: free.iter().any(|v| sum_vars.contains(v)),
                });
            }
            args.push((act.action, codes));
        }
        let code = Rc::new(EdgeCode { problem, args });
        self.codes.insert((component, edge), code.clone());
        Ok(code)
    }

    fn instances(
        &mut self,
        edge: usize,
        code: &EdgeCode,
        env: &[Value],
    ) -> Result<Vec<LocalOffer>, Diagnostic> {
        let mut out: Vec<LocalOffer> = Vec::new();
        let mut many = false;
        let solved = self.worker.engine.solve(
            &code.problem,
            env,
            &mut |engine: &mut Engine, solution: &[Value]| {
                let full: Vec<Value> = env.iter().chain(solution).cloned().collect();
                let mut acts = Vec::new();
                for (action, args) in &code.args {
                    let mut values = Vec::new();
                    for arg in args {
                        values.push(arg.code.as_ref().map(|a| engine.eval(a, &full)).transpose()?);
                    }
                    acts.push((*action, values));
                }
                let offered = LocalOffer { edge, acts };
                if !out.contains(&offered) {
                    out.push(offered);
                }
                many = out.len() > MAX_INSTANCES;
                Ok(if many { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            },
        );
        if many {
            out.truncate(1);
            for (open, args) in out.iter_mut().flat_map(|o| &mut o.acts).zip(&code.args) {
                let values = open.1.iter_mut().zip(&args.1);
                values.filter(|(_, arg)| arg.varies).for_each(|(value, _)| *value = None);
            }
        }
        match solved {
            Ok(()) => {}
            Err(limit) if limit.stop.is_some() => return Err(limit),
            // The matching values are unknown, so any value is possible.
            Err(_) => out.push(LocalOffer {
                edge,
                acts: code.args.iter().map(|(a, args)| (*a, vec![None; args.len()])).collect(),
            }),
        }
        Ok(out)
    }
}

/// Returns the location that a value of a control parameter stands for; `None` if it is not a
/// positive number.
pub(super) fn location_of(value: &Expr) -> Option<usize> {
    match &value.kind {
        mu_data::expr::ExprKind::Number(n) => n.to_string().parse::<usize>().ok()?.checked_sub(1),
        _ => None,
    }
}
