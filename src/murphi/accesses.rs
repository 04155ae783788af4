//! Accesses of a rule, start state or property: its reads and writes in the order of the text, with
//! functions inlined, and the constructs with results that may depend on an order of elements.
//!
//! In: a typed model, and the parts of variables that may be undefined. Out: [`Accesses`]. A place
//! is abstract: of an index only matters whether it is a constant or the variable of a loop.
//! Calls are followed up to a depth; beyond it the construct around them is opaque. Cost: linear in
//! the text with all functions inlined.

use crate::check::has_multiset;
use crate::typed::{
    Alias, AliasTarget, Argument, Binary, Binding, Claim, Domain, Expr, ExprKind, Frame,
    FunctionId, LocalId, LocalKind, Model, Place, Property, Put, Root, Rule, StartState, Step,
    Stmt, StmtKind, TypeId, TypeKind, Unary,
};
use ahash::AHashSet;
use mu_base::Span;

/// Deepest calls that are followed.
const CALLS: u32 = 24;
/// Most executions of bodies in one part of the model.
const FRAMES: u32 = 1 << 16;
/// Most accesses of one part of the model.
const MOST: usize = 200_000;

/// Variable of an access.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Base {
    /// Global variable.
    Global(u32),
    /// Local of an execution of a body: the number of the execution, and the local.
    Local(u32, u32),
}

/// Selection of a part.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Part {
    /// Field of a record.
    Field(u32),
    /// Element with a constant index.
    At(i64),
    /// Element that a bound variable selects.
    Bound(u32),
    /// Some element of an array or multiset.
    Some,
    /// Element of a multiset at a position.
    Position,
}

/// Abstract place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Spot {
    pub(crate) base: Base,
    pub(crate) parts: Vec<Part>,
}

impl Spot {
    /// Returns the variable and the fields: the part without its indices.
    pub(crate) fn class(&self) -> Class {
        let field = |p: &Part| if let Part::Field(n) = p { Some(*n) } else { None };
        (self.base, self.parts.iter().filter_map(field).collect())
    }
}

/// Value that a write stores.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Stored {
    /// A constant.
    Constant(i64),
    /// None: the place becomes undefined.
    Undefined,
    /// First values.
    Cleared,
    /// A copy of a place, which may be undefined.
    Copy(Spot),
    /// The old value plus a number that is not negative, or minus one.
    Sum { up: bool },
    /// A further element of a multiset: a copy of a place.
    Element(Spot),
    /// Fewer elements of a multiset.
    Removed,
    /// Any defined value.
    Other,
    /// Any value, or none.
    Unknown,
}

/// Read (`None`) or write of a place.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) spot: Spot,
    pub(crate) stored: Option<Stored>,
    /// Nested blocks that are executed only under a condition, or several times.
    pub(crate) block: Vec<u32>,
}

/// Construct with an order of elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) enum Construct {
    /// `for` over a type with scalarsets.
    Loop,
    /// `forall` or `exists` over such a type: it ends at the first element that decides it.
    Quantifier,
    /// Predicate on the elements of a multiset.
    Predicate,
    /// `=` of values with multisets.
    Comparison,
}

/// Execution of the body of a loop over a type with scalarsets: its part of the accesses.
#[derive(Clone, Debug)]
pub(crate) struct Iterations {
    /// Place of the loop.
    pub(crate) span: Span,
    /// Scalarsets of the variable.
    pub(crate) sets: u64,
    /// First access of the body, and one past the last.
    pub(crate) accesses: (usize, usize),
    /// The variable, as in [`Part::Bound`].
    pub(crate) bound: u32,
    /// Executions of bodies from this number on are in the loop.
    pub(crate) inner: u32,
    /// Blocks around the loop.
    pub(crate) block: Vec<u32>,
    /// True if an iteration may end the loop, or discard the step.
    pub(crate) ends: bool,
}

/// Accesses of one part of the model.
#[derive(Clone, Debug, Default)]
pub(crate) struct Accesses {
    pub(crate) all: Vec<Access>,
    pub(crate) loops: Vec<Iterations>,
    /// Other constructs that depend on an order, with their scalarsets.
    pub(crate) others: Vec<(Construct, Span, u64)>,
    /// True if some accesses are missing: calls are too deep.
    pub(crate) opaque: bool,
    /// Locals that are undefined at first.
    pub(crate) undefined: Vec<Base>,
}

/// Part of the model.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unit<'m> {
    Rule(&'m Rule),
    Start(&'m StartState),
    Property(&'m Property),
}

/// Variable with fields: all its parts that differ in indices only.
pub(crate) type Class = (Base, Vec<u32>);

/// Classes that may be undefined.
#[derive(Clone, Debug, Default)]
pub(crate) struct MaybeUndefined {
    /// Classes, each with all its parts.
    pub(crate) classes: AHashSet<Class>,
    /// True if every class may be undefined.
    pub(crate) all: bool,
}

impl MaybeUndefined {
    /// True if a simple part may be undefined.
    pub(crate) fn contains(&self, (base, fields): &Class) -> bool {
        let prefix = |n: usize| self.classes.contains(&(*base, fields[..n].to_vec()));
        self.all || (0..=fields.len()).any(prefix)
    }
}

/// Returns the scalarsets with several elements, in the order of their types. Bit `n` of a mask of
/// scalarsets is the n-th one; the last bit stands for all from the 64th on.
pub(crate) fn scalarsets(model: &Model) -> Vec<TypeId> {
    let all = model.types.all.iter().enumerate();
    all.filter(|(_, ty)| matches!(ty.kind, TypeKind::Scalarset { size: 2.., .. }))
        .map(|(at, _)| TypeId::new(at))
        .collect()
}

/// Returns the mask of a scalarset's number.
pub(crate) fn bit(number: usize) -> u64 {
    1 << number.min(63)
}

/// Collects the accesses of a part of the model. `number`: that of the part, for the numbers of its
/// executions of bodies. `undefined`: what may be undefined, which decides which expressions may
/// fail.
pub(crate) fn accesses(
    model: &Model,
    unit: Unit<'_>,
    number: usize,
    undefined: &MaybeUndefined,
) -> Accesses {
    let first = u32::try_from(number).ok().and_then(|n| n.checked_mul(FRAMES));
    let mut walk = Walk {
        model,
        scalarsets: scalarsets(model),
        undefined,
        out: Accesses { opaque: first.is_none(), ..Accesses::default() },
        block: Vec::new(),
        blocks: 0,
        bounds: 0,
        frames: first.unwrap_or(0),
        end: first.unwrap_or(0).saturating_add(FRAMES),
        calls: 0,
        called: 0,
        result: None,
        faults: 0,
        returns: 0,
        assumes: 0,
        facts: Vec::new(),
        expected: None,
    };
    let (frame, bindings) = match unit {
        Unit::Rule(rule) => (&rule.frame, &rule.bindings),
        Unit::Start(start) => (&start.frame, &start.bindings),
        Unit::Property(property) => (&property.frame, &property.bindings),
    };
    let mut env = walk.env(frame);
    for binding in bindings {
        match binding {
            Binding::Parameter { local, .. } => walk.bind(&mut env, *local),
            Binding::Alias(alias) => walk.alias(&mut env, alias),
            Binding::Choose { multiset, .. } => {
                walk.spot(&mut env, multiset);
            }
        }
    }
    match unit {
        Unit::Rule(rule) => {
            rule.guard.iter().for_each(|g| walk.value(&mut env, g));
            walk.statements(&mut env, &rule.body);
        }
        Unit::Start(start) => walk.statements(&mut env, &start.body),
        Unit::Property(property) => {
            // The search ends where an invariant is false.
            walk.expected = (property.claim == Claim::Assert).then_some(true);
            walk.value(&mut env, &property.condition);
        }
    }
    walk.out
}

/// Meaning of a local.
#[derive(Clone, Debug)]
enum Meaning {
    /// Variable of a quantifier, loop or ruleset, or a copy of it.
    Bound(u32),
    /// Name of a place.
    Spot(Spot),
    /// Value that is defined.
    Defined,
    /// Variable of its own.
    Own,
}

/// Execution of a body.
struct Env {
    number: u32,
    meanings: Vec<Meaning>,
}

struct Walk<'m, 'u> {
    model: &'m Model,
    scalarsets: Vec<TypeId>,
    undefined: &'u MaybeUndefined,
    out: Accesses,
    block: Vec<u32>,
    blocks: u32,
    bounds: u32,
    frames: u32,
    /// Limit on `frames`.
    end: u32,
    /// Depth of calls, and number of calls so far.
    calls: u32,
    called: usize,
    /// Type of the result of the function.
    result: Option<TypeId>,
    /// Numbers of operations that may fail, of `return`, and of `assume` so far.
    faults: usize,
    returns: usize,
    assumes: usize,
    /// Places that are defined here, by conditions evaluated before.
    facts: Vec<(u32, &'m Place)>,
    /// Value of the next condition, if it has one whenever it is evaluated without a failure.
    expected: Option<bool>,
}

impl<'m> Walk<'m, '_> {
    fn env(&mut self, frame: &'m Frame) -> Env {
        let number = self.frames;
        self.frames += 1;
        for (at, local) in frame.locals.iter().enumerate() {
            if local.kind == LocalKind::Variable {
                self.out.undefined.push(Base::Local(number, at as u32));
            }
        }
        Env { number, meanings: vec![Meaning::Own; frame.locals.len()] }
    }
    fn bind(&mut self, env: &mut Env, local: LocalId) {
        env.meanings[local.index()] = Meaning::Bound(self.bounds);
        self.bounds += 1;
    }
    /// Returns the scalarsets over which a domain ranges.
    fn sets(&self, domain: &Domain) -> u64 {
        match domain {
            Domain::Type(ty) => self.sets_of(*ty),
            Domain::Range { .. } => 0,
        }
    }
    fn sets_of(&self, ty: TypeId) -> u64 {
        match self.model.types.kind(ty) {
            TypeKind::Scalarset { .. } => {
                self.scalarsets.iter().position(|s| *s == ty).map_or(0, bit)
            }
            TypeKind::Union { members } => members.iter().fold(0, |n, m| n | self.sets_of(*m)),
            _ => 0,
        }
    }
    fn note(&mut self, spot: Spot, stored: Option<Stored>) {
        if self.out.all.len() >= MOST {
            self.out.opaque = true;
            return;
        }
        self.out.all.push(Access { spot, stored, block: self.block.clone() });
    }
    fn in_block(&mut self, run: impl FnOnce(&mut Self)) {
        self.blocks += 1;
        self.block.push(self.blocks);
        stacker::maybe_grow(64 << 10, 1 << 20, || run(self));
        self.block.pop();
    }

    // ---- places ------------------------------------------------------------------------------

    /// Resolves a place, and collects the reads of its indices.
    fn spot(&mut self, env: &mut Env, place: &'m Place) -> Spot {
        let mut spot = match place.root {
            Root::Global(global) => Spot { base: Base::Global(global.0), parts: Vec::new() },
            Root::Local(local) => match &env.meanings[local.index()] {
                Meaning::Spot(spot) => spot.clone(),
                _ => Spot { base: Base::Local(env.number, local.0), parts: Vec::new() },
            },
        };
        for step in &place.steps {
            spot.parts.push(match step {
                Step::Field { field, .. } => Part::Field(*field),
                Step::Element { .. } => Part::Position,
                Step::Index { array, index, .. } => {
                    self.value(env, index);
                    let TypeKind::Array { index: over, .. } = self.model.types.kind(*array) else {
                        continue;
                    };
                    self.expect(index, *over);
                    match (&index.kind, bound_variable(env, index)) {
                        (ExprKind::Constant(n), _) => Part::At(*n),
                        (_, Some(bound)) => Part::Bound(bound),
                        _ => Part::Some,
                    }
                }
            });
        }
        spot
    }
    /// Counts a fault if the value of an expression may be outside of a type.
    fn expect(&mut self, e: &Expr, ty: TypeId) {
        if !self.model.types.is_simple(ty) {
            return;
        }
        let Some(parts) = self.model.types.parts(ty) else { return };
        let inside = |low: i128, high: i128| {
            parts.iter().any(|(first, count)| {
                i128::from(*first) <= low && high < i128::from(*first) + i128::from(*count)
            })
        };
        // A union is compared part by part.
        let fits = match self.model.types.parts(e.ty) {
            Some(given) if !self.model.types.is_integer(e.ty) => given.iter().all(|(first, n)| {
                *n == 0 || inside(i128::from(*first), i128::from(*first) + i128::from(*n) - 1)
            }),
            _ => self.interval(e).is_some_and(|(low, high)| inside(low, high)),
        };
        self.faults += usize::from(!fits);
    }
    /// Returns the lowest and highest possible value of a number.
    fn interval(&self, e: &Expr) -> Option<(i128, i128)> {
        let found = match &e.kind {
            ExprKind::Constant(n) => Some((i128::from(*n), i128::from(*n))),
            ExprKind::Unary(Unary::Negate, a) => self.interval(a).map(|(l, h)| (-h, -l)),
            ExprKind::Binary(op @ (Binary::Add | Binary::Subtract | Binary::Multiply), a, b) => {
                let (a, b) = (self.interval(a)?, self.interval(b)?);
                Some(match op {
                    Binary::Add => (a.0 + b.0, a.1 + b.1),
                    Binary::Subtract => (a.0 - b.1, a.1 - b.0),
                    _ => {
                        let all = [a.0 * b.0, a.0 * b.1, a.1 * b.0, a.1 * b.1];
                        (all.into_iter().min()?, all.into_iter().max()?)
                    }
                })
            }
            ExprKind::Conditional(_, a, b) => {
                let (a, b) = (self.interval(a)?, self.interval(b)?);
                Some((a.0.min(b.0), a.1.max(b.1)))
            }
            ExprKind::MultisetCount { .. } => Some((0, 1 << 32)),
            _ => {
                let parts = self.model.types.parts(e.ty)?;
                let low = parts.iter().map(|p| i128::from(p.0)).min()?;
                let high = parts.iter().map(|p| i128::from(p.0) + i128::from(p.1) - 1).max()?;
                Some((low, high))
            }
        };
        found.filter(|(low, high)| *low > -(1 << 62) && *high < 1 << 62)
    }
    /// Collects the read of a place for its value: it fails if it is undefined.
    fn read(&mut self, env: &mut Env, place: &'m Place) {
        let spot = self.spot(env, place);
        if self.model.types.is_simple(place.ty) && !self.is_defined(env, place, &spot) {
            self.faults += 1;
        }
        self.note_read(env, place, spot);
    }
    fn note_read(&mut self, env: &Env, place: &Place, spot: Spot) {
        if let (Root::Local(local), []) = (place.root, &place.steps[..])
            && matches!(env.meanings[local.index()], Meaning::Bound(_) | Meaning::Defined)
        {
            return;
        }
        self.note(spot, None);
    }
    fn is_defined(&self, env: &Env, place: &Place, spot: &Spot) -> bool {
        if let Root::Local(local) = place.root
            && matches!(env.meanings[local.index()], Meaning::Bound(_) | Meaning::Defined)
        {
            return true;
        }
        let fact = |f: &(u32, &Place)| f.0 == env.number && same_place(f.1, place);
        !self.undefined.contains(&spot.class()) || self.facts.iter().any(fact)
    }
    fn alias(&mut self, env: &mut Env, alias: &'m Alias) {
        let meaning = match &alias.target {
            AliasTarget::Place(place) => match bound_place(env, place) {
                Some(bound) => Meaning::Bound(bound),
                None => Meaning::Spot(self.spot(env, place)),
            },
            AliasTarget::Value(value) => {
                self.value(env, value);
                bound_variable(env, value).map_or(Meaning::Defined, Meaning::Bound)
            }
        };
        env.meanings[alias.local.index()] = meaning;
    }

    // ---- expressions -------------------------------------------------------------------------

    /// Collects the accesses of an expression that is copied; returns what is stored.
    fn collect_copy(&mut self, env: &mut Env, e: &'m Expr) -> Stored {
        match &e.kind {
            ExprKind::Constant(n) => Stored::Constant(*n),
            ExprKind::Read(place) => {
                let spot = self.spot(env, place);
                self.note_read(env, place, spot.clone());
                match place.root {
                    Root::Local(local)
                        if matches!(
                            env.meanings[local.index()],
                            Meaning::Bound(_) | Meaning::Defined
                        ) =>
                    {
                        Stored::Other
                    }
                    _ => Stored::Copy(spot),
                }
            }
            ExprKind::Call(..) => {
                self.value(env, e);
                Stored::Unknown
            }
            _ => {
                self.value(env, e);
                Stored::Other
            }
        }
    }
    /// Collects the accesses of an expression that is evaluated.
    fn value(&mut self, env: &mut Env, e: &'m Expr) {
        stacker::maybe_grow(64 << 10, 1 << 20, || self.value_of(env, e));
    }
    fn value_of(&mut self, env: &mut Env, e: &'m Expr) {
        let expected = self.expected.take();
        match &e.kind {
            ExprKind::Constant(_) => {}
            ExprKind::Read(place) => self.read(env, place),
            ExprKind::Unary(op, a) => {
                self.expected = expected.filter(|_| *op == Unary::Not).map(|value| !value);
                self.value(env, a);
                let is_number = self.model.types.is_integer(e.ty);
                self.faults += usize::from(is_number && self.interval(a).is_none());
            }
            ExprKind::Binary(op, a, b) => self.binary(env, e, (*op, a, b), expected),
            ExprKind::Conditional(c, a, b) => {
                self.value(env, c);
                self.in_block(|w| w.value(env, a));
                self.in_block(|w| w.value(env, b));
            }
            ExprKind::Quantified { all, local, domain, body } => {
                self.domain(env, domain);
                let (start, faults) = (self.out.all.len(), self.faults);
                let (inner, assumes) = (self.frames, self.assumes);
                self.bind(env, *local);
                // With this value it visits all elements, each with the same value.
                let visits_all = expected == Some(*all);
                self.in_block(|w| {
                    w.expected = expected.filter(|_| visits_all);
                    w.value(env, body);
                });
                let sets = self.sets(domain);
                // An `assume` ends the quantifier too.
                let ordered =
                    self.writes(start, inner) || self.out.opaque || self.assumes > assumes;
                if sets != 0 && (ordered || self.faults > faults && !visits_all) {
                    self.out.others.push((Construct::Quantifier, e.span, sets));
                }
            }
            ExprKind::Call(function, arguments) => {
                self.call(env, *function, arguments);
            }
            ExprKind::IsUndefined(place) => {
                let spot = self.spot(env, place);
                self.note_read(env, place, spot);
            }
            ExprKind::IsMember(a, _) => self.value(env, a),
            ExprKind::MultisetCount { multiset, predicate, .. } => {
                let spot = self.spot(env, multiset);
                self.note(spot, None);
                self.predicate(env, e.span, predicate, None);
            }
        }
    }
    fn binary(
        &mut self,
        env: &mut Env,
        e: &'m Expr,
        (op, a, b): (Binary, &'m Expr, &'m Expr),
        expected: Option<bool>,
    ) {
        let (known, called) = (self.facts.len(), self.called);
        match op {
            Binary::And | Binary::Or | Binary::Implies => {
                // The right operand decides if it is evaluated. The left one has a value of its own
                // if it cannot decide.
                self.expected = match (op, expected) {
                    (Binary::And, Some(true)) => Some(true),
                    (Binary::Or, Some(false)) => Some(false),
                    (Binary::Implies, Some(false)) => Some(true),
                    _ => None,
                };
                self.value(env, a);
                // What is known when the right operand is evaluated.
                if self.called == called {
                    collect_defined(a, op != Binary::Or, env.number, &mut self.facts);
                }
                self.in_block(|w| {
                    w.expected = expected;
                    w.value(env, b);
                });
                self.facts.truncate(known);
            }
            Binary::Equal | Binary::NotEqual => {
                self.collect_operand(env, a);
                self.collect_operand(env, b);
                if has_multiset(&self.model.types, a.ty) {
                    self.out.others.push((Construct::Comparison, e.span, u64::MAX));
                }
            }
            _ => {
                self.value(env, a);
                self.value(env, b);
                let fails = match op {
                    Binary::Add | Binary::Subtract | Binary::Multiply => self.interval(e).is_none(),
                    Binary::Divide | Binary::Modulo => {
                        !self.interval(b).is_some_and(|(low, high)| low > 0 || high < 0)
                            || self.interval(a).is_none()
                    }
                    Binary::BitAnd | Binary::BitOr | Binary::BitXor => {
                        self.interval(a).is_none() || self.interval(b).is_none()
                    }
                    Binary::ShiftLeft | Binary::ShiftRight => true,
                    _ => false,
                };
                self.faults += usize::from(fails);
            }
        }
    }
    /// Collects the accesses of an operand of `=`: parts of arrays and records may be undefined.
    fn collect_operand(&mut self, env: &mut Env, e: &'m Expr) {
        if self.model.types.is_simple(e.ty) {
            self.value(env, e);
        } else {
            self.collect_copy(env, e);
        }
    }
    fn domain(&mut self, env: &mut Env, domain: &'m Domain) {
        if let Domain::Range { from, to, by } = domain {
            self.value(env, from);
            self.value(env, to);
            if let Some(by) = by {
                self.value(env, by);
                self.faults += usize::from(!matches!(by.kind, ExprKind::Constant(_)));
            }
        }
    }
    /// True if an access from `start` on writes to a variable that exists outside.
    fn writes(&self, start: usize, inner: u32) -> bool {
        let outside = |base: Base| !matches!(base, Base::Local(frame, _) if frame >= inner);
        let all = &self.out.all[start.min(self.out.all.len())..];
        all.iter().any(|a| a.stored.is_some() && outside(a.spot.base))
    }
    /// Collects the accesses of a predicate on the elements of a multiset, which are visited in an
    /// order that permutations change. `removes`: the multiset that loses the elements.
    fn predicate(
        &mut self,
        env: &mut Env,
        span: Span,
        predicate: &'m Expr,
        removes: Option<&Spot>,
    ) {
        let (start, inner, assumes) = (self.out.all.len(), self.frames, self.assumes);
        self.in_block(|w| w.value(env, predicate));
        let mut ordered = self.writes(start, inner) || self.out.opaque || self.assumes > assumes;
        if let Some(removed) = removes {
            // Only the element at the position may be read.
            let other = |a: &Access| {
                a.spot.base == removed.base
                    && a.spot.parts.get(removed.parts.len()) != Some(&Part::Position)
            };
            ordered |= self.out.all[start.min(self.out.all.len())..].iter().any(other);
        }
        if ordered {
            self.out.others.push((Construct::Predicate, span, u64::MAX));
        }
    }
    fn call(&mut self, env: &mut Env, function: FunctionId, arguments: &'m [Argument]) {
        let function = &self.model.functions[function.index()];
        self.facts.clear();
        self.called += 1;
        if self.calls >= CALLS || self.frames >= self.end || self.out.opaque {
            self.out.opaque = true;
            self.faults += 1;
            return;
        }
        let mut inner = self.env(&function.frame);
        for (at, argument) in arguments.iter().enumerate() {
            let local = Spot { base: Base::Local(inner.number, at as u32), parts: Vec::new() };
            match argument {
                Argument::Value(value) => {
                    let stored = self.collect_copy(env, value);
                    self.expect(value, function.frame.locals[at].ty);
                    match bound_variable(env, value) {
                        Some(bound) => inner.meanings[at] = Meaning::Bound(bound),
                        None => self.note(local, Some(stored)),
                    }
                }
                Argument::Place(place) => {
                    inner.meanings[at] = match bound_place(env, place) {
                        Some(bound) => Meaning::Bound(bound),
                        None => Meaning::Spot(self.spot(env, place)),
                    };
                }
                Argument::Undefined(_) => self.note(local, Some(Stored::Undefined)),
            }
        }
        let returns = std::mem::take(&mut self.returns);
        let result = std::mem::replace(&mut self.result, function.result);
        self.calls += 1;
        self.in_block(|w| w.statements(&mut inner, &function.body));
        self.calls -= 1;
        (self.returns, self.result) = (returns, result);
        self.facts.clear();
        if function.result.is_some() && !always_returns(&function.body) {
            self.faults += 1;
        }
    }

    // ---- statements --------------------------------------------------------------------------

    fn statements(&mut self, env: &mut Env, all: &'m [Stmt]) {
        stacker::maybe_grow(64 << 10, 1 << 20, || {
            all.iter().for_each(|s| self.statement(env, s));
        });
    }
    fn statement(&mut self, env: &mut Env, stmt: &'m Stmt) {
        match &stmt.kind {
            StmtKind::Assign { target, value } => self.assign(env, target, value),
            StmtKind::Undefine(target) => {
                let spot = self.spot(env, target);
                self.note(spot, Some(Stored::Undefined));
            }
            StmtKind::Clear(target) => {
                let spot = self.spot(env, target);
                self.note(spot, Some(Stored::Cleared));
            }
            StmtKind::If { clauses, otherwise } => {
                for clause in clauses {
                    self.value(env, &clause.condition);
                    self.facts.clear();
                    self.in_block(|w| w.statements(env, &clause.body));
                }
                self.in_block(|w| w.statements(env, otherwise));
            }
            StmtKind::Switch { value, cases, otherwise } => {
                self.value(env, value);
                for case in cases {
                    for value in &case.matches {
                        self.in_block(|w| w.value(env, value));
                    }
                    self.in_block(|w| w.statements(env, &case.body));
                }
                self.in_block(|w| w.statements(env, otherwise));
            }
            StmtKind::For { local, domain, body } => {
                self.iterations(env, stmt, *local, domain, body)
            }
            StmtKind::While { condition, body } => self.in_block(|w| {
                w.value(env, condition);
                w.statements(env, body);
            }),
            StmtKind::Return(value) => {
                if let Some(value) = value {
                    self.collect_operand(env, value);
                    if let Some(ty) = self.result {
                        self.expect(value, ty);
                    }
                }
                self.returns += 1;
            }
            StmtKind::Put(Put::Text(_)) => {}
            StmtKind::Put(Put::Value(value)) => {
                self.collect_copy(env, value);
            }
            StmtKind::Error(_) => self.faults += 1,
            StmtKind::Claim { number, condition } => {
                self.value(env, condition);
                match self.model.claims[*number as usize].claim {
                    Claim::Assume => self.assumes += 1,
                    Claim::Assert | Claim::Liveness => self.faults += 1,
                    Claim::Cover => {}
                }
            }
            StmtKind::Alias { aliases, body } => {
                aliases.iter().for_each(|a| self.alias(env, a));
                self.statements(env, body);
            }
            StmtKind::Call(function, arguments) => self.call(env, *function, arguments),
            StmtKind::MultisetAdd { element, multiset } => {
                let from = self.spot(env, element);
                self.note_read(env, element, from.clone());
                let spot = self.spot(env, multiset);
                self.note(spot, Some(Stored::Element(from)));
                self.faults += 1;
            }
            StmtKind::MultisetRemove { multiset, .. } => {
                let spot = self.spot(env, multiset);
                self.note(spot, Some(Stored::Removed));
                self.faults += 1;
            }
            StmtKind::MultisetRemovePredicate { multiset, predicate, .. } => {
                let spot = self.spot(env, multiset);
                self.predicate(env, stmt.span, predicate, Some(&spot));
                self.note(spot, Some(Stored::Removed));
            }
        }
        self.facts.clear();
    }
    fn assign(&mut self, env: &mut Env, target: &'m Place, value: &'m Expr) {
        let spot = self.spot(env, target);
        self.expect(value, target.ty);
        let sum = match &value.kind {
            ExprKind::Binary(op @ (Binary::Add | Binary::Subtract), a, b) => {
                let is_target = |e: &Expr| match &e.kind {
                    ExprKind::Read(place) => same_place(place, target),
                    _ => false,
                };
                if is_target(a) {
                    Some((*op == Binary::Add, b))
                } else if *op == Binary::Add && is_target(b) {
                    Some((true, a))
                } else {
                    None
                }
            }
            _ => None,
        };
        if let Some((adds, by)) = sum
            && let Some((low, high)) =
                self.interval(by).filter(|(low, high)| *low >= 0 || *high <= 0)
        {
            // The old value fails if it is undefined.
            self.faults += usize::from(!self.is_defined(env, target, &spot));
            self.value(env, by);
            let up = adds == (low >= 0 && high >= 0);
            self.note(spot, Some(Stored::Sum { up }));
            return;
        }
        let is_simple = self.model.types.is_simple(target.ty);
        let stored = match self.collect_copy(env, value) {
            Stored::Other if !is_simple => Stored::Unknown,
            stored => stored,
        };
        self.note(spot, Some(stored));
    }
    fn iterations(
        &mut self,
        env: &mut Env,
        stmt: &'m Stmt,
        local: LocalId,
        domain: &'m Domain,
        body: &'m [Stmt],
    ) {
        self.domain(env, domain);
        let bound = self.bounds;
        self.bind(env, local);
        let (start, inner) = (self.out.all.len(), self.frames);
        let before = (self.returns, self.assumes);
        let block = self.block.clone();
        self.in_block(|w| w.statements(env, body));
        let sets = self.sets(domain);
        if sets != 0 {
            self.out.loops.push(Iterations {
                span: stmt.span,
                sets,
                accesses: (start, self.out.all.len()),
                bound,
                inner,
                block,
                ends: before != (self.returns, self.assumes) || self.out.opaque,
            });
        }
    }
}

/// Returns the bound variable that an expression reads.
fn bound_variable(env: &Env, e: &Expr) -> Option<u32> {
    match &e.kind {
        ExprKind::Read(place) => bound_place(env, place),
        _ => None,
    }
}

fn bound_place(env: &Env, place: &Place) -> Option<u32> {
    match (place.root, &place.steps[..]) {
        (Root::Local(local), []) => match env.meanings[local.index()] {
            Meaning::Bound(bound) => Some(bound),
            _ => None,
        },
        _ => None,
    }
}

/// Adds the places that are defined if a condition is `holds`.
fn collect_defined<'m>(of: &'m Expr, holds: bool, frame: u32, out: &mut Vec<(u32, &'m Place)>) {
    match &of.kind {
        ExprKind::Unary(Unary::Not, a) => collect_defined(a, !holds, frame, out),
        ExprKind::Binary(Binary::And, a, b) if holds => {
            collect_defined(a, true, frame, out);
            collect_defined(b, true, frame, out);
        }
        ExprKind::Binary(Binary::Or, a, b) if !holds => {
            collect_defined(a, false, frame, out);
            collect_defined(b, false, frame, out);
        }
        ExprKind::IsUndefined(place) if !holds => out.push((frame, place)),
        _ => {}
    }
}

/// True if two places of one body are equal, with indices that are variables or constants.
fn same_place(a: &Place, b: &Place) -> bool {
    a.root == b.root
        && a.steps.len() == b.steps.len()
        && a.steps.iter().zip(&b.steps).all(|(a, b)| match (a, b) {
            (Step::Field { field: a, .. }, Step::Field { field: b, .. }) => a == b,
            (Step::Element { position: a, .. }, Step::Element { position: b, .. }) => a == b,
            (Step::Index { index: a, .. }, Step::Index { index: b, .. }) => {
                match (&a.kind, &b.kind) {
                    (ExprKind::Constant(a), ExprKind::Constant(b)) => a == b,
                    (ExprKind::Read(a), ExprKind::Read(b)) => same_place(a, b),
                    _ => false,
                }
            }
            _ => false,
        })
}

/// True if each execution of a function's body reaches a `return`.
fn always_returns(body: &[Stmt]) -> bool {
    body.last().is_some_and(|last| match &last.kind {
        StmtKind::Return(_) => true,
        StmtKind::If { clauses, otherwise } => {
            clauses.iter().all(|c| always_returns(&c.body)) && always_returns(otherwise)
        }
        StmtKind::Switch { cases, otherwise, .. } => {
            cases.iter().all(|c| always_returns(&c.body)) && always_returns(otherwise)
        }
        StmtKind::Alias { body, .. } => always_returns(body),
        _ => false,
    })
}
