//! Distributed searches with threads in place of processes, each with a model, connected by
//! sockets.

use super::inside::{Inside, Settings, answer, budget, compile, complete_counts};
use super::plain::Found;
use super::runs::{Answer, Counts};
use mu_check::base::Diagnostic;
use mu_check::cluster::{GroupPeers, Identity, Party, SearchGroup, Secret, meet};
use mu_check::engines::cluster::Cluster;
use mu_check::engines::{Engine, EngineOptions, EngineTask, Subject};
use mu_check::explore::CountExtras;
use std::net::TcpListener;
use std::time::Duration;

/// Answers of a process.
type Said = (Vec<Answer>, Option<Counts>);

/// By options of `check` and of `explore`, both with a number of processes.
///
/// # Errors
/// Those of any process.
pub fn by_processes(inside: &Inside, check: &str, explore: &str) -> Result<Found, String> {
    let settings = Settings::of(check);
    let counting = (explore != "-").then(|| Settings::of(explore));
    let listeners: Vec<TcpListener> = (0..settings.processes)
        .map(|_| TcpListener::bind("127.0.0.1:0").expect("a socket"))
        .collect();
    let addresses: Vec<String> =
        listeners.iter().map(|l| l.local_addr().expect("its address").to_string()).collect();
    let secret = Secret::random().map_err(|d| d.message)?;
    let said: Vec<Result<Said, String>> = std::thread::scope(|scope| {
        let threads: Vec<_> = listeners
            .into_iter()
            .enumerate()
            .map(|(me, listener)| {
                let identity = Identity::new(&mut &b""[..], "", "", "").expect("digests");
                let party = Party {
                    me,
                    addresses: addresses.clone(),
                    listener,
                    secret: secret.clone(),
                    identity,
                };
                let (settings, counting) = (&settings, counting.as_ref());
                let work = move || run_process(inside, settings, counting, &party);
                std::thread::Builder::new()
                    .stack_size(64 << 20)
                    .spawn_scoped(scope, work)
                    .expect("a thread")
            })
            .collect();
        threads
            .into_iter()
            .map(|t| t.join().unwrap_or_else(|_| Err("panic: a process".into())))
            .collect()
    });
    let mut all = said.into_iter().collect::<Result<Vec<Said>, String>>()?;
    let (answers, counts) = all.swap_remove(0);
    for (others, other) in &all {
        if *others != answers || *other != counts {
            return Err(format!(
                "processes disagree: {others:?} and {answers:?}, {other:?} and {counts:?}"
            ));
        }
    }
    Ok(Found { answers: answers.into_iter().map(Some).collect(), counts, more: 0 })
}

/// Runs one process.
fn run_process(
    inside: &Inside,
    settings: &Settings,
    counting: Option<&Settings>,
    party: &Party,
) -> Result<Said, String> {
    let failed = |d: Diagnostic| format!("processes: {}", d.message);
    let budget = budget(None, 30_000);
    let model = compile(inside.linear.clone(), &settings.confluence())?;
    let formulas = inside.formulas_over(&model)?;
    let connections =
        meet(party, &budget, Duration::from_secs(20), &mut || Ok(())).map_err(failed)?;
    let allies = GroupPeers::new(SearchGroup::new(connections, None).map_err(failed)?);
    let counts = match counting {
        Some(counting) => {
            let options = EngineOptions { peers: Some(&allies), ..counting.options(&model) };
            complete_counts(Cluster.count(
                &model,
                EngineTask { capabilities: &[], options: &options, budget: &budget },
                CountExtras::default(),
            ))?
        }
        None => None,
    };
    let options = EngineOptions { peers: Some(&allies), ..settings.options(&model) };
    let mut answers = Vec::new();
    for formula in &formulas {
        let task = EngineTask { capabilities: &[], options: &options, budget: &budget };
        let found = Cluster.check(Subject { model: &model, labels: &model }, formula, task);
        answers.push(answer(found.map(|found| found.answer.verdict))?);
    }
    Ok((answers, counts))
}
