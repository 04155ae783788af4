//! Proof that a model implies coherence, by the five shapes that coherence forbids (Alglave,
//! Maranget, Tautschnig 2014: coWW, coRW1, coRW2, coWR, coRR).
//!
//! An incoherent execution contains one of finitely many templates: two or three accesses to one
//! location with their places in threads, and their sources or order. The axioms are first replaced
//! by lower bounds that are monotone: if they are violated by a template, they are violated by
//! every execution that contains it. So if every template violates an axiom, the model allows only
//! coherent executions.
//!
//! A node is *exact* if its value on the events of a template is its value there in every execution
//! that contains the template; nodes that compose relations are only lower bounds, because other
//! events may be between. A difference or complement of something inexact becomes empty. Soundness
//! follows by induction over the nodes. Cost: one evaluation of the lower bounds per template.

use super::ast::{TestKind, TestRole};
use super::plan::EvaluationPlan;
use super::program::{CatNodeId, CatOp, Property};
use super::{CatModel, Session};
use crate::execution::{Event, EventKind, NameMeaning, RelationId, SetId, Skeleton};
use crate::relation::Relation;

/// The position of a write that a template contains, in relation to the thread with the two
/// accesses in program order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WritePlace {
    /// The initial write.
    Initial,
    /// The thread itself, before both accesses.
    Before,
    /// Another thread, by its number and the position in it.
    Other(u32, u32),
}

/// A template: events at one location, and pairs of `rf` and `co`.
struct Template {
    events: Vec<Event>,
    reads: Vec<(usize, usize)>,
    /// The writes in coherence order.
    order: Vec<usize>,
    /// A read and a write of one atomic instruction.
    update: Option<(usize, usize)>,
}

/// The coherence that a model implies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Coherence {
    /// True if all accesses of a thread to one location, in different instructions, are coherent.
    pub accesses: bool,
    /// True if the read of an atomic instruction is before its write.
    pub updates: bool,
}

impl CatModel {
    /// Returns the coherence that the axioms provably imply.
    pub fn coherence(&self) -> Coherence {
        let core = self.monotone();
        let mut session = Session::new(&core);
        let mut forbids = |templates: Vec<Template>| {
            templates.iter().all(|t| {
                let skeleton = t.skeleton(&core);
                let n = skeleton.len();
                let rf = Relation::from_pairs(n, t.reads.iter().copied());
                let later = |(i, a): (usize, &usize)| {
                    t.order[i + 1..].iter().map(|b| (*a, *b)).collect::<Vec<_>>()
                };
                let co = Relation::from_pairs(n, t.order.iter().enumerate().flat_map(later));
                let run = session.start(&skeleton).and_then(|mut run| run.allows(&rf, &co));
                matches!(run, Ok(false))
            })
        };
        let accesses = forbids(accesses());
        Coherence { accesses, updates: accesses && forbids(updates()) }
    }
    /// Returns the model with monotone lower bounds of its axioms only.
    fn monotone(&self) -> CatModel {
        let mut core = self.clone();
        let program = &mut core.program;
        let mut exact = vec![false; program.nodes.len()];
        for i in 0..program.nodes.len() {
            let op = program.nodes[i].op;
            let is_exact = |s: CatNodeId| exact[s.index()];
            let own = match op {
                CatOp::Nothing => true,
                CatOp::GivenSet(id) => [SetId::ALL, SetId::INITIAL, SetId::MEMORY].contains(&id),
                CatOp::GivenRelation(id) => [
                    RelationId::ID,
                    RelationId::INT,
                    RelationId::EXT,
                    RelationId::LOC,
                    RelationId::PO,
                    RelationId::RF,
                    RelationId::CO,
                ]
                .contains(&id),
                CatOp::Union(..)
                | CatOp::Intersection(..)
                | CatOp::Difference(..)
                | CatOp::Complement(_)
                | CatOp::Product(..)
                | CatOp::Identity(_)
                | CatOp::From(..)
                | CatOp::To(..)
                | CatOp::Optional(_)
                | CatOp::Inverse(_) => op.inputs().all(is_exact),
                _ => false,
            };
            let keeps = match op {
                CatOp::Complement(a) => is_exact(a),
                // `a \ (a & b)` is `a \ b`.
                CatOp::Difference(a, b) => {
                    is_exact(b)
                        || matches!(program.nodes[b.index()].op, CatOp::Intersection(x, y)
                            if x == a && is_exact(y) || y == a && is_exact(x))
                }
                CatOp::Interpret(_)
                | CatOp::Element(_)
                | CatOp::Orders(..)
                | CatOp::Linearisations(..)
                | CatOp::AsSet(_)
                | CatOp::AsRelation(_)
                | CatOp::AsPairs(_)
                | CatOp::OnlyEmpty(_) => false,
                _ => true,
            };
            exact[i] = own;
            if !keeps {
                program.nodes[i].op = CatOp::Nothing;
            }
        }
        program.choices.clear();
        program.checks.retain(|c| {
            let positive = matches!(
                c.property,
                Property::Test(TestKind::Acyclic | TestKind::Irreflexive | TestKind::Empty, _)
            );
            c.role == TestRole::Axiom && !c.negated && c.stage <= 2 && positive
        });
        core.plan = EvaluationPlan::of(program);
        core
    }
}

impl Template {
    fn skeleton(&self, model: &CatModel) -> Skeleton {
        let mut s = Skeleton::new(model.vocabulary(), self.events.clone());
        if let Some((r, w)) = self.update {
            s.relate(RelationId::AMO, r, w);
            for tag in ["X", "AMO"] {
                if let Some(NameMeaning::Set(id)) = model.vocabulary().find(tag)
                    && id != SetId::UPDATES
                {
                    [r, w].into_iter().for_each(|e| s.tag(id, e));
                }
            }
        }
        s
    }
}

/// Builder of a template with two accesses of thread 0 in program order.
struct TemplateBuilder {
    events: Vec<Event>,
}

impl TemplateBuilder {
    /// Creates a template: the initial write is event 0, the two accesses are events 1 and 2.
    fn new(first: EventKind, second: EventKind, indices: [u32; 2]) -> Self {
        let [a, b] = [(first, indices[0]), (second, indices[1])]
            .map(|(kind, index)| Event::access(0, index, kind, 0, 0));
        Self { events: vec![Event::initial(0, 0), a, b] }
    }
    /// Adds a write, and returns its event.
    fn write(&mut self, place: WritePlace) -> usize {
        let (thread, index) = match place {
            WritePlace::Initial => return 0,
            WritePlace::Before => (0, 1),
            WritePlace::Other(thread, index) => (thread, index),
        };
        self.events.push(Event::access(thread, index, EventKind::Write, 0, 0));
        self.events.len() - 1
    }
    /// Builds the template. The initial write is first in coherence order.
    fn build(self, reads: Vec<(usize, usize)>, order: &[usize]) -> Template {
        let order = std::iter::once(0).chain(order.iter().copied().filter(|w| *w != 0)).collect();
        Template { events: self.events, reads, order, update: None }
    }
}

/// The positions of the two accesses in their thread.
const INDICES: [u32; 2] = [2, 3];

/// Returns the templates of incoherent accesses.
fn accesses() -> Vec<Template> {
    use EventKind::{Read, Write};
    let ext = WritePlace::Other(1, 1);
    let mut out = Vec::new();
    // coWW: the second write is before the first.
    out.push(TemplateBuilder::new(Write, Write, INDICES).build(Vec::new(), &[2, 1]));
    // coRW1: a read takes the value of a later write.
    out.push(TemplateBuilder::new(Read, Write, INDICES).build(vec![(2, 1)], &[2]));
    // coRW2: a read takes a value that is after a later write.
    let mut b = TemplateBuilder::new(Read, Write, INDICES);
    let w = b.write(ext);
    out.push(b.build(vec![(w, 1)], &[2, w]));
    // coWR: a read takes a value that is before an earlier write.
    for place in [WritePlace::Initial, WritePlace::Before, ext] {
        let mut b = TemplateBuilder::new(Write, Read, INDICES);
        let w = b.write(place);
        out.push(b.build(vec![(w, 2)], &[w, 1]));
    }
    // coRR: two reads take values in the wrong order.
    let others = [
        WritePlace::Initial,
        WritePlace::Before,
        WritePlace::Other(2, 1),
        WritePlace::Other(1, 0),
        WritePlace::Other(1, 2),
    ];
    for place in others {
        let mut b = TemplateBuilder::new(Read, Read, INDICES);
        let new = b.write(ext);
        let old = b.write(place);
        out.push(b.build(vec![(new, 1), (old, 2)], &[old, new]));
    }
    out
}

/// Returns the templates of an atomic instruction that reads a value after its own write.
fn updates() -> Vec<Template> {
    let mut b = TemplateBuilder::new(EventKind::Read, EventKind::Write, [2, 2]);
    let w = b.write(WritePlace::Other(1, 1));
    let template = b.build(vec![(w, 1)], &[2, w]);
    vec![Template { update: Some((1, 2)), ..template }]
}
