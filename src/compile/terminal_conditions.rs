//! Termination criteria of the user on the parameters of components (`--terminal`).
//!
//! In: the text of a data expression over parameters, under the names that evidence shows. Out:
//! true if it holds in a state; then the components of its parameters count as terminated. A
//! parameter that is not live makes it false, as does a condition that no equation decides. Cost:
//! an evaluation for each tuple of values of its parameters, cached up to a bound.

use super::Compiled;
use ahash::AHashMap;
use mu_base::ids::VarId;
use mu_base::similar::similar_names;
use mu_base::{Diagnostic, SourceId, Stage};
use mu_data::engine::{Code, Engine, Program};
use mu_data::expr::DataSpec;
use mu_data::sort::basic;
use mu_data::typecheck::check_expression_with;
use mu_model::{Model, Slot};

/// Limit on the tuples of values with cached answers; beyond it, the cache is cleared.
const MAX_CACHED: usize = 1 << 15;

/// Conditions, each with the components that it terminates.
pub(super) struct TerminalConditions<'m> {
    model: &'m Compiled,
    all: Vec<(TerminalCondition, Vec<u32>)>,
}

struct TerminalCondition {
    engine: Engine,
    code: Code,
    slots: Vec<Slot>,
    known: AHashMap<Vec<u32>, bool>,
}

impl<'m> TerminalConditions<'m> {
    /// Parses conditions.
    ///
    /// # Errors
    /// A text is not a condition on parameters of the model.
    pub fn new(model: &'m Compiled, texts: &[String]) -> Result<Self, Diagnostic> {
        let all = texts.iter().map(|text| read(model, text)).collect::<Result<_, _>>()?;
        Ok(Self { model, all })
    }

    /// Returns the components for which a condition holds, ascending.
    pub fn terminated_components(&mut self, state: &[u32]) -> Result<Vec<u32>, Diagnostic> {
        let mut out = Vec::new();
        for (condition, components) in &mut self.all {
            if condition.holds(self.model, state)? {
                out.extend_from_slice(components);
            }
        }
        out.sort_unstable();
        out.dedup();
        Ok(out)
    }
}

impl TerminalCondition {
    fn holds(&mut self, model: &Compiled, state: &[u32]) -> Result<bool, Diagnostic> {
        if self.slots.iter().any(|s| !model.is_live(*s, state)) {
            return Ok(false);
        }
        let key: Vec<u32> = self.slots.iter().map(|s| state[*s as usize]).collect();
        if let Some(&known) = self.known.get(&key) {
            return Ok(known);
        }
        let mut env = Vec::with_capacity(key.len());
        for (slot, id) in self.slots.iter().zip(&key) {
            env.push(self.engine.from_normal(&model.value(*slot, *id))?);
        }
        let holds = self.engine.eval(&self.code, &env)?.is_true();
        if self.known.len() >= MAX_CACHED {
            self.known.clear();
        }
        self.known.insert(key, holds);
        Ok(holds)
    }
}

/// True if an operation has this name.
fn is_operation(data: &DataSpec, name: &str) -> bool {
    data.signature.ops().any(|(_, op)| op.name == name)
}

fn read(model: &Compiled, text: &str) -> Result<(TerminalCondition, Vec<u32>), Diagnostic> {
    let refused = |why: String| {
        Diagnostic::new(Stage::Usage, format!("`{text}` is not a termination criterion: {why}"))
    };
    let (mut data, mut scope, mut slots) = (model.data_with_operations(), Vec::new(), Vec::new());
    for (i, slot) in model.slots.iter().enumerate().filter(|(_, s)| !s.control) {
        scope.push(data.signature.fresh_var(slot.name.clone(), model.sort_of[i]));
        slots.push(i as Slot);
    }
    let is_action = |name: &str| model.process.actions.iter().any(|a| a.name == name);
    if let Some((name, _)) = text
        .split_once('(')
        .filter(|(name, _)| is_action(name.trim()) && !is_operation(&data, name.trim()))
    {
        let note = format!(
            "expected the name of an action without arguments, `{}`, or a condition on parameters",
            name.trim()
        );
        return Err(refused("it is an action with arguments".into()).note(note));
    }
    let names = || model.slots.iter().filter(|s| !s.control).map(|s| s.name.as_str());
    let tree = mu_syntax::parse_data(SourceId::FIRST, text)
        .map_err(|e| refused(e.message).note("expected an action or a condition on parameters"))?;
    let typed =
        check_expression_with(&tree, &mut data, &scope, Some(basic::BOOL)).map_err(|e| {
            let similar = similar_names(
                text,
                names().chain(model.process.actions.iter().map(|a| a.name.as_str())),
            );
            let all: Vec<&str> =
                if similar.is_empty() { names().take(20).collect() } else { similar.clone() };
            let note = match (similar.is_empty(), all.is_empty()) {
                (false, _) => format!("did you mean {}?", all.join(", ")),
                (true, true) => "expected an action: the model has no parameters".to_string(),
                (true, false) => {
                    format!("expected an action or a condition on parameters: {}", all.join(", "))
                }
            };
            refused(e.message).note(note)
        })?;
    let mut used = Vec::new();
    typed.free_vars(&mut used);
    let env: Vec<VarId> = scope.iter().copied().filter(|v| used.contains(v)).collect();
    let slots: Vec<Slot> =
        scope.iter().zip(slots).filter(|(v, _)| used.contains(v)).map(|(_, s)| s).collect();
    let mut components: Vec<u32> =
        slots.iter().map(|s| model.slots[*s as usize].component).collect();
    components.sort_unstable();
    components.dedup();
    if components.is_empty() {
        return Err(refused("it contains no parameter".into()));
    }
    let mut engine = Engine::new(Program::compile(&data)?).with_budget(&model.budget());
    let code = engine.code(&typed, &env)?;
    Ok((TerminalCondition { engine, code, slots, known: AHashMap::new() }, components))
}
