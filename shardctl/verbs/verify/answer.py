"""Does TensorFlow read what is predicted? Which positions are compared, and how.

Running TensorFlow is not done here: the streams that it yields come as iterators of codes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from shardctl.base.arrays import Int64s, aligned
from shardctl.base.columns import Tabular
from shardctl.base.phrase import refused
from shardctl.base.text import quoted
from shardctl.dataset.dataset import Dataset, FileFinding
from shardctl.errors import UsageError
from shardctl.order.example_codes import ExampleCodes
from shardctl.settings.read_settings import SettingsDocument
from shardctl.spec.host import Host
from shardctl.spec.subsplit import Resolved
from shardctl.verbs.resume.proof import BrokenPromise

Source = Literal["files", "index ranges"]

Take = int | Literal["all"] | None

# Examples that are read where nothing else is asked for: a million index ranges take seconds.
BUDGETS: dict[Source, int] = {"files": 100_000, "index ranges": 2_000_000}


@dataclass(frozen=True, kw_only=True, slots=True)
class Window:
    """Positions [start, stop) that are compared, and what was read for it.

    `host` is the new host, as `0/6`, where a plan splits the rest among other hosts; positions
    then count what that host reads.
    """

    start: int
    stop: int
    read: Source
    host: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class FirstDifference:
    """Where the real order leaves the predicted one; None stands for the end of either.

    An id that is found is a tfds_id where the metadata knows no such example. `reason` is what
    TensorFlow said where it could not continue. With `stop` it is somewhere in [position, stop),
    and the ids are not known.
    """

    position: int
    expected: int | str | None
    found: int | str | None
    expected_tfds_id: str | None = None
    found_tfds_id: str | None = None
    read: Source = "files"
    host: str | None = None
    reason: str | None = None
    stop: int | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Verification(Tabular):
    """What came out of reading: nothing that differs, or the first example that does.

    num_examples: of the whole order, None where it has no end.
    read: what the order was read from; where it is "files", further windows may lie on index
        ranges, which reach positions that would take long to read to.
    num_files: files whose contents were checked; `files` are those that are damaged, or hold
        another number of examples.
    broken: what a plan says besides its instructions that is not so.
    unequal: what else of another loader than TFDS's is not as predicted, in words.
    assumptions: what the predicted order depends on though it was not stated.
    snapshot: the file whose order is expected in place of a predicted one, and `written_with` the
        versions of libraries whose rules it was written by.
    notes: what was done instead of something else, and why.
    """

    dataset: Dataset
    spec: str
    pipeline: SettingsDocument
    num_examples: int | None
    read: Source
    windows: tuple[Window, ...]
    first_difference: FirstDifference | None
    num_files: int
    files: tuple[FileFinding, ...]
    versions: dict[str, str | None]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    plan: str | None = None
    broken: tuple[BrokenPromise, ...] = ()
    unequal: tuple[str, ...] = ()
    snapshot: str | None = None
    written_with: Mapping[str, object] | None = None
    assumptions: tuple[str, ...] = ()

    @property
    def num_checked(self) -> int:
        """Number of positions compared, in all windows."""
        return sum(window.stop - window.start for window in self.windows)

    @property
    def equal(self) -> bool:
        """Whether every id was as predicted, all files sound, and a plan what it says."""
        differs = self.first_difference is not None or self.unequal
        return not (differs or self.files or self.broken)


def check_not_nothing(resolved: Resolved, num_examples: int, host: Host | None) -> None:
    """Refuse an order without examples: nothing is compared, which would look like a yes.

    A host may be left without any by a spec that has some: that is how the hosts share them.

    Raises:
        UsageError: there is nothing to verify.
    """
    if num_examples or (host is not None and resolved.num_examples):
        return
    raise UsageError(
        f"nothing to verify: {quoted(resolved.spec)} of {resolved.dataset.title} has no examples"
    )


def check_take(take: Take) -> None:
    """Raise UsageError where a number of examples is so small that nothing would be compared."""
    if isinstance(take, int) and take < 1:
        raise refused('{take=}: at least 1 example has to be compared, or "all"', take=take)


def taken(take: Take, read: Source, num_examples: int) -> int:
    """Return how many of the examples of an order are compared."""
    if take == "all":
        return num_examples
    return min(BUDGETS[read] if take is None else take, num_examples)


class FoundNames:
    """The names that a real reader gives examples, as codes; unknown names are below 0."""

    def __init__(self, codes: ExampleCodes) -> None:
        self._codes = codes
        self._unknown: list[str] = []

    def codes_of(self, names: Iterable[bytes]) -> Int64s:
        """Return the codes of tfds_ids, int64[n]."""
        return np.array([self._code(name) for name in names], np.int64)

    def unknown(self, code: int) -> str:
        """Return the name that a code below 0 stands for."""
        return self._unknown[-code - 1]

    def _code(self, name: bytes) -> int:
        text = name.decode("utf-8", "surrogateescape")
        try:
            return self._codes.parse_tfds_id(text)
        except UsageError:
            self._unknown.append(text)
            return -len(self._unknown)


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamMismatch:
    """Where two streams first differ, from their start, and the codes there, None at an end."""

    offset: int
    expected: int | None
    found: int | None


def first_mismatch(expected: Iterable[Int64s], found: Iterable[Int64s]) -> StreamMismatch | None:
    """Return where two streams of codes first differ, however each is cut into pieces.

    >>> first_mismatch([np.array([4, 5])], [np.array([4]), np.array([6, 5])])
    StreamMismatch(offset=1, expected=5, found=6)
    >>> first_mismatch([np.array([4])], [np.array([4, 5])])
    StreamMismatch(offset=1, expected=None, found=5)
    """
    offset = 0
    for left, right in aligned(expected, found):
        # Where one stream has ended, what the other still has differs.
        differing = np.flatnonzero(left != right) if len(left) == len(right) else [0]
        if len(differing):
            at = int(differing[0])
            ones, twos = (side[at : at + 1].tolist() for side in (left, right))
            return StreamMismatch(
                offset=offset + at, expected=next(iter(ones), None), found=next(iter(twos), None)
            )
        offset += len(left)
    return None


def first_mismatch_in_any_order(
    expected: Iterable[Int64s], found: Iterable[Int64s], *, all_of_them: bool
) -> StreamMismatch | None:
    """Return where the second stream yields an example more often than the first has it.

    For plans that promise every example once and no order. If `all_of_them` have to come, the
    first that did not is expected at the end.

    >>> once = [np.array([4, 5, 6])]
    >>> first_mismatch_in_any_order(once, [np.array([5]), np.array([6, 4])], all_of_them=True)
    >>> first_mismatch_in_any_order(once, [np.array([5, 5, 4])], all_of_them=True)
    StreamMismatch(offset=1, expected=None, found=5)
    """
    # A multiset: each expected example may come once for each time it is expected.
    left = Counter(code for piece in expected for code in piece.tolist())
    offset = 0
    for piece in found:
        for code in piece.tolist():
            if not left[code]:
                return StreamMismatch(offset=offset, expected=None, found=code)
            left[code] -= 1
            offset += 1
    rest = min(left.elements(), default=None) if all_of_them else None
    return None if rest is None else StreamMismatch(offset=offset, expected=rest, found=None)
