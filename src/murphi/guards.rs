//! Selection of the instances with guards that may be true, by tables over single fields.
//!
//! Guards begin with tests of fields ([`FieldTest`]), most often of a control location. Instances
//! that test the same field share a node, which has a list of instances for each content of the
//! field; their further tests are nodes of these lists. A state thus costs one read for each
//! tested field and the guards that remain, not one guard for each instance. Cost: memory for each
//! instance and each combination of accepted contents, at most 64 (`compile`).

use crate::code::{Field, FieldTest, Instance};

/// Entry of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// Instance, with the code that decides its guard; `None` if it is true.
    Instance(u32, Option<u32>),
    /// Node.
    Node(u32),
}

/// Lists of one field.
#[derive(Clone, Debug)]
struct Node {
    field: Field,
    /// Index of the range of the content 0 in `Guards::ranges`.
    first: u32,
}

/// Tables of all instances.
#[derive(Clone, Debug, Default)]
pub(crate) struct Guards {
    nodes: Vec<Node>,
    ranges: Vec<(u32, u32)>,
    items: Vec<Item>,
    root: (u32, u32),
}

impl Guards {
    pub fn new(instances: &[Instance]) -> Self {
        let mut guards = Guards::default();
        let all: Vec<u32> = (0..instances.len() as u32).collect();
        guards.root = guards.list(instances, &all, 0);
        guards
    }
    /// Adds the list of some instances that pass their tests below `depth`.
    fn list(&mut self, instances: &[Instance], some: &[u32], depth: usize) -> (u32, u32) {
        let mut list: Vec<Item> = Vec::new();
        let mut groups: Vec<(Field, Vec<u32>)> = Vec::new();
        for at in some {
            let instance = &instances[*at as usize];
            let Some(test) = instance.tests.get(depth) else {
                list.push(Item::Instance(*at, instance.rest));
                continue;
            };
            match groups.iter_mut().find(|g| g.0 == test.field) {
                Some(group) => group.1.push(*at),
                None => groups.push((test.field, vec![*at])),
            }
        }
        for (field, group) in groups {
            let node = self.nodes.len() as u32;
            let contents = 1usize << field.width;
            self.nodes.push(Node { field, first: self.ranges.len() as u32 });
            let first = self.ranges.len();
            self.ranges.resize(first + contents, (0, 0));
            for raw in 0..contents {
                let test = |at: &&u32| {
                    let test: FieldTest = instances[**at as usize].tests[depth];
                    test.accept >> raw & 1 == 1
                };
                let accepted: Vec<u32> = group.iter().filter(test).copied().collect();
                if accepted.is_empty() {
                    continue;
                }
                // If a test fails, the whole guard reports it.
                let (failing, passed): (Vec<u32>, Vec<u32>) = accepted
                    .into_iter()
                    .partition(|at| raw == 0 && instances[*at as usize].tests[depth].fails);
                self.ranges[first + raw] = if failing.is_empty() {
                    self.list(instances, &passed, depth + 1)
                } else {
                    let whole = failing
                        .iter()
                        .chain(&passed)
                        .map(|at| Item::Instance(*at, Some(instances[*at as usize].guard)));
                    self.add(whole.collect())
                };
            }
            list.push(Item::Node(node));
        }
        self.add(list)
    }
    fn add(&mut self, list: Vec<Item>) -> (u32, u32) {
        let first = self.items.len() as u32;
        self.items.extend(list);
        (first, self.items.len() as u32)
    }
    /// Calls `each` with the instances that pass their tests in a state, and the code that decides
    /// their guards. Stops early if `each` returns false; returns false then.
    #[inline(always)]
    pub fn visit(&self, state: &[u64], each: &mut impl FnMut(u32, Option<u32>) -> bool) -> bool {
        self.visit_list(self.root, state, each)
    }
    fn visit_list(
        &self,
        (from, to): (u32, u32),
        state: &[u64],
        each: &mut impl FnMut(u32, Option<u32>) -> bool,
    ) -> bool {
        for item in &self.items[from as usize..to as usize] {
            match item {
                Item::Instance(at, guard) => {
                    if !each(*at, *guard) {
                        return false;
                    }
                }
                Item::Node(node) => {
                    let node = &self.nodes[*node as usize];
                    let raw = node.field.get(state) as usize;
                    let list = self.ranges[node.first as usize + raw];
                    if list.0 < list.1 && !self.visit_list(list, state, each) {
                        return false;
                    }
                }
            }
        }
        true
    }
}
