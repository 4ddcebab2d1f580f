"""The line that makes a report again says all that was said, and finds all files from anywhere."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

import shardctl
from shardctl.base.text import public_url
from shardctl.dataset.dataset import Dataset, Split
from shardctl.stages.pipelines import readers_of
from shardctl.stages.text import pipeline_of
from shardctl.verbs.report.answer import report
from shardctl.verbs.report.document import again


def line(*arguments: Any, **named: Any) -> str:
    """Return the line of a report, without its beginning and its end."""
    said = again(report(*arguments, **named).question)
    assert said.startswith("shardctl report ")
    assert said.endswith(" -o report.html")
    return said.removeprefix("shardctl report ").removesuffix(" -o report.html")


@pytest.mark.long
@pytest.mark.parametrize(
    ("spec", "settings", "named", "expected"),
    [
        (None, {}, {}, "-d mnist:3.0.1"),
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
            {
                "hosts": 4,
                "evaluated": ["test[:50%]", "test"],
                "usage": shardctl.Usage(
                    take=9,
                    as_data_source=True,
                    assert_cardinality=False,
                    try_autocache=False,
                    seeds=(-1, 4),
                    max_open_files=99,
                ),
            },
            "-d mnist:3.0.1 --eval 'test[:50%]' --eval test --hosts 4 --take 9 --as-data-source "
            "--no-assert-cardinality --no-autocache --seeds=-1,4 --open-files 99",
        ),
    ],
)
def test_everything_that_was_said_is_an_option(
    spec: str | None, settings: dict[str, Any], named: dict[str, Any], expected: str
) -> None:
    assert line("mnist", spec, settings, **named) == expected


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A layout in a folder whose name a shell would take apart, which is the working folder."""
    folder = tmp_path / "it's $HOME; 1"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "toy.yaml").write_text("splits: {train: {shard_lengths: [3, 4]}}\n")
    return folder


@pytest.mark.long
def test_files_are_found_from_any_folder(toy: Path) -> None:
    assert shlex.split(line("toy.yaml")) == ["-d", f"{toy}/toy.yaml"]
    stages = {"stages": "sample_from_datasets(read, read(data='toy.yaml'), seed=1)"}
    words = shlex.split(line("mnist", None, stages))
    assert words[:3] == ["-d", "mnist:3.0.1", "--stages"]
    said = [read.data for read in readers_of(pipeline_of(words[3]))]
    assert said == [None, f"{toy}/toy.yaml"]


def test_a_name_in_stages_stays_a_name() -> None:
    stages = {"stages": "read(test, data='mnist') | batch(4)"}
    assert "data='mnist'" in shlex.split(line("mnist", None, stages))[-1]


def test_a_list_of_files_that_is_in_no_file_is_file(toy: Path) -> None:
    names = ["toy-train.tfrecord-00001-of-00002", "toy-train.tfrecord-00000-of-00002"]
    assert "--file-order FILE" in again(report("toy.yaml", None, {"file_order": names}).question)


def test_secrets_of_urls_are_nobody_s_business() -> None:
    public = "https://host.invalid/data"
    dataset = Dataset(
        name="toy",
        splits=(Split(name="train", shard_lengths=(3, 4)),),
        data_dir=public_url("https://me:pw@host.invalid/data?signature=x"),
    )
    assert line(dataset) == f"-d {public}"
    dataset = Dataset(
        name="toy",
        splits=(Split(name="train", shard_lengths=(3, 4)),),
        data_dir="https://me:pw@host.invalid/data?signature=x",
    )
    assert line(dataset) == f"-d {public}"


def test_what_was_made_in_python_has_no_reference() -> None:
    made = Dataset(name="mnist", splits=(Split(name="train", shard_lengths=(3, 4)),))
    assert line(made) == "-d REF"
    assert line(shardctl.read_dataset("mnist")) == "-d mnist:3.0.1"


def test_folders_read_as_one_are_named_one_by_one(toy: Path) -> None:
    (toy / "more.yaml").write_text("name: toy\nsplits: {train: {shard_lengths: [5]}}\n")
    words = shlex.split(line(["toy.yaml", "more.yaml"]))
    assert words == ["-d", f"{toy}/toy.yaml", "-d", f"{toy}/more.yaml"]
