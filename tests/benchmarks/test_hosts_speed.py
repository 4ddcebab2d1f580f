"""How long hosts of a million shards take to compare, and an id of a host of `ds.shard` to find.

Run with `pytest -o addopts= tests/benchmarks/test_hosts_speed.py -s`. Beside them stand TFDS's
`even_splits` for the same hosts, and NumPy's slice of an order that is ready.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.order.plan_order import plan_order
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.verbs.hosts.answer import hosts
from tests.benchmarks.tfds_splits import tfds_splits

MILLION = 1_000_000
HOSTS = 64
TFDS_SHARDS = 100_000  # of which TFDS lists the files of two hosts; scaled to a million and to 64
TFDS_HOSTS = 2


def _seconds(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def _dataset(*, even: bool) -> Dataset:
    if even:
        return Dataset(
            name="big",
            splits=(Split.even(name="train", num_examples=10**9, num_shards=MILLION),),
        )
    lengths = np.random.default_rng(1).integers(900, 1100, MILLION).tolist()
    return Dataset(name="big", splits=(Split(name="train", shard_lengths=lengths),))


@pytest.mark.parametrize("even", [True, False], ids=["even", "uneven"])
def test_sweeps_over_a_million_shards(*, even: bool) -> None:
    tfds = pytest.importorskip("tensorflow_datasets")
    splits = tfds_splits(TFDS_SHARDS)

    def by_tfds() -> None:
        for part in tfds.even_splits("train", HOSTS)[:TFDS_HOSTS]:
            assert splits[part].file_instructions

    dataset = _dataset(even=even)
    of_tfds = _seconds(by_tfds) / TFDS_HOSTS * HOSTS * MILLION / TFDS_SHARDS
    one = _seconds(lambda: hosts(dataset, hosts=HOSTS))
    sweep = _seconds(lambda: hosts(dataset, hosts=range(1, HOSTS + 1)))
    long = _seconds(lambda: hosts(dataset, hosts=range(1, 301)))
    print(
        f"\n{HOSTS} hosts {one:.2f} s, 1 to {HOSTS} {sweep:.2f} s, 1 to 300 {long:.2f} s; "
        f"TFDS's even_splits of {HOSTS} hosts alone {of_tfds:.1f} s ({of_tfds / one:,.0f} times)"
    )
    assert sweep < 2
    assert long < 5


@pytest.mark.parametrize("num_hosts", [10, 100, 1000, 5000])
def test_ids_of_a_host_that_skips_the_rest(num_hosts: int) -> None:
    """An id costs no more with more hosts; NumPy slices an order that somebody has made."""
    dataset = Dataset(
        name="d", splits=(Split.even(name="train", num_examples=10**9, num_shards=1024),)
    )
    host = Host(index=7, count=num_hosts)
    planned = plan_order(dataset, "train", ReadSettings(host=host, host_by="examples"))
    count = min(planned.order.num_examples, 100_000)
    ready = np.arange(min(count, 10**7 // num_hosts) * num_hosts)
    of_slice = _seconds(ready[7::num_hosts].copy) / (len(ready) / num_hosts)
    an_id = _seconds(lambda: planned.order.read(0, count)) / count
    print(f"\n{num_hosts} hosts: {an_id * 1e9:.0f} ns an id, a slice {of_slice * 1e9:.0f} ns")
    assert an_id < 500e-9
