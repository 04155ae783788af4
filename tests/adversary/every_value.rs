//! `-D N=any` against instances: every value of a parameter, compared with small values and with
//! those around each literal of the text.
//!
//! True requires that each instance is true. False names values: that instance is false, and each
//! with a smaller sum is not. An instance that a limit stops says nothing.

use super::driver::Tally;
use super::parameters::{Parameterised, parameterised_case};
use super::runs::{Answer, Folder};
use crate::support::tape::Tape;
use std::collections::{BTreeMap, BTreeSet};

/// Values of a single parameter, at least.
const VALUES: u64 = 9;
/// Sum of the values of several parameters.
const SUM: u64 = 5;
const LIMITS: &str = "--threads 1 --max-states 6000 --timeout 10";

/// Returns the instances to compare with.
fn instances(case: &Parameterised) -> Vec<Vec<u64>> {
    match &case.any[..] {
        [(_, least)] => {
            let most = if case.family == "counters" { VALUES } else { least + 3 };
            let mut values: BTreeSet<u64> = (*least..most).collect();
            if case.family == "counters" {
                values.extend(
                    case.literals
                        .iter()
                        .flat_map(|l| [l.saturating_sub(1), *l, l + 1, l + 2, l + 3])
                        .filter(|v| *v < 14),
                );
            }
            values.into_iter().map(|v| vec![v]).collect()
        }
        several => {
            let mut found = vec![Vec::new()];
            for (_, least) in several {
                found = found
                    .iter()
                    .flat_map(|f: &Vec<u64>| (*least..=SUM).map(|v| [&f[..], &[v]].concat()))
                    .collect();
            }
            found.retain(|f| f.iter().sum::<u64>() <= SUM + 2);
            found.sort_by_key(|f| f.iter().sum::<u64>());
            found
        }
    }
}

fn defines(case: &Parameterised, values: &[u64]) -> String {
    case.any.iter().zip(values).map(|((name, _), v)| format!("-D {name}={v} ")).collect()
}

/// Returns the answers for every value, with the instance of each false one.
fn for_all(
    folder: &Folder,
    case: &Parameterised,
    engine: &str,
) -> Result<Vec<(Answer, Vec<u64>)>, String> {
    let any: String = case.any.iter().map(|(name, _)| format!("-D {name}=any ")).collect();
    let files: String = (0..case.formulas.len()).map(|i| format!("f{i}.mcf ")).collect();
    let run = folder.run(&format!(
        "check p.spec {files}{any}{engine} --threads 1 --timeout 20 --max-states 20000"
    ));
    let answers = run.answers(case.formulas.len())?;
    let none = Vec::new();
    let results = run.json["results"].as_array().unwrap_or(&none);
    let of = |i: usize| -> Vec<u64> {
        let text = results.get(i).and_then(|r| r["for"].as_str()).unwrap_or_default();
        let value = |name: &str| {
            text.split(", ").find_map(|part| part.strip_prefix(&format!("{name} = "))?.parse().ok())
        };
        case.any.iter().filter_map(|(name, _)| value(name)).collect()
    };
    Ok(answers.into_iter().enumerate().map(|(i, a)| (a, of(i))).collect())
}

/// Compares one case.
pub fn compare(
    seed: u64,
    tape: &mut Tape,
    family: &str,
    folder: &Folder,
    tally: &mut Tally,
) -> Result<(), String> {
    let case = parameterised_case(tape, family);
    folder.write("p.spec", &case.text);
    for (i, formula) in case.formulas.iter().enumerate() {
        folder.write(&format!("f{i}.mcf"), formula);
    }
    let engine =
        ["", "--engine explicit", "--engine symbolic", "--engine auto"][(seed % 4) as usize];
    let files: String = (0..case.formulas.len()).map(|i| format!("f{i}.mcf ")).collect();
    let said = |what: String| {
        format!("{what}\n--- p.spec\n{}--- formulas\n{}", case.text, case.formulas.join("\n"))
    };
    let found = for_all(folder, &case, engine).map_err(|e| said(format!("any {engine}: {e}")))?;
    let mut each: BTreeMap<Vec<u64>, Vec<Answer>> = BTreeMap::new();
    for values in instances(&case) {
        let run = folder.run(&format!("check p.spec {files}{}{LIMITS}", defines(&case, &values)));
        each.insert(
            values.clone(),
            run.answers(case.formulas.len())
                .map_err(|e| said(format!("instance {values:?}: {e}")))?,
        );
    }
    for (i, (answer, values)) in found.iter().enumerate() {
        let formula = &case.formulas[i];
        let row =
            |wanted: &Answer| each.iter().find(|(_, a)| a[i] == *wanted).map(|(v, _)| v.clone());
        let decided =
            each.values().filter(|a| matches!(a[i], Answer::True | Answer::False)).count();
        match answer {
            Answer::True => {
                tally.count(&format!("{family} true"), decided as u64);
                if let Some(values) = row(&Answer::False) {
                    return Err(said(format!(
                        "any {engine}: true, but false for {values:?}: {formula}"
                    )));
                }
            }
            Answer::False => {
                tally.count(&format!("{family} false"), decided as u64);
                if let Some(known) = each.get(values)
                    && known[i] == Answer::True
                {
                    return Err(said(format!(
                        "any {engine}: false for {values:?}, but that instance is true: {formula}"
                    )));
                }
                let sum = values.iter().sum::<u64>();
                let smaller =
                    each.iter().find(|(v, a)| v.iter().sum::<u64>() < sum && a[i] == Answer::False);
                if let Some((smaller, _)) = smaller {
                    return Err(said(format!(
                        "any {engine}: false for {values:?} as the least, but false for {smaller:?}: {formula}"
                    )));
                }
            }
            // The check of single values found an error of the abstraction.
            Answer::Open(why) if why.contains("the analysis of the model is wrong") => {
                return Err(said(format!("any {engine}: {formula}: {why}")));
            }
            Answer::Open(_) => tally.open(&format!("{family} open"), 1),
            Answer::Refused(why) => {
                // What every instance refuses is refused.
                if decided > 0 {
                    return Err(said(format!(
                        "any {engine}: refused, but instances are decided: {formula}: {why}"
                    )));
                }
                tally.open(&format!("{family} refused"), 1);
            }
        }
    }
    Ok(())
}
