//! Hashes of terms that every run of one model finds alike: by them processes agree whose a value
//! is without exchanging it.
//!
//! In: terms of the shared table ([`crate::terms`]). Out: 64 bits for each, of its node and of the
//! hashes of its parts. Those found last are remembered in a table of fixed size, so that a term
//! that adds a node to one met lately costs that node, while its bytes ([`crate::portable_terms`])
//! cost all of them. Cost: linear in the nodes that are not remembered. Invariants: equal terms
//! have equal hashes, in whatever order their tables met them; terms that differ may have equal
//! ones.

use crate::portable;
use crate::portable_terms::{parts, shared_op, without_node};
use crate::signature::Signature;
use crate::terms::{TermId, Terms, kind};
use ahash::AHashMap;
use mu_base::{Diagnostic, Stage};

/// Terms that are remembered: a power of two.
const KEPT: usize = 1 << 14;

/// See the module's head. Of one table.
#[derive(Default)]
pub struct Digests {
    /// Each in the place that its number gives it; made when it is first needed.
    kept: Vec<Option<(TermId, u64)>>,
    /// Those that the term needs that is asked for.
    found: AHashMap<TermId, u64>,
}

fn mixed(hash: u64, word: u64) -> u64 {
    let hash = (hash ^ word).wrapping_mul(0x9fb2_1c65_1e98_df25);
    hash ^ hash >> 32
}

fn place(term: TermId) -> usize {
    mixed(0, term.word().into()) as usize & (KEPT - 1)
}

impl Digests {
    /// The hash of a term.
    ///
    /// # Errors
    /// It speaks of operations or variables that the signature does not have.
    pub fn of(
        &mut self,
        signature: &Signature,
        terms: &Terms,
        term: TermId,
    ) -> Result<u64, Diagnostic> {
        self.kept.resize(KEPT, None);
        self.found.clear();
        let (mut todo, mut node) = (vec![term], Vec::new());
        // Parts before what they are parts of.
        while let Some(&next) = todo.last() {
            if !self.wants(next) {
                todo.pop();
                continue;
            }
            terms.read(next, &mut node);
            let before = todo.len();
            todo.extend(
                parts(&node)
                    .iter()
                    .filter_map(|word| TermId::from_word(*word))
                    .filter(|part| self.wants(*part)),
            );
            if todo.len() == before {
                let digest = self.node(signature, terms, &node)?;
                self.found.insert(next, digest);
                self.kept[place(next)] = Some((next, digest));
            }
        }
        self.reference(signature, term)
    }

    /// Whether a term has a node whose hash is still to be found.
    fn wants(&mut self, term: TermId) -> bool {
        if term.as_immediate().is_some() || self.found.contains_key(&term) {
            return false;
        }
        match self.kept[place(term)] {
            // Another term may take its place before it is used.
            Some((known, digest)) if known == term => self.found.insert(term, digest).is_some(),
            _ => true,
        }
    }

    /// The hash of a term whose node, if it has one, has its.
    fn reference(&self, signature: &Signature, term: TermId) -> Result<u64, Diagnostic> {
        match term.as_immediate() {
            Some(immediate) => Ok(mixed(1, without_node(signature, immediate)?)),
            None => {
                self.found.get(&term).copied().ok_or_else(|| {
                    Diagnostic::internal("the hash of a part of a term is not known")
                })
            }
        }
    }

    /// The hash of a node whose parts have theirs.
    fn node(&self, signature: &Signature, terms: &Terms, node: &[u32]) -> Result<u64, Diagnostic> {
        let parts = parts(node);
        let (own, mut hash) = (&node[..node.len() - parts.len()], mixed(2, parts.len() as u64));
        match *own {
            [kind::OTHER, at] => {
                let bytes = portable::write(signature, &terms.expression(at))?;
                return Ok(bytes
                    .into_iter()
                    .fold(mixed(hash, kind::OTHER.into()), |hash, byte| mixed(hash, byte.into())));
            }
            [kind::APP, op] => {
                hash = mixed(mixed(hash, kind::APP.into()), shared_op(signature, op)?)
            }
            _ => hash = own.iter().fold(hash, |hash, word| mixed(hash, (*word).into())),
        }
        for word in parts {
            let part = TermId::from_word(*word).ok_or_else(|| {
                Diagnostic::new(Stage::Internal, "a shared term has a part without a number")
            })?;
            hash = mixed(hash, self.reference(signature, part)?);
        }
        Ok(hash)
    }
}
