"""Real pipelines: what `inspect` says of them beside what iterating them hands out."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shardctl
from shardctl import ReadSettings, UnpredictableOrderError, UsageError
from shardctl.files.documents import to_yaml
from shardctl.metadata.project_file import find_project
from shardctl.settings.names import settings_from_document
from shardctl.tfds.inspecting.inspect import inspect
from shardctl.verbs.inspect.answer import Inspection
from shardctl.verbs.inspect.view import is_without_metadata, layout_name, project_yaml
from shardctl.verbs.layout.view import layout_document
from tests.forked_scripts import forking_python
from tests.pipelines.real_pipelines import epochs_of_fit
from tests.tfds_datasets import build_dataset

NUM_PASSES = 3
TRAIN, TEST = [7, 5, 0, 9, 4], [4, 3]
RECORDS = [3, 6, 2, 5]  # of files without metadata


@dataclass(frozen=True)
class World:
    """Datasets on disk: `toy` (train and test), `one` (a single file), `parquet`, record files."""

    root: Path

    @functools.cache  # noqa: B019
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
    for index, length in enumerate(RECORDS):
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
    endless = world.read(
        repeat_filenames=True,
        assert_cardinality=False,
        try_autocache=False,
        interleave_block_length=2,
    )
    return endless.take(60)


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
def unbatched_behind_a_map_of_whole_batches(world: World) -> Any:
    batches = ids_of(_files(world)).shuffle(9, seed=1).batch(4, drop_remainder=True)
    return batches.map(lambda ids: ids + 0, num_parallel_calls=2).unbatch().shuffle(5, seed=2)


@case
def unbatched_behind_a_mixture(world: World) -> Any:
    joined = ids_of(_files(world)).batch(4).concatenate(ids_of(world.read("train[:5]")).batch(3))
    return joined.shuffle(3, seed=1).unbatch()


@case
def shuffled_one_by_one_without_a_seed(world: World) -> Any:
    return ids_of(_files(world)).shuffle(1).repeat(2)


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


# Dataset objects that are used more than once.


@case
def zipped_with_itself(world: World) -> Any:
    import tensorflow as tf

    shuffled = ids_of(_files(world)).shuffle(4, seed=1)
    return tf.data.Dataset.zip((shuffled, shuffled))


@case
def zipped_with_what_is_made_of_it(world: World) -> Any:
    import tensorflow as tf

    shuffled = data().Dataset.range(9).shuffle(4, seed=1)
    return tf.data.Dataset.zip((shuffled.skip(2).shuffle(3, seed=2), shuffled, shuffled.repeat()))


@case
def concatenated_with_itself(world: World) -> Any:
    shuffled = ids_of(world.read()).shuffle(4, seed=1)
    return shuffled.concatenate(shuffled).batch(3)


@case
def repeated_and_not(world: World) -> Any:
    import tensorflow as tf

    shuffled = data().Dataset.range(9).shuffle(4, seed=1)
    return tf.data.Dataset.zip((shuffled.repeat(2), shuffled))


@case
def sampled_from_itself(world: World) -> Any:
    import tensorflow as tf

    files = ids_of(_files(world))
    inputs = [files, files.shuffle(4, seed=1)]
    return tf.data.Dataset.sample_from_datasets(inputs, weights=[0.5, 0.5], seed=1)


@case
def used_twice_without_state(world: World) -> Any:
    import tensorflow as tf

    read = ids_of(world.read())
    return tf.data.Dataset.zip((read, read.skip(2)))


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
def record_files_read_side_by_side(world: World) -> Any:
    return data().TFRecordDataset(world.files(), num_parallel_reads=2).shuffle(5, seed=1).repeat(2)


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
    return listed.interleave(tf.data.TFRecordDataset, cycle_length=3).batch(4)


@case
def record_files_sharded(world: World) -> Any:
    import tensorflow as tf

    files = tf.data.Dataset.from_tensor_slices(world.files()).shard(2, 1).shuffle(8, seed=1)
    return files.interleave(tf.data.TFRecordDataset, deterministic=True).map(lambda record: record)


@case
def record_files_in_turn(world: World) -> Any:
    import tensorflow as tf

    return tf.data.Dataset.from_tensor_slices(world.files()[::-1]).flat_map(tf.data.TFRecordDataset)


# A pass that ends with the last element, and does not ask for more, fills a cache only where
# TensorFlow knows that there are no more.
@case
def record_files_cached_and_cut(world: World) -> Any:
    return data().TFRecordDataset(world.files()).shuffle(6, seed=2).cache().take(sum(RECORDS))


@case
def record_files_asserted_cached_and_cut(world: World) -> Any:
    checked = data().experimental.assert_cardinality(sum(RECORDS))
    read = data().TFRecordDataset(world.files()).apply(checked)
    return read.shuffle(6, seed=2).cache().take(sum(RECORDS))


@case
def a_reader_without_cardinality_cached_and_cut(world: World) -> Any:
    read = ids_of(world.read(assert_cardinality=False, shuffle_files=True, shuffle_seed=2))
    return read.cache().take(sum(TRAIN))


@case
def a_zip_with_record_files_cached_and_cut(world: World) -> Any:
    records = data().TFRecordDataset(world.files()).shuffle(6, seed=2)
    pairs = data().Dataset.zip((records, data().TFRecordDataset(world.files())))
    return pairs.cache().take(sum(RECORDS))


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


# A case of each kind, and the cheapest ones; the others take long.
QUICK = {
    "plain_read", "even_split_of_even_splits", "input_context", "sorted_to_read_a_file_twice",
    "cache_before_shuffle", "two_shuffles_under_a_global_seed", "many_stages",
    "zipped_with_what_is_made_of_it", "repeated_and_not", "counted", "slices", "mixed_counts",
    "record_files", "record_files_read_side_by_side", "autosharded_by_file",
    "record_files_cached_and_cut", "record_files_asserted_cached_and_cut",
}  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CASES],
)
def test_inspects_what_is_handed_out(
    world: World, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = CASES[name](world)
    found = inspect(dataset)
    assert found.predictable, found.open or found.refused
    passes = [list(found.ids(index)) for index in range(NUM_PASSES)]
    if passes[2] == passes[1] == passes[0]:
        del passes[2]  # of one order for ever two are enough
    if found.dataset is not None and name not in NOT_AGAIN:
        monkeypatch.chdir(tmp_path)
        check_shardctl_yaml(found, passes)
    for index, expected in enumerate(passes):
        got = handed_out(dataset)
        assert [int(str(each).rpartition(":")[2]) for each in expected] == got, (
            index,
            found.stages,
        )


# Orders that are open, each with the stage that leaves it so.


def _numbers() -> Any:
    return data().Dataset.range(12)


def _ready_first(dataset: Any) -> Any:
    import tensorflow as tf

    options = tf.data.Options()
    options.deterministic = False
    return dataset.with_options(options)


OPEN: dict[str, tuple[Make, str, str]] = {
    "files without a seed": (
        lambda world: world.read(shuffle_files=True),
        "read(train, shuffle_files=True)",
        "without a seed",
    ),
    "files with a global seed": (
        lambda world: _global_seed(3) or world.read(shuffle_files=True),
        "read(train, shuffle_files=True)",
        "interleaves with deterministic=False",
    ),
    "decoding out of order": (
        lambda world: _files(world, options={"deterministic": False}),
        "read(train, shuffle_seed=3, deterministic=False)",
        "as their decoding ends",
    ),
    "options behind": (
        lambda world: _ready_first(_files(world)),
        "read(train, shuffle_seed=3, deterministic=False)",
        "as their decoding ends",
    ),
    "shuffle without a seed": (
        lambda world: ids_of(world.read()).shuffle(5).batch(2),
        "shuffle(5)",
        "no seed",
    ),
    "unseeded beside a seed under a global one": (
        lambda world: _after_global_seed(_numbers().shuffle(5), seed=4),
        "shuffle(5)",
        "no seed",
    ),
    "filter": (lambda world: _numbers().filter(lambda x: x > 3), "filter", "depends on the data"),
    "flat_map": (
        lambda world: _numbers().flat_map(data().Dataset.range),
        "flat_map",
        "depends on the data",
    ),
    "interleave of what is no file": (
        lambda world: _numbers().interleave(data().Dataset.range),
        "interleave",
        "depends on the data",
    ),
    "generator": (lambda world: _generated(), "from_generator", "code of the script"),
    "cache in a file": (
        lambda world: _numbers().shuffle(3, seed=1).cache(str(world.root / "cached")),
        "cache(filename)",
        "keeps the order of the run that wrote it",
    ),
    "map by the options of the reader": (
        lambda world: ids_of(decoded_by_one_thread_out_of_order(world)).map(
            plus_nothing, num_parallel_calls=4
        ),
        "map(calls=4)",
        "ready first",
    ),
    "map behind a mixture by the options of a reader": (
        lambda world: (
            data()
            .Dataset.sample_from_datasets(
                [ids_of(decoded_by_one_thread_out_of_order(world)) for _ in range(2)], seed=3
            )
            .map(plus_nothing, num_parallel_calls=4)
        ),
        "map(calls=4)",
        "ready first",
    ),
    "map out of order": (
        lambda world: _numbers().map(plus_nothing, num_parallel_calls=4, deterministic=False),
        "map(calls=4, deterministic=False)",
        "ready first",
    ),
    "map out of order by options": (
        lambda world: _ready_first(_numbers().map(plus_nothing, num_parallel_calls=4)),
        "map(calls=4)",
        "ready first",
    ),
    "window": (lambda world: _windows(), "window", "datasets"),
    "groups": (
        lambda world: _numbers().group_by_window(lambda x: x % 2, lambda k, d: d.batch(2), 2),
        "group_by_window",
        "depend on the data",
    ),
    "unbatch of what is no batch": (
        lambda world: _numbers().map(_two).unbatch(),
        "unbatch",
        "depends on the data",
    ),
    "take_while": (
        lambda world: _numbers().take_while(lambda x: x < 4),
        "take_while",
        "depends on the data",
    ),
    "unique": (lambda world: _numbers().unique(), "unique", "depends on the data"),
    "random numbers": (lambda world: data().Dataset.random(seed=1).take(3), "random", "random"),
    "sampled without a seed": (
        lambda world: data().Dataset.sample_from_datasets([_numbers(), _numbers()]),
        "sample_from_datasets(2 inputs, stop_on_empty_dataset=False)",
        "no seed",
    ),
    "choices that are computed": (
        lambda world: data().Dataset.choose_from_datasets(
            [_numbers(), _numbers()], _numbers().map(lambda x: x % 2)
        ),
        "choose_from_datasets(2 inputs, stop_on_empty_dataset=True)",
        "computed by code",
    ),
    "files in part of a shuffle": (
        lambda world: (
            data()
            .Dataset.from_tensor_slices(world.files())
            .shuffle(2, seed=1)
            .interleave(data().TFRecordDataset)
        ),
        "read of files",
        "buffer of 2, not as a whole",
    ),
    "files shuffled, then sharded": (
        lambda world: (
            data()
            .Dataset.list_files(str(world.root / "plain" / "*"), seed=1)
            .shard(2, 0)
            .interleave(data().TFRecordDataset)
        ),
        "read of files",
        "shuffled, then sharded",
    ),
    "an old parallel interleave of blocks": (
        lambda world: (
            data()
            .Dataset.from_tensor_slices(world.files())
            .apply(
                data().experimental.parallel_interleave(
                    data().TFRecordDataset, cycle_length=2, block_length=2
                )
            )
        ),
        "read of files",
        "fills its slots its own way",
    ),
    "files that a filter reads": (
        lambda world: (
            data()
            .Dataset.from_tensor_slices(world.files())
            .interleave(lambda file: data().TFRecordDataset(file).filter(lambda record: True))
        ),
        "interleave",
        "depends on the data",
    ),
    "lines of text": (
        lambda world: data().TextLineDataset([str(world.root / "text")]),
        "flat_map",
        "depends on the data",
    ),
    "snapshot": (
        lambda world: _numbers().snapshot(str(world.root / "snapshot")),
        "snapshot",
        "of the run that wrote it",
    ),
    "an order that TFDS guards": (
        lambda world: world.read(
            name="ordered", interleave_cycle_length=4, enable_ordering_guard=False
        ),
        "read(train, cycle=4)",
        "ordered dataset",
    ),
}


def _global_seed(seed: int) -> bool:
    import tensorflow as tf

    tf.random.set_seed(seed)
    return False


def _after_global_seed(dataset: Any, *, seed: int) -> Any:
    _global_seed(9)
    return dataset.shuffle(3, seed=seed)


def _two(number: Any) -> Any:
    import tensorflow as tf

    return tf.stack([number, number])


def _generated() -> Any:
    import tensorflow as tf

    spec = tf.TensorSpec([], tf.int64)
    return tf.data.Dataset.from_generator(lambda: iter([1, 2]), output_signature=spec)


def _windows() -> Any:
    return _numbers().window(3).map(lambda window: window.cardinality())


# What TensorFlow traces longest.
SLOW_OPEN = ("files that a filter reads", "groups", "choices that are computed", "flat_map")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW_OPEN)) for name in OPEN],
)
def test_names_the_stage_that_leaves_an_order_open(world: World, name: str) -> None:
    make, call, reason = OPEN[name]
    (world.root / "text").write_text("a\nb\n")
    found = inspect(make(world))
    assert not found.predictable
    assert [each.stage.call for each in found.open] == [call]
    assert reason in found.open[0].reason
    with pytest.raises(UnpredictableOrderError, match=re.escape(call)):
        found.ids()


def test_other_elements_than_those_of_datasets_have_no_ids(world: World) -> None:
    found = inspect(data().Dataset.zip((ids_of(world.read()), data().Dataset.range(40))))
    assert (found.predictable, found.open) == (False, ())
    with pytest.raises(UnpredictableOrderError, match="'range' is no reader"):
        found.ids()


def test_a_pipeline_without_end_has_no_ids_in_all(world: World) -> None:
    for endless in (ids_of(world.read()).shuffle(3, seed=1).repeat(), _numbers().repeat()):
        found = inspect(endless)
        assert found.predictable
        with pytest.raises(UsageError, match="no end"):
            found.ids()


def test_ids_of_several_splits_name_their_split(world: World) -> None:
    dataset = world.read("test+train[:5]", add_tfds_id=True, interleave_block_length=2)
    got = [example["tfds_id"].decode() for example in dataset.as_numpy_iterator()]
    found = inspect(dataset)
    ids = found.ids()
    assert found.spec == "test+train[:5]"
    assert ids[:3] == ["test:0", "test:1", "test:4"]
    codes = found.order().order.codes
    assert codes.tfds_ids([codes.parse(each) for each in ids]) == got


@pytest.mark.slow
def test_ids_of_several_datasets_name_the_dataset(world: World) -> None:
    import tensorflow as tf

    parts = [world.read(add_tfds_id=True, name=name, **SEEDED) for name in ("toy", "many")]
    dataset = tf.data.Dataset.sample_from_datasets(parts, weights=[0.4, 0.6], seed=3)
    found = inspect(dataset)
    for index in range(NUM_PASSES):
        got = [example["tfds_id"].decode() for example in dataset.as_numpy_iterator()]
        codes = found.order(index).order.codes
        assert codes.tfds_ids([codes.parse(each) for each in found.ids(index)]) == got


SEEDED: dict[str, Any] = {"shuffle_files": True, "shuffle_seed": 4}


def test_folders_that_are_read_as_one_dataset(world: World) -> None:
    import tensorflow_datasets as tfds

    folders = [world.root / name / "1.0.0" for name in ("toy", "many")]
    builder = tfds.builder_from_directories(folders)
    config = tfds.ReadConfig(add_tfds_id=True, shuffle_seed=2)
    dataset = builder.as_dataset(split="train", shuffle_files=True, read_config=config)
    found = inspect(dataset)
    got = [example["tfds_id"].decode() for example in dataset.as_numpy_iterator()]
    order = found.order().order
    assert order.codes.tfds_ids(order.read(0, order.num_examples)) == got


def test_seeds_are_stated_as_a_script_states_them(world: World) -> None:
    _global_seed(11)
    found = inspect(ids_of(world.read(**SEEDED)).shuffle(4).shuffle(5, seed=3))
    assert found.settings.global_seed == 11
    assert found.settings.shuffle_seed == 4
    calls = [stage.call for stage in found.stages]
    assert calls[0] == "read(train, shuffle_seed=4)"
    assert calls[-1] == "shuffle(5, seed=3)"


def test_the_short_form_where_it_is_the_same(world: World) -> None:
    found = inspect(canonical(world))
    assert found.settings == ReadSettings(
        shuffle_seed=3, buffer=6, buffer_seed=2, epochs=2, batch=4
    )
    assert found.dataset is not None
    assert found.findings() == shardctl.lint(found.dataset, "train", found.settings).findings


def test_lists_and_dicts_of_splits_are_one_dataset_each(world: World) -> None:
    both = world.read({"a": "train[:5]", "b": "test"})
    assert [inspect(both[name]).spec for name in both] == ["train[:5]", "test"]


def test_the_function_that_makes_it_is_watched(world: World) -> None:
    def make() -> Any:
        numbers = data().Dataset.range(9)
        return numbers.shuffle(4).batch(2)

    first = make.__code__.co_firstlineno
    found = inspect(make)
    lines = [stage.line.line for stage in found.stages if stage.line is not None]
    assert lines == [first + 1, first + 2, first + 2]
    assert found.open[0].line is not None
    assert found.open[0].line.text == "return numbers.shuffle(4).batch(2)"
    with pytest.raises(UnpredictableOrderError, match=rf"test_inspect.py:{first + 2}"):
        found.ids()


@pytest.mark.slow
def test_distributed_datasets(world: World) -> None:
    import tensorflow as tf

    strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
    plain = ids_of(_files(world)).shuffle(4, seed=1).batch(6)
    distributed = strategy.experimental_distribute_dataset(plain)
    found = inspect(distributed)
    for index in range(NUM_PASSES):
        got = [number for batch in distributed for number in flat(batch.numpy())]
        assert list(found.ids(index)) == got


NOT_AGAIN = {"repeated_files_cut"}


def check_shardctl_yaml(found: Inspection, passes: list[list[Any]]) -> None:
    """Check that a shardctl.yaml in the current folder reads what was found of each pass."""
    folder = Path.cwd()
    (folder / "shardctl.yaml").write_text("".join(project_yaml((found,), "train.py:make")))
    assert found.dataset is not None
    if is_without_metadata(found.dataset):
        text = "".join(to_yaml(layout_document(shardctl.layout(found.dataset))))
        (folder / layout_name(found.dataset)).write_text(text)
    project = find_project(folder)
    dataset = shardctl.read_dataset(*(str(folder / ref) for ref in project.dataset))
    for index, expected in enumerate(passes):
        settings = ReadSettings(**settings_from_document(dict(project.read) | {"pass": index}))
        order = shardctl.plan_order(dataset, None, settings).order
        assert order.codes.ids(order.read(0, order.num_examples)) == expected


class Fitted:
    """A Keras model that notes the ids of each epoch that it is trained on."""

    def __init__(self) -> None:
        import keras
        import tensorflow as tf

        self.epochs: list[list[int]] = []
        epochs = self.epochs

        class Model(keras.Model):  # type: ignore[misc]
            def train_step(self, batch: Any) -> dict[str, float]:
                tf.py_function(lambda ids: epochs[-1].extend(ids.numpy().tolist()), [batch], [])
                return {"loss": 0.0}

        self._model = Model()
        self._model.compile(run_eagerly=True)
        self._note = keras.callbacks.LambdaCallback(
            on_epoch_begin=lambda epoch, logs: epochs.append([])
        )

    def fit(self, dataset: Any) -> list[list[int]]:
        self._model.fit(dataset, epochs=NUM_PASSES, verbose=0, callbacks=[self._note])
        return self.epochs


@pytest.mark.parametrize(
    "name",
    [
        "many_stages",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("canonical", "map_between_shuffle_and_repeat", "sampled", "shuffled_files")
        ),
    ],
)
def test_keras_fit(world: World, name: str) -> None:
    dataset = CASES[name](world)
    if name in ("sampled", "shuffled_files", "map_between_shuffle_and_repeat"):
        dataset = (ids_of(dataset) if name == "shuffled_files" else dataset).batch(4)
    found = inspect(dataset, loop="keras-fit")
    assert [list(found.ids(index)) for index in range(NUM_PASSES)] == Fitted().fit(dataset)


@pytest.mark.slow
def test_keras_fit_of_a_length_that_nobody_knows(world: World) -> None:
    """Keras takes one iterator an epoch, where of a known length it takes two."""
    records = data().TFRecordDataset(world.files()).map(_parsed)
    without = ids_of(world.read(assert_cardinality=False, shuffle_files=True, shuffle_seed=2))
    for numbers in (records, without):
        dataset = numbers.shuffle(5, seed=1).batch(4)
        found = inspect(dataset, loop="keras-fit")
        assert [list(found.ids(index)) for index in range(NUM_PASSES)] == Fitted().fit(dataset)


def test_a_reader_without_its_assertion_is_written_so(world: World) -> None:
    """As a command is told of the loop, who was given the settings alone."""
    for asserts in (True, False):
        dataset = ids_of(world.read(assert_cardinality=asserts)).shuffle(5, seed=1).batch(4)
        settings = replace(inspect(dataset).settings, loop="keras-fit")
        assert (settings.stages is None) is asserts
        found = replace(inspect(dataset), settings=settings)
        assert [list(found.ids(index)) for index in range(NUM_PASSES)] == Fitted().fit(dataset)


@pytest.mark.slow
def test_keras_cuts_later_epochs_of_a_mixture_by_the_first(world: World) -> None:
    """Each epoch draws other choices, so that the mixture ends elsewhere."""
    for seed in range(2):
        inputs = [ids_of(world.read("train[:9]")), ids_of(world.read("train[9:]"))]
        dataset = data().Dataset.sample_from_datasets(
            inputs, seed=seed, stop_on_empty_dataset=True, rerandomize_each_iteration=True
        )
        found = inspect(dataset.batch(1), loop="keras-fit")
        told = [list(found.ids(index)) for index in range(NUM_PASSES)]
        assert told == Fitted().fit(dataset.batch(1)), seed


def _parsed(record: Any) -> Any:
    import tensorflow as tf

    return tf.strings.to_number(record, tf.int64)


def test_what_is_no_dataset_is_refused() -> None:
    with pytest.raises(UsageError, match=r"a tf\.data\.Dataset is needed"):
        inspect(3)
    with pytest.raises(UsageError, match=r"returned int, no tf\.data\.Dataset"):
        inspect(lambda: 3)


def test_what_tensorflow_does_not_write_is_refused() -> None:
    import tensorflow as tf

    device = tf.data.experimental.copy_to_device("/cpu:0")
    with pytest.raises(UsageError, match="does not write this dataset as a graph"):
        inspect(_numbers().apply(device))


def test_inside_a_function_that_tensorflow_traces() -> None:
    import tensorflow as tf

    outside = tf.data.Dataset.range(9).shuffle(4, seed=1)
    found: list[Any] = []

    @tf.function(autograph=False)
    def traced() -> None:
        found.append(inspect(outside).ids().tolist())
        with pytest.raises(UsageError, match=r"^the dataset is made inside a tf\.function or a "):
            inspect(tf.data.Dataset.range(9))

    traced()
    assert found == [list(outside.as_numpy_iterator())]


def test_datasets_of_two_calls_are_not_taken_for_one() -> None:
    import tensorflow as tf

    sets = tf.data.Dataset
    kept: list[Any] = []

    def first() -> Any:
        kept.append(sets.range(9).shuffle(3, seed=1))
        return kept[0]

    inspect(first)
    found = inspect(lambda: sets.zip((sets.range(9).shuffle(3, seed=1), kept[0])))
    zipped = sets.zip((sets.range(9).shuffle(3, seed=1), sets.range(9).shuffle(3, seed=1)))
    for pass_index in range(2):
        real = [int(number) for pair in zipped.as_numpy_iterator() for number in pair]
        assert found.ids(pass_index).tolist() == real


@pytest.mark.slow
def test_operations_that_are_made_deterministic(world: World, tmp_path: Path) -> None:
    """`enable_op_determinism` stands above every option; it cannot be taken back in a process."""
    script = tmp_path / "deterministic.py"
    script.write_text(f"""
import tensorflow as tf, tensorflow_datasets as tfds
tf.config.experimental.enable_op_determinism()
tf.random.set_seed(7)
from shardctl.tfds import inspect
builder = tfds.builder_from_directory({str(world.root / "toy" / "1.0.0")!r})
read = builder.as_dataset(split="train", shuffle_files=True)
ds = read.map(lambda e: e["id"] + 0, num_parallel_calls=4, deterministic=False).shuffle(5)
found = inspect(ds)
for index in range(3):
    assert found.ids(index).tolist() == [int(n) for n in ds.as_numpy_iterator()], found.stages
print("the same")
""")
    (ran,) = forking_python().run([[script]], tmp_path)
    assert ran.out == "the same\n", ran.errors[-2000:]


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_epochs_of_fit_end_where_the_first_did_if_nobody_knows_the_length(seed: int) -> None:
    """A mixture that ends with its first empty input has passes of any length."""
    import tensorflow as tf

    def made() -> Any:
        parts = [tf.data.Dataset.range(5), tf.data.Dataset.range(200)]
        mixture = tf.data.Dataset.sample_from_datasets(
            parts,
            [0.2, 0.8],
            seed=seed,
            stop_on_empty_dataset=True,
            rerandomize_each_iteration=True,
        )
        return mixture.shuffle(2, seed=3)

    found = inspect(made(), loop="keras-fit")
    said = [found.ids(index).tolist() for index in range(3)]
    assert said == epochs_of_fit(made(), "example", 3)
