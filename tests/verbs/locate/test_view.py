"""Located examples as people and programs read them."""

from __future__ import annotations

import pickle

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.draw.tables import PLAIN, Screen
from shardctl.order.plan_order import plan_order
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.locate.answer import Located, Query, locate_in
from shardctl.verbs.locate.view import locate_document, locate_rows, locate_table

FILES = ShardFiles(pattern="d-train-\0", num_shards=2)
TOY = Dataset(name="d", splits=(Split(name="train", shard_lengths=(3, 2), files=(FILES,)),))


def located(*positions: int, **settings: object) -> Located:
    order = plan_order(TOY, "train", ReadSettings(**settings)).order  # type: ignore[arg-type]
    return locate_in(order, [Query(kind="position", value=str(p)) for p in positions])


def test_a_row_for_each_match() -> None:
    assert "".join(locate_table(located(4, 0, cycle=1), PLAIN, spec="train")) == (
        "train of d: cycle 1, block 16\n"
        "position  epoch  id  file           index\n"
        "       4      0   4  d-train-00001      1\n"
        "       0      0   0  d-train-00000      0\n"
    )


def test_with_batches_the_step_and_the_place_in_it() -> None:
    assert "".join(locate_table(located(6, cycle=1, batch=4, epochs=2), PLAIN, spec="train")) == (
        "train of d: cycle 1, block 16, 2 epochs, batches of 4\n"
        "position  epoch  step  in batch  id  file           index\n"
        "       6      1     1         2   1  d-train-00000      1\n"
    )


def test_no_matches_are_said() -> None:
    assert "".join(locate_table(located(), PLAIN, spec="train")).endswith("\nno matches\n")


def test_a_narrow_screen_folds_and_loses_nothing() -> None:
    text = "".join(locate_table(located(4, batch=2), Screen(width=30), spec="train"))
    assert max(map(len, text.splitlines())) <= 30
    for word in ("4", "position", "index"):
        assert word in text


def test_the_document_and_the_rows_have_the_documented_fields() -> None:
    found = located(4, batch=4, cycle=1)
    values = (4, 0, 1, 4, "d-train-00001__1", "d-train-00001", 1)
    document = locate_document(found)
    assert list(document) == ["format_version", "kind", "dataset", "matches"]
    assert document["matches"] == [dict(zip(locate_rows(found).fields, values, strict=True))]
    assert [*locate_rows(found).rows()] == [values]
    assert locate_document(located(4, cycle=1))["matches"][0]["step"] is None


def test_another_process_gets_the_rows_of_an_answer() -> None:
    found = located(4, batch=4, cycle=1)
    again = pickle.loads(pickle.dumps(found))
    assert list(again.matches) == list(found.matches)
    assert [*locate_rows(again).rows()] == [*locate_rows(found).rows()]
