//! Generator of typed data expressions, driven by the alternatives of the grammar and by the
//! schemes of the built-in operations.
//!
//! [`Maker::expr`] chooses a production that begins or joins an expression (`data_op`,
//! `data_prefix`, `data_primary`, `data_postfix`), then an alternative of it that has the sort that
//! is needed. Arguments of partial operations are chosen within their domain, so that each
//! expression has a value. Constants lie at boundaries: 0, 1, 2, the bound of the counters and its
//! neighbours, 2^31, 2^32, 2^63, 2^64 and their neighbours, negative numbers.

use super::builtins::{Pattern, Scheme, schemes};
use super::grammar::Grammar;
use crate::support::tape::Tape;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::OnceLock;

/// A sort of the vocabulary.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Sort {
    /// `Bool`, a sort of numbers, or a declared one.
    Plain(&'static str),
    /// A container of elements.
    Of(&'static str, Box<Sort>),
    /// A function.
    Function(Vec<Sort>, Box<Sort>),
}

pub const BOOL: Sort = Sort::Plain("Bool");
pub const POS: Sort = Sort::Plain("Pos");
pub const NAT: Sort = Sort::Plain("Nat");
pub const INT: Sort = Sort::Plain("Int");
pub const REAL: Sort = Sort::Plain("Real");
pub const E: Sort = Sort::Plain("E");
pub const D: Sort = Sort::Plain("D");
pub const C: Sort = Sort::Plain("C");
pub const T: Sort = Sort::Plain("T");
pub const ID: Sort = Sort::Plain("Id");

impl Sort {
    /// Returns a container.
    pub fn of(container: &'static str, element: Sort) -> Sort {
        Sort::Of(container, Box::new(element))
    }
    /// Returns a function of one argument.
    pub fn to(self, result: Sort) -> Sort {
        Sort::Function(vec![self], Box::new(result))
    }
    /// As written.
    pub fn text(&self) -> String {
        match self {
            Sort::Plain(name) => name.to_string(),
            Sort::Of(container, element) => format!("{container}({})", element.text()),
            Sort::Function(params, result) => {
                let word = |s: &Sort| {
                    if matches!(s, Sort::Function(..)) {
                        format!("({})", s.text())
                    } else {
                        s.text()
                    }
                };
                format!(
                    "{} -> {}",
                    params.iter().map(word).collect::<Vec<_>>().join(" # "),
                    result.text()
                )
            }
        }
    }
    /// True if it has few elements, so that sums and quantifiers may range over it.
    pub fn is_finite(&self) -> bool {
        match self {
            Sort::Plain(name) => ["Bool", "E", "D", "C"].contains(name),
            _ => {
                *self == E.to(BOOL)
                    || *self == Sort::of("FSet", BOOL)
                    || *self == Sort::of("Set", BOOL)
            }
        }
    }
    /// True if its values contain functions: these are ordered by their place in the text, which
    /// decides what `pick` returns.
    fn contains_functions(&self) -> bool {
        match self {
            Sort::Plain(_) => false,
            Sort::Of(_, element) => element.contains_functions(),
            Sort::Function(..) => true,
        }
    }
    /// True if it is a sort of numbers.
    pub fn is_number(&self) -> bool {
        [POS, NAT, INT, REAL].contains(self)
    }
}

/// Variables in scope.
pub type Vars = Vec<(String, Sort)>;

/// A mapping that was declared.
#[derive(Clone, Debug)]
pub struct Mapping {
    pub name: String,
    pub params: Vec<Sort>,
    pub result: Sort,
}

/// First symbol of an expression of some sort.
#[derive(Clone, Copy, Debug)]
enum Way {
    Scheme(usize),
    Literal,
    Nullary,
    Group,
    Constructor,
    Projection,
    Apply,
    Lambda,
    ApplyLambda,
    Where,
    Widen,
    Quantifier,
    ListLiteral,
    Enumeration,
    Comprehension,
}

/// Returns the grammar of the language.
pub fn grammar() -> &'static Grammar {
    static GRAMMAR: OnceLock<Grammar> = OnceLock::new();
    GRAMMAR.get_or_init(|| {
        let text = std::fs::read_to_string(crate::support::package("src/syntax/mcrl2.pest"))
            .expect("the grammar");
        Grammar::read(&text)
    })
}

/// Returns the schemes of the built-in operations.
fn all_schemes() -> &'static [Scheme] {
    static SCHEMES: OnceLock<Vec<Scheme>> = OnceLock::new();
    SCHEMES.get_or_init(schemes)
}

/// Generator of one case.
pub struct Maker<'t> {
    pub t: &'t mut Tape,
    /// Sections of mappings and equations, in order of declaration.
    pub theory: Vec<String>,
    pub mappings: Vec<Mapping>,
    /// Constants are chosen close to this number.
    pub bound: u64,
    /// True if large constants may occur.
    pub large: bool,
    /// Number of names made.
    pub names: usize,
    /// True if mappings may be declared.
    pub may_declare: bool,
    pub(super) defining: usize,
    /// The sort that the next variable of a scheme stands for.
    forced: Option<Sort>,
    ways: HashMap<Sort, Rc<Vec<(&'static str, Vec<Way>)>>>,
}

/// Declarations of all specifications.
pub const PRELUDE: &str = "sort E = struct e1?is_e1 | e2?is_e2 | e3;
     D = struct d1 | d2(flag: Bool)?is_d2 | d3(of: E, Bool)?is_d3;
     T = struct leaf(Nat)?is_leaf | node(left: T, right: T)?is_node;
     C; Id, Other, Third; L = List(E); H = E -> Bool; Y = (Nat # Bool) -> (E -> Nat);
cons c1, c2: C; c3: Bool -> C;
map id1, id2: Id;
    turn: E -> E; sum_of: List(Nat) -> Nat; twice: (Nat -> Nat) # Nat -> Nat; same: E # E -> Bool; part: D -> E; value: T -> Nat;
    cutl: List(E) -> List(E); cutn: List(Nat) -> List(Nat); cut: FBag(E) -> FBag(E); cut: T -> T; cutf: (E -> Bool) -> E -> Bool; cutg: (E -> Nat) -> E -> Nat;
    none: List(E); none_: FSet(E); none_b: FBag(E); never: E -> Bool; zero: E -> Nat;
var x, y: E; n: Nat; l: List(Nat); k: List(E); b: Bool; s: FBag(E); t, u: T; f: E -> Bool; g: E -> Nat; h: Nat -> Nat;
eqn turn(e1) = e2; turn(e2) = e3; turn(e3) = e1;
    sum_of([]) = 0; sum_of(n |> l) = n + sum_of(l);
    twice(h, n) = h(h(n));
    same(x, x) = true; x != y -> same(x, y) = false;
    part(d1) = e1; part(d2(b)) = if(b, e2, e3); part(d3(x, b)) = x;
    value(leaf(n)) = n; value(node(t, u)) = value(t) + value(u);
    cutl(k) = if(#k < 3, k, []);
    cutn([]) = []; cutn(n |> l) = if(#l < 2, n mod 3 |> cutn(l), []);
    cut(s) = {e1: count(e1, s) mod 2, e2: count(e2, s) mod 3};
    cut(leaf(n)) = leaf(n mod 3); cut(node(t, u)) = if(is_leaf(t) && is_leaf(u), node(cut(t), leaf(0)), leaf(1));
    cutf(f) = (lambda x: E. false)[e1 -> f(e1)][e2 -> f(e2)][e3 -> f(e3)];
    cutg(g) = (lambda x: E. 0)[e1 -> g(e1) mod 3][e2 -> g(e2) mod 2];
    none = []; none_ = {}; none_b = {:}; never = lambda x: E. false; zero(x) = 0;
";

impl<'t> Maker<'t> {
    /// Returns a generator that chooses by a tape.
    pub fn new(t: &'t mut Tape) -> Self {
        let bound = [2, 3, 4, 1][t.below(4)];
        Self {
            t,
            theory: Vec::new(),
            mappings: prelude(),
            bound,
            large: true,
            names: 0,
            may_declare: true,
            defining: 0,
            forced: None,
            ways: HashMap::new(),
        }
    }
    /// Returns a name that is new.
    pub fn name(&mut self, letter: &str) -> String {
        self.names += 1;
        format!("{letter}{}", self.names)
    }
    /// Returns a literal or another simple constant.
    pub fn constant(&mut self, sort: &Sort) -> String {
        let of = |s: &mut Self, texts: &[&str]| s.t.choose(texts).to_string();
        match sort {
            Sort::Plain("Bool") => of(self, &["true", "false"]),
            Sort::Plain("Nat") => self.number(0).to_string(),
            Sort::Plain("Pos") => self.number(1).to_string(),
            Sort::Plain("Int") if self.t.chance(1, 3) => format!("-{}", self.number(1)),
            Sort::Plain("Int") => self.number(0).to_string(),
            Sort::Plain("Real") => match self.t.below(3) {
                0 => self.number(0).to_string(),
                1 => format!("{} / {}", self.number(0), 1 + self.t.below(3)),
                _ => format!("-{} / {}", self.number(1), 1 + self.t.below(3)),
            },
            Sort::Plain("E") => of(self, &["e1", "e2", "e3"]),
            Sort::Plain("D") => {
                of(self, &["d1", "d2(true)", "d2(false)", "d3(e1, true)", "d3(e3, false)"])
            }
            Sort::Plain("C") => of(self, &["c1", "c2", "c3(true)", "c3(false)"]),
            Sort::Plain("Id") => of(self, &["id1", "id2"]),
            Sort::Plain("T") => of(
                self,
                &["leaf(0)", "leaf(1)", "node(leaf(1), leaf(2))", "node(leaf(0), leaf(0))"],
            ),
            Sort::Plain(other) => panic!("no constant of {other}"),
            Sort::Of("List", e) if **e == E => {
                of(self, &["none", "[e1]", "[e2, e1]", "none <| e3"])
            }
            Sort::Of("FSet", e) if **e == E => of(self, &["none_", "{e1}", "{e2, e1}", "{e3, e3}"]),
            Sort::Of(container, e) => {
                let (x, y) = (self.constant(e), self.constant(e));
                match *container {
                    "List" => format!("[{x}, {y}]"),
                    "FSet" | "Set" => format!("{{{x}, {y}}}"),
                    _ => format!("{{{x}: 1, {y}: 2}}"),
                }
            }
            Sort::Function(params, result) => {
                let names: Vec<String> = params.iter().map(|_| self.name("v")).collect();
                let declared: Vec<String> =
                    names.iter().zip(params).map(|(n, s)| format!("{n}: {}", s.text())).collect();
                let value = self.constant(result);
                format!("(lambda {}. {value})", declared.join(", "))
            }
        }
    }
    /// Returns a number at a boundary, not below `least`.
    pub fn number(&mut self, least: u64) -> u128 {
        let b = u128::from(self.bound);
        let small = [0, 1, 2, b, b + 1, b.saturating_sub(1), 3, 0, 1, 2];
        let large = [
            1 << 31,
            (1 << 31) - 1,
            1 << 32,
            (1 << 32) - 1,
            (1 << 32) + 1,
            1 << 63,
            (1 << 63) - 1,
            1 << 64,
            (1 << 64) - 1,
            1 << 53,
        ];
        let found = if self.large && self.t.chance(1, 12) {
            *self.t.choose(&large)
        } else {
            *self.t.choose(&small)
        };
        found.max(u128::from(least))
    }
    /// Returns the first symbols of expressions of a sort, by production.
    fn productions(&mut self, sort: &Sort) -> Rc<Vec<(&'static str, Vec<Way>)>> {
        if let Some(known) = self.ways.get(sort) {
            return known.clone();
        }
        let of = |name: &str, arity: usize| -> Vec<Way> {
            let fits = |s: &Scheme| {
                s.name == name && s.params.len() == arity && binding(&s.result, sort).is_some()
            };
            all_schemes()
                .iter()
                .enumerate()
                .filter(|s| fits(s.1))
                .map(|s| Way::Scheme(s.0))
                .collect()
        };
        let mut found = Vec::new();
        for production in ["data_op", "data_prefix", "data_primary", "data_postfix"] {
            let mut ways = Vec::new();
            for alternative in grammar().alternatives(production) {
                ways.extend(match alternative.as_str() {
                    "not" | "minus" | "size" => of(&grammar().literal(&alternative), 1),
                    "binder" => match sort {
                        Sort::Function(..) => vec![Way::Lambda],
                        Sort::Plain("Bool") => vec![Way::Quantifier; 2],
                        _ => Vec::new(),
                    },
                    "ident" => vec![Way::Nullary],
                    "number" if sort.is_number() => vec![Way::Literal, Way::Widen],
                    "truth" if *sort == BOOL => vec![Way::Literal],
                    "data_group" => vec![Way::Group],
                    "list" if matches!(sort, Sort::Of("List", _)) => vec![Way::ListLiteral],
                    "braces" if matches!(sort, Sort::Of("Set" | "Bag" | "FSet" | "FBag", _)) => {
                        let finite = matches!(sort, Sort::Of("FSet" | "FBag", _));
                        let mut ways = vec![Way::Enumeration, Way::Literal];
                        ways.extend((!finite).then_some(Way::Comprehension));
                        ways.extend((!finite).then_some(Way::Widen));
                        ways
                    }
                    "number" | "truth" | "list" | "braces" => Vec::new(),
                    "args" => {
                        let words = all_schemes()
                            .iter()
                            .enumerate()
                            .filter(|(_, s)| s.name.starts_with(|c: char| c.is_ascii_alphabetic()));
                        let words = words.filter(|(_, s)| {
                            !["in", "div", "mod"].contains(&s.name.as_str()) && !s.params.is_empty()
                        });
                        let fitting = words
                            .filter(|(_, s)| binding(&s.result, sort).is_some())
                            .map(|(i, _)| Way::Scheme(i));
                        fitting
                            .chain([
                                Way::Apply,
                                Way::Apply,
                                Way::ApplyLambda,
                                Way::Constructor,
                                Way::Projection,
                            ])
                            .collect()
                    }
                    "update" => of("@func_update", 3),
                    "whr" => vec![Way::Where],
                    op if op.starts_with("op_") => of(&grammar().literal(op), 2),
                    other => panic!(
                        "`{production}` has the alternative `{other}`, which no generator knows"
                    ),
                });
            }
            if !ways.is_empty() {
                found.push((production, ways));
            }
        }
        let found = Rc::new(found);
        self.ways.insert(sort.clone(), found.clone());
        found
    }
    /// Returns an expression of a sort, over variables.
    pub fn expr(&mut self, sort: &Sort, vars: &Vars, depth: usize) -> String {
        let own: Vec<&String> = vars.iter().filter(|v| v.1 == *sort).map(|v| &v.0).collect();
        if !own.is_empty() && self.t.chance(2, if depth == 0 { 3 } else { 5 }) {
            return self.t.choose(&own).to_string();
        }
        if depth == 0 {
            return if self.t.chance(1, 4) { self.nullary(sort) } else { self.constant(sort) };
        }
        let ways = self.productions(sort);
        let at = self.t.below(ways.len());
        let way = *self.t.choose(&ways[at].1);
        self.by(way, sort, vars, depth)
    }
    fn by(&mut self, way: Way, sort: &Sort, vars: &Vars, depth: usize) -> String {
        let d = depth - 1;
        match way {
            Way::Scheme(i) => self.scheme(&all_schemes()[i], sort, vars, d),
            Way::Literal => self.constant(sort),
            Way::Nullary => self.nullary(sort),
            Way::Group => format!("({})", self.expr(sort, vars, d)),
            Way::Constructor => self.constructor(sort, vars, d),
            Way::Projection => self.projection(sort, vars, d),
            Way::Apply => self.apply(sort, vars, d),
            Way::Lambda => self.lambda(sort, vars, d),
            Way::ApplyLambda => {
                let params: Vec<Sort> = (0..1 + self.t.below(2)).map(|_| self.plain()).collect();
                let function =
                    self.lambda(&Sort::Function(params.clone(), Box::new(sort.clone())), vars, d);
                let args: Vec<String> = params.iter().map(|s| self.expr(s, vars, d)).collect();
                format!("{function}({})", args.join(", "))
            }
            Way::Where => {
                let mut inner = vars.clone();
                let mut assigned = Vec::new();
                for _ in 0..1 + self.t.below(3) {
                    let (name, of) = (self.name("z"), self.plain());
                    assigned.push(format!("{name} = {}", self.expr(&of, vars, d)));
                    inner.push((name, of));
                }
                format!("({} whr {} end)", self.expr(sort, &inner, d), assigned.join(", "))
            }
            Way::Widen => match sort {
                Sort::Of("Set", e) => self.expr(&Sort::Of("FSet", e.clone()), vars, d),
                Sort::Of("Bag", e) => self.expr(&Sort::Of("FBag", e.clone()), vars, d),
                Sort::Plain("Nat") => self.expr(&POS, vars, d),
                Sort::Plain("Int") => self.expr(&NAT, vars, d),
                Sort::Plain("Real") => self.expr(&INT, vars, d),
                _ => self.expr(sort, vars, d),
            },
            Way::Quantifier => self.quantifier(vars, d),
            Way::ListLiteral => {
                let Sort::Of(_, e) = sort else { unreachable!("a list") };
                let elements: Vec<String> =
                    (0..1 + self.t.below(2)).map(|_| self.expr(e, vars, d)).collect();
                format!("[{}]", elements.join(", "))
            }
            Way::Enumeration => {
                let Sort::Of(container, e) = sort else { unreachable!("a container") };
                let bag = container.ends_with("Bag");
                let element = |s: &mut Self| {
                    let x = s.expr(e, vars, d);
                    if bag { format!("{x}: {}", s.small(vars)) } else { x }
                };
                let elements: Vec<String> =
                    (0..1 + self.t.below(3)).map(|_| element(self)).collect();
                format!("{{{}}}", elements.join(", "))
            }
            Way::Comprehension => {
                let Sort::Of(container, e) = sort else { unreachable!("a container") };
                let (x, mut inner) = (self.name("x"), vars.clone());
                inner.push((x.clone(), (**e).clone()));
                let body = if *container == "Bag" {
                    format!("{} mod 3", self.expr(&NAT, &inner, d))
                } else {
                    self.expr(&BOOL, &inner, d)
                };
                format!("{{{x}: {} | {body}}}", e.text())
            }
        }
    }
    /// Returns a number below 4.
    pub fn small(&mut self, vars: &Vars) -> String {
        let e = self.expr(&NAT, vars, 1);
        match self.t.below(3) {
            0 => format!("({e}) mod 4"),
            1 => format!("min({e}, 3)"),
            _ => ["0", "1", "2", "3"][self.t.below(4)].into(),
        }
    }
    /// Returns a sort of parameters and variables of expressions.
    pub fn plain(&mut self) -> Sort {
        self.t
            .choose(&[
                E,
                NAT,
                BOOL,
                POS,
                INT,
                D,
                REAL,
                C,
                Sort::of("List", E),
                Sort::of("FSet", E),
                T,
                E.to(BOOL),
                E.to(NAT),
            ])
            .clone()
    }
    /// Returns a sort for a variable of a scheme.
    fn element(&mut self, scheme: &Scheme) -> Sort {
        if let Some(forced) = self.forced.take() {
            return forced;
        }
        let contained = scheme.params.iter().any(|p| matches!(p, Pattern::Container(..)));
        if contained {
            return self.t.choose(&[E, BOOL, NAT, D, C, INT]).clone();
        }
        let any = [
            E,
            BOOL,
            NAT,
            POS,
            INT,
            REAL,
            D,
            T,
            C,
            ID,
            Sort::of("List", E),
            Sort::of("FSet", E),
            Sort::of("Set", E),
            Sort::of("FBag", E),
            Sort::of("Bag", E),
            E.to(BOOL),
            Sort::of("List", NAT),
        ];
        let ordered =
            ["Less", "LessEqual", "Greater", "GreaterEqual"].contains(&scheme.builtin.as_str());
        loop {
            let sort = self.t.choose(&any).clone();
            if !(ordered && matches!(sort, Sort::Function(..) | Sort::Plain("Id"))) {
                return sort;
            }
        }
    }
    /// Returns an application of a built-in operation.
    fn scheme(&mut self, scheme: &Scheme, sort: &Sort, vars: &Vars, d: usize) -> String {
        let [first, second] = binding(&scheme.result, sort).expect("a scheme of the sort");
        let variables = [
            first.unwrap_or_else(|| self.element(scheme)),
            second.unwrap_or_else(|| self.element(scheme)),
        ];
        let variables = if scheme.builtin == "Update" { update_of(sort) } else { variables };
        let sorts: Vec<Sort> = scheme.params.iter().map(|p| at(p, &variables)).collect();
        // Sets and bags that may be infinite have elements of a finite sort, so that their
        // operations are decided.
        let infinite = |s: &Sort| matches!(s, Sort::Of("Set" | "Bag", e) if !e.is_finite());
        if sorts.iter().any(infinite) && scheme.builtin != "In" {
            return self.constant(sort);
        }
        let mut args: Vec<String> = sorts.iter().map(|s| self.expr(s, vars, d)).collect();
        let word = scheme.builtin.as_str();
        match word {
            "IntToPos" | "NatToPos" | "RealToPos" => {
                args[0] = if self.t.chance(1, 2) {
                    self.expr(&POS, vars, d)
                } else {
                    format!("{} + 1", self.expr(&NAT, vars, d))
                }
            }
            "IntToNat" | "RealToNat" => args[0] = self.expr(&NAT, vars, d),
            "RealToInt" => args[0] = self.expr(&INT, vars, d),
            "Head" | "Tail" | "RHead" | "RTail" => {
                args[0] = format!("{} |> {}", self.expr(&variables[0], vars, d), args[0])
            }
            "At" => {
                let x = self.expr(&variables[0], vars, d);
                args = match self.t.below(2) {
                    0 => vec![format!("({x} |> {})", args[0]), "0".into()],
                    _ => {
                        return format!(
                            "if({1} < #{0}, {0} . {1}, {x})",
                            in_brackets(&args[0]),
                            in_brackets(&args[1])
                        );
                    }
                };
            }
            "Pick" => {
                let x = self.expr(&variables[0], vars, d);
                let one = match sorts[0] {
                    Sort::Of("FSet", _) => format!("{{{x}}}"),
                    _ => format!("{{{x}: 1}}"),
                };
                args[0] = match variables[0].contains_functions() {
                    true => one,
                    false => format!("{one} + {}", args[0]),
                };
            }
            "Exp" => {
                args[0] = match sorts[0] {
                    Sort::Plain("Real") => {
                        format!("({} mod 3 + 1) / 2", in_brackets(&self.expr(&NAT, vars, d)))
                    }
                    Sort::Plain("Int") => format!("{} mod 5 - 2", in_brackets(&args[0])),
                    _ => format!("{} mod 5", in_brackets(&args[0])),
                };
                if sorts[0] == POS {
                    args[0] = format!("{} + 1", args[0]);
                }
                args[1] = if sorts[1] == INT {
                    format!("{} mod 5 - 2", in_brackets(&args[1]))
                } else {
                    format!("{} mod 4", in_brackets(&args[1]))
                };
            }
            "Divide" if sorts[1] != POS => {
                args[1] = format!("({0} * {0} + 1)", in_brackets(&args[1]))
            }
            "Sqrt" => args[0] = format!("{} mod 100", in_brackets(&args[0])),
            _ => {}
        }
        match (scheme.name.as_str(), &args[..]) {
            (_, []) => scheme.name.clone(),
            ("@func_update", [f, x, y]) => format!("{f}[{x} -> {y}]"),
            (name, [a]) if !name.starts_with(|c: char| c.is_ascii_alphabetic()) => {
                format!("({name}{})", in_brackets(a))
            }
            (name, [a, b])
                if !name.starts_with(|c: char| c.is_ascii_alphabetic())
                    || ["in", "div", "mod"].contains(&name) =>
            {
                format!("({} {name} {})", in_brackets(a), in_brackets(b))
            }
            (name, args) => format!("{name}({})", args.join(", ")),
        }
    }
    fn constructor(&mut self, sort: &Sort, vars: &Vars, d: usize) -> String {
        match sort {
            Sort::Plain("D") if self.t.chance(1, 2) => format!("d2({})", self.expr(&BOOL, vars, d)),
            Sort::Plain("D") => {
                format!("d3({}, {})", self.expr(&E, vars, d), self.expr(&BOOL, vars, d))
            }
            Sort::Plain("C") => format!("c3({})", self.expr(&BOOL, vars, d)),
            Sort::Plain("T") if self.t.chance(1, 2) => {
                format!("leaf({})", self.expr(&NAT, vars, d))
            }
            Sort::Plain("T") => {
                format!("node({}, {})", self.expr(&T, vars, d), self.expr(&T, vars, d))
            }
            Sort::Plain("Bool") => match self.t.below(4) {
                0 => format!("is_e{}({})", 1 + self.t.below(2), self.expr(&E, vars, d)),
                1 => format!("is_d{}({})", 2 + self.t.below(2), self.expr(&D, vars, d)),
                2 => format!("is_leaf({})", self.expr(&T, vars, d)),
                _ => format!("is_node({})", self.expr(&T, vars, d)),
            },
            _ => self.expr(sort, vars, d),
        }
    }
    fn projection(&mut self, sort: &Sort, vars: &Vars, d: usize) -> String {
        match sort {
            Sort::Plain("Bool") => format!("flag(d2({}))", self.expr(&BOOL, vars, d)),
            Sort::Plain("E") if self.t.chance(1, 2) => {
                format!("of(d3({}, false))", self.expr(&E, vars, d))
            }
            Sort::Plain("E") => {
                let x = self.expr(&D, vars, d);
                format!("if(is_d3({x}), of({x}), {})", self.expr(&E, vars, d))
            }
            Sort::Plain("T") => {
                let x = self.expr(&T, vars, d);
                format!("if(is_node({x}), {}({x}), {x})", self.t.choose(&["left", "right"]))
            }
            _ => self.expr(sort, vars, d),
        }
    }
    fn lambda(&mut self, sort: &Sort, vars: &Vars, d: usize) -> String {
        let Sort::Function(params, result) = sort else { unreachable!("a function") };
        let mut inner = vars.clone();
        let names: Vec<String> = params.iter().map(|_| self.name("v")).collect();
        inner.extend(names.iter().cloned().zip(params.iter().cloned()));
        // Variables of one sort share a declaration.
        let declared = match &names[..] {
            [x, y] if params[0] == params[1] => format!("{x}, {y}: {}", params[0].text()),
            _ => names
                .iter()
                .zip(params)
                .map(|(n, s)| format!("{n}: {}", s.text()))
                .collect::<Vec<_>>()
                .join(", "),
        };
        format!("(lambda {declared}. {})", self.expr(result, &inner, d))
    }
    /// Returns a quantifier over a finite sort, or over numbers below a bound.
    fn quantifier(&mut self, vars: &Vars, d: usize) -> String {
        let word = *self.t.choose(&["exists", "forall"]);
        let (x, mut inner) = (self.name("q"), vars.clone());
        let sort = self.t.choose(&[E, BOOL, NAT, D, INT, POS, C]).clone();
        inner.push((x.clone(), sort.clone()));
        let bound = match &sort {
            Sort::Plain("Nat" | "Pos") => Some(format!("{x} <= {}", self.small(vars))),
            Sort::Plain("Int") => Some(format!("-2 < {x} && {x} < 2")),
            _ => None,
        };
        if bound.is_none() && self.t.chance(1, 4) {
            let y = self.name("q");
            inner.push((y.clone(), BOOL));
            return format!(
                "({word} {x}: {}, {y}: Bool. {})",
                sort.text(),
                self.expr(&BOOL, &inner, d)
            );
        }
        let body = self.expr(&BOOL, &inner, d);
        match (bound, word) {
            (None, _) => format!("({word} {x}: {}. {body})", sort.text()),
            (Some(b), "exists") => format!("(exists {x}: {}. {b} && {body})", sort.text()),
            (Some(b), _) => format!("(forall {x}: {}. {b} => {body})", sort.text()),
        }
    }
}

/// Returns a specification that applies each built-in operation, those on any sort at each kind of
/// sort.
pub fn operations(t: &mut Tape) -> String {
    let mut m = Maker::new(t);
    m.may_declare = false;
    let kinds = [
        BOOL,
        POS,
        NAT,
        INT,
        REAL,
        E,
        D,
        T,
        ID,
        Sort::of("List", E),
        Sort::of("FSet", E),
        Sort::of("Set", E),
        Sort::of("FBag", E),
        Sort::of("Bag", E),
        E.to(BOOL),
        E.to(NAT),
    ];
    // Without a variable, sets and bags in braces are finite ones.
    let vars: Vars = vec![("vs".into(), Sort::of("Set", E)), ("vb".into(), Sort::of("Bag", E))];
    let mut text = PRELUDE.to_string();
    for scheme in all_schemes() {
        let free = scheme.params.contains(&Pattern::Var(0))
            && !scheme.params.iter().any(|p| matches!(p, Pattern::Container(..)));
        for kind in if free { &kinds[..] } else { &[E][..] } {
            let ordered =
                ["Less", "LessEqual", "Greater", "GreaterEqual"].contains(&scheme.builtin.as_str());
            if ordered && matches!(kind, Sort::Function(..) | Sort::Plain("Id"))
                || scheme.builtin == "Update"
            {
                continue;
            }
            let sort = at(&scheme.result, &[kind.clone(), kind.clone()]);
            m.forced = Some(kind.clone());
            let value = m.scheme(scheme, &sort, &vars, 0);
            m.forced = None;
            let name = m.name("op");
            let result = if matches!(sort, Sort::Function(..)) {
                format!("({})", sort.text())
            } else {
                sort.text()
            };
            text += &format!(
                "map {name}: Set(E) # Bag(E) -> {result};\nvar vs: Set(E); vb: Bag(E);\neqn {name}(vs, vb) = {value};\n"
            );
        }
    }
    text + "act a;\ninit a . delta;\n"
}

/// With brackets unless it is a word.
pub fn in_brackets(text: &str) -> String {
    let simple = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        || text.starts_with('(') && closes_at_end(text);
    if simple { text.to_string() } else { format!("({text})") }
}

/// True if the last letter closes the first bracket.
fn closes_at_end(text: &str) -> bool {
    let mut depth = 0;
    for (i, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return i + c.len_utf8() == text.len();
        }
    }
    false
}

/// Domain and range of a function of one argument.
fn update_of(sort: &Sort) -> [Sort; 2] {
    match sort {
        Sort::Function(params, result) => [params[0].clone(), (**result).clone()],
        _ => unreachable!("a function"),
    }
}

/// Returns the variables of a pattern that make it a sort.
fn binding(pattern: &Pattern, sort: &Sort) -> Option<[Option<Sort>; 2]> {
    let mut found = [None, None];
    match (pattern, sort) {
        (Pattern::Basic(name), Sort::Plain(word)) if name == word => {}
        (Pattern::Var(v), _) => found[*v] = Some(sort.clone()),
        (Pattern::Container(name, v), Sort::Of(word, e)) if name == word => {
            found[*v] = Some((**e).clone())
        }
        (Pattern::Function(v, w), Sort::Function(params, result)) if params.len() == 1 => {
            found[*v] = Some(params[0].clone());
            found[*w] = Some((**result).clone());
        }
        _ => return None,
    }
    Some(found)
}

fn at(pattern: &Pattern, variables: &[Sort; 2]) -> Sort {
    match pattern {
        Pattern::Basic(name) => Sort::Plain(name),
        Pattern::Var(v) => variables[*v].clone(),
        Pattern::Container(name, v) => Sort::Of(name, Box::new(variables[*v].clone())),
        Pattern::Function(v, w) => variables[*v].clone().to(variables[*w].clone()),
    }
}

/// Returns the mappings of the prelude that any expression may apply.
fn prelude() -> Vec<Mapping> {
    let of =
        |name: &str, params: Vec<Sort>, result: Sort| Mapping { name: name.into(), params, result };
    vec![
        of("turn", vec![E], E),
        of("sum_of", vec![Sort::of("List", NAT)], NAT),
        of("twice", vec![NAT.to(NAT), NAT], NAT),
        of("same", vec![E, E], BOOL),
        of("part", vec![D], E),
        of("value", vec![T], NAT),
        of("cutl", vec![Sort::of("List", E)], Sort::of("List", E)),
        of("cutf", vec![E.to(BOOL)], E.to(BOOL)),
        of("zero", vec![E], NAT),
        of("never", vec![E], BOOL),
    ]
}
