//! Statements: mappings from results to results. `go(m)` is the memory before the statement; any
//! other result stays.

use super::cells::size;
use super::{Result, Writer};
use crate::typed::{
    Alias, AliasTarget, Argument, Claim, Domain, Expr, ExprKind, FunctionId, LocalId, Place, Put,
    Stmt, StmtKind, TypeId, TypeKind,
};

impl Writer<'_> {
    /// Translates statements that follow a result.
    pub(super) fn sequence(&mut self, before: &str, all: &[Stmt]) -> Result<String> {
        let mut term = before.to_string();
        for stmt in all {
            let effect = stacker::maybe_grow(128 * 1024, 1024 * 1024, || self.statement(stmt))?;
            term = format!("q{}({term}, b)", self.transformer(&effect));
        }
        Ok(term)
    }
    /// Adds a mapping `q` with this effect on `go(m)` and returns its number.
    fn transformer(&mut self, effect: &str) -> usize {
        let k = self.fresh();
        self.map(&format!("q{k}"), "Result # Int -> Result");
        self.equation(&format!("q{k}(go(m), b) = {effect}"));
        self.equation(&format!("!is_go(r) -> q{k}(r, b) = r"));
        k
    }
    fn statement(&mut self, stmt: &Stmt) -> Result<String> {
        Ok(match &stmt.kind {
            StmtKind::Assign { target, value } => return self.assign(target, value),
            StmtKind::Undefine(place) => {
                let n = size(&self.model.types, place.ty);
                format!("store(m, {}, blank({n}))", self.address(place)?.term())
            }
            StmtKind::Clear(place) => {
                let mut cells = Vec::new();
                self.first_values(place.ty, &mut cells);
                let addr = self.address(place)?.term();
                format!("store(m, {addr}, [{}])", cells.join(", "))
            }
            StmtKind::If { clauses, otherwise } => {
                let mut term = self.sequence("go(m)", otherwise)?;
                for clause in clauses.iter().rev() {
                    let condition = self.value(&clause.condition)?;
                    let body = self.sequence("go(m)", &clause.body)?;
                    term = format!("branch({condition}, {body}, {term})");
                }
                term
            }
            StmtKind::Switch { value, cases, otherwise } => {
                let value = self.value(value)?;
                let mut term = self.sequence("go(m)", otherwise)?;
                for case in cases.iter().rev() {
                    let mut test = "ok(0)".to_string();
                    for tree in case.matches.iter().rev() {
                        test = format!("disj(eq({value}, {}), {test})", self.value(tree)?);
                    }
                    let body = self.sequence("go(m)", &case.body)?;
                    term = format!("branch({test}, {body}, {term})");
                }
                // The value is evaluated even without a case.
                format!("branch(ne({value}, {value}), fail, {term})")
            }
            StmtKind::For { local, domain, body } => return self.for_loop(*local, domain, body),
            StmtKind::While { condition, body } => {
                let condition = self.value(condition)?;
                let body = self.sequence("go(m)", body)?;
                let k = self.fresh();
                self.map(&format!("l{k}"), "Result # Int -> Result");
                self.equation(&format!(
                    "l{k}(go(m), b) = branch({condition}, l{k}({body}, b), go(m))"
                ));
                self.equation(&format!("!is_go(r) -> l{k}(r, b) = r"));
                format!("l{k}(go(m), b)")
            }
            StmtKind::Return(value) => return self.return_value(value.as_ref()),
            StmtKind::Put(Put::Text(_)) => "go(m)".into(),
            StmtKind::Put(Put::Value(value)) => match &value.kind {
                // A place may be undefined; its indices are evaluated.
                ExprKind::Read(place) => {
                    format!("if(is_ok({}), go(m), fail)", self.address(place)?.term())
                }
                _ => {
                    let value = self.value(value)?;
                    format!("branch(eq({value}, {value}), go(m), fail)")
                }
            },
            StmtKind::Error(_) => "fail".into(),
            StmtKind::Claim { number, condition } => {
                let condition = self.value(condition)?;
                match self.model.claims[*number as usize].claim {
                    Claim::Assert => format!("branch({condition}, go(m), fail)"),
                    Claim::Assume => format!("branch({condition}, go(m), cut)"),
                    Claim::Cover | Claim::Liveness => {
                        format!("branch({condition}, go(m), go(m))")
                    }
                }
            }
            StmtKind::Alias { aliases, body } => {
                let mut term = "go(m)".to_string();
                for alias in aliases {
                    term = self.alias(alias)?.replace('@', &term);
                }
                return self.sequence(&term, body);
            }
            StmtKind::Call(function, arguments) => {
                let arguments = self.arguments(*function, arguments)?;
                format!("leave(c{}(m, {arguments}), #m)", function.0)
            }
            StmtKind::MultisetAdd { element, multiset } => {
                let (capacity, block) = self.blocks(multiset)?;
                let of = match *self.model.types.kind(multiset.ty) {
                    TypeKind::Multiset { element, .. } => element,
                    _ => element.ty,
                };
                let value = Expr {
                    kind: ExprKind::Read(element.clone()),
                    ty: element.ty,
                    span: element.span,
                };
                let cells = self.contents(&value, of)?;
                let set = self.address(multiset)?.term();
                format!("insert_block(m, {set}, {capacity}, {block}, {cells})")
            }
            StmtKind::MultisetRemove { position, multiset } => {
                let (_, block) = self.blocks(multiset)?;
                let (set, slot) = (self.address(multiset)?.term(), self.local(*position).read());
                let place = format!("at({set}, {slot}, {block})");
                format!("if(get(m, {place}) == ok(1), store(m, {place}, blank({block})), fail)")
            }
            StmtKind::MultisetRemovePredicate { local, multiset, predicate } => {
                return self.remove_predicate(*local, multiset, predicate);
            }
        })
    }
    /// Adds the cells of a value in which each part has the first value of its type.
    fn first_values(&self, ty: TypeId, out: &mut Vec<String>) {
        let types = &self.model.types;
        match types.kind(ty) {
            TypeKind::Array { index, element } => {
                for _ in 0..types.count(*index).unwrap_or(0) {
                    self.first_values(*element, out);
                }
            }
            TypeKind::Record { fields } => {
                fields.iter().for_each(|f| self.first_values(f.ty, out));
            }
            TypeKind::Multiset { .. } => {
                (0..size(types, ty)).for_each(|_| out.push("undef".into()));
            }
            _ => out.push(match types.value_at(ty, 0) {
                Some(first) => format!("ok({first})"),
                None => "undef".into(),
            }),
        }
    }
    fn assign(&mut self, target: &Place, value: &Expr) -> Result<String> {
        let addr = self.address(target)?.term();
        if let ExprKind::Call(function, arguments) = &value.kind {
            return self.assign_call(&addr, target.ty, *function, arguments);
        }
        let cells = self.contents(value, target.ty)?;
        let single = cells.strip_prefix('[').and_then(|c| c.strip_suffix(']'));
        Ok(match single.filter(|_| self.model.types.is_simple(target.ty)) {
            Some(cell) => format!("put(m, {addr}, {cell})"),
            None => format!("store(m, {addr}, {cells})"),
        })
    }
    /// Translates a call with a result that is stored; it may write anything.
    fn assign_call(
        &mut self,
        addr: &str,
        ty: TypeId,
        function: FunctionId,
        arguments: &[Argument],
    ) -> Result<String> {
        let arguments = self.arguments(function, arguments)?;
        let cells = if self.model.types.is_simple(ty) {
            format!("[f{}(cell(m, i))]", self.domain(ty))
        } else {
            format!("slice(m, i, {})", size(&self.model.types, ty))
        };
        let k = self.fresh();
        self.map(&format!("j{k}"), "Result # Int # Cell -> Result");
        self.equation(&format!("j{k}(ret(m), i, x) = store(take(m, i), x, {cells})"));
        self.equation(&format!("j{k}(go(m), i, x) = fail"));
        self.equation(&format!("j{k}(fail, i, x) = fail"));
        self.equation(&format!("j{k}(cut, i, x) = if(is_ok(x), cut, fail)"));
        Ok(format!("j{k}(c{}(m, {arguments}), #m, {addr})", function.0))
    }
    fn return_value(&mut self, value: Option<&Expr>) -> Result<String> {
        let Some(value) = value else { return Ok("ret(m)".into()) };
        // The result is in the first cells of the frame.
        if let ExprKind::Call(function, arguments) = &value.kind {
            let stored =
                self.assign_call("ok(b)", self.returns.unwrap_or(value.ty), *function, arguments)?;
            return Ok(format!("finish({stored})"));
        }
        let cells = self.contents(value, self.returns.unwrap_or(value.ty))?;
        Ok(format!("finish(store(m, ok(b), {cells}))"))
    }
    fn for_loop(&mut self, local: LocalId, domain: &Domain, body: &[Stmt]) -> Result<String> {
        let body = self.sequence("go(m)", body)?;
        let (k, slot) = (self.fresh(), self.bound_cell(local));
        self.map(&format!("h{k}"), "List(Cell) # Int -> Result");
        self.equation(&format!("h{k}(m, b) = {body}"));
        match domain {
            Domain::Type(ty) => {
                let (w, count) = (self.domain(*ty), self.model.types.count(*ty).unwrap_or(0));
                self.map(&format!("l{k}"), "Result # Int # Int -> Result");
                self.equation(&format!(
                    "l{k}(go(m), b, i) = if(i < {count}, l{k}(h{k}(set(m, {slot}, ok(w{w}(i))), b), b, i + 1), go(m))"
                ));
                self.equation(&format!("!is_go(r) -> l{k}(r, b, i) = r"));
                Ok(format!("l{k}(go(m), b, 0)"))
            }
            Domain::Range { from, to, by } => {
                let (from, to, by) = self.range(from, to, by.as_ref())?;
                self.map(&format!("l{k}"), "Result # Int # Int # Int # Int -> Result");
                self.equation(&format!(
                    "l{k}(go(m), b, i, j, n) = if(n > 0 && i <= j || n < 0 && i >= j, l{k}(h{k}(set(m, {slot}, ok(i)), b), b, i + n, j, n), go(m))"
                ));
                self.equation(&format!("!is_go(r) -> l{k}(r, b, i, j, n) = r"));
                let bounds =
                    format!("conj(eq({from}, {from}), conj(eq({to}, {to}), ne({by}, ok(0))))");
                Ok(format!(
                    "branch({bounds}, l{k}(go(m), b, num({from}), num({to}), num({by})), fail)"
                ))
            }
        }
    }
    fn remove_predicate(
        &mut self,
        local: LocalId,
        multiset: &Place,
        predicate: &Expr,
    ) -> Result<String> {
        let predicate = self.value(predicate)?;
        let (capacity, block) = self.blocks(multiset)?;
        let set = self.address(multiset)?.term();
        let (k, slot) = (self.fresh(), self.local(local).term());
        // The memory with the position bound, or the old memory if the block is free.
        self.map(&format!("h{k}"), "Result # List(Cell) # Int # Cell -> Result");
        self.equation(&format!(
            "h{k}(go(m), a, b, x) = branch({predicate}, store(m, x, blank({block})), go(m))"
        ));
        self.equation(&format!("h{k}(cut, a, b, x) = go(a)"));
        self.equation(&format!("h{k}(fail, a, b, x) = fail"));
        self.map(&format!("l{k}"), "Result # Int # Int # Cell -> Result");
        self.equation(&format!(
            "l{k}(go(m), b, i, x) = if(i < {capacity}, l{k}(h{k}(occupied(m, x, {slot}, ok(i)), m, b, x), b, i + 1, plus(x, {block})), go(m))"
        ));
        self.equation(&format!("!is_go(r) -> l{k}(r, b, i, x) = r"));
        Ok(format!("l{k}(go(m), b, 0, {set})"))
    }
    /// Translates an alias: a term with `@` for the result before it.
    pub(super) fn alias(&mut self, alias: &Alias) -> Result<String> {
        let slot = self.local(alias.local).term();
        let effect = match &alias.target {
            AliasTarget::Place(place) => format!("put(m, {slot}, {})", self.address(place)?.term()),
            AliasTarget::Value(value) => match &value.kind {
                ExprKind::Call(function, arguments) => {
                    self.assign_call(&slot, value.ty, *function, arguments)?
                }
                _ if self.model.types.is_simple(value.ty) => {
                    format!("put(m, {slot}, {})", self.value(value)?)
                }
                _ => format!("store(m, {slot}, {})", self.contents(value, value.ty)?),
            },
        };
        Ok(format!("q{}(@, b)", self.transformer(&effect)))
    }
}
