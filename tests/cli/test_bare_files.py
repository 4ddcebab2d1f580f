"""Commands on record files without metadata: answers, hints, and the cache of counts."""

from __future__ import annotations

import json
import os
import runpy
from pathlib import Path
from typing import Any

import pytest

from shardctl.dataset.dataset import Dataset
from shardctl.metadata.reference import read_dataset
from tests.cli.conftest import Shardctl
from tests.record_files import framed

LENGTHS = (3, 1, 2)


@pytest.fixture
def folder(shardctl: Shardctl) -> Path:
    """The working folder, with `data/train-0000i-of-00003.tfrecord` and a test split."""
    folder = Path.cwd()
    (folder / "data").mkdir()
    for shard, length in enumerate(LENGTHS):
        file = folder / "data" / f"train-{shard:05}-of-00003.tfrecord"
        file.write_bytes(framed(*(f"{shard}/{index}".encode() for index in range(length))))
    (folder / "data" / "test-00000-of-00001.tfrecord").write_bytes(framed(b"a", b"b"))
    return folder


def test_counts_are_kept_unless_told_otherwise(folder: Path, shardctl: Shardctl) -> None:
    counts = Path(os.environ["SHARDCTL_CACHE_DIR"]) / "counts"
    assert shardctl("plan", "train", "-d", "data", "--no-cache").exit_code == 0
    stages = "read(train, data='data/train-*')"
    assert shardctl("simulate", "-d", "mnist", "--stages", stages, "--no-cache").exit_code == 0
    assert not counts.exists()
    assert shardctl("plan", "train", "-d", "data").exit_code == 0
    assert counts.exists()
    ran = shardctl("index", "data", "-f", "json")
    assert json.loads(ran.stdout)["splits"][0]["shard_lengths"] == list(LENGTHS)


def test_a_layout_keeps_what_was_counted(folder: Path, shardctl: Shardctl) -> None:
    assert shardctl("layout", "-d", "data", "-o", "layout.yaml").exit_code == 0

    def read(ref: str) -> Dataset:
        return read_dataset([ref], cwd=folder)

    assert read("layout.yaml").is_counted
    assert read("layout.yaml").fingerprint == read("data").fingerprint
    assert not read("mnist").is_counted


ASSUMED = "the reader of TFDS with its default cycle 16 and block 16"


@pytest.mark.parametrize(
    "command", ["simulate", "locate --id 4", "resume --consumed 2", "quality", "snapshot", "report"]
)
def test_an_answer_about_an_order_says_whose_reading_it_assumes(
    command: str, folder: Path, shardctl: Shardctl
) -> None:
    def asked(*words: str) -> dict[str, Any]:
        ran = shardctl(*command.split(), "-d", "data/train-*", "-f", "json", *words)
        assert ran.exit_code == 0, ran.stderr
        return dict(json.loads(ran.stdout))

    (said,) = asked()["assumptions"]
    assert said.startswith(ASSUMED)
    assert "--cycle 1" in said
    assert "shardctl inspect FILE:FUNCTION" in said
    assert "assumptions" not in asked("--cycle", "1")


def test_what_is_assumed_is_the_reader_of_tfds_and_cycle_1_is_plain_tensorflow(
    folder: Path, shardctl: Shardctl, tf: Any
) -> None:
    from shardctl.tfds import record_files

    lengths = (20, 17, 18)  # more than a block
    files = []
    for shard, length in enumerate(lengths):
        files.append(folder / f"part-{shard:05}-of-00003.tfrecord")
        texts = [str(sum(lengths[:shard]) + index).encode() for index in range(length)]
        files[-1].write_bytes(framed(*texts))

    def ids(*words: str) -> list[int]:
        words = ("--take", "-1", "-d", "part-*", "-f", "ids", *words)
        return [int(line) for line in shardctl("simulate", *words).stdout.split()]

    plain = tf.data.TFRecordDataset(sorted(map(str, files)))
    assert ids("--cycle", "1") == [int(text) for text in plain.as_numpy_iterator()]
    builder = record_files("part-*")
    read = builder.as_dataset(split="train", shuffle_files=False).as_numpy_iterator()
    assert ids() == [int(example["record"]) for example in read]
    assert ids() != ids("--cycle", "1")
    (said,) = json.loads(shardctl("verify", "-d", "part-*", "-f", "json").stdout)["assumptions"]
    assert said.startswith(ASSUMED)


def test_code_of_an_order_reads_the_files(folder: Path, shardctl: Shardctl, tf: Any) -> None:
    words = ("--shuffle-seed", "3", "--cycle", "2", "--block", "1", "-d", "data/train-*")
    ran = shardctl("simulate", *words, "-f", "python", "-o", "order.py")
    assert ran.exit_code == 0
    made = runpy.run_path("order.py")["ds"]
    expected = shardctl("simulate", *words, "-f", "tfds-ids").stdout.split()
    found = [example["record"].decode() for example in made.as_numpy_iterator()]
    assert found == [f"{int(name[6:11])}/{name.partition('__')[2]}" for name in expected]
