//! Answers by what a question looks at: which of its values first, which next for each number
//! there.
//!
//! In: the numbers of the values that a question is about. Out: the answer, where those that are
//! looked at led to one before. Whether somebody has won is decided by few fields of a board, and
//! boards that agree on them are far fewer than boards. Compare the discrimination trees of Graf,
//! "Term indexing" (1996): here the order is that of the evaluation. Cost: a step for each value
//! that is looked at. A tree that is asked in vain is given up: then it takes neither time nor
//! memory; one that is full begins anew.
//!
//! Invariant: on each path every position is looked at once.

/// Most nodes.
const MOST: usize = 1 << 16;
/// Evaluations after which a tree is judged, again and again.
pub const JUDGED: u32 = 1 << 12;
/// Answers for each evaluation below which it is not worth keeping.
const WORTH: u32 = 3;
/// Most values at a position that are told apart.
const WIDEST: usize = 64;

enum Node {
    /// What to look at, and where each number leads.
    Look(u32, Vec<(u32, u32)>),
    Answer(bool),
    /// Not known yet.
    Open,
    /// It cannot be told.
    Unclear,
}

/// See the module's head.
pub struct Decisions {
    nodes: Vec<Node>,
    asked: u32,
    known: u32,
    given_up: bool,
}

/// What is known of a question.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// The answer.
    Answer(bool),
    /// Nothing beyond this place in the tree.
    Open(Place),
    /// Nothing.
    Nothing,
}

/// A place in the tree that has no answer yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place(u32);

impl Default for Decisions {
    fn default() -> Self {
        Decisions { nodes: vec![Node::Open], asked: 0, known: 0, given_up: false }
    }
}

impl Decisions {
    /// What is known for the numbers at each position; `seen` is called with each position that is
    /// looked at.
    #[inline]
    pub fn find(&mut self, number: impl Fn(usize) -> u32, mut seen: impl FnMut(usize)) -> Found {
        if self.given_up {
            return Found::Nothing;
        }
        let mut at = 0;
        loop {
            match &mut self.nodes[at as usize] {
                Node::Answer(answer) => {
                    self.known += 1;
                    return Found::Answer(*answer);
                }
                Node::Open => return Found::Open(Place(at)),
                Node::Unclear => return Found::Nothing,
                Node::Look(position, ways) => {
                    seen(*position as usize);
                    let n = number(*position as usize);
                    match ways.iter().find(|w| w.0 == n) {
                        Some(way) => at = way.1,
                        None if ways.len() >= WIDEST => return Found::Nothing,
                        None => {
                            let next = self.nodes.len() as u32;
                            if let Node::Look(_, ways) = &mut self.nodes[at as usize] {
                                ways.push((n, next));
                            }
                            self.nodes.push(Node::Open);
                            return Found::Open(Place(next));
                        }
                    }
                }
            }
        }
    }

    /// How many places it has.
    pub fn size(&self) -> usize {
        self.nodes.len()
    }

    /// A question is evaluated: is the tree worth it?
    pub fn judge(&mut self) {
        self.asked += 1;
        if self.asked >= JUDGED {
            self.given_up = self.known < self.asked * WORTH;
            (self.asked, self.known) = (0, 0);
        }
        if self.given_up || self.nodes.len() >= MOST {
            self.nodes = vec![Node::Open];
        }
    }

    /// Puts an answer at a place.
    pub fn answer(&mut self, at: Place, answer: bool) {
        self.put(at, Node::Answer(answer));
    }

    /// Looks at a position from there on, which has this number; where that leads.
    pub fn look(&mut self, at: Place, position: usize, number: u32) -> Place {
        let next = self.nodes.len() as u32;
        self.nodes.push(Node::Open);
        self.put(at, Node::Look(position as u32, vec![(number, next)]));
        Place(next)
    }

    /// Nothing can be told here.
    pub fn unclear(&mut self, at: Place) {
        self.put(at, Node::Unclear);
    }

    fn put(&mut self, at: Place, node: Node) {
        if let Some(place) = self.nodes.get_mut(at.0 as usize) {
            *place = node;
        }
    }
}
