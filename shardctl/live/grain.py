"""Grain: its loaders as code, run over a source of indices, and where they go on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.code.source import call, keywords, literal
from shardctl.live.library import Library, element_of, refused
from shardctl.loaders.library import Source, library
from shardctl.loaders.loader_config import LoaderConfig
from shardctl.loaders.stop import Stop
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.quality import loaders as ways

# How many examples are handed on at once where no batches are asked for.
_PIECE = 1024


class Grain(Library):
    """`grain.DataLoader` over an IndexSampler, or a MapDataset, as the settings ask for."""

    is_one_iterator = True
    helpers = '''\


def stacked(indices):
    """Return a batch as Grain makes one."""
    examples = [source[index] for index in indices]
    return tree.map_structure(lambda *values: np.stack(values), *examples)
'''

    def batches(self, asked: LoaderConfig, source: Source) -> Iterator[Int64s]:
        """Yield what one process hands out, batch by batch."""
        # Its worker processes read flags, which nobody parsed where no absl app was run.
        flags = library("absl.flags", self.loader).FLAGS
        if not flags.is_parsed():
            flags.mark_as_parsed()
        names: dict[str, Any] = {
            "source": source,
            "rank": asked.host,
            "world_size": asked.num_hosts,
        }
        try:
            self.run(["import grain", *self.made(asked)], names)
            iterator = iter(names["loader"])
        except (TypeError, ValueError) as error:
            raise refused("Grain", error) from error
        try:
            yield from _pieces(iterator, single=asked.batch is None)
        except Exception as error:
            # What a worker of 0.2.12 raises comes as an error of another kind.
            refuses = isinstance(error, TypeError | ValueError | ZeroDivisionError)
            if not refuses and type(error).__name__ != "RemoteWorkerError":
                raise
            raise refused("Grain", error) from error
        finally:
            _close(iterator)

    def imports(self, asked: LoaderConfig) -> Iterator[str]:
        """Yield the imports of a loader, and of its flags where there are workers."""
        yield "import grain"
        yield "from absl import flags" if asked.workers else ""

    def made(self, asked: LoaderConfig) -> Iterator[str]:
        """Yield the lines that make a MapDataset where one is asked for, else a DataLoader."""
        maps = asked.host_by == "examples" or asked.buffer is not None
        yield from (_map_dataset if maps else _data_loader)(asked)

    def loop(self, asked: LoaderConfig) -> Iterator[str]:
        """Yield the one loop over all epochs."""
        indent = ""
        if asked.workers:
            yield "# Worker processes import this script anew, and read Grain's flags."
            yield 'if __name__ == "__main__":'
            yield "    flags.FLAGS.mark_as_parsed()"
            indent = "    "
        yield f"{indent}for {element_of(asked)} in loader:"
        yield f"{indent}    ..."

    def imports_of_rest(self, asked: LoaderConfig) -> Iterator[str]:
        """Yield the imports of a MapDataset, and of what stacks batches."""
        yield "import grain"
        yield from () if asked.batch is None else ("import numpy as np", "import tree")

    def made_of_rest(self, asked: LoaderConfig) -> Iterator[str]:
        """Yield a MapDataset of what is left."""
        reads = "lambda index: source[index]" if asked.batch is None else "stacked"
        yield "loader = grain.MapDataset.source(rest)"
        yield f"loader = loader.map({reads})"
        yield "loader = loader.to_iter_dataset()"

    def advice(self, asked: LoaderConfig, stop: Stop) -> Iterator[str]:
        """Yield what its own state is worth."""
        yield (
            "Grain's own get_state and set_state go on exactly too, with as many workers as before"
        )

    def ways(self, settings: ReadSettings, file_format: str) -> Iterator[ways.Way]:
        """Yield its sampler, and the shuffle of windows."""
        state = {"continued": "exactly", "by": "get_state"}
        seed, buffer_seed = ways.seed_of(settings), ways.buffer_seed_of(settings)
        yield ways.way(settings, "grain", "Grain: IndexSampler", **state, shuffle_seed=seed)
        window = ways.OTHER_BUFFER if settings.buffer is None else settings.buffer
        own: dict[str, Any] = {"buffer": window, "buffer_seed": buffer_seed, "held": window}
        own |= {"host_by": "examples", "drop_shard_remainder": False}
        yield ways.way(settings, "grain", f"Grain: window shuffle({window:,})", **state, **own)


def _seed(asked: LoaderConfig) -> dict[str, str]:
    return {} if asked.seed is None else {"seed": literal(asked.seed)}


def _batch(asked: LoaderConfig) -> str:
    return ", ".join([literal(asked.batch), *(["drop_remainder=True"] * asked.drop_remainder)])


def _data_loader(asked: LoaderConfig) -> Iterator[str]:
    options = "grain.sharding.NoSharding()"
    if asked.shares:
        drop = f"drop_remainder={literal(asked.drop_shard_remainder)}"
        options = f"grain.sharding.ShardOptions(rank, world_size, {drop})"
    sampler = {
        "shuffle": literal(asked.seed is not None),
        "num_epochs": literal(asked.epochs),
        **_seed(asked),
    }
    head = "sampler = grain.samplers.IndexSampler"
    yield from call(head, ["len(source)", options, *keywords(sampler)])
    made = {"data_source": "source", "sampler": "sampler"}
    if asked.batch is not None:
        made["operations"] = f"[grain.transforms.Batch({_batch(asked)})]"
    if asked.workers:
        made["worker_count"] = literal(asked.workers)
    yield from call("loader = grain.DataLoader", keywords(made))


def _map_dataset(asked: LoaderConfig) -> Iterator[str]:
    yield "loader = grain.MapDataset.source(source)"
    if asked.seed is not None:
        yield f"loader = loader.shuffle({', '.join(keywords(_seed(asked)))})"
    if asked.buffer is not None:
        window = {"window_size": literal(asked.buffer), "seed": literal(asked.buffer_seed)}
        name = "loader = grain.experimental.WindowShuffleMapDataset"
        yield from call(name, ["loader", *keywords(window)])
    yield f"loader = loader.repeat({asked.epochs})"
    yield from ["loader = loader[rank::world_size]"] * asked.shares
    yield "loader = loader.to_iter_dataset()"
    yield from [f"loader = loader.batch({_batch(asked)})"] * (asked.batch is not None)
    if asked.workers:
        options = f"grain.MultiprocessingOptions(num_workers={asked.workers})"
        yield f"loader = loader.mp_prefetch({options})"


def _pieces(iterator: Any, *, single: bool) -> Iterator[Int64s]:
    if not single:
        for batch in iterator:
            yield np.array(batch, np.int64)
        return
    piece: list[int] = []
    for example in iterator:
        piece.append(int(example))
        if len(piece) == _PIECE:
            yield np.array(piece, np.int64)
            piece = []
    if piece:
        yield np.array(piece, np.int64)


def _close(iterator: Any) -> None:
    """End the worker processes: a DataLoader's iterator keeps them in the one that it wraps."""
    for owner in (iterator, getattr(iterator, "_iterator", None)):
        close = getattr(owner, "close", None)
        if close is not None:
            close()
