//! Writer of mCRL2's binary `.lts`: with the declarations and typed labels of a
//! [`TypedDeclarations`], or with types inferred from the labels' texts.
//!
//! With declarations: each required sort and term is shared once, parts before wholes. Numbers are
//! digits of 64 bits, conversions between sorts of numbers are constructors, as in the toolset.
//! Without: labels are parsed as multi-actions with arguments; numbers and truth values get their
//! sorts, all other arguments become constants of a sort `Value` with their texts as names. A label
//! that is not a multi-action becomes an action without arguments of that name.
//!
//! Cost: one pass over labels, terms and transitions. Invariant: reading the file gives the same
//! system.

use super::super::Lts;
use super::super::aterm::{Term, TermWriter};
use super::super::declarations::INFERRED;
use super::super::typed::{self, TypedDeclarations};
use super::refuse;
use super::write_behaviour::untimed_term;
use ahash::AHashMap;
use mu_base::Diagnostic;
use mu_base::ids::StateId;
use mu_base::label_time;
use num_bigint::BigInt;
use num_bigint::Sign;
use std::io::Write;

/// Returns the actions of a label with the texts of their arguments; `None` if it is not a
/// multi-action.
fn actions_of(label: &str) -> Option<Vec<(&str, Vec<&str>)>> {
    let is_name = |n: &str| {
        n.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && n.chars().all(|c| c.is_ascii_alphanumeric() || "_'".contains(c))
    };
    let mut actions = Vec::new();
    for part in split(label, '|')? {
        let part = part.trim();
        let (name, arguments) = match part.find('(') {
            None => (part, Vec::new()),
            Some(at) => {
                (&part[..at], split(part[at..].strip_prefix('(')?.strip_suffix(')')?, ',')?)
            }
        };
        let arguments: Vec<&str> = arguments.into_iter().map(str::trim).collect();
        if !is_name(name) || arguments.iter().any(|a| a.is_empty()) {
            return None;
        }
        actions.push((name, arguments));
    }
    let shown = |(name, arguments): &(&str, Vec<&str>)| match &arguments[..] {
        [] => (*name).to_string(),
        _ => format!("{name}({})", arguments.join(", ")),
    };
    // Other blanks would be lost.
    (actions.iter().map(shown).collect::<Vec<_>>().join("|") == label).then_some(actions)
}

/// Splits a text at marks outside brackets; `None` if brackets do not match.
fn split(text: &str, mark: char) -> Option<Vec<&str>> {
    let (mut parts, mut from, mut open) = (Vec::new(), 0, Vec::new());
    for (i, c) in text.char_indices() {
        match c {
            '(' => open.push(')'),
            '[' => open.push(']'),
            '{' => open.push('}'),
            ')' | ']' | '}' => (open.pop() == Some(c)).then_some(())?,
            _ if c == mark && open.is_empty() => {
                parts.push(&text[from..i]);
                from = i + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[from..]);
    open.is_empty().then_some(parts)
}

/// Inferred sorts of arguments.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum InferredSort {
    Bool,
    Nat,
    Int,
    Value,
}

impl InferredSort {
    fn of(text: &str) -> InferredSort {
        let digits = text.strip_prefix('-').unwrap_or(text);
        // As printed: without leading zeros.
        let numeral = digits.bytes().all(|b| b.is_ascii_digit())
            && !digits.is_empty()
            && (digits == "0" || !digits.starts_with('0'));
        match text {
            "true" | "false" => InferredSort::Bool,
            "-0" => InferredSort::Value,
            _ if numeral && text.len() == digits.len() => InferredSort::Nat,
            _ if numeral => InferredSort::Int,
            _ => InferredSort::Value,
        }
    }
    fn join(self, other: InferredSort) -> InferredSort {
        match (self, other) {
            (a, b) if a == b => a,
            (InferredSort::Nat | InferredSort::Int, InferredSort::Nat | InferredSort::Int) => {
                InferredSort::Int
            }
            _ => InferredSort::Value,
        }
    }
    fn name(self) -> &'static str {
        match self {
            InferredSort::Bool => "Bool",
            InferredSort::Nat => "Nat",
            InferredSort::Int => "Int",
            InferredSort::Value => INFERRED,
        }
    }
}

/// Writes a system, with declarations if these cover all its labels.
pub fn write(
    lts: &Lts,
    typed: Option<&TypedDeclarations>,
    output: impl Write,
) -> Result<(), Diagnostic> {
    if let Some(label) = typed.and_then(|t| t.untyped_label(lts)) {
        return Err(refuse(format!("the label `{label}` has no typed form")));
    }
    typed.map_or(Ok(()), TypedDeclarations::check)?;
    stream(lts, typed, Box::new(output)).map_err(|e| refuse(format!("cannot write: {e}")))
}

fn stream(
    lts: &Lts,
    typed: Option<&TypedDeclarations>,
    output: Box<dyn Write + '_>,
) -> std::io::Result<()> {
    let mut out = TermWriter::new(output, 1 << 20)?;
    let mark = out.symbol("labelled_transition_system", 0)?;
    out.output(mark, &[])?;
    let labels = match typed {
        Some(typed) => write_declared(&mut out, lts, typed)?,
        None => write_inferred(&mut out, lts)?,
    };
    let untimed = untimed_term(&mut out)?;
    let multi_action = out.symbol("TimedMultAct", 2)?;
    let start = out.symbol("initial_state", 0)?;
    out.output(start, &[])?;
    out.output_number(1)?;
    out.output_number(u64::from(lts.initial.number()))?;
    let transition = out.symbol("transition", 0)?;
    for s in 0..lts.state_count() {
        for (label, target) in lts.successors(StateId::new(s)) {
            out.output(transition, &[])?;
            out.output_number(s as u64)?;
            let (actions, time) = labels[label.index()];
            out.output(multi_action, &[actions, time.unwrap_or(untimed)])?;
            out.output_number(u64::from(target.number()))?;
        }
    }
    // A list for each state determines their number, including states without transitions.
    if has_unnamed_state(lts) {
        let empty_list = out.symbol("<empty_list>", 0)?;
        for _ in 0..lts.state_count() {
            out.output(empty_list, &[])?;
        }
    }
    out.finish()
}

/// Outputs a list: all cells except the first are shared.
pub(super) fn output_list(out: &mut TermWriter<'_>, items: &[Term]) -> std::io::Result<()> {
    match items.split_first() {
        None => {
            let empty = out.symbol("<empty_list>", 0)?;
            out.output(empty, &[])
        }
        Some((first, rest)) => {
            let rest = out.share_list(rest)?;
            let cell = out.symbol("<list_constructor>", 2)?;
            out.output(cell, &[*first, rest])
        }
    }
}

/// Outputs an empty list of process parameters and these actions.
fn output_actions(out: &mut TermWriter<'_>, actions: &[Term]) -> std::io::Result<()> {
    output_list(out, &[])?;
    output_list(out, actions)
}

/// Returns the actions of a label and its time, if this is a number as printed. A
/// label that is not a multi-action is an action without arguments.
fn parts_of(label: &str) -> (Vec<(&str, Vec<&str>)>, Option<BigInt>) {
    let (text, time) = label_time::split(label);
    let parts = if text == "tau" { Some(Vec::new()) } else { actions_of(text) };
    let number = |time: &str| time.parse().ok().filter(|n: &BigInt| n.to_string() == time);
    match (parts, time.map(number)) {
        (Some(parts), None) => (parts, None),
        (Some(parts), Some(Some(time))) => (parts, Some(time)),
        _ => (vec![(label, Vec::new())], None),
    }
}

/// Writes the declarations inferred from the labels' texts. Returns the list of actions of each
/// label, and its time.
fn write_inferred(
    out: &mut TermWriter<'_>,
    lts: &Lts,
) -> std::io::Result<Vec<(Term, Option<Term>)>> {
    // Label 0 is tau, the empty multi-action, independent of its text.
    let (labels, times): (Vec<_>, Vec<_>) = (lts.table.texts.iter().enumerate())
        .map(|(i, t)| if i == 0 { (Vec::new(), None) } else { parts_of(t) })
        .unzip();
    let mut sorts: AHashMap<(&str, usize), Vec<InferredSort>> = AHashMap::new();
    let mut declared = Vec::new();
    for (name, arguments) in labels.iter().flatten() {
        let own: Vec<InferredSort> = arguments.iter().map(|a| InferredSort::of(a)).collect();
        let key = (*name, own.len());
        match sorts.get_mut(&key) {
            Some(known) => known.iter_mut().zip(own).for_each(|(k, o)| *k = k.join(o)),
            None => {
                declared.push(key);
                sorts.insert(key, own);
            }
        }
    }
    let constants = constants(&labels, &sorts);
    let sort_id = out.symbol("SortId", 1)?;
    let op_id = out.symbol("OpIdNoIndex", 2)?;
    let value = out.share("Value", &[])?;
    out.output_number(u64::from(!constants.is_empty()))?;
    if !constants.is_empty() {
        out.output(sort_id, &[value])?;
    }
    // No aliases; the constants are constructors; no mappings, no equations.
    out.output_number(0)?;
    out.output_number(constants.len() as u64)?;
    let value_sort = out.share("SortId", &[value])?;
    for text in &constants {
        let name = out.share(text, &[])?;
        out.output(op_id, &[name, value_sort])?;
    }
    out.output_number(0)?;
    out.output_number(0)?;
    let mut declarations: AHashMap<(&str, usize), Term> = AHashMap::new();
    for key in &declared {
        let mut of = Vec::new();
        for sort in &sorts[key] {
            of.push(named_sort(out, sort.name())?);
        }
        let (name, of) = (out.share(key.0, &[])?, out.share_list(&of)?);
        declarations.insert(*key, out.share("ActId", &[name, of])?);
    }
    let actions: Vec<Term> = declared.iter().map(|key| declarations[key]).collect();
    output_actions(out, &actions)?;
    let mut lists = Vec::new();
    for (label, time) in labels.iter().zip(times) {
        let mut actions = Vec::new();
        for (name, arguments) in label {
            let key = (*name, arguments.len());
            let mut values = Vec::new();
            for (a, s) in arguments.iter().zip(&sorts[&key]) {
                values.push(argument(out, a, *s)?);
            }
            let values = out.share_list(&values)?;
            actions.push(out.share("Action", &[declarations[&key], values])?);
        }
        let actions = out.share_list(&actions)?;
        let time = match time {
            Some(time) => Some(number(out, &time, typed::NumberSort::Real)?),
            None => None,
        };
        lists.push((actions, time));
    }
    Ok(lists)
}

/// Writes declarations. Returns the list of actions of each label, and its time; all labels have
/// typed forms.
fn write_declared(
    out: &mut TermWriter<'_>,
    lts: &Lts,
    typed: &TypedDeclarations,
) -> std::io::Result<Vec<(Term, Option<Term>)>> {
    let label = |(i, text): (usize, &String)| {
        if i == 0 { Default::default() } else { typed.label(text).expect("all labels are known") }
    };
    let labels: Vec<(Vec<&typed::TypedPart>, Option<typed::TermRef>)> =
        lts.table.texts.iter().enumerate().map(label).collect();
    let arguments = labels.iter().flat_map(|(parts, _)| parts).flat_map(|p| &p.arguments);
    let times = labels.iter().filter_map(|(_, time)| time.as_ref());
    let shared = share_needed(out, typed, arguments.chain(times))?;
    data_specification(out, typed, &shared)?;
    let actions = action_declarations(out, typed, &shared)?;
    output_actions(out, &actions)?;
    let mut lists = Vec::new();
    for (parts, time) in labels {
        let actions = multi_action(out, &actions, &shared, parts.into_iter())?;
        lists.push((actions, time.map(|t| shared.term(t))));
    }
    Ok(lists)
}

/// Shares the declarations of actions.
pub(super) fn action_declarations(
    out: &mut TermWriter<'_>,
    typed: &TypedDeclarations,
    shared: &Shared,
) -> std::io::Result<Vec<Term>> {
    let mut actions = Vec::new();
    for a in typed.all_actions() {
        let of = out.share_list(&a.sorts.iter().map(|s| shared.sort(*s)).collect::<Vec<_>>())?;
        let name = out.share(&a.name, &[])?;
        actions.push(out.share("ActId", &[name, of])?);
    }
    Ok(actions)
}

/// Shares the list of actions of a label.
pub(super) fn multi_action<'p>(
    out: &mut TermWriter<'_>,
    actions: &[Term],
    shared: &Shared,
    parts: impl Iterator<Item = &'p typed::TypedPart>,
) -> std::io::Result<Term> {
    let mut all = Vec::new();
    for part in parts {
        let values = out.share_list(&shared.list(&part.arguments))?;
        all.push(out.share("Action", &[actions[part.action.index()], values])?);
    }
    out.share_list(&all)
}

/// Outputs the declarations of data.
pub(super) fn data_specification(
    out: &mut TermWriter<'_>,
    typed: &TypedDeclarations,
    shared: &Shared,
) -> std::io::Result<()> {
    let sort = |s: &typed::SortRef| shared.sort(*s);
    let term = |t: &typed::TermRef| shared.term(*t);
    let sort_id = out.symbol("SortId", 1)?;
    out.output_number(typed.declared.len() as u64)?;
    for s in &typed.declared {
        let typed::Sort::Named(name) = &typed.all_sorts()[s.index()] else {
            panic!("a declared sort has a name")
        };
        let name = out.share(name, &[])?;
        out.output(sort_id, &[name])?;
    }
    let alias = out.symbol("SortRef", 2)?;
    out.output_number(typed.aliases.len() as u64)?;
    for (name, of) in &typed.aliases {
        out.output(alias, &[sort(name), sort(of)])?;
    }
    let op_id = out.symbol("OpIdNoIndex", 2)?;
    for operations in [&typed.constructors, &typed.mappings] {
        out.output_number(operations.len() as u64)?;
        for o in operations {
            let typed::Term::Operation(name, of) = &typed.all_terms()[o.index()] else {
                panic!("only operations are declared")
            };
            let name = out.share(name, &[])?;
            out.output(op_id, &[name, sort(of)])?;
        }
    }
    out.output_number(typed.equations.len() as u64)?;
    for e in &typed.equations {
        let variables = out.share_list(&e.variables.iter().map(term).collect::<Vec<_>>())?;
        let equation = out.symbol("DataEqn", 4)?;
        out.output(equation, &[variables, term(&e.condition), term(&e.left), term(&e.right)])?;
    }
    Ok(())
}

/// Numbers of sorts and terms in the file.
pub(super) struct Shared {
    sorts: Vec<Option<Term>>,
    terms: Vec<Option<Term>>,
}

impl Shared {
    pub fn sort(&self, sort: typed::SortRef) -> Term {
        self.sorts[sort.index()].expect("a needed sort is shared")
    }
    pub fn term(&self, term: typed::TermRef) -> Term {
        self.terms[term.index()].expect("a needed term is shared")
    }
    pub fn list(&self, terms: &[typed::TermRef]) -> Vec<Term> {
        terms.iter().map(|t| self.term(*t)).collect()
    }
}

/// Shares the sorts and terms that the declarations and these terms need.
pub(super) fn share_needed<'t>(
    out: &mut TermWriter<'_>,
    typed: &'t TypedDeclarations,
    also: impl Iterator<Item = &'t typed::TermRef>,
) -> std::io::Result<Shared> {
    let mut terms = vec![false; typed.all_terms().len()];
    let equations = typed
        .equations
        .iter()
        .flat_map(|e| e.variables.iter().chain([&e.condition, &e.left, &e.right]));
    typed
        .constructors
        .iter()
        .chain(&typed.mappings)
        .chain(equations)
        .chain(also)
        .for_each(|t| terms[t.index()] = true);
    let mut sorts = vec![false; typed.all_sorts().len()];
    let of_actions = typed.all_actions().iter().flat_map(|a| &a.sorts);
    typed
        .aliases
        .iter()
        .flat_map(|(a, b)| [a, b])
        .chain(of_actions)
        .for_each(|s| sorts[s.index()] = true);
    // Parts have smaller numbers than wholes.
    for i in (0..terms.len()).rev() {
        if !terms[i] {
            continue;
        }
        match &typed.all_terms()[i] {
            typed::Term::Variable(_, s) | typed::Term::Operation(_, s) => sorts[s.index()] = true,
            typed::Term::Number(..) => {}
            typed::Term::Apply(head, rest) | typed::Term::Bind(_, rest, head) => {
                rest.iter().chain([head]).for_each(|t| terms[t.index()] = true)
            }
            typed::Term::Where(body, definitions) => {
                definitions
                    .iter()
                    .flat_map(|(v, d)| [v, d])
                    .chain([body])
                    .for_each(|t| terms[t.index()] = true);
            }
        }
    }
    for i in (0..sorts.len()).rev() {
        if !sorts[i] {
            continue;
        }
        match &typed.all_sorts()[i] {
            typed::Sort::Named(_) => {}
            typed::Sort::Container(_, s) => sorts[s.index()] = true,
            typed::Sort::Function(domain, range) => {
                domain.iter().chain([range]).for_each(|s| sorts[s.index()] = true)
            }
            typed::Sort::Struct(all) => {
                all.iter().flat_map(|c| &c.arguments).for_each(|(_, s)| sorts[s.index()] = true)
            }
        }
    }
    let mut shared = Shared { sorts: vec![None; sorts.len()], terms: vec![None; terms.len()] };
    for i in (0..sorts.len()).filter(|i| sorts[*i]) {
        shared.sorts[i] = Some(share_sort(out, &typed.all_sorts()[i], &shared.sorts)?);
    }
    for i in (0..terms.len()).filter(|i| terms[*i]) {
        shared.terms[i] = Some(share_term(out, &typed.all_terms()[i], &shared)?);
    }
    Ok(shared)
}

fn share_sort(
    out: &mut TermWriter<'_>,
    sort: &typed::Sort,
    known: &[Option<Term>],
) -> std::io::Result<Term> {
    let part = |s: &typed::SortRef| known[s.index()].expect("parts are shared before wholes");
    match sort {
        typed::Sort::Named(name) => named_sort(out, name),
        typed::Sort::Container(container, of) => {
            let kind = match container {
                typed::Container::List => "SortList",
                typed::Container::Set => "SortSet",
                typed::Container::Bag => "SortBag",
                typed::Container::FSet => "SortFSet",
                typed::Container::FBag => "SortFBag",
            };
            let kind = out.share(kind, &[])?;
            out.share("SortCons", &[kind, part(of)])
        }
        typed::Sort::Function(domain, range) => {
            let domain = out.share_list(&domain.iter().map(part).collect::<Vec<_>>())?;
            out.share("SortArrow", &[domain, part(range)])
        }
        typed::Sort::Struct(constructors) => {
            let mut all = Vec::new();
            for c in constructors {
                let mut projections = Vec::new();
                for (name, of) in &c.arguments {
                    let name = out.share(name.as_deref().unwrap_or_default(), &[])?;
                    projections.push(out.share("StructProj", &[name, part(of)])?);
                }
                let projections = out.share_list(&projections)?;
                let (name, recogniser) = (
                    out.share(&c.name, &[])?,
                    out.share(c.recogniser.as_deref().unwrap_or_default(), &[])?,
                );
                all.push(out.share("StructCons", &[name, projections, recogniser])?);
            }
            let all = out.share_list(&all)?;
            out.share("SortStruct", &[all])
        }
    }
}

fn share_term(
    out: &mut TermWriter<'_>,
    term: &typed::Term,
    known: &Shared,
) -> std::io::Result<Term> {
    let part = |t: &typed::TermRef| known.terms[t.index()].expect("parts are shared before wholes");
    let sort = |s: &typed::SortRef| known.sorts[s.index()].expect("sorts are shared before terms");
    match term {
        typed::Term::Variable(name, s) => {
            let name = out.share(name, &[])?;
            out.share("DataVarId", &[name, sort(s)])
        }
        typed::Term::Operation(name, s) => {
            let name = out.share(name, &[])?;
            out.share("OpIdNoIndex", &[name, sort(s)])
        }
        typed::Term::Number(value, sort) => number(out, value, *sort),
        typed::Term::Apply(head, arguments) => {
            let all: Vec<Term> = [head].into_iter().chain(arguments).map(part).collect();
            out.share("DataAppl", &all)
        }
        typed::Term::Bind(binder, variables, body) => {
            let kind = match binder {
                typed::Binder::Lambda => "Lambda",
                typed::Binder::Forall => "Forall",
                typed::Binder::Exists => "Exists",
            };
            let kind = out.share(kind, &[])?;
            let variables = out.share_list(&variables.iter().map(part).collect::<Vec<_>>())?;
            out.share("Binder", &[kind, variables, part(body)])
        }
        typed::Term::Where(body, definitions) => {
            let mut all = Vec::new();
            for (variable, value) in definitions {
                all.push(out.share("DataVarIdInit", &[part(variable), part(value)])?);
            }
            let all = out.share_list(&all)?;
            out.share("Whr", &[part(body), all])
        }
    }
}

/// Returns the arguments of the sort `Value` without duplicates, in the order of occurrence.
fn constants<'t>(
    labels: &[Vec<(&'t str, Vec<&'t str>)>],
    sorts: &AHashMap<(&str, usize), Vec<InferredSort>>,
) -> Vec<&'t str> {
    let (mut known, mut constants) = (ahash::AHashSet::new(), Vec::new());
    for (name, arguments) in labels.iter().flatten() {
        for (a, s) in arguments.iter().zip(&sorts[&(*name, arguments.len())]) {
            if *s == InferredSort::Value && known.insert(*a) {
                constants.push(*a);
            }
        }
    }
    constants
}

/// True if the last state has no transition and is not the initial one.
fn has_unnamed_state(lts: &Lts) -> bool {
    let last = StateId::new(lts.state_count() - 1);
    last != lts.initial && lts.successors(last).next().is_none() && !lts.targets.contains(&last)
}

pub(super) fn named_sort(out: &mut TermWriter<'_>, name: &str) -> std::io::Result<Term> {
    let name = out.share(name, &[])?;
    out.share("SortId", &[name])
}

/// Shares an operation `from -> to`.
fn function(
    out: &mut TermWriter<'_>,
    name: &str,
    from: &[&str],
    to: &str,
) -> std::io::Result<Term> {
    let mut domain = Vec::new();
    for f in from {
        domain.push(named_sort(out, f)?);
    }
    let (domain, to) = (out.share_list(&domain)?, named_sort(out, to)?);
    let (name, sort) = (out.share(name, &[])?, out.share("SortArrow", &[domain, to])?);
    out.share("OpIdNoIndex", &[name, sort])
}

/// Shares a constant of a named sort.
pub(super) fn constant(out: &mut TermWriter<'_>, name: &str, sort: &str) -> std::io::Result<Term> {
    let (name, sort) = (out.share(name, &[])?, named_sort(out, sort)?);
    out.share("OpIdNoIndex", &[name, sort])
}

/// Shares an argument of a label at its inferred sort.
fn argument(out: &mut TermWriter<'_>, text: &str, sort: InferredSort) -> std::io::Result<Term> {
    let sort = match sort {
        InferredSort::Bool | InferredSort::Value => return constant(out, text, sort.name()),
        InferredSort::Nat => typed::NumberSort::Nat,
        InferredSort::Int => typed::NumberSort::Int,
    };
    number(out, &text.parse().map_err(std::io::Error::other)?, sort)
}

/// Shares an integer at a sort of numbers.
pub(super) fn number(
    out: &mut TermWriter<'_>,
    value: &BigInt,
    sort: typed::NumberSort,
) -> std::io::Result<Term> {
    let unary = |out: &mut TermWriter<'_>, name: &str, from: &str, inner: Term| {
        let f = function(out, name, &[from], "Int")?;
        out.share("DataAppl", &[f, inner])
    };
    match sort {
        typed::NumberSort::Pos => digits(out, value, "Pos"),
        typed::NumberSort::Nat => digits(out, value, "Nat"),
        typed::NumberSort::Int if value.sign() == Sign::Minus => {
            let inner = digits(out, value, "Pos")?;
            unary(out, "@cNeg", "Pos", inner)
        }
        typed::NumberSort::Int => {
            let inner = digits(out, value, "Nat")?;
            unary(out, "@cInt", "Nat", inner)
        }
        typed::NumberSort::Real => {
            let (above, below) =
                (number(out, value, typed::NumberSort::Int)?, digits(out, &1.into(), "Pos")?);
            let f = function(out, "@cReal", &["Int", "Pos"], "Real")?;
            out.share("DataAppl", &[f, above, below])
        }
    }
}

/// Shares the magnitude as a positive or natural number: digits of 64 bits, from the most
/// significant one on.
fn digits(out: &mut TermWriter<'_>, value: &BigInt, sort: &str) -> std::io::Result<Term> {
    let (_, words) = value.to_u64_digits();
    let (first, rest) = words.split_last().map_or((0, [].as_slice()), |(f, r)| (*f, r));
    let start = function(
        out,
        if sort == "Pos" { "@most_significant_digit" } else { "@most_significant_digitNat" },
        &["@word"],
        sort,
    )?;
    let word = out.share_int(first)?;
    let mut term = out.share("DataAppl", &[start, word])?;
    for &word in rest.iter().rev() {
        let next = function(out, "@concat_digit", &[sort, "@word"], sort)?;
        let word = out.share_int(word)?;
        term = out.share("DataAppl", &[next, term, word])?;
    }
    Ok(term)
}
