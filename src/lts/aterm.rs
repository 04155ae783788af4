//! Reader and writer of the streams of shared terms in mCRL2's binary files: bits to symbols,
//! terms, numbers, and back.
//!
//! The form, as of versions 0x8306 of 2020 to 0x8308 of 2024: after eight zero bits, the magic
//! number 0x8baf and the version, each of 16 bits, come packets, most significant bits first. The
//! two bits of a packet are its kind:
//!
//! | packet | content |
//! |---|---|
//! | 0 | a function symbol: its name (length, bytes), its arity; it gets the next number, from 1 |
//! | 1 | a shared term: numbers of symbol and arguments; it gets the next number. Symbol 0: end |
//! | 2 | an output term: the same, without a number |
//! | 3 | an output number |
//!
//! Numbers of symbols and terms take as many bits as their current count has; lengths, arities and
//! integers are bytes of seven bits, least first, of which all but the last have the eighth bit
//! set. A shared term of the symbol `<aterm_int>` is an integer. Nothing is aligned; the end is
//! padded with zero bits.
//!
//! Cost: one pass; memory of the shared terms. Invariant: a term's arguments have smaller numbers
//! than it, so terms have no cycles.

use std::borrow::Cow;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};

use ahash::{AHashMap, AHashSet};

use mu_base::{Diagnostic, Stage, narrow};

const MAGIC: u64 = 0x8baf;
/// Supported versions; the last is written.
const VERSIONS: [u64; 3] = [0x8306, 0x8307, 0x8308];
/// Limit on arities and lengths of names; beyond it, the file counts as damaged.
const MAX_LENGTH: u64 = 1 << 20;
/// Numbers from here on are those of output terms.
const OUTPUT_BASE: Term = 1 << 31;
/// Name of the symbol of integers.
const INT: &str = "<aterm_int>";

/// Number of a function symbol.
pub type Symbol = u32;
/// Number of a shared term.
pub type Term = u32;

/// Content of a term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// An integer.
    Int(u64),
    /// A symbol with arguments.
    Apply(&'a str, &'a [Term]),
}

/// Output of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamItem {
    /// An integer.
    Int(u64),
    /// A term: its symbol and arguments.
    Apply(Symbol, Vec<Term>),
    /// The end of the stream.
    End,
}

fn damage_error(what: &str) -> Diagnostic {
    Diagnostic::new(Stage::File, format!("the file is damaged or cut off: {what}"))
}

/// Returns the error for a version of the form that is not supported.
fn version_error(version: u64) -> Diagnostic {
    let known: Vec<String> = VERSIONS.iter().map(|v| format!("{v:#x}")).collect();
    let message = format!("the file has version {version:#x} of mCRL2's binary form");
    let error = Diagnostic::new(Stage::File, message);
    if version < VERSIONS[0] {
        return error
            .note("a release of the mCRL2 toolset from before 2020 wrote it, in another layout")
            .note("use the specification (.mcrl2) from which it was made, or write the file again with a later release");
    }
    error.note(format!("supported versions: {}", known.join(", ")))
}

/// Returns the number of bits for numbers up to `count`.
fn width(count: usize) -> u32 {
    usize::BITS - count.leading_zeros()
}

/// Reader of a stream. It is compiled once, in this layer, and not for each kind of input.
pub struct TermReader<'a> {
    input: BufReader<Box<dyn Read + 'a>>,
    bits: u64,
    held: u32,
    /// Symbols by number; 0 stands for the end.
    symbols: Vec<(String, usize)>,
    /// Symbol and start of the arguments (an integer's value for integers).
    terms: Vec<(Symbol, u64)>,
    /// The same for stored output terms.
    stored: Vec<(Symbol, u64)>,
    arguments: Vec<Term>,
    /// No symbol so far is `x` with this many primes, or more.
    unused_primes: usize,
    /// Names of declared operations. Terms distinguish them from variables, texts do not.
    operations: AHashSet<String>,
}

impl<'a> TermReader<'a> {
    /// Reads the header; `capacity` bytes of the input are buffered.
    pub fn new(input: Box<dyn Read + 'a>, capacity: usize) -> Result<Self, Diagnostic> {
        let input = BufReader::with_capacity(capacity, input);
        let symbols = vec![(String::new(), 0)];
        let mut reader = Self {
            input,
            bits: 0,
            held: 0,
            symbols,
            terms: Vec::new(),
            stored: Vec::new(),
            arguments: Vec::new(),
            unused_primes: 1,
            operations: AHashSet::new(),
        };
        if reader.take(8)? != 0 || reader.take(16)? != MAGIC {
            return Err(Diagnostic::new(
                Stage::File,
                "this is not a binary file of mCRL2: its magic number is missing",
            ));
        }
        let version = reader.take(16)?;
        if !VERSIONS.contains(&version) {
            return Err(version_error(version));
        }
        Ok(reader)
    }

    fn take(&mut self, count: u32) -> Result<u64, Diagnostic> {
        while self.held < count {
            let buffer = self
                .input
                .fill_buf()
                .map_err(|e| Diagnostic::new(Stage::File, format!("cannot read: {e}")))?;
            if buffer.is_empty() {
                return Err(damage_error("it ends within a packet"));
            }
            let mut used = 0;
            while self.held <= 56 && used < buffer.len() {
                self.bits |= u64::from(buffer[used]) << (56 - self.held);
                self.held += 8;
                used += 1;
            }
            self.input.consume(used);
        }
        let value = if count == 0 { 0 } else { self.bits >> (64 - count) };
        self.bits = if count == 64 { 0 } else { self.bits << count };
        self.held -= count;
        Ok(value)
    }

    fn number(&mut self) -> Result<u64, Diagnostic> {
        let mut value = 0u64;
        for i in 0..10 {
            let byte = self.take(8)?;
            if i == 9 && byte > 1 {
                break;
            }
            value |= (byte & 127) << (7 * i);
            if byte & 128 == 0 {
                return Ok(value);
            }
        }
        Err(damage_error("a number has more than 64 bits"))
    }

    fn symbol_packet(&mut self) -> Result<(), Diagnostic> {
        let length = self.number()?;
        if length > MAX_LENGTH {
            return Err(damage_error("a name is too long"));
        }
        let mut name = Vec::new();
        for _ in 0..length {
            // Eight bits.
            name.push(narrow::byte_at(self.take(8)?, 0));
        }
        let name = String::from_utf8(name).map_err(|_| damage_error("a name is not UTF-8"))?;
        let arity = self.number()?;
        if arity > MAX_LENGTH || self.symbols.len() > MAX_LENGTH as usize * 64 {
            return Err(damage_error("a symbol has too many arguments"));
        }
        if let Some(primes) = name.strip_prefix('x').filter(|p| p.bytes().all(|b| b == b'\'')) {
            self.unused_primes = self.unused_primes.max(primes.len() + 1);
        }
        self.symbols.push((name, arity as usize));
        Ok(())
    }

    /// Reads the next output item.
    pub fn item(&mut self) -> Result<StreamItem, Diagnostic> {
        loop {
            let packet = self.take(2)?;
            match packet {
                0 => {
                    self.symbol_packet()?;
                    continue;
                }
                3 => return Ok(StreamItem::Int(self.number()?)),
                _ => {}
            }
            let symbol = self.take(width(self.symbols.len()))? as usize;
            if symbol == 0 {
                return Ok(StreamItem::End);
            }
            let (name, arity) = self
                .symbols
                .get(symbol)
                .ok_or_else(|| damage_error("a symbol is used before it is given"))?;
            let (integer, arity) = (name == INT, *arity);
            let symbol = symbol as Symbol;
            if integer {
                let value = self.number()?;
                if packet == 2 {
                    return Ok(StreamItem::Int(value));
                }
                self.terms.push((symbol, value));
                continue;
            }
            let start = self.arguments.len();
            let bits = width(self.terms.len());
            for _ in 0..arity {
                let term = self.take(bits)?;
                if term >= self.terms.len() as u64 {
                    return Err(damage_error("a term is used before it is given"));
                }
                self.arguments.push(term as Term);
            }
            if packet == 2 {
                return Ok(StreamItem::Apply(symbol, self.arguments.split_off(start)));
            }
            if self.terms.len() >= OUTPUT_BASE as usize {
                return Err(damage_error("there are too many terms"));
            }
            self.terms.push((symbol, start as u64));
        }
    }

    /// Stores an output term and returns a number for it; `None` if there are no more numbers.
    pub fn store(&mut self, symbol: Symbol, arguments: Vec<Term>) -> Option<Term> {
        let term =
            u32::try_from(self.stored.len()).ok().filter(|n| *n < OUTPUT_BASE)? | OUTPUT_BASE;
        self.stored.push((symbol, self.arguments.len() as u64));
        self.arguments.extend(arguments);
        Some(term)
    }

    /// Returns a name of a variable that no term so far contains.
    pub fn unused_name(&self) -> String {
        format!("x{}", "'".repeat(self.unused_primes))
    }

    /// Sets the names of declared operations, before variables are printed.
    pub fn declare(&mut self, operations: AHashSet<String>) {
        self.operations = operations;
    }

    /// Returns the name of a variable in texts. It would capture an operation of the same name.
    pub fn variable_name<'n>(&self, name: &'n str) -> Cow<'n, str> {
        if !self.operations.contains(name) {
            return Cow::Borrowed(name);
        }
        let mut other = format!("{name}_var");
        while self.operations.contains(&other) || self.symbols.iter().any(|s| s.0 == other) {
            other.push('_');
        }
        Cow::Owned(other)
    }

    /// Returns the name of a symbol.
    pub fn name(&self, symbol: Symbol) -> &str {
        &self.symbols[symbol as usize].0
    }

    /// Returns the content of a term.
    pub fn content(&self, term: Term) -> Content<'_> {
        let (symbol, at) = if term & OUTPUT_BASE == 0 {
            self.terms[term as usize]
        } else {
            self.stored[(term ^ OUTPUT_BASE) as usize]
        };
        let (name, arity) = &self.symbols[symbol as usize];
        if name == INT {
            Content::Int(at)
        } else {
            Content::Apply(name, &self.arguments[at as usize..at as usize + arity])
        }
    }
}

/// Writer of a stream; a shared term is written once. It is compiled once, in this layer.
pub struct TermWriter<'a> {
    output: BufWriter<Box<dyn Write + 'a>>,
    bits: u64,
    held: u32,
    symbols: AHashMap<(String, usize), Symbol>,
    terms: AHashMap<(Symbol, Vec<Term>), Term>,
    /// Shared terms by number, if they may be output again.
    contents: Option<Vec<(Symbol, Vec<Term>)>>,
}

impl<'a> TermWriter<'a> {
    /// Writes the header; `capacity` bytes of the output are buffered.
    pub fn new(output: Box<dyn Write + 'a>, capacity: usize) -> std::io::Result<Self> {
        let output = BufWriter::with_capacity(capacity, output);
        let mut writer = Self {
            output,
            bits: 0,
            held: 0,
            symbols: AHashMap::new(),
            terms: AHashMap::new(),
            contents: None,
        };
        writer.put(0, 8)?;
        writer.put(MAGIC, 16)?;
        writer.put(VERSIONS[VERSIONS.len() - 1], 16)?;
        Ok(writer)
    }

    /// Writes the header; shared terms may be output by their number.
    pub fn with_contents(output: Box<dyn Write + 'a>, capacity: usize) -> std::io::Result<Self> {
        let writer = Self::new(output, capacity)?;
        Ok(Self { contents: Some(Vec::new()), ..writer })
    }

    fn note(&mut self, key: (Symbol, Vec<Term>)) -> Term {
        let term = self.terms.len() as Term;
        if let Some(contents) = &mut self.contents {
            contents.push(key.clone());
        }
        self.terms.insert(key, term);
        term
    }

    fn put(&mut self, value: u64, count: u32) -> std::io::Result<()> {
        // At most 40 bits at a time, in addition to at most 7 pending ones.
        self.bits |= value << (64 - count - self.held);
        self.held += count;
        let whole = self.held / 8;
        self.output.write_all(&self.bits.to_be_bytes()[..whole as usize])?;
        self.bits = if whole == 8 { 0 } else { self.bits << (8 * whole) };
        self.held -= 8 * whole;
        Ok(())
    }

    fn number(&mut self, mut value: u64) -> std::io::Result<()> {
        while value > 127 {
            self.put(value & 127 | 128, 8)?;
            value >>= 7;
        }
        self.put(value, 8)
    }

    /// Returns the number of a symbol, writing it at first use.
    pub fn symbol(&mut self, name: &str, arity: usize) -> std::io::Result<Symbol> {
        let key = (name.to_string(), arity);
        if let Some(&symbol) = self.symbols.get(&key) {
            return Ok(symbol);
        }
        self.put(0, 2)?;
        self.number(name.len() as u64)?;
        for byte in name.bytes() {
            self.put(u64::from(byte), 8)?;
        }
        self.number(arity as u64)?;
        let symbol = self.symbols.len() as Symbol + 1;
        self.symbols.insert(key, symbol);
        Ok(symbol)
    }

    fn packet(&mut self, packet: u64, symbol: Symbol, arguments: &[Term]) -> std::io::Result<()> {
        self.put(packet, 2)?;
        self.put(u64::from(symbol), width(self.symbols.len() + 1))?;
        let bits = width(self.terms.len());
        arguments.iter().try_for_each(|&a| self.put(u64::from(a), bits))
    }

    /// Returns the number of a shared term, writing it at first use.
    pub fn share(&mut self, name: &str, arguments: &[Term]) -> std::io::Result<Term> {
        let symbol = self.symbol(name, arguments.len())?;
        let key = (symbol, arguments.to_vec());
        if let Some(&term) = self.terms.get(&key) {
            return Ok(term);
        }
        self.packet(1, symbol, arguments)?;
        Ok(self.note(key))
    }

    /// Returns the number of a shared integer, writing it at first use.
    pub fn share_int(&mut self, value: u64) -> std::io::Result<Term> {
        let symbol = self.symbol(INT, 0)?;
        // No term of this symbol has arguments, so the two halves identify an integer.
        let key = (symbol, vec![value as Term, (value >> 32) as Term]);
        if let Some(&term) = self.terms.get(&key) {
            return Ok(term);
        }
        self.packet(1, symbol, &[])?;
        self.number(value)?;
        Ok(self.note(key))
    }

    /// Shares a list of shared terms.
    pub fn share_list(&mut self, items: &[Term]) -> std::io::Result<Term> {
        let mut list = self.share("<empty_list>", &[])?;
        for &item in items.iter().rev() {
            list = self.share("<list_constructor>", &[item, list])?;
        }
        Ok(list)
    }

    /// Outputs a term.
    pub fn output(&mut self, symbol: Symbol, arguments: &[Term]) -> std::io::Result<()> {
        self.packet(2, symbol, arguments)
    }

    /// Outputs a shared term other than an integer; requires a writer with contents.
    pub fn output_shared(&mut self, term: Term) -> std::io::Result<()> {
        let contents = self.contents.as_ref().expect("the writer has contents");
        let (symbol, arguments) = contents[term as usize].clone();
        self.output(symbol, &arguments)
    }

    /// Outputs an integer.
    pub fn output_number(&mut self, value: u64) -> std::io::Result<()> {
        self.put(3, 2)?;
        self.number(value)
    }

    /// Writes the end.
    pub fn finish(mut self) -> std::io::Result<()> {
        self.packet(1, 0, &[])?;
        self.put(0, 7)?;
        self.put(0, 32)?;
        self.put(0, 32)?;
        self.output.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mu_base::random::Random;

    /// The first bytes of a stream, written by hand from the description above.
    #[test]
    fn bits_are_in_the_specified_order() {
        let mut bytes = Vec::new();
        let mut writer = TermWriter::new(Box::new(&mut bytes), 16).unwrap();
        let f = writer.symbol("f", 0).unwrap();
        writer.output(f, &[]).unwrap();
        writer.output_number(300).unwrap();
        writer.finish().unwrap();
        let mut expected = format!("{:08b}{:016b}{:016b}", 0, 0x8baf, 0x8308);
        expected += "00"; // a symbol: length 1, 'f', arity 0
        expected += "00000001";
        expected += &format!("{:08b}", b'f');
        expected += "00000000";
        expected += "10"; // an output term: symbol 1 of 2, in two bits
        expected += "01";
        expected += "11"; // 300 = 0b10_0101100
        expected += "1010110000000010";
        expected += "0100"; // the end
        let bits: String = bytes.iter().map(|b| format!("{b:08b}")).collect();
        assert!(bits.starts_with(&expected), "{bits}\n{expected}");
        assert!(bits[expected.len()..].chars().all(|c| c == '0'));
    }

    #[test]
    fn streams_round_trip() {
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let (mut bytes, mut expected) = (Vec::new(), Vec::new());
            let mut writer = TermWriter::new(Box::new(&mut bytes), 16).unwrap();
            let mut shared: Vec<(Term, String, Vec<Term>)> = Vec::new();
            for _ in 0..random.below(300) {
                match random.below(3) {
                    0 => {
                        let n = 1u64 << random.below(64);
                        writer.output_number(n).unwrap();
                        expected.push(StreamItem::Int(n));
                    }
                    kind => {
                        let name = format!("s{}", random.below(9));
                        let arity = if shared.is_empty() { 0 } else { random.below(4) };
                        let arguments: Vec<Term> =
                            (0..arity).map(|_| random.choose(&shared).0).collect();
                        if kind == 1 {
                            let term = writer.share(&name, &arguments).unwrap();
                            shared.push((term, name, arguments));
                        } else {
                            let symbol = writer.symbol(&name, arity).unwrap();
                            writer.output(symbol, &arguments).unwrap();
                            expected.push(StreamItem::Apply(symbol, arguments));
                        }
                    }
                }
            }
            writer.finish().unwrap();
            let mut reader = TermReader::new(Box::new(&bytes[..]), 16).unwrap();
            for item in &expected {
                assert_eq!(&reader.item().unwrap(), item, "seed {seed}");
            }
            assert_eq!(reader.item().unwrap(), StreamItem::End, "seed {seed}");
            for (term, name, arguments) in &shared {
                assert_eq!(reader.content(*term), Content::Apply(name, arguments), "seed {seed}");
            }
        }
    }
}
