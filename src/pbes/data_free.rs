//! Data-free check of an equation system: a finite game that may decide a system with infinitely
//! many instances.
//!
//! In: right-hand sides without data (`formula::equations::skeleton`, which gives the argument).
//! Out: the winner of a game in which every condition is decided against the winner, if one player
//! wins the start nevertheless. So `nu X(n: Nat) = val(n > 3) && Y(n) || X(n + 1)` is true
//! regardless of `n`. Expansion instance by instance does not terminate there, since no finite set
//! of instances decides. Cost: two games of the size of the text.

use super::on_the_fly::DecidedGame;
use mu_base::Budget;
use mu_base::Stop;
use mu_base::ids::VertexId;
use mu_base::narrow;
use mu_formula::equations::{Skeleton, System};
use mu_game::moves::priorities;
use mu_game::solve::Solver;
use mu_game::{Game, Player};

/// Returns the answer, if it does not depend on data.
///
/// # Errors
/// A limit.
pub fn decide(
    system: &System,
    solver: &dyn Solver,
    budget: &Budget,
) -> Result<Option<DecidedGame>, Stop> {
    for value in [true, false] {
        let mut game = build_game(system, value);
        let winner = if value { Player::Even } else { Player::Odd };
        if solver.solve(&game, budget)?.winner(game.initial) == winner {
            game.names = vec![String::new(); game.vertex_count()];
            system.initial.clone_into(&mut game.names[0]);
            return Ok(Some(DecidedGame { game, value, left_out: 0 }));
        }
    }
    Ok(None)
}

/// A vertex before it is numbered.
struct Vertex {
    owner: Player,
    priority: u32,
    successors: Vec<VertexId>,
}

/// Builds the game with all conditions decided against the player of `value`. Vertex 0 is the
/// start; a player who cannot move loses.
fn build_game(system: &System, value: bool) -> Game {
    let priority_of = priorities(&system.least);
    // Parts of right-hand sides do not affect infinite plays: they have the innermost rank.
    let inner = priority_of.last().copied().unwrap_or(0);
    let vertex = |owner, priority, successors| Vertex { owner, priority, successors };
    let start = VertexId::of(1 + narrow::index(system.start));
    let mut vertices = vec![vertex(Player::Even, inner, vec![start])];
    vertices.extend(
        system.ranks.iter().map(|rank| vertex(Player::Even, priority_of[*rank], Vec::new())),
    );
    let mut todo: Vec<(VertexId, &Skeleton)> = system
        .bare
        .iter()
        .enumerate()
        .map(|(i, bare)| (VertexId::of(1 + narrow::index(i)), bare))
        .collect();
    while let Some((from, bare)) = todo.pop() {
        let next = VertexId::of(narrow::index(vertices.len()));
        let to = match bare {
            Skeleton::Call(number) => VertexId::of(1 + narrow::index(*number)),
            Skeleton::Constant(_) | Skeleton::Condition => {
                let holds = if let Skeleton::Constant(holds) = bare { *holds } else { !value };
                vertices.push(vertex(
                    if holds { Player::Odd } else { Player::Even },
                    inner,
                    Vec::new(),
                ));
                next
            }
            Skeleton::Junction(all, parts) => {
                vertices.push(vertex(
                    if *all { Player::Odd } else { Player::Even },
                    inner,
                    Vec::new(),
                ));
                todo.extend(parts.iter().map(|part| (next, part)));
                next
            }
        };
        vertices[from.index()].successors.push(to);
    }
    let mut game = Game::default();
    for v in vertices {
        game.push(v.owner, v.priority, v.successors);
    }
    game
}
