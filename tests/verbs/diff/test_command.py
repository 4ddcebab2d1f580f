"""`shardctl diff`: exit codes, what "today" means, and files that are written anew."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from shardctl.api.arguments import read_snapshot
from shardctl.metadata.layouts import read_layout_file
from shardctl.saved.snapshot_file import snapshot_yaml
from tests.children import write_program, write_shardctl
from tests.cli.conftest import Shardctl
from tests.tfds_datasets import write_dataset

LAYOUT = "name: toy\nversion: 1.0.0\nsplits: {train: {shard_lengths: [30, 40, 50]}}\n"
README = Path(__file__).parents[3] / "README.md"


@pytest.fixture(autouse=True)
def pinned(shardctl: Shardctl) -> Path:
    """A dataset that shardctl.yaml names, and a snapshot of its order."""
    Path("toy.yaml").write_text(LAYOUT)
    Path("shardctl.yaml").write_text("dataset: toy.yaml\n")
    assert shardctl("snapshot", "--block", 2, "-o", "order.yaml").exit_code == 0
    return Path("order.yaml")


def test_a_dataset_that_nobody_names_is_the_one_that_is_pinned(shardctl: Shardctl) -> None:
    Path("shardctl.yaml").unlink()
    assert shardctl("snapshot", "-d", "mnist", "-o", "mnist.yaml").exit_code == 0
    assert shardctl("snapshot", "-d", "toy.yaml", "--block", 4, "-o", "other.yaml").exit_code == 0
    outcome = shardctl("diff", "mnist.yaml")
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    assert shardctl("diff", "order.yaml").exit_code == 0  # as shardctl.yaml named it then
    Path("toy.yaml").unlink()
    missing = shardctl("diff", "order.yaml")
    assert missing.exit_code == 2
    assert "toy" in missing.stderr
    # Two files need no dataset.
    assert shardctl("diff", "order.yaml", "order.yaml").exit_code == 0
    outcome = shardctl("diff", "order.yaml", "other.yaml", "-f", "json")
    assert outcome.exit_code == 1
    document = json.loads(outcome.stdout)
    assert document["first_difference"]["position"] == 2
    assert (document["expected"], document["actual"]) == ("order.yaml", "other.yaml")


def test_update_writes_todays_order_says_so_and_exits_with_0(shardctl: Shardctl) -> None:
    os.chmod("order.yaml", 0o640)
    before = Path("order.yaml").stat().st_mtime_ns, Path("order.yaml").read_bytes()
    same = shardctl("diff", "order.yaml", "--update")
    assert (same.exit_code, same.stderr) == (0, "")
    assert (Path("order.yaml").stat().st_mtime_ns, Path("order.yaml").read_bytes()) == before
    outcome = shardctl("diff", "order.yaml", "--block", 3, "--update")
    assert (outcome.exit_code, outcome.stderr) == (0, "order.yaml now holds the current order\n")
    assert "block: 2 became 3" in outcome.stdout
    assert stat.S_IMODE(Path("order.yaml").stat().st_mode) == 0o640
    assert shardctl("diff", "order.yaml").exit_code == 0
    assert yaml.safe_load(Path("order.yaml").read_text())["pipeline"]["block"] == 3
    shardctl("snapshot", "--block", 2, "-f", "json", "-o", "order.json")
    assert shardctl("diff", "order.json", "--block", 3, "--update").exit_code == 0
    assert json.loads(Path("order.json").read_text())["pipeline"]["block"] == 3


def test_update_writes_the_rules_of_today_where_nothing_else_changed(shardctl: Shardctl) -> None:
    before, path = Path("order.yaml").read_bytes(), Path("order.yaml")
    pinned = read_snapshot(path)
    older = replace(pinned, rules=replace(pinned.rules, version=0))
    path.write_text("".join(snapshot_yaml(older)))
    assert shardctl("diff", path, "--update").exit_code == 0
    assert path.read_bytes() == before


def test_update_does_not_touch_a_file_that_was_edited(shardctl: Shardctl) -> None:
    edited = Path("order.yaml").read_text().replace("block: 2", "block: 7")
    Path("order.yaml").write_text(edited)
    outcome = shardctl("diff", "order.yaml", "--update")
    assert (outcome.exit_code, "edited" in outcome.stderr) == (2, True)
    assert Path("order.yaml").read_text() == edited


def recipe() -> str:
    """Return the command that compares in the job of the README's recipe."""
    (block,) = re.findall(r"```yaml\n(order:\n[^`]*- run: [^`]*)```", README.read_text(), re.DOTALL)
    _, command, reads = (s["run"] for s in yaml.safe_load(block)["order"]["steps"] if "run" in s)
    assert reads == "shardctl verify order.yaml"
    assert isinstance(command, str)
    return command


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="the job runs in bash")
def test_the_recipe_of_the_readme_guards_a_repository(tmp_path: Path) -> None:
    repository, programs = tmp_path / "repository", tmp_path / "bin"
    repository.mkdir()
    programs.mkdir()
    write_program(programs / "pip", "exit 0")
    write_shardctl(programs / "shardctl")
    environment = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "GIT_CONFIG_NOSYSTEM": "1",
    }

    def run(command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-e", "-c", command],
            cwd=repository,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    git = "git -c user.name=n -c user.email=e@example.org"
    (repository / "toy.yaml").write_text(LAYOUT)
    (repository / "shardctl.yaml").write_text("dataset: toy.yaml\nread: {shuffle_seed: 42}\n")
    assert run("shardctl snapshot train -o order.yaml").returncode == 0
    assert run(f"git init -q && git add . && {git} commit -qm pinned").returncode == 0
    passed = run(recipe())
    assert (passed.returncode, passed.stdout) == (0, "")

    (repository / "shardctl.yaml").write_text("dataset: toy.yaml\nread: {shuffle_seed: 43}\n")
    failed = run(recipe())
    assert failed.returncode == 1
    assert failed.stdout.startswith(
        "::error file=shardctl.yaml,line=2,title=order.yaml and the current order first"
    )
    assert "shuffle_seed: 42 became 43 (shardctl.yaml:2)" in failed.stdout
    assert failed.stdout.endswith("%0Ashardctl diff order.yaml --update\n")
    assert run("git status --porcelain").stdout == " M shardctl.yaml\n"

    assert run("shardctl diff order.yaml --update").returncode == 0
    review = run("git diff -U0 order.yaml").stdout
    assert "-  shuffle_seed: 42\n+  shuffle_seed: 43\n" in review
    assert run(f"{git} commit -qam meant").returncode == 0
    assert run(recipe()).returncode == 0


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """Two folders of one shape."""
    a, b = (
        write_dataset(tmp_path / name, splits={"train": [4, 3]}, with_files=False)
        for name in ("first", "second")
    )
    return a, b


def test_folders_in_the_other_order_are_another_order(
    shardctl: Shardctl, folders: tuple[Path, Path], tmp_path: Path
) -> None:
    """The ids are the same and the examples not."""
    a, b = folders
    shardctl("snapshot", "-d", a, "-d", b, "-o", "ab.yaml")
    shardctl("snapshot", "-d", b, "-d", a, "-f", "json", "-o", "ba.json")
    assert str(tmp_path) not in Path("ab.yaml").read_text()
    words = "train: its folders were first/toy/1.0.0, second/toy/1.0.0, now second/toy/1.0.0, "
    for arguments in (("ab.yaml", "ba.json"), ("ab.yaml", "-d", b, "-d", a)):
        ran = shardctl("diff", *arguments)
        assert (ran.exit_code, ran.stderr) == (1, "")
        assert ran.stdout.partition("\n")[0].endswith(
            "have the same ids, but they are other examples"
        )
        assert words in " ".join(ran.stdout.split())
        document = json.loads(shardctl("diff", *arguments, "-f", "json").stdout)
        assert (document["equal"], document["first_difference"]) == (False, None)
        [cause] = document["causes"]
        assert (cause["kind"], cause["expected"]) == ("folders", cause["actual"][::-1])
        assert "::error" in shardctl("diff", *arguments, "-f", "github").stdout
    # Both were moved; then the snapshot is accepted as it is now.
    moved = [tmp_path / "new" / name for name in ("first", "second")]
    for folder, place in zip(folders, moved, strict=True):
        shutil.copytree(folder.parent.parent, place)
    assert shardctl("diff", "ab.yaml", "-d", moved[0], "-d", moved[1]).exit_code == 0
    assert shardctl("diff", "ab.yaml", "-d", moved[1], "-d", moved[0]).exit_code == 1
    assert shardctl("diff", "ab.yaml", "-d", b, "-d", a, "--update").exit_code == 0
    assert shardctl("diff", "ab.yaml", "-d", b, "-d", a).exit_code == 0


def test_a_snapshot_of_before_does_not_know_the_order_of_folders(
    shardctl: Shardctl, folders: tuple[Path, Path], tmp_path: Path
) -> None:
    from shardctl.saved.snapshot import checksum

    a, b = folders
    longer = write_dataset(tmp_path / "third", splits={"train": [4, 4]}, with_files=False)
    for second, code in ((b, 1), (longer, 0)):
        shardctl("snapshot", "-d", a, "-d", second, "-f", "json", "-o", "old.json")
        document = json.loads(Path("old.json").read_text())
        del document["dataset"]["folders"], document["checksum"]
        document["checksum"] = checksum(document)
        Path("old.json").write_text(json.dumps(document))
        ran = shardctl("diff", "old.json", "-d", a, "-d", second)
        assert ran.exit_code == code
        assert ("were read is not known" in " ".join(ran.stdout.split())) is bool(code)
        assert ("whether they are the same examples is not known" in ran.stdout) is bool(code)


def test_plans_of_folders_in_the_other_order_do_not_read_the_same(
    shardctl: Shardctl, folders: tuple[Path, Path]
) -> None:
    a, b = folders
    for command in (("plan", "train"), ("resume", "train", "--consumed", 2)):
        shardctl(*command, "-d", a, "-d", b, "-f", "json", "-o", "ab.json")
        shardctl(*command, "-d", b, "-d", a, "-f", "json", "-o", "ba.json")
        ran = shardctl("diff", "ab.json", "ba.json")
        assert ran.exit_code == 1
        assert "are read in another order" in " ".join(ran.stdout.split())
        assert shardctl("diff", "ab.json", "ab.json").exit_code == 0


# The order of today beside files: datasets are read once, and folders' own settings not at all.


def layout(name: str, lengths: list[int]) -> None:
    text = f"name: {name}\nsplits: {{train: {{shard_lengths: {lengths}}}}}\n"
    Path(f"{name}.yaml").write_text(text)


def test_each_finds_its_dataset_which_is_read_once(
    shardctl: Shardctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("shardctl.yaml").unlink()
    layout("one", [3, 4])
    layout("two", [5, 6])
    for name, ref in (("a", "one"), ("b", "two"), ("c", "one")):
        shardctl("snapshot", "-d", f"{ref}.yaml", "-o", f"{name}.yaml")
    seen: list[str] = []

    def counting(path: Path, **options: Any) -> Any:
        seen.append(path.name)
        return read_layout_file(path, **options)

    monkeypatch.setattr("shardctl.metadata.layouts.read_layout_file", counting)
    assert shardctl("diff", "a.yaml", "b.yaml", "c.yaml").exit_code == 0
    assert seen == ["one.yaml", "two.yaml"]
    Path("shardctl.yaml").write_text("\ndataset: one.yaml\nread:\n  block: 2\n")
    seen.clear()
    ran = shardctl("diff", "--each", "b.yaml", "a.yaml", "--block", "2")
    assert (ran.exit_code, seen) == (1, ["one.yaml"])
    assert "dataset name: two became one (shardctl.yaml:2)" in ran.stdout
    assert "block: 16 became 2\n" in ran.stdout  # an option has no line
