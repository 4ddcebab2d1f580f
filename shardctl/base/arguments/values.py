"""Single values as Python's own: what a value of NumPy, TensorFlow or Keras stands for.

Nothing is imported for it: numbers of other libraries are known by what they can do.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from operator import index
from typing import Any

from shardctl.base.tfds_rules import INT64_MAX
from shardctl.errors import UsageError

# More than a seed has, and few enough digits that Python writes the number out (4300).
_MOST_DIGITS = 4100
_MOST = 10**_MOST_DIGITS


def whole_number(value: object) -> int:
    """Return the int that a value is: an int, or a scalar of NumPy, TensorFlow, Keras, JAX, ...

    A truth value is no number, and 1.0 is not a whole one.

    >>> whole_number(7)
    7
    >>> whole_number(True)
    Traceback (most recent call last):
    ...
    shardctl.errors.UsageError: a whole number is needed

    Raises:
        UsageError: it is none; the text is the rule.
    """
    if type(value) is int and -_MOST < value < _MOST:
        return value
    number = _index(value)
    if number is None:
        number = _index(_held_by_variable(value))
    if number is None:
        raise UsageError(f"a whole number is needed{_way_out(value)}")
    if not -_MOST < number < _MOST:
        raise UsageError(f"a whole number of at most {_MOST_DIGITS} digits is needed")
    return number


def truth_value(value: object) -> bool:
    """Return the bool that a value is: True or False, or one of NumPy or TensorFlow.

    A text counts as true in Python whatever it says, and so does a number: both are refused.

    >>> truth_value("no")
    Traceback (most recent call last):
    ...
    shardctl.errors.UsageError: true or false is needed

    Raises:
        UsageError: it is none.
    """
    if isinstance(value, bool):
        return value
    if _is_truth(value) and tuple(getattr(value, "shape", (0,))) == ():
        return bool(value)
    raise UsageError("true or false is needed")


def real_number(value: Any) -> float:
    """Return the float that a number is, whole ones included.

    >>> real_number(1)
    1.0

    Raises:
        UsageError: it is none, or not finite.
    """
    if not isinstance(value, str | bytes | bytearray) and not _is_truth(value):
        try:
            number = float(value)
        except Exception:  # noqa: S110  # what a foreign type raises is its own affair
            pass
        else:
            if math.isfinite(number):
                return number
    raise UsageError("a number is needed")


def text(value: object) -> str:
    """Return the str that a text is; NumPy has one of its own, and a member of an enum may be one.

    Raises:
        UsageError: it is none.
    """
    if isinstance(value, str):
        return str.__str__(value)  # str() of a member of an enum is its name there
    raise UsageError("a text is needed")


def byte_string(value: object) -> bytes:
    """Return the bytes that a value is; a text is none, NumPy's `bytes_` and a bytearray are.

    >>> byte_string(bytearray(b"ab"))
    b'ab'

    Raises:
        UsageError: it is none.
    """
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise UsageError("bytes are needed")


def _index(value: Any) -> int | None:
    try:
        return None if _is_truth(value) else index(value)
    except Exception:  # TensorFlow: AttributeError of floats, TypeError of graphs
        return None


def _is_truth(value: object) -> bool:
    return isinstance(value, bool) or "bool" in str(getattr(value, "dtype", ""))


def _held_by_variable(value: Any) -> object:
    """Return what a variable holds, as `optimizer.iterations`; None where it cannot be had.

    Variables of TensorFlow and Keras convert to an int, which floats do too; `numpy()` keeps the
    type.
    """
    try:
        return value.numpy()
    except Exception:  # no variable, or one within a graph
        return None


def _way_out(value: object) -> str:
    kind = type(value)
    library = kind.__module__.partition(".")[0]
    if library in ("tensorflow", "keras"):
        return ", as step.numpy() gives one outside of a tf.function"
    if library == "jax" and kind.__name__.endswith("Tracer"):
        return ", as int(step) gives one outside of jax.jit"
    return ""


# Numbers of bytes as people write them: 8GiB, 500 MB, 4096.

_NUMBER = re.compile(r"(\d[\d_,]*(?:\.\d*)?|\.\d+)\s*([a-z]*)", re.IGNORECASE)
_LETTERS = ("k", "m", "g", "t", "p", "e")
_UNITS = {
    "": 1,
    "b": 1,
    **{letter: 1024**power for power, letter in enumerate(_LETTERS, 1)},
    **{f"{letter}i": 1024**power for power, letter in enumerate(_LETTERS, 1)},
    **{f"{letter}ib": 1024**power for power, letter in enumerate(_LETTERS, 1)},
    **{f"{letter}b": 1000**power for power, letter in enumerate(_LETTERS, 1)},
}
_RULE = "a number of bytes is needed, as 8GiB, 500MB or 4096"


def byte_count(value: object) -> int:
    """Return how many bytes a value says: a whole number, or a text with a unit.

    KiB, MiB, GiB and so on are powers of 1024, and so is a letter alone, as in `free -h` and
    Kubernetes' `Gi`; KB, MB, GB are powers of 1000. A part of a byte is dropped.

    >>> byte_count("8GiB"), byte_count("1.5 kB"), byte_count(4096)
    (8589934592, 1500, 4096)

    Raises:
        UsageError: it says none, or fewer than 1 or more than an int64 holds.
    """
    if not isinstance(value, str):
        number = whole_number(value)
    else:
        found = _NUMBER.fullmatch(value.strip())
        if found is None or found[2].lower() not in _UNITS or len(value) > 100:
            raise UsageError(_RULE)
        amount = Fraction(re.sub("[_,]", "", found[1]))
        number = int(amount * _UNITS[found[2].lower()])
    if not 1 <= number <= INT64_MAX:
        raise UsageError(_RULE)
    return number
