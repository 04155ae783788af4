//! Models from which systems are translated, as a check of the translation needs them.
//!
//! An [`Origin`] has as many elements as the system has processes. It has the states and steps of
//! the model, computed without the translation, and declares for each part of a state the cell of
//! the system that contains it. The declaration is all that both sides share.

use mu_base::Span;

/// Values of a part, by their numbers in an [`OriginState`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OriginValues {
    /// Processes, from 0.
    Processes,
    /// The constructors with these names.
    Constructors(Vec<String>),
}

/// Representation of a part without a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OriginUndefined {
    /// The part always has a value.
    Never,
    /// The constructor with this name.
    Constructor(String),
    /// The boolean symbol with this name and the same indices is false.
    Flag(String),
}

/// Part of a state, and the cell that contains it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginPart {
    /// Name of the symbol.
    pub symbol: String,
    /// Its indices: processes, from 0.
    pub args: Vec<u32>,
    /// Values.
    pub values: OriginValues,
    /// Representation of the part without a value.
    pub undefined: OriginUndefined,
}

/// State: for each part the number of its value. `None`: the part has no value.
pub type OriginState = Vec<Option<u32>>;

/// Step of the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginStep {
    /// Name of the rule with its parameters.
    pub rule: String,
    /// Place of the rule, which transitions of the system have, too.
    pub place: Span,
    /// The next state, or the failure of the rule.
    pub next: Result<OriginState, String>,
}

/// Model with as many elements as a system has processes.
pub trait Origin {
    /// Returns the number of elements.
    fn processes(&self) -> u32;
    /// Returns the parts of a state.
    fn parts(&self) -> &[OriginPart];
    /// Returns the symbol that is true after the choice of an initial state, if there is one.
    fn start_symbol(&self) -> Option<&str>;
    /// Returns the symbol that is true after a failure, if there is one.
    fn failure_symbol(&self) -> Option<&str>;
    /// Returns the initial states as steps.
    fn starts(&mut self) -> Vec<OriginStep>;
    /// Returns the steps of a state, which need not be reachable.
    fn steps(&mut self, state: &OriginState) -> Vec<OriginStep>;
    /// Returns the claims that fail in a state, which need not be reachable.
    fn failures(&mut self, state: &OriginState) -> Vec<String>;
    /// Returns the values of some parts as text, or of all.
    fn text(&self, state: &OriginState, parts: Option<&[usize]>) -> String;
}
