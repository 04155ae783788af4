//! Captions of evidence: a title from the text of a formula, and a sentence that summarises a path.

use super::deadlock::Ending;
use super::printed_evidence::PrintedEvidence;
use mu_model::deadlock::{End, Posture};

/// Maximum length of a title, in characters; longer ones are cut.
const MAX_TITLE: usize = 110;

/// Returns the first comment of a formula, up to its first full stop; `None` if it does not begin
/// with one.
pub fn first_comment(formula: &str) -> Option<String> {
    let lines = formula.lines().map(str::trim).skip_while(|l| l.is_empty());
    let comment = lines
        .map_while(|l| l.strip_prefix('%'))
        .map(|l| l.trim_start_matches('%').trim())
        .skip_while(|l| l.is_empty());
    let text: Vec<&str> = comment.take_while(|l| !l.is_empty()).collect();
    let text = text.join(" ");
    let sentence = text.split_once(". ").map_or(text.trim_end_matches('.'), |(first, _)| first);
    let cut: String = sentence.chars().take(MAX_TITLE).collect();
    let more = if cut.len() < sentence.len() { "…" } else { "" };
    (!cut.is_empty()).then(|| format!("{cut}{more}"))
}

/// Returns a sentence that summarises a path. `name`: converts a text to its form in the picture.
pub fn why(story: &PrintedEvidence, name: &dyn Fn(&str) -> String) -> String {
    let count = story.steps.len();
    let Some(last) = story.steps.last() else {
        return if story.verdict {
            "It holds at the start."
        } else {
            "It does not hold at the start."
        }
        .to_string();
    };
    let what = format!("step {count}, {}", name(&last.title()));
    if let Some(ending) = story.ending.as_ref().filter(|_| !(story.of_formula && story.verdict)) {
        let holds = if story.of_formula { "It does not hold: after" } else { "After" };
        return format!("{holds} {what}, {}", deadlock_reason(ending, name));
    }
    match (story.verdict, story.back_to) {
        (_, Some(back)) if !story.of_formula => {
            format!("From step {} on this run can repeat forever.", back + 1)
        }
        (_, None) if !story.of_formula => format!("The run ends with {what}."),
        _ if !story.linear && story.verdict => format!("It holds: {count} steps show why."),
        _ if !story.linear => format!("It does not hold: {count} steps show why."),
        (false, Some(back)) => {
            format!(
                "It does not hold: this run can repeat forever from step {} on without reaching the required step or state.",
                back + 1
            )
        }
        (true, Some(back)) => {
            format!("It holds: this run repeats forever from step {} on.", back + 1)
        }
        (false, None) => {
            format!("It does not hold: {what}, violates it. The steps before it match the formula.")
        }
        (true, None) => format!("It holds: this run is a witness; {what}, completes it."),
    }
}

/// Maximum number of components in a sentence.
const MAX_COMPONENTS: usize = 3;

/// Describes the reason for a deadlock, as a clause.
fn deadlock_reason(ending: &Ending, name: &dyn Fn(&str) -> String) -> String {
    if ending.end != End::Hang {
        return match ending.end {
            End::Terminated => "all components have terminated.".into(),
            _ => "it looks like a normal end.".into(),
        };
    }
    let waits: Vec<_> = ending.components.iter().filter(|c| c.posture == Posture::Waits).collect();
    let one = |c: &&super::deadlock::Component| match (c.offers.first(), c.closed.first()) {
        (Some((action, ..)), _) => format!("{} waits to perform {}", name(&c.name), name(action)),
        (None, Some((action, _))) => {
            format!("no condition of {} holds, for example that of {action}", name(&c.name))
        }
        (None, None) => format!("{} waits", name(&c.name)),
    };
    let mut clauses: Vec<String> = waits.iter().take(MAX_COMPONENTS).map(one).collect();
    if waits.len() > MAX_COMPONENTS {
        clauses.push(format!("{} more wait", waits.len() - MAX_COMPONENTS));
    }
    format!("no component can continue: {}.", clauses.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles() {
        let of = |text: &str| first_comment(text);
        assert_eq!(of("% No deadlock\n[true*]<true>true").as_deref(), Some("No deadlock"));
        assert_eq!(
            of("\n%% Part a: a load returns\n% what its core observed last.\n%\n% More of it.\n[true*]true").as_deref(),
            Some("Part a: a load returns what its core observed last")
        );
        assert_eq!(of("% One. Two.\ntrue").as_deref(), Some("One"));
        assert_eq!((of("true % late"), of("%\ntrue"), of("")), (None, None, None));
        assert!(
            of(&format!("% {}\ntrue", "ü".repeat(300)))
                .is_some_and(|t| t.chars().count() == MAX_TITLE + 1)
        );
    }
}
