"""A shuffle that continues from where its buffer stood is the rest of TensorFlow's own."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from shardctl.saved.resume_plan import ShuffleState
from shardctl.tfdata.shuffle_buffer import ShuffleReplay
from shardctl.tfdata.shuffle_seeds import shuffle_kernel_seeds
from shardctl.tfds.training.resume import replayed
from tests.cases import FUZZ, check_cases
from tests.tfdata.shuffle_oracles import tf_order

SEED = 7


def stopped(num_elements: int, buffer_size: int, emitted: int) -> tuple[ShuffleState, list[int]]:
    """Return where a shuffle stands after so many outputs, and what its buffer holds."""
    seeds = shuffle_kernel_seeds(SEED, None)
    replay = ShuffleReplay(num_elements=num_elements, buffer_size=buffer_size, seeds=seeds)
    num_read = replay.num_read(emitted)
    gone = set(tf_order(num_elements, buffer_size, SEED)[:emitted])
    state = ShuffleState(
        buffer_size=buffer_size,
        seeds=seeds,
        num_elements=num_elements,
        num_read=num_read,
        emitted=emitted,
    )
    return state, [position for position in range(num_read) if position not in gone]


def records(tf: Any, positions: Any) -> Any:
    return tf.data.Dataset.from_tensor_slices(
        tf.constant([f"record {position}" for position in positions], tf.string)
    )


def as_it_is(records: Any, **_: Any) -> Any:
    """Return records as the examples that they are here."""
    return records


def held_records(tf: Any, positions: list[int], ranks: list[int] | None = None) -> Any:
    """Return what the buffer held as the files give it: in pieces, in no useful order."""
    numbers = np.array(ranks or range(len(positions)), np.int64)[::-1]
    back = tf.data.Dataset.from_tensor_slices(numbers)
    return tf.data.Dataset.zip((records(tf, positions[::-1]), back)).batch(3)


@pytest.mark.parametrize(
    ("num_elements", "buffer_size", "emitted"),
    [
        pytest.param(40, 7, 0, id="nothing was read", marks=pytest.mark.slow),
        pytest.param(40, 7, 1, id="the buffer was just filled", marks=pytest.mark.slow),
        pytest.param(40, 7, 20, id="in the middle"),
        pytest.param(40, 7, 37, id="the buffer runs empty", marks=pytest.mark.slow),
        pytest.param(40, 7, 40, id="the end"),
        pytest.param(40, 100, 3, id="a buffer of everything", marks=pytest.mark.slow),
        pytest.param(40, 1, 20, id="a buffer of one"),
        pytest.param(900, 300, 450, id="several pieces", marks=pytest.mark.slow),
    ],
)
def test_the_rest_of_a_shuffle_is_what_tensorflow_would_have_handed_out(
    tf: Any, num_elements: int, buffer_size: int, emitted: int
) -> None:
    check_rest(tf, num_elements, buffer_size, emitted)


def check_rest(tf: Any, num_elements: int, buffer_size: int, emitted: int) -> None:
    """Compare what is handed out after so many outputs with the real shuffle, twice at once."""
    found, expected = continued(tf, num_elements, buffer_size, emitted)
    both = itertools.zip_longest(found.as_numpy_iterator(), found.as_numpy_iterator())
    assert list(both) == [(record, record) for record in expected]


def continued(tf: Any, num_elements: int, buffer_size: int, emitted: int) -> tuple[Any, list[Any]]:
    """Return the dataset that goes on after so many outputs, and what it should hand out."""
    state, inside = stopped(num_elements, buffer_size, emitted)
    codes = [1000 + position for position in inside]
    rest = records(tf, range(state.num_read, num_elements))
    held = held_records(tf, inside) if inside else None
    found = replayed(rest, held, np.array(codes, np.int64), state, num_elements, as_it_is)
    order = tf_order(num_elements, buffer_size, SEED)
    return found, [f"record {position}".encode() for position in order[emitted:]]


PLACES = st.integers(1, 700).flatmap(
    lambda size: st.tuples(st.just(size), st.integers(1, size + 50), st.integers(0, size))
)


@pytest.mark.fuzz
def test_random_places_of_a_shuffle_fuzzed(tf: Any) -> None:
    check_cases(PLACES, lambda place: check_rest(tf, *place), FUZZ // 40, fuzz=True)


@pytest.mark.slow
def test_iterators_that_are_left_and_begun_again_share_nothing(tf: Any) -> None:
    found, expected = continued(tf, 900, 300, 450)
    first, second = found.as_numpy_iterator(), found.as_numpy_iterator()
    assert [next(first) for _ in range(40)] == expected[:40]
    assert [next(second) for _ in range(90)] == expected[:90]
    del first
    assert list(found.as_numpy_iterator()) == expected
    assert list(second) == expected[90:]


def test_outputs_are_handed_out_up_to_the_stop(tf: Any) -> None:
    state, inside = stopped(40, 7, 20)
    held = held_records(tf, inside)
    found = replayed(
        records(tf, range(state.num_read, 40)), held, np.array(inside), state, 25, as_it_is
    )
    expected = [f"record {i}".encode() for i in tf_order(40, 7, SEED)[20:25]]
    assert list(found.as_numpy_iterator()) == expected


def test_an_example_that_the_buffer_held_twice_comes_twice(tf: Any) -> None:
    state, inside = stopped(40, 7, 20)
    # Two positions of a sum that reads one example twice: one code, of which the files give two.
    codes = [5, 5, *range(10, 10 + len(inside) - 2)]
    texts = ["record twice", *(f"record {position}" for position in inside[2:])]
    ranks = np.arange(len(codes))
    held = tf.data.Dataset.from_tensor_slices(([texts[0], *texts], ranks)).batch(4)
    rest = records(tf, range(state.num_read, 40))
    found = list(replayed(rest, held, np.array(codes), state, 40, as_it_is).as_numpy_iterator())
    expected = [
        "record twice" if position in inside[:2] else f"record {position}"
        for position in tf_order(40, 7, SEED)[20:]
    ]
    assert [record.decode() for record in found] == expected


@pytest.mark.parametrize("missing", ["rest", pytest.param("held", marks=pytest.mark.slow)])
def test_files_that_hold_fewer_examples_than_stated_are_an_error(tf: Any, missing: str) -> None:
    state, inside = stopped(40, 7, 20)
    rest = records(tf, range(state.num_read, 38 if missing == "rest" else 40))
    kept = inside[1:] if missing == "held" else inside
    found = replayed(rest, held_records(tf, kept), np.array(inside), state, 40, as_it_is)
    with pytest.raises(tf.errors.OpError, match="fewer examples than the metadata says"):
        list(found.as_numpy_iterator())
