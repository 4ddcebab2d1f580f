"""Pipelines over arrays, tables, image folders and episodes, after the shapes of public code."""

from __future__ import annotations

from typing import Any

from tests.corpus.world import keras, np, of_photos, shape, tf, tfds

DIR = "."
AUTOTUNE = -1


def first_of_windows(element: Any) -> Any:
    """Return the first number of each window of a batch of them."""
    return np.ravel((element[0] if isinstance(element, tuple) else element)[:, 0])


@shape("tensorflow recommenders", only="0")
def movielens_split() -> Any:
    ratings = tfds.load("ratings", split="train", data_dir=DIR)
    ratings = ratings.map(lambda e: {"title": e["image"], "label": e["label"]})
    tf.random.set_seed(42)
    shuffled = ratings.shuffle(100, seed=42, reshuffle_each_iteration=False)
    train, test = shuffled.take(80), shuffled.skip(80).take(20)
    return train.shuffle(100).batch(16).cache(), test.batch(8).cache()


@shape("keras-io mnist", "shuffle", ids=1)
def keras_arrays() -> Any:
    x, y = np.zeros([90, 2], "float32"), np.arange(90)
    return tf.data.Dataset.from_tensor_slices((x, y)).shuffle(buffer_size=1024).batch(64)


@shape("keras-io timeseries", ids=first_of_windows)
def keras_timeseries() -> Any:
    x = np.arange(120)
    return keras.utils.timeseries_dataset_from_array(x, x[30:], 6, sampling_rate=2, batch_size=16)


@shape("tensorflow tutorial timeseries", by_python=True, ids=first_of_windows)
def tutorial_windows() -> Any:
    x = np.arange(120)
    return keras.utils.timeseries_dataset_from_array(x, None, 6, shuffle=True, batch_size=32)


@shape("keras-io image classification", ids=lambda e: of_photos(e[0][:, 0, 0, 0]))
def keras_folder() -> Any:
    split: dict[str, Any] = {"validation_split": 0.2, "subset": "training", "seed": 1337}
    ds = keras.utils.image_dataset_from_directory(
        "photos", image_size=(2, 2), batch_size=8, verbose=False, **split
    )
    return ds.map(lambda image, label: (image + 0, label), AUTOTUNE).prefetch(AUTOTUNE)


@shape("tensorflow tutorial images", ids=1)
def tutorial_flowers() -> Any:
    def read(path: Any) -> Any:
        label = tf.strings.to_number(tf.strings.substr(path, -7, 3), tf.int64)
        return tf.io.decode_png(tf.io.read_file(path)), label

    ds = tf.data.Dataset.list_files("photos/*/*.png", shuffle=False)
    ds = ds.shuffle(40, seed=123, reshuffle_each_iteration=False)
    train = ds.skip(8).map(read, num_parallel_calls=AUTOTUNE)
    return train.cache().shuffle(buffer_size=50, seed=1).batch(8).prefetch(AUTOTUNE)


@shape("tensorflow tutorial csv", ids="id")
def tutorial_csv() -> Any:
    seeded: dict[str, Any] = {"num_epochs": 1, "shuffle_seed": 8, "shuffle_buffer_size": 20}
    return tf.data.experimental.make_csv_dataset("table.csv", batch_size=8, **seeded)


@shape("tensorflow tutorial csv", ids=0)
def tutorial_csv_lines() -> Any:
    ds = tf.data.experimental.CsvDataset("table.csv", [tf.int64, tf.string], header=True)
    return ds.repeat(2).shuffle(20, seed=1).batch(7)


@shape("acme replay", take=40)
def replay() -> Any:
    steps = {"label": np.arange(64), "observation": np.zeros([64, 2])}
    ds = tf.data.Dataset.from_tensor_slices(steps).cache().repeat()
    return ds.shuffle(32, seed=4).batch(8, drop_remainder=True).as_numpy_iterator()


@shape("brax trajectories", take=30, scan=True, ids=lambda e: e["label"] // 8)
def trajectories() -> Any:
    steps = {"label": np.arange(96).reshape(12, 8)}
    ds = tf.data.Dataset.from_tensor_slices(steps).shuffle(12, seed=1)
    return ds.unbatch().batch(6, drop_remainder=True).repeat()


@shape("rlds", ids=lambda e: e["observation"] // 10, scan=True)
def rlds_steps() -> Any:
    ds = tfds.load("episodes", split="train", data_dir=DIR)
    ds = ds.flat_map(lambda episode: episode["steps"])
    return ds.shuffle(10, seed=2).batch(4)


@shape("learning_to_simulate", ids=lambda e: e // 5, take=20, scan=True)
def windows_of_trajectories() -> Any:
    ds = tf.data.Dataset.from_tensor_slices(np.arange(40).reshape(8, 5))
    ds = ds.flat_map(tf.data.Dataset.from_tensor_slices)
    return ds.repeat().shuffle(16, seed=3).batch(4)


@shape("tensorflow models mnist", ids=lambda e: np.repeat(e[1], 2))
def fixed_length() -> Any:
    files = sorted(tf.io.gfile.glob("fixed/*.bin"))
    images = tf.data.FixedLengthRecordDataset(files, 1)
    labels = images.map(lambda b: tf.cast(tf.io.decode_raw(b, tf.uint8)[0], tf.int64))
    ds = tf.data.Dataset.zip((images, labels)).cache()
    return ds.shuffle(30, seed=5).repeat(2).batch(8)


@shape("tensorflow tutorial imbalanced", "shuffle", ids=lambda e: e[1] - 20 * (e[1] >= 20), take=30)
def tutorial_imbalanced() -> Any:
    def of_class(first: int, count: int) -> Any:
        labels = np.arange(first, first + count)
        ds = tf.data.Dataset.from_tensor_slices((np.zeros([count]), labels))
        return ds.shuffle(1000).repeat()

    parts = [of_class(0, 20), of_class(20, 70)]
    ds = tf.data.Dataset.sample_from_datasets(parts, weights=[0.5, 0.5])
    return ds.batch(16).prefetch(2)


@shape("tensorflow tutorial imbalanced", "rejection|filter", cure=False, ids=1, take=8)
def tutorial_resampled() -> Any:
    ds = tf.data.Dataset.from_tensor_slices((np.arange(90) % 9 == 0, np.arange(90)))
    ds = ds.map(lambda c, i: (tf.cast(c, tf.int64), i)).repeat()
    ds = ds.rejection_resample(lambda c, i: c, [0.5, 0.5], [8 / 9, 1 / 9])
    return ds.map(lambda _, pair: pair).batch(8)


@shape("tf-agents", ids=None)
def interleaved_shards() -> Any:
    ds = tf.data.Dataset.range(60)
    ds = tf.data.Dataset.range(3).interleave(
        lambda i: ds.shard(3, i).shuffle(8, seed=2), cycle_length=3, block_length=2
    )
    return ds.batch(5)


@shape("tensorflow guide snapshot")
def saved_and_loaded() -> Any:
    ds = tfds.load("images", split="train[:20]", data_dir=DIR).map(lambda e: {"label": e["label"]})
    if not tf.io.gfile.exists("saved"):
        ds.save("saved")
    return tf.data.Dataset.load("saved").shuffle(20, seed=1).batch(8)
