//! Data independence: sorts with any number of constants, such as values and addresses that are
//! only copied and compared for equality.
//!
//! Input: a compiled process with [`SIZE`] constants of such a sort ([`crate::constant_counts`]), a
//! formula. Output: a [`Family`], after the check that nothing depends on the identity or number of
//! the constants: none is named, none is ordered, no quantifier, set or function of the data ranges
//! over them except arrays and sums; and [`Assigned`] formulas, one for each partition of the
//! variables that the formula quantifies over, each with the number of constants that it
//! distinguishes. [`crate::MergedConstants`] then has a step if some size has one. The formula may
//! compare constants in labels only with those.
//!
//! Correctness for all sizes: a renaming of constants commutes with evaluation, since nothing names
//! or orders them. An evaluation depends only on the constants that it reads and sums over, for
//! which [`SIZE`] constants are enough, or the run reports that they are not. docs/regions.md
//! contains the proof; after Wolper (1986), Lazić (1999), for arrays Lazić, Newcomb, Roscoe (2004).
//! Cost: linear in process and formula.

use crate::abstractable_model::{constant, constants};
use crate::formula_constants::binds;
use crate::rewrite::{QuantifierClass, Rewriter, negation_normal_form, substitute};
use ahash::{AHashMap, AHashSet};
use mu_base::ids::{ActId, OpId, SortId, VarId};
use mu_base::{Diagnostic, Span, Stage};
use mu_compile::Compiled;
use mu_data::expr::{Binder, DataSpec, Expr, ExprKind, Substitution};
use mu_data::signature::{Builtin, OpKind, Signature};
use mu_data::sort::SortKind;
use mu_formula::normal::action_free_vars;
use mu_formula::typed::{Action, Regular, StateKind, TypedFormula, TypedStateFormula};
use mu_model::Model;
use mu_process::spec::{Proc, ProcKind, ProcSpec};

/// Number of constants that represent any number of them.
pub const SIZE: usize = 7;

/// A sort with any number of constants, and its uses in a process.
#[derive(Clone, Debug)]
pub struct Family {
    /// The name of the sort.
    pub name: String,
    /// The sort.
    pub sort: SortId,
    /// The constants of which there may be any number; the sort may have others.
    pub constants: Vec<OpId>,
    /// For each slot: true if its values may contain constants of the family.
    pub slots: Vec<bool>,
    /// For each slot: the sort of its entries, if it is an array over the sort.
    pub arrays: Vec<Option<SortId>>,
    /// For each group: the number of summed variables over the sort.
    pub sums: Vec<usize>,
    /// The list of all constants, which formulas must not use.
    pub(crate) all: Option<OpId>,
    holding: AHashSet<SortId>,
    updates: AHashMap<SortId, OpId>,
}

fn reject<T>(text: String, span: Span) -> Result<T, Diagnostic> {
    Err(Diagnostic::new(Stage::Unsupported, text).or_span(span))
}

fn deep<T>(f: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(128 << 10, 4 << 20, f)
}

impl Family {
    /// Creates the family of the constants with these names. Errors: the process depends on their
    /// identity, with the position.
    pub fn new(compiled: &Compiled, spec: &ProcSpec, names: &[String]) -> Result<Self, Diagnostic> {
        let mut family = Self::with_names(compiled, names)?;
        family.check_source(spec, &AHashMap::new())?;
        family.check(compiled)?;
        Ok(family)
    }

    /// Creates the family of the constants with these names, without checks.
    pub(crate) fn with_names(compiled: &Compiled, names: &[String]) -> Result<Self, Diagnostic> {
        let process = compiled.process();
        let signature = &process.data.signature;
        let of = |name: &String| {
            let found = constant(signature, name);
            found.ok_or_else(|| {
                Diagnostic::internal(format!("the constant `{name}` does not exist"))
            })
        };
        let found: Vec<OpId> = names.iter().map(of).collect::<Result<_, _>>()?;
        let sort = signature.op(found[0]).sort;
        let holding = sorts_that_contain(signature, sort);
        let updates = signature.ops().filter(|(_, op)| op.kind == OpKind::Builtin(Builtin::Update));
        let updates = updates.map(|(id, op)| (signature.domain_range(op.sort).1, id)).collect();
        Ok(Self {
            name: signature.sorts.text(sort),
            sort,
            constants: found,
            slots: Vec::new(),
            arrays: Vec::new(),
            sums: Vec::new(),
            all: None,
            holding,
            updates,
        })
    }

    /// Sorts families in the order of merging: entries of arrays over a family are merged before
    /// it. Error: arrays over each other's sorts.
    pub fn sort_families(mut families: Vec<Self>) -> Result<Vec<Self>, Diagnostic> {
        families.sort_by_key(|f| f.arrays.iter().any(Option::is_some));
        for (i, family) in families.iter().enumerate() {
            if let Some(entry) =
                families[i..].iter().find(|g| family.arrays.contains(&Some(g.sort)))
            {
                let text = format!(
                    "arrays over `{}` contain constants of `{}`, which has arrays too",
                    family.name, entry.name
                );
                return Err(Diagnostic::new(Stage::Unsupported, text));
            }
        }
        Ok(families)
    }

    /// True if values of a sort may contain constants of the family.
    pub fn holds(&self, sort: SortId) -> bool {
        self.holding.contains(&sort)
    }

    /// Returns the update operation of arrays of a sort. `None` if no arrays of the sort are
    /// updated.
    pub fn update_of(&self, sort: SortId) -> Option<OpId> {
        self.updates.get(&sort).copied()
    }

    /// Returns the sort of the entries, if a sort is one of arrays over the family.
    fn array(&self, signature: &Signature, sort: SortId) -> Option<SortId> {
        match signature.sorts.kind(sort) {
            SortKind::Function(from, to) if from[..] == [self.sort] && !self.holds(*to) => {
                Some(*to)
            }
            _ => None,
        }
    }

    fn check(&mut self, compiled: &Compiled) -> Result<(), Diagnostic> {
        let process = compiled.process();
        let signature = &process.data.signature;
        self.data(&process.data)?;
        for param in &process.params {
            let var = signature.var(param.var);
            let array = self.array(signature, var.sort);
            if let Some(range) = array {
                let entries = constants(signature, range).len();
                let constructors = match signature.sorts.declared_sort(range) {
                    Some(named) => named.constructors.len(),
                    None => 2,
                };
                // A sort of numbers has no constants, nor has a sort without constructors.
                let whole = entries > 0 && entries == constructors;
                if !whole || !self.updates.contains_key(&var.sort) {
                    let text = format!(
                        "the entries of `{}`, an array over `{}`, are not constants",
                        var.name, self.name
                    );
                    return reject(text, var.span);
                }
            } else {
                self.plain(signature, var.sort, var.span)?;
            }
            self.arrays.push(array);
            self.slots.push(self.holds(var.sort));
            self.expr(signature, &param.init)?;
        }
        for action in &process.actions {
            for sort in &action.sorts {
                self.plain(signature, *sort, Span::default())?;
            }
        }
        for (g, group) in compiled.groups().iter().enumerate() {
            let summand = &process.summands[compiled.summand_of(g)];
            if group.requires.iter().any(|r| self.arrays[r.0 as usize].is_some()) {
                return reject(
                    format!("an array over `{}` is compared with another", self.name),
                    summand.span(),
                );
            }
            let over = |v: &&VarId| self.holds(signature.var(**v).sort);
            if let Some(v) =
                summand.sum_vars.iter().find(|v| over(v) && signature.var(**v).sort != self.sort)
            {
                let text = format!(
                    "`sum {}` is over data that contain constants of `{}`",
                    signature.var(*v).name,
                    self.name
                );
                return reject(text, summand.span());
            }
            self.sums.push(summand.sum_vars.iter().filter(over).count());
        }
        for summand in &process.summands {
            let parts = std::iter::once(&summand.guard).chain(summand.updates.iter().map(|u| &u.1));
            for e in parts.chain(summand.actions.iter().flat_map(|a| &a.args)) {
                self.expr(signature, e).map_err(|d| d.or_span(summand.span()))?;
            }
        }
        Ok(())
    }

    /// Checks that the constants in values of a sort are distinguishable: in lists, finite bags and
    /// constructors.
    pub(crate) fn plain(
        &self,
        signature: &Signature,
        sort: SortId,
        span: Span,
    ) -> Result<(), Diagnostic> {
        let (mut open, mut seen) = (vec![sort], AHashSet::new());
        while let Some(sort) = open.pop() {
            if !self.holds(sort) || !seen.insert(sort) {
                continue;
            }
            match signature.sorts.kind(sort) {
                SortKind::Named(_) | SortKind::List(_) | SortKind::FBag(_) => {
                    open.extend(parts(signature, sort))
                }
                SortKind::Function(from, to) if from.iter().all(|s| !self.holds(*s)) => {
                    open.push(*to)
                }
                _ => {
                    return reject(
                        format!(
                            "`{1}` contains constants of `{0}`",
                            self.name,
                            signature.sorts.text(sort)
                        ),
                        span,
                    );
                }
            }
        }
        Ok(())
    }

    /// Checks the source processes, with these terms for operations, because linearisation
    /// evaluates closed conditions for the current constants.
    pub(crate) fn check_source(
        &self,
        spec: &ProcSpec,
        by: &AHashMap<OpId, Expr>,
    ) -> Result<(), Diagnostic> {
        let signature = &spec.data.signature;
        let mut open: Vec<&Proc> = spec.procs.iter().map(|p| &p.body).chain([&spec.init]).collect();
        while let Some(p) = open.pop() {
            let all = |list: &[Expr]| {
                list.iter().try_for_each(|e| {
                    self.expr(signature, &e.replace_operations(by)).map_err(|d| d.or_span(p.span))
                })
            };
            match &p.kind {
                ProcKind::Action(_, args) | ProcKind::Call(_, args) => all(args)?,
                ProcKind::Delta | ProcKind::Tau => {}
                ProcKind::Choice(a, b)
                | ProcKind::Seq(a, b)
                | ProcKind::Parallel(a, b)
                | ProcKind::LeftMerge(a, b)
                | ProcKind::Sync(a, b)
                | ProcKind::BoundedInit(a, b) => open.extend([&**a, &**b]),
                ProcKind::At(a, e) | ProcKind::Dist(_, e, a) => {
                    all(std::slice::from_ref(e))?;
                    open.push(a);
                }
                ProcKind::If(e, a, b) => {
                    all(std::slice::from_ref(e))?;
                    open.push(a);
                    open.extend(b.as_deref());
                }
                ProcKind::Sum(_, a)
                | ProcKind::Block(_, a)
                | ProcKind::Allow(_, a)
                | ProcKind::Hide(_, a)
                | ProcKind::Rename(_, a)
                | ProcKind::Comm(_, a) => open.push(a),
            }
        }
        Ok(())
    }

    /// Checks the equations.
    pub(crate) fn data(&self, data: &DataSpec) -> Result<(), Diagnostic> {
        for equation in &data.equations {
            // A variable that occurs twice in a pattern compares its values.
            let mut seen = AHashSet::new();
            let mut open = vec![&equation.lhs];
            while let Some(e) = open.pop() {
                match &e.kind {
                    ExprKind::Var(v)
                        if !seen.insert(*v) && self.contains_functions(&data.signature, e.sort) =>
                    {
                        let text = format!("functions of `{}` are compared", self.name);
                        return reject(text, equation.span);
                    }
                    ExprKind::Apply(_, args) => open.extend(args),
                    _ => {}
                }
            }
            for e in [&equation.lhs, &equation.rhs].into_iter().chain(&equation.condition) {
                self.expr(&data.signature, e).map_err(|d| d.or_span(equation.span))?;
            }
        }
        Ok(())
    }

    /// Checks that the value of an expression does not depend on the number of constants.
    pub(crate) fn expr(&self, signature: &Signature, e: &Expr) -> Result<(), Diagnostic> {
        deep(|| match &e.kind {
            ExprKind::Var(_) | ExprKind::Number(_) => Ok(()),
            ExprKind::Op(op) if self.constants.contains(op) => reject(
                format!(
                    "`{}` is named, but `{}` has any number of constants",
                    signature.op(*op).name,
                    self.name
                ),
                e.span,
            ),
            ExprKind::Op(op) if self.all == Some(*op) => reject(
                format!(
                    "`{}` is the list of all constants of `{}`",
                    signature.op(*op).name,
                    self.name
                ),
                e.span,
            ),
            ExprKind::Op(op) => {
                // An order, even if it is not applied.
                let ordered = matches!(
                    signature.op(*op).kind,
                    OpKind::Builtin(
                        Builtin::Less
                            | Builtin::LessEqual
                            | Builtin::Greater
                            | Builtin::GreaterEqual
                            | Builtin::Max
                            | Builtin::Min
                            | Builtin::Pick
                    )
                );
                let compared = matches!(
                    signature.op(*op).kind,
                    OpKind::Builtin(Builtin::Equal | Builtin::NotEqual | Builtin::In)
                );
                let (from, to) = match signature.sorts.kind(signature.op(*op).sort) {
                    SortKind::Function(from, to) => (from.to_vec(), *to),
                    _ => (Vec::new(), e.sort),
                };
                if ordered && from.iter().any(|s| self.holds(*s)) {
                    return reject(format!("constants of `{}` are ordered", self.name), e.span);
                }
                // `!{x} == {y}` holds only if there are two constants.
                if signature.op(*op).kind == OpKind::Builtin(Builtin::Complement)
                    && from.iter().any(|s| self.holds(*s))
                {
                    return reject(
                        format!(
                            "a set is all but some of the data with constants of `{}`",
                            self.name
                        ),
                        e.span,
                    );
                }
                // A set or bag compares its elements.
                let collects = |s: &SortId| {
                    use SortKind::{Bag, FBag, FSet, Set};
                    matches!(signature.sorts.kind(*s), Set(_) | FSet(_) | Bag(_) | FBag(_))
                        && self.contains_functions(signature, *s)
                };
                let is_builtin = matches!(signature.op(*op).kind, OpKind::Builtin(_));
                if compared && from.iter().any(|s| self.contains_functions(signature, *s))
                    || is_builtin && from.iter().chain([&to]).any(collects)
                {
                    return reject(format!("functions of `{}` are compared", self.name), e.span);
                }
                Ok(())
            }
            ExprKind::Apply(head, args) => {
                self.expr(signature, head).map_err(|d| d.or_span(e.span))?;
                args.iter().try_for_each(|a| self.expr(signature, a))
            }
            // A function is a mapping with this body; only its application evaluates it.
            ExprKind::Bind(Binder::Lambda, _, body) => self.expr(signature, body),
            ExprKind::Bind(_, vars, body) => {
                if let Some(v) = vars.iter().find(|v| self.holds(signature.var(**v).sort)) {
                    let text = format!(
                        "the data quantify over `{}: {}`",
                        signature.var(*v).name,
                        self.name
                    );
                    return reject(text, e.span);
                }
                self.expr(signature, body)
            }
            ExprKind::Where(body, definitions) => {
                definitions.iter().try_for_each(|d| self.expr(signature, &d.1))?;
                self.expr(signature, body)
            }
        })
    }

    /// Returns the sorts that a sort is composed of, recursively.
    pub(crate) fn component_sorts(&self, signature: &Signature, sort: SortId) -> AHashSet<SortId> {
        let (mut open, mut seen) = (parts(signature, sort), AHashSet::new());
        while let Some(sort) = open.pop() {
            if seen.insert(sort) {
                open.extend(parts(signature, sort));
            }
        }
        seen
    }

    /// True if a sort contains functions over the family.
    fn contains_functions(&self, signature: &Signature, sort: SortId) -> bool {
        let (mut open, mut seen) = (vec![sort], AHashSet::new());
        while let Some(sort) = open.pop() {
            if !self.holds(sort) || !seen.insert(sort) {
                continue;
            }
            if let SortKind::Function(from, _) = signature.sorts.kind(sort)
                && from.iter().any(|s| self.holds(*s))
            {
                return true;
            }
            open.extend(parts(signature, sort));
        }
        false
    }

    /// Returns the formulas that together represent a formula, one for each partition.
    pub fn assignments(&self, formula: &TypedFormula) -> Result<Vec<Assigned>, Diagnostic> {
        // A formula has additional sorts, such as sets of the constants.
        Self { holding: sorts_that_contain(&formula.data.signature, self.sort), ..self.clone() }
            .assignments_of_known_sorts(formula)
    }

    /// Returns the same, if all sorts of the formula are known.
    fn assignments_of_known_sorts(
        &self,
        formula: &TypedFormula,
    ) -> Result<Vec<Assigned>, Diagnostic> {
        // A formula has its own equations.
        self.data(&formula.data)?;
        let mut signature = formula.data.signature.clone();
        let plain = negation_normal_form(&mut signature, &formula.formula, true);
        let holds = |sort: SortId| self.holds(sort);
        let class = QuantifierClass::Constants { sort: self.sort, holds: &holds, name: &self.name };
        let mut rewriter =
            Rewriter { class, signature: &mut signature, outer_variables: Vec::new() };
        let rewritten = rewriter.formula(&plain)?;
        let outer_variables = rewriter.outer_variables;
        LabelCheck { family: self, signature: &signature, labels: Vec::new() }.state(&rewritten)?;
        let others: Vec<OpId> = constants(&signature, self.sort)
            .into_iter()
            .filter(|op| !self.constants.contains(op))
            .collect();
        if let Some(v) = outer_variables.first()
            && signature
                .sorts
                .declared_sort(self.sort)
                .is_some_and(|n| n.constructors.len() > others.len() + self.constants.len())
        {
            let v = signature.var(*v);
            return reject(
                format!(
                    "`forall {}` is over `{}`, which has constructors with arguments",
                    v.name, self.name
                ),
                v.span,
            );
        }
        if let Some(v) = outer_variables.get(self.constants.len()) {
            let (v, most) = (signature.var(*v), self.constants.len());
            let text = format!(
                "the formula quantifies over more than {most} constants of `{}`",
                self.name
            );
            return reject(text, v.span);
        }
        let mut found: Vec<(Vec<OpId>, usize)> = vec![(Vec::new(), 0)];
        for _ in &outer_variables {
            let longer = |(chosen, tracked): &(Vec<OpId>, usize)| {
                let known =
                    others.iter().chain(&self.constants[..*tracked]).map(|op| (*op, *tracked));
                let all: Vec<(OpId, usize)> = known
                    .chain(self.constants.get(*tracked).map(|op| (*op, tracked + 1)))
                    .collect();
                all.into_iter()
                    .map(|(op, n)| ([chosen.as_slice(), &[op]].concat(), n))
                    .collect::<Vec<_>>()
            };
            found = found.iter().flat_map(longer).collect();
        }
        let mut all = Vec::new();
        for (chosen, tracked) in found {
            let by: Substitution = outer_variables
                .iter()
                .zip(&chosen)
                .map(|(v, op)| (*v, Expr::op(&signature, *op)))
                .collect();
            let what = outer_variables
                .iter()
                .zip(&chosen)
                .map(|(v, op)| format!("{} = {}", signature.var(*v).name, signature.op(*op).name));
            let what = what.collect::<Vec<_>>().join(", ");
            let data = DataSpec { signature: signature.clone(), ..formula.data.clone() };
            let formula =
                TypedFormula { data, formula: substitute(&rewritten, &by), ..formula.clone() };
            all.push(Assigned { formula, tracked, what });
        }
        Ok(all)
    }
}

/// Returns the sorts that may contain values of a given sort, including itself.
fn sorts_that_contain(signature: &Signature, sort: SortId) -> AHashSet<SortId> {
    let mut holding = AHashSet::from([sort]);
    while let Some(more) = (0..signature.sorts.len()).map(SortId::new).find(|s| {
        let inside = parts(signature, *s);
        !holding.contains(s) && inside.iter().any(|p| holding.contains(p))
    }) {
        holding.insert(more);
    }
    holding
}

/// A formula about constants of a family that distinguishes the first `tracked`.
#[derive(Clone, Debug)]
pub struct Assigned {
    /// The formula, with constants for its quantified variables.
    pub formula: TypedFormula,
    /// Number of tracked constants.
    pub tracked: usize,
    /// The partition, as text for users.
    pub what: String,
}

/// Check that a formula compares constants in labels only with those that it quantifies over.
struct LabelCheck<'f> {
    family: &'f Family,
    signature: &'f Signature,
    /// Variables that a label determines. For each multi-action, by its names: the action and the
    /// argument.
    labels: Vec<(VarId, AHashMap<Vec<ActId>, (usize, usize)>)>,
}

impl LabelCheck<'_> {
    fn state(&mut self, f: &TypedStateFormula) -> Result<(), Diagnostic> {
        deep(|| match &f.kind {
            StateKind::True | StateKind::False => Ok(()),
            StateKind::Val(e) => self.test(e).map_err(|d| d.or_span(f.span)),
            StateKind::Not(g) | StateKind::Forall(_, g) | StateKind::Exists(_, g) => self.state(g),
            StateKind::And(a, b) | StateKind::Or(a, b) | StateKind::Implies(a, b) => {
                self.state(a)?;
                self.state(b)
            }
            StateKind::Must(r, g) | StateKind::May(r, g) => {
                self.regular(r).map_err(|d| d.or_span(f.span))?;
                self.state(g)
            }
            StateKind::Fix { params, body, .. } => {
                params.iter().try_for_each(|p| self.test(&p.1)).map_err(|d| d.or_span(f.span))?;
                self.state(body)
            }
            StateKind::Var(_, args) => {
                args.iter().try_for_each(|e| self.test(e)).map_err(|d| d.or_span(f.span))
            }
        })
    }

    fn regular(&mut self, r: &Regular) -> Result<(), Diagnostic> {
        deep(|| match r {
            Regular::Action(a) => self.action(a),
            Regular::Seq(a, b) | Regular::Alt(a, b) => {
                self.regular(a)?;
                self.regular(b)
            }
            Regular::Star(a) | Regular::Plus(a) => self.regular(a),
        })
    }

    fn holds(&self, v: VarId) -> bool {
        self.family.holds(self.signature.var(v).sort)
    }

    fn action(&mut self, a: &Action) -> Result<(), Diagnostic> {
        deep(|| match a {
            Action::True | Action::False => Ok(()),
            Action::Val(e) => self.test(e),
            Action::Not(a) => self.action(a),
            Action::And(a, b) | Action::Or(a, b) | Action::Implies(a, b) => {
                self.action(a)?;
                self.action(b)
            }
            Action::Multi(acts) => self.multi(acts),
            Action::Forall(vars, a) => {
                if vars.iter().any(|v| self.holds(*v)) {
                    let text = format!(
                        "`forall` in an action formula over `{}`, which may have any number of constants",
                        self.family.name
                    );
                    return reject(text, Span::default());
                }
                self.action(a)
            }
            Action::Exists(vars, a) => {
                let before = self.labels.len();
                for v in vars {
                    if !self.holds(*v) {
                        continue;
                    }
                    let mut free = Vec::new();
                    action_free_vars(a, &mut free);
                    if free.contains(v) && !binds(a, *v) {
                        let name = &self.signature.var(*v).name;
                        return reject(
                            format!(
                                "no action determines the value of `{name}` everywhere it is used"
                            ),
                            Span::default(),
                        );
                    }
                    self.labels.push((*v, AHashMap::new()));
                }
                self.action(a)?;
                self.labels.truncate(before);
                Ok(())
            }
        })
    }

    fn multi(&mut self, acts: &[(ActId, Vec<Expr>)]) -> Result<(), Diagnostic> {
        let names: Vec<ActId> = acts.iter().map(|a| a.0).collect();
        let ambiguous = names.windows(2).any(|w| w[0] == w[1]);
        for (i, (_, args)) in acts.iter().enumerate() {
            for (j, e) in args.iter().enumerate() {
                if let ExprKind::Var(v) = e.kind
                    && let Some(at) = self.labels.iter().position(|l| l.0 == v)
                {
                    let place = *self.labels[at].1.entry(names.clone()).or_insert((i, j));
                    if place != (i, j) || ambiguous {
                        return reject(
                            format!(
                                "two constants of `{}` in a label are compared",
                                self.family.name
                            ),
                            e.span,
                        );
                    }
                    continue;
                }
                self.test(e)?;
            }
        }
        Ok(())
    }

    fn of_label(&self, e: &Expr) -> bool {
        let mut free = Vec::new();
        e.free_vars(&mut free);
        free.iter().any(|v| self.labels.iter().any(|l| l.0 == *v))
    }

    /// Checks a test: constants of labels are compared with others one by one.
    fn test(&self, e: &Expr) -> Result<(), Diagnostic> {
        self.family.expr(self.signature, e)?;
        self.check_label_uses(e)
    }

    fn check_label_uses(&self, e: &Expr) -> Result<(), Diagnostic> {
        deep(|| {
            if !self.of_label(e) {
                return Ok(());
            }
            match e.as_builtin(self.signature) {
                Some((Builtin::Not | Builtin::And | Builtin::Or | Builtin::Implies, parts)) => {
                    parts.iter().try_for_each(|p| self.check_label_uses(p))
                }
                Some((Builtin::Equal | Builtin::NotEqual, [a, b]))
                    if [(a, b), (b, a)]
                        .iter()
                        .any(|(x, y)| self.is_label(x) && !self.of_label(y)) =>
                {
                    Ok(())
                }
                _ => reject(
                    format!(
                        "a constant of `{}` in a label is used other than in a comparison",
                        self.family.name
                    ),
                    e.span,
                ),
            }
        })
    }

    fn is_label(&self, e: &Expr) -> bool {
        matches!(e.kind, ExprKind::Var(v) if self.labels.iter().any(|l| l.0 == v))
    }
}

/// Returns the sorts that a sort is composed of.
fn parts(signature: &Signature, sort: SortId) -> Vec<SortId> {
    match signature.sorts.kind(sort) {
        SortKind::Bool | SortKind::Pos | SortKind::Nat | SortKind::Int | SortKind::Real => {
            Vec::new()
        }
        SortKind::List(s)
        | SortKind::Set(s)
        | SortKind::FSet(s)
        | SortKind::Bag(s)
        | SortKind::FBag(s) => vec![*s],
        SortKind::Function(from, to) => from.iter().copied().chain([*to]).collect(),
        SortKind::Named(_) => {
            let constructors = signature
                .sorts
                .declared_sort(sort)
                .map(|n| n.constructors.as_slice())
                .unwrap_or_default();
            let arguments = constructors.iter().filter_map(|op| {
                match signature.sorts.kind(signature.op(*op).sort) {
                    SortKind::Function(from, _) => Some(from.to_vec()),
                    _ => None,
                }
            });
            arguments.flatten().collect()
        }
    }
}
