//! `conform` on random machines with random interfaces: verdicts compared with a simulation, and a
//! place for every error.
//!
//! `MU_CHECK_CASES` machines from `MU_CHECK_SEED` on. A [`Design`] is a machine of two processors
//! with or without store buffers, forwarding, fences, updates and faults, under random names. It is
//! written as mCRL2 with an interface in which every production of the grammar occurs, and
//! simulated here step by step, without code of the layer `conform`. The histories of the
//! simulation, judged by the axioms, say what the answer must be; a test that is printed must be
//! forbidden by `litmus`, and its names must lead to the labels of the run. Each production also
//! occurs in wrong forms ([`WRONG`]): the error must stand at the offending text. A production or a
//! wrong form that no case made fails the test.

use crate::support::mu_check;
use mu_check::axioms::EventKind;
use mu_check::axioms::history::{History, HistoryChecker, Operation};
use mu_check::axioms::models::{MemoryOrdering, by_name};
use mu_check::base::SourceMap;
use mu_check::base::random::Random;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |v| v.parse().expect("a number"))
}

/// Names of processors, addresses and values, the initial value first; with their sorts.
struct Style {
    sorts: [&'static str; 3],
    names: [[&'static str; 2]; 3],
    /// The initial value as an expression.
    initial: &'static str,
}

const STYLES: [Style; 4] = [
    Style {
        sorts: ["struct P1 | P0", "struct y | x", "struct v1 | v0"],
        names: [["P1", "P0"], ["y", "x"], ["v1", "v0"]],
        initial: "v1",
    },
    Style {
        sorts: ["struct left | right", "struct B | A", "struct one | zero"],
        names: [["left", "right"], ["B", "A"], ["zero", "one"]],
        initial: "\"if(true, zero, one)\"",
    },
    Style {
        sorts: ["Pos", "Nat", "Int"],
        names: [["1", "2"], ["0", "1"], ["0", "1"]],
        initial: "\"1 - 1\"",
    },
    Style {
        sorts: ["Nat", "Pos", "Bool"],
        names: [["1", "0"], ["2", "1"], ["false", "true"]],
        initial: "false",
    },
];

/// A machine.
#[derive(Clone, Debug)]
struct Design {
    style: usize,
    slots: usize,
    fifo: bool,
    forward: bool,
    stale: bool,
    fence: Option<bool>,
    update: bool,
    split: [bool; 2],
    marks: bool,
    /// Loads and stores are one action, distinguished by its first argument.
    single: bool,
    /// The order of arguments is changed.
    turned: bool,
    /// The machine waits for a program.
    waits: bool,
    /// Treatment of the labels of buffers: hidden, internal by name, internal by pattern,
    /// observed.
    drain: usize,
}

impl Design {
    fn random(random: &mut Random) -> Design {
        let split = [random.chance(1, 3), random.chance(1, 4)];
        let single = split == [false; 2] && random.chance(1, 3);
        Design {
            style: random.below(STYLES.len()),
            slots: random.below(3),
            fifo: random.chance(2, 3),
            forward: random.chance(3, 4),
            stale: random.chance(1, 6),
            fence: random.chance(1, 3).then(|| random.chance(2, 3)),
            update: random.chance(1, 4),
            split,
            marks: random.chance(1, 5),
            single,
            turned: random.chance(1, 2),
            waits: split == [false; 2] && !single && random.chance(1, 3),
            drain: random.below(4),
        }
    }
    fn style(&self) -> &'static Style {
        &STYLES[self.style]
    }
    fn is_numeric(&self) -> bool {
        self.style >= 2
    }
    /// Puts arguments in the order of the labels.
    fn order_arguments<T>(&self, mut all: Vec<T>) -> Vec<T> {
        if self.turned {
            all.reverse();
        }
        all
    }
    fn label(&self, action: &str, arguments: &[&str]) -> String {
        let joined = self.order_arguments(arguments.to_vec()).join(", ");
        match action {
            "ld" | "st" if self.single => format!("access(k_{action}, {joined})"),
            _ => format!("{action}({joined})"),
        }
    }
    fn sorts(&self, of: &str) -> String {
        let all: Vec<&str> =
            of.chars().map(|c| ["Core", "Addr", "Data"]["cad".find(c).unwrap()]).collect();
        self.order_arguments(all).join(" # ")
    }

    fn specification(&self) -> String {
        let [core, addr, data] = self.style().sorts;
        let initial = self.style().names[2][0];
        let [all_c, all_a, all_d]: [Vec<String>; 3] = [("c", 0), ("a", 1), ("d", 2)]
            .map(|(v, at)| self.style().names[at].iter().map(|n| format!("{v} == {n}")).collect());
        let some = |all: &[String]| format!("({})", all.join(" || "));
        let (c, a, d) = (some(&all_c), some(&all_a), some(&all_d));
        let waits = if self.waits { "m_" } else { "" };
        let mut steps = Vec::new();
        let mut add = |sums: &str, guard: String, label: String, next: &str| {
            let guard = guard.replace("C,", &c).replace("A,", &a).replace("D,", &d);
            steps.push(format!("(sum {sums} . ({guard}) -> {label} . M({next}))"));
        };
        let act =
            |action: &str, arguments: &[&str]| format!("{waits}{}", self.label(action, arguments));
        let (room, kept) = match self.slots {
            0 => ("true".to_string(), "m = m[a -> d]"),
            n => (format!("#b(c) < {n}"), "b = b[c -> b(c) <| ent(a, d)]"),
        };
        let stores = format!("C, && A, && D, && d != {initial} && w(c) == idle");
        if self.split[1] {
            add(
                "c: Core, a: Addr, d: Data",
                stores,
                act("bs", &["c", "a", "d"]),
                "w = w[c -> storing(a, d)]",
            );
            let next = format!("{kept}, w = w[c -> idle]");
            add(
                "c: Core, a: Addr, d: Data",
                format!("C, && A, && D, && w(c) == storing(a, d) && {room}"),
                act("es", &["c"]),
                &next,
            );
        } else {
            add(
                "c: Core, a: Addr, d: Data",
                format!("{stores} && {room}"),
                act("st", &["c", "a", "d"]),
                kept,
            );
        }
        let found =
            if self.forward { "if(inside(a, b(c)), youngest(a, b(c)), m(a))" } else { "m(a)" };
        let stale = if self.stale { format!(" || d == {initial}") } else { String::new() };
        let value = format!("(d == {found}{stale})");
        if self.split[0] {
            add(
                "c: Core, a: Addr",
                "C, && A, && w(c) == idle".into(),
                act("bl", &["c", "a"]),
                "w = w[c -> loading(a)]",
            );
            let guard = format!("C, && A, && D, && w(c) == loading(a) && {value}");
            add("c: Core, a: Addr, d: Data", guard, act("el", &["c", "d"]), "w = w[c -> idle]");
        } else {
            add(
                "c: Core, a: Addr, d: Data",
                format!("C, && A, && D, && w(c) == idle && {value}"),
                act("ld", &["c", "a", "d"]),
                "",
            );
        }
        if self.slots > 0 {
            let drained = self.label("drain", &["c", "a", "d"]);
            let first = "C, && A, && D, && b(c) != [] && head(b(c)) == ent(a, d)".to_string();
            add(
                "c: Core, a: Addr, d: Data",
                first,
                drained.clone(),
                "m = m[a -> d], b = b[c -> tail(b(c))]",
            );
            if !self.fifo && self.slots > 1 {
                let second =
                    "C, && A, && D, && #b(c) == 2 && b(c) . 1 == ent(a, d) && adr(head(b(c))) != a"
                        .to_string();
                add(
                    "c: Core, a: Addr, d: Data",
                    second,
                    drained,
                    "m = m[a -> d], b = b[c -> [head(b(c))]]",
                );
            }
        }
        if let Some(waiting) = self.fence {
            let empty = if waiting { " && b(c) == []" } else { "" };
            add("c: Core", format!("C, && w(c) == idle{empty}"), act("fence", &["c"]), "");
        }
        if self.update {
            let guard = format!("C, && A, && D, && d != {initial} && w(c) == idle && b(c) == []");
            let arguments = self.order_arguments(vec!["c", "a", "m(a)", "d"]).join(", ");
            add(
                "c: Core, a: Addr, d: Data",
                guard,
                format!("{waits}xchg({arguments})"),
                "m = m[a -> d]",
            );
        }
        let hidden = if self.drain == 0 { "drain" } else { "mark" };
        let mut actions = vec![
            ("bs", "cad"),
            ("es", "c"),
            ("st", "cad"),
            ("bl", "ca"),
            ("el", "cd"),
            ("ld", "cad"),
            ("fence", "c"),
            ("xchg", "cadd"),
        ];
        if self.single {
            actions.retain(|x| !["ld", "st"].contains(&x.0));
        }
        let mut declared = String::new();
        for (name, sorts) in &actions {
            declared += &format!("act {name}, m_{name}, do_{name}: {};\n", self.sorts(sorts));
        }
        declared += &format!(
            "act drain: {};\nact access: Kind # {};\nact mark: Bool # Kind;\n",
            self.sorts("cad"),
            self.sorts("cad")
        );
        let init =
            format!("M(lambda a: Addr . {initial}, lambda c: Core . [], lambda c: Core . idle)");
        let init = if self.waits {
            let comm: Vec<String> =
                actions.iter().map(|(n, _)| format!("m_{n} | do_{n} -> {n}")).collect();
            let allowed: Vec<&str> = actions.iter().map(|a| a.0).chain(["drain"]).collect();
            format!("allow({{{}}}, comm({{{}}}, {init}))", allowed.join(", "), comm.join(", "))
        } else {
            init
        };
        format!(
            "sort Core = {core}; Addr = {addr}; Data = {data}; Kind = struct k_ld | k_st;\n\
             Ent = struct ent(adr: Addr, dat: Data); Pend = struct idle | loading(Addr) | storing(Addr, Data);\n\
             map inside: Addr # List(Ent) -> Bool; youngest: Addr # List(Ent) -> Data;\n\
             var a: Addr; e: Ent; b: List(Ent);\n\
             eqn inside(a, []) = false; inside(a, e |> b) = adr(e) == a || inside(a, b);\n\
             inside(a, b) -> youngest(a, e |> b) = youngest(a, b); !inside(a, b) -> youngest(a, e |> b) = dat(e);\n\
             {declared}proc M(m: Addr -> Data, b: Core -> List(Ent), w: Core -> Pend) =\n    {};\ninit hide({{{hidden}}}, {init});\n",
            steps.join("\n  + ")
        )
    }

    /// Writes the lines of the interface, each with the production that it is.
    fn interface(&self) -> Vec<(&'static str, String)> {
        let text = |action: &str, letters: &str| {
            let letters =
                self.order_arguments(letters.chars().map(|c| c.to_string()).collect()).join(", ");
            if self.single && ["ld", "st"].contains(&action) {
                format!("access(\"k_{action}\", {letters})")
            } else {
                format!("{action}({letters})")
            }
        };
        let (load, store) =
            if self.marks { ("load acquire", "store release") } else { ("load", "store") };
        let mut lines = vec![("initial", format!("initial {};", self.style().initial))];
        lines.push(match self.split[1] {
            true => (
                "store begin -> end",
                format!("{store} {} -> {};", text("bs", "pav"), text("es", "p")),
            ),
            false => ("store", format!("{store} {};", text("st", "pav"))),
        });
        lines.push(match self.split[0] {
            true => (
                "load begin -> end",
                format!("{load} {} -> {};  // begins, ends", text("bl", "pa"), text("el", "pv")),
            ),
            false => ("load", format!("{load} {};", text("ld", "pav"))),
        });
        if self.marks {
            lines.push(("marks", String::new()));
        }
        if self.single {
            lines.push(("text", String::new()));
        }
        if self.fence.is_some() {
            lines.push(("fence", "fence fence(p);".into()));
        }
        if self.update {
            lines.push(("update", format!("update {};", text("xchg", "pavw"))));
        }
        lines.extend(match self.drain {
            1 => Some(("internal", "internal drain, mark;".to_string())),
            2 => Some(("internal label", "internal mark(_, _), drain(_, _, _);".into())),
            3 => Some(("observe", format!("observe {};", text("drain", "pav")))),
            _ => None,
        });
        if self.waits {
            let does = |action: &str, letters: &str| text(&format!("do_{action}"), letters);
            lines.push((
                "program",
                format!("program load {}; program store {};", does("ld", "pa_"), does("st", "pav")),
            ));
            if self.fence.is_some() {
                lines.push(("program", "program fence do_fence(p);".into()));
            }
            if self.update {
                lines.push(("program", format!("program update {};", does("xchg", "pa_w"))));
            }
            let [cores, addresses, values] = self.style().names;
            if self.is_numeric() {
                lines.push((
                    "used",
                    format!(
                        "processors {}; addresses {}; values {};",
                        cores.join(", "),
                        addresses.join(", "),
                        values[1]
                    ),
                ));
            }
        }
        if self.style == 0 {
            lines.push(("numbers", "numbers from 1;".into()));
        }
        lines
    }
}

/// A state of the simulation: memory, buffers, the operation at work and the history of each
/// processor.
#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    memory: [u64; 2],
    buffers: [Vec<(u32, u64)>; 2],
    at: [Option<Operation>; 2],
    did: [Vec<Operation>; 2],
}

/// Simulates all histories of at most two operations per processor in which all operations have
/// ended.
fn simulate(design: &Design) -> BTreeSet<History> {
    let start = State {
        memory: [0; 2],
        buffers: Default::default(),
        at: [None; 2],
        did: Default::default(),
    };
    let (mut met, mut open) = (HashSet::from([start.clone()]), vec![start]);
    let mut out = BTreeSet::new();
    let mark = |kind| match kind {
        EventKind::Read if design.marks => MemoryOrdering::Acquire,
        EventKind::Write if design.marks => MemoryOrdering::Release,
        _ => MemoryOrdering::Plain,
    };
    let operation = |kind, location, value, read| Operation {
        read,
        mark: mark(kind),
        ..Operation::plain(kind, location, value)
    };
    while let Some(s) = open.pop() {
        if s.at == [None; 2] && s.did.iter().any(|d| !d.is_empty()) {
            out.insert(History { threads: s.did.to_vec(), last: vec![] }.canonical());
        }
        let mut next: Vec<State> = Vec::new();
        for c in 0..2 {
            let mut go = |change: &dyn Fn(&mut State)| {
                let mut t = s.clone();
                change(&mut t);
                next.push(t);
            };
            let put = |t: &mut State, o: Operation| {
                match design.slots {
                    0 => t.memory[o.location as usize] = o.value,
                    _ => t.buffers[c].push((o.location, o.value)),
                }
                t.did[c].push(o);
            };
            let has_room = design.slots == 0 || s.buffers[c].len() < design.slots;
            let values = |a: u32| {
                let own = s.buffers[c].iter().rev().find(|e| e.0 == a).filter(|_| design.forward);
                let mut all = vec![own.map_or(s.memory[a as usize], |e| e.1)];
                if design.stale {
                    all.push(0);
                }
                all
            };
            match s.at[c] {
                Some(o) if o.kind == EventKind::Write && has_room => go(&|t| {
                    put(t, o);
                    t.at[c] = None;
                }),
                // A store waits for room in the buffer.
                Some(o) if o.kind == EventKind::Write => {}
                Some(o) => {
                    for v in values(o.location) {
                        go(&|t| {
                            t.did[c].push(Operation { value: v, ..o });
                            t.at[c] = None;
                        });
                    }
                }
                None if s.did[c].len() < 2 => {
                    for a in 0..2 {
                        let store = operation(EventKind::Write, a, 1, 0);
                        match design.split[1] {
                            true => go(&|t| t.at[c] = Some(store)),
                            false if has_room => go(&|t| put(t, store)),
                            false => {}
                        }
                        match design.split[0] {
                            true => go(&|t| t.at[c] = Some(operation(EventKind::Read, a, 0, 0))),
                            false => values(a).into_iter().for_each(|v| {
                                go(&|t| t.did[c].push(operation(EventKind::Read, a, v, 0)))
                            }),
                        }
                        if design.update && s.buffers[c].is_empty() {
                            go(&|t| {
                                t.did[c].push(operation(
                                    EventKind::Update,
                                    a,
                                    1,
                                    s.memory[a as usize],
                                ));
                                t.memory[a as usize] = 1;
                            });
                        }
                    }
                    if design.fence.is_some_and(|waiting| !waiting || s.buffers[c].is_empty()) {
                        go(&|t| t.did[c].push(operation(EventKind::Fence, 0, 0, 0)));
                    }
                }
                None => {}
            }
            let drained = |i: usize| {
                move |t: &mut State| {
                    let (a, v) = t.buffers[c].remove(i);
                    t.memory[a as usize] = v;
                }
            };
            if !s.buffers[c].is_empty() {
                go(&drained(0));
            }
            if !design.fifo && s.buffers[c].len() == 2 && s.buffers[c][0].0 != s.buffers[c][1].0 {
                go(&drained(1));
            }
        }
        for t in next {
            if met.insert(t.clone()) {
                open.push(t);
            }
        }
    }
    out
}

/// Takes the mark out of a text, and returns its place.
fn split_at_mark(text: &str) -> (String, String) {
    let at = text.find('§').unwrap_or_else(|| panic!("no mark: {text}"));
    let line = text[..at].matches('\n').count() + 1;
    let column = text[..at].rsplit('\n').next().unwrap().chars().count() + 1;
    (text.replacen('§', "", 1), format!("{line}:{column}: "))
}

/// A wrong form: its name, whether a design has it, what is made of the lines, and a part of the
/// message. `§` stands before the offending text.
type Wrong = (&'static str, fn(&Design) -> bool, fn(&Design, &mut Vec<String>), &'static str);

fn always(_: &Design) -> bool {
    true
}
fn add(lines: &mut Vec<String>, line: &str) {
    lines.push(line.to_string());
}
fn plain(d: &Design) -> bool {
    !d.split[0] && !d.split[1] && !d.single
}
/// Lists letters in the order of the arguments of the design.
fn letters(d: &Design, all: &[&str]) -> String {
    d.order_arguments(all.to_vec()).join(", ")
}

const WRONG: [Wrong; 37] = [
    (
        "initial: outside of the sort",
        always,
        |_, l| l[0] = "initial §nonsense;".into(),
        "`nonsense` is not a value of the sort",
    ),
    (
        "initial: another sort",
        |d| !d.is_numeric(),
        |d, l| l[0] = format!("initial §{};", d.style().names[1][0]),
        "is not a value of the sort Data",
    ),
    (
        "initial: no expression",
        always,
        |_, l| l[0] = "initial §\"((\";".into(),
        "is not a value of the sort",
    ),
    (
        "initial: missing",
        always,
        |_, l| {
            l.remove(0);
            add(l, "§");
        },
        "the initial value of memory is missing",
    ),
    ("initial: twice", always, |_, l| add(l, "§initial zero;"), "a second initial value"),
    ("line: unknown word", always, |_, l| add(l, "§lode ld(p, a, v);"), "unknown keyword `lode`"),
    ("line: no end", always, |_, l| add(l, "fence fence(p) §"), "expected `;`"),
    ("line: no action", always, |_, l| add(l, "load §(p, a, v);"), "expected an action"),
    ("line: no bracket", always, |_, l| add(l, "load ld(p, a, v§;"), "expected `)`"),
    (
        "line: twice",
        plain,
        |d, l| l.push(format!("store §st({});", letters(d, &["p", "a", "v"]))),
        "a label can match",
    ),
    (
        "line: overlap",
        plain,
        |d, l| {
            l.push(format!("update §st({});", letters(d, &["p", "a", "v"]).replace('v', "v, w")))
        },
        "`st` has 3 arguments in the model, 4 here",
    ),
    (
        "action: unknown",
        always,
        |_, l| add(l, "load §nothing(p, a, v);"),
        "the model has no action `nothing`",
    ),
    (
        "action: arity",
        always,
        |_, l| add(l, "load §es(p, a, v);"),
        "`es` has 1 arguments in the model, 3 here",
    ),
    (
        "letter: unknown",
        always,
        |_, l| add(l, "load ld(p, §x, v);"),
        "`x` is not a role of an argument",
    ),
    ("letter: twice", always, |_, l| add(l, "load ld(p, §p, v);"), "`p` occurs twice in one label"),
    (
        "letter: missing",
        always,
        |_, l| add(l, "load §ld(p, a, _);"),
        "this load has no argument `v`",
    ),
    (
        "letter: no processor",
        always,
        |_, l| add(l, "store §st(_, a, v);"),
        "this store has no argument `p`",
    ),
    (
        "letter: another sort",
        always,
        |d, l| {
            l.push(format!(
                "observe do_bs({});",
                d.order_arguments(vec!["v", "a", "p"]).join(", ").replacen(
                    if d.turned { "p" } else { "v" },
                    if d.turned { "§p" } else { "§v" },
                    1
                )
            ))
        },
        "in another line",
    ),
    (
        "letter: no number",
        |d| !d.is_numeric(),
        |d, l| l.push(format!("observe do_bs({});", letters(d, &["p", "a", "§n"]))),
        "operations are counted by numbers",
    ),
    (
        "letter: q in a load",
        always,
        |_, l| add(l, "load §ld(p, a, v, q);"),
        "`q` is for observations",
    ),
    ("store: w", always, |_, l| add(l, "store §st(p, a, v, w);"), "`w` is for updates"),
    (
        "update: no w",
        always,
        |_, l| add(l, "update §xchg(p, a, v, _);"),
        "this update has no argument `w`",
    ),
    (
        "fence: address",
        always,
        |_, l| add(l, "fence §fence(p, a);"),
        "a fence has neither address nor value",
    ),
    (
        "begin -> end: numbers",
        always,
        |_, l| add(l, "load §bl(p, n) -> el(p, a, v);"),
        "a load must have a number in both",
    ),
    (
        "text: outside of the sort",
        |d| !d.single,
        |d, l| l.push(format!("load access(§\"k_lode\", {});", letters(d, &["p", "a", "v"]))),
        "`k_lode` is not a value of the sort Kind",
    ),
    (
        "numbers: no from",
        |d| d.style != 0,
        |_, l| add(l, "numbers §form 1;"),
        "expected `from` and a number",
    ),
    (
        "numbers: twice",
        |d| d.style == 0,
        |_, l| add(l, "§numbers from 0;"),
        "a second `numbers` line",
    ),
    (
        "observe: no processor",
        always,
        |_, l| add(l, "observe §drain(_, a, v);"),
        "this observation has no argument `p`",
    ),
    (
        "internal: unknown",
        always,
        |_, l| add(l, "internal §nothing;"),
        "the model has no action `nothing`",
    ),
    (
        "internal: arity",
        always,
        |_, l| add(l, "internal §es(_, _);"),
        "`es` has 1 arguments in the model, 2 here",
    ),
    ("internal: an operation", plain, |_, l| add(l, "internal §st;"), "`st` is internal here"),
    (
        "internal: twice",
        |d| ![1, 2].contains(&d.drain),
        |_, l| add(l, "internal mark(_, _), §mark(_, _);"),
        "is listed as internal twice",
    ),
    (
        "program: no kind",
        always,
        |_, l| add(l, "program §read ld(p);"),
        "`read` is not a kind of operation",
    ),
    (
        "program: done by the machine",
        |d| plain(d) && !d.waits,
        |d, l| l.push(format!("program store §st({});", letters(d, &["p", "a", "v"]))),
        "the machine performs `st` itself",
    ),
    (
        "program: no expression",
        |d| plain(d) && !d.waits,
        |d, l| {
            l.push(format!("program store do_st({});", letters(d, &["p", "a", "§\"wrong(v)\""])))
        },
        "is not an expression of the sort",
    ),
    (
        "used: outside of the sort",
        |d| !d.waits,
        |_, l| add(l, "addresses §nonsense;"),
        "`nonsense` is not a value of the sort",
    ),
    (
        "used: twice",
        |d| !d.waits,
        |d, l| l.push(format!("processors {0}, §{0};", d.style().names[0][0])),
        "occurs twice among the processors",
    ),
];

fn wrong_forms(
    design: &Design,
    machine: &str,
    path: &Path,
    made: &mut BTreeMap<&'static str, usize>,
    random: &mut Random,
    faults: &mut Vec<String>,
) {
    let file = path.display().to_string();
    let lines: Vec<String> = design.interface().into_iter().map(|l| l.1).collect();
    // Those that were made least often come first.
    let mut all: Vec<&Wrong> = WRONG.iter().filter(|w| w.1(design)).collect();
    let start = random.below(all.len());
    all.rotate_left(start);
    all.sort_by_key(|w| made.get(w.0).copied().unwrap_or(0));
    for (name, _, change, message) in all.into_iter().take(6) {
        let mut lines = lines.clone();
        change(design, &mut lines);
        let (text, place) = split_at_mark(&lines.join("\n"));
        std::fs::write(path, &text).unwrap();
        let outcome = mu_check(&["conform", machine, "--interface", &file, "--against", "sc"]);
        let expected = format!("machine.interface:{place}error: ");
        if outcome.code != 2
            || !outcome.stderr.contains(&expected)
            || !outcome.stderr.contains(message)
        {
            faults
                .push(format!("{name}: expected {expected}{message}\n{text}\n{}", outcome.stderr));
        }
        *made.entry(name).or_default() += 1;
    }
}

/// Finds the operations of a test in the labels of the run, by the names that the answer gives.
fn check_names(design: &Design, one: &Value) {
    let names = &one["names"];
    let list = |v: &Value| v.as_array().unwrap().clone();
    let machine_of = |all: &[Value], test: &str| {
        all.iter().find(|m| m["test"] == test).map(|m| m["machine"].as_str().unwrap().to_string())
    };
    let run: Vec<String> =
        list(&one["run"]).iter().map(|l| l.as_str().unwrap().to_string()).collect();
    for (t, thread) in one["test"].as_str().unwrap().split("||").enumerate() {
        let p = machine_of(&list(&names["processors"]), &format!("P{t}")).unwrap();
        let mut from = 0;
        for operation in thread.split(';').map(str::trim) {
            let words: Vec<&str> = operation.split_whitespace().collect();
            let address =
                |x: &str| list(&names["addresses"]).into_iter().find(|a| a["test"] == x).unwrap();
            let (a, v) = match words.get(1) {
                Some(x) => {
                    let a = address(x);
                    let value = |v: &str| machine_of(&list(&a["values"]), v).unwrap();
                    (
                        a["machine"].as_str().unwrap().to_string(),
                        words[2..].iter().map(|v| value(v)).collect::<Vec<_>>(),
                    )
                }
                None => (String::new(), Vec::new()),
            };
            let label = match &words[0][..1] {
                "W" => design.label(if design.split[1] { "bs" } else { "st" }, &[&p, &a, &v[0]]),
                "R" if design.split[0] => design.label("bl", &[&p, &a]),
                "R" => design.label("ld", &[&p, &a, &v[0]]),
                "U" => design.label("xchg", &[&p, &a, &v[0], &v[1]]),
                _ => design.label("fence", &[&p]),
            };
            let at = run[from..].iter().position(|l| *l == label);
            from += at
                .unwrap_or_else(|| panic!("{operation} of P{t}: no {label} in {run:?}\n{names}"))
                + 1;
        }
    }
}

const MODELS: [&str; 3] = ["sc", "tso", "pso"];

#[test]
fn answers_are_those_of_a_simulation_and_errors_have_places() {
    let (first, cases) = (number("MU_CHECK_SEED", 0), number("MU_CHECK_CASES", 14));
    println!("seeds {first} to {}", first + cases - 1);
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let machine = path("machine.mcrl2").display().to_string();
    let interface = path("machine.interface").display().to_string();
    let mut sources = SourceMap::new();
    let models =
        MODELS.map(|m| (by_name(m).unwrap(), by_name(m).unwrap().compile(&mut sources).unwrap()));
    let mut made: BTreeMap<&'static str, usize> = BTreeMap::new();
    let (mut conform, mut differ, mut endless, mut faults) = (0, 0, 0, Vec::new());
    for seed in first..first + cases {
        let mut random = Random::new(seed);
        let design = Design::random(&mut random);
        std::fs::write(&machine, design.specification()).unwrap();
        let lines = design.interface();
        lines.iter().for_each(|l| *made.entry(l.0).or_default() += 1);
        std::fs::write(
            &interface,
            lines.iter().map(|l| l.1.as_str()).collect::<Vec<_>>().join("\n"),
        )
        .unwrap();
        let mut words = vec!["conform", &machine, "--interface", &interface];
        MODELS.iter().for_each(|m| words.extend(["--against", m]));
        let outcome = mu_check(&words);
        let said =
            format!("seed {seed}, {design:?}: {}\n{}", outcome.stderr, design.specification());
        assert!(outcome.code < 2, "{said}");
        let histories = simulate(&design);
        // The search ends with the level in which the last model forbids something.
        if outcome.json["models"].as_array().unwrap().iter().any(|m| m["verdict"] != "false") {
            assert_eq!(outcome.json["executions"], histories.len(), "{said}");
            let programs: BTreeSet<History> = histories.iter().map(History::program).collect();
            assert_eq!(outcome.json["programs"], programs.len(), "{said}");
        }
        for ((known, model), one) in models.iter().zip(outcome.json["models"].as_array().unwrap()) {
            let mut judge = HistoryChecker::new(model, known.dialect);
            let least =
                histories.iter().filter(|h| !judge.allows(h).unwrap()).map(History::len).min();
            assert_eq!(
                one["operations"].as_u64().map(|n| n as usize),
                least,
                "{said}, {}",
                known.name
            );
            assert_eq!(
                one["verdict"],
                if least.is_some() { "false" } else { "true" },
                "{said}, {}",
                known.name
            );
            if least.is_none() {
                conform += 1;
                continue;
            }
            differ += 1;
            let test = path("test.litmus");
            std::fs::write(&test, one["litmus"].as_str().unwrap()).unwrap();
            // Acquires and releases are written in RISC-V, which only models of axioms take.
            let model = crate::support::package(&format!("specs/memory/{}.cat", known.name));
            let judged = mu_check(&[
                "litmus",
                &test.display().to_string(),
                "--model",
                if design.marks { &model } else { known.name },
            ]);
            assert_eq!(
                judged.code, 1,
                "{said}, {}: {}\n{}",
                known.name, judged.stderr, one["litmus"]
            );
            check_names(&design, one);
        }
        // Without a line for labels that occur the interface is incomplete.
        let kept: Vec<&str> = lines
            .iter()
            .filter(|l| !l.0.starts_with("load") && l.0 != "program")
            .map(|l| l.1.as_str())
            .collect();
        std::fs::write(&interface, kept.join("\n")).unwrap();
        let outcome =
            mu_check(&["conform", &machine, "--interface", &interface, "--against", "sc"]);
        let incomplete = outcome.stderr.contains("matches no line of the interface, but has a");
        // The program that is read off a machine does what lines speak of: no load, nothing to
        // judge.
        if !(outcome.code == 2 && incomplete || design.waits && outcome.code == 3) {
            faults.push(format!(
                "{said}: exit {} without the loads: {}",
                outcome.code, outcome.stderr
            ));
        }
        wrong_forms(
            &design,
            &machine,
            &path("machine.interface"),
            &mut made,
            &mut random,
            &mut faults,
        );
        // An operation that begins and never ends leaves the answer open: what it would return is
        // not judged.
        let ends =
            [(design.split[0], "w(c) == loading(a)"), (design.split[1], "w(c) == storing(a, d)")];
        for end in ends.into_iter().filter(|e| e.0).map(|e| e.1) {
            std::fs::write(
                &machine,
                design.specification().replace(end, &format!("false && {end}")),
            )
            .unwrap();
            std::fs::write(
                &interface,
                lines.iter().map(|l| l.1.as_str()).collect::<Vec<_>>().join("\n"),
            )
            .unwrap();
            let outcome =
                mu_check(&["conform", &machine, "--interface", &interface, "--against", "sc"]);
            endless += usize::from(outcome.code == 3);
            if outcome.code == 0 {
                faults.push(format!("{said}: conforms, but no operation ends where {end}"));
            }
        }
    }
    let productions = [
        "initial",
        "numbers",
        "load",
        "load begin -> end",
        "store",
        "store begin -> end",
        "marks",
        "text",
        "fence",
        "update",
        "observe",
        "internal",
        "internal label",
        "program",
        "used",
    ];
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let missing: Vec<&str> = productions
        .into_iter()
        .chain(WRONG.iter().map(|w| w.0))
        .filter(|p| !made.contains_key(p))
        .collect();
    println!(
        "{cases} machines: {conform} times conforms, {differ} times not, {endless} times an operation never ends; {made:?}"
    );
    assert!(
        missing.is_empty() && conform > 0 && differ > 0 && endless > 0 || first > 0 || cases < 14,
        "never made: {missing:?}"
    );
}
