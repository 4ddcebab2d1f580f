from __future__ import annotations

import itertools
import random
import re
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from shardctl.errors import DatasetError
from shardctl.metadata.index.listing import Listing
from shardctl.metadata.index.splits_by_name import Arrangement, arrange
from shardctl.stores.store import StoredFile
from tests.cases import FUZZ, add_cases, fuzzed, random_of_a_fuzz_run
from tests.golden import assert_answers

# Listings of files that are only names, for tests of what names say.


ROOT = "/data/digits"


def files_named(names: Iterable[str], folder: str = ROOT) -> list[StoredFile]:
    """Return files of one byte with these names below a folder."""
    return [StoredFile(path=f"{folder}/{name}", num_bytes=1) for name in names]


def listing_of(names: Iterable[str], folder: str = ROOT) -> Listing:
    """Return a listing of files with these names below a folder."""
    return Listing(root=folder, files=files_named(names, folder))


def tfds_names(
    dataset: str, split: str, num_shards: int, file_format: str = "tfrecord"
) -> list[str]:
    """Return names as TFDS's default template has them."""
    return [
        f"{dataset}-{split}.{file_format}-{index:05d}-of-{num_shards:05d}"
        for index in range(num_shards)
    ]


Namer = Callable[[str, int, int, random.Random], str]


def below(arranged: Arrangement) -> dict[str, list[str]]:
    root = f"{arranged.root}/"
    return {
        split.name: [file.path.removeprefix(root) for file in split.files]
        for split in arranged.splits
    }


@dataclass(frozen=True)
class Convention:
    name: Namer
    file_format: str | None
    says_total: bool = False
    digits: int = 5


def _hex(rng: random.Random, size: int) -> str:
    return "".join(rng.choice("0123456789abcdef") for _ in range(size))


_JOB = str(uuid.UUID(int=0x3F2504E04F8911D39A0C0305E82C3301))
_CONVENTIONS = [
    Convention(lambda s, i, n, _: f"ds-{s}.tfrecord-{i:05d}-of-{n:05d}", "tfrecord", True),
    Convention(lambda s, i, n, _: f"ds-{s}.array_record-{i:05d}-of-{n:05d}", "array_record", True),
    Convention(lambda s, i, n, _: f"{s}-{i:05d}-of-{n:05d}.parquet", "parquet", True),
    Convention(lambda s, i, n, _: f"my_{s}_{i:05d}-of-{n:05d}.tfrecord.gz", "tfrecord", True),
    Convention(lambda s, i, n, _: f"{s}-{i}-of-{n}.tfrecord", "tfrecord", True, 1),
    Convention(lambda s, i, n, _: f"{s}-{i:05d}-of-{n:05d}", None, True),
    Convention(lambda s, i, n, r: f"{s}-{i:05d}-of-{n:05d}-{_hex(r, 16)}.parquet", "parquet", True),
    Convention(lambda s, i, n, _: f"{s}/data-{i:05d}-of-{n:05d}.arrow", "arrow", True),
    Convention(lambda s, i, _, r: f"{s}-{i}.tar", "webdataset", digits=1),
    Convention(lambda s, i, _, r: f"cc3m-{s}-{i:06d}.tar", "webdataset", digits=6),
    Convention(lambda s, i, _, r: f"{s}/shard.{i:05d}.mds", "mds"),
    Convention(lambda s, i, _, r: f"{s}/part-{i:05d}-{_JOB}.c000.snappy.parquet", "parquet"),
    Convention(lambda s, i, _, r: f"r50-256x256-2019/{s}_{i:03d}.tfrecord", "tfrecord", digits=3),
    Convention(lambda s, i, _, r: f"v2-{s}-512-{i}.record", "tfrecord", digits=1),
    Convention(lambda s, i, _, r: f"split={s}/{i:04d}_0.parquet", "parquet", digits=4),
]  # fmt: skip


def _missing_by_hand(kept: list[int], total: int | None) -> list[int]:
    if total is not None:
        first = 1 if 0 not in kept and total in kept else 0
        return sorted({*range(first, first + total)} - {*kept})
    span = range(min(kept), max(kept) + 1)
    missing = [index for index in span if index not in kept]
    steps = {b - a for a, b in itertools.pairwise(kept)}
    if 2 * len(kept) < len(span) or (len(kept) >= 4 and len(steps) == 1):
        return []
    return missing


def _gap(text: str, split: str) -> tuple[int, list[int]]:
    assert text.startswith(f"{split}: ")
    one = re.match(r"shard (\d+) (of [\d,]+ )?is missing", text.removeprefix(f"{split}: "))
    if one is not None:
        return 1, [int(one[1])]
    many = re.search(r"([\d,]+) (?:of [\d,]+ )?shards are missing: ([\d, ]+)", text)
    assert many is not None
    named = list(map(int, many[2].strip(" ,").split(", ")))
    return int(many[1].replace(",", "")), named


def _check_one(rng: random.Random) -> None:
    convention = rng.choice(_CONVENTIONS)
    splits = rng.sample(["train", "validation", "test", "dev"], rng.randint(1, 3))
    names: list[str] = []
    order: dict[str, list[str]] = {}
    missing: dict[str, list[int]] = {}
    copies: dict[str, int] = {}
    for split in splits:
        total = rng.choice([1, 2, 3, 5, 11, 12, 101])
        first = rng.choice([0, 0, 1])
        # One file alone, without a number of shards, says nothing of what it is a part of.
        total += total == 1 and not convention.says_total
        made = {at: convention.name(split, at + first, total, rng) for at in range(total)}
        for at in rng.sample(range(total), rng.choice([0, 0, 1, min(3, total - 1)])):
            if len(made) > 2:
                del made[at]
        kept = [at + first for at in made]
        missing[split] = _missing_by_hand(kept, total if convention.says_total else None)
        order[split] = list(made.values())
        copies[split] = 0
        if not rng.randrange(4) and not order[split][0].endswith(".gz"):
            at = rng.randrange(len(order[split]))
            order[split].insert(at + 1, f"{order[split][at]}.gz")
            copies[split] = 1
        names += order[split]
    rng.shuffle(names)
    arranged = arrange(listing_of(names))
    found = below(arranged)
    assert found == order, (found, order)
    assert arranged.file_format == convention.file_format
    kinds = [(problem.kind, problem.split) for problem in arranged.problems]
    gaps = {problem.split: problem for problem in arranged.problems if problem.kind == "gap"}
    for split in splits:
        assert kinds.count(("duplicate", split)) == copies[split]
        if not missing[split]:
            assert split not in gaps
            continue
        count, named = _gap(gaps[split].text, split)
        assert count == len(missing[split])
        assert named == missing[split][: len(named)]
    assert {kind for kind, _ in kinds} <= {"gap", "duplicate"}
    add_cases()


@fuzzed(400, FUZZ * 5)
def test_names_by_many_conventions(num_cases: int) -> None:
    rng = random_of_a_fuzz_run()
    for _ in range(num_cases):
        _check_one(rng)


def test_plain_numbers_count_and_text_does_not() -> None:
    arranged = arrange(listing_of(f"shard-{at}.tar" for at in range(12)))
    assert below(arranged) == {"train": [f"shard-{at}.tar" for at in range(12)]}
    assert arranged.notes == ()


@pytest.mark.parametrize(
    "names",
    [
        [f"train-256x256-2019-{at}.tfrecord" for at in range(11)],
        [f"train-{at}-2019-256x256.tfrecord" for at in range(11)],
        [f"train2019_{at}_of.tfrecord" for at in range(11)],
        [f"train-{at}-{1000 + at * 7 % 13}examples.tfrecord" for at in range(11)],
    ],
)
def test_the_number_that_varies_counts(names: list[str]) -> None:
    rng = random.Random(2)
    shuffled = rng.sample(names, len(names))
    arranged = arrange(listing_of(shuffled))
    assert list(below(arranged).values()) == [names]
    assert not arranged.problems
    assert not any("several numbers" in note for note in arranged.notes)


def test_names_without_numbers_are_in_the_order_of_their_bytes() -> None:
    names = ["alice.tfrecord", "Bob.tfrecord", "zoë.tfrecord", "zz.tfrecord"]
    assert below(arrange(listing_of(names))) == {"train": sorted(names, key=str.encode)}


def test_several_numbers_that_vary_are_left_in_the_order_of_names() -> None:
    names = [f"run-{a}-{b}.tar" for a, b in [(3, 700), (20, 5), (4, 61), (5, 8)]]
    arranged = arrange(listing_of(names))
    assert below(arranged) == {"train": sorted(names)}
    assert "several numbers vary in the names" in arranged.notes[0]


WORDS = ["".join(word) for word in itertools.product("mnop", repeat=7)]  # 16,384
T = "a-train.tfrecord-0000{}-of-0000{}".format


def _said(question: str) -> str:
    names = eval(question, {"T": T, "WORDS": WORDS, "tfds_names": tfds_names})
    try:
        found = arrange(listing_of(names)).problems
    except DatasetError as error:
        if "formats" not in str(error) and "10,000" not in str(error):
            by_hand = arrange(listing_of(names), splits={"all": "*"})
            assert sorted(below(by_hand)["all"]) == sorted(names)
        raise
    return "\n".join(f"{one.kind}: {one.text}" for one in found)


@pytest.mark.long
def test_what_is_not_certain_is_refused_and_problems_are_named() -> None:
    assert_answers(Path(__file__).parent / "golden" / "arranged.txt", _said)


def test_numbers_that_count_something_else_have_no_gaps() -> None:
    apart = arrange(listing_of(f"t-{at}.tar" for at in range(0, 5000, 1000)))
    assert not apart.problems
    assert "do not follow each other" in apart.notes[0]
    sparse = arrange(listing_of(f"t-{at}.tar" for at in (1690000007, 1690000123, 1690009999)))
    assert not sparse.problems
    assert "do not follow each other" in sparse.notes[0]
    later = arrange(listing_of(f"t-{at}.tar" for at in (5, 6, 7)))
    assert not later.problems
    assert later.notes == ("train: the first number is 5",)


def test_each_write_of_spark_counts_from_0() -> None:
    words = ["3f2504e0-4f89-11d3-9a0c-0305e82c3301", "9f2504e0-4f89-11d3-9a0c-0305e82c3301"]
    names = [f"part-{at:05d}-{word}.c000.parquet" for word in words for at in range(3)]
    arranged = arrange(listing_of(names))
    assert below(arranged) == {"train": sorted(names)}
    assert not arranged.problems
    assert "numbers repeat" in arranged.notes[0]


def test_splits_by_hand_choose_and_name() -> None:
    names = [f"img-{size}-{at}.tar" for size in (256, 512) for at in range(11)] + ["odd.tar"]
    arranged = arrange(listing_of(names), splits={"small": "img-256-*", "big": "digits/img-512-*"})
    assert below(arranged) == {"small": names[:11], "big": names[11:22]}
    assert arranged.notes[0] == f"1 file in no split, left out: '{ROOT}/odd.tar'"
    both = arrange(listing_of(reversed(names)), splits={"all": "img*"})
    assert below(both) == {"all": names[:22]}
    assert any("2 kinds of files, one after the other" in note for note in both.notes)
    with pytest.raises(DatasetError, match=r"odd.tar' is in two splits, 'a' and 'b'"):
        arrange(listing_of(names), splits={"a": "*.tar", "b": "odd*"})


def test_the_folder_itself_may_be_a_split() -> None:
    assert list(below(arrange(listing_of(["0.tar", "1.tar"], "/d/val")))) == ["val"]
    assert list(below(arrange(listing_of(["0.tar", "1.tar"], "/d/cats")))) == ["train"]
