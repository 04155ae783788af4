//! Tests of random walks: wrapping words, buffered stores, and registers with any initial word lead
//! to unsafe states; walks of safe programs run to the end.

use mu_base::SourceId;
use mu_program::memory;
use mu_program::nasm;
use mu_safety::walks::{Unsafe, Walks, walk};

/// Runs random walks of a program under TSO. Error: an unsafe state.
fn run_walks(
    data: &str,
    claim: &str,
    code: &str,
    threads: usize,
    any_registers: bool,
) -> Result<usize, Unsafe> {
    let text = format!(
        "begin shared_data\n{data}\nend shared_data\nbegin unsafe_prop\n{claim}\nend unsafe_prop\nbegin init_code\nstart_threads\nend init_code\n\
         begin thread_code\n{code}\nend thread_code\n"
    );
    let program = nasm::parse(SourceId::FIRST, &text, threads)
        .unwrap_or_else(|e| panic!("{}\n{text}", e.message));
    let wanted = Walks {
        program: &program,
        memory: memory::TSO,
        any_registers,
        walks: 200,
        length: 60,
        seed: 5,
        enough: &|| false,
    };
    walk(&wanted).unwrap()
}

#[test]
fn words_wrap_on_walks() {
    let code = "lock inc dword [n]\ncmp dword [n], 0\njl bad\njmp fin\nbad: nop\nfin: nop";
    assert!(run_walks("n dd 2147483646", "eip[$t] = bad", code, 1, false).is_ok());
    let found = run_walks("n dd 2147483646", "eip[$t] = bad", code, 2, false).unwrap_err();
    assert!(found.state.contains("n = -2147483648"), "{found:?}");
    assert!(
        found.steps.iter().any(|s| s.1.as_deref().is_some_and(|t| t.contains("inc"))),
        "{found:?}"
    );
    assert!(
        run_walks(
            "n dd 4294967295",
            "eip[$t] = bad",
            "cmp dword [n], -1\nje bad\njmp fin\nbad: nop\nfin: nop",
            1,
            false
        )
        .is_err()
    );
}

#[test]
fn buffers_and_registers_are_open_on_walks() {
    let claim = "eip[$t] = bad && n = 0";
    assert!(run_walks("n dd 0", claim, "mov dword [n], 1\nbad: nop", 1, false).is_err());
    assert!(
        run_walks("n dd 0", claim, "mov dword [n], 1\nmfence\nbad: nop", 1, false)
            .is_ok_and(|states| states > 400)
    );
    let code = "cmp eax, 2147483647\nje bad\njmp fin\nbad: nop\nfin: nop";
    assert!(run_walks("n dd 0", "eip[$t] = bad", code, 1, false).is_ok());
    assert!(run_walks("n dd 0", "eip[$t] = bad", code, 1, true).is_err());
}
