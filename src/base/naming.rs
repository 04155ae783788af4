//! What the names of a text mean: where each is declared, where it is used, and what to say of it.
//!
//! A front end that gives a [`Naming`] has hover, definition, references, rename, completion,
//! outline and colours in editors: the layer `lsp` asks for nothing else. Invariant: a mention's
//! place holds its name alone, and no two mentions overlap.

use crate::Span;

/// What a name stands for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Role {
    /// A type.
    Type,
    /// A value that a type or an enumeration lists.
    Constructor,
    /// Memory: a variable, an array, a location.
    Storage,
    /// A value that stays.
    Constant,
    /// A set or relation of events.
    Relation,
    /// Something with arguments that gives a value.
    Function,
    /// Something that happens: a transition, a procedure, a thread.
    Process,
    /// A variable that an equation of its own defines as a fixed point.
    FixedPoint,
    /// A parameter or a variable of one declaration.
    Local,
    /// A register of a thread.
    Register,
    /// A place that jumps go to.
    Label,
    /// A claim, which reports call by this name.
    Claim,
}

impl Role {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Role::Type => "type",
            Role::Constructor => "value",
            Role::Storage => "variable",
            Role::Constant => "constant",
            Role::Relation => "relation",
            Role::Function => "function",
            Role::Process => "process",
            Role::FixedPoint => "fixed point",
            Role::Local => "local variable",
            Role::Register => "register",
            Role::Label => "label",
            Role::Claim => "claim",
        }
    }
}

/// A thing that has a name.
#[derive(Clone, Debug)]
pub struct Binding {
    /// What it is.
    pub role: Role,
    /// Its name.
    pub name: String,
    /// Where it is declared first; nowhere if the language gives it.
    pub place: Option<Span>,
    /// All of its declaration.
    pub whole: Span,
    /// Its declaration in a line.
    pub says: String,
    /// What else there is to say of it, as Markdown.
    pub note: String,
    /// Where it is in scope; none: everywhere.
    pub scope: Option<Span>,
    /// Why it cannot have another name, if it cannot.
    pub fixed: Option<&'static str>,
}

/// A place of a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mention {
    /// Where.
    pub place: Span,
    /// Of what, by its number.
    pub of: usize,
    /// Whether it is declared there.
    pub declares: bool,
}

/// All names of a text.
#[derive(Clone, Default, Debug)]
pub struct Naming {
    /// What has a name.
    pub bindings: Vec<Binding>,
    /// Places of names, in the order in which they were found.
    pub mentions: Vec<Mention>,
    /// Parts of the text that an outline shows and that have no name of their own: what to call
    /// them, and where they are.
    pub parts: Vec<(String, Span)>,
}

impl Naming {
    /// A thing that is declared at a place, in scope everywhere. Gives its number.
    pub fn declare(
        &mut self,
        role: Role,
        name: &str,
        place: Span,
        whole: Span,
        says: impl Into<String>,
    ) -> usize {
        let of = self.add(role, name, Some(place), whole, says.into());
        self.mentions.push(Mention { place, of, declares: true });
        of
    }
    /// A thing that the language gives; it keeps its name.
    pub fn given(&mut self, role: Role, name: &str, says: impl Into<String>) -> usize {
        let of = self.add(role, name, None, Span::default(), says.into());
        self.bindings[of].fixed = Some("the language gives it");
        of
    }
    fn add(
        &mut self,
        role: Role,
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
            says,
            note: String::new(),
            scope: None,
            fixed: None,
        });
        self.bindings.len() - 1
    }
    /// A place where something is used.
    pub fn mention(&mut self, place: Span, of: usize) {
        self.mentions.push(Mention { place, of, declares: false });
    }
    /// Where what has a name at this offset is named, in ascending order; nowhere if no name begins
    /// there. Of one text: sources are not looked at.
    pub fn places_of(&self, at: u32) -> Vec<u32> {
        let Some(found) = self.mentions.iter().find(|m| m.place.start == at) else {
            return Vec::new();
        };
        let mut all: Vec<u32> =
            self.mentions.iter().filter(|m| m.of == found.of).map(|m| m.place.start).collect();
        all.sort_unstable();
        all
    }
    /// Makes two things one: a name that two branches bind, and that what follows uses. The first
    /// stays.
    pub fn unite(&mut self, stays: usize, goes: usize) {
        if stays != goes {
            self.mentions.iter_mut().filter(|m| m.of == goes).for_each(|m| m.of = stays);
        }
    }
}

/// A text on one line, cut where it is long.
pub fn line(text: &str) -> String {
    const MOST: usize = 160;
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(MOST) {
        Some((at, _)) => format!("{} …", words[..at].trim_end()),
        None => words,
    }
}
