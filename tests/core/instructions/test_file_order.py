"""Sort functions: which file instructions come first."""

from __future__ import annotations

import pytest

from shardctl.core.dataset.dataset import Dataset, Split
from shardctl.core.dataset.shard_files import ShardFiles
from shardctl.core.instructions.file_order import sorted_rows
from shardctl.core.instructions.reads import Reads, reads_of
from shardctl.core.instructions.split_range import SplitRange
from shardctl.errors import UsageError

FOLDERS = ("/data/mon/d/1.0.0", "/data/tue/d/1.0.0")


def split(name: str, *lengths: int, folders: tuple[str | None, ...] = (None,)) -> Split:
    each = len(lengths) // len(folders)
    files = tuple(
        ShardFiles(data_dir=folder, pattern=f"d-{name}-\0", num_shards=each) for folder in folders
    )
    return Split(name=name, shard_lengths=lengths, files=files)


def reads_from(*pieces: tuple[Split, int, int]) -> Reads:
    splits = {piece[0].name: piece[0] for piece in pieces}
    ranges = [SplitRange(split=split, start=start, stop=stop) for split, start, stop in pieces]
    return reads_of(Dataset(name="d", splits=tuple(splits.values())), ranges)


TRAIN, TEST = split("train", 2, 0, 3, 4), split("test", 1, 1)


def firsts(reads: Reads, **order: object) -> list[int]:
    ids: list[int] = sorted_rows(reads, **order).first.tolist()  # type: ignore[arg-type]
    return ids


def test_without_an_order_files_stay_as_they_are() -> None:
    assert firsts(reads_from((TRAIN, 0, 9))) == [0, 2, 5]


def test_reversed_files_come_back_to_front_parts_of_a_sum_too() -> None:
    assert firsts(reads_from((TRAIN, 0, 9), (TEST, 0, 2)), reverse=True) == [1, 0, 5, 2, 0]


def test_a_list_of_files_orders_those_that_are_read_across_splits() -> None:
    names = ("d-test-00001", "d-train-00003", "d-train-00001", "d-test-00000", "d-train-00000")
    reads = sorted_rows(
        reads_from((TRAIN, 0, 9), (TEST, 0, 2)), file_order=(*names, "d-train-00002")
    )
    order = [
        (reads.dataset.splits[s].name, i) for s, i in zip(reads.split, reads.shard, strict=True)
    ]
    assert order == [("test", 1), ("train", 3), ("test", 0), ("train", 0), ("train", 2)]


def test_a_list_may_name_files_by_path() -> None:
    assert firsts(reads_from((TEST, 0, 2)), file_order=("x/d-test-00001", "/y/d-test-00000")) == [
        1,
        0,
    ]


def test_instructions_of_one_file_keep_their_order() -> None:
    reads = reads_from((TEST, 1, 2), (TRAIN, 0, 1), (TRAIN, 1, 2))
    assert firsts(reads, file_order=("d-train-00000", "d-test-00001")) == [0, 1, 1]


def test_files_of_one_name_in_two_folders_are_told_apart_by_folder() -> None:
    both = split("train", 2, 3, 4, 5, folders=FOLDERS)
    reads = reads_from((both, 0, 14))
    names = [f"{day}/d/1.0.0/d-train-0000{i}" for i in (0, 1) for day in ("tue", "mon")]
    assert firsts(reads, file_order=tuple(names)) == [5, 0, 9, 2]
    assert firsts(reads, file_order=tuple(f"/data/{name}" for name in names)) == [5, 0, 9, 2]
    with pytest.raises(UsageError, match="'d-train-00000' stands for 2 files"):
        sorted_rows(reads, file_order=("d-train-00000",))
    # What is not read may stand there too, and be called as it likes.
    assert firsts(reads_from((both, 0, 2)), file_order=(*names, "d-train-00001")) == [0]
    # Read from one folder alone, the name is enough.
    assert firsts(reads_from((both, 0, 5)), file_order=("d-train-00001", "d-train-00000")) == [2, 0]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("d-train-00000", "a/d-train-00000"), "names 'd-train-00000' twice"),
        (("d-train-00000",), "leaves out d-train-00002, d-train-00003; every file"),
        (
            ("d-train-00000", "d-train-00002", "d-train-00003", "d-trian-00001"),
            "names 'd-trian-00001', which is not a file of d; it has, for one, d-train-00000",
        ),
        (("\x1b[2J",), r"'\\x1b\[2J'"),
    ],
)
def test_a_list_that_does_not_fit_is_refused(names: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        sorted_rows(reads_from((TRAIN, 0, 9)), file_order=names)
