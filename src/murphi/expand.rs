//! Translation of a Murphi model to mCRL2 text.
//!
//! In: a typed [`Model`]. Out: a specification with one process, with the list of the values of the
//! state as its parameter. Statements are mappings from memory to results: a run of a body gets the
//! state followed by the cells of its frame, so recursion and `var` parameters (numbers of cells)
//! need nothing else. Each rule instance is a transition with the name of the rule and its
//! parameters. Loops of the process show properties: `violated_…` where an invariant is false,
//! `covered_…` and `live_…` where such a condition is true; a rule that ends in an error leads to a
//! deadlock by `failed_…`. The process has one state more than the model: its first steps choose
//! the start state.
//!
//! This is a route to the behaviour of a model that shares only the typed tree with the compiled
//! rules; tests compare both. Multisets are sorted lists of cells, so that equal ones are equal.
//! Cost: linear in the text; a step costs time linear in the state for each access.
//!
//! Rejected: an expression with a call that writes outside of its function or may discard the step
//! (`assume`), except for the whole value of an assignment, `return` or alias.

mod cells;
mod effects;
mod expressions;
mod prelude;
mod statements;

use crate::actions::{START, WORDS, rule_actions};
use crate::typed::{Binding, Claim, Domain, Expr, Frame, LocalId, Model, TypeId, TypeKind};
use cells::{Addr, size};
use mu_base::{Diagnostic, Span, Stage};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Translates a model.
///
/// # Errors
///
/// A construct that the translation does not support, with its place.
pub fn expand(model: &Model) -> Result<String> {
    let mut writer = Writer::new(model);
    writer.functions()?;
    writer.processes()?;
    Ok(writer.text())
}

type Result<T, E = Diagnostic> = std::result::Result<T, E>;

fn reject<T>(span: Span, message: &str) -> Result<T> {
    Err(Diagnostic::at(Stage::Unsupported, span, format!("`expand`: {message}")))
}

struct Writer<'m> {
    model: &'m Model,
    /// First cell of each global variable.
    globals: Vec<u64>,
    /// Number of cells of the state.
    state: u64,
    /// Functions that do more than compute their result.
    effects: Vec<bool>,
    /// First cells of the locals of the current body, behind the cells of the result.
    locals: Vec<u64>,
    frame: Frame,
    /// Number of cells of the current frame.
    frame_size: u64,
    /// Cells of the result of the current function.
    result: u64,
    /// Type of the result of the current function; `None` outside of functions with a result.
    returns: Option<TypeId>,
    /// Declarations of mappings and their equations.
    maps: String,
    equations: String,
    sorts: String,
    actions: BTreeSet<String>,
    summands: Vec<String>,
    starts: Vec<String>,
    /// Number of the next mapping.
    next: usize,
    /// Names in use: of the language and of this translation.
    used: BTreeSet<String>,
    /// Mappings for the values of types: position, membership and value at a position.
    domains: BTreeMap<TypeId, usize>,
    /// Mappings that are true if a rule with a lower priority number is enabled, by priority.
    levels: BTreeMap<i64, usize>,
    /// Sorts of the parameters of actions: name, and number of the mapping to values.
    sorts_of: BTreeMap<TypeId, (String, usize)>,
    /// Action of each rule.
    rules: Vec<String>,
    /// Names of the two processes.
    process: String,
    start: String,
}

impl<'m> Writer<'m> {
    fn new(model: &'m Model) -> Self {
        let mut globals = Vec::new();
        let mut state = 0;
        for global in &model.globals {
            globals.push(state);
            state += size(&model.types, global.ty);
        }
        let mut used: BTreeSet<String> = WORDS.split_whitespace().map(String::from).collect();
        used.extend(prelude::NAMES.split_whitespace().map(String::from));
        // A rule has its action in any case; all other names make way.
        let rules = rule_actions(model);
        used.extend(rules.iter().cloned());
        let mut writer = Writer {
            model,
            globals,
            state,
            effects: effects::functions_with_effects(model),
            locals: Vec::new(),
            frame: Frame::default(),
            frame_size: 0,
            result: 0,
            returns: None,
            maps: String::new(),
            equations: String::new(),
            sorts: String::new(),
            actions: BTreeSet::new(),
            summands: Vec::new(),
            starts: Vec::new(),
            next: 0,
            used,
            domains: BTreeMap::new(),
            levels: BTreeMap::new(),
            sorts_of: BTreeMap::new(),
            rules,
            process: String::new(),
            start: String::new(),
        };
        writer.process = writer.unique("Process");
        writer.start = writer.unique("Start");
        writer
    }

    fn fresh(&mut self) -> usize {
        self.next += 1;
        self.next
    }
    /// Adds a mapping.
    fn map(&mut self, name: &str, sort: &str) {
        let _ = writeln!(self.maps, "    {name}: {sort};");
    }
    /// Adds an equation.
    fn equation(&mut self, text: &str) {
        let _ = writeln!(self.equations, "    {text};");
    }
    /// Returns a name that nothing else has.
    fn unique(&mut self, name: &str) -> String {
        let mut base: String =
            name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        if !base.starts_with(|c: char| c.is_ascii_alphabetic()) {
            base.insert(0, 'n');
        }
        // Mappings of this translation are a letter and a number.
        let is_own = base.len() > 1 && base[1..].bytes().all(|b| b.is_ascii_digit());
        let mut found = if is_own { format!("{base}_") } else { base.clone() };
        let mut n = 1;
        while !self.used.insert(found.clone()) {
            n += 1;
            found = format!("{base}_{n}");
        }
        found
    }
    /// Starts a body with this frame.
    fn enter(&mut self, frame: &Frame, result: Option<TypeId>) {
        self.frame = frame.clone();
        self.returns = result;
        self.result = result.map_or(0, |ty| size(&self.model.types, ty));
        let mut at = self.result;
        self.locals.clear();
        for local in &frame.locals {
            self.locals.push(at);
            at += cells::of_local(&self.model.types, local);
        }
        self.frame_size = at;
    }
    /// Returns the cell of a local.
    fn local(&self, id: LocalId) -> Addr {
        Addr::Frame(self.locals[id.index()])
    }

    fn functions(&mut self) -> Result<()> {
        for (i, function) in self.model.functions.iter().enumerate() {
            self.enter(&function.frame, function.result);
            let body = self.sequence("go(m)", &function.body)?;
            self.map(&format!("c{i}"), "List(Cell) # List(Cell) -> Result");
            self.map(&format!("d{i}"), "List(Cell) # Int -> Result");
            let parameters: u64 = function.frame.locals[..function.parameters as usize]
                .iter()
                .map(|l| cells::of_local(&self.model.types, l))
                .sum();
            let (before, after) = (self.result, self.frame_size - self.result - parameters);
            self.equation(&format!("bad in a -> c{i}(m, a) = fail"));
            self.equation(&format!(
                "!(bad in a) -> c{i}(m, a) = d{i}(m ++ blank({before}) ++ a ++ blank({after}), #m)"
            ));
            let body = if self.returns.is_some() { format!("missing({body})") } else { body };
            self.equation(&format!("d{i}(m, b) = {body}"));
        }
        Ok(())
    }

    fn processes(&mut self) -> Result<()> {
        let sorted = self.sort_multisets();
        let mut assumed = Vec::new();
        for property in &self.model.properties {
            let title = property.name.clone().unwrap_or_default();
            self.enter(&property.frame, None);
            let instance = self.instances(&property.bindings)?;
            let condition = self.on_memory(&property.condition)?;
            let holds = format!("{condition}({})", instance.memory);
            let (word, value) = match property.claim {
                Claim::Assert => ("violated", "!= ok(1)"),
                Claim::Assume => {
                    assumed.push(instance.assumption(&holds));
                    continue;
                }
                Claim::Cover => ("covered", "== ok(1)"),
                Claim::Liveness => ("live", "== ok(1)"),
            };
            let name = self.unique(&format!("{word}_{title}"));
            let label = self.action(&name, &instance);
            let tests: Vec<String> = instance
                .conditions
                .iter()
                .cloned()
                .chain([format!("is_go({})", instance.memory), format!("{holds} {value}")])
                .collect();
            self.summands.push(format!(
                "{}({}) -> {label} . {}(s)",
                instance.sums(),
                tests.join(" && "),
                self.process
            ));
        }
        self.map("assumed", "List(Cell) -> Cell");
        let all = assumed.into_iter().rev().reduce(|rest, first| format!("conj({first}, {rest})"));
        self.equation(&format!("assumed(s) = {}", all.as_deref().unwrap_or("ok(1)")));
        self.map("next", "Result -> List(Cell)");
        self.equation(&format!("next(r) = {sorted}"));
        for start in &self.model.starts {
            self.enter(&start.frame, None);
            let instance = self.instances(&start.bindings)?;
            let name = self.unique(start.name.as_deref().unwrap_or(START));
            let failed = self.unique(&format!("failed_{name}"));
            self.step((&name, &failed), &instance, (None, None), &start.body, true)?;
        }
        let mut failures: BTreeMap<String, String> = BTreeMap::new();
        for (number, rule) in self.model.rules.iter().enumerate() {
            self.enter(&rule.frame, None);
            let instance = self.instances(&rule.bindings)?;
            let name = self.rules[number].clone();
            if !failures.contains_key(&name) {
                let failed = self.unique(&format!("failed_{name}"));
                failures.insert(name.clone(), failed);
            }
            let failed = failures[&name].clone();
            let lower = self.lower_priorities(rule.priority)?;
            self.enter(&rule.frame, None);
            let (names, guard) = ((&*name, &*failed), (rule.guard.as_ref(), lower));
            self.step(names, &instance, guard, &rule.body, false)?;
        }
        Ok(())
    }
    /// Returns the condition that no rule with a lower priority number is enabled; `None` if there
    /// are no such rules.
    fn lower_priorities(&mut self, priority: i64) -> Result<Option<String>> {
        let model = self.model;
        if model.rules.iter().all(|r| r.priority >= priority) {
            return Ok(None);
        }
        if let Some(k) = self.levels.get(&priority) {
            return Ok(Some(format!("!u{k}(s)")));
        }
        let mut enabled = Vec::new();
        for rule in model.rules.iter().filter(|r| r.priority < priority) {
            self.enter(&rule.frame, None);
            let instance = self.instances(&rule.bindings)?;
            let guard = self.guard(rule.guard.as_ref(), &instance.memory)?;
            let exists: String = instance
                .bindings
                .iter()
                .map(|(name, sort, _)| format!("exists {name}: {sort}. "))
                .collect();
            let tests: Vec<String> =
                instance.conditions.iter().cloned().chain([format!("{guard} == ok(1)")]).collect();
            enabled.push(format!("({exists}{})", tests.join(" && ")));
        }
        let k = self.fresh();
        self.levels.insert(priority, k);
        self.map(&format!("u{k}"), "List(Cell) -> Bool");
        self.equation(&format!("u{k}(s) = {}", enabled.join(" || ")));
        Ok(Some(format!("!u{k}(s)")))
    }
    /// Returns the value of a condition behind the bindings of a rule.
    fn guard(&mut self, guard: Option<&Expr>, memory: &str) -> Result<String> {
        Ok(match guard {
            Some(guard) => format!("{}({memory})", self.on_memory(guard)?),
            None => format!("enabled({memory})"),
        })
    }
    /// Adds the transitions of a rule or start state: the actions of a step and of a failure, the
    /// guard, and the condition that no rule with a lower number is enabled. A guard that fails is
    /// an error in any case.
    fn step(
        &mut self,
        (name, failed): (&str, &str),
        instance: &Instance,
        (guard, lower): (Option<&Expr>, Option<String>),
        body: &[crate::typed::Stmt],
        is_start: bool,
    ) -> Result<()> {
        let memory = &instance.memory;
        let guard = self.guard(guard, memory)?;
        let k = self.fresh();
        self.map(&format!("t{k}"), "Result -> Result");
        let effect = self.sequence("r", body)?.replace(", b)", &format!(", {})", self.state));
        self.equation(&format!("t{k}(r) = {effect}"));
        let result = format!("t{k}({memory})");
        let label = self.action(name, instance);
        let failure = self.action(failed, instance);
        let conditions = instance.conditions.join(" && ");
        let and = if conditions.is_empty() { "" } else { " && " };
        let sums = instance.sums();
        let process = &self.process;
        let out = if is_start { &mut self.starts } else { &mut self.summands };
        let fires =
            format!("{guard} == ok(1){}", lower.map_or(String::new(), |l| format!(" && {l}")));
        let (done, assumed) = (format!("is_done({result})"), format!("assumed(next({result}))"));
        out.push(format!(
            "{sums}({conditions}{and}{fires} && {done} && {assumed} == ok(1)) -> {label} . {process}(next({result}))"
        ));
        out.push(format!(
            "{sums}({conditions}{and}({guard} == bad || {fires} && ({result} == fail || {done} && {assumed} == bad))) -> {failure} . delta"
        ));
        Ok(())
    }
    /// Declares an action with the parameters of an instance and returns its label.
    fn action(&mut self, name: &str, instance: &Instance) -> String {
        let sorts: Vec<&str> = instance.bindings.iter().map(|b| b.1.as_str()).collect();
        let values: Vec<&str> = instance.bindings.iter().map(|b| b.0.as_str()).collect();
        if sorts.is_empty() {
            self.actions.insert(format!("    {name};\n"));
            return name.to_string();
        }
        self.actions.insert(format!("    {name}: {};\n", sorts.join(" # ")));
        format!("{name}({})", values.join(", "))
    }
    /// Returns a mapping from a result of the bindings to the value of an expression.
    fn on_memory(&mut self, expr: &Expr) -> Result<String> {
        let term = self.value(expr)?;
        let k = self.fresh();
        self.map(&format!("g{k}"), "Result -> Cell");
        self.map(&format!("h{k}"), "List(Cell) # Int -> Cell");
        self.equation(&format!("h{k}(m, b) = {term}"));
        self.equation(&format!("g{k}(go(m)) = h{k}(m, {})", self.state));
        self.equation(&format!("g{k}(fail) = bad"));
        self.equation(&format!("g{k}(cut) = ok(0)"));
        Ok(format!("g{k}"))
    }

    /// Translates the blocks around a rule: sums over parameters, and the memory behind them.
    fn instances(&mut self, bindings: &[Binding]) -> Result<Instance> {
        let mut instance = Instance::default();
        let mut cells: BTreeMap<u64, String> = BTreeMap::new();
        let mut later: Vec<String> = Vec::new();
        for (i, binding) in bindings.iter().enumerate() {
            let name = format!("p{i}");
            match binding {
                Binding::Parameter { local, domain, .. } => {
                    let value = match domain {
                        Domain::Type(ty) => self.parameter(&mut instance, name, *ty),
                        Domain::Range { from, to, by } => {
                            let (from, to) = (constant(from), constant(to));
                            let by = by.as_ref().map_or(1, constant);
                            let (low, high) = if by > 0 { (from, to) } else { (to, from) };
                            let test = format!(
                                "{low} <= {name} && {name} <= {high} && ({name} - {from}) mod {} == 0",
                                by.unsigned_abs()
                            );
                            instance.bindings.push((name.clone(), "Int".into(), Some(test)));
                            name
                        }
                    };
                    cells.insert(self.locals[local.index()], format!("ok({value})"));
                }
                Binding::Alias(alias) => later.push(self.alias(alias)?),
                Binding::Choose { local, multiset, .. } => {
                    let TypeKind::Multiset { capacity, element } =
                        *self.model.types.kind(multiset.ty)
                    else {
                        return reject(multiset.span, "this is no multiset");
                    };
                    let test = format!("0 <= {name} && {name} < {capacity}");
                    instance.bindings.push((name.clone(), "Int".into(), Some(test)));
                    let set = self.address(multiset)?.term();
                    let block = 1 + size(&self.model.types, element);
                    let k = self.fresh();
                    self.map(&format!("k{k}"), "Result # Int # Int -> Result");
                    let slot = self.local(*local).term();
                    self.equation(&format!(
                        "k{k}(go(m), b, i) = occupied(m, plus({set}, i * {block}), {slot}, ok(i))"
                    ));
                    self.equation(&format!("!is_go(r) -> k{k}(r, b, i) = r"));
                    later.push(format!("k{k}(@, b, {name})"));
                }
            }
        }
        instance.conditions = instance.bindings.iter().filter_map(|b| b.2.clone()).collect();
        let mut frame = Vec::new();
        for cell in 0..self.frame_size {
            frame.push(cells.get(&cell).cloned().unwrap_or_else(|| "undef".into()));
        }
        let mut memory = format!("go(s ++ [{}])", frame.join(", "));
        if frame.is_empty() {
            memory = "go(s)".into();
        }
        for part in later {
            memory = part.replace('@', &memory);
        }
        instance.memory = memory
            .replace(", b)", &format!(", {})", self.state))
            .replace(", b,", &format!(", {},", self.state));
        Ok(instance)
    }
    /// Adds a sum over the values of a type and returns the number of the value.
    fn parameter(&mut self, instance: &mut Instance, name: String, ty: TypeId) -> String {
        if let TypeKind::Range { low, high } = self.model.types.kind(ty) {
            let test = format!("{low} <= {name} && {name} <= {high}");
            instance.bindings.push((name.clone(), "Int".into(), Some(test)));
            return name;
        }
        let (sort, k) = self.sort_of(ty);
        instance.bindings.push((name.clone(), sort, None));
        format!("v{k}({name})")
    }
    /// Returns the sort of the values of an enumeration, scalarset or union, and the number of the
    /// mapping to its numbers.
    fn sort_of(&mut self, ty: TypeId) -> (String, usize) {
        if let Some(found) = self.sorts_of.get(&ty) {
            return found.clone();
        }
        let k = self.fresh();
        let types = &self.model.types;
        let count = types.count(ty).unwrap_or(0);
        let values: Vec<i64> = (0..count).filter_map(|i| types.value_at(ty, i)).collect();
        let sort = if ty == TypeId::BOOLEAN {
            self.map(&format!("v{k}"), "Bool -> Int");
            self.equation(&format!("v{k}(true) = 1"));
            self.equation(&format!("v{k}(false) = 0"));
            "Bool".to_string()
        } else {
            let sort = self.unique(types.get(ty).name.as_deref().unwrap_or("Values"));
            let mut constructors = Vec::new();
            self.map(&format!("v{k}"), &format!("{sort} -> Int"));
            for value in values {
                let name = self.unique(&types.value_text(ty, value));
                self.equation(&format!("v{k}({name}) = {value}"));
                constructors.push(name);
            }
            if constructors.is_empty() {
                constructors.push(self.unique("none"));
            }
            let _ = writeln!(self.sorts, "    {sort} = struct {};", constructors.join(" | "));
            sort
        };
        self.sorts_of.insert(ty, (sort.clone(), k));
        (sort, k)
    }

    /// Returns the cells of the state in a result `r`, with sorted multisets.
    fn sort_multisets(&self) -> String {
        let mut sets = Vec::new();
        for (global, first) in self.model.globals.iter().zip(&self.globals) {
            cells::multisets(&self.model.types, global.ty, *first, &mut sets);
        }
        let mut term = format!("take(mem(r), {})", self.state);
        for (first, capacity, block) in sets {
            term = format!("sort_blocks({term}, {first}, {capacity}, {block})");
        }
        term
    }
    /// Returns the whole text.
    fn text(&self) -> String {
        let mut out = String::from(
            "% A Murphi model: cells are the values of variables, in order; `ok` holds a number.\n",
        );
        let actions: String = self.actions.iter().map(String::as_str).collect();
        let _ = write!(out, "{}", prelude::TEXT);
        if !self.sorts.is_empty() {
            let _ = write!(out, "sort\n{}", self.sorts);
        }
        let _ = write!(out, "map\n{}{}eqn\n{}", self.maps, prelude::VARIABLES, self.equations);
        if !actions.is_empty() {
            let _ = write!(out, "act\n{actions}");
        }
        let choice = |all: &[String]| match all.is_empty() {
            true => "delta".to_string(),
            false => all.join("\n  + "),
        };
        let (process, start) = (&self.process, &self.start);
        let starts = choice(&self.starts);
        let _ = writeln!(out, "proc {process}(s: List(Cell)) =\n    {};", choice(&self.summands));
        let _ = writeln!(out, "proc {start}(s: List(Cell)) =\n    {starts};");
        let _ = writeln!(out, "init {start}(blank({}));", self.state);
        out
    }
}

/// Instances of a rule.
#[derive(Default)]
struct Instance {
    /// Variables of sums: name, sort, and the condition on its values.
    bindings: Vec<(String, String, Option<String>)>,
    /// Conditions on the variables.
    conditions: Vec<String>,
    /// Memory with the frame: a result.
    memory: String,
}

impl Instance {
    /// Returns the value of an assumption in a state: false if it is false for some parameters,
    /// else an error if it fails for some.
    fn assumption(&self, holds: &str) -> String {
        if self.bindings.is_empty() {
            return holds.to_string();
        }
        // A place of a multiset without an element is no value of a parameter.
        let test = |more: String| {
            let tests = self.conditions.iter().cloned();
            tests.chain([format!("{} != cut", self.memory), more]).collect::<Vec<_>>().join(" && ")
        };
        let exists: String = self
            .bindings
            .iter()
            .map(|(name, sort, _)| format!("exists {name}: {sort}. "))
            .collect();
        let (wrong, fails) = (test(format!("{holds} == ok(0)")), test(format!("{holds} == bad")));
        format!("if({exists}({wrong}), ok(0), if({exists}({fails}), bad, ok(1)))")
    }
    /// Returns the sums of a summand.
    fn sums(&self) -> String {
        if self.bindings.is_empty() {
            return String::new();
        }
        let all: Vec<String> =
            self.bindings.iter().map(|(name, sort, _)| format!("{name}: {sort}")).collect();
        format!("sum {}. ", all.join(", "))
    }
}

/// Returns the value of a bound of a ruleset, which the checker folds.
fn constant(expr: &Expr) -> i64 {
    match expr.kind {
        crate::typed::ExprKind::Constant(value) => value,
        _ => 0,
    }
}
