"""The kinds of settings: which values they take, in Python and in a document."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any

from shardctl.core.hosts.host import Host
from shardctl.core.text import choices
from shardctl.core.tfds_rules import INT64_MAX, WHOLE_DATASET
from shardctl.errors import UsageError


@dataclass(frozen=True, kw_only=True, eq=False)
class SettingKind(ABC):
    """What a setting takes; None, for TFDS's default, is not asked about.

    least: the least of the numbers, where they have one. words: those that may stand for a value.
    """

    # All kinds share these: a dataclass more is half a millisecond more at each start.
    least: int | None = None
    words: Collection[str] = ()

    @property
    def metavar(self) -> str:
        """What stands for a value on a help page, "" for a switch."""
        return ""

    def fault(self, value: Any) -> str | None:
        """Return the rule that a value breaks, None where it breaks none."""
        return self.type_fault(value) or self.range_fault(value)

    @abstractmethod
    def type_fault(self, value: Any) -> str | None:
        """Return the rule that a value of another type breaks, None where it breaks none."""

    def range_fault(self, value: Any) -> str | None:
        """Return the rule that a value of the right type breaks."""
        return None

    def from_document(self, value: Any) -> Any:
        """Return the value that a document's stands for, whose faults are then asked about.

        Raises:
            UsageError: it stands for none.
        """
        return value

    def to_document(self, value: Any) -> Any:
        """Return a value as a document has it."""
        return value


class WholeNumber(SettingKind):
    """A whole number, of `least` at least, of any size where that is None; or one of some words.

    >>> WholeNumber(least=1).fault(0)
    'a number from 1 to 9223372036854775807 is needed'
    >>> WholeNumber(least=1, words=("auto",)).fault("auto")
    """

    @property
    def metavar(self) -> str:
        return "|".join(("N", *self.words))

    def type_fault(self, value: Any) -> str | None:
        if isinstance(value, str) and value in self.words:
            return None
        try:
            index(value)  # also one of NumPy
        except TypeError:
            return "a whole number is needed"
        return "a whole number is needed" if isinstance(value, bool) else None

    def range_fault(self, value: Any) -> str | None:
        if value in self.words or self.least is None or self.least <= value <= INT64_MAX:
            return None
        return f"a number from {self.least} to {INT64_MAX} is needed"


class BufferSize(WholeNumber):
    """A number of examples, or -2 for all there are, as `ds.shuffle` takes it."""

    def range_fault(self, value: Any) -> str | None:
        if value == WHOLE_DATASET or 1 <= value <= INT64_MAX:
            return None
        return (
            f"a number of examples from 1 to {INT64_MAX} is needed, or {WHOLE_DATASET} for the "
            "whole dataset"
        )


class Switch(SettingKind):
    """On or off.

    >>> Switch().fault("no")
    'true or false is needed'
    """

    def type_fault(self, value: Any) -> str | None:
        # A text would count as on, whatever it says; NumPy has truth values of its own.
        truth = isinstance(value, bool) or getattr(getattr(value, "dtype", None), "kind", "") == "b"
        return None if truth else "true or false is needed"


class Word(SettingKind):
    """One of some words."""

    @property
    def metavar(self) -> str:
        return "|".join(self.words)

    def type_fault(self, value: Any) -> str | None:
        return None if isinstance(value, str) else "a word is needed"

    def range_fault(self, value: Any) -> str | None:
        return None if value in self.words else f"choose from {choices(self.words)}"


class WhichHost(SettingKind):
    """A `Host`, which a document writes I/N."""

    @property
    def metavar(self) -> str:
        return "I/N"

    def type_fault(self, value: Any) -> str | None:
        return None if isinstance(value, Host) else "a Host is needed, as Host(index=0, count=8)"

    def from_document(self, value: Any) -> Host:
        if not isinstance(value, str):
            raise UsageError("I/N is needed, as in 0/8 (host 0 of 8)")
        return Host.parse(value)

    def to_document(self, value: Host) -> str:
        return str(value)


class FileNames(SettingKind):
    """Names of files, in an order."""

    @property
    def metavar(self) -> str:
        return "FILE"

    def type_fault(self, value: Any) -> str | None:
        # The names themselves are looked at where they are looked up.
        return None if isinstance(value, list | tuple) else "a list of file names is needed"

    def from_document(self, value: Any) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            raise UsageError("a list of file names is needed")
        return tuple(value)

    def to_document(self, value: Sequence[str]) -> list[str]:
        return list(value)
