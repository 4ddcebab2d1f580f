"""What is left of an epoch, by hand: where a place lies, and which rows read the rest."""

from __future__ import annotations

import numpy as np
import pytest

from shardctl.core.interleave.interleave import Interleave
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.errors import UsageError
from shardctl.planning.order import plan_order
from shardctl.planning.resume.rest import (
    ResumePoint,
    inputs_read,
    pending_inputs,
    reader_state,
    reads_at,
    rest_of_reading,
    resume_point,
    shuffle_state,
)
from tests.cases import check_cases
from tests.planning.resume.resume_cases import TOY, Case, cases


@pytest.mark.parametrize(
    ("consumed", "epoch", "emitted", "remaining"),
    # 11 examples an epoch, 3 epochs; whole batches of 2 leave out the last of 33.
    [(0, 0, 0, 11), (10, 0, 10, 1), (11, 1, 0, 11), (23, 2, 1, 10), (32, 2, 10, 0)],
)
def test_the_end_of_an_epoch_is_the_start_of_the_next(
    consumed: int, epoch: int, emitted: int, remaining: int
) -> None:
    settings = ReadSettings(epochs=3, batch=2, drop_remainder=True)
    order = plan_order(TOY, "train", settings).order
    point = ResumePoint(epoch=epoch, stream=epoch, emitted=emitted, remaining=remaining)
    assert resume_point(order, consumed) == point


def test_files_that_repeat_are_one_stream() -> None:
    order = plan_order(TOY, "train", ReadSettings(epochs=3, repeat_files=True)).order
    assert resume_point(order, 12) == ResumePoint(epoch=1, stream=0, emitted=12, remaining=21)


def test_a_buffer_has_read_ahead() -> None:
    settings = ReadSettings(cycle=1, buffer=4, buffer_seed=1, global_seed=2)
    order = plan_order(TOY, "train", settings).order
    point = resume_point(order, 3)
    # A buffer of 4 hands out the first of its 4 after 4 inputs, and each later one after one more.
    assert inputs_read(order, point) == 6
    handed_out = set(order.read(0, 3).tolist())
    assert pending_inputs(order, point).tolist() == [i for i in range(6) if i not in handed_out]
    state = shuffle_state(order, point)
    assert (state.num_elements, state.num_read, state.emitted) == (11, 6, 3)
    # Of files of 3, 5 and 3, read one after the other, the second stands open.
    reader = reader_state(order, 0, 6)
    assert (reader.open_files, reader.next_file, reader.num_files) == (1, 2, 3)


def test_without_a_buffer_nothing_is_pending() -> None:
    order = plan_order(TOY, "train", ReadSettings()).order
    point = resume_point(order, 5)
    assert (inputs_read(order, point), pending_inputs(order, point).tolist()) == (5, [])


def check(case: Case) -> None:
    """Read what is left with a reader of its own, and the examples at places one by one."""
    try:
        order = plan_order(case.dataset, case.spec, case.settings).order
    except UsageError:  # fewer files than hosts
        return
    if order.settings.repeat_files:  # whose list ends with the stream: see test_resume
        return
    reading = order.reading(0)
    stop = case.stop % (reading.num_examples + 1)
    rest = rest_of_reading(order.reads, reading, stop)
    interleave = Interleave(
        rest.take,
        cycle_length=order.settings.cycle_length(ordered=order.dataset.ordered),
        block_length=order.settings.block,
    )
    codes = interleave.read(0, interleave.num_examples, order.codes.first_codes(rest))
    left = reading.codes(stop, reading.num_examples)
    assert codes[reading.phase :: reading.stride].tolist() == left.tolist()
    places = np.arange(stop, reading.num_examples)[:: case.stop % 3 + 1]
    runs = reads_at(order.reads, reading, places)
    found = [
        code + k
        for code, take in zip(order.codes.first_codes(runs).tolist(), runs.take, strict=True)
        for k in range(take)
    ]
    assert sorted(found) == sorted(reading.codes_at(places).tolist())


def test_the_rest_continues_the_reading() -> None:
    check_cases(cases(), check, 250)
