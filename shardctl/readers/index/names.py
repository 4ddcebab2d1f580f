"""Splits and shard order of record files by their names alone.

What the names do not say for certain is refused, with the way out: `--split NAME=GLOB`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shardctl.core.phrase import phrase
from shardctl.core.text import choices, quoted
from shardctl.errors import DatasetError
from shardctl.readers.index.answer import ArrangedSplit, Arrangement, NameProblem
from shardctl.readers.index.listing import Listing
from shardctl.readers.index.naming.folders import dataset_of_folder
from shardctl.readers.index.naming.shard_sets import Folders, SplitSets
from shardctl.readers.index.naming.splits_by_hand import splits_by_hand
from shardctl.readers.index.naming.splits_by_names import SplitOrder, splits_by_names


def arrange(
    listing: Listing, *, splits: Mapping[str, str] | None = None, name: str | None = None
) -> Arrangement:
    """Return files as splits, each in shard order, by their names alone.

    splits: the files of each split as a glob, which chooses and names them; else the names tell.
    name: the dataset's, else it is what TFDS's template says, or the folder is called.

    Raises:
        DatasetError: the names do not tell which split files are of, or tell of several datasets
            or formats; a glob matches nothing, or a file twice.
        UsageError: what cannot be the name of a split.
    """
    folders = Folders(files=listing.files, root=listing.root)
    if not len(listing.files):
        raise DatasetError("there are no record files")
    notes: tuple[str, ...] = listing.notes
    if splits:
        chosen, said = splits_by_hand(folders, splits)
        notes += said
    else:
        chosen = splits_by_names(folders)
    file_format = _file_format(folders, chosen)
    by_folder, version = dataset_of_folder(listing.root)
    dataset = name or next((one.dataset for one in chosen if one.dataset), None) or by_folder
    arranged: list[ArrangedSplit] = []
    problems: list[NameProblem] = []
    for one in chosen:
        order = SplitOrder(folders, one)
        arranged.append(ArrangedSplit(name=one.name, files=order.files))
        problems += order.problems
        notes += tuple(order.notes)
    return Arrangement(
        root=listing.root,
        splits=tuple(arranged),
        name=dataset,
        version=version,
        file_format=file_format,
        problems=tuple(problems),
        sidecars=listing.sidecars,
        ignored=listing.ignored,
        notes=notes,
    )


def _file_format(folders: Folders, splits: Sequence[SplitSets]) -> str | None:
    """Return the format that all names tell, None where some do not; refuse several."""
    sets: dict[str | None, str] = {}
    for split in splits:
        for found in split.sets:
            for known, glob in folders.file_formats(found).items():
                sets.setdefault(known, glob)
    formats = sorted(known for known in sets if known is not None)
    if len(formats) > 1:
        each = choices((f"{known} ({sets[known]})" for known in formats), 4)
        raise DatasetError(
            phrase(
                "{} has files of {} formats: {}; give those of one as a glob, or choose by {split}",
                quoted(folders.root or "/", 200), len(formats), each,
            )
        )  # fmt: skip
    return formats[0] if len(sets) == 1 and formats else None
