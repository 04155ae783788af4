//! Classes of values: which stores a load may take its value from.
//!
//! A class is a location with a value. Loads of a class may read every store of the class, and the
//! initial value if it is in the class. The first classes are those of the initial values, one for
//! each location. Cost: linear, by hashing.

use ahash::AHashMap;
use mu_base::narrow;

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
        for l in 0..narrow::index(places) {
            if let Some(v) = known[l as usize] {
                classes.insert((l, v), l);
            }
            s.add(l);
        }
        for i in 0..trace.len() {
            if trace.kind(i).stores() {
                let l = trace.location(i);
                let class = *classes
                    .entry((l, trace.stored_value(i)))
                    .or_insert_with(|| narrow::index(s.place.len()));
                if class as usize == s.place.len() {
                    s.add(l);
                }
                s.class[i] = class;
                let count = &mut s.stores[class as usize];
                *count += 1;
                let single = *count == 1 && class as usize >= places;
                s.only[class as usize] = if single { narrow::index(i) } else { NONE };
            }
        }
        for i in 0..trace.len() {
            if !trace.kind(i).loads() {
                continue;
            }
            let l = trace.location(i);
            s.want[i] = match classes.get(&(l, trace.loaded_value(i))) {
                Some(&class) => class,
                None if known[l as usize].is_none() => {
                    // The first value without a store is the initial one.
                    known[l as usize] = Some(trace.loaded_value(i));
                    classes.insert((l, trace.loaded_value(i)), l);
                    l
                }
                None => {
                    s.unsupplied.push(narrow::index(i));
                    NONE
                }
            };
        }
        for (i, f) in trace.finals.iter().enumerate() {
            let class = match classes.get(&(f.location, f.value)) {
                None if known[f.location as usize].is_none() => {
                    // Neither stored nor loaded: it is the initial value, if nothing is stored.
                    known[f.location as usize] = Some(f.value);
                    classes.insert((f.location, f.value), f.location);
                    Some(f.location)
                }
                class => class.copied(),
            };
            let last = &mut s.last[f.location as usize];
            match class {
                Some(class) if *last == NONE || *last == class => *last = class,
                _ => s.wrong_final = s.wrong_final.or(Some(i)),
            }
        }
        s.free = (0..narrow::index(places)).filter(|l| known[*l as usize].is_none()).collect();
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
    /// True if no class has two stores, or a store and the initial value.
    pub fn has_single_stores(&self) -> bool {
        (0..self.stores.len()).all(|class| {
            let limit = u32::from(class >= self.last.len());
            self.stores[class] <= limit
        })
    }
    /// Returns the loads with several sources.
    pub fn ambiguous(&self) -> Vec<u32> {
        let loads = (0..narrow::index(self.want.len())).filter(|&i| self.want[i as usize] != NONE);
        loads.filter(|&i| !self.is_unique(self.want[i as usize])).collect()
    }
    /// Returns the questions that remain if each store has a class of its own: a load or a final
    /// value, with its possible sources ([`NONE`] is the initial value).
    pub fn questions(&self, trace: &Trace) -> Vec<(OpenSource, Vec<u32>)> {
        let mut stores: Vec<Vec<u32>> = vec![Vec::new(); self.place.len()];
        for (i, &class) in self.class.iter().enumerate().filter(|c| *c.1 != NONE) {
            stores[class as usize].push(narrow::index(i));
        }
        let initial = |class: u32| (class as usize) < self.last.len();
        let mut out = Vec::new();
        for load in self.ambiguous() {
            let class = self.want[load as usize];
            let thread = trace.range(trace.thread(load as usize));
            let behind = |s: u32| s >= load && (s as usize) < thread.end;
            let list = stores[class as usize].iter().copied().filter(|s| !behind(*s));
            let sources = list.chain(initial(class).then_some(NONE)).collect();
            out.push((OpenSource::Load(load), sources));
        }
        for (place, &class) in self.last.iter().enumerate() {
            if class != NONE && !self.is_unique(class) {
                let list = stores[class as usize].iter().copied();
                let sources = list.chain(initial(class).then_some(NONE)).collect();
                out.push((OpenSource::Final(narrow::index(place)), sources));
            }
        }
        out
    }
    /// Returns the classes in which each store has a class of its own, with answers.
    pub fn with_answers(&self, answers: &[(OpenSource, u32)]) -> Sources {
        let places = self.last.len();
        let mut out = Sources {
            want: self.want.clone(),
            class: self.class.clone(),
            place: (0..narrow::index(places)).collect(),
            stores: vec![0; places],
            only: vec![NONE; places],
            last: self.last.clone(),
            ..Sources::default()
        };
        // The new class of each class with one store.
        let mut single = vec![NONE; self.place.len()];
        for i in 0..self.class.len() {
            let old = self.class[i];
            if old != NONE {
                let class = narrow::index(out.place.len());
                out.class[i] = class;
                single[old as usize] = class;
                out.place.push(self.place[old as usize]);
                out.stores.push(1);
                out.only.push(narrow::index(i));
            }
        }
        let renamed = |old: u32| match old {
            NONE => NONE,
            old if self.stores[old as usize] == 0 => self.place[old as usize],
            old => single[old as usize],
        };
        out.want.iter_mut().chain(&mut out.last).for_each(|c| *c = renamed(*c));
        for &(question, source) in answers {
            let target = match question {
                OpenSource::Load(load) => &mut out.want[load as usize],
                OpenSource::Final(place) => &mut out.last[place as usize],
            };
            let place = out.place[*target as usize];
            *target = if source == NONE { place } else { out.class[source as usize] };
        }
        out
    }
}

/// Operation with several possible sources.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OpenSource {
    /// A load.
    Load(u32),
    /// The final value of a location.
    Final(u32),
}
