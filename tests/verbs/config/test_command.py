"""`shardctl config` shows what the other commands would use, and who says so."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from shardctl.cli.main import main
from shardctl.settings.table import SETTING_BY_NAME
from tests.cases import check_cases
from tests.cli.conftest import Shardctl
from tests.settings_options import as_options, settings_values

LAYOUT = "name: toy\nsplits: {train: {shard_lengths: [3, 4]}}\n"
NAMES = "toy-train.tfrecord-00001-of-00002\ntoy-train.tfrecord-00000-of-00002\n"


@pytest.fixture(autouse=True)
def layout(shardctl: Shardctl) -> None:
    """A dataset, and an order of its files."""
    Path("toy.yaml").write_text(LAYOUT)
    Path("order.txt").write_text(NAMES)


def shown(ran: Any) -> dict[str, dict[str, Any]]:
    """Return the settings of an answer by their names; of several data dirs the first."""
    settings: dict[str, dict[str, Any]] = {}
    for setting in json.loads(ran.stdout)["settings"]:
        settings.setdefault(setting.pop("name"), setting)
    return settings


def test_each_setting_has_its_origin(shardctl: Shardctl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFDS_DATA_DIR", "/data")
    Path("shardctl.yaml").write_text(
        "dataset: toy.yaml\nread:\n  shuffle-seed: 42  # ours\n  cycle: 8\n  block: 2\n"
        "lint: {ignore: SC001,\n       hosts: 4}\n"
    )
    here = str(Path.cwd() / "shardctl.yaml")
    found = shown(shardctl("config", "--cycle", 3, "--no-reshuffle", "-f", "json"))

    def said(name: str) -> tuple[Any, ...]:
        setting = found[name]
        assert (setting["file"] is not None) == (setting["origin"] == "file")
        assert setting["file"] in (None, here)
        return setting["value"], setting["origin"], setting["by"], setting["line"]

    assert said("dataset") == ("toy.yaml", "file", None, 1)
    assert said("data_dir") == ("/data", "environment", "TFDS_DATA_DIR", None)
    assert said("read.cycle") == (3, "option", "--cycle", None)
    assert said("read.block") == (2, "file", None, 5)
    assert said("read.shuffle_seed") == (42, "file", None, 3)
    assert said("read.shuffle_files") == (True, "implied", "read.shuffle_seed", None)
    assert said("read.reshuffle") == (False, "option", "--no-reshuffle", None)
    assert said("read.epochs") == (1, "default", None, None)
    assert said("read.repeat_files") == (False, "default", "TFDS", None)
    assert said("lint.ignore") == (["SC001"], "file", None, 6)
    assert said("lint.hosts") == (4, "file", None, 7)
    assert said("lint.specs") == (["train"], "default", None, None)


@pytest.mark.parametrize(
    ("arguments", "environment", "expected"),
    [
        (("-d", "toy.yaml"), {"SHARDCTL_DATASET": "mnist"}, ("toy.yaml", "option", "--dataset")),
        ((), {"SHARDCTL_DATASET": "mnist"}, ("mnist", "environment", "SHARDCTL_DATASET")),
        ((), {}, ("imagenet2012", "default", None)),
        (("-d", "a.yaml", "-d", "b.yaml"), {}, (["a.yaml", "b.yaml"], "option", "--dataset")),
    ],
)
def test_the_dataset_is_the_one_that_is_chosen(
    arguments: tuple[str, ...],
    environment: dict[str, str],
    expected: tuple[object, ...],
    shardctl: Shardctl,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("a.yaml", "b.yaml"):
        Path(name).write_text(LAYOUT)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    setting = shown(shardctl("config", *arguments, "-f", "json"))["dataset"]
    assert (setting["value"], setting["origin"], setting["by"]) == expected


def test_data_dirs_are_in_the_order_of_the_search(
    shardctl: Shardctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFDS_DATA_DIR", "/env")
    Path("shardctl.yaml").write_text("dataset: mnist\ndata_dir: beside\n")
    ran = shardctl("config", "-f", "csv")
    rows = [row for row in csv.reader(io.StringIO(ran.stdout)) if row[0] == "data_dir"]
    here, home = str(Path.cwd()), str(Path.home())
    assert [(row[1], row[3], row[6]) for row in rows] == [
        (f"{here}/beside", "file", "2"),
        ("/env", "environment", ""),
        (f"{home}/tensorflow_datasets", "default", ""),
    ]
    # The folder is not there, which is what a command would stop at.
    said = f"warning: {here}/shardctl.yaml: data_dir '{here}/beside': no such local folder"
    assert ran.stderr.startswith(said)


def replaced(name: str, given: dict[str, object]) -> bool:
    """Return whether an option takes away what the file says that contradicts it."""
    by = {"file_order": "reverse", "reverse": "file_order", "shuffle_files": "shuffle_seed"}
    if name == "cpus":
        return given.get("cycle", "auto") != "auto"
    return by.get(name) in given


def test_it_is_what_simulate_uses_whoever_sets_it(
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    """Against the pipeline of simulate and the lines of the file, for settings in two places."""

    def document(*words: str) -> dict[str, Any] | None:
        with pytest.raises(SystemExit):
            main([*words, "-f", "json"])
        out = capsysbinary.readouterr().out
        return json.loads(out) if out else None

    def check(case: tuple[dict[str, object], list[bool]]) -> None:
        values, in_file = case
        stated = {
            name: value for (name, value), yes in zip(values.items(), in_file, strict=False) if yes
        }
        given = {name: value for name, value in values.items() if name not in stated}
        lines = ["dataset: toy.yaml", "read:"]
        lines += [f"  {name}: {json.dumps(value)}" for name, value in stated.items()]
        Path("shardctl.yaml").write_text("\n".join(lines))
        config = document("config", *as_options(given))
        assert config is not None
        simulated = document("simulate", "--take", "1", *as_options(given))
        for setting in config["settings"]:
            section, _, name = setting["name"].partition(".")
            if section != "read":
                continue
            if simulated is not None and name != "cpus":
                default = "tfds" if name == "loader" else None
                assert setting["value"] == simulated["pipeline"].get(name, default), name
            is_left = name in stated and not replaced(name, given)
            origin = "option" if name in given else "file" if is_left else None
            if origin is None:
                assert setting["origin"] in ("default", "implied")
                assert setting["given"] is None
            else:
                assert setting["origin"] == origin
                by_file = origin == "file"
                line = lines.index(f"  {name}: {json.dumps(stated[name])}") + 1 if by_file else None
                assert setting["line"] == line

    cases = st.tuples(settings_values, st.lists(st.booleans(), min_size=30, max_size=30))
    check_cases(cases, check, 15)


def test_a_dataset_that_is_not_there_is_a_warning(shardctl: Shardctl) -> None:
    Path("shardctl.yaml").write_text("dataset: minst\nread: {batch: 4}\n")
    ran = shardctl("config", "-f", "json")
    problem = (
        f"{Path.cwd()}/shardctl.yaml: no dataset 'minst' in {Path.home()}/tensorflow_datasets or "
        "the built-in catalog; close names: mnist, emnist, kmnist"
    )
    assert (ran.exit_code, ran.stderr) == (0, f"warning: {problem}\n")
    document = json.loads(ran.stdout)
    assert list(document)[:3] == ["format_version", "kind", "dataset"]
    assert (document["kind"], document["dataset"], document["problem"]) == ("config", None, problem)
    settings = shown(ran)
    assert (settings["dataset"]["value"], settings["dataset"]["line"]) == ("minst", 1)
    assert (settings["read.batch"]["value"], settings["read.batch"]["line"]) == (4, 2)
    assert settings["lint.specs"]["value"] is None
    assert shardctl("config").stdout.startswith("no dataset\nsettings of shardctl.yaml\n")


def test_a_setting_that_cannot_be_is_an_error_with_its_line(shardctl: Shardctl) -> None:
    Path("shardctl.yaml").write_text("read:\n  cycle: 0\n")
    ran = shardctl("config")
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"error: {Path.cwd()}/shardctl.yaml:2: cycle=0: a number")


def test_the_files_are_shown_and_only_the_nearest_is_read(
    shardctl: Shardctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("shardctl.yaml").write_text("{broken")
    inner = Path("a/b")
    inner.mkdir(parents=True)
    Path("a/shardctl.yaml").write_text("dataset: ../toy.yaml\nread: {cycle: 2}\n")
    here = Path.cwd()
    monkeypatch.chdir(inner)
    ran = shardctl("config")
    assert (ran.exit_code, ran.stderr) == (0, "")  # its table says it, no line besides
    assert ran.stdout.startswith(
        "toy (layout file)\nsettings of ../shardctl.yaml\n"
        "not read, being farther up: ../../shardctl.yaml\n\n"
    )
    row = next(line for line in ran.stdout.splitlines() if line.startswith("read.cycle"))
    assert row.split(maxsplit=2)[1:] == ["2", "../shardctl.yaml line 2"]
    files = json.loads(shardctl("config", "-f", "json").stdout)["files"][:2]
    assert files == [
        {"path": f"{here}/a/shardctl.yaml", "is_read": True},
        {"path": f"{here}/shardctl.yaml", "is_read": False},
    ]


def test_every_setting_of_an_order_is_shown(shardctl: Shardctl) -> None:
    names = [name for name in shown(shardctl("config", "-f", "json")) if name.startswith("read.")]
    assert names == [f"read.{name}" for name in SETTING_BY_NAME]
