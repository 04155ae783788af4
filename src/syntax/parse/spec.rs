//! Sections of specifications and formula files: from grammar pairs to [`Section`]s. Cost: linear
//! in the pairs.

use super::{Built, P, Rule, TreeBuilder};
use crate::ast::*;

impl TreeBuilder {
    /// Builds the sections of a `specification` pair.
    pub(super) fn specification(&self, pair: P) -> Built<Specification> {
        let mut sections = Vec::new();
        let mut init = false;
        let all = self.span(&pair);
        let end = mu_base::Place(mu_base::Span { start: all.end, ..all });
        for p in self.parts(pair) {
            if p.as_rule() == Rule::init_section && std::mem::replace(&mut init, true) {
                return Err(self
                    .refuse(self.first_token(&p), "a second `init`")
                    .note("a specification has one initial process"));
            }
            sections.push(self.section(p)?);
        }
        Ok(Specification { sections, end })
    }

    /// Builds the sections and the formula of a `formula_file` pair.
    pub(super) fn formula_file(&self, pair: P) -> Built<FormulaFile> {
        let mut sections = Vec::new();
        let mut formula = None;
        let end = self.span(&pair);
        for p in self.parts(pair) {
            let inner = match p.as_rule() {
                Rule::form_section => self.only_part(p.clone()),
                Rule::state => p.clone(),
                _ => {
                    sections.push(self.section(p)?);
                    continue;
                }
            };
            if formula.is_some() {
                return Err(self
                    .refuse(self.first_token(&p), "a second `form`")
                    .note("a formula file has one formula"));
            }
            formula = Some(self.state(inner)?);
        }
        match formula {
            Some(formula) => Ok(FormulaFile { sections, formula }),
            None => Err(self
                .refuse(mu_base::Span { start: end.end, ..end }, "the formula is missing")
                .note("a formula file ends with `form F;` after its declarations")),
        }
    }

    fn section(&self, pair: P) -> Built<Section> {
        let rule = pair.as_rule();
        let mut inner = self.parts(pair);
        Ok(match rule {
            Rule::sort_section => {
                let mut sorts = Vec::new();
                for decl in inner {
                    let mut parts = self.parts(decl);
                    let name = self.ident(self.next(&mut parts));
                    match parts.next() {
                        Some(p) if p.as_rule() == Rule::sort => {
                            sorts.push((name, Some(self.sort(p)?)))
                        }
                        more => {
                            sorts.push((name, None));
                            sorts.extend(
                                more.into_iter().chain(parts).map(|p| (self.ident(p), None)),
                            );
                        }
                    }
                }
                Section::Sorts(sorts)
            }
            Rule::cons_section | Rule::map_section => {
                let mut decls = Vec::new();
                for p in inner {
                    decls.extend(self.ids_decl(p)?);
                }
                if rule == Rule::cons_section {
                    Section::Constructors(decls)
                } else {
                    Section::Mappings(decls)
                }
            }
            Rule::glob_section => {
                let mut vars = Vec::new();
                for p in inner {
                    vars.extend(self.var_decls(p)?);
                }
                Section::Globals(vars)
            }
            Rule::eqn_section => {
                let mut vars = Vec::new();
                let mut equations = Vec::new();
                for p in inner {
                    if p.as_rule() == Rule::var_decls {
                        vars.extend(self.var_decls(p)?);
                    } else {
                        equations.push(self.equation(p)?);
                    }
                }
                Section::Equations(vars, equations)
            }
            Rule::act_section => {
                let mut actions = Vec::new();
                for decl in inner {
                    let mut parts = self.parts(decl);
                    let names = self.idents(self.next(&mut parts));
                    let sorts =
                        parts.next().map(|s| self.sort_product(s)).transpose()?.unwrap_or_default();
                    actions.extend(names.into_iter().map(|n| (n, sorts.clone())));
                }
                Section::Actions(actions)
            }
            Rule::proc_section => {
                Section::Processes(inner.map(|p| self.process_equation(p)).collect::<Built<_>>()?)
            }
            _ => Section::Init(self.process(self.next(&mut inner))?),
        })
    }

    fn equation(&self, pair: P) -> Built<Equation> {
        let span = self.span(&pair);
        let mut sides = Vec::with_capacity(3);
        let mut conditional = false;
        for p in self.parts(pair) {
            if p.as_rule() == Rule::arrow {
                conditional = true;
            } else {
                sides.push(self.data(p)?);
            }
        }
        let mut sides = sides.into_iter();
        let condition = if conditional { sides.next() } else { None };
        match (sides.next(), sides.next()) {
            (Some(lhs), Some(rhs)) => Ok(Equation { condition, lhs, rhs, span }),
            _ => unreachable!("the grammar puts a data expression on each side of `=`"),
        }
    }

    fn process_equation(&self, pair: P) -> Built<ProcessEquation> {
        let mut inner = self.parts(pair);
        let name = self.ident(self.next(&mut inner));
        let mut params = Vec::new();
        let mut p = self.next(&mut inner);
        if p.as_rule() == Rule::var_decls {
            params = self.var_decls(p)?;
            p = self.next(&mut inner);
        }
        Ok(ProcessEquation { name, params, body: self.process(p)? })
    }
}
