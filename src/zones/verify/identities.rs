//! Components of any number in the checker: identities, and which of them a case distinguishes.
//!
//! In: a process with enough components ([`Identities`]), of which the premise is that the process
//! for any number has these summands, once for each choice of identities. Out: a
//! [`CaseIdentities`]: the *tracked* identities, those that the formula's variables have in a case;
//! for the others, which parameters stand for theirs, which summands are considered, and what is
//! done with lists.
//!
//! *Lemma 1.* A renaming of identities commutes with evaluation. So a step in which untracked
//! components participate is the image of one in which they are the first untracked ones, and other
//! identities are the next constants. *Proof.* By induction over rewriting: [`CaseIdentities::new`]
//! checks that no equation names an identity, compares them by order, or binds a variable over
//! them. ∎
//!
//! *Lemma 2.* A list of identities has different letters, and its untracked letters that a step
//! does not name are alike. A *sieve* drops, of a row of such letters, all or at most one; `tail`
//! drops one. So a row longer than the operations by one or more is as good as one that is longer
//! by one. Without sieves only the letters matter that the tails reach. ∎ Cost: the text of the
//! process.

use super::evaluate::{Term, fails};
use ahash::{AHashMap, AHashSet};
use mu_base::Diagnostic;
use mu_base::ids::{OpId, SortId, VarId};
use mu_data::expr::{Binder, DataSpec, Expr, ExprKind};
use mu_data::signature::{Builtin, OpKind, Signature};
use mu_data::sort::{SortKind, basic};
use mu_process::linear::LinearProcess;

/// The components of any number of a process.
#[derive(Clone, Debug)]
pub struct Identities {
    /// The sort of identities.
    pub sort: SortId,
    /// The identities: those with components, then further ones.
    pub constants: Vec<OpId>,
    /// Number of identities with components.
    pub count: usize,
    /// The identity of the component of each parameter, if there may be any number of it.
    pub owner: Vec<Option<usize>>,
    /// The parameter with the list of all identities.
    pub all: Option<usize>,
}

/// Uses of lists of identities by a summand.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Uses {
    /// Longest sequence of operations on a list.
    pub operations: usize,
    /// Longest sequence of tails.
    pub tails: usize,
    /// Number of the first letters that are looked at, without sieves.
    pub looked: usize,
    /// True if functions traverse a list.
    pub sieves: bool,
}

/// The identities of one case.
#[derive(Clone, Debug)]
pub(super) struct CaseIdentities {
    pub sort: SortId,
    pub constants: Vec<OpId>,
    pub index: AHashMap<OpId, usize>,
    /// The first identities are tracked.
    pub tracked: usize,
    /// Constructors of lists of identities, with their sort: empty list, cons.
    pub list: Option<(SortId, OpId, OpId)>,
    pub all: Option<usize>,
    /// For each parameter of an untracked component the one of the first untracked one.
    pub canonical: Vec<usize>,
    /// For each parameter of a component of any number the one of the first component.
    pub alike: Vec<usize>,
    /// For each parameter of an untracked component its place among the untracked ones.
    pub participant: Vec<Option<usize>>,
    /// For each summand the number of its untracked participants, if these are the first ones.
    pub considered: Vec<Option<usize>>,
    pub uses: Vec<Uses>,
    /// For each summand the list of which it tests more than emptiness.
    pub inspected: Vec<Option<VarId>>,
    /// For each summand whether only updates of lists inspect that list.
    pub is_separate: Vec<bool>,
}

impl CaseIdentities {
    /// Prepares a case with some tracked identities.
    ///
    /// # Errors
    ///
    /// A use of identities for which the lemmas do not hold.
    pub fn new(
        given: &Identities,
        process: &LinearProcess,
        data: &DataSpec,
        tracked: usize,
    ) -> Result<Self, Diagnostic> {
        let signature = &data.signature;
        let index: AHashMap<OpId, usize> =
            given.constants.iter().enumerate().map(|(i, c)| (*c, i)).collect();
        let list = (0..signature.sorts.len())
            .map(SortId::new)
            .find(|s| *signature.sorts.kind(*s) == SortKind::List(given.sort));
        let list = list.and_then(|list| {
            let of = |b: Builtin| {
                let mut ops = signature.ops();
                let found = ops.find(|(_, op)| {
                    op.kind == OpKind::Builtin(b) && signature.domain_range(op.sort).1 == list
                });
                found.map(|(id, _)| id)
            };
            Some((list, of(Builtin::EmptyList)?, of(Builtin::Cons)?))
        });
        let text = Text { signature, list: list.map(|l| l.0), index: &index };
        for e in &data.equations {
            let parts = [&e.lhs, &e.rhs].into_iter().chain(&e.condition);
            for part in parts {
                text.has_no_names(part)?;
                is_plain(signature, given.sort, part)?;
            }
        }
        let sieves = text.sieves(data);
        let own = given.owner.iter().map(|o| o.filter(|i| *i >= tracked));
        let own: Vec<Option<usize>> = own.collect();
        // Parameters of a component, in order.
        let of = |i: usize| (0..own.len()).filter(move |p| given.owner[*p] == Some(i));
        let first: Vec<usize> = of(tracked).collect();
        let mut canonical: Vec<usize> = (0..own.len()).collect();
        for i in tracked..given.count {
            let params: Vec<usize> = of(i).collect();
            if params.len() != first.len() {
                return Err(fails("components of any number differ"));
            }
            params.into_iter().zip(&first).for_each(|(p, f)| canonical[p] = *f);
        }
        let mut alike: Vec<usize> = (0..own.len()).collect();
        for i in 0..given.count {
            of(i).zip(of(0)).for_each(|(p, f)| alike[p] = f);
        }
        let mut considered = Vec::new();
        let mut uses = Vec::new();
        let mut inspected = Vec::new();
        let mut is_separate = Vec::new();
        for summand in &process.summands {
            let mut named = AHashSet::new();
            let mut lists: AHashSet<VarId> = AHashSet::new();
            let mut all = Uses::default();
            let updates = summand.updates.iter().map(|u| &u.1);
            let parts = std::iter::once(&summand.guard).chain(updates);
            for e in parts.chain(summand.actions.iter().flat_map(|a| &a.args)) {
                is_plain(signature, given.sort, e)?;
                e.each_op(&mut |op| named.extend(index.get(&op)));
                let mut free = Vec::new();
                e.free_vars(&mut free);
                for (at, p) in process.params.iter().enumerate() {
                    if free.contains(&p.var) {
                        named.extend(given.owner[at]);
                    }
                }
                text.collect_inspected(e, &mut lists);
                for conjunct in e.conjuncts(signature) {
                    let found = text.uses(&conjunct, &sieves)?;
                    all.operations = all.operations.max(found.operations);
                    all.tails = all.tails.max(found.tails);
                    all.looked = all.looked.max(found.looked);
                    all.sieves |= found.sieves;
                }
            }
            if lists.len() > 1 {
                return Err(fails("a step with two lists of identities"));
            }
            named.extend(summand.updates.iter().filter_map(|u| given.owner[u.0]));
            let mut others: Vec<usize> = named.into_iter().filter(|i| *i >= tracked).collect();
            others.sort_unstable();
            let first = others.iter().enumerate().all(|(k, i)| *i == tracked + k);
            if first && tracked + others.len() >= given.count {
                return Err(fails("too many identities take part in a step"));
            }
            considered.push(first.then_some(others.len()));
            uses.push(all);
            let of_lists = |u: &&(usize, Expr)| list.is_some_and(|l| l.0 == u.1.sort);
            let updates = summand.updates.iter().filter(|u| !of_lists(u)).map(|u| &u.1);
            let others = std::iter::once(&summand.guard).chain(updates);
            let mut elsewhere = AHashSet::new();
            for e in others.chain(summand.actions.iter().flat_map(|a| &a.args)) {
                text.collect_inspected(e, &mut elsewhere);
            }
            // Only one update, so that two never disagree on the letters.
            let inspects = |u: &&(usize, Expr)| {
                let mut found = AHashSet::new();
                text.collect_inspected(&u.1, &mut found);
                !found.is_empty()
            };
            let one = summand.updates.iter().filter(of_lists).filter(inspects).count() == 1;
            is_separate.push(elsewhere.is_empty() && one);
            inspected.push(lists.into_iter().next());
        }
        for (at, p) in process.params.iter().enumerate() {
            let sort = signature.var(p.var).sort;
            let is_list = list.is_some_and(|l| l.0 == sort);
            let empty = matches!(p.init.as_builtin(signature), Some((Builtin::EmptyList, _)));
            if !is_list && list.is_some_and(|l| text.holds(sort, l.0)) {
                return Err(fails("a list of identities inside other data"));
            }
            if is_list && (given.owner[at].is_some() || given.all != Some(at) && !empty) {
                return Err(fails("a list of identities that is not empty at first"));
            }
        }
        Ok(Self {
            sort: given.sort,
            constants: given.constants.clone(),
            index,
            tracked,
            list,
            all: given.all,
            canonical,
            alike,
            participant: own.iter().map(|o| o.map(|i| i - tracked)).collect(),
            considered,
            uses,
            inspected,
            is_separate,
        })
    }

    /// True if a term mentions the list that a summand inspects.
    pub fn inspects(&self, g: usize, term: &Term) -> bool {
        self.inspected[g].is_some_and(|v| term.free.contains(&v))
    }

    /// Returns an identity.
    pub fn constant(&self, signature: &Signature, i: usize) -> Result<Expr, Diagnostic> {
        let op = self.constants.get(i).ok_or_else(|| fails("too many identities"))?;
        Ok(Expr::op(signature, *op))
    }

    /// Returns a term of the first untracked component as one of another participant.
    pub fn of_participant(&self, signature: &Signature, e: &Expr, k: usize) -> Expr {
        let pair = (self.constants.get(self.tracked), self.constants.get(self.tracked + k));
        let (Some(first), Some(own)) = pair else { return e.clone() };
        if k == 0 {
            return e.clone();
        }
        e.replace_operations(&AHashMap::from([(*first, Expr::op(signature, *own))]))
    }
}

/// Checks of terms.
struct Text<'a> {
    signature: &'a Signature,
    list: Option<SortId>,
    index: &'a AHashMap<OpId, usize>,
}

impl Text<'_> {
    fn has_no_names(&self, e: &Expr) -> Result<(), Diagnostic> {
        let mut named = false;
        e.each_op(&mut |op| named |= self.index.contains_key(&op));
        if named { Err(fails("an equation names an identity").or_span(e.span)) } else { Ok(()) }
    }

    /// True if values of a sort contain values of another one.
    fn holds(&self, sort: SortId, part: SortId) -> bool {
        holds(self.signature, sort, part, &mut AHashSet::new())
    }

    /// Returns the mappings that traverse a list of identities and drop some of its elements.
    fn sieves(&self, data: &DataSpec) -> AHashSet<OpId> {
        let Some(list) = self.list else { return AHashSet::new() };
        let mappings = data.equations.iter().filter_map(|e| e.lhs.head());
        mappings.filter(|op| self.is_sieve(data, *op, list)).collect()
    }

    fn is_sieve(&self, data: &DataSpec, op: OpId, list: SortId) -> bool {
        let all = data.equations.iter().filter(|e| e.lhs.head() == Some(op));
        all.into_iter().all(|equation| {
            let ExprKind::Apply(_, args) = &equation.lhs.kind else { return false };
            let Some((last, others)) = args.split_last() else { return false };
            let variables: Vec<VarId> = others
                .iter()
                .filter_map(|a| match a.kind {
                    ExprKind::Var(v) if a.sort != list => Some(v),
                    _ => None,
                })
                .collect();
            if variables.len() != others.len()
                || last.sort != list
                || equation.rhs.sort != list
                || equation.condition.is_some()
            {
                return false;
            }
            match last.as_builtin(self.signature) {
                Some((Builtin::EmptyList, _)) => {
                    matches!(equation.rhs.as_builtin(self.signature), Some((Builtin::EmptyList, _)))
                }
                Some((Builtin::Cons, [first, rest])) => {
                    let (ExprKind::Var(c), ExprKind::Var(cs)) = (&first.kind, &rest.kind) else {
                        return false;
                    };
                    self.sifts(&equation.rhs, (op, &variables), *c, *cs)
                }
                _ => false,
            }
        })
    }

    /// True for a tree of `if` with leaves that are the rest of the list, or the rest after the
    /// sieve, with or without the first element.
    fn sifts(&self, e: &Expr, (op, given): (OpId, &[VarId]), c: VarId, cs: VarId) -> bool {
        let is = |e: &Expr, v: VarId| e.kind == ExprKind::Var(v);
        let rest = |e: &Expr| match &e.kind {
            ExprKind::Var(v) => *v == cs,
            ExprKind::Apply(_, args) => {
                e.head() == Some(op)
                    && args.len() == given.len() + 1
                    && args.iter().zip(given).all(|(a, v)| is(a, *v))
                    && args.last().is_some_and(|a| is(a, cs))
            }
            _ => false,
        };
        match e.as_builtin(self.signature) {
            Some((Builtin::If, [condition, yes, no])) => {
                let mut free = Vec::new();
                condition.free_vars(&mut free);
                !free.contains(&cs)
                    && self.sifts(yes, (op, given), c, cs)
                    && self.sifts(no, (op, given), c, cs)
            }
            Some((Builtin::Cons, [first, more])) => is(first, c) && rest(more),
            _ => rest(e),
        }
    }

    /// Adds the lists of which a term tests more than emptiness.
    fn collect_inspected(&self, e: &Expr, out: &mut AHashSet<VarId>) {
        let variable = |e: &Expr| match e.kind {
            ExprKind::Var(v) if self.list == Some(e.sort) => Some(v),
            _ => None,
        };
        if let Some((Builtin::Equal | Builtin::NotEqual, [a, b])) = e.as_builtin(self.signature) {
            let empty =
                |e: &Expr| matches!(e.as_builtin(self.signature), Some((Builtin::EmptyList, _)));
            if variable(a).is_some() && empty(b) || variable(b).is_some() && empty(a) {
                return;
            }
        }
        stacker::maybe_grow(64 << 10, 1 << 20, || match &e.kind {
            ExprKind::Var(_) => out.extend(variable(e)),
            ExprKind::Apply(head, args) => {
                self.collect_inspected(head, out);
                args.iter().for_each(|a| self.collect_inspected(a, out));
            }
            ExprKind::Bind(_, _, body) => self.collect_inspected(body, out),
            ExprKind::Where(body, definitions) => {
                self.collect_inspected(body, out);
                definitions.iter().for_each(|(_, d)| self.collect_inspected(d, out));
            }
            _ => {}
        });
    }

    /// Returns the uses of lists in a term.
    fn uses(&self, e: &Expr, sieves: &AHashSet<OpId>) -> Result<Uses, Diagnostic> {
        let Some(list) = self.list else { return Ok(Uses::default()) };
        let mut out = Uses::default();
        let more = |found: Uses, out: &mut Uses| {
            out.operations += found.operations;
            out.tails += found.tails;
            out.looked = out.looked.max(found.looked);
            out.sieves |= found.sieves;
        };
        let no = || fails("a list of identities is used in another way").or_span(e.span);
        let builtin = e.as_builtin(self.signature).map(|(b, args)| (b, args.to_vec()));
        if let ExprKind::Bind(_, _, body) = &e.kind {
            return self.uses(body, sieves);
        }
        if let ExprKind::Where(body, definitions) = &e.kind {
            for (_, d) in definitions {
                more(self.uses(d, sieves)?, &mut out);
            }
            more(self.uses(body, sieves)?, &mut out);
            return Ok(out);
        }
        let ExprKind::Apply(_, args) = &e.kind else {
            let given = matches!(builtin, Some((Builtin::EmptyList, _)))
                || matches!(e.kind, ExprKind::Var(_));
            return match e.sort == list && !given {
                true => Err(no()),
                false => Ok(out),
            };
        };
        let empty =
            |e: &Expr| matches!(e.as_builtin(self.signature), Some((Builtin::EmptyList, _)));
        let takes = args.iter().any(|a| a.sort == list);
        let admitted = match &builtin {
            Some((Builtin::Tail, _)) => {
                out.tails += 1;
                true
            }
            Some((Builtin::Head, _)) => e.sort != list,
            Some((Builtin::If, _)) => true,
            Some((Builtin::Equal | Builtin::NotEqual, args)) => args.iter().any(empty),
            _ => {
                let sieve = e.head().is_some_and(|op| sieves.contains(&op));
                out.sieves |= sieve;
                sieve && !args[..args.len() - 1].iter().any(|a| a.sort == list)
            }
        };
        if (takes || e.sort == list) && !admitted {
            return Err(no());
        }
        out.operations += usize::from(takes);
        for a in args {
            more(self.uses(a, sieves)?, &mut out);
        }
        if takes && matches!(builtin, Some((Builtin::Head, _))) {
            out.looked = out.looked.max(out.tails + 1);
        }
        Ok(out)
    }
}

/// True if values of a sort contain values of another one.
fn holds(signature: &Signature, sort: SortId, part: SortId, seen: &mut AHashSet<SortId>) -> bool {
    if sort == part {
        return true;
    }
    if !seen.insert(sort) {
        return false;
    }
    let mut inner = |s: SortId| holds(signature, s, part, seen);
    match signature.sorts.kind(sort) {
        SortKind::List(s)
        | SortKind::Set(s)
        | SortKind::Bag(s)
        | SortKind::FSet(s)
        | SortKind::FBag(s) => inner(*s),
        SortKind::Function(domain, range) => domain.iter().any(|s| inner(*s)) || inner(*range),
        SortKind::Named(_) => {
            let constructors = signature.sorts.declared_sort(sort).map(|n| n.constructors.clone());
            constructors.unwrap_or_default().into_iter().any(|c| {
                let (domain, _) = signature.domain_range(signature.op(c).sort);
                domain.iter().any(|s| inner(*s))
            })
        }
        _ => false,
    }
}

/// True if values of a sort contain identities.
pub(super) fn holds_identities(signature: &Signature, sort: SortId, identity: SortId) -> bool {
    holds(signature, sort, identity, &mut AHashSet::new())
}

/// Checks that a term binds no variable over identities, and compares nothing that contains them by
/// order.
pub(super) fn is_plain(signature: &Signature, sort: SortId, e: &Expr) -> Result<(), Diagnostic> {
    let over = |s: SortId| holds_identities(signature, s, sort);
    stacker::maybe_grow(64 << 10, 1 << 20, || match &e.kind {
        ExprKind::Var(_) | ExprKind::Number(_) | ExprKind::Op(_) => Ok(()),
        ExprKind::Apply(head, args) => {
            let ordered = matches!(
                e.as_builtin(signature),
                Some((
                    Builtin::Less | Builtin::LessEqual | Builtin::Greater | Builtin::GreaterEqual,
                    _
                ))
            );
            if ordered && args.iter().any(|a| over(a.sort)) {
                return Err(fails("identities are compared by order").or_span(e.span));
            }
            is_plain(signature, sort, head)?;
            args.iter().try_for_each(|a| is_plain(signature, sort, a))
        }
        ExprKind::Bind(_, vars, body) => {
            if vars.iter().any(|v| over(signature.var(*v).sort)) {
                return Err(fails("a quantifier over identities").or_span(e.span));
            }
            is_plain(signature, sort, body)
        }
        ExprKind::Where(body, definitions) => {
            definitions.iter().try_for_each(|(_, d)| is_plain(signature, sort, d))?;
            is_plain(signature, sort, body)
        }
    })
}

/// Removes existential variables that an equation determines.
pub(super) fn eliminate_determined(signature: &mut Signature, e: &Expr) -> Expr {
    stacker::maybe_grow(64 << 10, 1 << 20, || match &e.kind {
        ExprKind::Apply(head, args) => {
            let args = args.iter().map(|a| eliminate_determined(signature, a)).collect();
            Expr::new(ExprKind::Apply(head.clone(), args), e.sort, e.span)
        }
        ExprKind::Bind(Binder::Exists, vars, body) => {
            let body = eliminate_determined(signature, body);
            if let Some((Builtin::Or, [a, b])) = body.as_builtin(signature) {
                let of = |part: &Expr| {
                    let kind = ExprKind::Bind(Binder::Exists, vars.clone(), part.clone());
                    Expr::new(kind, e.sort, e.span)
                };
                let (a, b) = (of(a), of(b));
                let (a, b) =
                    (eliminate_determined(signature, &a), eliminate_determined(signature, &b));
                return Expr::builtin(signature, Builtin::Or, vec![a, b], basic::BOOL);
            }
            let (mut vars, mut body) = (vars.clone(), body);
            while let Some((at, value)) = equation(signature, &vars, &body) {
                let var = vars.remove(at);
                body = body.substitute(&[(var, value)].into_iter().collect());
            }
            let mut free = Vec::new();
            body.free_vars(&mut free);
            vars.retain(|v| free.contains(v));
            if vars.is_empty() {
                return body;
            }
            Expr::new(ExprKind::Bind(Binder::Exists, vars, body), e.sort, e.span)
        }
        ExprKind::Bind(binder, vars, body) => {
            let body = eliminate_determined(signature, body);
            Expr::new(ExprKind::Bind(*binder, vars.clone(), body), e.sort, e.span)
        }
        _ => e.clone(),
    })
}

/// Returns the place of a variable, and the value of its own sort to which a conjunct equates it.
fn equation(signature: &Signature, vars: &[VarId], body: &Expr) -> Option<(usize, Expr)> {
    for c in body.conjuncts(signature) {
        let Some((Builtin::Equal, [a, b])) = c.as_builtin(signature) else { continue };
        for (x, value) in [(a, b), (b, a)] {
            let ExprKind::Var(v) = x.kind else { continue };
            let Some(at) = vars.iter().position(|w| *w == v) else { continue };
            let mut free = Vec::new();
            value.free_vars(&mut free);
            if value.sort == signature.var(v).sort && !free.iter().any(|w| vars.contains(w)) {
                return Some((at, value.clone()));
            }
        }
    }
    None
}
