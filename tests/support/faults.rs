//! Seeded faults of the ARCx model: named edits of `specs/arcx.spec`, with the verdict of each
//! published formula and the reason for it.
//!
//! An edit replaces a text that must occur exactly once, so a change of the specification that it
//! no longer fits fails loudly. Each row has the smallest parameters that show its verdicts;
//! parameters not named have the values of [`SMALL`].

/// One core does one operation each, on one address with one value.
pub const SMALL: [(&str, u32); 6] = [
    ("address_size", 1),
    ("byte_size", 1),
    ("num_cores", 2),
    ("memcommands_size", 1),
    ("nr_wb_buffers", 1),
    ("max_operation_id", 0),
];

/// The published formulas, in the order of [`Fault::verdicts`].
pub const FORMULAS: [&str; 6] =
    ["1a.gos", "1b.gos", "1c.gos", "1d.gos", "2.selfobserving", "3.cacheconsistency"];

/// A fault, or a change that is none.
pub struct Fault {
    /// A word for it.
    pub name: &'static str,
    /// The fault of the machine.
    pub what: &'static str,
    /// Texts of the specification and their replacements.
    pub edits: &'static [(&'static str, &'static str)],
    /// Parameters that differ from [`SMALL`].
    pub defines: &'static [(&'static str, u32)],
    /// Verdicts of [`FORMULAS`]: `T` or `F`.
    pub verdicts: &'static str,
    /// Reasons for each false formula, and for related formulas that remain true.
    pub why: &'static str,
}

/// Returns the specification with edits made.
pub fn patch(specification: &str, edits: &[(&str, &str)]) -> String {
    let mut text = specification.to_string();
    for (from, to) in edits {
        let found = text.matches(from).count();
        assert!(
            found == 1,
            "this text occurs {found} times in the specification, not once:\n{from}"
        );
        text = text.replacen(from, to, 1);
    }
    text
}

const NO_STALL: (&str, &str) = (
    "(forall n: Nat . ((n < m_wb_nr_buffers) => !m_buffer_has_addr(bs . n, a))) -> (",
    "true -> (",
);
const OWN_OBSERVE: &str =
    "        observe(core_id, g_address(bs . n), g_data(bs . n), g_nr(bs . n), core_id) .\n";
const FINISH: &str =
    "        wb_sync_store_finish(core_id, g_address(bs . n), g_data(bs . n), g_nr(bs . n)) .\n";

/// Fewer instances of the formula of cache consistency, for speed: stores of `undefined` never
/// occur, so nothing is lost.
pub const STORED: &str = "wib1 != c_data_undefined && wjb1 != c_data_undefined";
/// Of a false one only the instances that show it: the first stores of two cores, seen by two
/// cores.
pub const FIRST_STORES: &str =
    "wib1 == c_data_0 && wjb1 == c_data_0 && win1 == 0 && wjn1 == 0 && wip1 != wjp1 && pi != pj";

/// Returns the formula of cache consistency, published or stricter, with its instances narrowed.
pub fn narrow(formula: &str, instances: &str) -> String {
    const GUARD: &str = "val(wjn1 < m_ip_prog_len && ";
    patch(formula, &[(GUARD, &format!("val({instances} && {}", &GUARD["val(".len()..]))])
}

/// The edit that gives the published text of `close_observation` back (see the comment there).
pub const PUBLISHED_CLOSE: (&str, &str) =
    ("        e |> close_observation(l, a1, p1));\n", "        close_observation(l, a1, p1));\n");

/// The table.
pub const FAULTS: &[Fault] = &[
    Fault {
        name: "none",
        what: "the model as it is",
        edits: &[],
        defines: &[("address_size", 2), ("byte_size", 2)],
        verdicts: "TTTTTT",
        why: "as published",
    },
    Fault {
        name: "two_buffer_slots",
        what: "the model as it is, with two slots, which drain in any order",
        edits: &[],
        defines: &[("nr_wb_buffers", 2), ("max_operation_id", 1)],
        verdicts: "TTTTTT",
        why: "a store is observed by its core when it leaves, in whatever order, and the memory carries out one command at a time",
    },
    Fault {
        name: "store_done_early",
        what: "a store is reported done before it is in the buffer, but the pipeline still waits for the slot",
        edits: &[(
            "    P_IP_SYNC_STORE(core_id, a, n, d) .\n    end_store(core_id, a, d, n)\n",
            "    end_store(core_id, a, d, n) .\n    P_IP_SYNC_STORE(core_id, a, n, d)\n",
        )],
        defines: &[("byte_size", 2), ("max_operation_id", 1)],
        verdicts: "TTTTTT",
        why: "no fault in the eyes of the formulas: the next operation starts no earlier than before",
    },
    Fault {
        name: "load_passes_buffer",
        what: "a load does not stall on a store to its address in the write buffer",
        edits: &[NO_STALL],
        defines: &[("max_operation_id", 1)],
        verdicts: "FTTTFT",
        why: "2: store, then load with the store still in the buffer. 1a: the load is answered `undefined`, then the buffer hands the store \
              over and it is observed, then the load ends. The rest: what the load returns was observed before, if it was stored at all",
    },
    Fault {
        name: "buffer_locks_during_load",
        what: "a load does not stall on the write buffer, but the buffer hands nothing over until the load is over",
        edits: &[
            NO_STALL,
            (
                "      wb_unstall_ip(core_id, a) .\n      P_WB(core_id, bs)\n",
                "      wb_unstall_ip(core_id, a) .\n      wb_unstall_ip(core_id, a) .\n      P_WB(core_id, bs)\n",
            ),
            (
                "      end_load(core_id, a, d, n)\n    ));",
                "      end_load(core_id, a, d, n) .\n      ip_stall_load_wb(core_id, a)\n    ));",
            ),
        ],
        defines: &[("max_operation_id", 1)],
        verdicts: "TTTTFT",
        why: "2 as in load_passes_buffer; but now no observation comes between the answer and the end of the load, so 1a holds",
    },
    Fault {
        name: "others_do_not_observe",
        what: "the memory makes nobody observe a store",
        edits: &[("m_other_cores(c, m_all_cores), a, d, n, c)", "[], a, d, n, c)")],
        defines: &[],
        verdicts: "TFTTTT",
        why: "1b: one core stores, the other loads it. 1a needs an observation and a load of one core, hence two operations",
    },
    Fault {
        name: "others_do_not_observe_2",
        what: "the same, with two operations and two values",
        edits: &[("m_other_cores(c, m_all_cores), a, d, n, c)", "[], a, d, n, c)")],
        defines: &[("byte_size", 2), ("max_operation_id", 1)],
        verdicts: "FFTTTT",
        why: "1a: a core observes its own store, the other core overwrites it with another value, the first core loads that. \
              3: no core observes two stores of different cores, so the cores cannot disagree",
    },
    Fault {
        name: "own_core_does_not_observe",
        what: "the write buffer hands stores over without an observation",
        edits: &[(OWN_OBSERVE, "")],
        defines: &[("byte_size", 2), ("max_operation_id", 1)],
        verdicts: "FFTTFT",
        why: "1b and 2: store, then load it. 1a: observe the other core's value, store another one, load it. 1d speaks of own \
              observations only, and there are none; 3: two cores have no observation in common",
    },
    Fault {
        name: "own_core_observes_twice",
        what: "the write buffer observes each store twice",
        edits: &[(
            FINISH,
            "        observe(core_id, g_address(bs . n), g_data(bs . n), g_nr(bs . n), core_id) .\n        wb_sync_store_finish(core_id, g_address(bs . n), g_data(bs . n), g_nr(bs . n)) .\n",
        )],
        defines: &[],
        verdicts: "TTFTTT",
        why: "1c. The rest: the second observation says what the first said",
    },
    Fault {
        name: "core_polls_forever",
        what: "a core may ask the memory again and again whether an observation is under way",
        edits: &[(
            "  + (sum a: Address, b: Byte, n2: Nat, p: CoreID .\n",
            "  + ip_check_observation . P_IP(core_id, n)\n  + (sum a: Address, b: Byte, n2: Nat, p: CoreID .\n",
        )],
        defines: &[],
        verdicts: "TTTTTF",
        why: "3: the run does not end, and the least fixed point asks that all runs do. The rest speaks of what happens, and nothing does",
    },
    Fault {
        name: "own_observation_early",
        what: "a core observes its store when it starts, before the store is in the buffer",
        edits: &[
            (OWN_OBSERVE, ""),
            (
                "    start_store(core_id, a, d, n) .\n",
                "    start_store(core_id, a, d, n) .\n    observe(core_id, a, d, n, core_id) .\n",
            ),
        ],
        defines: &[("byte_size", 2), ("max_operation_id", 1)],
        verdicts: "FTTTTT",
        why: "1a: it then observes the other core's store, which is written first; then its own is written, and it loads that. \
              3: the cores disagree on the order, but no load can stand between the two observations of the first core, \
              since its own store is still in its buffer",
    },
    Fault {
        name: "own_observation_late",
        what: "a core observes its store only after the memory has taken it over entirely",
        edits: &[(
            "      observe(core_id, g_address(bs . n), g_data(bs . n), g_nr(bs . n), core_id) .\n        wb_sync_store_finish(core_id, g_address(bs . n), g_data(bs . n), g_nr(bs . n)) .\n",
            "      wb_sync_store_finish(core_id, g_address(bs . n), g_data(bs . n), g_nr(bs . n)) .\n        observe(core_id, g_address(bs . n), g_data(bs . n), g_nr(bs . n), core_id) .\n",
        )],
        defines: &[("byte_size", 2), ("max_operation_id", 1)],
        verdicts: "FTTTTT",
        why: "1a: the store is written, overwritten by the other core's, which is observed, and only then is the own store observed; the load \
              returns the other one. 2 and 3: the buffer is busy until the observation, so no load from the address passes before it",
    },
    Fault {
        name: "observation_during_load",
        what: "a core observes between the answer to its load and the end of the load",
        edits: &[(
            "      end_load(core_id, a, d, n)\n    ));",
            "      ( end_load(core_id, a, d, n)\n      + (sum a2: Address, b: Byte, n2: Nat, p: CoreID .\n          ip_sync_observe(core_id, a2, b, n2, p) .\n          observe(core_id, a2, b, n2, p) .\n          ip_sync_observe_finish(core_id, a2, b, n2, p) .\n          end_load(core_id, a, d, n)\n        )\n      )\n    ));",
        )],
        defines: &[],
        verdicts: "FTTTTT",
        why: "1a: the load is answered `undefined`, the core observes the other core's store, the load ends",
    },
    Fault {
        name: "store_done_by_buffer",
        what: "a store is reported done by the buffer when it leaves, while the pipeline has gone on",
        edits: &[
            (
                "    P_IP_SYNC_STORE(core_id, a, n, d) .\n    end_store(core_id, a, d, n)\n",
                "    P_IP_SYNC_STORE(core_id, a, n, d)\n",
            ),
            (
                FINISH,
                "        end_store(core_id, g_address(bs . n), g_data(bs . n), g_nr(bs . n)) .\n        wb_sync_store_finish(core_id, g_address(bs . n), g_data(bs . n), g_nr(bs . n)) .\n",
            ),
        ],
        defines: &[("address_size", 2), ("max_operation_id", 1)],
        verdicts: "TTTFTT",
        why: "1d: a load from the other address was answered; the store leaves and is observed; the load ends; the store is done. \
              2: a store is never done before it is observed",
    },
    Fault {
        name: "write_is_lost",
        what: "the memory answers what it held before all writes",
        edits: &[("P_Observe_All(m_mem_set(m, a, d), ", "P_Observe_All(m, ")],
        defines: &[],
        verdicts: "FTTTTT",
        why: "1a: one core observes the other's store and loads `undefined`. 1b: nothing but that is ever loaded",
    },
    Fault {
        name: "addresses_alias",
        what: "a write goes to all addresses",
        edits: &[(
            "m_mem_set(M, a, b) = M[a -> b];",
            "m_mem_set(M, a, b) = lambda x: Address . b;",
        )],
        defines: &[("address_size", 2)],
        verdicts: "TFTTTT",
        why: "1b: one core stores to one address, the other loads it from the other. 1a: one value only",
    },
    Fault {
        name: "two_memory_commands",
        what: "the model as it is, but the memory queues two commands and carries them out in any order",
        edits: &[],
        defines: &[("memcommands_size", 2), ("max_operation_id", 2)],
        verdicts: "FTTTTF",
        why: "1a: a core's load overtakes its own store in the queue. 3: two stores of two cores wait in the queue, each observed \
              by its own core alone; with loads that overtake them the cores disagree on the order",
    },
    Fault {
        name: "memory_for_each_core",
        what: "the memory queues two commands, and each core sees its own copy of the memory, which changes when the core observes",
        edits: &[
            ("proc P_Memory(m: Memory, ", "proc P_Memory(m: CoreID -> Memory, "),
            ("proc P_Observe_All(m: Memory, ", "proc P_Observe_All(m: CoreID -> Memory, "),
            ("P_Observe_All(m_mem_set(m, a, d), ", "P_Observe_All(m, "),
            (
                "mem_read(a, m_mem_get(m, a), core_id, n)",
                "mem_read(a, m_mem_get(m(core_id), a), core_id, n)",
            ),
            (
                "mem_sync_rec_load(core_id, a, m_mem_get(m, a), n)",
                "mem_sync_rec_load(core_id, a, m_mem_get(m(core_id), a), n)",
            ),
            (
                "P_Memory(m, cmds + m_memory_cmd_set_singleton(c_memory_cmd_write(",
                "P_Memory(m[core_id -> m_mem_set(m(core_id), a, d)], cmds + m_memory_cmd_set_singleton(c_memory_cmd_write(",
            ),
            (
                "P_Observe_All(m, cmds, tail(clist), a, d, n, c)",
                "P_Observe_All(m[head(clist) -> m_mem_set(m(head(clist)), a, d)], cmds, tail(clist), a, d, n, c)",
            ),
            ("P_Memory(m_zero_memory, {:})", "P_Memory(lambda p: CoreID . m_zero_memory, {:})"),
        ],
        defines: &[("memcommands_size", 2), ("max_operation_id", 2)],
        verdicts: "TTTTTF",
        why: "3 as in two_memory_commands: each core sees its own store first. But now every load returns what its core observed last, \
              so 1a holds: the machine is locally consistent, and not cache consistent",
    },
];

/// The formulas of release and acquire, in the order of [`RELEASE_FAULTS`]'s verdicts.
pub const RELEASE_FORMULAS: [&str; 8] = [
    "release/1a",
    "release/1b",
    "release/2.selfobserving",
    "release/4.release",
    "release/5.cumulative",
    "release/6.synchronisation",
    "release/7.location",
    "cores/3.order",
];

/// Faults of the model with store releases and load acquires, which `release_acquire` switches on.
pub const RELEASE_FAULTS: &[Fault] = &[
    Fault {
        name: "released_none",
        what: "the model as it is",
        edits: &[],
        defines: &[("max_operation_id", 1)],
        verdicts: "TTTTTTTT",
        why: "release consistency, and a location order for C++",
    },
    Fault {
        name: "released_three_cores",
        what: "the model as it is, three cores",
        edits: &[],
        defines: &[("num_cores", 3)],
        verdicts: "TTTTTTTT",
        why: "the memory makes all other cores observe a store before it does anything else",
    },
    Fault {
        name: "released_two_buffer_slots",
        what: "the model as it is, with two slots, which drain in any order",
        edits: &[],
        defines: &[("max_operation_id", 1), ("nr_wb_buffers", 2)],
        verdicts: "TTTTTTFT",
        why: "7: two stores of a core to one address leave the buffer in any order. A release waits for the buffer, so 4 holds",
    },
    Fault {
        name: "release_does_not_wait",
        what: "a release enters a buffer in which a store waits",
        edits: &[("(bs == m_wb_init_list) -> (", "(bs . 0 == c_unoccupied) -> (")],
        defines: &[("max_operation_id", 1), ("nr_wb_buffers", 2)],
        verdicts: "TTTFTTFT",
        why: "4: the release leaves first. 5: what a core has observed has left its buffer. 7 as without the fault",
    },
    Fault {
        name: "memory_reorders_releases",
        what: "the memory queues two commands and writes a release before an older store of its core",
        edits: &[(" && m_is_oldest(p, n, cmds)", "")],
        defines: &[("max_operation_id", 1), ("memcommands_size", 2)],
        verdicts: "FTTFFTFF",
        why: "4 and 5: the store is in the queue, observed by its own core alone, when the release is written. 1a, 7 and 3 fail for any queue of two",
    },
    Fault {
        name: "released_two_memory_commands",
        what: "the model as it is, but the memory queues two commands",
        edits: &[],
        defines: &[("max_operation_id", 1), ("memcommands_size", 2)],
        verdicts: "FTTTTTFF",
        why: "what is plain is reordered, as in two_memory_commands; releases and acquires hold their order",
    },
    Fault {
        name: "acquire_passes_release",
        what: "a load acquire does not wait for a release of its core in the buffer",
        edits: &[(" && !is_released(bs . n))", ")")],
        defines: &[("address_size", 2), ("max_operation_id", 1)],
        verdicts: "TTTTTFTT",
        why: "6: both cores release to one address and acquire from the other before the releases leave. C++ allows that, so the rest holds",
    },
    Fault {
        name: "memory_passes_release",
        what: "the memory queues two commands and answers an acquire before it writes an older release of its core",
        edits: &[(" && m_has_no_release(p, n, cmds)) -> (", ") -> (")],
        defines: &[("max_operation_id", 1), ("memcommands_size", 2)],
        verdicts: "FTTTTFFF",
        why: "6: the same in the memory. 1a, 7 and 3 fail for any queue of two",
    },
    Fault {
        name: "one_other_observes",
        what: "the memory makes only one other core observe a store that is no release",
        edits: &[(
            "m_other_cores(c, m_all_cores), a, d, n, c)",
            "[head(m_other_cores(c, m_all_cores))], a, d, n, c)",
        )],
        defines: &[("num_cores", 3)],
        verdicts: "TFTTFTTT",
        why: "5: a core that saw the store releases, the third sees the release. 1b: the third loads the store. 4: one operation a core, so \
              none before a release",
    },
    Fault {
        name: "acquire_passes_buffer",
        what: "a load acquire does not wait for the buffer at all",
        edits: &[(
            "(forall n: Nat . ((n < m_wb_nr_buffers) => !m_buffer_has_addr(bs . n, a) && !is_released(bs . n))) -> (",
            "true -> (",
        )],
        defines: &[("max_operation_id", 1)],
        verdicts: "FTFTTFTT",
        why: "2: store, then acquire with the store still in the buffer; 1a and 6 as in load_passes_buffer and acquire_passes_release",
    },
];
