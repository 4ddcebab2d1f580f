"""What a real loader is asked, and what it reads: one interface for all libraries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.loaders.asked import Asked
from shardctl.core.loaders.loader import LOADERS
from shardctl.errors import MissingDependencyError

# Where each loader is run: "module:class".
WHERE = {
    "grain": "shardctl.loaders.grain:LiveGrain",
    "torch": "shardctl.loaders.torch:LiveTorch",
    "stateful": "shardctl.loaders.torch:LiveStateful",
    "accelerate": "shardctl.loaders.torch:LiveAccelerate",
    "hf": "shardctl.loaders.hugging_face:LiveHuggingFace",
}
# Which extra of shardctl brings the library.
_EXTRAS = {
    "grain": "grain",
    "torch": "torch",
    "stateful": "torch",
    "accelerate": "torch",
    "hf": "hf",
}


class Source(Protocol):
    """The examples that a loader reads by index, in worker processes too (so it can be pickled).

    `source[i]` is an int64: `i`, where the example that was read is the one of index `i`, and a
    number below 0 where it is another one.
    """

    def __len__(self) -> int:
        """Return the number of examples."""

    def __getitem__(self, index: int) -> np.int64:
        """Return the index of the example that is read."""


@dataclass(frozen=True)
class IndexRange:
    """The indices 0 to `num_examples` in place of examples; no files are read.

    >>> [int(index) for index in IndexRange(3)]
    [0, 1, 2]
    """

    num_examples: int

    def __len__(self) -> int:
        """Return the number of examples."""
        return self.num_examples

    def __getitem__(self, index: int) -> np.int64:
        """Return the index itself."""
        if not 0 <= index < self.num_examples:
            raise IndexError(index)
        return np.int64(index)


class LiveLoader(ABC):
    """A real loader. Making one imports nothing; running it imports the library.

    formats: record files that the library opens by itself (`rows`), as "parquet"; the others are
        read through a `Source`.
    """

    formats: frozenset[str] = frozenset()

    @abstractmethod
    def batches(self, asked: Asked, source: Source) -> Iterator[Int64s]:
        """Yield what one process hands out of all epochs asked, batch by batch, int64[size] each.

        Where no batch size is asked, pieces of any size. What the source says of each example is
        passed on as it is. `asked.lengths` are the shards, `len(source)` is their sum. The real
        calls are made with the settings asked for, worker processes included; earlier epochs that
        the library has to draw first (`first_epoch`) are drawn here. The generator may be closed
        before its end: it then ends the worker processes that it started (`try: .. finally:`).

        Raises:
            MissingDependencyError: the library is not installed.
            UsageError: the library refuses these settings.
        """

    def rows(
        self, asked: Asked, files: Sequence[str], file_format: str
    ) -> Iterator[Sequence[Mapping[str, Any]]]:
        """Yield the same batches of rows as the library reads them from its own kind of files.

        `files` are the paths of the shards, `asked.lengths` their lengths.
        """
        raise NotImplementedError(f"{type(self).__name__} opens no {file_format} files by itself")


def live_loader(name: str) -> LiveLoader:
    """Return the real loader of a name of `LOADERS`; its library is imported when it is run."""
    return made_loader(WHERE[name])


def made_loader(where: str) -> LiveLoader:
    """Return the loader of a module and a class, `module:class`."""
    module, _, kind = where.partition(":")
    made: LiveLoader = getattr(import_module(module), kind)()
    return made


def extra_of(loader: str) -> str:
    """Return the extra of shardctl that brings the library of a loader."""
    return _EXTRAS[loader]


def library(module: str, loader: str) -> Any:
    """Return a module of a library, imported now.

    Raises:
        MissingDependencyError: it is not installed; names the extra that brings it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingDependencyError(
            f"{LOADERS[loader].title} is needed for this and cannot be imported ({error}); "
            f"install it with: pip install 'shardctl[{extra_of(loader)}]'"
        ) from error
