"""Do features fit record files? The first record of each split, decoded as TFDS does."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shardctl.core.dataset.dataset import Dataset, Split
from shardctl.core.text import choices, counted, printable, quoted
from shardctl.errors import DatasetError, MissingDependencyError
from shardctl.files.stores.store import ByteSource, StoredFile
from shardctl.files.stores.stores import store_of
from shardctl.tfds.imports import tensorflow, tensorflow_datasets

_HEADER = 12  # of a TFRecord: the length of its data, and a checksum
_FRAME = 16  # of a TFRecord, besides its data
_MAX_COPY = 1 << 28  # bytes of a remote file, where a library reads local ones alone


def check_first_records(dataset: Dataset, features: Any) -> list[str]:
    """Decode the first record of each split, and return what is doubtful about the features.

    Raises:
        DatasetError: a record cannot be decoded by them.
    """
    return list(dict.fromkeys(_doubts(dataset, features)))


def _doubts(dataset: Dataset, features: Any) -> Iterator[str]:
    for split in dataset.splits:
        shard = next((i for i, length in enumerate(split.shard_lengths) if length), None)
        if shard is None:
            continue
        folder, name = split.location(shard)
        path = f"{folder}/{name}" if folder else name
        file = store_of(path).status(path)
        if file is None:
            raise DatasetError(f"{quoted(path, 200)} is not there any more")
        record = first_record(file, dataset.file_format)
        if record is None:
            yield (
                f"the features were not tried on split {quoted(split.name)}: "
                f"{dataset.file_format} files are not read here, or only whole and local ones"
            )
            continue
        yield from _tried(record, features, dataset, split, path)


def first_record(file: StoredFile, file_format: str) -> bytes | None:
    """Return the first record of a file that has one, None where no library here reads it.

    Raises:
        DatasetError: there is no record, or the file has changed since it was counted.
    """
    try:
        with store_of(file.path).open(file) as source:
            if file_format == "tfrecord":
                return _first_tfrecord(source, file.path)
            if file_format == "parquet":
                return _first_row(source)
            if file_format == "array_record":
                return _first_of_array_record(source)
    except ImportError as error:
        raise MissingDependencyError(
            f"{file_format} files are read by a library that is not here ({error}); "
            "install it with: pip install 'shardctl[files]'"
        ) from error
    except (OSError, ValueError, RuntimeError, LookupError) as error:
        said = printable(str(error).splitlines()[0] if str(error) else type(error).__name__, 200)
        raise DatasetError(f"cannot read a record of {quoted(file.path, 200)}: {said}") from error
    return None


def _first_tfrecord(source: ByteSource, path: str) -> bytes:
    length = int.from_bytes(source.read(0, _HEADER)[:8], "little")
    if length + _FRAME > source.num_bytes:
        raise DatasetError(f"{quoted(path, 200)} begins with no whole record")
    return source.read(_HEADER, _HEADER + length)


def _first_row(source: ByteSource) -> bytes:
    import pyarrow.parquet as pq

    adapter = tensorflow_datasets("core.file_adapters").ParquetFileAdapter
    field = adapter._schema().names[0]
    file = pq.ParquetFile(source.file())
    if field not in file.schema_arrow.names:
        raise ValueError(
            f"TFDS keeps whole examples in a column {field}, and there is none: the columns are "
            f"{choices(file.schema_arrow.names)}"
        )
    batch = next(file.iter_batches(batch_size=1, columns=[field]))
    return bytes(batch.column(0)[0].as_py())


def _first_of_array_record(source: ByteSource) -> bytes | None:
    from array_record.python import array_record_module

    if source.local_path is not None:
        reader = array_record_module.ArrayRecordReader(source.local_path)
        try:
            return bytes(reader.read([0])[0])
        finally:
            reader.close()
    if source.num_bytes > _MAX_COPY:
        return None
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "copy.array_record")
        copy.write_bytes(source.read(0, source.num_bytes))
        reader = array_record_module.ArrayRecordReader(str(copy))
        try:
            return bytes(reader.read([0])[0])
        finally:
            reader.close()


def _tried(
    record: bytes, features: Any, dataset: Dataset, split: Split, path: str
) -> Iterator[str]:
    """Decode a record, and yield what it holds besides the features, or lacks."""
    name = quoted(path.rpartition("/")[2], 200)
    try:
        # Files with random access are read without TensorFlow, by `as_data_source`.
        if dataset.file_format == "array_record":
            features.deserialize_example_np(record)
        else:
            features.deserialize_example(record)
    except Exception as error:
        raise DatasetError(
            f"the features do not fit the records of split {quoted(split.name)}: "
            f"{_reason(error)} (the first record of {name})"
        ) from error
    there = set(tensorflow().train.Example.FromString(record).features.feature)
    asked_for = set(features.tf_example_spec)
    if more := sorted(there - asked_for):
        yield (
            f"the records of split {quoted(split.name)} hold more than the features name, which "
            f"TFDS leaves out: {choices(more)}"
        )
    if lacking := sorted(asked_for - there):
        yield (
            f"the first record of split {quoted(split.name)} has no "
            f"{choices(lacking)}; TFDS reads {counted(len(lacking), 'feature')} as empty"
        )


def _reason(error: Exception) -> str:
    """Return what TensorFlow or TFDS says of a record, without the operation that said it."""
    said = " ".join(str(error).split())
    said = re.sub(r"\{\{.*?\}\}\s*", "", said)
    said = re.sub(r"\s*\[Op:\w+\].*$", "", said)
    return printable(said or type(error).__name__, 400)
