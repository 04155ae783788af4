//! Results as a JUnit report, the form of XML that systems for continuous integration read: cases
//! -> text.
//!
//! There is no standard; this keeps to what Jenkins, GitLab and GitHub's actions agree in: one
//! `testsuite`, a `testcase` for each result with `failure`, `error` or `skipped` inside. A formula
//! that does not hold is a failure, input that is refused an error; an answer that a limit kept
//! from being found is an *error* too, since a skipped case reads as a passed one. Cost: linear.

use super::svg::escape;
use std::fmt::Write;

/// What became of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As wanted.
    Passed,
    /// Not as wanted.
    Failed {
        /// In one line.
        message: String,
        /// All there is to say.
        text: String,
    },
    /// The input was refused: the message.
    Error(String),
    /// No answer: why.
    Unknown(String),
}

/// A case.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// What it belongs to: a model, a formula.
    pub class: String,
    /// What is told from others in it.
    pub name: String,
    /// Wall time.
    pub seconds: f64,
    /// What became of it.
    pub outcome: Outcome,
}

/// The report of some cases under a name.
pub fn suite(name: &str, cases: &[Case]) -> String {
    let count = |of: fn(&Outcome) -> bool| cases.iter().filter(|c| of(&c.outcome)).count();
    let failures = count(|o| matches!(o, Outcome::Failed { .. }));
    let errors = count(|o| matches!(o, Outcome::Error(_) | Outcome::Unknown(_)));
    let seconds: f64 = cases.iter().map(|c| c.seconds).sum();
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let head = format!(
        "tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\" time=\"{seconds:.3}\"",
        cases.len()
    );
    let _ = writeln!(out, "<testsuites {head}>\n<testsuite name=\"{}\" {head}>", escape(name));
    for case in cases {
        let at = format!(
            "classname=\"{}\" name=\"{}\" time=\"{:.3}\"",
            escape(&case.class),
            escape(&case.name),
            case.seconds
        );
        let inside = match &case.outcome {
            Outcome::Passed => {
                let _ = writeln!(out, "<testcase {at}/>");
                continue;
            }
            Outcome::Failed { message, text } => {
                format!("<failure message=\"{}\">{}</failure>", escape(message), escape(text))
            }
            Outcome::Error(message) => {
                format!("<error type=\"input\" message=\"{}\"/>", escape(message))
            }
            Outcome::Unknown(why) => {
                format!("<error type=\"unknown\" message=\"unknown: {}\"/>", escape(why))
            }
        };
        let _ = writeln!(out, "<testcase {at}>{inside}</testcase>");
    }
    out + "</testsuite>\n</testsuites>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_of_each_kind() {
        let case = |name: &str, outcome| Case {
            class: "m".into(),
            name: name.into(),
            seconds: 0.5,
            outcome,
        };
        let failed = Outcome::Failed { message: "does not hold".into(), text: "1. a<b>\n".into() };
        let cases = [
            case("a", Outcome::Passed),
            case("b", failed),
            case("c", Outcome::Error("x & y".into())),
            case("d", Outcome::Unknown("timeout".into())),
        ];
        let wanted = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<testsuites tests=\"4\" failures=\"1\" errors=\"2\" time=\"2.000\">
<testsuite name=\"&quot;all&quot;\" tests=\"4\" failures=\"1\" errors=\"2\" time=\"2.000\">
<testcase classname=\"m\" name=\"a\" time=\"0.500\"/>
<testcase classname=\"m\" name=\"b\" time=\"0.500\"><failure message=\"does not hold\">1. a&lt;b&gt;\n</failure></testcase>
<testcase classname=\"m\" name=\"c\" time=\"0.500\"><error type=\"input\" message=\"x &amp; y\"/></testcase>
<testcase classname=\"m\" name=\"d\" time=\"0.500\"><error type=\"unknown\" message=\"unknown: timeout\"/></testcase>
</testsuite>
</testsuites>
";
        assert_eq!(suite("\"all\"", &cases), wanted);
    }
}
