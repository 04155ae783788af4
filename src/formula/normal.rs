//! Normal form of state formulas: typed formula -> directed acyclic graph of nodes without negation
//! and without regular operators.
//!
//! * Negation normal form: negations are pushed to `val(..)` and into action formulas;
//!   `!mu X. f(X)` is `nu X. !f(!X)`. A fixed-point variable under an odd number of negations
//!   within its own binder is rejected.
//! * Regular formulas (Mateescu & Sighireanu, "Efficient on-the-fly model-checking for regular
//!   alternation-free mu-calculus", 2003): `[R.S]f = [R][S]f`, `[R+S]f = [R]f && [S]f`,
//!   `[R*]f = nu X. (f && [R]X)`, `[R+]f = [R][R*]f`, and dually for `<R>f`. Data variables in
//!   scope need not be passed to the new variable as parameters: a formula state is a node with the
//!   values of its live variables.
//! * Quantifiers move inwards, see `miniscope.rs`.
//! * *Live* variables of a node: the data variables that the rest of the formula can still test; a
//!   least fixed point over the graph.
//! * Ranks: the rank of a fixed-point variable is even for `nu`, odd for `mu`, and at least that of
//!   each variable in its scope with which it lies on a cycle of dependence inside that scope. So a
//!   cycle of the product satisfies its formula iff the *highest* rank on it is even, and an
//!   alternation-free formula has ranks 0 and 1 only (cf. Emerson & Lei 1986; dependence as in
//!   Niwinski 1986).
//!
//! Cost: linear in the formula for the graph (operands of `+` and `*` are shared, never copied);
//! quadratic in the number of nested fixed points for ranks. Invariant: children of a node have
//! smaller ids, except through calls of fixed-point variables.

use super::action_miniscope::narrow;
use super::miniscope::{QuantifierBlock, Uses};
use super::typed::{Action, Regular, StateKind, TypedFormula, TypedStateFormula};
use mu_base::id_types;
use mu_base::ids::{FixId, VarId};
use mu_base::{Diagnostic, Span, Stage};
use mu_data::expr::Expr;
use mu_data::signature::Signature;
use std::sync::Arc;

id_types! {
    /// A node of the graph.
    pub NodeId,
}

/// Kind of a node.
#[derive(Clone, Debug)]
pub enum NormalNode {
    /// `true` or `false`.
    Const(bool),
    /// `val(e)`, a closed test under the valuation.
    Val(Expr),
    /// Conjunction of at least two.
    All(Vec<NodeId>),
    /// Disjunction of at least two.
    Any(Vec<NodeId>),
    /// Universal quantifier; its variables are live in the body.
    Forall(Vec<VarId>, NodeId),
    /// Existential quantifier; its variables are live in the body.
    Exists(Vec<VarId>, NodeId),
    /// `[a]f`
    Must(Arc<Action>, NodeId),
    /// `<a>f`
    May(Arc<Action>, NodeId),
    /// A fixed-point variable with its arguments: an occurrence of the variable, or its binder
    /// (then the arguments are the initial values).
    Call(FixId, Vec<Expr>),
    /// The variable itself, with its parameters in the valuation: the target of a call. Its content
    /// is `Fix::body`.
    Head(FixId),
}

/// A fixed-point variable.
#[derive(Clone, Debug)]
pub struct Fix {
    /// Its name; for a variable of `R*`, the operator in quotes.
    pub name: String,
    /// Least (`mu`) or greatest (`nu`), after negation normal form.
    pub least: bool,
    /// Its parameters.
    pub params: Vec<VarId>,
    /// Its body.
    pub body: NodeId,
    /// Its `Head` node.
    pub head: NodeId,
    /// The variable with the body that contains its binder.
    pub parent: Option<FixId>,
    /// Its rank; even for greatest, odd for least (0 for one that does not depend on itself).
    pub rank: u32,
    /// True if it depends on itself.
    pub recursive: bool,
    /// Variables that always count as live; see [`TypedFormula::as_written`].
    pub kept: Vec<VarId>,
    /// Position of its binder.
    pub span: Span,
}

/// A formula in normal form.
#[derive(Clone, Debug)]
pub struct Normal {
    /// The nodes.
    pub nodes: Vec<NormalNode>,
    /// Position of each node in the source.
    pub spans: Vec<Span>,
    /// Live variables of each node, ascending.
    pub live: Vec<Vec<VarId>>,
    /// The fixed-point variables.
    pub fixes: Vec<Fix>,
    /// The formula.
    pub root: NodeId,
}

/// Appends the free data variables of an action formula to `out`, without duplicates.
pub fn action_free_vars(action: &Action, out: &mut Vec<VarId>) {
    fn expr(e: &Expr, bound: &[VarId], out: &mut Vec<VarId>) {
        let mut free = Vec::new();
        e.free_vars(&mut free);
        for v in free {
            if !bound.contains(&v) && !out.contains(&v) {
                out.push(v);
            }
        }
    }
    fn go(action: &Action, bound: &mut Vec<VarId>, out: &mut Vec<VarId>) {
        stacker::maybe_grow(64 << 10, 1 << 20, || match action {
            Action::True | Action::False => {}
            Action::Val(e) => expr(e, bound, out),
            Action::Multi(acts) => acts.iter().flat_map(|a| &a.1).for_each(|e| expr(e, bound, out)),
            Action::Not(a) => go(a, bound, out),
            Action::And(a, b) | Action::Or(a, b) | Action::Implies(a, b) => {
                go(a, bound, out);
                go(b, bound, out);
            }
            Action::Forall(vars, a) | Action::Exists(vars, a) => {
                let n = bound.len();
                bound.extend(vars);
                go(a, bound, out);
                bound.truncate(n);
            }
        })
    }
    go(action, &mut Vec::new(), out);
}

/// Normalises a formula. Adds new terms (negations of tests) to `signature`, which is the formula's
/// own.
pub fn normalise(formula: &TypedFormula, signature: &mut Signature) -> Result<Normal, Diagnostic> {
    let mut n = Normaliser {
        signature,
        nodes: Vec::new(),
        spans: Vec::new(),
        fixes: formula
            .fix_names
            .iter()
            .map(|name| Fix {
                name: name.clone(),
                least: false,
                params: Vec::new(),
                body: NodeId::of(0),
                head: NodeId::of(0),
                parent: None,
                rank: 0,
                recursive: false,
                kept: Vec::new(),
                span: Span::default(),
            })
            .collect(),
        polarity: vec![None; formula.fix_names.len()],
        scope: Vec::new(),
        bound: formula.as_written.then(Vec::new),
        uses: Uses::new(),
    };
    let root = n.state(&formula.formula, true)?;
    let mut normal =
        Normal { nodes: n.nodes, spans: n.spans, live: Vec::new(), fixes: n.fixes, root };
    normal.compute_live();
    normal.prune_quantifiers();
    normal.compute_ranks();
    Ok(normal)
}

pub(super) struct Normaliser<'a> {
    pub(super) signature: &'a mut Signature,
    pub(super) nodes: Vec<NormalNode>,
    spans: Vec<Span>,
    fixes: Vec<Fix>,
    /// Polarity at the binder, while in its scope.
    polarity: Vec<Option<bool>>,
    scope: Vec<FixId>,
    /// The data variables in scope, if instances must differ by all of them; then no quantifier
    /// moves.
    bound: Option<Vec<VarId>>,
    pub(super) uses: Uses,
}

impl Normaliser<'_> {
    pub(super) fn add(&mut self, node: NormalNode, span: Span) -> NodeId {
        self.nodes.push(node);
        self.spans.push(span);
        NodeId::new(self.nodes.len() - 1)
    }

    pub(super) fn constant(&mut self, value: bool, span: Span) -> NodeId {
        self.add(NormalNode::Const(value), span)
    }

    /// Creates a test, or a constant if the test is one.
    pub(super) fn value(&mut self, test: Expr, span: Span) -> NodeId {
        match test.as_bool(self.signature) {
            Some(b) => self.constant(b, span),
            None => self.add(NormalNode::Val(test), span),
        }
    }

    pub(super) fn as_const(&self, node: NodeId) -> Option<bool> {
        match self.nodes[node.index()] {
            NormalNode::Const(b) => Some(b),
            _ => None,
        }
    }

    /// Creates a conjunction or disjunction, flattened and simplified.
    pub(super) fn junction(&mut self, all: bool, operands: Vec<NodeId>, span: Span) -> NodeId {
        let mut flat: Vec<NodeId> = Vec::new();
        for operand in operands {
            match &self.nodes[operand.index()] {
                NormalNode::Const(b) if *b == all => {}
                NormalNode::Const(_) => return operand,
                NormalNode::All(inner) if all => flat.extend(inner),
                NormalNode::Any(inner) if !all => flat.extend(inner),
                _ => flat.push(operand),
            }
        }
        let mut seen = ahash::AHashSet::new();
        flat.retain(|n| seen.insert(*n));
        match flat.len() {
            0 => self.constant(all, span),
            1 => flat[0],
            _ => self.add(if all { NormalNode::All(flat) } else { NormalNode::Any(flat) }, span),
        }
    }

    /// Collects the operands of a chain of one connective without recursing along the chain's left
    /// spine.
    pub(super) fn chain<'f>(
        f: &'f TypedStateFormula,
        positive: bool,
        all: bool,
        out: &mut Vec<(&'f TypedStateFormula, bool)>,
    ) {
        let mut stack = vec![(f, positive)];
        while let Some((f, positive)) = stack.pop() {
            match &f.kind {
                StateKind::And(a, b) if positive == all => {
                    stack.extend([(&**b, positive), (&**a, positive)])
                }
                StateKind::Or(a, b) if positive != all => {
                    stack.extend([(&**b, positive), (&**a, positive)])
                }
                StateKind::Implies(a, b) if positive != all => {
                    stack.extend([(&**b, positive), (&**a, !positive)])
                }
                StateKind::Not(a) => stack.push((a, !positive)),
                _ => out.push((f, positive)),
            }
        }
    }

    pub(super) fn state(
        &mut self,
        f: &TypedStateFormula,
        positive: bool,
    ) -> Result<NodeId, Diagnostic> {
        stacker::maybe_grow(128 << 10, 4 << 20, || self.state_inner(f, positive))
    }

    fn state_inner(&mut self, f: &TypedStateFormula, positive: bool) -> Result<NodeId, Diagnostic> {
        let span = f.span;
        Ok(match &f.kind {
            StateKind::True => self.constant(positive, span),
            StateKind::False => self.constant(!positive, span),
            StateKind::Val(e) => {
                let e = if positive { e.clone() } else { Expr::negate(self.signature, e.clone()) };
                self.value(e, span)
            }
            StateKind::Not(_) => {
                let (mut inner, mut positive) = (f, positive);
                while let StateKind::Not(g) = &inner.kind {
                    (inner, positive) = (g, !positive);
                }
                self.state(inner, positive)?
            }
            StateKind::And(..) | StateKind::Or(..) | StateKind::Implies(..) => {
                let all = matches!(f.kind, StateKind::And(..)) == positive;
                let mut operands = Vec::new();
                Self::chain(f, positive, all, &mut operands);
                let mut nodes = Vec::with_capacity(operands.len());
                for (g, positive) in operands {
                    nodes.push(self.state(g, positive)?);
                }
                self.junction(all, nodes, span)
            }
            StateKind::Forall(vars, body) | StateKind::Exists(vars, body) => {
                let all = matches!(f.kind, StateKind::Forall(..)) == positive;
                if self.bound.is_none() {
                    return self.normalise_quantified(
                        QuantifierBlock::new(all, vars, span),
                        body,
                        positive,
                    );
                }
                let inner = self.with_bound(vars, |n| n.state(body, positive))?;
                match self.as_const(inner) {
                    Some(_) => inner,
                    None => self.add(
                        if all {
                            NormalNode::Forall(vars.clone(), inner)
                        } else {
                            NormalNode::Exists(vars.clone(), inner)
                        },
                        span,
                    ),
                }
            }
            StateKind::Must(r, body) | StateKind::May(r, body) => {
                let all = matches!(f.kind, StateKind::Must(..)) == positive;
                let inner = self.state(body, positive)?;
                self.modality(r, all, inner, span)
            }
            StateKind::Fix { least, var, params, body } => {
                let id = *var;
                let least = *least == positive;
                self.polarity[id.index()] = Some(positive);
                let parent = self.scope.last().copied();
                self.scope.push(id);
                let own: Vec<VarId> = params.iter().map(|p| p.0).collect();
                let (inner, kept) = self.with_bound(&own, |n| {
                    Ok((n.state(body, positive)?, n.bound.clone().unwrap_or_default()))
                })?;
                self.scope.pop();
                let head = self.add(NormalNode::Head(id), span);
                let fix = &mut self.fixes[id.index()];
                (fix.least, fix.parent, fix.body, fix.head, fix.span) =
                    (least, parent, inner, head, span);
                (fix.params, fix.kept) = (own, kept);
                if self.as_const(inner).is_some() {
                    return Ok(inner);
                }
                self.add(NormalNode::Call(id, params.iter().map(|p| p.1.clone()).collect()), span)
            }
            StateKind::Var(id, args) => {
                let name = self.fixes[id.index()].name.clone();
                match self.polarity[id.index()] {
                    Some(p) if p == positive => self.add(NormalNode::Call(*id, args.clone()), span),
                    Some(_) => {
                        return Err(Diagnostic::at(
                            Stage::Formula,
                            span,
                            format!("the fixed-point variable {name} occurs under an odd number of negations"),
                        )
                        .note("the formula is not monotonic in this variable, so its fixed point need not exist")
                        .note("`a => b` counts as a negation of `a`"));
                    }
                    None => {
                        return Err(Diagnostic::at(
                            Stage::Formula,
                            span,
                            format!("the fixed-point variable {name} is not bound here"),
                        ));
                    }
                }
            }
        })
    }

    /// Runs `make` with variables in scope.
    fn with_bound<T>(
        &mut self,
        vars: &[VarId],
        make: impl FnOnce(&mut Self) -> Result<T, Diagnostic>,
    ) -> Result<T, Diagnostic> {
        let before = self.bound.as_ref().map_or(0, Vec::len);
        self.bound.iter_mut().for_each(|b| b.extend(vars));
        let made = make(self);
        self.bound.iter_mut().for_each(|b| b.truncate(before));
        made
    }

    /// Creates `[R]f` (`all`) or `<R>f`.
    pub(super) fn modality(&mut self, r: &Regular, all: bool, inner: NodeId, span: Span) -> NodeId {
        stacker::maybe_grow(128 << 10, 4 << 20, || match r {
            Regular::Action(a) => {
                // `[a]true` and `<a>false` have the same value for every action.
                if self.as_const(inner) == Some(all) || matches!(a, Action::False) {
                    return self.constant(all, span);
                }
                let a = Arc::new(narrow(self.signature, a));
                self.add(
                    if all { NormalNode::Must(a, inner) } else { NormalNode::May(a, inner) },
                    span,
                )
            }
            Regular::Seq(a, b) => {
                let rest = self.modality(b, all, inner, span);
                self.modality(a, all, rest, span)
            }
            Regular::Alt(a, b) => {
                let a = self.modality(a, all, inner, span);
                let b = self.modality(b, all, inner, span);
                self.junction(all, vec![a, b], span)
            }
            Regular::Star(a) => self.star(a, all, inner, span),
            Regular::Plus(a) => {
                let rest = self.star(a, all, inner, span);
                self.modality(a, all, rest, span)
            }
        })
    }

    fn star(&mut self, r: &Regular, all: bool, inner: NodeId, span: Span) -> NodeId {
        if self.as_const(inner).is_some() {
            return inner;
        }
        let id = FixId::new(self.fixes.len());
        self.fixes.push(Fix {
            name: "'*'".into(),
            least: !all,
            params: Vec::new(),
            body: inner,
            head: inner,
            parent: self.scope.last().copied(),
            rank: 0,
            recursive: false,
            kept: self.bound.clone().unwrap_or_default(),
            span,
        });
        self.polarity.push(None);
        // Stars inside `r` are in the scope of this one.
        self.scope.push(id);
        let call = self.add(NormalNode::Call(id, Vec::new()), span);
        let again = self.modality(r, all, call, span);
        let body = self.junction(all, vec![inner, again], span);
        self.scope.pop();
        let head = self.add(NormalNode::Head(id), span);
        let fix = &mut self.fixes[id.index()];
        (fix.body, fix.head) = (body, head);
        // The binder is a separate call after the body, so that children come first.
        self.add(NormalNode::Call(id, Vec::new()), span)
    }
}

fn union(a: &mut Vec<VarId>, b: &[VarId]) {
    a.extend_from_slice(b);
    a.sort_unstable();
    a.dedup();
}

impl Normal {
    /// Returns the node.
    pub fn node(&self, id: NodeId) -> &NormalNode {
        &self.nodes[id.index()]
    }
    /// Returns the fixed-point variable.
    pub fn fix(&self, id: FixId) -> &Fix {
        &self.fixes[id.index()]
    }
    /// Returns the live variables of a node, ascending.
    pub fn live(&self, id: NodeId) -> &[VarId] {
        &self.live[id.index()]
    }
    /// Returns the highest rank.
    pub fn max_rank(&self) -> u32 {
        self.fixes.iter().map(|f| f.rank).max().unwrap_or(0)
    }

    fn compute_live(&mut self) {
        let mut own: Vec<Vec<VarId>> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let mut vars = Vec::new();
            match node {
                NormalNode::Val(e) => e.free_vars(&mut vars),
                NormalNode::Must(a, _) | NormalNode::May(a, _) => action_free_vars(a, &mut vars),
                _ => {}
            }
            vars.sort_unstable();
            own.push(vars);
        }
        let mut live: Vec<Vec<VarId>> = own.clone();
        let mut of_fix: Vec<Vec<VarId>> = vec![Vec::new(); self.fixes.len()];
        loop {
            for (i, node) in self.nodes.iter().enumerate() {
                let mut vars = std::mem::take(&mut own[i]);
                let keep = vars.clone();
                match node {
                    NormalNode::Const(_) | NormalNode::Val(_) => {}
                    NormalNode::All(list) | NormalNode::Any(list) => {
                        list.iter().for_each(|n| union(&mut vars, &live[n.index()]))
                    }
                    NormalNode::Forall(bound, body) | NormalNode::Exists(bound, body) => {
                        vars = live[body.index()].clone();
                        vars.retain(|v| !bound.contains(v));
                    }
                    NormalNode::Must(_, body) | NormalNode::May(_, body) => {
                        union(&mut vars, &live[body.index()])
                    }
                    NormalNode::Call(fix, args) => {
                        let params = &self.fixes[fix.index()].params;
                        for v in &of_fix[fix.index()] {
                            match params.iter().position(|p| p == v) {
                                Some(i) => args[i].free_vars(&mut vars),
                                None => vars.push(*v),
                            }
                        }
                        vars.sort_unstable();
                        vars.dedup();
                    }
                    NormalNode::Head(fix) => vars = of_fix[fix.index()].clone(),
                }
                own[i] = keep;
                live[i] = vars;
            }
            let mut changed = false;
            for (i, fix) in self.fixes.iter().enumerate() {
                let mut now = live[fix.body.index()].clone();
                union(&mut now, &fix.kept);
                if now != of_fix[i] {
                    of_fix[i] = now;
                    changed = true;
                }
            }
            if !changed {
                break;
            }
        }
        for (i, fix) in self.fixes.iter().enumerate() {
            live[fix.head.index()] = of_fix[i].clone();
        }
        self.live = live;
    }

    /// Removes quantified variables that the body does not use (sorts are not empty).
    fn prune_quantifiers(&mut self) {
        for i in 0..self.nodes.len() {
            if let NormalNode::Forall(vars, body) | NormalNode::Exists(vars, body) =
                &mut self.nodes[i]
            {
                let live = &self.live[body.index()];
                vars.retain(|v| live.contains(v));
            }
        }
    }

    /// Returns the fixed-point variables called from the body of each, not through another one.
    fn dependence(&self) -> Vec<Vec<FixId>> {
        let mut mark: Vec<Option<usize>> = vec![None; self.nodes.len()];
        (0..self.fixes.len())
            .map(|x| {
                let mut out = Vec::new();
                let mut stack = vec![self.fixes[x].body];
                while let Some(n) = stack.pop() {
                    if mark[n.index()].replace(x) == Some(x) {
                        continue;
                    }
                    match self.node(n) {
                        NormalNode::Const(_) | NormalNode::Val(_) | NormalNode::Head(_) => {}
                        NormalNode::All(list) | NormalNode::Any(list) => stack.extend(list),
                        NormalNode::Forall(_, b)
                        | NormalNode::Exists(_, b)
                        | NormalNode::Must(_, b)
                        | NormalNode::May(_, b) => stack.push(*b),
                        NormalNode::Call(y, _) => out.push(*y),
                    }
                }
                out.sort_unstable();
                out.dedup();
                out
            })
            .collect()
    }

    fn compute_ranks(&mut self) {
        let n = self.fixes.len();
        let calls = self.dependence();
        let depth = |mut x: usize| {
            let mut d = 0;
            while let Some(p) = self.fixes[x].parent {
                x = p.index();
                d += 1;
            }
            d
        };
        let mut order: Vec<(usize, usize)> = (0..n).map(|x| (depth(x), x)).collect();
        order.sort_unstable_by(|a, b| b.cmp(a));
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); n];
        for (x, fix) in self.fixes.iter().enumerate() {
            if let Some(p) = fix.parent {
                children[p.index()].push(x);
            }
        }
        let mut in_scope: Vec<Option<usize>> = vec![None; n];
        for &(_, x) in &order {
            // The scope of x: x and the variables bound in it.
            let mut scope = vec![x];
            let mut at = 0;
            while at < scope.len() {
                in_scope[scope[at]] = Some(x);
                scope.extend(&children[scope[at]]);
                at += 1;
            }
            // The variables of the scope that x reaches; then the ones among them that reach x.
            let mut reached = vec![];
            let mut seen = ahash::AHashSet::new();
            let mut stack: Vec<usize> = vec![x];
            let mut back: ahash::AHashMap<usize, Vec<usize>> = ahash::AHashMap::new();
            while let Some(y) = stack.pop() {
                for z in calls[y].iter().map(|z| z.index()).filter(|&z| in_scope[z] == Some(x)) {
                    back.entry(z).or_default().push(y);
                    if seen.insert(z) {
                        reached.push(z);
                        stack.push(z);
                    }
                }
            }
            if !seen.contains(&x) {
                self.fixes[x].rank = 0;
                continue;
            }
            let mut cycle = ahash::AHashSet::new();
            let mut stack = vec![x];
            while let Some(y) = stack.pop() {
                for &z in back.get(&y).map_or(&[][..], |v| v) {
                    if cycle.insert(z) {
                        stack.push(z);
                    }
                }
            }
            self.fixes[x].recursive = true;
            let least = u32::from(self.fixes[x].least);
            let below =
                cycle.iter().filter(|&&y| y != x).map(|&y| self.fixes[y].rank).max().unwrap_or(0);
            self.fixes[x].rank = if below % 2 == least { below } else { below + 1 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::typecheck::check_formula;
    use mu_process::typecheck::check_specification;
    use mu_syntax::{parse_formula, parse_specification};

    fn normal(text: &str) -> Result<Normal, Diagnostic> {
        let model = check_specification(
            &parse_specification(Default::default(), "act a, b; c: Nat; init a;").unwrap(),
        )
        .unwrap();
        let formula = check_formula(
            &parse_formula(Default::default(), text).unwrap(),
            &model.data,
            &model.actions,
        )
        .unwrap();
        let mut data = formula.data.clone();
        normalise(&formula, &mut data.signature)
    }

    fn ranks(text: &str) -> Vec<(String, u32)> {
        normal(text).unwrap().fixes.into_iter().map(|f| (f.name, f.rank)).collect()
    }

    #[test]
    fn ranks_follow_dependence() {
        let rank = |name: &str, r| (name.to_string(), r);
        assert_eq!(ranks("nu X. mu Y. ([a]X && [!a]Y)"), [rank("X", 2), rank("Y", 1)]);
        assert_eq!(ranks("mu X. nu Y. (<a>X || <b>Y)"), [rank("X", 1), rank("Y", 0)]);
        // No alternation: Y does not depend on X.
        assert_eq!(
            ranks("nu X. ([true]X && mu Y. ([!a]Y && <true>true))"),
            [rank("X", 0), rank("Y", 1)]
        );
        // Y depends on X because X's cycle passes through Y; Z is independent.
        assert_eq!(
            ranks("nu X. (mu Y. ([a]X && [b]Y) && mu Z. <b>Z)"),
            [rank("X", 2), rank("Y", 1), rank("Z", 1)]
        );
        // A variable that is not used recursively is neither.
        assert_eq!(ranks("mu X. <a>true"), [rank("X", 0)]);
        // A negated fixed point is its dual.
        assert_eq!(ranks("!mu X. <a>X"), [rank("X", 0)]);
        assert_eq!(ranks("!nu X. mu Y. (<a>X || <b>Y)"), [rank("X", 1), rank("Y", 0)]);
        assert_eq!(
            ranks("nu X. mu Y. nu Z. ([a]X && ([a]false || [b]Y) && [b]Z)"),
            [rank("X", 2), rank("Y", 1), rank("Z", 0)]
        );
    }

    #[test]
    fn negated_variables_are_refused() {
        for text in ["nu X. !X", "mu X. ([a]X => <b>true)", "nu X. mu Y. ([a]Y && !(<b>(X || !X)))"]
        {
            let error = normal(text).unwrap_err();
            assert_eq!(error.stage, Stage::Formula, "{text}");
            assert!(
                error.message.contains("fixed-point variable X") && error.span.is_some(),
                "{text}: {error:?}"
            );
        }
        for text in ["nu X. !!X", "mu X. !([a]!X)", "nu X. (!X => false)"] {
            assert!(normal(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn dead_variables_are_dropped() {
        // The parameter p is passed on, but never tested.
        let n = normal("nu X(n: Nat = 0, p: Nat = 1). (val(n < 3) && [a]X(n + 1, p) && forall m: Nat. [c(m)]X(n, m))").unwrap();
        let fix = &n.fixes[0];
        assert_eq!(n.live(fix.head), &fix.params[..1]);
        assert!(n.live(n.root).is_empty());
    }

    /// Returns fixed-point variables with the number of their live variables, and the operands of
    /// quantifiers.
    fn shape(text: &str) -> (Vec<usize>, Vec<String>) {
        let n = normal(text).unwrap();
        let fixes = n.fixes.iter().map(|f| n.live(f.head).len()).collect();
        let mut quantifiers = Vec::new();
        for node in &n.nodes {
            if let NormalNode::Forall(vars, body) | NormalNode::Exists(vars, body) = node {
                let kind = format!("{:?}", n.node(*body));
                let kind = kind.split('(').next().unwrap_or_default();
                quantifiers.push(format!("{} {kind}", vars.len()));
            }
        }
        (fixes, quantifiers)
    }

    #[test]
    fn quantifiers_move_inwards() {
        let same = |text: &str, fixes: &[usize], quantifiers: &[&str]| {
            assert_eq!(
                shape(text),
                (fixes.to_vec(), quantifiers.iter().map(ToString::to_string).collect()),
                "{text}"
            );
        };
        same("exists n: Nat. <true*.c(n)>true", &[0], &["1 May"]);
        same("forall n: Nat. [true*.c(n)]<a>true", &[0], &["1 Must"]);
        same("!exists n: Nat. <true*.c(n)>true", &[0], &["1 Must"]);
        // Of the other kind: it stays, and there is one fixed point for each value.
        same("exists n: Nat. [true*.c(n)]false", &[1], &["1 Call"]);
        same("forall n: Nat. nu X. ([c(n)]false && [true]X)", &[1], &["1 Call"]);
        // Tests move along; variables linked by tests stay together unless labels determine them.
        same("forall n: Nat. val(n < 3) => [true*.c(n)]<a>true", &[0], &["1 Any"]);
        same(
            "forall n, m: Nat. val(n < m) => [true*.c(n).b*.c(m)]<a>true",
            &[1, 0],
            &["1 Any", "1 Must"],
        );
        same(
            "forall n, m: Nat. val(n < m && m < 9) => [true*.(!c(n))*.c(m)]<a>true",
            &[2, 0],
            &["2 Any"],
        );
        // Parts without the variables stay outside, and tests alone are data.
        same("exists n: Nat. val(n > 1) && <true>true", &[], &[]);
        same("forall n: Nat. [c(n)]<a>true && [b]<a>true", &[], &["1 Must"]);
        same("exists n: Nat. <c(n)>true && (<a>true || val(n > 2)) && <b>true", &[], &["1 All"]);
        same("exists n, m: Nat. <c(n)>true && <c(m)>true && [b]false", &[], &["1 May", "1 May"]);
        same("exists n: Nat. exists m: Nat. <a><c(n + m)>true", &[], &["2 May"]);
    }

    #[test]
    fn deep_formulas_do_not_overflow() {
        for text in [
            format!("{}true", "[a]".repeat(10_000)),
            format!("{}true", "!".repeat(9_999)),
            format!("true{}", " && <a>true".repeat(20_000)),
            format!(
                "exists n: Nat. {}<c(n)>true{}",
                "<a>(<b>true && (<a>true || ".repeat(4_000),
                "))".repeat(4_000)
            ),
            format!("{}<c(n)>true", "exists n: Nat. forall m: Nat. ".repeat(4_000)),
        ] {
            assert!(normal(&text).is_ok());
        }
    }
}
