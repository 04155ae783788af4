//! Litmus tests for x86 on the machine of a memory model.

use super::{Picture, Route, TestError, TestResult, complete};
use crate::pipeline::Session;
use mu_base::{Diagnostic, SourceId};
use mu_frontends::programs::with_command_for_architecture;
use mu_program::memory::MemoryModel;
use mu_program::{herd, litmus};
use mu_report::execution;
use serde_json::json;

/// A machine route.
pub(super) struct MachineRoute {
    /// Its memory model.
    pub memory: &'static dyn MemoryModel,
    /// Capacity of a store buffer, if given.
    pub buffer: Option<u32>,
}

impl Route for MachineRoute {
    fn unit(&self) -> &'static str {
        "states"
    }
    fn answer(
        &self,
        session: &Session,
        source: SourceId,
        text: &str,
    ) -> Result<Result<TestResult, TestError>, Diagnostic> {
        let test =
            litmus::parse(source, text).map_err(|e| with_command_for_architecture(e, text))?;
        let report = herd::run(&test, self.memory, self.buffer, &session.budget)?;
        Ok(Ok(TestResult {
            file: String::new(),
            answer: report.answer,
            stop: report.stop,
            effort: report.states,
            left_out: Vec::new(),
            full_buffer: report.bound_reached,
            unnamed: test.unnamed.clone(),
            more: vec![("bound_reached", json!(report.bound_reached))],
        }))
    }
    fn draw(
        &self,
        session: &Session,
        source: SourceId,
        text: &str,
        picture: Picture,
    ) -> Result<Option<(String, usize)>, Diagnostic> {
        let test =
            litmus::parse(source, text).map_err(|e| with_command_for_architecture(e, text))?;
        let found =
            herd::find_deciding_execution(&test, self.memory, self.buffer, &session.budget)?;
        let Some((execution, outcome)) = found.execution else {
            return complete(found.stop);
        };
        let outcome = test.question.outcome_text(&outcome, &test.variables);
        let title = format!("an execution under {}: {outcome}", self.memory.name().to_uppercase());
        let drawing = match picture {
            Picture::Svg => execution::svg(&test, &execution, &title),
            Picture::Dot => execution::dot(&test, &execution, &title),
            Picture::Json | Picture::Page => execution::json(&test, &execution, &title).to_string(),
        };
        Ok(Some((drawing, execution.events.len())))
    }
}
