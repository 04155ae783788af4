//! The published formulas of ARCx, for every number of operations and of cores: the checker proves
//! them without a certificate and without regions ([`mu_zones::confirm`]), with two tracked
//! components.

use mu_base::ids::{OpId, SortId};
use mu_base::{Budget, SourceMap};
use mu_compile::{Compiled, Confluence};
use mu_formula::typecheck::check_formula;
use mu_process::linear::LinearProcess;
use mu_process::linearise::{self, linearise};
use mu_process::spec::ProcSpec;
use mu_regions::constant_counts::{self, ConstantCount};
use mu_regions::replicas::{EXTRA_CONSTANTS, with_list};
use mu_regions::sizes::SIZE;
use mu_regions::{Replicas, SymbolicConstants, with_parameters};
use mu_syntax::ast::Specification;
use mu_syntax::template::expand_representative;
use mu_zones::{AnySize, Identities, Question, Verified, confirm};
use std::time::{Duration, Instant};

const FORMULAS: [&str; 5] = ["1a.gos", "1b.gos", "1c.gos", "1d.gos", "2.selfobserving"];

fn read(path: &str) -> String {
    let path = format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{path}: {why}"))
}

/// Limit on the time of a proof, far above the usual seconds.
const PROOF_LIMIT: Duration = Duration::from_secs(600);
/// Time in which a false formula must not be proved.
const FAULT_LIMIT: Duration = Duration::from_secs(1);

/// A model over parameters without a value.
pub struct SymbolicModel {
    pub model: Compiled,
    defined: SymbolicConstants,
    names: Vec<String>,
    identities: Option<Identities>,
    pub sizes: Vec<AnySize>,
}

/// Returns the specification, its linear process over parameters without a value, the constants
/// that are parameters now, and the constants that have a component each.
fn linearise_model(
    tree: &Specification,
    constants: &[String],
    cores: Option<&ConstantCount>,
) -> (ProcSpec, LinearProcess, SymbolicConstants, Vec<String>) {
    let larger = cores.map(|c| constant_counts::unbounded_specification(tree, c, EXTRA_CONSTANTS));
    let (tree, names) = larger.as_ref().map_or((tree, Vec::new()), |l| (&l.0, l.1.clone()));
    let spec = mu_process::typecheck::check_specification(tree).unwrap();
    let list = cores.iter().flat_map(|c| &c.list);
    let open: Vec<String> = constants.iter().chain(list).cloned().collect();
    let options = match cores {
        Some(_) => linearise::LineariserOptions::of_any_number(&open),
        None => linearise::LineariserOptions::of_any_size(&open),
    };
    let process = linearise(&spec, &options).unwrap();
    let process = with_list(process, cores.and_then(|c| c.list.as_deref())).unwrap();
    let (process, defined) = with_parameters(process, constants).unwrap();
    (spec, process, defined, names)
}

/// Builds the model of a specification over constants without a value. `tree`: the specification
/// for a number of components, which may be any if `any_number` is true.
pub fn unbounded_model(
    tree: &dyn Fn(usize) -> Specification,
    constants: &[String],
    any_number: bool,
) -> SymbolicModel {
    let with_size = tree(SIZE);
    if !any_number {
        let (_, process, defined, _) = linearise_model(&with_size, constants, None);
        let model = Compiled::new(process, &Confluence::None).unwrap();
        return SymbolicModel {
            model,
            defined,
            names: constants.to_vec(),
            identities: None,
            sizes: vec![],
        };
    }
    let with_size_plus_one = tree(SIZE + 1);
    let counted = constant_counts::constants(SIZE, &with_size, &with_size_plus_one)
        .map_err(|d| d.what)
        .unwrap();
    let (spec, process, defined, names) = linearise_model(&with_size, constants, Some(&counted));
    let (_, larger, _, larger_names) =
        linearise_model(&with_size_plus_one, constants, Some(&counted.larger()));
    let model = Compiled::new(process, &Confluence::None).unwrap();
    let list = counted.list.as_deref();
    let replicas = Replicas::new(&model, &spec, &names, list, (&larger, &larger_names)).unwrap();
    let identities = Identities {
        sort: replicas.family.sort,
        constants: replicas.family.constants.clone(),
        count: SIZE,
        owner: replicas.owner.clone(),
        all: replicas.all.map(|slot| slot as usize),
    };
    let names = constants.to_vec();
    SymbolicModel { model, defined, names, identities: Some(identities), sizes: vec![] }
}

/// Reads the specification of ARCx with `any` for the number of operations, and of cores.
fn arcx(text: &str, with_cores: bool) -> SymbolicModel {
    arcx_of(text, with_cores, &[])
}

/// Reads it with `any` for the sizes of sorts as well: pairs of a parameter and a sort.
fn arcx_of(text: &str, with_cores: bool, any_size: &[(&str, &str)]) -> SymbolicModel {
    let sizes = if with_cores { vec!["num_cores".to_string()] } else { Vec::new() };
    let expand = |size: usize| {
        let mut sources = SourceMap::default();
        let mut any = vec![("max_operation_id".to_string(), "any".to_string())];
        any.extend(any_size.iter().map(|(name, _)| (name.to_string(), SIZE.to_string())));
        any.extend(sizes.iter().map(|name| (name.clone(), size.to_string())));
        expand_representative("arcx.spec", text, &any, &sizes, &mut sources).unwrap()
    };
    let constants: Vec<String> = expand(SIZE).constants.iter().map(|c| c.1.clone()).collect();
    let tree = |size: usize| {
        let out = expand(size);
        mu_syntax::parse_specification(out.source, &out.text).unwrap()
    };
    let mut model = unbounded_model(&tree, &constants, with_cores);
    let sorts: Vec<&str> = any_size.iter().map(|s| s.1).collect();
    model.sizes = self::any_size(&model, &sorts);
    model
}

/// Returns sorts of any size by name; constants with a number are those of which there may be any.
pub fn any_size(model: &SymbolicModel, sorts: &[&str]) -> Vec<AnySize> {
    let signature = &model.model.process().data.signature;
    let of = |sort: &str| {
        let named = (0..signature.sorts.len()).map(SortId::new);
        let mut named = named.filter_map(|s| Some((s, signature.sorts.declared_sort(s)?)));
        let (sort, own) = named.find(|(_, own)| own.name == sort).unwrap();
        let numbered = |op: &OpId| signature.op(*op).name.ends_with(|c: char| c.is_ascii_digit());
        let constants = own.constructors.iter().copied().filter(numbered).collect();
        AnySize { sort, constants }
    };
    sorts.iter().map(|sort| of(sort)).collect()
}

/// The sorts of ARCx of any size.
const ANY_SIZE: [(&str, &str); 2] = [("byte_size", "Byte"), ("address_size", "Address")];

/// Confirms a formula within a time.
pub fn confirm_within(
    model: &SymbolicModel,
    formula: &str,
    limit: Duration,
) -> Result<Verified, mu_base::Diagnostic> {
    let process = model.model.process();
    let rigid = &model.defined.rigid;
    let symbolic: Vec<(usize, i64)> = rigid.iter().map(|r| (r.param, r.least)).collect();
    let tree = mu_syntax::parse_formula(mu_base::SourceId::of(1), formula).unwrap();
    let formula = check_formula(&tree, &process.data, &process.actions).unwrap();
    let start = Instant::now();
    let is_over = || start.elapsed() > limit;
    let question = Question {
        process,
        initial: &model.defined.initial,
        symbolic: &symbolic,
        names: &model.names,
        constants: &model.defined.constants,
        formula: &formula,
        budget: &Budget::default(),
        most: None,
        certificate: false,
        identities: model.identities.as_ref(),
        sizes: &model.sizes,
    };
    let found = confirm(&question, &is_over);
    println!("{:?}, {found:?}", start.elapsed());
    found
}

/// Confirms the published formulas, or the one with the name in `ONLY`.
fn confirm_formulas(model: &SymbolicModel) {
    let only = std::env::var("ONLY").ok();
    let names = only.as_ref().map_or(FORMULAS.to_vec(), |only| vec![only.as_str()]);
    for name in names {
        let text = read(&format!("formulas/{name}.mcf"));
        let found = confirm_within(model, &text, PROOF_LIMIT);
        found.unwrap_or_else(|why| panic!("{name}: {why:?}"));
    }
}

/// `cargo test --release -p mu-check-zones published_formulas -- --ignored --nocapture`
#[test]
#[ignore = "takes seconds"]
fn published_formulas_are_confirmed() {
    let model = arcx(&read("specs/arcx.spec"), false);
    for name in FORMULAS {
        let text = read(&format!("formulas/{name}.mcf"));
        let found = confirm_within(&model, &text, PROOF_LIMIT);
        found.unwrap_or_else(|why| panic!("{name}: {why:?}"));
    }
}

/// `cargo test --release -p mu-check-zones every_number_of_cores -- --ignored --nocapture`; one
/// formula: `ONLY=cores/3.order`.
#[test]
#[ignore = "takes a minute"]
fn formulas_are_confirmed_for_every_number_of_cores() {
    let model = arcx(&read("specs/arcx.spec"), true);
    confirm_formulas(&model);
}

/// `cargo test --release -p mu-check-zones every_size_of_sorts -- --ignored --nocapture`; one
/// formula: `ONLY=cores/3.order`.
#[test]
#[ignore = "takes seconds"]
fn formulas_are_confirmed_for_every_size_of_sorts() {
    let model = arcx_of(&read("specs/arcx.spec"), true, &ANY_SIZE);
    confirm_formulas(&model);
}

/// A fault of the model, as a text and its replacement, with a formula that is false then.
const FAULTS: [(&str, &str, &str); 3] = [
    // A load does not wait for the write buffer.
    (
        "(forall n: Nat . ((n < m_wb_nr_buffers) => !m_buffer_has_addr(bs . n, a))) -> (",
        "true -> (",
        "1a.gos",
    ),
    // The own core observes a store twice.
    (
        "observe(core_id, g_address(bs . n), g_data(bs . n), g_nr(bs . n), core_id) .\n        wb",
        "observe(core_id, g_address(bs . n), g_data(bs . n), g_nr(bs . n), core_id) .\n        observe(core_id, g_address(bs . n), g_data(bs . n), g_nr(bs . n), core_id) .\n        wb",
        "1c.gos",
    ),
    // No other core observes.
    ("m_other_cores(c, m_all_cores)", "[]", "1b.gos"),
];

#[test]
fn faulty_models_are_not_confirmed() {
    for (from, to, name) in FAULTS {
        let text = read("specs/arcx.spec");
        assert_eq!(text.matches(from).count(), 1, "{from}");
        let text = text.replacen(from, to, 1);
        for with_cores in [false, true] {
            // The fault removes the only use of the list of all cores, without which the number of
            // cores cannot be any.
            if with_cores && to == "[]" {
                continue;
            }
            let formula = read(&format!("formulas/{name}.mcf"));
            for sizes in [&[][..], &ANY_SIZE] {
                let model = arcx_of(&text, with_cores, sizes);
                let found = confirm_within(&model, &formula, FAULT_LIMIT);
                let why = found.expect_err(name).message;
                println!("{name}: {why}");
            }
        }
    }
}
