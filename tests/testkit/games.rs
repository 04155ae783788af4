//! Generated games for tests and measurements: random ones, and families on which known algorithms
//! are slow.
//!
//! Random games are made as in PGSolver's `randomgame` (owners, priorities and successors uniform).
//! The families are our own constructions after the ideas of the papers cited at each.

use mu_base::ids::VertexId;
use mu_base::random::Random;
use mu_game::{Game, Player};

/// Generates a game with priorities below `priorities` and `least..=most` different successors a
/// vertex (0: its owner loses there).
pub fn random_game(
    random: &mut Random,
    vertices: usize,
    priorities: usize,
    least: usize,
    most: usize,
) -> Game {
    let mut game = Game::default();
    let mut moves = Vec::new();
    for _ in 0..vertices {
        moves.clear();
        for _ in 0..least + random.below(most - least + 1) {
            let t = VertexId::new(random.below(vertices));
            if !moves.contains(&t) {
                moves.push(t);
            }
        }
        let owner = if random.chance(1, 2) { Player::Even } else { Player::Odd };
        game.push(owner, random.below(priorities) as u32, moves.iter().copied());
    }
    game
}

/// Generates a ladder: level `i` has a vertex of each player with priorities `2i` and `2i + 1`,
/// each of which moves to both vertices of the next level; the last level leads back to the first.
/// Easy for all algorithms, with two priorities a level.
pub fn ladder(levels: usize) -> Game {
    let mut game = Game::default();
    for i in 0..levels as u32 {
        let next = (i + 1) % levels as u32 * 2;
        game.push(Player::Even, 2 * i, [VertexId::of(next), VertexId::of(next + 1)]);
        game.push(Player::Odd, 2 * i + 1, [VertexId::of(next), VertexId::of(next + 1)]);
    }
    game
}

/// Generates a simplified version of the recursive ladder of Friedmann ("Recursive algorithm for
/// parity games requires exponential time", 2011): whatever Zielonka's algorithm removes at the top
/// of a level must be removed again below it.
pub fn recursive_ladder(levels: usize) -> Game {
    // Level i: a (Odd, low), b (Even), c (Odd), d (Even, high), e (Odd/Even by level).
    let mut game = Game::default();
    let v = |level: usize, k: usize| VertexId::new(level * 5 + k);
    for i in 0..levels {
        let (p, mine, other) = if i % 2 == 0 {
            (2 * i as u32, Player::Even, Player::Odd)
        } else {
            (2 * i as u32 + 1, Player::Odd, Player::Even)
        };
        let up = (i + 1).min(levels - 1);
        let down = i.saturating_sub(1);
        game.push(mine, p + 4, [v(i, 1)]);
        game.push(other, i as u32 % 2, [v(i, 2), v(down, 0)]);
        game.push(mine, i as u32 % 2, [v(i, 3), v(i, 0)]);
        game.push(other, (i as u32 + 1) % 2, [v(i, 1), v(up, 2)]);
        game.push(other, p + 5, [v(up, 4), v(i, 3)]);
    }
    game
}

/// Generates a game after the model checker ladder of Friedmann and Lange (PGSolver's
/// `recursiveladder`-like tower of mutual attractions): vertex `i` moves down by one or up by two,
/// owners alternate by pairs and priorities rise.
pub fn tower(vertices: usize) -> Game {
    let mut game = Game::default();
    let n = vertices as u32;
    for i in 0..n {
        let owner = if i / 2 % 2 == 0 { Player::Even } else { Player::Odd };
        game.push(
            owner,
            i,
            [
                VertexId::of(i.saturating_sub(1)),
                VertexId::of((i + 2).min(n - 1)),
                VertexId::of((i * 7 + 3) % n),
            ],
        );
    }
    game
}

/// Generates the game of Jurdziński ("Small progress measures for solving parity games", 2000):
/// `depth` rows of priorities, `width` columns; the lifting algorithm needs about `width^depth`
/// steps.
pub fn jurdzinski(depth: usize, width: usize) -> Game {
    // Rows 0..depth of alternating Even/Odd pairs, and a top row that both players pass through.
    let mut game = Game::default();
    let row_len = 2 * width + 1;
    let v = |row: usize, column: usize| VertexId::new(row * row_len + column);
    let top = depth;
    for row in 0..depth {
        // Odd columns belong to Odd with the row's odd priority, even ones to Even with the even
        // priority above.
        for column in 0..row_len {
            let mut moves = vec![v(top, column)];
            if column > 0 {
                moves.push(v(row, column - 1));
            }
            if column + 1 < row_len {
                moves.push(v(row, column + 1));
            }
            let (owner, priority) = if column % 2 == 0 {
                (Player::Even, 2 * row as u32 + 2)
            } else {
                (Player::Odd, 2 * row as u32 + 1)
            };
            game.push(owner, priority, moves);
        }
    }
    for column in 0..row_len {
        let owner = if column % 2 == 0 { Player::Odd } else { Player::Even };
        game.push(owner, 0, (0..depth).map(|row| v(row, column)));
    }
    game
}

/// Generates a long cycle of vertices of one priority with an exit for each player: deep for
/// recursive programs.
pub fn deep(vertices: usize) -> Game {
    let mut game = Game::default();
    let n = vertices as u32;
    for i in 0..n {
        let owner = if i % 2 == 0 { Player::Even } else { Player::Odd };
        game.push(owner, i, [VertexId::of((i + 1) % n)]);
    }
    game
}
