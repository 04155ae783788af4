//! The traces and verdicts of Axe, if they are next to the package (`../shared/traces`).

use std::collections::HashMap;
use std::io::BufReader;
use std::path::Path;

use mu_base::Budget;
use mu_traces::readers::{Collected, ReadOptions, TraceReader, axe::Axe};
use mu_traces::{DecisionOptions, Trace, TraceModel, decide};

fn folder() -> Option<std::path::PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    path.is_dir().then_some(path)
}

fn read(path: &Path) -> Vec<Trace> {
    let mut all = Collected::default();
    let file = path.display().to_string();
    let mut log = BufReader::new(std::fs::File::open(path).expect("the file opens"));
    let options = ReadOptions { file, repair: false };
    Axe.read(&mut log, &options, &mut all).expect("the traces are correct");
    all.traces
}

/// All verdicts of Axe.
#[test]
fn verdicts_agree_with_axe() {
    let Some(folder) = folder() else { return };
    let expected = std::fs::read_to_string(folder.join("expected.tsv")).expect("verdicts");
    let mut lines = expected.lines();
    let models: Vec<TraceModel> = (lines.next().expect("a head").split('\t').skip(2))
        .filter_map(|name| TraceModel::by_name(&name.to_lowercase()))
        .collect();
    let mut verdicts: HashMap<(String, String), Vec<bool>> = HashMap::new();
    for line in lines {
        let cells: Vec<&str> = line.split('\t').collect();
        let row = cells[2..].iter().map(|c| *c == "OK").collect();
        verdicts.insert((cells[0].to_string(), cells[1].to_string()), row);
    }
    let only = std::env::var("TRACES_MODEL").ok();
    let (mut compared, mut wrong) = (0, Vec::new());
    for file in ["litmus.axe", "random.axe"] {
        for trace in read(&folder.join(file)) {
            let row = &verdicts[&(file.to_string(), trace.title())];
            for (model, expected) in models.iter().zip(row) {
                if only.as_deref().is_some_and(|o| o != model.name()) {
                    continue;
                }
                let verdict =
                    decide(&trace, model, &DecisionOptions::default(), &Budget::default());
                let verdict = verdict.unwrap_or_else(|e| panic!("{} {e}", trace.title()));
                compared += 1;
                if verdict.truth() != Some(*expected) {
                    wrong.push(format!("{file} {} {}: {verdict:?}", trace.title(), model.name()));
                }
            }
        }
    }
    println!("{compared} verdicts compared, {} differ", wrong.len());
    assert!(
        wrong.is_empty(),
        "{} of {compared} differ:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(5)].join("\n")
    );
}
