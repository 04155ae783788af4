//! Classes of values: which stores a load may take its value from.
//!
//! A class is a location with a value. Loads of a class may read every store of the class, and the
//! initial value if it is in the class. The first classes are those of the initial values, one for
//! each location. Cost: linear, by hashing.

use ahash::AHashMap;

use crate::trace::{Initial, Trace};

/// No class, no operation.
pub(crate) const NONE: u32 = u32::MAX;

/// Classes of a trace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources {
    /// Class that an operation loads; [`NONE`] if it loads nothing.
    pub want: Vec<u32>,
    /// Class that an operation stores; [`NONE`] if it stores nothing.
    pub class: Vec<u32>,
    /// Number of stores of each class.
    pub stores: Vec<u32>,
    /// The store of each class with exactly one, unless the initial value is in the class.
    pub only: Vec<u32>,
    /// Location of each class.
    pub place: Vec<u32>,
    /// Required class of the last store of each location; [`NONE`] if there is none.
    pub last: Vec<u32>,
    /// Loads with a value that no store has.
    pub unsupplied: Vec<u32>,
    /// Locations with an unknown initial value that no load needs.
    pub free: Vec<u32>,
    /// Required final value that contradicts another one, or that nobody stores.
    pub wrong_final: Option<usize>,
}

impl Sources {
    /// Computes the classes. `bound` has initial values for locations where they are unknown.
    pub fn of(trace: &Trace, bound: &[(u32, u64)]) -> Sources {
        let places = trace.locations.len();
        let mut known: Vec<Option<u64>> = trace
            .locations
            .iter()
            .map(|l| match &l.initial {
                Initial::Zero => Some(0),
                Initial::Value(v) => Some(*v),
                Initial::Bytes(_) | Initial::Unknown => None,
            })
            .collect();
        for &(l, v) in bound {
            known[l as usize] = Some(v);
        }
        let mut s = Sources {
            want: vec![NONE; trace.len()],
            class: vec![NONE; trace.len()],
            last: vec![NONE; places],
            ..Sources::default()
        };
        let mut classes: AHashMap<(u32, u64), u32> = AHashMap::new();
        for l in 0..places as u32 {
            if let Some(v) = known[l as usize] {
                classes.insert((l, v), l);
            }
            s.add(l);
        }
        for i in 0..trace.len() {
            if trace.kind(i).stores() {
                let l = trace.location(i);
                let class =
                    *classes.entry((l, trace.stored(i))).or_insert_with(|| s.place.len() as u32);
                if class as usize == s.place.len() {
                    s.add(l);
                }
                s.class[i] = class;
                let count = &mut s.stores[class as usize];
                *count += 1;
                let single = *count == 1 && class as usize >= places;
                s.only[class as usize] = if single { i as u32 } else { NONE };
            }
        }
        for i in 0..trace.len() {
            if !trace.kind(i).loads() {
                continue;
            }
            let l = trace.location(i);
            s.want[i] = match classes.get(&(l, trace.loaded(i))) {
                Some(&class) => class,
                None if known[l as usize].is_none() => {
                    // The first value without a store is the initial one.
                    known[l as usize] = Some(trace.loaded(i));
                    classes.insert((l, trace.loaded(i)), l);
                    l
                }
                None => {
                    s.unsupplied.push(i as u32);
                    NONE
                }
            };
        }
        s.free = (0..places as u32).filter(|l| known[*l as usize].is_none()).collect();
        for (i, f) in trace.finals.iter().enumerate() {
            let last = &mut s.last[f.location as usize];
            match classes.get(&(f.location, f.value)) {
                Some(&class) if *last == NONE || *last == class => *last = class,
                _ => s.wrong_final = s.wrong_final.or(Some(i)),
            }
        }
        s
    }
    fn add(&mut self, place: u32) {
        self.place.push(place);
        self.stores.push(0);
        self.only.push(NONE);
    }
    /// True if a class has one source.
    pub fn is_unique(&self, class: u32) -> bool {
        let stores = self.stores[class as usize];
        if (class as usize) < self.last.len() { stores == 0 } else { stores == 1 }
    }
    /// Returns the loads with several sources.
    pub fn ambiguous(&self) -> Vec<u32> {
        let loads = (0..self.want.len() as u32).filter(|&i| self.want[i as usize] != NONE);
        loads.filter(|&i| !self.is_unique(self.want[i as usize])).collect()
    }
}
