"""A command as it would be typed again."""

from __future__ import annotations

import shlex

import pytest

from shardctl.cli.app import application
from shardctl.cli.options.dataset import DatasetOptions, dataset_options
from shardctl.cli.options.shared import typed_again


def again(line: str, *arguments: str) -> str:
    group = application("diff")
    with group.make_context("shardctl", [], resilient_parsing=True) as root:
        command = group.commands["diff"]
        with command.make_context("diff", shlex.split(line), parent=root) as ctx:
            return typed_again(ctx, arguments, "--update", leaving_out=("--format", "--each"))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("a.yaml", ""),
        ("a.yaml b.yaml c.yaml -f github --each", ""),
        ("a.yaml --block=3 --cycle auto --cpus 1_0", "--cycle auto --block 3 --cpus 10"),
        (
            "a -d x -d 'y z' --data-dir d --spec 'train[:5%]'",
            "-d x -d 'y z' --data-dir d --spec 'train[:5%]'",
        ),
        ("a --no-shuffle-files --drop-remainder", "--no-shuffle-files --drop-remainder"),
        ("a --host 1/3 --buffer-seed=-1", "--host 1/3 --buffer-seed -1"),
    ],
)
def test_options_are_those_that_were_typed(line: str, words: str) -> None:
    found = shlex.split(again(line, "A file.yaml"))
    assert found[:3] == ["shardctl", "diff", "A file.yaml"]
    assert found[-1] == "--update"
    given = [{"-d": "--dataset"}.get(word, word) for word in shlex.split(words)]
    assert sorted(found[3:-1]) == sorted(given)
    # Read again it is the same command.
    rest = shlex.join(found[2:-1])
    assert again(rest, "A file.yaml") == shlex.join(found)


def test_no_argument_becomes_an_option() -> None:
    assert again("a", "--help") == "shardctl diff ./--help --update"


def test_a_dataset_is_typed_again_with_its_data_dir() -> None:
    given = DatasetOptions(dataset=["a", "b"], data_dir="c")
    assert dataset_options(given) == ["-d", "a", "-d", "b", "--data-dir", "c"]
