"""Real TFDS datasets, written small and fast by TFDS's own classes, with any shard lengths."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

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


def read_ids(dataset: Any) -> list[int]:
    """Return the ids of a tf.data.Dataset of examples, in the order they come."""
    return [int(example["id"]) for example in dataset.as_numpy_iterator()]


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
