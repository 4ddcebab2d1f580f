"""What files really hold, beside what the metadata says."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from shardctl.core.settings.read_settings import ReadSettings
from shardctl.readers.tfds_metadata import read_tfds_folder
from shardctl.tfds.verifying.verify import verify
from tests.core.order.toy_pipelines import (
    Toys,
)
from tests.tfds.verifying.checked_toys import (
    tampered,
)
from tests.tfds_datasets import build_dataset


@pytest.mark.usefixtures("small")
def test_a_bad_file_beyond_the_windows_is_counted(toys: Toys, tmp_path: Path) -> None:
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
