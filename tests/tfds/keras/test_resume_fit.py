"""`fit` stopped wherever it may be, and started again, trains as one that nobody stops."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shardctl
import shardctl.tfds
from shardctl.errors import UsageError
from shardctl.tfds.keras_fit import (
    _ATTRIBUTE,
    _place_in_weights,
    drop_torn_metadata,
    save_weights_whole,
)
from tests import killed_runs
from tests.cases import FUZZ
from tests.order.order_cases import changed
from tests.tfds.keras.fit_runs import (
    NUM_EPOCHS,
    SETTINGS,
    Script,
    Stop,
    check_stopped,
    equal,
    pair,
    recording,
    scalars,
    stopping,
    whole_run,
)
from tests.tfds_datasets import build_dataset


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


@pytest.mark.slow
def test_fit_stopped_once_trains_as_one_that_is_not(builder: Any, tmp_path: Path) -> None:
    settings = changed(SETTINGS, batch=6)
    script = Script(builder=builder, backup=tmp_path, settings=settings, epochs=2)
    whole = whole_run(script)
    check_stopped(script, [("on_train_batch_end", 5, "between")], whole)


@pytest.mark.slow
def test_fit_stopped_behind_every_batch_trains_as_one_that_is_not(
    builder: Any, tmp_path: Path
) -> None:
    settings = changed(SETTINGS, batch=8)
    script = Script(
        builder=builder, backup=tmp_path, settings=settings, save_freq=1, epochs=2, validates=True
    )
    whole = whole_run(script)
    losses = {epoch: logs["val_loss"] for epoch, logs in script.of_epochs.items()}
    script.of_epochs.clear()
    check_stopped(script, [("on_train_batch_begin", 2, "behind")] * (len(whole[0]) - 1), whole)
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
        validates=True,
    )
    whole = whole_run(script)
    stops = [STOPS[one] for one in ((0, 1, 2, 4, 7) if save_freq == 3 else (3, 5, 6))]
    check_stopped(script, stops, whole)


@pytest.mark.slow
def test_steps_per_epoch_cut_the_one_order_of_all_epochs(builder: Any, tmp_path: Path) -> None:
    settings = changed(SETTINGS, epochs=3)  # 48 examples, 10 batches, epochs of 3
    script = Script(
        builder=builder,
        backup=tmp_path,
        settings=settings,
        validates=True,
        fit={"steps_per_epoch": 3},
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


# The place inside a weights file, random numbers beside it, and files that are torn.


def model_with_dropout() -> Any:
    import keras

    model = keras.Sequential([keras.Input((3,)), keras.layers.Dropout(0.5), keras.layers.Dense(2)])
    model.compile("sgd", "mse")
    return model


def test_a_place_and_random_numbers_are_in_the_file_of_the_weights(tmp_path: Path) -> None:
    import keras

    model, other = model_with_dropout(), model_with_dropout()
    setattr(model, _ATTRIBUTE, _place_in_weights()(lambda _: b"here", model))
    model(np.ones((1, 3)), training=True)
    model.save_weights(tmp_path / "a.weights.h5")
    model.save(tmp_path / "model.keras")
    drawn = [model(np.ones((4, 3)), training=True) for _ in range(3)]
    loaded = _place_in_weights()(lambda _: None, other)
    setattr(other, _ATTRIBUTE, loaded)
    other.load_weights(tmp_path / "a.weights.h5")
    assert (loaded.found, loaded.loaded) == (True, b"here")
    for expected in drawn:
        assert np.array_equal(other(np.ones((4, 3)), training=True), expected)
    # Whoever does not know of it finds nothing that is in the way.
    model_with_dropout().load_weights(tmp_path / "a.weights.h5")
    assert len(keras.models.load_model(tmp_path / "model.keras").layers) == 2
    delattr(model, _ATTRIBUTE)
    model.save_weights(tmp_path / "b.weights.h5")
    loaded.found, loaded.loaded = False, None
    other.load_weights(tmp_path / "b.weights.h5")
    assert (loaded.found, loaded.loaded) == (True, None)


def test_weights_are_written_beside_and_then_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = model_with_dropout()
    file = tmp_path / "a.weights.h5"
    save_weights_whole(model)
    save_weights_whole(model)
    model.save_weights(filepath=file, overwrite=True)
    before = file.read_bytes()
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("killed")))
    model.layers[-1].bias.assign([1.0, 1.0])
    with pytest.raises(OSError, match="killed"):
        model.save_weights(file)
    assert file.read_bytes() == before
    monkeypatch.undo()
    model.save_weights(file)
    assert file.read_bytes() != before
    assert [path.name for path in tmp_path.iterdir()] == ["a.weights.h5"]


@pytest.mark.parametrize(
    ("text", "is_kept"), [('{"epoch": 2, "batch": 1}', True), ("", False), ('{"epo', False)]
)
def test_torn_metadata_is_dropped(tmp_path: Path, text: str, is_kept: bool) -> None:
    file = tmp_path / "training_metadata.json"
    drop_torn_metadata(str(tmp_path))
    file.write_text(text)
    drop_torn_metadata(str(tmp_path))
    assert file.exists() == is_kept


@pytest.mark.slow
def test_what_backup_and_restore_leaves_half_written_changes_nothing(
    builder: Any, tmp_path: Path
) -> None:
    """Its files as a kill leaves them: metadata of before, torn, or with the weights gone."""
    settings = changed(SETTINGS, batch=8)  # two batches an epoch
    script = Script(
        builder=builder, backup=tmp_path / "backup", settings=settings, save_freq=1, epochs=2
    )
    whole = whole_run(script)
    metadata, weights = (
        script.backup / name for name in ("training_metadata.json", "latest.weights.h5")
    )
    for text, keeps_weights in (
        (json.dumps({"epoch": 0, "batch": 1}), True),  # saved in epoch 1, the weights only
        ("", True),
        (json.dumps({"epoch": 2, "batch": 0}), False),  # deleted as the run ended
    ):
        with pytest.raises(Stop):
            script.run(stopping("on_train_batch_begin", 4))  # three batches are saved
        metadata.write_text(text)
        if not keeps_weights:
            weights.unlink()
        check_stopped(script, [], whole)
        assert len(script.log) == (4 if keeps_weights else 3 + 4)
        script.log.clear()


def test_weights_that_were_saved_without_a_place_are_refused(builder: Any, tmp_path: Path) -> None:
    script = Script(builder=builder, backup=tmp_path, epochs=1)
    recording([]).save_weights(tmp_path / "latest.weights.h5")
    with pytest.raises(UsageError, match="saved without ResumeFit"):
        script.run()


# The script of the guide for `fit`, killed at random moments, trains as one that nobody kills.


LENGTHS = [400, 0, 250, 617, 300, 333, 100]  # 3 epochs of 32 batches, the last a partial one


def final_weights(run: Path, name: str = "final") -> dict[str, Any]:
    """Return what the weights file holds that the script has written at its end."""
    import h5py  # type: ignore[import-untyped]

    with h5py.File(run / f"{name}.weights.h5") as file:
        names: list[str] = []
        file.visit(names.append)
        # The file of a ModelCheckpoint holds a place as well.
        return {
            f"{name}/{each}": file[each][()]
            for each in names
            if isinstance(file[each], h5py.Dataset) and not each.startswith(_ATTRIBUTE)
        }


def all_that_is_left(run: Path) -> Mapping[str, Any]:
    """Return weights, rows, history, scalars, and what callbacks have counted in each step."""
    counted = sorted(set((run / "counted.log").read_text().splitlines()))
    with np.load(run / "history.npz") as history:
        found = {**final_weights(run), **final_weights(run, "best"), **history}
    rows = np.frombuffer((run / "log.csv").read_bytes(), np.uint8)
    return {**found, "rows": rows, "counted": np.array(counted), **scalars(run)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "backend", "kills"),
    [
        ("outputs", "tensorflow", 10),
        ("weights", "tensorflow", 10),
        ("replicas", "tensorflow", 5),
        ("outputs", "jax", 5),
        ("outputs", "torch", 5),
    ],
)
def test_all_that_continues_is_killed_at_random_moments(
    tfds: Any, tmp_path: Path, mode: str, backend: str, kills: int
) -> None:
    pytest.importorskip(backend)
    folder = build_dataset(
        tmp_path / "data", splits={"train": [40, 0, 25, 61, 30, 33, 10], "test": [30]}
    )
    path = tmp_path / "everything.py"
    path.write_text(Path(__file__).with_name("fit_everything.py.txt").read_text())
    script = killed_runs.Script(
        path=path,
        arguments=(folder, mode),
        outcome=all_that_is_left,
        environment={"KERAS_BACKEND": backend},
        loaded=backend == "tensorflow",
    )
    whole = killed_runs.whole_run(script, tmp_path / "whole")
    print(killed_runs.check_killed_runs(script, whole, tmp_path / "killed", kills=kills))


@pytest.mark.fuzz
def test_the_script_killed_at_random_moments_fuzzed(tfds: Any, tmp_path: Path) -> None:
    folder = killed_runs.build_images(tmp_path / "data", train=LENGTHS, test=[100])
    path = tmp_path / "fit_train.py"
    path.write_text(killed_runs.script_of_guide("keras", "fit_train.py"))
    script = killed_runs.Script(path=path, arguments=(folder,), outcome=final_weights)
    whole = killed_runs.whole_run(script, tmp_path / "whole")
    assert len(whole.steps) == 96
    print(
        killed_runs.check_killed_runs(script, whole, tmp_path / "killed", kills=max(1, FUZZ // 400))
    )
