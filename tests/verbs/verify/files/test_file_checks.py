"""What files really hold, checked before TensorFlow opens the first of them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from shardctl.errors import UsageError
from shardctl.metadata.tfds_metadata import read_tfds_folder
from shardctl.settings.read_settings import ReadSettings
from shardctl.tfds.verifying.verify import verify, verify_plan
from shardctl.verbs.resume.answer import resume
from shardctl.verbs.verify.verify_files import verify_files
from tests.order.toy_pipelines import (
    Toys,
)
from tests.record_files import header
from tests.tfds.verifying.checked_toys import (
    tampered,
)
from tests.tfds_datasets import build_dataset


def test_a_bad_file_beyond_what_is_compared_is_counted(toys: Toys, tmp_path: Path) -> None:
    folder = tampered(toys, tmp_path)
    (folder / "toy-train.tfrecord-00006-of-00007").write_bytes(b"")
    found = verify(read_tfds_folder(folder), "train", ReadSettings(cycle=1), take=3)
    assert [(f.expected, f.found) for f in found.files] == [(33, 0)]
    assert not found.equal


def test_a_format_without_tf_data_is_counted_beside_index_ranges(tmp_path: Path) -> None:
    folder = build_dataset(tmp_path, splits={"train": [3, 0, 5]}, file_format="array_record")
    found = verify(read_tfds_folder(folder))
    assert (found.equal, found.read, found.num_files) == (True, "index ranges", 2)
    assert "as_data_source alone" in found.notes[0]
    files = sorted(folder.glob("toy-train*"))
    shutil.copy(files[2], files[0])
    found = verify(read_tfds_folder(folder))
    assert [(f.expected, f.found) for f in found.files] == [(3, 5)]
    assert (found.first_difference, found.equal) == (None, False)


def test_every_file_that_is_read_is_counted_whole_and_once(tmp_path: Path) -> None:
    folder = build_dataset(tmp_path, splits={"train": [3, 0, 5], "test": [2]})
    told: list[tuple[str, int, int]] = []
    # The third file is read by both parts of the sum; the second is empty, and nobody opens it.
    found = verify(
        read_tfds_folder(folder),
        "train[2:5]+train[7:]",
        watch=lambda what, done, total: told.append((what, done, total)),
    )
    assert (found.num_files, found.files) == (2, ())
    assert [said for said in told if said[0] == "files"] == [("files", 1, 2), ("files", 2, 2)]


def test_a_problem_is_found_even_where_the_number_is_right(tmp_path: Path) -> None:
    folder = build_dataset(tmp_path, splits={"train": [3, 5]})
    file = folder / "toy-train.tfrecord-00001-of-00002"
    file.write_bytes(file.read_bytes() + b"rest")
    found = verify(read_tfds_folder(folder))
    (counted,) = found.files
    assert (counted.filename, counted.expected, counted.found) == (file.name, 5, 5)
    assert counted.reason


def to_fifo(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


@pytest.mark.parametrize(
    ("damage", "kind"),
    [
        (to_fifo, "not-a-file"),
        (lambda file: file.write_bytes(header(2**40) + b"abc"), "too-long"),
        (lambda file: file.write_bytes(header(2**63) + b"abc"), "too-long"),
    ],
)
def test_files_that_end_tensorflow_are_not_opened(
    tmp_path: Path, damage: Callable[[Path], None], kind: str
) -> None:
    folder = build_dataset(tmp_path, splits={"train": [3, 5], "test": [2]})
    damage(folder / "toy-train.tfrecord-00001-of-00002")
    found = verify(read_tfds_folder(folder), take=1)
    assert [(f.filename, f.kind) for f in found.files] == [
        ("toy-train.tfrecord-00001-of-00002", kind)
    ]
    assert (found.read, found.first_difference, found.equal) == ("index ranges", None, False)
    assert found.notes == (
        "TensorFlow does not open the files, since it would hang or die at "
        "'toy-train.tfrecord-00001-of-00002'",
    )
    # A spec that does not read the file is read from the files.
    assert verify(read_tfds_folder(folder), "train[:3]+test").read == "files"


def test_damaged_data_beyond_what_is_compared_is_named(toys: Toys, tmp_path: Path) -> None:
    folder = tampered(toys, tmp_path)
    for shard, byte in ((5, 20), (6, 14)):
        file = folder / f"toy-train.tfrecord-0000{shard}-of-00007"
        data = bytearray(file.read_bytes())
        if len(data) > byte:
            data[byte] ^= 8
            file.write_bytes(data)
    found = verify(read_tfds_folder(folder), "train", ReadSettings(cycle=1), take=3)
    assert {(f.kind, f.record, f.byte) for f in found.files} == {("data", 0, 0)}
    assert "toy-train.tfrecord-00006-of-00007" in {f.filename for f in found.files}
    assert (found.first_difference, found.equal) == (None, False)


def renamed(tmp_path: Path) -> Path:
    """Return a folder whose files of `train` are named as if there were four."""
    folder = build_dataset(tmp_path, splits={"train": [3, 0, 5], "test": [2]})
    for file in folder.glob("toy-train*"):
        file.rename(folder / file.name.replace("-of-00003", "-of-00004"))
    return folder


def test_a_folder_that_holds_none_of_the_files_is_a_finding(tmp_path: Path) -> None:
    """It was green: the order was read from index ranges, and that was that."""
    dataset = read_tfds_folder(renamed(tmp_path))
    reason = (
        "no file of split 'train' is here: 2 files are missing, of which this is the first; "
        "in their place: 'toy-train.tfrecord-00000-of-00004' and 2 more that look alike"
    )
    plan = resume(dataset, "train", ReadSettings(), consumed=1)
    for found in (verify(dataset, "train"), verify_plan(dataset, plan)):
        assert (found.equal, found.read, found.first_difference) == (False, "index ranges", None)
        (missing,) = found.files
        assert (missing.kind, missing.expected, missing.found) == ("missing", 8, None)
        assert (missing.filename, missing.reason) == ("toy-train.tfrecord-00000-of-00003", reason)
        assert (found.num_files, missing.num_files) == (2, 2)
    (missing,) = [file for file in verify_files(dataset).findings if file.kind == "missing"]
    assert missing.reason == reason
    # Only what the spec reads: one of the files, or none of them.
    (missing,) = verify(dataset, "train[:3]").files
    assert (missing.num_files, (missing.reason or "")[:22]) == (1, "missing; in their plac")
    assert verify(dataset, "test").equal
    # Some of the files are here.
    both = verify(dataset, "train+test")
    assert [(file.filename, file.num_files) for file in both.files] == [
        ("toy-train.tfrecord-00000-of-00003", 2)
    ]
    assert both.num_files == 3


def test_a_layout_without_files_says_nothing_of_files(tmp_path: Path) -> None:
    folder = renamed(tmp_path)
    dataset = read_tfds_folder(folder)
    (folder / "dataset_info.json").unlink()
    found = verify(dataset, "train")
    assert (found.equal, found.read, found.num_files) == (True, "index ranges", 0)
    assert "not on this machine" in found.notes[0]


@pytest.mark.parametrize("with_files", [True, False])
def test_nothing_to_verify_is_not_a_yes(tmp_path: Path, with_files: bool) -> None:
    splits = {"train": [3, 5], "none": [0]}
    folder = build_dataset(tmp_path, splits=splits, with_files=with_files)
    dataset = read_tfds_folder(folder)
    plan = resume(dataset, "train[:0]", ReadSettings(), consumed=0)
    for spec, settings in (
        ("train[:0]", None),
        ("train", ReadSettings(batch=9, drop_remainder=True)),
    ):
        with pytest.raises(UsageError, match="nothing to verify: 'train"):
            verify(dataset, spec, settings)
    with pytest.raises(UsageError, match="nothing to verify: 'train"):
        verify_plan(dataset, plan)
    if not with_files:
        with pytest.raises(UsageError, match=r"verify: none of toy:1\.0\.0 has no exam"):
            verify_files(dataset, "none")


def test_a_plan_at_the_end_is_looked_at_and_says_that_nothing_is_left(tmp_path: Path) -> None:
    dataset = read_tfds_folder(build_dataset(tmp_path, splits={"train": [3, 5]}))
    found = verify_plan(dataset, resume(dataset, "train", ReadSettings(), consumed=8))
    assert found.equal
    assert found.notes[0].startswith("nothing is left to read")
