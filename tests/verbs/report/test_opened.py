"""What a report shows of files being read: the first visits, and what is read into a buffer."""

from __future__ import annotations

from typing import Any

import pytest

import shardctl
from shardctl.dataset.dataset import Dataset, Split
from shardctl.verbs.report.answer import report

TOY = Dataset(name="toy", splits=(Split(name="train", shard_lengths=(30, 31, 0, 29, 30)),))


@pytest.mark.parametrize(
    "settings",
    [
        {"shuffle_seed": 5, "buffer": 16, "buffer_seed": 2, "batch": 8},
        {"shuffle_files": True, "global_seed": 3, "buffer": 20},
        {"shuffle_seed": 4, "buffer": 9, "buffer_seed": 1, "epochs": 3, "drop_remainder": True},
        {"cycle": 2, "block": 3, "buffer": 7, "buffer_seed": 1, "host": "1/2", "batch": 5},
        {"shuffle_seed": 4, "buffer": 9, "buffer_seed": 1, "host": "0/2", "host_by": "examples"},
    ],
)
def test_what_is_read_into_a_buffer_is_what_it_hands_out(settings: dict[str, Any]) -> None:
    if "drop_remainder" in settings:
        settings = {**settings, "batch": 7}
    made = report(TOY, "train", settings)
    before, order = made.before_buffer, made.order
    assert before is not None
    assert isinstance(order, shardctl.Order)
    assert made.opened is not None
    read, size = before.read(0, before.epoch_size).tolist(), settings["buffer"]
    place = {code: at for at, code in enumerate(read)}
    handed_out = order.read(0, min(order.epoch_size, order.num_examples)).tolist()
    # A buffer hands out what is in it: of what was read until then, and as much as it holds more.
    assert all(place[code] < at + size for at, code in enumerate(handed_out))
    assert handed_out != read[: len(handed_out)]
    assert [visit.first_id for visit in made.opened.visits][:1] == read[:1]
    assert made.opened.has_slots


def test_without_a_buffer_there_is_nothing_before_it() -> None:
    buffered = {"loader": "hf", "streaming": True, "shuffle_seed": 1, "buffer": 5}
    for settings in ({"shuffle_seed": 1}, buffered):
        made = report(TOY, "train", settings)
        assert made.before_buffer is None
        assert made.opened is None
