//! Random boolean equation systems from the grammar, against fixed points computed by definition:
//! nested iteration, in which the later equations are solved again for each value of an equation.
//!
//! `MU_CHECK_CASES` systems from seed `MU_CHECK_SEED` on. A failing system is printed in full.

use mu_base::limits::Budget;
use mu_base::random::Random;
use mu_game::Player;
use mu_game::bes::read;
use std::collections::BTreeSet;

/// The productions of the grammar.
const PRODUCTIONS: [&str; 17] = [
    "bes", "pbes", "no word", "mu", "nu", "init", "variable", "true", "false", "!", "&&", "||",
    "=>", "(", "comment", "space", "no space",
];

enum Formula {
    Constant(bool),
    Variable(usize),
    Not(Box<Formula>),
    And(Box<Formula>, Box<Formula>),
    Or(Box<Formula>, Box<Formula>),
    Implies(Box<Formula>, Box<Formula>),
}

impl Formula {
    fn holds(&self, values: &[bool]) -> bool {
        match self {
            Formula::Constant(value) => *value,
            Formula::Variable(v) => values[*v],
            Formula::Not(a) => !a.holds(values),
            Formula::And(a, b) => a.holds(values) && b.holds(values),
            Formula::Or(a, b) => a.holds(values) || b.holds(values),
            Formula::Implies(a, b) => !a.holds(values) || b.holds(values),
        }
    }
}

struct Generator<'r> {
    random: &'r mut Random,
    names: Vec<String>,
    used: BTreeSet<&'static str>,
}

impl Generator<'_> {
    fn space(&mut self) -> &'static str {
        let (word, text) = *self.random.choose(&[
            ("space", " "),
            ("space", "\n\t"),
            ("comment", " % mu X = \n"),
            ("no space", ""),
        ]);
        self.used.insert(word);
        text
    }
    /// Generates a formula and its text. `positive`: true below an even number of negations;
    /// variables occur only there. `binding`: the least precedence of an operator that needs no
    /// brackets: 0 for `=>`, 1 for `||`, 2 for `&&`, 3 for none of them.
    fn formula(&mut self, depth: usize, positive: bool, binding: usize) -> (Formula, String) {
        let production = if depth == 0 { self.random.below(2) } else { 2 + self.random.below(5) };
        let (word, formula, text) = match production {
            0 if positive => {
                let v = self.random.below(self.names.len());
                ("variable", Formula::Variable(v), self.names[v].clone())
            }
            0 | 1 => {
                let value = self.random.chance(1, 2);
                (if value { "true" } else { "false" }, Formula::Constant(value), value.to_string())
            }
            2 => {
                let (a, text) = self.formula(depth - 1, !positive, 3);
                ("!", Formula::Not(Box::new(a)), format!("!{}{text}", self.space()))
            }
            3 => {
                let (a, text) = self.formula(depth - 1, positive, 0);
                ("(", a, format!("({}{text})", self.space()))
            }
            production => {
                // `=>` groups to the right, so its right operand may be one without brackets. The
                // others are associative, but the tree of the text groups in one production only,
                // so an operand has brackets unless its operator binds more tightly.
                let (word, own) = [("&&", 2), ("||", 1), ("=>", 0)][production - 4];
                let (a, left) = self.formula(depth - 1, positive == (word != "=>"), own + 1);
                let right = if word == "=>" { own } else { own + 1 };
                let (b, right) = self.formula(depth - 1, positive, right);
                let (a, b) = (Box::new(a), Box::new(b));
                let formula = match word {
                    "&&" => Formula::And(a, b),
                    "||" => Formula::Or(a, b),
                    _ => Formula::Implies(a, b),
                };
                let text = format!("{left} {word}{}{right}", self.space());
                (word, formula, if own < binding { format!("({text})") } else { text })
            }
        };
        self.used.insert(word);
        (formula, text)
    }
}

struct System {
    equations: Vec<(bool, Formula)>,
    initial: usize,
}

impl System {
    /// Computes the values of all variables, given those before `from`.
    fn solve(&self, from: usize, values: &mut Vec<bool>) {
        let Some((least, formula)) = self.equations.get(from) else { return };
        values[from] = !least;
        loop {
            self.solve(from + 1, values);
            let new = formula.holds(values);
            if new == values[from] {
                return;
            }
            values[from] = new;
        }
    }
}

fn system(random: &mut Random) -> (System, String, BTreeSet<&'static str>) {
    let count = 1 + random.below(5);
    let all = ["X", "Y'", "_z0", "muX", "init2", "true1"];
    let names: Vec<String> = all[..count].iter().map(|n| n.to_string()).collect();
    let mut generator = Generator { random, names, used: BTreeSet::from(["init"]) };
    let (word, mut text) =
        [("bes", "bes ".to_string()), ("pbes", "pbes ".into()), ("no word", String::new())]
            [generator.random.below(3)]
        .clone();
    generator.used.insert(word);
    let mut equations = Vec::new();
    for i in 0..count {
        let least = generator.random.chance(1, 2);
        let word = if least { "mu" } else { "nu" };
        generator.used.insert(word);
        let depth = generator.random.below(4);
        let (formula, body) = generator.formula(depth, true, 0);
        let (before, after) = (generator.space(), generator.space());
        text += &format!("{word} {} ={before}{body};{after}", generator.names[i]);
        equations.push((least, formula));
    }
    let initial = generator.random.below(count);
    text += &format!("init {};", generator.names[initial]);
    (System { equations, initial }, text, generator.used)
}

#[test]
fn random_systems_have_the_solutions_of_their_definition() {
    let number = |name: &str| std::env::var(name).ok().and_then(|v| v.parse::<u64>().ok());
    let (first, cases) =
        (number("MU_CHECK_SEED").unwrap_or(0), number("MU_CHECK_CASES").unwrap_or(2000));
    println!("seeds {first} to {}", first + cases - 1);
    let (mut used, mut truths, mut compared) = (BTreeSet::new(), 0, 0);
    for seed in first..first + cases {
        let (system, text, productions) = system(&mut Random::new(seed));
        used.extend(productions);
        let mut values = vec![false; system.equations.len()];
        system.solve(0, &mut values);
        let game = read(&text).unwrap_or_else(|d| panic!("seed {seed}: {d}\n{text}"));
        for solver in mu_game::solve::solvers() {
            let solution = solver.solve(&game, &Budget::default()).unwrap();
            mu_game::verify::verify(&game, &solution)
                .unwrap_or_else(|flaw| panic!("seed {seed}, {}: {flaw}\n{text}", solver.name()));
            // The first vertices are the variables.
            for (i, value) in values.iter().enumerate() {
                assert_eq!(
                    solution.winners[i] == Player::Even,
                    *value,
                    "seed {seed}, {}, variable {i}\n{text}",
                    solver.name()
                );
                compared += 1;
            }
            assert_eq!(
                solution.winner(game.initial) == Player::Even,
                values[system.initial],
                "seed {seed}, {}\n{text}",
                solver.name()
            );
        }
        truths += u64::from(values[system.initial]);
    }
    println!("{compared} values compared of {cases} systems, {truths} of them true initially");
    let missing: Vec<&&str> = PRODUCTIONS.iter().filter(|p| !used.contains(*p)).collect();
    if cases >= 500 {
        assert!(missing.is_empty(), "never made: {missing:?}");
        let is_balanced = truths * 5 > cases && truths * 5 < cases * 4;
        assert!(is_balanced, "{truths} of {cases} systems are true");
    }
}
