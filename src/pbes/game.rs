//! The complete parity game of model and formula, for files and other solvers, without early
//! decisions.
//!
//! Input: model, its labels' multi-actions, typed formula. Output: a [`Game`] in which Even wins
//! from the initial vertex iff the formula holds. A vertex is a pair (system state, formula state),
//! named `state,formula state`; universal ones belong to Odd. Vertices 0 and 1 are `true` and
//! `false`, vertex 2 is the whole formula at the initial state. Every vertex has a move.
//!
//! Cost: memory of all reachable pairs and their moves; an infinite model needs a limit.

use super::automaton::{Automaton, FormulaState, ObligationSet, Start};
use super::transitions::LazyTransitions;
use ahash::AHashMap;
use mu_base::ids::{LabelId, StateId, VertexId};
use mu_base::{Budget, Diagnostic};
use mu_formula::typed::TypedFormula;
use mu_game::{Game, Player};
use mu_model::Model;
use mu_process::labels::ActionLabels;

const TRUE: VertexId = VertexId::of(0);
const FALSE: VertexId = VertexId::of(1);

/// Instantiates the game, with all steps of the model; the inner `Err` is the limit that was
/// reached.
pub fn game(
    model: &dyn Model,
    labels: &dyn ActionLabels,
    formula: &TypedFormula,
    options: &mu_explore::Options,
    budget: &Budget,
) -> Result<Game, Diagnostic> {
    let mut automaton = Automaton::new(formula)?.with_budget(budget);
    // Priority of confluent steps preserves only some formulas.
    let plain = options.without_confluence();
    let mut source = LazyTransitions::new(model, &plain)?;
    let mut game = Game { initial: VertexId::of(2), ..Game::default() };
    game.push(Player::Even, 0, [TRUE]);
    game.push(Player::Odd, 1, [FALSE]);
    game.names.extend(["true".into(), "false".into(), "initial".into()]);
    // Configurations of the vertices from 3 on.
    let mut configurations: Vec<(StateId, FormulaState)> = Vec::new();
    let mut known: AHashMap<(StateId, FormulaState), VertexId> = AHashMap::new();
    let mut vertex = |configurations: &mut Vec<_>, s: StateId, q: FormulaState| {
        *known.entry((s, q)).or_insert_with(|| {
            configurations.push((s, q));
            VertexId::new(configurations.len() + 2)
        })
    };
    match automaton.start()? {
        Start::Constant(value) => {
            game.push(Player::Even, 0, [if value { TRUE } else { FALSE }]);
        }
        Start::States(all, roots) => {
            let roots: Vec<VertexId> =
                roots.iter().map(|q| vertex(&mut configurations, source.initial(), *q)).collect();
            push(&mut game, all, 0, roots);
        }
    }
    let mut next = 0;
    let mut transitions: Vec<(LabelId, StateId)> = Vec::new();
    while next < configurations.len() {
        if next.is_multiple_of(1024) {
            budget.check(source.state_count() as u64).map_err(Diagnostic::stopped)?;
            if next.is_multiple_of(1 << 16) {
                budget.check_memory().map_err(Diagnostic::stopped)?;
            }
        }
        let (s, q) = configurations[next];
        next += 1;
        let all = automaton.universal(q);
        let mut moves = Vec::new();
        let mut push_moves =
            |automaton: &Automaton, set: ObligationSet, at: StateId, moves: &mut Vec<VertexId>| {
                if set == ObligationSet::Decided {
                    moves.push(if all { FALSE } else { TRUE });
                } else {
                    moves.extend(
                        automaton.set(set).iter().map(|q| vertex(&mut configurations, at, *q)),
                    );
                }
            };
        let here = automaton.obligations_here(q)?;
        push_moves(&automaton, here, s, &mut moves);
        source.successors(s, &mut transitions)?;
        let label_dependent = automaton.depends_on_labels_here(q);
        for &(label, target) in &transitions {
            if label_dependent {
                let answer = automaton.obligations_here_if(q, label, labels)?;
                push_moves(&automaton, answer, s, &mut moves);
            }
            let answer = automaton.step(q, label, labels)?;
            push_moves(&automaton, answer, target, &mut moves);
        }
        push(&mut game, all, automaton.rank(q), moves);
        game.names.push(format!("{},{}", s.number(), q.number()));
    }
    Ok(game)
}

/// Adds a vertex with its moves, each once; without moves its value is the neutral one of its
/// connective.
fn push(game: &mut Game, all: bool, priority: u32, mut moves: Vec<VertexId>) {
    moves.sort_unstable();
    moves.dedup();
    if moves.is_empty() {
        moves.push(if all { TRUE } else { FALSE });
    }
    game.push(if all { Player::Odd } else { Player::Even }, priority, moves);
}
