//! Answers about a place in a text: hover, definition, references, completion, outline, colours,
//! folding, lenses, quick fixes.
//!
//! Each is a function of the workspace, a path and an offset, and returns JSON of the protocol
//! (3.17), or `null`.

use crate::analysis::{Analysis, NameDeclaration, Problem};
use crate::generic_language;
use crate::names::{Key, NameKind};
use crate::positions::Lines;
use crate::workspace::Workspace;
use mu_base::naming::NameRole;
use mu_syntax::tokens::{self, SECTIONS, TokenKind};
use serde_json::{Value, json};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Returns the files that can contain a name: the file itself and, if the name is shared, the files
/// that belong to it.
pub(crate) fn files_with(
    workspace: &Workspace,
    path: &Path,
    key: &Key,
) -> Vec<(PathBuf, Rc<Analysis>)> {
    let Some(own) = workspace.complete(path) else { return Vec::new() };
    if let Key::Placed(..) = key {
        return generic_language::files_with(workspace, path, key);
    }
    if !key.is_shared() {
        return vec![(path.to_path_buf(), own)];
    }
    // Names that a formula declares, and its model does not, are local to the formula.
    let model = if own.formula {
        workspace.model_of(path).filter(|m| declares(workspace, m, key))
    } else {
        Some(path.to_path_buf())
    };
    let Some(model) = model else { return vec![(path.to_path_buf(), own)] };
    let mut paths = vec![model.clone()];
    paths.extend(workspace.formulas_of(&model));
    if !paths.iter().any(|p| p == path) {
        paths.push(path.to_path_buf());
    }
    paths.into_iter().filter_map(|p| workspace.complete(&p).map(|a| (p, a))).collect()
}

fn declares(workspace: &Workspace, path: &Path, key: &Key) -> bool {
    workspace.complete(path).is_some_and(|a| a.declarations.iter().any(|d| d.key == *key))
}

/// Returns the declarations of a key, in the file or in its model.
fn declarations(
    workspace: &Workspace,
    path: &Path,
    key: &Key,
) -> Vec<(PathBuf, Rc<Analysis>, NameDeclaration)> {
    let mut found = Vec::new();
    let model = workspace
        .model_of(path)
        .filter(|_| key.is_shared() && workspace.analysis(path).is_some_and(|a| a.formula));
    for file in [Some(path.to_path_buf()), model].into_iter().flatten() {
        let Some(analysis) = workspace.complete(&file) else { continue };
        let own =
            analysis.declarations.iter().filter(|d| d.key == *key).cloned().collect::<Vec<_>>();
        found.extend(own.into_iter().map(|d| (file.clone(), analysis.clone(), d)));
        if !found.is_empty() {
            break;
        }
    }
    found
}

fn location(
    workspace: &Workspace,
    path: &Path,
    analysis: &Analysis,
    range: &Range<usize>,
) -> Value {
    json!({ "uri": workspace.uri(path), "range": Lines::new(&analysis.text).range(&analysis.text, range) })
}

pub(crate) fn hover(workspace: &Workspace, path: &Path, offset: usize) -> Option<Value> {
    let analysis = workspace.complete(path)?;
    let name = analysis.name_at(offset)?.clone();
    if analysis.entity(&name.key).is_some() {
        return generic_language::hover(workspace, path, &analysis, &name);
    }
    let mut parts: Vec<String> = Vec::new();
    for (_, of, declaration) in declarations(workspace, path, &name.key) {
        let word = match (declaration.kind, &declaration.key) {
            (NameKind::Variable, Key::ProcessParameter(process, _)) => {
                format!("parameter of {process}:")
            }
            (NameKind::Parameter, _) => "$param".to_string(),
            (kind, _) => kind.word().to_string(),
        };
        let mut part =
            format!("```mcrl2\n{word} {}{}\n```", declaration.name, declaration.signature);
        if let Some(param) = of
            .params
            .iter()
            .find(|p| declaration.kind == NameKind::Parameter && p.name == declaration.name)
        {
            part += &format!("\nvalue: `{}`", param.value);
        }
        let comment = of.comment(&declaration);
        if !comment.is_empty() {
            part += &format!("\n\n{comment}");
        }
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    // The choice of the type checker: an overload, or a built-in operation.
    if parts.len() != 1
        && let Some(sort) = crate::typed::sort_at(&analysis, &name.range)
    {
        parts.insert(
            0,
            format!("```mcrl2\n{}: {sort}\n```", range_text(&analysis.text, &name.range)),
        );
    }
    if parts.is_empty() {
        return None;
    }
    let lines = Lines::new(&analysis.text);
    Some(json!({
        "contents": { "kind": "markdown", "value": parts.join("\n\n---\n\n") },
        "range": lines.range(&analysis.text, &name.range),
    }))
}

pub(crate) fn definition(workspace: &Workspace, path: &Path, offset: usize) -> Option<Value> {
    let analysis = workspace.complete(path)?;
    let name = analysis.name_at(offset)?;
    if let Key::Placed(file, _) = &name.key {
        let of = workspace.complete(file)?;
        let places = of.names.iter().filter(|n| n.key == name.key && n.declares);
        return Some(places.map(|n| location(workspace, file, &of, &n.range)).collect());
    }
    let mut places: Vec<Value> = declarations(workspace, path, &name.key)
        .iter()
        .map(|(file, of, d)| location(workspace, file, of, &d.range))
        .collect();
    places.dedup();
    Some(Value::Array(places))
}

pub(crate) fn references(
    workspace: &Workspace,
    path: &Path,
    offset: usize,
    with_declaration: bool,
) -> Option<Value> {
    let analysis = workspace.complete(path)?;
    let key = analysis.name_at(offset)?.key.clone();
    let mut places = Vec::new();
    for (file, of) in files_with(workspace, path, &key) {
        let names = of.names.iter().filter(|n| n.key == key && (with_declaration || !n.declares));
        places.extend(names.map(|n| location(workspace, &file, &of, &n.range)));
    }
    places.dedup();
    Some(Value::Array(places))
}

pub(crate) fn highlights(workspace: &Workspace, path: &Path, offset: usize) -> Option<Value> {
    let analysis = workspace.complete(path)?;
    let key = analysis.name_at(offset)?.key.clone();
    let lines = Lines::new(&analysis.text);
    let places = analysis
        .names
        .iter()
        .filter(|n| n.key == key)
        .map(|n| json!({ "range": lines.range(&analysis.text, &n.range) }));
    Some(places.collect())
}

/// Functions of the language that are not operators.
const FUNCTIONS: [&str; 22] = [
    "abs", "ceil", "count", "exp", "floor", "head", "if", "max", "min", "pick", "pred", "rhead",
    "round", "rtail", "sqrt", "succ", "tail", "Int2Nat", "Int2Pos", "Nat2Pos", "Bag2Set",
    "Set2Bag",
];

pub(crate) fn completion(workspace: &Workspace, path: &Path, offset: usize) -> Option<Value> {
    let analysis = workspace.complete(path)?;
    let text = &analysis.text;
    let start = text[..offset]
        .rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '\'')
        .map_or(0, |i| i + 1);
    let start = (start..=offset).find(|i| text.is_char_boundary(*i)).unwrap_or(offset);
    if text[..start].ends_with('$') && !analysis.formula {
        let snippets = [
            ("param", "param ${1:name}: ${2:Nat} = ${3:2};  % ${4:what it is}"),
            ("for", "for ${1:i} in 0 .. ${2:n} join \"${3:, }\" { $0 }"),
            ("if", "if ${1:condition} { $0 }"),
            ("else", "else { $0 }"),
        ];
        let items = snippets.map(|(label, text)| json!({ "label": label, "kind": 15, "insertText": text, "insertTextFormat": 2 }));
        return Some(items.into_iter().collect());
    }
    // Comments have no completion.
    if analysis
        .tokens
        .iter()
        .any(|t| t.kind == TokenKind::Comment && t.range.start < offset && offset <= t.range.end)
    {
        return Some(json!([]));
    }
    if analysis.lexicon.is_some() {
        return Some(generic_language::completion(&analysis, offset));
    }
    let mut items: Vec<(String, Value)> = Vec::new();
    let mut add = |of: &Analysis, own: bool| {
        for d in &of.declarations {
            let local = matches!(d.key, Key::Local(_) | Key::ProcessParameter(..));
            let shown =
                if local { own && is_near(of, d, offset) } else { own || d.key.is_shared() };
            if !shown || d.kind == NameKind::Parameter {
                continue;
            }
            let order = if local { 0 } else { 1 };
            let item = json!({
                "label": d.name, "kind": d.kind.completion(), "detail": format!("{} {}{}", d.kind.word(), d.name, d.signature),
                "sortText": format!("{order}{}", d.name), "documentation": of.comment(d),
            });
            if !items.iter().any(|i| i.0 == d.name && i.1["detail"] == item["detail"]) {
                items.push((d.name.clone(), item));
            }
        }
    };
    add(&analysis, true);
    if analysis.formula
        && let Some(model) = workspace.model_of(path).and_then(|m| workspace.complete(&m))
    {
        add(&model, false);
    }
    let mut items: Vec<Value> = items.into_iter().map(|i| i.1).collect();
    items.extend(
        tokens::reserved_words()
            .map(|w| json!({ "label": w, "kind": 14, "sortText": format!("2{w}") })),
    );
    items.extend(FUNCTIONS.iter().map(
        |w| json!({ "label": w, "kind": 3, "detail": "built in", "sortText": format!("2{w}") }),
    ));
    Some(Value::Array(items))
}

/// True if a variable may be in scope at an offset: both are in one declaration, or in one section
/// of equations.
fn is_near(analysis: &Analysis, declaration: &NameDeclaration, offset: usize) -> bool {
    let (from, to) = (declaration.range.start.min(offset), declaration.range.start.max(offset));
    let between = || analysis.tokens.iter().filter(|t| t.range.start >= from && t.range.end <= to);
    let section = |words: &[&str]| {
        between().any(|t| t.kind == TokenKind::Word && words.contains(&t.text(&analysis.text)))
    };
    let crossed = between().any(|t| t.is_sign(&analysis.text, ";"));
    let equations =
        !section(&["sort", "cons", "map", "var", "glob", "act", "proc", "init", "form"])
            && section(&["eqn"]);
    declaration.range.start <= offset && (!crossed && !section(&SECTIONS) || equations)
}

pub(crate) fn symbols(workspace: &Workspace, path: &Path) -> Option<Value> {
    let analysis = workspace.analysis(path)?;
    let (text, lines) = (&analysis.text, Lines::new(&analysis.text));
    let mut out: Vec<(Range<usize>, Value)> = Vec::new();
    for d in analysis
        .declarations
        .iter()
        .filter(|d| analysis.entity(&d.key).is_none_or(|t| t.is_outlined()))
    {
        let Some(kind) = d.kind.symbol() else { continue };
        let extent = d.extent.start.min(d.range.start)..d.extent.end.max(d.range.end);
        let symbol = json!({
            "name": d.name, "detail": d.signature.trim_start_matches([':', ' ']), "kind": kind,
            "range": lines.range(text, &extent), "selectionRange": lines.range(text, &d.range), "children": [],
        });
        match out.last_mut() {
            Some((outer, parent))
                if matches!(
                    d.kind,
                    NameKind::Constructor
                        | NameKind::Of(NameRole::Constructor | NameRole::Function)
                ) && outer.start <= extent.start
                    && extent.end <= outer.end =>
            {
                if let Some(children) = parent["children"].as_array_mut() {
                    children.push(symbol);
                }
            }
            _ => out.push((extent, symbol)),
        }
    }
    let init = analysis.tokens.iter().position(|t| {
        analysis.lexicon.is_none()
            && t.kind == TokenKind::Word
            && matches!(t.text(text), "init" | "form")
    });
    if let Some(i) = init {
        let end = analysis.tokens[i..]
            .iter()
            .find(|t| t.is_sign(text, ";"))
            .or(analysis.tokens.last())
            .map_or(text.len(), |t| t.range.end);
        let range = &analysis.tokens[i].range;
        out.push((range.start..end, json!({
            "name": range_text(text, range), "kind": 3, "range": lines.range(text, &(range.start..end)), "selectionRange": lines.range(text, range),
        })));
    }
    for (name, range) in &analysis.parts {
        let place = lines.range(text, range);
        out.push((
            range.clone(),
            json!({ "name": name, "kind": 3, "range": place, "selectionRange": place }),
        ));
    }
    out.sort_by_key(|s| s.0.start);
    Some(out.into_iter().map(|s| s.1).collect())
}

fn range_text<'a>(text: &'a str, range: &Range<usize>) -> &'a str {
    text.get(range.clone()).unwrap_or("")
}

/// Returns code lenses: commands that the client may run for a text. Each is the client's
/// `mu-check.run` with the arguments of a command line and its folder.
pub(crate) fn lenses(workspace: &Workspace, path: &Path) -> Option<Value> {
    let analysis = workspace.analysis(path)?;
    let lines = Lines::new(&analysis.text);
    let file = path.to_string_lossy().into_owned();
    let folder = path.parent().map(|p| p.to_string_lossy().into_owned());
    let at = |word: &str| {
        analysis
            .tokens
            .iter()
            .find(|t| t.kind == TokenKind::Word && t.text(&analysis.text) == word)
            .map(|t| t.range.clone())
    };
    let lens = |range: &Range<usize>, title: String, arguments: Vec<String>| {
        json!({
            "range": lines.range(&analysis.text, range),
            "command": { "title": title, "command": "mu-check.run", "arguments": [{ "arguments": arguments, "folder": folder }] },
        })
    };
    let words = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<String>>();
    if analysis.formula {
        let model = workspace.model_of(path)?.to_string_lossy().into_owned();
        let first = analysis.tokens.iter().find(|t| t.kind != TokenKind::Comment)?.range.clone();
        let range = at("form").unwrap_or(first);
        let name = Path::new(&model)
            .file_name()
            .map(|n| n.to_string_lossy().into_owned())
            .unwrap_or_default();
        let picture = path.with_extension("svg").to_string_lossy().into_owned();
        return Some(json!([
            lens(&range, format!("check on {name}"), words(&["check", &model, &file])),
            lens(
                &range,
                "draw evidence".into(),
                words(&["check", &model, &file, "--evidence", &picture])
            ),
        ]));
    }
    if analysis.lexicon.is_some() {
        return None;
    }
    let range = at("init")?;
    let mut all = vec![
        lens(&range, "explore".into(), words(&["explore", &file])),
        lens(&range, "simulate".into(), words(&["simulate", &file])),
    ];
    let formulas: Vec<String> =
        workspace.formulas_of(path).iter().map(|f| f.to_string_lossy().into_owned()).collect();
    if !formulas.is_empty() {
        let title = if formulas.len() == 1 {
            "check 1 formula".into()
        } else {
            format!("check {} formulas", formulas.len())
        };
        all.push(lens(
            &range,
            title,
            words(&["check", &file]).into_iter().chain(formulas).collect(),
        ));
    }
    Some(Value::Array(all))
}

/// Returns quick fixes: replacements from the notes of the errors in a range; if it has none, from
/// the errors in its lines, because the cursor is often behind the error.
pub(crate) fn fixes(workspace: &Workspace, path: &Path, range: &Range<usize>) -> Option<Value> {
    let analysis = workspace.analysis(path)?;
    let lines = Lines::new(&analysis.text);
    let uri = workspace.uri(path);
    let mut out = Vec::new();
    let within = |p: &Problem, range: &Range<usize>| {
        p.range.start <= range.end && range.start <= p.range.end
    };
    let start = analysis.text[..range.start].rfind('\n').map_or(0, |i| i + 1);
    let end = analysis.text[range.end..].find('\n').map_or(analysis.text.len(), |i| range.end + i);
    let near =
        if analysis.problems.iter().any(|p| within(p, range)) { range.clone() } else { start..end };
    for problem in analysis.problems.iter().filter(|p| within(p, &near)) {
        let found = replacements(&analysis, problem);
        // Edits that an editor may apply without a choice.
        let only = found.len() == 1;
        for (place, text) in found {
            let old = range_text(&analysis.text, &place);
            let title = if old.is_empty() {
                format!("insert `{text}`")
            } else {
                format!("replace `{old}` by `{text}`")
            };
            let edit = json!({ "range": lines.range(&analysis.text, &place), "newText": text });
            out.push(json!({
                "title": title, "kind": "quickfix", "isPreferred": only, "edit": { "changes": { uri.clone(): [edit] } },
                "diagnostics": [diagnostic(&analysis, &uri, &lines, problem)],
            }));
        }
    }
    Some(Value::Array(out))
}

fn replacements(analysis: &Analysis, problem: &Problem) -> Vec<(Range<usize>, String)> {
    let text = &analysis.text;
    let here = range_text(text, &problem.range);
    let quoted =
        |s: &str| s.split('`').skip(1).step_by(2).map(String::from).collect::<Vec<String>>();
    let offending = quoted(&problem.message).into_iter().next().unwrap_or_default();
    let word = problem.range.start..problem.range.start + offending.len();
    let is_there = !offending.is_empty() && range_text(text, &word) == offending;
    let before = || {
        analysis
            .tokens
            .iter()
            .rev()
            .find(|t| t.range.end <= problem.range.start && t.kind != TokenKind::Comment)
    };
    let mut out = Vec::new();
    for note in &problem.notes {
        if let Some(names) = note.strip_prefix("similar names: ")
            && is_there
        {
            out.extend(names.split(", ").map(|n| (word.clone(), n.to_string())));
        } else if note.contains("is written `val(") && is_there && tokens::is_name(here) {
            out.push((word.clone(), format!("val({offending})")));
        } else if note.contains("is an action: `<") && is_there {
            out.extend([
                (word.clone(), format!("<{offending}>true")),
                (word.clone(), format!("[{offending}]false")),
            ]);
        } else if let ("&" | "|", Some(sign)) =
            (offending.as_str(), note.split(" is written ").nth(1))
        {
            out.push((word.clone(), sign.trim_matches('`').to_string()));
        } else if note == "equality is written `==`" && is_there {
            out.push((word.clone(), "==".to_string()));
        } else if let Some(sign) = note.strip_prefix("expected `").and_then(|n| n.strip_suffix('`'))
            && matches!(sign, ";" | ")" | "]" | "}" | ":" | "=")
        {
            out.extend(before().map(|t| (t.range.end..t.range.end, sign.to_string())));
        } else if note.starts_with("expected ")
            && note.contains("`;`")
            && (offending.is_empty() || SECTIONS.contains(&offending.as_str()))
        {
            // The message expects a list, but the next declaration or the end of the text follows.
            out.extend(before().map(|t| (t.range.end..t.range.end, ";".to_string())));
        } else if note.starts_with("the `") && note.ends_with("is not closed") {
            let close = match note.as_bytes().get(5) {
                Some(b'(') => ")",
                Some(b'[') => "]",
                _ => "}",
            };
            out.extend(before().map(|t| (t.range.end..t.range.end, close.to_string())));
        } else if note.contains("2")
            && note.contains("(…)` makes a ")
            && let Some(function) =
                quoted(note).first().and_then(|f| f.strip_suffix("(…)").map(String::from))
        {
            out.push((problem.range.clone(), format!("{function}({here})")));
        }
    }
    out
}

pub(crate) fn diagnostic(
    analysis: &Analysis,
    uri: &str,
    lines: &Lines,
    problem: &Problem,
) -> Value {
    let notes: String = problem.notes.iter().map(|n| format!("\n{n}")).collect();
    let related: Vec<Value> = problem
        .related
        .iter()
        .map(|(range, text)| json!({ "location": { "uri": uri, "range": lines.range(&analysis.text, range) }, "message": text }))
        .collect();
    json!({
        "range": lines.range(&analysis.text, &problem.range), "severity": 1, "source": "mu-check", "code": problem.stage.word(),
        "message": format!("{}{notes}", problem.message), "relatedInformation": related,
    })
}
