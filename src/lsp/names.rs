//! Name resolution: a walk over the syntax tree with a stack of the variables in scope.
//!
//! In: a parsed specification or formula. Out: every occurrence of a name with its [`Key`], and the
//! declarations with their signatures. Names resolve as in the type checker: the innermost variable
//! first, then operations; sorts, data, actions and processes have separate name spaces. Overloads
//! share a key, so that they are found and renamed together. Cost: linear in the tree.

pub(crate) use crate::kinds::NameKind;
use mu_base::Span;
use mu_base::narrow;
use mu_syntax::ast::*;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::rc::Rc;

/// Meaning of a name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Key {
    /// A parameter of the parameter layer.
    Parameter(String),
    /// A sort.
    Sort(String),
    /// Constructors, projections, recognisers and mappings.
    Data(String),
    /// An action.
    Action(String),
    /// A process.
    Process(String),
    /// A parameter of all processes with a name.
    ProcessParameter(String, String),
    /// A variable that is declared at this offset of the file.
    Local(usize),
    /// An entity of another front end, declared at this offset of a file.
    Placed(Rc<Path>, usize),
    /// A built-in name of another front end's language.
    Given(String),
}

impl Key {
    /// True if other files may use it.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, Key::Sort(_) | Key::Data(_) | Key::Action(_))
    }
}

/// An occurrence of a name, in the parsed text.
pub(crate) struct NameOccurrence {
    pub(crate) span: Span,
    pub(crate) key: Key,
    pub(crate) declares: bool,
}

/// A declaration, in the parsed text.
pub(crate) struct DeclaredName {
    pub(crate) key: Key,
    pub(crate) kind: NameKind,
    pub(crate) name: String,
    pub(crate) span: Span,
    /// The whole declaration.
    pub(crate) extent: Span,
    /// Its sort or parameters, as in the text: `: A # B -> C`.
    pub(crate) signature: String,
}

/// The resolver.
pub(crate) struct Resolver<'a> {
    /// The parsed text.
    text: &'a str,
    pub(crate) found: Vec<NameOccurrence>,
    pub(crate) declared: Vec<DeclaredName>,
    scope: HashMap<String, Vec<Key>>,
    fixed: Vec<(String, Key)>,
    /// Parameter lists of the processes with a name.
    processes: HashMap<String, Vec<Vec<String>>>,
    /// The current process, with its parameters.
    own: Option<(String, Vec<String>)>,
    /// Parameters that are unified by a call without arguments.
    pub(crate) same: BTreeMap<Key, Key>,
}

/// Returns the text of a span, on one line.
fn source_text(text: &str, span: Span) -> String {
    let words = text.get(span.start as usize..span.end as usize).unwrap_or("");
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl<'a> Resolver<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self {
            text,
            found: Vec::new(),
            declared: Vec::new(),
            scope: HashMap::new(),
            fixed: Vec::new(),
            processes: HashMap::new(),
            own: None,
            same: BTreeMap::new(),
        }
    }

    fn mention(&mut self, name: &Ident, key: Key) {
        self.found.push(NameOccurrence { span: name.span, key, declares: false });
    }

    fn declare(&mut self, name: &Ident, key: Key, kind: NameKind, extent: Span, signature: String) {
        self.found.push(NameOccurrence { span: name.span, key: key.clone(), declares: true });
        self.declared.push(DeclaredName {
            key,
            kind,
            name: name.kind.clone(),
            span: name.span,
            extent,
            signature,
        });
    }

    /// Resolves a specification.
    pub(crate) fn specification(&mut self, specification: &Specification) {
        self.sections(&specification.sections);
    }

    /// Resolves a formula file.
    pub(crate) fn formula_file(&mut self, file: &FormulaFile) {
        self.sections(&file.sections);
        self.state(&file.formula);
    }

    fn sections(&mut self, sections: &[Section]) {
        for section in sections {
            if let Section::Processes(equations) = section {
                for e in equations {
                    let params = e.params.iter().map(|p| p.name.kind.clone()).collect();
                    self.processes.entry(e.name.kind.clone()).or_default().push(params);
                }
            }
        }
        let mut globals = Vec::new();
        for section in sections {
            match section {
                Section::Sorts(sorts) => {
                    for (name, definition) in sorts {
                        let extent =
                            definition.as_ref().map_or(name.span, |d| name.span.to(d.span));
                        let signature = definition.as_ref().map_or_else(String::new, |d| {
                            format!(" = {}", source_text(self.text, d.span))
                        });
                        self.declare(
                            name,
                            Key::Sort(name.kind.clone()),
                            NameKind::Sort,
                            extent,
                            signature,
                        );
                        if let Some(definition) = definition {
                            self.sort(definition, Some(&name.kind));
                        }
                    }
                }
                Section::Constructors(decls) | Section::Mappings(decls) => {
                    let kind = if matches!(section, Section::Mappings(_)) {
                        NameKind::Mapping
                    } else {
                        NameKind::Constructor
                    };
                    for (name, sort) in decls {
                        let signature = format!(": {}", source_text(self.text, sort.span));
                        self.declare(
                            name,
                            Key::Data(name.kind.clone()),
                            kind,
                            name.span.to(sort.span),
                            signature,
                        );
                        self.sort(sort, None);
                    }
                }
                Section::Globals(decls) => globals.extend(decls),
                Section::Actions(decls) => {
                    for (name, sorts) in decls {
                        let texts: Vec<String> =
                            sorts.iter().map(|s| source_text(self.text, s.span)).collect();
                        let signature = if texts.is_empty() {
                            String::new()
                        } else {
                            format!(": {}", texts.join(" # "))
                        };
                        let extent = sorts.last().map_or(name.span, |s| name.span.to(s.span));
                        self.declare(
                            name,
                            Key::Action(name.kind.clone()),
                            NameKind::Action,
                            extent,
                            signature,
                        );
                        sorts.iter().for_each(|s| self.sort(s, None));
                    }
                }
                Section::Equations(vars, equations) => {
                    let mark = self.bind(vars);
                    for e in equations {
                        e.condition.iter().chain([&e.lhs, &e.rhs]).for_each(|d| self.data(d));
                    }
                    self.unbind(mark);
                }
                Section::Processes(_) | Section::Init(_) => {}
            }
        }
        // Global variables are visible in processes, but not in equations.
        let globals: Vec<VarDecl> = globals.into_iter().cloned().collect();
        let mark = self.bind(&globals);
        for section in sections {
            match section {
                Section::Processes(equations) => equations.iter().for_each(|e| self.equation(e)),
                Section::Init(process) => self.process(process),
                _ => {}
            }
        }
        self.unbind(mark);
    }

    fn equation(&mut self, equation: &ProcessEquation) {
        let name = &equation.name;
        let texts: Vec<String> = equation
            .params
            .iter()
            .map(|p| format!("{}: {}", p.name.kind, source_text(self.text, p.sort.span)))
            .collect();
        let signature =
            if texts.is_empty() { String::new() } else { format!("({})", texts.join(", ")) };
        self.declare(
            name,
            Key::Process(name.kind.clone()),
            NameKind::Process,
            name.span.to(equation.body.span),
            signature,
        );
        let mut bound = Vec::new();
        for p in &equation.params {
            self.sort(&p.sort, None);
            let key = Key::ProcessParameter(name.kind.clone(), p.name.kind.clone());
            self.declare_variable(&p.name, key.clone(), &p.sort);
            self.push(&p.name.kind, key);
            bound.push(p.name.kind.clone());
        }
        self.own = Some((name.kind.clone(), bound.clone()));
        self.process(&equation.body);
        self.own = None;
        self.unbind(bound);
    }

    fn declare_variable(&mut self, name: &Ident, key: Key, sort: &Sort) {
        let signature = format!(": {}", source_text(self.text, sort.span));
        self.declare(name, key, NameKind::Variable, name.span.to(sort.span), signature);
    }

    fn push(&mut self, name: &str, key: Key) {
        self.scope.entry(name.to_string()).or_default().push(key);
    }

    /// Brings variables into scope.
    fn bind(&mut self, decls: &[VarDecl]) -> Vec<String> {
        for decl in decls {
            self.sort(&decl.sort, None);
            let key = Key::Local(decl.name.span.start as usize);
            self.declare_variable(&decl.name, key.clone(), &decl.sort);
            self.push(&decl.name.kind, key);
        }
        decls.iter().map(|d| d.name.kind.clone()).collect()
    }

    fn unbind(&mut self, names: Vec<String>) {
        for name in names {
            if let Some(keys) = self.scope.get_mut(&name) {
                keys.pop();
            }
        }
    }

    fn variable(&self, name: &str) -> Option<Key> {
        self.scope.get(name).and_then(|keys| keys.last().cloned())
    }

    fn sort(&mut self, sort: &Sort, of: Option<&str>) {
        stacker::maybe_grow(64 << 10, 1 << 20, || match &sort.kind {
            SortKind::Bool | SortKind::Pos | SortKind::Nat | SortKind::Int | SortKind::Real => {}
            SortKind::List(e)
            | SortKind::Set(e)
            | SortKind::Bag(e)
            | SortKind::FSet(e)
            | SortKind::FBag(e) => self.sort(e, None),
            SortKind::Name(name) => {
                let span = Span { end: sort.span.start + narrow::index(name.len()), ..sort.span };
                self.found.push(NameOccurrence {
                    span,
                    key: Key::Sort(name.clone()),
                    declares: false,
                });
            }
            SortKind::Function(domain, range) => {
                domain.iter().chain([&**range]).for_each(|s| self.sort(s, None))
            }
            SortKind::Struct(constructors) => {
                let of = of.map_or_else(|| "struct".to_string(), str::to_string);
                for c in constructors {
                    let texts: Vec<String> =
                        c.args.iter().map(|a| source_text(self.text, a.1.span)).collect();
                    let signature = if texts.is_empty() {
                        format!(": {of}")
                    } else {
                        format!(": {} -> {of}", texts.join(" # "))
                    };
                    let extent = c.args.last().map_or(c.name.span, |a| c.name.span.to(a.1.span));
                    self.declare(
                        &c.name,
                        Key::Data(c.name.kind.clone()),
                        NameKind::Constructor,
                        extent,
                        signature,
                    );
                    for (projection, sort) in &c.args {
                        if let Some(p) = projection {
                            let signature =
                                format!(": {of} -> {}", source_text(self.text, sort.span));
                            self.declare(
                                p,
                                Key::Data(p.kind.clone()),
                                NameKind::Projection,
                                p.span.to(sort.span),
                                signature,
                            );
                        }
                        self.sort(sort, None);
                    }
                    if let Some(r) = &c.recogniser {
                        self.declare(
                            r,
                            Key::Data(r.kind.clone()),
                            NameKind::Recogniser,
                            r.span,
                            format!(": {of} -> Bool"),
                        );
                    }
                }
            }
        })
    }

    fn data(&mut self, data: &Data) {
        stacker::maybe_grow(64 << 10, 1 << 20, || match &data.kind {
            DataKind::Name(name) => {
                if !matches!(name.as_str(), "true" | "false") {
                    let key = self.variable(name).unwrap_or_else(|| Key::Data(name.clone()));
                    let span =
                        Span { end: data.span.start + narrow::index(name.len()), ..data.span };
                    self.found.push(NameOccurrence { span, key, declares: false });
                }
            }
            DataKind::Number(_) => {}
            DataKind::List(parts) | DataKind::Set(parts) => parts.iter().for_each(|d| self.data(d)),
            DataKind::Bag(parts) => {
                parts.iter().for_each(|(a, b)| [a, b].into_iter().for_each(|d| self.data(d)))
            }
            DataKind::Comprehension(decl, body) => {
                let mark = self.bind(std::slice::from_ref(decl));
                self.data(body);
                self.unbind(mark);
            }
            DataKind::Apply(head, args) => {
                [&**head].into_iter().chain(args).for_each(|d| self.data(d))
            }
            DataKind::Update(f, a, b) => [f, a, b].into_iter().for_each(|d| self.data(d)),
            DataKind::Unary(_, a) => self.data(a),
            DataKind::Binary(_, a, b) => [a, b].into_iter().for_each(|d| self.data(d)),
            DataKind::Lambda(vars, body)
            | DataKind::Forall(vars, body)
            | DataKind::Exists(vars, body) => {
                let mark = self.bind(vars);
                self.data(body);
                self.unbind(mark);
            }
            DataKind::Where(body, definitions) => {
                definitions.iter().for_each(|d| self.data(&d.1));
                for (name, value) in definitions {
                    let key = Key::Local(name.span.start as usize);
                    let signature = format!(" = {}", source_text(self.text, value.span));
                    self.declare(
                        name,
                        key.clone(),
                        NameKind::Variable,
                        name.span.to(value.span),
                        signature,
                    );
                    self.push(&name.kind, key);
                }
                self.data(body);
                self.unbind(definitions.iter().map(|d| d.0.kind.clone()).collect());
            }
        })
    }

    fn action(&mut self, name: &Ident) {
        self.mention(name, Key::Action(name.kind.clone()));
    }

    fn process(&mut self, process: &Process) {
        stacker::maybe_grow(64 << 10, 1 << 20, || match &process.kind {
            ProcessKind::Delta | ProcessKind::Tau => {}
            ProcessKind::Call { name, args, parens } => {
                let key = if self.processes.contains_key(&name.kind) {
                    Key::Process(name.kind.clone())
                } else {
                    Key::Action(name.kind.clone())
                };
                self.mention(name, key);
                if *parens && args.is_empty() {
                    self.inherits(&name.kind, &[]);
                }
                args.iter().for_each(|d| self.data(d));
            }
            ProcessKind::CallAssign(name, assignments) => {
                self.mention(name, Key::Process(name.kind.clone()));
                let assigned: Vec<&str> = assignments.iter().map(|a| a.0.kind.as_str()).collect();
                self.inherits(&name.kind, &assigned);
                for (param, value) in assignments {
                    self.mention(
                        param,
                        Key::ProcessParameter(name.kind.clone(), param.kind.clone()),
                    );
                    self.data(value);
                }
            }
            ProcessKind::Choice(a, b)
            | ProcessKind::Seq(a, b)
            | ProcessKind::Parallel(a, b)
            | ProcessKind::LeftMerge(a, b)
            | ProcessKind::Sync(a, b)
            | ProcessKind::BoundedInit(a, b) => [a, b].into_iter().for_each(|p| self.process(p)),
            ProcessKind::At(p, time) => {
                self.process(p);
                self.data(time);
            }
            ProcessKind::If(condition, a, b) => {
                self.data(condition);
                self.process(a);
                b.iter().for_each(|p| self.process(p));
            }
            ProcessKind::Sum(vars, p) => {
                let mark = self.bind(vars);
                self.process(p);
                self.unbind(mark);
            }
            ProcessKind::Dist(vars, weight, p) => {
                let mark = self.bind(vars);
                self.data(weight);
                self.process(p);
                self.unbind(mark);
            }
            ProcessKind::Block(names, p) | ProcessKind::Hide(names, p) => {
                names.iter().for_each(|n| self.action(n));
                self.process(p);
            }
            ProcessKind::Allow(sets, p) => {
                sets.iter().flat_map(|s| &s.kind).for_each(|n| self.action(n));
                self.process(p);
            }
            ProcessKind::Rename(pairs, p) => {
                pairs.iter().flat_map(|(a, b)| [a, b]).for_each(|n| self.action(n));
                self.process(p);
            }
            ProcessKind::Comm(rules, p) => {
                rules
                    .iter()
                    .flat_map(|(from, to)| from.kind.iter().chain(to))
                    .for_each(|n| self.action(n));
                self.process(p);
            }
        })
    }

    /// Unifies the omitted parameters of a call with the parameters of the same names here.
    fn inherits(&mut self, process: &str, assigned: &[&str]) {
        let Some((own, own_params)) = self.own.clone() else { return };
        for params in self.processes.get(process).cloned().unwrap_or_default() {
            for p in
                params.iter().filter(|p| !assigned.contains(&p.as_str()) && own_params.contains(p))
            {
                let (a, b) = (
                    Key::ProcessParameter(own.clone(), p.clone()),
                    Key::ProcessParameter(process.to_string(), p.clone()),
                );
                let (a, b) = (self.representative(a), self.representative(b));
                if a != b {
                    self.same.insert(b, a);
                }
            }
        }
    }

    /// Returns the representative key of a set of unified names.
    fn representative(&self, mut key: Key) -> Key {
        while let Some(next) = self.same.get(&key) {
            key = next.clone();
        }
        key
    }

    fn state(&mut self, formula: &StateFormula) {
        stacker::maybe_grow(64 << 10, 1 << 20, || match &formula.kind {
            StateFormulaKind::True | StateFormulaKind::False => {}
            StateFormulaKind::Val(e) => self.data(e),
            StateFormulaKind::Delay(t) | StateFormulaKind::Yaled(t) => {
                t.iter().for_each(|t| self.data(t))
            }
            StateFormulaKind::Var(name, args) => {
                let key = self.fixed.iter().rev().find(|f| f.0 == name.kind).map(|f| f.1.clone());
                // The type checker reports the error; it is an occurrence of the name in any case.
                self.mention(name, key.unwrap_or_else(|| Key::Action(name.kind.clone())));
                args.iter().for_each(|d| self.data(d));
            }
            StateFormulaKind::Not(f) | StateFormulaKind::Minus(f) => self.state(f),
            StateFormulaKind::Binary(_, f, g) => [f, g].into_iter().for_each(|f| self.state(f)),
            StateFormulaKind::Quantified(_, vars, f) => {
                let mark = self.bind(vars);
                self.state(f);
                self.unbind(mark);
            }
            StateFormulaKind::Must(r, f) | StateFormulaKind::May(r, f) => {
                self.regular(r);
                self.state(f);
            }
            StateFormulaKind::Fix { least, name, params, body } => {
                params.iter().for_each(|p| self.data(&p.1));
                let key = Key::Local(name.span.start as usize);
                let decls: Vec<VarDecl> = params.iter().map(|p| p.0.clone()).collect();
                let texts: Vec<String> = decls
                    .iter()
                    .map(|p| format!("{}: {}", p.name.kind, source_text(self.text, p.sort.span)))
                    .collect();
                let signature = if texts.is_empty() {
                    String::new()
                } else {
                    format!("({})", texts.join(", "))
                };
                let word = if *least { " (least)" } else { " (greatest)" };
                self.declare(
                    name,
                    key.clone(),
                    NameKind::FixedPoint,
                    formula.span,
                    signature + word,
                );
                let mark = self.bind(&decls);
                self.fixed.push((name.kind.clone(), key));
                self.state(body);
                self.fixed.pop();
                self.unbind(mark);
            }
        })
    }

    fn regular(&mut self, formula: &RegularFormula) {
        stacker::maybe_grow(64 << 10, 1 << 20, || match &formula.kind {
            RegularKind::Action(a) => self.action_formula(a),
            RegularKind::Seq(r, s) | RegularKind::Alt(r, s) => {
                [r, s].into_iter().for_each(|r| self.regular(r))
            }
            RegularKind::Star(r) | RegularKind::Plus(r) => self.regular(r),
        })
    }

    fn action_formula(&mut self, formula: &ActionFormula) {
        stacker::maybe_grow(64 << 10, 1 << 20, || match &formula.kind {
            ActionFormulaKind::True | ActionFormulaKind::False => {}
            ActionFormulaKind::Val(e) => self.data(e),
            ActionFormulaKind::MultiAction(actions) => {
                for (name, args) in actions {
                    self.action(name);
                    args.iter().for_each(|d| self.data(d));
                }
            }
            ActionFormulaKind::Not(a) => self.action_formula(a),
            ActionFormulaKind::Binary(_, a, b) => {
                [a, b].into_iter().for_each(|a| self.action_formula(a))
            }
            ActionFormulaKind::Quantified(_, vars, a) => {
                let mark = self.bind(vars);
                self.action_formula(a);
                self.unbind(mark);
            }
            ActionFormulaKind::At(a, time) => {
                self.action_formula(a);
                self.data(time);
            }
        })
    }
}
