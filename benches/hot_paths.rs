//! The hot paths one by one, by Criterion: `cargo bench --bench hot_paths [-- NAME]`.
//!
//! - `group_lookup`: successors of states that are all stored already, so each group answers from
//!   its cache and each target is found.
//! - `tree_insertion`: the same states from nothing, caches and store included; the difference to
//!   the former is insertion.
//! - `canonical_form`: a search of one state of each orbit, and the search of all states.
//! - `product_step`: a formula of local consistency on the same model, and the exploration alone.
//! - `rewriting`: equations on numbers and lists.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use mu_check::base::ids::StateId;
use mu_check::base::{Budget, SourceId, SourceMap};
use mu_check::compile::{Compiled, Confluence};
use mu_check::data::engine::{Engine, Program};
use mu_check::explore::{OnTheFlySuccessors, Options, Silent, explore};
use mu_check::formula::typecheck::check_formula;
use mu_check::formula::typed::TypedFormula;
use mu_check::process::{linearise, typecheck};
use mu_check::syntax::{self, template};
use mu_check::{data, pbes};
use std::hint::black_box;

fn file(path: &str) -> String {
    std::fs::read_to_string(format!("{}/{path}", env!("CARGO_MANIFEST_DIR")))
        .expect("a file of the package")
}

/// The ARCx model with two operations a core.
fn arcx() -> Compiled {
    let mut sources = SourceMap::new();
    let define = [("max_operation_id".to_string(), "1".to_string())];
    let expanded = template::expand("arcx.spec", &file("specs/arcx.spec"), &define, &mut sources)
        .expect("it expands");
    let tree = syntax::parse_specification(expanded.source, &expanded.text).expect("it parses");
    let spec = typecheck::check_specification(&tree).expect("it type checks");
    let process = linearise::linearise(&spec, &linearise::LineariserOptions::default())
        .expect("it is linearised");
    Compiled::new(process, &Confluence::None).expect("it compiles")
}

fn formula(model: &Compiled, name: &str) -> TypedFormula {
    let tree = syntax::parse_formula(SourceId::FIRST, &file(&format!("formulas/{name}.mcf")))
        .expect("it parses");
    check_formula(&tree, &model.process().data, &model.process().actions).expect("it type checks")
}

fn one_thread(symmetry: bool) -> Options {
    Options { threads: 1, symmetry, ..Options::default() }
}

fn exploration(c: &mut Criterion) {
    let model = arcx();
    let options = one_thread(false);
    let outcome = explore(&model, &options, &Budget::default(), &Silent).expect("it is explored");
    let mut group = c.benchmark_group("exploration");
    group.sample_size(10);
    group.throughput(Throughput::Elements(outcome.transitions));
    let mut met = OnTheFlySuccessors::new(&model, &options).expect("it starts");
    let mut steps = Vec::new();
    let mut at = 0;
    while at < met.state_count() {
        met.successors(StateId::new(at), &mut steps).expect("it goes on");
        at += 1;
    }
    group.bench_function("group_lookup", |b| {
        b.iter(|| {
            for s in 0..at {
                met.successors(StateId::new(s), &mut steps).expect("it was met");
                black_box(&steps);
            }
        });
    });
    group.bench_function("tree_insertion", |b| {
        b.iter(|| explore(&model, &options, &Budget::default(), &Silent))
    });
    let symmetric = one_thread(true);
    group.bench_function("canonical_form", |b| {
        b.iter(|| explore(&model, &symmetric, &Budget::default(), &Silent))
    });
    let typed = formula(&model, "1a.gos");
    group.bench_function("product_step", |b| {
        b.iter(|| {
            pbes::check(&model, &model, &typed, pbes::Options::new(&options), &Budget::default())
        });
    });
    group.finish();
}

fn rewriting(c: &mut Criterion) {
    let text = "map upto: Nat # Nat -> List(Nat); total: List(Nat) -> Nat; var n, m: Nat; l: List(Nat);
        eqn n > m -> upto(n, m) = []; n <= m -> upto(n, m) = n |> upto(n + 1, m); total([]) = 0; total(n |> l) = n + total(l);
        init delta;";
    let tree = syntax::parse_specification(SourceId::FIRST, text).expect("it parses");
    let mut data = typecheck::check_specification(&tree).expect("it type checks").data;
    let term = syntax::parse_data(SourceId::FIRST, "total(upto(0, 10000))").expect("it parses");
    let term = data::typecheck::check_expression(&term, &mut data, None).expect("it type checks");
    let mut engine = Engine::new(Program::compile(&data).expect("it compiles"));
    let mut group = c.benchmark_group("rewriting");
    // Equations applied: one for each element on the way there and one on the way back.
    group.throughput(Throughput::Elements(20_003));
    group.bench_function("lists_and_numbers", |b| b.iter(|| engine.from_expr(black_box(&term))));
    group.finish();
}

criterion_group!(benches, exploration, rewriting);
criterion_main!(benches);
