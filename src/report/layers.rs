//! Layered drawing of a small transition system: [`Lts`] to SVG. States are in rows by their
//! distance from the initial state.
//!
//! After Sugiyama, Tagawa, Toda, "Methods for visual understanding of hierarchical system
//! structures", 1981: layers, then sweeps that order each layer by the median of the neighbours in
//! the layer before. Layers are breadth-first levels. Transitions between the same two states are
//! one arrow with all labels, of which the first few are visible.
//!
//! Labels have their own space, as in Gansner, Koutsofios, North, Vo, "A technique for drawing
//! directed graphs", 1993. The labels of arrows are in strips between the rows of states, in one or
//! more lanes, as close to the centre of their arrows as their neighbours allow; an arrow runs
//! through its label. The labels of a loop are next to its state, in its row. So no label covers
//! another label or a state. Cost: O(sweeps * (states + transitions) * log). Invariant: the picture
//! depends only on the transition system.

use super::svg::{Anchor, Svg, width_of};
use mu_base::ids::{LabelId, StateId};
use mu_lts::Lts;
use std::collections::BTreeMap;

/// Maximum number of states that are drawn.
pub const MOST_STATES: usize = 600;
/// Number of visible labels of an arrow; the others are counted.
const MAX_LABELS: usize = 3;
/// Maximum length of a label, in characters.
const MAX_LABEL_LENGTH: usize = 40;
const RADIUS: f64 = 11.0;
const SWEEPS: usize = 12;
/// Distance between adjacent boxes, and between lanes.
const GAP: f64 = 10.0;
const LANE_GAP: f64 = 8.0;
/// Space around the lanes of a strip, for bends of arrows.
const TURN: f64 = 26.0;
/// Distance from a state's centre to the labels of its loop.
const LOOP: f64 = 36.0;
const LINE: f64 = 12.0;
/// Maximum number of lanes in a strip, unless the picture would be wider than its states.
const LANES: usize = 3;
/// Space to the left of and above the first state.
const MARGIN: f64 = 24.0;
const TOP: f64 = 66.0;

const STYLE: &str = "text { font-family: 'DejaVu Sans', Verdana, Helvetica, Arial, sans-serif; font-size: 10px; fill: #1a1a1a }
.title { font-size: 15px; font-weight: bold } .sub { font-size: 12px; fill: #555 }
.state { fill: #eef3f8; stroke: #34506b; stroke-width: 1.3 } .start { fill: none; stroke: #34506b; stroke-width: 1.3 }
.deadlock { fill: #fdecea; stroke: #a12622; stroke-width: 1.6 } .number { fill: #1f3347 }
.edge { fill: none; stroke: #5b7288; stroke-width: 1.2 } .tip { fill: #5b7288; stroke: none }
.back { fill: none; stroke: #a15c12; stroke-width: 1.2 } .back-tip { fill: #a15c12; stroke: none }
.label { fill: #123a66; paint-order: stroke; stroke: #fff; stroke-width: 3px; stroke-linejoin: round }";

/// An arrow: labels by their texts.
type Arrows = BTreeMap<(usize, usize), Vec<LabelId>>;

/// Draws the reachable part. Error: its number of states, if that exceeds [`MOST_STATES`].
pub fn draw(lts: &Lts, title: &str) -> Result<String, usize> {
    let level = levels(lts);
    let reachable = level.iter().flatten().count();
    if reachable > MOST_STATES {
        return Err(reachable);
    }
    let plan = plan(lts, &level);
    let mut svg = Svg::default();
    svg.text("title", (16.0, 24.0), Anchor::Start, title);
    let deadlocks = plan.states.keys().filter(|s| lts.offsets[**s] == lts.offsets[**s + 1]).count();
    let about = format!(
        "{reachable} states, {} transitions, {deadlocks} deadlocks; rows are distances from the initial state",
        lts.transition_count()
    );
    svg.text("sub", (16.0, 42.0), Anchor::Start, &about);
    // Draw labels last, so that no arrow crosses one.
    for arrow in &plan.arrows {
        svg.group(&arrow.all.join("\n"));
        arrow.path(&mut svg, plan.states[&arrow.from], plan.states[&arrow.to]);
        svg.end();
    }
    for (state, &at) in &plan.states {
        let end = lts.offsets[*state] == lts.offsets[*state + 1];
        svg.circle(if end { "deadlock" } else { "state" }, at, RADIUS);
        if *state == lts.initial.index() {
            svg.circle("start", at, RADIUS + 3.0);
        }
        svg.text("number", (at.0, at.1 + 3.5), Anchor::Middle, &state.to_string());
    }
    for arrow in &plan.arrows {
        svg.group(&arrow.all.join("\n"));
        let LayerBox { x, y, .. } = arrow.frame;
        for (i, text) in arrow.lines.iter().enumerate() {
            let middle = x + arrow.frame.width / 2.0;
            let (at, anchor) =
                if arrow.from == arrow.to { (x, Anchor::Start) } else { (middle, Anchor::Middle) };
            svg.text("label", (at, y + 9.5 + i as f64 * LINE), anchor, text);
        }
        svg.end();
    }
    svg.text(
        "sub",
        (16.0, plan.height + 24.0),
        Anchor::Start,
        "double circle: initial state; red: deadlock; brown arrows: back towards the initial state",
    );
    Ok(svg.finish(
        plan.width.max(540.0).max(width_of(title, 15.0) + 40.0),
        plan.height + 38.0,
        STYLE,
    ))
}

/// A box: its upper left corner and its size.
#[derive(Clone, Copy, Debug)]
struct LayerBox {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

/// An arrow with the place of its labels.
struct Arrow {
    from: usize,
    to: usize,
    /// True if it leads back towards the initial state.
    back: bool,
    /// All labels, and the visible ones.
    all: Vec<String>,
    lines: Vec<String>,
    frame: LayerBox,
}

/// Positions of all elements.
struct LayerPositions {
    states: BTreeMap<usize, (f64, f64)>,
    arrows: Vec<Arrow>,
    width: f64,
    height: f64,
}

/// Computes the position of every state and label.
fn plan(lts: &Lts, level: &[Option<usize>]) -> LayerPositions {
    let mut joined = Arrows::new();
    for source in (0..lts.state_count()).filter(|s| level[*s].is_some()) {
        for (label, target) in lts.successors(StateId::new(source)) {
            let labels = joined.entry((source, target.index())).or_default();
            if !labels.contains(&label) {
                labels.push(label);
            }
        }
    }
    let layers = order(level, &joined);
    let depth_of = |state: usize| level[state].unwrap_or(0);
    let mut arrows: Vec<Arrow> = joined
        .iter()
        .map(|((from, to), labels)| {
            let (all, lines) = (texts(lts, labels), visible_labels(lts, labels));
            let width = lines.iter().map(|t| width_of(t, 10.0)).fold(0.0, f64::max) + 4.0;
            let frame = LayerBox { x: 0.0, y: 0.0, width, height: lines.len() as f64 * LINE };
            Arrow { from: *from, to: *to, back: depth_of(*to) < depth_of(*from), all, lines, frame }
        })
        .collect();
    let x = abscissas(&layers, &arrows);
    // The strip of an arrow is above its lower end; below both ends if they are in one row.
    let strip = |a: &Arrow| if a.back { depth_of(a.from) - 1 } else { depth_of(a.from) };
    let mut y = TOP + RADIUS;
    let mut states = BTreeMap::new();
    for (row, layer) in layers.iter().enumerate() {
        let mut half = RADIUS + 4.0;
        for arrow in arrows.iter().filter(|a| a.from == a.to && depth_of(a.from) == row) {
            half = half.max(arrow.frame.height / 2.0);
        }
        y += half - RADIUS;
        for arrow in arrows.iter_mut().filter(|a| a.from == a.to && depth_of(a.from) == row) {
            (arrow.frame.x, arrow.frame.y) = (x[&arrow.from] + LOOP, y - arrow.frame.height / 2.0);
        }
        states.extend(layer.iter().map(|s| (*s, (x[s], y))));
        y += half;
        let here: Vec<usize> = (0..arrows.len())
            .filter(|i| arrows[*i].from != arrows[*i].to && strip(&arrows[*i]) == row)
            .collect();
        if !here.is_empty() {
            y = lanes(&mut arrows, here, &x, y + TURN) + TURN;
        } else if row + 1 < layers.len() {
            y += TURN;
        }
        y += RADIUS;
    }
    // Shift everything right if labels are left of all states.
    let left = arrows
        .iter()
        .map(|a| a.frame.x)
        .chain(states.values().map(|s| s.0 - RADIUS - 4.0))
        .fold(f64::MAX, f64::min);
    let shift = if left < f64::MAX { MARGIN - left } else { 0.0 };
    arrows.iter_mut().for_each(|a| a.frame.x += shift);
    states.values_mut().for_each(|s| s.0 += shift);
    let right = arrows
        .iter()
        .map(|a| a.frame.x + a.frame.width)
        .chain(states.values().map(|s| s.0 + RADIUS + 4.0))
        .fold(0.0, f64::max);
    LayerPositions { states, arrows, width: right + MARGIN, height: y }
}

/// Distributes the labels of a strip to lanes and places them. Returns the lower end of the strip.
fn lanes(arrows: &mut [Arrow], mut here: Vec<usize>, x: &BTreeMap<usize, f64>, top: f64) -> f64 {
    let wanted = |a: &Arrow| {
        // The labels of two opposite arrows are side by side: each on the right in its direction.
        let aside = if a.back { 6.0 } else { -6.0 };
        (x[&a.from] + x[&a.to]) / 2.0 + aside
    };
    here.sort_by(|i, j| wanted(&arrows[*i]).total_cmp(&wanted(&arrows[*j])).then(i.cmp(j)));
    let span = x.values().fold(0.0f64, |w, x| w.max(*x)) + 2.0 * MARGIN;
    let total: f64 = here.iter().map(|i| arrows[*i].frame.width + GAP).sum();
    let most = LANES.max((total / span.max(600.0)).ceil() as usize + 1);
    // The end of each lane. A label goes where its displacement is smallest, or into a new lane if
    // that is large.
    let mut rows: Vec<(f64, Vec<usize>)> = Vec::new();
    for i in here {
        let start = wanted(&arrows[i]) - arrows[i].frame.width / 2.0;
        let best = (0..rows.len())
            .min_by(|a, b| (rows[*a].0 - start).max(0.0).total_cmp(&(rows[*b].0 - start).max(0.0)));
        let at = match best {
            Some(best) if rows[best].0 - start < 30.0 || rows.len() >= most => best,
            _ => {
                rows.push((f64::MIN, Vec::new()));
                rows.len() - 1
            }
        };
        let end = rows[at].0.max(start) + arrows[i].frame.width + GAP;
        rows[at].0 = end;
        rows[at].1.push(i);
    }
    let mut y = top;
    for (_, row) in rows {
        let wants: Vec<(f64, f64)> = row
            .iter()
            .map(|i| {
                (wanted(&arrows[*i]) - arrows[*i].frame.width / 2.0, arrows[*i].frame.width + GAP)
            })
            .collect();
        let height = row.iter().map(|i| arrows[*i].frame.height).fold(0.0, f64::max);
        for (i, at) in row.iter().zip(place_intervals(&wants)) {
            let frame = &mut arrows[*i].frame;
            (frame.x, frame.y) = (at, y + (height - frame.height) / 2.0);
        }
        y += height + LANE_GAP;
    }
    y - LANE_GAP
}

/// Places intervals in order, each as close to its desired start as possible (least sum of
/// squares). Neighbours that would overlap form a block at the mean of their desired positions.
fn place_intervals(wants: &[(f64, f64)]) -> Vec<f64> {
    // For each block: its start, its length, its members.
    let mut blocks: Vec<(f64, f64, usize)> = Vec::new();
    for &(start, length) in wants {
        let mut block = (start, length, 1);
        while let Some(&(before, long, count)) = blocks.last()
            && before + long > block.0
        {
            blocks.pop();
            let n = (count + block.2) as f64;
            // The desired block start of a later member is earlier by the length before it.
            let mean = (before * count as f64 + (block.0 - long) * block.2 as f64) / n;
            block = (mean, long + block.1, count + block.2);
        }
        blocks.push(block);
    }
    let (mut out, mut next) = (Vec::new(), wants.iter());
    for (start, _, count) in blocks {
        let mut at = start;
        for (_, length) in next.by_ref().take(count) {
            out.push(at);
            at += length;
        }
    }
    out
}

/// Returns the distance of each state from the initial state.
fn levels(lts: &Lts) -> Vec<Option<usize>> {
    let mut level = vec![None; lts.state_count()];
    level[lts.initial.index()] = Some(0);
    let mut queue = vec![lts.initial];
    let mut next = 0;
    while next < queue.len() {
        let state = queue[next];
        next += 1;
        for (_, target) in lts.successors(state) {
            if level[target.index()].is_none() {
                level[target.index()] = level[state.index()].map(|l: usize| l + 1);
                queue.push(target);
            }
        }
    }
    level
}

/// Orders the states of each level so that few arrows cross.
fn order(level: &[Option<usize>], arrows: &Arrows) -> Vec<Vec<usize>> {
    let depth = level.iter().flatten().max().map_or(0, |l| l + 1);
    let mut layers: Vec<Vec<usize>> = vec![Vec::new(); depth];
    for (state, l) in level.iter().enumerate() {
        if let Some(l) = l {
            layers[*l].push(state);
        }
    }
    let mut near: Vec<Vec<usize>> = vec![Vec::new(); level.len()];
    for (a, b) in arrows.keys().filter(|(a, b)| a != b) {
        near[*a].push(*b);
        near[*b].push(*a);
    }
    let mut best = (crossings(&layers, level, arrows), layers.clone());
    for sweep in 0..SWEEPS {
        let order: Vec<usize> = if sweep % 2 == 0 {
            (1..depth).collect()
        } else {
            (0..depth.saturating_sub(1)).rev().collect()
        };
        for l in order {
            let other = if sweep % 2 == 0 { l - 1 } else { l + 1 };
            let place: BTreeMap<usize, usize> =
                layers[other].iter().enumerate().map(|(i, s)| (*s, i)).collect();
            let mut keyed: Vec<(f64, usize)> = Vec::new();
            for (i, &state) in layers[l].iter().enumerate() {
                let mut at: Vec<usize> =
                    near[state].iter().filter_map(|n| place.get(n).copied()).collect();
                at.sort_unstable();
                let median = match at.len() {
                    0 => i as f64,
                    n if n % 2 == 1 => at[n / 2] as f64,
                    n => (at[n / 2 - 1] + at[n / 2]) as f64 / 2.0,
                };
                keyed.push((median, state));
            }
            keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
            layers[l] = keyed.into_iter().map(|k| k.1).collect();
        }
        let now = crossings(&layers, level, arrows);
        if now < best.0 {
            best = (now, layers.clone());
        }
    }
    best.1
}

/// Counts the crossings of arrows between neighbouring layers.
fn crossings(layers: &[Vec<usize>], level: &[Option<usize>], arrows: &Arrows) -> usize {
    let place: BTreeMap<usize, usize> =
        layers.iter().flat_map(|l| l.iter().enumerate().map(|(i, s)| (*s, i))).collect();
    let mut between: BTreeMap<usize, Vec<(usize, usize)>> = BTreeMap::new();
    for (a, b) in arrows.keys() {
        let (Some(la), Some(lb)) = (level[*a], level[*b]) else { continue };
        if la.abs_diff(lb) == 1 {
            let (above, below) = if la < lb { (a, b) } else { (b, a) };
            between.entry(la.min(lb)).or_default().push((place[above], place[below]));
        }
    }
    let crossed = |pairs: &Vec<(usize, usize)>| {
        let mut sorted = pairs.clone();
        sorted.sort_unstable();
        let mut count = 0;
        for (i, a) in sorted.iter().enumerate() {
            count += sorted[..i].iter().filter(|b| b.0 < a.0 && b.1 > a.1).count();
        }
        count
    };
    between.values().map(crossed).sum()
}

/// Computes the horizontal position of each state: layers are centred, with space for the labels of
/// arrows, and of loops on the right.
fn abscissas(layers: &[Vec<usize>], arrows: &[Arrow]) -> BTreeMap<usize, f64> {
    // Space to the left and right of a state's centre.
    let mut room: BTreeMap<usize, (f64, f64)> =
        layers.iter().flatten().map(|s| (*s, (26.0, 26.0))).collect();
    for arrow in arrows {
        let half = (arrow.frame.width / 2.0).min(85.0) + GAP / 2.0;
        let Some(of) = room.get_mut(&arrow.to) else { continue };
        *of = if arrow.from == arrow.to {
            (of.0, of.1.max(LOOP + arrow.frame.width + GAP))
        } else {
            (of.0.max(half), of.1.max(half))
        };
    }
    let rows: Vec<(f64, Vec<(usize, f64)>)> = layers
        .iter()
        .map(|layer| {
            let mut at = 0.0;
            let mut row = Vec::new();
            for state in layer {
                let (left, right) = room[state];
                row.push((*state, at + left));
                at += left + right;
            }
            (at, row)
        })
        .collect();
    let widest = rows.iter().map(|r| r.0).fold(0.0, f64::max);
    let centred = |(w, row): &(f64, Vec<(usize, f64)>)| {
        row.iter().map(|(s, x)| (*s, x + (widest - w) / 2.0)).collect::<Vec<_>>()
    };
    rows.iter().flat_map(centred).collect()
}

/// Returns the labels of an arrow.
fn texts(lts: &Lts, labels: &[LabelId]) -> Vec<String> {
    let mut texts: Vec<String> =
        labels.iter().map(|l| lts.table.texts[l.index()].clone()).collect();
    texts.sort();
    texts
}

/// Returns the visible labels of an arrow as lines.
fn visible_labels(lts: &Lts, labels: &[LabelId]) -> Vec<String> {
    let mut texts: Vec<String> = labels
        .iter()
        .map(|l| {
            let text = &lts.table.texts[l.index()];
            let cut: String = text.chars().take(MAX_LABEL_LENGTH).collect();
            if cut.len() < text.len() { format!("{cut}…") } else { cut }
        })
        .collect();
    texts.sort();
    if texts.len() > MAX_LABELS + 1 {
        let more = texts.len() - MAX_LABELS;
        texts.truncate(MAX_LABELS);
        texts.push(format!("and {more} more"));
    }
    texts
}

impl Arrow {
    /// Draws the arrow through its labels.
    fn path(&self, svg: &mut Svg, from: (f64, f64), to: (f64, f64)) {
        let (line, tip) = if self.back { ("back", "back-tip") } else { ("edge", "tip") };
        if self.from == self.to {
            let (x, y) = (from.0 + RADIUS, from.1);
            svg.path(line, &format!("M {:.1} {:.1} c 26 -20 26 24 2 10", x - 1.0, y - 5.0));
            svg.path(tip, &format!("M {:.1} {:.1} l 9 0 l -4 7 z", x - 1.0, y + 4.0));
            return;
        }
        let middle = self.frame.x + self.frame.width / 2.0;
        let (top, bottom) =
            ((middle, self.frame.y - 1.0), (middle, self.frame.y + self.frame.height + 1.0));
        // The sides of the labels that are closer to the ends.
        let near = |end: (f64, f64)| if end.1 < self.frame.y { top } else { bottom };
        let (first, second) = (near(from), near(to));
        let rim = |state: (f64, f64), at: (f64, f64), by: f64| {
            let d = (at.0 - state.0).hypot(at.1 - state.1).max(1.0);
            (state.0 + (at.0 - state.0) / d * by, state.1 + (at.1 - state.1) / d * by)
        };
        let (start, end) = (rim(from, first, RADIUS + 1.0), rim(to, second, RADIUS + 3.0));
        // Vertical at the labels, towards the centre at the states.
        let bend =
            |state: (f64, f64), label: (f64, f64)| (label.0, label.1 + (state.1 - label.1) * 0.5);
        let piece = |p: (f64, f64), c: (f64, f64), q: (f64, f64)| {
            format!("M {:.1} {:.1} Q {:.1} {:.1} {:.1} {:.1}", p.0, p.1, c.0, c.1, q.0, q.1)
        };
        let control = bend(to, second);
        svg.path(
            line,
            &format!("{} {}", piece(start, bend(from, first), first), piece(second, control, end)),
        );
        let d = (end.0 - control.0).hypot(end.1 - control.1).max(1.0);
        let back = (end.0 - (end.0 - control.0) / d * 8.0, end.1 - (end.1 - control.1) / d * 8.0);
        let side = ((end.1 - back.1) / 2.0, (back.0 - end.0) / 2.0);
        let corners = [end, (back.0 + side.0, back.1 + side.1), (back.0 - side.0, back.1 - side.1)];
        let corners: Vec<String> =
            corners.iter().map(|c| format!("{:.1} {:.1}", c.0, c.1)).collect();
        svg.path(tip, &format!("M {} z", corners.join(" L ")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mu_lts::Labels;

    fn lts(states: usize, edges: &[(u32, u32, u32)], labels: &[&str]) -> Lts {
        let table = Labels {
            texts: std::iter::once("tau").chain(labels.iter().copied()).map(String::from).collect(),
        };
        let edges: Vec<_> = edges
            .iter()
            .map(|(a, l, b)| (StateId::of(*a), LabelId::of(*l), StateId::of(*b)))
            .collect();
        Lts::from_edges(StateId::of(0), states, &edges, table)
    }

    #[test]
    fn labels_of_one_arrow_are_merged() {
        let names = ["a", "b", "c", "d", "e"];
        let svg = draw(
            &lts(
                3,
                &[(0, 1, 1), (0, 2, 1), (0, 3, 1), (0, 4, 1), (0, 5, 1), (1, 1, 0), (0, 1, 1)],
                &names,
            ),
            "t & u",
        )
        .unwrap();
        // One arrow forward with three labels and "and 2 more", one back; state 2 is unreachable.
        assert_eq!(
            (svg.matches("class=\"edge\"").count(), svg.matches("class=\"back\"").count()),
            (1, 1),
            "{svg}"
        );
        assert_eq!(
            (svg.matches("class=\"tip\"").count(), svg.matches("class=\"back-tip\"").count()),
            (1, 1),
            "{svg}"
        );
        assert!(
            svg.contains(">and 2 more<") && svg.contains("t &amp; u") && svg.contains("2 states"),
            "{svg}"
        );
        assert_eq!(svg.matches("class=\"number\"").count(), 2);
    }

    #[test]
    fn states_stand_in_rows_and_few_arrows_cross() {
        // Two chains with crosswise numbering.
        let edges = [(0, 1, 1), (0, 1, 2), (1, 1, 4), (2, 1, 3), (3, 1, 6), (4, 1, 5)];
        let system = lts(7, &edges, &["a"]);
        let level = levels(&system);
        assert_eq!(level, [0, 1, 1, 2, 2, 3, 3].map(Some));
        let arrows: Arrows = edges
            .iter()
            .map(|(a, l, b)| ((*a as usize, *b as usize), vec![LabelId::of(*l)]))
            .collect();
        let layers = order(&level, &arrows);
        assert_eq!(crossings(&layers, &level, &arrows), 0, "{layers:?}");
        let svg = draw(&system, "t").unwrap();
        assert_eq!(
            (svg.matches("class=\"deadlock\"").count(), svg.matches("class=\"start\"").count()),
            (2, 1)
        );
    }

    #[test]
    fn large_systems_are_not_drawn() {
        let chain: Vec<(u32, u32, u32)> = (0..MOST_STATES as u32).map(|i| (i, 1, i + 1)).collect();
        assert_eq!(draw(&lts(MOST_STATES + 1, &chain, &["a"]), "t"), Err(MOST_STATES + 1));
        assert!(draw(&lts(MOST_STATES, &chain[1..], &["a"]), "t").is_ok());
    }

    /// Generates random systems: deep and flat, dense and sparse, with loops, arrows in both
    /// directions, and long labels.
    fn random(seed: u64) -> Lts {
        let mut r = mu_base::random::Random::new(seed);
        let states = 1 + r.below(if seed.is_multiple_of(4) { 200 } else { 30 });
        let degree = 1 + r.below(4);
        let names: Vec<String> =
            (0..12).map(|i| format!("{}({i})", "abcdefgh_".repeat(1 + r.below(6)))).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut edges = Vec::new();
        for s in 0..states {
            // A random path first, so that many states are reachable; then random transitions.
            if s > 0 {
                edges.push((r.below(s) as u32, 1 + r.below(12) as u32, s as u32));
            }
            for _ in 0..r.below(degree) {
                let target = if r.chance(1, 5) { s } else { r.below(states) };
                for _ in 0..=r.below(3) {
                    edges.push((s as u32, 1 + r.below(12) as u32, target as u32));
                }
            }
        }
        lts(states, &edges, &names)
    }

    #[test]
    fn no_label_covers_another_or_a_state() {
        let (mut labels, mut lanes) = (0, 0);
        for seed in 0..300 {
            let system = random(seed);
            let plan = plan(&system, &levels(&system));
            let of_state = |&(x, y): &(f64, f64)| {
                let r = RADIUS + 3.0;
                LayerBox { x: x - r, y: y - r, width: 2.0 * r, height: 2.0 * r }
            };
            let mut frames: Vec<LayerBox> = plan
                .arrows
                .iter()
                .map(|a| a.frame)
                .chain(plan.states.values().map(of_state))
                .collect();
            for f in &frames {
                assert!(
                    f.x >= 0.0
                        && f.y >= 42.0
                        && f.x + f.width <= plan.width
                        && f.y + f.height <= plan.height,
                    "seed {seed}: {f:?}"
                );
            }
            frames.sort_by(|a, b| a.x.total_cmp(&b.x));
            for (i, a) in frames.iter().enumerate() {
                for b in frames[i + 1..].iter().take_while(|b| b.x < a.x + a.width) {
                    assert!(
                        b.y >= a.y + a.height || a.y >= b.y + b.height,
                        "seed {seed}: {a:?} and {b:?}"
                    );
                }
            }
            labels += plan.arrows.len();
            let mut rows: Vec<i64> =
                plan.arrows.iter().map(|a| (a.frame.y + a.frame.height / 2.0) as i64).collect();
            rows.sort_unstable();
            rows.dedup();
            lanes += rows.len();
        }
        assert!(labels > 10_000 && lanes > 2_000, "{labels} labels in {lanes} lanes");
    }

    #[test]
    fn labels_that_crowd_stand_side_by_side_around_where_they_want_to_be() {
        assert_eq!(place_intervals(&[(0.0, 10.0), (100.0, 10.0)]), [0.0, 100.0]);
        // Three intervals with the same desired position: the block is centred there.
        assert_eq!(
            place_intervals(&[(50.0, 10.0), (50.0, 10.0), (50.0, 10.0)]),
            [40.0, 50.0, 60.0]
        );
        // A block that grows to the left absorbs its neighbours.
        assert_eq!(place_intervals(&[(0.0, 10.0), (12.0, 10.0), (12.0, 10.0)]), [-2.0, 8.0, 18.0]);
    }
}
