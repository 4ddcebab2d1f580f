from __future__ import annotations

import random
import re
import string
import uuid
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from shardctl.core.dataset.shard_files import ShardFiles
from shardctl.errors import DatasetError
from shardctl.readers.index.arrangement import Arrangement
from shardctl.readers.index.names import arrange
from tests.cases import FUZZ, add_cases, random_of_a_fuzz_run
from tests.named_files import ROOT, listing_of, tfds_names

Namer = Callable[[str, int, int, random.Random], str]


def below(arranged: Arrangement) -> dict[str, list[str]]:
    """Return the names of the files of each split."""
    root = f"{arranged.root}/"
    return {
        split.name: [file.path.removeprefix(root) for file in split.files]
        for split in arranged.splits
    }


@dataclass(frozen=True)
class Convention:
    """How names are made: of split, index and number of shards; whether they say the number."""

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
    """Return the shards that have to be missed: of all that are said, or between others."""
    if total is not None:
        first = 1 if 0 not in kept and total in kept else 0
        return sorted({*range(first, first + total)} - {*kept})
    span = range(min(kept), max(kept) + 1)
    missing = [index for index in span if index not in kept]
    steps = {b - a for a, b in zip(kept, kept[1:], strict=False)}
    if 2 * len(kept) < len(span) or (len(kept) >= 4 and len(steps) == 1):
        return []
    return missing


def _gap(text: str, split: str) -> tuple[int, list[int]]:
    """Return how many shards a message misses, and those that it names."""
    assert text.startswith(f"{split}: ")
    one = re.match(r"shard (\d+) (of [\d,]+ )?is missing", text.removeprefix(f"{split}: "))
    if one is not None:
        return 1, [int(one[1])]
    many = re.search(
        r"([\d,]+) (?:of [\d,]+ )?shards are missing(?: between .*?)?: ([\d, -]+)", text
    )
    assert many is not None
    named = []
    for piece in many[2].strip(" ,").split(", "):
        first, _, last = piece.partition("-")
        named += range(int(first), int(last or first) + 1)
    return int(many[1].replace(",", "")), named


def _check_one(rng: random.Random) -> None:
    convention = rng.choice(_CONVENTIONS)
    splits = rng.sample(["train", "validation", "test", "dev", "extra"], rng.randint(1, 3))
    if splits == ["extra"]:
        splits = ["train"]
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
        assert count == len(missing[split]) and named == missing[split][: len(named)]
        assert convention.name(split, named[0], 10**9, random.Random(0))[:6] in gaps[split].text
    assert {kind for kind, _ in kinds} <= {"gap", "duplicate"}
    for split in arranged.splits:
        if split.template is not None:
            assert arranged.name is not None
            templated = ShardFiles.from_template(
                split.template,
                dataset=arranged.name,
                split=split.name,
                file_format=arranged.file_format or "",
                num_shards=len(split.files),
            )
            assert list(templated) == order[split.name]
        else:
            whole = not missing[split.name] and not copies[split.name]
            varied = "-of-" in order[split.name][0] and re.search(
                "[0-9a-f]{16}", order[split.name][0]
            )
            first = min(int(re.findall("[0-9]+", order[split.name][0])[0]), 1)
            numbered = convention.digits == 5 and not varied and whole
            assert not numbered or first == 1 or not convention.says_total
    add_cases()


def test_names_by_many_conventions() -> None:
    rng = random.Random(1)
    for _ in range(400):
        _check_one(rng)


@pytest.mark.fuzz
def test_names_by_many_conventions_fuzz() -> None:
    rng = random_of_a_fuzz_run()
    for _ in range(FUZZ * 5):
        _check_one(rng)
