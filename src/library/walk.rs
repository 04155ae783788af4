//! Step-by-step simulation: enabled steps, their changes, forward and backward.

use super::{Error, Model};
use mu_base::narrow;
use mu_report::printed_evidence;

/// An enabled step.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Enabled {
    /// Its label.
    pub action: String,
    /// Changed parameters, with their new values.
    pub changed: Vec<(String, String)>,
}

/// A walk through a model.
pub struct Walk<'m> {
    model: &'m Model,
    walk: mu_explore::walk::Walk<'m>,
}

impl<'m> Walk<'m> {
    pub(super) fn start(model: &'m Model, seed: u64) -> Result<Self, Error> {
        let walk = mu_explore::walk::Walk::new(&*model.loaded.model, seed)
            .map_err(|d| Error::new(d, &model.sources))?;
        Ok(Self { model, walk })
    }

    /// Returns the current state: parameters with their values; `None` for parameters without
    /// meaning here.
    pub fn state(&self) -> Vec<(String, Option<String>)> {
        let model = &*self.model.loaded.model;
        model
            .slots()
            .iter()
            .map(|s| s.name.clone())
            .zip(printed_evidence::values(model, self.walk.state()))
            .collect()
    }

    /// Returns the enabled steps of the current state.
    pub fn enabled_steps(&self) -> Vec<Enabled> {
        let (model, here) = (&*self.model.loaded.model, self.walk.state());
        let changed = |after: &[u32]| {
            let slots =
                model.slots().iter().enumerate().filter(|(i, _)| {
                    here[*i] != after[*i] && model.is_live(narrow::index(*i), after)
                });
            slots
                .map(|(i, s)| (s.name.clone(), model.value_text(narrow::index(i), after[i])))
                .collect()
        };
        self.walk
            .moves()
            .iter()
            .map(|m| Enabled { action: model.label_text(m.label), changed: changed(&m.state) })
            .collect()
    }

    /// Returns the labels of the path so far.
    pub fn labels_taken(&self) -> Vec<String> {
        self.walk.path()[..self.walk.position()]
            .iter()
            .map(|m| self.model.loaded.model.label_text(m.label))
            .collect()
    }

    /// Takes a step by its index in [`Walk::enabled_steps`]. Returns false if there is no such
    /// step.
    ///
    /// # Errors
    /// A value cannot be evaluated.
    pub fn take(&mut self, index: usize) -> Result<bool, Error> {
        self.walk.take(index).map_err(|d| Error::new(d, &self.model.sources))
    }

    /// Takes a random step, uniformly distributed. Returns false if there is none.
    ///
    /// # Errors
    /// A value cannot be evaluated.
    pub fn random(&mut self) -> Result<bool, Error> {
        self.walk.random().map_err(|d| Error::new(d, &self.model.sources))
    }

    /// Undoes the last step. Returns false if there is none.
    ///
    /// # Errors
    /// A value cannot be evaluated.
    pub fn back(&mut self) -> Result<bool, Error> {
        let Some(before) = self.walk.position().checked_sub(1) else { return Ok(false) };
        self.walk.go(before).map_err(|d| Error::new(d, &self.model.sources))?;
        Ok(true)
    }
}
