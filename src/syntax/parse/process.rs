//! Process expressions: from the flat `proc` pairs to [`Process`] trees.
//!
//! Conditions and processes share their parentheses in the grammar; the text left of a `->` is
//! data, everything else a process. A `<>` belongs to the nearest preceding `->` without one, in
//! the same parentheses. Cost: linear in the pairs.

use super::operators::{Operands, OperatorStack, StackOperator};
use super::{Built, P, Rule, TreeBuilder};
use crate::ast::*;
use crate::precedence::{Assoc, process as level};
use mu_base::{Diagnostic, Span};

/// Function that makes an infix expression of its two sides.
type Combine = fn(Box<Process>, Box<Process>) -> ProcessKind;

enum ProcessOp {
    Sum(Vec<VarDecl>, Span),
    Dist(Vec<VarDecl>, Data, Span),
    /// `c ->` without `<>`, or the text between `->` and `<>`.
    If(Data),
    /// `c -> p <>`
    Else(Data, Process),
    Infix(Combine),
}

impl StackOperator for ProcessOp {
    type Tree = Process;
    fn reduce(self, operands: &mut Operands<Process>) {
        let last = operands.pop();
        let end = last.span;
        let last = Box::new(last);
        let (kind, start) = match self {
            ProcessOp::Sum(vars, span) => (ProcessKind::Sum(vars, last), span),
            ProcessOp::Dist(vars, weight, span) => {
                (ProcessKind::Dist(vars, Box::new(weight), last), span)
            }
            ProcessOp::If(condition) => {
                let span = condition.span;
                (ProcessKind::If(Box::new(condition), last, None), span)
            }
            ProcessOp::Else(condition, then) => {
                let span = condition.span;
                (ProcessKind::If(Box::new(condition), Box::new(then), Some(last)), span)
            }
            ProcessOp::Infix(make) => {
                let first = operands.pop();
                let span = first.span;
                (make(Box::new(first), last), span)
            }
        };
        operands.push(Node::new(kind, start.to(end)));
    }
}

impl TreeBuilder {
    /// Builds a `proc` pair.
    pub(super) fn process(&self, pair: P) -> Built<Process> {
        let pairs: Vec<P> = self.parts(pair).collect();
        let with_else = self.match_else(&pairs)?;
        let mut stack = OperatorStack::<ProcessOp>::new();
        let mut i = 0;
        loop {
            let span = self.span(&pairs[i]);
            match pairs[i].as_rule() {
                Rule::sum => {
                    let vars = self.var_decls(self.only_part(pairs[i].clone()))?;
                    stack.prefix(level::SUM, ProcessOp::Sum(vars, span));
                    i += 1;
                    continue;
                }
                Rule::dist => {
                    let mut inner = self.parts(pairs[i].clone());
                    let vars = self.var_decls(self.next(&mut inner))?;
                    let weight = self.data(self.next(&mut inner))?;
                    stack.prefix(level::SUM, ProcessOp::Dist(vars, weight, span));
                    i += 1;
                    continue;
                }
                _ => {}
            }
            let end = unit_end(&pairs, i);
            if pairs.get(end).is_some_and(|p| p.as_rule() == Rule::arrow) {
                let condition = self.data_sequence(pairs[i..end].iter().cloned())?;
                if with_else[end] {
                    stack.open(ProcessOp::If(condition));
                } else {
                    stack.prefix(level::CONDITION, ProcessOp::If(condition));
                }
                i = end + 1;
                continue;
            }
            let start = i;
            stack.operand(self.process_primary(&pairs[i..end]).map_err(
                |e| match pairs.get(end) {
                    Some(p) if p.as_rule() == Rule::op_implies => self.not_process(p),
                    _ => self.bare_condition(&pairs, start, end).unwrap_or(e),
                },
            )?);
            i = end;
            // Postfix and infix operators up to the next operand.
            loop {
                let Some(p) = pairs.get(i) else { return Ok(stack.finish()) };
                i += 1;
                let (level, assoc, make): (u8, Assoc, Combine) = match p.as_rule() {
                    Rule::op_at => {
                        let end = unit_end(&pairs, i);
                        let time = self.data_sequence(pairs[i..end].iter().cloned())?;
                        i = end;
                        stack.postfix(level::AT, |p| {
                            let span = p.span.to(time.span);
                            Node::new(ProcessKind::At(Box::new(p), Box::new(time)), span)
                        });
                        continue;
                    }
                    Rule::op_else => {
                        let Some((ProcessOp::If(condition), then)) = stack.close() else {
                            return Err(self.lone_else(self.span(p)));
                        };
                        stack.prefix(level::CONDITION, ProcessOp::Else(condition, then));
                        break;
                    }
                    Rule::op_plus => (level::CHOICE, Assoc::Left, ProcessKind::Choice),
                    Rule::op_or => (level::PARALLEL, Assoc::Right, ProcessKind::Parallel),
                    Rule::op_left_merge => {
                        (level::LEFT_MERGE, Assoc::Right, ProcessKind::LeftMerge)
                    }
                    Rule::op_until => (level::UNTIL, Assoc::Left, ProcessKind::BoundedInit),
                    Rule::op_dot => (level::SEQUENCE, Assoc::Right, ProcessKind::Seq),
                    Rule::op_bar => (level::SYNC, Assoc::Left, ProcessKind::Sync),
                    _ => {
                        return Err(self
                            .bare_condition(&pairs, start, i)
                            .unwrap_or_else(|| self.not_process(p)));
                    }
                };
                stack.infix(level, assoc, ProcessOp::Infix(make));
                break;
            }
        }
    }

    /// Returns for each `->` whether it has a `<>`, by index.
    fn match_else(&self, pairs: &[P]) -> Built<Vec<bool>> {
        let mut with_else = vec![false; pairs.len()];
        let mut open = Vec::new();
        for (i, p) in pairs.iter().enumerate() {
            match p.as_rule() {
                Rule::arrow => open.push(i),
                Rule::op_else => match open.pop() {
                    Some(arrow) => with_else[arrow] = true,
                    None => return Err(self.lone_else(self.span(p))),
                },
                _ => {}
            }
        }
        Ok(with_else)
    }

    fn lone_else(&self, span: Span) -> Diagnostic {
        self.refuse(span, "`<>` has no condition")
            .note("a choice by condition is written `c -> p <> q`")
    }

    /// Builds a primary with its arguments.
    fn process_primary(&self, pairs: &[P]) -> Built<Process> {
        let Some((first, postfixes)) = pairs.split_first() else {
            unreachable!("a primary is not empty")
        };
        let span = self.span(first);
        if first.as_rule() == Rule::ident {
            return match postfixes {
                [] => Ok(Node::new(
                    ProcessKind::Call {
                        name: self.ident(first.clone()),
                        args: Vec::new(),
                        parens: false,
                    },
                    span,
                )),
                [args] if args.as_rule() == Rule::proc_args => {
                    self.call(first.clone(), args.clone())
                }
                [_, extra, ..] | [extra] => Err(self.not_process(extra)),
            };
        }
        let pair = first.clone();
        let mut inner = self.parts(pair.clone());
        let kind = match pair.as_rule() {
            Rule::delta => ProcessKind::Delta,
            Rule::tau => ProcessKind::Tau,
            Rule::proc_group => {
                if let Some(extra) = postfixes.first() {
                    return Err(self.not_process(extra));
                }
                return self.process(self.next(&mut inner));
            }
            Rule::block | Rule::hide => {
                let names = self.idents(self.next(&mut inner));
                let body = Box::new(self.process(self.next(&mut inner))?);
                if pair.as_rule() == Rule::block {
                    ProcessKind::Block(names, body)
                } else {
                    ProcessKind::Hide(names, body)
                }
            }
            Rule::allow => {
                let names =
                    self.parts(self.next(&mut inner)).map(|m| self.action_names(m)).collect();
                ProcessKind::Allow(names, Box::new(self.process(self.next(&mut inner))?))
            }
            Rule::rename => {
                let mut renamings = Vec::new();
                for r in self.parts(self.next(&mut inner)) {
                    let mut parts = self.parts(r);
                    renamings.push((
                        self.ident(self.next(&mut parts)),
                        self.ident(self.next(&mut parts)),
                    ));
                }
                ProcessKind::Rename(renamings, Box::new(self.process(self.next(&mut inner))?))
            }
            Rule::comm => {
                let mut communications = Vec::new();
                for c in self.parts(self.next(&mut inner)) {
                    let mut parts = self.parts(c);
                    let from = self.action_names(self.next(&mut parts));
                    let to =
                        parts.next().filter(|p| p.as_rule() == Rule::ident).map(|p| self.ident(p));
                    communications.push((from, to));
                }
                ProcessKind::Comm(communications, Box::new(self.process(self.next(&mut inner))?))
            }
            _ => return Err(self.not_process(first)),
        };
        match postfixes.first() {
            Some(extra) => Err(self.not_process(extra)),
            None => Ok(Node::new(kind, span)),
        }
    }

    fn call(&self, name: P, args: P) -> Built<Process> {
        let span = self.span(&name).to(self.span(&args));
        let name = self.ident(name);
        let mut values = Vec::new();
        let mut assignments = Vec::new();
        for arg in self.parts(args) {
            let place = self.span(&arg);
            let mut parts = self.parts(arg);
            let first = self.next(&mut parts);
            match parts.next() {
                Some(value) => assignments.push((self.ident(first), self.data(value)?)),
                None => values.push(self.data(first)?),
            }
            if !values.is_empty() && !assignments.is_empty() {
                return Err(self
                    .refuse(
                        place,
                        format!("the arguments of `{}` mix values and assignments", name.kind),
                    )
                    .note("write either `P(e, f)` or `P(x = e, y = f)`"));
            }
        }
        let kind = if assignments.is_empty() {
            ProcessKind::Call { name, args: values, parens: true }
        } else {
            ProcessKind::CallAssign(name, assignments)
        };
        Ok(Node::new(kind, span))
    }

    fn action_names(&self, pair: P) -> ActionNames {
        let span = self.span(&pair);
        let names: Vec<Ident> = self.parts(pair).map(|p| self.ident(p)).collect();
        let span = match (names.first(), names.last()) {
            (Some(a), Some(b)) => a.span.to(b.span),
            _ => span,
        };
        Node::new(names, span)
    }

    /// Returns the error for a condition without parentheses, if the operand at `start` seems to
    /// begin one.
    fn bare_condition(&self, pairs: &[P], start: usize, end: usize) -> Option<Diagnostic> {
        let arrow = end + pairs[end..].iter().position(|p| p.as_rule() == Rule::arrow)?;
        let span = self.span(&pairs[start]).to(self.span(&pairs[arrow - 1]));
        let text = &pairs[start].get_input()
            [pairs[start].as_span().start()..pairs[arrow - 1].as_span().end()];
        Some(
            self.refuse(span, format!("the condition `{text}` needs parentheses")).note(
                "only a name, an application or a negation of those needs none: `(x == y) -> p`",
            ),
        )
    }

    /// Returns the error for a data construct in place of a process.
    fn not_process(&self, pair: &P) -> Diagnostic {
        let span = self.first_token(pair);
        let word = self.first_word(pair);
        let diagnostic = self
            .refuse(span, format!("`{word}` belongs to a data expression, and this is a process"));
        if pair.as_rule() == Rule::op_implies {
            return diagnostic
                .note("a process with a condition is written `c -> p` or `c -> p <> q`");
        }
        diagnostic.note("data occurs in arguments, after `@`, and as a condition before `->`")
    }
}

/// Returns the end of the unit (prefixes, a primary, its arguments) that starts at `i`.
fn unit_end(pairs: &[P], mut i: usize) -> usize {
    while matches!(pairs.get(i).map(|p| p.as_rule()), Some(Rule::not | Rule::minus | Rule::size)) {
        i += 1;
    }
    i += 1;
    while matches!(pairs.get(i).map(|p| p.as_rule()), Some(Rule::proc_args | Rule::update)) {
        i += 1;
    }
    i.min(pairs.len())
}
