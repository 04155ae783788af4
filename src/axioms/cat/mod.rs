//! Memory models in the `cat` language (Alglave, Maranget, Tautschnig: "Herding cats", 2014;
//! Alglave, Cousot, Maranget 2016): from a text to a verdict on executions.
//!
//! `lexer` → `parser` → `ast` → `compile` (with `expression`, `value`) → `program` → `plan` →
//! `run`; `specialise` to fold what is empty in a skeleton; `interpret` for expressions beyond sets
//! and relations of events; `coherent` and `templates` for models that coherence orders determine;
//! `lower_bound` for partial executions; `explain` for reasons; `names` for editors; `bell` for
//! annotations. A model is compiled once for a vocabulary and a set of variants, and runs on any
//! number of executions.

mod ast;
mod bell;
mod coherent;
mod compile;
mod explain;
mod expression;
mod interpret;
mod lexer;
mod lower_bound;
mod names;
mod parser;
mod plan;
mod program;
mod run;
mod specialise;
mod templates;
mod value;

use std::collections::{BTreeMap, HashMap, HashSet};

use mu_base::{Diagnostic, SourceId, SourceMap, Span, Stage};

pub use ast::TestKind;
pub use bell::Bell;
pub use compile::Resolver;
pub use interpret::each_order;
pub use lexer::KEYWORDS;
pub use names::names;
pub use run::{ModelRun, ModelVerdict, Session, ViolatedAxiom};
pub use templates::Coherence;

use crate::execution::{NameMeaning, RelationId, SetId, Vocabulary};
use plan::EvaluationPlan;
pub(crate) use program::CatType;
use program::{CatNodeId, CatOp, CatProgram};
use value::CatValue;

/// Returns the words before the first statement of a text; none if the text has a lexical error,
/// which compilation reports. They can be read before the vocabulary of the model is known.
pub fn head(text: &str) -> Vec<String> {
    let words = lexer::lex(SourceId::FIRST, text).unwrap_or_default();
    let word = |t: lexer::CatToken| {
        if let lexer::CatToken::Name(w) | lexer::CatToken::Text(w) = t { Some(w) } else { None }
    };
    words.into_iter().map_while(|(t, _)| word(t)).collect()
}

/// A compiled model.
#[derive(Clone, Debug)]
pub struct CatModel {
    /// The name of its file, without folders and extension.
    file: String,
    /// The text of its file.
    text: String,
    /// The words before the first statement: an architecture, a name, options.
    head: Vec<String>,
    program: CatProgram,
    plan: EvaluationPlan,
    /// By node: its index among the nodes of its type.
    index_in_type: Vec<u32>,
    /// Places of the nodes in the text.
    spans: HashMap<CatNodeId, Span>,
    /// The nodes that read a name of the vocabulary.
    input_nodes: HashMap<NameMeaning, CatNodeId>,
    /// The names that axioms, flags, and choices depend on.
    live_names: HashSet<NameMeaning>,
    /// The names that the model defines at its end.
    definitions: BTreeMap<String, CatNodeId>,
    /// The relations of `show` statements.
    show_statements: Vec<(String, CatNodeId)>,
    vocabulary: Vocabulary,
    variants: Vec<String>,
    /// True if the model defines the coherence orders itself.
    chooses_coherence: bool,
}

/// Returns the nodes that the checks and choices of a program depend on.
fn live_nodes(program: &CatProgram) -> Vec<CatNodeId> {
    let checks = program.checks.iter().map(|c| plan::root(c.property));
    plan::dependencies(program, checks.chain(program.choices.iter().map(|c| c.from)))
}

/// Returns the name of the vocabulary that a node reads.
fn given_name(program: &CatProgram, node: CatNodeId) -> Option<NameMeaning> {
    match program.nodes[node.index()].op {
        CatOp::GivenSet(id) => Some(NameMeaning::Set(id)),
        CatOp::GivenRelation(id) => Some(NameMeaning::Relation(id)),
        _ => None,
    }
}

/// Checks that no axiom, flag or choice depends on a name that front ends do not provide.
fn check_provided(
    program: &CatProgram,
    missing: &HashMap<CatNodeId, Span>,
    vocabulary: &Vocabulary,
) -> Result<(), Diagnostic> {
    let live = live_nodes(program);
    let unprovided = live.iter().filter_map(|node| Some((node, missing.get(node)?)));
    let Some((node, span)) = unprovided.min_by_key(|(_, span)| (span.source, span.start)) else {
        return Ok(());
    };
    let name = match program.nodes[node.index()].op {
        CatOp::GivenSet(id) => format!("the set `{}`", vocabulary.name_of(NameMeaning::Set(id))),
        CatOp::GivenRelation(id) => {
            format!("the relation `{}`", vocabulary.name_of(NameMeaning::Relation(id)))
        }
        _ => "this name".to_string(),
    };
    let message = format!("{name}, which executions here do not have");
    Err(Diagnostic::at(Stage::Unsupported, *span, message).note("an axiom or a flag depends on it"))
}

/// Returns the name of a file without folders and extension.
fn stem(file: &str) -> &str {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    name.strip_suffix(".cat").unwrap_or(name)
}

impl CatModel {
    /// Compiles a model.
    ///
    /// `name` and `text` are the model's file. `resolver` returns the files that it includes (and
    /// `stdlib.cat`, which is included first if the resolver has it). `vocabulary` contains the
    /// names of the architecture. `variants` lists the conditions (`if "mixed"`) that hold. Errors
    /// have positions in `sources`. Cost: linear in the model after inlining its functions.
    pub fn compile(
        sources: &mut SourceMap,
        name: &str,
        text: &str,
        resolver: Resolver<'_>,
        vocabulary: &Vocabulary,
        variants: &[&str],
    ) -> Result<CatModel, Diagnostic> {
        let source = sources.add(name, text);
        Self::compile_source(sources, source, resolver, vocabulary, variants)
    }
    /// Compiles a model from a text that `sources` contains already.
    pub fn compile_source(
        sources: &mut SourceMap,
        source: SourceId,
        resolver: Resolver<'_>,
        vocabulary: &Vocabulary,
        variants: &[&str],
    ) -> Result<CatModel, Diagnostic> {
        let file = sources.get(source).name.clone();
        let mut text = sources.get(source).text.to_string();
        let count =
            |sources: &SourceMap| (0..).take_while(|i| sources.holds(SourceId::new(*i))).count();
        let before = count(sources);
        let compiler = compile::Compiler::run(sources, source, resolver, vocabulary, variants)?;
        let (mut program, spans, head, chooses_coherence) =
            (compiler.program, compiler.spans, compiler.head, compiler.chooses_coherence);
        let (missing, mut show_statements) = (compiler.missing, compiler.show_statements);
        let mut definitions = BTreeMap::new();
        for (name, value) in compiler.last.iter() {
            if let CatValue::Node(node) = value {
                definitions.entry(name.to_string()).or_insert(*node);
            }
        }
        for included in before..count(sources) {
            text += &sources.get(SourceId::new(included)).text;
        }
        check_provided(&program, &missing, vocabulary)?;
        let live_names =
            live_nodes(&program).into_iter().filter_map(|s| given_name(&program, s)).collect();
        show_statements.retain(|(_, node)| {
            plan::dependencies(&program, [*node]).iter().all(|s| !missing.contains_key(s))
        });
        definitions.retain(|_, node| {
            plan::dependencies(&program, [*node]).iter().all(|s| !missing.contains_key(s))
        });
        let plan = EvaluationPlan::of(&mut program);
        let mut counts = [0u32; 3];
        let mut index_in_type = Vec::with_capacity(program.nodes.len());
        let mut input_nodes = HashMap::new();
        for (i, node) in program.nodes.iter().enumerate() {
            let count = &mut counts[match node.kind {
                CatType::Set => 0,
                CatType::Relation => 1,
                CatType::Value => 2,
            }];
            index_in_type.push(*count);
            *count += 1;
            if let Some(name) = given_name(&program, CatNodeId::new(i)) {
                debug_assert_eq!(node.kind == CatType::Set, matches!(name, NameMeaning::Set(_)));
                input_nodes.insert(name, CatNodeId::new(i));
            }
        }
        Ok(CatModel {
            file: stem(&file).to_string(),
            text,
            head,
            program,
            plan,
            index_in_type,
            spans,
            input_nodes,
            live_names,
            definitions,
            show_statements,
            vocabulary: vocabulary.clone(),
            variants: variants.iter().map(|v| (*v).to_string()).collect(),
            chooses_coherence,
        })
    }
    /// Returns the words before the first statement: an architecture, a name, options such as
    /// `catdep`.
    pub fn head(&self) -> &[String] {
        &self.head
    }
    /// Returns the model's name: the last word before the first statement other than the option
    /// `catdep`, or the name of its file if there is none.
    pub fn name(&self) -> &str {
        self.head.iter().rev().find(|w| *w != "catdep").map_or(&self.file, String::as_str)
    }
    /// True if an axiom, a flag, or a choice depends on a name of the vocabulary.
    pub fn depends_on(&self, name: &str) -> bool {
        self.vocabulary.find(name).is_some_and(|name| self.live_names.contains(&name))
    }
    /// True if the compiled program has a node for a relation of the skeleton, for `rf`, or for
    /// `co`. A front end need not compute other relations.
    pub fn reads_relation(&self, id: RelationId) -> bool {
        self.input_nodes.contains_key(&NameMeaning::Relation(id))
            || id == RelationId::CO && self.reads_relation(RelationId::FR)
    }
    /// True if the compiled program has a node for a set of the skeleton.
    pub fn reads_set(&self, id: SetId) -> bool {
        self.input_nodes.contains_key(&NameMeaning::Set(id))
    }
    /// True if the model defines the coherence orders itself (`with co from …`).
    pub fn chooses_coherence(&self) -> bool {
        self.chooses_coherence
    }
    /// Returns the names of its axioms, in order.
    pub fn axioms(&self) -> impl Iterator<Item = &str> {
        use ast::TestRole;
        self.program.checks.iter().filter(|c| c.role == TestRole::Axiom).map(|c| c.name.as_str())
    }
    /// Returns the type of a name that the model defines at its end; `None` if it defines another
    /// value, or no such name.
    pub(crate) fn type_of_definition(&self, name: &str) -> Option<CatType> {
        Some(self.program.kind(*self.definitions.get(name)?))
    }
    /// Returns the text of its file, followed by those of all files that it includes.
    pub fn text(&self) -> &str {
        &self.text
    }
    /// Returns the vocabulary for which it was compiled.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }
    /// Returns the numbers of nodes and checks, for statistics.
    pub fn size(&self) -> (usize, usize) {
        (self.program.nodes.len(), self.program.checks.len())
    }
}
