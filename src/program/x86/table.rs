//! Instruction table of x86: operands, widths, effect and flags of each instruction, for the
//! machine, the axioms and the proofs.
//!
//! The key is a mnemonic in lower case, in Intel's form or with AT&T's suffix of the width. All
//! readers of instructions use this table, so every route supports the same instructions. The
//! result and the flags of an operator are defined by [`BinOp`].

use super::super::Fence;
use super::super::expr::{BinOp, FlagTest, Width};
use mu_base::words::Token;
use mu_base::{Diagnostic, Stage};

/// The effect of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstructionKind {
    /// A copy.
    Mov,
    /// A copy with sign or zero extension.
    Extend {
        /// True for sign extension.
        signed: bool,
        /// The width of the source, if the mnemonic implies it.
        from: Option<Width>,
    },
    /// The address of a memory operand.
    Lea,
    /// Applies the operator to destination and source; the result replaces the destination.
    Arithmetic(BinOp),
    /// Sets the flags of an operator without storing its result.
    Compare(BinOp),
    /// An operator on the destination alone.
    Unary(UnaryOperation),
    /// Exchanges its operands; locked if one is in memory.
    Exchange,
    /// Exchanges its operands and adds them.
    ExchangeAdd,
    /// Compares with the accumulator, then stores the source or loads the accumulator.
    CompareExchange,
    /// Sets a byte to the result of a test of the flags.
    Set(FlagTest),
    /// A copy if the flags pass a test.
    MoveIf(FlagTest),
    /// A jump.
    Jump,
    /// A jump if the flags pass a test.
    JumpIf(FlagTest),
    /// A fence.
    Fence(Fence),
    /// A fence of loads. It has no effect, because loads are always in order.
    LoadFence,
    /// No effect.
    Nothing,
    /// The end of the thread.
    Return,
    /// The prefix of atomic instructions.
    Lock,
}

/// Operators of one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOperation {
    /// Adds one.
    Inc,
    /// Subtracts one.
    Dec,
    /// Subtracts from zero.
    Neg,
    /// Complements all bits.
    Not,
}

impl UnaryOperation {
    /// Returns the equivalent operator of two operands with its operands, given the old value;
    /// `number` builds constants of the width.
    pub fn operation<T>(self, old: T, number: impl Fn(i64) -> T) -> (BinOp, T, T) {
        match self {
            UnaryOperation::Inc => (BinOp::Inc, old, number(1)),
            UnaryOperation::Dec => (BinOp::Dec, old, number(1)),
            UnaryOperation::Neg => (BinOp::Sub, number(0), old),
            UnaryOperation::Not => (BinOp::Xor, old, number(-1)),
        }
    }
    /// True if it sets flags.
    pub fn sets_flags(self) -> bool {
        self != UnaryOperation::Not
    }
}

/// The form of an instruction's operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operands {
    /// None.
    None,
    /// Any number, ignored.
    Any,
    /// A label.
    Label,
    /// A register or memory.
    One,
    /// Destination and source.
    Two,
    /// Destination and count; the count is optional and 1 by default.
    Count,
}

/// An instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstructionEntry {
    /// The mnemonic without the suffix of the width. For `j`, `set` and `cmov`: the part before the
    /// condition.
    pub name: &'static str,
    /// Its operands.
    pub operands: Operands,
    /// True if AT&T's suffix of the width may follow.
    pub sized: bool,
    /// True if the prefix `lock` is valid when its destination is in memory.
    pub lockable: bool,
    /// Its effect. Families use the condition "equal" here.
    pub kind: InstructionKind,
}

const fn entry(
    name: &'static str,
    operands: Operands,
    sized: bool,
    lockable: bool,
    kind: InstructionKind,
) -> InstructionEntry {
    InstructionEntry { name, operands, sized, lockable, kind }
}

const EQUAL: FlagTest = FlagTest { kind: super::super::expr::TestKind::Equal, negated: false };
const ZERO: InstructionKind = InstructionKind::Extend { signed: false, from: None };
const SIGN: InstructionKind = InstructionKind::Extend { signed: true, from: None };

/// All instructions. The last three are families with one instruction for each condition.
pub const TABLE: [InstructionEntry; 45] = [
    entry("mov", Operands::Two, true, false, InstructionKind::Mov),
    // As in the models of the herd tools, a non-temporal store is ordered like other stores.
    entry("movnti", Operands::Two, true, false, InstructionKind::Mov),
    entry("movzx", Operands::Two, true, false, ZERO),
    entry("movsx", Operands::Two, true, false, SIGN),
    entry("movsxd", Operands::Two, false, false, SIGN),
    entry("lea", Operands::Two, true, false, InstructionKind::Lea),
    entry("add", Operands::Two, true, true, InstructionKind::Arithmetic(BinOp::Add)),
    entry("sub", Operands::Two, true, true, InstructionKind::Arithmetic(BinOp::Sub)),
    entry("and", Operands::Two, true, true, InstructionKind::Arithmetic(BinOp::And)),
    entry("or", Operands::Two, true, true, InstructionKind::Arithmetic(BinOp::Or)),
    entry("xor", Operands::Two, true, true, InstructionKind::Arithmetic(BinOp::Xor)),
    entry("shl", Operands::Count, true, false, InstructionKind::Arithmetic(BinOp::Shl)),
    entry("sal", Operands::Count, true, false, InstructionKind::Arithmetic(BinOp::Shl)),
    entry("shr", Operands::Count, true, false, InstructionKind::Arithmetic(BinOp::Shr)),
    entry("sar", Operands::Count, true, false, InstructionKind::Arithmetic(BinOp::Sar)),
    entry("cmp", Operands::Two, true, false, InstructionKind::Compare(BinOp::Sub)),
    entry("test", Operands::Two, true, false, InstructionKind::Compare(BinOp::And)),
    entry("inc", Operands::One, true, true, InstructionKind::Unary(UnaryOperation::Inc)),
    entry("dec", Operands::One, true, true, InstructionKind::Unary(UnaryOperation::Dec)),
    entry("neg", Operands::One, true, true, InstructionKind::Unary(UnaryOperation::Neg)),
    entry("not", Operands::One, true, true, InstructionKind::Unary(UnaryOperation::Not)),
    entry("xchg", Operands::Two, true, true, InstructionKind::Exchange),
    entry("xadd", Operands::Two, true, true, InstructionKind::ExchangeAdd),
    entry("cmpxchg", Operands::Two, true, true, InstructionKind::CompareExchange),
    entry("jmp", Operands::Label, false, false, InstructionKind::Jump),
    entry("mfence", Operands::None, false, false, InstructionKind::Fence(Fence::Full)),
    entry("sfence", Operands::None, false, false, InstructionKind::Fence(Fence::Store)),
    entry("lfence", Operands::None, false, false, InstructionKind::LoadFence),
    entry("nop", Operands::Any, true, false, InstructionKind::Nothing),
    entry("pause", Operands::None, false, false, InstructionKind::Nothing),
    entry("clflush", Operands::One, false, false, InstructionKind::Nothing),
    entry("clflushopt", Operands::One, false, false, InstructionKind::Nothing),
    entry("clwb", Operands::One, false, false, InstructionKind::Nothing),
    entry("endbr64", Operands::None, false, false, InstructionKind::Nothing),
    entry("endbr32", Operands::None, false, false, InstructionKind::Nothing),
    entry("ret", Operands::None, false, false, InstructionKind::Return),
    entry("lock", Operands::None, false, false, InstructionKind::Lock),
    entry(
        "movzb",
        Operands::Two,
        true,
        false,
        InstructionKind::Extend { signed: false, from: Some(Width::W8) },
    ),
    entry(
        "movzw",
        Operands::Two,
        true,
        false,
        InstructionKind::Extend { signed: false, from: Some(Width::W16) },
    ),
    entry(
        "movsb",
        Operands::Two,
        true,
        false,
        InstructionKind::Extend { signed: true, from: Some(Width::W8) },
    ),
    entry(
        "movsw",
        Operands::Two,
        true,
        false,
        InstructionKind::Extend { signed: true, from: Some(Width::W16) },
    ),
    entry(
        "movsl",
        Operands::Two,
        true,
        false,
        InstructionKind::Extend { signed: true, from: Some(Width::W32) },
    ),
    entry("j", Operands::Label, false, false, InstructionKind::JumpIf(EQUAL)),
    entry("set", Operands::One, false, false, InstructionKind::Set(EQUAL)),
    entry("cmov", Operands::Two, true, false, InstructionKind::MoveIf(EQUAL)),
];

/// Number of families in [`TABLE`].
const FAMILIES: usize = 3;

fn suffix(letter: &str) -> Option<Width> {
    match letter {
        "b" => Some(Width::W8),
        "w" => Some(Width::W16),
        "l" => Some(Width::W32),
        "q" => Some(Width::W64),
        _ => None,
    }
}

/// Looks up a mnemonic without a suffix of the width.
fn plain(word: &str) -> Option<InstructionEntry> {
    let (single, families) = TABLE.split_at(TABLE.len() - FAMILIES);
    // AT&T's `movzb` always has a suffix.
    let named = single
        .iter()
        .find(|e| {
            e.name == word && !matches!(e.kind, InstructionKind::Extend { from: Some(_), .. })
        })
        .copied();
    named.or_else(|| {
        families.iter().find_map(|e| {
            let test = FlagTest::of_suffix(word.strip_prefix(e.name)?)?;
            let kind = match e.kind {
                InstructionKind::JumpIf(_) => InstructionKind::JumpIf(test),
                InstructionKind::Set(_) => InstructionKind::Set(test),
                _ => InstructionKind::MoveIf(test),
            };
            Some(InstructionEntry { kind, ..*e })
        })
    })
}

/// Looks up a mnemonic; `None` if it is unknown. Returns also the width of AT&T's suffix.
pub fn mnemonic(word: &str) -> Option<(InstructionEntry, Option<Width>)> {
    if let Some(entry) = plain(word) {
        return Some((entry, None));
    }
    if !word.is_ascii() {
        return None;
    }
    let (stem, last) = word.split_at(word.len().checked_sub(1)?);
    let width = suffix(last)?;
    let entry = plain(stem).or_else(|| {
        TABLE
            .iter()
            .find(|e| e.name == stem && matches!(e.kind, InstructionKind::Extend { .. }))
            .copied()
    })?;
    entry.sized.then_some((entry, Some(width)))
}

/// Lists the instructions by name, for messages.
pub fn known_instructions() -> String {
    let (single, families) = TABLE.split_at(TABLE.len() - FAMILIES);
    let names = single
        .iter()
        .filter(|e| {
            !matches!(e.kind, InstructionKind::Extend { from: Some(_), .. } | InstructionKind::Lock)
        })
        .map(|e| e.name.to_string());
    let all: Vec<String> = names.chain(families.iter().map(|e| format!("{}*", e.name))).collect();
    format!("{}, and the prefix lock", all.join(", "))
}

/// Builds the error for an unknown mnemonic.
pub fn unknown_instruction(word: &Token<'_>) -> Diagnostic {
    let error = Diagnostic::at(
        Stage::Unsupported,
        word.span,
        format!("unknown instruction `{}`", word.text),
    );
    error.note(format!("known: {}", known_instructions()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mnemonics_and_their_widths() {
        let of = |word: &str| mnemonic(word).map(|(entry, width)| (entry.kind, width));
        assert_eq!(of("movl"), Some((InstructionKind::Mov, Some(Width::W32))));
        assert_eq!(of("shl"), Some((InstructionKind::Arithmetic(BinOp::Shl), None)));
        assert_eq!(
            of("movzbl"),
            Some((
                InstructionKind::Extend { signed: false, from: Some(Width::W8) },
                Some(Width::W32)
            ))
        );
        assert_eq!(
            of("movswq"),
            Some((
                InstructionKind::Extend { signed: true, from: Some(Width::W16) },
                Some(Width::W64)
            ))
        );
        assert_eq!(
            of("movslq"),
            Some((
                InstructionKind::Extend { signed: true, from: Some(Width::W32) },
                Some(Width::W64)
            ))
        );
        assert_eq!(of("cmpxchgq"), Some((InstructionKind::CompareExchange, Some(Width::W64))));
        assert_eq!(of("cmovcl").map(|m| m.1), Some(Some(Width::W32)));
        assert_eq!(of("jne").map(|m| m.1), Some(None));
        for wrong in [
            "", "b", "movx", "mfencel", "jmpl", "fsqrt", "é", "lockb", "seteb", "movzb", "movsl",
            "j", "set",
        ] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn every_entry_is_found_by_its_name() {
        for e in TABLE {
            let conditional = matches!(
                e.kind,
                InstructionKind::JumpIf(_) | InstructionKind::Set(_) | InstructionKind::MoveIf(_)
            );
            let word = if conditional { format!("{}e", e.name) } else { e.name.to_string() };
            let word = if matches!(e.kind, InstructionKind::Extend { from: Some(_), .. }) {
                format!("{word}l")
            } else {
                word
            };
            assert_eq!(mnemonic(&word).map(|m| m.0), Some(e), "{word}");
        }
    }
}
