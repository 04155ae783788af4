//! Recursive-descent parser of `.cub` files, with one token of lookahead.
//!
//! It accepts the language of Cubicle and its extension by memory (tso-partial-order, section 5;
//! x86-tso-programs, section 2), and the older spellings of existing files: `[p]X`, `read(p, X)`,
//! `write(p, X, t)`, `n @ X := t`, `fence(p)`, `&`. Declarations may be in any order.
//!
//! Operators from the weakest: `=>` and `<=>` (right-associative), `||`, `&&`, `not`. The body of a
//! quantifier extends as far as possible, the last part of `if` is as short as possible. Cost:
//! linear in the text. Formulas are nested at most [`MAX_DEPTH`] levels.

use crate::ast::{
    Cmp, DeclarationKind, File, Formula, Item, Name, QuantifierKind, Right, Term, Update, Value,
};
use crate::lexer::{Tok, tokens};
use mu_base::source::{Place, SourceId, Span};
use mu_base::{Diagnostic, Stage};

/// Largest nesting depth of formulas; deeper ones are rejected.
pub const MAX_DEPTH: usize = 500;

/// Reserved words.
pub const KEYWORDS: &[&str] = &[
    "type",
    "init",
    "transition",
    "invariant",
    "requires",
    "array",
    "var",
    "weak",
    "const",
    "unsafe",
    "case",
    "forall",
    "forall_other",
    "exists",
    "exists_other",
    "number_procs",
    "predicate",
    "not",
    "if",
    "then",
    "else",
    "true",
    "false",
];

/// True if a name is a reserved word.
pub fn is_keyword(name: &str) -> bool {
    KEYWORDS.contains(&name)
}

/// Parses a file.
///
/// # Errors
///
/// The first syntax error, with the expected input.
pub fn parse(source: SourceId, text: &str) -> Result<File, Diagnostic> {
    let tokens = tokens(source, text)?;
    let mut parser = Parser { tokens: &tokens, at: 0, depth: 0 };
    let mut items = Vec::new();
    while !matches!(parser.peek(), Tok::End) {
        items.push(parser.item()?);
    }
    Ok(File { items, end: Place(parser.span()) })
}

/// Words that begin a declaration.
const BEGINS: [&str; 10] = [
    "number_procs",
    "type",
    "weak",
    "var",
    "array",
    "const",
    "predicate",
    "init",
    "invariant",
    "unsafe",
];
/// Limit on the number of errors after which [`parse_all`] continues.
const MAX_ERRORS: usize = 50;

/// Parses a file with errors. Returns each declaration with its position; after an error it
/// continues with the next declaration.
pub fn parse_all(source: SourceId, text: &str) -> Vec<(Item, Span)> {
    // Invalid characters are treated as blanks.
    let mut blanked = text.to_string();
    let mut list = tokens(source, &blanked);
    for _ in 0..MAX_ERRORS {
        let Err(Some(wrong)) = list.as_ref().map_err(|e| e.span) else { break };
        let (start, end) = (wrong.start as usize, wrong.end as usize);
        blanked.replace_range(start..end, &" ".repeat(end - start));
        list = tokens(source, &blanked);
    }
    let list = list.unwrap_or_default();
    let mut items = Vec::new();
    if list.is_empty() {
        return items;
    }
    let mut parser = Parser { tokens: &list, at: 0, depth: 0 };
    let mut errors = 0;
    while !matches!(parser.peek(), Tok::End) && errors < MAX_ERRORS {
        let from = parser.at;
        match parser.item() {
            Ok(item) => items.push((item, list[from].1.to(list[parser.at - 1].1))),
            Err(_) => {
                errors += 1;
                (parser.at, parser.depth) = (parser.at.max(from + 1).min(list.len() - 1), 0);
                let begins =
                    |p: &Parser<'_>| BEGINS.iter().any(|w| p.is_word(w)) || p.is_word("transition");
                while !matches!(parser.peek(), Tok::End) && !begins(&parser) {
                    parser.at += 1;
                }
            }
        }
    }
    items
}

/// A term or a formula: after an opening parenthesis the kind is known only later.
enum TermOrFormula {
    Term(Term),
    Expr(Formula),
}

struct Parser<'a> {
    tokens: &'a [(Tok, Span)],
    at: usize,
    depth: usize,
}

type Parsed<T> = Result<T, Diagnostic>;

impl Parser<'_> {
    fn peek(&self) -> &Tok {
        &self.tokens[self.at].0
    }
    fn peek_second(&self) -> &Tok {
        &self.tokens[(self.at + 1).min(self.tokens.len() - 1)].0
    }
    fn span(&self) -> Span {
        self.tokens[self.at].1
    }
    fn next(&mut self) -> (Tok, Span) {
        let token = self.tokens[self.at].clone();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }
    fn error<T>(&self, expected: &str) -> Parsed<T> {
        Err(Diagnostic::at(
            Stage::Syntax,
            self.span(),
            format!("found {}, expected {expected}", self.peek().description()),
        ))
    }
    fn is(&self, sign: &str) -> bool {
        matches!(self.peek(), Tok::Sign(s) if *s == sign)
    }
    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Tok::Lower(s) if s == word)
    }
    fn eat(&mut self, sign: &str) -> bool {
        let found = self.is(sign);
        if found {
            self.next();
        }
        found
    }
    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.next();
        }
        found
    }
    fn expect(&mut self, sign: &str) -> Parsed<()> {
        if self.eat(sign) { Ok(()) } else { self.error(&format!("`{sign}`")) }
    }
    /// Parses a lower-case name that is not a keyword.
    fn lower(&mut self, what: &str) -> Parsed<Name> {
        match self.peek() {
            Tok::Lower(s) if !is_keyword(s) => {
                let text = s.clone();
                Ok(Name { text, place: Place(self.next().1) })
            }
            Tok::Lower(s) => {
                let message = format!("found the keyword `{s}`, expected {what}");
                Err(Diagnostic::at(Stage::Syntax, self.span(), message))
            }
            _ => self.error(&format!("{what}: a name that begins with a lower-case letter")),
        }
    }
    fn upper(&mut self, what: &str) -> Parsed<Name> {
        match self.peek() {
            Tok::Upper(s) => {
                let text = s.clone();
                Ok(Name { text, place: Place(self.next().1) })
            }
            _ => self.error(&format!("{what}: a name that begins with a capital letter")),
        }
    }
    /// Parses a process: a variable or `#n`.
    fn process(&mut self) -> Parsed<Name> {
        if let Tok::Fixed(n) = self.peek() {
            let text = format!("#{n}");
            return Ok(Name { text, place: Place(self.next().1) });
        }
        self.lower("a process")
    }
    fn separated_list<T>(
        &mut self,
        sign: &str,
        mut one: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let mut all = vec![one(self)?];
        while self.eat(sign) {
            all.push(one(self)?);
        }
        Ok(all)
    }

    fn item(&mut self) -> Parsed<Item> {
        const EXPECTED: &str = "a declaration: `type`, `var`, `array`, `const`, `weak`, `predicate`, `init`, `invariant`, `unsafe`, `transition`";
        let word = match self.peek() {
            Tok::Lower(s) => s.clone(),
            _ => return self.error(EXPECTED),
        };
        let start = self.span();
        match word.as_str() {
            "number_procs" => {
                self.next();
                match self.peek().clone() {
                    Tok::Number(n, false) => match u32::try_from(n.to_integer()) {
                        Ok(n) if (1..=1_000_000).contains(&n) => {
                            self.next();
                            Ok(Item::Processes(n, Place(start)))
                        }
                        _ => self.error("a number of processes from 1 to 1,000,000"),
                    },
                    _ => self.error("a number of processes"),
                }
            }
            "type" => {
                self.next();
                let name = self.lower("the name of a type")?;
                if !self.eat("=") {
                    return Ok(Item::Type(name, Vec::new()));
                }
                self.eat("|");
                Ok(Item::Type(name, self.separated_list("|", |p| p.upper("a constructor"))?))
            }
            "weak" => {
                self.next();
                self.symbol(DeclarationKind::Weak)
            }
            "var" | "array" => self.symbol(DeclarationKind::Plain),
            "const" => {
                self.next();
                self.declaration(DeclarationKind::Constant, None)
            }
            "predicate" => {
                self.next();
                let name = self.lower("the name of a predicate")?;
                self.expect("(")?;
                let params = if self.is(")") {
                    Vec::new()
                } else {
                    self.separated_list(",", |p| p.lower("a parameter"))?
                };
                self.expect(")")?;
                Ok(Item::Predicate(name, params, self.braced_formula()?))
            }
            "init" | "invariant" | "unsafe" => {
                self.next();
                let params = if self.is("(") { self.params()? } else { Vec::new() };
                let body = self.braced_formula()?;
                Ok(match word.as_str() {
                    "init" => Item::Init(params, body, Place(start)),
                    "invariant" => Item::Invariant(params, body, Place(start)),
                    _ => Item::Unsafe(params, body, Place(start)),
                })
            }
            "transition" => {
                self.next();
                self.transition()
            }
            _ => self.error(EXPECTED),
        }
    }
    /// Parses `var X : t` or `array A[proc] : t`, from `var` or `array` on.
    fn symbol(&mut self, declared: DeclarationKind) -> Parsed<Item> {
        if self.eat_word("var") {
            self.declaration(declared, Some(false))
        } else if self.eat_word("array") {
            self.declaration(declared, Some(true))
        } else {
            self.error("`var` or `array`")
        }
    }
    fn declaration(&mut self, declared: DeclarationKind, array: Option<bool>) -> Parsed<Item> {
        let name = self.upper("a variable")?;
        let mut indices = Vec::new();
        if array == Some(true) || array.is_none() && self.is("[") {
            self.expect("[")?;
            indices = self.separated_list(",", |p| p.lower("the type `proc`"))?;
            self.expect("]")?;
        }
        self.expect(":")?;
        let sort = self.lower("a type")?;
        Ok(Item::Symbol { declared, name, indices, sort })
    }
    fn params(&mut self) -> Parsed<Vec<Name>> {
        self.expect("(")?;
        let mut params = Vec::new();
        while !self.eat(")") {
            params.push(self.lower("a process variable or `)`")?);
        }
        Ok(params)
    }
    fn braced_formula(&mut self) -> Parsed<Formula> {
        self.expect("{")?;
        let body = self.expr()?;
        self.expect("}")?;
        Ok(body)
    }
    fn transition(&mut self) -> Parsed<Item> {
        let name = match self.peek() {
            Tok::Upper(_) => self.upper("the name of a transition")?,
            _ => self.lower("the name of a transition")?,
        };
        self.expect("(")?;
        let mut params = Vec::new();
        while !self.eat(")") {
            let actor = self.eat("[");
            params.push((self.lower("a process variable, `[` or `)`")?, actor));
            if actor {
                self.expect("]")?;
            }
        }
        let requires = if self.eat_word("requires") { Some(self.braced_formula()?) } else { None };
        self.expect("{")?;
        let mut updates = Vec::new();
        while !self.eat("}") {
            updates.push(self.update()?);
            if !self.eat(";") && !self.is("}") {
                return self.error("`;` or `}` after an update");
            }
        }
        Ok(Item::Transition { name, params, requires, updates })
    }
    fn update(&mut self) -> Parsed<Update> {
        if self.is_word("write") && matches!(self.peek_second(), Tok::Sign("(")) {
            self.next();
            self.expect("(")?;
            let by = Some(self.process()?);
            self.expect(",")?;
            let (name, args) = self.target()?;
            self.expect(",")?;
            let right = Right::Value(Value::Term(self.term()?));
            self.expect(")")?;
            return Ok(Update { by, name, args, right });
        }
        let by = if self.eat("[") {
            let by = self.process()?;
            self.expect("]")?;
            Some(by)
        } else if matches!(self.peek_second(), Tok::Sign("@")) {
            let by = self.process()?;
            self.expect("@")?;
            Some(by)
        } else {
            None
        };
        let (name, args) = self.target()?;
        self.expect(":=")?;
        if !self.eat_word("case") {
            return Ok(Update { by, name, args, right: Right::Value(self.value()?) });
        }
        let mut cases = Vec::new();
        while self.eat("|") {
            let condition = if self.eat("_") { None } else { Some(self.expr()?) };
            self.expect(":")?;
            cases.push((condition, self.value()?));
        }
        if cases.is_empty() {
            return self.error("a case: `| condition : term`");
        }
        Ok(Update { by, name, args, right: Right::Cases(cases) })
    }
    fn target(&mut self) -> Parsed<(Name, Vec<Name>)> {
        let name = self.upper("the variable of an update")?;
        let mut args = Vec::new();
        if self.eat("[") {
            args = self.separated_list(",", Self::process)?;
            self.expect("]")?;
        }
        Ok((name, args))
    }
    fn value(&mut self) -> Parsed<Value> {
        if self.eat(".") || self.eat("?") { Ok(Value::Any) } else { Ok(Value::Term(self.term()?)) }
    }

    fn deeper<T>(&mut self, one: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= MAX_DEPTH {
            return Err(Diagnostic::at(
                Stage::Unsupported,
                self.span(),
                format!("formulas and terms are nested more than {MAX_DEPTH} levels deep"),
            ));
        }
        self.depth += 1;
        let result = stacker::maybe_grow(64 * 1024, 1024 * 1024, || one(self));
        self.depth -= 1;
        result
    }
    fn expr(&mut self) -> Parsed<Formula> {
        let node = self.deeper(Self::implication)?;
        self.formula(node)
    }
    fn term(&mut self) -> Parsed<Term> {
        let node = self.deeper(Self::sum)?;
        self.number(node)
    }
    fn formula(&self, node: TermOrFormula) -> Parsed<Formula> {
        match node {
            TermOrFormula::Expr(e) => Ok(e),
            TermOrFormula::Term(t) => Err(Diagnostic::at(
                Stage::Syntax,
                t.place().0,
                "this is a term, expected a formula, as a comparison `.. = ..` is",
            )),
        }
    }
    fn number(&self, node: TermOrFormula) -> Parsed<Term> {
        match node {
            TermOrFormula::Term(t) => Ok(t),
            TermOrFormula::Expr(e) => Err(Diagnostic::at(
                Stage::Syntax,
                e.place().0,
                "this is a formula, expected a term",
            )),
        }
    }
    fn implication(&mut self) -> Parsed<TermOrFormula> {
        let left = self.disjunction()?;
        let iff = self.is("<=>");
        if !iff && !self.is("=>") {
            return Ok(left);
        }
        let left = Box::new(self.formula(left)?);
        self.next();
        let right = self.deeper(Self::implication)?;
        let right = Box::new(self.formula(right)?);
        Ok(TermOrFormula::Expr(if iff {
            Formula::Iff(left, right)
        } else {
            Formula::Implies(left, right)
        }))
    }
    fn disjunction(&mut self) -> Parsed<TermOrFormula> {
        self.several(&["||"], Self::conjunction, Formula::Or)
    }
    fn conjunction(&mut self) -> Parsed<TermOrFormula> {
        self.several(&["&&", "&"], Self::negation, Formula::And)
    }
    fn several(
        &mut self,
        signs: &[&str],
        one: fn(&mut Self) -> Parsed<TermOrFormula>,
        make: fn(Vec<Formula>) -> Formula,
    ) -> Parsed<TermOrFormula> {
        let first = one(self)?;
        if !signs.iter().any(|s| self.is(s)) {
            return Ok(first);
        }
        let mut all = vec![self.formula(first)?];
        while signs.iter().any(|s| self.eat(s)) {
            let node = one(self)?;
            all.push(self.formula(node)?);
        }
        Ok(TermOrFormula::Expr(make(all)))
    }
    fn negation(&mut self) -> Parsed<TermOrFormula> {
        if self.eat_word("not") {
            let node = self.deeper(Self::negation)?;
            return Ok(TermOrFormula::Expr(Formula::Not(Box::new(self.formula(node)?))));
        }
        if self.eat_word("if") {
            let condition = Box::new(self.expr()?);
            if !self.eat_word("then") {
                return self.error("`then`");
            }
            let yes = Box::new(self.expr()?);
            if !self.eat_word("else") {
                return self.error("`else`");
            }
            let node = self.deeper(Self::negation)?;
            return Ok(TermOrFormula::Expr(Formula::If(
                condition,
                yes,
                Box::new(self.formula(node)?),
            )));
        }
        for (word, all, other) in [
            ("forall", true, false),
            ("exists", false, false),
            ("forall_other", true, true),
            ("exists_other", false, true),
        ] {
            if self.eat_word(word) {
                let names = if other {
                    vec![self.lower("a process variable")?]
                } else {
                    self.separated_list("<>", |p| p.lower("a process variable"))?
                };
                self.expect(".")?;
                return Ok(TermOrFormula::Expr(Formula::Quantified(
                    QuantifierKind { all, other },
                    names,
                    Box::new(self.expr()?),
                )));
            }
        }
        self.comparison()
    }
    fn comparison(&mut self) -> Parsed<TermOrFormula> {
        let left = self.sum()?;
        let cmp = match self.peek() {
            Tok::Sign("=") => Cmp::Eq,
            Tok::Sign("<>") => Cmp::Neq,
            Tok::Sign("<") => Cmp::Lt,
            Tok::Sign("<=") => Cmp::Le,
            Tok::Sign(">") => Cmp::Gt,
            Tok::Sign(">=") => Cmp::Ge,
            Tok::Sign(s @ ("==" | "!=")) => {
                let right = if *s == "==" { "=" } else { "<>" };
                return Err(Diagnostic::at(
                    Stage::Syntax,
                    self.span(),
                    format!("found `{s}`, expected `{right}`"),
                ));
            }
            _ => return Ok(left),
        };
        let left = self.number(left)?;
        self.next();
        let right = self.sum()?;
        Ok(TermOrFormula::Expr(Formula::Compare(left, cmp, self.number(right)?)))
    }
    fn sum(&mut self) -> Parsed<TermOrFormula> {
        let mut left = self.product()?;
        let mut length = 0;
        loop {
            let minus = self.is("-");
            if !minus && !self.is("+") {
                return Ok(left);
            }
            length += 1;
            if length > MAX_DEPTH {
                return self.error(&format!("at most {MAX_DEPTH} operands in one sum"));
            }
            let a = Box::new(self.number(left)?);
            self.next();
            let b = self.product()?;
            let b = Box::new(self.number(b)?);
            left = TermOrFormula::Term(if minus { Term::Sub(a, b) } else { Term::Add(a, b) });
        }
    }
    fn product(&mut self) -> Parsed<TermOrFormula> {
        let left = self.factor()?;
        if !self.is("*") {
            return Ok(left);
        }
        let a = Box::new(self.number(left)?);
        self.next();
        let b = self.factor()?;
        Ok(TermOrFormula::Term(Term::Mul(a, Box::new(self.number(b)?))))
    }
    fn factor(&mut self) -> Parsed<TermOrFormula> {
        let (token, span) = (self.peek().clone(), self.span());
        match token {
            Tok::Sign("-") => {
                self.next();
                let node = self.deeper(Self::factor)?;
                Ok(TermOrFormula::Term(Term::Neg(Box::new(self.number(node)?))))
            }
            Tok::Sign("(") => {
                self.next();
                let node = self.deeper(Self::implication)?;
                self.expect(")")?;
                Ok(node)
            }
            Tok::Sign("[") => {
                self.next();
                let by = self.process()?;
                self.expect("]")?;
                Ok(TermOrFormula::Term(Term::By(by, Box::new(self.cell()?))))
            }
            Tok::Number(n, real) => {
                self.next();
                Ok(TermOrFormula::Term(Term::Number(n, real, Place(span))))
            }
            Tok::Upper(_) => Ok(TermOrFormula::Term(self.cell()?)),
            Tok::Lower(word) if word == "true" || word == "false" => {
                self.next();
                Ok(TermOrFormula::Expr(Formula::Constant(word == "true", Place(span))))
            }
            Tok::Lower(word)
                if !is_keyword(&word) && matches!(self.peek_second(), Tok::Sign("(")) =>
            {
                self.call(&word)
            }
            Tok::Lower(word) if is_keyword(&word) => self.error("a term or a formula"),
            Tok::Lower(_) | Tok::Fixed(_) => {
                let process = self.process()?;
                if !self.eat("@") {
                    return Ok(TermOrFormula::Term(Term::Name(process)));
                }
                Ok(TermOrFormula::Term(Term::By(process, Box::new(self.cell()?))))
            }
            _ => self.error("a term or a formula"),
        }
    }
    /// Parses `fence(p)`, `read(p, X)` or a predicate.
    fn call(&mut self, word: &str) -> Parsed<TermOrFormula> {
        let name = self.lower("a predicate")?;
        self.expect("(")?;
        if word == "fence" {
            let process = if self.is(")") { None } else { Some(self.process()?) };
            self.expect(")")?;
            return Ok(TermOrFormula::Expr(Formula::Fence(process, name.place)));
        }
        if word == "read" {
            let process = self.process()?;
            self.expect(",")?;
            let cell = self.cell()?;
            self.expect(")")?;
            return Ok(TermOrFormula::Term(Term::By(process, Box::new(cell))));
        }
        let mut args =
            if self.is(")") { Vec::new() } else { self.separated_list(",", Self::term)? };
        self.expect(")")?;
        // Functions of words. A predicate of the same name has other arguments, such as processes.
        let is_upper = |n: &Name| n.text.starts_with(|c: char| c.is_ascii_uppercase());
        let process = |t: &Term| matches!(t, Term::Name(n) if !is_upper(n));
        if word == "signed" && matches!(args.as_slice(), [one] if !process(one)) {
            return Ok(TermOrFormula::Term(Term::Signed(Box::new(args.remove(0)))));
        }
        if word == "mask"
            && let [_, Term::Number(mask, false, _)] = args.as_slice()
        {
            let mask = mask.clone();
            return Ok(TermOrFormula::Term(Term::Mask(Box::new(args.remove(0)), mask)));
        }
        Ok(TermOrFormula::Expr(Formula::Call(name, args)))
    }
    /// Parses a name that begins with a capital letter, with optional indices.
    fn cell(&mut self) -> Parsed<Term> {
        let name = self.upper("a variable")?;
        if !self.eat("[") {
            return Ok(Term::Name(name));
        }
        let args = self.separated_list(",", Self::process)?;
        self.expect("]")?;
        Ok(Term::Cell(name, args))
    }
}
