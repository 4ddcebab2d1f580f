"""What the files hold and what is wrong with them, as text, document and CSV."""

from __future__ import annotations

from dataclasses import replace

from shardctl.dataset.dataset import COUNTED_FILES, Dataset, FileFinding, Split
from shardctl.draw.tables import PLAIN, Screen
from shardctl.files.documents import to_csv
from shardctl.verbs.verify.verify_files import FilesVerification, SplitFiles
from shardctl.verbs.verify.view import (
    verify_files_document,
    verify_files_rows,
    verify_files_table,
)

SOUND = FilesVerification(
    dataset=Dataset(
        name="toy", data_dir="/data/toy", splits=(Split(name="train", shard_lengths=(3, 1400)),)
    ),
    splits=(
        SplitFiles(
            name="train",
            num_examples=1403,
            num_records=1403,
            num_files=2,
            num_files_read=2,
            num_bytes=2048,
            num_bytes_read=2048,
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


def test_sound_files() -> None:
    assert "".join(verify_files_table(SOUND, PLAIN)).splitlines() == [
        "toy: tfrecord, /data/toy",
        "split  examples  records  files  read whole    bytes  bytes read",
        "train     1,403    1,403      2           2  2.0 KiB     2.0 KiB",
        "2 files checked by the checksums of all their records",
        "every file holds what the metadata says",
    ]


def test_no_metadata_tells_of_files_that_were_counted() -> None:
    counted = replace(SOUND, dataset=replace(SOUND.dataset, origin=COUNTED_FILES))
    text = "".join(verify_files_table(counted, PLAIN))
    assert text.endswith("every file holds what was counted\n")
    text = "".join(verify_files_table(replace(counted, findings=(DAMAGED,)), PLAIN))
    assert "counted  file holds" in text
    assert "metadata" not in text


def test_what_is_wrong_and_what_was_not_checked() -> None:
    found = replace(SOUND, findings=(DAMAGED, EXTRA), checked={"decoded": 1}, notes=("not all",))
    assert "".join(verify_files_table(found, PLAIN)).splitlines()[3:] == [
        "1 file checked by decoding all their rows",
        "2 problems:",
        "file   metadata  file holds  problem",
        "toy-0         3           3  record 1: ..",
        "toy-9         -           -  too many",
        "note: not all",
    ]


def test_a_terminal_shows_the_first_of_many() -> None:
    found = replace(SOUND, findings=(DAMAGED,) * 99)
    assert "".join(verify_files_table(found, PLAIN)).count("toy-0") == 99
    on_screen = "".join(verify_files_table(found, Screen(width=100, abridged=True)))
    assert 10 <= on_screen.count("toy-0") <= 20
    assert "99 problems:" in on_screen


def test_the_document() -> None:
    document = verify_files_document(replace(SOUND, findings=(DAMAGED,), notes=("not all",)))
    assert list(document)[:3] == ["format_version", "kind", "dataset"]
    assert (document["kind"], document["equal"], document["num_files"]) == ("verify", False, 2)
    assert document["splits"] == [
        {
            "name": "train",
            "num_examples": 1403,
            "num_records": 1403,
            "num_files": 2,
            "num_files_read": 2,
            "num_bytes": 2048,
            "num_bytes_read": 2048,
        }
    ]
    assert document["checked"] == {"checksums": 2}
    assert document["files"] == [
        {
            "filename": "toy-0",
            "expected": 3,
            "found": 3,
            "reason": "record 1: ..",
            "kind": "data",
            "split": "train",
            "record": 1,
            "byte": 21,
            "num_files": 1,
        }
    ]
    assert document["notes"] == ["not all"]


def test_a_row_for_each_problem() -> None:
    rows = verify_files_rows(replace(SOUND, findings=(DAMAGED, EXTRA)))
    assert "".join(to_csv(rows)).splitlines() == [
        "split,filename,kind,expected,found,record,byte,reason",
        "train,toy-0,data,3,3,1,21,record 1: ..",
        ",toy-9,extra,,,,,too many",
    ]


def test_damaged_files_are_marked_where_colour_is_shown() -> None:
    found = replace(SOUND, findings=(DAMAGED,))
    shown = "".join(verify_files_table(found, Screen(color=True))).splitlines()
    assert "\x1b[1;91m1 problem:\x1b[0m" in shown
    assert shown[-1].startswith("\x1b[1;91mtoy-0\x1b[0m ")
    assert "\x1b[1;9" not in "".join(verify_files_table(SOUND, Screen(color=True)))
