"""Sources that scripts have: TFDS's reader in its many ways, and record files without TFDS."""

from __future__ import annotations

import functools
import random
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shardctl.stages.stages import Read
from tests.pipelines.random_pipelines import Sized
from tests.tfds_datasets import build_dataset

SPLITS = {
    "toy": {"train": [5, 0, 3, 11, 4, 1, 7], "test": [4, 6]},
    "other": {"train": [9, 2, 8], "test": [3, 5]},
}
SPECS = ("train", "train", "test", "train[20%:]", "train[3:17]", "train+test", "train[1shard:]")
_NAME = re.compile(r"(\w+)-(\w+)\.tfrecord-(\d+)-of-\d+__(\d+)")


def build_datasets(root: Path) -> Path:
    """Write the datasets of SPLITS under a data dir."""
    for name, splits in SPLITS.items():
        build_dataset(root, name, splits)
    return root


@dataclass(frozen=True, kw_only=True)
class Sources:
    """Random readers of the datasets in a data dir.

    `seedless` is the rate of file shuffles without a seed of their own.
    """

    root: Path
    seedless: float = 0.0

    def draw(self, rng: random.Random) -> Sized:
        """Return a reader; its settings are named as in ReadSettings, or as in ReadConfig."""
        name, spec = rng.choice(list(SPLITS)), rng.choice(SPECS)
        settings: dict[str, object] = {"interleave_cycle_length": rng.choice([1, 2, 3, 16])}
        settings["interleave_block_length"] = rng.choice([1, 2, 3, 16])
        if rng.random() < 0.15:
            settings = {}
        if rng.random() < 0.15:
            return self._of_files(rng)
        if rng.random() < 0.6:
            seed = None if rng.random() < self.seedless else rng.choice([0, 1, 32, 7])
            settings |= {"shuffle_files": True, "shuffle_seed": seed}
            settings["shuffle_reshuffle_each_iteration"] = rng.choice([None, None, True, False])
        if rng.random() < 0.15:
            settings["host"] = (rng.randrange(2), 2)
        if rng.random() < 0.2:
            settings["num_parallel_calls_for_interleave_files"] = 1
        if rng.random() < 0.2:
            settings["num_parallel_calls_for_decode"] = rng.choice([1, 2])
        if rng.random() < 0.2:
            settings["try_autocache"] = False
        if rng.random() < 0.2:
            settings["skip_prefetch"] = True
        if rng.random() < 0.2:
            settings["even_splits"] = (rng.randrange(2), 2)
        if rng.random() < 0.1:
            settings["assert_cardinality"] = False
        read = Read(spec=spec, data=name, settings=tuple(settings.items()))
        return Sized(source=read, num_examples=sum(map(sum, SPLITS[name].values())))

    def _of_files(self, rng: random.Random) -> Sized:
        # Of files without an example: those that TFDS leaves out take a place in an interleave of
        # paths, and such an order is refused.
        name, split = "other", rng.choice(["train", "test"])
        settings = {
            "files": rng.choice(["listed", "slices", "plain"]),
            "cycle_length": rng.choice([1, 2, 4]),
            "block_length": rng.choice([None, 1, 2, 5]),
            "num_parallel_calls": rng.choice([None, None, 1]),
            "asserts": rng.random() < 0.4,
        }
        read = Read(spec=split, data=name, settings=tuple(settings.items()))
        return Sized(source=read, num_examples=sum(SPLITS[name][split]))

    def dataset(self, read: Read) -> Any:
        """Return the tf.data.Dataset of a reader, whose elements are names as of `name_of`."""
        assert read.data is not None
        settings = dict(read.settings)
        if "files" in settings:
            return self._record_files(read, settings)
        return self._of_tfds(read, settings)

    def _of_tfds(self, read: Read, settings: dict[str, Any]) -> Any:
        import tensorflow as tf
        import tensorflow_datasets as tfds

        folder, spec = self.root / str(read.data) / "1.0.0", read.spec
        shuffles = settings.pop("shuffle_files", False)
        host, even = settings.pop("host", None), settings.pop("even_splits", None)
        if host is not None and even is None:
            settings["input_context"] = tf.distribute.InputContext(host[1], host[0])
        if even is not None:
            spec = tfds.even_splits(spec, even[1], drop_remainder=False)[even[0]]
        config = tfds.ReadConfig(add_tfds_id=True, **settings)
        dataset = _builder(folder).as_dataset(
            split=spec, read_config=config, shuffle_files=shuffles
        )
        return dataset.map(lambda example: example["tfds_id"])

    def _record_files(self, read: Read, settings: dict[str, Any]) -> Any:
        import tensorflow as tf

        name, folder = str(read.data), self.root / str(read.data) / "1.0.0"
        pattern = str(folder / f"{name}-{read.spec}.tfrecord-*")
        paths = sorted(tf.io.gfile.glob(pattern))
        if settings["files"] == "plain":
            records = tf.data.TFRecordDataset(paths)
        else:
            files = (
                tf.data.Dataset.list_files(pattern, shuffle=False)
                if settings["files"] == "listed"
                else tf.data.Dataset.from_tensor_slices(paths)
            )
            records = files.interleave(
                tf.data.TFRecordDataset,
                cycle_length=settings["cycle_length"],
                block_length=settings["block_length"],
                num_parallel_calls=settings["num_parallel_calls"],
            )
        if settings["asserts"]:
            number = sum(SPLITS[name][str(read.spec)])
            records = records.apply(tf.data.experimental.assert_cardinality(number))
        prefix = f"{name}-{read.spec}.id__"
        return records.map(lambda record: prefix + tf.strings.as_string(_id_of(record)))


@functools.cache
def _builder(folder: Path) -> Any:
    import tensorflow_datasets as tfds

    return tfds.builder_from_directory(folder)


def _id_of(record: Any) -> Any:
    import tensorflow as tf

    return tf.io.parse_single_example(record, {"id": tf.io.FixedLenFeature([], tf.int64)})["id"]


@dataclass(frozen=True, kw_only=True)
class Named:
    """An example as its dataset, its split and its id."""

    dataset: str
    split: str
    id: int

    def may_be_called(self, given: int | str) -> bool:
        """Return whether an id is of this example: `7`, `train:7` or `toy/train:7`."""
        if not isinstance(given, str):
            return given == self.id
        split, _, number = given.rpartition(":")
        mine = {"", self.split, f"{self.dataset}/{self.split}"}
        return number == str(self.id) and split in mine


def name_of(text: str) -> Named:
    """Return the example that a tfds_id names, or the text of a record file's example.

    >>> name_of("toy-train.tfrecord-00002-of-00007__1")
    Named(dataset='toy', split='train', id=6)
    """
    found = _NAME.fullmatch(text)
    if found is None:
        dataset, split, number = re.fullmatch(r"(\w+)-(\w+)\.id__(\d+)", text).groups()  # type: ignore[union-attr]
        return Named(dataset=dataset, split=split, id=int(number))
    dataset, split, shard, index = found.groups()
    return Named(
        dataset=dataset, split=split, id=sum(SPLITS[dataset][split][: int(shard)]) + int(index)
    )
