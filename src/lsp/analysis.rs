//! Analysis of one text: its errors, names, declarations, and typed form.
//!
//! In: the text of a file, and for a formula the analysis of its model. Out: an [`Analysis`]. The
//! stages are those of the command line, with default parameters, so that a file that the command
//! line accepts has no errors here. After an error, the declaration around it is left out
//! (`recovery`), and the stage runs again; errors that only result from left-out declarations are
//! dropped.
//!
//! Names come from the tree of the expanded text, so that they have the same meaning as in the type
//! checker, and are mapped back to the file. Parts that directives leave out by default are read
//! with other values of the parameters ([`Analysis::complete`]). Words that no reading covers refer
//! to the declarations with their name. Cost: that of the command line, for each reported error.

use crate::foreign::NamedEntity;
use crate::names::{DeclaredName, Key, NameKind, NameOccurrence, Resolver};
use crate::recovery::{RemovedDeclarations, leave_out};
use mu_base::host::Instant;
use mu_base::source::Source;
use mu_base::{Diagnostic, SourceId, SourceMap, Span, Stage, narrow};
use mu_formula::typecheck::check_formula;
use mu_formula::typed::TypedFormula;
use mu_frontends::Lexicon;
use mu_frontends::state_conditions::parse_without_model;
use mu_process::spec::ProcSpec;
use mu_process::typecheck::check_specification;
use mu_syntax::ast::{self, Node, ProcessKind, Section, Specification};
use mu_syntax::template::{self, Param};
use mu_syntax::tokens::{self, Token, TokenKind};
use std::collections::HashSet;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Limit on the syntax errors, and on the type errors, that are reported.
const MAX_ERRORS: usize = 12;
/// Time limit of the search for further errors.
const ERROR_SEARCH_TIME: Duration = Duration::from_millis(60);
/// Limit on the readings of a text with other values of its parameters.
const MAX_READINGS: usize = 12;

/// An error with its place in the file.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Problem {
    pub(crate) range: Range<usize>,
    pub(crate) stage: Stage,
    pub(crate) message: String,
    pub(crate) notes: Vec<String>,
    pub(crate) related: Vec<(Range<usize>, String)>,
}

/// An occurrence of a name in the file.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Occurrence {
    pub(crate) range: Range<usize>,
    pub(crate) key: Key,
    pub(crate) declares: bool,
    /// True if the name is written literally: `core_${i}` is an occurrence of `core_0`, but not
    /// literal.
    pub(crate) is_literal: bool,
}

/// A declaration in the file.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct NameDeclaration {
    pub(crate) key: Key,
    pub(crate) kind: NameKind,
    pub(crate) name: String,
    pub(crate) range: Range<usize>,
    pub(crate) extent: Range<usize>,
    pub(crate) signature: String,
}

/// Results of the analysis of a text.
#[derive(Default)]
pub(crate) struct Analysis {
    pub(crate) text: String,
    pub(crate) tokens: Vec<Token>,
    pub(crate) formula: bool,
    pub(crate) problems: Vec<Problem>,
    /// Ordered by place.
    pub(crate) names: Vec<Occurrence>,
    pub(crate) declarations: Vec<NameDeclaration>,
    /// The typed part of a specification, with the map from its places to those of the file.
    pub(crate) specification: Option<Arc<ProcSpec>>,
    pub(crate) typed: Option<TypedFormula>,
    pub(crate) sources: SourceMap,
    pub(crate) source: SourceId,
    pub(crate) params: Vec<Param>,
    /// Lexical rules, if they differ from those of specifications.
    pub(crate) lexicon: Option<&'static Lexicon>,
    /// Reserved words of another front end.
    pub(crate) keywords: &'static [&'static str],
    /// Named entities of another front end, including those that an outline hides.
    pub(crate) entities: Vec<NamedEntity>,
    pub(crate) parts: Vec<(String, Range<usize>)>,
    /// Included texts.
    pub(crate) included: Vec<(PathBuf, String)>,
    lost: RemovedDeclarations,
    complete: bool,
}

impl Analysis {
    fn new(text: &str) -> Self {
        let tokens = tokens::tokens(text);
        let formula = tokens::is_formula(text, &tokens);
        Self { text: text.to_string(), tokens, formula, ..Self::default() }
    }

    /// Analyses a specification.
    pub(crate) fn of_specification(text: &str) -> Self {
        let mut analysis = Self::new(text);
        analysis.formula = false;
        let start = Instant::now();
        let mut rest = text.to_string();
        let mut tree = None;
        for _ in 0..=MAX_ERRORS {
            let mut sources = SourceMap::new();
            let read = template::expand("", &rest, &[], &mut sources);
            let read = read.and_then(|e| {
                mu_syntax::parse_specification(e.source, &e.text).map(|tree| (e, tree))
            });
            match read {
                Ok((expanded, parsed)) => {
                    (analysis.sources, analysis.source, analysis.params) =
                        (sources, expanded.source, expanded.params);
                    tree = Some(parsed);
                    break;
                }
                Err(error) => {
                    let place =
                        error.span.map(|s| sources.original_offset(s.source, s.start) as usize);
                    analysis.report(&error, &sources);
                    let Some(place) = place else { break };
                    if start.elapsed() > ERROR_SEARCH_TIME * 2
                        || !leave_out(&mut rest, place, &mut analysis.lost)
                    {
                        break;
                    }
                }
            }
        }
        if let Some(tree) = tree {
            let source = analysis.sources.get(analysis.source).clone();
            analysis.add_names(&source, |walk| walk.specification(&tree));
            analysis.check(tree, start);
        }
        analysis.add_directives();
        analysis.order();
        analysis
    }

    /// Analyses a formula; `model` is the analysis of its specification.
    pub(crate) fn of_formula(text: &str, model: Option<&Analysis>) -> Self {
        let mut analysis = Self::new(text);
        analysis.formula = true;
        analysis.complete = true;
        let mut sources = SourceMap::new();
        let source = sources.add("", text);
        match mu_syntax::parse_formula(source, text) {
            // Conditions on variables of a model in another language.
            Err(_)
                if model.is_none_or(|m| m.specification.is_none())
                    && parse_without_model(source, text).is_ok() => {}
            Err(error) => analysis.report(&error, &sources),
            Ok(tree) => {
                let plain = sources.get(source).clone();
                analysis.add_names(&plain, |walk| walk.formula_file(&tree));
                if let Some(specification) = model.and_then(|m| m.specification.as_ref()) {
                    let lost = model.map_or_else(HashSet::new, |m| m.lost.names.clone());
                    match check_formula(&tree, &specification.data, &specification.actions) {
                        Ok(typed) => analysis.typed = Some(typed),
                        Err(error) if mentions(&error.message, &lost) => {}
                        Err(error) => analysis.report(&error, &sources),
                    }
                }
            }
        }
        (analysis.sources, analysis.source) = (sources, source);
        analysis.order();
        let known: Vec<Key> = model
            .into_iter()
            .flat_map(|m| &m.declarations)
            .map(|d| d.key.clone())
            .filter(Key::is_shared)
            .collect();
        analysis.add_words(&known);
        analysis
    }

    /// Type checks; leaves out declarations with errors and continues.
    fn check(&mut self, mut tree: Specification, start: Instant) {
        for _ in 0..=MAX_ERRORS {
            match check_specification(&tree) {
                Ok(typed) => {
                    self.specification = Some(Arc::new(typed));
                    return;
                }
                Err(error) => {
                    let sources = std::mem::take(&mut self.sources);
                    let follows = mentions(&error.message, &self.lost.names)
                        || error.span.is_none() && self.lost.init;
                    if !follows {
                        self.report(&error, &sources);
                    }
                    let neutral = neutralise(&mut tree, error.span, &sources, &mut self.lost);
                    self.sources = sources;
                    if !neutral || start.elapsed() > ERROR_SEARCH_TIME * 2 {
                        return;
                    }
                }
            }
        }
    }

    pub(crate) fn report(&mut self, error: &Diagnostic, sources: &SourceMap) {
        let range = error.span.map_or_else(|| self.last_token(), |s| self.place(sources, s));
        let related = error
            .related
            .iter()
            .map(|(span, text)| (self.place(sources, *span), text.clone()))
            .collect();
        let problem = Problem {
            range,
            stage: error.stage,
            message: error.message.clone(),
            notes: error.notes.clone(),
            related,
        };
        // Copies of a loop body have the same error.
        if !self.problems.iter().any(|p| p.range == problem.range && p.message == problem.message) {
            self.problems.push(problem);
        }
    }

    fn last_token(&self) -> Range<usize> {
        self.tokens.last().map_or(0..0, |t| t.range.clone())
    }

    /// Returns the place in the file for a place in the parsed text.
    pub(crate) fn place(&self, sources: &SourceMap, span: Span) -> Range<usize> {
        let start = sources.original_offset(span.source, span.start) as usize;
        let end =
            sources.original_offset(span.source, span.end.max(span.start + 1) - 1) as usize + 1;
        if span.end <= span.start {
            return start.min(self.text.len())..start.min(self.text.len());
        }
        let end = end.min(self.text.len());
        // Text from a directive is reported at the directive.
        if end <= start || !self.text.is_char_boundary(start) {
            self.adjacent_tokens(start)
        } else {
            start..ceil(&self.text, end)
        }
    }

    /// Returns the adjacent words, numbers and values around an offset.
    fn adjacent_tokens(&self, offset: usize) -> Range<usize> {
        let at = self.tokens.partition_point(|t| t.range.end <= offset);
        let Some(token) = self.tokens.get(at) else { return self.last_token() };
        let part =
            |t: &Token| matches!(t.kind, TokenKind::Word | TokenKind::Number | TokenKind::Value);
        let (mut from, mut to) = (at, at);
        if part(token) {
            while from > 0
                && part(&self.tokens[from - 1])
                && self.tokens[from - 1].range.end == self.tokens[from].range.start
            {
                from -= 1;
            }
            while to + 1 < self.tokens.len()
                && part(&self.tokens[to + 1])
                && self.tokens[to].range.end == self.tokens[to + 1].range.start
            {
                to += 1;
            }
        }
        self.tokens[from].range.start..self.tokens[to].range.end
    }

    /// Adds the names of a tree; existing names stay.
    fn add_names(&mut self, source: &Source, walk_tree: impl FnOnce(&mut Resolver)) {
        let mut walk = Resolver::new(&source.text);
        walk_tree(&mut walk);
        let mut sources = SourceMap::new();
        let id = sources.add_source(source.clone());
        let Resolver { found, declared, same, .. } = walk;
        let back = |offset: u32| sources.original_offset(id, offset) as usize;
        let key = |mut key: Key| {
            while let Some(next) = same.get(&key) {
                key = next.clone();
            }
            match key {
                Key::Local(offset) => Key::Local(back(narrow::index(offset))),
                key => key,
            }
        };
        let known: HashSet<(usize, usize)> =
            self.names.iter().map(|n| (n.range.start, n.range.end)).collect();
        let mut seen: HashSet<(usize, usize, Key)> = HashSet::new();
        for NameOccurrence { span, key: raw, declares } in found {
            let name = source.text.get(span.start as usize..span.end as usize).unwrap_or("");
            let (start, end) = (back(span.start), back(span.end.max(1) - 1) + 1);
            let is_literal = self.text.get(start..end) == Some(name);
            let range = if is_literal { start..end } else { self.adjacent_tokens(start) };
            let key = key(raw);
            if !known.contains(&(range.start, range.end))
                && seen.insert((range.start, range.end, key.clone()))
            {
                self.names.push(Occurrence { range, key, declares, is_literal });
            }
        }
        for DeclaredName { key: raw, kind, name, span, extent, signature } in declared {
            let span = Span { source: id, ..span };
            let (range, extent) =
                (self.place(&sources, span), self.place(&sources, Span { source: id, ..extent }));
            let declaration =
                NameDeclaration { key: key(raw), kind, name, range, extent, signature };
            if !known.contains(&(declaration.range.start, declaration.range.end))
                && !self.declarations.contains(&declaration)
            {
                self.declarations.push(declaration);
            }
        }
    }

    /// Adds the names of the parameter layer.
    fn add_directives(&mut self) {
        let text = self.text.clone();
        // Loop variables in scope with the brace depth at which they end, and those before their
        // brace.
        let (mut loops, mut coming): (Vec<(String, usize, usize)>, Option<(String, usize)>) =
            (Vec::new(), None);
        let (mut braces, mut header, mut param) = (0usize, false, false);
        let mut mentions: Vec<(Range<usize>, String)> = Vec::new();
        let tokens = self.tokens.clone();
        for (i, token) in tokens.iter().enumerate() {
            let word = token.text(&text);
            let next = tokens.get(i + 1).filter(|t| t.kind == TokenKind::Word);
            match token.kind {
                TokenKind::Directive => {
                    header = word != "$param";
                    param = word == "$param";
                    if let (Some(name), "$param" | "$for") = (next, word) {
                        let (name, range) = (name.text(&text).to_string(), name.range.clone());
                        let end = if param { self.end_of_declaration(i) } else { range.end };
                        let (key, kind, signature) = if param {
                            let rest = text[range.end..end]
                                .split_whitespace()
                                .collect::<Vec<_>>()
                                .join(" ");
                            (
                                Key::Parameter(name.clone()),
                                NameKind::Parameter,
                                rest.trim_end_matches(';').to_string(),
                            )
                        } else {
                            coming = Some((name.clone(), range.start));
                            (Key::Local(range.start), NameKind::Variable, ": Int".to_string())
                        };
                        self.names.push(Occurrence {
                            range: range.clone(),
                            key: key.clone(),
                            declares: true,
                            is_literal: true,
                        });
                        self.declarations.push(NameDeclaration {
                            key,
                            kind,
                            name,
                            range,
                            extent: token.range.start..end,
                            signature,
                        });
                    }
                }
                TokenKind::Sign if word == "{" => {
                    braces += 1;
                    header = false;
                    if let Some((name, at)) = coming.take() {
                        loops.push((name, at, braces));
                    }
                }
                TokenKind::Sign if word == "}" => {
                    loops.retain(|l| l.2 < braces);
                    braces = braces.saturating_sub(1);
                }
                TokenKind::Sign if word == ";" => param = false,
                TokenKind::Word if header || param => {
                    mentions.push((token.range.clone(), word.to_string()))
                }
                TokenKind::Value => {
                    let inside = &text[token.range.clone()];
                    for t in
                        tokens::tokens(inside).into_iter().filter(|t| t.kind == TokenKind::Value)
                    {
                        let inner = &inside[t.range.start + 2..];
                        for w in
                            tokens::tokens(inner).into_iter().filter(|t| t.kind == TokenKind::Word)
                        {
                            let start = token.range.start + t.range.start + 2;
                            mentions.push((
                                start + w.range.start..start + w.range.end,
                                w.text(inner).to_string(),
                            ));
                        }
                    }
                }
                _ => {}
            }
            for (range, name) in mentions.drain(..) {
                let variable = loops.iter().rev().find(|l| l.0 == name).map(|l| Key::Local(l.1));
                let key = variable.or_else(|| {
                    self.declarations
                        .iter()
                        .any(|d| d.kind == NameKind::Parameter && d.name == name)
                        .then_some(Key::Parameter(name.clone()))
                });
                if let Some(key) = key.filter(|_| !self.names.iter().any(|n| n.range == range)) {
                    self.names.push(Occurrence { range, key, declares: false, is_literal: true });
                }
            }
        }
    }

    fn end_of_declaration(&self, from: usize) -> usize {
        let end = self.tokens[from..].iter().find(|t| t.is_sign(&self.text, ";"));
        end.map_or(self.text.len(), |t| t.range.end)
    }

    pub(crate) fn order(&mut self) {
        self.names.sort_by_key(|n| (n.range.start, n.range.end, !n.declares));
        self.declarations.sort_by_key(|d| (d.range.start, d.range.end));
    }

    /// Reads left-out parts with other values of the parameters, so that their names are known too.
    pub(crate) fn complete(&mut self) {
        if std::mem::replace(&mut self.complete, true) {
            return;
        }
        let start = Instant::now();
        let text = self.text.clone();
        let mut defines: Vec<Vec<(String, String)>> = Vec::new();
        for p in &self.params {
            let values: Vec<String> = match p.value {
                template::TemplateValue::Bool(value) => vec![(!value).to_string()],
                template::TemplateValue::Int(n) => {
                    vec![
                        n.saturating_add(1).to_string(),
                        n.saturating_sub(1).to_string(),
                        (n.saturating_add(2)).to_string(),
                    ]
                }
                template::TemplateValue::Any { .. } => Vec::new(),
            };
            defines.extend(values.into_iter().map(|v| vec![(p.name.clone(), v)]));
        }
        // Invert all Booleans at once, then change one parameter at a time, Booleans first.
        let flag = |d: &(String, String)| d.1 == "true" || d.1 == "false";
        let flags: Vec<(String, String)> =
            defines.iter().flatten().filter(|d| flag(d)).cloned().collect();
        defines.sort_by_key(|define| !define.iter().all(flag));
        if flags.len() > 1 {
            defines.insert(0, flags);
        }
        for define in defines.into_iter().take(MAX_READINGS) {
            if !self.has_unknown_words() || start.elapsed() > ERROR_SEARCH_TIME * 2 {
                break;
            }
            let mut sources = SourceMap::new();
            let Ok(expanded) = template::expand("", &text, &define, &mut sources) else { continue };
            let Ok(tree) = mu_syntax::parse_specification(expanded.source, &expanded.text) else {
                continue;
            };
            let source = sources.get(expanded.source).clone();
            self.add_names(&source, |walk| walk.specification(&tree));
            self.order();
        }
        let known: Vec<Key> = self.declarations.iter().map(|d| d.key.clone()).collect();
        self.add_words(&known);
    }

    fn has_unknown_words(&self) -> bool {
        self.tokens.iter().any(|t| self.is_unknown(t))
    }

    /// True if a token is a name without known meaning.
    fn is_unknown(&self, token: &Token) -> bool {
        token.kind == TokenKind::Word
            && !tokens::is_reserved(token.text(&self.text))
            && self.name_at(token.range.start).is_none()
    }

    /// Resolves words that no reading covers to the declarations with their name.
    fn add_words(&mut self, known: &[Key]) {
        let mut found = Vec::new();
        for token in self.tokens.iter().filter(|t| self.is_unknown(t)) {
            let word = token.text(&self.text);
            let meant = known.iter().find(|k| match k {
                Key::Process(name) | Key::Action(name) | Key::Data(name) | Key::Sort(name) => {
                    name == word
                }
                _ => false,
            });
            found.extend(meant.map(|key| Occurrence {
                range: token.range.clone(),
                key: key.clone(),
                declares: false,
                is_literal: true,
            }));
        }
        self.names.extend(found);
        self.order();
    }

    /// Returns the name at an offset, or just before it; `None` if there is none.
    pub(crate) fn name_at(&self, offset: usize) -> Option<&Occurrence> {
        let end = self.names.partition_point(|n| n.range.start <= offset);
        self.names[..end]
            .iter()
            .rev()
            .take(8)
            .filter(|n| offset <= n.range.end)
            .max_by_key(|n| (offset < n.range.end, n.is_literal, n.declares))
    }

    /// Returns the comment of a declaration: at the end of its line, otherwise on the lines above.
    pub(crate) fn comment(&self, declaration: &NameDeclaration) -> String {
        let at = declaration.range.start;
        let line_end = self.text[at..].find('\n').map_or(self.text.len(), |i| at + i);
        let of = |t: &Token| t.text(&self.text).trim_start_matches('%').trim().to_string();
        let comments = || self.tokens.iter().filter(|t| t.kind == TokenKind::Comment);
        if let Some(token) = comments().find(|t| t.range.start > at && t.range.start < line_end) {
            return of(token);
        }
        let mut start = self.text[..at].rfind('\n').map_or(0, |i| i + 1);
        let mut lines: Vec<String> = Vec::new();
        while start > 0 {
            let above = self.text[..start - 1].rfind('\n').map_or(0, |i| i + 1);
            let line = self.text[above..start].trim();
            let Some(comment) = line.strip_prefix('%') else { break };
            let text = comment.trim_start_matches('%').trim();
            // A line of dashes separates parts of the file.
            if text.contains("----") {
                break;
            }
            lines.push(text.to_string());
            start = above;
        }
        lines.reverse();
        lines.join("\n")
    }
}

fn ceil(text: &str, mut offset: usize) -> usize {
    while !text.is_char_boundary(offset) {
        offset += 1;
    }
    offset
}

/// True if a message contains one of these names.
fn mentions(message: &str, names: &HashSet<String>) -> bool {
    !names.is_empty() && message.split('`').skip(1).step_by(2).any(|name| names.contains(name))
}

/// Removes the part with an error from a tree. Returns true if a part was removed.
fn neutralise(
    tree: &mut Specification,
    at: Option<Span>,
    sources: &SourceMap,
    lost: &mut RemovedDeclarations,
) -> bool {
    let delta = || Node::new(ProcessKind::Delta, Span::default());
    let Some(at) = at else {
        let has = tree.sections.iter().any(|s| matches!(s, Section::Init(_)));
        if !has {
            tree.sections.push(Section::Init(delta()));
        }
        return !has;
    };
    let within =
        |span: Span| span.source == at.source && span.start <= at.start && at.start < span.end;
    let lose = |span: Span, lost: &mut RemovedDeclarations| {
        let text = sources.text(span);
        lost.names.extend(
            tokens::tokens(text)
                .iter()
                .filter(|t| t.kind == TokenKind::Word)
                .map(|t| t.text(text).to_string()),
        );
    };
    let mut changed = false;
    for section in &mut tree.sections {
        match section {
            Section::Sorts(decls) => decls.retain(|(name, definition)| {
                let extent = definition.as_ref().map_or(name.span, |d| name.span.to(d.span));
                let out = within(extent);
                if out {
                    lose(extent, lost);
                }
                changed |= out;
                !out
            }),
            Section::Constructors(decls) | Section::Mappings(decls) => {
                decls.retain(|(name, sort)| keep(name, &[sort], &within, lost, &mut changed))
            }
            Section::Actions(decls) => {
                decls.retain(|(name, sorts)| {
                    keep(name, &sorts.iter().collect::<Vec<_>>(), &within, lost, &mut changed)
                });
            }
            Section::Globals(decls) => {
                decls.retain(|d| keep(&d.name, &[&d.sort], &within, lost, &mut changed))
            }
            Section::Equations(vars, equations) => {
                if vars.iter().any(|v| within(v.name.span.to(v.sort.span))) {
                    vars.clear();
                    equations.clear();
                    changed = true;
                }
                let before = equations.len();
                equations.retain(|e| !within(e.span));
                changed |= equations.len() < before;
            }
            Section::Processes(equations) => equations.retain_mut(|e| {
                if within(e.body.span) && e.body.kind != ProcessKind::Delta {
                    e.body = delta();
                    changed = true;
                } else if within(
                    e.params.iter().fold(e.name.span, |s, p| s.to(p.name.span).to(p.sort.span)),
                ) {
                    lost.names.insert(e.name.kind.clone());
                    changed = true;
                    return false;
                }
                true
            }),
            Section::Init(process) => {
                if within(process.span) && process.kind != ProcessKind::Delta {
                    *process = delta();
                    changed = true;
                }
            }
        }
        if changed {
            break;
        }
    }
    changed
}

/// Returns true if a declaration stays; removes one with the error.
fn keep(
    name: &ast::Ident,
    sorts: &[&ast::Sort],
    within: &dyn Fn(Span) -> bool,
    lost: &mut RemovedDeclarations,
    changed: &mut bool,
) -> bool {
    let out = within(sorts.iter().fold(name.span, |s, sort| s.to(sort.span)));
    if out {
        lost.names.insert(name.kind.clone());
        *changed = true;
    }
    !out
}

#[cfg(test)]
mod tests;
