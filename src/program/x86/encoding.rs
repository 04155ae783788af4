//! Operands without an x86 encoding (Intel SDM volume 2). They are rejected with their position,
//! because they have no meaning.
//!
//! If the other order of operands has an encoding, the error is marked so that the caller tries
//! that order.

use super::super::expr::Width;
use super::super::registers;
use super::lower::Lowered;
use super::operand::Operand;
use super::table::InstructionKind;
use super::{Assembler, OperandError};
use mu_base::{Diagnostic, Span, Stage};

fn refuse<T>(span: Span, message: String, order: bool) -> Result<T, OperandError> {
    Err(OperandError { diagnostic: Diagnostic::at(Stage::Type, span, message), order })
}

/// Rejects a number of more than 32 bits in a 64-bit instruction. Only a move to a register has
/// one; other instructions sign-extend 32 bits.
pub(super) fn expect_small_number(
    word: &str,
    width: Width,
    operands: &[&Operand],
) -> Result<(), OperandError> {
    let moves = word.to_ascii_lowercase().starts_with("mov")
        && operands.iter().any(|o| matches!(o, Operand::Register(..)));
    for operand in operands {
        if let Operand::Immediate(n, span) = operand
            && width == Width::W64
            && !moves
            && i32::try_from(*n).is_err()
        {
            let message = format!(
                "{n} in `{word}`, expected a number of 32 bits with a sign: the instruction extends it to 64 bits"
            );
            return refuse(*span, message, false);
        }
    }
    Ok(())
}

impl Assembler {
    /// Rejects operands of two-operand instructions without an encoding.
    pub(super) fn expect_encodable(
        &self,
        i: &Lowered<'_>,
        kind: InstructionKind,
        target: &Operand,
        source: &Operand,
    ) -> Result<(), OperandError> {
        let word = i.word;
        match kind {
            InstructionKind::ExchangeAdd | InstructionKind::CompareExchange
                if !matches!(source, Operand::Register(..)) =>
            {
                return refuse(
                    source.span(),
                    format!("the source of `{word}` must be a register"),
                    target.is_register(),
                );
            }
            InstructionKind::MoveIf(_) | InstructionKind::Lea if !target.is_register() => {
                return refuse(
                    target.span(),
                    format!("the destination of `{word}` must be a register"),
                    source.is_register(),
                );
            }
            InstructionKind::MoveIf(_) if source.is_immediate() => {
                return refuse(
                    source.span(),
                    format!("the source of `{word}` must be a register or memory"),
                    false,
                );
            }
            InstructionKind::MoveIf(_) if byte(target) => {
                return refuse(
                    target.span(),
                    format!("`{word}` of 8 bits, expected 16, 32 or 64"),
                    false,
                );
            }
            _ => {}
        }
        // With the prefix of 64-bit registers, high bytes have no encoding.
        let high = [target, source]
            .into_iter()
            .find(|o| matches!(o, Operand::Register(_, view, _) if view.shift == 8));
        if let Some(high) = high
            && let Some(other) = [target, source].into_iter().find(|o| self.needs_prefix(o))
        {
            let message = format!(
                "`{word}` cannot combine a high byte of a register with a register of 64-bit mode"
            );
            let error = Diagnostic::at(Stage::Type, high.span().to(other.span()), message);
            return Err(error
                .note("registers of 64-bit mode are r8 to r15, sil, dil, bpl, spl, and all registers of 64 bits")
                .into());
        }
        Ok(())
    }
    /// True if an operand needs the prefix of 64-bit mode.
    fn needs_prefix(&self, operand: &Operand) -> bool {
        let numbered = |full: &str| {
            registers::parse(full).is_some() && full[1..].starts_with(|c: char| c.is_ascii_digit())
        };
        match operand {
            Operand::Register(_, view, _) => {
                let known = registers::parse(&view.full).is_some();
                let low = view.width == Width::W8
                    && ["rsi", "rdi", "rbp", "rsp"].contains(&view.full.as_str());
                numbered(&view.full) || low || known && view.width == Width::W64
            }
            Operand::Memory(address, ..) => {
                let mut found = false;
                address.registers(&mut |r| {
                    found |= numbered(&self.thread.registers[usize::from(r)].name)
                });
                found
            }
            Operand::Immediate(..) => false,
        }
    }
}

fn byte(operand: &Operand) -> bool {
    matches!(operand, Operand::Register(_, view, _) if view.width == Width::W8)
}
