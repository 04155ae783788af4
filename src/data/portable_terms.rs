//! Portable encoding of terms of the shared table: bytes that are the same in every run of one
//! model, for values sent between processes.
//!
//! In: a number of [`crate::terms`]. Out: the nodes below it, children first, each once, then the
//! term itself. Decoding enters it into another table directly, without values or expressions; only
//! terms that the table stores as expressions use [`crate::portable`]. Both sides must have the
//! signature of one [`crate::portable::encoding_fingerprint`].
//!
//! ```text
//! term   = count  node*  reference            integers are LEB128
//! node   = kind  field*                       fields of crate::terms; references replace numbers
//! reference = payload * 8 + tag               an earlier node, or a term without a node
//! ```
//!
//! Cost: linear in the distinct nodes: a lock of the table and some bytes for each. Invariants:
//! equal terms have equal bytes, independent of the order in which tables create them; malformed
//! bytes are rejected, never a panic.

use crate::portable;
use crate::signature::Signature;
use crate::terms::{Immediate, TermId, Terms, kind};
use ahash::AHashMap;
use mu_base::ids::OpId;
use mu_base::varint::{put, take};
use mu_base::{Diagnostic, Stage, narrow};

/// Tags of references.
mod tag {
    pub const NODE: u64 = 0;
    pub const BOOL: u64 = 1;
    pub const INT: u64 = 2;
    pub const CON: u64 = 3;
    pub const SYM: u64 = 4;
    pub const NIL: u64 = 5;
}

/// Returns the part of a node that consists of references.
pub(crate) fn parts(node: &[u32]) -> &[u32] {
    match node[0] {
        kind::INT | kind::OTHER => &[],
        kind::CONS => &node[1..],
        _ => &node[2..],
    }
}

fn zigzag(n: i64) -> u64 {
    (n << 1 ^ n >> 63) as u64
}

fn zagzig(n: u64) -> i64 {
    (n >> 1) as i64 ^ -((n & 1) as i64)
}

fn function_value_error() -> Diagnostic {
    Diagnostic::new(
        Stage::Unsupported,
        "a function value created during the run cannot be sent to another process",
    )
}

/// Returns the number of an operation, if the other side has it as well.
pub(crate) fn shared_op(signature: &Signature, op: u32) -> Result<u64, Diagnostic> {
    if (op as usize) < signature.op_count() {
        Ok(u64::from(op))
    } else {
        Err(function_value_error())
    }
}

/// Returns the reference to a term without a node.
pub(crate) fn without_node(signature: &Signature, term: Immediate) -> Result<u64, Diagnostic> {
    let (payload, tag) = match term {
        Immediate::Bool(b) => (u64::from(b), tag::BOOL),
        Immediate::Int(n) => (zigzag(n), tag::INT),
        Immediate::Con(op) => (shared_op(signature, op)?, tag::CON),
        Immediate::Sym(op) => (shared_op(signature, op)?, tag::SYM),
        Immediate::Nil(sort) => (sort.into(), tag::NIL),
    };
    Ok(payload << 3 | tag)
}

/// Encoder of terms of one table.
struct PortableWriter<'a> {
    signature: &'a Signature,
    terms: &'a Terms,
    /// Numbers in the encoding, by node of the table.
    numbers: AHashMap<TermId, u64>,
    out: Vec<u8>,
}

impl PortableWriter<'_> {
    fn reference(&self, term: TermId) -> Result<u64, Diagnostic> {
        match term.as_immediate() {
            None => Ok(self.numbers[&term] << 3 | tag::NODE),
            Some(immediate) => without_node(self.signature, immediate),
        }
    }

    /// Writes a node; its parts are written already.
    fn node(&mut self, node: &[u32]) -> Result<(), Diagnostic> {
        self.out.push(narrow::byte(node[0] as usize));
        match *node {
            [kind::INT, low, high] => {
                put(&mut self.out, zigzag((u64::from(high) << 32 | u64::from(low)) as i64));
                return Ok(());
            }
            [kind::OTHER, place] => {
                let bytes = portable::write(self.signature, &self.terms.expression(place))?;
                put(&mut self.out, bytes.len() as u64);
                self.out.extend(bytes);
                return Ok(());
            }
            [kind::CONS, ..] => {}
            [kind::APP, op, ..] => {
                put(&mut self.out, shared_op(self.signature, op)?);
                put(&mut self.out, node.len() as u64 - 2);
            }
            [_, sort, ..] => {
                put(&mut self.out, sort.into());
                put(&mut self.out, node.len() as u64 - 2);
            }
            _ => return Err(Diagnostic::new(Stage::Internal, "a shared term is of no known kind")),
        }
        for part in parts(node) {
            let part = TermId::from_word(*part).ok_or_else(|| {
                Diagnostic::new(Stage::Internal, "a shared term has a part without a number")
            })?;
            let reference = self.reference(part)?;
            put(&mut self.out, reference);
        }
        Ok(())
    }
}

/// Encodes a term of a table.
///
/// # Errors
/// It contains operations or variables that the signature does not have.
pub fn write(signature: &Signature, terms: &Terms, term: TermId) -> Result<Vec<u8>, Diagnostic> {
    let mut writer = PortableWriter { signature, terms, numbers: AHashMap::new(), out: Vec::new() };
    let mut node = Vec::new();
    // Parts before the terms that contain them; a node is visited again after its parts are
    // written.
    let mut todo = vec![(term, false)];
    while let Some((term, ready)) = todo.pop() {
        if term.as_immediate().is_some() || writer.numbers.contains_key(&term) {
            continue;
        }
        terms.read(term, &mut node);
        let before = todo.len();
        if !ready {
            todo.push((term, true));
            let new = |t: &TermId| t.as_immediate().is_none() && !writer.numbers.contains_key(t);
            todo.extend(
                parts(&node)
                    .iter()
                    .rev()
                    .filter_map(|w| TermId::from_word(*w))
                    .filter(new)
                    .map(|t| (t, false)),
            );
            if todo.len() > before + 1 {
                continue;
            }
            todo.pop();
        }
        writer.node(&node)?;
        writer.numbers.insert(term, writer.numbers.len() as u64);
    }
    let mut all = Vec::with_capacity(writer.out.len() + 4);
    put(&mut all, writer.numbers.len() as u64);
    let root = writer.reference(term)?;
    all.append(&mut writer.out);
    put(&mut all, root);
    Ok(all)
}

/// Decodes a term into a table.
///
/// # Errors
/// The bytes encode no term.
pub fn read(signature: &Signature, terms: &Terms, bytes: &[u8]) -> Result<TermId, Diagnostic> {
    PortableReader { signature, terms, nodes: Vec::new() }.term(bytes).ok_or_else(|| {
        Diagnostic::new(Stage::File, "these bytes do not encode a value of this model")
    })
}

/// Decoder into one table.
struct PortableReader<'a> {
    signature: &'a Signature,
    terms: &'a Terms,
    nodes: Vec<TermId>,
}

impl PortableReader<'_> {
    fn term(&mut self, mut bytes: &[u8]) -> Option<TermId> {
        let bytes = &mut bytes;
        let count = take(bytes)?;
        let mut words = Vec::new();
        for _ in 0..count {
            let term = self.node(bytes, &mut words)?;
            self.nodes.push(term);
        }
        let root = self.reference(bytes)?;
        bytes.is_empty().then_some(root)
    }

    fn op(&self, number: u64) -> Option<OpId> {
        usize::try_from(number).ok().filter(|n| *n < self.signature.op_count()).map(OpId::new)
    }

    fn sort(&self, number: u64) -> Option<u32> {
        u32::try_from(number).ok().filter(|n| (*n as usize) < self.signature.sorts.len())
    }

    fn reference(&self, bytes: &mut &[u8]) -> Option<TermId> {
        let word = take(bytes)?;
        let payload = word >> 3;
        TermId::immediate(match word & 7 {
            tag::NODE => return self.nodes.get(usize::try_from(payload).ok()?).copied(),
            tag::BOOL if payload < 2 => Immediate::Bool(payload == 1),
            tag::INT => Immediate::Int(zagzig(payload)),
            tag::CON => Immediate::Con(self.op(payload)?.number()),
            tag::SYM => Immediate::Sym(self.op(payload)?.number()),
            tag::NIL => Immediate::Nil(self.sort(payload)?),
            _ => return None,
        })
    }

    /// True if an operation takes this many arguments, one application after the other.
    fn takes(&self, op: OpId, mut arguments: usize) -> bool {
        let mut sort = self.signature.op(op).sort;
        while arguments > 0 {
            let (domain, range) = self.signature.domain_range(sort);
            if domain.is_empty() || domain.len() > arguments {
                return false;
            }
            (arguments, sort) = (arguments - domain.len(), range);
        }
        true
    }

    fn node(&self, bytes: &mut &[u8], words: &mut Vec<u32>) -> Option<TermId> {
        let (&what, rest) = bytes.split_first()?;
        *bytes = rest;
        let what = u32::from(what);
        words.clear();
        words.push(what);
        let parts = match what {
            kind::INT => {
                let n = zagzig(take(bytes)?);
                words.extend([narrow::low(n as u64), narrow::high(n as u64)]);
                return TermId::immediate(Immediate::Int(n))
                    .is_none()
                    .then(|| self.terms.intern(words));
            }
            kind::OTHER => {
                let length = usize::try_from(take(bytes)?).ok()?;
                let (own, rest) = bytes.split_at_checked(length)?;
                *bytes = rest;
                let e = portable::read(self.signature, own).ok()?;
                return Some(self.terms.other(self.signature, e));
            }
            kind::CONS => 2,
            kind::APP => {
                let op = self.op(take(bytes)?)?;
                words.push(op.number());
                let parts = usize::try_from(take(bytes)?).ok()?;
                if parts == 0 || !self.takes(op, parts) {
                    return None;
                }
                parts
            }
            kind::SET | kind::BAG | kind::TABLE => {
                words.push(self.sort(take(bytes)?)?);
                let parts = usize::try_from(take(bytes)?).ok()?;
                let is_valid = match what {
                    kind::SET => true,
                    kind::BAG => parts % 2 == 0,
                    _ => parts % 2 == 1,
                };
                if !is_valid {
                    return None;
                }
                parts
            }
            _ => return None,
        };
        // Each part takes at least one byte.
        if parts > bytes.len() {
            return None;
        }
        for _ in 0..parts {
            words.push(self.reference(bytes)?.word());
        }
        Some(self.terms.intern(words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digests::Digests;
    use crate::engine::{Engine, Program};
    use crate::expr::{DataSpec, Expr};
    use mu_base::SourceId;
    use mu_base::random::Random;
    use std::collections::{HashMap, HashSet};
    use std::sync::Arc;

    const DATA: &str = "sort T = struct leaf | node(l: T, n: Int, r: T); map f: Nat -> Nat; g: Nat -> Nat -> Nat; eqn f = lambda n: Nat. 3;";
    const VALUES: [&str; 15] = [
        "true",
        "-3",
        "134217728",
        "-9000000000000000000",
        "-1234567890123456789012345678901234567890",
        "1 / 3",
        "leaf",
        "node(node(leaf, 3, leaf), -4, node(leaf, 3, leaf))",
        "[[1, 2], [], [2, 2]]",
        "{3, 1, 2}",
        "{1: 4, 7: 2}",
        "{n: Nat | n < 3}",
        "lambda n: Nat. n + 1",
        "f[2 -> 5]",
        "g(2)",
    ];

    struct Values {
        program: Arc<Program>,
        normal: Vec<Expr>,
    }

    fn values() -> Values {
        let tree = mu_syntax::parse_specification(SourceId::FIRST, &format!("{DATA}\ninit delta;"))
            .unwrap();
        let mut data: DataSpec = crate::typecheck::check_data_specification(&tree).unwrap().0;
        let checked: Vec<Expr> = VALUES
            .iter()
            .map(|t| {
                crate::typecheck::check_expression(
                    &mu_syntax::parse_data(SourceId::FIRST, t).unwrap(),
                    &mut data,
                    None,
                )
                .unwrap()
            })
            .collect();
        let program = Program::compile(&data).unwrap();
        let mut engine = Engine::new(program.clone());
        let normal = checked
            .iter()
            .map(|e| engine.from_expr(e).map(|v| engine.to_expr_at(&v, e.sort)).unwrap())
            .collect();
        Values { program, normal }
    }

    impl Values {
        /// Returns a table that receives these values in this order, and their numbers there.
        fn table(&self, order: impl Iterator<Item = usize>) -> (Arc<Terms>, Vec<TermId>) {
            let terms = Arc::new(Terms::default());
            let mut engine = Engine::new(self.program.clone()).with_shared_terms(&terms);
            let mut numbers =
                vec![TermId::immediate(Immediate::Bool(false)).unwrap(); self.normal.len()];
            for i in order {
                let value = engine.from_normal(&self.normal[i]).unwrap();
                numbers[i] = engine.term_at(&value, self.normal[i].sort);
            }
            (terms, numbers)
        }
        fn write(&self, (terms, numbers): &(Arc<Terms>, Vec<TermId>), i: usize) -> Vec<u8> {
            write(self.program.signature(), terms, numbers[i]).unwrap()
        }
    }

    #[test]
    fn terms_are_equal_in_another_table() {
        let values = values();
        let count = values.normal.len();
        let (one, other) = (values.table(0..count), values.table((0..count).rev()));
        let empty = Arc::new(Terms::default());
        let mut engine = Engine::new(values.program.clone()).with_shared_terms(&empty);
        for (i, text) in VALUES.iter().enumerate() {
            let bytes = values.write(&one, i);
            assert_eq!(bytes, values.write(&other, i), "{text}");
            assert_eq!(
                read(values.program.signature(), &other.0, &bytes).unwrap(),
                other.1[i],
                "{text}"
            );
            let term = read(values.program.signature(), &empty, &bytes).unwrap();
            let value = engine.of_term(term).unwrap();
            let normal = engine.from_normal(&values.normal[i]).unwrap();
            let normal = engine.normal_functions(&normal, values.normal[i].sort);
            let sort = values.normal[i].sort;
            assert_eq!(engine.to_expr_at(&value, sort), engine.to_expr_at(&normal, sort), "{text}");
        }
    }

    #[test]
    fn digests_depend_on_the_value_only() {
        let values = values();
        let count = values.normal.len();
        let tables = [values.table(0..count), values.table((0..count).rev())];
        let found = [(); 2].map(|()| Digests::default()).into_iter().zip(&tables).map(
            |(mut digests, (terms, numbers))| {
                numbers
                    .iter()
                    .map(|n| digests.of(values.program.signature(), terms, *n).unwrap())
                    .collect::<Vec<_>>()
            },
        );
        let found: Vec<Vec<u64>> = found.collect();
        assert_eq!(found[0], found[1]);
        let distinct: HashSet<u64> = found[0].iter().copied().collect();
        assert_eq!(distinct.len(), count);
        // The contents of the cache make no difference: a long list grows at its front, with other
        // lists in between.
        let (signature, terms) = (values.program.signature(), &tables[0].0);
        let (mut random, mut digests) = (Random::new(9), Digests::default());
        let nil = TermId::immediate(Immediate::Nil(0)).unwrap();
        let (mut lists, mut all) = (vec![nil; 40], HashMap::new());
        for step in 0..60_000 {
            let at = random.below(lists.len());
            let head = TermId::immediate(Immediate::Int(random.below(9) as i64)).unwrap();
            lists[at] = terms.intern(&[kind::CONS, head.word(), lists[at].word()]);
            let digest = digests.of(signature, terms, lists[at]).unwrap();
            assert_eq!(
                *all.entry(digest).or_insert(lists[at]),
                lists[at],
                "two lists have one hash"
            );
            if step % 1000 == 0 {
                assert_eq!(
                    Digests::default().of(signature, terms, lists[at]).unwrap(),
                    digest,
                    "step {step}"
                );
            }
        }
    }

    #[test]
    fn shared_parts_are_written_once() {
        let program = values().program;
        let terms = Terms::default();
        let mut list = TermId::immediate(Immediate::Nil(0)).unwrap();
        let mut sizes = Vec::new();
        for n in 0..40 {
            // A tree that doubles its size with each node.
            list = terms.intern(&[kind::CONS, list.word(), list.word()]);
            Digests::default().of(program.signature(), &terms, list).unwrap();
            if n % 13 == 0 {
                sizes.push(write(program.signature(), &terms, list).unwrap().len());
            }
        }
        assert_eq!(sizes.len(), 4);
        assert!(sizes[3] < 40 * 6, "{sizes:?}");
    }

    #[test]
    fn damaged_bytes_are_rejected_or_another_term() {
        let values = values();
        let table = values.table(0..values.normal.len());
        let mut random = Random::new(5);
        let mut function_value_error = 0;
        for _ in 0..4000 {
            let mut bytes = values.write(&table, random.below(values.normal.len()));
            match random.below(3) {
                0 => bytes.truncate(random.below(bytes.len())),
                1 => bytes[0] = random.next_u64() as u8,
                _ => {
                    let at = random.below(bytes.len());
                    bytes[at] ^= 1 << random.below(8);
                }
            }
            function_value_error +=
                usize::from(read(values.program.signature(), &table.0, &bytes).is_err());
        }
        assert!(function_value_error > 1000, "{function_value_error} function_value_error");
    }
}
