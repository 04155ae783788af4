//! Output of every front end: a model with typed labels, and everything else that is known of it.

use crate::state_conditions::ConditionedFormula;
use mu_base::ids::LabelId;
use mu_base::{Diagnostic, SourceId};
use mu_compile::Compiled;
use mu_conform::interface::Interface;
use mu_data::expr::DataSpec;
use mu_lts::Lts;
use mu_model::Model;
use mu_model::from_lts::LtsModel;
use mu_murphi::labels::NamedSubset;
use mu_process::labels::declared::DeclaredLabels;
use mu_process::labels::inferred::InferredLabels;
use mu_process::labels::{ActionDecl, ActionLabels};
use mu_syntax::ast::{ActionFormulaKind, FormulaFile, Node, RegularKind, StateFormulaKind};
use mu_syntax::template::Param;
use std::fmt;
use std::sync::Arc;

/// Model with labels that formulas can match.
///
/// Terminations are part of the model ([`Model::deadlock_explainer`]).
pub struct Loaded {
    /// The model for the engines.
    pub model: Arc<dyn Model>,
    /// The labels for matching with formulas. Their arguments are expressions over `data`.
    pub labels: Arc<dyn ActionLabels>,
    /// Data types of the labels, which formulas may use.
    pub data: DataSpec,
    /// The declared actions.
    pub actions: Vec<ActionDecl>,
    /// True if data and actions were declared, false if they were inferred from the texts of
    /// labels.
    pub declared: bool,
    /// Parameters with their values, in the order of their declarations.
    pub parameters: Vec<(String, String)>,
    /// The stored transition system, if the file contains one.
    pub stored: Option<Arc<Lts>>,
    /// The compiled specification, if the model is one.
    pub compiled: Option<Arc<Compiled>>,
    /// The bounded store buffers of the model, if it has any.
    pub buffers: Option<Arc<dyn StoreBuffers>>,
    /// The labels that are memory operations, if the front end knows them.
    pub interface: Option<Interface>,
    /// Names for formulas.
    pub names: FormulaNames,
    /// Label of transitions with which the model fails, such as a violated assertion: its behaviour
    /// ends there.
    pub failure: Option<String>,
}

/// Names that a model gives to formulas about it.
#[derive(Clone, Debug, Default)]
pub struct FormulaNames {
    /// Action of the transitions from the initial state to the start states, if there are several.
    pub start: Option<String>,
    /// Names for parts of sorts, which formulas may use as sorts.
    pub subsets: Vec<NamedSubset>,
}

impl FormulaNames {
    /// Parses a formula for the initial state of the model: it holds in each start state. `all`:
    /// the formulas of the run with conditions, this one included.
    ///
    /// # Errors
    /// The text is no formula.
    pub fn parse(
        &self,
        formula: &ConditionedFormula,
        source: SourceId,
        all: &[&ConditionedFormula],
    ) -> Result<FormulaFile, Diagnostic> {
        let file = formula.parse(source, all, &self.subsets)?;
        let Some(start) = &self.start else { return Ok(file) };
        let span = file.formula.span;
        let name = Node { kind: start.clone(), span };
        let action = Node { kind: ActionFormulaKind::MultiAction(vec![(name, Vec::new())]), span };
        let step = Node { kind: RegularKind::Action(Box::new(action)), span };
        let kind = StateFormulaKind::Must(Box::new(step), Box::new(file.formula));
        Ok(FormulaFile { formula: Node { kind, span }, ..file })
    }
}

/// Parameter that a file declares, which `-D NAME=VALUE` sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Name.
    pub name: String,
    /// Sort.
    pub sort: String,
    /// Value without `-D`; empty if the parameter must be set.
    pub default: String,
    /// Value in this reading; empty if there is none.
    pub value: String,
    /// Constraint beyond its sort; empty if there is none.
    pub constraint: String,
    /// Help text; empty if there is none.
    pub help: String,
}

impl From<&Param> for Parameter {
    fn from(p: &Param) -> Self {
        Self {
            name: p.name.clone(),
            sort: p.sort.word().to_string(),
            default: p.default.to_string(),
            value: p.value.to_string(),
            constraint: p.constraint.clone(),
            help: p.doc.clone(),
        }
    }
}

/// Formats a line for people: `name: Sort = default where constraint  help`.
impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.sort)?;
        for (before, part) in
            [(" = ", &self.default), (" where ", &self.constraint), ("  ", &self.help)]
        {
            if !part.is_empty() {
                write!(f, "{before}{part}")?;
            }
        }
        Ok(())
    }
}

/// Bounded store buffers of a model.
pub trait StoreBuffers: Send + Sync {
    /// True if the bound cut transitions so far: the model then has less behaviour than its
    /// program.
    fn were_cut(&self) -> bool;
}

/// The answer of a search before the model was built.
impl StoreBuffers for bool {
    fn were_cut(&self) -> bool {
        *self
    }
}

impl Loaded {
    /// Creates the output for a model with the given types of its labels.
    fn new(
        model: Arc<dyn Model>,
        labels: Arc<dyn ActionLabels>,
        data: DataSpec,
        actions: Vec<ActionDecl>,
        declared: bool,
    ) -> Self {
        Self {
            model,
            labels,
            data,
            actions,
            declared,
            parameters: Vec::new(),
            stored: None,
            compiled: None,
            buffers: None,
            interface: None,
            names: FormulaNames::default(),
            failure: None,
        }
    }

    /// Creates the output for a model that has all its labels from the beginning. The types of
    /// their arguments are inferred: Boolean values, numbers, and other values.
    ///
    /// # Errors
    /// Those of [`InferredLabels::new`].
    pub fn with_inferred_labels(model: Arc<dyn Model>) -> Result<Self, Diagnostic> {
        let texts: Vec<String> =
            (0..model.label_count()).map(|l| model.label_text(LabelId::new(l))).collect();
        let labels = InferredLabels::new(&texts)?;
        let (data, actions) = (labels.data().clone(), labels.actions().to_vec());
        Ok(Self::new(model, Arc::new(labels), data, actions, false))
    }

    /// Creates the output for a model with labels that declarations type.
    pub fn with_declared_labels(model: Arc<dyn Model>, labels: DeclaredLabels) -> Self {
        let (data, actions) = (labels.data().clone(), labels.actions().to_vec());
        Self::new(model, Arc::new(labels), data, actions, true)
    }

    /// Creates the output for a stored transition system. `labels`: its typed labels; `None`: the
    /// types are inferred.
    ///
    /// # Errors
    /// As [`Loaded::with_inferred_labels`].
    pub fn from_lts(lts: Arc<Lts>, labels: Option<DeclaredLabels>) -> Result<Self, Diagnostic> {
        let model = Arc::new(LtsModel::new(lts.clone()));
        let loaded = match labels {
            Some(labels) => Self::with_declared_labels(model, labels),
            None => {
                let labels = InferredLabels::new(&lts.table.texts)?;
                let (data, actions) = (labels.data().clone(), labels.actions().to_vec());
                Self::new(model, Arc::new(labels), data, actions, false)
            }
        };
        Ok(Self { stored: Some(lts), ..loaded })
    }
}

impl From<Compiled> for Loaded {
    fn from(compiled: Compiled) -> Self {
        let compiled = Arc::new(compiled);
        let (data, actions) = (compiled.process().data.clone(), compiled.process().actions.clone());
        let loaded = Self::new(compiled.clone(), compiled.clone(), data, actions, true);
        Self { compiled: Some(compiled), ..loaded }
    }
}
