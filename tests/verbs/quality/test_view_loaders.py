"""All ways to read a dataset, as people and programs read them."""

from __future__ import annotations

import json

import pytest

from shardctl.draw.tables import PLAIN, Screen
from shardctl.files.documents import to_json
from shardctl.verbs.quality.loaders import Ending, LoaderComparison, compare_loaders
from shardctl.verbs.quality.view import ends, loaders_document, loaders_rows, loaders_table
from tests.columns import record_dicts
from tests.verbs.quality.quality_orders import even_dataset

_WITHOUT_END = {"num_hosts": 2, "num_repeated": 0, "num_left_out": 0, "num_dropped": 0}


@pytest.fixture(scope="module")
def plan() -> LoaderComparison:
    return compare_loaders(even_dataset(1_000, 10), "train[:95%]", {"batch": 32, "host": "0/3"})


def test_every_way_that_reads_has_a_row_and_the_others_a_reason(plan: LoaderComparison) -> None:
    text = "".join(loaders_table(plan, PLAIN))
    mixing, going_on, in_force, refused = text.split("\n\n")[1:]
    for way in plan.ways:
        if way.refused is None:
            assert all(f"{way.reader}" in part for part in (mixing, going_on, in_force))
        else:
            assert f"- {way.reader}: " in refused
    assert "--no-streaming and no --buffer" in refused
    assert "of what host 0/3 reads" in mixing


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_a_table_fits_a_terminal(plan: LoaderComparison, width: int) -> None:
    lines = "".join(loaders_table(plan, Screen(width=width))).splitlines()
    assert max(map(len, lines)) <= width


@pytest.mark.parametrize(
    ("ending", "text"),
    [
        (Ending(**_WITHOUT_END, steps=(5, 5), last_batch=None), "even"),
        (Ending(**_WITHOUT_END, steps=(4, 5), last_batch=3), "hangs after 4, last 3"),
        (
            Ending(
                num_hosts=2,
                steps=(5, 5),
                num_repeated=1,
                num_left_out=2_000,
                num_dropped=3,
                last_batch=None,
            ),
            "1 repeated, 2,000 lost, 3 dropped",
        ),
    ],
)
def test_how_an_epoch_ends_in_words(ending: Ending, text: str) -> None:
    assert ends(ending) == text


def test_the_document_has_what_the_table_has(plan: LoaderComparison) -> None:
    document = json.loads("".join(to_json(loaders_document(plan))))
    assert document["kind"] == "quality"
    assert [row["reader"] for row in document["loaders"]] == [way.reader for way in plan.ways]
    for row, way in zip(document["loaders"], plan.ways, strict=True):
        assert row["pipeline"].get("loader", "tfds") == way.settings.loader
        assert (row["refused"] is None) == (way.mixing is not None) == (row["score"] is not None)
        assert (row["ending"] is None) == (way.ending is None)
        if way.ending is not None:
            assert row["ending"]["hangs"] == way.ending.hangs


def test_rows_have_the_columns_of_the_header(plan: LoaderComparison) -> None:
    rows = record_dicts(loaders_rows(plan))
    assert [row["reader"] for row in rows] == [way.reader for way in plan.ways]
    assert {row["loader"] for row in rows} >= {"tfds", "hf", "grain", "torch"}
    assert [row["refused"] is None for row in rows] == [way.refused is None for way in plan.ways]
