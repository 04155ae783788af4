//! Typed terms of linear processes and equation systems, for files that contain them: the
//! counterpart of [`TypedDeclarations`] for transition systems.
//!
//! The semantics of expressions is unknown here. Invariant: all terms are those of one
//! [`TypedDeclarations`], which declares all actions.

use super::typed::{TermRef, TypedDeclarations, TypedPart};

/// Summand: a step for each assignment of the variables that satisfies the condition.
#[derive(Clone, Debug)]
pub struct Summand {
    /// Sum variables.
    pub variables: Vec<TermRef>,
    /// Condition.
    pub condition: TermRef,
    /// Actions; none for a silent step.
    pub actions: Vec<TypedPart>,
    /// Time, of sort `Real`; `None` if any time is possible.
    pub time: Option<TermRef>,
    /// Parameters that change, with their new values.
    pub assignments: Vec<(TermRef, TermRef)>,
}

/// Linear process.
#[derive(Clone, Debug)]
pub struct Process {
    /// Data and actions.
    pub typed: TypedDeclarations,
    /// Global variables.
    pub globals: Vec<TermRef>,
    /// Parameters.
    pub parameters: Vec<TermRef>,
    /// Summands.
    pub summands: Vec<Summand>,
    /// Initial values of the parameters.
    pub initial: Vec<TermRef>,
}

/// Predicate formula.
#[derive(Clone, Debug)]
pub enum Predicate {
    /// A constant.
    Const(bool),
    /// An expression of sort `Bool`.
    Data(TermRef),
    /// A conjunction (`true`) or disjunction of at least one operand.
    Junction(bool, Vec<Predicate>),
    /// `forall` (`true`) or `exists`.
    Quantifier(bool, Vec<TermRef>, Box<Predicate>),
    /// An instance of a variable of the system.
    Call(String, Vec<TermRef>),
}

/// Fixed-point equation.
#[derive(Clone, Debug)]
pub struct FixedPoint {
    /// True if it is a least fixed point.
    pub least: bool,
    /// Variable.
    pub name: String,
    /// Its parameters.
    pub parameters: Vec<TermRef>,
    /// Its right-hand side.
    pub body: Predicate,
}

/// Equation system.
#[derive(Clone, Debug)]
pub struct Equations {
    /// Data.
    pub typed: TypedDeclarations,
    /// Global variables.
    pub globals: Vec<TermRef>,
    /// The equations, in order.
    pub equations: Vec<FixedPoint>,
    /// Requested instance.
    pub initial: (String, Vec<TermRef>),
}

impl Process {
    /// Iterates over all terms outside of the declarations.
    pub(crate) fn terms(&self) -> impl Iterator<Item = &TermRef> {
        let summands = self.summands.iter().flat_map(|s| {
            let arguments = s.actions.iter().flat_map(|a| &a.arguments);
            let assigned = s.assignments.iter().flat_map(|(v, e)| [v, e]);
            let first = s.variables.iter().chain([&s.condition]).chain(&s.time);
            first.chain(arguments).chain(assigned)
        });
        self.globals.iter().chain(&self.parameters).chain(summands).chain(&self.initial)
    }
}

impl Equations {
    /// Returns all terms outside of the declarations.
    pub(crate) fn terms(&self) -> Vec<&TermRef> {
        let mut all: Vec<&TermRef> = self.globals.iter().chain(&self.initial.1).collect();
        let mut open: Vec<&Predicate> = Vec::new();
        for e in &self.equations {
            all.extend(&e.parameters);
            open.push(&e.body);
        }
        while let Some(p) = open.pop() {
            match p {
                Predicate::Const(_) => {}
                Predicate::Data(e) => all.push(e),
                Predicate::Junction(_, parts) => open.extend(parts),
                Predicate::Quantifier(_, vars, body) => {
                    all.extend(vars);
                    open.push(body);
                }
                Predicate::Call(_, values) => all.extend(values),
            }
        }
        all
    }
}
