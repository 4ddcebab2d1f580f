"""The random pipelines: TensorFlow runs them; their stages are said and read back as they are."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from shardctl.stages.stages import Pipeline, Range, Read
from tests.cases import counted
from tests.pipelines.random_pipelines import MOST_EXAMPLES, Element, Habits, Sized, random_pipeline
from tests.pipelines.real_pipelines import one_pass, real_dataset

ANYTHING = Habits(mixtures=0.4, seedless=0.3, scrambled=0.3)
READS = (
    Read(),
    Read(spec="train[:50%]"),
    Read(spec="test", data="mnist"),
    Read(spec="train+test", settings=(("cycle", 3), ("shuffle_seed", 7))),
    Range(stop=5),
)


def any_source(rng: random.Random) -> Sized:
    return Sized(source=rng.choice(READS), num_examples=30)


def range_source(rng: random.Random) -> Sized:
    stop = rng.randrange(40)
    return Sized(source=Range(stop=stop), num_examples=stop)


def test_every_kind_of_stage_and_of_mixture_is_drawn() -> None:
    kinds: Counter[str] = Counter()
    depths: Counter[int] = Counter()

    def count(pipeline: Pipeline) -> None:
        source: Any = pipeline.source
        kinds[source.name] += 1
        kinds.update(stage.name for stage in pipeline.stages)
        for one in getattr(source, "inputs", ()):
            count(one)

    for seed in range(300):
        drawn = random_pipeline(random.Random(seed), any_source, ANYTHING).pipeline
        count(drawn)
        depths[len(drawn.stages)] += 1
    assert len(kinds) == 17, sorted(kinds)
    assert set(range(8)) <= set(depths)


def test_tensorflow_runs_them_and_none_is_longer_than_it_is_said_to_be(tf: Any) -> None:
    lengths = []
    for seed in counted(range(20)):
        drawn = random_pipeline(random.Random(seed), range_source, Habits(mixtures=0.3))
        try:
            dataset = real_dataset(drawn.pipeline, lambda read: None, random.Random(seed))
            lengths.append(len(one_pass(dataset, drawn.element)))
        except tf.errors.InvalidArgumentError:  # it wants inputs of one shape, and checks too much
            continue
        assert drawn.most_examples is not None
        assert lengths[-1] <= min(drawn.most_examples, MOST_EXAMPLES)
    assert len(lengths) > 17
    assert sum(map(bool, lengths)) > 12


def test_a_tuple_of_batches_is_another_order_than_a_batch_of_tuples(tf: Any) -> None:
    """Expected ids by hand."""
    ones, tens = tf.data.Dataset.range(4), tf.data.Dataset.range(10, 14)
    tuples = tf.data.Dataset.zip((ones, tens)).batch(2)
    found = one_pass(tuples, ("batch", ("example", "example"), False))
    assert found == [*(0, 10, 1, 11), *(2, 12, 3, 13)]
    batches = tf.data.Dataset.zip((ones.batch(2), tens.batch(2)))
    batch: Element = ("batch", "example", False)
    assert one_pass(batches, (batch, batch)) == [0, 1, 10, 11, 2, 3, 12, 13]
