//! Compilation of a typed model: instances of rules, start states and properties, and the tests of
//! their guards.
//!
//! Each combination of values of the parameters is an instance with code of its own, in which the
//! parameters are constants. A leading part of a guard that depends on one small field becomes a
//! [`FieldTest`], so that the search selects instances by tables (`crate::guards`). An instance
//! with a guard that is known to be false has no code. Cost: linear in the code of all instances.

use crate::code::{Bits, Fault, Field, FieldTest, Instance, Op, Parameter, Program};
use crate::layout::Shape;
use crate::lower::{Bound, Loc, Lower, Lowered};
use crate::lower_expr::calls;
use crate::typed::{Binary, Binding, Domain, Expr, ExprKind, Frame, LocalId, Model, Stmt};
use crate::walk;
use mu_base::{Diagnostic, Stage};

/// Most instances of a model.
const INSTANCES: usize = 1 << 18;
/// Most instructions of a model.
const CODE: usize = 1 << 24;
/// Most copies of an instance in the tables of guards.
const COPIES: u32 = 64;

/// Compiles a model.
///
/// # Errors
/// A type, the number of instances, or the code is too large.
pub fn compile(model: &Model) -> Result<Program, Diagnostic> {
    let mut lower = Lower::new(model)?;
    let mut rules = Vec::new();
    for (number, rule) in model.rules.iter().enumerate() {
        let part = Part {
            number: number as u32,
            frame: &rule.frame,
            bindings: &rule.bindings,
            condition: rule.guard.as_ref(),
            body: Some(&rule.body),
        };
        lower.instances(&part, &mut rules).map_err(|d| d.or_span(rule.whole))?;
    }
    let mut starts = Vec::new();
    for (number, start) in model.starts.iter().enumerate() {
        let part = Part {
            number: number as u32,
            frame: &start.frame,
            bindings: &start.bindings,
            condition: None,
            body: Some(&start.body),
        };
        lower.instances(&part, &mut starts).map_err(|d| d.or_span(start.whole))?;
    }
    let mut properties = Vec::new();
    for (number, property) in model.properties.iter().enumerate() {
        let part = Part {
            number: number as u32,
            frame: &property.frame,
            bindings: &property.bindings,
            condition: Some(&property.condition),
            body: None,
        };
        lower.instances(&part, &mut properties).map_err(|d| d.or_span(property.whole))?;
    }
    lower.finish(rules, starts, properties)
}

/// Rule, start state or property.
struct Part<'m> {
    number: u32,
    frame: &'m Frame,
    bindings: &'m [Binding],
    condition: Option<&'m Expr>,
    /// `None` for a property.
    body: Option<&'m [Stmt]>,
}

impl<'m> Lower<'m> {
    /// Adds all instances of a part.
    fn instances(&mut self, part: &Part<'m>, all: &mut Vec<Instance>) -> Lowered<()> {
        let mut domains: Vec<(LocalId, Vec<i64>)> = Vec::new();
        let mut total = 1usize;
        for binding in part.bindings {
            let (local, values) = match binding {
                Binding::Parameter { local, domain, .. } => (*local, self.parameter(domain)?),
                Binding::Choose { local, multiset, .. } => {
                    let Shape::Multiset { capacity, .. } = *self.layout.shape_of(multiset.ty)
                    else {
                        return Err(Diagnostic::internal("`choose` over no multiset"));
                    };
                    (*local, (0..i64::from(capacity)).collect())
                }
                Binding::Alias(_) => continue,
            };
            total = total.saturating_mul(values.len());
            if total.saturating_add(all.len()) > INSTANCES {
                return Err(too_many());
            }
            domains.push((local, values));
        }
        for at in 0..total {
            let mut rest = at;
            let mut parameters: Vec<Parameter> = Vec::new();
            for (local, values) in domains.iter().rev() {
                parameters.push((*local, values[rest % values.len()]));
                rest /= values.len();
            }
            parameters.reverse();
            if let Some(instance) = self.instance(part, parameters)? {
                all.push(instance);
            }
            if self.code.len() > CODE {
                return Err(too_many());
            }
        }
        Ok(())
    }
    /// Returns the values of a parameter.
    fn parameter(&self, domain: &Domain) -> Lowered<Vec<i64>> {
        let (from, to, by) = match domain {
            Domain::Type(ty) => {
                let simple = self.simple(*ty)?;
                let count = simple.parts.iter().fold(0, |n, p| n + p.1.abs_diff(p.0) as usize);
                if count > INSTANCES {
                    return Err(too_many());
                }
                return Ok(simple.parts.into_iter().flat_map(|p| p.0..=p.1).collect());
            }
            Domain::Range { from, to, by } => (from, to, by),
        };
        let constant = |e: &Expr| {
            self.constant(e).ok_or_else(|| {
                let text = "the bounds and the step of a ruleset must be constant";
                Diagnostic::at(Stage::Unsupported, e.span, text)
            })
        };
        let (from, to) = (constant(from)?, constant(to)?);
        let by = by.as_ref().map_or(Ok(1), constant)?;
        let mut all = Vec::new();
        let mut at = from;
        while by > 0 && at <= to || by < 0 && at >= to {
            all.push(at);
            if all.len() > INSTANCES {
                return Err(too_many());
            }
            let Some(next) = at.checked_add(by) else { break };
            at = next;
        }
        Ok(all)
    }
    /// Begins code of an instance: binds its parameters and aliases. With `tests`, conditions that
    /// the elements exist are tests if their places are constant; else they are code. Returns true
    /// if code was emitted.
    fn bind(
        &mut self,
        part: &Part<'m>,
        parameters: &[Parameter],
        no: Option<u32>,
        tests: &mut Vec<FieldTest>,
    ) -> Lowered<bool> {
        let start = self.code.len();
        let mut given = parameters.iter();
        for binding in part.bindings {
            match binding {
                Binding::Parameter { local, .. } => {
                    let value = given.next().map_or(0, |p| p.1);
                    self.scope.bound[local.index()] = Bound::Const(value);
                }
                Binding::Alias(alias) => self.alias(alias)?,
                Binding::Choose { local, multiset, .. } => {
                    let slot = given.next().map_or(0, |p| p.1);
                    self.scope.bound[local.index()] = Bound::Const(slot);
                    let spot = self.choose_place(multiset)?;
                    let Shape::Multiset { stride, .. } = *self.layout.shape_of(spot.ty) else {
                        return Err(Diagnostic::internal("`choose` over no multiset"));
                    };
                    let Loc::At(base, offset) = spot.loc else {
                        return Err(Diagnostic::internal("a multiset in a register"));
                    };
                    let at = Loc::At(base, offset + slot as u32 * stride);
                    let Some(no) = no else { continue };
                    match at {
                        Loc::At(None, offset) if self.code.len() == start => {
                            let field = Field { offset, width: 1 };
                            tests.push(FieldTest { field, accept: 0b10, fails: false });
                        }
                        _ => {
                            let a = self.register()?;
                            self.raw_to(a, at, 1)?;
                            self.emit(Op::JumpUnless { a, to: no });
                        }
                    }
                }
            }
        }
        Ok(self.code.len() > start)
    }
    /// Lowers one instance. `None` if it is never enabled.
    fn instance(
        &mut self,
        part: &Part<'m>,
        parameters: Vec<Parameter>,
    ) -> Lowered<Option<Instance>> {
        let mut tests = Vec::new();
        let mut conjuncts = Vec::new();
        if let Some(condition) = part.condition {
            flatten(condition, &mut conjuncts);
        }
        // The whole guard. Its tests of elements come first; without an element it is false.
        let guard = self.begin_unit(part.frame);
        let no = self.label();
        let open = self.bind(part, &parameters, Some(no), &mut tests)?;
        let elements = tests.len();
        // Conditions before which nothing is evaluated.
        let mut taken = 0;
        let mut never = false;
        let mut copies = 1;
        while !open && taken < conjuncts.len() && part.body.is_some() {
            match (self.constant(conjuncts[taken]), self.field_test(conjuncts[taken])) {
                (Some(0), _) if tests.len() == elements => return self.forget(guard),
                (Some(0), _) => {
                    never = true;
                    taken = conjuncts.len();
                    break;
                }
                (Some(_), _) => {}
                (None, Some(test)) if copies * test.accept.count_ones() <= COPIES => {
                    copies *= test.accept.count_ones();
                    tests.push(test);
                }
                (None, _) => break,
            }
            taken += 1;
        }
        if part.body.is_some() && part.condition.is_some_and(|c| self.constant(c) == Some(0)) {
            return self.forget(guard);
        }
        for test in &tests[..elements] {
            let a = self.register()?;
            let from = Bits::new(test.field.offset, test.field.width)
                .ok_or_else(|| Diagnostic::internal("a bit spans two words"))?;
            self.emit(Op::Raw { d: a, from });
            self.emit(Op::JumpUnless { a, to: no });
        }
        for conjunct in &conjuncts {
            self.branch(conjunct, false, no)?;
        }
        self.emit(Op::Yes);
        self.place_label(no);
        self.emit(Op::No);
        self.end_unit();
        // The part of the guard behind its tests.
        let rest = if never {
            let at = self.begin_unit(part.frame);
            self.emit(Op::No);
            self.end_unit();
            Some(at)
        } else if taken == conjuncts.len() && !open {
            None
        } else if taken == 0 && elements == 0 {
            Some(guard)
        } else {
            let at = self.begin_unit(part.frame);
            let no = self.label();
            self.bind(part, &parameters, Some(no), &mut Vec::new())?;
            for conjunct in &conjuncts[taken..] {
                self.branch(conjunct, false, no)?;
            }
            self.emit(Op::Yes);
            self.place_label(no);
            self.emit(Op::No);
            self.end_unit();
            Some(at)
        };
        let strict = match part.condition {
            Some(condition) if part.body.is_none() && self.is_order_free(part, condition) => {
                let at = self.begin_unit(part.frame);
                let no = self.label();
                self.strict = true;
                self.bind(part, &parameters, Some(no), &mut Vec::new())?;
                for conjunct in &conjuncts {
                    self.branch(conjunct, false, no)?;
                }
                self.strict = false;
                self.emit(Op::Yes);
                self.place_label(no);
                self.emit(Op::No);
                self.end_unit();
                Some(at)
            }
            _ => None,
        };
        let body = match part.body {
            None => guard,
            Some(statements) => {
                let body = self.begin_unit(part.frame);
                self.bind(part, &parameters, None, &mut Vec::new())?;
                let addressed = self.addressed_locals(statements);
                self.locals(0, &addressed)?;
                self.statements(statements)?;
                self.emit(Op::Done);
                self.end_unit();
                body
            }
        };
        let writes_in_guard = part.condition.is_some_and(calls)
            || part.bindings.iter().any(|b| !matches!(b, Binding::Parameter { .. }));
        Ok(Some(Instance {
            number: part.number,
            parameters,
            tests,
            rest,
            guard,
            strict,
            body,
            writes_in_guard,
        }))
    }
    /// True if a condition depends on the order of elements at most by failures: it has quantifiers
    /// over scalarsets, and nothing that writes or selects elements of multisets.
    fn is_order_free(&self, part: &Part<'m>, condition: &Expr) -> bool {
        let (mut quantifies, mut other) = (false, false);
        walk::expression(condition, &mut |inner| {
            if let walk::Part::Expr(e) = inner {
                match &e.kind {
                    ExprKind::Quantified { domain, .. } => {
                        quantifies |= self.is_over_elements(domain);
                    }
                    ExprKind::Call(..) | ExprKind::MultisetCount { .. } => other = true,
                    _ => {}
                }
            }
        });
        let chooses = part.bindings.iter().any(|b| matches!(b, Binding::Choose { .. }));
        quantifies && !other && !chooses
    }
    /// Drops the code of an instance that is never enabled.
    fn forget(&mut self, guard: u32) -> Lowered<Option<Instance>> {
        self.code.truncate(guard as usize);
        while self.sites.last().is_some_and(|s| s.0 >= guard) {
            self.sites.pop();
        }
        Ok(None)
    }
}

/// Divides a conjunction into its parts, in the order of evaluation.
fn flatten<'m>(e: &'m Expr, all: &mut Vec<&'m Expr>) {
    let mut open = vec![e];
    while let Some(e) = open.pop() {
        if let ExprKind::Binary(Binary::And, a, b) = &e.kind {
            open.extend([&**b, &**a]);
        } else {
            all.push(e);
        }
    }
}

fn too_many() -> Diagnostic {
    Diagnostic::new(Stage::Unsupported, "the model has too many instances of rules")
        .note(format!("at most {INSTANCES}, with {CODE} instructions"))
}

/// Returns the text of an error for people.
pub fn fault_text(model: &Model, fault: &Fault) -> String {
    match fault {
        Fault::Assertion(number) => match &model.claims[*number as usize].message {
            Some(message) => format!("assertion \"{message}\" is false"),
            None => "the assertion is false".into(),
        },
        Fault::Error(message) => format!("error \"{message}\""),
        Fault::Undefined => "an undefined value is read".into(),
        Fault::OutOfRange(ty) => format!("a value outside of `{ty}` is assigned"),
        Fault::Index(ty) => format!("an index outside of `{ty}`"),
        Fault::Arithmetic => {
            "a division by zero, or a result that is not between -(2^63 - 1) and 2^63 - 1".into()
        }
        Fault::Full => "the multiset is full".into(),
        Fault::NoElement => "the multiset has no such element".into(),
        Fault::NoReturn(name) => format!("function `{name}` ends without `return`"),
        Fault::Step => "the step of a loop is zero".into(),
        Fault::Depth => "calls are nested deeper than the limit of this tool".into(),
    }
}
