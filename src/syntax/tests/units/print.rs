//! Round trips of printer and parser, on random trees from printed seeds.

use mu_base::random::Random;
use mu_base::{SourceId, Span};
use mu_syntax::ast::*;
use mu_syntax::print::*;
use mu_syntax::{parse_data, parse_formula, parse_process, parse_sort, parse_specification};

/// Generator of trees that the parser can produce.
struct Trees {
    random: Random,
}

fn node<K>(kind: K) -> Node<K> {
    Node::new(kind, Span::default())
}

impl Trees {
    fn new(seed: u64) -> Self {
        Self { random: Random::new(seed) }
    }
    fn ident(&mut self) -> Ident {
        node(
            (*self.random.choose(&["a", "b", "c'", "X", "in_", "_y", "sumx", "tau1", "f2"]))
                .to_owned(),
        )
    }
    fn some<T>(
        &mut self,
        least: usize,
        most: usize,
        mut make: impl FnMut(&mut Self) -> T,
    ) -> Vec<T> {
        let n = least + self.random.below(most - least + 1);
        (0..n).map(|_| make(self)).collect()
    }
    fn sort(&mut self, depth: usize) -> Sort {
        let n = if depth == 0 { 6 } else { 13 };
        let d = depth.saturating_sub(1);
        node(match self.random.below(n) {
            0 => SortKind::Bool,
            1 => SortKind::Pos,
            2 => SortKind::Nat,
            3 => SortKind::Int,
            4 => SortKind::Real,
            5 => SortKind::Name("S".to_owned()),
            6 => SortKind::List(Box::new(self.sort(d))),
            7 => SortKind::Set(Box::new(self.sort(d))),
            8 => SortKind::Bag(Box::new(self.sort(d))),
            9 => SortKind::FSet(Box::new(self.sort(d))),
            10 => SortKind::FBag(Box::new(self.sort(d))),
            11 => SortKind::Struct(self.some(1, 3, |t| StructConstructor {
                name: t.ident(),
                args: t.some(0, 2, |t| (t.random.chance(1, 2).then(|| t.ident()), t.sort(d))),
                recogniser: t.random.chance(1, 3).then(|| t.ident()),
            })),
            _ => SortKind::Function(self.some(1, 3, |t| t.sort(d)), Box::new(self.sort(d))),
        })
    }
    fn vars(&mut self) -> Vec<VarDecl> {
        self.some(1, 3, |t| VarDecl { name: t.ident(), sort: t.sort(1) })
    }
    fn binary(&mut self) -> BinaryOp {
        use BinaryOp as B;
        let all = [
            B::Implies,
            B::Or,
            B::And,
            B::Equal,
            B::NotEqual,
            B::Less,
            B::LessEqual,
            B::Greater,
            B::GreaterEqual,
            B::In,
            B::Cons,
            B::Snoc,
            B::Concat,
            B::Add,
            B::Subtract,
            B::Divide,
            B::Div,
            B::Mod,
            B::Multiply,
            B::At,
        ];
        *self.random.choose(&all)
    }
    fn data(&mut self, depth: usize) -> Data {
        let n = if depth == 0 { 3 } else { 24 };
        let d = depth.saturating_sub(1);
        node(match self.random.below(n) {
            0 => DataKind::Name(self.ident().kind),
            1 => DataKind::Number(self.random.below(1000).to_string()),
            2 => DataKind::Name("true".to_owned()),
            3 => DataKind::List(self.some(0, 3, |t| t.data(d))),
            4 => DataKind::Set(self.some(0, 3, |t| t.data(d))),
            5 => DataKind::Bag(self.some(0, 3, |t| (t.data(d), t.data(d)))),
            6 => DataKind::Comprehension(
                Box::new(VarDecl { name: self.ident(), sort: self.sort(2) }),
                Box::new(self.data(d)),
            ),
            7 | 8 => DataKind::Apply(Box::new(self.data(d)), self.some(1, 3, |t| t.data(d))),
            9 => DataKind::Update(
                Box::new(self.data(d)),
                Box::new(self.data(d)),
                Box::new(self.data(d)),
            ),
            10..=12 => {
                let op = *self.random.choose(&[UnaryOp::Not, UnaryOp::Minus, UnaryOp::Size]);
                DataKind::Unary(op, Box::new(self.data(d)))
            }
            13 => DataKind::Lambda(self.vars(), Box::new(self.data(d))),
            14 => DataKind::Forall(self.vars(), Box::new(self.data(d))),
            15 => DataKind::Exists(self.vars(), Box::new(self.data(d))),
            16 => {
                DataKind::Where(Box::new(self.data(d)), self.some(1, 2, |t| (t.ident(), t.data(d))))
            }
            _ => DataKind::Binary(self.binary(), Box::new(self.data(d)), Box::new(self.data(d))),
        })
    }
    fn action_names(&mut self) -> ActionNames {
        node(self.some(1, 3, Self::ident))
    }
    fn process(&mut self, depth: usize) -> Process {
        let n = if depth == 0 { 5 } else { 29 };
        let d = depth.saturating_sub(1);
        let sub = |t: &mut Self| Box::new(t.process(d));
        node(match self.random.below(n) {
            0 => ProcessKind::Delta,
            1 => ProcessKind::Tau,
            2 => ProcessKind::Call {
                name: self.ident(),
                args: Vec::new(),
                parens: self.random.chance(1, 2),
            },
            3 => ProcessKind::Call {
                name: self.ident(),
                args: self.some(1, 2, |t| t.data(2)),
                parens: true,
            },
            4 => ProcessKind::CallAssign(self.ident(), self.some(1, 2, |t| (t.ident(), t.data(2)))),
            5..=7 => ProcessKind::Choice(sub(self), sub(self)),
            8 | 9 => ProcessKind::Seq(sub(self), sub(self)),
            10 => ProcessKind::Parallel(sub(self), sub(self)),
            11 => ProcessKind::LeftMerge(sub(self), sub(self)),
            12 => ProcessKind::Sync(sub(self), sub(self)),
            13 => ProcessKind::BoundedInit(sub(self), sub(self)),
            14 => ProcessKind::At(sub(self), Box::new(self.data(2))),
            15..=17 => ProcessKind::If(Box::new(self.data(2)), sub(self), None),
            18..=20 => ProcessKind::If(Box::new(self.data(2)), sub(self), Some(sub(self))),
            21 | 22 => ProcessKind::Sum(self.vars(), sub(self)),
            23 => ProcessKind::Dist(self.vars(), Box::new(self.data(2)), sub(self)),
            24 => ProcessKind::Block(self.some(0, 3, Self::ident), sub(self)),
            25 => ProcessKind::Hide(self.some(0, 3, Self::ident), sub(self)),
            26 => ProcessKind::Allow(self.some(0, 3, Self::action_names), sub(self)),
            27 => ProcessKind::Rename(self.some(0, 3, |t| (t.ident(), t.ident())), sub(self)),
            _ => {
                let communications = self
                    .some(0, 3, |t| (t.action_names(), t.random.chance(3, 4).then(|| t.ident())));
                ProcessKind::Comm(communications, sub(self))
            }
        })
    }
    fn action(&mut self, depth: usize) -> ActionFormula {
        let n = if depth == 0 { 5 } else { 14 };
        let d = depth.saturating_sub(1);
        let sub = |t: &mut Self| Box::new(t.action(d));
        node(match self.random.below(n) {
            0 => ActionFormulaKind::True,
            1 => ActionFormulaKind::False,
            2 => ActionFormulaKind::Val(Box::new(self.data(2))),
            3 | 4 => ActionFormulaKind::MultiAction(
                self.some(0, 2, |t| (t.ident(), t.some(0, 2, |t| t.data(1)))),
            ),
            5 | 6 => ActionFormulaKind::Not(sub(self)),
            7..=10 => {
                let op = *self.random.choose(&[StateOp::Implies, StateOp::Or, StateOp::And]);
                ActionFormulaKind::Binary(op, sub(self), sub(self))
            }
            11 | 12 => {
                let quantifier = *self.random.choose(&[Quantifier::Forall, Quantifier::Exists]);
                ActionFormulaKind::Quantified(quantifier, self.vars(), sub(self))
            }
            _ => ActionFormulaKind::At(sub(self), Box::new(self.data(2))),
        })
    }
    fn regular(&mut self, depth: usize) -> RegularFormula {
        let n = if depth == 0 { 3 } else { 9 };
        let d = depth.saturating_sub(1);
        let sub = |t: &mut Self| Box::new(t.regular(d));
        node(match self.random.below(n) {
            0..3 => RegularKind::Action(Box::new(self.action(2))),
            3 | 4 => RegularKind::Seq(sub(self), sub(self)),
            5 | 6 => RegularKind::Alt(sub(self), sub(self)),
            7 => RegularKind::Star(sub(self)),
            _ => RegularKind::Plus(sub(self)),
        })
    }
    fn state(&mut self, depth: usize) -> StateFormula {
        let n = if depth == 0 { 7 } else { 25 };
        let d = depth.saturating_sub(1);
        let sub = |t: &mut Self| Box::new(t.state(d));
        node(match self.random.below(n) {
            0 => StateFormulaKind::True,
            1 => StateFormulaKind::False,
            2 => StateFormulaKind::Val(Box::new(self.data(2))),
            3 => StateFormulaKind::Var(self.ident(), Vec::new()),
            4 => StateFormulaKind::Var(self.ident(), self.some(1, 2, |t| t.data(1))),
            5 => StateFormulaKind::Delay(self.random.chance(1, 2).then(|| Box::new(self.data(1)))),
            6 => StateFormulaKind::Yaled(self.random.chance(1, 2).then(|| Box::new(self.data(1)))),
            7 | 8 => StateFormulaKind::Not(sub(self)),
            9 => StateFormulaKind::Minus(sub(self)),
            10..=14 => {
                let op = *self.random.choose(&[
                    StateOp::Implies,
                    StateOp::Or,
                    StateOp::And,
                    StateOp::Add,
                    StateOp::Multiply,
                ]);
                StateFormulaKind::Binary(op, sub(self), sub(self))
            }
            15..=17 => {
                use Quantifier as Q;
                let quantifier =
                    *self.random.choose(&[Q::Forall, Q::Exists, Q::Infimum, Q::Supremum, Q::Sum]);
                StateFormulaKind::Quantified(quantifier, self.vars(), sub(self))
            }
            18 | 19 => StateFormulaKind::Must(Box::new(self.regular(2)), sub(self)),
            20 | 21 => StateFormulaKind::May(Box::new(self.regular(2)), sub(self)),
            _ => StateFormulaKind::Fix {
                least: self.random.chance(1, 2),
                name: self.ident(),
                params: self
                    .some(0, 2, |t| (VarDecl { name: t.ident(), sort: t.sort(1) }, t.data(2))),
                body: sub(self),
            },
        })
    }
    fn section(&mut self, with_processes: bool) -> Section {
        match self.random.below(if with_processes { 7 } else { 6 }) {
            0 => Section::Sorts(
                self.some(1, 3, |t| (t.ident(), t.random.chance(1, 2).then(|| t.sort(3)))),
            ),
            1 => Section::Constructors(self.some(1, 3, |t| (t.ident(), t.sort(3)))),
            2 => Section::Mappings(self.some(1, 3, |t| (t.ident(), t.sort(3)))),
            3 => Section::Globals(self.vars()),
            4 => {
                let vars = if self.random.chance(1, 3) { Vec::new() } else { self.vars() };
                let equations = self.some(1, 3, |t| Equation {
                    condition: t.random.chance(1, 2).then(|| t.data(3)),
                    lhs: t.data(3),
                    rhs: t.data(3),
                    span: Span::default(),
                });
                Section::Equations(vars, equations)
            }
            5 => Section::Actions(self.some(1, 3, |t| (t.ident(), t.some(0, 2, |t| t.sort(2))))),
            _ => Section::Processes(self.some(1, 3, |t| ProcessEquation {
                name: t.ident(),
                params: if t.random.chance(1, 2) { t.vars() } else { Vec::new() },
                body: t.process(4),
            })),
        }
    }
}

const SEED: u64 = 0x5eed_0001;
const SOURCE: SourceId = SourceId::FIRST;

/// Prints and parses `count` trees; prints the seed of the first difference.
fn identity<T: PartialEq + std::fmt::Debug, E: std::fmt::Debug>(
    count: u64,
    make: impl Fn(&mut Trees) -> T,
    print: impl Fn(&T) -> String,
    parse: impl Fn(&str) -> Result<T, E>,
) {
    for seed in SEED..SEED + count {
        let tree = make(&mut Trees::new(seed));
        let text = print(&tree);
        match parse(&text) {
            Ok(again) if again == tree => {}
            Ok(again) => panic!("seed {seed:#x}: {text}\nreads as {}", print(&again)),
            Err(e) => panic!("seed {seed:#x}: {text}\nis refused: {e:?}"),
        }
    }
}

#[test]
fn sorts() {
    identity(500, |t| t.sort(4), sort, |s| parse_sort(SOURCE, s));
}

#[test]
fn data_expressions() {
    identity(3000, |t| t.data(4), data, |s| parse_data(SOURCE, s));
}

#[test]
fn processes() {
    identity(3000, |t| t.process(5), process, |s| parse_process(SOURCE, s));
}

#[test]
fn specifications() {
    let make = |t: &mut Trees| {
        let mut sections = t.some(0, 6, |t| t.section(true));
        sections.push(Section::Init(t.process(3)));
        Specification { sections, ..Default::default() }
    };
    identity(300, make, specification, |s| parse_specification(SOURCE, s));
}

#[test]
fn formulas() {
    let make = |t: &mut Trees| FormulaFile {
        sections: t.some(0, 2, |t| t.section(false)),
        formula: t.state(5),
    };
    identity(3000, make, formula, |s| parse_formula(SOURCE, s));
}

/// Text that is printed as it was written.
#[test]
fn layout() {
    for text in [
        "a + b * c",
        "(a + b) * c",
        "a - (b - c)",
        "(a && forall x: S. b) || c",
        "forall x, y: S, z: T. p => q",
        "f(a)(b)[c -> d]",
    ] {
        assert_eq!(parse_data(SOURCE, text).map(|t| data(&t)).as_deref(), Ok(text));
    }
    for text in [
        "a . b + c",
        "(a + b) . c",
        "c -> p <> q + r",
        "x -> (y -> p) <> q",
        "a|b . sum n: Nat. (n < 3) -> P(n)",
        "P(x = 1, y = [])",
    ] {
        assert_eq!(parse_process(SOURCE, text).map(|t| process(&t)).as_deref(), Ok(text));
    }
    for text in [
        "nu X. [true]X && <true>true\n",
        "[true* . a] forall d: D. (val(d == e) => X(d))\n",
        "([a] forall x: S. p) => q\n",
        "[(a || b) . c+ + tau]false\n",
        "mu X(n: Nat = 0). <a(n) || exists m: Nat. b(m)>X(n + 1)\n",
    ] {
        assert_eq!(parse_formula(SOURCE, text).map(|t| formula(&t)).as_deref(), Ok(text));
    }
    let text = "sort\n  D = struct d1(p: Nat)?is_d1 | d2;\n\nact\n  a, b: D # Nat;\n\nproc\n  P(n: Nat) =\n      a(n)\n    + b(n) . P(n + 1);\n\ninit\n  P(0);\n";
    let printed = parse_specification(SOURCE, text).map(|t| specification(&t));
    assert_eq!(
        printed.as_deref(),
        Ok(text.replace("a, b: D # Nat;", "a: D # Nat;\n  b: D # Nat;").as_str())
    );
}
