//! Dead actions: static explanation of actions that never label a step, actions without a partner,
//! communications with values that never agree, `allow` operators that permit nothing, and
//! components that are stuck from the start.
//!
//! In: the linear process with its anatomy. Out: [`Absence`], [`Dead`]. An action is dead if no
//! summand has it as an origin *and* the operators above its components explain that: by names, or
//! because each pair of possible partners has different constant values. So an action that is
//! merely unreachable is not reported as dead. Neither is an action that another component performs
//! from the same text, unless a component is stuck because of it. Cost: the summands, and for each
//! dead action its operators and its partners' summands.

use super::deadlock::DeadlockAnalysis;
use ahash::AHashSet;
use mu_base::ids::ActId;
use mu_base::{Diagnostic, Span, narrow};
use mu_data::expr::Expr;
use mu_model::deadlock::{Absence, Dead, Obstacle};
use mu_process::anatomy::{OperatorKind, rule_text};
use mu_process::linear::Act;

impl DeadlockAnalysis<'_> {
    /// Returns the components with an action of this name before communication, each with a place
    /// of it.
    fn doers(&self, name: &str) -> Vec<(usize, ActId, Span)> {
        let mut out = Vec::new();
        for (c, automaton) in self.anatomy.components.iter().enumerate() {
            let act =
                automaton.edges.iter().flat_map(|e| &e.acts).find(|a| self.name(a.action) == name);
            out.extend(act.map(|a| (c, a.action, a.place.0)));
        }
        out
    }

    pub(super) fn why_absent(&mut self, name: &str) -> Result<Option<Absence>, Diagnostic> {
        let process = self.model.process();
        let of = |acts: &[Act]| acts.iter().any(|a| self.name(a.action) == name);
        if process.summands.iter().any(|s| of(&s.actions)) {
            return Ok(None);
        }
        if let Some(act) =
            process.summands.iter().flat_map(|s| &s.hidden).find(|a| self.name(a.action) == name)
        {
            let hides = |o: &&mu_process::anatomy::ComponentOperator| matches!(&o.kind, OperatorKind::Hide(set) if set.iter().any(|n| n == name));
            let place = self.anatomy.operators.iter().find(hides).map_or(act.place.0, |o| o.place);
            return Ok(Some(Absence::Hidden(place)));
        }
        for operator in &self.anatomy.operators {
            if let OperatorKind::Rename(map) = &operator.kind
                && let Some((_, to)) = map.iter().find(|(from, _)| from == name)
            {
                return Ok(Some(Absence::Renamed(operator.place, to.clone())));
            }
        }
        let doers = self.doers(name);
        if let Some(&(c, _, place)) = doers.first() {
            let result = self.pass_operators(c, vec![name.to_string()], &[], 0, None);
            if !result.passes {
                return Ok(Some(Absence::Stopped(without_expected_blocks(result.obstacles))));
            }
            return Ok(Some(
                self.value_mismatch(c, name)?
                    .map_or(Absence::Unreachable(place), |o| Absence::Stopped(vec![o])),
            ));
        }
        let mut obstacles = Vec::new();
        for o in 0..self.anatomy.operators.len() {
            let OperatorKind::Comm(rules) = &self.anatomy.operators[o].kind else { continue };
            for rule in rules.iter().filter(|r| r.1.as_deref() == Some(name)) {
                obstacles.extend(self.absent_communication(o, rule)?);
            }
        }
        Ok(Some(if obstacles.is_empty() {
            Absence::NoComponent
        } else {
            Absence::Stopped(obstacles)
        }))
    }

    /// Returns the reason why a communication never happens, or the obstacle that blocks its
    /// result.
    fn absent_communication(
        &mut self,
        operator: usize,
        rule: &super::deadlock::Rule,
    ) -> Result<Option<Obstacle>, Diagnostic> {
        let place = self.anatomy.operators[operator].place;
        let mut first = None;
        for partner in &rule.0 {
            match self.able(operator, partner)[..] {
                [] => {
                    return Ok(Some(Obstacle::NoPartner {
                        rule: rule_text(rule),
                        place,
                        partner: partner.clone(),
                    }));
                }
                [c, ..] => first = first.or(Some((c as usize, partner.clone()))),
            }
        }
        let Some((c, partner)) = first else { return Ok(None) };
        let at = self.anatomy.above[c]
            .iter()
            .position(|o| *o == operator)
            .ok_or_else(|| Diagnostic::internal("a component without an operator above it"))?;
        let after = self.pass_operators(c, rule.1.iter().cloned().collect(), &[], at + 1, None);
        if !after.passes {
            return Ok(after.obstacles.into_iter().next());
        }
        self.value_mismatch(c, &partner)
    }

    /// Returns the communication that blocks an action of a component because all possible partners
    /// have different constant values.
    fn value_mismatch(
        &mut self,
        component: usize,
        name: &str,
    ) -> Result<Option<Obstacle>, Diagnostic> {
        for o in self.anatomy.above[component].clone() {
            let OperatorKind::Comm(rules) = &self.anatomy.operators[o].kind else { continue };
            let Some(own) = self.name_at(component, o, name) else { continue };
            for rule in rules.iter().filter(|r| r.0.contains(&own) && r.0.len() == 2) {
                let Some(partner) = rule.0.iter().find(|n| **n != own).or(rule.0.first()) else {
                    continue;
                };
                let mine = self.arguments(component, o, &own)?;
                let mut offers = Vec::new();
                let mut differ = true;
                for c in
                    self.able(o, partner).into_iter().filter(|c| *c != narrow::index(component))
                {
                    for (text, theirs) in self.arguments(c as usize, o, partner)? {
                        differ &= mine.iter().all(|(_, mine)| surely_differ(mine, &theirs));
                        offers.push((c, text));
                    }
                }
                if differ && !offers.is_empty() {
                    offers.dedup();
                    offers.truncate(4);
                    return Ok(Some(Obstacle::ValueMismatch {
                        rule: rule_text(rule),
                        place: self.anatomy.operators[o].place,
                        offers,
                    }));
                }
            }
        }
        Ok(None)
    }

    /// Returns the arguments of a component's actions of this name below an operator, with the
    /// action's text. Arguments that are not constants are `None`.
    fn arguments(
        &mut self,
        component: usize,
        operator: usize,
        name: &str,
    ) -> Result<Vec<(String, Vec<Option<Expr>>)>, Diagnostic> {
        let mut out = Vec::new();
        let acts: Vec<Act> =
            self.anatomy.components[component].edges.iter().flat_map(|e| e.acts.clone()).collect();
        for act in acts {
            if self.name_at(component, operator, self.name(act.action)).as_deref() != Some(name) {
                continue;
            }
            let mut values = Vec::new();
            for arg in &act.args {
                values.push(if arg.is_closed() { self.offers.constant(arg)? } else { None });
            }
            let signature = &self.model.process().data.signature;
            let texts: Vec<String> = values
                .iter()
                .map(|v| {
                    v.as_ref()
                        .map_or_else(|| "_".into(), |e| mu_data::print::expression(signature, e))
                })
                .collect();
            let name = self.name(act.action);
            let text = if texts.is_empty() {
                name.to_string()
            } else {
                format!("{name}({})", texts.join(", "))
            };
            out.push((text, values));
        }
        Ok(out)
    }

    pub(super) fn all_dead(&mut self) -> Result<Vec<Dead>, Diagnostic> {
        let process = self.model.process();
        let mut used: AHashSet<(u32, ActId)> = AHashSet::new();
        for act in process.summands.iter().flat_map(|s| s.actions.iter().chain(&s.hidden)) {
            used.extend(act.from.iter().map(|o| (o.component, o.action)));
        }
        let mut out: Vec<Dead> = Vec::new();
        let mut silent = AHashSet::new();
        for (o, operator) in self.anatomy.operators.iter().enumerate() {
            let inside: Vec<usize> = (0..self.anatomy.components.len())
                .filter(|c| self.anatomy.above[*c].contains(&o))
                .collect();
            let lives = |c: &usize| used.iter().any(|u| u.0 == narrow::index(*c));
            let mut below: Vec<String> = inside
                .iter()
                .flat_map(|c| &self.anatomy.components[*c].edges)
                .flat_map(|e| &e.acts)
                .map(|a| self.name(a.action).to_string())
                .collect();
            below.sort();
            below.dedup();
            if matches!(operator.kind, OperatorKind::Allow(_))
                && !below.is_empty()
                && !inside.iter().any(lives)
            {
                silent.extend(inside);
                out.push(Dead::Allow { place: operator.place, below });
            }
        }
        for c in 0..self.anatomy.components.len() {
            let automaton = &self.anatomy.components[c];
            let mut dead: AHashSet<ActId> = AHashSet::new();
            let mut met = AHashSet::new();
            for act in automaton.edges.iter().flat_map(|e| &e.acts) {
                if used.contains(&(narrow::index(c), act.action)) || !met.insert(act.action) {
                    continue;
                }
                let name = self.name(act.action).to_string();
                let result = self.pass_operators(c, vec![name.clone()], &[], 0, None);
                let obstacles = if result.passes {
                    self.value_mismatch(c, &name)?.into_iter().collect()
                } else {
                    without_expected_blocks(result.obstacles)
                };
                if obstacles.is_empty() {
                    continue;
                }
                dead.insert(act.action);
                if silent.contains(&c)
                    && obstacles.iter().all(|o| {
                        matches!(o, Obstacle::NotAllowed { .. } | Obstacle::Stopped { .. })
                    })
                {
                    continue;
                }
                let known = out.iter_mut().find_map(|d| match d {
                    Dead::Action { action, place, components, .. }
                        if *action == name && *place == act.place.0 =>
                    {
                        Some(components)
                    }
                    _ => None,
                });
                match known {
                    Some(components) => components.push(narrow::index(c)),
                    None => out.push(Dead::Action {
                        action: name,
                        place: act.place.0,
                        components: vec![narrow::index(c)],
                        obstacles,
                        stuck: Vec::new(),
                    }),
                }
            }
            let mut first =
                automaton.edges.iter().filter(|e| e.from == automaton.initial).peekable();
            let at = first.peek().and_then(|e| e.acts.first()).map(|a| a.place.0);
            if at.is_some() && first.all(|e| e.acts.iter().any(|a| dead.contains(&a.action))) {
                for entry in &mut out {
                    if let Dead::Action { place, stuck, .. } = entry
                        && Some(*place) == at
                    {
                        stuck.push(narrow::index(c));
                    }
                }
            }
        }
        // Components that share one text are judged one by one: an action is live for the component
        // that performs it.
        let mut alive: AHashSet<(Span, &str)> = AHashSet::new();
        for (c, automaton) in self.anatomy.components.iter().enumerate() {
            let done = automaton
                .edges
                .iter()
                .flat_map(|e| &e.acts)
                .filter(|a| used.contains(&(narrow::index(c), a.action)));
            alive.extend(done.map(|a| (a.place.0, self.name(a.action))));
        }
        out.retain(|d| match d {
            Dead::Action { action, place, stuck, .. } => {
                !stuck.is_empty() || !alive.contains(&(*place, action.as_str()))
            }
            Dead::Allow { .. } => true,
        });
        Ok(out)
    }
}

/// True if two lists of arguments certainly differ.
fn surely_differ(a: &[Option<Expr>], b: &[Option<Expr>]) -> bool {
    a.len() != b.len()
        || a.iter().zip(b).any(|(a, b)| matches!((a, b), (Some(a), Some(b)) if a != b))
}

/// Removes the obstacle that an action cannot occur alone, which is expected of an action that
/// communicates.
fn without_expected_blocks(mut obstacles: Vec<Obstacle>) -> Vec<Obstacle> {
    obstacles.dedup();
    if obstacles.len() > 1 {
        obstacles.retain(|o| !matches!(o, Obstacle::Blocked { .. } | Obstacle::NotAllowed { .. }));
    }
    obstacles
}
