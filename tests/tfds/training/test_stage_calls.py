"""Stages as real datasets, beside the calls of a script."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args

import pytest

import shardctl.tfds
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import HOST_MODES, Host, HostBy
from shardctl.stages.pipelines import sources_of
from shardctl.stages.stages import Pipeline, SampleFromDatasets, Shared, Values, Zip
from shardctl.stages.text import parse_stages
from shardctl.tfds.training.pipeline import (
    StageCalls,
    input_context_of_host,
    shard_of_host,
    split_of_host,
)
from tests.cases import FUZZ, add_cases, check_cases
from tests.order.order_cases import changed, elements
from tests.order.toy_pipelines import (
    Case,
    Toys,
    as_line,
    cases,
    predicted,
    read_by_tfds,
    shuffled_paths,
)

TEXTS = (
    "cache | shuffle(5, seed=7) | map | repeat(2) | batch(3) | prefetch(2)",
    "shuffle(5, seed=7, reshuffle=False) | take(7) | repeat(2) | skip(3) | shard(2, 1)",
    "batch(4, drop_remainder=True) | shuffle(3, seed=1) | unbatch | map(calls=2)",
    "range(9) | concatenate(range(3)) | shuffle(4, seed=2)",
    "zip(a | batch(2, drop_remainder=True), b | shuffle(3, seed=1)) | batch(2)",
    "sample_from_datasets([a, b | repeat(2)], weights=[0.7, 0.3], seed=4) | shuffle(5, seed=3)",
    "choose_from_datasets([a, b], choices=range(2) | repeat)",
    "a | shuffle(5, seed=7) | with_options(fusion=False) | repeat(2)",
)
BY_HAND: tuple[Callable[[Any, Any], Any], ...] = (
    lambda ds, a: a.cache().shuffle(5, seed=7).map(lambda x: x + 0).repeat(2).batch(3).prefetch(2),
    lambda ds, a: (
        a.shuffle(5, seed=7, reshuffle_each_iteration=False).take(7).repeat(2).skip(3).shard(2, 1)
    ),
    lambda ds, a: a.batch(4, drop_remainder=True).shuffle(3, seed=1).unbatch().map(lambda x: x + 0),
    lambda ds, a: ds.range(9).concatenate(ds.range(3)).shuffle(4, seed=2),
    lambda ds, a: ds.zip((a.batch(2, drop_remainder=True), a.shuffle(3, seed=1))).batch(2),
    lambda ds, a: ds.sample_from_datasets([a, a.repeat(2)], [0.7, 0.3], seed=4).shuffle(5, seed=3),
    lambda ds, a: ds.choose_from_datasets([a, a], ds.range(2).repeat()),
    lambda ds, a: _unfused(a.shuffle(5, seed=7)).repeat(2),
)


def _unfused(dataset: Any) -> Any:
    import tensorflow as tf

    options = tf.data.Options()
    options.experimental_optimization.shuffle_and_repeat_fusion = False
    return dataset.with_options(options)


def passes(dataset: Any) -> list[Any]:
    import tensorflow as tf

    return [
        [[part.numpy().tolist() for part in tf.nest.flatten(e)] for e in dataset] for _ in range(3)
    ]


@pytest.mark.parametrize(("text", "by_hand"), zip(TEXTS, BY_HAND, strict=True))
def test_stages_are_the_calls_of_a_script(
    tf: Any, text: str, by_hand: Callable[[Any, Any], Any]
) -> None:
    made = _calls().dataset(parse_stages(text))
    # One stage parts another from the next as it does in a script, so later passes agree too.
    assert passes(made) == passes(by_hand(tf.data.Dataset, tf.data.Dataset.range(11)))
    add_cases(3)


def test_pairs_are_the_seeds_of_kernels() -> None:
    text = "shuffle(5, {}) | map | repeat(2)"
    seeds = ("seed=7", "seed=(87654321, 7)")
    one, two = (_calls().dataset(parse_stages(text.format(seed))) for seed in seeds)
    assert passes(one) == passes(two)


def _calls() -> StageCalls:
    import tensorflow as tf

    return StageCalls(reader=lambda _: tf.data.Dataset.range(11))


def test_a_shared_dataset_is_one_object(tf: Any) -> None:
    shared = Shared(label="ds", pipeline=parse_stages("range(9) | shuffle(4, seed=1)"))
    twice = Pipeline(source=Zip(inputs=(Pipeline(source=shared),) * 2))
    made = StageCalls(reader=lambda _: None).dataset(twice)
    dataset = tf.data.Dataset.range(9).shuffle(4, seed=1)
    assert passes(made) == passes(tf.data.Dataset.zip((dataset, dataset)))
    assert len(list(sources_of(twice))) == 1


def test_code_of_the_script_is_refused() -> None:
    for text in ("filter", "flat_map"):
        with pytest.raises(UsageError, match="code of the script"):
            _calls().dataset(parse_stages(text))
    with pytest.raises(UsageError, match=r"by the seeds \(1, 7\)"):
        _calls().dataset(parse_stages("sample_from_datasets([a, b], seed=(1, 7))"))


def test_weights_of_64_bits_are_given_as_an_array(tf: Any) -> None:
    inputs = tuple(Pipeline(source=Values(values=(10 * number,) * 20)) for number in range(3))

    def made(weight: float, dtype: Literal["float32", "float64"]) -> list[int]:
        weights = (weight, weight, 0.0)
        source = SampleFromDatasets(inputs=inputs, weights=weights, seed=7, weights_dtype=dtype)
        return [int(number) for number in _calls().dataset(Pipeline(source=source))]

    assert made(1e-60, "float64") == made(1.0, "float64") == made(1.0, "float32")
    # 1e-60 is 0 in float32: nothing is left to choose.
    with pytest.raises(tf.errors.InvalidArgumentError):
        made(1e-60, "float32")


# The calls of the host modes: each does what the core says of its mode.


def _shared(settings: ReadSettings, mode: HostBy, count: int) -> list[int]:
    import tensorflow as tf

    numbers = tf.data.Dataset.range(count)
    return [int(n) for n in shard_of_host(numbers, settings, mode).as_numpy_iterator()]


@pytest.mark.parametrize("word", get_args(HostBy))
def test_each_host_mode_does_what_it_says(tfds: Any, word: HostBy) -> None:
    host, mode, alone = Host(index=1, count=3), HOST_MODES[word], ReadSettings(host_by=word)
    assert (split_of_host("train", alone), input_context_of_host(alone)) == ("train", None)
    assert _shared(alone, "files", 3) == _shared(alone, "examples", 3) == [0, 1, 2]
    settings = ReadSettings(host=host, host_by=word)
    split = split_of_host("train", settings)
    assert split == (tfds.even_splits("train", 3)[1] if word == "even" else "train")
    context = input_context_of_host(settings)
    given = None if context is None else (context.num_input_pipelines, context.input_pipeline_id)
    assert given == ((3, 1) if word == "files" else None)
    assert _shared(settings, "files", 8) == list(range(8))[mode.own_instructions(8, host)]
    stride, phase = mode.stride_and_phase(host)
    assert _shared(settings, "examples", 8) == list(range(8))[phase::stride]


# Settings as TFDS and tf.data calls: the dataset that one writes by hand, and what is refused.


def checker(toys: Toys) -> Callable[[Case], None]:
    def check(case: Case) -> None:
        import tensorflow as tf

        toy, settings = toys[case.toy], case.settings
        if case.file_order is not None:
            settings = changed(settings, file_order=tuple(shuffled_paths(toy, case.file_order)))
        order = predicted(toy, case, settings)
        if order is None:
            return
        expected = read_by_tfds(toy, case, settings, order.epoch_size)
        passes = [elements(expected, bytes.decode) for _ in range(1 + (not settings.repeat_files))]
        tf.random.set_seed(None)
        dataset = shardctl.tfds.pipeline(
            toy.builder, case.spec, settings, transform=as_line, add_tfds_id=True
        )
        assert [elements(dataset, bytes.decode) for _ in passes] == passes

    return check


def test_it_is_the_pipeline_written_by_hand(toys: Toys) -> None:
    check_cases(cases(), checker(toys), 2)


@pytest.mark.fuzz
def test_it_is_the_pipeline_written_by_hand_fuzzed(toys: Toys) -> None:
    check_cases(cases(), checker(toys), FUZZ // 4)


def test_all_of_several_folders_has_no_order_to_keep_a_place_in(toys: Toys) -> None:
    builder, settings = toys["several"].builder, ReadSettings(batch=2)
    for call in (
        lambda: shardctl.tfds.pipeline(builder, "all", settings),
        lambda: shardctl.tfds.Position(builder, "all", settings),
        lambda: shardctl.tfds.exact_order(builder, "all", settings, consumed=3),
    ):
        with pytest.raises(UnpredictableOrderError, match="name them in the order"):
            call()
    assert shardctl.tfds.Position(builder, "test+train", settings).num_examples == 60
