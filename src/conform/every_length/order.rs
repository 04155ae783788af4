//! Order within a processor: the part of a memory model that monitors need.
//!
//! A model has the *required form* if it allows an execution exactly if three conditions hold:
//! coherence (`acyclic po-loc | rf | co | fr`), atomicity (`empty rmw & (fre; coe)`), and
//! `acyclic order | rfe | co | fr`, where `order` is a transitive part of program order with these
//! properties: a load is before all later accesses; if an access is before another one `b`, then it
//! is before each store that follows `b` in program order. `sc`, `tso`, and `pso` have it. They
//! differ only in the accesses that a plain store precedes without a fence or an update between.

use mu_axioms::models::by_name;

/// The order within a processor of a memory model.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Order {
    /// Program order: sequential consistency.
    Sc,
    /// All but a store before a load: total store order.
    Tso,
    /// A load before all that follows it: partial store order.
    Pso,
}

impl Order {
    /// All orders, the strongest first.
    pub const ALL: [Order; 3] = [Order::Sc, Order::Tso, Order::Pso];

    /// Returns the name of the model.
    pub fn name(self) -> &'static str {
        match self {
            Order::Sc => "sc",
            Order::Tso => "tso",
            Order::Pso => "pso",
        }
    }
    /// True if an access is before a later one of its processor, with no fence or update between
    /// them. `first_writes`, `second_writes`: true for a store.
    pub fn orders(self, first_writes: bool, second_writes: bool) -> bool {
        match self {
            Order::Sc => true,
            Order::Tso => !first_writes || second_writes,
            Order::Pso => !first_writes,
        }
    }
}

/// The relation of a memory model to the orders.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Form {
    /// The model has this order.
    Ordered(Order),
    /// The model allows all that this order allows, for machines without acquires and releases.
    WeakerThan(Order),
    /// The model allows every execution that is coherent and atomic.
    Coherent,
    /// The model is not supported, with the reason.
    Unsupported(String),
}

/// Models that allow every execution of plain accesses, full fences, and updates that `pso` allows.
/// docs/memory-models.md has the proof.
const WEAKER_THAN_PSO: [&str; 2] = ["rvwmo", "armv8"];
/// Models that allow every execution that is coherent and atomic. docs/memory-models.md has the
/// proof.
const COHERENT: [&str; 3] = ["cache", "slow", "local"];

impl Form {
    /// Determines the form of a built-in model by its name. `text` is the text of a model of
    /// axioms; one that differs from the built-in model with its name is unsupported.
    pub fn of(name: &str, text: Option<&str>) -> Form {
        let known = by_name(name).filter(|k| text == Some(k.text));
        let Some(known) = known else {
            return Form::Unsupported(format!(
                "`{name}` is not a built-in model, so its order within a processor is unknown"
            ));
        };
        if let Some(order) = Order::ALL.into_iter().find(|o| o.name() == known.name) {
            return Form::Ordered(order);
        }
        if WEAKER_THAN_PSO.contains(&known.name) {
            return Form::WeakerThan(Order::Pso);
        }
        if COHERENT.contains(&known.name) {
            return Form::Coherent;
        }
        let why = match known.name {
            "rc11" | "cpp-ra" | "location-order" => {
                "it orders accesses of several processors by synchronisation only"
            }
            "rcsc" | "rcpc" => "it orders acquires and releases in views of each processor",
            "pc" | "causal" | "pram" => "it requires a view for each processor",
            _ => "it is not an order within a processor with one order in memory",
        };
        Form::Unsupported(format!("`{name}` is not decided for programs of every length: {why}"))
    }
}
