//! Names in texts of other front ends in an editor: hover, definition, references, completion,
//! outline, colours, folds, and renaming that preserves the meaning of a text.
//!
//! A renamed text is held against the original by the readers of the command line, which know
//! nothing of names for editors: the parsed and resolved form is the same, or the verdicts are. A
//! new name has as many letters as the old one and the same place in the alphabet, so that nothing
//! but the name may differ. With `MU_CHECK_MODELS` the files of that folder are tested too.

use crate::language_server::{Client, apply_edits, uri};
use crate::support::{package, reference_models};
use mu_check::base::SourceId;
use mu_check::base::random::Random;
use mu_check::{axioms, cubicle, formula, litmus, process, program};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

pub const SYSTEM: &str = "(* the places of a process *)
type place = Idle | Busy
array At[proc] : place
(* who may go *)
weak var Turn : proc
predicate busy (x) { At[x] = Busy }
init (p) { At[p] = Idle }
(* two of them *)
unsafe (p q) { busy(p) && busy(q) }
transition go ([p])
requires { Turn = p && forall_other q. (At[q] = Idle && At[p] = Idle) }
{ At[j] := case
  | _ : Idle }
";
pub const MODEL: &str = "\"A model\"
include \"base.cat\"
let rec reach = po | (reach; step)
let pair(x, y) = x & y
procedure order(r) = acyclic r end
if \"strong\" let far = ext else let far = loc end
call order(reach) as claim
acyclic pair(far, rf) as claim2
";
pub const BASE: &str = "(* a step *)
let step = rf | co
";
pub const TEST: &str = "X86 SB
\"a test\"
{ int x; int y=0; 0:ECX=y; }
 P0          | P1          ;
 MOV [x],$1  | L: MOV [y],$1 ;
 MOV EAX,[y] | MOV EAX,[x] ;
             | CMP EAX,$2  ;
             | JE L        ;
locations [x;]
exists (0:EAX=0 /\\ 1:EAX=0)
";
/// One name is a parameter, a quantified variable and an operation.
pub const EQUATIONS: &str = "% what is handed on
sort D = struct red?is_red | box(inner: D);
map n: D -> Nat; % how deep
    twice: Nat -> Nat;
var d: D; k: Nat;
eqn n(red) = 0;
    n(box(d)) = n(d) + 1;
    twice(k) = k + k;
pbes
  % The first of them.
  nu X(n: Nat, d: D) =
    (forall m: Nat. val(m < n) => Y(d)) && val(n < 3);
  mu Y(d: D) =
    val(n(d) == 0) || (exists n: Nat. val(n < 2) && X(n, red)) || X(twice(1), d);
init X(2, inner(box(red)));
";
pub const PROGRAM: &str = "; A lock that all see.
begin shared_data
  flag dd 0
  count dd N ! as counter ; how many are out
end shared_data
begin thread_data
  mine dd 0
end thread_data
begin unsafe_prop
  eip[$a] = crit && eip[$b] = crit && eax[$a] = 1 && $a:flag = 1
end unsafe_prop
begin init_code
  start_threads
end init_code
begin thread_code
; comes back
again: mov al, 1
  xchg dword [flag], eax
  mov dword [mine + $next], eax
  cmp eax, 0
  jne again
  dec dword [count]
crit: mov dword [flag], 0
  jmp again
end thread_code
";

/// Requests of an editor for places of a text.
pub struct PlaceRequests<'c> {
    pub client: &'c mut Client,
    pub path: &'c Path,
    pub text: &'c str,
}

impl PlaceRequests<'_> {
    fn at(&mut self, method: &str, mark: &str) -> Value {
        let offset = self.text.find(mark).unwrap_or_else(|| panic!("{mark}"));
        let more = json!({ "context": { "includeDeclaration": true } });
        self.client.at(&format!("textDocument/{method}"), self.path, self.text, offset, more)["result"].clone()
    }
    pub fn hover(&mut self, mark: &str) -> String {
        self.at("hover", mark)["contents"]["value"].as_str().unwrap_or("nothing").to_string()
    }
    /// Returns the lines, from 0, of places.
    pub fn lines(&mut self, method: &str, mark: &str) -> Vec<u64> {
        let lines = self.at(method, mark).as_array().cloned().unwrap_or_default();
        lines.iter().map(|l| l["range"]["start"]["line"].as_u64().unwrap()).collect()
    }
    pub fn completion(&mut self, mark: &str) -> Vec<String> {
        self.at("completion", mark)
            .as_array()
            .unwrap()
            .iter()
            .map(|i| i["label"].as_str().unwrap().to_string())
            .collect()
    }
    fn whole(&mut self, method: &str) -> Value {
        let document = json!({ "textDocument": { "uri": uri(self.path) } });
        self.client.ask(&format!("textDocument/{method}"), document)["result"].clone()
    }
    pub fn outline(&mut self) -> Vec<String> {
        self.whole("documentSymbol")
            .as_array()
            .unwrap()
            .iter()
            .map(|s| s["name"].as_str().unwrap().to_string())
            .collect()
    }
    /// Folds as pairs of lines.
    fn folds(&mut self) -> Vec<(u64, u64)> {
        let line = |f: &Value, key: &str| f[key].as_u64().unwrap();
        self.whole("foldingRange")
            .as_array()
            .unwrap()
            .iter()
            .map(|f| (line(f, "startLine"), line(f, "endLine")))
            .collect()
    }
    /// Words with their colours' numbers.
    fn colours(&mut self) -> Vec<(String, u64)> {
        let data = self.whole("semanticTokens/full")["data"].clone();
        let data: Vec<u64> = data.as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
        let lines: Vec<Vec<u16>> = self.text.lines().map(|l| l.encode_utf16().collect()).collect();
        let (mut line, mut column) = (0, 0);
        let mut out = Vec::new();
        for token in data.chunks(5) {
            column = if token[0] > 0 { token[1] } else { column + token[1] };
            line += token[0];
            let (from, to) = (column as usize, (column + token[2]) as usize);
            out.push((String::from_utf16(&lines[line as usize][from..to]).unwrap(), token[3]));
        }
        out
    }
    pub fn rename(&mut self, mark: &str, new: &str) -> Result<Value, String> {
        let offset = self.text.find(mark).unwrap_or_else(|| panic!("{mark}"));
        let answer = self.client.at(
            "textDocument/rename",
            self.path,
            self.text,
            offset,
            json!({ "newName": new }),
        );
        match answer["error"]["message"].as_str() {
            Some(message) => Err(message.to_string()),
            None => Ok(answer["result"]["changes"].clone()),
        }
    }
    /// Returns the text with a name renamed.
    pub fn rename_text(&mut self, mark: &str, new: &str) -> String {
        let changes = self.rename(mark, new).unwrap();
        apply_edits(self.text, &changes[uri(self.path)])
    }
}

#[test]
fn a_system() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.cub");
    let mut client = Client::start(Some(folder.path()));
    client.open(&path, SYSTEM);
    assert_eq!(client.diagnostics(&path, 1), Vec::<Value>::new());
    let mut requests = PlaceRequests { client: &mut client, path: &path, text: SYSTEM };
    let found = requests.hover("Busy }");
    assert!(found.contains("Busy: place") && found.contains("value"), "{found}");
    let found = requests.hover("Turn = p");
    assert!(
        found.contains("weak var Turn : proc")
            && found.contains("buffer")
            && found.contains("who may go"),
        "{found}"
    );
    assert!(requests.hover("place\n(*").contains("the places of a process"));
    assert!(requests.hover("proc] :").contains("given by the language"));
    assert_eq!(requests.lines("definition", "busy(q)"), [5]);
    assert_eq!(requests.lines("references", "At[p]"), [2, 5, 6, 10, 10, 11]);
    // The `q` of the quantifier is another than that of the claim.
    assert_eq!(requests.lines("references", "q. (At"), [10, 10]);
    assert_eq!(requests.lines("documentHighlight", "x) { At"), [5, 5]);
    let found = requests.completion("Turn = p");
    assert!(
        ["p", "q", "At", "busy", "Idle", "requires", "bool"]
            .iter()
            .all(|w| found.iter().any(|f| f == w)),
        "{found:?}"
    );
    let found = requests.completion("At[p] = Idle }");
    assert!(found.contains(&"p".to_string()) && !found.contains(&"x".to_string()), "{found:?}");
    assert_eq!(requests.outline(), ["place", "At", "Turn", "busy", "init", "unsafe", "go"]);
    assert!(requests.folds().contains(&(9, 12)), "{:?}", requests.folds());
    let colours = requests.colours();
    let of = |word: &str| {
        colours.iter().find(|c| c.0 == word).unwrap_or_else(|| panic!("{word}: {colours:?}")).1
    };
    assert!(
        of("type") == 0
            && of("place") == 6
            && of("Idle") == 7
            && of("busy") == 8
            && of("At") == 9
            && of("go") == 11
    );
    // Renaming: all places, nothing captured, names of the language stay.
    assert_eq!(requests.rename_text("At[p]", "Where"), SYSTEM.replace("At", "Where"));
    assert_eq!(
        requests.rename_text("p])", "self"),
        SYSTEM
            .replace("([p])", "([self])")
            .replace("Turn = p", "Turn = self")
            .replace("At[p] = Idle)", "At[self] = Idle)")
    );
    for (mark, new, message) in [
        ("q. (At", "p", "would change the meaning"),
        ("Idle |", "Busy", "would have an error"),
        ("At[p]", "at", "would have an error"),
        ("At[p]", "Turn : bool weak var At", "would"),
        ("go (", "unsafe", "would have an error"),
        ("proc] :", "process", "cannot be renamed"),
        ("Turn = p", "True", "is a built-in name of the language"),
        ("= p", "x", "there is no name here"),
    ] {
        let found = requests.rename(mark, new);
        assert!(found.as_ref().is_err_and(|m| m.contains(message)), "{mark} -> {new}: {found:?}");
    }
    // Text that is being typed: the rest stays alive.
    let broken = SYSTEM.replace("init (p) {", "init (p) { $ At[");
    client.open(&path, &broken);
    let mut requests = PlaceRequests { client: &mut client, path: &path, text: &broken };
    assert_eq!(requests.lines("references", "busy(p)"), [5, 8, 8]);
    assert_eq!(requests.outline(), ["place", "At", "Turn", "busy", "unsafe", "go"]);
    assert!(requests.rename("At[proc]", "Where").is_err_and(|m| m.contains("cannot be read")));
    client.end();
}

#[test]
fn a_memory_model() {
    let folder = tempfile::tempdir().unwrap();
    let (path, base) = (folder.path().join("m.cat"), folder.path().join("base.cat"));
    std::fs::write(&path, MODEL).unwrap();
    std::fs::write(&base, BASE).unwrap();
    let mut client = Client::start(Some(folder.path()));
    client.open(&path, MODEL);
    assert_eq!(client.diagnostics(&path, 1), Vec::<Value>::new());
    let mut requests = PlaceRequests { client: &mut client, path: &path, text: MODEL };
    let found = requests.hover("step)");
    assert!(
        found.contains("let step = rf | co")
            && found.contains("a relation, declared in `base.cat`")
            && found.contains("a step"),
        "{found}"
    );
    assert!(requests.hover("po |").contains("program order"));
    assert!(requests.hover("pair(far").contains("let pair(x, y) = x & y"));
    assert_eq!(requests.at("definition", "step)")[0]["uri"], uri(&base));
    assert_eq!(requests.lines("references", "reach)"), [2, 2, 6]);
    assert_eq!(requests.lines("references", "x &"), [3, 3]);
    // Both branches bind it.
    assert_eq!(requests.lines("definition", "far, rf"), [5, 5]);
    let found = requests.completion("x &");
    assert!(
        ["x", "y", "step", "reach", "fr", "domain", "acyclic"]
            .iter()
            .all(|w| found.iter().any(|f| f == w)),
        "{found:?}"
    );
    assert_eq!(requests.outline(), ["reach", "pair", "order", "far", "claim", "claim2"]);
    let colours = requests.colours();
    let of = |word: &str| {
        colours.iter().find(|c| c.0 == word).unwrap_or_else(|| panic!("{word}: {colours:?}")).1
    };
    assert!(
        of("let") == 0
            && of("pair") == 8
            && of("order") == 11
            && of("x") == 12
            && of("rf") == 13
            && of("claim") == 10
    );
    assert_eq!(requests.rename_text("far, rf", "away"), MODEL.replace("far", "away"));
    assert_eq!(
        requests.rename_text("x &", "first"),
        MODEL.replace("pair(x, y) = x", "pair(first, y) = first")
    );
    // Across files, from either of them.
    let changes = requests.rename("step)", "one").unwrap();
    assert_eq!(apply_edits(BASE, &changes[uri(&base)]), BASE.replace("let step", "let one"));
    assert_eq!(apply_edits(MODEL, &changes[uri(&path)]), MODEL.replace("step", "one"));
    client.open(&base, BASE);
    let mut requests = PlaceRequests { client: &mut client, path: &base, text: BASE };
    assert_eq!(requests.rename("step =", "one").unwrap(), changes);
    assert!(
        requests.rename("step =", "pair").unwrap().as_object().unwrap().len() == 2,
        "hidden later, and not used then"
    );
    assert!(
        requests.rename("step =", "reach").is_err_and(|m| m.contains("would change the meaning"))
    );
    let mut requests = PlaceRequests { client: &mut client, path: &path, text: MODEL };
    for (mark, new, message) in [
        ("reach =", "rf", "is a built-in name of the language"),
        ("reach =", "step", "would change the meaning"),
        ("x, y", "y", "would change the meaning"),
        ("po |", "order2", "cannot be renamed"),
        ("reach =", "a b", "would"),
        ("reach =", "let", "would have an error"),
    ] {
        let found = requests.rename(mark, new);
        assert!(found.as_ref().is_err_and(|m| m.contains(message)), "{mark} -> {new}: {found:?}");
    }
    // What is typed in a file shows in one that includes it.
    client.open(&base, "let other = rf\n");
    let found = client.diagnostics_that(&path, |d| !d.is_empty());
    assert!(found[0]["message"].as_str().unwrap().contains("step"), "{found:?}");
    client.end();
}

#[test]
fn litmus_tests() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sb.litmus");
    let mut client = Client::start(Some(folder.path()));
    client.open(&path, TEST);
    assert_eq!(client.diagnostics(&path, 1), Vec::<Value>::new());
    let mut requests = PlaceRequests { client: &mut client, path: &path, text: TEST };
    assert!(requests.hover("y],$1").contains("int y=0"), "{}", requests.hover("y],$1"));
    assert!(requests.hover("EAX,[y]").contains("a register of P0"));
    assert_eq!(requests.lines("references", "x],$1"), [2, 4, 5, 8]);
    assert_eq!(requests.lines("references", "EAX=0 /"), [5, 9]);
    assert_eq!(requests.lines("references", "L: MOV"), [4, 7]);
    assert_eq!(requests.outline(), ["x", "y", "P0", "P1", "L", "locations"]);
    assert_eq!(
        requests.rename_text("x],$1", "flag"),
        TEST.replace("int x", "int flag").replace("[x]", "[flag]").replace("[x;]", "[flag;]")
    );
    assert_eq!(
        requests.rename_text("L: MOV", "again"),
        TEST.replace("L: MOV", "again: MOV").replace("JE L ", "JE again ")
    );
    for (mark, new, message) in [
        ("EAX,[y]", "EBX", "a register of the architecture"),
        ("x],$1", "y", "the variable `y` is initialised twice"),
        ("x],$1", "EBX", "would"),
    ] {
        let found = requests.rename(mark, new);
        assert!(found.as_ref().is_err_and(|m| m.contains(message)), "{mark} -> {new}: {found:?}");
    }
    // Other architectures have diagnostics too, and C has local variables.
    let wrong = "RISCV A\n{ 0:x5=x; }\n P0 ;\n lw x6,0(y9) ;\nexists (0:x6=0)\n";
    client.open(&path, wrong);
    let found = client.diagnostics_that(&path, |d| !d.is_empty());
    assert!(
        found[0]["message"].as_str().unwrap().contains("`y9`")
            && found[0]["range"]["start"]["line"] == 3,
        "{found:?}"
    );
    let c = "C MP\n{}\nP0 (atomic_int* x, int* y) {\n  *y = 1;\n  atomic_store_explicit(x, 1, memory_order_release);\n}\nP1 (atomic_int* x, int* y) {\n  int r0 = atomic_load_explicit(x, memory_order_acquire), r1 = 5;\n  if (r0) { r1 = *y; }\n}\nexists (1:r0=1 /\\ 1:r1=0)\n";
    let path = folder.path().join("mp.litmus");
    client.open(&path, c);
    assert_eq!(client.diagnostics(&path, 1), Vec::<Value>::new());
    let mut requests = PlaceRequests { client: &mut client, path: &path, text: c };
    assert_eq!(requests.lines("references", "r1=0"), [7, 8, 10]);
    assert_eq!(requests.rename_text("r1=0", "data"), c.replace("r1", "data"));
    assert_eq!(
        requests.rename_text("y; }", "z"),
        c.replace("*y", "*z").replace("int* y", "int* z")
    );
    assert!(requests.rename("r1=0", "x").is_err());
    client.end();
}

#[test]
fn an_equation_system() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.pbes");
    let mut client = Client::start(Some(folder.path()));
    client.open(&path, EQUATIONS);
    assert_eq!(client.diagnostics(&path, 1), Vec::<Value>::new());
    let mut requests = PlaceRequests { client: &mut client, path: &path, text: EQUATIONS };
    let found = requests.hover("X(twice");
    assert!(
        found.contains("nu X(n: Nat, d: D)")
            && found.contains("greatest")
            && found.contains("The first of them"),
        "{found}"
    );
    let found = requests.hover("n(d) ==");
    assert!(found.contains("n: D -> Nat") && found.contains("how deep"), "{found}");
    let found = requests.hover("n < 3");
    assert!(found.contains("n: Nat") && found.contains("parameter"), "{found}");
    assert!(requests.hover("n < 2").contains("quantified"));
    assert!(requests.hover("D) =").contains("what is handed on"));
    // A parameter of an equation, what a quantifier binds there, and the operation are three.
    assert_eq!(requests.lines("definition", "n < 3"), [10]);
    assert_eq!(requests.lines("references", "n < 3"), [10, 11, 11]);
    assert_eq!(requests.lines("references", "n < 2"), [13, 13, 13]);
    assert_eq!(requests.lines("references", "n(d) =="), [2, 5, 6, 6, 13]);
    assert_eq!(requests.lines("documentHighlight", "d: D) =\n    val"), [12, 13, 13]);
    assert_eq!(requests.lines("references", "X(n, red)"), [10, 13, 13, 14]);
    let found = requests.completion("m < n");
    assert!(
        ["n", "d", "m", "X", "Y", "twice", "red", "D", "forall", "Nat"]
            .iter()
            .all(|w| found.iter().any(|f| f == w)),
        "{found:?}"
    );
    let found = requests.completion("n(d) ==");
    assert!(found.contains(&"d".to_string()) && !found.contains(&"m".to_string()), "{found:?}");
    let items = requests.at("completion", "n(d) ==");
    let twice = items.as_array().unwrap().iter().find(|i| i["label"] == "twice").unwrap();
    assert_eq!(twice["detail"], "twice: Nat -> Nat");
    assert_eq!(requests.outline(), ["D", "n", "twice", "eqn", "X", "Y", "init"]);
    assert!(requests.folds().contains(&(10, 11)), "{:?}", requests.folds());
    let colours = requests.colours();
    let of = |word: &str| {
        colours.iter().find(|c| c.0 == word).unwrap_or_else(|| panic!("{word}: {colours:?}")).1
    };
    assert!(
        of("forall") == 0 && of("D") == 6 && of("red") == 7 && of("twice") == 8 && of("X") == 11,
        "{colours:?}"
    );
    assert_eq!(
        requests.rename_text("n < 3", "many"),
        EQUATIONS
            .replace("X(n: Nat", "X(many: Nat")
            .replace("m < n)", "m < many)")
            .replace("n < 3", "many < 3")
    );
    assert_eq!(requests.rename_text("Y(d)", "Other"), EQUATIONS.replace('Y', "Other"));
    for (mark, new, message) in [
        ("n < 3", "d", "would"),
        ("m < n", "n", "would change the meaning"),
        ("n(d) ==", "d", "would"),
        ("Y(d)", "X", "would have an error"),
        ("Y(d)", "val", "would have an error"),
        ("Nat, d", "Natural", "there is no name here"),
    ] {
        let found = requests.rename(mark, new);
        assert!(found.as_ref().is_err_and(|m| m.contains(message)), "{mark} -> {new}: {found:?}");
    }
    // Text that is being typed: the rest stays alive.
    let broken = EQUATIONS.replace("val(n < 3)", "val(n <");
    client.open(&path, &broken);
    let mut requests = PlaceRequests { client: &mut client, path: &path, text: &broken };
    assert_eq!(requests.lines("references", "red)"), [1, 5, 13, 14]);
    client.end();
}

#[test]
fn an_x86_program() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.asm");
    let mut client = Client::start(Some(folder.path()));
    client.open(&path, PROGRAM);
    assert_eq!(client.diagnostics(&path, 1), Vec::<Value>::new());
    let mut requests = PlaceRequests { client: &mut client, path: &path, text: PROGRAM };
    let found = requests.hover("count]");
    assert!(
        found.contains("count dd N ! as counter")
            && found.contains("shared by all")
            && found.contains("how many are out"),
        "{found}"
    );
    assert!(requests.hover("mine +").contains("each thread has an element"));
    assert!(requests.hover("next]").contains("round robin"));
    assert!(requests.hover("again\n  dec").contains("comes back"));
    assert_eq!(requests.lines("definition", "crit && eip[$b]"), [22]);
    assert_eq!(requests.lines("references", "flag], eax"), [2, 9, 17, 22]);
    assert_eq!(requests.lines("references", "again:"), [16, 20, 23]);
    // Parts of a register are one, in what is unsafe too.
    assert_eq!(requests.lines("documentHighlight", "al, 1"), [9, 16, 17, 18, 19]);
    assert_eq!(requests.lines("references", "a] = crit"), [9, 9, 9]);
    let found = requests.completion("again\n  dec");
    assert!(
        ["flag", "mine", "again", "crit", "dword", "al"]
            .iter()
            .all(|w| found.iter().any(|f| f == w)),
        "{found:?}"
    );
    assert!(!found.contains(&"a".to_string()), "{found:?}");
    assert!(requests.completion("flag = 1").contains(&"a".to_string()));
    let sections = ["shared_data", "thread_data", "unsafe_prop", "init_code", "thread_code"];
    let outline = requests.outline();
    assert!(
        sections
            .iter()
            .chain(&["flag", "count", "mine", "again", "crit"])
            .all(|w| outline.iter().any(|f| f == w)),
        "{outline:?}"
    );
    assert!(requests.folds().contains(&(14, 24)), "{:?}", requests.folds());
    assert_eq!(requests.rename_text("crit:", "inside"), PROGRAM.replace("crit", "inside"));
    assert_eq!(
        requests.rename_text("flag], eax", "lock_word"),
        PROGRAM.replace("flag", "lock_word")
    );
    assert_eq!(requests.rename_text("a] = crit", "one"), PROGRAM.replace("$a", "$one"));
    for (mark, new, message) in [
        ("al, 1", "bl", "a register of the architecture"),
        ("next]", "other", "cannot be renamed"),
        ("again:", "crit", "would"),
        ("flag dd", "mine", "would have an error"),
        ("flag dd", "eax", "would have an error"),
        ("a] = crit", "b", "would"),
        ("mov al", "add", "there is no name here"),
    ] {
        let found = requests.rename(mark, new);
        assert!(found.as_ref().is_err_and(|m| m.contains(message)), "{mark} -> {new}: {found:?}");
    }
    client.end();
}

/// Returns a word with as many letters as the old one that stands nowhere in the text and has its
/// place in the alphabet among the words of the text.
fn other_word(text: &str, old: &str) -> Option<String> {
    let inside = |c: char| c.is_ascii_alphanumeric() || "_-.'".contains(c);
    let words: Vec<&str> = text.split(|c: char| !inside(c)).filter(|w| !w.is_empty()).collect();
    let (stem, last) = old.split_at(old.len() - 1);
    let mut letters: Vec<char> = ('a'..='z').chain('A'..='Z').chain('0'..='9').collect();
    letters.sort_by_key(|c| (*c as i32 - last.chars().next().unwrap() as i32).abs());
    letters
        .into_iter()
        .filter(|c| !stem.is_empty() || c.is_ascii_alphabetic())
        .map(|c| format!("{stem}{c}"))
        .find(|new| {
            let fits = |w: &&str| w.cmp(&old) == w.cmp(&new.as_str()) || **w == *old;
            new != old && !text.contains(new.as_str()) && words.iter().all(fits)
        })
}

/// Returns a text with each word of one name replaced.
fn replace_word(text: &str, from: &str, to: &str) -> String {
    let inside =
        |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || "_-.'".contains(c));
    let mut out = String::new();
    let mut at = 0;
    while let Some(i) = text[at..].find(from).map(|i| at + i) {
        let whole = !inside(text[..i].chars().next_back())
            && !inside(text[i + from.len()..].chars().next());
        out += &text[at..i];
        out += if whole { to } else { from };
        at = i + from.len();
    }
    out + &text[at..]
}

/// Reads a text by the readers of the command line, with all its places; `None` if they reject it.
pub fn resolve_names(path: &Path, text: &str) -> Option<String> {
    match path.extension()?.to_str()? {
        "asm" => {
            let fixed = program::nasm::parse(SourceId::FIRST, text, 2).ok().map(|p| {
                let labels: Vec<std::collections::BTreeMap<_, _>> =
                    p.labels.into_iter().map(|l| l.into_iter().collect()).collect();
                format!("{:?} {:?} {labels:?} {:?}", p.program, p.variables.list(), p.unsafe_states)
            });
            let any =
                program::parametric::parse(SourceId::FIRST, text).ok().map(|p| format!("{p:?}"));
            fixed.is_some().then_some(()).or(any.is_some().then_some(()))?;
            Some(format!("{fixed:?} {any:?}"))
        }
        "pbes" => {
            let system = formula::equations::read(SourceId::FIRST, text).ok()?;
            let typed = process::typecheck::check_specification(&system.specification).ok()?;
            Some(format!("{:?} {:?} {:?}", system.specification, system.least, typed.procs))
        }
        "cub" => Some(format!(
            "{:?}",
            cubicle::check(&cubicle::parse(SourceId::FIRST, text).ok()?).ok()?
        )),
        _ => match litmus::parse(SourceId::FIRST, text, Default::default()) {
            Ok(test) => Some(format!("{test:?}")),
            Err(_) => {
                Some(format!("{:?}", program::litmus::parse(SourceId::FIRST, text).ok()?.question))
            }
        },
    }
}

/// Returns all files with an ending: those of the project that its tests read, and those of the
/// folder that `MU_CHECK_MODELS` names.
fn files_with_ending(ending: &str) -> Vec<PathBuf> {
    let mut found = reference_models(&[ending]);
    for corpus in ["fuzz/corpus/litmus", "fuzz/corpus/bes"] {
        found.extend(
            std::fs::read_dir(package(corpus))
                .into_iter()
                .flatten()
                .filter_map(|e| Some(e.ok()?.path())),
        );
    }
    found.retain(|p| p.extension().is_some_and(|e| e == ending));
    found
}

/// Names at random places of every file are renamed, and the resolved form is that of the original
/// with the other name.
fn renaming_keeps_what_is_parsed(files: &[PathBuf], a_file: usize, least: usize) {
    let seed = std::env::var("MU_CHECK_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(0xCAB);
    println!("replay with MU_CHECK_SEED={seed}");
    let mut random = Random::new(seed);
    let mut client = Client::start(Some(Path::new(&package(""))));
    let (mut renamed, mut refused, mut read) = (0, 0, 0);
    for path in files {
        let Ok(text) = std::fs::read_to_string(path) else { continue };
        let Some(before) = resolve_names(path, &text) else { continue };
        client.open(path, &text);
        assert_eq!(client.diagnostics(path, 1), Vec::<Value>::new(), "{}", path.display());
        read += 1;
        let starts: Vec<usize> = text
            .char_indices()
            .filter(|(i, c)| {
                c.is_ascii_alphabetic()
                    && !text[..*i].ends_with(|p: char| p.is_ascii_alphanumeric() || p == '_')
            })
            .map(|c| c.0)
            .collect();
        let goal = renamed + a_file;
        for _ in 0..12 * a_file {
            if renamed >= goal {
                break;
            }
            let at = *random.choose(&starts);
            let what = format!("{}:{at}", path.display());
            let place = client.at("textDocument/prepareRename", path, &text, at, json!({}));
            let Some(old) = place["result"]["placeholder"].as_str().map(String::from) else {
                assert!(place["error"]["message"].is_string(), "{what}: {place}");
                refused += 1;
                continue;
            };
            let Some(new) = other_word(&text, &old) else { continue };
            let answer =
                client.at("textDocument/rename", path, &text, at, json!({ "newName": new }));
            let Some(edits) = answer["result"]["changes"].get(uri(path)) else {
                // A name of one letter may become one of the language.
                assert!(answer["error"]["message"].is_string(), "{what}: {answer}");
                refused += 1;
                continue;
            };
            let after = apply_edits(&text, edits);
            assert_ne!(after, text, "{what}");
            let found = resolve_names(path, &after)
                .unwrap_or_else(|| panic!("{what}: `{old}` -> `{new}`: {after}"));
            let (found, wanted) =
                (replace_word(&found, &new, &old), replace_word(&before, &new, &old));
            if found != wanted {
                let at = found.bytes().zip(wanted.bytes()).take_while(|(a, b)| a == b).count();
                let near = |s: &str| {
                    s.get(at.saturating_sub(80)..(at + 80).min(s.len())).map(String::from)
                };
                panic!(
                    "{what}: `{old}` -> `{new}`: {:?}, not {:?}\n{after}",
                    near(&found),
                    near(&wanted)
                );
            }
            renamed += 1;
        }
        client.notify("textDocument/didClose", json!({ "textDocument": { "uri": uri(path) } }));
    }
    println!("{read} files, {renamed} renamed, {refused} refused");
    assert!(renamed >= least, "{renamed} renamed, {refused} refused");
    client.end();
}

#[test]
fn renaming_keeps_systems() {
    renaming_keeps_what_is_parsed(&files_with_ending("cub"), 12, 150);
}

#[test]
fn renaming_keeps_litmus_tests() {
    renaming_keeps_what_is_parsed(&files_with_ending("litmus"), 8, 8);
}

#[test]
fn renaming_keeps_programs() {
    renaming_keeps_what_is_parsed(&files_with_ending("asm"), 8, 100);
}

/// Equation systems: those of the project, those that it makes of models and formulas, and one with
/// a name for three things. What is solved has the same answer.
#[test]
fn renaming_keeps_equation_systems() {
    let folder = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_mu-check");
    let mut files = files_with_ending("pbes");
    let made = [
        ("mutex", "mutex/mutex", "mutex/mutual_exclusion"),
        ("lost", "protocol/protocol", "protocol/none_lost"),
        ("cpu", "cpu/cpu", "cpu/own_stores"),
    ];
    for (name, model, formula) in made {
        let [model, formula] = [format!("{model}.mcrl2"), format!("{formula}.mcf")]
            .map(|f| package(&format!("src/cli/commands/projects/{f}")));
        let text = folder.path().join(format!("{name}.pbes.txt"));
        let status = std::process::Command::new(program)
            .args(["pbes", &model, &formula, "-o"])
            .arg(&text)
            .status()
            .unwrap();
        assert!(status.success(), "{name}");
        files.push(folder.path().join(format!("{name}.pbes")));
        std::fs::rename(&text, files.last().unwrap()).unwrap();
    }
    files.push(folder.path().join("names.pbes"));
    std::fs::write(files.last().unwrap(), EQUATIONS).unwrap();
    renaming_keeps_what_is_parsed(&files, 12, 30);
    let solved = |text: &str| {
        let path = folder.path().join("solved.pbes");
        std::fs::write(&path, text).unwrap();
        let output = std::process::Command::new(program).arg("solve").arg(&path).output().unwrap();
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or("").to_string(),
        )
    };
    let mut client = Client::start(Some(folder.path()));
    for path in &files {
        let Ok(text) = std::fs::read_to_string(path) else { continue };
        if text.len() > 3000 || resolve_names(path, &text).is_none() {
            continue;
        }
        client.open(path, &text);
        let before = solved(&text);
        assert!(matches!(before.0, Some(0 | 1)), "{}: {before:?}", path.display());
        let names: Vec<usize> = text
            .match_indices(|c: char| c.is_ascii_alphabetic())
            .map(|m| m.0)
            .filter(|i| !text[..*i].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
            .collect();
        let mut renamed = 0;
        for at in names {
            let answer =
                client.at("textDocument/rename", path, &text, at, json!({ "newName": "fresh" }));
            let Some(edits) = answer["result"]["changes"].get(uri(path)) else { continue };
            let (code, line) = solved(&apply_edits(&text, edits));
            assert_eq!(
                (code, replace_word(&line, "fresh", &answered_name(&text, at))),
                before,
                "{}:{at}",
                path.display()
            );
            renamed += 1;
        }
        assert!(renamed > 5, "{}: {renamed}", path.display());
    }
    client.end();
}

/// Returns the verdicts of a model on tests of every architecture: in the words of the herd tools,
/// without times. Errors count as answers.
fn verdicts(model: &Path, tests: &[PathBuf]) -> Vec<String> {
    let text = std::fs::read_to_string(model).unwrap();
    let folder = model.parent().unwrap();
    let name = model.file_name().unwrap().to_string_lossy().into_owned();
    let mut sources = mu_check::base::SourceMap::new();
    let sibling = |name: &str| {
        std::fs::read_to_string(folder.join(name)).ok().or_else(|| axioms::models::file(name))
    };
    let compiled = axioms::models::Dialect::compile(&mut sources, &name, &text, &sibling);
    let Ok((compiled, _)) = compiled else { return vec!["refused".into()] };
    let mut out: Vec<String> = compiled.axioms().map(String::from).collect();
    out.push(format!("{:?}", compiled.size()));
    for path in tests {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_mu-check"))
            .args(["litmus", "--timeout", "20s", "--include"])
            .arg(folder)
            .arg("--model")
            .arg(model)
            .arg(path)
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        // Of an error the message, without the place, which moves.
        let error =
            printed.split(": error: ").nth(1).and_then(|e| e.lines().next()).map(String::from);
        let lines =
            || printed.lines().filter(|l| !l.starts_with("Time")).collect::<Vec<_>>().join("\n");
        out.push(error.unwrap_or_else(lines));
    }
    out
}

/// Names of memory models are renamed, in all their files at once: verdicts on tests stay.
#[test]
fn renaming_keeps_memory_models() {
    let seed = std::env::var("MU_CHECK_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(0xCA7);
    println!("replay with MU_CHECK_SEED={seed}");
    let mut random = Random::new(seed);
    let own = tempfile::tempdir().unwrap();
    let mut tests: Vec<PathBuf> = ["docs/gallery/rwc.litmus", "fuzz/corpus/litmus/sb.litmus"]
        .iter()
        .map(|t| PathBuf::from(package(t)))
        .collect();
    for (name, text) in [
        (
            "riscv",
            "RISCV MP\n{ 0:x5=1; 0:x6=x; 0:x7=y; 1:x6=x; 1:x7=y; }\n P0 | P1 ;\n sw x5,0(x6) | lw x8,0(x7) ;\n fence w,w | fence r,r ;\n sw x5,0(x7) | lw x9,0(x6) ;\nexists (1:x8=1 /\\ 1:x9=0)\n",
        ),
        (
            "arm",
            "AArch64 MP\n{ 0:X1=x; 0:X3=y; 1:X1=y; 1:X3=x; }\n P0 | P1 ;\n MOV W0,#1 | LDAR W0,[X1] ;\n STR W0,[X1] | LDR W2,[X3] ;\n STLR W0,[X3] | ;\nexists (1:X0=1 /\\ 1:X2=0)\n",
        ),
        (
            "c",
            "C MP\n{}\nP0 (atomic_int* x, atomic_int* y) {\n atomic_store_explicit(x, 1, memory_order_relaxed);\n atomic_store_explicit(y, 1, memory_order_release);\n}\nP1 (atomic_int* x, atomic_int* y) {\n int r0 = atomic_load_explicit(y, memory_order_acquire);\n int r1 = atomic_load_explicit(x, memory_order_relaxed);\n}\nexists (1:r0=1 /\\ 1:r1=0)\n",
        ),
    ] {
        tests.push(own.path().join(format!("{name}.litmus")));
        std::fs::write(tests.last().unwrap(), text).unwrap();
    }
    let mut folders: Vec<PathBuf> =
        files_with_ending("cat").iter().map(|p| p.parent().unwrap().to_path_buf()).collect();
    folders.dedup();
    let (mut renamed, mut refused) = (0, 0);
    for original in folders {
        // A copy of the folder: models include each other.
        let copy = tempfile::tempdir().unwrap();
        let models: Vec<PathBuf> =
            std::fs::read_dir(&original).unwrap().filter_map(|e| Some(e.ok()?.path())).collect();
        let mut models: Vec<PathBuf> =
            models.into_iter().filter(|p| p.extension().is_some_and(|e| e == "cat")).collect();
        models.sort();
        for model in &mut models {
            let to = copy.path().join(model.file_name().unwrap());
            std::fs::copy(&model, &to).unwrap();
            *model = to;
        }
        let before: Vec<Vec<String>> = models.iter().map(|m| verdicts(m, &tests)).collect();
        for model in &models {
            let mut client = Client::start(Some(copy.path()));
            let text = std::fs::read_to_string(model).unwrap();
            client.open(model, &text);
            let starts: Vec<usize> = text
                .char_indices()
                .filter(|(i, c)| {
                    c.is_ascii_alphabetic()
                        && !text[..*i]
                            .ends_with(|p: char| p.is_ascii_alphanumeric() || "_-.'".contains(p))
                })
                .map(|c| c.0)
                .collect();
            let goal = renamed + 1;
            for _ in 0..60 {
                if renamed >= goal {
                    break;
                }
                let at = *random.choose(&starts);
                let what = format!("{}:{at}", model.display());
                let answer = client.at(
                    "textDocument/rename",
                    model,
                    &text,
                    at,
                    json!({ "newName": "fresh-name" }),
                );
                let Some(changes) = answer["result"]["changes"].as_object() else {
                    refused += 1;
                    continue;
                };
                let saved: Vec<(PathBuf, String)> = models
                    .iter()
                    .map(|m| (m.clone(), std::fs::read_to_string(m).unwrap()))
                    .collect();
                for (file, text) in saved.iter().filter(|s| changes.contains_key(&uri(&s.0))) {
                    std::fs::write(file, apply_edits(text, &changes[&uri(file)])).unwrap();
                }
                for (m, wanted) in models.iter().zip(&before).filter(|m| {
                    saved.iter().any(|s| s.0 == *m.0 && changes.contains_key(&uri(m.0)))
                }) {
                    let old = answered_name(&text, at);
                    let found: Vec<String> = verdicts(m, &tests)
                        .iter()
                        .map(|v| replace_word(v, "fresh-name", &old))
                        .collect();
                    assert_eq!(&found, wanted, "{what}: `{old}`");
                }
                for (file, text) in &saved {
                    std::fs::write(file, text).unwrap();
                }
                renamed += 1;
            }
            client.end();
        }
    }
    println!("{renamed} renamed, {refused} refused");
    assert!(renamed > 15 && refused > 2, "{renamed} renamed, {refused} refused");
}

/// Returns the word at an offset.
fn answered_name(text: &str, at: usize) -> String {
    text[at..].chars().take_while(|c| c.is_ascii_alphanumeric() || "_-.'".contains(*c)).collect()
}

#[test]
fn words_take_their_place() {
    assert_eq!(other_word("let ab = ac | b", "ab").as_deref(), Some("aa"));
    assert_eq!(other_word("let ab = aa | ad", "ab").as_deref(), Some("ac"));
    assert_eq!(other_word("a b c", "b"), None);
    assert_eq!(replace_word("ab aba ab-1 (ab)", "ab", "x"), "x aba ab-1 (x)");
}
