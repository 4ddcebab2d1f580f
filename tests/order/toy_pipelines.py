"""Small datasets on disk, and pipelines over them as TFDS reads them."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset
from shardctl.errors import UsageError
from shardctl.metadata.reference import merge_datasets
from shardctl.metadata.tfds_metadata import read_tfds_folder
from shardctl.order.order import Order
from shardctl.order.reader_order import ReaderOrder
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.spec.subsplit import resolve_subsplit
from shardctl.stages.stages import Read
from tests.order.order_cases import behind_the_reader, changed, read_settings
from tests.pipelines.random_pipelines import Sized
from tests.pipelines.tfds_sources import SPECS
from tests.tfds_datasets import build_dataset

SPLITS = {"train": [3, 0, 5, 17, 16, 1, 33], "test": [4, 0, 9], "extra": [6]}

FOLDERS = {
    "plain": {},
    "ordered": {"disable_shuffling": True},
    "nested": {"template": "{SPLIT}/{FILEFORMAT}/{DATASET}-{SHARD_X_OF_Y}"},
    "parquet": {"file_format": "parquet"},
}

SEVERAL = ("monday", "tuesday")


@dataclass(frozen=True, kw_only=True)
class Toy:
    """A dataset as TFDS builds it and as it is read here."""

    builder: Any
    dataset: Dataset


Toys = dict[str, Toy]


def build_toys(root: Path) -> Toys:
    """Write the toys under a folder; the fixture `toys` does so once."""
    import tensorflow_datasets as tfds

    toys = {}
    for name, options in FOLDERS.items():
        folder = build_dataset(root / name, splits=SPLITS, **options)  # type: ignore[arg-type]
        toys[name] = Toy(builder=tfds.builder_from_directory(folder), dataset=_read(folder))
    folders = [
        build_dataset(root / day, splits={"train": lengths, "test": [4]})
        for day, lengths in zip(SEVERAL, ([3, 5, 17], [2, 0, 16, 9]), strict=True)
    ]
    toys["several"] = Toy(builder=tfds.builder_from_directories(folders), dataset=_read(*folders))
    return toys


def _read(*folders: Path) -> Dataset:
    return merge_datasets([read_tfds_folder(folder) for folder in folders])


@dataclass(frozen=True, kw_only=True)
class Case:
    """A pipeline over a spec of one of the toys."""

    toy: str
    spec: str
    settings: ReadSettings
    file_order: int | None = None


@st.composite
def specs(draw: st.DrawFn, toy: str) -> str:
    """Specs of one or a few parts, whole splits and slices in every unit."""
    names = ["train", "test"] if toy == "several" else list(SPLITS)
    parts = []
    for _ in range(draw(st.sampled_from([1, 1, 1, 2, 3]))):
        name = draw(st.sampled_from(names))
        low, high = sorted(draw(st.tuples(*[st.integers(0, 3)] * 2)))
        texts = ["", f"[{low}:]", f"[:{high + 1}]", "[25%:]", f"[{low * 20}%:{high * 20 + 30}%]"]
        texts += ["[-3:]", "[:1shard]", "[1shard:]", "[-1shard:]", f"[{low / 3}%:90.5%]"]
        parts.append(name + draw(st.sampled_from(texts)))
    return draw(st.sampled_from(["all", *["+".join(parts)] * 9]))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    toy = draw(st.sampled_from([*FOLDERS, "several", "plain"]))
    settings = draw(read_settings(hosts=("even", "files", "examples")))
    if toy == "ordered":
        settings = changed(
            settings, cycle=None, shuffle_files=None, shuffle_seed=None, deterministic=None
        )
    file_order = None if settings.reverse else draw(st.none() | st.integers(0, 99))
    spec = draw(specs(toy))
    if spec == "all" and toy == "several":
        spec = "train+test"  # there TFDS's own order of the splits depends on a hash
    return Case(toy=toy, spec=spec, settings=settings, file_order=file_order)


def predicted(toy: Toy, case: Case, settings: ReadSettings) -> Order | None:
    """Return the order, None where there is none and TFDS refuses to read."""
    ranges = resolve_subsplit(case.spec, toy.dataset).ranges
    try:
        order = ReaderOrder(toy.dataset, ranges, settings)
    except UsageError:  # by InputContext, each host needs a file
        assert settings.host_by == "files"
        return None
    return order if len(order.reads) else None


def shuffled_paths(toy: Toy, seed: int) -> list[str]:
    paths = [
        f"{files.data_dir}/{name}"
        for split in toy.dataset.splits
        for files in split.files
        for name in files
    ]
    random.Random(seed).shuffle(paths)
    return paths


def read_by_tfds(toy: Toy, case: Case, settings: ReadSettings, epoch_size: int) -> Any:
    """Return TFDS's dataset of "tfds_id id", with what a user makes of it."""
    import tensorflow as tf

    tf.random.set_seed(settings.global_seed)
    paths = None if case.file_order is None else shuffled_paths(toy, case.file_order)
    dataset = reader_of_tfds(toy.builder, case.spec, settings, paths)
    dataset = dataset.map(as_line, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
    return behind_the_reader(dataset, settings, epoch_size)


def reader_of_tfds(
    builder: Any, spec: str, settings: ReadSettings, paths: list[str] | None = None
) -> Any:
    """Return what `as_dataset` reads, with `tfds_id`; files in the order of `paths`."""
    import tensorflow as tf
    import tensorflow_datasets as tfds

    host, config = settings.host or Host(index=0, count=1), tfds.ReadConfig(add_tfds_id=True)
    if settings.cycle is not None:
        config.interleave_cycle_length = settings.cycle
    config.interleave_block_length = settings.block
    config.shuffle_seed = settings.shuffle_seed
    config.shuffle_reshuffle_each_iteration = settings.reshuffle
    if settings.deterministic is not None:
        config.options.deterministic = settings.deterministic
    if settings.reverse:
        config.experimental_interleave_sort_fn = lambda files: files[::-1]
    if paths is not None:
        rank = {path: i for i, path in enumerate(paths)}
        config.experimental_interleave_sort_fn = lambda files: sorted(
            files, key=lambda file: rank[str(file.filename)]
        )
    if settings.repeat_files:
        config.repeat_filenames, config.assert_cardinality = True, False
        config.try_autocache = False
    if settings.host is not None and settings.host_by == "even":
        spec = tfds.even_splits(spec, host.count, drop_remainder=False)[host.index]
    if settings.host is not None and settings.host_by == "files":
        config.input_context = tf.distribute.InputContext(host.count, host.index)
    return builder.as_dataset(split=spec, read_config=config, shuffle_files=settings.shuffles_files)


def as_line(example: Any) -> Any:
    """Return "tfds_id id" of an example."""
    import tensorflow as tf

    return tf.strings.join([example["tfds_id"], tf.strings.as_string(example["id"])], separator=" ")


# Readers of two datasets, as stages have them.

STAGED = {
    "toy": {"train": [5, 0, 3, 11, 4, 1, 7], "test": [4, 6]},
    "other": {"train": [9, 2, 8], "test": [3, 0, 5]},
}


@dataclass(frozen=True, kw_only=True)
class Folders:
    """The datasets, each in a folder of its own below `root`."""

    root: Path

    @classmethod
    def build(cls, root: Path) -> Folders:
        for name, splits in STAGED.items():
            build_dataset(root, name, splits)
        return cls(root=root)

    def draw(self, rng: random.Random) -> Sized:
        name = rng.choice(list(STAGED))
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
        return Sized(source=read, num_examples=sum(map(sum, STAGED[name].values())))

    def dataset(self, read: Read) -> Any:
        import tensorflow_datasets as tfds

        settings: dict[str, Any] = dict(read.settings)
        builder = tfds.builder_from_directory(read.data)
        dataset = reader_of_tfds(builder, str(read.spec), ReadSettings(**settings))
        return dataset.map(lambda example: example["tfds_id"])
