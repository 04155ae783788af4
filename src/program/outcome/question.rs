//! Questions about outcomes: `locations`, `filter`, `exists`, `~exists`, `forall`, with
//! propositions over registers and memory.
//!
//! Input: tokens, and a resolver of names ([`NameResolver`]). Output: a [`Question`]. As in the
//! herd tools, `not` binds most tightly, then `=>` (right-associative), `/\`, `\/`. Invariant:
//! conditions are nested at most [`DEPTH`] deep, which bounds all recursion over them.

use mu_base::words::{Cursor, TokenKind};
use mu_base::{Diagnostic, Stage};

/// Largest nesting depth of parentheses, negations and expressions; deeper ones are rejected.
pub const DEPTH: u32 = 400;

/// The quantifier over outcomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OutcomeQuantifier {
    /// Some outcome satisfies the proposition.
    Exists,
    /// No outcome satisfies it.
    NotExists,
    /// All outcomes satisfy it.
    Forall,
}

impl OutcomeQuantifier {
    /// Returns the keyword.
    pub fn word(self) -> &'static str {
        match self {
            OutcomeQuantifier::Exists => "exists",
            OutcomeQuantifier::NotExists => "~exists",
            OutcomeQuantifier::Forall => "forall",
        }
    }
    /// Returns the herd tools' name of the kind of test.
    pub fn kind(self) -> &'static str {
        match self {
            OutcomeQuantifier::Exists => "Allowed",
            OutcomeQuantifier::NotExists => "Forbidden",
            OutcomeQuantifier::Forall => "Required",
        }
    }
    /// True if it holds, given the numbers of outcomes that satisfy and violate the proposition.
    pub fn holds(self, positive: u64, negative: u64) -> bool {
        match self {
            OutcomeQuantifier::Exists => positive > 0,
            OutcomeQuantifier::NotExists => positive == 0,
            OutcomeQuantifier::Forall => negative == 0,
        }
    }
    /// True if further outcomes cannot change the answer.
    pub fn is_settled(self, positive: u64, negative: u64) -> bool {
        match self {
            OutcomeQuantifier::Exists | OutcomeQuantifier::NotExists => positive > 0,
            OutcomeQuantifier::Forall => negative > 0,
        }
    }
}

/// An observed register or location with a final value.
pub trait Observed: Clone {
    /// True if both are the same observation and need only one column.
    fn is(&self, other: &Self) -> bool;
    /// Returns the observed bits of a value.
    fn bits(&self, value: u64) -> u64;
    /// True if the observed bits equal those of a number in a condition.
    fn equals(&self, value: u64, number: u64) -> bool {
        self.bits(value) == self.bits(number)
    }
    /// Returns the number that a value represents.
    fn number(&self, value: u64) -> i128;
    /// True if a value of this observation equals one of another.
    fn values_agree(&self, value: u64, other: &Self, of_other: u64) -> bool {
        self.number(value) == other.number(of_other)
    }
    /// Returns the name.
    fn name(&self) -> &str;
    /// Returns the thread of a register; `None` for memory.
    fn thread(&self) -> Option<u32>;
    /// Prints a value: a number, or a variable if it is an address.
    fn text(&self, value: u64, addresses: &dyn Addresses) -> String {
        addresses.address_text(self.bits(value)).unwrap_or_else(|| self.number(value).to_string())
    }
}

/// Resolver of addresses to variables.
pub trait Addresses {
    /// Returns the variable or element at an address.
    fn address_text(&self, address: u64) -> Option<String>;
}

/// Resolver of the names of a condition.
pub trait NameResolver {
    /// The observations.
    type Observed: Observed;
    /// Parses a location.
    fn location(&mut self, cursor: &mut Cursor<'_, '_>) -> Result<Self::Observed, Diagnostic>;
    /// Parses the name of an array before `=` or `!=` and `{`, as its elements; `None` if there is
    /// none.
    fn elements(
        &mut self,
        _cursor: &mut Cursor<'_, '_>,
    ) -> Result<Option<Vec<Self::Observed>>, Diagnostic> {
        Ok(None)
    }
    /// Parses a location of a list, which need not be accessed by the test. An array is all its
    /// elements.
    fn listed_locations(
        &mut self,
        cursor: &mut Cursor<'_, '_>,
    ) -> Result<Vec<Self::Observed>, Diagnostic> {
        Ok(vec![self.location(cursor)?])
    }
    /// Parses a value: a number, or a name that denotes an address.
    fn value(&mut self, cursor: &mut Cursor<'_, '_>) -> Result<u64, Diagnostic>;
}

/// A proposition over observations, by index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prop {
    /// True.
    True,
    /// False.
    False,
    /// The observation has this value.
    Is(usize, u64),
    /// Two observations have the same value.
    Same(usize, usize),
    /// Negation.
    Not(Box<Prop>),
    /// Conjunction.
    And(Vec<Prop>),
    /// Disjunction.
    Or(Vec<Prop>),
    /// Implication.
    Implies(Box<Prop>, Box<Prop>),
}

impl Prop {
    /// Returns the values with which it compares observations, in the order of the text.
    pub fn constants(&self) -> Vec<u64> {
        match self {
            Prop::True | Prop::False | Prop::Same(..) => Vec::new(),
            Prop::Is(_, value) => vec![*value],
            Prop::Not(p) => p.constants(),
            Prop::And(all) | Prop::Or(all) => all.iter().flat_map(Prop::constants).collect(),
            Prop::Implies(p, q) => [p.constants(), q.constants()].concat(),
        }
    }
    /// True if it holds for an outcome: values in the order of `observed`.
    pub fn holds<O: Observed>(&self, observed: &[O], outcome: &[u64]) -> bool {
        let of = |p: &Prop| p.holds(observed, outcome);
        match self {
            Prop::True => true,
            Prop::False => false,
            Prop::Is(i, value) => observed[*i].equals(outcome[*i], *value),
            Prop::Same(i, j) => observed[*i].values_agree(outcome[*i], &observed[*j], outcome[*j]),
            Prop::Not(p) => !of(p),
            Prop::And(list) => list.iter().all(of),
            Prop::Or(list) => list.iter().any(of),
            Prop::Implies(a, b) => !of(a) || of(b),
        }
    }
    /// Prints it in the format of the herd tools.
    pub fn text<O: Observed>(&self, observed: &[O], addresses: &dyn Addresses) -> String {
        let mut out = String::new();
        self.write(observed, addresses, 0, &mut out);
        out
    }
    fn write<O: Observed>(
        &self,
        observed: &[O],
        addresses: &dyn Addresses,
        level: u8,
        out: &mut String,
    ) {
        let own = match self {
            Prop::Implies(..) => 0,
            Prop::Or(_) => 1,
            Prop::And(_) => 2,
            _ => level,
        };
        let open = own < level;
        let mut joined = |list: &[&Prop], sign: &str, inner: u8| {
            out.push_str(if open { "(" } else { "" });
            for (i, p) in list.iter().enumerate() {
                out.push_str(if i > 0 { sign } else { "" });
                p.write(observed, addresses, inner, out);
            }
            out.push_str(if open { ")" } else { "" });
        };
        match self {
            Prop::True => out.push_str("true"),
            Prop::False => out.push_str("false"),
            Prop::Is(i, value) => {
                let text =
                    addresses.address_text(*value).unwrap_or_else(|| (*value as i64).to_string());
                out.push_str(&format!("{}={text}", observed[*i].name()));
            }
            Prop::Same(i, j) => {
                out.push_str(&format!("{}={}", observed[*i].name(), observed[*j].name()))
            }
            Prop::Not(p) => {
                out.push_str("not (");
                p.write(observed, addresses, 0, out);
                out.push(')');
            }
            Prop::And(list) => joined(&list.iter().collect::<Vec<_>>(), " /\\ ", 3),
            Prop::Or(list) => joined(&list.iter().collect::<Vec<_>>(), " \\/ ", 2),
            Prop::Implies(a, b) => joined(&[a, b], " => ", 3),
        }
    }
    /// Marks the observations that it mentions.
    fn mark(&self, mentioned: &mut [bool]) {
        match self {
            Prop::True | Prop::False => {}
            Prop::Is(i, _) => mentioned[*i] = true,
            Prop::Same(i, j) => (mentioned[*i], mentioned[*j]) = (true, true),
            Prop::Not(p) => p.mark(mentioned),
            Prop::And(list) | Prop::Or(list) => list.iter().for_each(|p| p.mark(mentioned)),
            Prop::Implies(a, b) => {
                a.mark(mentioned);
                b.mark(mentioned);
            }
        }
    }
    /// Renumbers the observations.
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

/// The question of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question<O> {
    /// The observations: registers by thread, then memory by name.
    pub observed: Vec<O>,
    /// For each observation, true if `locations` or the proposition mentions it. The others, which
    /// only the filter mentions, are no part of an outcome.
    pub listed: Vec<bool>,
    /// Outcomes that violate it are ignored.
    pub filter: Option<Prop>,
    /// The quantifier over the outcomes.
    pub quantifier: OutcomeQuantifier,
    /// The proposition.
    pub prop: Prop,
}

impl<O: Observed> Question<O> {
    /// Parses the text after the code of a test.
    ///
    /// # Errors
    ///
    /// A syntax error; a name that `names` cannot resolve.
    pub fn parse<N: NameResolver<Observed = O>>(
        cursor: &mut Cursor<'_, '_>,
        names: &mut N,
    ) -> Result<Self, Diagnostic> {
        let mut reader = QuestionReader { names, observed: Vec::new(), located: 0 };
        let (filter, quantifier, prop) = reader.constraints(cursor)?;
        let mut listed: Vec<bool> =
            (0..reader.observed.len()).map(|i| i < reader.located).collect();
        prop.mark(&mut listed);
        let mut question = Question { observed: reader.observed, listed, filter, quantifier, prop };
        question.order();
        Ok(question)
    }
    fn order(&mut self) {
        let key = |o: &O| (o.thread().is_none(), o.thread(), o.name().to_string());
        let mut order: Vec<usize> = (0..self.observed.len()).collect();
        order.sort_by_key(|&i| key(&self.observed[i]));
        let mut place = vec![0; order.len()];
        for (new, &old) in order.iter().enumerate() {
            place[old] = new;
        }
        self.observed = order.iter().map(|&i| self.observed[i].clone()).collect();
        self.listed = order.iter().map(|&i| self.listed[i]).collect();
        self.prop.renumber(&place);
        if let Some(filter) = &mut self.filter {
            filter.renumber(&place);
        }
    }
    /// True if an outcome passes the filter.
    pub fn counts(&self, outcome: &[u64]) -> bool {
        self.filter.as_ref().is_none_or(|f| f.holds(&self.observed, outcome))
    }
    /// True if the proposition holds for an outcome.
    pub fn holds(&self, outcome: &[u64]) -> bool {
        self.prop.holds(&self.observed, outcome)
    }
    /// True if an outcome decides the test: it passes the filter and satisfies the proposition or,
    /// for `forall`, violates it.
    pub fn is_decided_by(&self, outcome: &[u64]) -> bool {
        self.counts(outcome)
            && self.holds(outcome) == (self.quantifier != OutcomeQuantifier::Forall)
    }
    /// Prints an outcome in one line.
    pub fn outcome_text(&self, outcome: &[u64], addresses: &dyn Addresses) -> String {
        let one = |(o, &v): (&O, &u64)| format!("{}={};", o.name(), o.text(v, addresses));
        self.observed.iter().zip(outcome).map(one).collect::<Vec<_>>().join(" ")
    }
}

/// True if `~exists` or `not exists` comes next.
pub(crate) fn is_negated(cursor: &Cursor<'_, '_>) -> bool {
    (cursor.is("~") || cursor.is_word("not")) && cursor.ahead(1).text.eq_ignore_ascii_case("exists")
}

fn deeper(cursor: &Cursor<'_, '_>, depth: u32) -> Result<u32, Diagnostic> {
    if depth >= DEPTH {
        return Err(Diagnostic::at(
            Stage::Syntax,
            cursor.peek().span,
            format!("a condition that nests more than {DEPTH} deep"),
        ));
    }
    Ok(depth + 1)
}

/// Reads one level more, on a new stack if this one is nearly full.
fn with_stack(read: impl FnOnce() -> Result<Prop, Diagnostic>) -> Result<Prop, Diagnostic> {
    stacker::maybe_grow(64 << 10, 1 << 20, read)
}

/// Joins propositions; a single one stays unchanged.
fn join(mut list: Vec<Prop>, by: fn(Vec<Prop>) -> Prop) -> Prop {
    if list.len() == 1 { list.remove(0) } else { by(list) }
}

struct QuestionReader<'n, N: NameResolver> {
    names: &'n mut N,
    observed: Vec<N::Observed>,
    /// Number of observations of `locations`, which come first.
    located: usize,
}

impl<N: NameResolver> QuestionReader<'_, N> {
    fn location(&mut self, cursor: &mut Cursor<'_, '_>) -> Result<usize, Diagnostic> {
        let found = self.names.location(cursor)?;
        Ok(self.number(found))
    }
    /// Returns the index of an observation, adding it if it is new.
    fn number(&mut self, found: N::Observed) -> usize {
        self.observed.iter().position(|o| o.is(&found)).unwrap_or_else(|| {
            self.observed.push(found);
            self.observed.len() - 1
        })
    }
    fn constraints(
        &mut self,
        cursor: &mut Cursor<'_, '_>,
    ) -> Result<(Option<Prop>, OutcomeQuantifier, Prop), Diagnostic> {
        if cursor.eat_word("locations") {
            cursor.expect("[")?;
            while !cursor.eat("]") {
                for found in self.names.listed_locations(cursor)? {
                    self.number(found);
                }
                // Types are for other tools.
                while cursor.peek().kind == TokenKind::Name || cursor.is("*") {
                    cursor.take();
                }
                if !cursor.eat(";") && !cursor.is("]") {
                    return Err(cursor.unexpected("`;` or `]`"));
                }
            }
            self.located = self.observed.len();
        }
        let filter =
            if cursor.eat_word("filter") { Some(self.proposition(cursor, 0)?) } else { None };
        let quantifier = if cursor.at_end() {
            return Ok((filter, OutcomeQuantifier::Forall, Prop::True));
        } else if cursor.eat_word("exists") || cursor.eat_word("final") || cursor.is("(") {
            OutcomeQuantifier::Exists
        } else if cursor.eat_word("forall") {
            OutcomeQuantifier::Forall
        } else if is_negated(cursor) {
            cursor.take();
            cursor.take();
            OutcomeQuantifier::NotExists
        } else if cursor.eat_word("observed") {
            let prop = self.outcomes(cursor)?;
            return if cursor.at_end() {
                Ok((filter, OutcomeQuantifier::Exists, prop))
            } else {
                Err(cursor.unexpected("`;` or `and`"))
            };
        } else if cursor.is_word("cases") {
            return Err(Diagnostic::at(
                Stage::Unsupported,
                cursor.peek().span,
                format!("the condition `{}` is not supported", cursor.peek().text),
            )
            .note("supported: exists, ~exists, forall, final, observed"));
        } else {
            return Err(cursor.unexpected("`exists`, `~exists` or `forall`"));
        };
        let prop = self.proposition(cursor, 0)?;
        cursor.eat(";");
        // `with model: quantifier` contains the expected results of some models; it is not checked
        // here.
        if !cursor.at_end() && !cursor.is_word("with") {
            return Err(cursor.unexpected("the end of the test"));
        }
        Ok((filter, quantifier, prop))
    }
    /// Parses the text after `observed`: outcomes separated by `and`, each a list of values that
    /// end with `;`.
    fn outcomes(&mut self, cursor: &mut Cursor<'_, '_>) -> Result<Prop, Diagnostic> {
        let mut outcomes = Vec::new();
        loop {
            let mut values = Vec::new();
            while !cursor.at_end() && !cursor.is_word("and") {
                values.push(self.atom(cursor, 0)?);
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
    fn proposition(&mut self, cursor: &mut Cursor<'_, '_>, depth: u32) -> Result<Prop, Diagnostic> {
        let mut list = vec![self.conjunction(cursor, depth)?];
        while cursor.eat("\\/") || cursor.eat("||") {
            list.push(self.conjunction(cursor, depth)?);
        }
        Ok(join(list, Prop::Or))
    }
    fn conjunction(&mut self, cursor: &mut Cursor<'_, '_>, depth: u32) -> Result<Prop, Diagnostic> {
        let mut list = vec![self.implication(cursor, depth)?];
        while cursor.eat("/\\") || cursor.eat("&&") {
            list.push(self.implication(cursor, depth)?);
        }
        Ok(join(list, Prop::And))
    }
    fn implication(&mut self, cursor: &mut Cursor<'_, '_>, depth: u32) -> Result<Prop, Diagnostic> {
        let left = self.atom(cursor, depth)?;
        if cursor.eat("=>") {
            let depth = deeper(cursor, depth)?;
            let right = with_stack(|| self.implication(cursor, depth))?;
            return Ok(Prop::Implies(Box::new(left), Box::new(right)));
        }
        Ok(left)
    }
    fn atom(&mut self, cursor: &mut Cursor<'_, '_>, depth: u32) -> Result<Prop, Diagnostic> {
        if cursor.eat("(") {
            let depth = deeper(cursor, depth)?;
            let inner = with_stack(|| self.proposition(cursor, depth))?;
            cursor.expect(")")?;
            return Ok(inner);
        }
        if cursor.eat("~") || cursor.eat("!") || cursor.is_word("not") {
            cursor.eat_word("not");
            let depth = deeper(cursor, depth)?;
            return Ok(Prop::Not(Box::new(with_stack(|| self.atom(cursor, depth))?)));
        }
        if cursor.ahead(1).text != "=" && cursor.ahead(1).text != "!=" {
            if cursor.eat_word("true") {
                return Ok(Prop::True);
            }
            if cursor.eat_word("false") {
                return Ok(Prop::False);
            }
        }
        if let Some(elements) = self.names.elements(cursor)? {
            let negated = cursor.eat("!=");
            if !negated {
                cursor.expect("=")?;
            }
            let open = cursor.expect("{")?;
            let mut list = Vec::new();
            while !cursor.eat("}") {
                list.push(self.names.value(cursor)?);
                if !cursor.eat(",") && !cursor.is("}") {
                    return Err(cursor.unexpected("`,` or `}`"));
                }
            }
            if list.len() != elements.len() {
                let message = format!("{} values for {} elements", list.len(), elements.len());
                return Err(Diagnostic::at(Stage::Type, open.span, message));
            }
            let each = elements.into_iter().zip(list);
            let all = Prop::And(each.map(|(e, v)| Prop::Is(self.number(e), v)).collect());
            return Ok(if negated { Prop::Not(Box::new(all)) } else { all });
        }
        let left = self.location(cursor)?;
        let negated = cursor.eat("!=") || cursor.eat("<>");
        if !negated && !cursor.eat("=") && !cursor.eat("==") {
            return Err(cursor.unexpected("`=`"));
        }
        // On the right, a location is in brackets, starred, or a register; a bare name is an
        // address, and a name with a quoted text is the address of a label.
        let register = matches!(cursor.peek().kind, TokenKind::Number | TokenKind::Name)
            && cursor.ahead(1).text == ":"
            && cursor.ahead(2).kind != TokenKind::Text;
        let prop = if cursor.is("[") || cursor.is("*") || register {
            Prop::Same(left, self.location(cursor)?)
        } else {
            Prop::Is(left, self.names.value(cursor)?)
        };
        Ok(if negated { Prop::Not(Box::new(prop)) } else { prop })
    }
}
