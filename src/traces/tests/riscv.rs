//! Instruction words with the accesses that the manual gives for them. The words are those of an
//! assembler.

use mu_traces::riscv::{AcquireRelease, AtomicOperation, MemoryInstruction as M, Register, decode};

fn load(size: u8, register: u8) -> Option<M> {
    Some(M::Load { size, target: Register::Integer(register), order: AcquireRelease::default() })
}

fn store(size: u8) -> Option<M> {
    Some(M::Store { size, order: AcquireRelease::default() })
}

#[test]
fn plain_accesses() {
    let rows = [
        (0x0005_b503, load(8, 10)), // ld a0, 0(a1)
        (0x0045_a503, load(4, 10)), // lw a0, 4(a1)
        (0x0045_e503, load(4, 10)), // lwu a0, 4(a1)
        (0x0005_9503, load(2, 10)), // lh a0, 0(a1)
        (0x0005_c503, load(1, 10)), // lbu a0, 0(a1)
        (0x00a5_b023, store(8)),    // sd a0, 0(a1)
        (0x00a5_a023, store(4)),    // sw a0, 0(a1)
        (0x00a5_8023, store(1)),    // sb a0, 0(a1)
        (
            0x0005_b507,
            Some(M::Load {
                size: 8,
                target: Register::Float(10),
                order: AcquireRelease::default(),
            }),
        ),
        (0x00a5_a027, store(4)), // fsw fa0, 0(a1)
        (0x00b5_0533, None),     // add a0, a0, a1
        (0x0000_100f, None),     // fence.i
        (0x0000_0073, None),     // ecall
        (0x02b5_0533, None),     // mul a0, a0, a1
    ];
    for (word, expected) in rows {
        assert_eq!(decode(word, 64), Ok(expected), "{word:08x}");
    }
}

#[test]
fn compressed_accesses() {
    let rows = [
        (0x4188, load(4, 10)), // c.lw a0, 0(a1)
        (0x6188, load(8, 10)), // c.ld a0, 0(a1)
        (0xc188, store(4)),    // c.sw a0, 0(a1)
        (0xe188, store(8)),    // c.sd a0, 0(a1)
        (0x4502, load(4, 10)), // c.lwsp a0, 0(sp)
        (0x60a2, load(8, 1)),  // c.ldsp ra, 8(sp)
        (0xe406, store(8)),    // c.sdsp ra, 8(sp)
        (0xc006, store(4)),    // c.swsp ra, 0(sp)
        (0x0001, None),        // c.nop
        (0x8082, None),        // ret
        (0x1141, None),        // addi sp, sp, -16
    ];
    for (word, expected) in rows {
        assert_eq!(decode(word, 64), Ok(expected), "{word:04x}");
    }
    // c.flw of RV32 has the word of c.ld.
    let float =
        Some(M::Load { size: 4, target: Register::Float(10), order: AcquireRelease::default() });
    assert_eq!(decode(0x6188, 32), Ok(float));
}

#[test]
fn atomics_and_fences() {
    let order = |acquire, release| AcquireRelease { acquire, release };
    let target = Register::Integer(10);
    // amoadd.d.aqrl a0, a1, (a2)
    assert_eq!(
        decode(0x06b6_352f, 64),
        Ok(Some(M::Update {
            operation: AtomicOperation::Add,
            size: 8,
            target,
            operand: 11,
            order: order(true, true)
        }))
    );
    // amoswap.w.rl zero, a1, (a2)
    assert_eq!(
        decode(0x0ab6_202f, 64),
        Ok(Some(M::Update {
            operation: AtomicOperation::Swap,
            size: 4,
            target: Register::Integer(0),
            operand: 11,
            order: order(false, true)
        }))
    );
    // lr.w.aq a0, (a2); sc.w.rl a0, a1, (a2)
    assert_eq!(
        decode(0x1406_252f, 64),
        Ok(Some(M::LoadReserved { size: 4, target, order: order(true, false) }))
    );
    assert_eq!(
        decode(0x1ab6_252f, 64),
        Ok(Some(M::StoreConditional { size: 4, target, order: order(false, true) }))
    );
    // lw.aqrl a3, (a2); sw.aqrl a0, (a1), of Zalasr
    let target = Register::Integer(13);
    let both = order(true, true);
    assert_eq!(decode(0x3606_26af, 64), Ok(Some(M::Load { size: 4, target, order: both })));
    assert_eq!(decode(0x3ea5_a02f, 64), Ok(Some(M::Store { size: 4, order: both })));
    let fence = |word| match decode(word, 64) {
        Ok(Some(M::Fence { before, after, tso })) => {
            (before.loads, before.stores, after.loads, after.stores, tso)
        }
        other => panic!("{word:08x}: {other:?}"),
    };
    assert_eq!(fence(0x0330_000f), (true, true, true, true, false)); // fence rw, rw
    assert_eq!(fence(0x0ff0_000f), (true, true, true, true, false)); // fence
    assert_eq!(fence(0x8330_000f), (true, true, true, true, true)); // fence.tso
    assert_eq!(fence(0x0230_000f), (true, false, true, true, false)); // fence r, rw
    assert_eq!(fence(0x0310_000f), (true, true, false, true, false)); // fence rw, w
}

#[test]
fn unknown_accesses_are_errors() {
    // Vectors, 16 bytes, cbo.zero, hlv.w, hsv.d.
    for word in
        [0x0205_6007, 0x0205_6027, 0x0005_c507, 0x1006_452f, 0x0045_200f, 0x6805_c573, 0x6ea5_c073]
    {
        assert!(decode(word, 64).is_err(), "{word:08x}");
    }
}
