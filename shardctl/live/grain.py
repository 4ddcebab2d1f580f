"""Grain: its loaders as code, run over a source of indices, and where they continue."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count, islice
from typing import Any

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.code.python_text import call, keywords, literal
from shardctl.errors import UsageError
from shardctl.live.library import Library, LoaderObject, leaves, reader_of, refused
from shardctl.loaders import grain_stages as ast
from shardctl.loaders.grain_stages import chain_of
from shardctl.loaders.grain_states import state_of
from shardctl.loaders.loader import LOADERS, Stop, library
from shardctl.loaders.loader_sequence import LoaderConfig
from shardctl.settings.read_settings import ReadSettings
from shardctl.stages.part import said_of
from shardctl.stages.pipelines import parts_of
from shardctl.stages.stages import Pipeline, Read
from shardctl.verbs.quality import compare_loaders as ways

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
        self._parse_flags()
        code = _Code(config)
        several = [part for part in parts_of(code.chain) if isinstance(part, ast.Batch | ast.Zip)]
        code = replace(code, lists=len(several) > 1)
        names = self._names(code)
        try:
            # The lines that are shown to users are the lines that run here.
            self.run(["import grain", *code.lines(code.chain)], names)
            iterator: Any = iter(names["loader"])
        except (TypeError, ValueError, AttributeError, OverflowError) as error:
            raise refused("Grain", error) from error
        try:
            pieces = iterator
            if config.stages is None and config.batch is None:
                # Single examples are compared in pieces; an empty piece ends the iteration.
                pieces = iter(lambda: [*islice(iterator, _PIECE)], [])
            yield from (np.array([*leaves(piece)], np.int64) for piece in pieces)
        except (TypeError, ValueError, ZeroDivisionError) as error:
            raise refused("Grain", error) from error
        finally:
            _close(iterator)

    def _names(self, code: _Code) -> dict[str, Any]:
        """Return what the lines need: sources of indices, and functions that change nothing."""
        transforms, config = library("grain.transforms", self.loader), code.config

        class Same(transforms.Map):  # type: ignore[misc, name-defined]
            def map(self, element: Any) -> Any:
                return element

        class Passing(transforms.Filter):  # type: ignore[misc, name-defined]
            def __init__(self, passes: Any) -> None:
                self.passes = passes

            def filter(self, element: Any) -> bool:
                return bool(self.passes(np.array([element]))[0])

        kept = config.kept
        return {
            "rank": config.host,
            "world_size": config.num_hosts,
            "map_transform": Same(),
            "map_with_index_transform": lambda index, element: element,
            "random_map_transform": lambda element, rng: element,
            "in_list": list,
            "source": config.indices,
            **{name: config.sources[read].indices for read, name in code.sources.items()},
            **{
                name: kept and Passing(kept(ast.Filter(kept=path)))
                for path, name in code.filters.items()
            },
        }

    def _parse_flags(self) -> None:
        """Let worker processes read flags, which are not parsed unless an absl app runs."""
        flags = library("absl.flags", self.loader).FLAGS
        if not flags.is_parsed():
            flags.mark_as_parsed()

    def over_indices(self, value: Any, indices: Mapping[int, range]) -> Any:
        """Return a copy over indices, without maps; None where a filter looks at elements."""
        self._parse_flags()
        try:
            return _over_indices(value, indices)
        except _NeedsElementsError:
            return None

    def made(self, config: LoaderConfig) -> Iterator[str]:
        """Yield the lines that make a chain of datasets, or a DataLoader."""
        code = _Code(config)
        yield "import grain"
        slices = [part for part in parts_of(code.chain) if isinstance(part, ast.Slice)]
        if not config.shares and any(part.start == "rank" for part in slices):
            yield "rank, world_size = 0, 1"
        yield from code.lines(code.chain)

    def loop(self, config: LoaderConfig) -> Iterator[str]:
        """Yield the one loop over all epochs."""
        indent = ""
        if config.workers:
            yield "from absl import flags"
            yield "# Worker processes import this script anew, and read Grain's flags."
            yield 'if __name__ == "__main__":'
            yield "    flags.FLAGS.mark_as_parsed()"
            indent = "    "
        batches = [part for part in parts_of(_Code(config).chain) if isinstance(part, ast.Batch)]
        yield f"{indent}for {'batch' if batches else 'example'} in loader:"
        yield f"{indent}    ..."

    def made_of_rest(self, config: LoaderConfig) -> Iterable[str]:
        """Yield a MapDataset of what is left."""
        reads = "lambda index: source[index]" if config.batch is None else "stacked"
        stacks = () if config.batch is None else ("import numpy as np", "import tree")
        return (
            "import grain",
            *stacks,
            "loader = grain.MapDataset.source(rest)",
            f"loader = loader.map({reads})",
            "loader = loader.to_iter_dataset()",
        )

    def advice(self, config: LoaderConfig, stop: Stop) -> Iterable[str]:
        """Yield what its own state is worth, and of datasets what it is."""
        yield (
            "Grain's get_state and set_state continue exactly too, with the same number of workers"
        )
        steps = stop.consumed if stop.steps is None else stop.steps
        # That of a DataLoader names its sampler and its source: `shardctl.grain.state_at`.
        if not stop.in_batch and config.stages is not None:
            with suppress(UsageError):
                state = json.dumps(state_of(config, steps))
                yield f"set_state({state}) continues an iterator of the chain here"

    def ways(self, settings: ReadSettings, file_format: str) -> Iterator[ways.Way]:
        """Yield its sampler, and the shuffle of windows."""
        state = {"continued": "exactly", "by": "get_state"}
        seed, buffer_seed = ways.seed_of(settings), ways.buffer_seed_of(settings)
        yield ways.way(settings, "grain", "Grain: IndexSampler", **state, shuffle_seed=seed)
        window = ways.OTHER_BUFFER if settings.buffer is None else settings.buffer
        own: dict[str, Any] = {"buffer": window, "buffer_seed": buffer_seed, "held": window}
        own |= {"host_by": "examples", "drop_shard_remainder": False, **state}
        yield ways.way(settings, "grain", f"Grain: window shuffle({window:,})", **own)


@dataclass(frozen=True)
class _Code:
    """The lines that make a chain. lists: batches are lists, as those of unequal elements must be.

    Functions of the script are called by their transformation, one name for each filter.
    """

    config: LoaderConfig
    lists: bool = False

    @cached_property
    def chain(self) -> Pipeline:
        return chain_of(self.config)

    @cached_property
    def sources(self) -> dict[Any, str]:
        """What the source of each reader is called."""
        return dict(zip(self.config.sources, _numbered("source"), strict=False))

    @cached_property
    def filters(self) -> dict[str | None, str]:
        """What the transformation of each filter is called, by its scan."""
        kept = (part.kept for part in parts_of(self.chain) if isinstance(part, ast.Filter))
        return dict(zip(dict.fromkeys(kept), _numbered("filter_transform"), strict=False))

    def lines(self, pipeline: Pipeline, name: str = "loader") -> Iterator[str]:
        """Yield the lines that make a dataset of this name."""
        source = pipeline.source
        if isinstance(source, ast.Merging):
            inputs = [f"{name}_{number}" for number in range(1, len(source.inputs) + 1)]
            for one, of in zip(source.inputs, inputs, strict=True):
                yield from self.lines(one, of)
            kind = "Iter" if source.kinds == {"iter"} else "Map"
            made = f"grain.{kind}Dataset.{source.name}"
            if isinstance(source, ast.Zip | ast.InterleaveIterDataset):
                own = f"Zip{kind}Dataset" if isinstance(source, ast.Zip) else source.name
                made = f"grain.experimental.{own}"
            said = {key: repr(value) for key, value in said_of(source).items() if key != "inputs"}
            if kind == "Map":
                said.pop("strict", None)
            yield from call(f"{name} = {made}", [f"[{', '.join(inputs)}]", *keywords(said)])
        else:
            of = self.sources.get(source, "source")
            if pipeline.stages and isinstance(pipeline.stages[0], ast.IndexSampler):
                yield from self._data_loader(pipeline, of)
                return
            yield f"{name} = grain.MapDataset.source({of})"
        for stage in pipeline.stages:
            yield f"{name} = {self._called(stage, name)}"

    def _called(self, stage: Any, of: str) -> str:
        """Return a call of Grain on the dataset that is called `of`."""
        given = keywords({name: repr(value) for name, value in said_of(stage).items()})
        match stage:
            case ast.Slice():
                ends = ("" if one is None else str(one) for one in (stage.start, stage.stop))
                return f"{of}[{':'.join(ends)}{'' if stage.step is None else f':{stage.step}'}]"
            case ast.MultithreadPrefetch():
                given = [f"num_threads={stage.num_workers}", "buffer_size=1"]
                return f"grain.experimental.{stage.name}({', '.join([of, *given])})"
            case ast.MpPrefetch():
                given = [f"grain.MultiprocessingOptions(num_workers={stage.num_workers})"]
            case ast.Prefetch():
                given = ["prefetch_buffer_size=1"]
            case ast.WithOptions():
                given = ["grain.experimental.DatasetOptions()"]
            case ast.Filter():
                given = [self.filters[stage.kept]]
            case ast.Map() | ast.RandomMap():
                given.insert(0, f"{stage.name}_transform")
            case ast.Batch():
                given = self._batch(stage)
            case ast.Repeat(num_epochs=int(count)):
                given[0] = str(count)
        if stage.name[0].isupper():
            return f"grain.experimental.{stage.name}({', '.join([of, *given])})"
        return f"{of}.{stage.name}({', '.join(given)})"

    def _batch(self, stage: ast.Batch) -> list[str]:
        own = ["drop_remainder=True"] * stage.drop_remainder + ["batch_fn=in_list"] * self.lists
        return [str(stage.batch_size), *own]

    def _data_loader(self, pipeline: Pipeline, source: str) -> Iterator[str]:
        """Yield the lines of a chain that begins with a sampler."""
        sampler, *operations = pipeline.stages
        assert isinstance(sampler, ast.IndexSampler)
        loader = operations.pop() if operations else None
        given = [f"len({source})", self._options(sampler)]
        if not isinstance(sampler, ast.SequentialSampler):
            names = ["shuffle", "num_epochs"] + ["seed"] * (sampler.seed is not None)
            given += keywords({name: literal(getattr(sampler, name)) for name in names})
        yield from call(f"sampler = grain.samplers.{sampler.name}", given)
        made = {"data_source": source, "sampler": "sampler"}
        if operations:
            made["operations"] = f"[{', '.join(map(self._operation, operations))}]"
        if isinstance(loader, ast.DataLoader) and loader.worker_count:
            made["worker_count"] = literal(loader.worker_count)
        yield from call("loader = grain.DataLoader", keywords(made))

    def _operation(self, stage: Any) -> str:
        if isinstance(stage, ast.Batch):
            return f"grain.transforms.Batch({', '.join(self._batch(stage))})"
        return self.filters[stage.kept] if isinstance(stage, ast.Filter) else "map_transform"

    def _options(self, stage: ast.IndexSampler) -> str:
        """Return the `ShardOptions` of a sampler: by settings where it has none of its own."""
        drop = f"drop_remainder={literal(stage.drop_remainder)}"
        if stage.shard_count is not None:
            return f"grain.sharding.ShardOptions({stage.shard_index}, {stage.shard_count}, {drop})"
        if self.config.shares:
            return f"grain.sharding.ShardOptions(rank, world_size, {drop})"
        return "grain.sharding.NoSharding()"


# What objects of Grain were made with, read back from them.


def read_object(made: Any) -> LoaderObject | None:
    """Return the chain that a dataset of Grain, or a DataLoader, was made with.

    Raises:
        UsageError: the order of a part of it is not known here; it is named.
    """
    if not _is_grains(made):
        return None
    reader = _Reading()
    pipeline = reader.loader(made) if type(made).__name__ == "DataLoader" else reader.chain(made)
    return LoaderObject(loader="grain", stages=pipeline, sources=reader.known)


def _is_grains(made: Any) -> bool:
    names = {base.__name__ for base in type(made).__mro__ if base.__module__.startswith("grain.")}
    return bool(names & {"MapDataset", "IterDataset", "DataLoader"})


# Of a class of Grain: the stage that it is, and the arguments that it keeps, behind a "_".
_STAGES: dict[str, tuple[type[ast.GrainStage], str]] = {
    "Shuffle": (ast.Shuffle, "seed"),
    "WindowShuffleMapDataset": (ast.WindowShuffleMapDataset, "window_size seed"),
    "WindowShuffleIterDataset": (ast.WindowShuffleIterDataset, "window_size seed"),
    "RepeatMapDataset": (ast.Repeat, "num_epochs reseed_each_epoch"),
    "RepeatIterDataset": (ast.RepeatIterDataset, "num_epochs"),
    "Batch": (ast.Batch, "batch_size drop_remainder"),
    "Map": (ast.Map, ""),
    "MapWithIndex": (ast.MapWithIndex, ""),
    "Filter": (ast.Filter, ""),
    "Prefetch": (ast.ToIterDataset, "allow_nones"),
    "ThreadPrefetch": (ast.Prefetch, ""),
    "WithOptions": (ast.WithOptions, ""),
    "Limit": (ast.LimitIterDataset, "count"),
}
_NONE = ("_OutputIterDataset", "_MpContextIterDataset", "_LazyWorkerSliceIterDataset")


class _Reading:
    """Reads objects back. known: what the readers of the chain stand for."""

    def __init__(self) -> None:
        self.known: dict[Read, Any] = {}

    def chain(self, made: Any) -> Pipeline:
        """Return the chain of a dataset."""
        name = type(made).__name__
        if not type(made).__module__.startswith("grain."):
            raise _unknown(made, "a class of its own")
        if name in _NONE:
            return self.chain(_parent(made))
        if name == "SourceMapDataset":
            source = _got(made, "_source")
            return self.chain(source) if _is_grains(source) else self._read(source)
        if name == "RangeMapDataset":
            return self._read(made)
        if name == "InterleaveIterDataset":
            return self._interleaved(made, list(_got(made, "_datasets")))
        merging = self._merging(made, name)
        if merging is not None:
            inputs = tuple(map(self.chain, _got(made, "_parents")))
            return Pipeline(source=merging[0](inputs=inputs, **merging[1]))
        before = self.chain(_parent(made))
        return Pipeline(source=before.source, stages=(*before.stages, self._stage(made, name)))

    def _read(self, source: Any) -> Pipeline:
        return Pipeline(source=reader_of(source, self.known))

    def _stage(self, made: Any, name: str) -> ast.GrainStage:
        short = re.sub("(Iter|Map)?Dataset$", "", name)
        if short == "Slice":
            cut = _kept(made, "start stop step")
            # Grain keeps -1 for the stop of what runs backwards to the first element.
            return ast.Slice(**cut | ({"stop": None} if cut["stop"] < 0 else {}))
        if short == "_WithSeed":
            return ast.Seed(seed=_got(made, "_seed_rng_seed"))
        if short == "RandomMap":
            return ast.RandomMap(seed=0)  # it has one; which, no order depends on
        if short == "MultiprocessPrefetch":  # up to Grain 0.2.15
            options = _got(made, "_multiprocessing_options")
            return _workers(made, options.num_workers, is_piece=_got(made, "_sequential_slice"))
        found = _STAGES.get(name) or _STAGES.get(short)
        if found is None:
            raise _unknown(made)
        return found[0](**_kept(made, found[1]))

    def _merging(self, made: Any, name: str) -> tuple[type[ast.Merging], dict[str, Any]] | None:
        if name == "ConcatenateMapDataset":
            return ast.Concatenate, {}
        if name in ("ZipMapDataset", "ZipIterDataset"):
            return ast.Zip, {"strict": getattr(made, "_strict", True)}
        if name not in ("MixedMapDataset", "MixedIterDataset"):
            return None
        holder = _got(made, "_selection_map") if name == "MixedMapDataset" else made
        if name == "MixedMapDataset" and type(holder).__name__ != "SelectionWithProportionsMap":
            raise _unknown(holder, "a selection map of its own")
        parts = [*_got(holder, "_proportions")]
        if len({*parts}) == 1:
            return ast.Mix, {}
        # Grain scales weights so that the smallest is 100, and so these to themselves.
        if min(parts) != 100:
            raise _unknown(made, "weights that rounding changed")
        return ast.Mix, {"weights": tuple(map(float, parts))}

    def _interleaved(self, made: Any, datasets: list[Any]) -> Pipeline:
        """Return the chain of datasets in turn, or of the workers that `mp_prefetch` makes."""
        count = len(datasets)
        workers = [one for one in datasets if type(one).__name__ == "ProcessPrefetchIterDataset"]
        contexts = [_parent(one) for one in workers] if workers else datasets
        if {type(one).__name__ for one in contexts} == {"_MpContextIterDataset"}:
            of = _parent(contexts[0])
            if workers:
                is_lazy = type(of).__name__ == "_LazyWorkerSliceIterDataset"
                stage = _workers(made, count, is_piece=is_lazy and _got(of, "_sequential_slice"))
            elif count == 1:
                stage = ast.MultithreadPrefetch(num_workers=1)
            else:
                raise _unknown(made, "threads that are dealt elements")
            before = self.chain(of)
            return Pipeline(source=before.source, stages=(*before.stages, stage))
        if workers:
            raise _unknown(made)
        cycle = _got(made, "_cycle_length")
        inputs = tuple(map(self.chain, datasets))
        return Pipeline(source=ast.InterleaveIterDataset(inputs=inputs, cycle_length=cycle))

    def loader(self, made: Any) -> Pipeline:
        """Return the chain of a DataLoader."""
        sampler, source = _got(made, "_sampler"), _got(made, "_data_source")
        name = type(sampler).__name__
        if name not in ("IndexSampler", "SequentialSampler"):
            raise _unknown(sampler, "a sampler of its own")
        options = _got(made, "_shard_options")
        own = _got(sampler, "_shard_options")
        shard = (options.shard_index, options.shard_count, options.drop_remainder)
        if shard != (own.shard_index, own.shard_count, own.drop_remainder):
            raise _unknown(made, "other shard options than its sampler")
        if _got(sampler, "_num_records") != len(source):
            raise _unknown(sampler, "another number of records than its source")
        given = dict(zip(("shard_index", "shard_count", "drop_remainder"), shard, strict=True))
        first: ast.GrainStage = ast.SequentialSampler(**given)
        if name == "IndexSampler":
            first = ast.IndexSampler(**given, **_kept(sampler, "shuffle num_epochs seed"))
        operations = (self._operation(one) for one in _got(made, "_operations"))
        last = ast.DataLoader(worker_count=made.multiprocessing_options.num_workers)
        return Pipeline(source=self._read(source).source, stages=(first, *operations, last))

    def _operation(self, made: Any) -> ast.GrainStage:
        bases = {base.__name__.removesuffix("Transform") for base in type(made).__mro__}
        if "Batch" in bases:
            return ast.Batch(batch_size=made.batch_size, drop_remainder=made.drop_remainder)
        if bases & {"Map", "MapWithIndex", "RandomMap", "TfRandomMap"}:
            return ast.Map()
        if "Filter" in bases:
            return ast.Filter()
        raise _unknown(made)


class _NeedsElementsError(Exception):
    """A stage decides by what is in an element."""


def _over_indices(made: Any, indices: Mapping[int, range]) -> Any:
    """Return a dataset, or a DataLoader, with indices in the place of sources, without maps."""
    name = type(made).__name__
    if name.startswith(("Filter", "FlatMap")):
        raise _NeedsElementsError
    if name.startswith(("MapMap", "MapIter", "MapWithIndex", "RandomMap")):
        return _over_indices(_parent(made), indices)
    changed = copy(made)
    if name == "RangeMapDataset":
        return library("grain", LOADERS["grain"]).MapDataset.source(indices[id(made)])
    if name == "DataLoader":
        bases = [{base.__name__ for base in type(one).__mro__} for one in made._operations]
        if any("Filter" in kinds for kinds in bases):
            raise _NeedsElementsError
        operations = zip(made._operations, bases, strict=True)
        return type(made)(
            data_source=indices[id(made._data_source)],
            sampler=made._sampler,
            operations=[one for one, kinds in operations if "Batch" in kinds],
            worker_count=made.multiprocessing_options.num_workers,
        )
    for attribute in ("_parents", "_datasets"):
        if attribute in vars(made):
            inner = tuple(_over_indices(one, indices) for one in getattr(made, attribute))
            setattr(changed, attribute, inner)
    if "_source" in vars(made):
        source = made._source
        changed._source = (
            _over_indices(source, indices) if _is_grains(source) else indices[id(source)]
        )
    if "_batch_fn" in vars(made):
        changed._batch_fn = list
    return changed


def _workers(made: Any, count: int, *, is_piece: bool) -> ast.MpPrefetch:
    if is_piece:  # its slices are cut below lengths that are known already
        raise _unknown(made, "sequential_slice=True")
    return ast.MpPrefetch(num_workers=count)


def _parent(made: Any) -> Any:
    parents = _got(made, "_parents")
    if len(parents) != 1:
        raise _unknown(made)
    return parents[0]


def _got(made: Any, attribute: str) -> Any:
    """Return what an object of Grain holds under a name that is Grain's own affair."""
    try:
        return getattr(made, attribute)
    except AttributeError:
        raise _unknown(made, f"no {attribute}") from None


def _kept(made: Any, names: str) -> dict[str, Any]:
    """Return the arguments that an object of Grain keeps."""
    return {name: _got(made, f"_{name}") for name in names.split()}


def _unknown(made: Any, why: str = "") -> UsageError:
    kind = type(made)
    said = f" ({why})" if why else ""
    version = getattr(sys.modules.get("grain"), "__version__", "")
    return UsageError(
        f"{kind.__module__}.{kind.__qualname__}{said}: its order is not known here, of Grain "
        f"{version}; what is before and behind it can be read"
    )


def _numbered(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}_{number}" for number in count(2))


def _close(iterator: Any) -> None:
    """End the worker processes: a DataLoader's iterator keeps them in the one that it wraps."""
    for owner in (iterator, getattr(iterator, "_iterator", None)):
        close = getattr(owner, "close", None)
        if close is not None:
            close()
