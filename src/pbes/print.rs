//! Printer of the parameterised boolean equation system of a formula on a linear process, as mCRL2
//! text.
//!
//! Input: typed formula, linear process. Output: data sections, `pbes` with an equation for each
//! fixed-point variable, outer ones first, `init`. The translation is that of Groote & Willemse
//! ("Model-checking processes with data", 2005): `[a]f` is, for each summand, that its condition
//! and the match of its action imply `f` in its next state. Parameters of an equation are the data
//! variables that are live in it and the process parameters. Quantified variables are copied afresh
//! for each summand, so nothing is captured.
//!
//! If the operand of a modality has modalities itself, it becomes an equation of its own: written
//! out, nested modalities would multiply. Such an auxiliary equation is in the block of the fixed
//! point that it was made for, with the same sign, and only that block calls it. None of its
//! variables depends on itself except through others, so substituting it (the last one first, into
//! equations before it) is sound, and the alternation is that of the formula. The value of a
//! quantified variable would be a parameter of such an equation. If only the operand of a modality
//! bounds a quantifier, everything is written out instead.
//!
//! Times of actions only restrict the order of actions ([`mu_process::time::order`]), as in the
//! model that is explored.
//!
//! Cost: (modalities) x (summands); written out, modalities multiply.

use super::rules::{self, LabelClass};
use ahash::AHashMap;
use mu_base::ids::{FixId, VarId};
use mu_base::{Diagnostic, Stage};
use mu_data::expr::{DataSpec, Expr, Substitution};
use mu_data::print::{SpecPrinter, unused_name};
use mu_formula::direct::is_finite;
use mu_formula::normal::{NodeId, Normal, NormalNode, normalise};
use mu_formula::typed::{Action, TypedFormula};
use mu_process::linear::LinearProcess;
use mu_syntax::{ast, print};
use std::fmt::Write;

/// A predicate formula.
#[derive(Clone, Debug)]
pub enum Predicate {
    /// A constant.
    Const(bool),
    /// An expression of sort `Bool`.
    Data(Expr),
    /// A conjunction (`true`) or disjunction.
    Junction(bool, Vec<Predicate>),
    /// `forall` (`true`) or `exists`.
    Quantifier(bool, Vec<VarId>, Box<Predicate>),
    /// An instance of a variable of the system.
    Call(String, Vec<Expr>),
}

/// An equation.
#[derive(Clone, Debug)]
pub struct FixedPoint {
    /// True for a least fixed point.
    pub least: bool,
    /// The variable.
    pub name: String,
    /// Its parameters.
    pub params: Vec<VarId>,
    /// Its right-hand side.
    pub body: Predicate,
}

/// The equation system of a formula on a linear process.
#[derive(Clone, Debug)]
pub struct System {
    /// Data, with the variables of all equations.
    pub data: DataSpec,
    /// Global variables.
    pub globals: Vec<VarId>,
    /// The equations, outer ones first.
    pub equations: Vec<FixedPoint>,
    /// The variable of the requested instance, and its arguments.
    pub initial: (String, Vec<Expr>),
}

struct Translator<'a> {
    normal: &'a Normal,
    data: DataSpec,
    process: &'a LinearProcess,
    /// Names of the fixed-point variables, then of the auxiliary ones.
    names: Vec<String>,
    /// By node: true if it has a modality outside of fixed points.
    modal: Vec<bool>,
    /// The auxiliary variables of the current equation, and those without an equation yet.
    auxiliary: AHashMap<NodeId, String>,
    waiting: Vec<NodeId>,
    /// Quantified variables in scope that nothing bounds.
    unbounded: Vec<VarId>,
}

/// Returns the text of the equation system.
pub fn pbes(formula: &TypedFormula, process: &LinearProcess) -> Result<String, Diagnostic> {
    Ok(text(&system(formula, process)?))
}

/// Returns the equation system. Error: the process is probabilistic, and boolean equations have no
/// probabilities.
pub fn system(formula: &TypedFormula, process: &LinearProcess) -> Result<System, Diagnostic> {
    if process.is_probabilistic() {
        let message =
            "this process is probabilistic (`dist`), which boolean equations do not express";
        return Err(Diagnostic::new(Stage::Unsupported, message)
            .note("`check` evaluates the formula on it"));
    }
    let mut data = formula.data.clone();
    let mut ordered = process.clone();
    mu_process::time::order(&mut ordered, &mut data.signature);
    let process = &ordered;
    let normal = normalise(formula, &mut data.signature)?;
    let names = equation_names(&normal, &data);
    let modal = modal(&normal);
    let (auxiliary, waiting, unbounded) = Default::default();
    let mut t =
        Translator { normal: &normal, data, process, names, modal, auxiliary, waiting, unbounded };
    let mut equations: Vec<FixedPoint> = Vec::new();
    let values: Vec<Expr> = process.params.iter().map(|p| p.init.clone()).collect();
    let call = match normal.node(normal.root) {
        NormalNode::Call(..) => Some(t.predicate(normal.root, &values)?),
        _ => None,
    };
    let initial = match call {
        Some(Predicate::Call(name, values)) => (name, values),
        _ => {
            let name = t.unused_name("Start");
            t.equations(false, &name, &[], normal.root, &mut equations)?;
            (name, values)
        }
    };
    for fix in order(&normal) {
        let f = normal.fix(fix);
        let name = t.names[fix.index()].clone();
        t.equations(f.least, &name, normal.live(f.head), f.body, &mut equations)?;
    }
    Ok(System { data: t.data, globals: process.globals.clone(), equations, initial })
}

/// Returns a system as text.
pub fn text(system: &System) -> String {
    let mut printer = SpecPrinter::new(&system.data);
    let mut sections = printer.sections();
    if !system.globals.is_empty() {
        sections.push(ast::Section::Globals(
            system.globals.iter().map(|v| printer.declare(*v)).collect(),
        ));
    }
    let mut out = print::specification(&ast::Specification { sections, ..Default::default() });
    if !out.is_empty() {
        out.push('\n');
    }
    out.push_str("pbes\n");
    for FixedPoint { least, name, params, body } in &system.equations {
        let outer = printer.names.clone();
        let params: Vec<String> = params.iter().map(|v| declaration(&mut printer, *v)).collect();
        let params =
            if params.is_empty() { String::new() } else { format!("({})", params.join(", ")) };
        let _ = write!(out, "  {} {name}{params} =\n      ", if *least { "mu" } else { "nu" });
        write_lines(body, &mut printer, &mut out);
        out.push_str(";\n");
        printer.names = outer;
    }
    out.push_str("\ninit\n  ");
    write_call(&system.initial.0, &system.initial.1, &mut printer, &mut out);
    out.push_str(";\n");
    out
}

/// Returns a valid and unique name for each fixed-point variable; operators of regular formulas are
/// named `Z`.
fn equation_names(normal: &Normal, data: &DataSpec) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for fix in &normal.fixes {
        let base = if fix.name.starts_with('\'') { "Z" } else { &fix.name };
        let name = unused_name(base, |n| {
            names.iter().any(|m| m == n) || data.signature.ops().any(|o| o.1.name == n)
        });
        names.push(name);
    }
    names
}

/// Returns the reachable variables, outer ones before those in their scope.
fn order(normal: &Normal) -> Vec<FixId> {
    let mut reached = vec![false; normal.fixes.len()];
    let mut seen = vec![false; normal.nodes.len()];
    let mut stack = vec![normal.root];
    while let Some(n) = stack.pop() {
        if std::mem::replace(&mut seen[n.index()], true) {
            continue;
        }
        match normal.node(n) {
            NormalNode::Const(_) | NormalNode::Val(_) | NormalNode::Head(_) => {}
            NormalNode::All(list) | NormalNode::Any(list) => stack.extend(list),
            NormalNode::Forall(_, b)
            | NormalNode::Exists(_, b)
            | NormalNode::Must(_, b)
            | NormalNode::May(_, b) => stack.push(*b),
            NormalNode::Call(fix, _) => {
                reached[fix.index()] = true;
                stack.push(normal.fix(*fix).body);
            }
        }
    }
    let depth = |mut fix: FixId| {
        let mut d = 0;
        while let Some(p) = normal.fix(fix).parent {
            (fix, d) = (p, d + 1);
        }
        d
    };
    let mut order: Vec<FixId> =
        (0..normal.fixes.len()).map(FixId::new).filter(|f| reached[f.index()]).collect();
    // Variables of one depth do not depend on each other except through outer ones, so depth alone
    // is an order of scopes.
    order.sort_by_key(|f| depth(*f));
    order
}

/// Returns by node: true if it has a modality outside of fixed points. Children come before their
/// parents.
fn modal(normal: &Normal) -> Vec<bool> {
    let mut modal = vec![false; normal.nodes.len()];
    for (i, node) in normal.nodes.iter().enumerate() {
        modal[i] = match node {
            NormalNode::Must(..) | NormalNode::May(..) => true,
            NormalNode::All(list) | NormalNode::Any(list) => list.iter().any(|n| modal[n.index()]),
            NormalNode::Forall(_, body) | NormalNode::Exists(_, body) => modal[body.index()],
            NormalNode::Const(_)
            | NormalNode::Val(_)
            | NormalNode::Call(..)
            | NormalNode::Head(_) => false,
        };
    }
    modal
}

impl Translator<'_> {
    /// Returns a name that no variable of the system has.
    fn unused_name(&self, base: &str) -> String {
        unused_name(base, |n| {
            self.names.iter().any(|m| m == n) || self.data.signature.ops().any(|o| o.1.name == n)
        })
    }

    /// Adds the equation of a variable, and the auxiliary ones that it needs, with the same sign.
    fn equations(
        &mut self,
        least: bool,
        name: &str,
        live: &[VarId],
        body: NodeId,
        to: &mut Vec<FixedPoint>,
    ) -> Result<(), Diagnostic> {
        let process = self.process;
        let params = |live: &[VarId]| {
            live.iter().copied().chain(process.params.iter().map(|p| p.var)).collect()
        };
        let state: Vec<Expr> =
            process.params.iter().map(|p| Expr::var(&self.data.signature, p.var)).collect();
        self.auxiliary.clear();
        to.push(FixedPoint {
            least,
            name: name.to_string(),
            params: params(live),
            body: self.predicate(body, &state)?,
        });
        while let Some(node) = self.waiting.pop() {
            let name = self.auxiliary[&node].clone();
            to.push(FixedPoint {
                least,
                name,
                params: params(self.normal.live(node)),
                body: self.predicate(node, &state)?,
            });
        }
        Ok(())
    }

    /// Returns the predicate of a next state: an instance of an auxiliary variable if it has
    /// modalities.
    fn target(&mut self, body: NodeId, next: &[Expr]) -> Result<Predicate, Diagnostic> {
        let live = self.normal.live(body);
        if !self.modal[body.index()] || live.iter().any(|v| self.unbounded.contains(v)) {
            return self.predicate(body, next);
        }
        let name = match self.auxiliary.get(&body) {
            Some(name) => name.clone(),
            None => {
                let name = self.unused_name("Next");
                self.names.push(name.clone());
                self.auxiliary.insert(body, name.clone());
                self.waiting.push(body);
                name
            }
        };
        let values = live.iter().map(|v| Expr::var(&self.data.signature, *v));
        Ok(Predicate::Call(name, values.chain(next.iter().cloned()).collect()))
    }

    /// Prints the predicate below a quantifier.
    fn print_quantifier(
        &mut self,
        all: bool,
        vars: Vec<VarId>,
        body: NodeId,
        state: &[Expr],
    ) -> Result<Predicate, Diagnostic> {
        let before = self.unbounded.len();
        for v in &vars {
            let sort = self.data.signature.var(*v).sort;
            if !is_finite(&self.data, sort) && !self.is_tested(all, body, *v) {
                self.unbounded.push(*v);
            }
        }
        let inner = self.predicate(body, state);
        self.unbounded.truncate(before);
        Ok(quantifier(all, vars, inner?))
    }

    /// True if a test bounds the relevant values of a quantified variable.
    fn is_tested(&self, all: bool, body: NodeId, var: VarId) -> bool {
        let parts = match self.normal.node(body) {
            NormalNode::Any(list) if all => list,
            NormalNode::All(list) if !all => list,
            _ => return false,
        };
        parts.iter().any(|n| match self.normal.node(*n) {
            NormalNode::Val(test) => {
                let mut free = Vec::new();
                test.free_vars(&mut free);
                free.contains(&var)
            }
            _ => false,
        })
    }

    /// Prints the predicate of a node; `state` gives the process parameters.
    fn predicate(&mut self, node: NodeId, state: &[Expr]) -> Result<Predicate, Diagnostic> {
        stacker::maybe_grow(128 << 10, 4 << 20, || {
            Ok(match self.normal.node(node).clone() {
                NormalNode::Const(b) => Predicate::Const(b),
                NormalNode::Val(e) => Predicate::Data(e),
                NormalNode::All(list) | NormalNode::Any(list) => {
                    let all = matches!(self.normal.node(node), NormalNode::All(_));
                    let parts = list
                        .into_iter()
                        .map(|n| self.predicate(n, state))
                        .collect::<Result<_, _>>()?;
                    junction(all, parts)
                }
                NormalNode::Forall(vars, body) => self.print_quantifier(true, vars, body, state)?,
                NormalNode::Exists(vars, body) => {
                    self.print_quantifier(false, vars, body, state)?
                }
                NormalNode::Must(action, body) => {
                    self.modality(node, &action, body, true, state)?
                }
                NormalNode::May(action, body) => {
                    self.modality(node, &action, body, false, state)?
                }
                NormalNode::Call(fix, args) => {
                    let f = self.normal.fix(fix);
                    let mut all = Vec::new();
                    for v in self.normal.live(f.head) {
                        all.push(match f.params.iter().position(|p| p == v) {
                            Some(i) => args[i].clone(),
                            None => Expr::var(&self.data.signature, *v),
                        });
                    }
                    all.extend(state.iter().cloned());
                    Predicate::Call(self.names[fix.index()].clone(), all)
                }
                NormalNode::Head(fix) => self.predicate(self.normal.fix(fix).body, state)?,
            })
        })
    }

    fn modality(
        &mut self,
        node: NodeId,
        action: &Action,
        body: NodeId,
        all: bool,
        state: &[Expr],
    ) -> Result<Predicate, Diagnostic> {
        let span = self.normal.spans[node.index()];
        let mut parts = Vec::new();
        for summand in &self.process.summands {
            // Parameters by their current values, sum variables by copies.
            let mut by: Substitution =
                self.process.params.iter().map(|p| p.var).zip(state.iter().cloned()).collect();
            let mut copies = Vec::new();
            for v in &summand.sum_vars {
                let var = self.data.signature.var(*v).clone();
                let copy = self.data.signature.fresh_var(var.name, var.sort);
                copies.push(copy);
                by.insert(*v, Expr::var(&self.data.signature, copy));
            }
            let args: Vec<Expr> =
                summand.actions.iter().flat_map(|a| &a.args).map(|e| e.substitute(&by)).collect();
            let class = LabelClass {
                shape: summand.actions.iter().map(|a| a.action).collect(),
                args: args.iter().map(|e| self.data.signature.fresh_var("label", e.sort)).collect(),
            };
            let fits = rules::condition_of(self.normal, &mut self.data, action, &class, span)?;
            let fits = fits.substitute(&class.args.iter().copied().zip(args).collect());
            let guard = Expr::and(&mut self.data.signature, summand.guard.substitute(&by), fits);
            if guard.as_bool(&self.data.signature) == Some(false) {
                continue;
            }
            let mut next = state.to_vec();
            for (i, e) in &summand.updates {
                next[*i] = e.substitute(&by);
            }
            let target = self.target(body, &next)?;
            let guard = if all { Expr::negate(&mut self.data.signature, guard) } else { guard };
            let guard = match guard.as_bool(&self.data.signature) {
                Some(b) => Predicate::Const(b),
                None => Predicate::Data(guard),
            };
            parts.push(quantifier(all, copies, junction(!all, vec![guard, target])));
        }
        Ok(junction(all, parts))
    }
}

fn junction(all: bool, parts: Vec<Predicate>) -> Predicate {
    let mut kept = Vec::new();
    for p in parts {
        match p {
            Predicate::Const(b) if b == all => {}
            Predicate::Const(b) => return Predicate::Const(b),
            p => kept.push(p),
        }
    }
    match kept.len() {
        0 => Predicate::Const(all),
        1 => kept.remove(0),
        _ => Predicate::Junction(all, kept),
    }
}

fn quantifier(all: bool, vars: Vec<VarId>, body: Predicate) -> Predicate {
    if vars.is_empty() || matches!(body, Predicate::Const(_)) {
        body
    } else {
        Predicate::Quantifier(all, vars, Box::new(body))
    }
}

fn declaration(printer: &mut SpecPrinter, var: VarId) -> String {
    let decl = printer.declare(var);
    format!("{}: {}", decl.name.kind, print::sort(&decl.sort))
}

/// Writes a predicate with a line for each operand of its outermost connective, and of the
/// connective below.
fn write_lines(p: &Predicate, printer: &mut SpecPrinter, out: &mut String) {
    let Predicate::Junction(all, parts) = p else { return write_predicate(p, printer, out) };
    let between = if *all { "\n      && " } else { "\n      || " };
    for (i, part) in parts.iter().enumerate() {
        if i > 0 {
            out.push_str(between);
        }
        match part {
            Predicate::Junction(inner, parts) => {
                let between = if *inner { "\n          && " } else { "\n          || " };
                for (i, part) in parts.iter().enumerate() {
                    out.push_str(if i == 0 { "(" } else { between });
                    write_predicate(part, printer, out);
                }
                out.push(')');
            }
            part => write_predicate(part, printer, out),
        }
    }
}

fn write_predicate(p: &Predicate, printer: &mut SpecPrinter, out: &mut String) {
    stacker::maybe_grow(64 << 10, 1 << 20, || match p {
        Predicate::Const(b) => {
            let _ = write!(out, "{b}");
        }
        Predicate::Data(e) => {
            let tree = printer.round_trip(e, Some(e.sort));
            let _ = write!(out, "val({})", print::data(&tree));
        }
        Predicate::Junction(all, parts) => {
            for (i, part) in parts.iter().enumerate() {
                out.push_str(match (i, all) {
                    (0, _) => "(",
                    (_, true) => " && ",
                    (_, false) => " || ",
                });
                write_predicate(part, printer, out);
            }
            out.push(')');
        }
        Predicate::Quantifier(all, vars, body) => {
            let outer = printer.names.clone();
            let vars: Vec<String> = vars.iter().map(|v| declaration(printer, *v)).collect();
            let _ =
                write!(out, "({} {}. ", if *all { "forall" } else { "exists" }, vars.join(", "));
            write_predicate(body, printer, out);
            out.push(')');
            printer.names = outer;
        }
        Predicate::Call(name, args) => write_call(name, args, printer, out),
    })
}

fn write_call(name: &str, args: &[Expr], printer: &mut SpecPrinter, out: &mut String) {
    out.push_str(name);
    let args: Vec<String> =
        args.iter().map(|e| print::data(&printer.round_trip(e, Some(e.sort)))).collect();
    if !args.is_empty() {
        let _ = write!(out, "({})", args.join(", "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mu_formula::typecheck::check_formula;
    use mu_process::linearise::linearise;
    use mu_process::typecheck::check_specification;
    use mu_syntax::{parse_formula, parse_specification};

    fn text(formula: &str) -> String {
        let model = "act enter, leave: Nat; proc P(n: Nat, full: Bool) = sum m: Nat. (m < 3 && !full) -> enter(m) . P(m, true)
             + full -> leave(n) . P(0, false); init P(0, false);";
        let spec =
            check_specification(&parse_specification(Default::default(), model).unwrap()).unwrap();
        let process = linearise(&spec, &Default::default()).unwrap();
        let formula = check_formula(
            &parse_formula(Default::default(), formula).unwrap(),
            &process.data,
            &process.actions,
        )
        .unwrap();
        pbes(&formula, &process).unwrap()
    }

    #[test]
    fn equations_have_signs_parameters_and_an_init() {
        let t = text("nu X. mu Y. ([exists m: Nat. leave(m)]X && [exists m: Nat. enter(m)]Y)");
        let (x, y) = (t.find("nu X(").unwrap(), t.find("mu Y(").unwrap());
        assert!(x < y && t.contains("init\n  X("), "{t}");
        assert!(t.contains("forall m_1: Nat. "), "{t}");
        // A formula without fixed point gets an equation of its own.
        assert!(text("[true]false").contains("nu Start("));
        // Impossible summands are omitted.
        let t = text("[true*.leave(7)]false");
        assert!(t.contains("nu Z(") && t.contains("7 == n"), "{t}");
    }

    #[test]
    fn copies_of_quantified_variables_are_distinct() {
        // Two steps of the same summand: two variables. Both are written out, since only they
        // determine the value of `k`.
        let t = text("exists k: Nat. [exists j: Nat. enter(j)]<leave(7)><enter(k)>true");
        assert!(
            t.contains("forall m: Nat") && t.contains("exists m_1: Nat") && !t.contains("Next"),
            "{t}"
        );
    }

    #[test]
    fn nested_modalities_add_up() {
        let of =
            |depth: usize| text(&format!("mu X. nu Y. {}(X && Y)", "[true]<true>".repeat(depth)));
        let (one, two, three) = (of(1), of(2), of(3));
        assert_eq!(three.len() - two.len(), two.len() - one.len(), "{three}");
        assert_eq!(
            (two.matches("\n  mu ").count(), two.matches("\n  nu ").count()),
            (1, 4),
            "{two}"
        );
        // With its data: a test in the formula bounds the quantifier.
        let t = text("exists k: Nat. val(k < 2) && [exists j: Nat. enter(j)]<leave(k)><true>true");
        assert!(
            t.contains("nu Next(k: Nat, n: Nat, ")
                && t.contains("nu Next_1(n: Nat, ")
                && t.contains("Next(k, m, "),
            "{t}"
        );
        // One equation for a repeated part.
        let t = text("[true* . (leave(0) + leave(1)) . leave(2)]false");
        assert!(t.matches("Next(").count() == 3 && !t.contains("Next_1"), "{t}");
    }
}
