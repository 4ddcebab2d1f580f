"""States of all processes: whose they are, and which do not belong together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardctl.errors import DatasetError, UsageError
from shardctl.saved.position_file import PositionRecord, position_text
from shardctl.saved.resume_plan import RunSegment
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.tfds.position_counting import records_of, stretch_of
from tests.spec.tfds_splits import toy_dataset

DATASET = toy_dataset({"train": (9, 4)}).identity


def record(index: int, count: int, consumed: int = 4) -> PositionRecord:
    settings = ReadSettings(batch=2, host=Host(index=index, count=count))
    return PositionRecord(dataset=DATASET, spec="train", settings=settings, consumed=consumed)


def of(*records: PositionRecord) -> list[PositionRecord]:
    return records_of([position_text(one) for one in records])


def test_they_come_in_the_order_of_the_hosts() -> None:
    found = of(record(2, 3, 6), record(0, 3, 4), record(1, 3, 2))
    assert stretch_of(found) == RunSegment(consumed=(4, 2, 6), batch=2)
    alone = replace(record(0, 1), settings=ReadSettings())
    assert stretch_of(of(alone)) == RunSegment(consumed=(4,), alone=True)
    assert stretch_of(of(record(0, 1))) == RunSegment(consumed=(4,), batch=2)


ALONE = replace(record(0, 1), settings=ReadSettings(batch=2))


@pytest.mark.parametrize(
    ("records", "words"),
    [
        ((), "none are given"),
        ((record(0, 3), record(2, 3)), "states of 2 of 3 hosts: 1 missing"),
        ((record(0, 99),), r"1 of 99 hosts: 1, 2, 3, 4, 5, 6, 7, 8, .. missing"),
        ((record(0, 2), record(1, 2), record(0, 2)), r"states\[0\] and states\[2\] are both of"),
        ((ALONE, ALONE), r"states\[0\] is of a process alone, and 2 are given"),
        ((record(0, 1), ALONE), r"states\[1\] is of a process alone, and 2 are given"),
        ((record(0, 2), record(1, 3)), r"states\[1\] is .* states\[0\]: it has 3 hosts, not 2"),
        (
            (record(0, 2), replace(record(1, 2), spec="train[:5]")),
            r"spec is train\[:5\], not train",
        ),
        (
            (
                record(0, 2),
                replace(record(1, 2), settings=ReadSettings(batch=3, host=Host(index=1, count=2))),
            ),
            "batch is 3, not 2",
        ),
        (
            (record(0, 2), replace(record(1, 2), stretches=(RunSegment(consumed=(1,)),))),
            "shared anew at another place",
        ),
    ],
)
def test_those_of_no_one_run_are_refused(records: tuple[PositionRecord, ...], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        of(*records)


def test_a_state_that_is_none_is_named() -> None:
    with pytest.raises(DatasetError, match=r"^states\[1\]: "):
        records_of([position_text(record(0, 2)), b"{}"])
