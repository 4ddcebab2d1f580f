"""Sort functions: which file instructions come first."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import accumulate

import numpy as np
import pytest

from shardctl.base.text import choices
from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import UsageError
from shardctl.spec.reads import Reads, reads_of, sorted_rows
from shardctl.spec.subsplit import SplitRange

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


def as_one_name_at_a_time(reads: Reads, names: tuple[str, ...]) -> Reads:
    """`sorted_rows` the slow way: what each name stands for, one after the other."""
    splits = reads.dataset.splits
    files = [(split, shard) for split in splits for shard in range(len(split.filenames))]
    starts = [0, *accumulate(len(split.filenames) for split in splits)]
    rows = [starts[s] + i for s, i in zip(reads.split, reads.shard, strict=True)]
    rank: dict[int, int] = {}
    for index, name in enumerate(names):
        base = name.split("/")[-1]
        found = [place for place, (split, i) in enumerate(files) if split.filename(i) == base]
        if not found:
            known = sorted({split.filename(i) for split, i in files})
            raise UsageError(
                f"the file order names {name!r}, which is not a file of d; "
                f"it has, for one, {choices(known, 1)}"
            )
        if len(found) > 1:
            paths = {at: "/".join(map(str, files[at][0].location(files[at][1]))) for at in found}
            ends = f"/{name.strip('/')}"
            found = [at for at in found if paths[at].endswith(ends)] or found
        if len(found) > 1:
            found = [place for place in found if place in rows]
        if len(found) > 1:
            raise UsageError(
                f"the file order: {name!r} stands for {len(found)} files in several folders; "
                "write the end of the path, as in the tfds_id"
            )
        for place in found:
            if place in rank:
                raise UsageError(f"the file order names {base!r} twice; each file comes once")
            rank[place] = index
    missing = dict.fromkeys(place for place in rows if place not in rank)
    if missing:
        bases = (files[place][0].filename(files[place][1]) for place in missing)
        raise UsageError(
            f"the file order leaves out {choices(bases, 3)}; every file that is read needs a place"
        )
    return reads.select(
        np.array(sorted(range(len(rows)), key=lambda row: rank[rows[row]]), np.int64)
    )


def any_files(draw: random.Random, name: str) -> tuple[ShardFiles, ...]:
    parts = []
    for folder in draw.sample([None, *FOLDERS], draw.choice((1, 1, 2))):
        size = draw.randrange(1, 7)
        kind = draw.choice(("pattern", "pattern", "alike", "two", "folder", "names"))
        pattern = {
            "alike": "d-\0",  # another split may have it as well
            "two": f"d-{name}-\0-\0",
            "folder": f"\0/d-{name}-é",
        }.get(kind, f"d-{name}-\0")
        names = tuple(f"{draw.choice('ab')}{i}/d-0000{draw.randrange(4)}" for i in range(size))
        part = {"names": names} if kind == "names" else {"pattern": pattern}
        parts.append(ShardFiles(data_dir=folder, num_shards=size, **part))
    return tuple(parts)


def any_case(draw: random.Random) -> tuple[Reads, tuple[str, ...]]:
    splits, paths = [], []
    for name in ("train", "test")[: draw.choice((1, 2))]:
        files = any_files(draw, name)
        lengths = tuple(draw.choice((0, 1, 2, 3)) for part in files for _ in part)
        splits.append(Split(name=name, shard_lengths=lengths, files=files))
        paths += [f"{part.data_dir}/{path}" for part in files for path in part]
    draw.shuffle(paths)
    names = [path[draw.choice((0, 0, 1, path.rfind("/") + 1)) :] for path in paths]
    for _ in range(draw.choice((0, 0, 0, 1, 2))):
        at = draw.randrange(len(names))
        match draw.randrange(5):
            case 0:
                names.insert(at, draw.choice(names))
            case 1:
                names.insert(at, draw.choice(names).split("/")[-1])
            case 2:
                names.insert(at, draw.choice(("", "d-00009", "d-train-0000", "d-train-٠٠٠٠٠", "/")))
            case 3 if len(names) > 1:
                del names[at]
            case _:
                names = names[:1]
    ranges = []
    for _ in range(draw.choice((1, 2, 3))):
        split = draw.choice(splits)
        start, stop = sorted(draw.randrange(split.num_examples + 1) for _ in range(2))
        ranges.append(SplitRange(split=split, start=start, stop=stop))
    return reads_of(Dataset(name="d", splits=tuple(splits)), ranges), tuple(names)


def outcome(sort: Callable[[], Reads]) -> object:
    try:
        reads = sort()
    except UsageError as error:
        return str(error)
    return [column.tolist() for column in (reads.part, reads.split, reads.shard, reads.skip)]


@pytest.mark.long
def test_a_list_of_files_orders_as_one_name_at_a_time_does() -> None:
    num_sorted = 0
    errors = set()
    for seed in range(400):
        reads, names = any_case(random.Random(seed))
        found = outcome(lambda: sorted_rows(reads, file_order=names))  # noqa: B023
        meant = outcome(lambda: as_one_name_at_a_time(reads, names))  # noqa: B023
        assert found == meant, f"seed {seed}: {names}"
        num_sorted += not isinstance(meant, str)
        errors |= {word for word in ("not a", "twice", "stands", "leaves") if word in str(meant)}
    assert num_sorted > 100
    assert len(errors) == 4
