"""Several snapshots, each beside the order of today, as text, as a document, as annotations."""

from __future__ import annotations

import pytest

from shardctl.draw.setting_origins import SettingOrigins
from shardctl.draw.tables import PLAIN
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.diff.answer import PinnedOrder, diff
from shardctl.verbs.diff.view import (
    CheckedFile,
    Hints,
    diff_document,
    several_annotation,
    several_document,
    several_table,
)
from shardctl.verbs.snapshot.answer import snapshot
from tests.draw.github_runner import as_github_reads
from tests.verbs.diff.diff_cases import dataset_of

TOY = dataset_of({"train": (4, 4, 4)})


def checked(label: str, block: int) -> CheckedFile:
    def pinned(name: str, settings: ReadSettings) -> PinnedOrder:
        return PinnedOrder(snapshot=snapshot(TOY, "train", settings).snapshot, label=name)

    found = diff(
        pinned(label, ReadSettings(cycle=2, block=block)),
        pinned("today", ReadSettings(cycle=2, block=2)),
    )
    origins = SettingOrigins(file="sub/shardctl.yaml", lines={"block": 3})
    command = f"shardctl diff {label} --update"
    return CheckedFile(
        label=label,
        diff=found,
        hints=Hints(file=f"sub/{label}", origins=origins, update=command),
    )


SAME, OTHER, THIRD = checked("a.yaml", 2), checked("b.yaml", 4), checked("c.yaml", 1)
FAILED = CheckedFile(label="d.yaml", hints=Hints(file="sub/d.yaml"), error="d.yaml: it is empty")


def test_the_same_take_a_line_and_the_others_a_section() -> None:
    text = "".join(several_table([SAME, OTHER, FAILED, SAME], PLAIN))
    assert text.splitlines() == [
        "a.yaml and today: the same, the order of 12 examples",
        "",
        "b.yaml and today first differ at position 2 of 12",
        "",
        "   position  expected  actual",
        "          0         0       0",
        "          1         1       1",
        ">         2         2       4",
        "          3         3       5",
        "          4         4       2",
        "          5         5       3",
        "",
        "4 of 12 positions have another example (33.3%)",
        "because:",
        "  block: 4 became 2 (sub/shardctl.yaml:3)",
        "",
        "d.yaml was not checked: it is empty",
        "a.yaml and today: the same, the order of 12 examples",
        "2 of 4 files the same, 1 changed, 1 not checked",
        "if this is meant, the same command with --update accepts it",
    ]


@pytest.mark.parametrize(
    ("files", "last"),
    [
        ([SAME, SAME], ["2 of 2 files the same"]),
        (
            [OTHER, THIRD],
            [
                "",
                "0 of 2 files the same, 2 changed",
                "if this is meant, the same command with --update accepts them all, and one alone: "
                "shardctl diff b.yaml --update",
            ],
        ),
        ([SAME], ["a.yaml and today: the same, the order of 12 examples"]),
    ],
)
def test_the_last_lines_count_and_say_what_to_do(files: list[CheckedFile], last: list[str]) -> None:
    assert "".join(several_table(files, PLAIN)).splitlines()[-len(last) :] == last


def test_the_document_has_that_of_each_file_and_what_was_not_checked() -> None:
    document = several_document([SAME, OTHER, FAILED])
    assert list(document)[:3] == ["format_version", "kind", "equal"]
    assert document["equal"] is False
    assert SAME.diff is not None
    assert document["comparisons"][0] == diff_document(SAME.diff)
    assert [one["expected"] for one in document["comparisons"]] == ["a.yaml", "b.yaml"]
    assert document["not_checked"] == [{"file": "d.yaml", "error": "d.yaml: it is empty"}]
    assert several_document([SAME, SAME])["equal"] is True
    assert several_document([SAME, FAILED])["equal"] is False


def test_each_file_that_differs_or_fails_has_an_annotation() -> None:
    read = [as_github_reads(line) for line in several_annotation([SAME, OTHER, FAILED, THIRD])]
    assert [(level, where["file"], where.get("line")) for level, where, _ in read] == [
        ("error", "sub/shardctl.yaml", "3"),
        ("error", "sub/d.yaml", None),
        ("error", "sub/shardctl.yaml", "3"),
    ]
    assert read[0][2].endswith("\n\nif this is meant: shardctl diff b.yaml --update")
    assert read[1][1:] == (
        {"file": "sub/d.yaml", "title": "d.yaml was not checked"},
        "it is empty",
    )
