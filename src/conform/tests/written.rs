//! Printed litmus tests have the same answers as their histories, in all languages and under all
//! built-in models: two front ends and one model agree on tags, dependencies, and exclusives.

use mu_axioms::history::{Dependencies, History, Operation};
use mu_axioms::models::{BuiltinModel, Dialect, FenceSide, KNOWN, MemoryOrdering, file};
use mu_axioms::{Architecture, EventKind};
use mu_base::random::Random;
use mu_base::{Budget, SourceMap};
use mu_conform::judge::{MemoryModel, ModelDefinition};
use mu_conform::suite::outcomes;
use mu_conform::write::{TestLanguage, litmus, self_checking};
use mu_litmus::file::ParserOptions;
use mu_litmus::kernel;
use mu_litmus::paths::PathBounds;
use mu_litmus::report::TestReport;

/// Generates a history of updates, loads, and stores of one location, some of which have values
/// that read from each other.
fn random_updates(random: &mut Random) -> History {
    let mut history = History { threads: vec![Vec::new(); 2 + random.below(2)], last: Vec::new() };
    for thread in &mut history.threads {
        for _ in 0..1 + random.below(2) {
            let [value, read] = [random.below(3) as u64, random.below(3) as u64];
            let mut o = match random.below(4) {
                0 => Operation::plain(EventKind::Read, 0, value),
                1 => Operation::plain(EventKind::Write, 0, value),
                _ => Operation::update(0, read, value),
            };
            if o.kind == EventKind::Update && random.chance(1, 3) {
                o.mark = *random.choose(&[
                    MemoryOrdering::Acquire,
                    MemoryOrdering::Release,
                    MemoryOrdering::AcquireRelease,
                ]);
            }
            thread.push(o);
        }
    }
    history
}

/// Generates a history with all kinds of operations; `rich`: also with marks, partial fences,
/// exclusives and dependencies.
fn random_history(random: &mut Random, rich: bool) -> History {
    let mut history = History { threads: vec![Vec::new(); 2 + random.below(2)], last: Vec::new() };
    let most = if history.threads.len() == 2 { 3 } else { 2 };
    for thread in &mut history.threads {
        let length = 1 + random.below(most);
        while thread.len() < length {
            let o = random_operation(random, rich, thread);
            thread.push(o);
        }
    }
    history
}

fn random_operation(random: &mut Random, rich: bool, before: &[Operation]) -> Operation {
    let kind = *random.choose(&[
        EventKind::Read,
        EventKind::Read,
        EventKind::Write,
        EventKind::Write,
        EventKind::Update,
        EventKind::Fence,
    ]);
    let [value, read] = [random.below(3) as u64, random.below(3) as u64];
    let location = random.below(2) as u32;
    let mut o = match kind {
        EventKind::Fence => Operation::fence(MemoryOrdering::Plain),
        EventKind::Update => Operation::update(location, read, value),
        _ => Operation::plain(kind, location, value),
    };
    if !rich {
        return o;
    }
    o.mark = match kind {
        EventKind::Read if random.chance(1, 3) => MemoryOrdering::Acquire,
        EventKind::Write if random.chance(1, 3) => MemoryOrdering::Release,
        EventKind::Update | EventKind::Fence if random.chance(1, 2) => *random.choose(&[
            MemoryOrdering::Acquire,
            MemoryOrdering::Release,
            MemoryOrdering::AcquireRelease,
        ]),
        EventKind::Fence if random.chance(2, 3) => {
            let of = [FenceSide::Reads, FenceSide::Writes, FenceSide::All];
            MemoryOrdering::between(*random.choose(&of), *random.choose(&of))
        }
        _ => MemoryOrdering::Plain,
    };
    let load = before.iter().rfind(|o| o.exclusive);
    o.exclusive = match kind {
        EventKind::Read => random.chance(1, 4),
        EventKind::Write => random.chance(1, 2) && load.is_some_and(|l| l.kind == EventKind::Read),
        _ => false,
    };
    if let (true, EventKind::Write, Some(load)) = (o.exclusive, kind, load) {
        o.location = load.location;
    }
    for (i, _) in before.iter().enumerate().filter(|(_, o)| o.kind.reads()) {
        let Dependencies { address, data, control } = &mut o.depends;
        if kind != EventKind::Fence && random.chance(1, 4) {
            *address |= 1 << i;
        }
        if kind.writes() && random.chance(1, 4) {
            *data |= 1 << i;
        }
        if random.chance(1, 4) {
            *control |= 1 << i;
        }
    }
    o
}

/// The judges of a model, one for each language.
struct Judges<'s> {
    known: &'static BuiltinModel,
    sources: &'s mut SourceMap,
    compiled: [Option<mu_litmus::Judge>; 7],
    language: Option<kernel::KernelLanguage>,
}

impl<'s> Judges<'s> {
    fn new(known: &'static BuiltinModel, sources: &'s mut SourceMap) -> Self {
        let files = kernel::files_of(known.name, &file);
        let language = files.map(|[bell, macros]| {
            let both = ((bell.0.as_str(), bell.1.as_str()), (macros.0.as_str(), macros.1.as_str()));
            kernel::KernelLanguage::parse(sources, both.0, both.1, None).unwrap()
        });
        Self { known, sources, compiled: [const { None }; 7], language }
    }
    /// Answers a test; `None` if the model does not know a name of its architecture.
    fn answer(&mut self, text: &str, language: TestLanguage) -> Option<TestReport> {
        let source = self.sources.add("test", text);
        let (name, model) = (self.known.name, self.known.text);
        let place = &mut self.compiled[language as usize];
        if place.is_none() {
            *place = match &self.language {
                Some(kernel) => {
                    mu_litmus::Judge::of_kernel(self.sources, kernel, name, model, &file).ok()
                }
                None => {
                    let arch = mu_litmus::file::architecture(source, text).unwrap();
                    mu_litmus::Judge::compile(self.sources, arch, name, model, &file).ok()
                }
            };
        }
        let judge = place.as_ref()?;
        let options = ParserOptions { pairs: judge.pairs, kernel: self.language.as_ref() };
        let test = mu_litmus::parse(source, text, options)
            .unwrap_or_else(|d| panic!("{}{text}", d.render(self.sources)));
        Some(mu_litmus::run(test, judge, PathBounds { loops: 1 }, &Budget::default()).unwrap())
    }
}

fn is_supported(against: &MemoryModel, history: &History) -> bool {
    let ModelDefinition::Cat { model, dialect } = &against.form else { return true };
    let operations = history.threads.iter().flatten();
    let mut all =
        operations.map(|o| dialect.unsupported_reason(model, o.kind, o.mark, o.exclusive));
    all.all(|why| why.is_none())
}

fn compare(seeds: std::ops::Range<u64>) {
    let (mut allowed, mut forbidden) = ([0; 7], [0; 7]);
    for known in KNOWN {
        let mut sources = SourceMap::new();
        let model = known.compile(&mut sources).unwrap();
        let against = MemoryModel {
            name: known.name.into(),
            form: ModelDefinition::Cat { model, dialect: known.dialect },
        };
        let mut worker = against.worker();
        let mut judges = Judges::new(known, &mut sources);
        let mut judged = 0;
        for seed in seeds.clone() {
            let mut random = Random::new(seed);
            let history = match seed % 4 {
                1 => random_updates(&mut random),
                _ => random_history(&mut random, seed % 3 != 0),
            };
            if !is_supported(&against, &history) {
                continue;
            }
            let allows = worker.allows(&history).unwrap();
            for &language in TestLanguage::of(known.dialect, &history) {
                let Ok(text) = litmus(&history, "test", language) else { continue };
                let Some(report) = judges.answer(&text, language) else { continue };
                assert_eq!(
                    report.answer.positive > 0,
                    allows,
                    "seed {seed}, {}: {}\n{text}",
                    known.name,
                    history.text()
                );
                let count = if allows { &mut allowed } else { &mut forbidden };
                count[language as usize] += 1;
                judged += 1;
            }
        }
        assert!(judged > 5, "{}: {judged} tests", known.name);
    }
    assert!(allowed.iter().chain(&forbidden).all(|n| *n > 1), "{allowed:?} {forbidden:?}");
}

#[test]
fn written_tests_have_the_answers_of_their_histories() {
    compare(0..50);
}

/// cargo test --release -p mu-check-conform --test written -- --ignored --nocapture
#[test]
#[ignore = "two minutes"]
fn ten_thousand_written_tests_have_the_answers_of_their_histories() {
    compare(1000..11_000);
}

/// A self-checking test holds on the model that defines its outcomes, also with exclusives, which
/// may fail.
#[test]
fn self_checking_tests_hold() {
    let mut exclusives = 0;
    for name in ["rvwmo", "armv8"] {
        let known = mu_axioms::models::by_name(name).unwrap();
        let mut sources = SourceMap::new();
        let model = known.compile(&mut sources).unwrap();
        let against = MemoryModel {
            name: known.name.into(),
            form: ModelDefinition::Cat { model, dialect: known.dialect },
        };
        let mut judges = Judges::new(known, &mut sources);
        for seed in 0..60 {
            let history = random_history(&mut Random::new(seed), true);
            if !is_supported(&against, &history) {
                continue;
            }
            let program = history.program();
            let mut all = outcomes(&program, &mut against.worker()).unwrap();
            let language = TestLanguage::of(known.dialect, &program)[0];
            let Ok(text) = self_checking(&program, &all, "test", language) else { continue };
            let report = judges.answer(&text, language).unwrap();
            assert_eq!(report.answer.negative, 0, "seed {seed}, {name}\n{text}");
            exclusives += usize::from(program.threads.iter().flatten().any(|o| o.exclusive));
            // One outcome less is noticed.
            if all.pop().is_some() {
                let text = self_checking(&program, &all, "test", language).unwrap();
                let report = judges.answer(&text, language).unwrap();
                assert!(report.answer.negative > 0, "seed {seed}, {name}\n{text}");
            }
        }
    }
    assert!(exclusives > 5, "{exclusives}");
}

#[test]
fn texts_of_histories_are_read_again() {
    for seed in 0..300 {
        let text = random_history(&mut Random::new(seed), true).canonical().text();
        // A text needs distinct values, so these are only compared if it is accepted.
        match History::parse(&text) {
            Ok(read) => assert_eq!(read.text(), text),
            Err(why) => assert!(
                why.contains("distinct") || why.contains("no operation writes"),
                "{text}: {why}"
            ),
        }
    }
    for text in [
        "R.ex x 0; W.ex x 1 @data(0) @ctrl(0)",
        "R x 0; F.w.rw; R y 0 @addr(0); U.acqrel x 0 1 @addr(0,2) @data(2)",
        "F.tso; F.acq; F.rel; F; F.r.r",
    ] {
        assert_eq!(History::parse(text).unwrap().text(), text);
    }
    for (text, part) in [
        ("W x 1; R y 0 @addr(0)", "no earlier read"),
        ("R x 0 @data(0)", "no earlier read"),
        ("R x 0; R y 0 @data(0)", "no data dependency"),
        ("R x 0; F @addr(0)", "no data dependency"),
        ("R.rel x 0", "no operation"),
        ("F.x.w", "no operation"),
        ("W.ex x", "no operation"),
        ("R x 0 @addr", "expected"),
    ] {
        let error = History::parse(text).unwrap_err();
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn stores_without_a_reservation_are_forbidden() {
    let known = mu_axioms::models::by_name("rvwmo").unwrap();
    let model = known.compile(&mut SourceMap::new()).unwrap();
    let against = MemoryModel {
        name: "rvwmo".into(),
        form: ModelDefinition::Cat { model, dialect: known.dialect },
    };
    let mut worker = against.worker();
    for (text, allowed) in [
        ("R.ex x 0; W.ex x 1", true),
        ("W.ex x 1", false),
        ("R.ex x 0; W.ex y 1", false),
        ("R.ex x 0; W.ex x 1; W.ex x 2", false),
        ("R.ex x 0; R.ex y 0; W.ex x 1", false),
        ("R.ex x 0; W.ex x 1 || R.ex x 0; W.ex x 2", false),
        ("R.ex x 0; W.ex x 1 || R.ex x 1; W.ex x 2", true),
        ("R x 0; W x 1 || R x 0; W x 2", true),
    ] {
        let history = History::parse(text).unwrap();
        assert_eq!(worker.allows(&history).unwrap(), allowed, "{text}");
        if !allowed {
            assert!(!worker.reason(&history).unwrap().axiom.is_empty());
        }
    }
    let machine = Dialect::Of(Architecture::X86);
    assert!(
        machine
            .unsupported_reason(
                &known.compile(&mut SourceMap::new()).unwrap(),
                EventKind::Read,
                MemoryOrdering::Plain,
                true
            )
            .is_some()
    );
}
