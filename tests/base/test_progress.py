"""Work reports how far it is, never beyond its end."""

from __future__ import annotations

import pytest

from shardctl.base.progress import MAX_SECONDS, Progress, watched_by
from shardctl.dataset.dataset import Dataset, Split
from shardctl.errors import UsageError
from shardctl.verbs.snapshot.answer import snapshot


def test_what_is_done_twice_counts_once() -> None:
    reports: list[tuple[str, int, int]] = []
    progress = Progress(lambda *report: reports.append(report), "examples", 5)
    for count in (2, 0, 2, 2, 9):
        progress.advance(count)
    assert reports == [("examples", done, 5) for done in (2, 2, 4, 5, 5)]


def test_a_piece_is_done_when_the_next_is_asked_for() -> None:
    reports: list[int] = []
    progress = Progress(lambda _, done, __: reports.append(done), "lines", 3)
    pieces = progress.over(iter(["ab", "c"]), len)
    assert (next(pieces), reports) == ("ab", [])
    assert (next(pieces), reports) == ("c", [2])
    assert (list(pieces), reports) == ([], [2, 3])


def test_work_of_more_than_a_day_is_refused_with_its_length() -> None:
    Progress(None, "files", MAX_SECONDS * 10, per_second=10)
    with pytest.raises(UsageError) as error_info:
        Progress(None, "files", MAX_SECONDS * 30, per_second=10, instead="wait")
    assert str(error_info.value) == (
        "2,592,000 files would take about 3 days, and more than a day is refused; wait"
    )


def test_whoever_watches_sees_work_that_has_no_watch_of_its_own() -> None:
    around: list[int] = []
    own: list[int] = []
    with watched_by(lambda _, done, __: around.append(done)):
        Progress(None, "files", 5).advance(2)
        Progress(lambda _, done, __: own.append(done), "files", 5).advance(3)
    Progress(None, "files", 5).advance(4)
    assert (around, own) == ([2], [3])


def test_nobody_has_to_watch() -> None:
    assert list(Progress(None, "lines", 1).over(["a", "b"], len)) == ["a", "b"]


def test_a_snapshot_reports_every_id() -> None:
    reports: list[tuple[str, int, int]] = []
    split = Split.even(name="train", num_examples=1000, num_shards=3)
    dataset = Dataset(name="d", splits=(split,))
    snapshot(dataset, "train", watch=lambda *report: reports.append(report))
    assert reports[-1] == ("ids", 1000, 1000)
    assert [done for _, done, _ in reports] == sorted(done for _, done, _ in reports)
