"""The kinds of settings: which values they take, in Python and in a document."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from shardctl.base.arguments import kind_of, truth_value, whole_number
from shardctl.base.text import choices, nearest_first
from shardctl.base.tfds_rules import INT64_MAX, WHOLE_DATASET
from shardctl.errors import UsageError
from shardctl.spec.host import Host, as_host

_NAMES = kind_of(tuple[str, ...])


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

    def take(self, value: Any) -> Any:
        """Return a value as it is kept.

        Raises:
            UsageError: the rule that it breaks.
        """
        kept = self.typed(value)
        fault = self.range_fault(kept)
        if fault is not None:
            raise UsageError(fault)
        return kept

    @abstractmethod
    def typed(self, value: Any) -> Any:
        """Return a value as it is kept, whether or not it is in range.

        Raises:
            UsageError: it is of another type.
        """

    def range_fault(self, value: Any) -> str | None:
        """Return the rule that a value of the right type breaks, None where it breaks none."""
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

    >>> WholeNumber(least=1).range_fault(0)
    'a number from 1 to 9223372036854775807 is needed'
    >>> WholeNumber(least=1, words=("auto",)).take("auto")
    'auto'
    """

    @property
    def metavar(self) -> str:
        return "|".join(("N", *self.words))

    def typed(self, value: Any) -> int | str:
        if isinstance(value, str) and value in self.words:
            return str(value)
        return whole_number(value)

    def to_document(self, value: Any) -> int | str:
        return value if isinstance(value, str) else int(value)  # a default that nobody stated, too

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

    >>> Switch().take(True)
    True
    """

    def typed(self, value: Any) -> bool:
        return truth_value(value)


@dataclass(frozen=True, kw_only=True, eq=False)
class Word(SettingKind):
    """One of some words, which help shows unless they are too many: then what they are."""

    of: str = ""

    @property
    def metavar(self) -> str:
        return self.of or "|".join(self.words)

    def typed(self, value: Any) -> str:
        if not isinstance(value, str):
            raise UsageError("a word is needed")
        return str(value)

    def range_fault(self, value: Any) -> str | None:
        if value in self.words:
            return None
        return f"choose from {choices(nearest_first(value, self.words))}"


class VersionNumber(SettingKind):
    """A version of a library as pip writes it, "0.2.18" or "2.14.0rc1", without how it was built.

    >>> VersionNumber().take("2.13.0+cpu")
    '2.13.0'
    """

    @property
    def metavar(self) -> str:
        return "VERSION"

    def typed(self, value: Any) -> str:
        if not isinstance(value, str):
            raise UsageError("a version in quotes is needed, as in '5.2'")
        return str(value).partition("+")[0]

    def range_fault(self, value: Any) -> str | None:
        number = "[0-9]{1,9}"
        rest = rf"((a|b|rc){number})?(\.post{number})?(\.dev{number})?"
        if re.fullmatch(rf"{number}(\.{number})*{rest}", value):
            return None
        return "a version is numbers with dots, as in 5.2 or 0.2.18"


class WhichHost(SettingKind):
    """A `Host`, which a document writes I/N."""

    @property
    def metavar(self) -> str:
        return "I/N"

    def typed(self, value: Any) -> Host:
        return as_host(value)

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

    def typed(self, value: Any) -> tuple[str, ...]:
        try:
            names: tuple[str, ...] = _NAMES.take(value)
        except UsageError:
            raise UsageError("a list of file names is needed") from None
        return names

    def from_document(self, value: Any) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            raise UsageError("a list of file names is needed")
        return tuple(value)

    def to_document(self, value: Sequence[str]) -> list[str]:
        return list(value)


class StageList(SettingKind):
    """A pipeline behind the reader: its text, the list that a document has, or a `Pipeline`.

    >>> StageList().take("shuffle(1000, seed=7) | batch(64)").stages[1]
    Batch(size=64, drop_remainder=False)
    """

    @property
    def metavar(self) -> str:
        return "STAGES"

    def typed(self, value: Any) -> Any:
        # Who gives no stages loads nothing of them.
        from shardctl.stages.document import pipeline_of
        from shardctl.stages.stages import Pipeline

        if isinstance(value, Pipeline):
            return value
        if isinstance(value, str | list | tuple):
            return pipeline_of(value)
        raise UsageError("a text of stages is needed, as 'cache | shuffle(1000)', or a list")

    def to_document(self, value: Any) -> list[Any]:
        from shardctl.stages.document import document_of

        return document_of(value)
