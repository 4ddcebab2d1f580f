"""`shardctl init` writes a file that says what was asked for, and of all else what is in force."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shardctl.cli.main import main
from shardctl.cli.options.order import OrderOptions
from shardctl.metadata.project_file import find_project, read_project
from shardctl.settings.read_settings import settings_in_force
from shardctl.verbs.lint.command import LintOptions
from tests.cases import check_cases
from tests.cli.conftest import Shardctl
from tests.verbs.settings_options import as_options, settings_values

LAYOUT = "name: toy\n{ordered}splits: {{train: {{shard_lengths: [3, 4]}}}}\n"
NAMES = "toy-train.tfrecord-00001-of-00002\ntoy-train.tfrecord-00000-of-00002\n"
_WROTE = "wrote sub/shardctl.yaml and sub/shardctl.schema.json, by which editors check it"
DEFAULT = re.compile(r"^( *)#(\w+: .*)$", re.MULTILINE)


@pytest.fixture(autouse=True)
def layouts(shardctl: Shardctl) -> None:
    """Two datasets, and an order of the files of both."""
    Path("toy.yaml").write_text(LAYOUT.format(ordered=""))
    Path("ordered.yaml").write_text(LAYOUT.format(ordered="ordered: true\n"))
    Path("order.txt").write_text(NAMES)


def in_force(path: Path, *, ordered: bool) -> tuple[object, ...]:
    """Return what a file comes to, its list of files read."""
    project = read_project(path)
    settings = settings_in_force(OrderOptions().settings(project), ordered=ordered)
    stated = LintOptions().arguments(project)
    lint = {"hosts": 1, "as_data_source": False, "assert_cardinality": True, "autocache": True}
    empty = dict.fromkeys(("eval", "seeds", "select", "ignore"), ())
    linted = {**lint, **empty, "specs": ("train",), "fail_on": "notice", **stated}
    if settings["host"] is not None:
        linted.pop("hosts")  # the same number is written there
    return project.dataset, settings, {key: list_of(value) for key, value in linted.items()}


def list_of(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def uncommented(text: str) -> Iterator[tuple[str, str]]:
    """Yield each commented setting with the text in which it alone is stated."""
    for found in DEFAULT.finditer(text):
        yield found[2], text[: found.start()] + found[1] + found[2] + text[found.end() :]


def test_each_comment_and_all_of_them_say_what_is_in_force_anyway(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = Path("shardctl.yaml")

    def check(values: dict[str, object]) -> None:
        for name in ("toy.yaml", "ordered.yaml"):
            ordered = name == "ordered.yaml"
            with pytest.raises(SystemExit) as left:
                main(["init", "--force", "-d", name, *as_options(values)])
            assert left.value.code == 0, capsysbinary.readouterr().err
            text = path.read_text()
            expected = in_force(path, ordered=ordered)
            texts = [changed for _, changed in uncommented(text)]
            assert len(texts) > 10
            for changed in (*texts, DEFAULT.sub(r"\1\2", text)):
                path.write_text(changed)
                found = in_force(path, ordered=ordered)
                assert {**found[2], "hosts": 0} == {**expected[2], "hosts": 0}  # type: ignore[dict-item]
                assert found[:2] == expected[:2]

    check_cases(settings_values, check, 8)


def test_the_file_comes_to_the_same_as_the_options(
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    def settings(*words: str) -> list[tuple[Any, ...]]:
        with pytest.raises(SystemExit) as left:
            main(["config", "-f", "json", *words])
        out, error = capsysbinary.readouterr()
        assert left.value.code == 0, error
        return [(s["name"], s["value"], s["given"]) for s in json.loads(out)["settings"]]

    def check(values: dict[str, object]) -> None:
        Path("shardctl.yaml").unlink(missing_ok=True)
        expected = settings("-d", "toy.yaml", *as_options(values))
        with pytest.raises(SystemExit):
            main(["init", "-d", "toy.yaml", *as_options(values)])
        capsysbinary.readouterr()
        assert settings() == expected

    check_cases(settings_values, check, 12)


def test_no_line_of_it_is_a_command_to_a_runner_of_ci(shardctl: Shardctl) -> None:
    name = "##[error]x.yaml"
    Path(name).write_text(LAYOUT.format(ordered=""))
    piped = shardctl("init", "-d", name, "-o", "-")
    assert piped.exit_code == 0
    assert "##[" not in piped.stdout
    assert shardctl("init", "-d", name).exit_code == 0
    assert find_project(Path()).dataset == (name,)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--file-order order.txt", ["  file_order: '../order.txt'", "dataset: '../toy.yaml'"]),
        ("--data-dir data", ["data_dir: '../data'"]),
        ("--data-dir /", ["data_dir: /"]),
        ("--cycle auto --cpus 96 --host 1/3", ["  cycle: auto", "  cpus: 96", "  host: '1/3'"]),
        ("--reverse --no-autocache --seeds 1,-2 --ignore SC001,sc02",
         ["  reverse: true", "  autocache: false", "  seeds: [1, -2]", "  ignore: [SC001, sc02]"]),
        ("--stages zip(train,read(data='toy.yaml'),read(data='mnist'))|filter(kept='seen.txt')",
         ["  stages: [{zip: [{read: train, spec: train}, {read: null, data: '../toy.yaml'}, "
          "{read: null, data: mnist}]}, {filter: '../seen.txt'}]"]),
    ],
)  # fmt: skip
def test_what_is_asked_for_is_stated_as_from_the_file(
    words: str, said: list[str], shardctl: Shardctl
) -> None:
    Path("sub").mkdir()
    ran = shardctl("init", "-d", "toy.yaml", *words.split(), "-o", "sub/shardctl.yaml")
    assert (ran.exit_code, ran.stderr.splitlines()[0]) == (0, _WROTE)
    text = Path("sub/shardctl.yaml").read_text()
    lines = [line.partition("  #")[0].rstrip() for line in text.splitlines()]
    assert set(said) <= set(lines)
