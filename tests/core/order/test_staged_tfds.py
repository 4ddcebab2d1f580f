"""Orders of random stages over TFDS's readers, beside TensorFlow: every pass, place and step."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from shardctl.core.order.order import Order
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.stages.stages import Read
from shardctl.errors import UnpredictableOrderError
from shardctl.planning.order import plan_order
from shardctl.readers.tfds_metadata import read_tfds_folder
from tests.cases import FUZZ, check_cases
from tests.pipelines.random_pipelines import Habits, RandomPipeline, Sized, random_pipeline
from tests.pipelines.real_pipelines import examples_of, real_dataset
from tests.tfds_datasets import build_dataset

SPLITS = {
    "toy": {"train": [5, 0, 3, 11, 4, 1, 7], "test": [4, 6]},
    "other": {"train": [9, 2, 8], "test": [3, 0, 5]},
}
SPECS = ("train", "train", "test", "train[20%:]", "train[3:17]", "train+test", "train[1shard:]")
NUM_PASSES = 3


@dataclass(frozen=True, kw_only=True)
class Folders:
    root: Path

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


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    root = tmp_path_factory.mktemp("staged")
    for name, splits in SPLITS.items():
        build_dataset(root, name, splits)
    return Folders(root=root)


def agrees_with_tensorflow(folders: Folders, made: RandomPipeline, seed: int | None) -> int:
    """Compare all passes with what TensorFlow hands out; return how many could be compared."""
    import tensorflow as tf

    base = read_tfds_folder(folders.root / "toy" / "1.0.0")
    tf.random.set_seed(seed)
    dataset = real_dataset(made.pipeline, folders.dataset)
    compared = 0
    for index in range(NUM_PASSES):
        endless = made.most is None
        elements = [
            [str(one) for one in examples_of(value, made.element)]
            for value in islice(dataset, 40 if endless else None)
        ]
        settings = ReadSettings(stages=made.pipeline, pass_index=index, global_seed=seed)
        try:
            order = plan_order(base, None, settings).order
        except UnpredictableOrderError:
            break  # what threads read ahead of a pass that was cut
        assert order.is_endless == endless
        if endless:
            assert_begins(order, elements)
            return compared + 1
        assert_same(order, elements)
        compared += 1
    return compared


def assert_begins(order: Order, elements: list[list[str]]) -> None:
    real = [name for element in elements for name in element]
    codes = order.read(0, len(real))
    assert order.codes.tfds_ids(codes) == real
    if elements and order.has_steps:
        assert len(order.positions_in_step(len(elements) - 1)) == len(elements[-1])
        assert order.steps_of([len(real) - 1])[0].tolist() == [len(elements) - 1]


def assert_same(order: Order, elements: list[list[str]]) -> None:
    real = [name for element in elements for name in element]
    assert order.num_examples == len(real)
    codes = order.read(0, order.num_examples)
    assert order.codes.tfds_ids(codes) == real
    rng = np.random.default_rng(len(real))
    some = rng.integers(0, max(len(real), 1), min(len(real), 20))
    assert order.codes_at(some).tolist() == codes[some].tolist()
    if not real:
        return
    # An example is found at all places that it has, and at no other.
    which, positions = order.positions_of(codes[some])
    expected = [
        (query, position)
        for query, place in enumerate(some.tolist())
        for position in np.flatnonzero(codes == codes[place]).tolist()
    ]
    assert list(zip(which.tolist(), positions.tolist(), strict=True)) == expected
    if order.has_steps:
        steps, within = order.steps_of(np.arange(len(real)))
        assert order.num_steps == len(elements)
        assert list(zip(steps.tolist(), within.tolist(), strict=True)) == [
            (step, index) for step, element in enumerate(elements) for index in range(len(element))
        ]
    start, stop = sorted(rng.integers(0, len(real) + 1, 2).tolist())
    assert order.read(start, stop).tolist() == codes[start:stop].tolist()


def _cases(
    folders: Folders, habits: Habits
) -> st.SearchStrategy[tuple[RandomPipeline, int | None]]:
    def drawn(rng: random.Random) -> tuple[RandomPipeline, int | None]:
        made = random_pipeline(rng, folders.draw, habits, may_be_endless=True)
        return made, rng.choice([None, None, 7])

    return st.randoms(use_true_random=False).map(drawn)


def test_stages_hand_out_what_tensorflow_does(folders: Folders) -> None:
    check_cases(_cases(folders, Habits()), lambda case: agrees_with_tensorflow(folders, *case), 60)


@pytest.mark.fuzz
def test_stages_hand_out_what_tensorflow_does_fuzzed(folders: Folders) -> None:
    check_cases(
        _cases(folders, Habits()),
        lambda case: agrees_with_tensorflow(folders, *case),
        FUZZ,
        fuzz=True,
    )
