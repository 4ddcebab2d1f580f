"""Files are counted by Beam where that is said, with the words after `--` as its options."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Shardctl
from tests.tfds_datasets import write_dataset


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("data"), splits={"train": [3, 0, 5]})


@pytest.mark.slow
def test_index_and_verify_say_the_same_with_beam(
    folder: Path, tmp_path: Path, shardctl: Shardctl
) -> None:
    pytest.importorskip("apache_beam", reason="Apache Beam is not installed")
    beam = ("--runner", "beam", "--", "--direct_num_workers=2")
    here, there = tmp_path / "here.yaml", tmp_path / "there.yaml"
    assert shardctl("index", folder, "-o", here, "--no-cache").exit_code == 0
    assert shardctl("index", folder, "-o", there, "--no-cache", *beam).exit_code == 0
    assert here.read_bytes() == there.read_bytes()
    assert shardctl("index", "--check", here, "--runner", "beam").exit_code == 0
    verify = ("verify", "--files", "-d", folder)
    one, other = shardctl(*verify), shardctl(*verify, *beam)
    assert (one.exit_code, one.stdout) == (other.exit_code, other.stdout)
    assert one.exit_code == 0
    broken = folder / "toy-train.tfrecord-00002-of-00003"
    whole = broken.read_bytes()
    broken.write_bytes(whole[:-3])
    ran = shardctl(*verify, "train", *beam)
    assert (ran.exit_code, "record 4 at byte 124: cut off" in ran.stdout) == (1, True)
    broken.write_bytes(whole)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("index --runner beam -- --direct_num_workers=2", "needs PATH"),
        ("index . --runner beam -- --no_such", "knows no option '--no_such'"),  # Beam reads them
    ],
)
def test_what_does_not_go_together_is_one_line(words: str, said: str, shardctl: Shardctl) -> None:
    ran = shardctl(*words.split())
    assert (ran.exit_code, said in ran.stderr, ran.stderr.count("\n")) == (2, True, 1)


@pytest.mark.slow
def test_beam_says_nothing_on_stderr(folder: Path) -> None:
    words = ["index", str(folder), "--runner", "beam", "--no-cache", "-f", "csv"]
    done = subprocess.run(
        [sys.executable, "-m", "shardctl", *words], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
