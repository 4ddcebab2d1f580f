"""Comparisons of hosts over a toy dataset and over ImageNet."""

from __future__ import annotations

from typing import Any

from shardctl.dataset.dataset import Dataset, Split
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.hosts.answer import HostsPlan, hosts

TOY = Dataset(
    name="toy",
    splits=(Split(name="train", shard_lengths=(4, 4, 4), shard_bytes=(400, 400, 400)),),
)


IMAGENET = Dataset(
    name="imagenet2012",
    version="5.1.0",
    splits=(
        Split.even(name="train", num_examples=1_281_167, num_shards=1024, num_bytes=146999114192),
    ),
)


def plan(num_hosts: int | list[int], dataset: Dataset = TOY, **settings: Any) -> HostsPlan:
    """Return the comparison of numbers of hosts."""
    return hosts(dataset, "train", ReadSettings(**settings), hosts=num_hosts)
