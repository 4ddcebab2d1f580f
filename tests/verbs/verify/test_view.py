"""What the real thing read beside what was predicted, as text, document and CSV."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardctl.dataset.dataset import Dataset, FileFinding, Split
from shardctl.draw.tables import PLAIN, Screen
from shardctl.files.documents import to_csv
from shardctl.settings.read_settings import ReadSettings, settings_in_force
from shardctl.verbs.verify.answer import FirstDifference, Verification, Window
from shardctl.verbs.verify.view import verify_document, verify_rows, verify_table

TOY = Dataset(name="toy", splits=(Split(name="train", shard_lengths=(3, 4)),))
AS_PREDICTED = Verification(
    dataset=TOY,
    spec="train",
    pipeline=settings_in_force(ReadSettings(cycle=2), ordered=False),
    num_examples=7,
    read="files",
    windows=(Window(start=0, stop=7, read="files"),),
    first_difference=None,
    num_files=2,
    files=(),
    versions={"tensorflow": "2.21.0", "tensorflow_datasets": "4.9.10"},
)
PARTED = FirstDifference(
    position=3, expected=3, found=5, expected_tfds_id="b__0", found_tfds_id="b__2"
)
SHORT = FileFinding(filename="b", expected=4, found=2)
GONE = FileFinding(filename="c", expected=1000, found=None, reason="no such file")


def text(verification: Verification, screen: Screen = PLAIN) -> str:
    return "".join(verify_table(verification, screen))


def test_an_order_as_predicted_takes_a_few_lines() -> None:
    assert text(AS_PREDICTED) == (
        "train of toy: cycle 2, block 16\n"
        "as predicted: 7 of 7 examples, read from files\n"
        "read by TFDS 4.9.10 and TensorFlow 2.21.0\n"
        "2 files hold what the metadata says\n"
    )


def test_an_order_without_end_has_no_number_of_examples() -> None:
    endless = replace(AS_PREDICTED, num_examples=None)
    assert "as predicted: 7 of an endless order, read from files\n" in text(endless)
    assert verify_document(endless)["num_examples"] is None
    assert "7 of an endless order compared" in repr(endless)


@pytest.mark.parametrize(
    ("windows", "line"),
    [
        (
            (Window(start=0, stop=2, read="files"), Window(start=4, stop=7, read="files")),
            "as predicted: 5 of 7 examples, read from files in 2 windows",
        ),
        (
            (Window(start=0, stop=2, read="files"), Window(start=0, stop=4, read="index ranges")),
            "as predicted: 2 of 7 examples, read from files; and 4 from the start over index "
            "ranges",
        ),
    ],
)
def test_what_was_compared_is_said_by_what_it_was_read_from(
    windows: tuple[Window, ...], line: str
) -> None:
    assert text(replace(AS_PREDICTED, windows=windows)).splitlines()[1] == line


def test_index_ranges_are_read_by_tensorflow_alone() -> None:
    found = replace(
        AS_PREDICTED,
        read="index ranges",
        windows=(Window(start=0, stop=7, read="index ranges"),),
        num_files=0,
        notes=("no files here",),
    )
    assert text(found).splitlines()[1:] == [
        "as predicted: 7 of 7 examples, read from index ranges",
        "read by TensorFlow 2.21.0",
        "note: no files here",
    ]


@pytest.mark.parametrize(
    ("changed", "lines"),
    [
        pytest.param(
            {},
            [
                "differs at position 3, read from files",
                "          id  tfds_id",
                "expected   3  b__0",
                "found      5  b__2",
            ],
            id="another example",
        ),
        pytest.param(
            {"found": None, "found_tfds_id": None, "reason": "out of data", "host": "0/6"},
            [
                "differs at position 3 of host 0/6, read from files",
                "             id  tfds_id",
                "expected      3  b__0",
                "found     (end)",
                "TensorFlow says: out of data",
            ],
            id="the end",
        ),
        pytest.param(
            {"found": "x__9", "found_tfds_id": "x__9"},
            [
                "differs at position 3, read from files",
                "              id  tfds_id",
                "expected       3  b__0",
                "found     (none)  x__9",
            ],
            id="an example that the metadata does not know",
        ),
    ],
)
def test_the_first_difference_has_both_sides(
    changed: dict[str, str | None], lines: list[str]
) -> None:
    first = replace(PARTED, **changed)  # type: ignore[arg-type]
    found = text(replace(AS_PREDICTED, first_difference=first)).splitlines()
    assert found[1 : 1 + len(lines)] == lines


def test_files_that_hold_another_number_are_listed() -> None:
    assert text(replace(AS_PREDICTED, files=(SHORT, GONE))).splitlines()[3:] == [
        "2 of 2 files not as the metadata says:",
        "file  metadata  file holds  problem",
        "b            4           2",
        "c        1,000           -  no such file",
    ]


def test_on_a_screen_many_files_are_elided_and_in_a_pipe_none() -> None:
    many = replace(AS_PREDICTED, num_files=100, files=(SHORT,) * 100)
    rows = [
        line
        for line in text(many, Screen(width=80, abridged=True)).splitlines()
        if line.startswith("b ")
    ]
    assert len(rows) == 20
    assert sum(line.startswith("b ") for line in text(many).splitlines()) == 100


def test_an_order_without_examples_is_not_said_to_be_as_predicted() -> None:
    lines = text(replace(AS_PREDICTED, num_examples=0, windows=())).splitlines()
    assert lines[1] == "nothing is compared: the order has no examples"


def test_files_of_one_finding_are_counted() -> None:
    gone = replace(GONE, num_files=3)
    assert "4 of 5 files not as the metadata says:" in text(
        replace(AS_PREDICTED, files=(SHORT, gone), num_files=5)
    )


def test_the_document_says_what_was_compared_and_by_which_versions() -> None:
    document = verify_document(
        replace(AS_PREDICTED, first_difference=PARTED, files=(SHORT,), plan="plan.yaml")
    )
    assert document["kind"] == "verify"
    assert (document["equal"], document["num_checked"], document["plan"]) == (False, 7, "plan.yaml")
    assert document["checked"] == [{"start": 0, "stop": 7, "read": "files", "host": None}]
    assert (document["tensorflow"], document["tensorflow_datasets"]) == ("2.21.0", "4.9.10")
    assert document["first_difference"]["position"] == 3
    (file,) = document["files"]
    assert list(file)[:4] == ["filename", "expected", "found", "reason"]
    assert file == {
        "filename": "b",
        "expected": 4,
        "found": 2,
        "reason": None,
        "kind": "count",
        "split": None,
        "record": None,
        "byte": None,
        "num_files": 1,
    }
    assert verify_document(AS_PREDICTED)["first_difference"] is None


def test_csv_has_a_row_for_what_differs() -> None:
    found = replace(AS_PREDICTED, first_difference=PARTED, files=(SHORT, GONE))
    assert "".join(to_csv(verify_rows(found))).splitlines() == [
        "kind,where,expected,found,reason",
        "order,3,3,5,",
        "file,b,4,2,",
        "file,c,1000,,no such file",
    ]
    assert list(verify_rows(AS_PREDICTED).rows()) == []


def test_what_differs_is_marked_where_colour_is_shown() -> None:
    parted = replace(AS_PREDICTED, first_difference=PARTED, files=(SHORT,))
    shown = text(parted, Screen(color=True))
    assert "\x1b[1;91mdiffers at position 3" in shown
    assert "\x1b[1;91m1 of 2 files not as the metadata says:\x1b[0m" in shown
    assert "\x1b[1;91mb\x1b[0m " in shown
    assert "\x1b[1;9" not in text(AS_PREDICTED, Screen(color=True))


OF_GRAIN = replace(
    AS_PREDICTED,
    read="index ranges",
    windows=(Window(start=0, stop=7, read="index ranges"),),
    num_files=0,
    versions={"grain": "0.2.18", "tensorflow_datasets": "4.9.10"},
)


def test_another_loader_is_named_with_its_version_and_quoted() -> None:
    assert text(OF_GRAIN).splitlines()[1:] == [
        "as predicted: 7 of 7 examples, read from index ranges",
        "read by grain 0.2.18, tensorflow_datasets 4.9.10",
    ]
    broken = replace(OF_GRAIN, first_difference=replace(PARTED, reason="no more"))
    assert "grain says: no more\n" in text(broken)
    assert verify_document(OF_GRAIN)["grain"] == "0.2.18"
    assert "tensorflow" not in verify_document(OF_GRAIN)


def test_what_else_of_a_loader_differs_is_in_every_format() -> None:
    unequal = replace(OF_GRAIN, unequal=("ReadSettings(epochs=2): another order",))
    assert not unequal.equal
    assert "not as predicted: ReadSettings(epochs=2): another order\n" in text(unequal)
    assert verify_document(unequal)["unequal"] == ["ReadSettings(epochs=2): another order"]
    assert "unequal" not in verify_document(OF_GRAIN)
    assert "".join(to_csv(verify_rows(unequal))).splitlines()[1] == (
        "unequal,,,,ReadSettings(epochs=2): another order"
    )
