//! Drawing of an execution: [`Execution`] to SVG or Graphviz. A column for each thread, a box for
//! each event, arrows for po, rf, co, fr.
//!
//! After the pictures of the herd tools. Program order runs straight down. All other arrows leave
//! and enter at the sides of boxes. Between neighbouring columns they are straight. Otherwise they
//! use lanes between the columns and channels between the rows, so that no arrow crosses a box. A
//! load of an initial value has a short arrow from `init`. The layout ([`GraphLayout`]) is computed
//! first, with the line of each arrow; it depends only on the execution.

use super::memory_graph::event_name;
use super::svg::{Anchor, Svg, number, width_of};
use mu_program::Fence;
use mu_program::axiomatic::{EventKind, Execution, GraphEvent, RelationKind};
use mu_program::litmus::Litmus;
use serde_json::{Value, json};
use std::fmt::Write;

const STYLE: &str = "text { font-family: 'DejaVu Sans', Verdana, Helvetica, Arial, sans-serif; font-size: 12px; fill: #1a1a1a }
.title { font-size: 15px; font-weight: bold } .sub { font-size: 12px; fill: #555 } .thread { font-weight: bold; fill: #1f3347 }
.box { fill: #eef3f8; stroke: #34506b; stroke-width: 1.2 } .event { font-weight: bold } .code { font-size: 10px; fill: #555 }
.init { font-size: 10px; fill: #777 } .halo { fill: #fff; fill-opacity: 0.85; stroke: none }
.po, .rf, .co, .fr { fill: none; stroke-width: 1.6; stroke-linejoin: round }
.po { stroke: #444 } .rf { stroke: #c62828 } .co { stroke: #1b4f8a } .fr { stroke: #b26a00 }
.head-po, .text-po { fill: #444 } .head-rf, .text-rf { fill: #c62828 } .head-co, .text-co { fill: #1b4f8a } .head-fr, .text-fr { fill: #b26a00 }
.text-po, .text-rf, .text-co, .text-fr { font-size: 11px; font-style: italic }";

const LEFT: f64 = 20.0;
const TOP: f64 = 66.0;
/// Distance between ports on a side of a box.
const PORT: f64 = 13.0;
/// Distance between lanes, and between channels.
const LANE: f64 = 14.0;
/// Minimum distance between columns, and between rows.
const GAP: (f64, f64) = (96.0, 40.0);

type Point = (f64, f64);

/// A box.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EventBox {
    /// Left upper corner.
    pub at: Point,
    /// Width and height.
    pub size: Point,
}

/// An arrow.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrow {
    /// Source event; `None` for an initial value.
    pub from: Option<usize>,
    /// The relation.
    pub edge: RelationKind,
    /// Target event.
    pub to: usize,
    /// The line of the arrow.
    pub line: Vec<Point>,
    /// Centre of its label.
    pub label: Point,
}

/// Positions of all elements. Events are ordered by thread, then by program order.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphLayout {
    /// For each position, the event of the execution.
    pub order: Vec<usize>,
    /// The boxes.
    pub boxes: Vec<EventBox>,
    /// The arrows; their ends are positions.
    pub arrows: Vec<Arrow>,
    /// Centre of each thread's column.
    pub columns: Vec<f64>,
    /// Size of the picture.
    pub size: Point,
}

/// Describes an event.
fn text(test: &Litmus, e: &GraphEvent) -> String {
    let cell = test.program.cells.get(e.cell);
    let name = cell.map_or("", |c| c.name.as_str());
    let value = |v: u64| {
        let signed = cell.map_or(v as i64, |c| c.width.to_signed(v));
        test.variables.address_text(v).unwrap_or_else(|| signed.to_string())
    };
    match e.kind {
        EventKind::Read => format!("R {name}={}", value(e.read)),
        EventKind::Write => format!("W {name}={}", value(e.written)),
        EventKind::Update => format!("RMW {name}: {} to {}", value(e.read), value(e.written)),
        EventKind::Test => format!("R {name}={}, locked", value(e.read)),
        EventKind::Fence(Fence::Full) => "fence".into(),
        EventKind::Fence(Fence::Store) => "store fence".into(),
    }
}

fn code<'t>(test: &'t Litmus, e: &GraphEvent) -> &'t str {
    test.program.threads[e.thread]
        .instructions
        .get(e.instruction as usize)
        .map_or("", |i| i.text.as_str())
}

fn word(edge: RelationKind) -> &'static str {
    match edge {
        RelationKind::Po => "po",
        RelationKind::Rf => "rf",
        RelationKind::Co => "co",
        RelationKind::Fr => "fr",
    }
}

/// Returns the execution as an object: threads, events, and direct relations. Its format is `graph`
/// of docs/schema/litmus.json.
pub fn json(test: &Litmus, execution: &Execution, title: &str) -> Value {
    let mut order: Vec<usize> = (0..execution.events.len()).collect();
    order.sort_by_key(|&i| execution.events[i].thread);
    let mut place = vec![0; order.len()];
    order.iter().enumerate().for_each(|(p, &e)| place[e] = p);
    let event = |(p, &i): (usize, &usize)| {
        let e = &execution.events[i];
        let initial = e.reads() && e.source.is_none();
        json!({ "name": event_name(p), "thread": e.thread, "text": text(test, e), "code": code(test, e), "reads_initial": initial })
    };
    let events: Vec<Value> = order.iter().enumerate().map(event).collect();
    let mut edges: Vec<(usize, RelationKind, usize)> =
        execution.edges().into_iter().map(|(a, e, b)| (place[a], e, place[b])).collect();
    edges.sort_unstable();
    let edge = |(from, edge, to): &(usize, RelationKind, usize)| json!({ "from": from, "to": to, "relation": word(*edge), "forbids": false });
    let threads: Vec<&str> = test.program.threads.iter().map(|t| t.name.as_str()).collect();
    json!({ "title": title, "threads": threads, "events": events, "edges": edges.iter().map(edge).collect::<Vec<_>>() })
}

/// An arrow at the sides of boxes, before its line is computed.
struct SideArrow {
    from: usize,
    edge: RelationKind,
    to: usize,
    /// True if it leaves, and if it arrives, on the right.
    right: (bool, bool),
    /// The lanes and the channel, unless it is straight.
    lanes: Option<(usize, Option<(usize, usize)>, usize)>,
}

/// Computes the layout of an execution.
pub fn layout(test: &Litmus, execution: &Execution) -> GraphLayout {
    let grid = Grid::new(test, execution);
    let mut place_of = vec![0; grid.order.len()];
    grid.order.iter().enumerate().for_each(|(place, &event)| place_of[event] = place);
    let mut edges: Vec<(usize, RelationKind, usize)> =
        execution.edges().into_iter().map(|(a, e, b)| (place_of[a], e, place_of[b])).collect();
    edges.sort_unstable();
    let routes = Routes::new(&grid, &edges);
    let frame = GridPositions::new(&grid, &routes);
    let arrows = frame.arrows(&grid, &routes, &edges);
    let columns =
        frame.left.iter().zip(&frame.widths).map(|(left, width)| left + width / 2.0).collect();
    GraphLayout { order: grid.order, boxes: frame.boxes, arrows, columns, size: frame.size }
}

/// The events in columns and rows.
struct Grid<'a> {
    test: &'a Litmus,
    events: &'a [GraphEvent],
    /// The event at each position.
    order: Vec<usize>,
    /// The row of each position.
    row: Vec<usize>,
    rows: usize,
}

impl<'a> Grid<'a> {
    fn new(test: &'a Litmus, execution: &'a Execution) -> Self {
        let events = &execution.events;
        let mut order: Vec<usize> = (0..events.len()).collect();
        order.sort_by_key(|&i| events[i].thread);
        let mut row = vec![0usize; order.len()];
        for i in 1..order.len() {
            row[i] = if events[order[i]].thread == events[order[i - 1]].thread {
                row[i - 1] + 1
            } else {
                0
            };
        }
        let rows = row.iter().max().map_or(0, |r| r + 1);
        Self { test, events, order, row, rows }
    }
    fn event(&self, place: usize) -> &GraphEvent {
        &self.events[self.order[place]]
    }
    fn column(&self, place: usize) -> usize {
        self.event(place).thread
    }
    fn threads(&self) -> usize {
        self.test.program.threads.len()
    }
    fn loads_initial(&self, place: usize) -> bool {
        self.event(place).reads() && self.event(place).source.is_none()
    }
}

/// Routing of arrows.
struct Routes {
    sides: Vec<SideArrow>,
    /// Number of lanes on the left and on the right side of each gap between columns (gap `c` is
    /// left of column `c`).
    lanes: Vec<[usize; 2]>,
    /// Number of channels in each gap between rows.
    channels: Vec<usize>,
    /// Arrow ends at the left and the right side of each box, ordered by the row of the other end:
    /// row, arrow, true if it leaves.
    ports: Vec<[Vec<(usize, usize, bool)>; 2]>,
}

impl Routes {
    fn new(grid: &Grid, edges: &[(usize, RelationKind, usize)]) -> Self {
        let mut lanes = vec![[0usize; 2]; grid.threads() + 1];
        let mut channels = vec![0usize; grid.rows + 1];
        let mut take = |gap: usize, side: usize| {
            lanes[gap][side] += 1;
            lanes[gap][side] - 1
        };
        let mut sides: Vec<SideArrow> = Vec::new();
        for &(from, edge, to) in edges.iter().filter(|e| e.1 != RelationKind::Po) {
            let (a, b) = (grid.column(from), grid.column(to));
            let right = if a == b { (true, true) } else { (a < b, b < a) };
            let lanes = if a == b {
                let lane = take(a + 1, 0);
                Some((lane, None, lane))
            } else if a.abs_diff(b) > 1 {
                let leave = if a < b { take(a + 1, 0) } else { take(a, 1) };
                let arrive = if a < b { take(b, 1) } else { take(b + 1, 0) };
                let gap = grid.row[from].max(grid.row[to]);
                channels[gap] += 1;
                Some((leave, Some((gap, channels[gap] - 1)), arrive))
            } else {
                None
            };
            sides.push(SideArrow { from, edge, to, right, lanes });
        }
        let mut ports: Vec<[Vec<(usize, usize, bool)>; 2]> =
            vec![Default::default(); grid.order.len()];
        for (i, s) in sides.iter().enumerate() {
            ports[s.from][usize::from(s.right.0)].push((grid.row[s.to], i, true));
            ports[s.to][usize::from(s.right.1)].push((grid.row[s.from], i, false));
        }
        ports.iter_mut().flatten().for_each(|p| p.sort_unstable());
        Self { sides, lanes, channels, ports }
    }
    /// Returns the larger number of ends at a side of a box.
    fn most(&self, place: usize) -> usize {
        self.ports[place].iter().map(Vec::len).max().unwrap_or(0)
    }
}

/// Positions of columns, rows and boxes.
struct GridPositions {
    left: Vec<f64>,
    widths: Vec<f64>,
    top: Vec<f64>,
    /// Space for the arrows from initial values above each row.
    stub: Vec<f64>,
    boxes: Vec<EventBox>,
    size: Point,
}

impl GridPositions {
    fn new(grid: &Grid, routes: &Routes) -> Self {
        let places = || 0..grid.order.len();
        let mut widths: Vec<f64> =
            grid.test.program.threads.iter().map(|t| width_of(&t.name, 12.0) + 16.0).collect();
        let mut heights = vec![38f64; grid.rows];
        // Channels are above the arrows from initial values.
        let mut stub = vec![0.0; grid.rows];
        for place in places() {
            let e = grid.event(place);
            let label = format!("{}: {}", event_name(place), text(grid.test, e));
            let wide =
                (width_of(&label, 12.0) * 1.06).max(width_of(code(grid.test, e), 10.0)) + 20.0;
            let row = grid.row[place];
            widths[e.thread] = widths[e.thread].max(wide);
            if grid.loads_initial(place) {
                widths[e.thread] = widths[e.thread].max(80.0);
                stub[row] = 24.0;
            }
            heights[row] = heights[row].max(PORT * (routes.most(place) + 1) as f64);
        }
        let lane_room = |count: usize| if count > 0 { LANE * (count + 1) as f64 } else { 0.0 };
        let mut left = Vec::new();
        let mut x = LEFT + lane_room(routes.lanes[0][1]);
        for (c, width) in widths.iter().enumerate() {
            left.push(x);
            let [a, b] = routes.lanes[c + 1];
            x += width
                + if c + 1 < widths.len() {
                    GAP.0.max(GAP.0 / 2.0 + LANE * (a + b + 1) as f64)
                } else {
                    lane_room(a)
                };
        }
        let mut top = Vec::new();
        let mut y = TOP;
        for r in 0..grid.rows {
            y += GAP.1.max(24.0 + stub[r] + LANE * routes.channels[r] as f64);
            top.push(y);
            y += heights[r];
        }
        let place = |p| EventBox {
            at: (left[grid.column(p)], top[grid.row[p]]),
            size: (widths[grid.column(p)], heights[grid.row[p]]),
        };
        let boxes = places().map(place).collect();
        Self { left, widths, top, stub, boxes, size: (x + LEFT, y + 20.0) }
    }

    fn arrows(
        &self,
        grid: &Grid,
        routes: &Routes,
        edges: &[(usize, RelationKind, usize)],
    ) -> Vec<Arrow> {
        let boxes = &self.boxes;
        let port = |place: usize, right: bool, arrow: usize, leaves: bool| -> Point {
            let b = &boxes[place];
            let list = &routes.ports[place][usize::from(right)];
            let at = list
                .iter()
                .position(|p| p.1 == arrow && p.2 == leaves)
                .expect("each end of an arrow has a port");
            (
                b.at.0 + if right { b.size.0 } else { 0.0 },
                b.at.1 + b.size.1 * (at + 1) as f64 / (list.len() + 1) as f64,
            )
        };
        // Lanes are counted from their column.
        let lane = |place: usize, right: bool, n: usize| {
            let away = LANE * (n + 1) as f64;
            if right {
                boxes[place].at.0 + boxes[place].size.0 + away
            } else {
                boxes[place].at.0 - away
            }
        };
        let mut arrows = Vec::new();
        for &(from, edge, to) in edges.iter().filter(|e| e.1 == RelationKind::Po) {
            let (a, b) = (&boxes[from], &boxes[to]);
            let x = a.at.0 + a.size.0 / 2.0;
            arrows.push(Arrow {
                from: Some(from),
                edge,
                to,
                line: vec![(x, a.at.1 + a.size.1), (x, b.at.1)],
                label: (0.0, 0.0),
            });
        }
        for place in (0..grid.order.len()).filter(|&p| grid.loads_initial(p)) {
            let b = &boxes[place];
            let x = b.at.0 + 22.0;
            arrows.push(Arrow {
                from: None,
                edge: RelationKind::Rf,
                to: place,
                line: vec![(x, b.at.1 - 20.0), (x, b.at.1)],
                label: (0.0, 0.0),
            });
        }
        for (i, s) in routes.sides.iter().enumerate() {
            let (start, end) = (port(s.from, s.right.0, i, true), port(s.to, s.right.1, i, false));
            let line = match s.lanes {
                None => vec![start, end],
                Some((leave, channel, arrive)) => {
                    let (a, b) = (lane(s.from, s.right.0, leave), lane(s.to, s.right.1, arrive));
                    match channel {
                        None => vec![start, (a, start.1), (a, end.1), end],
                        Some((gap, n)) => {
                            let y = self.top[gap] - self.stub[gap] - LANE * (n as f64 + 1.0);
                            vec![start, (a, start.1), (a, y), (b, y), (b, end.1), end]
                        }
                    }
                }
            };
            arrows.push(Arrow {
                from: Some(s.from),
                edge: s.edge,
                to: s.to,
                line,
                label: (0.0, 0.0),
            });
        }
        label(&mut arrows);
        arrows
    }
}

/// Returns the point at a fraction of a line's length.
fn point_at(line: &[Point], share: f64) -> Point {
    let length = |w: &[Point]| (w[1].0 - w[0].0).hypot(w[1].1 - w[0].1);
    let mut rest = share * line.windows(2).map(length).sum::<f64>();
    for w in line.windows(2) {
        let own = length(w);
        if rest <= own && own > 0.0 {
            let t = rest / own;
            return (w[0].0 + t * (w[1].0 - w[0].0), w[0].1 + t * (w[1].1 - w[0].1));
        }
        rest -= own;
    }
    line.last().copied().unwrap_or_default()
}

/// Half the size of a label.
const LABEL: Point = (9.0, 8.0);

/// Places labels on the arrows without overlap, if possible.
fn label(arrows: &mut [Arrow]) {
    let mut taken: Vec<Point> = Vec::new();
    for arrow in arrows.iter_mut() {
        let free = |p: Point| {
            taken
                .iter()
                .all(|q| (p.0 - q.0).abs() >= 2.0 * LABEL.0 || (p.1 - q.1).abs() >= 2.0 * LABEL.1)
        };
        let shares: &[f64] = match (arrow.edge, arrow.from) {
            (RelationKind::Po, _) => &[0.5],
            (_, None) => &[0.35],
            _ => &[0.3, 0.4, 0.25, 0.6, 0.7, 0.5, 0.75, 0.2],
        };
        // Short straight arrows have their labels next to them.
        let offset =
            if arrow.edge == RelationKind::Po || arrow.from.is_none() { 12.0 } else { 0.0 };
        let points: Vec<Point> =
            shares.iter().map(|&s| point_at(&arrow.line, s)).map(|p| (p.0 + offset, p.1)).collect();
        arrow.label = points.iter().copied().find(|&p| free(p)).unwrap_or(points[0]);
        taken.push(arrow.label);
    }
}

/// Returns the path of a line with rounded corners.
fn path(line: &[Point]) -> String {
    let mut out = format!("M {} {}", number(line[0].0), number(line[0].1));
    for (i, &p) in line.iter().enumerate().skip(1) {
        let toward = |from: Point, to: Point| {
            let length = (to.0 - from.0).hypot(to.1 - from.1);
            let t = if length > 0.0 { (6.0f64).min(length / 2.0) / length } else { 0.0 };
            (from.0 + t * (to.0 - from.0), from.1 + t * (to.1 - from.1))
        };
        let _ = match line.get(i + 1) {
            None => write!(out, " L {} {}", number(p.0), number(p.1)),
            Some(&next) => {
                let (a, b) = (toward(p, line[i - 1]), toward(p, next));
                write!(
                    out,
                    " L {} {} Q {} {} {} {}",
                    number(a.0),
                    number(a.1),
                    number(p.0),
                    number(p.1),
                    number(b.0),
                    number(b.1)
                )
            }
        };
    }
    out
}

/// Returns the head of an arrow.
fn head(line: &[Point]) -> String {
    let (a, b) = (line[line.len() - 2], line[line.len() - 1]);
    let length = (b.0 - a.0).hypot(b.1 - a.1).max(0.001);
    let (ux, uy) = ((b.0 - a.0) / length, (b.1 - a.1) / length);
    let corner = |side: f64| (b.0 - 9.0 * ux - side * uy, b.1 - 9.0 * uy + side * ux);
    let ((x, y), (v, w)) = (corner(4.0), corner(-4.0));
    format!(
        "M {} {} L {} {} L {} {} Z",
        number(b.0),
        number(b.1),
        number(x),
        number(y),
        number(v),
        number(w)
    )
}

/// Draws the execution as SVG. `what`: its description.
pub fn svg(test: &Litmus, execution: &Execution, what: &str) -> String {
    let layout = layout(test, execution);
    let mut svg = Svg::default();
    svg.text("title", (16.0, 24.0), Anchor::Start, &test.name);
    svg.text("sub", (16.0, 42.0), Anchor::Start, what);
    for (thread, &x) in test.program.threads.iter().zip(&layout.columns) {
        svg.text("thread", (x, TOP + 4.0), Anchor::Middle, &thread.name);
    }
    for arrow in &layout.arrows {
        svg.path(word(arrow.edge), &path(&arrow.line));
        svg.path(&format!("head-{}", word(arrow.edge)), &head(&arrow.line));
    }
    for (place, b) in layout.boxes.iter().enumerate() {
        let e = &execution.events[layout.order[place]];
        let (x, y) = (b.at.0 + b.size.0 / 2.0, b.at.1 + b.size.1 / 2.0);
        svg.rect("box", b.at, b.size);
        svg.text(
            "event",
            (x, y - 1.0),
            Anchor::Middle,
            &format!("{}: {}", event_name(place), text(test, e)),
        );
        svg.text("code", (x, y + 12.0), Anchor::Middle, code(test, e));
    }
    for arrow in &layout.arrows {
        let (x, y) = arrow.label;
        svg.rect(
            "halo",
            (x - LABEL.0 + 2.0, y - LABEL.1 + 2.0),
            (2.0 * LABEL.0 - 4.0, 2.0 * LABEL.1 - 4.0),
        );
        svg.text(
            &format!("text-{}", word(arrow.edge)),
            (x, y + 4.0),
            Anchor::Middle,
            word(arrow.edge),
        );
        if arrow.from.is_none() {
            svg.text("init", (arrow.line[0].0, arrow.line[0].1 - 2.0), Anchor::Middle, "init");
        }
    }
    let width =
        layout.size.0.max(width_of(&test.name, 15.0) + 40.0).max(width_of(what, 12.0) + 30.0);
    svg.finish(width, layout.size.1, STYLE)
}

/// Writes the execution for Graphviz.
pub fn dot(test: &Litmus, execution: &Execution, what: &str) -> String {
    let layout = layout(test, execution);
    let quoted = |s: &str| format!("\"{}\"", s.replace('\\', "\\\\").replace('"', "\\\""));
    let mut out = format!(
        "digraph {} {{\n  label={};\n  node [shape=box, fontsize=11];\n",
        quoted(&test.name),
        quoted(what)
    );
    for (t, thread) in test.program.threads.iter().enumerate() {
        let _ = writeln!(out, "  subgraph cluster_{t} {{\n    label={};", quoted(&thread.name));
        for (place, &event) in layout.order.iter().enumerate() {
            let e = &execution.events[event];
            if e.thread == t {
                let _ = writeln!(
                    out,
                    "    {} [label={}];",
                    event_name(place),
                    quoted(&format!("{}: {}", event_name(place), text(test, e)))
                );
            }
        }
        out.push_str("  }\n");
    }
    for (i, arrow) in layout.arrows.iter().enumerate() {
        let colour = match arrow.edge {
            RelationKind::Po => "gray25",
            RelationKind::Rf => "firebrick",
            RelationKind::Co => "steelblue4",
            RelationKind::Fr => "darkorange3",
        };
        let from = match arrow.from {
            Some(from) => event_name(from),
            None => {
                let _ = writeln!(out, "  init{i} [label=\"init\", shape=plaintext];");
                format!("init{i}")
            }
        };
        let weight = if arrow.edge == RelationKind::Po { "" } else { ", constraint=false" };
        let to = event_name(arrow.to);
        let _ = writeln!(
            out,
            "  {from} -> {to} [label=\"{0}\", color={colour}, fontcolor={colour}{weight}];",
            word(arrow.edge)
        );
    }
    out + "}\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use mu_base::{Budget, SourceId};
    use mu_program::machine::Machine;
    use mu_program::outcome_search::observed_registers;
    use mu_program::{litmus, memory, witness};
    use mu_testkit::litmus_tests::{self, Shape};

    const SB: &str = "X86 SB\n{}\nP0 | P1 ;\nMOV [x],$1 | MOV [y],$1 ;\nMOV EAX,[y] | MOV EAX,[x] ;\nexists (0:EAX=0 /\\ 1:EAX=0)\n";
    const MP: &str = "X86 MP\n{}\nP0 | P1 ;\nMOV [x],$1 | MOV EAX,[y] ;\nMOV [y],$1 | MOV EBX,[x] ;\nexists (1:EAX=1 /\\ 1:EBX=0)\n";
    const IRIW: &str = "X86 IRIW\n{}\nP0 | P1 | P2 | P3 ;\nMOV [x],$1 | MOV EAX,[x] | MOV [y],$1 | MOV EAX,[y] ;\n | MOV EBX,[y] | | MOV EBX,[x] ;\nexists (1:EAX=1 /\\ 1:EBX=0 /\\ 3:EAX=1)\n";

    fn execution(text: &str, model: &str) -> (Litmus, Execution) {
        let test = litmus::parse(SourceId::FIRST, text).unwrap();
        let registers = observed_registers(&test.observables(), test.program.threads.len());
        let machine =
            Machine::new(test.program.clone(), memory::by_name(model).unwrap(), None, &registers);
        let wanted = |o: &[u64]| test.question.holds(o);
        let found =
            witness::witness(&machine, &test.observables(), &Budget::default(), &wanted).unwrap();
        let (execution, _) = found.execution.unwrap_or_else(|| panic!("{text}"));
        (test, execution)
    }

    /// Invariants of every picture: boxes do not overlap; arrows run from box to box and cross
    /// none; labels do not overlap; everything is inside the picture.
    fn check(test: &Litmus, execution: &Execution, place: &str) -> GraphLayout {
        let l = layout(test, execution);
        assert_eq!(l, layout(test, execution), "{place}");
        for (i, a) in l.boxes.iter().enumerate() {
            assert!(
                a.at.0 > 0.0
                    && a.at.0 + a.size.0 < l.size.0
                    && a.at.1 > TOP
                    && a.at.1 + a.size.1 < l.size.1,
                "{place}"
            );
            for b in &l.boxes[..i] {
                let apart = |x: f64, w: f64, y: f64, v: f64| x + w + 10.0 < y || y + v + 10.0 < x;
                assert!(
                    apart(a.at.0, a.size.0, b.at.0, b.size.0)
                        || apart(a.at.1, a.size.1, b.at.1, b.size.1),
                    "{place}"
                );
            }
        }
        let border = |b: &EventBox, p: Point| {
            let (x, y) = (p.0 - b.at.0, p.1 - b.at.1);
            let on = |v: f64, m: f64| v.abs() < 0.01 || (v - m).abs() < 0.01;
            on(x, b.size.0) && (0.0..=b.size.1).contains(&y)
                || on(y, b.size.1) && (0.0..=b.size.0).contains(&x)
        };
        let inside = |b: &EventBox, p: Point| {
            p.0 > b.at.0 + 0.5
                && p.0 < b.at.0 + b.size.0 - 0.5
                && p.1 > b.at.1 + 0.5
                && p.1 < b.at.1 + b.size.1 - 0.5
        };
        for a in &l.arrows {
            assert!(border(&l.boxes[a.to], a.line[a.line.len() - 1]), "{place}: {a:?}");
            assert!(a.from.is_none_or(|f| border(&l.boxes[f], a.line[0])), "{place}: {a:?}");
            for k in 0..=200 {
                let p = point_at(&a.line, f64::from(k) / 200.0);
                assert!(!l.boxes.iter().any(|b| inside(b, p)), "{place}: {a:?} through a box");
                assert!(
                    p.0 > 0.0 && p.0 < l.size.0 && p.1 > TOP && p.1 < l.size.1,
                    "{place}: {a:?} leaves the picture"
                );
            }
        }
        // Arrows do not overlap: no two share a port or a lane.
        for (i, a) in l.arrows.iter().enumerate() {
            for b in &l.arrows[..i] {
                assert!(
                    a.line != b.line && a.line[0] != b.line[0] && a.line.last() != b.line.last(),
                    "{place}: {a:?} {b:?}"
                );
            }
        }
        let drawn = svg(test, execution, "an execution");
        assert_eq!(drawn.matches("class=\"box\"").count(), execution.events.len(), "{place}");
        let (edges, graph) = (l.arrows.len(), dot(test, execution, "an execution"));
        assert_eq!(graph.matches(" -> ").count(), edges, "{place}\n{graph}");
        assert_eq!(drawn.matches("class=\"head-").count(), edges, "{place}");
        l
    }

    fn count(l: &GraphLayout, edge: RelationKind) -> usize {
        l.arrows.iter().filter(|a| a.edge == edge).count()
    }

    #[test]
    fn the_classics() {
        // Two loads of initial values, each before the other thread's store.
        let (test, e) = execution(SB, "tso");
        let l = check(&test, &e, "SB");
        assert_eq!(
            [RelationKind::Po, RelationKind::Rf, RelationKind::Co, RelationKind::Fr]
                .map(|k| count(&l, k)),
            [2, 2, 0, 2]
        );
        let (test, e) = execution(MP, "pso");
        let l = check(&test, &e, "MP");
        assert_eq!(
            [RelationKind::Po, RelationKind::Rf, RelationKind::Co, RelationKind::Fr]
                .map(|k| count(&l, k)),
            [2, 2, 0, 1]
        );
        assert!(
            svg(&test, &e, "").contains("R y=1")
                && dot(&test, &e, "").contains("b -> c [label=\"rf\""),
            "{}",
            dot(&test, &e, "")
        );
        let (test, e) = execution(IRIW, "tso");
        let l = check(&test, &e, "IRIW");
        assert_eq!(count(&l, RelationKind::Po), 2);
        assert_eq!(l.columns.len(), 4);
    }

    #[test]
    fn pictures_of_random_programs() {
        for seed in 0..150 {
            let shape =
                Shape { threads: 2 + seed as usize % 3, instructions: 4, rich: seed % 2 == 0 };
            let text = litmus_tests::litmus(seed, shape);
            let condition =
                text.find("\nlocations").or_else(|| text.find("\nexists")).unwrap_or(text.len());
            let model = ["sc", "tso", "pso"][seed as usize % 3];
            let (test, e) = execution(&format!("{}\nexists (true)\n", &text[..condition]), model);
            check(&test, &e, &format!("seed {seed} {shape:?}\n{text}"));
        }
    }
}
