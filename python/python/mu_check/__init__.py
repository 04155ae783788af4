"""Model checking of mCRL2 specifications against first-order modal mu-calculus formulas.

    >>> import mu_check
    >>> m = mu_check.Model("arcx.spec", max_operation_id=2)
    >>> m.explore().states
    >>> m.check("1a.gos.mcf").evidence
"""

import collections.abc
import itertools
import operator
import os
from pathlib import Path

from . import _mu_check, _options, _progress
from ._mu_check import Error
from ._results import Counts, Evidence, Judgement
from ._traces import Conflict, Log, Operation, Trace, TraceAnswer, trace

__version__ = _mu_check.VERSION
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

# `help()` and `repr()` show the names that users import.
for _result in (Conflict, Counts, Evidence, Judgement, Log, Operation, Trace, TraceAnswer, trace):
    _result.__module__ = __name__
del _result


class Model:
    """A model with its parameters, ready to be explored and checked.

    ``Model("file.mcrl2", name=value, ...)`` reads a file; ``Model.from_text(text, ...)`` takes a
    text. The ending of the name selects the language, as on the command line. Reading evaluates
    initial values; ``Model.open`` has limits for it. Searches of one model run one after the other.

    Errors: ``Error`` for an error in the model or a parameter, ``OSError`` (for instance
    ``FileNotFoundError``) for a file that cannot be read.
    """

    def __init__(self, path, /, **parameters):
        self._load(path, parameters, _options.search())

    @classmethod
    def open(cls, path, parameters=None, *, max_memory=None, timeout=None):
        """Reads a file within limits (bytes, seconds); `parameters` is a dictionary.

        A limit raises ``Error`` with the stage ``limit``.
        """
        model = cls.__new__(cls)
        model._load(path, parameters or {}, _options.search(max_memory=max_memory, timeout=timeout))
        return model

    @classmethod
    def from_text(cls, text, /, *, name="model", **parameters):
        """Loads the model of a text; `name` is used in messages."""
        model = cls.__new__(cls)
        given = {n: _options.parameter(v) for n, v in parameters.items()}
        model._model = _mu_check.text_model(name, text, given, _options.search())
        model.name = name
        return model

    def _load(self, path, parameters, options):
        self.name = os.fspath(path)
        # A missing file raises the error of Python's own functions.
        with open(self.name, "rb"):
            pass
        given = {name: _options.parameter(value) for name, value in parameters.items()}
        self._model = _mu_check.open_model(self.name, given, options)

    @property
    def parameters(self):
        """Names and values of the parameters, as texts."""
        return self._model.parameters

    def explore(
        self, *, threads=None, engine="explicit", symmetry=True, max_states=None, max_memory=None, timeout=None, progress=None
    ):
        """Counts states, transitions and deadlocks. A limit leaves the counts incomplete.

        `max_memory` is a number of bytes, or a text such as ``"2G"``; `timeout` is in seconds.
        `progress`: a function of states, transitions and seconds, or ``True`` for a bar in a
        notebook and a line on standard error elsewhere.
        """
        options = _options.search(threads, engine, symmetry, True, max_states, max_memory, timeout)
        watch, finish = _progress.watch(progress, max_states=options["max_states"], timeout=options["timeout"])
        try:
            return Counts(*self._model.explore(options, watch))
        finally:
            finish()

    def check(
        self,
        formula,
        *,
        threads=None,
        engine="explicit",
        symmetry=True,
        partial_order=True,
        max_states=None,
        max_memory=None,
        timeout=None,
        progress=None,
    ):
        """Checks a formula: a path to an ``.mcf`` file, or the text of one.

        With `partial_order`, transitions that cannot affect the verdict are left out, and so are
        states: the verdict is the same. The other arguments are those of `explore`.
        """
        if isinstance(formula, os.PathLike) or str(formula).endswith(".mcf"):
            formula = Path(formula).read_text(encoding="utf-8-sig")
        options = _options.search(threads, engine, symmetry, partial_order, max_states, max_memory, timeout)
        watch, finish = _progress.watch(progress, max_states=options["max_states"], timeout=options["timeout"])
        try:
            verdict, stop, states, equations, seconds, evidence = self._model.check(formula, options, watch)
        finally:
            finish()
        evidence = None if evidence is None else Evidence(evidence)
        return Judgement(verdict, stop, states, equations, seconds, evidence)

    def __repr__(self):
        parameters = "".join(f", {n}={v}" for n, v in self.parameters.items())
        return f"Model({self.name!r}{parameters})"


class Rows(collections.abc.Sequence):
    """Rows of a sweep, as dictionaries: a sequence of known length.

    A row is computed when it is first read, and stored: iterating shows rows as they arrive, and a
    second pass computes nothing. `len` computes nothing.
    """

    def __init__(self, path, jobs, ranges, limits, progress):
        self._total = len(jobs)
        for values in ranges.values():
            self._total *= len(values)
        self._rows = []
        self._source = None
        self._request = path, jobs, ranges, limits, progress

    def _computed(self, path, jobs, ranges, limits, progress):
        """Generates the rows that are not stored yet."""
        report, finish = _progress.rows(progress, self._total)
        done, model, last = len(self._rows), None, None
        try:
            for values, formula in itertools.islice(itertools.product(itertools.product(*ranges.values()), jobs), done, None):
                given = dict(zip(ranges, values))
                if model is None or given != last:
                    model, last = Model(path, **given), given
                settings = (f"{n}={_options.parameter(v)}" for n, v in given.items())
                report(done, ", ".join([_job(formula), *settings]))
                yield _row(model, formula, given, limits)
                done += 1
            report(done, "")
        finally:
            finish()

    def _compute(self, count):
        """Computes rows until this number is stored; after an error, the next call continues."""
        try:
            while len(self._rows) < count:
                if self._source is None:
                    self._source = self._computed(*self._request)
                self._rows.append(next(self._source))
                if len(self._rows) == self._total:
                    # The generator reports the end.
                    next(self._source, None)
        except BaseException:
            self._source = None
            raise

    def __len__(self):
        return self._total

    def __getitem__(self, index):
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self._total))]
        at = operator.index(index)
        at += self._total if at < 0 else 0
        if not 0 <= at < self._total:
            raise IndexError(f"the sweep has {self._total} rows")
        self._compute(at + 1)
        return self._rows[at]

    def __iter__(self):
        for at in range(self._total):
            yield self[at]

    def __repr__(self):
        return f"Rows({len(self._rows)} of {self._total} computed)"


def sweep(path, formulas=(), *, explore=True, limits=None, progress=None, **parameters):
    """Returns the rows over all combinations of parameter values, in order, as dictionaries.

    The result is a sequence of known length that computes a row when it is first read.
    ``mu_check.frame(sweep(...))`` is a table. A value that is a list, range, set, generator or
    array is gone through. `formulas` are paths or texts, or a single one; `limits` are those of
    `Model.explore`. `progress`: a function of the finished rows and of all rows, or ``True`` for a
    bar in a notebook and a line on standard error elsewhere. An unknown verdict is ``None``, and
    `stop` says why. States and equations are those of the whole search, as in the tables of
    ``mu-check sweep``.
    """
    ranges = {n: _options.values(v) for n, v in parameters.items()}
    jobs = ([None] if explore else []) + _options.formulas(formulas)
    return Rows(path, jobs, ranges, dict(limits or {}), progress)


def frame(rows):
    """Returns a pandas table of the rows of a sweep.

    Columns of integers stay integers where a row has no value.
    """
    import pandas

    return pandas.DataFrame(list(rows)).convert_dtypes()


def _job(formula):
    """Returns the name of a job in a row."""
    if formula is None:
        return "explore"
    return Path(formula).stem if str(formula).endswith(".mcf") else str(formula)


def _row(model, formula, given, limits):
    row = {"job": _job(formula), **given}
    if formula is None:
        counts = model.explore(**limits)
        return {
            **row,
            "states": counts.states,
            "transitions": counts.transitions,
            "deadlocks": counts.deadlocks,
            "equations": None,
            "verdict": None,
            "stop": counts.stop,
            "seconds": counts.seconds,
        }
    judgement = model.check(formula, **{"partial_order": False, **limits})
    return {
        **row,
        "states": judgement.states,
        "transitions": None,
        "deadlocks": None,
        "equations": judgement.equations,
        "verdict": judgement.verdict,
        "stop": judgement.stop,
        "seconds": judgement.seconds,
    }


def __dir__():
    """Names of the module for completion: those that users import."""
    return [*__all__, "__version__"]
