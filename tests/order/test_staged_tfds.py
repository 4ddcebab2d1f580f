"""Orders of random stages over TFDS's readers, beside TensorFlow: every pass, place and step."""

from __future__ import annotations

import contextlib
import random
from itertools import islice

import numpy as np
import pytest
from hypothesis import strategies as st

from shardctl.errors import UnpredictableOrderError
from shardctl.metadata.tfds_metadata import read_tfds_folder
from shardctl.order.order import Order
from shardctl.order.plan_order import plan_order
from shardctl.settings.read_settings import ReadSettings
from tests.cases import FUZZ, check_cases, fuzzed
from tests.order.toy_pipelines import Folders
from tests.pipelines.random_pipelines import Habits, RandomPipeline, random_pipeline
from tests.pipelines.real_pipelines import examples_of, real_dataset

NUM_PASSES = 3
CUT = 40  # elements that are read where there may be no end


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    return Folders.build(tmp_path_factory.mktemp("staged"))


def agrees_with_tensorflow(folders: Folders, made: RandomPipeline, seed: int | None) -> int:
    """Compare all passes with what TensorFlow hands out; return how many could be compared."""
    import tensorflow as tf

    base = read_tfds_folder(folders.root / "toy" / "1.0.0")
    tf.random.set_seed(seed)
    dataset = real_dataset(made.pipeline, folders.dataset)
    compared = 0
    for index in range(NUM_PASSES):
        try:
            elements = [
                [str(one) for one in examples_of(value, made.element)]
                for value in islice(dataset, CUT if made.most is None else None)
            ]
        except tf.errors.InvalidArgumentError:
            break  # elements that TensorFlow does not join, as batches of two shapes
        settings = ReadSettings(stages=made.pipeline, pass_index=index, global_seed=seed)
        try:
            order = plan_order(base, None, settings).order
        except UnpredictableOrderError:
            break  # what threads read ahead of a pass that was cut
        if made.most is None and (order.is_endless or len(elements) == CUT):
            assert_begins(order, elements)
            return compared + 1
        assert not order.is_endless  # `repeat` of nothing ends, and so does a mixture by its inputs
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
    # An example is found at all places that it has, and at no other; or it is refused, where a
    # reader was begun of which nothing is handed out, with seeds that depend on timing.
    with contextlib.suppress(UnpredictableOrderError):
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
    folders: Folders, habits: Habits, *, may_be_endless: bool
) -> st.SearchStrategy[tuple[RandomPipeline, int | None]]:
    def drawn(rng: random.Random) -> tuple[RandomPipeline, int | None]:
        made = random_pipeline(rng, folders.draw, habits, may_be_endless=may_be_endless)
        return made, rng.choice([None, None, 7])

    return st.randoms(use_true_random=False).map(drawn)


@fuzzed(4, FUZZ // 2)
def test_stages_hand_out_what_tensorflow_does(folders: Folders, num_cases: int) -> None:
    # Some pipelines without an end keep TensorFlow busy for ever before the first element.
    is_fuzz = num_cases == FUZZ // 2
    cases = _cases(folders, Habits(), may_be_endless=not is_fuzz)
    check_cases(cases, lambda case: agrees_with_tensorflow(folders, *case), num_cases)
