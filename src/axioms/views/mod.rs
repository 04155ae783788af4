//! Serial views, a second form of memory models (R. Steinke, G. Nutt: A unified theory of shared
//! memory consistency, 2004; definitions 14 to 38 of the study of the ARCx processor's memory
//! model).
//!
//! A model is a list of statements, after `let`s in the `cat` language:
//!
//! ```text
//! view [coherent] [for processor p | for pair p q] [location x] of SET respecting ORDER
//! ```
//!
//! For each processor, pair of processors, and location that it names, there must be a *serial
//! view*: a total order on the operations of SET that extends ORDER (restricted to SET), in which
//! the last write to its location before a read is one of its sources in `rf` (a read may have
//! several). SET and ORDER are `cat` expressions in which `p`, `q` and `x` denote the operations of
//! that processor or location; `program-order` is definition 18 (initial writes first, no fences),
//! `initially` relates initial writes to all other operations. With `coherent`, all views have the
//! writes to a location in one order.
//!
//! The decision is exact for any number of processors: `search` looks for the order and stores the
//! positions from which it failed.

pub mod search;

use mu_base::source::Source;
use mu_base::{Diagnostic, SourceMap, Span, Stage, narrow};

use crate::cat::{CatModel, CatType, Session, each_order};
use crate::execution::{RelationId, SetId, Skeleton, Vocabulary};
use crate::relation::{Relation, Set};

/// The range of a statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Quantification {
    /// A single view.
    #[default]
    One,
    /// A view for each processor.
    Processor,
    /// A view for each pair of different processors.
    Pair,
}

/// A statement.
#[derive(Clone, Debug)]
struct Statement {
    span: Span,
    /// The position of the set.
    set: Span,
    /// The position of the order.
    order: Span,
    over: Quantification,
    /// True if it also ranges over all locations.
    location: bool,
    coherent: bool,
}

/// A model of serial views.
#[derive(Debug)]
pub struct Views {
    model: CatModel,
    statements: Vec<Statement>,
    parameters: [SetId; 3],
    initially: RelationId,
    program_order: RelationId,
}

/// One serial view of an execution.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct View {
    /// The processors and the location of the view.
    pub of: String,
    /// The operations in order.
    pub order: Vec<usize>,
}

/// The verdict of a model of serial views.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ViewVerdict {
    /// All views exist.
    Views(Vec<View>),
    /// A view does not exist.
    None {
        /// Its processors and location.
        of: String,
        /// Its operations.
        operations: Set,
        /// The statement.
        span: Span,
    },
}

/// The `cat` text of a model, with its `view` statements replaced by definitions of the same
/// length.
struct SplitText {
    text: String,
    statements: Vec<Statement>,
}

/// Splits the statements off a text.
fn split_statements(source: mu_base::SourceId, text: &str) -> Result<SplitText, Diagnostic> {
    let mut out = SplitText { text: String::new(), statements: Vec::new() };
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let trimmed = line.trim_start();
        if !trimmed.starts_with("view ") {
            out.text.push_str(line);
            continue;
        }
        let from = start + line.len() - trimmed.len();
        let span = Span {
            source,
            start: narrow::index(from),
            end: narrow::index(start + line.trim_end().len()),
        };
        let refuse = |message: String| Err(Diagnostic::at(Stage::Syntax, span, message));
        let Some((head, rest)) = trimmed.split_once(" of ") else {
            return refuse("expected `of` and a set".into());
        };
        let Some((set, order)) = rest.split_once(" respecting ") else {
            return refuse("expected `respecting` and an order".into());
        };
        let place = |part: &str| {
            let start = part.as_ptr() as usize - text.as_ptr() as usize;
            let skipped = part.len() - part.trim_start().len();
            let (start, length) =
                (narrow::index(start + skipped), narrow::index(part.trim().len()));
            Span { source, start, end: start + length }
        };
        let (set_span, order_span) = (place(set), place(order));
        let mut s = Statement {
            span,
            set: set_span,
            order: order_span,
            over: Quantification::One,
            location: false,
            coherent: false,
        };
        let mut words = head.split_whitespace().skip(1).peekable();
        while let Some(word) = words.next() {
            let mut name = || words.next().map(str::to_string);
            match word {
                "coherent" => s.coherent = true,
                "for" => {}
                "processor" if s.over == Quantification::One && name().as_deref() == Some("p") => {
                    s.over = Quantification::Processor
                }
                "pair"
                    if s.over == Quantification::One
                        && name().as_deref() == Some("p")
                        && name().as_deref() == Some("q") =>
                {
                    s.over = Quantification::Pair
                }
                "location" if !s.location && name().as_deref() == Some("x") => s.location = true,
                other => {
                    return refuse(format!(
                        "unexpected `{other}`: expected `coherent`, `for processor p`, `for pair p q`, `location x` or `of`"
                    ));
                }
            }
        }
        // The expressions keep their positions, so that errors in them are located correctly:
        // `let sa'=` is as long as `view of `, and ` and oa' =  ` as ` respecting `.
        let Some(letter) = (b'a'..=b'z').nth(out.statements.len()).map(char::from) else {
            return refuse("more than 26 views".into());
        };
        let blanks = " ".repeat(line.len() - trimmed.len() + head.len() - 4);
        out.text += &format!("{blanks}let s{letter}'={set} and o{letter}' =  {order}");
        out.statements.push(s);
    }
    Ok(out)
}

impl Views {
    /// Compiles a model with the vocabulary [`Views::vocabulary`]. Errors have positions in
    /// `sources`.
    pub fn compile(sources: &mut SourceMap, name: &str, text: &str) -> Result<Views, Diagnostic> {
        let source = sources.add(name, text);
        let SplitText { text: cat, statements } = split_statements(source, text)?;
        let (vocabulary, parameters, initially, program_order) = Self::names();
        let source = sources.add_source(Source {
            name: name.into(),
            original: text.into(),
            text: cat,
            back: Vec::new(),
        });
        let model = CatModel::compile_source(sources, source, &|_| None, &vocabulary, &[])?;
        if statements.is_empty() {
            return Err(Diagnostic::at(
                Stage::Syntax,
                Span { source, start: 0, end: narrow::index(text.len()) },
                "a model of serial views has at least one `view`",
            ));
        }
        for (s, letter) in statements.iter().zip('a'..) {
            let parts = [
                ("s", CatType::Set, s.set, "of", "a set of events"),
                ("o", CatType::Relation, s.order, "respecting", "a relation"),
            ];
            for (prefix, wanted, span, word, expected) in parts {
                let found = model.type_of_definition(&format!("{prefix}{letter}'"));
                if found == Some(wanted) {
                    continue;
                }
                let given = &text[span.start as usize..span.end as usize];
                let message = match found {
                    Some(CatType::Set | CatType::Relation) => {
                        format!("`{given}` after `{word}` is not {expected}")
                    }
                    Some(CatType::Value) | None => format!("`{given}` has an unknown name"),
                };
                return Err(Diagnostic::at(Stage::Type, span, message).note(format!(
                    "expected {expected}, by the given names (`po`, `rf`, `loc`, `M`, `R`, `W`, `IW`, `p`, `program-order` …) and those that `let` defines here"
                )));
            }
        }
        Ok(Views { model, statements, parameters, initially, program_order })
    }
    fn names() -> (Vocabulary, [SetId; 3], RelationId, RelationId) {
        let mut v = Vocabulary::new();
        v.set("Acq");
        v.set("Rel");
        v.set("AcqRel");
        let parameters = ["p", "q", "x"].map(|n| v.set(n));
        let initially = v.relation("initially");
        let program_order = v.relation("program-order");
        (v, parameters, initially, program_order)
    }
    /// Returns the vocabulary of the skeletons that these models judge: the plain one with
    /// additional names.
    pub fn vocabulary() -> Vocabulary {
        Self::names().0
    }
    /// Returns all views, or a view that does not exist. `rf` may contain several sources of a
    /// read. Cost: exponential at worst in the operations of a view, and in the writes to a
    /// location if views must be coherent.
    pub fn judge(&self, skeleton: &Skeleton, rf: &Relation) -> Result<ViewVerdict, Diagnostic> {
        let n = skeleton.len();
        if n > 64 {
            return Err(Diagnostic::new(
                Stage::Unsupported,
                format!("serial views of an execution of {n} events: at most 64 are supported"),
            ));
        }
        let mut skeleton = skeleton.clone();
        let memory = skeleton.set(SetId::MEMORY).clone();
        for a in memory.iter() {
            for b in memory.iter() {
                let (x, y) = (&skeleton.events()[a], &skeleton.events()[b]);
                let first = x.thread.is_none() && y.thread.is_some();
                let order = first || skeleton.relation(RelationId::PO).contains(a, b);
                if first {
                    skeleton.relate(self.initially, a, b);
                }
                if order {
                    skeleton.relate(self.program_order, a, b);
                }
            }
        }
        if !self.statements.iter().any(|s| s.coherent) {
            return self.judge_with_order(&mut skeleton, rf, None);
        }
        let parts = skeleton.writes_by_location();
        let mut first = Relation::empty(n);
        for (a, b) in skeleton.relation(self.initially).pairs() {
            first.insert(a, b);
        }
        let mut answer = None;
        each_order(&parts, &first, &mut Relation::empty(n), &mut |co| {
            let seen = self.judge_with_order(&mut skeleton, rf, Some(co));
            let done = !matches!(seen, Ok(ViewVerdict::None { .. }));
            if done || answer.is_none() {
                answer = Some(seen);
            }
            done
        });
        answer.unwrap_or_else(|| Ok(ViewVerdict::Views(Vec::new())))
    }
    /// Judges with a coherence order that coherent views must extend.
    fn judge_with_order(
        &self,
        skeleton: &mut Skeleton,
        rf: &Relation,
        co: Option<&Relation>,
    ) -> Result<ViewVerdict, Diagnostic> {
        let n = skeleton.len();
        let memory = skeleton.set(SetId::MEMORY).clone();
        let events = skeleton.events().to_vec();
        let threads: std::collections::BTreeSet<u32> =
            memory.iter().filter_map(|e| events[e].thread).collect();
        let locations: std::collections::BTreeSet<u32> =
            memory.iter().filter_map(|e| events[e].location).collect();
        let of_thread =
            |t: u32| Set::from_events(n, memory.iter().filter(|&e| events[e].thread == Some(t)));
        let at =
            |l: u32| Set::from_events(n, memory.iter().filter(|&e| events[e].location == Some(l)));
        let mut views = Vec::new();
        for (i, s) in self.statements.iter().enumerate() {
            let mut ranges: Vec<(String, [Set; 3])> = Vec::new();
            let none = || Set::empty(n);
            let processors: Vec<(String, [Set; 2])> = match s.over {
                Quantification::One => vec![(String::new(), [none(), none()])],
                Quantification::Processor => {
                    threads.iter().map(|&t| (format!("P{t}"), [of_thread(t), none()])).collect()
                }
                Quantification::Pair => (threads.iter())
                    .flat_map(|&t| threads.iter().filter(move |u| **u > t).map(move |u| (t, *u)))
                    .map(|(t, u)| (format!("P{t}, P{u}"), [of_thread(t), of_thread(u)]))
                    .collect(),
            };
            for (name, [p, q]) in processors {
                if !s.location {
                    ranges.push((name, [p, q, none()]));
                    continue;
                }
                for &l in &locations {
                    let full = if name.is_empty() {
                        format!("location {l}")
                    } else {
                        format!("{name}, location {l}")
                    };
                    ranges.push((full, [p.clone(), q.clone(), at(l)]));
                }
            }
            for (of, sets) in ranges {
                for (id, set) in self.parameters.iter().zip(&sets) {
                    skeleton.set_mut(*id).copy(set);
                }
                let (members, mut order) = self.evaluate(narrow::byte(i), skeleton, rf)?;
                // Whatever the order says, initial writes come before all other operations.
                order.unite(skeleton.relation(self.initially));
                if let Some(co) = co.filter(|_| s.coherent) {
                    order.unite(co);
                }
                let mut wanted = members.clone();
                wanted.intersect(&memory);
                match search::serial_view(skeleton, &wanted, &order, rf) {
                    Some(order) => views.push(View { of, order }),
                    None => return Ok(ViewVerdict::None { of, operations: wanted, span: s.span }),
                }
            }
        }
        Ok(ViewVerdict::Views(views))
    }
    /// Evaluates the set and the order of a statement, for the parameters in the skeleton.
    fn evaluate(
        &self,
        i: u8,
        skeleton: &Skeleton,
        rf: &Relation,
    ) -> Result<(Set, Relation), Diagnostic> {
        let (n, letter) = (skeleton.len(), char::from(b'a' + i));
        let mut session = Session::new(&self.model);
        let mut run = session.start(skeleton)?;
        run.set_reads_from(rf)?;
        let set =
            run.defined_relation(&format!("s{letter}'"))?.unwrap_or_else(|| Relation::empty(n));
        let order =
            run.defined_relation(&format!("o{letter}'"))?.unwrap_or_else(|| Relation::empty(n));
        let mut members = Set::empty(n);
        members.domain_of(&set);
        Ok((members, order))
    }
    /// True if the set or the order of a view depends on the sources of reads.
    pub fn depends_on_sources(&self) -> bool {
        self.model.reads_relation(RelationId::RF)
    }
    /// Returns the number of statements.
    pub fn statements(&self) -> usize {
        self.statements.len()
    }
}
