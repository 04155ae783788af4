//! Folding of components: control locations become values of a parameter, so that edges with the
//! same actions merge.
//!
//! Composition multiplies edges. If several components take part in one action from hundreds of
//! locations each (a clock's tick, a barrier), there are too many combinations. A folded component
//! has one location and a parameter `s` for the former location. Edges are of one *kind* if they
//! have equal actions, sums, and conditions and arguments on sum variables; they become one edge.
//! Its condition, arguments, target and values are functions of `s` and of the variables. If a
//! location has several edges of a kind, these are numbered from 1, and the new edge has a sum over
//! their number `k`. This is the clustering of summands
//! of Groote, Ponse and Usenko, "Linearization in parallel pCRL" (2001), applied only if
//! composition needs it, because separate edges are faster to evaluate.
//!
//! In and out: [`Automaton`]. Functions get one equation each: a balanced tree of comparisons of
//! `k` and `s`. Two edges of a location that differ only in one condition and its negation become
//! one edge with conditional parts. Cost: edges times variables. Invariant: folding maps states one
//! to one; a parameter that is not live has the placeholder of `assemble`.

use super::assemble::{Placeholders, shared_parameters};
use super::sequential::{Automaton, Location, LocationEdge};
use crate::linear::Act;
use ahash::AHashMap;
use mu_base::Place;
use mu_base::ids::{ActId, SortId, VarId};
use mu_base::narrow;
use mu_data::expr::{DataSpec, Equation, Expr, Substitution};
use mu_data::signature::{Builtin, Op, OpKind, Signature};
use mu_data::sort::{SortKind, basic};

/// Common part of the edges that become one. All folded edges of the component use the same sum
/// variables.
#[derive(Clone, PartialEq, Eq, Hash)]
struct EdgeKind {
    actions: Vec<ActId>,
    sum_vars: Vec<VarId>,
    had_sum: bool,
    /// Arguments of the actions that depend on sum variables.
    args: Vec<Option<Expr>>,
    /// Conjuncts that depend on sum variables.
    guard: Vec<Expr>,
    /// The target location, if it is a successful termination.
    over: Option<usize>,
}

/// Edge from a location, without the common part of its kind.
struct FoldRow {
    from: usize,
    /// Number of the edge among those of its kind at that location, from 1.
    number: usize,
    guard: Vec<Expr>,
    /// Arguments of all actions, one after another; `None` for those that the kind has.
    args: Vec<Option<Expr>>,
    /// Number of the target location.
    to: Expr,
    /// Value of each place after the step.
    values: Vec<Expr>,
    acts: Vec<Act>,
}

/// Plan to fold a component. A *place* is a parameter that several variables share, because at most
/// one of them is live at a location.
pub(super) struct Fold<'a> {
    automaton: &'a Automaton,
    /// Variables that share a place, by place.
    places: Vec<Vec<VarId>>,
    /// The variable of each place after folding.
    vars: Vec<VarId>,
    /// Edges by kind; those of a location are numbered from 1.
    kinds: Vec<(EdgeKind, Vec<FoldRow>)>,
}

impl<'a> Fold<'a> {
    /// Plans the fold of a component.
    pub(super) fn new(
        automaton: &'a Automaton,
        signature: &mut Signature,
        placeholders: &mut Placeholders,
    ) -> Self {
        let places = shared_parameters(automaton, signature);
        let vars: Vec<VarId> = places.iter().map(|shared| signature.copy_var(shared[0])).collect();
        let mut fold = Self { automaton, places, vars, kinds: Vec::new() };
        let mut kinds: Vec<(EdgeKind, Vec<FoldRow>)> = Vec::new();
        let mut by_kind: AHashMap<EdgeKind, usize> = AHashMap::new();
        let mut sums = AHashMap::new();
        for edge in &automaton.edges {
            let (kind, row) = fold.row(edge, signature, placeholders, &mut sums);
            let at = *by_kind.entry(kind.clone()).or_insert(kinds.len());
            if at == kinds.len() {
                kinds.push((kind, Vec::new()));
            }
            kinds[at].1.push(row);
        }
        for (kind, rows) in kinds {
            let merged = by_location(rows)
                .into_iter()
                .flat_map(|rows| merge_complements(signature, rows))
                .collect();
            fold.kinds.push((kind, merged));
        }
        fold
    }

    /// Returns 100 times the ratio of edges before and after folding; 0 if their number does not
    /// decrease.
    pub(super) fn gain(&self) -> usize {
        // Times and probabilistic choices would have to become functions of the location as well.
        if self.automaton.edges.iter().any(|e| e.chance.is_some() || e.time.is_some()) {
            return 0;
        }
        let gain = 100 * self.automaton.edges.len() / self.kinds.len().max(1);
        if gain > 100 { gain } else { 0 }
    }

    /// Splits an edge into its kind and the rest. `sums`: the common sum variables, by position and
    /// sort.
    fn row(
        &self,
        edge: &LocationEdge,
        signature: &mut Signature,
        placeholders: &mut Placeholders,
        sums: &mut AHashMap<(usize, SortId), VarId>,
    ) -> (EdgeKind, FoldRow) {
        let locations = &self.automaton.locations;
        let mut by = Substitution::new();
        let mut live = Vec::new();
        for (place, shared) in self.places.iter().enumerate() {
            let here = shared.iter().find(|v| locations[edge.from].vars.contains(v));
            live.push(here.is_some());
            by.extend(here.map(|v| (*v, Expr::var(signature, self.vars[place]))));
        }
        let mut sum_vars = Vec::new();
        for (i, v) in edge.sum_vars.iter().enumerate() {
            let sort = signature.var(*v).sort;
            let own = *sums.entry((i, sort)).or_insert_with(|| signature.copy_var(*v));
            by.insert(*v, Expr::var(signature, own));
            sum_vars.push(own);
        }
        let summed = |e: &Expr| {
            let mut free = Vec::new();
            e.free_vars(&mut free);
            free.iter().any(|v| sum_vars.contains(v))
        };
        let all = edge
            .acts
            .iter()
            .flat_map(|a| &a.args)
            .map(|e| e.substitute(&by))
            .collect::<Vec<Expr>>();
        let args = all.iter().map(|e| summed(e).then(|| e.clone())).collect();
        let rest = all.iter().map(|e| (!summed(e)).then(|| e.clone())).collect();
        let (of_kind, guard) = edge.guard.iter().map(|g| g.substitute(&by)).partition(summed);
        let mut values = Vec::new();
        for (place, shared) in self.places.iter().enumerate() {
            let given = edge
                .assigns
                .iter()
                .find(|(v, _)| shared.contains(v))
                .map(|(_, e)| e.substitute(&by));
            let own = Expr::var(signature, self.vars[place]);
            // A variable that is live neither before nor after is unchanged.
            values.push(given.unwrap_or_else(|| {
                if live[place] { placeholders.value(signature, own.sort) } else { own }
            }));
        }
        let over = locations[edge.to].terminated.then_some(edge.to);
        let actions = edge.acts.iter().map(|a| a.action).collect();
        let kind =
            EdgeKind { actions, sum_vars, had_sum: edge.had_sum, args, guard: of_kind, over };
        let to = Expr::number(narrow::index(edge.to) + 1, basic::POS);
        (
            kind,
            FoldRow {
                from: edge.from,
                number: 1,
                guard,
                args: rest,
                to,
                values,
                acts: edge.acts.clone(),
            },
        )
    }

    /// Builds the folded component. Location 0 represents all locations except successful
    /// terminations, which remain.
    pub(super) fn build(&self, data: &mut DataSpec, placeholders: &mut Placeholders) -> Automaton {
        let at = data.signature.fresh_var("s", basic::POS);
        let mut locations = vec![Location {
            vars: [at].into_iter().chain(self.vars.iter().copied()).collect(),
            terminated: false,
        }];
        let mut ends = AHashMap::new();
        for (l, location) in
            self.automaton.locations.iter().enumerate().filter(|(_, l)| l.terminated)
        {
            ends.insert(l, locations.len());
            locations.push(location.clone());
        }
        let (name, last) = (&self.automaton.name, self.automaton.locations.len());
        let mut functions = Functions { data, at, number: None, name, last };
        let mut edges = Vec::new();
        for (kind, rows) in &self.kinds {
            edges.push(edge(kind, rows, &self.vars, &ends, &mut functions));
        }
        let (initial, mut initial_values) = match ends.get(&self.automaton.initial) {
            Some(end) => (*end, self.automaton.initial_values.clone()),
            None => {
                (0, vec![(at, Expr::number(narrow::index(self.automaton.initial) + 1, basic::POS))])
            }
        };
        if initial == 0 {
            for (shared, var) in self.places.iter().zip(&self.vars) {
                let given = self
                    .automaton
                    .initial_values
                    .iter()
                    .find(|(v, _)| shared.contains(v))
                    .map(|(_, e)| e.clone());
                let sort = data.signature.var(*var).sort;
                initial_values.push((
                    *var,
                    given.unwrap_or_else(|| placeholders.value(&mut data.signature, sort)),
                ));
            }
        }
        Automaton {
            name: self.automaton.name.clone(),
            phase: false,
            locations,
            edges,
            initial_chance: self.automaton.initial_chance.clone(),
            initial,
            initial_values,
        }
    }
}

/// Returns one edge for all rows of a kind.
fn edge(
    kind: &EdgeKind,
    rows: &[FoldRow],
    vars: &[VarId],
    ends: &AHashMap<usize, usize>,
    functions: &mut Functions,
) -> LocationEdge {
    let most = rows.iter().map(|r| r.number).max().unwrap_or(1);
    let number = (most > 1).then(|| functions.data.signature.fresh_var("k", basic::POS));
    functions.number = number;
    let condition = functions.condition(rows, most);
    let mut args = kind.args.clone();
    for (i, arg) in args.iter_mut().enumerate().filter(|(_, a)| a.is_none()) {
        *arg = Some(functions.choice(
            "value",
            rows.iter().filter_map(|r| Some((r.number, r.from, r.args[i].clone()?))).collect(),
        ));
    }
    let mut args = args.into_iter().flatten();
    let place = |a: &Act| if rows.len() == 1 { a.place } else { Place::default() };
    let acts: Vec<Act> = (rows[0].acts.iter())
        .map(|a| Act {
            args: args.by_ref().take(a.args.len()).collect(),
            place: place(a),
            ..a.clone()
        })
        .collect();
    let mut assigns = Vec::new();
    if kind.over.is_none() {
        assigns.push((
            functions.at,
            functions
                .choice("next", rows.iter().map(|r| (r.number, r.from, r.to.clone())).collect()),
        ));
        for (place, var) in vars.iter().enumerate() {
            let cases = rows.iter().map(|r| (r.number, r.from, r.values[place].clone())).collect();
            assigns.push((*var, functions.choice("value", cases)));
        }
    }
    let signature = &mut functions.data.signature;
    let bound = number.map(|k| {
        let (k, last) = (Expr::var(signature, k), Expr::number(narrow::index(most), basic::POS));
        Expr::builtin(signature, Builtin::LessEqual, vec![k, last], basic::BOOL)
    });
    LocationEdge {
        from: 0,
        sum_vars: kind.sum_vars.iter().copied().chain(number).collect(),
        guard: [condition].into_iter().chain(bound).chain(kind.guard.iter().cloned()).collect(),
        acts,
        time: None,
        chance: None,
        to: kind.over.map_or(0, |l| ends[&l]),
        assigns,
        had_sum: kind.had_sum || most > 1,
    }
}

/// Number of an edge, its location, and an expression for that edge.
type FoldCase = (usize, usize, Expr);

/// Builder of functions of the location and of the edge number there.
struct Functions<'a> {
    data: &'a mut DataSpec,
    /// Parameter for the location.
    at: VarId,
    /// Sum variable for the edge number, if there are several.
    number: Option<VarId>,
    name: &'a str,
    /// Number of the last location.
    last: usize,
}

impl Functions<'_> {
    /// Returns the condition of the row with the current number at the current location; false if
    /// there is none.
    fn condition(&mut self, rows: &[FoldRow], most: usize) -> Expr {
        let no = Expr::boolean(&mut self.data.signature, false);
        let mut all: Vec<FoldCase> = (1..=most)
            .flat_map(|k| (0..self.last).map(move |l| (k, l)))
            .map(|(k, l)| (k, l, no.clone()))
            .collect();
        for row in rows {
            let yes = Expr::boolean(&mut self.data.signature, true);
            let guard = row
                .guard
                .iter()
                .fold(yes, |all, c| Expr::and(&mut self.data.signature, all, c.clone()));
            all[(row.number - 1) * self.last + row.from].2 = guard;
        }
        self.choice("guard", all)
    }

    /// Returns the expression of the edge with the current number at the current location. If there
    /// is no such edge, the value is arbitrary. `what` is part of the name of a new function.
    fn choice(&mut self, what: &str, mut cases: Vec<FoldCase>) -> Expr {
        cases.sort_by_key(|c| (c.0, c.1));
        let body = self.tree(&cases);
        if cases.iter().any(|c| c.2 == body) {
            return body;
        }
        let mut params = Vec::new();
        body.free_vars(&mut params);
        params.sort_unstable_by_key(|v| (*v != self.at, Some(*v) != self.number, *v));
        params.dedup();
        let signature = &mut self.data.signature;
        let args: Vec<Expr> = params.iter().map(|v| Expr::var(signature, *v)).collect();
        let domain: Vec<SortId> = args.iter().map(|e| e.sort).collect();
        let own: Vec<VarId> = params.iter().map(|v| signature.copy_var(*v)).collect();
        let by: Substitution =
            params.iter().zip(&own).map(|(v, w)| (*v, Expr::var(signature, *w))).collect();
        let body = body.substitute(&by);
        let full = signature.sorts.intern(SortKind::Function(domain.into(), body.sort));
        let base = self.name.replace(|c: char| !c.is_ascii_alphanumeric(), "_").to_lowercase();
        let name = signature.free_op_name(format!("{base}_{what}{}", signature.op_count()));
        let op = signature.add_op(Op { name, sort: full, kind: OpKind::Mapping });
        let lhs =
            Expr::apply(signature, op, own.iter().map(|v| Expr::var(signature, *v)).collect());
        self.data.equations.push(Equation {
            vars: own,
            condition: None,
            lhs,
            rhs: body,
            span: Default::default(),
        });
        Expr::apply(&self.data.signature, op, args)
    }

    /// Builds a balanced tree of comparisons of the edge number, then of the location.
    fn tree(&mut self, cases: &[FoldCase]) -> Expr {
        let (first, last) = (&cases[0], &cases[cases.len() - 1]);
        if cases.iter().all(|c| c.2 == first.2) {
            return first.2.clone();
        }
        let (var, middle, bound) = match self.number {
            Some(k) if first.0 < last.0 => {
                let bound = first.0.midpoint(last.0) + 1;
                (k, cases.partition_point(|c| c.0 < bound), bound)
            }
            _ => (self.at, cases.len() / 2, cases[cases.len() / 2].1 + 1),
        };
        let (low, high) = cases.split_at(middle);
        let (a, b) = (self.tree(low), self.tree(high));
        let signature = &mut self.data.signature;
        let (var, bound) =
            (Expr::var(signature, var), Expr::number(narrow::index(bound), basic::POS));
        let below = Expr::builtin(signature, Builtin::Less, vec![var, bound], basic::BOOL);
        conditional(signature, below, a, b)
    }
}

/// Returns `if(c, a, b)`, using a logical operator if `a` or `b` is a constant.
fn conditional(signature: &mut Signature, c: Expr, a: Expr, b: Expr) -> Expr {
    if a == b {
        return a;
    }
    match (a.as_bool(signature), b.as_bool(signature)) {
        (Some(true), Some(false)) => c,
        (Some(false), Some(true)) => Expr::negate(signature, c),
        (_, Some(false)) => Expr::and(signature, c, a),
        (Some(false), _) => {
            let not = Expr::negate(signature, c);
            Expr::and(signature, not, b)
        }
        _ => {
            let sort = a.sort;
            Expr::builtin(signature, Builtin::If, vec![c, a, b], sort)
        }
    }
}

/// Groups rows by location, in the order of the first rows.
fn by_location(rows: Vec<FoldRow>) -> Vec<Vec<FoldRow>> {
    let mut places: AHashMap<usize, usize> = AHashMap::new();
    let mut out: Vec<Vec<FoldRow>> = Vec::new();
    for row in rows {
        let at = *places.entry(row.from).or_insert(out.len());
        if at == out.len() {
            out.push(Vec::new());
        }
        out[at].push(row);
    }
    out
}

/// Merges rows of one location and kind that differ in one condition and its negation.
fn merge_complements(signature: &mut Signature, mut rows: Vec<FoldRow>) -> Vec<FoldRow> {
    let mut i = 0;
    while i < rows.len() {
        let other =
            (0..i).find_map(|j| Some((j, opposite(signature, &rows[j].guard, &rows[i].guard)?)));
        let Some((j, c)) = other else {
            i += 1;
            continue;
        };
        let b = rows.remove(i);
        let a = rows.remove(j);
        let mut both = |a: Expr, b: Expr| conditional(signature, c.clone(), a, b);
        let args = a
            .args
            .into_iter()
            .zip(b.args)
            .map(|(x, y)| x.zip(y).map(|(x, y)| both(x, y)))
            .collect();
        let values = a.values.into_iter().zip(b.values).map(|(x, y)| both(x, y)).collect();
        let to = both(a.to, b.to);
        let guard = a.guard.into_iter().filter(|g| *g != c).collect();
        rows.insert(j, FoldRow { guard, args, to, values, ..a });
        // The result may be merged with an earlier one.
        i = j.max(1);
    }
    rows.iter_mut().zip(1..).for_each(|(row, number)| row.number = number);
    rows
}

/// Returns a condition of `a` with its negation in `b`, if all other conditions are equal.
fn opposite(signature: &mut Signature, a: &[Expr], b: &[Expr]) -> Option<Expr> {
    let only = |xs: &[Expr], ys: &[Expr]| {
        let mut rest = xs.iter().filter(|x| !ys.contains(x));
        rest.next().filter(|_| rest.next().is_none()).cloned()
    };
    let (c, d) = (only(a, b)?, only(b, a)?);
    let opposite = Expr::negate(signature, c.clone()) == d || Expr::negate(signature, d) == c;
    opposite.then_some(c)
}
