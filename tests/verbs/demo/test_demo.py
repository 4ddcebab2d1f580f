"""`shardctl demo`: real TFDS reads it, and it is written whole or not at all."""

from __future__ import annotations

import os
import zlib
from pathlib import Path

import pytest

import shardctl as api
from shardctl.verbs.demo.answer import demo_files, write_demo
from tests.children import run_command
from tests.record_files import framed
from tests.tfds_datasets import build_dataset, read_ids


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("parent") / "demo"
    write_demo(str(folder))
    return folder


def test_the_toy_is_what_tfds_itself_writes(demo: Path, tmp_path: Path) -> None:
    written = build_dataset(tmp_path, "toy", {"train": [200, 100, 50, 50]})
    for file in written.glob("*.tfrecord*"):
        assert (demo / "toy" / "1.0.0" / file.name).read_bytes() == file.read_bytes()


def test_tfds_reads_the_datasets_by_name(demo: Path) -> None:
    import tensorflow_datasets as tfds

    toy = tfds.load("toy", data_dir=demo, split="train")
    assert sorted(read_ids(toy)) == list(range(400))
    for split, count in {"train": 640, "test": 769}.items():
        one_by_one = tfds.ReadConfig(interleave_cycle_length=1)
        ds = tfds.load("digits", data_dir=demo, split=split, read_config=one_by_one)
        digits = list(ds.as_numpy_iterator())
        assert [digit["label"] for digit in digits] == [i % 10 for i in range(count)]
        images = {digit["image"].tobytes() for digit in digits}
        assert digits[0]["image"].shape == (28, 28, 1)
        assert len(images) == count


def test_record_files_are_framed_as_tensorflow_has_it(demo: Path) -> None:
    record = framed(b"twenty-five bytes of data")
    assert (demo / "logs" / "train-7.tfrecord").read_bytes() == 3 * record
    assert (demo / "clicks" / "train-00003-of-00004.tfrecord").read_bytes() == 140 * record


def test_two_files_are_damaged_and_no_other(demo: Path) -> None:
    found = api.verify_files(demo / "damaged")
    assert sorted(one.filename for one in found.findings) == [
        "toy-train.tfrecord-00000-of-00004",
        "toy-train.tfrecord-00003-of-00004",
    ]
    assert not api.verify_files(demo / "digits").findings


def test_its_shardctl_yaml_files_name_datasets_that_are_there(demo: Path) -> None:
    alone = run_command("simulate", "--take", "2", "-f", "ids", folder=demo)
    assert (alone.code, alone.out.split()) == (0, ["0", "1"])
    mixed = run_command("simulate", "--take", "-1", "-f", "ids", folder=demo / "mixture")
    assert (mixed.code, len(mixed.out.split())) == (0, 1000)


def test_every_demo_has_the_same_bytes() -> None:
    first, again = (zlib.crc32(repr(list(demo_files())).encode()) for _ in range(2))
    assert first == again


def test_a_folder_that_holds_something_is_refused(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").touch()
    (tmp_path / "file").touch()
    for name, rule in (("full", "is not empty"), ("file", "is there already, and is no folder")):
        ran = run_command("demo", name, folder=tmp_path)
        expected = f"error: '{name}' {rule}; name a new folder, or an empty one\n"
        assert (ran.code, ran.out, ran.errors) == (2, "", expected)
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["notes.txt"]


def test_an_empty_folder_is_filled_and_stays_the_same(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    here = os.stat(tmp_path / "here").st_ino
    ran = run_command("demo", "here", folder=tmp_path)
    assert (ran.code, ran.errors) == (0, "")
    assert "\nnext:\n  cd here && shardctl simulate --take 8\n" in ran.out
    assert os.stat(tmp_path / "here").st_ino == here
    assert {path.name for path in (tmp_path / "here").iterdir()} >= {"toy", "train.py"}


def test_what_cannot_be_written_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(api.UsageError, match=r"^cannot write '/none/demo': No such file"):
        write_demo("/none/demo")
    monkeypatch.setattr(Path, "write_bytes", _full)
    with pytest.raises(api.UsageError, match="No space left"):
        write_demo(str(tmp_path / "demo"))
    assert not [*tmp_path.iterdir()]


def _full(path: Path, data: bytes) -> int:
    raise OSError(28, "No space left on device")
