"""Datasets whose files lie in several folders, and several datasets put into one."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from shardctl.dataset.dataset import Dataset, Split
from shardctl.errors import DatasetError

# A folder, and how often a split has read it before: one may be read twice.
_Place = tuple[str | None, int]


def folders_of(dataset: Dataset) -> tuple[Dataset, ...]:
    """Return the folders that a dataset is read from, in order, each as a dataset of its own.

    They are those that it was merged from, else what its files say: then no version is known. Of
    folders that have no split in common the order is not known, nor does it matter.

    Raises:
        DatasetError: one split reads folders in another order than the next.
    """
    if dataset.folders:
        return dataset.folders
    if not dataset.in_several_folders:
        return (dataset,)
    from graphlib import CycleError, TopologicalSorter  # 1 ms, and few datasets have several

    pieces: dict[_Place, list[Split]] = {}
    order = TopologicalSorter[_Place]()
    for split in dataset.splits:
        # A folder that a split reads twice is two places in the order.
        times = Counter[str | None]()
        before: _Place | None = None
        for piece in _pieces(split):
            folder = piece.files[0].data_dir
            place = (folder, times[folder])
            times[folder] += 1
            pieces.setdefault(place, []).append(piece)
            # Each split says which of its folders comes before which; together these must have no
            # cycle.
            order.add(place, *(() if before is None else (before,)))
            before = place
    try:
        places = tuple(order.static_order())
    except CycleError:
        raise DatasetError(
            f"the splits of {dataset.title} read their folders in different orders"
        ) from None
    return tuple(
        replace(dataset, version=None, data_dir=place[0], splits=tuple(pieces[place]))
        for place in places
    )


def _pieces(split: Split) -> list[Split]:
    """Return the parts of a split, one for each folder; only of a whole split is the size known."""
    if len(split.files) == 1:
        return [split]
    found, start = [], 0
    for files in split.files:
        stop = start + len(files)
        lengths = split.shard_lengths[start:stop]
        found.append(Split(name=split.name, shard_lengths=lengths, files=(files,)))
        start = stop
    return found


def with_folders(dataset: Dataset) -> Dataset:
    """Return a dataset that knows its folders, also if it was put together by hand."""
    if dataset.folders or not dataset.in_several_folders:
        return dataset
    return replace(dataset, folders=folders_of(dataset))


def layout_tells_order(split: Split) -> bool:
    """Return whether the files of a split, their names and lengths, show the order of its folders.

    They do if what one folder has is not how another begins, for then no two orders look alike.
    """
    parts, start = [], 0
    for files in split.files:
        names, stop = files.between(0, len(files)), start + len(files)
        lengths = split.shard_lengths[start:stop]
        bases = (name.rpartition("/")[2] for name in names)
        parts.append(list(zip(bases, lengths, strict=True)))
        start = stop
    parts.sort()  # what begins alike is then side by side
    return not any(b[: len(a)] == a for a, b in itertools.pairwise(parts))


# Several datasets that one pipeline reads, as one whose splits are `dataset/split`.


def distinct_datasets(datasets: Iterable[Dataset]) -> list[Dataset]:
    """Return the datasets, those that are equal once, in their order."""
    found: list[Dataset] = []
    for dataset in datasets:
        # Identity first: comparing two large datasets shard by shard takes long.
        if not any(dataset is other or dataset == other for other in found):
            found.append(dataset)
    return found


def combined(datasets: Sequence[Dataset]) -> Dataset:
    """Return one dataset with the splits of several, called `dataset/split`.

    It is no dataset of TFDS: it names the examples of a mixture. One dataset stays as it is.

    >>> from shardctl.dataset.dataset import Split
    >>> one, two = (Dataset(name=name, splits=(Split(name="train", shard_lengths=(4,)),))
    ...             for name in ("a", "b"))
    >>> combined([one, two]).title, [split.name for split in combined([one, two]).splits]
    ('a + b', ['a/train', 'b/train'])
    """
    first, *others = datasets
    if not others:
        return first
    formats = {dataset.file_format for dataset in datasets}
    return Dataset(
        name=" + ".join(dataset.title for dataset in datasets),
        splits=tuple(
            replace(split, name=f"{label}/{split.name}")
            for label, dataset in zip(labels_of(datasets), datasets, strict=True)
            for split in dataset.splits
        ),
        file_format=first.file_format if len(formats) == 1 else " + ".join(sorted(formats)),
        origin="a mixture",
    )


def labels_of(datasets: Sequence[Dataset]) -> list[str]:
    """Return what each is called in the names of splits: its name, and more where two have one.

    >>> from shardctl.dataset.dataset import Split
    >>> split = Split(name="train", shard_lengths=(4,))
    >>> labels_of([Dataset(name="a", version=v, splits=(split,)) for v in ("1.0.0", "2.0.0")])
    ['a-1.0.0', 'a-2.0.0']
    """
    # The shortest label that tells all of them apart.
    for more in ((), ("config",), ("version",), ("config", "version")):
        names = ["-".join(str(getattr(each, n)) for n in ("name", *more)) for each in datasets]
        if max(Counter(names).values()) == 1:
            return names
    return [f"{dataset.name}-{number}" for number, dataset in enumerate(datasets, 1)]
