"""What the pipelines of the corpus read, small, and what is stated of each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tests.late_modules import LateModule
from tests.tfds_datasets import build_dataset

SHARDS = {"train": [23, 20, 0, 27, 26, 24], "validation": [11, 15]}
TEXTS = {"train": [25, 17, 31, 23], "validation": [9, 14]}
EPISODES = {"train": [4, 3, 5]}
RECORDS = [17, 24, 20, 19]  # of files that nothing describes

Function = TypeVar("Function", bound=Callable[..., Any])


np: Any = LateModule("numpy")
tf: Any = LateModule("tensorflow")
tfds: Any = LateModule("tensorflow_datasets")
keras: Any = LateModule("keras")


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What is true of a pipeline, which the tests measure, and how it is asked.

    repo: whose code has this shape.
    open: why its order differs from run to run, as the answer says it; "" where it is fixed.
    by_python: whether Python code behind or before the dataset is why, which an answer assumes.
    cure: whether seeds or `deterministic=True`, of which a patch tells, fix its order.
    ids: where an element holds its ids: a key, an index, None if it is them, or a function.
    take: so many elements are compared of a pipeline without end.
    scan: whether a stage depends on the data, so that `--scan` answers it.
    only, words: the dataset that is meant, and arguments of the function.
    """

    repo: str
    open: str = ""
    by_python: bool = False
    cure: bool = True
    ids: Any = "label"
    take: int = 0
    scan: bool = False
    only: str | None = None
    words: tuple[str, ...] = ()


def shape(repo: str, open: str = "", **more: Any) -> Callable[[Function], Function]:
    """State what is true of a pipeline."""

    def stated(function: Function) -> Function:
        vars(function)["shape"] = Shape(repo=repo, open=open, **more)
        return function

    return stated


def tokens(element: Any) -> list[int]:
    """Return the ids in rows of tokens, each text a run of its id + 1; 0 is padding."""
    import numpy

    ids = []
    for texts in numpy.atleast_2d(element["inputs"] if isinstance(element, dict) else element):
        row = texts[texts > 0]
        ids += [int(token) - 1 for at, token in enumerate(row) if not at or row[at - 1] != token]
    return ids


def tokenized(example: Any) -> Any:
    """Return the tokens of a text; a script has a vocabulary for it."""
    words = tf.strings.to_number(tf.strings.split(example["text"]), tf.int32)
    return {"inputs": words, "targets": words}


def masked(element: Any) -> Any:
    """Return the ids in a batch that says by a mask what is padding, for which it has -1."""
    return np.where(element["mask"], element["label"], -1)


def of_photos(numbers: Any) -> list[int]:
    """Return the places of files in the list that Keras shuffled with the seed 1337."""
    files = list(range(40))
    np.random.RandomState(1337).shuffle(files)
    return [files.index(number) for number in numbers]


def decoded(image: Any) -> Any:
    """Return an image as numbers, which takes another time for each, as real images do."""
    work = tf.zeros([tf.random.uniform([], 1, 3000, tf.int32), 32])
    return tf.cast(image, tf.float32) / 255 + tf.reduce_sum(tf.matmul(work, work, transpose_a=True))


def build_world(root: Path) -> None:
    """Write all that the pipelines read into a folder; they run in it."""
    images = tfds.features.FeaturesDict(
        {"image": tfds.features.Tensor(shape=(4, 4, 3), dtype=np.uint8), "label": np.int64}
    )
    text = tfds.features.FeaturesDict({"text": tfds.features.Text()})
    steps = {"observation": np.int64, "is_last": np.bool_}
    episodes = tfds.features.FeaturesDict({"steps": tfds.features.Dataset(steps)})
    build_dataset(root, "images", SHARDS, features=images, example=_image)
    build_dataset(root, "ratings", {"train": [61, 39]}, features=images, example=_image)
    build_dataset(root, "text", TEXTS, features=text, example=lambda i: {"text": _line(i)})
    build_dataset(
        root, "web", {"train": [50, 41]}, features=text, example=lambda i: {"text": _line(i)}
    )
    build_dataset(root, "episodes", EPISODES, features=episodes, example=_episode)
    _write_files(root)


def _image(i: int) -> dict[str, Any]:
    return {"image": np.full([4, 4, 3], i % 256, np.uint8), "label": i}


def _line(i: int) -> str:
    return " ".join([str(i + 1)] * (1 + i * 7 % 11))


def _episode(i: int) -> dict[str, Any]:
    # Its steps are numbered through all episodes, each of which has up to five.
    count = 1 + i % 5
    return {"steps": [{"observation": 10 * i + k, "is_last": k == count - 1} for k in range(count)]}


def _write_files(root: Path) -> None:
    first = 0
    for name in ("records", "lines", "fixed", "photos/a", "photos/b"):
        (root / name).mkdir(parents=True)
    for index, length in enumerate(RECORDS):
        numbers = range(first, first + length)
        first += length
        with tf.io.TFRecordWriter(str(root / f"records/part-{index}.tfrecord")) as writer:
            for number in numbers:
                feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[number]))
                features = tf.train.Features(feature={"label": feature})
                writer.write(tf.train.Example(features=features).SerializeToString())
        lines = "".join(f"{_line(number)}\n" for number in numbers)
        (root / f"lines/part-{index}.txt").write_text(lines)
        (root / f"fixed/batch-{index}.bin").write_bytes(bytes(numbers))
    (root / "table.csv").write_text("".join(["id,name\n", *(f"{i},n{i}\n" for i in range(60))]))
    for i in range(40):
        pixel = tf.fill([2, 2, 3], tf.constant(i, tf.uint8))
        (root / f"photos/{'ab'[i // 20]}/{i:03}.png").write_bytes(tf.io.encode_png(pixel).numpy())
