from os import PathLike
from typing import Any, Callable, Iterator, Literal, Mapping, Sequence

from ._mu_check import Counts, Error, Evidence, Judgement

__all__ = ["Counts", "Error", "Evidence", "Judgement", "Model", "sweep"]

_Progress = Callable[[int, int, float], object] | Literal[True] | None
_Value = int | bool | str

class Model:
    name: str
    def __init__(self, path: str | PathLike[str], /, **parameters: _Value) -> None: ...
    @classmethod
    def from_text(cls, text: str, /, *, name: str = "model", **parameters: _Value) -> Model: ...
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
        progress: _Progress = None,
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
        progress: _Progress = None,
    ) -> Judgement: ...

def sweep(
    path: str | PathLike[str],
    formulas: Sequence[str | PathLike[str]] = (),
    *,
    explore: bool = True,
    limits: Mapping[str, Any] | None = None,
    progress: Callable[[int, int], object] | Literal[True] | None = None,
    **parameters: _Value | Sequence[_Value] | range,
) -> Iterator[dict[str, Any]]: ...
