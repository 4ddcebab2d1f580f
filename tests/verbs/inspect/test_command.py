"""`shardctl inspect`, from the command line to what it writes."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.conftest import Shardctl
from tests.tfds_datasets import write_dataset

SCRIPT = Path(__file__).with_name("script.txt").read_text("utf-8")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("inspect")
    return write_dataset(root, splits={"train": [5, 0, 3, 6], "test": [2, 3]})


@pytest.fixture
def script(tf: Any, shardctl: Shardctl, built: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    Path("plain").mkdir()
    record = str(Path("plain/records").resolve())
    with tf.io.TFRecordWriter(record) as writer:
        for number in range(5):
            writer.write(str(number).encode())
    Path("train.py").write_text(SCRIPT.format(folder=str(built), record=record))
    monkeypatch.delitem(sys.modules, "train", raising=False)
    return "train.py"


def _handed_out(name: str, *arguments: Any) -> list[list[int]]:
    module = sys.modules["train"]
    with contextlib.redirect_stdout(io.StringIO()):
        dataset = getattr(module, name)(*arguments)
    return [
        [int(number) for batch in dataset.as_numpy_iterator() for number in batch] for _ in range(3)
    ]


def test_the_table_names_stages_and_lines(shardctl: Shardctl, script: str) -> None:
    ran = shardctl("inspect", f"{script}:make")
    assert ran.exit_code == 0
    assert ran.stdout.startswith("train.py:make: train of toy:1.0.0\n")
    assert "printed" not in ran.stdout
    lines = {line.split()[1]: line.split()[-1] for line in ran.stdout.splitlines()[2:8]}
    behind = dict.fromkeys(("map", "shuffle(4,", "repeat(2)", "batch(4)"), "train.py:13")
    assert lines == {"read(train,": "train.py:11", **behind}


@pytest.mark.parametrize("split", ["test", "train[2:9]"])
def test_other_commands_read_the_same_without_tensorflow(
    shardctl: Shardctl, script: str, split: str
) -> None:
    ran = shardctl("inspect", f"{script}:make", "-o", "shardctl.yaml", "--", split, "seed=3")
    assert (ran.exit_code, ran.stdout) == (0, "")
    for index, ids in enumerate(_handed_out("make", split, 3)):
        simulated = shardctl("simulate", "--pass", index, "--take", -1, "-f", "ids")
        assert simulated.stdout.split() == [str(one) for one in ids]


def test_a_scan_lets_other_commands_read_a_filter(shardctl: Shardctl, script: str) -> None:
    assert shardctl("inspect", f"{script}:odd").exit_code == 1
    assert not list(Path().rglob("*.scan"))
    Path("kept").mkdir()
    ran = shardctl("inspect", f"{script}:odd", "--scan", "-o", "kept/shardctl.yaml")
    assert (ran.exit_code, len(list(Path("kept").glob("filter-*.scan")))) == (0, 1)
    os.chdir("kept")
    for index, ids in enumerate(_handed_out("odd")):
        simulated = shardctl("simulate", "--pass", index, "--take", -1, "-f", "ids")
        assert simulated.stdout.split() == [str(one) for one in ids]


def test_an_open_order_is_found(shardctl: Shardctl, script: str) -> None:
    ran = shardctl("inspect", f"{script}:open_one")
    assert ran.exit_code == 1
    said = "filter makes the order nondeterministic at train.py:17: return ds.filter("
    assert said in ran.stdout
    document = json.loads(shardctl("inspect", f"{script}:open_one", "-f", "json").stdout)
    (stage,) = document["pipelines"][0]["open"]
    assert (document["predictable"], stage["file"], stage["line"]) == (False, "train.py", 17)


def test_a_shuffle_without_a_seed_is_written_as_commands_read_it(
    shardctl: Shardctl, script: str
) -> None:
    assert shardctl("inspect", f"{script}:unseeded", "-o", "shardctl.yaml").exit_code == 1
    assert "0, 0" not in Path("shardctl.yaml").read_text()
    assert shardctl("config").exit_code == 0
    assert shardctl("lint").exit_code == 1
    ran = shardctl("simulate")
    assert ran.exit_code == 2
    assert "shuffle(9) makes the order nondeterministic: it has no seed" in ran.stderr


def test_several_datasets(shardctl: Shardctl, script: str) -> None:
    ran = shardctl("inspect", f"{script}:both")
    assert "train.py:both [train]: train of toy:1.0.0" in ran.stdout
    assert "train.py:both [eval]: test of toy:1.0.0" in ran.stdout
    refused = shardctl("inspect", f"{script}:both", "-f", "yaml")
    assert refused.exit_code == 2
    assert refused.stderr.splitlines()[-1].startswith("error: a shardctl.yaml is about one dataset")
    chosen = shardctl("inspect", f"{script}:both", "--only", "eval", "-f", "yaml")
    assert yaml.safe_load(chosen.stdout)["read"]["stages"][0] == {"read": "test"}


def test_record_files_have_a_layout_file_beside(shardctl: Shardctl, script: str) -> None:
    refused = shardctl("inspect", f"{script}:files", "-f", "yaml")
    assert refused.exit_code == 2
    assert "give --output FILE" in refused.stderr
    ran = shardctl("inspect", f"{script}:files", "-o", "shardctl.yaml")
    assert ran.exit_code == 0
    assert "wrote plain.layout.yaml" in ran.stderr
    simulated = shardctl("simulate", "--take", -1, "-f", "ids").stdout.split()
    records = sys.modules["train"].files().as_numpy_iterator()
    assert simulated == [record.decode() for record in records]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train.py:fails"], "error: train.py:fails failed with ValueError: Unknown split 'trian'"),
        (["train"], "error: 'train' names no function"),
        (["train.py:make", "--loop", "forever"], "error: --loop 'forever': choose from"),
        (["train.py:both", "--only", "test"], "error: train.py:both returns no dataset 'test'"),
    ],
)
def test_errors_are_one_line(
    shardctl: Shardctl, script: str, words: list[str], message: str
) -> None:
    ran = shardctl("inspect", *words)
    assert (ran.exit_code, ran.stdout) == (2, "")
    (error,) = [line for line in ran.stderr.splitlines() if not line.startswith("printed")]
    assert error.startswith(message)


@pytest.mark.parametrize("command", ["inspect", "verify"])
def test_a_script_alone_is_refused_with_its_functions(shardctl: Shardctl, command: str) -> None:
    text = """raise SystemExit("it ran")
class Maker:
    def method(self): pass
if True:
    def with_split(split, *, size, seed=7): pass
def _hidden(): pass
async def later(): pass
"""
    Path("my train.py").write_text(text)
    ran = shardctl(command, "my train.py")
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.splitlines() == [
        "functions of my train.py, which was not run, those that make datasets first:",
        "  line 5: with_split(split, *, size, seed=7)",
        f"{command} one of them:",
        f"  shardctl {command} 'my train.py:with_split'",
        "error: 'my train.py' is a script with 1 function; name one, as in FILE:FUNCTION",
    ]
    for bad in ("def f(:", "x = 1", "\0", "(" * 9999):
        Path("bad.py").write_text(bad)
        ran = shardctl(command, "bad.py")
        assert (ran.exit_code, ran.stderr.count("\n")) == (2, 1)
        assert ran.stderr.startswith("error: ")
        assert "internal" not in ran.stderr
