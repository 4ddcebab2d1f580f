"""Plans written as columns, beside the same ones written a row at a time.

How long a list must be for columns is a constant that these tests make small. The rows made one by
one come from `FileInstruction`s, which know nothing of columns.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.draw.tables import Screen
from shardctl.files.documents import to_csv, to_json, to_yaml
from shardctl.verbs.plan import view as plan_rendering
from shardctl.verbs.plan.answer import plan
from tests.cases import add_cases

_PATTERNS = ["toy-\0-of-00009", "a/toy-\0", "\0/one-name", "\0-\0", "x'\0,\"", "##[x]\0", "a::\0"]
_PATTERNS += ["=1+\0", "-\0", "\0", "データ-\0", "e\u0301\0", "\u202e\0", "\x1b[31m\0", "%d-\0 "]
_PATTERNS += ["1" + "0" * 19 + "\0", "n" * 60 + "\0"]
_NAMES = ["a", "yes", "1", "-", "b c", "é", "\n", "\udcff", "'=x", "a/b-00001", "##vso[x]", "::x::"]
_NAMES += ["データ"]
_SPLITS = ["train", "test", "no", "null", "1e3", "a-b"]


def _split(rng: random.Random, name: str) -> Split:
    files: list[ShardFiles] = []
    for _ in range(rng.choice([1, 1, 2, 3])):
        count = rng.choice([1, 2, 3, 12])
        names = tuple(rng.choice(_NAMES) + rng.choice(["", str(i)]) for i in range(count))
        of = {"names": names} if rng.random() < 0.3 else {"pattern": rng.choice(_PATTERNS)}
        files.append(ShardFiles(num_shards=count, **of))
    empty, known = rng.choice([0, 0, 0.3, 0.9]), rng.choice([None, 0.0, 0.2])
    sizes = [1, 9, 10, 1000, 10**12]
    lengths = tuple(
        0 if rng.random() < empty else rng.randint(1, rng.choice(sizes))
        for _ in range(sum(map(len, files)))
    )
    shard_bytes = tuple(
        None if rng.random() < (known or 0) else rng.randint(0, 10 ** rng.randint(0, 15))
        for _ in lengths
    )
    return Split(
        name=name,
        shard_lengths=lengths,
        files=tuple(files),
        num_bytes=rng.choice([None, 7, 10**12]),
        shard_bytes=None if known is None else shard_bytes,
    )


def _spec(splits: tuple[Split, ...], rng: random.Random) -> str:
    parts = []
    for split in rng.choices(splits, k=rng.randint(1, 3)):
        start, stop = sorted(rng.randint(0, split.num_examples) for _ in range(2))
        parts.append(rng.choice([split.name, f"{split.name}[{start}:{stop}]"]))
    return "+".join(parts)


def _written(answer: Any, screens: list[Screen]) -> list[str]:
    return [
        "".join(to_json(plan_rendering.plan_document(answer))),
        "".join(to_yaml(plan_rendering.plan_document(answer))),
        "".join(to_csv(plan_rendering.plan_rows(answer))),
        *("".join(plan_rendering.plan_table(answer, screen)) for screen in screens),
    ]


def _both_ways(seed: int, monkeypatch: pytest.MonkeyPatch) -> int:
    rng = random.Random(seed)
    splits = tuple(_split(rng, name) for name in rng.sample(_SPLITS, rng.randint(1, 3)))
    dataset = Dataset(name=rng.choice(["toy", "名前"]), splits=splits)
    specs = [_spec(splits, rng) for _ in range(rng.randint(1, 3))]
    colors, narrow = [rng.random() < 0.5 for _ in range(2)], rng.randint(20, 160)
    screens = [Screen(color=colors[0])]
    screens.append(Screen(width=narrow, color=colors[1], abridged=rng.random() < 0.3))
    hosts, found = rng.choice([None, None, 2, 5]), []
    for long in (1, 1 << 60):
        monkeypatch.setattr(plan_rendering, "LONG", long)
        found.append(_written(plan(dataset, *specs, hosts=hosts), screens))
    for name, columns, rows in zip(("json", "yaml", "csv", "table", "table"), *found, strict=True):
        assert columns == rows, f"seed {seed}: plan as {name}"
    return len(found[0])


@pytest.mark.long
def test_columns_and_rows_are_written_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    add_cases(sum(_both_ways(seed, monkeypatch) for seed in range(25)))
