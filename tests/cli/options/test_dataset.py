"""The dataset options and the project lead to one dataset; a default is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from shardctl.cli.options.dataset import (
    DatasetOptions,
    chosen_dataset,
    dataset_options,
    plan_of_file,
    project_here,
)
from shardctl.errors import DatasetError, UsageError
from shardctl.metadata.project_file import Project
from shardctl.metadata.reference import Fallback
from tests.cli.conftest import Shardctl

LAYOUT = "name: {name}\nsplits: {{train: {{shard_lengths: [3, 4]}}}}\n"


@pytest.fixture(autouse=True)
def layouts(shardctl: Shardctl) -> None:
    """Layouts in the folder that commands run in."""
    for name in ("here", "there"):
        Path(f"{name}.yaml").write_text(LAYOUT.format(name=name))


def test_the_option_wins_over_the_environment_and_that_over_the_project(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    project = Project(path=Path("shardctl.yaml").absolute(), dataset=("there.yaml",))
    given = DatasetOptions(dataset=["here.yaml"])
    assert chosen_dataset(DatasetOptions(), project).title == "there"
    monkeypatch.setenv("SHARDCTL_DATASET", "mnist")
    assert chosen_dataset(DatasetOptions(), project).title == "mnist:3.0.1"
    assert chosen_dataset(given, project).title == "here"


def test_a_default_is_said_and_a_fallback_is_not(
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    assert chosen_dataset(DatasetOptions(), Project()).title == "imagenet2012:5.1.0"
    assert capsysbinary.readouterr().err == (
        b"no dataset chosen: using the built-in imagenet2012 layout; choose one with --dataset\n"
    )
    named = Fallback(refs=["here.yaml"], folder=Path(), said_by="order.yaml")
    assert chosen_dataset(DatasetOptions(), Project(), fallback=named).title == "here"
    assert capsysbinary.readouterr().err == b""


def test_the_project_is_that_of_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    assert project_here() == Project()
    Path("shardctl.yaml").write_text("dataset: here.yaml\n")
    Path("inner").mkdir()
    monkeypatch.chdir("inner")
    assert project_here().dataset == ("here.yaml",)
    assert chosen_dataset(DatasetOptions(), project_here()).title == "here"


def test_the_options_are_typed_again_with_the_data_dir() -> None:
    assert dataset_options(DatasetOptions()) == []
    given = DatasetOptions(dataset=["a", "b"], data_dir="c")
    assert dataset_options(given) == ["-d", "a", "-d", "b", "--data-dir", "c"]


TOY_LAYOUT = "name: toy\nsplits: {{train: {{shard_lengths: {lengths}}}}}\n"
TOY = DatasetOptions(dataset=["toy.yaml"])


@pytest.fixture(autouse=True)
def made(shardctl: Shardctl) -> None:
    """A plan made after 2 of 7 examples."""
    Path("toy.yaml").write_text(TOY_LAYOUT.format(lengths=[3, 4]))
    ran = shardctl("resume", "--consumed", 2, "--cycle", 1, "-d", "toy.yaml", "-o", "made.yaml")
    assert ran.exit_code == 0
    assert ran.stderr.startswith("wrote made.yaml: ")


def test_the_plan_and_the_dataset_it_was_made_for() -> None:
    dataset, plan = plan_of_file("made.yaml", TOY, {"cycle": None, "SPEC": None})
    assert dataset.title == "toy"
    assert (plan.consumed, plan.remaining) == (2, 5)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("cycle", "--cycle"),
        ("shuffle_seed", "--shuffle-seed"),
        ("pass_index", "--pass"),
        ("to_hosts", "--to-hosts"),
        ("SPEC", "SPEC"),
    ],
)
@pytest.mark.parametrize("value", [0, False, "x"])
def test_what_would_make_another_plan_is_refused_by_the_name_of_its_option(
    name: str, said: str, value: object
) -> None:
    with pytest.raises(
        UsageError, match=f"^{said} with --plan: the plan file holds the whole pipeline$"
    ):
        plan_of_file("nowhere.yaml", TOY, {"block": None, name: value})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--cycle", 2), "--cycle"),
        (("--pass", 1), "--pass"),
        (("--no-reverse",), "--reverse"),
        (("train",), "SPEC"),
    ],
)
@pytest.mark.parametrize("command", ["resume", "verify"])
def test_both_commands_that_take_a_plan_refuse_the_same(
    command: str, arguments: tuple[object, ...], said: str, shardctl: Shardctl
) -> None:
    ran = shardctl(command, "--plan", "made.yaml", "-d", "toy.yaml", *arguments)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr == f"error: {said} with --plan: the plan file holds the whole pipeline\n"


def test_a_dataset_that_grew_is_refused() -> None:
    Path("toy.yaml").write_text(TOY_LAYOUT.format(lengths=[3, 5]))
    with pytest.raises(DatasetError, match="train had 7 examples in 2 shards, now 8 in 2"):
        plan_of_file("made.yaml", TOY, {})


def test_a_dataset_that_is_not_found_says_how_to_name_it() -> None:
    Path("toy.yaml").unlink()
    with pytest.raises(DatasetError, match=r"say where the plan's dataset is with --dataset REF$"):
        plan_of_file("made.yaml", DatasetOptions(), {})


def test_a_broken_project_is_no_matter_of_the_plan() -> None:
    Path("shardctl.yaml").write_text("datset: x\n")
    with pytest.raises(DatasetError, match=r"shardctl.yaml:1: unknown key 'datset'; [^;]*$"):
        plan_of_file("made.yaml", DatasetOptions(), {})


ABOVE = """\
dataset: toy.yaml
data_dir: data
read: {cycle: 2, shuffle-seed: 42, reshuffle: false, batch: 4, host_by: files}
lint: {ignore: [SC0], specs: train}
"""
SAID = "settings of ../shardctl.yaml: "
FROM_DATASET = "dataset toy.yaml, data dir {here}/data"
READ = "cycle 2, shuffle seed 42, no reshuffle, batch 4, host by files"


@pytest.mark.parametrize(
    ("arguments", "taken"),
    [
        (("plan", "train"), FROM_DATASET),
        (("layout",), FROM_DATASET),
        (("list",), "data dir {here}/data"),
        (("plan", "train", "-d", "../toy.yaml"), "data dir {here}/data"),
        (("plan", "train", "-d", "../toy.yaml", "--data-dir", "."), None),
        (("simulate",), f"{FROM_DATASET}, {READ}"),
        (("quality",), f"{FROM_DATASET}, {READ}"),
        (
            ("locate", "--id", 1, "--cycle", 3, "--data-dir", ".", "-d", "../toy.yaml"),
            "shuffle seed 42, no reshuffle, batch 4, host by files",
        ),
        (("eval", "train", "--batch", 2), f"{FROM_DATASET}, host by files"),
        (
            ("lint", "--data-dir", "."),
            f"dataset toy.yaml, {READ}, lint ignore SC0, lint specs train",
        ),
        (("lint", "train[:5]", "--data-dir", "."), f"dataset toy.yaml, {READ}, lint ignore SC0"),
        (("resume", "--plan", "../made.yaml", "-d", "../toy.yaml"), "data dir {here}/data"),
        (("resume", "--consumed", 1, "--data-dir", "."), f"dataset toy.yaml, {READ}"),
        (("snapshot", "--data-dir", "."), f"dataset toy.yaml, {READ}"),
        (("hosts", "--hosts", 2, "--data-dir", "."), f"dataset toy.yaml, {READ}"),
    ],
)
def test_what_is_taken_from_a_folder_above_is_said_once(
    arguments: tuple[object, ...],
    taken: str | None,
    shardctl: Shardctl,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = Path.cwd()
    Path("data").mkdir()
    Path("shardctl.yaml").write_text(ABOVE)
    assert "settings of" not in shardctl(*arguments).stderr
    Path("inner").mkdir()
    monkeypatch.chdir("inner")
    ran = shardctl(*arguments)
    assert "error" not in ran.stderr
    said = [line for line in ran.stderr.splitlines() if "settings of" in line]
    assert said == ([] if taken is None else [SAID + taken.format(here=here)])
    assert ran.stderr.count("shardctl.yaml") == len(said)


def test_an_option_that_replaces_another_setting_leaves_it_out(
    shardctl: Shardctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("order.txt").write_text("toy-train.tfrecord-00001-of-00002\n")
    Path("shardctl.yaml").write_text("dataset: toy.yaml\nread: {file_order: order.txt}\n")
    Path("inner").mkdir()
    monkeypatch.chdir("inner")
    assert shardctl("simulate", "--reverse").stderr == f"{SAID}dataset toy.yaml\n"


def test_the_environment_goes_before_a_file_above(
    shardctl: Shardctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("shardctl.yaml").write_text("dataset: toy.yaml\n")
    Path("inner").mkdir()
    monkeypatch.chdir("inner")
    monkeypatch.setenv("SHARDCTL_DATASET", "mnist")
    assert shardctl("plan", "train").stderr == ""


KEPT = (
    "error: no dataset is named, and this answer is kept or checked: name one with --dataset REF, "
)


@pytest.mark.parametrize(
    "command",
    [
        *("snapshot", "diff order.yaml", "lint", "verify", "verify --files", "eval --batch 8"),
        *("plan train[:1%] -o plan.json", "layout -o layout.yaml", "simulate -o ids.csv"),
        *("resume --consumed 5 -o plan.yaml", "report -o report.html", "quality --min-score 0.1"),
        *("hosts --hosts 2 --check", "config -o config.json"),
    ],
)
def test_what_is_kept_or_checked_is_of_a_dataset_that_is_named(
    command: str, shardctl: Shardctl
) -> None:
    pinned = shardctl("snapshot", "-d", "mnist", "-f", "yaml").stdout
    Path("order.yaml").write_text(pinned.replace("refs: [mnist]\n", ""))
    ran = shardctl(*command.split())
    if command.startswith("diff"):  # the snapshot names its own
        assert ran.exit_code == 0, ran.stderr
        return
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.startswith(KEPT)
    assert "SHARDCTL_DATASET" in ran.stderr
    assert "shardctl.yaml" in ran.stderr
    named = shardctl(*command.split(), "-d", "nothere")
    assert KEPT not in named.stderr


@pytest.mark.parametrize(
    "command",
    [
        *("layout", "plan train[:1%]", "simulate --take 1", "locate --position 3"),
        *("hosts --hosts 2", "resume --consumed 5", "plan train[:1%] -o -"),
    ],
)
def test_what_is_looked_at_may_be_of_the_built_in_dataset(command: str, shardctl: Shardctl) -> None:
    ran = shardctl(*command.split())
    assert ran.exit_code == 0
    assert ran.stderr.startswith("no dataset chosen: using the built-in imagenet2012 layout")
