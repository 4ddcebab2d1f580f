"""Callbacks, metrics and arguments of `fit` that continue with their state."""

from __future__ import annotations

import warnings
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
from tests.tfds.keras.fit_runs import SETTINGS, Stop, scalars, stopping


@dataclass(kw_only=True)
class Loop:
    """A script with some callbacks, and what is seen of it from outside."""

    builder: Any
    folder: Path
    made: Callable[[Path], list[Any]] = lambda _: []
    save_freq: int | str = 2
    outputs: int = 1
    num_epochs: int = 5  # of 4 batches, the last a partial one
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
            epochs=self.num_epochs,
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
            "scalars": scalars(self.folder),
            "files": [(f.name, f.read_bytes() if f.suffix == ".csv" else None) for f in files],
        }


def check_stopped(tmp_path: Path, stops: list[tuple[str, int]], **loop: Any) -> dict[str, Any]:
    """Compare a run that is stopped so often with one that is not; return what it leaves."""
    whole = Loop(folder=tmp_path / "whole", **loop).run()
    stopped = Loop(folder=tmp_path / "stopped", **loop)
    with pytest.raises(Stop):
        stopped.run(stopping(*stops[0]))
    for more in (*([stopping(*stop)] for stop in stops[1:]), []):
        try:
            found = stopped.run(*more)
        except Stop:
            continue
        break  # what stops early may end before it is stopped once more
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


CALLBACKS: dict[str, Callable[[Path], list[Any]]] = {
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
    "scalars": of_keras("TensorBoard", log_dir="board", update_freq=3),
    "the user's": of_user,
    "several": lambda folder: [
        one
        for name in ("slows on a plateau", "the best", "rows", "the user's")
        for one in CALLBACKS[name](folder)
    ],
}
# All together are quick enough to be tried often, each alone is not.
EACH = [pytest.param(n, marks=() if n == "several" else pytest.mark.slow) for n in CALLBACKS]
STOPS = [("on_epoch_end", 1), ("on_train_batch_end", 2), ("on_test_begin", 1)]


@pytest.mark.parametrize("name", EACH)
def test_a_callback_continues_with_its_state(builder: Any, tmp_path: Path, name: str) -> None:
    if name == "scalars":
        pytest.importorskip("tensorboard")
    loop = {"builder": builder, "made": CALLBACKS[name]}
    if name == "several":
        left = check_stopped(tmp_path, STOPS[1:2], num_epochs=3, **loop)
    else:
        left = check_stopped(tmp_path, STOPS, **loop)
    assert bool(left["scalars"]) == (name == "scalars")


@pytest.mark.slow
@pytest.mark.parametrize("save_freq", [1, 3, "epoch"])
@pytest.mark.parametrize("name", CALLBACKS)
def test_a_callback_continues_after_any_save(
    builder: Any, tmp_path: Path, name: str, save_freq: int | str
) -> None:
    if name == "scalars":
        pytest.importorskip("tensorboard")
    stops = [("on_epoch_end", 2), ("on_train_batch_begin", 4), ("on_train_end", 1)]
    check_stopped(tmp_path, stops, builder=builder, made=CALLBACKS[name], save_freq=save_freq)


@pytest.mark.slow
@pytest.mark.parametrize(
    "loop",
    [
        {"outputs": 2, "compiled": {"steps_per_execution": 3}, "save_freq": 3},
        {
            "compiled": {"loss": "binary_crossentropy", "weighted_metrics": ["mae"]},
            "fit": {"class_weight": {0: 1.0, 1: 0.25}, "validation_freq": 2},
        },
    ],
)
def test_arguments_of_fit_continue(builder: Any, tmp_path: Path, loop: dict[str, Any]) -> None:
    check_stopped(tmp_path, STOPS[:2], builder=builder, made=CALLBACKS["rows"], **loop)


@pytest.mark.slow
def test_metrics_of_each_replica_continue(builder: Any, tmp_path: Path) -> None:
    """On one device, as a process of tests has made its devices before."""
    import tensorflow as tf

    with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
        check_stopped(tmp_path, STOPS[:2], builder=builder, compiled={"run_eagerly": False})


def test_steps_of_an_execution_divide_those_of_an_epoch(builder: Any, tmp_path: Path) -> None:
    loop = Loop(
        builder=builder,
        folder=tmp_path / "run",
        compiled={"steps_per_execution": 2},
        fit={"steps_per_epoch": 3},
    )
    with pytest.raises(UsageError, match="steps_per_execution=2 does not divide steps_per_epoch=3"):
        loop.run()


def test_other_callbacks_than_those_of_the_run_are_refused(builder: Any, tmp_path: Path) -> None:
    loop = Loop(builder=builder, folder=tmp_path / "run", save_freq=1, made=CALLBACKS["rows"])
    with pytest.raises(Stop):
        loop.run(stopping("on_train_batch_end", 3))
    loop.made = CALLBACKS["stops early"]
    with pytest.raises(UsageError, match=r"had the callbacks .*CSVLogger.* this has .*EarlyStop"):
        loop.run()
    loop.made = CALLBACKS["rows"]
    loop.compiled = {"metrics": ["mse", "mae"]}
    with pytest.raises(UsageError, match="compile it with the metrics of then"):
        loop.run()


def test_a_callback_that_may_have_a_state_is_warned_of(builder: Any, tmp_path: Path) -> None:
    import keras

    own = type("Own", (keras.callbacks.Callback,), {})()
    own.counter = 0
    loop = Loop(builder=builder, folder=tmp_path / "run", made=lambda _: [own], num_epochs=1)
    with pytest.warns(UserWarning, match=r"Own begins anew .*\(counter\).*get_state"):
        loop.run()
    asked = of_user(tmp_path)[0]
    asked.get_state = None
    type(asked).get_state = lambda _: {1, 2}
    del asked.get_state
    loop = Loop(builder=builder, folder=tmp_path / "other", made=lambda _: [asked])
    with pytest.raises(UsageError, match=r"the state of Counting.* cannot be kept"):
        loop.run()


def test_states_are_read_back_as_they_were() -> None:
    arrays: list[Any] = []
    state = {"a": [1, None, "x", {"array": 2.5}], "b": np.arange(3), "c": np.float32(0.1)}
    found = unpacked(packed(state, arrays), arrays)
    assert found["a"] == state["a"]
    assert np.array_equal(found["b"], np.arange(3))
    assert found["c"] == np.float32(0.1)
    assert found["c"].dtype == np.float32
    for strange in ({1: 2}, object(), np.array(["x"]), {"a"}):
        with pytest.raises(TypeError):
            packed(strange, [])


def test_a_file_of_rows_that_lost_some_is_refused(tmp_path: Path) -> None:
    import keras

    rows = keras.callbacks.CSVLogger(tmp_path / "log.csv")
    (tmp_path / "log.csv").write_text("epoch,loss\n0,1.0\n")
    put_state(rows, {"keys": ["loss"], "size": 11})
    assert (tmp_path / "log.csv").read_text() == "epoch,loss\n"
    with pytest.raises(DatasetError, match="has 11 bytes, and had 17"):
        put_state(rows, {"keys": ["loss"], "size": 17})


# What Keras itself does with `steps_per_epoch` where a pass ends, as the guide has it.


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("steps", [3, pytest.param(4, marks=pytest.mark.slow)])
def test_epochs_end_where_a_pass_does(tf: Any, steps: int, is_known: bool) -> None:
    import keras

    for num_batches in (2, 3, 4, 6, 7, 9):
        left, expected = num_batches, []
        for _ in range(3):
            taken = min(left, steps)
            expected.append((taken, num_batches - left))
            left = 0 if taken < steps else left - taken
            # Keras begins anew behind an epoch that was too short, or where it sees the end.
            if taken < steps or (is_known and not left):
                left = num_batches
        batches = tf.data.Dataset.range(num_batches)
        if not is_known:
            batches = batches.filter(lambda _: True)
        seen: list[list[int]] = []

        class Model(keras.Model):  # type: ignore[misc]
            def train_step(self, data: Any, seen: Any = seen) -> Any:
                seen[-1].append(int(data[0].numpy().item()))
                return {"loss": 0.0}

        number = keras.Input((1,))
        model = Model(number, keras.layers.Dense(1)(number))
        model.compile("sgd", "mse", run_eagerly=True)
        begins = keras.callbacks.LambdaCallback(on_epoch_begin=lambda *_, s=seen: s.append([]))
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            model.fit(
                batches.map(lambda i: (tf.reshape(tf.cast(i, tf.float32), (1, 1)), i)),
                epochs=3,
                steps_per_epoch=steps,
                verbose=0,
                callbacks=[begins],
            )
        found = [(len(each), each[0] if each else num_batches) for each in seen]
        assert found == expected, num_batches
        too_short = sum("ran out of data" in str(one.message) for one in warned)
        assert too_short == sum(taken < steps for taken, _ in expected)
