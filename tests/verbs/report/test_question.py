"""What a report is about: the host and batch that are meant, and the line that asks it again."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

import shardctl
from shardctl.base.phrase import phrase
from shardctl.dataset.dataset import Dataset, Split
from shardctl.errors import UsageError
from shardctl.settings.read_settings import ReadSettings
from shardctl.stages.pipelines import readers_of
from shardctl.stages.text import pipeline_of
from shardctl.verbs.lint.context import Usage
from shardctl.verbs.report.answer import report
from shardctl.verbs.report.document import again
from shardctl.verbs.report.question import (
    NotShown,
    ReportQuestion,
    question_in_python,
    shown,
    shown_of,
)

TOY = Dataset(name="toy", splits=(Split(name="train", shard_lengths=(9, 9)),))


def question(settings: dict[str, Any], hosts: int | None = None, **more: Any) -> ReportQuestion:
    given = {"evaluated": (), "usage": Usage(), "devices": 1, "loaders": False, **more}
    return question_in_python(TOY, None, ReadSettings(**settings), hosts=hosts, **given)


@pytest.mark.parametrize(
    ("settings", "hosts", "host", "num_hosts"),
    [
        ({}, None, None, 8),
        ({}, 1, None, 1),
        ({}, 2, "0/2", 2),
        ({"host": "1/2"}, None, "1/2", 2),
        ({"host": "1/2"}, 2, "1/2", 2),
        ({"stages": "shard(2, 1) | batch(2)"}, 2, None, 2),
        ({"stages": "read(train, host=1/2) | batch(2)"}, 2, None, 2),
        ({"stages": "shuffle(2, seed=1)"}, 2, "0/2", 2),
        ({"loader": "grain"}, 2, "0/2", 2),
    ],
)
def test_which_host_is_measured(
    settings: dict[str, Any], hosts: int | None, host: str | None, num_hosts: int
) -> None:
    asked = question(settings, hosts)
    assert (asked.reading.host and str(asked.reading.host)) == host
    assert asked.num_hosts == num_hosts


@pytest.mark.parametrize(
    ("settings", "said", "of_device"),
    [
        ({}, None, 64),
        ({"batch": 5}, 5, 2),
        ({"stages": "batch(5)"}, 5, 2),
        ({"stages": "batch(5) | unbatch | batch(3)"}, 3, 1),
        ({"stages": "cache"}, None, 64),
    ],
)
def test_which_batch_is_meant(settings: dict[str, Any], said: int | None, of_device: int) -> None:
    asked = question(settings, devices=4)
    assert (asked.said_batch(None), asked.device_batch(None)) == (said, of_device)


def test_what_was_said_in_python_was_an_argument() -> None:
    usage = Usage(take=9, max_open_files=7, try_autocache=False)
    asked = question({"batch": 8, "buffer": 16}, 2, evaluated=("test",), usage=usage)
    said = {
        item.name: (item.value, item.origin.by)
        for item in asked.in_force_here
        if item.origin.source == "argument"
    }
    assert said == {
        "dataset": ("toy", "dataset"),
        "read.batch": (8, "batch"),
        "read.buffer": (16, "buffer"),
        "lint.eval": (["test"], "evaluated"),
        "lint.hosts": (2, "hosts"),
        "lint.take": (9, "usage.take"),
        "lint.autocache": (False, "usage.try_autocache"),
        "lint.open_files": (7, "usage.max_open_files"),
    }
    assert asked.usage.hosts == 2
    names = [item.name for item in asked.in_force_here]
    assert len(names) == len(set(names))


def refuse(*_: object) -> int:
    raise UsageError(phrase("{cycle=auto} needs {cpus=N}"))


def test_what_is_made_of_a_part_is_missing_with_it() -> None:
    missing = NotShown(reason="--cycle auto needs --cpus N")
    assert shown(refuse) == missing
    assert shown_of(shown(lambda: 3), lambda part: part + 1) == 4
    assert shown_of(missing, refuse) is missing
    assert shown_of(3, refuse) == missing
    with pytest.raises(ZeroDivisionError):  # a fault of ours is no reason
        shown(lambda: 1 // 0)


# The line that makes a report again says all that was said, and finds all files from anywhere.


def line(*arguments: Any, **named: Any) -> str:
    """Return the line of a report, without its beginning and its end."""
    said = again(report(*arguments, **named).question)
    assert said.startswith("shardctl report ")
    assert said.endswith(" -o report.html")
    return said.removeprefix("shardctl report ").removesuffix(" -o report.html")


USAGE = shardctl.Usage(
    take=9,
    as_data_source=True,
    assert_cardinality=False,
    try_autocache=False,
    seeds=(-1, 4),
    max_open_files=99,
)


@pytest.mark.long
@pytest.mark.parametrize(
    ("spec", "settings", "named", "expected"),
    [
        ("train[:10%]+test", {}, {}, "'train[:10%]+test' -d mnist:3.0.1"),
        (
            None,
            {"shuffle_seed": -3, "buffer": -2, "buffer_seed": -1, "reshuffle": False},
            {},
            "-d mnist:3.0.1 --shuffle-seed=-3 --no-reshuffle --buffer=-2 --buffer-seed=-1",
        ),
        (
            None,
            {"host": "1/4", "host_by": "examples", "pass_index": 2, "loop": "keras-fit"},
            {"devices": 8},
            "-d mnist:3.0.1 --host 1/4 --host-by examples --pass 2 --loop keras-fit --devices 8",
        ),
        (
            None,
            {"stages": "shuffle(9, seed=1)|batch(4)"},
            {},
            "-d mnist:3.0.1 --stages 'shuffle(9, seed=1) | batch(4)'",
        ),
        (
            None,
            {"loader": "grain", "loader_version": "0.2.18", "shuffle_seed": 1, "workers": 2},
            {"loaders": True},
            "-d mnist:3.0.1 --shuffle-seed 1 --loader grain --loader-version 0.2.18 --workers 2 "
            "--loaders",
        ),
        (
            None,
            {},
            {"hosts": 4, "evaluated": ["test[:50%]", "test"], "usage": USAGE},
            "-d mnist:3.0.1 --eval 'test[:50%]' --eval test --hosts 4 --take 9 --as-data-source "
            "--no-assert-cardinality --no-autocache --seeds=-1,4 --open-files 99",
        ),
    ],
)
def test_everything_that_was_said_is_an_option(
    spec: str | None, settings: dict[str, Any], named: dict[str, Any], expected: str
) -> None:
    assert line("mnist", spec, settings, **named) == expected


def test_files_are_found_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "it's $HOME; 1"  # which a shell would take apart
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name, lengths in (("toy", [3, 4]), ("more", [5])):
        text = f"name: toy\nsplits: {{train: {{shard_lengths: {lengths}}}}}\n"
        (folder / f"{name}.yaml").write_text(text)
    assert shlex.split(line("toy.yaml")) == ["-d", f"{folder}/toy.yaml"]
    both = ["-d", f"{folder}/toy.yaml", "-d", f"{folder}/more.yaml"]
    assert shlex.split(line(["toy.yaml", "more.yaml"])) == both
    stages = {"stages": "sample_from_datasets(read, read(data='toy.yaml'), seed=1)"}
    words = shlex.split(line("mnist", None, stages))
    assert words[:3] == ["-d", "mnist:3.0.1", "--stages"]
    said = [read.data for read in readers_of(pipeline_of(words[3]))]
    assert said == [None, f"{folder}/toy.yaml"]
    names = ["toy-train.tfrecord-00001-of-00002", "toy-train.tfrecord-00000-of-00002"]
    assert "--file-order FILE" in line("toy.yaml", None, {"file_order": names})


def test_a_name_in_stages_stays_a_name() -> None:
    stages = {"stages": "read(test, data='mnist') | batch(4)"}
    assert "data='mnist'" in shlex.split(line("mnist", None, stages))[-1]


def test_secrets_of_urls_are_left_out() -> None:
    dataset = Dataset(
        name="toy",
        splits=(Split(name="train", shard_lengths=(3, 4)),),
        data_dir="https://me:pw@host.invalid/data?signature=x",
    )
    assert line(dataset) == "-d https://host.invalid/data"


def test_what_was_made_in_python_has_no_reference() -> None:
    made = Dataset(name="mnist", splits=(Split(name="train", shard_lengths=(3, 4)),))
    assert line(made) == "-d REF"
    assert line(shardctl.read_dataset("mnist")) == "-d mnist:3.0.1"
