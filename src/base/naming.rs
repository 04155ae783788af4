//! Symbol table of a text for editors: declarations, uses, and descriptions of names.
//!
//! A front end that provides a [`Naming`] has hover, definition, references, rename, completion,
//! outline and colours in editors; the layer `lsp` needs nothing else. Invariant: the place of a
//! mention contains only its name, and no two mentions overlap.

use crate::Span;

/// Kind of a named entity.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum NameRole {
    /// A type.
    Type,
    /// A value that a type or an enumeration lists.
    Constructor,
    /// Memory: a variable, an array, a location.
    Storage,
    /// A constant.
    Constant,
    /// A set or relation of events.
    Relation,
    /// A function.
    Function,
    /// A transition, a procedure, or a thread.
    Process,
    /// A variable that its own equation defines as a fixed point.
    FixedPoint,
    /// A parameter or a variable of one declaration.
    Local,
    /// A register of a thread.
    Register,
    /// A jump target.
    Label,
    /// A claim, which reports cite by this name.
    Claim,
}

impl NameRole {
    /// Returns the word for editors.
    pub fn word(self) -> &'static str {
        match self {
            NameRole::Type => "type",
            NameRole::Constructor => "value",
            NameRole::Storage => "variable",
            NameRole::Constant => "constant",
            NameRole::Relation => "relation",
            NameRole::Function => "function",
            NameRole::Process => "process",
            NameRole::FixedPoint => "fixed point",
            NameRole::Local => "local variable",
            NameRole::Register => "register",
            NameRole::Label => "label",
            NameRole::Claim => "claim",
        }
    }
}

/// Named entity.
#[derive(Clone, Debug)]
pub struct Binding {
    /// Kind.
    pub role: NameRole,
    /// Name.
    pub name: String,
    /// Place of the first declaration; `None` for names that the language defines.
    pub place: Option<Span>,
    /// Place of the whole declaration.
    pub whole: Span,
    /// Declaration in one line.
    pub declaration: String,
    /// Further description, as Markdown.
    pub note: String,
    /// Scope; `None` if the scope is the whole text.
    pub scope: Option<Span>,
    /// Reason why the entity cannot be renamed, if it cannot.
    pub fixed: Option<&'static str>,
}

/// Occurrence of a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mention {
    /// Place.
    pub place: Span,
    /// Number of the entity.
    pub of: usize,
    /// True if this occurrence declares the entity.
    pub declares: bool,
}

/// All names of a text.
#[derive(Clone, Default, Debug)]
pub struct Naming {
    /// Named entities.
    pub bindings: Vec<Binding>,
    /// Occurrences of names, in the order in which they were found.
    pub mentions: Vec<Mention>,
    /// Parts of the text for the outline that have no name of their own: title and place.
    pub parts: Vec<(String, Span)>,
}

impl Naming {
    /// Adds an entity that is declared at a place, in scope everywhere. Returns its number.
    pub fn declare(
        &mut self,
        role: NameRole,
        name: &str,
        place: Span,
        whole: Span,
        says: impl Into<String>,
    ) -> usize {
        let of = self.add(role, name, Some(place), whole, says.into());
        self.mentions.push(Mention { place, of, declares: true });
        of
    }
    /// Adds a name that the language defines; it cannot be renamed.
    pub fn add_builtin(&mut self, role: NameRole, name: &str, says: impl Into<String>) -> usize {
        let of = self.add(role, name, None, Span::default(), says.into());
        self.bindings[of].fixed = Some("it is part of the language");
        of
    }
    fn add(
        &mut self,
        role: NameRole,
        name: &str,
        place: Option<Span>,
        whole: Span,
        says: String,
    ) -> usize {
        self.bindings.push(Binding {
            role,
            name: name.into(),
            place,
            whole,
            declaration: says,
            note: String::new(),
            scope: None,
            fixed: None,
        });
        self.bindings.len() - 1
    }
    /// Adds an occurrence.
    pub fn mention(&mut self, place: Span, of: usize) {
        self.mentions.push(Mention { place, of, declares: false });
    }
    /// Returns the offsets of all occurrences of the entity that has a mention at this offset,
    /// ascending. Empty if no mention begins there. For a single text: source ids are not compared.
    pub fn places_of(&self, at: u32) -> Vec<u32> {
        let Some(found) = self.mentions.iter().find(|m| m.place.start == at) else {
            return Vec::new();
        };
        let mut all: Vec<u32> =
            self.mentions.iter().filter(|m| m.of == found.of).map(|m| m.place.start).collect();
        all.sort_unstable();
        all
    }
    /// Merges two entities, for a name that two branches bind and later code uses. The first
    /// remains.
    pub fn merge(&mut self, target: usize, source: usize) {
        if target != source {
            self.mentions.iter_mut().filter(|m| m.of == source).for_each(|m| m.of = target);
        }
    }
}

/// Returns a text as a single line, truncated if it is long.
pub fn line(text: &str) -> String {
    const MAX: usize = 160;
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(MAX) {
        Some((at, _)) => format!("{} …", words[..at].trim_end()),
        None => words,
    }
}
