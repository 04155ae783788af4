//! Flow analysis of numbers: numbers that may occur together in a comparison, an assignment or a
//! parameter belong to one *class*, by unification.
//!
//! Input: data specification, linear process, formula. Output: for each variable, argument of an
//! action and argument of a constructor a [`FlowSort`], which is its sort with a class for each
//! number; for each class, the uses of its members. A class is one of *counters* if it contains a
//! symbolic constant. The only permitted operations on counters are those of
//! `Flow::builtin`: copy, compare, add a literal. Any other use marks the class with its position,
//! and a marked class of counters is rejected. Equations are typed once, without polymorphism
//! (Milner 1978, with one instance of each mapping); built-in operations are typed anew at each
//! use.
//!
//! A constant that one equation defines as a literal is treated as that literal. All literals of
//! equations are stored with their equation, so that [`Flow::reachable_literals`] returns those
//! that the evaluation of an operation may use.
//!
//! Cost: about linear. Invariant: if no counter is marked, then evaluation commutes with every
//! change of the counters in a term that preserves the truth of all their comparisons, with offsets
//! up to [`Flow::growth`] (in [`crate::growth`]); docs/regions.md contains the proof.

use ahash::{AHashMap, AHashSet};
use mu_base::ids::{ActId, OpId, SortId, VarId};
use mu_base::{Diagnostic, Span, Stage};
use mu_data::expr::{Binder, DataSpec, Expr, ExprKind};
use mu_data::signature::{Builtin, OpKind, Signature};
use mu_data::sort::{SortKind, basic};
use mu_process::labels::ActionDecl;
use mu_process::linear::LinearProcess;
use num_bigint::BigInt;
use num_traits::ToPrimitive;
use std::collections::BTreeSet;
use std::rc::Rc;

mu_base::id_types! {
    /// A class of numbers: an index into the union-find table.
    pub NumberClass,
}

/// A sort with the classes of its numbers.
#[derive(Clone, Debug)]
pub enum FlowSort {
    /// A number.
    Number(NumberClass),
    /// Bool, or a declared sort: the arguments of its constructors have types of their own.
    Named(SortId),
    /// `List`.
    List(Rc<FlowSort>),
    /// `FSet`, `Set`.
    Set(Rc<FlowSort>),
    /// `FBag`, `Bag`.
    Bag(Rc<FlowSort>),
    /// A function.
    Function(Rc<[FlowSort]>, Rc<FlowSort>),
}

/// Facts about a class.
#[derive(Clone, Debug, Default)]
struct ClassFacts {
    /// True if it contains a symbolic constant.
    counter: bool,
    /// An operation that is not permitted on counters, with its position.
    mark: Option<(Span, String)>,
    literals: Vec<Literal>,
}

/// A literal of a class.
#[derive(Clone, Debug)]
struct Literal {
    value: BigInt,
    /// The equation that contains it; `None`: the process or the formula.
    equation: Option<usize>,
    span: Span,
}

/// Equations by the operation that they define.
#[derive(Debug, Default)]
struct Calls {
    /// Those of a mapping.
    by_head: AHashMap<OpId, Vec<usize>>,
    /// Those of a constructor, a built-in operation or a variable, which may be used anywhere.
    anywhere: Vec<usize>,
}

/// The flow analysis.
pub struct Flow<'a> {
    pub(crate) signature: &'a Signature,
    pub(crate) data: &'a DataSpec,
    parents: Vec<NumberClass>,
    facts: Vec<ClassFacts>,
    pub(crate) vars: AHashMap<VarId, FlowSort>,
    /// Types of user operations, constructors included.
    ops: AHashMap<OpId, FlowSort>,
    acts: Vec<Vec<FlowSort>>,
    /// Symbolic constants.
    symbolic_constants: AHashSet<OpId>,
    /// Largest offset that the equations of a mapping add to a counter; `None`: unbounded.
    pub(crate) growth_of_mapping: AHashMap<OpId, i64>,
    /// For each equation, the types of its variables. Equations of one block share variables
    /// without a common meaning.
    pub(crate) equation_var_types: Vec<Vec<(VarId, FlowSort)>>,
    /// Operations that may use a symbolic constant in their evaluation.
    uses_symbolic: AHashSet<OpId>,
    /// Constants that one equation defines as a literal.
    constants: AHashMap<OpId, i64>,
    calls: Calls,
    /// Literals of counters that the evaluation of an operation may use.
    reachable_literals: AHashMap<OpId, Rc<[i64]>>,
    /// The expressions of the process and of the formula.
    pub(crate) roots: Vec<Expr>,
    /// The current equation.
    equation: Option<usize>,
}

impl<'a> Flow<'a> {
    /// Analyses the equations of a data specification; processes and formulas are added later.
    /// `symbolic_constants`: see the module header.
    pub fn new(data: &'a DataSpec, actions: &[ActionDecl], symbolic_constants: &[OpId]) -> Self {
        let signature = &data.signature;
        let mut flow = Self {
            signature,
            data,
            parents: Vec::new(),
            facts: Vec::new(),
            vars: AHashMap::new(),
            ops: AHashMap::new(),
            acts: Vec::new(),
            symbolic_constants: symbolic_constants.iter().copied().collect(),
            growth_of_mapping: AHashMap::new(),
            equation_var_types: Vec::new(),
            uses_symbolic: symbolic_constants.iter().copied().collect(),
            constants: AHashMap::new(),
            calls: Calls::default(),
            reachable_literals: AHashMap::new(),
            roots: Vec::new(),
            equation: None,
        };
        for (i, equation) in data.equations.iter().enumerate() {
            let head =
                equation.lhs.head().filter(|op| matches!(signature.op(*op).kind, OpKind::Mapping));
            head.map_or(&mut flow.calls.anywhere, |op| flow.calls.by_head.entry(op).or_default())
                .push(i);
        }
        flow.find_literal_constants();
        for action in actions {
            let types = action.sorts.iter().map(|s| flow.fresh(*s)).collect();
            flow.acts.push(types);
        }
        for (i, equation) in data.equations.iter().enumerate() {
            flow.equation = Some(i);
            flow.analyse_equation(equation);
            let own = equation
                .vars
                .iter()
                .filter_map(|v| flow.vars.remove(v).map(|ty| (*v, ty)))
                .collect();
            flow.equation_var_types.push(own);
        }
        flow.equation = None;
        loop {
            let before = flow.uses_symbolic.len();
            for equation in &data.equations {
                let mut found = false;
                let mut see = |op| found |= flow.uses_symbolic.contains(&op);
                for e in [&equation.lhs, &equation.rhs].into_iter().chain(&equation.condition) {
                    e.each_op(&mut see);
                }
                if found {
                    flow.uses_symbolic.extend(equation.lhs.head());
                }
            }
            if flow.uses_symbolic.len() == before {
                return flow;
            }
        }
    }

    /// Finds the constants that one equation defines as a literal.
    fn find_literal_constants(&mut self) {
        loop {
            let before = self.constants.len();
            for (op, list) in &self.calls.by_head {
                let [i] = list[..] else { continue };
                let equation = &self.data.equations[i];
                if matches!(equation.lhs.kind, ExprKind::Op(_))
                    && equation.condition.is_none()
                    && !self.symbolic_constants.contains(op)
                    && let Some(n) = self.literal(&equation.rhs)
                {
                    self.constants.insert(*op, n);
                }
            }
            if self.constants.len() == before {
                return;
            }
        }
    }

    /// Returns the definition of a constant, if a single unconditional equation defines it and does
    /// not use it.
    pub(crate) fn definition(&self, op: OpId) -> Option<&'a Expr> {
        let [i] = self.calls.by_head.get(&op)?[..] else { return None };
        let (data, mut used) = (self.data, Vec::new());
        let equation = &data.equations[i];
        equation.rhs.each_op(&mut |op| used.push(op));
        let plain = matches!(equation.lhs.kind, ExprKind::Op(_)) && equation.condition.is_none();
        (plain && !self.reachable(used).contains(&i)).then_some(&equation.rhs)
    }

    /// Returns the equations that the evaluation of these operations may use.
    pub(crate) fn reachable(&self, from: impl IntoIterator<Item = OpId>) -> BTreeSet<usize> {
        let (mut seen, mut found): (AHashSet<OpId>, BTreeSet<usize>) =
            (AHashSet::new(), BTreeSet::new());
        let mut open: Vec<OpId> = from.into_iter().collect();
        let mut more: Vec<usize> = self.calls.anywhere.clone();
        loop {
            for i in more.drain(..) {
                if found.insert(i) {
                    let equation = &self.data.equations[i];
                    for e in [&equation.lhs, &equation.rhs].into_iter().chain(&equation.condition) {
                        e.each_op(&mut |op| open.push(op));
                    }
                }
            }
            let Some(op) = open.pop() else { return found };
            if seen.insert(op) {
                more.extend(self.calls.by_head.get(&op).into_iter().flatten());
            }
        }
    }

    /// Returns the literals of counters in the equations that the evaluation of an operation may
    /// use.
    pub fn reachable_literals(&mut self, op: OpId) -> Rc<[i64]> {
        if let Some(known) = self.reachable_literals.get(&op) {
            return known.clone();
        }
        let equations = self.reachable([op]);
        let found = self.facts.iter().filter(|f| f.counter).flat_map(|f| &f.literals);
        let found = found.filter(|l| l.equation.is_some_and(|e| equations.contains(&e)));
        let mut all: Vec<i64> = found.filter_map(|l| l.value.to_i64()).collect();
        all.sort_unstable();
        all.dedup();
        let all: Rc<[i64]> = all.into();
        self.reachable_literals.insert(op, all.clone());
        all
    }

    /// Adds an expression of the formula, or an initial value.
    pub fn add_root(&mut self, e: &Expr) -> FlowSort {
        self.roots.push(e.clone());
        self.infer(e)
    }

    /// True if the evaluation of an expression may use a symbolic constant.
    pub fn uses_symbolic(&self, e: &Expr) -> bool {
        let mut found = false;
        e.each_op(&mut |op| found |= self.uses_symbolic.contains(&op));
        found
    }

    /// True if an operation is a symbolic parameter, or is defined through one.
    pub fn is_symbolic(&self, op: OpId) -> bool {
        self.uses_symbolic.contains(&op)
    }

    /// Infers the types of an equation, and marks the numbers that its pattern decomposes.
    fn analyse_equation(&mut self, equation: &mu_data::expr::Equation) {
        let left = self.infer(&equation.lhs);
        let right = self.infer(&equation.rhs);
        self.unify(&left, &right);
        if let Some(condition) = &equation.condition {
            self.infer(condition);
        }
        let pattern_of = |e: &Expr| match &e.kind {
            ExprKind::Apply(_, args) => args.clone(),
            _ => Vec::new(),
        };
        let has_fixed_head = equation
            .lhs
            .head()
            .is_none_or(|op| !matches!(self.signature.op(op).kind, OpKind::Mapping));
        for pattern in pattern_of(&equation.lhs) {
            if has_fixed_head {
                let ty = self.infer(&pattern);
                self.mark(
                    &ty,
                    equation.span,
                    "occurs in an equation of a constructor or of a built-in operation",
                );
            }
            self.pattern(&pattern, equation.span);
        }
    }

    /// Marks numbers that patterns decompose, which is not a comparison.
    fn pattern(&mut self, e: &Expr, span: Span) {
        let mut open = vec![e.clone()];
        while let Some(e) = open.pop() {
            if let ExprKind::Apply(_, args) = &e.kind {
                if self.is_number(e.sort) {
                    let ty = self.infer(&e);
                    self.mark(&ty, span, "is decomposed by a pattern of an equation");
                }
                open.extend(args.iter().cloned());
            }
        }
    }

    /// Adds the parameters and summands of a process. `symbolic_params`: its parameters that
    /// represent symbolic constants.
    pub fn add_process(&mut self, process: &LinearProcess, symbolic_params: &[VarId]) {
        for param in &process.params {
            let ty = self.type_of_var(param.var);
            let init = self.add_root(&param.init);
            self.unify(&ty, &init);
            if symbolic_params.contains(&param.var)
                && let FlowSort::Number(class) = ty
            {
                let class = self.find(class);
                self.facts[class.index()].counter = true;
            }
        }
        for summand in &process.summands {
            self.add_root(&summand.guard);
            for act in &summand.actions {
                self.add_action(act.action, &act.args);
            }
            for (p, e) in &summand.updates {
                let (ty, new) = (self.type_of_var(process.params[*p].var), self.add_root(e));
                self.unify(&ty, &new);
            }
        }
    }

    /// Adds an action with its arguments.
    pub fn add_action(&mut self, action: ActId, args: &[Expr]) {
        for (i, e) in args.iter().enumerate() {
            let ty = self.add_root(e);
            if let Some(known) = self.acts.get(action.index()).and_then(|a| a.get(i)).cloned() {
                self.unify(&known, &ty);
            }
        }
    }

    /// Returns the type of an action's argument. `None` if the action has no such argument.
    pub fn argument(&self, action: ActId, index: usize) -> Option<&FlowSort> {
        self.acts.get(action.index())?.get(index)
    }

    /// Returns the type of a variable.
    pub fn type_of_var(&mut self, var: VarId) -> FlowSort {
        if let Some(ty) = self.vars.get(&var) {
            return ty.clone();
        }
        let declared = self.signature.var(var);
        let ty = self.fresh_at(declared.sort, declared.span);
        self.vars.insert(var, ty.clone());
        ty
    }

    /// True if a sort is one of numbers.
    pub fn is_number(&self, sort: SortId) -> bool {
        matches!(
            self.signature.sorts.kind(sort),
            SortKind::Pos | SortKind::Nat | SortKind::Int | SortKind::Real
        )
    }

    fn class(&mut self) -> NumberClass {
        let class = NumberClass::new(self.parents.len());
        self.parents.push(class);
        self.facts.push(ClassFacts::default());
        class
    }

    pub(crate) fn find(&self, class: NumberClass) -> NumberClass {
        let mut at = class;
        while self.parents[at.index()] != at {
            at = self.parents[at.index()];
        }
        at
    }

    /// Returns the number of classes, counting unified ones separately.
    pub(crate) fn class_count(&self) -> usize {
        self.parents.len()
    }

    /// Returns the type of a sort with new classes.
    pub fn fresh(&mut self, sort: SortId) -> FlowSort {
        self.fresh_at(sort, Span::default())
    }

    fn fresh_at(&mut self, sort: SortId, span: Span) -> FlowSort {
        match self.signature.sorts.kind(sort) {
            SortKind::Pos | SortKind::Nat | SortKind::Int => FlowSort::Number(self.class()),
            SortKind::Real => {
                let ty = FlowSort::Number(self.class());
                self.mark(&ty, span, "is a real number here");
                ty
            }
            SortKind::Bool | SortKind::Named(_) => FlowSort::Named(sort),
            SortKind::List(s) => FlowSort::List(Rc::new(self.fresh_at(*s, span))),
            SortKind::Set(s) | SortKind::FSet(s) => FlowSort::Set(Rc::new(self.fresh_at(*s, span))),
            SortKind::Bag(s) | SortKind::FBag(s) => FlowSort::Bag(Rc::new(self.fresh_at(*s, span))),
            SortKind::Function(from, to) => {
                let from = from.iter().map(|s| self.fresh_at(*s, span)).collect();
                FlowSort::Function(from, Rc::new(self.fresh_at(*to, span)))
            }
        }
    }

    /// Unifies two types of one sort.
    pub fn unify(&mut self, a: &FlowSort, b: &FlowSort) {
        match (a, b) {
            (FlowSort::Number(a), FlowSort::Number(b)) => {
                let (a, b) = (self.find(*a), self.find(*b));
                // The older class is the representative, as `Flow::may_be_counter` of
                // `crate::growth` requires.
                let (a, b) = (a.min(b), a.max(b));
                if a != b {
                    self.parents[b.index()] = a;
                    let facts = std::mem::take(&mut self.facts[b.index()]);
                    let merged_facts = &mut self.facts[a.index()];
                    merged_facts.counter |= facts.counter;
                    merged_facts.mark = merged_facts.mark.take().or(facts.mark);
                    merged_facts.literals.extend(facts.literals);
                }
            }
            (FlowSort::List(a), FlowSort::List(b))
            | (FlowSort::Set(a), FlowSort::Set(b))
            | (FlowSort::Bag(a), FlowSort::Bag(b)) => self.unify(a, b),
            (FlowSort::Function(from, to), FlowSort::Function(from2, to2)) => {
                from.iter().zip(from2.iter()).for_each(|(a, b)| self.unify(a, b));
                self.unify(to, to2);
            }
            _ => {}
        }
    }

    /// Marks the numbers of a type with an operation that is not permitted on counters. `what`: a
    /// predicate, for a message that begins with "a number".
    fn mark(&mut self, ty: &FlowSort, span: Span, what: &str) {
        let mut seen = AHashSet::new();
        let mut classes = Vec::new();
        self.classes(ty, &mut seen, &mut classes);
        for class in classes {
            let class = self.find(class);
            self.facts[class.index()].mark.get_or_insert_with(|| (span, what.to_string()));
        }
    }

    /// Collects all classes of a type, including those in the arguments of its constructors.
    fn classes(&mut self, ty: &FlowSort, seen: &mut AHashSet<SortId>, out: &mut Vec<NumberClass>) {
        match ty {
            FlowSort::Number(class) => out.push(*class),
            FlowSort::Named(sort) => {
                if seen.insert(*sort) {
                    let list = self
                        .signature
                        .sorts
                        .declared_sort(*sort)
                        .map(|n| n.constructors.clone())
                        .unwrap_or_default();
                    for constructor in list {
                        if let FlowSort::Function(args, _) = self.type_of_op(constructor) {
                            args.iter().for_each(|a| self.classes(a, seen, out));
                        }
                    }
                }
            }
            FlowSort::List(e) | FlowSort::Set(e) | FlowSort::Bag(e) => self.classes(e, seen, out),
            FlowSort::Function(from, to) => {
                from.iter().for_each(|a| self.classes(a, seen, out));
                self.classes(to, seen, out);
            }
        }
    }

    /// Returns the type of a user operation.
    pub fn type_of_op(&mut self, op: OpId) -> FlowSort {
        if let Some(ty) = self.ops.get(&op) {
            return ty.clone();
        }
        let ty = self.fresh(self.signature.op(op).sort);
        if self.symbolic_constants.contains(&op)
            && let FlowSort::Number(class) = ty
        {
            self.facts[class.index()].counter = true;
        }
        self.ops.insert(op, ty.clone());
        ty
    }

    /// Infers the type of an expression and all its parts.
    pub fn infer(&mut self, e: &Expr) -> FlowSort {
        if !matches!(e.kind, ExprKind::Number(_))
            && let Some(n) = self.literal(e)
        {
            let class = self.class();
            self.facts[class.index()].literals.push(Literal {
                value: n.into(),
                equation: self.equation,
                span: e.span,
            });
            return FlowSort::Number(class);
        }
        stacker::maybe_grow(128 << 10, 4 << 20, || match &e.kind {
            ExprKind::Var(v) => self.type_of_var(*v),
            ExprKind::Number(n) => {
                let class = self.class();
                self.facts[class.index()].literals.push(Literal {
                    value: n.clone(),
                    equation: self.equation,
                    span: e.span,
                });
                if e.sort == basic::REAL {
                    self.mark(&FlowSort::Number(class), e.span, "is a real number here");
                }
                FlowSort::Number(class)
            }
            ExprKind::Op(op) => match self.signature.op(*op).kind {
                OpKind::Builtin(b) => self.builtin(b, &[], e),
                OpKind::Constructor(_) | OpKind::Mapping => self.type_of_op(*op),
                OpKind::Projection(_) | OpKind::Recogniser(_) => {
                    let ty = self.fresh(e.sort);
                    self.mark(&ty, e.span, "is in a projection that is used as a value here");
                    ty
                }
            },
            ExprKind::Apply(head, args) => self.apply(head, args, e),
            ExprKind::Bind(binder, vars, body) => {
                let types: Rc<[FlowSort]> = vars.iter().map(|v| self.type_of_var(*v)).collect();
                let inner = self.infer(body);
                match binder {
                    Binder::Lambda => FlowSort::Function(types, Rc::new(inner)),
                    Binder::Forall | Binder::Exists => {
                        types
                            .iter()
                            .for_each(|t| self.mark(t, e.span, "is bound by a quantifier here"));
                        FlowSort::Named(basic::BOOL)
                    }
                    Binder::SetComprehension | Binder::BagComprehension => {
                        let element = types[0].clone();
                        self.mark(&element, e.span, "is bound by a comprehension here");
                        self.mark(&inner, e.span, "is a number of copies in a comprehension here");
                        if *binder == Binder::SetComprehension {
                            FlowSort::Set(Rc::new(element))
                        } else {
                            FlowSort::Bag(Rc::new(element))
                        }
                    }
                }
            }
            ExprKind::Where(body, definitions) => {
                for (v, d) in definitions {
                    let (var, ty) = (self.type_of_var(*v), self.infer(d));
                    self.unify(&var, &ty);
                }
                self.infer(body)
            }
        })
    }

    fn apply(&mut self, head: &Expr, args: &[Expr], e: &Expr) -> FlowSort {
        if let ExprKind::Op(op) = head.kind {
            match self.signature.op(op).kind.clone() {
                OpKind::Builtin(b) => return self.builtin(b, args, e),
                OpKind::Projection(of) => {
                    self.infer(&args[0]);
                    let result = self.fresh(e.sort);
                    for (constructor, index) in of {
                        if let FlowSort::Function(parts, _) = self.type_of_op(constructor)
                            && let Some(part) = parts.get(index as usize)
                        {
                            self.unify(&result, part);
                        }
                    }
                    return result;
                }
                OpKind::Recogniser(_) => {
                    self.infer(&args[0]);
                    return FlowSort::Named(basic::BOOL);
                }
                OpKind::Constructor(_) | OpKind::Mapping => {}
            }
        }
        let function = self.infer(head);
        let given: Vec<FlowSort> = args.iter().map(|a| self.infer(a)).collect();
        match function {
            FlowSort::Function(from, to) => {
                from.iter().zip(&given).for_each(|(a, b)| self.unify(a, b));
                (*to).clone()
            }
            other => other,
        }
    }

    /// Applies the typing rule of a built-in operation: permitted uses, and marks for others.
    fn builtin(&mut self, builtin: Builtin, args: &[Expr], e: &Expr) -> FlowSort {
        use Builtin::*;
        let types: Vec<FlowSort> = args.iter().map(|a| self.infer(a)).collect();
        let collection =
            |t: Option<&FlowSort>| matches!(t, Some(FlowSort::Set(_) | FlowSort::Bag(_)));
        match (builtin, &types[..]) {
            (Equal | NotEqual, [a, b]) => {
                self.unify_compared(a, b, e.span);
                FlowSort::Named(basic::BOOL)
            }
            (Less | LessEqual | Greater | GreaterEqual, [a, b]) => {
                self.unify(a, b);
                if !matches!(a, FlowSort::Number(_)) {
                    self.mark(a, e.span, "is in data that are compared by an order here");
                }
                FlowSort::Named(basic::BOOL)
            }
            (If, [_, a, b]) => {
                self.unify(a, b);
                a.clone()
            }
            (Max | Min, [a, b]) => {
                self.unify(a, b);
                a.clone()
            }
            (PosToNat | PosToInt | NatToInt, [a]) => a.clone(),
            (Add, [a, b]) if !collection(types.first()) => {
                match (self.literal(&args[0]), self.literal(&args[1])) {
                    (_, Some(_)) => a.clone(),
                    (Some(_), _) => b.clone(),
                    _ => self.mark_operands(&types, e, "is added to another number here"),
                }
            }
            (Succ, [a]) => a.clone(),
            (EmptyList | EmptySet | EmptyBag | True | False, _) => self.fresh(e.sort),
            (Not | And | Or | Implies, _) => FlowSort::Named(basic::BOOL),
            (Cons, [a, FlowSort::List(b)]) | (Snoc, [FlowSort::List(b), a]) => {
                self.unify(a, b);
                FlowSort::List(b.clone())
            }
            (Concat, [a, b]) => {
                self.unify(a, b);
                a.clone()
            }
            (At, [FlowSort::List(a), index]) => {
                self.mark(index, e.span, "is a position in a list here");
                (**a).clone()
            }
            (Head | RHead, [FlowSort::List(a)]) => (**a).clone(),
            (Tail | RTail, [a]) => a.clone(),
            (Size, [_]) => {
                let result = self.fresh(e.sort);
                self.mark(&result, e.span, "is a size here");
                result
            }
            (In, [a, FlowSort::List(b) | FlowSort::Set(b) | FlowSort::Bag(b)]) => {
                self.unify_compared(a, b, e.span);
                FlowSort::Named(basic::BOOL)
            }
            (Count, [a, FlowSort::Bag(b)]) => {
                self.unify_compared(a, b, e.span);
                let result = self.fresh(e.sort);
                self.mark(&result, e.span, "is a number of copies here");
                result
            }
            (SetInsert, [a, FlowSort::Set(b)]) => {
                self.unify_compared(a, b, e.span);
                types[1].clone()
            }
            (BagInsert, [a, n, FlowSort::Bag(b)]) => {
                self.unify_compared(a, b, e.span);
                self.mark(n, e.span, "is a number of copies here");
                types[2].clone()
            }
            (Union | Difference | Intersection | Add | Subtract | Multiply, [a, b])
                if collection(Some(a)) =>
            {
                self.unify(a, b);
                a.clone()
            }
            (FSetToSet | FBagToBag, [a]) => a.clone(),
            (Update, [FlowSort::Function(from, to), key, value]) => {
                if let Some(own) = from.first() {
                    self.unify(own, key);
                }
                self.unify(to, value);
                types[0].clone()
            }
            _ => self.mark_operands(&types, e, &format!("is given to `{}` here", builtin.name())),
        }
    }

    /// Unifies the types of values that are compared.
    fn unify_compared(&mut self, a: &FlowSort, b: &FlowSort, span: Span) {
        self.unify(a, b);
        self.mark_compared_functions(a, span);
    }

    /// Marks the numbers in functions of data that are compared.
    fn mark_compared_functions(&mut self, ty: &FlowSort, span: Span) {
        if self.has_function(ty, &mut AHashSet::new()) {
            self.mark(ty, span, "is in a function that is compared here");
        }
    }

    /// Marks the arguments of an operation that is not permitted on counters.
    fn mark_operands(&mut self, types: &[FlowSort], e: &Expr, what: &str) -> FlowSort {
        types.iter().for_each(|t| self.mark(t, e.span, what));
        let result = self.fresh(e.sort);
        self.mark(&result, e.span, what);
        result
    }

    /// Returns the value of a non-negative literal, of a constant that is defined as one, or of a
    /// sum of such. `None` for any other expression, and for a literal of 2^20 or more.
    pub fn literal(&self, e: &Expr) -> Option<i64> {
        stacker::maybe_grow(64 << 10, 1 << 20, || match &e.kind {
            ExprKind::Number(n) => n.to_i64().filter(|n| (0..1 << 20).contains(n)),
            ExprKind::Op(op) => self.constants.get(op).copied(),
            _ => match e.as_builtin(self.signature)? {
                (Builtin::PosToNat | Builtin::PosToInt | Builtin::NatToInt, [inner]) => {
                    self.literal(inner)
                }
                (Builtin::Succ, [a]) => self.literal(a).map(|n| n + 1),
                (Builtin::Add, [a, b]) if self.is_number(e.sort) => {
                    Some(self.literal(a)? + self.literal(b)?)
                }
                _ => None,
            },
        })
    }

    /// True if values of a type contain functions.
    fn has_function(&mut self, ty: &FlowSort, seen: &mut AHashSet<SortId>) -> bool {
        match ty {
            FlowSort::Number(_) => false,
            FlowSort::Function(..) => true,
            FlowSort::List(e) | FlowSort::Set(e) | FlowSort::Bag(e) => self.has_function(e, seen),
            FlowSort::Named(sort) => {
                if !seen.insert(*sort) {
                    return false;
                }
                let list = self
                    .signature
                    .sorts
                    .declared_sort(*sort)
                    .map(|n| n.constructors.clone())
                    .unwrap_or_default();
                list.into_iter().any(|constructor| match self.type_of_op(constructor) {
                    FlowSort::Function(args, _) => args.iter().any(|a| self.has_function(a, seen)),
                    _ => false,
                })
            }
        }
    }

    /// True if the members of a class are counters.
    pub fn is_counter(&self, class: NumberClass) -> bool {
        self.facts[self.find(class).index()].counter
    }

    /// True if a class has a use that is not permitted on counters.
    pub(crate) fn is_marked(&self, class: NumberClass) -> bool {
        self.facts[self.find(class).index()].mark.is_some()
    }

    /// True if a type contains counters.
    pub fn has_counter(&mut self, ty: &FlowSort) -> bool {
        let (mut seen, mut classes) = (AHashSet::new(), Vec::new());
        self.classes(ty, &mut seen, &mut classes);
        classes.into_iter().any(|c| self.is_counter(c))
    }

    /// Returns the literals that occur among the counters.
    pub fn literals(&self) -> Vec<i64> {
        let found = self.facts.iter().filter(|f| f.counter).flat_map(|f| &f.literals);
        let mut all: Vec<i64> = found.filter_map(|l| l.value.to_i64()).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Rejects counters with a use that is not permitted, with its description and position, and
    /// computes the growth of mappings.
    pub fn verify(&mut self) -> Result<(), Diagnostic> {
        for facts in self.facts.iter().filter(|f| f.counter) {
            if let Some((span, what)) = &facts.mark {
                let text = format!("a number that flows together with a symbolic parameter {what}");
                let note = "such numbers may be copied, compared, and increased by literals";
                return Err(Diagnostic::new(Stage::Unsupported, text).or_span(*span).note(note));
            }
            if let Some(literal) = facts
                .literals
                .iter()
                .find(|l| l.value.to_i64().is_none_or(|n| !(0..1000).contains(&n)))
            {
                let text =
                    "a literal that is compared with a symbolic parameter is not between 0 and 999";
                return Err(Diagnostic::new(Stage::Unsupported, text).or_span(literal.span));
            }
        }
        self.compute_growth()
    }
}
