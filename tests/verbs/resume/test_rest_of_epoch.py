"""What is left of an epoch: the place, the instructions that read the rest, the buffer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardctl.order.reader_order import ReaderOrder
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.reads import Reads
from shardctl.spec.subsplit import resolve_subsplit
from shardctl.verbs.resume.rest_of_epoch import (
    ResumePoint,
    inputs_read,
    pending_inputs,
    reads_at,
    rest_of_reading,
    resume_point,
    shuffle_state,
)
from tests.oracles import interleave_by_hand
from tests.verbs.resume.resume_cases import dataset


def order_of(lengths: tuple[int, ...] = (3, 5, 3), **settings: Any) -> ReaderOrder:
    toy = dataset(train=lengths)
    return ReaderOrder(toy, resolve_subsplit("train", toy).ranges, ReadSettings(**settings))


@pytest.mark.parametrize(
    ("settings", "consumed", "point"),
    [
        pytest.param({}, 0, (0, 0, 0, 11), id="the start"),
        pytest.param({}, 4, (0, 0, 4, 7), id="inside"),
        pytest.param({}, 11, (0, 0, 11, 0), id="the end"),
        pytest.param({"epochs": 3}, 11, (1, 1, 0, 11), id="the end of an epoch is the next start"),
        pytest.param({"epochs": 3}, 26, (2, 2, 4, 7), id="in a later epoch"),
        pytest.param({"epochs": 3}, 33, (2, 2, 11, 0), id="the end of the last epoch"),
        pytest.param(
            {"epochs": 3, "batch": 4, "drop_remainder": True},
            32,
            (2, 2, 10, 0),
            id="the end before a batch that is dropped",
        ),
        pytest.param({"epochs": 3, "repeat_files": True}, 26, (2, 0, 26, 7), id="in one stream"),
        pytest.param(
            {"epochs": 3, "repeat_files": True}, 33, (2, 0, 33, 0), id="the end of a stream"
        ),
    ],
)
def test_a_place_is_so_far_into_a_stream(
    settings: dict[str, Any], consumed: int, point: tuple[int, int, int, int]
) -> None:
    epoch, stream, emitted, remaining = point
    assert resume_point(order_of(**settings), consumed) == ResumePoint(
        epoch=epoch, stream=stream, emitted=emitted, remaining=remaining
    )


# A buffer of 3 is filled before the first output and takes an input more for each further one.
@pytest.mark.parametrize(("emitted", "num_read"), [(0, 0), (1, 3), (2, 4), (8, 10), (10, 11)])
def test_through_a_buffer_more_is_read_than_handed_out(emitted: int, num_read: int) -> None:
    order = order_of(buffer=3, buffer_seed=1)
    point = resume_point(order, emitted)
    assert inputs_read(order, point) == num_read
    gone = set(order.read(0, emitted).tolist())
    inputs = order_of().read(0, num_read).tolist()
    held = pending_inputs(order, point)
    assert [inputs[i] for i in held] == [code for code in inputs if code not in gone]
    state = shuffle_state(order.replay(point.stream), point.emitted)
    assert (state.buffer_size, state.num_elements) == (3, 11)
    assert (state.num_read, state.emitted) == (num_read, emitted)


def ids_by_hand(reads: Reads, cycle: int, block: int) -> list[int]:
    """Return the ids that a fresh interleave of reads hands out."""
    firsts = reads.first.tolist()
    return [firsts[i] + k for i, k in interleave_by_hand(reads.take.tolist(), cycle, block)]


lengths = st.lists(st.integers(0, 9), min_size=1, max_size=7).filter(any).map(tuple)


@given(lengths, st.integers(1, 4), st.integers(1, 5), st.none() | st.integers(0, 9), st.data())
def test_a_fresh_interleave_of_the_rest_reads_the_rest(
    lengths: tuple[int, ...], cycle: int, block: int, seed: int | None, data: st.DataObject
) -> None:
    order = order_of(lengths, cycle=cycle, block=block, shuffle_seed=seed)
    reading = order.reading(0)
    num_read = data.draw(st.integers(0, order.num_examples))
    rest = rest_of_reading(order.reads, reading, num_read)
    whole = ids_by_hand(order.reads.select(reading.opened), cycle, block)
    assert ids_by_hand(rest, cycle, block) == whole[num_read:]


@given(lengths, st.integers(1, 4), st.integers(1, 5), st.data())
def test_examples_at_places_are_runs_in_the_order_of_the_files(
    lengths: tuple[int, ...], cycle: int, block: int, data: st.DataObject
) -> None:
    order = order_of(lengths, cycle=cycle, block=block)
    places = data.draw(st.sets(st.integers(0, order.num_examples - 1)))
    positions = np.array(sorted(places), np.int64)
    runs = reads_at(order.reads, order.reading(0), positions)
    read = [
        i
        for first, take in zip(runs.first, runs.take, strict=True)
        for i in range(first, first + take)
    ]
    assert read == sorted(order.codes_at(positions).tolist())
    # No run begins where another of its file ends.
    ends = {
        (shard, int(s + t)) for shard, s, t in zip(runs.shard, runs.skip, runs.take, strict=True)
    }
    assert not ends & set(zip(runs.shard, runs.skip.tolist(), strict=True))
