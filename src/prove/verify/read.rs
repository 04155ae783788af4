//! Parser of certificates; see [`crate::certificate`] for the format. Errors contain the place and
//! the expected input.

use super::counts::Count;
use super::logic::{CertificateCell, Fact, JOINT, OTHER, Point, ValueKind, singleton};
use super::sums::{CellSum, Sign};
use super::words::{WordSum, Words};
use super::{Certificate, ExcludedCube};
use mu_base::diagnostic::{Diagnostic, Stage};
use mu_base::narrow;
use mu_cubicle::system::{SymbolKind, System};
use num_rational::BigRational;
use num_traits::Zero;
use std::collections::HashMap;

struct CertificateReader<'a> {
    system: &'a System,
    kinds: &'a [ValueKind],
    symbols: HashMap<&'a str, usize>,
    /// Number and text of the current line.
    line: (usize, &'a str),
    named: usize,
    /// True under total store order, in which processes have views of memory.
    tso: bool,
}

/// Result of reading; an error has the place of the offending text.
pub type Read<T> = Result<T, Box<Diagnostic>>;

impl CertificateReader<'_> {
    fn fail<T>(&self, message: impl Into<String>) -> Read<T> {
        self.fail_at(self.line.1.trim_start(), message)
    }
    /// Fails at a part of the line.
    fn fail_at<T>(&self, part: &str, message: impl Into<String>) -> Read<T> {
        let (number, line) = self.line;
        Err(Box::new(Diagnostic::in_part(Stage::Syntax, number as u64, line, part, message)))
    }
    fn process(&self, text: &str) -> Read<u8> {
        let fixed = self.system.fixed as usize;
        let number = |s: &str| s.parse::<usize>().ok().filter(|n| *n > 0);
        let found = match (
            text.strip_prefix('#').and_then(number),
            text.strip_prefix('p').and_then(number),
        ) {
            (Some(n), _) if n <= fixed => Some(n - 1),
            (_, Some(n)) => Some(fixed + n - 1),
            _ => None,
        };
        match found {
            Some(p) if p < self.named => Ok(narrow::byte(p)),
            _ => self.fail_at(text, format!("`{text}` is not a process of this cube")),
        }
    }
    fn view(&self, text: &str) -> Read<(u8, u8)> {
        let Some((process, stage)) = text.split_once('@') else {
            return self.fail_at(text, format!("`{text}`: expected PROCESS@STAGE"));
        };
        let stage =
            if stage == "*" { Some(JOINT) } else { stage.parse::<u8>().ok().filter(|s| *s < 250) };
        match stage {
            Some(s) => Ok((self.process(process)?, s)),
            None => self.fail_at(text, format!("`{text}`: expected a stage below 250, or `*`")),
        }
    }
    fn cell(&self, text: &str) -> Read<CertificateCell> {
        let (look, rest) = match text.split_once('.') {
            Some((view, rest)) => (Some(self.view(view)?), rest),
            None => (None, text),
        };
        let (name, args) = match rest.split_once('[') {
            Some((name, args)) => match args.strip_suffix(']') {
                Some(args) => (
                    name,
                    args.split(',').map(|a| self.process(a.trim())).collect::<Read<Vec<u8>>>()?,
                ),
                None => return self.fail_at(text, format!("`{text}`: expected `]`")),
            },
            None => (rest, Vec::new()),
        };
        let Some(&symbol) = self.symbols.get(name) else {
            return self.fail_at(name, format!("`{name}` is not a symbol of the system"));
        };
        // Without buffers, and of a plain symbol, all processes see the same value.
        let is_memory = self.tso && self.system.symbols[symbol].kind == SymbolKind::Weak;
        if look.is_some() && !is_memory {
            return self.fail_at(
                text,
                format!(
                    "`{text}`: under `memory tso` a weak symbol has views, no other cell has one"
                ),
            );
        }
        let arity = self.system.symbols[symbol].arity;
        if arity != args.len() {
            return self.fail_at(text, format!("`{text}`: `{name}` has {arity} indices"));
        }
        Ok(CertificateCell::new(symbol, args, look))
    }
    fn point(&self, text: &str) -> Read<Point> {
        if let Ok(p) = self.process(text) {
            return Ok(Point::Named(p));
        }
        let cell = self.cell(text)?;
        if self.kinds[cell.symbol()] != ValueKind::Process {
            return self.fail_at(text, format!("`{text}` is not a cell of processes"));
        }
        Ok(Point::Held(cell))
    }
    fn fact(&self, text: &str) -> Read<Fact> {
        let words: Vec<&str> = text.split_whitespace().collect();
        match words.as_slice() {
            [word @ ("same" | "differ"), a, b] => {
                let (a, b) = (self.cell(a)?, self.cell(b)?);
                if self.kinds[a.symbol()] != self.kinds[b.symbol()]
                    || matches!(
                        self.kinds[a.symbol()],
                        ValueKind::Integer | ValueKind::Real | ValueKind::Word(_)
                    )
                {
                    return self.fail("expected cells of the same non-numeric sort");
                }
                Ok(Fact::Twins(a, b, *word == "same"))
            }
            [word @ ("before" | "upto"), a, b] => {
                Ok(Fact::Ahead(self.point(a)?, self.point(b)?, *word == "before"))
            }
            ["fence", view] => {
                if !self.tso {
                    return self.fail("only `memory tso` has fences");
                }
                let (p, s) = self.view(view)?;
                Ok(Fact::Fence(p, s))
            }
            ["sum", rest @ ..] => self.sum(rest),
            ["word", rest @ ..] => self.words(rest),
            _ => self.membership(text),
        }
    }
    fn membership(&self, text: &str) -> Read<Fact> {
        let parts = text
            .split_once(" in ")
            .and_then(|(c, s)| Some((c, s.trim().strip_prefix('{')?.strip_suffix('}')?)));
        let Some((cell, set)) = parts else {
            return self.fail_at(text, format!("`{text}`: expected a fact"));
        };
        let cell = self.cell(cell.trim())?;
        let mut values = 0;
        for v in set.split(',').map(str::trim).filter(|v| !v.is_empty()) {
            match self.kinds[cell.symbol()] {
                ValueKind::Process if v == "other" => values |= singleton(OTHER),
                ValueKind::Process => values |= singleton(u32::from(self.process(v)?)),
                ValueKind::Values(_) => {
                    let of = self.system.type_of(self.system.symbols[cell.symbol()].sort);
                    match of.constructors.iter().position(|c| self.system.constructor(*c).name == v)
                    {
                        Some(i) => values |= singleton(narrow::index(i)),
                        None => {
                            return self
                                .fail_at(v, format!("`{v}` is not a value of type `{}`", of.name));
                        }
                    }
                }
                _ => {
                    return self.fail_at(text, format!("`{text}`: the cell has no list of values"));
                }
            }
        }
        Ok(Fact::Among(cell, values))
    }
    fn sum(&self, words: &[&str]) -> Read<Fact> {
        let number = |w: &str| {
            w.parse::<BigRational>()
                .or_else(|_| self.fail_at(w, format!("`{w}`: expected a number")))
        };
        let (mut terms, mut rest): (Vec<(CertificateCell, BigRational)>, _) = (Vec::new(), words);
        while let [factor, cell, "+", tail @ ..] = rest {
            let cell = self.cell(cell)?;
            if !matches!(self.kinds[cell.symbol()], ValueKind::Integer | ValueKind::Real) {
                return self.fail("the cells of a sum must be numeric");
            }
            let factor = number(factor)?;
            if factor.is_zero() || terms.iter().any(|t| t.0 == cell) {
                return self
                    .fail("a sum must contain each cell once, with a factor that is not zero");
            }
            terms.push((cell, factor));
            rest = tail;
        }
        let [constant, sign, "0"] = rest else {
            return self.fail("expected FACTOR CELL + .. + CONSTANT SIGN 0");
        };
        let sign = match *sign {
            "<=" => Sign::AtMost,
            "<" => Sign::Less,
            "=" => Sign::Zero,
            "!=" => Sign::NotZero,
            other => return self.fail_at(other, format!("`{other}`: expected <=, <, = or !=")),
        };
        match CellSum::of(&terms, &number(constant)?, sign) {
            Some(sum) => Ok(Fact::Sum(sum)),
            None => self.fail("a number in the sum needs more than 60 bits"),
        }
    }
}

impl CertificateReader<'_> {
    /// Parses a comparison of words after its keyword.
    fn words(&self, words: &[&str]) -> Read<Fact> {
        let [bits, rest @ ..] = words else { return self.fail("expected a number of bits") };
        let bits = match bits.parse::<u32>() {
            Ok(bits) if (1..=32).contains(&bits) => bits,
            _ => {
                return self
                    .fail_at(bits, format!("`{bits}`: expected a number of bits from 1 to 32"));
            }
        };
        let signs =
            [("<=", Sign::AtMost), ("<", Sign::Less), ("=", Sign::Zero), ("!=", Sign::NotZero)];
        let sign = |w: &&str| signs.iter().find(|s| s.0 == *w).map(|s| s.1);
        let Some((at, sign)) = rest.iter().enumerate().find_map(|(i, w)| Some((i, sign(w)?)))
        else {
            return self.fail("expected <=, <, = or !=");
        };
        let (left, right) = (self.part(&rest[..at], bits)?, self.part(&rest[at + 1..], bits)?);
        Ok(Fact::Words(Box::new(Words::new(bits, &left, sign, &right))))
    }
    /// Parses a counting invariant after its keyword.
    fn count(&self, text: &str) -> Read<Count> {
        let parts = text.split_once(" in {").and_then(|(name, rest)| {
            let (values, sum) = rest.split_once("} = word ")?;
            Some((name.trim(), values, sum.split_once(' ')?))
        });
        let Some((name, values, (bits, sum))) = parts else {
            return self
                .fail_at(text, format!("`{text}`: expected ARRAY in {{VALUES}} = word BITS SUM"));
        };
        let Some(&symbol) = self.symbols.get(name) else {
            return self.fail_at(name, format!("`{name}` is not a symbol of the system"));
        };
        let own = &self.system.symbols[symbol];
        let plain = own.arity == 1 && !(self.tso && own.kind == SymbolKind::Weak);
        if !plain || !matches!(self.kinds[symbol], ValueKind::Values(_)) {
            return self.fail_at(name, format!(
                "`{name}`: expected an array of an enumeration by processes that is not in memory"
            ));
        }
        let of = self.system.type_of(own.sort);
        let mut set = 0;
        for v in values.split(',').map(str::trim).filter(|v| !v.is_empty()) {
            let at = of.constructors.iter().position(|c| self.system.constructor(*c).name == v);
            let Some(at) = at else {
                return self.fail_at(v, format!("`{v}` is not a value of type `{}`", of.name));
            };
            set |= singleton(narrow::index(at));
        }
        let bits = match bits.parse::<u32>() {
            Ok(bits) if (1..=32).contains(&bits) => bits,
            _ => {
                return self
                    .fail_at(bits, format!("`{bits}`: expected a number of bits from 1 to 32"));
            }
        };
        let sum = self.part(&sum.split_whitespace().collect::<Vec<_>>(), bits)?;
        if sum.terms.iter().any(|(c, _)| c.args().next().is_some() || c.look.is_some()) {
            return self.fail("the sum must be of variables in memory now");
        }
        let limit = (1u64 << bits) - 1;
        let most = self.system.processes.map_or(limit, |n| limit.min(n.into()));
        Ok(Count { symbol, values: set, bits, sum, most })
    }
    /// Parses a sum of words.
    fn part(&self, words: &[&str], bits: u32) -> Read<WordSum> {
        let number = |w: &str| match w.parse::<i128>() {
            Ok(n) if n.unsigned_abs() <= 1 << 32 => Ok(n),
            _ => self.fail_at(w, format!("`{w}`: expected a number of at most 33 bits")),
        };
        let (mut terms, mut rest) = (Vec::new(), words);
        while let [factor, cell, "+", tail @ ..] = rest {
            let cell = self.cell(cell)?;
            match self.kinds[cell.symbol()] {
                ValueKind::Word(own) if own >= bits => {}
                _ => return self.fail("the cells of a sum must be words with these bits"),
            }
            terms.push((cell, number(factor)?));
            rest = tail;
        }
        let [constant] = rest else {
            return self.fail("expected FACTOR CELL + .. + CONSTANT on both sides");
        };
        Ok(WordSum::new(terms, number(constant)?, bits))
    }
}

/// Parses the memory model of a certificate; true for total store order.
///
/// # Errors
///
/// One of the first two lines is malformed.
pub fn memory(text: &str) -> Read<bool> {
    let mut lines = text.lines().zip(1..);
    let mut expect = |what: &str| {
        lines.next().ok_or_else(|| {
            let message = format!("unexpected end of the file: expected {what}");
            Box::new(Diagnostic::in_line(Stage::Syntax, 1, 1, "", message))
        })
    };
    let wrong = |(line, number): (&str, u64), expected: &str| {
        let part = line.trim();
        let message = format!("`{part}`: expected {expected}");
        Box::new(Diagnostic::in_part(Stage::Syntax, number, line, part, message))
    };
    let header = expect("the header")?;
    if header.0.trim() != crate::certificate::HEADER {
        return Err(wrong(header, &format!("`{}`", crate::certificate::HEADER)));
    }
    let memory = expect("the memory model")?;
    match memory.0.trim() {
        "memory sc" => Ok(false),
        "memory tso" => Ok(true),
        _ => Err(wrong(memory, "`memory sc` or `memory tso`")),
    }
}

/// Parses a certificate for the system.
///
/// # Errors
///
/// The first malformed line.
pub fn read(system: &System, kinds: &[ValueKind], text: &str) -> Read<Certificate> {
    let symbols = system.symbols.iter().enumerate().map(|(i, s)| (s.name.as_str(), i)).collect();
    let tso = memory(text)?;
    let mut reader = CertificateReader { system, kinds, symbols, line: (0, ""), named: 0, tso };
    let mut cubes: Vec<ExcludedCube> = Vec::new();
    let mut counts = Vec::new();
    for (i, l) in text.lines().enumerate().skip(2) {
        reader.line = (i + 1, l);
        let l = l.trim();
        if l.is_empty() {
            continue;
        }
        if let Some(count) = l.strip_prefix("count ") {
            if !cubes.is_empty() {
                return reader.fail("expected `count` before all cubes");
            }
            counts.push(reader.count(count)?);
            continue;
        }
        if let Some(names) = l.strip_prefix("never") {
            let count = names.split_whitespace().count();
            let fixed = system.fixed as usize;
            let expected =
                names.split_whitespace().enumerate().all(|(i, n)| n == format!("p{}", i + 1));
            if !expected || fixed + count > 60 {
                return reader.fail_at(l, format!("`{l}`: expected `never p1 p2 ..`"));
            }
            reader.named = fixed + count;
            cubes.push(ExcludedCube { named: reader.named, facts: Vec::new() });
            continue;
        }
        let fact = reader.fact(l)?;
        match cubes.last_mut() {
            Some(c) => c.facts.push(fact),
            None => return reader.fail("expected `never` first"),
        }
    }
    Ok(Certificate { tso, counts, cubes })
}
