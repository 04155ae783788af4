"""Logs of memory operations: paths, texts, files, iterators of lines and of records, errors, limits."""

import gzip
import io
import os
import pickle
import signal
import threading
import time
from pathlib import Path

import mu_check
import pytest

TRACES = Path(__file__).parents[2] / "specs" / "traces"
BUFFERS = "# SB\n0: M[0] := 1\n0: M[1] == 0\n1: M[1] := 1\n1: M[0] == 0\n"
RECORDS = [
    {"thread": 0, "operation": "store", "address": 0x1000, "value": 1},
    {"thread": 0, "operation": "load", "address": 0x1008, "value": 0},
    {"thread": 1, "operation": "store", "address": 0x1008, "value": 1},
    {"thread": 1, "operation": "load", "address": 0x1000, "value": 0},
]


def verdicts(log):
    return [{a.model: a.allowed for a in trace.answers} for trace in log]


def test_every_source_has_the_same_answers(tmp_path):
    expected = [{"sc": False, "tso": True}]
    packed = tmp_path / "log.gz"
    packed.write_bytes(gzip.compress(BUFFERS.encode()))
    with open(TRACES / "store_buffering.axe", encoding="utf-8") as text, open(packed, "rb") as data:
        for source in [
            TRACES / "store_buffering.axe",
            str(TRACES / "store_buffering.axe"),
            packed,
            BUFFERS,
            BUFFERS.encode(),
            text,
            data,
            io.StringIO(BUFFERS),
            io.BytesIO(BUFFERS.encode()),
            BUFFERS.splitlines(),
            (line for line in BUFFERS.splitlines(keepends=True)),
            iter(RECORDS),
            (dict(r, commit=None) for r in RECORDS),
        ]:
            assert verdicts(mu_check.trace(source, ["tso", "sc"])) == expected, source
    assert [a.model for a in mu_check.trace(BUFFERS)[0].answers] == ["sc", "tso", "pso", "rvwmo", "armv8", "wmo", "pow"]
    assert mu_check.trace(BUFFERS, "tso")[0].allowed("tso") is True


def test_conflicts_have_the_operations_that_imply_them():
    log = mu_check.trace("0: M[0] := 1\n0: M[0] := 2\n0: M[0] == 1\n", "sc")
    conflict = log[0]["sc"].conflict
    assert [o.line for o in conflict.operations] == [1, 2, 3]
    assert any(because for *_, because in conflict.cycle)
    assert "line 3  0: M[0] == 1" in str(conflict)
    assert pickle.loads(pickle.dumps(log)) == log and hash(log) == hash(log)
    with pytest.raises(KeyError):
        log[0]["tso"]


def test_iterators_are_streams():
    read = []

    def records():
        for k in range(20_000):
            yield {"trace": k // 10, "thread": k % 2, "operation": "store", "address": "x", "value": k}
            read.append(k)

    log = mu_check.trace(records(), "sc")
    assert len(log) == 2_000 and len(read) == 20_000
    numpy = pytest.importorskip("numpy")
    array = ({"thread": t, "operation": "store", "address": "x", "value": v} for t, v in zip(numpy.arange(2), numpy.array([5, 2**63], dtype=numpy.uint64)))
    assert mu_check.trace(array, "sc")[0].allowed("sc") is True


def test_errors():
    with pytest.raises(mu_check.Error, match="2:"):
        mu_check.trace("0: M[0] := 1\n0: M[0] ?\n", "sc")
    assert len(mu_check.trace("0: M[0] := 1\n0: M[0] ?\n", "sc", repair=True).skipped) == 1
    with pytest.raises(mu_check.Error, match="weak"):
        mu_check.trace(BUFFERS, "weak")
    with pytest.raises(mu_check.Error, match="xml"):
        mu_check.trace(BUFFERS, format="xml")
    with pytest.raises(FileNotFoundError):
        mu_check.trace("missing.axe")
    for wrong in [7, None, {"thread": 0}, [7], [RECORDS[0], "0: sync"]]:
        with pytest.raises(TypeError):
            mu_check.trace(wrong)
    with pytest.raises(mu_check.Error, match="no operation"):
        mu_check.trace([])

    def broken():
        yield BUFFERS
        raise ZeroDivisionError("of the simulator")

    with pytest.raises(ZeroDivisionError, match="of the simulator"):
        mu_check.trace(broken())


def endless():
    while True:
        yield from BUFFERS.splitlines()
        yield "check"


def test_limits_and_interrupts_end_the_reading():
    log = mu_check.trace(endless(), "sc", timeout=0.5)
    assert log.stop == "timeout" and len(log) > 0
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        mu_check.trace(endless(), "sc")
    assert time.monotonic() - start < 10
