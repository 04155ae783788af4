//! Translation of a Murphi model with a scalarset of any size to a parameterised system.
//!
//! In: a typed [`Model`] and the scalarset that has any number of elements. Out: the syntax tree of
//! a system of [`mu_cubicle`] with a process for each element, which `mu_prove` decides for every
//! number of processes.
//!
//! Technique: symbolic execution. A rule, with values for its finite parameters, is executed from a
//! state in which each variable has its own content. Conditions divide the execution into paths;
//! each is a transition: its conditions are the guard, its writes the updates. Elements of the
//! scalarset are processes; an element that a variable stores becomes a parameter of the path when
//! it is used as an index. A loop over the scalarset is an update of all cells, a `forall` a guard
//! for all other processes. Claims and every error of an execution become claims of the system.
//!
//! Invariant: each step of the model, for each size of the scalarset, is one of the system, and so
//! is each failure (of an invariant, an assertion, or an error in a guard, rule, or property). So a
//! proof of the system is one of the model. The system may have more steps: nested quantifiers in
//! guards, assumptions at the top level, and priorities are no conditions. Deadlocks, `cover` and
//! `liveness` are no part of it.
//!
//! Variables that are always defined have no value for *undefined*. They are found by induction:
//! the translation is repeated without those that a start state omits or a step undefines.
//!
//! Cost: linear in the number of paths, which is limited by `MAX_PATHS`.

pub mod correspondence;
mod expressions;
mod output;
mod path;
mod statements;
mod symbols;

use self::correspondence::Correspondence;
use crate::lexer::{Key, Tok, tokens};
use crate::typed::{Binding, Claim, Domain, Expr, LocalId, Model, Stmt, TypeId, TypeKind};
use mu_base::{Diagnostic, SourceId, Span, Stage};
use mu_cubicle::ast::File;
use path::{Path, Value};
use std::collections::BTreeSet;
use symbols::Symbols;

/// Number of paths of all rules together; a larger model is rejected.
const MAX_PATHS: usize = 100_000;

type Result<T, E = Diagnostic> = std::result::Result<T, E>;
/// Paths, each with a result.
type Forks<T> = Result<Vec<(Path, T)>>;

fn reject<T>(span: Span, message: impl Into<String>) -> Result<T> {
    Err(Diagnostic::at(Stage::Unsupported, span, message))
}

/// System with the parts of a state of the model that its symbols contain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Translation {
    /// The system.
    pub file: File,
    /// Its symbols.
    pub correspondence: Correspondence,
}

/// Translates a model for every size of a scalarset, which [`scalarset_of_size`] returns.
///
/// # Errors
///
/// A construct that has no translation, with its place.
pub fn parametric(model: &Model, node: TypeId) -> Result<File> {
    Ok(translate(model, node)?.file)
}

/// Translates a model as [`parametric`], and declares the symbols of the system.
///
/// # Errors
///
/// As those of [`parametric`].
pub fn translate(model: &Model, node: TypeId) -> Result<Translation> {
    let mut undefined = BTreeSet::new();
    loop {
        let mut translator = Translator::new(model, node, undefined.clone())?;
        translator.run()?;
        if translator.undefined == undefined {
            return translator.file();
        }
        undefined = translator.undefined;
    }
}

/// Returns the scalarset with the size that a constant names, given two models of one text that
/// differ in the value of the constant.
///
/// # Errors
///
/// The constant has another use in the text than one `scalarset(NAME)`.
pub fn scalarset_of_size(
    name: &str,
    (source, text): (SourceId, &str),
    (model, other): (&Model, &Model),
) -> Result<TypeId> {
    let all = tokens(source, text)?;
    let word = |span: Span| &text[span.start as usize..span.end as usize];
    let mut sizes = 0;
    for (i, token) in all.iter().enumerate() {
        if token.tok != Tok::Name || word(token.span) != name {
            continue;
        }
        let before = |n: usize| i.checked_sub(n).map(|at| all[at].tok);
        let is_size = before(1) == Some(Tok::Sign("("))
            && before(2) == Some(Tok::Key(Key::Scalarset))
            && all.get(i + 1).map(|t| t.tok) == Some(Tok::Sign(")"));
        let is_declared = matches!(all.get(i + 1).map(|t| t.tok), Some(Tok::Sign(":" | "=")))
            && model.constants.iter().any(|c| c.span == token.span);
        sizes += usize::from(is_size);
        if !is_size && !is_declared {
            let text = format!("`{name}` is more than the size of a scalarset here");
            return reject(token.span, text);
        }
    }
    let size = |m: &Model, at: usize| match m.types.all.get(at).map(|t| &t.kind) {
        Some(TypeKind::Scalarset { size, .. }) => Some(*size),
        _ => None,
    };
    let differs = |at: &usize| size(model, *at) != size(other, *at);
    let found: Vec<usize> = (0..model.types.all.len()).filter(differs).collect();
    match found[..] {
        [at] if sizes == 1 => Ok(TypeId::new(at)),
        _ => {
            let text = format!("`{name}` is the size of {sizes} scalarsets, expected one");
            Err(Diagnostic::new(Stage::Unsupported, text))
        }
    }
}

/// Failure of the model.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Failure {
    /// The path to it.
    path: Path,
    /// The construct that fails.
    span: Span,
}

/// Step of a rule: a path with its writes.
struct Step {
    name: String,
    span: Span,
    path: Path,
}

struct Translator<'m> {
    model: &'m Model,
    /// The scalarset of any size.
    node: TypeId,
    symbols: Symbols,
    /// Symbols that may be undefined.
    undefined: BTreeSet<u32>,
    /// True while a start state is executed, where each variable is undefined.
    is_start: bool,
    /// Number of the current frame, and of the next one.
    frame: u32,
    frames: u32,
    /// Number of calls around the current statement.
    depth: u32,
    /// Number of the next bound process.
    bound: u32,
    /// Bound processes that are none of the parameters of their path.
    others: BTreeSet<u32>,
    /// Number of bound processes in scope; paths inside get no new parameters.
    scope: u32,
    /// Number of loops over the scalarset around the current statement, executed for all elements.
    loops: u32,
    /// True while failures are those of another execution of the same statements.
    is_silent: bool,
    /// Cells that were read.
    reads: Vec<path::Cell>,
    /// Parts of locals that were read while they had no value.
    blanks: Vec<path::LocalPart>,
    /// Frames of the locals that were written.
    written_frames: Vec<u32>,
    paths: usize,
    starts: Vec<Path>,
    steps: Vec<Step>,
    failures: Vec<Failure>,
}

impl<'m> Translator<'m> {
    fn new(model: &'m Model, node: TypeId, undefined: BTreeSet<u32>) -> Result<Self> {
        Ok(Translator {
            symbols: Symbols::new(model, node)?,
            model,
            node,
            undefined,
            is_start: false,
            frame: 0,
            frames: 1,
            depth: 0,
            bound: 0,
            others: BTreeSet::new(),
            scope: 0,
            loops: 0,
            is_silent: false,
            reads: Vec::new(),
            blanks: Vec::new(),
            written_frames: Vec::new(),
            paths: 0,
            starts: Vec::new(),
            steps: Vec::new(),
            failures: Vec::new(),
        })
    }
    /// Executes all start states, rules and properties.
    fn run(&mut self) -> Result<()> {
        let model = self.model;
        self.is_start = true;
        for start in &model.starts {
            for path in self.bind(&start.bindings, Path::default())? {
                let ends = self.body(path, &start.body)?;
                self.starts.extend(ends);
            }
        }
        for path in self.starts.clone() {
            self.define(&path)?;
        }
        self.is_start = false;
        if let Some(failure) = self.failures.first() {
            return reject(failure.span, "a start state may fail");
        }
        for (number, rule) in model.rules.iter().enumerate() {
            let name = rule.name.clone().unwrap_or_else(|| format!("rule {}", number + 1));
            for path in self.bind(&rule.bindings, Path::default())? {
                let enabled = match &rule.guard {
                    Some(guard) => self.paths_with_condition(path, guard, true)?,
                    None => vec![path],
                };
                if enabled.iter().any(|path| !path.writes.is_empty()) {
                    return reject(rule.span, "a guard that writes variables");
                }
                for path in enabled {
                    for path in self.body(path, &rule.body)? {
                        self.note_undefined(&path);
                        self.steps.push(Step { name: name.clone(), span: rule.span, path });
                    }
                }
            }
        }
        for property in &model.properties {
            for path in self.bind(&property.bindings, Path::default())? {
                // An assumption restricts the states; without it there are more.
                let broken = self.paths_with_condition(path, &property.condition, false)?;
                if property.claim == Claim::Assert {
                    let span = property.span;
                    self.failures.extend(broken.into_iter().map(|path| Failure { path, span }));
                }
            }
        }
        Ok(())
    }
    /// Executes a body up to its end.
    fn body(&mut self, path: Path, body: &[Stmt]) -> Result<Vec<Path>> {
        Ok(self.execute(path, body)?.into_iter().map(|(path, _)| path).collect())
    }
    /// Returns the paths on which a condition has a value.
    fn paths_with_condition(
        &mut self,
        path: Path,
        condition: &Expr,
        value: bool,
    ) -> Result<Vec<Path>> {
        let all = self.condition(path, condition)?;
        Ok(all.into_iter().filter(|(_, is)| *is == value).map(|(path, _)| path).collect())
    }
    /// Binds the parameters and aliases around a rule, start state or property.
    fn bind(&mut self, bindings: &[Binding], path: Path) -> Result<Vec<Path>> {
        let mut paths = vec![path];
        for binding in bindings {
            let mut next = Vec::new();
            for path in paths {
                match binding {
                    Binding::Parameter { local, domain, .. } => {
                        next.extend(self.bind_each(path, *local, domain)?)
                    }
                    Binding::Alias(alias) => next.extend(self.alias(path, alias)?),
                    Binding::Choose { span, .. } => {
                        return reject(*span, "`choose` has no proof for every size");
                    }
                }
            }
            paths = next;
        }
        Ok(paths)
    }
    /// Returns a path for each value of a parameter.
    fn bind_each(&mut self, path: Path, local: LocalId, domain: &Domain) -> Result<Vec<Path>> {
        let mut next = Vec::new();
        if self.is_node(domain) {
            for mut path in path.with_each_process() {
                let chosen = path.1;
                path.0.set(self.frame, local, Vec::new(), Value::Process(chosen));
                next.push(path.0);
            }
            return Ok(next);
        }
        for (path, values) in self.values(path, domain)? {
            for value in values {
                let mut path = path.clone();
                path.set(self.frame, local, Vec::new(), Value::Constant(value));
                next.push(path);
            }
        }
        Ok(next)
    }
    fn is_node(&self, domain: &Domain) -> bool {
        matches!(domain, Domain::Type(ty) if *ty == self.node)
    }
    /// Records a failure of a path.
    fn fail(&mut self, path: &Path, span: Span) {
        if !self.is_silent {
            self.failures.push(Failure { path: path.clone(), span });
        }
    }
    /// Counts a path.
    fn count(&mut self, span: Span) -> Result<()> {
        self.paths += 1;
        if self.paths > MAX_PATHS {
            return reject(span, format!("more than {MAX_PATHS} paths through the rules"));
        }
        Ok(())
    }
}
