//! Certificates of conformance for programs of every length: their files, and their check
//! (`verify MODEL INTERFACE FILE`).
//!
//! The layer `conform` has the content and the check; this file supplies the machine: its states as
//! values of the data language, and their naive evaluation.

use super::every_length::premises::{LABEL_ASSUMPTION, Premise};
use super::naive::NaiveProcess;
use super::sorts::Sorts;
use super::{LoadedMachine, load_machine};
use crate::args::{Operations, VerifyArgs};
use crate::output;
use crate::output::certificate::{CertificateReport, ResultPart};
use crate::output::progress::group_digits;
use crate::pipeline::Session;
use crate::pipeline::files::write_text;
use crate::pipeline::load::Origin;
use mu_base::host::Instant;
use mu_base::{Diagnostic, Stage, Stop};
use mu_conform::alphabet::Alphabet;
use mu_conform::every_length::certificate::{Certificate, HEAD, certificate};
use mu_conform::every_length::decide::Subject;
use mu_conform::every_length::order::ProcessorOrder;
use mu_conform::every_length::verify::{VerificationCounts, verify};
use mu_conform::interface::Interface;
use mu_data::print::expression;
use serde_json::json;
use std::fmt::Write;
use std::path::Path;

/// True if a text is a certificate of conformance.
pub(crate) fn is_certificate(text: &str) -> bool {
    text.lines().next() == Some(HEAD)
}

/// Writes the certificate of an order that a machine implements. Error: the machine is no
/// specification; a limit.
pub(super) fn write(
    session: &Session,
    machine: &LoadedMachine,
    interface: &Interface,
    (order, path): (ProcessorOrder, &Path),
) -> Result<(), Diagnostic> {
    output::begin_stage("writing the certificate");
    let compiled = machine.whole.compiled.as_ref().ok_or_else(no_specification)?;
    let model = &*machine.whole.model;
    let options = session.explore_options(model, &[]);
    let subject = Subject {
        machine: model,
        interface,
        options: &options,
        budget: &session.budget,
        progress: &mu_explore::Silent,
    };
    let survey = subject.survey()?;
    let signature = &compiled.process().data.signature;
    let value = |slot, id| expression(signature, &compiled.value(slot, id));
    let mut found = certificate(&subject, &survey, order, &value)?;
    found.defines = session.common.define.clone();
    write_text(path, &found.text())
}

fn no_specification() -> Diagnostic {
    Diagnostic::new(Stage::Unsupported, "only a specification has a certificate of conformance")
}

/// Verifies a certificate (`verify MODEL INTERFACE FILE`).
pub(crate) fn verify_certificate(
    session: &mut Session,
    args: &VerifyArgs,
    (text, file): (&str, &Path),
) -> Result<u8, Diagnostic> {
    let start = Instant::now();
    if !session.common.define.is_empty() {
        let text = "the certificate has the values of the parameters: `verify` takes no `-D`";
        return Err(Diagnostic::new(Stage::Usage, text));
    }
    let read = Certificate::read(text).map_err(|d| d.in_file(&file.display().to_string()))?;
    session.common.define = read.defines.clone();
    let (source, interface) = session.read_interface(&args.certificate)?;
    let interface = Interface::parse(source, &interface)?;
    let machine = load_machine(session, &interface, &Origin::File(&args.file), Operations::Any)?;
    let compiled = machine.whole.compiled.clone().ok_or_else(no_specification)?;
    let interface = &machine.interface;
    output::begin_stage("verifying");
    let mut naive = NaiveProcess::new(compiled.process())?;
    let found = verify(&read, interface, &mut naive, &session.budget).and_then(|found| {
        // Labels with a processor, an address, or a value match some line.
        let alphabet = Alphabet::of(interface, naive.label_texts())?;
        let mut sorted = interface.clone();
        let sorts = Sorts::check(&mut sorted, machine.typed_machine())?;
        sorts.expect_covered(&alphabet, machine.typed_machine(), &machine.declared)?;
        Ok(found)
    });
    let (code, word, why) = match &found {
        Ok(_) => (0, "proved", None),
        Err(d) if d.stop.is_some() => {
            let why = format!("stopped: {}", d.stop.as_ref().map_or("", Stop::word));
            (3, "unknown", Some(why))
        }
        Err(d) if d.stage == Stage::Unsupported => (1, "refused", Some(d.message.clone())),
        Err(d) => return Err(d.clone()),
    };
    let seconds = start.elapsed().as_secs_f64();
    let claim = ResultPart {
        text: format!(
            "model          {}, for programs of every length; {} processors, {} addresses\n",
            read.order,
            read.processors.len(),
            read.addresses.len()
        ),
        object: json!({
            "model": read.order, "operations": "any", "processors": read.processors,
            "addresses": read.addresses,
        }),
    };
    let check = match (&found, why) {
        (Ok(found), _) => Ok(verification_part(found)),
        (_, why) => Err(why.unwrap_or_default()),
    };
    let report = CertificateReport { verdict: word, claim, check, seconds };
    report.print(session.common.format)?;
    Ok(code)
}

/// Describes a successful check: its figures, and its premises.
fn verification_part(found: &VerificationCounts) -> ResultPart {
    let (checked, assumed) = list_premises(found);
    let mut text = format!(
        "verified       {} states, {} of products with {} patterns: {} checks of initiation, {} of consecution\n",
        group_digits(found.states as u64),
        group_digits(found.products as u64),
        group_digits(found.patterns as u64),
        group_digits(found.initiation as u64),
        group_digits(found.consecution as u64)
    );
    for (what, all) in [("checked", &checked), ("assumes", &assumed)] {
        for (i, g) in all.iter().enumerate() {
            let _ = writeln!(text, "{:15}{}", if i == 0 { what } else { "" }, g.text);
        }
    }
    let texts = |all: &[Premise]| all.iter().map(|g| g.text.clone()).collect::<Vec<_>>();
    let object = json!({
        "verified": {
            "states": found.states, "steps": found.steps, "patterns": found.patterns,
            "products": found.products, "initiation": found.initiation,
            "consecution": found.consecution,
        },
        "checked": texts(&checked),
        "assumed": texts(&assumed),
    });
    ResultPart { text, object }
}

/// Lists what the check of a certificate covers, and what is assumed.
fn list_premises(found: &VerificationCounts) -> (Vec<Premise>, Vec<Premise>) {
    let mut checked = vec![
        Premise::new("patterns", "no state of a product has the violation of its pattern"),
        Premise::new(
            "in_order",
            "an operation of a processor begins only after the previous one has ended",
        ),
        Premise::new("commits_possible", "every store that is issued can commit"),
    ];
    let mut assumed = Vec::new();
    match found.values {
        Some(pairs) => checked.push(Premise::new(
            "values",
            format!("values are interchangeable: in each of {pairs} pairs, one can replace the other everywhere, and at any one store"),
        )),
        None => assumed.push(Premise::new(
            "values",
            "values are interchangeable: not decided, because the machine has too many states",
        )),
    }
    match &found.stopped {
        None => checked.push(Premise::new("unbounded", "every processor can always begin a further operation")),
        Some(p) => assumed.push(Premise::new(
            "bounded",
            format!("programs are those that the machine runs to their end: after some runs `{p}` begins no further operation"),
        )),
    }
    assumed.push(Premise::new(
        "more_values",
        format!(
            "with more than {} values, the machine treats them as it treats these",
            found.value_count
        ),
    ));
    assumed.push(Premise::new("labels", LABEL_ASSUMPTION));
    (checked, assumed)
}
