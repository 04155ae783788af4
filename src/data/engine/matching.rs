//! Compilation of the equations of one operation to a matching tree, by the pattern-matrix method
//! (Augustsson 1985; Maranget, "Compiling pattern matching to good decision trees", 2008): inspect
//! a slot where the first row has a constructor, split the rows by it, recurse.
//!
//! Rows stay in order, except that a row moves in front of an earlier unconditional and more
//! general row, because it could never be used otherwise. Non-linear patterns and narrowing of
//! numbers become checks at the leaves. A tree that would be larger than a limit is replaced by a
//! sequence of one tree per row, so the size stays linear in the worst case.

use super::code::{Key, Leaf, LeafCheck, Switch, SwitchCase, Tree};
use super::compile::{Compiler, VariableLocations};
use crate::expr::{Equation, Expr, ExprKind};
use crate::signature::{Builtin, Signature};
use crate::sort::basic;
use mu_base::diagnostic::{Diagnostic, Stage};
use mu_base::ids::{OpId, SortId, VarId};
use mu_base::narrow;
use num_bigint::BigInt;
use num_traits::ToPrimitive;

/// Limit on the leaves of a tree; beyond it, a sequence of trees is used.
const MAX_LEAVES: usize = 2000;

#[derive(Clone, Debug)]
enum Pattern {
    Var(VarId, SortId),
    Head(Key, Vec<Pattern>),
    /// A number of a basic sort that also matches the inner pattern.
    Number(SortId, Box<Pattern>),
}

#[derive(Clone)]
struct EquationRow<'a> {
    pending: Vec<(u32, Pattern)>,
    bound: Vec<(VarId, u32)>,
    checks: Vec<(u32, u32, SortId)>,
    numbers: Vec<(u32, SortId)>,
    equation: &'a Equation,
}

/// Returns head operation, number of applications and all arguments of a left-hand side.
pub fn left_hand_side(equation: &Equation) -> Result<(OpId, usize, Vec<Expr>), Diagnostic> {
    let mut groups: Vec<&[Expr]> = Vec::new();
    let mut at = &equation.lhs;
    while let ExprKind::Apply(head, args) = &at.kind {
        groups.push(args);
        at = head;
    }
    let ExprKind::Op(op) = at.kind else {
        return Err(Diagnostic::at(
            Stage::Unsupported,
            equation.lhs.span,
            "the left-hand side of an equation must start with an operation",
        ));
    };
    let args = groups.iter().rev().flat_map(|g| g.iter().cloned()).collect();
    Ok((op, groups.len(), args))
}

fn pattern(signature: &Signature, e: &Expr) -> Result<Pattern, Diagnostic> {
    stacker::maybe_grow(64 << 10, 1 << 20, || {
        let all = |args: &[Expr]| {
            args.iter().map(|a| pattern(signature, a)).collect::<Result<Vec<_>, _>>()
        };
        match &e.kind {
            ExprKind::Var(v) => Ok(Pattern::Var(*v, e.sort)),
            ExprKind::Number(n) => Ok(Pattern::Head(number_key(n), vec![])),
            ExprKind::Op(_) | ExprKind::Apply(..) => {
                if let Some((builtin, args)) = e.as_builtin(signature) {
                    use Builtin::*;
                    match builtin {
                        True => return Ok(Pattern::Head(Key::Bool(true), vec![])),
                        False => return Ok(Pattern::Head(Key::Bool(false), vec![])),
                        EmptyList => return Ok(Pattern::Head(Key::Nil, vec![])),
                        EmptySet | EmptyBag => return Ok(Pattern::Head(Key::Empty, vec![])),
                        Cons if args.len() == 2 => return Ok(Pattern::Head(Key::Cons, all(args)?)),
                        FSetToSet | FBagToBag if args.len() == 1 => {
                            return pattern(signature, &args[0]);
                        }
                        PosToNat | PosToInt | PosToReal if args.len() == 1 => {
                            return number(signature, basic::POS, &args[0]);
                        }
                        NatToInt | NatToReal if args.len() == 1 => {
                            return number(signature, basic::NAT, &args[0]);
                        }
                        IntToReal if args.len() == 1 => {
                            return number(signature, basic::INT, &args[0]);
                        }
                        Negate if args.len() == 1 => {
                            let number = match strip(pattern(signature, &args[0])?) {
                                Pattern::Head(Key::Int(n), _) => Some(BigInt::from(n)),
                                Pattern::Head(Key::Number(n), _) => Some(n),
                                _ => None,
                            };
                            if let Some(n) = number {
                                return Ok(Pattern::Head(number_key(&-n), vec![]));
                            }
                        }
                        _ => {}
                    }
                }
                let mut groups: Vec<&[Expr]> = Vec::new();
                let mut at = e;
                while let ExprKind::Apply(head, args) = &at.kind {
                    groups.push(args);
                    at = head;
                }
                let ExprKind::Op(op) = at.kind else {
                    return Err(Diagnostic::at(
                        Stage::Unsupported,
                        e.span,
                        "a variable is applied in the left-hand side of an equation",
                    ));
                };
                let mut args = Vec::new();
                for group in groups.iter().rev() {
                    args.extend(all(group)?);
                }
                Ok(Pattern::Head(Key::Op(op, narrow::index(args.len())), args))
            }
            ExprKind::Bind(..) | ExprKind::Where(..) => Err(Diagnostic::at(
                Stage::Unsupported,
                e.span,
                "a binder occurs in the left-hand side of an equation",
            )),
        }
    })
}

fn number_key(n: &BigInt) -> Key {
    n.to_i64().map_or_else(|| Key::Number(n.clone()), Key::Int)
}

fn strip(p: Pattern) -> Pattern {
    match p {
        Pattern::Number(_, inner) => strip(*inner),
        p => p,
    }
}

fn number(signature: &Signature, sort: SortId, e: &Expr) -> Result<Pattern, Diagnostic> {
    Ok(match pattern(signature, e)? {
        head @ Pattern::Head(Key::Int(_) | Key::Number(_), _) => head,
        inner => Pattern::Number(sort, Box::new(inner)),
    })
}

/// True if everything that matches `b` also matches `a` (a sufficient test: constructors and
/// different variables).
fn more_general(a: &[Pattern], b: &[Pattern], seen: &mut Vec<VarId>) -> bool {
    a.iter().zip(b).all(|(a, b)| match (a, b) {
        (Pattern::Var(v, _), _) => {
            let new = !seen.contains(v);
            seen.push(*v);
            new
        }
        (Pattern::Head(k, xs), Pattern::Head(l, ys)) => {
            k == l && xs.len() == ys.len() && more_general(xs, ys, seen)
        }
        _ => false,
    })
}

/// Builds the tree for the equations of one operation at one number of arguments.
pub fn compile_tree(compiler: &mut Compiler, equations: &[&Equation]) -> Result<Tree, Diagnostic> {
    let mut rows: Vec<(Vec<Pattern>, &Equation)> = Vec::new();
    for &equation in equations {
        let (_, _, args) = left_hand_side(equation)?;
        let patterns: Vec<Pattern> =
            args.iter().map(|a| pattern(compiler.signature, a)).collect::<Result<_, _>>()?;
        // Inserts it in front of the first row that would hide it.
        let hides = |(general, e): &(Vec<Pattern>, &Equation)| {
            e.condition.is_none()
                && more_general(general, &patterns, &mut Vec::new())
                && !more_general(&patterns, general, &mut Vec::new())
        };
        let at = rows.iter().position(hides).unwrap_or(rows.len());
        rows.insert(at, (patterns, equation));
    }
    let height = rows.first().map_or(0, |r| narrow::index(r.0.len()));
    let rows: Vec<EquationRow> = rows
        .into_iter()
        .map(|(patterns, equation)| {
            let mut row = EquationRow {
                pending: vec![],
                bound: vec![],
                checks: vec![],
                numbers: vec![],
                equation,
            };
            for (i, p) in patterns.into_iter().enumerate() {
                row.add(narrow::index(i), p);
            }
            row
        })
        .collect();
    let mut leaves = 0;
    if let Some(tree) = build(compiler, &rows, height, &mut leaves, MAX_LEAVES)? {
        return Ok(tree);
    }
    let mut trees = Vec::new();
    for row in &rows {
        trees.extend(build(compiler, std::slice::from_ref(row), height, &mut 0, usize::MAX)?);
    }
    Ok(Tree::Sequence(trees.into()))
}

impl EquationRow<'_> {
    fn add(&mut self, slot: u32, pattern: Pattern) {
        match pattern {
            Pattern::Var(v, sort) => match self.bound.iter().find(|b| b.0 == v) {
                Some(&(_, first)) => self.checks.push((first, slot, sort)),
                None => self.bound.push((v, slot)),
            },
            Pattern::Number(sort, inner) => {
                self.numbers.push((slot, sort));
                self.add(slot, *inner);
            }
            head => self.pending.push((slot, head)),
        }
    }
}

fn build(
    compiler: &mut Compiler,
    rows: &[EquationRow],
    height: u32,
    leaves: &mut usize,
    limit: usize,
) -> Result<Option<Tree>, Diagnostic> {
    let Some(first) = rows.first() else { return Ok(Some(Tree::Fail)) };
    if first.pending.is_empty() {
        *leaves += 1;
        if *leaves > limit {
            return Ok(None);
        }
        let scope = VariableLocations::new(&first.bound, height);
        let equation = first.equation;
        let mut checks: Vec<LeafCheck> =
            first.numbers.iter().map(|&(slot, sort)| LeafCheck::Number(slot, sort)).collect();
        checks.extend(first.checks.iter().map(|&(a, b, sort)| LeafCheck::Equal(a, b, sort)));
        let condition = match &equation.condition {
            Some(c) if c.as_bool(compiler.signature) != Some(true) => {
                Some(compiler.root(c, &scope)?)
            }
            _ => None,
        };
        let rhs = compiler.root(&equation.rhs, &scope)?;
        let otherwise = if checks.is_empty() && condition.is_none() {
            Tree::Fail
        } else {
            match build(compiler, &rows[1..], height, leaves, limit)? {
                Some(tree) => tree,
                None => return Ok(None),
            }
        };
        let uses = first
            .bound
            .iter()
            .filter(|(v, slot)| *slot < 64 && free_in(&equation.rhs, *v))
            .fold(0, |all, b| all | 1 << b.1);
        let leaf = Leaf {
            height,
            span: equation.span,
            checks: checks.into(),
            condition,
            rhs,
            uses,
            otherwise,
        };
        return Ok(Some(Tree::Leaf(Box::new(leaf))));
    }
    // Selects the slot of the first row that most rows inspect.
    let looks = |slot: u32| rows.iter().filter(|r| r.pending.iter().any(|p| p.0 == slot)).count();
    let mut slot = first.pending[0].0;
    for p in &first.pending[1..] {
        if looks(p.0) > looks(slot) {
            slot = p.0;
        }
    }
    let head_at = |row: &EquationRow| row.pending.iter().position(|p| p.0 == slot);
    let mut keys: Vec<(Key, usize)> = Vec::new();
    for row in rows {
        if let Some(i) = head_at(row)
            && let Pattern::Head(key, args) = &row.pending[i].1
            && !keys.iter().any(|k| k.0 == *key)
        {
            keys.push((key.clone(), args.len()));
        }
    }
    let mut cases = Vec::new();
    for (key, arity) in keys {
        // A field is extracted if some row has a pattern for it other than an unused variable.
        let mut needed = vec![false; arity];
        for row in rows {
            if let Some(i) = head_at(row)
                && let Pattern::Head(k, args) = &row.pending[i].1
                && *k == key
            {
                for (n, a) in needed.iter_mut().zip(args) {
                    *n |= !matches!(a, Pattern::Var(v, _) if !matters(row.equation, *v));
                }
            }
        }
        let fields: Vec<u32> = (0..narrow::index(arity)).filter(|&i| needed[i as usize]).collect();
        let mut sub = Vec::new();
        for row in rows {
            match head_at(row) {
                None => sub.push(row.clone()),
                Some(i) => {
                    let mut row = row.clone();
                    let (_, Pattern::Head(k, args)) = row.pending.remove(i) else { continue };
                    if k == key {
                        for (j, &field) in fields.iter().enumerate() {
                            row.add(height + narrow::index(j), args[field as usize].clone());
                        }
                        sub.push(row);
                    }
                }
            }
        }
        let Some(tree) =
            build(compiler, &sub, height + narrow::index(fields.len()), leaves, limit)?
        else {
            return Ok(None);
        };
        cases.push(SwitchCase { key, fields: fields.into(), tree });
    }
    let rest: Vec<EquationRow> = rows.iter().filter(|r| head_at(r).is_none()).cloned().collect();
    let Some(default) = build(compiler, &rest, height, leaves, limit)? else { return Ok(None) };
    Ok(Some(Tree::Switch(Box::new(Switch { slot, height, cases: cases.into(), default }))))
}

/// Returns the lazy ones of the first 64 arguments: a variable of its own in each equation, in no
/// condition, and not in all right-hand sides.
pub fn lazy_arguments(equations: &[&Equation]) -> u64 {
    let mut lazy = u64::MAX;
    let mut always = u64::MAX;
    for equation in equations {
        let Ok((_, _, args)) = left_hand_side(equation) else { return 0 };
        let (mut here, mut used) = (0, 0);
        for (i, arg) in args.iter().enumerate().take(64) {
            if let ExprKind::Var(v) = arg.kind
                && occurrences(&equation.lhs, v) == 1
                && !equation.condition.as_ref().is_some_and(|c| free_in(c, v))
            {
                here |= 1 << i;
                used |= u64::from(free_in(&equation.rhs, v)) << i;
            }
        }
        lazy &= here;
        always &= used;
    }
    lazy & !always
}

fn free_in(e: &Expr, var: VarId) -> bool {
    let mut free = Vec::new();
    e.free_vars(&mut free);
    free.contains(&var)
}

/// True if a variable matters: it occurs in the condition or right-hand side, or twice on the left.
fn matters(equation: &Equation, var: VarId) -> bool {
    let mut free = Vec::new();
    equation.rhs.free_vars(&mut free);
    if let Some(c) = &equation.condition {
        c.free_vars(&mut free);
    }
    free.contains(&var) || occurrences(&equation.lhs, var) > 1
}

fn occurrences(e: &Expr, var: VarId) -> usize {
    stacker::maybe_grow(64 << 10, 1 << 20, || match &e.kind {
        ExprKind::Var(v) => usize::from(*v == var),
        ExprKind::Apply(head, args) => {
            occurrences(head, var) + args.iter().map(|a| occurrences(a, var)).sum::<usize>()
        }
        _ => 0,
    })
}
