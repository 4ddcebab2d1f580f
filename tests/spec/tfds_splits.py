"""TFDS's own answers about splits, from split infos in memory; layouts and specs to ask about."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from shardctl.base.tfds_rules import DEFAULT_TEMPLATE
from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.spec.subsplit import FileInstruction

Read = tuple[str, int, int, int]  # base name, skip, take, examples in the shard
Layout = dict[str, tuple[int, ...]]


def tfds_splits(layout: Layout, data_dir: str = "/data", name: str = "toy") -> Any:
    """Return TFDS's SplitDict of a layout."""
    from absl import logging
    from tensorflow_datasets.core import naming
    from tensorflow_datasets.core import splits as splits_lib

    logging.set_verbosity(logging.ERROR)  # it warns of each split without examples
    return splits_lib.SplitDict(
        [
            splits_lib.SplitInfo(
                name=split,
                shard_lengths=list(lengths),
                num_bytes=0,
                filename_template=naming.ShardedFileTemplate(
                    data_dir=data_dir, dataset_name=name, split=split, filetype_suffix="tfrecord"
                ),
            )
            for split, lengths in layout.items()
        ]
    )


def tfds_reads(splits: Any, spec: Any) -> list[Read] | None:
    """Return what TFDS's file instructions for a spec read, None where it refuses the spec."""
    try:
        instructions = splits[spec].file_instructions
    except (ValueError, KeyError, NotImplementedError, AssertionError, RecursionError):
        return None
    return [(i.basename(), i.skip, i.take, i.examples_in_shard) for i in instructions]


def tfds_runs_backwards(splits: Any, spec: str) -> bool:
    """Return whether a part of a spec ends before it starts, once TFDS has made it absolute."""
    from tensorflow_datasets.core import splits as splits_lib

    try:
        parts = splits_lib._make_absolute_instructions(list(splits.values()), spec)
    except (ValueError, NotImplementedError):
        return False
    return any(
        (part.from_ or 0) > (splits[part.splitname].num_examples if part.to is None else part.to)
        for part in parts
    )


def toy_dataset(
    layout: Layout, data_dir: str | None = "/data", name: str = "toy", version: str | None = None
) -> Dataset:
    """Return the dataset of a layout, its files named as TFDS names them."""
    return Dataset(
        name=name,
        version=version,
        splits=tuple(
            Split(
                name=split,
                shard_lengths=lengths,
                files=(
                    ShardFiles.from_template(
                        DEFAULT_TEMPLATE,
                        dataset=name,
                        split=split,
                        file_format="tfrecord",
                        num_shards=len(lengths),
                        data_dir=data_dir,
                    ),
                ),
            )
            for split, lengths in layout.items()
        ),
    )


def reads(instructions: Sequence[FileInstruction]) -> list[Read]:
    """Return what file instructions read, in the form of `tfds_reads`."""
    return [(i.filename, i.skip, i.take, i.examples_in_shard) for i in instructions]


def ids_read(instructions: Sequence[FileInstruction], layout: Layout) -> list[tuple[str, int]]:
    """Return the (split, id) that file instructions read, by opening shards of written-out ids."""
    files = {}
    for split, lengths in layout.items():
        next_id = 0
        for shard, length in enumerate(lengths):
            name = f"toy-{split}.tfrecord-{shard:05}-of-{len(lengths):05}"
            files[name] = [(split, next_id + offset) for offset in range(length)]
            next_id += length
    return [
        example
        for instruction in instructions
        for example in files[instruction.filename][instruction.skip :][: instruction.take]
    ]


def random_layout(rng: random.Random) -> Layout:
    """Return one to three splits: empty shards, splits without examples and without shards."""
    names = rng.sample(["train", "test", "validation", "test2015", "a-b", "número", "_1"], 3)
    layout = {}
    for name in names[: rng.randint(1, 3)]:
        longest = rng.choice([0, 1, 9, 9, 200, 200, 100_003])
        num_shards = rng.choice([0, 1, 1, 2, 3, 3, 5, 9])
        layout[name] = tuple(
            rng.choice([0, longest, longest, rng.randint(0, longest)]) for _ in range(num_shards)
        )
    return layout


def random_spec(rng: random.Random, layout: Layout) -> str:
    """Return a spec of one to three parts: three in four are in order, the rest nonsense."""
    plus = rng.choice(["+", "+", " + ", "+ ", "  +\t", "\n+"])
    spec = plus.join(_random_part(rng, layout) for _ in range(rng.choice([1, 1, 1, 2, 3])))
    if rng.random() < 0.06:
        spec = rng.choice([spec + "\n", spec + " ", " " + spec, spec + "+", "+" + spec, spec + "]"])
    if rng.random() < 0.06 and spec:
        cut = rng.randrange(len(spec))
        spec = (
            spec[:cut] + rng.choice(["", ":", "%", "[", "_", ".", "-", " ", "e", "9"]) + spec[cut:]
        )
    return spec


_NUMBERS = [
    *["", "-", ".", "-0", "00", "--1", "+1", "1.", ".5", "1.5", "1e1", "0x1"],
    *["1_0", "-1_0", "1__0", "_1", "1_", "٣", "٣_٠", "²"],
    *["9" * 30, "-" + "9" * 30, "9" * 4300, "9" * 4301],  # int() reads 4300 digits
]
_PERCENTS = ["0.5", "33.3", "12.5", "-12.5", "66.67", "99.999", "100.0", "100.01", "1_0.2_5", "50."]


def _random_part(rng: random.Random, layout: Layout) -> str:
    name = rng.choice(list(layout))
    lengths = layout[name]
    if rng.random() < 0.08:
        name = rng.choice(["all", "train", "test", "trian", "", "ALL", "tr ain", "é", "a/b"])
    if rng.random() < 0.1:
        return name
    unit = rng.choice(["", "%", "shard"])
    if unit == "shard" and rng.random() < 0.3:
        return f"{name}[{_random_bound(rng, 'shard', lengths)}shard]"
    first, last = (_random_bound(rng, unit, lengths) for _ in range(2))
    if rng.random() < 0.6:
        first, last = sorted([first, last], key=_as_number)
    units = [unit, unit]
    if rng.random() < 0.1:
        units[rng.randrange(2)] = rng.choice(["", "%", "shard", "abs", "%%"])
    bounds = [f"{first}{units[0]}", f"{last}{units[1]}"]
    if rng.random() < 0.3:
        bounds[rng.randrange(2)] = ""
    if rng.random() < 0.02:
        bounds = rng.choice([bounds[:1], [*bounds, "1"], []])
    return f"{name}[{':'.join(bounds)}]"


def _random_bound(rng: random.Random, unit: str, lengths: tuple[int, ...]) -> str:
    if rng.random() < 0.06:
        return rng.choice(_NUMBERS)
    limit = {"": sum(lengths), "%": 100, "shard": len(lengths)}[unit]
    if unit == "%" and rng.random() < 0.5:
        return rng.choice([*_PERCENTS, f"{rng.uniform(-100, 100):.4f}"])
    if rng.random() < 0.1:
        return str(rng.choice([-2 * limit - 1, -limit - 1, -limit, limit, limit + 1, 2 * limit]))
    return str(rng.randint(-limit, limit) if rng.random() < 0.2 else rng.randint(0, limit))


def _as_number(bound: str) -> float:
    try:
        return float(bound)
    except ValueError:
        return 0.0
