"""`fit` stopped wherever it may be, and started again, trains as one that nobody stops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shardctl
import shardctl.tfds
from shardctl.core.settings.read_settings import ReadSettings
from tests.core.order.order_cases import changed
from tests.tfds_datasets import build_dataset

SETTINGS = ReadSettings(shuffle_seed=3, cycle=2, block=2, batch=5, buffer=4, buffer_seed=1)
NUM_EPOCHS = 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_dataset(
        tmp_path_factory.mktemp("fit"), splits={"train": [2, 3, 4, 2, 5], "test": [3]}
    )


@pytest.fixture
def builder(folder: Path) -> Any:
    import tensorflow_datasets as tfds

    return tfds.builder_from_directory(folder)


def pair(example: Any) -> Any:
    import tensorflow as tf

    number = tf.cast(example["id"], tf.float32)[tf.newaxis]
    return number / 10, 2 * number


def recording(log: list[tuple[int, list[int]]], **compiled: Any) -> Any:
    """Return a model that notes each batch with the number of its step."""
    import keras

    class Recording(keras.Model):  # type: ignore[misc]
        def train_step(self, data: Any) -> Any:
            ids = np.round(data[0].numpy().ravel() * 10).astype(int).tolist()
            log.append((int(self.optimizer.iterations.numpy()), ids))
            return super().train_step(data)

    number = keras.Input((1,))
    model = Recording(number, keras.layers.Dense(1, kernel_initializer="ones")(number))
    options = {"loss": "mse", "run_eagerly": True, **compiled}
    model.compile(keras.optimizers.SGD(0.001, momentum=0.9), **options)
    return model


class Stop(Exception):
    """What ends a run in the midst of a call of Keras."""


@dataclass(kw_only=True)
class Script:
    """A training script as users write it, run as often as it is stopped."""

    builder: Any
    backup: Path
    settings: ReadSettings = SETTINGS
    save_freq: int | str = 2
    epochs: int = NUM_EPOCHS
    fit: dict[str, Any] = field(default_factory=dict)
    before: Sequence[Callable[[], Any]] = ()  # callbacks before BackupAndRestore
    log: list[tuple[int, list[int]]] = field(default_factory=list)
    position: Any = None
    model: Any = None
    of_epochs: dict[int, dict[str, float]] = field(default_factory=dict)

    def run(self, *between: Any, behind: Sequence[Any] = (), **fit: Any) -> Any:
        import keras

        self.position = shardctl.tfds.Position(self.builder, "train", self.settings)
        self.model = recording(self.log)
        notes = keras.callbacks.LambdaCallback(
            on_epoch_end=lambda epoch, logs: self.of_epochs.update({epoch: dict(logs)})
        )
        self.model.fit(
            self.position.dataset(transform=pair),
            epochs=self.epochs,
            verbose=0,
            shuffle=False,
            callbacks=[
                *(made() for made in self.before),
                keras.callbacks.BackupAndRestore(self.backup, save_freq=self.save_freq),
                *between,
                shardctl.tfds.ResumeFit(self.position),
                *behind,
                notes,
            ],
            **{**self.fit, **fit},
        )
        return self.model.get_weights()


def stopping(moment: str, count: int) -> Any:
    """Return a callback that stops the run when a method is called for the `count`th time."""
    import keras

    left = [count]

    def stop(*_: Any, **__: Any) -> None:
        left[0] -= 1
        if not left[0]:
            raise Stop

    made = type("Stopping", (keras.callbacks.Callback,), {moment: stop})
    return made()


def equal(some: Sequence[Any], others: Sequence[Any]) -> bool:
    return [w.tobytes() for w in some] == [w.tobytes() for w in others]


def check(script: Script, whole: dict[int, list[int]], weights: Sequence[Any], kills: int) -> None:
    """Run a script to its end, and compare with the run that nobody stopped."""
    assert equal(script.run(), weights)
    last = -1
    for step, ids in script.log:
        assert ids == whole[step], step
        assert step <= last + 1
        last = step
    assert {step for step, _ in script.log} == set(whole)
    assert kills


def whole_run(script: Script) -> tuple[dict[int, list[int]], Any]:
    weights = script.run()
    whole = dict(script.log)
    assert list(whole) == [step for step, _ in script.log] == list(range(len(whole)))
    script.log.clear()
    return whole, weights


def test_fit_over_a_position_is_fit_over_the_pipeline_as_predicted(
    builder: Any, tmp_path: Path
) -> None:
    script = Script(builder=builder, backup=tmp_path / "backup")
    whole, weights = whole_run(script)
    plain: list[tuple[int, list[int]]] = []
    model = recording(plain)
    model.fit(
        shardctl.tfds.pipeline(builder, "train", SETTINGS, transform=pair),
        epochs=NUM_EPOCHS,
        verbose=0,
        shuffle=False,
    )
    assert dict(plain) == whole
    assert equal(model.get_weights(), weights)
    predicted = [
        i
        for epoch in range(NUM_EPOCHS)
        for i in shardctl.simulate(
            shardctl.tfds.dataset_of(builder),
            "train",
            changed(SETTINGS, loop="keras-fit", pass_index=epoch),
        ).order.read(0, 16)
    ]
    assert [i for ids in whole.values() for i in ids] == predicted
    assert script.position.epoch_of_fit == NUM_EPOCHS - 1
    assert script.position.consumed == script.position.num_examples == 16
    assert repr(script.position) == "<Position 16 of 16 examples of train, epoch 2 of fit>"
    assert not (tmp_path / "backup").exists()


MOMENTS = [
    *(("on_train_batch_end", n) for n in range(1, 13)),
    *(("on_train_batch_begin", n) for n in (1, 5, 12)),
    ("on_epoch_begin", 2),
    ("on_epoch_end", 1),
    ("on_epoch_end", 3),
    ("on_test_begin", 2),
    ("on_test_batch_end", 2),
    ("on_test_end", 1),
    ("on_train_begin", 1),
    ("on_train_end", 1),
]


@pytest.mark.parametrize("save_freq", [1, 3, "epoch"])
def test_fit_stopped_anywhere_trains_as_one_that_is_not(
    builder: Any, tmp_path: Path, save_freq: int | str
) -> None:
    test = shardctl.tfds.pipeline(builder, "test", ReadSettings(batch=2), transform=pair)
    script = Script(
        builder=builder,
        backup=tmp_path / "backup",
        save_freq=save_freq,
        fit={"validation_data": test},
    )
    whole, weights = whole_run(script)
    losses = {epoch: logs["val_loss"] for epoch, logs in script.of_epochs.items()}
    for place in ("between", "behind"):
        for moment, count in MOMENTS:
            stop = stopping(moment, count)
            with pytest.raises(Stop):
                script.run(*[stop] * (place == "between"), behind=[stop] * (place == "behind"))
            check(script, whole, weights, 1)
            assert {e: logs["val_loss"] for e, logs in script.of_epochs.items()} == losses
            script.log.clear()
