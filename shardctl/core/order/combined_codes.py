"""Codes of the examples of several readers of one pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from shardctl.core.arrays import distinct
from shardctl.core.dataset.dataset import Dataset, Split
from shardctl.core.instructions.reads import Reads, joined
from shardctl.core.order.example_codes import ExampleCodes
from shardctl.core.order.tfds_names import TfdsNames
from shardctl.core.text import quoted
from shardctl.errors import UsageError


class CombinedCodes(ExampleCodes):
    """The names of examples that several readers read, each of which names files by its own rule.

    `given` is what each reader is given, over the splits of `dataset`.
    """

    def __init__(self, dataset: Dataset, splits: Sequence[str], given: Sequence[Reads]) -> None:
        everything = joined([replace(reads, files=dataset) for reads in given])
        super().__init__(dataset, splits, everything)
        self._by_reader = given

    @cached_property
    def _tfds_names(self) -> TfdsNames:
        splits = {index: self.dataset.splits[index] for index in self._splits}
        return _NamesByReader(self._by_reader, splits)

    def _place_of_file(self, name: str) -> tuple[int, int] | None:
        places = {
            (split, names.index(name)) for split, names in self._file_names.items() if name in names
        }
        if len(places) > 1:
            found = " and ".join(self.dataset.splits[split].name for split, _ in sorted(places))
            raise UsageError(f"{quoted(name)} is a file of {found}; say which by its id, SPLIT:ID")
        return next(iter(places), None)


class _NamesByReader(TfdsNames):
    """What each reader calls the files of the splits that it reads."""

    def __init__(self, given: Sequence[Reads], splits: dict[int, Split]) -> None:
        self._named: dict[int, list[TfdsNames]] = {}
        for reads in given:
            used = [int(index) for index in distinct(reads.split)] if len(reads) else []
            names = TfdsNames(reads, {index: splits[index] for index in used})
            for index in used:
                self._named.setdefault(index, []).append(names)
        self._index_of = {id(split): index for index, split in splits.items()}

    @property
    def are_base_names(self) -> bool:
        """Whether every file is called by its base name."""
        return all(name.are_base_names for names in self._named.values() for name in names)

    def of_split(self, split: Split) -> tuple[str, ...]:
        """Return what each file of a split is called, in the order of its shards."""
        return self._one_of(split).of_split(split)

    def of_shards(self, split: Split, shards: Sequence[int]) -> list[str]:
        """Return what the files of some shards are called."""
        return self._one_of(split).of_shards(split, shards)

    def of_shard(self, split: Split, shard: int) -> str:
        """Return what the file of one shard is called."""
        return self._one_of(split).of_shard(split, shard)

    def _one_of(self, split: Split) -> TfdsNames:
        """Return how the readers of a split call its files.

        Raises:
            UsageError: they call them differently, as they read files in different folders.
        """
        names = self._named.get(self._index_of[id(split)])
        if names is None:
            return TfdsNames(None, {})  # no file of it is read
        if any(other.pattern != names[0].pattern for other in names):
            raise UsageError(
                f"tfds_ids of {split.name} differ from reader to reader, which read files in "
                "different folders; ask for ids"
            )
        return names[0]
