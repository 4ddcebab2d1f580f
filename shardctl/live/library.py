"""A loader as the code that makes it: shown to people, and run here to see what it yields."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.base.install import missing
from shardctl.base.tfds_rules import POSITIONS
from shardctl.code import reader
from shardctl.code.python_text import call, comment, keywords, literal, settings_code
from shardctl.errors import UsageError
from shardctl.loaders.loader import Loader, LoaderCall, Stop
from shardctl.loaders.loader_sequence import LoaderConfig
from shardctl.order.loader_order import LoaderOrder
from shardctl.order.order import Origin
from shardctl.settings.read_settings import ReadSettings
from shardctl.stages.stages import Pipeline, Range, Read
from shardctl.verbs.quality.compare_loaders import Way

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
_REST_WITHOUT_END = '''\
class Rest:
    """The examples that follow, by their indices in the source; they have no end."""

    def __init__(self, positions):
        self.positions = positions

    def __len__(self):
        return len(self.positions)

    def __getitem__(self, index):
        return int(order.indices_at([self.positions[index]])[0])
'''
_JOINED = '''\
class Joined:
    """Several sources as one, whose indices count through them one after the other."""

    def __init__(self, *sources):
        self.sources = sources

    def __len__(self):
        return sum(map(len, self.sources))

    def __getitem__(self, index):
        for source in self.sources:
            if index < len(source):
                return source[index]
            index -= len(source)
        raise IndexError(index)
'''


@dataclass(frozen=True, kw_only=True)
class LoaderObject:
    """What an object of a loader's library was made with, read back from it.

    stages: its chain, of the loader's own calls. settings: those beside it, by the fields of
    `ReadSettings`. sources: the object that each reader of the chain stands for. assumptions:
    what could not be seen, and is taken for granted, a sentence each.
    """

    loader: str
    stages: Pipeline
    settings: Mapping[str, Any] = field(default_factory=dict)
    sources: Mapping[Read, Any] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()


def reader_of(source: Any, known: dict[Read, Any]) -> Read:
    """Return the reader that stands for a data source, and add it to those that are known.

    A source of TFDS says what it is of. Of others the length is known, and elements are named by
    their positions. One object is one reader, however often it is there.

    >>> known = {}
    >>> reader_of([5, 6, 7], known).data, len(known)
    ('range(3)', 1)
    """
    for read, one in known.items():
        if one is source:
            return read
    info, split = getattr(source, "dataset_info", None), getattr(source, "split", None)
    if info is not None and split is not None:
        made = Read(spec=str(split), data=str(info.data_dir))
    else:
        alike = sum(1 for one in known.values() if len(one) == len(source))
        made = Range(stop=len(source)).as_read(alike + 1)
    known[made] = source
    return made


class Library(ABC):
    """The library of a loader: the same lines of code make it for people and for a run.

    Making one imports nothing; running it imports the library.

    loader: the entry of the table that it belongs to.
    skips: its call that leaves batches out.
    is_one_iterator: whether one iterator yields all epochs, so that what is skipped is counted
        from the first of them.
    source: what the lines call the examples that are read.
    helpers: definitions that the code of a rest of batches needs besides `Rest`.
    """

    skips = "skip"
    is_one_iterator = False
    source = "source"
    helpers = ""

    def __init__(self, loader: Loader) -> None:
        self.loader = loader

    @abstractmethod
    def batches(self, config: LoaderConfig) -> Iterator[Int64s]:
        """Yield what one process yields of all epochs, batch by batch, int64[size] each.

        What it reads are the indices from 0 to `config.num_examples`, whose shards are
        `config.lengths`. Without a batch size, pieces of any size. The real calls are made, worker
        processes included; earlier epochs that the library has to draw first (`first_epoch`) are
        drawn here. The generator may be closed before its end: it then ends the worker processes
        that it started (`try: .. finally:`).

        Raises:
            MissingDependencyError: the library is not installed.
            UsageError: the library refuses these settings.
        """

    def over_indices(self, value: Any, indices: Mapping[int, range]) -> Any:
        """Return an object like one of the library's over indices, without functions of its user.

        indices: those of each source, by the `id` of the source. None where the library has no way
        to make one: then the elements of the object itself are compared, by their values.
        """
        return None

    def example(self, source: Any, index: int) -> Any:
        """Return an example of what `read_object` found to be a source."""
        return source[index]

    def epoch_setter(self, config: LoaderConfig) -> str:
        """Return the name of what has `set_epoch`, "" where nothing has it."""
        return ""

    def draws_on(self, config: LoaderConfig) -> bool:
        """Whether each iteration draws on where the one before it stopped."""
        return False

    def calls(self, config: LoaderConfig, stop: Stop) -> tuple[LoaderCall, ...]:
        """Return the calls after which the library yields what is left, and how much it skips.

        Where iterations draw on, seeds are those of what they draw from.
        """
        epoch = config.first_epoch + stop.epoch
        # In the order in which a user makes the calls: the epoch, then the generator, then what is
        # skipped.
        calls: list[tuple[str, str, int]] = []
        if self.epoch_setter(config):
            calls.append(("set_epoch", "epoch", epoch))
        if self.draws_on(config):
            if config.shuffles:
                # A seed of PyTorch's generator and that of a loader's own give different orders.
                name = "manual_seed" if config.seed is None else "generator.manual_seed"
                seed = config.global_seed if config.seed is None else config.seed
                calls.append((name, "seed", seed or 0))
            if epoch:
                calls.append(("iterations", "count", epoch))
        # One iterator for all epochs counts from the first of them, others from the start of their
        # epoch.
        one = self.is_one_iterator
        batches = stop.steps if one else stop.steps_in_epoch
        # Without batches, examples are skipped.
        if batches is None:
            calls.append(("skip", "examples", stop.consumed if one else stop.in_epoch))
        else:
            calls.append((self.skips, "batches", batches))
            if stop.in_batch:
                calls.append(("skip_in_batch", "examples", stop.in_batch))
        return tuple(LoaderCall(call=name, arguments={of: count}) for name, of, count in calls)

    def advice(self, config: LoaderConfig, stop: Stop) -> Iterable[str]:
        """Yield what to know of the library's own ways to continue, each a sentence."""
        return ()

    def ways(self, settings: ReadSettings, file_format: str) -> Iterable[Way]:
        """Yield the ways in which people read with it.

        None of them stands for one: by index, with the seed that it takes.
        """
        return ()

    def code(self, spec: str, order: LoaderOrder) -> Iterator[Iterable[str]]:
        """Yield the parts of code that makes the loader and goes through its epochs.

        The first part are the imports.
        """
        config = order.config
        here = f"rank, world_size = {config.host}, {config.num_hosts}"
        host = ("# Which of the processes this is: 0 is the first.", here) if config.shares else ()
        yield from _behind_imports(
            [self.data(spec, order), host, self.made(config), self.loop(config)]
        )

    def code_of_rest(self, spec: str, order: LoaderOrder, stop: Stop) -> Iterator[Iterable[str]]:
        """Yield the parts of code that reads what is left of all epochs."""
        origins, dataset = order.origins, order.dataset
        if origins:  # what is read by the reader of the command, if there is one
            own = (origin for read, origin in origins.items() if read.data is None)
            dataset = next(own, next(iter(origins.values()))).dataset
        # Batches are read as they are, whoever forms them.
        batch = (order.config.batch or 1) if order.has_steps else None
        config = replace(order.config, stages=None, batch=batch)
        # The code plans the order again and reads what is left by index.
        named = literal(str(dataset.reference or dataset.data_dir or dataset.title))
        plan = call("planned = shardctl.plan_order", [named, literal(spec), "settings"])
        planned = "import shardctl", *settings_code(order.settings), *plan, "order = planned.order"
        parts: list[Iterable[str]] = [self.data(spec, order), planned]
        if len(origins) > 1:
            sources = ", ".join(self.names_of_sources(len(origins)))
            parts += [_JOINED.splitlines(), (f"{self.source} = Joined({sources})",)]
        if config.batch is not None:
            parts.append((_REST_OF_BATCHES + self.helpers).splitlines())
        elif order.is_endless:
            parts.append(_REST_WITHOUT_END.splitlines())
        # Examples by default; batches where the loader makes them, since a batch may hold less than
        # its size.
        left = f"rest = order.indices_at(range({stop.consumed}, order.num_examples)).tolist()"
        if order.is_endless:
            left = f"rest = Rest(range({stop.consumed}, order.num_examples))"
        if stop.steps is not None:
            left = f"rest = Rest(range({stop.steps}, order.num_steps), in_batch={stop.in_batch})"
        said = "It is read by index: what the chain does to each example is called on what is read."
        notes = comment(said) if order.config.stages is not None else ()
        loop = f"for {element_of(config)} in loader:", "    ..."
        parts.append((left, *notes, *self.made_of_rest(config), *loop))
        yield from _behind_imports(parts)

    def names_of_sources(self, count: int) -> list[str]:
        """Return what the lines call the sources of the readers of a chain, in their order."""
        return [self.source, *(f"{self.source}_{number}" for number in range(2, count + 1))]

    def data(self, spec: str, order: LoaderOrder) -> Iterator[str]:
        """Yield the lines that make the source, or that of each reader of a chain."""
        origins = _origins(spec, order)
        for name, one in zip(self.names_of_sources(len(origins)), origins, strict=True):
            if one.dataset.file_format == POSITIONS:
                yield "# The source of the script, of which only the length is known here."
                yield f"{name} = range({one.dataset.splits[0].num_examples})"
                continue
            builder = list(reader.builder(one.dataset))
            yield from (*filter(None, reader.imports(builder)), *builder)
            yield "# Files that are read by index, as array_record ones are."
            yield f"{name} = builder.as_data_source(split={literal(one.spec)})"

    # Lines of code import what they need; imports are brought to the top.

    def made(self, config: LoaderConfig) -> Iterable[str]:
        """Yield the lines that make `loader` of the source, on process `rank` of `world_size`."""
        raise UsageError(f"{self.loader.title} has no code to paste here; take another format")

    def loop(self, config: LoaderConfig) -> Iterable[str]:
        """Yield the lines that go through all epochs."""
        return ()

    def made_of_rest(self, config: LoaderConfig) -> Iterable[str]:
        """Yield the lines that make `loader` of `rest`, indices or batches of them."""
        return self.made(config)

    def run(self, lines: Iterable[str], names: dict[str, Any]) -> None:
        """Run lines of code of ours, which add what they define to `names`.

        Raises:
            MissingDependencyError: they import what is not installed.
        """
        try:
            exec("\n".join(lines), names)  # noqa: S102  # the lines that are shown, of literals
        except ImportError as error:
            raise missing(self.loader.title, self.loader.library, error) from error


class OfDataLoader(Library):
    """A loader that is a DataLoader of PyTorch or made of one, which is iterated once an epoch."""

    def loop(self, config: LoaderConfig) -> Iterator[str]:
        """Yield the loop over the epochs, with `set_epoch` where something has it."""
        # Without set_epoch the object itself counts iterations, so the loop starts at the first.
        first, stop = config.first_epoch, config.first_epoch + config.epochs
        setter = self.epoch_setter(config)
        if not setter and first:
            yield from comment(
                f"The order is that of iterations {first} to {stop - 1} of this very object, "
                "counted from 0: those before take their seeds."
            )
            first = 0
        yield f"for epoch in range({first}, {stop}):" if first else f"for epoch in range({stop}):"
        if setter:
            yield f"    {setter}.set_epoch(epoch)"
        yield f"    for {element_of(config)} in loader:"
        yield "        ..."

    def made_of_rest(self, config: LoaderConfig) -> Iterable[str]:
        """Yield a DataLoader of what is left: batches as they are, or examples one by one."""
        # batch_size=None turns the batching of PyTorch off.
        how = {"batch_size": "None", "sampler": "rest"}
        if config.batch is not None:
            how = {"batch_sampler": "rest"}
        if config.workers:
            how["num_workers"] = literal(config.workers)
        return (DATA_LOADER, *call("loader = DataLoader", [self.source, *keywords(how)]))

    def options(self, config: LoaderConfig) -> dict[str, str]:
        """Return how a DataLoader reads and cuts, as arguments by name."""
        # What is false or None is left out, so that the code shows only what was asked.
        given = {
            "num_workers": config.workers,
            "persistent_workers": config.persistent_workers,
            "drop_last": config.drop_remainder,
        }
        return {name: literal(value) for name, value in given.items() if value}

    def iterates_before(self, config: LoaderConfig) -> bool:
        """Whether epochs before the first that is read are iterated, since they draw as well."""
        return self.draws_on(config)

    def epochs(self, config: LoaderConfig, names: dict[str, Any]) -> Iterator[Iterator[Any]]:
        """Yield what `loader` of `names` yields of each epoch, as `loop` does."""
        setter, first = names.get(self.epoch_setter(config)), config.first_epoch
        before = self.iterates_before(config)
        for epoch in range(0 if before else first, first + config.epochs):
            if setter is not None:
                setter.set_epoch(epoch)
            elements = iter(names["loader"])
            if epoch >= first:
                yield elements
            else:
                deque(elements, maxlen=0)


def _origins(spec: str, order: LoaderOrder) -> list[Origin]:
    """Return what the readers of an order read, which is `spec` where there is no chain."""
    return [*order.origins.values()] or [Origin(name="", dataset=order.dataset, spec=spec)]


def imports_apart(lines: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the imports among lines of code, as they stand in a module, and the other lines.

    >>> imports_apart(["from a import f", "f()", "import z"])
    (['import z', 'from a import f'], ['f()'])
    """
    every = list(lines)
    imports = {line for line in every if line.startswith(("import ", "from "))}
    ordered = sorted(imports, key=lambda line: (line.startswith("from "), line))
    return ordered, [line for line in every if line not in imports]


def _behind_imports(parts: Iterable[Iterable[str]]) -> Iterator[Iterable[str]]:
    """Yield the imports of all parts of code, then the parts without them."""
    imports, rest = zip(*map(imports_apart, parts), strict=True)
    yield imports_apart(line for lines in imports for line in lines)[0]
    yield from rest


def element_of(config: LoaderConfig) -> str:
    """Return what code calls an element of a loader."""
    if config.stages is not None:
        return "element"
    return "example" if config.batch is None else "batch"


def leaves(element: Any) -> Iterator[Any]:
    """Yield the indices of an element, however they are put together."""
    if isinstance(element, list | tuple) or np.ndim(element):
        for one in element:
            yield from leaves(one)
    else:
        yield element


def refused(name: str, error: Exception) -> UsageError:
    """Return the error of settings that a library refuses."""
    return UsageError(f"{name} refuses these settings: {error}")
