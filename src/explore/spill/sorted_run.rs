//! Sorted runs, as in an external merge sort: sets of hashes in files, for searches that exceed
//! memory.
//!
//! A sorted run is a strictly ascending sequence of hashes, divided into pages. A page uses the
//! code of Elias (1974) and Fano (1971): of each hash, less the first one of the page, the low bits
//! are stored in an array, the high bits as positions of ones in a bit vector. With `n` hashes over
//! a range of `u` that is `2 + log2(u/n)` bits each. Hashes are as wide as packed keys: with `n =
//! 2^30`, two bytes for keys of 44 bits, and less than five for keys of 63 bits. The first hash and
//! the position of each page are stored in memory: 32 bytes for 4,096 hashes.
//!
//! Files have no name (`tempfile`), so nothing remains after the process ends. Each page has a
//! checksum; a mismatch ends the search with an error. Cost of [`SortedRun::mark`]: it reads the
//! pages from the first to the last that can contain one of the hashes, up to 1 MiB at once, and
//! counts the ones in their bit vectors. Low bits are compared only if the high bits agree.
//!
//! Invariants: hashes ascend strictly, also across pages; the offset of a page is the sum of the
//! sizes of the pages before it.

use mu_base::narrow;
use std::fs::File;
use std::io::{BufWriter, Error, ErrorKind, Result, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Maximum number of bytes read at once, unless a page is larger.
const READ: usize = 1 << 20;

/// A page of a sorted run.
#[derive(Clone, Copy, Debug)]
struct Page {
    /// Its first hash.
    first: u64,
    /// Its last hash, less the first.
    span: u64,
    /// Its position in the file.
    offset: u64,
    count: u32,
    checksum: u32,
}

impl Page {
    /// Returns the number of low bits of each hash.
    fn low_bits(&self) -> u32 {
        (self.span / u64::from(self.count.max(1))).max(1).ilog2()
    }
    /// Returns the number of words of all low bits.
    fn low_words(&self) -> usize {
        (u64::from(self.count) * u64::from(self.low_bits())).div_ceil(64) as usize
    }
    /// Returns the number of words of the page.
    fn word_count(&self) -> usize {
        // The high bits: a one for each hash, a zero for each value up to that of the span, and a
        // zero that ends the last run of ones.
        self.low_words()
            + ((self.span >> self.low_bits()) + u64::from(self.count) + 1).div_ceil(64) as usize
    }
}

/// A sorted run; see the module header.
pub(super) struct SortedRun {
    file: File,
    pages: Vec<Page>,
    count: u64,
}

/// Writer of a sorted run.
pub(super) struct RunWriter {
    file: BufWriter<File>,
    pages: Vec<Page>,
    /// Hashes of the page that is not written yet.
    page_hashes: Vec<u64>,
    /// Words of a page while it is written.
    scratch: Vec<u64>,
    /// Position of the next page in the file.
    offset: u64,
    count: u64,
    /// Limit on the hashes of a page; a full page is written.
    max_page_hashes: usize,
}

fn put_bits(words: &mut [u64], at: usize, width: u32, value: u64) {
    if width > 0 {
        let (word, shift) = (at / 64, at % 64);
        words[word] |= value << shift;
        if shift + width as usize > 64 {
            words[word + 1] |= value >> (64 - shift);
        }
    }
}

#[inline]
fn bits(words: &[u64], at: usize, width: u32) -> u64 {
    if width == 0 {
        return 0;
    }
    let (word, shift) = (at / 64, at % 64);
    let low = words[word] >> shift;
    let high = if shift + width as usize > 64 { words[word + 1] << (64 - shift) } else { 0 };
    (low | high) & ((1 << width) - 1)
}

impl RunWriter {
    /// Creates a run in an unnamed file of this folder.
    pub fn new(folder: &Path, max_page_hashes: usize) -> Result<Self> {
        let file = BufWriter::with_capacity(READ, tempfile::tempfile_in(folder)?);
        Ok(Self {
            file,
            pages: Vec::new(),
            page_hashes: Vec::with_capacity(max_page_hashes),
            scratch: Vec::new(),
            offset: 0,
            count: 0,
            max_page_hashes,
        })
    }
    /// Adds ascending hashes, all above the previous ones.
    pub fn extend(&mut self, hashes: &[u64]) -> Result<()> {
        hashes.iter().try_for_each(|&hash| self.push(hash))
    }
    /// Adds a hash above all previous ones; if it is not, writing its page fails.
    pub fn push(&mut self, hash: u64) -> Result<()> {
        self.page_hashes.push(hash);
        if self.page_hashes.len() == self.max_page_hashes { self.write_page() } else { Ok(()) }
    }
    /// Writes the hashes of the current page, if there are any.
    fn write_page(&mut self) -> Result<()> {
        let (Some(&first), Some(&last)) = (self.page_hashes.first(), self.page_hashes.last())
        else {
            return Ok(());
        };
        let before = self.pages.last().is_none_or(|p| p.first + p.span < first);
        if !before || !self.page_hashes.is_sorted_by(|a, b| a < b) {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                "the hashes of a run are not ascending",
            ));
        }
        let mut page = Page {
            first,
            span: last - first,
            offset: self.offset,
            count: narrow::index(self.page_hashes.len()),
            checksum: 0,
        };
        let (low, high_from) = (page.low_bits(), page.low_words());
        self.scratch.clear();
        self.scratch.resize(page.word_count(), 0);
        for (i, hash) in self.page_hashes.iter().enumerate() {
            let value = hash - first;
            put_bits(&mut self.scratch, i * low as usize, low, value & ((1 << low) - 1));
            let one = (value >> low) as usize + i;
            self.scratch[high_from + one / 64] |= 1 << (one % 64);
        }
        let mut checksum = crc32fast::Hasher::new();
        for word in &self.scratch {
            let bytes = word.to_le_bytes();
            checksum.update(&bytes);
            self.file.write_all(&bytes)?;
        }
        page.checksum = checksum.finalize();
        self.offset += self.scratch.len() as u64 * 8;
        self.count += self.page_hashes.len() as u64;
        self.pages.push(page);
        self.page_hashes.clear();
        Ok(())
    }
    /// Completes the run.
    pub fn finish(mut self) -> Result<SortedRun> {
        self.write_page()?;
        self.pages.shrink_to_fit();
        let file = self.file.into_inner().map_err(|e| e.into_error())?;
        Ok(SortedRun { file, pages: self.pages, count: self.count })
    }
}

impl SortedRun {
    /// Returns the number of hashes.
    pub fn len(&self) -> u64 {
        self.count
    }
    /// Returns the bytes on disk.
    pub fn bytes(&self) -> u64 {
        self.pages.last().map_or(0, |p| p.offset + p.word_count() as u64 * 8)
    }
    /// Returns the number of pages.
    pub fn page_count(&self) -> usize {
        self.pages.len()
    }
    /// Reads the hashes of a page.
    pub fn read_page(&self, page: usize) -> Result<Vec<u64>> {
        let mut buffer = PageBuffer::default();
        buffer.read(self, page, page + 1)?;
        let page = &self.pages[page];
        let (lows, highs) = buffer.words.split_at(page.low_words());
        let mut hashes = Vec::with_capacity(page.count as usize);
        for (w, &word) in highs.iter().enumerate() {
            let mut ones = word;
            while ones != 0 {
                let i = hashes.len();
                let high = (w * 64 + ones.trailing_zeros() as usize - i) as u64;
                hashes.push(
                    page.first
                        + (high << page.low_bits()
                            | bits(lows, i * page.low_bits() as usize, page.low_bits())),
                );
                ones &= ones - 1;
            }
        }
        Ok(hashes)
    }
    /// Sets `found[i]` if `hashes[i]` is in the run, and keeps the other marks. `hashes` ascend,
    /// and both have the same length. Returns the bytes read.
    pub fn mark(&self, hashes: &[u64], found: &mut [bool]) -> Result<u64> {
        let mut read = 0;
        let mut buffer = PageBuffer::default();
        // Index of the next hash, and of the first page that may contain it.
        let mut at = 0;
        let mut page = 0;
        while let Some(&hash) = hashes.get(at) {
            let after = page + self.pages[page..].partition_point(|p| p.first <= hash);
            // The last page that begins at or below the hash.
            let Some(from) = after.checked_sub(1) else {
                // All hashes before the first page.
                let Some(first) = self.pages.first() else { break };
                at += hashes[at..].partition_point(|h| *h < first.first);
                continue;
            };
            // Read the pages up to the last one that can contain a hash, or as many as the buffer
            // allows.
            let last = hashes[hashes.len() - 1];
            let mut to = from + 1;
            while to < self.pages.len()
                && self.pages[to].first <= last
                && self.pages[to].offset + self.pages[to].word_count() as u64 * 8
                    - self.pages[from].offset
                    <= READ as u64
            {
                to += 1;
            }
            read += buffer.read(self, from, to)?;
            let mut rest = &buffer.words[..];
            for p in &self.pages[from..to] {
                let (mine, after) = rest.split_at(p.word_count());
                rest = after;
                let end = at + hashes[at..].partition_point(|h| *h <= p.first + p.span);
                p.mark(mine, &hashes[at..end], &mut found[at..end]);
                // Hashes between this page and the next are in no page.
                at = end;
            }
            page = to;
            if let Some(next) = self.pages.get(to) {
                at += hashes[at..].partition_point(|h| *h < next.first);
            } else {
                break;
            }
        }
        Ok(read)
    }
}

impl Page {
    /// Marks the hashes that are in this page.
    fn mark(&self, words: &[u64], hashes: &[u64], found: &mut [bool]) {
        let low = self.low_bits();
        let (lows, highs) = words.split_at(self.low_words());
        // Words of high bits passed so far, and the zeros in them.
        let (mut word, mut zeros) = (0usize, 0u64);
        for (&hash, found) in hashes.iter().zip(found) {
            let Some(value) = hash.checked_sub(self.first) else { continue };
            let high = value >> low;
            // The hashes with these high bits begin after this number of zeros.
            let mut at = if high == 0 {
                0
            } else {
                while let Some(w) = highs.get(word) {
                    let here = u64::from(w.count_zeros());
                    if zeros + here >= high {
                        break;
                    }
                    zeros += here;
                    word += 1;
                }
                let Some(&w) = highs.get(word) else { continue };
                word * 64 + select_zero(w, high - zeros) + 1
            };
            let mut index = at - high as usize;
            let wanted = value & ((1 << low) - 1);
            while highs.get(at / 64).is_some_and(|w| w >> (at % 64) & 1 == 1) {
                let there = bits(lows, index * low as usize, low);
                if there >= wanted {
                    *found |= there == wanted;
                    break;
                }
                at += 1;
                index += 1;
            }
        }
    }
}

/// Returns the position of the `n`-th zero of a word, counted from 1; the word has that many.
#[inline]
fn select_zero(word: u64, n: u64) -> usize {
    let mut zeros = !word;
    for _ in 1..n {
        zeros &= zeros - 1;
    }
    zeros.trailing_zeros() as usize
}

/// Buffer of consecutive pages as read from the file.
#[derive(Default)]
struct PageBuffer {
    bytes: Vec<u8>,
    words: Vec<u64>,
}

impl PageBuffer {
    /// Reads consecutive pages and verifies their checksums. Returns the bytes read.
    fn read(&mut self, run: &SortedRun, from: usize, to: usize) -> Result<u64> {
        let pages = &run.pages[from..to];
        let count: usize = pages.iter().map(Page::word_count).sum();
        self.bytes.resize(count * 8, 0);
        run.file.read_exact_at(&mut self.bytes, pages[0].offset)?;
        let mut rest = &self.bytes[..];
        for page in pages {
            let (mine, after) = rest.split_at(page.word_count() * 8);
            if crc32fast::hash(mine) != page.checksum {
                return Err(Error::new(
                    ErrorKind::InvalidData,
                    "the checksum of a page of spilled states is wrong",
                ));
            }
            rest = after;
        }
        self.words.clear();
        self.words.extend(
            self.bytes.chunks_exact(8).map(|b| u64::from_le_bytes(b.try_into().expect("8 bytes"))),
        );
        Ok(count as u64 * 8)
    }
}

/// Position in a run that is merged.
struct RunCursor {
    /// The hashes of the current page.
    hashes: Vec<u64>,
    /// Index of the next hash in it.
    next_hash: usize,
    /// The page after it.
    next_page: usize,
}

/// Merges runs into their union.
pub(super) fn merge(
    folder: &Path,
    runs: &[SortedRun],
    max_page_hashes: usize,
) -> Result<SortedRun> {
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;
    let mut out = RunWriter::new(folder, max_page_hashes)?;
    let mut cursors: Vec<RunCursor> = Vec::new();
    let mut heap = BinaryHeap::new();
    for (r, run) in runs.iter().enumerate() {
        let hashes = if run.page_count() > 0 { run.read_page(0)? } else { Vec::new() };
        heap.extend(hashes.first().map(|h| Reverse((*h, r))));
        cursors.push(RunCursor { hashes, next_hash: 1, next_page: 1 });
    }
    let mut last = None;
    while let Some(Reverse((hash, r))) = heap.pop() {
        if last != Some(hash) {
            out.push(hash)?;
            last = Some(hash);
        }
        let cursor = &mut cursors[r];
        if cursor.next_hash == cursor.hashes.len() && cursor.next_page < runs[r].page_count() {
            cursor.hashes = runs[r].read_page(cursor.next_page)?;
            cursor.next_hash = 0;
            cursor.next_page += 1;
        }
        if let Some(hash) = cursor.hashes.get(cursor.next_hash) {
            heap.push(Reverse((*hash, r)));
            cursor.next_hash += 1;
        }
    }
    out.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mu_base::random::Random;
    use std::collections::BTreeSet;

    /// Hashes of a page; so few that a run has several.
    const PAGE: usize = 64;

    fn write_run(hashes: &BTreeSet<u64>) -> SortedRun {
        let mut writer = RunWriter::new(&std::env::temp_dir(), PAGE).unwrap();
        hashes.iter().for_each(|h| writer.push(*h).unwrap());
        writer.finish().unwrap()
    }

    fn some(random: &mut Random, most: usize, bits: usize) -> BTreeSet<u64> {
        let dense = random.below(3) == 0;
        let base = if dense { random.next_u64() >> (64 - bits) } else { 0 };
        (0..random.below(most))
            .map(|_| {
                if dense {
                    (base + random.below(2 * most) as u64) & ((1 << bits) - 1)
                } else {
                    random.next_u64() >> (64 - bits)
                }
            })
            .collect()
    }

    #[test]
    fn runs_hold_exactly_what_was_written() {
        for seed in 0..60 {
            let mut random = Random::new(seed);
            let bits = [63, 40, 20, 9][seed as usize % 4];
            let hashes = some(&mut random, [3_000, 70, 2][seed as usize % 3], bits);
            let run = write_run(&hashes);
            let back: Vec<u64> =
                (0..run.page_count()).flat_map(|p| run.read_page(p).unwrap()).collect();
            assert_eq!(back, hashes.iter().copied().collect::<Vec<_>>(), "seed {seed}");
            assert_eq!(run.len(), hashes.len() as u64);
            let near = hashes.iter().flat_map(|h| [h.saturating_sub(1), *h, h + 1]);
            let queried: Vec<u64> = some(&mut random, 500, bits)
                .into_iter()
                .chain(near)
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect();
            let mut found = vec![false; queried.len()];
            run.mark(&queried, &mut found).unwrap();
            for (hash, found) in queried.iter().zip(found) {
                assert_eq!(found, hashes.contains(hash), "seed {seed}: {hash}");
            }
        }
    }

    #[test]
    fn merged_runs_are_the_union() {
        for seed in 0..20 {
            let mut random = Random::new(seed);
            let sets: Vec<BTreeSet<u64>> =
                (0..random.below(5)).map(|_| some(&mut random, 400, 12)).collect();
            let runs: Vec<SortedRun> = sets.iter().map(write_run).collect();
            let run = merge(&std::env::temp_dir(), &runs, PAGE).unwrap();
            let back: Vec<u64> =
                (0..run.page_count()).flat_map(|p| run.read_page(p).unwrap()).collect();
            assert_eq!(
                back,
                sets.into_iter().flatten().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>(),
                "seed {seed}"
            );
        }
    }

    #[test]
    fn a_changed_byte_is_an_error() {
        let hashes: BTreeSet<u64> = (0..1_000u64).map(|i| i * i * 77).collect();
        let run = write_run(&hashes);
        for at in (0..run.bytes()).step_by(97) {
            let mut byte = [0];
            run.file.read_exact_at(&mut byte, at).unwrap();
            run.file.write_all_at(&[byte[0] ^ 4], at).unwrap();
            let queried: Vec<u64> = hashes.iter().copied().collect();
            let error = run.mark(&queried, &mut vec![false; queried.len()]).unwrap_err();
            assert!(error.to_string().contains("checksum of a page"), "byte {at}: {error}");
            run.file.write_all_at(&byte, at).unwrap();
        }
    }

    #[test]
    fn unsorted_hashes_are_rejected() {
        let mut writer = RunWriter::new(&std::env::temp_dir(), PAGE).unwrap();
        writer.extend(&[3, 2]).unwrap();
        assert!(writer.finish().is_err());
    }
}
