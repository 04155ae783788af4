//! Memory models for litmus tests: compiled for an architecture, with the tags of events as sets of
//! its vocabulary.
//!
//! Input: a model's text and the files that it includes. Output: a [`Judge`], shared by all
//! threads; each thread creates its own sessions.

use crate::code::Arch;
use crate::kernel::KernelLanguage;
use mu_axioms::architecture::{INSIDE, REGISTERS};
use mu_axioms::cat::{CatModel, Resolver, Session};
use mu_axioms::{
    Architecture, Event, EventKind, NameMeaning, Relation, RelationId, SetId, Skeleton,
};
use mu_base::{Diagnostic, SourceMap, narrow};

/// A model compiled for an architecture.
#[derive(Debug)]
pub struct Judge {
    /// The model.
    pub model: CatModel,
    /// True if the model implies coherence, so that incoherent choices need not be judged.
    pub coherent: bool,
    /// True if, in addition, the read of an instruction is before its write.
    pub ordered_updates: bool,
    /// True if a read-modify-write of C or RISC-V must be two events related by `rmw`, because the
    /// model forbids a single event that reads and writes, or does not recognise its atomicity. If
    /// `fr` is `rf^-1;co`, such an event is before itself.
    pub pairs: bool,
    /// True if the model reads which events are parts of one access, so that it can judge accesses
    /// of mixed sizes.
    pub mixed_sizes: bool,
    /// True if the model reads events of registers, branches, or the order inside instructions.
    pub inside: bool,
    /// True if the model computes dependencies itself (`catdep`), so that its events include those
    /// of registers.
    pub computes_dependencies: bool,
    /// The flags of `undefined_unless`: a program that has one may do anything.
    pub undefined: Vec<String>,
    /// The sets of each tag bit.
    tags: Vec<Vec<SetId>>,
    /// The architecture of the model.
    family: Architecture,
}

/// Returns the architecture of models for a test's architecture.
pub fn family(arch: Arch) -> Architecture {
    match arch {
        Arch::X86 | Arch::X86_64 => Architecture::X86,
        Arch::RiscV => Architecture::RiscV,
        Arch::AArch64 => Architecture::AArch64,
        Arch::Power => Architecture::Power,
        Arch::Arm => Architecture::Arm,
        Arch::C => Architecture::C11,
        Arch::Linux => Architecture::Linux,
    }
}

impl Judge {
    /// Compiles a model for an architecture.
    pub fn compile(
        sources: &mut SourceMap,
        arch: Arch,
        name: &str,
        text: &str,
        resolver: Resolver<'_>,
    ) -> Result<Self, Diagnostic> {
        Self::compile_with(sources, arch, name, text, resolver, &[])
    }
    /// Compiles a model for an architecture, with variants (`if "mixed"`) that hold.
    pub fn compile_with(
        sources: &mut SourceMap,
        arch: Arch,
        name: &str,
        text: &str,
        resolver: Resolver<'_>,
        variants: &[&str],
    ) -> Result<Self, Diagnostic> {
        let vocabulary = family(arch).vocabulary();
        let model = CatModel::compile(sources, name, text, resolver, &vocabulary, variants)
            .map_err(|d| {
                d.note(format!("the model is read for a test that is written for {}", arch.name()))
            })?;
        let set = |name: &str| match vocabulary.find(name) {
            Some(NameMeaning::Set(id)) => Some(id),
            _ => None,
        };
        // If a model does not mention `EX`, its library is of an edition in which `X` also contains
        // the accesses of exclusives.
        let exclusives = set("EX").filter(|ex| model.reads_set(*ex));
        let old = if exclusives.is_none() { set("X") } else { None };
        let tags = (arch.tags().iter())
            .map(|names| {
                let named = names.split(' ').filter_map(set);
                named.chain(old.filter(|_| *names == "EX")).collect()
            })
            .collect();
        let undefined = model.undefined_flags().into_iter().map(str::to_string).collect();
        let mixed_sizes =
            model.reads_relation(RelationId::SI) || model.reads_relation(RelationId::SM);
        // The order inside instructions is known without events of registers.
        let needed = REGISTERS.iter().chain(INSIDE).filter(|name| **name != "iico_order");
        let inside = needed.into_iter().any(|name| model.depends_on(name));
        let coherence = model.coherence();
        let mut judge = Self {
            inside,
            computes_dependencies: model.head().iter().any(|word| word == "catdep"),
            coherent: arch == Arch::C && model.is_coherent() || coherence.accesses,
            ordered_updates: arch == Arch::C || coherence.updates,
            pairs: false,
            mixed_sizes,
            undefined,
            tags,
            model,
            family: family(arch),
        };
        judge.pairs = judge.needs_pairs(arch)?;
        Ok(judge)
    }
    /// Compiles a model of the Linux kernel, after the `.bell` file of its language.
    pub fn of_kernel(
        sources: &mut SourceMap,
        language: &KernelLanguage,
        name: &str,
        text: &str,
        resolver: Resolver<'_>,
    ) -> Result<Self, Diagnostic> {
        let mut vocabulary = Architecture::Linux.vocabulary();
        let tags = language
            .sets()
            .into_iter()
            .map(|names| names.iter().map(|n| vocabulary.set(n)).collect::<Vec<_>>());
        let tags: Vec<Vec<SetId>> = tags.collect();
        let (bell, model) = (format!("{name} (bell)"), format!("{name} (model)"));
        let resolver = |file: &str| match file {
            f if f == bell => Some(language.bell_file.1.clone()),
            f if f == model => Some(text.to_string()),
            f => resolver(f),
        };
        let title = mu_axioms::cat::head(text).pop().unwrap_or_default().replace('"', "'");
        let whole = format!("\"{title}\"\ninclude \"{bell}\"\ninclude \"{model}\"\n");
        let variants: Vec<&str> = language.variants.iter().map(String::as_str).collect();
        let model = CatModel::compile(sources, name, &whole, &resolver, &vocabulary, &variants)?;
        let undefined = model.undefined_flags().into_iter().map(str::to_string).collect();
        Ok(Self {
            coherent: model.is_coherent(),
            ordered_updates: true,
            pairs: false,
            mixed_sizes: false,
            inside: false,
            computes_dependencies: false,
            undefined,
            tags,
            model,
            family: Architecture::Linux,
        })
    }
    /// True if it can judge tests of an architecture.
    pub fn is_for(&self, arch: Arch) -> bool {
        self.family == family(arch)
    }
    /// True if updates must be two events. Two executions decide this: a single update, which must
    /// be allowed, and two updates that read the same value, which must not.
    fn needs_pairs(&self, arch: Arch) -> Result<bool, Diagnostic> {
        let tags = match arch {
            Arch::C => arch.tag("RLX") | arch.tag("A"),
            Arch::RiscV => arch.tag("AMO"),
            _ => return Ok(false),
        };
        let mut session = Session::new(&self.model);
        let mut allows = |updates: usize| {
            let access =
                (0..updates).map(|t| Event::access(narrow::index(t), 1, EventKind::Update, 0, 1));
            let events: Vec<Event> = std::iter::once(Event::initial(0, 0)).chain(access).collect();
            let n = events.len();
            let mut skeleton = Skeleton::new(self.model.vocabulary(), events);
            for e in 1..n {
                self.sets(tags).for_each(|set| skeleton.tag(set, e));
            }
            let rf = Relation::from_pairs(n, (1..n).map(|e| (0, e)));
            let co = Relation::from_pairs(n, (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b))));
            session.start(&skeleton)?.allows(&rf, &co)
        };
        Ok(!allows(1)? || allows(2)?)
    }
    /// Returns the sets of the tags of an event.
    pub fn sets(&self, tags: u64) -> impl Iterator<Item = SetId> + '_ {
        self.tags
            .iter()
            .enumerate()
            .filter(move |(i, _)| tags >> i & 1 == 1)
            .flat_map(|(_, sets)| sets.iter().copied())
    }
}
