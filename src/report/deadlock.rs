//! Explanation of a deadlock: [`DeadlockReport`] with the sources becomes sentences with line
//! numbers, for text, JSON and charts.
//!
//! Each component has a line with its state, and a line for each action that it offers with the
//! obstacles. If it offers none, it has a line for each action that its conditions exclude. Places
//! are those of names inside the operator if they are found in its text, otherwise of the operator.
//! Cost: a text search for each name in its operator.

use mu_base::{SourceMap, Span, narrow};
use mu_model::deadlock::{ComponentReport, DeadlockReport, End, Obstacle, Posture};
use serde_json::{Value, json};

/// An explained state without outgoing transitions.
#[derive(Clone, Debug)]
pub struct Ending {
    /// Kind of the state.
    pub end: End,
    /// By component.
    pub components: Vec<Component>,
}

/// An explained component.
#[derive(Clone, Debug)]
pub struct Component {
    /// Its name.
    pub name: String,
    /// Its state.
    pub posture: Posture,
    /// Line of its next action.
    pub line: Option<usize>,
    /// Its offers, with lines and obstacles.
    pub offers: Vec<(String, Option<usize>, Vec<String>)>,
    /// Actions with false conditions, with their lines.
    pub closed: Vec<(String, Option<usize>)>,
}

/// Returns the line of a place; `None` if the place is in no source.
pub fn line(sources: &SourceMap, place: Span) -> Option<usize> {
    place.is_somewhere().then(|| sources.line_column(place).0)
}

/// Returns the place of a name inside an operator: the first whole word in its text.
pub fn place_of(sources: &SourceMap, operator: Span, name: &str) -> Span {
    let text = sources.text(operator);
    let of_word = |c: char| c.is_alphanumeric() || c == '_' || c == '\'';
    let found = text.match_indices(name).map(|m| m.0).find(|&at| {
        let before = text[..at].chars().next_back().is_some_and(of_word);
        let after = text[at + name.len()..].chars().next().is_some_and(of_word);
        !before && !after
    });
    match found {
        Some(at) => {
            let start = operator.start + narrow::index(at);
            Span { start, end: start + narrow::index(name.len()), ..operator }
        }
        None => operator,
    }
}

/// Explains a state without outgoing transitions.
pub fn explain(standing: &DeadlockReport, sources: &SourceMap) -> Ending {
    let names: Vec<&str> = standing.components.iter().map(|c| c.name.as_str()).collect();
    let printed_component = |c: &ComponentReport| {
        let offers: Vec<_> = (c.offers.iter())
            .map(|o| {
                (
                    o.action.clone(),
                    line(sources, o.place),
                    o.obstacles.iter().map(|x| sentence(x, &names, sources)).collect(),
                )
            })
            .collect();
        let closed: Vec<_> =
            c.closed.iter().map(|(name, place)| (name.clone(), line(sources, *place))).collect();
        let first = c
            .offers
            .iter()
            .map(|o| o.place)
            .chain(c.closed.iter().map(|c| c.1))
            .find_map(|p| line(sources, p));
        Component { name: c.name.clone(), posture: c.posture, line: first, offers, closed }
    };
    Ending {
        end: standing.end,
        components: standing.components.iter().map(printed_component).collect(),
    }
}

fn list(names: &[String], or: &str) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [all @ .., last] => format!("{} {or} {last}", all.join(", ")),
    }
}

fn at(sources: &SourceMap, operator: Span, name: &str) -> String {
    line(sources, place_of(sources, operator, name))
        .map(|l| format!(" in line {l}"))
        .unwrap_or_default()
}

/// Describes the obstacle of an offer, as a clause.
pub fn sentence(obstacle: &Obstacle, names: &[&str], sources: &SourceMap) -> String {
    let rule_at = |rule: &str, place: Span| {
        let first = rule.split(['|', ' ']).next().unwrap_or(rule);
        format!("`{rule}`{}", at(sources, place, first))
    };
    let offered = |offers: &[(u32, String)]| {
        let all: Vec<String> = offers
            .iter()
            .map(|(c, o)| format!("{} offers {o}", names.get(*c as usize).unwrap_or(&"?")))
            .collect();
        list(&all, "and")
    };
    match obstacle {
        Obstacle::PartnerUnavailable { rule, place, partner, able } => {
            let able: Vec<String> =
                able.iter().map(|c| names.get(*c as usize).unwrap_or(&"?").to_string()).collect();
            let who = if able.len() > 4 {
                format!("{} and {} others", able[..3].join(", "), able.len() - 3)
            } else {
                list(&able, "or")
            };
            format!(
                "{} lacks {partner}, which {who} can perform, but not now",
                rule_at(rule, *place)
            )
        }
        Obstacle::NoPartner { rule, place, partner } => {
            format!(
                "{} lacks {partner}, which no other component ever performs",
                rule_at(rule, *place)
            )
        }
        Obstacle::ValueMismatch { rule, place, offers } => {
            format!("{}: {}, so the values do not agree", rule_at(rule, *place), offered(offers))
        }
        Obstacle::Stopped { rule, place, offers, by } => {
            let by = match &**by {
                Obstacle::NotAllowed { action, place, only_with } => {
                    not_allowed(action, *place, only_with, sources)
                }
                by => sentence(by, names, sources),
            };
            match &offers[..] {
                [] => format!("{}: {by}", rule_at(rule, *place)),
                offers => format!("{}: {}, but {by}", rule_at(rule, *place), offered(offers)),
            }
        }
        Obstacle::Blocked { action, place } => {
            format!("`block`{} stops {action}", at(sources, *place, action))
        }
        Obstacle::NotAllowed { action, place, only_with } => {
            format!(
                "no communication joins it, and {}",
                not_allowed(action, *place, only_with, sources)
            )
        }
    }
}

fn not_allowed(action: &str, place: Span, only_with: &[String], sources: &SourceMap) -> String {
    let line = line(sources, place).map(|l| format!(" in line {l}")).unwrap_or_default();
    let with = if only_with.is_empty() {
        String::new()
    } else {
        format!(" (only {})", list(only_with, "and"))
    };
    format!("`allow`{line} does not list {action}{with}")
}

impl Ending {
    /// Returns the heading.
    pub fn title(&self) -> &'static str {
        match self.end {
            End::Terminated => "successful termination",
            End::Finished => {
                "a deadlock that looks like a normal end: no component has an unfinished activity"
            }
            End::Hang => "a deadlock: no component can continue",
        }
    }

    /// Returns lines for people.
    pub fn text(&self) -> String {
        let mut text = format!("  {}\n", self.title());
        let in_line = |l: &Option<usize>| l.map(|l| format!(" (line {l})")).unwrap_or_default();
        for c in &self.components {
            text += &format!("    {}: {}\n", c.name, posture(c));
            // At a normal end, the offers of servers explain nothing.
            if self.end != End::Hang || c.posture == Posture::Terminated {
                continue;
            }
            for (action, line, why) in &c.offers {
                text += &format!("      offers {action}{}\n", in_line(line));
                text += &why.iter().map(|w| format!("        {w}\n")).collect::<String>();
            }
            for (action, line) in c.closed.iter().filter(|_| c.offers.is_empty()) {
                text += &format!(
                    "      could perform {action}{}, but its condition is false\n",
                    in_line(line)
                );
            }
        }
        text
    }

    /// Returns the explanation as an object.
    pub fn json(&self) -> Value {
        let component = |c: &Component| {
            let offers: Vec<Value> = c
                .offers
                .iter()
                .map(
                    |(action, line, why)| json!({ "action": action, "line": line, "why_not": why }),
                )
                .collect();
            let closed: Vec<Value> = c
                .closed
                .iter()
                .map(|(action, line)| json!({ "action": action, "line": line }))
                .collect();
            json!({ "component": c.name, "posture": c.posture.word(), "line": c.line, "offers": offers, "conditions_false": closed })
        };
        json!({ "kind": self.end.word(), "components": self.components.iter().map(component).collect::<Vec<_>>() })
    }

    /// Returns the texts at the end of a component's lane.
    pub fn lane(&self, component: usize) -> Vec<String> {
        let Some(c) = self.components.get(component) else { return Vec::new() };
        let mut lines = vec![c.posture.word().to_string()];
        if self.end == End::Hang {
            lines.extend(c.offers.iter().take(3).map(|o| format!("offers {}", o.0)));
            if c.offers.len() > 3 {
                lines.push(format!("and {} more", c.offers.len() - 3));
            }
        }
        lines
    }
}

fn posture(c: &Component) -> String {
    match c.posture {
        Posture::Terminated => "has terminated".into(),
        Posture::Stopped => "has stopped".into(),
        Posture::Idle => {
            "is in its initial state, ready for the components that have terminated".into()
        }
        Posture::Waits if c.offers.is_empty() => {
            "cannot continue: none of its conditions holds".into()
        }
        Posture::Waits => match c.line {
            Some(line) => format!("waits at line {line}"),
            None => "waits".into(),
        },
    }
}
