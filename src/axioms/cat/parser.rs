//! Recursive-descent parser of the `cat` language, with operator precedence.
//!
//! Operators from weakest to strongest: `|`, `++`, `;` (right-associative), `\` (left-associative),
//! `&`, then `*` `+` `?` and prefix `~`, then `^-1`, then application. As in the herd tools, `*` is
//! a product if an operand follows, and a closure otherwise. Cost: linear. Depth: `stacker` grows
//! the stack.

use std::sync::Arc;

use mu_base::{Diagnostic, Place, SourceId, Span, Stage};

use super::ast::{
    Binary, BindingPattern, CatFile, Exp, ExpressionKind, Ident, IfCondition, Ins, LetBinding,
    SetClause, Statement, TestKind, TestRole, TestStatement, UnaryOperator,
};
use super::lexer::{CatToken, lex};

/// Parses a file.
pub fn parse(source: SourceId, text: &str) -> Result<CatFile, Diagnostic> {
    let mut p = Parser { tokens: lex(source, text)?, at: 0 };
    let head = p.head();
    let mut body = Vec::new();
    while *p.token() != CatToken::End {
        body.push(p.statement()?);
    }
    Ok(CatFile { head, body })
}

/// Words that only the beginning of a statement can be.
const BEGINS: [&str; 14] = [
    "let",
    "acyclic",
    "irreflexive",
    "empty",
    "flag",
    "undefined_unless",
    "assert",
    "show",
    "unshow",
    "include",
    "procedure",
    "call",
    "enum",
    "forall",
];

/// Limit on the number of errors after which [`parse_all`] continues.
const MAX_ERRORS: usize = 50;

/// Parses a file with errors: after an error it continues with the next statement.
pub fn parse_all(source: SourceId, text: &str) -> CatFile {
    // Invalid characters are treated as blanks.
    let mut blanked = text.to_string();
    let mut tokens = lex(source, &blanked);
    for _ in 0..MAX_ERRORS {
        let Err(Some(wrong)) = tokens.as_ref().map_err(|e| e.span) else { break };
        let (start, end) = (wrong.start as usize, wrong.end as usize);
        blanked.replace_range(start..end, &" ".repeat(end - start));
        tokens = lex(source, &blanked);
    }
    let mut p = Parser {
        tokens: tokens.unwrap_or_else(|_| vec![(CatToken::End, Span { source, start: 0, end: 0 })]),
        at: 0,
    };
    let head = p.head();
    let (mut body, mut errors) = (Vec::new(), 0);
    while *p.token() != CatToken::End && errors < MAX_ERRORS {
        let from = p.at;
        match p.statement() {
            Ok(statement) => body.push(statement),
            Err(_) => {
                errors += 1;
                p.at = p.at.max(from + 1).min(p.tokens.len() - 1);
                while *p.token() != CatToken::End && !BEGINS.iter().any(|w| p.is_word(w)) {
                    p.at += 1;
                }
            }
        }
    }
    CatFile { head, body }
}

struct Parser {
    tokens: Vec<(CatToken, Span)>,
    at: usize,
}

type Parsed<T> = Result<T, Diagnostic>;

const FOLLOWS: &str = "a statement: `let`, `acyclic`, `irreflexive`, `empty`, `flag`, `include`, `show`, `procedure`, `call`, `forall`, `with`, `if`, …";

impl Parser {
    fn token(&self) -> &CatToken {
        &self.tokens[self.at].0
    }
    fn ahead(&self, by: usize) -> &CatToken {
        &self.tokens[(self.at + by).min(self.tokens.len() - 1)].0
    }
    fn span(&self) -> Span {
        self.tokens[self.at].1
    }
    /// Returns the range from a position to the last token read.
    fn span_since(&self, from: Span) -> Span {
        from.to(self.tokens[self.at.saturating_sub(1)].1)
    }
    fn refuse<T>(&self, expected: &str) -> Parsed<T> {
        Err(Diagnostic::at(
            Stage::Syntax,
            self.span(),
            format!("unexpected {}: expected {expected}", self.token().description()),
        ))
    }
    fn is_mark(&self, mark: &str) -> bool {
        matches!(self.token(), CatToken::Mark(m) if *m == mark)
    }
    fn is_word(&self, word: &str) -> bool {
        matches!(self.token(), CatToken::Keyword(k) if *k == word)
    }
    fn mark(&mut self, mark: &str) -> bool {
        let found = self.is_mark(mark);
        self.at += usize::from(found);
        found
    }
    fn word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.at += usize::from(found);
        found
    }
    fn need_mark(&mut self, mark: &str) -> Parsed<()> {
        if self.mark(mark) { Ok(()) } else { self.refuse(&format!("`{mark}`")) }
    }
    fn need_word(&mut self, word: &str) -> Parsed<()> {
        if self.word(word) { Ok(()) } else { self.refuse(&format!("`{word}`")) }
    }
    fn name(&mut self) -> Parsed<Ident> {
        match self.token().clone() {
            CatToken::Name(text) => {
                let place = Place(self.span());
                self.at += 1;
                Ok(Ident { text, place })
            }
            _ => self.refuse("a name"),
        }
    }
    fn tag(&mut self) -> Parsed<Ident> {
        match self.token().clone() {
            CatToken::Tag(text) => {
                let span = self.span();
                self.at += 1;
                Ok(Ident { text, place: Place(Span { start: span.start + 1, ..span }) })
            }
            _ => self.refuse("a tag such as `'acquire`"),
        }
    }
    fn is_name(&self) -> bool {
        matches!(self.token(), CatToken::Name(_))
    }

    // Statements.

    /// Parses the words before the first statement.
    fn head(&mut self) -> Vec<String> {
        let mut head = Vec::new();
        while let CatToken::Name(word) | CatToken::Text(word) = self.token() {
            head.push(word.clone());
            self.at += 1;
        }
        head
    }
    fn statements(&mut self, ends: &[&str]) -> Parsed<Arc<Vec<Ins>>> {
        let mut out = Vec::new();
        while !ends.iter().any(|e| self.is_word(e) || self.is_mark(e)) {
            if *self.token() == CatToken::End {
                return self.refuse(&format!("`{}`", ends.join("` or `")));
            }
            out.push(self.statement()?);
        }
        Ok(Arc::new(out))
    }
    fn statement(&mut self) -> Parsed<Ins> {
        let from = self.span();
        let node = stacker::maybe_grow(64 * 1024, 1024 * 1024, || self.statement_node())?;
        Ok(Ins { span: self.span_since(from), node })
    }
    fn statement_node(&mut self) -> Parsed<Statement> {
        let CatToken::Keyword(word) = *self.token() else {
            return if self.is_mark("~") {
                Ok(Statement::Test(self.test(TestRole::Axiom)?))
            } else {
                self.refuse(FOLLOWS)
            };
        };
        match word {
            "acyclic" | "irreflexive" | "empty" => {
                return Ok(Statement::Test(self.test(TestRole::Axiom)?));
            }
            _ => self.at += 1,
        }
        match word {
            "let" => self.top_let(),
            "flag" => Ok(Statement::Test(self.test(TestRole::Flag)?)),
            "undefined_unless" => Ok(Statement::Test(self.test(TestRole::UndefinedUnless)?)),
            "assert" => Ok(Statement::Test(self.test(TestRole::Assert)?)),
            "show" => self.show(),
            "unshow" => Ok(Statement::Show(self.names()?.into_iter().map(|n| (n, None)).collect())),
            "include" => match self.token().clone() {
                CatToken::Text(file) => {
                    self.at += 1;
                    Ok(Statement::Include(file))
                }
                _ => self.refuse("the name of a file in quotes"),
            },
            "procedure" => {
                self.word("rec");
                let name = self.name()?;
                let pattern = self.parameters()?;
                self.need_mark("=")?;
                let body = self.statements(&["end"])?;
                self.need_word("end")?;
                Ok(Statement::Procedure(name, pattern, body))
            }
            "call" => {
                let name = self.name()?;
                let argument = self.argument()?;
                Ok(Statement::Call(name, argument, self.as_name()?))
            }
            "forall" => {
                let name = self.name()?;
                self.need_word("in")?;
                let set = self.exp()?;
                self.need_word("do")?;
                let body = self.statements(&["end"])?;
                self.need_word("end")?;
                Ok(Statement::Forall(name, set, body))
            }
            "with" => {
                let name = self.name()?;
                self.need_word("from")?;
                Ok(Statement::With(name, self.exp()?))
            }
            "enum" => {
                let name = self.name()?;
                self.need_mark("=")?;
                self.mark("||");
                let mut tags = vec![self.tag()?];
                while self.mark("||") {
                    tags.push(self.tag()?);
                }
                Ok(Statement::Enum(name, tags))
            }
            "instructions" | "default" => {
                let kind = self.name()?;
                self.need_mark("[")?;
                Ok(Statement::Instructions(kind, self.list("]")?))
            }
            "if" => {
                let condition = self.condition()?;
                self.word("then");
                let yes = self.statements(&["else", "end"])?;
                let no =
                    if self.word("else") { self.statements(&["end"])? } else { Arc::default() };
                self.need_word("end")?;
                Ok(Statement::If(condition, yes, no))
            }
            "match" => self.match_statement(),
            "debug" => {
                self.exp()?;
                Ok(Statement::Show(Vec::new()))
            }
            _ => {
                self.at -= 1;
                self.refuse(FOLLOWS)
            }
        }
    }
    fn top_let(&mut self) -> Parsed<Statement> {
        let recursive = self.word("rec");
        let bindings = self.bindings()?;
        let when = if self.word("when") { Some(self.test(TestRole::Axiom)?) } else { None };
        // A `let … in` at the top has the scope of a `let`.
        self.word("in");
        Ok(Statement::Let(recursive, bindings, when))
    }
    fn match_statement(&mut self) -> Parsed<Statement> {
        let of = self.exp()?;
        self.need_word("with")?;
        self.mark("||");
        let (mut clauses, mut other) = (Vec::new(), None);
        loop {
            if self.mark("_") {
                self.need_mark("->")?;
                other = Some(self.statements(&["end"])?);
                break;
            }
            let tag = self.tag()?;
            self.need_mark("->")?;
            clauses.push((tag, self.statements(&["||", "end"])?));
            if !self.mark("||") {
                break;
            }
        }
        self.need_word("end")?;
        Ok(Statement::Match(of, clauses, other))
    }
    fn show(&mut self) -> Parsed<Statement> {
        if self.is_name() && matches!(self.ahead(1), CatToken::Mark(",")) {
            let names = self.names()?;
            let shown = |n: Ident| {
                (
                    n.clone(),
                    Some(Arc::new(Exp { span: n.place.0, node: ExpressionKind::Name(n.text) })),
                )
            };
            return Ok(Statement::Show(names.into_iter().map(shown).collect()));
        }
        let what = self.base(0)?;
        if self.word("as") {
            return Ok(Statement::Show(vec![(self.name()?, Some(what))]));
        }
        match &what.node {
            ExpressionKind::Name(n) => {
                let name = Ident { text: n.clone(), place: Place(what.span) };
                Ok(Statement::Show(vec![(name, Some(what.clone()))]))
            }
            _ => self.refuse("`as` and a name"),
        }
    }
    fn names(&mut self) -> Parsed<Vec<Ident>> {
        let mut out = vec![self.name()?];
        while self.mark(",") {
            out.push(self.name()?);
        }
        Ok(out)
    }
    fn as_name(&mut self) -> Parsed<Option<Ident>> {
        if self.word("as") { self.name().map(Some) } else { Ok(None) }
    }
    fn test(&mut self, role: TestRole) -> Parsed<TestStatement> {
        let from = self.span();
        let negated = self.mark("~");
        let kind = match self.token() {
            CatToken::Keyword("acyclic") => TestKind::Acyclic,
            CatToken::Keyword("irreflexive") => TestKind::Irreflexive,
            CatToken::Keyword("empty") => TestKind::Empty,
            _ => return self.refuse("`acyclic`, `irreflexive` or `empty`"),
        };
        self.at += 1;
        let of = self.exp()?;
        let name = self.as_name()?;
        Ok(TestStatement { span: self.span_since(from), role, negated, kind, of, name })
    }

    // Bindings.

    /// Parses a name or `_`.
    fn variable(&mut self) -> Parsed<Option<Ident>> {
        if self.mark("_") { Ok(None) } else { self.name().map(Some) }
    }
    fn variables(&mut self) -> Parsed<Vec<Option<Ident>>> {
        let mut out = vec![self.variable()?];
        while self.mark(",") {
            out.push(self.variable()?);
        }
        Ok(out)
    }
    fn pattern(mut names: Vec<Option<Ident>>) -> BindingPattern {
        if names.len() == 1 {
            BindingPattern::One(names.remove(0))
        } else {
            BindingPattern::Tuple(names)
        }
    }
    /// Parses `x`, `(x, y)` or `()`.
    fn parameters(&mut self) -> Parsed<BindingPattern> {
        if !self.mark("(") {
            return Ok(BindingPattern::One(self.variable()?));
        }
        if self.mark(")") {
            return Ok(BindingPattern::Tuple(Vec::new()));
        }
        let names = self.variables()?;
        self.need_mark(")")?;
        Ok(Self::pattern(names))
    }
    fn bindings(&mut self) -> Parsed<Vec<LetBinding>> {
        let mut out = vec![self.parse_binding()?];
        while self.word("and") {
            out.push(self.parse_binding()?);
        }
        Ok(out)
    }
    fn parse_binding(&mut self) -> Parsed<LetBinding> {
        let from = self.span();
        let function = self.is_name() && !matches!(self.ahead(1), CatToken::Mark("=" | ","));
        if function {
            let name = self.name()?;
            let pattern = self.parameters()?;
            self.need_mark("=")?;
            let body = self.exp()?;
            let span = self.span_since(from);
            let value = Arc::new(Exp { span, node: ExpressionKind::Fun(pattern, body) });
            return Ok(LetBinding { span, pattern: BindingPattern::One(Some(name)), value });
        }
        let pattern =
            if self.is_mark("(") { self.parameters()? } else { Self::pattern(self.variables()?) };
        self.need_mark("=")?;
        let value = self.exp()?;
        Ok(LetBinding { span: self.span_since(from), pattern, value })
    }

    // Expressions.

    fn make(&self, from: Span, node: ExpressionKind) -> Arc<Exp> {
        Arc::new(Exp { span: self.span_since(from), node })
    }
    fn exp(&mut self) -> Parsed<Arc<Exp>> {
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || self.exp_node())
    }
    fn exp_node(&mut self) -> Parsed<Arc<Exp>> {
        let from = self.span();
        let node = match self.token() {
            CatToken::Keyword("let") => {
                self.at += 1;
                let recursive = self.word("rec");
                let bindings = self.bindings()?;
                self.need_word("in")?;
                ExpressionKind::Let(recursive, bindings, self.exp()?)
            }
            CatToken::Keyword("fun") => {
                self.at += 1;
                let pattern = self.parameters()?;
                self.need_mark("->")?;
                ExpressionKind::Fun(pattern, self.exp()?)
            }
            CatToken::Keyword("try") => {
                self.at += 1;
                let first = self.exp()?;
                self.need_word("with")?;
                ExpressionKind::Try(first, self.exp()?)
            }
            CatToken::Keyword("if") => {
                self.at += 1;
                let condition = self.condition()?;
                self.need_word("then")?;
                let yes = self.exp()?;
                self.need_word("else")?;
                ExpressionKind::If(condition, yes, self.exp()?)
            }
            CatToken::Keyword("match") => {
                self.at += 1;
                self.match_expression()?
            }
            _ => {
                let first = self.base(0)?;
                if !self.is_mark(",") {
                    return Ok(first);
                }
                let mut all = vec![first];
                while self.mark(",") {
                    all.push(self.base(0)?);
                }
                ExpressionKind::Tuple(all)
            }
        };
        Ok(self.make(from, node))
    }
    fn condition(&mut self) -> Parsed<IfCondition> {
        let mut left = self.conjunction()?;
        while self.mark("||") {
            left = IfCondition::Or(Box::new(left), Box::new(self.conjunction()?));
        }
        Ok(left)
    }
    fn conjunction(&mut self) -> Parsed<IfCondition> {
        let mut left = self.simple_condition()?;
        while self.mark("&&") {
            left = IfCondition::And(Box::new(left), Box::new(self.simple_condition()?));
        }
        Ok(left)
    }
    fn simple_condition(&mut self) -> Parsed<IfCondition> {
        if self.word("not") {
            return Ok(IfCondition::Not(Box::new(self.simple_condition()?)));
        }
        if let CatToken::Text(variant) = self.token().clone() {
            self.at += 1;
            return Ok(IfCondition::Variant(variant));
        }
        if self.is_mark("(")
            && (matches!(self.ahead(1), CatToken::Text(_) | CatToken::Keyword("not")))
        {
            self.at += 1;
            let inner = self.condition()?;
            self.need_mark(")")?;
            return Ok(inner);
        }
        let left = self.base(0)?;
        if self.mark("=") {
            Ok(IfCondition::Equal(left, self.base(0)?))
        } else if self.word("subset") {
            Ok(IfCondition::Subset(left, self.base(0)?))
        } else if self.word("in") {
            Ok(IfCondition::In(left, self.base(0)?))
        } else {
            self.refuse("`=`, `subset` or `in`")
        }
    }
    fn match_expression(&mut self) -> Parsed<ExpressionKind> {
        let of = self.exp()?;
        self.need_word("with")?;
        self.mark("||");
        let tags = matches!(self.token(), CatToken::Tag(_))
            || self.is_mark("_") && matches!(self.ahead(1), CatToken::Mark("->"));
        if !tags {
            return self.match_set(of);
        }
        let (mut clauses, mut other) = (Vec::new(), None);
        loop {
            if self.mark("_") {
                self.need_mark("->")?;
                other = Some(self.exp()?);
                break;
            }
            let tag = self.tag()?;
            self.need_mark("->")?;
            clauses.push((tag, self.exp()?));
            if !self.mark("||") {
                break;
            }
        }
        self.need_word("end")?;
        Ok(ExpressionKind::MatchTag(of, clauses, other))
    }
    fn match_set(&mut self, of: Arc<Exp>) -> Parsed<ExpressionKind> {
        let (mut empty, mut element) = (None, None);
        for turn in 0..2 {
            if turn == 1 {
                self.need_mark("||")?;
            }
            if self.mark("{") {
                self.need_mark("}")?;
                self.need_mark("->")?;
                empty = Some(self.exp()?);
                continue;
            }
            let mut first = self.variable()?;
            let mut before = None;
            if self.mark("|") {
                before = Some(first);
                first = self.variable()?;
            }
            self.need_mark("++")?;
            let rest = self.variable()?;
            self.need_mark("->")?;
            element = Some(SetClause { before, element: first, rest, body: self.exp()? });
        }
        match (empty, element) {
            (Some(empty), Some(element)) => {
                self.need_word("end")?;
                Ok(ExpressionKind::MatchSet(of, empty, element))
            }
            (None, _) => self.refuse("a clause `{} -> …` as well"),
            (_, None) => self.refuse("a clause `x ++ s -> …` as well"),
        }
    }
    /// True if an operand begins here.
    fn operand_follows(&self) -> bool {
        match self.token() {
            CatToken::Name(_) | CatToken::Tag(_) => true,
            CatToken::Mark(m) => matches!(*m, "(" | "[" | "{" | "_" | "0" | "~"),
            CatToken::Keyword(k) => *k == "begin",
            _ => false,
        }
    }
    /// Parses operators that bind at least as strongly as `least`.
    fn base(&mut self, least: u8) -> Parsed<Arc<Exp>> {
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || self.base_node(least))
    }
    fn base_node(&mut self, least: u8) -> Parsed<Arc<Exp>> {
        let from = self.span();
        let mut left = if self.mark("~") {
            let of = self.base(6)?;
            self.make(from, ExpressionKind::Unary(UnaryOperator::Complement, of))
        } else {
            self.operand()?
        };
        loop {
            let CatToken::Mark(mark) = *self.token() else { return Ok(left) };
            let postfix = match mark {
                "+" => Some(UnaryOperator::Plus),
                "?" => Some(UnaryOperator::Optional),
                "^" => Some(UnaryOperator::Inverse),
                _ => None,
            };
            if let Some(op) = postfix {
                if op != UnaryOperator::Inverse && least > 5 {
                    return Ok(left);
                }
                self.at += 1;
                if op == UnaryOperator::Inverse {
                    self.need_mark("-1")?;
                }
                left = self.make(from, ExpressionKind::Unary(op, left));
                continue;
            }
            // Each operator with its strength and the least strength of its right operand.
            let (op, strength, right) = match mark {
                "|" => (Binary::Union, 0, 0),
                "++" => (Binary::Add, 1, 1),
                ";" => (Binary::Sequence, 2, 2),
                "\\" => (Binary::Difference, 3, 4),
                "&" => (Binary::Intersection, 4, 4),
                "*" => (Binary::Product, 5, 6),
                _ => return Ok(left),
            };
            if strength < least {
                return Ok(left);
            }
            self.at += 1;
            if op == Binary::Product && !self.operand_follows() {
                left = self.make(from, ExpressionKind::Unary(UnaryOperator::Star, left));
                continue;
            }
            let second = self.base(right)?;
            left = self.make(from, ExpressionKind::Binary(op, left, second));
        }
    }
    /// Parses a name applied to arguments, or a simple expression.
    fn operand(&mut self) -> Parsed<Arc<Exp>> {
        let from = self.span();
        if !self.is_name() {
            return self.argument();
        }
        let name = self.name()?;
        let mut f = self.make(from, ExpressionKind::Name(name.text));
        while self.argument_follows() {
            let argument = self.argument()?;
            f = self.make(from, ExpressionKind::Apply(f, argument));
        }
        Ok(f)
    }
    fn argument_follows(&self) -> bool {
        match self.token() {
            CatToken::Name(_) | CatToken::Tag(_) => true,
            CatToken::Mark(m) => {
                matches!(*m, "(" | "[" | "{" | "0")
                    || *m == "_" && !matches!(self.ahead(1), CatToken::Mark("->"))
            }
            CatToken::Keyword(k) => *k == "begin",
            _ => false,
        }
    }
    fn argument(&mut self) -> Parsed<Arc<Exp>> {
        let from = self.span();
        let node = match self.token().clone() {
            CatToken::Name(n) => {
                self.at += 1;
                ExpressionKind::Name(n)
            }
            CatToken::Tag(t) => {
                self.at += 1;
                ExpressionKind::Tag(t)
            }
            CatToken::Mark("0") => {
                self.at += 1;
                ExpressionKind::Empty
            }
            CatToken::Mark("_") => {
                self.at += 1;
                ExpressionKind::Universe
            }
            CatToken::Mark("{") => {
                self.at += 1;
                ExpressionKind::Braces(self.list("}")?)
            }
            CatToken::Mark("[") => {
                self.at += 1;
                let of = self.exp()?;
                self.need_mark("]")?;
                ExpressionKind::Unary(UnaryOperator::Identity, of)
            }
            CatToken::Mark("(") => {
                self.at += 1;
                if self.mark(")") {
                    ExpressionKind::Tuple(Vec::new())
                } else {
                    let inner = self.exp()?;
                    self.need_mark(")")?;
                    return Ok(inner);
                }
            }
            CatToken::Keyword("begin") => {
                self.at += 1;
                let inner = self.exp()?;
                self.need_word("end")?;
                return Ok(inner);
            }
            _ => return self.refuse("an expression"),
        };
        Ok(self.make(from, node))
    }
    /// Parses expressions separated by commas, up to and including a mark.
    fn list(&mut self, end: &str) -> Parsed<Vec<Arc<Exp>>> {
        let mut out = Vec::new();
        while !self.mark(end) {
            out.push(self.base(0)?);
            if !self.is_mark(end) {
                self.need_mark(",")?;
            }
        }
        Ok(out)
    }
}
