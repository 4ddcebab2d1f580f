"""The seeds of an epoch: those of the iterator that TensorFlow makes for it."""

from __future__ import annotations

from typing import Any

import pytest

from shardctl.errors import UnpredictableOrderError
from shardctl.order.epoch_reading import EpochSeeds
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.tfdata.shuffle_seeds import KernelSeeds
from tests.tfdata.shuffle_oracles import iterator_seeds

BUFFER: dict[str, Any] = {"buffer": 9, "buffer_seed": 5}


def seeds(*, partial_last_batch: bool = False, **settings: Any) -> EpochSeeds:
    return EpochSeeds(settings=ReadSettings(**settings), partial_last_batch=partial_last_batch)


# How many iterators a pass makes: one an epoch, one more where a repeat that is not fused with the
# shuffle asks for what follows the last epoch, and one more that Keras makes and drops.
@pytest.mark.parametrize(
    ("settings", "epoch", "iterator"),
    [
        pytest.param({}, 0, 0, id="the first epoch of the first pass"),
        pytest.param({"epochs": 3}, 2, 2, id="a later epoch"),
        pytest.param({"pass_index": 4}, 0, 4, id="a later pass of one epoch"),
        pytest.param({"epochs": 3, "pass_index": 2}, 1, 9, id="passes of 3 + 1 iterators"),
        pytest.param({"epochs": 3, "pass_index": 2, **BUFFER}, 1, 7, id="under a buffer of 3"),
        pytest.param({"loop": "keras-fit", "pass_index": 2}, 0, 4, id="Keras makes 2 a pass"),
        pytest.param(
            {
                "loop": "keras-fit",
                "pass_index": 2,
                "host": Host(index=0, count=2),
                "host_by": "files",
            },
            0,
            2,
            id="Keras does not know the length of what an InputContext reads",
        ),
    ],
)
def test_the_files_are_shuffled_by_the_iterator_of_their_epoch(
    settings: dict[str, Any], epoch: int, iterator: int
) -> None:
    found = seeds(shuffle_seed=7, **settings).of_files(epoch)
    assert found == iterator_seeds(7, None, True, iterator)


@pytest.mark.parametrize(
    ("settings", "epoch", "iterator"),
    [
        pytest.param({}, 0, 0, id="the first"),
        pytest.param({"epochs": 3, "pass_index": 2}, 1, 7, id="fused with the repeat: 3 a pass"),
        pytest.param({"epochs": 3, "repeat_files": True}, 0, 0, id="one endless epoch"),
        pytest.param({"loop": "keras-fit", "pass_index": 2}, 0, 4, id="Keras makes 2 a pass"),
    ],
)
def test_the_buffer_is_read_by_the_iterator_of_its_epoch(
    settings: dict[str, Any], epoch: int, iterator: int
) -> None:
    assert seeds(**BUFFER, **settings).of_buffer(epoch) == iterator_seeds(5, None, True, iterator)


def test_a_shuffle_that_does_not_reshuffle_has_one_pair_of_seeds() -> None:
    files = seeds(shuffle_seed=7, reshuffle=False, epochs=3, pass_index=2)
    assert [files.of_files(epoch) for epoch in range(3)] == [
        KernelSeeds(seed=87654321, seed2=7)  # TensorFlow's default, and the seed
    ] * 3
    buffer = seeds(**BUFFER, buffer_reshuffle=False, epochs=3)
    assert buffer.of_buffer(0) == buffer.of_buffer(2) == KernelSeeds(seed=87654321, seed2=5)


def test_shuffles_without_seeds_of_their_own_draw_theirs_one_after_the_other() -> None:
    drawn: dict[str, Any] = {"global_seed": 1, "buffer": 9, "deterministic": True}
    both = seeds(shuffle_files=True, **drawn)
    assert both.of_files(0) == iterator_seeds(None, 1, True, 0, op_index=0)
    assert both.of_buffer(0) == iterator_seeds(None, 1, True, 0, op_index=1)
    assert seeds(**drawn).of_buffer(0) == iterator_seeds(None, 1, True, 0, op_index=0)
    # A file shuffle with a seed of its own draws none.
    assert seeds(shuffle_seed=7, **drawn).of_buffer(0) == iterator_seeds(None, 1, True, 0)


def test_a_later_pass_of_keras_over_a_repeat_is_left_open_unless_a_partial_batch_asks() -> None:
    fit: dict[str, Any] = {"loop": "keras-fit", "epochs": 2, "pass_index": 1, "shuffle_seed": 7}
    with pytest.raises(UnpredictableOrderError, match="depends on timing"):
        seeds(**fit).of_files(0)
    # Then a pass of 2 epochs makes 2, and one more for the repeat, and one more for Keras.
    found = seeds(**fit, partial_last_batch=True).of_files(0)
    assert found == iterator_seeds(7, None, True, 4)
