//! Plans: the actions of an operation at each level of a set, as a hash-consed list, so that equal
//! suffixes have one id (and one cache key).

use ahash::AHashMap;
use mu_base::narrow;
use std::sync::Arc;

/// Action at one level.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LevelAction {
    /// The level is not touched (all operations but projection).
    Skip,
    /// The relation or the matched set reads values here.
    Read,
    /// The relation writes values here without reading.
    Write,
    /// The relation reads values, then writes values here.
    ReadWrite,
    /// Projection keeps the level.
    Keep,
    /// Projection drops the level.
    Drop,
    /// Only this value continues; a projection drops the level, a match keeps it.
    Require(u32),
    /// Projection keeps the level, with the values of a list only
    /// ([`super::Manager::restriction`]).
    Among(u32),
}

/// A list of actions, first level first. Levels beyond its end are skipped (by a projection:
/// dropped).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Plan(pub(super) u32);

impl Plan {
    /// No more actions.
    pub const END: Plan = Plan(0);

    /// Returns the cache code of an operation with this plan.
    #[inline]
    pub(crate) fn code(self, op: u32) -> u32 {
        op | self.0
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Plans {
    steps: Vec<(LevelAction, Plan)>,
    ids: AHashMap<(LevelAction, Plan), Plan>,
    /// Lists of values, ascending.
    lists: Vec<Arc<[u32]>>,
}

impl Plans {
    pub fn intern(&mut self, action: LevelAction, next: Plan) -> Plan {
        let steps = &mut self.steps;
        *self.ids.entry((action, next)).or_insert_with(|| {
            steps.push((action, next));
            assert!(steps.len() < 1 << 26, "more than 2^26 plan steps");
            Plan(narrow::index(steps.len()))
        })
    }
    /// Returns the number of a list of values.
    pub fn list(&mut self, values: &[u32]) -> u32 {
        let known = self.lists.iter().position(|l| **l == *values);
        narrow::index(known.unwrap_or_else(|| {
            self.lists.push(values.into());
            self.lists.len() - 1
        }))
    }
    pub fn values(&self, list: u32) -> Arc<[u32]> {
        self.lists[list as usize].clone()
    }
    pub fn find(&self, action: LevelAction, next: Plan) -> Option<Plan> {
        self.ids.get(&(action, next)).copied()
    }
    #[inline]
    pub fn step(&self, plan: Plan) -> Option<(LevelAction, Plan)> {
        match plan.0 {
            0 => None,
            i => Some(self.steps[i as usize - 1]),
        }
    }
}
