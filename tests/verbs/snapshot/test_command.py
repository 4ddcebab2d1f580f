"""`shardctl snapshot`, from the command line to what it writes."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Shardctl

LAYOUT = "name: toy\nsplits: {train: {shard_lengths: [30, 40, 50]}, test: {shard_lengths: [5]}}\n"


@pytest.fixture(autouse=True)
def layout(shardctl: Shardctl) -> Path:
    """A dataset in the folder that commands run in."""
    path = Path("toy.yaml")
    path.write_text(LAYOUT)
    return path


@pytest.mark.parametrize(
    "given",
    [
        ["-d", "toy.yaml"],
        ["-d", "{cwd}/toy.yaml"],
        ["-d", "made", "--data-dir", "data"],
        ["-d", "mnist"],
        ["-d", "mnist", "-d", "mnist"],
    ],
)
@pytest.mark.parametrize("here", ["", "dataset: cifar10\n"])
def test_what_is_said_to_come_next_finds_the_dataset_again(
    here: str, given: list[str], shardctl: Shardctl
) -> None:
    if here:
        Path("shardctl.yaml").write_text(here)
    made = Path("data/made/1.0.0/dataset_info.json")
    made.parent.mkdir(parents=True)
    splits = [{"name": "train", "shardLengths": ["3", "4"]}]
    made.write_text(json.dumps({"name": "made", "version": "1.0.0", "splits": splits}))
    words = [word.format(cwd=Path.cwd()) for word in given]
    said = shardctl("snapshot", *words, "-o", "an order.yaml").stderr.splitlines()[-1]
    compared = shardctl(*shlex.split(said)[1:])
    assert compared.stdout.startswith("an order.yaml matches the current order: ")
    assert compared.exit_code == 0


BIG = "splits: {train: {num_examples: 100, num_shards: 7}}\n"


@pytest.mark.long
def test_diff_finds_the_dataset_of_a_snapshot_from_any_folder(
    shardctl: Shardctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pinned").mkdir()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    Path("big.yaml").write_text(BIG, encoding="utf-8")
    Path("more.yaml").write_text(BIG, encoding="utf-8")
    for refs in (["big.yaml"], ["big.yaml", "more.yaml"]):
        given = [word for ref in refs for word in ("-d", ref)]
        for name in ("order.yaml", "order.json"):
            path = f"pinned/{name}"
            assert not shardctl("snapshot", "train", *given, "-o", path).exit_code
            kept = yaml.safe_load(Path(path).read_text("utf-8"))["refs"]
            assert kept == [f"../{ref}" for ref in refs]
            for folder in (".", "pinned", "elsewhere"):
                monkeypatch.chdir(tmp_path / folder)
                assert shardctl("diff", os.path.relpath(tmp_path / path)).exit_code == 0
                assert shardctl("diff", str(tmp_path / path), "--block", "3").exit_code == 1
            monkeypatch.chdir(tmp_path)


def test_a_dataset_that_has_moved_is_asked_for_and_may_be_named_in_the_file(
    shardctl: Shardctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("big.yaml").write_text(f"name: big\n{BIG}", encoding="utf-8")
    shardctl("snapshot", "train", "-d", "big.yaml", "-o", "order.yaml")
    Path("big.yaml").rename("new.yaml")
    ran = shardctl("diff", "order.yaml")
    assert ran.exit_code == 2
    assert "no file or folder 'big.yaml'; say where the dataset is with --dataset REF" in ran.stderr
    assert shardctl("diff", "order.yaml", "-d", "new.yaml").exit_code == 0
    text = Path("order.yaml").read_text("utf-8")
    Path("order.yaml").write_text(text.replace("big.yaml", "new.yaml"), encoding="utf-8")
    assert shardctl("diff", "order.yaml").exit_code == 0
    shardctl("diff", "order.yaml", "--block", "3", "--update")
    assert yaml.safe_load(Path("order.yaml").read_text("utf-8"))["refs"] == ["new.yaml"]


def test_paths_that_are_others_on_the_next_machine_are_not_kept(
    shardctl: Shardctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("big.yaml").write_text(BIG, encoding="utf-8")
    for ref in (str(tmp_path / "big.yaml"), "mnist"):
        ran = shardctl("snapshot", "train", "-d", ref)
        assert "refs" not in yaml.safe_load(ran.stdout)
    on_stdout = yaml.safe_load(shardctl("snapshot", "train", "-d", "big.yaml").stdout)
    assert on_stdout["refs"] == ["big.yaml"]


def test_a_dataset_that_shardctl_yaml_names_is_found_again_outside_of_the_project(
    shardctl: Shardctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    (project / "sub").mkdir(parents=True)
    elsewhere.mkdir()
    (project / "big.yaml").write_text(BIG, encoding="utf-8")
    (project / "shardctl.yaml").write_text("dataset: big.yaml\n", encoding="utf-8")
    monkeypatch.chdir(project / "sub")
    assert shardctl("snapshot", "train", "-o", "order.yaml").exit_code == 0
    monkeypatch.chdir(elsewhere)
    ran = shardctl("diff", project / "sub" / "order.yaml")
    assert (ran.exit_code, ran.stderr) == (0, "")
    kept = yaml.safe_load((project / "sub" / "order.yaml").read_text("utf-8"))["refs"]
    assert kept == ["../big.yaml"]
    # Written anew it keeps what it said of the dataset.
    shardctl("diff", project / "sub" / "order.yaml", "--block", "3", "--update")
    assert shardctl("diff", project / "sub" / "order.yaml").exit_code == 0
