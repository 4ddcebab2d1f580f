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


@pytest.mark.parametrize(
    ("options", "exit_code", "said"),
    [
        (
            ("--batch", 512),
            1,
            "check: hangs at step 1, counted from 0: host 0 blocks; the other 7 hosts have "
            "finished\n",
        ),
        (("--batch", 512, "--pad"), 0, ""),
        (("--batch", 512, "--drop-remainder"), 1, "check: 1 example lost\n"),
        (("--batch", 1024), 0, ""),
    ],
)
def test_check_exits_with_1_where_it_hangs_or_loses_examples(
    shardctl: Shardctl, odd: Path, options: tuple[object, ...], exit_code: int, said: str
) -> None:
    ran = shardctl("eval", "--hosts", 8, "--devices", 8, "-d", odd, *options, "--check")
    assert (ran.exit_code, ran.stderr) == (exit_code, said)
    assert "test in odd: 4,097 examples" in ran.stdout


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
