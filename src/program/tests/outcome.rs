//! Tests of heads, tables, questions and answers with simple names: names are `0:x` and `[x]`,
//! values are numbers.

use mu_base::words::{Cursor, LexicalForm, TokenKind, tokens};
use mu_base::{Diagnostic, SourceId};
use mu_program::outcome::{
    Addresses, Answer, NameResolver, Observed, Question, Verdict, head, question, table,
};

#[derive(Clone, Debug, PartialEq)]
struct Place {
    name: String,
    thread: Option<u32>,
}

impl Observed for Place {
    fn is(&self, other: &Self) -> bool {
        self == other
    }
    fn bits(&self, value: u64) -> u64 {
        value
    }
    fn number(&self, value: u64) -> i128 {
        i128::from(value as i64)
    }
    fn name(&self) -> &str {
        &self.name
    }
    fn thread(&self) -> Option<u32> {
        self.thread
    }
}

/// Addresses from 100 on are variables.
struct Plain;

impl Addresses for Plain {
    fn address_text(&self, address: u64) -> Option<String> {
        (100..200).contains(&address).then(|| format!("v{address}"))
    }
}

impl NameResolver for Plain {
    type Observed = Place;
    fn location(&mut self, cursor: &mut Cursor<'_, '_>) -> Result<Place, Diagnostic> {
        if cursor.peek().kind == TokenKind::Number {
            let thread = cursor.number()? as u32;
            cursor.expect(":")?;
            return Ok(Place {
                name: format!("{thread}:{}", cursor.name("a register")?.text),
                thread: Some(thread),
            });
        }
        cursor.expect("[")?;
        let name = format!("[{}]", cursor.name("a variable")?.text);
        cursor.expect("]")?;
        Ok(Place { name, thread: None })
    }
    fn value(&mut self, cursor: &mut Cursor<'_, '_>) -> Result<u64, Diagnostic> {
        cursor.number().map(|n| n as u64)
    }
}

fn read(text: &str) -> Result<Question<Place>, Diagnostic> {
    Question::parse(
        &mut Cursor::new(&tokens(SourceId::FIRST, text, 0, LexicalForm::Free)?),
        &mut Plain,
    )
}

#[test]
fn questions_are_read_printed_and_read_again() {
    for (text, printed) in [
        ("exists (1:r=2 /\\ 0:r=1)", "1:r=2 /\\ 0:r=1"),
        ("exists 0:r=1 /\\ (0:s=2 \\/ [x]=100)", "0:r=1 /\\ (0:s=2 \\/ [x]=v100)"),
        ("forall 0:r=1 => 0:s=-2 => [x]=[y]", "0:r=1 => (0:s=-2 => [x]=[y])"),
        ("~exists not (0:r=1 \\/ true) /\\ 0:r!=0:s", "not (0:r=1 \\/ true) /\\ not (0:r=0:s)"),
        ("forall (0:r=1 => false) \\/ 0:s=1", "(0:r=1 => false) \\/ 0:s=1"),
        ("observed 0:r=1; 0:s=2; and 0:r=2; 0:s=1;", "0:r=1 /\\ 0:s=2 \\/ 0:r=2 /\\ 0:s=1"),
        ("locations [0:r; [x];] filter 0:r=1 exists true", "true"),
    ] {
        let question = read(text).unwrap();
        let again = question.prop.text(&question.observed, &Plain);
        assert_eq!(again, printed, "{text}");
        // Only numbers, because this resolver does not accept the names of variables.
        if !again.contains('v') {
            let second = read(&format!("{} {again}", question.quantifier.word())).unwrap();
            assert_eq!(second.prop.text(&second.observed, &Plain), printed);
        }
    }
    for (text, part) in [
        ("exists 0:r", "expected `=`"),
        ("exists 0:r=1 foo", "the end of the test"),
        ("maybe 0:r=1", "`exists`, `~exists` or `forall`"),
        ("cases 0:r=1", "the condition `cases`"),
        (&format!("exists {}", "(".repeat(1000)), "nests more than"),
    ] {
        assert!(read(text).unwrap_err().message.contains(part), "{text}");
    }
}

#[test]
fn registers_come_first_and_outcomes_decide() {
    let question = read("filter [x]=1 exists [x]=1 /\\ 1:r=0 /\\ 0:r=0").unwrap();
    let names: Vec<&str> = question.observed.iter().map(|o| o.name()).collect();
    assert_eq!(names, ["0:r", "1:r", "[x]"]);
    let found = [vec![0, 0, 1], vec![0, 1, 1], vec![0, 0, 2], vec![1, 1, 100]];
    let of =
        |found: &[Vec<u64>], complete| Answer::new("t", "m", &question, &Plain, found, complete);
    let all = of(&found, true);
    assert_eq!(
        (all.verdict, all.positive, all.negative, all.observation()),
        (Verdict::Ok, 1, 1, "Sometimes")
    );
    assert_eq!(
        all.outcomes[0],
        [("0:r", "0"), ("1:r", "0"), ("[x]", "1")].map(|(n, v)| (n.to_string(), v.to_string()))
    );
    // A satisfying outcome decides; that there is none is known only after all outcomes.
    assert_eq!(of(&found[1..], false).verdict, Verdict::Unknown);
    assert_eq!(
        (of(&found[1..], true).verdict, of(&found[..1], false).verdict),
        (Verdict::No, Verdict::Ok)
    );
    assert!(question.is_decided_by(&found[0]) && !question.is_decided_by(&found[2]));
    assert_eq!(question.outcome_text(&found[3], &Plain), "0:r=1; 1:r=1; [x]=v100;");
    let expected = "Test t Allowed\nStates 2\n0:r=0; 1:r=0; [x]=1;\n0:r=0; 1:r=1; [x]=1;\nOk\nWitnesses\nPositive: 1 Negative: 1\n\
                    Condition exists ([x]=1 /\\ 1:r=0 /\\ 0:r=0)\nObservation t Sometimes 1 1\n";
    assert_eq!(all.text(), expected);
}

#[test]
fn a_filter_selects_outcomes_and_does_not_split_them() {
    let found = [vec![0, 0], vec![0, 1], vec![1, 1], vec![1, 2]];
    for (text, states, observation) in [
        ("filter 1:s!=2 exists 0:r=1", 2, "Sometimes"),
        ("locations [1:s;] filter 1:s!=2 exists 0:r=1", 3, "Sometimes"),
        ("filter 1:s=3 exists 0:r=1", 0, "Never"),
        ("filter 1:s=3 ~exists 0:r=1", 0, "Never"),
        ("filter 1:s=3 forall 0:r=1", 0, "Never"),
        ("filter 1:s=2 forall 0:r=1", 1, "Always"),
    ] {
        let question = read(text).unwrap();
        let of = |complete| Answer::new("t", "m", &question, &Plain, &found, complete);
        let answer = of(true);
        assert_eq!((answer.outcomes.len(), answer.observation()), (states, observation), "{text}");
        let open = of(false).observation();
        assert!(open == observation || open == "Unknown", "{text}: {open}");
    }
}

#[test]
fn heads_and_tables() {
    let text = "(* first (* nested *) *) ARCH name;\n\"words { in quotes\"\nKey=value { of it\nrest { 0:x=1; }\n P0 | P1 ;\n a | b ;\n | L: c\nexists true";
    let known = |name: &str| (name == "ARCH").then_some(());
    let found = head(SourceId::FIRST, text, known, "ARCH").unwrap();
    assert_eq!((found.name.as_str(), &text[found.body..found.body + 6]), ("name", "{ 0:x="));
    assert_eq!(found.info, [("Key".to_string(), "value { of it".to_string())]);
    let start = text.find("P0").unwrap();
    let list = tokens(SourceId::FIRST, text, start, LexicalForm::Free).unwrap();
    let mut cursor = Cursor::new(&list);
    let columns = table::columns(&mut cursor).unwrap();
    let mut cells = vec![String::new(); columns];
    table::rows(&mut cursor, columns, |i, cursor| {
        while !cursor.is("|") && !cursor.is(";") && !cursor.is_word("exists") {
            cells[i] += cursor.take().text;
        }
        Ok::<(), Diagnostic>(())
    })
    .unwrap();
    assert_eq!(cells, ["a", "bL:c"]);
    assert_eq!(
        question::Question::parse(&mut cursor, &mut Plain).unwrap().prop,
        mu_program::outcome::Prop::True
    );
    for (text, part) in [
        ("", "empty"),
        ("ARM t {", "the architecture `ARM` is not supported"),
        ("ARCH", "has no name"),
        ("ARCH t", "expected `{`"),
        ("(* no", "not closed"),
    ] {
        assert!(
            head(SourceId::FIRST, text, known, "ARCH").unwrap_err().message.contains(part),
            "{text}"
        );
    }
}
