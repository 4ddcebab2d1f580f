"""Pipelines for text, after the shapes of public training code; each written anew."""

from __future__ import annotations

import glob
import random
from collections.abc import Iterator
from typing import Any

from tests.corpus.world import np, shape, tf, tfds, tokenized, tokens

DIR = "."
AUTOTUNE = -1


def load(name: str = "text", split: str = "train", **more: Any) -> Any:
    return tfds.load(name, split=split, data_dir=DIR, **more).map(tokenized, AUTOTUNE)


def shorter(length: int) -> Any:
    return lambda example: tf.less(tf.shape(example["inputs"])[0], length + 1)


def padded(text: Any) -> Any:
    return {"inputs": tf.pad(text["inputs"][:12], [[0, 12 - tf.size(text["inputs"][:12])]])}


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


@shape("flax lm1b", "shuffle", ids=tokens, take=30, scan=True)
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


@shape("seqio mixture", ids=tokens, take=30)
def seqio_mixture() -> Any:
    config = tfds.ReadConfig(shuffle_seed=23, skip_prefetch=True, interleave_cycle_length=4)
    tasks = [
        load(name, shuffle_files=True, read_config=config).shuffle(30, seed=23).repeat()
        for name in ("text", "web")
    ]
    tasks = [task.map(padded, AUTOTUNE) for task in tasks]
    ds = tf.data.Dataset.sample_from_datasets(tasks, weights=[0.25, 0.75], seed=23)
    return ds.batch(8, drop_remainder=True).prefetch(AUTOTUNE)


class MultiHostDataLoadIterator:
    """Yields the batches of a dataset as arrays of all hosts, as MaxText does."""

    def __init__(self, dataset: Any) -> None:
        self.local_iterator = dataset.as_numpy_iterator()

    def __iter__(self) -> MultiHostDataLoadIterator:
        return self

    def __next__(self) -> Any:
        return next(self.local_iterator)


@shape("maxtext", ids=tokens, scan=True)
def maxtext_packed() -> Any:
    builder = tfds.builder("text", data_dir=DIR)
    config = tfds.ReadConfig(shuffle_seed=5)
    config.input_context = tf.distribute.InputContext(input_pipeline_id=1, num_input_pipelines=2)
    ds = builder.as_dataset(split="train", read_config=config, shuffle_files=True)
    ds = ds.map(tokenized, num_parallel_calls=AUTOTUNE).shuffle(24, seed=5).repeat(2)
    ds = packed(ds, 16).batch(4, drop_remainder=True)
    return MultiHostDataLoadIterator(ds.prefetch(AUTOTUNE))


def read_files(files: list[str]) -> Any:
    ds = tf.data.Dataset.from_tensor_slices(files)
    ds = ds.interleave(tf.data.TFRecordDataset, cycle_length=4, num_parallel_calls=4)
    features = {"label": tf.io.FixedLenFeature([], tf.int64)}
    return ds.map(lambda record: tf.io.parse_single_example(record, features), AUTOTUNE)


@shape("tensor2tensor")
def t2t_files() -> Any:
    files = sorted(glob.glob("records/part-*"))
    random.seed(0)
    random.shuffle(files)
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


@shape("haiku transformer", ids=lambda e: np.c_[e[0], e[1][:, -1:]], take=20)
def haiku_transformer() -> Any:
    ds = tf.data.Dataset.from_tensor_slices(np.arange(300))
    ds = ds.window(9, shift=8, drop_remainder=True).flat_map(
        lambda window: window.batch(9, drop_remainder=True)
    )
    ds = ds.map(lambda row: (row[:-1], row[1:])).repeat().shuffle(buffer_size=30, seed=6)
    return ds.batch(4, drop_remainder=True).as_numpy_iterator()
