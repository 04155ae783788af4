//! Files in mCRL2's format: round trips and damaged files.

use super::super::aterm::{Term, TermWriter};
use super::super::typed::NumberSort;
use super::super::{Labels, Lts};
use super::write::{constant, named_sort, number};
use super::{MAGIC, read, write};
use mu_base::ids::{LabelId, StateId};
use mu_base::random::Random;

fn round_trip(lts: &Lts) -> Lts {
    let mut bytes = Vec::new();
    write(lts, None, &mut bytes).unwrap();
    assert!(bytes.starts_with(&MAGIC));
    read(&bytes[..]).unwrap()
}

fn rows(lts: &Lts) -> Vec<(usize, &str, u32)> {
    let of = |s| {
        lts.successors(StateId::new(s))
            .map(move |(l, t)| (s, lts.table.texts[l.index()].as_str(), t.number()))
    };
    (0..lts.state_count()).flat_map(of).collect()
}

const LABELS: [&str; 23] = [
    "a( 1)",
    "a",
    "a(0)",
    "a(1)",
    "a(-3)",
    "a(18446744073709551616)",
    "b(true)|c",
    "b(7)",
    "b([1, 2], x)",
    "c(f(x, {1, 2}), {:})",
    "d(x)|d(y)|e",
    "PUT !x",
    "f(1 / 2)",
    "",
    "|",
    "g()",
    "h((1)",
    "i(a|b)",
    "j(\"x\")",
    "k(007)",
    "k(-0)",
    "tau2",
    "l('ü')",
];

#[test]
fn systems_round_trip() {
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let states = 1 + random.below(9);
        let mut table = Labels::default();
        (0..random.below(LABELS.len())).for_each(|i| table.texts.push(LABELS[i].into()));
        let mut edges = Vec::new();
        for _ in 0..random.below(20) {
            let (s, l, t) =
                (random.below(states), random.below(table.texts.len()), random.below(states));
            edges.push((StateId::new(s), LabelId::new(l), StateId::new(t)));
        }
        let lts = Lts::from_edges(StateId::new(random.below(states)), states, &edges, table);
        let read = round_trip(&lts);
        assert_eq!(
            (lts.initial, lts.state_count(), rows(&lts)),
            (read.initial, read.state_count(), rows(&read)),
            "seed {seed}"
        );
    }
}

/// A system as mCRL2 writes it, constructed by hand: lists, sets and machine words in labels,
/// values of states.
#[test]
fn values_print_as_mcrl2_prints_them() {
    let mut bytes = Vec::new();
    let mut out = TermWriter::new(Box::new(&mut bytes), 16).unwrap();
    let mark = out.symbol("labelled_transition_system", 0).unwrap();
    out.output(mark, &[]).unwrap();
    for _ in 0..5 {
        out.output_number(0).unwrap();
    }
    let empty = out.symbol("<empty_list>", 0).unwrap();
    out.output(empty, &[]).unwrap();
    out.output(empty, &[]).unwrap();
    let op = |out: &mut TermWriter<'_>, name: &str| constant(out, name, "S").unwrap();
    let apply = |out: &mut TermWriter<'_>, name: &str, arguments: &[Term]| {
        let mut all = vec![constant(out, name, "S").unwrap()];
        all.extend(arguments);
        out.share("DataAppl", &all).unwrap()
    };
    let (two, nil, none, x) = (
        number(&mut out, &2.into(), NumberSort::Nat).unwrap(),
        op(&mut out, "[]"),
        op(&mut out, "{}"),
        op(&mut out, "x"),
    );
    let list = apply(&mut out, "|>", &[x, nil]);
    let list = apply(&mut out, "|>", &[two, list]);
    let finite = apply(&mut out, "@fset_insert", &[x, none]);
    let no = op(&mut out, "@false_");
    let set = apply(&mut out, "@set", &[no, finite]);
    let minus = number(&mut out, &(-5).into(), NumberSort::Int).unwrap();
    // Files of toolsets without machine numbers have numbers of single bits.
    let (one, yes) = (op(&mut out, "@c1"), op(&mut out, "true"));
    let three = apply(&mut out, "@cDub", &[yes, one]);
    let half = apply(&mut out, "@cReal", &[minus, three]);
    let name = out.share("send", &[]).unwrap();
    let no_sorts = out.share_list(&[]).unwrap();
    let declaration = out.share("ActId", &[name, no_sorts]).unwrap();
    let arguments = out.share_list(&[list, set, half]).unwrap();
    let action = out.share("Action", &[declaration, arguments]).unwrap();
    let actions = out.share_list(&[action]).unwrap();
    let real = named_sort(&mut out, "Real").unwrap();
    let undefined = out.share("@undefined_real", &[]).unwrap();
    let time = out.share("DataVarId", &[undefined, real]).unwrap();
    let transition = out.symbol("transition", 0).unwrap();
    let label = out.symbol("TimedMultAct", 2).unwrap();
    out.output(transition, &[]).unwrap();
    out.output_number(0).unwrap();
    out.output(label, &[actions, time]).unwrap();
    out.output_number(1).unwrap();
    let cell = out.symbol("<list_constructor>", 2).unwrap();
    out.output(cell, &[two, no_sorts]).unwrap();
    let start = out.symbol("initial_state", 0).unwrap();
    out.output(start, &[]).unwrap();
    out.output_number(1).unwrap();
    out.output_number(0).unwrap();
    out.finish().unwrap();
    let lts = read(&bytes[..]).unwrap();
    assert_eq!(rows(&lts), [(0, "send([2, x], {x}, -5 / 3)", 1)]);
}

#[test]
fn damage_is_rejected() {
    let mut table = Labels::default();
    table.texts.extend(["a(1, x)".to_string(), "b".into()]);
    let edges = [
        (StateId::of(0), LabelId::of(1), StateId::of(1)),
        (StateId::of(1), LabelId::of(2), StateId::of(0)),
        (StateId::of(1), LabelId::of(0), StateId::of(1)),
    ];
    let lts = Lts::from_edges(StateId::of(0), 2, &edges, table);
    let mut bytes = Vec::new();
    write(&lts, None, &mut bytes).unwrap();
    let mut refused = 0;
    for end in 0..bytes.len() - 16 {
        refused += u32::from(read(&bytes[..end]).is_err());
    }
    assert_eq!(refused as usize, bytes.len() - 16, "what is cut off is refused");
    let mut random = Random::new(1);
    for _ in 0..20_000 {
        let mut bad = bytes.clone();
        let at = random.below(bad.len());
        bad[at] ^= 1 << random.below(8);
        let _ = read(&bad[..]);
    }
    let version = read(&[0, 0x8b, 0xaf, 0x83, 0x01, 0, 0][..]).unwrap_err();
    assert!(version.message.contains("0x8301"), "{version:?}");
}
