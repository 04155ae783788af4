//! Tree drawing of branching evidence: [`PrintedEvidence`] to SVG, one row per step. If several
//! steps leave a state, they follow below it, indented.
//!
//! Rows follow the tree of shortest paths from the initial state. A step to a state in another row
//! ends with its number. Numbers in the margin are state numbers, as in `.aut` and `.dot` files.
//! Hidden actions are grey. Changed parameters are shown in tooltips. Cost: one pass; at most
//! `MAX_ROWS` rows.

use super::printed_evidence::{PrintedEvidence, PrintedStep};
use super::svg::{Anchor, Svg, width_of};
use std::collections::VecDeque;
use std::fmt::Write;

const STYLE: &str = "text { font-family: 'DejaVu Sans', Verdana, Helvetica, Arial, sans-serif; font-size: 11px; fill: #1a1a1a }
.title { font-size: 15px; font-weight: bold } .sub { font-size: 12px; fill: #555 }
.number { font-size: 10px; fill: #888 } .branch { stroke: #9fb0c0; stroke-width: 1.2; fill: none }
.dot { fill: #1b4f8a } .dot-hidden { fill: #8a8a8a } .start { fill: #fff; stroke: #1b4f8a; stroke-width: 1.6 }
.join { fill: #fff; stroke: #a15c12; stroke-width: 1.4 } .label { font-weight: bold; fill: #123a66 } .label-hidden { fill: #6a6a6a }
.joined { fill: #a15c12; font-style: italic }";

/// Maximum number of rows; further steps are counted.
const MAX_ROWS: usize = 400;
const ROW: f64 = 22.0;
const INDENT: f64 = 24.0;
const LEFT: f64 = 60.0;
const TOP: f64 = 66.0;

struct TreeRow<'a> {
    /// The step, and true if its target has another row.
    step: Option<(&'a PrintedStep, bool)>,
    indent: usize,
    /// Row of the source state.
    from: usize,
    state: u32,
}

/// Draws evidence as a tree of steps. `title`: the checked formula; `verdict`: the result.
pub fn branches(story: &PrintedEvidence, title: &str, verdict: &str) -> String {
    let rows = rows(story);
    let mut svg = Svg::default();
    svg.text("title", (16.0, 24.0), Anchor::Start, title);
    svg.text("sub", (16.0, 42.0), Anchor::Start, verdict);
    let at = |n: usize| (LEFT + rows[n].indent as f64 * INDENT, TOP + n as f64 * ROW);
    let mut width = (LEFT + width_of(title, 15.0)).max(LEFT + width_of(verdict, 12.0));
    for (n, row) in rows.iter().enumerate().skip(1) {
        let ((x, y), (from_x, from_y)) = (at(n), at(row.from));
        svg.path("branch", &format!("M {from_x} {} V {y} H {x}", from_y + 5.0));
    }
    for (n, row) in rows.iter().enumerate() {
        let (x, y) = at(n);
        let Some((step, joins)) = row.step else {
            svg.text("number", (LEFT - 26.0, y + 4.0), Anchor::End, &row.state.to_string());
            svg.circle("start", (x, y), 5.0);
            continue;
        };
        let hidden = step.parts.iter().all(|p| p.hidden);
        svg.group(&tooltip(story, step));
        let (label, text) = (if hidden { "label-hidden" } else { "label" }, step.title());
        let end = x + 12.0 + width_of(&text, 11.0) * if hidden { 1.0 } else { 1.1 };
        svg.text(label, (x + 10.0, y + 4.0), Anchor::Start, &text);
        if joins {
            let joined = format!("to state {}", row.state);
            svg.circle("join", (x, y), 4.0);
            svg.text("joined", (end + 8.0, y + 4.0), Anchor::Start, &joined);
            width = width.max(end + 8.0 + width_of(&joined, 11.0) + 20.0);
        } else {
            svg.text("number", (LEFT - 26.0, y + 4.0), Anchor::End, &row.state.to_string());
            svg.circle(if hidden { "dot-hidden" } else { "dot" }, (x, y), 4.0);
            width = width.max(end + 20.0);
        }
        svg.end();
    }
    let mut bottom = TOP + rows.len() as f64 * ROW;
    if rows.len() <= story.steps.len() {
        let more = format!(
            "and {} more steps: see .aut, .dot or .json",
            story.steps.len() + 1 - rows.len()
        );
        svg.text("joined", (LEFT, bottom), Anchor::Start, &more);
        bottom += ROW;
    }
    svg.finish(width, bottom, STYLE)
}

fn rows(story: &PrintedEvidence) -> Vec<TreeRow<'_>> {
    let states =
        story.steps.iter().flat_map(|s| [s.from, s.to]).max().map_or(1, |s| s as usize + 1);
    let mut steps_of: Vec<Vec<usize>> = vec![Vec::new(); states];
    story.steps.iter().enumerate().for_each(|(i, s)| steps_of[s.from as usize].push(i));
    // The step that reaches each state first.
    let mut first: Vec<Option<usize>> = vec![None; states];
    let mut queue = VecDeque::from([0usize]);
    while let Some(state) = queue.pop_front() {
        for &i in &steps_of[state] {
            let to = story.steps[i].to as usize;
            if to != 0 && first[to].is_none() {
                first[to] = Some(i);
                queue.push_back(to);
            }
        }
    }
    let mut rows = vec![TreeRow { step: None, indent: 0, from: 0, state: 0 }];
    // Stack of steps: step, indentation, source row.
    let mut stack: Vec<(usize, usize, usize)> = Vec::new();
    let push = |stack: &mut Vec<_>, state: usize, indent: usize, row: usize| {
        let deeper = indent + usize::from(steps_of[state].len() > 1);
        stack.extend(steps_of[state].iter().rev().map(|&i| (i, deeper, row)));
    };
    push(&mut stack, 0, 0, 0);
    while let Some((i, indent, from)) = stack.pop() {
        if rows.len() > MAX_ROWS {
            break;
        }
        let step = &story.steps[i];
        let joins = first[step.to as usize] != Some(i);
        rows.push(TreeRow { step: Some((step, joins)), indent, from, state: step.to });
        if !joins {
            push(&mut stack, step.to as usize, indent, rows.len() - 1);
        }
    }
    rows
}

fn tooltip(story: &PrintedEvidence, step: &PrintedStep) -> String {
    let mut text = step.title();
    for (slot, value) in &step.changed {
        let parameter = &story.parameters[*slot as usize];
        let component = story.components.get(parameter.component as usize).map_or("", |c| c);
        let _ = write!(text, "\n{component}: {} = {value}", parameter.name);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn story(steps: &[(u32, &str, u32)]) -> PrintedEvidence {
        let step = |&(from, action, to): &(u32, &str, u32)| PrintedStep {
            from,
            to,
            action: action.into(),
            parts: Vec::new(),
            changed: Vec::new(),
            meaning: Vec::new(),
            state: None,
            at_once: false,
        };
        let steps = steps.iter().map(step).collect();
        PrintedEvidence {
            verdict: true,
            components: vec![],
            parameters: vec![],
            initial: vec![],
            steps,
            omitted_steps: 0,
            linear: false,
            path: 0,
            back_to: None,
            ending: None,
            of_formula: true,
            values: Vec::new(),
        }
    }

    #[test]
    fn answers_say_how_many_steps_they_leave_out() {
        let mut story = story(&[(0, "a", 1), (1, "b", 2), (1, "c", 3), (2, "d", 3)]);
        assert_eq!(
            (story.steps_json(3).len(), story.omitted_count(3), story.omitted_count(4)),
            (3, 1, 0)
        );
        story.omitted_steps = 7;
        assert_eq!((story.steps_json(3).len(), story.omitted_count(3)), (3, 8));
        assert!(story.text(false).contains("and 7 more steps"));
        let mut written = Vec::new();
        story.write_json(Default::default(), &mut written).unwrap();
        assert_eq!(serde_json::from_slice::<serde_json::Value>(&written).unwrap(), story.json());
    }

    #[test]
    fn each_step_has_a_row_and_each_state_one_of_its_own() {
        let story = story(&[
            (0, "a", 1),
            (1, "b<", 2),
            (1, "c", 3),
            (2, "d", 3),
            (3, "e", 0),
            (3, "f", 3),
            (3, "g", 4),
        ]);
        let rows = rows(&story);
        let shown: Vec<(u32, usize, usize, bool)> = rows
            .iter()
            .skip(1)
            .map(|r| (r.state, r.indent, r.from, r.step.is_some_and(|s| s.1)))
            .collect();
        // a, b below a; d after b on the same line, joining the target of c; below c: e to the
        // start, f as a loop, g.
        assert_eq!(
            shown,
            [
                (1, 0, 0, false),
                (2, 1, 1, false),
                (3, 1, 2, true),
                (3, 1, 1, false),
                (0, 2, 4, true),
                (3, 2, 4, true),
                (4, 2, 4, false)
            ]
        );
        let drawn = branches(&story, "t & u", "holds");
        assert!(
            drawn.contains("b&lt;")
                && drawn.contains("t &amp; u")
                && drawn.matches("to state 3").count() == 2,
            "{drawn}"
        );
    }

    #[test]
    fn long_evidence_ends() {
        let steps: Vec<(u32, &str, u32)> =
            (0..1000).flat_map(|i| [(i, "a", i + 1), (i, "b", 0)]).collect();
        let drawn = branches(&story(&steps), "t", "v");
        assert!(
            drawn.contains(&format!("and {} more steps", 2000 - MAX_ROWS)),
            "{}",
            &drawn[drawn.len() - 300..]
        );
    }
}
