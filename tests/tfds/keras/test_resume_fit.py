"""`fit` stopped wherever it may be, and started again, trains as one that nobody stops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import shardctl
import shardctl.tfds
from shardctl.errors import UsageError
from shardctl.settings.read_settings import ReadSettings
from tests.fit_runs import (
    NUM_EPOCHS,
    SETTINGS,
    Script,
    check_stopped,
    equal,
    pair,
    recording,
    whole_run,
)
from tests.order.order_cases import changed


def with_validation(builder: Any, **options: Any) -> dict[str, Any]:
    test = shardctl.tfds.pipeline(builder, "test", ReadSettings(batch=2), transform=pair)
    return {"validation_data": test, **options}


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
    dataset = shardctl.tfds.dataset_of(builder)
    orders = (
        shardctl.simulate(dataset, "train", changed(SETTINGS, loop="keras-fit", pass_index=epoch))
        for epoch in range(NUM_EPOCHS)
    )
    predicted = [i for order in orders for i in order.order.read(0, 16).tolist()]
    assert [i for ids in whole.values() for i in ids] == predicted
    assert script.position.epoch_of_fit == NUM_EPOCHS - 1
    assert repr(script.position) == "<Position 16 of 16 examples of train, epoch 2 of fit>"
    assert not (tmp_path / "backup").exists()
    assert model.stop_training is False


def test_fit_stopped_once_trains_as_one_that_is_not(builder: Any, tmp_path: Path) -> None:
    settings = changed(SETTINGS, batch=6)
    script = Script(builder=builder, backup=tmp_path, settings=settings, save_freq=2, epochs=2)
    whole = whole_run(script)
    check_stopped(script, [("on_train_batch_end", 5, "between")], whole)


@pytest.mark.slow
def test_fit_stopped_behind_every_batch_trains_as_one_that_is_not(
    builder: Any, tmp_path: Path
) -> None:
    fit = with_validation(builder)
    settings = changed(SETTINGS, batch=8)
    script = Script(
        builder=builder, backup=tmp_path, settings=settings, save_freq=1, epochs=2, fit=fit
    )
    whole = whole_run(script)
    losses = {epoch: logs["val_loss"] for epoch, logs in script.of_epochs.items()}
    script.of_epochs.clear()
    check_stopped(script, [("on_train_batch_end", 1, "between")] * len(whole[0]), whole)
    assert len(script.log) == len(whole[0]) == 4  # none was trained on twice
    assert {epoch: logs["val_loss"] for epoch, logs in script.of_epochs.items()} == losses


STOPS = [
    ("on_train_begin", 1, "between"),
    ("on_train_batch_end", 3, "between"),
    ("on_train_batch_begin", 4, "behind"),
    ("on_epoch_end", 1, "between"),
    ("on_epoch_begin", 1, "behind"),
    ("on_test_batch_end", 1, "between"),
    ("on_epoch_end", 1, "behind"),
    ("on_train_end", 1, "between"),
]


@pytest.mark.slow
@pytest.mark.parametrize("save_freq", [3, "epoch"])
def test_fit_stopped_elsewhere_trains_as_one_that_is_not(
    builder: Any, tmp_path: Path, save_freq: int | str
) -> None:
    script = Script(
        builder=builder,
        backup=tmp_path / "backup",
        save_freq=save_freq,
        settings=changed(SETTINGS, drop_remainder=True, batch=3),
        fit=with_validation(builder),
    )
    whole = whole_run(script)
    stops = STOPS if save_freq == 3 else [STOPS[3], STOPS[5], STOPS[6]]
    check_stopped(script, stops, whole)


@pytest.mark.slow
def test_steps_per_epoch_cut_the_one_order_of_all_epochs(builder: Any, tmp_path: Path) -> None:
    settings = changed(SETTINGS, epochs=3)  # 48 examples, 10 batches, epochs of 3
    script = Script(
        builder=builder,
        backup=tmp_path,
        settings=settings,
        save_freq=2,
        fit=with_validation(builder, steps_per_epoch=3),
    )
    whole = whole_run(script)
    dataset = shardctl.tfds.pipeline(builder, "train", settings, transform=lambda e: e["id"])
    stream = [batch.tolist() for batch in dataset.as_numpy_iterator()]
    assert list(whole[0].values()) == stream[:9]
    assert (script.position.epoch_of_fit, script.position.consumed) == (None, 45)
    script.backup = tmp_path / "again"
    stops = [("on_train_batch_end", n, "between") for n in (2, 5)]
    check_stopped(script, stops, whole)
    assert script.position.consumed == 45


@pytest.mark.slow
def test_a_second_fit_goes_on_or_is_refused(builder: Any, tmp_path: Path) -> None:
    import keras

    script = Script(builder=builder, backup=tmp_path / "backup", epochs=2)
    whole, _ = whole_run(Script(builder=builder, backup=tmp_path / "other"))
    script.run()
    callbacks = [
        keras.callbacks.BackupAndRestore(tmp_path / "backup"),
        shardctl.tfds.ResumeFit(script.position),
    ]
    again: dict[str, Any] = {"verbose": 0, "shuffle": False, "callbacks": callbacks}
    dataset = script.position.dataset(transform=pair)
    with pytest.raises(UsageError, match="is not where epoch 0 of this fit begins"):
        script.model.fit(dataset, epochs=3, **again)
    script.model.fit(dataset, epochs=3, initial_epoch=2, **again)
    assert [ids for _, ids in script.log] == list(whole.values())
