//! Compiler of expressions: each becomes a node, or a value that does not depend on the execution.
//!
//! Functions that are not recursive are inlined. Expressions that sets and relations of events
//! cannot represent (sets of relations, matches on sets, recursive functions) become nodes that the
//! interpreter evaluates. Types are checked here, except those of the interpreter's results, which
//! are checked at run time. Cost: the size of the model after inlining.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use mu_base::{Diagnostic, Span, Stage, narrow};

use super::ast::{
    Binary, BindingPattern, Exp, ExpressionKind, IfCondition, LetBinding, UnaryOperator,
};
use super::compile::Compiler;
use super::program::{CatNodeId, CatOp, CatType, InterpretedExpression, RecursiveGroup};
use super::value::{CatValue, Closure, Env, Primitive};
use crate::execution::{NameMeaning, SetId};

pub(super) type Compiled<T> = Result<T, Diagnostic>;

/// The functions with known inputs: their bodies with their environments.
type KnownFunctions = HashSet<(*const Exp, usize)>;

/// Limit on the nesting of inlined functions; deeper nesting is an error.
const MAX_CALLS: usize = 500;

fn wrong<T>(span: Span, message: impl Into<String>) -> Compiled<T> {
    Err(Diagnostic::at(Stage::Type, span, message))
}

/// Binds the names of a pattern to a value.
pub(super) fn bind(
    env: &Env,
    pattern: &BindingPattern,
    value: CatValue,
    span: Span,
) -> Compiled<Env> {
    match (pattern, value) {
        (BindingPattern::One(None), _) => Ok(env.clone()),
        (BindingPattern::One(Some(name)), v) => Ok(env.with(name, v)),
        (BindingPattern::Tuple(names), CatValue::Tuple(parts)) if names.len() == parts.len() => {
            Ok(names.iter().zip(parts.iter()).fold(env.clone(), |env, (n, v)| match n {
                Some(n) => env.with(n, v.clone()),
                None => env,
            }))
        }
        (BindingPattern::Tuple(names), CatValue::Tuple(parts)) => {
            wrong(span, format!("a tuple of {} does not match {} names", parts.len(), names.len()))
        }
        (BindingPattern::Tuple(names), _) => {
            wrong(span, format!("expected a tuple of {}", names.len()))
        }
    }
}

/// True if a name has a meaning outside of the expression.
pub(super) type IsKnown<'k> = &'k dyn Fn(&str) -> bool;

/// Collects the free names of an expression in `out`. Of `try a with b`, these are the names of `a`
/// if all are known, and those of `b` otherwise.
pub(super) fn free(
    exp: &Exp,
    known: IsKnown<'_>,
    bound: &mut Vec<String>,
    out: &mut BTreeSet<String>,
) {
    stacker::maybe_grow(64 * 1024, 1024 * 1024, || free_node(exp, known, bound, out));
}
fn names_of(pattern: &BindingPattern) -> Vec<String> {
    match pattern {
        BindingPattern::One(n) => n.iter().map(|n| n.text.clone()).collect(),
        BindingPattern::Tuple(ns) => ns.iter().flatten().map(|n| n.text.clone()).collect(),
    }
}
fn free_node(exp: &Exp, known: IsKnown<'_>, bound: &mut Vec<String>, out: &mut BTreeSet<String>) {
    let under =
        |names: Vec<String>, e: &Exp, bound: &mut Vec<String>, out: &mut BTreeSet<String>| {
            let before = bound.len();
            bound.extend(names);
            free(e, known, bound, out);
            bound.truncate(before);
        };
    match &exp.node {
        ExpressionKind::Empty | ExpressionKind::Universe | ExpressionKind::Tag(_) => {}
        ExpressionKind::Name(n) => {
            if !bound.contains(n) {
                out.insert(n.clone());
            }
        }
        ExpressionKind::Braces(es) | ExpressionKind::Tuple(es) => {
            es.iter().for_each(|e| free(e, known, bound, out))
        }
        ExpressionKind::Unary(_, e) => free(e, known, bound, out),
        ExpressionKind::Binary(_, a, b) | ExpressionKind::Apply(a, b) => {
            free(a, known, bound, out);
            free(b, known, bound, out);
        }
        ExpressionKind::Try(a, b) => {
            let mut first = BTreeSet::new();
            free(a, known, bound, &mut first);
            if first.iter().all(|n| known(n)) {
                out.extend(first);
            } else {
                free(b, known, bound, out);
            }
        }
        ExpressionKind::Fun(p, body) => under(names_of(p), body, bound, out),
        ExpressionKind::Let(recursive, bindings, body) => {
            let names: Vec<String> = bindings.iter().flat_map(|b| names_of(&b.pattern)).collect();
            for b in bindings {
                let inner = if *recursive { names.clone() } else { Vec::new() };
                under(inner, &b.value, bound, out);
            }
            under(names, body, bound, out);
        }
        ExpressionKind::If(c, a, b) => {
            free_condition(c, known, bound, out);
            free(a, known, bound, out);
            free(b, known, bound, out);
        }
        ExpressionKind::MatchTag(e, clauses, other) => {
            free(e, known, bound, out);
            clauses.iter().map(|c| &c.1).chain(other).for_each(|e| free(e, known, bound, out));
        }
        ExpressionKind::MatchSet(e, empty, clause) => {
            let names = [&clause.element, &clause.rest]
                .into_iter()
                .chain(&clause.before)
                .flatten()
                .map(|n| n.text.clone())
                .collect();
            under(names, &clause.body, bound, out);
            free(e, known, bound, out);
            free(empty, known, bound, out);
        }
    }
}
fn free_condition(
    c: &IfCondition,
    known: IsKnown<'_>,
    bound: &mut Vec<String>,
    out: &mut BTreeSet<String>,
) {
    match c {
        IfCondition::Variant(_) => {}
        IfCondition::Not(a) => free_condition(a, known, bound, out),
        IfCondition::And(a, b) | IfCondition::Or(a, b) => {
            free_condition(a, known, bound, out);
            free_condition(b, known, bound, out);
        }
        IfCondition::Equal(a, b) | IfCondition::Subset(a, b) | IfCondition::In(a, b) => {
            free(a, known, bound, out);
            free(b, known, bound, out);
        }
    }
}

impl Compiler<'_> {
    /// Describes a value for a message.
    pub(super) fn describe(&self, v: &CatValue) -> &'static str {
        match v {
            CatValue::Node(s) => match self.program.kind(*s) {
                CatType::Set => "a set of events",
                CatType::Relation => "a relation",
                CatType::Value => "a value that depends on the execution",
            },
            CatValue::Empty => "the empty set",
            CatValue::Tuple(_) => "a tuple",
            CatValue::List(_) => "a set of sets",
            CatValue::Closure(_) | CatValue::Primitive(_) => "a function",
            CatValue::Procedure(_) => "a procedure",
            CatValue::Tag(_) => "a tag",
            CatValue::Tags(_) => "a set of tags",
            CatValue::Unknown(_) => "an unknown name",
        }
    }
    /// Converts a value to a set of events.
    pub(super) fn events_of(&mut self, v: &CatValue, span: Span) -> Compiled<CatNodeId> {
        match v {
            CatValue::Node(s) => match self.program.kind(*s) {
                CatType::Set => Ok(*s),
                CatType::Value => Ok(self.node_at(CatOp::AsSet(*s), CatType::Set, span)),
                CatType::Relation => wrong(span, "this is a relation: expected a set of events"),
            },
            CatValue::Empty => Ok(self.program.node(CatOp::Nothing, CatType::Set)),
            _ => wrong(span, format!("this is {}: expected a set of events", self.describe(v))),
        }
    }
    /// Converts a value to a relation.
    pub(super) fn pairs_of(&mut self, v: &CatValue, span: Span) -> Compiled<CatNodeId> {
        match v {
            CatValue::Node(s) => match self.program.kind(*s) {
                CatType::Relation => Ok(*s),
                CatType::Value => Ok(self.node_at(CatOp::AsRelation(*s), CatType::Relation, span)),
                CatType::Set => wrong(
                    span,
                    "this is a set of events: expected a relation (`[s]` is the identity on a set `s`)",
                ),
            },
            CatValue::Empty => Ok(self.program.node(CatOp::Nothing, CatType::Relation)),
            _ => wrong(span, format!("this is {}: expected a relation", self.describe(v))),
        }
    }
    /// Returns the node of a name of the vocabulary; the empty node if no execution has such
    /// events.
    pub(super) fn vocabulary_node(&mut self, name: NameMeaning, span: Span) -> CatNodeId {
        if self.vocabulary.is_never(name) {
            let kind =
                if matches!(name, NameMeaning::Set(_)) { CatType::Set } else { CatType::Relation };
            return self.program.node(CatOp::Nothing, kind);
        }
        let node_id = self.program.vocabulary_node(name);
        if self.vocabulary.is_missing(name) {
            self.missing.entry(node_id).or_insert(span);
        }
        node_id
    }
    pub(super) fn node_at(&mut self, op: CatOp, kind: CatType, span: Span) -> CatNodeId {
        let node_id = self.program.node(op, kind);
        self.spans.entry(node_id).or_insert(span);
        node_id
    }
    fn node_kind(&self, v: &CatValue) -> Option<CatType> {
        match v {
            CatValue::Node(s) => Some(self.program.kind(*s)),
            _ => None,
        }
    }

    /// Compiles an expression.
    pub(super) fn exp(&mut self, exp: &Arc<Exp>, env: &Env) -> Compiled<CatValue> {
        stacker::maybe_grow(128 * 1024, 1024 * 1024, || self.exp_node(exp, env))
    }
    fn exp_node(&mut self, exp: &Arc<Exp>, env: &Env) -> Compiled<CatValue> {
        match &exp.node {
            ExpressionKind::Empty => Ok(CatValue::Empty),
            ExpressionKind::Universe => {
                Ok(CatValue::Node(self.program.node(CatOp::GivenSet(SetId::ALL), CatType::Set)))
            }
            ExpressionKind::Name(name) => self.name(name, exp.span, env),
            ExpressionKind::Tag(tag) => Ok(CatValue::Tag(tag.clone())),
            ExpressionKind::Braces(parts) => self.braces(exp, parts, env),
            ExpressionKind::Unary(op, of) => self.unary(exp, *op, of, env),
            ExpressionKind::Binary(op, a, b) => self.binary(exp, *op, a, b, env),
            ExpressionKind::Tuple(parts) => {
                let parts: Compiled<Vec<CatValue>> =
                    parts.iter().map(|p| self.exp(p, env)).collect();
                Ok(CatValue::Tuple(Arc::new(parts?)))
            }
            ExpressionKind::Apply(f, argument) => self.apply(exp, f, argument, env),
            ExpressionKind::Let(recursive, bindings, body) => {
                let env = self.bindings(*recursive, bindings, env)?;
                self.exp(body, &env)
            }
            ExpressionKind::Fun(pattern, body) => {
                let closure = Closure {
                    pattern: pattern.clone(),
                    body: body.clone(),
                    env: env.clone(),
                    group: None,
                };
                Ok(CatValue::Closure(Arc::new(closure)))
            }
            ExpressionKind::Try(first, second) => {
                let unknown = self.unknown;
                match self.exp(first, env) {
                    // As in the herd tools, whatever the error is.
                    Err(_) => {
                        self.unknown = unknown;
                        self.exp(second, env)
                    }
                    other => other,
                }
            }
            ExpressionKind::If(condition, yes, no) => match self.condition(condition, env)? {
                Some(true) => self.exp(yes, env),
                Some(false) => self.exp(no, env),
                None => self.interpret(exp, env),
            },
            ExpressionKind::MatchTag(of, clauses, other) => {
                let tag = self.exp(of, env)?;
                let CatValue::Tag(tag) = tag else { return self.interpret(exp, env) };
                let found =
                    clauses.iter().find(|c| c.0.text == tag).map(|c| &c.1).or(other.as_ref());
                match found {
                    Some(e) => self.exp(e, env),
                    None => wrong(exp.span, format!("no clause for the tag `'{tag}`")),
                }
            }
            ExpressionKind::MatchSet(of, empty, clause) => {
                let set = self.exp(of, env)?;
                match set {
                    _ if self.is_nothing(&set) => self.exp(empty, env),
                    CatValue::Node(_) | CatValue::List(_) => self.interpret(exp, env),
                    _ => wrong(
                        of.span,
                        format!(
                            "this is {}: expected a set to match with `{{}}` and `{} ++ …`",
                            self.describe(&set),
                            clause.element.as_deref().unwrap_or("_")
                        ),
                    ),
                }
            }
        }
    }
    fn name(&mut self, name: &str, span: Span, env: &Env) -> Compiled<CatValue> {
        if let Some(value) = env.find(name) {
            if let CatValue::Unknown(error) = value {
                self.unknown += 1;
                return Err((**error).clone());
            }
            return Ok(value.clone());
        }
        if let Some(given) = self.vocabulary.find(name) {
            return Ok(CatValue::Node(self.vocabulary_node(given, span)));
        }
        if let Some(p) = Primitive::by_name(name) {
            return Ok(CatValue::Primitive(p));
        }
        self.unknown += 1;
        let mut e = Diagnostic::at(Stage::Type, span, format!("unknown name `{name}`"));
        let known = env.iter().map(|x| x.0).chain(self.vocabulary.names());
        if let Some(similar) =
            known.filter(|k| k.eq_ignore_ascii_case(name) || close(k, name)).min()
        {
            e = e.note(format!("similar name: `{similar}`"));
        }
        Err(e)
    }
    fn braces(&mut self, exp: &Arc<Exp>, parts: &[Arc<Exp>], env: &Env) -> Compiled<CatValue> {
        let parts: Compiled<Vec<CatValue>> = parts.iter().map(|p| self.exp(p, env)).collect();
        let parts = parts?;
        if parts.is_empty() {
            return Ok(CatValue::Empty);
        }
        if parts.iter().all(|p| matches!(p, CatValue::Tag(_))) {
            let tags = parts
                .iter()
                .filter_map(|p| if let CatValue::Tag(t) = p { Some(t.clone()) } else { None })
                .collect();
            return Ok(CatValue::Tags(Arc::new(tags)));
        }
        if parts.iter().any(|p| self.node_kind(p) == Some(CatType::Value)) {
            return self.interpret(exp, env);
        }
        Ok(CatValue::List(Arc::new(parts)))
    }
    fn unary(
        &mut self,
        exp: &Arc<Exp>,
        op: UnaryOperator,
        of: &Arc<Exp>,
        env: &Env,
    ) -> Compiled<CatValue> {
        let value = self.exp(of, env)?;
        if op == UnaryOperator::Identity {
            let set = self.events_of(&value, of.span)?;
            return Ok(CatValue::Node(self.program.identity(set)));
        }
        if op == UnaryOperator::Complement {
            return match (&value, self.node_kind(&value)) {
                (CatValue::Empty, _) => {
                    let nothing = self.program.node(CatOp::Nothing, CatType::Relation);
                    Ok(CatValue::Node(self.program.complement(nothing)))
                }
                (CatValue::Node(s), Some(CatType::Set | CatType::Relation)) => {
                    Ok(CatValue::Node(self.program.complement(*s)))
                }
                (_, Some(CatType::Value)) => self.interpret(exp, env),
                _ => wrong(
                    of.span,
                    format!(
                        "this is {}: `~` takes a set of events or a relation",
                        self.describe(&value)
                    ),
                ),
            };
        }
        let r = self.pairs_of(&value, of.span)?;
        Ok(CatValue::Node(match op {
            UnaryOperator::Star => self.program.star(r),
            UnaryOperator::Plus => self.program.plus(r),
            UnaryOperator::Optional => self.program.optional(r),
            _ => self.program.inverse(r),
        }))
    }
    fn binary(
        &mut self,
        exp: &Arc<Exp>,
        op: Binary,
        a: &Arc<Exp>,
        b: &Arc<Exp>,
        env: &Env,
    ) -> Compiled<CatValue> {
        let (x, y) = (self.exp(a, env)?, self.exp(b, env)?);
        match op {
            Binary::Sequence => {
                let (r, s) = (self.pairs_of(&x, a.span)?, self.pairs_of(&y, b.span)?);
                Ok(CatValue::Node(self.program.compose(r, s)))
            }
            Binary::Product => {
                let (s, t) = (self.events_of(&x, a.span)?, self.events_of(&y, b.span)?);
                Ok(CatValue::Node(self.program.product(s, t)))
            }
            Binary::Add => self.interpret(exp, env),
            Binary::Union | Binary::Intersection | Binary::Difference => {
                self.boolean(exp, op, (a, x), (b, y), env)
            }
        }
    }
    fn boolean(
        &mut self,
        exp: &Arc<Exp>,
        op: Binary,
        a: (&Arc<Exp>, CatValue),
        b: (&Arc<Exp>, CatValue),
        env: &Env,
    ) -> Compiled<CatValue> {
        let ((a, x), (b, y)) = (a, b);
        if let (CatValue::Tags(s), CatValue::Tags(t)) = (&x, &y) {
            let both: BTreeSet<String> = match op {
                Binary::Union => s.union(t).cloned().collect(),
                Binary::Intersection => s.intersection(t).cloned().collect(),
                _ => s.difference(t).cloned().collect(),
            };
            return Ok(CatValue::Tags(Arc::new(both)));
        }
        match (&x, &y) {
            (CatValue::Empty, CatValue::Empty) => return Ok(CatValue::Empty),
            (CatValue::Empty, CatValue::Tags(_) | CatValue::List(_)) if op == Binary::Union => {
                return Ok(y);
            }
            (CatValue::Tags(_) | CatValue::List(_), CatValue::Empty)
                if op != Binary::Intersection =>
            {
                return Ok(x);
            }
            _ => {}
        }
        let kinds = [self.node_kind(&x), self.node_kind(&y)];
        let lists = [&x, &y].iter().any(|v| matches!(v, CatValue::List(_)));
        let (r, s) = if kinds.contains(&Some(CatType::Relation)) {
            (self.pairs_of(&x, a.span)?, self.pairs_of(&y, b.span)?)
        } else if kinds.contains(&Some(CatType::Set)) {
            (self.events_of(&x, a.span)?, self.events_of(&y, b.span)?)
        } else if kinds.contains(&Some(CatType::Value)) || lists {
            return self.interpret(exp, env);
        } else {
            let (v, at) = if matches!(x, CatValue::Empty) { (&y, b) } else { (&x, a) };
            return wrong(
                at.span,
                format!("this is {}: expected a set or a relation", self.describe(v)),
            );
        };
        Ok(CatValue::Node(match op {
            Binary::Union => self.program.union(r, s),
            Binary::Intersection => self.program.intersection(r, s),
            _ => self.program.difference(r, s),
        }))
    }

    // Applications of functions.

    fn apply(
        &mut self,
        exp: &Arc<Exp>,
        f: &Arc<Exp>,
        argument: &Arc<Exp>,
        env: &Env,
    ) -> Compiled<CatValue> {
        let function = self.exp(f, env)?;
        match function {
            CatValue::Closure(c) => {
                let value = self.exp(argument, env)?;
                if let Some(group) = &c.group {
                    return match self.end_of_recursion(&c, group, &value, argument.span)? {
                        Some(value) => Ok(value),
                        None => self.interpret(exp, env),
                    };
                }
                let inner = bind(&c.env, &c.pattern, value, argument.span)?;
                if self.calls >= MAX_CALLS {
                    return wrong(
                        exp.span,
                        format!("functions call each other more than {MAX_CALLS} deep here"),
                    );
                }
                self.calls += 1;
                let result =
                    self.exp(&c.body, &inner).map_err(|e| e.within(exp.span, "in this call"));
                self.calls -= 1;
                result
            }
            CatValue::Primitive(p) => self.primitive(p, exp, argument, env),
            CatValue::Node(s) if self.program.kind(s) == CatType::Value => self.interpret(exp, env),
            _ => {
                wrong(f.span, format!("this is {}: expected a function", self.describe(&function)))
            }
        }
    }
    /// True if a value is the empty set in every execution.
    fn is_nothing(&self, value: &CatValue) -> bool {
        match value {
            CatValue::Empty => true,
            CatValue::Node(s) => self.program.nodes[s.index()].op == CatOp::Nothing,
            _ => false,
        }
    }
    /// Returns the value of a recursive function at an argument at which it ends: its body matches
    /// a set that is empty in every execution.
    fn end_of_recursion(
        &mut self,
        c: &Closure,
        group: &Arc<Vec<(String, BindingPattern, Arc<Exp>)>>,
        value: &CatValue,
        span: Span,
    ) -> Compiled<Option<CatValue>> {
        let ExpressionKind::MatchSet(of, empty, _) = &c.body.node else { return Ok(None) };
        let ExpressionKind::Name(_) = &of.node else { return Ok(None) };
        let inner = bind(&c.env.with_group(group), &c.pattern, value.clone(), span)?;
        let set = self.exp(of, &inner)?;
        if self.is_nothing(&set) { Ok(Some(self.exp(empty, &inner)?)) } else { Ok(None) }
    }
    fn primitive(
        &mut self,
        p: Primitive,
        exp: &Arc<Exp>,
        argument: &Arc<Exp>,
        env: &Env,
    ) -> Compiled<CatValue> {
        let value = self.exp(argument, env)?;
        let pair = |value: &CatValue| match value {
            CatValue::Tuple(parts) if parts.len() == 2 => Ok((parts[0].clone(), parts[1].clone())),
            _ => wrong(argument.span, "expected a pair `(s, r)`"),
        };
        match p {
            Primitive::Domain | Primitive::Range => {
                let r = self.pairs_of(&value, argument.span)?;
                Ok(CatValue::Node(self.program.projection(r, p == Primitive::Range)))
            }
            Primitive::Linearisations | Primitive::GenerateOrders => {
                let (s, r) = pair(&value)?;
                let (s, r) =
                    (self.events_of(&s, argument.span)?, self.pairs_of(&r, argument.span)?);
                let op = if p == Primitive::Linearisations {
                    CatOp::Linearisations(s, r)
                } else {
                    CatOp::Orders(s, r)
                };
                Ok(CatValue::Node(self.program.node(op, CatType::Value)))
            }
            Primitive::DifferentValues => {
                let r = self.pairs_of(&value, argument.span)?;
                Ok(CatValue::Node(self.program.node(CatOp::DifferentValues(r), CatType::Relation)))
            }
            Primitive::ClassesLoc | Primitive::Classes => self.interpret(exp, env),
            Primitive::TagToEvents => {
                let CatValue::Tag(tag) = &value else {
                    return wrong(
                        argument.span,
                        format!("this is {}: expected a tag", self.describe(&value)),
                    );
                };
                let (upper, mut first) = (tag.to_uppercase(), tag.clone());
                if let Some(c) = first.get_mut(..1) {
                    c.make_ascii_uppercase();
                }
                let found = [tag, &first, &upper].into_iter().find_map(|n| self.vocabulary.find(n));
                match found {
                    Some(name) => Ok(CatValue::Node(self.vocabulary_node(name, argument.span))),
                    None => {
                        self.unknown += 1;
                        wrong(argument.span, format!("no events can have the tag `'{tag}` here"))
                    }
                }
            }
            Primitive::PageTables => {
                let of = if let CatValue::Tuple(parts) = &value {
                    parts.first().cloned().unwrap_or(CatValue::Empty)
                } else {
                    value
                };
                match of {
                    _ if self.is_nothing(&of) => Ok(of),
                    CatValue::Node(s) if self.program.kind(s) != CatType::Value => {
                        let kind = self.program.kind(s);
                        Ok(CatValue::Node(self.node_at(CatOp::OnlyEmpty(s), kind, exp.span)))
                    }
                    _ => wrong(
                        argument.span,
                        format!("this is {}: expected a set or a relation", self.describe(&of)),
                    ),
                }
            }
        }
    }

    // Conditions.

    /// Evaluates a condition; `None` if it depends on the execution.
    pub(super) fn condition(&mut self, c: &IfCondition, env: &Env) -> Compiled<Option<bool>> {
        Ok(match c {
            IfCondition::Variant(name) => Some(self.variants.contains(&name.as_str())),
            IfCondition::Not(a) => self.condition(a, env)?.map(|a| !a),
            IfCondition::And(a, b) => match (self.condition(a, env)?, self.condition(b, env)?) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), other) | (other, Some(true)) => other,
                _ => None,
            },
            IfCondition::Or(a, b) => match (self.condition(a, env)?, self.condition(b, env)?) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), other) | (other, Some(false)) => other,
                _ => None,
            },
            IfCondition::Equal(a, b) | IfCondition::Subset(a, b) | IfCondition::In(a, b) => {
                let is_in = matches!(c, IfCondition::In(..));
                let (x, y) = (self.exp(a, env)?, self.exp(b, env)?);
                match (&x, &y) {
                    (CatValue::Tag(t), CatValue::Tags(s)) if is_in => Some(s.contains(t)),
                    (CatValue::Tag(t), CatValue::Tag(s)) => Some(t == s),
                    (CatValue::Tags(t), CatValue::Tags(s))
                        if matches!(c, IfCondition::Subset(..)) =>
                    {
                        Some(t.is_subset(s))
                    }
                    (CatValue::Tags(t), CatValue::Tags(s)) => Some(t == s),
                    (CatValue::Empty, CatValue::Empty) => Some(!is_in),
                    (CatValue::Node(r), CatValue::Node(s)) if r == s && !is_in => Some(true),
                    (CatValue::Node(_) | CatValue::List(_), _)
                    | (_, CatValue::Node(_) | CatValue::List(_)) => None,
                    _ => {
                        return wrong(
                            a.span.to(b.span),
                            format!(
                                "{} cannot be compared with {}",
                                self.describe(&x),
                                self.describe(&y)
                            ),
                        );
                    }
                }
            }
        })
    }

    // Bindings.

    /// Compiles `let` bindings.
    pub(super) fn bindings(
        &mut self,
        recursive: bool,
        bindings: &[LetBinding],
        env: &Env,
    ) -> Compiled<Env> {
        if recursive {
            return self.recursive(bindings, env);
        }
        let mut value_of = |b: &LetBinding| {
            let unknown = self.unknown;
            match self.exp(&b.value, env) {
                // As in the herd tools, an unknown name in `let x = y` is an error only if `x` is
                // used.
                Err(e)
                    if self.unknown > unknown
                        && matches!(b.value.node, ExpressionKind::Name(_)) =>
                {
                    Ok(CatValue::Unknown(Arc::new(e)))
                }
                other => other,
            }
        };
        let values: Compiled<Vec<CatValue>> = bindings.iter().map(&mut value_of).collect();
        let mut out = env.clone();
        for (b, value) in bindings.iter().zip(values?) {
            self.name_node(&b.pattern, &value);
            out = bind(&out, &b.pattern, value, b.span)?;
        }
        Ok(out)
    }
    /// Names a node, for explanations.
    fn name_node(&mut self, pattern: &BindingPattern, value: &CatValue) {
        if let (BindingPattern::One(Some(name)), CatValue::Node(node_id)) = (pattern, value)
            && !matches!(
                self.program.nodes[node_id.index()].op,
                CatOp::GivenSet(_) | CatOp::GivenRelation(_) | CatOp::Nothing
            )
        {
            self.program.names.entry(*node_id).or_insert_with(|| name.text.clone());
        }
    }
    fn recursive(&mut self, bindings: &[LetBinding], env: &Env) -> Compiled<Env> {
        let functions: Option<Vec<_>> = (bindings.iter())
            .map(|b| match (&b.pattern, &b.value.node) {
                (BindingPattern::One(Some(name)), ExpressionKind::Fun(pattern, body)) => {
                    Some((name.text.clone(), pattern.clone(), body.clone()))
                }
                _ => None,
            })
            .collect();
        if let Some(group) = functions {
            return Ok(env.with_group(&Arc::new(group)));
        }
        let mut names = Vec::new();
        for b in bindings {
            match (&b.pattern, &b.value.node) {
                (_, ExpressionKind::Fun(..)) => {
                    return wrong(
                        b.span,
                        "a `let rec` of functions and sets at once is not supported",
                    );
                }
                (BindingPattern::One(Some(name)), _) => names.push(&**name),
                _ => return wrong(b.span, "a `let rec` binds one name, not a tuple or `_`"),
            }
        }
        // The types of the variables follow from the operators. Where these leave them open, they
        // are inferred by iteration: relations first, then the types of the results.
        let mut kinds = self.kinds_by_operators(bindings, &names, env);
        let inferred = kinds.clone();
        let (nodes, groups) = (self.program.nodes.len(), self.program.groups.len());
        let interpreted = self.program.interpreted.len();
        let mut first_error = None;
        for turn in 0..=names.len() + 1 {
            match self.fixpoint(bindings, &names, &kinds, env) {
                Ok((env, found)) if found == kinds => return Ok(env),
                Ok((_, found)) => kinds = found,
                Err(e) if turn == 0 && kinds == inferred => {
                    first_error = Some(e);
                    kinds = vec![CatType::Set; names.len()];
                }
                Err(e) => return Err(first_error.unwrap_or(e)),
            }
            self.program.truncate(nodes, groups);
            self.program.interpreted.truncate(interpreted);
            self.spans.retain(|node_id, _| node_id.index() < nodes);
            self.missing.retain(|node_id, _| node_id.index() < nodes);
        }
        wrong(bindings[0].span, "this `let rec` defines both a set and a relation")
    }
    /// Infers the types of the variables of a `let rec` from the operators of their values; a
    /// relation if these do not decide it.
    fn kinds_by_operators(
        &self,
        bindings: &[LetBinding],
        names: &[&str],
        env: &Env,
    ) -> Vec<CatType> {
        let mut kinds: Vec<Option<CatType>> = vec![None; names.len()];
        for _ in 0..=names.len() {
            let next: Vec<Option<CatType>> = (bindings.iter().zip(&kinds))
                .map(|(b, known)| known.or_else(|| self.kind_of(&b.value, names, &kinds, env)))
                .collect();
            if next == kinds {
                break;
            }
            kinds = next;
        }
        kinds.into_iter().map(|k| k.unwrap_or(CatType::Relation)).collect()
    }
    fn kind_of(
        &self,
        exp: &Exp,
        names: &[&str],
        kinds: &[Option<CatType>],
        env: &Env,
    ) -> Option<CatType> {
        let mut todo = vec![exp];
        while let Some(exp) = todo.pop() {
            let found = match &exp.node {
                ExpressionKind::Unary(UnaryOperator::Complement, a) => {
                    todo.push(a);
                    None
                }
                ExpressionKind::Unary(..)
                | ExpressionKind::Binary(Binary::Sequence | Binary::Product, ..) => {
                    Some(CatType::Relation)
                }
                ExpressionKind::Binary(Binary::Add, ..) => None,
                ExpressionKind::Binary(_, a, b) => {
                    todo.extend([&**b, &**a]);
                    None
                }
                ExpressionKind::Let(_, _, body) => {
                    todo.push(body);
                    None
                }
                ExpressionKind::Universe => Some(CatType::Set),
                ExpressionKind::Apply(f, _) => match &f.node {
                    ExpressionKind::Name(name) => match env.find(name) {
                        None => Primitive::by_name(name).and_then(|p| match p {
                            Primitive::Domain | Primitive::Range => Some(CatType::Set),
                            _ => None,
                        }),
                        Some(_) => None,
                    },
                    _ => None,
                },
                ExpressionKind::Name(name) => match names.iter().position(|n| n == name) {
                    Some(i) => kinds[i],
                    None => match (env.find(name), self.vocabulary.find(name)) {
                        (Some(CatValue::Node(node_id)), _) => match self.program.kind(*node_id) {
                            CatType::Value => None,
                            kind => Some(kind),
                        },
                        (None, Some(NameMeaning::Set(_))) => Some(CatType::Set),
                        (None, Some(NameMeaning::Relation(_))) => Some(CatType::Relation),
                        _ => None,
                    },
                },
                _ => None,
            };
            if found.is_some() {
                return found;
            }
        }
        None
    }
    /// Compiles a `let rec` with given types of its variables. Returns the bound names, and the
    /// types of the results.
    fn fixpoint(
        &mut self,
        bindings: &[LetBinding],
        names: &[&str],
        kinds: &[CatType],
        env: &Env,
    ) -> Compiled<(Env, Vec<CatType>)> {
        let group = self.program.groups.len();
        let span = bindings[0].span;
        if group >= 64 {
            return Err(Diagnostic::at(
                Stage::Unsupported,
                span,
                "a model with more than 64 `let rec`",
            ));
        }
        let variables: Vec<CatNodeId> = kinds
            .iter()
            .enumerate()
            .map(|(i, &kind)| {
                self.program.node(CatOp::Variable(narrow::index(group), narrow::index(i)), kind)
            })
            .collect();
        self.program.groups.push(RecursiveGroup {
            span,
            variables: variables.clone(),
            ..RecursiveGroup::default()
        });
        // As in the herd tools, a round computes the values in order, and each uses the new values
        // of those before it. For values that grow and shrink, this decides the result.
        let mut inner = names
            .iter()
            .zip(&variables)
            .fold(env.clone(), |env, (n, v)| env.with(n, CatValue::Node(*v)));
        let (mut results, mut found) = (Vec::new(), Vec::new());
        for ((b, kind), name) in bindings.iter().zip(kinds).zip(names) {
            let value = self.exp(&b.value, &inner)?;
            let node_id = match self.node_kind(&value) {
                Some(CatType::Set) => self.events_of(&value, b.value.span)?,
                Some(CatType::Relation) => self.pairs_of(&value, b.value.span)?,
                _ if *kind == CatType::Set => self.events_of(&value, b.value.span)?,
                _ => self.pairs_of(&value, b.value.span)?,
            };
            results.push(node_id);
            found.push(self.program.kind(node_id));
            if self.program.kind(node_id) == *kind {
                inner = inner.with(name, CatValue::Node(node_id));
            }
        }
        if found != kinds {
            return Ok((env.clone(), found));
        }
        self.program.groups[group].results.clone_from(&results);
        let closure = if results.len() == 1 {
            self.program.as_closure(variables[0], results[0])
        } else {
            None
        };
        let mut out = env.clone();
        for (i, name) in names.iter().enumerate() {
            let node_id = closure.unwrap_or_else(|| {
                self.program.node(CatOp::Fixpoint(narrow::index(group), narrow::index(i)), kinds[i])
            });
            self.program.names.entry(node_id).or_insert_with(|| (*name).to_string());
            out = out.with(name, CatValue::Node(node_id));
        }
        Ok((out, found))
    }

    // What is left to the interpreter.

    /// Creates a node for an expression that needs the interpreter.
    pub(super) fn interpret(&mut self, exp: &Arc<Exp>, env: &Env) -> Compiled<CatValue> {
        let mut inputs = BTreeSet::new();
        self.inputs(exp, env, &mut inputs, &mut HashSet::new())?;
        let index = narrow::index(self.program.interpreted.len());
        self.program.interpreted.push(InterpretedExpression {
            exp: exp.clone(),
            env: env.clone(),
            inputs: inputs.into_iter().collect(),
        });
        Ok(CatValue::Node(self.node_at(CatOp::Interpret(index), CatType::Value, exp.span)))
    }
    /// Collects the nodes that the free names of an expression depend on.
    fn inputs(
        &mut self,
        exp: &Arc<Exp>,
        env: &Env,
        out: &mut BTreeSet<CatNodeId>,
        seen: &mut KnownFunctions,
    ) -> Compiled<()> {
        let mut names = BTreeSet::new();
        let vocabulary = self.vocabulary;
        let known = |n: &str| match env.find(n) {
            Some(CatValue::Unknown(_)) => false,
            Some(_) => true,
            None => vocabulary.find(n).is_some() || Primitive::by_name(n).is_some(),
        };
        free(exp, &known, &mut Vec::new(), &mut names);
        for n in &names {
            let value = match env.find(n) {
                Some(v) => v.clone(),
                None => match self.vocabulary.find(n) {
                    Some(given) => CatValue::Node(self.vocabulary_node(given, exp.span)),
                    None if Primitive::by_name(n).is_some() => continue,
                    None => {
                        self.unknown += 1;
                        return wrong(exp.span, format!("unknown name `{n}`"));
                    }
                },
            };
            self.inputs_of(&value, out, seen)?;
        }
        let all = self.program.node(CatOp::GivenSet(SetId::ALL), CatType::Set);
        out.insert(all);
        Ok(())
    }
    fn inputs_of(
        &mut self,
        value: &CatValue,
        out: &mut BTreeSet<CatNodeId>,
        seen: &mut KnownFunctions,
    ) -> Compiled<()> {
        match value {
            CatValue::Node(s) => {
                out.insert(*s);
            }
            CatValue::Tuple(parts) | CatValue::List(parts) => {
                for p in parts.iter() {
                    self.inputs_of(p, out, seen)?;
                }
            }
            CatValue::Closure(c) => {
                let env = c.group.as_ref().map_or_else(|| c.env.clone(), |g| c.env.with_group(g));
                if seen.insert((Arc::as_ptr(&c.body), c.env.key())) {
                    let env = names_of(&c.pattern)
                        .iter()
                        .fold(env, |env, n| env.with(n, CatValue::Empty));
                    stacker::maybe_grow(128 * 1024, 1024 * 1024, || {
                        self.inputs(&c.body, &env, out, seen)
                    })?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// True if two names differ in one letter.
fn close(a: &str, b: &str) -> bool {
    let common = a.bytes().zip(b.bytes()).take_while(|(x, y)| x == y).count();
    let (ra, rb) = (&a.as_bytes()[common..], &b.as_bytes()[common..]);
    a.len().min(b.len()) > 2
        && (ra.len().max(rb.len()) == 1 || ra.len() == rb.len() && ra.get(1..) == rb.get(1..))
}
