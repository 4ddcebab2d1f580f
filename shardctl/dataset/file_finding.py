"""What is wrong with one file of a dataset, or with the files of a split."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FindingKind = Literal[
    "missing",  # no file where one with examples should be
    "not-a-file",  # a folder, a FIFO, a device, a link to nowhere
    "unreadable",  # the system refuses to read it
    "compressed",  # a TFRecord file that was compressed as a whole
    "header",  # the length of a record does not match its checksum
    "data",  # the data of a record does not match its checksum
    "cut",  # the file ends inside a record
    "too-long",  # a record that goes so far beyond the end that its length must be wrong
    "broken",  # the library that reads the format refuses it
    "count",  # whole and sound, with another number of examples
    "extra",  # a file of the dataset's name that belongs to no shard
    "wrong-count",  # a shard of another number of shards
    "size",  # the files of a split have another size than the metadata says
]

# What TensorFlow's reader does not survive: it waits for ever, or asks for more memory than there
# is and ends the process.
DEADLY: tuple[FindingKind, ...] = ("not-a-file", "too-long")


@dataclass(frozen=True, kw_only=True, slots=True)
class FileFinding:
    """One file, and what is wrong with it first; `reason` is a line about that.

    expected: examples by the metadata, None for a file that belongs to no shard.
    found: whole records in the file, None where they cannot be counted.
    record: the first damaged record, counted from 0; `byte` is where it begins in the file.
    num_files: the files that it speaks of; those of a split, none of which is here, are one finding
        with the name of the first.
    """

    filename: str
    expected: int | None
    found: int | None
    reason: str | None = None
    kind: FindingKind = "count"
    split: str | None = None
    record: int | None = None
    byte: int | None = None
    num_files: int = 1
