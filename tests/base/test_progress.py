"""Work reports how far it is, never beyond its end; what other rooms provide is found."""

from __future__ import annotations

import subprocess
import sys

import pytest

import shardctl
from shardctl.base.by_name import PROVIDERS, provided
from shardctl.base.progress import MAX_SECONDS, Progress, watched_by
from shardctl.errors import UsageError


def test_work_done_twice_counts_once_and_a_piece_when_the_next_is_asked_for() -> None:
    reports: list[tuple[str, int, int]] = []
    progress = Progress("examples", 5, watch=lambda *report: reports.append(report))
    for count in (2, 0, 2, 2, 9):
        progress.advance(count)
    assert reports == [("examples", done, 5) for done in (2, 2, 4, 5, 5)]
    done_of: list[int] = []
    pieces = Progress("lines", 3, watch=lambda _, done, __: done_of.append(done)).over(
        ["ab", "c"], len
    )
    assert (next(pieces), done_of) == ("ab", [])
    assert (next(pieces), done_of) == ("c", [2])
    assert (list(pieces), done_of) == ([], [2, 3])
    assert list(Progress("lines", 1).over(["a", "b"], len)) == ["a", "b"]


def test_work_of_more_than_a_day_is_refused_with_its_length() -> None:
    Progress("files", MAX_SECONDS * 10, per_second=10)
    for total, length in ((MAX_SECONDS * 10 + 1, "1 day"), (MAX_SECONDS * 7300, "2 years")):
        rule = rf"{total:,} files would take about {length}, and more than a day is refused; wait$"
        with pytest.raises(UsageError, match=rule):
            Progress("files", total, per_second=10, instead="wait")


def test_whoever_watches_sees_work_that_has_no_watch_of_its_own() -> None:
    around: list[int] = []
    own: list[int] = []
    with watched_by(lambda _, done, __: around.append(done)):
        Progress("files", 5).advance(2)
        Progress("files", 5, watch=lambda _, done, __: own.append(done)).advance(3)
    Progress("files", 5).advance(4)
    assert (around, own) == ([2], [3])


def test_what_is_provided_is_a_function() -> None:
    assert [name for name in PROVIDERS if not callable(provided(name))] == []
    assert provided("dataset") is provided("dataset")
    assert shardctl.read_plan is provided("plan")


@pytest.mark.long
def test_a_room_of_the_core_alone_gets_it_too() -> None:
    code = (
        "from shardctl.dataset.dataset import as_dataset\n"
        "import sys\n"
        "assert 'shardctl.metadata' not in sys.modules\n"
        "print(as_dataset('mnist').title)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "mnist:3.0.1\n"
