"""The lines of TensorFlow that orders were compared with, and what pip has to be told for each.

Left to itself, pip puts packages beside an older TensorFlow that are too new for it: it looks at
what they ask of each other, and not all of them say what they need.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# Older ones are broken by protobuf 7, which pip puts beside TensorFlow 2.20 and newer; 4.9.6 also
# leaves out that it needs importlib_resources.
TFDS = "tensorflow-datasets>=4.9.10"

# TFDS imports tensorflow-metadata, whose code from 1.18 on refuses the protobuf that TensorFlow up
# to 2.19 takes, but does not ask pip for another.
_METADATA = "tensorflow-metadata<1.18"

# From 26 on pyarrow refuses the NumPy 1 of TensorFlow up to 2.17, but does not ask pip for another.
_PYARROW = "pyarrow<26"


@dataclass(frozen=True, kw_only=True, slots=True)
class TensorflowLine:
    """A line of TensorFlow, as 2.18.

    pythons: the versions of Python that it is published for, of those that shardctl supports.
    besides: what pip has to be told of other packages.
    """

    name: str
    pythons: tuple[str, ...]
    besides: tuple[str, ...] = ()


LINES = (
    TensorflowLine(name="2.16", pythons=("3.11", "3.12"), besides=(_METADATA, _PYARROW)),
    TensorflowLine(name="2.17", pythons=("3.11", "3.12"), besides=(_METADATA, _PYARROW)),
    TensorflowLine(name="2.18", pythons=("3.11", "3.12"), besides=(_METADATA,)),
    TensorflowLine(name="2.19", pythons=("3.11", "3.12"), besides=(_METADATA,)),
    TensorflowLine(name="2.20", pythons=("3.11", "3.12", "3.13")),
    TensorflowLine(name="2.21", pythons=("3.11", "3.12", "3.13")),
)

_NUMBERS = re.compile(r"(\d+)\.(\d+)")


def line_of(version: str) -> str | None:
    """Return the line that a version belongs to; None of what is no version.

    >>> line_of("2.18.1"), line_of("2.23.0-dev20270101"), line_of("unknown")
    ('2.18', '2.23', None)
    """
    numbers = _NUMBERS.match(version)
    return None if numbers is None else numbers[0]


def is_newer_than_known(version: str) -> bool:
    """Return whether a version of TensorFlow is of a newer line than any that was compared.

    >>> is_newer_than_known("2.21.3"), is_newer_than_known("2.110.0")
    (False, True)
    """
    line = line_of(version)
    return line is not None and _numbers(line) > _numbers(LINES[-1].name)


def install_command(version: str, package: str = "tensorflow") -> str:
    """Return the command that installs TFDS beside a version of TensorFlow, so that both work.

    package: what TensorFlow was installed as.

    >>> install_command("2.20.0")
    "pip install 'tensorflow==2.20.*' 'tensorflow-datasets>=4.9.10'"
    """
    line = _known(version)
    if line is None:  # nobody has tried what goes with it
        return "pip install -U tensorflow tensorflow-datasets"
    wanted = (f"{package}=={line.name}.*", TFDS, *line.besides)
    return " ".join(("pip install", *(f"'{requirement}'" for requirement in wanted)))


def requirement_beside(version: str, package: str) -> str | None:
    """Return what pip has to be told of a package beside a version of TensorFlow.

    >>> requirement_beside("2.16.2", "pyarrow"), requirement_beside("2.20.0", "pyarrow")
    ('pyarrow<26', None)
    """
    line = _known(version)
    besides = () if line is None else line.besides
    return next((wanted for wanted in besides if wanted.startswith(package)), None)


def _known(version: str) -> TensorflowLine | None:
    return next((line for line in LINES if line.name == line_of(version)), None)


def _numbers(line: str) -> tuple[int, ...]:
    return tuple(map(int, line.split(".")))
