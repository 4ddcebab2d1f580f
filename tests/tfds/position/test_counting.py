"""Loops over what a position hands out: what is counted as trained on, and what is refused."""

from __future__ import annotations

import contextlib
import itertools
import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from shardctl.errors import UsageError
from shardctl.settings.read_settings import ReadSettings, as_settings
from shardctl.tfds import Position, exact_order
from tests.order.order_cases import changed

SETTINGS = ReadSettings(cycle=2, block=2, shuffle_seed=5, epochs=2, batch=4)


class Trained:
    """A loop's own count of the batches that it trained on."""

    def __init__(self) -> None:
        self.steps = 0

    def __call__(self) -> int:
        return self.steps


def saved(position: Any) -> int:
    return int(json.loads(position.get_state())["consumed"])


def test_a_state_before_the_batch_in_hand_is_trained_on_is_that_before_it(
    tf: Any, builder: Any
) -> None:
    for step in (tf.Variable(3), Trained()):
        position = Position(builder, "train", SETTINGS, consumed=8)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for number, _ in enumerate(position.count(position.dataset(), step=step)):
                assert (position.consumed, saved(position)) == (
                    min(12 + 4 * number, 34),
                    8 + 4 * number,
                )
                step.assign_add(1) if hasattr(step, "assign_add") else vars(step).update(
                    steps=step.steps + 1
                )
                assert saved(position) == position.consumed
        assert saved(position) == 34


def test_a_loop_that_ends_in_mid_batch_has_not_trained_on_it(builder: Any) -> None:
    """As the plan to resume says, from which the next dataset is made."""
    step, position = Trained(), Position(builder, "train", SETTINGS)
    with contextlib.suppress(KeyboardInterrupt):
        for number, _ in enumerate(position.count(position.dataset(), step=step)):
            if number == 2:
                raise KeyboardInterrupt
            step.steps += 1
    assert saved(position) == 8
    assert position.plan().consumed == 8
    for number, batch in enumerate(position.count(position.dataset(), step=step)):
        if number == 1:
            break  # without a step for it
        rest = exact_order(builder, "train", SETTINGS, consumed=8)
        assert batch["id"].numpy().tolist() == next(iter(rest))["id"].numpy().tolist()
        step.steps += 1
    assert saved(position) == position.consumed == 12


def test_a_signal_between_any_two_instructions_finds_what_was_trained_on(builder: Any) -> None:
    step, position = Trained(), Position(builder, "train", SETTINGS)
    found = set[tuple[int, int]]()

    def trace(frame: Any, event: str, _: object) -> Any:
        if not frame.f_code.co_filename.endswith(("tfds/position.py", "position_counting.py")):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            sys.settrace(None)
            found.add((position.plan().consumed, step.steps))
            sys.settrace(trace)
        return trace

    before = sys.gettrace()
    try:
        # Python 3.12 traces instructions only if some frame asked for it before this.
        sys._getframe().f_trace_opcodes = True
        sys.settrace(trace)
        for _ in position.count(position.dataset().take(2), step=step):
            step.steps += 1
    finally:
        sys.settrace(before)
    assert found == {(0, 0), (4, 1), (8, 2)}


def test_a_step_that_does_not_go_up_by_one_is_refused(builder: Any) -> None:
    def loop(added: int) -> Any:
        step, position = Trained(), Position(builder, "train", SETTINGS)
        batches = position.count(position.dataset(), step=step)
        next(batches)
        step.steps += added
        with pytest.raises(UsageError, match=f"step was 0 .* and is {added} when the next"):
            next(batches)
        return position

    assert saved(loop(0)) == 0  # the batch was not trained on
    with pytest.raises(UsageError, match="step was 0 when a batch was handed out, and is 2 now"):
        loop(2).get_state()
    position = Position(builder, "train", SETTINGS)
    with pytest.raises(UsageError, match="not what reads ahead of it"):
        list(position.count(position.dataset(), step=Trained()))
    for step in (3, "3", 1.5):
        with pytest.raises(UsageError, match="step"):
            position.count(position.dataset(), step=step)


@pytest.mark.slow
def test_one_loop_counts_at_a_time_and_nothing_else_moves_the_position(builder: Any) -> None:
    def moved_by(move: Callable[[Any], Any]) -> None:
        position = Position(builder, "train", SETTINGS)
        batches = position.count(position.dataset())
        next(batches)
        move(position)
        there = position.consumed
        with pytest.raises(UsageError, match=f"the position went to {there} while a loop counted"):
            next(batches)
        assert position.consumed == there

    moved_by(lambda position: position.advance(4))
    moved_by(lambda position: next(position.count(position.dataset())))
    first = Position(builder, "train", SETTINGS).get_state()
    moved_by(lambda position: position.set_state(first))
    position = Position(builder, "train", SETTINGS)
    for _ in range(2):  # one after the other is as people do it
        for _ in itertools.islice(position.count(position.dataset()), 2):
            pass
    assert position.consumed == 16


def test_a_smaller_batch_is_the_last_of_an_epoch_or_of_what_is_counted(builder: Any) -> None:
    import numpy as np

    settings = changed(SETTINGS, batch=None)
    rows: Callable[[int], Any] = np.zeros
    position = Position(builder, "train", settings)
    # Epochs of 17, batched each for itself.
    assert sum(1 for _ in position.count(map(rows, [6, 6, 5, 6, 6, 5]), batch=6)) == 6
    assert position.consumed == 34
    position = Position(builder, "train", settings)
    assert sum(1 for _ in position.count(map(rows, [6, 3]), batch=6)) == 2
    assert position.consumed == 9
    position = Position(builder, "train", settings)
    # Images of 3 rows that are no batches.
    with pytest.raises(UsageError, match="less than 6 examples is followed by another"):
        list(position.count(map(rows, [3, 3]), batch=6))


def test_a_failed_count_leaves_the_position_where_it_was(builder: Any) -> None:
    position = Position(builder, "train", SETTINGS, consumed=30)

    def elements() -> Any:
        yield from position_elements()
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        list(position.count(elements()))
    assert saved(position) == 34
    with pytest.raises(UsageError, match="4 examples after 34"):
        list(position.count(position_elements()))
    assert saved(position) == 34


def position_elements() -> Any:
    import numpy as np

    return [{"id": np.zeros(4)}]


@pytest.mark.slow
def test_elements_of_stages_are_counted_with_their_steps(builder: Any) -> None:
    settings = as_settings({"stages": "train | shuffle(5, seed=1) | batch(4) | repeat(2)"})
    step, position = Trained(), Position(builder, None, settings)
    for _ in position.count(position.dataset(), step=step):
        before = saved(position)
        step.steps += 1
        assert saved(position) - before == (1 if step.steps in (5, 10) else 4)
    assert saved(position) == 34


@pytest.mark.slow
def test_steps_of_every_library_and_none_that_stays(tf: Any, builder: Any) -> None:
    import keras
    import numpy as np

    jnp, nnx = pytest.importorskip("jax.numpy"), pytest.importorskip("flax.nnx")
    array, held = np.zeros((), int), {"step": jnp.zeros((), int)}
    variable = nnx.Variable(jnp.zeros((), jnp.uint32))
    of_keras = keras.optimizers.SGD().iterations

    def one_more() -> None:
        array[...] += 1
        held["step"] += 1
        variable[...] += 1
        of_keras.assign_add(1)

    position = Position(builder, "train", SETTINGS)
    for step in (array, lambda: held["step"], variable, of_keras):
        consumed = position.consumed
        for _ in position.count(position.dataset().take(2), step=step):
            one_more()
        assert position.consumed == consumed + 8
    for stays in (0, np.int64(0), tf.constant(0), jnp.zeros((), int)):
        with pytest.raises(UsageError, match=r"or a function .* as lambda: state\.step"):
            position.count(position.dataset(), step=stays)


def test_a_loop_behind_the_end_is_told_so(builder: Any) -> None:
    position = Position(builder, "train", SETTINGS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(list(position.count(position.dataset()))) == 9
        again = Position(builder, "train", SETTINGS, consumed=position.consumed)
        assert not list(again.count(again.dataset()))  # as where a run is started once more
    with pytest.warns(UserWarning, match="and this one gets none: all epochs of"):
        assert not list(position.count(position.dataset()))
