"""Where two plans differ, as text, as a document, as an annotation."""

from __future__ import annotations

from shardctl.draw.tables import PLAIN, Screen
from shardctl.saved.resume_plan import ListedPlan, PlanListing
from shardctl.verbs.diff.plans import diff_plans
from shardctl.verbs.diff.view import plans_annotation, plans_document, plans_table
from tests.draw.github_runner import as_github_reads
from tests.spec.reads_cases import named_reads
from tests.verbs.diff.diff_cases import dataset_of

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
    assert document["files"][0]["actual"] == [(2, 5)]
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


def test_a_terminal_and_an_annotation_show_some_files_and_ranges_and_a_pipe_all() -> None:
    many = dataset_of({"train": (10,) * 30})
    names = many.split("train").filenames

    def reads(first: int) -> PlanListing:
        rows = [(name, skip, 1) for name in names for skip in range(first, 10, 2)]
        listed = ListedPlan(title="train", reads=named_reads(*rows))
        return PlanListing(kind="plan", dataset=many.identity, plans=(listed,))

    found = diff_plans(reads(0), reads(1), labels=("a", "b"))
    whole = "".join(plans_table(found, PLAIN))
    assert all(whole.count(name) >= 1 for name in names)
    assert whole.count("0 to 0; 2 to 2; 4 to 4; 6 to 6; 8 to 8") == 30
    assert "more" not in whole
    short = "".join(plans_table(found, Screen(width=200, abridged=True)))
    assert short.count("0 to 0; 2 to 2; 4 to 4 and 2 more") == 20
    assert "\n… 10 more rows; --all shows them\n" in short
    noted = "".join(plans_annotation(found))
    assert "… 10 more rows" in noted
    assert "--all" not in noted


def test_the_first_difference_is_marked_where_colour_is_shown() -> None:
    found = diff_plans(plans(("a", 0, 5)), plans(("a", 2, 3)), labels=("x", "y"))
    lines = "".join(plans_table(found, Screen(color=True))).splitlines()
    assert [line for line in lines if "\x1b[1;91m" in line] == [
        "\x1b[1;91m  expected a of train, skip 0, take 5\x1b[0m",
        "\x1b[1;91m  actual   a of train, skip 2, take 3\x1b[0m",
    ]
