"""Work reports how far it is, never beyond its end."""

from __future__ import annotations

from shardctl.core.dataset.dataset import Dataset, Split
from shardctl.planning.progress import Progress
from shardctl.planning.snapshot import snapshot


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


def test_nobody_has_to_watch() -> None:
    assert list(Progress(None, "lines", 1).over(["a", "b"], len)) == ["a", "b"]


def test_a_snapshot_reports_every_id() -> None:
    reports: list[tuple[str, int, int]] = []
    split = Split.even(name="train", num_examples=1000, num_shards=3)
    dataset = Dataset(name="d", splits=(split,))
    snapshot(dataset, "train", watch=lambda *report: reports.append(report))
    assert reports[-1] == ("ids", 1000, 1000)
    assert [done for _, done, _ in reports] == sorted(done for _, done, _ in reports)
