//! Identities in the product: the choices that stand for untracked ones, and letters of lists.
//!
//! In: a case of [`Product`] with a [`CaseIdentities`], abstract values. Out: terms with constants
//! in the place of untracked identities, one for each choice. See [`super::identities`] for the
//! reasons why these choices are enough. Cost: the number of choices.

use super::cells::{ANY, Abstract, OTHER, SOME};
use super::evaluate::{Cases, Term, Values, fails};
use super::identities::{CaseIdentities, Uses};
use super::numbers::Case;
use super::product::Product;
use mu_base::ids::VarId;
use mu_base::{Diagnostic, Span};
use mu_data::expr::{Expr, ExprKind, Substitution};
use mu_data::signature::Builtin;
use std::borrow::Cow;

impl Product<'_> {
    /// Chooses constants of sorts of any size, and untracked identities: those of participants, and
    /// further ones. Returns the number of identities with those of the tracked ones.
    pub(super) fn choose_identities(
        &self,
        open: &[(VarId, u64)],
        participants: usize,
        by: &mut Substitution,
    ) -> Result<usize, Diagnostic> {
        let signature = &self.by.signature;
        for (at, own) in self.by.numbers.merged.borrow().iter().enumerate() {
            let mut case = self.by.numbers.case.borrow_mut();
            let mut next = own.tracked;
            for (var, _) in open.iter().filter(|o| signature.var(o.0).sort == own.sort) {
                let chosen = own.tracked + case.choose(next + 1 - own.tracked);
                next = next.max(chosen + 1);
                by.insert(*var, own.constant(signature, chosen)?);
            }
            case.picked.named[at] = next;
        }
        let Some(crowd) = &self.crowd else { return Ok(0) };
        let of_crowd = |o: &&(VarId, u64)| signature.var(o.0).sort == crowd.sort && o.1 == OTHER;
        let mut next = crowd.tracked + participants;
        for (var, _) in open.iter().filter(of_crowd) {
            let chosen = crowd.tracked + self.by.choose(next + 1 - crowd.tracked);
            next = next.max(chosen + 1);
            by.insert(*var, crowd.constant(&self.by.signature, chosen)?);
        }
        Ok(next)
    }

    /// Returns values with the identities of a case.
    pub(super) fn with_identities<'v>(
        &self,
        values: &'v Values,
        open: &[(VarId, u64)],
    ) -> Result<Cow<'v, Values>, Diagnostic> {
        if open.is_empty() {
            return Ok(Cow::Borrowed(values));
        }
        let mut by = Substitution::new();
        self.choose_identities(open, 0, &mut by)?;
        Ok(Cow::Owned(values.clone().with(&by)))
    }

    /// Chooses the letters of a list of identities; `None` if this choice is none. `next`: the
    /// first identity that nothing names.
    pub(super) fn choose_letters(
        &self,
        crowd: &CaseIdentities,
        (word, is_all): (&Expr, bool),
        open: &[(VarId, u64)],
        uses: Uses,
        next: &mut usize,
    ) -> Result<Option<Expr>, Diagnostic> {
        let Some((_, empty, cons)) = crowd.list else { return Ok(None) };
        let signature = &self.by.signature;
        let mut names: Vec<usize> = (crowd.tracked..*next).collect();
        let mut out: Vec<usize> = Vec::new();
        let mut fresh = || {
            *next += 1;
            *next - 1
        };
        let mut at = word;
        while let Some((Builtin::Cons, [letter, rest])) = at.as_builtin(signature) {
            at = rest;
            let ExprKind::Var(v) = letter.kind else {
                let i = letter.head().and_then(|op| crowd.index.get(&op));
                out.push(*i.ok_or_else(|| fails("a letter that is no identity"))?);
                continue;
            };
            let kind = open.iter().find(|o| o.0 == v).map_or(ANY, |o| o.1);
            let before = out.len();
            if uses.sieves {
                loop {
                    for _ in 0..self.by.choose(uses.operations + 2) {
                        out.push(fresh());
                    }
                    match self.by.choose(names.len() + 1) {
                        0 => break,
                        i => out.push(names.remove(i - 1)),
                    }
                }
                if kind == SOME && out.len() == before {
                    return Ok(None);
                }
                continue;
            }
            let (seen, low) = (uses.tails + 1, usize::from(kind == SOME));
            let high = seen.saturating_sub(before).max(1);
            for _ in 0..low + self.by.choose(high - low + 1) {
                // Only the first letters are looked at.
                let named =
                    if out.len() < uses.looked { self.by.choose(names.len() + 1) } else { 0 };
                out.push(if named == 0 { fresh() } else { names.remove(named - 1) });
            }
        }
        // The list of all identities contains each.
        if is_all && uses.sieves && !names.is_empty() {
            return Ok(None);
        }
        let mut list = Expr::op(signature, empty);
        for i in out.into_iter().rev() {
            let letter = crowd.constant(signature, i)?;
            list = Expr::apply(signature, cons, vec![letter, list]);
        }
        Ok(Some(list))
    }

    /// Chooses an order of the tracked identities in the list of all, and returns that list.
    pub(super) fn list_of_all(&self, crowd: &CaseIdentities) -> Result<Abstract, Diagnostic> {
        let Some((_, empty, cons)) = crowd.list else {
            return Err(fails("there are no lists of identities"));
        };
        let signature = &self.by.signature;
        let mut left: Vec<usize> = (0..crowd.tracked).collect();
        let mut letters = Vec::new();
        let mut cells = Vec::new();
        let pool = self.by.pool.get(&crowd.sort);
        loop {
            let var = pool.and_then(|all| all.get(self.cuts.bases.len() + cells.len()));
            let var = *var.ok_or_else(|| fails("too many identities"))?;
            cells.push((crowd.sort, ANY));
            letters.push(Expr::new(ExprKind::Var(var), crowd.sort, Span::default()));
            if left.is_empty() {
                break;
            }
            let next = left.remove(self.by.choose(left.len()));
            letters.push(crowd.constant(signature, next)?);
        }
        let end = Expr::op(signature, empty);
        let cons = |list, letter| Expr::apply(signature, cons, vec![letter, list]);
        Ok(Abstract { e: letters.into_iter().rev().fold(end, cons), cells })
    }

    /// Returns the values of a parameter after an update that inspects a list: for each choice of
    /// the letters.
    pub(super) fn words(
        &mut self,
        g: usize,
        param: usize,
        (term, values): (&Term, &Values),
        (open, lists, named): (&[(VarId, u64)], &[(VarId, usize)], usize),
    ) -> Result<Vec<u16>, Diagnostic> {
        let Some(crowd) = self.crowd.clone() else { return Ok(Vec::new()) };
        let mut free = term.free.clone();
        free.sort_unstable();
        let given: Vec<Expr> = free.iter().filter_map(|v| values.get(*v)).cloned().collect();
        let key = (g, param, given, named);
        if let Some(known) = self.known_words.get(&key) {
            return Ok(known.clone());
        }
        let numbers = self.by.numbers.clone();
        let saved = (numbers.case.take(), numbers.of.take());
        let mut cases = Cases::of(Case::of(1, &[]));
        let mut out = Vec::new();
        while cases.begin(&self.by, &[])? {
            numbers.case.borrow_mut().picked = saved.0.picked.clone();
            let (mut own, mut next, mut possible) = (values.clone(), named, true);
            for (var, r) in lists.iter().filter(|l| crowd.inspected[g] == Some(l.0)) {
                let Some(word) = values.get(*var).cloned() else { continue };
                let given = (&word, crowd.all == Some(*r));
                match self.choose_letters(&crowd, given, open, crowd.uses[g], &mut next)? {
                    Some(list) => own.insert(*var, list),
                    None => possible = false,
                }
            }
            if possible {
                let e = self.by.value(term, &own)?;
                let id = self.value(param, &e)?;
                if !out.contains(&id) {
                    out.push(id);
                }
            }
            cases.end(&self.by);
        }
        (*numbers.case.borrow_mut(), *numbers.of.borrow_mut()) = saved;
        self.known_words.insert(key, out.clone());
        Ok(out)
    }

    /// Returns a term of a parameter of the state as one of a parameter that it stands for.
    pub(super) fn term_of(&self, param: usize, e: &Expr) -> Expr {
        match &self.crowd {
            Some(crowd) => {
                let k = crowd.participant[param].unwrap_or(0);
                crowd.of_participant(&self.by.signature, e, k)
            }
            None => e.clone(),
        }
    }

    /// Returns the term that a summand reads. Of a list of which it tests only emptiness, rows are
    /// one letter.
    pub(super) fn term_for(&self, g: usize, param: usize, value: &Abstract, e: &Expr) -> Expr {
        let e = self.term_of(param, e);
        let Some(crowd) = &self.crowd else { return e };
        let var = self.question.process.params[param].var;
        let is_list = crowd.list.is_some_and(|l| l.0 == e.sort);
        let rows = value.cells.iter().all(|c| c.1 == SOME);
        if !is_list || !rows || crowd.inspected[g] == Some(var) {
            return e;
        }
        let (mut free, mut by) = (Vec::new(), Substitution::new());
        e.free_vars(&mut free);
        for v in free {
            if let Some(op) = crowd.constants.last() {
                by.insert(v, Expr::op(&self.by.signature, *op));
            }
        }
        e.substitute(&by)
    }

    /// Returns the parameter of the state that stands for another one.
    pub(super) fn home(&self, param: usize) -> usize {
        self.crowd.as_ref().map_or(param, |crowd| crowd.canonical[param])
    }
}
