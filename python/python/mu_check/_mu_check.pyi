from typing import Any, Callable, Mapping, final

VERSION: str

class Error(Exception):
    message: str
    stage: str
    notes: list[str]
    place: tuple[str, int, int, str] | None
    """Name, line, column and text, if it is in a text that was given."""

@final
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

@final
class Model:
    @property
    def parameters(self) -> dict[str, str]: ...
    def explore(
        self, /, options: Mapping[str, Any], progress: Callable[[int, int, float], object] | None = None
    ) -> tuple[int, int | None, int | None, str, float]: ...
    def check(
        self, /, formula: str, options: Mapping[str, Any], progress: Callable[[int, int, float], object] | None = None
    ) -> tuple[bool | None, str, int, int, float, Evidence | None]: ...

def open_model(path: str, parameters: Mapping[str, str], options: Mapping[str, Any]) -> Model: ...
def text_model(name: str, text: str, parameters: Mapping[str, str], options: Mapping[str, Any]) -> Model: ...
def trace_log(
    name: str,
    read: Callable[[int], bytes] | None,
    against: list[str],
    format: str | None,
    repair: bool,
    max_revisions: int | None,
    options: Mapping[str, Any],
) -> str: ...
