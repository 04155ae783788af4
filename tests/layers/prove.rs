//! All tests of the layer `prove` that use public items only.

#[path = "../../src/prove/tests/audits.rs"]
mod audits;
#[path = "../../src/prove/tests/banks.rs"]
mod banks;
#[path = "../../src/prove/tests/decisions.rs"]
mod decisions;
#[path = "../../src/prove/tests/derived.rs"]
mod derived;
#[path = "../../src/prove/tests/grammar.rs"]
mod grammar;
#[path = "../../src/prove/tests/obligations.rs"]
mod obligations;
#[path = "../../src/prove/tests/premises.rs"]
mod premises;
#[path = "../../src/prove/tests/proofs.rs"]
mod proofs;
#[path = "../../src/prove/tests/random.rs"]
mod random;
#[path = "../../src/prove/tests/sharing.rs"]
mod sharing;
#[path = "../../src/prove/tests/translations.rs"]
mod translations;
#[path = "../../src/prove/tests/tries.rs"]
mod tries;
#[path = "../../src/prove/tests/words.rs"]
mod words;
#[path = "../../src/prove/tests/x86.rs"]
mod x86;
