//! Hiding and renaming of actions while a model is read (`--hide`, `--rename` of `check` and
//! `simulate`).
//!
//! A specification becomes `hide({…}, rename({…}, init))`, so that its labels keep their types and
//! evidence shows what is hidden; actions with the new name `tau` are hidden before. A stored
//! system is relabelled by [`mu_lts::relabel`]. New names are declared with the sorts of the old
//! ones. Cost: linear in the names.

use crate::{FrontEnd, Input};
use mu_base::{Diagnostic, Span, Stage};
use mu_data::typecheck::with_suggestions;
use mu_lts::relabel::{Relabel, name_of};
use mu_process::labels::ActionDecl;
use mu_process::spec::{Proc, ProcKind, ProcSpec};

/// Hides and renames actions of a specification.
///
/// # Errors
/// A name that is no action; an action with arguments.
pub(crate) fn relabel_specification(
    mut spec: ProcSpec,
    Relabel { rename, hide }: &Relabel,
) -> Result<ProcSpec, Diagnostic> {
    let olds = rename.iter().map(|pair| ("--rename", &pair.0));
    for (option, name) in olds {
        expect_action(&spec.actions, option, name)?;
    }
    // The first renaming of a name counts.
    let is_first = |i: usize, old: &str| rename[..i].iter().all(|(other, _)| other != old);
    let first = || rename.iter().enumerate().filter(|(i, (old, _))| is_first(*i, old));
    let internal: Vec<String> =
        first().filter(|(_, pair)| pair.1 == "tau").map(|(_, pair)| pair.0.clone()).collect();
    let rename: Vec<(String, String)> =
        first().filter(|(_, pair)| pair.1 != "tau").map(|(_, pair)| pair.clone()).collect();
    for (old, new) in &rename {
        expect_name("--rename", new)?;
        declare(&mut spec.actions, old, new);
    }
    for name in hide {
        expect_action(&spec.actions, "--hide", name)?;
    }
    let apply = |spec: &mut ProcSpec, with: &dyn Fn(Box<Proc>) -> ProcKind| {
        let empty = Proc { kind: ProcKind::Delta, span: Span::default() };
        let init = std::mem::replace(&mut spec.init, empty);
        let span = init.span;
        spec.init = Proc { kind: with(Box::new(init)), span };
    };
    if !internal.is_empty() {
        apply(&mut spec, &|init| ProcKind::Hide(internal.clone(), init));
    }
    if !rename.is_empty() {
        apply(&mut spec, &|init| ProcKind::Rename(rename.clone(), init));
    }
    if !hide.is_empty() {
        apply(&mut spec, &|init| ProcKind::Hide(hide.clone(), init));
    }
    Ok(spec)
}

/// Declares the new name of an action with the sorts of the old one, unless it is declared.
pub(crate) fn declare(actions: &mut Vec<ActionDecl>, old: &str, new: &str) {
    let sorts: Vec<_> = actions.iter().filter(|a| a.name == old).map(|a| a.sorts.clone()).collect();
    for sorts in sorts {
        if !actions.iter().any(|a| a.name == new && a.sorts == sorts) {
            actions.push(ActionDecl { name: new.into(), sorts });
        }
    }
}

/// Rejects names for a model of another kind.
pub(crate) fn expect_none(
    front_end: &dyn FrontEnd,
    input: &Input<'_>,
    relabel: &Relabel,
) -> Result<(), Diagnostic> {
    let properties = front_end.properties();
    if relabel.is_empty() || properties.specification || properties.stored || properties.rejected {
        return Ok(());
    }
    let message = format!(
        "`--hide` and `--rename` of this command are for specifications and transition systems; `{}` is {}",
        input.name(),
        front_end.language()
    );
    Err(Diagnostic::new(Stage::Usage, message)
        .note("`explore MODEL --hide … --out FILE.aut` writes the transition system"))
}

fn expect_name(option: &str, name: &str) -> Result<(), Diagnostic> {
    if name_of(name) == name {
        return Ok(());
    }
    let text = format!("`{option} {name}`: expected the name of an action, without arguments");
    Err(Diagnostic::new(Stage::Usage, text)
        .note("transition systems support actions with arguments: `explore MODEL --out FILE.aut`"))
}

fn expect_action(actions: &[ActionDecl], option: &str, name: &str) -> Result<(), Diagnostic> {
    expect_name(option, name)?;
    if actions.iter().any(|a| a.name == name) {
        return Ok(());
    }
    let error =
        Diagnostic::new(Stage::Usage, format!("`{option} {name}`: the model has no such action"));
    Err(with_suggestions(error, name, actions.iter().map(|a| a.name.as_str()), "actions"))
}
