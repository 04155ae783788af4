from os import PathLike
from typing import Any, Callable, Iterator, Literal, Mapping, Sequence

Progress = Callable[[int, int, float], object] | Literal[True] | None
Value = int | bool | str

class Error(Exception):
    message: str
    stage: str
    notes: list[str]
    place: tuple[str, int, int, str] | None
    """Name, line, column and text, if it is in a text that was given."""

class Counts:
    states: int
    transitions: int | None
    deadlocks: int | None
    stop: str
    complete: bool
    seconds: float

class Evidence:
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

class Judgement:
    @property
    def verdict(self) -> bool | None: ...
    @property
    def stop(self) -> str: ...
    @property
    def states(self) -> int: ...
    @property
    def equations(self) -> int: ...
    @property
    def seconds(self) -> float: ...
    @property
    def evidence(self) -> Evidence | None: ...
    def __bool__(self) -> bool: ...

class Model:
    name: str
    def __init__(self, path: str | PathLike[str], /, **parameters: Value) -> None: ...
    @classmethod
    def from_text(cls, text: str, /, *, name: str = "model", **parameters: Value) -> Model: ...
    @property
    def parameters(self) -> dict[str, str]: ...
    def explore(
        self,
        *,
        threads: int | None = None,
        engine: str = "explicit",
        symmetry: bool = True,
        max_states: int | None = None,
        max_memory: int | None = None,
        timeout: float | None = None,
        progress: Progress = None,
    ) -> Counts: ...
    def check(
        self,
        formula: str | PathLike[str],
        *,
        threads: int | None = None,
        engine: str = "explicit",
        symmetry: bool = True,
        partial_order: bool = True,
        max_states: int | None = None,
        max_memory: int | None = None,
        timeout: float | None = None,
        progress: Progress = None,
    ) -> Judgement: ...

def sweep(
    path: str | PathLike[str],
    formulas: Sequence[str | PathLike[str]] = (),
    *,
    explore: bool = True,
    limits: Mapping[str, Any] | None = None,
    **parameters: Value | Sequence[Value] | range,
) -> Iterator[dict[str, Any]]: ...
