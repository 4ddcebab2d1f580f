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
from shardctl.metadata.project_file import PROJECT_KEYS, find_project, read_project
from shardctl.settings.read_settings import settings_in_force
from shardctl.settings.table import SETTINGS
from shardctl.stages.text import parse_stages, pipeline_of
from shardctl.verbs.lint.answer import LINT_KEYS
from shardctl.verbs.lint.command import LintOptions
from tests.cases import check_cases
from tests.cli.conftest import Shardctl
from tests.settings_options import as_options, settings_values

LAYOUT = "name: toy\n{ordered}splits: {{train: {{shard_lengths: [3, 4]}}}}\n"
NAMES = "toy-train.tfrecord-00001-of-00002\ntoy-train.tfrecord-00000-of-00002\n"
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


def test_what_was_given_is_stated_and_every_other_setting_is_there_as_a_comment(
    shardctl: Shardctl,
) -> None:
    ran = shardctl("init", "-d", "mnist", "--shuffle-seed", 42, "--batch", 128, "--no-reverse")
    assert (ran.exit_code, ran.stdout) == (0, "")
    assert ran.stderr == (
        "wrote shardctl.yaml: dataset mnist, shuffle seed 42, no reverse, batch 128\n"
        "next: shardctl config shows what is in force, shardctl lint what goes wrong with it\n"
    )
    text = Path("shardctl.yaml").read_text()
    project = find_project(Path())
    assert (project.dataset, project.data_dir) == (("mnist",), None)
    assert dict(project.read) == {"shuffle_seed": 42, "reverse": False, "batch": 128}
    assert dict(project.lint) == {}
    names = [stated.partition(":")[0] for stated, _ in uncommented(text)]
    expected = ["data_dir", *(setting.name for setting in SETTINGS), *LINT_KEYS]
    assert names == [name for name in expected if name not in project.read]
    assert set(re.findall(r"^(\w+):", text, re.MULTILINE)) == {*PROJECT_KEYS} - {
        "data_dir",
        "loader",  # is one of the settings, and may be beside them
        "stages",
    }
    assert max(map(len, text.splitlines())) <= 100


def test_no_line_is_only_a_heading_where_its_comments_are_the_whole_section(
    shardctl: Shardctl,
) -> None:
    assert shardctl("init").exit_code == 0
    assert find_project(Path()).dataset == ()  # nobody chose one
    ran = shardctl("config", "-f", "json")
    assert ran.stderr.startswith("no dataset chosen: ")
    assert {s["origin"] for s in json.loads(ran.stdout)["settings"]} == {"default"}


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


def test_what_lint_looks_at_is_written_too(shardctl: Shardctl) -> None:
    given = ("train[:90%]", "--eval", "train[90%:]", "--ignore", "SC001,sc02", "--seeds", "1,-2")
    shardctl("init", "-d", "mnist", *given, "--hosts", 4, "--no-autocache")
    assert dict(find_project(Path()).lint) == {
        "specs": ["train[:90%]"],
        "eval": ["train[90%:]"],
        "hosts": 4,
        "autocache": False,
        "seeds": [1, -2],
        "ignore": ["SC001", "sc02"],
    }
    place = re.compile(r'"(file|line)": ("shardctl.yaml"|\d+|null)')
    by_file = shardctl("lint", "-f", "json").stdout
    Path("shardctl.yaml").unlink()
    by_options = shardctl(
        "lint", *given, "--hosts", 4, "--no-autocache", "-d", "mnist", "-f", "json"
    ).stdout
    assert place.sub("", by_file) == place.sub("", by_options)


@pytest.mark.parametrize(
    ("refs", "output", "stated"),
    [
        (["toy.yaml"], "sub/shardctl.yaml", ("../toy.yaml",)),
        (["./toy.yaml"], "shardctl.yaml", ("toy.yaml",)),
        (["{here}/toy.yaml"], "sub/shardctl.yaml", ("{here}/toy.yaml",)),
        (["mnist"], "sub/shardctl.yaml", ("mnist",)),
        (["mnist:3.0.1"], "shardctl.yaml", ("mnist:3.0.1",)),
    ],
)
def test_paths_are_relative_to_the_file(
    refs: list[str],
    output: str,
    stated: tuple[str, ...],
    shardctl: Shardctl,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = str(Path.cwd())
    Path("sub").mkdir()
    Path("data").mkdir()
    options = [word for ref in refs for word in ("-d", ref.format(here=here))]
    ran = shardctl(
        "init", *options, "-o", output, "--file-order", "order.txt", "--data-dir", "data"
    )
    assert ran.exit_code == 0
    monkeypatch.chdir(Path(output).parent)
    project = find_project(Path())
    assert project.dataset == tuple(ref.format(here=here) for ref in stated)
    assert project.data_dir == f"{here}/data"
    assert OrderOptions().settings(project).file_order == tuple(NAMES.split())
    assert shardctl("plan", "train").exit_code == 0


def test_this_folder_is_a_dataset_too(shardctl: Shardctl) -> None:
    Path("dataset_info.json").write_text(
        '{"name": "x", "version": "1.0.0", "splits": [{"name": "train", "shardLengths": ["3"]}]}'
    )
    assert shardctl("init").exit_code == 0
    assert find_project(Path()).dataset == (".",)
    Path("inner").mkdir()
    assert shardctl("init", "-o", "inner/shardctl.yaml").exit_code == 0
    assert read_project(Path("inner/shardctl.yaml")).dataset == ("..",)


def test_a_file_that_is_there_is_replaced_only_where_that_is_asked_for(shardctl: Shardctl) -> None:
    Path("shardctl.yaml").write_text("dataset: cifar10\n")
    ran = shardctl("init", "-d", "mnist")
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr == (
        "error: 'shardctl.yaml' is there already; --force replaces it, --output FILE writes "
        "another, and shardctl config shows what it says\n"
    )
    assert Path("shardctl.yaml").read_text() == "dataset: cifar10\n"
    assert shardctl("init", "-d", "mnist", "--force").exit_code == 0
    assert find_project(Path()).dataset == ("mnist",)


def test_another_name_is_pointed_out_and_stdout_takes_the_file(shardctl: Shardctl) -> None:
    ran = shardctl("init", "-d", "mnist", "-o", "other.yaml")
    assert ran.stderr.endswith("commands read it where it is named shardctl.yaml\n")
    piped = shardctl("init", "-d", "mnist", "-o", "-")
    assert (piped.exit_code, piped.stderr) == (0, "")
    assert piped.stdout == Path("other.yaml").read_text()
    assert not Path("shardctl.yaml").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-d", "minst"), "no dataset 'minst' in "),
        (("-d", "nowhere.yaml"), "no file or folder 'nowhere.yaml'"),
        (("-d", "mnist", "trian"), "no split 'trian' in mnist:3.0.1; it has: train, test"),
        (("-d", "mnist", "--eval", "tset"), "no split 'tset' in mnist:3.0.1; it has: test, train"),
        (("-d", "mnist", "--cycle", "auto"), "--cycle auto needs --cpus N: "),
        (("-d", "mnist", "--cycle", 0), "--cycle '0': a whole number, at least 1, is needed"),
        (("-d", "mnist", "--ignore", "SC9"), "--ignore 'SC9': no finding has this code; "),
        (("-d", "mnist", "-o", "x.json"), "--output 'x.json' is no place for json; "),
        (("-d", "mnist", "-o", "no/x.yaml"), "cannot write 'no/x.yaml'"),
        (("mnist",), "'mnist' is a dataset: give it with -d, as in -d mnist"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_written(
    arguments: tuple[object, ...], said: str, shardctl: Shardctl
) -> None:
    before = sorted(Path().iterdir())
    ran = shardctl("init", *arguments)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.splitlines()[-1].startswith(f"error: {said}")
    assert sorted(Path().iterdir()) == before


def test_an_order_that_stays_open_is_a_warning(shardctl: Shardctl) -> None:
    ran = shardctl("init", "-d", "mnist", "--buffer", 1000)
    assert ran.exit_code == 0
    assert ran.stderr.startswith("warning: --buffer without a seed has another order in each run;")
    assert find_project(Path()).read == {"buffer": 1000}


def test_no_line_of_it_is_a_command_to_a_runner_of_ci(shardctl: Shardctl) -> None:
    name = "##[error]x.yaml"
    Path(name).write_text(LAYOUT.format(ordered=""))
    piped = shardctl("init", "-d", name, "-o", "-")
    assert piped.exit_code == 0
    assert "##[" not in piped.stdout
    assert shardctl("init", "-d", name).exit_code == 0
    assert find_project(Path()).dataset == (name,)


def test_paths_in_stages_are_written_as_from_the_file(shardctl: Shardctl) -> None:
    Path("toy.yaml").write_text(LAYOUT.format(ordered=""))
    Path("sub").mkdir()
    stages = "zip(train, read(data='toy.yaml'), read(data='mnist')) | filter(kept='seen.txt')"
    written = shardctl(
        "init", "-d", "toy.yaml", "--stages", stages, "-o", str(Path("sub", "shardctl.yaml"))
    )
    assert written.exit_code == 0, written.stderr
    project = read_project(Path("sub", "shardctl.yaml"))
    expected = stages.replace("toy.yaml", "../toy.yaml").replace("seen.txt", "../seen.txt")
    assert pipeline_of(project.read["stages"]) == parse_stages(expected)
