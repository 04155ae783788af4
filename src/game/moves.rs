//! The game that a transition system plays: [`Lts`] whose steps are moves -> [`Game`].
//!
//! A step `some_k` or `all_k` is a move from a state of rank `k`; `yes` and `no` are moves to where the first player has won or lost; a state
//! with a step `each` is Odd's, any other one Even's. Rank 0 is the most significant; `least` says of each rank whether its fixed points are
//! least, so that ranks become the smallest priorities that keep their order and have those parities. Vertices are the states that moves
//! reach, in the order of a breadth-first search. Cost: O(states + transitions).

use std::collections::VecDeque;

use super::{Game, Player};
use mu_base::ids::{StateId, VertexId};
use mu_base::{Diagnostic, Stage};
use mu_lts::Lts;

#[derive(Clone, Copy)]
enum Move {
    Rank(usize),
    Yes,
    No,
    Each,
}

/// The game; `prefix`: what the names of all steps start with; `name`: what the initial vertex means.
pub fn game(lts: &Lts, prefix: &str, least: &[bool], name: &str) -> Result<Game, Diagnostic> {
    let of = |text: &String| -> Option<Move> {
        let text = text.strip_prefix(prefix)?;
        let rank = |t: &str| t.parse().ok().filter(|k| *k < least.len()).map(Move::Rank);
        match text {
            "yes" => Some(Move::Yes),
            "no" => Some(Move::No),
            "each" => Some(Move::Each),
            _ => text.strip_prefix("some_").or_else(|| text.strip_prefix("all_")).and_then(rank),
        }
    };
    let moves: Vec<Option<Move>> = lts.table.texts.iter().map(of).collect();
    // The last rank has priority 0 or 1; each change of sign before it adds one.
    let mut priority_of = vec![0; least.len()];
    let mut priority = 0;
    for (k, least) in least.iter().enumerate().rev() {
        priority += u32::from((priority % 2 == 1) != *least);
        priority_of[k] = priority;
    }
    let mut game = Game::default();
    let mut vertex_of: Vec<Option<VertexId>> = vec![None; lts.state_count()];
    // Where the game is over; they get their numbers when they are first reached.
    let mut over: [Option<VertexId>; 2] = [None; 2];
    enum Task {
        State(StateId),
        /// The player who is to move and cannot.
        Over(Player),
    }
    let mut queue = VecDeque::from([Task::State(lts.initial)]);
    vertex_of[lts.initial.index()] = Some(VertexId(0));
    let mut next = 1u32;
    while let Some(task) = queue.pop_front() {
        let state = match task {
            Task::Over(stuck) => {
                game.push(stuck, 0, []);
                continue;
            }
            Task::State(state) => state,
        };
        let (mut owner, mut rank, mut targets) = (Player::Even, None, Vec::new());
        for (label, target) in lts.successors(state) {
            let (known, task) = match moves[label.index()] {
                Some(Move::Each) => {
                    owner = Player::Odd;
                    continue;
                }
                Some(Move::Rank(k)) => {
                    rank = Some(k);
                    (&mut vertex_of[target.index()], Task::State(target))
                }
                Some(Move::Yes) => (&mut over[0], Task::Over(Player::Odd)),
                Some(Move::No) => (&mut over[1], Task::Over(Player::Even)),
                None => {
                    let text = &lts.table.texts[label.index()];
                    return Err(Diagnostic::new(Stage::Internal, format!("a step `{text}` is not a move of a game")));
                }
            };
            let vertex = *known.get_or_insert_with(|| {
                queue.push_back(task);
                next += 1;
                VertexId(next - 1)
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
