"""Random readers of two small datasets on disk, as stages have them and as TFDS reads them."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shardctl.stages.stages import Read
from tests.pipelines.random_pipelines import Sized
from tests.tfds_datasets import build_dataset

SPLITS = {
    "toy": {"train": [5, 0, 3, 11, 4, 1, 7], "test": [4, 6]},
    "other": {"train": [9, 2, 8], "test": [3, 0, 5]},
}
SPECS = ("train", "train", "test", "train[20%:]", "train[3:17]", "train+test", "train[1shard:]")


@dataclass(frozen=True, kw_only=True)
class Folders:
    """The datasets, each in a folder of its own below `root`."""

    root: Path

    @classmethod
    def build(cls, root: Path) -> Folders:
        for name, splits in SPLITS.items():
            build_dataset(root, name, splits)
        return cls(root=root)

    def draw(self, rng: random.Random) -> Sized:
        name = rng.choice(list(SPLITS))
        settings: dict[str, Any] = {}
        if rng.random() < 0.8:
            settings = {"cycle": rng.choice([1, 2, 3, 16]), "block": rng.choice([1, 2, 3, 16])}
        if rng.random() < 0.6:
            settings["shuffle_seed"] = rng.choice([0, 1, 32, 7])
            settings["reshuffle"] = rng.choice([None, None, True, False])
        if rng.random() < 0.2:
            settings["reverse"] = True
        if rng.random() < 0.3:
            settings["host"] = rng.choice(["0/2", "1/2"])
            settings["host_by"] = rng.choice(["even", "files"])
        own = tuple((key, value) for key, value in settings.items() if value is not None)
        folder = str(self.root / name / "1.0.0")
        read = Read(spec=rng.choice(SPECS), data=folder, settings=own)
        return Sized(source=read, num_examples=sum(map(sum, SPLITS[name].values())))

    def dataset(self, read: Read) -> Any:
        import tensorflow as tf
        import tensorflow_datasets as tfds

        settings, spec = dict(read.settings), read.spec
        config = tfds.ReadConfig(add_tfds_id=True)
        if "cycle" in settings:
            config.interleave_cycle_length = settings["cycle"]
            config.interleave_block_length = settings["block"]
        config.shuffle_seed = settings.get("shuffle_seed")
        config.shuffle_reshuffle_each_iteration = settings.get("reshuffle")
        if settings.get("reverse"):
            config.experimental_interleave_sort_fn = lambda files: files[::-1]
        if "host" in settings:
            index, count = map(int, str(settings["host"]).split("/"))
            if settings["host_by"] == "files":
                config.input_context = tf.distribute.InputContext(count, index)
            else:
                spec = tfds.even_splits(spec, count)[index]
        builder = tfds.builder_from_directory(read.data)
        dataset = builder.as_dataset(
            split=spec, read_config=config, shuffle_files="shuffle_seed" in settings
        )
        return dataset.map(lambda example: example["tfds_id"])
