"""Pipelines for images, after the shapes of public training code; each written anew."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Iterator
from typing import Any

from tests.corpus.world import decoded, masked, np, shape, tf, tfds

DIR = "."
AUTOTUNE = -1


def prefetch_to_device(batches: Any, size: int) -> Iterator[Any]:
    """Yield what an iterator yields, with some of it fetched ahead: Flax's queue."""
    queue = collections.deque(itertools.islice(batches, size))
    while queue:
        yield queue.popleft()
        queue.extend(itertools.islice(batches, 1))


def sharded(batch: Any) -> Any:
    """Return a batch with a dimension for devices, as NumPy arrays."""
    return tf.nest.map_structure(lambda x: np.reshape(x, [2, -1, *x.shape[1:]]), batch)


def augmented(example: Any) -> Any:
    image = tf.image.random_flip_left_right(tf.cast(example["image"], tf.float32))
    return {**example, "image": image}


def options(**values: Any) -> Any:
    made = tf.data.Options()
    for name, value in values.items():
        setattr(made, name, value)
    return made


def normalized(example: Any) -> Any:
    return {"image": tf.cast(example["image"], tf.float32) / 255, "label": example["label"]}


@shape("flax imagenet", take=40)
def flax_imagenet() -> Any:
    ds = tfds.load("images", split="train[10:110]", data_dir=DIR)
    ds = ds.with_options(options(experimental_slack=True)).cache().repeat().shuffle(16 * 8, seed=0)
    return ds.map(augmented, AUTOTUNE).batch(8, drop_remainder=True).prefetch(10)


@shape("flax imagenet", take=40)
def flax_imagenet_iterator() -> Any:
    return prefetch_to_device(map(sharded, flax_imagenet()), 2)


@shape("flax mnist", only="0")
def flax_mnist() -> Any:
    train = tfds.load("images", split="train", data_dir=DIR).map(normalized)
    test = tfds.load("images", split="validation", data_dir=DIR).map(normalized)
    tf.random.set_seed(0)
    train = train.repeat(3).shuffle(1024).batch(32, drop_remainder=True).take(10)
    return train.prefetch(1), test.batch(32, drop_remainder=True).prefetch(1)


@shape("scenic classification", take=30)
def scenic_train() -> Any:
    builder = tfds.builder("images", data_dir=DIR)
    split = tfds.even_splits("train", n=2, drop_remainder=True)[1]
    ds = builder.as_dataset(split=split, shuffle_files=False)
    ds = ds.map(normalized, AUTOTUNE).cache().repeat().map(augmented, AUTOTUNE)
    ds = ds.shuffle(40, seed=0).batch(8, drop_remainder=True)
    return map(sharded, iter(ds.prefetch(AUTOTUNE)))


@shape("big_vision", "without a seed", take=30)
def big_vision_train() -> Any:
    builder = tfds.builder("images", data_dir=DIR)
    ds = builder.as_dataset(split="train", shuffle_files=True)
    no_prefetch = tf.data.Options()
    no_prefetch.experimental_optimization.inject_prefetch = False
    ds = ds.with_options(no_prefetch).cache().shuffle(50, reshuffle_each_iteration=True)
    ds = ds.repeat(None).map(normalized, num_parallel_calls=16)
    return ds.batch(8, drop_remainder=True).prefetch(2)


@shape("big_vision", take=20, ids=masked)
def big_vision_eval() -> Any:
    config = tfds.ReadConfig(skip_prefetch=True, try_autocache=False)
    builder = tfds.builder("images", data_dir=DIR)
    ds = builder.as_dataset(split="validation[:21]", read_config=config)
    ds = ds.map(lambda e: {**normalized(e), "mask": True}, num_parallel_calls=16)
    padding = tf.nest.map_structure(lambda s: tf.zeros(s.shape, s.dtype), ds.element_spec)
    ds = ds.concatenate(tf.data.Dataset.from_tensors(padding).repeat())
    ds = ds.ragged_batch(8, drop_remainder=True).take(3)
    return ds.cache().repeat().prefetch(1)


@shape("haiku imagenet", "map", take=60)
def haiku_imagenet() -> Iterator[Any]:
    ds = tfds.load("images", split="train[:96]", data_dir=DIR)
    ds = (
        ds.with_options(options(deterministic=False))
        .cache()
        .repeat()
        .shuffle(buffer_size=80, seed=0)
    )
    ds = ds.map(lambda e: {**e, "image": decoded(e["image"])}, num_parallel_calls=8)
    for size in (4, 2):
        ds = ds.batch(size)
    yield from tfds.as_numpy(ds.prefetch(4))


@shape("haiku mnist", take=50, words=("train", "is_training=True"))
def haiku_mnist(split: str, *, is_training: bool, batch_size: int = 10) -> Iterator[Any]:
    ds = tfds.load("images:1.*.*", split=split, data_dir=DIR).cache().repeat()
    if is_training:
        ds = ds.shuffle(10 * batch_size, seed=0)
    return iter(tfds.as_numpy(ds.batch(batch_size)))


@shape("algoperf imagenet", take=30)
def algoperf_imagenet() -> Any:
    rng = tf.constant([7, 11], tf.int64)
    ds = tfds.load("images", split="train", data_dir=DIR)

    def decode(index: Any, example: Any) -> Any:
        key = tf.random.experimental.stateless_fold_in(rng, index)
        image = tf.image.stateless_random_flip_left_right(example["image"], key)
        return {"image": tf.cast(image, tf.float32), "label": example["label"]}

    ds = ds.cache().shuffle(64, seed=7, reshuffle_each_iteration=True).repeat()
    ds = ds.enumerate().map(decode, num_parallel_calls=16).batch(8, drop_remainder=True)
    ds = ds.enumerate().map(lambda i, b: {**b, "mix": i}, num_parallel_calls=16)
    return iter(ds.prefetch(10))


@shape("init2winit imagenet", only="0", take=20)
def init2winit_imagenet() -> Any:
    config = tfds.ReadConfig(add_tfds_id=True)

    def split(name: str) -> Any:
        ds = tfds.load("images", split=name, read_config=config, data_dir=DIR).cache()
        if name.startswith("train"):
            ds = ds.shuffle(128, seed=5, reshuffle_each_iteration=True).repeat()
        ds = ds.enumerate().map(lambda i, e: e, num_parallel_calls=4).batch(8)
        return (ds if name.startswith("train") else ds.cache()).prefetch(2)

    return split("train[60:]"), split("validation")


@shape("init2winit imagenet")
def init2winit_valid_epoch(num_batches: int | None = None) -> Iterator[Any]:
    ds = tfds.as_numpy(init2winit_imagenet()[1])
    for batch in itertools.islice(ds, num_batches):
        yield sharded(batch) if len(batch["label"]) == 8 else batch


@shape("clu deterministic_data", ids=masked)
def clu_padded() -> Any:
    ds = tfds.load("images", split="validation", data_dir=DIR)
    ds = ds.map(lambda e: dict(mask=True, **e), AUTOTUNE)
    filler = tf.nest.map_structure(lambda s: tf.zeros(s.shape, s.dtype)[None], ds.element_spec)
    ds = ds.concatenate(tf.data.Dataset.from_tensor_slices(filler).repeat(32 - 26))
    return ds.batch(4, drop_remainder=True).batch(2, drop_remainder=True).prefetch(4)


@shape("uncertainty-baselines", take=30)
def uncertainty_baselines() -> Any:
    context = tf.distribute.InputContext(num_input_pipelines=2, input_pipeline_id=1)
    config = tfds.ReadConfig(shuffle_seed=17, input_context=context)
    builder = tfds.builder("images", data_dir=DIR)
    ds = builder.as_dataset(split="train", shuffle_files=True, read_config=config)
    ds = ds.enumerate().map(lambda i, e: {**e, "element_id": i})
    ds = ds.shuffle(32, seed=17, reshuffle_each_iteration=True).repeat()
    ds = ds.map(normalized, AUTOTUNE)
    return ds.batch(8, drop_remainder=True).prefetch(AUTOTUNE)


class ReaderTfds:
    """A loader for PyTorch whose pipeline is made where its worker runs, as timm's."""

    epoch = 1

    def _made(self) -> Any:
        seed = 42 + self.epoch
        config = tfds.ReadConfig(shuffle_seed=seed, shuffle_reshuffle_each_iteration=True)
        builder = tfds.builder("images", data_dir=DIR)
        ds = builder.as_dataset(split="train", shuffle_files=True, read_config=config)
        return tfds.as_numpy(ds.repeat().shuffle(60, seed=1001).prefetch(16))

    def __iter__(self) -> Iterator[Any]:
        for number, sample in enumerate(self._made()):
            yield sample["image"], sample["label"]
            if number == 149:
                break


@shape("timm", ids=1, take=150)
def timm_reader() -> Any:
    return ReaderTfds()


@shape("simclr", "deterministic=False", ids=1, take=30)
def simclr() -> Any:
    builder = tfds.builder("images", data_dir=DIR)
    ds = builder.as_dataset(split="train", shuffle_files=True, as_supervised=False)
    ds = (
        ds.with_options(options(deterministic=False, experimental_slack=True))
        .shuffle(80)
        .repeat(-1)
    )
    ds = ds.map(lambda e: (decoded(e["image"]), e["label"]), AUTOTUNE)
    return ds.batch(8, drop_remainder=True).prefetch(AUTOTUNE)


@shape("compare_gan", take=30)
def compare_gan() -> Any:
    ds = tfds.load("images", split="train", data_dir=DIR)
    ds = ds.repeat().map(normalized, num_parallel_calls=4)
    ds = ds.map(lambda e: {**e, "z": tf.random.normal([2])})
    return ds.shuffle(50, seed=547).batch(8, drop_remainder=True).prefetch(4)


@shape("tensorflow tutorial distributed")
def tutorial_distributed() -> Any:
    strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
    ds = tfds.load("images", split="train", data_dir=DIR).map(normalized)
    ds = ds.cache().shuffle(100, seed=3).batch(16 * strategy.num_replicas_in_sync)
    return strategy.experimental_distribute_dataset(ds)


def parsed(record: Any) -> Any:
    return tf.io.parse_single_example(record, {"label": tf.io.FixedLenFeature([], tf.int64)})


def parsed_slowly(record: Any) -> Any:
    return {**parsed(record), "image": decoded(tf.zeros([2, 2]))}


@shape("ResNet-RS", "list_files|interleave|shuffle", take=30)
def resnet_rs() -> Any:
    ds = tf.data.Dataset.list_files("records/part-*", shuffle=True)
    ds = ds.interleave(
        tf.data.TFRecordDataset, cycle_length=4, num_parallel_calls=4, deterministic=False
    )
    ds = ds.repeat().shuffle(64).map(parsed_slowly, num_parallel_calls=4)
    ds = ds.batch(8, drop_remainder=True).prefetch(2)
    return ds.with_options(options(deterministic=False))


@shape("efficientnet", "parallel_interleave|list_files|shuffle", take=30)
def efficientnet_train() -> Any:
    ds = tf.data.Dataset.list_files("records/part-*", shuffle=True)
    read = tf.data.experimental.parallel_interleave(tf.data.TFRecordDataset, 4, sloppy=True)
    ds = ds.apply(read).shuffle(32).repeat()
    fuse = tf.data.experimental.map_and_batch(parsed, 8, 2, drop_remainder=True)
    return ds.apply(fuse).prefetch(2)


@shape("efficientnet")
def efficientnet_eval() -> Any:
    ds = tf.data.Dataset.list_files("records/part-*", shuffle=False)
    read = tf.data.experimental.parallel_interleave(tf.data.TFRecordDataset, 2, sloppy=False)
    fuse = tf.data.experimental.map_and_batch(parsed, 8, num_parallel_calls=4)
    return ds.apply(read).apply(fuse).prefetch(AUTOTUNE)
