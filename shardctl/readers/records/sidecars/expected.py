"""What a sidecar says of one record file."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Protocol

from shardctl.files.stores.store import StoredFile


@dataclass(frozen=True, kw_only=True, slots=True)
class ExpectedCount:
    """How many examples a file holds, and how long it is, as `said_by`, a file beside it, says.

    compression: how the file is packed as a whole, as MosaicML names it, None for not.
    hashes: algorithms with the hash that the bytes of the file have.
    """

    num_examples: int
    said_by: str
    num_bytes: int | None = None
    compression: str | None = None
    hashes: tuple[tuple[str, str], ...] = ()


class Sidecar(Protocol):
    """One sidecar, or several of a kind, once they are read."""

    def expected(self, path: str) -> ExpectedCount | None:
        """Return what is said of the record file at a path, None where nothing is.

        Raises:
            DatasetError: what says it cannot be read, or contradicts itself.
        """

    def absent(self, listed: Set[str]) -> list[str]:
        """Return the paths of files that should be there, of which none of `listed` is one."""


def disagreement(file: StoredFile, num_examples: int, expected: ExpectedCount) -> str | None:
    """Return in which way a file is not as its sidecar says, None where it is.

    >>> file = StoredFile(path="a/b.mds", num_bytes=9)
    >>> disagreement(file, 3, ExpectedCount(num_examples=4, said_by="index.json"))
    'holds 3 examples, and index.json says 4'
    """
    said = expected.said_by
    if num_examples != expected.num_examples:
        examples = "example" if num_examples == 1 else "examples"
        return f"holds {num_examples} {examples}, and {said} says {expected.num_examples}"
    if expected.num_bytes not in (None, file.num_bytes):
        return f"has {file.num_bytes} bytes, and {said} says {expected.num_bytes}"
    return None
