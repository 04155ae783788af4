//! Explanation of states without steps: the offers of each component, the missing partners, and the
//! communication, `allow` or `block` that prevents each offer.
//!
//! In: a state without steps. Out: [`DeadlockReport`]. Offers come from the summands of the
//! components before composition ([`mu_process::anatomy`]). Each offer passes the operators above
//! its component. If a communication takes its action, partners are sought among the other
//! components below that operator, in this state ([`super::offers`]) and in any state. Joint
//! actions of several components that are partners of a further communication are analysed for the
//! explained component only, not for its partners. Cost: for each state the offers times the rules
//! that take them. The classification of a state depends only on the offers of its components and
//! is cached by them: each of many states without steps costs a lookup per component.

use super::Compiled;
use super::offers::{Argument, LocalOffer, LocalOffers, Offers};
use super::terminal_conditions::TerminalConditions;
use super::termination::TerminationAnalysis;
use ahash::{AHashMap, AHashSet};
use mu_base::Diagnostic;
use mu_base::ids::ActId;
use mu_base::narrow;
use mu_model::deadlock::{
    Absence, ComponentReport, Dead, DeadlockExplainer, DeadlockReport, End, Obstacle, Offer,
    Posture,
};
use mu_process::anatomy::{Anatomy, OperatorKind, rule_text};
use std::rc::Rc;

/// Rule of a communication.
pub(super) type Rule = (Vec<String>, Option<String>);

/// Result of passing an action through the operators: whether it becomes a step, and its obstacles.
#[derive(Default)]
pub(super) struct PassResult {
    pub obstacles: Vec<Obstacle>,
    pub passes: bool,
}

/// Explainer of the states without steps of a compiled model.
pub(super) struct DeadlockAnalysis<'m> {
    pub(super) model: &'m Compiled,
    pub(super) anatomy: &'m Anatomy,
    pub(super) offers: Offers<'m>,
    /// Names of actions after which a component counts as terminated, and conditions under which it
    /// does.
    terminal: Vec<String>,
    conditions: TerminalConditions<'m>,
    /// Constants that identify the states after the action `Terminate`.
    arrivals: TerminationAnalysis,
    /// By operator and name: the components that ever offer this action there.
    able: AHashMap<(usize, String), Vec<u32>>,
    /// Cache: offers of the components and declared terminations to classification.
    ends: AHashMap<(Vec<u32>, Vec<u32>), End>,
}

/// Offers of the components in the current state; `None` for the offers in any state.
pub(super) type Now<'a> = Option<&'a [Rc<LocalOffers>]>;

impl<'m> DeadlockAnalysis<'m> {
    /// Creates the explainer. Errors: a text is neither the name of an action nor a condition on
    /// parameters.
    pub(super) fn new(model: &'m Compiled, terminal: &[String]) -> Result<Self, Diagnostic> {
        let anatomy = &model.process.anatomy;
        let offers = Offers::new(model);
        let is_action = |text: &&String| model.process.actions.iter().any(|a| a.name == **text);
        let (actions, conditions): (Vec<&String>, Vec<&String>) =
            terminal.iter().partition(is_action);
        let conditions: Vec<String> = conditions.into_iter().chain(&model.ends).cloned().collect();
        Ok(Self {
            model,
            anatomy,
            offers,
            terminal: actions.into_iter().cloned().collect(),
            conditions: TerminalConditions::new(model, &conditions)?,
            arrivals: TerminationAnalysis::new(model)?,
            able: AHashMap::new(),
            ends: AHashMap::new(),
        })
    }

    pub(super) fn name(&self, action: ActId) -> &'m str {
        &self.model.process.actions[action.index()].name
    }

    /// Returns the name of an action below an operator, if it arrives there alone.
    pub(super) fn name_at(&self, component: usize, operator: usize, name: &str) -> Option<String> {
        self.name_through(&self.anatomy.above[component], operator, name)
    }

    /// Returns the name at an outer operator of an action named at an inner one.
    fn outer_name(&self, component: usize, from: usize, to: usize, name: &str) -> Option<String> {
        let above = &self.anatomy.above[component];
        let at = above.iter().position(|o| *o == from)?;
        self.name_through(&above[at + 1..], to, name)
    }

    /// Returns the name of an action inside the operator `to`, after the preceding operators of the
    /// list, if it arrives there alone.
    fn name_through(&self, operators: &[usize], to: usize, name: &str) -> Option<String> {
        let mut name = name.to_string();
        for &o in operators {
            if o == to {
                return Some(name);
            }
            match &self.anatomy.operators[o].kind {
                OperatorKind::Block(set) | OperatorKind::Hide(set) if set.contains(&name) => {
                    return None;
                }
                OperatorKind::Allow(bags) if !bags.iter().any(|b| b.len() == 1 && b[0] == name) => {
                    return None;
                }
                OperatorKind::Rename(map) => {
                    if let Some((_, to)) = map.iter().find(|(from, _)| *from == name) {
                        name.clone_from(to);
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// Returns the components below an operator that ever offer an action of this name there, alone
    /// or by an inner communication.
    pub(super) fn able(&mut self, operator: usize, name: &str) -> Vec<u32> {
        if let Some(known) = self.able.get(&(operator, name.to_string())) {
            return known.clone();
        }
        // Ends the recursion of nested operators that rename into each other.
        self.able.insert((operator, name.to_string()), Vec::new());
        let mut found = Vec::new();
        for c in 0..self.anatomy.components.len() {
            if !self.anatomy.above[c].contains(&operator) {
                continue;
            }
            let mut own: Vec<&str> = self.anatomy.components[c]
                .edges
                .iter()
                .flat_map(|e| &e.acts)
                .map(|a| self.name(a.action))
                .collect();
            own.sort_unstable();
            own.dedup();
            let mut does =
                own.iter().any(|n| self.name_at(c, operator, n).as_deref() == Some(name));
            // Results of an inner communication.
            let inner: Vec<usize> =
                self.anatomy.above[c].iter().copied().take_while(|o| *o != operator).collect();
            for o in inner {
                let OperatorKind::Comm(rules) = &self.anatomy.operators[o].kind else { continue };
                for (lhs, to) in rules {
                    let Some(to) = to else { continue };
                    if self.outer_name(c, o, operator, to).as_deref() == Some(name) {
                        let all = lhs.iter().all(|n| !self.able(o, n).is_empty());
                        does |= all
                            && lhs.iter().any(|n| self.able(o, n).contains(&(narrow::index(c))));
                    }
                }
            }
            if does {
                found.push(narrow::index(c));
            }
        }
        self.able.insert((operator, name.to_string()), found.clone());
        found
    }

    /// Passes a multi-action of a component through the operators from position `from` upward.
    /// `args`: arguments of its first action.
    pub(super) fn pass_operators(
        &mut self,
        component: usize,
        mut names: Vec<String>,
        args: &[Argument],
        from: usize,
        now: Now,
    ) -> PassResult {
        let mut result = PassResult::default();
        let above = &self.anatomy.above[component];
        for (at, &o) in above.iter().enumerate().skip(from) {
            let operator = &self.anatomy.operators[o];
            let place = operator.place;
            match &operator.kind {
                OperatorKind::Block(set) => {
                    if let Some(action) = names.iter().find(|n| set.contains(n)).cloned() {
                        result.obstacles.push(Obstacle::Blocked { action, place });
                        return result;
                    }
                }
                OperatorKind::Hide(set) => names.retain(|n| !set.contains(n)),
                OperatorKind::Rename(map) => {
                    for name in &mut names {
                        if let Some((_, to)) = map.iter().find(|(from, _)| from == name) {
                            name.clone_from(to);
                        }
                    }
                }
                OperatorKind::Allow(bags) => {
                    names.sort();
                    if !names.is_empty() && !bags.contains(&names) {
                        let more = bags.iter().filter(|b| {
                            b.len() > names.len() && names.iter().all(|n| b.contains(n))
                        });
                        let only_with = more.map(|b| b.join("|")).collect();
                        result.obstacles.push(Obstacle::NotAllowed {
                            action: names.join("|"),
                            place,
                            only_with,
                        });
                        return result;
                    }
                }
                OperatorKind::Comm(rules) => {
                    for rule in rules.iter().filter(|r| names.iter().any(|n| r.0.contains(n))) {
                        match self.communication_obstacle(component, at, rule, &names, args, now) {
                            Some(obstacle) => result.obstacles.push(obstacle),
                            None => result.passes = true,
                        }
                    }
                }
            }
        }
        result.passes = true;
        result
    }

    /// Returns the obstacle of a communication; `None` if it can happen.
    fn communication_obstacle(
        &mut self,
        component: usize,
        at: usize,
        rule: &Rule,
        names: &[String],
        args: &[Argument],
        now: Now,
    ) -> Option<Obstacle> {
        let o = self.anatomy.above[component][at];
        let (text, place) = (rule_text(rule), self.anatomy.operators[o].place);
        let mut partners = rule.0.clone();
        for name in names {
            if let Some(i) = partners.iter().position(|p| p == name) {
                partners.remove(i);
            }
        }
        let mut candidates: Vec<Vec<(u32, LocalOffer)>> = Vec::new();
        for partner in &partners {
            let able: Vec<u32> = self
                .able(o, partner)
                .into_iter()
                .filter(|c| *c != narrow::index(component))
                .collect();
            if able.is_empty() {
                return Some(Obstacle::NoPartner { rule: text, place, partner: partner.clone() });
            }
            let Some(now) = now else { continue };
            let mut here = Vec::new();
            for &c in &able {
                for offer in &now[c as usize].offers {
                    if let [(action, _)] = offer.acts[..]
                        && self.name_at(c as usize, o, self.name(action)).as_deref()
                            == Some(partner)
                    {
                        here.push((c, offer.clone()));
                    }
                }
            }
            if here.is_empty() {
                return Some(Obstacle::PartnerUnavailable {
                    rule: text,
                    place,
                    partner: partner.clone(),
                    able,
                });
            }
            candidates.push(here);
        }
        let mut chosen = Vec::new();
        let fits = candidates.is_empty() || assign(&candidates, args, &mut chosen);
        let candidates_text: Vec<(u32, LocalOffer)> =
            if fits { chosen } else { candidates.into_iter().flatten().take(4).collect() };
        let mut offers = Vec::new();
        for (c, offer) in candidates_text {
            offers.push((c, self.text(&offer)));
        }
        if !fits {
            return Some(Obstacle::ValueMismatch { rule: text, place, offers });
        }
        let to = rule.1.as_ref()?;
        let after = self.pass_operators(component, vec![to.clone()], args, at + 1, now);
        if !after.passes {
            let by = Box::new(after.obstacles.into_iter().next()?);
            return Some(Obstacle::Stopped { rule: text, place, offers, by });
        }
        // Partners exist, but the values that they leave open do not agree.
        now.map(|_| Obstacle::ValueMismatch { rule: text, place, offers })
    }

    fn text(&mut self, offer: &LocalOffer) -> String {
        offer.acts.iter().map(|(a, args)| self.offers.text(*a, args)).collect::<Vec<_>>().join("|")
    }

    fn obstacles(
        &mut self,
        component: usize,
        offer: &LocalOffer,
        now: &[Rc<LocalOffers>],
    ) -> Vec<Obstacle> {
        let names = offer.acts.iter().map(|(a, _)| self.name(*a).to_string()).collect();
        let args = offer.acts.first().map_or(&[][..], |a| &a.1[..]);
        let mut all = self.pass_operators(component, names, args, 0, Some(now)).obstacles;
        all.dedup();
        // That an action cannot occur alone is expected if it communicates.
        if all.len() > 1 {
            all.retain(|o| !matches!(o, Obstacle::Blocked { .. } | Obstacle::NotAllowed { .. }));
        }
        all
    }

    fn locals(&mut self, state: &[u32]) -> Result<Vec<u32>, Diagnostic> {
        (0..self.anatomy.components.len()).map(|c| self.offers.local(c, state)).collect()
    }

    /// True if a component at this location has terminated successfully.
    fn has_terminated(&self, component: usize, location: Option<usize>) -> bool {
        let automaton = &self.anatomy.components[component];
        location.is_none_or(|l| automaton.is_phase || automaton.locations[l].terminated)
    }

    /// True if the user declared a termination for this location: all steps that lead there are
    /// terminal actions.
    fn after_terminal(&self, component: usize, location: Option<usize>) -> bool {
        let (Some(location), false) = (location, self.terminal.is_empty()) else { return false };
        let mut before =
            self.anatomy.components[component].edges.iter().filter(|e| e.to == location).peekable();
        before.peek().is_some()
            && before.all(|e| {
                e.acts.iter().any(|a| self.terminal.iter().any(|t| t == self.name(a.action)))
            })
    }

    /// Adds the components that a terminal action declares terminated to those that a condition
    /// declares.
    fn add_declared(&self, now: &[Rc<LocalOffers>], mut ended: Vec<u32>) -> Vec<u32> {
        ended.extend(
            (0..now.len())
                .filter(|c| self.after_terminal(*c, now[*c].location))
                .map(|c| narrow::index(c)),
        );
        ended
    }

    /// Returns the posture of each component with the obstacles of its offers. `ended`: components
    /// that are declared terminated.
    fn postures(
        &mut self,
        now: &[Rc<LocalOffers>],
        ended: &[u32],
    ) -> (Vec<Posture>, Vec<Vec<Vec<Obstacle>>>) {
        let mut obstacles = Vec::new();
        let mut postures = Vec::new();
        for (c, local) in now.iter().enumerate() {
            obstacles
                .push(local.offers.iter().map(|o| self.obstacles(c, o, now)).collect::<Vec<_>>());
            let last = local
                .location
                .is_none_or(|l| !self.anatomy.components[c].edges.iter().any(|e| e.from == l));
            postures.push(match () {
                () if ended.contains(&(narrow::index(c)))
                    || self.has_terminated(c, local.location) =>
                {
                    Posture::Terminated
                }
                () if last => Posture::Stopped,
                () => Posture::Waits,
            });
        }
        loop {
            let done = |c: &u32| postures[*c as usize] != Posture::Waits;
            let rests = |c: &usize| {
                let mut waits = false;
                let excused = |o: &Obstacle| match o {
                    Obstacle::PartnerUnavailable { able, .. } => able.iter().all(done),
                    Obstacle::ValueMismatch { offers, .. } => offers.iter().all(|(c, _)| done(c)),
                    _ => true,
                };
                let all = obstacles[*c].iter().flatten().all(|o| {
                    waits |= matches!(
                        o,
                        Obstacle::PartnerUnavailable { .. } | Obstacle::ValueMismatch { .. }
                    );
                    excused(o)
                });
                all && waits
            };
            let home = |c: &usize| now[*c].location == Some(self.anatomy.components[*c].initial);
            let more: Vec<usize> = (0..now.len())
                .filter(|c| postures[*c] == Posture::Waits && home(c))
                .filter(rests)
                .collect();
            if more.is_empty() {
                return (postures, obstacles);
            }
            more.into_iter().for_each(|c| postures[c] = Posture::Idle);
        }
    }
}

/// Classifies a state without steps. `declared`: components that the user or the front end declares
/// terminated; one is enough if all others have terminated, have stopped or are idle.
fn end_of(postures: &[Posture], declared: &[u32]) -> End {
    if postures.contains(&Posture::Waits) {
        End::Hang
    } else if !declared.is_empty() || postures.iter().all(|p| *p == Posture::Terminated) {
        End::Terminated
    } else {
        End::Finished
    }
}

/// Chooses one candidate from each list, of different components, with arguments that agree.
fn assign(
    lists: &[Vec<(u32, LocalOffer)>],
    args: &[Argument],
    chosen: &mut Vec<(u32, LocalOffer)>,
) -> bool {
    let Some((first, rest)) = lists.split_first() else { return true };
    for (c, offer) in first {
        let own = &offer.acts[0].1;
        let agree = |a: &[Argument], b: &[Argument]| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is_none() || b.is_none() || a == b)
        };
        let fits = agree(own, args)
            && chosen.iter().all(|(d, other)| d != c && agree(own, &other.acts[0].1));
        if fits {
            chosen.push((*c, offer.clone()));
            if assign(rest, args, chosen) {
                return true;
            }
            chosen.pop();
        }
    }
    false
}

impl DeadlockExplainer for DeadlockAnalysis<'_> {
    fn absence(&mut self, action: &str) -> Result<Option<Absence>, Diagnostic> {
        self.why_absent(action)
    }

    fn dead(&mut self) -> Result<Vec<Dead>, Diagnostic> {
        self.all_dead()
    }

    fn end(&mut self, state: &[u32]) -> Result<End, Diagnostic> {
        if self.arrivals.only_terminate(self.model, state) {
            return Ok(End::Terminated);
        }
        let key = (self.locals(state)?, self.conditions.terminated_components(state)?);
        if let Some(&known) = self.ends.get(&key) {
            return Ok(known);
        }
        let now: Vec<Rc<LocalOffers>> =
            key.0.iter().map(|n| self.offers.all[*n as usize].clone()).collect();
        let declared = self.add_declared(&now, key.1.clone());
        let end = end_of(&self.postures(&now, &declared).0, &declared);
        self.ends.insert(key, end);
        Ok(end)
    }

    fn report(&mut self, state: &[u32]) -> Result<DeadlockReport, Diagnostic> {
        let key = self.locals(state)?;
        let now: Vec<Rc<LocalOffers>> =
            key.iter().map(|n| self.offers.all[*n as usize].clone()).collect();
        let declared = self.conditions.terminated_components(state)?;
        let declared = self.add_declared(&now, declared);
        let (mut postures, obstacles) = self.postures(&now, &declared);
        let mut end = end_of(&postures, &declared);
        if self.arrivals.only_terminate(self.model, state) {
            end = End::Terminated;
            postures.fill(Posture::Terminated);
        }
        let mut components = Vec::new();
        for (c, (posture, obstacles)) in postures.into_iter().zip(obstacles).enumerate() {
            let automaton = &self.anatomy.components[c];
            let place = |edge: usize| {
                automaton.edges[edge].acts.first().map(|a| a.place.0).unwrap_or_default()
            };
            let mut offers: Vec<Offer> = Vec::new();
            for (offer, obstacles) in now[c].offers.iter().zip(obstacles) {
                let offer = Offer { action: self.text(offer), place: place(offer.edge), obstacles };
                let same = |o: &&Offer| (&o.action, o.place) == (&offer.action, offer.place);
                if !offers.iter().any(|o| same(&o)) {
                    offers.push(offer);
                }
            }
            let mut met = AHashSet::new();
            let names = |edge: usize| {
                automaton.edges[edge]
                    .acts
                    .iter()
                    .map(|a| self.name(a.action))
                    .collect::<Vec<_>>()
                    .join("|")
            };
            let closed = now[c]
                .closed
                .iter()
                .map(|e| (names(*e), place(*e)))
                .filter(|c| met.insert(c.clone()))
                .collect();
            let name = self.model.process.components.get(c).cloned().unwrap_or_default();
            components.push(ComponentReport { name, posture, offers, closed });
        }
        Ok(DeadlockReport { components, end })
    }
}
