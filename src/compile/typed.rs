//! Conversion of a data specification, actions and labels to [`TypedDeclarations`], the contents of
//! a file of typed terms.
//!
//! Operations have the names that mCRL2's binary files give them. One operation may correspond to a
//! term there: a conversion between sorts of numbers is a chain of constructors (`@cInt`,
//! `@cReal`), a set is `@set(f, s)`, the symmetric difference of the finite set `s` and the set of
//! elements that satisfy `f`; a bag likewise. Values are written as the toolset's normal forms:
//! `@fset_cons` in ascending order if both tools order the sort's elements alike, else insertions,
//! which the toolset sorts.
//!
//! Cost: linear; shared closed parts of values are converted once. Invariant: names are valid in
//! the language and variables are not called as operations.

use ahash::{AHashMap, AHashSet};
use mu_base::ids::{OpId, SortId, VarId};
use mu_base::label_time;
use mu_base::{Diagnostic, SourceId, Stage};
use mu_data::engine::{Engine, Program};
use mu_data::expr::{Binder, DataSpec, Equation, Expr, ExprKind};
use mu_data::print;
use mu_data::signature::{Builtin, OpKind};
use mu_data::sort::{SortKind, basic};
use mu_data::typecheck::check_expression;
use mu_lts::typed::{
    self, Action, Container, NumberSort, SortRef, Term, TermRef, TypedDeclarations, TypedPart,
};
use mu_process::labels::{ActionDecl, MultiAction, TIME_STAMP};
use num_bigint::{BigInt, Sign};
use std::sync::Arc;

pub mod process;

/// Converts data, actions, and labels, which are given as text and multi-action. Error: a value or
/// an equation has no typed form.
pub fn typed_declarations(
    data: &DataSpec,
    actions: &[ActionDecl],
    labels: impl Iterator<Item = (String, Arc<MultiAction>)>,
) -> Result<TypedDeclarations, Diagnostic> {
    let mut converter = Converter::new(data);
    converter.declare()?;
    let mut numbers = Vec::new();
    for a in actions {
        if a.name == TIME_STAMP {
            numbers.push(None);
            continue;
        }
        let sorts = a.sorts.iter().map(|s| converter.sort(*s)).collect();
        numbers.push(Some(converter.typed.action(Action { name: a.name.clone(), sorts })));
    }
    converter.values = true;
    let mut times: AHashSet<String> = AHashSet::new();
    for (text, multi) in labels {
        let (text, time) = label_time::split(&text);
        if let Some(time) = time {
            times.insert(time.to_string());
        }
        let texts: Vec<String> = match &multi[..] {
            [] => continue,
            [_] => vec![text.into()],
            // The order in the text may differ.
            several => several
                .iter()
                .map(|(action, arguments)| {
                    part_text(data, &actions[action.index()].name, arguments)
                })
                .collect(),
        };
        for (part, (action, arguments)) in texts.iter().zip(multi.iter()) {
            if converter.typed.knows(part) {
                continue;
            }
            let arguments: Result<Vec<TermRef>, Diagnostic> =
                arguments.iter().map(|a| converter.convert_closed(a)).collect();
            let arguments = arguments?;
            let action = numbers[action.index()].expect("only a time has no declaration");
            converter.typed.note(part, |_| TypedPart { action, arguments });
        }
    }
    for (text, value) in time_values(data, times)? {
        let value = converter.convert_closed(&value)?;
        converter.typed.note_time(&text, value);
    }
    Ok(converter.typed)
}

/// Evaluates the times of labels.
fn time_values(
    data: &DataSpec,
    texts: AHashSet<String>,
) -> Result<Vec<(String, Expr)>, Diagnostic> {
    if texts.is_empty() {
        return Ok(Vec::new());
    }
    let mut data = data.clone();
    let mut times = Vec::new();
    for text in texts {
        let tree = mu_syntax::parse_data(SourceId::default(), &text)?;
        let time = check_expression(&tree, &mut data, Some(basic::REAL))?;
        times.push((text, time));
    }
    let mut engine = Engine::new(Program::compile(&data)?);
    for (_, time) in &mut times {
        let value = engine.from_expr(time)?;
        *time = engine.to_expr_at(&value, basic::REAL);
    }
    Ok(times)
}

/// Returns an action with values as in the text of a label.
fn part_text(data: &DataSpec, name: &str, arguments: &[Expr]) -> String {
    if arguments.is_empty() {
        return name.into();
    }
    let arguments: Vec<String> =
        arguments.iter().map(|e| print::expression(&data.signature, e)).collect();
    format!("{name}({})", arguments.join(", "))
}

struct Converter {
    data: DataSpec,
    typed: TypedDeclarations,
    sorts: AHashMap<SortId, SortRef>,
    /// Names of operations, which variables must not have.
    operations: AHashSet<String>,
    /// Names of the variables in scope. Normal forms number their variables by depth, so one number
    /// may stand for variables of several sorts.
    variables: AHashMap<(VarId, SortId), TermRef>,
    used: AHashSet<String>,
    /// Converted closed terms by node. The entries hold the expressions, so that the nodes stay
    /// alive.
    known: AHashMap<*const mu_data::expr::ExprNode, (Expr, TermRef)>,
    /// The same for open terms, valid until a variable leaves its scope.
    open: AHashMap<*const mu_data::expr::ExprNode, (Expr, TermRef)>,
    /// True if terms are values.
    values: bool,
}

impl Converter {
    fn new(data: &DataSpec) -> Self {
        let data = print::SpecPrinter::new(data).data;
        let operations = data.signature.ops().map(|(_, o)| o.name.clone()).collect();
        Converter {
            data,
            typed: TypedDeclarations::default(),
            sorts: AHashMap::new(),
            operations,
            variables: AHashMap::new(),
            used: AHashSet::new(),
            known: AHashMap::new(),
            open: AHashMap::new(),
            values: false,
        }
    }

    fn named_sort(&mut self, name: &str) -> SortRef {
        self.typed.sort(typed::Sort::Named(name.into()))
    }

    fn sort(&mut self, sort: SortId) -> SortRef {
        if let Some(known) = self.sorts.get(&sort) {
            return *known;
        }
        let kind = self.data.signature.sorts.kind(sort).clone();
        let new = match kind {
            SortKind::Bool
            | SortKind::Pos
            | SortKind::Nat
            | SortKind::Int
            | SortKind::Real
            | SortKind::Named(_) => typed::Sort::Named(self.data.signature.sorts.text(sort)),
            SortKind::List(s) => typed::Sort::Container(Container::List, self.sort(s)),
            SortKind::Set(s) => typed::Sort::Container(Container::Set, self.sort(s)),
            SortKind::Bag(s) => typed::Sort::Container(Container::Bag, self.sort(s)),
            SortKind::FSet(s) => typed::Sort::Container(Container::FSet, self.sort(s)),
            SortKind::FBag(s) => typed::Sort::Container(Container::FBag, self.sort(s)),
            SortKind::Function(domain, range) => typed::Sort::Function(
                domain.iter().map(|s| self.sort(*s)).collect(),
                self.sort(range),
            ),
        };
        let new = self.typed.sort(new);
        self.sorts.insert(sort, new);
        new
    }

    /// Returns an operation of the file's own at a function sort.
    fn function(&mut self, name: &str, domain: &[SortId], range: SortId) -> TermRef {
        let (domain, range) = (domain.iter().map(|s| self.sort(*s)).collect(), self.sort(range));
        let sort = self.typed.sort(typed::Sort::Function(domain, range));
        self.typed.term(Term::Operation(name.into(), sort))
    }

    fn apply(
        &mut self,
        name: &str,
        domain: &[SortId],
        range: SortId,
        arguments: Vec<TermRef>,
    ) -> TermRef {
        let head = self.function(name, domain, range);
        self.typed.term(Term::Apply(head, arguments))
    }

    fn constant(&mut self, name: &str, sort: SortId) -> TermRef {
        let sort = self.sort(sort);
        self.typed.term(Term::Operation(name.into(), sort))
    }

    /// Declares sorts, operations and equations.
    fn declare(&mut self) -> Result<(), Diagnostic> {
        let structures = self.structures();
        for (index, named) in self.data.signature.sorts.named.clone().into_iter().enumerate() {
            let name = self.named_sort(&named.name);
            match structures.get(&index) {
                Some(structure) => {
                    let structure = self.structure(structure);
                    self.typed.aliases.push((name, structure));
                }
                None => {
                    self.typed.declared.push(name);
                    for c in named.constructors {
                        let c = self.operation(c);
                        self.typed.constructors.push(c);
                    }
                }
            }
        }
        for (name, sort) in self.data.signature.aliases.clone() {
            let alias = (self.named_sort(&name), self.sort(sort));
            self.typed.aliases.push(alias);
        }
        let mappings = self
            .data
            .signature
            .ops()
            .filter(|(_, o)| o.kind == OpKind::Mapping)
            .map(|(id, _)| id)
            .collect::<Vec<_>>();
        for m in mappings {
            let m = self.operation(m);
            self.typed.mappings.push(m);
        }
        for e in std::mem::take(&mut self.data.equations) {
            let e = self.equation(&e)?;
            self.typed.equations.push(e);
        }
        Ok(())
    }

    /// Returns the constructors of the structured sorts by sort: name, arguments with their
    /// projections, recogniser.
    fn structures(&self) -> AHashMap<usize, Vec<Structure>> {
        let signature = &self.data.signature;
        let mut projections: AHashMap<(OpId, u32), &str> = AHashMap::new();
        let mut recognisers: AHashMap<OpId, &str> = AHashMap::new();
        for (_, op) in signature.ops() {
            match &op.kind {
                OpKind::Projection(places) => {
                    projections.extend(places.iter().map(|p| (*p, op.name.as_str())))
                }
                OpKind::Recogniser(of) => {
                    recognisers.extend(of.iter().map(|c| (*c, op.name.as_str())))
                }
                _ => {}
            }
        }
        let structure = |c: &OpId| {
            let op = signature.op(*c);
            let arguments = signature.domain_range(op.sort).0.iter().zip(0..);
            Structure {
                name: op.name.clone(),
                arguments: arguments
                    .map(|(s, i)| (projections.get(&(*c, i)).map(|p| (*p).to_owned()), *s))
                    .collect(),
                recogniser: recognisers.get(c).map(|r| (*r).to_owned()),
            }
        };
        let structured = signature.sorts.named.iter().enumerate().filter(|(_, n)| n.structured);
        structured.map(|(i, n)| (i, n.constructors.iter().map(structure).collect())).collect()
    }

    fn structure(&mut self, constructors: &[Structure]) -> SortRef {
        let mut all = Vec::new();
        for c in constructors {
            let arguments =
                c.arguments.iter().map(|(name, sort)| (name.clone(), self.sort(*sort))).collect();
            all.push(typed::Constructor {
                name: c.name.clone(),
                arguments,
                recogniser: c.recogniser.clone(),
            });
        }
        self.typed.sort(typed::Sort::Struct(all))
    }

    fn operation(&mut self, op: OpId) -> TermRef {
        let (name, sort) =
            (self.data.signature.op(op).name.clone(), self.data.signature.op(op).sort);
        self.constant(&name, sort)
    }

    fn equation(&mut self, e: &Equation) -> Result<typed::Equation, Diagnostic> {
        self.variables.clear();
        self.used.clear();
        self.open.clear();
        let variables = e.vars.iter().map(|v| self.declare_variable(*v, None)).collect();
        let condition = match &e.condition {
            Some(c) => self.term(c)?,
            None => self.constant("true", basic::BOOL),
        };
        let (left, right) = (self.term(&e.lhs)?, self.term(&e.rhs)?);
        Ok(typed::Equation { variables, condition, left, right })
    }

    /// Gives a variable a name, at its sort or the given one.
    fn declare_variable(&mut self, var: VarId, sort: Option<SortId>) -> TermRef {
        let signature = &self.data.signature;
        // Arguments of enumerated functions are in no signature.
        let own = (var.index() < signature.var_count()).then(|| signature.var(var));
        let base = own.map_or_else(|| "x".into(), |v| valid(&v.name));
        let of_sort = sort.or(own.map(|v| v.sort)).unwrap_or(basic::BOOL);
        let key = (var, own.map_or(of_sort, |v| v.sort));
        if let Some(known) = self.variables.get(&key) {
            return *known;
        }
        let name =
            print::unused_name(&base, |n| self.used.contains(n) || self.operations.contains(n));
        self.used.insert(name.clone());
        let sort = self.sort(of_sort);
        let term = self.typed.term(Term::Variable(name, sort));
        self.variables.insert(key, term);
        term
    }

    /// Converts a closed term. Parts of values are often shared.
    fn convert_closed(&mut self, e: &Expr) -> Result<TermRef, Diagnostic> {
        self.variables.clear();
        self.used.clear();
        self.open.clear();
        self.term(e)
    }

    fn term(&mut self, e: &Expr) -> Result<TermRef, Diagnostic> {
        let shared = Arc::strong_count(&e.0) > 1 && matches!(e.kind, ExprKind::Apply(..));
        let closed = self.variables.is_empty() && self.values;
        let known = |it: &Self| {
            if closed { it.known.get(&Arc::as_ptr(&e.0)) } else { it.open.get(&Arc::as_ptr(&e.0)) }
                .map(|k| k.1)
        };
        if shared && let Some(known) = known(self) {
            return Ok(known);
        }
        let term = stacker::maybe_grow(128 << 10, 4 << 20, || self.step(e))?;
        if shared {
            // A binder in the term may have named its variables in the meantime: the term is the
            // same.
            let table = if closed { &mut self.known } else { &mut self.open };
            table.insert(Arc::as_ptr(&e.0), (e.clone(), term));
        }
        Ok(term)
    }

    fn terms(&mut self, all: &[Expr]) -> Result<Vec<TermRef>, Diagnostic> {
        all.iter().map(|e| self.term(e)).collect()
    }

    fn step(&mut self, e: &Expr) -> Result<TermRef, Diagnostic> {
        match &e.kind {
            ExprKind::Var(v) => {
                let signature = &self.data.signature;
                let declared = v.index() < signature.var_count();
                let sort = if declared { signature.var(*v).sort } else { e.sort };
                let known = self.variables.get(&(*v, sort)).copied();
                known.ok_or_else(|| no_form("an unbound variable"))
            }
            ExprKind::Number(value) => {
                number_sort(e.sort).map(|sort| self.typed.term(Term::Number(value.clone(), sort)))
            }
            ExprKind::Op(op) => match self.data.signature.op(*op).kind {
                OpKind::Builtin(builtin) => self.convert_unapplied(e, builtin),
                _ => Ok(self.operation(*op)),
            },
            ExprKind::Apply(head, args) => match e.as_builtin(&self.data.signature) {
                Some((builtin, args)) => self.builtin(e, head, builtin, args),
                None => {
                    let (head, args) = (self.term(head)?, self.terms(args)?);
                    Ok(self.typed.term(Term::Apply(head, args)))
                }
            },
            ExprKind::Bind(binder, vars, body) => {
                let sorts = print::sorts_of_bound(&self.data.signature, e);
                let vars: Vec<TermRef> = vars
                    .iter()
                    .zip(sorts)
                    .map(|(v, s)| self.declare_variable(*v, Some(s)))
                    .collect();
                let body = self.term(body)?;
                let kind = match binder {
                    Binder::Forall => typed::Binder::Forall,
                    Binder::Exists => typed::Binder::Exists,
                    Binder::Lambda | Binder::SetComprehension | Binder::BagComprehension => {
                        typed::Binder::Lambda
                    }
                };
                let bound = self.typed.term(Term::Bind(kind, vars, body));
                match binder {
                    Binder::SetComprehension | Binder::BagComprehension => {
                        self.collection(e.sort, Some(bound), None)
                    }
                    Binder::Lambda | Binder::Forall | Binder::Exists => Ok(bound),
                }
            }
            ExprKind::Where(body, definitions) => {
                let values: Result<Vec<TermRef>, Diagnostic> =
                    definitions.iter().map(|d| self.term(&d.1)).collect();
                let vars: Vec<TermRef> =
                    definitions.iter().map(|d| self.declare_variable(d.0, None)).collect();
                let body = self.term(body)?;
                Ok(self.typed.term(Term::Where(body, vars.into_iter().zip(values?).collect())))
            }
        }
    }

    /// Returns a set or bag made of a function and a finite part, either of which may be missing.
    fn collection(
        &mut self,
        sort: SortId,
        function: Option<TermRef>,
        finite: Option<TermRef>,
    ) -> Result<TermRef, Diagnostic> {
        let (name, none, empty, element, range, of) = match *self.data.signature.sorts.kind(sort) {
            SortKind::Set(s) => ("@set", "@false_", "{}", s, basic::BOOL, SortKind::FSet(s)),
            SortKind::Bag(s) => ("@bag", "@zero_", "{:}", s, basic::NAT, SortKind::FBag(s)),
            _ => return Err(Diagnostic::internal("a collection has a sort of sets or bags")),
        };
        let sorts = &mut self.data.signature.sorts;
        let (tests, finitely) =
            (sorts.intern(SortKind::Function([element].into(), range)), sorts.intern(of));
        let function = function.unwrap_or_else(|| self.constant(none, tests));
        let finite = finite.unwrap_or_else(|| self.constant(empty, finitely));
        Ok(self.apply(name, &[tests, finitely], sort, vec![function, finite]))
    }

    fn is_finite_collection(&self, sort: SortId) -> bool {
        matches!(self.data.signature.sorts.kind(sort), SortKind::FSet(_) | SortKind::FBag(_))
    }

    /// Converts a built-in operation without arguments: a constant or a function.
    fn convert_unapplied(&mut self, e: &Expr, builtin: Builtin) -> Result<TermRef, Diagnostic> {
        let (domain, range) = self.data.signature.domain_range(e.sort);
        if domain.is_empty() {
            return match builtin {
                Builtin::EmptySet | Builtin::EmptyBag if !self.is_finite_collection(e.sort) => {
                    self.collection(e.sort, None, None)
                }
                _ => Ok(self.constant(builtin.name(), e.sort)),
            };
        }
        // A lambda expression, since some operations correspond to terms.
        let domain = domain.to_vec();
        let vars: Vec<VarId> =
            domain.iter().map(|s| self.data.signature.fresh_var("x", *s)).collect();
        let args: Vec<Expr> = vars.iter().map(|v| Expr::var(&self.data.signature, *v)).collect();
        let body = Expr::new(ExprKind::Apply(e.clone(), args), range, e.span);
        self.step(&Expr::new(ExprKind::Bind(Binder::Lambda, vars, body), e.sort, e.span))
    }

    fn builtin(
        &mut self,
        e: &Expr,
        head: &Expr,
        builtin: Builtin,
        args: &[Expr],
    ) -> Result<TermRef, Diagnostic> {
        use Builtin::*;
        match (builtin, args) {
            (PosToInt | PosToReal | NatToInt | NatToReal | IntToReal, [a]) => {
                let inner = self.term(a)?;
                Ok(self.lift(inner, a.sort, e.sort))
            }
            (Divide, [a, b]) if self.values => match (&a.kind, &b.kind) {
                (ExprKind::Number(above), ExprKind::Number(below))
                    if below.sign() == Sign::Plus =>
                {
                    let above = self.typed.term(Term::Number(above.clone(), NumberSort::Int));
                    let below = self.typed.term(Term::Number(below.clone(), NumberSort::Pos));
                    Ok(self.apply(
                        "@cReal",
                        &[basic::INT, basic::POS],
                        basic::REAL,
                        vec![above, below],
                    ))
                }
                _ => self.plain(head, builtin, args),
            },
            (Cons | SetInsert | BagInsert, _) => self.chain(e, builtin),
            (FSetToSet | FBagToBag, [a]) => {
                let finite = self.term(a)?;
                self.collection(e.sort, None, Some(finite))
            }
            (FSetToFBag | FBagToFSet, _) => Err(no_form("a conversion of finite sets and bags")),
            (Update, [f, ..]) if self.values => self.updates(e, f.sort),
            _ => self.plain(head, builtin, args),
        }
    }

    /// Converts an operation that has the same name in the toolset.
    fn plain(
        &mut self,
        head: &Expr,
        builtin: Builtin,
        args: &[Expr],
    ) -> Result<TermRef, Diagnostic> {
        let (args, head) = (self.terms(args)?, self.constant(builtin.name(), head.sort));
        Ok(self.typed.term(Term::Apply(head, args)))
    }

    /// Converts a number to a larger sort.
    fn lift(&mut self, mut inner: TermRef, from: SortId, to: SortId) -> TermRef {
        if from == basic::POS {
            inner = self.apply("Pos2Nat", &[basic::POS], basic::NAT, vec![inner]);
        }
        if from != basic::INT {
            inner = self.apply("@cInt", &[basic::NAT], basic::INT, vec![inner]);
        }
        if to == basic::REAL {
            let one = self.typed.term(Term::Number(BigInt::from(1), NumberSort::Pos));
            inner = self.apply("@cReal", &[basic::INT, basic::POS], basic::REAL, vec![inner, one]);
        }
        inner
    }

    /// Converts a list, set or bag that is built element by element.
    fn chain(&mut self, e: &Expr, link: Builtin) -> Result<TermRef, Diagnostic> {
        let (mut links, mut rest) = (Vec::new(), e.clone());
        while let Some((builtin, args)) = rest.as_builtin(&self.data.signature)
            && builtin == link
            && let Some((next, own)) = args.split_last()
        {
            links.push(own.to_vec());
            rest = next.clone();
        }
        let mut out = self.term(&rest)?;
        for own in links.into_iter().rev() {
            out = match link {
                Builtin::Cons => {
                    let head = self.term(&own[0])?;
                    self.apply("|>", &[own[0].sort, e.sort], e.sort, vec![head, out])
                }
                _ => self.insert(e.sort, &own, out)?,
            };
        }
        Ok(out)
    }

    /// Inserts an element, with its count in a bag, into a set or bag.
    fn insert(&mut self, sort: SortId, own: &[Expr], rest: TermRef) -> Result<TermRef, Diagnostic> {
        let (element, finite) = match *self.data.signature.sorts.kind(sort) {
            SortKind::FSet(s) | SortKind::FBag(s) => (s, sort),
            SortKind::Set(s) => (s, self.data.signature.sorts.intern(SortKind::FSet(s))),
            SortKind::Bag(s) => (s, self.data.signature.sorts.intern(SortKind::FBag(s))),
            _ => return Err(Diagnostic::internal("elements are inserted into sets and bags only")),
        };
        let one = self.term(&own[0])?;
        let into = if finite == sort {
            rest
        } else {
            self.constant(if own.len() == 1 { "{}" } else { "{:}" }, finite)
        };
        let in_order = self.values && self.is_ordered(element);
        let finitely = match own.get(1) {
            None => {
                let name = if in_order { "@fset_cons" } else { "@fset_insert" };
                self.apply(name, &[element, finite], finite, vec![one, into])
            }
            Some(count) => match &count.kind {
                ExprKind::Number(n) if in_order && n.sign() == Sign::Plus => {
                    let n = self.typed.term(Term::Number(n.clone(), NumberSort::Pos));
                    self.apply(
                        "@fbag_cons",
                        &[element, basic::POS, finite],
                        finite,
                        vec![one, n, into],
                    )
                }
                _ => {
                    let n = self.term(count)?;
                    self.apply(
                        "@fbag_cinsert",
                        &[element, basic::NAT, finite],
                        finite,
                        vec![one, n, into],
                    )
                }
            },
        };
        if finite == sort {
            return Ok(finitely);
        }
        let added = self.collection(sort, None, Some(finitely))?;
        Ok(self.apply("+", &[sort, sort], sort, vec![added, rest]))
    }

    /// Converts function updates; the last argument is innermost.
    fn updates(&mut self, e: &Expr, sort: SortId) -> Result<TermRef, Diagnostic> {
        let (mut links, mut base) = (Vec::new(), e.clone());
        while let Some((Builtin::Update, [f, key, value])) = base.as_builtin(&self.data.signature) {
            links.push((key.clone(), value.clone()));
            base = f.clone();
        }
        let (domain, range) = self.data.signature.domain_range(sort);
        let (key_sort, range) = (domain[0], range);
        let name = if self.is_ordered(key_sort) { "@func_update_stable" } else { "@func_update" };
        let mut out = self.term(&base)?;
        // The outermost update has the greatest key.
        for (key, value) in links {
            let (key, value) = (self.term(&key)?, self.term(&value)?);
            out = self.apply(name, &[sort, key_sort, range], sort, vec![out, key, value]);
        }
        Ok(out)
    }

    /// True if elements of a sort certainly have the same order in the toolset.
    fn is_ordered(&self, sort: SortId) -> bool {
        let signature = &self.data.signature;
        match signature.sorts.kind(sort) {
            SortKind::Bool | SortKind::Pos | SortKind::Nat | SortKind::Int | SortKind::Real => true,
            SortKind::Named(n) => {
                let named = &signature.sorts.named[*n as usize];
                named.structured && named.constructors.iter().all(|c| signature.op(*c).sort == sort)
            }
            _ => false,
        }
    }
}

/// Constructor of a structured sort.
struct Structure {
    name: String,
    arguments: Vec<(Option<String>, SortId)>,
    recogniser: Option<String>,
}

fn number_sort(sort: SortId) -> Result<NumberSort, Diagnostic> {
    match sort {
        basic::POS => Ok(NumberSort::Pos),
        basic::NAT => Ok(NumberSort::Nat),
        basic::INT => Ok(NumberSort::Int),
        basic::REAL => Ok(NumberSort::Real),
        _ => Err(Diagnostic::internal("a number has a sort of numbers")),
    }
}

/// Returns a valid identifier derived from a variable's name.
fn valid(name: &str) -> String {
    let valid: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '\'' { c } else { '_' })
        .collect();
    if valid.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        valid
    } else {
        format!("x{valid}")
    }
}

fn no_form(what: &str) -> Diagnostic {
    Diagnostic::new(Stage::Unsupported, format!("{what} has no typed form"))
}
