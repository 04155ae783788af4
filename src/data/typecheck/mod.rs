//! Type checking of data: syntax trees -> typed expressions, declarations -> signature and
//! equations.
//!
//! Sorts are inferred in two passes over an expression: bottom-up sets of candidate types
//! (`infer`), then top-down elaboration at the type that the context requires (`elaborate`), which
//! makes every implicit coercion a node. There is no backtracking: the cost is linear in the
//! expression for a bounded number of overloads, so chains of ten thousand operators and literals
//! of a hundred thousand elements are feasible. If two readings need the same least number of
//! coercions, the expression is rejected as ambiguous.
//!
//! Names resolve to the innermost variable, then to user operations and built-ins together, by
//! argument sorts.
//!
//! Invariant: ids of sorts, operations and variables that the data specification had before do not
//! change.

mod builtins;
mod declare;
mod elaborate;
mod infer;
#[cfg(test)]
mod tests;
mod types;

use super::expr::{DataSpec, Expr};
use super::signature::OpKind;
use super::sort::basic;
use ahash::AHashMap;
pub(crate) use infer::{Inference, SubtermId};
use mu_base::ids::{OpId, SortId, VarId};
use mu_base::similar::similar_names;
use mu_base::{Diagnostic, Span, Stage};
use mu_syntax::ast;
use types::Types;

/// Type checks an expression over a data specification (labels, simulator input), at sort
/// `expected` if given. Adds the built-in operations and variables that the expression needs to the
/// specification.
pub fn check_expression(
    data: &ast::Data,
    spec: &mut DataSpec,
    expected: Option<SortId>,
) -> Result<Expr, Diagnostic> {
    check_expression_with(data, spec, &[], expected)
}

/// Checks as [`check_expression`], with variables in scope (the last one of a name counts).
pub fn check_expression_with(
    data: &ast::Data,
    spec: &mut DataSpec,
    scope: &[VarId],
    expected: Option<SortId>,
) -> Result<Expr, Diagnostic> {
    let mut checker = Checker::new(std::mem::take(spec));
    for &var in scope {
        let name = checker.data.signature.var(var).name.clone();
        checker.bind(&name, var);
    }
    let result = checker.check(data, expected);
    *spec = checker.data;
    result
}

/// Type checks the data of a specification and its global variables; actions, processes and `init`
/// are ignored. Errors: those of declarations and equations, with their places.
pub fn check_data_specification(
    specification: &ast::Specification,
) -> Result<(DataSpec, Vec<VarId>), Diagnostic> {
    let mut checker = Checker::new(DataSpec::default());
    checker.declare(&specification.sections)?;
    let globals = checker.declare_globals(&specification.sections)?;
    // Equations cannot use global variables.
    checker.close_scope(0, "glob", Span::default());
    checker.check_equations(&specification.sections)?;
    Ok((checker.data, globals))
}

/// Creates a type error.
pub fn error(span: Span, message: impl Into<String>) -> Diagnostic {
    Diagnostic::at(Stage::Type, span, message)
}

/// Binder that is out of scope, for messages.
struct ClosedBinder {
    word: &'static str,
    span: Span,
}

/// Data specification under construction with the tables of its names.
pub struct Checker {
    /// The data specification.
    pub data: DataSpec,
    types: Types,
    ops: AHashMap<String, Vec<OpId>>,
    sorts: AHashMap<String, SortId>,
    structs: AHashMap<declare::StructKey, SortId>,
    scope: AHashMap<String, Vec<VarId>>,
    stack: Vec<String>,
    closed: AHashMap<String, ClosedBinder>,
    /// True if declarations may repeat existing ones (a formula file that repeats its model's).
    extending: bool,
}

impl Checker {
    /// Recovers the tables of names from a data specification.
    pub fn new(data: DataSpec) -> Self {
        let mut ops: AHashMap<String, Vec<OpId>> = AHashMap::new();
        for (id, op) in data.signature.ops() {
            if !matches!(op.kind, OpKind::Builtin(_)) {
                ops.entry(op.name.clone()).or_default().push(id);
            }
        }
        let mut sorts: AHashMap<String, SortId> = AHashMap::new();
        for (name, sort) in [
            ("Bool", basic::BOOL),
            ("Pos", basic::POS),
            ("Nat", basic::NAT),
            ("Int", basic::INT),
            ("Real", basic::REAL),
        ] {
            sorts.insert(name.into(), sort);
        }
        let mut checker = Self {
            data,
            types: Types::default(),
            ops,
            sorts,
            structs: AHashMap::new(),
            scope: AHashMap::new(),
            stack: Vec::new(),
            closed: AHashMap::new(),
            extending: false,
        };
        checker.recover_sorts();
        checker
    }

    /// Type checks an expression, at a sort if given, else at its least one.
    pub fn check(
        &mut self,
        data: &ast::Data,
        expected: Option<SortId>,
    ) -> Result<Expr, Diagnostic> {
        let mut inference = Inference::default();
        let root = self.infer(&mut inference, data)?;
        let ty = match expected {
            Some(sort) => self.type_of(sort),
            None => {
                let chosen = self.choose(&inference, root, None)?;
                if self.types.is_open(chosen.ty) {
                    let sort = self.types.text(&self.data.signature.sorts, chosen.ty);
                    return Err(error(data.span, format!("the sort of this expression, {sort}, is not determined"))
                        .note("the sort of its elements is unknown; use a variable or operation of a declared sort"));
                }
                chosen.ty
            }
        };
        self.elaborate(&inference, root, ty)
    }

    /// Type checks the arguments of one of several overloads (`candidates`: parameter sorts).
    /// Returns the index of the overload with the fewest coercions, and the arguments at its sorts.
    /// `what` is the kind of the callee for messages: `action`, `process`.
    pub fn check_call(
        &mut self,
        what: &str,
        name: &str,
        span: Span,
        args: &[ast::Data],
        candidates: &[Vec<SortId>],
    ) -> Result<(usize, Vec<Expr>), Diagnostic> {
        let mut inference = Inference::default();
        let nodes = args
            .iter()
            .map(|a| self.infer(&mut inference, a))
            .collect::<Result<Vec<SubtermId>, _>>()?;
        let mut best: Option<(u32, usize)> = None;
        let mut tie = false;
        for (i, sorts) in candidates.iter().enumerate() {
            if sorts.len() != args.len() {
                continue;
            }
            let mut cost = Some(0u32);
            for (sort, node) in sorts.iter().zip(&nodes) {
                let ty = self.type_of(*sort);
                cost =
                    cost.and_then(|c| Some(c.saturating_add(self.cost_at(&inference, *node, ty)?)));
            }
            let Some(cost) = cost else { continue };
            match best {
                Some((least, _)) if cost > least => {}
                Some((least, _)) if cost == least => tie = true,
                _ => {
                    best = Some((cost, i));
                    tie = false;
                }
            }
        }
        let notes = |checker: &Self, mut diagnostic: Diagnostic| {
            for sorts in candidates.iter().take(12) {
                diagnostic =
                    diagnostic.note(format!("candidate: {name}{}", checker.parameters_text(sorts)));
            }
            diagnostic
        };
        match best {
            Some((_, i)) if !tie => {
                let mut typed = Vec::with_capacity(args.len());
                for (sort, node) in candidates[i].iter().zip(&nodes) {
                    let ty = self.type_of(*sort);
                    typed.push(self.elaborate(&inference, *node, ty)?);
                }
                Ok((i, typed))
            }
            Some(_) => {
                let arguments = self.arguments_text(&inference, &nodes);
                let message = format!(
                    "{what} `{name}` is ambiguous: several declarations match arguments of sorts ({arguments}) equally well"
                );
                Err(notes(self, error(span, message)))
            }
            None => {
                if let [sorts] = candidates {
                    if sorts.len() != args.len() {
                        let message = format!(
                            "{what} `{name}` has {}, but {} given",
                            count(sorts.len(), "parameter"),
                            are(args.len())
                        );
                        return Err(notes(self, error(span, message)));
                    }
                    for (i, (sort, node)) in sorts.iter().zip(&nodes).enumerate() {
                        let ty = self.type_of(*sort);
                        if self.cost_at(&inference, *node, ty).is_none() {
                            let found = self.found_text(&inference, *node);
                            let wanted = self.data.signature.sorts.text(*sort);
                            let message = format!(
                                "argument {} of {what} `{name}` has sort {found}, where {wanted} is expected",
                                i + 1
                            );
                            return Err(notes(
                                self,
                                self.with_conversion(
                                    error(args[i].span, message),
                                    &inference,
                                    *node,
                                    ty,
                                ),
                            ));
                        }
                    }
                }
                let arguments = self.arguments_text(&inference, &nodes);
                Err(notes(
                    self,
                    error(
                        span,
                        format!("no {what} `{name}` matches arguments of sorts ({arguments})"),
                    ),
                ))
            }
        }
    }

    /// Returns `: A # B`, or nothing.
    pub fn parameters_text(&self, sorts: &[SortId]) -> String {
        if sorts.is_empty() {
            return " (without parameters)".into();
        }
        let texts: Vec<String> = sorts.iter().map(|s| self.data.signature.sorts.text(*s)).collect();
        format!(": {}", texts.join(" # "))
    }

    /// Returns the user operations of a name.
    fn operations(&self, name: &str) -> Vec<OpId> {
        self.ops.get(name).cloned().unwrap_or_default()
    }

    /// True if a name is a user operation or a built-in.
    fn is_operation(&self, name: &str) -> bool {
        self.ops.contains_key(name) || !builtins::schemes(name).is_empty()
    }

    /// Allows later declarations to repeat existing ones.
    pub fn allow_repeats(&mut self) {
        self.extending = true;
    }

    /// True if a name is a variable or an operation in scope.
    pub fn is_name(&self, name: &str) -> bool {
        self.lookup_var(name).is_some() || self.is_operation(name)
    }

    /// Returns the innermost variable of a name; `None` if there is none.
    pub fn lookup_var(&self, name: &str) -> Option<VarId> {
        self.scope.get(name).and_then(|v| v.last().copied())
    }

    /// Returns a mark for [`Self::close_scope`].
    pub fn open_scope(&self) -> usize {
        self.stack.len()
    }

    /// Brings a variable into scope.
    pub fn bind(&mut self, name: &str, var: VarId) {
        self.scope.entry(name.into()).or_default().push(var);
        self.stack.push(name.into());
    }

    /// Removes all variables bound since the mark from the scope; `word` and `span` describe the
    /// binder.
    pub fn close_scope(&mut self, mark: usize, word: &'static str, span: Span) {
        for name in self.stack.drain(mark..) {
            if let Some(vars) = self.scope.get_mut(&name) {
                vars.pop();
                if vars.is_empty() {
                    self.scope.remove(&name);
                }
            }
            self.closed.insert(name, ClosedBinder { word, span });
        }
    }

    /// Creates variables for declarations that bind together; their names must differ. Does not
    /// bring them into scope.
    pub fn declare_vars(&mut self, decls: &[ast::VarDecl]) -> Result<Vec<VarId>, Diagnostic> {
        let mut vars = Vec::with_capacity(decls.len());
        let mut seen = ahash::AHashSet::new();
        for decl in decls {
            if !seen.insert(&decl.name.kind) {
                return Err(error(
                    decl.name.span,
                    format!("variable `{}` is declared twice", decl.name.kind),
                ));
            }
            let sort = self.sort(&decl.sort)?;
            vars.push(self.data.signature.declare_var(
                decl.name.kind.clone(),
                sort,
                decl.name.span,
            ));
        }
        Ok(vars)
    }

    /// Returns the error for an unknown name.
    fn undeclared_error(&self, name: &str, span: Span) -> Diagnostic {
        let mut diagnostic = error(span, format!("`{name}` is not declared"));
        if let Some(closed) = self.closed.get(name)
            && closed.span.source == span.source
            && closed.span.end <= span.start
        {
            let end = Span {
                source: span.source,
                start: closed.span.end.saturating_sub(1),
                end: closed.span.end,
            };
            diagnostic = diagnostic
                .related(
                    end,
                    format!("the scope of the `{}` that binds `{name}` ends here", closed.word),
                )
                .note(format!("put parentheses around the whole scope of `{}`", closed.word));
        }
        with_suggestions(
            diagnostic,
            name,
            self.ops
                .keys()
                .chain(self.scope.keys())
                .map(String::as_str)
                .filter(|name| !name.starts_with(PLACEHOLDER)),
            "variables, constructors or mappings",
        )
    }
}

/// Beginning of the names of constants that stand for parameters without a value; suggestions omit
/// them.
pub const PLACEHOLDER: &str = "unused_";

/// Adds the similar names to an error for a name that is not `declared`, or else the first declared
/// names. `what` is their kind, in the plural.
pub fn with_suggestions<'a>(
    error: Diagnostic,
    name: &str,
    declared: impl Iterator<Item = &'a str>,
    what: &str,
) -> Diagnostic {
    const SHOWN: usize = 12;
    let mut declared: Vec<&str> = declared.collect();
    let similar = similar_names(name, declared.iter().copied());
    if !similar.is_empty() {
        return error.note(format!("similar names: {}", similar.join(", ")));
    }
    declared.sort_unstable();
    declared.dedup();
    let more = if declared.len() > SHOWN { ", …" } else { "" };
    declared.truncate(SHOWN);
    error.note(if declared.is_empty() {
        format!("no {what} are declared here")
    } else {
        format!("declared here: {}{more}", declared.join(", "))
    })
}

/// Returns text such as `1 parameter` or `2 parameters`.
pub(crate) fn count(n: usize, what: &str) -> String {
    match n {
        0 => format!("no {what}s"),
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    }
}

fn are(n: usize) -> String {
    match n {
        0 => "none is".into(),
        1 => "1 is".into(),
        n => format!("{n} are"),
    }
}
