//! Checks an interface against the sorts of a machine, before and after the machine is explored.
//!
//! Input: an interface and the typed actions of a machine. Output: the interface with its values as
//! labels have them, and the sorts of processors, addresses and values ([`Sorts`]). Each letter has
//! one sort in all lines; the initial value, the texts in quotes and the names that a program uses
//! are expressions of the sort of their place. An interface that does not fit would select no
//! labels, or take values for others, and the answer would be about nothing.
//!
//! After exploration: a label that matches no line and has an argument of one of these sorts is
//! refused, unless an `internal` line lists it.

use mu_base::ids::{SortId, VarId};
use mu_base::{Diagnostic, SourceId, Span, Stage};
use mu_conform::alphabet::{Alphabet, arguments};
use mu_conform::interface::{ArgumentRole, Interface, Label, Word, letter};
use mu_data::engine::{Engine, Program};
use mu_data::expr::DataSpec;
use mu_data::print;
use mu_data::sort::{SortKind, basic};
use mu_data::typecheck::{check_expression, check_expression_with};
use mu_lts::relabel::name_of;
use mu_process::labels::ActionDecl;
use std::collections::BTreeMap;

/// The kinds of things that arguments of labels stand for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum ArgumentKind {
    Processor,
    Address,
    Value,
    Number,
}

impl ArgumentKind {
    const ALL: [ArgumentKind; 3] =
        [ArgumentKind::Processor, ArgumentKind::Address, ArgumentKind::Value];

    fn of(role: &ArgumentRole) -> Option<ArgumentKind> {
        match role {
            ArgumentRole::Processor | ArgumentRole::Other => Some(ArgumentKind::Processor),
            ArgumentRole::Address => Some(ArgumentKind::Address),
            ArgumentRole::Value | ArgumentRole::Written => Some(ArgumentKind::Value),
            ArgumentRole::Number => Some(ArgumentKind::Number),
            ArgumentRole::Depends(_) | ArgumentRole::Any | ArgumentRole::Text(_) => None,
        }
    }
    fn name(self) -> &'static str {
        match self {
            ArgumentKind::Processor => "a processor",
            ArgumentKind::Address => "an address",
            ArgumentKind::Value => "a value",
            ArgumentKind::Number => "a number",
        }
    }
}

/// The sorts of processors, addresses, values and numbers.
#[derive(Debug, Default)]
pub(crate) struct Sorts(BTreeMap<ArgumentKind, (SortId, Span)>);

/// The data and actions of a machine.
#[derive(Clone, Copy)]
pub(crate) struct TypedMachine<'a> {
    pub data: &'a DataSpec,
    pub actions: &'a [ActionDecl],
    /// True if they are declared, and not inferred from the labels of a stored system.
    pub declared: bool,
}

impl TypedMachine<'_> {
    fn text(&self, sort: SortId) -> String {
        print::sort(&self.data.signature, sort)
    }

    /// Returns the sorts of a label's arguments.
    fn sorts_of(&self, label: &Label) -> Result<&[SortId], Diagnostic> {
        let mut all = self
            .actions
            .iter()
            .filter(|a| a.name == label.action && a.sorts.len() == label.roles.len());
        let first = all
            .next()
            .ok_or_else(|| Diagnostic::internal("an action that was checked is not declared"))?;
        let Some(other) = all.next() else { return Ok(&first.sorts) };
        let text =
            |a: &ActionDecl| a.sorts.iter().map(|s| self.text(*s)).collect::<Vec<_>>().join(" # ");
        let message = format!(
            "`{}` has several sorts with {} arguments: {} and {}",
            label.action,
            label.roles.len(),
            text(first),
            text(other)
        );
        Err(Diagnostic::at(Stage::Unsupported, label.span, message)
            .note("expected an action of one sort, since a line selects labels by name and number of arguments"))
    }

    /// Describes the values of a sort, for messages.
    fn expected_values(&self, sort: SortId) -> String {
        let signature = &self.data.signature;
        let constants: Vec<&str> = signature.sorts.declared_sort(sort).map_or(Vec::new(), |n| {
            n.constructors
                .iter()
                .map(|c| signature.op(*c))
                .filter(|o| o.sort == sort)
                .map(|o| o.name.as_str())
                .collect()
        });
        match &constants[..] {
            [] => format!("expected an expression of the sort {}", self.text(sort)),
            [last] => format!("expected `{last}`"),
            all if all.len() <= 12 => format!(
                "expected one of {}",
                all.iter().map(|c| format!("`{c}`")).collect::<Vec<_>>().join(", ")
            ),
            _ => format!("expected an expression of the sort {}", self.text(sort)),
        }
    }

    /// Adds the sorts of all parts: a record that holds an address carries one.
    fn parts(&self, of: &[SortId]) -> Vec<SortId> {
        let signature = &self.data.signature;
        let mut all = of.to_vec();
        let mut at = 0;
        while let Some(&sort) = all.get(at) {
            at += 1;
            let parts: Vec<SortId> = match signature.sorts.kind(sort) {
                SortKind::List(s)
                | SortKind::Set(s)
                | SortKind::Bag(s)
                | SortKind::FSet(s)
                | SortKind::FBag(s) => vec![*s],
                SortKind::Function(domain, range) => {
                    domain.iter().copied().chain([*range]).collect()
                }
                SortKind::Named(_) => {
                    let constructors = signature
                        .sorts
                        .declared_sort(sort)
                        .into_iter()
                        .flat_map(|n| &n.constructors);
                    constructors
                        .flat_map(|c| signature.domain_range(signature.op(*c).sort).0.to_vec())
                        .collect()
                }
                SortKind::Bool | SortKind::Pos | SortKind::Nat | SortKind::Int | SortKind::Real => {
                    Vec::new()
                }
            };
            parts.into_iter().for_each(|p| {
                if !all.contains(&p) {
                    all.push(p);
                }
            });
        }
        all
    }

    /// True if only the texts that occur in labels are known of a sort.
    fn is_open(&self, sort: SortId) -> bool {
        !self.declared && matches!(self.data.signature.sorts.kind(sort), SortKind::Named(_))
    }

    /// Evaluates a value to the text that labels have for it.
    fn value(&self, text: &str, span: Span, sort: SortId) -> Result<String, Diagnostic> {
        if self.is_open(sort) {
            return Ok(text.to_string());
        }
        let mut data = self.data.clone();
        let wrong = |why: Option<Diagnostic>| {
            let error = Diagnostic::at(
                Stage::Type,
                span,
                format!("`{text}` is not a value of the sort {}", self.text(sort)),
            )
            .note(self.expected_values(sort));
            why.into_iter().fold(error, |e, d| e.note(d.message))
        };
        let tree = mu_syntax::parse_data(SourceId::default(), text).map_err(|_| wrong(None))?;
        let expression =
            check_expression(&tree, &mut data, Some(sort)).map_err(|d| wrong(Some(d)))?;
        let mut engine = Engine::new(Program::compile(&data)?);
        let value = engine.from_expr(&expression).map_err(|d| wrong(Some(d)))?;
        let value = engine.to_expr_at(&value, sort);
        Ok(print::expression(&engine.program().signature().clone(), &value))
    }
}

/// An argument of a line: the kind of thing that it stands for, its sort, place, and letter.
struct Occurrence<'a> {
    kind: ArgumentKind,
    sort: SortId,
    span: Span,
    letter: &'a str,
}

impl Sorts {
    /// Enters the sort that most arguments of each kind have, and checks that all have it.
    fn note_all(
        &mut self,
        typed: TypedMachine<'_>,
        all: &[Occurrence<'_>],
    ) -> Result<(), Diagnostic> {
        for kind in ArgumentKind::ALL {
            let own = || all.iter().filter(move |o| o.kind == kind);
            let count = |sort: SortId| own().filter(|o| o.sort == sort).count();
            // The first of the most frequent ones.
            if let Some(first) = own().rev().max_by_key(|o| count(o.sort))
                && let Some(first) = own().find(|o| o.sort == first.sort)
            {
                self.0.entry(kind).or_insert((first.sort, first.span));
            }
        }
        all.iter().try_for_each(|o| self.note(typed, o.kind, o.sort, o.span, o.letter))
    }

    fn note(
        &mut self,
        typed: TypedMachine<'_>,
        thing: ArgumentKind,
        sort: SortId,
        span: Span,
        letter: &str,
    ) -> Result<(), Diagnostic> {
        let &mut (known, place) = self.0.entry(thing).or_insert((sort, span));
        if known == sort {
            return Ok(());
        }
        let (here, there) = (typed.text(sort), typed.text(known));
        Err(Diagnostic::at(
            Stage::Type,
            span,
            format!("`{letter}` has the sort {here} here and {there} in another line"),
        )
        .note(format!("expected {} of the sort {there} in all lines", thing.name()))
        .related(place, format!("an argument of the sort {there}")))
    }

    /// Adds the arguments of a line with their sorts.
    fn label<'l>(
        &mut self,
        typed: TypedMachine<'_>,
        label: &'l Label,
        found: &mut Vec<Occurrence<'l>>,
    ) -> Result<(), Diagnostic> {
        let sorts = typed.sorts_of(label)?;
        let number = |sort: SortId| matches!(sort, basic::POS | basic::NAT | basic::INT);
        for ((role, span), sort) in label.roles.iter().zip(&label.places).zip(sorts) {
            if let ArgumentRole::Depends(_) = role {
                let several = match typed.data.signature.sorts.kind(*sort) {
                    SortKind::List(of) | SortKind::Set(of) | SortKind::FSet(of) => number(*of),
                    _ => false,
                };
                if !number(*sort) && !several {
                    let message = format!(
                        "`{}` has the sort {}, and dependencies are numbers of operations",
                        letter(role),
                        typed.text(*sort)
                    );
                    return Err(Diagnostic::at(Stage::Type, *span, message).note(
                        "expected an argument of the sort Pos, Nat or Int, or a list or set of them",
                    ));
                }
            }
            let Some(thing) = ArgumentKind::of(role) else { continue };
            let is_number = number(*sort);
            if thing == ArgumentKind::Number && !is_number {
                let message = format!(
                    "`n` has the sort {}, and operations are counted by numbers",
                    typed.text(*sort)
                );
                return Err(Diagnostic::at(Stage::Type, *span, message)
                    .note("expected an argument of the sort Pos, Nat or Int"));
            }
            if thing == ArgumentKind::Number {
                // Numbers of different lines may have different sorts.
                self.0.entry(thing).or_insert((*sort, *span));
            } else {
                let (sort, span) = (*sort, *span);
                found.push(Occurrence { kind: thing, sort, span, letter: letter(role) });
            }
        }
        Ok(())
    }

    fn sort(&self, thing: ArgumentKind) -> Option<SortId> {
        self.0.get(&thing).map(|s| s.0)
    }

    /// Checks an interface and normalises its values to the form of the labels.
    pub(crate) fn check(
        interface: &mut Interface,
        typed: TypedMachine<'_>,
    ) -> Result<Sorts, Diagnostic> {
        let actions: Vec<(String, usize)> =
            typed.actions.iter().map(|a| (a.name.clone(), a.sorts.len())).collect();
        interface.check(&actions)?;
        let mut sorts = Sorts::default();
        let mut found = Vec::new();
        interface.labels().try_for_each(|l| sorts.label(typed, l, &mut found))?;
        sorts.note_all(typed, &found)?;
        let program = interface
            .program
            .iter()
            .flat_map(|p| [Some(&p.request), p.response.as_ref()])
            .flatten();
        for label in program {
            Interface::check_all([label].into_iter(), &actions)?;
            let mut found = Vec::new();
            sorts.label(typed, label, &mut found)?;
            sorts.note_all(typed, &found)?;
        }
        if let Some(sort) = sorts.sort(ArgumentKind::Value) {
            interface.initial.text =
                typed.value(&interface.initial.text, interface.initial.span, sort)?;
        }
        for (thing, words) in ArgumentKind::ALL.iter().zip(&interface.constants) {
            let Some(sort) = sorts.sort(*thing) else { continue };
            for Word { text, span } in words {
                typed.value(text, *span, sort)?;
            }
        }
        let operations =
            interface.operations.iter_mut().flat_map(|o| o.begin.iter_mut().chain([&mut o.end]));
        let internal = interface.internal.iter_mut().filter(|i| !i.all).map(|i| &mut i.label);
        for label in operations
            .chain(&mut interface.commits)
            .chain(&mut interface.absorbs)
            .chain(&mut interface.observed)
            .chain(internal)
        {
            let own = typed.sorts_of(label)?.to_vec();
            for ((role, span), sort) in label.roles.iter_mut().zip(&label.places).zip(own) {
                if let ArgumentRole::Text(text) = role {
                    *text = typed.value(text, *span, sort)?;
                }
            }
        }
        sorts.program(interface, typed)?;
        Ok(sorts)
    }

    /// Checks the expressions of the most general program, in which letters are variables.
    fn program(&self, interface: &Interface, typed: TypedMachine<'_>) -> Result<(), Diagnostic> {
        if interface.program.is_empty() {
            return Ok(());
        }
        let mut data = typed.data.clone();
        let letters = [
            ("p", ArgumentKind::Processor),
            ("a", ArgumentKind::Address),
            ("v", ArgumentKind::Value),
            ("w", ArgumentKind::Value),
        ];
        let mut scope: Vec<VarId> = letters
            .iter()
            .filter_map(|(l, t)| self.sort(*t).map(|sort| data.signature.fresh_var(*l, sort)))
            .collect();
        scope.push(
            data.signature.fresh_var("n", self.sort(ArgumentKind::Number).unwrap_or(basic::NAT)),
        );
        for label in
            interface.program.iter().flat_map(|p| [Some(&p.request), p.response.as_ref()]).flatten()
        {
            for ((role, span), sort) in
                label.roles.iter().zip(&label.places).zip(typed.sorts_of(label)?)
            {
                let ArgumentRole::Text(text) = role else { continue };
                let wrong = |d: Diagnostic| {
                    Diagnostic::at(
                        Stage::Type,
                        *span,
                        format!(
                            "`{text}` is not an expression of the sort {}: {}",
                            typed.text(*sort),
                            d.message
                        ),
                    )
                };
                let tree = mu_syntax::parse_data(SourceId::default(), text).map_err(wrong)?;
                check_expression_with(&tree, &mut data, &scope, Some(*sort)).map_err(wrong)?;
            }
        }
        Ok(())
    }

    /// Rejects labels that match no line and look like memory operations.
    pub(super) fn expect_covered(
        &self,
        alphabet: &Alphabet,
        typed: TypedMachine<'_>,
        declared: &[(String, Span)],
    ) -> Result<(), Diagnostic> {
        for part in &alphabet.unmatched {
            let (name, count) = (name_of(part), arguments(part).len());
            let own = typed
                .actions
                .iter()
                .filter(|a| a.name == name && a.sorts.len() == count)
                .flat_map(|a| &a.sorts);
            let own: Vec<SortId> = own.copied().collect();
            let within = typed.parts(&own);
            let carried: Vec<&str> = ArgumentKind::ALL
                .iter()
                .filter(|t| self.sort(**t).is_some_and(|s| within.contains(&s)))
                .map(|t| t.name())
                .collect();
            let carries_only_processor = carried == [ArgumentKind::Processor.name()];
            let carried = match &carried[..] {
                [] => continue,
                [one] => (*one).to_string(),
                [all @ .., last] => format!("{} and {last}", all.join(", ")),
            };
            let message = format!(
                "the label `{part}` of the machine matches no line of the interface, but has {carried} as an argument"
            );
            let place = declared.iter().find(|d| d.0 == name).map(|d| d.1);
            let error = Diagnostic { span: place, ..Diagnostic::new(Stage::Type, message) };
            let any = vec!["_"; count].join(", ");
            let example = match (count, carries_only_processor) {
                (1, true) => format!("`fence {name}(p);`"),
                _ => format!("`load {name}(p, a, v);` with a letter for each argument"),
            };
            return Err(error
                .note(format!("expected a line for it, such as {example}"))
                .note(format!("or, if it is no memory operation, `internal {name};` or `internal {name}({any});`")));
        }
        Ok(())
    }

    /// Returns the processors without operations, if their sort enumerates them.
    pub(super) fn idle(&self, alphabet: &Alphabet, typed: TypedMachine<'_>) -> Vec<String> {
        let signature = &typed.data.signature;
        let named = self
            .sort(ArgumentKind::Processor)
            .filter(|s| !typed.is_open(*s))
            .and_then(|s| signature.sorts.declared_sort(s));
        let names = named
            .into_iter()
            .flat_map(|n| &n.constructors)
            .map(|c| signature.op(*c))
            .filter(|o| Some(o.sort) == self.sort(ArgumentKind::Processor));
        names.map(|o| o.name.clone()).filter(|n| !alphabet.names.processors.contains(n)).collect()
    }
}
