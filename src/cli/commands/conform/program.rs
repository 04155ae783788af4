//! Most general program for a machine that needs a program.
//!
//! In: the syntax tree of a specification, an interface, a number of operations. Out: the tree with
//! an additional component for each processor. Up to the number of operations, the component
//! performs any operation of the `program` lines of the interface, with all addresses and values,
//! and accepts answers at any time. So the machine runs every program up to that bound. If the
//! interface has no such lines, they are inferred: if a communication `a|b -> load` is the only one
//! that produces an operation, and no process performs one side, the program performs that side.
//!
//! The component is added inside the `comm` that contains its actions. Stores of the initial value
//! are left out, because a load could not distinguish them from no store.

use crate::args::Operations;
use mu_axioms::EventKind;
use mu_base::{Diagnostic, SourceMap, Stage};
use mu_conform::interface::{ArgumentRole, Interface, Label, Operation, OperationClass};
use mu_syntax::ast::{Process, ProcessKind, Section, Sort, SortKind, Specification};
use mu_syntax::print;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Declarations and process terms of a specification that matter here.
struct Declarations {
    /// Actions with the texts of their sorts.
    actions: Vec<(String, Vec<String>)>,
    /// Sorts that enumerate names.
    enumerated: BTreeMap<String, Vec<String>>,
    /// Names of processes.
    processes: Vec<String>,
    /// Called actions and processes.
    called: Vec<String>,
    /// Communications: names on the left and the result, grouped by `comm`, with the process that
    /// contains it (`None`: `init`).
    communications: Vec<(Option<String>, Vec<Communication>)>,
}

/// The actions on the left, and the result.
type Communication = (Vec<String>, Option<String>);

/// Returns the subterms of a process.
fn parts(p: &Process) -> Vec<&Process> {
    use ProcessKind::*;
    match &p.kind {
        Call { .. } | CallAssign(..) | Delta | Tau => Vec::new(),
        Choice(a, b)
        | Seq(a, b)
        | Parallel(a, b)
        | LeftMerge(a, b)
        | Sync(a, b)
        | BoundedInit(a, b) => vec![a, b],
        If(_, a, b) => [Some(a), b.as_ref()].into_iter().flatten().map(|p| &**p).collect(),
        At(a, _)
        | Sum(_, a)
        | Dist(_, _, a)
        | Block(_, a)
        | Allow(_, a)
        | Hide(_, a)
        | Rename(_, a)
        | Comm(_, a) => vec![a],
    }
}

/// Returns the subterms for changes.
fn parts_mut(p: &mut Process) -> Vec<&mut Process> {
    use ProcessKind::*;
    match &mut p.kind {
        Call { .. } | CallAssign(..) | Delta | Tau => Vec::new(),
        Choice(a, b)
        | Seq(a, b)
        | Parallel(a, b)
        | LeftMerge(a, b)
        | Sync(a, b)
        | BoundedInit(a, b) => vec![a, b],
        If(_, a, b) => [Some(a), b.as_mut()].into_iter().flatten().map(|p| &mut **p).collect(),
        At(a, _)
        | Sum(_, a)
        | Dist(_, _, a)
        | Block(_, a)
        | Allow(_, a)
        | Hide(_, a)
        | Rename(_, a)
        | Comm(_, a) => vec![a],
    }
}

impl Declarations {
    fn of(tree: &Specification) -> Declarations {
        let mut declarations = Declarations {
            actions: vec![],
            enumerated: BTreeMap::new(),
            processes: vec![],
            called: vec![],
            communications: vec![],
        };
        let mut open: Vec<(Option<&str>, &Process)> = Vec::new();
        for section in &tree.sections {
            match section {
                Section::Actions(all) => {
                    declarations.actions.extend(all.iter().map(|(n, sorts)| {
                        (n.kind.clone(), sorts.iter().map(print::sort).collect())
                    }));
                }
                Section::Sorts(all) => {
                    for (name, sort) in all {
                        if let Some(Sort { kind: SortKind::Struct(of), .. }) = sort
                            && of.iter().all(|c| c.args.is_empty())
                        {
                            declarations.enumerated.insert(
                                name.kind.clone(),
                                of.iter().map(|c| c.name.kind.clone()).collect(),
                            );
                        }
                    }
                }
                Section::Processes(all) => {
                    declarations.processes.extend(all.iter().map(|p| p.name.kind.clone()));
                    open.extend(all.iter().map(|p| (Some(p.name.kind.as_str()), &p.body)));
                }
                Section::Init(p) => open.push((None, p)),
                _ => {}
            }
        }
        while let Some((holder, p)) = open.pop() {
            match &p.kind {
                ProcessKind::Call { name, .. } | ProcessKind::CallAssign(name, _) => {
                    declarations.called.push(name.kind.clone())
                }
                ProcessKind::Comm(all, _) => {
                    let of = |c: &(mu_syntax::ast::ActionNames, Option<mu_syntax::ast::Ident>)| {
                        (
                            c.0.kind.iter().map(|n| n.kind.clone()).collect(),
                            c.1.as_ref().map(|n| n.kind.clone()),
                        )
                    };
                    declarations
                        .communications
                        .push((holder.map(String::from), all.iter().map(of).collect()));
                }
                _ => {}
            }
            open.extend(parts(p).into_iter().map(|q| (holder, q)));
        }
        declarations
    }

    /// Returns the only action that no process performs and that a communication needs to produce a
    /// label; `None` if the machine can produce the label without it.
    fn missing_action(&self, label: &Label) -> Option<Label> {
        let is_performed = |a: &String| self.called.contains(a);
        if is_performed(&label.action) {
            return None;
        }
        let makes = |c: &&Communication| c.1.as_ref() == Some(&label.action);
        let mut sides = self.communications.iter().flat_map(|c| &c.1).filter(makes).map(|c| {
            let mut missing_actions = c.0.iter().filter(|a| !is_performed(a));
            missing_actions.next().filter(|_| missing_actions.next().is_none())
        });
        let action = sides.next()??;
        sides.all(|s| s == Some(action)).then(|| Label { action: action.clone(), ..label.clone() })
    }

    /// Infers the operations of the program; empty if the machine needs no program.
    fn infer_operations(&self, interface: &Interface) -> Vec<OperationClass> {
        let part = |o: &Operation| {
            let request = self.missing_action(o.begin.as_ref().unwrap_or(&o.end))?;
            let response = o.begin.as_ref().and_then(|_| self.missing_action(&o.end));
            Some(OperationClass { kind: o.kind, request, response })
        };
        interface.operations.iter().filter_map(part).collect()
    }

    fn sorts_of(&self, label: &Label) -> Option<&Vec<String>> {
        self.actions
            .iter()
            .find(|a| a.0 == label.action && a.1.len() == label.roles.len())
            .map(|a| &a.1)
    }

    /// Returns the sort of each letter.
    fn letters<'l>(
        &self,
        labels: impl Iterator<Item = &'l Label>,
    ) -> BTreeMap<&'static str, String> {
        let mut out = BTreeMap::new();
        for label in labels {
            for (role, sort) in label.roles.iter().zip(self.sorts_of(label).into_iter().flatten()) {
                if let Some(letter) = letter(role) {
                    out.entry(letter).or_insert_with(|| sort.clone());
                }
            }
        }
        out
    }
}

/// Returns the letter of an argument, if programs have it.
fn letter(role: &ArgumentRole) -> Option<&'static str> {
    match role {
        ArgumentRole::Processor => Some("p"),
        ArgumentRole::Address => Some("a"),
        ArgumentRole::Value => Some("v"),
        ArgumentRole::Written => Some("w"),
        ArgumentRole::Number => Some("n"),
        ArgumentRole::Depends(_)
        | ArgumentRole::Other
        | ArgumentRole::Any
        | ArgumentRole::Text(_) => None,
    }
}

/// Writer of the program text, with a bound on operations per processor.
struct Writer<'a> {
    interface: &'a Interface,
    declarations: &'a Declarations,
    name: String,
    sorts: BTreeMap<&'static str, String>,
    /// The number after the last operation; `None` without a bound.
    after: Option<u64>,
}

impl Writer<'_> {
    /// Returns an action with its summation variables and the letters among them.
    fn action(
        &self,
        label: &Label,
        own: &[&str],
    ) -> Result<(String, Vec<String>, Vec<&'static str>), Diagnostic> {
        let sorts = self
            .declarations
            .sorts_of(label)
            .ok_or_else(|| Diagnostic::internal("an action that was checked is not declared"))?;
        let (mut variables, mut letters, mut arguments) = (Vec::new(), Vec::new(), Vec::new());
        let mut use_letter =
            |l: &'static str, variables: &mut Vec<String>| -> Result<(), Diagnostic> {
                if !own.contains(&l) && !letters.contains(&l) {
                    let sort = self.sorts.get(l).ok_or_else(|| {
                        Diagnostic::at(
                            Stage::Type,
                            label.span,
                            format!("no label of the interface determines the sort of `{l}`"),
                        )
                    })?;
                    variables.push(format!("{l}: {sort}"));
                    letters.push(l);
                }
                Ok(())
            };
        for (i, (role, sort)) in label.roles.iter().zip(sorts).enumerate() {
            match (role, letter(role)) {
                (_, Some(l)) => {
                    use_letter(l, &mut variables)?;
                    arguments.push(l.to_string());
                }
                (ArgumentRole::Text(text), _) => {
                    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '\'');
                    for l in words
                        .filter_map(|w| ["p", "a", "v", "w", "n"].into_iter().find(|l| *l == w))
                    {
                        use_letter(l, &mut variables)?;
                    }
                    arguments.push(text.clone());
                }
                _ => {
                    variables.push(format!("any{i}: {sort}"));
                    arguments.push(format!("any{i}"));
                }
            }
        }
        let arguments = if arguments.is_empty() {
            String::new()
        } else {
            format!("({})", arguments.join(", "))
        };
        Ok((format!("{}{arguments}", label.action), variables, letters))
    }

    /// Returns the conditions on a letter, one for each value that the program uses.
    fn choices(&self, kind: EventKind, letter: &str) -> Vec<String> {
        let initial = &self.interface.initial.text;
        let of = |at: usize, letter: &str| {
            self.interface.constants[at]
                .iter()
                .map(|x| format!("{letter} == {}", x.text))
                .collect::<Vec<_>>()
        };
        let stored = match kind {
            EventKind::Write => "v",
            EventKind::Update => "w",
            _ => "",
        };
        let listed = match letter {
            "a" => of(1, letter),
            l if l == stored => of(2, letter),
            _ => Vec::new(),
        };
        match letter {
            _ if !listed.is_empty() => listed,
            l if l == stored => vec![format!("{letter} != {initial}")],
            _ => vec![String::new()],
        }
    }

    fn part(&self, part: &OperationClass, out: &mut Vec<String>) -> Result<(), Diagnostic> {
        let (action, variables, letters) = self.action(&part.request, &["p", "n"])?;
        let sum = if variables.is_empty() {
            String::new()
        } else {
            format!("sum {} . ", variables.join(", "))
        };
        // Without a bound, operations have no numbers.
        let (bound, next) = match self.after {
            Some(after) => (format!("n < {after}"), "n = n + 1"),
            None => ("true".to_string(), ""),
        };
        let mut conditions = vec![bound];
        for letter in letters {
            let choices = self.choices(part.kind, letter);
            let with = |c: &String, x: &String| {
                if x.is_empty() { c.clone() } else { format!("{c} && {x}") }
            };
            conditions =
                conditions.iter().flat_map(|c| choices.iter().map(move |x| with(c, x))).collect();
        }
        out.extend(
            conditions.iter().map(|c| format!("({sum}({c}) -> {action} . {}({next}))", self.name)),
        );
        if let Some(response) = &part.response {
            let (action, variables, _) = self.action(response, &["p"])?;
            let sum = if variables.is_empty() {
                String::new()
            } else {
                format!("sum {} . ", variables.join(", "))
            };
            out.push(format!("({sum}{action} . {}())", self.name));
        }
        Ok(())
    }

    /// Returns the program text; `init` is the parallel composition of the components of all
    /// processors.
    fn text(
        &self,
        program: &[OperationClass],
        processors: &[String],
    ) -> Result<String, Diagnostic> {
        let mut alternatives = Vec::new();
        program.iter().try_for_each(|p| self.part(p, &mut alternatives))?;
        alternatives.dedup();
        let nat = "Nat".to_string();
        let (processor, number) =
            (self.sorts.get("p").unwrap_or(&nat), self.sorts.get("n").unwrap_or(&nat));
        let mut out = format!("proc {}(p: {processor}, n: {number}) =\n    ", self.name);
        let _ = write!(out, "{};\ninit ", alternatives.join("\n  + "));
        let all: Vec<String> = processors
            .iter()
            .map(|p| format!("{}({p}, {})", self.name, self.interface.first))
            .collect();
        let _ = writeln!(out, "{};", all.join(" || "));
        Ok(out)
    }
}

/// Adds the most general program to the machine if it needs one. Returns the program text.
pub(super) fn add(
    interface: &Interface,
    operations: Operations,
    sources: &mut SourceMap,
    tree: &mut Specification,
) -> Result<Option<String>, Diagnostic> {
    let declarations = Declarations::of(tree);
    let program = if interface.program.is_empty() {
        declarations.infer_operations(interface)
    } else {
        interface.program.clone()
    };
    if program.is_empty() {
        return Ok(None);
    }
    let own: Vec<&Label> =
        program.iter().flat_map(|p| [Some(&p.request), p.response.as_ref()]).flatten().collect();
    let declared: Vec<(String, usize)> =
        declarations.actions.iter().map(|a| (a.0.clone(), a.1.len())).collect();
    Interface::check_all(own.iter().copied(), &declared)?;
    if let Some(label) = own.iter().find(|l| declarations.called.contains(&l.action)) {
        let message =
            format!("the machine performs `{}` itself, so it already has a program", label.action);
        return Err(Diagnostic::at(Stage::Type, label.span, message));
    }
    let sorts = declarations.letters(interface.labels().chain(own.iter().copied()));
    let processors = match sorts.get("p").and_then(|s| declarations.enumerated.get(s)) {
        _ if !interface.constants[0].is_empty() => {
            interface.constants[0].iter().map(|w| w.text.clone()).collect()
        }
        Some(all) => all.clone(),
        None => {
            let message =
                "the processors are unknown, because their sort is not an enumeration of names";
            return Err(Diagnostic::at(Stage::Type, own[0].span, message)
                .note("expected a line `processors P, …;` in the interface"));
        }
    };
    let mut name = "most_general_program".to_string();
    while declarations.processes.contains(&name) || declared.iter().any(|d| d.0 == name) {
        name.push('_');
    }
    let after = match operations {
        Operations::UpTo(k) => Some(interface.first + u64::from(k)),
        Operations::Any => {
            reject_numbers(&own)?;
            None
        }
    };
    let text = Writer { interface, declarations: &declarations, name, sorts, after }
        .text(&program, &processors)?;
    let source = sources.add("the most general program", text.clone());
    let parsed = mu_syntax::parse_specification(source, &text)?;
    let holder_of_comm = holder_of_comm(&declarations, &own)?;
    insert_components(tree, parsed, &own, &holder_of_comm)?;
    Ok(Some(text))
}

/// Rejects a program of any length that numbers its operations, because its states would be
/// infinite.
fn reject_numbers(labels: &[&Label]) -> Result<(), Diagnostic> {
    let has_letter =
        |text: &str| text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "n");
    let numbered = |l: &&&Label| {
        l.roles.iter().any(|r| match r {
            ArgumentRole::Number => true,
            ArgumentRole::Text(text) => has_letter(text),
            _ => false,
        })
    };
    match labels.iter().find(numbered) {
        Some(label) => {
            let message = format!(
                "the program numbers its operations in `{}`, so programs of every length have infinitely many states",
                label.text()
            );
            Err(Diagnostic::at(Stage::Unsupported, label.span, message))
        }
        None => Ok(()),
    }
}

/// Returns the process with the only `comm` that contains the program's actions; `None`: `init`.
fn holder_of_comm(
    declarations: &Declarations,
    own: &[&Label],
) -> Result<Option<String>, Diagnostic> {
    let has = |all: &[Communication], l: &Label| all.iter().any(|c| c.0.contains(&l.action));
    for label in own {
        if !declarations.communications.iter().any(|c| has(&c.1, label)) {
            let message = format!(
                "no `comm` of the machine contains `{}`, so a program cannot use it to communicate with the machine",
                label.action
            );
            return Err(Diagnostic::at(Stage::Type, label.span, message));
        }
    }
    let holders: Vec<&(Option<String>, Vec<Communication>)> =
        declarations.communications.iter().filter(|c| own.iter().any(|l| has(&c.1, l))).collect();
    let times = |holder: &Option<String>| {
        holder.as_ref().map_or(1, |h| declarations.called.iter().filter(|c| *c == h).count())
    };
    match holders[..] {
        [(holder, _)] if times(holder) == 1 => Ok(holder.clone()),
        _ => {
            let message = "the actions of the program are in more than one `comm` of the machine, so the place of the program is ambiguous";
            Err(Diagnostic::at(Stage::Unsupported, own[0].span, message)
                .note("expected one `comm` around all processors"))
        }
    }
}

/// Adds the program's process, and its components inside the `comm`.
fn insert_components(
    tree: &mut Specification,
    program: Specification,
    own: &[&Label],
    holder: &Option<String>,
) -> Result<(), Diagnostic> {
    let mut components = None;
    for section in program.sections {
        match section {
            Section::Init(p) => components = Some(p),
            other => tree.sections.insert(0, other),
        }
    }
    let mut open: Vec<&mut Process> = Vec::new();
    for section in &mut tree.sections {
        match section {
            Section::Processes(all) => open.extend(
                all.iter_mut()
                    .filter(|p| Some(&p.name.kind) == holder.as_ref())
                    .map(|p| &mut p.body),
            ),
            Section::Init(p) if holder.is_none() => open.push(p),
            _ => {}
        }
    }
    while let Some(p) = open.pop() {
        if let ProcessKind::Comm(all, inner) = &mut p.kind
            && all.iter().any(|c| c.0.kind.iter().any(|n| own.iter().any(|l| l.action == n.kind)))
        {
            let components = components.take().ok_or_else(|| {
                Diagnostic::internal("a program has no initial process, or two places")
            })?;
            let span = inner.span;
            let machine = std::mem::replace(&mut **inner, Process::new(ProcessKind::Delta, span));
            **inner =
                Process::new(ProcessKind::Parallel(Box::new(machine), Box::new(components)), span);
            return Ok(());
        }
        open.extend(parts_mut(p));
    }
    Err(Diagnostic::internal("the `comm` does not exist any more"))
}
