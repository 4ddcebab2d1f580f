"""Scripts of `resume --for`, as they are: stopped and started again, each batch is trained once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from shardctl.core.hosts.host import Host
from shardctl.core.resume.resume_plan import ResumePlan
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.stages.text import parse_stages
from shardctl.errors import UsageError
from shardctl.planning.resume.hosts import resume_on_hosts
from shardctl.planning.resume.resume import resume
from shardctl.planning.resume.seen import resume_unseen
from shardctl.readers.tfds_metadata import read_tfds_folder
from shardctl.rendering.python.frameworks import FRAMEWORKS
from shardctl.rendering.python.training_script import training_script
from tests.tfds_datasets import build_dataset

NUM_CLASSES = 200
SETTINGS = ReadSettings(shuffle_seed=3, buffer=20, buffer_seed=7, epochs=2, batch=2)


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a dataset of images of two sizes, each with a label of its own."""
    import tensorflow_datasets as tfds

    features = tfds.features.FeaturesDict(
        {
            "image": tfds.features.Image(shape=(None, None, 1)),
            "label": tfds.features.ClassLabel(num_classes=NUM_CLASSES),
        }
    )
    return build_dataset(
        tmp_path_factory.mktemp("images"),
        splits={"train": [70, 0, 30, 100]},
        features=features,
        example=lambda i: {"image": np.full((3 + i % 2, 2, 1), i, np.uint8), "label": i},
    )


def script_of(plan: ResumePlan, framework: str) -> str:
    return "".join(training_script(plan, None, framework=framework))


class Stopped(Exception):
    """Stands for the end of a process."""


def run(text: str, folder: Path, after: int | None = None) -> dict[str, Any]:
    """Run a script in a folder until it has trained `after` batches, or to its end.

    Returns:
        Its names, and as "trained" the labels of each batch of its own loop.
    """
    import keras

    from shardctl.tfds import Position

    path = folder / "train.py"
    path.write_text(text)
    trained: list[list[int]] = []
    count, fit = Position.count, keras.Model.fit

    def counted(self: Any, elements: Any, **options: Any) -> Iterator[Any]:
        for x, y in count(self, elements, **options):
            if len(trained) == after:
                raise Stopped
            trained.append(np.asarray(y).tolist())
            yield x, y

    class Stop(keras.callbacks.Callback):
        def __init__(self) -> None:
            super().__init__()
            self.batches = 0

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.batches += 1
            if self.batches == after:
                raise Stopped

    def fitted(self: Any, *arguments: Any, callbacks: Any, **options: Any) -> Any:
        return fit(self, *arguments, callbacks=[*callbacks, Stop()], verbose=0, **options)

    names: dict[str, Any] = {}
    with (
        pytest.MonkeyPatch.context() as patch,
        mock.patch.object(Position, "count", counted),
        mock.patch.object(keras.Model, "fit", fitted),
    ):
        patch.chdir(folder)
        if after is None:
            exec(compile(text, str(path), "exec"), names)
        else:
            with pytest.raises(Stopped):
                exec(compile(text, str(path), "exec"), names)
    if "flax" in text:
        names["checkpoints"].close()
    return {**names, "trained": trained}


def weights_of(names: dict[str, Any]) -> tuple[Any, Any]:
    model = names["model"]
    if hasattr(model, "get_weights"):
        return tuple(model.get_weights())
    return np.asarray(model.kernel[...]), np.asarray(model.bias[...])


def learnt(batches: list[list[int]]) -> tuple[Any, Any]:
    """Return the weights of a linear model that SGD has taught the batches, one after the other.

    All pixels of image i are i / 255, whatever their number is.
    """
    weights, bias = np.zeros((32 * 32, NUM_CLASSES)), np.zeros(NUM_CLASSES)
    for labels in batches:
        x = np.repeat(np.array(labels)[:, None] / 255, 32 * 32, axis=1)
        logits = x @ weights + bias
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        slope = odds / odds.sum(axis=1, keepdims=True) - np.eye(NUM_CLASSES)[labels]
        weights -= 0.1 * x.T @ slope / len(labels)
        bias -= 0.1 * slope.mean(axis=0)
    return weights, bias


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_each_batch_is_trained_once_however_often_it_is_stopped(
    images: Path, tmp_path: Path, framework: str
) -> None:
    import tensorflow_datasets as tfds

    from shardctl.tfds import pipeline

    builder = tfds.builder_from_directory(images)
    labels = pipeline(builder, "train", SETTINGS, transform=lambda example: example["label"])
    whole = [batch.tolist() for batch in labels.as_numpy_iterator()]
    plan = resume(read_tfds_folder(images), "train", SETTINGS, steps=80, mode="exact-order")
    text = script_of(plan, framework)
    # The first is stopped before there is a checkpoint; they are made at steps 100 and 200.
    parts = [run(text, tmp_path, after) for after in (15, 50, 110, None)]
    if framework != "keras":
        assert [part["trained"] for part in parts] == [
            whole[80:95],
            whole[80:130],
            whole[100:210],
            whole[200:],
        ]
    for found, expected in zip(weights_of(parts[-1]), learnt(whole[80:]), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)
    again = run(text, tmp_path)  # it has ended: nothing is trained again
    assert again["trained"] == []
    for found, expected in zip(weights_of(again), weights_of(parts[-1]), strict=True):
        np.testing.assert_array_equal(found, expected)
