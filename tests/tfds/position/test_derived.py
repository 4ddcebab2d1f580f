"""What stands between the dataset of a position and its count: taken where it keeps the order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from shardctl.errors import UsageError
from shardctl.settings.read_settings import ReadSettings, as_settings
from shardctl.tfds import Position, pipeline, resume
from tests.order.order_cases import changed

SETTINGS = ReadSettings(cycle=2, shuffle_seed=5, epochs=2)
BATCHED = changed(SETTINGS, batch=4)

# What a script does with examples, and how many of the 34 are then handed out.
TAKEN: dict[str, tuple[Callable[[Any], Any], int]] = {
    "map": (lambda ds: ds.map(lambda x: x["id"]).prefetch(2), 34),
    "take": (lambda ds: ds.take(5).enumerate(), 5),
    "zip": (lambda ds: __import__("tensorflow").data.Dataset.zip((ds, ds.range(9))), 9),
}
REFUSED: dict[str, Callable[[Any], Any]] = {
    "deterministic=False": lambda ds: ds.map(
        lambda x: x, num_parallel_calls=2, deterministic=False
    ),
    "cache": lambda ds: ds.cache(),
    "concatenate": lambda ds: ds.concatenate(ds),
    "filter": lambda ds: ds.filter(lambda x: x["id"] > 3),
    "flat_map": lambda ds: ds.flat_map(lambda x: __import__("tensorflow").data.Dataset.range(1)),
    "group_by_window": lambda ds: ds.group_by_window(
        key_func=lambda x: x["id"] % 2, reduce_func=lambda _, part: part, window_size=2
    ),
    "ignore_errors": lambda ds: ds.ignore_errors(),
    "interleave": lambda ds: ds.interleave(
        lambda x: __import__("tensorflow").data.Dataset.range(1)
    ),
    "repeat": lambda ds: ds.repeat(2),
    "sample_from_datasets": lambda ds: ds.sample_from_datasets([ds, ds], [0.5, 0.5]),
    "shard": lambda ds: ds.shard(2, 0),
    "shuffle": lambda ds: ds.shuffle(9).map(lambda x: x),
    "skip": lambda ds: ds.skip(2),
    "snapshot": lambda ds: ds.snapshot("/nowhere"),
    "unique": lambda ds: ds.map(lambda x: x["id"]).unique(),
    "window": lambda ds: ds.window(2),
}


def test_what_keeps_the_order_is_counted(builder: Any) -> None:
    for name, (derive, number) in TAKEN.items():
        position = Position(builder, "train", SETTINGS)
        for _ in position.count(derive(position.dataset())):
            pass
        assert position.consumed == number, name


def test_what_hands_out_others_is_refused_by_name(builder: Any) -> None:
    position = Position(builder, "train", SETTINGS)
    examples = position.dataset()
    for name, derive in REFUSED.items():
        with pytest.raises(UsageError, match=rf"^{name} behind position\.dataset"):
            next(position.count(derive(examples)))
        with pytest.raises(UsageError, match=rf"^{name} behind position\.dataset"):
            next(position.count(iter(derive(examples))))
    assert position.consumed == 0


def test_an_iterator_that_began_elsewhere_is_refused(builder: Any) -> None:
    begins: list[Callable[[Any], Any]] = [
        lambda ds: ds.as_numpy_iterator(),
        lambda ds: iter(ds.map(lambda x: x)),
    ]
    for begin in begins:
        position = Position(builder, "train", BATCHED)
        iterator = begin(position.dataset())
        for _ in range(2):  # goes on where it is
            for _ in zip(range(2), position.count(iterator), strict=False):
                pass
        here = position.consumed
        position.set_state(Position(builder, "train", BATCHED, consumed=4).get_state())
        with pytest.raises(UsageError, match="this iterator goes on elsewhere than the position"):
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
        next(Position(builder, "train", SETTINGS).count([PerReplica((batches[0], batches[1]))]))


@pytest.mark.slow
def test_batches_are_counted_as_they_are_made(builder: Any) -> None:
    def first(settings: ReadSettings, derive: Callable[[Any], Any], **how: Any) -> int:
        position = Position(builder, None if settings.stages else "train", settings)
        next(position.count(derive(position.dataset()), **how))
        return position.consumed

    as_it_is: Callable[[Any], Any] = lambda ds: ds  # noqa: E731
    assert first(SETTINGS, lambda ds: ds.batch(5), batch=5) == 5
    assert first(SETTINGS, lambda ds: ds.padded_batch(5), batch=5) == 5
    assert first(SETTINGS, lambda ds: ds.batch(5, num_parallel_calls=2), batch=5) == 5
    assert first(BATCHED, as_it_is) == 4
    assert first(BATCHED, lambda ds: ds.unbatch().batch(3), batch=3) == 3
    with pytest.raises(
        UsageError, match=r"batches are handed out.* examples are counted; count\(.., batch=N\)"
    ):
        first(SETTINGS, lambda ds: ds.batch(5))
    with pytest.raises(UsageError, match="examples are handed out, and batches are counted"):
        first(SETTINGS, as_it_is, batch=5)
    with pytest.raises(UsageError, match="examples are handed out, and batches are counted"):
        first(BATCHED, lambda ds: ds.unbatch())
    with pytest.raises(UsageError, match="batches of batches"):
        first(BATCHED, lambda ds: ds.batch(2))
    staged = as_settings({"stages": "train | shuffle(5, seed=1) | batch(4)"})
    assert first(staged, as_it_is) == 4
    with pytest.raises(UsageError, match="batches of batches"):
        first(staged, lambda ds: ds.batch(2))


@pytest.mark.slow
def test_elements_of_another_position_are_refused(tf: Any, builder: Any) -> None:
    train, valid = (Position(builder, spec, SETTINGS) for spec in ("train[:50%]", "train[50%:]"))
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
    position = Position(builder, "train", SETTINGS)
    epochs = [pipeline(builder, "train", changed(SETTINGS, epochs=1)).batch(4)] * 2
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
    with pytest.raises(UsageError, match="this iterator goes on elsewhere"):
        cell(4)
    assert position.consumed == 8
