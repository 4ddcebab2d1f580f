"""Hugging Face Datasets: as code, run over indices, and where it continues."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from importlib import metadata
from itertools import count, islice
from typing import Any

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.base.text import counted
from shardctl.code.python_text import call, comment, keywords, literal
from shardctl.errors import UsageError
from shardctl.live.library import (
    DATA_LOADER,
    LoaderObject,
    OfDataLoader,
    element_of,
    leaves,
    reader_of,
)
from shardctl.loaders import hugging_face_stages as stages
from shardctl.loaders.hugging_face import SLICE, chain_of, stream_of
from shardctl.loaders.hugging_face_eras import era_of, is_read, of_tables
from shardctl.loaders.loader import LOADERS, Stop, library
from shardctl.loaders.loader_sequence import LoaderConfig, LoaderSource, even_share
from shardctl.order.loader_order import LoaderOrder
from shardctl.settings.read_settings import ReadSettings
from shardctl.stages.part import Stage, said_of
from shardctl.stages.pipelines import parts_of, readers_of
from shardctl.stages.stages import Pipeline, Read
from shardctl.verbs.quality import compare_loaders as ways
from shardctl.verbs.verify.verify_files import file_path

_COLUMN = "index"
# Formats that `load_dataset` reads, by the same names.
_FORMATS = ("parquet", "arrow", "webdataset")


class HuggingFace(OfDataLoader):
    """`Dataset.shuffle` or `IterableDataset.shuffle`, `split_dataset_by_node`, and a DataLoader."""

    source = "dataset"

    def batches(self, config: LoaderConfig) -> Iterator[Int64s]:
        """Yield what one process yields of all epochs, batch by batch."""
        names = self.objects(config)
        for epoch in self.epochs(config, names):
            for examples in epoch:
                # A batch that the chain makes is a list.
                yield np.array([*leaves([example[_COLUMN] for example in examples])], np.int64)

    def objects(self, config: LoaderConfig) -> dict[str, Any]:
        """Return the objects that the lines of code make, by their names."""
        # The same lines as in the code that is shown, with an index in place of each example.
        config, chain = chain_of(config)
        names: dict[str, Any] = {"rank": config.host, "world_size": config.num_hosts}
        names |= {"DataLoader": _BatchesOfLists, "function": lambda example: example}
        for read, name in _named(chain).items():
            names[name] = self._of_indices(config, config.sources[read])
        for number, stage in enumerate(_of_kind(chain, stages.Filter)):
            names[f"passes_{number + 1}"] = _passes(config, stage)
        self.run((line for line in self.made(config) if line != DATA_LOADER), names)
        return names

    def epoch_setter(self, config: LoaderConfig) -> str:
        """Return the stream; a Dataset has no set_epoch, since all its epochs have one order."""
        shuffles = _of_kind(_chain(config), stages.Shuffle)
        never = any(stage.set_epoch is False for stage in shuffles)
        return "dataset" if stream_of(config) is not None and not never else ""

    def data(self, spec: str, order: LoaderOrder) -> Iterator[str]:
        """Yield the lines that make the dataset whose examples the indices of an order count.

        Subsplits of TFDS are no slices of `datasets`, so a part is selected by its indices.
        """
        config = order.config
        yield "import datasets"
        for read, name in _named(_chain(config)).items():
            if name == "dataset":
                yield from loaded(spec, order)
            else:
                origin = order.origins[read]
                yield from _load(config, name, origin.dataset.name, origin.spec)
        if config.stages is None and config.streams and not of_tables(config) and _files(order):
            yield "# The call of the script that makes rows of tables, with its own arguments."
            yield "dataset = dataset.map(...)"

    def made(self, config: LoaderConfig) -> Iterator[str]:
        """Yield the calls of the chain, those of settings too, and the DataLoader."""
        chain = _chain(config)
        if any(_of_kind(chain, stages.SplitByNode)):
            yield "from datasets.distributed import split_dataset_by_node"
        if combined := {part.name for part in _of_kind(chain, stages.Combined)}:
            yield f"from datasets import {', '.join(sorted(combined))}"
        yield DATA_LOADER
        ranks = [getattr(one, "rank", getattr(one, "index", 0)) for one in parts_of(chain)]
        if not config.shares and None in ranks:
            yield "rank, world_size = 0, 1  # of one process"
        yield from _lines(chain, "dataset", _named(chain), count(1))
        options = {"batch_size": literal(config.batch), **self.options(config)}
        yield from call("loader = DataLoader", ["dataset", *keywords(options)])

    def code_of_rest(self, spec: str, order: LoaderOrder, stop: Stop) -> Iterator[Iterable[str]]:
        """Yield the parts of code that reads what is left; a stream is read again and skipped."""
        if not order.config.streams and order.config.stages is None:
            yield from super().code_of_rest(spec, order, stop)
            return
        # The last part is the loop, which another one replaces.
        imports, *parts, _ = self.code(spec, order)
        yield ("import itertools", "", *imports)
        yield from parts
        yield _streamed_on(order.config, stop, self.epoch_setter(order.config))

    def advice(self, config: LoaderConfig, stop: Stop) -> Iterator[str]:
        """Yield what the state of a stream is worth."""
        if stream_of(config) is not None:
            yield (
                "load_state_dict of an IterableDataset loses what its shuffle buffer held, and may "
                f"repeat examples; skip reads {counted(stop.in_epoch, 'example')} again and loses "
                "none"
            )

    def ways(self, settings: ReadSettings, file_format: str) -> Iterator[ways.Way]:
        """Yield streams, of the newest versions before and after their order changed, and by index.

        A version that is named is the only one. Tables stand for a format that it has no reader of.
        """
        buffer = ways.OTHER_BUFFER if settings.buffer is None else settings.buffer
        seed, proven = ways.seed_of(settings), self.loader.proven
        # The newest 4.x and the newest of all: the order changed in between.
        usual = [next(v for v in reversed(proven) if v.startswith("4.")), proven[-1]]
        named = ways.settings_for(settings, "hf").loader_version
        for version in usual if named is None else [named]:
            own: dict[str, Any] = {"streaming": True, "shuffle_seed": seed, "buffer": buffer}
            if settings.arrow is None and not is_read(file_format):
                own["arrow"] = True
            # Versions that read one shard after the other do not take it.
            if era_of(version).interleave == "never":
                own["input_shards"] = None
            own |= {"access": "in a row", "continued": "loses examples", "by": "state_dict"}
            reader = f"HF {version}: shuffle({buffer:,})"
            yield ways.way(settings, "hf", reader, loader_version=version, held=buffer, **own)
        of_streams = dict.fromkeys(("input_shards", "arrow"))
        yield ways.way(settings, "hf", "HF: Dataset.shuffle", shuffle_seed=seed, **of_streams)

    def _of_indices(self, config: LoaderConfig, source: LoaderSource) -> Any:
        """Return the dataset that `datasets` makes of indices: tables, or rows of a generator."""
        datasets = library("datasets", self.loader)
        if not config.streams:
            return datasets.Dataset.from_dict({_COLUMN: source.indices})
        # A generator gets its shards in a list.
        read = {"shards": list(source.shards)}
        if not of_tables(config):
            return datasets.IterableDataset.from_generator(_rows, gen_kwargs=read)
        made = library("datasets.iterable_dataset", self.loader)
        features = datasets.Features({_COLUMN: datasets.Value("int64")})
        return datasets.IterableDataset(
            made.ArrowExamplesIterable(_tables, read), info=datasets.DatasetInfo(features=features)
        )


# A chain as lines of code.


def _chain(config: LoaderConfig) -> Pipeline:
    return chain_of(config)[1]


def _of_kind(pipeline: Pipeline, kind: Any) -> Iterator[Any]:
    return (part for part in parts_of(pipeline) if isinstance(part, kind))


def _named(pipeline: Pipeline) -> dict[Read, str]:
    """Return what code calls each reader of a chain."""
    reads = list(dict.fromkeys(readers_of(pipeline)))
    several = isinstance(pipeline.source, stages.Combined)
    return {
        read: f"dataset_{place + 1}" if several else "dataset" for place, read in enumerate(reads)
    }


def _lines(
    pipeline: Pipeline, name: str, named: dict[Read, str], numbers: Iterator[int]
) -> Iterator[str]:
    """Yield the calls that make `name` of a pipeline, the inputs of what combines them first."""
    source = pipeline.source
    if isinstance(source, stages.Combined):
        inputs = [f"{name}_of_{place + 1}" for place in range(len(source.inputs))]
        for each, one in zip(inputs, source.inputs, strict=True):
            yield from _lines(one, each, named, numbers)
        said = said_of(source)
        del said["inputs"]
        given = {key: literal(value) for key, value in said.items()}
        yield from call(f"{name} = {source.name}", [f"[{', '.join(inputs)}]", *keywords(given)])
    elif isinstance(source, Read) and named[source] != name:
        yield f"{name} = {named[source]}"
    for stage in pipeline.stages:
        given = {key: literal(value) for key, value in said_of(stage).items() if key != "set_epoch"}
        head, end, by_place = f"{name} = {name}.{stage.name}", "", list[str]()
        match stage:
            case stages.TrainTestSplit():
                end = f"[{given.pop('split', literal('train'))}]"
            case stages.SplitByNode():
                head = f"{name} = {stage.name}"
                by_place = [name, *(given.pop(key, key) for key in ("rank", "world_size"))]
            case stages.Shard():
                given = {"num_shards": "world_size", "index": "rank"} | given
            case stages.Select():
                by_place, given = [_selected(stage.indices, name)], {}
            case stages.Filter():
                by_place, given = [f"passes_{next(numbers)}"], {}
            case stages.Map():
                head, by_place = f"{name} = {name}.map", ["function"]
                yield f"# {stage.name}, by the script's own function."
            case stages.Columns() | stages.WithFormat() | stages.Reshard():
                yield f"# {stage.name} of the script changes no order."
                continue
        *lines, last = call(head, [*by_place, *keywords(given)])
        yield from (*lines, f"{last}{end}")


def _selected(indices: str | tuple[int, ...], name: str) -> str:
    """Return the places that `select` keeps, as code."""
    if not isinstance(indices, str):
        return str(list(indices))
    if text := SLICE.fullmatch(indices):
        start, stop, step = text.groups()
        return f"range({start or 0}, {stop or f'len({name})'}, {step or 1})"
    return f"[int(index) for index in open({literal(indices)})]"


def _passes(config: LoaderConfig, stage: Any) -> Any:
    """Return the function of a filter, by its file."""
    assert config.kept is not None
    kept = config.kept(stage)
    return lambda example: bool(kept(np.array([example[_COLUMN]]))[0])


class _BatchesOfLists:
    """A DataLoader of PyTorch; without workers the batches that it makes, for which none is needed.

    Examples that come one by one are not batched at all, unless worker processes read them.
    """

    def __init__(
        self, dataset: Any, batch_size: int | None, num_workers: int = 0, drop_last: bool = False
    ) -> None:
        self._dataset, self._size, self._drops = dataset, batch_size or 1, drop_last
        self._workers = num_workers

    def __iter__(self) -> Iterator[list[Any]]:
        if self._workers:
            made = library("torch.utils.data", LOADERS["torch"]).DataLoader
            how: dict[str, Any] = {"batch_size": self._size, "drop_last": self._drops}
            yield from made(self._dataset, num_workers=self._workers, collate_fn=list, **how)
            return
        examples = iter(self._dataset)
        # As PyTorch's DataLoader without workers: batches of `size`, the last one smaller or
        # dropped.
        while batch := list(islice(examples, self._size)):
            if len(batch) == self._size or not self._drops:
                yield batch


def _streamed_on(config: LoaderConfig, stop: Stop, setter: str) -> Iterator[str]:
    first = config.first_epoch + stop.epoch
    skip = stop.in_epoch if stop.steps_in_epoch is None else stop.steps_in_epoch
    if stop.in_batch:
        yield from comment(f"Of the first batch {stop.in_batch} examples were yielded before.")
    yield f"for epoch in range({first}, {config.first_epoch + config.epochs}):"
    if setter:
        yield "    dataset.set_epoch(epoch)"
    yield "    # What came before is read again, since a buffer has no other way there."
    yield f"    skip = {skip} if epoch == {first} else 0"
    yield f"    for {element_of(config)} in itertools.islice(loader, skip, None):"
    yield "        ..."


def _rows(shards: list[range]) -> Iterator[dict[str, int]]:
    return ({_COLUMN: index} for shard in shards for index in shard)


_TABLE = 7  # rows of a table; a table ends with its shard


def _tables(shards: list[range]) -> Iterator[tuple[Any, Any]]:
    arrow = importlib.import_module("pyarrow")
    for shard in shards:
        for begin in range(0, len(shard), _TABLE):
            values = arrow.array(shard[begin : begin + _TABLE], arrow.int64())
            yield shard[begin], arrow.table({_COLUMN: values})


# What is loaded, as code: files of its own formats, else a dataset by name.


def _load(config: LoaderConfig, name: str, path: str, split: str, **given: str) -> Iterator[str]:
    named = {**given, "split": literal(split)}
    if config.streams:
        named["streaming"] = "True"
    yield from call(f"{name} = datasets.load_dataset", [literal(path), *keywords(named)])


def loaded(spec: str, order: LoaderOrder) -> Iterator[str]:
    config, file_format = order.config, order.dataset.file_format
    files = _files(order)
    if not files:
        yield "# The examples in the order of their files, which are the shards."
        if file_format not in _FORMATS:
            yield f"# datasets reads no {file_format} files: this stands for the same"
            yield "# examples in a format that it reads, or for a generator of them."
        yield from _load(config, "dataset", order.dataset.name, spec)
        return
    yield "# Each file is a shard."
    yield "files = ["
    yield from (f"    {literal(file)}," for file in files)
    yield "]"
    yield from _load(config, "dataset", file_format, "train", data_files="files")
    parts = [f"*range({start}, {stop})" for start, stop in _parts(order)]
    if parts:
        yield f"# The part that {literal(spec)} reads."
        yield from call("dataset = dataset.select", [f"[{', '.join(parts)}]"])


def _files(order: LoaderOrder) -> tuple[str, ...]:
    """Return the paths of files that `load_dataset` reads, none where one of them is not known."""
    dataset, reads = order.dataset, order.reads
    if dataset.file_format not in _FORMATS:
        return ()
    places = zip(reads.split.tolist(), reads.shard.tolist(), strict=True)
    # A file is known only by its full path; if one is missing, the dataset is named instead.
    found = [file_path(dataset, split, shard) for split, shard in places]
    return tuple(path for path in found if path is not None) if all(found) else ()


def _parts(order: LoaderOrder) -> list[tuple[int, int]]:
    """Return what is read of the files one after the other, nothing where that is all of it."""
    reads = order.reads
    if np.array_equal(reads.take, reads.examples_in_shard):
        return []
    # Positions in the concatenation of the files: start of each file plus what is skipped.
    starts = np.cumsum(reads.examples_in_shard) - reads.examples_in_shard + reads.skip
    stops = starts + reads.take
    # Runs that touch become one range.
    parted = np.flatnonzero(starts[1:] != stops[:-1])
    first, last = starts[[0, *(parted + 1)]], stops[[*parted, -1]]
    return list(zip(first.tolist(), last.tolist(), strict=True))


# An object, read back.

_SHARDS = (
    "the source has {} shards, and all of them are there: what shard or reshard left out of it "
    "cannot be seen"
)
_ROWS = "rows are counted from the first of the object's own table: what was left out is not seen"


def read_object(obj: Any) -> LoaderObject | None:
    """Return what a Dataset or an IterableDataset was made with, None of another object.

    Raises:
        UsageError: a part of it is not understood; it is named, with the version.
    """
    found = _OfObject()
    if _kind(obj) == "Dataset":
        made = found.rows(obj)
        return LoaderObject(loader="hf", stages=made, sources=found.known, assumptions=(_ROWS,))
    if _kind(obj) != "IterableDataset":
        return None
    if hasattr(obj, "_shuffling"):
        raise _unknown("a stream before 4.6.0")
    made, node, epoch = found.of(obj._ex_iterable), obj._distributed, int(obj._epoch)
    if node is not None:
        strategy: Any = getattr(node, "strategy", "auto")
        split = stages.SplitByNode(rank=node.rank, world_size=node.world_size, strategy=strategy)
        made = replace(made, stages=(*made.stages, split))
    settings, said = {"pass_index": epoch, **found.settings}, tuple(found.assumed)
    return LoaderObject(
        loader="hf", stages=made, settings=settings, sources=found.known, assumptions=said
    )


def _kind(obj: Any) -> str:
    """Return the name of a class of the library, "" of another."""
    return type(obj).__name__ if type(obj).__module__.partition(".")[0] == "datasets" else ""


@dataclass(kw_only=True)
class _OfObject:
    """Reads the iterables that a stream is made of, by the names of their classes.

    known: the readers. settings: what is to be said beside the stages. assumed: what cannot be
    seen. seeds: of the shuffles of a row, the last of them first.
    """

    known: dict[Read, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    assumed: list[str] = field(default_factory=list)
    seeds: list[int | None] = field(default_factory=list)

    def rows(self, dataset: Any) -> Pipeline:
        """Return a Dataset: the rows of its table, in the order of its indices."""
        table = type(dataset)(dataset._data, info=dataset._info)
        read, chosen = reader_of(table, self.known), dataset._indices
        if chosen is None:
            return Pipeline(source=read)
        places = tuple(chosen.column(0).to_pylist())
        return Pipeline(source=read, stages=(stages.Select(indices=places),))

    def of(self, node: Any, *, below: bool = False) -> Pipeline:
        """Return the chain of an iterable; `below` a shuffle, which has moved what it reads."""
        name = _kind(node).removesuffix("ExamplesIterable")
        if name in ("", "Arrow") and _kind(node):
            shards = node.kwargs.get("shards")
            if isinstance(shards, list) and {_kind(one) for one in shards} == {"Dataset"}:
                return self._shards_of_dataset(shards)
            self.assumed.append(_SHARDS.format(node.num_shards))
            self.settings.update(streaming=True, arrow=name == "Arrow")
            if Read() in self.known:
                raise _unknown("several sources of files or generators, whose names are not seen")
            self.known[Read()] = node
            return Pipeline()
        inputs = getattr(node, "ex_iterables", None)
        if inputs is not None and not below and name in _COMBINED:
            several = tuple(replace(self, seeds=[]).of(one) for one in inputs)
            if name == "VerticallyConcatenatedMultiSources":
                return Pipeline(source=stages.Concatenate(inputs=several))
            drawn = {"stopping_strategy": node.stopping_strategy}
            if name.startswith("Randomly"):
                drawn |= {"probabilities": node.probabilities, "seed": _seed(node.generator)}
            return Pipeline(source=stages.Interleave(inputs=several, **drawn))
        stage = self._stage(name, node)
        inner = node.ex_iterable
        if isinstance(stage, stages.Shuffle):
            self.seeds.append(stage.seed)
        elif isinstance(stage, stages.Skip | stages.Take):
            self.seeds.clear()  # a shuffle behind them has not moved what they read
        if isinstance(stage, stages.Shuffle) and _kind(inner).startswith("InterleavedShards"):
            inner = inner.ex_iterable
        made = self.of(inner, below=below or isinstance(stage, stages.Shuffle))
        return made if stage is None else replace(made, stages=(*made.stages, stage))

    def _stage(self, name: str, node: Any) -> Stage | None:
        """Return the call that an iterable stands for, None of one that changes no order."""
        match name:
            case "RebatchedArrow" | "Formatted" | "SelectColumnsIterable":
                return None
            case "BufferShuffled":
                turns = getattr(node.ex_iterable, "max_input_shards", 1)
                is_new = era_of(metadata.version("datasets")).interleave == "apart"
                given: dict[str, Any] = {"max_buffer_input_shards": turns} if is_new else {}
                return stages.Shuffle(
                    seed=_seed(node.generator), buffer_size=node.buffer_size, **given
                )
            case "Skip" | "Take":
                return (stages.Skip if name == "Skip" else stages.Take)(n=node.n)
            case "Repeat":
                return stages.Repeat(num_times=node.num_times)
            case "Filtered":
                return stages.Filter()
            case "Mapped" if getattr(node.function, "__name__", "").startswith("_batch_"):
                drops = node.drop_last_batch
                return stages.Batch(batch_size=node.batch_size, drop_last_batch=drops)
            case "Mapped":
                return stages.Map(batched=node.batched)
        raise _unknown(_kind(node) or type(node).__name__)

    def _shards_of_dataset(self, shards: list[Any]) -> Pipeline:
        """Return the stream of a Dataset, whose shards are runs of nearly one length."""
        count, total = len(shards), sum(map(len, shards))
        for seed in self.seeds:
            moved = zip(np.random.default_rng(seed).permutation(count), shards, strict=True)
            shards = [one for _, one in sorted(moved, key=lambda pair: int(pair[0]))]
        even = [len(even_share(total, at, count)) for at in range(count)]
        if [len(one) for one in shards] != even:
            raise _unknown("to_iterable_dataset, of which shard left out a part")
        made = library("datasets", LOADERS["hf"]).concatenate_datasets(shards)
        read = reader_of(made, self.known)
        return Pipeline(source=read, stages=(stages.ToIterable(num_shards=count),))


_COMBINED = tuple(
    f"{how}MultiSources" for how in ("VerticallyConcatenated", "Cycling", "RandomlyCycling")
)


def _unknown(what: str) -> UsageError:
    """Return the error of a part of an object that is not understood."""
    return UsageError(
        f"datasets {metadata.version('datasets')}: {what}: not read back; give --stages"
    )


def _seed(rng: Any) -> int:
    """Return the seed of a generator that has drawn nothing yet."""
    seed = rng.bit_generator.seed_seq.entropy
    fresh = isinstance(seed, int) and seed < 1 << 63
    if not fresh or np.random.default_rng(seed).bit_generator.state != rng.bit_generator.state:
        raise _unknown("a generator without a seed, or one that has drawn numbers")
    return int(seed)
