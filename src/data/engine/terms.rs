//! Interface of evaluation for enumeration: a narrow trait, which the machine implements.
//!
//! Enumeration creates unknowns, binds them, and re-evaluates open values; it sees neither frames
//! nor code. So a search can be read without the machine, and the machine can change without it.

use super::compile::{Compiler, Program, Sharing, VariableLocations};
use super::machine::{EvaluationMachine, Outcome};
use super::unknowns::{TrailMark, Unknowns};
use crate::enumerate::Listings;
use crate::expr::{Binder, Expr, ExprKind};
use crate::value::{Closure, Value};
use mu_base::Span;
use mu_base::ids::{OpId, SortId, VarId};

/// Cases of a call: conditions with values; `None` if the call stays unevaluated.
pub(crate) type Cases = Vec<(Value, Option<Value>)>;

/// Terms that are evaluated as far as their unknowns allow.
pub(crate) trait Terms: Sized {
    /// Returns the unknowns.
    fn unknowns(&self) -> &Unknowns;
    /// Returns the unknowns, to create and bind some.
    fn unknowns_mut(&mut self) -> &mut Unknowns;
    /// Returns the cached enumerations.
    fn listings(&mut self) -> &mut Listings;
    /// Counts a branch of a search. Error of stage `Limit`: a limit of the run is reached.
    fn count_branch(&mut self) -> Outcome<()>;

    /// Re-evaluates a value with the current bindings of unknowns.
    fn reevaluate(&mut self, p: &Program, v: &Value) -> Outcome<Value>;
    /// Evaluates under the assumption that a call has a value.
    fn with_assumption<R>(
        &mut self,
        call: &Value,
        value: Value,
        what: impl FnOnce(&mut Self) -> R,
    ) -> R;
    /// Evaluates the body of a binder for these values of its variables.
    fn body(&mut self, p: &Program, closure: &Closure, values: &[Value]) -> Outcome<Value>;
    /// Returns the cases of an open call by the equations of its function, or those of an `if`;
    /// `None` if there is only one case, or if they cannot be determined.
    fn cases(&mut self, p: &Program, call: &Value) -> Outcome<Option<Cases>>;
    /// Evaluates as if no undecided condition came before.
    fn without_suspension<R>(&mut self, what: impl FnOnce(&mut Self) -> R) -> R;
    /// True if there are too many undecided conditions before the current evaluation, so that calls
    /// are not evaluated.
    fn is_deep(&self) -> bool;

    /// Evaluates `a && b`.
    fn and(&mut self, p: &Program, a: Value, b: Value) -> Value;
    /// Evaluates `a || b`.
    fn or(&mut self, p: &Program, a: Value, b: Value) -> Value;
    /// Evaluates `!a`.
    fn not(&mut self, p: &Program, a: Value) -> Value;
    /// Evaluates `a == b` at a sort.
    fn equal(&mut self, p: &Program, sort: SortId, a: &Value, b: &Value) -> Outcome<Value>;
    /// Returns the condition that a value belongs to a sort, since numbers have one representation
    /// for all sorts.
    fn of_sort(&mut self, p: &Program, sort: SortId, v: &Value) -> Outcome<Value>;
    /// Evaluates membership by the operation `op` of the container's sort.
    fn contains(
        &mut self,
        p: &Program,
        op: OpId,
        element: &Value,
        container: &Value,
    ) -> Outcome<Value>;
    /// Returns the multiplicity of an element in a bag.
    fn count(&mut self, p: &Program, op: OpId, element: &Value, bag: &Value) -> Outcome<Value>;
    /// Returns the set of these elements.
    fn set_of(&mut self, p: &Program, sort: SortId, elements: Vec<Value>) -> Outcome<Value>;
    /// Returns a bag with `count` more of an element.
    fn bag_add(
        &mut self,
        p: &Program,
        sort: SortId,
        element: Value,
        count: Value,
        bag: Value,
    ) -> Outcome<Value>;
    /// Applies an operation to all its arguments.
    fn apply_op(&mut self, p: &Program, op: OpId, args: Vec<Value>) -> Outcome<Value>;
    /// Evaluates `f[key -> value]` for a function sort.
    fn update_at(
        &mut self,
        p: &Program,
        sort: SortId,
        f: Value,
        key: Value,
        value: Value,
    ) -> Outcome<Value>;
    /// Returns the value of a closed `lambda`.
    fn lambda(&mut self, p: &Program, sort: SortId, vars: &[VarId], body: Expr) -> Outcome<Value>;

    /// Returns the expression of a value of a sort.
    fn to_expr(&self, p: &Program, v: &Value, sort: SortId) -> Expr;
    /// Returns a value as text for messages.
    fn value_text(&self, p: &Program, v: &Value) -> String;
    /// Returns the name of an unknown for messages.
    fn unknown_name(&self, p: &Program, u: u32) -> String;

    /// Creates an unknown of a sort.
    fn fresh_unknown(&mut self, sort: SortId) -> Value {
        self.unknowns_mut().fresh(sort, None)
    }
    /// Returns the current mark, see [`Unknowns::mark`].
    fn mark(&self) -> TrailMark {
        self.unknowns().mark()
    }
    /// Undoes all creations and bindings since a mark.
    fn undo(&mut self, mark: TrailMark) {
        self.unknowns_mut().undo(mark);
    }
}

impl Terms for EvaluationMachine {
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

    fn reevaluate(&mut self, p: &Program, v: &Value) -> Outcome<Value> {
        EvaluationMachine::reevaluate(self, p, v)
    }

    fn with_assumption<R>(
        &mut self,
        call: &Value,
        value: Value,
        what: impl FnOnce(&mut Self) -> R,
    ) -> R {
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

    fn without_suspension<R>(&mut self, what: impl FnOnce(&mut Self) -> R) -> R {
        let suspended = std::mem::take(&mut self.suspended);
        let result = what(self);
        self.suspended = suspended;
        result
    }

    fn is_deep(&self) -> bool {
        self.suspended > self.patience
    }

    fn and(&mut self, p: &Program, a: Value, b: Value) -> Value {
        EvaluationMachine::and(self, p, a, b)
    }

    fn or(&mut self, p: &Program, a: Value, b: Value) -> Value {
        EvaluationMachine::or(self, p, a, b)
    }

    fn not(&mut self, p: &Program, a: Value) -> Value {
        EvaluationMachine::not(self, p, a)
    }

    fn equal(&mut self, p: &Program, sort: SortId, a: &Value, b: &Value) -> Outcome<Value> {
        EvaluationMachine::equal(self, p, sort, a, b)
    }

    fn of_sort(&mut self, p: &Program, sort: SortId, v: &Value) -> Outcome<Value> {
        EvaluationMachine::of_sort(self, p, sort, v)
    }

    fn contains(
        &mut self,
        p: &Program,
        op: OpId,
        element: &Value,
        container: &Value,
    ) -> Outcome<Value> {
        EvaluationMachine::contains(self, p, op, element, container)
    }

    fn count(&mut self, p: &Program, op: OpId, element: &Value, bag: &Value) -> Outcome<Value> {
        EvaluationMachine::count(self, p, op, element, bag)
    }

    fn set_of(&mut self, p: &Program, sort: SortId, elements: Vec<Value>) -> Outcome<Value> {
        EvaluationMachine::set_of(self, p, sort, elements)
    }

    fn bag_add(
        &mut self,
        p: &Program,
        sort: SortId,
        element: Value,
        count: Value,
        bag: Value,
    ) -> Outcome<Value> {
        EvaluationMachine::bag_add(self, p, sort, element, count, bag)
    }

    fn apply_op(&mut self, p: &Program, op: OpId, args: Vec<Value>) -> Outcome<Value> {
        EvaluationMachine::apply_op(self, p, op, args)
    }

    fn update_at(
        &mut self,
        p: &Program,
        sort: SortId,
        f: Value,
        key: Value,
        value: Value,
    ) -> Outcome<Value> {
        EvaluationMachine::update_at(self, p, sort, f, key, value)
    }

    fn lambda(&mut self, p: &Program, sort: SortId, vars: &[VarId], body: Expr) -> Outcome<Value> {
        let lambda =
            Expr::new(ExprKind::Bind(Binder::Lambda, vars.to_vec(), body), sort, Span::default());
        let mut sharing = Sharing::default();
        let node = Compiler::new(p, &mut sharing).root(&lambda, &VariableLocations::default())?;
        let frame = self.stack.len();
        self.eval(p, &node, frame)
    }

    fn to_expr(&self, p: &Program, v: &Value, sort: SortId) -> Expr {
        EvaluationMachine::to_expr(self, p, v, sort)
    }

    fn value_text(&self, p: &Program, v: &Value) -> String {
        EvaluationMachine::value_text(self, p, v)
    }

    fn unknown_name(&self, p: &Program, u: u32) -> String {
        EvaluationMachine::unknown_name(self, p, u)
    }
}
