//! Typed labels from texts alone, by inference, so that formulas can refer to labels of files
//! without declarations.
//!
//! Arguments have shapes. `true` and `false` are Bool. Numbers are Nat; Int or Real if a negative
//! number or a fraction occurs at that position. Lists and sets of these have their sorts. Any
//! other argument is a value of one enumerated sort `Value` with the occurring texts as elements; a
//! formula can name the elements that are identifiers. If the arguments of an action have different
//! shapes in two labels, the labels belong to overloads of the action, as `a(1)` and `a(true)`. A
//! label that is not a multi-action becomes an action without arguments, named by its whole text.
//! The time of a label is left out. Invariant: an argument has the sort of the same expression in a
//! formula. Cost: linear in the label table, times the overloads of an action.

use super::declared::{evaluate_labels, sort_actions};
use super::{ActionDecl, ActionLabels, MultiAction, untimed_actions};
use ahash::AHashMap;
use mu_base::Diagnostic;
use mu_base::ids::{ActId, LabelId, OpId, SortId};
use mu_base::narrow;
use mu_data::expr::{DataSpec, Expr};
use mu_data::signature::{Builtin, Op, OpKind, Signature};
use mu_data::sort::{SortKind, basic};
use mu_data::typecheck::check_expression;
use mu_syntax::ast::{BinaryOp, Data, DataKind, UnaryOp};
use num_bigint::BigInt;
use std::sync::Arc;

/// Typed labels of a file.
pub struct InferredLabels {
    data: DataSpec,
    actions: Vec<ActionDecl>,
    labels: Vec<Arc<MultiAction>>,
}

/// Shape of an argument, from which its sort follows.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ArgumentShape {
    Bool,
    /// Number of one of these sorts, from the smallest.
    Number(NumberSort),
    /// List; `None` for the elements of an empty one.
    List(Option<Box<ArgumentShape>>),
    /// Finite set.
    Set(Option<Box<ArgumentShape>>),
    /// Constant of the sort `Value`.
    Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum NumberSort {
    Nat,
    Int,
    Real,
}

impl ArgumentShape {
    fn of(data: &Data) -> Self {
        match &data.kind {
            DataKind::Name(n) if n == "true" || n == "false" => Self::Bool,
            DataKind::Number(_) => Self::Number(NumberSort::Nat),
            DataKind::Unary(UnaryOp::Minus, inner) => match Self::of(inner) {
                Self::Number(sort) => Self::Number(sort.max(NumberSort::Int)),
                _ => Self::Value,
            },
            DataKind::Binary(BinaryOp::Divide, a, b) => match (Self::of(a), &b.kind) {
                (Self::Number(_), DataKind::Number(n)) if n.bytes().any(|d| d != b'0') => {
                    Self::Number(NumberSort::Real)
                }
                _ => Self::Value,
            },
            DataKind::List(elements) => Self::elements(elements).map_or(Self::Value, Self::List),
            DataKind::Set(elements) => Self::elements(elements).map_or(Self::Value, Self::Set),
            _ => Self::Value,
        }
    }
    /// Returns the common shape of elements; `Some(None)` if there are none, `None` if they have
    /// no common shape, or are constants.
    fn elements(elements: &[Data]) -> Option<Option<Box<Self>>> {
        let mut common: Option<Self> = None;
        for element in elements {
            let shape = Self::of(element);
            common = Some(match common {
                None => shape,
                Some(known) => known.join(&shape)?,
            });
        }
        (common != Some(Self::Value)).then(|| common.map(Box::new))
    }
    /// Returns the smallest shape of both; `None` if they belong to different overloads.
    fn join(&self, other: &Self) -> Option<Self> {
        let inner = |a: &Option<Box<Self>>, b: &Option<Box<Self>>| match (a, b) {
            (Some(a), Some(b)) => a.join(b).map(|s| Some(Box::new(s))),
            (a, b) => Some(a.clone().or_else(|| b.clone())),
        };
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => Some(Self::Number(*a.max(b))),
            (Self::List(a), Self::List(b)) => inner(a, b).map(Self::List),
            (Self::Set(a), Self::Set(b)) => inner(a, b).map(Self::Set),
            (a, b) => (a == b).then(|| a.clone()),
        }
    }
    fn sort(&self, data: &mut DataSpec, values: SortId) -> SortId {
        let mut of = |inner: &Option<Box<Self>>, kind: fn(SortId) -> SortKind| {
            let inner = inner.as_ref().map_or(basic::NAT, |s| s.sort(data, values));
            data.signature.sorts.intern(kind(inner))
        };
        match self {
            Self::Bool => basic::BOOL,
            Self::Number(NumberSort::Nat) => basic::NAT,
            Self::Number(NumberSort::Int) => basic::INT,
            Self::Number(NumberSort::Real) => basic::REAL,
            Self::List(inner) => of(inner, SortKind::List),
            Self::Set(inner) => of(inner, SortKind::FSet),
            Self::Value => values,
        }
    }
}

/// Argument with its shape and its text.
struct Argument {
    data: Data,
    shape: ArgumentShape,
    text: String,
}

impl Argument {
    /// Returns the value of a truth value or an integer, the most frequent arguments, without a
    /// type check.
    fn plain(&self, signature: &mut Signature, sort: SortId) -> Option<Expr> {
        let (negative, data) = match &self.data.kind {
            DataKind::Unary(UnaryOp::Minus, inner) => (true, &**inner),
            _ => (false, &self.data),
        };
        match &data.kind {
            DataKind::Name(name) if self.shape == ArgumentShape::Bool => {
                Some(Expr::boolean(signature, name == "true"))
            }
            DataKind::Number(digits) if [basic::NAT, basic::INT].contains(&sort) => {
                let number: BigInt = digits.parse().ok()?;
                Some(Expr::number(if negative { -number } else { number }, sort))
            }
            _ => None,
        }
    }
}

/// An action of a label.
type Action = (String, Vec<Argument>);

/// Parses the text of a label.
fn parse_label(text: &str) -> Vec<Action> {
    let Some(actions) = untimed_actions(text) else { return vec![(text.to_string(), Vec::new())] };
    let argument = |data: Data| {
        let (start, end) = (data.span.start as usize, data.span.end as usize);
        let text = text.get(start..end).unwrap_or_default().to_string();
        Argument { shape: ArgumentShape::of(&data), data, text }
    };
    let action = |(name, args): (mu_syntax::ast::Ident, Vec<Data>)| {
        (name.kind, args.into_iter().map(argument).collect())
    };
    actions.into_iter().map(action).collect()
}

/// The overloads of all actions.
#[derive(Default)]
struct Overloads {
    /// By name and number of arguments: shapes of the arguments, and number of the action.
    all: AHashMap<(String, usize), Vec<(Vec<ArgumentShape>, usize)>>,
    /// Names and numbers of arguments, by number of the action.
    order: Vec<(String, usize)>,
}

impl Overloads {
    /// Adds an action of a label: it widens the overload to which it belongs, or is a new one.
    fn add(&mut self, (name, args): &Action) {
        let key = (name.clone(), args.len());
        let known = self.all.entry(key.clone()).or_default();
        for (shapes, _) in known.iter_mut() {
            let joined = shapes.iter().zip(args).map(|(s, a)| s.join(&a.shape));
            if let Some(joined) = joined.collect::<Option<Vec<_>>>() {
                *shapes = joined;
                return;
            }
        }
        known.push((args.iter().map(|a| a.shape.clone()).collect(), self.order.len()));
        self.order.push(key);
    }
    /// Returns the overload to which an action of a label was added.
    fn of(&self, (name, args): &Action) -> Option<usize> {
        let belongs = |(shapes, _): &&(Vec<ArgumentShape>, usize)| {
            shapes.iter().zip(args).all(|(s, a)| s.join(&a.shape).is_some())
        };
        self.all.get(&(name.clone(), args.len()))?.iter().find(belongs).map(|o| o.1)
    }
    /// Returns the declarations of the actions.
    fn declarations(&self, data: &mut DataSpec, values: SortId) -> Vec<ActionDecl> {
        let mut out: Vec<ActionDecl> = Vec::new();
        for (number, key) in self.order.iter().enumerate() {
            let own = self.all[key].iter().find(|o| o.1 == number);
            let shapes = own.map_or(&[][..], |o| &o.0);
            let sorts = shapes.iter().map(|s| s.sort(data, values)).collect();
            out.push(ActionDecl { name: key.0.clone(), sorts });
        }
        out
    }
}

impl InferredLabels {
    /// Types the texts of a label table; the first is tau.
    ///
    /// # Errors
    /// Only a broken invariant: every argument of a shape has its sort and a value.
    pub fn new(texts: &[String]) -> Result<Self, Diagnostic> {
        let mut data = DataSpec::default();
        let values = data.signature.sorts.declare("Value", true);
        let mut overloads = Overloads::default();
        let mut labels: Vec<Vec<Action>> = vec![Vec::new()];
        labels.extend(texts.iter().skip(1).map(|text| parse_label(text)));
        labels.iter().flatten().for_each(|action| overloads.add(action));
        let actions = overloads.declarations(&mut data, values);
        let mut constants: AHashMap<String, OpId> = AHashMap::new();
        let mut typed = Vec::with_capacity(labels.len());
        let mut evaluates = false;
        for label in &labels {
            let mut multi = MultiAction::new();
            for action in label {
                let overload = overloads.of(action);
                let number = overload.ok_or_else(|| Diagnostic::internal("an action is lost"))?;
                let mut arguments = Vec::new();
                for (argument, sort) in action.1.iter().zip(&actions[number].sorts) {
                    arguments.push(if let Some(e) = argument.plain(&mut data.signature, *sort) {
                        e
                    } else if argument.shape == ArgumentShape::Value {
                        let next = narrow::index(constants.len());
                        let op = constants
                            .entry(argument.text.clone())
                            .or_insert_with(|| constant(&mut data, values, &argument.text, next));
                        Expr::op(&data.signature, *op)
                    } else {
                        evaluates = true;
                        check_expression(&argument.data, &mut data, Some(*sort))?
                    });
                }
                multi.push((ActId::new(number), arguments));
            }
            typed.push(multi);
        }
        // Formulas need the constants of Bool in any case.
        data.signature.builtin(Builtin::True, basic::BOOL);
        data.signature.builtin(Builtin::False, basic::BOOL);
        let labels = if evaluates {
            evaluate_labels(typed, &mut data, &actions)?
        } else {
            typed.into_iter().map(|label| Arc::new(sort_actions(&data.signature, label))).collect()
        };
        Ok(Self { data, actions, labels })
    }

    /// Returns the data specification of the labels.
    pub fn data(&self) -> &DataSpec {
        &self.data
    }
    /// Returns the actions that occur.
    pub fn actions(&self) -> &[ActionDecl] {
        &self.actions
    }
}

/// Declares a constant of the sort `Value`.
fn constant(data: &mut DataSpec, values: SortId, text: &str, number: u32) -> OpId {
    let kind = OpKind::Constructor(number);
    let op = data.signature.add_op(Op { name: text.to_string(), sort: values, kind });
    if let SortKind::Named(n) = *data.signature.sorts.kind(values) {
        data.signature.sorts.named[n as usize].constructors.push(op);
    }
    op
}

impl ActionLabels for InferredLabels {
    fn multi_action(&self, label: LabelId) -> Arc<MultiAction> {
        self.labels[label.index()].clone()
    }
}
