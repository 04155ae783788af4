//! Picture of an execution with the verdict of a memory model: from a [`DecidingExecution`] to SVG,
//! Graphviz, or JSON. A column for each thread, a box for each event, a forbidden cycle in red.
//!
//! An arrow to the next event of a column runs straight down. Arrows between columns are arcs.
//! Other arrows within a column go round its boxes, downwards on the right and upwards on the left,
//! longer ones further out. The names of arrows between columns are at different heights, so that
//! those of two arrows that cross do not overlap. The edges of the cycle that an axiom forbids are
//! red and have the names of the model's relations. A pair of a relation that such an edge shows is
//! not drawn again. The layout depends only on the execution.

use super::memory_graph::event_name;
#[cfg(test)]
use super::svg::escape;
use super::svg::{Anchor, Svg, number, width_of};
use mu_axioms::{Event, EventKind};
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
/// Least margin on the left and right, and the top of the first row.
const MARGIN: f64 = 40.0;
const TOP: f64 = 70.0;

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

/// Returns the name of a thread.
fn thread_name(drawn: &DecidingExecution, t: usize) -> String {
    drawn.threads.get(t).cloned().unwrap_or_else(|| format!("P{t}"))
}

/// Returns the text of the box of an event.
fn text(drawn: &DecidingExecution, e: usize, name: &str) -> String {
    let event = &drawn.events[e];
    let place = &drawn.locations[e];
    let value = event.value as i64;
    match event.kind {
        EventKind::Read => format!("{name}: R {place}={value}"),
        EventKind::Write if event.thread.is_none() => format!("{name}: initially {place}={value}"),
        EventKind::Write => format!("{name}: W {place}={value}"),
        EventKind::Update => format!("{name}: RMW {place}={value}"),
        EventKind::Fence => format!("{name}: fence"),
        EventKind::Branch => format!("{name}: branch"),
        EventKind::Other => name.to_string(),
    }
}

/// Returns the events that are drawn, in order: initial writes only if an arrow starts or ends
/// there.
fn drawn_events(drawn: &DecidingExecution, arrows: &[Arrow]) -> Vec<usize> {
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
    let events = drawn_events(drawn, &arrows);
    let place = |e: usize| events.iter().position(|&s| s == e);
    let threads = events.iter().filter_map(|&e| drawn.events[e].thread).max().map_or(0, |t| t + 1);
    let one = |(p, &e): (usize, &usize)| {
        let whole = text(drawn, e, "");
        json!({
            "name": event_name(p),
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
        "threads": (0..threads as usize).map(|t| thread_name(drawn, t)).collect::<Vec<_>>(),
        "events": events.iter().enumerate().map(one).collect::<Vec<_>>(),
        "edges": arrows.iter().filter_map(edge).collect::<Vec<_>>(),
        "relations": drawn.undrawn_relations.iter().map(relation_json).collect::<Vec<_>>(),
    })
}

/// Draws the execution as SVG.
pub fn svg(drawn: &DecidingExecution, title: &str) -> String {
    let arrows = arrows(drawn);
    let events = drawn_events(drawn, &arrows);
    let threads =
        events.iter().filter_map(|&e| drawn.events[e].thread).max().map_or(0, |t| t as usize + 1);
    let has_initial = events.iter().any(|&e| drawn.events[e].thread.is_none());
    let mut rows = vec![usize::from(has_initial); threads];
    let mut initial = 0;
    // Column and row of each event.
    let mut cells = vec![(0, 0); drawn.events.len()];
    for &e in &events {
        cells[e] = match drawn.events[e].thread {
            Some(t) => {
                rows[t as usize] += 1;
                (t as usize, rows[t as usize] - 1)
            }
            None => {
                initial += 1;
                (initial - 1, 0)
            }
        };
    }
    // Arrows around the boxes of a column need room at its sides.
    let shapes: Vec<ArrowForm> =
        arrows.iter().map(|a| shape(a, cells[a.from], cells[a.to])).collect();
    let columns = threads.max(initial).max(1);
    let room = |side: f64, column: usize| {
        let around = arrows.iter().zip(&shapes).filter_map(|(a, shape)| match shape {
            ArrowForm::Around(out) if out * side > 0.0 && cells[a.from].0 == column => {
                Some(out.abs() / 2.0 + width_of(&a.name, 11.0) / 2.0 + 10.0)
            }
            _ => None,
        });
        around.fold(0.0, f64::max)
    };
    let gap = |c: usize| (room(1.0, c - 1) + room(-1.0, c)).max(GAP.0);
    let mut lefts = vec![room(-1.0, 0).max(MARGIN)];
    for c in 1..columns {
        lefts.push(lefts[c - 1] + BOX.0 + gap(c));
    }
    let top = TOP + 24.0;
    let centre = |e: usize| {
        let (column, row) = cells[e];
        let y = top + row as f64 * (BOX.1 + GAP.1) + BOX.1 / 2.0;
        (lefts[column] + BOX.0 / 2.0, y)
    };
    let subtitle = format!("{}: {}", because(drawn), drawn.outcome);
    let mut picture = Svg::default();
    let height = top + rows.iter().max().copied().unwrap_or(1).max(1) as f64 * (BOX.1 + GAP.1);
    let width = (lefts[columns - 1] + BOX.0 + room(1.0, columns - 1).max(MARGIN))
        .max(width_of(title, 15.0) + 40.0)
        .max(width_of(&subtitle, 12.0) + 40.0);
    picture.text("title", (20.0, 28.0), Anchor::Start, title);
    picture.text("sub", (20.0, 48.0), Anchor::Start, &subtitle);
    for (t, left) in lefts.iter().enumerate().take(threads) {
        let row = if has_initial { BOX.1 + GAP.1 } else { 0.0 };
        let at = (left + BOX.0 / 2.0, top + row - 12.0);
        picture.text("thread", at, Anchor::Middle, &thread_name(drawn, t));
    }
    for (a, shape) in arrows.iter().zip(&shapes) {
        arrow(&mut picture, a, shape, centre(a.from), centre(a.to));
    }
    for (i, &e) in events.iter().enumerate() {
        let (x, y) = centre(e);
        picture.rect("box", (x - BOX.0 / 2.0, y - BOX.1 / 2.0), BOX);
        picture.text("event", (x, y - 3.0), Anchor::Middle, &text(drawn, e, &event_name(i)));
        picture.text("code", (x, y + 13.0), Anchor::Middle, &drawn.texts[e]);
    }
    picture.finish(width, height, STYLE)
}

/// Form of an arrow.
enum ArrowForm {
    /// A straight line to the next row.
    Straight,
    /// Around the boxes of a column, with the distance of its control point from their side:
    /// negative on the left.
    Around(f64),
    /// An arc between columns.
    Arc,
}

/// Returns the form of an arrow between two cells.
fn shape(a: &Arrow, from: (usize, usize), to: (usize, usize)) -> ArrowForm {
    if from.0 != to.0 {
        return ArrowForm::Arc;
    }
    if to.1 == from.1 + 1 && (a.name == "po" || a.forbids) {
        return ArrowForm::Straight;
    }
    let out = 50.0 + 14.0 * from.1.abs_diff(to.1) as f64 + if a.forbids { 0.0 } else { 24.0 };
    ArrowForm::Around(if to.1 > from.1 { out } else { -out })
}

/// Returns the point where the line from the centre of a box towards a point leaves the box.
fn border((x, y): (f64, f64), (tx, ty): (f64, f64)) -> (f64, f64) {
    let (dx, dy) = (tx - x, ty - y);
    let scale = (BOX.0 / 2.0 / dx.abs().max(1e-9)).min(BOX.1 / 2.0 / dy.abs().max(1e-9));
    (x + dx * scale, y + dy * scale)
}

/// Draws an arrow between the centres of two boxes, with its head and its name.
fn arrow(picture: &mut Svg, a: &Arrow, shape: &ArrowForm, from: (f64, f64), to: (f64, f64)) {
    let colour = if a.forbids { RED } else { colour(&a.name) };
    let middle = ((from.0 + to.0) / 2.0, (from.1 + to.1) / 2.0);
    // Ends, control point, and the place of the name along the curve.
    let (start, bend, end, along) = match shape {
        ArrowForm::Straight => (border(from, to), middle, border(to, from), 0.5),
        ArrowForm::Around(out) => {
            let side = BOX.0 / 2.0 * out.signum();
            let bend = (middle.0 + side + out, middle.1);
            ((from.0 + side, from.1), bend, (to.0 + side, to.1), 0.5)
        }
        ArrowForm::Arc => {
            // From side to side, so that boxes between the rows stay free.
            let side = BOX.0 / 2.0 * (to.0 - from.0).signum();
            let (start, end) = ((from.0 + side, from.1), (to.0 - side, to.1));
            let turn = if a.forbids { 0.06 } else { 0.12 };
            let bend = (middle.0, middle.1 + (to.0 - from.0) * turn);
            (start, bend, end, if side > 0.0 { 0.7 } else { 0.26 })
        }
    };
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
    let (s, t): (f64, f64) = (1.0 - along, along);
    let on = |p: f64, q: f64, r: f64| s * s * p + 2.0 * s * t * q + t * t * r;
    let at = (on(start.0, bend.0, end.0), on(start.1, bend.1, end.1));
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
    let events = drawn_events(drawn, &arrows);
    let quoted = |s: &str| s.replace('\\', "\\\\").replace('"', "\\\"");
    let mut out = format!(
        "digraph execution {{\nlabel=\"{}\\n{}: {}\";\nnode [shape=box];\n",
        quoted(title),
        quoted(&because(drawn)),
        quoted(&drawn.outcome)
    );
    let threads: std::collections::BTreeSet<Option<u32>> =
        events.iter().map(|&e| drawn.events[e].thread).collect();
    for t in threads.into_iter().flatten() {
        let own = events.iter().filter(|&&e| drawn.events[e].thread == Some(t));
        let own: Vec<String> = own.map(|e| format!("e{e};")).collect();
        let name = quoted(&thread_name(drawn, t as usize));
        let _ = writeln!(out, "subgraph cluster_{t} {{ label=\"{name}\"; {} }}", own.join(" "));
    }
    for (i, &e) in events.iter().enumerate() {
        let _ = writeln!(
            out,
            "e{e} [label=\"{}\\n{}\"];",
            quoted(&text(drawn, e, &event_name(i))),
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
    use mu_litmus::file::ParserOptions;
    use mu_litmus::paths::PathBounds;
    use mu_litmus::report::find_deciding_execution;
    use mu_litmus::{Judge, parse};

    fn deciding_execution(model: &str) -> DecidingExecution {
        let text = "X86 SB\n{}\nP0 | P1 ;\nMOV [x],$1 | MOV [y],$1 ;\nMOV EAX,[y] | MOV EAX,[x] ;\nexists (0:EAX=0 /\\ 1:EAX=0)\n";
        let stdlib = include_str!("../../specs/memory/stdlib.cat");
        let resolver = |name: &str| (name == "stdlib.cat").then(|| stdlib.to_string());
        let judge =
            Judge::compile(&mut SourceMap::new(), Arch::X86, "m.cat", model, &resolver).unwrap();
        let test = parse(SourceId::FIRST, text, ParserOptions::default()).unwrap();
        find_deciding_execution(test, &judge, PathBounds { loops: 2 }, &Budget::default())
            .unwrap()
            .0
            .unwrap()
    }

    #[test]
    fn a_forbidden_execution_has_its_cycle_in_red() {
        let d = deciding_execution(include_str!("../../specs/memory/sc.cat"));
        let list = arrows(&d);
        assert_eq!(list.iter().filter(|a| a.forbids).count(), 4);
        let picture = svg(&d, "SB & <more>");
        assert_eq!(picture.matches("stroke-width: 2.6").count(), 4);
        assert!(
            picture.contains("forbidden by sc") && picture.contains(&escape("SB & <more>")),
            "{picture}"
        );
        let graph = dot(&d, "SB");
        assert_eq!(graph.matches("penwidth=2.5").count(), 4);
        assert!(graph.contains("subgraph cluster_1 { label=\"P1\";"), "{graph}");
    }

    /// Arrows within a column: the next event straight below, others around the boxes, so that no
    /// name is behind a box.
    #[test]
    fn arrows_of_a_column_go_round_its_boxes() {
        let edge = |name: &str| Arrow { from: 0, to: 1, name: name.into(), forbids: true };
        assert!(matches!(shape(&edge("program order"), (0, 0), (0, 1)), ArrowForm::Straight));
        assert!(
            matches!(shape(&edge("coherence"), (0, 1), (0, 0)), ArrowForm::Around(out) if out < 0.0)
        );
        assert!(
            matches!(shape(&edge("fence"), (0, 0), (0, 2)), ArrowForm::Around(out) if out > 0.0)
        );
        assert!(matches!(shape(&edge("reads from"), (0, 0), (1, 2)), ArrowForm::Arc));
    }

    #[test]
    fn an_allowed_execution_has_no_red() {
        let d = deciding_execution(include_str!("../../specs/memory/tso.cat"));
        assert!(d.allowed && arrows(&d).iter().all(|a| !a.forbids));
        let picture = svg(&d, "SB");
        assert!(!picture.contains(RED) && picture.contains(">fr<") && picture.contains(">rf<"));
    }
}
