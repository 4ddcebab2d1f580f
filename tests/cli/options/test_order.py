"""The options of the table, over those of the project, over what else is known."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import get_args

import pytest

from shardctl.cli.app import typer_parameter
from shardctl.cli.options.order import OrderOptions
from shardctl.errors import UsageError
from shardctl.metadata.project_file import Project, find_project
from shardctl.settings.read_settings import ReadSettings
from shardctl.stages.text import parse_stages
from tests.cli.conftest import Shardctl


def project(tmp_path: Path, read: str) -> Project:
    (tmp_path / "shardctl.yaml").write_text(f"read: {read}\n")
    return find_project(tmp_path)


def test_a_number_may_be_a_word_where_the_table_says_so() -> None:
    options = {
        p.name: get_args(p.annotation)[1]
        for p in itertools.starmap(typer_parameter, OrderOptions.parameters())
    }
    assert options["cycle"].parser("auto") == "auto"
    assert options["cycle"].parser("1_000") == 1000
    assert options["shuffle_seed"].parser("-5") == -5
    assert options["buffer"].parser("-2") == -2
    with pytest.raises(UsageError, match=r"--cycle 'AUTO': a whole number, at least 1, is needed"):
        options["cycle"].parser("AUTO")
    with pytest.raises(UsageError, match=r"--block 'auto': a whole number, at least 1, is needed"):
        options["block"].parser("auto")


def test_options_go_over_the_project_and_that_over_the_fallback(tmp_path: Path) -> None:
    stated = project(tmp_path, "{cycle: 4, block: 2}")
    settings = OrderOptions(cycle=8).settings(stated, {"block": 7, "batch": 3})
    assert (settings.cycle, settings.block, settings.batch) == (8, 2, 3)
    settings = OrderOptions().settings(Project(), {"block": 7})
    assert (settings.cycle, settings.block) == (None, 7)


def test_an_option_replaces_what_would_contradict_it(tmp_path: Path) -> None:
    stated = project(tmp_path, "{reverse: true}")
    (tmp_path / "order.txt").write_text("# by hand\nb\n\na\n")
    settings = OrderOptions(file_order=str(tmp_path / "order.txt")).settings(stated)
    assert (settings.reverse, settings.file_order) == (False, ("b", "a"))


def test_stages_of_an_option_replace_all_that_the_file_says_behind_the_reader(
    tmp_path: Path,
) -> None:
    stated = project(tmp_path, "{cycle: 4, buffer: 9, buffer_seed: 1, epochs: 2, batch: 8}")
    settings = OrderOptions(stages="repeat(2) | take(9)").settings(stated)
    assert settings == ReadSettings(cycle=4, stages=parse_stages("repeat(2) | take(9)"))
    stated = project(tmp_path, "{stages: [cache, take: 3]}")
    assert OrderOptions(stages="take(9)").settings(stated).stages == parse_stages("take(9)")
    assert OrderOptions().settings(stated).stages == parse_stages("cache | take(3)")


@pytest.mark.parametrize(
    "place", ["read:\n  stages: [cache]", "read:\n  cycle: 4\nstages: [cache]"]
)
def test_an_option_that_stages_of_the_file_say_is_refused(tmp_path: Path, place: str) -> None:
    (tmp_path / "shardctl.yaml").write_text(f"{place}\n")
    line = 1 + place.count("\n")
    with pytest.raises(UsageError) as caught:
        OrderOptions(batch=3).settings(find_project(tmp_path))
    assert str(caught.value) == (
        f"{tmp_path}/shardctl.yaml:{line}: --stages says all that is behind the reader, so "
        "--batch 3 has no place beside it; write batch(N) there"
    )


def test_paths_in_stages_of_a_project_lie_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "toy.yaml").touch()
    text = "zip(read(data=toy.yaml), read(data=mnist), read(data='/a')) | filter(kept='seen.txt')"
    stated = project(tmp_path, f'{{stages: "{text}"}}')
    monkeypatch.chdir(tmp_path)
    assert OrderOptions().settings(stated).stages == parse_stages(text)
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    expected = text.replace("toy.yaml", "'../toy.yaml'").replace("seen.txt", "../seen.txt")
    assert OrderOptions().settings(stated).stages == parse_stages(expected)


def test_a_list_of_files_in_a_project_lies_beside_it(tmp_path: Path) -> None:
    (tmp_path / "order.txt").write_text("b\na\n")
    stated = project(tmp_path, "{file_order: order.txt}")
    assert OrderOptions().settings(stated).file_order == ("b", "a")


def test_an_empty_list_of_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "order.txt").write_text("# nothing\n")
    with pytest.raises(UsageError, match="names no files"):
        OrderOptions(file_order=str(tmp_path / "order.txt")).settings(Project())


def test_options_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(UsageError, match="--no-shuffle-files and --shuffle-seed contradict"):
        OrderOptions(shuffle_files=False, shuffle_seed=1).settings(Project())


def test_a_fault_of_the_file_is_said_about_the_file(tmp_path: Path) -> None:
    stated = project(tmp_path, "{cycle: 0}")
    with pytest.raises(UsageError, match=f"^{tmp_path}/shardctl.yaml:1: cycle=0: a number"):
        OrderOptions(block=2).settings(stated)


@pytest.mark.parametrize(
    ("read", "option"),
    [("host: 3/2", "--host=1/2"), ("batch: two", "--batch=1"), ("cycle: 0", "--cycle=2")],
)
def test_what_cannot_be_read_in_the_file_is_the_files_fault(
    read: str, option: str, shardctl: Shardctl
) -> None:
    Path("shardctl.yaml").write_text(f"dataset: mnist\nread:\n  {read}\n")
    refused = shardctl("simulate", "test", option)
    assert (refused.exit_code, "shardctl.yaml:3: " in refused.stderr) == (2, True)
