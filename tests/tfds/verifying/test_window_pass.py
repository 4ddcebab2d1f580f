"""Windows in the middle of an order, read by plans that begin there."""

from __future__ import annotations

import itertools

import pytest

import shardctl.planning.verify as limits
from shardctl.core.dataset.dataset import Dataset, Split
from shardctl.core.dataset.shard_files import ShardFiles
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.planning.resume.resume import resume
from shardctl.planning.verify import Window
from shardctl.tfds.verifying.real_files import RealFiles
from shardctl.tfds.verifying.verify import num_inputs_read, verify
from tests.cases import check_cases
from tests.core.order.order_cases import changed
from tests.core.order.toy_pipelines import (
    Case,
    Toys,
    cases,
)
from tests.tfds.verifying.checked_toys import (
    check_agrees,
    other_reader,
)

FORTY = Dataset(
    name="toy",
    splits=(
        Split(
            name="train",
            shard_lengths=(15, 25),
            files=(ShardFiles(pattern="toy-\0", num_shards=2),),
        ),
    ),
)


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_windows_of_an_order_agree_with_the_real_reader(
    toys: Toys,
) -> None:
    passes, windows = itertools.cycle([0, 1]), list[Window]()

    def law(case: Case) -> None:
        found = check_agrees(toys, case, next(passes))
        if found is not None:
            windows.extend(window for window in found.windows if window.start)

    check_cases(cases(), law, 5)
    assert len(windows) >= 5


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("buffer", [pytest.param(None, marks=pytest.mark.slow), 2])
def test_a_window_that_is_read_otherwise_is_caught(
    toys: Toys,
    monkeypatch: pytest.MonkeyPatch,
    buffer: int | None,
) -> None:
    other_reader(monkeypatch, RealFiles, "resumed", block=1)
    settings = ReadSettings(cycle=2, block=3, buffer=buffer)
    if buffer is not None:
        settings = changed(settings, buffer_seed=1)
    found = verify(toys["plain"].dataset, "train", settings)
    first = found.first_difference
    assert first is not None
    assert first.position >= 12 // 3
    assert first.read == "files"


@pytest.mark.usefixtures("small")
def test_a_buffer_that_takes_long_to_fill_is_left_to_index_ranges(
    toys: Toys,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(limits.BUDGETS, "index ranges", 120)
    settings = ReadSettings(buffer=60, buffer_seed=1)
    found = verify(toys["plain"].dataset, "train", settings, take=6)
    assert found.equal
    assert found.windows[0].read == "index ranges"
    assert all(w.start for w in found.windows if w.read == "files")
    assert any("the buffer takes 60 examples" in note for note in found.notes)
    everything = verify(toys["plain"].dataset, "train", settings, take="all")
    assert [(w.start, w.stop, w.read) for w in everything.windows] == [(0, 75, "files")]


# A buffer of 7 over 40 examples is filled before the first output, and takes its next input only
# when it is asked for the output after: after 20 outputs 7 + 19 inputs are read.
@pytest.mark.parametrize(
    ("consumed", "size", "num_inputs"),
    [
        pytest.param(0, 1, 7, id="the first output needs a full buffer"),
        pytest.param(0, 5, 11, id="each output after it one input more"),
        pytest.param(20, 1, 1, id="one for one"),
        pytest.param(20, 10, 10, id="ten for ten"),
        pytest.param(30, 10, 4, id="the input ends: 36 of 40 were read"),
        pytest.param(38, 2, 0, id="the buffer runs empty"),
    ],
)
def test_so_many_inputs_are_read_for_a_window_through_a_buffer(
    consumed: int, size: int, num_inputs: int
) -> None:
    settings = ReadSettings(buffer=7, buffer_seed=1)
    plan = resume(FORTY, settings=settings, consumed=consumed, mode="exact-order")
    window = Window(start=consumed, stop=consumed + size, read="files")
    assert num_inputs_read(plan, window) == num_inputs


def test_without_a_buffer_as_many_inputs_are_read_as_the_window_has_positions() -> None:
    plan = resume(FORTY, consumed=20)
    assert num_inputs_read(plan, Window(start=20, stop=33, read="files")) == 13
