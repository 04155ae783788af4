//! The built-in memory models: their texts in `specs/memory`, by name, and the dialect of each.
//!
//! Operations of histories are translated to the vocabulary of the model's architecture
//! ([`Dialect`]), so models of different architectures can judge one execution.

use mu_base::{Diagnostic, SourceId, SourceMap};

use crate::architecture::Architecture;
use crate::cat::{Bell, CatModel};

pub use crate::dialect::{Dialect, FenceSide, MemoryOrdering};

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
    "power" Dialect::Of(Architecture::Power),
    "armv7" Dialect::Of(Architecture::Arm),
    "lkmm" Dialect::Of(Architecture::Linux),
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

/// Files that models include. Those of `memory/library` define the names of the files of the herd
/// tools with the same name, so that released models need no other library.
const LIBRARY: &[(&str, &str)] = &[
    ("stdlib.cat", include_str!("memory/stdlib.cat")),
    ("views.cat", include_str!("memory/views.cat")),
    ("release.cat", include_str!("memory/release.cat")),
    ("lkmm.bell", include_str!("memory/lkmm.bell")),
    ("lkmm.def", include_str!("memory/lkmm.def")),
    ("cross.cat", include_str!("memory/library/cross.cat")),
    ("cos.cat", include_str!("memory/library/cos.cat")),
    ("cos-opt.cat", include_str!("memory/library/cos-opt.cat")),
    ("cos-ok-opt.cat", include_str!("memory/library/cos-ok-opt.cat")),
    ("cos-no-opt.cat", include_str!("memory/library/cos-no-opt.cat")),
    ("filters.cat", include_str!("memory/library/filters.cat")),
    ("fences.cat", include_str!("memory/library/fences.cat")),
    ("x86fences.cat", include_str!("memory/library/x86fences.cat")),
    ("ppcfences.cat", include_str!("memory/library/ppcfences.cat")),
    ("armfences.cat", include_str!("memory/library/armfences.cat")),
    ("aarch64fences.cat", include_str!("memory/library/aarch64fences.cat")),
    ("riscv-defs.cat", include_str!("memory/library/riscv-defs.cat")),
];

/// Returns the text of a file of `specs/memory`, which is embedded in this package; `None` if there
/// is no such file.
pub fn file(name: &str) -> Option<String> {
    let library = LIBRARY.iter().find(|f| f.0 == name).map(|f| f.1);
    library
        .or_else(|| {
            KNOWN.iter().find(|k| name.strip_suffix(".cat") == Some(k.name)).map(|k| k.text)
        })
        .map(str::to_string)
}

/// Returns the sets of the annotations of the model `lkmm`.
pub(crate) fn kernel_annotations() -> Vec<String> {
    let bell = file("lkmm.bell").and_then(|text| Bell::parse(SourceId::FIRST, &text).ok());
    bell.unwrap_or_default().annotations.iter().map(|a| Bell::set_name(a)).collect()
}

/// Looks up a model by name; `None` if there is none.
pub fn by_name(name: &str) -> Option<&'static BuiltinModel> {
    KNOWN.iter().find(|k| k.name == name)
}

impl BuiltinModel {
    /// Compiles the model. An error is a defect of this program and has a position in `sources`.
    pub fn compile(&self, sources: &mut SourceMap) -> Result<CatModel, Diagnostic> {
        self.compile_for(self.dialect, sources)
    }
    fn compile_for(
        &self,
        dialect: Dialect,
        sources: &mut SourceMap,
    ) -> Result<CatModel, Diagnostic> {
        let name = format!("{}.cat", self.name);
        CatModel::compile(sources, &name, self.text, &file, &dialect.vocabulary(), &[])
    }
    /// Returns the architectures of which the model judges litmus tests, for messages. Cost: one
    /// compilation for each architecture.
    pub fn architectures(&self) -> Vec<&'static str> {
        let all = Architecture::ALL.into_iter().map(Dialect::Of);
        all.filter(|dialect| self.compile_for(*dialect, &mut SourceMap::new()).is_ok())
            .map(Dialect::architecture)
            .collect()
    }
}

impl Dialect {
    /// Compiles the model of a file and determines its dialect. If its head names no architecture,
    /// the first dialect that has every name of the model is used. For example, a `riscv.cat` with
    /// the head `Partial` uses `Fence.rw.rw`, which only RISC-V has. Error: that of the dialect of
    /// the head.
    pub fn compile(
        sources: &mut SourceMap,
        name: &str,
        text: &str,
        resolver: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(CatModel, Dialect), Diagnostic> {
        let said = Dialect::of_head(&crate::cat::head(text));
        let mut with = |dialect: Dialect| {
            CatModel::compile(sources, name, text, resolver, &dialect.vocabulary(), &[])
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
}
