//! Parameterised boolean equation systems in mCRL2's text format: text -> a specification with
//! steps that are the moves of the system's game.
//!
//! ```text
//! sort …  map …  eqn …
//! pbes nu X(n: Nat) = val(n < 3) => (forall m: Nat. val(m > n) || Y(m));
//!      mu Y(n: Nat) = X(n + 1) && exists k: Nat. val(k < n);
//! init X(0);
//! ```
//! As in the tool `pbes2lps` of the mCRL2 project each equation becomes a process. A disjunction or
//! `exists` offers its operands as steps `some_k`, a conjunction or `forall` as steps `all_k`,
//! where `k` counts the changes between least and greatest fixed points up to the equation. Parts
//! with another connective become states of their own, with the last `k`. Conditions guard steps,
//! quantified variables are summed; a decided part is a step `yes` or `no`; `each` marks states of
//! conjunctions. The states and steps are the game (`game::moves`), so all readers and explorers of
//! specifications also support equation systems.
//!
//! Cost: one pass. Invariant: positions of the tree refer to the original text.

use ahash::AHashSet;
use mu_base::{Diagnostic, SourceId, Span, Stage, narrow};
use mu_syntax::ast::{
    self, BinaryOp, Data, DataKind, Node, Process, ProcessKind, Quantifier, Section,
};
use mu_syntax::ast::{StateFormula, StateFormulaKind, StateOp, UnaryOp};
use mu_syntax::{parse_formula_in, parse_head_in, parse_specification};

mod miniscope;
mod names;
mod skeleton;
mod outline;
mod unroll;

pub use names::names;
pub use outline::read_outlined;
pub use skeleton::Skeleton;
pub use unroll::UnrollSelection;

/// An equation system as a model.
#[derive(Clone, Debug)]
pub struct System {
    /// The specification of the game.
    pub specification: ast::Specification,
    /// The common prefix of its action names.
    pub prefix: String,
    /// By rank: true if the fixed points are least.
    pub least: Vec<bool>,
    /// The requested instance, as written.
    pub initial: String,
    /// The number of its equation.
    pub start: usize,
    /// The equations without their data, as they were written.
    pub bare: Vec<Skeleton>,
    /// Their ranks.
    pub ranks: Vec<usize>,
    /// Declarations of quantified integer variables with values that the game enumerates.
    pub quantified: Vec<Span>,
}

/// A formula without negation and implication.
enum PositiveFormula {
    Const(bool),
    Val(Data),
    Call(ast::Ident, Vec<Data>),
    Junction(bool, Vec<PositiveFormula>),
    Quantifier(bool, Vec<ast::VarDecl>, Box<PositiveFormula>),
}

/// A position in the text.
struct Scan<'a> {
    text: &'a str,
    source: SourceId,
    at: usize,
}

impl<'a> Scan<'a> {
    /// Skips blanks and comments.
    fn skip(&mut self) {
        loop {
            let rest = &self.text[self.at..];
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            if !trimmed.starts_with('%') {
                return;
            }
            self.at += trimmed.find('\n').unwrap_or(trimmed.len());
        }
    }
    /// Consumes the next word, if there is one.
    fn word(&mut self) -> Option<&'a str> {
        self.skip();
        let rest = &self.text[self.at..];
        let end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '\''))
            .unwrap_or(rest.len());
        (end > 0 && !rest.starts_with(|c: char| c.is_ascii_digit())).then(|| &rest[..end])
    }
    fn keyword(&mut self, keyword: &str) -> bool {
        let found = self.word() == Some(keyword);
        if found {
            self.at += keyword.len();
        }
        found
    }
    fn refuse(&mut self, expected: &str) -> Diagnostic {
        self.skip();
        let length = self.word().map_or_else(
            || self.text[self.at..].chars().next().map_or(0, char::len_utf8),
            str::len,
        );
        // At the end of the text, the position is its last character.
        let at = if length == 0 {
            self.text.trim_end().char_indices().last().map_or(0, |c| c.0)
        } else {
            self.at
        };
        let length = if length == 0 {
            self.text[at..].chars().next().map_or(0, char::len_utf8)
        } else {
            length
        };
        let found =
            &self.text[self.at.min(self.text.len())..][..if self.at == at { length } else { 0 }];
        let found = if found.is_empty() {
            "the text ends here".to_string()
        } else {
            format!("unexpected `{found}`")
        };
        let span =
            Span { source: self.source, start: narrow::index(at), end: narrow::index(at + length) };
        Diagnostic::at(Stage::Syntax, span, found).note(format!("expected {expected}"))
    }
    /// Advances to a symbol outside of comments and brackets. Returns the range before it.
    fn advance_to(&mut self, mark: char) -> Option<std::ops::Range<usize>> {
        let (start, mut depth, mut comment) = (self.at, 0usize, false);
        for (i, c) in self.text[start..].char_indices() {
            match c {
                '\n' => comment = false,
                _ if comment => {}
                '%' => comment = true,
                _ if c == mark && depth == 0 => {
                    self.at = start + i;
                    return Some(start..start + i);
                }
                '(' | '[' | '{' => depth += 1,
                ')' | ']' | '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        None
    }
}

/// Returns the position of the word `pbes` outside of comments.
fn start_of_equations(text: &str) -> Option<usize> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let code = line.split('%').next().unwrap_or("");
        let inside = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '\'';
        let found = code
            .match_indices("pbes")
            .find(|(i, _)| !code[..*i].ends_with(inside) && !code[i + 4..].starts_with(inside));
        if let Some((i, _)) = found {
            return Some(at + i);
        }
        at += line.len();
    }
    None
}

struct FixpointEquation {
    least: bool,
    name: ast::Ident,
    params: Vec<ast::VarDecl>,
    body: PositiveFormula,
}

/// Reads a system.
pub fn read(source: SourceId, text: &str) -> Result<System, Diagnostic> {
    read_unrolled(source, text, &UnrollSelection::default())
}

/// Reads a system in which some quantifiers over numbers become equations that try one number after
/// another.
pub fn read_unrolled(
    source: SourceId,
    text: &str,
    unrolled: &UnrollSelection,
) -> Result<System, Diagnostic> {
    let mut scan = Scan { text, source, at: 0 };
    let sections = declarations(&mut scan)?;
    let mut equations: Vec<FixpointEquation> = Vec::new();
    loop {
        let least = match scan.word() {
            Some("mu") => true,
            Some("nu") => false,
            _ => break,
        };
        scan.at += 2;
        equations.push(equation(&mut scan, least)?);
    }
    if equations.is_empty() || !scan.keyword("init") {
        return Err(
            scan.refuse("an equation `mu X = …;` or `nu X = …;`, or, after these, `init X;`")
        );
    }
    let part = scan.advance_to(';').ok_or_else(|| scan.refuse("`;` after the initial instance"))?;
    scan.at += 1;
    scan.skip();
    if scan.at < text.len() {
        return Err(scan.refuse("the end of the text"));
    }
    system(sections, equations, (source, text, part), unrolled)
}

/// Reads the declarations before the equations, and the word `pbes`.
fn declarations(scan: &mut Scan<'_>) -> Result<Vec<Section>, Diagnostic> {
    let Some(start) = start_of_equations(scan.text) else {
        return Err(scan.refuse("an equation system: declarations, then `pbes` and equations"));
    };
    let sections = parse_specification(scan.source, &scan.text[..start])?.sections;
    for section in &sections {
        let at = match section {
            Section::Actions(list) => list.first().map(|a| a.0.span),
            Section::Processes(list) => list.first().map(|p| p.name.span),
            Section::Init(process) => Some(process.span),
            _ => continue,
        };
        return Err(Diagnostic::at(
            Stage::Syntax,
            at.unwrap_or_default(),
            "an equation system has no processes and no actions",
        ));
    }
    scan.at = start + "pbes".len();
    Ok(sections)
}

/// Builds the model of equations; the initial instance is a part of the text.
fn system(
    mut sections: Vec<Section>,
    mut equations: Vec<FixpointEquation>,
    (source, text, part): (SourceId, &str, std::ops::Range<usize>),
    unrolled: &UnrollSelection,
) -> Result<System, Diagnostic> {
    let formula = parse_formula_in(source, text, part.clone())?.formula;
    let initial = text[part].trim().to_string();
    let StateFormulaKind::Var(name, args) = &formula.kind else {
        return Err(Diagnostic::at(
            Stage::Syntax,
            formula.span,
            "the initial instance is that of one variable",
        )
        .note("for example `init X(0);`"));
    };
    let mut names = AHashSet::new();
    if let Some(e) = equations.iter().find(|e| !names.insert(e.name.kind.as_str())) {
        return Err(Diagnostic::at(
            Stage::Type,
            e.name.span,
            format!("the variable `{}` has two equations", e.name.kind),
        ));
    }
    if !names.contains(name.kind.as_str()) {
        return Err(unknown_variable_error(name, &in_order(&equations)));
    }
    let start = equations
        .iter()
        .position(|e| e.name.kind == name.kind)
        .expect("the names are those of the equations");
    let (bare, written) = (skeleton::bare(&equations), equations.len());
    miniscope::narrow(&mut equations);
    let quantified = unroll::unroll(&mut equations, unrolled);
    let names = in_order(&equations);
    let known: AHashSet<&str> = names.iter().map(String::as_str).collect();
    let (mut ranks, mut signs) = (Vec::new(), Vec::new());
    for e in &equations {
        if signs.last() != Some(&e.least) {
            signs.push(e.least);
        }
        ranks.push(signs.len() - 1);
    }
    let last = signs.len() - 1;
    // Choose names of actions that no equation has.
    let mut prefix = String::new();
    while names.iter().any(|n| {
        n.strip_prefix(&prefix)
            .is_some_and(|n| ["some", "all", "yes", "no", "each"].iter().any(|a| n.starts_with(a)))
    }) {
        prefix.push_str("m_");
    }
    let game = Game { prefix: &prefix, names: &names, known: &known, last };
    let mut actions: Vec<String> = ["yes", "no", "each"].map(|a| format!("{prefix}{a}")).to_vec();
    actions
        .extend((0..=last).flat_map(|k| [format!("{prefix}some_{k}"), format!("{prefix}all_{k}")]));
    sections.push(Section::Actions(
        actions.into_iter().map(|a| (Node::new(a, Span::default()), Vec::new())).collect(),
    ));
    let mut processes = Vec::new();
    let ranks_written = ranks[..written].to_vec();
    for (e, rank) in equations.into_iter().zip(ranks) {
        let body = game.state(&e.body, rank, e.name.span)?;
        processes.push(ast::ProcessEquation { name: e.name, params: e.params, body });
    }
    sections.push(Section::Processes(processes));
    sections.push(Section::Init(call(name.clone(), args.clone(), name.span)));
    Ok(System {
        specification: ast::Specification { sections, ..Default::default() },
        prefix,
        least: signs,
        initial,
        start,
        bare,
        ranks: ranks_written,
        quantified,
    })
}

fn in_order(equations: &[FixpointEquation]) -> Vec<String> {
    equations.iter().map(|e| e.name.kind.clone()).collect()
}

fn unknown_variable_error(name: &ast::Ident, names: &[String]) -> Diagnostic {
    Diagnostic::at(Stage::Type, name.span, format!("the variable `{}` has no equation", name.kind))
        .note(format!("variables: {}", names.join(", ")))
}

/// Parses `X(x: S) = f;` after its sign.
fn equation(scan: &mut Scan, least: bool) -> Result<FixpointEquation, Diagnostic> {
    let Some(_) = scan.word() else { return Err(scan.refuse("the variable of the equation")) };
    let from = scan.at;
    let head = scan.advance_to('=').ok_or_else(|| scan.refuse("`=` and the right-hand side"))?;
    let (name, params) = parse_head_in(scan.source, scan.text, from..head.end)?;
    scan.at += 1;
    let body = scan.advance_to(';').ok_or_else(|| scan.refuse("`;` after the right-hand side"))?;
    let body = parse_formula_in(scan.source, scan.text, body)?;
    scan.at += 1;
    Ok(FixpointEquation { least, name, params, body: positive(&body.formula, true)? })
}

fn grow_stack<T>(work: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(128 << 10, 4 << 20, work)
}

/// Pushes negations inwards.
fn positive(formula: &StateFormula, sign: bool) -> Result<PositiveFormula, Diagnostic> {
    use StateFormulaKind as F;
    grow_stack(|| {
        let refuse = |what: &str| {
            Err(Diagnostic::at(
                Stage::Syntax,
                formula.span,
                format!("{what} cannot occur in an equation system"),
            ))
        };
        Ok(match &formula.kind {
            F::True => PositiveFormula::Const(sign),
            F::False => PositiveFormula::Const(!sign),
            F::Val(data) => {
                PositiveFormula::Val(if sign { (**data).clone() } else { negate(data) })
            }
            F::Var(name, args) if sign => PositiveFormula::Call(name.clone(), args.clone()),
            F::Var(name, _) => return Err(refuse_negated(name)),
            F::Not(inner) => positive(inner, !sign)?,
            F::Binary(op @ (StateOp::And | StateOp::Or), a, b) => {
                junction((*op == StateOp::And) == sign, [positive(a, sign)?, positive(b, sign)?])
            }
            F::Binary(StateOp::Implies, a, b) => {
                junction(!sign, [positive(a, !sign)?, positive(b, sign)?])
            }
            F::Quantified(q @ (Quantifier::Forall | Quantifier::Exists), vars, body) => {
                PositiveFormula::Quantifier(
                    (*q == Quantifier::Forall) == sign,
                    vars.clone(),
                    Box::new(positive(body, sign)?),
                )
            }
            F::Must(..) | F::May(..) => return refuse("a modality"),
            F::Fix { .. } => return refuse("a fixed point within an equation"),
            _ => return refuse("this"),
        })
    })
}

fn refuse_negated(name: &ast::Ident) -> Diagnostic {
    Diagnostic::at(
        Stage::Type,
        name.span,
        format!("the variable `{}` occurs under an odd number of negations", name.kind),
    )
}

fn negate(data: &Data) -> Data {
    match &data.kind {
        DataKind::Unary(UnaryOp::Not, inner) => (**inner).clone(),
        _ => Node::new(DataKind::Unary(UnaryOp::Not, Box::new(data.clone())), data.span),
    }
}

/// Creates a conjunction (`all`) or disjunction; inlines operands of the same kind.
fn junction(all: bool, parts: [PositiveFormula; 2]) -> PositiveFormula {
    let mut flat = Vec::new();
    for part in parts {
        match part {
            PositiveFormula::Junction(a, inner) if a == all => flat.extend(inner),
            PositiveFormula::Const(b) if b == all => {}
            part => flat.push(part),
        }
    }
    match flat.len() {
        0 => PositiveFormula::Const(all),
        1 => flat.remove(0),
        _ => PositiveFormula::Junction(all, flat),
    }
}

fn call(name: ast::Ident, args: Vec<Data>, span: Span) -> Process {
    Node::new(ProcessKind::Call { parens: !args.is_empty(), name, args }, span)
}

struct Game<'a> {
    prefix: &'a str,
    names: &'a [String],
    known: &'a AHashSet<&'a str>,
    last: usize,
}

impl Game<'_> {
    fn action(&self, name: &str, span: Span) -> Process {
        call(Node::new(format!("{}{name}", self.prefix), span), Vec::new(), span)
    }
    fn prefix(&self, name: &str, next: Process) -> Process {
        let span = next.span;
        Node::new(ProcessKind::Seq(Box::new(self.action(name, span)), Box::new(next)), span)
    }
    fn end(&self, name: &str, span: Span) -> Process {
        self.prefix(name, Node::new(ProcessKind::Delta, span))
    }
    /// Returns the state of a formula with this rank.
    fn state(
        &self,
        formula: &PositiveFormula,
        rank: usize,
        span: Span,
    ) -> Result<Process, Diagnostic> {
        match formula {
            PositiveFormula::Junction(true, _) | PositiveFormula::Quantifier(true, ..) => {
                Ok(choice(self.end("each", span), self.steps(formula, true, rank, span)?))
            }
            _ => self.steps(formula, false, rank, span),
        }
    }
    /// Returns the steps that a formula contributes to a state of a connective (`all`:
    /// conjunction).
    fn steps(
        &self,
        formula: &PositiveFormula,
        all: bool,
        rank: usize,
        span: Span,
    ) -> Result<Process, Diagnostic> {
        let step = format!("{}_{rank}", if all { "all" } else { "some" });
        let decided = if all { "no" } else { "yes" };
        grow_stack(|| {
            Ok(match formula {
                PositiveFormula::Const(value) if *value == all => {
                    Node::new(ProcessKind::Delta, span)
                }
                PositiveFormula::Const(_) => self.end(decided, span),
                PositiveFormula::Val(data) => guard(
                    vec![if all { negate(data) } else { data.clone() }],
                    self.end(decided, data.span),
                ),
                PositiveFormula::Call(name, _) if !self.known.contains(name.kind.as_str()) => {
                    return Err(unknown_variable_error(name, self.names));
                }
                PositiveFormula::Call(name, args) => {
                    self.prefix(&step, call(name.clone(), args.clone(), name.span))
                }
                PositiveFormula::Quantifier(a, vars, body) if *a == all => Node::new(
                    ProcessKind::Sum(vars.clone(), Box::new(self.steps(body, all, rank, span)?)),
                    span,
                ),
                PositiveFormula::Junction(a, parts) if *a == all => {
                    // If a condition decides, nothing else is evaluated, because the rest may not
                    // terminate.
                    let (mut conditions, mut decides, mut rest) =
                        (Vec::new(), Vec::new(), Vec::new());
                    for part in parts {
                        let steps = self.steps(part, all, rank, span)?;
                        match part {
                            PositiveFormula::Val(data) => {
                                conditions.push(if all { data.clone() } else { negate(data) });
                                decides.push(steps);
                            }
                            _ => rest.push(steps),
                        }
                    }
                    let rest =
                        rest.into_iter().reduce(choice).map(|steps| guard(conditions, steps));
                    let all = decides.into_iter().chain(rest).reduce(choice);
                    all.unwrap_or_else(|| Node::new(ProcessKind::Delta, span))
                }
                // Conditions decide here; the rest is a part of this state if it is a single one,
                // otherwise a state of its own.
                PositiveFormula::Junction(_, parts) => {
                    let condition = |p: &PositiveFormula| match p {
                        PositiveFormula::Val(data) => {
                            Some(if all { negate(data) } else { data.clone() })
                        }
                        _ => None,
                    };
                    let conditions: Vec<Data> = parts.iter().filter_map(condition).collect();
                    let rest: Vec<&PositiveFormula> =
                        parts.iter().filter(|p| !matches!(p, PositiveFormula::Val(_))).collect();
                    let behind = match rest[..] {
                        [] => self.end(decided, span),
                        [one] => self.steps(one, all, rank, span)?,
                        _ => self.prefix(&step, self.other(&rest, !all, span)?),
                    };
                    guard(conditions, behind)
                }
                PositiveFormula::Quantifier(..) => {
                    self.prefix(&step, self.other(&[formula], !all, span)?)
                }
            })
        })
    }
    /// Returns a separate state with the last rank, for operands of a connective.
    fn other(
        &self,
        parts: &[&PositiveFormula],
        all: bool,
        span: Span,
    ) -> Result<Process, Diagnostic> {
        let mut state = if all { Some(self.end("each", span)) } else { None };
        for part in parts {
            let steps = self.steps(part, all, self.last, span)?;
            state = Some(match state {
                None => steps,
                Some(before) => choice(before, steps),
            });
        }
        Ok(state.unwrap_or_else(|| Node::new(ProcessKind::Delta, span)))
    }
}

fn choice(a: Process, b: Process) -> Process {
    let span = a.span;
    Node::new(ProcessKind::Choice(Box::new(a), Box::new(b)), span)
}

fn guard(conditions: Vec<Data>, process: Process) -> Process {
    let and = |a: Data, b: Data| {
        let span = a.span;
        Node::new(DataKind::Binary(BinaryOp::And, Box::new(a), Box::new(b)), span)
    };
    let span = process.span;
    match conditions.into_iter().reduce(and) {
        None => process,
        Some(condition) => {
            Node::new(ProcessKind::If(Box::new(condition), Box::new(process), None), span)
        }
    }
}
