"""`shardctl eval`, from the command line to what it writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Shardctl


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """The 4,097 examples of Flax's page, in a layout file."""
    path = tmp_path / "odd.yaml"
    path.write_text("splits: {test: {num_examples: 4097, num_shards: 4}}")
    return path


def test_a_project_says_how_hosts_share_and_the_batch(shardctl: Shardctl, odd: Path) -> None:
    Path("shardctl.yaml").write_text(
        "read: {batch: 999, drop_remainder: true, host: 0/8, host_by: files}\n"
    )
    ran = shardctl("eval", "--hosts", 2, "--batch", 64, "-d", odd, "-f", "json")
    document = json.loads(ran.stdout)
    assert (document["host_by"], document["remainder"]) == ("files", "ragged")
    assert document["batch"] == {"per_device": 64, "per_host": 64}
    ran = shardctl("eval", "--hosts", 2, "-d", odd, "-f", "json")
    assert json.loads(ran.stdout)["batch"] == {"per_device": 999, "per_host": 999}
    even = shardctl(
        "eval", "--hosts", 2, "--batch", 64, "-d", odd, "-f", "json", "--host-by", "even"
    )
    assert json.loads(even.stdout)["host_by"] == "even"


def test_a_batch_is_that_of_a_host_and_both_sizes_are_said(shardctl: Shardctl, odd: Path) -> None:
    one = shardctl("eval", "--devices", 8, "--batch", 64, "-d", odd)
    assert one == shardctl("eval", "--devices", 8, "--batch-per-device", 8, "-d", odd)
    assert "batches of 8 a device, 64 a host" in one.stdout
