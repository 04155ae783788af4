//! Typed labels from texts and declarations, which a file contains or a model named by the user
//! provides.
//!
//! In: the texts of a label table, the declarations of data and actions. Out: typed multi-actions
//! over that data, without times. Cost: each argument is parsed, type checked and evaluated once.
//! Invariant: a label that matches no declaration is an error, never a guess.

use super::{ActionDecl, ActionLabels, MultiAction, untimed_actions};
use mu_base::ids::{ActId, LabelId, OpId, SortId};
use mu_base::{Diagnostic, Span, Stage};
use mu_data::engine::{Engine, Program};
use mu_data::expr::{DataSpec, Expr};
use mu_data::print;
use mu_data::signature::Signature;
use mu_data::typecheck::{Checker, check_expression};
use mu_syntax::ast::Data;
use std::sync::Arc;

/// Typed labels of a table.
pub struct DeclaredLabels {
    data: DataSpec,
    actions: Vec<ActionDecl>,
    labels: Vec<Arc<MultiAction>>,
    /// Images of constants under each symmetry of the model, if they are known.
    images: Option<Vec<Vec<(OpId, OpId)>>>,
}

impl DeclaredLabels {
    /// Types the texts of a label table; the first is tau. Errors: a text is not a multi-action, no
    /// declared action, or more than one, has these argument sorts, or an argument does not
    /// evaluate.
    pub fn new(
        texts: &[String],
        data: DataSpec,
        actions: Vec<ActionDecl>,
    ) -> Result<Self, Diagnostic> {
        Self::from_texts(texts, data, actions, false)
    }

    /// Types the texts as [`DeclaredLabels::new`]. If several actions match, it is the one with the
    /// fewest conversions, as in a formula: for languages in which such actions are one.
    pub fn with_overloads(
        texts: &[String],
        data: DataSpec,
        actions: Vec<ActionDecl>,
    ) -> Result<Self, Diagnostic> {
        Self::from_texts(texts, data, actions, true)
    }

    fn from_texts(
        texts: &[String],
        mut data: DataSpec,
        actions: Vec<ActionDecl>,
        overloads: bool,
    ) -> Result<Self, Diagnostic> {
        let mut typed: Vec<MultiAction> = vec![MultiAction::new()];
        for text in texts.iter().skip(1) {
            let acts = untimed_actions(text).ok_or_else(|| {
                Diagnostic::new(Stage::Type, format!("the label `{text}` is not a multi-action"))
            })?;
            let mut multi = MultiAction::new();
            for (name, args) in &acts {
                multi.push(
                    act(&name.kind, args, &mut data, &actions, overloads)
                        .map_err(|why| why.note(format!("in the label `{text}`")))?,
                );
            }
            typed.push(multi);
        }
        let labels = evaluate_labels(typed, &mut data, &actions)?;
        Ok(Self { data, actions, labels, images: None })
    }

    /// Adds the images of constants under the symmetries of the model, each of which exchanges two
    /// constants, given by their names. Cost: linear in the operations for each exchange.
    pub fn with_exchanges(self, exchanges: &[[String; 2]]) -> Self {
        let signature = &self.data.signature;
        let constants = |name: &String| {
            let named = signature.ops().filter(move |(_, op)| op.name == *name);
            named.map(|(id, op)| (id, op.sort)).collect::<Vec<_>>()
        };
        let images = exchanges.iter().map(|[first, second]| {
            let (first, second) = (constants(first), constants(second));
            let of_one_sort = |&(a, sort): &(OpId, SortId)| {
                let b = second.iter().find(|b| b.1 == sort)?.0;
                Some([(a, b), (b, a)])
            };
            first.iter().filter_map(of_one_sort).flatten().collect()
        });
        let images = Some(images.collect());
        Self { images, ..self }
    }

    /// Returns the data specification of the labels.
    pub fn data(&self) -> &DataSpec {
        &self.data
    }
    /// Returns the text of a label, as a model with these actions prints it.
    pub fn text(&self, label: LabelId) -> String {
        let part = |(action, args): &(ActId, Vec<Expr>)| {
            let name = &self.actions[action.index()].name;
            let args: Vec<String> =
                args.iter().map(|e| print::expression(&self.data.signature, e)).collect();
            if args.is_empty() { name.clone() } else { format!("{name}({})", args.join(", ")) }
        };
        match self.labels[label.index()].as_slice() {
            [] => "tau".into(),
            parts => parts.iter().map(part).collect::<Vec<_>>().join("|"),
        }
    }
    /// Returns the declared actions.
    pub fn actions(&self) -> &[ActionDecl] {
        &self.actions
    }
}

/// Returns the normal forms of typed labels, in the order of a [`MultiAction`], and adds the
/// operations of their values to the data.
///
/// # Errors
/// An argument does not evaluate.
pub(super) fn evaluate_labels(
    typed: Vec<MultiAction>,
    data: &mut DataSpec,
    actions: &[ActionDecl],
) -> Result<Vec<Arc<MultiAction>>, Diagnostic> {
    let program = Program::compile(data)?;
    // Values are terms over the program's operations, so formulas over them need these as well.
    data.signature = program.signature().clone();
    let mut engine = Engine::new(program);
    let mut labels = Vec::with_capacity(typed.len());
    for multi in typed {
        let mut values = MultiAction::new();
        for (action, args) in multi {
            let sorts = &actions[action.index()].sorts;
            let args: Result<Vec<Expr>, Diagnostic> = args
                .iter()
                .zip(sorts)
                .map(|(a, sort)| engine.from_expr(a).map(|v| engine.to_expr_at(&v, *sort)))
                .collect();
            values.push((action, args?));
        }
        labels.push(Arc::new(sort_actions(&data.signature, values)));
    }
    Ok(labels)
}

/// Returns actions with values in the order of a [`MultiAction`].
pub(super) fn sort_actions(signature: &Signature, mut values: MultiAction) -> MultiAction {
    let order =
        |args: &[Expr]| args.iter().map(|a| print::expression(signature, a)).collect::<Vec<_>>();
    values.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| order(&a.1).cmp(&order(&b.1))));
    values
}

/// Finds the declared action that matches, and types its arguments. Error: several actions match,
/// as `a(1)` matches `a: Nat` and `a: Int`; with `overloads`, it is the one with the fewest
/// conversions.
fn act(
    name: &str,
    args: &[Data],
    data: &mut DataSpec,
    actions: &[ActionDecl],
    overloads: bool,
) -> Result<(ActId, Vec<Expr>), Diagnostic> {
    let candidates: Vec<usize> = (0..actions.len())
        .filter(|i| actions[*i].name == name && actions[*i].sorts.len() == args.len())
        .collect();
    if overloads && candidates.len() > 1 {
        let sorts: Vec<Vec<SortId>> =
            candidates.iter().map(|i| actions[*i].sorts.clone()).collect();
        let mut checker = Checker::new(std::mem::take(data));
        let found = checker.check_call("action", name, Span::default(), args, &sorts);
        *data = checker.data;
        if let Ok((i, args)) = found {
            return Ok((ActId::new(candidates[i]), args));
        }
    }
    let (mut found, mut refusal) = (None, None);
    for i in candidates {
        let checked: Result<Vec<Expr>, Diagnostic> = args
            .iter()
            .zip(&actions[i].sorts)
            .map(|(arg, sort)| check_expression(arg, data, Some(*sort)))
            .collect();
        match (checked, &found) {
            (Ok(args), None) => found = Some((ActId::new(i), args)),
            (Ok(_), Some(_)) if overloads => {}
            (Ok(_), Some((other, _))) => {
                let sorts = |i: usize| {
                    let sorts = actions[i].sorts.iter();
                    let texts: Vec<String> = sorts.map(|s| data.signature.sorts.text(*s)).collect();
                    format!("{name}: {}", texts.join(" # "))
                };
                return Err(Diagnostic::new(
                    Stage::Type,
                    format!("several actions match: `{}` and `{}`", sorts(other.index()), sorts(i)),
                ));
            }
            (Err(why), _) => refusal = Some(why),
        }
    }
    if let Some(found) = found {
        return Ok(found);
    }
    Err(match refusal {
        Some(why) => Diagnostic::new(
            Stage::Type,
            format!("an argument of `{name}` does not have its declared sort: {}", why.message),
        ),
        None => Diagnostic::new(
            Stage::Type,
            format!("no action `{name}` with {} arguments is declared", args.len()),
        ),
    })
}

impl ActionLabels for DeclaredLabels {
    fn multi_action(&self, label: LabelId) -> Arc<MultiAction> {
        self.labels[label.index()].clone()
    }
    fn constructor_images(&self, symmetry: usize) -> Option<&[(OpId, OpId)]> {
        self.images.as_ref()?.get(symmetry).map(Vec::as_slice)
    }
}
