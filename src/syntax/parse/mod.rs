//! Parser: a `pest` grammar (`mcrl2.pest`) and builders that turn its flat expressions into trees.
//!
//! Input: a text and the id of its source. Output: a tree of [`ast`](super::ast), or a
//! [`Diagnostic`] at the first offending token. Cost: near linear in the text; the machine stack
//! grows with the depth of brackets, for which it is enlarged beforehand. Invariant: a builder gets
//! only pairs that the grammar allows, so reaching `unreachable!` here is an internal error.

mod data;
mod error;
mod formula;
pub(crate) mod operators;
mod process;
mod spec;

use pest::Parser as _;
use pest::iterators::{Pair, Pairs};

use super::ast;
use mu_base::{Diagnostic, SourceId, Span, Stage, narrow};
use std::ops::Range;

/// The generated parser.
mod grammar {
    #![allow(missing_docs)]
    #[derive(pest_derive::Parser)]
    #[grammar = "mcrl2.pest"]
    pub(crate) struct Grammar;
}
use grammar::{Grammar, Rule};

type P<'i> = Pair<'i, Rule>;
type Built<T> = Result<T, Diagnostic>;

/// Parses a whole specification.
pub fn parse_specification(source: SourceId, text: &str) -> Result<ast::Specification, Diagnostic> {
    run(source, text, Rule::specification, |b, p| b.specification(p)).map_err(|error| {
        // A single word is no more a formula than it is a wrong specification.
        if text.contains(['<', '[', '(', '&', '|', '!']) && is_formula(source, text) {
            return error.note("this text is a formula; the model comes first, then its formulas");
        }
        error
    })
}

/// True if a text is a well-formed formula, such as one in the place of a model or a file name.
pub fn is_formula(source: SourceId, text: &str) -> bool {
    run(source, text, Rule::formula_file, |b, p| b.formula_file(p)).is_ok()
}

/// Parses a formula: a state formula alone, or declarations and `form F;`.
pub fn parse_formula(source: SourceId, text: &str) -> Result<ast::FormulaFile, Diagnostic> {
    run(source, text, Rule::formula_file, |b, p| b.formula_file(p)).map_err(|error| {
        let model = run(source, text, Rule::specification, |b, p| b.specification(p));
        let has_init = |model: ast::Specification| {
            model.sections.iter().any(|section| matches!(section, ast::Section::Init(..)))
        };
        if model.is_ok_and(has_init) {
            return error
                .note("this text is a specification; a formula is expected after the model");
        }
        error
    })
}

/// Parses a state formula that is a part of a text; places refer to the text. The cost is that of
/// the part.
pub fn parse_formula_in(
    source: SourceId,
    text: &str,
    part: Range<usize>,
) -> Result<ast::FormulaFile, Diagnostic> {
    run_shifted(
        TreeBuilder { source, shift: part.start as i64 },
        &text[part],
        Rule::formula_file,
        |b, p| b.formula_file(p),
    )
}

/// Parses a name with parameters, such as the left-hand side of an equation, that is a part of a
/// text; places and cost likewise.
pub fn parse_head_in(
    source: SourceId,
    text: &str,
    part: Range<usize>,
) -> Result<(ast::Ident, Vec<ast::VarDecl>), Diagnostic> {
    head_in(source, text, part, ["", ""]).map(|head| (head.name, head.params))
}

/// Parses variables with their sorts that are a part of a text; places and cost likewise.
pub fn parse_variables_in(
    source: SourceId,
    text: &str,
    part: Range<usize>,
) -> Result<Vec<ast::VarDecl>, Diagnostic> {
    head_in(source, text, part, ["X(", ")"]).map(|head| head.params)
}

/// Parses a part of a text as part of the head of a process.
fn head_in(
    source: SourceId,
    text: &str,
    part: Range<usize>,
    around: [&str; 2],
) -> Result<ast::ProcessEquation, Diagnostic> {
    let [before, after] = around;
    let builder =
        TreeBuilder { source, shift: part.start as i64 - ("proc ".len() + before.len()) as i64 };
    let whole = format!("proc {before}{}{after}= delta;", &text[part.clone()]);
    let read = run_shifted(builder, &whole, Rule::specification, |b, p| b.specification(p))?;
    let sections = <[ast::Section; 1]>::try_from(read.sections).ok();
    let head = match sections {
        Some([ast::Section::Processes(list)]) => <[ast::ProcessEquation; 1]>::try_from(list).ok(),
        _ => None,
    };
    head.map(|[head]| head).ok_or_else(|| {
        let span = Span { source, start: narrow::index(part.start), end: narrow::index(part.end) };
        Diagnostic::at(Stage::Syntax, span, "this is not one name with parameters")
    })
}

/// Parses a data expression that is a part of a text; places and cost likewise.
pub fn parse_data_in(
    source: SourceId,
    text: &str,
    part: Range<usize>,
) -> Result<ast::Data, Diagnostic> {
    run_shifted(
        TreeBuilder { source, shift: part.start as i64 },
        &text[part],
        Rule::data_file,
        |b, p| b.data(b.only_part(p)),
    )
}

/// Parses a data expression.
pub fn parse_data(source: SourceId, text: &str) -> Result<ast::Data, Diagnostic> {
    run(source, text, Rule::data_file, |b, p| b.data(b.only_part(p)))
}

/// Parses a process expression.
pub fn parse_process(source: SourceId, text: &str) -> Result<ast::Process, Diagnostic> {
    run(source, text, Rule::process_file, |b, p| b.process(b.only_part(p)))
}

/// Parses a sort expression.
pub fn parse_sort(source: SourceId, text: &str) -> Result<ast::Sort, Diagnostic> {
    run(source, text, Rule::sort_file, |b, p| b.sort(b.only_part(p)))
}

/// Parses a multi-action such as a label `a(1)|b`; `tau` is the empty one.
pub fn parse_multi_action(
    source: SourceId,
    text: &str,
) -> Result<Vec<(ast::Ident, Vec<ast::Data>)>, Diagnostic> {
    run(source, text, Rule::multi_action_file, |b, p| b.multi_action(b.parts(p)))
}

/// Limit on the nesting of brackets; beyond it, the text is rejected.
pub const MAX_DEPTH: usize = 50_000;
/// Machine stack for one level of brackets, and for the rest.
const STACK_PER_LEVEL: usize = 16 << 10;
const STACK_BASE: usize = 4 << 20;

fn run<T>(
    source: SourceId,
    text: &str,
    rule: Rule,
    build: impl FnOnce(&TreeBuilder, P) -> Built<T>,
) -> Built<T> {
    run_shifted(TreeBuilder { source, shift: 0 }, text, rule, build)
}

fn run_shifted<T>(
    builder: TreeBuilder,
    text: &str,
    rule: Rule,
    build: impl FnOnce(&TreeBuilder, P) -> Built<T>,
) -> Built<T> {
    if u32::try_from(text.len()).is_err() {
        return Err(Diagnostic::new(Stage::Syntax, "the text is longer than 4 GiB"));
    }
    let depth = bracket_depth(text).map_err(|at| {
        builder
            .refuse(
                builder.range(at, at + 1),
                format!("brackets are nested more than {MAX_DEPTH} deep"),
            )
            .note("intermediate results can be given names by `map` and `eqn`")
    })?;
    stacker::maybe_grow(
        STACK_PER_LEVEL * depth + (256 << 10),
        STACK_PER_LEVEL * depth + STACK_BASE,
        || {
            let Ok(mut pairs) = Grammar::parse(rule, text) else {
                return Err(error::explain(&builder, text, rule));
            };
            build(&builder, builder.next(&mut pairs))
        },
    )
}

/// Returns the maximum nesting of brackets and `whr … end`, or as error the position where it
/// exceeds [`MAX_DEPTH`].
fn bracket_depth(text: &str) -> Result<usize, usize> {
    let bytes = text.as_bytes();
    let (mut brackets, mut wheres, mut deepest, mut i) = (0usize, 0usize, 0usize, 0usize);
    while let Some(&b) = bytes.get(i) {
        let start = i;
        i += 1;
        match b {
            b'(' | b'[' | b'{' => brackets += 1,
            b')' | b']' | b'}' => brackets = brackets.saturating_sub(1),
            b'%' => i += bytes[i..].iter().take_while(|&&b| b != b'\n' && b != b'\r').count(),
            _ if error::is_word(b) => {
                i += bytes[i..].iter().take_while(|&&b| error::is_word(b)).count();
                match &bytes[start..i] {
                    b"whr" => wheres += 1,
                    b"end" => wheres = wheres.saturating_sub(1),
                    _ => {}
                }
            }
            _ => {}
        }
        deepest = deepest.max(brackets + wheres);
        if deepest > MAX_DEPTH {
            return Err(start);
        }
    }
    Ok(deepest)
}

type RelevantPairs<'i> = std::iter::Filter<Pairs<'i, Rule>, fn(&P<'i>) -> bool>;

fn is_part(pair: &P) -> bool {
    use Rule as R;
    #[rustfmt::skip]
    let keyword = matches!(
        pair.as_rule(),
        R::equals | R::EOI | R::k_sort | R::k_cons | R::k_map | R::k_var | R::k_eqn | R::k_glob | R::k_act | R::k_proc | R::k_init | R::k_form | R::k_struct | R::k_whr | R::k_end | R::k_val | R::k_bar | R::k_sum | R::k_dist | R::k_block | R::k_hide | R::k_allow | R::k_rename | R::k_comm | R::k_delay | R::k_yaled
    );
    !keyword
}

/// Builder of trees from pairs.
struct TreeBuilder {
    source: SourceId,
    /// Start of the parsed text in the source.
    shift: i64,
}

impl TreeBuilder {
    fn range(&self, start: usize, end: usize) -> Span {
        let place = |at: usize| narrow::word((at as i64 + self.shift).max(0).unsigned_abs());
        Span { source: self.source, start: place(start), end: place(end) }
    }
    fn span(&self, pair: &P) -> Span {
        let span = pair.as_span();
        self.range(span.start(), span.end())
    }
    /// Returns the place of the first word or symbol of a pair.
    fn first_token(&self, pair: &P) -> Span {
        let start = pair.as_span().start();
        self.range(start, start + self.first_word(pair).len())
    }
    /// Returns the first word or symbol of a pair.
    fn first_word<'i>(&self, pair: &P<'i>) -> &'i str {
        error::token_at(pair.as_str(), 0)
    }
    fn refuse(&self, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::at(Stage::Syntax, span, message)
    }
    /// Returns the parts of a pair without keywords and `=`.
    fn parts<'i>(&self, pair: P<'i>) -> RelevantPairs<'i> {
        pair.into_inner().filter(is_part as fn(&P<'i>) -> bool)
    }
    fn next<'i>(&self, pairs: &mut impl Iterator<Item = P<'i>>) -> P<'i> {
        pairs.next().expect("the grammar promises another part")
    }
    fn only_part<'i>(&self, pair: P<'i>) -> P<'i> {
        self.next(&mut self.parts(pair))
    }
    fn ident(&self, pair: P) -> ast::Ident {
        ast::Node::new(pair.as_str().to_owned(), self.span(&pair))
    }
    fn idents(&self, pair: P) -> Vec<ast::Ident> {
        pair.into_inner().map(|p| self.ident(p)).collect()
    }
}
