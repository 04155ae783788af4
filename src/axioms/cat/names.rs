//! Name resolution in models, for editors: the scopes of [`super::compile`], traversed without
//! building nodes.
//!
//! Input: a text, a resolver of included files, the vocabulary of the architecture. Output: a
//! [`Naming`] with positions in the text and in the included files. A statement that does not parse
//! is skipped. If several branches of an `if` or `match` bind one name, later uses refer to all of
//! them, so they are treated as one name. Cost: linear in the texts, times the bindings that
//! branches share.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use mu_base::naming::{NameRole, Naming, line};
use mu_base::{SourceId, SourceMap, Span};

use super::ast::{BindingPattern, Exp, ExpressionKind, Ident, IfCondition, Ins, Statement};
use super::compile::Resolver;
use super::parser::parse_all;
use super::value::Primitive;
use super::{CatModel, CatType};
use crate::execution::{NameMeaning, Vocabulary};

/// Descriptions of the names of the language, for readers.
const DESCRIPTIONS: &[(&str, &str)] = &[
    ("_", "all events"),
    ("R", "events that read"),
    ("W", "events that write"),
    ("M", "events that read or write"),
    ("F", "fences"),
    ("B", "branches"),
    ("IW", "initial writes"),
    ("FW", "the last writes of their locations"),
    ("RMW", "events that read and write"),
    ("id", "each event with itself"),
    ("int", "events of one thread"),
    ("ext", "events of different threads"),
    ("loc", "accesses to one location"),
    ("po", "program order"),
    ("rf", "reads-from: a write, and a read that takes its value"),
    ("co", "coherence: the order of the writes of each location"),
    (
        "fr",
        "from-reads: a read, and a write that is later in coherence than the one it takes its value from",
    ),
    ("addr", "address dependencies"),
    ("data", "data dependencies"),
    ("ctrl", "control dependencies"),
    ("rmw", "the read of a read-modify-write with its write"),
    ("amo", "the two halves of a read-modify-write of one instruction"),
    ("lxsx", "a load-reserve and its store-conditional"),
    ("si", "events of one access that was split"),
    ("domain", "the first events of a relation's pairs"),
    ("range", "the second events of a relation's pairs"),
    ("linearisations", "the total orders on a set that contain a relation"),
    ("classes", "the classes of an equivalence"),
    ("classes-loc", "the parts of a set, by location"),
    ("tag2events", "the events that have a tag"),
    ("different-values", "the pairs of a relation whose events have different values"),
];

/// Resolves the names of a model. `vocabulary` contains the names of its architecture; `model` is
/// the compiled model, if it has no error.
pub fn names(
    sources: &mut SourceMap,
    source: SourceId,
    resolver: Resolver<'_>,
    vocabulary: &Vocabulary,
    model: Option<&CatModel>,
) -> Naming {
    let mut resolver_state = NameResolver {
        out: Naming::default(),
        sources,
        resolver,
        vocabulary,
        given: HashMap::new(),
        tags: HashMap::new(),
        scope: Vec::new(),
        included: HashSet::new(),
        inside: None,
    };
    let name = resolver_state.sources.get(source).name.clone();
    if let Some(library) = resolver("stdlib.cat").filter(|_| name != "stdlib.cat") {
        let library = resolver_state.sources.add("stdlib.cat", library);
        resolver_state.file(library);
    }
    resolver_state.file(source);
    let last: HashMap<String, usize> = resolver_state.scope.iter().cloned().collect();
    for name in vocabulary.names().chain(Primitive::ALL.iter().map(|p| p.0)).filter(|n| *n != "_") {
        resolver_state.vocabulary_name(name);
    }
    let mut out = resolver_state.out;
    for (name, of) in last {
        if out.bindings[of].role == NameRole::Relation {
            out.bindings[of].note = match model.and_then(|m| m.type_of_definition(&name)) {
                Some(CatType::Relation) => "a relation".into(),
                Some(CatType::Set) => "a set of events".into(),
                Some(CatType::Value) | None => continue,
            };
        }
    }
    out
}

struct NameResolver<'a> {
    out: Naming,
    sources: &'a mut SourceMap,
    resolver: Resolver<'a>,
    vocabulary: &'a Vocabulary,
    /// The names of the language.
    given: HashMap<String, usize>,
    tags: HashMap<String, usize>,
    /// Names in scope, the innermost last.
    scope: Vec<(String, usize)>,
    included: HashSet<String>,
    /// The range of the text in which local names are in scope.
    inside: Option<Span>,
}

impl NameResolver<'_> {
    fn file(&mut self, source: SourceId) {
        let file = self.sources.get(source);
        if !self.included.insert(file.name.clone()) {
            return;
        }
        let body = parse_all(source, &file.text.clone()).body;
        self.statements(&body);
    }
    fn text(&self, span: Span) -> String {
        line(self.sources.text(span))
    }
    /// Returns the name of the language with this text, if there is one.
    fn vocabulary_name(&mut self, name: &str) -> Option<usize> {
        if let Some(of) = self.given.get(name) {
            return Some(*of);
        }
        let (role, note) = match self.vocabulary.find(name) {
            Some(NameMeaning::Set(_)) => (NameRole::Relation, "a set of events"),
            Some(NameMeaning::Relation(_)) => (NameRole::Relation, "a relation"),
            None => (
                NameRole::Function,
                Primitive::by_name(name).map(|_| "a function of the language")?,
            ),
        };
        let entry = DESCRIPTIONS.iter().find(|t| t.0 == name);
        let of = self.out.add_builtin(
            role,
            name,
            entry.map_or_else(|| name.to_string(), |t| format!("{name}: {}", t.1)),
        );
        self.out.bindings[of].note = note.into();
        self.given.insert(name.to_string(), of);
        Some(of)
    }
    fn find(&mut self, name: &str) -> Option<usize> {
        let found = self.scope.iter().rev().find(|s| s.0 == name).map(|s| s.1);
        found.or_else(|| self.vocabulary_name(name))
    }
    fn uses(&mut self, place: Span, name: &str) {
        if let Some(of) = self.find(name) {
            self.out.mention(place, of);
        }
    }
    fn binds(&mut self, role: NameRole, name: &Ident, whole: Span, says: String) -> usize {
        let of = self.out.declare(role, name, name.place.0, whole, says);
        self.out.bindings[of].scope = self.inside;
        self.scope.push((name.text.clone(), of));
        of
    }
    fn local(&mut self, name: &Ident) {
        let says = name.text.clone();
        self.binds(NameRole::Local, name, name.place.0, says);
    }
    fn locals(&mut self, pattern: &BindingPattern) {
        match pattern {
            BindingPattern::One(name) => name.iter().for_each(|n| self.local(n)),
            BindingPattern::Tuple(names) => names.iter().flatten().for_each(|n| self.local(n)),
        }
    }
    /// Runs `inner` in a local scope.
    fn with_scope(&mut self, span: Span, inner: impl FnOnce(&mut Self)) {
        let (depth, outer) = (self.scope.len(), self.inside.replace(span));
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || inner(self));
        self.inside = outer;
        self.scope.truncate(depth);
    }
    fn tag(&mut self, tag: &str, place: Span) {
        let of = match self.tags.get(tag) {
            Some(of) => *of,
            None => {
                let of = self.out.add_builtin(NameRole::Constructor, tag, format!("'{tag}"));
                self.tags.insert(tag.to_string(), of);
                of
            }
        };
        self.out.mention(place, of);
    }
    fn claim(&mut self, name: &Ident, whole: Span) {
        let says = self.text(whole);
        let of = self.out.declare(NameRole::Claim, name, name.place.0, whole, says);
        self.out.bindings[of].scope = Some(whole);
    }

    fn statements(&mut self, list: &[Ins]) {
        for ins in list {
            stacker::maybe_grow(64 * 1024, 1024 * 1024, || self.statement(ins));
        }
    }
    fn statement(&mut self, ins: &Ins) {
        match &ins.node {
            Statement::Let(recursive, bindings, when) => {
                self.bindings(
                    *recursive,
                    bindings,
                    if self.inside.is_none() { ins.span } else { Span::default() },
                );
                if let Some(test) = when {
                    self.exp(&test.of);
                    test.name.iter().for_each(|n| self.claim(n, test.span));
                }
            }
            Statement::Test(test) => {
                self.exp(&test.of);
                test.name.iter().for_each(|n| self.claim(n, test.span));
            }
            Statement::Show(list) => {
                for (name, exp) in list {
                    match exp {
                        Some(exp) => self.exp(exp),
                        None => self.uses(name.place.0, name),
                    }
                }
            }
            Statement::Include(name) => {
                if let Some(text) = Some(name)
                    .filter(|n| !self.included.contains(*n))
                    .and_then(|n| (self.resolver)(n))
                {
                    let id = self.sources.add(name, text);
                    let inside = self.inside.take();
                    self.file(id);
                    self.inside = inside;
                }
            }
            Statement::Procedure(name, pattern, body) => {
                let says = format!("procedure {}", self.head(ins.span, "="));
                self.binds(NameRole::Process, name, ins.span, says);
                self.with_scope(ins.span, |w| {
                    w.locals(pattern);
                    w.statements(body);
                });
            }
            Statement::Call(name, argument, label) => {
                self.uses(name.place.0, name);
                self.exp(argument);
                label.iter().for_each(|l| self.claim(l, ins.span));
            }
            Statement::Forall(name, set, body) => {
                self.exp(set);
                self.with_scope(ins.span, |w| {
                    w.local(name);
                    w.statements(body);
                });
            }
            Statement::With(name, from) => {
                self.exp(from);
                let says = self.text(ins.span);
                let of = self.binds(NameRole::Relation, name, ins.span, says);
                if name.text == "co" {
                    self.out.bindings[of].fixed =
                        Some("the choice of a coherence order has this name");
                }
            }
            Statement::Enum(name, tags) => {
                let says = self.text(ins.span);
                self.binds(NameRole::Type, name, ins.span, says);
                for tag in tags {
                    let of = self.out.declare(
                        NameRole::Constructor,
                        tag,
                        tag.place.0,
                        ins.span,
                        format!("'{}", tag.text),
                    );
                    self.out.bindings[of].fixed = Some("a tag of events of programs");
                    self.tags.insert(tag.text.clone(), of);
                }
            }
            Statement::Instructions(_, arguments) => arguments.iter().for_each(|a| self.exp(a)),
            Statement::If(condition, yes, no) => {
                self.condition(condition);
                self.branches(&[yes, no]);
            }
            Statement::Match(of, clauses, other) => {
                self.exp(of);
                clauses.iter().for_each(|c| self.tag(&c.0, c.0.place.0));
                let bodies: Vec<&Arc<Vec<Ins>>> =
                    clauses.iter().map(|c| &c.1).chain(other).collect();
                self.branches(&bodies);
            }
        }
    }
    /// Returns the text of a statement after its first word, up to a sign.
    fn head(&self, span: Span, sign: &str) -> String {
        let text = self.sources.text(span);
        let (_, rest) = text.split_once(char::is_whitespace).unwrap_or(("", text));
        line(rest.split(sign).next().unwrap_or(rest))
    }
    /// Resolves alternative lists of statements. Their bindings stay in scope.
    fn branches(&mut self, bodies: &[&Arc<Vec<Ins>>]) {
        let depth = self.scope.len();
        let mut bound: Vec<(String, usize)> = Vec::new();
        for body in bodies {
            self.statements(body);
            bound.extend(self.scope.split_off(depth));
        }
        let names: HashSet<String> = bound.iter().map(|b| b.0.clone()).collect();
        for (name, of) in bound.iter_mut() {
            // In a branch that does not bind it, the name keeps its meaning.
            let before = if bodies.len() > 1 {
                self.scope.iter().find(|s| s.0 == *name).map(|s| s.1)
            } else {
                None
            };
            let stays = before.unwrap_or(*of);
            self.out.merge(stays, *of);
            *of = stays;
        }
        for name in names {
            let mut same = bound.iter().filter(|b| b.0 == name).map(|b| b.1);
            let Some(first) = same.next() else { continue };
            same.for_each(|other| self.out.merge(first, other));
            self.scope.push((name, first));
        }
    }
    fn bindings(&mut self, recursive: bool, bindings: &[super::ast::LetBinding], whole: Span) {
        let alone = bindings.len() == 1 && whole.is_somewhere();
        let bind = |w: &mut Self, b: &super::ast::LetBinding| {
            let role = if matches!(b.value.node, ExpressionKind::Fun(..)) {
                NameRole::Function
            } else {
                NameRole::Relation
            };
            let says = format!("let {}{}", if recursive { "rec " } else { "" }, w.text(b.span));
            let names: Vec<&Ident> = match &b.pattern {
                BindingPattern::One(name) => name.iter().collect(),
                BindingPattern::Tuple(names) => names.iter().flatten().collect(),
            };
            for name in names {
                let of = w.binds(role, name, if alone { whole } else { b.span }, says.clone());
                if name.text == "generate_orders" {
                    w.out.bindings[of].fixed = Some("the name of a built-in model");
                }
            }
        };
        if recursive {
            bindings.iter().for_each(|b| bind(self, b));
        }
        // Values are resolved in the scope before the bindings.
        let depth = self.scope.len();
        for b in bindings {
            self.exp(&b.value);
            self.scope.truncate(depth);
        }
        if !recursive {
            bindings.iter().for_each(|b| bind(self, b));
        }
    }
    fn exp(&mut self, exp: &Exp) {
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || self.node(exp));
    }
    fn node(&mut self, exp: &Exp) {
        match &exp.node {
            ExpressionKind::Empty | ExpressionKind::Universe => {}
            ExpressionKind::Name(name) => self.uses(exp.span, name),
            ExpressionKind::Tag(tag) => {
                self.tag(tag, Span { start: exp.span.start + 1, ..exp.span })
            }
            ExpressionKind::Braces(list) | ExpressionKind::Tuple(list) => {
                list.iter().for_each(|e| self.exp(e))
            }
            ExpressionKind::Unary(_, e) => self.exp(e),
            ExpressionKind::Binary(_, a, b)
            | ExpressionKind::Apply(a, b)
            | ExpressionKind::Try(a, b) => {
                self.exp(a);
                self.exp(b);
            }
            ExpressionKind::Fun(pattern, body) => self.with_scope(exp.span, |w| {
                w.locals(pattern);
                w.exp(body);
            }),
            ExpressionKind::Let(recursive, bindings, body) => self.with_scope(exp.span, |w| {
                w.bindings(*recursive, bindings, Span::default());
                w.exp(body);
            }),
            ExpressionKind::If(condition, yes, no) => {
                self.condition(condition);
                self.exp(yes);
                self.exp(no);
            }
            ExpressionKind::MatchTag(of, clauses, other) => {
                self.exp(of);
                for (tag, body) in clauses {
                    self.tag(tag, tag.place.0);
                    self.exp(body);
                }
                other.iter().for_each(|e| self.exp(e));
            }
            ExpressionKind::MatchSet(of, empty, clause) => {
                self.exp(of);
                self.exp(empty);
                self.with_scope(exp.span, |w| {
                    clause
                        .before
                        .iter()
                        .flatten()
                        .chain(&clause.element)
                        .chain(&clause.rest)
                        .for_each(|n| w.local(n));
                    w.exp(&clause.body);
                });
            }
        }
    }
    fn condition(&mut self, condition: &IfCondition) {
        match condition {
            IfCondition::Variant(_) => {}
            IfCondition::Not(a) => self.condition(a),
            IfCondition::And(a, b) | IfCondition::Or(a, b) => {
                self.condition(a);
                self.condition(b);
            }
            IfCondition::Equal(a, b) | IfCondition::Subset(a, b) | IfCondition::In(a, b) => {
                self.exp(a);
                self.exp(b);
            }
        }
    }
}
