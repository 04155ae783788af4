//! Typed labels from texts alone, by inference, so that formulas can refer to labels of files
//! without declarations.
//!
//! Sorts of arguments are inferred per action and position. `true` and `false` are Bool. Numbers
//! are Nat, or Int if a negative number occurs in that position. Any other argument is a value of
//! one enumerated sort `Value` with the occurring texts as elements; a formula can name the
//! elements that are identifiers. A label that is not a multi-action becomes an action without
//! arguments, named by its whole text. The time of a label is left out. Cost: linear in the label
//! table.

use super::{ActionDecl, ActionLabels, MultiAction, untimed};
use ahash::AHashMap;
use mu_base::Diagnostic;
use mu_base::ids::{ActId, LabelId, OpId, SortId};
use mu_data::expr::{DataSpec, Expr};
use mu_data::signature::{Builtin, Op, OpKind};
use mu_data::sort::{SortKind, basic};
use mu_syntax::ast::{Data, DataKind, UnaryOp};
use num_bigint::BigInt;
use std::sync::Arc;

/// Typed labels of a file.
pub struct InferredLabels {
    data: DataSpec,
    actions: Vec<ActionDecl>,
    labels: Vec<Arc<MultiAction>>,
}

enum Argument {
    Bool(bool),
    Number(BigInt),
    Other(String),
}

fn argument(text: &str, data: &Data) -> Argument {
    let source = || {
        text.get(data.span.start as usize..data.span.end as usize).unwrap_or_default().to_string()
    };
    match &data.kind {
        DataKind::Name(n) if n == "true" => Argument::Bool(true),
        DataKind::Name(n) if n == "false" => Argument::Bool(false),
        DataKind::Number(n) => {
            n.parse().map_or_else(|_| Argument::Other(n.clone()), Argument::Number)
        }
        DataKind::Unary(UnaryOp::Minus, inner) => match &inner.kind {
            DataKind::Number(n) => n
                .parse::<BigInt>()
                .map_or_else(|_| Argument::Other(source()), |n| Argument::Number(-n)),
            _ => Argument::Other(source()),
        },
        _ => Argument::Other(source()),
    }
}

impl InferredLabels {
    /// Types the texts of a label table; the first is tau.
    pub fn new(texts: &[String]) -> Result<Self, Diagnostic> {
        let mut parsed: Vec<Vec<(String, Vec<Argument>)>> = Vec::new();
        for (i, text) in texts.iter().enumerate() {
            parsed.push(if i == LabelId::TAU.index() {
                Vec::new()
            } else {
                match untimed(text) {
                    Some(acts) => {
                        let act = |(name, args): (mu_syntax::ast::Ident, Vec<Data>)| {
                            (name.kind.clone(), args.iter().map(|a| argument(text, a)).collect())
                        };
                        acts.into_iter().map(act).collect()
                    }
                    None => vec![(text.clone(), Vec::new())],
                }
            });
        }
        // Sorts of the argument positions of each (name, arity).
        let mut places: AHashMap<(String, usize), Vec<SortId>> = AHashMap::new();
        let mut order: Vec<(String, usize)> = Vec::new();
        let mut data = DataSpec::default();
        let values = data.signature.sorts.declare("Value", true);
        for (name, args) in parsed.iter().flatten() {
            let key = (name.clone(), args.len());
            let sorts = args.iter().map(|a| match a {
                Argument::Bool(_) => basic::BOOL,
                Argument::Number(n) if n.sign() == num_bigint::Sign::Minus => basic::INT,
                Argument::Number(_) => basic::NAT,
                Argument::Other(_) => values,
            });
            match places.get_mut(&key) {
                None => {
                    places.insert(key.clone(), sorts.collect());
                    order.push(key);
                }
                Some(known) => {
                    for (k, s) in known.iter_mut().zip(sorts) {
                        *k = match (*k, s) {
                            (a, b) if a == b => a,
                            (basic::NAT, basic::INT) | (basic::INT, basic::NAT) => basic::INT,
                            _ => values,
                        };
                    }
                }
            }
        }
        let actions: Vec<ActionDecl> = order
            .iter()
            .map(|k| ActionDecl { name: k.0.clone(), sorts: places[k].clone() })
            .collect();
        let ids: AHashMap<&(String, usize), ActId> =
            order.iter().enumerate().map(|(i, k)| (k, ActId::new(i))).collect();
        let mut constants: AHashMap<String, OpId> = AHashMap::new();
        let mut labels = Vec::new();
        for acts in &parsed {
            let mut multi = MultiAction::new();
            for (name, args) in acts {
                let key = (name.clone(), args.len());
                let mut typed = Vec::new();
                for (arg, sort) in args.iter().zip(&places[&key]) {
                    typed.push(match arg {
                        Argument::Bool(b) if *sort == basic::BOOL => {
                            Expr::boolean(&mut data.signature, *b)
                        }
                        Argument::Number(n) if *sort == basic::NAT || *sort == basic::INT => {
                            Expr::number(n.clone(), *sort)
                        }
                        other => {
                            let text = match other {
                                Argument::Bool(b) => b.to_string(),
                                Argument::Number(n) => n.to_string(),
                                Argument::Other(t) => t.clone(),
                            };
                            let next = constants.len() as u32;
                            let op = *constants.entry(text.clone()).or_insert_with(|| {
                                let op = data.signature.add_op(Op {
                                    name: text,
                                    sort: values,
                                    kind: OpKind::Constructor(next),
                                });
                                if let SortKind::Named(n) = *data.signature.sorts.kind(values) {
                                    data.signature.sorts.named[n as usize].constructors.push(op);
                                }
                                op
                            });
                            Expr::op(&data.signature, op)
                        }
                    });
                }
                multi.push((ids[&key], typed));
            }
            multi.sort_by_key(|a| a.0);
            labels.push(Arc::new(multi));
        }
        // Formulas need the constants of Bool in any case.
        data.signature.builtin(Builtin::True, basic::BOOL);
        data.signature.builtin(Builtin::False, basic::BOOL);
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

impl ActionLabels for InferredLabels {
    fn multi_action(&self, label: LabelId) -> Arc<MultiAction> {
        self.labels[label.index()].clone()
    }
}
