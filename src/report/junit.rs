//! JUnit report, the XML format that systems for continuous integration read.
//!
//! There is no standard; this uses the common subset of Jenkins, GitLab and GitHub Actions: one
//! `testsuite`, and a `testcase` for each result with `failure`, `error` or `skipped` inside. A
//! formula that does not hold is a failure; rejected input is an error. An answer that a limit
//! prevented is an *error* too, because a skipped case looks like a passed one. Cost: linear.

use super::svg::escape;
use std::fmt::Write;

/// Outcome of a test case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaseOutcome {
    /// The answer is as expected.
    Passed,
    /// The answer is not as expected.
    Failed {
        /// One line.
        message: String,
        /// Full text.
        text: String,
    },
    /// The input was rejected, with this message of one or more lines.
    Error(String),
    /// There is no answer, for this reason.
    Unknown(String),
}

/// A test case.
#[derive(Clone, Debug, PartialEq)]
pub struct TestCase {
    /// Its group: a model, a formula.
    pub class: String,
    /// Its name in the group.
    pub name: String,
    /// Wall time.
    pub seconds: f64,
    /// Its outcome.
    pub outcome: CaseOutcome,
}

/// Returns the report of test cases under a name.
pub fn suite(name: &str, cases: &[TestCase]) -> String {
    let count = |of: fn(&CaseOutcome) -> bool| cases.iter().filter(|c| of(&c.outcome)).count();
    let failures = count(|o| matches!(o, CaseOutcome::Failed { .. }));
    let errors = count(|o| matches!(o, CaseOutcome::Error(_) | CaseOutcome::Unknown(_)));
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
            CaseOutcome::Passed => {
                let _ = writeln!(out, "<testcase {at}/>");
                continue;
            }
            CaseOutcome::Failed { message, text } => {
                format!("<failure message=\"{}\">{}</failure>", escape(message), escape(text))
            }
            CaseOutcome::Error(message) => {
                let message = message.trim_end();
                // A line break in an attribute reads as a space.
                match message.split_once('\n') {
                    None => format!("<error type=\"input\" message=\"{}\"/>", escape(message)),
                    Some((first, _)) => format!(
                        "<error type=\"input\" message=\"{}\">{}</error>",
                        escape(first),
                        escape(message)
                    ),
                }
            }
            CaseOutcome::Unknown(why) => {
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
        let case = |name: &str, outcome| TestCase {
            class: "m".into(),
            name: name.into(),
            seconds: 0.5,
            outcome,
        };
        let failed =
            CaseOutcome::Failed { message: "does not hold".into(), text: "1. a<b>\n".into() };
        let cases = [
            case("a", CaseOutcome::Passed),
            case("b", failed),
            case("c", CaseOutcome::Error("x & y".into())),
            case("d", CaseOutcome::Unknown("timeout".into())),
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
