from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Callable, Iterator, Literal, Mapping, Protocol, final, overload

from ._mu_check import Error

__version__: str
__all__ = [
    "Conflict",
    "Counts",
    "Error",
    "Evidence",
    "Judgement",
    "Log",
    "Model",
    "Operation",
    "Rows",
    "Trace",
    "TraceAnswer",
    "frame",
    "sweep",
    "trace",
]

_Engine = Literal["explicit", "symbolic", "auto"]
_Stop = Literal["complete", "max-states", "max-memory", "timeout", "interrupted", "process-lost", "buffer-bound"]
_Progress = Callable[[int, int, float], object] | Literal[True] | None
_Value = int | bool | str

class Evidence:
    def __init__(self, source: object) -> None: ...
    @property
    def is_witness(self) -> bool: ...
    @property
    def actions(self) -> list[str]: ...
    @property
    def text(self) -> str: ...
    @property
    def json(self) -> str: ...
    @property
    def svg(self) -> str: ...
    def _repr_svg_(self) -> str: ...

@final
@dataclass(frozen=True)
class Counts:
    states: int
    transitions: int | None
    deadlocks: int | None
    stop: _Stop
    seconds: float = field(compare=False, repr=False)
    @property
    def complete(self) -> bool: ...

@final
@dataclass(frozen=True)
class Judgement:
    verdict: bool | None
    stop: _Stop
    states: int = field(compare=False)
    equations: int = field(compare=False)
    seconds: float = field(compare=False, repr=False)
    evidence: Evidence | None = None
    def __bool__(self) -> bool: ...

class Model:
    name: str
    def __init__(self, path: str | PathLike[str], /, **parameters: _Value) -> None: ...
    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        parameters: Mapping[str, _Value] | None = None,
        *,
        max_memory: int | str | None = None,
        timeout: float | None = None,
    ) -> Model: ...
    @classmethod
    def from_text(cls, text: str, /, *, name: str = "model", **parameters: _Value) -> Model: ...
    @property
    def parameters(self) -> dict[str, str]: ...
    def explore(
        self,
        *,
        threads: int | None = None,
        engine: _Engine = "explicit",
        symmetry: bool = True,
        max_states: float | None = None,
        max_memory: float | str | None = None,
        timeout: float | None = None,
        progress: _Progress = None,
    ) -> Counts: ...
    def check(
        self,
        formula: str | PathLike[str],
        *,
        threads: int | None = None,
        engine: _Engine = "explicit",
        symmetry: bool = True,
        partial_order: bool = True,
        max_states: float | None = None,
        max_memory: float | str | None = None,
        timeout: float | None = None,
        progress: _Progress = None,
    ) -> Judgement: ...

@final
class Rows(Sequence[dict[str, Any]]):
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> list[dict[str, Any]]: ...

def sweep(
    path: str | PathLike[str],
    formulas: str | PathLike[str] | Iterable[str | PathLike[str]] = (),
    *,
    explore: bool = True,
    limits: Mapping[str, Any] | None = None,
    progress: Callable[[int, int], object] | Literal[True] | None = None,
    **parameters: _Value | Iterable[_Value],
) -> Rows: ...
def frame(rows: Iterable[Mapping[str, Any]]) -> Any: ...

@final
@dataclass(frozen=True)
class Operation:
    thread: str
    text: str
    line: int

@final
@dataclass(frozen=True)
class Conflict:
    message: str
    operations: tuple[Operation, ...]
    cycle: tuple[tuple[int, str, int, tuple[int, ...]], ...]

@final
@dataclass(frozen=True)
class TraceAnswer:
    model: str
    allowed: bool | None
    reason: str | None = None
    conflict: Conflict | None = None

@final
@dataclass(frozen=True)
class Trace:
    name: str
    operations: int
    threads: int
    answers: tuple[TraceAnswer, ...] = field(repr=False)
    def __getitem__(self, model: str) -> TraceAnswer: ...
    def allowed(self, model: str) -> bool | None: ...

@final
@dataclass(frozen=True)
class Log:
    traces: tuple[Trace, ...]
    skipped: tuple[str, ...]
    stop: _Stop
    def __iter__(self) -> Iterator[Trace]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, position: int) -> Trace: ...

class _Readable(Protocol):
    def read(self, size: int, /) -> str | bytes: ...

def trace(
    log: str | bytes | bytearray | memoryview | PathLike[str] | _Readable | Iterable[str] | Iterable[bytes] | Iterable[Mapping[str, Any]],
    against: str | Iterable[str] = (),
    *,
    format: str | None = None,
    repair: bool = False,
    name: str | None = None,
    max_revisions: int | None = None,
    max_memory: float | str | None = None,
    timeout: float | None = None,
) -> Log: ...
