"""File instructions as columns, in the order of files asked for."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import accumulate, groupby
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardctl.base.text import choices
from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import UsageError
from shardctl.spec.reads import Reads, joined, reads_of, shard_names, sorted_rows
from shardctl.spec.subsplit import FileInstruction, SplitRange, file_instructions
from tests.spec.host_cases import named_reads
from tests.strategies import datasets

Example = tuple[str, int]  # split, id
Case = tuple[Dataset, list[SplitRange]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    dataset = draw(datasets())
    ranges = []
    for split in draw(st.lists(st.sampled_from(dataset.splits), max_size=4)):
        start, stop = sorted(draw(st.tuples(*[st.integers(0, split.num_examples)] * 2)))
        ranges.append(SplitRange(split=split, start=start, stop=stop))
    return dataset, ranges


def examples(instructions: Iterable[FileInstruction]) -> list[Example]:
    return [(i.split, i.first_id + k) for i in instructions for k in range(i.take)]


@pytest.mark.long
@given(cases(), st.randoms(use_true_random=False))
def test_the_rows_are_the_file_instructions(case: Case, rng: random.Random) -> None:
    dataset, ranges = case
    reads, whole = reads_of(dataset, ranges), list(file_instructions(ranges))
    assert (list(reads), len(reads)) == (whole, len(whole))
    assert reads.num_examples == sum(piece.num_examples for piece in ranges)
    assert reads.take.min(initial=1) > 0
    of_parts = [len(file_instructions([piece])) for piece in ranges]
    assert reads.part.tolist() == [part for part, n in enumerate(of_parts) for _ in range(n)]
    rows = rng.sample(range(len(whole)), len(whole))
    assert list(reads.select(np.array(rows, np.int64))) == [whole[row] for row in rows]
    assert list(reads.select(slice(None, None, -1))) == whole[::-1]
    if ranges:
        assert list(joined([reads_of(dataset, [piece]) for piece in ranges])) == whole
    # Trimmed rows read a piece of what they read.
    skip = reads.take // 3
    trimmed = reads.trimmed(skip, reads.take - 2 * skip)
    for before, after, by in zip(reads, trimmed, skip.tolist(), strict=True):
        assert examples([after]) == examples([before])[by : before.take - by]
        assert after.skip - before.skip == by


@pytest.mark.long
@given(cases(), st.data())
def test_stretches_and_runs_read_what_the_list_says(case: Case, data: st.DataObject) -> None:
    whole = reads_of(*case)
    pieces = [whole.select(slice(0, 0))]
    for _ in range(data.draw(st.integers(0, 4))):
        start, stop = data.draw(st.tuples(*[st.integers(0, whole.num_examples)] * 2))
        part = whole.between(start, stop)
        assert examples(part) == examples(whole)[start:stop]
        assert part.take.min(initial=1) > 0
        pieces.append(part)
    reads = joined(pieces)
    runs = reads.runs()
    assert Counter(examples(runs)) == Counter(examples(reads))
    order = list(zip(runs.split.tolist(), runs.shard.tolist(), runs.skip.tolist(), strict=True))
    assert order == sorted(order)
    if len(set(examples(reads))) == reads.num_examples:  # none is read twice: runs are as long
        read = set(examples(reads))  # as they can be, one a stretch of ids in one file
        num_stretches = sum(
            is_read
            for split in whole.dataset.splits
            for shard, length in enumerate(split.shard_lengths)
            for is_read, _ in groupby(
                (split.name, split.offsets[shard] + k) in read for k in range(length)
            )
        )
        assert len(runs) == num_stretches
    take = whole.take * (np.arange(len(whole)) % 2)  # rows that read nothing are left out
    some = whole.trimmed(np.zeros_like(take), take)
    assert some.runs().take.min(initial=1) > 0
    assert Counter(examples(some.runs())) == Counter(examples(some))


TRAIN = Split(
    name="train",
    shard_lengths=(3, 2, 4),
    files=(ShardFiles(pattern="sub/d-train-\0", num_shards=3),),
)
TOY = Dataset(name="d", splits=(Split(name="test", shard_lengths=(1,)), TRAIN))
READS = reads_of(TOY, [SplitRange(split=TRAIN, start=1, stop=9)])
ROWS = ("d-train-00000", 1, 2), ("d-train-00001", 0, 2), ("d-train-00002", 0, 4)
NAMED = named_reads(*ROWS, lengths=(3, 2, 4))


@pytest.mark.parametrize("reads", [READS, NAMED], ids=["of a dataset", "by name"])
def test_file_names_are_made_row_by_row(reads: Reads) -> None:
    assert reads.filenames() == ["d-train-00000", "d-train-00001", "d-train-00002"]
    assert reads.filenames(1, 2) == ["d-train-00001"]
    assert reads.filenames(2, 9) == ["d-train-00002"]
    assert [reads.filename(row) for row in range(3)] == reads.filenames()
    assert not reads.names_repeat
    assert repr(reads) == "<3 file instructions, 8 examples>"


@pytest.mark.parametrize("count", [1, 5, 999, 3000])
@pytest.mark.parametrize("step", [1, 7, -1])
def test_many_names_are_those_of_one_after_the_other(count: int, step: int) -> None:
    files = tuple(
        ShardFiles(data_dir=f"/{day}", pattern="d-\0", num_shards=3000) for day in ("mon", "tue")
    )
    split = Split(name="long", shard_lengths=(1,) * 6000, files=files)
    dataset = Dataset(name="d", splits=(TRAIN, split))
    shards = 10 + np.arange(count) * abs(step) % 5900
    shards = shards[::-1] if step < 0 else shards
    names = shard_names(dataset.splits, np.ones(count, np.int64), shards)
    assert names == [f"d-{shard % 3000:05d}" for shard in shards.tolist()]
    # Two files of one name are told apart by their place; a split that is not read has no say.
    both = reads_of(dataset, [SplitRange(split=split, start=0, stop=2)])
    assert both.names_repeat
    assert not reads_of(dataset, [SplitRange(split=TRAIN, start=0, stop=2)]).names_repeat


def test_values_of_few_rows_of_many_shards() -> None:
    split = Split(name="train", shard_lengths=tuple(range(100)))
    dataset, whole = Dataset(name="d", splits=(split,)), SplitRange(split=split, start=0, stop=4950)
    every = reads_of(dataset, [whole])
    few = every.select(np.array([40, 2]))
    # Row 40 is shard 41, since shard 0 is empty: 41 examples after 41 * 40 / 2.
    assert few.examples_in_shard.tolist() == [41, 3]
    assert few.first.tolist() == [820, 3]
    assert every.first.tolist() == [n * (n - 1) // 2 for n in range(1, 100)]


def test_runs_do_not_go_on_in_the_next_split() -> None:
    one, two = (Split(name=name, shard_lengths=(4,)) for name in ("one", "two"))
    ranges = [SplitRange(split=one, start=0, stop=2), SplitRange(split=two, start=2, stop=4)]
    assert len(reads_of(Dataset(name="d", splits=(one, two)), ranges).runs()) == 2


def test_rows_of_other_datasets_are_refused() -> None:
    with pytest.raises(ValueError, match="different files"):
        joined([named_reads(("a", 0, 1)), named_reads(("a", 0, 1))])
    with pytest.raises(KeyError):
        reads_of(TOY, [SplitRange(split=replace(TRAIN, name="other"), start=0, stop=1)])


# Files known by the names that a plan file gives them, beside those of the dataset.


@pytest.mark.parametrize(
    "other",
    [
        READS.select(slice(0, 2)),
        READS.select(np.array([0, 2, 1])),
        replace(READS, skip=np.array([0, 0, 0])),
        replace(READS, take=np.array([2, 2, 3])),
        named_reads(*ROWS, lengths=(3, 2, 5)),
        named_reads(*ROWS[:2], ("d-train-00003", 0, 4), lengths=(3, 2, 4)),
        reads_of(TOY, [SplitRange(split=TOY.splits[0], start=0, stop=1)]),
        3,
    ],
)
def test_reads_that_differ_in_anything_are_others(other: object) -> None:
    assert other != NAMED
    assert other != READS
    assert NAMED == READS == NAMED
    assert named_reads(*ROWS, lengths=(3, 2, 4), shards=(0, 1, 2)) == READS
    assert named_reads(*ROWS, lengths=(3, 2, 4), shards=(0, 2, 1)) != READS


def test_files_known_by_name_have_no_place_in_a_dataset() -> None:
    for ask in (lambda: NAMED.dataset, lambda: NAMED.first, lambda: list(NAMED)):
        with pytest.raises(ValueError, match="known by name alone"):
            ask()
    assert NAMED.shard_index is None
    assert NAMED.select(np.array([2, 0])).filenames() == ["d-train-00002", "d-train-00000"]
    assert NAMED.select(np.array([2, 0])).examples_in_shard.tolist() == [4, 3]


# Sort functions: which file instructions come first.


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


FOUR, TEST = split("train", 2, 0, 3, 4), split("test", 1, 1)


def test_files_come_back_to_front_or_in_the_order_of_a_list() -> None:
    both = split("train", 2, 3, 4, 5, folders=FOLDERS)
    names = tuple(f"{day}/d/1.0.0/d-train-0000{i}" for i in (0, 1) for day in ("tue", "mon"))
    sums = ((FOUR, 0, 9), (TEST, 0, 2))
    every = "d-test-00001 d-train-00003 d-train-00001 d-test-00000 d-train-00000 d-train-00002"
    one = ((TEST, 1, 2), (FOUR, 0, 1), (FOUR, 1, 2))
    orders: list[tuple[tuple[tuple[Split, int, int], ...], dict[str, Any], list[int]]] = [
        (((FOUR, 0, 9),), {}, [0, 2, 5]),
        (sums, {"reverse": True}, [1, 0, 5, 2, 0]),
        (sums, {"file_order": tuple(every.split())}, [1, 5, 0, 0, 2]),
        (((TEST, 0, 2),), {"file_order": ("x/d-test-00001", "/y/d-test-00000")}, [1, 0]),
        # Instructions of one file keep their order.
        (one, {"file_order": ("d-train-00000", "d-test-00001")}, [0, 1, 1]),
        # Files of one name in two folders are told apart by folder.
        (((both, 0, 14),), {"file_order": names}, [5, 0, 9, 2]),
        (((both, 0, 14),), {"file_order": tuple(f"/data/{n}" for n in names)}, [5, 0, 9, 2]),
        # What is not read may stand there too; read from one folder alone, the name is enough.
        (((both, 0, 2),), {"file_order": (*names, "d-train-00001")}, [0]),
        (((both, 0, 5),), {"file_order": ("d-train-00001", "d-train-00000")}, [2, 0]),
    ]
    for pieces, order, firsts in orders:
        assert sorted_rows(reads_from(*pieces), **order).first.tolist() == firsts


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
