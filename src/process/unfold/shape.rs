//! The shape of a parameter that is unfolded: a record by its constructor, a list by its length, and so on inside.
//!
//! In: a sort, and the initial value of the parameter where there is one. Out: [`Shape`], with a variable for each field. A list has the length that it
//! begins with: a guess, which [`Shape::split`] proves or refutes update by update. Cost: linear in the fields.

use ahash::AHashSet;
use mu_base::ids::{OpId, SortId, VarId};
use mu_data::expr::{Expr, ExprKind};
use mu_data::signature::{Builtin, OpKind, Signature};
use mu_data::sort::SortKind;

/// Most fields of a parameter, with those of its fields.
const MAX_FIELDS: usize = 128;

/// A parameter as a tree of fields.
pub(super) enum Shape {
    /// A parameter of its own.
    Field(VarId),
    /// What the one constructor of a sort makes.
    Record(OpId, Vec<Shape>),
    /// A list of a fixed length, of this sort.
    List(SortId, Vec<Shape>),
}

/// Makes shapes.
pub(super) struct Shaper<'a> {
    pub signature: &'a mut Signature,
    pub special: &'a AHashSet<SortId>,
    /// How deeply lists are unfolded that are elements of lists.
    pub lists: usize,
    /// The fields so far.
    pub fields: Vec<VarId>,
}

/// A list's elements, if it is a list of known length that is not empty.
fn elements<'e>(signature: &Signature, list: &'e Expr) -> Option<Vec<&'e Expr>> {
    let (mut out, mut at) = (Vec::new(), list);
    while let (Builtin::Cons, [head, tail]) = at.as_builtin(signature)? {
        out.push(head);
        if out.len() > MAX_FIELDS {
            return None;
        }
        at = tail;
    }
    matches!(at.as_builtin(signature), Some((Builtin::EmptyList, _))).then_some(out).filter(|e| !e.is_empty())
}

impl Shaper<'_> {
    /// The shape of a value of a sort, which at first is `init`; none if it has too many fields.
    pub fn shape(&mut self, name: &str, sort: SortId, init: Option<&Expr>) -> Option<Shape> {
        if self.special.contains(&sort) {
            return self.field(name, sort);
        }
        if let (SortKind::List(element), Some(init), 1..) = (self.signature.sorts.kind(sort).clone(), init, self.lists)
            && let Some(inits) = elements(self.signature, init)
        {
            self.lists -= 1;
            let shapes: Option<Vec<Shape>> =
                inits.into_iter().enumerate().map(|(i, e)| self.shape(&format!("{name}_{i}"), element, Some(e))).collect();
            self.lists += 1;
            return Some(Shape::List(sort, shapes?));
        }
        let constructor = match self.signature.sorts.named_of(sort).map(|n| &n.constructors[..]) {
            Some([op]) => Some(*op),
            _ => None,
        };
        let parts = constructor.map(|op| self.signature.domain_range(self.signature.op(op).sort).0.to_vec()).unwrap_or_default();
        let Some(op) = constructor.filter(|_| !parts.is_empty()) else { return self.field(name, sort) };
        let inits = match init.map(|e| &e.kind) {
            Some(ExprKind::Apply(head, args)) if matches!(head.kind, ExprKind::Op(o) if o == op) && args.len() == parts.len() => &args[..],
            _ => &[],
        };
        let projection = |i: usize| {
            let of = |kind: &OpKind| matches!(kind, OpKind::Projection(parts) if parts.contains(&(op, i as u32)));
            self.signature.ops().find(|(_, o)| of(&o.kind)).map_or_else(|| (i + 1).to_string(), |(_, o)| o.name.clone())
        };
        let names: Vec<String> = (0..parts.len()).map(|i| format!("{name}_{}", projection(i))).collect();
        let mut all = Vec::with_capacity(parts.len());
        for (i, (name, part)) in names.iter().zip(parts).enumerate() {
            all.push(self.shape(name, part, inits.get(i))?);
        }
        Some(Shape::Record(op, all))
    }

    fn field(&mut self, name: &str, sort: SortId) -> Option<Shape> {
        let v = self.signature.fresh_var(name, sort);
        self.fields.push(v);
        (self.fields.len() <= MAX_FIELDS).then_some(Shape::Field(v))
    }
}

impl Shape {
    /// Whether the shape of some list is guessed.
    pub fn has_lists(&self) -> bool {
        match self {
            Shape::Field(_) => false,
            Shape::Record(_, parts) => parts.iter().any(Shape::has_lists),
            Shape::List(..) => true,
        }
    }

    /// The fields put together.
    pub fn term(&self, signature: &mut Signature) -> Expr {
        match self {
            Shape::Field(v) => Expr::var(signature, *v),
            Shape::Record(op, fields) => {
                let fields = fields.iter().map(|f| f.term(signature)).collect();
                Expr::apply(signature, *op, fields)
            }
            Shape::List(sort, elements) => {
                let mut list = Expr::builtin(signature, Builtin::EmptyList, vec![], *sort);
                for e in elements.iter().rev() {
                    let head = e.term(signature);
                    list = Expr::builtin(signature, Builtin::Cons, vec![head, list], *sort);
                }
                list
            }
        }
    }

    /// What each field becomes; none if the expression is none of this shape.
    pub fn split(&self, signature: &mut Signature, e: &Expr, out: &mut Vec<(VarId, Expr)>) -> Option<()> {
        match self {
            Shape::Field(v) => {
                out.push((*v, e.clone()));
                Some(())
            }
            Shape::List(_, elements) => split_list(elements, signature, e, out),
            Shape::Record(op, fields) => {
                if let ExprKind::Apply(head, args) = &e.kind
                    && matches!(head.kind, ExprKind::Op(o) if o == *op)
                    && args.len() == fields.len()
                {
                    return fields.iter().zip(args).try_for_each(|(f, a)| f.split(signature, a, out));
                }
                split_choice(signature, e, out, &mut |signature, e, out| self.split(signature, e, out))
            }
        }
    }
}

fn split_list(elements: &[Shape], signature: &mut Signature, e: &Expr, out: &mut Vec<(VarId, Expr)>) -> Option<()> {
    match (e.as_builtin(signature), elements) {
        (Some((Builtin::Cons, [head, tail])), [first, rest @ ..]) => {
            first.split(signature, head, out)?;
            split_list(rest, signature, tail, out)
        }
        (Some((Builtin::EmptyList, _)), []) => Some(()),
        _ => split_choice(signature, e, out, &mut |signature, e, out| split_list(elements, signature, e, out)),
    }
}

/// What splits one side of a choice.
type Splitter<'a> = dyn FnMut(&mut Signature, &Expr, &mut Vec<(VarId, Expr)>) -> Option<()> + 'a;

/// Fields of one of two expressions: choices of fields.
fn split_choice(signature: &mut Signature, e: &Expr, out: &mut Vec<(VarId, Expr)>, split: &mut Splitter<'_>) -> Option<()> {
    let Some((Builtin::If, [condition, a, b])) = e.as_builtin(signature) else { return None };
    let (mut yes, mut no) = (Vec::new(), Vec::new());
    split(signature, a, &mut yes)?;
    split(signature, b, &mut no)?;
    for ((v, a), (_, b)) in yes.into_iter().zip(no) {
        let sort = signature.var(v).sort;
        let e = if a == b { a } else { Expr::builtin(signature, Builtin::If, vec![condition.clone(), a, b], sort) };
        out.push((v, e));
    }
    Some(())
}
