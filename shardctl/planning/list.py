"""Which datasets do names lead to?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from shardctl.core.tabular import Tabular
from shardctl.core.text import in_short


@dataclass(frozen=True, kw_only=True, slots=True)
class ListedDataset:
    """A dataset that a name leads to: its folder in a data dir, or None for a built-in layout."""

    name: str
    config: str | None
    version: str | None
    path: str | None = None

    @property
    def source(self) -> Literal["data_dir", "catalog"]:
        """Where the dataset is known from."""
        return "catalog" if self.path is None else "data_dir"

    @property
    def title(self) -> str:
        """Name, config and version as `--dataset` takes them.

        >>> ListedDataset(name="coco", config="2017", version="1.1.0").title
        'coco/2017:1.1.0'
        """
        title = self.name if self.config is None else f"{self.name}/{self.config}"
        return title if self.version is None else f"{title}:{self.version}"


@dataclass(frozen=True, kw_only=True)
class DatasetList(Tabular):
    """The folders searched, in order, and the datasets found in them and in the catalog."""

    data_dirs: tuple[str, ...]
    in_data_dirs: tuple[ListedDataset, ...]
    built_in: tuple[ListedDataset, ...]

    @property
    def datasets(self) -> tuple[ListedDataset, ...]:
        """All of them, those with files first: a name is looked up in this order."""
        return self.in_data_dirs + self.built_in

    def __repr__(self) -> str:
        return in_short(
            self, "", f"{len(self.in_data_dirs):,} in data dirs", f"{len(self.built_in):,} built in"
        )
