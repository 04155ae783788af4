//! Conversion of linear processes, and of other open expressions such as those of equation systems,
//! to the typed terms of a file.
//!
//! A variable gets a name when its scope opens, different from all names visible there. Cost:
//! linear in the shared terms of each scope. Invariant: the names of two variables differ wherever
//! one could be taken for the other.

use super::Converter;
use ahash::AHashSet;
use mu_base::ids::{SortId, VarId};
use mu_base::{Diagnostic, Stage};
use mu_data::expr::{DataSpec, Expr};
use mu_lts::behaviour::{Process, Summand};
use mu_lts::typed::{Action, ActionRef, TermRef, TypedDeclarations, TypedPart};
use mu_process::labels::ActionDecl;
use mu_process::linear::LinearProcess;

/// Converter of open expressions over one data specification.
pub struct Terms(Converter);

/// Names in scope before a scope was opened.
pub struct ScopeMark {
    variables: ahash::AHashMap<(VarId, SortId), TermRef>,
    used: AHashSet<String>,
}

impl Terms {
    /// Converts the declarations of data.
    ///
    /// # Errors
    /// An equation has no typed form.
    pub fn new(data: &DataSpec) -> Result<Self, Diagnostic> {
        let mut converter = Converter::new(data);
        converter.declare()?;
        converter.variables.clear();
        converter.used.clear();
        Ok(Self(converter))
    }

    /// Declares actions.
    pub fn actions(&mut self, actions: &[ActionDecl]) -> Vec<ActionRef> {
        let mut numbers = Vec::new();
        for a in actions {
            let sorts = a.sorts.iter().map(|s| self.0.sort(*s)).collect();
            numbers.push(self.0.typed.action(Action { name: a.name.clone(), sorts }));
        }
        numbers
    }

    /// Opens a scope.
    pub fn open(&mut self) -> ScopeMark {
        ScopeMark { variables: self.0.variables.clone(), used: self.0.used.clone() }
    }

    /// Closes a scope: its variables lose their names.
    pub fn close(&mut self, mark: ScopeMark) {
        self.0.variables = mark.variables;
        self.0.used = mark.used;
        self.0.open.clear();
    }

    /// Gives a variable a name.
    pub fn declare(&mut self, var: VarId) -> TermRef {
        self.0.declare_variable(var, None)
    }

    /// Gives several variables names.
    pub fn declare_all(&mut self, vars: &[VarId]) -> Vec<TermRef> {
        vars.iter().map(|v| self.declare(*v)).collect()
    }

    /// Converts an expression; all its free variables have names.
    ///
    /// # Errors
    /// A part of it has no typed form.
    pub fn term(&mut self, e: &Expr) -> Result<TermRef, Diagnostic> {
        self.0.term(e)
    }

    /// Converts expressions.
    ///
    /// # Errors
    /// A part of one has no typed form.
    pub fn terms(&mut self, all: &[Expr]) -> Result<Vec<TermRef>, Diagnostic> {
        self.0.terms(all)
    }

    /// Returns all converted terms.
    pub fn finish(self) -> TypedDeclarations {
        self.0.typed
    }
}

/// Converts a linear process to typed terms.
///
/// # Errors
/// An expression has no typed form, or the process is probabilistic.
pub fn process(linear: &LinearProcess) -> Result<Process, Diagnostic> {
    if linear.is_probabilistic() {
        let message = "this process is probabilistic (`dist`), and `.lps` files are written without probabilities";
        return Err(Diagnostic::new(Stage::Unsupported, message)
            .note("use a file name that does not end in .lps: the text form has probabilities"));
    }
    let mut terms = Terms::new(&linear.data)?;
    let actions = terms.actions(&linear.actions);
    let globals = terms.declare_all(&linear.globals);
    let mut initial = Vec::new();
    for p in &linear.params {
        initial.push(terms.term(&p.init)?);
    }
    let parameters: Vec<TermRef> = linear.params.iter().map(|p| terms.declare(p.var)).collect();
    let mut summands = Vec::new();
    for s in &linear.summands {
        let mark = terms.open();
        let variables = terms.declare_all(&s.sum_vars);
        let condition = terms.term(&s.guard)?;
        let mut parts = Vec::new();
        for a in &s.actions {
            parts.push(TypedPart {
                action: actions[a.action.index()],
                arguments: terms.terms(&a.args)?,
            });
        }
        let time = s.time.as_ref().map(|t| terms.term(t)).transpose()?;
        let mut assignments = Vec::new();
        for (i, value) in &s.updates {
            assignments.push((parameters[*i], terms.term(value)?));
        }
        terms.close(mark);
        summands.push(Summand { variables, condition, actions: parts, time, assignments });
    }
    Ok(Process { typed: terms.finish(), globals, parameters, summands, initial })
}
