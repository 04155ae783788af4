//! Expressions: the paths on which they have a value, and the failures of their evaluation.

use super::path::{Cell, Literal, Path, Process, Root, Selector, Target, Universal, Value, Write};
use super::statements::LOCAL_ARRAY;
use super::symbols::{Part, values};
use super::{Forks, Result, Translator, reject};
use crate::typed::{self, Binary, Domain, Expr, ExprKind, LocalId, Place, Step, TypeKind, Unary};
use mu_base::{Diagnostic, Span};

/// Largest number of parameters of a path.
const MAX_PARAMETERS: u32 = 12;
/// Largest number of values over which a loop or quantifier is unrolled.
const MAX_UNROLLED: i128 = 64;

impl Translator<'_> {
    /// Returns the value of a condition on each path.
    pub(super) fn condition(&mut self, path: Path, expr: &Expr) -> Forks<bool> {
        stacker::maybe_grow(128 * 1024, 1024 * 1024, || self.condition_inner(path, expr))
    }
    fn condition_inner(&mut self, path: Path, expr: &Expr) -> Forks<bool> {
        self.count(expr.span)?;
        match &expr.kind {
            ExprKind::Unary(Unary::Not, of) => {
                let all = self.condition(path, of)?;
                Ok(all.into_iter().map(|(path, is)| (path, !is)).collect())
            }
            ExprKind::Binary(op @ (Binary::And | Binary::Or | Binary::Implies), a, b) => {
                let mut out = Vec::new();
                for (path, left) in self.condition(path, a)? {
                    match op {
                        Binary::And if !left => out.push((path, false)),
                        Binary::Or if left => out.push((path, true)),
                        Binary::Implies if !left => out.push((path, true)),
                        _ => out.extend(self.condition(path, b)?),
                    }
                }
                Ok(out)
            }
            ExprKind::Binary(op @ (Binary::Equal | Binary::NotEqual), a, b) => {
                if !self.model.types.is_simple(a.ty) {
                    return reject(expr.span, "a comparison of arrays or records");
                }
                let mut out = Vec::new();
                for (path, left) in self.value(path, a)? {
                    for (path, right) in self.value(path, b)? {
                        let all = self.equal(path, left.clone(), right)?;
                        let is_equal = *op == Binary::Equal;
                        out.extend(all.into_iter().map(|(path, is)| (path, is == is_equal)));
                    }
                }
                Ok(out)
            }
            ExprKind::Binary(
                op @ (Binary::Less | Binary::LessEqual | Binary::Greater | Binary::GreaterEqual),
                a,
                b,
            ) => {
                let mut out = Vec::new();
                for (path, left) in self.number(path, a)? {
                    for (path, right) in self.number(path, b)? {
                        let is = match op {
                            Binary::Less => left < right,
                            Binary::LessEqual => left <= right,
                            Binary::Greater => left > right,
                            _ => left >= right,
                        };
                        out.push((path, is));
                    }
                }
                Ok(out)
            }
            ExprKind::Quantified { all, local, domain, body } => {
                self.quantified_expression(path, (*all, *local), domain, body)
            }
            ExprKind::IsUndefined(place) => self.is_undefined(path, place),
            _ => {
                let mut out = Vec::new();
                for (path, value) in self.value(path, expr)? {
                    for (path, number) in self.constant(path, value, expr.span)? {
                        out.push((path, number != 0));
                    }
                }
                Ok(out)
            }
        }
    }
    /// Returns the defined value of a simple expression on each path.
    pub(super) fn value(&mut self, path: Path, expr: &Expr) -> Forks<Value> {
        stacker::maybe_grow(128 * 1024, 1024 * 1024, || self.value_inner(path, expr))
    }
    fn value_inner(&mut self, path: Path, expr: &Expr) -> Forks<Value> {
        self.count(expr.span)?;
        let constant = |all: Vec<(Path, bool)>| {
            all.into_iter().map(|(path, is)| (path, Value::Constant(i64::from(is)))).collect()
        };
        match &expr.kind {
            ExprKind::Constant(value) => Ok(vec![(path, Value::Constant(*value))]),
            ExprKind::Read(_) => {
                let mut out = Vec::new();
                for (path, value) in self.copied_value(path, expr)? {
                    out.extend(self.require_defined(path, value, expr.span)?);
                }
                Ok(out)
            }
            ExprKind::Unary(Unary::Not, _)
            | ExprKind::Quantified { .. }
            | ExprKind::IsUndefined(_)
            | ExprKind::Binary(
                Binary::And
                | Binary::Or
                | Binary::Implies
                | Binary::Equal
                | Binary::NotEqual
                | Binary::Less
                | Binary::LessEqual
                | Binary::Greater
                | Binary::GreaterEqual,
                ..,
            ) => Ok(constant(self.condition(path, expr)?)),
            ExprKind::Unary(Unary::Negate, of) => {
                let mut out = Vec::new();
                for (path, number) in self.number(path, of)? {
                    match number.checked_neg() {
                        Some(number) => out.push((path, Value::Constant(number))),
                        None => self.fail(&path, expr.span),
                    }
                }
                Ok(out)
            }
            ExprKind::Binary(op, a, b) => {
                let mut out = Vec::new();
                for (path, left) in self.number(path, a)? {
                    for (path, right) in self.number(path, b)? {
                        let result = match op {
                            Binary::Add => left.checked_add(right),
                            Binary::Subtract => left.checked_sub(right),
                            Binary::Multiply => left.checked_mul(right),
                            Binary::Divide => left.checked_div(right),
                            Binary::Modulo => left.checked_rem(right),
                            _ => return reject(expr.span, "an operation on bits"),
                        };
                        match result.filter(|n| *n != i64::MIN) {
                            Some(number) => out.push((path, Value::Constant(number))),
                            None => self.fail(&path, expr.span),
                        }
                    }
                }
                Ok(out)
            }
            ExprKind::Conditional(condition, a, b) => {
                let mut out = Vec::new();
                for (path, is) in self.condition(path, condition)? {
                    out.extend(self.value(path, if is { a } else { b })?);
                }
                Ok(out)
            }
            ExprKind::Call(function, arguments) => {
                let mut out = Vec::new();
                for (path, result) in self.call(path, *function, arguments, expr.span)? {
                    let value = result.unwrap_or(Value::Undefined);
                    out.extend(self.require_defined(path, value, expr.span)?);
                }
                Ok(out)
            }
            ExprKind::Unary(Unary::Complement, _)
            | ExprKind::IsMember(..)
            | ExprKind::MultisetCount { .. } => {
                reject(expr.span, "this operation has no proof for every size")
            }
        }
    }
    /// Returns the value of an expression, which may be undefined if it is a place.
    pub(super) fn copied_value(&mut self, path: Path, expr: &Expr) -> Forks<Value> {
        let ExprKind::Read(place) = &expr.kind else { return self.value(path, expr) };
        let mut out = Vec::new();
        for (path, target) in self.target(path, place)? {
            out.extend(self.content(path, &target, place.span)?);
        }
        Ok(out)
    }
    /// Returns the content of a simple place.
    pub(super) fn content(&mut self, path: Path, target: &Target, span: Span) -> Forks<Value> {
        match target.root {
            Root::Global(_) => {
                let cell = self.cell(target)?;
                self.reads.push(cell.clone());
                let writes = path.writes.len();
                self.content_before(path, &cell, writes)
            }
            Root::Local(frame, local) => {
                if target.selectors.iter().any(|s| s.process().is_some()) {
                    return reject(span, LOCAL_ARRAY);
                }
                let key = (frame, local, target.selectors.clone());
                if path.unknown.contains(&key) {
                    let text = "a local variable after a loop over the scalarset that writes it";
                    return reject(span, text);
                }
                let value = path.locals.get(&key).cloned().unwrap_or_else(|| {
                    self.blanks.push(key);
                    Value::Undefined
                });
                Ok(vec![(path, value)])
            }
        }
    }
    /// Returns the cell of a simple place of a variable.
    pub(super) fn cell(&self, target: &Target) -> Result<Cell> {
        let Root::Global(global) = target.root else {
            return Err(Diagnostic::internal("the cell of a local"));
        };
        let parts: Vec<Part> = target.selectors.iter().map(|s| s.part()).collect();
        let symbol = self.symbols.of(global, &parts);
        let symbol = symbol.ok_or_else(|| Diagnostic::internal("a place without a symbol"))?;
        Ok(Cell { symbol, args: target.selectors.iter().filter_map(|s| s.process()).collect() })
    }
    /// Returns the content of a cell after the first writes of a path.
    pub(super) fn content_before(
        &mut self,
        path: Path,
        cell: &Cell,
        writes: usize,
    ) -> Forks<Value> {
        for at in (0..writes).rev() {
            if path.writes[at].symbol != cell.symbol {
                continue;
            }
            let write = path.writes[at].clone();
            let (same, different) = self.divide_by_cell(path, &write, cell);
            let mut out = Vec::new();
            for path in different {
                out.extend(self.content_before(path, cell, at)?);
            }
            let Some(path) = same else { return Ok(out) };
            let zip = write.args.iter().zip(&cell.args);
            let map: Vec<(u32, Process)> = zip
                .filter_map(|(a, b)| match a {
                    Process::Bound(n) if write.bound.contains(n) => Some((*n, *b)),
                    _ => None,
                })
                .collect();
            for (conditions, value) in &write.cases {
                let mut path = path.clone();
                if !conditions.iter().all(|l| self.assume(&mut path, l.substitute(&map))) {
                    continue;
                }
                match value {
                    Some(value) => out.push((path, value.substitute(&map))),
                    None => out.extend(self.content_before(path, cell, at)?),
                }
            }
            return Ok(out);
        }
        let value = match path.known_content(cell) {
            _ if self.is_start => Value::Undefined,
            Some(value) => value.clone(),
            None => Value::Cell(cell.clone()),
        };
        Ok(vec![(path, value)])
    }
    /// Divides a path: the cell is among those of a write (at most one path), or it is not.
    fn divide_by_cell(
        &mut self,
        path: Path,
        write: &Write,
        cell: &Cell,
    ) -> (Option<Path>, Vec<Path>) {
        let mut path = path;
        let mut different = Vec::new();
        for (a, b) in write.args.iter().zip(&cell.args) {
            if matches!(a, Process::Bound(n) if write.bound.contains(n)) {
                continue;
            }
            let mut other = path.clone();
            if self.assume(&mut other, Literal::Same(*a, *b, false)) {
                different.push(other);
            }
            if !self.assume(&mut path, Literal::Same(*a, *b, true)) {
                return (None, different);
            }
        }
        (Some(path), different)
    }
    /// Adds a condition to a path. Returns false if it contradicts the others.
    pub(super) fn assume(&self, path: &mut Path, literal: Literal) -> bool {
        let literal = self.positive(path, literal);
        match &literal {
            Literal::Same(a, b, is) => {
                let is_other =
                    |p: &Process| matches!(p, Process::Bound(n) if self.others.contains(n));
                match (a, b) {
                    _ if a == b => return *is,
                    (Process::Parameter(_), Process::Parameter(_)) => return !*is,
                    (Process::Parameter(_), bound) | (bound, Process::Parameter(_))
                        if is_other(bound) =>
                    {
                        return !*is;
                    }
                    _ => {}
                }
                let turned = Literal::Same(*b, *a, *is);
                let contrary = [Literal::Same(*a, *b, !is), Literal::Same(*b, *a, !is)];
                if path.literals.iter().any(|l| contrary.contains(l)) {
                    return false;
                }
                if path.literals.contains(&literal) || path.literals.contains(&turned) {
                    return true;
                }
            }
            Literal::Is(cell, value, is) => {
                if let Some(known) = path.known_content(cell)
                    && let Some(same) = self.compare_values(known, value)
                {
                    return same == *is;
                }
                if path.literals.contains(&Literal::Is(cell.clone(), value.clone(), !is)) {
                    return false;
                }
                if path.literals.contains(&literal) {
                    return true;
                }
                if *value == Value::Undefined {
                    if path.is_defined(cell) || !self.undefined.contains(&cell.symbol) {
                        return !is;
                    }
                } else if *is {
                    // What the cell is not follows from its value. A cell for a process has a
                    // content even if it is undefined.
                    let is_node = self.symbols.all[cell.symbol as usize].ty == self.node;
                    path.literals.retain(|l| {
                        !matches!(l, Literal::Is(c, v, false) if c == cell
                            && !(is_node && *v == Value::Undefined)
                            && self.compare_values(v, value) == Some(false))
                    });
                }
            }
        }
        path.literals.push(literal);
        true
    }
    /// Returns a condition as one that a cell has a value, if the type has two and it excludes one.
    fn positive(&self, path: &Path, literal: Literal) -> Literal {
        if let Literal::Is(cell, Value::Constant(number), false) = &literal
            && (!self.undefined.contains(&cell.symbol) || path.is_defined(cell))
        {
            let (types, ty) = (&self.model.types, self.symbols.all[cell.symbol as usize].ty);
            let other = types.position(ty, *number).map(|at| 1 - at.min(1));
            if let (Some(2), Some(other)) =
                (types.count(ty), other.and_then(|at| types.value_at(ty, at)))
            {
                return Literal::Is(cell.clone(), Value::Constant(other), true);
            }
        }
        literal
    }
    /// Compares two values, if they determine the result.
    fn compare_values(&self, a: &Value, b: &Value) -> Option<bool> {
        match (a, b) {
            (Value::Cell(a), Value::Cell(b)) => (a == b).then_some(true),
            (Value::Cell(_), _) | (_, Value::Cell(_)) => None,
            (Value::Process(a), Value::Process(b)) => match (a, b) {
                _ if a == b => Some(true),
                (Process::Parameter(_), Process::Parameter(_)) => Some(false),
                _ => None,
            },
            (a, b) => Some(a == b),
        }
    }
    /// Returns the paths on which a value is defined; the others fail.
    fn require_defined(&mut self, path: Path, value: Value, span: Span) -> Forks<Value> {
        match &value {
            Value::Undefined => {
                self.fail(&path, span);
                Ok(Vec::new())
            }
            Value::Cell(cell) => {
                let mut failing = path.clone();
                if self.assume(&mut failing, Literal::Is(cell.clone(), Value::Undefined, true)) {
                    self.fail(&failing, span);
                }
                let mut path = path;
                let is = Literal::Is(cell.clone(), Value::Undefined, false);
                Ok(if self.assume(&mut path, is) { vec![(path, value)] } else { Vec::new() })
            }
            _ => Ok(vec![(path, value)]),
        }
    }
    /// Returns the number that a value of a finite type is, on a path for each.
    pub(super) fn constant(&mut self, path: Path, value: Value, span: Span) -> Forks<i64> {
        match value {
            Value::Constant(number) => Ok(vec![(path, number)]),
            Value::Cell(cell) => {
                if let Some(Value::Constant(number)) = path.known_content(&cell) {
                    let number = *number;
                    return Ok(vec![(path, number)]);
                }
                let ty = self.symbols.all[cell.symbol as usize].ty;
                let mut out = Vec::new();
                for number in values(&self.model.types, ty, self.node, span)? {
                    let mut path = path.clone();
                    let is = Literal::Is(cell.clone(), Value::Constant(number), true);
                    if self.assume(&mut path, is) {
                        self.count(span)?;
                        out.push((path, number));
                    }
                }
                Ok(out)
            }
            Value::Undefined | Value::Process(_) => {
                Err(Diagnostic::internal("a number that is none"))
            }
        }
    }
    fn number(&mut self, path: Path, expr: &Expr) -> Forks<i64> {
        let mut out = Vec::new();
        for (path, value) in self.value(path, expr)? {
            out.extend(self.constant(path, value, expr.span)?);
        }
        Ok(out)
    }
    /// Returns the process that a value is, on a path for each.
    fn process(&mut self, path: Path, value: Value, span: Span) -> Forks<Process> {
        let cell = match value {
            Value::Process(process) => return Ok(vec![(path, process)]),
            Value::Cell(cell) => cell,
            Value::Undefined | Value::Constant(_) => {
                return Err(Diagnostic::internal("a process that is none"));
            }
        };
        if let Some(Value::Process(process)) = path.known_content(&cell) {
            let process = *process;
            return Ok(vec![(path, process)]);
        }
        if self.scope > 0 {
            let text = "an element that a variable stores selects a part in a loop or quantifier";
            return reject(span, text);
        }
        let mut out = Vec::new();
        for (mut path, process) in path.with_each_process() {
            let is = Literal::Is(cell.clone(), Value::Process(process), true);
            if path.parameters <= MAX_PARAMETERS && self.assume(&mut path, is) {
                self.count(span)?;
                out.push((path, process));
            } else if path.parameters > MAX_PARAMETERS {
                return reject(span, "a rule with too many elements of the scalarset");
            }
        }
        Ok(out)
    }
    /// Compares two defined values.
    pub(super) fn equal(&mut self, path: Path, a: Value, b: Value) -> Forks<bool> {
        if let Some(is) = self.compare_values(&a, &b) {
            return Ok(vec![(path, is)]);
        }
        let literal = |is: bool| match (&a, &b) {
            (Value::Process(a), Value::Process(b)) => Literal::Same(*a, *b, is),
            (Value::Cell(cell), value) | (value, Value::Cell(cell)) => {
                Literal::Is(cell.clone(), value.clone(), is)
            }
            _ => Literal::Same(Process::Parameter(0), Process::Parameter(0), is),
        };
        if let (Value::Cell(x), Value::Cell(y)) = (&a, &b) {
            let ty = |c: &Cell| self.symbols.all[c.symbol as usize].ty;
            let types = &self.model.types;
            if ty(x) != self.node && types.parts(ty(x)) != types.parts(ty(y)) {
                let (span, mut out) = (Span::default(), Vec::new());
                for (path, left) in self.constant(path, a.clone(), span)? {
                    for (path, right) in self.constant(path, b.clone(), span)? {
                        out.push((path, left == right));
                    }
                }
                return Ok(out);
            }
        } else if let (Value::Cell(cell), Value::Constant(number))
        | (Value::Constant(number), Value::Cell(cell)) = (&a, &b)
        {
            // A number that the cell cannot have.
            let ty = self.symbols.all[cell.symbol as usize].ty;
            if self.model.types.position(ty, *number).is_none() {
                return Ok(vec![(path, false)]);
            }
        }
        let mut out = Vec::new();
        for is in [true, false] {
            let mut path = path.clone();
            if self.assume(&mut path, literal(is)) {
                out.push((path, is));
            }
        }
        Ok(out)
    }
    fn is_undefined(&mut self, path: Path, place: &Place) -> Forks<bool> {
        let mut out = Vec::new();
        for (path, target) in self.target(path, place)? {
            for (path, value) in self.content(path, &target, place.span)? {
                let Value::Cell(cell) = value else {
                    out.push((path, value == Value::Undefined));
                    continue;
                };
                for is in [true, false] {
                    let mut path = path.clone();
                    if self.assume(&mut path, Literal::Is(cell.clone(), Value::Undefined, is)) {
                        out.push((path, is));
                    }
                }
            }
        }
        Ok(out)
    }
    /// Returns a place with the values of its indices on each path.
    pub(super) fn target(&mut self, path: Path, place: &Place) -> Forks<Target> {
        let root = match place.root {
            typed::Root::Global(global) => {
                Target { root: Root::Global(global), selectors: Vec::new() }
            }
            typed::Root::Local(local) => match path.places.get(&(self.frame, local)) {
                Some(target) => target.clone(),
                None => Target { root: Root::Local(self.frame, local), selectors: Vec::new() },
            },
        };
        let mut all = vec![(path, root)];
        for step in &place.steps {
            let mut next = Vec::new();
            for (path, target) in all {
                match step {
                    Step::Field { field, .. } => {
                        let mut target = target;
                        target.selectors.push(Selector::Field(*field));
                        next.push((path, target));
                    }
                    Step::Index { array, index, span } => {
                        for (path, selector) in self.selector(path, *array, index, *span)? {
                            let mut target = target.clone();
                            target.selectors.push(selector);
                            next.push((path, target));
                        }
                    }
                    Step::Element { span, .. } => {
                        return reject(*span, "a multiset has no proof for every size");
                    }
                }
            }
            all = next;
        }
        Ok(all)
    }
    fn selector(
        &mut self,
        path: Path,
        array: typed::TypeId,
        index: &Expr,
        span: Span,
    ) -> Forks<Selector> {
        let TypeKind::Array { index: of, .. } = *self.model.types.kind(array) else {
            return Err(Diagnostic::internal("an index of no array"));
        };
        let mut out = Vec::new();
        for (path, value) in self.value(path, index)? {
            if of == self.node {
                let all = self.process(path, value, span)?;
                out.extend(all.into_iter().map(|(path, p)| (path, Selector::Process(p))));
                continue;
            }
            for (path, number) in self.constant(path, value, span)? {
                match self.model.types.position(of, number) {
                    Some(_) => out.push((path, Selector::Constant(number))),
                    None => self.fail(&path, span),
                }
            }
        }
        Ok(out)
    }
    /// Returns the values of a finite domain on each path.
    pub(super) fn values(&mut self, path: Path, domain: &Domain) -> Forks<Vec<i64>> {
        match domain {
            Domain::Type(ty) => {
                let all = values(&self.model.types, *ty, self.node, Span::default())?;
                Ok(vec![(path, all)])
            }
            Domain::Range { from, to, by } => {
                let mut out = Vec::new();
                for (path, first) in self.number(path, from)? {
                    for (path, last) in self.number(path, to)? {
                        let steps = match by {
                            Some(by) => self.number(path, by)?,
                            None => vec![(path, 1)],
                        };
                        for (path, step) in steps {
                            if step == 0 {
                                self.fail(&path, from.span);
                                continue;
                            }
                            let (mut all, mut at) = (Vec::new(), i128::from(first));
                            let ends = |at: i128| {
                                if step > 0 { at > i128::from(last) } else { at < i128::from(last) }
                            };
                            while !ends(at) {
                                if all.len() as i128 == MAX_UNROLLED {
                                    let text = "a loop of more than 64 iterations";
                                    return reject(from.span, text);
                                }
                                all.push(i64::try_from(at).unwrap_or_default());
                                at += i128::from(step);
                            }
                            out.push((path, all));
                        }
                    }
                }
                Ok(out)
            }
        }
    }
    fn quantified_expression(
        &mut self,
        path: Path,
        (all, local): (bool, LocalId),
        domain: &Domain,
        body: &Expr,
    ) -> Forks<bool> {
        let (mut out, mut open) = (Vec::new(), Vec::new());
        if !self.is_node(domain) {
            for (path, values) in self.values(path, domain)? {
                let mut paths = vec![path];
                for value in values {
                    let mut next = Vec::new();
                    for mut path in paths {
                        path.set(self.frame, local, Vec::new(), Value::Constant(value));
                        for (path, is) in self.condition(path, body)? {
                            if is == all { next.push(path) } else { out.push((path, !all)) }
                        }
                    }
                    paths = next;
                }
                out.extend(paths.into_iter().map(|path| (path, all)));
            }
            return Ok(out);
        }
        if self.loops > 0 {
            return reject(body.span, "a quantifier in a loop over the scalarset");
        }
        if self.scope > 0 {
            // A quantifier in a quantifier is no condition: there are more steps.
            return Ok(vec![(path.clone(), true), (path, false)]);
        }
        // An element decides: one of the parameters, or a new one.
        let (frames, written, writes) = (self.frames, self.written_frames.len(), path.writes.len());
        for (mut path, process) in path.clone().with_each_process() {
            path.set(self.frame, local, Vec::new(), Value::Process(process));
            let ends = self.condition(path, body)?;
            if ends.iter().any(|(path, _)| path.writes.len() > writes)
                || self.written_frames[written..].iter().any(|frame| *frame < frames)
            {
                let text = "a quantifier over the scalarset that writes variables";
                return reject(body.span, text);
            }
            let decides = ends.into_iter().filter(|(_, is)| *is != all);
            out.extend(decides.map(|(path, _)| (path, !all)));
        }
        // No element decides.
        let was_silent = std::mem::replace(&mut self.is_silent, true);
        open.push(path);
        let mut done = 0;
        while let Some(least) = open.iter().map(|p| p.parameters).max()
            && done < least
        {
            let mut next = Vec::new();
            for mut path in open {
                if done >= path.parameters {
                    next.push(path);
                    continue;
                }
                let value = Value::Process(Process::Parameter(done));
                path.set(self.frame, local, Vec::new(), value);
                let all_so_far = self.condition(path, body)?;
                next.extend(all_so_far.into_iter().filter(|(_, is)| *is == all).map(|f| f.0));
            }
            open = next;
            done += 1;
        }
        for path in open {
            out.extend(self.for_others(path, (all, local), body)?.map(|path| (path, all)));
        }
        self.is_silent = was_silent;
        Ok(out)
    }
    /// Adds the condition that the body has a value for all other processes.
    fn for_others(
        &mut self,
        mut path: Path,
        (all, local): (bool, LocalId),
        body: &Expr,
    ) -> Result<Option<Path>> {
        let bound = self.bound;
        self.bound += 1;
        self.others.insert(bound);
        self.scope += 1;
        let before = path.literals.len();
        let mut inner = path.clone();
        inner.set(self.frame, local, Vec::new(), Value::Process(Process::Bound(bound)));
        let (frame, depth) = (self.frame, self.depth);
        let ends = self.condition(inner, body);
        // An error may come from within a call.
        (self.frame, self.depth) = (frame, depth);
        self.scope -= 1;
        // A condition without a form that a guard can have is omitted: there are more steps.
        let Ok(ends) = ends else { return Ok(Some(path)) };
        // New conditions may have replaced weaker ones of the path.
        let news = |p: &Path| -> Vec<Literal> {
            p.literals.iter().filter(|l| !path.literals[..before].contains(l)).cloned().collect()
        };
        let holds = ends.iter().filter(|(_, is)| *is == all);
        let cubes: Vec<Vec<Literal>> = holds.map(|(p, _)| news(p)).collect();
        if !cubes.iter().any(Vec::is_empty) {
            let parameters = path.parameters;
            path.universals.push(Universal { bound, parameters, cubes });
        }
        Ok(Some(path))
    }
}
