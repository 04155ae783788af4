//! Source texts and places in them. Texts may be expanded from a template; places always refer to
//! the file as written.

/// Source text: an index into a [`SourceMap`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct SourceId(u16);

impl SourceId {
    /// First source of a map, and the source of a text that is parsed without a map.
    pub const FIRST: SourceId = SourceId(0);
    /// Returns the source with a number.
    pub const fn of(number: u16) -> Self {
        SourceId(number)
    }
    /// Returns the number.
    pub const fn number(self) -> u16 {
        self.0
    }
    /// Returns the number as an index into the map.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
    /// Returns the source of index `i`. Panics if the map has more than 65,536 sources.
    pub fn new(i: usize) -> Self {
        SourceId(u16::try_from(i).expect("at most 65,536 sources"))
    }
}

/// Range of bytes `start..end` in a source's *parsed* text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Span {
    /// Source.
    pub source: SourceId,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// Returns the smallest span that covers both (which are in one source).
    pub fn to(self, other: Span) -> Span {
        Span {
            source: self.source,
            start: self.start.min(other.start),
            end: self.end.max(other.end),
        }
    }
    /// True if this is a real place. Items that the program generates have the empty default.
    pub fn is_somewhere(self) -> bool {
        self.end > self.start
    }
    /// True if the two spans intersect.
    pub fn overlaps(self, other: Span) -> bool {
        self.source == other.source && self.start < other.end && other.start < self.end
    }
}

/// Returns the last boundary of characters up to a byte.
pub fn char_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Place attached to an item, ignored by comparison: all are equal, so that items that differ only
/// in their places are equal.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place(pub Span);

impl PartialEq for Place {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
impl Eq for Place {}
impl std::hash::Hash for Place {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

/// One text with its name and, if it was expanded from a template, the map to original offsets.
#[derive(Clone, Debug)]
pub struct Source {
    /// File name as the user gave it.
    pub name: String,
    /// The file as written; excerpts show it.
    pub original: String,
    /// The text that was parsed (equal to `original` for a plain file).
    pub text: String,
    /// Breakpoints `(offset in text, offset in original, advances)`, ascending in the first. From a
    /// breakpoint to the next one offsets advance together if `advances`, else all map to the
    /// breakpoint's original offset. Empty: the identity.
    pub back: Vec<(u32, u32, bool)>,
}

/// All texts of a run.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    sources: Vec<Source>,
}

impl SourceMap {
    /// Creates an empty map.
    pub fn new() -> Self {
        Self::default()
    }
    /// Adds a plain text.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> SourceId {
        let text = text.into();
        self.add_source(Source {
            name: name.into(),
            original: text.clone(),
            text,
            back: Vec::new(),
        })
    }
    /// Adds a text that was expanded from a template.
    pub fn add_source(&mut self, source: Source) -> SourceId {
        let id = SourceId::new(self.sources.len());
        self.sources.push(source);
        id
    }
    /// True if the source is in this map.
    pub fn holds(&self, id: SourceId) -> bool {
        id.index() < self.sources.len()
    }
    /// Returns the source of an id that this map created.
    pub fn get(&self, id: SourceId) -> &Source {
        &self.sources[id.index()]
    }
    /// Returns the offset in the original file of an offset in the parsed text. O(log breakpoints).
    pub fn original_offset(&self, id: SourceId, offset: u32) -> u32 {
        let source = self.get(id);
        match source.back.partition_point(|b| b.0 <= offset) {
            0 => offset,
            i => {
                let (from, to, advances) = source.back[i - 1];
                if advances { to + (offset - from) } else { to }
            }
        }
    }
    /// Returns `(line, column)` in the original file, both from 1, columns in characters.
    pub fn line_column(&self, span: Span) -> (usize, usize) {
        let text = &self.get(span.source).original;
        let mut at = (self.original_offset(span.source, span.start) as usize).min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        let before = &text[..at];
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        (before.matches('\n').count() + 1, text[line_start..at].chars().count() + 1)
    }
    /// Returns the parsed text of a span.
    pub fn text(&self, span: Span) -> &str {
        self.get(span.source).text.get(span.start as usize..span.end as usize).unwrap_or("")
    }
}
