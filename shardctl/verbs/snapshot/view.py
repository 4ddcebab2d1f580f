"""A snapshot that was written, for people: what it fixes, and what compares with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shardctl.base.text import path_word, shell_line
from shardctl.saved.snapshot import Snapshot


def snapshot_written(snapshot: Snapshot, path: str, dataset: Sequence[str] = ()) -> Iterator[str]:
    """Yield what a snapshot fixes, and the command that compares with it.

    `dataset` are the options without which its dataset is not found again.
    """
    yield f"wrote {path}: the order of {snapshot.num_examples:,} examples of {snapshot.spec}"
    yield "next: commit it; this command compares it with the order of shardctl.yaml's settings:"
    yield f"  {shell_line('shardctl', 'diff', path_word(path), *dataset)}"
