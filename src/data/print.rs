//! Printer of typed data as mCRL2 text: expressions become syntax trees for the printer of
//! `syntax`.
//!
//! Implicit coercions are left out. If the text must type check to the same sorts again
//! ([`data_spec`], linear processes), each expression is checked after printing, and printed with
//! its coercions if leaving them out changed its sorts.
//!
//! Cost: linear, twice with the check. Invariant: the text of [`data_spec`] is a specification of
//! the same data; names that are not valid in the language (those of generated operations and of
//! anonymous structured sorts) are replaced by fresh valid ones.

use super::engine::compile::sort_of_var;
use super::expr::{Binder, DataSpec, Equation, Expr, ExprKind};
use super::signature::{Builtin, OpKind, Signature};
use super::sort::{SortKind, basic};
use super::typecheck::Checker;
use ahash::{AHashMap, AHashSet};
use mu_base::Span;
use mu_base::ids::{OpId, SortId, VarId};
use mu_base::narrow;
use mu_syntax::ast::{self, BinaryOp, DataKind, Section, UnaryOp};
use num_bigint::{BigInt, Sign};

/// Returns the text of an expression, without implicit coercions. Variables have their own names as
/// long as those differ. A bound variable gets no name of an operation in the expression: it would
/// capture the operation, and expressions with different values would have one text. In closed
/// expressions, names have no numbers at their ends except to differ, since files rename variables.
pub fn expression(signature: &Signature, expr: &Expr) -> String {
    let mut names = VarNames::default();
    let mut free = Vec::new();
    expr.free_vars(&mut free);
    names.without_numbers = free.is_empty();
    free.into_iter().for_each(|v| drop(names.name(signature, v)));
    if has_binder(expr) {
        expr.each_op(&mut |op| _ = names.used.insert(signature.op(op).name.clone()));
    }
    mu_syntax::print::data(
        &Converter { signature, names: &mut names, style: Style::Bare }.data(expr),
    )
}

/// True if an expression binds variables.
fn has_binder(expr: &Expr) -> bool {
    let mut todo = vec![expr];
    while let Some(e) = todo.pop() {
        match &e.kind {
            ExprKind::Bind(..) | ExprKind::Where(..) => return true,
            ExprKind::Apply(head, args) => todo.extend(args.iter().chain([head])),
            ExprKind::Var(_) | ExprKind::Number(_) | ExprKind::Op(_) => {}
        }
    }
    false
}

/// Returns the text of a sort.
pub fn sort(signature: &Signature, sort: SortId) -> String {
    signature.sorts.text(sort)
}

/// Returns the `sort`, `cons`, `map` and `eqn` sections of a data specification.
pub fn data_spec(data: &DataSpec) -> String {
    let mut printer = SpecPrinter::new(data);
    let sections = printer.sections();
    mu_syntax::print::specification(&ast::Specification { sections, ..Default::default() })
}

/// Names of variables in a text, different for different variables.
#[derive(Default, Clone)]
pub struct VarNames {
    names: AHashMap<VarId, String>,
    used: AHashSet<String>,
    /// True if names lose the numbers at their ends.
    without_numbers: bool,
}

impl VarNames {
    /// Returns the name of a variable; the first variable with a name gets it unchanged.
    fn name(&mut self, signature: &Signature, var: VarId) -> String {
        if let Some(name) = self.names.get(&var) {
            return name.clone();
        }
        // Arguments of enumerated functions are in no signature.
        let mut base = if var.index() < signature.var_count() {
            valid(&signature.var(var).name)
        } else {
            "x".into()
        };
        if self.without_numbers {
            base = valid(without_number(&base));
        }
        let name = unused_name(&base, |n| self.used.contains(n));
        self.used.insert(name.clone());
        self.names.insert(var, name.clone());
        name
    }
    /// True if a variable has a name.
    fn contains(&self, var: VarId) -> bool {
        self.names.contains_key(&var)
    }
}

/// Returns a name without the endings that [`unused_name`] and the reader of binary files add.
fn without_number(name: &str) -> &str {
    let mut base = name;
    while let Some((before, last)) = base.rsplit_once('_')
        && !before.is_empty()
        && (last == "var" || !last.is_empty() && last.bytes().all(|b| b.is_ascii_digit()))
    {
        base = before;
    }
    base
}

/// Returns `base`, `base_1`, …: the first that is not taken.
pub fn unused_name(base: &str, taken: impl Fn(&str) -> bool) -> String {
    if !taken(base) {
        return base.into();
    }
    (1u32..).map(|i| format!("{base}_{i}")).find(|n| !taken(n)).unwrap_or_default()
}

/// Returns a valid identifier similar to the name.
fn valid(name: &str) -> String {
    let mut out: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '\'' { c } else { '_' })
        .collect();
    if !out.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        out.insert(0, 'x');
    }
    // A word that the grammar rejects as a name is a keyword.
    let is_name = mu_syntax::parse_data(Default::default(), &out).is_ok_and(
        |d| matches!(&d.kind, DataKind::Name(n) if *n == out && n != "true" && n != "false"),
    );
    if is_name { out } else { out + "_" }
}

fn node<K>(kind: K) -> ast::Node<K> {
    ast::Node::new(kind, Span::default())
}

/// Returns a sort as syntax.
pub fn sort_ast(signature: &Signature, sort: SortId) -> ast::Sort {
    let boxed = |s: SortId| Box::new(sort_ast(signature, s));
    node(match signature.sorts.kind(sort) {
        SortKind::Bool => ast::SortKind::Bool,
        SortKind::Pos => ast::SortKind::Pos,
        SortKind::Nat => ast::SortKind::Nat,
        SortKind::Int => ast::SortKind::Int,
        SortKind::Real => ast::SortKind::Real,
        SortKind::List(s) => ast::SortKind::List(boxed(*s)),
        SortKind::Set(s) => ast::SortKind::Set(boxed(*s)),
        SortKind::Bag(s) => ast::SortKind::Bag(boxed(*s)),
        SortKind::FSet(s) => ast::SortKind::FSet(boxed(*s)),
        SortKind::FBag(s) => ast::SortKind::FBag(boxed(*s)),
        SortKind::Function(domain, range) => ast::SortKind::Function(
            domain.iter().map(|s| sort_ast(signature, *s)).collect(),
            boxed(*range),
        ),
        SortKind::Named(i) => ast::SortKind::Name(signature.sorts.named[*i as usize].name.clone()),
    })
}

/// Converter of typed expressions to syntax trees.
struct Converter<'a> {
    signature: &'a Signature,
    names: &'a mut VarNames,
    style: Style,
}

/// Amount of sort information in the text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Style {
    /// No implicit coercions.
    Bare,
    /// With coercions between numbers.
    Explicit,
    /// With coercions, and with a `lambda` that fixes the sort of each empty container, of each
    /// finite set or bag used as a general one, and of each operation overloaded by its result.
    Ascribed,
}

impl Converter<'_> {
    fn data(&mut self, expr: &Expr) -> ast::Data {
        stacker::maybe_grow(64 << 10, 1 << 20, || self.step(expr))
    }

    fn data_list(&mut self, exprs: &[Expr]) -> Vec<ast::Data> {
        exprs.iter().map(|e| self.data(e)).collect()
    }

    fn step(&mut self, expr: &Expr) -> ast::Data {
        match &expr.kind {
            ExprKind::Var(v) => node(DataKind::Name(self.names.name(self.signature, *v))),
            ExprKind::Number(value) => self.number(value, expr.sort),
            ExprKind::Op(op) => self.value(*op),
            ExprKind::Apply(head, args) => match &head.kind {
                ExprKind::Op(op) => match &self.signature.op(*op).kind {
                    OpKind::Builtin(builtin) => self.builtin(expr, *builtin, args),
                    _ => {
                        let call = self.call(&self.signature.op(*op).name.clone(), args);
                        if self.has_other_result(*op) {
                            self.ascribe(call, expr.sort)
                        } else {
                            call
                        }
                    }
                },
                _ => {
                    let head = self.data(head);
                    node(DataKind::Apply(Box::new(head), self.data_list(args)))
                }
            },
            ExprKind::Bind(binder, vars, body) => {
                let sorts = sorts_of_bound(self.signature, expr);
                let decl = |(v, s): (&VarId, SortId)| ast::VarDecl {
                    name: node(self.names.name(self.signature, *v)),
                    sort: sort_ast(self.signature, s),
                };
                let mut decls: Vec<ast::VarDecl> = vars.iter().zip(sorts).map(decl).collect();
                let body = Box::new(self.data(body));
                node(match binder {
                    Binder::Lambda => DataKind::Lambda(decls, body),
                    Binder::Forall => DataKind::Forall(decls, body),
                    Binder::Exists => DataKind::Exists(decls, body),
                    Binder::SetComprehension | Binder::BagComprehension => match decls.pop() {
                        Some(decl) => DataKind::Comprehension(Box::new(decl), body),
                        None => body.kind,
                    },
                })
            }
            ExprKind::Where(body, definitions) => {
                let definitions = definitions
                    .iter()
                    .map(|(v, e)| {
                        let value = self.data(e);
                        (node(self.names.name(self.signature, *v)), value)
                    })
                    .collect();
                node(DataKind::Where(Box::new(self.data(body)), definitions))
            }
        }
    }

    fn call(&mut self, name: &str, args: &[Expr]) -> ast::Data {
        apply(name, self.data_list(args))
    }

    fn number(&self, value: &BigInt, sort: SortId) -> ast::Data {
        let digits = node(DataKind::Number(value.magnitude().to_string()));
        let (literal, natural) = match value.sign() {
            Sign::Minus => (node(DataKind::Unary(UnaryOp::Minus, Box::new(digits))), basic::INT),
            Sign::NoSign => (digits, basic::NAT),
            Sign::Plus => (digits, basic::POS),
        };
        if self.style >= Style::Explicit { lift(literal, natural, sort) } else { literal }
    }

    /// Converts an operation as a value. Built-in functions become a `lambda`, so that their sort
    /// is explicit.
    fn value(&mut self, op: OpId) -> ast::Data {
        let signature = self.signature;
        let declared = signature.op(op);
        let OpKind::Builtin(builtin) = declared.kind else {
            return node(DataKind::Name(declared.name.clone()));
        };
        let empty = match builtin {
            Builtin::EmptyList => Some(DataKind::List(Vec::new())),
            Builtin::EmptySet => Some(DataKind::Set(Vec::new())),
            Builtin::EmptyBag => Some(DataKind::Bag(Vec::new())),
            _ => None,
        };
        if let Some(empty) = empty {
            return self.ascribe(node(empty), declared.sort);
        }
        let (domain, range) = signature.domain_range(declared.sort);
        if domain.is_empty() {
            return node(DataKind::Name(declared.name.clone()));
        }
        let mut extended = signature.clone();
        let args: Vec<Expr> = domain
            .iter()
            .map(|s| {
                let var = extended.fresh_var("x", *s);
                Expr::var(&extended, var)
            })
            .collect();
        let mut names = self.names.clone();
        let mut inner = Converter { signature: &extended, names: &mut names, style: self.style };
        let vars: Vec<VarId> = args
            .iter()
            .filter_map(|a| if let ExprKind::Var(v) = a.kind { Some(v) } else { None })
            .collect();
        let decls = vars.iter().map(|v| var_decl(&extended, inner.names, *v)).collect();
        let applied =
            Expr::new(ExprKind::Apply(Expr::op(&extended, op), args), range, Span::default());
        node(DataKind::Lambda(decls, Box::new(inner.data(&applied))))
    }

    /// True if another operation has the name and the arguments of one, and the style requires that
    /// its result is ascribed.
    fn has_other_result(&self, op: OpId) -> bool {
        let signature = self.signature;
        let declared = signature.op(op);
        let domain = signature.domain_range(declared.sort).0;
        self.style == Style::Ascribed
            && signature.ops().any(|(other, o)| {
                other != op && o.name == declared.name && signature.domain_range(o.sort).0 == domain
            })
    }

    /// Returns `(lambda x: S. x)(e)`, which is `e` at sort S, if the style requires it.
    fn ascribe(&self, data: ast::Data, sort: SortId) -> ast::Data {
        if self.style < Style::Ascribed {
            return data;
        }
        let name = "x".to_owned();
        let decl = ast::VarDecl { name: node(name.clone()), sort: sort_ast(self.signature, sort) };
        let identity = node(DataKind::Lambda(vec![decl], Box::new(node(DataKind::Name(name)))));
        node(DataKind::Apply(Box::new(identity), vec![data]))
    }

    fn builtin(&mut self, expr: &Expr, builtin: Builtin, args: &[Expr]) -> ast::Data {
        if let (Some(op), [left, right]) = (binary(builtin), args) {
            if builtin == Builtin::Cons {
                return self.cons(expr);
            }
            let (left, right) = (self.data(left), self.data(right));
            return node(DataKind::Binary(op, Box::new(left), Box::new(right)));
        }
        match (builtin, args) {
            (Builtin::Not | Builtin::Complement, [a]) => {
                node(DataKind::Unary(UnaryOp::Not, Box::new(self.data(a))))
            }
            (Builtin::Negate, [a]) => node(DataKind::Unary(UnaryOp::Minus, Box::new(self.data(a)))),
            (Builtin::Size, [a]) => node(DataKind::Unary(UnaryOp::Size, Box::new(self.data(a)))),
            (Builtin::FSetToSet | Builtin::FBagToBag, [a]) => {
                let inner = self.data(a);
                self.ascribe(inner, expr.sort)
            }
            (Builtin::FSetToFBag, _) => self.call("Set2Bag", args),
            (Builtin::FBagToFSet, _) => self.call("Bag2Set", args),
            (
                Builtin::PosToNat
                | Builtin::PosToInt
                | Builtin::PosToReal
                | Builtin::NatToInt
                | Builtin::NatToReal
                | Builtin::IntToReal,
                [a],
            ) => {
                let inner = self.data(a);
                if self.style >= Style::Explicit { lift(inner, a.sort, expr.sort) } else { inner }
            }
            (Builtin::Update, [f, a, b]) => {
                let (f, a, b) = (self.data(f), self.data(a), self.data(b));
                node(DataKind::Update(Box::new(f), Box::new(a), Box::new(b)))
            }
            (Builtin::SetInsert | Builtin::BagInsert, _) => self.insertions(expr),
            _ => self.call(builtin.name(), args),
        }
    }

    /// Splits a chain of one built-in that continues in the last argument: the links' other
    /// arguments, and the end.
    fn chain<'e>(&self, expr: &'e Expr, link: Builtin) -> (Vec<&'e [Expr]>, &'e Expr) {
        let mut links = Vec::new();
        let mut rest = expr;
        while let Some((builtin, args)) = rest.as_builtin(self.signature)
            && builtin == link
            && let Some((next, own)) = args.split_last()
        {
            links.push(own);
            rest = next;
        }
        (links, rest)
    }

    fn is_empty(&self, expr: &Expr) -> bool {
        matches!(
            expr.as_builtin(self.signature),
            Some((Builtin::EmptyList | Builtin::EmptySet | Builtin::EmptyBag, _))
        )
    }

    fn cons(&mut self, expr: &Expr) -> ast::Data {
        let (links, rest) = self.chain(expr, Builtin::Cons);
        if self.is_empty(rest) {
            return node(DataKind::List(links.into_iter().map(|l| self.data(&l[0])).collect()));
        }
        let mut out = self.data(rest);
        for link in links.into_iter().rev() {
            out = node(DataKind::Binary(
                BinaryOp::Cons,
                Box::new(self.data(&link[0])),
                Box::new(out),
            ));
        }
        out
    }

    /// Converts insertions into a set or bag: an enumeration, joined with the remaining set.
    fn insertions(&mut self, expr: &Expr) -> ast::Data {
        let bag = matches!(expr.as_builtin(self.signature), Some((Builtin::BagInsert, _)));
        let (links, rest) =
            self.chain(expr, if bag { Builtin::BagInsert } else { Builtin::SetInsert });
        let enumeration = node(if bag {
            DataKind::Bag(links.into_iter().map(|l| (self.data(&l[0]), self.data(&l[1]))).collect())
        } else {
            DataKind::Set(links.into_iter().map(|l| self.data(&l[0])).collect())
        });
        if self.is_empty(rest) {
            return enumeration;
        }
        node(DataKind::Binary(BinaryOp::Add, Box::new(enumeration), Box::new(self.data(rest))))
    }
}

/// Returns the sorts of the variables that a binder declares. Variables of normal forms are in no
/// signature.
pub fn sorts_of_bound(signature: &Signature, e: &Expr) -> Vec<SortId> {
    let ExprKind::Bind(binder, vars, body) = &e.kind else { return Vec::new() };
    match (binder, signature.sorts.kind(e.sort)) {
        (Binder::Lambda, SortKind::Function(domain, _)) => domain.to_vec(),
        (Binder::SetComprehension | Binder::BagComprehension, kind) => match kind {
            SortKind::Set(element)
            | SortKind::FSet(element)
            | SortKind::Bag(element)
            | SortKind::FBag(element) => vec![*element],
            _ => vec![basic::BOOL; vars.len()],
        },
        // A variable that does not occur has some sort.
        _ => vars.iter().map(|v| sort_of_var(signature, *v, body).unwrap_or(basic::BOOL)).collect(),
    }
}

fn apply(name: &str, args: Vec<ast::Data>) -> ast::Data {
    node(DataKind::Apply(Box::new(node(DataKind::Name(name.into()))), args))
}

fn var_decl(signature: &Signature, names: &mut VarNames, var: VarId) -> ast::VarDecl {
    ast::VarDecl {
        name: node(names.name(signature, var)),
        sort: sort_ast(signature, signature.var(var).sort),
    }
}

/// Adds the coercion from one sort of numbers to a larger one.
fn lift(data: ast::Data, from: SortId, to: SortId) -> ast::Data {
    match (from, to) {
        (basic::POS, basic::NAT) => apply("Pos2Nat", vec![data]),
        (basic::POS, basic::INT) => apply("Nat2Int", vec![apply("Pos2Nat", vec![data])]),
        (basic::POS, basic::REAL) => apply("Pos2Real", vec![data]),
        (basic::NAT, basic::INT) => apply("Nat2Int", vec![data]),
        (basic::NAT, basic::REAL) => apply("Nat2Real", vec![data]),
        (basic::INT, basic::REAL) => apply("Int2Real", vec![data]),
        _ => data,
    }
}

fn binary(builtin: Builtin) -> Option<BinaryOp> {
    Some(match builtin {
        Builtin::Equal => BinaryOp::Equal,
        Builtin::NotEqual => BinaryOp::NotEqual,
        Builtin::Less | Builtin::ProperSubset => BinaryOp::Less,
        Builtin::LessEqual | Builtin::Subset => BinaryOp::LessEqual,
        Builtin::Greater => BinaryOp::Greater,
        Builtin::GreaterEqual => BinaryOp::GreaterEqual,
        Builtin::And => BinaryOp::And,
        Builtin::Or => BinaryOp::Or,
        Builtin::Implies => BinaryOp::Implies,
        Builtin::Add | Builtin::Union => BinaryOp::Add,
        Builtin::Subtract | Builtin::Difference => BinaryOp::Subtract,
        Builtin::Multiply | Builtin::Intersection => BinaryOp::Multiply,
        Builtin::Divide => BinaryOp::Divide,
        Builtin::Div => BinaryOp::Div,
        Builtin::Mod => BinaryOp::Mod,
        Builtin::Cons => BinaryOp::Cons,
        Builtin::Snoc => BinaryOp::Snoc,
        Builtin::Concat => BinaryOp::Concat,
        Builtin::At => BinaryOp::At,
        Builtin::In => BinaryOp::In,
        _ => return None,
    })
}

/// Result of type checking a printed expression.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Retyped {
    /// The same expression.
    Same,
    /// Another expression of the same sort.
    Otherwise,
    /// An error, or another sort.
    Not,
}

/// Printer of expressions of one specification such that the text gets the same sorts again.
pub struct SpecPrinter {
    /// The data with valid names only.
    pub data: DataSpec,
    /// Names of variables so far.
    pub names: VarNames,
    checker: Checker,
}

impl SpecPrinter {
    /// Makes all names of sorts and operations valid. Variables get no names of operations,
    /// declared or built in, of the data.
    pub fn new(data: &DataSpec) -> Self {
        let mut data = data.clone();
        let signature = &mut data.signature;
        let mut sort_names: AHashSet<String> = AHashSet::new();
        let mut anonymous: Vec<usize> = Vec::new();
        for (i, named) in signature.sorts.named.iter_mut().enumerate() {
            if valid(&named.name) == named.name {
                sort_names.insert(named.name.clone());
            } else {
                anonymous.push(i);
            }
        }
        for (name, _) in &signature.aliases {
            sort_names.insert(name.clone());
        }
        for i in anonymous {
            let named = &mut signature.sorts.named[i];
            let base =
                if named.name.starts_with('(') { "Struct".into() } else { valid(&named.name) };
            named.name = unused_name(&base, |n| sort_names.contains(n));
            sort_names.insert(named.name.clone());
        }
        let ops: Vec<(OpId, String)> = signature
            .ops()
            .filter(|(_, op)| !matches!(op.kind, OpKind::Builtin(_)))
            .map(|(id, op)| (id, op.name.clone()))
            .collect();
        let mut used: AHashSet<String> = ops.iter().map(|o| o.1.clone()).collect();
        let mut renamed: AHashMap<String, String> = AHashMap::new();
        for (id, name) in ops {
            let fresh = valid(&name);
            if fresh == name {
                continue;
            }
            let fresh = renamed
                .entry(name)
                .or_insert_with(|| unused_name(&fresh, |n| used.contains(n)))
                .clone();
            used.insert(fresh.clone());
            signature.op_mut(id).name = fresh;
        }
        let builtin = signature.ops().filter(|(_, op)| matches!(op.kind, OpKind::Builtin(_)));
        used.extend(builtin.map(|(_, op)| op.name.clone()));
        let checker = Checker::new(data.clone());
        Self { data, names: VarNames { used, ..VarNames::default() }, checker }
    }

    /// Returns the declaration of a variable, giving it a name.
    pub fn declare(&mut self, var: VarId) -> ast::VarDecl {
        var_decl(&self.data.signature, &mut self.names, var)
    }

    /// Returns a syntax tree that type checks, at sort `expected` or alone, to the same expression,
    /// except for identities that ascribe sorts; if that is impossible, to one that differs in
    /// coercions only.
    pub fn round_trip(&mut self, expr: &Expr, expected: Option<SortId>) -> ast::Data {
        // The conjuncts are printed one by one, so that coercions are written only where necessary.
        if let Some((builtin @ (Builtin::And | Builtin::Or), [left, right])) =
            expr.as_builtin(&self.data.signature)
        {
            let op = if builtin == Builtin::And { BinaryOp::And } else { BinaryOp::Or };
            return stacker::maybe_grow(64 << 10, 1 << 20, || {
                let left = self.round_trip(left, Some(basic::BOOL));
                let right = self.round_trip(right, Some(basic::BOOL));
                node(DataKind::Binary(op, Box::new(left), Box::new(right)))
            });
        }
        let bare = self.convert(expr, Style::Bare);
        if self.retypes(&bare, expr, expected) == Retyped::Same {
            return bare;
        }
        let explicit = self.convert(expr, Style::Explicit);
        let retyped = self.retypes(&explicit, expr, expected);
        if retyped == Retyped::Same {
            return explicit;
        }
        // Another expression of the same sort may have another meaning: an operation that is
        // overloaded with finite and general sets has only an argument to select it.
        let ascribed = self.convert(expr, Style::Ascribed);
        if retyped == Retyped::Otherwise && self.retypes(&ascribed, expr, expected) != Retyped::Same
        {
            return explicit;
        }
        ascribed
    }

    /// Returns the syntax tree without coercions.
    pub(crate) fn bare(&mut self, expr: &Expr) -> ast::Data {
        self.convert(expr, Style::Bare)
    }

    fn convert(&mut self, expr: &Expr, style: Style) -> ast::Data {
        Converter { signature: &self.data.signature, names: &mut self.names, style }.data(expr)
    }

    fn retypes(&mut self, data: &ast::Data, expr: &Expr, expected: Option<SortId>) -> Retyped {
        let mut free = Vec::new();
        expr.free_vars(&mut free);
        let mark = self.checker.open_scope();
        for var in free {
            if self.names.contains(var) {
                let name = self.names.name(&self.data.signature, var);
                self.checker.bind(&name, var);
            }
        }
        let typed = self.checker.check(data, expected);
        self.checker.close_scope(mark, "var", Span::default());
        match typed {
            Err(_) => Retyped::Not,
            Ok(typed) if typed.sort != expr.sort => Retyped::Not,
            Ok(typed)
                if is_equal(&self.checker.data.signature, &typed, &self.data.signature, expr) =>
            {
                Retyped::Same
            }
            Ok(_) => Retyped::Otherwise,
        }
    }

    /// Returns all sections of the data specification.
    pub fn sections(&mut self) -> Vec<Section> {
        let mut sections = Vec::new();
        let signature = &self.data.signature;
        let mut sorts: Vec<(ast::Ident, Option<ast::Sort>)> = Vec::new();
        let mut constructors = Vec::new();
        for named in &signature.sorts.named {
            let definition = if named.structured {
                Some(struct_ast(signature, &named.constructors))
            } else {
                None
            };
            if !named.structured {
                constructors.extend(named.constructors.iter().map(|c| op_decl(signature, *c)));
            }
            sorts.push((node(named.name.clone()), definition));
        }
        for (name, sort) in &signature.aliases {
            sorts.push((node(name.clone()), Some(sort_ast(signature, *sort))));
        }
        if !sorts.is_empty() {
            sections.push(Section::Sorts(sorts));
        }
        if !constructors.is_empty() {
            sections.push(Section::Constructors(constructors));
        }
        let mappings: Vec<_> = signature
            .ops()
            .filter(|(_, op)| op.kind == OpKind::Mapping)
            .map(|(id, _)| op_decl(signature, id))
            .collect();
        if !mappings.is_empty() {
            sections.push(Section::Mappings(mappings));
        }
        let equations = std::mem::take(&mut self.data.equations);
        let mut rest = equations.as_slice();
        while !rest.is_empty() {
            let (section, taken) = self.equation_group(rest);
            sections.push(section);
            rest = &rest[taken..];
        }
        self.data.equations = equations;
        sections
    }

    /// Returns a section of the first equations that can share a `var` section with their
    /// variables' own names.
    fn equation_group(&mut self, equations: &[Equation]) -> (Section, usize) {
        let outer = self.names.clone();
        let mut by_name: AHashMap<&str, VarId> = AHashMap::new();
        let mut vars: Vec<VarId> = Vec::new();
        let mut taken = 0;
        for equation in equations {
            let name = |v: VarId| self.data.signature.var(v).name.as_str();
            if taken > 0
                && equation.vars.iter().any(|v| by_name.get(name(*v)).is_some_and(|w| w != v))
            {
                break;
            }
            for v in &equation.vars {
                by_name.entry(name(*v)).or_insert(*v);
                if !vars.contains(v) {
                    vars.push(*v);
                }
            }
            taken += 1;
        }
        let decls: Vec<ast::VarDecl> = vars.iter().map(|v| self.declare(*v)).collect();
        let shared = self.names.clone();
        let mut out = Vec::with_capacity(taken);
        for equation in &equations[..taken] {
            let condition =
                equation.condition.as_ref().map(|c| self.round_trip(c, Some(basic::BOOL)));
            let lhs = self.bare(&equation.lhs);
            let rhs = self.round_trip(&equation.rhs, Some(equation.lhs.sort));
            out.push(ast::Equation { condition, lhs, rhs, span: Span::default() });
            self.names = shared.clone();
        }
        self.names = outer;
        (Section::Equations(decls, out), taken)
    }
}

fn op_decl(signature: &Signature, op: OpId) -> (ast::Ident, ast::Sort) {
    let op = signature.op(op);
    (node(op.name.clone()), sort_ast(signature, op.sort))
}

/// Returns the definition of a structured sort.
fn struct_ast(signature: &Signature, constructors: &[OpId]) -> ast::Sort {
    let mut projections: AHashMap<(OpId, u32), &str> = AHashMap::new();
    let mut recognisers: AHashMap<OpId, &str> = AHashMap::new();
    for (_, op) in signature.ops() {
        match &op.kind {
            OpKind::Projection(places) => places.iter().for_each(|p| {
                projections.insert(*p, &op.name);
            }),
            OpKind::Recogniser(of) => of.iter().for_each(|c| {
                recognisers.insert(*c, &op.name);
            }),
            _ => {}
        }
    }
    let constructors = constructors.iter().map(|&c| {
        let op = signature.op(c);
        let args = signature.domain_range(op.sort).0.iter().enumerate();
        ast::StructConstructor {
            name: node(op.name.clone()),
            args: args
                .map(|(i, s)| {
                    (
                        projections.get(&(c, narrow::index(i))).map(|p| node((*p).to_owned())),
                        sort_ast(signature, *s),
                    )
                })
                .collect(),
            recogniser: recognisers.get(&c).map(|r| node((*r).to_owned())),
        }
    });
    node(ast::SortKind::Struct(constructors.collect()))
}

/// True if two expressions are equal up to bound variables, over two signatures that share sorts
/// and user operations (the first extends the second).
fn is_equal(a_signature: &Signature, a: &Expr, b_signature: &Signature, b: &Expr) -> bool {
    struct Comparison<'a> {
        a: &'a Signature,
        b: &'a Signature,
        bound: AHashMap<VarId, VarId>,
    }
    impl Comparison<'_> {
        fn bind(&mut self, a: &Expr, b: &Expr, vars: impl Iterator<Item = (VarId, VarId)>) -> bool {
            self.bound.extend(vars);
            sorts_of_bound(self.a, a) == sorts_of_bound(self.b, b)
        }
        fn go(&mut self, a: &Expr, b: &Expr) -> bool {
            stacker::maybe_grow(64 << 10, 1 << 20, || self.step(a, b))
        }
        fn all_equal(&mut self, a: &[Expr], b: &[Expr]) -> bool {
            a.len() == b.len() && a.iter().zip(b).all(|(x, y)| self.go(x, y))
        }
        fn step(&mut self, a: &Expr, b: &Expr) -> bool {
            if a.sort != b.sort {
                return false;
            }
            if let Some(argument) = ascribed_argument(a)
                && ascribed_argument(b).is_none()
            {
                return self.go(argument, b);
            }
            match (&a.kind, &b.kind) {
                (ExprKind::Var(v), ExprKind::Var(w)) => {
                    self.bound.get(v).copied().unwrap_or(*v) == *w
                }
                (_, ExprKind::Number(n)) => numeral(self.a, a).is_some_and(|m| m == *n),
                (ExprKind::Op(f), ExprKind::Op(g)) => self.a.op(*f) == self.b.op(*g),
                (ExprKind::Apply(f, xs), ExprKind::Apply(g, ys)) => {
                    self.go(f, g) && self.all_equal(xs, ys)
                }
                (ExprKind::Bind(p, vs, x), ExprKind::Bind(q, ws, y)) => {
                    p == q
                        && vs.len() == ws.len()
                        && self.bind(a, b, vs.iter().copied().zip(ws.iter().copied()))
                        && self.go(x, y)
                }
                (ExprKind::Where(x, ds), ExprKind::Where(y, es)) => {
                    ds.len() == es.len() && ds.iter().zip(es).all(|(d, e)| self.go(&d.1, &e.1)) && {
                        self.bound.extend(ds.iter().zip(es).map(|(d, e)| (d.0, e.0)));
                        self.go(x, y)
                    }
                }
                _ => false,
            }
        }
    }
    Comparison { a: a_signature, b: b_signature, bound: AHashMap::new() }.go(a, b)
}

/// Returns the value of digits with a sign and conversions, which the text of a number consists of.
fn numeral(signature: &Signature, expr: &Expr) -> Option<BigInt> {
    match (&expr.kind, expr.as_builtin(signature)) {
        (ExprKind::Number(n), _) => Some(n.clone()),
        (_, Some((Builtin::Negate, [inner]))) => numeral(signature, inner).map(|n| -n),
        (
            _,
            Some((
                Builtin::PosToNat
                | Builtin::PosToInt
                | Builtin::PosToReal
                | Builtin::NatToInt
                | Builtin::NatToReal
                | Builtin::IntToReal,
                [inner],
            )),
        ) => numeral(signature, inner),
        _ => None,
    }
}

/// Returns the argument of an identity that ascribes a sort to it ([`Converter::ascribe`]).
fn ascribed_argument(expr: &Expr) -> Option<&Expr> {
    let ExprKind::Apply(head, args) = &expr.kind else { return None };
    let ExprKind::Bind(Binder::Lambda, vars, body) = &head.kind else { return None };
    match (&vars[..], &body.kind, &args[..]) {
        ([v], ExprKind::Var(w), [argument]) if v == w => Some(argument),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::typecheck::{check_data_specification, check_expression, check_expression_with};
    use mu_syntax::{parse_data, parse_specification};

    fn data_of(text: &str) -> DataSpec {
        check_data_specification(
            &parse_specification(Default::default(), &format!("{text}\ninit delta;")).unwrap(),
        )
        .unwrap()
        .0
    }

    const DECLARATIONS: &str =
        "sort D = struct d1 | d2(num: Nat, next: D)?is_d2; S; N = Nat; F = Nat -> Nat; L = List(struct f(x: L)?is_f | g);
cons c: S; d: Nat # S -> S;
map h: Nat -> Nat; over: Pos -> Bool; over: Nat -> Bool; l: List(D) -> Nat; l: List(S) -> Nat; k: (Nat -> Nat) # Set(Nat) -> Bool; e: D;
var n, m: Nat; s: S; f: F;
eqn h(n) = n + 1;
    n > 3 && over(1) -> h(n) = if(n in {1, 2}, n, 2 * n);
    over(n) = exists x: Pos. x == n && !(forall y: Nat. y < x => over(y));
    l([e, d1]) = 3;
    k(f, {1}) = f[0 -> 2](7) == 3;
var n: Pos;
eqn over(n) = n div 2 == 0 whr z = n end;
    h(n) = #{n, 3} + #{1: n} + count(n, {1: 2, n: 5} + {:}) + head([1, 2] ++ [] <| n);
    e = d2(1, d1);
";

    #[test]
    fn data_specifications_round_trip() {
        let one = data_of(DECLARATIONS);
        let text = data_spec(&one);
        let two = data_of(&text);
        assert_eq!(data_spec(&two), text);
        assert_eq!(one.equations.len(), two.equations.len());
        for (a, b) in one.equations.iter().zip(&two.equations) {
            assert_eq!(a.condition.is_some(), b.condition.is_some());
            assert_eq!(
                one.signature.sorts.text(a.rhs.sort),
                two.signature.sorts.text(b.rhs.sort),
                "{text}"
            );
        }
        assert!(text.contains("struct d1 | d2(num: Nat, next: D)?is_d2"), "{text}");
        assert!(text.contains("Struct = struct f(x: List(Struct))?is_f | g"), "{text}");
    }

    #[test]
    fn expressions_print_as_written() {
        let mut data = data_of(DECLARATIONS);
        for text in [
            "h(3)",
            "-3 + 4",
            "[1, 2] ++ [0]",
            "{1, 2} + {x: Nat | x > 3}",
            "{1: 2} - {:}",
            "d2(1, d1) == e",
            "forall x, y: Nat. x == y => over(x)",
            "(lambda x: Nat. x + 1)(3)",
            "h[1 -> 2][3 -> 4](5)",
            "[d1, d1] . 1",
            "true && (false || !true)",
            "5 mod 3 + 2 div 1",
            "x + y whr x = 1, y = 2 end",
            "exp(2, 3) - sqrt(9)",
            "[#[1, 2]]",
        ] {
            let expr =
                check_expression(&parse_data(Default::default(), text).unwrap(), &mut data, None)
                    .unwrap();
            assert_eq!(expression(&data.signature, &expr).replace(' ', ""), text.replace(' ', ""));
        }
    }

    /// Returns `forall v. left == right` as text.
    fn for_all_equal(signature: &mut Signature, v: VarId, left: Expr, right: Expr) -> String {
        let equal = Expr::equal(signature, left, right);
        let all =
            Expr::new(ExprKind::Bind(Binder::Forall, vec![v], equal), basic::BOOL, Span::default());
        expression(signature, &all)
    }

    #[test]
    fn clashing_variables_get_different_names() {
        let mut signature = Signature::default();
        let x = signature.fresh_var("x", basic::NAT);
        let y = signature.fresh_var("x", basic::NAT);
        let (a, b) = (Expr::var(&signature, x), Expr::var(&signature, y));
        assert_eq!(for_all_equal(&mut signature, y, a, b), "forall x_1: Nat. x == x_1");
    }

    #[test]
    fn bound_variables_have_no_keyword_as_a_name() {
        let mut signature = Signature::default();
        let x = signature.fresh_var("in_1", basic::NAT);
        let (a, b) = (Expr::var(&signature, x), Expr::number(3, basic::NAT));
        assert_eq!(for_all_equal(&mut signature, x, a, b), "forall in_: Nat. in_ == 3");
    }

    #[test]
    fn bound_variables_do_not_capture_operations() {
        let mut data = data_of(DECLARATIONS);
        let sort = data.signature.ops().find(|(_, o)| o.name == "d1").unwrap().1.sort;
        let (constant, _) = data.signature.ops().find(|(_, o)| o.name == "e").unwrap();
        let v = data.signature.fresh_var("e", sort);
        let (left, right) = (Expr::var(&data.signature, v), Expr::op(&data.signature, constant));
        let text = for_all_equal(&mut data.signature, v, left, right);
        assert_eq!(text, "forall e_1: D. e_1 == e");
    }

    #[test]
    fn variables_do_not_capture_builtin_operations() {
        let mut data = DataSpec::default();
        let binary = SortKind::Function([basic::NAT, basic::NAT].into(), basic::NAT);
        let sort = data.signature.sorts.intern(binary);
        let v = data.signature.fresh_var("max", sort);
        let number = |n: u32| Expr::number(n, basic::NAT);
        let args = vec![number(2), number(3)];
        let max = Expr::builtin(&mut data.signature, Builtin::Max, args.clone(), basic::NAT);
        let call = ExprKind::Apply(Expr::var(&data.signature, v), args);
        let call = Expr::new(call, basic::NAT, Span::default());
        let equal = Expr::equal(&mut data.signature, call.clone(), max.clone());
        let mut printer = SpecPrinter::new(&data);
        printer.declare(v);
        let printed = printer.round_trip(&equal, Some(basic::BOOL));
        assert!(mu_syntax::print::data(&printed).starts_with("max_1("), "{printed:?}");
        let text = for_all_equal(&mut data.signature, v, call, max);
        assert_eq!(text, "forall max_1: Nat # Nat -> Nat. max_1(2, 3) == max(2, 3)");
    }

    #[test]
    fn sorts_of_results_select_overloaded_operations() {
        let mut data = data_of("map f: Nat -> Nat; f: Nat -> Int; g: Nat -> Bool; g: Int -> Bool;");
        let find = |data: &DataSpec, name: &str, last: bool| {
            let found: Vec<OpId> =
                data.signature.ops().filter(|(_, o)| o.name == name).map(|(id, _)| id).collect();
            found[usize::from(last)]
        };
        let (f, g) = (find(&data, "f", true), find(&data, "g", true));
        let inner = Expr::apply(&data.signature, f, vec![Expr::number(0, basic::NAT)]);
        let outer = Expr::apply(&data.signature, g, vec![inner]);
        let printed = SpecPrinter::new(&data).round_trip(&outer, Some(basic::BOOL));
        let text = mu_syntax::print::data(&printed);
        assert_eq!(text, "g((lambda x: Int. x)(f(0)))");
        let tree = parse_data(Default::default(), &text).unwrap();
        let read = check_expression(&tree, &mut data, None).unwrap();
        assert_eq!(expression(&data.signature, &read), text);
    }

    #[test]
    fn names_of_bound_variables_depend_on_the_value_only() {
        let mut data = data_of(DECLARATIONS);
        for (text, expected) in [
            ("lambda x_1: Nat. x_1 > 3", "lambda x: Nat. x > 3"),
            ("lambda e_var: D. e_var == e", "lambda e_1: D. e_1 == e"),
            ("lambda e_1_2: D. e_1_2 == e", "lambda e_1: D. e_1 == e"),
            ("lambda y_2, y: Nat. y_2 > y", "lambda y, y_1: Nat. y > y_1"),
            ("lambda _1, a_b_: Nat. _1 > a_b_", "lambda _1, a_b_: Nat. _1 > a_b_"),
        ] {
            let expr =
                check_expression(&parse_data(Default::default(), text).unwrap(), &mut data, None)
                    .unwrap();
            assert_eq!(expression(&data.signature, &expr), expected);
        }
    }

    #[test]
    fn sorts_of_sets_select_overloaded_operations() {
        let mut data = data_of("map f: FSet(Nat) -> Bool; f: Set(Nat) -> Bool; s: Set(Nat);");
        for (text, expected) in [
            ("f(s)", "f(s)"),
            ("f({1})", "f({1})"),
            ("f((lambda x: Set(Nat). x)({1}))", "f((lambda x: Set(Nat). x)({Pos2Nat(1)}))"),
        ] {
            let expr =
                check_expression(&parse_data(Default::default(), text).unwrap(), &mut data, None)
                    .unwrap();
            // An operand that only a sort distinguishes, as rewriting makes it.
            let expr = match ascribed_argument(match &expr.kind {
                ExprKind::Apply(_, args) => &args[0],
                _ => panic!("{expr:?}"),
            }) {
                Some(inner) => {
                    let ExprKind::Apply(head, _) = &expr.kind else { panic!("{expr:?}") };
                    let kind = ExprKind::Apply(head.clone(), vec![inner.clone()]);
                    Expr::new(kind, expr.sort, Span::default())
                }
                None => expr,
            };
            let printed = SpecPrinter::new(&data).round_trip(&expr, Some(basic::BOOL));
            assert_eq!(mu_syntax::print::data(&printed), expected);
        }
    }

    #[test]
    fn coercions_are_written_where_they_matter() {
        let mut data = data_of(DECLARATIONS);
        let cases = [
            ("over(p)", "over(p)"),
            ("over(Pos2Nat(p))", "over(Pos2Nat(p))"),
            ("h(Pos2Nat(p)) == 3", "h(p) == 3"),
            ("Pos2Nat(p) == Pos2Nat(p)", "Pos2Nat(p) == Pos2Nat(p)"),
            ("over(Pos2Nat(p)) && h(p) > 3", "over(Pos2Nat(p)) && h(p) > 3"),
        ];
        let p = data.signature.fresh_var("p", basic::POS);
        for (text, expected) in cases {
            let expr = check_expression_with(
                &parse_data(Default::default(), text).unwrap(),
                &mut data,
                &[p],
                None,
            )
            .unwrap();
            let mut printer = SpecPrinter::new(&data);
            printer.declare(p);
            let printed = printer.round_trip(&expr, Some(basic::BOOL));
            assert_eq!(mu_syntax::print::data(&printed), expected);
        }
        // An empty list among overloads is distinguished only by its sort.
        let element = data.signature.ops().find(|(_, o)| o.name == "d1").unwrap().1.sort;
        let list = data.signature.sorts.intern(SortKind::List(element));
        let (l, _) = data
            .signature
            .ops()
            .find(|(_, o)| o.name == "l" && data.signature.domain_range(o.sort).0[0] == list)
            .unwrap();
        let empty = Expr::builtin(&mut data.signature, Builtin::EmptyList, vec![], list);
        let call = Expr::apply(&data.signature, l, vec![empty]);
        let mut printer = SpecPrinter::new(&data);
        let printed = mu_syntax::print::data(&printer.round_trip(&call, Some(basic::NAT)));
        assert_eq!(printed, "l((lambda x: List(D). x)([]))");
        assert!(
            check_expression(&parse_data(Default::default(), &printed).unwrap(), &mut data, None)
                .is_ok()
        );
    }

    #[test]
    fn names_become_valid() {
        assert_eq!(valid("@cNat"), "_cNat");
        assert_eq!(valid("sum"), "sum_");
        assert_eq!(valid("true"), "true_");
        assert_eq!(valid("head"), "head");
        assert_eq!(valid("3x"), "x3x");
    }

    #[test]
    fn long_lists_print() {
        let mut data = DataSpec::default();
        let text = format!("[{}]", vec!["1"; 50_000].join(", "));
        let expr =
            check_expression(&parse_data(Default::default(), &text).unwrap(), &mut data, None)
                .unwrap();
        assert_eq!(expression(&data.signature, &expr), text);
    }
}
