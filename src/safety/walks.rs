//! Random walks of a program on its machine, as a check of an answer that relies on a proof.
//!
//! Input: a program for a number of threads, a memory model. Output: the number of states reached,
//! or the walk to an unsafe one. Words have their widths and wrap. Initial registers may contain
//! any word, including words at their bounds and large numbers. Cost: linear in the steps.

use mu_base::Diagnostic;
use mu_base::random::Random;
use mu_program::FLAGS;
use mu_program::expr::flags;
use mu_program::machine::Machine;
use mu_program::memory::MemoryModel;
use mu_program::nasm::X86Program;

/// Candidate values of initial registers.
const WORDS: [u64; 10] =
    [0, 1, 2, 3, 0x7f, 0x7fff_ffff, 0x8000_0000, 0x8000_0001, 0xffff_fffe, 0xffff_ffff];
/// Largest number of stores in all buffers together.
const MAX_STORES: usize = 12;

/// The parameters of a set of walks.
pub struct Walks<'a> {
    /// The program.
    pub program: &'a X86Program,
    /// The memory model.
    pub memory: &'static dyn MemoryModel,
    /// True if registers initially contain any word, and flags any value.
    pub any_registers: bool,
    /// Number of walks.
    pub walks: usize,
    /// Largest number of steps of a walk.
    pub length: usize,
    /// Seed, for replay.
    pub seed: u64,
    /// True when the time is used up.
    pub enough: &'a dyn Fn() -> bool,
}

/// A walk to an unsafe state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsafe {
    /// The steps: a thread, and the text of its instruction; `None` if a store reaches memory.
    pub steps: Vec<(usize, Option<String>)>,
    /// The unsafe state as text.
    pub state: String,
}

/// Runs random walks. Returns the number of states, or the first walk to an unsafe state.
///
/// # Errors
///
/// Those of steps of the machine.
pub fn walk(wanted: &Walks) -> Result<Result<usize, Unsafe>, Diagnostic> {
    let super::reach::ObservedMachine { machine, choices, .. } =
        super::reach::observed_machine(wanted.program, wanted.memory, None);
    let mut random = Random::new(wanted.seed);
    let mut states = 0;
    for _ in 0..wanted.walks {
        if (wanted.enough)() {
            break;
        }
        let mut state = machine.initial();
        if wanted.any_registers {
            for (t, thread) in machine.program.threads.iter().enumerate() {
                if machine.live(t, 0)[usize::from(FLAGS)] {
                    let set = random.next_u64() & flags::ALL;
                    state[machine.register_slot(t, FLAGS)] = machine.encode(set);
                }
                for r in (2..thread.registers.len()).filter(|r| machine.live(t, 0)[*r]) {
                    let word = if random.chance(3, 4) {
                        *random.choose(&WORDS)
                    } else {
                        random.next_u64() & 0xffff_ffff
                    };
                    state[machine.register_slot(t, r as _)] = machine.encode(word);
                }
            }
        }
        let mut steps = Vec::new();
        let mut thread = 0;
        for _ in 0..=wanted.length {
            states += 1;
            if choices.iter().any(|(p, all)| all.iter().any(|c| p.holds(&machine, &state, c))) {
                return Ok(Err(Unsafe { steps, state: text(&machine, &state) }));
            }
            if random.chance(2, 5) {
                thread = random.below(machine.program.threads.len());
            }
            let Some(made) = step(&machine, &mut random, thread, &mut state)? else {
                if machine.is_final(&state) {
                    break;
                }
                thread = random.below(machine.program.threads.len());
                continue;
            };
            steps.push((thread, made));
        }
    }
    Ok(Ok(states))
}

/// Executes a step of a thread, or moves one of its buffered stores to memory; `None` if there is
/// no step.
fn step(
    machine: &Machine,
    random: &mut Random,
    thread: usize,
    state: &mut [u32],
) -> Result<Option<Option<String>>, Diagnostic> {
    let mut ready = Vec::new();
    machine.ready(thread, state, &mut |at| ready.push(at));
    let stores: usize = (0..machine.program.threads.len())
        .filter_map(|t| machine.buffer_slot(t))
        .map(|b| machine.buffer(state[b]).len())
        .sum();
    if stores < MAX_STORES && (ready.is_empty() || random.chance(3, 4)) {
        let place = machine.place(thread, state);
        let code = &machine.program.threads[thread];
        let text =
            code.steps.get(place).map(|s| code.instructions[s.instruction as usize].text.clone());
        if machine.advance(thread, state)?.is_some() {
            return Ok(Some(text));
        }
    }
    if ready.is_empty() {
        return Ok(None);
    }
    machine.flush(thread, *random.choose(&ready), state)?;
    Ok(Some(None))
}

/// Prints positions, registers, memory, and buffers.
fn text(machine: &Machine, state: &[u32]) -> String {
    let mut parts = Vec::new();
    for (t, thread) in machine.program.threads.iter().enumerate() {
        let place = machine.place(t, state);
        let at = thread
            .steps
            .get(place)
            .map_or("the end", |s| thread.instructions[s.instruction as usize].text.as_str());
        parts.push(format!("{} at `{at}`", thread.name));
        for (r, register) in thread
            .registers
            .iter()
            .enumerate()
            .filter(|(r, _)| place < thread.steps.len() && machine.live(t, place)[*r])
        {
            parts.push(format!(
                "{}:{} = {}",
                thread.name,
                register.name,
                machine.register(t, r as _, state)
            ));
        }
        let stores = super::reach::buffer_content(machine, t, state)
            .into_iter()
            .map(|(name, n)| format!("{name} = {n}"))
            .collect::<Vec<_>>();
        if !stores.is_empty() {
            parts.push(format!("buffer of {}, oldest first: {}", thread.name, stores.join("; ")));
        }
    }
    parts.extend(
        super::reach::in_memory(machine, state)
            .into_iter()
            .map(|(name, n)| format!("{name} = {n}")),
    );
    parts.join(", ")
}
