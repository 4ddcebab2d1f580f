"""Splits that TFDS orders anew in each run are refused where their order decides, only there."""

from __future__ import annotations

import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import UnpredictableOrderError
from shardctl.order.file_formats import refuse_open_hosts, refuse_open_splits
from shardctl.spec.host import HOST_MODES
from shardctl.spec.subsplit import resolve_subsplit

APART = Dataset(
    name="d",
    splits=tuple(
        Split(
            name=name,
            shard_lengths=(3,),
            files=(ShardFiles(pattern=f"d-{name}-\0", num_shards=1, data_dir=f"/{name}"),),
        )
        for name in ("train", "test")
    ),
)


def test_the_way_out_is_the_spec_spelled_out() -> None:
    with pytest.raises(UnpredictableOrderError, match=r"as in 'train\+test'"):
        refuse_open_splits(resolve_subsplit("all", APART))
    refuse_open_splits(resolve_subsplit("train+test", APART))


def test_only_whole_files_in_turn_depend_on_the_order_of_splits() -> None:
    everything = resolve_subsplit("all", APART)
    with pytest.raises(UnpredictableOrderError):
        refuse_open_hosts(everything, HOST_MODES["files"], 2)
    refuse_open_hosts(everything, HOST_MODES["files"], 1)
    refuse_open_hosts(everything, HOST_MODES["even"], 2)
    refuse_open_hosts(everything, HOST_MODES["examples"], 2)
