//! Symmetries of the product of a machine and a monitor.
//!
//! Input: the candidates of the machine ([`Symmetry`]) and its labels. A candidate that exchanges
//! processors and addresses and keeps values is extended to the monitor: it exchanges guesses, the
//! bits of a cycle's state by address, and operations in progress ([`Exchange`]). The result is a
//! candidate too: the search evaluates each group on all images of its input, so a wrong extension
//! is refuted, not used. Candidates that exchange values are dropped, because a monitor gives each
//! value a role of its own.

use super::coherence::Coherence;
use super::cycle::{self, Cycle, Visit};
use super::effects::LabelReader;
use super::monitor::Guess;
use mu_base::ids::LabelId;
use mu_model::{Model, Slot, Symmetry};

/// The effect of a candidate of the machine on what a monitor knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Exchange {
    /// The candidate of the machine.
    pub candidate: usize,
    /// The image of each processor.
    pub processors: Vec<u32>,
    /// The image of each address.
    addresses: Vec<u32>,
    /// The image of each event of the alphabet.
    events: Vec<Option<u32>>,
    /// The image of each guess, if it is a guess of the product.
    guesses: Vec<Option<u32>>,
    /// True if the guesses are cycles: their states have a part for each address.
    by_address: bool,
}

/// Records the image of a number. Returns false if it has another image.
fn record(images: &mut [Option<u32>], of: u32, image: u32) -> bool {
    *images[of as usize].get_or_insert(image) == image
}

impl Exchange {
    /// Reads a candidate from the images of labels. `None` if it exchanges values, or is no
    /// exchange of processors and addresses.
    pub fn of(
        machine: &dyn Model,
        reader: &LabelReader<'_>,
        guesses: &[Guess],
        candidate: usize,
    ) -> Option<Exchange> {
        let alphabet = reader.alphabet();
        let mut processors = vec![None; alphabet.names.processors.len()];
        let mut addresses = vec![None; alphabet.names.addresses.len()];
        let mut events = vec![None; alphabet.events.len()];
        let mut worker = machine.worker();
        let word = |label: LabelId| alphabet.of_label.get(&machine.label_text(label));
        for label in (0..machine.label_count()).map(LabelId::new) {
            let Some(of) = word(label) else { continue };
            let image = worker.image_label(candidate, label).ok().flatten()?;
            let (of, to) = (&alphabet.words[*of as usize], &alphabet.words[*word(image)? as usize]);
            let (&[of], &[to]) = (&of[..], &to[..]) else { return None };
            let (e, f) = (&alphabet.events[of as usize], &alphabet.events[to as usize]);
            let same = (e.operation, e.phase, e.value, e.written)
                == (f.operation, f.phase, f.value, f.written);
            let consistent = same
                && record(&mut events, of, to)
                && record(&mut processors, e.processor, f.processor)
                && match (e.address, f.address) {
                    (Some(a), Some(b)) => record(&mut addresses, a, b),
                    (a, b) => a == b,
                };
            if !consistent {
                return None;
            }
        }
        let mut out = Exchange {
            candidate,
            processors: processors.into_iter().collect::<Option<_>>()?,
            addresses: addresses.into_iter().collect::<Option<_>>()?,
            events,
            guesses: Vec::new(),
            by_address: false,
        };
        out.by_address = guesses.iter().all(|g| matches!(g, Guess::Cycle(_)));
        if !out.by_address && guesses.iter().any(|g| matches!(g, Guess::Cycle(_))) {
            return None;
        }
        let place = |g: Guess| guesses.iter().position(|h| *h == g).map(mu_base::narrow::index);
        out.guesses = guesses.iter().map(|g| place(out.guess(g))).collect();
        Some(out)
    }

    fn guess(&self, of: &Guess) -> Guess {
        match of {
            Guess::Cycle(c) => {
                let image = |v: &Visit| Visit {
                    kind: v.kind,
                    processor: self.processors[v.processor as usize],
                    address: self.addresses[v.address as usize],
                };
                let mut visits: Vec<Visit> = c.visits.iter().map(image).collect();
                // The first visit has the least address.
                let first = (0..visits.len()).min_by_key(|i| visits[*i].address).unwrap_or(0);
                visits.rotate_left(first);
                Guess::Cycle(Cycle { visits, order: c.order })
            }
            Guess::Coherence(c) => Guess::Coherence(Coherence {
                kind: c.kind,
                processor: if c.kind.is_shared() {
                    c.processor
                } else {
                    self.processors[c.processor as usize]
                },
                address: self.addresses[c.address as usize],
            }),
        }
    }

    /// Returns the image of the number of a guess.
    pub fn guess_image(&self, guess: u32) -> Option<u32> {
        *self.guesses.get(guess as usize)?
    }

    /// Returns the image of a monitor's state.
    pub fn monitor_image(&self, state: u32) -> u32 {
        if self.by_address { cycle::permute_addresses(state, &self.addresses) } else { state }
    }

    /// Returns the image of an event.
    pub fn event_image(&self, event: u32) -> Option<u32> {
        *self.events.get(event as usize)?
    }

    /// Extends the candidate to a product: `own` are its slots for the choice, the guess, and the
    /// monitor, then one for each processor if operations have beginnings.
    pub fn extend_to_product(&self, of: &Symmetry, own: &[Slot]) -> Symmetry {
        let mut slots = of.slots.clone();
        slots.extend_from_slice(&own[..own.len().min(3)]);
        if own.len() > 3 {
            slots.extend(self.processors.iter().map(|p| own[3 + *p as usize]));
        }
        Symmetry { name: of.name.clone(), slots, points: of.points.clone() }
    }
}
