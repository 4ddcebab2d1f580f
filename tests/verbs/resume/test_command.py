"""`shardctl resume`, from the command line to what it writes."""

from __future__ import annotations

import csv
import gzip
import json
import os
import shlex
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Shardctl
from tests.tfds_datasets import write_dataset

LAYOUT = """
name: toy
version: 1.0.0
splits:
  train: {shard_lengths: [3, 5, 3]}
"""


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    path = tmp_path / "toy.yaml"
    path.write_text(LAYOUT)
    return path


def file(shard: int) -> str:
    return f"toy-train.tfrecord-{shard:05}-of-00003"


def test_the_ending_of_the_file_chooses_the_format(shardctl: Shardctl, toy: Path) -> None:
    for name in ("plan.json", "plan.yaml", "plan.YML"):
        ran = shardctl("resume", "--consumed", 3, "-d", toy, "-o", name)
        assert (ran.exit_code, ran.stdout) == (0, "")
        assert ran.stderr == (
            f"wrote {name}: mode exact, left: 8 examples of epoch 0 in 2 file instructions\n"
            f"next, in Python:\n  shardctl.tfds.resume(builder, '{name}')\n"
            f"this command checks it:\n  shardctl resume --plan {name} -d {toy} --prove\n"
        )
        words = shlex.split(ran.stderr.partition("  shardctl ")[2])
        assert "proof: lost 0, repeated 0, moved 0 of 8" in shardctl(*words).stdout
    assert json.loads(Path("plan.json").read_text()) == yaml.safe_load(
        Path("plan.yaml").read_text()
    )
    assert Path("plan.YML").read_text() == Path("plan.yaml").read_text()
    ran = shardctl("resume", "--consumed", 3, "-d", toy, "-f", "table", "-o", "plan.json")
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.startswith("error: --output 'plan.json' is no place for table; ")
    assert json.loads(Path("plan.json").read_text())["kind"] == "resume"


@pytest.mark.parametrize("framework", ["loop", "keras", "flax"])
def test_a_script_for_a_framework_is_python_without_saying_so(
    shardctl: Shardctl, toy: Path, framework: str
) -> None:
    stopped = ("--steps", 2, "--batch", 2, "--buffer", 3, "--buffer-seed", 7, "-d", toy)
    printed = shardctl("resume", *stopped, "--for", framework)
    assert (printed.exit_code, printed.stderr) == (0, "")
    compile(printed.stdout, "train.py", "exec")
    assert shardctl("resume", *stopped, "--for", framework, "-f", "python") == printed
    written = shardctl("resume", *stopped, "--for", framework, "--prove", "-o", "train.py")
    assert Path("train.py").read_text() == printed.stdout
    assert written.stderr == (
        "wrote train.py: mode exact-order, left: 7 examples of epoch 0 in 3 file instructions\n"
        "next: edit prepare(), the model and the loss; rerun it after an interruption\n"
        "proof: lost 0, repeated 0, moved 0 of 7 examples\n"
    )
    shardctl("resume", *stopped, "--mode", "exact-order", "-o", "plan.yaml")
    of_file = shardctl("resume", "--plan", "plan.yaml", "-d", toy, "--for", framework)
    assert of_file == printed


def test_a_plan_is_checked_against_its_dataset(shardctl: Shardctl, toy: Path) -> None:
    shardctl("resume", "--consumed", 3, "-d", toy, "-o", "plan.yaml")
    ran = shardctl("resume", "--plan", "plan.yaml", "-d", toy, "--prove")
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert ran.stdout.endswith("proof: lost 0, repeated 0, moved 0 of 8 examples\n")
    toy.write_text(LAYOUT.replace("5, 3", "5, 4"))
    ran = shardctl("resume", "--plan", "plan.yaml", "-d", toy)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr == (
        "error: the plan was made for another state of toy:1.0.0: "
        "its split train was 11 examples in 3 shards, now 12 examples in 3 shards\n"
    )


@pytest.mark.tensorflow
def test_a_plan_of_another_version_is_taken_knowingly(shardctl: Shardctl, toy: Path) -> None:
    shardctl("resume", "--consumed", 3, "-d", toy, "-o", "plan.yaml")
    toy.write_text(LAYOUT.replace("1.0.0", "2.0.0"))
    ran = shardctl("resume", "--plan", "plan.yaml", "-d", toy)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr == (
        "error: the plan was made for another state of toy:1.0.0: "
        "its version was 1.0.0, now 2.0.0; --allow-version accepts it\n"
    )
    for command in ("resume", "verify"):
        ran = shardctl(command, "--plan", "plan.yaml", "-d", toy)
        assert (ran.exit_code, ran.stdout) == (2, "")
        ran = shardctl(command, "--plan", "plan.yaml", "-d", toy, "--allow-version")
        assert ran.exit_code == 0
    ran = shardctl("resume", "--plan", "plan.yaml", "-d", toy, "--allow-version", "-o", "new.yaml")
    assert ran.exit_code == 0
    assert shardctl("resume", "--plan", "new.yaml", "-d", toy, "--prove").exit_code == 0
    toy.write_text(LAYOUT.replace("1.0.0", "2.0.0").replace("5, 3", "5, 4"))
    ran = shardctl("resume", "--plan", "plan.yaml", "-d", toy, "--allow-version")
    assert ran.exit_code == 2
    assert "train was 11 examples in 3 shards, now 12 examples in 3 shards" in ran.stderr


def test_folders_in_the_other_order_are_named(shardctl: Shardctl, tmp_path: Path) -> None:
    a, b = (write_dataset(tmp_path / name, splits={"train": [4, 3]}) for name in "ab")
    shardctl("resume", "--consumed", 3, "-d", a, "-d", b, "-o", "plan.json")
    assert shardctl("resume", "--plan", "plan.json", "-d", a, "-d", b, "--prove").exit_code == 0
    for options in ((), ("--prove",), ("--allow-version",)):
        ran = shardctl("resume", "--plan", "plan.json", "-d", b, "-d", a, *options)
        assert (ran.exit_code, ran.stdout) == (2, "")
        assert "now b/toy/1.0.0, a/toy/1.0.0; they are read in another order" in ran.stderr


def test_a_broken_promise_exits_with_one(shardctl: Shardctl, toy: Path) -> None:
    from dataclasses import replace

    from shardctl.files.documents import to_yaml
    from shardctl.saved.plan_file import plan_document, read_plan

    shardctl("resume", "--consumed", 3, "--cycle", 1, "-d", toy, "-o", "plan.yaml")
    plan = read_plan("plan.yaml")
    # A plan that says it begins elsewhere, with a digest of its own.
    Path("plan.yaml").write_text("".join(to_yaml(plan_document(replace(plan, consumed=2)))))
    ran = shardctl("resume", "--plan", "plan.yaml", "-d", toy, "--prove", "-f", "json")
    assert ran.exit_code == 1
    proof = json.loads(ran.stdout)["proof"]
    broken = {promise["name"]: promise for promise in proof.pop("broken")}
    assert proof == {"compared": 9, "lost": 1, "repeated": 0, "moved": 9}
    assert broken["remaining"] == {"name": "remaining", "promised": "8", "found": "9"}
    *promises, last = ran.stderr.splitlines()
    assert len(promises) == len(broken)
    assert promises[0] == ("broken promise: remaining: the plan says 8, the pipeline comes to 9")
    assert last == "proof: lost 1, repeated 0, moved 9 of 9 examples"


def test_a_log_of_what_was_seen(shardctl: Shardctl, toy: Path) -> None:
    log = "\n".join(f"{file(1)}__{index}" for index in (4, 0, 4)) + "\n"
    Path("seen.txt").write_text(log)
    Path("seen.gz").write_bytes(gzip.compress(log.encode()))
    plain, zipped = (
        shardctl("resume", "--seen", name, "-d", toy, "-f", "csv", "--shuffle-files")
        for name in ("seen.txt", "seen.gz")
    )
    assert plain == zipped
    assert [row[1:5] for row in csv.reader(plain.stdout.splitlines())][1:] == [
        [file(0), "train", "0", "3"],
        [file(1), "train", "1", "3"],
        [file(2), "train", "0", "3"],
    ]
    ran = shardctl("resume", "--seen", "seen.txt", "-d", toy, "--prove", "-o", "plan.json")
    assert ran.stderr == (
        "wrote plan.json: mode exactly-once, left: 9 examples in 3 file instructions\n"
        "next, in Python:\n  shardctl.tfds.resume(builder, 'plan.json')\n"
        f"this command checks it:\n  shardctl resume --plan plan.json -d {toy}\n"
        "proof: lost 0, repeated 0 of 9 examples\n"
    )
    ran = shardctl("resume", "--plan", "plan.json", "-d", toy, "--prove")
    assert (ran.exit_code, "give it again with --seen FILE" in ran.stderr) == (2, True)
    ran = shardctl("resume", "--plan", "plan.json", "-d", toy, "--prove", "--seen", "seen.txt")
    assert ran.exit_code == 0
    Path("seen.txt").write_text(f"{log}{file(3)}__0\n")
    ran = shardctl("resume", "--seen", "seen.txt", "-d", toy)
    assert ran.exit_code == 2
    assert ran.stderr.startswith("error: 'seen.txt', line 4: tfds_id ")


@pytest.fixture
def elsewhere(shardctl: Shardctl, tmp_path: Path) -> Path:
    """Two layouts of one dataset and two folders in the working folder; returns another folder."""
    for name in ("big", "more"):
        Path(f"{name}.yaml").write_text("splits: {train: {shard_lengths: [3, 5, 3]}}\n")
    for name in ("one", "two"):
        write_dataset(Path(name).absolute(), splits={"train": [3, 5]}, with_files=False)
    Path("plans").mkdir()
    folder = tmp_path / "else" / "where"
    folder.mkdir(parents=True)
    return folder


@pytest.mark.long
@pytest.mark.parametrize(
    ("given", "kept", "name"),
    [
        (["big.yaml"], ["../big.yaml"], "plan.json"),
        (["./one/toy/1.0.0"], ["../one/toy/1.0.0"], "plan.yaml"),
        (["one", "two"], ["../one", "../two"], "plan.json"),
        (["{cwd}/big.yaml"], ["{cwd}/big.yaml"], "plan.yaml"),
        (["mnist"], None, "plan.yaml"),
    ],
)
def test_the_dataset_of_a_plan_is_found_again_from_any_folder(
    given: list[str],
    kept: list[str] | None,
    name: str,
    shardctl: Shardctl,
    elsewhere: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cwd = Path.cwd()
    refs = [word for ref in given for word in ("-d", ref.format(cwd=cwd))]
    assert not shardctl("resume", "--consumed", 2, *refs, "-o", f"plans/{name}").exit_code
    document = yaml.safe_load(Path(f"plans/{name}").read_text("utf-8"))
    assert document["format_version"] == 1
    assert document.get("refs") == (kept and [ref.format(cwd=cwd) for ref in kept])
    before = shardctl("resume", "--plan", f"plans/{name}", *refs).stdout
    for folder in (cwd, cwd / "plans", elsewhere):
        monkeypatch.chdir(folder)
        path = os.path.relpath(cwd / "plans" / name)
        for one in (path, cwd / "plans" / name)[: 2 if folder == elsewhere else 1]:
            ran = shardctl("resume", "--plan", one)
            shown = ran.stdout.replace(str(one), f"plans/{name}")  # in the call that reads it
            assert (ran.exit_code, ran.stderr, shown) == (0, "", before)
        # Written again elsewhere, it leads there too.
        assert not shardctl("resume", "--plan", path, "-o", elsewhere / name).exit_code
        again = shardctl("resume", "--plan", elsewhere / name).stdout
        assert again.replace(str(elsewhere / name), f"plans/{name}") == before
        assert shardctl("diff", path, elsewhere / name).exit_code == 0


def test_a_dataset_that_is_named_wins_over_what_a_plan_says(
    shardctl: Shardctl, elsewhere: Path
) -> None:
    shardctl("resume", "--consumed", 2, "-d", "big.yaml", "-o", "plan.yaml")
    Path("big.yaml").write_text("splits: {train: {shard_lengths: [3, 5, 4]}}\n")
    changed = shardctl("resume", "--plan", "plan.yaml")
    assert changed.exit_code == 2
    assert "train was 11 examples in 3 shards, now 12 examples in 3 shards" in changed.stderr
    Path("other").mkdir()
    Path("more.yaml").rename("other/big.yaml")
    assert shardctl("resume", "--plan", "plan.yaml", "-d", "other/big.yaml").exit_code == 0
    Path("big.yaml").unlink()
    missing = shardctl("resume", "--plan", "plan.yaml")
    assert (missing.exit_code, missing.stdout) == (2, "")
    assert missing.stderr == (
        "error: plan.yaml: no file or folder 'big.yaml'; say where the plan's dataset is with "
        "--dataset REF\n"
    )


def test_a_plan_that_would_not_be_read_back_is_not_written(
    shardctl: Shardctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shardctl.files.parse.MAX_VALUES", 600_000)
    layout = tmp_path / "many.yaml"
    layout.write_text("name: many\nsplits: {train: {num_examples: 600000, num_shards: 60000}}")
    ran = shardctl("resume", "--consumed", 10, "-d", layout, "-o", "plan.yaml")
    assert ran.exit_code == 2
    assert ran.stderr.startswith(
        "error: a plan file of 59,999 file instructions would not be read back; plan with sha"
    )
    assert not Path("plan.yaml").exists()
    assert shardctl("resume", "--consumed", 10, "-d", layout, "-o", "plan.csv").exit_code == 0


def test_a_plan_that_was_moved_finds_the_folder_where_it_lay(
    shardctl: Shardctl, elsewhere: Path
) -> None:
    shardctl("resume", "--consumed", 2, "-d", "one", "-o", "plan.yaml")
    Path("plan.yaml").rename(elsewhere / "plan.yaml")
    assert shardctl("resume", "--plan", elsewhere / "plan.yaml").exit_code == 0
    # A dataset of another layout at the path that it has kept is not taken for it.
    write_dataset(elsewhere / "one", splits={"train": [4, 4]}, with_files=False)
    assert shardctl("resume", "--plan", elsewhere / "plan.yaml").exit_code == 0
