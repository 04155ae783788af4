//! Conditions on outcomes: `exists`, `~exists` and `forall` with a proposition over registers and memory.
//!
//! In: tokens, and someone who knows the names. Out: a [`Prop`] over the numbers of what is observed; its truth of an outcome; its text.
//! As the herd tools have it, `not` binds closest, then `=>` (to the right), `/\`, `\/`.
//! Conditions nest at most [`DEPTH`] deep, which bounds all recursion over them.

use super::lexer::{Cursor, Kind};
use super::outcomes::Observable;
use super::variables::{Type, Variables};
use mu_base::{Diagnostic, Stage};

/// How deep parentheses and negations may nest.
pub const DEPTH: u32 = 500;

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

/// Something observed: which bits, how shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The register or cell.
    pub what: Observable,
    /// From which bit on.
    pub shift: u32,
    /// How many bits, and whether they have a sign.
    pub shown: Type,
    /// Its name.
    pub text: String,
}

impl Observed {
    /// The bits of it.
    pub fn bits(&self, value: u64) -> u64 {
        value >> self.shift & self.shown.width.mask()
    }
    /// The number that is shown.
    pub fn number(&self, value: u64) -> i128 {
        let bits = self.bits(value);
        if self.shown.signed { i128::from(self.shown.width.signed(bits)) } else { i128::from(bits) }
    }
    /// The text of a value: a number, or a variable if it is an address.
    pub fn value_text(&self, value: u64, variables: &Variables) -> String {
        variables.address_text(self.bits(value)).unwrap_or_else(|| self.number(value).to_string())
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
    Is(usize, i64),
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
            Prop::Is(i, value) => observed[*i].bits(outcome[*i]) == *value as u64 & observed[*i].shown.width.mask(),
            Prop::Same(i, j) => observed[*i].number(outcome[*i]) == observed[*j].number(outcome[*j]),
            Prop::Not(p) => !of(p),
            Prop::And(list) => list.iter().all(of),
            Prop::Or(list) => list.iter().any(of),
            Prop::Implies(a, b) => !of(a) || of(b),
        }
    }
    /// Its text, as the herd tools write it.
    pub fn text(&self, observed: &[Observed], variables: &Variables) -> String {
        let mut out = String::new();
        self.write(observed, variables, 0, &mut out);
        out
    }
    fn write(&self, observed: &[Observed], variables: &Variables, level: u8, out: &mut String) {
        let joined = |list: &[Prop], sign: &str, own: u8, out: &mut String| {
            if own < level {
                out.push('(');
            }
            for (i, p) in list.iter().enumerate() {
                if i > 0 {
                    out.push_str(sign);
                }
                p.write(observed, variables, own + 1, out);
            }
            if own < level {
                out.push(')');
            }
        };
        match self {
            Prop::True => out.push_str("true"),
            Prop::False => out.push_str("false"),
            Prop::Is(i, value) => {
                let text = variables.address_text(*value as u64).unwrap_or_else(|| value.to_string());
                out.push_str(&format!("{}={text}", observed[*i].text));
            }
            Prop::Same(i, j) => out.push_str(&format!("{}={}", observed[*i].text, observed[*j].text)),
            Prop::Not(p) => {
                out.push_str("not (");
                p.write(observed, variables, 0, out);
                out.push(')');
            }
            Prop::And(list) => joined(list, " /\\ ", 2, out),
            Prop::Or(list) => joined(list, " \\/ ", 1, out),
            Prop::Implies(a, b) => {
                if level > 0 {
                    out.push('(');
                }
                a.write(observed, variables, 3, out);
                out.push_str(" => ");
                b.write(observed, variables, 3, out);
                if level > 0 {
                    out.push(')');
                }
            }
        }
    }
}

/// Who knows the names of a condition.
pub(super) trait Names {
    /// Takes a location and gives the number of what is observed.
    fn location(&mut self, cursor: &mut Cursor<'_, '_>) -> Result<usize, Diagnostic>;
    /// The value that a name stands for, an address.
    fn value(&mut self, cursor: &mut Cursor<'_, '_>) -> Result<i64, Diagnostic>;
}

/// Takes what follows `observed`: outcomes separated by `and`, each a list of values that end with `;`.
pub(super) fn observed(cursor: &mut Cursor<'_, '_>, names: &mut dyn Names) -> Result<Prop, Diagnostic> {
    let mut outcomes = Vec::new();
    loop {
        let mut values = Vec::new();
        while !cursor.at_end() && !cursor.is_word("and") {
            values.push(atom(cursor, names, 0)?);
            if !cursor.eat(";") {
                break;
            }
        }
        outcomes.push(Prop::And(values));
        if !cursor.eat_word("and") {
            return Ok(Prop::Or(outcomes));
        }
    }
}

/// Takes a proposition.
pub(super) fn proposition(cursor: &mut Cursor<'_, '_>, names: &mut dyn Names, depth: u32) -> Result<Prop, Diagnostic> {
    let mut list = vec![conjunction(cursor, names, depth)?];
    while cursor.eat("\\/") || cursor.eat("||") {
        list.push(conjunction(cursor, names, depth)?);
    }
    Ok(if list.len() == 1 { list.remove(0) } else { Prop::Or(list) })
}

fn deeper(cursor: &Cursor<'_, '_>, depth: u32) -> Result<u32, Diagnostic> {
    if depth >= DEPTH {
        return Err(Diagnostic::at(Stage::Syntax, cursor.peek().span, format!("a condition that nests more than {DEPTH} deep")));
    }
    Ok(depth + 1)
}

fn conjunction(cursor: &mut Cursor<'_, '_>, names: &mut dyn Names, depth: u32) -> Result<Prop, Diagnostic> {
    let mut list = vec![implication(cursor, names, depth)?];
    while cursor.eat("/\\") || cursor.eat("&&") {
        list.push(implication(cursor, names, depth)?);
    }
    Ok(if list.len() == 1 { list.remove(0) } else { Prop::And(list) })
}

fn implication(cursor: &mut Cursor<'_, '_>, names: &mut dyn Names, depth: u32) -> Result<Prop, Diagnostic> {
    let left = atom(cursor, names, depth)?;
    if cursor.eat("=>") {
        let right = implication(cursor, names, deeper(cursor, depth)?)?;
        return Ok(Prop::Implies(Box::new(left), Box::new(right)));
    }
    Ok(left)
}

fn atom(cursor: &mut Cursor<'_, '_>, names: &mut dyn Names, depth: u32) -> Result<Prop, Diagnostic> {
    if cursor.eat("(") {
        let inner = proposition(cursor, names, deeper(cursor, depth)?)?;
        cursor.expect(")")?;
        return Ok(inner);
    }
    if cursor.eat("~") || cursor.eat("!") || cursor.is_word("not") {
        cursor.eat_word("not");
        return Ok(Prop::Not(Box::new(atom(cursor, names, deeper(cursor, depth)?)?)));
    }
    if cursor.ahead(1).text != "=" && cursor.ahead(1).text != "!=" {
        if cursor.eat_word("true") {
            return Ok(Prop::True);
        }
        if cursor.eat_word("false") {
            return Ok(Prop::False);
        }
    }
    let left = names.location(cursor)?;
    let negated = cursor.eat("!=") || cursor.eat("<>");
    if !negated && !cursor.eat("=") && !cursor.eat("==") {
        return Err(cursor.unexpected("`=`"));
    }
    // On the right a location is in brackets, starred, or a register; a bare name is an address.
    let register = matches!(cursor.peek().kind, Kind::Number | Kind::Name) && cursor.ahead(1).text == ":";
    let prop = if cursor.is("[") || cursor.is("*") || register {
        Prop::Same(left, names.location(cursor)?)
    } else {
        Prop::Is(left, names.value(cursor)?)
    };
    Ok(if negated { Prop::Not(Box::new(prop)) } else { prop })
}
