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


@pytest.mark.parametrize(
    "command",
    [
        "layout",
        "plan train[:2]",
        "simulate --shuffle-seed 1",
        "locate --id 4",
        "resume --consumed 2",
        "hosts --hosts 2 --batch 1",
        "eval test --hosts 1 --devices 1 --batch 1",
        "quality --shuffle-seed 1",
        "lint --format json",
        "snapshot -f yaml",
        "verify --files",
        "config",
    ],
)
def test_every_question_is_answered(command: str, folder: Path, shardctl: Shardctl) -> None:
    ran = shardctl(*command.split(), "-d", "data/*.tfrecord", "--no-cache")
    assert ran.exit_code == (1 if command.startswith("lint") else 0), ran.stderr
    assert ran.stderr == ""
    assert not (Path(os.environ["SHARDCTL_CACHE_DIR"]) / "counts").exists()


def test_counts_are_kept_unless_told_otherwise(folder: Path, shardctl: Shardctl) -> None:
    assert shardctl("plan", "train", "-d", "data").exit_code == 0
    assert (Path(os.environ["SHARDCTL_CACHE_DIR"]) / "counts").exists()
    ran = shardctl("index", "data", "-f", "json")
    assert json.loads(ran.stdout)["splits"][0]["shard_lengths"] == list(LENGTHS)


def test_files_in_readers_of_stages_are_counted_as_the_command_says(
    folder: Path, shardctl: Shardctl
) -> None:
    stages = "read(train, data='data/train-*') | concatenate(read(test, data='data/test@1'))"
    ran = shardctl("simulate", "-d", "mnist", "--stages", stages, "--no-cache", "-f", "ids")
    assert ran.exit_code == 0
    assert len(ran.stdout.splitlines()) == sum(LENGTHS) + 2
    assert not (Path(os.environ["SHARDCTL_CACHE_DIR"]) / "counts").exists()


def test_a_file_that_is_no_dataset_is_not_suggested_as_one(shardctl: Shardctl) -> None:
    Path("notes.txt").write_text("no records")
    ran = shardctl("simulate", "train", "notes.txt", "-d", "mnist")
    assert ran.stderr.startswith("error: 'notes.txt' is more than simulate takes; ")
    ran = shardctl("lint", "notes.txt")
    assert ran.stderr.startswith("error: no dataset is named, and this answer is kept or checked")
    assert "read as a dataset" not in ran.stderr


def test_a_pattern_that_the_shell_has_spread_is_noticed(folder: Path, shardctl: Shardctl) -> None:
    names = sorted(f"data/{path.name}" for path in (folder / "data").glob("train-*"))
    for command in ("plan train", "simulate", "layout", "simulate --cycle 2"):
        ran = shardctl(*command.split(), "-d", *names)
        assert (ran.exit_code, ran.stdout) == (2, "")
        assert ran.stderr == (
            f"error: '{names[1]}' is a file, and a dataset is one word: put a pattern in quotes, "
            "so that the shell leaves it alone, as in -d 'data/*.tfrecord'\n"
        )


def test_files_as_a_spec_are_said_to_be_a_dataset(folder: Path, shardctl: Shardctl) -> None:
    ran = shardctl("plan", "data/train-*", "-d", "mnist")
    assert (
        ran.stderr
        == "error: 'data/train-*' is a dataset: give it with -d, as in -d 'data/train-*'\n"
    )


def test_notes_of_the_names_are_said(folder: Path, shardctl: Shardctl) -> None:
    for number in (5, 6):
        (folder / f"part-{number}.tfrecord").write_bytes(framed(b"a"))
    ran = shardctl("plan", "train", "-d", "*.tfrecord")
    assert ran.stdout.endswith("total: 2 files, 2 examples; ids 0 to 1 (2)\n")
    assert ran.stderr == "warning: train: the first number is 5\n"


def test_what_only_index_can_be_told_is_said(folder: Path, shardctl: Shardctl) -> None:
    for name in ("other-00000", "other-00001", "part-00000", "part-00001"):
        (folder / f"{name}.tfrecord").write_bytes(framed(b"a"))
    ran = shardctl("plan", "train", "-d", "*.tfrecord")
    assert ran.exit_code == 2
    assert "say which files are which split: --split NAME=" in ran.stderr
    assert ran.stderr.endswith("; shardctl index takes it, and writes a layout.yaml for here\n")


def test_a_layout_keeps_what_was_counted(folder: Path, shardctl: Shardctl) -> None:
    assert shardctl("layout", "-d", "data", "-o", "layout.yaml").exit_code == 0

    def read(ref: str) -> Dataset:
        return read_dataset([ref], env={}, cwd=folder)

    assert read("layout.yaml").is_counted
    assert read("layout.yaml").fingerprint == read("data").fingerprint
    assert not read("mnist").is_counted


ASSUMED = "the reader of TFDS with its default cycle 16 and block 16"


@pytest.mark.parametrize(
    "command",
    ["simulate", "locate --id 4", "resume --consumed 2", "quality", "snapshot", "report"],
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
    (said,) = asked("--cycle", "2")["assumptions"]
    assert said.startswith("the reader of TFDS with its default block 16")
    both_as_tfds = ["--cycle", "16", "--block", "16"]
    for stated in (["--cycle", "2", "--block", "1"], ["--cycle", "1"], both_as_tfds):
        assert "assumptions" not in asked(*stated)
    if command not in ("snapshot", "report"):
        table = shardctl(*command.split(), "-d", "data/train-*").stdout.splitlines()
        assert table[1].startswith(f"assumed: {ASSUMED}")


def test_rows_without_a_heading_leave_the_assumption_to_stderr(
    folder: Path, shardctl: Shardctl
) -> None:
    ran = shardctl("simulate", "-d", "data/train-*", "-f", "ids")
    assert ran.stdout.split() == [str(number) for number in range(6)]
    assert ran.stderr.startswith(f"assumed: {ASSUMED}")


def test_plans_and_snapshots_keep_what_they_assume(folder: Path, shardctl: Shardctl) -> None:
    words = ("-d", "data/train-*", "-o")
    for command in ("snapshot", "resume --consumed 2", "simulate"):
        file = {"snapshot": "order.yaml", "simulate": "ids.json"}.get(command, "plan.json")
        ran = shardctl(*command.split(), *words, file)
        assert ran.exit_code == 0
        assert f"assumed: {ASSUMED}" in ran.stderr  # nobody may look into the file
    for command in ("diff order.yaml", "resume --plan plan.json"):
        ran = shardctl(*command.split(), "-d", "data/train-*")
        assert ran.exit_code == 0, ran.stderr
        assert ran.stdout.splitlines()[1].startswith(f"assumed: {ASSUMED}")
    table = shardctl("verify", "--plan", "plan.json", "-d", "data/train-*").stdout.splitlines()
    assert table[1].startswith(f"assumed: {ASSUMED}")
    ran = shardctl("diff", "order.yaml", "-d", "data/train-*", "-f", "github")
    assert ran.stderr.startswith(f"assumed: {ASSUMED}")
    other = shardctl("snapshot", "--cycle", "1", *words, "other.yaml")
    assert (other.exit_code, "assumed" in other.stderr) == (0, False)
    ran = shardctl("report", "--compare", "order.yaml", "other.yaml", "-o", "compared.html")
    assert f"order.yaml: assumed: {ASSUMED}" in ran.stderr
    assert "other.yaml: assumed" not in ran.stderr


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
