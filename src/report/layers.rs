//! A layered picture of a small transition system: [`Lts`] -> SVG. States stand in rows by their distance from the initial state.
//!
//! After Sugiyama, Tagawa, Toda, "Methods for visual understanding of hierarchical system structures", 1981: layers, then sweeps that order each layer
//! by the median of the neighbours in the one before. Layers are breadth-first levels, since distance from the start is what one wants to see
//! in a transition system, and long edges are curves past the states between rather than chains of dummies. Transitions between the same
//! two states are one arrow with all labels, of which the first few show. Cost: O(sweeps * (states + transitions) * log). Invariant: the picture depends
//! on the transition system only.

use super::svg::{Anchor, Svg, width_of};
use mu_base::ids::{LabelId, StateId};
use mu_lts::Lts;
use std::collections::BTreeMap;

/// Most states that are drawn.
pub const MOST_STATES: usize = 600;
/// Labels of an arrow that show; the others are counted.
const SHOWN: usize = 3;
/// Longest label, in characters.
const LONGEST: usize = 40;
const ROW: f64 = 92.0;
const RADIUS: f64 = 11.0;
const SWEEPS: usize = 12;

const STYLE: &str = "text { font-family: 'DejaVu Sans', Verdana, Helvetica, Arial, sans-serif; font-size: 10px; fill: #1a1a1a }
.title { font-size: 15px; font-weight: bold } .sub { font-size: 12px; fill: #555 }
.state { fill: #eef3f8; stroke: #34506b; stroke-width: 1.3 } .start { fill: none; stroke: #34506b; stroke-width: 1.3 }
.deadlock { fill: #fdecea; stroke: #a12622; stroke-width: 1.6 } .number { fill: #1f3347 }
.edge { fill: none; stroke: #5b7288; stroke-width: 1.2 } .tip { fill: #5b7288; stroke: none }
.back { fill: none; stroke: #a15c12; stroke-width: 1.2 } .back-tip { fill: #a15c12; stroke: none }
.label { fill: #123a66; paint-order: stroke; stroke: #fff; stroke-width: 3px; stroke-linejoin: round }";

/// An arrow: labels by their texts.
type Arrows = BTreeMap<(usize, usize), Vec<LabelId>>;

/// Draws the reachable part. Nothing if it has more than [`MOST_STATES`] states; the second figure is how many there are.
pub fn draw(lts: &Lts, title: &str) -> Result<String, usize> {
    let level = levels(lts);
    let reachable = level.iter().flatten().count();
    if reachable > MOST_STATES {
        return Err(reachable);
    }
    let mut arrows = Arrows::new();
    for source in (0..lts.state_count()).filter(|s| level[*s].is_some()) {
        for (label, target) in lts.successors(StateId::new(source)) {
            let labels = arrows.entry((source, target.index())).or_default();
            if !labels.contains(&label) {
                labels.push(label);
            }
        }
    }
    let layers = order(&level, &arrows);
    let texts: BTreeMap<(usize, usize), Vec<String>> = arrows.iter().map(|(key, labels)| (*key, shown(lts, labels))).collect();
    let x = places(&layers, &texts);
    let width = x.values().fold(0.0f64, |w, x| w.max(*x)) + 110.0;
    let y = |state: usize| 84.0 + level[state].unwrap_or(0) as f64 * ROW;
    let mut svg = Svg::default();
    svg.text("title", (16.0, 24.0), Anchor::Start, title);
    let deadlocks = (0..lts.state_count()).filter(|s| level[*s].is_some() && lts.offsets[*s] == lts.offsets[*s + 1]).count();
    let about =
        format!("{reachable} states, {} transitions, {deadlocks} deadlocks; rows are distances from the start", lts.transition_count());
    svg.text("sub", (16.0, 42.0), Anchor::Start, &about);
    for ((source, target), labels) in &texts {
        let up = level[*target] < level[*source];
        let both = texts.contains_key(&(*target, *source));
        edge(&mut svg, (x[source], y(*source)), (x[target], y(*target)), (up, both), labels);
    }
    for state in layers.iter().flatten() {
        let at = (x[state], y(*state));
        let end = lts.offsets[*state] == lts.offsets[*state + 1];
        svg.circle(if end { "deadlock" } else { "state" }, at, RADIUS);
        if *state == lts.initial.index() {
            svg.circle("start", at, RADIUS + 3.0);
        }
        svg.text("number", (at.0, at.1 + 3.5), Anchor::Middle, &state.to_string());
    }
    let low = 84.0 + (layers.len().max(1) - 1) as f64 * ROW;
    svg.text("sub", (16.0, low + 48.0), Anchor::Start, "double: the start; red: a deadlock; brown arrows lead back towards the start");
    Ok(svg.finish(width.max(540.0).max(width_of(title, 15.0) + 40.0), low + 62.0, STYLE))
}

/// Distance of each state from the initial one.
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

/// States by level, ordered so that few arrows cross.
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
        let order: Vec<usize> = if sweep % 2 == 0 { (1..depth).collect() } else { (0..depth.saturating_sub(1)).rev().collect() };
        for l in order {
            let other = if sweep % 2 == 0 { l - 1 } else { l + 1 };
            let place: BTreeMap<usize, usize> = layers[other].iter().enumerate().map(|(i, s)| (*s, i)).collect();
            let mut keyed: Vec<(f64, usize)> = Vec::new();
            for (i, &state) in layers[l].iter().enumerate() {
                let mut at: Vec<usize> = near[state].iter().filter_map(|n| place.get(n).copied()).collect();
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

/// How many pairs of arrows between neighbouring layers cross.
fn crossings(layers: &[Vec<usize>], level: &[Option<usize>], arrows: &Arrows) -> usize {
    let place: BTreeMap<usize, usize> = layers.iter().flat_map(|l| l.iter().enumerate().map(|(i, s)| (*s, i))).collect();
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

/// The abscissa of each state: layers are centred, with room for the labels of arrows.
fn places(layers: &[Vec<usize>], texts: &BTreeMap<(usize, usize), Vec<String>>) -> BTreeMap<usize, f64> {
    let wide = |state: usize| {
        let own = texts.iter().filter(|((_, b), _)| *b == state).flat_map(|(_, t)| t).map(|t| width_of(t, 10.0));
        own.fold(52.0f64, f64::max).min(170.0) + 14.0
    };
    let rows: Vec<(f64, Vec<(usize, f64)>)> = layers
        .iter()
        .map(|layer| {
            let mut at = 0.0;
            let mut row = Vec::new();
            for &state in layer {
                let w = wide(state);
                row.push((state, at + w / 2.0));
                at += w;
            }
            (at, row)
        })
        .collect();
    let widest = rows.iter().map(|r| r.0).fold(0.0, f64::max);
    let centred = |(w, row): &(f64, Vec<(usize, f64)>)| row.iter().map(|(s, x)| (*s, 60.0 + x + (widest - w) / 2.0)).collect::<Vec<_>>();
    rows.iter().flat_map(centred).collect()
}

/// The labels of an arrow as lines.
fn shown(lts: &Lts, labels: &[LabelId]) -> Vec<String> {
    let mut texts: Vec<String> = labels
        .iter()
        .map(|l| {
            let text = &lts.table.texts[l.index()];
            let cut: String = text.chars().take(LONGEST).collect();
            if cut.len() < text.len() { format!("{cut}…") } else { cut }
        })
        .collect();
    texts.sort();
    if texts.len() > SHOWN + 1 {
        let more = texts.len() - SHOWN;
        texts.truncate(SHOWN);
        texts.push(format!("and {more} more"));
    }
    texts
}

/// An arrow: down and across nearly straight, up in a bow at the side, a loop at the right of its state.
fn edge(svg: &mut Svg, from: (f64, f64), to: (f64, f64), (up, both): (bool, bool), labels: &[String]) {
    let (line, tip) = if up { ("back", "back-tip") } else { ("edge", "tip") };
    svg.group(&labels.join("\n"));
    let (control, label) = if from == to {
        let (x, y) = (from.0 + RADIUS, from.1);
        svg.path(line, &format!("M {:.1} {:.1} c 26 -20 26 24 2 10", x - 1.0, y - 5.0));
        svg.path(tip, &format!("M {:.1} {:.1} l 9 0 l -4 7 z", x - 1.0, y + 4.0));
        (None, (x + 24.0, y + 3.0))
    } else {
        // The bow: away from the straight line, to the right of the direction of travel.
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let length = dx.hypot(dy);
        let bow = match () {
            () if up || (dy == 0.0) => (length * 0.22).clamp(22.0, 90.0),
            () if dy > ROW * 1.5 => 40.0,
            () if both => 12.0,
            () => 0.0,
        };
        let middle = ((from.0 + to.0) / 2.0 - dy / length * bow, (from.1 + to.1) / 2.0 + dx / length * bow);
        (Some(middle), ((from.0 + to.0 + 2.0 * middle.0) / 4.0, (from.1 + to.1 + 2.0 * middle.1) / 4.0))
    };
    if let Some(middle) = control {
        let towards = |p: (f64, f64), q: (f64, f64), by: f64| {
            let d = (q.0 - p.0).hypot(q.1 - p.1).max(1.0);
            (p.0 + (q.0 - p.0) / d * by, p.1 + (q.1 - p.1) / d * by)
        };
        let (start, end) = (towards(from, middle, RADIUS + 1.0), towards(to, middle, RADIUS + 3.0));
        svg.path(line, &format!("M {:.1} {:.1} Q {:.1} {:.1} {:.1} {:.1}", start.0, start.1, middle.0, middle.1, end.0, end.1));
        let back = towards(end, middle, 8.0);
        let side = ((end.1 - back.1) / 2.0, (back.0 - end.0) / 2.0);
        let corners = [end, (back.0 + side.0, back.1 + side.1), (back.0 - side.0, back.1 - side.1)];
        let corners: Vec<String> = corners.iter().map(|c| format!("{:.1} {:.1}", c.0, c.1)).collect();
        svg.path(tip, &format!("M {} z", corners.join(" L ")));
    }
    let top = label.1 + 3.0 - (labels.len() as f64 - 1.0) * 6.0;
    for (i, text) in labels.iter().enumerate() {
        let anchor = if control.is_some() { Anchor::Middle } else { Anchor::Start };
        svg.text("label", (label.0, top + i as f64 * 12.0), anchor, text);
    }
    svg.end();
}

#[cfg(test)]
mod tests {
    use super::*;
    use mu_lts::Labels;

    fn lts(states: usize, edges: &[(u32, u32, u32)], labels: &[&str]) -> Lts {
        let table = Labels { texts: std::iter::once("tau").chain(labels.iter().copied()).map(String::from).collect() };
        let edges: Vec<_> = edges.iter().map(|(a, l, b)| (StateId(*a), LabelId(*l), StateId(*b))).collect();
        Lts::from_edges(StateId(0), states, &edges, table)
    }

    #[test]
    fn labels_of_one_arrow_are_merged() {
        let names = ["a", "b", "c", "d", "e"];
        let svg = draw(&lts(3, &[(0, 1, 1), (0, 2, 1), (0, 3, 1), (0, 4, 1), (0, 5, 1), (1, 1, 0), (0, 1, 1)], &names), "t & u").unwrap();
        // One arrow there with three labels and "and 2 more", one back; state 2 is not reached.
        assert_eq!((svg.matches("class=\"edge\"").count(), svg.matches("class=\"back\"").count()), (1, 1), "{svg}");
        assert!(svg.contains(">and 2 more<") && svg.contains("t &amp; u") && svg.contains("2 states"), "{svg}");
        assert_eq!(svg.matches("class=\"number\"").count(), 2);
    }

    #[test]
    fn states_stand_in_rows_and_few_arrows_cross() {
        // Two chains whose states are numbered crosswise.
        let edges = [(0, 1, 1), (0, 1, 2), (1, 1, 4), (2, 1, 3), (3, 1, 6), (4, 1, 5)];
        let system = lts(7, &edges, &["a"]);
        let level = levels(&system);
        assert_eq!(level, [0, 1, 1, 2, 2, 3, 3].map(Some));
        let arrows: Arrows = edges.iter().map(|(a, l, b)| ((*a as usize, *b as usize), vec![LabelId(*l)])).collect();
        let layers = order(&level, &arrows);
        assert_eq!(crossings(&layers, &level, &arrows), 0, "{layers:?}");
        let svg = draw(&system, "t").unwrap();
        assert_eq!((svg.matches("class=\"deadlock\"").count(), svg.matches("class=\"start\"").count()), (2, 1));
    }

    #[test]
    fn large_systems_are_not_drawn() {
        let chain: Vec<(u32, u32, u32)> = (0..MOST_STATES as u32).map(|i| (i, 1, i + 1)).collect();
        assert_eq!(draw(&lts(MOST_STATES + 1, &chain, &["a"]), "t"), Err(MOST_STATES + 1));
        assert!(draw(&lts(MOST_STATES, &chain[1..], &["a"]), "t").is_ok());
    }
}
