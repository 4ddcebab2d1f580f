"""The features that examples are decoded by: of a features.json, of a script, of a TFDS dataset."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from shardctl.core.arguments.kinds import Kind
from shardctl.core.dataset.dataset import Dataset, Split
from shardctl.core.text import choices, counted, printable, quoted
from shardctl.core.tfds_rules import FEATURES_FILENAME
from shardctl.errors import DatasetError, MissingDependencyError, ShardctlError, UsageError
from shardctl.files.stores.store import ByteSource, StoredFile
from shardctl.files.stores.stores import is_remote, store_of
from shardctl.tfds.imports import tensorflow, tensorflow_datasets
from shardctl.tfds.inspecting.script import ScriptFunction
from shardctl.tfds.inspecting.watching import Lines

_MAX_NUM_BYTES = 1 << 26
# What a builder says of its dataset besides the features, and `write_metadata` keeps.
_SAID = ("description", "citation", "supervised_keys", "homepage")


def _is_features(value: Any) -> Any:
    # By what is used of it, since TFDS is not imported before it is needed.
    if isinstance(value, str | os.PathLike | Mapping) or hasattr(value, "deserialize_example"):
        return value
    raise UsageError("features of TFDS, or where they are, are needed: a features.json")


FeaturesLike = Annotated[
    Any,
    Kind(
        take=_is_features,
        needed="features of TFDS, a features.json, or module:function",
        several="features of TFDS",
    ),
]


@dataclass(frozen=True, kw_only=True)
class FoundFeatures:
    """Features, where they were found, and what was said there of the dataset besides."""

    features: Any
    source: str
    said: Mapping[str, Any] = field(default_factory=dict)


def find_features(given: FeaturesLike) -> FoundFeatures:
    """Return the features that a value is, or that a text names.

    A text is the path of a features.json or of a folder that has one, `module:function` or
    `script.py:Builder`, or the name of a dataset of TFDS, which is not downloaded.

    Raises:
        UsageError: it names nothing that has features.
        DatasetError: the file has none that TFDS understands.
    """
    if not isinstance(given, str | os.PathLike):
        return _of_value(given, "the features")
    text = os.fspath(given)
    path = _file_of(text)
    if path is not None:
        return FoundFeatures(features=_read(path), source=path)
    if ":" in text and not is_remote(text):
        return _of_script(text)
    if text.endswith(".json") or "/" in text:
        raise UsageError(f"no file {quoted(text, 200)} with features of TFDS")
    return _of_tfds(text)


def _file_of(text: str) -> str | None:
    """Return the path of the file that a text names, itself or in the folder that it names."""
    store = store_of(text) if is_remote(text) else store_of(os.path.expanduser(text))
    path = text if is_remote(text) else os.path.expanduser(text)
    if store.status(path) is not None:
        return path
    inside = path.rstrip("/") + "/" + FEATURES_FILENAME
    return inside if store.status(inside) is not None else None


def _read(path: str) -> Any:
    """Return the features of a file, with the names of labels that lie beside it."""
    data = store_of(path).read(path, max_num_bytes=_MAX_NUM_BYTES)
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DatasetError(f"{quoted(path, 200)} is no JSON: {_line(error)}") from None
    if not isinstance(document, dict):
        raise DatasetError(f"{quoted(path, 200)} has no features of TFDS: {_WRITTEN}")
    feature = tensorflow_datasets("core.features.feature")
    try:
        features = feature.FeatureConnector.from_json(document)
        features.load_metadata(os.path.dirname(path) or ".", feature_name=None)
    except ShardctlError:
        raise
    except Exception as error:
        raise DatasetError(
            f"{quoted(path, 200)} has no features that TFDS understands: {_line(error)}; {_WRITTEN}"
        ) from error
    return _top_level(features, path)


_WRITTEN = "TFDS writes such a file by features.save_config(FOLDER), and beside what it prepares"


def _of_script(text: str) -> FoundFeatures:
    script = ScriptFunction.parsed(text)
    # TFDS refuses a second builder of a name, as a script makes that is imported twice.
    with tensorflow_datasets("core.registered").skip_registration():
        return _of_value(script.called(Lines(), _is_answer), text)


def _is_answer(value: Any) -> bool:
    return isinstance(value, Mapping | type) or hasattr(value, "deserialize_example")


def _of_tfds(name: str) -> FoundFeatures:
    tfds = tensorflow_datasets()
    try:
        builder = tfds.builder_cls(name)
    except Exception:
        raise UsageError(
            f"{quoted(name, 200)} names no features: it is no file, no dataset of TFDS, and no "
            "module:function"
        ) from None
    return _of_value(builder, name)


def _of_value(value: Any, source: str) -> FoundFeatures:
    if isinstance(value, type):
        value = _made(value, source)
    info = getattr(value, "info", None)
    if info is None:
        return FoundFeatures(features=_top_level(value, source), source=source)
    said = {name: getattr(info, name, None) for name in _SAID}
    return FoundFeatures(
        features=_top_level(info.features, source),
        source=source,
        said={name: value for name, value in said.items() if value},
    )


def _made(builder: type, source: str) -> Any:
    """Return a builder of a class, which looks for no data that may be prepared already."""
    with tempfile.TemporaryDirectory() as nowhere:
        try:
            made = builder(data_dir=nowhere)
            _ = made.info.features
        except Exception as error:
            raise UsageError(
                f"{source} is a class that makes no builder: {_line(error)}"
            ) from error
        return made


def _top_level(features: Any, source: str) -> Any:
    """Return features as TFDS takes them for whole examples, a dict as `FeaturesDict`."""
    features_dict = tensorflow_datasets("core.features.features_dict")
    try:
        made = features_dict.to_feature(features)
    except Exception as error:
        raise UsageError(f"{source}: these are no features of TFDS: {_line(error)}") from error
    if not hasattr(made, "deserialize_example"):
        raise UsageError(
            f"{source}: an example of TFDS is a FeaturesDict or a Sequence, not "
            f"{printable(type(made).__name__, 60)}"
        )
    return made


def _line(error: BaseException) -> str:
    said = str(error).strip().splitlines()
    return printable(f"{type(error).__name__}: {said[0] if said else ''}".rstrip(": "), 300)


# Do features fit record files? The first record of each split, decoded as TFDS does.

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

    if source.local_path is None and source.num_bytes > _MAX_COPY:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = source.local_path or os.path.join(folder, "copy.array_record")
        if source.local_path is None:
            Path(path).write_bytes(source.read(0, source.num_bytes))
        reader = array_record_module.ArrayRecordReader(str(path))
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
