//! Folding: the locations of a component become a value of a parameter, so that edges with the same
//! actions become few.
//!
//! Composition multiplies edges. Where several components take part in one action from hundreds of
//! locations each (a clock's tick, a barrier), that is too many, although each component is at one
//! location at a time. A folded component has one location and a parameter `s` for where it was;
//! the edges of one kind (the same actions, sums, conditions and arguments on what is summed)
//! become one, whose condition, arguments, target and values are functions of `s` and of the
//! variables. If a location has several of a kind, it sums over their number `k`. It is the
//! clustering of summands of Groote, Ponse and Usenko, "Linearization in parallel pCRL" (2001),
//! done where composition needs it only: edges apart are read and tabulated faster.
//!
//! In and out: [`Automaton`]. Functions get one equation each: a balanced tree of comparisons of
//! `k` and `s`. Edges of a location that differ in one condition and its negation become one whose
//! parts are conditional. Cost: edges times variables. Invariant: states are mapped one to one; a
//! place that is not live holds what `assemble` gives it.

use super::assemble::{Unused, shared_places};
use super::sequential::{Automaton, Edge, Location};
use crate::linear::Act;
use ahash::AHashMap;
use mu_base::Place;
use mu_base::ids::{ActId, SortId, VarId};
use mu_data::expr::{DataSpec, Equation, Expr, Substitution};
use mu_data::signature::{Builtin, Op, OpKind, Signature};
use mu_data::sort::{SortKind, basic};

/// What edges that may become one agree in. Sum variables have the names that all folded edges of
/// the component share.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Kind {
    actions: Vec<ActId>,
    sum_vars: Vec<VarId>,
    had_sum: bool,
    /// Arguments of the actions that depend on sum variables.
    args: Vec<Option<Expr>>,
    /// Conjuncts that depend on sum variables.
    guard: Vec<Expr>,
    /// The location that it goes to, if that is successful termination.
    over: Option<usize>,
}

/// An edge from a location, without what its kind says.
struct Row {
    from: usize,
    /// Which one of the edges of its kind at that location, from 1 on.
    number: usize,
    guard: Vec<Expr>,
    /// Arguments of all actions, one after another; `None` where the kind has them.
    args: Vec<Option<Expr>>,
    /// Number of the location after it.
    to: Expr,
    /// The value of each place after it.
    values: Vec<Expr>,
    acts: Vec<Act>,
}

/// How a component would be folded.
pub(super) struct Fold<'a> {
    automaton: &'a Automaton,
    /// Variables that share a place, by place.
    places: Vec<Vec<VarId>>,
    /// The variable of each place after folding.
    vars: Vec<VarId>,
    /// Edges by kind, those of a location numbered from 1 on.
    kinds: Vec<(Kind, Vec<Row>)>,
}

impl<'a> Fold<'a> {
    /// Plans the fold of a component.
    pub(super) fn new(
        automaton: &'a Automaton,
        signature: &mut Signature,
        unused: &mut Unused,
    ) -> Self {
        let places = shared_places(automaton, signature);
        let vars: Vec<VarId> = places.iter().map(|shared| signature.copy_var(shared[0])).collect();
        let mut fold = Self { automaton, places, vars, kinds: Vec::new() };
        let mut kinds: Vec<(Kind, Vec<Row>)> = Vec::new();
        let mut by_kind: AHashMap<Kind, usize> = AHashMap::new();
        let mut sums = AHashMap::new();
        for edge in &automaton.edges {
            let (kind, row) = fold.row(edge, signature, unused, &mut sums);
            let at = *by_kind.entry(kind.clone()).or_insert(kinds.len());
            if at == kinds.len() {
                kinds.push((kind, Vec::new()));
            }
            kinds[at].1.push(row);
        }
        for (kind, rows) in kinds {
            let merged =
                by_location(rows).into_iter().flat_map(|rows| merged(signature, rows)).collect();
            fold.kinds.push((kind, merged));
        }
        fold
    }

    /// How many of its edges become one hundred; 0 if it does not get smaller.
    pub(super) fn gain(&self) -> usize {
        // Times and choices by chance would have to become functions of the location as well.
        if self.automaton.edges.iter().any(|e| e.chance.is_some() || e.time.is_some()) {
            return 0;
        }
        let gain = 100 * self.automaton.edges.len() / self.kinds.len().max(1);
        if gain > 100 { gain } else { 0 }
    }

    fn row(
        &self,
        edge: &Edge,
        signature: &mut Signature,
        unused: &mut Unused,
        sums: &mut AHashMap<(usize, SortId), VarId>,
    ) -> (Kind, Row) {
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
        let (kept, guard) = edge.guard.iter().map(|g| g.substitute(&by)).partition(summed);
        let mut values = Vec::new();
        for (place, shared) in self.places.iter().enumerate() {
            let given = edge
                .assigns
                .iter()
                .find(|(v, _)| shared.contains(v))
                .map(|(_, e)| e.substitute(&by));
            let own = Expr::var(signature, self.vars[place]);
            // What is not live before nor after stays as it is.
            values.push(given.unwrap_or_else(|| {
                if live[place] { unused.value(signature, own.sort) } else { own }
            }));
        }
        let over = locations[edge.to].terminated.then_some(edge.to);
        let actions = edge.acts.iter().map(|a| a.action).collect();
        let kind = Kind { actions, sum_vars, had_sum: edge.had_sum, args, guard: kept, over };
        let to = Expr::number(edge.to as u32 + 1, basic::POS);
        (
            kind,
            Row {
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

    /// The folded component: location 0 for all that go on, and those of successful termination.
    pub(super) fn build(&self, data: &mut DataSpec, unused: &mut Unused) -> Automaton {
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
            None => (0, vec![(at, Expr::number(self.automaton.initial as u32 + 1, basic::POS))]),
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
                initial_values
                    .push((*var, given.unwrap_or_else(|| unused.value(&mut data.signature, sort))));
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

/// One edge for all rows of a kind.
fn edge(
    kind: &Kind,
    rows: &[Row],
    vars: &[VarId],
    ends: &AHashMap<usize, usize>,
    functions: &mut Functions,
) -> Edge {
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
        let (k, last) = (Expr::var(signature, k), Expr::number(most as u32, basic::POS));
        Expr::builtin(signature, Builtin::LessEqual, vec![k, last], basic::BOOL)
    });
    Edge {
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

/// An expression for the edge of a number at a location.
type Case = (usize, usize, Expr);

/// Makes functions of the location and of the number of the edge there.
struct Functions<'a> {
    data: &'a mut DataSpec,
    /// The parameter for the location.
    at: VarId,
    /// The sum variable for the number, if there are several.
    number: Option<VarId>,
    name: &'a str,
    /// The last location's number.
    last: usize,
}

impl Functions<'_> {
    /// What holds where these rows are; nothing does at other locations.
    fn condition(&mut self, rows: &[Row], most: usize) -> Expr {
        let no = Expr::boolean(&mut self.data.signature, false);
        let mut all: Vec<Case> = (1..=most)
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

    /// The expression of the edge of that number at the location; any will do where there is none.
    fn choice(&mut self, what: &str, mut cases: Vec<Case>) -> Expr {
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

    /// Comparisons of the number with the first one of the second half of them, then of the
    /// location.
    fn tree(&mut self, cases: &[Case]) -> Expr {
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
        let (var, bound) = (Expr::var(signature, var), Expr::number(bound as u32, basic::POS));
        let below = Expr::builtin(signature, Builtin::Less, vec![var, bound], basic::BOOL);
        conditional(signature, below, a, b)
    }
}

/// `if(c, a, b)`, with an operator of logic where `a` or `b` is a constant.
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

/// Rows of each location, locations in the order of their first rows.
fn by_location(rows: Vec<Row>) -> Vec<Vec<Row>> {
    let mut places: AHashMap<usize, usize> = AHashMap::new();
    let mut out: Vec<Vec<Row>> = Vec::new();
    for row in rows {
        let at = *places.entry(row.from).or_insert(out.len());
        if at == out.len() {
            out.push(Vec::new());
        }
        out[at].push(row);
    }
    out
}

/// Rows of one location and kind, those that differ in one condition and its negation together.
fn merged(signature: &mut Signature, mut rows: Vec<Row>) -> Vec<Row> {
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
        rows.insert(j, Row { guard, args, to, values, ..a });
        // What it has become may fit to one before it.
        i = j.max(1);
    }
    rows.iter_mut().zip(1..).for_each(|(row, number)| row.number = number);
    rows
}

/// The condition of the first that the second has the negation of, if they agree in all others.
fn opposite(signature: &mut Signature, a: &[Expr], b: &[Expr]) -> Option<Expr> {
    let only = |xs: &[Expr], ys: &[Expr]| {
        let mut rest = xs.iter().filter(|x| !ys.contains(x));
        rest.next().filter(|_| rest.next().is_none()).cloned()
    };
    let (c, d) = (only(a, b)?, only(b, a)?);
    let opposite = Expr::negate(signature, c.clone()) == d || Expr::negate(signature, d) == c;
    opposite.then_some(c)
}
