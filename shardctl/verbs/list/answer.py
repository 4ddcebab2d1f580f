"""The datasets that names stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from shardctl.base.arguments import checked
from shardctl.base.columns import Tabular
from shardctl.base.text import dataset_title
from shardctl.dataset.dataset import Dataset


@dataclass(frozen=True, kw_only=True, slots=True)
class ListedDataset:
    """A dataset by name: its folder in a data dir, or None for a built-in layout.

    dataset: its metadata, None where that is broken.
    problem: what is broken, in a line.
    """

    name: str
    config: str | None
    version: str | None
    path: str | None = None
    dataset: Dataset | None = None
    problem: str | None = None

    @property
    def source(self) -> Literal["data_dir", "catalog"]:
        """Where the dataset comes from."""
        return "catalog" if self.path is None else "data_dir"

    @property
    def title(self) -> str:
        """Name, config and version as `--dataset` takes them.

        >>> ListedDataset(name="coco", config="2017", version="1.1.0").title
        'coco/2017:1.1.0'
        """
        return dataset_title(self.name, self.config, self.version)

    @property
    def file_format(self) -> str | None:
        """The format of its files, None where the metadata is broken."""
        return None if self.dataset is None else self.dataset.file_format

    @property
    def num_examples(self) -> int | None:
        """The examples of all splits, None where the metadata is broken."""
        return None if self.dataset is None else sum(s.num_examples for s in self.dataset.splits)

    @property
    def num_bytes(self) -> int | None:
        """The bytes of all splits by the metadata, None where it does not state each."""
        if self.dataset is None:
            return None
        sizes = [split.num_bytes for split in self.dataset.splits]
        return None if None in sizes else sum(size for size in sizes if size is not None)

    @checked
    def has(self, words: Sequence[str]) -> bool:
        """Return whether each word is in its name, config, version or format, in any case.

        >>> mnist = ListedDataset(name="fashion_mnist", config=None, version="3.0.1")
        >>> mnist.has(["MNIST", "fash"]), mnist.has(["mnist", "cifar"])
        (True, False)
        """
        texts = (self.title.casefold(), (self.file_format or "").casefold())
        return all(any(word.casefold() in text for text in texts) for word in words)


@dataclass(frozen=True, kw_only=True, repr=False)
class DatasetList(Tabular):
    """The folders searched, in order, and the datasets found in them and in the catalog.

    words: only datasets with all of these words.
    """

    data_dirs: tuple[str, ...]
    in_data_dirs: tuple[ListedDataset, ...]
    built_in: tuple[ListedDataset, ...]
    words: tuple[str, ...] = ()

    @property
    def datasets(self) -> tuple[ListedDataset, ...]:
        """All of them, those with files first: a name is looked up in this order."""
        return self.in_data_dirs + self.built_in

    @property
    def problems(self) -> tuple[str, ...]:
        """What is broken in the metadata, a line a dataset."""
        return tuple(listed.problem for listed in self.datasets if listed.problem is not None)

    @checked
    def having(self, words: Sequence[str]) -> DatasetList:
        """Return the datasets that have all words, see `ListedDataset.has`."""
        return replace(
            self,
            in_data_dirs=tuple(listed for listed in self.in_data_dirs if listed.has(words)),
            built_in=tuple(listed for listed in self.built_in if listed.has(words)),
            words=tuple(words),
        )
