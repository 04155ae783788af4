//! Distributed search: `explore` and `check` with `--processes N`, or `--cluster HOSTS --process
//! I`, reported as one search.
//!
//! In: the model, which every process reads itself. Out: the counts of all processes, reported by
//! process 0. With `--processes`, this process starts the others: the same program with the same
//! arguments and `--process I`. Each of them listens on a free port of the loopback interface and
//! prints the port. It receives the secret and all addresses on its standard input, and treats the
//! end of its input as an interrupt. With `--cluster`, files contain all of that.
//!
//! Checkpoints are in a folder that all processes share ([`crate::pipeline::shares`]).
//!
//! Invariant: processes that this one started do not outlive it.

use crate::args::cluster::DistributedArgs;
use crate::args::exact_words::ExactWords;
use crate::args::{CheckpointArgs, Counting, EngineRef};
use crate::commands::check::CheckPlan;
use crate::commands::explore::counts::{ExplorationReport, Processes};
use crate::commands::explore::find_path::{DistributedPath, EndCounter, EndCounts};
use crate::commands::explore::plan::Exploration;
use crate::output;
use crate::output::progress::{Bar, group_digits};
use crate::pipeline::engines;
use crate::pipeline::folder_lock::Locks;
pub(crate) use crate::pipeline::hosts::run as across;
use crate::pipeline::load::{Loaded, properties};
use crate::pipeline::properties::FormulaText;
use crate::pipeline::shares::{self, Current, Rack, Shares};
use crate::pipeline::{self, Session, end_with_input, read_text};
use clap::CommandFactory;
use mu_base::diagnostic::LinePlace;
use mu_base::host::Instant;
use mu_base::{Budget, Diagnostic, Limits, Stage, Stop};
use mu_cluster::{
    ClusterOutcome, Connections, GroupPeers, GroupSearch, Identity, PartitionStore,
    PartitionStores, Party, ProcessPart, SearchGroup, Secret, explore, meet,
};
use mu_engines::Capability;
use mu_engines::Engine;
use mu_engines::cluster::Cluster;
use mu_engines::explicit::Explicit;
use mu_explore::{PathGoal, Peers, path_through};
use mu_formula::typed::TypedFormula;
use mu_model::{Model, Portable};
use serde_json::{Value, json};

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Time limit for processes on other machines to connect.
const WAIT: Duration = Duration::from_secs(300);
/// Time for the other processes to end by themselves.
const GRACE: Duration = Duration::from_secs(5);
/// Default port of process 0; process I uses this number plus I.
const PORT: u16 = 7117;
/// Number of bytes of a process's last error output that are stored.
const WORDS: usize = 1 << 14;

/// Rejects options that a distributed search does not support, before anything is read.
fn expect_cluster(
    distribution: &DistributedArgs,
    engine: EngineRef,
    threads: Option<u32>,
    capabilities: Vec<Capability>,
) -> Result<(), Diagnostic> {
    if distribution.process.is_some() && !distribution.is_requested() {
        return Err(Diagnostic::new(Stage::Usage, "`--process` is for `--cluster`"));
    }
    if !distribution.is_requested() {
        let alone = engine.name() == Cluster.name();
        let log_option = || {
            Diagnostic::new(Stage::Usage, "`--engine cluster` is for several processes")
                .note("add `--processes N` or `--cluster FILE`")
        };
        return if alone { Err(log_option()) } else { Ok(()) };
    }
    if ![Explicit.name(), Cluster.name()].contains(&engine.name()) {
        return cannot_combine(distribution, &format!("`--engine {}`", engine.name()));
    }
    if let Some(wish) = Cluster.unsupported_capability(&capabilities) {
        return cannot_combine(distribution, wish.words());
    }
    if threads.is_some_and(|n| n > 1) {
        let message = format!(
            "`--threads` cannot be combined with `{}`: each process has one thread",
            distribution.option()
        );
        return Err(Diagnostic::new(Stage::Usage, message).note("start one process for each core"));
    }
    Ok(())
}

fn cannot_combine(distribution: &DistributedArgs, what: &str) -> Result<(), Diagnostic> {
    Err(Diagnostic::new(
        Stage::Usage,
        format!("{what} cannot be combined with `{}`", distribution.option()),
    ))
}

/// Rejects options that a distributed `explore` does not support.
pub(crate) fn expect_possible(args: &Exploration, threads: Option<u32>) -> Result<(), Diagnostic> {
    expect_cluster(
        &args.distribution,
        args.engine,
        threads,
        engines::capabilities_of_explore(args),
    )?;
    if args.distribution.is_requested() && args.goal.divergence {
        return cannot_combine(&args.distribution, "`--divergence`");
    }
    if args.distribution.is_requested() && args.goal.all.is_some_and(|n| n > 1) {
        return cannot_combine(&args.distribution, "several paths (`--all`)");
    }
    Ok(())
}

/// Rejects options that a distributed `check` does not support.
pub(crate) fn expect_checkable(plan: &CheckPlan, threads: Option<u32>) -> Result<(), Diagnostic> {
    let (distribution, capabilities) = (&plan.distribution, engines::capabilities_of_check(plan));
    expect_cluster(distribution, plan.search.engine(), threads, capabilities)?;
    let unsupported = [
        (!plan.any.is_empty(), "`any` as a value of a parameter"),
        (plan.game.is_some(), "`--game`"),
        (properties(&plan.model).stored, Capability::Stored.words()),
        (plan.reads_input, "a formula on standard input"),
    ];
    match unsupported.iter().find(|(unsupported, _)| *unsupported && distribution.is_requested()) {
        Some((_, what)) => cannot_combine(distribution, what),
        None => Ok(()),
    }
}

/// The group of processes that check formulas together.
pub(crate) struct ProcessGroup {
    together: GroupPeers,
    children: Children,
    me: usize,
    /// Limits of this process.
    pub budget: Budget,
    current: Current,
    resumes: bool,
    _locks: Locks,
}

/// Connects to the other processes if `check` is distributed.
pub(crate) fn join(
    session: &Session,
    plan: &CheckPlan,
    model: &dyn Model,
) -> Result<Option<ProcessGroup>, Diagnostic> {
    if !plan.distribution.is_requested() {
        return Ok(None);
    }
    let basis = portable(model, &plan.model, &plan.distribution)?.encoding_fingerprint();
    let options = format!(
        "formulas {} {:?} {:?} {}",
        plan.search.confluence,
        plan.search.without,
        if plan.search.as_written { Counting::AllParameters } else { Counting::Merged },
        plan.search.witnesses
    );
    let fingerprint = format!("{options}; {basis}");
    let reports = plan.distribution.reports();
    let locks = if reports { Locks::of_checkpoints(&plan.checkpoints)? } else { Locks::default() };
    let checkpoints = |folder: &Path| {
        Ok((folder.to_path_buf(), shares::complete_checkpoints(folder, &fingerprint, reports)?))
    };
    let from = plan.checkpoints.resume.as_deref().map(checkpoints).transpose()?;
    if reports && from.as_ref().is_none_or(|(_, kept)| kept.is_empty()) {
        shares::mark(&plan.checkpoints, &fingerprint)?;
    }
    let begin: Vec<_> = from
        .iter()
        .flat_map(|f| &f.1)
        .map(|(name, stamp)| (name, stamp.run, stamp.number))
        .collect();
    let formulas: Vec<&str> = plan.texts.iter().map(|t| t.text.as_str()).collect();
    let searched = format!("{options} {} {begin:?}", plan.checkpoints.is_requested());
    let identity = || identity(&basis, &searched, &format!("{formulas:?}"));
    let (party, mut children, budget) = join_group(session, &plan.distribution, &identity)?;
    let connections = connect_all(session, &party, &budget, &mut children)?;
    let current = Current::default();
    let places = (party.me, party.addresses.len());
    let log_option = (session.common.verbose > 0, current.clone());
    let resumes = from.as_ref().is_some_and(|(_, kept)| !kept.is_empty());
    let rack = plan.checkpoints.folder().map(|f| {
        Rack::new(f, plan.checkpoints.checkpoint_every, fingerprint, places, from, log_option)
    });
    let together = GroupPeers::new(SearchGroup::new(
        connections,
        rack.map(|r| Box::new(r) as Box<dyn PartitionStores>),
    )?);
    Ok(Some(ProcessGroup {
        together,
        children,
        me: party.me,
        budget,
        current,
        resumes,
        _locks: locks,
    }))
}

impl ProcessGroup {
    /// True if this process reports.
    pub(crate) fn reports(&self) -> bool {
        self.me == 0
    }
    /// Returns the peers that search together, for this formula.
    pub(crate) fn peers(&self, text: &FormulaText, formula: &TypedFormula) -> &dyn Peers {
        let identity = text.identity(formula);
        let sum = crc32fast::hash(identity.as_bytes());
        *self.current.borrow_mut() = (format!("{}-{sum:08x}", text.stem), identity);
        &self.together
    }
    /// Ends the run. Returns the figures of the processes, as an object, and their memory.
    pub(crate) fn close(
        mut self,
        session: &Session,
        checkpoints: &CheckpointArgs,
        unknown: bool,
    ) -> (Value, u64) {
        let mut together = self.together.into_inner();
        let kept = (together.last_checkpoint().is_some() || self.resumes) && unknown;
        let parts = together.take_parts();
        let lost = together.close().map(|lost| self.children.last_words(&lost).unwrap_or(lost));
        let resume = checkpoints.folder().filter(|_| kept).map(resume_command);
        if let Some(lost) = lost.as_ref().filter(|_| self.me == 0 || !session.common.quiet) {
            eprintln!("the search is incomplete: {lost}");
        }
        if let Some(words) =
            resume.as_ref().filter(|_| (self.me == 0 || lost.is_some()) && !session.common.quiet)
        {
            eprintln!("to resume: {words}");
        }
        if lost.is_none() {
            self.children.end();
        }
        let memory = parts.iter().map(|p| p.memory).sum();
        log_traffic(session, &parts);
        (figures(&parts, &lost, resume), memory)
    }
}

/// Result of a distributed search.
struct DistributedResult {
    outcome: ClusterOutcome,
    /// Index of this process.
    me: usize,
    /// The command that resumes the search, if it ended early with a checkpoint.
    resume: Option<String>,
}

/// Counts states with the other processes. Returns the report if this is process 0, otherwise the
/// exit code.
pub(crate) fn run(
    session: &Session,
    args: &Exploration,
    loaded: &Loaded,
) -> Result<Result<ExplorationReport, u8>, Diagnostic> {
    let model = &*loaded.model;
    let DistributedResult { outcome, me, resume } = search(session, args, model, None)?;
    log(session, args, &outcome);
    if me > 0 {
        return Ok(Err(if outcome.stop == Stop::Complete { 0 } else { 3 }));
    }
    let sum = |of: fn(&ProcessPart) -> u64| outcome.sum(of);
    let report = ExplorationReport::explicit(
        sum(|p| p.tally.states),
        sum(|p| p.tally.transitions),
        sum(|p| p.tally.deadlocks),
        outcome.stop.clone(),
    );
    let ends = outcome.final_report.as_deref().and_then(total_ends);
    let processes = Processes {
        count: outcome.parts.len(),
        memory: sum(|p| p.memory),
        object: figures(&outcome.parts, &outcome.lost, resume),
    };
    let symmetries = Some(pipeline::symmetries(
        model.is_priority_proven(),
        outcome.symmetries,
        &args.without,
        &outcome.dropped,
    ));
    Ok(Ok(ExplorationReport { ends, processes: Some(processes), symmetries, ..report }))
}

/// Searches for a path with the other processes. Returns the exit code if another process reports.
/// `terminated`: number of terminations that this process has reached.
pub(crate) fn seek(
    session: &Session,
    args: &Exploration,
    model: &dyn Model,
    sought: PathGoal<'_>,
    terminated: &dyn Fn() -> u64,
) -> Result<Result<DistributedPath, u8>, Diagnostic> {
    let DistributedResult { outcome, me, resume } =
        search(session, args, model, Some((sought, terminated)))?;
    log(session, args, &outcome);
    let (states, stop) = (outcome.sum(|p| p.tally.states), outcome.stop.clone());
    if me > 0 {
        return Ok(Err(match (&outcome.path, stop) {
            (Some(_), _) => 1,
            (None, Stop::Complete) => 0,
            (None, _) => 3,
        }));
    }
    let options = session.explore_options(model, &args.without);
    let way = outcome
        .path
        .as_ref()
        .map(|states| path_through(model, &options, sought, states))
        .transpose()?;
    let of_process = |own: &Vec<u8>| own.as_slice().try_into().map(u64::from_le_bytes).ok();
    let of_all = outcome.final_report.as_ref().and_then(|all| all.iter().map(of_process).sum());
    Ok(Ok(DistributedPath {
        way,
        states,
        stop,
        // The report of an incomplete search has those of this process.
        terminated: of_all.unwrap_or_else(terminated),
        processes: figures(&outcome.parts, &outcome.lost, resume),
    }))
}

/// Connects to the other processes and searches with them. `sought`: the goal, if there is one, and
/// the number of terminations so far.
fn search(
    session: &Session,
    args: &Exploration,
    model: &dyn Model,
    sought: Option<(PathGoal<'_>, &dyn Fn() -> u64)>,
) -> Result<DistributedResult, Diagnostic> {
    let portable = portable(model, &args.model, &args.distribution)?;
    let goal = &args.goal;
    let looked_for = format!("{:?} {:?} {:?}", goal.kind(), goal.action, goal.terminal);
    let (basis, options) = (
        portable.encoding_fingerprint(),
        format!("{} {:?} {looked_for}", args.confluence, args.without),
    );
    let fingerprint = format!("{options}; {basis}");
    let reports = args.distribution.reports();
    let _locks = if reports { Locks::of_checkpoints(&args.checkpoints)? } else { Locks::default() };
    let from = shares::resume_point(args.checkpoints.resume.as_deref(), &fingerprint, reports)?;
    if reports && from.is_none() {
        shares::mark(&args.checkpoints, &fingerprint)?;
    }
    let begin = from.as_ref().map(|(_, stamp)| (stamp.run, stamp.number));
    let keeps = args.checkpoints.is_requested();
    let searched = format!("{options} {keeps} {begin:?}");
    let identity = || identity(&basis, &searched, "");
    let (party, mut children, budget) = join_group(session, &args.distribution, &identity)?;
    let connections = connect_all(session, &party, &budget, &mut children)?;
    let bar = Bar::new(party.me == 0 && !session.common.no_progress && !session.common.quiet);
    let options =
        mu_explore::Options { threads: 1, ..session.explore_options(model, &args.without) };
    let options = if sought.is_some() { options.without_confluence() } else { options };
    let counter = || EndCounter::new(model, &args.goal.terminal);
    let has_ends = sought.is_none() && counter()?.is_some();
    // Called again if a symmetry is refuted and the search is repeated.
    let mut ends = |share: &mut mu_explore::Partition<'_>, halted: bool| {
        if let Some((_, terminated)) = sought {
            return Ok(terminated().to_le_bytes().to_vec());
        }
        let counter = if has_ends && !halted { counter()? } else { None };
        let Some(mut counter) = counter else { return Ok(Vec::new()) };
        share.each_deadlock(&mut |state, states| counter.count(state, states));
        let EndCounts { terminated, finished, hangs } = counter.ends();
        Ok([terminated, finished, hangs].map(u64::to_le_bytes).concat())
    };
    let places = (party.me, party.addresses.len());
    let log_option = session.common.verbose > 0;
    let shares = args
        .checkpoints
        .folder()
        .map(|f| {
            Shares::new(f, args.checkpoints.checkpoint_every, fingerprint, places, from, log_option)
        })
        .transpose()?;
    let shelf = shares.as_ref().map(|s| s as &dyn PartitionStore);
    let task = GroupSearch {
        model,
        options: &options,
        budget: &budget,
        progress: &bar,
        extra: &mut ends,
        shelf,
        sought: sought.map(|(goal, _)| goal),
    };
    let result = explore(connections, task);
    bar.finish();
    let mut outcome = result?;
    if let Some(lost) = &mut outcome.lost {
        if let Some(words) = children.last_words(lost) {
            *lost = words;
        }
        if party.me == 0 || !session.common.quiet {
            eprintln!("the search is incomplete: {lost}");
        }
    } else {
        children.end();
    }
    let resume = shares
        .as_ref()
        .filter(|_| outcome.stop != Stop::Complete)
        .and_then(|shares| resume_command_of(args, shares, &outcome));
    // If a process is lost, which may be process 0, every other process prints the command to
    // resume.
    let prints_command = party.me == 0 || outcome.lost.is_some();
    if let Some(words) = resume.as_ref().filter(|_| prints_command && !session.common.quiet) {
        eprintln!("to resume: {words}");
    }
    Ok(DistributedResult { outcome, me: party.me, resume })
}

/// Computes the identity of this run. It reads the program file, so it is called only when no other
/// process waits for it.
type Identified<'a> = &'a dyn Fn() -> Result<Identity, Diagnostic>;

/// Returns the identity of this run, for the handshake.
fn identity(basis: &str, options: &str, formulas: &str) -> Result<Identity, Diagnostic> {
    let unread = |e: std::io::Error| Diagnostic::internal(format!("cannot read this program: {e}"));
    let program = std::env::current_exe().and_then(std::fs::File::open);
    Identity::new(&mut program.map_err(unread)?, basis, options, formulas).map_err(unread)
}

/// Returns the conversion of the model's values for other processes.
fn portable<'m>(
    model: &'m dyn Model,
    path: &Path,
    distribution: &DistributedArgs,
) -> Result<&'m dyn Portable, Diagnostic> {
    model.portable().ok_or_else(|| {
        let message =
            format!("the values of `{}` cannot be sent to other processes", path.display());
        Diagnostic::new(Stage::Unsupported, message)
            .note(format!("omit `{}`", distribution.option()))
    })
}

/// Returns the process's place in the group and its limits. Process 0 of `--processes` starts the
/// others. The memory limit is divided among the processes on this machine.
fn join_group(
    session: &Session,
    distribution: &DistributedArgs,
    identity: Identified<'_>,
) -> Result<(Party, Children, Budget), Diagnostic> {
    let (party, children, together) = match (distribution, distribution.processes) {
        (DistributedArgs { process: Some(me), .. }, Some(count)) => (
            join_search(session, *me as usize, count as usize, identity)?,
            Children::default(),
            count as usize,
        ),
        (_, Some(count)) => {
            let (party, children) = start(session, count as usize, identity)?;
            (party, children, count as usize)
        }
        (distribution, None) => {
            let (party, together) = group_of_list(session, distribution, identity)?;
            (party, Children::default(), together)
        }
    };
    let limits = *session.budget.limits();
    let budget = session.budget.with_limits(Limits {
        max_memory: limits.max_memory.map(|m| m / together as u64),
        ..limits
    });
    session.log(format!(
        "process {} of {}, at {}",
        party.me,
        party.addresses.len(),
        party.addresses[party.me]
    ));
    Ok((party, children, budget))
}

/// Connects to all other processes.
fn connect_all(
    session: &Session,
    party: &Party,
    budget: &Budget,
    children: &mut Children,
) -> Result<Connections, Diagnostic> {
    let met = meet(party, budget, WAIT, &mut || children.expect_alive());
    met.inspect_err(|error| {
        // A limit is reported as such; print the names of the missing processes here.
        let notes = error.notes.iter().filter(|_| error.stop.is_some() && !session.common.quiet);
        notes.for_each(|note| eprintln!("{note}"));
    })
}

/// Adds up the classified deadlocks of all processes.
fn total_ends(said: &[Vec<u8>]) -> Option<EndCounts> {
    let mut sum = [0u64; 3];
    for own in said {
        let own: &[u8; 24] = own.as_slice().try_into().ok()?;
        for (sum, n) in sum.iter_mut().zip(own.chunks_exact(8)) {
            *sum += u64::from_le_bytes(n.try_into().ok()?);
        }
    }
    let [terminated, finished, hangs] = sum;
    Some(EndCounts { terminated, finished, hangs })
}

/// Returns the command that resumes a search; `None` if there is no complete checkpoint.
fn resume_command_of(
    args: &Exploration,
    shares: &Shares,
    outcome: &ClusterOutcome,
) -> Option<String> {
    let last = outcome.kept?;
    let began = shares.resume_stamp().is_some_and(|stamp| stamp.number == last);
    Some(resume_command(if began { args.checkpoints.resume.as_deref()? } else { shares.folder() }))
}

/// Returns this command with `--resume`. Removes `--max-states`, which counts earlier states too:
/// the search would stop at once.
fn resume_command(folder: &Path) -> String {
    let mut words = vec!["mu-check".to_string()];
    let mut given = mu_base::host::arguments().into_iter().skip(1);
    while let Some(word) = given.next() {
        let of = |option: &str| word == option || word.starts_with(&format!("{option}="));
        if of("--checkpoint") || of("--resume") || of("--max-states") {
            if !word.contains('=') {
                given.next();
            }
            continue;
        }
        words.push(output::shell_quoted(&word));
    }
    format!("{} --resume {}", words.join(" "), output::shell_quoted(&folder.display().to_string()))
}

/// Returns the stored and sent data of the processes, as an object.
fn figures(parts: &[ProcessPart], lost: &Option<String>, resume: Option<String>) -> Value {
    let sum = |of: fn(&ProcessPart) -> u64| parts.iter().map(of).sum::<u64>();
    let (stored, sent) = (sum(|p| p.tally.stored), sum(|p| p.tally.sent_bytes));
    let each = |p: &ProcessPart| {
        json!({
            "stored": p.tally.stored,
            "store_bytes": p.tally.store_bytes,
            "sent_bytes": p.tally.sent_bytes,
            "peak_memory_bytes": p.memory,
        })
    };
    json!({
        "count": parts.len(),
        "stored": stored,
        "sent_states": sum(|p| p.tally.sent),
        "sent_bytes": sent,
        "sent_values": sum(|p| p.tally.values_sent),
        "bytes_per_state": sent as f64 / stored.max(1) as f64,
        "lost": lost,
        "resume": resume,
        "each": parts.iter().map(each).collect::<Vec<_>>(),
    })
}

fn log(session: &Session, args: &Exploration, outcome: &ClusterOutcome) {
    session.log_symmetries(outcome.symmetries, &args.without, &outcome.dropped);
    let states = outcome.sum(|p| p.tally.states);
    session.log(format!(
        "explored {} states ({} stored), {} transitions, {} levels in {:.3} s",
        group_digits(states),
        group_digits(outcome.sum(|p| p.tally.stored)),
        group_digits(outcome.sum(|p| p.tally.transitions)),
        outcome.levels(),
        outcome.elapsed.as_secs_f64()
    ));
    log_traffic(session, &outcome.parts);
}

fn log_traffic(session: &Session, parts: &[ProcessPart]) {
    let sum = |of: fn(&ProcessPart) -> u64| parts.iter().map(of).sum::<u64>();
    let sent = sum(|p| p.tally.sent_bytes);
    session.log(format!(
        "traffic: {} states sent in {} bytes, {:.2} bytes for each state stored; {} values",
        group_digits(sum(|p| p.tally.sent)),
        group_digits(sent),
        sent as f64 / sum(|p| p.tally.stored).max(1) as f64,
        group_digits(sum(|p| p.tally.values_sent))
    ));
    for (i, part) in parts.iter().enumerate() {
        session.log(format!(
            "process {i}: {} states stored, store of {} bytes, {} MiB at most",
            group_digits(part.tally.stored),
            group_digits(part.tally.store_bytes),
            part.memory >> 20
        ));
    }
}

/// Reads the group of a list of hosts. Returns it with the number of its processes on this machine.
fn group_of_list(
    session: &Session,
    distribution: &DistributedArgs,
    identity: Identified<'_>,
) -> Result<(Party, usize), Diagnostic> {
    let (Some(list), Some(me), Some(secret)) =
        (&distribution.cluster, distribution.process, &distribution.secret)
    else {
        return Err(Diagnostic::internal("a list of hosts without its other options"));
    };
    let me = me as usize;
    let addresses = hosts(list)?;
    let Some(own) = addresses.get(me) else {
        let message = format!(
            "there is no process {me}: `{}` lists {}, from 0",
            list.display(),
            addresses.len()
        );
        return Err(Diagnostic::new(Stage::Usage, message));
    };
    let host = |address: &str| address.rsplit_once(':').map_or("", |a| a.0).to_string();
    let together = addresses.iter().filter(|a| host(a) == host(own)).count();
    // The text of a secret is never printed.
    let hidden = |error: Diagnostic| match error.line {
        Some(line) => {
            Diagnostic { line: Some(Box::new(LinePlace { text: String::new(), ..*line })), ..error }
        }
        None => error,
    };
    let secret = Secret::of_text(&read_text(secret).map_err(hidden)?)?;
    let listen = distribution.listen.as_ref().unwrap_or(own);
    let places: Vec<SocketAddr> =
        listen.to_socket_addrs().map(Iterator::collect).unwrap_or_default();
    let listener = TcpListener::bind(&places[..]).map_err(|e| {
        let message = format!("cannot listen at `{listen}`: {e}");
        Diagnostic::new(Stage::File, message)
            .note("process I listens at line I of the list, from 0; `--listen ADDRESS:PORT` gives another address")
    })?;
    session.log(format!(
        "listens at {}",
        listener.local_addr().map(|a| a.to_string()).unwrap_or_default()
    ));
    Ok((Party { me, addresses, listener, secret, identity: identity()? }, together))
}

/// Reads the addresses in a list of hosts.
pub(crate) fn hosts(path: &Path) -> Result<Vec<String>, Diagnostic> {
    let text = read_text(path)?;
    let mut addresses: Vec<String> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let host = line.split('#').next().unwrap_or_default().trim();
        if host.is_empty() {
            continue;
        }
        let cannot_combine = |why: String| {
            Err(Diagnostic::in_line(Stage::File, number as u64 + 1, 1, line, why)
                .in_file(&path.display().to_string()))
        };
        if host.contains(char::is_whitespace) {
            return cannot_combine(format!(
                "`{host}` is not an address: expected `HOST` or `HOST:PORT`"
            ));
        }
        let ported = host.rsplit_once(':').is_some_and(|(h, port)| {
            port.parse::<u16>().is_ok() && (!h.contains(':') || h.ends_with(']'))
        });
        let port = usize::from(PORT) + addresses.len();
        let address = if ported { host.to_string() } else { format!("{host}:{port}") };
        if addresses.contains(&address) {
            return cannot_combine(format!(
                "`{address}` is listed twice: processes on one host need ports of their own"
            ));
        }
        addresses.push(address);
    }
    match addresses.len() {
        0 => Err(Diagnostic::new(Stage::File, format!("`{}` lists no host", path.display()))
            .note("expected a line `HOST:PORT` for each process")),
        1..=1024 => Ok(addresses),
        n => Err(Diagnostic::new(
            Stage::File,
            format!("`{}` lists {n} processes; at most 1024 search together", path.display()),
        )),
    }
}

fn loopback() -> Result<(TcpListener, SocketAddr), Diagnostic> {
    let bound = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr().map(|a| (l, a)));
    bound.map_err(|e| {
        Diagnostic::new(Stage::File, format!("cannot listen on the loopback interface: {e}"))
    })
}

/// Joins a search as a process that process 0 started; it sends the secret and all addresses.
fn join_search(
    session: &Session,
    me: usize,
    count: usize,
    identity: Identified<'_>,
) -> Result<Party, Diagnostic> {
    let (listener, address) = loopback()?;
    crate::output::print(&format!("{}\n", address.port()))?;
    let identity = identity()?;
    let mut line = String::new();
    let unread = || {
        Diagnostic::new(
            Stage::Usage,
            "`--process` with `--processes` is for processes that a search starts by itself",
        )
    };
    std::io::stdin().lock().read_line(&mut line).map_err(|_| unread())?;
    let mut words = line.split_whitespace();
    let secret = Secret::of_text(words.next().ok_or_else(unread)?)?;
    let addresses: Vec<String> = words.map(str::to_string).collect();
    if addresses.len() != count || me >= count {
        return Err(unread());
    }
    end_with_input(&session.budget);
    Ok(Party { me, addresses, listener, secret, identity })
}

/// Starts the other processes of a search on this machine.
fn start(
    session: &Session,
    count: usize,
    identity: Identified<'_>,
) -> Result<(Party, Children), Diagnostic> {
    let (listener, address) = loopback()?;
    let secret = Secret::random()?;
    let program = std::env::current_exe()
        .map_err(|e| Diagnostic::internal(format!("cannot locate this program: {e}")))?;
    let (texts, exact) = ExactWords::texts(mu_base::host::exact_arguments());
    let texts = crate::args::with_default_command(&crate::args::Cli::command(), texts);
    let words = exact.words(texts);
    let mut children = Children::default();
    for me in 1..count {
        let mut command = Command::new(&program);
        command.args(&words[1..2]).arg("--process").arg(me.to_string()).args(&words[2..]);
        children.start(me, &mut command)?;
    }
    let identity = identity()?;
    let mut addresses = vec![address.to_string()];
    for me in 1..count {
        addresses.push(format!("127.0.0.1:{}", children.port(me, &session.budget)?));
    }
    children.send_line(&format!("{} {}\n", secret.text(), addresses.join(" ")));
    Ok((Party { me: 0, addresses, listener, secret, identity }, children))
}

/// A process that this one started.
struct ChildProcess {
    me: usize,
    child: Child,
    /// Its standard input; dropping it ends the process.
    input: Option<ChildStdin>,
    /// Receives the first line that it prints, and nothing else.
    port: Receiver<String>,
    words: Arc<Mutex<Vec<u8>>>,
}

/// The processes that this one started; they end with this value.
#[derive(Default)]
struct Children(Vec<ChildProcess>);

impl Children {
    fn start(&mut self, me: usize, command: &mut Command) -> Result<(), Diagnostic> {
        let child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child =
            child.map_err(|e| Diagnostic::internal(format!("cannot start process {me}: {e}")))?;
        let (give, port) = channel();
        let words: Arc<Mutex<Vec<u8>>> = Arc::default();
        if let Some(out) = child.stdout.take() {
            std::thread::spawn(move || {
                let mut out = BufReader::new(out);
                let mut line = String::new();
                if out.read_line(&mut line).is_ok_and(|n| n > 0) {
                    let _ = give.send(line);
                }
                let _ = std::io::copy(&mut out, &mut std::io::sink());
            });
        }
        if let Some(mut err) = child.stderr.take() {
            let words = words.clone();
            std::thread::spawn(move || {
                let mut buffer = [0; 1024];
                while let Ok(n @ 1..) = err.read(&mut buffer) {
                    let mut words = words.lock().unwrap_or_else(PoisonError::into_inner);
                    words.extend(&buffer[..n]);
                    let over = words.len().saturating_sub(WORDS);
                    words.drain(..over);
                }
            });
        }
        let input = child.stdin.take();
        self.0.push(ChildProcess { me, child, input, port, words });
        Ok(())
    }

    /// Returns the port at which a process listens.
    fn port(&mut self, me: usize, budget: &Budget) -> Result<u16, Diagnostic> {
        let Some(other) = self.0.iter_mut().find(|o| o.me == me) else {
            return Err(Diagnostic::internal("a process that was not started"));
        };
        loop {
            match other.port.recv_timeout(Duration::from_millis(20)) {
                Ok(line) => {
                    return line.trim().parse().map_err(|_| {
                        Diagnostic::internal(format!("process {me} says `{}`", line.trim()))
                    });
                }
                Err(RecvTimeoutError::Timeout) => budget.check(0).map_err(Diagnostic::stopped)?,
                Err(RecvTimeoutError::Disconnected) => return Err(other.exit_error()),
            }
        }
    }

    /// Sends a line to all processes.
    fn send_line(&mut self, line: &str) {
        for other in &mut self.0 {
            // A process that has ended is noticed when it does not connect.
            let _ = other.input.as_mut().map(|i| i.write_all(line.as_bytes()));
        }
    }

    fn expect_alive(&mut self) -> Result<(), Diagnostic> {
        match self
            .0
            .iter_mut()
            .find_map(|o| matches!(o.child.try_wait(), Ok(Some(_))).then(|| o.exit_error()))
        {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Returns the error output and status of the process that a message is about.
    fn last_words(&mut self, lost: &str) -> Option<String> {
        let other = self.0.iter_mut().find(|o| lost.starts_with(&format!("process {}:", o.me)))?;
        // A process may take a moment to end after its connections have closed.
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(500) {
            if let Ok(Some(status)) = other.child.try_wait() {
                return Some(format!(
                    "process {}: it ended with {status}{}",
                    other.me,
                    other.error_output()
                ));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        None
    }

    /// Waits a while for all processes to end by themselves.
    fn end(&mut self) {
        let begin = Instant::now();
        while begin.elapsed() < GRACE
            && self.0.iter_mut().any(|o| matches!(o.child.try_wait(), Ok(None)))
        {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl ChildProcess {
    fn error_output(&self) -> String {
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&words);
        if text.trim().is_empty() { String::new() } else { format!(": {}", text.trim()) }
    }
    /// Returns the error for a process that ended before all were connected: by a signal, which it
    /// may have handled with the exit code of *unknown*, or with an error.
    fn exit_error(&mut self) -> Diagnostic {
        let status = self.child.wait();
        // Its last error output may still arrive.
        std::thread::sleep(Duration::from_millis(50));
        let how = status.as_ref().map_or_else(ToString::to_string, ToString::to_string);
        let message = format!("process {}: it ended with {how}{}", self.me, self.error_output());
        let lost = Diagnostic::stopped(Stop::Lost);
        let unknown = i32::from(lost.exit_code());
        if status.is_ok_and(|s| s.code().is_none_or(|code| code == unknown)) {
            eprintln!("the search is incomplete: {message}");
            return lost;
        }
        Diagnostic::new(Stage::File, message)
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        for other in &mut self.0 {
            let _ = other.child.kill();
            let _ = other.child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_a_signal_ends_is_lost() {
        for (command, stage) in
            [("exit 3", Stage::Limit), ("kill -9 $$", Stage::Limit), ("exit 2", Stage::File)]
        {
            let child = std::process::Command::new("sh").args(["-c", command]).spawn().unwrap();
            let (_, port) = std::sync::mpsc::channel();
            let mut process =
                ChildProcess { me: 1, child, input: None, port, words: Arc::default() };
            assert_eq!(process.exit_error().stage, stage, "{command}");
        }
    }

    #[test]
    fn lists_of_hosts_are_read_and_faults_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hosts");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            hosts(&path)
        };
        let list = read("# three\nnode1\nnode2:9000 # the second\n\n[::1]\n10.0.0.7:80\n").unwrap();
        assert_eq!(list, ["node1:7117", "node2:9000", "[::1]:7119", "10.0.0.7:80"]);
        assert!(read("# nothing\n").unwrap_err().message.contains("lists no host"));
        let twice = read("a:1\nb:1\na:1\n").unwrap_err();
        assert_eq!(twice.line.as_ref().map(|l| l.number), Some(3));
        assert!(read("node 1\n").unwrap_err().message.contains("`node 1` is not an address"));
    }
}
