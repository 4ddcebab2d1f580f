"""Files that were counted as splits: names by a template where it says them, else one by one."""

from __future__ import annotations

from array import array

from shardctl.files.stores.store import StoredFile
from shardctl.readers.index.answer import ArrangedSplit, Arrangement
from shardctl.readers.index.arranged_files import ArrangedFiles
from shardctl.readers.index.counting.counting import Counts
from shardctl.readers.records.contents import Damage, FileContents

TEMPLATE = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"
NAMES = ("d-train.tfrecord-00000-of-00002", "d-train.tfrecord-00001-of-00002")


def arranged(*names: str, template: str | None = TEMPLATE) -> ArrangedFiles:
    files = [StoredFile(path=f"gs://b/d/{name}", num_bytes=9, version="etag:x") for name in names]
    split = ArrangedSplit(name="train", files=files, template=template)
    return ArrangedFiles(Arrangement(root="gs://b/d", splits=(split,), name="d"), "tfrecord")


def counts(*lengths: int, unsettled: tuple[int, ...] = ()) -> Counts:
    return Counts(
        num_records=array("q", lengths),
        compressions=bytearray(len(lengths)),
        unsettled=set(unsettled),
    )


def test_a_template_that_says_the_names_is_kept() -> None:
    (split,) = arranged(*NAMES).index(counts(2, 3), keep_going=False, seconds=0).splits
    (files,) = split.split.files
    assert (files.names, files.data_dir) == (None, "gs://b/d")
    assert tuple(files) == NAMES
    assert (split.split.num_bytes, split.split.shard_bytes) == (18, (9, 9))


def test_names_that_no_template_says_are_kept_themselves() -> None:
    others = (
        arranged(NAMES[1], NAMES[0]),
        arranged("x", "y"),
        arranged(*NAMES, template=None),
        arranged("sub/" + NAMES[0], NAMES[1]),
    )
    for files in others:
        (split,) = files.index(counts(2, 3), keep_going=False, seconds=0).splits
        assert split.split.files[0].names == tuple(
            file.path.removeprefix("gs://b/d/") for file in files.all
        )


def test_broken_files_are_left_out_with_their_names_and_versions() -> None:
    found = counts(2, -1, 4, unsettled=(2,))
    found.broken[1] = FileContents(num_records=None, damage=Damage(kind="cut", text="cut"))
    answer = arranged("x", "y", "z").index(found, keep_going=True, seconds=0)
    (split,) = answer.splits
    assert (split.split.shard_lengths, split.split.filenames) == ((2, 4), ("x", "z"))
    assert list(split.versions) == ["etag:x", ""]
    assert split.num_broken == 1
    assert [(one.path, one.finding.split) for one in answer.broken] == [("y", "train")]


def test_without_counts_there_are_names_alone() -> None:
    answer = arranged(*NAMES).index(None, keep_going=False, seconds=0)
    assert (answer.splits, answer.num_files, answer.num_counted) == ((), 2, 0)
