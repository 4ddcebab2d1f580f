"""Hugging Face Datasets: as code, run over indices or its own files, and where it goes on."""

from __future__ import annotations

import copy
import importlib
import importlib.util
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.base.text import counted
from shardctl.code.source import call, comment, keywords, literal
from shardctl.live.library import DATA_LOADER, OfDataLoader, Source, element_of
from shardctl.live.real_data import files_of, rows_of_files
from shardctl.loaders.hugging_face_eras import MAKE_ROWS, era_of, is_read, of_tables
from shardctl.loaders.loader import LOADERS, Stop, library
from shardctl.loaders.loader_sequence import LoaderConfig
from shardctl.order.loader_order import LoaderOrder
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.quality import loaders as ways

_COLUMN, _OTHER = "index", "_another_column"
# What `split_dataset_by_node` calls the ways to share.
_STRATEGIES = {"files": "shards", "examples": "examples"}
# Formats that `load_dataset` reads, by the same names.
_FORMATS = ("parquet", "arrow", "webdataset")

_ROWS_OF_PARQUET = """\


# A generator streams rows, which a buffer mixes otherwise than tables.
def rows(files):
    for file in files:
        yield from pq.read_table(file).to_pylist()


dataset = datasets.IterableDataset.from_generator(rows, gen_kwargs={"files": files})
"""


class HuggingFace(OfDataLoader):
    """`Dataset.shuffle` or `IterableDataset.shuffle`, `split_dataset_by_node`, and a DataLoader."""

    formats = frozenset({"parquet", "arrow"})
    source = "dataset"

    def batches(self, config: LoaderConfig, source: Source) -> Iterator[Int64s]:
        """Yield what one process hands out of all epochs, batch by batch."""
        for examples in self._read(config, self._of_source(config, source)):
            yield np.array([example[_COLUMN] for example in examples], np.int64)

    def rows(
        self, config: LoaderConfig, files: Sequence[str], file_format: str
    ) -> Generator[Sequence[Mapping[str, Any]]]:
        """Yield the same batches of rows as `load_dataset` reads them from Parquet or Arrow files.

        Where no tables are asked for, a generator streams the rows of the files.
        """
        datasets = library("datasets", self.loader)
        if config.streams and not of_tables(config):
            # By pyarrow: of a `load_dataset` in there each worker would read a share again.
            given = {"files": list(files), "file_format": file_format}
            dataset = datasets.IterableDataset.from_generator(rows_of_files, gen_kwargs=given)
            yield from self._read(config, dataset)
            return
        dataset = datasets.load_dataset(
            file_format, data_files=list(files), split="train", streaming=config.streams
        )
        undecoded = _without_decoding(dataset.features)
        if undecoded is not None:
            dataset = dataset.cast(undecoded)
        yield from self._read(config, dataset)

    def _read(self, config: LoaderConfig, dataset: Any) -> Iterator[list[Any]]:
        if config.before_shuffle is not None:
            dataset = _called(dataset, config.before_shuffle)
        names = {"dataset": dataset, "rank": config.host, "world_size": config.num_hosts}
        names["DataLoader"] = _BatchesOfLists
        self.run([*self._of_node(config), *self.made(config)], names)
        yield from self.epochs(config, names)

    def epoch_setter(self, config: LoaderConfig) -> str:
        """Return the stream; a Dataset has no set_epoch, since all its epochs have one order."""
        return "dataset" if config.streams else ""

    def imports(self, config: LoaderConfig) -> Iterator[str]:
        """Yield the imports of what shares, and of the DataLoader."""
        yield from self._of_node(config)
        yield DATA_LOADER

    def imports_of_data(self, order: LoaderOrder) -> Iterator[str]:
        """Yield the imports of what loads."""
        yield "import datasets"
        if reads_rows_of_parquet(order) and _files(order):
            yield "import pyarrow.parquet as pq"

    @staticmethod
    def _of_node(config: LoaderConfig) -> Iterator[str]:
        yield "from datasets.distributed import split_dataset_by_node" if config.shares else ""

    def data(self, spec: str, order: LoaderOrder) -> Iterator[str]:
        """Yield the lines that make the dataset whose examples the indices of an order count.

        Subsplits of TFDS are no slices of `datasets`, so a part is selected by its indices.
        """
        yield from loaded(spec, order)
        if order.config.before_shuffle is not None:
            yield "# The call of the script, with its own arguments."
            yield f"dataset = dataset.{order.config.before_shuffle}(...)"

    def made(self, config: LoaderConfig) -> Iterator[str]:
        """Yield the shuffle, the share of a host, and the DataLoader."""
        if config.seed is not None:
            given = {
                "seed": config.seed,
                "buffer_size": config.buffer,
                "max_buffer_input_shards": config.input_shards,
            }
            stated = {name: literal(one) for name, one in given.items() if one is not None}
            yield from call("dataset = dataset.shuffle", keywords(stated))
        if config.shares:
            strategy = _STRATEGIES.get(config.host_by)
            more = [] if strategy is None else [f"strategy={literal(strategy)}"]
            node = ["dataset", "rank", "world_size", *more]
            yield from call("dataset = split_dataset_by_node", node)
        options = {"batch_size": literal(config.batch), **self.options(config)}
        yield from call("loader = DataLoader", ["dataset", *keywords(options)])

    def code_of_rest(self, spec: str, order: LoaderOrder, stop: Stop) -> Iterator[Iterable[str]]:
        """Yield the parts of code that reads what is left; a stream is read again and skipped."""
        if not order.config.streams:
            yield from super().code_of_rest(spec, order, stop)
            return
        imports, *parts, _ = self.code(spec, order)
        yield ("import itertools", "", *imports)
        yield from parts
        yield _streamed_on(order.config, stop)

    def advice(self, config: LoaderConfig, stop: Stop) -> Iterator[str]:
        """Yield what the state of a stream is worth."""
        if config.streams:
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
        usual = [next(v for v in reversed(proven) if v.startswith("4.")), proven[-1]]
        named = ways.settings_for(settings, "hf").loader_version
        for version in usual if named is None else [named]:
            own: dict[str, Any] = {"streaming": True, "shuffle_seed": seed, "buffer": buffer}
            if settings.arrow is None and not is_read(file_format):
                own["arrow"] = True
            if era_of(version).interleave == "never":
                own["input_shards"] = None
            own |= {"access": "in a row", "continued": "loses examples", "by": "state_dict"}
            reader = f"HF {version}: shuffle({buffer:,})"
            yield ways.way(settings, "hf", reader, loader_version=version, held=buffer, **own)
        of_streams = dict.fromkeys(("input_shards", "arrow", "before_shuffle"))
        yield ways.way(settings, "hf", "HF: Dataset.shuffle", shuffle_seed=seed, **of_streams)

    def _of_source(self, config: LoaderConfig, source: Source) -> Any:
        """Return the dataset that `datasets` makes of a source: tables, or rows of a generator."""
        datasets = library("datasets", self.loader)
        if not config.streams:
            values = np.array([source[index] for index in range(len(source))], np.int64)
            return datasets.Dataset.from_dict({_COLUMN: values})
        lengths = config.lengths_of_shards
        ends = np.cumsum(lengths)
        shards = list(zip((ends - lengths).tolist(), ends.tolist(), strict=True))
        read = {"source": [source] * len(shards), "shards": shards}
        if not of_tables(config):
            return datasets.IterableDataset.from_generator(_rows, gen_kwargs=read)
        made = library("datasets.iterable_dataset", self.loader)
        features = datasets.Features({_COLUMN: datasets.Value("int64")})
        return datasets.IterableDataset(
            made.ArrowExamplesIterable(_tables, read),
            info=datasets.DatasetInfo(features=features),
        )


class _BatchesOfLists:
    """A DataLoader of PyTorch; without PyTorch the batches that it makes without workers.

    Examples that come one by one are not batched at all, unless worker processes read them.
    """

    def __init__(
        self, dataset: Any, batch_size: int | None, num_workers: int = 0, drop_last: bool = False
    ) -> None:
        self._dataset, self._size, self._drops = dataset, batch_size or 1, drop_last
        self._loader: Any = None
        if num_workers or (batch_size is not None and importlib.util.find_spec("torch")):
            self._loader = library("torch.utils.data", LOADERS["torch"]).DataLoader(
                dataset,
                batch_size=self._size,
                num_workers=num_workers,
                drop_last=drop_last,
                collate_fn=list,
            )

    def __iter__(self) -> Iterator[list[Any]]:
        if self._loader is not None:
            yield from self._loader
            return
        examples = iter(self._dataset)
        while batch := list(islice(examples, self._size)):
            if len(batch) == self._size or not self._drops:
                yield batch


def _streamed_on(config: LoaderConfig, stop: Stop) -> Iterator[str]:
    first = config.first_epoch + stop.epoch
    skip = stop.in_epoch if stop.steps_in_epoch is None else stop.steps_in_epoch
    if stop.in_batch:
        yield from comment(f"Of the first batch {stop.in_batch} examples were handed out before.")
    yield f"for epoch in range({first}, {config.first_epoch + config.epochs}):"
    yield "    dataset.set_epoch(epoch)"
    yield "    # What came before is read again, since a buffer has no other way there."
    yield f"    skip = {skip} if epoch == {first} else 0"
    yield f"    for {element_of(config)} in itertools.islice(loader, skip, None):"
    yield "        ..."


def _called(dataset: Any, name: str) -> Any:
    """Return a stream behind one of the calls of `BEFORE_SHUFFLE`, with every example as it was."""
    if name == "filter":
        return dataset.filter(_any)
    if name in MAKE_ROWS and not name.startswith("rename"):
        made = dataset.map(_itself if name == "map" else _with_another)  # as add_column does
        return made.remove_columns(_OTHER) if name == "remove_columns" else made
    features = dataset.features
    if features is None:  # a generator's rows, whose columns nobody knows
        return dataset
    first = next(iter(features))
    of_columns: dict[str, Callable[[], Any]] = {
        "rename_column": lambda: dataset.rename_column(first, _OTHER).rename_column(_OTHER, first),
        "rename_columns": lambda: dataset.rename_columns({first: _OTHER}).rename_columns(
            {_OTHER: first}
        ),
        "select_columns": lambda: dataset.select_columns(list(features)),
        "with_format": lambda: dataset.with_format(None),
        "cast": lambda: dataset.cast(features),
        "cast_column": lambda: dataset.cast_column(first, features[first]),
    }
    return of_columns[name]()


def _itself(example: Any) -> Any:
    return example


def _any(example: Any) -> bool:
    return True


def _with_another(example: Any) -> Any:
    return {**example, _OTHER: 0}


def _without_decoding(features: Any) -> Any:
    """Return features whose images and sounds stay as bytes, None where there are none of them."""
    kept, changed, left = copy.deepcopy(features), False, []
    left.append(kept)
    while left:
        feature = left.pop()
        if getattr(feature, "decode", None) is True:
            feature.decode, changed = False, True
        if isinstance(feature, dict):
            left += feature.values()
        elif isinstance(feature, list | tuple):
            left += feature
        else:
            left += [feature.feature] if hasattr(feature, "feature") else []
    return kept if changed else None


def _rows(source: list[Source], shards: list[tuple[int, int]]) -> Iterator[dict[str, int]]:
    for one, (start, stop) in zip(source, shards, strict=True):
        for index in range(start, stop):
            yield {_COLUMN: int(one[index])}


_TABLE = 7  # rows of a table; a table ends with its shard


def _tables(source: list[Source], shards: list[tuple[int, int]]) -> Iterator[tuple[Any, Any]]:
    arrow = importlib.import_module("pyarrow")
    for one, (start, stop) in zip(source, shards, strict=True):
        for begin in range(start, stop, _TABLE):
            rows = range(begin, min(begin + _TABLE, stop))
            values = arrow.array([int(one[row]) for row in rows], arrow.int64())
            yield begin, arrow.table({_COLUMN: values})


# What is loaded, as code: files of its own formats, else a dataset by name.


def loaded(spec: str, order: LoaderOrder) -> Iterator[str]:
    streaming = {"streaming": "True"} if order.config.streams else {}
    files = _files(order)
    if not files:
        yield "# The examples in the order of their files, which are the shards."
        if order.dataset.file_format not in _FORMATS:
            yield f"# datasets reads no {order.dataset.file_format} files: this stands for the same"
            yield "# examples in a format that it reads, or for a generator of them."
        name = [literal(order.dataset.name), f"split={literal(spec)}"]
        yield from call("dataset = datasets.load_dataset", [*name, *keywords(streaming)])
        return
    yield "# Each file is a shard."
    yield "files = ["
    yield from (f"    {literal(file)}," for file in files)
    yield "]"
    if reads_rows_of_parquet(order):
        yield from _ROWS_OF_PARQUET.splitlines()
        return
    named = {"data_files": "files", "split": literal("train"), **streaming}
    arguments = [literal(order.dataset.file_format), *keywords(named)]
    yield from call("dataset = datasets.load_dataset", arguments)
    parts = [f"*range({start}, {stop})" for start, stop in _parts(order)]
    if parts:
        yield f"# The part that {literal(spec)} reads."
        yield from call("dataset = dataset.select", [f"[{', '.join(parts)}]"])


def _files(order: LoaderOrder) -> tuple[str, ...]:
    """Return the paths of files that `load_dataset` reads, none where one of them is not known."""
    found = files_of(order) if order.dataset.file_format in _FORMATS else ()
    return found if all(found) else ()


def reads_rows_of_parquet(order: LoaderOrder) -> bool:
    """Return whether Parquet files are streamed row by row, as a generator does it."""
    config = order.config
    return config.streams and not of_tables(config) and order.dataset.file_format == "parquet"


def _parts(order: LoaderOrder) -> list[tuple[int, int]]:
    """Return what is read of the files one after the other, nothing where that is all of it."""
    reads = order.reads
    if np.array_equal(reads.take, reads.examples_in_shard):
        return []
    starts = np.cumsum(reads.examples_in_shard) - reads.examples_in_shard + reads.skip
    stops = starts + reads.take
    parted = np.flatnonzero(starts[1:] != stops[:-1])
    first, last = starts[[0, *(parted + 1)]], stops[[*parted, -1]]
    return list(zip(first.tolist(), last.tolist(), strict=True))
