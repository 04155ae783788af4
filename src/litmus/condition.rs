//! Conditions on outcomes: `locations`, `filter`, `exists`, `~exists`, `forall`, with propositions over registers and memory.
//!
//! In: tokens, and someone who knows the registers. Out: [`Observed`] things and [`Prop`]s over their numbers. As the herd tools have it, `not` binds closest,
//! then `=>` (to the right), `/\`, `\/`. Conditions nest at most [`DEPTH`] deep, which bounds all recursion over them.

use crate::code::{Register, low, signed};
use crate::init::{self, Value};
use crate::layout::{Layout, Type};
use crate::lexer::{Cursor, Kind};
use mu_base::{Diagnostic, Stage};

/// How deep parentheses, negations and expressions may nest.
pub const DEPTH: u32 = 400;

/// What is asked of the outcomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Quantifier {
    /// Some outcome satisfies the proposition.
    Exists,
    /// None does.
    NotExists,
    /// All do.
    Forall,
}

impl Quantifier {
    /// The word in a file.
    pub fn word(self) -> &'static str {
        match self {
            Quantifier::Exists => "exists",
            Quantifier::NotExists => "~exists",
            Quantifier::Forall => "forall",
        }
    }
    /// What the herd tools call such a test.
    pub fn kind(self) -> &'static str {
        match self {
            Quantifier::Exists => "Allowed",
            Quantifier::NotExists => "Forbidden",
            Quantifier::Forall => "Required",
        }
    }
    /// Whether it holds, given how many outcomes satisfy the proposition and how many do not.
    pub fn holds(self, positive: u64, negative: u64) -> bool {
        match self {
            Quantifier::Exists => positive > 0,
            Quantifier::NotExists => positive == 0,
            Quantifier::Forall => negative == 0,
        }
    }
}

/// A place whose last value is observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// A register of a thread.
    Register(u32, Register),
    /// Bytes of a variable from an offset on: an element, or all of it if it is no array.
    Memory(u32, u32),
}

/// Something observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// Where.
    pub place: Place,
    /// Its type; of memory without a declared type, known when threads have run.
    pub shown: Option<Type>,
    /// Its name.
    pub text: String,
}

impl Observed {
    /// The number that a value is.
    pub fn number(&self, value: u64) -> i128 {
        match self.shown {
            Some(Type { width, signed: true }) => i128::from(signed(value, u32::from(width) * 8)),
            Some(Type { width, .. }) => i128::from(low(value, u32::from(width) * 8)),
            None => i128::from(value as i64),
        }
    }
    fn bits(&self, value: u64) -> u64 {
        low(value, self.shown.map_or(64, |t| u32::from(t.width) * 8))
    }
    /// The text of a value: a number, or a variable if it is an address.
    pub fn value_text(&self, value: u64, layout: &Layout) -> String {
        layout.address_text(self.bits(value)).unwrap_or_else(|| self.number(value).to_string())
    }
}

/// A proposition over what is observed, by number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prop {
    /// Always.
    True,
    /// Never.
    False,
    /// It has this value.
    Is(usize, u64),
    /// They have the same value.
    Same(usize, usize),
    /// Not.
    Not(Box<Prop>),
    /// All of them.
    And(Vec<Prop>),
    /// One of them.
    Or(Vec<Prop>),
    /// If the first then the second.
    Implies(Box<Prop>, Box<Prop>),
}

impl Prop {
    /// Whether it holds of an outcome: values in the order of `observed`.
    pub fn holds(&self, observed: &[Observed], outcome: &[u64]) -> bool {
        let of = |p: &Prop| p.holds(observed, outcome);
        match self {
            Prop::True => true,
            Prop::False => false,
            Prop::Is(i, value) => observed[*i].bits(outcome[*i]) == observed[*i].bits(*value),
            Prop::Same(i, j) => observed[*i].number(outcome[*i]) == observed[*j].number(outcome[*j]),
            Prop::Not(p) => !of(p),
            Prop::And(list) => list.iter().all(of),
            Prop::Or(list) => list.iter().any(of),
            Prop::Implies(a, b) => !of(a) || of(b),
        }
    }
    /// Its text, as the herd tools write it.
    pub fn text(&self, observed: &[Observed], layout: &Layout) -> String {
        let mut out = String::new();
        self.write(observed, layout, 0, &mut out);
        out
    }
    fn write(&self, observed: &[Observed], layout: &Layout, level: u8, out: &mut String) {
        let joined = |list: &[Prop], sign: &str, own: u8, out: &mut String| {
            if own < level {
                out.push('(');
            }
            for (i, p) in list.iter().enumerate() {
                if i > 0 {
                    out.push_str(sign);
                }
                p.write(observed, layout, own + 1, out);
            }
            if own < level {
                out.push(')');
            }
        };
        match self {
            Prop::True => out.push_str("true"),
            Prop::False => out.push_str("false"),
            Prop::Is(i, value) => {
                let text = layout.address_text(*value).unwrap_or_else(|| (*value as i64).to_string());
                out.push_str(&format!("{}={text}", observed[*i].text));
            }
            Prop::Same(i, j) => out.push_str(&format!("{}={}", observed[*i].text, observed[*j].text)),
            Prop::Not(p) => {
                out.push_str("not (");
                p.write(observed, layout, 0, out);
                out.push(')');
            }
            Prop::And(list) => joined(list, " /\\ ", 2, out),
            Prop::Or(list) => joined(list, " \\/ ", 1, out),
            Prop::Implies(a, b) => {
                let open = level > 0;
                out.push_str(if open { "(" } else { "" });
                a.write(observed, layout, 3, out);
                out.push_str(" => ");
                b.write(observed, layout, 3, out);
                out.push_str(if open { ")" } else { "" });
            }
        }
    }
    /// Puts other numbers for what is observed.
    fn renumber(&mut self, place: &[usize]) {
        match self {
            Prop::True | Prop::False => {}
            Prop::Is(i, _) => *i = place[*i],
            Prop::Same(i, j) => (*i, *j) = (place[*i], place[*j]),
            Prop::Not(p) => p.renumber(place),
            Prop::And(list) | Prop::Or(list) => list.iter_mut().for_each(|p| p.renumber(place)),
            Prop::Implies(a, b) => {
                a.renumber(place);
                b.renumber(place);
            }
        }
    }
}

/// Who knows the registers of a condition.
pub trait Registers {
    /// The register of a name, with its type and its name as shown.
    fn register(&mut self, thread: u32, name: &crate::lexer::Token<'_>) -> Result<(Register, Option<Type>, String), Diagnostic>;
}

/// What is asked of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// What is observed, in the order in which it is shown.
    pub observed: Vec<Observed>,
    /// Outcomes for which it does not hold do not count.
    pub filter: Option<Prop>,
    /// Of which outcomes the proposition is asked.
    pub quantifier: Quantifier,
    /// What is asked.
    pub prop: Prop,
}

struct Reader<'r> {
    registers: &'r mut dyn Registers,
    layout: &'r mut Layout,
    observed: Vec<Observed>,
}

/// Takes what is after the code.
pub fn question(cursor: &mut Cursor<'_, '_>, registers: &mut dyn Registers, layout: &mut Layout) -> Result<Question, Diagnostic> {
    let mut reader = Reader { registers, layout, observed: Vec::new() };
    let (filter, quantifier, prop) = reader.constraints(cursor)?;
    let mut question = Question { observed: reader.observed, filter, quantifier, prop };
    let mut order: Vec<usize> = (0..question.observed.len()).collect();
    let key = |i: usize| {
        let o = &question.observed[i];
        match o.place {
            Place::Register(t, _) => (0, t, o.text.clone()),
            Place::Memory(..) => (1, 0, o.text.clone()),
        }
    };
    order.sort_by_key(|&i| key(i));
    let mut place = vec![0; order.len()];
    for (new, &old) in order.iter().enumerate() {
        place[old] = new;
    }
    question.observed = order.iter().map(|&i| question.observed[i].clone()).collect();
    question.prop.renumber(&place);
    if let Some(filter) = &mut question.filter {
        filter.renumber(&place);
    }
    Ok(question)
}

/// Whether `~exists` comes next, or `not exists`.
pub fn negated(cursor: &Cursor<'_, '_>) -> bool {
    (cursor.is("~") || cursor.is_word("not")) && cursor.ahead(1).text.eq_ignore_ascii_case("exists")
}

fn deeper(cursor: &Cursor<'_, '_>, depth: u32) -> Result<u32, Diagnostic> {
    if depth >= DEPTH {
        return Err(Diagnostic::at(Stage::Syntax, cursor.peek().span, format!("a condition that nests more than {DEPTH} deep")));
    }
    Ok(depth + 1)
}

impl Reader<'_> {
    fn constraints(&mut self, cursor: &mut Cursor<'_, '_>) -> Result<(Option<Prop>, Quantifier, Prop), Diagnostic> {
        if cursor.eat_word("locations") {
            cursor.expect("[")?;
            while !cursor.eat("]") {
                self.location(cursor)?;
                // Types are for other tools.
                while cursor.peek().kind == Kind::Name || cursor.is("*") {
                    cursor.take();
                }
                if !cursor.eat(";") && !cursor.is("]") {
                    return Err(cursor.unexpected("`;` or `]`"));
                }
            }
        }
        let filter = if cursor.eat_word("filter") { Some(self.proposition(cursor, 0)?) } else { None };
        let quantifier = if cursor.at_end() {
            return Ok((filter, Quantifier::Forall, Prop::True));
        } else if cursor.eat_word("exists") || cursor.eat_word("final") || cursor.is("(") {
            Quantifier::Exists
        } else if cursor.eat_word("forall") {
            Quantifier::Forall
        } else if negated(cursor) {
            cursor.take();
            cursor.take();
            Quantifier::NotExists
        } else if cursor.is_word("cases") || cursor.is_word("observed") {
            return Err(Diagnostic::at(Stage::Unsupported, cursor.peek().span, format!("the condition `{}`", cursor.peek().text)));
        } else {
            return Err(cursor.unexpected("`exists`, `~exists` or `forall`"));
        };
        let prop = self.proposition(cursor, 0)?;
        cursor.eat(";");
        // `with model: quantifier` tells what some models are expected to say; nothing to check here.
        if !cursor.at_end() && !cursor.is_word("with") {
            return Err(cursor.unexpected("the end of the test"));
        }
        Ok((filter, quantifier, prop))
    }
    fn proposition(&mut self, cursor: &mut Cursor<'_, '_>, depth: u32) -> Result<Prop, Diagnostic> {
        let mut list = vec![self.conjunction(cursor, depth)?];
        while cursor.eat("\\/") || cursor.eat("||") {
            list.push(self.conjunction(cursor, depth)?);
        }
        Ok(if list.len() == 1 { list.remove(0) } else { Prop::Or(list) })
    }
    fn conjunction(&mut self, cursor: &mut Cursor<'_, '_>, depth: u32) -> Result<Prop, Diagnostic> {
        let mut list = vec![self.implication(cursor, depth)?];
        while cursor.eat("/\\") || cursor.eat("&&") {
            list.push(self.implication(cursor, depth)?);
        }
        Ok(if list.len() == 1 { list.remove(0) } else { Prop::And(list) })
    }
    fn implication(&mut self, cursor: &mut Cursor<'_, '_>, depth: u32) -> Result<Prop, Diagnostic> {
        let left = self.atom(cursor, depth)?;
        if cursor.eat("=>") {
            let right = self.implication(cursor, deeper(cursor, depth)?)?;
            return Ok(Prop::Implies(Box::new(left), Box::new(right)));
        }
        Ok(left)
    }
    fn atom(&mut self, cursor: &mut Cursor<'_, '_>, depth: u32) -> Result<Prop, Diagnostic> {
        if cursor.eat("(") {
            let inner = self.proposition(cursor, deeper(cursor, depth)?)?;
            cursor.expect(")")?;
            return Ok(inner);
        }
        if cursor.eat("~") || cursor.eat("!") || cursor.is_word("not") {
            cursor.eat_word("not");
            return Ok(Prop::Not(Box::new(self.atom(cursor, deeper(cursor, depth)?)?)));
        }
        if cursor.ahead(1).text != "=" && cursor.ahead(1).text != "!=" {
            if cursor.eat_word("true") {
                return Ok(Prop::True);
            }
            if cursor.eat_word("false") {
                return Ok(Prop::False);
            }
        }
        let left = self.location(cursor)?;
        let negated = cursor.eat("!=") || cursor.eat("<>");
        if !negated && !cursor.eat("=") && !cursor.eat("==") {
            return Err(cursor.unexpected("`=`"));
        }
        // On the right a location is in brackets, starred, or a register; a bare name is an address.
        let register = cursor.peek().kind == Kind::Number && cursor.ahead(1).text == ":";
        let prop = if cursor.is("[") || cursor.is("*") || register {
            Prop::Same(left, self.location(cursor)?)
        } else {
            Prop::Is(left, init::value(cursor)?.resolve(self.layout)?)
        };
        Ok(if negated { Prop::Not(Box::new(prop)) } else { prop })
    }
    fn add(&mut self, o: Observed) -> usize {
        self.observed.iter().position(|p| p.place == o.place).unwrap_or_else(|| {
            self.observed.push(o);
            self.observed.len() - 1
        })
    }
    fn location(&mut self, cursor: &mut Cursor<'_, '_>) -> Result<usize, Diagnostic> {
        if cursor.peek().kind == Kind::Number && cursor.ahead(1).text == ":" {
            let thread = cursor.number()? as u32;
            cursor.expect(":")?;
            cursor.eat("%");
            let name = cursor.name("a register")?;
            let (register, shown, text) = self.registers.register(thread, &name)?;
            return Ok(self.add(Observed { place: Place::Register(thread, register), shown, text: format!("{thread}:{text}") }));
        }
        if cursor.is_word("fault") && cursor.ahead(1).text == "(" {
            return Err(Diagnostic::at(Stage::Unsupported, cursor.peek().span, "a condition on faults"));
        }
        let bracketed = cursor.eat("[") || {
            cursor.eat("*");
            false
        };
        let name = cursor.name("a register or a variable")?;
        let index = if cursor.eat("[") {
            let i = cursor.number()?;
            cursor.expect("]")?;
            Some(i)
        } else {
            None
        };
        if bracketed {
            cursor.expect("]")?;
        }
        let v = self.layout.variable(name.text);
        // It is an address that is known: elements are.
        Value::Address(name, index.unwrap_or(0)).resolve(self.layout)?;
        let variable = &self.layout.variables()[v as usize];
        if variable.elements.is_some() && index.is_none() {
            return Err(
                Diagnostic::at(Stage::Unsupported, name.span, format!("the array `{}` as a whole", name.text)).note("name its elements")
            );
        }
        let text = index.map_or_else(|| format!("[{}]", name.text), |i| format!("{}[{i}]", name.text));
        let offset = index.unwrap_or(0) as u32 * variable.element();
        let shown = variable.declared;
        Ok(self.add(Observed { place: Place::Memory(v, offset), shown, text }))
    }
}
