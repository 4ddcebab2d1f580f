"""Training scripts with Keras `fit` and `ResumeFit`, stopped wherever it may be, started again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shardctl.tfds
from shardctl.settings.read_settings import ReadSettings

SETTINGS = ReadSettings(shuffle_seed=3, cycle=2, block=2, batch=5, buffer=4, buffer_seed=1)
NUM_EPOCHS = 3


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
    options = {"loss": "mse", "metrics": ["mae"], "run_eagerly": True, **compiled}
    model.compile(keras.optimizers.SGD(0.001, momentum=0.9), **options)
    return model


class Stop(Exception):  # noqa: N818
    """What ends a run in the midst of a call of Keras."""


@dataclass(kw_only=True)
class Script:
    """A training script as users write it, run as often as it is stopped."""

    builder: Any
    backup: Path
    settings: ReadSettings = SETTINGS
    save_freq: int | str = 2
    epochs: int = NUM_EPOCHS
    validates: bool = False
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
        if self.validates:
            test = shardctl.tfds.pipeline(
                self.builder, "test", ReadSettings(batch=2), transform=pair
            )
            fit = {"validation_data": test, **fit}
        notes = keras.callbacks.LambdaCallback(
            on_epoch_end=lambda epoch, logs: self.of_epochs.update({epoch: dict(logs)})
        )
        self.model.fit(
            self.position.dataset(transform=pair),
            epochs=self.epochs,
            shuffle=False,
            callbacks=[
                *(made() for made in self.before),
                keras.callbacks.BackupAndRestore(self.backup, save_freq=self.save_freq),
                *between,
                shardctl.tfds.ResumeFit(self.position),
                *behind,
                notes,
            ],
            **{"verbose": 0, **self.fit, **fit},
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


def scalars(folder: Path) -> dict[str, list[tuple[float, ...]]]:
    """Return the steps and values of each tag of TensorBoard; equal steps have equal values."""
    import tensorflow as tf
    from tensorflow.core.util import event_pb2

    found: dict[str, dict[int, Any]] = {}
    for file in folder.rglob("events.out.*"):
        # What was being written as the process was killed is left out.
        records = tf.data.TFRecordDataset(str(file)).ignore_errors()
        for record in records.as_numpy_iterator():
            event = event_pb2.Event.FromString(record)
            for value in event.summary.value:
                if value.tag != "keras":  # the model as JSON, once for each process
                    steps = found.setdefault(f"{file.parent.name}/{value.tag}", {})
                    array = tf.make_ndarray(value.tensor)
                    assert np.array_equal(steps.setdefault(event.step, array), array), value.tag
    return {
        name: [(step, *np.ravel(array).tolist()) for step, array in sorted(steps.items())]
        for name, steps in found.items()
    }


def whole_run(script: Script) -> tuple[dict[int, list[int]], Any]:
    weights = script.run()
    whole = dict(script.log)
    assert list(whole) == [step for step, _ in script.log] == list(range(len(whole)))
    script.log.clear()
    return whole, weights


def check_stopped(
    script: Script, stops: Sequence[tuple[str, int, str]], whole: tuple[dict[int, list[int]], Any]
) -> None:
    """Run a script that is stopped so often to its end, and compare it with the whole run.

    A stop is (method of a callback, at which of its calls, where the callback stands).
    """
    batches, weights = whole
    for moment, count, place in stops:
        stop = stopping(moment, count)
        with pytest.raises(Stop):
            script.run(*[stop] * (place == "between"), behind=[stop] * (place == "behind"))
    assert equal(script.run(), weights)
    last = -1
    for step, ids in script.log:
        assert ids == batches[step], step
        assert step <= last + 1
        last = step
    assert {step for step, _ in script.log} == set(batches)
