//! Parallel composition of component summands, with allowed multi-actions pushed down the network.
//!
//! In: a tree of parallel operators over automata. Out: combined summands: the participating edges
//! of the components, the resulting multi-action and the conditions that communication adds.
//!
//! Combinations that are never allowed are not built. The set of allowed multi-actions is pushed
//! down the tree (through hide, rename and communication, as in the alphabet axioms of van
//! Weerdenburg, "Efficient rewriting techniques", 2009, and mCRL2's alphabet reduction). A
//! combination of edges is dropped as soon as no allowed multi-action contains its actions, or as
//! soon as a blocked action has no remaining partner to communicate with. Cost: the number of
//! combinations that can still become allowed. Without any `allow` or `block` that is the product,
//! by definition.

use super::sequential::{Automaton, LocationEdge};
use crate::labels::ActionDecl;
use crate::linear::{Act, Origin};
use ahash::{AHashMap, AHashSet};
use mu_base::ids::{ActId, OpId};
use mu_base::{Diagnostic, Span, Stage, narrow};
use mu_data::expr::{Expr, ExprKind, Substitution};
use mu_data::signature::{OpKind, Signature};
use mu_data::sort::basic;

/// An action name as a number.
pub(super) type Name = u32;

/// Bidirectional map of action names and numbers.
#[derive(Default)]
pub(super) struct ActionNames {
    ids: AHashMap<String, Name>,
    texts: Vec<String>,
    /// Name of each declared action.
    of_action: Vec<Name>,
    overloads: AHashMap<(Name, Vec<mu_base::ids::SortId>), ActId>,
}

impl ActionNames {
    pub(super) fn new(actions: &[ActionDecl]) -> Self {
        let mut names = Self::default();
        for (i, action) in actions.iter().enumerate() {
            let name = names.intern(&action.name);
            names.of_action.push(name);
            names.overloads.insert((name, action.sorts.clone()), ActId::new(i));
        }
        names
    }
    pub(super) fn intern(&mut self, name: &str) -> Name {
        let texts = &mut self.texts;
        *self.ids.entry(name.to_string()).or_insert_with(|| {
            texts.push(name.to_string());
            texts.len() as Name - 1
        })
    }
    fn of(&self, action: ActId) -> Name {
        self.of_action[action.index()]
    }
    /// Returns the text of a name.
    pub(super) fn text(&self, name: Name) -> &str {
        self.texts.get(name as usize).map_or("?", String::as_str)
    }
}

/// A multiset of names, sorted.
pub(super) type Bag = Vec<Name>;

/// Tree of parallel operators.
pub(super) enum Network {
    /// A component, by index.
    Component(usize),
    Parallel(Vec<Network>),
    /// Left merge (`sync` false) or synchronisation: `phase` is the component that records whether
    /// the first step was done.
    First {
        sync: bool,
        phase: usize,
        left: Box<Network>,
        right: Box<Network>,
    },
    Block(AHashSet<Name>, Box<Network>, Span),
    Allow(Vec<Bag>, Box<Network>, Span),
    Hide(AHashSet<Name>, Box<Network>, Span),
    Rename(AHashMap<Name, Name>, Box<Network>, Span),
    /// Left-hand multisets with their result.
    Comm(Vec<(Bag, Option<Name>)>, Box<Network>, Span),
}

/// Step of a component in a combined summand.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum NetworkPart {
    /// An edge of its automaton, by index.
    Edge(usize),
    /// A phase component records that the first step is done.
    Phase,
}

/// Combined summand.
#[derive(Clone, Debug)]
pub(super) struct Combined {
    /// Components with their steps, ascending.
    pub parts: Vec<(usize, NetworkPart)>,
    /// Conditions added by communication, and phase requirements (component, value).
    pub guard: Vec<Expr>,
    pub phases: Vec<(usize, u32)>,
    pub acts: Vec<Act>,
    pub hidden: Vec<Act>,
}

/// Set of multisets that may still be allowed. `None`: all.
#[derive(Clone)]
struct Allowed {
    /// Exact multisets, without free names.
    exact: Option<AHashSet<Bag>>,
    /// All sub-multisets of them.
    below: AHashSet<Bag>,
    /// Further names that may occur any number of times (they get hidden).
    free: AHashSet<Name>,
    /// Names that may not occur.
    blocked: AHashSet<Name>,
    /// Names that may occur only if communication consumes all of them, each with its possible
    /// partners. Set for the parallel composition directly below a communication only.
    consumed: AHashMap<Name, Vec<Bag>>,
    /// Multisets that can be allowed only as one communication of all their actions: useless if
    /// arguments differ. Set like `consumed`.
    joint: AHashSet<Bag>,
}

impl Allowed {
    fn everything() -> Self {
        Self::unless(AHashSet::new(), AHashSet::new())
    }
    /// Returns the set of everything except some names.
    fn unless(blocked: AHashSet<Name>, free: AHashSet<Name>) -> Self {
        let (below, consumed, joint) = (AHashSet::new(), AHashMap::new(), AHashSet::new());
        Self { exact: None, below, free, blocked, consumed, joint }
    }
    fn of(exact: AHashSet<Bag>, free: AHashSet<Name>, blocked: AHashSet<Name>) -> Self {
        let mut below = AHashSet::new();
        for bag in &exact {
            // Multi-actions are short; a long one is a product of repetitions, which the set
            // removes.
            let mut parts: Vec<Bag> = vec![Vec::new()];
            for &name in bag {
                let longer: Vec<Bag> =
                    parts.iter().map(|p| p.iter().copied().chain([name]).collect()).collect();
                parts.extend(longer);
                parts.sort();
                parts.dedup();
            }
            below.extend(parts);
        }
        Self {
            exact: Some(exact),
            below,
            free,
            blocked,
            consumed: AHashMap::new(),
            joint: AHashSet::new(),
        }
    }
    fn without_free_names(&self, bag: &[Name]) -> Bag {
        bag.iter().copied().filter(|n| !self.free.contains(n)).collect()
    }
    /// True if some multiset that contains `bag` may be allowed.
    fn may_extend(&self, bag: &[Name]) -> bool {
        !bag.iter().any(|n| self.blocked.contains(n))
            && (self.exact.is_none() || self.below.contains(&self.without_free_names(bag)))
    }
    /// True if the names in `bag` that must be consumed can be, with partners in it and further
    /// ones among `later`.
    fn consumable(&self, bag: &[Name], later: &AHashSet<Name>) -> bool {
        let count = |n: Name| bag.iter().filter(|m| **m == n).count();
        bag.iter().all(|n| match self.consumed.get(n).map(Vec::as_slice) {
            None => true,
            // Each needs a partner of its own.
            Some([partners]) if partners.len() == 1 && partners[0] != *n => {
                later.contains(&partners[0]) || count(*n) <= count(partners[0])
            }
            Some(all) => all
                .iter()
                .any(|partners| partners.iter().all(|m| bag.contains(m) || later.contains(m))),
        })
    }
    /// True if `bag` itself may be allowed.
    fn contains(&self, bag: &[Name]) -> bool {
        !bag.iter().any(|n| self.blocked.contains(n))
            && self.exact.as_ref().is_none_or(|e| e.contains(&self.without_free_names(bag)))
    }
}

/// Composition with its tables.
pub(super) struct Composer<'a> {
    pub automata: &'a [Automaton],
    pub names: &'a ActionNames,
    pub signature: &'a mut Signature,
    pub actions: &'a [ActionDecl],
    /// Operations with equations, including constructors: different terms of them may be equal.
    pub rewritten: &'a AHashSet<OpId>,
    /// Limit on combined summands; beyond it, composition fails.
    pub limit: usize,
    /// Peak number of combined summands.
    pub most: usize,
}

impl Composer<'_> {
    /// Computes all combined summands of a network.
    pub(super) fn compose(&mut self, network: &Network) -> Result<Vec<Combined>, Diagnostic> {
        self.visit(network, &Allowed::everything(), false)
    }

    /// True if two expressions have different values for all values of their variables.
    fn differ(&self, a: &Expr, b: &Expr) -> bool {
        let free = |op: OpId| {
            matches!(self.signature.op(op).kind, OpKind::Constructor(_))
                && !self.rewritten.contains(&op)
        };
        match (&a.kind, &b.kind) {
            (ExprKind::Number(a), ExprKind::Number(b)) => a != b,
            (ExprKind::Apply(f, s), ExprKind::Apply(g, t))
                if f == g && f.head().is_some_and(free) =>
            {
                stacker::maybe_grow(64 << 10, 1 << 20, || {
                    s.iter().zip(t).any(|(a, b)| self.differ(a, b))
                })
            }
            _ => match (a.as_bool(self.signature), b.as_bool(self.signature)) {
                (Some(a), Some(b)) => a != b,
                _ => a.head().zip(b.head()).is_some_and(|(f, g)| f != g && free(f) && free(g)),
            },
        }
    }

    fn bag(&self, acts: &[Act]) -> Bag {
        let mut bag: Bag = acts.iter().map(|a| self.names.of(a.action)).collect();
        bag.sort_unstable();
        bag
    }

    /// Composes a subtree. `part`: the result will be combined with others, so it suffices to be
    /// part of an allowed multiset.
    fn visit(
        &mut self,
        network: &Network,
        allowed: &Allowed,
        part: bool,
    ) -> Result<Vec<Combined>, Diagnostic> {
        let fits = |bag: &Bag| if part { allowed.may_extend(bag) } else { allowed.contains(bag) };
        match network {
            Network::Component(c) => Ok((self.automata[*c].edges.iter().enumerate())
                .filter(|(_, e)| fits(&self.bag(&e.acts)))
                .map(|(i, e)| {
                    let acts = e
                        .acts
                        .iter()
                        .map(|act| Act { from: vec![origin(*c, e, act)], ..act.clone() })
                        .collect();
                    Combined {
                        parts: vec![(*c, NetworkPart::Edge(i))],
                        guard: vec![],
                        phases: vec![],
                        acts,
                        hidden: vec![],
                    }
                })
                .collect()),
            Network::Parallel(children) => {
                let inside = Allowed {
                    consumed: AHashMap::new(),
                    joint: AHashSet::new(),
                    ..allowed.clone()
                };
                let mut all: Vec<Vec<(Bag, Combined)>> = Vec::new();
                for child in children {
                    all.push(
                        self.visit(child, &inside, true)?
                            .into_iter()
                            .map(|c| (self.bag(&c.acts), c))
                            .collect(),
                    );
                }
                self.combine(all, allowed, &fits)
            }
            Network::First { sync, phase, left, right } => {
                self.first(*sync, *phase, (left, right), allowed, &fits)
            }
            Network::Block(names, inner, _) => {
                let mut below = allowed.clone();
                below.blocked.extend(names);
                let out = self.visit(inner, &below, part)?;
                Ok(out
                    .into_iter()
                    .filter(|c| !self.bag(&c.acts).iter().any(|n| names.contains(n)))
                    .collect())
            }
            Network::Allow(bags, inner, _) => {
                let mut exact: AHashSet<Bag> = bags.iter().filter(|b| fits(b)).cloned().collect();
                exact.insert(Vec::new());
                let below = Allowed::of(exact, AHashSet::new(), AHashSet::new());
                self.visit(inner, &below, false)
            }
            Network::Hide(names, inner, _) => {
                let mut below = allowed.clone();
                below.free.extend(names);
                below.blocked.retain(|n| !names.contains(n));
                if let Some(exact) = &below.exact {
                    let stripped = exact.iter().map(|b| below.without_free_names(b)).collect();
                    below = Allowed::of(stripped, below.free.clone(), below.blocked.clone());
                }
                let mut out = self.visit(inner, &below, part)?;
                for c in &mut out {
                    let (hidden, acts) = std::mem::take(&mut c.acts)
                        .into_iter()
                        .partition(|a| names.contains(&self.names.of(a.action)));
                    c.acts = acts;
                    c.hidden.extend::<Vec<Act>>(hidden);
                }
                out.retain(|c| fits(&self.bag(&c.acts)));
                Ok(out)
            }
            Network::Rename(map, inner, _) => {
                let below = self.before_rename(allowed, map);
                let mut out = self.visit(inner, &below, part)?;
                for c in &mut out {
                    for act in &mut c.acts {
                        if let Some(&to) = map.get(&self.names.of(act.action)) {
                            act.action = self.overload(to, act.action)?;
                        }
                    }
                }
                out.retain(|c| fits(&self.bag(&c.acts)));
                Ok(out)
            }
            Network::Comm(rules, inner, _) => {
                self.communications(rules, inner, allowed, part, &fits)
            }
        }
    }

    /// Composes left merge, or synchronisation if `sync`: the first step is one of the left side
    /// (of both sides), all others interleave.
    fn first(
        &mut self,
        sync: bool,
        phase: usize,
        (left, right): (&Network, &Network),
        allowed: &Allowed,
        fits: &dyn Fn(&Bag) -> bool,
    ) -> Result<Vec<Combined>, Diagnostic> {
        let lefts = self.visit(left, allowed, true)?;
        let rights = self.visit(right, allowed, true)?;
        let mut out = Vec::new();
        let in_phase = |c: &Combined, before: u32| {
            let mut c = c.clone();
            c.phases.push((phase, before));
            if before == 0 {
                c.parts.push((phase, NetworkPart::Phase));
                c.parts.sort_unstable();
            }
            c
        };
        let mut joined = Vec::new();
        for l in &lefts {
            for r in &rights {
                let both = merge(l, r);
                if fits(&self.bag(&both.acts)) {
                    joined.push(both);
                }
            }
        }
        out.extend(joined.iter().map(|c| in_phase(c, 1)));
        for one in lefts.iter().chain(&rights).filter(|c| fits(&self.bag(&c.acts))) {
            out.push(in_phase(one, 1));
        }
        if sync {
            out.extend(joined.iter().map(|c| in_phase(c, 0)));
        } else {
            out.extend(lefts.iter().filter(|c| fits(&self.bag(&c.acts))).map(|c| in_phase(c, 0)));
        }
        Ok(out)
    }

    /// Composes communication: the operand may perform the left-hand sides, which become the
    /// right-hand sides.
    fn communications(
        &mut self,
        rules: &[(Bag, Option<Name>)],
        inner: &Network,
        allowed: &Allowed,
        part: bool,
        fits: &dyn Fn(&Bag) -> bool,
    ) -> Result<Vec<Combined>, Diagnostic> {
        let mut below = self.before_comm(allowed, rules);
        if matches!(inner, Network::Parallel(_)) && below.exact.is_none() {
            for (lhs, _) in rules {
                for (i, n) in lhs.iter().enumerate().filter(|(_, n)| allowed.blocked.contains(n)) {
                    let partners =
                        lhs.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, m)| *m).collect();
                    below.consumed.entry(*n).or_default().push(partners);
                }
            }
        }
        if matches!(inner, Network::Parallel(_)) && below.exact.is_some() && below.free.is_empty() {
            for (lhs, _) in rules.iter().filter(|(lhs, _)| !allowed.may_extend(lhs)) {
                let alone = rules.iter().all(|(other, _)| other == lhs || !is_below(other, lhs));
                if alone && !below.below.iter().any(|b| b.len() > lhs.len() && is_below(lhs, b)) {
                    below.joint.insert(lhs.clone());
                }
            }
        }
        let mut out = Vec::new();
        for c in self.visit(inner, &below, part)? {
            self.communicate(&c, rules, allowed, fits, &mut out)?;
            self.most = self.most.max(out.len());
            if out.len() > self.limit {
                return Err(self.too_many(
                    "communication",
                    out.iter().map(|c| self.bag(&c.acts)),
                    allowed,
                ));
            }
        }
        Ok(out)
    }

    /// Combines steps of the children, at most one of each child, if the result may be allowed.
    fn combine(
        &mut self,
        mut all: Vec<Vec<(Bag, Combined)>>,
        allowed: &Allowed,
        fits: &dyn Fn(&Bag) -> bool,
    ) -> Result<Vec<Combined>, Diagnostic> {
        if !allowed.consumed.is_empty() {
            all = partners_together(all, &allowed.consumed);
        }
        // Names that occur in each child or a later one.
        let mut later: Vec<AHashSet<Name>> = vec![AHashSet::new()];
        for steps in all.iter().rev() {
            let mut names = later.last().cloned().unwrap_or_default();
            names.extend(steps.iter().flat_map(|s| &s.0));
            later.push(names);
        }
        later.reverse();
        let mut combinations: Vec<(Bag, Combined)> = Vec::new();
        for (steps, later) in all.into_iter().zip(&later[1..]) {
            // Steps are grouped by their names, so that a whole group that does not match is
            // skipped at once.
            let kinds = by_names(&steps);
            let mut joined_all: Vec<((usize, usize, usize), Bag, Combined)> = Vec::new();
            for (bag, places) in by_names(&combinations) {
                for (k, (kind, step_places)) in kinds.iter().enumerate() {
                    let joined = join(bag, kind);
                    if !allowed.may_extend(&joined) || !allowed.consumable(&joined, later) {
                        continue;
                    }
                    let joint = allowed.joint.contains(&joined);
                    for &i in &places {
                        for &j in step_places {
                            let (combination, step) = (&combinations[i].1, &steps[j].1);
                            if joint && self.args_differ(combination.acts.iter().chain(&step.acts))
                            {
                                continue;
                            }
                            joined_all.push(((i, k, j), joined.clone(), merge(combination, step)));
                            self.most = self.most.max(combinations.len() + joined_all.len());
                            if combinations.len() + joined_all.len() > self.limit {
                                let bags = combinations
                                    .iter()
                                    .map(|c| c.0.clone())
                                    .chain(joined_all.iter().map(|j| j.1.clone()));
                                return Err(self.too_many("parallel composition", bags, allowed));
                            }
                        }
                    }
                }
            }
            joined_all.sort_unstable_by_key(|j| j.0);
            combinations.extend(joined_all.into_iter().map(|(_, bag, c)| (bag, c)));
            combinations.extend(steps);
            if !allowed.consumed.is_empty() {
                combinations.retain(|(bag, _)| allowed.consumable(bag, later));
            }
        }
        if !allowed.consumed.is_empty() {
            combinations.sort_by(|a, b| a.1.parts.cmp(&b.1.parts));
        }
        Ok(combinations.into_iter().filter(|(bag, _)| fits(bag)).map(|(_, c)| c).collect())
    }

    /// Returns the error for a composition with too many summands, with the most frequent actions.
    fn too_many(
        &self,
        what: &str,
        bags: impl Iterator<Item = Bag>,
        allowed: &Allowed,
    ) -> Diagnostic {
        let mut count: AHashMap<Bag, usize> = AHashMap::new();
        bags.for_each(|bag| *count.entry(bag).or_default() += 1);
        let most = count
            .into_iter()
            .max_by(|a, b| (a.1, &b.0).cmp(&(b.1, &a.0)))
            .map_or_else(Vec::new, |(bag, _)| bag);
        let names: Vec<&str> = most.iter().map(|n| self.names.text(*n)).collect();
        let message = format!("{what} gives more than {} summands", self.limit);
        let advice = match allowed.exact {
            None => {
                "put an `allow` around the composition, so that only intended multi-actions are built"
            }
            Some(_) => {
                "each component takes part in it from too many locations: shorter action sequences in the components may help"
            }
        };
        Diagnostic::new(Stage::Process, message)
            .note(format!("most of them do `{}`", names.join("|")))
            .note(advice)
    }

    /// True if some two of the actions have different arguments for all values of their variables.
    fn args_differ<'c>(&self, mut acts: impl Iterator<Item = &'c Act>) -> bool {
        let Some(first) = acts.next() else { return false };
        acts.any(|act| {
            act.args.len() != first.args.len()
                || act.args.iter().zip(&first.args).any(|(a, b)| self.differ(a, b))
        })
    }

    /// Returns the action of that name with the same sorts.
    fn overload(&self, name: Name, like: ActId) -> Result<ActId, Diagnostic> {
        let decl = &self.actions[like.index()];
        self.names.overloads.get(&(name, decl.sorts.clone())).copied().ok_or_else(|| {
            let to = self.names.text(name);
            let sorts: Vec<String> =
                decl.sorts.iter().map(|s| self.signature.sorts.text(*s)).collect();
            Diagnostic::new(
                Stage::Process,
                format!(
                    "there is no action `{to}: {}` to replace `{}`",
                    sorts.join(" # "),
                    decl.name
                ),
            )
        })
    }

    fn before_rename(&self, allowed: &Allowed, map: &AHashMap<Name, Name>) -> Allowed {
        let sources = |name: Name| {
            let mut from: Vec<Name> =
                map.iter().filter(|(_, to)| **to == name).map(|(from, _)| *from).collect();
            if !map.contains_key(&name) {
                from.push(name);
            }
            from
        };
        let blocked = allowed.blocked.iter().flat_map(|n| sources(*n)).collect();
        let free = allowed.free.iter().flat_map(|n| sources(*n)).collect();
        let Some(exact) = &allowed.exact else { return Allowed::unless(blocked, free) };
        let mut before = AHashSet::new();
        for bag in exact {
            let mut bags: AHashSet<Bag> = AHashSet::from([Vec::new()]);
            for &name in bag {
                let from = sources(name);
                // A name that the renaming does not produce may still come from a sibling: the rest
                // of the multiset counts.
                if !from.is_empty() {
                    bags = bags.iter().flat_map(|b| from.iter().map(|s| join(b, &[*s]))).collect();
                }
            }
            before.extend(bags);
        }
        Allowed::of(before, free, blocked)
    }

    fn before_comm(&self, allowed: &Allowed, rules: &[(Bag, Option<Name>)]) -> Allowed {
        let mut free = allowed.free.clone();
        for (lhs, to) in rules {
            if to.is_none_or(|to| allowed.free.contains(&to)) {
                free.extend(lhs);
            }
        }
        // A blocked name may still take part in a communication.
        let mut blocked = allowed.blocked.clone();
        blocked.retain(|n| !rules.iter().any(|(lhs, _)| lhs.contains(n)));
        let Some(exact) = &allowed.exact else { return Allowed::unless(blocked, free) };
        let mut before: AHashSet<Bag> = AHashSet::new();
        for bag in exact {
            let mut bags: AHashSet<Bag> = AHashSet::from([Vec::new()]);
            for &name in bag {
                let mut sources: Vec<Bag> = vec![vec![name]];
                sources.extend(
                    rules.iter().filter(|(_, to)| *to == Some(name)).map(|(lhs, _)| lhs.clone()),
                );
                bags = bags.iter().flat_map(|b| sources.iter().map(|s| join(b, s))).collect();
            }
            before.extend(bags);
        }
        let stripped = before
            .into_iter()
            .map(|b| b.into_iter().filter(|n| !free.contains(n)).collect())
            .collect();
        Allowed::of(stripped, free, blocked)
    }

    /// Enumerates all possible communications of a multi-action. Communication is forced if
    /// arguments agree: actions that do not communicate get the condition that they do not match.
    fn communicate(
        &mut self,
        combined: &Combined,
        rules: &[(Bag, Option<Name>)],
        allowed: &Allowed,
        fits: &dyn Fn(&Bag) -> bool,
        out: &mut Vec<Combined>,
    ) -> Result<(), Diagnostic> {
        let bag = self.bag(&combined.acts);
        if !rules.iter().any(|(lhs, _)| is_below(lhs, &bag)) {
            if fits(&bag) {
                out.push(combined.clone());
            }
            return Ok(());
        }
        let mut groups: Vec<(usize, Vec<usize>)> = Vec::new();
        self.choose(
            combined,
            rules,
            allowed,
            fits,
            &mut groups,
            &mut vec![false; combined.acts.len()],
            0,
            out,
        )
    }

    #[allow(clippy::too_many_arguments)]
    fn choose(
        &mut self,
        combined: &Combined,
        rules: &[(Bag, Option<Name>)],
        allowed: &Allowed,
        fits: &dyn Fn(&Bag) -> bool,
        groups: &mut Vec<(usize, Vec<usize>)>,
        used: &mut Vec<bool>,
        from: usize,
        out: &mut Vec<Combined>,
    ) -> Result<(), Diagnostic> {
        let Some(first) = (from..used.len()).find(|&i| !used[i]) else {
            return self.finish(combined, rules, fits, groups, out);
        };
        // The first free action communicates in each possible combination, or stays; results that
        // are never allowed are skipped.
        for (r, (lhs, to)) in rules.iter().enumerate() {
            if to.is_some_and(|to| !allowed.may_extend(&[to])) {
                continue;
            }
            for group in self.matches(combined, lhs, first, used) {
                if self.group_differs(combined, &group) {
                    continue;
                }
                group.iter().for_each(|&i| used[i] = true);
                groups.push((r, group));
                self.choose(combined, rules, allowed, fits, groups, used, first + 1, out)?;
                let (_, group) = groups.pop().expect("just pushed");
                group.iter().for_each(|&i| used[i] = false);
            }
        }
        if !allowed.may_extend(&[self.names.of(combined.acts[first].action)]) {
            return Ok(());
        }
        self.choose(combined, rules, allowed, fits, groups, used, first + 1, out)
    }

    /// True if communicating actions never have the same arguments.
    fn group_differs(&self, combined: &Combined, group: &[usize]) -> bool {
        self.args_differ(group.iter().map(|&i| &combined.acts[i]))
    }

    /// Returns the sets of free actions that contain `first` (and none before it) and have the
    /// names of `lhs`, with equal argument sorts.
    fn matches(
        &self,
        combined: &Combined,
        lhs: &[Name],
        first: usize,
        used: &[bool],
    ) -> Vec<Vec<usize>> {
        let name = |i: usize| self.names.of(combined.acts[i].action);
        let sorts = |i: usize| &self.actions[combined.acts[i].action.index()].sorts;
        let Some(at) = lhs.iter().position(|n| *n == name(first)) else { return Vec::new() };
        let mut rest = lhs.to_vec();
        rest.remove(at);
        let mut found = vec![vec![first]];
        for wanted in rest {
            let mut longer = Vec::new();
            for group in &found {
                for (i, taken) in used.iter().enumerate().skip(first + 1) {
                    if !taken
                        && !group.contains(&i)
                        && name(i) == wanted
                        && sorts(i) == sorts(first)
                    {
                        let mut g = group.clone();
                        g.push(i);
                        longer.push(g);
                    }
                }
            }
            found = longer;
        }
        for group in &mut found {
            group.sort_unstable();
        }
        found.sort();
        found.dedup();
        found
    }

    fn finish(
        &mut self,
        combined: &Combined,
        rules: &[(Bag, Option<Name>)],
        fits: &dyn Fn(&Bag) -> bool,
        groups: &[(usize, Vec<usize>)],
        out: &mut Vec<Combined>,
    ) -> Result<(), Diagnostic> {
        let mut acts = Vec::new();
        let mut hidden = combined.hidden.clone();
        let mut guard = combined.guard.clone();
        let mut left: Vec<usize> = (0..combined.acts.len()).collect();
        for (rule, group) in groups {
            left.retain(|i| !group.contains(i));
            let first = &combined.acts[group[0]];
            for &other in &group[1..] {
                for (a, b) in first.args.iter().zip(&combined.acts[other].args) {
                    let equal = Expr::equal(self.signature, a.clone(), b.clone());
                    if equal.as_bool(self.signature) != Some(true) {
                        guard.push(equal);
                    }
                }
            }
            match rules[*rule].1 {
                Some(to) => {
                    let mut from: Vec<Origin> =
                        group.iter().flat_map(|&i| combined.acts[i].from.iter().cloned()).collect();
                    from.sort_by_key(|o| o.component);
                    acts.push(Act {
                        action: self.overload(to, first.action)?,
                        args: first.args.clone(),
                        from,
                        place: first.place,
                    });
                }
                None => hidden.extend(group.iter().map(|&i| combined.acts[i].clone())),
            }
        }
        acts.extend(left.iter().map(|&i| combined.acts[i].clone()));
        if !fits(&self.bag(&acts)) {
            return Ok(());
        }
        // No communication may be possible among the remaining actions.
        let mut used = vec![true; combined.acts.len()];
        left.iter().for_each(|&i| used[i] = false);
        for &first in &left {
            for (lhs, _) in rules {
                for group in self.matches(combined, lhs, first, &used) {
                    if self.group_differs(combined, &group) {
                        continue;
                    }
                    let mut same = Expr::boolean(self.signature, true);
                    let args = |i: usize| &combined.acts[i].args;
                    for (a, b) in
                        group[1..].iter().flat_map(|&other| args(group[0]).iter().zip(args(other)))
                    {
                        let equal = Expr::equal(self.signature, a.clone(), b.clone());
                        same = Expr::and(self.signature, same, equal);
                    }
                    let differ = Expr::negate(self.signature, same);
                    if differ.as_bool(self.signature) == Some(false) {
                        return Ok(());
                    }
                    guard.push(differ);
                }
            }
        }
        out.push(Combined { guard, acts, hidden, ..combined.clone() });
        Ok(())
    }
}

fn join(a: &[Name], b: &[Name]) -> Bag {
    let mut bag: Bag = a.iter().chain(b).copied().collect();
    bag.sort_unstable();
    bag
}

fn is_below(part: &[Name], whole: &[Name]) -> bool {
    let mut at = 0;
    part.iter().all(|n| {
        while at < whole.len() && whole[at] < *n {
            at += 1;
        }
        at += 1;
        whole.get(at - 1) == Some(n)
    })
}

/// Groups steps by their names, in the order of the names.
fn by_names(steps: &[(Bag, Combined)]) -> Vec<(&Bag, Vec<usize>)> {
    let mut places: AHashMap<&Bag, Vec<usize>> = AHashMap::new();
    for (i, (bag, _)) in steps.iter().enumerate() {
        places.entry(bag).or_default().push(i);
    }
    let mut kinds: Vec<(&Bag, Vec<usize>)> = places.into_iter().collect();
    kinds.sort();
    kinds
}

/// Orders the children so that partners of actions that must be consumed come early. The next child
/// is always the one that offers the most partners of the names so far, or the first if none does.
fn partners_together(
    mut all: Vec<Vec<(Bag, Combined)>>,
    consumed: &AHashMap<Name, Vec<Bag>>,
) -> Vec<Vec<(Bag, Combined)>> {
    let mut out: Vec<Vec<(Bag, Combined)>> = Vec::new();
    let mut wanted: AHashSet<Name> = AHashSet::new();
    while !all.is_empty() {
        let names = |steps: &[(Bag, Combined)]| {
            steps.iter().flat_map(|s| s.0.iter().copied()).collect::<AHashSet<Name>>()
        };
        let taken = |i: &usize| names(&all[*i]).intersection(&wanted).count();
        let next = (0..all.len()).rev().max_by_key(taken).expect("steps are left");
        let child = all.remove(next);
        for n in names(&child) {
            wanted.extend(consumed.get(&n).into_iter().flatten().flatten());
        }
        out.push(child);
    }
    out
}

/// Returns the origin of an action of a component's edge.
fn origin(component: usize, edge: &LocationEdge, act: &Act) -> Origin {
    let open = act
        .args
        .iter()
        .filter(|e| matches!(e.kind, ExprKind::Var(v) if edge.sum_vars.contains(&v)))
        .count();
    Origin { component: narrow::index(component), action: act.action, open: narrow::index(open) }
}

fn merge(a: &Combined, b: &Combined) -> Combined {
    let mut merged = a.clone();
    merged.parts.extend(&b.parts);
    merged.parts.sort_unstable();
    merged.guard.extend(b.guard.iter().cloned());
    merged.phases.extend(&b.phases);
    merged.acts.extend(b.acts.iter().cloned());
    merged.hidden.extend(b.hidden.iter().cloned());
    merged
}

/// Solves conjuncts `x == e` for sum variables `x` by the one-point rule. Returns the substitution
/// and leaves the other conjuncts. If the number sort of `x` is narrower than that of `e`, a
/// conjunct states that `e` is in it.
pub(super) fn one_point(
    signature: &mut Signature,
    sum_vars: &mut Vec<mu_base::ids::VarId>,
    guard: &mut Vec<Expr>,
) -> Substitution {
    use mu_data::signature::Builtin;
    let mut all = Substitution::new();
    // Splits conjunctions.
    let mut todo = std::mem::take(guard);
    todo.reverse();
    while let Some(e) = todo.pop() {
        match e.as_builtin(signature) {
            Some((Builtin::And, args)) => todo.extend([args[1].clone(), args[0].clone()]),
            Some((Builtin::True, _)) => {}
            _ => guard.push(e),
        }
    }
    loop {
        let mut found = None;
        'search: for (i, e) in guard.iter().enumerate() {
            let Some((Builtin::Equal, args)) = e.as_builtin(signature) else { continue };
            for (x, value) in [(&args[0], &args[1]), (&args[1], &args[0])] {
                if let ExprKind::Var(v) = strip_widening(signature, x).kind
                    && sum_vars.contains(&v)
                {
                    let mut free = Vec::new();
                    value.free_vars(&mut free);
                    // A bound of another sum variable is not moved below a conversion, which would
                    // hide the bound.
                    let hides = signature.var(v).sort != value.sort
                        && free.iter().any(|f| sum_vars.contains(f));
                    if !free.contains(&v) && !hides {
                        found = Some((i, v, value.clone()));
                        break 'search;
                    }
                }
            }
        }
        let Some((i, v, value)) = found else { return all };
        guard.remove(i);
        sum_vars.retain(|s| *s != v);
        let sort = signature.var(v).sort;
        let narrower = match (value.sort, sort) {
            (basic::NAT, basic::POS) => Some((Builtin::NatToPos, 1u32)),
            (basic::INT, basic::POS) => Some((Builtin::IntToPos, 1)),
            (basic::INT, basic::NAT) => Some((Builtin::IntToNat, 0)),
            _ => None,
        };
        let value = match narrower {
            Some((narrow, least)) => {
                let least = Expr::number(least, value.sort);
                // First, so that no other conjunct evaluates the value as a number of that sort.
                guard.insert(
                    0,
                    Expr::builtin(
                        signature,
                        Builtin::LessEqual,
                        vec![least, value.clone()],
                        basic::BOOL,
                    ),
                );
                Expr::builtin(signature, narrow, vec![value], sort)
            }
            None => value,
        };
        let by = Substitution::from([(v, value.clone())]);
        guard.iter_mut().for_each(|g| *g = g.substitute(&by));
        guard.retain(|g| g.as_bool(signature) != Some(true) && !is_same_equality(signature, g));
        all.values_mut().for_each(|e| *e = e.substitute(&by));
        all.insert(v, value);
    }
}

/// Strips conversions that only widen the sort of a whole number.
fn strip_widening<'e>(signature: &Signature, mut e: &'e Expr) -> &'e Expr {
    use mu_data::signature::Builtin;
    while let Some((Builtin::PosToNat | Builtin::PosToInt | Builtin::NatToInt, [inner])) =
        e.as_builtin(signature)
    {
        e = inner;
    }
    e
}

fn is_same_equality(signature: &Signature, e: &Expr) -> bool {
    use mu_data::signature::Builtin;
    matches!(e.as_builtin(signature), Some((Builtin::Equal, args)) if args[0] == args[1])
}
