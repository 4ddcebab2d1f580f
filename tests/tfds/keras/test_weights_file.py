"""The place inside a weights file, random numbers beside it, and files that are torn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shardctl.errors import UsageError
from shardctl.tfds.keras_fit import PlaceInWeights, drop_torn_metadata, save_weights_whole
from tests.fit_runs import SETTINGS, Script, Stop, check_stopped, recording, stopping, whole_run
from tests.order.order_cases import changed


def model_with_dropout() -> Any:
    import keras

    model = keras.Sequential([keras.Input((3,)), keras.layers.Dropout(0.5), keras.layers.Dense(2)])
    model.compile("sgd", "mse")
    return model


def test_a_place_and_random_numbers_are_in_the_file_of_the_weights(tmp_path: Path) -> None:
    import keras

    model, other = model_with_dropout(), model_with_dropout()
    place = PlaceInWeights(lambda: b"here")
    place.put_into(model)
    model(np.ones((1, 3)), training=True)
    model.save_weights(tmp_path / "a.weights.h5")
    model.save(tmp_path / "model.keras")
    drawn = [model(np.ones((4, 3)), training=True) for _ in range(3)]
    loaded = PlaceInWeights(lambda: None)
    loaded.put_into(other)
    other.load_weights(tmp_path / "a.weights.h5")
    assert (loaded.found, loaded.loaded) == (True, b"here")
    for expected in drawn:
        assert np.array_equal(other(np.ones((4, 3)), training=True), expected)
    # Whoever does not know of it finds nothing that is in the way.
    model_with_dropout().load_weights(tmp_path / "a.weights.h5")
    assert len(keras.models.load_model(tmp_path / "model.keras").layers) == 2
    place.take_out_of(model)
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
            script.run(stopping("on_train_batch_end", 3))
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
