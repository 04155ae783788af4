//! Games encoded as transition systems: [`Lts`] with steps that are moves -> [`Game`].
//!
//! A step `some_k` or `all_k` is a move from a state of rank `k`; `yes` and `no` are moves to
//! positions where the first player has won or lost; a state with a step `each` is Odd's, any other
//! one Even's. Rank 0 is the most significant. `least` contains for each rank true if its fixed
//! points are least; ranks become the smallest priorities that preserve their order and have those
//! parities. Vertices are the states that moves reach, in breadth-first order. Cost: O(states +
//! transitions).

use std::collections::VecDeque;

use super::{Game, Player};
use mu_base::ids::{StateId, VertexId};
use mu_base::{Diagnostic, Stage};
use mu_lts::Lts;

/// Meaning of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepMeaning {
    /// A move from a state of this rank.
    Rank(usize),
    /// A move to a position that the first player has won.
    Yes,
    /// A move to a position that the first player has lost.
    No,
    /// The state is the second player's.
    Each,
}

impl StepMeaning {
    /// Parses the label of a step; `prefix`: the common prefix of all step names. `None` if it is
    /// not the label of a step.
    pub fn of(text: &str, prefix: &str, ranks: usize) -> Option<StepMeaning> {
        let text = text.strip_prefix(prefix)?;
        let rank = |t: &str| t.parse().ok().filter(|k| *k < ranks).map(StepMeaning::Rank);
        match text {
            "yes" => Some(StepMeaning::Yes),
            "no" => Some(StepMeaning::No),
            "each" => Some(StepMeaning::Each),
            _ => text.strip_prefix("some_").or_else(|| text.strip_prefix("all_")).and_then(rank),
        }
    }
}

/// Returns the priorities of ranks, given by the sign of their fixed points: the last rank has
/// priority 0 or 1; each change of sign before it adds one.
pub fn priorities(least: &[bool]) -> Vec<u32> {
    let mut priority_of = vec![0; least.len()];
    let mut priority = 0;
    for (k, least) in least.iter().enumerate().rev() {
        priority += u32::from((priority % 2 == 1) != *least);
        priority_of[k] = priority;
    }
    priority_of
}

/// Returns the error for a step that is not a move.
pub fn no_move(text: &str) -> Diagnostic {
    Diagnostic::new(Stage::Internal, format!("a step `{text}` is not a move of a game"))
}

/// Builds the game; `prefix`: the common prefix of all step names; `name`: name of the initial
/// vertex.
pub fn game(lts: &Lts, prefix: &str, least: &[bool], name: &str) -> Result<Game, Diagnostic> {
    let moves: Vec<Option<StepMeaning>> =
        lts.table.texts.iter().map(|t| StepMeaning::of(t, prefix, least.len())).collect();
    let priority_of = priorities(least);
    let mut game = Game::default();
    let mut vertex_of: Vec<Option<VertexId>> = vec![None; lts.state_count()];
    // Final positions; they are numbered when they are first reached.
    let mut over: [Option<VertexId>; 2] = [None; 2];
    enum PendingMove {
        State(StateId),
        /// A final position where this player must move and cannot.
        Over(Player),
    }
    let mut queue = VecDeque::from([PendingMove::State(lts.initial)]);
    vertex_of[lts.initial.index()] = Some(VertexId::of(0));
    let mut next = 1u32;
    while let Some(task) = queue.pop_front() {
        let state = match task {
            PendingMove::Over(stuck) => {
                game.push(stuck, 0, []);
                continue;
            }
            PendingMove::State(state) => state,
        };
        let (mut owner, mut rank, mut targets) = (Player::Even, None, Vec::new());
        for (label, target) in lts.successors(state) {
            let (known, task) = match moves[label.index()] {
                Some(StepMeaning::Each) => {
                    owner = Player::Odd;
                    continue;
                }
                Some(StepMeaning::Rank(k)) => {
                    rank = Some(k);
                    (&mut vertex_of[target.index()], PendingMove::State(target))
                }
                Some(StepMeaning::Yes) => (&mut over[0], PendingMove::Over(Player::Odd)),
                Some(StepMeaning::No) => (&mut over[1], PendingMove::Over(Player::Even)),
                None => return Err(no_move(&lts.table.texts[label.index()])),
            };
            let vertex = *known.get_or_insert_with(|| {
                queue.push_back(task);
                next += 1;
                VertexId::of(next - 1)
            });
            targets.push(vertex);
        }
        targets.sort_unstable();
        targets.dedup();
        game.push(owner, rank.map_or(0, |k| priority_of[k]), targets);
    }
    game.names = vec![String::new(); game.vertex_count()];
    name.clone_into(&mut game.names[0]);
    Ok(game)
}
