"""Logs of memory operations, judged by memory models: the sources of logs, and results as values."""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Optional, Tuple, final

from . import _mu_check, _options
from ._mu_check import Error


@final
@dataclass(frozen=True)
class Operation:
    """An operation of a log: its thread, its text, and its line (of an iterator: the position)."""

    thread: str
    text: str
    line: int

    def __str__(self):
        return f"line {self.line}  {self.thread}: {self.text}"


@final
@dataclass(frozen=True)
class Conflict:
    """The reason why a trace is forbidden.

    `operations` are forbidden without the rest of the trace. `cycle` has edges: first operation,
    relation, second operation, and further operations that imply the edge, all as positions in
    `operations`; it is empty if one operation alone is impossible.
    """

    message: str
    operations: Tuple[Operation, ...]
    cycle: Tuple[Tuple[int, str, int, Tuple[int, ...]], ...]

    def __str__(self):
        lines = [self.message]
        for start, relation, _, _ in self.cycle:
            lines.append(f"  {self.operations[start]}   \u2014{relation}\u2192")
        if self.cycle:
            lines.append(f"  {self.operations[self.cycle[-1][2]]}")
        on_cycle = {position for edge in self.cycle for position in (edge[0], edge[2])}
        others = [o for i, o in enumerate(self.operations) if i not in on_cycle]
        lines += ["  with"] if self.cycle and others else []
        return "\n".join(lines + [f"  {o}" for o in others])


@final
@dataclass(frozen=True)
class TraceAnswer:
    """The answer of one model: `allowed` is ``None`` if it is unknown; `reason` then says why."""

    model: str
    allowed: Optional[bool]
    reason: Optional[str] = None
    conflict: Optional[Conflict] = None


@final
@dataclass(frozen=True)
class Trace:
    """A trace of a log with the answer of each model, strongest first."""

    name: str
    operations: int
    threads: int
    answers: Tuple[TraceAnswer, ...] = field(repr=False)

    def __getitem__(self, model):
        """Returns the answer of a model."""
        for answer in self.answers:
            if answer.model == model:
                return answer
        raise KeyError(model)

    def allowed(self, model):
        """Returns ``True``, ``False``, or ``None`` if the answer of the model is unknown."""
        return self[model].allowed


@final
@dataclass(frozen=True)
class Log:
    """The traces of a log, in order. `skipped`: the errors of skipped lines. `stop` is ``complete``,
    or the limit that ended the reading: later traces are missing."""

    traces: Tuple[Trace, ...]
    skipped: Tuple[str, ...]
    stop: str

    def __iter__(self):
        return iter(self.traces)

    def __len__(self):
        return len(self.traces)

    def __getitem__(self, position):
        return self.traces[position]


def trace(
    log, against=(), *, format=None, repair=False, name=None, max_revisions=None, max_memory=None, timeout=None
):
    """Decides whether memory models allow the traces of a log.

    `log`: a path; the text or bytes of a log; a file or another object with `read`; or an iterable
    of lines, or of records, which are dictionaries with the columns of ``docs/traces.md`` as keys. A
    string with a line break is a text, any other one is a path. An iterable is read while traces are
    decided. `against`: names of models, or a single one; all built-in models by default. `format` is
    recognised by the name and the content; `name` is used in messages.

    Errors: ``Error`` for a line with an error, unless `repair`; ``OSError`` for a file that cannot
    be read; exceptions of the iterable itself.
    """
    against = [against] if isinstance(against, str) else list(against)
    if not all(isinstance(model, str) for model in against):
        raise TypeError(f"against is {against!r}, expected names of models")
    path, read, found = _source(log)
    if max_revisions is not None:
        max_revisions = _options._whole("max_revisions", max_revisions, 0, 2**63)
    options = _options.search(max_memory=max_memory, timeout=timeout)
    name = path or name or getattr(log, "name", None)
    name = name if isinstance(name, str) else "log"
    answer = _mu_check.trace_log(name, read, against, format or found, bool(repair), max_revisions, options)
    return _log(json.loads(answer))


def _source(log):
    """Returns a path, or a function that reads a part of a log; and the format, if it is known."""
    if isinstance(log, os.PathLike) or isinstance(log, str) and "\n" not in log:
        path = os.fspath(log)
        if not isinstance(path, str):
            raise TypeError(f"log is {log!r}, expected a path that is a string")
        # A missing file raises the error of Python's own functions.
        with open(path, "rb"):
            pass
        return path, None, None
    if isinstance(log, str):
        return None, _Parts([log]).read, None
    if isinstance(log, (bytes, bytearray, memoryview)):
        return None, _Parts([bytes(log)]).read, None
    if hasattr(log, "read"):
        return None, _Parts(iter(lambda: log.read(1 << 16), None)).read, None
    if isinstance(log, Mapping) or not isinstance(log, Iterable):
        raise TypeError(f"log is {log!r}, expected a path, a text, a file, or an iterable of lines or records")
    records = iter(log)
    first = next(records, None)
    if first is None:
        raise Error("the log has no operation")
    if isinstance(first, Mapping):
        return None, _Parts(_lines(first, records)).read, "json"
    if not isinstance(first, (str, bytes)):
        raise TypeError(f"the log has {first!r}, expected lines or dictionaries")
    return None, _Parts(_terminated(first, records)).read, None


def _chain(first, rest):
    yield first
    yield from rest


def _lines(first, rest):
    """Yields a line of JSON for each record."""
    for record in _chain(first, rest):
        if not isinstance(record, Mapping):
            raise TypeError(f"the log has {record!r}, expected a dictionary")
        yield json.dumps({str(k): _value(v) for k, v in record.items() if v is not None}) + "\n"


def _terminated(first, rest):
    """Yields each line with its end."""
    for line in _chain(first, rest):
        if isinstance(line, str):
            line = line.encode()
        if not isinstance(line, bytes):
            raise TypeError(f"the log has {line!r}, expected a line")
        yield line if line.endswith(b"\n") else line + b"\n"


def _value(value):
    """Returns a value for JSON; a NumPy number counts as Python's."""
    if getattr(value, "ndim", None) == 0:
        value = value.item()
    return value if isinstance(value, (bool, int)) else str(value)


class _Parts:
    """Parts of a log, read by their size."""

    def __init__(self, parts):
        self._parts = iter(parts)
        self._part, self._at = b"", 0

    def read(self, size):
        """Returns at most `size` bytes; none at the end."""
        out = bytearray()
        while len(out) < size:
            if self._at == len(self._part):
                part = next(self._parts, None)
                if not part:
                    # A file returns nothing at its end.
                    self._parts = iter(())
                    break
                self._part, self._at = part.encode() if isinstance(part, str) else bytes(part), 0
            taken = self._part[self._at : self._at + size - len(out)]
            self._at += len(taken)
            out += taken
        return bytes(out)


def _log(value):
    def conflict(c):
        cycle = tuple((start, relation, end, tuple(because)) for start, relation, end, because in c["cycle"])
        return Conflict(c["message"], tuple(Operation(*o) for o in c["operations"]), cycle)

    def answer(a):
        found = None if a["conflict"] is None else conflict(a["conflict"])
        return TraceAnswer(a["model"], a["allowed"], a["reason"], found)

    traces = tuple(
        Trace(t["name"], t["operations"], t["threads"], tuple(answer(a) for a in t["answers"]))
        for t in value["traces"]
    )
    return Log(traces, tuple(value["skipped"]), value["stop"])
