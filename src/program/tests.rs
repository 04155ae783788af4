//! Tests: litmus facts of the literature under each memory model, and cases for the parser.

use super::herd;
use super::litmus::{self, Litmus};
use super::memory;
use crate::outcome::{Answer, OutcomeQuantifier, Verdict};
use mu_base::{Budget, Diagnostic, SourceId};

fn test(text: &str) -> Litmus {
    litmus::parse(SourceId::FIRST, text).unwrap_or_else(|e| panic!("{e:?}\n{text}"))
}

fn run(text: &str, model: &str) -> Answer {
    herd::run(&test(text), memory::by_name(model).unwrap(), None, &Budget::default())
        .unwrap()
        .answer
}

fn refusal(text: &str) -> Diagnostic {
    litmus::parse(SourceId::FIRST, text).expect_err(text)
}

/// Builds a test of abbreviated instructions: `Wx1` stores 1 to x, `Rx` loads x into the next
/// register, `F` is a fence, `S` a store fence, `Lx2` exchanges x with 2.
fn short(threads: &[&str], condition: &str) -> String {
    let mut columns: Vec<Vec<String>> = Vec::new();
    for thread in threads {
        let mut loads = ["EAX", "EBX", "ECX", "EDX"].iter();
        let mut code = Vec::new();
        for word in thread.split_whitespace() {
            let (op, rest) = word.split_at(1);
            code.extend(match op {
                "W" => vec![format!("MOV [{}],${}", &rest[..1], &rest[1..])],
                "R" => vec![format!("MOV {},[{rest}]", loads.next().unwrap())],
                "L" => {
                    vec![format!("MOV ESI,${}", &rest[1..]), format!("XCHG [{}],ESI", &rest[..1])]
                }
                "F" => vec!["MFENCE".into()],
                _ => vec!["SFENCE".into()],
            });
        }
        columns.push(code);
    }
    let rows = columns.iter().map(Vec::len).max().unwrap();
    let mut text = format!(
        "X86 short\n{{}}\n{} ;\n",
        (0..threads.len()).map(|i| format!("P{i}")).collect::<Vec<_>>().join(" | ")
    );
    for r in 0..rows {
        let cells: Vec<String> =
            columns.iter().map(|c| c.get(r).cloned().unwrap_or_default()).collect();
        text += &format!("{} ;\n", cells.join(" | "));
    }
    text + "exists (" + condition + ")\n"
}

/// Returns whether the outcome is allowed under SC, TSO, PSO.
fn allowed_by_models(threads: &[&str], condition: &str) -> [bool; 3] {
    ["sc", "tso", "pso"].map(|m| {
        let report = run(&short(threads, condition), m);
        assert_ne!(report.verdict, Verdict::Unknown);
        report.verdict == Verdict::Ok
    })
}

const NEVER: [bool; 3] = [false, false, false];
const TSO_ON: [bool; 3] = [false, true, true];
const PSO_ONLY: [bool; 3] = [false, false, true];

#[test]
fn store_buffering() {
    let sb = "0:EAX=0 /\\ 1:EAX=0";
    assert_eq!(allowed_by_models(&["Wx1 Ry", "Wy1 Rx"], sb), TSO_ON);
    assert_eq!(allowed_by_models(&["Wx1 F Ry", "Wy1 F Rx"], sb), NEVER);
    assert_eq!(allowed_by_models(&["Wx1 F Ry", "Wy1 Rx"], sb), TSO_ON);
    assert_eq!(allowed_by_models(&["Wx1 S Ry", "Wy1 S Rx"], sb), TSO_ON);
    assert_eq!(allowed_by_models(&["Lx1 Ry", "Ly1 Rx"], sb), NEVER);
    assert_eq!(allowed_by_models(&["Lx1 Ry", "Wy1 Rx"], sb), TSO_ON);
    assert_eq!(allowed_by_models(&["Wx1 Lz1 Ry", "Wy1 Lz2 Rx"], sb), NEVER);
    // A thread reads its own store before others can.
    assert_eq!(
        allowed_by_models(
            &["Wx1 Rx Ry", "Wy1 Ry Rx"],
            "0:EAX=1 /\\ 0:EBX=0 /\\ 1:EAX=1 /\\ 1:EBX=0"
        ),
        TSO_ON
    );
}

#[test]
fn message_passing() {
    let mp = "1:EAX=1 /\\ 1:EBX=0";
    assert_eq!(allowed_by_models(&["Wx1 Wy1", "Ry Rx"], mp), PSO_ONLY);
    assert_eq!(allowed_by_models(&["Wx1 F Wy1", "Ry Rx"], mp), NEVER);
    assert_eq!(allowed_by_models(&["Wx1 S Wy1", "Ry Rx"], mp), NEVER);
    assert_eq!(allowed_by_models(&["Wx1 Ly1", "Ry Rx"], mp), NEVER);
    assert_eq!(allowed_by_models(&["Lx1 Wy1", "Ry Rx"], mp), NEVER);
    // The store fence orders all stores before it.
    assert_eq!(allowed_by_models(&["Wx1 Wz1 S Wz2 Wy1", "Ry Rx"], mp), NEVER);
}

#[test]
fn load_buffering_and_coherence() {
    assert_eq!(allowed_by_models(&["Rx Wy1", "Ry Wx1"], "0:EAX=1 /\\ 1:EAX=1"), NEVER);
    assert_eq!(allowed_by_models(&["Wx1", "Rx Rx"], "1:EAX=1 /\\ 1:EBX=0"), NEVER);
    assert_eq!(allowed_by_models(&["Wx1 Wx2", "Rx Rx"], "1:EAX=2 /\\ 1:EBX=1"), NEVER);
    assert_eq!(allowed_by_models(&["Wx1 Rx", "Wx2"], "0:EAX=0"), NEVER);
    assert_eq!(allowed_by_models(&["Rx Wx1", "Wx2"], "0:EAX=1"), NEVER);
    assert_eq!(allowed_by_models(&["Wx1 Rx", "Wx2 Rx"], "0:EAX=2 /\\ 1:EAX=1"), NEVER);
}

#[test]
fn two_plus_two_writes() {
    assert_eq!(allowed_by_models(&["Wx1 Wy2", "Wy1 Wx2"], "[x]=1 /\\ [y]=1"), PSO_ONLY);
    assert_eq!(allowed_by_models(&["Wx1 F Wy2", "Wy1 F Wx2"], "[x]=1 /\\ [y]=1"), NEVER);
    assert_eq!(allowed_by_models(&["Wx1 S Wy2", "Wy1 S Wx2"], "[x]=1 /\\ [y]=1"), NEVER);
    assert_eq!(allowed_by_models(&["Wx1 S Wy2", "Wy1 Wx2"], "[x]=1 /\\ [y]=1"), PSO_ONLY);
}

#[test]
fn r_and_s() {
    let r = "[y]=2 /\\ 1:EAX=0";
    assert_eq!(allowed_by_models(&["Wx1 Wy1", "Wy2 Rx"], r), TSO_ON);
    assert_eq!(allowed_by_models(&["Wx1 Wy1", "Wy2 F Rx"], r), PSO_ONLY);
    assert_eq!(allowed_by_models(&["Wx1 F Wy1", "Wy2 Rx"], r), TSO_ON);
    assert_eq!(allowed_by_models(&["Wx1 F Wy1", "Wy2 F Rx"], r), NEVER);
    let s = "[x]=2 /\\ 1:EAX=1";
    assert_eq!(allowed_by_models(&["Wx2 Wy1", "Ry Wx1"], s), PSO_ONLY);
    assert_eq!(allowed_by_models(&["Wx2 F Wy1", "Ry Wx1"], s), NEVER);
}

#[test]
fn three_and_four_threads() {
    // Stores become visible to all other threads simultaneously.
    let iriw = "1:EAX=1 /\\ 1:EBX=0 /\\ 3:EAX=1 /\\ 3:EBX=0";
    assert_eq!(allowed_by_models(&["Wx1", "Rx Ry", "Wy1", "Ry Rx"], iriw), NEVER);
    assert_eq!(
        allowed_by_models(&["Wx1", "Rx Wy1", "Ry Rx"], "1:EAX=1 /\\ 2:EAX=1 /\\ 2:EBX=0"),
        NEVER
    );
    assert_eq!(
        allowed_by_models(&["Wx1", "Rx Ry", "Wy1 Rx"], "1:EAX=1 /\\ 1:EBX=0 /\\ 2:EAX=0"),
        TSO_ON
    );
    assert_eq!(
        allowed_by_models(&["Wx1", "Rx Ry", "Wy1 F Rx"], "1:EAX=1 /\\ 1:EBX=0 /\\ 2:EAX=0"),
        NEVER
    );
    assert_eq!(
        allowed_by_models(&["Wx1 Wy1", "Ry Wz1", "Rz Rx"], "1:EAX=1 /\\ 2:EAX=1 /\\ 2:EBX=0"),
        PSO_ONLY
    );
}

#[test]
fn locked_instructions_are_atomic() {
    let two = |code: &str| {
        format!("X86_64 t\n{{ x=0; }}\nP0 | P1 ;\n{code} | {code} ;\nforall ([x]=2)\n")
    };
    for model in ["sc", "tso", "pso"] {
        for code in ["lock incl (x)", "lock; incl (x)", "lock addl $1,(x)", "lock subl $-1,(x)"] {
            assert_eq!(run(&two(code), model).verdict, Verdict::Ok, "{code} {model}");
        }
        for code in ["incl (x)", "addl $1,(x)"] {
            assert_eq!(run(&two(code), model).verdict, Verdict::No, "{code} {model}");
        }
    }
    let text = "X86_64 t\n{ 0:rbx=1; 1:rbx=2; }\nP0 | P1 ;\nlock cmpxchgl %ebx,(x) | lock cmpxchgl %ebx,(x) ;\nlocations [x; 0:rax; 1:rax;]\n";
    let report = run(text, "tso");
    let lines: Vec<String> = report
        .outcomes
        .iter()
        .map(|l| l.iter().map(|(n, v)| format!("{n}={v}")).collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(lines, ["0:rax=0 1:rax=1 [x]=1", "0:rax=2 1:rax=0 [x]=2"]);
    // The herd tools write the memory operand of `cmpxchg` first; other instructions keep AT&T's
    // order.
    let text = "X86_64 t\n{ int64_t x=1; 1:rax=1; 0:rcx=5; }\nP0 | P1 ;\nmovq %rcx,(x) | lock cmpxchgq (x),%rdx ;\nexists (x=5)\n";
    assert_eq!(run(text, "tso").verdict, Verdict::Ok);
}

#[test]
fn the_form_of_the_herd_tools() {
    let text = "X86 SB\n\"Fre PodWR Fre PodWR\"\nCom=Fr Fr\n{ x=0; y=0; }\n P0         | P1          ;\n MOV [x],$1 | MOV [y],$1  ;\n MOV EAX,[y] | MOV EAX,[x] ;\nexists (0:EAX=0 /\\ 1:EAX=0)\n";
    let expected = "Test SB Allowed\nStates 4\n0:EAX=0; 1:EAX=0;\n0:EAX=0; 1:EAX=1;\n0:EAX=1; 1:EAX=0;\n0:EAX=1; 1:EAX=1;\nOk\nWitnesses\nPositive: 1 Negative: 3\nCondition exists (0:EAX=0 /\\ 1:EAX=0)\nObservation SB Sometimes 1 3\n";
    assert_eq!(run(text, "tso").text(), expected);
    let never = run(&text.replace("exists", "~exists"), "sc").text();
    assert!(
        never.ends_with("Ok\nWitnesses\nPositive: 3 Negative: 0\nCondition ~exists (0:EAX=0 /\\ 1:EAX=0)\nObservation SB Never 0 3\n"),
        "{never}"
    );
    assert_eq!(test(text).info, [("Com".to_string(), "Fr Fr".to_string())]);
}

#[test]
fn both_orders_of_operands() {
    // X86 with the destination last, X86_64 with the destination first.
    for text in [
        "X86 a\n{}\nP0 ;\nmovl $1,(x) ;\nmovl (x),%eax ;\nforall (0:EAX=1)\n",
        "X86_64 b\n{}\nP0 ;\nmov dword ptr [x],1 ;\nmov eax,[x] ;\nforall (0:rax=1)\n",
        "X86_64 c\n{}\nP0 ;\nmovl $1,x(%rip) ;\nmovl x,%eax ;\nforall (0:rax=1)\n",
    ] {
        assert_eq!(run(text, "sc").verdict, Verdict::Ok, "{text}");
    }
}

#[test]
fn registers_of_each_width() {
    let one = |code: &str, condition: &str| {
        run(
            &format!(
                "X86_64 w\n{{ 0:rax=0x1122334455667788; char x; }}\nP0 ;\n{code}\nforall ({condition})\n"
            ),
            "tso",
        )
    };
    for (code, condition) in [
        ("movb $0,%al ;", "0:rax=0x1122334455667700"),
        ("movb $0,%ah ; movq %rax,%rax ;", "0:rax=0x1122334455660088"),
        ("movw $0,%ax ; movq %rax,%rbx ;", "0:rbx=0x1122334455660000"),
        ("movl $-1,%eax ; movq %rax,%rbx ;", "0:rbx=0xffffffff"),
        ("movl $-1,%eax ;", "0:eax=-1"),
        ("movq $-1,%rax ;", "0:rax=-1"),
        ("movzbl %al,%ebx ;", "0:rbx=0x88"),
        ("movsbl %al,%ebx ;", "0:rbx=-120"),
        ("xchgb %al,%ah ; movq %rax,%rax ;", "0:rax=0x1122334455668877"),
        ("addb $0x78,%al ; setc %bl ; sete %cl ;", "0:bl=1 /\\ 0:cl=1"),
        ("cmpl $0x55667788,%eax ; jne L ; movl $1,%ecx ; L: ;", "0:rcx=1"),
        // Both operands are parts of one register; `xadd` writes its destination last.
        ("movl $0x201,%ecx ; xaddb %ch,%cl ; movq %rcx,%rcx ;", "0:rcx=0x103"),
        ("movl $0x201,%ecx ; xaddb %cl,%ch ; movq %rcx,%rcx ;", "0:rcx=0x302"),
        ("movl $0x201,%ecx ; xaddb %cl,%cl ; movq %rcx,%rcx ;", "0:rcx=0x202"),
        ("movl $3,%ecx ; xaddl %ecx,%ecx ;", "0:rcx=6"),
        // The destination of `cmpxchg` is a part of the accumulator.
        ("movl $0x1234,%eax ; cmpxchgb %dl,%ah ; movq %rax,%rax ;", "0:rax=0x1212"),
        ("movl $0x1212,%eax ; cmpxchgb %dl,%ah ; movq %rax,%rax ;", "0:rax=0x12"),
        ("cmpxchgb %dl,%al ; movq %rax,%rax ;", "0:rax=0x1122334455667700"),
        // An address of 32-bit registers has 32 bits.
        ("movl $0x80000000,%edx ; leaq (%edx,%edx),%rbx ;", "0:rbx=0"),
        ("movl $0,%edx ; leaq -1(%edx),%rbx ;", "0:rbx=0xffffffff"),
        ("movl $0x80000000,%edx ; leaq (%rdx,%rdx),%rbx ;", "0:rbx=0x100000000"),
        // The parity flag can be stored too.
        ("subl %ecx,%ecx ; setp (x) ; movzbl (x),%ebx ;", "0:rbx=1"),
        ("movl $1,%ecx ; addl $1,%ecx ; setnp (x) ; movzbl (x),%ebx ;", "0:rbx=1"),
    ] {
        let report = one(code, condition);
        assert_eq!(report.verdict, Verdict::Ok, "{code} {report:?}");
    }
}

#[test]
fn pointers_and_arrays() {
    let text = "X86_64 p\n{ int64_t t[2]={1,-1}; 0:rax=t; 0:rbx=1; int64_t 0:rcx; }\nP0 ;\nmovq 0(%rax,%ebx,8),%rcx ;\nforall 0:rcx=-1\n";
    assert_eq!(run(text, "tso").verdict, Verdict::Ok);
    // The whole test in the first line.
    assert_eq!(run("X86 o {x=1;} P0 ; MOV EAX,[x] ; forall (0:EAX=1)", "tso").verdict, Verdict::Ok);
    let text = "X86_64 q\n{ 0:rax=x; p=y; int x=5; int y=7; }\nP0 ;\nmovl (%rax),%ebx ;\nmovq (p),%rcx ;\nmovl (%rcx),%edx ;\nforall (0:rbx=5 /\\ 0:rdx=7 /\\ 0:rcx=y)\n";
    assert_eq!(run(text, "tso").verdict, Verdict::Ok);
}

#[test]
fn unrestricted_conditions() {
    let with = |condition: &str| {
        run(
            &format!("X86 c\n{{ x=1; y=1; }}\nP0 ;\nMOV EAX,[x] ;\nlocations [x;]\n{condition}\n"),
            "tso",
        )
    };
    for yes in [
        "exists not (x=2) /\\ true",
        "forall (0:EAX=1 => [x]=1)",
        "forall x=*y",
        "forall [x]=[y]",
        "forall (false \\/ x=1)",
        "exists 0:EAX!=3",
        "~exists 0:EAX=3 /\\ x=1",
        "filter x=2 forall false",
        "(x=1)",
        "",
    ] {
        assert_eq!(with(yes).verdict, Verdict::Ok, "{yes}");
    }
    assert_eq!(test("X86 n\n{}\nP0 ;\nNOP ;\n").question.quantifier, OutcomeQuantifier::Forall);
}

/// Syntactic variants that the herd tools accept.
#[test]
fn ways_to_write_a_test() {
    let yes = |text: &str| {
        let report = run(text, "tso");
        assert_eq!(report.verdict, Verdict::Ok, "{text}\n{report:?}");
    };
    let sb = " P0 | P1 ;\n MOV [x],$1 | MOV [y],$1 ;\n MOV EAX,[y] | MOV EAX,[x] ;\n";
    for (head, condition) in [
        ("X86 a/b-c.d+e[f]", "exists (0:EAX=0 /\\ 1:EAX=0)"),
        ("X86 a \"in the { first line\"", "exists 0:EAX=0 /\\ 1:EAX=0;"),
        (
            "X86 a\n\"doc with { and }\"\nPrefetch=0:x=F,0:y=W,1:y=F,1:x=T\nCom=Ws Fr\nOrig=MFencedWW {x}\nGenerator=tool (version 7.54+01(dev))",
            "exists\n(0:EAX=0 /\\\n 1:EAX=0)\n",
        ),
        ("(* a (* nested *) comment { *)\nX86 a", "exists (0:EAX = 0 && 1:EAX == 0)"),
        ("\u{feff}X86 a\r\n\"CRLF\"\r\n", "not exists (0:EAX=2)\r\n"),
        ("X86 a", "~ exists (0:EAX=2) (* that is all *)"),
        ("X86 a", "// to the end of the line: {\nforall (0:EAX=0 \\/ 0:EAX=1) // and here"),
        ("X86 a", "observed 0:EAX=0; 1:EAX=0; and 0:EAX=5;"),
        ("X86 a", "final (0:EAX=0x0 /\\ [x]=1 /\\ y<>0)"),
        ("X86 a", "exists (P0:EAX=0 /\\ 1:EAX=0)\nwith sc: ~exists; tso: exists"),
        ("X86 a", "locations [0:EAX; x; y int;]\nfilter (0:EAX=0)\nforall (not (0:EAX=1))"),
    ] {
        yes(&format!("{head}\n{{ x=0; y=0; }}\n{sb}{condition}"));
    }
    for state in [
        "",
        "x",
        "int x",
        "int x=0; int y",
        "uint64_t x; uint64_t 0:EAX; 1:EAX=7",
        "[x]=0; [y]=0",
        "x=0;;y=0;",
        "0:ESI=x; 0:%q=y",
        "volatile int x; unsigned int y = 0",
    ] {
        yes(&format!("X86 s\n{{{state}}}\n{sb}exists (0:EAX=0 /\\ 1:EAX=0)"));
    }
    // Pointers, labels at the end and on their own line, jumps over code, additional blanks.
    yes(
        "X86_64 p\n{ int x=5; int *p=&x; *q; q=x; 0:rbx=p; 1:rbx=x; }\nP0|P1;\nmovq (%rbx),%rcx|movl 0(%rbx),%eax;\nmovl (%rcx),%edx|;\nforall (0:rdx=5 /\\ 0:rcx=x /\\ 1:rax=5 /\\ p=x)",
    );
    yes(
        "X86 j\n{}\n P0 ;\n CMP EAX, $0 ;\n JE L0 ;\n MOV EBX , $1 ;\n L0 : ;\n JMP L1 ;\n L2: MOV EBX,$2 ;\n L1: ;\nforall (0:EBX=0)",
    );
    yes(
        "X86_64 l\n{}\n P0 ;\n lock; xaddl %eax,(x) ;\n lock\n incl (x) ;\n LOCK ;\n DECL (x) ;\n endbr64 ;\nforall [x]=0",
    );
    yes(
        "X86 n\n{ x=-3; }\n P0 ;\n MOV EAX,[x] ;\n ADD EAX,$-2 ;\n SFENCE ;\n LFENCE ;\nforall (0:EAX=-5 /\\ x=-3)",
    );
}

/// An implication binds more tightly than `and`, as in the herd tools.
#[test]
fn implications_bind_closely() {
    let of = |condition: &str| {
        let text = format!("X86 c\n{{ x=1; y=1; }}\nP0 ;\nMOV EAX,[x] ;\nforall {condition}\n");
        let report = run(&text, "tso");
        // The printed condition parses to the same condition.
        let again = run(&text.replace(condition, &report.condition), "tso");
        assert_eq!(
            (again.verdict, &again.condition),
            (report.verdict, &report.condition),
            "{condition}"
        );
        (report.verdict, report.condition)
    };
    assert_eq!(of("x=2 /\\ x=1 => y=1"), (Verdict::No, "[x]=2 /\\ ([x]=1 => [y]=1)".to_string()));
    assert_eq!(of("(x=2 /\\ x=1) => y=2").0, Verdict::Ok);
    assert_eq!(of("x=2 => y=2 => x=3"), (Verdict::Ok, "[x]=2 => ([y]=2 => [x]=3)".to_string()));
    assert_eq!(of("(x=1 => y=2) => x=3").0, Verdict::Ok);
    assert_eq!(of("not x=2 /\\ y=1 \\/ false").0, Verdict::Ok);
}

#[test]
fn loops_terminate_and_bounds_are_honest() {
    let spin = "X86 spin\n{}\nP0 | P1 ;\nMOV [y],$1 | L: MOV EAX,[x] ;\nMOV [x],$1 | CMP EAX,$1 ;\n | JNE L ;\n | MOV EBX,[y] ;\nforall (1:EBX=1)\n";
    assert_eq!(run(spin, "tso").verdict, Verdict::Ok);
    assert_eq!(run(spin, "pso").verdict, Verdict::No);
    // The buffer is full before the loop has ended.
    let long = "X86 long\n{}\nP0 | P1 ;\nMOV EAX,$6 | MOV EBX,[y] ;\nL: MOV [x],EAX | ;\nDEC EAX | ;\nJNE L | ;\nexists ([x]=1 /\\ 1:EBX=1)\n";
    assert_eq!(run(long, "tso").verdict, Verdict::Unknown);
    assert_eq!(run(long, "sc").verdict, Verdict::No);
}

#[test]
fn arrays_are_listed_and_compared_as_a_whole() {
    for place in ["x", "*x", "[x]"] {
        let text = format!(
            "X86_64 t\n{{ uint64_t x[2]={{1,2}}; 0:r15=x; }}\nP0 ;\nmovq $3,8(%r15) ;\n\
             locations [{place};]\nforall (x={{1,3}} /\\ x!={{1,2}})\n"
        );
        let answer = run(&text, "tso");
        assert_eq!(answer.verdict, Verdict::Ok, "{place}");
        assert_eq!(observed_values(&answer), ["1", "3"], "{place}");
    }
}

#[test]
fn wrong_input_is_refused_with_its_place() {
    let code = |c: &str| format!("X86 r\n{{ int8_t b; }}\nP0 ;\n{c} ;\nexists (true)\n");
    for (text, part) in [
        ("".to_string(), "litmus test is empty"),
        ("ARM t\n{}\nP0;\n".into(), "the architecture `ARM` is not supported"),
        ("X86\n{}".into(), "has no name"),
        ("X86 t\n".into(), "expected `{`"),
        ("X86 t\n{ x=; }\nP0;".into(), "expected a number"),
        ("X86 t\n{ float x; }\nP0;".into(), "unknown type `float`"),
        ("X86 t\n{ x=1; x=2; }\nP0;".into(), "twice"),
        ("X86 t\n{ 3:EAX=1; }\nP0;\nNOP;\n".into(), "no thread 3"),
        ("X86 t\n{ 0:EXX=1; }\nP0;\nNOP;\n".into(), "`EXX` is not a register"),
        (code("FSQRT"), "unknown instruction `FSQRT`"),
        (code("JMP nowhere"), "no label `nowhere`"),
        (code("L: NOP ; L: NOP"), "defined twice"),
        (code("MOV [x],[y]"), "both operands"),
        (code("MOV EAX"), "has 2 operands, found 1"),
        (code("MOV $1,$2"), "cannot be the destination"),
        (code("LOCK MOV [x],$1"), "does not support it"),
        (code("MOV AL,EBX"), "a register of 32 bits where `MOV` has 8 bits"),
        (code("MOVB [x],$1 ; MOVL [x],$1"), "different sizes"),
        (code("NOP | NOP"), "more columns"),
        ("X86 t\n{}\nP1;\nNOP;\n".into(), "expected the thread `P0`"),
        ("X86 t\n{}\nP0;\nNOP;\nexists (0:EAX=)".into(), "expected a number"),
        ("X86 t\n{}\nP0;\nNOP;\nexists (1:EAX=1)".into(), "no thread 1"),
        ("X86 t\n{}\nP0;\nNOP;\nexists (x=1) foo".into(), "expected the end"),
        ("X86 t\n{}\nP0;\nMOV EAX,99999999999999999999;\n".into(), "does not fit"),
        ("X86 t\n{ x=4294967297; }\nP0;\nNOP;\n".into(), "does not fit in the 32 bits"),
        ("X86 t\n{ uint64_t t[2]={1,-2147483649}; }\nP0;\nNOP;\n".into(), "does not fit"),
        ("X86 t\n{ x=18446744073709551615; }\nP0;\nNOP;\n".into(), "does not fit"),
        ("X86 t\n{ 0:EBX=8589934593; }\nP0;\nNOP;\n".into(), "does not fit"),
        ("X86 t\n{ x=1; }\nP0;\nNOP;\nexists (x=4294967297)".into(), "does not fit"),
        ("X86 t (* no end".into(), "is not closed"),
        (format!("X86 t\n{{}}\nP0;\nNOP;\nexists {}", "(".repeat(100_000)), "nests more than"),
    ] {
        let found = refusal(&text);
        assert!(found.message.contains(part), "{part}: {found:?}");
        assert!(found.span.is_some(), "{found:?}");
    }
    let wild = "X86 t\n{}\nP0;\nMOV EAX,[EBX];\n";
    let found = herd::run(&test(wild), memory::TSO, None, &Budget::default()).expect_err("wild");
    assert!(found.message.contains("0x0"), "{found:?}");
}

#[test]
fn operands_without_an_encoding_are_refused() {
    for (code, wanted) in [
        ("add rax, 4294967295", "expected a number of 32 bits with a sign"),
        ("cmp rax, 0x80000000", "expected a number of 32 bits with a sign"),
        ("mov qword [Q], 4294967295", "expected a number of 32 bits with a sign"),
        ("cmovz [X], eax", "the destination of `cmovz` must be a register"),
        ("cmovz eax, 1", "the source of `cmovz` must be a register or memory"),
        ("cmovz al, bl", "`cmovz` of 8 bits"),
        ("setz dword [X]", "sets a byte"),
        ("shl eax, ch", "must be a number or cl"),
        ("xadd eax, [X]", "the source of `xadd` must be a register"),
        ("cmpxchg eax, [X]", "the source of `cmpxchg` must be a register"),
        ("cmpxchg [X], 1", "the source of `cmpxchg` must be a register"),
        ("mov ah, sil", "cannot combine a high byte"),
        ("mov r8b, ah", "cannot combine a high byte"),
        ("movzx rax, bh", "cannot combine a high byte"),
        ("mov ah, [r9]", "cannot combine a high byte"),
        ("mov eax, [cx]", "a register of 16 bits in an address"),
    ] {
        let text = format!(
            "begin shared_data\nX dd 0\nQ dq 0\nend shared_data\nbegin thread_code\n{code}\nend thread_code\n"
        );
        let found = super::nasm::parse(SourceId::FIRST, &text, 1).map(|_| ()).expect_err(code);
        assert!(
            found.message.contains(wanted) && found.span.is_some(),
            "{code}: {}",
            found.message
        );
    }
    for code in [
        "mov rax, 4294967295",
        "add rax, -2147483648",
        "mov ah, bl",
        "xchg eax, [X]",
        "cmovz ax, bx",
        "setz bh",
        "mov al, sil",
    ] {
        let text = format!(
            "begin shared_data\nX dd 0\nend shared_data\nbegin thread_code\n{code}\nend thread_code\n"
        );
        super::nasm::parse(SourceId::FIRST, &text, 1)
            .unwrap_or_else(|d| panic!("{code}: {}", d.message));
    }
}

/// Processors differ in the overflow flag after a shift by 2 or more, and in the carry after a
/// shift by the width: a condition on them is rejected by the readers of the machine, of the
/// proofs, and of litmus tests.
#[test]
fn conditions_on_undefined_flags_are_refused() {
    let program = |code: &str| {
        format!(
            "begin shared_data\nX dd 0\nend shared_data\nbegin thread_code\n{code}\nbad: nop\nend thread_code\n"
        )
    };
    for (code, flag) in [
        ("mov eax, -2147483648\nshr eax, 2\njno bad", "overflow"),
        ("shl eax, 3\nmov ebx, 1\njl bad", "overflow"),
        ("sar eax, 31\njg bad", "overflow"),
        ("shl eax, 1\nshl eax, cl\nseto bl", "overflow"),
        ("shr eax, 2\ncmovge eax, ebx", "overflow"),
        ("shl al, 8\njc bad", "carry"),
        ("shr ax, cl\njbe bad", "carry"),
        ("shl al, 9\ninc ebx\njae bad", "carry"),
        ("shr eax, 2\nshr eax, 32\njo bad", "overflow"),
        ("shr eax, 2\njp bad\njo bad", "overflow"),
        ("l: jo bad\nshl dword [X], 2\njmp l", "overflow"),
        ("cmp eax, 1\nje l\nshl eax, 2\nl: jle bad", "overflow"),
    ] {
        let found = super::nasm::parse(SourceId::FIRST, &program(code), 1).map(|_| ());
        let found = found.expect_err(code);
        let wanted = format!("reads the {flag} flag, which may be undefined after `s");
        assert!(found.message.contains(&wanted), "{code}: {}", found.message);
        assert!(found.span.is_some(), "{code}");
    }
    for code in [
        "shr eax, 1\njo bad",
        "shl eax\njl bad",
        "shr eax, 2\njz bad\njs bad\njc bad\njp bad",
        "shr eax, 2\ncmp eax, 1\njl bad",
        "shr eax, 2\ninc eax\njl bad",
        "cmp eax, 1\nshl eax, 32\njl bad",
        "shl eax, cl\njc bad",
        "sar al, 9\njc bad",
        "shr eax, 2\njmp bad\njo bad",
        "shl eax, 2\nl: cmp eax, ebx\njle l",
    ] {
        super::nasm::parse(SourceId::FIRST, &program(code), 1)
            .unwrap_or_else(|d| panic!("{code}: {}", d.message));
    }
    let any = super::parametric::parse(SourceId::FIRST, &program("shr eax, 2\njno bad"));
    let any = any.expect_err("any number of threads");
    assert!(any.message.contains("overflow flag"), "{}", any.message);
    let test = refusal("X86 t\n{ }\nP0;\nSHR EAX,$2;\nSETO BL;\n");
    assert!(test.message.contains("overflow flag"), "{}", test.message);
}

/// The reader for any number of threads agrees with the machine's, and preserves `N` and the
/// threads of elements.
#[test]
fn what_a_proof_reads_is_what_the_machine_reads() {
    use super::parametric::{ComparedSide, Declaration, Number, Operand, ParametricProgram};
    let text =
        "begin shared_data\nC dd N ! as counter\nX dd 0xffffffff\nY dd ?\nend shared_data\nbegin thread_data\nE dd 7\nend thread_data
begin unsafe_prop\neip[$a] = last && $b:E[$a] = 4294967295 && edi[$a] = edi[$b] && X <> 1\nend unsafe_prop
begin thread_code\nfirst: MOV EAX, dword ptr [E]\nmov [E + $1], eax\nmov dword [C], N\nsub eax, 0x80000000\nlast:\nend thread_code\n";
    let ParametricProgram { variables, code, unsafe_states, .. } =
        super::parametric::parse(SourceId::FIRST, text).unwrap_or_else(|d| panic!("{}", d));
    let initial: Vec<_> =
        variables.iter().map(|Declaration { initial, counter, .. }| (*initial, *counter)).collect();
    let expected = [
        (Some(Number::Threads), true),
        (Some(Number::Literal(-1)), false),
        (None, false),
        (Some(Number::Literal(7)), false),
    ];
    assert_eq!(initial, expected);
    let operands: Vec<_> = code.iter().map(|i| i.operands.as_slice()).collect();
    assert!(
        matches!(operands[0], [Operand::Register(r, _), Operand::Memory(e, _)] if r == "eax" && e == "E"),
        "{operands:?}"
    );
    assert!(matches!(operands[1], [Operand::Element(e, 1, _), _] if e == "E"), "{operands:?}");
    assert!(
        matches!(operands[2], [Operand::Memory(..), Operand::Immediate(Number::Threads, _)]),
        "{operands:?}"
    );
    assert!(
        matches!(operands[3], [_, Operand::Immediate(Number::Literal(-2_147_483_648), _)]),
        "{operands:?}"
    );
    assert_eq!(
        (&code[0].labels[..], &code[4].labels[..]),
        (&["first".to_string()][..], &["last".to_string()][..])
    );
    let sides: Vec<_> = unsafe_states[0].atoms.iter().map(|a| (a.0.clone(), a.2.clone())).collect();
    assert_eq!(sides[0], (ComparedSide::Place(0), ComparedSide::Label("last".into())));
    assert_eq!(
        sides[1],
        (ComparedSide::ThreadView(1, "E".into(), Some(0)), ComparedSide::Number(-1))
    );
    assert_eq!(
        sides[2],
        (ComparedSide::Register(0, "edi".into()), ComparedSide::Register(1, "edi".into()))
    );
    assert_eq!(sides[3], (ComparedSide::Memory("X".into()), ComparedSide::Number(1)));
    // For a fixed number of threads every initial value must be known.
    assert!(
        super::nasm::parse(SourceId::FIRST, text, 2)
            .is_err_and(|d| d.message.contains("has no initial value"))
    );
}

#[test]
fn computed_addresses_of_thread_data_are_refused() {
    let text = |operand: &str| {
        format!(
            "begin thread_data\nX dd 0\nend thread_data\nbegin shared_data\nY dd 0\nend shared_data\nbegin thread_code\nmov eax, {operand}\nend thread_code\n"
        )
    };
    let parse = |operand: &str| super::nasm::parse(SourceId::FIRST, &text(operand), 2);
    for operand in ["[X]", "[X + $next]", "[X + $1]", "[Y + ecx*4]", "[Y + 0]"] {
        assert!(parse(operand).is_ok(), "{operand}");
    }
    for operand in [
        "[X + ecx*4]",
        "[ecx*4 + X]",
        "[X + 4]",
        "[4 + X]",
        "[X + $1 + ecx]",
        "[X + eax - 4]",
        "X + 4",
    ] {
        let found = parse(operand).expect_err(operand);
        let span = found.span.expect("a place");
        assert!(found.message.contains("`X` is thread data"), "{operand}: {found:?}");
        assert!(
            operand.contains(&text(operand)[span.start as usize..span.end as usize]),
            "{operand}: {found:?}"
        );
    }
}

/// Every prefix of a test, and every test without one character, is accepted or rejected without a
/// panic.
#[test]
fn damaged_tests_do_no_harm() {
    let text = "X86_64 A\n\"doc\"\nkey=v\n{ int64_t t[2]={1,-1}; 0:rax=t; int *p=&x; [y]=1; }\n P0 | P1 ;\n L: movq 8(%rax),%rcx | lock; xaddl %eax,(y) ;\n jne L | mfence ;\nlocations [t[1]; 0:rcx;] filter y=1\n~exists (0:rcx=-1 /\\ not [y]=2 \\/ p=x)\n";
    test(text);
    for i in 0..text.len() {
        let _ = litmus::parse(SourceId::FIRST, &text[..i]);
        let _ = litmus::parse(SourceId::FIRST, &format!("{}{}", &text[..i], &text[i + 1..]));
        let _ = litmus::parse(SourceId::FIRST, &format!("{}é{}", &text[..i], &text[i..]));
    }
}

/// Sizes of operands contradict each other, or an address leaves its variable: such code has no
/// meaning, or one that depends on the layout.
#[test]
fn operands_of_other_sizes_and_places_are_refused() {
    for (code, wanted) in [
        ("MOV EAX, byte [x]", "an operand of 8 bits where `MOV` has 32 bits"),
        ("ADD word [x], EBX", "an operand of 16 bits where `ADD` has 32 bits"),
        ("MOV EAX,[x+64]", "an address beyond `x`"),
        ("MOV EAX,[x+65536]", "an address beyond `x`"),
        ("MOV EAX,[x-4]", "an address beyond `x`"),
        ("MOVSXD RAX, word [x]", "an operand of 16 bits where `MOVSXD` extends 32 bits"),
        ("MOVSXD RAX, BX", "an operand of 16 bits where `MOVSXD` extends 32 bits"),
        ("LEA AL,[x]", "`LEA` of 8 bits"),
    ] {
        let found = refusal(&format!("X86 t\n{{ x=1; y=2; }}\nP0 ;\n{code} ;\n"));
        assert!(found.message.contains(wanted), "{code}: {}", found.message);
    }
    for (code, wanted) in [
        ("movzbl (x), %rax", "a register of 64 bits where `movzbl` has 32 bits"),
        ("leal (x), %rax", "a register of 64 bits where `leal` has 32 bits"),
        ("movzbl %ax, %ebx", "an operand of 16 bits where `movzbl` extends 8 bits"),
    ] {
        let found = refusal(&format!("X86_64 t\n{{ x=1; }}\nP0 ;\n{code} ;\n"));
        assert!(found.message.contains(wanted), "{code}: {}", found.message);
    }
    // 32 bits are read, whatever the type of the variable.
    let found = refusal("X86_64 t\n{ uint8_t x=-1; }\nP0 ;\nmovsxd (x), %rax ;\n");
    assert!(found.message.contains("an access of 32 bits goes beyond `x`"), "{}", found.message);
}

/// Returns the observed values of all outcomes.
fn observed_values(answer: &Answer) -> Vec<String> {
    answer.outcomes.iter().flatten().map(|(_, value)| value.clone()).collect()
}

/// The size of a number is that of the access to memory, if nothing else has a size (NASM).
#[test]
fn numbers_with_a_size_determine_the_access() {
    let values = |code: &str| {
        let text = format!("X86 t\n{{ x=0x1ff; }}\nP0 ;\n{code} ;\nlocations [x;]\nexists (x=0)\n");
        observed_values(&run(&text, "sc"))
    };
    assert_eq!(values("MOV [x], byte 2"), ["258"]);
    assert_eq!(values("MOV [x], word 2"), ["2"]);
    assert_eq!(values("MOV dword [x], byte 2"), ["2"]);
    assert_eq!(values("ADD dword [x], byte 1"), ["512"]);
}

/// A compare-and-exchange of registers that fails leaves its destination as it is, also the upper
/// half. This is what processors do; the manual is not clear (Intel SDM volume 2, CMPXCHG).
#[test]
fn a_failed_exchange_of_registers_keeps_the_upper_half() {
    for (start, wanted) in [(0x5_0000_0001u64, "5"), (0x5_0000_0007, "0")] {
        let text = format!(
            "X86_64 t\n{{ uint64_t 0:rbx={start}; uint64_t 0:rax=7; uint64_t 0:rcx=9; }}\nP0 ;\ncmpxchg %ecx, %ebx ;\n\
             shr $32, %rbx ;\nlocations [0:rbx;]\nexists (0:rbx=0)\n"
        );
        assert_eq!(observed_values(&run(&text, "sc")), [wanted], "{text}");
    }
}

/// Registers are compared in full, so two outcomes that print alike may differ in the truth of a
/// condition.
#[test]
fn outcomes_that_print_alike_are_judged_apart() {
    let text = "X86_64 t\n{ uint64_t x; 0:rax=1; }\n P0 | P1 | P2 ;\n movq $4294967297, %rbx | movq (x), %rax | movq $1, %rbx ;\n \
                movq %rbx, (x) | | movq %rbx, (x) ;\nforall (0:rax=1:rax \\/ 1:rax=0)\n";
    let answer = run(text, "sc");
    assert_eq!((answer.positive, answer.negative, answer.verdict), (2, 1, Verdict::No));
}

/// `N` in a sum, the number of a thread, and the address of its data are numbers of the reading, so
/// that no proof for all numbers can use them.
#[test]
fn values_of_one_thread_or_number_of_threads_are_refused_for_any_number() {
    let program = |code: &str| {
        format!(
            "begin shared_data\nX dd 0\nY dd 0\nend shared_data\nbegin thread_data\nE dd 0\nend thread_data\nbegin thread_code\n{code}\nend thread_code\n"
        )
    };
    for code in [
        "mov eax, N+1",
        "mov eax, $N",
        "mov eax, N-1",
        "mov dword [E + $N - 1], 1",
        "mov eax, $self",
        "cmp dword [X], $next",
        "mov eax, E",
    ] {
        let found = super::parametric::parse(SourceId::FIRST, &program(code)).expect_err(code);
        assert!(found.message.contains("`N` in a sum"), "{code}: {}", found.message);
    }
    super::nasm::parse(SourceId::FIRST, &program("mov eax, N+1"), 3)
        .unwrap_or_else(|d| panic!("{}", d));
    for code in ["mov eax, $1", "mov eax, X", "mov eax, [E + $self]", "mov eax, [E + $2]"] {
        super::parametric::parse(SourceId::FIRST, &program(code)).unwrap_or_else(|d| panic!("{d}"));
    }
}
