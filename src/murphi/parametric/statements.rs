//! Statements: the paths through them, with the writes of each.

use super::path::{Cell, Literal, Path, Process, Root, Selector, Target, Value, Write};
use super::symbols::Part;
use super::{Forks, Result, Translator, reject};
use crate::typed::{
    Alias, AliasTarget, Argument, Claim, Domain, Expr, ExprKind, FunctionId, LocalId, LocalKind,
    Place, Put, Stmt, StmtKind, TypeId, TypeKind,
};
use mu_base::{Diagnostic, Span, narrow};

/// Largest number of nested calls.
const MAX_CALLS: u32 = 40;

pub(super) const LOCAL_ARRAY: &str = "a local array over the scalarset";

const WRITES_LOCAL: &str = "a loop over the scalarset that writes a local variable";

/// Largest number of rounds of a `while`.
const MAX_ROUNDS: u32 = 100;

/// End of statements.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Flow {
    /// Their last statement.
    End,
    /// `return`.
    Return(Option<Value>),
}

impl Translator<'_> {
    /// Executes statements.
    pub(super) fn execute(&mut self, path: Path, all: &[Stmt]) -> Forks<Flow> {
        let mut open = vec![(path, Flow::End)];
        for stmt in all {
            let mut next = Vec::new();
            for (path, flow) in open {
                match flow {
                    Flow::Return(_) => next.push((path, flow)),
                    Flow::End => {
                        let run = || self.statement(path, stmt);
                        next.extend(stacker::maybe_grow(128 * 1024, 1024 * 1024, run)?);
                    }
                }
            }
            open = next;
        }
        Ok(open)
    }
    fn statement(&mut self, path: Path, stmt: &Stmt) -> Forks<Flow> {
        self.count(stmt.span)?;
        let ends = |paths: Vec<Path>| paths.into_iter().map(|path| (path, Flow::End)).collect();
        let no_proof =
            |what: &str| reject(stmt.span, format!("{what} has no proof for every size"));
        match &stmt.kind {
            StmtKind::Assign { target, value } => {
                let mut out = Vec::new();
                for (path, to) in self.target(path, target)? {
                    out.extend(self.assign(path, &to, target.ty, value)?);
                }
                Ok(ends(out))
            }
            StmtKind::Undefine(place) => Ok(ends(self.fill(path, place, false)?)),
            StmtKind::Clear(place) => Ok(ends(self.fill(path, place, true)?)),
            StmtKind::If { clauses, otherwise } => {
                let (mut out, mut open) = (Vec::new(), vec![path]);
                for clause in clauses {
                    let mut next = Vec::new();
                    for path in open {
                        for (path, is) in self.condition(path, &clause.condition)? {
                            match is {
                                true => out.extend(self.execute(path, &clause.body)?),
                                false => next.push(path),
                            }
                        }
                    }
                    open = next;
                }
                for path in open {
                    out.extend(self.execute(path, otherwise)?);
                }
                Ok(out)
            }
            StmtKind::Switch { value, cases, otherwise } => {
                let mut out = Vec::new();
                let mut open = self.value(path, value)?;
                for case in cases {
                    for tree in &case.matches {
                        let mut next = Vec::new();
                        for (path, value) in open {
                            for (path, other) in self.value(path, tree)? {
                                for (path, is) in self.equal(path, value.clone(), other)? {
                                    match is {
                                        true => out.extend(self.execute(path, &case.body)?),
                                        false => next.push((path, value.clone())),
                                    }
                                }
                            }
                        }
                        open = next;
                    }
                }
                for (path, _) in open {
                    out.extend(self.execute(path, otherwise)?);
                }
                Ok(out)
            }
            StmtKind::For { local, domain, body } => self.repeat(path, *local, domain, body),
            StmtKind::While { condition, body } => {
                let (mut out, mut open) = (Vec::new(), vec![path]);
                let mut rounds = 0;
                while !open.is_empty() {
                    rounds += 1;
                    if rounds > MAX_ROUNDS {
                        return no_proof("a `while` of more than 100 rounds");
                    }
                    let mut next = Vec::new();
                    for path in open {
                        for (path, is) in self.condition(path, condition)? {
                            if !is {
                                out.push((path, Flow::End));
                                continue;
                            }
                            for (path, flow) in self.execute(path, body)? {
                                match flow {
                                    Flow::End => next.push(path),
                                    Flow::Return(_) => out.push((path, flow)),
                                }
                            }
                        }
                    }
                    open = next;
                }
                Ok(out)
            }
            StmtKind::Return(None) => Ok(vec![(path, Flow::Return(None))]),
            StmtKind::Return(Some(value)) => {
                if !self.model.types.is_simple(value.ty) {
                    return no_proof("a result that is an array or record");
                }
                let all = self.copied_value(path, value)?;
                Ok(all.into_iter().map(|(path, value)| (path, Flow::Return(Some(value)))).collect())
            }
            StmtKind::Put(Put::Text(_)) => Ok(vec![(path, Flow::End)]),
            StmtKind::Put(Put::Value(value)) => Ok(ends(self.put(path, value)?)),
            StmtKind::Error(_) => {
                self.fail(&path, stmt.span);
                Ok(Vec::new())
            }
            StmtKind::Claim { number, condition } => {
                let claim = self.model.claims[*number as usize].claim;
                let mut out = Vec::new();
                for (path, is) in self.condition(path, condition)? {
                    match claim {
                        Claim::Assert if !is => self.fail(&path, stmt.span),
                        Claim::Assume if !is => {}
                        _ => out.push(path),
                    }
                }
                Ok(ends(out))
            }
            StmtKind::Alias { aliases, body } => {
                let mut paths = vec![path];
                for alias in aliases {
                    let mut next = Vec::new();
                    for path in paths {
                        next.extend(self.alias(path, alias)?);
                    }
                    paths = next;
                }
                let mut out = Vec::new();
                for path in paths {
                    out.extend(self.execute(path, body)?);
                }
                Ok(out)
            }
            StmtKind::Call(function, arguments) => {
                let all = self.call(path, *function, arguments, stmt.span)?;
                Ok(all.into_iter().map(|(path, _)| (path, Flow::End)).collect())
            }
            StmtKind::MultisetAdd { .. }
            | StmtKind::MultisetRemove { .. }
            | StmtKind::MultisetRemovePredicate { .. } => no_proof("a multiset"),
        }
    }
    /// Evaluates the value of a `put`. A place may be undefined.
    fn put(&mut self, path: Path, value: &Expr) -> Result<Vec<Path>> {
        Ok(match &value.kind {
            ExprKind::Read(place) => {
                self.target(path, place)?.into_iter().map(|(path, _)| path).collect()
            }
            _ => self.value(path, value)?.into_iter().map(|(path, _)| path).collect(),
        })
    }
    /// Binds an alias.
    pub(super) fn alias(&mut self, path: Path, alias: &Alias) -> Result<Vec<Path>> {
        let mut out = Vec::new();
        match &alias.target {
            AliasTarget::Place(place) => {
                for (mut path, target) in self.target(path, place)? {
                    path.places.insert((self.frame, alias.local), target);
                    out.push(path);
                }
            }
            AliasTarget::Value(value) => {
                for (mut path, value) in self.value(path, value)? {
                    path.set(self.frame, alias.local, Vec::new(), value);
                    out.push(path);
                }
            }
        }
        Ok(out)
    }
    /// Stores the value of an expression in a place of a type.
    fn assign(&mut self, path: Path, to: &Target, ty: TypeId, value: &Expr) -> Result<Vec<Path>> {
        let mut out = Vec::new();
        if self.model.types.is_simple(ty) {
            for (path, content) in self.copied_value(path, value)? {
                for (path, content) in self.convert_to_type(path, ty, content, value.span)? {
                    out.push(self.write_place(path, to, content)?);
                }
            }
            return Ok(out);
        }
        let ExprKind::Read(from) = &value.kind else {
            return reject(value.span, "an array or record that is no place");
        };
        for (path, from) in self.target(path, from)? {
            let mut paths = vec![path];
            for (parts, ty) in self.leaves(ty, value.span)? {
                if parts.contains(&Part::Process) {
                    return reject(value.span, "a copy of an array over the scalarset");
                }
                let (from, to) = (below(&from, &parts), below(to, &parts));
                let mut next = Vec::new();
                for path in paths {
                    for (path, content) in self.content(path, &from, value.span)? {
                        for (path, content) in
                            self.convert_to_type(path, ty, content, value.span)?
                        {
                            next.push(self.write_place(path, &to, content)?);
                        }
                    }
                }
                paths = next;
            }
            out.extend(paths);
        }
        Ok(out)
    }
    /// Returns a value as one of a type; numbers outside of it fail.
    fn convert_to_type(
        &mut self,
        path: Path,
        ty: TypeId,
        value: Value,
        span: Span,
    ) -> Forks<Value> {
        let types = &self.model.types;
        if matches!(types.kind(ty), TypeKind::Integer) {
            return Ok(vec![(path, value)]);
        }
        match &value {
            Value::Undefined | Value::Process(_) => Ok(vec![(path, value)]),
            Value::Constant(number) => {
                if types.position(ty, *number).is_some() {
                    return Ok(vec![(path, value)]);
                }
                self.fail(&path, span);
                Ok(Vec::new())
            }
            Value::Cell(cell) => {
                let from = self.symbols.all[cell.symbol as usize].ty;
                if ty != self.node && types.parts(from) == types.parts(ty) {
                    return Ok(vec![(path, value)]);
                }
                let mut out = Vec::new();
                let mut blank = path.clone();
                if self.assume(&mut blank, Literal::Is(cell.clone(), Value::Undefined, true)) {
                    out.push((blank, Value::Undefined));
                }
                let mut path = path;
                if !self.assume(&mut path, Literal::Is(cell.clone(), Value::Undefined, false)) {
                    return Ok(out);
                }
                if ty == self.node {
                    out.push((path, value));
                    return Ok(out);
                }
                for (path, number) in self.constant(path, value.clone(), span)? {
                    out.extend(self.convert_to_type(path, ty, Value::Constant(number), span)?);
                }
                Ok(out)
            }
        }
    }
    /// Writes a simple place.
    fn write_place(&mut self, mut path: Path, to: &Target, value: Value) -> Result<Path> {
        match to.root {
            Root::Global(_) => {
                let cell = self.cell(to)?;
                let cases = vec![(Vec::new(), Some(value))];
                path.writes.push(Write {
                    symbol: cell.symbol,
                    args: cell.args,
                    bound: Vec::new(),
                    cases,
                });
            }
            Root::Local(frame, local) => {
                if to.selectors.iter().any(|s| s.process().is_some()) {
                    return reject(Span::default(), LOCAL_ARRAY);
                }
                self.written_frames.push(frame);
                path.set(frame, local, to.selectors.clone(), value);
            }
        }
        Ok(path)
    }
    /// Makes all parts of a place undefined, or their first values.
    fn fill(&mut self, path: Path, place: &Place, is_first: bool) -> Result<Vec<Path>> {
        let mut out = Vec::new();
        for (mut path, target) in self.target(path, place)? {
            for (parts, ty) in self.leaves(place.ty, place.span)? {
                let first = || self.model.types.value_at(ty, 0).map(Value::Constant);
                let value = match is_first {
                    true => {
                        first().ok_or_else(|| Diagnostic::internal("a type without a value"))?
                    }
                    false => Value::Undefined,
                };
                let to = below(&target, &parts);
                if !parts.contains(&Part::Process) {
                    path = self.write_place(path, &to, value)?;
                    continue;
                }
                if let Root::Local(..) = target.root {
                    return reject(place.span, LOCAL_ARRAY);
                }
                let mut bound = Vec::new();
                let mut selectors = target.selectors.clone();
                for part in &parts {
                    selectors.push(match part {
                        Part::Field(f) => Selector::Field(*f),
                        Part::Constant(c) => Selector::Constant(*c),
                        Part::Process => {
                            bound.push(self.bound);
                            self.bound += 1;
                            Selector::Process(Process::Bound(self.bound - 1))
                        }
                    });
                }
                let cell = self.cell(&Target { root: target.root, selectors })?;
                let cases = vec![(Vec::new(), Some(value))];
                path.writes.push(Write { symbol: cell.symbol, args: cell.args, bound, cases });
            }
            out.push(path);
        }
        Ok(out)
    }
    /// Returns the simple parts of a type.
    fn leaves(&self, ty: TypeId, span: Span) -> Result<Vec<(Vec<Part>, TypeId)>> {
        let types = &self.model.types;
        let (mut out, mut open) = (Vec::new(), vec![(Vec::new(), ty)]);
        while let Some((parts, ty)) = open.pop() {
            let with = |part: Part| {
                let mut parts: Vec<Part> = parts.clone();
                parts.push(part);
                parts
            };
            match types.kind(ty) {
                TypeKind::Array { index, element } if *index == self.node => {
                    open.push((with(Part::Process), *element));
                }
                TypeKind::Array { index, element } => {
                    for value in super::symbols::values(types, *index, self.node, span)? {
                        open.push((with(Part::Constant(value)), *element));
                    }
                }
                TypeKind::Record { fields } => {
                    for (at, field) in fields.iter().enumerate() {
                        open.push((with(Part::Field(narrow::index(at))), field.ty));
                    }
                }
                TypeKind::Multiset { .. } | TypeKind::Position { .. } => {
                    return reject(span, "a multiset has no proof for every size");
                }
                _ => out.push((parts, ty)),
            }
        }
        Ok(out)
    }
    /// Executes a call. Returns its result on each path.
    pub(super) fn call(
        &mut self,
        path: Path,
        function: FunctionId,
        arguments: &[Argument],
        span: Span,
    ) -> Forks<Option<Value>> {
        if self.depth == MAX_CALLS {
            return reject(span, format!("more than {MAX_CALLS} nested calls"));
        }
        let model = self.model;
        let function = &model.functions[function.index()];
        let frame = self.frames;
        self.frames += 1;
        let mut paths = vec![path];
        for (at, argument) in arguments.iter().enumerate() {
            let local = LocalId::new(at);
            let to = Target { root: Root::Local(frame, local), selectors: Vec::new() };
            let of = function.frame.get(local);
            let mut next = Vec::new();
            for path in paths {
                match argument {
                    Argument::Value(value) if of.kind == LocalKind::Reference => {
                        return reject(value.span, "a value as a reference");
                    }
                    Argument::Value(value) => next.extend(self.assign(path, &to, of.ty, value)?),
                    Argument::Place(place) => {
                        for (mut path, target) in self.target(path, place)? {
                            path.places.insert((frame, local), target);
                            next.push(path);
                        }
                    }
                    Argument::Undefined(_) => next.push(path),
                }
            }
            paths = next;
        }
        let caller = std::mem::replace(&mut self.frame, frame);
        self.depth += 1;
        let mut out = Vec::new();
        for path in paths {
            for (path, flow) in self.execute(path, &function.body)? {
                let results = match (flow, function.result) {
                    (Flow::Return(Some(value)), Some(ty)) => {
                        let all = self.convert_to_type(path, ty, value, span)?;
                        all.into_iter().map(|(path, value)| (path, Some(value))).collect()
                    }
                    (_, None) => vec![(path, None)],
                    (_, Some(_)) => {
                        self.fail(&path, span);
                        Vec::new()
                    }
                };
                for (mut path, value) in results {
                    path.locals.retain(|key, _| key.0 != frame);
                    path.unknown.retain(|key| key.0 != frame);
                    path.places.retain(|key, _| key.0 != frame);
                    out.push((path, value));
                }
            }
        }
        self.depth -= 1;
        self.frame = caller;
        Ok(out)
    }
    fn repeat(
        &mut self,
        path: Path,
        local: LocalId,
        domain: &Domain,
        body: &[Stmt],
    ) -> Forks<Flow> {
        if self.is_node(domain) {
            let path = self.for_each_process(path, local, body)?;
            return Ok(vec![(path, Flow::End)]);
        }
        let mut out = Vec::new();
        for (path, values) in self.values(path, domain)? {
            let mut open = vec![(path, Flow::End)];
            for value in values {
                let mut next = Vec::new();
                for (mut path, flow) in open {
                    if flow != Flow::End {
                        out.push((path, flow));
                        continue;
                    }
                    path.set(self.frame, local, Vec::new(), Value::Constant(value));
                    next.extend(self.execute(path, body)?);
                }
                open = next;
            }
            out.extend(open);
        }
        Ok(out)
    }
    /// Executes a loop over the scalarset in which each iteration writes only cells of its element.
    fn for_each_process(&mut self, path: Path, local: LocalId, body: &[Stmt]) -> Result<Path> {
        let span = body.first().map_or(Span::default(), |s| s.span);
        if self.scope == 0 {
            // The failures of an iteration, for each parameter and another element.
            for (mut path, process) in path.clone().with_each_process() {
                path.set(self.frame, local, Vec::new(), Value::Process(process));
                self.execute(path, body)?;
            }
        }
        let bound = self.bound;
        self.bound += 1;
        let was_silent = std::mem::replace(&mut self.is_silent, true);
        let (reads, blanks) = (self.reads.len(), self.blanks.len());
        self.scope += 1;
        self.loops += 1;
        let mut inner = path.clone();
        inner.set(self.frame, local, Vec::new(), Value::Process(Process::Bound(bound)));
        let ends = self.execute(inner, body);
        self.scope -= 1;
        self.loops -= 1;
        self.is_silent = was_silent;
        let ends = ends?;
        let mut unknown = path.unknown.clone();
        let before = path.writes.len();
        let mut patterns: Vec<(u32, Vec<Process>, Vec<u32>)> = Vec::new();
        for (end, flow) in &ends {
            if *flow != Flow::End {
                return reject(span, "`return` in a loop over the scalarset");
            }
            let own = (self.frame, local);
            let others = end.locals.iter().filter(|(key, _)| (key.0, key.1) != own);
            for (key, value) in others {
                match path.locals.get(key) {
                    Some(old) if old == value => {}
                    Some(_) => return reject(span, WRITES_LOCAL),
                    None => {
                        unknown.insert(key.clone());
                    }
                }
            }
            let news = end.unknown.difference(&path.unknown);
            unknown.extend(news.cloned());
            if self.blanks[blanks..].iter().any(|key| unknown.contains(key)) {
                return reject(span, WRITES_LOCAL);
            }
            for write in &end.writes[before..] {
                let pattern = (write.symbol, write.args.clone(), write.bound.clone());
                if !patterns.contains(&pattern) {
                    patterns.push(pattern);
                }
            }
        }
        for (symbol, args, inner) in &patterns {
            let of = |p: &&(u32, Vec<Process>, Vec<u32>)| p.0 == *symbol;
            let is_own = args.iter().filter(|a| **a == Process::Bound(bound)).count() == 1
                && patterns.iter().filter(of).count() == 1;
            // Reads of what other iterations write.
            let is_foreign = |c: &Cell| {
                let is_other = |(a, b): (&Process, &Process)| match b {
                    Process::Bound(n) if inner.contains(n) => !matches!(a, Process::Bound(_)),
                    _ => a != b && *b == Process::Bound(bound),
                };
                c.symbol == *symbol && c.args.iter().zip(args).any(is_other)
            };
            if !is_own || self.reads[reads..].iter().any(is_foreign) {
                let text = "a loop over the scalarset with an iteration that writes more than cells of its own";
                return reject(span, text);
            }
        }
        let mut path = path;
        let known = path.literals.clone();
        for (symbol, args, inner) in patterns {
            let mut cases = Vec::new();
            for (end, _) in &ends {
                let news = |l: &&Literal| !known.contains(l);
                let conditions: Vec<Literal> = end.literals.iter().filter(news).cloned().collect();
                let last = end.writes[before..].iter().rev();
                let mut own = last.filter(|w| w.symbol == symbol);
                match own.next() {
                    None => cases.push((conditions, None)),
                    Some(write) if own.next().is_some() && write.cases.len() > 1 => {
                        return reject(span, "two loops over the scalarset in another one");
                    }
                    Some(write) => {
                        for (more, value) in &write.cases {
                            let all = conditions.iter().chain(more).cloned().collect();
                            cases.push((all, value.clone()));
                        }
                    }
                }
            }
            let mut all = vec![bound];
            all.extend(inner);
            path.writes.push(Write { symbol, args, bound: all, cases });
        }
        path.unknown = unknown;
        Ok(path)
    }
    /// Notes the symbols that a step may leave undefined.
    pub(super) fn note_undefined(&mut self, path: &Path) {
        for write in &path.writes {
            for (conditions, value) in &write.cases {
                let is_undefined = match value {
                    Some(Value::Undefined) => true,
                    Some(Value::Cell(cell)) => {
                        let mut known = path.clone();
                        known.literals.extend(conditions.iter().cloned());
                        self.undefined.contains(&cell.symbol) && !known.is_defined(cell)
                    }
                    _ => false,
                };
                if is_undefined {
                    self.undefined.insert(write.symbol);
                }
            }
        }
    }
    /// Notes the symbols that a start state leaves undefined.
    pub(super) fn define(&mut self, path: &Path) -> Result<()> {
        for symbol in 0..narrow::index(self.symbols.all.len()) {
            let cell = Cell { symbol, args: self.bound_indices(symbol) };
            let ends = self.content_before(path.clone(), &cell, path.writes.len())?;
            if ends.iter().any(|(_, value)| *value == Value::Undefined) {
                self.undefined.insert(symbol);
            }
        }
        Ok(())
    }
}

/// Returns a part of a place.
fn below(target: &Target, parts: &[Part]) -> Target {
    let mut target = target.clone();
    target.selectors.extend(parts.iter().filter_map(|part| match part {
        Part::Field(f) => Some(Selector::Field(*f)),
        Part::Constant(c) => Some(Selector::Constant(*c)),
        Part::Process => None,
    }));
    target
}
