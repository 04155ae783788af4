//! Name resolution in `.cub` files, for editors: the namespaces and scopes of [`crate::check`],
//! without checking sorts.
//!
//! Input: a text. Output: a [`Naming`]. Types, predicates, and variables together with constructors
//! have separate namespaces. The scope of a process is its declaration, of a quantified one the
//! formula, of the index of a `case` its cases. A declaration that does not parse is skipped. Cost:
//! linear.

use crate::ast::{DeclarationKind, Formula, Item, Name, Right, Term, Update, Value};
use crate::parse::parse_all;
use mu_base::naming::{NameRole, Naming, line};
use mu_base::{SourceId, Span};
use std::collections::HashMap;

/// Resolves the names of a file.
pub fn names(source: SourceId, text: &str) -> Naming {
    let items = parse_all(source, text);
    let mut walk = NameCollector {
        out: Naming::default(),
        text,
        types: HashMap::new(),
        values: HashMap::new(),
        predicates: HashMap::new(),
        scope: Vec::new(),
    };
    for (name, says) in [
        ("proc", "proc: the processes"),
        ("bool", "bool: `False` and `True`"),
        ("int", "int: whole numbers"),
        ("real", "real: rational numbers"),
        ("word8", "word8: words of 8 bits, which wrap"),
        ("word16", "word16: words of 16 bits, which wrap"),
        ("word32", "word32: words of 32 bits, which wrap"),
    ] {
        let of = walk.out.add_builtin(NameRole::Type, name, says);
        walk.types.insert(name.into(), of);
    }
    for name in ["False", "True"] {
        let of = walk.out.add_builtin(NameRole::Constructor, name, format!("{name}: bool"));
        walk.values.insert(name.into(), of);
    }
    items.iter().for_each(|(item, whole)| walk.declares(item, *whole));
    items.iter().for_each(|(item, whole)| walk.item(item, *whole));
    walk.out
}

struct NameCollector<'t> {
    out: Naming,
    text: &'t str,
    types: HashMap<String, usize>,
    /// Variables, arrays, constants and constructors.
    values: HashMap<String, usize>,
    predicates: HashMap<String, usize>,
    /// Processes and parameters in scope, the innermost last.
    scope: Vec<(String, usize)>,
}

impl NameCollector<'_> {
    fn source_text(&self, span: Span) -> &str {
        self.text.get(span.start as usize..span.end as usize).unwrap_or("")
    }
    /// Returns a declaration up to its body.
    fn head(&self, whole: Span) -> String {
        line(
            self.source_text(whole)
                .split(['{'])
                .next()
                .unwrap_or("")
                .split(" requires")
                .next()
                .unwrap_or(""),
        )
    }

    /// Records the file-wide names that an item declares. The first declaration of a name counts; a
    /// second one is an error.
    fn declares(&mut self, item: &Item, whole: Span) {
        match item {
            Item::Type(name, constructors) => {
                let of = self.out.declare(
                    NameRole::Type,
                    &name.text,
                    name.place.0,
                    whole,
                    line(self.source_text(whole)),
                );
                self.types.entry(name.text.clone()).or_insert(of);
                for c in constructors {
                    let says = format!("{}: {}", c.text, name.text);
                    let of = self.out.declare(
                        NameRole::Constructor,
                        &c.text,
                        c.place.0,
                        c.place.0,
                        says,
                    );
                    self.values.entry(c.text.clone()).or_insert(of);
                }
            }
            Item::Symbol { declared, name, indices, .. } => {
                let role = if *declared == DeclarationKind::Constant {
                    NameRole::Constant
                } else {
                    NameRole::Storage
                };
                let of = self.out.declare(
                    role,
                    &name.text,
                    name.place.0,
                    whole,
                    line(self.source_text(whole)),
                );
                let cells = if indices.is_empty() { "" } else { ", a cell for each process" };
                self.out.bindings[of].note = match declared {
                    DeclarationKind::Constant => "a constant value".to_string(),
                    DeclarationKind::Plain => {
                        format!("a variable that all processes read directly{cells}")
                    }
                    DeclarationKind::Weak => format!(
                        "a variable in memory: writes wait in a buffer of their process{cells}"
                    ),
                };
                self.values.entry(name.text.clone()).or_insert(of);
            }
            Item::Predicate(name, ..) => {
                let of = self.out.declare(
                    NameRole::Function,
                    &name.text,
                    name.place.0,
                    whole,
                    self.head(whole),
                );
                self.predicates.entry(name.text.clone()).or_insert(of);
            }
            Item::Transition { name, .. } => {
                let of = self.out.declare(
                    NameRole::Process,
                    &name.text,
                    name.place.0,
                    whole,
                    self.head(whole),
                );
                self.out.bindings[of].note = "a transition".into();
            }
            Item::Processes(..) => self.out.parts.push(("number_procs".into(), whole)),
            Item::Init(..) => self.out.parts.push(("init".into(), whole)),
            Item::Invariant(..) => self.out.parts.push(("invariant".into(), whole)),
            Item::Unsafe(..) => self.out.parts.push(("unsafe".into(), whole)),
        }
    }

    fn item(&mut self, item: &Item, whole: Span) {
        match item {
            Item::Processes(..) => {}
            Item::Type(..) => {}
            Item::Symbol { indices, sort, .. } => {
                indices.iter().chain([sort]).for_each(|n| self.of_type(n))
            }
            Item::Predicate(_, params, body) => {
                params.iter().for_each(|p| self.binds(p, whole, "a parameter"));
                self.expr(body, whole);
            }
            Item::Init(params, body, _)
            | Item::Invariant(params, body, _)
            | Item::Unsafe(params, body, _) => {
                params.iter().for_each(|p| self.binds(p, whole, "a process"));
                self.expr(body, whole);
            }
            Item::Transition { params, requires, updates, .. } => {
                for (name, actor) in params {
                    self.binds(
                        name,
                        whole,
                        if *actor { "the process that accesses memory" } else { "a process" },
                    );
                }
                requires.iter().for_each(|e| self.expr(e, whole));
                updates.iter().for_each(|u| self.update(u, whole));
            }
        }
        self.scope.clear();
    }

    fn of_type(&mut self, name: &Name) {
        if let Some(of) = self.types.get(&name.text) {
            self.out.mention(name.place.0, *of);
        }
    }
    fn value(&mut self, name: &Name) {
        if let Some(of) = self.values.get(&name.text) {
            self.out.mention(name.place.0, *of);
        }
    }
    /// Records a lower-case name: a process, or the parameter of a predicate. `#n` is not a name.
    fn process(&mut self, name: &Name) {
        if let Some((_, of)) = self.scope.iter().rev().find(|s| s.0 == name.text) {
            self.out.mention(name.place.0, *of);
        }
    }
    fn binds(&mut self, name: &Name, scope: Span, note: &str) {
        let of = self.out.declare(
            NameRole::Local,
            &name.text,
            name.place.0,
            name.place.0,
            name.text.clone(),
        );
        (self.out.bindings[of].scope, self.out.bindings[of].note) = (Some(scope), note.into());
        self.scope.push((name.text.clone(), of));
    }

    fn update(&mut self, update: &Update, whole: Span) {
        update.by.iter().for_each(|n| self.process(n));
        self.value(&update.name);
        let depth = self.scope.len();
        match &update.right {
            Right::Value(value) => {
                update.args.iter().for_each(|n| self.process(n));
                self.stored_value(value);
            }
            Right::Cases(cases) => {
                update.args.iter().for_each(|n| self.binds(n, whole, "any process"));
                for (condition, value) in cases {
                    condition.iter().for_each(|e| self.expr(e, whole));
                    self.stored_value(value);
                }
            }
        }
        self.scope.truncate(depth);
    }
    fn stored_value(&mut self, value: &Value) {
        if let Value::Term(term) = value {
            self.term(term);
        }
    }

    fn term(&mut self, term: &Term) {
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || match term {
            Term::Number(..) => {}
            Term::Name(name) if name.text.starts_with(|c: char| c.is_ascii_uppercase()) => {
                self.value(name)
            }
            Term::Name(name) => self.process(name),
            Term::Cell(name, args) => {
                self.value(name);
                args.iter().for_each(|n| self.process(n));
            }
            Term::By(by, of) => {
                self.process(by);
                self.term(of);
            }
            Term::Add(a, b) | Term::Sub(a, b) | Term::Mul(a, b) => {
                self.term(a);
                self.term(b);
            }
            Term::Neg(a) | Term::Signed(a) | Term::Mask(a, _) => self.term(a),
        });
    }
    fn expr(&mut self, expr: &Formula, whole: Span) {
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || self.expr_node(expr, whole));
    }
    fn expr_node(&mut self, expr: &Formula, whole: Span) {
        match expr {
            Formula::Constant(..) => {}
            Formula::Compare(a, _, b) => {
                self.term(a);
                self.term(b);
            }
            Formula::Fence(by, _) => by.iter().for_each(|n| self.process(n)),
            Formula::Call(name, args) => {
                if let Some(of) = self.predicates.get(&name.text) {
                    self.out.mention(name.place.0, *of);
                }
                args.iter().for_each(|t| self.term(t));
            }
            Formula::Not(a) => self.expr(a, whole),
            Formula::And(all) | Formula::Or(all) => all.iter().for_each(|e| self.expr(e, whole)),
            Formula::Implies(a, b) | Formula::Iff(a, b) => {
                self.expr(a, whole);
                self.expr(b, whole);
            }
            Formula::If(c, a, b) => [c, a, b].into_iter().for_each(|e| self.expr(e, whole)),
            Formula::Quantified(_, names, body) => {
                let depth = self.scope.len();
                names.iter().for_each(|n| self.binds(n, whole, "a process"));
                self.expr(body, whole);
                self.scope.truncate(depth);
            }
        }
    }
}
