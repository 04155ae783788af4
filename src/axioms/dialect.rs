//! Operations of histories in the vocabularies of memory models.
//!
//! A history has loads, stores, updates, fences, exclusives and dependencies without an
//! architecture. A [`Dialect`] translates them to the tags and relations of one, so that models of
//! different architectures can judge one history. Input: an operation. Output: its tags, or `None`
//! if the architecture has no such operation. Invariant: an operation has the same tags as the
//! instruction that `conform` writes for it in a litmus test.

use crate::architecture::Architecture;
use crate::cat::CatModel;
use crate::execution::{EventKind, NameMeaning, RelationId, Skeleton, Vocabulary};

/// The accesses before or after a partial fence that it orders.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum FenceSide {
    /// Reads.
    Reads,
    /// Writes.
    Writes,
    /// Both.
    All,
}

impl FenceSide {
    /// Returns the letters: `r`, `w`, `rw`.
    pub fn letters(self) -> &'static str {
        match self {
            FenceSide::Reads => "r",
            FenceSide::Writes => "w",
            FenceSide::All => "rw",
        }
    }
    /// Parses letters. `None` if no accesses have them.
    pub fn of_letters(text: &str) -> Option<Self> {
        [FenceSide::Reads, FenceSide::Writes, FenceSide::All]
            .into_iter()
            .find(|a| a.letters() == text)
    }
    /// True if it contains reads (`write` false) or writes.
    pub fn has(self, write: bool) -> bool {
        match self {
            FenceSide::All => true,
            FenceSide::Writes => write,
            FenceSide::Reads => !write,
        }
    }
}

/// The ordering of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub enum MemoryOrdering {
    /// None; for a fence: it orders all accesses.
    #[default]
    Plain,
    /// An acquire; for a fence: reads before it with all accesses after it.
    Acquire,
    /// A release; for a fence: all accesses before it with writes after it.
    Release,
    /// Both; for a fence: all pairs but a write before a read.
    AcquireRelease,
    /// A fence that orders these accesses before it with those after it.
    Between(FenceSide, FenceSide),
}

impl MemoryOrdering {
    /// Returns the mark of a fence between two kinds of accesses.
    pub fn between(before: FenceSide, after: FenceSide) -> Self {
        if (before, after) == (FenceSide::All, FenceSide::All) {
            MemoryOrdering::Plain
        } else {
            MemoryOrdering::Between(before, after)
        }
    }
    /// True if a fence with this mark orders a read (`write` false) or write before it with one
    /// after it.
    pub fn orders(self, before_writes: bool, after_writes: bool) -> bool {
        match self {
            MemoryOrdering::Plain => true,
            MemoryOrdering::Acquire => !before_writes,
            MemoryOrdering::Release => after_writes,
            MemoryOrdering::AcquireRelease => !before_writes || after_writes,
            MemoryOrdering::Between(before, after) => {
                before.has(before_writes) && after.has(after_writes)
            }
        }
    }
    /// True if it acquires.
    pub fn acquires(self) -> bool {
        matches!(self, MemoryOrdering::Acquire | MemoryOrdering::AcquireRelease)
    }
    /// True if it releases.
    pub fn releases(self) -> bool {
        matches!(self, MemoryOrdering::Release | MemoryOrdering::AcquireRelease)
    }
}

/// Sets of partial fences in models without an architecture: those that order a read or write
/// before a read or write.
const PAIR_FENCES: [(&str, bool, bool); 4] = [
    ("RR-fence", false, false),
    ("RW-fence", false, true),
    ("WR-fence", true, false),
    ("WW-fence", true, true),
];

/// The vocabulary of a model for operations of histories.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Dialect {
    /// `Acq`, `Rel`, `F` alone for a full fence, and `RR-fence` and its relatives for partial ones.
    Plain,
    /// The vocabulary of an architecture.
    Of(Architecture),
}

impl Dialect {
    /// Returns the dialect that the head of a model names: an architecture's, or plain.
    pub fn of_head(head: &[String]) -> Self {
        match head.first().map(String::as_str) {
            Some("RISCV") => Dialect::Of(Architecture::RiscV),
            Some("AArch64" | "ARMv8 AArch64") => Dialect::Of(Architecture::AArch64),
            Some("X86" | "X86_64" | "X86 TSO") => Dialect::Of(Architecture::X86),
            Some("PPC" | "Power") => Dialect::Of(Architecture::Power),
            Some("ARM" | "AArch32") => Dialect::Of(Architecture::Arm),
            Some("C" | "RC11" | "C++11") => Dialect::Of(Architecture::C11),
            _ => Dialect::Plain,
        }
    }
    /// Returns the names of the dialect.
    pub fn vocabulary(self) -> Vocabulary {
        match self {
            Dialect::Plain => {
                let mut v = crate::architecture::plain();
                for name in ["Acq", "Rel", "AcqRel"].into_iter().chain(PAIR_FENCES.map(|f| f.0)) {
                    v.set(name);
                }
                v
            }
            Dialect::Of(Architecture::Linux) => {
                let mut v = Architecture::Linux.vocabulary();
                for name in crate::models::kernel_annotations() {
                    v.set(&name);
                }
                v
            }
            Dialect::Of(a) => a.vocabulary(),
        }
    }
    /// Returns the name of the architecture, for messages.
    pub fn architecture(self) -> &'static str {
        match self {
            Dialect::Plain => "a model without architecture",
            Dialect::Of(Architecture::X86) => "x86",
            Dialect::Of(Architecture::RiscV) => "RISC-V",
            Dialect::Of(Architecture::AArch64) => "AArch64",
            Dialect::Of(Architecture::Power) => "Power",
            Dialect::Of(Architecture::Arm) => "Armv7",
            Dialect::Of(Architecture::C11) => "C",
            Dialect::Of(Architecture::Linux) => "the Linux kernel",
        }
    }
    /// Returns the tags of a fence; `None` if the architecture has no such fence.
    fn fence(self, mark: MemoryOrdering) -> Option<Vec<&'static str>> {
        use FenceSide::{All, Reads, Writes};
        let acquire = matches!(mark, MemoryOrdering::Acquire | MemoryOrdering::Between(Reads, All));
        let writes = mark == MemoryOrdering::Between(Writes, Writes);
        let named = |name: &'static str| Some(vec![name]);
        match self {
            Dialect::Plain if mark == MemoryOrdering::Plain => Some(Vec::new()),
            Dialect::Plain => {
                let ordered = PAIR_FENCES.into_iter().filter(|f| mark.orders(f.1, f.2));
                Some(ordered.map(|f| f.0).collect())
            }
            Dialect::Of(Architecture::RiscV) => named(match mark {
                MemoryOrdering::Plain => "Fence.rw.rw",
                MemoryOrdering::Acquire => "Fence.r.rw",
                MemoryOrdering::Release => "Fence.rw.w",
                MemoryOrdering::AcquireRelease => "Fence.tso",
                MemoryOrdering::Between(Reads, Reads) => "Fence.r.r",
                MemoryOrdering::Between(Reads, Writes) => "Fence.r.w",
                MemoryOrdering::Between(Reads, All) => "Fence.r.rw",
                MemoryOrdering::Between(Writes, Reads) => "Fence.w.r",
                MemoryOrdering::Between(Writes, Writes) => "Fence.w.w",
                MemoryOrdering::Between(Writes, All) => "Fence.w.rw",
                MemoryOrdering::Between(All, Reads) => "Fence.rw.r",
                MemoryOrdering::Between(All, Writes) => "Fence.rw.w",
                MemoryOrdering::Between(All, All) => "Fence.rw.rw",
            }),
            Dialect::Of(Architecture::X86) if mark == MemoryOrdering::Plain => {
                Some(vec!["MFENCE", "mfence"])
            }
            Dialect::Of(Architecture::X86) if acquire => Some(vec!["LFENCE", "lfence"]),
            Dialect::Of(Architecture::X86) if writes => Some(vec!["SFENCE", "sfence"]),
            Dialect::Of(Architecture::AArch64) if mark == MemoryOrdering::Plain => named("DMB.SY"),
            Dialect::Of(Architecture::AArch64) if acquire => named("DMB.LD"),
            Dialect::Of(Architecture::AArch64) if writes => named("DMB.ST"),
            Dialect::Of(Architecture::Power) if mark == MemoryOrdering::Plain => named("SYNC"),
            Dialect::Of(Architecture::Power) if mark == MemoryOrdering::AcquireRelease => {
                named("LWSYNC")
            }
            Dialect::Of(Architecture::Power) if writes => named("EIEIO"),
            Dialect::Of(Architecture::Arm) if mark == MemoryOrdering::Plain => named("DMB"),
            Dialect::Of(Architecture::Arm) if writes => named("DMB.ST"),
            Dialect::Of(Architecture::C11) => match mark {
                MemoryOrdering::Plain => named("SC"),
                MemoryOrdering::Acquire => named("ACQ"),
                MemoryOrdering::Release => named("REL"),
                MemoryOrdering::AcquireRelease => named("ACQ_REL"),
                MemoryOrdering::Between(..) => None,
            },
            Dialect::Of(Architecture::Linux) => match mark {
                MemoryOrdering::Plain => named("Mb"),
                MemoryOrdering::Between(Reads, Reads) => named("Rmb"),
                MemoryOrdering::Between(Writes, Writes) => named("Wmb"),
                _ => None,
            },
            Dialect::Of(_) => None,
        }
    }
    /// Returns the tags of a read or write. `update`: it is half of an update. `None` if the
    /// architecture has no such access.
    fn access(
        self,
        write: bool,
        mark: MemoryOrdering,
        update: bool,
    ) -> Option<&'static [&'static str]> {
        let (acquire, release) = (mark.acquires() && !write, mark.releases() && write);
        Some(match self {
            Dialect::Plain if acquire => &["Acq"],
            Dialect::Plain if release => &["Rel"],
            // In RISC-V, both halves have the annotations of the instruction.
            Dialect::Of(Architecture::RiscV) if update => match mark {
                MemoryOrdering::Acquire => &["Acq"],
                MemoryOrdering::Release => &["Rel"],
                MemoryOrdering::AcquireRelease => &["AcqRel"],
                _ => &[],
            },
            Dialect::Of(Architecture::RiscV) if acquire => &["Acq"],
            Dialect::Of(Architecture::RiscV) if release => &["Rel"],
            Dialect::Of(Architecture::AArch64 | Architecture::Arm) if acquire => &["A"],
            Dialect::Of(Architecture::AArch64 | Architecture::Arm) if release => &["L"],
            Dialect::Of(Architecture::C11) => match mark {
                MemoryOrdering::Acquire => &["ACQ", "A"],
                MemoryOrdering::Release => &["REL", "A"],
                MemoryOrdering::AcquireRelease => &["ACQ_REL", "A"],
                _ => &["RLX", "A"],
            },
            Dialect::Of(Architecture::Linux) => match mark {
                MemoryOrdering::Plain => &["Relaxed"],
                MemoryOrdering::Acquire => &["Acquire"],
                MemoryOrdering::Release => &["Release"],
                _ => return None,
            },
            _ => &[],
        })
    }
    /// Returns the reason why a model of the dialect cannot judge an operation; `None` if it can.
    /// `model`: the model.
    pub fn unsupported_reason(
        self,
        model: &CatModel,
        kind: EventKind,
        mark: MemoryOrdering,
        exclusive: bool,
    ) -> Option<String> {
        let architecture = self.architecture();
        if exclusive
            && matches!(
                self,
                Dialect::Of(Architecture::X86 | Architecture::C11 | Architecture::Linux)
            )
        {
            return Some(format!("{architecture} has no load-reserve and store-conditional"));
        }
        // The events of an update are two here, and one in models of the herd tools.
        if self == Dialect::Of(Architecture::RiscV)
            && kind == EventKind::Update
            && !model.depends_on("amo")
        {
            let reason = "the model does not relate the read and the write of an update by `amo`";
            return Some(reason.to_string());
        }
        if kind != EventKind::Fence {
            let known = self.access(kind.writes(), mark, kind == EventKind::Update).is_some();
            return (!known).then(|| format!("{architecture} has no such update"));
        }
        let Some(tags) = self.fence(mark) else {
            return Some(format!("{architecture} has no fence that orders exactly these accesses"));
        };
        // A model that has full fences and no partial ones would ignore this one.
        let partial = self == Dialect::Plain && mark != MemoryOrdering::Plain && !tags.is_empty();
        let knows = PAIR_FENCES.iter().any(|f| model.depends_on(f.0));
        (partial && model.depends_on("F") && !knows)
            .then(|| "the model defines full fences and no partial ones".to_string())
    }
    /// Adds the tags of an operation to its event.
    pub(crate) fn tag(
        self,
        vocabulary: &Vocabulary,
        skeleton: &mut Skeleton,
        event: usize,
        (kind, mark, update): (EventKind, MemoryOrdering, bool),
    ) {
        let tags: Vec<&str> = match kind {
            EventKind::Fence | EventKind::Other => self.fence(mark).unwrap_or_default(),
            _ => self.access(kind.writes(), mark, update).unwrap_or(&[]).to_vec(),
        };
        for tag in tags {
            if let Some(NameMeaning::Set(id)) = vocabulary.find(tag) {
                skeleton.tag(id, event);
            }
        }
    }
    /// Returns the kind of the event of a fence. In models without an architecture, `F` contains
    /// full fences only.
    pub(crate) fn fence_kind(self, mark: MemoryOrdering) -> EventKind {
        if self == Dialect::Plain && mark != MemoryOrdering::Plain {
            EventKind::Other
        } else {
            EventKind::Fence
        }
    }
    /// Relates the two events of an update, in the vocabulary of the dialect.
    pub fn update(
        self,
        vocabulary: &Vocabulary,
        skeleton: &mut Skeleton,
        read: usize,
        write: usize,
    ) {
        let tags: &[&str] = match self {
            Dialect::Of(Architecture::X86) => &["X", "A"],
            Dialect::Of(Architecture::RiscV | Architecture::AArch64) => &["AMO", "X"],
            Dialect::Of(Architecture::Linux) => &["X", "RMW"],
            _ => &[],
        };
        skeleton.relate(RelationId::SAME_INSTANCE, read, write);
        skeleton.relate(RelationId::SAME_INSTANCE, write, read);
        skeleton.relate(RelationId::AMO, read, write);
        for tag in tags {
            if let Some(NameMeaning::Set(id)) = vocabulary.find(tag) {
                [read, write].into_iter().for_each(|e| skeleton.tag(id, e));
            }
        }
    }
    /// Adds the tags of an access of a load-reserve or store-conditional. `model`: as for litmus
    /// tests, exclusives are in `X` too if the model does not mention `EX`.
    pub(crate) fn exclusive(self, model: Option<&CatModel>, skeleton: &mut Skeleton, event: usize) {
        let (Dialect::Of(_), Some(model)) = (self, model) else { return };
        let find = |name: &str| match model.vocabulary().find(name) {
            Some(NameMeaning::Set(id)) => Some(id),
            _ => None,
        };
        let exclusives = find("EX");
        let old = exclusives.filter(|ex| !model.reads_set(*ex)).and_then(|_| find("X"));
        for id in exclusives.into_iter().chain(old) {
            skeleton.tag(id, event);
        }
    }
}
