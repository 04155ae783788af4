//! Sorts, variables and data expressions: from grammar pairs to [`ast`](crate::ast) trees. Cost:
//! linear in the pairs.

use super::operators::{Operands, OperatorStack, StackOperator};
use super::{Built, P, Rule, TreeBuilder};
use crate::ast::*;
use crate::precedence::data as level;
use mu_base::{Diagnostic, Span};

/// Operators on the stack.
pub(super) enum DataOp {
    Unary(UnaryOp, Span),
    Binder(Binder, Vec<VarDecl>, Span),
    Infix(BinaryOp),
}

/// The three data binders.
#[derive(Clone, Copy)]
pub(super) enum Binder {
    Forall,
    Exists,
    Lambda,
}

impl StackOperator for DataOp {
    type Tree = Data;
    fn reduce(self, operands: &mut Operands<Data>) {
        let last = operands.pop();
        let built = match self {
            DataOp::Unary(op, span) => {
                let span = span.to(last.span);
                Node::new(DataKind::Unary(op, Box::new(last)), span)
            }
            DataOp::Binder(binder, vars, span) => {
                let span = span.to(last.span);
                let body = Box::new(last);
                let kind = match binder {
                    Binder::Forall => DataKind::Forall(vars, body),
                    Binder::Exists => DataKind::Exists(vars, body),
                    Binder::Lambda => DataKind::Lambda(vars, body),
                };
                Node::new(kind, span)
            }
            DataOp::Infix(op) => {
                let first = operands.pop();
                let span = first.span.to(last.span);
                Node::new(DataKind::Binary(op, Box::new(first), Box::new(last)), span)
            }
        };
        operands.push(built);
    }
}

impl TreeBuilder {
    // ---- sorts

    /// Builds a sort that is not a product.
    pub(super) fn sort(&self, pair: P) -> Built<Sort> {
        let span = self.span(&pair);
        self.single_sort(self.sort_product(pair)?, span)
    }

    fn single_sort(&self, mut product: Vec<Sort>, span: Span) -> Built<Sort> {
        match product.pop() {
            Some(sort) if product.is_empty() => Ok(sort),
            _ => Err(self
                .refuse(span, "a product of sorts is not a sort by itself")
                .note("`A # B` may only stand left of `->`, or in the declaration of an action")),
        }
    }

    /// Builds `A # B # …`: a product, of length one for a plain sort.
    pub(super) fn sort_product(&self, pair: P) -> Built<Vec<Sort>> {
        // Segments between arrows, each a product.
        let mut segments: Vec<Vec<Sort>> = vec![Vec::new()];
        let whole = self.span(&pair);
        for p in self.parts(pair) {
            match p.as_rule() {
                Rule::arrow => segments.push(Vec::new()),
                Rule::product => {}
                _ => {
                    let operand = self.sort_operand(p)?;
                    segments.last_mut().expect("there is a first segment").extend(operand);
                }
            }
        }
        let last = segments.pop().unwrap_or_default();
        if segments.is_empty() {
            return Ok(last);
        }
        let mut range = self.single_sort(last, whole)?;
        while let Some(domain) = segments.pop() {
            let span = domain.first().map_or(range.span, |d| d.span.to(range.span));
            range = Node::new(SortKind::Function(domain, Box::new(range)), span);
        }
        Ok(vec![range])
    }

    fn sort_operand(&self, pair: P) -> Built<Vec<Sort>> {
        let span = self.span(&pair);
        let kind = match pair.as_rule() {
            Rule::sort_group => return self.sort_product(self.only_part(pair)),
            Rule::ident => SortKind::Name(pair.as_str().to_owned()),
            Rule::sort_basic => match pair.as_str() {
                "Bool" => SortKind::Bool,
                "Pos" => SortKind::Pos,
                "Nat" => SortKind::Nat,
                "Int" => SortKind::Int,
                _ => SortKind::Real,
            },
            Rule::sort_container => {
                let mut inner = self.parts(pair);
                let container = self.next(&mut inner).as_str();
                let element = Box::new(self.sort(self.next(&mut inner))?);
                match container {
                    "List" => SortKind::List(element),
                    "Set" => SortKind::Set(element),
                    "Bag" => SortKind::Bag(element),
                    "FSet" => SortKind::FSet(element),
                    _ => SortKind::FBag(element),
                }
            }
            _ => SortKind::Struct(
                self.parts(pair).map(|c| self.constructor(c)).collect::<Built<_>>()?,
            ),
        };
        Ok(vec![Node::new(kind, span)])
    }

    fn constructor(&self, pair: P) -> Built<StructConstructor> {
        let mut inner = self.parts(pair);
        let name = self.ident(self.next(&mut inner));
        let mut args = Vec::new();
        let mut recogniser = None;
        for p in inner {
            if p.as_rule() == Rule::ident {
                recogniser = Some(self.ident(p));
                continue;
            }
            for projection in self.parts(p) {
                let mut parts = self.parts(projection);
                let first = self.next(&mut parts);
                args.push(match parts.next() {
                    Some(sort) => (Some(self.ident(first)), self.sort(sort)?),
                    None => (None, self.sort(first)?),
                });
            }
        }
        Ok(StructConstructor { name, args, recogniser })
    }

    // ---- declarations

    /// Builds `ids_decl`: names and their common sort.
    pub(super) fn ids_decl(&self, pair: P) -> Built<Vec<(Ident, Sort)>> {
        let mut inner = self.parts(pair);
        let ids = self.idents(self.next(&mut inner));
        let sort = self.sort(self.next(&mut inner))?;
        Ok(ids.into_iter().map(|id| (id, sort.clone())).collect())
    }

    /// Builds `var_decls`.
    pub(super) fn var_decls(&self, pair: P) -> Built<Vec<VarDecl>> {
        let mut vars = Vec::new();
        for group in self.parts(pair) {
            vars.extend(
                self.ids_decl(group)?.into_iter().map(|(name, sort)| VarDecl { name, sort }),
            );
        }
        Ok(vars)
    }

    // ---- expressions

    /// Builds a `data` or `instant` pair.
    pub(super) fn data(&self, pair: P) -> Built<Data> {
        self.data_sequence(self.parts(pair))
    }

    /// Builds a flat list of operands and operators; also one that was parsed as a `proc` and turns
    /// out to be data.
    pub(super) fn data_sequence<'i>(&self, pairs: impl Iterator<Item = P<'i>>) -> Built<Data> {
        let mut pairs = pairs.peekable();
        let mut stack = OperatorStack::<DataOp>::new();
        loop {
            let Some(p) = pairs.next() else {
                unreachable!("the grammar ends an expression with an operand")
            };
            let span = self.span(&p);
            match p.as_rule() {
                Rule::not => {
                    stack.prefix(level::UNARY, DataOp::Unary(UnaryOp::Not, span));
                    continue;
                }
                Rule::minus => {
                    stack.prefix(level::UNARY, DataOp::Unary(UnaryOp::Minus, span));
                    continue;
                }
                Rule::size => {
                    stack.prefix(level::UNARY, DataOp::Unary(UnaryOp::Size, span));
                    continue;
                }
                Rule::binder => {
                    let (binder, vars) = self.binder(p)?;
                    stack.prefix(level::BINDER, DataOp::Binder(binder, vars, span));
                    continue;
                }
                _ => {}
            }
            let mut operand = self.data_primary(p)?;
            while let Some(p) = pairs
                .next_if(|p| matches!(p.as_rule(), Rule::args | Rule::proc_args | Rule::update))
            {
                operand = self.data_postfix(operand, p)?;
            }
            stack.operand(operand);
            while let Some(p) = pairs.next_if(|p| p.as_rule() == Rule::whr) {
                let span = self.span(&p);
                let definitions =
                    self.parts(p).map(|a| self.assignment(a)).collect::<Built<Vec<_>>>()?;
                // With an operator after `end`, it is an operand of that one, as in the toolset: in
                // `1 + w whr w = 2 end * 3` a factor.
                let operator = pairs.peek().and_then(|next| self.binary_op(next).ok());
                stack.postfix(operator.map_or(level::WHERE, |op| op.level().0), |e| {
                    let span = e.span.to(span);
                    Node::new(DataKind::Where(Box::new(e), definitions), span)
                });
            }
            let Some(p) = pairs.next() else { break };
            let op = self.binary_op(&p)?;
            let (level, assoc) = op.level();
            stack.infix(level, assoc, DataOp::Infix(op));
        }
        Ok(stack.finish())
    }

    fn binder(&self, pair: P) -> Built<(Binder, Vec<VarDecl>)> {
        let mut inner = self.parts(pair);
        let binder = match self.next(&mut inner).as_str() {
            "forall" => Binder::Forall,
            "exists" => Binder::Exists,
            _ => Binder::Lambda,
        };
        Ok((binder, self.var_decls(self.next(&mut inner))?))
    }

    /// Builds `x = e`.
    pub(super) fn assignment(&self, pair: P) -> Built<(Ident, Data)> {
        let mut inner = self.parts(pair);
        let name = self.ident(self.next(&mut inner));
        Ok((name, self.data(self.next(&mut inner))?))
    }

    pub(super) fn data_primary(&self, pair: P) -> Built<Data> {
        let span = self.span(&pair);
        let kind = match pair.as_rule() {
            Rule::ident | Rule::truth => DataKind::Name(pair.as_str().to_owned()),
            Rule::number => DataKind::Number(pair.as_str().to_owned()),
            Rule::data_group | Rule::proc_group => return self.data(self.only_part(pair)),
            Rule::list => {
                DataKind::List(self.parts(pair).map(|e| self.data(e)).collect::<Built<_>>()?)
            }
            Rule::empty_bag => DataKind::Bag(Vec::new()),
            Rule::comprehension => {
                let mut inner = self.parts(pair);
                let name = self.ident(self.next(&mut inner));
                let sort = self.sort(self.next(&mut inner))?;
                let body = self.data(self.next(&mut inner))?;
                DataKind::Comprehension(Box::new(VarDecl { name, sort }), Box::new(body))
            }
            Rule::enumeration => self.enumeration(pair)?,
            _ => return Err(self.not_data(&pair)),
        };
        Ok(Node::new(kind, span))
    }

    fn enumeration(&self, pair: P) -> Built<DataKind> {
        let mut set = Vec::new();
        let mut bag = Vec::new();
        for element in self.parts(pair) {
            let span = self.span(&element);
            let mut parts = self.parts(element);
            let value = self.data(self.next(&mut parts))?;
            match parts.next() {
                Some(count) => bag.push((value, self.data(count)?)),
                None => set.push(value),
            }
            if !set.is_empty() && !bag.is_empty() {
                return Err(self
                    .refuse(span, "an enumeration mixes elements with and without a count")
                    .note("a set is written `{a, b}`, a bag `{a: 1, b: 2}`"));
            }
        }
        Ok(if bag.is_empty() { DataKind::Set(set) } else { DataKind::Bag(bag) })
    }

    pub(super) fn data_postfix(&self, operand: Data, pair: P) -> Built<Data> {
        let span = operand.span.to(self.span(&pair));
        let kind = match pair.as_rule() {
            Rule::update => {
                let mut inner = self.parts(pair);
                let at = self.data(self.next(&mut inner))?;
                let value = self.data(self.next(&mut inner))?;
                DataKind::Update(Box::new(operand), Box::new(at), Box::new(value))
            }
            Rule::proc_args => {
                let place = self.span(&pair);
                let mut args = Vec::new();
                for arg in self.parts(pair) {
                    let span = self.span(&arg);
                    let mut parts = self.parts(arg);
                    let first = self.next(&mut parts);
                    if parts.next().is_some() {
                        return Err(self
                            .refuse(span, "an assignment is not a data expression")
                            .note(
                                "`x = e` assigns in a process instance; equality is written `==`",
                            ));
                    }
                    args.push(self.data(first)?);
                }
                if args.is_empty() {
                    return Err(self
                        .refuse(place, "a function is applied without arguments")
                        .note("a constant is written without `()`"));
                }
                DataKind::Apply(Box::new(operand), args)
            }
            _ => DataKind::Apply(Box::new(operand), self.args(pair)?),
        };
        Ok(Node::new(kind, span))
    }

    /// Builds `args`.
    pub(super) fn args(&self, pair: P) -> Built<Vec<Data>> {
        self.parts(pair).map(|e| self.data(e)).collect()
    }

    fn binary_op(&self, pair: &P) -> Built<BinaryOp> {
        use BinaryOp as B;
        Ok(match pair.as_rule() {
            Rule::op_implies => B::Implies,
            Rule::op_or => B::Or,
            Rule::op_and => B::And,
            Rule::op_equal => B::Equal,
            Rule::op_not_equal => B::NotEqual,
            Rule::op_less => B::Less,
            Rule::op_less_equal => B::LessEqual,
            Rule::op_greater => B::Greater,
            Rule::op_greater_equal => B::GreaterEqual,
            Rule::op_in => B::In,
            Rule::op_cons => B::Cons,
            Rule::op_snoc => B::Snoc,
            Rule::op_concat => B::Concat,
            Rule::op_plus => B::Add,
            Rule::op_minus => B::Subtract,
            Rule::op_divide => B::Divide,
            Rule::op_div => B::Div,
            Rule::op_mod => B::Mod,
            Rule::op_times => B::Multiply,
            Rule::op_dot => B::At,
            Rule::args | Rule::proc_args | Rule::update => {
                return Err(self
                    .refuse(self.span(pair), "`whr … end` is applied like a function")
                    .note("put parentheses around the expression that ends in `end`"));
            }
            _ => return Err(self.not_data(pair)),
        })
    }

    /// Returns the error for a process construct in place of data.
    fn not_data(&self, pair: &P) -> Diagnostic {
        let word =
            pair.as_str().split(|c: char| c.is_whitespace() || c == '(').next().unwrap_or_default();
        self.refuse(
            self.first_token(pair),
            format!("`{word}` belongs to a process, and this is a data expression"),
        )
        .note("a data expression is expected left of `->` and right of `@`")
    }
}
