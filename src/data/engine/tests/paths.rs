//! Evaluation along paths: all branches together are those of the values of the rigid unknowns.

use super::super::tests::Fixture;
use super::*;
use crate::engine::Program;
use crate::expr::Expr;
use mu_base::random::Random;

/// Oracle that enumerates answers; it knows which values of the unknowns, up to a bound, remain.
#[derive(Debug)]
struct Finite {
    /// The remaining values of the unknowns.
    left: Vec<Vec<i64>>,
    prefix: Vec<bool>,
    taken: Vec<(bool, bool)>,
    refused: Vec<u32>,
}

impl PathOracle for Finite {
    fn at_most(&mut self, x: Option<u32>, y: Option<u32>, c: i64) -> bool {
        let at = |values: &[i64], u: Option<u32>| u.map_or(0, |u| values[u as usize]);
        let holds = |values: &Vec<i64>| at(values, x) - at(values, y) <= c;
        let yes = self.left.iter().filter(|v| holds(v)).count();
        let answer = if yes == self.left.len() {
            return true;
        } else if yes == 0 {
            return false;
        } else {
            self.prefix.get(self.taken.len()).copied().unwrap_or(true)
        };
        self.taken.push((answer, true));
        self.left.retain(|v| holds(v) == answer);
        answer
    }
    fn range(&self, x: u32) -> (Option<i64>, Option<i64>) {
        let all = || self.left.iter().map(|v| v[x as usize]);
        (all().min(), all().max())
    }
    fn record_unevaluated(&mut self, x: u32) {
        self.refused.push(x);
    }
}

const DATA: &str = "sort S = struct s(f: Nat, g: Nat) | t;
map low: Nat -> Nat; is: Nat -> Nat; twice: (Nat -> Nat) # Nat -> Nat; mem: Nat # List(Nat) -> Bool; pos: Nat -> Bool;
var x, y: Nat; h: Nat -> Nat; l: List(Nat); q: Pos;
eqn x < 3 -> low(x) = x; x >= 3 -> low(x) = 3; is(2) = 7; is(4) = 1; x != 2 && x != 4 -> is(x) = 0; twice(h, x) = h(h(x));
    mem(x, []) = false; mem(x, y |> l) = x == y || mem(x, l); pos(Pos2Nat(q)) = true; pos(0) = false;
glob m, n: Nat;";

const NUMBERS: [&str; 14] = [
    "m",
    "n",
    "@",
    "(# + @)",
    "low(#)",
    "is(#)",
    "twice(lambda z: Nat. z + 1, #)",
    "max(#, #)",
    "min(#, #)",
    "(if(#b, #, #))",
    "f(s(#, #))",
    "succ(#)",
    "([1, 2, #] . min(2, #))",
    "(w whr w = # end)",
];
const TRUTHS: [&str; 16] = [
    "(# < #)",
    "(# <= #)",
    "(# == #)",
    "(# != #)",
    "(# in [#, #, @])",
    "(# in {#, @})",
    "mem(#, [#, #])",
    "pos(#)",
    "(s(#, #) == s(#, #))",
    "([#, #] < [#, @])",
    "({#, #} == {#, @})",
    "(count(#, {#: 2, #: 1}) > @)",
    "(exists b: Bool. b && #b)",
    "(forall k: Nat. k < 3 => # != k)",
    "(#b || #b)",
    "(# mod 3 == 1)",
];

fn term(random: &mut Random, shapes: &[&str], depth: usize) -> String {
    let few = if depth > 2 { 4.min(shapes.len()) } else { shapes.len() };
    let shape = shapes[random.below(if shapes.len() == 14 && depth > 2 { 3 } else { few })];
    let (mut out, mut chars) = (String::new(), shape.chars().peekable());
    while let Some(c) = chars.next() {
        match c {
            '#' if chars.peek() == Some(&'b') => {
                chars.next();
                out += &term(random, &TRUTHS, depth + 1);
            }
            '#' => out += &term(random, &NUMBERS, depth + 1),
            '@' => out += &random.below(5).to_string(),
            c => out.push(c),
        }
    }
    out
}

/// Returns the results of all paths with the values of the unknowns that take them.
fn paths(engine: &mut Engine, e: &Expr, vars: &[VarId], most: i64) -> Vec<(Value, Vec<Vec<i64>>)> {
    let code = engine.code(e, vars).unwrap();
    let all: Vec<Vec<i64>> = (0..=most).flat_map(|a| (0..=most).map(move |b| vec![a, b])).collect();
    let (mut out, mut prefix) = (Vec::new(), Vec::new());
    loop {
        let oracle = Rc::new(RefCell::new(Finite {
            left: all.clone(),
            prefix: std::mem::take(&mut prefix),
            taken: Vec::new(),
            refused: Vec::new(),
        }));
        engine.forget_unknowns();
        engine.set_oracle(Some(oracle.clone()));
        let env: Vec<Value> = vars.iter().map(|v| engine.rigid(basic::NAT, *v)).collect();
        let value = engine.eval(&code, &env).unwrap();
        assert!(!engine.is_broken());
        engine.set_oracle(None);
        let found = oracle.borrow();
        out.push((value, found.left.clone()));
        let mut taken: Vec<bool> = found.taken.iter().map(|t| t.0).collect();
        while taken.last() == Some(&false) {
            taken.pop();
        }
        let Some(last) = taken.last_mut() else { return out };
        *last = false;
        prefix = taken;
    }
}

/// Replay: `SEED=n cargo test … all_paths_together_are_all_values`.
#[test]
fn all_paths_together_are_all_values() {
    let only: Option<u64> = std::env::var("SEED").ok().map(|s| s.parse().unwrap());
    let (mut compared, mut several) = (0, 0);
    for seed in only.map_or(0..400, |s| s..s + 1) {
        let mut random = Random::new(seed);
        let text = term(&mut random, &TRUTHS, 0);
        let mut fixture = Fixture::new(DATA);
        let e = fixture.expr(&text, Some(basic::BOOL));
        let vars = fixture.vars.clone();
        let mut engine = Engine::new(Program::compile(&fixture.spec).unwrap());
        let found = paths(&mut engine, &e, &vars, 6);
        several += usize::from(found.len() > 1);
        let sum: usize = found.iter().map(|f| f.1.len()).sum();
        assert_eq!(sum, 49, "seed {seed}: the paths of {text} are not a partition");
        for (value, values) in found {
            for v in values {
                let by = vars.iter().zip(&v).map(|(v, n)| (*v, Expr::number(*n, basic::NAT)));
                let closed = e.substitute(&by.collect());
                let one = engine.from_expr(&closed).unwrap();
                if let Value::Bool(b) = value {
                    assert_eq!(Value::Bool(b), one, "seed {seed}: {text} at {v:?}");
                    compared += 1;
                }
            }
        }
    }
    assert!(only.is_some() || compared > 10_000 && several > 200, "{compared} {several}");
}

#[test]
fn numbers_of_values_are_sums() {
    let mut fixture = Fixture::new(DATA);
    let e = fixture.expr("[s(m + 1 + 2, 4), s(succ(n), m)]", None);
    let vars = fixture.vars.clone();
    let mut engine = Engine::new(Program::compile(&fixture.spec).unwrap());
    let (value, _) = paths(&mut engine, &e, &vars, 3).remove(0);
    let mut all = Vec::new();
    let same = engine.numbers(&value, e.sort, 7, &mut |leaf| {
        all.push((leaf.base, leaf.offset));
        Value::Int(0)
    });
    assert_eq!(all, [(Some(0), 3), (None, 4), (Some(1), 1), (Some(0), 0)]);
    assert!(same.is_ok());
}
