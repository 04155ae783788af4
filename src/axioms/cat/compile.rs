//! Compiler of `cat` statements to a [`CatProgram`], including the files that they include.
//!
//! Input: a text and a resolver of included files. Output: a program, or a diagnostic with a
//! position. `stdlib.cat` is included first if the resolver has it, as in the herd tools. A file
//! that is included twice is compiled twice, because names that it uses may have new meanings:
//! `lock.cat` of the Linux kernel extends `W` before `cross.cat` is included again.

use std::collections::HashMap;
use std::sync::Arc;

use mu_base::{Diagnostic, SourceId, SourceMap, Span, Stage, narrow};

use super::ast::{BindingPattern, Exp, Ident, Ins, Statement, TestKind, TestRole, TestStatement};
use super::expression::{Compiled, bind};
use super::parser::parse;
use super::program::{AxiomCheck, CatNodeId, CatOp, CatProgram, CatType, ElementChoice, Property};
use super::value::{CatValue, Env, Primitive, Procedure};
use crate::execution::{NameMeaning, RelationId, Vocabulary};

/// Returns the text of an included file; `None` if there is no such file.
pub type Resolver<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The flag of `undefined_unless`.
const UNDEFINED: &str = "*undef*";
/// Limit on the nesting of included files and procedure calls; deeper nesting is an error.
const MAX_NESTING: usize = 200;

/// The state of a compilation.
pub(super) struct Compiler<'a> {
    pub(super) program: CatProgram,
    pub(super) vocabulary: &'a Vocabulary,
    pub(super) variants: &'a [&'a str],
    /// The first use of each missing name of the vocabulary.
    pub(super) missing: HashMap<CatNodeId, Span>,
    /// The positions of the nodes that may fail during evaluation.
    pub(super) spans: HashMap<CatNodeId, Span>,
    /// Number of unknown names so far, for `try`.
    pub(super) unknown: usize,
    /// Nesting depth of calls.
    pub(super) calls: usize,
    sources: &'a mut SourceMap,
    resolver: Resolver<'a>,
    /// The file that is being compiled.
    file: String,
    /// The files that include it, outermost first.
    open: Vec<String>,
    nested: usize,
    /// The relations of drawings, by name.
    pub(super) show_statements: Vec<(String, CatNodeId)>,
    /// The words before the first statement.
    pub(super) head: Vec<String>,
    /// True if the model defines the coherence orders itself.
    pub(super) chooses_coherence: bool,
    /// The names in scope at the end.
    pub(super) last: Env,
}

impl<'a> Compiler<'a> {
    /// Compiles a file.
    pub(super) fn run(
        sources: &'a mut SourceMap,
        source: SourceId,
        resolver: Resolver<'a>,
        vocabulary: &'a Vocabulary,
        variants: &'a [&'a str],
    ) -> Compiled<Self> {
        let name = sources.get(source).name.clone();
        let mut c = Compiler {
            program: CatProgram::default(),
            vocabulary,
            variants,
            missing: HashMap::new(),
            spans: HashMap::new(),
            unknown: 0,
            calls: 0,
            sources,
            resolver,
            file: name.clone(),
            open: Vec::new(),
            nested: 0,
            show_statements: Vec::new(),
            head: Vec::new(),
            chooses_coherence: false,
            last: Env::default(),
        };
        let mut env = Env::default();
        if let Some(library) = resolver("stdlib.cat").filter(|_| name != "stdlib.cat") {
            let library = c.sources.add("stdlib.cat", library);
            env = c.file(library, env)?;
            c.head.clear();
        }
        c.last = c.file(source, env)?;
        let is_order = |node_id: &CatNodeId| {
            c.program.nodes[node_id.index()].op == CatOp::GivenRelation(RelationId::CO)
        };
        if !c.chooses_coherence && super::live_nodes(&c.program).iter().any(is_order) {
            c.updates_store_after_they_load(Span { source, start: 0, end: 0 });
        }
        Ok(c)
    }
    /// Adds an axiom to a model that does not define the coherence orders itself, as the herd
    /// tools' models do: the store of an update is not before the store that it loads from. Where
    /// `co` is given, the load and the store of one instruction are in program order (Dartagnan),
    /// so that models rely on it.
    fn updates_store_after_they_load(&mut self, span: Span) {
        let [rmw, co, rf] = [RelationId::RMW, RelationId::CO, RelationId::RF]
            .map(|id| self.vocabulary_node(NameMeaning::Relation(id), span));
        let load_after_store = self.program.node(CatOp::Compose(co, rf), CatType::Relation);
        let store_to_load = self.program.node(CatOp::Inverse(rmw), CatType::Relation);
        let wrong = self.program.intersection(load_after_store, store_to_load);
        let stage = self.program.nodes[wrong.index()].stage;
        self.program.checks.push(AxiomCheck {
            span,
            role: TestRole::Axiom,
            negated: false,
            property: Property::Test(TestKind::Empty, wrong),
            name: "updates store after they load".to_string(),
            stage,
        });
    }
    fn file(&mut self, id: SourceId, env: Env) -> Compiled<Env> {
        let source = self.sources.get(id);
        let name = source.name.clone();
        let parsed = parse(id, &source.text)?;
        let outer = std::mem::replace(&mut self.file, name);
        self.open.push(outer.clone());
        self.head.extend(parsed.head);
        let env = self.statements(&parsed.body, env)?;
        self.open.pop();
        self.file = outer;
        Ok(env)
    }
    fn statements(&mut self, list: &[Ins], mut env: Env) -> Compiled<Env> {
        for ins in list {
            env = stacker::maybe_grow(128 * 1024, 1024 * 1024, || self.statement(ins, env))?;
        }
        Ok(env)
    }
    fn statement(&mut self, ins: &Ins, env: Env) -> Compiled<Env> {
        match &ins.node {
            Statement::Let(recursive, bindings, when) => {
                let env = if self.file == "cross.cat"
                    && bindings.iter().any(|b| matches!(&b.pattern, BindingPattern::One(Some(n)) if n.text == "generate_orders"))
                {
                    // The herd tools' library defines this function as a program over sets of sets.
                    env.with("generate_orders", CatValue::Primitive(Primitive::GenerateOrders))
                } else {
                    self.bindings(*recursive, bindings, &env)?
                };
                if let Some(test) = when {
                    self.test(test, &env)?;
                }
                Ok(env)
            }
            Statement::Test(test) => {
                self.test(test, &env)?;
                Ok(env)
            }
            Statement::Show(list) => {
                self.show(list, &env);
                Ok(env)
            }
            Statement::Include(name) => self.include(name, ins.span, env),
            Statement::Procedure(name, pattern, body) => {
                let p =
                    Procedure { pattern: pattern.clone(), body: body.clone(), env: env.clone() };
                Ok(env.with(name, CatValue::Procedure(Arc::new(p))))
            }
            Statement::Call(name, argument, label) => {
                self.call(ins.span, name, argument, label.as_deref(), env)
            }
            Statement::Forall(name, set, body) => self.forall(name, set, body, env),
            Statement::With(name, from) => self.with(ins.span, name, from, env),
            Statement::Enum(name, tags) => Ok(env.with(
                name,
                CatValue::Tags(Arc::new(tags.iter().map(|t| t.text.clone()).collect())),
            )),
            Statement::Instructions(_, arguments) => {
                for a in arguments {
                    let value = self.exp(a, &env)?;
                    if !matches!(value, CatValue::Tag(_) | CatValue::Tags(_) | CatValue::Empty) {
                        return Err(Diagnostic::at(
                            Stage::Type,
                            a.span,
                            format!("this is {}: expected tags", self.describe(&value)),
                        ));
                    }
                }
                Ok(env)
            }
            Statement::If(condition, yes, no) => match self.condition(condition, &env)? {
                Some(true) => self.statements(yes, env),
                Some(false) => self.statements(no, env),
                None => Err(Diagnostic::at(
                    Stage::Unsupported,
                    ins.span,
                    "statements under a condition that depends on the execution",
                )),
            },
            Statement::Match(of, clauses, other) => {
                let value = self.exp(of, &env)?;
                let CatValue::Tag(tag) = value else {
                    return Err(Diagnostic::at(
                        Stage::Type,
                        of.span,
                        format!("this is {}: expected a tag", self.describe(&value)),
                    ));
                };
                match clauses.iter().find(|c| c.0.text == tag).map(|c| &c.1).or(other.as_ref()) {
                    Some(body) => self.statements(body, env),
                    None => Err(Diagnostic::at(
                        Stage::Type,
                        ins.span,
                        format!("no clause for the tag `'{tag}`"),
                    )),
                }
            }
        }
    }
    fn nest<T>(&mut self, span: Span, what: impl FnOnce(&mut Self) -> Compiled<T>) -> Compiled<T> {
        if self.nested >= MAX_NESTING {
            return Err(Diagnostic::at(
                Stage::Type,
                span,
                format!("files or procedures are nested more than {MAX_NESTING} deep"),
            ));
        }
        self.nested += 1;
        let out = what(self);
        self.nested -= 1;
        out
    }
    fn include(&mut self, name: &str, span: Span, env: Env) -> Compiled<Env> {
        // A file inside itself adds nothing.
        if self.file == name || self.open.iter().any(|f| f == name) {
            return Ok(env);
        }
        let Some(text) = (self.resolver)(name) else {
            return Err(Diagnostic::at(
                Stage::File,
                span,
                format!("the file `{name}` is not found"),
            ));
        };
        let heads = self.head.len();
        let id = self.sources.add(name, text);
        let env = self.nest(span, |c| c.file(id, env))?;
        self.head.truncate(heads);
        Ok(env)
    }
    fn call(
        &mut self,
        span: Span,
        name: &str,
        argument: &Arc<Exp>,
        label: Option<&str>,
        env: Env,
    ) -> Compiled<Env> {
        let Some(CatValue::Procedure(p)) = env.find(name).cloned() else {
            return Err(Diagnostic::at(Stage::Type, span, format!("`{name}` is not a procedure")));
        };
        let value = self.exp(argument, &env)?;
        // A procedure may be recursive.
        let inner = p.env.with(name, CatValue::Procedure(p.clone()));
        let inner = bind(&inner, &p.pattern, value, argument.span)?;
        let first = self.program.checks.len();
        self.nest(span, |c| c.statements(&p.body, inner))
            .map_err(|e| e.within(span, "in this call"))?;
        if let Some(label) = label {
            let named = self.program.checks[first..].iter_mut();
            named
                .filter(|c| c.role != TestRole::UndefinedUnless)
                .for_each(|c| c.name = label.to_string());
        }
        Ok(env)
    }
    fn forall(&mut self, name: &str, set: &Arc<Exp>, body: &[Ins], env: Env) -> Compiled<Env> {
        let elements = match self.exp(set, &env)? {
            CatValue::Empty => Vec::new(),
            CatValue::Tags(tags) => tags.iter().cloned().map(CatValue::Tag).collect(),
            CatValue::List(list) => list.to_vec(),
            CatValue::Node(from) => return self.forall_later(name, set.span, from, body, env),
            other => {
                return Err(Diagnostic::at(
                    Stage::Type,
                    set.span,
                    format!("this is {}: expected a set", self.describe(&other)),
                ));
            }
        };
        for e in elements {
            self.statements(body, env.with(name, e))?;
        }
        Ok(env)
    }
    /// Compiles a `forall` over a set that depends on the execution.
    fn forall_later(
        &mut self,
        name: &str,
        span: Span,
        from: CatNodeId,
        body: &[Ins],
        env: Env,
    ) -> Compiled<Env> {
        let (element, index) = self.choice(span, from, true)?;
        let checks = self.program.checks.len();
        self.statements(body, env.with(name, CatValue::Node(element)))?;
        self.program.choices[index].end = self.program.choices.len();
        if let Some(c) = self.program.checks[checks..].iter().find(|c| c.role != TestRole::Axiom) {
            return Err(Diagnostic::at(
                Stage::Unsupported,
                c.span,
                "a flag or an assertion inside a `forall` over events of the execution",
            ));
        }
        // A check of the body that does not use the element is still evaluated only if there is an
        // element.
        let stage = 3 + narrow::byte(index);
        self.program.checks[checks..].iter_mut().for_each(|c| c.stage = c.stage.max(stage));
        Ok(env)
    }
    fn choice(&mut self, span: Span, from: CatNodeId, all: bool) -> Compiled<(CatNodeId, usize)> {
        let index = self.program.choices.len();
        if index >= 200 {
            return Err(Diagnostic::at(
                Stage::Unsupported,
                span,
                "more than 200 `with` and `forall` in a model",
            ));
        }
        let element = self.program.node(CatOp::Element(narrow::index(index)), CatType::Value);
        self.spans.insert(element, span);
        self.program.choices.push(ElementChoice { span, from, element, all, end: index + 1 });
        Ok((element, index))
    }
    fn with(&mut self, span: Span, name: &str, from: &Arc<Exp>, env: Env) -> Compiled<Env> {
        let set = match self.exp(from, &env)? {
            CatValue::Node(s) if self.program.kind(s) == CatType::Value => s,
            CatValue::List(list) if list.len() == 1 => return Ok(env.with(name, list[0].clone())),
            CatValue::List(_) => match self.interpret(from, &env)? {
                CatValue::Node(s) => s,
                _ => {
                    return Err(Diagnostic::at(
                        Stage::Internal,
                        from.span,
                        "a set of sets that is no node",
                    ));
                }
            },
            other => {
                return Err(Diagnostic::at(
                    Stage::Type,
                    from.span,
                    format!(
                        "this is {}: expected a set of relations to choose from",
                        self.describe(&other)
                    ),
                ));
            }
        };
        let is_total = matches!(self.program.nodes[set.index()].op, CatOp::Linearisations(..));
        if name == "co" && !self.chooses_coherence && is_total {
            return self.memory_order(span, set, env);
        }
        if name == "co" && !self.chooses_coherence {
            // The front end chooses the order; it must be one of the model's.
            self.chooses_coherence = true;
            let co = self.vocabulary_node(NameMeaning::Relation(RelationId::CO), span);
            let stage = self.program.nodes[set.index()].stage.max(2);
            let name = "a coherence order of the model".to_string();
            self.program.checks.push(AxiomCheck {
                span,
                role: TestRole::Axiom,
                negated: false,
                property: Property::CoherenceIn(set),
                name,
                stage,
            });
            return Ok(env.with("co", CatValue::Node(co)));
        }
        let (element, _) = self.choice(span, set, false)?;
        Ok(env.with(name, CatValue::Node(element)))
    }
    /// Compiles `with co from linearisations(s, r)`: one order of writes to all locations. At each
    /// location it has the order that the front end chooses.
    fn memory_order(&mut self, span: Span, set: CatNodeId, env: Env) -> Compiled<Env> {
        self.chooses_coherence = true;
        let (element, _) = self.choice(span, set, false)?;
        let chosen = self.node_at(CatOp::AsRelation(element), CatType::Relation, span);
        let given = [RelationId::LOC, RelationId::CO].map(NameMeaning::Relation);
        let [loc, co] = given.map(|name| self.vocabulary_node(name, span));
        let local = self.program.intersection(chosen, loc);
        let other = self.program.difference(local, co);
        let stage = self.program.nodes[other.index()].stage;
        self.program.checks.push(AxiomCheck {
            span,
            role: TestRole::Axiom,
            negated: false,
            property: Property::Test(TestKind::Empty, other),
            name: "a memory order of the model".to_string(),
            stage,
        });
        Ok(env.with("co", CatValue::Node(element)))
    }
    fn test(&mut self, test: &TestStatement, env: &Env) -> Compiled<()> {
        let value = self.exp(&test.of, env)?;
        let mut node_id = match (test.kind, &value) {
            (TestKind::Empty, CatValue::Node(s)) => match self.program.kind(*s) {
                CatType::Set | CatType::Relation => *s,
                // The kind is known when the value is computed.
                CatType::Value => self.node_at(CatOp::AsPairs(*s), CatType::Relation, test.of.span),
            },
            (TestKind::Empty, CatValue::Empty) => self.program.node(CatOp::Nothing, CatType::Set),
            _ => self.pairs_of(&value, test.of.span)?,
        };
        if let (TestKind::Acyclic, CatOp::Plus(of)) =
            (test.kind, self.program.nodes[node_id.index()].op)
        {
            node_id = of;
        }
        let text = self.sources.text(test.of.span).split_whitespace().collect::<Vec<_>>().join(" ");
        let name = match (&test.name, test.role) {
            // As in the herd tools, the flag of undefined behaviour has one name.
            (_, TestRole::UndefinedUnless) => UNDEFINED.to_string(),
            (Some(name), _) => name.text.clone(),
            (None, _) => {
                format!("{}{} {text}", if test.negated { "~" } else { "" }, test.kind.word())
            }
        };
        let stage = self.program.nodes[node_id.index()].stage;
        self.program.checks.push(AxiomCheck {
            span: test.span,
            role: test.role,
            negated: test.negated,
            property: Property::Test(test.kind, node_id),
            name,
            stage,
        });
        Ok(())
    }
    /// Records the relations of drawings. Names that cannot be drawn (functions, unknown names) are
    /// omitted, since they do not affect the model.
    fn show(&mut self, list: &[(Ident, Option<Arc<Exp>>)], env: &Env) {
        for (name, exp) in list {
            self.show_statements.retain(|s| s.0 != name.text);
            let Some(exp) = exp else { continue };
            let unknown = self.unknown;
            if let Ok(value @ CatValue::Node(_)) = self.exp(exp, env)
                && let Ok(node_id) = self.pairs_of(&value, exp.span)
            {
                self.show_statements.push((name.text.clone(), node_id));
            }
            self.unknown = unknown;
        }
    }
}
