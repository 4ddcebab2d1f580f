"""Places in `fit`, and the part of an order that is each epoch's."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import shardctl.tfds
from shardctl.errors import DatasetError, UnpredictableOrderError, UsageError
from shardctl.settings.read_settings import ReadSettings
from shardctl.tfds import keras_fit
from shardctl.tfds.keras_fit import FitEpochs, FitPlace, check_model, place_and_position
from tests.order.order_cases import changed
from tests.tfds.keras.fit_runs import SETTINGS, Script, check_stopped, pair, recording, whole_run


def position_of(builder: Any, settings: ReadSettings = SETTINGS) -> Any:
    return shardctl.tfds.Position(builder, "train", settings)


def test_a_place_is_read_back_with_its_position(builder: Any) -> None:
    position = position_of(builder)
    epochs = FitEpochs(position, 3, None)
    epochs.begin(1)
    for _ in range(3):
        epochs.trained()
    state = epochs.place(is_over=False).with_position(position)
    place, of_position, _ = place_and_position(state)
    assert place == FitPlace(epoch=1, steps=3, is_over=False, steps_per_epoch=None)
    assert (place.next_epoch, epochs.num_left, epochs.num_steps) == (1, 1, 4)
    other = position_of(builder)
    again = FitEpochs(other, 3, None)
    again.resume(place, of_position)
    assert (other.epoch_of_fit, other.consumed, again.num_left) == (1, 15, 1)
    other.set_state(position_of(builder).get_state())  # and out of fit
    assert (other.epoch_of_fit, other.consumed) == (None, 0)
    for broken in (b"", b"{}", b'{"fit": {"epoch": 1}, "position": {}}'):
        with pytest.raises(DatasetError, match="cannot be read"):
            place_and_position(broken)


def test_a_place_that_is_not_that_of_the_position_is_refused(builder: Any) -> None:
    position = position_of(builder)
    epochs = FitEpochs(position, 3, None)
    epochs.begin(1)
    epochs.trained()
    state = position.get_state()
    for place in (
        FitPlace(epoch=1, steps=2, is_over=False, steps_per_epoch=None),
        FitPlace(epoch=2, steps=1, is_over=False, steps_per_epoch=None),
    ):
        with pytest.raises(DatasetError, match=f"step {place.steps} of epoch {place.epoch} is not"):
            FitEpochs(position_of(builder), 3, None).resume(place, state)


def test_other_epochs_than_those_of_the_run_are_refused(builder: Any) -> None:
    settings = changed(SETTINGS, epochs=3)
    position = position_of(builder, settings)
    epochs = FitEpochs(position, 3, 2)
    epochs.begin(1)
    place, state, _ = place_and_position(epochs.place(is_over=False).with_position(position))
    for steps_per_epoch in (3, None):
        with pytest.raises(UsageError, match="had steps_per_epoch=2, and this has"):
            FitEpochs(position_of(builder), 1, steps_per_epoch).resume(place, state)
    other = FitEpochs(position_of(builder, changed(settings, buffer=3)), 3, 2)
    with pytest.raises(UsageError, match="buffer was 4, now 3"):
        other.resume(place, state)


def test_an_order_that_ends_before_fit_is_refused(builder: Any) -> None:
    FitEpochs(position_of(builder), 2, 2)
    with pytest.raises(UsageError, match="are 6 batches, and the order has 4: give ReadSettings"):
        FitEpochs(position_of(builder), 3, 2)
    with pytest.raises(UsageError, match="is fit without steps_per_epoch"):
        FitEpochs(position_of(builder, changed(SETTINGS, loop="keras-fit")), 1, 2)
    empty = position_of(builder, changed(SETTINGS, batch=20, drop_remainder=True))
    with pytest.raises(UsageError, match="for the order has no batches"):
        FitEpochs(empty, 1, None)
    files = ReadSettings(shuffle_seed=3, epochs=2, batch=4)
    repeated = position_of(builder, files)
    with pytest.raises(UnpredictableOrderError, match="timing"):
        FitEpochs(repeated, 2, None)


def test_a_fit_begins_where_the_position_is_or_is_refused(builder: Any) -> None:
    position = position_of(builder)
    epochs = FitEpochs(position, 4, None)
    position.advance(5)
    with pytest.raises(UsageError, match="is not where epoch 0 of this fit begins"):
        epochs.start(0)
    position.begin_epoch_of_fit(1)
    with pytest.raises(UsageError, match="is not where epoch 2 of this fit begins"):
        epochs.start(2)
    position.advance(10)
    epochs.start(1)
    assert (epochs.steps, epochs.num_left) == (2, 2)
    position.advance(6)
    epochs.start(2)
    assert (position.epoch_of_fit, position.consumed, epochs.num_left) == (2, 0, 4)


# The callbacks beside ResumeFit: which are refused, and what is restored for the others.


def refused(builder: Any, callbacks: Any) -> str:
    """Return why a fit with these callbacks is refused; nothing is trained on."""
    log: list[Any] = []
    position = position_of(builder)
    with pytest.raises(UsageError) as error:
        recording(log).fit(
            position.dataset(transform=pair),
            verbose=0,
            shuffle=False,
            callbacks=callbacks(shardctl.tfds.ResumeFit(position)),
        )
    assert log == []
    return str(error.value)


def test_callbacks_that_cannot_go_on_are_refused(builder: Any, tmp_path: Path) -> None:
    from keras import callbacks

    alone = shardctl.tfds.ResumeFit(position_of(builder))
    assert isinstance(alone, shardctl.tfds.ResumeFit)
    assert isinstance(alone, callbacks.Callback)
    with pytest.raises(UsageError, match="ResumeFit is a callback"):
        alone.set_model(recording([]))

    def backup() -> Any:
        return callbacks.BackupAndRestore(tmp_path)

    assert "0 callbacks are a keras.callbacks.BackupAndRestore" in refused(builder, lambda r: [r])
    assert "2 callbacks are" in refused(builder, lambda r: [backup(), backup(), r])
    assert "so it stands behind it" in refused(builder, lambda r: [r, backup()])
    assert "one ResumeFit is needed" in refused(
        builder, lambda r: [backup(), r, shardctl.tfds.ResumeFit(r._position)]
    )
    orbax = type("OrbaxCheckpoint", (callbacks.Callback,), {"__module__": "keras.src.new"})()
    message = refused(builder, lambda r: [orbax, backup(), r])
    assert "OrbaxCheckpoint begins anew when a run is started again" in message
    remote = callbacks.CSVLogger("gs://bucket/log.csv")
    assert "in a local file only" in refused(builder, lambda r: [backup(), r, remote])


@pytest.mark.slow
def test_a_learning_rate_of_each_epoch_is_set_once(builder: Any, tmp_path: Path) -> None:
    """What LearningRateScheduler makes of the rate it finds, it makes again of a restored one."""
    import keras

    script = Script(
        builder=builder,
        backup=tmp_path / "backup",
        save_freq=1,
        epochs=2,
        before=[lambda: keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate / 2)],
    )
    whole = whole_run(script)
    check_stopped(script, [("on_train_batch_end", n, "between") for n in (2, 3)], whole)
    assert float(script.model.optimizer.learning_rate.numpy()) == pytest.approx(0.001 / 4)


def test_progress_bars_know_how_long_an_epoch_is(
    builder: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Script(builder=builder, backup=tmp_path, epochs=1).run(verbose=2)
    assert "4/4" in capsys.readouterr().out


def test_torch_on_a_gpu_or_compiled_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr(keras_fit, "_backend", lambda: "torch")
    for device, compiles in (("cuda", False), ("cpu", True), ("cpu", False)):
        monkeypatch.setattr("keras.src.backend.torch.core.get_device", lambda each=device: each)
        model = SimpleNamespace(steps_per_execution=1, jit_compile=compiles)
        if (device, compiles) == ("cpu", False):
            check_model(model, None)
            continue
        with pytest.raises(UsageError, match=rf"torch \({device}, jit_compile={compiles}\)"):
            check_model(model, None)


# What `fit` may be given besides `position.dataset()`, and what is refused.


def fit(builder: Any, folder: Path, of: Any, settings: Any = SETTINGS, **compiled: Any) -> Any:
    """Return the batches that `fit` trains on, of what `of` makes of the position's dataset."""
    import keras

    log: list[tuple[int, list[int]]] = []
    position = position_of(builder, settings)
    recording(log, **compiled).fit(
        of(position.dataset(transform=pair)),
        epochs=2,
        verbose=0,
        shuffle=False,
        callbacks=[keras.callbacks.BackupAndRestore(folder), shardctl.tfds.ResumeFit(position)],
    )
    return dict(log)


def loosened(dataset: Any) -> Any:
    import tensorflow as tf

    options = tf.data.Options()
    options.deterministic = False
    return dataset.map(lambda *x: x, 2).with_options(options)


@pytest.mark.parametrize(
    ("of", "said"),
    [
        (lambda ds: ds.shuffle(9), "fit reads Shuffle that is not position.dataset"),
        (lambda ds: ds.cache().prefetch(1), "fit reads Cache that is not position.dataset"),
        (lambda ds: ds.unbatch().batch(2), "fit reads Unbatch, (Parallel)?Batch that is not pos"),
        (lambda ds: ds.take(2), "fit reads Take that is not position.dataset"),
        (lambda ds: ds.map(lambda *x: x, 2, deterministic=False), "without deterministic=False"),
        (loosened, "without deterministic=False"),
        (None, r"is not position.dataset\(\)"),  # the dataset of another position
    ],
)
def test_other_calls_behind_the_dataset_are_refused(
    builder: Any, tmp_path: Path, of: Any, said: str
) -> None:
    other = of or (lambda _: position_of(builder).dataset(transform=pair))
    with pytest.raises(UsageError, match=said):
        fit(builder, tmp_path, other)


def test_settings_that_are_not_those_of_fit_are_refused(builder: Any, tmp_path: Path) -> None:
    for settings, message in (
        (changed(SETTINGS, batch=None), "fit trains on batches"),
        (changed(SETTINGS, pass_index=1), "the epochs of fit count the passes"),
    ):
        with pytest.raises(UsageError, match=message):
            fit(builder, tmp_path, lambda dataset: dataset, settings)


@pytest.mark.slow
def test_maps_prefetch_and_a_strategy_of_one_process_leave_the_batches(
    tf: Any, builder: Any, tmp_path: Path
) -> None:
    plain = fit(builder, tmp_path, lambda dataset: dataset)
    assert len(plain) == 8
    assert plain == fit(
        builder,
        tmp_path,
        lambda dataset: dataset.map(lambda x, y: (x, 2 * y), tf.data.AUTOTUNE).prefetch(2),
    )
    with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
        assert fit(builder, tmp_path, lambda dataset: dataset) == plain
