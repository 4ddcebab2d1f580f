"""What hosts read, listed example by example; layouts, specs and numbers of hosts to ask about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from math import floor

import numpy as np
from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset, Split
from shardctl.spec.host import HostBy
from shardctl.spec.reads import NamedFiles, Reads, reads_of, sorted_rows
from shardctl.spec.subsplit import SplitRange
from tests.strategies import shard_lengths

Example = tuple[str, int, int]  # split, shard, index in the shard
ReadsByHand = list[list[Example]]  # of one host: a list of examples for each file instruction


@dataclass(frozen=True, kw_only=True)
class HostCase:
    """Slices (split, start, stop) of a dataset, split among hosts."""

    dataset: Dataset
    slices: tuple[tuple[int, int, int], ...]
    num_hosts: int
    strategy: HostBy
    reverse: bool = False

    @property
    def ranges(self) -> list[SplitRange]:
        return [
            SplitRange(split=self.dataset.splits[split], start=start, stop=stop)
            for split, start, stop in self.slices
        ]

    @property
    def table(self) -> Reads:
        return sorted_rows(reads_of(self.dataset, self.ranges), reverse=self.reverse)

    def parts(self) -> list[list[Example]]:
        """Return the examples of each slice, written out."""
        return [
            [
                (split.name, shard, index)
                for shard, length in enumerate(split.shard_lengths)
                for index in range(length)
            ][start:stop]
            for split, start, stop in ((self.dataset.splits[i], a, b) for i, a, b in self.slices)
        ]

    def reads(self) -> list[ReadsByHand]:
        """Return what each host is told to read, by hand."""
        parts = self.parts()
        if self.strategy == "even":
            # numpy too gives one more to the first ones.
            even = [np.array_split(np.arange(len(part)), self.num_hosts) for part in parts]
            hosts = [
                [[part[i] for i in shares[host]] for part, shares in zip(parts, even, strict=True)]
                for host in range(self.num_hosts)
            ]
            return [_by_file(host) for host in hosts]
        instructions = _by_file(parts)
        if self.reverse:
            instructions.reverse()
        if self.strategy == "examples":
            return [instructions] * self.num_hosts
        hands: list[ReadsByHand] = [[] for _ in range(self.num_hosts)]
        for turn, instruction in enumerate(instructions):
            hands[turn % self.num_hosts].append(instruction)
        return hands

    def num_bytes(self, reads: ReadsByHand) -> int | None:
        """Return the bytes of what is read from the start of each file, a file at a time."""
        amounts: list[Fraction] = []
        of_split: dict[str, int] = {}
        for instruction in reads:
            name, shard, last = instruction[-1]
            split = self.dataset.split(name)
            lengths = split.shard_lengths
            sizes = split.shard_bytes or (None,) * len(lengths)
            if all(size is not None or not n for size, n in zip(sizes, lengths, strict=True)):
                amounts.append(Fraction((sizes[shard] or 0) * (last + 1), lengths[shard]))
            elif split.num_bytes is None:
                return None
            else:
                of_split[name] = of_split.get(name, 0) + last + 1
        for name, count in of_split.items():
            split = self.dataset.split(name)
            amounts.append(Fraction((split.num_bytes or 0) * count, split.num_examples))
        return sum(floor(amount + Fraction(1, 2)) for amount in amounts)


def _by_file(parts: Sequence[list[Example]]) -> ReadsByHand:
    return [
        list(examples) for part in parts for _, examples in groupby(part, lambda e: (e[0], e[1]))
    ]


@st.composite
def host_cases(draw: st.DrawFn) -> HostCase:
    """Datasets of one or two splits, up to three slices of them, up to a dozen hosts."""
    splits = []
    for name in draw(st.sampled_from([["train"], ["train"], ["train", "test"]])):
        lengths = draw(shard_lengths(max_shards=9, max_length=12))
        sizes = st.tuples(*[st.none() | st.integers(0, 10**6)] * len(lengths))
        splits.append(
            Split(
                name=name,
                shard_lengths=lengths,
                num_bytes=draw(st.none() | st.integers(0, 2**40)),
                shard_bytes=draw(st.none() | sizes | sizes.map(lambda s: tuple(x or 7 for x in s))),
            )
        )
    dataset = Dataset(name="toy", splits=tuple(splits))
    slices = []
    for _ in range(draw(st.sampled_from([1, 1, 1, 2, 3]))):
        index = draw(st.integers(0, len(splits) - 1))
        bounds = st.integers(0, splits[index].num_examples)
        start, stop = sorted((draw(bounds), draw(bounds)))
        whole = draw(st.booleans())
        slices.append((index, 0 if whole else start, splits[index].num_examples if whole else stop))
    return HostCase(
        dataset=dataset,
        slices=tuple(slices),
        num_hosts=draw(st.integers(1, 12)),
        strategy=draw(st.sampled_from(["even", "files", "examples"])),
        reverse=draw(st.booleans()),
    )


def named_reads(
    *rows: tuple[str, int, int],
    lengths: tuple[int, ...] | None = None,
    shards: tuple[int, ...] | None = None,
) -> Reads:
    """Return reads of a split `train`, each row the name of its file, skip and take.

    A file is as long as it is read where `lengths` says nothing.
    """
    skip, take = (np.array([row[i] for row in rows], np.int64) for i in (1, 2))
    return Reads(
        files=NamedFiles(
            split_names=("train",),
            names=[name for name, _, _ in rows],
            lengths=skip + take if lengths is None else np.array(lengths, np.int64),
            shards=None if shards is None else np.array(shards, np.int64),
        ),
        part=np.zeros(len(rows), np.int64),
        split=np.zeros(len(rows), np.int64),
        shard=np.arange(len(rows)),
        skip=skip,
        take=take,
    )
