//! Solvers against each other, against brute force, and with the verifier.

use mu_base::ids::VertexId;
use mu_base::limits::{Budget, Limits, Stop};
use mu_base::random::Random;
use mu_game::solve::{Solver, solvers};
use mu_game::verify::{Flaw, verify};
use mu_game::{Game, Player, Solution};
use mu_testkit::games::{deep, jurdzinski, ladder, random_game, recursive_ladder, tower};

/// Computes the winners by trying every positional strategy of Even against every one of Odd.
fn brute_force(game: &Game) -> Vec<Player> {
    let n = game.vertex_count();
    let choices = |player: Player| -> Vec<Vec<Option<VertexId>>> {
        let mut all = vec![vec![None; n]];
        for v in game
            .vertices()
            .filter(|v| game.owners[v.index()] == player && !game.successors(*v).is_empty())
        {
            all = all
                .iter()
                .flat_map(|s| {
                    game.successors(v).iter().map(move |&t| {
                        let mut s = s.clone();
                        s[v.index()] = Some(t);
                        s
                    })
                })
                .collect();
        }
        all
    };
    let (even, odd) = (choices(Player::Even), choices(Player::Odd));
    // The play of two strategies from a vertex.
    let even_wins = |e: &[Option<VertexId>], o: &[Option<VertexId>], from: VertexId| {
        let mut path = vec![from];
        loop {
            let v = path[path.len() - 1];
            let owner = game.owners[v.index()];
            let Some(t) = (if owner == Player::Even { e } else { o })[v.index()] else {
                return owner == Player::Odd;
            };
            if let Some(i) = path.iter().position(|&w| w == t) {
                return path[i..].iter().map(|w| game.priorities[w.index()]).max().unwrap_or(0) % 2
                    == 0;
            }
            path.push(t);
        }
    };
    game.vertices()
        .map(|v| {
            if even.iter().any(|e| odd.iter().all(|o| even_wins(e, o, v))) {
                Player::Even
            } else {
                Player::Odd
            }
        })
        .collect()
}

fn solve(solver: &dyn Solver, game: &Game, what: &str) -> Solution {
    let solution = solver.solve(game, &Budget::default()).unwrap();
    if let Err(flaw) = verify(game, &solution) {
        panic!("{what}, {}: {flaw} in {game:?}: {solution:?}", solver.name());
    }
    solution
}

fn agree(game: &Game, what: &str) -> Solution {
    let first = solve(solvers()[0], game, what);
    for solver in &solvers()[1..] {
        assert_eq!(
            solve(*solver, game, what).winners,
            first.winners,
            "{what}, {}: {game:?}",
            solver.name()
        );
    }
    first
}

fn random(seed: u64) -> Game {
    let mut random = Random::new(seed);
    let n = 1 + random.below(*random.clone().choose(&[6, 20, 60]));
    let priorities = 1 + random.below(*random.clone().choose(&[3, 8, 2 * n]));
    let least = random.below(2);
    let most = least + random.below(4);
    random_game(&mut random, n, priorities, least, most.max(1))
}

#[test]
fn tiny_games_by_brute_force() {
    for seed in 0..3000 {
        let mut r = Random::new(seed);
        let n = 1 + r.below(6);
        let game = random_game(&mut r, n, 6, 0, 2);
        let what = format!("seed {seed}");
        assert_eq!(agree(&game, &what).winners, brute_force(&game), "{what}: {game:?}");
    }
}

#[test]
fn random_games_agree_and_verify() {
    for seed in 0..10_000 {
        agree(&random(seed), &format!("seed {seed}"));
    }
}

/// Long version, in parts if necessary:
/// ```text
/// MU_CHECK_SEED=0 MU_CHECK_CASES=250000 cargo test --release -p mu-check-solve \
///   million -- --ignored --nocapture
/// ```
#[test]
#[ignore = "minutes"]
fn a_million_random_games_agree_and_verify() {
    use rayon::prelude::*;
    let number = |name: &str, default: u64| {
        std::env::var(name).ok().map_or(default, |v| v.parse().expect("a number"))
    };
    let (first, cases) = (number("MU_CHECK_SEED", 0), number("MU_CHECK_CASES", 1_000_000));
    let even = (first..first + cases)
        .into_par_iter()
        .map(|seed| {
            let s = agree(&random(seed), &format!("seed {seed}"));
            (s.winners.iter().filter(|&&w| w == Player::Even).count(), s.winners.len())
        })
        .reduce(|| (0, 0), |x, y| (x.0 + y.0, x.1 + y.1));
    println!(
        "{cases} games from seed {first} on, {} solvers: Even wins {} of {} vertices",
        solvers().len(),
        even.0,
        even.1
    );
}

#[test]
fn families() {
    for k in 1..=12 {
        agree(&ladder(k * 10), &format!("ladder {k}"));
        agree(&recursive_ladder(k), &format!("recursive ladder {k}"));
        agree(&tower(k * 4), &format!("tower {k}"));
        agree(&jurdzinski(k, 4), &format!("jurdzinski {k}"));
    }
}

#[test]
fn deep_games_need_no_stack() {
    for solver in solvers() {
        let winners = solve(*solver, &deep(300_000), "deep").winners;
        assert!(winners.iter().all(|&w| w == Player::Odd), "the highest priority, n - 1, is odd");
    }
}

/// With few steps the solvers stop without an answer or are correct; with more they are correct.
#[test]
fn limits_on_steps_are_respected() {
    let mut given_up = 0;
    for seed in 0..200 {
        let mut r = Random::new(seed);
        let game = random_game(&mut r, 3000, 3000, 2, 2);
        for solver in [
            mu_game::solve::zielonka::solve_within,
            mu_game::solve::priority_promotion::solve_within,
        ] {
            match solver(&game, &Budget::default(), 20_000).unwrap() {
                None => given_up += 1,
                Some(s) => verify(&game, &s).unwrap(),
            }
        }
    }
    assert!((50..350).contains(&given_up), "{given_up}");
}

#[test]
fn a_limit_is_no_answer() {
    let budget =
        Budget::new(Limits { timeout: Some(std::time::Duration::ZERO), ..Limits::default() });
    let game = ladder(5000);
    for solver in solvers() {
        assert_eq!(solver.solve(&game, &budget), Err(Stop::Time), "{}", solver.name());
    }
}

/// The verifier rejects every solution with one wrong winner or move.
#[test]
fn wrong_solutions_are_refused() {
    let mut refused = [0; 5];
    for seed in 0..500 {
        let game = random(seed);
        let good = agree(&game, "good");
        let mut random = Random::new(seed);
        let v = random.below(game.vertex_count());
        let mut bad = good.clone();
        bad.winners[v] = bad.winners[v].opponent();
        assert!(verify(&game, &bad).is_err(), "seed {seed}: a wrong winner at {v}");
        // All winners of one player: no strategy can be correct.
        let other = good.winners[v].opponent();
        let mut bad = good.clone();
        for w in game.vertices() {
            bad.winners[w.index()] = other;
            bad.strategy[w.index()] = if game.owners[w.index()] == other {
                game.successors(w).first().copied()
            } else {
                None
            };
        }
        let flaw = verify(&game, &bad).expect_err("all winners turned to the loser");
        refused[match flaw {
            Flaw::Size => 0,
            Flaw::NoMove(_) => 1,
            Flaw::NotASuccessor(..) => 2,
            Flaw::Leaves(..) => 3,
            Flaw::LosingCycle(_) => 4,
        }] += 1;
        if let Some(u) = (0..game.vertex_count()).find(|&u| good.strategy[u].is_some()) {
            let mut bad = good.clone();
            bad.strategy[u] = None;
            assert_eq!(verify(&game, &bad), Err(Flaw::NoMove(VertexId::new(u))));
            bad.strategy[u] = Some(VertexId::new(game.vertex_count()));
            assert!(matches!(verify(&game, &bad), Err(Flaw::NotASuccessor(..))));
        }
    }
    assert!(refused[1] > 20 && refused[4] > 20, "not every kind of flaw occurred: {refused:?}");
}

/// Measurement by hand: `cargo test --release -p mu-check-solve speed -- --ignored --nocapture`.
#[test]
#[ignore = "measures"]
fn speed() {
    let mut r = Random::new(5);
    let games = [
        ("random, 10^6 vertices, 4 priorities", random_game(&mut r, 1_000_000, 4, 1, 3)),
        ("random, 10^6 vertices, 1000 priorities", random_game(&mut r, 1_000_000, 1000, 1, 3)),
        (
            "random, 10^5 vertices, 10^5 priorities, two moves",
            random_game(&mut r, 100_000, 100_000, 2, 2),
        ),
        ("ladder 2000", ladder(2000)),
        ("recursive ladder 10", recursive_ladder(10)),
        ("recursive ladder 1000", recursive_ladder(1000)),
        ("tower 2000", tower(2000)),
        ("jurdzinski 50 x 50", jurdzinski(50, 50)),
        ("jurdzinski 300 x 300", jurdzinski(300, 300)),
    ];
    for (name, game) in &games {
        println!("{name}: {} vertices, {} moves", game.vertex_count(), game.edge_count());
        for solver in solvers() {
            let budget = Budget::new(Limits {
                timeout: Some(std::time::Duration::from_secs(60)),
                ..Limits::default()
            });
            let start = std::time::Instant::now();
            match solver.solve(game, &budget) {
                Ok(s) => {
                    let time = start.elapsed().as_secs_f64();
                    verify(game, &s).unwrap();
                    println!(
                        "  {}: {time:.2} s; verified in {:.2} s",
                        solver.name(),
                        start.elapsed().as_secs_f64() - time
                    );
                }
                Err(stop) => println!("  {}: {}", solver.name(), stop.word()),
            }
        }
    }
}
