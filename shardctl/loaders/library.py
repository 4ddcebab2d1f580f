"""What the users of a loader call of its library: live, as code, and where a run goes on.

A loader is a class of this kind, in one module (`Loader.calls` names it). What it runs is the code
that it shows, so that what is verified is what people paste.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from shardctl.errors import MissingDependencyError, UsageError
from shardctl.loaders.loader import Loader, named
from shardctl.loaders.stop import LoaderCall, Stop

if TYPE_CHECKING:
    import numpy as np

    from shardctl.base.arrays import Int64s
    from shardctl.loaders.loader_config import LoaderConfig


class Source(Protocol):
    """The examples that a loader reads by index, in worker processes too (so it can be pickled).

    `source[i]` is an int64: `i`, where the example that was read is the one of index `i`, and a
    number below 0 where it is another one.
    """

    def __len__(self) -> int:
        """Return the number of examples."""

    def __getitem__(self, index: int) -> np.int64:
        """Return the index of the example that is read."""


class LoaderLibrary(ABC):
    """The library of a loader. Making one imports nothing; running it imports the library.

    loader: the entry of the table that it belongs to.
    formats: record files that the library opens by itself (`rows`), as "parquet"; the others are
        read through a `Source`.
    skips: its call that leaves batches out.
    is_one_iterator: whether one iterator hands out all epochs, so that what is skipped is counted
        from the first of them.
    """

    formats: frozenset[str] = frozenset()
    skips = "skip"
    is_one_iterator = False

    def __init__(self, loader: Loader) -> None:
        self.loader = loader

    @abstractmethod
    def batches(self, asked: LoaderConfig, source: Source) -> Iterator[Int64s]:
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
        self, asked: LoaderConfig, files: Sequence[str], file_format: str
    ) -> Iterator[Sequence[Mapping[str, Any]]]:
        """Yield the same batches of rows as the library reads them from its own kind of files.

        `files` are the paths of the shards, `asked.lengths` their lengths.
        """
        raise NotImplementedError(f"{type(self).__name__} opens no {file_format} files by itself")

    def told(self, asked: LoaderConfig) -> str:
        """Return what is told which epoch comes (`set_epoch`), "" where nothing is."""
        return ""

    def draws_on(self, asked: LoaderConfig) -> bool:
        """Whether each iteration draws on where the one before it stopped."""
        return False

    def calls(self, asked: LoaderConfig, stop: Stop) -> tuple[LoaderCall, ...]:
        """Return what the library is told before what is left comes, and how much it has to skip.

        Where iterations draw on, seeds are those of what they draw from.
        """
        epoch = asked.first_epoch + stop.epoch
        calls = []
        if self.told(asked):
            calls.append(LoaderCall(call="set_epoch", arguments={"epoch": epoch}))
        if self.draws_on(asked):
            if asked.shuffles:
                # A seed of PyTorch's generator and that of a loader's own give different orders.
                name = "manual_seed" if asked.seed is None else "generator.manual_seed"
                seed = asked.global_seed if asked.seed is None else asked.seed
                calls.append(LoaderCall(call=name, arguments={"seed": seed or 0}))
            if epoch:
                calls.append(LoaderCall(call="iterations", arguments={"count": epoch}))
        one = self.is_one_iterator
        batches = stop.steps if one else stop.steps_in_epoch
        if batches is None:
            skipped = stop.consumed if one else stop.in_epoch
            calls.append(LoaderCall(call="skip", arguments={"examples": skipped}))
        else:
            calls.append(LoaderCall(call=self.skips, arguments={"batches": batches}))
            if stop.in_batch:
                calls.append(
                    LoaderCall(call="skip_in_batch", arguments={"examples": stop.in_batch})
                )
        return tuple(calls)

    def advice(self, asked: LoaderConfig, stop: Stop) -> Iterator[str]:
        """Yield what to know of the library's own ways to go on, each a sentence."""
        return iter(())

    def code(self, spec: str, order: Any) -> Iterator[Iterable[str]]:
        """Yield the parts of code, lines each, that makes the loader and goes through its epochs.

        `order` is a LoaderOrder. The first part are the imports.
        """
        raise self._no_code()

    def code_of_rest(self, spec: str, order: Any, stop: Stop) -> Iterator[Iterable[str]]:
        """Yield the parts of code that reads what is left of all epochs."""
        raise self._no_code()

    def ways(self, settings: Any, file_format: str) -> Iterator[Any]:
        """Yield the ways in which people read with it: Ways, of settings given (ReadSettings).

        None of them stands for one: by index, with the seed that it takes.
        """
        return iter(())

    def _no_code(self) -> UsageError:
        return UsageError(f"{self.loader.title} has no code to paste here; take another format")


def library_of(loader: Loader) -> LoaderLibrary:
    """Return the library of a loader of the table, which is imported when it is run."""
    found: LoaderLibrary = named(loader.calls)(loader)
    return found


def library(module: str, loader: Loader) -> Any:
    """Return a module of a library, imported now.

    Raises:
        MissingDependencyError: it is not installed; names the extra that brings it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise missing(loader, error) from error


def missing(loader: Loader, error: ImportError) -> MissingDependencyError:
    """Return the error of a library that cannot be imported."""
    return MissingDependencyError(
        f"{loader.title} is needed for this and cannot be imported ({error}); "
        f"install it with: pip install 'shardctl[{loader.extra}]'"
    )
