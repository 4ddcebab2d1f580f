"""Keras `fit`, stopped between and in the midst of its epochs, trains on what is left."""

from __future__ import annotations

from typing import Any

import pytest

import shardctl.tfds
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.settings.read_settings import ReadSettings
from tests.order.order_cases import changed
from tests.pipelines.real_pipelines import epochs_of_fit

FILES = ReadSettings(shuffle_seed=3, cycle=2, block=2, batch=5)
NUM_EPOCHS = 4
BATCH: Any = ("batch", "example", False)


def only_id(example: Any) -> Any:
    return example["id"]


@pytest.mark.parametrize(
    ("settings", "stops"),
    [
        (changed(FILES, buffer=5, buffer_seed=1), [(2, 2)]),
        pytest.param(FILES, [(1, 0)], marks=pytest.mark.slow),
        pytest.param(
            changed(FILES, buffer=-2, buffer_seed=1, drop_remainder=True),
            [(1, 0), (2, 2)],
            marks=pytest.mark.slow,
        ),
        # 32 examples leave a partial batch.
        pytest.param(changed(FILES, epochs=2), [(1, 0), (2, 2)], marks=pytest.mark.slow),
    ],
)
def test_fit_resumes_with_the_order_of_the_epochs_that_are_left(
    builder: Any, settings: ReadSettings, stops: list[tuple[int, int]]
) -> None:
    dataset = shardctl.tfds.pipeline(builder, "train", settings, transform=only_id)
    whole = epochs_of_fit(dataset, BATCH, NUM_EPOCHS)
    assert len({tuple(ids) for ids in whole}) == NUM_EPOCHS
    for initial_epoch, steps in stops:
        how: Any = {"initial_epoch": initial_epoch, "steps": steps, "transform": only_id}
        rest = shardctl.tfds.keras_epochs(builder, "train", settings, epochs=NUM_EPOCHS, **how)
        found = {epoch: epochs_of_fit(dataset, BATCH, 1)[0] for epoch, dataset in rest}
        expected = {e: ids for e, ids in enumerate(whole) if e >= initial_epoch}
        expected[initial_epoch] = expected[initial_epoch][5 * steps :]
        assert found == expected


def test_the_end_of_an_epoch_is_the_start_of_the_next(builder: Any) -> None:
    settings = {"builder": builder, "spec": "train", "settings": FILES, "epochs": 3}
    ended = shardctl.tfds.keras_epochs(**settings, initial_epoch=1, steps=4)
    begun = shardctl.tfds.keras_epochs(**settings, initial_epoch=2)
    assert [epoch for epoch, _ in ended] == [epoch for epoch, _ in begun] == [2]
    last = shardctl.tfds.keras_epochs(**settings, initial_epoch=2, steps=4)
    assert list(last) == []


def test_a_repeat_in_each_epoch_without_a_partial_batch_is_refused(builder: Any) -> None:
    settings = changed(FILES, epochs=2, batch=4)
    with pytest.raises(UnpredictableOrderError, match="timing"):
        shardctl.tfds.keras_epochs(builder, "train", settings, epochs=3)


@pytest.mark.parametrize(
    ("settings", "options", "message"),
    [
        (ReadSettings(), {}, "fit trains on batches"),
        (changed(FILES, pass_index=1), {}, "the epochs of fit count the passes"),
        (FILES, {"initial_epoch": 5}, "fit has epochs 0 to 4"),
        (FILES, {"steps": 5}, "fit has 4 epochs of 4 steps"),
    ],
)
def test_what_fit_cannot_resume_from_is_refused(
    builder: Any, settings: ReadSettings, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        next(shardctl.tfds.keras_epochs(builder, "train", settings, epochs=4, **options))
