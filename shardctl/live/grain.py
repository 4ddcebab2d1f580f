"""Grain: its loaders as code, run over a source of indices, and where they continue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.code.source import call, keywords, literal
from shardctl.live.library import Library, element_of, refused
from shardctl.loaders.grain import reads_map_dataset
from shardctl.loaders.loader import Stop, library
from shardctl.loaders.loader_sequence import LoaderConfig
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.quality import loaders as ways

_PIECE = 1024  # examples that are compared at once where there are no batches


class Grain(Library):
    """`grain.DataLoader` over an IndexSampler, or a MapDataset, as the settings ask for."""

    is_one_iterator = True
    helpers = '''\


def stacked(indices):
    """Return a batch as Grain makes one."""
    examples = [source[index] for index in indices]
    return tree.map_structure(lambda *values: np.stack(values), *examples)
'''

    def batches(self, config: LoaderConfig) -> Iterator[Int64s]:
        """Yield what one process yields, batch by batch."""
        # Its worker processes read flags, which are not parsed unless an absl app runs.
        flags = library("absl.flags", self.loader).FLAGS
        if not flags.is_parsed():
            flags.mark_as_parsed()
        source = range(config.num_examples)
        names = {"source": source, "rank": config.host, "world_size": config.num_hosts}
        try:
            # The lines that are shown to users are the lines that run here.
            self.run(["import grain", *self.made(config)], names)
            iterator: Any = iter(names["loader"])  # type: ignore[call-overload]
        except (TypeError, ValueError) as error:
            raise refused("Grain", error) from error
        try:
            pieces = iterator
            if config.batch is None:
                # Single examples are compared in pieces; an empty piece ends the iteration.
                pieces = iter(lambda: [*islice(iterator, _PIECE)], [])
            yield from (np.array(piece, np.int64) for piece in pieces)
        except (TypeError, ValueError, ZeroDivisionError) as error:
            raise refused("Grain", error) from error
        finally:
            _close(iterator)

    def imports(self, config: LoaderConfig) -> Iterable[str]:
        """Yield the imports of a loader, and of its flags where there are workers."""
        return ("import grain", "from absl import flags" if config.workers else "")

    def made(self, config: LoaderConfig) -> Iterator[str]:
        """Yield the lines that make a MapDataset, or a DataLoader."""
        return (_map_dataset if reads_map_dataset(config) else _data_loader)(config)

    def loop(self, config: LoaderConfig) -> Iterator[str]:
        """Yield the one loop over all epochs."""
        indent = ""
        if config.workers:
            yield "# Worker processes import this script anew, and read Grain's flags."
            yield 'if __name__ == "__main__":'
            yield "    flags.FLAGS.mark_as_parsed()"
            indent = "    "
        yield f"{indent}for {element_of(config)} in loader:"
        yield f"{indent}    ..."

    def imports_of_rest(self, config: LoaderConfig) -> Iterable[str]:
        """Yield the imports of a MapDataset, and of what stacks batches."""
        stacks = () if config.batch is None else ("import numpy as np", "import tree")
        return ("import grain", *stacks)

    def made_of_rest(self, config: LoaderConfig) -> Iterable[str]:
        """Yield a MapDataset of what is left."""
        reads = "lambda index: source[index]" if config.batch is None else "stacked"
        return (
            "loader = grain.MapDataset.source(rest)",
            f"loader = loader.map({reads})",
            "loader = loader.to_iter_dataset()",
        )

    def advice(self, config: LoaderConfig, stop: Stop) -> Iterable[str]:
        """Yield what its own state is worth."""
        return (
            "Grain's get_state and set_state continue exactly too, with the same number of workers",
        )

    def ways(self, settings: ReadSettings, file_format: str) -> Iterator[ways.Way]:
        """Yield its sampler, and the shuffle of windows."""
        state = {"continued": "exactly", "by": "get_state"}
        seed, buffer_seed = ways.seed_of(settings), ways.buffer_seed_of(settings)
        yield ways.way(settings, "grain", "Grain: IndexSampler", **state, shuffle_seed=seed)
        window = ways.OTHER_BUFFER if settings.buffer is None else settings.buffer
        own: dict[str, Any] = {"buffer": window, "buffer_seed": buffer_seed, "held": window}
        own |= {"host_by": "examples", "drop_shard_remainder": False, **state}
        yield ways.way(settings, "grain", f"Grain: window shuffle({window:,})", **own)


def _seed(config: LoaderConfig) -> dict[str, str]:
    return {} if config.seed is None else {"seed": literal(config.seed)}


def _batch(config: LoaderConfig) -> str:
    return ", ".join([literal(config.batch), *(["drop_remainder=True"] * config.drop_remainder)])


def _data_loader(config: LoaderConfig) -> Iterator[str]:
    # NoSharding reads all; otherwise each host has its even part.
    options = "grain.sharding.NoSharding()"
    if config.shares:
        drop = f"drop_remainder={literal(config.drop_shard_remainder)}"
        options = f"grain.sharding.ShardOptions(rank, world_size, {drop})"
    sampler = {
        "shuffle": literal(config.seed is not None),
        "num_epochs": literal(config.epochs),
        **_seed(config),
    }
    head = "sampler = grain.samplers.IndexSampler"
    yield from call(head, ["len(source)", options, *keywords(sampler)])
    made = {"data_source": "source", "sampler": "sampler"}
    if config.batch is not None:
        made["operations"] = f"[grain.transforms.Batch({_batch(config)})]"
    if config.workers:
        made["worker_count"] = literal(config.workers)
    yield from call("loader = grain.DataLoader", keywords(made))


def _map_dataset(config: LoaderConfig) -> Iterator[str]:
    yield "loader = grain.MapDataset.source(source)"
    if config.seed is not None:
        yield f"loader = loader.shuffle({', '.join(keywords(_seed(config)))})"
    if config.buffer is not None:
        window = {"window_size": literal(config.buffer), "seed": literal(config.buffer_seed)}
        name = "loader = grain.experimental.WindowShuffleMapDataset"
        yield from call(name, ["loader", *keywords(window)])
    yield f"loader = loader.repeat({config.epochs})"
    # A slice with a step shares examples; behind `repeat`, so that it runs through the epochs.
    yield from ["loader = loader[rank::world_size]"] * config.shares
    yield "loader = loader.to_iter_dataset()"
    yield from [f"loader = loader.batch({_batch(config)})"] * (config.batch is not None)
    if config.workers:
        options = f"grain.MultiprocessingOptions(num_workers={config.workers})"
        yield f"loader = loader.mp_prefetch({options})"


def _close(iterator: Any) -> None:
    """End the worker processes: a DataLoader's iterator keeps them in the one that it wraps."""
    for owner in (iterator, getattr(iterator, "_iterator", None)):
        close = getattr(owner, "close", None)
        if close is not None:
            close()
