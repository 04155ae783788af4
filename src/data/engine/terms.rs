//! What enumeration asks of evaluation: a narrow trait, which the machine fulfils.
//!
//! Enumeration makes unknowns, binds them, and has open values evaluated again; it sees neither
//! frames nor code. So a search can be read without the machine, and the machine can change without
//! it.

use super::compile::{Compiler, Program, Scope, Sharing};
use super::machine::{Machine, Outcome};
use super::unknowns::{Mark, Unknowns};
use crate::enumerate::Listings;
use crate::expr::{Binder, Expr, ExprKind};
use crate::value::{Closure, Value};
use mu_base::Span;
use mu_base::ids::{OpId, SortId, VarId};

/// Under which conditions a call is which value; it stays as it is under one without a value.
pub(crate) type Cases = Vec<(Value, Option<Value>)>;

/// Terms that are evaluated as far as their unknowns allow.
pub(crate) trait Terms: Sized {
    /// The unknowns.
    fn unknowns(&self) -> &Unknowns;
    /// The unknowns, to make and bind some.
    fn unknowns_mut(&mut self) -> &mut Unknowns;
    /// What enumerations remember.
    fn listings(&mut self) -> &mut Listings;
    /// Counts a branch of a search; an error of stage `Limit` when a limit of the run is met.
    fn count_branch(&mut self) -> Outcome<()>;

    /// A value evaluated again, with what unknowns have become.
    fn renew(&mut self, p: &Program, v: &Value) -> Outcome<Value>;
    /// Evaluates while a call is taken for a value.
    fn taking<R>(&mut self, call: &Value, value: Value, what: impl FnOnce(&mut Self) -> R) -> R;
    /// The body of a binder for these values of its variables.
    fn body(&mut self, p: &Program, closure: &Closure, values: &[Value]) -> Outcome<Value>;
    /// What the equations of a function say of an open call, or the condition of an `if`; `None` if
    /// there is but one case, or if they cannot be told.
    fn cases(&mut self, p: &Program, call: &Value) -> Outcome<Option<Cases>>;
    /// Evaluates as if no undecided condition stood before it.
    fn alone<R>(&mut self, what: impl FnOnce(&mut Self) -> R) -> R;
    /// Whether so many undecided conditions stand before what is evaluated that it is left alone.
    fn is_deep(&self) -> bool;

    /// `a && b`.
    fn and(&mut self, p: &Program, a: Value, b: Value) -> Value;
    /// `a || b`.
    fn or(&mut self, p: &Program, a: Value, b: Value) -> Value;
    /// `!a`.
    fn not(&mut self, p: &Program, a: Value) -> Value;
    /// `a == b` at a sort.
    fn equal(&mut self, p: &Program, sort: SortId, a: &Value, b: &Value) -> Outcome<Value>;
    /// That a value is of a sort: numbers have one representation, so this is a condition.
    fn of_sort(&mut self, p: &Program, sort: SortId, v: &Value) -> Outcome<Value>;
    /// Membership by the operation `op` of the container's sort.
    fn contains(
        &mut self,
        p: &Program,
        op: OpId,
        element: &Value,
        container: &Value,
    ) -> Outcome<Value>;
    /// The set of these elements.
    fn set_of(&mut self, p: &Program, sort: SortId, elements: Vec<Value>) -> Outcome<Value>;
    /// A bag with `count` more of an element.
    fn bag_add(
        &mut self,
        p: &Program,
        sort: SortId,
        element: Value,
        count: Value,
        bag: Value,
    ) -> Outcome<Value>;
    /// An operation applied to all its arguments.
    fn apply_op(&mut self, p: &Program, op: OpId, args: Vec<Value>) -> Outcome<Value>;
    /// `f[key -> value]` for a function sort.
    fn update_at(
        &mut self,
        p: &Program,
        sort: SortId,
        f: Value,
        key: Value,
        value: Value,
    ) -> Outcome<Value>;
    /// The value of a closed `lambda`.
    fn lambda(&mut self, p: &Program, sort: SortId, vars: &[VarId], body: Expr) -> Outcome<Value>;

    /// The expression of a value of a sort.
    fn to_expr(&self, p: &Program, v: &Value, sort: SortId) -> Expr;
    /// A value for messages.
    fn shown(&self, p: &Program, v: &Value) -> String;
    /// What messages call an unknown.
    fn unknown_name(&self, p: &Program, u: u32) -> String;

    /// A new unknown of a sort.
    fn unknown(&mut self, sort: SortId) -> Value {
        self.unknowns_mut().fresh(sort, None)
    }
    /// The moment to go back to, see [`Unknowns::mark`].
    fn mark(&self) -> Mark {
        self.unknowns().mark()
    }
    /// Undoes what was made and bound since.
    fn undo(&mut self, mark: Mark) {
        self.unknowns_mut().undo(mark);
    }
}

impl Terms for Machine {
    fn unknowns(&self) -> &Unknowns {
        &self.unknowns
    }

    fn unknowns_mut(&mut self) -> &mut Unknowns {
        &mut self.unknowns
    }

    fn listings(&mut self) -> &mut Listings {
        &mut self.listings
    }

    fn count_branch(&mut self) -> Outcome<()> {
        self.meter.branch()
    }

    fn renew(&mut self, p: &Program, v: &Value) -> Outcome<Value> {
        Machine::renew(self, p, v)
    }

    fn taking<R>(&mut self, call: &Value, value: Value, what: impl FnOnce(&mut Self) -> R) -> R {
        self.assumed = Some((call.clone(), value));
        let result = what(self);
        self.assumed = None;
        result
    }

    fn body(&mut self, p: &Program, closure: &Closure, values: &[Value]) -> Outcome<Value> {
        let frame = self.stack.len();
        self.stack.extend_from_slice(values);
        self.stack.extend(closure.captures.iter().cloned());
        self.enter(p, &closure.lambda.body, frame)
    }

    fn cases(&mut self, p: &Program, call: &Value) -> Outcome<Option<Cases>> {
        self.cases_of(p, call)
    }

    fn alone<R>(&mut self, what: impl FnOnce(&mut Self) -> R) -> R {
        let suspended = std::mem::take(&mut self.suspended);
        let result = what(self);
        self.suspended = suspended;
        result
    }

    fn is_deep(&self) -> bool {
        self.suspended > self.patience
    }

    fn and(&mut self, p: &Program, a: Value, b: Value) -> Value {
        Machine::and(self, p, a, b)
    }

    fn or(&mut self, p: &Program, a: Value, b: Value) -> Value {
        Machine::or(self, p, a, b)
    }

    fn not(&mut self, p: &Program, a: Value) -> Value {
        Machine::not(self, p, a)
    }

    fn equal(&mut self, p: &Program, sort: SortId, a: &Value, b: &Value) -> Outcome<Value> {
        Machine::equal(self, p, sort, a, b)
    }

    fn of_sort(&mut self, p: &Program, sort: SortId, v: &Value) -> Outcome<Value> {
        Machine::of_sort(self, p, sort, v)
    }

    fn contains(
        &mut self,
        p: &Program,
        op: OpId,
        element: &Value,
        container: &Value,
    ) -> Outcome<Value> {
        Machine::contains(self, p, op, element, container)
    }

    fn set_of(&mut self, p: &Program, sort: SortId, elements: Vec<Value>) -> Outcome<Value> {
        Machine::set_of(self, p, sort, elements)
    }

    fn bag_add(
        &mut self,
        p: &Program,
        sort: SortId,
        element: Value,
        count: Value,
        bag: Value,
    ) -> Outcome<Value> {
        Machine::bag_add(self, p, sort, element, count, bag)
    }

    fn apply_op(&mut self, p: &Program, op: OpId, args: Vec<Value>) -> Outcome<Value> {
        Machine::apply_op(self, p, op, args)
    }

    fn update_at(
        &mut self,
        p: &Program,
        sort: SortId,
        f: Value,
        key: Value,
        value: Value,
    ) -> Outcome<Value> {
        Machine::update_at(self, p, sort, f, key, value)
    }

    fn lambda(&mut self, p: &Program, sort: SortId, vars: &[VarId], body: Expr) -> Outcome<Value> {
        let lambda =
            Expr::new(ExprKind::Bind(Binder::Lambda, vars.to_vec(), body), sort, Span::default());
        let mut sharing = Sharing::default();
        let node = Compiler::new(p, &mut sharing).root(&lambda, &Scope::default())?;
        let frame = self.stack.len();
        self.eval(p, &node, frame)
    }

    fn to_expr(&self, p: &Program, v: &Value, sort: SortId) -> Expr {
        Machine::to_expr(self, p, v, sort)
    }

    fn shown(&self, p: &Program, v: &Value) -> String {
        Machine::shown(self, p, v)
    }

    fn unknown_name(&self, p: &Program, u: u32) -> String {
        Machine::unknown_name(self, p, u)
    }
}
