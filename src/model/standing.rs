//! Where the components of a model stand in a state without steps, and why none of them can go on:
//! plain data that front ends fill and reports show.
//!
//! *Postures.* A component has *terminated* (successfully), has *stopped* (nothing is left to do,
//! as after `delta`), or *waits*: it offers actions of its own, none of which becomes a step of the
//! whole.
//!
//! *Deadlocks.* A state without steps is a deadlock unless it is a successful termination: all
//! components have terminated, or the user declared an end (`--terminal`) that the state fulfils.
//!
//! *A heuristic annotates deadlocks.* One looks like a normal end if at least one component has
//! terminated or stopped and every other one *is at rest*: it stands where it began, and what it
//! offers only components that terminated, stopped, or are at rest themselves could take. This is
//! the least such set: two components that wait for each other are never at rest, nor is one that
//! is in the middle of something. All other deadlocks are hangs.

use mu_base::{Diagnostic, Span};

/// Classification of a state without steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum End {
    /// Successful termination: all components have terminated, or an end that the user declared.
    Terminated,
    /// A deadlock that looks like a normal end, by the heuristic of the module's head.
    Finished,
    /// A deadlock in which some component waits.
    Hang,
}

impl End {
    /// True for every state without steps but a successful termination.
    pub fn is_deadlock(self) -> bool {
        self != End::Terminated
    }

    /// Stable word for reports.
    pub fn word(self) -> &'static str {
        match self {
            End::Terminated => "terminated",
            End::Finished => "finished",
            End::Hang => "hang",
        }
    }
}

/// How a component stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Posture {
    /// It has ended successfully.
    Terminated,
    /// Nothing is left for it to do.
    Stopped,
    /// It waits where it began, for components that have ended or are at rest.
    AtRest,
    /// It waits.
    Waits,
}

impl Posture {
    /// Stable word for reports.
    pub fn word(self) -> &'static str {
        match self {
            Posture::Terminated => "terminated",
            Posture::Stopped => "stopped",
            Posture::AtRest => "at rest",
            Posture::Waits => "waits",
        }
    }
}

/// All components in one state.
#[derive(Clone, Debug)]
pub struct Standing {
    /// By component.
    pub components: Vec<ComponentStanding>,
    /// What the state is.
    pub end: End,
}

/// One component in a state.
#[derive(Clone, Debug)]
pub struct ComponentStanding {
    /// Its name.
    pub name: String,
    /// How it stands.
    pub posture: Posture,
    /// What it could do by itself.
    pub offers: Vec<Offer>,
    /// Actions that would be next, but for their conditions, which are false.
    pub closed: Vec<(String, Span)>,
}

/// A multi-action that a component could do by itself.
#[derive(Clone, Debug)]
pub struct Offer {
    /// Its text; `_` where any value would do.
    pub action: String,
    /// Where it is written.
    pub place: Span,
    /// Why nothing comes of it.
    pub obstacles: Vec<Obstacle>,
}

/// Why nothing comes of an offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// A rule of a communication needs a partner that no component offers now.
    Lacks {
        /// The rule.
        rule: String,
        /// Where the communication is written.
        place: Span,
        /// The action that is lacking.
        partner: String,
        /// Components that can do it at other times.
        able: Vec<u32>,
    },
    /// A rule of a communication needs a partner that no component ever does.
    NoOne {
        /// The rule.
        rule: String,
        /// Where the communication is written.
        place: Span,
        /// The action that is lacking.
        partner: String,
    },
    /// Partners are there, with other values.
    Differs {
        /// The rule.
        rule: String,
        /// Where the communication is written.
        place: Span,
        /// Components and what they offer.
        offers: Vec<(u32, String)>,
    },
    /// The communication would happen, and what comes of it is stopped.
    Stopped {
        /// The rule.
        rule: String,
        /// Where the communication is written.
        place: Span,
        /// Components and what they offer.
        offers: Vec<(u32, String)>,
        /// What stops it.
        by: Box<Obstacle>,
    },
    /// `block` stops it.
    Blocked {
        /// The action.
        action: String,
        /// Where `block` is written.
        place: Span,
    },
    /// `allow` does not list it.
    NotAllowed {
        /// The multi-action.
        action: String,
        /// Where `allow` is written.
        place: Span,
        /// Multi-actions with more in them that it lists.
        only_with: Vec<String>,
    },
}

/// Tells where components stand, remembering what it computed.
pub trait Standings {
    /// What a state without steps is.
    fn end(&mut self, state: &[u32]) -> Result<End, Diagnostic>;
    /// All about a state without steps.
    fn standing(&mut self, state: &[u32]) -> Result<Standing, Diagnostic>;
    /// Why no step is ever labelled with an action of this name; none if some may be.
    fn absence(&mut self, action: &str) -> Result<Option<Absence>, Diagnostic>;
    /// What can never happen, whatever the components do.
    fn dead(&mut self) -> Result<Vec<Dead>, Diagnostic>;
}

/// Why no step is ever labelled with an action, whatever the components do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Absence {
    /// It is hidden here.
    Hidden(Span),
    /// It gets another name here.
    Renamed(Span, String),
    /// A component does it, or the parts of a communication that would make it, and nothing comes
    /// of that.
    Stopped(Vec<Obstacle>),
    /// Its condition never holds, or its place is never reached, as far as can be told without
    /// exploring.
    Unreached(Span),
    /// No component does it, and no communication makes it.
    NoComponent,
}

/// Something that can never happen, found without exploring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dead {
    /// An action of components that never becomes part of a step.
    Action {
        /// Its name.
        action: String,
        /// Where it is written.
        place: Span,
        /// Components that would do it.
        components: Vec<u32>,
        /// What is in its way.
        obstacles: Vec<Obstacle>,
        /// Components that never get beyond it: it is all that they can do first.
        stuck: Vec<u32>,
    },
    /// `allow` lets nothing through.
    Allow {
        /// Where it is written.
        place: Span,
        /// What components do below it.
        below: Vec<String>,
    },
}
