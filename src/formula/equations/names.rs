//! Meaning of the names of an equation system, for editors: its data definitions, the variables of
//! its equations, their parameters and quantified variables.
//!
//! In: a text without parameter layer, possibly with errors. Out: a [`Naming`]. Sorts, operations
//! and variables of equations are separate namespaces; the innermost parameter or quantified
//! variable hides an operation with its name, as in the type checker. Overloads are one entity, so
//! that they are renamed together. A section or an equation with a syntax error yields nothing, or
//! its head only. Cost: linear.

use super::{Scan, start_of_equations};
use mu_base::naming::{Mention, NameRole, Naming, line};
use mu_base::{SourceId, Span, narrow};
use mu_syntax::ast::{
    Data, DataKind, Ident, Section, Sort, SortKind, StateFormula, StateFormulaKind, VarDecl,
};
use mu_syntax::tokens::{TokenKind, tokens};
use mu_syntax::{parse_formula_in, parse_head_in, parse_specification};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Words that begin a section of data definitions.
const SECTIONS: [&str; 6] = ["sort", "cons", "map", "glob", "var", "eqn"];

/// Returns the names of a system.
pub fn names(source: SourceId, text: &str) -> Naming {
    let start = start_of_equations(text).unwrap_or(text.len());
    let sections = sections(source, &text[..start]);
    let equations = equations(source, text, start);
    let mut walk = NameCollector { text, ..NameCollector::default() };
    sections.iter().for_each(|s| walk.declares(s));
    for e in &equations.list {
        let kind = if e.least { "least" } else { "greatest" };
        let says =
            line(&format!("{} {}", if e.least { "mu" } else { "nu" }, walk.source_text(e.head)));
        let of = walk.out.declare(NameRole::FixedPoint, &e.name.kind, e.name.span, e.whole, says);
        walk.out.bindings[of].note = format!("the {kind} fixed point of its equation");
        walk.equations.entry(e.name.kind.clone()).or_insert(of);
    }
    sections.iter().for_each(|s| walk.uses(s));
    std::mem::take(&mut walk.globals).into_iter().for_each(|global| walk.scope.push(global));
    let globals = walk.scope.len();
    for e in &equations.list {
        walk.binds(&e.params, e.whole, "a parameter of this equation");
        e.body.iter().for_each(|f| walk.formula(f));
        walk.scope.truncate(globals);
    }
    if let Some((initial, whole)) = &equations.initial {
        walk.formula(initial);
        walk.out.parts.push(("init".into(), *whole));
    }
    // A sort shared by several names is written once.
    let mut seen = HashSet::new();
    walk.out.mentions.retain(|m| seen.insert(m.place.start));
    walk.out
}

/// Parses the data definitions; if that fails as a whole, the sections that can be parsed.
fn sections(source: SourceId, text: &str) -> Vec<Section> {
    if let Ok(all) = parse_specification(source, text) {
        return all.sections;
    }
    let words = tokens(text);
    let begins = |t: &mu_syntax::tokens::Token| {
        t.kind == TokenKind::Word && SECTIONS.contains(&t.text(text))
    };
    let mut cuts: Vec<usize> = Vec::new();
    let mut before = "";
    for token in words.iter().filter(|t| begins(t)) {
        // Variables belong to the equations after them.
        let word = token.text(text);
        if (before, word) != ("var", "eqn") {
            cuts.push(token.range.start);
        }
        before = word;
    }
    let ends = cuts.iter().skip(1).copied().chain([text.len()]);
    let part = |(from, to): (&usize, usize)| {
        // Blanks instead of the preceding text preserve the positions.
        let blank: String =
            text[..*from].bytes().map(|b| if b == b'\n' { '\n' } else { ' ' }).collect();
        parse_specification(source, &(blank + &text[*from..to])).ok()
    };
    cuts.iter().zip(ends).filter_map(part).flat_map(|s| s.sections).collect()
}

struct FixpointEquation {
    least: bool,
    name: Ident,
    params: Vec<VarDecl>,
    body: Option<StateFormula>,
    /// The variable with its parameters.
    head: Span,
    whole: Span,
}

#[derive(Default)]
struct NamedEquations {
    list: Vec<FixpointEquation>,
    initial: Option<(StateFormula, Span)>,
}

/// Parses the equations, each up to the next one: an unclosed bracket affects only its own
/// equation.
fn equations(source: SourceId, text: &str, start: usize) -> NamedEquations {
    let mut out = NamedEquations::default();
    let behind = text.get(start..).unwrap_or("");
    let begins = |t: &mu_syntax::tokens::Token| {
        t.kind == TokenKind::Word && ["mu", "nu", "init"].contains(&t.text(behind))
    };
    let cuts: Vec<usize> =
        tokens(behind).iter().filter(|t| begins(t)).map(|t| start + t.range.start).collect();
    let ends = cuts.iter().skip(1).copied().chain([text.len()]);
    let span =
        |r: Range<usize>| Span { source, start: narrow::index(r.start), end: narrow::index(r.end) };
    for (from, to) in cuts.iter().copied().zip(ends) {
        let part = &text[..to];
        let mut scan = Scan { text: part, source, at: from };
        let Some(sign) = scan.word() else { continue };
        scan.at += sign.len();
        if sign == "init" {
            let initial = scan.advance_to(';').and_then(|r| {
                parse_formula_in(source, text, r.clone())
                    .ok()
                    .map(|f| (f.formula, span(from..r.end + 1)))
            });
            out.initial = out.initial.or(initial);
            continue;
        }
        scan.skip();
        let at = scan.at;
        let Some(head) = scan.advance_to('=') else { continue };
        let Ok((name, params)) = parse_head_in(source, text, at..head.end) else { continue };
        scan.at += 1;
        let body = scan.advance_to(';');
        let end = body.as_ref().map_or(part.trim_end().len(), |b| b.end + 1);
        let body = body.and_then(|b| parse_formula_in(source, text, b).ok()).map(|f| f.formula);
        let head = span(at..text[..head.end].trim_end().len());
        out.list.push(FixpointEquation {
            least: sign == "mu",
            name,
            params,
            body,
            head,
            whole: span(from..end),
        });
    }
    out
}

#[derive(Default)]
struct NameCollector<'t> {
    out: Naming,
    text: &'t str,
    sorts: HashMap<String, usize>,
    /// Constructors, mappings, projections, recognisers.
    operations: HashMap<String, usize>,
    equations: HashMap<String, usize>,
    globals: Vec<(String, usize)>,
    /// Variables in scope, the innermost last.
    scope: Vec<(String, usize)>,
}

impl<'t> NameCollector<'t> {
    fn source_text(&self, span: Span) -> &'t str {
        self.text.get(span.start as usize..span.end as usize).unwrap_or("")
    }

    fn operation(&mut self, role: NameRole, name: &Ident, whole: Span, says: String) {
        let says = line(&says);
        match self.operations.get(&name.kind) {
            Some(&of) => {
                self.out.mentions.push(Mention { place: name.span, of, declares: true });
                let binding = &mut self.out.bindings[of];
                binding.declaration = format!("{}; {says}", binding.declaration);
            }
            None => {
                let of = self.out.declare(role, &name.kind, name.span, whole, says);
                self.operations.insert(name.kind.clone(), of);
            }
        }
    }

    /// Adds the global declarations of a section.
    fn declares(&mut self, section: &Section) {
        match section {
            Section::Sorts(list) => {
                for (name, definition) in list {
                    let whole = definition.as_ref().map_or(name.span, |d| name.span.to(d.span));
                    let of = self.out.declare(
                        NameRole::Type,
                        &name.kind,
                        name.span,
                        whole,
                        line(&format!("sort {}", self.source_text(whole))),
                    );
                    self.out.bindings[of].note = "a sort".into();
                    self.sorts.entry(name.kind.clone()).or_insert(of);
                    definition.iter().for_each(|d| self.structs(d, &name.kind));
                }
            }
            Section::Constructors(list) | Section::Mappings(list) => {
                let role = if matches!(section, Section::Mappings(_)) {
                    NameRole::Function
                } else {
                    NameRole::Constructor
                };
                for (name, sort) in list {
                    let whole = name.span.to(sort.span);
                    self.operation(
                        role,
                        name,
                        whole,
                        format!("{}: {}", name.kind, self.source_text(sort.span)),
                    );
                }
            }
            Section::Globals(list) => {
                for v in list {
                    let says = format!("{}: {}", v.name.kind, self.source_text(v.sort.span));
                    let of = self.out.declare(
                        NameRole::Constant,
                        &v.name.kind,
                        v.name.span,
                        v.name.span.to(v.sort.span),
                        line(&says),
                    );
                    self.out.bindings[of].note = "a global variable".into();
                    self.globals.push((v.name.kind.clone(), of));
                }
            }
            _ => {}
        }
    }

    /// Adds constructors, projections and recognisers of the structured sorts within a sort.
    fn structs(&mut self, sort: &Sort, of: &str) {
        stacker::maybe_grow(64 << 10, 1 << 20, || match &sort.kind {
            SortKind::Struct(constructors) => {
                for c in constructors {
                    let sorts: Vec<&str> =
                        c.args.iter().map(|a| self.source_text(a.1.span)).collect();
                    let from = if sorts.is_empty() {
                        String::new()
                    } else {
                        format!("{} -> ", sorts.join(" # "))
                    };
                    let whole = c.args.last().map_or(c.name.span, |a| c.name.span.to(a.1.span));
                    self.operation(
                        NameRole::Constructor,
                        &c.name,
                        whole,
                        format!("{}: {from}{of}", c.name.kind),
                    );
                    for (projection, sort) in &c.args {
                        if let Some(p) = projection {
                            let says =
                                format!("{}: {of} -> {}", p.kind, self.source_text(sort.span));
                            self.operation(NameRole::Function, p, p.span.to(sort.span), says);
                        }
                        self.structs(sort, "struct");
                    }
                    if let Some(r) = &c.recogniser {
                        self.operation(
                            NameRole::Function,
                            r,
                            r.span,
                            format!("{}: {of} -> Bool", r.kind),
                        );
                    }
                }
            }
            SortKind::List(e)
            | SortKind::Set(e)
            | SortKind::Bag(e)
            | SortKind::FSet(e)
            | SortKind::FBag(e) => self.structs(e, "struct"),
            SortKind::Function(domain, range) => {
                domain.iter().chain([&**range]).for_each(|s| self.structs(s, "struct"))
            }
            _ => {}
        });
    }

    /// Adds the names that a section uses.
    fn uses(&mut self, section: &Section) {
        match section {
            Section::Sorts(list) => {
                list.iter().filter_map(|s| s.1.as_ref()).for_each(|s| self.sort(s))
            }
            Section::Constructors(list) | Section::Mappings(list) => {
                list.iter().for_each(|s| self.sort(&s.1))
            }
            Section::Globals(list) => list.iter().for_each(|v| self.sort(&v.sort)),
            Section::Equations(vars, list) => {
                let (Some(first), Some(last)) = (list.first(), list.last()) else { return };
                let from = vars.first().map_or(first.span, |v| v.name.span);
                self.out.parts.push(("eqn".into(), first.span.to(last.span)));
                self.binds(vars, from.to(last.span), "a variable of these equations");
                for e in list {
                    e.condition.iter().chain([&e.lhs, &e.rhs]).for_each(|d| self.data(d));
                }
                self.scope.clear();
            }
            _ => {}
        }
    }

    fn binds(&mut self, vars: &[VarDecl], scope: Span, note: &str) {
        for v in vars {
            self.sort(&v.sort);
            let says = format!("{}: {}", v.name.kind, self.source_text(v.sort.span));
            self.local(&v.name, v.name.span.to(v.sort.span), says, scope, note);
        }
    }
    fn local(&mut self, name: &Ident, whole: Span, says: String, scope: Span, note: &str) {
        let of = self.out.declare(NameRole::Local, &name.kind, name.span, whole, line(&says));
        (self.out.bindings[of].scope, self.out.bindings[of].note) = (Some(scope), note.into());
        self.scope.push((name.kind.clone(), of));
    }

    fn sort(&mut self, sort: &Sort) {
        stacker::maybe_grow(64 << 10, 1 << 20, || match &sort.kind {
            SortKind::Name(name) => {
                if let Some(of) = self.sorts.get(name) {
                    self.out.mention(
                        Span { end: sort.span.start + narrow::index(name.len()), ..sort.span },
                        *of,
                    );
                }
            }
            SortKind::List(e)
            | SortKind::Set(e)
            | SortKind::Bag(e)
            | SortKind::FSet(e)
            | SortKind::FBag(e) => self.sort(e),
            SortKind::Function(domain, range) => {
                domain.iter().chain([&**range]).for_each(|s| self.sort(s))
            }
            SortKind::Struct(constructors) => {
                constructors.iter().flat_map(|c| &c.args).for_each(|a| self.sort(&a.1))
            }
            SortKind::Bool | SortKind::Pos | SortKind::Nat | SortKind::Int | SortKind::Real => {}
        });
    }

    fn data(&mut self, data: &Data) {
        stacker::maybe_grow(64 << 10, 1 << 20, || self.data_node(data));
    }
    fn data_node(&mut self, data: &Data) {
        let depth = self.scope.len();
        match &data.kind {
            DataKind::Name(name) => {
                let variable = self.scope.iter().rev().find(|s| s.0 == *name).map(|s| s.1);
                if let Some(of) = variable.or_else(|| self.operations.get(name).copied()) {
                    self.out.mention(
                        Span { end: data.span.start + narrow::index(name.len()), ..data.span },
                        of,
                    );
                }
            }
            DataKind::Number(_) => {}
            DataKind::List(parts) | DataKind::Set(parts) => parts.iter().for_each(|d| self.data(d)),
            DataKind::Bag(parts) => {
                parts.iter().flat_map(|(a, b)| [a, b]).for_each(|d| self.data(d))
            }
            DataKind::Apply(head, args) => {
                [&**head].into_iter().chain(args).for_each(|d| self.data(d))
            }
            DataKind::Update(f, a, b) => [f, a, b].into_iter().for_each(|d| self.data(d)),
            DataKind::Unary(_, a) => self.data(a),
            DataKind::Binary(_, a, b) => [a, b].into_iter().for_each(|d| self.data(d)),
            DataKind::Comprehension(var, body) => {
                self.binds(std::slice::from_ref(var), data.span, "of this set");
                self.data(body);
            }
            DataKind::Lambda(vars, body)
            | DataKind::Forall(vars, body)
            | DataKind::Exists(vars, body) => {
                self.binds(
                    vars,
                    data.span,
                    if matches!(data.kind, DataKind::Lambda(..)) {
                        "of this function"
                    } else {
                        "quantified"
                    },
                );
                self.data(body);
            }
            DataKind::Where(body, definitions) => {
                definitions.iter().for_each(|d| self.data(&d.1));
                for (name, value) in definitions {
                    let says = format!("{} = {}", name.kind, self.source_text(value.span));
                    self.local(name, name.span.to(value.span), says, data.span, "of this `whr`");
                }
                self.data(body);
            }
        }
        self.scope.truncate(depth);
    }

    fn formula(&mut self, formula: &StateFormula) {
        stacker::maybe_grow(64 << 10, 1 << 20, || match &formula.kind {
            StateFormulaKind::Val(data) => self.data(data),
            StateFormulaKind::Var(name, args) => {
                if let Some(of) = self.equations.get(&name.kind) {
                    self.out.mention(name.span, *of);
                }
                args.iter().for_each(|d| self.data(d));
            }
            StateFormulaKind::Not(inner) | StateFormulaKind::Minus(inner) => self.formula(inner),
            StateFormulaKind::Binary(_, a, b) => [a, b].into_iter().for_each(|f| self.formula(f)),
            StateFormulaKind::Quantified(_, vars, body) => {
                let depth = self.scope.len();
                self.binds(vars, formula.span, "quantified");
                self.formula(body);
                self.scope.truncate(depth);
            }
            // Nothing else can occur in an equation system.
            _ => {}
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A system in which one name is a parameter, a quantified variable and an operation.
    const TEXT: &str = "sort D = struct red?is_red | box(inner: D);
map n, twice: D -> D; % twice
    twice: Nat -> Nat;
var n: D; k: Nat;
eqn twice(n) = box(box(n));
    k > 0 -> twice(k) = k + k;
    n(red) = red;
glob g: D;
pbes nu X(n: Nat, d: D) =
       (forall m: Nat, d: D. val(m < n) => Y(d)) && val(d == g);
     mu Y(n: D) = val(n == red) || X(twice(1), box(n)) || (exists n: Nat. val((lambda n: Nat. n)(n) == 0));
init X(0, inner(box(red)));
";

    fn lines(text: &str, mark: &str) -> Vec<usize> {
        let all = names(SourceId::FIRST, text).places_of(text.find(mark).unwrap() as u32);
        all.iter().map(|at| text[..*at as usize].matches('\n').count()).collect()
    }

    #[test]
    fn each_name_has_its_places() {
        for (mark, wanted) in [
            ("D = struct", &[0, 0, 1, 1, 3, 7, 8, 9, 10][..]),
            ("red?", &[0, 6, 6, 10, 11]),
            ("is_red", &[0]),
            ("inner: D", &[0, 11]),
            ("twice: D", &[1, 2, 4, 5, 10]),
            ("n, twice", &[1]),
            ("n: D; k", &[3, 4, 4, 6]),
            ("k: Nat", &[3, 5, 5, 5, 5]),
            ("g: D", &[7, 9]),
            ("n: Nat, d", &[8, 9]),
            ("d: D) =", &[8, 9]),
            ("d: D. val", &[9, 9]),
            ("m: Nat", &[9, 9]),
            ("X(n", &[8, 10, 11]),
            ("Y(d)", &[9, 10]),
            ("n: D) = val", &[10, 10, 10]),
            ("n: Nat. val", &[10, 10]),
            ("n: Nat. n", &[10, 10]),
        ] {
            assert_eq!(lines(TEXT, mark), wanted, "{mark}");
        }
        let naming = names(SourceId::FIRST, TEXT);
        let says = |name: &str| {
            naming.bindings.iter().find(|b| b.name == name).map(|b| b.declaration.clone()).unwrap()
        };
        assert_eq!(says("twice"), "twice: D -> D; twice: Nat -> Nat");
        assert_eq!(says("box"), "box: D -> D");
        assert_eq!(says("Y"), "mu Y(n: D)");
        assert_eq!(naming.parts.iter().map(|p| p.0.as_str()).collect::<Vec<_>>(), ["eqn", "init"]);
    }

    /// Incomplete text: sections and equations that can be parsed retain their names.
    #[test]
    fn the_rest_stays_alive() {
        let broken = TEXT
            .replace("glob g: D;", "glob g: ;")
            .replace("(forall m: Nat, d: D.", "(forall m: Nat, d D.");
        assert_eq!(lines(&broken, "red?"), [0, 6, 6, 10, 11]);
        assert_eq!(lines(&broken, "X(n"), [8, 10, 11]);
        assert_eq!(lines(&broken, "n: D; k"), [3, 4, 4, 6]);
        // An unclosed bracket affects only its own equation.
        let open = TEXT.replace("val(m < n)", "val(m <");
        assert_eq!(lines(&open, "X(n"), [8, 10, 11]);
        assert_eq!(lines(&open, "red?"), [0, 6, 6, 10, 11]);
        for cut in (0..TEXT.len()).filter(|i| TEXT.is_char_boundary(*i)) {
            names(SourceId::FIRST, &TEXT[..cut]);
        }
        assert!(names(SourceId::FIRST, "").bindings.is_empty());
    }
}
