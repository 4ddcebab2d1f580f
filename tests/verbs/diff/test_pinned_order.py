"""A snapshot as a side of a diff: when its order is made again, and what proves it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from shardctl.errors import UsageError
from shardctl.metadata import loader_versions as installed_versions
from shardctl.order.order_tree import digests_of
from shardctl.saved import snapshot as pinned_layout
from shardctl.saved.snapshot import Snapshot
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.diff.answer import PinnedOrder, diff, settings_to_fall_back_on
from shardctl.verbs.snapshot.answer import TakenSnapshot, snapshot, tree_in
from tests.cases import check_cases
from tests.golden import assert_evaluated
from tests.verbs.diff.diff_cases import Pipeline, dataset_of, pairs

TOY = dataset_of({"train": (4000, 6000), "test": (5, 5)})
SETTINGS = ReadSettings(cycle=2, block=2)


def taken(settings: ReadSettings = SETTINGS, spec: str = "train") -> TakenSnapshot:
    return snapshot(TOY, spec, settings)


def side(of: TakenSnapshot, **changed: object) -> PinnedOrder:
    return PinnedOrder(snapshot=replace(of.snapshot, **changed), label="a.yaml")  # type: ignore[arg-type]


def test_an_order_is_not_made_again_where_something_is_pinned_as_a_hash(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = taken()
    monkeypatch.setattr(pinned_layout, "MAX_LAYOUT_CHARS", -1)
    assert side(taken()).rebuilt is None
    known = PinnedOrder(snapshot=before.snapshot, label="today", live=before.live)
    assert known.rebuilt is before.live


@pytest.mark.parametrize(
    "settings",
    [
        {"spin": 1},  # of a later version
        {"block": -1},  # refused today
        {"epochs": 2},  # another number of examples than is pinned
        {"file_order": "2 files, sha256:0"},
    ],
)
def test_an_order_that_these_rules_do_not_give_is_not_rebuilt(settings: dict[str, Any]) -> None:
    before = taken()
    assert side(before, pipeline={**before.snapshot.pipeline, **settings}).rebuilt is None


def test_a_list_of_files_may_name_folders_and_splits_that_are_not_pinned() -> None:
    names = [f"gs://bucket/{split.filename(i)}" for split in TOY.splits for i in (1, 0)]
    before = taken()
    again = side(before, pipeline={**before.snapshot.pipeline, "file_order": names}).rebuilt
    assert again is not None
    # The second file first: its ids begin at 4,000.
    assert again.order.read(0, 5).tolist() == [4000, 4001, 0, 1, 4002]


def test_a_block_holds_when_its_cells_have_the_digest_that_is_pinned() -> None:
    before = taken()
    order, splits = before.live.order, before.live.splits
    pinned = side(before)
    for block, (start, stop) in enumerate([(0, 4096), (4096, 8192), (8192, 10_000)]):
        codes = order.read(start, stop)
        cells = list(digests_of([codes], splits))
        assert pinned.holds(cells, size=4096, block=block)
        codes[-1] ^= 1
        changed = list(digests_of([codes], splits))
        assert not pinned.holds(changed, size=4096, block=block)


def test_two_versions_are_compared_as_one_is() -> None:
    before, after = taken(), taken(ReadSettings(cycle=2, block=3))
    older = side(before, tree=tree_in(1, before.live))
    assert diff(older, side(before)).equal
    one, other = diff(side(before), side(after)), diff(older, side(after))
    assert (one.first, one.moved, one.changes) == (other.first, other.moved, other.changes)
    assert diff(older, replace(side(after), live=after.live)).first == one.first
    newer, unknown = side(after), side(before, tree=replace(after.snapshot.tree, version=1))
    assert diff(unknown, newer).expected is unknown  # the other one is made again
    lost = {"file_order": "2 files, sha256:0"}
    both = (
        side(before, tree=older.snapshot.tree, pipeline={**before.snapshot.pipeline, **lost}),
        side(after, pipeline={**after.snapshot.pipeline, **lost}),
    )
    for pair in (both, both[::-1]):
        with pytest.raises(UsageError, match=r"version 1 .* version 2, .*shardctl snapshot -o"):
            diff(*pair)


def test_nothing_is_asked_of_a_block_past_the_end_or_of_a_known_order() -> None:
    before = taken()
    assert side(before).holds([], size=4096, block=3)
    known = PinnedOrder(snapshot=before.snapshot, label="today", live=before.live)
    assert known.holds([b"anything"], size=4096, block=0)


SMALL = dataset_of({"train": (3, 4)})


def pinned(*, ordered: bool = False, **settings: Any) -> Snapshot:
    return snapshot(replace(SMALL, ordered=ordered), "train", ReadSettings(**settings)).snapshot


def test_a_default_cycle_is_that_of_the_dataset_as_it_is_now() -> None:
    def cycle_now(was_ordered: bool, is_ordered: bool, cycle: int | None) -> object:
        one = pinned(ordered=was_ordered, cycle=cycle)
        return settings_to_fall_back_on(one, replace(SMALL, ordered=is_ordered)).get("cycle")

    assert_evaluated(globals(), "cycles", cycle_now)


def test_a_list_of_files_that_is_a_hash_has_to_be_given_again() -> None:
    one = pinned(file_order=SMALL.splits[0].filenames)
    assert settings_to_fall_back_on(one, SMALL)["file_order"] == SMALL.splits[0].filenames
    hashed = replace(one, pipeline={**one.pipeline, "file_order": "2 files, sha256:0"})
    assert "file_order" not in settings_to_fall_back_on(hashed, SMALL)


@pytest.mark.parametrize(("installed", "expected"), [(None, "4.8.5"), ("5.2.0", None)])
def test_the_installed_version_of_a_loader_reads_now(
    installed: str | None, expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installed_versions, "installed_version", lambda package: installed)
    read: dict[str, Any] = {"loader": "hf", "loader_version": "4.8.5", "arrow": True}
    one = pinned(ordered=False, **read, shuffle_seed=1, buffer=5, cycle=None)
    assert settings_to_fall_back_on(one, SMALL).get("loader_version") == expected


def test_settings_that_nobody_names_are_those_that_are_pinned() -> None:
    def check(pair: tuple[Pipeline, Pipeline]) -> None:
        taken = pair[0].taken()
        if taken is not None:
            arguments = settings_to_fall_back_on(taken.snapshot, pair[0].dataset)
            again = snapshot(pair[0].dataset, pair[0].spec, ReadSettings(**arguments))
            assert again.snapshot == taken.snapshot

    check_cases(pairs(), check, 40)
