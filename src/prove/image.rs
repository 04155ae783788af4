//! Pre-images: from a cube and a rule to the cubes of states from which the rule can lead into the
//! cube. There is one for each combination of the following choices:
//!
//! - for each process of the rule, a process of the cube or a new one;
//! - for each update, one of its cases;
//! - for each named process, a disjunct of `forall_other`;
//! - under total store order, for each read: before or after the write (see [`crate::stages`]).
//!
//! Exact except for three over-approximations, which can only make the answer unknown:
//! `forall_other` is restricted to named processes (as in the monotonic abstraction of Ghilardi and
//! Ranise), the old value of `X := .` is projected over the rationals, and unmentioned processes
//! are dropped. A rule that sets no cell of the cube gives a subset of the cube and is skipped.

use crate::atom::{
    Atom, Cell, JOINT, LinearConstraint, Literal, MAX_PROCESSES, NONE, Point, Signature,
    SymbolSort, TooLarge, map_set,
};
use crate::cube::Cube;
use crate::decide::Decider;
use crate::residues::{self, ResidueSum};
use crate::rules::{
    Comparison, ComparisonScope, FIXED, Rule, RuleValue, Rules, UpdateEffect, instantiate,
};
use crate::simplex::{SimplexAnswer, ZeroRelation};
use crate::stages;
use mu_base::narrow;
use std::ops::ControlFlow;

/// The view of an eliminated value.
const FORGOTTEN: (u8, u8) = (NONE - 2, 0);
/// Limit on the choices of cases of one transition into one cube; beyond it the search reports
/// [`Trouble::Cases`].
const MAX_CHOICES: u32 = 100_000;
/// Limit on the conditions of the cases of one update; the condition of a case includes the
/// negations of those before it.
const MAX_CONDITIONS: usize = 1 << 20;
/// Limit on the stages of one process in a cube; beyond it the search reports [`Trouble::Stages`].
const MAX_STAGES: usize = 200;

/// The reason why a pre-image is not representable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// More processes than a cube can name.
    Processes,
    /// A number with more than 63 bits.
    Number,
    /// Too many pending reads of one process.
    Stages,
    /// Too many choices of cases by which a transition leads into a cube.
    Cases,
}

impl From<TooLarge> for Trouble {
    fn from(_: TooLarge) -> Trouble {
        Trouble::Number
    }
}

/// The processes of a rule's parameters.
pub type Binding = Vec<u8>;

/// Calls a function with each injective binding of `params` parameters to `named` processes and new
/// ones, and with the resulting number of processes, until it breaks. There can be too many to
/// store: 10 parameters have 800 million bindings to 11 processes.
///
/// # Errors
///
/// A binding has more processes than a cube can name.
pub fn for_each_binding<B>(
    params: usize,
    named: usize,
    most: Option<usize>,
    f: &mut dyn FnMut(&Binding, usize) -> ControlFlow<B>,
) -> Result<ControlFlow<B>, Trouble> {
    fn extend<B>(
        binding: &mut Binding,
        params: usize,
        total: usize,
        most: Option<usize>,
        f: &mut dyn FnMut(&Binding, usize) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>, Trouble> {
        if binding.len() == params {
            return Ok(f(binding, total));
        }
        for p in 0..=total {
            if binding.contains(&(narrow::byte(p)))
                || (p == total && most.is_some_and(|m| total >= m))
            {
                continue;
            }
            if p >= MAX_PROCESSES {
                return Err(Trouble::Processes);
            }
            binding.push(narrow::byte(p));
            let flow = extend(binding, params, total.max(p + 1), most, f)?;
            binding.pop();
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(ControlFlow::Continue(()))
    }
    extend(&mut Vec::new(), params, named, most, f)
}

/// A conjunction under construction; false once a simple check contradicts it.
#[derive(Clone)]
struct Draft {
    atoms: Vec<Atom>,
}

impl Draft {
    fn add(&mut self, literal: Literal) -> bool {
        match literal {
            Literal::True => true,
            Literal::False => false,
            Literal::Atom(Atom::In(c, set)) => {
                for a in &mut self.atoms {
                    if let Atom::In(d, old) = a
                        && *d == c
                    {
                        *old &= set;
                        return *old != 0;
                    }
                }
                self.atoms.push(Atom::In(c, set));
                true
            }
            Literal::Atom(a) => {
                if let Some((cell, ..)) = single(&a)
                    && let Some(holds) = self.glance(cell, &a)
                {
                    return holds;
                }
                self.atoms.push(a);
                true
            }
        }
    }
    /// Decides an atom about one number by an equation about it, if there is one. If the atom is
    /// the equation, implied atoms are dropped.
    fn glance(&mut self, cell: Cell, atom: &Atom) -> Option<bool> {
        let about = |a: &Atom| single(a).is_some_and(|s| s.0 == cell);
        if let Some(value) = self.atoms.iter().filter(|a| about(a)).find_map(equated_value) {
            return holds_at(atom, value);
        }
        if let Some(value) = equated_value(atom) {
            if self.atoms.iter().any(|a| about(a) && holds_at(a, value) == Some(false)) {
                return Some(false);
            }
            self.atoms.retain(|a| !(about(a) && holds_at(a, value) == Some(true)));
        }
        None
    }
}

/// Returns the only cell of a linear atom, with its factor, the constant and the relation.
fn single(atom: &Atom) -> Option<(Cell, i64, i64, ZeroRelation)> {
    match atom {
        Atom::Linear(l) => match l.terms.as_slice() {
            [(cell, factor)] => Some((*cell, *factor, l.constant, l.relation)),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the integer to which an equation about one cell sets it.
fn equated_value(atom: &Atom) -> Option<i64> {
    let (_, factor, constant, relation) = single(atom)?;
    (relation == ZeroRelation::Eq && constant.checked_rem(factor)? == 0)
        .then(|| constant.checked_div(factor)?.checked_neg())
        .flatten()
}

/// Returns whether an atom about one cell holds for a number; `None` on overflow.
fn holds_at(atom: &Atom, value: i64) -> Option<bool> {
    let (_, factor, constant, relation) = single(atom)?;
    let sum = factor.checked_mul(value)?.checked_add(constant)?;
    Some(match relation {
        ZeroRelation::Le => sum <= 0,
        ZeroRelation::Lt => sum < 0,
        ZeroRelation::Eq => sum == 0,
        ZeroRelation::Ne => sum != 0,
    })
}

struct Image<'a> {
    rules: &'a Rules,
    rule: &'a Rule,
    binding: &'a [u8],
    processes: usize,
    actor: u8,
    out: &'a mut Vec<(Cube, Vec<u8>)>,
    /// Number of choices of cases that may still be tried.
    choices: u32,
}

/// The effect of a rule on a cell.
enum CellImage {
    Moved(Cell),
    Set(Vec<(Vec<Atom>, RuleValue)>),
}

/// Adds the pre-images of the cube by the rule to `out`, with the new names of its processes. The
/// parameters are bound as given, in a cube of `processes` processes.
pub fn pre_image(
    rules: &Rules,
    cube: &Cube,
    rule: &Rule,
    binding: &[u8],
    processes: usize,
    out: &mut Vec<(Cube, Vec<u8>)>,
) -> Result<(), Trouble> {
    let actor =
        rule.actor.map_or(NONE, |a| if a >= FIXED { a - FIXED } else { binding[usize::from(a)] });
    let mut image = Image { rules, rule, binding, processes, actor, out, choices: MAX_CHOICES };
    image.run(cube)
}

impl Image<'_> {
    fn signature(&self) -> &Signature {
        &self.rules.signature
    }
    fn scope(&self) -> ComparisonScope<'_> {
        ComparisonScope { signature: &self.rules.signature, processes: self.processes }
    }
    fn process(&self, template: u8, bound: &[(u8, u8)]) -> u8 {
        if template >= FIXED {
            return template - FIXED;
        }
        bound
            .iter()
            .find(|b| b.0 == template)
            .map_or_else(|| self.binding[usize::from(template)], |b| b.1)
    }
    /// True if the access is locked: it reads and writes memory at one moment.
    fn is_locked(&self) -> bool {
        self.rule.reads && self.rule.writes
    }
    fn value(&self, value: &RuleValue, bound: &[(u8, u8)]) -> RuleValue {
        let locked = self.is_locked();
        let weak = &self.signature().weak;
        instantiate(value, &|p| self.process(p, bound), &|c| {
            if !weak[c.symbol()] || locked { c } else { c.with_view(Some((self.actor, 0))) }
        })
    }
    fn test(&self, test: &Comparison, bound: &[(u8, u8)]) -> Result<Literal, Trouble> {
        Ok(self.scope().test(test, &|v| self.value(v, bound))?)
    }
    fn run(&mut self, cube: &Cube) -> Result<(), Trouble> {
        let mut base = Draft { atoms: Vec::new() };
        for t in &self.rule.guard {
            if !base.add(self.test(t, &[])?) {
                return Ok(());
            }
        }
        let mut post: Vec<Atom> = cube.atoms.clone();
        for a in &mut post {
            if let Atom::In(c, set) = a
                && self.rules.signature.sort(*c) == SymbolSort::Process
            {
                *set = map_set(*set, cube.processes, self.processes, |p| p);
            }
        }
        let fences = self.rule.fence || self.rule.universal.iter().any(|u| u.1.iter().any(|c| c.1));
        let pending = (self.rule.reads || fences) && !self.is_locked();
        if pending {
            let old = stages::of(&post, self.actor);
            if old.len() >= MAX_STAGES {
                return Err(Trouble::Stages);
            }
            for s in old.into_iter().rev().filter(|s| *s != JOINT) {
                stages::shift(&mut post, (self.actor, s), Some((self.actor, s + 1)));
            }
            if self.rule.fence {
                base.atoms.push(Atom::Fence(self.actor, 0));
            }
        }
        let mut cells: Vec<Cell> = post.iter().flat_map(Atom::cells).collect();
        cells.sort_unstable();
        cells.dedup();
        if !cells.iter().any(|c| self.may_set(*c)) {
            return Ok(());
        }
        if !self.rule.writes {
            return self.choose(&post, &cells, &base, &|_| false);
        }
        for after in self.splits(&post, &cells) {
            self.choose(&post, &cells, &base, &|view| after.contains(&view))?;
        }
        Ok(())
    }
    /// True if the rule may set the cell.
    fn may_set(&self, cell: Cell) -> bool {
        self.rule.changes.iter().any(|c| match c {
            UpdateEffect::Assign(t, _) => {
                t.symbol() == cell.symbol() && t.map(|p| self.process(p, &[])) == cell.current()
            }
            UpdateEffect::Cases(s, ..) => *s == cell.symbol(),
        })
    }
    /// Returns the sets of stages that read memory after the write, under total store order: one
    /// set for each choice that no other covers.
    fn splits(&self, post: &[Atom], cells: &[Cell]) -> Vec<Vec<(u8, u8)>> {
        let viewers = stages::viewers(post);
        let own = stages::of(post, self.actor);
        let forced =
            if self.is_locked() { own.first().copied() } else { stages::fence(post, self.actor) };
        let own_after: Vec<(u8, u8)> = own
            .iter()
            .filter(|s| forced.is_some_and(|f| **s >= f))
            .map(|s| (self.actor, *s))
            .collect();
        let touched =
            |view: (u8, u8)| cells.iter().any(|c| c.view() == Some(view) && self.may_set(*c));
        let ending = stages::has_end(post);
        // The end of the run is not before a write that was in memory when its process continued.
        let joint_forced = ending && (self.is_locked() || forced.is_some());
        let mut found = Vec::new();
        for joint_after in [false, true] {
            if joint_forced && !joint_after || joint_after && !ending {
                continue;
            }
            let mut sets = vec![own_after.clone()];
            if joint_after && own.contains(&JOINT) && !joint_forced {
                sets[0].push((self.actor, JOINT));
            }
            for &p in viewers.iter().filter(|p| **p != self.actor) {
                let list = stages::of(post, p);
                let member = list.contains(&JOINT);
                // The first stage after the write; `None` for no stage.
                let mut starts: Vec<Option<u8>> = list
                    .iter()
                    .copied()
                    .filter(|&s| touched((p, s)) || (member && s == JOINT))
                    .map(Some)
                    .collect();
                if ending && !joint_after {
                    // No stage is after the end.
                    starts.clear();
                }
                if !(member && joint_after) {
                    starts.push(None);
                }
                let mut next = Vec::new();
                for set in &sets {
                    for start in &starts {
                        let mut set = set.clone();
                        set.extend(
                            list.iter()
                                .filter(|s| start.is_some_and(|x| **s >= x))
                                .map(|s| (p, *s)),
                        );
                        next.push(set);
                    }
                }
                sets = next;
            }
            if joint_after && !joint_forced {
                // Otherwise the stages, and the end, may as well be before the write.
                sets.retain(|set| set.iter().any(|v| v.0 != self.actor && touched(*v)));
            }
            found.append(&mut sets);
        }
        found
    }
    /// Enumerates all choices of cases, for the given stages after the write.
    fn choose(
        &mut self,
        post: &[Atom],
        cells: &[Cell],
        base: &Draft,
        after: &dyn Fn((u8, u8)) -> bool,
    ) -> Result<(), Trouble> {
        let mut targets: Vec<(Cell, CellImage)> = Vec::new();
        let mut set = false;
        for &cell in cells {
            let now = match cell.view() {
                None => true,
                Some(view) if after(view) => true,
                Some((p, _)) if p == self.actor => false,
                Some(_) => continue,
            };
            match self.alternatives(cell.current())? {
                Some(list) => {
                    set = true;
                    let rest = if now { cell.current() } else { cell };
                    let list = list
                        .into_iter()
                        .map(|(c, v)| (c, v.unwrap_or_else(|| self.unchanged_value(rest))))
                        .collect();
                    targets.push((cell, CellImage::Set(list)));
                }
                None if cell.view().is_some() && now => {
                    targets.push((cell, CellImage::Moved(cell.current())))
                }
                None => {}
            }
        }
        if !set {
            return Ok(());
        }
        let mut fences: Vec<Atom> = Vec::new();
        let mut rest: Vec<Atom> = Vec::new();
        for a in post {
            match a {
                Atom::Fence(p, s) if after((*p, *s)) => {}
                Atom::Fence(..) => fences.push(a.clone()),
                a => rest.push(a.clone()),
            }
        }
        let mut draft = base.clone();
        draft.atoms.append(&mut fences);
        self.product(&rest, &targets, 0, &mut Vec::new(), draft)
    }
    fn unchanged_value(&self, cell: Cell) -> RuleValue {
        if self.signature().sort(cell).is_numeric() {
            RuleValue::Sum { terms: vec![(cell, 1)], constant: 0, scale: 1 }
        } else {
            RuleValue::Cell(cell)
        }
    }
    /// Returns the values that the rule may give the cell of memory now or of plain state, each
    /// with its condition; inner `None`: unchanged. Outer `None`: the rule does not set the cell.
    fn alternatives(
        &self,
        cell: Cell,
    ) -> Result<Option<Vec<(Vec<Atom>, Option<RuleValue>)>>, Trouble> {
        for change in &self.rule.changes {
            match change {
                UpdateEffect::Assign(target, value) => {
                    if target.symbol() == cell.symbol()
                        && target.map(|p| self.process(p, &[])) == cell
                    {
                        return Ok(Some(vec![(Vec::new(), Some(self.value(value, &[])))]));
                    }
                }
                UpdateEffect::Cases(symbol, bound, cases) if *symbol == cell.symbol() => {
                    let bound: Vec<(u8, u8)> = bound.iter().copied().zip(cell.args()).collect();
                    return self.cases(cell, &bound, cases).map(Some);
                }
                UpdateEffect::Cases(..) => {}
            }
        }
        Ok(None)
    }
    fn cases(
        &self,
        cell: Cell,
        bound: &[(u8, u8)],
        cases: &[(Vec<Comparison>, RuleValue)],
    ) -> Result<Vec<(Vec<Atom>, Option<RuleValue>)>, Trouble> {
        let mut found = Vec::new();
        // The conjunctions under which no case so far matches.
        let mut before: Vec<Draft> = vec![Draft { atoms: Vec::new() }];
        let mut condition_count = 0;
        for (condition, value) in cases {
            condition_count += before.iter().map(|d| d.atoms.len()).sum::<usize>();
            if condition_count > MAX_CONDITIONS {
                return Err(Trouble::Cases);
            }
            let literals =
                condition.iter().map(|t| self.test(t, bound)).collect::<Result<Vec<_>, _>>()?;
            if literals.contains(&Literal::False) {
                continue;
            }
            let value = self.value(value, bound);
            let value = if crate::rules::is_cell(&value, cell) { None } else { Some(value) };
            let mut next = Vec::new();
            for draft in &before {
                let mut matching = draft.clone();
                if literals.iter().all(|l| matching.add(l.clone())) {
                    found.push((matching.atoms, value.clone()));
                }
                // The first literal that is false.
                let mut so_far = draft.clone();
                for l in &literals {
                    if let Literal::Atom(a) = l {
                        let mut fails = so_far.clone();
                        if fails.add(a.negate(self.signature(), self.processes)?) {
                            next.push(fails);
                        }
                    }
                    if !so_far.add(l.clone()) {
                        break;
                    }
                }
            }
            before = next;
            if before.is_empty() {
                break;
            }
        }
        found.extend(before.into_iter().map(|d| (d.atoms, None)));
        Ok(found)
    }
    fn product(
        &mut self,
        post: &[Atom],
        targets: &[(Cell, CellImage)],
        at: usize,
        chosen: &mut Vec<(Cell, RuleValue)>,
        draft: Draft,
    ) -> Result<(), Trouble> {
        let Some((cell, target)) = targets.get(at) else {
            return self.substitute(post, chosen, draft);
        };
        match target {
            CellImage::Moved(to) => {
                chosen.push((*cell, self.unchanged_value(*to)));
                self.product(post, targets, at + 1, chosen, draft)?;
                chosen.pop();
            }
            CellImage::Set(list) => {
                for (condition, value) in list {
                    if !self.agrees(post, *cell, value) {
                        continue;
                    }
                    self.choices = self.choices.checked_sub(1).ok_or(Trouble::Cases)?;
                    let mut next = draft.clone();
                    if condition.iter().all(|a| next.add(Literal::Atom(a.clone()))) {
                        chosen.push((*cell, value.clone()));
                        self.product(post, targets, at + 1, chosen, next)?;
                        chosen.pop();
                    }
                }
            }
        }
        Ok(())
    }
    /// True if a simple check allows the value for the cell.
    fn agrees(&self, post: &[Atom], cell: Cell, value: &RuleValue) -> bool {
        let bit = match value {
            RuleValue::Constant(v) => 1 << v,
            RuleValue::Process(p) => 1 << p,
            RuleValue::Sum { terms, constant, scale: 1 } if terms.is_empty() => {
                return post.iter().all(|a| {
                    single(a).is_none_or(|s| s.0 != cell) || holds_at(a, *constant) != Some(false)
                });
            }
            _ => return true,
        };
        post.iter().all(|a| !matches!(a, Atom::In(c, set) if *c == cell && set & bit == 0))
    }
    /// Substitutes the chosen values in the atoms, then adds `forall_other`.
    fn substitute(
        &mut self,
        post: &[Atom],
        chosen: &[(Cell, RuleValue)],
        mut draft: Draft,
    ) -> Result<(), Trouble> {
        let forgotten = chosen.iter().any(|c| c.1 == RuleValue::Any);
        let of = |c: Cell| match chosen.iter().find(|x| x.0 == c) {
            None => self.unchanged_value(c),
            Some((_, RuleValue::Any)) => self.unchanged_value(c.with_view(Some(FORGOTTEN))),
            Some((_, v)) => v.clone(),
        };
        for a in post {
            let literal = put(self.scope(), a, &of)?;
            if !draft.add(literal) {
                return Ok(());
            }
        }
        if forgotten && !project(self.signature(), &mut draft.atoms)? {
            return Ok(());
        }
        let others: Vec<(usize, u8)> = (0..self.rule.universal.len())
            .flat_map(|u| (0..narrow::byte(self.processes)).map(move |p| (u, p)))
            .filter(|(_, p)| !self.binding[..self.rule.declared].contains(p))
            .collect();
        self.everyone(&others, draft)
    }
    fn everyone(&mut self, others: &[(usize, u8)], mut draft: Draft) -> Result<(), Trouble> {
        let Some((&(universal, process), rest)) = others.split_first() else {
            if let Some(cube) = Cube::with_names(self.signature(), self.processes, draft.atoms) {
                self.out.push(cube);
            }
            return Ok(());
        };
        let (variable, dnf) = &self.rule.universal[universal];
        let mut cubes: Vec<Vec<Literal>> = Vec::new();
        for (cube, fence) in dnf {
            let mut literals = cube
                .iter()
                .map(|t| self.test(t, &[(*variable, process)]))
                .collect::<Result<Vec<_>, _>>()?;
            if literals.contains(&Literal::False) {
                continue;
            }
            literals.retain(|l| *l != Literal::True);
            if *fence && !self.is_locked() {
                literals.push(Literal::Atom(Atom::Fence(self.actor, 0)));
            }
            if literals.is_empty() {
                return self.everyone(rest, draft);
            }
            cubes.push(literals);
        }
        if let [only] = cubes.as_slice() {
            return if only.iter().all(|l| draft.add(l.clone())) {
                self.everyone(rest, draft)
            } else {
                Ok(())
            };
        }
        for cube in cubes {
            let mut next = draft.clone();
            if cube.into_iter().all(|l| next.add(l)) {
                self.everyone(rest, next)?;
            }
        }
        Ok(())
    }
}

/// Substitutes values for cells in an atom.
pub fn put(
    scope: ComparisonScope<'_>,
    atom: &Atom,
    of: &impl Fn(Cell) -> RuleValue,
) -> Result<Literal, TooLarge> {
    use mu_cubicle::system::ComparisonOp;
    let truth = |holds: bool| if holds { Literal::True } else { Literal::False };
    Ok(match atom {
        Atom::In(c, set) => match of(*c) {
            RuleValue::Cell(d) => Literal::Atom(Atom::In(d, *set)),
            RuleValue::Constant(v) => truth(set & (1 << v) != 0),
            RuleValue::Process(p) => truth(set & (1 << p) != 0),
            _ => Literal::True,
        },
        Atom::Same(a, b, equal) => scope.compare(
            &of(*a),
            if *equal { ComparisonOp::Eq } else { ComparisonOp::Neq },
            &of(*b),
        )?,
        Atom::Before(a, b, strict) => {
            let value = |p: Point| match p {
                Point::Variable(v) => RuleValue::Process(v),
                Point::Cell(c) => of(c),
            };
            scope.compare(
                &value(*a),
                if *strict { ComparisonOp::Lt } else { ComparisonOp::Le },
                &value(*b),
            )?
        }
        Atom::Linear(l) => {
            let mut terms: Vec<(Cell, i64)> = Vec::new();
            let mut constant = l.constant;
            let mut by = 1i64;
            let values: Vec<(RuleValue, i64)> = l.terms.iter().map(|(c, f)| (of(*c), *f)).collect();
            let times = |a: i64, b: i64| a.checked_mul(b).ok_or(TooLarge);
            for (v, _) in &values {
                if let RuleValue::Sum { scale, .. } = v {
                    by = num_integer::lcm(by, *scale);
                }
            }
            constant = times(constant, by)?;
            for (v, f) in values {
                let RuleValue::Sum { terms: sum, constant: c, scale } = v else {
                    return Ok(Literal::True);
                };
                let f = times(f, by / scale)?;
                for (cell, g) in sum {
                    terms.push((cell, times(f, g)?));
                }
                constant = constant.checked_add(times(f, c)?).ok_or(TooLarge)?;
            }
            let integer = l.terms.iter().all(|t| scope.signature.sort(t.0) == SymbolSort::Integer);
            LinearConstraint::new(terms, constant, l.relation, integer)?
        }
        Atom::Residues(r) => {
            let mut any = false;
            let mut large = false;
            let sums: Vec<(Cell, Option<ResidueSum>)> = r
                .cells()
                .map(|c| match of(c) {
                    RuleValue::Sum { terms, constant, scale } => {
                        let sum = residues::whole(&terms, constant, scale, r.bits);
                        large |= sum.is_err();
                        (c, sum.ok())
                    }
                    _ => {
                        any = true;
                        (c, None)
                    }
                })
                .collect();
            if large {
                return Err(TooLarge);
            }
            if any {
                return Ok(Literal::True);
            }
            r.put(&|c| sums.iter().find(|s| s.0 == c).and_then(|s| s.1.clone()))
        }
        Atom::Fence(..) => Literal::Atom(atom.clone()),
    })
}

/// Eliminates old values: by an equality if there is one, else by Fourier and Motzkin. Returns
/// false on a contradiction.
fn project(signature: &Signature, atoms: &mut Vec<Atom>) -> Result<bool, TooLarge> {
    let is = |c: Cell| c.view() == Some(FORGOTTEN);
    if Decider::of(signature, MAX_PROCESSES, atoms).check() == SimplexAnswer::Unsatisfiable {
        return Ok(false);
    }
    while let Some(cell) = atoms.iter().flat_map(Atom::cells).find(|c| is(*c)) {
        let (with, mut without): (Vec<Atom>, Vec<Atom>) =
            atoms.drain(..).partition(|a| a.cells().contains(&cell));
        let twin = with.iter().find_map(|a| match a {
            Atom::Same(a, b, true) => Some(if *a == cell { *b } else { *a }),
            _ => None,
        });
        let scope = ComparisonScope { signature, processes: MAX_PROCESSES };
        let mut keep = |l: Literal| match l {
            Literal::Atom(a) => {
                without.push(a);
                true
            }
            Literal::True => true,
            Literal::False => false,
        };
        if let Some(twin) = twin {
            for a in &with {
                if !keep(put(scope, a, &|c| RuleValue::Cell(if c == cell { twin } else { c }))?) {
                    return Ok(false);
                }
            }
        } else {
            for (low, high) in pairs(&with, cell) {
                if !keep(combine(signature, low, high, cell)?) {
                    return Ok(false);
                }
            }
        }
        *atoms = without;
    }
    Ok(true)
}

fn factor(l: &LinearConstraint, cell: Cell) -> i64 {
    l.terms.iter().find(|t| t.0 == cell).map_or(0, |t| t.1)
}

/// Returns pairs of constraints that bound the cell from below and from above; an equation does
/// both.
fn pairs(atoms: &[Atom], cell: Cell) -> Vec<(&LinearConstraint, &LinearConstraint)> {
    let bounds: Vec<&LinearConstraint> = atoms
        .iter()
        .filter_map(|a| match a {
            Atom::Linear(l) if l.relation != ZeroRelation::Ne => Some(l.as_ref()),
            _ => None,
        })
        .collect();
    let mut found = Vec::new();
    for (i, a) in bounds.iter().enumerate() {
        for b in &bounds[i + 1..] {
            let opposite = (factor(a, cell) > 0) != (factor(b, cell) > 0);
            if opposite || a.relation == ZeroRelation::Eq || b.relation == ZeroRelation::Eq {
                found.push((*a, *b));
            }
        }
    }
    found
}

/// Combines two constraints so that the cell cancels.
fn combine(
    signature: &Signature,
    a: &LinearConstraint,
    b: &LinearConstraint,
    cell: Cell,
) -> Result<Literal, TooLarge> {
    let (f, g) = (factor(a, cell), factor(b, cell));
    // An equation may be negated so that its factor is opposite.
    let (x, y) = (g.abs(), f.abs());
    let sign_a = if a.relation == ZeroRelation::Eq && (f > 0) == (g > 0) { -1 } else { 1 };
    let sign_b =
        if sign_a == 1 && b.relation == ZeroRelation::Eq && (f > 0) == (g > 0) { -1 } else { 1 };
    let times = |n: i64, by: i64| n.checked_mul(by).ok_or(TooLarge);
    let mut terms = Vec::new();
    for &(c, n) in &a.terms {
        terms.push((c, times(n, x * sign_a)?));
    }
    for &(c, n) in &b.terms {
        terms.push((c, times(n, y * sign_b)?));
    }
    let constant = times(a.constant, x * sign_a)?
        .checked_add(times(b.constant, y * sign_b)?)
        .ok_or(TooLarge)?;
    let relation = match (a.relation, b.relation) {
        (ZeroRelation::Eq, r) | (r, ZeroRelation::Eq) => r,
        (ZeroRelation::Lt, _) | (_, ZeroRelation::Lt) => ZeroRelation::Lt,
        _ => ZeroRelation::Le,
    };
    let integer = terms.iter().all(|t| signature.sort(t.0) == SymbolSort::Integer);
    LinearConstraint::new(terms, constant, relation, integer)
}
