"""A loader as the code that makes it: shown to people, and run here to see what it hands out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from shardctl.code import reader
from shardctl.code.source import call, comment, keywords, literal, settings_code
from shardctl.dataset.dataset import Dataset
from shardctl.errors import UsageError
from shardctl.loaders.library import LoaderLibrary, missing
from shardctl.loaders.loader_config import LoaderConfig
from shardctl.loaders.stop import Stop
from shardctl.order.loader_order import LoaderOrder

DATA_LOADER = "from torch.utils.data import DataLoader"
_REST_OF_BATCHES = '''\
class Rest:
    """The batches that are left, each a list of indices of the source."""

    def __init__(self, steps, in_batch):
        self.steps, self.in_batch = steps, in_batch

    def __len__(self):
        return len(self.steps)

    def __getitem__(self, index):
        indices = order.indices_in_step(self.steps[index]).tolist()
        return indices[self.in_batch :] if index == 0 else indices
'''


class Library(LoaderLibrary):
    """A library whose loader is made by the same lines of code for people and for a run.

    source: what the lines call the examples that are read.
    helpers: definitions that the code of a rest of batches needs besides `Rest`.
    """

    source = "source"
    helpers = ""

    @abstractmethod
    def imports(self, asked: LoaderConfig) -> Iterator[str]:
        """Yield the imports of `made`; "" stands for none."""

    @abstractmethod
    def made(self, asked: LoaderConfig) -> Iterator[str]:
        """Yield the lines that make `loader` of the source, on process `rank` of `world_size`."""

    @abstractmethod
    def loop(self, asked: LoaderConfig) -> Iterator[str]:
        """Yield the lines that go through all epochs."""

    @abstractmethod
    def imports_of_rest(self, asked: LoaderConfig) -> Iterator[str]:
        """Yield the imports of `made_of_rest`."""

    @abstractmethod
    def made_of_rest(self, asked: LoaderConfig) -> Iterator[str]:
        """Yield the lines that make `loader` of `rest`, indices or batches of them."""

    def data(self, spec: str, order: LoaderOrder) -> Iterator[str]:
        """Yield the lines that make the source."""
        yield from reader.builder(order.dataset)
        yield "# Files that are read by index, as array_record ones are."
        yield f"source = builder.as_data_source(split={literal(spec)})"

    def code(self, spec: str, order: LoaderOrder) -> Iterator[Iterable[str]]:
        """Yield the parts of code that makes the loader and goes through its epochs."""
        asked = order.asked
        yield in_order([*self.imports(asked), *self.imports_of_data(order)])
        yield self.data(spec, order)
        yield host_lines(asked)
        yield self.made(asked)
        yield self.loop(asked)

    def imports_of_data(self, order: LoaderOrder) -> Iterator[str]:
        """Yield the imports of `data`."""
        yield reader.TFDS

    def code_of_rest(self, spec: str, order: LoaderOrder, stop: Stop) -> Iterator[Iterable[str]]:
        """Yield the parts of code that reads what is left of all epochs."""
        asked = order.asked
        yield in_order(
            ["import shardctl", *self.imports_of_rest(asked), *self.imports_of_data(order)]
        )
        yield self.data(spec, order)
        yield _order(spec, order)
        if asked.batch is not None:
            yield (_REST_OF_BATCHES + self.helpers).splitlines()
        yield self._rest(order, stop)

    def _rest(self, order: LoaderOrder, stop: Stop) -> Iterator[str]:
        if stop.steps is None:
            yield f"rest = order.indices_at(range({stop.consumed}, order.num_examples)).tolist()"
        else:
            yield f"rest = Rest(range({stop.steps}, order.num_steps), in_batch={stop.in_batch})"
        yield from self.made_of_rest(order.asked)
        yield f"for {element_of(order.asked)} in loader:"
        yield "    ..."

    def run(self, lines: Iterable[str], names: dict[str, Any]) -> dict[str, Any]:
        """Run lines of code of ours, and return the names that they define besides `names`.

        Raises:
            MissingDependencyError: they import what is not installed.
        """
        try:
            exec("\n".join(lines), names)  # noqa: S102  # the lines that are shown, of literals
        except ImportError as error:
            raise missing(self.loader, error) from error
        return names


def host_lines(asked: LoaderConfig) -> Iterator[str]:
    """Yield which process this is, where several share the examples."""
    if asked.shares:
        yield "# Which of the processes this is: 0 is the first."
        yield f"rank, world_size = {asked.host}, {asked.num_hosts}"


def in_order(imports: Iterable[str]) -> list[str]:
    """Return imports as they stand in a module, `from` behind the others."""
    return sorted({*filter(None, imports)}, key=lambda line: (line.startswith("from "), line))


def element_of(asked: LoaderConfig) -> str:
    """Return what code calls an element of a loader."""
    return "example" if asked.batch is None else "batch"


def _order(spec: str, order: LoaderOrder) -> Iterator[str]:
    yield from settings_code(order.settings)
    arguments = [literal(_reference(order.dataset)), literal(spec), "settings"]
    yield from call("planned = shardctl.plan_order", arguments)
    yield "order = planned.order"


def _reference(dataset: Dataset) -> str:
    return str(dataset.reference or dataset.data_dir or dataset.title)


# Loaders that are a DataLoader of PyTorch, or made of one.


class OfDataLoader(Library):
    """A loader that is iterated once an epoch."""

    def loop(self, asked: LoaderConfig) -> Iterator[str]:
        """Yield the loop over the epochs, each of which is told where something is."""
        first, stop, told = asked.first_epoch, asked.first_epoch + asked.epochs, self.told(asked)
        if not told and first:
            yield from comment(
                f"The order is that of iterations {first} to {stop - 1} of this very object, "
                "counted from 0: those before take their seeds."
            )
            first = 0
        yield f"for epoch in range({first}, {stop}):" if first else f"for epoch in range({stop}):"
        if told:
            yield f"    {told}.set_epoch(epoch)"
        yield f"    for {element_of(asked)} in loader:"
        yield "        ..."

    def imports_of_rest(self, asked: LoaderConfig) -> Iterator[str]:
        """Yield the import of the loader of what is left."""
        yield DATA_LOADER

    def made_of_rest(self, asked: LoaderConfig) -> Iterator[str]:
        """Yield a DataLoader of what is left: batches as they are, or examples one by one."""
        workers = {"num_workers": literal(asked.workers)} if asked.workers else {}
        how = {"batch_size": "None", "sampler": "rest"}
        if asked.batch is not None:
            how = {"batch_sampler": "rest"}
        yield from call("loader = DataLoader", [self.source, *keywords({**how, **workers})])

    def options(self, asked: LoaderConfig) -> dict[str, str]:
        """Return how a DataLoader reads and cuts, as arguments by name."""
        found = {}
        if asked.workers:
            found["num_workers"] = literal(asked.workers)
        if asked.persistent_workers:
            found["persistent_workers"] = "True"
        if asked.drop_remainder:
            found["drop_last"] = "True"
        return found

    def epochs(self, asked: LoaderConfig, names: dict[str, Any]) -> Iterator[Any]:
        """Yield what `loader` of `names` hands out of the epochs asked, as `loop` does."""
        told = names.get(self.told(asked))
        for epoch in range(asked.first_epoch, asked.first_epoch + asked.epochs):
            if told is not None:
                told.set_epoch(epoch)
            yield from names["loader"]


# What a loader reads in place of examples.


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


def refused(name: str, error: Exception) -> UsageError:
    """Return the error of settings that a library refuses."""
    return UsageError(f"{name} refuses these settings: {error}")
