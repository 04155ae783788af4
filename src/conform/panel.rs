//! Memory models that judge many histories together.
//!
//! Input: memory models, histories. Output: the verdict of each model on each history, as that of
//! its own judge. `sc`, `tso`, and `pso` judge the core of a history ([`Cores`]) by [`saturation`].
//! If one of these allows it, the built-in models that are weaker allow the history too
//! ([`ModelForm`]); only otherwise are their axioms evaluated on the history. Cost: one core for
//! each history, and one verdict for each different core. The axioms confirm a part of the verdicts
//! on cores (`Confirmations`), and each violation that is reported.

use crate::cores::{self, Cores};
use crate::every_length::order::{Marks, ModelForm, ProcessorOrder};
use crate::judge::{JudgeWorker, MemoryModel, ModelDefinition as Definition};
use crate::saturation;
use mu_axioms::history::History;
use mu_axioms::models::by_name;
use mu_base::{Budget, Diagnostic, SourceMap};
use std::sync::OnceLock;

/// Returns `sc`, `tso`, and `pso`, in the order of [`ProcessorOrder::ALL`].
fn orders() -> &'static [MemoryModel] {
    static ORDERS: OnceLock<Vec<MemoryModel>> = OnceLock::new();
    ORDERS.get_or_init(|| {
        let compile = |order: &ProcessorOrder| {
            let known = by_name(order.name())?;
            let model = known.compile(&mut SourceMap::new()).ok()?;
            let form = Definition::Cat { model, dialect: known.dialect };
            Some(MemoryModel { name: order.name().into(), form })
        };
        ProcessorOrder::ALL.iter().filter_map(compile).collect()
    })
}

/// The relation of a model to an order, for histories of plain accesses and updates with full
/// fences.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OrderRelation {
    /// The model is the order.
    Equal(ProcessorOrder),
    /// The model allows all that the order allows.
    Weaker(ProcessorOrder),
    Unknown,
}

fn relation(model: &MemoryModel) -> OrderRelation {
    if !model.is_builtin() {
        return OrderRelation::Unknown;
    }
    match ModelForm::of(&model.name, true, Marks::default()) {
        ModelForm::Ordered(order) => OrderRelation::Equal(order),
        ModelForm::WeakerThan(order) => OrderRelation::Weaker(order),
        ModelForm::Coherent => OrderRelation::Weaker(ProcessorOrder::Pso),
        // An execution that is sequentially consistent is allowed by each built-in model.
        ModelForm::Unsupported(_) => OrderRelation::Weaker(ProcessorOrder::Sc),
    }
}

/// Verdicts of [`saturation`] that the axioms confirm: the first [`Confirmations::FIRST`], and
/// then one of [`Confirmations::INTERVAL`], of cores with few coherence orders.
#[derive(Default)]
struct Confirmations {
    verdicts: u64,
}

impl Confirmations {
    const FIRST: u64 = 1000;
    const INTERVAL: u64 = 64;
    /// Largest number of stores of a location in a core that is confirmed.
    const STORES: usize = 4;

    /// True if the next verdict, which is on a core, is confirmed.
    fn includes(&mut self, core: &History) -> bool {
        self.verdicts += 1;
        let stores = |location: u32| {
            let operations = core.threads.iter().flatten();
            operations.filter(|o| o.kind.writes() && o.location == location).count()
        };
        (self.verdicts <= Self::FIRST || self.verdicts.is_multiple_of(Self::INTERVAL))
            && (0..core.locations()).all(|l| stores(l) <= Self::STORES)
    }
}

/// Memory models with the working memory of one thread.
pub struct Panel<'m, 'c> {
    workers: Vec<JudgeWorker<'m>>,
    relations: Vec<OrderRelation>,
    orders: Vec<JudgeWorker<'m>>,
    cores: &'c mut Cores,
    confirmations: Confirmations,
}

impl<'m, 'c> Panel<'m, 'c> {
    /// Creates the working memory for one thread. `cores`: the verdicts that are known. `budget`:
    /// its limits end the decision about a history with many executions.
    pub fn new(models: &[&'m MemoryModel], cores: &'c mut Cores, budget: &Budget) -> Panel<'m, 'c> {
        let relations: Vec<OrderRelation> = models.iter().map(|m| relation(m)).collect();
        let used = relations.iter().any(|r| *r != OrderRelation::Unknown);
        Panel {
            workers: models.iter().map(|m| m.worker_within(budget)).collect(),
            orders: if used {
                orders().iter().map(|m| m.worker_within(budget)).collect()
            } else {
                Vec::new()
            },
            relations,
            cores,
            confirmations: Confirmations::default(),
        }
    }

    /// Calls `forbidden` for each model that is `open` and forbids a history. Returns true if the
    /// core of the history shows that each of these models allows it, and all histories with this
    /// core.
    pub fn judge(
        &mut self,
        history: &History,
        open: &dyn Fn(usize) -> bool,
        forbidden: &mut dyn FnMut(usize),
    ) -> Result<bool, Diagnostic> {
        let applies = !self.orders.is_empty() && cores::applies(history);
        let (mut core, mut by_cores) = (None, true);
        // The verdicts on the core so far.
        let mut known = [None; ProcessorOrder::ALL.len()];
        for model in 0..self.workers.len() {
            if !open(model) {
                continue;
            }
            let by_core = match self.relations[model] {
                OrderRelation::Equal(order) | OrderRelation::Weaker(order) if applies => {
                    let core = core.get_or_insert_with(|| Cores::of(history));
                    Some(self.allows_core(core, order, &mut known)?)
                }
                _ => None,
            };
            by_cores &= by_core == Some(true);
            let is_order = matches!(self.relations[model], OrderRelation::Equal(_));
            let allowed = match by_core {
                Some(true) => true,
                Some(false) if is_order => false,
                _ => self.workers[model].allows(history)?,
            };
            if !allowed {
                forbidden(model);
            }
        }
        Ok(by_cores)
    }

    /// True if an order allows a core. What a stronger one allows, it allows.
    fn allows_core(
        &mut self,
        core: &History,
        order: ProcessorOrder,
        known: &mut [Option<bool>; ProcessorOrder::ALL.len()],
    ) -> Result<bool, Diagnostic> {
        let place = order as usize;
        if known[..=place].contains(&Some(true)) {
            return Ok(true);
        }
        if let Some(verdict) = known[place] {
            return Ok(verdict);
        }
        let (worker, confirmations) = (&mut self.orders[place], &mut self.confirmations);
        let verdict = self.cores.verdict(core, order, &mut |h| {
            let Some(verdict) = saturation::allows(h, order) else { return worker.allows(h) };
            if confirmations.includes(h) && worker.allows(h)? != verdict {
                return Err(Diagnostic::internal(format!(
                    "the axioms of `{}` and the saturation of coherence orders differ on {}",
                    order.name(),
                    h.text()
                )));
            }
            Ok(verdict)
        })?;
        known[place] = Some(verdict);
        Ok(verdict)
    }
}
