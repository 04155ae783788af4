//! Generators of random executions for tests.

use mu_base::narrow;
use mu_base::random::Random;

use mu_axioms::execution::{Event, EventKind, RelationId, SetId, Skeleton, Vocabulary};
use mu_axioms::relation::Relation;

/// Generates a skeleton of a few threads with accesses to a few locations, fences, tags and
/// dependencies; initial writes first.
pub fn skeleton(random: &mut Random, vocabulary: &Vocabulary, tags: &[SetId]) -> Skeleton {
    let locations = 1 + narrow::index(random.below(3));
    let mut events: Vec<Event> = (0..locations).map(|l| Event::initial(l, 0)).collect();
    for t in 0..1 + narrow::index(random.below(3)) {
        for i in 0..narrow::index(random.below(4)) {
            let kind = *random.choose(&[
                EventKind::Read,
                EventKind::Write,
                EventKind::Read,
                EventKind::Write,
                EventKind::Fence,
                EventKind::Branch,
            ]);
            if kind.reads() || kind.writes() {
                events.push(Event::access(
                    t,
                    i,
                    kind,
                    narrow::index(random.below(locations as usize)),
                    random.below(3) as u64,
                ));
            } else {
                events.push(Event::other(t, i, kind));
            }
        }
    }
    let mut s = Skeleton::new(vocabulary, events);
    for e in locations as usize..s.len() {
        for tag in tags {
            if random.chance(1, 4) {
                s.tag(*tag, e);
            }
        }
        for after in e + 1..s.len() {
            if s.relation(RelationId::PO).contains(e, after)
                && s.set(SetId::READS).contains(e)
                && random.chance(1, 4)
            {
                let kind = *random.choose(&[RelationId::ADDR, RelationId::DATA, RelationId::CTRL]);
                s.relate(kind, e, after);
            }
        }
    }
    s
}

/// Generates a choice of `rf` and `co`.
pub fn choice(random: &mut Random, s: &Skeleton) -> (Relation, Relation) {
    let mut rf = Relation::empty(s.len());
    for r in s.set(SetId::READS).iter() {
        let sources: Vec<usize> = s.sources(r).collect();
        if !sources.is_empty() {
            rf.insert(*random.choose(&sources), r);
        }
    }
    let mut co = Relation::empty(s.len());
    for writes in s.writes_by_location() {
        let (mut order, mut rest): (Vec<usize>, Vec<usize>) =
            writes.iter().partition(|w| s.set(SetId::INITIAL).contains(*w));
        while !rest.is_empty() {
            order.push(rest.swap_remove(random.below(rest.len())));
        }
        for (i, &a) in order.iter().enumerate() {
            order[i + 1..].iter().for_each(|&b| co.insert(a, b));
        }
    }
    (rf, co)
}
