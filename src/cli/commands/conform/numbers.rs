//! Machines with a parameter without a value as the number of operations (`-D N=any`), for
//! `conform --operations any`.
//!
//! Input: a specification with parameters up to which it counts. Output: its linear process over
//! symbolic constants, with an abstract model ([`mu_regions::Study`]) that has at least the runs of
//! every instance; and a few instances, on which violations are confirmed and checks run. So if no
//! run of the abstract model violates a memory model, no run of an instance does. The abstraction
//! verifies itself at every evaluation (docs/regions.md).

use super::sorts::{Sorts, TypedMachine};
use super::{ConformArgs, LoadedMachine, Operations, load_machine};
use crate::commands::check::{hidden_name, parameters};
use crate::output;
use crate::pipeline::Session;
use crate::pipeline::load::{Origin, hide_actions, show_actions};
use mu_base::{Diagnostic, Span, Stage};
use mu_compile::{Compiled, Confluence};
use mu_conform::interface::Interface;
use mu_formula::typed::{StateKind, TypedFormula, TypedStateFormula};
use mu_process::linearise;
use mu_process::typecheck::check_specification;
use mu_regions::{
    Levels, Study, SymbolicConstants, constant_counts, find_overload, with_parameters,
};
use mu_syntax::template;

/// Number of instances that confirm violations: those of the least values that the file admits.
const INSTANCES: usize = 7;
/// Number of values of the parameters that are tried for an instance.
const TRIED_VALUES: usize = 64;
/// The least value of an instance on which commits and values are checked.
pub(super) const CHECKED_VALUE: usize = 1;

/// A machine with parameters without a value.
pub(super) struct AnyNumber {
    /// The parameters.
    pub parameters: Vec<String>,
    /// The interface, with values in the form of the labels.
    pub interface: Interface,
    /// The declarations of actions.
    pub declared: Vec<(String, Span)>,
    /// Instances, by the value of the parameters.
    pub instances: Vec<LoadedMachine>,
    /// The value of the parameters in each instance, ascending.
    pub values: Vec<usize>,
    compiled: Compiled,
    defined: SymbolicConstants,
    formula: TypedFormula,
}

/// Fills in the parameters of a machine.
fn expand_parameters(
    session: &mut Session,
    args: &ConformArgs,
    text: &str,
) -> Result<template::ExpandedText, Diagnostic> {
    let pairs = session.common.define.iter().filter_map(|d| d.split_once('='));
    let defines: Vec<(String, String)> =
        pairs.map(|(n, v)| (n.trim().to_string(), v.trim().to_string())).collect();
    let name = args.model.display().to_string();
    template::expand(&name, text, &defines, &mut session.sources)
}

/// Gives the parameters without a value that count constants or components, such as the number of
/// processors, the values of the file. Returns their names with these values: monitors follow
/// processors, addresses, and values by name, so a proof is about these numbers only.
pub(super) fn fix_sizes(
    session: &mut Session,
    args: &ConformArgs,
) -> Result<Vec<(String, String)>, Diagnostic> {
    let names = parameters(session);
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let text = session.read(&args.model)?;
    let sizes: Vec<String> = constant_counts::counting_parameters(&text)
        .into_iter()
        .filter(|s| names.contains(s))
        .collect();
    if sizes.is_empty() {
        return Ok(Vec::new());
    }
    let name_of = |define: &String| define.split_once('=').map(|d| d.0.trim().to_string());
    session.common.define.retain(|d| !name_of(d).is_some_and(|name| sizes.contains(&name)));
    let params = expand_parameters(session, args, &text)?.params;
    let fixed = params.iter().filter(|p| sizes.contains(&p.name));
    Ok(fixed.map(|p| (p.name.clone(), p.value.to_string())).collect())
}

impl AnyNumber {
    /// Reads a machine; `None` if all parameters have values.
    pub(super) fn read(
        session: &mut Session,
        args: &ConformArgs,
        interface: &Interface,
    ) -> Result<Option<AnyNumber>, Diagnostic> {
        let names = parameters(session);
        if names.is_empty() {
            return Ok(None);
        }
        let text = session.read(&args.model)?;
        let expanded = expand_parameters(session, args, &text)?;
        output::record_parameters(
            expanded.params.iter().map(|p| (p.name.clone(), p.value.to_string())),
        );
        let tree = mu_syntax::parse_specification(expanded.source, &expanded.text)?;
        if let Some(why) = find_overload(&tree) {
            return Err(why);
        }
        let declared = super::declarations(&tree);
        let mut spec = check_specification(&tree)?;
        let mut interface = interface.clone();
        let judged: Vec<&str> = interface
            .operations
            .iter()
            .flat_map(|o| o.begin.iter().chain([&o.end]))
            .chain(interface.memory())
            .map(|l| l.action.as_str())
            .collect();
        let observed: Vec<&str> = interface
            .observed
            .iter()
            .map(|l| l.action.as_str())
            .filter(|a| !judged.contains(a))
            .collect();
        show_actions(&mut spec, &judged);
        hide_actions(&mut spec, &observed);
        let constants: Vec<String> = expanded.constants.iter().map(|c| c.1.clone()).collect();
        let options = linearise::LineariserOptions::of_any_size(&constants);
        let process = session.linearise(&spec, &options)?;
        let (mut process, mut defined) = with_parameters(process, &constants)?;
        for (rigid, (parameter, _)) in defined.rigid.iter_mut().zip(&expanded.constants) {
            rigid.name.clone_from(parameter);
            process.data.signature.op_mut(rigid.op).name = hidden_name(parameter);
        }
        let compiled = Compiled::with_budget(process, &Confluence::None, &session.budget)?;
        let process = compiled.process();
        Sorts::check(
            &mut interface,
            TypedMachine { data: &process.data, actions: &process.actions, declared: true },
        )?;
        let formula = TypedFormula {
            data: process.data.clone(),
            actions: process.actions.clone(),
            fix_names: Vec::new(),
            formula: TypedStateFormula { kind: StateKind::True, span: Span::default() },
            as_written: false,
        };
        let (mut instances, mut values) = (Vec::new(), Vec::new());
        let mut refused = None;
        for value in 0..TRIED_VALUES {
            let before = session.common.define.clone();
            for define in &mut session.common.define {
                let name = define.split_once('=').map_or("", |d| d.0.trim()).to_string();
                if names.contains(&name) {
                    *define = format!("{name}={value}");
                }
            }
            // The sort of a parameter, or its `where`, excludes some values.
            let instance = match self::expand_parameters(session, args, &text) {
                Ok(_) => {
                    let origin = Origin::File(&args.model);
                    load_machine(session, &interface, &origin, Operations::Any).map(Some)
                }
                Err(why) => {
                    refused.get_or_insert(why);
                    Ok(None)
                }
            };
            session.common.define = before;
            if let Some(instance) = instance? {
                instances.push(instance);
                values.push(value);
            }
            if instances.len() == INSTANCES {
                break;
            }
        }
        if let (true, Some(why)) = (instances.is_empty(), refused) {
            return Err(why);
        }
        Ok(Some(AnyNumber {
            parameters: names,
            interface,
            declared,
            instances,
            values,
            compiled,
            defined,
            formula,
        }))
    }

    /// Returns the data and actions of the labels.
    pub(super) fn typed_machine(&self) -> TypedMachine<'_> {
        let process = self.compiled.process();
        TypedMachine { data: &process.data, actions: &process.actions, declared: true }
    }

    /// Analyses the numbers of the machine. Error: an operation on them that the abstraction does
    /// not support, with its place.
    pub(super) fn study(&self) -> Result<Study<'_>, Diagnostic> {
        let study = Study::new(&self.compiled, &self.defined, &self.formula, Levels::Coarse)?;
        match study.cases() {
            [_] => Ok(study),
            cases => {
                let message = format!(
                    "the order of numbers in the machine has {} cases, and only one is supported for programs of every length",
                    cases.len()
                );
                Err(Diagnostic::new(Stage::Unsupported, message))
            }
        }
    }
}
