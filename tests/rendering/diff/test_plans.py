"""Where two plans differ, as text, as a document, as an annotation."""

from __future__ import annotations

from shardctl.core.resume.resume_plan import ListedPlan, PlanListing
from shardctl.planning.diff.plans import diff_plans
from shardctl.rendering.diff.plans import plans_annotation, plans_document, plans_table
from shardctl.rendering.text.tables import PLAIN
from tests.core.instructions.reads_cases import named_reads
from tests.planning.diff.diff_cases import dataset_of
from tests.rendering.github_runner import as_github_reads

TOY = dataset_of({"train": (4, 4, 4)})


def plans(*reads: tuple[str, int, int]) -> PlanListing:
    listed = ListedPlan(title="train", reads=named_reads(*reads))
    return PlanListing(kind="plan", dataset=TOY.identity, plans=(listed,))


def test_plans_that_differ_say_which_files_and_ranges() -> None:
    found = diff_plans(
        plans(("a", 0, 5), ("b", 0, 9)), plans(("a", 2, 3), ("b", 0, 9)), labels=("x", "y")
    )
    text = "".join(plans_table(found, PLAIN))
    assert text.splitlines() == [
        "x and y do not read the same",
        "file instruction 0 of train:",
        "  expected a of train, skip 0, take 5",
        "  actual   a of train, skip 2, take 3",
        "",
        "1 file read differently:",
        "file  expected  actual",
        "a     0 to 4    2 to 4",
    ]
    document = plans_document(found)
    assert document["first_difference"]["position"] == 0
    assert document["files"][0]["actual"] == [[2, 5]]
    (line,) = plans_annotation(found)
    assert as_github_reads(line)[1] == {"file": "x", "title": "x and y do not read the same"}


def test_plans_in_another_order_are_said_to_be_so() -> None:
    found = diff_plans(
        plans(("a", 0, 5), ("b", 0, 9)), plans(("b", 0, 9), ("a", 0, 5)), labels=("x", "y")
    )
    assert "in another order" in "".join(plans_table(found, PLAIN))


def test_equal_plans_take_a_line() -> None:
    found = diff_plans(plans(), plans(), labels=("x", "y"))
    assert "".join(plans_table(found, PLAIN)) == "x and y read the same\n"
    assert list(plans_annotation(found)) == []
