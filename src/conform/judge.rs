//! Memory models as judges of histories, and the form in which they are asked.
//!
//! A memory model does not know processors, addresses and values by name. So histories are asked up to all their permutations, where
//! the initial value stays: [`canonical`] gives one history for each class. A history is allowed if the model has an execution with its values: some
//! choice of writes that are read, and some coherence order; decided exactly.

use crate::alphabet::Alphabet;
use crate::interface::Interface;
use crate::sequences::Entry;
use mu_axioms::Kind;
use mu_axioms::cat::{Model, Verdict};
use mu_axioms::history::{self, History, Operation};
use mu_axioms::models::Dialect;
use mu_axioms::views::{Seen, Views};
use mu_base::{Diagnostic, Stage};

/// A memory model.
#[derive(Debug)]
pub enum Form {
    /// Axioms.
    Cat {
        /// The model.
        model: Model,
        /// The words that it understands.
        dialect: Dialect,
    },
    /// Serial views.
    Views(Views),
}

/// A memory model with its name.
#[derive(Debug)]
pub struct Against {
    /// Its name.
    pub name: String,
    /// What it is.
    pub form: Form,
}

/// A memory model at work, for one thread.
pub struct Worker<'m> {
    judge: Judge<'m>,
}

enum Judge<'m> {
    Cat(Box<history::Judge<'m>>),
    Views(&'m Views),
}

impl Against {
    /// For one thread.
    pub fn worker(&self) -> Worker<'_> {
        let judge = match &self.form {
            Form::Cat { model, dialect } => Judge::Cat(Box::new(history::Judge::new(model, *dialect))),
            Form::Views(views) => Judge::Views(views),
        };
        Worker { judge }
    }
    /// Refuses operations of a machine that it has no words for.
    pub fn check(&self, interface: &Interface, alphabet: &Alphabet) -> Result<(), Diagnostic> {
        let operations = alphabet.events.iter().map(|e| &interface.operations[e.operation as usize]);
        match (&self.form, operations.into_iter().find(|o| o.kind == Kind::Update)) {
            (Form::Views(_), Some(o)) => {
                let message = format!("`{}` is a model of serial views, which do not know updates", self.name);
                Err(Diagnostic::at(Stage::Unsupported, o.end.span, message))
            }
            _ => Ok(()),
        }
    }
}

/// Why a history is forbidden.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The axiom that no execution keeps, or the view that does not exist.
    pub axiom: String,
    /// The cycle that the axiom forbids: operations with the relations between them; empty if there is none.
    pub cycle: Vec<(String, String)>,
}

impl Worker<'_> {
    /// Whether a history is allowed.
    pub fn allows(&mut self, history: &History) -> Result<bool, Diagnostic> {
        match &mut self.judge {
            Judge::Cat(judge) => judge.allows(history),
            Judge::Views(views) => {
                let skeleton = history.skeleton(Dialect::Plain, &Views::vocabulary());
                let rf = history.sources(&skeleton);
                let sourced = skeleton.set(mu_axioms::SetId::READS).iter().all(|r| rf.before(r).next().is_some());
                Ok(sourced && matches!(views.judge(&skeleton, &rf)?, Seen::Views(_)))
            }
        }
    }
    /// Why a history is forbidden: by one of the executions that have its values.
    pub fn reason(&mut self, history: &History) -> Result<Reason, Diagnostic> {
        if !history.is_sourced() {
            return Ok(Reason { axiom: "a load reads a value that nobody writes".into(), cycle: Vec::new() });
        }
        match &mut self.judge {
            Judge::Cat(judge) => {
                let (verdict, skeleton, ..) = judge.verdict(history)?;
                Ok(of_verdict(&verdict, &skeleton))
            }
            Judge::Views(views) => {
                let skeleton = history.skeleton(Dialect::Plain, &Views::vocabulary());
                let axiom = match views.judge(&skeleton, &history.sources(&skeleton))? {
                    Seen::Views(_) => String::new(),
                    Seen::None { of, .. } if of.is_empty() => "there is no serial view".into(),
                    Seen::None { of, .. } => format!("there is no serial view for {of}"),
                };
                Ok(Reason { axiom, cycle: Vec::new() })
            }
        }
    }
}

fn of_verdict(verdict: &Verdict, skeleton: &mu_axioms::Skeleton) -> Reason {
    let Some(failure) = &verdict.failed else { return Reason { axiom: String::new(), cycle: Vec::new() } };
    let name = |e: usize| {
        let e = &skeleton.events()[e];
        let thread = e.thread.map_or(String::new(), |t| format!("P{t}: "));
        match (e.kind, e.location) {
            (Kind::Fence, _) | (_, None) => format!("{thread}F"),
            (kind, Some(l)) => {
                let letter = if kind.writes() { "W" } else { "R" };
                format!("{thread}{letter} {} {}", history::location_name(l), e.value)
            }
        }
    };
    let names = failure.events.iter().map(|&e| name(e));
    let edges = failure.edges.iter().cloned().chain(std::iter::repeat(String::new()));
    Reason { axiom: failure.axiom.clone(), cycle: names.zip(edges).collect() }
}

/// The history of what processors did, all of it ended: the least under permutations of processors, addresses, and values at each address.
pub fn canonical(interface: &Interface, processors: &[&[Entry]]) -> History {
    let busy: Vec<&[Entry]> = processors.iter().copied().filter(|p| !p.is_empty()).collect();
    let mut best: Option<History> = None;
    each_order(busy.len(), &mut Vec::new(), &mut |order| {
        // Longer programs first: a sieve for orders that are not least.
        if order.windows(2).all(|w| busy[w[0]].len() >= busy[w[1]].len()) {
            let next = named(interface, order.iter().map(|&i| busy[i]));
            if best.as_ref().is_none_or(|b| next < *b) {
                best = Some(next);
            }
        }
    });
    best.unwrap_or_default()
}

fn each_order(n: usize, order: &mut Vec<usize>, visit: &mut dyn FnMut(&[usize])) {
    if order.len() == n {
        visit(order);
    }
    for i in 0..n {
        if !order.contains(&i) {
            order.push(i);
            each_order(n, order, visit);
            order.pop();
        }
    }
}

fn place(names: &mut Vec<u32>, name: u32) -> usize {
    names.iter().position(|n| *n == name).unwrap_or_else(|| {
        names.push(name);
        names.len() - 1
    })
}

/// With addresses and values named in the order in which they are met.
fn named<'e>(interface: &Interface, processors: impl Iterator<Item = &'e [Entry]>) -> History {
    let (mut addresses, mut values): (Vec<u32>, Vec<Vec<u32>>) = (Vec::new(), Vec::new());
    let mut operation = |e: &Entry| {
        let line = &interface.operations[e.operation as usize];
        if line.kind == Kind::Fence {
            return Operation { kind: Kind::Fence, location: 0, value: 0, read: 0, mark: line.mark };
        }
        let location = place(&mut addresses, e.address.unwrap_or(0));
        if values.len() <= location {
            values.push(vec![0]);
        }
        let mut value = |v: Option<u32>| place(&mut values[location], v.unwrap_or(0)) as u64;
        let (first, second) = (value(e.value), if line.kind == Kind::Update { value(e.written) } else { 0 });
        let (value, read) = if line.kind == Kind::Update { (second, first) } else { (first, 0) };
        Operation { kind: line.kind, location: location as u32, value, read, mark: line.mark }
    };
    History { threads: processors.map(|p| p.iter().map(&mut operation).collect()).collect(), last: Vec::new() }
}

/// What was read is left out: the program that was run, in canonical form.
pub fn program(interface: &Interface, processors: &[&[Entry]]) -> History {
    let blank = |e: &Entry| match interface.operations[e.operation as usize].kind {
        Kind::Read | Kind::Update => Entry { value: Some(0), ..*e },
        _ => *e,
    };
    let lists: Vec<Vec<Entry>> = processors.iter().map(|p| p.iter().map(blank).collect()).collect();
    canonical(interface, &lists.iter().map(Vec::as_slice).collect::<Vec<_>>())
}
