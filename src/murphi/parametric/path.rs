//! Paths of the symbolic execution: conditions on the content of cells before the step, writes, and
//! the values of locals.
//!
//! Invariant: parameters of a path are distinct processes. Values and conditions refer to the
//! content of cells before the step, so they have a meaning wherever they are copied.

use super::symbols::Part;
use crate::typed::{GlobalId, LocalId};
use std::collections::{BTreeMap, BTreeSet};

/// Process of a path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Process {
    /// A parameter.
    Parameter(u32),
    /// A bound variable of an update of all cells, or of a quantifier.
    Bound(u32),
}

/// Cell of a symbol.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Cell {
    pub symbol: u32,
    pub args: Vec<Process>,
}

/// Value of a simple type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Value {
    /// Undefined.
    Undefined,
    /// A value of a finite type.
    Constant(i64),
    /// An element of the scalarset.
    Process(Process),
    /// The content of a cell before the step.
    Cell(Cell),
}

/// Condition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Literal {
    /// The content of a cell is a value (or is none).
    Is(Cell, Value, bool),
    /// Two processes are equal (or differ).
    Same(Process, Process, bool),
}

/// Condition on all processes that are no parameters of the path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Universal {
    /// The bound process.
    pub bound: u32,
    /// Number of parameters for which the condition is part of the path already.
    pub parameters: u32,
    /// Conjunctions, one of which holds.
    pub cubes: Vec<Vec<Literal>>,
}

/// Write of a cell, or of all cells of a pattern.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Write {
    pub symbol: u32,
    /// Indices.
    pub args: Vec<Process>,
    /// The bound processes among the indices, which stand for all processes.
    pub bound: Vec<u32>,
    /// Exclusive cases: a cell has the value of the case with true conditions. `None`: it is not
    /// written.
    pub cases: Vec<(Vec<Literal>, Option<Value>)>,
}

/// Selection of a part.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Selector {
    Field(u32),
    Constant(i64),
    Process(Process),
}

/// Root of a place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Root {
    Global(GlobalId),
    /// A local of a frame.
    Local(u32, LocalId),
}

/// Place with the values of its indices.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Target {
    pub root: Root,
    pub selectors: Vec<Selector>,
}

/// Simple part of a local of a frame.
pub(super) type LocalPart = (u32, LocalId, Vec<Selector>);

/// Path.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Path {
    /// Number of parameters.
    pub parameters: u32,
    pub literals: Vec<Literal>,
    pub universals: Vec<Universal>,
    pub writes: Vec<Write>,
    /// Simple parts of locals that are defined, by frame.
    pub locals: BTreeMap<LocalPart, Value>,
    /// Simple parts of locals that a loop over the scalarset has written; their values are unknown.
    pub unknown: BTreeSet<LocalPart>,
    /// References to places.
    pub places: BTreeMap<(u32, LocalId), Target>,
}

impl Path {
    /// Returns the path with each of its parameters, and with a new one.
    pub fn with_each_process(self) -> Vec<(Path, Process)> {
        let known = (0..self.parameters).map(|p| (self.clone(), Process::Parameter(p)));
        let mut all: Vec<_> = known.collect();
        let mut path = self;
        let new = path.new_parameter();
        all.push((path, new));
        all
    }
    pub fn new_parameter(&mut self) -> Process {
        self.parameters += 1;
        Process::Parameter(self.parameters - 1)
    }
    pub fn set(&mut self, frame: u32, local: LocalId, of: Vec<Selector>, value: Value) {
        let part = (frame, local, of);
        self.unknown.remove(&part);
        self.locals.insert(part, value);
    }
    /// Returns the content of a cell before the step, if the conditions determine it.
    pub fn known_content(&self, cell: &Cell) -> Option<&Value> {
        self.literals.iter().find_map(|l| match l {
            Literal::Is(c, value, true) if c == cell && !matches!(value, Value::Cell(_)) => {
                Some(value)
            }
            _ => None,
        })
    }
    /// True if the conditions imply that the cell is defined.
    pub fn is_defined(&self, cell: &Cell) -> bool {
        self.literals.iter().any(|l| match l {
            Literal::Is(c, Value::Undefined, is) => c == cell && !is,
            Literal::Is(c, _, true) => c == cell,
            _ => false,
        })
    }
}

impl Process {
    /// Applies a map of bound processes.
    pub fn substitute(self, map: &[(u32, Process)]) -> Process {
        match self {
            Process::Bound(b) => map.iter().find(|(from, _)| *from == b).map_or(self, |m| m.1),
            Process::Parameter(_) => self,
        }
    }
}

impl Cell {
    pub fn substitute(&self, map: &[(u32, Process)]) -> Cell {
        let args = self.args.iter().map(|a| a.substitute(map)).collect();
        Cell { symbol: self.symbol, args }
    }
}

impl Value {
    pub fn substitute(&self, map: &[(u32, Process)]) -> Value {
        match self {
            Value::Undefined | Value::Constant(_) => self.clone(),
            Value::Process(p) => Value::Process(p.substitute(map)),
            Value::Cell(c) => Value::Cell(c.substitute(map)),
        }
    }
}

impl Literal {
    pub fn substitute(&self, map: &[(u32, Process)]) -> Literal {
        match self {
            Literal::Is(c, value, is) => Literal::Is(c.substitute(map), value.substitute(map), *is),
            Literal::Same(a, b, is) => Literal::Same(a.substitute(map), b.substitute(map), *is),
        }
    }
}

impl Selector {
    /// Returns the selection in the name of a symbol.
    pub fn part(self) -> Part {
        match self {
            Selector::Field(f) => Part::Field(f),
            Selector::Constant(c) => Part::Constant(c),
            Selector::Process(_) => Part::Process,
        }
    }
    pub fn process(self) -> Option<Process> {
        if let Selector::Process(p) = self { Some(p) } else { None }
    }
}
