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

const LABELS: [&str; 26] = [
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
    "a @ 3",
    "a @ 03",
    "tau @ 00",
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

/// Reads the text of an argument of a label, as the toolset shares it.
fn text_of_argument(argument: impl Fn(&mut TermWriter<'_>) -> Term) -> String {
    text_with_mappings(&[], argument)
}

/// Reads the text of an argument of a label in a file with mappings to `Bool`.
fn text_with_mappings(mappings: &[&str], argument: impl Fn(&mut TermWriter<'_>) -> Term) -> String {
    let mut bytes = Vec::new();
    let mut out = TermWriter::new(Box::new(&mut bytes), 16).unwrap();
    let mark = out.symbol("labelled_transition_system", 0).unwrap();
    out.output(mark, &[]).unwrap();
    (0..3).for_each(|_| out.output_number(0).unwrap());
    out.output_number(mappings.len() as u64).unwrap();
    for name in mappings {
        let (name, sort) = (out.share(name, &[]).unwrap(), named_sort(&mut out, "Bool").unwrap());
        let operation = out.symbol("OpIdNoIndex", 2).unwrap();
        out.output(operation, &[name, sort]).unwrap();
    }
    out.output_number(0).unwrap();
    let empty = out.symbol("<empty_list>", 0).unwrap();
    out.output(empty, &[]).unwrap();
    out.output(empty, &[]).unwrap();
    let (name, none) = (out.share("a", &[]).unwrap(), out.share_list(&[]).unwrap());
    let declaration = out.share("ActId", &[name, none]).unwrap();
    let argument = argument(&mut out);
    let arguments = out.share_list(&[argument]).unwrap();
    let action = out.share("Action", &[declaration, arguments]).unwrap();
    let actions = out.share_list(&[action]).unwrap();
    let time = variable(&mut out, "@undefined_real", "Real");
    let transition = out.symbol("transition", 0).unwrap();
    let label = out.symbol("TimedMultAct", 2).unwrap();
    out.output(transition, &[]).unwrap();
    out.output_number(0).unwrap();
    out.output(label, &[actions, time]).unwrap();
    out.output_number(0).unwrap();
    let start = out.symbol("initial_state", 0).unwrap();
    out.output(start, &[]).unwrap();
    out.output_number(1).unwrap();
    out.output_number(0).unwrap();
    out.finish().unwrap();
    rows(&read(&bytes[..]).unwrap())[0].1.to_string()
}

fn variable(out: &mut TermWriter<'_>, name: &str, sort: &str) -> Term {
    let (name, sort) = (out.share(name, &[]).unwrap(), named_sort(out, sort).unwrap());
    out.share("DataVarId", &[name, sort]).unwrap()
}

fn apply(out: &mut TermWriter<'_>, name: &str, arguments: &[Term]) -> Term {
    let mut all = vec![constant(out, name, "S").unwrap()];
    all.extend(arguments);
    out.share("DataAppl", &all).unwrap()
}

/// Shares the set of the Booleans that a function describes, with exceptions.
fn set(out: &mut TermWriter<'_>, function: Term, exceptions: Term) -> Term {
    let boolean = named_sort(out, "Bool").unwrap();
    let domain = out.share_list(&[boolean]).unwrap();
    let arrow = out.share("SortArrow", &[domain, boolean]).unwrap();
    let (of, name) = (out.share_list(&[arrow]).unwrap(), out.share("@set", &[]).unwrap());
    let sort = out.share("SortArrow", &[of, boolean]).unwrap();
    let head = out.share("OpIdNoIndex", &[name, sort]).unwrap();
    out.share("DataAppl", &[head, function, exceptions]).unwrap()
}

/// Shares `lambda v: Bool. v == w`.
fn equal_to(out: &mut TermWriter<'_>, v: &str, w: &str) -> Term {
    let (v, w) = (variable(out, v, "Bool"), variable(out, w, "Bool"));
    let (body, vars) = (apply(out, "==", &[v, w]), out.share_list(&[v]).unwrap());
    let kind = out.share("Lambda", &[]).unwrap();
    out.share("Binder", &[kind, vars, body]).unwrap()
}

/// Rewriting leaves numbers with bits that are not constant.
#[test]
fn numbers_with_variable_bits_are_no_numerals() {
    let text = text_of_argument(|out| {
        let (bit, one) = (variable(out, "b", "Bool"), constant(out, "@c1", "Pos").unwrap());
        apply(out, "@cDub", &[bit, one])
    });
    assert_eq!(text, "a(2 * (1) + if((b), 1, 0))");
}

#[test]
fn printed_functions_capture_no_variables() {
    let text = text_of_argument(|out| {
        let function = equal_to(out, "y", "x'");
        let (function, none) =
            (apply(out, "@not_", &[function]), constant(out, "{}", "S").unwrap());
        set(out, function, none)
    });
    assert_eq!(text, "a({ x'': Bool | !((lambda y: Bool. (y == x')))(x'') })");
    // The exception is the value of another variable named `y`.
    let text = text_of_argument(|out| {
        let (function, y) = (equal_to(out, "y", "z"), variable(out, "y", "Bool"));
        let none = constant(out, "{}", "S").unwrap();
        let exceptions = apply(out, "@fset_insert", &[y, none]);
        set(out, function, exceptions)
    });
    assert_eq!(text, "a({ x': Bool | ((lambda y: Bool. (y == z)))(x') != (x' in ({y})) })");
}

/// A bound variable with the name of a mapping: the other side of the equation is the mapping.
#[test]
fn printed_variables_capture_no_operations() {
    let constant_function = |out: &mut TermWriter<'_>| {
        let (v, d) = (variable(out, "d", "Bool"), constant(out, "d", "Bool").unwrap());
        let (body, vars) = (apply(out, "==", &[v, d]), out.share_list(&[v]).unwrap());
        let kind = out.share("Lambda", &[]).unwrap();
        out.share("Binder", &[kind, vars, body]).unwrap()
    };
    let text = text_with_mappings(&["c", "d"], constant_function);
    assert_eq!(text, "a(lambda d_var: Bool. (d_var == d))");
    let text = text_with_mappings(&["d", "d_var"], |out| equal_to(out, "d", "d"));
    assert_eq!(text, "a(lambda d_var_: Bool. (d_var_ == d_var_))");
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
