"""Results of searches: values that can be compared, stored and shown."""

from dataclasses import dataclass, field
from typing import Optional, final

from ._mu_check import Error


class Evidence:
    """A counterexample or witness, replayed on the model.

    `actions` are the labels of its steps. `text`, `json` and `svg` are the whole, for people,
    programs and pages; a notebook shows the picture.
    """

    _FIELDS = ("is_witness", "actions", "text", "json", "svg")

    def __init__(self, source):
        # An object with these fields as attributes, or a dictionary.
        self._source = source

    def _get(self, name):
        return self._source[name] if isinstance(self._source, dict) else getattr(self._source, name)

    @property
    def is_witness(self):
        """True if it shows that a formula holds."""
        return self._get("is_witness")

    @property
    def actions(self):
        """The labels of its steps; of branching evidence, of all its steps."""
        return self._get("actions")

    @property
    def text(self):
        """Text for people."""
        return self._get("text")

    @property
    def json(self):
        """JSON, in the format of ``evidence.json`` of the schemas."""
        return self._get("json")

    @property
    def svg(self):
        """A picture: a chart of a path, or a tree."""
        return self._get("svg")

    def __getstate__(self):
        return {name: self._get(name) for name in self._FIELDS}

    def __setstate__(self, state):
        self._source = state

    def __eq__(self, other):
        return self.json == other.json if isinstance(other, Evidence) else NotImplemented

    def __hash__(self):
        return hash(self.json)

    def __str__(self):
        return self.text

    def __repr__(self):
        return f"Evidence({len(self.actions)} steps)"

    def _repr_svg_(self):
        return self.svg


@final
@dataclass(frozen=True)
class Counts:
    """Numbers of states, transitions and deadlocks.

    `stop` is ``complete``, or the limit that ended the search. Two results are equal if all but
    their `seconds` are.
    """

    states: int
    transitions: Optional[int]
    deadlocks: Optional[int]
    stop: str
    seconds: float = field(compare=False, repr=False)

    @property
    def complete(self):
        """True if the numbers are exact."""
        return self.stop == "complete"


@final
@dataclass(frozen=True)
class Judgement:
    """A verdict with its evidence.

    `verdict` is ``True``, ``False``, or ``None`` if a limit ended the search; `stop` then names the
    limit. `states` and `equations` are those of the search. Two results are equal if their verdicts,
    stop reasons and evidence are.
    """

    verdict: Optional[bool]
    stop: str
    states: int = field(compare=False)
    equations: int = field(compare=False)
    seconds: float = field(compare=False, repr=False)
    evidence: Optional[Evidence] = None

    def __bool__(self):
        if self.verdict is None:
            raise Error(f"the verdict is unknown: {self.stop}")
        return self.verdict
