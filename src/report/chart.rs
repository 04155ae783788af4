//! Message sequence chart of a path: [`PrintedEvidence`] to SVG. A lane for each parallel
//! component, time from top to bottom, an arrow for each communication.
//!
//! After ITU-T Z.120, without frames: an action of one component is a dot on its lane, an action of
//! two components an arrow between their lanes, an action of more components a line through them.
//! An arrow points to the component that left more arguments open (summed over), because it
//! receives data; if there is none, the arrow has no head. Hidden actions are grey. The last step,
//! which decides, is marked. Changed parameters are shown in tooltips; lists, sets and bags (mostly
//! buffers) are printed below the step. Names are shortened, and a legend explains them. Components
//! without steps have no lane, unless the path ends in a state without steps: then each component
//! has a lane, with its state and its offers below.
//! offers.

use super::caption::why;
use super::printed_evidence::{PrintedEvidence, PrintedStep};
use super::shorten::ShortNames;
use super::svg::{Anchor, Svg, width_of, wrap};
use mu_model::StepPart;
use std::fmt::Write;

const STYLE: &str = "text { font-family: 'DejaVu Sans', Verdana, Helvetica, Arial, sans-serif; font-size: 11px; fill: #1a1a1a }
.title { font-size: 15px; font-weight: bold } .sub { font-size: 12px; fill: #555 }
.head { fill: #eef3f8; stroke: #34506b; stroke-width: 1.2 } .name { font-weight: bold; fill: #1f3347 } .of { font-size: 10px; fill: #34506b }
.lane { stroke: #9fb0c0; stroke-width: 1; stroke-dasharray: 2 3 }
.number { font-size: 10px; fill: #888 }
.arrow, .head-arrow { stroke: #1b4f8a; stroke-width: 1.6; fill: none } .head-arrow { fill: #1b4f8a; stroke-width: 1 }
.arrow-hidden, .head-arrow-hidden { stroke: #8a8a8a; stroke-width: 1.2; fill: none } .head-arrow-hidden { fill: #8a8a8a; stroke-width: 1 }
.dot { fill: #1b4f8a } .dot-hidden { fill: #8a8a8a }
.halo { fill: #fff; fill-opacity: 0.8 } .halo-last { fill: #fdecea; fill-opacity: 0.9 } .halo-last-true { fill: #e9f6ec; fill-opacity: 0.9 }
.value { font-size: 10px; fill: #57606a; font-style: italic } .key { font-size: 10px; fill: #57606a } .label { font-weight: bold; fill: #123a66 } .label-hidden { fill: #6a6a6a }
.last { fill: #fdecea; stroke: none } .last-true { fill: #e9f6ec; stroke: none }
.posture { fill: #8a1c1c; font-weight: bold } .offer { font-size: 10px; fill: #6a3a3a }
.loop { stroke: #a15c12; stroke-width: 1.5; fill: none } .loop-text { fill: #a15c12; font-style: italic }";

const SIZE: f64 = 11.0;
const LINE: f64 = 13.0;
const LEFT: f64 = 56.0;
const TOP: f64 = 64.0;
const NARROWEST: f64 = 130.0;
const WIDEST: f64 = 280.0;
/// Maximum number of characters of a value in the picture.
const MOST_OF_VALUE: usize = 44;
/// Space between a dot and its text.
const GAP: f64 = 8.0;

/// An action in one row.
struct ChartEvent<'a> {
    /// Participating lanes, in the direction of the arrow.
    lanes: Vec<usize>,
    /// True if the arrow has a head.
    directed: bool,
    text: String,
    hidden: bool,
    step: &'a PrintedStep,
    /// Number of the step, from 1.
    number: usize,
    /// True for the first event of its step.
    first: bool,
    /// New values of lists, sets and bags with their lanes, for the last event of a step.
    values: Vec<(usize, String)>,
}

/// Draws the chart of a path. `title`: the checked formula; `verdict`: the result. `None` if the
/// evidence branches.
pub fn chart(story: &PrintedEvidence, title: &str, verdict: &str) -> Option<String> {
    if !story.linear {
        return None;
    }
    let mut used = vec![false; story.components.len().max(1)];
    let short = ShortNames::of(
        story
            .steps
            .iter()
            .flat_map(|s| s.parts.iter().map(StepPart::text))
            .collect::<Vec<_>>()
            .iter()
            .map(String::as_str),
    );
    let all: Vec<ChartEvent> =
        story.steps.iter().enumerate().flat_map(|(i, s)| events(story, s, i + 1, &short)).collect();
    let sentence = why(story, &|text| short.text(text));
    all.iter().flat_map(|e| &e.lanes).for_each(|&l| used[l] = true);
    if !used.contains(&true) {
        used[0] = true;
    }
    if story.ending.is_some() {
        used.fill(true);
    }
    let lanes: Vec<usize> = (0..used.len()).filter(|&l| used[l]).collect();
    let place =
        |lane: usize| lanes.iter().position(|l| *l == lane).expect("all lanes of events are used");
    let heads: Vec<(String, String)> = lanes
        .iter()
        .map(|&l| split_name(&short.text(story.components.get(l).map_or("model", |n| n))))
        .collect();
    let tails: Vec<Vec<String>> = lanes.iter().map(|&l| tail(story, l, &short)).collect();
    let gaps = gaps(&all, &heads, &tails, &place);
    let mut x = vec![LEFT + gaps[0] / 2.0];
    for i in 1..lanes.len() {
        x.push(x[i - 1] + gaps[i]);
    }
    // Texts of dots are to the right of their lane.
    let beyond = all.iter().filter(|e| e.lanes.len() == 1 && place(e.lanes[0]) + 1 == lanes.len());
    let beyond = beyond
        .map(|e| widest(&wrap(&e.text, SIZE, WIDEST - 2.0 * GAP)) * 1.08 + GAP + 14.0)
        .fold(NARROWEST / 2.0, f64::max);
    let width = (x[lanes.len() - 1] + beyond)
        .max(LEFT + width_of(title, 15.0) + 40.0)
        .max(LEFT + width_of(verdict, 12.0) + 30.0)
        .max(400.0);
    let mut svg = Svg::default();
    svg.text("title", (16.0, 24.0), Anchor::Start, title);
    svg.text("sub", (16.0, 42.0), Anchor::Start, verdict);
    let said = wrap(&sentence, 12.0, width - 40.0);
    for (i, line) in said.iter().enumerate() {
        svg.text("sub", (16.0, 59.0 + i as f64 * 15.0), Anchor::Start, line);
    }
    let top = TOP + 4.0 + said.len() as f64 * 15.0;
    let body = top + 44.0;
    // Rows determine their heights first.
    let mut y = body + 14.0;
    let mut rows: Vec<f64> = Vec::new();
    let mut tops: Vec<f64> = Vec::new();
    let mut texts = Vec::new();
    for event in &all {
        let lines = wrap(&event.text, SIZE, room(event, &x, &place));
        y += if event.first { 9.0 } else { 3.0 };
        tops.push(y - 3.0);
        // The text of an arrow is above it, the text of a dot next to it.
        let above = if event.lanes.len() == 1 {
            (lines.len() as f64 - 1.0) * LINE / 2.0
        } else {
            lines.len() as f64 * LINE
        };
        y += above + 8.0;
        rows.push(y);
        y += if event.lanes.len() == 1 { above } else { 4.0 } + 4.0;
        let below = event
            .lanes
            .iter()
            .chain(event.values.iter().map(|v| &v.0))
            .map(|l| event.values.iter().filter(|v| v.0 == *l).count());
        y += below.max().unwrap_or(0) as f64 * LINE;
        texts.push(lines);
    }
    let bottom = y + 22.0;
    let below = tails.iter().map(Vec::len).max().unwrap_or(0) as f64 * LINE;
    if let Some(at) = all.iter().position(|e| e.number == story.steps.len())
        && story.back_to.is_none()
    {
        svg.rect(
            if story.verdict { "last-true" } else { "last" },
            (8.0, tops[at]),
            (width - 16.0, y + 4.0 - tops[at]),
        );
    }
    for (i, (head, tail)) in heads.iter().zip(&tails).enumerate() {
        draw_lane(&mut svg, x[i], (top, bottom), head, tail);
    }
    for ((event, &y), lines) in all.iter().zip(&rows).zip(&texts) {
        svg.group(&tooltip(story, event));
        if event.first {
            svg.text("number", (LEFT - 26.0, y + 4.0), Anchor::End, &event.number.to_string());
        }
        let halo = match story.verdict {
            _ if story.back_to.is_some() || event.number < story.steps.len() => "halo",
            false => "halo-last",
            true => "halo-last-true",
        };
        draw(&mut svg, event, (y, halo), lines, &x, &place);
        let below =
            y + if event.lanes.len() == 1 { (lines.len() as f64 + 1.0) * LINE / 2.0 } else { LINE };
        for (i, (lane, text)) in
            event.values.iter().enumerate().filter(|(_, v)| lanes.contains(&v.0))
        {
            let above = event.values[..i].iter().filter(|v| v.0 == *lane).count();
            write(
                &mut svg,
                ("value", halo),
                (x[place(*lane)] + GAP, below + 4.0 + above as f64 * LINE),
                Anchor::Start,
                text,
            );
        }
        svg.end();
    }
    if let Some(back) = story.back_to
        && let Some(from) = all.iter().position(|e| e.number == back + 1)
    {
        let (top, low) = (rows[from] - 6.0, bottom - 8.0);
        svg.path(
            "loop",
            &format!("M {} {low} H {} V {top} H {}", LEFT - 14.0, LEFT - 22.0, LEFT - 14.0),
        );
        svg.text(
            "loop-text",
            (LEFT - 8.0, low + 4.0),
            Anchor::Start,
            &format!("and again from step {}", back + 1),
        );
    }
    let low = legend(&mut svg, story, &all, &short, (bottom + 14.0 + below, width));
    Some(svg.finish(width, low, STYLE))
}

/// Draws a lane: the name of its component above, its offers at the end below.
fn draw_lane(
    svg: &mut Svg,
    x: f64,
    (top, bottom): (f64, f64),
    (name, of): &(String, String),
    tail: &[String],
) {
    svg.line("lane", (x, top + 40.0), (x, bottom));
    let w = width_of(name, 12.0).max(width_of(of, 10.0)) + 18.0;
    svg.rect("head", (x - w / 2.0, top), (w, 36.0));
    svg.text("name", (x, top + if of.is_empty() { 22.0 } else { 15.0 }), Anchor::Middle, name);
    svg.text("of", (x, top + 29.0), Anchor::Middle, of);
    for (n, line) in tail.iter().enumerate() {
        svg.text(
            if n == 0 { "posture" } else { "offer" },
            (x, bottom + 12.0 + n as f64 * LINE),
            Anchor::Middle,
            line,
        );
    }
}

/// Returns the lines about a component if the path ends in a state without steps.
fn tail(story: &PrintedEvidence, lane: usize, short: &ShortNames) -> Vec<String> {
    let lines = story.ending.as_ref().map(|e| e.lane(lane)).unwrap_or_default();
    lines.iter().flat_map(|l| wrap(&short.text(l), SIZE, WIDEST - 2.0 * GAP)).collect()
}

/// Draws the legend for the marks and short names that occur. Returns its lower end.
fn legend(
    svg: &mut Svg,
    story: &PrintedEvidence,
    all: &[ChartEvent],
    short: &ShortNames,
    (top, width): (f64, f64),
) -> f64 {
    let mut lines: Vec<(&str, String)> = Vec::new();
    let mut add = |there: bool, mark: &'static str, text: &str| {
        if there {
            lines.push((mark, text.to_string()));
        }
    };
    add(all.iter().any(|e| e.lanes.len() == 1), "dot", "an action of one component");
    add(
        all.iter().any(|e| e.directed),
        "arrow",
        "an action of two components; the arrow points to the one that receives data",
    );
    add(all.iter().any(|e| e.lanes.len() > 1 && !e.directed), "line", "several together");
    add(
        all.iter().any(|e| e.hidden),
        "hidden",
        if story.of_formula { "grey: hidden from the formula" } else { "grey: hidden" },
    );
    add(all.iter().any(|e| !e.values.is_empty()), "value", "a list, set or bag after the step");
    add(
        story.back_to.is_none() && !all.is_empty(),
        "last",
        if story.of_formula { "the deciding step" } else { "the last step" },
    );
    let key = short.key().map(|k| wrap(&k, 10.0, width - 60.0)).unwrap_or_default();
    let mut y = top + 8.0;
    svg.line("lane", (16.0, top), (width - 16.0, top));
    for (mark, text) in &lines {
        y += 14.0;
        match *mark {
            "dot" => svg.circle("dot", (28.0, y - 3.5), 4.0),
            "arrow" => {
                svg.line("arrow", (16.0, y - 3.5), (38.0, y - 3.5));
                svg.path("head-arrow", &format!("M 40 {:.1} l -9 -4 v 8 z", y - 3.5));
            }
            "line" => {
                svg.line("arrow", (18.0, y - 3.5), (38.0, y - 3.5));
                [18.0, 38.0].iter().for_each(|x| svg.circle("dot", (*x, y - 3.5), 3.5));
            }
            "hidden" => svg.circle("dot-hidden", (28.0, y - 3.5), 4.0),
            "last" => svg.rect(
                if story.verdict { "last-true" } else { "last" },
                (16.0, y - 9.0),
                (24.0, 11.0),
            ),
            _ => svg.text("value", (16.0, y), Anchor::Start, "[ ]"),
        }
        svg.text("key", (48.0, y), Anchor::Start, text);
    }
    for line in &key {
        y += 14.0;
        svg.text("key", (48.0, y), Anchor::Start, line);
    }
    y + 12.0
}

/// Returns the events of a step: a row for each action. A tau without known actions is a dot on the
/// lane of a change.
fn events<'a>(
    story: &PrintedEvidence,
    step: &'a PrintedStep,
    number: usize,
    short: &ShortNames,
) -> Vec<ChartEvent<'a>> {
    let mut out: Vec<ChartEvent> =
        step.parts.iter().map(|part| event(step, part, number, short)).collect();
    out.sort_by_key(|e| e.hidden);
    if out.is_empty() {
        let mut lanes: Vec<usize> = step
            .changed
            .iter()
            .map(|(slot, _)| story.parameters[*slot as usize].component as usize)
            .collect();
        lanes.sort_unstable();
        lanes.dedup();
        if lanes.is_empty() {
            lanes.push(0);
        }
        let text = short.text(&step.action);
        out.push(ChartEvent {
            lanes,
            directed: false,
            text,
            hidden: true,
            step,
            number,
            first: true,
            values: Vec::new(),
        });
    }
    if let Some(last) = out.last_mut() {
        last.values = values(story, step, short);
    }
    out.iter_mut().enumerate().for_each(|(i, e)| e.first = i == 0);
    out
}

/// Returns the new values of lists, sets and bags that a step changed, with the lanes of their
/// components.
fn values(story: &PrintedEvidence, step: &PrintedStep, short: &ShortNames) -> Vec<(usize, String)> {
    let value_text = |(slot, value): &(u32, String)| {
        let parameter = &story.parameters[*slot as usize];
        let text = format!("{} = {}", parameter.name, short.text(value));
        let cut: String = text.chars().take(MOST_OF_VALUE).collect();
        let more = if cut.len() < text.len() { "…" } else { "" };
        value
            .starts_with(['[', '{'])
            .then(|| (parameter.component as usize, format!("{cut}{more}")))
    };
    step.changed.iter().filter_map(value_text).collect()
}

fn event<'a>(
    step: &'a PrintedStep,
    part: &StepPart,
    number: usize,
    short: &ShortNames,
) -> ChartEvent<'a> {
    let mut from: Vec<_> = part.from.iter().collect();
    from.sort_by_key(|f| f.open);
    let mut lanes: Vec<usize> = from.iter().map(|f| f.component as usize).collect();
    lanes.dedup();
    if lanes.is_empty() {
        lanes.push(0);
    }
    let directed = from.len() == 2 && from[0].open < from[1].open;
    ChartEvent {
        lanes,
        directed,
        text: short.text(&part.text()),
        hidden: part.hidden,
        step,
        number,
        first: false,
        values: Vec::new(),
    }
}

/// Splits a component's name from its arguments.
fn split_name(name: &str) -> (String, String) {
    match name.split_once('(') {
        Some((name, of)) => (name.to_string(), of.trim_end_matches(')').to_string()),
        None => (name.to_string(), String::new()),
    }
}

fn widest(lines: &[String]) -> f64 {
    lines.iter().map(|l| width_of(l, SIZE)).fold(0.0, f64::max)
}

/// Returns the range of lanes of an event.
fn span(event: &ChartEvent, place: &impl Fn(usize) -> usize) -> (usize, usize) {
    let places = event.lanes.iter().map(|l| place(*l));
    (places.clone().min().unwrap_or(0), places.max().unwrap_or(0))
}

/// Returns the space for the text of an event.
fn room(event: &ChartEvent, x: &[f64], place: &impl Fn(usize) -> usize) -> f64 {
    let (low, high) = span(event, place);
    if low < high {
        return (x[high] - x[low] - 14.0).max(NARROWEST - 14.0);
    }
    x.get(low + 1).map_or(WIDEST - 2.0 * GAP, |next| next - x[low] - GAP - 12.0)
}

/// Computes the distances between lanes from the widths of heads and texts, within bounds. The
/// first entry is the width of the first head.
fn gaps(
    all: &[ChartEvent],
    heads: &[(String, String)],
    tails: &[Vec<String>],
    place: &impl Fn(usize) -> usize,
) -> Vec<f64> {
    let head = |i: usize| {
        width_of(&heads[i].0, 12.0).max(width_of(&heads[i].1, 10.0)).max(widest(&tails[i])) + 24.0
    };
    let mut gaps: Vec<f64> = (0..heads.len())
        .map(|i| if i == 0 { head(0) } else { (head(i - 1) + head(i)) / 2.0 + 6.0 })
        .collect();
    for event in all {
        let (low, high) = span(event, place);
        let wanted = width_of(&event.text, SIZE) + 26.0;
        // The text of a dot may extend to the next lane; an arrow over several lanes distributes
        // its width.
        let (first, count) = if low == high { (low + 1, 1) } else { (low + 1, high - low) };
        for gap in gaps.iter_mut().skip(first).take(count) {
            *gap = gap.max((wanted / count as f64).clamp(NARROWEST, WIDEST));
        }
    }
    gaps
}

fn draw(
    svg: &mut Svg,
    event: &ChartEvent,
    (y, halo): (f64, &str),
    lines: &[String],
    x: &[f64],
    place: &impl Fn(usize) -> usize,
) {
    let class = |name: &str| if event.hidden { format!("{name}-hidden") } else { name.to_string() };
    let at: Vec<f64> = event.lanes.iter().map(|l| x[place(*l)]).collect();
    if let [x] = at[..] {
        svg.circle(&class("dot"), (x, y), 4.0);
        let top = y + 4.0 - (lines.len() as f64 - 1.0) * LINE / 2.0;
        for (i, line) in lines.iter().enumerate() {
            write(
                svg,
                (&class("label"), halo),
                (x + GAP, top + i as f64 * LINE),
                Anchor::Start,
                line,
            );
        }
        return;
    }
    let (low, high) = at.iter().fold((f64::MAX, f64::MIN), |(l, h), x| (l.min(*x), h.max(*x)));
    svg.line(&class("arrow"), (low, y), (high, y));
    match at[..] {
        [_, to] if event.directed => {
            let back = if to > at[0] { -9.0 } else { 9.0 };
            svg.path(&class("head-arrow"), &format!("M {to:.1} {y:.1} l {back} -4 v 8 z"));
            svg.circle(&class("dot"), (at[0], y), 2.5);
        }
        _ => at.iter().for_each(|x| svg.circle(&class("dot"), (*x, y), 3.5)),
    }
    let top = y - 5.0 - (lines.len() as f64 - 1.0) * LINE;
    for (i, line) in lines.iter().enumerate() {
        write(
            svg,
            (&class("label"), halo),
            ((low + high) / 2.0, top + i as f64 * LINE),
            Anchor::Middle,
            line,
        );
    }
}

/// Draws a text with a background.
fn write(
    svg: &mut Svg,
    (class, halo): (&str, &str),
    (x, y): (f64, f64),
    anchor: Anchor,
    text: &str,
) {
    let width = width_of(text, SIZE);
    let left = if anchor == Anchor::Middle { x - width / 2.0 } else { x };
    svg.rect(halo, (left - 1.0, y - 10.0), (width + 2.0, LINE));
    svg.text(class, (x, y), anchor, text);
}

fn tooltip(story: &PrintedEvidence, event: &ChartEvent) -> String {
    let mut text = format!("step {}: {}", event.number, event.step.action);
    for (slot, value) in &event.step.changed {
        let parameter = &story.parameters[*slot as usize];
        let component = story.components.get(parameter.component as usize).map_or("", |c| c);
        let _ = write!(text, "\n{component}: {} = {value}", parameter.name);
    }
    text
}
