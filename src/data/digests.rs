//! Stable term hashes: the same in every run of one model, so that processes agree on the owner of
//! a value without exchanging it.
//!
//! In: terms of the shared table ([`crate::terms`]). Out: 64 bits for each, computed from its node
//! and the hashes of its parts. Recent hashes are in a cache of fixed size, so a term that adds a
//! node to a recent one costs that node, while its bytes ([`crate::portable_terms`]) cost all
//! nodes. Cost: linear in the nodes that are not cached. Invariants: equal terms have equal hashes,
//! independent of the order in which tables create them; different terms may have equal hashes.

use crate::portable;
use crate::portable_terms::{parts, shared_op, without_node};
use crate::signature::Signature;
use crate::terms::{TermId, Terms, kind};
use ahash::AHashMap;
use mu_base::{Diagnostic, Stage};

/// Number of cached terms: a power of two.
const CACHE_SIZE: usize = 1 << 14;

/// Cache of stable term hashes, for one table.
#[derive(Default)]
pub struct Digests {
    /// Direct-mapped cache, indexed by term number; allocated at first use.
    cache: Vec<Option<(TermId, u64)>>,
    /// Hashes of the parts of the requested term.
    found: AHashMap<TermId, u64>,
}

fn mix(hash: u64, word: u64) -> u64 {
    let hash = (hash ^ word).wrapping_mul(0x9fb2_1c65_1e98_df25);
    hash ^ hash >> 32
}

fn place(term: TermId) -> usize {
    mix(0, term.word().into()) as usize & (CACHE_SIZE - 1)
}

impl Digests {
    /// Returns the hash of a term.
    ///
    /// # Errors
    /// It contains operations or variables that the signature does not have.
    pub fn of(
        &mut self,
        signature: &Signature,
        terms: &Terms,
        term: TermId,
    ) -> Result<u64, Diagnostic> {
        self.cache.resize(CACHE_SIZE, None);
        self.found.clear();
        let (mut todo, mut node) = (vec![term], Vec::new());
        // Parts come before the terms that contain them.
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
                self.cache[place(next)] = Some((next, digest));
            }
        }
        self.reference(signature, term)
    }

    /// True if a term has a node without a known hash.
    fn wants(&mut self, term: TermId) -> bool {
        if term.as_immediate().is_some() || self.found.contains_key(&term) {
            return false;
        }
        match self.cache[place(term)] {
            // Another term may replace it in the cache before it is used.
            Some((known, digest)) if known == term => self.found.insert(term, digest).is_some(),
            _ => true,
        }
    }

    /// Returns the hash of a term; if it has a node, that of the node must be known.
    fn reference(&self, signature: &Signature, term: TermId) -> Result<u64, Diagnostic> {
        match term.as_immediate() {
            Some(immediate) => Ok(mix(1, without_node(signature, immediate)?)),
            None => {
                self.found.get(&term).copied().ok_or_else(|| {
                    Diagnostic::internal("the hash of a part of a term is not known")
                })
            }
        }
    }

    /// Returns the hash of a node; those of its parts must be known.
    fn node(&self, signature: &Signature, terms: &Terms, node: &[u32]) -> Result<u64, Diagnostic> {
        let parts = parts(node);
        let (own, mut hash) = (&node[..node.len() - parts.len()], mix(2, parts.len() as u64));
        match *own {
            [kind::OTHER, at] => {
                let bytes = portable::write(signature, &terms.expression(at))?;
                return Ok(bytes
                    .into_iter()
                    .fold(mix(hash, kind::OTHER.into()), |hash, byte| mix(hash, byte.into())));
            }
            [kind::APP, op] => hash = mix(mix(hash, kind::APP.into()), shared_op(signature, op)?),
            _ => hash = own.iter().fold(hash, |hash, word| mix(hash, (*word).into())),
        }
        for word in parts {
            let part = TermId::from_word(*word).ok_or_else(|| {
                Diagnostic::new(Stage::Internal, "a shared term has a part without a number")
            })?;
            hash = mix(hash, self.reference(signature, part)?);
        }
        Ok(hash)
    }
}
