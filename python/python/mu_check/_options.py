"""Options of searches and values of parameters: Python's values, checked, as the program's.

A value that has no meaning raises ``ValueError`` or ``TypeError`` and names the argument.
"""

import math
import numbers
import os
import re

ENGINES = ("explicit", "symbolic", "auto")
_MOST_THREADS = 1024
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
# About 136 years.
_LONGEST = 2.0**32


def _whole(name, value, least, most):
    """Returns an integer from `least` to `most`; ``1e6`` is one."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} is {value!r}, expected a whole number")
    if not math.isfinite(value) or value != int(value) or not least <= value <= most:
        raise ValueError(f"{name} is {value!r}, expected a whole number from {least} to {most}")
    return int(value)


def _seconds(value):
    """Returns seconds; ``None`` without a limit."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"timeout is {value!r}, expected a number of seconds")
    value = float(value)
    if value == math.inf:
        return None
    if math.isnan(value) or not 0 <= value <= _LONGEST:
        raise ValueError(f"timeout is {value!r}, expected a number of seconds from 0 to {_LONGEST:.0f}, or math.inf")
    return value


def _bytes(value):
    """Returns a number of bytes; ``"2G"`` and ``"512 MiB"`` have a unit."""
    if not isinstance(value, str):
        return _whole("max_memory", value, 0, 2**63)
    size = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?\s*", value, re.IGNORECASE)
    if not size:
        raise ValueError(f"max_memory is {value!r}, expected a number of bytes, or a text such as '2G' or '512M'")
    return int(float(size[1]) * _UNITS[size[2].upper()])


def search(threads=None, engine="explicit", symmetry=True, partial_order=True, max_states=None, max_memory=None, timeout=None):
    """Returns the options of a search for the program."""
    if engine not in ENGINES:
        raise ValueError(f"engine is {engine!r}, expected one of {', '.join(map(repr, ENGINES))}")
    return {
        "threads": None if threads is None else _whole("threads", threads, 1, _MOST_THREADS),
        "engine": engine,
        "symmetry": bool(symmetry),
        "partial_order": bool(partial_order),
        "max_states": None if max_states is None else _whole("max_states", max_states, 0, 2**63),
        "max_memory": None if max_memory is None else _bytes(max_memory),
        "timeout": None if timeout is None else _seconds(timeout),
    }


def parameter(value):
    """Returns the text of the value of a parameter. A NumPy number counts as Python's."""
    if getattr(value, "ndim", None) == 0:
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def values(value):
    """Returns the list of the values of a parameter in a sweep.

    A list, range, set, generator or array is a range of values; a text or number is one value.
    """
    if isinstance(value, (str, bytes, os.PathLike)) or not hasattr(value, "__iter__") or getattr(value, "ndim", 1) == 0:
        return [value]
    if isinstance(value, (set, frozenset)):
        try:
            return sorted(value)
        except TypeError:
            return sorted(value, key=str)
    return list(value)


def formulas(value):
    """Returns the list of formulas: a single path or text is one."""
    return [value] if isinstance(value, (str, os.PathLike)) else list(value)
