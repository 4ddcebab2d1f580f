"""Pipelines for text, after the shapes of public training code; each written anew."""

from __future__ import annotations

import glob
import random
from collections.abc import Iterator
from typing import Any

from tests.corpus.world import keras, np, of_photos, shape, tf, tfds, tokenized, tokens

DIR = "."
AUTOTUNE = -1


def load(name: str = "text", split: str = "train", **more: Any) -> Any:
    return tfds.load(name, split=split, data_dir=DIR, **more).map(tokenized, AUTOTUNE)


def shorter(length: int) -> Any:
    return lambda example: tf.less(tf.shape(example["inputs"])[0], length + 1)


def padded(length: int) -> Any:
    """Return a map that cuts and pads tokens to a length."""

    def pad(example: Any) -> Any:
        cut = {key: value[:length] for key, value in example.items()}
        return {key: tf.pad(value, [[0, length - tf.size(value)]]) for key, value in cut.items()}

    return pad


def packed(ds: Any, length: int) -> Any:
    """Return rows of as many texts as fit: a window of texts is packed, and then unbatched."""

    def pack(texts: Any) -> Any:
        def filled(row: Any) -> Any:
            return tf.pad(row, [[0, length - tf.size(row)]])

        def add(at: Any, row: Any, rows: Any) -> Any:
            text = tf.boolean_mask(texts[at], texts[at] > 0)
            is_full = tf.size(row) + tf.size(text) > length
            rows = tf.cond(is_full, lambda: rows.write(rows.size(), filled(row)), lambda: rows)
            return at + 1, tf.concat([row[: tf.where(is_full, 0, length)], text], 0), rows

        rows = tf.TensorArray(tf.int32, 0, dynamic_size=True, element_shape=[length])
        first = (tf.constant(0), tf.zeros([0], tf.int32), rows)
        shapes = (tf.TensorShape([]), tf.TensorShape([None]), None)
        _, row, rows = tf.while_loop(lambda at, *_: at < tf.shape(texts)[0], add, first, shapes)
        return {"inputs": rows.write(rows.size(), filled(row)).stack()}

    window = ds.map(lambda e: e["inputs"][:length], AUTOTUNE).padded_batch(length, [length])
    return window.map(pack, AUTOTUNE).unbatch()


def bucketed(ds: Any, boundaries: list[int], sizes: list[int]) -> Any:
    return ds.bucket_by_sequence_length(
        lambda example: tf.shape(example["inputs"])[0], boundaries, sizes, drop_remainder=False
    )


@shape("flax lm1b", "filter|shuffle", ids=tokens, take=30)
def lm1b_train() -> Any:
    ds = load(shuffle_files=True).filter(shorter(9)).shuffle(1024).repeat()
    return bucketed(ds, [4, 7], [8, 4, 2]).prefetch(AUTOTUNE)


@shape("flax lm1b", ids=tokens, take=30, scan=True)
def lm1b_packed() -> Any:
    ds = load().filter(shorter(10)).shuffle(50, seed=0).repeat()
    return packed(ds, 16).batch(4, drop_remainder=True).prefetch(AUTOTUNE)


@shape("flax wmt", ids=tokens, scan=True)
def wmt_eval() -> Any:
    builder = tfds.builder("text", data_dir=DIR)
    split = tfds.even_splits("validation", n=2)[0]
    ds = builder.as_dataset(split=split, shuffle_files=False).map(tokenized, AUTOTUNE)
    ds = ds.cache().filter(shorter(9))
    return ds.padded_batch(4, {"inputs": 10, "targets": 10}, drop_remainder=False)


@shape("flax sst2", ids=tokens, scan=True)
def sst2() -> Any:
    ds = load().cache().shuffle(64, seed=0, reshuffle_each_iteration=True)
    return bucketed(ds, [4, 8], [8, 8, 8]).prefetch(AUTOTUNE)


@shape("flax nlp_seq", ids=tokens)
def nlp_seq() -> Any:
    def sentences() -> Iterator[Any]:
        for path in sorted(glob.glob("lines/*.txt")):
            with open(path) as file:
                yield from ([int(word) for word in line.split()] for line in file)

    ds = tf.data.Dataset.from_generator(sentences, tf.int32, tf.TensorShape([None]))
    ds = ds.cache().shuffle(32, seed=3).repeat(2)
    return ds.padded_batch(8, padded_shapes=[12], drop_remainder=True)


def seqio_task(name: str, seed: int | None = 23, split: str = "train") -> Any:
    config = tfds.ReadConfig(shuffle_seed=seed, skip_prefetch=True, interleave_cycle_length=4)
    ds = load(name, split, shuffle_files=True, read_config=config)
    ds = ds.shuffle(30, seed=seed).repeat()
    return ds.map(padded(12), AUTOTUNE)


@shape("seqio t5x", ids=tokens, take=30)
def seqio_single() -> Any:
    return seqio_task("text").batch(8, drop_remainder=True).prefetch(AUTOTUNE)


@shape("seqio mixture", ids=tokens, take=30)
def seqio_mixture() -> Any:
    tasks = [seqio_task("text"), seqio_task("web")]
    ds = tf.data.Dataset.sample_from_datasets(tasks, weights=[0.25, 0.75], seed=23)
    return ds.batch(8, drop_remainder=True).prefetch(AUTOTUNE)


@shape("seqio t5x", ids=tokens)
def seqio_eval() -> Any:
    ds = load(split="validation").map(padded(9), AUTOTUNE).cache()
    ds = ds.shard(num_shards=2, index=1)
    return ds.batch(4, drop_remainder=False).prefetch(AUTOTUNE)


class MultiHostDataLoadIterator:
    """Yields the batches of a dataset as arrays of all hosts, as MaxText does."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset
        self.local_iterator = self.dataset.as_numpy_iterator()

    def reset(self) -> None:
        self.local_iterator = self.dataset.as_numpy_iterator()

    def __iter__(self) -> MultiHostDataLoadIterator:
        self.reset()
        return self

    def __next__(self) -> Any:
        return next(self.local_iterator)


def maxtext_dataset() -> Any:
    builder = tfds.builder("text", data_dir=DIR)
    config = tfds.ReadConfig(shuffle_seed=5)
    config.input_context = tf.distribute.InputContext(input_pipeline_id=1, num_input_pipelines=2)
    ds = builder.as_dataset(split="train", read_config=config, shuffle_files=True)
    ds = ds.map(tokenized, num_parallel_calls=AUTOTUNE)
    return ds.shuffle(24, seed=5).repeat(2)


@shape("maxtext", ids=tokens)
def maxtext_padded() -> Any:
    ds = maxtext_dataset().map(padded(12), AUTOTUNE, deterministic=True)
    ds = ds.padded_batch(4, padded_shapes={"inputs": 12, "targets": 12}, drop_remainder=True)
    return MultiHostDataLoadIterator(ds.prefetch(AUTOTUNE))


@shape("maxtext", ids=tokens, scan=True)
def maxtext_packed() -> Any:
    ds = packed(maxtext_dataset(), 16).batch(4, drop_remainder=True).prefetch(AUTOTUNE)
    return MultiHostDataLoadIterator(ds)


def read_files(files: list[str]) -> Any:
    ds = tf.data.Dataset.from_tensor_slices(files)
    ds = ds.interleave(tf.data.TFRecordDataset, cycle_length=4, num_parallel_calls=4)
    features = {"label": tf.io.FixedLenFeature([], tf.int64)}
    return ds.map(lambda record: tf.io.parse_single_example(record, features), AUTOTUNE)


@shape("tensor2tensor")
def t2t_files() -> Any:
    files = sorted(glob.glob("records/part-*"))
    random.Random(0).shuffle(files)
    return read_files(files).shuffle(25, seed=2).repeat(2).batch(8)


@shape("tensor2tensor", by_python=True)
def t2t_shuffled_files() -> Any:
    files = glob.glob("records/part-*") * 6
    random.shuffle(files)
    return read_files(files).batch(8)


@shape("trax", by_python=True, ids=tokens)
def trax_stream() -> Iterator[Any]:
    waiting: list[Any] = []
    for example in tfds.as_numpy(load()):
        if len(waiting) < 20:
            waiting.append(example)
        else:
            at = random.randrange(20)
            yield waiting[at]
            waiting[at] = example
    yield from waiting


@shape("keras-io text classification", ids=lambda e: of_photos(e[0]), only="0")
def keras_reviews() -> Any:
    read = keras.utils.text_dataset_from_directory
    common: dict[str, Any] = {"batch_size": 4, "validation_split": 0.2, "seed": 1337}
    parts = [
        read("reviews", subset=subset, verbose=False, **common)
        for subset in ("training", "validation")
    ]
    numbers = [p.map(lambda texts, y: (tf.strings.to_number(texts, tf.int64), y)) for p in parts]
    return [ds.cache().prefetch(10) for ds in numbers]


def line_ids(element: Any) -> list[int]:
    return [int(line.split()[0]) - 1 for line in np.atleast_1d(element)]


@shape("keras-io language model", ids=line_ids)
def keras_lines_seeded() -> Any:
    ds = tf.data.TextLineDataset(sorted(glob.glob("lines/*.txt")), num_parallel_reads=2)
    return ds.shuffle(30, seed=4).batch(8).prefetch(AUTOTUNE)


@shape("tensorflow tutorial word2vec", ids=line_ids, scan=True)
def tutorial_word2vec() -> Any:
    ds = tf.data.TextLineDataset("lines/part-1.txt")
    ds = ds.filter(lambda line: tf.cast(tf.strings.length(line) - 3, bool))
    return ds.batch(10).prefetch(AUTOTUNE).map(tf.strings.lower).unbatch()


def first_of_rows(element: Any) -> list[int]:
    return list(np.reshape(element[0], [-1, 8])[:, 0] // 9)


@shape("tensorflow tutorial text generation", "shuffle", ids=first_of_rows)
def tutorial_characters() -> Any:
    ds = tf.data.Dataset.from_tensor_slices(np.arange(900)).batch(9, drop_remainder=True)
    ds = ds.map(lambda row: (row[:-1], row[1:])).shuffle(10000)
    return ds.batch(16, drop_remainder=True).prefetch(tf.data.experimental.AUTOTUNE)


@shape("haiku transformer", ids=0, take=20)
def haiku_transformer() -> Iterator[Any]:
    ds = tf.data.Dataset.from_tensor_slices(np.arange(300))
    ds = ds.window(9, shift=8, drop_remainder=True)
    ds = ds.flat_map(lambda window: window.batch(9, drop_remainder=True))
    ds = ds.map(lambda row: (row[:-1], row[1:])).repeat()
    ds = ds.shuffle(buffer_size=30, seed=6).batch(4, drop_remainder=True)
    return ds.as_numpy_iterator()


@shape("tensorflow tutorial nmt", ids=1, only="0", open="shuffle")
def tutorial_nmt() -> Any:
    inputs, targets = np.arange(80) * 3, np.arange(80)
    is_train = np.random.default_rng(0).uniform(size=(80,)) < 0.8
    return [
        tf.data.Dataset.from_tensor_slices((inputs[chosen], targets[chosen])).shuffle(80).batch(8)
        for chosen in (is_train, ~is_train)
    ]
