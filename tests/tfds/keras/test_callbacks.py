"""The callbacks beside ResumeFit: which are refused, and what is restored for the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import shardctl.tfds
from shardctl.errors import UsageError
from tests.fit_runs import SETTINGS, Script, check_stopped, pair, recording, whole_run


def refused(builder: Any, callbacks: Any) -> str:
    """Return why a fit with these callbacks is refused; nothing is trained on."""
    log: list[Any] = []
    position = shardctl.tfds.Position(builder, "train", SETTINGS)
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

    def backup() -> Any:
        return callbacks.BackupAndRestore(tmp_path)

    assert "0 callbacks are a keras.callbacks.BackupAndRestore" in refused(builder, lambda r: [r])
    assert "2 callbacks are" in refused(builder, lambda r: [backup(), backup(), r])
    assert "so it stands behind it" in refused(builder, lambda r: [r, backup()])
    assert "one ResumeFit is needed" in refused(
        builder, lambda r: [backup(), r, shardctl.tfds.ResumeFit(r._position)]
    )
    for stateful in (callbacks.EarlyStopping("loss"), callbacks.ReduceLROnPlateau("loss")):
        message = refused(builder, lambda r, other=stateful: [other, backup(), r])
        assert f"{type(stateful).__name__} begins anew when a run is started again" in message


def test_it_is_a_callback_of_fit(builder: Any) -> None:
    import keras

    position = shardctl.tfds.Position(builder, "train", SETTINGS)
    callback = shardctl.tfds.ResumeFit(position)
    assert isinstance(callback, shardctl.tfds.ResumeFit)
    assert isinstance(callback, keras.callbacks.Callback)
    with pytest.raises(UsageError, match="ResumeFit is a callback"):
        callback.set_model(recording([]))


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
