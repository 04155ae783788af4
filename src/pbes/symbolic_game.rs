//! Symbolic check of formulas of any shape: the parity game of model and formula over sets of
//! states.
//!
//! Input: model, labels, a formula's automaton. Output: verdict, the numbers of states and of pairs
//! of state and formula state, and evidence: the steps that the winner's strategy needs. The
//! automaton gives the [`GameRules`] of [`mu_symbolic::play`]; Even wins if the formula holds, as
//! in [`super::game`].
//!
//! The solution is verified over sets; the part that becomes evidence is verified again as an
//! explicit game by `mu_game::verify`; `mu_evidence` then replays its steps and evaluates the
//! formula on them.
//!
//! Cost: that of the symbolic game. Evidence has at most [`LARGEST`] vertices, or is omitted.

use super::automaton::{Automaton, FormulaState, ObligationSet};
use super::check::Verdict;
use super::symbolic::{CheckOptions, SymbolicAnswer, steps_from};
use ahash::AHashMap;
use mu_base::ids::{LabelId, VertexId};
use mu_base::{Budget, Diagnostic, narrow};
use mu_evidence::{Evidence, EvidenceStep, TakenStep};
use mu_formula::typed::TypedFormula;
use mu_game::{Game, Solution, verify};
use mu_model::Model;
use mu_model::step_cache::StepCache;
use mu_process::labels::ActionLabels;
use mu_symbolic::{GameEvidence, GameRules, Player, play};
use std::collections::BTreeSet;
use std::rc::Rc;

/// Limit on the vertices of a game shown as evidence.
const LARGEST: usize = 100_000;

/// A formula's automaton as rules of a game.
struct Alternating<'a> {
    automaton: Automaton,
    labels: &'a dyn ActionLabels,
    /// Sets of obligations as lists.
    lists: AHashMap<ObligationSet, Rc<[u32]>>,
    /// A label that no modality names.
    other: Option<LabelId>,
}

impl Alternating<'_> {
    fn answer(&mut self, obligations: ObligationSet) -> mu_symbolic::Answer {
        if obligations == ObligationSet::Decided {
            return None;
        }
        let Self { automaton, lists, .. } = self;
        Some(
            lists
                .entry(obligations)
                .or_insert_with(|| automaton.set(obligations).iter().map(|q| q.number()).collect())
                .clone(),
        )
    }
}

impl GameRules for Alternating<'_> {
    fn class(&mut self, label: LabelId) -> Result<LabelId, Diagnostic> {
        if self.automaton.names(label, self.labels)? {
            Ok(label)
        } else {
            Ok(*self.other.get_or_insert(label))
        }
    }
    fn owner(&self, obligation: u32) -> Player {
        if self.automaton.universal(FormulaState::of(obligation)) {
            Player::Odd
        } else {
            Player::Even
        }
    }
    fn priority(&self, obligation: u32) -> u32 {
        self.automaton.rank(FormulaState::of(obligation))
    }
    fn moves_here(&mut self, obligation: u32) -> Result<mu_symbolic::Answer, Diagnostic> {
        let obligations = self.automaton.obligations_here(FormulaState::of(obligation))?;
        Ok(self.answer(obligations))
    }
    fn moves_here_if(
        &mut self,
        obligation: u32,
        label: LabelId,
    ) -> Result<mu_symbolic::Answer, Diagnostic> {
        let q = FormulaState::of(obligation);
        let obligations = if self.automaton.depends_on_labels_here(q) {
            self.automaton.obligations_here_if(q, label, self.labels)?
        } else {
            ObligationSet::EMPTY
        };
        Ok(self.answer(obligations))
    }
    fn step(&mut self, obligation: u32, label: LabelId) -> Result<mu_symbolic::Answer, Diagnostic> {
        let obligations = self.automaton.step(FormulaState::of(obligation), label, self.labels)?;
        Ok(self.answer(obligations))
    }
}

/// Checks a formula that is the conjunction (or disjunction) of some automaton states in the
/// initial state.
pub(super) fn by_game(
    (model, labels, formula): (&dyn Model, &dyn ActionLabels, &TypedFormula),
    automaton: Automaton,
    (all, roots): (bool, &[FormulaState]),
    check_options: CheckOptions,
    options: &mu_symbolic::SymbolicOptions,
    budget: &Budget,
) -> Result<SymbolicAnswer, Diagnostic> {
    let mut rules = Alternating { automaton, labels, lists: AHashMap::new(), other: None };
    let start: Vec<u32> = roots.iter().map(|q| q.number()).collect();
    let options =
        mu_symbolic::SymbolicOptions { transitions: false, deadlocks: false, ..options.clone() };
    let game_outcome = play(model, &mut rules, (all, &start), LARGEST, &options, budget)?;
    let more = rules.automaton.more_equations();
    let Some(winner) = game_outcome.winner else {
        return Ok(SymbolicAnswer::game(
            Verdict::Unknown(game_outcome.outcome.stop.clone()),
            game_outcome,
            None,
            more,
        ));
    };
    let value = winner == Player::Even;
    let mut evidence = None;
    if let Some(shown) = &game_outcome.play {
        verify_play(&rules, shown, winner)?;
        if check_options.witnesses || !value || formula.asks_for_witness() {
            evidence = Some(evidence_of(model, shown, value)?);
        }
    }
    Ok(SymbolicAnswer::game(
        if value { Verdict::True } else { Verdict::False },
        game_outcome,
        evidence,
        more,
    ))
}

/// Verifies the evidence of a game as an explicit game in which the winner has one move, or has
/// won.
fn verify_play(rules: &Alternating, play: &GameEvidence, winner: Player) -> Result<(), Diagnostic> {
    let owner = |player: Player| {
        if player == Player::Even { mu_game::Player::Even } else { mu_game::Player::Odd }
    };
    let mut moves: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); play.vertices.len()];
    for &(from, _, to) in &play.moves {
        moves[from].insert(to);
    }
    // A win without a move becomes a vertex of the loser without moves.
    let mut game = Game::default();
    let mut strategy = Vec::new();
    let end = play.vertices.len();
    for (v, (_, q)) in play.vertices.iter().enumerate() {
        let own = rules.owner(*q) == winner;
        if own && moves[v].is_empty() {
            moves[v].insert(end);
        }
        let to: Vec<VertexId> = moves[v].iter().map(|&to| VertexId::new(to)).collect();
        strategy.push(if own { to.first().copied() } else { None });
        game.push(owner(rules.owner(*q)), rules.priority(*q), to);
    }
    game.push(owner(winner.opponent()), 0, []);
    strategy.push(None);
    let solution = Solution { winners: vec![owner(winner); end + 1], strategy };
    verify::verify(&game, &solution).map_err(|flaw| {
        Diagnostic::internal(format!("the strategy of the symbolic game does not verify: {flaw}"))
    })
}

/// Converts the steps of a play to evidence.
fn evidence_of(
    model: &dyn Model,
    play: &GameEvidence,
    verdict: bool,
) -> Result<Evidence, Diagnostic> {
    let mut evaluated = StepCache::new(model);
    let mut states: Vec<Vec<u32>> = vec![model.initial()];
    let mut known: AHashMap<Vec<u32>, u32> = AHashMap::from([(model.initial(), 0)]);
    let mut number = |state: &Vec<u32>| {
        *known.entry(state.clone()).or_insert_with(|| {
            states.push(state.clone());
            narrow::index(states.len()) - 1
        })
    };
    let stepping = play
        .moves
        .iter()
        .filter_map(|&(from, label, to)| Some((from, label?, &play.vertices[to].0)));
    let steps: BTreeSet<(u32, LabelId, u32)> = stepping
        .chain(play.deciding.iter().map(|(from, label, to)| (*from, *label, to)))
        .map(|(from, label, to)| (number(&play.vertices[from].0), label, number(to)))
        .collect();
    let mut shown = Vec::with_capacity(steps.len());
    let mut leaving: (Option<u32>, Vec<TakenStep>) = (None, Vec::new());
    for (from, label, to) in steps {
        if leaving.0 != Some(from) {
            leaving = (Some(from), steps_from(model, &mut evaluated, &states[from as usize])?);
        }
        let taken =
            leaving.1.iter().find(|t| t.label == label && t.state == states[to as usize]).cloned();
        let Some(taken) = taken else {
            return Err(Diagnostic::internal(
                "a step of the symbolic game is not a step of the model",
            ));
        };
        shown.push(EvidenceStep { from, label, to, taken: vec![taken] });
    }
    Ok(Evidence { verdict, states, steps: shown, before: Vec::new(), values: Vec::new() })
}
