"""What TFDS reads now as a table, and the names that it lacks as a script for a shell."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from shardctl.draw.tables import Screen
from shardctl.metadata.index.tfds_metadata import Rename, TfdsMetadata, TfdsSplit
from shardctl.verbs.index.view import (
    tfds_metadata_document,
    tfds_metadata_rows,
    tfds_metadata_table,
)


def metadata(folder: str, *renames: tuple[str, str], template: str | None = None) -> TfdsMetadata:
    split = TfdsSplit(name="train", num_examples=3, num_shards=2, template=template)
    return TfdsMetadata(
        name="toy",
        version="1.0.0",
        folder=folder,
        file_format="tfrecord",
        splits=(split,),
        written=() if renames else ("features.json", "dataset_info.json"),
        renames=tuple(Rename(split="train", old=old, new=new) for old, new in renames),
    )


def script(found: TfdsMetadata, screen: Screen | None = None) -> str:
    return "".join(tfds_metadata_table(found, screen or Screen()))


def test_what_was_written_is_a_table() -> None:
    text = script(metadata("/d", template="x-{SHARD_INDEX}"))
    assert "toy:1.0.0: tfrecord, /d" in text
    assert "x-{SHARD_INDEX}" in text
    assert "wrote features.json, dataset_info.json" in text
    assert "tfds.builder_from_directory('/d')" in text


@pytest.mark.parametrize(
    "renames",
    [
        [("a", "b"), ("c d", "e'f")],
        [("1", "0"), ("2", "1"), ("3", "2")],
        [("0", "1"), ("1", "2"), ("2", "3")],
        [("a", "b"), ("b", "a")],
        [("-n", "x"), ("$(touch bad)", "y"), ("new\nline", "z")],
    ],
)
def test_a_shell_renames_without_overwriting(
    renames: Sequence[tuple[str, str]], tmp_path: Path
) -> None:
    for old, _ in renames:
        (tmp_path / old).write_text(old)
    text = script(metadata(str(tmp_path), *renames))
    subprocess.run(["sh"], input=text, text=True, check=True)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        new: old for old, new in renames
    }


def test_a_file_in_the_way_is_not_overwritten(tmp_path: Path) -> None:
    for name in ("old", "new"):
        (tmp_path / name).write_text(name)
    text = script(metadata(str(tmp_path), ("old", "new")))
    subprocess.run(["sh"], input=text, text=True, check=False)
    assert (tmp_path / "new").read_text() == "new"


def test_a_folder_that_is_gone_ends_the_script() -> None:
    text = script(metadata("/no/such/folder", ("a", "b")))
    done = subprocess.run(["sh"], input=text, text=True, check=False, stderr=subprocess.DEVNULL)
    assert done.returncode != 0


@pytest.mark.parametrize(
    ("folder", "line"),
    [
        ("gs://b/d", "gcloud storage mv --no-clobber gs://b/d/a gs://b/d/c"),
        ("s3://b/d/", "aws s3 mv s3://b/d/a s3://b/d/c"),
        ("hf://datasets/x", "# hf://datasets/x/a hf://datasets/x/c"),
    ],
)
def test_objects_are_renamed_by_the_program_of_their_store(folder: str, line: str) -> None:
    assert script(metadata(folder, ("a", "c"))).splitlines()[2:] == [line]


def test_a_terminal_shows_the_first_renames() -> None:
    found = metadata("/d", *((f"old-{i}", f"new-{i}") for i in range(25)))
    shown = script(found, Screen(width=80, abridged=True)).splitlines()
    assert sum(line.startswith("mv") for line in shown) == 20
    assert shown[-1].startswith("# and 5 more")


def test_documents_and_rows_have_splits_and_renames() -> None:
    found = metadata("/d", ("a", "b"))
    (renamed,) = tfds_metadata_document(found)["renames"]
    assert renamed == {"split": "train", "from": "a", "to": "b"}
    rows = list(tfds_metadata_rows(found).rows())
    assert rows == [("train", 3, 2, None, None, None), ("train", None, None, None, "a", "b")]
