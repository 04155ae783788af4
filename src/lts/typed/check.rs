//! Type checker of typed terms, run before a file is written.
//!
//! Input: a [`Process`], [`Equations`], or the declarations and labels of a transition system
//! ([`TypedDeclarations`]). Output: nothing, or an internal error with the first term that is not
//! well typed. A reader of the file applies rewrite rules by sort, so a term of the sort `Pos`
//! where `Nat` is expected matches no rule, and nothing else reports that.
//!
//! Sorts are equal only if identical. Each operation is declared or one of [`OPERATIONS`], at a
//! sort that it has. Each variable is in scope. The table is written by hand from the language
//! definition and shares no code with the type checker of specifications. Cost: linear in the
//! shared terms, once for each scope that holds them.

use super::{
    Action, Binder, Container, InternTable, NumberSort, Sort, SortRef, Term, TermRef,
    TypedDeclarations, TypedPart,
};
use crate::behaviour::{Equations, Predicate, Process};
use ahash::{AHashMap, AHashSet};
use mu_base::Diagnostic;
use mu_base::narrow;
use num_bigint::Sign;

/// Pattern of sorts over the variables `S` and `T`.
#[derive(Clone, Copy)]
enum SortPattern {
    Basic(&'static str),
    S,
    T,
    Of(Container),
    /// `S -> T`.
    Function,
    /// `S -> Bool`.
    Test,
    /// `S -> Nat`.
    Multiplicity,
}

use SortPattern::{Basic, Function, Multiplicity, Of, S, T, Test};
const BOOL: SortPattern = Basic("Bool");
const POS: SortPattern = Basic("Pos");
const NAT: SortPattern = Basic("Nat");
const INT: SortPattern = Basic("Int");
const REAL: SortPattern = Basic("Real");
const LIST: SortPattern = Of(Container::List);
const SET: SortPattern = Of(Container::Set);
const BAG: SortPattern = Of(Container::Bag);
const FSET: SortPattern = Of(Container::FSet);
const FBAG: SortPattern = Of(Container::FBag);

/// Operation: its name, its domain, its range.
type Operation = (&'static str, &'static [SortPattern], SortPattern);

/// Built-in operations of the language, by their names in files.
const OPERATIONS: &[Operation] = &[
    ("true", &[], BOOL),
    ("false", &[], BOOL),
    ("!", &[BOOL], BOOL),
    ("&&", &[BOOL, BOOL], BOOL),
    ("||", &[BOOL, BOOL], BOOL),
    ("=>", &[BOOL, BOOL], BOOL),
    ("==", &[S, S], BOOL),
    ("!=", &[S, S], BOOL),
    ("<", &[S, S], BOOL),
    ("<=", &[S, S], BOOL),
    (">", &[S, S], BOOL),
    (">=", &[S, S], BOOL),
    ("if", &[BOOL, S, S], S),
    ("@cInt", &[NAT], INT),
    ("@cNeg", &[POS], INT),
    ("@cReal", &[INT, POS], REAL),
    ("Pos2Nat", &[POS], NAT),
    ("Nat2Pos", &[NAT], POS),
    ("Int2Pos", &[INT], POS),
    ("Int2Nat", &[INT], NAT),
    ("Real2Pos", &[REAL], POS),
    ("Real2Nat", &[REAL], NAT),
    ("Real2Int", &[REAL], INT),
    ("max", &[POS, POS], POS),
    ("max", &[POS, NAT], POS),
    ("max", &[NAT, POS], POS),
    ("max", &[NAT, NAT], NAT),
    ("max", &[POS, INT], POS),
    ("max", &[INT, POS], POS),
    ("max", &[NAT, INT], NAT),
    ("max", &[INT, NAT], NAT),
    ("max", &[INT, INT], INT),
    ("max", &[REAL, REAL], REAL),
    ("min", &[POS, POS], POS),
    ("min", &[NAT, NAT], NAT),
    ("min", &[INT, INT], INT),
    ("min", &[REAL, REAL], REAL),
    ("abs", &[INT], NAT),
    ("abs", &[REAL], REAL),
    ("succ", &[POS], POS),
    ("succ", &[NAT], POS),
    ("succ", &[INT], INT),
    ("succ", &[REAL], REAL),
    ("pred", &[POS], NAT),
    ("pred", &[NAT], INT),
    ("pred", &[INT], INT),
    ("pred", &[REAL], REAL),
    ("sqrt", &[NAT], NAT),
    ("+", &[POS, POS], POS),
    ("+", &[POS, NAT], POS),
    ("+", &[NAT, POS], POS),
    ("+", &[NAT, NAT], NAT),
    ("+", &[INT, INT], INT),
    ("+", &[REAL, REAL], REAL),
    ("-", &[POS], INT),
    ("-", &[NAT], INT),
    ("-", &[INT], INT),
    ("-", &[REAL], REAL),
    ("-", &[POS, POS], INT),
    ("-", &[NAT, NAT], INT),
    ("-", &[INT, INT], INT),
    ("-", &[REAL, REAL], REAL),
    ("*", &[POS, POS], POS),
    ("*", &[NAT, NAT], NAT),
    ("*", &[INT, INT], INT),
    ("*", &[REAL, REAL], REAL),
    ("/", &[POS, POS], REAL),
    ("/", &[NAT, NAT], REAL),
    ("/", &[INT, INT], REAL),
    ("/", &[REAL, REAL], REAL),
    ("div", &[NAT, POS], NAT),
    ("div", &[INT, POS], INT),
    ("mod", &[NAT, POS], NAT),
    ("mod", &[INT, POS], NAT),
    ("exp", &[POS, NAT], POS),
    ("exp", &[NAT, NAT], NAT),
    ("exp", &[INT, NAT], INT),
    ("exp", &[REAL, INT], REAL),
    ("floor", &[REAL], INT),
    ("ceil", &[REAL], INT),
    ("round", &[REAL], INT),
    ("[]", &[], LIST),
    ("|>", &[S, LIST], LIST),
    ("<|", &[LIST, S], LIST),
    ("++", &[LIST, LIST], LIST),
    (".", &[LIST, NAT], S),
    ("head", &[LIST], S),
    ("tail", &[LIST], LIST),
    ("rhead", &[LIST], S),
    ("rtail", &[LIST], LIST),
    ("#", &[LIST], NAT),
    ("#", &[FSET], NAT),
    ("#", &[FBAG], NAT),
    ("in", &[S, LIST], BOOL),
    ("in", &[S, FSET], BOOL),
    ("in", &[S, SET], BOOL),
    ("in", &[S, FBAG], BOOL),
    ("in", &[S, BAG], BOOL),
    ("count", &[S, FBAG], NAT),
    ("count", &[S, BAG], NAT),
    ("pick", &[FSET], S),
    ("pick", &[FBAG], S),
    ("{}", &[], FSET),
    ("{:}", &[], FBAG),
    ("@fset_insert", &[S, FSET], FSET),
    ("@fset_cons", &[S, FSET], FSET),
    ("@fbag_cons", &[S, POS, FBAG], FBAG),
    ("@fbag_cinsert", &[S, NAT, FBAG], FBAG),
    ("@set", &[Test, FSET], SET),
    ("@bag", &[Multiplicity, FBAG], BAG),
    ("@false_", &[S], BOOL),
    ("@zero_", &[S], NAT),
    ("Set2Bag", &[SET], BAG),
    ("Bag2Set", &[BAG], SET),
    ("!", &[SET], SET),
    ("+", &[FSET, FSET], FSET),
    ("+", &[SET, SET], SET),
    ("+", &[FBAG, FBAG], FBAG),
    ("+", &[BAG, BAG], BAG),
    ("-", &[FSET, FSET], FSET),
    ("-", &[SET, SET], SET),
    ("-", &[FBAG, FBAG], FBAG),
    ("-", &[BAG, BAG], BAG),
    ("*", &[FSET, FSET], FSET),
    ("*", &[SET, SET], SET),
    ("*", &[FBAG, FBAG], FBAG),
    ("*", &[BAG, BAG], BAG),
    ("@func_update", &[Function, S, T], Function),
    ("@func_update_stable", &[Function, S, T], Function),
];

/// Built-in sorts of the language.
const BASIC: [&str; 5] = ["Bool", "Pos", "Nat", "Int", "Real"];

/// Type checker with the variables of the current scope.
struct TermChecker<'t> {
    typed: &'t TypedDeclarations,
    /// All sorts: those of the declarations, then those of abstractions.
    table: InternTable<Sort>,
    /// Sorts of all terms checked so far.
    sorts: Vec<SortRef>,
    /// Declared operations: their names and sorts.
    operations: AHashSet<(String, SortRef)>,
    by_name: AHashMap<&'static str, Vec<&'static Operation>>,
    /// The numbers of [`BASIC`].
    basic: Vec<SortRef>,
    /// Variables in scope, each with the number of binders that hold it.
    scope: AHashMap<TermRef, u32>,
    /// Scope in which each term was last checked.
    seen: Vec<u32>,
    /// Current scope, and the number of scopes so far.
    now: u32,
    scopes: u32,
}

/// Result of a check; the error is a text.
type CheckResult<T> = Result<T, String>;

impl TypedDeclarations {
    /// Checks the declarations, and the arguments of all labels.
    ///
    /// # Errors
    /// A term is not well typed: an internal error.
    pub fn check(&self) -> Result<(), Diagnostic> {
        let labels = |checker: &mut TermChecker<'_>| {
            self.parts.values().try_for_each(|part| checker.part(part))
        };
        TermChecker::run(self, labels).map_err(report)
    }
}

impl Process {
    /// Checks all terms.
    ///
    /// # Errors
    /// A term is not well typed: an internal error.
    pub fn check(&self) -> Result<(), Diagnostic> {
        TermChecker::run(&self.typed, |checker| checker.process(self)).map_err(report)
    }
}

impl Equations {
    /// Checks all terms.
    ///
    /// # Errors
    /// A term is not well typed: an internal error.
    pub fn check(&self) -> Result<(), Diagnostic> {
        TermChecker::run(&self.typed, |checker| checker.equations(self)).map_err(report)
    }
}

fn report(what: String) -> Diagnostic {
    Diagnostic::internal(format!("the file would not be well typed: {what}"))
}

impl<'t> TermChecker<'t> {
    fn run(
        typed: &'t TypedDeclarations,
        rest: impl FnOnce(&mut Self) -> CheckResult<()>,
    ) -> CheckResult<()> {
        let mut by_name: AHashMap<&str, Vec<&Operation>> = AHashMap::new();
        OPERATIONS.iter().for_each(|o| by_name.entry(o.0).or_default().push(o));
        let mut table = typed.sorts.clone();
        let mut checker = TermChecker {
            typed,
            basic: BASIC
                .iter()
                .map(|b| SortRef(table.intern(Sort::Named((*b).to_string()))))
                .collect(),
            table,
            sorts: Vec::new(),
            operations: AHashSet::new(),
            by_name,
            scope: AHashMap::new(),
            seen: vec![0; typed.terms.all.len()],
            now: 1,
            scopes: 1,
        };
        checker.declarations()?;
        for i in 0..typed.terms.all.len() {
            let sort = checker.sort_of(&typed.terms.all[i])?;
            checker.sorts.push(sort);
        }
        for e in &typed.equations {
            checker.with_scope(&e.variables, |it| {
                it.condition(e.condition, "a condition of an equation")?;
                it.at(e.left, it.sorts[e.right.index()], "the left-hand side of an equation")?;
                it.in_scope(e.right)
            })?;
        }
        rest(&mut checker)
    }

    fn sort_text(&self, sort: SortRef) -> String {
        match &self.table.all[sort.index()] {
            Sort::Named(name) => name.clone(),
            Sort::Container(container, of) => format!("{container:?}({})", self.sort_text(*of)),
            Sort::Function(domain, range) => {
                let domain: Vec<String> = domain.iter().map(|s| self.sort_text(*s)).collect();
                format!("({} -> {})", domain.join(" # "), self.sort_text(*range))
            }
            Sort::Struct(_) => "a structured sort".into(),
        }
    }

    /// Prints a term, truncated below a depth.
    fn text(&self, term: TermRef, depth: u32) -> String {
        let list = |all: &[TermRef]| {
            all.iter().map(|t| self.text(*t, depth + 1)).collect::<Vec<_>>().join(", ")
        };
        match &self.typed.terms.all[term.index()] {
            Term::Variable(name, sort) => format!("{name}: {}", self.sort_text(*sort)),
            Term::Operation(name, _) => name.clone(),
            Term::Number(value, sort) => format!("{value}: {sort:?}"),
            _ if depth > 4 => "…".into(),
            Term::Apply(head, arguments) => {
                format!("{}({})", self.text(*head, depth + 1), list(arguments))
            }
            Term::Bind(binder, variables, body) => {
                format!("{binder:?} {} . {}", list(variables), self.text(*body, depth + 1))
            }
            Term::Where(body, _) => format!("{} whr …", self.text(*body, depth + 1)),
        }
    }

    fn basic(&self, name: &str) -> Option<SortRef> {
        BASIC.iter().position(|b| *b == name).map(|i| self.basic[i])
    }

    fn bool(&self) -> SortRef {
        self.basic[0]
    }

    /// Checks that sorts are declared; collects the declared operations.
    fn declarations(&mut self) -> CheckResult<()> {
        let typed = self.typed;
        let declared = typed.declared.iter().chain(typed.aliases.iter().map(|a| &a.0));
        let names: AHashSet<SortRef> = declared.copied().collect();
        for (i, sort) in typed.sorts.all.iter().enumerate() {
            if let Sort::Named(name) = sort
                && !BASIC.contains(&name.as_str())
                && !names.contains(&SortRef(narrow::index(i)))
            {
                return Err(format!("the sort `{name}` is not declared"));
            }
        }
        for t in typed.constructors.iter().chain(&typed.mappings) {
            if let Term::Operation(name, sort) = &typed.terms.all[t.index()] {
                self.operations.insert((name.clone(), *sort));
            }
        }
        for (name, of) in &typed.aliases {
            let Sort::Struct(constructors) = &typed.sorts.all[of.index()] else { continue };
            for c in constructors {
                let domain: Vec<SortRef> = c.arguments.iter().map(|a| a.1).collect();
                let full = if domain.is_empty() { *name } else { self.function(domain, *name) };
                self.operations.insert((c.name.clone(), full));
                for (projection, range) in &c.arguments {
                    let full = self.function(vec![*name], *range);
                    self.operations.extend(projection.clone().map(|p| (p, full)));
                }
                let full = self.function(vec![*name], self.bool());
                self.operations.extend(c.recogniser.clone().map(|r| (r, full)));
            }
        }
        Ok(())
    }

    fn function(&mut self, domain: Vec<SortRef>, range: SortRef) -> SortRef {
        SortRef(self.table.intern(Sort::Function(domain, range)))
    }

    /// Splits a sort into domain and range.
    fn signature(&self, sort: SortRef) -> (&[SortRef], SortRef) {
        match &self.table.all[sort.index()] {
            Sort::Function(domain, range) => (domain, *range),
            _ => (&[], sort),
        }
    }

    /// True if a sort is an instance of a pattern; records the values of the variables.
    fn matches(&self, pattern: SortPattern, sort: SortRef, of: &mut [Option<SortRef>; 2]) -> bool {
        let mut is = |at: usize, sort: SortRef| *of[at].get_or_insert(sort) == sort;
        match (pattern, &self.table.all[sort.index()]) {
            (Basic(name), Sort::Named(own)) => name == own,
            (S, _) => is(0, sort),
            (T, _) => is(1, sort),
            (Of(container), Sort::Container(own, element)) => container == *own && is(0, *element),
            (Function, Sort::Function(domain, range)) => {
                domain.len() == 1 && is(0, domain[0]) && is(1, *range)
            }
            (Test | Multiplicity, Sort::Function(domain, range)) => {
                let name = if matches!(pattern, Test) { "Bool" } else { "Nat" };
                domain.len() == 1 && is(0, domain[0]) && Some(*range) == self.basic(name)
            }
            _ => false,
        }
    }

    /// True if the language has this operation at this sort.
    fn is_of_language(&self, name: &str, sort: SortRef) -> bool {
        let Some(all) = self.by_name.get(name) else { return false };
        let (domain, range) = self.signature(sort);
        all.iter().any(|(_, patterns, result)| {
            let mut of = [None; 2];
            patterns.len() == domain.len()
                && patterns.iter().zip(domain).all(|(p, s)| self.matches(*p, *s, &mut of))
                && self.matches(*result, range, &mut of)
        })
    }

    /// Computes the sort of a term from those of its parts.
    fn sort_of(&mut self, term: &Term) -> CheckResult<SortRef> {
        match term {
            Term::Variable(_, sort) => Ok(*sort),
            Term::Operation(name, sort) => {
                if self.operations.contains(&(name.clone(), *sort))
                    || self.is_of_language(name, *sort)
                {
                    return Ok(*sort);
                }
                Err(format!("no operation `{name}` has the sort {}", self.sort_text(*sort)))
            }
            Term::Number(value, sort) => {
                let (at, is_in) = match sort {
                    NumberSort::Pos => (1, value.sign() == Sign::Plus),
                    NumberSort::Nat => (2, value.sign() != Sign::Minus),
                    NumberSort::Int => (3, true),
                    NumberSort::Real => (4, true),
                };
                if is_in {
                    Ok(self.basic[at])
                } else {
                    Err(format!("{value} is not a number of the sort {}", BASIC[at]))
                }
            }
            Term::Apply(head, arguments) => {
                let sort = self.sorts[head.index()];
                let (domain, range) = self.signature(sort);
                let own: Vec<SortRef> = arguments.iter().map(|a| self.sorts[a.index()]).collect();
                if domain == own && !own.is_empty() {
                    return Ok(range);
                }
                let own: Vec<String> = own.iter().map(|s| self.sort_text(*s)).collect();
                let (head, sort) = (self.text(*head, 2), self.sort_text(sort));
                Err(format!(
                    "`{head}` of the sort {sort} has arguments of the sorts {}",
                    own.join(" # ")
                ))
            }
            Term::Bind(binder, variables, body) => {
                self.variables(variables)?;
                let range = self.sorts[body.index()];
                match binder {
                    Binder::Lambda => {
                        let domain = self.sorts_of(variables);
                        Ok(self.function(domain, range))
                    }
                    Binder::Forall | Binder::Exists if range == self.bool() => Ok(range),
                    Binder::Forall | Binder::Exists => Err(format!(
                        "the body of a quantifier, `{}`, has the sort {}",
                        self.text(*body, 0),
                        self.sort_text(range)
                    )),
                }
            }
            Term::Where(body, definitions) => {
                for (variable, value) in definitions {
                    self.variables(&[*variable])?;
                    self.expect_sort(self.sorts[variable.index()], *value, "a definition")?;
                }
                Ok(self.sorts[body.index()])
            }
        }
    }

    fn variables(&self, all: &[TermRef]) -> CheckResult<()> {
        match all.iter().find(|v| !matches!(self.typed.terms.all[v.index()], Term::Variable(..))) {
            Some(other) => {
                Err(format!("`{}` is bound, but is not a variable", self.text(*other, 0)))
            }
            None => Ok(()),
        }
    }

    fn expect_sort(&self, sort: SortRef, term: TermRef, what: &str) -> CheckResult<()> {
        let own = self.sorts[term.index()];
        if own == sort {
            return Ok(());
        }
        let (own, sort) = (self.sort_text(own), self.sort_text(sort));
        Err(format!("{what}, `{}`, has the sort {own}; expected {sort}", self.text(term, 0)))
    }

    /// Checks that a term has a sort, and that its variables are in scope.
    fn at(&mut self, term: TermRef, sort: SortRef, what: &str) -> CheckResult<()> {
        self.expect_sort(sort, term, what)?;
        self.in_scope(term)
    }

    fn condition(&mut self, term: TermRef, what: &str) -> CheckResult<()> {
        self.at(term, self.bool(), what)
    }

    /// Runs a check with more variables in scope.
    fn with_scope<R>(
        &mut self,
        variables: &[TermRef],
        run: impl FnOnce(&mut Self) -> CheckResult<R>,
    ) -> CheckResult<R> {
        self.variables(variables)?;
        let before = self.now;
        self.scopes += 1;
        self.now = self.scopes;
        variables.iter().for_each(|v| *self.scope.entry(*v).or_default() += 1);
        let result = run(self);
        for v in variables {
            if let Some(times) = self.scope.get_mut(v) {
                *times -= 1;
            }
        }
        self.now = before;
        result
    }

    /// Checks that the free variables of a term are in scope. A term is visited once in each scope.
    fn in_scope(&mut self, term: TermRef) -> CheckResult<()> {
        if std::mem::replace(&mut self.seen[term.index()], self.now) == self.now {
            return Ok(());
        }
        let typed = self.typed;
        stacker::maybe_grow(64 << 10, 1 << 20, || match &typed.terms.all[term.index()] {
            Term::Operation(..) | Term::Number(..) => Ok(()),
            Term::Variable(name, _) => match self.scope.get(&term) {
                Some(1..) => Ok(()),
                _ => Err(format!("the variable `{name}` is not in scope")),
            },
            Term::Apply(head, arguments) => {
                self.in_scope(*head)?;
                arguments.iter().try_for_each(|a| self.in_scope(*a))
            }
            Term::Bind(_, variables, body) => self.with_scope(variables, |it| it.in_scope(*body)),
            Term::Where(body, definitions) => {
                definitions.iter().try_for_each(|d| self.in_scope(d.1))?;
                let variables: Vec<TermRef> = definitions.iter().map(|d| d.0).collect();
                self.with_scope(&variables, |it| it.in_scope(*body))
            }
        })
    }

    /// Checks values for variables, one each.
    fn values(&mut self, variables: &[SortRef], values: &[TermRef], what: &str) -> CheckResult<()> {
        if variables.len() != values.len() {
            return Err(format!(
                "{what}: found {} values, expected {}",
                values.len(),
                variables.len()
            ));
        }
        variables.iter().zip(values).try_for_each(|(sort, value)| self.at(*value, *sort, what))
    }

    fn sorts_of(&self, variables: &[TermRef]) -> Vec<SortRef> {
        variables.iter().map(|v| self.sorts[v.index()]).collect()
    }

    fn part(&mut self, part: &TypedPart) -> CheckResult<()> {
        let Action { name, sorts } = &self.typed.actions.all[part.action.index()];
        self.values(sorts, &part.arguments, &format!("an argument of the action `{name}`"))
    }

    fn process(&mut self, process: &Process) -> CheckResult<()> {
        self.with_scope(&process.globals, |it| {
            let sorts = it.sorts_of(&process.parameters);
            it.values(&sorts, &process.initial, "an initial value")?;
            it.with_scope(&process.parameters, |it| {
                for s in &process.summands {
                    it.with_scope(&s.variables, |it| {
                        it.condition(s.condition, "a condition")?;
                        s.actions.iter().try_for_each(|part| it.part(part))?;
                        for (parameter, value) in &s.assignments {
                            if !process.parameters.contains(parameter) {
                                return Err(format!(
                                    "`{}` is assigned, but is not a parameter",
                                    it.text(*parameter, 0)
                                ));
                            }
                            it.at(
                                *value,
                                it.sorts[parameter.index()],
                                "a new value of a parameter",
                            )?;
                        }
                        Ok(())
                    })?;
                }
                Ok(())
            })
        })
    }

    fn equations(&mut self, system: &Equations) -> CheckResult<()> {
        let heads: AHashMap<&str, Vec<SortRef>> = system
            .equations
            .iter()
            .map(|e| (e.name.as_str(), self.sorts_of(&e.parameters)))
            .collect();
        self.with_scope(&system.globals, |it| {
            it.call(&heads, &system.initial.0, &system.initial.1)?;
            for e in &system.equations {
                it.with_scope(&e.parameters, |it| it.predicate(&heads, &e.body))?;
            }
            Ok(())
        })
    }

    fn call(
        &mut self,
        heads: &AHashMap<&str, Vec<SortRef>>,
        name: &str,
        values: &[TermRef],
    ) -> CheckResult<()> {
        let sorts = heads.get(name).ok_or_else(|| format!("`{name}` has no equation"))?;
        self.values(sorts, values, &format!("an argument of `{name}`"))
    }

    fn predicate(
        &mut self,
        heads: &AHashMap<&str, Vec<SortRef>>,
        p: &Predicate,
    ) -> CheckResult<()> {
        stacker::maybe_grow(64 << 10, 1 << 20, || match p {
            Predicate::Const(_) => Ok(()),
            Predicate::Data(e) => self.condition(*e, "a part of a right-hand side"),
            Predicate::Junction(_, parts) => {
                parts.iter().try_for_each(|p| self.predicate(heads, p))
            }
            Predicate::Quantifier(_, variables, body) => {
                self.with_scope(variables, |it| it.predicate(heads, body))
            }
            Predicate::Call(name, values) => self.call(heads, name, values),
        })
    }
}
