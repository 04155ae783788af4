//! Order within a processor: the part of a memory model that monitors need.
//!
//! A model has the *required form* if it allows an execution exactly if three conditions hold:
//! coherence (`acyclic po-loc | rf | co | fr`), atomicity (`empty rmw & (fre; coe)`), and
//! `acyclic order | rfe | co | fr`, where `order` is a transitive part of program order with these
//! properties: a load is before all later accesses; if an access is before another one `b`, then it
//! is before each store that follows `b` in program order. `sc`, `tso`, and `pso` have it. They
//! differ only in the accesses that a plain store precedes without a fence or an update between.

use crate::alphabet::Alphabet;
use crate::interface::Interface;
use mu_axioms::EventKind;
use mu_axioms::models::{MemoryOrdering, by_name};

/// The order within a processor of a memory model.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum ProcessorOrder {
    /// Program order: sequential consistency.
    Sc,
    /// All but a store before a load: total store order.
    Tso,
    /// A load before all that follows it: partial store order.
    Pso,
}

impl ProcessorOrder {
    /// All orders, the strongest first.
    pub const ALL: [ProcessorOrder; 3] =
        [ProcessorOrder::Sc, ProcessorOrder::Tso, ProcessorOrder::Pso];

    /// Returns the name of the model.
    pub fn name(self) -> &'static str {
        match self {
            ProcessorOrder::Sc => "sc",
            ProcessorOrder::Tso => "tso",
            ProcessorOrder::Pso => "pso",
        }
    }
    /// True if an access is before a later one of its processor, with no fence or update between
    /// them. `first_writes`, `second_writes`: true for a store.
    pub fn orders(self, first_writes: bool, second_writes: bool) -> bool {
        match self {
            ProcessorOrder::Sc => true,
            ProcessorOrder::Tso => !first_writes || second_writes,
            ProcessorOrder::Pso => !first_writes,
        }
    }
    /// True if a fence orders all pairs that the order leaves open. `reads` and `writes`: it orders
    /// a store with a later load, with a later store.
    pub fn waits_for(self, reads: bool, writes: bool) -> bool {
        match self {
            ProcessorOrder::Sc | ProcessorOrder::Tso => reads,
            ProcessorOrder::Pso => reads && writes,
        }
    }
}

/// The operations of a machine other than plain accesses, updates, and full fences.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Marks {
    /// True if it has a load that is an acquire.
    pub acquires: bool,
    /// True if it has a store that is a release.
    pub releases: bool,
    /// True if it has updates with an order, or partial fences.
    pub others: bool,
    /// True if it has a fence that orders a store with later loads or with later stores, but not
    /// with both: `pso` is then no order of the required form.
    pub halves: bool,
}

impl Marks {
    /// Finds the marks of the operations of a machine.
    pub fn of(interface: &Interface, alphabet: &Alphabet) -> Marks {
        let mut out = Marks::default();
        for event in &alphabet.events {
            let line = &interface.operations[event.operation as usize];
            match line.kind {
                EventKind::Read => out.acquires |= line.mark != MemoryOrdering::Plain,
                EventKind::Write => out.releases |= line.mark != MemoryOrdering::Plain,
                _ => out.others |= line.mark != MemoryOrdering::Plain,
            }
            let orders = |write| line.mark.orders(true, write);
            out.halves |= line.kind == EventKind::Fence && orders(false) != orders(true);
        }
        out
    }
    fn is_plain(self) -> bool {
        !self.acquires && !self.releases && !self.others
    }
}

/// The relation of a memory model to the orders.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ModelForm {
    /// The model has this order.
    Ordered(ProcessorOrder),
    /// The model allows all that this order allows.
    WeakerThan(ProcessorOrder),
    /// The model allows every execution that is coherent and atomic.
    Coherent,
    /// The model is not supported, with the reason.
    Unsupported(String),
}

/// Models that allow every execution of plain accesses, full fences, and updates that `pso` allows,
/// and every execution that `tso` allows, except for [`releases before acquires`](ModelForm::of).
/// docs/memory-models.md has the proof.
const WEAKER_THAN_PSO: [&str; 5] = ["rvwmo", "armv8", "power", "armv7", "lkmm"];
/// The model of [`WEAKER_THAN_PSO`] that orders a release before a later acquire.
const ORDERS_RELEASES: &str = "armv8";
/// Models that allow every execution that is coherent and atomic. docs/memory-models.md has the
/// proof.
const COHERENT: [&str; 3] = ["cache", "slow", "local"];

impl ModelForm {
    /// Determines the form of a built-in model by its name, for a machine with these marks.
    /// `is_builtin`: false of a model of a file that differs from the built-in model with its name,
    /// also in a file that it includes; such a model is unsupported.
    pub fn of(name: &str, is_builtin: bool, marks: Marks) -> ModelForm {
        let known = by_name(name).filter(|_| is_builtin);
        let Some(known) = known else {
            return ModelForm::Unsupported(format!(
                "`{name}` is not a built-in model, so its order within a processor is unknown"
            ));
        };
        if known.name == "pso" && marks.halves {
            return ModelForm::WeakerThan(ProcessorOrder::Tso);
        }
        if let Some(order) = ProcessorOrder::ALL.into_iter().find(|o| o.name() == known.name) {
            return ModelForm::Ordered(order);
        }
        if WEAKER_THAN_PSO.contains(&known.name) {
            let ordered = known.name == ORDERS_RELEASES && marks.releases && marks.acquires;
            return ModelForm::WeakerThan(match marks.is_plain() {
                true => ProcessorOrder::Pso,
                false if ordered => ProcessorOrder::Sc,
                false => ProcessorOrder::Tso,
            });
        }
        if COHERENT.contains(&known.name) {
            return ModelForm::Coherent;
        }
        let why = match known.name {
            "rc11" | "cpp-ra" | "location-order" => {
                "it orders accesses of several processors by synchronisation only"
            }
            "rcsc" | "rcpc" => "it orders acquires and releases in views of each processor",
            "pc" | "causal" | "pram" => "it requires a view for each processor",
            _ => "it is not an order within a processor with one order in memory",
        };
        ModelForm::Unsupported(format!(
            "`{name}` is not decided for programs of every length: {why}"
        ))
    }
}
