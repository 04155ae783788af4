//! Printer of linear processes as mCRL2 specifications with the same meaning: data, actions,
//! `proc P(…) = …` with one alternative per summand, `init P(…)`. The hidden actions of a summand
//! are listed in a comment above it.
//!
//! Names of variables are made unique. Cost: linear, with a type check of each expression (see
//! [`mu_data::print`]).

use super::linear::{Act, Chance, LinearProcess, Summand};
use crate::labels::ActionDecl;
use mu_base::Span;
use mu_base::ids::SortId;
use mu_data::expr::Expr;
use mu_data::print::{SpecPrinter, sort_ast, unused_name};
use mu_syntax::ast::{self, ProcessKind, Section};
use mu_syntax::print;

/// Returns the text of a linear process.
pub fn linear_process(process: &LinearProcess) -> String {
    let mut printer = SpecPrinter::new(&process.data);
    let mut sections = printer.sections();
    if !process.actions.is_empty() {
        let signature = &printer.data.signature;
        let decls = process.actions.iter().map(|a| {
            (node(a.name.clone()), a.sorts.iter().map(|s| sort_ast(signature, *s)).collect())
        });
        sections.push(Section::Actions(decls.collect()));
    }
    if !process.globals.is_empty() {
        sections
            .push(Section::Globals(process.globals.iter().map(|v| printer.declare(*v)).collect()));
    }
    let mut out = print::specification(&ast::Specification { sections, ..Default::default() });
    let name = unused_name("P", |n| process.actions.iter().any(|a| a.name == n));
    let params: Vec<ast::VarDecl> = process.params.iter().map(|p| printer.declare(p.var)).collect();
    let mut process_printer = Printer { printer, process, name, params };
    process_printer.equation(&mut out);
    out
}

/// Returns the unique names of the parameters as [`linear_process`] writes them.
pub fn parameter_names(process: &LinearProcess) -> Vec<String> {
    let mut printer = SpecPrinter::new(&process.data);
    process.params.iter().map(|p| printer.declare(p.var).name.kind).collect()
}

fn node<K>(kind: K) -> ast::Node<K> {
    ast::Node::new(kind, Span::default())
}

struct Printer<'a> {
    printer: SpecPrinter,
    process: &'a LinearProcess,
    name: String,
    params: Vec<ast::VarDecl>,
}

impl Printer<'_> {
    fn equation(&mut self, out: &mut String) {
        // The header and `init` are printed as a specification with an empty body, which the
        // summands then replace.
        let params = self
            .params
            .iter()
            .map(|p| format!("{}: {}", p.name.kind, print::sort(&p.sort)))
            .collect::<Vec<_>>();
        let params =
            if params.is_empty() { String::new() } else { format!("({})", params.join(", ")) };
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&format!("proc\n  {}{params} =\n", self.name));
        let process = self.process;
        if process.summands.is_empty() {
            out.push_str("      delta");
        }
        for (i, summand) in process.summands.iter().enumerate() {
            if i > 0 {
                out.push('\n');
            }
            let outer = self.printer.names.clone();
            let text = self.summand(summand);
            if !summand.hidden.is_empty() {
                let hidden = self.multi_action(&summand.hidden);
                out.push_str(&format!("      % hides {}\n", print::process(&hidden)));
            }
            out.push_str(if i == 0 { "      " } else { "    + " });
            out.push_str(&text);
            self.printer.names = outer;
        }
        let chosen = process.chance.as_ref().map(|c| self.chance(c));
        let args: Vec<ast::Data> = process
            .params
            .iter()
            .map(|p| self.printer.round_trip(&p.init, Some(process.data.signature.var(p.var).sort)))
            .collect();
        let mut init =
            node(ProcessKind::Call { name: node(self.name.clone()), args, parens: false });
        if let Some((vars, weight)) = chosen {
            init = node(ProcessKind::Dist(vars, Box::new(weight), Box::new(init)));
        }
        out.push_str(&format!(";\n\ninit\n  {};\n", print::process(&init)));
    }

    fn summand(&mut self, summand: &Summand) -> String {
        let sums: Vec<ast::VarDecl> =
            summand.sum_vars.iter().map(|v| self.printer.declare(*v)).collect();
        let mut actions = self.multi_action(&summand.actions);
        if let Some(time) = &summand.time {
            let time = self.printer.round_trip(time, Some(mu_data::sort::basic::REAL));
            actions = node(ProcessKind::At(Box::new(actions), Box::new(time)));
        }
        let chosen = summand.chance.as_ref().map(|c| self.chance(c));
        let mut assignments = Vec::with_capacity(summand.updates.len());
        for (i, value) in &summand.updates {
            let sort = self.process.data.signature.var(self.process.params[*i].var).sort;
            assignments
                .push((self.params[*i].name.clone(), self.printer.round_trip(value, Some(sort))));
        }
        let next = if assignments.is_empty() {
            ProcessKind::Call { name: node(self.name.clone()), args: Vec::new(), parens: true }
        } else {
            ProcessKind::CallAssign(node(self.name.clone()), assignments)
        };
        let mut next = node(next);
        if let Some((vars, weight)) = chosen {
            next = node(ProcessKind::Dist(vars, Box::new(weight), Box::new(next)));
        }
        let mut body = node(ProcessKind::Seq(Box::new(actions), Box::new(next)));
        if summand.guard.as_bool(&self.process.data.signature) != Some(true) {
            let guard = self.printer.round_trip(&summand.guard, Some(mu_data::sort::basic::BOOL));
            body = node(ProcessKind::If(Box::new(guard), Box::new(body), None));
        }
        if !sums.is_empty() {
            body = node(ProcessKind::Sum(sums, Box::new(body)));
        }
        print::process(&body)
    }

    fn chance(&mut self, chance: &Chance) -> (Vec<ast::VarDecl>, ast::Data) {
        let vars = chance.vars.iter().map(|v| self.printer.declare(*v)).collect();
        (vars, self.printer.round_trip(&chance.weight, Some(mu_data::sort::basic::REAL)))
    }

    fn multi_action(&mut self, actions: &[Act]) -> ast::Process {
        let mut all = actions.iter().map(|a| self.action(a)).collect::<Vec<_>>().into_iter();
        let Some(mut out) = all.next() else { return node(ProcessKind::Tau) };
        for action in all {
            out = node(ProcessKind::Sync(Box::new(out), Box::new(action)));
        }
        out
    }

    fn action(&mut self, act: &Act) -> ast::Process {
        let decl = &self.process.actions[act.action.index()];
        let rivals: Vec<&ActionDecl> = self
            .process
            .actions
            .iter()
            .filter(|a| a.name == decl.name && a.sorts.len() == decl.sorts.len())
            .collect();
        let args = act
            .args
            .iter()
            .zip(&decl.sorts)
            .map(|(e, s)| self.argument(e, *s, rivals.len() > 1))
            .collect();
        node(ProcessKind::Call { name: node(decl.name.clone()), args, parens: false })
    }

    /// Prints an argument; if overloads compete, the text must determine its sort.
    fn argument(&mut self, expr: &Expr, sort: SortId, overloaded: bool) -> ast::Data {
        self.printer.round_trip(expr, if overloaded { None } else { Some(sort) })
    }
}
