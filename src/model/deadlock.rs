//! Explanation of states without steps: what each component offers there, and what prevents each
//! offer. Plain data that front ends fill and reports show.
//!
//! *Postures.* A component has *terminated* (successfully), has *stopped* (nothing is left to do,
//! as after `delta`), or *waits*: it offers actions of its own, none of which becomes a step of the
//! whole.
//!
//! *Deadlocks.* A state without steps is a deadlock unless it is a successful termination: all
//! components have terminated, or the state satisfies a termination criterion of the user
//! (`--terminal`).
//!
//! *A heuristic annotates deadlocks.* A deadlock looks like a normal end if at least one component
//! has terminated or stopped and every other component is *idle*. A component is idle if it is in
//! its initial position and only terminated, stopped, or idle components could take its offers. The
//! set of idle components is the least such set: two components that wait for each other are not
//! idle.

use mu_base::{Diagnostic, Span};

/// Classification of a state without steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum End {
    /// Successful termination: all components have terminated, or a criterion of the user holds.
    Terminated,
    /// Deadlock that looks like a normal end, by the heuristic of the module header.
    Finished,
    /// Deadlock in which some component waits.
    Hang,
}

impl End {
    /// True for every state without steps except a successful termination.
    pub fn is_deadlock(self) -> bool {
        self != End::Terminated
    }

    /// Returns a stable word for reports.
    pub fn word(self) -> &'static str {
        match self {
            End::Terminated => "terminated",
            End::Finished => "finished",
            End::Hang => "hang",
        }
    }
}

/// Status of a component in a state without steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Posture {
    /// Terminated successfully.
    Terminated,
    /// Nothing left to do.
    Stopped,
    /// Waits in its initial position, for components that have ended or are idle.
    Idle,
    /// Waits for another component.
    Waits,
}

impl Posture {
    /// Returns a stable word for reports.
    pub fn word(self) -> &'static str {
        match self {
            Posture::Terminated => "terminated",
            Posture::Stopped => "stopped",
            Posture::Idle => "at rest",
            Posture::Waits => "waits",
        }
    }
}

/// Status of all components in one state without steps.
#[derive(Clone, Debug)]
pub struct DeadlockReport {
    /// One entry per component.
    pub components: Vec<ComponentReport>,
    /// Classification of the state.
    pub end: End,
}

/// Status of one component in a state.
#[derive(Clone, Debug)]
pub struct ComponentReport {
    /// Name.
    pub name: String,
    /// Status.
    pub posture: Posture,
    /// Multi-actions that its local state enables.
    pub offers: Vec<Offer>,
    /// Actions that its local state would enable if their conditions held.
    pub closed: Vec<(String, Span)>,
}

/// Multi-action that a component's local state enables.
#[derive(Clone, Debug)]
pub struct Offer {
    /// Text; `_` where any value is possible.
    pub action: String,
    /// Place in the source.
    pub place: Span,
    /// Reasons why the offer does not become a step.
    pub obstacles: Vec<Obstacle>,
}

/// Reason why an offer does not become a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// A communication needs a partner that no component offers in this state.
    PartnerUnavailable {
        /// The rule.
        rule: String,
        /// Place of the communication.
        place: Span,
        /// The missing action.
        partner: String,
        /// Components that offer the action in other states.
        able: Vec<u32>,
    },
    /// A communication needs a partner that no component ever offers.
    NoPartner {
        /// The rule.
        rule: String,
        /// Place of the communication.
        place: Span,
        /// The missing action.
        partner: String,
    },
    /// Partners offer the communication with other values.
    ValueMismatch {
        /// The rule.
        rule: String,
        /// Place of the communication.
        place: Span,
        /// Components and their offers.
        offers: Vec<(u32, String)>,
    },
    /// The communication is possible, but its result is blocked.
    Stopped {
        /// The rule.
        rule: String,
        /// Place of the communication.
        place: Span,
        /// Components and their offers.
        offers: Vec<(u32, String)>,
        /// The obstacle of the result.
        by: Box<Obstacle>,
    },
    /// `block` forbids it.
    Blocked {
        /// The action.
        action: String,
        /// Place of the `block`.
        place: Span,
    },
    /// `allow` does not list it.
    NotAllowed {
        /// The multi-action.
        action: String,
        /// Place of the `allow`.
        place: Span,
        /// Larger multi-actions that the list contains.
        only_with: Vec<String>,
    },
}

/// Explainer of states without steps; it memoises its results.
pub trait DeadlockExplainer {
    /// Classifies a state without steps.
    fn end(&mut self, state: &[u32]) -> Result<End, Diagnostic>;
    /// Returns the status of all components in a state without steps.
    fn report(&mut self, state: &[u32]) -> Result<DeadlockReport, Diagnostic>;
    /// Returns the reason why no step is ever labelled with this action; `None` if some step may
    /// be.
    fn absence(&mut self, action: &str) -> Result<Option<Absence>, Diagnostic>;
    /// Returns the actions and `allow` operators that can never take part in a step.
    fn dead(&mut self) -> Result<Vec<Dead>, Diagnostic>;
}

/// Static reason why no step is ever labelled with an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Absence {
    /// Hidden at this place.
    Hidden(Span),
    /// Renamed at this place.
    Renamed(Span, String),
    /// Some component offers it, or the parts of a communication with this result, but none becomes
    /// a step.
    Stopped(Vec<Obstacle>),
    /// Its condition never holds or its place is unreachable, as far as a static analysis can
    /// determine.
    Unreachable(Span),
    /// No component offers it, and no communication results in it.
    NoComponent,
}

/// Specification part that can never take part in a step, found without exploration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dead {
    /// An action of components that never becomes part of a step.
    Action {
        /// Name.
        action: String,
        /// Place in the source.
        place: Span,
        /// Components that would offer it.
        components: Vec<u32>,
        /// Obstacles that prevent it.
        obstacles: Vec<Obstacle>,
        /// Components that cannot move past it, because it is their only possible first action.
        stuck: Vec<u32>,
    },
    /// An `allow` operator that permits no multi-action of its operand.
    Allow {
        /// Place in the source.
        place: Span,
        /// Multi-actions of the operand.
        below: Vec<String>,
    },
}
