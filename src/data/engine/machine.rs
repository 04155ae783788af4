//! Abstract machine: innermost evaluation of code on a stack of values, with lazy connectives and
//! lazy arguments (`lazy`).
//!
//! Calls in tail position reuse their frame; all other recursion grows the machine stack by
//! `stacker`, up to a depth limit. Each application of an equation is a *step*; consecutive steps
//! in one frame are limited. Terms with unknowns are evaluated as far as possible. A call stays
//! unevaluated if its arguments do not determine the rule, or if it is behind too many undecided
//! conditions, so that recursion over an unknown ends.

use super::code::{CodeNode, Func, Leaf, LeafCheck, Tree};
use super::compile::Program;
use super::fast_path::ReadContext;
use super::lazy::LazyAnswer;
use super::meter::Meter;
use super::partial_evaluation::Watch;
use super::paths::SharedOracle;
use super::polling::CallState;
use super::reflect::Leaves;
use super::unknowns::Unknowns;
use crate::builtins::number;
use crate::enumerate::{self, Listings};
use crate::expr::{Binder, Expr};
use crate::signature::{Builtin, OpKind};
use crate::sort::basic;
use crate::value::{Closure, IMPURE, Rich, Value};
use ahash::AHashMap;
use mu_base::diagnostic::{Diagnostic, Stage};
use mu_base::ids::{OpId, SortId};
use mu_base::narrow;
use std::cell::RefCell;
use std::rc::Rc;

/// A result inside the engine.
pub type Outcome<T> = Result<T, Box<Diagnostic>>;

/// Default of [`EvaluationMachine::patience`].
pub(crate) const MAX_SUSPENDED: u32 = 4;
/// Deepest nesting of evaluation.
pub(super) const MAX_DEPTH: u32 = 1_000_000;

/// State of evaluation.
#[derive(Debug)]
pub struct EvaluationMachine {
    pub(crate) stack: Vec<Value>,
    pub(crate) shared: Vec<Option<Value>>,
    pub(crate) meter: Meter,
    pub(crate) depth: u32,
    /// Number of undecided conditions before the current evaluation.
    pub(crate) suspended: u32,
    /// Calls behind more undecided conditions than this are not evaluated if they contain an
    /// unknown.
    pub(crate) patience: u32,
    pub(crate) unknowns: Unknowns,
    /// Assumption of the current re-evaluation: a call and its value.
    pub(super) assumed: Option<(Value, Value)>,
    /// Cached enumerations.
    pub(crate) listings: Listings,
    /// Cached expressions of shared nodes, by the address of their arguments; entries hold the
    /// nodes, so that addresses stay valid.
    pub(crate) reflected: RefCell<AHashMap<*const Value, (Value, Expr)>>,
    pub(crate) leaves: RefCell<Leaves>,
    /// Variables withheld from the evaluation.
    pub(crate) watch: Watch,
    /// Source of decisions on comparisons of rigid unknowns.
    pub(crate) paths: Option<SharedOracle>,
}

pub(super) enum Selected<'a> {
    Rule(&'a Leaf),
    None,
    Undecided,
}

impl EvaluationMachine {
    pub(crate) fn new(program: &Program) -> Self {
        EvaluationMachine {
            stack: Vec::new(),
            shared: vec![None; program.shared as usize],
            meter: Meter::new(),
            depth: 0,
            suspended: 0,
            patience: MAX_SUSPENDED,
            unknowns: Unknowns::default(),
            assumed: None,
            listings: Listings::default(),
            reflected: RefCell::default(),
            leaves: RefCell::default(),
            watch: Watch::default(),
            paths: None,
        }
    }

    /// Evaluates code with a frame that starts at `base`; the height of the frame is the stack's.
    #[inline]
    pub(crate) fn eval(&mut self, p: &Program, node: &CodeNode, base: usize) -> Outcome<Value> {
        match node {
            CodeNode::Local(slot) => Ok(self.stack[base + *slot as usize].clone()),
            CodeNode::Int(n) => Ok(Value::Int(*n)),
            CodeNode::Con(op) => Ok(Value::Con(*op)),
            CodeNode::Bool(b) => Ok(Value::Bool(*b)),
            CodeNode::Nil(sort) => Ok(Value::Nil(*sort)),
            CodeNode::Quick(quick) => {
                match quick.value(ReadContext { frame: &self.stack[base..], kept: &self.shared }) {
                    Some(value) => Ok(value),
                    None => self.eval(p, &quick.plain, base),
                }
            }
            _ => {
                self.depth += 1;
                let value = if self.depth & 7 == 0 {
                    stacker::maybe_grow(128 << 10, 4 << 20, || self.run(p, node, base))
                } else {
                    self.run(p, node, base)
                };
                self.depth -= 1;
                value
            }
        }
    }

    fn run<'a>(
        &mut self,
        p: &'a Program,
        mut node: &'a CodeNode,
        mut base: usize,
    ) -> Outcome<Value> {
        let floor = self.stack.len();
        // Consecutive equations in this frame.
        let mut turns = 0u64;
        let value = loop {
            match node {
                CodeNode::Call(index, args) => {
                    let func = &p.funcs[*index as usize];
                    let frame = self.frame(p, args, base, floor)?;
                    match self.select_rule(p, func, frame)? {
                        Selected::Rule(leaf) => {
                            turns += 1;
                            if self.meter.step() || self.depth > MAX_DEPTH {
                                self.pause(
                                    p,
                                    func,
                                    frame,
                                    leaf.span,
                                    CallState { turns, lazy: 0 },
                                )?;
                            }
                            node = &leaf.rhs;
                            base = frame;
                        }
                        selected => {
                            self.stack.truncate(frame + func.args as usize);
                            let args: Vec<Value> = self.stack.drain(frame..).collect();
                            let undecided = matches!(selected, Selected::Undecided);
                            break self.no_rule(p, func, args, undecided)?;
                        }
                    }
                }
                CodeNode::LazyCall(index, args, lazy) => {
                    turns += 1;
                    match self.lazy_call(
                        p,
                        *index,
                        args,
                        CallState { turns, lazy: *lazy },
                        base,
                        floor,
                    )? {
                        LazyAnswer::Value(value) => break value,
                        LazyAnswer::Argument(i) => node = &args[i],
                        LazyAnswer::Rule(leaf) => {
                            node = &leaf.rhs;
                            base = floor;
                        }
                    }
                }
                CodeNode::If(op, parts) => match self.eval(p, &parts[0], base)? {
                    Value::Bool(true) => node = &parts[1],
                    Value::Bool(false) => node = &parts[2],
                    condition => {
                        break self.evaluate_undecided_if(
                            p, *op, condition, &parts[1], &parts[2], base,
                        )?;
                    }
                },
                CodeNode::And(parts) => match self.eval(p, &parts[0], base)? {
                    Value::Bool(true) => node = &parts[1],
                    Value::Bool(false) => break Value::Bool(false),
                    a => {
                        let b = self.behind(p, &a, &parts[1], base)?;
                        break self.and(p, a, b);
                    }
                },
                CodeNode::Or(parts) => match self.eval(p, &parts[0], base)? {
                    Value::Bool(false) => node = &parts[1],
                    Value::Bool(true) => break Value::Bool(true),
                    a => {
                        let b = self.behind(p, &a, &parts[1], base)?;
                        break self.or(p, a, b);
                    }
                },
                CodeNode::Implies(parts) => match self.eval(p, &parts[0], base)? {
                    Value::Bool(true) => node = &parts[1],
                    Value::Bool(false) => break Value::Bool(true),
                    a => {
                        let b = self.behind(p, &a, &parts[1], base)?;
                        let not_a = self.not(p, a);
                        break self.or(p, not_a, b);
                    }
                },
                CodeNode::Let(values, body) => {
                    // Another frame's variables stay below: heights are relative to the frame.
                    for v in values {
                        let v = self.eval(p, v, base)?;
                        self.stack.push(v);
                    }
                    node = body;
                }
                CodeNode::Shared(id, body) => {
                    break self.shared_value(p, *id as usize, body, base)?;
                }
                CodeNode::Prim2(builtin, op, args) => {
                    let a = self.eval(p, &args[0], base)?;
                    let b = self.eval(p, &args[1], base)?;
                    break self.prim2(p, *builtin, *op, a, b)?;
                }
                CodeNode::Prim1(builtin, op, arg) => {
                    let a = self.eval(p, arg, base)?;
                    break self.prim1(p, *builtin, *op, a)?;
                }
                CodeNode::Select(op, arg) => {
                    break self.eval(p, arg, base).map(|a| self.select_part(p, *op, a))?;
                }
                CodeNode::Make(op, flags, args) => break self.make(p, *op, *flags, args, base)?,
                CodeNode::List(heads, tail) => break self.list(p, heads, tail, base)?,
                CodeNode::Local(_)
                | CodeNode::Int(_)
                | CodeNode::Con(_)
                | CodeNode::Bool(_)
                | CodeNode::Nil(_)
                | CodeNode::Quick(_) => {
                    break self.eval(p, node, base)?;
                }
                CodeNode::Sym(op) => break Value::Sym(*op),
                _ => break self.rare(p, node, base)?,
            }
        };
        self.stack.truncate(floor);
        Ok(value)
    }

    /// Evaluates arguments to the top of the stack, replacing the frame that began at `floor`.
    /// Returns their base.
    #[inline]
    fn frame(
        &mut self,
        p: &Program,
        args: &[CodeNode],
        base: usize,
        floor: usize,
    ) -> Outcome<usize> {
        let frame = self.stack.len();
        for a in args {
            let v = self.eval(p, a, base)?;
            self.stack.push(v);
        }
        if frame > floor {
            self.stack.drain(floor..frame);
        }
        Ok(floor)
    }

    /// Returns the cached value of a shared expression, evaluating it at first use.
    fn shared_value(
        &mut self,
        p: &Program,
        id: usize,
        body: &CodeNode,
        base: usize,
    ) -> Outcome<Value> {
        if let Some(Some(v)) = self.shared.get(id) {
            return Ok(v.clone());
        }
        let suspended = std::mem::take(&mut self.suspended);
        let v = self.eval(p, body, base);
        self.suspended = suspended;
        let v = v?;
        if id >= self.shared.len() {
            self.shared.resize(id + 1, None);
        }
        self.shared[id] = Some(v.clone());
        Ok(v)
    }

    /// Builds the term of an operation without equations.
    #[inline]
    fn make(
        &mut self,
        p: &Program,
        op: OpId,
        flags: u8,
        args: &[CodeNode],
        base: usize,
    ) -> Outcome<Value> {
        Ok(match args {
            [a] => Value::app1(op, flags, self.eval(p, a, base)?),
            [a, b] => {
                let a = self.eval(p, a, base)?;
                Value::app2(op, flags, a, self.eval(p, b, base)?)
            }
            [a, b, c] => {
                let a = self.eval(p, a, base)?;
                let b = self.eval(p, b, base)?;
                Value::app3(op, flags, a, b, self.eval(p, c, base)?)
            }
            args => {
                let mut values = Vec::with_capacity(args.len());
                for a in args {
                    values.push(self.eval(p, a, base)?);
                }
                Value::app(op, flags, values)
            }
        })
    }

    fn list(
        &mut self,
        p: &Program,
        heads: &[CodeNode],
        tail: &CodeNode,
        base: usize,
    ) -> Outcome<Value> {
        if let [head] = heads {
            let head = self.eval(p, head, base)?;
            self.stack.push(head);
            let tail = self.eval(p, tail, base)?;
            let head = self.stack.pop().expect("the head was pushed");
            return Ok(Value::cons(head, tail));
        }
        for head in heads {
            let head = self.eval(p, head, base)?;
            self.stack.push(head);
        }
        let mut list = self.eval(p, tail, base)?;
        for _ in heads {
            let head = self.stack.pop().expect("each head was pushed");
            list = Value::cons(head, list);
        }
        Ok(list)
    }

    #[inline(never)]
    fn rare(&mut self, p: &Program, node: &CodeNode, base: usize) -> Outcome<Value> {
        match node {
            CodeNode::Big(n) => Ok(Value::integer((**n).clone())),
            CodeNode::EmptySet(sort) => Ok(Value::rich(Rich::Set(*sort, Rc::new([])))),
            CodeNode::EmptyBag(sort) => Ok(Value::rich(Rich::Bag(*sort, Rc::new([])))),
            CodeNode::Update(op, args) => {
                let f = self.eval(p, &args[0], base)?;
                let k = self.eval(p, &args[1], base)?;
                let v = self.eval(p, &args[2], base)?;
                self.update(p, *op, f, k, v)
            }
            CodeNode::BagInsert(op, args) => {
                let a = self.eval(p, &args[0], base)?;
                let b = self.eval(p, &args[1], base)?;
                let c = self.eval(p, &args[2], base)?;
                self.bag_insert(p, *op, a, b, c)
            }
            CodeNode::Apply(function, args) => {
                // The arguments are on the stack during their evaluation, as the compiler assumed.
                let function = self.eval(p, function, base)?;
                let frame = self.stack.len();
                for a in args {
                    let v = self.eval(p, a, base)?;
                    self.stack.push(v);
                }
                if let Some(closure) = function.as_closure()
                    && closure.lambda.binder == Binder::Lambda
                {
                    self.stack.extend(closure.captures.iter().cloned());
                    return self.enter(p, &closure.lambda.body, frame);
                }
                let args: Vec<Value> = self.stack.drain(frame..).collect();
                self.apply_value(p, function, args)
            }
            CodeNode::Bind(lambda, slots) => {
                let captures =
                    slots.iter().map(|&s| self.stack[base + s as usize].clone()).collect();
                self.binder(p, Closure { lambda: lambda.clone(), captures })
            }
            CodeNode::Local(_)
            | CodeNode::Int(_)
            | CodeNode::Con(_)
            | CodeNode::Bool(_)
            | CodeNode::Nil(_)
            | CodeNode::Sym(_)
            | CodeNode::Call(..)
            | CodeNode::LazyCall(..)
            | CodeNode::If(..)
            | CodeNode::And(_)
            | CodeNode::Or(_)
            | CodeNode::Implies(_)
            | CodeNode::Let(..)
            | CodeNode::Shared(..)
            | CodeNode::Quick(_)
            | CodeNode::Prim1(..)
            | CodeNode::Prim2(..)
            | CodeNode::Select(..)
            | CodeNode::Make(..)
            | CodeNode::List(..) => {
                Err(Box::new(Diagnostic::internal("`rare` got code that `run` evaluates")))
            }
        }
    }

    /// Evaluates a closure's body in the frame on top of the stack, and drops the frame.
    pub(crate) fn enter(&mut self, p: &Program, body: &CodeNode, frame: usize) -> Outcome<Value> {
        if self.depth > MAX_DEPTH {
            return Err(Box::new(Diagnostic::new(
                Stage::Data,
                "rewriting does not end: function applications are nested too deeply",
            )));
        }
        self.tick("in a lambda abstraction")?;
        let value = self.eval(p, body, frame)?;
        self.stack.truncate(frame);
        Ok(value)
    }

    /// Counts a step without an equation.
    pub(crate) fn tick(&mut self, place: &str) -> Outcome<()> {
        if self.meter.step() {
            if self.meter.is_spent() {
                let message = format!(
                    "rewriting does not end: more than {} steps, the last {place}",
                    self.meter.limit()
                );
                return Err(Box::new(Diagnostic::new(Stage::Data, message)));
            }
            self.meter.extend()?;
        }
        Ok(())
    }

    /// Evaluates a binder with the values of its free variables: to a function, a set, a bag, or
    /// the value of a quantifier.
    pub(crate) fn binder(&mut self, p: &Program, closure: Closure) -> Outcome<Value> {
        match closure.lambda.binder {
            Binder::Lambda => Ok(Value::rich(Rich::Closure(closure))),
            Binder::Forall | Binder::Exists => enumerate::quantify(self, p, closure),
            Binder::SetComprehension | Binder::BagComprehension => {
                enumerate::comprehend(self, p, closure)
            }
        }
    }

    /// Evaluates the second operand of a connective with an undecided first operand.
    #[inline(never)]
    fn behind(
        &mut self,
        p: &Program,
        first: &Value,
        second: &CodeNode,
        base: usize,
    ) -> Outcome<Value> {
        self.needs(first)?;
        let open = u32::from(first.is_open());
        // The first operand stays in the caller; heights are relative to the frame, so nothing is
        // pushed.
        self.suspended += open;
        let value = self.eval(p, second, base);
        self.suspended -= open;
        value
    }

    #[inline(never)]
    fn evaluate_undecided_if(
        &mut self,
        p: &Program,
        op: OpId,
        condition: Value,
        then: &CodeNode,
        other: &CodeNode,
        base: usize,
    ) -> Outcome<Value> {
        let a = self.behind(p, &condition, then, base)?;
        let b = self.behind(p, &condition, other, base)?;
        self.if_value(p, op, condition, a, b)
    }

    /// Selects the equation for the arguments in a frame. It is undecided for open arguments behind
    /// too many undecided conditions.
    #[inline]
    pub(super) fn select_rule<'a>(
        &mut self,
        p: &Program,
        func: &'a Func,
        frame: usize,
    ) -> Outcome<Selected<'a>> {
        if self.suspended > self.patience && self.stack[frame..].iter().any(Value::is_open) {
            return Ok(Selected::Undecided);
        }
        self.select(p, &func.tree, frame)
    }

    fn select<'a>(
        &mut self,
        p: &Program,
        mut tree: &'a Tree,
        base: usize,
    ) -> Outcome<Selected<'a>> {
        loop {
            match tree {
                Tree::Fail => return Ok(Selected::None),
                Tree::Leaf(leaf) => {
                    if leaf.checks.is_empty() && leaf.condition.is_none() {
                        return Ok(Selected::Rule(leaf));
                    }
                    match self.leaf_matches(p, &leaf.checks, leaf.condition.as_ref(), base)? {
                        Some(true) => return Ok(Selected::Rule(leaf)),
                        Some(false) => tree = &leaf.otherwise,
                        None => return Ok(Selected::Undecided),
                    }
                }
                Tree::Switch(switch) => {
                    self.stack.truncate(base + switch.height as usize);
                    let value = &self.stack[base + switch.slot as usize];
                    let mut found = None;
                    for case in &switch.cases {
                        if case.key.matches(value) {
                            found = Some((&case.fields, &case.tree));
                            break;
                        }
                    }
                    tree = match found {
                        Some((fields, sub)) => {
                            if !fields.is_empty() {
                                self.push_fields(base + switch.slot as usize, fields);
                            }
                            sub
                        }
                        None if value.is_open() && !is_constructed(p, value) => {
                            let value = value.clone();
                            match self.number_case(p, switch, &value) {
                                Some(Some(case)) => &switch.cases[case].tree,
                                Some(None) => &switch.default,
                                None => {
                                    self.needs(&value)?;
                                    return Ok(Selected::Undecided);
                                }
                            }
                        }
                        None => &switch.default,
                    };
                }
                Tree::Sequence(trees) => {
                    let height = self.stack.len();
                    for tree in trees {
                        match self.select(p, tree, base)? {
                            Selected::None => self.stack.truncate(height),
                            other => return Ok(other),
                        }
                    }
                    return Ok(Selected::None);
                }
            }
        }
    }

    pub(crate) fn push_fields(&mut self, slot: usize, fields: &[u32]) {
        if let Value::Cons(cell) = &self.stack[slot] {
            let cell = cell.clone();
            for f in fields {
                self.stack.push(if *f == 0 { cell.head.clone() } else { cell.tail.clone() });
            }
            return;
        }
        for f in fields {
            if let Some(field) =
                self.stack[slot].as_app().and_then(|(_, args)| args.get(*f as usize))
            {
                let field = field.clone();
                self.stack.push(field);
            }
        }
    }

    /// True if checks and condition hold; `None` if an unknown decides.
    fn leaf_matches(
        &mut self,
        p: &Program,
        checks: &[LeafCheck],
        condition: Option<&CodeNode>,
        base: usize,
    ) -> Outcome<Option<bool>> {
        for check in checks {
            match check {
                LeafCheck::Equal(a, b, sort) => {
                    let (a, b) = (
                        self.stack[base + *a as usize].clone(),
                        self.stack[base + *b as usize].clone(),
                    );
                    match self.equal(p, *sort, &a, &b)? {
                        Value::Bool(true) => {}
                        v if v.is_open() => {
                            self.needs(&v)?;
                            return Ok(None);
                        }
                        _ => return Ok(Some(false)),
                    }
                }
                LeafCheck::Number(slot, sort) => {
                    let v = &self.stack[base + *slot as usize];
                    if self.is_of_sort(p, v, *sort) {
                        continue;
                    }
                    if !v.is_open() {
                        return Ok(Some(false));
                    }
                    let v = v.clone();
                    match self.decide_sort(p, &v, *sort) {
                        Some(true) => {}
                        Some(false) => return Ok(Some(false)),
                        None => {
                            self.needs(&v)?;
                            return Ok(None);
                        }
                    }
                }
            }
        }
        if let Some(condition) = condition {
            let v = self.eval(p, condition, base)?;
            return Ok(match v {
                Value::Bool(b) => Some(b),
                v if v.is_open() => {
                    self.needs(&v)?;
                    None
                }
                // A normal form that is not a truth value: the condition does not hold.
                _ => Some(false),
            });
        }
        Ok(Some(true))
    }

    /// True if a number is in a basic sort, or if a term without a value belongs to it whatever its
    /// value is.
    pub(super) fn is_of_sort(&self, p: &Program, v: &Value, sort: SortId) -> bool {
        if v.is_number() {
            return number::in_sort(v, sort);
        }
        (basic::POS.number()..=sort.number()).contains(&self.sort_of_number(p, v).number())
    }

    /// Evaluates a call that no equation matches (or, if `undecided`, not yet): built-in semantics,
    /// or the term itself.
    pub(super) fn no_rule(
        &mut self,
        p: &Program,
        func: &Func,
        args: Vec<Value>,
        undecided: bool,
    ) -> Outcome<Value> {
        if undecided {
            return Ok(Value::app(func.op, IMPURE, args));
        }
        let info = p.op(func.op);
        if func.level == 1 {
            if let Some(constant) = info.funcs[0] {
                let head = self.call(p, constant, vec![])?;
                if head != Value::Sym(func.op) {
                    return self.apply_value(p, head, args);
                }
            }
            return self.apply_plain(p, func.op, args);
        }
        Ok(if args.is_empty() {
            Value::Sym(func.op)
        } else {
            Value::app(func.op, info.flags, args)
        })
    }

    /// Calls a function by its index.
    fn call(&mut self, p: &Program, index: u32, args: Vec<Value>) -> Outcome<Value> {
        let func = &p.funcs[index as usize];
        let frame = self.stack.len();
        self.stack.extend(args);
        match self.select(p, &func.tree, frame)? {
            Selected::Rule(leaf) => {
                if self.meter.step() || self.depth > MAX_DEPTH {
                    self.pause(p, func, frame, leaf.span, CallState::default())?;
                }
                let value = self.eval(p, &leaf.rhs, frame)?;
                self.stack.truncate(frame);
                Ok(value)
            }
            selected => {
                self.stack.truncate(frame + func.args as usize);
                let args: Vec<Value> = self.stack.drain(frame..).collect();
                self.no_rule(p, func, args, matches!(selected, Selected::Undecided))
            }
        }
    }

    /// Applies an operation once, ignoring its rules.
    fn apply_plain(&mut self, p: &Program, op: OpId, mut args: Vec<Value>) -> Outcome<Value> {
        match (&p.signature.op(op).kind, args.len()) {
            (OpKind::Projection(_) | OpKind::Recogniser(_), 1) => {
                let a = args.remove(0);
                Ok(self.select_part(p, op, a))
            }
            (OpKind::Builtin(b), 1) => {
                let b = *b;
                let a = args.remove(0);
                self.prim1(p, b, op, a)
            }
            (OpKind::Builtin(b), 2) => {
                let b = *b;
                let second = args.remove(1);
                let first = args.remove(0);
                self.prim2(p, b, op, first, second)
            }
            (OpKind::Builtin(b), 3) => {
                let b = *b;
                let third = args.remove(2);
                let second = args.remove(1);
                let first = args.remove(0);
                match b {
                    Builtin::If => self.if_plain(p, op, first, second, third),
                    Builtin::Update => self.update(p, op, first, second, third),
                    Builtin::BagInsert => self.bag_insert(p, op, first, second, third),
                    _ => Ok(Value::app(op, IMPURE, vec![first, second, third])),
                }
            }
            _ => Ok(Value::app(op, p.op(op).flags, args)),
        }
    }

    /// Applies an operation to all arguments of one or more applications.
    pub(crate) fn apply_op(&mut self, p: &Program, op: OpId, args: Vec<Value>) -> Outcome<Value> {
        let info = p.op(op);
        let first = info.levels.get(1).map_or(0, |&n| n as usize);
        if args.is_empty() {
            return match info.funcs[0] {
                Some(f) => self.call(p, f, args),
                None => Ok(self.constant(p, op)),
            };
        }
        if args.len() == first {
            if self.suspended > self.patience
                && info.funcs[1].is_some()
                && args.iter().any(Value::is_open)
            {
                return Ok(Value::app(op, IMPURE, args));
            }
            return match info.funcs[1] {
                Some(f) if !matches!(args[0], Value::Bool(_)) || op != p.sort(info.range).cond => {
                    self.call(p, f, args)
                }
                _ => self.apply_plain(p, op, args),
            };
        }
        let mut rest = args;
        let mut value = Value::Sym(op);
        let mut from = 0;
        for &to in &info.levels[1..] {
            if rest.is_empty() {
                break;
            }
            let group: Vec<Value> = rest.drain(..((to - from) as usize).min(rest.len())).collect();
            from = to;
            value = self.apply_value(p, value, group)?;
        }
        Ok(value)
    }

    /// Returns an operation without arguments as a value, ignoring its rules.
    pub(crate) fn constant(&self, p: &Program, op: OpId) -> Value {
        let info = p.op(op);
        match p.signature.op(op).kind {
            OpKind::Builtin(Builtin::True) => Value::Bool(true),
            OpKind::Builtin(Builtin::False) => Value::Bool(false),
            OpKind::Builtin(Builtin::EmptyList) => Value::Nil(info.range),
            OpKind::Builtin(Builtin::EmptySet) => Value::rich(Rich::Set(info.range, Rc::new([]))),
            OpKind::Builtin(Builtin::EmptyBag) => Value::rich(Rich::Bag(info.range, Rc::new([]))),
            _ if info.flags == 0 && info.levels.len() == 1 => Value::Con(op),
            _ => Value::Sym(op),
        }
    }

    /// Applies a function value once.
    pub(crate) fn apply_value(
        &mut self,
        p: &Program,
        function: Value,
        args: Vec<Value>,
    ) -> Outcome<Value> {
        if let Some(closure) = function.as_closure()
            && closure.lambda.binder == Binder::Lambda
        {
            let frame = self.stack.len();
            self.stack.extend(args);
            self.stack.extend(closure.captures.iter().cloned());
            return self.enter(p, &closure.lambda.body, frame);
        }
        if let Some(Rich::Table(_, base, entries)) = function.as_rich()
            && let [key] = &args[..]
        {
            let (base, entries) = (base.clone(), entries.clone());
            return self.lookup(p, function, base, &entries, key);
        }
        if let Some((op, first)) = function.as_app() {
            let info = p.op(op);
            let have = narrow::index(first.len());
            if let Some(level) = info.levels.iter().position(|&n| n == have)
                && let Some(&total) = info.levels.get(level + 1)
                && total as usize == first.len() + args.len()
            {
                if level == 0 {
                    return self.apply_op(p, op, args);
                }
                let all: Vec<Value> = first.iter().cloned().chain(args).collect();
                return match info.funcs[level + 1] {
                    Some(f) => self.call(p, f, all),
                    None if let Some(v) = self.apply_stuck(p, op, &all)? => Ok(v),
                    None => Ok(Value::app(op, info.flags, all)),
                };
            }
        }
        Ok(Value::rich(Rich::Apply(function, args.into())))
    }

    /// Moves an application inside an undecided `if` or function update.
    fn apply_stuck(&mut self, p: &Program, op: OpId, all: &[Value]) -> Outcome<Option<Value>> {
        match p.signature.op(op).kind {
            OpKind::Builtin(Builtin::If) => {
                let a = self.apply_value(p, all[1].clone(), all[3..].to_vec())?;
                let b = self.apply_value(p, all[2].clone(), all[3..].to_vec())?;
                let (_, range) = p.signature.domain_range(p.op(op).range);
                Ok(Some(self.if_value(p, p.sort(range).cond, all[0].clone(), a, b)?))
            }
            OpKind::Builtin(Builtin::Update) if all.len() == 4 => {
                let (domain, _) = p.signature.domain_range(p.op(op).range);
                let key_sort = domain[0];
                Ok(match self.equal(p, key_sort, &all[1], &all[3])? {
                    Value::Bool(true) => Some(all[2].clone()),
                    Value::Bool(false) => {
                        Some(self.apply_value(p, all[0].clone(), all[3..].to_vec())?)
                    }
                    _ => None,
                })
            }
            _ => Ok(None),
        }
    }

    /// Evaluates projections and recognisers.
    fn select_part(&mut self, p: &Program, op: OpId, a: Value) -> Value {
        if let Some((constructor, args)) = a.as_app() {
            match &p.signature.op(op).kind {
                OpKind::Projection(parts) => {
                    if let Some((_, i)) = parts.iter().find(|c| c.0 == constructor)
                        && let Some(part) = args.get(*i as usize)
                    {
                        return part.clone();
                    }
                }
                OpKind::Recogniser(constructors) => {
                    if matches!(p.signature.op(constructor).kind, OpKind::Constructor(_)) {
                        return Value::Bool(constructors.contains(&constructor));
                    }
                }
                _ => {}
            }
        }
        Value::app1(op, IMPURE, a)
    }
}

/// True if the head of a value is known: a literal, a constructor, a list cell, a set.
pub(crate) fn is_constructed(p: &Program, v: &Value) -> bool {
    match v {
        Value::Unknown(_) | Value::Sym(_) => false,
        Value::Bool(_) | Value::Int(_) | Value::Con(_) | Value::Nil(_) | Value::Cons(_) => true,
        Value::Rich(n) => {
            matches!(n.kind, Rich::Integer(_) | Rich::Rational(_) | Rich::Set(..) | Rich::Bag(..))
        }
        _ => v.as_app().is_some_and(|(op, _)| p.op(op).flags == 0),
    }
}
