//! Picture of an execution with the verdict of a memory model: from a [`DecidingExecution`] to SVG,
//! Graphviz, or JSON. A column for each thread, a box for each event, a forbidden cycle in red.
//!
//! Program order runs straight down. Arrows between columns are arcs; arrows within a column bend
//! to its side, longer ones further out. The edges of the cycle that an axiom forbids are red and
//! have the names of the model's relations. A pair of a relation that such an edge shows is not
//! drawn again. The layout depends only on the execution.

#[cfg(test)]
use super::svg::escape;
use super::svg::{Anchor, Svg, number, width_of};
use mu_axioms::{Event, Kind};
use mu_litmus::report::DecidingExecution;
use serde_json::{Value, json};
use std::fmt::Write;

const STYLE: &str = "text { font-family: 'DejaVu Sans', Verdana, Helvetica, Arial, sans-serif; font-size: 12px; fill: #1a1a1a }
.title { font-size: 15px; font-weight: bold } .sub { font-size: 12px; fill: #555 } .thread { font-weight: bold; fill: #1f3347 }
.box { fill: #eef3f8; stroke: #34506b; stroke-width: 1.2 } .event { font-weight: bold } .code { font-size: 10px; fill: #555 }
.edge { fill: none; stroke-width: 1.4 } .label { font-size: 11px; font-style: italic } .halo { fill: #fff; fill-opacity: 0.85; stroke: none }";

/// Width and height of a box.
const BOX: (f64, f64) = (170.0, 42.0);
/// Distance between columns and between rows.
const GAP: (f64, f64) = (110.0, 46.0);
/// Left and top margins.
const LEFT: f64 = 90.0;
const TOP: f64 = 110.0;

/// Returns the colour of a relation.
fn colour(name: &str) -> &'static str {
    match name {
        "po" => "#888888",
        "rf" => "#2e7d32",
        "co" => "#1b4f8a",
        "fr" => "#b26a00",
        "rmw" => "#6d4c41",
        _ => "#6a1b9a",
    }
}

const RED: &str = "#c62828";

/// An arrow: source, target, name, and true if it is part of the violation.
struct Arrow {
    from: usize,
    to: usize,
    name: String,
    forbids: bool,
}

/// Returns the name of an event: a, b, …, z, e27, …
fn letter(i: usize) -> String {
    if i < 26 { char::from(b'a' + i as u8).to_string() } else { format!("e{}", i + 1) }
}

/// Returns the text of the box of an event.
fn text(drawn: &DecidingExecution, e: usize, name: &str) -> String {
    let event = &drawn.events[e];
    let place = &drawn.locations[e];
    let value = event.value as i64;
    match event.kind {
        Kind::Read => format!("{name}: R {place}={value}"),
        Kind::Write if event.thread.is_none() => format!("{name}: initially {place}={value}"),
        Kind::Write => format!("{name}: W {place}={value}"),
        Kind::Update => format!("{name}: RMW {place}={value}"),
        Kind::Fence => format!("{name}: fence"),
        Kind::Branch => format!("{name}: branch"),
        Kind::Other => name.to_string(),
    }
}

/// Returns the events that are drawn, in order: initial writes only if an arrow starts or ends
/// there.
fn shown(drawn: &DecidingExecution, arrows: &[Arrow]) -> Vec<usize> {
    (0..drawn.events.len())
        .filter(|&e| {
            drawn.events[e].thread.is_some() || arrows.iter().any(|a| a.from == e || a.to == e)
        })
        .collect()
}

/// Returns the arrows that are drawn: the forbidden cycle, then the relations, then program order.
fn arrows(drawn: &DecidingExecution) -> Vec<Arrow> {
    let mut list: Vec<Arrow> = Vec::new();
    if let Some(failure) = &drawn.failure {
        let n = failure.events.len();
        for (i, name) in failure.edges.iter().enumerate() {
            list.push(Arrow {
                from: failure.events[i],
                to: failure.events[(i + 1) % n],
                name: name.clone(),
                forbids: true,
            });
        }
    }
    for (name, pairs) in &drawn.relations {
        for &(from, to) in pairs {
            let is_drawn =
                list.iter().any(|a| (a.from, a.to) == (from, to) && a.name.contains(name.as_str()));
            // An initial write is before all others: these arrows are left out.
            let initial = drawn.events[from].thread.is_none() && name == "co";
            if !is_drawn && !initial {
                list.push(Arrow { from, to, name: name.clone(), forbids: false });
            }
        }
    }
    let order = |e: &Event| (e.thread, e.index);
    for from in 0..drawn.events.len() {
        let after = |&to: &usize| {
            drawn.events[to].thread == drawn.events[from].thread
                && drawn.events[to].index > drawn.events[from].index
        };
        let next = (0..drawn.events.len()).filter(after).min_by_key(|&to| order(&drawn.events[to]));
        if let (Some(to), true) = (next, drawn.events[from].thread.is_some())
            && !list.iter().any(|a| (a.from, a.to) == (from, to) && a.forbids)
        {
            list.push(Arrow { from, to, name: "po".into(), forbids: false });
        }
    }
    list
}

/// Returns the verdict as text.
fn because(drawn: &DecidingExecution) -> String {
    match (&drawn.failure, drawn.allowed) {
        (Some(f), _) => format!("forbidden by {}", f.axiom),
        (None, true) => "allowed".into(),
        (None, false) => "forbidden".into(),
    }
}

/// Returns the execution as an object: threads, events, and arrows with a mark for violations. Its
/// format is `graph` of docs/schema/litmus.json.
pub fn json(drawn: &DecidingExecution, title: &str) -> Value {
    let arrows = arrows(drawn);
    let events = shown(drawn, &arrows);
    let place = |e: usize| events.iter().position(|&s| s == e);
    let threads = events.iter().filter_map(|&e| drawn.events[e].thread).max().map_or(0, |t| t + 1);
    let one = |(p, &e): (usize, &usize)| {
        let whole = text(drawn, e, "");
        json!({
            "name": letter(p),
            "thread": drawn.events[e].thread,
            "text": whole.trim_start_matches([':', ' ']),
            "code": "",
            "reads_initial": false,
        })
    };
    let edge = |a: &Arrow| {
        Some(
            json!({ "from": place(a.from)?, "to": place(a.to)?, "relation": a.name, "forbids": a.forbids }),
        )
    };
    let relation_json = |(name, pairs): &(String, Vec<(usize, usize)>)| {
        let pairs: Vec<_> =
            pairs.iter().filter_map(|(a, b)| Some([place(*a)?, place(*b)?])).collect();
        json!({ "name": name, "pairs": pairs })
    };
    json!({
        "title": format!("{title}: {}", because(drawn)),
        "threads": (0..threads).map(|t| format!("P{t}")).collect::<Vec<_>>(),
        "events": events.iter().enumerate().map(one).collect::<Vec<_>>(),
        "edges": arrows.iter().filter_map(edge).collect::<Vec<_>>(),
        "relations": drawn.undrawn_relations.iter().map(relation_json).collect::<Vec<_>>(),
    })
}

/// Draws the execution as SVG.
pub fn svg(drawn: &DecidingExecution, title: &str) -> String {
    let arrows = arrows(drawn);
    let events = shown(drawn, &arrows);
    let threads =
        events.iter().filter_map(|&e| drawn.events[e].thread).max().map_or(0, |t| t as usize + 1);
    let mut rows = vec![0; threads];
    let mut initial = 0;
    let mut centre = vec![(0.0, 0.0); drawn.events.len()];
    for &e in &events {
        let (column, row) = match drawn.events[e].thread {
            Some(t) => {
                rows[t as usize] += 1;
                (t as usize, rows[t as usize])
            }
            None => {
                initial += 1;
                (initial - 1, 0)
            }
        };
        let at = |i: usize, size: f64, gap: f64| i as f64 * (size + gap) + size / 2.0;
        centre[e] = (LEFT + at(column, BOX.0, GAP.0), TOP + at(row, BOX.1, GAP.1));
    }
    let mut picture = Svg::default();
    let columns = threads.max(initial).max(1) as f64;
    let height = TOP + (rows.iter().max().copied().unwrap_or(0) + 1) as f64 * (BOX.1 + GAP.1);
    let width = (2.0 * LEFT + columns * (BOX.0 + GAP.0) - GAP.0)
        .max(width_of(title, 15.0) + 40.0)
        .max(width_of(&drawn.outcome, 12.0) + 40.0);
    picture.text("title", (20.0, 28.0), Anchor::Start, title);
    picture.text(
        "sub",
        (20.0, 48.0),
        Anchor::Start,
        &format!("{}: {}", because(drawn), drawn.outcome),
    );
    for t in 0..threads {
        let x = LEFT + t as f64 * (BOX.0 + GAP.0) + BOX.0 / 2.0;
        picture.text("thread", (x, TOP + BOX.1 + GAP.1 - 14.0), Anchor::Middle, &format!("P{t}"));
    }
    for a in &arrows {
        arrow(&mut picture, a, centre[a.from], centre[a.to]);
    }
    for (i, &e) in events.iter().enumerate() {
        let (x, y) = centre[e];
        picture.rect("box", (x - BOX.0 / 2.0, y - BOX.1 / 2.0), BOX);
        picture.text("event", (x, y - 3.0), Anchor::Middle, &text(drawn, e, &letter(i)));
        picture.text("code", (x, y + 13.0), Anchor::Middle, &drawn.texts[e]);
    }
    picture.finish(width, height, STYLE)
}

/// Returns the point where the line from the centre of a box towards a point leaves the box.
fn border((x, y): (f64, f64), (tx, ty): (f64, f64)) -> (f64, f64) {
    let (dx, dy) = (tx - x, ty - y);
    let scale = (BOX.0 / 2.0 / dx.abs().max(1e-9)).min(BOX.1 / 2.0 / dy.abs().max(1e-9));
    (x + dx * scale, y + dy * scale)
}

/// Draws an arrow between the centres of two boxes, with its head and its name.
fn arrow(picture: &mut Svg, a: &Arrow, from: (f64, f64), to: (f64, f64)) {
    let colour = if a.forbids { RED } else { colour(&a.name) };
    let distance = ((to.0 - from.0).powi(2) + (to.1 - from.1).powi(2)).sqrt().max(1.0);
    let middle = ((from.0 + to.0) / 2.0, (from.1 + to.1) / 2.0);
    let bend = if (from.0 - to.0).abs() < 1.0 {
        // Within a column: program order is straight, other arrows bend to a side.
        let side = if a.name == "po" && !a.forbids { 0.0 } else { BOX.0 / 2.0 + 0.18 * distance };
        (middle.0 + if a.forbids { side } else { -side }, middle.1)
    } else {
        let turn = if a.forbids { 0.10 } else { 0.16 };
        (middle.0 - (to.1 - from.1) * turn, middle.1 + (to.0 - from.0) * turn * 0.6)
    };
    let (start, end) = (border(from, bend), border(to, bend));
    let d = format!(
        "M{} {} Q{} {} {} {}",
        number(start.0),
        number(start.1),
        number(bend.0),
        number(bend.1),
        number(end.0),
        number(end.1)
    );
    let stroke = if a.forbids { "2.6" } else { "1.4" };
    picture.element(
        "path",
        &[
            ("class", "edge".to_string()),
            ("d", d),
            ("style", format!("stroke: {colour}; stroke-width: {stroke}")),
        ],
        None,
    );
    let (dx, dy) = (end.0 - bend.0, end.1 - bend.1);
    let length = (dx * dx + dy * dy).sqrt().max(1e-9);
    let (ux, uy) = (dx / length, dy / length);
    let head = format!(
        "M{} {} L{} {} L{} {} Z",
        number(end.0),
        number(end.1),
        number(end.0 - 9.0 * ux + 4.0 * uy),
        number(end.1 - 9.0 * uy - 4.0 * ux),
        number(end.0 - 9.0 * ux - 4.0 * uy),
        number(end.1 - 9.0 * uy + 4.0 * ux)
    );
    picture.element("path", &[("d", head), ("style", format!("fill: {colour}"))], None);
    let at = ((start.0 + 2.0 * bend.0 + end.0) / 4.0, (start.1 + 2.0 * bend.1 + end.1) / 4.0);
    let wide = width_of(&a.name, 11.0);
    picture.rect("halo", (at.0 - wide / 2.0 - 2.0, at.1 - 8.0), (wide + 4.0, 15.0));
    let place = [
        ("class", "label".to_string()),
        ("x", number(at.0)),
        ("y", number(at.1 + 4.0)),
        ("text-anchor", "middle".to_string()),
    ];
    let place: Vec<(&str, String)> =
        place.into_iter().chain([("style", format!("fill: {colour}"))]).collect();
    picture.element("text", &place, Some(&a.name));
}

/// Writes the execution for Graphviz.
pub fn dot(drawn: &DecidingExecution, title: &str) -> String {
    let arrows = arrows(drawn);
    let events = shown(drawn, &arrows);
    let quoted = |s: &str| s.replace('\\', "\\\\").replace('"', "\\\"");
    let mut out = format!(
        "digraph execution {{\nlabel=\"{}\\n{}: {}\";\nnode [shape=box];\n",
        quoted(title),
        quoted(&because(drawn)),
        quoted(&drawn.outcome)
    );
    for (i, &e) in events.iter().enumerate() {
        let _ = writeln!(
            out,
            "e{e} [label=\"{}\\n{}\"];",
            quoted(&text(drawn, e, &letter(i))),
            quoted(&drawn.texts[e])
        );
    }
    for a in &arrows {
        let colour = if a.forbids { RED } else { colour(&a.name) };
        let wide = if a.forbids { ", penwidth=2.5" } else { "" };
        let _ = writeln!(
            out,
            "e{} -> e{} [label=\"{}\", color=\"{colour}\", fontcolor=\"{colour}\"{wide}];",
            a.from,
            a.to,
            quoted(&a.name)
        );
    }
    out + "}\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use mu_base::{Budget, SourceId, SourceMap};
    use mu_litmus::code::Arch;
    use mu_litmus::file::Options;
    use mu_litmus::paths::Bounds;
    use mu_litmus::report::deciding;
    use mu_litmus::{Judge, parse};

    fn drawn(model: &str) -> DecidingExecution {
        let text = "X86 SB\n{}\nP0 | P1 ;\nMOV [x],$1 | MOV [y],$1 ;\nMOV EAX,[y] | MOV EAX,[x] ;\nexists (0:EAX=0 /\\ 1:EAX=0)\n";
        let stdlib = include_str!("../../specs/memory/stdlib.cat");
        let resolver = |name: &str| (name == "stdlib.cat").then(|| stdlib.to_string());
        let judge =
            Judge::compile(&mut SourceMap::new(), Arch::X86, "m.cat", model, &resolver).unwrap();
        let test = parse(SourceId::FIRST, text, Options::default()).unwrap();
        deciding(test, &judge, Bounds { loops: 2 }, &Budget::default()).unwrap().0.unwrap()
    }

    #[test]
    fn a_forbidden_execution_has_its_cycle_in_red() {
        let d = drawn(include_str!("../../specs/memory/sc.cat"));
        let list = arrows(&d);
        assert_eq!(list.iter().filter(|a| a.forbids).count(), 4);
        let picture = svg(&d, "SB & <more>");
        assert_eq!(picture.matches("stroke-width: 2.6").count(), 4);
        assert!(
            picture.contains("forbidden by sc") && picture.contains(&escape("SB & <more>")),
            "{picture}"
        );
        assert_eq!(dot(&d, "SB").matches("penwidth=2.5").count(), 4);
    }

    #[test]
    fn an_allowed_execution_has_no_red() {
        let d = drawn(include_str!("../../specs/memory/tso.cat"));
        assert!(d.allowed && arrows(&d).iter().all(|a| !a.forbids));
        let picture = svg(&d, "SB");
        assert!(!picture.contains(RED) && picture.contains(">fr<") && picture.contains(">rf<"));
    }
}
