//! Lists of identities as words with blocks of untracked identities.
//!
//! Input: expressions of a process with a sort of any number of constants, and lists over it that
//! are sublists of the list of all constants. Output: a check that the operations on such lists
//! observe of a block of equivalent letters only its length up to a small bound ([`Lists`]), with
//! that bound; and the words that represent all concretisations of a word with blocks ([`words`]).
//!
//! Supported operations are copies, `[]`, comparisons with it, `head`, `tail`, `if`, and mappings
//! that traverse a list once, letter by letter, and retain or drop each letter by its value, not by
//! its position (*sieves*: [`Lists::sieves`]). So the letters of every list are distinct, and
//! docs/regions.md contains the lemma: for consecutive letters that occur nowhere else, one more
//! than the number of operations is enough. Cost: linear; the number of words is exponential in the
//! names.

use ahash::AHashSet;
use mu_base::ids::{OpId, SortId, VarId};
use mu_base::{Diagnostic, Stage};
use mu_data::expr::{DataSpec, Equation, Expr, ExprKind};
use mu_data::signature::{Builtin, OpKind, Signature};
use mu_data::sort::SortKind;

/// Operations on lists of one sort.
pub struct Lists<'a> {
    signature: &'a Signature,
    /// The sort of the lists.
    list: SortId,
    sieves: AHashSet<OpId>,
}

/// Uses of lists in an expression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// Number of operations that may remove a letter from the front.
    pub operations: usize,
    /// True if it traverses a list.
    pub sieves: bool,
}

fn deep<T>(f: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(128 << 10, 4 << 20, f)
}

fn reject<T>(text: impl Into<String>, e: &Expr) -> Result<T, Diagnostic> {
    Err(Diagnostic::new(Stage::Unsupported, text).or_span(e.span))
}

impl<'a> Lists<'a> {
    /// Analyses the lists of the sort `list` in these data.
    pub fn new(data: &'a DataSpec, list: SortId) -> Self {
        let mut lists = Self { signature: &data.signature, list, sieves: AHashSet::new() };
        lists.sieves = data
            .signature
            .ops()
            .filter(|(_, op)| op.kind == OpKind::Mapping)
            .map(|(id, _)| id)
            .collect();
        lists.sieves.retain(|op| is_sieve(data, list, *op));
        lists
    }

    /// Returns the mappings that traverse a list and retain or drop its letters.
    pub fn sieves(&self) -> &AHashSet<OpId> {
        &self.sieves
    }

    /// Returns the uses of lists in an expression. Error: an unsupported operation.
    pub fn uses(&self, e: &Expr) -> Result<Uses, Diagnostic> {
        let mut uses = Uses::default();
        if e.sort == self.list {
            self.list(e, &mut uses)?
        } else {
            self.data(e, &mut uses)?
        }
        Ok(uses)
    }

    /// Analyses a list expression.
    fn list(&self, e: &Expr, uses: &mut Uses) -> Result<(), Diagnostic> {
        deep(|| match (&e.kind, e.as_builtin(self.signature)) {
            (ExprKind::Var(_), _) | (_, Some((Builtin::EmptyList, _))) => Ok(()),
            (_, Some((Builtin::Tail, [rest]))) => {
                uses.operations += 1;
                self.list(rest, uses)
            }
            (_, Some((Builtin::If, [condition, a, b]))) => {
                self.data(condition, uses)?;
                self.list(a, uses)?;
                self.list(b, uses)
            }
            (ExprKind::Apply(head, args), _) if matches!(head.kind, ExprKind::Op(op) if self.sieves.contains(&op)) =>
            {
                uses.operations += 1;
                uses.sieves = true;
                for arg in args {
                    if arg.sort == self.list {
                        self.list(arg, uses)?;
                    } else if self.mentions(arg) {
                        return reject(
                            "a list of identities is traversed with a part of itself",
                            arg,
                        );
                    }
                }
                Ok(())
            }
            _ => reject(
                "a list of identities is built other than by `tail` or by a mapping that retains or drops each letter",
                e,
            ),
        })
    }

    /// Analyses an expression that is not a list.
    fn data(&self, e: &Expr, uses: &mut Uses) -> Result<(), Diagnostic> {
        let other =
            "a list of identities is used other than by `head`, `tail` and comparison with `[]`";
        deep(|| match (&e.kind, e.as_builtin(self.signature)) {
            (ExprKind::Var(_) | ExprKind::Number(_), _) => Ok(()),
            (_, Some((Builtin::Head, [list]))) if list.sort == self.list => self.list(list, uses),
            (_, Some((Builtin::Equal | Builtin::NotEqual, [a, b]))) if a.sort == self.list => {
                let empty = |e: &Expr| {
                    matches!(e.as_builtin(self.signature), Some((Builtin::EmptyList, _)))
                };
                if !empty(a) && !empty(b) {
                    return reject("two lists of identities are compared", e);
                }
                self.list(a, uses)?;
                self.list(b, uses)
            }
            (ExprKind::Op(op), _) => match self.signature.sorts.kind(self.signature.op(*op).sort) {
                SortKind::Function(from, to) if from.contains(&self.list) || *to == self.list => {
                    reject(other, e)
                }
                _ => Ok(()),
            },
            (ExprKind::Apply(head, args), _) => {
                if args.iter().any(|a| a.sort == self.list) {
                    return reject(other, e);
                }
                if !matches!(head.kind, ExprKind::Op(_)) {
                    self.data(head, uses)?;
                }
                args.iter().try_for_each(|a| self.data(a, uses))
            }
            (ExprKind::Bind(_, vars, body), _) => {
                if vars.iter().any(|v| self.signature.var(*v).sort == self.list)
                    || body.sort == self.list
                {
                    return reject(other, e);
                }
                self.data(body, uses)
            }
            (ExprKind::Where(body, definitions), _) => {
                if definitions.iter().any(|d| d.1.sort == self.list) {
                    return reject(other, e);
                }
                definitions.iter().try_for_each(|d| self.data(&d.1, uses))?;
                self.data(body, uses)
            }
        })
    }

    /// Collects the lists of which an expression tests more than emptiness.
    pub fn inspected_lists(&self, e: &Expr, out: &mut AHashSet<VarId>) {
        deep(|| match (&e.kind, e.as_builtin(self.signature)) {
            (ExprKind::Var(v), _) if e.sort == self.list => {
                out.insert(*v);
            }
            (_, Some((Builtin::Equal | Builtin::NotEqual, sides @ [a, _])))
                if a.sort == self.list =>
            {
                sides
                    .iter()
                    .filter(|s| !matches!(s.kind, ExprKind::Var(_)))
                    .for_each(|s| self.inspected_lists(s, out));
            }
            (ExprKind::Var(_) | ExprKind::Number(_) | ExprKind::Op(_), _) => {}
            (ExprKind::Apply(head, args), _) => {
                args.iter().chain([head]).for_each(|a| self.inspected_lists(a, out))
            }
            (ExprKind::Bind(_, _, body), _) => self.inspected_lists(body, out),
            (ExprKind::Where(body, definitions), _) => {
                definitions
                    .iter()
                    .map(|d| &d.1)
                    .chain([body])
                    .for_each(|d| self.inspected_lists(d, out));
            }
        });
    }

    /// True if an expression is the list `var` with letters removed: by `tail`, sieves, `[]`, or
    /// choices between these.
    pub fn is_part(&self, e: &Expr, var: VarId) -> bool {
        deep(|| match (&e.kind, e.as_builtin(self.signature)) {
            (ExprKind::Var(v), _) => *v == var,
            (_, Some((Builtin::EmptyList, _))) => e.sort == self.list,
            (_, Some((Builtin::Tail, [rest]))) => self.is_part(rest, var),
            (_, Some((Builtin::If, [_, a, b]))) => self.is_part(a, var) && self.is_part(b, var),
            (ExprKind::Apply(head, args), _) if matches!(head.kind, ExprKind::Op(op) if self.sieves.contains(&op)) => {
                args.iter().all(|a| a.sort != self.list || self.is_part(a, var))
            }
            _ => false,
        })
    }

    /// True if an expression contains a list.
    pub fn mentions(&self, e: &Expr) -> bool {
        mentions(e, self.list)
    }
}

/// True if an expression contains a term of a sort.
fn mentions(e: &Expr, list: SortId) -> bool {
    deep(|| {
        e.sort == list
            || match &e.kind {
                ExprKind::Var(_) | ExprKind::Number(_) | ExprKind::Op(_) => false,
                ExprKind::Apply(head, args) => {
                    mentions(head, list) || args.iter().any(|a| mentions(a, list))
                }
                ExprKind::Bind(_, _, body) => mentions(body, list),
                ExprKind::Where(body, definitions) => {
                    mentions(body, list) || definitions.iter().any(|d| mentions(&d.1, list))
                }
            }
    })
}

/// True if a mapping is `f(x.., []) = []` and `f(x.., c |> cs) =` a tree of `if` with conditions
/// that do not contain `cs`, and with leaves `cs` or `f(x.., cs)`, each optionally prefixed by `c
/// |>`.
fn is_sieve(data: &DataSpec, list: SortId, op: OpId) -> bool {
    let (domain, range) = data.signature.domain_range(data.signature.op(op).sort);
    if range != list || domain.iter().filter(|s| **s == list).count() != 1 {
        return false;
    }
    let Some(at) = domain.iter().position(|s| *s == list) else { return false };
    let own: Vec<&Equation> = data.equations.iter().filter(|e| e.lhs.head() == Some(op)).collect();
    let (mut empty, mut letter) = (0, 0);
    own.iter().all(|equation| {
        let ExprKind::Apply(_, args) = &equation.lhs.kind else { return false };
        let mut vars: Vec<VarId> = Vec::new();
        for (_, arg) in args.iter().enumerate().filter(|(i, _)| *i != at) {
            let ExprKind::Var(v) = arg.kind else { return false };
            if vars.contains(&v) {
                return false;
            }
            vars.push(v);
        }
        let is_empty =
            |e: &Expr| matches!(e.as_builtin(&data.signature), Some((Builtin::EmptyList, _)));
        if equation.condition.is_some() {
            return false;
        }
        if is_empty(&args[at]) {
            empty += 1;
            return empty == 1 && is_empty(&equation.rhs);
        }
        let Some((Builtin::Cons, [first, rest])) = args[at].as_builtin(&data.signature) else {
            return false;
        };
        let (ExprKind::Var(first), ExprKind::Var(rest)) = (&first.kind, &rest.kind) else {
            return false;
        };
        letter += 1;
        letter == 1
            && first != rest
            && !vars.contains(first)
            && Leaf { signature: &data.signature, list, op, at, args, first: *first, rest: *rest }
                .is(&equation.rhs)
    }) && letter == 1
}

/// A possible result of a sieve's equation.
struct Leaf<'e> {
    signature: &'e Signature,
    list: SortId,
    op: OpId,
    at: usize,
    args: &'e [Expr],
    first: VarId,
    rest: VarId,
}

impl Leaf<'_> {
    fn is(&self, e: &Expr) -> bool {
        deep(|| match e.as_builtin(self.signature) {
            Some((Builtin::If, [condition, a, b])) => {
                !mentions(condition, self.list) && self.is(a) && self.is(b)
            }
            Some((Builtin::Cons, [letter, rest])) => {
                letter.kind == ExprKind::Var(self.first) && self.goes_on(rest)
            }
            _ => self.goes_on(e),
        })
    }

    fn goes_on(&self, e: &Expr) -> bool {
        match &e.kind {
            ExprKind::Var(v) => *v == self.rest,
            ExprKind::Apply(_, args) if e.head() == Some(self.op) => {
                args.iter().enumerate().all(|(i, a)| {
                    if i == self.at {
                        a.kind == ExprKind::Var(self.rest)
                    } else {
                        *a == self.args[i]
                    }
                })
            }
            _ => false,
        }
    }
}

/// A letter of an abstract word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordPart {
    /// The tracked constant with this index.
    Tracked(usize),
    /// A block of untracked identities.
    Block,
}

/// A letter of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Letter {
    /// The tracked constant with this index.
    Tracked(usize),
    /// An untracked identity that also occurs elsewhere, by its index.
    Named(usize),
    /// An identity that occurs nowhere else, by its index in the word.
    Filler(usize),
}

/// A request for words.
#[derive(Clone, Copy, Debug)]
pub struct WordRequest {
    /// Number of untracked identities that occur elsewhere.
    pub names: usize,
    /// True if all of these are in the word; false if only some are.
    pub all: bool,
    /// True if blocks may be empty.
    pub empty: bool,
    /// Largest number of consecutive letters that occur nowhere else.
    pub longest: usize,
    /// Without sieves: the number of letters at the front that are read.
    pub front: Option<usize>,
}

/// Returns the words that represent an abstract word; `None` if there are more than `most`.
pub fn words(word: &[WordPart], wanted: &WordRequest, most: usize) -> Option<Vec<Vec<Letter>>> {
    let mut maker = Maker {
        word,
        wanted,
        most,
        used: vec![false; wanted.names],
        letters: Vec::new(),
        fillers: 0,
        out: Vec::new(),
    };
    maker.at(0, 0, 0)?;
    Some(maker.out)
}

struct Maker<'w> {
    word: &'w [WordPart],
    wanted: &'w WordRequest,
    most: usize,
    used: Vec<bool>,
    letters: Vec<Letter>,
    fillers: usize,
    out: Vec<Vec<Letter>>,
}

impl Maker<'_> {
    /// Enumerates all continuations from a part that has `inside` letters so far, the last `row` of
    /// which occur nowhere else.
    fn at(&mut self, part: usize, inside: usize, row: usize) -> Option<()> {
        let Some(here) = self.word.get(part) else {
            if !self.wanted.all || self.used.iter().all(|u| *u) {
                if self.out.len() >= self.most {
                    return None;
                }
                self.out.push(self.letters.clone());
            }
            return Some(());
        };
        if let WordPart::Tracked(i) = here {
            self.letters.push(Letter::Tracked(*i));
            self.at(part + 1, 0, 0)?;
            self.letters.pop();
            return Some(());
        }
        let seen = self.wanted.front.is_none_or(|front| self.letters.len() < front);
        let least = usize::from(!self.wanted.empty);
        if inside >= least {
            self.at(part + 1, 0, 0)?;
        }
        // After the letters that are read, only emptiness matters.
        if row < self.wanted.longest && (seen || inside == 0) {
            self.letters.push(Letter::Filler(self.fillers));
            self.fillers += 1;
            self.at(part, inside + 1, row + 1)?;
            self.fillers -= 1;
            self.letters.pop();
        }
        // If each name must have a position, it may be after the letters that are read.
        if seen || self.wanted.all {
            for name in 0..self.used.len() {
                if self.used[name] {
                    continue;
                }
                self.used[name] = true;
                self.letters.push(Letter::Named(name));
                self.at(part, inside + 1, 0)?;
                self.letters.pop();
                self.used[name] = false;
            }
        }
        Some(())
    }
}

/// Adds one letter to each run of `longest` letters that occur nowhere else.
pub fn longer(word: &[Letter], longest: usize) -> Vec<Letter> {
    let (mut out, mut row, mut fillers) = (Vec::new(), 0, 0);
    let mut filler = |out: &mut Vec<Letter>| {
        out.push(Letter::Filler(fillers));
        fillers += 1;
    };
    for letter in word {
        if !matches!(letter, Letter::Filler(_)) {
            row = 0;
            out.push(*letter);
            continue;
        }
        row += 1;
        filler(&mut out);
        if row == longest {
            filler(&mut out);
        }
    }
    out
}

/// Abstracts letters to a word with blocks for untracked identities; `None` in `letters` means
/// untracked.
pub fn abstract_word(letters: impl Iterator<Item = Option<usize>>) -> Vec<WordPart> {
    let mut word: Vec<WordPart> = Vec::new();
    for letter in letters {
        match letter {
            Some(i) => word.push(WordPart::Tracked(i)),
            None if word.last() == Some(&WordPart::Block) => {}
            None => word.push(WordPart::Block),
        }
    }
    word
}
