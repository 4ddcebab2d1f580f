"""Places in `fit`, and the part of an order that is each epoch's."""

from __future__ import annotations

from typing import Any

import pytest

import shardctl.tfds
from shardctl.errors import DatasetError, UnpredictableOrderError, UsageError
from shardctl.settings.read_settings import ReadSettings
from shardctl.tfds.keras_fit import FitEpochs, FitPlace, place_and_position
from tests.fit_runs import SETTINGS
from tests.order.order_cases import changed


def position_of(builder: Any, settings: ReadSettings = SETTINGS) -> Any:
    return shardctl.tfds.Position(builder, "train", settings)


def test_a_place_is_read_back_with_its_position(builder: Any) -> None:
    position = position_of(builder)
    epochs = FitEpochs(position, 3, None)
    epochs.begin(1)
    for _ in range(3):
        epochs.trained()
    state = epochs.place(is_over=False).with_position(position)
    place, of_position = place_and_position(state)
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
    place, state = place_and_position(epochs.place(is_over=False).with_position(position))
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
