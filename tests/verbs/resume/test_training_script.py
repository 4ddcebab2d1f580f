"""Scripts of `resume --for`, as they are: stopped and started again, each batch is trained once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.errors import UsageError
from shardctl.metadata.tfds_metadata import read_tfds_folder
from shardctl.saved.resume_plan import ResumePlan
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.stages.text import parse_stages
from shardctl.verbs.resume.answer import resume, resume_unseen
from shardctl.verbs.resume.code import FRAMEWORKS, training_script
from shardctl.verbs.resume.hosts import resume_on_hosts
from tests.golden import assert_evaluated, assert_golden
from tests.strategies import error_line
from tests.tfds_datasets import build_dataset

NUM_CLASSES = 200
SETTINGS = ReadSettings(shuffle_seed=3, buffer=20, buffer_seed=7, epochs=3, batch=2)


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
        example=lambda i: {"image": np.full((3 + i % 2, 2, 1), i % 16, np.uint8), "label": i},
    )


def script_of(plan: ResumePlan, framework: str) -> str:
    return "".join(training_script(plan, None, framework=framework))


class StoppedError(Exception):
    """Stands for the end of a process."""


def run(text: str, folder: Path, after: int | None = None) -> dict[str, Any]:
    """Run a script in a folder until it has trained `after` batches, or to its end.

    Returns:
        Its names, and as "trained" the labels of each batch; of `fit` empty lists.
    """
    import keras

    from shardctl.tfds.position import Position

    if "flax" in text:
        pytest.importorskip("flax")
    path = folder / "train.py"
    path.write_text(text)
    trained: list[list[int]] = []
    count, fit = Position.count, keras.Model.fit

    def counted(self: Any, elements: Any, **options: Any) -> Iterator[Any]:
        for x, y in count(self, elements, **options):
            if len(trained) == after:
                raise StoppedError
            trained.append(np.asarray(y).tolist())
            yield x, y

    class Stop(keras.callbacks.Callback):  # type: ignore[misc]
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            trained.append([])
            if len(trained) == after:
                raise StoppedError

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
            with pytest.raises(StoppedError):
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

    All pixels of image i are i % 16 / 255, whatever their number is.
    """
    weights, bias = np.zeros((32 * 32, NUM_CLASSES)), np.zeros(NUM_CLASSES)
    for labels in batches:
        x = np.repeat(np.array(labels)[:, None] % 16 / 255, 32 * 32, axis=1)
        logits = x @ weights + bias
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        slope = odds / odds.sum(axis=1, keepdims=True) - np.eye(NUM_CLASSES)[labels]
        weights -= 0.1 * x.T @ slope / len(labels)
        bias -= 0.1 * slope.mean(axis=0)
    return weights, bias


@pytest.mark.slow
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_each_batch_is_trained_once_however_often_it_is_stopped(
    images: Path, tmp_path: Path, framework: str
) -> None:
    import tensorflow_datasets as tfds

    from shardctl.tfds.training.pipeline import pipeline

    builder = tfds.builder_from_directory(images)
    labels = pipeline(builder, "train", SETTINGS, transform=lambda example: example["label"])
    whole = [batch.tolist() for batch in labels.as_numpy_iterator()]
    plan = resume(read_tfds_folder(images), "train", SETTINGS, steps=80, mode="exact-order")
    text = script_of(plan, framework)
    # The first is stopped before there is a checkpoint; they are made every 100 steps.
    parts = [run(text, tmp_path, after) for after in (15, 130, None)]
    found = [part["trained"] for part in parts]
    if framework == "keras":  # saves every 100th batch that a process trains
        assert list(map(len, found)) == [15, 130, 300 - 180]
    else:
        assert found == [whole[80:95], whole[80:210], whole[200:]]
    for close, expected in zip(weights_of(parts[-1]), learnt(whole[80:]), strict=True):
        np.testing.assert_allclose(close, expected, rtol=1e-3, atol=1e-5)
    again = run(text, tmp_path)  # after it has ended
    assert again["trained"] == []
    for same, expected in zip(weights_of(again), weights_of(parts[-1]), strict=True):
        np.testing.assert_array_equal(same, expected)


def toy(settings: ReadSettings, consumed: int = 6, **options: Any) -> ResumePlan:
    return resume(DATASET, "train", settings, consumed=consumed, **options)


DATASET = Dataset(
    name="toy",
    version="1.0.0",
    splits=(Split(name="train", shard_lengths=(3, 5, 3)), Split(name="test", shard_lengths=(4,))),
)


def stages(text: str) -> ReadSettings:
    return ReadSettings(stages=parse_stages(text))


def test_what_a_position_does_not_continue_is_refused() -> None:
    def refused(plan: ResumePlan) -> str:
        return "\n".join(str(error_line(partial(script_of, plan, one))) for one in FRAMEWORKS)

    assert_evaluated(globals(), "no_script", refused, resume_on_hosts, resume_unseen, Host)


STAGES = replace(stages("shuffle(3) | repeat(2) | take(20) | batch(2)"), global_seed=9)
SCRIPTS = {
    "at the start": (ReadSettings(batch=2), 0),
    "inside a batch": (ReadSettings(batch=4, buffer=5, buffer_seed=1), 6),
    "later epoch": (ReadSettings(batch=4, epochs=2, shuffle_seed=3), 16),
    "stages": (STAGES, 4),
    "without end": (stages("shuffle(3, seed=1) | batch(3) | repeat"), 14),
    "fit": (ReadSettings(batch=2, shuffle_seed=1, loop="keras-fit", pass_index=3), 4),
}


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_this(name: str, framework: str) -> None:
    settings, consumed = SCRIPTS[name]
    try:
        text = script_of(toy(settings, consumed, mode="exact-order"), framework)
    except UsageError as error:
        text = f"error: {error}\n"
    folder = Path(__file__).parent / "golden" / "scripts"
    # Of a script the parts that no plan changes stand in the first alone.
    first = script_of(toy(ReadSettings(batch=2), 0), framework).splitlines()
    kept = [line for line in text.splitlines() if name == "at the start" or line not in first]
    assert_golden(folder / f"{framework}-{name.replace(' ', '-')}.txt", "\n".join(kept))


# Each part of a script is whole: what it names is imported or made in the script.
