"""Digests by runs: those of the rule, id by id, however the order comes."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator

import numpy as np
import pytest

from shardctl.order.order_tree import SplitIds, digests_of
from tests.cases import FUZZ, add_cases, seed_of_test

CELL = 4096
FAR = 2**51


def splits_of(*sizes: int) -> SplitIds:
    ends = np.cumsum([0, *sizes])
    names = tuple(f"split{index}" for index in range(len(sizes)))[::-1]
    return SplitIds(names=names, starts=ends[:-1])


def digest_by_the_rule(examples: list[tuple[str, int]], splits: SplitIds) -> bytes:
    """Return the digest of a cell, from the split and the id at each of its positions."""
    name = examples[0][0]
    begins = [
        place
        for place, (split, number) in enumerate(examples)
        if not place or (split, number - 1) != examples[place - 1]
    ]
    ids = [examples[place][1] for place in begins]
    if {split for split, _ in examples} != {name} or max(ids) >= FAR:
        return by_ids(examples, splits)
    if 3 * len(begins) > len(examples):
        return by_ids(examples, splits)
    data = f"runs {len(examples)} {name}\n".encode() + ids[0].to_bytes(8, "little")
    for place, number in zip(begins[1:], ids[1:], strict=True):
        data += (number * CELL + place).to_bytes(8, "little")
    return hashlib.sha256(data).digest()[:16]


def by_ids(examples: list[tuple[str, int]], splits: SplitIds) -> bytes:
    first = dict(zip(splits.names, splits.starts.tolist(), strict=True))
    codes = np.array([first[split] + number for split, number in examples])
    (digest,) = digests_of([codes], splits, version=1)
    return digest


def drawn_codes(draw: random.Random, splits: SplitIds, size: int, length: int) -> list[int]:
    """Return codes of runs of many lengths, of which some count on over the end of a split."""
    codes: list[int] = []
    typical = draw.choice([1, 2, 3, 4, 16, 300, 5000, 20_000])
    while len(codes) < length:
        if draw.random() < 0.01:
            typical = draw.choice([1, 2, 3, 4, 16, 300, 5000])
        count = min(draw.choice([typical, 1 + int(typical * draw.random())]), size)
        edge = draw.choice([0, *splits.starts.tolist(), FAR, size])
        first = edge - draw.randrange(2 * count + 1) if draw.random() < 0.4 else None
        if first is None or not 0 <= first <= size - count:
            first = draw.randrange(size - count + 1)
        codes += range(first, first + count)
    return codes[:length]


def pieces_of(draw: random.Random, codes: list[int]) -> Iterator[np.ndarray]:
    cuts = sorted(draw.choices(range(len(codes) + 1), k=draw.randrange(8)))
    return iter(np.split(np.array(codes, np.int64), cuts))


def is_by_the_rule(seed: int) -> None:
    draw = random.Random(seed)
    sizes = draw.choice([[30_000], [2**53], [9, 0, 5000, 20_000, 1], [FAR + 9, 50_000]])
    splits = splits_of(*sizes)
    codes = drawn_codes(
        draw, splits, sum(sizes), draw.choice([1, 100, CELL, CELL + 1, 2 * CELL + 77])
    )
    split, ids = splits.split_ids(np.array(codes))
    examples = [(splits.names[s], i) for s, i in zip(split.tolist(), ids.tolist(), strict=True)]
    expected = [
        digest_by_the_rule(examples[start : start + CELL], splits)
        for start in range(0, len(examples), CELL)
    ]
    assert list(digests_of(pieces_of(draw, codes), splits)) == expected, seed
    add_cases()


@pytest.mark.long
def test_digests_are_those_of_the_rule_however_an_order_comes() -> None:
    for seed in range(60):
        is_by_the_rule(seed)


@pytest.mark.fuzz
def test_digests_are_those_of_the_rule_however_an_order_comes_fuzzed() -> None:
    for seed in range(seed_of_test(), seed_of_test() + FUZZ):
        is_by_the_rule(seed)


def test_a_change_in_one_place_changes_the_digest_of_its_cell_alone() -> None:
    for seed in range(40):
        draw = random.Random(seed)
        splits, size = splits_of(4, 30_000), 30_004
        codes = drawn_codes(draw, splits, size, 3 * CELL - 9)
        before = list(digests_of(pieces_of(draw, codes), splits))
        place, other = (draw.randrange(len(codes)) for _ in range(2))
        changed = list(codes)
        if draw.random() < 0.5:
            changed[place] = draw.choice([(codes[place] + 1) % size, codes[place], 0])
        else:
            changed[place], changed[other] = codes[other], codes[place]
        after = list(digests_of(pieces_of(draw, changed), splits))
        for cell in range(3):
            part = slice(cell * CELL, (cell + 1) * CELL)
            same = before[cell] == after[cell]
            assert same == (codes[part] == changed[part]), (seed, cell)
        add_cases()


def test_the_same_runs_of_another_split_or_of_fewer_positions_are_others() -> None:
    found = [
        digest
        for name in ("train", "test")
        for count in (100, 101)
        for digest in digests_of([np.arange(count)], SplitIds(names=(name,), starts=np.array([0])))
    ]
    assert len(set(found)) == 4
