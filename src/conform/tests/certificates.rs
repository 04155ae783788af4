//! Certificates of machines: the check accepts those of the search, and rejects those of other
//! machines, and all that were damaged.
//!
//! A damaged certificate may be accepted only if its states include those of the right one: then it
//! is another invariant. `MU_CHECK_SEED` is the first seed, `MU_CHECK_CASES` the number of damages.

mod machines;

use machines::{Barrier, Design, Forwarding, QueueVisibility, Sampling};
use mu_base::random::Random;
use mu_base::{Budget, Diagnostic, SourceId};
use mu_conform::every_length::certificate::{Certificate, certificate};
use mu_conform::every_length::decide::Subject;
use mu_conform::every_length::order::ProcessorOrder;
use mu_conform::every_length::verify::labels::LabelPart;
use mu_conform::every_length::verify::{NaiveMachine, VerificationCounts, verify};
use mu_conform::interface::Interface;
use mu_explore::{Options, Silent};
use mu_model::hand::HandModel;
use mu_model::{Model, Steps};
use std::collections::{BTreeMap, BTreeSet};

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |v| v.parse().expect("a number"))
}

const RIGHT: Design = Design { slots: [1, 1], stores_initial: true, ..Design::CORRECT_TSO };

/// A machine that is evaluated state by state; the text of a value is its number.
struct Evaluated(HandModel);

impl NaiveMachine for Evaluated {
    fn parameters(&self) -> usize {
        self.0.slots().len()
    }
    fn read(&mut self, values: &[Vec<String>]) -> Result<Vec<Vec<u32>>, Diagnostic> {
        let of = |text: &String| {
            text.parse().map_err(|_| Diagnostic::new(mu_base::Stage::File, text.clone()))
        };
        values.iter().map(|own| own.iter().map(of).collect()).collect()
    }
    fn initial(&mut self) -> Result<Vec<u32>, Diagnostic> {
        Ok(self.0.initial())
    }
    fn steps(&mut self, state: &[u32]) -> Result<Vec<(Vec<LabelPart>, Vec<u32>)>, Diagnostic> {
        let mut worker = self.0.worker();
        let mut out = Vec::new();
        let mut steps = Steps::default();
        for (i, group) in self.0.groups().iter().enumerate() {
            let reads: Vec<u32> = group.reads.iter().map(|s| state[*s as usize]).collect();
            steps.clear();
            worker.steps(i, &reads, &mut steps)?;
            for (j, label) in steps.labels.iter().enumerate() {
                let mut next = state.to_vec();
                let values = &steps.values[j * group.writes.len()..];
                group.writes.iter().zip(values).for_each(|(s, v)| next[*s as usize] = *v);
                let text = self.0.label_text(*label);
                let part = |t: &str| {
                    let (action, rest) = t.split_once('(').expect("arguments");
                    let rest = rest.trim_end_matches(')');
                    LabelPart {
                        action: action.into(),
                        arguments: rest.split(", ").map(String::from).collect(),
                    }
                };
                let label =
                    if text == "tau" { Vec::new() } else { text.split('|').map(part).collect() };
                out.push((label, next));
            }
        }
        Ok(out)
    }
}

/// Searches a machine and returns the certificate of an order.
fn certificate_of(design: Design, order: ProcessorOrder) -> Certificate {
    let model = design.model();
    let interface = Interface::parse(SourceId::FIRST, &design.interface()).unwrap();
    let (options, budget) = (Options { threads: 1, ..Options::default() }, Budget::default());
    let subject = Subject {
        machine: &model,
        interface: &interface,
        options: &options,
        budget: &budget,
        progress: &Silent,
    };
    let survey = subject.survey().unwrap();
    assert!(subject.search_coherence(&survey).unwrap().is_clean());
    assert!(subject.search_cycles(&survey, order).unwrap().is_clean());
    certificate(&subject, &survey, order, &|_, value| value.to_string()).unwrap()
}

fn check_certificate(
    design: Design,
    certificate: &Certificate,
) -> Result<VerificationCounts, Diagnostic> {
    let interface = Interface::parse(SourceId::FIRST, &design.interface()).unwrap();
    verify(certificate, &interface, &mut Evaluated(design.model()), &Budget::default())
}

/// Under partial store order a fence of two stores only is no fence of the patterns, so a
/// certificate that takes it for one that orders nothing proves nothing.
#[test]
fn certificates_of_pso_with_fences_of_stores_only_are_rejected() {
    let design = Design {
        slots: [2, 0],
        in_order: false,
        fence: Barrier::Correct,
        update: Barrier::Absent,
        ..RIGHT
    };
    let right = certificate_of(design, ProcessorOrder::Pso);
    let with = |fence: &str| {
        let interface = design.interface().replace("fence fence(p)", &format!("{fence} fence(p)"));
        let interface = Interface::parse(SourceId::FIRST, &interface).unwrap();
        verify(&right, &interface, &mut Evaluated(design.model()), &Budget::default())
    };
    for fence in ["fence", "fence r,rw"] {
        with(fence).unwrap_or_else(|why| panic!("{fence}: {}", why.message));
    }
    for fence in ["fence ww", "fence w,r"] {
        let why = with(fence).unwrap_err();
        assert!(why.message.contains("a certificate of `tso`"), "{fence}: {}", why.message);
    }
}

#[test]
fn certificates_of_the_search_are_accepted_and_those_of_other_machines_rejected() {
    let orders = [
        (Design { slots: [0, 0], ..RIGHT }, ProcessorOrder::Sc),
        (RIGHT, ProcessorOrder::Tso),
        (
            Design { slots: [1, 0], fence: Barrier::Correct, update: Barrier::Correct, ..RIGHT },
            ProcessorOrder::Tso,
        ),
        (Design { slots: [2, 0], in_order: false, ..RIGHT }, ProcessorOrder::Pso),
        (Design { slots: [1, 1], merges: true, absorbs: true, ..RIGHT }, ProcessorOrder::Tso),
        (Design { slots: [2, 0], merges: true, absorbs: true, ..RIGHT }, ProcessorOrder::Pso),
        (Design { slots: [0, 0], sampling: Some(Sampling::Begin), ..RIGHT }, ProcessorOrder::Sc),
        (Design { slots: [1, 0], sampling: Some(Sampling::End), ..RIGHT }, ProcessorOrder::Tso),
        (
            Design {
                slots: [0, 0],
                address_queue: Some(QueueVisibility::Visible),
                stores_initial: false,
                ..RIGHT
            },
            ProcessorOrder::Sc,
        ),
    ];
    for (design, order) in orders {
        let right = certificate_of(design, order);
        let found = check_certificate(design, &right)
            .unwrap_or_else(|why| panic!("{design:?}: {}", why.message));
        assert_eq!(found.states, right.states.len());
        assert!(found.values.is_some() && found.stopped.is_none(), "{design:?}: {found:?}");
        let read = Certificate::read(&right.text()).unwrap();
        assert_eq!(read, right);
        let faults = [
            Design { loses: true, ..design },
            Design { doubles: true, ..design },
            Design { aliases: true, ..design },
            Design { stale: true, ..design },
            Design { forwarding: Forwarding::Ignores, ..design },
            Design { fence: Barrier::Faulty, ..design },
            Design { torn: true, update: Barrier::Correct, ..design },
        ];
        for fault in faults {
            let buffered = fault.slots != [0, 0];
            // These need a buffer.
            let same = !buffered && !fault.aliases && !fault.stale && !fault.torn;
            let answer = check_certificate(fault, &right);
            assert_eq!(answer.is_ok(), same, "{fault:?}: {answer:?}");
        }
    }
}

/// The states of each product, of a certificate that can be read.
type Contents = BTreeMap<String, BTreeSet<(String, Vec<Option<String>>, Vec<String>)>>;

fn contents(c: &Certificate) -> Contents {
    let state = |at: &u32| {
        let row = c.states[*at as usize].iter().zip(&c.values);
        row.map(|(n, v)| v[*n as usize].clone()).collect::<Vec<String>>()
    };
    let mut out = Contents::new();
    for (guess, all) in &c.guesses {
        let own = out.entry(guess.clone()).or_default();
        for m in all {
            let open = m.open.iter().map(|o| o.map(|o| c.begun[o as usize].clone()));
            let open: Vec<Option<String>> = open.collect();
            own.extend(m.states.iter().map(|s| (m.monitor.clone(), open.clone(), state(s))));
        }
    }
    out
}

fn damage_text(text: &str, random: &mut Random) -> String {
    let mut lines: Vec<String> = text.lines().map(String::from).collect();
    let at = random.below(lines.len());
    match random.below(6) {
        0 => drop(lines.remove(at)),
        1 => {
            let line = lines[random.below(lines.len())].clone();
            lines[at] = line;
        }
        2 => {
            let other = random.below(lines.len());
            lines.swap(at, other);
        }
        // One character, or one word, is another one.
        3 | 4 => {
            let mut letters: Vec<char> = lines[at].chars().collect();
            let place = random.below(letters.len());
            let digits: Vec<char> = "0123456789-: arwf".chars().collect();
            letters[place] = *random.choose(&digits);
            lines[at] = letters.into_iter().collect();
        }
        _ => {
            let mut words: Vec<&str> = lines[at].split(' ').collect();
            let place = random.below(words.len());
            words.remove(place);
            lines[at] = words.join(" ");
        }
    }
    lines.join("\n")
}

fn damage(first: u64, cases: u64) {
    println!("seeds {first} to {}", first + cases - 1);
    let designs = [
        (Design { slots: [0, 0], ..RIGHT }, ProcessorOrder::Sc),
        (Design { slots: [1, 0], stores_initial: false, ..RIGHT }, ProcessorOrder::Tso),
        (Design { slots: [0, 0], sampling: Some(Sampling::End), ..RIGHT }, ProcessorOrder::Sc),
    ];
    let right = designs.map(|(design, order)| {
        let right = certificate_of(design, order);
        check_certificate(design, &right).unwrap();
        (design, right.text(), contents(&right), right.order.clone())
    });
    let (mut unread, mut refused, mut accepted) = (0, 0, 0);
    for seed in first..first + cases {
        let mut random = Random::new(seed);
        let (design, text, wanted, order) = &right[random.below(right.len())];
        let Ok(read) = Certificate::read(&damage_text(text, &mut random)) else {
            unread += 1;
            continue;
        };
        if check_certificate(*design, &read).is_err() {
            refused += 1;
            continue;
        }
        accepted += 1;
        let found = contents(&read);
        // Guesses that are not needed, and other values of roles, are harmless.
        let includes =
            wanted.iter().all(|(g, own)| found.get(g).is_some_and(|all| own.is_subset(all)));
        assert!(includes && read.order == *order, "seed {seed}: a certificate of fewer states");
    }
    println!("{unread} unreadable, {refused} refused, {accepted} unchanged or larger");
    assert!(refused > cases / 4);
}

#[test]
fn damaged_certificates_are_rejected() {
    damage(number("MU_CHECK_SEED", 0), number("MU_CHECK_CASES", 150));
}

/// cargo test --release -p mu-check-conform --test certificates -- --ignored --nocapture
#[test]
#[ignore = "minutes"]
fn thousands_of_damaged_certificates_are_rejected() {
    damage(number("MU_CHECK_SEED", 1000), number("MU_CHECK_CASES", 5000));
}
