"""Small TFDS datasets with any shard lengths, written by TFDS's own classes or as they write."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.record_files import framed

WRITABLE_FORMATS = ("tfrecord", "array_record", "parquet")  # riegeli cannot be imported here


def build_dataset(
    root: Path,
    name: str = "toy",
    splits: Mapping[str, Sequence[int]] | None = None,
    file_format: str = "tfrecord",
    disable_shuffling: bool = False,
    version: str = "1.0.0",
    config: str | None = None,
    *,
    template: str | None = None,
    with_files: bool = True,
    features: Any = None,
    example: Callable[[int], Any] | None = None,
) -> Path:
    """Write a dataset under the data dir `root` and return its folder.

    Each example is {"id": i}, i counting from 0 through the shards of its split, or `example(i)` of
    `features`. Shards may be empty. `template` is a file name template of TFDS; without files only
    the metadata is written.
    """
    from tensorflow_datasets.core import dataset_info, file_adapters, naming
    from tensorflow_datasets.core import splits as splits_lib
    from tensorflow_datasets.core.utils import version as version_lib

    splits = {"train": [3, 0, 5]} if splits is None else splits
    serialized = _serialized if example is None else _serializing(features, example)
    folder = Path(root, *(part for part in (name, config, version) if part))
    folder.mkdir(parents=True, exist_ok=True)
    adapter = file_adapters.ADAPTER_FOR_FORMAT[file_adapters.FileFormat(file_format)]
    infos = []
    for split, lengths in splits.items():
        names = naming.ShardedFileTemplate(
            data_dir=folder,
            template=template or naming.DEFAULT_FILENAME_TEMPLATE,
            dataset_name=name,
            split=split,
            filetype_suffix=file_format,
        )
        num_bytes = first = 0
        for index, length in enumerate(lengths):
            examples = [(i, serialized(i)) for i in range(first, first + length)]
            first += length
            num_bytes += sum(len(example) for _, example in examples)
            if with_files:
                path = Path(names.sharded_filepath(shard_index=index, num_shards=len(lengths)))
                path.parent.mkdir(parents=True, exist_ok=True)
                adapter.write_examples(path, examples)
        infos.append(
            splits_lib.SplitInfo(
                name=split,
                shard_lengths=list(lengths),
                num_bytes=num_bytes,
                filename_template=names,
            )
        )
    info = dataset_info.DatasetInfo(
        builder=dataset_info.DatasetIdentity(
            name=name,
            version=version_lib.Version(version),
            data_dir=str(folder),
            module_name="toy",
            config_name=config,
        ),
        features=features or _features(),
        disable_shuffling=disable_shuffling,
        split_dict=splits_lib.SplitDict(infos),
    )
    info.set_file_format(file_format)
    info.write_to_directory(folder)
    return folder


def write_dataset(
    root: Path,
    name: str = "toy",
    splits: Mapping[str, Sequence[int]] | None = None,
    file_format: str = "tfrecord",
    version: str = "1.0.0",
    config: str | None = None,
    *,
    with_files: bool = True,
) -> Path:
    """Write what `build_dataset` writes, byte for byte, and load neither TFDS nor TensorFlow."""
    splits = {"train": [3, 0, 5]} if splits is None else splits
    folder = Path(root, *(part for part in (name, config, version) if part))
    folder.mkdir(parents=True, exist_ok=True)
    infos = []
    for split, lengths in splits.items():
        num_bytes = first = 0
        for index, length in enumerate(lengths):
            examples = [_example(i) for i in range(first, first + length)]
            first += length
            num_bytes += sum(map(len, examples))
            if with_files:
                shard = f"{index:05}-of-{len(lengths):05}"
                _write_file(folder / f"{name}-{split}.{file_format}-{shard}", examples)
        infos.append(
            {
                "filepathTemplate": "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}",
                "name": split,
                "numBytes": str(num_bytes),
                "shardLengths": [str(length) for length in lengths],
            }
        )
    info = {
        **({"configName": config} if config else {}),
        "fileFormat": file_format,
        "moduleName": "toy",
        "name": name,
        "splits": infos,
        "version": version,
    }
    (folder / "dataset_info.json").write_text(json.dumps(info, indent=2))
    (folder / "features.json").write_text(json.dumps(_FEATURES, indent=4))
    return folder


def read_ids(dataset: Any) -> list[int]:
    """Return the ids of a tf.data.Dataset of examples, in the order they come."""
    return [int(example["id"]) for example in dataset.as_numpy_iterator()]


_IN_TFDS = "tensorflow_datasets.core.features"
_FEATURES = {
    "featuresDict": {
        "features": {
            "id": {
                "pythonClassName": f"{_IN_TFDS}.tensor_feature.Tensor",
                "tensor": {"dtype": "int64", "encoding": "none", "shape": {}},
            }
        }
    },
    "pythonClassName": f"{_IN_TFDS}.features_dict.FeaturesDict",
}


@functools.cache
def _example(example_id: int) -> bytes:
    """Return {"id": example_id} as a tf.train.Example: messages, each in the next."""
    rest, varint = example_id, bytearray()
    while rest > 127:
        varint.append(rest & 127 | 128)
        rest >>= 7
    message = bytes((*varint, rest))
    # Int64List.value, Feature.int64_list, and as the value of an entry of Features.feature.
    for tag in (b"\x0a", b"\x1a", b"\x0a\x02id\x12", b"\x0a", b"\x0a"):
        message = tag + bytes((len(message),)) + message
    return message


def _write_file(path: Path, examples: Sequence[bytes]) -> None:
    """Write record files of the format that their names say."""
    if ".tfrecord-" in path.name:
        path.write_bytes(framed(*examples))
    elif ".array_record-" in path.name:
        from array_record.python import array_record_module

        writer = array_record_module.ArrayRecordWriter(str(path), "group_size:1")
        for example in examples:
            writer.write(example)
        writer.close()
    else:
        import pyarrow
        from pyarrow import parquet

        schema = pyarrow.schema([pyarrow.field("data", pyarrow.binary())])
        with parquet.ParquetWriter(path, schema=schema) as file:
            for begin in range(0, len(examples), 100):
                rows = [{"data": example} for example in examples[begin : begin + 100]]
                file.write_batch(pyarrow.RecordBatch.from_pylist(rows))


def _serializing(features: Any, example: Callable[[int], Any]) -> Callable[[int], bytes]:
    from tensorflow_datasets.core import example_serializer

    serializer = example_serializer.ExampleSerializer(features.get_serialized_info())
    return lambda i: serializer.serialize_example(features.encode_example(example(i)))


@functools.cache
def _features() -> Any:
    import numpy as np
    import tensorflow_datasets as tfds

    return tfds.features.FeaturesDict({"id": np.int64})


@functools.cache
def _serializer() -> Any:
    from tensorflow_datasets.core import example_serializer

    return example_serializer.ExampleSerializer(_features().get_serialized_info())


@functools.lru_cache(maxsize=100_000)
def _serialized(example_id: int) -> bytes:
    data: bytes = _serializer().serialize_example(_features().encode_example({"id": example_id}))
    return data
