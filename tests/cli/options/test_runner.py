"""Files are counted by Beam where that is said, with the words after `--` as its options."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from shardctl.cli.main import main
from tests.tfds_datasets import write_dataset


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("data"), splits={"train": [3, 0, 5]})


def code_of(*words: object) -> int | str | None:
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    return ended.value.code


@pytest.mark.slow
def test_index_and_verify_say_the_same_with_beam(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("apache_beam", reason="Apache Beam is not installed")
    here, there = tmp_path / "here.yaml", tmp_path / "there.yaml"
    assert code_of("index", folder, "-o", here, "--no-cache") == 0
    by_beam = ("index", "--runner", "beam", folder, "-o", there, "--no-cache")
    assert code_of(*by_beam, "--", "--direct_num_workers=2") == 0
    assert here.read_bytes() == there.read_bytes()
    assert code_of("index", "--check", here, "--runner", "beam") == 0
    capsys.readouterr()
    verify = ("verify", "--files", "-d", folder)
    answers = []
    for words in ((), ("--runner", "beam", "--", "--direct_num_workers=2")):
        assert code_of(*verify, *words) == 0
        answers.append(capsys.readouterr().out)
    assert answers[0] == answers[1]
    broken = folder / "toy-train.tfrecord-00002-of-00003"
    whole = broken.read_bytes()
    broken.write_bytes(whole[:-3])
    assert code_of(*verify, "train", "--runner", "beam", "--", "--direct_num_workers=2") == 1
    assert "record 4 at byte 124: cut off" in capsys.readouterr().out
    broken.write_bytes(whole)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("index --runner beam -- --direct_num_workers=2", "no PATH"),
        ("index . --runner beam -- --no_such", "knows no option '--no_such'"),  # Beam reads them
    ],
)
def test_what_does_not_go_together_is_one_line(
    words: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of(*words.split()) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1


@pytest.mark.slow
def test_beam_says_nothing_on_stderr(folder: Path) -> None:
    words = ["index", str(folder), "--runner", "beam", "--no-cache", "-f", "csv"]
    done = subprocess.run(
        [sys.executable, "-m", "shardctl", *words], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
