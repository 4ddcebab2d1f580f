"""Shuffle passes: the iterators that TensorFlow, TFDS and Keras really use up."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest

from shardctl.errors import UnpredictableOrderError
from shardctl.tfdata.shuffle_seeds import Loop, iterators_per_pass
from tests.cases import add_cases
from tests.tfdata.shuffle.shuffle_oracles import tf_order

NUM_PASSES = 3
NUM_ELEMENTS, BUFFER_SIZE, USER_SEED = 12, 5, 7
NUM_FILES, FILE_LENGTH, FILE_SEED = 6, 2, 3
LOOPS: list[Loop] = ["python", "keras-fit"]
Passes = list[list[int]]
Orders = dict[tuple[int, ...], int]


@pytest.fixture(scope="module")
def user_orders() -> Orders:
    """Map each order of the user's shuffle to its iterator, as TensorFlow gives them."""
    return _orders(NUM_ELEMENTS, BUFFER_SIZE, USER_SEED)


@pytest.fixture(scope="module")
def file_orders() -> Orders:
    """Map each order of the files to its iterator, as TensorFlow gives them."""
    return _orders(NUM_FILES, NUM_FILES, FILE_SEED)


def _orders(num_elements: int, buffer_size: int, seed: int) -> Orders:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(num_elements).shuffle(buffer_size, seed=seed)
    orders = {tuple(order): index for index, order in enumerate(_run_python(dataset.batch(99), 20))}
    assert len(orders) == 20, "two iterators with one order cannot be told apart"
    return orders


def _run_python(dataset: Any, num_passes: int) -> Passes:
    return [[int(x) for batch in dataset for x in batch.numpy()] for _ in range(num_passes)]


def _run_keras(dataset: Any, num_passes: int, **fit_options: Any) -> Passes:
    import keras
    import tensorflow as tf

    passes: Passes = []

    class Recorder(keras.Model):  # type: ignore[misc]
        def train_step(self, batch: Any) -> dict[str, float]:
            tf.py_function(lambda b: passes[-1].extend(b.numpy().tolist()), [batch], [])
            return {"loss": 0.0}

    class EachEpoch(keras.callbacks.Callback):  # type: ignore[misc]
        def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
            passes.append([])

    model = Recorder()
    model.compile(run_eagerly=True)
    model.fit(
        dataset, shuffle=False, epochs=num_passes, verbose=0, callbacks=[EachEpoch()], **fit_options
    )
    return passes


RUNNERS = {"python": _run_python, "keras-fit": _run_keras}


def _files(*, repeat_filenames: bool = False) -> Any:
    """Return a dataset made as TFDS's reader makes it: files shuffled, then interleaved."""
    import tensorflow as tf

    files = tf.data.Dataset.range(NUM_FILES).shuffle(NUM_FILES, seed=FILE_SEED)
    if repeat_filenames:
        return files.repeat().interleave(_file, cycle_length=1, num_parallel_calls=1)
    examples = files.interleave(_file, cycle_length=1, num_parallel_calls=1)
    return examples.apply(tf.data.experimental.assert_cardinality(NUM_FILES * FILE_LENGTH))


def _file(file: Any) -> Any:
    import tensorflow as tf

    return tf.data.Dataset.range(file * FILE_LENGTH, (file + 1) * FILE_LENGTH)


def _epochs(one_pass: Sequence[int], num_epochs: int) -> list[tuple[int, ...]]:
    length = len(one_pass) // num_epochs
    return [tuple(one_pass[length * e : length * (e + 1)]) for e in range(num_epochs)]


def _settings_without_a_race(loop: Loop, *, fused: bool) -> list[tuple[int, int]]:
    """Return (number of epochs, batch size): 12 elements leave a partial batch of 5, none of 4."""
    settings = list(product((1, 3), (4, 5)))
    if loop == "keras-fit" and not fused:
        return [
            (num_epochs, batch) for num_epochs, batch in settings if num_epochs == 1 or batch == 5
        ]
    return settings


def _predicted(num_epochs: int, **how: Any) -> Passes:
    per_pass = iterators_per_pass(num_epochs, **how)
    return [[p * per_pass + e for e in range(num_epochs)] for p in range(NUM_PASSES)]


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("fused", [True, False])
def test_a_users_shuffle_under_repeat(loop: Loop, fused: bool, user_orders: Orders) -> None:
    import tensorflow as tf

    settings = _settings_without_a_race(loop, fused=fused)
    for num_epochs, batch_size in settings:
        dataset = tf.data.Dataset.range(NUM_ELEMENTS).shuffle(BUFFER_SIZE, seed=USER_SEED)
        if not fused:
            dataset = dataset.map(lambda x: x + 0)
        passes = RUNNERS[loop](dataset.repeat(num_epochs).batch(batch_size), NUM_PASSES)
        found = [[user_orders[epoch] for epoch in _epochs(p, num_epochs)] for p in passes]
        rule = _predicted(num_epochs, loop=loop, fused=fused, partial_last_batch=True)
        assert found == rule, (num_epochs, batch_size)
    add_cases(len(settings) * NUM_PASSES)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_file_shuffle_under_repeat(loop: Loop, file_orders: Orders) -> None:
    settings = _settings_without_a_race(loop, fused=False)
    for num_epochs, batch_size in settings:
        passes = RUNNERS[loop](_files().repeat(num_epochs).batch(batch_size), NUM_PASSES)
        found = [[_file_order(e, file_orders) for e in _epochs(p, num_epochs)] for p in passes]
        rule = _predicted(num_epochs, loop=loop, fused=False, partial_last_batch=True)
        assert found == rule, (num_epochs, batch_size)
    add_cases(len(settings) * NUM_PASSES)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("fused", [True, False])
def test_a_file_shuffle_under_a_users_shuffle(
    loop: Loop, fused: bool, file_orders: Orders, user_orders: Orders
) -> None:
    streams = {
        tuple(file * FILE_LENGTH + i for file in files for i in range(FILE_LENGTH)): index
        for files, index in file_orders.items()
    }
    both = {
        tuple(stream[position] for position in order): (file_index, user_index)
        for stream, file_index in streams.items()
        for order, user_index in user_orders.items()
    }
    assert len(both) == len(streams) * len(user_orders)
    for num_epochs in (1, 3):
        dataset = _files().shuffle(BUFFER_SIZE, seed=USER_SEED)
        if not fused:
            dataset = dataset.map(lambda x: x + 0)
        passes = RUNNERS[loop](dataset.repeat(num_epochs).batch(5), NUM_PASSES)
        found = [[both[epoch] for epoch in _epochs(p, num_epochs)] for p in passes]
        files = _predicted(num_epochs, loop=loop, fused=False, under_shuffle=True)
        user = _predicted(num_epochs, loop=loop, fused=fused, partial_last_batch=True)
        assert [[pair[0] for pair in p] for p in found] == files
        assert [[pair[1] for pair in p] for p in found] == user
    add_cases(2 * NUM_PASSES)


@pytest.mark.parametrize("fused", [True, False])
def test_an_endless_repeat_reads_one_iterator_after_the_other(
    fused: bool, user_orders: Orders
) -> None:
    import tensorflow as tf

    def endless() -> Any:
        dataset = tf.data.Dataset.range(NUM_ELEMENTS).shuffle(BUFFER_SIZE, seed=USER_SEED)
        return (dataset if fused else dataset.map(lambda x: x + 0)).repeat()

    predicted = list(range(5))
    [read] = _run_python(endless().take(5 * NUM_ELEMENTS).batch(5), 1)
    assert [user_orders[epoch] for epoch in _epochs(read, 5)] == predicted
    # Keras keeps one iterator where it is told the steps of an epoch: one pass for all of them.
    epochs = _run_keras(endless().batch(NUM_ELEMENTS // 2), 5, steps_per_epoch=2)
    assert [user_orders[tuple(epoch)] for epoch in epochs] == predicted


def test_repeated_filenames_read_one_iterator_after_the_other(file_orders: Orders) -> None:
    dataset = _files(repeat_filenames=True).take(5 * NUM_FILES * FILE_LENGTH).batch(5)
    [read] = _run_python(dataset, 1)
    assert [_file_order(epoch, file_orders) for epoch in _epochs(read, 5)] == list(range(5))


@pytest.mark.parametrize("loop", LOOPS)
def test_keras_on_an_unknown_cardinality_counts_as_python(loop: Loop, user_orders: Orders) -> None:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(NUM_ELEMENTS).shuffle(BUFFER_SIZE, seed=USER_SEED)
    unknown = dataset.filter(lambda x: x >= 0).batch(5)
    passes = RUNNERS[loop](unknown, NUM_PASSES)
    assert [[user_orders[tuple(p)]] for p in passes] == _predicted(1, fused=True)


@pytest.mark.parametrize("fused", [True, False])
def test_a_shuffle_that_does_not_reshuffle_has_one_order(fused: bool) -> None:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(NUM_ELEMENTS).shuffle(
        BUFFER_SIZE, seed=USER_SEED, reshuffle_each_iteration=False
    )
    dataset = (dataset if fused else dataset.map(lambda x: x + 0)).repeat(2).batch(4)
    order = tf_order(NUM_ELEMENTS, BUFFER_SIZE, USER_SEED, reshuffle=False)
    assert _run_keras(dataset, NUM_PASSES) == [order * 2] * NUM_PASSES


def test_what_keras_reads_after_a_race_is_not_predicted(user_orders: Orders) -> None:
    import tensorflow as tf

    with pytest.raises(UnpredictableOrderError, match="timing"):
        iterators_per_pass(2, loop="keras-fit", fused=False)

    # What decides it: nothing that reads ahead makes 3 iterators a pass; a prefetch makes 4, or
    # starts the next pass in between, as its thread happens to run.
    dataset = tf.data.Dataset.range(NUM_ELEMENTS).shuffle(BUFFER_SIZE, seed=USER_SEED)
    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    dataset = dataset.map(lambda x: x + 0).repeat(2).batch(4).with_options(options)
    passes = _run_keras(dataset, 2)
    assert [[user_orders[e] for e in _epochs(p, 2)] for p in passes] == [[0, 1], [3, 4]]


@pytest.mark.parametrize("with_user_shuffle", [False, True])
def test_the_file_shuffle_of_a_real_tfds_dataset(
    tfds_builder: Any, with_user_shuffle: bool, file_orders: Orders
) -> None:
    dataset = _tfds_positions(tfds_builder)
    if with_user_shuffle:
        # A buffer of one keeps the order, so that the files can still be read off it.
        dataset = dataset.shuffle(1, seed=USER_SEED)
    passes = _run_python(dataset.repeat(3).batch(5), NUM_PASSES)
    found = [[_file_order(e, file_orders) for e in _epochs(p, 3)] for p in passes]
    assert found == _predicted(3, fused=False, under_shuffle=with_user_shuffle)


def _file_order(epoch: Sequence[int], file_orders: Orders) -> int:
    return file_orders[tuple(example // FILE_LENGTH for example in epoch[::FILE_LENGTH])]


@pytest.fixture(scope="module")
def tfds_builder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a prepared TFDS dataset of NUM_FILES files with FILE_LENGTH examples each."""
    import tensorflow as tf
    import tensorflow_datasets as tfds

    class Numbers(tfds.core.GeneratorBasedBuilder):  # type: ignore[misc]
        # To find code TFDS asks a package that it does not install.
        code_path = pkg_dir_path = None
        VERSION = tfds.core.Version("1.0.0")

        def _info(self) -> Any:
            return self.dataset_info_from_configs(
                features=tfds.features.FeaturesDict({"number": tf.int64})
            )

        def _split_generators(self, dl_manager: object) -> dict[str, Any]:
            return {"train": self._generate_examples()}

        def _generate_examples(self) -> Any:
            for number in range(NUM_FILES * FILE_LENGTH):
                yield number, {"number": number}

    builder = Numbers(data_dir=tmp_path_factory.mktemp("tfds"))
    builder.download_and_prepare(download_config=tfds.download.DownloadConfig(num_shards=NUM_FILES))
    assert builder.info.splits["train"].shard_lengths == [FILE_LENGTH] * NUM_FILES
    return builder


def _tfds_positions(builder: Any) -> Any:
    """Return the dataset with its files shuffled, each example as its position on disk."""
    import tensorflow as tf
    import tensorflow_datasets as tfds

    dataset = builder.as_dataset(
        split="train",
        shuffle_files=True,
        read_config=tfds.ReadConfig(
            shuffle_seed=FILE_SEED,
            interleave_cycle_length=1,
            try_autocache=False,
            add_tfds_id=True,
        ),
    )

    def position(example: dict[str, Any]) -> Any:
        # From an id such as numbers-train.tfrecord-00003-of-00006__1.
        file = tf.strings.regex_replace(example["tfds_id"], r".*-(\d{5})-of-.*", r"\1")
        within = tf.strings.regex_replace(example["tfds_id"], r".*__", "")
        numbers = tf.strings.to_number([file, within], tf.int64)
        return numbers[0] * FILE_LENGTH + numbers[1]

    return dataset.map(position)
