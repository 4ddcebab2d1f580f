"""Callbacks, metrics and arguments of `fit` that continue with their state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shardctl.tfds
from shardctl.errors import DatasetError, UsageError
from shardctl.settings.read_settings import ReadSettings
from shardctl.tfds.keras_fit import packed, put_state, unpacked
from tests.tfds.keras.fit_runs import SETTINGS, Stop, stopping

NUM_EPOCHS = 5  # of 4 batches, the last a partial one


@dataclass(kw_only=True)
class Loop:
    """A script with some callbacks, and what is seen of it from outside."""

    builder: Any
    folder: Path
    made: Callable[[Path], list[Any]] = lambda _: []
    save_freq: int | str = 2
    outputs: int = 1
    compiled: dict[str, Any] = field(default_factory=dict)
    fit: dict[str, Any] = field(default_factory=dict)
    validates: bool = True
    settings: ReadSettings = SETTINGS
    scope: Callable[[], Any] | None = None

    def __post_init__(self) -> None:
        self.epochs: dict[int, Any] = {}
        self.batches: dict[tuple[int, int], Any] = {}
        self.folder.mkdir()

    def model(self) -> Any:
        import keras

        first = keras.initializers.RandomNormal(seed=5)
        dense = partial(keras.layers.Dense, kernel_initializer=first)
        number = keras.Input((1,))
        hidden = keras.layers.Dropout(0.2, seed=5)(dense(4, activation="tanh")(number))
        outs = [dense(1, name=f"out{i}")(hidden) for i in range(self.outputs)]
        model = keras.Model(number, outs if self.outputs > 1 else outs[0])
        optimizer = keras.optimizers.SGD(0.05, momentum=0.9, use_ema=True, ema_momentum=0.5)
        metrics = [["mae"]] * self.outputs
        options = {"loss": "mse", "metrics": metrics, "run_eagerly": True, **self.compiled}
        model.compile(optimizer, **options)
        return model

    def run(self, *stop: Any) -> dict[str, Any]:
        """Run the script, and return what it leaves: logs, history, weights and files."""
        import keras
        import tensorflow as tf

        def pair(example: Any) -> Any:
            number = tf.cast(example["id"], tf.float32)[tf.newaxis]
            y = tf.sin(number) if self.outputs == 1 else (tf.sin(number), number % 2)
            if "class_weight" in self.fit:
                y = example["id"] % 2
            return number / 10, y

        position = shardctl.tfds.Position(self.builder, "train", self.settings)
        model = self.model()
        if self.validates:
            data = shardctl.tfds.pipeline(
                self.builder, "test", ReadSettings(batch=3), transform=pair
            )
            self.fit.setdefault("validation_data", data)
        notes = keras.callbacks.LambdaCallback(
            on_epoch_end=lambda epoch, logs: self.epochs.update({epoch: dict(logs)}),
            on_train_batch_end=lambda batch, logs: self.batches.update(
                {(int(model.optimizer.iterations.numpy()), batch): dict(logs)}
            ),
        )
        history = model.fit(
            position.dataset(transform=pair),
            epochs=NUM_EPOCHS,
            verbose=0,
            shuffle=False,
            callbacks=[
                keras.callbacks.BackupAndRestore(self.folder / "backup", save_freq=self.save_freq),
                *self.made(self.folder),
                shardctl.tfds.ResumeFit(position),
                notes,
                *stop,
            ],
            **self.fit,
        )
        files = [path for path in sorted(self.folder.rglob("*")) if path.suffix in (".csv", ".h5")]
        return {
            "epochs": self.epochs,
            "batches": self.batches,
            "history": (history.epoch, history.history),
            "weights": [w.tobytes() for w in model.get_weights()],
            "rate": float(model.optimizer.learning_rate.numpy()),
            "files": [(f.name, f.read_bytes() if f.suffix == ".csv" else None) for f in files],
        }


def check_stopped(tmp_path: Path, stops: list[tuple[str, int]], **loop: Any) -> dict[str, Any]:
    """Compare a run that is stopped so often with one that is not; return what it leaves."""
    whole = Loop(folder=tmp_path / "whole", **loop).run()
    stopped = Loop(folder=tmp_path / "stopped", **loop)
    for moment, count in stops:
        with pytest.raises(Stop):
            stopped.run(stopping(moment, count))
    found = stopped.run()
    for name, expected in whole.items():
        assert found[name] == expected, name
    return whole


def of_keras(name: str, **arguments: Any) -> Callable[[Path], list[Any]]:
    def made(folder: Path) -> list[Any]:
        import keras

        every = {k: str(folder / v) if k in _PATHS else v for k, v in arguments.items()}
        return [getattr(keras.callbacks, name)(**every)]

    return made


_PATHS = ("filename", "filepath", "log_dir")


def of_user(_: Path) -> list[Any]:
    """A callback that slows the training down by what it has counted and kept."""
    import keras

    class Counting(keras.callbacks.Callback):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.seen, self.losses = 0, np.zeros(3)

        def get_state(self) -> Any:
            return {"seen": self.seen, "losses": self.losses}

        def set_state(self, state: Any) -> None:
            self.seen, self.losses = state["seen"], np.array(state["losses"])

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            self.losses[1:] = 0

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.seen += 1
            self.losses[:] += logs["loss"]
            self.model.optimizer.learning_rate = 0.1 / (self.seen + float(self.losses.sum()))

    return [Counting()]


CALLBACKS = {
    "nothing": lambda _: [],
    "stops early": of_keras("EarlyStopping", monitor="val_loss", patience=1),
    "stops early with the best weights": of_keras(
        "EarlyStopping", monitor="loss", mode="max", patience=1, restore_best_weights=True
    ),
    "slows on a plateau": of_keras(
        "ReduceLROnPlateau", monitor="val_loss", mode="max", patience=1, cooldown=1
    ),
    "averages": of_keras("SwapEMAWeights"),
    "averages of epochs": of_keras("SwapEMAWeights", swap_on_epoch=True),
    "the best": of_keras(
        "ModelCheckpoint",
        filepath="e{epoch}.weights.h5",
        save_best_only=True,
        save_weights_only=True,
        monitor="mae",
        mode="min",
    ),
    "every three batches": of_keras(
        "ModelCheckpoint",
        filepath="b{epoch}-{batch}.weights.h5",
        save_weights_only=True,
        save_freq=3,
    ),
    "rows": of_keras("CSVLogger", filename="log.csv"),
    "rows added": of_keras("CSVLogger", filename="log.csv", append=True),
    "the user's": of_user,
}
STOPS = [("on_epoch_end", 1), ("on_train_batch_end", 2), ("on_test_begin", 1)]


@pytest.mark.parametrize("name", CALLBACKS)
def test_a_callback_continues_with_its_state(builder: Any, tmp_path: Path, name: str) -> None:
    check_stopped(tmp_path, STOPS, builder=builder, made=CALLBACKS[name])


@pytest.mark.slow
@pytest.mark.parametrize("save_freq", [1, 3, "epoch"])
@pytest.mark.parametrize("name", CALLBACKS)
def test_a_callback_continues_after_any_save(
    builder: Any, tmp_path: Path, name: str, save_freq: int | str
) -> None:
    stops = [("on_epoch_end", 2), ("on_train_batch_begin", 4), ("on_train_end", 1)]
    check_stopped(tmp_path, stops, builder=builder, made=CALLBACKS[name], save_freq=save_freq)
