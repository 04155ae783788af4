//! The built-in memory models: their texts in `specs/memory`, by name, and the encoding of plain
//! operations in the vocabulary of each.
//!
//! Plain reads, writes, acquires, releases and full fences are translated to the vocabulary of the
//! model's architecture ([`Dialect`]), so models of different architectures can judge one
//! execution.

use mu_base::{Diagnostic, SourceMap};

use crate::architecture::Architecture;
use crate::cat::Model;
use crate::execution::{Event, Kind, SetId, Skeleton, Vocabulary};

/// A built-in model.
#[derive(Clone, Copy, Debug)]
pub struct BuiltinModel {
    /// Its name.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
    /// Its dialect.
    pub dialect: Dialect,
}

/// The vocabulary of a model for plain operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Dialect {
    /// `Acq`, `Rel`, and `F` alone for a full fence.
    Plain,
    /// The vocabulary of an architecture.
    Of(Architecture),
}

macro_rules! known {
    ($($name:literal $dialect:expr,)+) => {
        /// All built-in models, strong ones first.
        pub const KNOWN: &[BuiltinModel] = &[$(BuiltinModel {
            name: $name,
            text: include_str!(concat!("memory/", $name, ".cat")),
            dialect: $dialect,
        }),+];
    };
}
known! {
    "sc" Dialect::Plain,
    "tso" Dialect::Plain,
    "pso" Dialect::Plain,
    "pc" Dialect::Plain,
    "rvwmo" Dialect::Of(Architecture::RiscV),
    "armv8" Dialect::Of(Architecture::AArch64),
    "rc11" Dialect::Of(Architecture::C11),
    "location-order" Dialect::Plain,
    "cpp-ra" Dialect::Plain,
    "rcsc" Dialect::Plain,
    "rcpc" Dialect::Plain,
    "causal" Dialect::Plain,
    "pram" Dialect::Plain,
    "cache" Dialect::Plain,
    "slow" Dialect::Plain,
    "local" Dialect::Plain,
}

/// Files that models include.
const LIBRARY: &[(&str, &str)] = &[
    ("stdlib.cat", include_str!("memory/stdlib.cat")),
    ("views.cat", include_str!("memory/views.cat")),
    ("release.cat", include_str!("memory/release.cat")),
    ("lkmm.cat", include_str!("memory/lkmm.cat")),
    ("lkmm.bell", include_str!("memory/lkmm.bell")),
    ("lkmm.def", include_str!("memory/lkmm.def")),
];

/// Returns the text of a file of `specs/memory`, which is embedded in this package.
pub fn file(name: &str) -> Option<String> {
    let library = LIBRARY.iter().find(|f| f.0 == name).map(|f| f.1);
    library
        .or_else(|| {
            KNOWN.iter().find(|k| name.strip_suffix(".cat") == Some(k.name)).map(|k| k.text)
        })
        .map(str::to_string)
}

/// Looks up a model by name.
pub fn by_name(name: &str) -> Option<&'static BuiltinModel> {
    KNOWN.iter().find(|k| k.name == name)
}

impl BuiltinModel {
    /// Compiles the model. An error is a defect of this program and has a position in `sources`.
    pub fn compile(&self, sources: &mut SourceMap) -> Result<Model, Diagnostic> {
        Model::compile(
            sources,
            &format!("{}.cat", self.name),
            self.text,
            &file,
            &self.dialect.vocabulary(),
            &[],
        )
    }
}

/// The ordering of a plain operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub enum Mark {
    /// None.
    #[default]
    Plain,
    /// A read that is an acquire.
    Acquire,
    /// A write that is a release.
    Release,
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
    /// Compiles the model of a file and determines its dialect. If its head names no architecture,
    /// the first dialect that has every name of the model is used. For example, a `riscv.cat` with
    /// the head `Partial` uses `Fence.rw.rw`, which only RISC-V has. Error: that of the dialect of
    /// the head.
    pub fn compile(
        sources: &mut SourceMap,
        name: &str,
        text: &str,
        resolver: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(Model, Dialect), Diagnostic> {
        let said = Dialect::of_head(&crate::cat::head(text));
        let mut with = |dialect: Dialect| {
            Model::compile(sources, name, text, resolver, &dialect.vocabulary(), &[])
                .map(|model| (model, dialect))
        };
        let first = with(said);
        if said != Dialect::Plain || first.is_ok() {
            return first;
        }
        let all = [
            Architecture::X86,
            Architecture::RiscV,
            Architecture::AArch64,
            Architecture::Power,
            Architecture::Arm,
            Architecture::C11,
        ];
        all.into_iter().find_map(|a| with(Dialect::Of(a)).ok()).map_or(first, Ok)
    }
    /// Returns the names of the dialect.
    pub fn vocabulary(self) -> Vocabulary {
        match self {
            Dialect::Plain => {
                let mut v = crate::architecture::plain();
                for name in ["Acq", "Rel"] {
                    v.set(name);
                }
                v
            }
            Dialect::Of(a) => a.vocabulary(),
        }
    }
    /// Returns the sets that contain an operation, in addition to the standard ones.
    fn tags(self, kind: Kind, mark: Mark) -> &'static [&'static str] {
        match (self, kind, mark) {
            (Dialect::Plain, _, Mark::Acquire) => &["Acq"],
            (Dialect::Plain, _, Mark::Release) => &["Rel"],
            (Dialect::Plain, ..) => &[],
            (Dialect::Of(Architecture::X86), Kind::Fence, _) => &["MFENCE", "mfence"],
            (Dialect::Of(Architecture::RiscV), Kind::Fence, _) => &["Fence.rw.rw"],
            (Dialect::Of(Architecture::RiscV), _, Mark::Acquire) => &["Acq"],
            (Dialect::Of(Architecture::RiscV), _, Mark::Release) => &["Rel"],
            (Dialect::Of(Architecture::AArch64), Kind::Fence, _) => &["DMB.SY"],
            (Dialect::Of(Architecture::Power), Kind::Fence, _) => &["SYNC"],
            (Dialect::Of(Architecture::Arm), Kind::Fence, _) => &["DMB"],
            (Dialect::Of(Architecture::Arm), _, Mark::Acquire) => &["A"],
            (Dialect::Of(Architecture::Arm), _, Mark::Release) => &["L"],
            (Dialect::Of(Architecture::AArch64), _, Mark::Acquire) => &["A"],
            (Dialect::Of(Architecture::AArch64), _, Mark::Release) => &["L"],
            (Dialect::Of(Architecture::C11), Kind::Fence, _) => &["SC"],
            (Dialect::Of(Architecture::C11), _, Mark::Acquire) => &["ACQ", "A"],
            (Dialect::Of(Architecture::C11), _, Mark::Release) => &["REL", "A"],
            (Dialect::Of(Architecture::C11), _, Mark::Plain) => &["RLX", "A"],
            (Dialect::Of(_), ..) => &[],
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
            _ => &[],
        };
        skeleton.relate(crate::execution::RelationId::SAME_INSTANCE, read, write);
        skeleton.relate(crate::execution::RelationId::SAME_INSTANCE, write, read);
        skeleton.relate(crate::execution::RelationId::AMO, read, write);
        for tag in tags {
            if let Some(crate::execution::Name::Set(id)) = vocabulary.find(tag) {
                [read, write].into_iter().for_each(|e| skeleton.tag(id, e));
            }
        }
    }
    /// Builds a skeleton of plain operations in the dialect, given its vocabulary.
    pub fn skeleton(self, vocabulary: &Vocabulary, events: &[(Event, Mark)]) -> Skeleton {
        let mut s = Skeleton::new(vocabulary, events.iter().map(|e| e.0.clone()).collect());
        for (i, (event, mark)) in events.iter().enumerate() {
            for tag in self.tags(event.kind, *mark) {
                if let Some(crate::execution::Name::Set(id)) = vocabulary.find(tag) {
                    s.tag(id, i);
                }
            }
        }
        debug_assert!(s.set(SetId::ALL).len() == events.len());
        s
    }
}
