"""Real pipelines: what `inspect` says of them beside what iterating them hands out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shardctl.tfds.inspecting.inspect import inspect
from tests.tfds_datasets import build_dataset

NUM_PASSES = 3
TRAIN, TEST = [7, 5, 0, 9, 4], [4, 3]


@dataclass(frozen=True)
class World:
    """Datasets on disk: `toy` (train and test), `one` (a single file), `parquet`, record files."""

    root: Path

    def builder(self, name: str = "toy") -> Any:
        import tensorflow_datasets as tfds

        return tfds.builder_from_directory(self.root / name / "1.0.0")

    def read(self, split: Any = "train", name: str = "toy", **arguments: Any) -> Any:
        """Return what `as_dataset` reads, under a ReadConfig of the arguments that it has."""
        import tensorflow_datasets as tfds

        own = ("shuffle_files", "as_supervised", "decoders", "batch_size")
        given = {key: arguments.pop(key) for key in own if key in arguments}
        options = arguments.pop("options", {})
        config = tfds.ReadConfig(**arguments)
        for key, value in options.items():
            setattr(config.options, key, value)
        return self.builder(name).as_dataset(split=split, read_config=config, **given)

    def files(self, pattern: str = "*") -> list[str]:
        return sorted(str(path) for path in (self.root / "plain").glob(pattern))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    import tensorflow as tf

    root = tmp_path_factory.mktemp("inspect")
    build_dataset(root, "toy", {"train": TRAIN, "test": TEST})
    build_dataset(root, "one", {"train": [11]})
    build_dataset(root, "many", {"train": [41, 0, 57, 30]})
    build_dataset(root, "parquet", {"train": TRAIN}, file_format="parquet")
    build_dataset(root, "ordered", {"train": TRAIN}, disable_shuffling=True)
    (root / "plain").mkdir()
    first = 0
    for index, length in enumerate([3, 6, 2, 5]):
        with tf.io.TFRecordWriter(str(root / "plain" / f"part-{index}.tfrecord")) as writer:
            for number in range(first, first + length):
                writer.write(str(number).encode())
        first += length
    return World(root)


@pytest.fixture(autouse=True)
def no_global_seed() -> Iterator[None]:
    from tensorflow.python.eager import context

    def clear() -> None:
        context.context()._seed = None
        context.context()._rng = None

    clear()
    yield
    clear()


def flat(value: Any) -> list[int]:
    """Return the ids in an element, whatever holds them."""
    if isinstance(value, dict):
        return flat(value["id"])
    if isinstance(value, tuple | list):
        return [number for part in value for number in flat(part)]
    array = np.asarray(value)
    if array.dtype.kind in "SO":
        return [int(text) for text in array.reshape(-1)]
    return [int(number) for number in array.reshape(-1)]


def handed_out(dataset: Any) -> list[int]:
    """Return the ids that iterating a dataset once hands out."""
    return [number for element in dataset.as_numpy_iterator() for number in flat(element)]


def data() -> Any:
    import tensorflow as tf

    return tf.data


def plus_nothing(example: Any) -> Any:
    """Return an example by way of an operation, so that the map is no identity."""
    import tensorflow as tf

    return tf.nest.map_structure(tf.identity, example) if example is None else _added(example)


def _added(example: Any) -> Any:
    import tensorflow as tf

    return tf.nest.map_structure(
        lambda part: part + 0 if part.dtype.is_integer else tf.strings.join([part]), example
    )


def ids_of(examples: Any) -> Any:
    return examples.map(lambda example: example["id"])


Make = Callable[[World], Any]
CASES: dict[str, Make] = {}


def case(make: Make) -> Make:
    CASES[make.__name__] = make
    return make


# The readers of TFDS.


@case
def plain_read(world: World) -> Any:
    return world.read()


@case
def tfds_load(world: World) -> Any:
    import tensorflow_datasets as tfds

    return tfds.load("toy", split="train", data_dir=str(world.root), shuffle_files=False)


@case
def subsplit(world: World) -> Any:
    return world.read("train[3:14]")


@case
def percent(world: World) -> Any:
    return world.read("train[:50%]")


@case
def pct1_dropremainder(world: World) -> Any:
    import tensorflow_datasets as tfds

    part = tfds.core.ReadInstruction(
        "train", from_=10, to=77, rounding="pct1_dropremainder", unit="%"
    )
    return world.read(part, name="many")


@case
def even_split_of_even_splits(world: World) -> Any:
    import tensorflow_datasets as tfds

    halves = tfds.even_splits("train", 2)
    return world.read(tfds.even_splits(halves[1], 3)[1])


@case
def one_split_twice(world: World) -> Any:
    return world.read("train[:9]+train[4:]")


@case
def shuffled_files(world: World) -> Any:
    return world.read(shuffle_files=True, shuffle_seed=7)


@case
def shuffled_files_not_again(world: World) -> Any:
    return world.read(shuffle_files=True, shuffle_seed=7, shuffle_reshuffle_each_iteration=False)


@case
def cycle_and_block(world: World) -> Any:
    return world.read(
        "train[2:]",
        interleave_cycle_length=3,
        interleave_block_length=2,
        shuffle_files=True,
        shuffle_seed=1,
    )


@case
def cycle_of_none(world: World) -> Any:
    return world.read(interleave_cycle_length=None, interleave_block_length=1)


@case
def cycle_of_none_without_parallel_calls(world: World) -> Any:
    return world.read(
        interleave_cycle_length=None,
        interleave_block_length=2,
        num_parallel_calls_for_interleave_files=None,
    )


@case
def cycle_of_none_with_two_calls(world: World) -> Any:
    return world.read(
        interleave_cycle_length=None,
        interleave_block_length=2,
        num_parallel_calls_for_interleave_files=2,
    )


@case
def block_of_none(world: World) -> Any:
    return world.read(interleave_block_length=None, interleave_cycle_length=2)


@case
def input_context(world: World) -> Any:
    import tensorflow as tf

    return world.read(
        input_context=tf.distribute.InputContext(num_input_pipelines=2, input_pipeline_id=1),
        shuffle_files=True,
        shuffle_seed=3,
        interleave_block_length=2,
    )


@case
def sorted_back_to_front(world: World) -> Any:
    return world.read(experimental_interleave_sort_fn=lambda files: files[::-1])


@case
def sorted_by_hand(world: World) -> Any:
    order = [2, 0, 3, 1]
    return world.read(
        experimental_interleave_sort_fn=lambda files: [files[i] for i in order],
        interleave_cycle_length=2,
        interleave_block_length=3,
    )


@case
def sorted_to_read_a_file_twice(world: World) -> Any:
    return world.read(
        experimental_interleave_sort_fn=lambda files: [*files, files[0]], assert_cardinality=False
    )


@case
def with_tfds_ids(world: World) -> Any:
    return world.read("train[5:20]", add_tfds_id=True)


@case
def without_autocache_and_prefetch(world: World) -> Any:
    return world.read(try_autocache=False, skip_prefetch=True, assert_cardinality=False)


@case
def decoded_by_one_thread_out_of_order(world: World) -> Any:
    return world.read(num_parallel_calls_for_decode=1, options={"deterministic": False})


@case
def repeated_files_cut(world: World) -> Any:
    return (
        world.read(
            repeat_filenames=True,
            assert_cardinality=False,
            try_autocache=False,
            shuffle_files=True,
            shuffle_seed=2,
            num_parallel_calls_for_interleave_files=None,
            num_parallel_calls_for_decode=None,
            skip_prefetch=True,
        ).take(60)
        if False
        else world.read(
            repeat_filenames=True,
            assert_cardinality=False,
            try_autocache=False,
            interleave_block_length=2,
        ).take(60)
    )


@case
def parquet(world: World) -> Any:
    return world.read("train[3:]", name="parquet", shuffle_files=True, shuffle_seed=5)


@case
def ordered(world: World) -> Any:
    return world.read(name="ordered")


@case
def one_file_without_a_seed(world: World) -> Any:
    return world.read(name="one", shuffle_files=True)


@case
def partly_decoded(world: World) -> Any:
    import tensorflow_datasets as tfds

    return world.read(decoders=tfds.decode.PartialDecoding({"id": True}))


@case
def batched_by_tfds(world: World) -> Any:
    return world.read(batch_size=4)


# Stages behind a reader: the pipelines of the issue among them.


def _files(world: World, **more: Any) -> Any:
    return world.read(shuffle_files=True, shuffle_seed=3, **more)


@case
def canonical(world: World) -> Any:
    return ids_of(_files(world)).shuffle(6, seed=2).repeat(2).batch(4).prefetch(2)


@case
def cache_before_shuffle(world: World) -> Any:
    return _files(world).cache().shuffle(6, seed=2)


@case
def cache_after_shuffle(world: World) -> Any:
    return _files(world).shuffle(6, seed=2).cache()


@case
def repeat_before_shuffle(world: World) -> Any:
    return _files(world).repeat(2).shuffle(6, seed=2)


@case
def map_between_shuffle_and_repeat(world: World) -> Any:
    return ids_of(_files(world)).shuffle(6, seed=2).map(plus_nothing).repeat(2)


@case
def identity_between_shuffle_and_repeat(world: World) -> Any:
    return ids_of(_files(world)).shuffle(6, seed=2).map(lambda x: x).repeat(2)


@case
def batch_between_shuffle_and_repeat(world: World) -> Any:
    return ids_of(_files(world)).shuffle(6, seed=2).batch(4).repeat(2)


@case
def prefetch_between_shuffle_and_repeat(world: World) -> Any:
    return ids_of(_files(world)).shuffle(6, seed=2).prefetch(2).repeat(2)


@case
def options_between_shuffle_and_repeat(world: World) -> Any:
    import tensorflow as tf

    return ids_of(_files(world)).shuffle(6, seed=2).with_options(tf.data.Options()).repeat(2)


@case
def enumerate_between_shuffle_and_repeat(world: World) -> Any:
    counted = ids_of(_files(world)).shuffle(6, seed=2).enumerate()
    return counted.repeat(2).map(lambda index, number: number)


@case
def assertion_between_shuffle_and_repeat(world: World) -> Any:
    import tensorflow as tf

    checked = tf.data.experimental.assert_cardinality(sum(TRAIN))
    return ids_of(_files(world)).shuffle(6, seed=2).apply(checked).repeat(2)


@case
def fusion_switched_off(world: World) -> Any:
    import tensorflow as tf

    options = tf.data.Options()
    options.experimental_optimization.shuffle_and_repeat_fusion = False
    return ids_of(_files(world)).shuffle(6, seed=2).repeat(2).with_options(options)


@case
def no_optimizations(world: World) -> Any:
    import tensorflow as tf

    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    plain = ids_of(_files(world)).shuffle(6, seed=2).map(lambda x: x).repeat(2)
    return plain.repeat(1).with_options(options)


@case
def no_noop_elimination(world: World) -> Any:
    import tensorflow as tf

    options = tf.data.Options()
    options.experimental_optimization.noop_elimination = False
    return ids_of(_files(world)).shuffle(6, seed=2).skip(0).repeat(2).with_options(options)


@case
def options_of_the_reader(world: World) -> Any:
    import tensorflow as tf

    options = tf.data.Options()
    options.experimental_optimization.shuffle_and_repeat_fusion = False
    import tensorflow_datasets as tfds

    config = tfds.ReadConfig(shuffle_seed=3, options=options)
    read = world.builder().as_dataset(split="train", read_config=config, shuffle_files=True)
    return read.shuffle(6, seed=2).repeat(2)


@case
def seedless_shuffle_after_others(world: World) -> Any:
    import tensorflow as tf

    tf.random.set_seed(5)
    tf.random.uniform([])
    world.read(shuffle_files=True).shuffle(3)
    return ids_of(world.read(shuffle_files=True, shuffle_seed=1)).shuffle(9)


@case
def two_shuffles_under_a_global_seed(world: World) -> Any:
    import tensorflow as tf

    tf.random.set_seed(11)
    return ids_of(world.read()).shuffle(4).shuffle(5, seed=3)


@case
def a_global_seed_of_zero(world: World) -> Any:
    import tensorflow as tf

    tf.random.set_seed(0)
    return ids_of(world.read()).shuffle(4, seed=0).repeat(2)


@case
def seeds_before_and_after_a_global_seed(world: World) -> Any:
    import tensorflow as tf

    before = ids_of(world.read(shuffle_files=True, shuffle_seed=1)).shuffle(4, seed=2)
    tf.random.set_seed(11)
    return before.shuffle(5, seed=3)


@case
def keras_seeds(world: World) -> Any:
    import keras

    keras.utils.set_random_seed(812)
    return world.read(shuffle_files=True, shuffle_seed=1).shuffle(7)


@case
def take_behind_the_reader(world: World) -> Any:
    return ids_of(world.read(interleave_block_length=2)).take(10).shuffle(4, seed=1)


@case
def skip_behind_the_reader(world: World) -> Any:
    return ids_of(_files(world)).skip(7).batch(4, drop_remainder=True)


@case
def shard_behind_the_reader(world: World) -> Any:
    return ids_of(_files(world)).shard(3, 1).shuffle(4, seed=1).repeat(2).batch(4)


@case
def whole_shuffle(world: World) -> Any:
    import tensorflow as tf

    return ids_of(world.read()).shuffle(tf.data.UNKNOWN_CARDINALITY, seed=1)


@case
def shuffle_not_again(world: World) -> Any:
    return ids_of(_files(world)).shuffle(5, seed=1, reshuffle_each_iteration=False).repeat(2)


@case
def unbatched(world: World) -> Any:
    return ids_of(_files(world)).batch(4).shuffle(3, seed=1).unbatch().batch(5)


@case
def rebatched(world: World) -> Any:
    return ids_of(_files(world)).batch(6).rebatch(4, drop_remainder=True)


@case
def padded(world: World) -> Any:
    return ids_of(_files(world)).padded_batch(4, drop_remainder=True)


@case
def ragged(world: World) -> Any:
    import tensorflow as tf

    numbers = ids_of(_files(world)).ragged_batch(4)
    return numbers.map(lambda batch: batch if isinstance(batch, tf.Tensor) else batch.to_tensor())


@case
def batched_in_parallel(world: World) -> Any:
    return ids_of(_files(world)).batch(4, num_parallel_calls=2)


@case
def mapped_in_parallel(world: World) -> Any:
    import tensorflow as tf

    mapped = ids_of(_files(world)).map(plus_nothing, num_parallel_calls=tf.data.AUTOTUNE)
    return mapped.shuffle(4, seed=9).map(plus_nothing, num_parallel_calls=3, deterministic=True)


@case
def stateful_map(world: World) -> Any:
    import tensorflow as tf

    def noisy(number: Any) -> Any:
        return number + tf.cast(tf.random.uniform([], 0, 1, tf.int32), tf.int64)

    return ids_of(_files(world)).map(noisy).shuffle(4, seed=2).repeat(2)


@case
def ready_first_by_one_thread(world: World) -> Any:
    import tensorflow as tf

    options = tf.data.Options()
    options.deterministic = False
    plain = ids_of(world.read(num_parallel_calls_for_decode=1))
    return plain.map(plus_nothing, num_parallel_calls=1).with_options(options)


@case
def options_that_change_no_order(world: World) -> Any:
    import tensorflow as tf

    options = tf.data.Options()
    options.autotune.enabled = False
    options.threading.private_threadpool_size = 2
    options.experimental_optimization.map_parallelization = True
    options.deterministic = True
    return ids_of(_files(world)).shuffle(4, seed=2).repeat(2).with_options(options)


@case
def concatenated(world: World) -> Any:
    return ids_of(_files(world)).shuffle(4, seed=1).concatenate(ids_of(world.read("train[:5]")))


@case
def many_stages(world: World) -> Any:
    read = ids_of(_files(world)).shard(2, 0).cache().shuffle(5, seed=4).batch(3)
    return read.repeat(2).shuffle(4, seed=6).unbatch().skip(3).take(20).batch(6).prefetch(1)


# Mixtures.


@case
def sampled(world: World) -> Any:
    import tensorflow as tf

    inputs = [ids_of(_files(world)).repeat(2), ids_of(world.read("train[:9]")).shuffle(4, seed=1)]
    return tf.data.Dataset.sample_from_datasets(inputs, weights=[0.7, 0.3], seed=42)


@case
def sampled_until_one_ends(world: World) -> Any:
    import tensorflow as tf

    inputs = [ids_of(_files(world)), ids_of(world.read("train[:9]")).repeat()]
    return tf.data.Dataset.sample_from_datasets(
        inputs, weights=np.array([1.0, 5.0]), seed=1, stop_on_empty_dataset=True
    )


@case
def sampled_without_weights(world: World) -> Any:
    import tensorflow as tf

    inputs = [ids_of(world.read(f"train[{i}:]")) for i in (0, 5, 9)]
    return tf.data.Dataset.sample_from_datasets(inputs, seed=3).shuffle(5, seed=1)


@case
def sampled_with_a_weight_of_zero(world: World) -> Any:
    import tensorflow as tf

    inputs = [ids_of(world.read(f"train[{i}:]")) for i in (0, 5, 9)]
    return tf.data.Dataset.sample_from_datasets(inputs, weights=[0.5, 0.0, 0.5], seed=3)


@case
def sampled_under_a_global_seed(world: World) -> Any:
    import tensorflow as tf

    tf.random.set_seed(9)
    inputs = [ids_of(world.read()).shuffle(5), ids_of(world.read("train[:9]")).shuffle(4)]
    return tf.data.Dataset.sample_from_datasets(inputs, weights=[0.7, 0.3])


@case
def chosen(world: World) -> Any:
    import tensorflow as tf

    inputs = [ids_of(world.read()), ids_of(world.read("train[:9]"))]
    choices = tf.data.Dataset.range(2).repeat(6)
    return tf.data.Dataset.choose_from_datasets(inputs, choices)


@case
def chosen_by_values(world: World) -> Any:
    import tensorflow as tf

    inputs = [ids_of(world.read()), ids_of(world.read("train[:9]"))]
    choices = tf.data.Dataset.from_tensor_slices(np.array([1, 1, 0, 1], np.int64)).repeat()
    return tf.data.Dataset.choose_from_datasets(inputs, choices, stop_on_empty_dataset=False)


@case
def zipped(world: World) -> Any:
    import tensorflow as tf

    left = ids_of(_files(world)).shuffle(4, seed=1)
    right = ids_of(world.read("train[:9]")).repeat(2)
    return tf.data.Dataset.zip((left, right)).repeat(2)


@case
def mixture_of_mixtures(world: World) -> Any:
    import tensorflow as tf

    sample = tf.data.Dataset.sample_from_datasets
    inner = sample([ids_of(world.read("train[:9]")), ids_of(world.read("train[9:]"))], seed=1)
    return sample([inner.repeat(2), ids_of(_files(world))], [0.6, 0.4], seed=2).batch(4)


# Sources that are no dataset of TFDS.


@case
def counted(world: World) -> Any:
    return data().Dataset.range(13).shuffle(4, seed=1).repeat(2).batch(5)


@case
def slices(world: World) -> Any:
    return data().Dataset.from_tensor_slices({"id": np.arange(9)}).shuffle(9, seed=1)


@case
def mixed_counts(world: World) -> Any:
    dataset = data().Dataset
    inputs = [dataset.range(9).shuffle(4, seed=1).repeat(2), dataset.range(6)]
    return dataset.sample_from_datasets(inputs, weights=[0.5, 0.5], seed=0).take(15)


# Record files without TFDS: ids are places in the sorted list of files.


@case
def record_files(world: World) -> Any:
    return data().TFRecordDataset(world.files())


@case
def record_files_of_a_list(world: World) -> Any:
    import tensorflow as tf

    listed = tf.data.Dataset.list_files(str(world.root / "plain" / "*"), shuffle=False)
    return listed.interleave(
        tf.data.TFRecordDataset, cycle_length=2, block_length=2, num_parallel_calls=tf.data.AUTOTUNE
    ).shuffle(4, seed=1)


@case
def record_files_shuffled(world: World) -> Any:
    import tensorflow as tf

    listed = tf.data.Dataset.list_files(str(world.root / "plain" / "*"), seed=5)
    return listed.interleave(lambda file: tf.data.TFRecordDataset(file), cycle_length=3).batch(4)


@case
def record_files_sharded(world: World) -> Any:
    import tensorflow as tf

    files = tf.data.Dataset.from_tensor_slices(world.files()).shard(2, 1).shuffle(8, seed=1)
    return files.interleave(tf.data.TFRecordDataset, deterministic=True).map(lambda record: record)


@case
def record_files_in_turn(world: World) -> Any:
    import tensorflow as tf

    return tf.data.Dataset.from_tensor_slices(world.files()[::-1]).flat_map(tf.data.TFRecordDataset)


# Distribution.


def _sharded(dataset: Any, policy: str, count: int, index: int) -> Any:
    import tensorflow as tf
    from tensorflow.python.data.experimental.ops import distribute

    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = getattr(
        tf.data.experimental.AutoShardPolicy, policy
    )
    return distribute._AutoShardDataset(dataset.with_options(options), count, index)


@case
def autosharded_by_file(world: World) -> Any:
    read = ids_of(_files(world, interleave_block_length=2)).shuffle(4, seed=1).repeat(2).batch(3)
    return _sharded(read, "FILE", 2, 1)


@case
def autosharded_by_data(world: World) -> Any:
    return _sharded(ids_of(_files(world)).shuffle(4, seed=1).batch(3).prefetch(1), "DATA", 2, 1)


@case
def not_autosharded(world: World) -> Any:
    return _sharded(ids_of(_files(world)).shuffle(4, seed=1).batch(3), "OFF", 2, 1)


@case
def autosharded_without_policy(world: World) -> Any:
    return _sharded(ids_of(_files(world)).shuffle(4, seed=1).batch(3), "AUTO", 3, 0)


@pytest.mark.parametrize("name", CASES)
def test_inspects_what_is_handed_out(world: World, name: str) -> None:
    dataset = CASES[name](world)
    found = inspect(dataset)
    assert found.predictable, found.open or found.refused
    for index in range(NUM_PASSES):
        got = handed_out(dataset)
        expected = list(found.ids(index))
        assert [int(str(each).rpartition(":")[2]) for each in expected] == got, (
            index,
            found.stages,
        )
