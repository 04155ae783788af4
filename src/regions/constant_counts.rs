//! Detection of parameters that count the constants of a sort.
//!
//! Input: a specification with parameters; its plain text for a value of one of them and for the
//! next value. Output: the names of parameters that occur only as the bound of `$for i in 0 .. n {
//! … }` with bodies of text and `${i}`, so that the texts for two values differ only in the number
//! of copies ([`counting_parameters`]); and the copied constants ([`constants`]). For the latter,
//! the two texts may differ only in one more constant of one structured sort, in constants that
//! list all of these, and in one more parallel process for each constant; otherwise the position of
//! another difference is returned. [`unbounded_specification`] builds the specification without the
//! list's equation, and with constants without a process. Words are searched, not parsed: a
//! parameter is not detected if its name also occurs elsewhere, even with another meaning. Cost:
//! linear in the text, for each parameter.

use mu_base::Span;
use mu_syntax::ast::{
    Data, DataKind, Equation, Ident, Process, ProcessKind, Section, Sort, SortKind, Specification,
    StructConstructor,
};

/// Returns a text with blanks in the place of comments.
fn without_comments(text: &str) -> String {
    let mut comment = false;
    let blank = |c: char| {
        comment = c != '\n' && (comment || c == '%');
        if comment { " ".repeat(c.len_utf8()) } else { c.to_string() }
    };
    text.chars().map(blank).collect()
}

/// Returns the parameters of a text that only count copies, in order.
pub fn counting_parameters(text: &str) -> Vec<String> {
    let plain = without_comments(text);
    let declared = plain
        .split("$param")
        .skip(1)
        .filter_map(|d| d.split(':').next())
        .map(|n| n.trim().to_string());
    declared.filter(|n| !n.is_empty() && only_bounds(&plain, n)).collect()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '\''
}

/// An occurrence of a parameter.
enum Occurrence {
    Declaration,
    /// The bound of a plain loop; true if the loop is in a structured sort.
    Bound(bool),
    /// Any other one; of the bound of another loop, the directive in its body.
    Other(usize, usize),
}

/// Returns the occurrences of a word.
fn occurrences<'t>(text: &'t str, name: &'t str) -> impl Iterator<Item = Occurrence> + 't {
    let whole = |at: &usize| {
        !text[..*at].ends_with(is_word) && !text[*at + name.len()..].starts_with(is_word)
    };
    text.match_indices(name).map(|(at, _)| at).filter(whole).map(move |at| {
        let (before, after) = (&text[..at], &text[at + name.len()..]);
        if before.trim_end().ends_with("$param") {
            return Occurrence::Declaration;
        }
        match plain_loop(before, after) {
            Ok(()) => {
                let statement = before.rsplit(';').next().unwrap_or(before);
                Occurrence::Bound(statement.split(|c| !is_word(c)).any(|word| word == "struct"))
            }
            Err(Some((from, to))) => {
                Occurrence::Other(at + name.len() + from, at + name.len() + to)
            }
            Err(None) => Occurrence::Other(at, at + name.len()),
        }
    })
}

/// True if a word occurs only in its declaration and as the bound of plain loops.
fn only_bounds(text: &str, name: &str) -> bool {
    let (mut declarations, mut bounds) = (0, 0);
    for occurrence in occurrences(text, name) {
        match occurrence {
            Occurrence::Declaration => declarations += 1,
            Occurrence::Bound(_) => bounds += 1,
            Occurrence::Other(..) => return false,
        }
    }
    declarations == 1 && bounds > 0
}

/// Returns the first occurrence of a parameter that is neither its declaration nor the bound of a
/// plain loop, as bytes of the text, if it is the bound of a plain loop in a structured sort.
pub fn first_other_use(text: &str, name: &str) -> Option<(usize, usize)> {
    let plain = without_comments(text);
    let all: Vec<Occurrence> = occurrences(&plain, name).collect();
    all.iter().find(|o| matches!(o, Occurrence::Bound(true)))?;
    all.iter().find_map(|o| match o {
        Occurrence::Other(from, to) => Some((*from, *to)),
        _ => None,
    })
}

/// Checks that the text around a word makes it the bound of a loop from 0, with no directive in the
/// body except its variable. Error: it does not; with the place of another directive in the body,
/// as bytes of `after`.
fn plain_loop(before: &str, after: &str) -> Result<(), Option<(usize, usize)>> {
    let before = before.trim_end().strip_suffix("..").map(str::trim_end).ok_or(None)?;
    let word = |before: &'_ str, word: &str| {
        let rest = before.strip_suffix(word).filter(|b| b.ends_with(char::is_whitespace));
        rest.map(|rest| rest.trim_end().len())
    };
    let before = &before[..word(before, "0").ok_or(None)?];
    let before = &before[..word(before, "in").ok_or(None)?];
    let start = before.trim_end_matches(is_word);
    let variable = &before[start.len()..];
    if variable.is_empty() || !start.trim_end().ends_with("$for") {
        return Err(None);
    }
    let mut rest = after.trim_start();
    if let Some(join) = rest.strip_prefix("join") {
        let (_, behind) = join
            .trim_start()
            .strip_prefix('"')
            .and_then(|join| join.split_once('"'))
            .ok_or(None)?;
        rest = behind.trim_start();
    }
    let body = rest.strip_prefix('{').ok_or(None)?;
    let (mut depth, mut at) = (1, body);
    while let Some(next) = at.find(['{', '}', '$']) {
        let here = &at[next..];
        at = &here[1..];
        if here.starts_with('{') {
            depth += 1;
        } else if here.starts_with('}') {
            depth -= 1;
            if depth == 0 {
                return Ok(());
            }
        } else {
            let from = after.len() - here.len();
            let (inside, behind) = here
                .strip_prefix("${")
                .and_then(|h| h.split_once('}'))
                .ok_or(Some((from, from + 1)))?;
            if inside.trim() != variable {
                return Err(Some((from, after.len() - behind.len())));
            }
            at = behind;
        }
    }
    Err(None)
}

/// A difference between the specifications for two values, other than one more constant of a sort.
#[derive(Clone, Debug)]
pub struct ValueDependence {
    /// Its description.
    pub what: String,
    /// The constant that it names, if this is the only obstacle: the processes for each constant
    /// are there.
    pub named: Option<String>,
    /// Its position.
    pub span: Option<Span>,
}

impl ValueDependence {
    fn new(what: impl Into<String>, span: Span) -> Self {
        Self { what: what.into(), named: None, span: Some(span) }
    }
    /// Returns the sentence about the parameter that is to count constants.
    pub fn text(&self, parameter: &str) -> String {
        match &self.named {
            Some(constant) => format!(
                "`{constant}` is named outside of the processes for each constant, of which \
                 `{parameter}` is any number"
            ),
            None => format!(
                "{} depends on `{parameter}`, which may only be the number of constants of one sort",
                self.what
            ),
        }
    }
}

/// The constants that a parameter counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConstantCount {
    /// The names of the constants, in order.
    pub names: Vec<String>,
    /// The name of the next constant.
    pub next: String,
    /// The mapping that lists all of them, if there is one.
    pub list: Option<String>,
    /// True if processes run in parallel, one or more for each constant.
    pub parallel: bool,
}

impl ConstantCount {
    /// Returns the same for one more constant.
    pub fn larger(&self) -> Self {
        let mut larger = self.clone();
        larger.names.push(self.next.clone());
        larger
    }

    /// True if it counts more than constants.
    pub fn counts_components(&self) -> bool {
        self.parallel || self.list.is_some()
    }
}

/// Compares the specification for `size` with the one for `size + 1`. Returns the constants that
/// the parameter counts, or another difference.
pub fn constants(
    size: usize,
    at: &Specification,
    above: &Specification,
) -> Result<ConstantCount, ValueDependence> {
    let nothing = |what: &str| ValueDependence { what: what.into(), named: None, span: None };
    if at.sections.len() != above.sections.len() {
        return Err(nothing("the list of sections"));
    }
    let differ = || at.sections.iter().zip(&above.sections).filter(|(a, b)| a != b);
    let mut found = None;
    for (a, b) in differ() {
        let (Section::Sorts(a), Section::Sorts(b)) = (a, b) else { continue };
        if a.len() != b.len() {
            return Err(nothing("the list of sorts"));
        }
        for (a, b) in a.iter().zip(b).filter(|(a, b)| a != b) {
            let more = || {
                ValueDependence::new(
                    format!("more of the sort `{}` than the number of its constants", a.0.kind),
                    a.0.span,
                )
            };
            let (Some(x), Some(y)) = (&a.1, &b.1) else { return Err(more()) };
            let (SortKind::Struct(x), SortKind::Struct(y)) = (&x.kind, &y.kind) else {
                return Err(more());
            };
            if a.0 != b.0 {
                return Err(more());
            }
            if found.is_some() {
                return Err(ValueDependence::new(
                    format!("a second sort, `{}`,", a.0.kind),
                    a.0.span,
                ));
            }
            found = Some(one_more(size, x, y).ok_or_else(more)?);
        }
    }
    let mut copies = Copies { names: found.unwrap_or_default(), list: None, parallel: false };
    for (a, b) in differ() {
        match (a, b) {
            (Section::Sorts(_), Section::Sorts(_)) => {}
            _ if copies.names.is_empty() => return Err(value_dependence(a, b)),
            (Section::Equations(x, a), Section::Equations(y, b))
                if x == y && a.len() == b.len() =>
            {
                a.iter()
                    .zip(b)
                    .filter(|(a, b)| a != b)
                    .try_for_each(|(a, b)| copies.equation(a, b))?;
            }
            (Section::Processes(x), Section::Processes(y)) if x.len() == y.len() => {
                for (p, q) in x.iter().zip(y).filter(|(p, q)| p != q) {
                    if (&p.name, &p.params) != (&q.name, &q.params) {
                        return Err(value_dependence(a, b));
                    }
                    copies.process(&p.body, &q.body)?;
                }
            }
            (Section::Init(p), Section::Init(q)) => copies.process(p, q)?,
            _ => return Err(value_dependence(a, b)),
        }
    }
    if copies.names.is_empty() {
        return Err(nothing("nothing"));
    }
    let next = copies.names.pop().unwrap_or_default();
    Ok(ConstantCount { names: copies.names, next, list: copies.list, parallel: copies.parallel })
}

/// Returns the specification for a parameter that counts more than constants, and the names of all
/// constants. It has no equation for the list of all constants, and `more` additional constants of
/// the sort with new names, after the others.
pub fn unbounded_specification(
    tree: &Specification,
    counted: &ConstantCount,
    more: usize,
) -> (Specification, Vec<String>) {
    let mut tree = tree.clone();
    let (first, mut names) =
        (counted.names.first().cloned().unwrap_or_default(), counted.names.clone());
    let text = mu_syntax::print::specification(&tree);
    names.extend(
        (0..).map(|i| format!("{first}_{i}'")).filter(|name| !text.contains(name)).take(more),
    );
    for section in &mut tree.sections {
        match section {
            Section::Sorts(sorts) => {
                for sort in sorts.iter_mut().filter_map(|s| s.1.as_mut()) {
                    let SortKind::Struct(constructors) = &mut sort.kind else { continue };
                    // Other constructors of these names have arguments.
                    let is_counted = |c: &StructConstructor| {
                        c.args.is_empty() && counted.names.contains(&c.name.kind)
                    };
                    let Some(at) = constructors.iter().rposition(is_counted) else { continue };
                    let plain = constructors[at].clone();
                    let own = names[counted.names.len()..].iter();
                    let own = own.map(|n| StructConstructor {
                        name: Ident::new(n.clone(), plain.name.span),
                        ..plain.clone()
                    });
                    constructors.splice(at + 1..at + 1, own.collect::<Vec<_>>());
                }
            }
            Section::Equations(_, equations) => {
                equations.retain(|e| !matches!((&e.lhs.kind, &counted.list), (DataKind::Name(n), Some(list)) if n == list));
            }
            _ => {}
        }
    }
    (tree, names)
}

/// Comparison of specifications that have one copy for each constant. The last of `names` is that
/// of the larger specification.
struct Copies {
    names: Vec<String>,
    list: Option<String>,
    parallel: bool,
}

impl Copies {
    /// Compares equations: one may list all constants.
    fn equation(&mut self, a: &Equation, b: &Equation) -> Result<(), ValueDependence> {
        let else_ = Err(ValueDependence::new("an equation", a.span));
        let (DataKind::Name(name), DataKind::List(x), DataKind::List(y)) =
            (&a.lhs.kind, &a.rhs.kind, &b.rhs.kind)
        else {
            return else_;
        };
        let is = |list: &[Data], names: &[String]| {
            list.len() == names.len()
                && list
                    .iter()
                    .zip(names)
                    .all(|(e, n)| matches!(&e.kind, DataKind::Name(m) if m == n))
        };
        let (all, fewer) = (&self.names[..], &self.names[..self.names.len() - 1]);
        if a.lhs != b.lhs
            || a.condition.is_some()
            || b.condition.is_some()
            || !is(x, fewer)
            || !is(y, all)
        {
            return else_;
        }
        if self.list.is_some() {
            return Err(ValueDependence::new(format!("a second list, `{name}`,"), a.span));
        }
        self.list = Some(name.clone());
        Ok(())
    }

    /// Compares processes that differ in the number of copies.
    fn process(&mut self, a: &Process, b: &Process) -> Result<(), ValueDependence> {
        use ProcessKind::{Allow, Block, Comm, Hide, Rename};
        if a == b {
            return Ok(());
        }
        match (&a.kind, &b.kind) {
            (Hide(x, a), Hide(y, b)) | (Block(x, a), Block(y, b)) if x == y => self.process(a, b),
            (Allow(x, a), Allow(y, b)) if x == y => self.process(a, b),
            (Rename(x, a), Rename(y, b)) if x == y => self.process(a, b),
            (Comm(x, a), Comm(y, b)) if x == y => self.process(a, b),
            (ProcessKind::Parallel(..), ProcessKind::Parallel(..)) => {
                let (mut x, mut y) = (Vec::new(), Vec::new());
                parallel_processes(a, &mut x);
                parallel_processes(b, &mut y);
                self.parallel_copies(&x, &y).ok_or_else(|| {
                    let what = "more than one parallel process for each";
                    match self.naming_process(&x, &y) {
                        Some((constant, process)) => ValueDependence {
                            named: Some(constant),
                            ..ValueDependence::new(what, process.span)
                        },
                        None => ValueDependence::new(what, a.span),
                    }
                })
            }
            _ => Err(ValueDependence::new("a process", a.span)),
        }
    }

    /// Returns a parallel process that both specifications have and that names a constant, if the
    /// others are the same except for consecutive copies.
    fn naming_process<'p>(
        &mut self,
        x: &[&'p Process],
        y: &[&Process],
    ) -> Option<(String, &'p Process)> {
        // Processes at the end, or at the start, that are the same in both.
        for count in 1..x.len() {
            let (end, end_above) = (x.len() - count, y.len().checked_sub(count)?);
            let splits = [
                (&x[..end], &y[..end_above], &x[end..], &y[end_above..]),
                (&x[count..], y.get(count..)?, &x[..count], &y[..count]),
            ];
            for (own, larger, others, others_above) in splits {
                let (list, parallel) = (self.list.clone(), self.parallel);
                let is_copied = others == others_above
                    && self.parallel_copies(own, larger).is_some()
                    && self.parallel;
                (self.list, self.parallel) = (list, parallel);
                if !is_copied {
                    continue;
                }
                let named = |p: &&'p Process| {
                    let text = mu_syntax::print::process(p);
                    let name = self.names.iter().find(|n| with_blank(&text, n) != text);
                    name.map(|n| (n.clone(), *p))
                };
                return others.iter().find_map(named);
            }
        }
        None
    }

    /// Compares parallel processes that are the same except for consecutive copies.
    fn parallel_copies(&mut self, x: &[&Process], y: &[&Process]) -> Option<()> {
        let size = self.names.len() - 1;
        let texts =
            |all: &[&Process]| all.iter().map(|p| mu_syntax::print::process(p)).collect::<Vec<_>>();
        let (x, y) = (texts(x), texts(y));
        let (mut i, mut j) = (0, 0);
        while i < x.len() {
            let width = x[i..].iter().take_while(|p| with_blank(p, &self.names[0]) != **p).count();
            if width == 0 {
                if x.get(i) != y.get(j) {
                    return None;
                }
                (i, j) = (i + 1, j + 1);
                continue;
            }
            let (own, larger) = (x.get(i..i + size * width)?, y.get(j..j + (size + 1) * width)?);
            for (k, name) in self.names.iter().enumerate() {
                for w in 0..width {
                    let first = with_blank(&own[w], &self.names[0]);
                    let copy = &larger[k * width + w];
                    if with_blank(copy, name) != first || k < size && *copy != own[k * width + w] {
                        return None;
                    }
                }
            }
            self.parallel = true;
            (i, j) = (i + size * width, j + (size + 1) * width);
        }
        (j == y.len()).then_some(())
    }
}

/// Collects the processes that run in parallel, in order.
fn parallel_processes<'p>(p: &'p Process, out: &mut Vec<&'p Process>) {
    match &p.kind {
        ProcessKind::Parallel(a, b) => {
            parallel_processes(a, out);
            parallel_processes(b, out);
        }
        _ => out.push(p),
    }
}

/// Replaces each word `name` in a text by a blank.
fn with_blank(text: &str, name: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(start) = rest.find(is_word) {
        let end = rest[start..].find(|c| !is_word(c)).map_or(rest.len(), |n| start + n);
        out.push_str(&rest[..start]);
        out.push_str(if &rest[start..end] == name { "\u{2423}" } else { &rest[start..end] });
        rest = &rest[end..];
    }
    out + rest
}

/// Returns the difference between corresponding sections of two specifications.
fn value_dependence(a: &Section, b: &Section) -> ValueDependence {
    let declared = |what: &str, a: &[(Ident, Sort)], b: &[(Ident, Sort)]| {
        let first = a.iter().zip(b).find(|(a, b)| a != b).map(|(a, _)| a).or(a.last());
        ValueDependence {
            what: format!("the list of {what}"),
            named: None,
            span: first.map(|f| f.0.span),
        }
    };
    match (a, b) {
        (Section::Equations(_, a), Section::Equations(_, b)) => {
            let first = a.iter().zip(b).find(|(a, b)| a != b).map(|(a, _)| a).or(a.last());
            ValueDependence { what: "an equation".into(), named: None, span: first.map(|e| e.span) }
        }
        (Section::Processes(a), Section::Processes(b)) => {
            match a.iter().zip(b).find(|(a, b)| a != b) {
                Some((a, _)) => {
                    ValueDependence::new(format!("the process `{}`", a.name.kind), a.name.span)
                }
                None => ValueDependence {
                    what: "the list of processes".into(),
                    named: None,
                    span: a.last().map(|p| p.name.span),
                },
            }
        }
        (Section::Init(a), Section::Init(_)) => ValueDependence::new("the initial process", a.span),
        (Section::Constructors(a), Section::Constructors(b)) => declared("constructors", a, b),
        (Section::Mappings(a), Section::Mappings(b)) => declared("mappings", a, b),
        _ => ValueDependence { what: "the list of declarations".into(), named: None, span: None },
    }
}

/// Returns the names of the constants of the larger sort, if it has exactly one more.
fn one_more(size: usize, x: &[StructConstructor], y: &[StructConstructor]) -> Option<Vec<String>> {
    if y.len() != x.len() + 1 {
        return None;
    }
    let behind = x.iter().rev().zip(y.iter().rev()).take_while(|(a, b)| a == b).count();
    let end = x.len() - behind;
    let own = x.get(end.checked_sub(size)?..end)?;
    let all = &y[end - size..=end];
    let plain = all.iter().all(|c| c.args.is_empty() && c.recogniser.is_none());
    (plain && own == &all[..size] && x[..end] == y[..end])
        .then(|| all.iter().map(|c| c.name.kind.clone()).collect())
}
