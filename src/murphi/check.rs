//! Type checker: from the syntax tree to the typed tree.
//!
//! In: a [`File`]. Out: a [`Model`], all errors, and the names for editors. One pass in the order
//! of the text: a name is visible from its declaration on. After an error in a statement or
//! declaration the checker continues with the next one; names of a rejected declaration are known
//! but silent, so that one mistake is one error.
//!
//! The language is the union of those of CMurphi 5.4.9 and Rumur; where both reject a model, so
//! does this checker, and where their types differ it accepts what either accepts, except what
//! breaks the symmetry of a scalarset (docs/murphi.md lists the differences). Cost: linear, except
//! that the blocks around rules are checked once for each rule inside.

mod constants;
mod declarations;
mod expressions;
mod rules;
mod statements;
mod types;

pub(crate) use types::has_multiset;

use crate::ast::{Expr as Tree, File, Item, Name};
use crate::typed::{
    Frame, FunctionId, GlobalId, Local, LocalId, LocalKind, Model, TypeId, TypeKind,
};
use ahash::{AHashMap, AHashSet};
use mu_base::naming::{NameRole, Naming, line};
use mu_base::similar::similar_names;
use mu_base::{Diagnostic, SourceId, Span, Stage};

/// Settings of a run that change the model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Values of constants in place of those of the file (`-D NAME=value`).
    pub constants: Vec<(String, i64)>,
    /// Source of the model, if other sources add to it: they may name elements of scalarsets.
    pub source: Option<SourceId>,
}

/// Result of the checker.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// The model; incomplete if there are errors.
    pub model: Model,
    /// Errors, in the order in which they were found.
    pub errors: Vec<Diagnostic>,
    /// Names for editors.
    pub naming: Naming,
}

/// Checks a file. `text` is the text from which it was parsed.
///
/// # Errors
///
/// The first name, type or value that the language does not allow.
pub fn check(file: &File, text: &str, settings: &Settings) -> Result<Model, Diagnostic> {
    let checked = check_all(file, text, settings);
    match checked.errors.into_iter().next() {
        Some(error) => Err(error),
        None => Ok(checked.model),
    }
}

/// Checks a file and returns all errors and names.
pub fn check_all(file: &File, text: &str, settings: &Settings) -> Checked {
    let mut checker = Checker::new(text, settings);
    for item in &file.items {
        checker.item(item);
    }
    checker.finish();
    Checked { model: checker.out, errors: checker.errors, naming: checker.naming }
}

type Result<T, E = Diagnostic> = std::result::Result<T, E>;

/// Meaning of a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Meaning {
    /// Constant or member of an enumeration.
    Constant(TypeId, i64),
    Type(TypeId),
    Global(GlobalId),
    /// Local, with the reason why it cannot be written, if it cannot.
    Local(LocalId, Option<&'static str>),
    Function(FunctionId),
    /// Name of a declaration with an error.
    Rejected,
}

impl Meaning {
    fn word(self) -> &'static str {
        match self {
            Meaning::Constant(..) => "constant",
            Meaning::Type(_) => "type",
            Meaning::Global(_) | Meaning::Local(..) => "variable",
            Meaning::Function(_) => "function",
            Meaning::Rejected => "name",
        }
    }
}

/// Name in a scope.
#[derive(Clone, Copy, Debug)]
struct Entity {
    meaning: Meaning,
    /// Number of its binding in the naming.
    binding: usize,
    /// Place of its declaration.
    span: Span,
}

/// Error without a message: a consequence of one that was reported.
fn silent(span: Span) -> Diagnostic {
    Diagnostic::at(Stage::Type, span, "")
}

fn wrong<T>(span: Span, message: impl Into<String>) -> Result<T> {
    Err(Diagnostic::at(Stage::Type, span, message))
}

struct Checker<'a> {
    text: &'a str,
    settings: &'a Settings,
    out: Model,
    errors: Vec<Diagnostic>,
    naming: Naming,
    /// Scopes, the innermost last.
    scopes: Vec<AHashMap<String, Entity>>,
    /// Places of the mentions so far: blocks around several rules are checked several times.
    mentioned: AHashSet<u32>,
    /// Bindings of declarations so far, by place.
    declared: AHashMap<u32, usize>,
    /// Number of the first member of the next enumeration or scalarset.
    next_value: i64,
    /// First numbers of enumerations by their members: two lists of equal members are one type.
    enums: AHashMap<Vec<String>, i64>,
    /// Types of the type expressions so far, by place.
    types_at: AHashMap<(SourceId, u32, u32), TypeId>,
    /// Bindings of the fields of records, by type and index.
    fields: AHashMap<(TypeId, u32), usize>,
    /// Locals of the current body.
    frame: Frame,
    /// Place of the current body; the scope of its names.
    body: Span,
    /// Type of the result in a function; `None` outside of functions.
    function: Option<Option<TypeId>>,
}

impl<'a> Checker<'a> {
    fn new(text: &'a str, settings: &'a Settings) -> Self {
        let mut checker = Checker {
            text,
            settings,
            out: Model::default(),
            errors: Vec::new(),
            naming: Naming::default(),
            scopes: vec![AHashMap::default(), AHashMap::default()],
            mentioned: AHashSet::default(),
            declared: AHashMap::default(),
            // Booleans have the numbers 0 and 1.
            next_value: 2,
            enums: AHashMap::default(),
            types_at: AHashMap::default(),
            fields: AHashMap::default(),
            frame: Frame::default(),
            body: Span::default(),
            function: None,
        };
        for (name, meaning, says) in [
            ("boolean", Meaning::Type(TypeId::BOOLEAN), "boolean: `false` and `true`"),
            ("false", Meaning::Constant(TypeId::BOOLEAN, 0), "false: boolean"),
            ("true", Meaning::Constant(TypeId::BOOLEAN, 1), "true: boolean"),
        ] {
            let role = if name == "boolean" { NameRole::Type } else { NameRole::Constructor };
            let binding = checker.naming.add_builtin(role, name, says);
            let entity = Entity { meaning, binding, span: Span::default() };
            checker.scopes[0].insert(name.into(), entity);
        }
        checker
    }

    fn report(&mut self, error: Diagnostic) {
        if !error.message.is_empty() {
            self.errors.push(error);
        }
    }
    /// Returns the result; an error is reported.
    fn report_error<T>(&mut self, result: Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.report(error);
                None
            }
        }
    }
    fn source_text(&self, span: Span) -> &'a str {
        self.text.get(span.start as usize..span.end as usize).unwrap_or("")
    }
    /// Returns a type for a message.
    fn type_text(&self, ty: TypeId) -> String {
        let text = self.out.types.text(ty);
        match self.out.types.kind(ty) {
            TypeKind::Boolean | TypeKind::Integer => text,
            _ => format!("`{text}`"),
        }
    }

    fn item(&mut self, item: &Item) {
        match item {
            Item::Declaration(declaration) => self.declaration(declaration, true),
            Item::Function(function) => self.function(function),
            Item::Rule(rule) => self.rule(rule),
        }
    }

    /// Checks what only the whole file shows.
    fn finish(&mut self) {
        for (name, _) in &self.settings.constants {
            if !self.out.constants.iter().any(|c| c.name == *name) && self.errors.is_empty() {
                let names = self.out.constants.iter().map(|c| c.name.as_str());
                let similar = similar_names(name, names).join("`, `");
                let mut error = Diagnostic::new(
                    Stage::Usage,
                    format!("`-D {name}`: the model has no constant `{name}`"),
                );
                if !similar.is_empty() {
                    error = error.note(format!("similar constants: `{similar}`"));
                }
                self.report(error);
            }
        }
    }

    /// Runs a part in a scope of its own.
    fn in_scope<T>(&mut self, part: impl FnOnce(&mut Self) -> T) -> T {
        self.scopes.push(AHashMap::default());
        let result = part(self);
        self.scopes.pop();
        result
    }
    /// Declares a name in the innermost scope.
    fn declare(&mut self, name: &Name, meaning: Meaning, role: NameRole, whole: Span, note: &str) {
        if matches!(name.text.as_str(), "true" | "false") {
            let message = format!("`{}` cannot be declared: it is a value of `boolean`", name.text);
            self.report(Diagnostic::at(Stage::Type, name.span, message));
            return;
        }
        let says = if role == NameRole::Local || whole == name.span {
            self.signature(name, meaning)
        } else {
            line(self.source_text(whole))
        };
        let local = self.scopes.len() > 2;
        let binding = match self.declared.get(&name.span.start) {
            Some(binding) => *binding,
            None => {
                let binding = self.naming.declare(role, &name.text, name.span, whole, says);
                self.naming.bindings[binding].note = note.into();
                if local {
                    self.naming.bindings[binding].scope = Some(self.body);
                }
                self.declared.insert(name.span.start, binding);
                self.mentioned.insert(name.span.start);
                binding
            }
        };
        let entity = Entity { meaning, binding, span: name.span };
        let scope = self.scopes.last_mut().expect("a scope is open");
        if let Some(other) = scope.get(&name.text) {
            let message = format!("`{}` is declared twice", name.text);
            let error = Diagnostic::at(Stage::Type, name.span, message)
                .related(other.span, "the first declaration");
            return self.report(error);
        }
        scope.insert(name.text.clone(), entity);
    }
    /// Returns `name: type` for editors.
    fn signature(&self, name: &Name, meaning: Meaning) -> String {
        let ty = match meaning {
            Meaning::Constant(ty, _) | Meaning::Type(ty) => ty,
            Meaning::Global(id) => self.out.globals[id.index()].ty,
            Meaning::Local(id, _) => self.frame.get(id).ty,
            Meaning::Function(_) | Meaning::Rejected => return name.text.clone(),
        };
        format!("{}: {}", name.text, self.out.types.text(ty))
    }
    /// Declares the names of a declaration with an error.
    fn declare_rejected(&mut self, names: &[Name], whole: Span) {
        for name in names {
            self.declare(name, Meaning::Rejected, NameRole::Local, whole, "");
        }
    }
    /// Adds a local and declares its name.
    fn declare_local(
        &mut self,
        name: &Name,
        ty: TypeId,
        kind: LocalKind,
        readonly: Option<&'static str>,
        note: &str,
    ) -> LocalId {
        let local = self.frame.add(Local { name: name.text.clone(), span: name.span, ty, kind });
        self.declare(name, Meaning::Local(local, readonly), NameRole::Local, name.span, note);
        local
    }
    fn find(&self, name: &str) -> Option<Entity> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name)).copied()
    }
    fn mention(&mut self, span: Span, binding: usize) {
        if self.mentioned.insert(span.start) {
            self.naming.mention(span, binding);
        }
    }
    /// Resolves a name.
    fn resolve(&mut self, name: &str, span: Span, expected: &str) -> Result<Meaning> {
        if let Some(entity) = self.find(name) {
            self.mention(span, entity.binding);
            return match entity.meaning {
                Meaning::Rejected => Err(silent(span)),
                meaning => Ok(meaning),
            };
        }
        if self.settings.source.is_some_and(|source| source != span.source)
            && let Some((ty, value)) = self.element(name)
        {
            return Ok(Meaning::Constant(ty, value));
        }
        let known = self.scopes.iter().flat_map(|scope| scope.keys().map(String::as_str));
        let mut similar = similar_names(name, known);
        similar.dedup();
        let mut error = Diagnostic::at(
            Stage::Type,
            span,
            format!("unknown name `{name}`, expected {expected}"),
        );
        if !similar.is_empty() {
            error = error.note(format!("similar names: `{}`", similar.join("`, `")));
        }
        Err(error)
    }
    /// Returns the element of a scalarset with a name such as `Node_1`.
    fn element(&self, name: &str) -> Option<(TypeId, i64)> {
        let (set, number) = name.rsplit_once('_')?;
        let number: i64 = number.parse().ok()?;
        let all = (0..self.out.types.all.len()).map(TypeId::new);
        all.into_iter().find_map(|ty| match self.out.types.kind(ty) {
            TypeKind::Scalarset { first, size }
                if self.out.types.get(ty).name.as_deref() == Some(set)
                    && (1..=i64::from(*size)).contains(&number) =>
            {
                Some((ty, first + number - 1))
            }
            _ => None,
        })
    }
    /// True if this expression is the word `undefined`, which only CMurphi reserves.
    fn is_undefined_word(&self, tree: &Tree) -> bool {
        matches!(&tree.kind, crate::ast::ExprKind::Name(name)
            if name.eq_ignore_ascii_case("undefined") && self.find(name).is_none())
    }
}
