"""MosaicML's Streaming, litdata and WebDataset: as code, run over indices, and read back.

What they read are shards of given lengths, which are made up for a run: nothing in them is read.
"""

from __future__ import annotations

import json
import os
import random
import re
import sys
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, fields, replace
from glob import glob
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.code.python_text import call, comment, keywords, literal
from shardctl.errors import UsageError
from shardctl.live.library import LoaderObject, OfDataLoader, element_of, imports_apart, refused
from shardctl.loaders import litdata, streaming, webdataset
from shardctl.loaders.loader import LoaderCall, Stop, library
from shardctl.loaders.loader_sequence import LoaderConfig
from shardctl.order.loader_order import LoaderOrder
from shardctl.settings.read_settings import ReadSettings
from shardctl.stages.part import Part, said_of
from shardctl.stages.pipelines import parts_of
from shardctl.stages.stages import Mixture, Pipeline, Read
from shardctl.verbs.quality import compare_loaders as ways

_SPEC = json.dumps([1, {"type": None, "context": None, "children_spec": []}])
_NONE = dict.fromkeys(("zip_data", "compression", "size_limit"))
_MDS: dict[str, Any] = {"format": "mds", "version": 2, "hashes": [], **_NONE}
_MDS |= {"column_names": ["i"], "column_sizes": [8], "column_encodings": ["int"]}
_CHUNKS: dict[str, Any] = {"chunk_size": None, "chunk_bytes": 1, "data_format": ["int"]}
_CHUNKS |= {"compression": None, "data_spec": _SPEC, "encryption": None}
_CHUNKS["item_loader"] = "PyTreeLoader"
_BY_STATE = {"access": "in a row", "continued": "exactly", "by": "state_dict"}


class _OfShards(OfDataLoader):
    """A loader that reads shards of given lengths.

    rule: the module that says its order, and what its settings stand for.
    """

    source = "dataset"
    rule: ModuleType

    @abstractmethod
    def prepare(self, config: LoaderConfig, shards: Any, folders: list[str]) -> Any:
        """Return names for `made` that make what yields indices: of `folders` each has an input."""

    def batches(self, config: LoaderConfig) -> Iterator[Int64s]:
        """Yield what one process yields, batch by batch."""
        reads = [one for one in parts_of(self.rule.chain_of(config)) if isinstance(one, Read)]
        shards = [config.whole_shards(read).shards for read in reads]
        with TemporaryDirectory() as folder:
            folders = [f"{folder}/{number}" for number in range(len(shards))]
            for path in folders:
                Path(path).mkdir()
            names = {"folders": folders, **self.prepare(config, shards, folders)}
            try:
                self.run(self.made(config), names)
            except (ValueError, RuntimeError) as error:
                raise refused(self.loader.title, error) from error
            if not self.iterates_before(config):
                names["loader"].current_epoch = config.first_epoch
            for epoch in self.epochs(config, names):
                for batch in epoch:
                    found = batch["index"] if isinstance(batch, Mapping) else batch
                    yield np.atleast_1d(np.asarray(found, np.int64))

    def calls(self, config: LoaderConfig, stop: Stop) -> tuple[LoaderCall, ...]:
        """Return how many iterations come before, which the object counts, and what is skipped."""
        epoch = config.first_epoch + stop.epoch
        before = LoaderCall(call="iterations", arguments={"count": epoch})
        return (*[before] * (epoch > 0), *super().calls(config, stop))

    def imports(self, config: LoaderConfig) -> Iterable[str]:
        """Yield the imports of the classes that `made` calls."""
        called = re.findall(r"\b(?:Combined)?Stream\w*(?=\()", "\n".join(self.made(config)))
        used = ", ".join(sorted(set(called)))
        return (f"from {self.loader.packages[0]} import {used}",)

    def code(self, spec: str, order: LoaderOrder) -> Iterator[Iterable[str]]:
        """Yield the parts of code that makes the loader and goes through its epochs."""
        _, data, _, *parts = super().code(spec, order)  # torchrun says which rank it is
        yield from (imports_apart(self.imports(order.config))[0], data, *parts)

    def code_of_rest(self, spec: str, order: LoaderOrder, stop: Stop) -> Iterator[Iterable[str]]:
        """Yield the parts of code that reads all again, and skips what came before."""
        config, element = order.config, element_of(order.config)
        *parts, _ = self.code(spec, order)
        yield from parts
        first = config.first_epoch + stop.epoch
        step = stop.in_epoch if stop.steps_in_epoch is None else stop.steps_in_epoch
        left = [f"Of the first {element}, {stop.in_batch} came before."] * bool(stop.in_batch)
        said = " ".join(["What came before is read again, and skipped.", *left])
        yield (
            *comment(said),
            f"for epoch in range({config.first_epoch + config.epochs}):",
            f"    for step, {element} in enumerate(loader):",
            f"        if (epoch, step) >= ({first}, {step}):",
            "            ...",
        )

    def data(self, spec: str, order: LoaderOrder) -> Iterator[str]:
        """Yield the folders that have an index.json."""
        yield "# The folder with index.json, of each reader."
        yield f"folders = [{', '.join(_folders(order))}]"


def _folders(order: LoaderOrder) -> list[str]:
    sources: Iterable[Any] = [*order.origins.values()] or [order]
    return [literal(str(one.dataset.data_dir or "data")) for one in sources]


def _environment(config: LoaderConfig) -> None:
    """Set what torchrun sets."""
    rank, world = str(config.host), str(config.num_hosts)
    os.environ |= {"RANK": rank, "GLOBAL_RANK": rank, "WORLD_SIZE": world}


def _said(part: Part, *without: str) -> dict[str, str]:
    values = said_of(part).items()
    return {n: repr(value) for n, value in values if n not in ("inputs", *without)}


class Streaming(_OfShards):
    """`StreamingDataset` and its `StreamingDataLoader`, on a rank of a world that need not be."""

    rule = streaming

    def prepare(self, config: LoaderConfig, shards: Any, folders: list[str]) -> Any:
        """Return a StreamingDataset that yields indices, as on the rank that is asked for."""
        of = library("streaming", self.loader)
        world = library("streaming.base.world", self.loader).World
        work = streaming.Work(config)
        codes = [index for read in shards for shard in read for index in shard]
        here = world(work.nodes, work.ranks, 1, work.node * work.ranks + work.rank)

        class Indices(of.StreamingDataset):  # type: ignore[misc, name-defined]
            def __init__(self, replication: int | None = None, **given: Any) -> None:
                super().__init__(**given)
                self._parallel_rank_world = here
                self.next_epoch = config.first_epoch

            def __getitem__(self, index: int) -> int:
                return int(codes[index])

        for read, folder in zip(shards, folders, strict=True):
            index = []
            for number, shard in enumerate(read):
                name = f"shard.{number:05}.mds"
                raw = {"basename": name, "bytes": 1, "hashes": {}}
                Path(folder, name).write_bytes(b"-")
                index.append({**_MDS, "samples": len(shard), "raw_data": raw})
            text = json.dumps({"version": 2, "shards": index})
            Path(folder, "index.json").write_text(text, encoding="utf-8")
        kept = {name: getattr(of, name) for name in ("Stream", "StreamingDataLoader")}
        return {**kept, "StreamingDataset": Indices}

    def made(self, config: LoaderConfig) -> Iterator[str]:
        """Yield the lines that make the dataset and its loader."""
        chain, batch = streaming.chain_of(config), literal(streaming.Work(config).batch)
        dataset, *states = chain.stages
        if config.shares:
            yield from comment("torchrun sets RANK, WORLD_SIZE and LOCAL_WORLD_SIZE.")
        given = {"local": "folders[0]"}
        if isinstance(chain.source, streaming.Streams):
            streams = []
            for number, one in enumerate(chain.source.inputs):
                weight = keywords(_said(one.stages[0])) if one.stages else []
                streams.append(f"Stream({', '.join([f'local=folders[{number}]', *weight])})")
            given = {"streams": f"[{', '.join(streams)}]"}
        given |= _said(dataset, "local_world_size") | {"batch_size": batch}
        yield from call("dataset = StreamingDataset", keywords(given))
        for state in states:
            yield "state = {"
            yield from (f"    {literal(one)}: {of!r}," for one, of in asdict(state).items())
            yield from ("}", "dataset.load_state_dict(state)")
        options = {"batch_size": literal(config.batch or int(batch)), **self.options(config)}
        yield from call("loader = StreamingDataLoader", ["dataset", *keywords(options)])

    def calls(self, config: LoaderConfig, stop: Stop) -> tuple[LoaderCall, ...]:
        """Return the state that the dataset continues from, on as many ranks or others."""
        work = streaming.Work(config)
        said = work.state if stop.epoch == 0 else None
        first = config.first_epoch if work.state is None else work.state.epoch
        done = stop.in_epoch * work.nodes * work.ranks
        arguments = {
            "epoch": first + stop.epoch,
            "sample_in_epoch": done + (0 if said is None else said.sample_in_epoch),
            "num_canonical_nodes": work.canonical,
            "shuffle_seed": work.seed,
            "initial_physical_nodes": work.initial or work.nodes,
        }
        return (LoaderCall(call="load_state_dict", arguments=arguments),)

    def code_of_rest(self, spec: str, order: LoaderOrder, stop: Stop) -> Iterator[Iterable[str]]:
        """Yield the parts of code that continues from a state."""
        (state,) = self.calls(order.config, stop)
        chain = streaming.continued(streaming.chain_of(order.config), state.arguments)
        kept: Any = {"stages": chain, "first_epoch": 0}
        config = replace(order.config, epochs=order.config.epochs - stop.epoch, **kept)
        yield self.imports(config)
        yield self.data(spec, order)
        yield self.made(config)
        yield self.loop(config)

    def advice(self, config: LoaderConfig, stop: Stop) -> Iterable[str]:
        """Yield how another number of ranks continues."""
        return (
            "other ranks continue too, with the same global batch: the stage load_state_dict(..) "
            "behind StreamingDataset, with --host I/N, shows what each of them yields",
        )

    def ways(self, settings: ReadSettings, file_format: str) -> Iterator[ways.Way]:
        """Yield its ways to shuffle that people take."""
        seed, batch = ways.seed_of(settings), settings.batch or ways.DEFAULT_BATCH
        for algo in ("py1e", "py1br", "py2s"):
            said = f"shuffle=True, shuffle_algo='{algo}', shuffle_seed={seed}, batch_size={batch}"
            own = {"stages": f"StreamingDataset({said})", **_BY_STATE}
            yield ways.way(settings, "streaming", f"Streaming: {algo}", **own)


class Litdata(_OfShards):
    """`StreamingDataset` or `CombinedStreamingDataset`, and its `StreamingDataLoader`."""

    rule = litdata

    def prepare(self, config: LoaderConfig, shards: Any, folders: list[str]) -> Any:
        """Return a StreamingDataset that yields indices."""
        os.environ["LITDATA_DISABLE_VERSION_CHECK"] = "1"
        of = library("litdata", self.loader)
        _environment(config)

        class Indices(of.StreamingDataset):  # type: ignore[misc, name-defined]
            def __getitem__(self, index: Any) -> int:
                known = self.cache._reader.config
                name = known._chunks[index.chunk_index]["filename"]
                start = known.intervals[index.chunk_index][0]
                return int(name.split("-")[2]) + int(index.index) - int(start)

        for read, folder in zip(shards, folders, strict=True):
            chunks: list[Any] = []
            for shard in read:
                # As many offsets as the library looks at when it maps the file.
                offsets = 4 * (len(shard) + 2) + 16 * np.arange(len(shard) + 1)
                head = np.append(len(shard), offsets).astype(np.uint32).tobytes()
                content = head + bytes(16 * len(shard))
                name = f"chunk-0-{shard.start}-{len(chunks)}.bin"
                Path(folder, name).write_bytes(content)
                sizes = {"chunk_bytes": len(content), "chunk_size": len(shard)}
                chunks.append({**sizes, "dim": None, "filename": name})
            text = json.dumps({"chunks": chunks, "config": _CHUNKS, "updated_at": "0"})
            Path(folder, "index.json").write_text(text, encoding="utf-8")
        return {**vars(of), "StreamingDataset": Indices}

    def made(self, config: LoaderConfig) -> Iterator[str]:
        """Yield the lines that make the dataset and its loader."""
        inputs, mixture = litdata.inputs_of(litdata.chain_of(config))
        if config.shares:
            yield from comment("torchrun sets WORLD_SIZE; GLOBAL_RANK is its RANK.")
        names = ["dataset"] if mixture is None else [f"dataset_{one}" for one in range(len(inputs))]
        for number, (name, one) in enumerate(zip(names, inputs, strict=True)):
            made = [f"folders[{number}]", *keywords(_said(one.stages[0]))]
            yield from call(f"{name} = StreamingDataset", made)
        if mixture is not None:
            of = [f"[{', '.join(names)}]", *keywords(_said(mixture))]
            yield from call("dataset = CombinedStreamingDataset", of)
        options = {"batch_size": literal(config.batch or 1), **self.options(config)}
        yield from call("loader = StreamingDataLoader", ["dataset", *keywords(options)])

    def ways(self, settings: ReadSettings, file_format: str) -> Iterator[ways.Way]:
        """Yield its shuffle of chunks."""
        own = {"shuffle_seed": ways.seed_of(settings), **_BY_STATE}
        yield ways.way(settings, "litdata", "litdata: StreamingDataset", **own)


_WITHOUT_CALL = (webdataset.SplitByNode, webdataset.SplitByWorker, webdataset.SingleNodeOnly)
_OF_URLS = (webdataset.WebDataset, webdataset.SimpleShardList, webdataset.ResampledShards)


class WebDataset(_OfShards):
    """`WebDataset` or a `DataPipeline`, and a `WebLoader`."""

    rule = webdataset

    def prepare(self, config: LoaderConfig, shards: Any, folders: list[str]) -> Any:
        """Return a library that opens nothing: shards are texts of the samples that they have."""
        wds = library("webdataset", self.loader)
        compat = library("webdataset.compat", self.loader)
        compat.cache.StreamingOpen = lambda **_: iter
        compat.tar_file_expander = _samples
        compat.group_by_keys = lambda shards, **_: shards
        wds.tarfile_to_samples = lambda: _samples
        _environment(config)
        random.seed(config.global_seed)
        urls = [[f"{shard.start}:{shard.stop}" for shard in read] for read in shards]
        return {"wds": wds, "random": random, "urls": urls}

    def iterates_before(self, config: LoaderConfig) -> bool:
        """Whether epochs before are iterated: what draws goes on where it stopped."""
        return True

    def imports(self, config: LoaderConfig) -> Iterator[str]:
        """Yield the imports."""
        yield from ("import glob", "import webdataset as wds")
        yield "import random" if "random." in "\n".join(self.made(config)) else ""

    def data(self, spec: str, order: LoaderOrder) -> Iterator[str]:
        """Yield the names of the shards of each reader."""
        yield from ("# The tar files of each reader.", "urls = []")
        for folder in _folders(order):
            yield f'urls.append(sorted(glob.glob({folder} + "/*.tar")))'

    def made(self, config: LoaderConfig) -> Iterator[str]:
        """Yield the lines that make the dataset and its loader."""
        inner, loader, outer = webdataset.parted(webdataset.chain_of(config), config)
        if config.shares:
            yield from comment("torchrun sets RANK and WORLD_SIZE.")
        yield from _made_of("dataset", inner, [0])
        options = {"batch_size": literal(loader.batch_size), **self.options(config)}
        yield from call("loader = wds.WebLoader", ["dataset", *keywords(options)])
        yield from _composed("loader", outer, is_fluid=True)
        if config.global_seed is not None:
            yield f"random.seed({config.global_seed})"

    def ways(self, settings: ReadSettings, file_format: str) -> Iterator[ways.Way]:
        """Yield its deterministic form, of shards and of examples."""
        buffer = ways.OTHER_BUFFER if settings.buffer is None else settings.buffer
        shards = f"shardshuffle=100, detshuffle=True, seed={ways.seed_of(settings)}"
        own = {
            "stages": f"WebDataset({shards}, nodesplitter='split_by_node') | "
            f"detshuffle({buffer}, seed={ways.buffer_seed_of(settings)})",
            "access": "in a row",
        }
        yield ways.way(settings, "webdataset", f"WebDataset: detshuffle({buffer:,})", **own)


def _samples(shards: Iterable[Any], **_: Any) -> Iterator[dict[str, int]]:
    for shard in shards:
        yield from ({"index": index} for index in range(*map(int, shard["url"].split(":"))))


def _made_of(name: str, pipeline: Pipeline, num_read: list[int]) -> Iterator[str]:
    """Yield the lines that make a dataset; `num_read` counts the readers that there were."""
    source, stages = pipeline.source, pipeline.stages
    first: Part = (*stages, webdataset.SimpleShardList())[0]
    if isinstance(source, Mixture):
        inputs = [f"{name}_{number}" for number in range(len(source.inputs))]
        for one, inner in zip(inputs, source.inputs, strict=True):
            yield from _made_of(one, inner, num_read)
        mixed = ", ".join([f"[{', '.join(inputs)}]", *keywords(_said(source))])
        yield f"{name} = wds.DataPipeline(wds.{source.name}({mixed}))"
    else:
        if not isinstance(first, _OF_URLS):
            first, stages = webdataset.SimpleShardList(), (first, *stages)
        said = [f"urls[{num_read[0]}]", *keywords(_arguments(first))]
        num_read[0] += 1
        head = f"wds.{first.name}({', '.join(said)})"
        is_whole = isinstance(first, webdataset.WebDataset)
        made = f"wds.{first.name}" if is_whole else "wds.DataPipeline"
        yield from call(f"{name} = {made}", said if is_whole else [head])
        stages = stages[1:]
    yield from _composed(name, stages, is_fluid=isinstance(first, webdataset.WebDataset))


def _composed(name: str, stages: Iterable[Part], *, is_fluid: bool) -> Iterator[str]:
    for stage in stages:
        if isinstance(stage, webdataset.Map):
            yield f"# {stage.name}(..) of the script stands here."
        elif is_fluid or isinstance(stage, webdataset.Repeat | webdataset.WithEpoch):
            yield f"{name} = {name}.{_written(stage)}"
        else:
            yield f"{name} = {name}.compose(wds.{_written(stage)})"


def _arguments(stage: Part) -> dict[str, str]:
    said = _said(stage)
    if isinstance(stage, webdataset.WebDataset):
        said.setdefault("shardshuffle", "None")
    for splitter in ("nodesplitter", "workersplitter"):
        if said.get(splitter, "None") != "None":
            said[splitter] = f"wds.{getattr(stage, splitter)}"
    return said | ({"rng": f"random.Random({said['rng']})"} if "rng" in said else {})


def _written(stage: Part) -> str:
    if isinstance(stage, _WITHOUT_CALL):
        return stage.name
    given = _arguments(stage)
    place = []
    if isinstance(stage, webdataset.Slice):
        bounds = (stage.start, stage.stop, stage.step)
        place, given = [repr(one) for one in bounds[: 1 if stage.stop is None else 3]], {}
    elif isinstance(stage, webdataset.Shuffle | webdataset.DetShuffle):
        # The size of a buffer has another name in each of its calls.
        place = [repr(stage.bufsize)]
        given.pop("bufsize", None)
    return f"{stage.name}({', '.join([*place, *keywords(given)])})"


# Objects of the libraries, read back.

_ONE_FOR_EACH = "the functions of map return a sample for each, and never None"
_ITS_OWN_SEED = (
    "the seed of a shuffle of shards was given, as WebDataset(seed=N); without it each run draws "
    "another, and an object does not tell"
)


def read_streaming(given: Any) -> LoaderObject | None:
    """Return what a StreamingDataset was made with, or a DataLoader over one."""
    of, dataset, settings = _apart(given, "streaming")
    if of is None or not isinstance(dataset, of.StreamingDataset):
        return None
    world = _kept(dataset, "_unique_rank_world", of)
    known = {one.name for one in fields(streaming.StreamingDataset)} - {"local_world_size"}
    said = {name: _kept(dataset, name, of) for name in known - {"epoch_size"}}
    weights = [
        {name: _kept(stream, f"_{name}", of) for name in ("proportion", "repeat", "choose")}
        for stream in dataset.streams
    ]
    is_plain = not any(one is not None for weight in weights for one in weight.values())
    if weights[0]["proportion"] is not None or (
        is_plain and dataset.epoch_size != dataset.num_samples
    ):
        said["epoch_size"] = dataset.epoch_size
    if world.num_ranks > 1:
        settings["host"] = f"{world.rank}/{world.num_ranks}"
        said["local_world_size"] = world.ranks_per_node
    stages: list[Any] = [streaming.StreamingDataset(**said)]
    if hasattr(dataset, "_resume_shm"):
        text = bytes(dataset._resume_shm.buf).partition(b"\0")[0]
        stages.append(streaming.LoadStateDict(**json.loads(text)))
    elif dataset.next_epoch:
        settings["pass_index"] = dataset.next_epoch
    reads = [_of_folder(os.path.join(one.local, one.split)) for one in dataset.streams]
    source: Any = reads[0]
    if len(reads) > 1 or not is_plain:
        pairs = zip(reads, weights, strict=True)
        inputs = [Pipeline(source=read, stages=(streaming.Stream(**of),)) for read, of in pairs]
        source = streaming.Streams(inputs=tuple(inputs))
    return _object("streaming", source, stages, settings)


def read_litdata(given: Any) -> LoaderObject | None:
    """Return what a StreamingDataset or a mixture of them was made with, or its loader."""
    of, dataset, settings = _apart(given, "litdata")
    if of is None or not isinstance(dataset, of.StreamingDataset | of.CombinedStreamingDataset):
        return None
    settings.pop("drop_remainder", None)  # it is that of the dataset
    if getattr(given, "current_epoch", 0) and given is not dataset:
        settings["pass_index"] = given.current_epoch
    several = isinstance(dataset, of.CombinedStreamingDataset)
    inputs = []
    for one in _kept(dataset, "_datasets", of) if several else (dataset,):
        known = ("shuffle", "drop_last", "seed", "item_shuffle_window")
        said: Any = {name: getattr(one, name, None) for name in known}
        folder = one.input_dir.url or one.input_dir.path
        read = _of_folder(folder)
        chunks = json.loads(Path(one.input_dir.path, "index.json").read_text())["chunks"]
        if one.subsampled_files != [chunk["filename"] for chunk in chunks]:
            raise UsageError("subsample: a StreamingDataset of litdata does not keep it; name it")
        if one.distributed_env.world_size > 1:
            env = one.distributed_env
            settings["host"] = f"{env.global_rank}/{env.world_size}"
        inputs.append(Pipeline(source=read, stages=(litdata.StreamingDataset(**said),)))
    if not several:
        return _object("litdata", inputs[0].source, inputs[0].stages, settings)
    every = _kept(dataset, "_iterate_over_all", of)
    weights = None if every else tuple(_kept(dataset, "_weights", of))
    source = litdata.CombinedStreamingDataset(
        inputs=tuple(inputs),
        seed=_kept(dataset, "_seed", of),
        weights=weights,
        iterate_over_all=every,
    )
    return _object("litdata", source, (), settings)


# The functions of WebDataset's filters, whose arguments are those of the stages.
_FILTERS = {
    "_shuffle": webdataset.Shuffle,
    "_batched": webdataset.Batched,
    "_unbatched": webdataset.Unbatched,
    "islice": webdataset.Slice,
    "_map": webdataset.Map,
    "_decode": webdataset.Decode,
    "_to_tuple": webdataset.ToTuple,
    "tar_file_expander": webdataset.TarfileToSamples,
    "split_by_node": webdataset.SplitByNode,
    "split_by_worker": webdataset.SplitByWorker,
    "single_node_only": webdataset.SingleNodeOnly,
}
_KEEPS = ("StreamingOpen", "FileCache", "group_by_keys", "check_empty")


def read_webdataset(given: Any) -> LoaderObject | None:
    """Return the stages of a DataPipeline, as WebDataset and WebLoader are."""
    wds = sys.modules.get("webdataset")
    if wds is None or not isinstance(given, wds.DataPipeline):
        return None
    first, *steps = given.pipeline
    settings: dict[str, Any] = {}
    if hasattr(first, "num_workers"):
        inner = read_webdataset(first.dataset)
        if inner is None:
            raise UsageError(f"a WebLoader over {type(first.dataset).__name__} is not read")
        settings = {"workers": first.num_workers or None, "drop_remainder": first.drop_last}
        loader = webdataset.WebLoader(batch_size=first.batch_size)
        source, stages = inner.stages.source, [*inner.stages.stages, loader]
    elif isinstance(first, wds.shardlists.SimpleShardList | wds.shardlists.ResampledShards):
        kind = type(first).__name__
        kept = {"seed": first.seed}
        if kind == "ResampledShards":
            many = None if first.nshards == sys.maxsize else first.nshards
            kept |= {"nshards": many, "deterministic": first.deterministic}
        source, stages = _of_files(first.urls), [getattr(webdataset, kind)(**kept)]
    else:
        raise UsageError(f"a DataPipeline of {type(first).__name__} is not read")
    stages += [stage for step in steps for stage in _stage_of(step)]
    often, most = given.repetitions, given.nsamples
    if often == sys.maxsize and most > 0:
        stages.append(webdataset.WithEpoch(nsamples=most))
    elif often != 1:
        often = -1 if often == sys.maxsize else often
        stages.append(webdataset.Repeat(nepochs=often, nbatches=most))
    return _object("webdataset", source, stages, settings)


def _stage_of(step: Any) -> list[Any]:
    made = getattr(step, "f", step)
    name = getattr(made, "__name__", type(made).__name__)
    if name == "detshuffle":
        return [webdataset.DetShuffle(**{n: getattr(step, n) for n in vars(step)})]
    if name in _KEEPS:
        return []
    if name not in _FILTERS:
        raise UsageError(f"{name} is no stage of WebDataset that is read")
    kind = _FILTERS[name]
    known = [one.name for one in fields(kind)]
    by_place = dict(zip(known, getattr(step, "args", ()), strict=False))
    said = {n: value for n, value in (by_place | getattr(step, "kw", {})).items() if n in known}
    if said.get("bufsize") is False:  # of shardshuffle=False: no shuffle at all
        return []
    if said.get("rng") is not None:
        raise UsageError("shuffle: the seed of rng=random.Random(N) cannot be read; use seed=N")
    return [kind(**said)]


def _apart(given: Any, package: str) -> tuple[Any, Any, dict[str, Any]]:
    """Return the library, the dataset, and the settings of a DataLoader over it."""
    dataset = getattr(given, "dataset", given)
    settings: dict[str, Any] = {}
    if dataset is not given:
        settings = {"batch": given.batch_size, "workers": given.num_workers or None}
        settings["drop_remainder"] = given.drop_last
    return sys.modules.get(package), dataset, settings


def _kept(given: Any, name: str, library: Any) -> Any:
    try:
        return getattr(given, name)
    except AttributeError:
        version = getattr(library, "__version__", "")
        raise UsageError(f"{type(given).__name__} has no {name} here ({version})") from None


def _of_folder(folder: str) -> Read:
    from shardctl.metadata.reference import read_dataset

    (split, *others) = read_dataset([folder]).splits
    if others:
        raise UsageError(f"{folder} has several splits; a reader names one")
    return Read(spec=split.name, data=folder)


def _of_files(urls: list[str]) -> Read:
    folder = os.path.dirname(urls[0])
    pattern = f"{folder}/*{os.path.splitext(urls[0])[1]}"
    if urls != sorted(glob(pattern)):
        raise UsageError("the urls are not all tar files of a folder by name; name the dataset")
    return _of_folder(pattern)


def _object(loader: str, source: Any, stages: Any, settings: dict[str, Any]) -> LoaderObject:
    said = {name: value for name, value in settings.items() if value}
    pipeline = Pipeline(source=source, stages=tuple(stages))
    of = {type(part) for part in parts_of(pipeline)}
    # Whether shards are shuffled: a buffer of samples stands behind what reads them.
    before = takewhile(lambda one: not isinstance(one, webdataset.TarfileToSamples), stages)
    seeded = loader == "webdataset" and any(isinstance(one, webdataset.Shuffle) for one in before)
    assumed = [_ONE_FOR_EACH] * (webdataset.Map in of) + [_ITS_OWN_SEED] * seeded
    return LoaderObject(loader=loader, stages=pipeline, settings=said, assumptions=tuple(assumed))
