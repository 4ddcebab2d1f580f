"""Hugging Face Datasets itself, run over indices that lie in shards, or over its own files."""

from __future__ import annotations

import copy
import importlib.util
from collections.abc import Generator, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.loaders.asked import Asked
from shardctl.core.loaders.hugging_face.eras import of_tables
from shardctl.loaders.live import LiveLoader, Source, library
from shardctl.loaders.row_files import rows_of_files

_COLUMN = "index"
# What `split_dataset_by_node` calls the ways to share.
_STRATEGIES = {"files": "shards", "examples": "examples"}


class LiveHuggingFace(LiveLoader):
    """`Dataset.shuffle` or `IterableDataset.shuffle`, `split_dataset_by_node`, and a DataLoader."""

    formats = frozenset({"parquet", "arrow"})

    def batches(self, asked: Asked, source: Source) -> Iterator[Int64s]:
        """Yield what one process hands out of all epochs, batch by batch."""
        dataset = _of_source(asked, source)
        for examples in self._read(asked, dataset):
            yield np.array([example[_COLUMN] for example in examples], np.int64)

    def rows(
        self, asked: Asked, files: Sequence[str], file_format: str
    ) -> Generator[Sequence[Mapping[str, Any]]]:
        """Yield the same batches of rows as `load_dataset` reads them from Parquet or Arrow files.

        Where no tables are asked for, a generator streams the rows of the files.
        """
        datasets = library("datasets", "hf")
        if asked.streams and not of_tables(asked):
            # By pyarrow: of a `load_dataset` in there each worker would read a share again.
            given = {"files": list(files), "file_format": file_format}
            dataset = datasets.IterableDataset.from_generator(rows_of_files, gen_kwargs=given)
            yield from self._read(asked, dataset)
            return
        dataset = datasets.load_dataset(
            file_format, data_files=list(files), split="train", streaming=asked.streams
        )
        undecoded = _without_decoding(dataset.features)
        if undecoded is not None:
            dataset = dataset.cast(undecoded)
        yield from self._read(asked, dataset)

    def _read(self, asked: Asked, dataset: Any) -> Iterator[list[Any]]:
        distributed = library("datasets.distributed", "hf")
        if asked.before_shuffle is not None:
            dataset = _called(dataset, asked.before_shuffle)
        if asked.seed is not None and asked.streams:
            given = {"buffer_size": asked.buffer, "max_buffer_input_shards": asked.input_shards}
            stated = {name: value for name, value in given.items() if value is not None}
            dataset = dataset.shuffle(seed=asked.seed, **stated)
        elif asked.seed is not None:
            dataset = dataset.shuffle(seed=asked.seed, load_from_cache_file=False)
        if asked.shares:
            strategy = (
                {"strategy": _STRATEGIES[asked.host_by]} if asked.host_by in _STRATEGIES else {}
            )
            dataset = distributed.split_dataset_by_node(
                dataset, asked.host, asked.num_hosts, **strategy
            )
        for epoch in range(asked.first_epoch, asked.first_epoch + asked.epochs):
            if asked.streams:
                dataset.set_epoch(epoch)
            yield from self._batches(asked, dataset)

    @staticmethod
    def _batches(asked: Asked, dataset: Any) -> Iterator[list[Any]]:
        """Yield the batches of a DataLoader; without PyTorch those that it makes without workers.

        Examples that come one by one are not batched at all, unless worker processes read them.
        """
        if asked.workers or (asked.batch is not None and importlib.util.find_spec("torch")):
            data = library("torch.utils.data", "torch")
            yield from data.DataLoader(
                dataset,
                batch_size=asked.batch or 1,
                num_workers=asked.workers,
                drop_last=asked.drop_remainder,
                collate_fn=list,
            )
            return
        examples, size = iter(dataset), asked.batch or 1
        while batch := list(islice(examples, size)):
            if len(batch) == size or not asked.drop_remainder:
                yield batch


def _called(dataset: Any, name: str) -> Any:
    """Return a stream behind one of the calls of `BEFORE_SHUFFLE`, with every example as it was."""
    features, other = dataset.features, "_another_column"
    match name:
        case "map" | "filter":
            return dataset.map(_itself) if name == "map" else dataset.filter(_any)
        case "remove_columns" | "add_column":  # the latter is a map itself
            more = dataset.map(_with_another)
            return more if name == "add_column" else more.remove_columns(other)
    if features is None:  # a generator's rows, whose columns nobody knows
        return dataset
    columns = list(features)
    first = columns[0]
    match name:
        case "rename_column":
            return dataset.rename_column(first, other).rename_column(other, first)
        case "rename_columns":
            return dataset.rename_columns({first: other}).rename_columns({other: first})
        case "select_columns":
            return dataset.select_columns(columns)
        case "with_format":
            return dataset.with_format(None)
        case "cast":
            return dataset.cast(features)
        case "cast_column":
            return dataset.cast_column(first, features[first])
    raise AssertionError(name)


def _itself(example: Any) -> Any:
    return example


def _any(example: Any) -> bool:
    return True


def _with_another(example: Any) -> Any:
    return {**example, "_another_column": 0}


def _without_decoding(features: Any) -> Any:
    """Return features whose images and sounds stay as bytes, None where there are none of them."""
    if features is None:
        return None
    kept = copy.deepcopy(features)
    changed = False

    def look(feature: Any) -> None:
        nonlocal changed
        if getattr(feature, "decode", None) is True:
            feature.decode, changed = False, True
        inner = feature.values() if isinstance(feature, dict) else feature
        if isinstance(inner, (list, tuple)) or isinstance(feature, dict):
            for each in inner:
                look(each)
        elif hasattr(feature, "feature"):
            look(feature.feature)

    look(kept)
    return kept if changed else None


def _of_source(asked: Asked, source: Source) -> Any:
    """Return the dataset that `datasets` makes of a source: tables, or a generator of rows."""
    datasets = library("datasets", "hf")
    if not asked.streams:
        values = np.array([source[index] for index in range(len(source))], np.int64)
        return datasets.Dataset.from_dict({_COLUMN: values})
    lengths = asked.lengths_of_shards
    ends = np.cumsum(lengths)
    shards = list(zip((ends - lengths).tolist(), ends.tolist(), strict=True))
    if not of_tables(asked):
        return datasets.IterableDataset.from_generator(
            _rows, gen_kwargs={"source": [source] * len(shards), "shards": shards}
        )
    made = library("datasets.iterable_dataset", "hf")
    features = datasets.Features({_COLUMN: datasets.Value("int64")})
    return datasets.IterableDataset(
        made.ArrowExamplesIterable(_tables, {"source": [source] * len(shards), "shards": shards}),
        info=datasets.DatasetInfo(features=features),
    )


def _rows(source: list[Source], shards: list[tuple[int, int]]) -> Iterator[dict[str, int]]:
    for one, (start, stop) in zip(source, shards, strict=True):
        for index in range(start, stop):
            yield {_COLUMN: int(one[index])}


_TABLE = 7  # rows of a table; a table ends with its shard


def _tables(source: list[Source], shards: list[tuple[int, int]]) -> Iterator[tuple[Any, Any]]:
    arrow = library("pyarrow", "hf")
    for one, (start, stop) in zip(source, shards, strict=True):
        for begin in range(start, stop, _TABLE):
            rows = range(begin, min(begin + _TABLE, stop))
            values = arrow.array([int(one[row]) for row in rows], arrow.int64())
            yield begin, arrow.table({_COLUMN: values})
