"""Several datasets that one pipeline reads, as one whose splits are `dataset/split`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from shardctl.dataset.dataset import Dataset


def distinct_datasets(datasets: Iterable[Dataset]) -> list[Dataset]:
    """Return the datasets, those that are equal once, in their order."""
    found: list[Dataset] = []
    for dataset in datasets:
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
    ways = (
        [dataset.name for dataset in datasets],
        [f"{dataset.name}-{dataset.config}" for dataset in datasets],
        [f"{dataset.name}-{dataset.version}" for dataset in datasets],
        [f"{dataset.name}-{dataset.config}-{dataset.version}" for dataset in datasets],
    )
    for names in ways:
        if max(Counter(names).values()) == 1:
            return names
    return [f"{dataset.name}-{number}" for number, dataset in enumerate(datasets, 1)]
