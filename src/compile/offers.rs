//! What each component could do by itself in a state, before communication: the ground of
//! explanations.
//!
//! In: a state vector. Out: for each component its location and the multi-actions that its
//! conditions allow there, with their values. A variable summed over that no condition speaks of
//! stays open: any value would do. Of a condition with many solutions the first [`MOST`] are taken.
//! Cost: one evaluation for each summand of a component and each of its own states, remembered;
//! explanations are for what people look at.

use super::Compiled;
use super::worker::LinearWorker;
use ahash::AHashMap;
use mu_base::Diagnostic;
use mu_base::ids::{ActId, VarId};
use mu_data::engine::{Code, Engine, Problem, Value};
use mu_data::expr::Expr;
use mu_model::Slot;
use std::ops::ControlFlow;
use std::rc::Rc;

/// Most instances of one summand.
const MOST: usize = 16;
/// Most states of components whose offers are remembered.
const MOST_SEEN: usize = 1 << 15;
/// Most candidates for a variable of an infinite sort.
const TRIED: u64 = 2_000;

/// An argument: a value, or none where any would do.
pub(super) type Argument = Option<Value>;

/// A multi-action that a component could do.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Offered {
    /// The summand.
    pub edge: usize,
    /// The actions.
    pub acts: Vec<(ActId, Vec<Argument>)>,
}

/// A component in one of its own states.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Local {
    /// The component.
    pub component: usize,
    /// Its location; none after the successful end of the whole.
    pub location: Option<usize>,
    /// What it could do.
    pub offers: Vec<Offered>,
    /// Summands whose conditions are false.
    pub closed: Vec<usize>,
}

struct EdgeCode {
    problem: Problem,
    args: Vec<(ActId, Vec<Option<Code>>)>,
}

/// Computes and remembers.
pub(super) struct Offers<'m> {
    model: &'m Compiled,
    worker: LinearWorker<'m>,
    /// By component: its slots, and which of them is the control location.
    slots: Vec<(Vec<Slot>, Option<Slot>)>,
    codes: AHashMap<(usize, usize), Rc<EdgeCode>>,
    numbers: AHashMap<Local, u32>,
    /// What there was to offer, by number.
    pub all: Vec<Rc<Local>>,
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
        worker.engine.set_growth_limit(TRIED);
        let (codes, numbers, seen) = (AHashMap::new(), AHashMap::new(), AHashMap::new());
        Self { model, worker, slots, codes, numbers, all: Vec::new(), seen }
    }

    /// Expressions of a value, as text.
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

    /// The normal form of a closed expression if that is a value that is like no other; else none.
    pub(super) fn constant(&mut self, e: &Expr) -> Result<Option<Expr>, Diagnostic> {
        let value = self.worker.engine.from_expr(e)?;
        Ok(value.is_data().then(|| self.worker.engine.to_expr_at(&value, e.sort)))
    }

    /// The number of what a component is and offers in a state: equal numbers, equal offers.
    pub(super) fn local(&mut self, component: usize, state: &[u32]) -> Result<u32, Diagnostic> {
        let values: Vec<u32> = self.slots[component].0.iter().map(|s| state[*s as usize]).collect();
        if let Some(&known) = self.seen.get(&(component, values.clone())) {
            return Ok(known);
        }
        let local = self.compute(component, state)?;
        let all = &mut self.all;
        let number = *self.numbers.entry(local).or_insert_with_key(|local| {
            all.push(Rc::new(local.clone()));
            all.len() as u32 - 1
        });
        if self.seen.len() >= MOST_SEEN {
            self.seen.clear();
        }
        self.seen.insert((component, values), number);
        Ok(number)
    }

    fn compute(&mut self, component: usize, state: &[u32]) -> Result<Local, Diagnostic> {
        let model = self.model;
        let automaton = &model.process.anatomy.components[component];
        let location = match self.slots[component].1 {
            None => Some(0),
            Some(slot) => self.location(slot, state[slot as usize]),
        };
        let location = location.filter(|l| *l < automaton.locations.len());
        let mut local = Local { component, location, offers: Vec::new(), closed: Vec::new() };
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

    /// The location behind a value of a control slot, if it stands for one.
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
                codes.push(if closed { Some(engine.code(&arg, &env)?) } else { None });
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
    ) -> Result<Vec<Offered>, Diagnostic> {
        let mut out: Vec<Offered> = Vec::new();
        let solved = self.worker.engine.solve(
            &code.problem,
            env,
            &mut |engine: &mut Engine, solution: &[Value]| {
                let full: Vec<Value> = env.iter().chain(solution).cloned().collect();
                let mut acts = Vec::new();
                for (action, args) in &code.args {
                    let mut values = Vec::new();
                    for arg in args {
                        values.push(arg.as_ref().map(|a| engine.eval(a, &full)).transpose()?);
                    }
                    acts.push((*action, values));
                }
                let offered = Offered { edge, acts };
                if !out.contains(&offered) {
                    out.push(offered);
                }
                Ok(if out.len() < MOST {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                })
            },
        );
        match solved {
            Ok(()) => {}
            Err(limit) if limit.stop.is_some() => return Err(limit),
            // There is no telling which values fit: any might.
            Err(_) => out.push(Offered {
                edge,
                acts: code.args.iter().map(|(a, args)| (*a, vec![None; args.len()])).collect(),
            }),
        }
        Ok(out)
    }
}

/// The location that a value of a control parameter stands for.
pub(super) fn location_of(value: &Expr) -> Option<usize> {
    match &value.kind {
        mu_data::expr::ExprKind::Number(n) => n.to_string().parse::<usize>().ok()?.checked_sub(1),
        _ => None,
    }
}
