"""Loops over what a position hands out: what is counted as trained on, and what is refused."""

from __future__ import annotations

import contextlib
import itertools
import json
import sys
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shardctl.errors import UsageError
from shardctl.settings.read_settings import ReadSettings, as_settings
from shardctl.tfds import Position, exact_order, pipeline, resume
from tests.golden import values
from tests.order.order_cases import changed

SETTINGS = ReadSettings(cycle=2, block=2, shuffle_seed=5, epochs=2, batch=4)


class Trained:
    """A loop's own count of the batches that it trained on."""

    steps = 0

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
            for n, _ in enumerate(position.count(position.dataset(), step=step)):
                assert (position.consumed, saved(position)) == (min(12 + 4 * n, 34), 8 + 4 * n)
                if isinstance(step, Trained):
                    step.steps += 1
                else:
                    step.assign_add(1)
                assert saved(position) == position.consumed
        assert saved(position) == 34


def test_a_loop_that_ends_in_mid_batch_has_not_trained_on_it(builder: Any) -> None:
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


@pytest.mark.slow
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

    many, position = Trained(), Position(builder, "train", SETTINGS)
    many.steps = 1_000  # of a run before
    for _ in position.count(position.dataset().take(2), step=many):
        many.steps += 1
    assert position.consumed == 8
    assert saved(loop(0)) == 0  # the batch was not trained on
    with pytest.raises(UsageError, match="step was 0 when a batch was yielded, and is 2 now"):
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
    settings = changed(SETTINGS, batch=None)
    rows: Callable[[int], Any] = np.zeros
    # Of all, and of epochs of 17, batched each for itself.
    for sizes in ([6, 6, 6, 6, 6, 4], [6, 6, 5, 6, 6, 5], [6, 3]):
        position = Position(builder, "train", settings)
        found = [position.consumed for _ in position.count(map(rows, sizes), batch=6)]
        assert found == np.cumsum(sizes).tolist()
    position = Position(builder, "train", settings)
    # Images of 3 rows that are no batches.
    with pytest.raises(UsageError, match="less than 6 examples is followed by another"):
        list(position.count(map(rows, [3, 3]), batch=6))


def test_a_failed_count_leaves_the_position_where_it_was(builder: Any) -> None:
    position, batch = Position(builder, "train", SETTINGS, consumed=30), {"id": np.zeros(4)}

    def elements() -> Any:
        yield batch
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        list(position.count(elements()))
    assert saved(position) == 34
    with pytest.raises(UsageError, match="4 examples after 34"):
        list(position.count([batch]))
    assert saved(position) == 34


@pytest.mark.slow
def test_steps_of_every_library_and_none_that_stays(tf: Any, builder: Any) -> None:
    import keras

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
    with pytest.warns(UserWarning, match="all epochs of"):
        assert not list(position.count(position.dataset()))


# What stands between the dataset of a position and its count: taken where it keeps the order.


SINGLES = ReadSettings(cycle=2, shuffle_seed=5, epochs=2)
BATCHED = changed(SINGLES, batch=4)

# What a script does with examples, and how many of the 34 are then handed out.
TAKEN: dict[str, tuple[Callable[[Any], Any], int]] = {
    "map": (lambda ds: ds.map(lambda x: x["id"]).prefetch(2), 34),
    "take": (lambda ds: ds.take(5).enumerate(), 5),
    "zip": (lambda ds: __import__("tensorflow").data.Dataset.zip((ds, ds.range(9))), 9),
}


REFUSED: dict[str, Callable[[Any], Any]] = values(
    Path(__file__).with_name("refused.txt"), globals()
)


def test_what_keeps_the_order_is_counted(builder: Any) -> None:
    for name, (derive, number) in TAKEN.items():
        position = Position(builder, "train", SINGLES)
        for _ in position.count(derive(position.dataset())):
            pass
        assert position.consumed == number, name


@pytest.mark.parametrize(
    "names", [("cache", "filter", "repeat", "skip"), pytest.param(REFUSED, marks=pytest.mark.slow)]
)
def test_what_hands_out_others_is_refused_by_name(builder: Any, names: Iterable[str]) -> None:
    position = Position(builder, "train", SINGLES)
    examples = position.dataset()
    for name in names:
        with pytest.raises(UsageError, match=rf"^{name} behind position\.dataset"):
            next(position.count(iter(REFUSED[name](examples))))
    assert position.consumed == 0


def test_an_iterator_that_began_elsewhere_is_refused(builder: Any) -> None:
    for with_map in (False, True):
        position = Position(builder, "train", BATCHED)
        dataset = position.dataset()
        iterator = iter(dataset.map(lambda x: x)) if with_map else dataset.as_numpy_iterator()
        for _ in range(2):  # goes on where it is
            for _ in zip(range(2), position.count(iterator), strict=False):
                pass
        here = position.consumed
        position.set_state(Position(builder, "train", BATCHED, consumed=4).get_state())
        with pytest.raises(UsageError, match="the position moved, or was restored"):
            next(position.count(iterator))
        position.set_state(Position(builder, "train", BATCHED, consumed=here).get_state())
        assert len([*position.count(iterator)]) > 2
        assert position.consumed == 34


def test_a_batch_that_is_parted_among_replicas_is_one_batch(builder: Any) -> None:
    from tensorflow.python.distribute.values import PerReplica

    position = Position(builder, "train", BATCHED)
    batches = [x["id"] for x in position.dataset()]
    parted = [PerReplica((batch[: len(batch) // 2], batch[len(batch) // 2 :])) for batch in batches]
    assert [position.consumed for _ in position.count(parted)] == [*range(4, 34, 4), 34]
    staged = as_settings({"stages": "train | shuffle(5, seed=1) | batch(4)"})
    position = Position(builder, None, staged)
    assert [position.consumed for _ in position.count(parted[:2])] == [4, 8]
    # An element a replica is not one of the order's.
    with pytest.raises(UsageError, match="each replica is handed an element of its own"):
        next(position.count([PerReplica((batches[2], batches[3]))]))
    with pytest.raises(UsageError, match="a batch of 8 examples where batches of 4 are counted"):
        next(Position(builder, "train", BATCHED).count([PerReplica((batches[2], batches[3]))]))
    with pytest.raises(UsageError, match="each replica is handed an element of its own"):
        next(Position(builder, "train", SINGLES).count([PerReplica((batches[0], batches[1]))]))


@pytest.mark.slow
def test_batches_are_counted_as_they_are_made(builder: Any) -> None:
    def first(settings: ReadSettings, derive: Callable[[Any], Any], **how: Any) -> int:
        position = Position(builder, None if settings.stages else "train", settings)
        next(position.count(derive(position.dataset()), **how))
        return position.consumed

    as_it_is: Callable[[Any], Any] = lambda ds: ds  # noqa: E731
    assert first(SINGLES, lambda ds: ds.batch(5), batch=5) == 5
    assert first(SINGLES, lambda ds: ds.padded_batch(5), batch=5) == 5
    assert first(SINGLES, lambda ds: ds.batch(5, num_parallel_calls=2), batch=5) == 5
    assert first(BATCHED, as_it_is) == 4
    assert first(BATCHED, lambda ds: ds.unbatch().batch(3), batch=3) == 3
    with pytest.raises(
        UsageError, match=r"batches are yielded.* examples are counted; count\(.., batch=N\)"
    ):
        first(SINGLES, lambda ds: ds.batch(5))
    staged = as_settings({"stages": "train | shuffle(5, seed=1) | batch(4)"})
    assert first(staged, as_it_is) == 4
    refused: tuple[tuple[Any, ...], ...] = (
        (SINGLES, as_it_is, {"batch": 5}, "examples are yielded, and batches are counted"),
        (BATCHED, lambda ds: ds.unbatch(), {}, "examples are yielded, and batches are counted"),
        (BATCHED, lambda ds: ds.batch(2), {}, "batches of batches"),
        (staged, lambda ds: ds.batch(2), {}, "batches of batches"),
    )
    for settings, derive, how, said in refused:
        with pytest.raises(UsageError, match=said):
            first(settings, derive, **how)


@pytest.mark.slow
def test_elements_of_another_position_are_refused(tf: Any, builder: Any) -> None:
    train, valid = (Position(builder, spec, SINGLES) for spec in ("train[:50%]", "train[50%:]"))
    with pytest.raises(UsageError, match="these are of another position, <Position 0 of 18"):
        next(train.count(valid.dataset().map(lambda x: x["id"])))
    both = tf.data.Dataset.zip((valid.dataset(), train.dataset()))
    next(train.count(both))
    assert (train.consumed, valid.consumed) == (1, 0)


@pytest.mark.slow
def test_a_pipeline_from_its_beginning_is_refused_where_the_position_is_further_on(
    builder: Any,
) -> None:
    whole = pipeline(builder, "train", BATCHED)
    for consumed in (8, 32):
        position = Position(builder, "train", BATCHED, consumed=consumed)
        left = -(-(34 - consumed) // 4)
        with pytest.raises(UsageError, match=f"9 elements to count, and the order has {left} left"):
            next(position.count(whole))
        rest = resume(builder, position.plan())
        assert sum(1 for _ in position.count(rest)) == left
    staged = as_settings({"stages": "train | shuffle(5, seed=1) | batch(4) | repeat(2)"})
    position = Position(builder, None, staged, consumed=17)
    with pytest.raises(UsageError, match="10 elements to count, and the order has 5 left"):
        next(position.count(pipeline(builder, None, staged)))
    # Epochs that are batched each for itself have more batches.
    position = Position(builder, "train", SINGLES)
    epochs = [pipeline(builder, "train", changed(SINGLES, epochs=1)).batch(4)] * 2
    assert sum(1 for _ in position.count(epochs[0].concatenate(epochs[1]), batch=4)) == 10


def test_what_arrays_are_made_of_is_looked_at(tfds: Any, builder: Any) -> None:
    position = Position(builder, "train", BATCHED)
    with pytest.raises(UsageError, match=r"^shuffle behind position\.dataset"):
        next(position.count(tfds.as_numpy(position.dataset().shuffle(9))))
    next(position.count(tfds.as_numpy(position.dataset().prefetch(1))))
    assert position.consumed == 4


def test_an_iterator_of_more_than_the_dataset_stays_where_it_was_counted(
    tf: Any, builder: Any
) -> None:
    """A cell of a notebook is stopped before the batch in hand was trained on, and run again."""
    position, step = Position(builder, "train", BATCHED), tf.Variable(0)
    batches = iter(position.dataset().map(lambda x: x["id"]).prefetch(2))

    def cell(stop: int) -> None:
        for _ in position.count(batches, step=step):
            if step == stop:
                break
            step.assign_add(1)

    cell(2)
    with pytest.raises(UsageError, match="the position moved, or was restored"):
        cell(4)
    assert position.consumed == 8
