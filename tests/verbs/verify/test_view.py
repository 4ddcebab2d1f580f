"""What was read beside what was predicted, and what files hold: as text, document and CSV."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shardctl.dataset.dataset import COUNTED_FILES, Dataset, FileFinding, Split
from shardctl.draw.tables import PLAIN, Screen
from shardctl.files.documents import to_csv
from shardctl.settings.read_settings import ReadSettings, settings_in_force
from shardctl.verbs.verify import view
from shardctl.verbs.verify.answer import FirstDifference, Verification, Window
from shardctl.verbs.verify.verify_files import FilesVerification, SplitFiles
from tests.golden import assert_golden, values

SPLIT = Split(name="train", shard_lengths=(3, 1400))
TOY = Dataset(name="toy", data_dir="/data/toy", splits=(SPLIT,))
FILES, RANGES = (Window(start=0, stop=7, read=read) for read in ("files", "index ranges"))
AS_PREDICTED = Verification(
    dataset=TOY,
    spec="train",
    pipeline=settings_in_force(ReadSettings(cycle=2), ordered=False),
    num_examples=7,
    read="files",
    windows=(FILES,),
    first_difference=None,
    num_files=2,
    files=(),
    versions={"tensorflow": "2.21.0", "tensorflow_datasets": "4.9.10"},
)
PARTED = FirstDifference(
    position=3, expected=3, found=5, expected_tfds_id="b__0", found_tfds_id="b__2"
)
ENDED = replace(PARTED, found=None, found_tfds_id=None, reason="out of data", host="0/6")
SHORT = FileFinding(filename="b", expected=4, found=2)
GONE = FileFinding(filename="c", expected=1000, found=None, reason="no such file", num_files=3)
OVER_RANGES = replace(AS_PREDICTED, read="index ranges", windows=(RANGES,), num_files=0)
OF_GRAIN = replace(OVER_RANGES, versions={"grain": "0.2.18", "tensorflow_datasets": "4.9.10"})

SOUND = FilesVerification(
    dataset=TOY,
    splits=(
        SplitFiles(
            name="train",
            num_examples=1403,
            num_records=1403,
            num_files=2,
            num_files_read=2,
            num_bytes=2048,
            num_bytes_read=2048,
            checked={"checksums": 2},
        ),
    ),
    findings=(),
    checked={"checksums": 2},
    notes=(),
)
DAMAGED = FileFinding(
    filename="toy-0", expected=3, found=3, reason="record 1: ..", kind="data", split="train",
    record=1, byte=21,
)  # fmt: skip
EXTRA = FileFinding(filename="toy-9", expected=None, found=None, reason="too many", kind="extra")
COUNTED = replace(SOUND, dataset=replace(TOY, origin=COUNTED_FILES))

CASES: dict[str, Verification | FilesVerification] = values(
    Path(__file__).with_name("cases.txt"), globals()
)


@pytest.mark.parametrize("name", CASES)
def test_answers_are_written_in_every_format(name: str) -> None:
    """With colour, as a document and as CSV; the table without colour is the same text."""
    case: Any = CASES[name]
    verb = "verify_files" if isinstance(case, FilesVerification) else "verify"
    table, document, rows = (
        getattr(view, f"{verb}_{kind}") for kind in ("table", "document", "rows")
    )
    plain, shown = ("".join(table(case, screen)) for screen in (PLAIN, Screen(color=True)))
    marked = [f"! {line}" for line in shown.replace("\x1b", "^").splitlines() if "^[1;91m" in line]
    written = json.dumps(document(case), indent=1)
    parts = (plain, *marked, written, "".join(to_csv(rows(case))), repr(case))
    assert_golden(Path(__file__).parent / "golden" / f"{name}.txt", "\n".join(parts) + "\n")


@pytest.mark.parametrize(
    ("table", "answer"),
    [
        (view.verify_table, replace(AS_PREDICTED, num_files=100, files=(SHORT,) * 100)),
        (view.verify_files_table, replace(SOUND, findings=(DAMAGED,) * 100)),
    ],
)
def test_on_a_screen_many_files_are_elided_and_in_a_pipe_none(table: Any, answer: Any) -> None:
    def count(screen: Screen) -> int:
        return sum(
            line.startswith(("b ", "toy-0")) for line in "".join(table(answer, screen)).splitlines()
        )

    assert (count(Screen(width=80, abridged=True)), count(PLAIN)) == (20, 100)
