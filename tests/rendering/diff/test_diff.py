"""Where two orders part, as text, as a document, and as GitHub's annotations."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import yaml

from shardctl.core.resume.plan_listing import ListedPlan, PlanListing
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.files.documents import to_json, to_yaml
from shardctl.planning.diff.diff import Diff, Moved, diff
from shardctl.planning.diff.pinned_order import PinnedOrder
from shardctl.planning.diff.plans import diff_plans
from shardctl.planning.snapshot import snapshot
from shardctl.rendering.diff.diff import (
    annotation,
    diff_annotation,
    diff_document,
    diff_text,
    moved_line,
)
from shardctl.rendering.diff.plans import plans_annotation, plans_document, plans_text
from shardctl.rendering.text.screen import PLAIN, Screen
from tests.core.instructions.reads_cases import named_reads
from tests.planning.diff.diff_cases import dataset_of

TOY = dataset_of({"train": (4, 4, 4)})


def pinned(**settings: object) -> PinnedOrder:
    arguments = {"cycle": 2, "block": 2, **settings}
    taken = snapshot(TOY, "train", ReadSettings(**arguments)).snapshot  # type: ignore[arg-type]
    return PinnedOrder(snapshot=taken, label="order.yaml")


def parted() -> Diff:
    return diff(pinned(), replace(pinned(block=4), label="today"))


def test_the_text_reads_like_a_failed_test() -> None:
    # 0 1 4 5 2 3 6 7 8.. against 0 1 2 3 4 5 6 7 8..: positions 2 to 5 differ.
    text = "".join(diff_text(parted(), PLAIN, advice="if this is meant: do it"))
    assert text.splitlines() == [
        "order.yaml and today part at position 2 of 12",
        "",
        "   position  expected  actual",
        "          0         0       0",
        "          1         1       1",
        ">         2         4       2",
        "          3         5       3",
        "          4         2       4",
        "          5         3       5",
        "",
        "4 of 12 positions have another example (33.3%)",
        "because:",
        "  block: 2 became 4",
        "",
        "if this is meant: do it",
    ]


def test_equal_orders_take_a_line_and_what_changed_without_effect_another() -> None:
    text = "".join(diff_text(diff(pinned(), pinned(batch=3)), PLAIN))
    assert text == (
        "order.yaml and order.yaml: the same, the order of 12 examples\n"
        "  without effect on the order: batch: none became 3\n"
    )


@pytest.mark.parametrize("width", [40, 60, 80])
def test_no_line_is_wider_than_the_screen(width: int) -> None:
    other = snapshot(
        dataset_of({"train": tuple([7] * 60)}), "train", ReadSettings(shuffle_seed=10**60)
    ).snapshot
    found = diff(pinned(), PinnedOrder(snapshot=other, label="x" * 50))
    text = "".join(diff_text(found, Screen(width=width)))
    assert max(map(len, text.splitlines())) <= width


def test_the_document_has_the_promised_fields_first() -> None:
    document = diff_document(parted())
    assert list(document)[:3] == ["format_version", "kind", "dataset"]
    assert list(document["dataset"]) == [
        "name",
        "config",
        "version",
        "file_format",
        "data_dir",
        "fingerprint",
    ]
    assert document["equal"] is False
    assert {**document["first_difference"], "stop": 0, "exact": 0} == {
        "position": 2,
        "expected": 4,
        "actual": 2,
        "stop": 0,
        "exact": 0,
    }
    assert document["moved"] == {"at_least": 4, "at_most": 4, "positions": 12}
    assert [(c["kind"], c["name"], c["expected"], c["actual"]) for c in document["causes"]] == [
        ("setting", "block", 2, 4)
    ]
    assert json.loads("".join(to_json(document))) == document
    assert yaml.safe_load("".join(to_yaml(document))) == document


def test_the_document_of_equal_orders_has_no_difference_and_no_cause() -> None:
    document = diff_document(diff(pinned(), pinned(batch=3)))
    assert (document["equal"], document["first_difference"], document["causes"]) == (True, None, [])
    assert [change["name"] for change in document["without_effect"]] == ["batch"]


def unescaped(line: str) -> tuple[str, str, str]:
    """Return file, title and message as a runner of GitHub reads them.

    Source: actions/runner, ActionCommand.cs, whose unescaping replaces %25 last.
    """
    head, _, message = line.removesuffix("\n").partition("::error ")[2].partition("::")
    values = dict(pair.split("=", 1) for pair in head.split(","))

    def data(text: str) -> str:
        return text.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")

    def plain(text: str) -> str:
        return data(text.replace("%3A", ":").replace("%2C", ","))

    return plain(values["file"]), plain(values["title"]), data(message)


def test_an_annotation_is_one_line_that_a_runner_reads_back() -> None:
    for texts in [("a,b:c%.yaml", "50%, no: 1", "x\r\ny: 3%, z"), ("f", "%0A", "%25::")]:
        line = annotation(*texts)
        assert line.count("\n") == 1
        assert unescaped(line) == texts


def test_orders_that_part_are_annotated_at_the_file() -> None:
    (line,) = diff_annotation(parted(), "orders/train.yaml")
    file, title, message = unescaped(line)
    assert file == "orders/train.yaml"
    assert title == "order.yaml and today part at position 2 of 12"
    assert "block: 2 became 4" in message
    assert "4 of 12 positions" in message
    assert list(diff_annotation(diff(pinned(), pinned()), "x")) == []


@pytest.mark.parametrize(
    ("moved", "words"),
    [
        (Moved(at_least=999_999, at_most=999_999, positions=10**6), "more than 99.9%"),
        (Moved(at_least=1, at_most=1, positions=10**6), "less than 0.1%"),
        (Moved(at_least=10, at_most=10, positions=10), "(100%)"),
        (Moved(at_least=2, at_most=5, positions=10), "between 2 and 5 of 10 positions"),
    ],
)
def test_shares_are_never_rounded_to_none_or_all(moved: Moved, words: str) -> None:
    assert words in moved_line(moved)


def plans(*reads: tuple[str, int, int]) -> PlanListing:
    listed = ListedPlan(title="train", reads=named_reads(*reads))
    return PlanListing(kind="plan", dataset={"name": "toy"}, plans=(listed,))


def test_plans_that_part_say_which_files_and_ranges() -> None:
    found = diff_plans(
        plans(("a", 0, 5), ("b", 0, 9)), plans(("a", 2, 3), ("b", 0, 9)), labels=("x", "y")
    )
    text = "".join(plans_text(found, PLAIN))
    assert text.splitlines() == [
        "x and y do not read the same",
        "file instruction 0 of train:",
        "  expected a of train, skip 0, take 5",
        "  actual   a of train, skip 2, take 3",
        "",
        "1 file read otherwise:",
        "file  expected  actual",
        "a     0 to 4    2 to 4",
    ]
    document = plans_document(found)
    assert document["first_difference"]["position"] == 0
    assert document["files"][0]["actual"] == [[2, 5]]
    (line,) = plans_annotation(found, "x")
    assert unescaped(line)[1] == "x and y do not read the same"


def test_plans_in_another_order_are_said_to_be_so() -> None:
    found = diff_plans(
        plans(("a", 0, 5), ("b", 0, 9)), plans(("b", 0, 9), ("a", 0, 5)), labels=("x", "y")
    )
    assert "in another order" in "".join(plans_text(found, PLAIN))


def test_equal_plans_take_a_line() -> None:
    found = diff_plans(plans(), plans(), labels=("x", "y"))
    assert "".join(plans_text(found, PLAIN)) == "x and y read the same\n"
    assert list(plans_annotation(found, "x")) == []
