//! Name resolution in x86 programs, for editors: shared data, thread data, labels and registers of
//! a thread's code, threads of unsafe states.
//!
//! Input: a text in the grammar of [`crate::nasm`], possibly with errors, because lines are read
//! one by one. Output: a [`Naming`]. Each `thread_code` has its own namespace of labels and
//! registers. A label that an unsafe state names is the same name in all of them, because it refers
//! to each thread's own label. A name compared with `eip` is a label; elsewhere variables take
//! precedence. Registers cannot be renamed, and neither can the built-in names `N`, `self`, `next`.
//! Cost: linear.

use super::registers;
use mu_base::naming::{NameRole, Naming, line};
use mu_base::words::{Cursor, LexicalForm, Token, TokenKind, tokens};
use mu_base::{SourceId, Span};
use std::collections::HashMap;

/// Names after `$` in code that always denote threads.
const THREADS: [&str; 2] = ["self", "next"];

/// Resolves the names of a program.
pub fn names(source: SourceId, text: &str) -> Naming {
    let blanked = readable(source, text);
    let list = tokens(source, &blanked, 0, LexicalForm::Lines(';')).unwrap_or_default();
    let sections = sections(&list);
    let mut reader = NameReader {
        text,
        out: Naming::default(),
        variables: HashMap::new(),
        given: HashMap::new(),
        labels: Vec::new(),
        registers: Vec::new(),
    };
    for (name, says) in [
        ("N", "N: the number of threads"),
        ("self", "$self: the thread itself"),
        ("next", "$next: the next thread, round robin"),
        ("eip", "eip[$t]: the position of a thread in its code, to be compared with a label"),
    ] {
        let of = reader.out.add_builtin(NameRole::Constant, name, says);
        reader.given.insert(name, of);
    }
    for s in &sections {
        reader.out.parts.push((s.name.text.into(), s.whole));
    }
    let of = |names: &'static [&'static str]| {
        sections.iter().filter(move |s| names.contains(&s.name.text))
    };
    of(&["shared_data", "thread_data"]).for_each(|s| reader.data(s));
    of(&["thread_code"]).for_each(|s| reader.declares_labels(s));
    // Before the code, so that labels that unsafe states share are united first.
    of(&["unsafe_prop"]).for_each(|s| reader.property(s));
    let registers: Vec<HashMap<String, usize>> =
        of(&["thread_code"]).enumerate().map(|(i, s)| reader.code(i, s)).collect();
    // If all threads share one code, a register of an unsafe state is that of the code.
    if let [only] = &registers[..] {
        for (full, place) in std::mem::take(&mut reader.registers) {
            only.get(&full).into_iter().for_each(|of| reader.out.mention(place, *of));
        }
    }
    reader.out
}

/// Returns the text with blanks for characters that start no token, and for comments and quoted
/// texts without an end.
fn readable(source: SourceId, text: &str) -> String {
    const MOST: usize = 50;
    let mut out = text.to_string();
    for _ in 0..MOST {
        let Some(Span { start, end, .. }) =
            tokens(source, &out, 0, LexicalForm::Lines(';')).err().and_then(|e| e.span)
        else {
            break;
        };
        out.replace_range(start as usize..end as usize, &" ".repeat((end - start) as usize));
    }
    out
}

/// A section: its name, its lines, its whole range.
struct Section<'t> {
    name: Token<'t>,
    lines: Vec<Vec<Token<'t>>>,
    whole: Span,
}

fn sections<'t>(list: &[Token<'t>]) -> Vec<Section<'t>> {
    let mut out: Vec<Section<'t>> = Vec::new();
    let mut open = false;
    for row in
        list.split(|t| t.text == "\n" || t.kind == TokenKind::End).filter(|row| !row.is_empty())
    {
        let known = |i: usize| row.get(i).filter(|t| super::nasm::NAMES.contains(&t.text));
        let (first, last) = (row[0], row[row.len() - 1]);
        match (first.text.to_ascii_lowercase().as_str(), known(1)) {
            ("begin", Some(name)) => {
                out.push(Section {
                    name: *name,
                    lines: Vec::new(),
                    whole: first.span.to(last.span),
                });
                open = true;
            }
            (word, name) => {
                let Some(section) = out.last_mut().filter(|_| open) else { continue };
                section.whole = section.whole.to(last.span);
                open = !(word == "end" && name.is_some());
                if open {
                    section.lines.push(row.to_vec());
                }
            }
        }
    }
    out
}

/// Returns the labels at the beginning of a line, each followed by a colon.
fn labels_of<'r, 't>(row: &'r [Token<'t>]) -> impl Iterator<Item = &'r Token<'t>> {
    row.chunks(2)
        .take_while(|p| p.len() == 2 && p[0].kind == TokenKind::Name && p[1].text == ":")
        .map(|p| &p[0])
}

struct NameReader<'t> {
    text: &'t str,
    out: Naming,
    variables: HashMap<String, usize>,
    given: HashMap<&'static str, usize>,
    /// The labels of each `thread_code`.
    labels: Vec<HashMap<String, usize>>,
    /// Full names of registers in unsafe states, with their positions.
    registers: Vec<(String, Span)>,
}

impl<'t> NameReader<'t> {
    fn source_text(&self, span: Span) -> String {
        line(self.text.get(span.start as usize..span.end as usize).unwrap_or(""))
    }

    fn data(&mut self, section: &Section<'_>) {
        for row in &section.lines {
            let Some((name, rest)) =
                row.split_first().filter(|(name, _)| name.kind == TokenKind::Name)
            else {
                continue;
            };
            let whole = name.span.to(row[row.len() - 1].span);
            let says = self.source_text(whole);
            let of = self.out.declare(NameRole::Storage, name.text, name.span, whole, says);
            let counter = if rest.iter().any(|t| t.text.eq_ignore_ascii_case("counter")) {
                ", a counter"
            } else {
                ""
            };
            let note = if section.name.text == "thread_data" {
                "each thread has an element"
            } else {
                "shared by all threads"
            };
            self.out.bindings[of].note = format!("{note}{counter}");
            self.variables.entry(name.text.into()).or_insert(of);
            // The width and a value, which may be `N`.
            rest.iter()
                .filter(|t| t.text.eq_ignore_ascii_case("N"))
                .for_each(|t| self.mention_given(t));
        }
    }

    /// Records a built-in name; in data the number of threads may be written `n`.
    fn mention_given(&mut self, token: &Token<'_>) {
        let found = self.given.iter().find(|g| g.0.eq_ignore_ascii_case(token.text)).map(|g| *g.1);
        found.into_iter().for_each(|of| self.out.mention(token.span, of));
    }

    fn declares_labels(&mut self, section: &Section<'_>) {
        let mut known: HashMap<String, usize> = HashMap::new();
        for row in &section.lines {
            for name in labels_of(row) {
                let of = self.out.declare(
                    NameRole::Label,
                    name.text,
                    name.span,
                    name.span,
                    format!("{}:", name.text),
                );
                (self.out.bindings[of].scope, self.out.bindings[of].note) =
                    (Some(section.whole), "a label".into());
                known.entry(name.text.into()).or_insert(of);
            }
        }
        self.labels.push(known);
    }

    /// Finds the label that an unsafe state names, which refers to each thread with that label.
    fn label_of_all(&mut self, name: &str) -> Option<usize> {
        let all: Vec<usize> = self.labels.iter().filter_map(|l| l.get(name).copied()).collect();
        let (stays, others) = all.split_first()?;
        others.iter().for_each(|goes| self.out.merge(*stays, *goes));
        self.labels.iter_mut().filter_map(|l| l.get_mut(name)).for_each(|of| *of = *stays);
        self.out.bindings[*stays].scope = None;
        Some(*stays)
    }

    fn property(&mut self, section: &Section<'_>) {
        let mut list: Vec<Token<'_>> = section.lines.iter().flatten().copied().collect();
        let Some(last) = list.last().copied() else { return };
        list.push(Token { kind: TokenKind::End, text: "", span: last.span });
        let mut cursor = Cursor::new(&list);
        let mut threads: HashMap<String, usize> = HashMap::new();
        let mut place = super::property::compares_places(&cursor);
        while !cursor.at_end() {
            let token = cursor.take();
            match token.kind {
                TokenKind::Sign if token.text == "&&" => {
                    place = super::property::compares_places(&cursor)
                }
                TokenKind::Sign if token.text == "$" && cursor.peek().kind == TokenKind::Name => {
                    let thread = cursor.take();
                    match threads.get(thread.text) {
                        Some(of) => self.out.mention(thread.span, *of),
                        None => {
                            let says = format!("${}", thread.text);
                            let of = self.out.declare(
                                NameRole::Local,
                                thread.text,
                                thread.span,
                                thread.span,
                                says,
                            );
                            let binding = &mut self.out.bindings[of];
                            (binding.scope, binding.note) = (
                                Some(section.whole),
                                "a thread; different names denote different threads".into(),
                            );
                            threads.insert(thread.text.into(), of);
                        }
                    }
                }
                TokenKind::Name => self.side(&token, cursor.is("["), place),
                _ => {}
            }
        }
    }

    /// Records a name of a comparison. `element`: a thread in brackets follows.
    fn side(&mut self, token: &Token<'_>, element: bool, place: bool) {
        let variable = self.variables.get(token.text).copied();
        if element {
            match (registers::parse(token.text), variable) {
                _ if token.text == "eip" => self.mention_given(token),
                (Some(view), _) => self.registers.push((view.full, token.span)),
                (None, Some(of)) => self.out.mention(token.span, of),
                (None, None) => {}
            }
            return;
        }
        let label = if place || variable.is_none() { self.label_of_all(token.text) } else { None };
        match label.or(variable.filter(|_| !place)) {
            Some(of) => self.out.mention(token.span, of),
            None if token.text == "N" => self.mention_given(token),
            None => {}
        }
    }

    /// Resolves the names of a thread's code. Returns its registers.
    fn code(&mut self, number: usize, section: &Section<'_>) -> HashMap<String, usize> {
        let mut known: HashMap<String, usize> = HashMap::new();
        for row in &section.lines {
            let mut words = row[2 * labels_of(row).count()..]
                .iter()
                .skip_while(|t| t.text.eq_ignore_ascii_case("lock"));
            let Some(mnemonic) = words.next() else { continue };
            let jumps = mnemonic.text.to_ascii_lowercase().starts_with('j');
            let mut before = mnemonic.text;
            for token in words {
                let sign = std::mem::replace(&mut before, token.text);
                let before_is = |text: &str| sign == text;
                if token.kind != TokenKind::Name {
                    continue;
                }
                let label = self.labels[number].get(token.text).copied();
                if jumps {
                    label.into_iter().for_each(|of| self.out.mention(token.span, of));
                } else if before_is("%") || registers::parse(token.text).is_some() {
                    self.register(token, &mut known, section);
                } else if token.text == "N" || before_is("$") && THREADS.contains(&token.text) {
                    self.mention_given(token);
                } else if let Some(of) = self.variables.get(token.text) {
                    self.out.mention(token.span, *of);
                }
            }
        }
        known
    }

    /// Records a register of a thread, given any part of it. A name unknown to the architecture is
    /// symbolic: `%name`.
    fn register(
        &mut self,
        token: &Token<'_>,
        known: &mut HashMap<String, usize>,
        section: &Section<'_>,
    ) {
        let view = registers::parse(token.text);
        let full = view.as_ref().map_or_else(|| token.text.to_string(), |v| v.full.clone());
        if let Some(of) = known.get(&full) {
            self.out.mention(token.span, *of);
            return;
        }
        let of = self.out.declare(
            NameRole::Register,
            token.text,
            token.span,
            token.span,
            token.text.to_string(),
        );
        let binding = &mut self.out.bindings[of];
        binding.scope = Some(section.whole);
        binding.note = "a register of each thread that runs this code, initially zero".into();
        if view.is_some() {
            binding.note += &format!("; `{full}` or a part of it");
            binding.fixed = Some("a register of the architecture");
        }
        known.insert(full, of);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "; two flags
begin shared_data
  flag dd 0 ; who is in
  count dd N ! as counter
end shared_data
begin thread_data
  mine dd 0
end thread_data
begin unsafe_prop
  eip[$a] = crit && eip[$b] = crit && eax[$a] = 1 && mine[$b] <> count && $a:flag = N
end unsafe_prop
begin thread_code
again: mov al, 1
  mov dword [mine + $next], eax
  lock dec dword [count]
  mov %spare, $flag
crit: jne again
end thread_code
";

    /// Returns the lines with a token that begins with `mark`.
    fn lines(text: &str, mark: &str) -> Vec<usize> {
        let all = names(SourceId::FIRST, text).places_of(text.find(mark).unwrap() as u32);
        all.iter().map(|at| text[..*at as usize].matches('\n').count()).collect()
    }

    #[test]
    fn each_name_has_its_places() {
        for (mark, wanted) in [
            ("flag dd", &[2, 9, 15][..]),
            ("count dd", &[3, 9, 14]),
            ("mine dd", &[6, 9, 13]),
            ("crit &&", &[9, 9, 16]),
            ("again:", &[12, 16]),
            ("al, 1", &[9, 12, 13]),
            ("spare", &[15]),
            ("a] = crit", &[9, 9, 9]),
            ("b] = crit", &[9, 9]),
            ("N ! as", &[3, 9]),
            ("next]", &[13]),
            ("mov al", &[]),
            ("dword [m", &[]),
        ] {
            assert_eq!(lines(TEXT, mark), wanted, "{mark}");
        }
    }

    /// Labels belong to one code, unless an unsafe state names them: then to all threads.
    #[test]
    fn labels_of_several_threads() {
        let code = "begin thread_code\nl: jmp l\nm: jmp m\nend thread_code\n";
        let text = format!("{code}{code}begin unsafe_prop\neip[$t] = m\nend unsafe_prop\n");
        assert_eq!(lines(&text, "l: jmp"), [1, 1]);
        assert_eq!(lines(&text, "m: jmp"), [2, 2, 6, 6, 9]);
    }

    /// A label compared with `eip` is resolved although a variable has its name, and incomplete
    /// text does not prevent resolution of the rest.
    #[test]
    fn a_variable_and_a_label_of_one_name() {
        let text = "begin shared_data\nx dd 0\nend shared_data\nbegin unsafe_prop\neip[$t] = x && x = 1\nend unsafe_prop\nbegin thread_code\n\u{20ac} (* mov eax, [x]\nx: jmp x\n";
        assert_eq!(lines(text, "x dd"), [1, 4, 7]);
        assert_eq!(lines(text, "x && x"), [4, 8, 8]);
    }
}
