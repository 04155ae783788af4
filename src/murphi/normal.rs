//! Normal forms of states: sorted multisets, and one representative of each orbit under the
//! permutations of scalarsets.
//!
//! Permutations of a scalarset are symmetries (Ip and Dill, *Better verification through symmetry*,
//! 1996); [`crate::equivariance`] and [`crate::order_check`] check it. The representative is exact:
//! two states have the same one if and only if they are in one orbit. As in canonical labelling of
//! graphs (McKay, *Practical graph isomorphism*, 1981), elements get colours from the parts of the
//! state that they select, refined by the colours of the elements that occur with them, until
//! nothing changes. If all colours differ, their order is the permutation. Else the members of the
//! first class of equal colours are singled out in turn, and the least image of all leaves of this
//! search is taken. A member is skipped if its exchange with an earlier one leaves the state
//! unchanged, so elements in equal positions cost no search. Colours are hashes: a collision costs
//! time, never exactness.
//!
//! Only fields that differ from a *base* are considered. The base is the first start state, made
//! symmetric: fields in one position of a type have one content for all elements. A field that
//! relates no two elements gives its colour once; only the others are part of the refinement.
//! Elements that no field relates, with equal fields of their own, are exchangeable: their class
//! costs nothing.
//!
//! Cost: usually one pass over the fields that differ from the base; factorial in the largest class
//! that refinement cannot split, unless its members are exchangeable.

use crate::accesses::{bit, scalarsets};
use crate::code::Program;
use crate::layout::{Layout, Shape, Simple};
use crate::run::{Ended, Interpreter, copy, read, write};
use crate::scan::Scan;
use crate::typed::{Model, TypeId, TypeKind};
use ahash::AHashMap;

/// Slots of a multiset at a constant place.
#[derive(Clone, Copy, Debug)]
struct MultisetAt {
    offset: u32,
    capacity: u32,
    stride: u32,
}

impl MultisetAt {
    /// Returns the first and the last word.
    #[inline(always)]
    fn words(self) -> (usize, usize) {
        let end = self.offset + (self.capacity * self.stride).max(1);
        (self.offset as usize / 64, (end as usize - 1) / 64)
    }
}

/// Scalarset that permutes the state.
#[derive(Clone, Copy, Debug)]
struct Set {
    /// Lowest own number.
    first: i64,
    size: u32,
    /// Number of the first element among all elements.
    base: u32,
}

/// Index of an enclosing array that is an element of a scalarset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Selection {
    /// Number of the element.
    element: u32,
    /// Bits from one element of the array to the next.
    stride: u32,
}

/// Bits that move together under permutations.
#[derive(Clone, Debug)]
struct Block {
    offset: u32,
    width: u8,
    path: Vec<Selection>,
}

/// Field that can contain an element of a scalarset.
#[derive(Clone, Copy, Debug)]
struct ValueField {
    offset: u32,
    width: u8,
    /// Index in `Normal::tables`.
    table: u32,
}

/// Field that relates elements: those that select it, and the one that it contains.
#[derive(Clone, Debug)]
struct Atom {
    offset: u32,
    width: u8,
    /// Number of its position in the type, equal for all elements.
    class: u64,
    path: Vec<u32>,
    /// Index in `Normal::tables`, if it can contain an element.
    table: Option<u32>,
}

/// Multiset with the atoms of its first slot.
#[derive(Clone, Debug)]
struct Bag {
    at: MultisetAt,
    class: u64,
    path: Vec<u32>,
    atoms: Vec<Atom>,
}

/// Bits of the row of one element that contain no elements.
#[derive(Clone, Copy, Debug)]
struct Row {
    element: u32,
    offset: u32,
    width: u8,
    mask: u64,
}

/// Relations between the elements of the current state.
#[derive(Clone, Debug, Default)]
struct Relations {
    /// Fields that relate two or more elements: the hash of position and content, and the end of
    /// its part of `elements`.
    fields: Vec<(u64, u32)>,
    elements: Vec<u32>,
    /// Elements that a field relates to its position or to others.
    touched: Vec<bool>,
}

/// Normal forms of the states of one model.
#[derive(Clone, Debug, Default)]
pub(crate) struct Normal {
    multisets: Vec<MultisetAt>,
    sets: Vec<Set>,
    /// By table and content of a field: one more than the number of the element, or 0.
    tables: Vec<Vec<u32>>,
    blocks: Vec<Block>,
    values: Vec<ValueField>,
    rows: Vec<Row>,
    atoms: Vec<Atom>,
    bags: Vec<Bag>,
    words: usize,
    elements: usize,
    /// Symmetric state, from which most states differ little.
    base: Vec<u64>,
    /// Bits of all blocks.
    moving: Vec<u64>,
    block_scan: Scan,
    value_scan: Scan,
    atom_scan: Scan,
    /// Numbers of the rows of each element.
    rows_of: Vec<Vec<u32>>,
    // Scratch.
    relations: Relations,
    keys: Vec<u64>,
    original: Vec<u64>,
    /// Bits in which the state differs from the base.
    difference: Vec<u64>,
    image: Vec<u64>,
    best: Vec<u64>,
    next: Vec<u64>,
    spare: Vec<u64>,
    order: Vec<u32>,
    permutation: Vec<u32>,
}

/// Walk over the type of a global variable.
struct Walk<'w> {
    model: &'w Model,
    layout: &'w Layout,
    normal: &'w mut Normal,
    classes: AHashMap<Vec<u32>, u64>,
    tables: AHashMap<TypeId, u32>,
    /// Fields found: offset, width, path, class, table, number of the enclosing bag.
    fields: Vec<(u32, u8, Vec<Selection>, u64, Option<u32>, Option<usize>)>,
    nested: bool,
}

impl Normal {
    /// Prepares the normal forms of a model. Without `symmetry` only multisets are sorted.
    pub fn new(model: &Model, program: &Program, symmetry: bool) -> Self {
        Self::without_scalarsets(model, program, symmetry, 0)
    }
    /// As [`Normal::new`], without permutations of some scalarsets: a mask of their numbers
    /// ([`crate::accesses::scalarsets`]).
    pub fn without_scalarsets(
        model: &Model,
        program: &Program,
        symmetry: bool,
        excluded: u64,
    ) -> Self {
        let layout = &program.layout;
        let mut normal = Normal { words: layout.words, ..Normal::default() };
        let mut at = Vec::new();
        for (global, offset) in model.globals.iter().zip(&layout.globals) {
            multisets(layout, global.ty, *offset, &mut at);
        }
        normal.multisets = at;
        if symmetry {
            normal.find_symmetries(model, program, excluded);
        }
        normal
    }
    fn find_symmetries(&mut self, model: &Model, program: &Program, excluded: u64) {
        let layout = &program.layout;
        let mut base = 0;
        for (number, ty) in scalarsets(model).into_iter().enumerate() {
            if let (Some(Simple { low, .. }), TypeKind::Scalarset { size, .. }) =
                (layout.simple(ty), model.types.kind(ty))
                && excluded & bit(number) == 0
            {
                self.sets.push(Set { first: *low, size: *size, base });
                base += size;
            }
        }
        self.elements = base as usize;
        if self.sets.is_empty() {
            return;
        }
        let mut walk = Walk {
            model,
            layout,
            normal: self,
            classes: AHashMap::default(),
            tables: AHashMap::default(),
            fields: Vec::new(),
            nested: false,
        };
        for (number, (global, offset)) in model.globals.iter().zip(&layout.globals).enumerate() {
            walk.visit(global.ty, *offset, &mut Vec::new(), &mut vec![number as u32], None);
        }
        let (fields, nested) = (walk.fields, walk.nested);
        let used = fields.iter().any(|f| !f.2.is_empty() || f.4.is_some());
        if !used || nested {
            (self.sets, self.elements) = (Vec::new(), 0);
            return;
        }
        self.base = vec![0; self.words];
        let start = first_start(model, program);
        let mut contents: AHashMap<u64, u64> = AHashMap::default();
        for (offset, width, path, class, table, bag) in fields {
            if bag.is_none() {
                let raw = *contents.entry(class).or_insert_with(|| {
                    let raw = read(&start, offset as usize, width);
                    let is_element =
                        table.is_some_and(|t| self.tables[t as usize][raw as usize] > 0);
                    if is_element { 0 } else { raw }
                });
                write(&mut self.base, offset as usize, width, raw);
            }
            if let Some(table) = table {
                self.values.push(ValueField { offset, width, table });
            }
            if !path.is_empty() {
                self.block(offset, width, &path);
            }
            let elements: Vec<u32> = path.iter().map(|p| p.element).collect();
            if let Some(bag) = bag {
                let first = self.bags[bag].at;
                // Atoms of the first slot only; the others are alike.
                if offset < first.offset + first.stride {
                    self.bags[bag].atoms.push(Atom { offset, width, class, path: elements, table });
                }
            } else if let ([element], None) = (&elements[..], table) {
                self.row(*element, offset, width);
            } else if !elements.is_empty() || table.is_some() {
                self.atoms.push(Atom { offset, width, class, path: elements, table });
            }
        }
        self.moving = vec![0; self.words];
        for block in &self.blocks {
            let all = crate::code::mask(block.width);
            write(&mut self.moving, block.offset as usize, block.width, all);
        }
        let words = self.words;
        self.block_scan = Scan::new(words, self.blocks.iter().map(|b| (b.offset, b.width)));
        self.value_scan = Scan::new(words, self.values.iter().map(|v| (v.offset, v.width)));
        self.atom_scan = Scan::new(words, self.atoms.iter().map(|a| (a.offset, a.width)));
        self.rows_of = vec![Vec::new(); self.elements];
        for (number, row) in (0u32..).zip(&self.rows) {
            self.rows_of[row.element as usize].push(number);
        }
    }
    /// Adds bits that move, to the last block if they follow it in the same word.
    fn block(&mut self, offset: u32, width: u8, path: &[Selection]) {
        let room = (64 - offset % 64) as u8;
        if width > room {
            self.block(offset, room, path);
            self.block(offset + u32::from(room), width - room, path);
            return;
        }
        if let Some(last) = self.blocks.last_mut() {
            let follows = last.offset + u32::from(last.width) == offset && last.path == path;
            if follows && !offset.is_multiple_of(64) {
                last.width += width;
                return;
            }
        }
        self.blocks.push(Block { offset, width, path: path.to_vec() });
    }
    /// Adds bits of an element's row.
    fn row(&mut self, element: u32, offset: u32, width: u8) {
        if let Some(last) = self.rows.last_mut() {
            let end = offset + u32::from(width);
            if last.element == element && offset >= last.offset && end - last.offset <= 64 {
                last.mask |= crate::code::mask(width) << (offset - last.offset);
                last.width = (end - last.offset) as u8;
                return;
            }
        }
        self.rows.push(Row { element, offset, width, mask: crate::code::mask(width) });
    }
    /// Returns the size of the group of permutations, at most `u64::MAX`.
    pub fn order(&self) -> u64 {
        self.sets
            .iter()
            .fold(1, |n: u64, set| (1..=u64::from(set.size)).fold(n, |n, k| n.saturating_mul(k)))
    }

    // ---- multisets ---------------------------------------------------------------------------

    /// Sorts all multisets: used slots first, in descending order of their bits.
    #[inline(always)]
    pub fn sort(&mut self, memory: &mut [u64]) {
        for at in 0..self.multisets.len() {
            sort_slots(memory, self.multisets[at], &mut self.keys);
        }
    }

    /// Sorts the multisets that differ from those of a state in which all are sorted.
    #[inline(always)]
    pub fn sort_changed(&mut self, memory: &mut [u64], before: &[u64]) {
        for at in 0..self.multisets.len() {
            let multiset = self.multisets[at];
            let (first, last) = multiset.words();
            if (first..=last).any(|word| memory[word] != before[word]) {
                sort_slots(memory, multiset, &mut self.keys);
            }
        }
    }

    /// Returns the places of the multisets: first bit, one past the last.
    pub fn multisets(&self) -> impl Iterator<Item = (u32, u32)> {
        self.multisets.iter().map(|m| (m.offset, m.offset + m.capacity * m.stride))
    }

    // ---- permutations ------------------------------------------------------------------------

    /// True if states are replaced by representatives.
    #[inline(always)]
    pub fn permutes(&self) -> bool {
        !self.sets.is_empty()
    }
    /// Replaces the state by the representative of its orbit. Multisets are sorted.
    #[inline(always)]
    pub fn canonical(&mut self, memory: &mut [u64]) {
        if self.permutes() {
            self.represent(memory);
        }
    }
    /// Takes a state as the current one.
    fn load(&mut self, state: &[u64]) {
        self.original.clear();
        self.original.extend_from_slice(state);
        self.difference.clear();
        self.difference.extend(state.iter().zip(&self.base).map(|(a, b)| a ^ b));
    }
    fn represent(&mut self, memory: &mut [u64]) {
        let words = self.words;
        self.load(&memory[..words]);
        let mut colors = std::mem::take(&mut self.next);
        self.best.clear();
        self.color_rows(&mut colors);
        if self.is_discrete(&colors) {
            self.leaf(&colors);
        } else {
            let mut relations = std::mem::take(&mut self.relations);
            self.color_relations(&mut colors, &mut relations);
            self.relations = relations;
            self.refine(&mut colors);
            self.descend(&colors);
        }
        self.next = colors;
        memory[..words].copy_from_slice(&self.best);
    }
    /// Colours elements by their rows.
    fn color_rows(&self, colors: &mut Vec<u64>) {
        colors.clear();
        for (n, set) in self.sets.iter().enumerate() {
            colors.extend((0..set.size).map(|_| n as u64 + 1));
        }
        // The rows of an element are in the same order for all elements of its set.
        for row in &self.rows {
            let bits = read(&self.original, row.offset as usize, row.width) & row.mask;
            let color = &mut colors[row.element as usize];
            *color = mix(*color, bits);
        }
    }
    /// Colours elements by the fields that relate one of them to its position. Collects the other
    /// fields that differ from the base.
    fn color_relations(&self, colors: &mut [u64], relations: &mut Relations) {
        relations.fields.clear();
        relations.elements.clear();
        relations.touched.clear();
        relations.touched.resize(self.elements, false);
        self.atom_scan.visit(&self.difference, |n| {
            let atom = &self.atoms[n];
            let raw = read(&self.original, atom.offset as usize, atom.width);
            if raw == read(&self.base, atom.offset as usize, atom.width) {
                return;
            }
            let value = self.element(atom, raw);
            let hash = plain(atom, raw, value, atom.class);
            let first = relations.elements.len();
            relations.elements.extend(atom.path.iter().chain(&value));
            let elements = &relations.elements[first..];
            elements.iter().for_each(|e| relations.touched[*e as usize] = true);
            if let [element] = elements {
                let color = &mut colors[*element as usize];
                *color = color.wrapping_add(mix(hash, 1));
                relations.elements.truncate(first);
            } else if !elements.is_empty() {
                relations.fields.push((hash, relations.elements.len() as u32));
            }
        });
        for bag in &self.bags {
            for slot in 0..bag.at.capacity {
                let shift = slot * bag.at.stride;
                if read(&self.original, (bag.at.offset + shift) as usize, 1) == 0 {
                    continue;
                }
                bag.path.iter().for_each(|e| relations.touched[*e as usize] = true);
                for atom in &bag.atoms {
                    let raw = read(&self.original, (atom.offset + shift) as usize, atom.width);
                    for element in atom.path.iter().chain(&self.element(atom, raw)) {
                        relations.touched[*element as usize] = true;
                    }
                }
            }
        }
    }
    /// True if no field relates the elements of a class, and their rows are equal.
    fn is_interchangeable(&self, class: &[u32]) -> bool {
        let row = |number: u32| {
            let row = &self.rows[number as usize];
            read(&self.original, row.offset as usize, row.width) & row.mask
        };
        let first = &self.rows_of[class[0] as usize];
        class.iter().all(|element| {
            let rows = &self.rows_of[*element as usize];
            !self.relations.touched[*element as usize]
                && rows.iter().zip(first).all(|(a, b)| row(*a) == row(*b))
        })
    }
    /// True if no two elements of a set have one colour.
    fn is_discrete(&self, colors: &[u64]) -> bool {
        self.sets.iter().all(|set| {
            let of = &colors[set.base as usize..(set.base + set.size) as usize];
            (1..of.len()).all(|n| !of[..n].contains(&of[n]))
        })
    }
    fn classes(&mut self, colors: &[u64]) -> usize {
        let mut count = 0;
        for set in &self.sets {
            let of = &colors[set.base as usize..(set.base + set.size) as usize];
            if of.len() <= 16 {
                count += (0..of.len()).filter(|n| !of[..*n].contains(&of[*n])).count();
                continue;
            }
            self.keys.clear();
            self.keys.extend(of);
            self.keys.sort_unstable();
            self.keys.dedup();
            count += self.keys.len();
        }
        count
    }
    /// Refines colours until the number of classes no longer grows.
    fn refine(&mut self, colors: &mut Vec<u64>) {
        if self.relations.fields.is_empty() && self.bags.is_empty() {
            return;
        }
        let mut count = self.classes(colors);
        let mut next = std::mem::take(&mut self.spare);
        while count < self.elements {
            self.round(colors, &mut next);
            std::mem::swap(colors, &mut next);
            let now = self.classes(colors);
            if now == count {
                break;
            }
            count = now;
        }
        self.spare = next;
    }
    fn round(&self, colors: &[u64], next: &mut Vec<u64>) {
        next.clear();
        next.extend(colors.iter().map(|c| mix(*c, 0x5bd1_e995)));
        let state = &self.original[..];
        let mut first = 0;
        for (hash, end) in &self.relations.fields {
            let elements = &self.relations.elements[first..*end as usize];
            first = *end as usize;
            let context = elements.iter().fold(*hash, |h, e| mix(h, colors[*e as usize]));
            for (at, element) in (1..).zip(elements) {
                let cell = &mut next[*element as usize];
                *cell = cell.wrapping_add(mix(context, at));
            }
        }
        for bag in &self.bags {
            let outer = bag.path.iter().fold(bag.class, |h, e| mix(h, colors[*e as usize]));
            for slot in 0..bag.at.capacity {
                let shift = slot * bag.at.stride;
                if read(state, (bag.at.offset + shift) as usize, 1) == 0 {
                    continue;
                }
                let raw = |atom: &Atom| read(state, (atom.offset + shift) as usize, atom.width);
                let context = bag
                    .atoms
                    .iter()
                    .fold(outer, |h, atom| self.context(atom, raw(atom), colors, h ^ atom.class).0);
                let mut at = 0;
                for element in &bag.path {
                    at += 1;
                    let cell = &mut next[*element as usize];
                    *cell = cell.wrapping_add(mix(context, at));
                }
                for atom in &bag.atoms {
                    let value = self.element(atom, raw(atom));
                    for element in atom.path.iter().chain(&value) {
                        at += 1;
                        let cell = &mut next[*element as usize];
                        *cell = cell.wrapping_add(mix(context, at));
                    }
                }
            }
        }
    }
    #[inline(always)]
    fn element(&self, atom: &Atom, raw: u64) -> Option<u32> {
        let table = &self.tables[atom.table? as usize];
        table[raw as usize].checked_sub(1)
    }
    /// Returns the hash of an atom with the colours of its elements, and the element that it
    /// contains.
    #[inline(always)]
    fn context(&self, atom: &Atom, raw: u64, colors: &[u64], start: u64) -> (u64, Option<u32>) {
        let value = self.element(atom, raw);
        let mut hash = plain(atom, raw, value, start);
        for element in atom.path.iter().chain(&value) {
            hash = mix(hash, colors[*element as usize]);
        }
        (hash, value)
    }
    /// Searches the leaves below a colouring for the least image.
    fn descend(&mut self, colors: &[u64]) {
        let Some(class) = self.first_class(colors) else {
            self.leaf(colors);
            return;
        };
        for (n, member) in class.iter().enumerate() {
            if class[..n].iter().any(|earlier| self.is_exchangeable(*earlier, *member)) {
                continue;
            }
            let mut inner = colors.to_vec();
            let color = &mut inner[*member as usize];
            *color = mix(*color, 0x1234_5678_9abc_def1);
            self.refine(&mut inner);
            self.descend(&inner);
        }
    }
    /// Returns the class of equal colours with the least colour in the first set that has one with
    /// members that differ. `None` if there is none.
    fn first_class(&mut self, colors: &[u64]) -> Option<Vec<u32>> {
        let mut members = std::mem::take(&mut self.order);
        let mut found = None;
        'sets: for set in &self.sets {
            let range = set.base as usize..(set.base + set.size) as usize;
            let of = &colors[range.clone()];
            // Colours up to this one need no search.
            let mut done = None;
            loop {
                let shared = of
                    .iter()
                    .enumerate()
                    .filter(|(n, c)| done.is_none_or(|d| **c > d) && of[..*n].contains(c))
                    .map(|(_, c)| *c)
                    .min();
                let Some(shared) = shared else { break };
                members.clear();
                members.extend(range.clone().filter(|n| colors[*n] == shared).map(|n| n as u32));
                if !self.is_interchangeable(&members) {
                    found = Some(members.clone());
                    break 'sets;
                }
                done = Some(shared);
            }
        }
        self.order = members;
        found
    }
    /// Takes the image under the order of the colours, if it is the least so far.
    fn leaf(&mut self, colors: &[u64]) {
        self.permutation.clear();
        self.permutation.resize(self.elements, 0);
        let mut identity = true;
        for set in &self.sets {
            self.order.clear();
            self.order.extend(set.base..set.base + set.size);
            self.order.sort_unstable_by_key(|e| colors[*e as usize]);
            for (at, element) in self.order.iter().enumerate() {
                let to = set.base + at as u32;
                identity &= to == *element;
                self.permutation[*element as usize] = to;
            }
        }
        if identity {
            self.image.clear();
            self.image.extend_from_slice(&self.original);
        } else {
            self.apply();
        }
        if self.best.is_empty() || self.image < self.best {
            std::mem::swap(&mut self.best, &mut self.image);
        }
    }
    /// True if the state does not change when two elements of a set are exchanged.
    fn is_exchangeable(&mut self, a: u32, b: u32) -> bool {
        self.permutation.clear();
        self.permutation.extend(0..self.elements as u32);
        self.permutation.swap(a as usize, b as usize);
        self.apply();
        self.image == self.original
    }
    /// Computes the image of the state under the permutation.
    fn apply(&mut self) {
        let Self { original, base, moving, difference, permutation, image, .. } = self;
        image.clear();
        let words = original.iter().zip(base.iter()).zip(moving.iter());
        image.extend(words.map(|((state, base), moving)| state & !moving | base & moving));
        self.block_scan.visit(difference, |n| {
            let block = &self.blocks[n];
            let mut to = block.offset;
            for at in &block.path {
                let new = permutation[at.element as usize];
                to = to
                    .wrapping_add(new.wrapping_mul(at.stride))
                    .wrapping_sub(at.element.wrapping_mul(at.stride));
            }
            let bits = read(difference, block.offset as usize, block.width);
            let raw = read(image, to as usize, block.width) ^ bits;
            write(image, to as usize, block.width, raw);
        });
        // A value is changed when it is visited, and not visited again.
        let before = std::mem::take(difference);
        difference.clone_from(image);
        self.value_scan.visit(difference, |n| {
            let field = &self.values[n];
            let raw = read(difference, field.offset as usize, field.width);
            let table = &self.tables[field.table as usize];
            if let Some(element) = table[raw as usize].checked_sub(1) {
                let new = permutation[element as usize];
                if new != element {
                    let raw = raw.wrapping_add(u64::from(new)).wrapping_sub(u64::from(element));
                    write(image, field.offset as usize, field.width, raw);
                }
            }
        });
        *difference = before;
        for at in 0..self.multisets.len() {
            sort_slots(&mut self.image, self.multisets[at], &mut self.keys);
        }
    }
}

impl Walk<'_> {
    fn visit(
        &mut self,
        ty: TypeId,
        offset: u32,
        path: &mut Vec<Selection>,
        position: &mut Vec<u32>,
        bag: Option<usize>,
    ) {
        match self.layout.shape_of(ty).clone() {
            Shape::None => {}
            Shape::Simple(simple) => {
                let class = self.class(position);
                let table = self.table(ty, &simple);
                self.fields.push((offset, simple.width, path.clone(), class, table, bag));
            }
            Shape::Record(fields) => {
                for (n, (at, ty)) in fields.into_iter().enumerate() {
                    position.push(n as u32);
                    self.visit(ty, offset + at, path, position, bag);
                    position.pop();
                }
            }
            Shape::Array { low, count, stride, element, .. } => {
                for n in 0..count {
                    let value = low + i64::from(n);
                    match self.normal.element_of(value).filter(|_| self.selects(ty)) {
                        Some(selected) => {
                            // Elements of one set have one position.
                            position.push(u32::MAX - self.normal.set_of(selected));
                            path.push(Selection { element: selected, stride });
                            self.visit(element, offset + n * stride, path, position, bag);
                            path.pop();
                        }
                        None => {
                            position.push(n);
                            self.visit(element, offset + n * stride, path, position, bag);
                        }
                    }
                    position.pop();
                }
            }
            Shape::Multiset { capacity, stride, element } => {
                self.nested |= bag.is_some();
                let class = self.class(position);
                let number = self.normal.bags.len();
                self.normal.bags.push(Bag {
                    at: MultisetAt { offset, capacity, stride },
                    class,
                    path: path.iter().map(|p| p.element).collect(),
                    atoms: Vec::new(),
                });
                // Positions of fields are equal in all slots.
                position.push(u32::MAX);
                for slot in 0..capacity {
                    let at = offset + slot * stride;
                    if !path.is_empty() {
                        // The bit of the slot moves with its multiset.
                        self.fields.push((at, 1, path.clone(), class, None, Some(number)));
                    }
                    self.visit(element, at + 1, path, position, Some(number));
                }
                position.pop();
            }
        }
    }
    /// True if the index of an array can be an element of a scalarset.
    fn selects(&self, array: TypeId) -> bool {
        let TypeKind::Array { index, .. } = self.model.types.kind(array) else { return false };
        matches!(self.model.types.kind(*index), TypeKind::Scalarset { .. } | TypeKind::Union { .. })
    }
    fn class(&mut self, position: &[u32]) -> u64 {
        let count = self.classes.len() as u64;
        let number = *self.classes.entry(position.to_vec()).or_insert(count);
        mix(number + 1, 0x9e37_79b9)
    }
    /// Returns the table of a type with values that can be elements.
    fn table(&mut self, ty: TypeId, simple: &Simple) -> Option<u32> {
        if !matches!(self.model.types.kind(ty), TypeKind::Scalarset { .. } | TypeKind::Union { .. })
        {
            return None;
        }
        if let Some(known) = self.tables.get(&ty) {
            return Some(*known);
        }
        let contents = 0..1u64 << simple.width;
        let table: Vec<u32> = contents
            .map(|raw| match simple.value(raw).filter(|v| simple.contains(*v)) {
                Some(value) => self.normal.element_of(value).map_or(0, |e| e + 1),
                None => 0,
            })
            .collect();
        if table.iter().all(|e| *e == 0) {
            return None;
        }
        let number = self.normal.tables.len() as u32;
        self.normal.tables.push(table);
        self.tables.insert(ty, number);
        Some(number)
    }
}

impl Normal {
    /// Returns the scalarsets: the lowest own number, the number of the first element among all
    /// elements, and the size.
    pub fn sets(&self) -> Vec<(i64, u32, u32)> {
        self.sets.iter().map(|s| (s.first, s.base, s.size)).collect()
    }
    /// Returns the image of an own value under a permutation of all elements.
    pub fn image_of(&self, value: i64, permutation: &[u32]) -> i64 {
        match self.element_of(value) {
            Some(element) => value - i64::from(element) + i64::from(permutation[element as usize]),
            None => value,
        }
    }
    /// Returns the exchanges of neighbouring elements, as permutations of all elements.
    pub fn exchanges(&self) -> Vec<Vec<u32>> {
        let neighbours = self.sets.iter().flat_map(|s| s.base..s.base + s.size - 1);
        let exchange = |at: u32| {
            let mut all: Vec<u32> = (0..self.elements as u32).collect();
            all.swap(at as usize, at as usize + 1);
            all
        };
        neighbours.map(exchange).collect()
    }
    /// Returns the image of a state under a permutation of all elements.
    pub fn permute(&mut self, state: &[u64], permutation: &[u32]) -> &[u64] {
        self.load(state);
        self.permutation.clear();
        self.permutation.extend_from_slice(permutation);
        self.apply();
        &self.image
    }
    /// Returns the number of the element with an own value of an enumeration or scalarset.
    pub fn element_of(&self, value: i64) -> Option<u32> {
        self.sets.iter().find_map(|set| {
            let at = value.checked_sub(set.first)?;
            (0..i64::from(set.size)).contains(&at).then(|| set.base + at as u32)
        })
    }
    fn set_of(&self, element: u32) -> u32 {
        let at = self.sets.iter().position(|s| s.base + s.size > element);
        at.expect("each element is in a set") as u32
    }
}

/// Collects the multisets of a type at a place, inner ones first.
fn multisets(layout: &Layout, ty: TypeId, offset: u32, all: &mut Vec<MultisetAt>) {
    match layout.shape_of(ty) {
        Shape::Simple(_) | Shape::None => {}
        Shape::Record(fields) => {
            fields.iter().for_each(|(at, ty)| multisets(layout, *ty, offset + at, all));
        }
        Shape::Array { count, stride, element, .. } => {
            (0..*count).for_each(|n| multisets(layout, *element, offset + n * stride, all));
        }
        Shape::Multiset { capacity, stride, element } => {
            (0..*capacity).for_each(|n| multisets(layout, *element, offset + n * stride + 1, all));
            all.push(MultisetAt { offset, capacity: *capacity, stride: *stride });
        }
    }
}

/// Sorts the slots of a multiset in descending order of their bits, from the lowest word on. What a
/// rule has written to elements that it removed is lost, as in CMurphi.
fn sort_slots(memory: &mut [u64], at: MultisetAt, keys: &mut Vec<u64>) {
    let slots = at.capacity as usize;
    let offset = |slot: usize| at.offset as usize + slot * at.stride as usize;
    if at.stride <= 64 {
        keys.clear();
        for n in 0..slots {
            let mut key = read(memory, offset(n), at.stride as u8);
            if key & 1 == 0 && key != 0 {
                key = 0;
                write(memory, offset(n), at.stride as u8, key);
            }
            keys.push(key);
        }
        if keys.windows(2).all(|w| w[0] >= w[1]) {
            return;
        }
        // Insertion sort: at most a few slots are not in order.
        for n in 1..slots {
            let (key, mut slot) = (keys[n], n);
            while slot > 0 && keys[slot - 1] < key {
                keys[slot] = keys[slot - 1];
                write(memory, offset(slot), at.stride as u8, keys[slot]);
                slot -= 1;
            }
            if slot < n {
                keys[slot] = key;
                write(memory, offset(slot), at.stride as u8, key);
            }
        }
        return;
    }
    let chunk = |memory: &[u64], slot: usize, n: usize| {
        let width = (at.stride as usize - n * 64).min(64) as u8;
        read(memory, offset(slot) + n * 64, width)
    };
    let chunks = (at.stride as usize).div_ceil(64);
    for slot in 0..slots {
        if read(memory, offset(slot), 1) == 0 {
            for n in 0..chunks {
                let width = (at.stride as usize - n * 64).min(64) as u8;
                write(memory, offset(slot) + n * 64, width, 0);
            }
        }
    }
    // Insertion sort: most slots are in order.
    for n in 1..slots {
        let mut slot = n;
        while slot > 0 {
            let differ = (0..chunks)
                .map(|c| (chunk(memory, slot - 1, c), chunk(memory, slot, c)))
                .find(|(a, b)| a != b);
            if differ.is_none_or(|(a, b)| a > b) {
                break;
            }
            keys.clear();
            keys.extend((0..chunks).map(|c| chunk(memory, slot, c)));
            copy(memory, offset(slot), offset(slot - 1), at.stride as usize);
            for (c, key) in keys.iter().enumerate() {
                let width = (at.stride as usize - c * 64).min(64) as u8;
                write(memory, offset(slot - 1) + c * 64, width, *key);
            }
            slot -= 1;
        }
    }
}

/// Returns the first start state; all zero if it fails.
fn first_start(model: &Model, program: &Program) -> Vec<u64> {
    let mut interpreter = Interpreter::new(program, model.claims.len(), || false);
    let words = program.layout.words;
    match program.starts.first().map(|start| interpreter.run(start.body)) {
        Some(Ended::Done) => interpreter.memory[..words].to_vec(),
        _ => vec![0; words],
    }
}

/// Returns the hash of a field without the colours of its elements.
#[inline(always)]
fn plain(atom: &Atom, raw: u64, value: Option<u32>, start: u64) -> u64 {
    let mut hash = mix(start, if value.is_some() { u64::MAX } else { raw });
    if let (Some(value), Some(first)) = (value, atom.path.first()) {
        hash ^= u64::from(value == *first);
    }
    if let [a, b, ..] = atom.path[..] {
        hash ^= u64::from(a == b) << 1;
    }
    hash
}

#[inline(always)]
fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a ^ 0x9e37_79b9_7f4a_7c15) * u128::from(b ^ 0xd6e8_feb8_6659_fd93);
    (product >> 64) as u64 ^ product as u64
}
