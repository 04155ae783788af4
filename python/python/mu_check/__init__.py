"""Model checking of mCRL2 specifications against first-order modal mu-calculus formulas.

    >>> import mu_check
    >>> m = mu_check.Model("arcx.spec", max_operation_id=2)
    >>> m.explore().states
    >>> m.check("1a.gos.mcf").evidence
"""

import itertools
import os
from pathlib import Path

from . import _mu_check, _progress
from ._mu_check import Counts, Error, Evidence, Judgement

__all__ = ["Counts", "Error", "Evidence", "Judgement", "Model", "sweep"]


def _options(threads, engine, symmetry, max_states, max_memory, timeout, partial_order=True):
    return {
        "threads": threads,
        "engine": engine,
        "symmetry": symmetry,
        "partial_order": partial_order,
        "max_states": max_states,
        "max_memory": max_memory,
        "timeout": timeout,
    }


def _text(value):
    """Formats a parameter value for the parameter layer."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


class Model:
    """A model with its parameters, ready to be explored and checked.

    ``Model("file.mcrl2", name=value, ...)`` reads a file; ``Model.from_text(text, ...)`` takes a text.
    The ending of the name selects the language, as on the command line.
    """

    def __init__(self, path, /, **parameters):
        given = {name: _text(value) for name, value in parameters.items()}
        self._model = _mu_check.open_model(os.fspath(path), given)
        self.name = os.fspath(path)

    @classmethod
    def from_text(cls, text, /, *, name="model", **parameters):
        """Loads the model of a text; `name` is used in messages."""
        model = cls.__new__(cls)
        model._model = _mu_check.text_model(name, text, {n: _text(v) for n, v in parameters.items()})
        model.name = name
        return model

    @property
    def parameters(self):
        """Returns names and values of the parameters, as texts."""
        return self._model.parameters

    def explore(
        self, *, threads=None, engine="explicit", symmetry=True, max_states=None, max_memory=None, timeout=None, progress=None
    ):
        """Counts states, transitions and deadlocks. A limit (states, bytes, seconds) leaves the counts incomplete.

        `progress`: a function of states, transitions and seconds, or ``True`` for a bar in a notebook and a line on standard error elsewhere.
        """
        watch, finish = _progress.watch(progress, max_states=max_states, timeout=timeout)
        try:
            return self._model.explore(_options(threads, engine, symmetry, max_states, max_memory, timeout), watch)
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

        With `partial_order` steps on which the verdict does not rest are left out, and so are states: the verdict is the same.
        """
        if isinstance(formula, os.PathLike) or str(formula).endswith(".mcf"):
            formula = Path(formula).read_text(encoding="utf-8-sig")
        options = _options(threads, engine, symmetry, max_states, max_memory, timeout, partial_order)
        watch, finish = _progress.watch(progress, max_states=max_states, timeout=timeout)
        try:
            return self._model.check(formula, options, watch)
        finally:
            finish()

    def __repr__(self):
        parameters = "".join(f", {n}={v}" for n, v in self.parameters.items())
        return f"Model({self.name!r}{parameters})"


def sweep(path, formulas=(), *, explore=True, limits=None, progress=None, **parameters):
    """Rows over all combinations of parameter values, one after the other, as dictionaries: ``pandas.DataFrame(sweep(...))``.

    A value that is a list, tuple or range is gone through. `formulas` are paths or texts; `limits` are those of `Model.explore`.
    `progress`: a function of the rows that are done and of all rows, or ``True`` for a bar in a notebook and a line on standard error elsewhere.
    An unknown verdict is ``None``, and `stop` says why. States and equations are those of the whole search, as in the tables of ``mu-check sweep``.
    """
    ranges = {n: list(v) if isinstance(v, (list, tuple, range)) else [v] for n, v in parameters.items()}
    jobs = ([None] if explore else []) + list(formulas)
    total = len(jobs)
    for values in ranges.values():
        total *= len(values)
    tell, finish = _progress.rows(progress, total)
    done = 0
    try:
        for values in itertools.product(*ranges.values()):
            given = dict(zip(ranges, values))
            model = Model(path, **given)
            for formula in jobs:
                tell(done, ", ".join([_job(formula), *(f"{n}={_text(v)}" for n, v in given.items())]))
                yield _row(model, formula, given, limits or {})
                done += 1
        tell(done, "")
    finally:
        finish()


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
