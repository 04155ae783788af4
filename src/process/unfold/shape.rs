//! Shapes of unfolded parameters: a record by its constructor, a list by its length, a function by
//! its default and exceptions, recursively.
//!
//! In: a sort, and the initial value of the parameter if there is one. Out: [`FieldTree`], with a
//! variable for each field. A list has its initial length: a guess, which [`FieldTree::split`]
//! proves or refutes update by update. A function is its initial value except for the arguments at
//! which some update changes it; these become known when updates are split. Cost: linear in the
//! fields.
//!
//! Invariant: two values of one shape are equal exactly if their fields are. For functions this
//! holds because the fields are data, for which equality is equality of terms.

use ahash::AHashSet;
use mu_base::ids::{OpId, SortId, VarId};
use mu_base::narrow;
use mu_data::expr::{Expr, ExprKind};
use mu_data::signature::{Builtin, OpKind, Signature};
use mu_data::sort::SortKind;

/// Limit on the fields of a parameter, nested ones included; above it, the parameter is not
/// unfolded.
const MAX_FIELDS: usize = 128;

/// Parameter as a tree of fields.
pub(super) enum FieldTree {
    /// A parameter of its own.
    Field(VarId),
    /// Term of the only constructor of a sort.
    Record(OpId, Vec<FieldTree>),
    /// List of a fixed length, of this sort.
    List(SortId, Vec<FieldTree>),
    /// A function.
    Function(Box<UpdatedFunction>),
}

/// Function that equals `base` except at some arguments.
pub(super) struct UpdatedFunction {
    sort: SortId,
    base: Expr,
    /// Arguments, the value there, the value of `base` there.
    entries: Vec<(Expr, FieldTree, Expr)>,
    /// Placeholder of the parameter while it is not live, if that is not a value: it is treated as
    /// `base`.
    placeholder: Option<OpId>,
}

/// Arguments at which functions of a sort are changed.
pub(super) type Keys = Vec<(SortId, Expr)>;

/// New values of fields.
#[derive(Default)]
pub(super) struct SplitFields {
    pub values: Vec<(VarId, Expr)>,
    /// Arguments at which functions change that their shapes do not include.
    pub unknown: Keys,
}

/// Builder of shapes.
pub(super) struct ShapeBuilder<'a> {
    pub signature: &'a mut Signature,
    pub special: &'a AHashSet<SortId>,
    /// Depth to which lists that are elements of lists are unfolded.
    pub lists: usize,
    /// Arguments at which functions of a sort are changed, as far as known.
    pub keys: &'a [(SortId, Expr)],
    /// Placeholders of parameters while they are not live.
    pub placeholders: &'a [OpId],
    /// Evaluates a function at an argument, if possible.
    pub apply: &'a mut dyn FnMut(&Expr) -> Option<Expr>,
    /// Fields so far.
    pub fields: Vec<VarId>,
}

/// Splits a function into its base and its updates, the last update first.
fn updates<'e>(
    signature: &Signature,
    mut function: &'e Expr,
) -> (&'e Expr, Vec<(&'e Expr, &'e Expr)>) {
    let mut out = Vec::new();
    while let Some((Builtin::Update, [before, key, value])) = function.as_builtin(signature) {
        out.push((key, value));
        function = before;
    }
    (function, out)
}

/// Collects the arguments at which an expression changes functions, including functions that it
/// stores.
fn changed_arguments(signature: &Signature, function: &Expr, out: &mut Keys) {
    for (key, value) in updates(signature, function).1 {
        if key.is_closed() {
            out.push((function.sort, key.clone()));
        }
        changed_arguments(signature, value, out);
    }
}

/// True if values of a sort are equal exactly if they are the same term.
fn is_plain(signature: &Signature, special: &AHashSet<SortId>, sort: SortId) -> bool {
    let mut seen = AHashSet::new();
    let mut todo = vec![sort];
    while let Some(sort) = todo.pop() {
        if !seen.insert(sort) {
            continue;
        }
        if special.contains(&sort) {
            return false;
        }
        match signature.sorts.kind(sort) {
            SortKind::List(element) => todo.push(*element),
            SortKind::Function(..)
            | SortKind::Set(_)
            | SortKind::FSet(_)
            | SortKind::Bag(_)
            | SortKind::FBag(_) => return false,
            _ => {
                let constructors = signature
                    .sorts
                    .declared_sort(sort)
                    .map(|n| n.constructors.clone())
                    .unwrap_or_default();
                todo.extend(constructors.iter().flat_map(|op| {
                    signature.domain_range(signature.op(*op).sort).0.iter().copied()
                }));
            }
        }
    }
    true
}

/// Returns the elements of a list of known length; `None` if it is empty or unknown.
fn elements<'e>(signature: &Signature, list: &'e Expr) -> Option<Vec<&'e Expr>> {
    let (mut out, mut at) = (Vec::new(), list);
    while let (Builtin::Cons, [head, tail]) = at.as_builtin(signature)? {
        out.push(head);
        if out.len() > MAX_FIELDS {
            return None;
        }
        at = tail;
    }
    matches!(at.as_builtin(signature), Some((Builtin::EmptyList, _)))
        .then_some(out)
        .filter(|e| !e.is_empty())
}

impl ShapeBuilder<'_> {
    /// Returns the shape of a value of a sort with initial value `init`; `None` if it has too many
    /// fields.
    pub fn shape(&mut self, name: &str, sort: SortId, init: Option<&Expr>) -> Option<FieldTree> {
        if self.special.contains(&sort) {
            return self.field(name, sort);
        }
        if let (SortKind::List(element), Some(init), 1..) =
            (self.signature.sorts.kind(sort).clone(), init, self.lists)
            && let Some(inits) = elements(self.signature, init)
        {
            self.lists -= 1;
            let shapes: Option<Vec<FieldTree>> = inits
                .into_iter()
                .enumerate()
                .map(|(i, e)| self.shape(&format!("{name}_{i}"), element, Some(e)))
                .collect();
            self.lists += 1;
            return Some(FieldTree::List(sort, shapes?));
        }
        if let (SortKind::Function(domain, range), Some(init)) =
            (self.signature.sorts.kind(sort).clone(), init)
            && domain.len() == 1
        {
            return self.function(name, (sort, range), init);
        }
        let constructor =
            match self.signature.sorts.declared_sort(sort).map(|n| &n.constructors[..]) {
                Some([op]) => Some(*op),
                _ => None,
            };
        let parts = constructor
            .map(|op| self.signature.domain_range(self.signature.op(op).sort).0.to_vec())
            .unwrap_or_default();
        let Some(op) = constructor.filter(|_| !parts.is_empty()) else {
            return self.field(name, sort);
        };
        let inits = match init.map(|e| &e.kind) {
            Some(ExprKind::Apply(head, args))
                if matches!(head.kind, ExprKind::Op(o) if o == op) && args.len() == parts.len() =>
            {
                &args[..]
            }
            _ => &[],
        };
        let projection = |i: usize| {
            let of = |kind: &OpKind| matches!(kind, OpKind::Projection(parts) if parts.contains(&(op, narrow::index(i))));
            self.signature
                .ops()
                .find(|(_, o)| of(&o.kind))
                .map_or_else(|| (i + 1).to_string(), |(_, o)| o.name.clone())
        };
        let names: Vec<String> =
            (0..parts.len()).map(|i| format!("{name}_{}", projection(i))).collect();
        let mut all = Vec::with_capacity(parts.len());
        for (i, (name, part)) in names.iter().zip(parts).enumerate() {
            all.push(self.shape(name, part, inits.get(i))?);
        }
        Some(FieldTree::Record(op, all))
    }

    /// Returns the shape of a function with initial value `init`; a single field if its values may
    /// be equal without being the same term.
    fn function(
        &mut self,
        name: &str,
        (sort, range): (SortId, SortId),
        init: &Expr,
    ) -> Option<FieldTree> {
        let mut last = range;
        while let SortKind::Function(_, range) = self.signature.sorts.kind(last) {
            last = *range;
        }
        if !is_plain(self.signature, self.special, last) {
            return self.field(name, sort);
        }
        let (base, own) = updates(self.signature, init);
        let own: Vec<(Expr, Expr)> = own.into_iter().map(|(k, v)| (k.clone(), v.clone())).collect();
        let mut keys: Vec<Expr> =
            self.keys.iter().filter(|k| k.0 == sort).map(|k| k.1.clone()).collect();
        own.iter().for_each(|(k, _)| {
            if !keys.contains(k) {
                keys.push(k.clone())
            }
        });
        if keys.iter().any(|k| !is_plain(self.signature, self.special, k.sort)) {
            return self.field(name, sort);
        }
        let mut entries = Vec::with_capacity(keys.len());
        for key in keys {
            let before = (self.apply)(&Expr::new(
                ExprKind::Apply(base.clone(), vec![key.clone()]),
                range,
                key.span,
            ))?;
            let at_first = own.iter().find(|o| o.0 == key).map_or(&before, |o| &o.1);
            let part = mu_data::print::expression(self.signature, &key);
            let shape = self.shape(&format!("{name}_{part}"), range, Some(at_first))?;
            entries.push((key, shape, before));
        }
        let placeholder =
            self.placeholders.iter().copied().find(|op| self.signature.op(*op).sort == sort);
        Some(FieldTree::Function(Box::new(UpdatedFunction {
            sort,
            base: base.clone(),
            entries,
            placeholder,
        })))
    }

    fn field(&mut self, name: &str, sort: SortId) -> Option<FieldTree> {
        let v = self.signature.fresh_var(name, sort);
        self.fields.push(v);
        (self.fields.len() <= MAX_FIELDS).then_some(FieldTree::Field(v))
    }
}

impl FieldTree {
    /// True if the shape contains a list, so that its length is a guess.
    pub fn has_lists(&self) -> bool {
        match self {
            FieldTree::Field(_) => false,
            FieldTree::Record(_, parts) => parts.iter().any(FieldTree::has_lists),
            FieldTree::List(..) => true,
            FieldTree::Function(f) => f.entries.iter().any(|e| e.1.has_lists()),
        }
    }

    /// True if it is a record or a list.
    pub fn is_built(&self) -> bool {
        matches!(self, FieldTree::Record(..) | FieldTree::List(..))
    }

    /// True if it is a function, or contains one.
    pub fn has_functions(&self) -> bool {
        match self {
            FieldTree::Field(_) => false,
            FieldTree::Record(_, parts) | FieldTree::List(_, parts) => {
                parts.iter().any(FieldTree::has_functions)
            }
            FieldTree::Function(_) => true,
        }
    }

    /// Returns the term composed of the fields.
    pub fn term(&self, signature: &mut Signature) -> Expr {
        match self {
            FieldTree::Field(v) => Expr::var(signature, *v),
            FieldTree::Record(op, fields) => {
                let fields = fields.iter().map(|f| f.term(signature)).collect();
                Expr::apply(signature, *op, fields)
            }
            FieldTree::List(sort, elements) => {
                let mut list = Expr::builtin(signature, Builtin::EmptyList, vec![], *sort);
                for e in elements.iter().rev() {
                    let head = e.term(signature);
                    list = Expr::builtin(signature, Builtin::Cons, vec![head, list], *sort);
                }
                list
            }
            FieldTree::Function(f) => {
                let mut function = f.base.clone();
                for (key, shape, _) in &f.entries {
                    let value = shape.term(signature);
                    function = Expr::builtin(
                        signature,
                        Builtin::Update,
                        vec![function, key.clone(), value],
                        f.sort,
                    );
                }
                function
            }
        }
    }

    /// Computes the new value of each field; `None` if the expression does not have this shape.
    pub fn split(&self, signature: &mut Signature, e: &Expr, out: &mut SplitFields) -> Option<()> {
        match self {
            FieldTree::Field(v) => {
                out.values.push((*v, e.clone()));
                Some(())
            }
            FieldTree::Function(f) => split_function(f, signature, e, out),
            FieldTree::List(_, elements) => split_list(elements, signature, e, out),
            FieldTree::Record(op, fields) => {
                if let ExprKind::Apply(head, args) = &e.kind
                    && matches!(head.kind, ExprKind::Op(o) if o == *op)
                    && args.len() == fields.len()
                {
                    return fields
                        .iter()
                        .zip(args)
                        .try_for_each(|(f, a)| f.split(signature, a, out));
                }
                split_choice(signature, e, out, &mut |signature, e, out| {
                    self.split(signature, e, out)
                })
            }
        }
    }
}

fn split_list(
    elements: &[FieldTree],
    signature: &mut Signature,
    e: &Expr,
    out: &mut SplitFields,
) -> Option<()> {
    match (e.as_builtin(signature), elements) {
        (Some((Builtin::Cons, [head, tail])), [first, rest @ ..]) => {
            first.split(signature, head, out)?;
            split_list(rest, signature, tail, out)
        }
        (Some((Builtin::EmptyList, _)), []) => Some(()),
        _ => split_choice(signature, e, out, &mut |signature, e, out| {
            split_list(elements, signature, e, out)
        }),
    }
}

fn split_function(
    shape: &UpdatedFunction,
    signature: &mut Signature,
    e: &Expr,
    out: &mut SplitFields,
) -> Option<()> {
    let UpdatedFunction { base, entries, placeholder, .. } = shape;
    if matches!(e.kind, ExprKind::Op(op) if Some(op) == *placeholder) && e != base {
        return entries
            .iter()
            .try_for_each(|(_, shape, without)| shape.split(signature, without, out));
    }
    let (before, own) = updates(signature, e);
    if before != base {
        return split_choice(signature, e, out, &mut |signature, e, out| {
            split_function(shape, signature, e, out)
        });
    }
    if own.iter().any(|(key, _)| entries.iter().all(|e| e.0 != **key)) {
        changed_arguments(signature, e, &mut out.unknown);
        return None;
    }
    for (key, shape, without) in entries {
        let value = own.iter().find(|o| o.0 == key).map_or(without, |o| o.1);
        shape.split(signature, value, out)?;
    }
    Some(())
}

/// Function that splits one branch of a conditional.
type Splitter<'a> = dyn FnMut(&mut Signature, &Expr, &mut SplitFields) -> Option<()> + 'a;

/// Splits a conditional: each field becomes a conditional of the branches' fields.
fn split_choice(
    signature: &mut Signature,
    e: &Expr,
    out: &mut SplitFields,
    split: &mut Splitter<'_>,
) -> Option<()> {
    let Some((Builtin::If, [condition, a, b])) = e.as_builtin(signature) else { return None };
    let (mut yes, mut no) = (SplitFields::default(), SplitFields::default());
    let both = (split(signature, a, &mut yes), split(signature, b, &mut no));
    out.unknown.append(&mut yes.unknown);
    out.unknown.append(&mut no.unknown);
    let (Some(()), Some(())) = both else { return None };
    for ((v, a), (_, b)) in yes.values.into_iter().zip(no.values) {
        let sort = signature.var(v).sort;
        let e = if a == b {
            a
        } else {
            Expr::builtin(signature, Builtin::If, vec![condition.clone(), a, b], sort)
        };
        out.values.push((v, e));
    }
    Some(())
}
