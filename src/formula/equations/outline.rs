//! Reader of equation systems with an outline of their parts: repeated parts are parsed once.
//!
//! In: the text of a binary file, and the first positions of the parts of its right-hand sides
//! (`lts::mcrl2`). Out: the same as from the text alone, except for positions: a repeated
//! expression has its first position. Cost: that of parsing the distinct parts, and of copying the
//! rest.

use super::{
    FixpointEquation, PositiveFormula, System, UnrollSelection, declarations, grow_stack, junction,
    negate, system,
};
use super::{Scan, refuse_negated};
use ahash::AHashMap;
use mu_base::{Diagnostic, SourceId, Span, narrow};
use mu_lts::mcrl2::{OutlinedPredicate, OutlinedSystem, TextRange};
use mu_syntax::ast::{Data, Node, VarDecl};
use mu_syntax::{parse_data_in, parse_head_in, parse_variables_in};

/// Reads a system by its outline; `unrolled` as in [`super::read_unrolled`].
///
/// # Errors
/// As from the text alone.
pub fn read_outlined(
    source: SourceId,
    outlined: &OutlinedSystem,
    unrolled: &UnrollSelection,
) -> Result<System, Diagnostic> {
    let text = outlined.text.as_str();
    let sections = declarations(&mut Scan { text, source, at: 0 })?;
    let mut parts = Parts { source, text, data: AHashMap::new(), variables: AHashMap::new() };
    let mut equations = Vec::with_capacity(outlined.equations.len());
    for e in &outlined.equations {
        let (name, params) = parse_head_in(source, text, e.head.clone())?;
        equations.push(FixpointEquation {
            least: e.least,
            name,
            params,
            body: parts.positive(&e.body, true)?,
        });
    }
    system(sections, equations, (source, text, outlined.initial.clone()), unrolled)
}

/// Parsed parts.
struct Parts<'a> {
    source: SourceId,
    text: &'a str,
    data: AHashMap<TextRange, Data>,
    /// By text, with the first position.
    variables: AHashMap<&'a str, (usize, Vec<VarDecl>)>,
}

impl Parts<'_> {
    fn data(&mut self, place: &TextRange) -> Result<Data, Diagnostic> {
        if let Some(known) = self.data.get(place) {
            return Ok(known.clone());
        }
        let data = parse_data_in(self.source, self.text, place.clone())?;
        self.data.insert(place.clone(), data.clone());
        Ok(data)
    }

    fn variables(&mut self, place: &TextRange) -> Result<Vec<VarDecl>, Diagnostic> {
        let text = &self.text[place.clone()];
        if let Some((start, known)) = self.variables.get(text) {
            let mut variables = known.clone();
            // The same declarations in another quantifier, with another position.
            let shift = place.start as i64 - *start as i64;
            let moved =
                |at: u32| u32::try_from(i64::from(at) + shift).expect("a place in the text");
            for span in variables.iter_mut().map(|v| &mut v.name.span) {
                (span.start, span.end) = (moved(span.start), moved(span.end));
            }
            return Ok(variables);
        }
        let variables = parse_variables_in(self.source, self.text, place.clone())?;
        self.variables.insert(text, (place.start, variables.clone()));
        Ok(variables)
    }

    /// Pushes negations inwards, as [`super::positive`] does.
    fn positive(
        &mut self,
        predicate: &OutlinedPredicate,
        sign: bool,
    ) -> Result<PositiveFormula, Diagnostic> {
        use OutlinedPredicate as P;
        grow_stack(|| {
            Ok(match predicate {
                P::Constant(value) => PositiveFormula::Const(*value == sign),
                P::Data(place) => {
                    let data = self.data(place)?;
                    PositiveFormula::Val(if sign { data } else { negate(&data) })
                }
                P::Not(inner) => self.positive(inner, !sign)?,
                P::And(parts) | P::Or(parts) => {
                    let all = matches!(predicate, P::And(_)) == sign;
                    junction(
                        all,
                        [self.positive(&parts[0], sign)?, self.positive(&parts[1], sign)?],
                    )
                }
                P::Implies(parts) => junction(
                    !sign,
                    [self.positive(&parts[0], !sign)?, self.positive(&parts[1], sign)?],
                ),
                P::Quantifier(all, vars, body) => PositiveFormula::Quantifier(
                    *all == sign,
                    self.variables(vars)?,
                    Box::new(self.positive(body, sign)?),
                ),
                P::Call(name, arguments) => {
                    let span = Span {
                        source: self.source,
                        start: narrow::index(name.start),
                        end: narrow::index(name.end),
                    };
                    let name = Node::new(self.text[name.clone()].to_string(), span);
                    if !sign {
                        return Err(refuse_negated(&name));
                    }
                    PositiveFormula::Call(
                        name,
                        arguments.iter().map(|a| self.data(a)).collect::<Result<_, _>>()?,
                    )
                }
            })
        })
    }
}
