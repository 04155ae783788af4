//! Reader of boolean equation systems in mCRL2's text format: text -> [`Game`].
//!
//! ```text
//! bes nu X = Y && (X || Z);
//!     mu Y = X || Y;
//!     mu Z = !false => Y;
//! init X;
//! ```
//! Operators from loosest: `=>` (right-associative), `||`, `&&`, `!`; comments start with `%`.
//! Negations are pushed inwards; a negated variable is rejected.
//!
//! There is a vertex for each variable and one for each operator below the top of a right-hand
//! side. Even wins exactly from the variables that are true. Priorities decrease by one with each
//! change of the fixed point, so the first equations have the highest; vertices of operators have
//! priority 0 (every cycle passes a variable). Cost: O(bytes); parsed without recursion.

use ahash::AHashMap;

use super::scanner::Scanner;
use super::{Game, Player};
use mu_base::Diagnostic;
use mu_base::ids::VertexId;
use mu_base::narrow;

/// A right-hand side, in an arena.
enum BesNode {
    Constant(bool),
    Variable(u32, usize),
    And(Vec<u32>),
    Or(Vec<u32>),
    Not(u32),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum BesOperator {
    Open,
    Implies,
    Or,
    And,
    Not,
}

struct BesEquation<'a> {
    name: &'a str,
    place: usize,
    fixed_point: Player,
    root: u32,
}

/// Reads the game of a system. Vertex `i` is the variable of equation `i`; only these have names.
pub fn read(text: &str) -> Result<Game, Diagnostic> {
    let mut scan = Scanner::new(text, Some('%'));
    let _ = scan.keyword("bes") || scan.keyword("pbes");
    let mut arena = Vec::new();
    let mut numbers: AHashMap<&str, u32> = AHashMap::new();
    let mut used: Vec<(&str, usize)> = Vec::new();
    let mut equations: Vec<BesEquation> = Vec::new();
    loop {
        let fixed_point = if scan.keyword("mu") {
            Player::Odd
        } else if scan.keyword("nu") {
            Player::Even
        } else {
            break;
        };
        let place = scan.place();
        let name = scan.word().ok_or_else(|| scan.refuse("the variable of an equation"))?;
        scan.expect("=")?;
        let root = expression(&mut scan, &mut arena, &mut numbers, &mut used)?;
        scan.expect(";")?;
        equations.push(BesEquation { name, place, fixed_point, root });
    }
    if equations.is_empty() {
        return Err(scan.refuse("an equation 'mu X = ...;' or 'nu X = ...;'"));
    }
    if !scan.keyword("init") {
        return Err(scan.refuse("an equation or 'init'"));
    }
    let initial_place = scan.place();
    let initial = scan.word().ok_or_else(|| scan.refuse("the initial variable"))?;
    scan.expect(";")?;
    if !scan.at_end() {
        return Err(scan.refuse("the end of the text"));
    }
    // Maps names, in the order of their appearance, to equations.
    let mut of_name = AHashMap::new();
    for (i, e) in equations.iter().enumerate() {
        if of_name.insert(e.name, narrow::index(i)).is_some() {
            return Err(scan.error(e.place, format!("the variable '{}' has two equations", e.name)));
        }
    }
    let mut vertex_of = Vec::with_capacity(used.len());
    for &(name, place) in &used {
        vertex_of.push(
            *of_name.get(name).ok_or_else(|| {
                scan.error(place, format!("the variable '{name}' has no equation"))
            })?,
        );
    }
    let Some(&start) = of_name.get(initial) else {
        return Err(
            scan.error(initial_place, format!("the initial variable '{initial}' has no equation"))
        );
    };
    build(&scan, &equations, &arena, &vertex_of, VertexId::of(start))
}

/// Parses an expression by operator precedence with two stacks.
fn expression<'a>(
    scan: &mut Scanner<'a>,
    arena: &mut Vec<BesNode>,
    numbers: &mut AHashMap<&'a str, u32>,
    used: &mut Vec<(&'a str, usize)>,
) -> Result<u32, Diagnostic> {
    let mut operators: Vec<(BesOperator, usize)> = Vec::new();
    let mut operands: Vec<u32> = Vec::new();
    loop {
        // An operand.
        loop {
            let place = scan.place();
            if scan.take("!") {
                operators.push((BesOperator::Not, place));
            } else if scan.take("(") {
                operators.push((BesOperator::Open, place));
            } else {
                break;
            }
        }
        let place = scan.place();
        let node = match scan.word() {
            Some("true") => BesNode::Constant(true),
            Some("false") => BesNode::Constant(false),
            Some(name) if !matches!(name, "mu" | "nu" | "init") => {
                let next = narrow::index(used.len());
                let id = *numbers.entry(name).or_insert(next);
                if id == next {
                    used.push((name, place));
                }
                BesNode::Variable(id, place)
            }
            Some(word) => {
                return Err(scan
                    .error(place, format!("expected an expression, found the keyword '{word}'")));
            }
            None => return Err(scan.refuse("an expression")),
        };
        arena.push(node);
        operands.push(narrow::index(arena.len()) - 1);
        // Closing parentheses, then a binary operator or the end.
        loop {
            let operator = if scan.take("&&") {
                BesOperator::And
            } else if scan.take("||") {
                BesOperator::Or
            } else if scan.take("=>") {
                BesOperator::Implies
            } else {
                // `)` or the end completes everything back to the parenthesis.
                let mut closed = false;
                while let Some((top, place)) = operators.pop() {
                    if top == BesOperator::Open {
                        if !scan.take(")") {
                            let missing = scan.refuse("an operator or ')'");
                            return Err(missing.note(scan.error(place, "the '(' is here").message));
                        }
                        closed = true;
                        break;
                    }
                    apply(top, arena, &mut operands);
                }
                if !closed {
                    return operands
                        .pop()
                        .ok_or_else(|| Diagnostic::internal("an expression without operands"));
                }
                continue;
            };
            // `=>` is right-associative, the others are left-associative.
            while let Some(&(top, _)) = operators.last() {
                if top > operator || (top == operator && operator != BesOperator::Implies) {
                    operators.pop();
                    apply(top, arena, &mut operands);
                } else {
                    break;
                }
            }
            operators.push((operator, place));
            break;
        }
    }
}

fn apply(operator: BesOperator, arena: &mut Vec<BesNode>, operands: &mut Vec<u32>) {
    let mut operand = || operands.pop().expect("an operator stands after its operands");
    let right = operand();
    let node = match operator {
        BesOperator::Not => BesNode::Not(right),
        BesOperator::Implies => {
            let left = operand();
            arena.push(BesNode::Not(left));
            BesNode::Or(vec![narrow::index(arena.len()) - 1, right])
        }
        _ => {
            let left = operand();
            // A long conjunction or disjunction is extended in place.
            match (&mut arena[left as usize], operator) {
                (BesNode::And(items), BesOperator::And) | (BesNode::Or(items), BesOperator::Or) => {
                    items.push(right);
                    operands.push(left);
                    return;
                }
                _ if operator == BesOperator::And => BesNode::And(vec![left, right]),
                _ => BesNode::Or(vec![left, right]),
            }
        }
    };
    arena.push(node);
    operands.push(narrow::index(arena.len()) - 1);
}

/// Meaning of a vertex, after negations were pushed inwards.
enum VertexMeaning {
    Constant(bool),
    Move(u32),
    All(Vec<(u32, bool)>),
    Any(Vec<(u32, bool)>),
}

fn build(
    scan: &Scanner,
    equations: &[BesEquation],
    arena: &[BesNode],
    vertex_of: &[u32],
    initial: VertexId,
) -> Result<Game, Diagnostic> {
    // `negated`: an odd number of negations around the node.
    let shape = |mut node: u32, mut negated: bool| -> Result<VertexMeaning, Diagnostic> {
        loop {
            let (items, and) = match &arena[node as usize] {
                BesNode::Not(inner) => {
                    (node, negated) = (*inner, !negated);
                    continue;
                }
                BesNode::Constant(value) => return Ok(VertexMeaning::Constant(*value != negated)),
                BesNode::Variable(id, place) if negated => {
                    let name = equations[vertex_of[*id as usize] as usize].name;
                    return Err(scan
                        .error(*place, format!("the variable '{name}' occurs under a negation")));
                }
                BesNode::Variable(id, _) => {
                    return Ok(VertexMeaning::Move(vertex_of[*id as usize]));
                }
                BesNode::And(items) => (items, true),
                BesNode::Or(items) => (items, false),
            };
            let items = items.iter().map(|&i| (i, negated)).collect();
            return Ok(if and != negated {
                VertexMeaning::All(items)
            } else {
                VertexMeaning::Any(items)
            });
        }
    };
    let mut priority = 0;
    let mut priorities = vec![0; equations.len()];
    for (i, e) in equations.iter().enumerate().rev() {
        if Player::of_priority(priority) != e.fixed_point {
            priority += 1;
        }
        priorities[i] = priority;
    }
    let mut work: Vec<(u32, bool)> = equations.iter().map(|e| (e.root, false)).collect();
    let mut game = Game { initial, ..Game::default() };
    let mut constants: [Option<u32>; 2] = [None; 2];
    let mut next = 0;
    while next < work.len() {
        let (node, negated) = work[next];
        let own_priority = priorities.get(next).copied().unwrap_or(0);
        next += 1;
        let mut leaf = |value: bool, work: &mut Vec<(u32, bool)>, node: (u32, bool)| {
            *constants[usize::from(value)].get_or_insert_with(|| {
                work.push(node);
                narrow::index(work.len()) - 1
            })
        };
        match shape(node, negated)? {
            // A constant with its own vertex has a loop there, with its priority; a constant
            // right-hand side moves there.
            VertexMeaning::Constant(value) if next > equations.len() => {
                game.push(Player::Even, u32::from(!value), [VertexId::new(next - 1)]);
            }
            VertexMeaning::Constant(value) => {
                let to = leaf(value, &mut work, (node, negated));
                game.push(Player::Even, own_priority, [VertexId::of(to)]);
            }
            VertexMeaning::Move(to) => {
                game.push(Player::Even, own_priority, [VertexId::of(to)]);
            }
            VertexMeaning::All(ref items) | VertexMeaning::Any(ref items) => {
                let owner = if matches!(shape(node, negated)?, VertexMeaning::All(_)) {
                    Player::Odd
                } else {
                    Player::Even
                };
                let mut targets = Vec::with_capacity(items.len());
                for &(item, negated) in items {
                    targets.push(VertexId::of(match shape(item, negated)? {
                        VertexMeaning::Move(to) => to,
                        VertexMeaning::Constant(value) => leaf(value, &mut work, (item, negated)),
                        _ => {
                            work.push((item, negated));
                            narrow::index(work.len()) - 1
                        }
                    }));
                }
                game.push(owner, own_priority, targets);
            }
        }
    }
    game.names = equations.iter().map(|e| e.name.to_owned()).collect();
    game.names.resize(game.vertex_count(), String::new());
    Ok(game)
}
