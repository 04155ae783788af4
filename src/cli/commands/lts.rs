//! Commands on one transition system or game: figures, quotients and conversion (`reduce`, `info`,
//! `convert`).

use crate::args::{ConvertArgs, Format, InfoArgs, Modulo, ReduceArgs};
use crate::commands::compare::bound_names::first_of_equal_labels;
use crate::output;
use crate::output::print;
use crate::pipeline::Session;
use crate::pipeline::files::{
    expect_lts_name, is_parity_game, read_game, relabelled_system, write, write_lts, write_text,
};
use crate::pipeline::load::properties;
use mu_base::host::Instant;
use mu_base::ids::LabelId;
use mu_base::{Diagnostic, Stage, Stop};
use mu_frontends::Input;
use mu_game::{Game, Player, pg};
use mu_lts::Lts;
use mu_lts::equivalence::reduce as quotient;
use mu_lts::info::info;
use mu_report::layers;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

/// Prints the result of a command without a verdict that a limit stopped.
pub(crate) fn report_unknown(session: &Session, stop: &Stop) -> Result<u8, Diagnostic> {
    print_unknown(session, stop, json!({}))
}

/// Prints the result of a command with a verdict that a limit stopped.
pub(crate) fn unknown_verdict(session: &Session, stop: &Stop) -> Result<u8, Diagnostic> {
    print_unknown(session, stop, json!({ "verdict": "unknown" }))
}

fn print_unknown(session: &Session, stop: &Stop, mut result: Value) -> Result<u8, Diagnostic> {
    result["stop"] = stop.word().into();
    result["peak_memory_bytes"] = json!(session.peak_memory());
    match session.common.format {
        Format::Json => output::print_object(result)?,
        Format::Text => print(&format!("unknown ({})\n", stop.word()))?,
    }
    Ok(3)
}

/// Prints a note if the label `i`, which is internal in files of CADP, is visible, internal steps
/// matter, and there are no others.
pub(crate) fn note_internal(session: &Session, systems: &[&Lts], abstracts: bool) {
    let named = systems.iter().any(|lts| lts.table.texts.iter().skip(1).any(|label| label == "i"));
    let internal = systems.iter().any(|lts| lts.labels.contains(&LabelId::TAU));
    if abstracts && named && !internal && !session.common.quiet {
        eprintln!(
            "note: the label `i` is visible; in files of CADP it is the internal action: use `--internal i`"
        );
    }
}

pub(crate) fn reduce(session: &mut Session, args: &ReduceArgs) -> Result<u8, Diagnostic> {
    let Modulo::Labelled(equivalence) = args.equivalence else {
        return crate::commands::chance::reduce(session, args);
    };
    if let Some(out) = args.file() {
        expect_lts_name("--out ", out)?;
    }
    let relabel = args.relabelling.relabel()?;
    let start = Instant::now();
    let system = relabelled_system(session, &args.input, args.file(), &relabel);
    let (mut lts, typed) = match system {
        Err(Diagnostic { stop: Some(stop), .. }) => return report_unknown(session, &stop),
        system => system?,
    };
    let first = first_of_equal_labels(&lts.table.texts);
    lts.labels.iter_mut().for_each(|label| *label = LabelId::new(first[label.index()]));
    let (states, transitions) = (lts.state_count(), lts.transition_count());
    note_internal(session, &[&lts], equivalence.abstracts());
    let begin = Instant::now();
    crate::output::begin_stage("reducing");
    let small = quotient(&lts, equivalence, session.threads());
    session.log(format!(
        "reduced modulo {} in {:.3} s",
        equivalence.name(),
        begin.elapsed().as_secs_f64()
    ));
    if let Some(out) = args.file() {
        write_lts(&small, typed.as_ref(), out)?;
        session.log(format!("wrote {}", out.display()));
    }
    draw(session, args.draw.as_deref(), &args.input, &small)?;
    let stop = session.stop_with_bounds(Stop::Complete);
    match session.common.format {
        Format::Json => {
            let object = json!({
                "equivalence": equivalence.name(),
                "states": states,
                "transitions": transitions,
                "reduced": { "equivalence": equivalence.name(), "states": small.state_count(), "transitions": small.transition_count() },
                "seconds": start.elapsed().as_secs_f64(),
                "peak_memory_bytes": session.peak_memory(),
                "stop": stop.word(),
            });
            output::print_object(object)?;
        }
        Format::Text => print(&format!(
            "states       {states}\ntransitions  {transitions}\nreduced      {} states, {} transitions modulo {}\n",
            small.state_count(),
            small.transition_count(),
            equivalence.name()
        ))?,
    }
    Ok(0)
}

/// Draws a transition system if the user requested it.
fn draw(session: &Session, out: Option<&Path>, input: &Path, lts: &Lts) -> Result<(), Diagnostic> {
    let Some(out) = out else { return Ok(()) };
    let title = input.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let picture = layers::draw(lts, &title).map_err(|states| {
        Diagnostic::new(
            Stage::Usage,
            format!("`--draw {}`: {states} states are too many for a picture", out.display()),
        )
        .note(format!(
            "expected at most {}; use `--hide` and `reduce` to make it smaller",
            layers::MOST_STATES
        ))
    })?;
    write_text(out, &picture)?;
    session.log(format!("wrote {}", out.display()));
    Ok(())
}

pub(crate) fn show(session: &mut Session, args: &InfoArgs) -> Result<u8, Diagnostic> {
    if properties(&args.input).game {
        let game = match read_game(session, &args.input) {
            Err(Diagnostic { stop: Some(stop), .. }) => return report_unknown(session, &stop),
            game => game?,
        };
        return print_figures(session, &game_figures(&game));
    }
    let relabel = args.relabelling.relabel()?;
    let lts = match relabelled_system(session, &args.input, None, &relabel) {
        Err(Diagnostic { stop: Some(stop), .. }) => return report_unknown(session, &stop),
        system => system?.0,
    };
    draw(session, args.draw.as_deref(), &args.input, &lts)?;
    let i = info(&lts);
    // The specification was read for the transition system; read its parameters again for their
    // texts.
    let input = Input::file(&args.input);
    let params =
        session.with_loading(|loading| mu_frontends::of(&input).parameters(&input, loading))?;
    let actions: serde_json::Map<String, Value> =
        i.actions.iter().map(|(n, c)| (n.clone(), json!(c))).collect();
    if session.common.format == Format::Json {
        let object = json!({
            "states": i.states,
            "transitions": i.transitions,
            "unreachable": i.unreachable,
            "deadlocks": i.deadlocks,
            "divergences": i.divergences,
            "taus": i.taus,
            "labels": i.labels,
            "actions": actions,
            "branching": { "least": i.least_degree, "mean": i.mean_degree(), "most": i.most_degree },
            "deterministic": i.deterministic,
            "acyclic": i.acyclic,
            "declared": crate::commands::parameters::parameters_json(&params),
        });
        output::print_object(object)?;
        return Ok(0);
    }
    let yes = |b: bool| if b { "yes" } else { "no" };
    let mut text = String::new();
    let _ = writeln!(text, "states         {}", i.states);
    if i.unreachable > 0 {
        let _ = writeln!(text, "unreachable    {}", i.unreachable);
    }
    let _ = writeln!(text, "transitions    {} ({} tau)", i.transitions, i.taus);
    let _ = writeln!(text, "deadlocks      {}", i.deadlocks);
    let _ = writeln!(text, "divergences    {}", i.divergences);
    let _ = writeln!(
        text,
        "branching      {} to {}, {:.2} on average",
        i.least_degree,
        i.most_degree,
        i.mean_degree()
    );
    let _ = writeln!(text, "deterministic  {}", yes(i.deterministic));
    let _ = writeln!(text, "acyclic        {}", yes(i.acyclic));
    let _ = writeln!(text, "labels         {}", i.labels);
    let width = i.actions.iter().map(|(_, c)| c.to_string().len()).max().unwrap_or(0);
    for (name, count) in &i.actions {
        let _ = writeln!(text, "  {count:width$}  {name}");
    }
    for (i, p) in params.iter().enumerate() {
        let _ = writeln!(text, "{:15}{p}", if i == 0 { "parameters" } else { "" });
    }
    print(&text)?;
    Ok(0)
}

fn game_figures(game: &Game) -> Value {
    let mut priorities = std::collections::BTreeMap::<u32, usize>::new();
    game.priorities.iter().for_each(|p| *priorities.entry(*p).or_default() += 1);
    let by_priority: serde_json::Map<String, Value> =
        priorities.iter().map(|(p, n)| (p.to_string(), json!(n))).collect();
    json!({
        "vertices": game.vertex_count(),
        "edges": game.edge_count(),
        "initial": game.initial.number(),
        "even": game.owners.iter().filter(|o| **o == Player::Even).count(),
        "odd": game.owners.iter().filter(|o| **o == Player::Odd).count(),
        "priorities": by_priority,
    })
}

/// Prints a flat object: as JSON, or one line per key.
fn print_figures(session: &Session, figures: &Value) -> Result<u8, Diagnostic> {
    if session.common.format == Format::Json {
        output::print_object(figures.clone())?;
        return Ok(0);
    }
    let mut text = String::new();
    for (key, value) in figures.as_object().into_iter().flatten() {
        match value.as_object() {
            Some(rows) => {
                let rows: Vec<String> = rows.iter().map(|(k, v)| format!("{k}: {v}")).collect();
                let _ = writeln!(text, "{key:11}  {}", rows.join(", "));
            }
            None => {
                let _ = writeln!(text, "{key:11}  {value}");
            }
        }
    }
    print(&text)?;
    Ok(0)
}

pub(crate) fn convert(session: &mut Session, args: &ConvertArgs) -> Result<u8, Diagnostic> {
    if properties(&args.input).game {
        if !is_parity_game(&args.output) {
            let message = format!("`{}`: a game can only be written as .pg", args.output.display());
            return Err(Diagnostic::new(Stage::Usage, message));
        }
        let game = match read_game(session, &args.input) {
            Err(Diagnostic { stop: Some(stop), .. }) => return report_unknown(session, &stop),
            game => game?,
        };
        write(&args.output, |file| pg::write(&game, file))?;
        return report_conversion(
            session,
            args,
            json!({ "vertices": game.vertex_count(), "edges": game.edge_count() }),
        );
    }
    expect_lts_name("", &args.output)?;
    let relabel = args.relabelling.relabel()?;
    let system = relabelled_system(session, &args.input, Some(&args.output), &relabel);
    let (lts, typed) = match system {
        Err(Diagnostic { stop: Some(stop), .. }) => return report_unknown(session, &stop),
        system => system?,
    };
    write_lts(&lts, typed.as_ref(), &args.output)?;
    report_conversion(
        session,
        args,
        json!({ "states": lts.state_count(), "transitions": lts.transition_count() }),
    )
}

fn report_conversion(
    session: &Session,
    args: &ConvertArgs,
    mut figures: Value,
) -> Result<u8, Diagnostic> {
    session.log(format!("wrote {}", args.output.display()));
    if session.common.format == Format::Json {
        figures["output"] = json!(args.output.display().to_string());
        output::print_object(figures.clone())?;
    }
    Ok(0)
}
