"""Shards none of whose files is here, said once for all of them, with what is there instead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from shardctl.core.dataset.dataset import Dataset, Split
from shardctl.core.dataset.file_finding import FileFinding
from shardctl.core.text import quoted
from shardctl.readers.files_on_disk import files_of_another_count


def none_here(dataset: Dataset, split: Split, shards: Sequence[int]) -> FileFinding:
    """Return the finding about shards (one at least) of a split of which no file is here.

    It has the name of the first file, and the examples of all.
    """
    reason = "missing"
    if len(shards) > 1:
        reason = (
            f"no file of split {quoted(split.name)} is here: {len(shards):,} files are missing, "
            "of which this is the first"
        )
    alike = files_of_another_count(replace(dataset, splits=(split,)))
    if alike:
        more = "" if len(alike) == 1 else f" and {len(alike) - 1:,} more that look alike"
        reason += f"; in their place: {quoted(alike[0])}{more}"
    return FileFinding(
        filename=split.filename(shards[0]),
        expected=sum(split.shard_lengths[shard] for shard in shards),
        found=None,
        reason=reason,
        kind="missing",
        split=split.name,
        num_files=len(shards),
    )
