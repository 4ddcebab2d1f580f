"""Do `tf.data.Dataset.list_files` and the reader of TFDS come to one order over counted files?"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from shardctl.core.dataset.dataset import Dataset, Split
from shardctl.core.instructions.split_range import SplitRange
from shardctl.core.phrase import phrase
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.text import counted, quoted


def listing_warnings(
    dataset: Dataset, ranges: Iterable[SplitRange], settings: ReadSettings
) -> Iterator[str]:
    """Yield where a script that lists the files of a dataset reads them in another order.

    Files without metadata are mostly read so, and `list_files(..).interleave(TFRecordDataset, ..)`
    is the order of TFDS's reader over the same files but for two things: it sorts the paths by
    their bytes, and it gives a file without examples its turn.
    """
    if not dataset.is_counted:
        return
    splits = {piece.split.name: piece.split for piece in ranges}
    for split in splits.values():
        out_of_order = None if settings.file_order is not None else _first_unsorted(split)
        if out_of_order is not None:
            before, after = out_of_order
            yield phrase(
                "{}: files are in the order of their numbers, {} before {}; tf.data's list_files "
                "and sorted() have them the other way round: a list in their order, as "
                "{file_order=FILE}, is what such a script reads",
                split.name,
                quoted(before, 80),
                quoted(after, 80),
            )
        if split.num_empty_shards:
            number = split.num_empty_shards
            has = "has" if number == 1 else "have"
            yield (
                f"{split.name}: {counted(number, 'file')} {has} no examples; TFDS's reader passes "
                "by such files, tf.data's list_files gives each its turn, so that its order is "
                "another: move them away"
            )


def _first_unsorted(split: Split) -> tuple[str, str] | None:
    """Return the first two files in a row whose paths are not sorted by their bytes, if any are.

    Numbers of one width, as all names made of a pattern have, are.
    """
    for part in split.files:
        last = None
        for name in part.names or ():
            if last is not None and os.fsencode(last) > os.fsencode(name):
                return last, name
            last = name
    return None
