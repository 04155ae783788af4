//! Files in the language `bell`: the annotations of the instructions of a language.
//!
//! Input: the text of a `.bell` file (Alglave, Cousot, Maranget 2016, section on Bell). It is a
//! `cat` file that declares enumerations of annotations (`enum Barriers = 'rmb || 'wmb`) and the
//! annotations of kinds of instructions (`instructions F[Barriers]`), and defines sets and flags
//! for the model that follows. Output: the declarations; the rest is compiled together with the
//! model.
//!
//! The events with an annotation form the set with its name. The first letter is in upper case:
//! `'rcu-lock` gives `Rcu-lock`.

use std::collections::{BTreeMap, BTreeSet};

use mu_base::{Diagnostic, SourceId, Stage};

use super::ast::{Exp, ExpressionKind, IfCondition, Statement};
use super::parser::parse;

/// The declarations of a `.bell` file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bell {
    /// All annotations, in the order of the file.
    pub annotations: Vec<String>,
    /// For each kind of instruction, the annotations of each of its positions. Several declarations
    /// of one kind are united.
    pub instructions: BTreeMap<String, Vec<BTreeSet<String>>>,
    /// The variants that conditions of the file mention: `if "lkmmv2" …`.
    pub variants: BTreeSet<String>,
}

impl Bell {
    /// Parses a file.
    ///
    /// # Errors
    ///
    /// A syntax error; a list of annotations that is neither an enumeration of the file nor a set
    /// of annotations.
    pub fn parse(source: SourceId, text: &str) -> Result<Self, Diagnostic> {
        let file = parse(source, text)?;
        let mut bell = Bell::default();
        let mut enums: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for ins in &file.body {
            match &ins.node {
                Statement::Enum(name, tags) => {
                    let all = tags.iter().map(|t| t.text.clone());
                    for tag in
                        all.clone().filter(|t| !bell.annotations.contains(t)).collect::<Vec<_>>()
                    {
                        bell.annotations.push(tag);
                    }
                    enums.insert(&name.text, all.collect());
                }
                Statement::Instructions(kind, positions) => {
                    let list = bell.instructions.entry(kind.text.clone()).or_default();
                    for (i, position) in positions.iter().enumerate() {
                        let tags = annotations(position, &enums)?;
                        match list.get_mut(i) {
                            Some(known) => known.extend(tags),
                            None => list.push(tags),
                        }
                    }
                }
                Statement::Test(test) => variants(&test.of, &mut bell.variants),
                Statement::Let(_, bindings, _) => {
                    bindings.iter().for_each(|b| variants(&b.value, &mut bell.variants));
                }
                Statement::If(condition, ..) => conditions(condition, &mut bell.variants),
                _ => {}
            }
        }
        Ok(bell)
    }
    /// Returns the name of the set of the events with an annotation.
    pub fn set_name(annotation: &str) -> String {
        let mut name = annotation.to_string();
        if let Some(first) = name.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        name
    }
    /// True if an instruction of a kind may have an annotation.
    pub fn allows(&self, kind: &str, annotation: &str) -> bool {
        self.instructions
            .get(kind)
            .is_some_and(|positions| positions.iter().any(|p| p.contains(annotation)))
    }
}

/// Returns the annotations that an argument of `instructions` lists.
fn annotations(
    exp: &Exp,
    enums: &BTreeMap<&str, BTreeSet<String>>,
) -> Result<BTreeSet<String>, Diagnostic> {
    let wrong = || {
        Diagnostic::at(
            Stage::Type,
            exp.span,
            "expected an enumeration of this file or a set of annotations",
        )
    };
    match &exp.node {
        ExpressionKind::Name(name) => enums.get(name.as_str()).cloned().ok_or_else(wrong),
        ExpressionKind::Tag(tag) => Ok(BTreeSet::from([tag.clone()])),
        ExpressionKind::Empty => Ok(BTreeSet::new()),
        ExpressionKind::Braces(parts) => {
            let mut all = BTreeSet::new();
            for part in parts {
                all.extend(annotations(part, enums)?);
            }
            Ok(all)
        }
        _ => Err(wrong()),
    }
}

/// Collects the variants in the conditions of an expression.
fn variants(exp: &Exp, out: &mut BTreeSet<String>) {
    match &exp.node {
        ExpressionKind::If(condition, yes, no) => {
            conditions(condition, out);
            variants(yes, out);
            variants(no, out);
        }
        ExpressionKind::Unary(_, a) => variants(a, out),
        ExpressionKind::Binary(_, a, b) => {
            variants(a, out);
            variants(b, out);
        }
        _ => {}
    }
}

fn conditions(condition: &IfCondition, out: &mut BTreeSet<String>) {
    match condition {
        IfCondition::Variant(name) => {
            out.insert(name.clone());
        }
        IfCondition::Not(a) => conditions(a, out),
        IfCondition::And(a, b) | IfCondition::Or(a, b) => {
            conditions(a, out);
            conditions(b, out);
        }
        _ => {}
    }
}
