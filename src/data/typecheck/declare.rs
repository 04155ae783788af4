//! Declarations: sorts and aliases, constructors, mappings, structured sorts with projections and
//! recognisers, equations.
//!
//! Aliases are resolved away; an inline `struct` is the same sort as any other with the same
//! constructors, projections and recognisers. As in the reference, a constant's name stands for one
//! constant only, functions may be overloaded by their sorts, and names of built-ins cannot be
//! declared anew.

use super::builtins::schemes;
use super::infer::Inference;
use super::{Checker, error};
use crate::expr::{Equation, Expr, ExprKind};
use crate::signature::{Op, OpKind};
use crate::sort::{SortKind, basic};
use ahash::{AHashMap, AHashSet};
use mu_base::ids::{OpId, SortId, VarId};
use mu_base::{Diagnostic, Span, narrow};
use mu_syntax::ast::{self, Section};

/// Identity of a structured sort: for each constructor its name, arguments with projection names,
/// and recogniser.
pub(super) type StructKey = Vec<(String, Vec<(Option<String>, SortId)>, Option<String>)>;

/// Sorts of one specification during their declaration.
#[derive(Default)]
struct PendingSorts<'a> {
    aliases: AHashMap<&'a str, &'a ast::Sort>,
    /// Aliases that are being resolved: a repetition is a cycle.
    resolving: Vec<&'a str>,
    /// Structured sorts with an id and unread constructors.
    structs: Vec<(SortId, &'a ast::Sort)>,
}

impl Checker {
    /// Reads all data declarations of some sections. Sorts in other sections are declared by
    /// [`Self::sort`] later.
    pub fn declare(&mut self, sections: &[Section]) -> Result<(), Diagnostic> {
        self.declare_sorts(sections)?;
        for section in sections {
            match section {
                Section::Constructors(decls) => {
                    for (name, sort) in decls {
                        self.declare_constructor(name, sort)?;
                    }
                }
                Section::Mappings(decls) => {
                    for (name, sort) in decls {
                        let sort_id = self.sort(sort)?;
                        self.add_op(&name.kind, sort_id, OpKind::Mapping, name.span, "mapping")?;
                    }
                }
                _ => {}
            }
        }
        self.check_inhabited(sections)
    }

    /// Declares and binds the variables of the `glob` sections. Error: a variable is declared
    /// twice.
    pub fn declare_globals(&mut self, sections: &[Section]) -> Result<Vec<VarId>, Diagnostic> {
        let mut globals = Vec::new();
        for section in sections {
            if let Section::Globals(decls) = section {
                for (decl, var) in decls.iter().zip(self.declare_vars(decls)?) {
                    if self.lookup_var(&decl.name.kind).is_some() {
                        return Err(error(
                            decl.name.span,
                            format!("global variable `{}` is declared twice", decl.name.kind),
                        ));
                    }
                    self.bind(&decl.name.kind, var);
                    globals.push(var);
                }
            }
        }
        Ok(globals)
    }

    /// Type checks the equations of some sections, after all declarations.
    pub fn check_equations(&mut self, sections: &[Section]) -> Result<(), Diagnostic> {
        for section in sections {
            let Section::Equations(decls, equations) = section else { continue };
            let vars = self.declare_vars(decls)?;
            let mark = self.open_scope();
            for (decl, var) in decls.iter().zip(&vars) {
                self.bind(&decl.name.kind, *var);
            }
            let result: Result<(), Diagnostic> = equations.iter().try_for_each(|e| {
                let equation = self.check_equation(e)?;
                self.data.equations.push(equation);
                Ok(())
            });
            self.close_scope(mark, "var", Span::default());
            result?;
        }
        Ok(())
    }

    /// Collects names and structures of the sorts that the signature already has.
    pub(super) fn recover_sorts(&mut self) {
        let signature = &self.data.signature;
        let sort_of = |i: usize| {
            (0..signature.sorts.len())
                .map(SortId::new)
                .find(|s| *signature.sorts.kind(*s) == SortKind::Named(narrow::index(i)))
        };
        let mut projections: AHashMap<(OpId, u32), String> = AHashMap::new();
        let mut recognisers: AHashMap<OpId, String> = AHashMap::new();
        for (_, op) in signature.ops() {
            match &op.kind {
                OpKind::Projection(places) => {
                    places.iter().for_each(|p| drop(projections.insert(*p, op.name.clone())))
                }
                OpKind::Recogniser(constructors) => {
                    constructors.iter().for_each(|c| drop(recognisers.insert(*c, op.name.clone())))
                }
                _ => {}
            }
        }
        for (i, named) in signature.sorts.named.iter().enumerate() {
            let Some(sort) = sort_of(i) else { continue };
            self.sorts.insert(named.name.clone(), sort);
            if named.structured {
                let key = named.constructors.iter().map(|&c| {
                    let op = signature.op(c);
                    let (domain, _) = if op.sort == sort {
                        (&[][..], sort)
                    } else {
                        signature.domain_range(op.sort)
                    };
                    let args = domain
                        .iter()
                        .enumerate()
                        .map(|(i, s)| (projections.get(&(c, narrow::index(i))).cloned(), *s))
                        .collect();
                    (op.name.clone(), args, recognisers.get(&c).cloned())
                });
                self.structs.insert(key.collect(), sort);
            }
        }
        for (name, sort) in &signature.aliases {
            self.sorts.insert(name.clone(), *sort);
        }
    }

    /// Returns the id of a sort expression; inline structured sorts are declared at their first
    /// occurrence.
    pub fn sort(&mut self, sort: &ast::Sort) -> Result<SortId, Diagnostic> {
        let mut pending = PendingSorts::default();
        let id = self.resolve(&mut pending, sort)?;
        self.complete_structs(&mut pending)?;
        Ok(id)
    }

    fn declare_sorts(&mut self, sections: &[Section]) -> Result<(), Diagnostic> {
        let mut pending = PendingSorts::default();
        let mut order: Vec<(&ast::Ident, &ast::Sort)> = Vec::new();
        let mut repeated: Vec<(&ast::Ident, &ast::Sort)> = Vec::new();
        let mut seen: AHashMap<&str, (Span, &Option<ast::Sort>)> = AHashMap::new();
        let before = if self.extending { self.sorts.clone() } else { AHashMap::new() };
        for section in sections {
            let Section::Sorts(decls) = section else { continue };
            for (name, definition) in decls {
                if let Some(&id) = before.get(&name.kind) {
                    match definition {
                        Some(definition) => repeated.push((name, definition)),
                        None if self
                            .data
                            .signature
                            .sorts
                            .declared_sort(id)
                            .is_some_and(|n| !n.structured) => {}
                        None => {
                            return Err(error(
                                name.span,
                                format!("sort `{}` is declared twice, differently", name.kind),
                            ));
                        }
                    }
                    continue;
                }
                if let Some((first, before)) = seen.get(name.kind.as_str()) {
                    // An identical repeated declaration adds nothing.
                    if *before == definition {
                        continue;
                    }
                    return Err(error(
                        name.span,
                        format!("sort `{}` is declared twice, differently", name.kind),
                    )
                    .related(*first, "the other declaration"));
                }
                seen.insert(&name.kind, (name.span, definition));
                if self.sorts.contains_key(&name.kind) {
                    return Err(error(
                        name.span,
                        format!("sort `{}` is declared twice", name.kind),
                    ));
                }
                match definition {
                    None => {
                        let id = self.data.signature.sorts.declare(name.kind.clone(), false);
                        self.sorts.insert(name.kind.clone(), id);
                    }
                    Some(definition) => {
                        pending.aliases.insert(&name.kind, definition);
                        order.push((name, definition));
                    }
                }
            }
        }
        // Names of structured sorts first: other sorts may be recursive through them.
        for (name, definition) in &order {
            if let ast::SortKind::Struct(_) = definition.kind {
                let id = self.data.signature.sorts.declare(name.kind.clone(), true);
                self.sorts.insert(name.kind.clone(), id);
                pending.structs.push((id, definition));
                pending.aliases.remove(name.kind.as_str());
            }
        }
        for (name, definition) in &order {
            if !matches!(definition.kind, ast::SortKind::Struct(_)) {
                let id = self.resolve_alias(&mut pending, &name.kind, name.span)?;
                self.data.signature.aliases.push((name.kind.clone(), id));
            }
        }
        self.complete_structs(&mut pending)?;
        for (name, definition) in repeated {
            if self.sort(definition)? != before[&name.kind] {
                return Err(error(
                    name.span,
                    format!("sort `{}` is declared twice, differently", name.kind),
                ));
            }
        }
        Ok(())
    }

    fn resolve_alias<'a>(
        &mut self,
        pending: &mut PendingSorts<'a>,
        name: &'a str,
        span: Span,
    ) -> Result<SortId, Diagnostic> {
        if let Some(&id) = self.sorts.get(name) {
            return Ok(id);
        }
        let Some(&definition) = pending.aliases.get(name) else {
            let known =
                self.sorts.keys().map(String::as_str).chain(pending.aliases.keys().copied());
            return Err(super::with_suggestions(
                error(span, format!("sort `{name}` is not declared")),
                name,
                known,
                "sorts",
            ));
        };
        if pending.resolving.contains(&name) {
            let cycle = pending.resolving.join(" = ");
            return Err(error(span, format!("sort `{name}` is defined in terms of itself"))
                .note(format!("the definitions are cyclic: {cycle} = {name}; recursion must pass through a `struct`")));
        }
        pending.resolving.push(name);
        let id = self.resolve(pending, definition)?;
        pending.resolving.pop();
        self.sorts.insert(name.into(), id);
        Ok(id)
    }

    fn resolve<'a>(
        &mut self,
        pending: &mut PendingSorts<'a>,
        sort: &'a ast::Sort,
    ) -> Result<SortId, Diagnostic> {
        stacker::maybe_grow(64 << 10, 1 << 20, || {
            let kind = match &sort.kind {
                ast::SortKind::Bool => return Ok(basic::BOOL),
                ast::SortKind::Pos => return Ok(basic::POS),
                ast::SortKind::Nat => return Ok(basic::NAT),
                ast::SortKind::Int => return Ok(basic::INT),
                ast::SortKind::Real => return Ok(basic::REAL),
                ast::SortKind::Name(name) => return self.resolve_alias(pending, name, sort.span),
                ast::SortKind::Struct(_) => return self.resolve_struct(pending, sort),
                ast::SortKind::List(e) => SortKind::List(self.resolve(pending, e)?),
                ast::SortKind::Set(e) => SortKind::Set(self.resolve(pending, e)?),
                ast::SortKind::Bag(e) => SortKind::Bag(self.resolve(pending, e)?),
                ast::SortKind::FSet(e) => SortKind::FSet(self.resolve(pending, e)?),
                ast::SortKind::FBag(e) => SortKind::FBag(self.resolve(pending, e)?),
                ast::SortKind::Function(domain, range) => {
                    let domain = domain
                        .iter()
                        .map(|s| self.resolve(pending, s))
                        .collect::<Result<_, _>>()?;
                    SortKind::Function(domain, self.resolve(pending, range)?)
                }
            };
            Ok(self.data.signature.sorts.intern(kind))
        })
    }

    /// Resolves an inline `struct`: to an equal sort if there is one, else to a new sort. The sorts
    /// of its arguments may be incomplete, so sorts without constructors so far are compared by
    /// their text.
    fn resolve_struct<'a>(
        &mut self,
        pending: &mut PendingSorts<'a>,
        sort: &'a ast::Sort,
    ) -> Result<SortId, Diagnostic> {
        if let Some((id, _)) = pending.structs.iter().find(|(_, s)| **s == *sort) {
            return Ok(*id);
        }
        if pending.resolving.is_empty() {
            let key = self.struct_key(pending, sort)?;
            if let Some(&id) = self.structs.get(&key) {
                return Ok(id);
            }
        }
        let name = format!("({})", struct_text(sort));
        let id = self.data.signature.sorts.declare(name, true);
        pending.structs.push((id, sort));
        Ok(id)
    }

    fn struct_key<'a>(
        &mut self,
        pending: &mut PendingSorts<'a>,
        sort: &'a ast::Sort,
    ) -> Result<StructKey, Diagnostic> {
        let ast::SortKind::Struct(constructors) = &sort.kind else { return Ok(Vec::new()) };
        let mut key = StructKey::with_capacity(constructors.len());
        for constructor in constructors {
            let mut args = Vec::with_capacity(constructor.args.len());
            for (projection, sort) in &constructor.args {
                args.push((
                    projection.as_ref().map(|p| p.kind.clone()),
                    self.resolve(pending, sort)?,
                ));
            }
            key.push((
                constructor.name.kind.clone(),
                args,
                constructor.recogniser.as_ref().map(|r| r.kind.clone()),
            ));
        }
        Ok(key)
    }

    /// Reads the constructors of structured sorts that only have an id; this may add further ones.
    fn complete_structs(&mut self, pending: &mut PendingSorts<'_>) -> Result<(), Diagnostic> {
        let mut next = 0;
        while next < pending.structs.len() {
            let (id, sort) = pending.structs[next];
            next += 1;
            let key = self.struct_key(pending, sort)?;
            let ast::SortKind::Struct(constructors) = &sort.kind else { continue };
            for (i, (constructor, (_, args, _))) in constructors.iter().zip(&key).enumerate() {
                let name = &constructor.name;
                let op_sort = if args.is_empty() {
                    id
                } else {
                    let domain = args.iter().map(|a| a.1).collect();
                    self.data.signature.sorts.intern(SortKind::Function(domain, id))
                };
                let op = self.add_op(
                    &name.kind,
                    op_sort,
                    OpKind::Constructor(narrow::index(i)),
                    name.span,
                    "constructor",
                )?;
                self.add_sort_of(id, op);
                for (j, (projection, _)) in constructor.args.iter().enumerate() {
                    let Some(projection) = projection else { continue };
                    let sort = self
                        .data
                        .signature
                        .sorts
                        .intern(SortKind::Function([id].into(), args[j].1));
                    self.add_projection(projection, sort, (op, narrow::index(j)))?;
                }
                if let Some(recogniser) = &constructor.recogniser {
                    let sort = self
                        .data
                        .signature
                        .sorts
                        .intern(SortKind::Function([id].into(), basic::BOOL));
                    self.add_op(
                        &recogniser.kind,
                        sort,
                        OpKind::Recogniser(vec![op]),
                        recogniser.span,
                        "recogniser",
                    )?;
                }
            }
            self.structs.entry(key).or_insert(id);
        }
        Ok(())
    }

    fn add_sort_of(&mut self, sort: SortId, constructor: OpId) {
        if let SortKind::Named(i) = *self.data.signature.sorts.kind(sort) {
            self.data.signature.sorts.named[i as usize].constructors.push(constructor);
        }
    }

    /// Adds a projection: one operation for all constructors of the sort that name it.
    fn add_projection(
        &mut self,
        name: &ast::Ident,
        sort: SortId,
        place: (OpId, u32),
    ) -> Result<(), Diagnostic> {
        let same = self
            .operations(&name.kind)
            .into_iter()
            .find(|op| self.data.signature.op(*op).sort == sort);
        if let Some(op) = same
            && let OpKind::Projection(places) = &mut self.data.signature.op_mut(op).kind
        {
            if places.iter().any(|p| p.0 == place.0) {
                return Err(error(
                    name.span,
                    format!(
                        "projection `{}` is given to two arguments of one constructor",
                        name.kind
                    ),
                ));
            }
            places.push(place);
            return Ok(());
        }
        self.add_op(&name.kind, sort, OpKind::Projection(vec![place]), name.span, "projection")
            .map(drop)
    }

    fn add_op(
        &mut self,
        name: &str,
        sort: SortId,
        kind: OpKind,
        span: Span,
        what: &str,
    ) -> Result<OpId, Diagnostic> {
        if !schemes(name).is_empty() {
            return Err(error(
                span,
                format!("`{name}` is built in and cannot be declared as a {what}"),
            ));
        }
        let constant = !matches!(self.data.signature.sorts.kind(sort), SortKind::Function(..));
        for op in self.operations(name) {
            let other = self.data.signature.op(op).sort;
            let other_constant =
                !matches!(self.data.signature.sorts.kind(other), SortKind::Function(..));
            // An identical repeated declaration adds nothing.
            let again = matches!(
                (&kind, &self.data.signature.op(op).kind),
                (OpKind::Mapping, OpKind::Mapping)
            );
            if other == sort && (self.extending || again) {
                return Ok(op);
            }
            if other == sort || (constant && other_constant) {
                let other = self.data.signature.sorts.text(other);
                return Err(error(span, format!("`{name}` is declared twice"))
                    .note(format!("declared before as {name}: {other}"))
                    .note("only functions may share a name, if their sorts differ"));
            }
        }
        let id = self.data.signature.add_op(Op { name: name.into(), sort, kind });
        self.ops.entry(name.into()).or_default().push(id);
        Ok(id)
    }

    fn declare_constructor(
        &mut self,
        name: &ast::Ident,
        sort: &ast::Sort,
    ) -> Result<(), Diagnostic> {
        let op_sort = self.sort(sort)?;
        let (_, range) = self.data.signature.domain_range(op_sort);
        let place = match self.data.signature.sorts.declared_sort(range) {
            Some(named) if !named.structured => narrow::index(named.constructors.len()),
            _ => {
                let text = self.data.signature.sorts.text(range);
                return Err(error(name.span, format!("`{}` cannot be a constructor of sort {text}", name.kind))
                    .note("constructors can be declared for sorts that are declared by their name only (`sort S;`)"));
            }
        };
        let same = |op: &OpId| {
            let op = self.data.signature.op(*op);
            op.sort == op_sort && matches!(op.kind, OpKind::Constructor(_))
        };
        if self.operations(&name.kind).iter().any(same) {
            return Ok(());
        }
        let op =
            self.add_op(&name.kind, op_sort, OpKind::Constructor(place), name.span, "constructor")?;
        self.add_sort_of(range, op);
        Ok(())
    }

    /// Rejects sorts that have constructors but no finite term, and sorts recursive through a
    /// function, Set or Bag.
    fn check_inhabited(&self, sections: &[Section]) -> Result<(), Diagnostic> {
        let signature = &self.data.signature;
        let sorts = &signature.sorts;
        let mut inhabited: Vec<bool> =
            sorts.named.iter().map(|n| n.constructors.is_empty()).collect();
        let holds = |inhabited: &[bool], sort: SortId| {
            let mut sort = sort;
            loop {
                match sorts.kind(sort) {
                    SortKind::Named(i) => return inhabited[*i as usize],
                    SortKind::Function(_, range) => sort = *range,
                    _ => return true,
                }
            }
        };
        loop {
            let mut changed = false;
            for i in 0..inhabited.len() {
                if !inhabited[i] {
                    let some = sorts.named[i].constructors.iter().any(|c| {
                        let op = signature.op(*c);
                        signature.domain_range(op.sort).0.iter().all(|s| holds(&inhabited, *s))
                    });
                    if some {
                        inhabited[i] = true;
                        changed = true;
                    }
                }
            }
            if !changed {
                break;
            }
        }
        let place = |name: &str| {
            sections.iter().find_map(|s| match s {
                Section::Sorts(decls) => decls.iter().find(|d| d.0.kind == name).map(|d| d.0.span),
                _ => None,
            })
        };
        let refuse = |i: usize, message: String| {
            let name = &sorts.named[i].name;
            match place(name) {
                Some(span) => error(span, message),
                None => Diagnostic::new(mu_base::Stage::Type, message),
            }
        };
        if let Some(i) = inhabited.iter().position(|b| !b) {
            let name = &sorts.named[i].name;
            return Err(refuse(
                i,
                format!(
                    "sort `{name}` has no elements: each of its constructors needs an element of it first"
                ),
            ));
        }
        for i in 0..sorts.named.len() {
            if self.recursive_through_function(narrow::index(i)) {
                let name = &sorts.named[i].name;
                return Err(refuse(
                    i,
                    format!(
                        "sort `{name}` is defined in terms of itself through a function sort, a Set or a Bag"
                    ),
                ));
            }
        }
        Ok(())
    }

    /// True if a structured sort contains itself below a function sort, Set or Bag.
    fn recursive_through_function(&self, start: u32) -> bool {
        let signature = &self.data.signature;
        let mut seen: AHashSet<(SortId, bool)> = AHashSet::new();
        let mut todo: Vec<(SortId, bool)> = Vec::new();
        let push = |named: u32, below: bool, todo: &mut Vec<(SortId, bool)>| {
            let named = &signature.sorts.named[named as usize];
            if named.structured {
                for c in &named.constructors {
                    todo.extend(
                        signature.domain_range(signature.op(*c).sort).0.iter().map(|s| (*s, below)),
                    );
                }
            }
        };
        push(start, false, &mut todo);
        while let Some((sort, below)) = todo.pop() {
            if !seen.insert((sort, below)) {
                continue;
            }
            match signature.sorts.kind(sort) {
                SortKind::Named(i) if *i == start && below => return true,
                SortKind::Named(i) => push(*i, below, &mut todo),
                SortKind::List(e) | SortKind::FSet(e) | SortKind::FBag(e) => todo.push((*e, below)),
                SortKind::Set(e) | SortKind::Bag(e) => todo.push((*e, true)),
                SortKind::Function(domain, range) => {
                    todo.extend(domain.iter().map(|s| (*s, true)));
                    todo.push((*range, true));
                }
                _ => {}
            }
        }
        false
    }

    /// Checks an equation: the left-hand side at its own sort, the right-hand side lifted to it.
    /// Among several readings, the one with the fewest coercions in the left-hand side counts, then
    /// in the right-hand side.
    fn check_equation(&mut self, equation: &ast::Equation) -> Result<Equation, Diagnostic> {
        let condition = match &equation.condition {
            Some(c) => Some(self.check(c, Some(basic::BOOL))?),
            None => None,
        };
        let mut inference = Inference::default();
        let lhs = self.infer(&mut inference, &equation.lhs)?;
        let rhs = self.infer(&mut inference, &equation.rhs)?;
        let mut best: Option<((u32, u32), super::types::Ty)> = None;
        let mut tie = None;
        let right: Vec<super::types::Ty> =
            inference.node(rhs).candidates.iter().map(|c| c.ty).collect();
        for c in inference.node(lhs).candidates.clone() {
            // The left-hand side has its own sort; if that is open, as in `head([]) = 0`, the
            // right-hand side completes it.
            let mut readings = vec![c.ty];
            if self.types.is_open(c.ty) {
                for r in &right {
                    readings.extend(
                        self.types.join(c.ty, *r).filter(|ty| self.types.instance(c.ty, *ty)),
                    );
                }
            }
            for ty in readings {
                let Some(step) = self.cost_at(&inference, rhs, ty) else { continue };
                let cost = (c.cost, step);
                match best {
                    Some((least, _)) if cost > least => {}
                    Some((least, found)) if cost == least => {
                        tie = (found != ty).then_some(ty).or(tie)
                    }
                    _ => {
                        best = Some((cost, ty));
                        tie = None;
                    }
                }
            }
        }
        let Some((_, ty)) = best else {
            let (left, right) =
                (self.found_text(&inference, lhs), self.found_text(&inference, rhs));
            let message = format!(
                "the right-hand side has sort {right}, but the left-hand side has sort {left}"
            );
            let diagnostic = error(equation.rhs.span, message);
            let of_left = inference.node(lhs).candidates.iter().min_by_key(|c| c.cost);
            return Err(match of_left.map(|c| c.ty) {
                Some(wanted) => self.with_conversion(diagnostic, &inference, rhs, wanted),
                None => diagnostic,
            });
        };
        let sorts = &self.data.signature.sorts;
        if let Some(other) = tie {
            let (a, b) = (self.types.text(sorts, ty), self.types.text(sorts, other));
            return Err(error(
                equation.lhs.span,
                format!("the equation is ambiguous: its sides may have sort {a} or {b}"),
            ));
        }
        let ty = self.types.close(ty);
        let lhs = self.elaborate(&inference, lhs, ty)?;
        let rhs = self.elaborate(&inference, rhs, ty)?;
        let mut head = &lhs;
        while let ExprKind::Apply(next, _) = &head.kind {
            head = next;
        }
        if !matches!(head.kind, ExprKind::Op(_)) {
            return Err(error(
                equation.lhs.span,
                "the left-hand side of an equation must be an operation or one applied to arguments",
            ));
        }
        let mut vars: Vec<VarId> = Vec::new();
        lhs.free_vars(&mut vars);
        self.check_bound(&vars, &rhs, "right-hand side")?;
        if let Some(condition) = &condition {
            self.check_bound(&vars, condition, "condition")?;
        }
        Ok(Equation { vars, condition, lhs, rhs, span: equation.span })
    }

    fn check_bound(&self, vars: &[VarId], expr: &Expr, part: &str) -> Result<(), Diagnostic> {
        let mut free = Vec::new();
        expr.free_vars(&mut free);
        match free.iter().find(|v| !vars.contains(v)) {
            None => Ok(()),
            Some(v) => {
                let name = &self.data.signature.var(*v).name;
                Err(error(
                    expr.span,
                    format!("variable `{name}` of the {part} does not occur in the left-hand side"),
                ))
            }
        }
    }
}

/// Returns the text of a structured sort, for its name.
fn struct_text(sort: &ast::Sort) -> String {
    let ast::SortKind::Struct(constructors) = &sort.kind else { return sort_text(sort) };
    let parts = constructors.iter().map(|c| {
        let args: Vec<String> = c
            .args
            .iter()
            .map(|(projection, sort)| match projection {
                Some(p) => format!("{}: {}", p.kind, sort_text(sort)),
                None => sort_text(sort),
            })
            .collect();
        let args = if args.is_empty() { String::new() } else { format!("({})", args.join(", ")) };
        let recogniser = c.recogniser.as_ref().map_or_else(String::new, |r| format!("?{}", r.kind));
        format!("{}{args}{recogniser}", c.name.kind)
    });
    format!("struct {}", parts.collect::<Vec<_>>().join(" | "))
}

fn sort_text(sort: &ast::Sort) -> String {
    match &sort.kind {
        ast::SortKind::Bool => "Bool".into(),
        ast::SortKind::Pos => "Pos".into(),
        ast::SortKind::Nat => "Nat".into(),
        ast::SortKind::Int => "Int".into(),
        ast::SortKind::Real => "Real".into(),
        ast::SortKind::List(e) => format!("List({})", sort_text(e)),
        ast::SortKind::Set(e) => format!("Set({})", sort_text(e)),
        ast::SortKind::Bag(e) => format!("Bag({})", sort_text(e)),
        ast::SortKind::FSet(e) => format!("FSet({})", sort_text(e)),
        ast::SortKind::FBag(e) => format!("FBag({})", sort_text(e)),
        ast::SortKind::Name(name) => name.clone(),
        ast::SortKind::Struct(_) => format!("({})", struct_text(sort)),
        ast::SortKind::Function(domain, range) => {
            let part = |s: &ast::Sort| {
                if matches!(s.kind, ast::SortKind::Function(..)) {
                    format!("({})", sort_text(s))
                } else {
                    sort_text(s)
                }
            };
            format!(
                "{} -> {}",
                domain.iter().map(part).collect::<Vec<_>>().join(" # "),
                sort_text(range)
            )
        }
    }
}
