"""A real pass compared with what is predicted, up to the first example that differs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.instructions.reads import Reads
from shardctl.core.order.example_codes import ExampleCodes
from shardctl.core.progress import Watch
from shardctl.core.text import printable
from shardctl.planning.verify import (
    FirstDifference,
    Source,
    StreamMismatch,
    Take,
    Verification,
    Window,
    check_take,
    first_mismatch,
)
from shardctl.readers.verifying.file_checks import FileChecks, check_files_read
from shardctl.tfds.imports import tensorflow, versions
from shardctl.tfds.verifying.reading import BATCH_SIZE, Pass
from shardctl.tfds.verifying.real_files import why_not_files

# Returns where what was read first differs from what is expected.
Compare = Callable[[Iterable[Int64s], Iterable[Int64s]], StreamMismatch | None]


def difference(
    opened: Callable[[int], Pass],
    expected: Callable[[], Iterable[Int64s]],
    codes: ExampleCodes,
    window: Window,
    compare: Compare = first_mismatch,
) -> FirstDifference | None:
    """Return where a pass first differs from what is expected of a window, None where it does not.

    `opened` begins a pass that takes so many examples at a time. Where TensorFlow gives up, a whole
    batch is lost, so the examples are then read again one by one.
    """
    for size in (BATCH_SIZE, 1):
        read = opened(size)
        mismatch = compare(expected(), read)
        if read.reason is None or size == 1:
            break
    if mismatch is None and read.reason is not None:
        # All is as expected, and TensorFlow fails at the end.
        mismatch = StreamMismatch(offset=read.num_done, expected=None, found=None)
    if mismatch is None:
        return None

    def names(code: int | None) -> tuple[Any, str | None]:
        if code is None:
            return None, None
        if code < 0:
            name = printable(read.unknown(code), 1000)
            return name, name
        has_files = any(split.files for split in codes.dataset.splits)
        return codes.ids(np.array([code]))[0], codes.tfds_ids([code])[0] if has_files else None

    expected_id, expected_tfds_id = names(mismatch.expected)
    found_id, found_tfds_id = names(mismatch.found)
    return FirstDifference(
        position=window.start + mismatch.offset,
        expected=expected_id,
        found=found_id,
        expected_tfds_id=expected_tfds_id,
        found_tfds_id=found_tfds_id,
        read=window.read,
        host=window.host,
        # TensorFlow may have given up beyond the position where they differ.
        reason=read.reason if mismatch.found is None else None,
    )


@dataclass(kw_only=True)
class ReadCheck:
    """Windows that are compared one after the other until one of them differs.

    `reads` are rows of all files that are read; where those are not here, or not readable, `read`
    is "index ranges".
    """

    reads: Reads
    take: Take
    watch: Watch | None
    read: Source = field(init=False, default="files")
    windows: list[Window] = field(init=False, default_factory=list)
    notes: list[str] = field(init=False, default_factory=list)
    difference: FirstDifference | None = field(init=False, default=None)
    checks: FileChecks = field(init=False)

    def __post_init__(self) -> None:
        check_take(self.take)
        tensorflow()
        reason = why_not_files(self.reads)
        # Before TensorFlow opens any of them: it dies of some lengths, and waits at a FIFO.
        self.checks = check_files_read(self.reads, self.watch)
        reason = reason or self.checks.deadly
        if reason is not None:
            self.read = "index ranges"
            self.notes.append(reason)

    def answer(self, **said: Any) -> Verification:
        """Return what came out, and what is wrong with the files; `said` are the other fields."""
        return Verification(
            read=self.read,
            windows=tuple(self.windows),
            first_difference=self.difference,
            num_files=self.checks.num_files,
            files=self.checks.findings,
            versions=versions(),
            notes=(*said.pop("notes", ()), *self.notes, *self.checks.notes),
            **said,
        )
