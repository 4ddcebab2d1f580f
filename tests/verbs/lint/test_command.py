"""`shardctl lint`, from the command line to what it writes."""

from __future__ import annotations

import json
import resource
import shlex
from pathlib import Path

import pytest

from shardctl.verbs.lint.rules import LINT_RULES
from tests.cli.conftest import Shardctl
from tests.record_files import framed

LAYOUTS = {
    "ordered.yaml": "name: o\nordered: true\nsplits: {train: {num_examples: 90, num_shards: 9}}\n",
    "short.yaml": "name: s\nfile_format: parquet\nsplits: {train: {shard_lengths: [214]}}\n",
    "parquet.yaml": "name: p\nfile_format: parquet\nsplits: {train: {shard_lengths: [15, 9]}}\n",
}


def codes(stdout: str) -> list[str]:
    return [finding["code"] for finding in json.loads(stdout)["findings"]]


@pytest.mark.long
@pytest.mark.parametrize("rule", LINT_RULES, ids=[rule.code for rule in LINT_RULES])
def test_the_example_of_a_story_shows_its_finding(shardctl: Shardctl, rule: object) -> None:
    for name, text in LAYOUTS.items():
        Path(name).write_text(text)
    for name in ("clicks-00000.tfrecord", "clicks-00001.tfrecord"):
        Path(name).write_bytes(framed(b"a", b"b"))
    command = shlex.split(rule.story.example)  # type: ignore[attr-defined]
    assert command[0] == "shardctl"
    ran = shardctl(*command[1:], "-f", "json")
    assert (ran.exit_code, ran.stderr) == (1, "")
    assert rule.code in codes(ran.stdout)  # type: ignore[attr-defined]


def test_cycle_auto_is_that_of_this_machine_unless_one_is_named(shardctl: Shardctl) -> None:
    lint = ("lint", "-d", "imagenet2012", "--select", "SC021", "-f", "json")
    assert codes(shardctl(*lint, "--cycle", "auto").stdout) == ["SC021"]
    ran = shardctl(*lint, "--cycle", "auto", "--cpus", 48)
    assert "16 of 48" in ran.stdout
    Path("shardctl.yaml").write_text("read: {cycle: auto}\n")
    assert codes(shardctl(*lint).stdout) == ["SC021"]
    assert codes(shardctl(*lint, "--cycle", 8).stdout) == []
    Path("shardctl.yaml").write_text("read: {cycle: 8}\n")
    assert codes(shardctl(*lint, "--cycle", "auto").stdout) == ["SC021"]


def test_the_limit_of_open_files_is_that_of_the_process(shardctl: Shardctl) -> None:
    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    shuffled = ("--shuffle-seed", 1, "--buffer", 20_000, "--buffer-seed", 2)
    lint = ("lint", "-d", "imagenet2012", "--cycle", 100, *shuffled, "-f", "json")
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (315, most))
        assert codes(shardctl(*lint).stdout) == ["SC024"]
        assert codes(shardctl(*lint, "--open-files", 316).stdout) == []
        resource.setrlimit(resource.RLIMIT_NOFILE, (316, most))
        assert codes(shardctl(*lint).stdout) == []
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, most))


def test_codes_in_place_of_a_spec_are_explained(shardctl: Shardctl) -> None:
    ran = shardctl("lint", "SC006")
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert ran.stdout == shardctl("lint", "--explain", "SC006").stdout
    both = json.loads(shardctl("lint", "SC041", "SC006", "-f", "json").stdout)["rules"]
    assert [rule["code"] for rule in both] == ["SC041", "SC006"]
    assert "no finding has this code" in shardctl("lint", "SC999").stderr
