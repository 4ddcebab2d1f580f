"""`shardctl plan`, from the command line to what it writes; more is in transcripts/plan.txt."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Shardctl

TOY = ("-d", "toy.yaml")


@pytest.fixture(autouse=True)
def layout(shardctl: Shardctl) -> None:
    """Shards of 3, 0 and 5 examples; and 50 of one example each."""
    ones = [1] * 50
    Path("toy.yaml").write_text(
        "name: toy\nsplits:\n  train: {shard_lengths: [3, 0, 5]}\n"
        f"  many: {{shard_lengths: {ones}}}\n"
    )


def read(ran_stdout: str) -> list[list[str]]:
    """Return host, skip, take and first id of each row of a CSV."""
    rows = csv.DictReader(io.StringIO(ran_stdout))
    return [[row[name] for name in ("host", "skip", "take", "first_id")] for row in rows]


def test_a_subsplit_is_read_from_the_files_that_hold_it(shardctl: Shardctl) -> None:
    # Ids 2 to 5: the last of 0 to 2 in the first file, the first three of 3 to 7 in the third.
    ran = shardctl("plan", "train[2:6]", *TOY, "-f", "csv")
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert read(ran.stdout) == [["", "2", "1", "2"], ["", "0", "3", "3"]]


def test_hosts_share_the_examples_as_even_splits_does(shardctl: Shardctl) -> None:
    # 8 examples among 3 hosts: 3, 3 and 2; without the remainder 2 each.
    ran = shardctl("plan", "train", *TOY, "--hosts", 3, "-f", "csv")
    assert read(ran.stdout) == [
        ["0/3", "0", "3", "0"],
        ["1/3", "0", "3", "3"],
        ["2/3", "3", "2", "6"],
    ]
    ran = shardctl("plan", "train", *TOY, "--host", "1/3", "--drop-remainder", "-f", "csv")
    assert read(ran.stdout) == [["1/3", "2", "1", "2"], ["1/3", "0", "1", "3"]]


def test_json_and_yaml_say_what_csv_says(shardctl: Shardctl) -> None:
    arguments = ("plan", "train[2:6]", "many[:1]", *TOY, "-f")
    document = json.loads(shardctl(*arguments, "json").stdout)
    assert yaml.safe_load(shardctl(*arguments, "yaml").stdout) == document
    rows = csv.DictReader(io.StringIO(shardctl(*arguments, "csv").stdout))
    listed = [
        {"spec": plan["spec"], "host": "", **{k: str(v) for k, v in instruction.items()}}
        for plan in document["plans"]
        for instruction in plan["file_instructions"]
    ]
    assert list(rows) == listed
    assert [plan["num_examples"] for plan in document["plans"]] == [4, 1]


def test_a_long_table_is_whole_in_a_pipe(shardctl: Shardctl) -> None:
    piped = shardctl("plan", "many", *TOY).stdout.splitlines()
    whole = shardctl("plan", "many", *TOY, "--all").stdout.splitlines()
    files = [f"toy-many.tfrecord-{index:05}-of-00050" for index in range(50)]
    assert [line.split()[0] for line in whole[2:-1]] == files
    assert piped == whole
    assert whole[-1] == "total: 50 files, 50 examples; ids 0 to 49 (50)"


def test_a_host_that_reads_nothing_is_a_warning(shardctl: Shardctl) -> None:
    ran = shardctl("plan", "train[:1]", *TOY, "--hosts", 2, "-f", "csv")
    assert (ran.exit_code, read(ran.stdout)) == (0, [["0/2", "0", "1", "0"]])
    assert ran.stderr == "warning: 'train[:1]': host 1/2 reads no examples\n"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--hosts", 2, "--host", "0/2"), "--host and --hosts together: --host I/N already says"),
        (("--drop-remainder",), "--drop-remainder needs --hosts N or --host I/N"),
        (("-f", "ids"), "no format 'ids' here; choose from table, json, yaml, csv"),
        (("-f", "ids", "-d", "nowhere"), "no format 'ids' here"),
    ],
)
def test_bad_usage_is_one_line(shardctl: Shardctl, options: tuple[object, ...], said: str) -> None:
    ran = shardctl("plan", "train", *TOY, *options)
    assert (ran.exit_code, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)
    assert ran.stderr.startswith(f"error: {said}")


@pytest.mark.parametrize(
    ("splits", "read"),
    [
        ("{train: {shard_lengths: [3]}, test: {shard_lengths: [2]}}", "train"),
        ("{only: {shard_lengths: [3]}}", "only"),
        ("{a: {shard_lengths: [3]}, b: {shard_lengths: [2]}}", None),
    ],
)
def test_without_a_spec_it_reads_what_simulate_reads(
    splits: str, read: str | None, shardctl: Shardctl
) -> None:
    Path("other.yaml").write_text(f"name: other\nsplits: {splits}\n")
    planned = shardctl("plan", "-d", "other.yaml")
    if read is not None:
        assert planned == shardctl("plan", read, "-d", "other.yaml")
        assert planned.exit_code == 0
        return
    simulated = shardctl("simulate", "-d", "other.yaml")
    assert planned == simulated
    assert planned.stderr == "error: no split given and other has no train; it has: a, b\n"
