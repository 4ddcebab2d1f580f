"""What a snapshot's settings come to on the dataset as it is today."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.snapshot.snapshot import Snapshot
from shardctl.planning.diff.pinned_settings import settings_to_fall_back_on
from shardctl.planning.snapshot import snapshot
from tests.cases import check_cases
from tests.planning.diff.diff_cases import Pipeline, dataset_of, pairs

TOY = dataset_of({"train": (3, 4)})


def pinned(*, ordered: bool = False, **settings: Any) -> Snapshot:
    return snapshot(replace(TOY, ordered=ordered), "train", ReadSettings(**settings)).snapshot


# TFDS reads 16 files at a time, and one of an ordered dataset.
@pytest.mark.parametrize(
    ("was_ordered", "is_ordered", "cycle", "expected"),
    [
        pytest.param(False, False, None, 16, id="nothing changed"),
        pytest.param(False, True, None, None, id="a default is that of today's dataset"),
        pytest.param(True, False, None, None, id="a default of an ordered dataset too"),
        pytest.param(False, True, 16, None, id="a number that is the default counts as it"),
        pytest.param(False, True, 5, 5, id="a number of one's own stays"),
        pytest.param(False, False, 5, 5, id="a number of one's own on the same dataset"),
    ],
)
def test_a_default_cycle_is_that_of_the_dataset_as_it_is_now(
    was_ordered: bool, is_ordered: bool, cycle: int | None, expected: int | None
) -> None:
    arguments = settings_to_fall_back_on(
        pinned(ordered=was_ordered, cycle=cycle), replace(TOY, ordered=is_ordered)
    )
    assert arguments.get("cycle") == expected


def test_a_list_of_files_that_is_a_hash_has_to_be_given_again() -> None:
    one = pinned(file_order=TOY.splits[0].filenames)
    assert settings_to_fall_back_on(one, TOY)["file_order"] == TOY.splits[0].filenames
    hashed = replace(one, pipeline={**one.pipeline, "file_order": "2 files, sha256:0"})
    assert "file_order" not in settings_to_fall_back_on(hashed, TOY)


def test_settings_that_nobody_names_are_those_that_are_pinned() -> None:
    def check(pair: tuple[Pipeline, Pipeline]) -> None:
        taken = pair[0].taken()
        if taken is not None:
            arguments = settings_to_fall_back_on(taken.snapshot, pair[0].dataset)
            again = snapshot(pair[0].dataset, pair[0].spec, ReadSettings(**arguments))
            assert again.snapshot == taken.snapshot

    check_cases(pairs(), check, 100)
