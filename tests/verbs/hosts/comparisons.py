"""Hosts compared over toys and over ImageNet, and batches filled one after the other."""

from __future__ import annotations

from itertools import islice
from typing import Any

from shardctl.dataset.dataset import Dataset, Split
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.hosts.answer import Comparison, hosts
from tests.spec.host_cases import HostCase

IMAGENET = Dataset(
    name="imagenet2012",
    splits=(
        Split.even(name="train", num_examples=1_281_167, num_shards=1024, num_bytes=146999114192),
    ),
)


def toy(*lengths: int, **facts: Any) -> Dataset:
    return Dataset(name="toy", splits=(Split(name="train", shard_lengths=lengths, **facts),))


def compared(dataset: Dataset, num_hosts: int, spec: str = "train", **settings: Any) -> Comparison:
    return hosts(dataset, spec, ReadSettings(**settings), hosts=num_hosts).comparisons[0]


def of_case(case: HostCase, **settings: Any) -> Comparison:
    spec = "+".join(
        f"{case.dataset.splits[split].name}[{start}:{stop}]" for split, start, stop in case.slices
    )
    return compared(case.dataset, case.num_hosts, spec, reverse=case.reverse, **settings)


def batches_by_hand(num_examples: int, epochs: int, batch: int, drop: bool) -> int:
    """Return how many batches there are, by filling them one after the other."""
    stream = iter(range(num_examples * epochs))
    count = 0
    while contents := list(islice(stream, batch)):
        count += len(contents) == batch or not drop
    return count
