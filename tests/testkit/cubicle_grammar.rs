//! Generator of random systems from the grammar of `.cub` files, as text. Every production of
//! [`mod@mu_cubicle::parse`] is generated: each kind of declaration, transitions with any number of
//! parameters and with or without an acting process, claims about plain cells and about memory with
//! or without an observer, all spellings, and constants at boundaries.
//!
//! Input: seed and [`Shape`]. Output: [`Generated`], with the productions that it uses;
//! [`PRODUCTIONS`] lists all of them. Most texts are well typed, because names and sorts are chosen
//! from the declarations. Numbers that change stay close to 0, so that instances are finite.

use mu_base::random::Random;
use std::collections::BTreeSet;
use std::fmt::Write;

/// All productions, by the names in [`Generated::used`].
pub const PRODUCTIONS: &[&str] = &[
    "number_procs",
    "type enumeration",
    "type abstract",
    "predicate",
    "var",
    "array",
    "array of two indices",
    "weak var",
    "weak array",
    "const",
    "const array",
    "sort enumeration",
    "sort bool",
    "sort int",
    "sort real",
    "sort proc",
    "sort abstract",
    "init of no process",
    "init of one process",
    "init of two processes",
    "init disjunction",
    "init open cell",
    "init without states",
    "unsafe of no process",
    "unsafe of one process",
    "unsafe of two processes",
    "unsafe of three processes",
    "unsafe disjunction",
    "invariant",
    "claim observer",
    "claim without observer",
    "transition of no process",
    "transition of one process",
    "transition of two processes",
    "transition of three processes",
    "actor in brackets",
    "actor not first",
    "actor by access",
    "no actor",
    "no guard",
    "assign",
    "assign any",
    "assign by case",
    "default case",
    "write call",
    "write at",
    "write in brackets",
    "read call",
    "read at",
    "read in brackets",
    "read plainly",
    "fence",
    "fence of a process",
    "true",
    "false",
    "=",
    "<>",
    "<",
    "<=",
    ">",
    ">=",
    "&&",
    "||",
    "not",
    "=>",
    "<=>",
    "if",
    "forall",
    "exists",
    "forall_other",
    "exists_other",
    "predicate call",
    "order of processes",
    "fixed process",
    "number",
    "boundary",
    "fraction",
    "+",
    "-",
    "*",
    "negation of a number",
    "comment",
];

/// The features of a system.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Processes interact only through memory: transitions access plain cells only of the acting
    /// process.
    pub private: bool,
    /// Largest number of transitions.
    pub transitions: usize,
}

/// A generated system.
#[derive(Clone, Debug)]
pub struct Generated {
    /// The text.
    pub text: String,
    /// The productions of [`PRODUCTIONS`] that it uses.
    pub used: BTreeSet<&'static str>,
}

#[derive(Clone, Copy, PartialEq)]
enum Sort {
    Place,
    Bool,
    Int,
    Real,
    Proc,
    Abstract,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Plain,
    Weak,
    Constant,
}

#[derive(Clone, Copy)]
struct Symbol {
    name: &'static str,
    kind: Kind,
    arity: usize,
    sort: Sort,
}

/// The process that accesses memory in a formula.
#[derive(Clone, Copy, PartialEq)]
enum Observer {
    /// In a claim: any process or none.
    Any,
    /// In a transition: its acting process.
    Actor(&'static str),
    /// In a transition without an acting process: none.
    None,
}

struct Generator<'r> {
    random: &'r mut Random,
    shape: Shape,
    symbols: Vec<Symbol>,
    predicate: bool,
    used: BTreeSet<&'static str>,
}

/// Numbers at the boundaries of representations.
pub const BOUNDARIES: [&str; 9] = [
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "-2147483649",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "268435456",
];

/// Generates a random system.
pub fn generate(random: &mut Random, shape: Shape) -> Generated {
    let mut all = vec![
        Symbol { name: "Flag", kind: Kind::Plain, arity: 1, sort: Sort::Bool },
        Symbol { name: "Turn", kind: Kind::Plain, arity: 0, sort: Sort::Proc },
        Symbol { name: "Mode", kind: Kind::Plain, arity: 0, sort: Sort::Place },
        Symbol { name: "Count", kind: Kind::Plain, arity: 0, sort: Sort::Int },
        Symbol { name: "Own", kind: Kind::Plain, arity: 1, sort: Sort::Int },
        Symbol { name: "Ptr", kind: Kind::Plain, arity: 1, sort: Sort::Proc },
        Symbol { name: "Link", kind: Kind::Plain, arity: 2, sort: Sort::Bool },
        Symbol { name: "Half", kind: Kind::Plain, arity: 0, sort: Sort::Real },
        Symbol { name: "Data", kind: Kind::Plain, arity: 1, sort: Sort::Abstract },
        Symbol { name: "First", kind: Kind::Constant, arity: 0, sort: Sort::Abstract },
        Symbol { name: "Limit", kind: Kind::Constant, arity: 0, sort: Sort::Int },
        Symbol { name: "Role", kind: Kind::Constant, arity: 1, sort: Sort::Bool },
        Symbol { name: "X", kind: Kind::Weak, arity: 0, sort: Sort::Bool },
        Symbol { name: "Y", kind: Kind::Weak, arity: 0, sort: Sort::Place },
        Symbol { name: "Z", kind: Kind::Weak, arity: 0, sort: Sort::Int },
        Symbol { name: "W", kind: Kind::Weak, arity: 1, sort: Sort::Bool },
        Symbol { name: "V", kind: Kind::Weak, arity: 1, sort: Sort::Place },
        Symbol { name: "P", kind: Kind::Weak, arity: 0, sort: Sort::Proc },
        Symbol { name: "M", kind: Kind::Weak, arity: 2, sort: Sort::Bool },
    ];
    if shape.private {
        all.retain(|s| s.kind != Kind::Plain || s.arity > 0);
    }
    let mut symbols = Vec::new();
    if random.chance(7, 8) {
        symbols.push(Symbol { name: "At", kind: Kind::Plain, arity: 1, sort: Sort::Place });
    }
    for _ in 0..1 + random.below(3) {
        let at = random.below(all.len());
        symbols.push(all.remove(at));
    }
    if random.chance(2, 3) && !symbols.iter().any(|s| s.kind == Kind::Weak) {
        symbols.push(Symbol { name: "U", kind: Kind::Weak, arity: 0, sort: Sort::Bool });
    }
    let predicate = random.chance(1, 5);
    let mut generator = Generator { random, shape, symbols, predicate, used: BTreeSet::new() };
    let text = generator.file();
    Generated { text, used: generator.used }
}

impl Generator<'_> {
    fn use_of(&mut self, production: &'static str) {
        debug_assert!(PRODUCTIONS.contains(&production), "{production}");
        self.used.insert(production);
    }
    fn chance(&mut self, numerator: usize, denominator: usize) -> bool {
        self.random.chance(numerator, denominator)
    }
    fn choose(&mut self, list: &[&'static str]) -> &'static str {
        list[self.random.below(list.len())]
    }
    fn file(&mut self) -> String {
        let mut out = String::new();
        if self.chance(1, 12) {
            self.use_of("number_procs");
            let n = 1 + self.random.below(3);
            let _ = writeln!(out, "number_procs {n}");
        }
        if self.chance(1, 6) {
            self.use_of("comment");
            out += "(* random (* nested *) *)\n";
        }
        self.use_of("type enumeration");
        out += "type place = A | B | C\n";
        if self.symbols.iter().any(|s| s.sort == Sort::Abstract) {
            self.use_of("type abstract");
            out += "type data\n";
        }
        for s in self.symbols.clone() {
            out += &self.declaration(s);
        }
        if self.predicate {
            self.use_of("predicate");
            let body = self.literal(&["a"], Observer::None, true);
            let _ = writeln!(out, "predicate holds (a) {{ {body} }}");
        }
        out += &self.init();
        for _ in 0..=self.random.below(2) {
            out += &self.claim("unsafe");
        }
        if self.chance(1, 8) {
            self.use_of("invariant");
            out += &self.claim("invariant");
        }
        for number in 0..=self.random.below(self.shape.transitions) {
            out += &self.transition(number);
        }
        out
    }
    fn declaration(&mut self, s: Symbol) -> String {
        let (production, sort) = match s.sort {
            Sort::Place => ("sort enumeration", "place"),
            Sort::Bool => ("sort bool", "bool"),
            Sort::Int => ("sort int", "int"),
            Sort::Real => ("sort real", "real"),
            Sort::Proc => ("sort proc", "proc"),
            Sort::Abstract => ("sort abstract", "data"),
        };
        self.use_of(production);
        let (production, word) = match (s.kind, s.arity) {
            (Kind::Constant, 0) => ("const", "const"),
            (Kind::Constant, _) => ("const array", "const"),
            (Kind::Plain, 0) => ("var", "var"),
            (Kind::Plain, 1) => ("array", "array"),
            (Kind::Plain, _) => ("array of two indices", "array"),
            (Kind::Weak, 0) => ("weak var", "weak var"),
            (Kind::Weak, 1) => ("weak array", "weak array"),
            (Kind::Weak, _) => ("array of two indices", "weak array"),
        };
        self.use_of(production);
        let indices = ["", "[proc]", "[proc, proc]"][s.arity];
        format!("{word} {}{indices} : {sort}\n", s.name)
    }
    fn init(&mut self) -> String {
        let count =
            if self.symbols.iter().any(|s| s.arity > 1) { 2 } else { 1 + self.random.below(2) };
        let arrays = self.symbols.iter().any(|s| s.arity > 0);
        let procs: &[&'static str] =
            if !arrays && self.chance(1, 2) { &[] } else { &["p", "q"][..count] };
        self.use_of(
            ["init of no process", "init of one process", "init of two processes"][procs.len()],
        );
        let mut parts: Vec<String> = Vec::new();
        for s in self.symbols.clone() {
            if s.kind != Kind::Constant
                && s.sort != Sort::Int
                && s.sort != Sort::Real
                && self.chance(1, 10)
                || s.kind == Kind::Constant && s.sort != Sort::Int && self.chance(1, 2)
            {
                self.use_of("init open cell");
                continue;
            }
            let cell = match s.arity {
                0 => s.name.to_string(),
                1 => format!("{}[p]", s.name),
                _ => format!("{}[p, q]", s.name),
            };
            parts.push(match s.sort {
                Sort::Place if self.chance(1, 8) => {
                    self.use_of("init disjunction");
                    format!("({cell} = A || {cell} = B)")
                }
                Sort::Place => format!("{cell} = A"),
                Sort::Bool if self.chance(1, 10) => {
                    self.use_of("init disjunction");
                    format!("({cell} = False || {cell} = True)")
                }
                Sort::Bool => format!("{cell} = False"),
                Sort::Int if s.kind == Kind::Constant || self.chance(1, 12) => {
                    self.use_of("boundary");
                    let number = self.choose(&BOUNDARIES);
                    format!("{cell} = {number}")
                }
                Sort::Int => format!("{cell} = 0"),
                Sort::Real => {
                    self.use_of("fraction");
                    format!("{cell} = {}", self.choose(&["0.5", "0.0", "1.25"]))
                }
                Sort::Proc if procs.is_empty() || self.chance(1, 2) => continue,
                Sort::Proc if self.chance(1, 3) => format!("{cell} <> p"),
                Sort::Proc if self.chance(1, 2) => format!("{cell} = p"),
                Sort::Proc => continue,
                Sort::Abstract => match self
                    .symbols
                    .iter()
                    .find(|o| o.sort == Sort::Abstract && o.kind == Kind::Constant)
                {
                    Some(o) if o.name != s.name => format!("{cell} = {}", o.name),
                    _ => continue,
                },
            });
        }
        if self.chance(1, 40) {
            self.use_of("init without states");
            parts.push("false".into());
        }
        let body = if parts.is_empty() { "true".into() } else { parts.join(" && ") };
        format!("init ({}) {{ {body} }}\n", procs.join(" "))
    }
    fn claim(&mut self, word: &str) -> String {
        let needed = if self.symbols.iter().all(|s| s.arity > 0) { 1 } else { 0 };
        let count = needed.max(self.random.below(4)).min(3);
        let procs = &["x", "y", "z"][..count];
        if word == "unsafe" {
            let names = [
                "unsafe of no process",
                "unsafe of one process",
                "unsafe of two processes",
                "unsafe of three processes",
            ];
            self.use_of(names[count]);
        }
        let parts: Vec<String> =
            (0..=self.random.below(3)).map(|_| self.literal(procs, Observer::Any, true)).collect();
        let mut body = parts.join(" && ");
        if self.chance(1, 8) {
            self.use_of("unsafe disjunction");
            self.use_of("||");
            body = format!("{body} || {}", self.literal(procs, Observer::Any, true));
        } else if self.chance(1, 10) && count < 3 {
            self.use_of("exists_other");
            let inner: Vec<&'static str> = procs.iter().copied().chain(["e"]).collect();
            body = format!(
                "{body} && (exists_other e. {})",
                self.literal(&inner, Observer::Any, true)
            );
        }
        if parts.len() > 1 {
            self.use_of("&&");
        }
        format!("{word} ({}) {{ {body} }}\n", procs.join(" "))
    }
    fn process(&mut self, procs: &[&'static str]) -> &'static str {
        if procs.is_empty() || self.chance(1, 40) {
            self.use_of("fixed process");
            return self.choose(&["#1", "#1", "#2"]);
        }
        self.choose(procs)
    }
    /// Returns the process that must be the first index of a symbol, if it is restricted.
    fn owners(&self, s: Symbol, observer: Observer) -> Option<&'static str> {
        match observer {
            Observer::Actor(actor) if self.shape.private && s.kind == Kind::Plain => Some(actor),
            _ => None,
        }
    }
    fn indices(&mut self, s: Symbol, procs: &[&'static str], observer: Observer) -> String {
        let mut args: Vec<&'static str> = (0..s.arity).map(|_| self.process(procs)).collect();
        if let (Some(owner), Some(first)) = (self.owners(s, observer), args.first_mut()) {
            *first = owner;
        }
        if args.is_empty() {
            s.name.to_string()
        } else {
            format!("{}[{}]", s.name, args.join(", "))
        }
    }
    /// Chooses a cell that the formula may read.
    fn cell(&mut self, s: Symbol, procs: &[&'static str], observer: Observer) -> String {
        let cell = self.indices(s, procs, observer);
        if s.kind != Kind::Weak {
            return cell;
        }
        let by = match observer {
            Observer::None => return cell,
            Observer::Any if self.chance(1, 4) || procs.is_empty() => {
                self.use_of("claim without observer");
                return cell;
            }
            Observer::Any => {
                self.use_of("claim observer");
                self.process(procs)
            }
            Observer::Actor(_) if self.chance(2, 3) => {
                self.use_of("read plainly");
                return cell;
            }
            Observer::Actor(actor) => actor,
        };
        match self.random.below(3) {
            0 => {
                self.use_of("read at");
                format!("{by} @ {cell}")
            }
            1 => {
                self.use_of("read in brackets");
                format!("[{by}]{cell}")
            }
            _ => {
                self.use_of("read call");
                format!("read({by}, {cell})")
            }
        }
    }
    fn constant(&mut self, sort: Sort, procs: &[&'static str]) -> Option<String> {
        Some(match sort {
            Sort::Place => self.choose(&["A", "B", "C"]).into(),
            Sort::Bool => self.choose(&["True", "False"]).into(),
            Sort::Int if self.chance(1, 10) => {
                self.use_of("boundary");
                self.choose(&BOUNDARIES).into()
            }
            Sort::Int => {
                self.use_of("number");
                self.choose(&["0", "1", "2", "-1"]).into()
            }
            Sort::Real => {
                self.use_of("fraction");
                self.choose(&["0.5", "1.25", "0", "1"]).into()
            }
            Sort::Proc => self.process(procs).into(),
            Sort::Abstract => return None,
        })
    }
    /// Generates a term of the sort of the symbol; `None` if the sort has neither constants nor
    /// other cells.
    fn term(&mut self, s: Symbol, procs: &[&'static str], observer: Observer) -> Option<String> {
        let same =
            |o: &&Symbol| o.sort == s.sort && (observer != Observer::None || o.kind != Kind::Weak);
        let others: Vec<Symbol> = self.symbols.iter().filter(same).copied().collect();
        let constant = self.constant(s.sort, procs);
        let mut term = match constant {
            Some(constant) if self.chance(3, 4) || others.is_empty() => constant,
            _ if others.is_empty() => return None,
            _ => {
                let other = others[self.random.below(others.len())];
                self.cell(other, procs, observer)
            }
        };
        if matches!(s.sort, Sort::Int | Sort::Real) && self.chance(1, 4) {
            let one = self.choose(&["1", "2"]);
            term = match self.random.below(4) {
                0 => {
                    self.use_of("+");
                    format!("{term} + {one}")
                }
                1 => {
                    self.use_of("-");
                    format!("{term} - {one}")
                }
                2 => {
                    self.use_of("*");
                    format!("{one} * ({term})")
                }
                _ => {
                    self.use_of("negation of a number");
                    format!("-({term})")
                }
            };
        }
        Some(term)
    }
    /// Generates a comparison. Without an observer it contains no memory.
    fn literal(&mut self, procs: &[&'static str], observer: Observer, alone: bool) -> String {
        if procs.len() > 1 && self.chance(1, 12) {
            let (a, b) = (self.process(procs), self.process(procs));
            let sign = self.choose(&["=", "<>", "<", "<=", ">", ">="]);
            self.use_of("order of processes");
            self.use_of(sign);
            return format!("{a} {sign} {b}");
        }
        if self.predicate && !alone && !procs.is_empty() && self.chance(1, 6) {
            self.use_of("predicate call");
            let argument = match observer {
                Observer::Actor(actor) if self.shape.private => actor,
                _ => self.process(procs),
            };
            return format!("holds({argument})");
        }
        if self.chance(1, 60) {
            let constant = self.choose(&["true", "false"]);
            self.use_of(constant);
            return constant.into();
        }
        let visible = |s: &&Symbol| {
            (observer != Observer::None || s.kind != Kind::Weak)
                && (s.arity == 0 || !procs.is_empty())
        };
        let list: Vec<Symbol> = self.symbols.iter().filter(visible).copied().collect();
        if list.is_empty() {
            self.use_of("true");
            return "true".into();
        }
        let s = list[self.random.below(list.len())];
        let left = self.cell(s, procs, observer);
        let Some(right) = self.term(s, procs, observer) else {
            self.use_of("true");
            return "true".into();
        };
        let sign = match s.sort {
            Sort::Int | Sort::Real => self.choose(&["=", "<>", "<", "<=", ">", ">="]),
            Sort::Proc => self.choose(&["=", "=", "<>", "<", ">="]),
            _ => self.choose(&["=", "=", "<>"]),
        };
        self.use_of(sign);
        format!("{left} {sign} {right}")
    }
    fn formula(&mut self, procs: &[&'static str], observer: Observer, depth: usize) -> String {
        if depth == 0 || self.chance(1, 2) {
            return self.literal(procs, observer, false);
        }
        let a = self.formula(procs, observer, depth - 1);
        let b = self.formula(procs, observer, depth - 1);
        let sign = self.choose(&["&&", "||", "not", "=>", "<=>", "if"]);
        self.use_of(sign);
        match sign {
            "not" => format!("not ({a})"),
            "if" => format!("(if {} then ({a}) else ({b}))", self.literal(procs, observer, false)),
            sign => format!("(({a}) {sign} ({b}))"),
        }
    }
    fn transition(&mut self, number: usize) -> String {
        let count = [0, 1, 1, 1, 1, 2, 2, 3][self.random.below(8)];
        let procs: &[&'static str] = &["p", "q", "r"][..count];
        let names = [
            "transition of no process",
            "transition of one process",
            "transition of two processes",
            "transition of three processes",
        ];
        self.use_of(names[count]);
        // The acting process: in brackets, the first one by accesses, or none.
        let marked = count > 0 && self.chance(2, 3);
        let at = if count > 1 && self.chance(1, 4) { 1 } else { 0 };
        let observer = match (marked, count) {
            (true, _) => {
                self.use_of("actor in brackets");
                if at > 0 {
                    self.use_of("actor not first");
                }
                Observer::Actor(procs[at])
            }
            (false, 0) => {
                self.use_of("no actor");
                Observer::None
            }
            (false, _) if self.chance(1, 2) => {
                self.use_of("actor by access");
                Observer::Actor(procs[0])
            }
            (false, _) => {
                self.use_of("no actor");
                Observer::None
            }
        };
        let params: Vec<String> = procs
            .iter()
            .enumerate()
            .map(|(i, p)| if marked && i == at { format!("[{p}]") } else { (*p).to_string() })
            .collect();
        let mut guard: Vec<String> = Vec::new();
        if self.symbols[0].name == "At" && count > 0 {
            let who = match observer {
                Observer::Actor(actor) if self.shape.private => actor,
                _ => self.process(procs),
            };
            guard.push(format!("At[{who}] = {}", self.choose(&["A", "A", "B", "C"])));
        }
        if self.chance(1, 2) {
            guard.push(self.formula(procs, observer, 2));
        }
        if let Observer::Actor(actor) = observer
            && self.symbols.iter().any(|s| s.kind == Kind::Weak)
            && self.chance(1, 6)
        {
            let named = self.chance(1, 2);
            self.use_of(if named { "fence of a process" } else { "fence" });
            guard.push(if named { format!("fence({actor})") } else { "fence()".into() });
        }
        if self.chance(1, 5) {
            let word =
                self.choose(&["forall_other", "forall_other", "exists_other", "forall", "exists"]);
            self.use_of(word);
            let inner: Vec<&'static str> = procs.iter().copied().chain(["o"]).collect();
            guard.push(format!("({word} o. {})", self.formula(&inner, observer, 1)));
        }
        let mut updates: Vec<String> = Vec::new();
        for s in self.symbols.clone() {
            let weak = s.kind == Kind::Weak;
            if s.kind == Kind::Constant
                || weak && observer == Observer::None
                || s.arity > 0 && count == 0
                || !self.chance(1, 2)
            {
                continue;
            }
            updates.push(self.update(s, procs, observer, &mut guard));
        }
        let requires = if guard.is_empty() {
            self.use_of("no guard");
            String::new()
        } else {
            format!("requires {{ {} }} ", guard.join(" && "))
        };
        format!(
            "transition t{number} ({}) {requires}{{ {} }}\n",
            params.join(" "),
            updates.join("; ")
        )
    }
    fn update(
        &mut self,
        s: Symbol,
        procs: &[&'static str],
        observer: Observer,
        guard: &mut Vec<String>,
    ) -> String {
        if s.sort != Sort::Abstract && self.chance(1, 4) {
            return self.cases(s, procs, observer);
        }
        let cell = self.indices(s, procs, observer);
        let any = s.sort == Sort::Abstract
            || !matches!(s.sort, Sort::Int | Sort::Real) && self.chance(1, 10);
        let value = if any {
            self.use_of("assign any");
            self.choose(&[".", "?"]).to_string()
        } else if s.sort == Sort::Int && self.chance(1, 2) {
            // Increments and decrements stay close to 0.
            let own = match observer {
                Observer::Actor(_) => cell.clone(),
                _ if s.kind == Kind::Weak => return format!("{cell} := 0"),
                _ => cell.clone(),
            };
            let (sign, bound) = if self.chance(1, 2) { ("+", "< 2") } else { ("-", "> 0") };
            self.use_of(sign);
            guard.push(format!("{own} {bound}"));
            format!("{own} {sign} 1")
        } else {
            let constant = self.constant(s.sort, procs);
            let other = if matches!(s.sort, Sort::Int | Sort::Real) {
                None
            } else {
                self.term(s, procs, observer)
            };
            let fallback = self.constant(s.sort, procs).unwrap_or_else(|| ".".into());
            if self.chance(1, 2) { constant.or(other) } else { other.or(constant) }
                .unwrap_or(fallback)
        };
        self.use_of("assign");
        match (s.kind, observer) {
            (Kind::Weak, Observer::Actor(actor)) => match self.random.below(6) {
                0 if value != "." && value != "?" => {
                    self.use_of("write call");
                    format!("write({actor}, {cell}, {value})")
                }
                1 => {
                    self.use_of("write at");
                    format!("{actor} @ {cell} := {value}")
                }
                2 => {
                    self.use_of("write in brackets");
                    format!("[{actor}] {cell} := {value}")
                }
                _ => format!("{cell} := {value}"),
            },
            _ => format!("{cell} := {value}"),
        }
    }
    fn cases(&mut self, s: Symbol, procs: &[&'static str], observer: Observer) -> String {
        self.use_of("assign by case");
        let bound: &[&'static str] = &["j", "k"][..s.arity];
        let own = if bound.is_empty() {
            s.name.to_string()
        } else {
            format!("{}[{}]", s.name, bound.join(", "))
        };
        let owner = self.owners(s, observer);
        let inner: Vec<&'static str> = match owner {
            // The case reads and writes cells of the acting process.
            Some(_) => procs.to_vec(),
            None => procs.iter().chain(bound).copied().collect(),
        };
        let mut out = format!("{own} := case");
        for _ in 0..=self.random.below(2) {
            let mut condition = self.formula(&inner, observer, 1);
            if let Some(owner) = owner {
                condition = format!("j = {owner} && ({condition})");
            } else if s.arity > 0 && self.chance(1, 2) {
                condition = format!("j = {} && ({condition})", self.process(procs));
            }
            let value = self.constant(s.sort, procs).unwrap_or_else(|| ".".into());
            let _ = write!(out, " | {condition} : {value}");
        }
        if self.chance(2, 3) {
            self.use_of("default case");
            let keeps = owner.is_some() || self.chance(1, 2);
            let value = if keeps { own } else { self.constant(s.sort, procs).unwrap_or(own) };
            let _ = write!(out, " | _ : {value}");
        }
        out
    }
}
