"""A Beam pipeline counts as this machine does; what it refuses is one line."""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import sys
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shardctl.errors import DatasetError, MissingDependencyError, ShardctlError, UsageError
from shardctl.files.streams import silent_libraries
from shardctl.guide.guides import read_guide
from shardctl.metadata.index import beam_runner as pipeline
from shardctl.metadata.index.beam_runner import (
    BeamRunner,
    beam_runner,
    counted_line,
    counted_of_line,
    task_line,
    task_of_line,
)
from shardctl.metadata.index.workers import CountedFile, FileToCount
from shardctl.records import read_file
from shardctl.records.contents import Damage, FileContents
from shardctl.records.read_file import count_file
from shardctl.stores.store import StoredFile
from shardctl.stores.stores import store_of
from tests.record_files import framed

pytestmark = pytest.mark.long


def tasks_of(folder: Path, file_format: str = "tfrecord", **fields: Any) -> list[FileToCount]:
    store = store_of(str(folder))
    files = sorted(store.scan(str(folder)), key=lambda file: file.path)
    return [
        FileToCount(index=index, file=file, file_format=file_format, **fields)
        for index, file in enumerate(files)
    ]


def counted_here(tasks: list[FileToCount]) -> list[CountedFile]:
    return [
        CountedFile(
            index=task.index,
            contents=count_file(
                task.file, task.file_format, checksums=task.checksums, listed=task.listed
            ),
        )
        for task in tasks
    ]


def by_beam(tasks: list[FileToCount], *options: str) -> list[CountedFile]:
    return sorted(beam_runner(*options).count(tasks), key=lambda counted: counted.index)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    folder.mkdir()
    whole = framed(b"one", b"", b"three" * 100)
    made = {
        "0": whole,
        "1": b"",
        "2": whole[:-3],
        "3": whole[:4] + b"x" + whole[5:],
        "4": whole[:13] + b"x" + whole[14:],
        "5": gzip.compress(whole),
        "6": zlib.compress(whole),
        "7\udcff\n": whole,
    }
    for name, data in made.items():
        (folder / name).write_bytes(data)
    return folder


def test_whole_and_broken_files(files: Path) -> None:
    num_listed = len(tasks_of(files))
    (files / "8").mkdir()
    (files / "9").symlink_to("nowhere")
    listed = tasks_of(files)[:num_listed]
    checked = [replace(task, index=100 + task.index, checksums=True) for task in listed]
    paths = [str(files / name) for name in ("4", "5", "8", "9", "none")]
    mere = [
        FileToCount(
            index=200 + index,
            file=StoredFile(path=path, num_bytes=0),
            file_format="tfrecord",
            checksums=True,
            listed=False,
        )
        for index, path in enumerate(paths)
    ]
    os.unlink(files / "0")
    (files / "1").write_bytes(b"longer")  # as if it had changed since it was listed
    found = by_beam([*listed, *checked, *mere])
    assert found[: 2 * num_listed] == counted_here([*listed, *checked])
    kinds = [counted.contents.damage and counted.contents.damage.kind for counted in found]
    expected = ["missing", "unreadable", "cut", "header"]
    assert kinds[:5] == [*expected, None]
    assert kinds[num_listed : num_listed + 5] == [*expected, "data"]
    read = [counted.contents for counted in found[2 * num_listed :]]
    assert read == [one.contents for one in counted_here(mere)]
    assert kinds[2 * num_listed :] == ["data", None, "not-a-file", "not-a-file", "missing"]


@pytest.mark.slow
def test_several_processes_count_the_same(files: Path) -> None:
    tasks = tasks_of(files)
    options = ("--direct_running_mode=multi_processing", "--direct_num_workers=2")
    assert by_beam(tasks, *options) == counted_here(tasks)


JOB_SERVER = ("--runner=PortableRunner", "--environment_type=LOOPBACK")


@pytest.mark.slow
def test_a_job_server_counts_the_same(files: Path, tmp_path: Path) -> None:
    from apache_beam.runners.portability.local_job_service import LocalJobServicer

    place = tmp_path / "shared"
    server = LocalJobServicer(str(tmp_path / "staging"))
    tasks = tasks_of(files)
    with silent_libraries():
        options = [f"--job_endpoint=localhost:{server.start_grpc_server(0)}"]
    try:
        options += [*JOB_SERVER, f"--temp_location={place}"]
        assert by_beam(tasks, *options) == counted_here(tasks)
    finally:
        server.stop()
    assert list(place.iterdir()) == []


def test_what_was_counted_comes_back_through_the_folder_that_is_named(
    files: Path, tmp_path: Path
) -> None:
    place = tmp_path / "temporary"
    tasks = tasks_of(files)
    answers = beam_runner(f"--temp_location={place}").count(tasks)
    first = next(answers)
    (made,) = place.iterdir()
    assert {path.name.partition("-")[0] for path in made.iterdir()} == {"files", "counts"}
    assert len([first, *answers]) == len(tasks)
    assert list(place.iterdir()) == []


def test_a_folder_that_cannot_be_written_to(files: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"cannot use .*--temp_location after -- names another"):
        by_beam(tasks_of(files), f"--temp_location={tmp_path / 'file'}")


def failing(runner: BeamRunner, tasks: list[FileToCount]) -> ShardctlError:
    with pytest.raises(ShardctlError) as caught:
        list(runner.count(tasks))
    assert "\n" not in str(caught.value)
    return caught.value


def test_a_worker_that_fails_is_one_line(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise TypeError("no such thing")

    monkeypatch.setattr(read_file, "count_file", fails)
    error = failing(beam_runner(), tasks_of(files))
    assert isinstance(error, DatasetError)
    assert str(error).startswith("Beam's FnApiRunner failed: TypeError: no such thing")


def test_what_workers_lack_is_named(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise MissingDependencyError("pyarrow is needed")

    monkeypatch.setattr(read_file, "count_file", fails)
    error = failing(beam_runner(), tasks_of(files))
    assert isinstance(error, MissingDependencyError)
    assert str(error) == "a worker of Beam cannot count: pyarrow is needed"


@pytest.mark.parametrize("times", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_a_file_that_is_lost_or_there_twice_is_no_count(
    files: Path, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    count_line = pipeline.count_line

    def counting(line: str) -> Iterator[Any]:
        for _ in range(times if json.loads(line)["index"] == 2 else 1):
            yield from count_line(line)

    monkeypatch.setattr(pipeline, "count_line", counting)
    said = str(failing(beam_runner(), tasks_of(files)))
    assert said.startswith("Beam answered twice" if times else "Beam answered for 7 of 8 files")


def test_files_of_this_machine_are_not_for_dataflow(files: Path) -> None:
    runner = beam_runner("--runner=DataflowRunner", "--temp_location=gs://bucket/tmp")
    error = failing(runner, tasks_of(files))
    assert "workers of Dataflow do not see it" in str(error)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--runer=x"], r"Beam knows no option '--runer'"),
        (["--direct_num_worker", "2"], "knows no option '--direct_num_worker'"),
        (["two"], "'two' belongs to no option"),
        (["--direct_num_workers=two"], "invalid int value: 'two'"),
        (["--direct_num_workers"], "expected one argument"),
        (["--direct_running_mode=threads"], "invalid choice: 'threads'"),
        (["--runner=NoRunner"], "Beam has no runner 'NoRunner'; it has .*DirectRunner"),
        (["--runner=FlinkRunner"], "FlinkRunner has its workers elsewhere: give --temp_location"),
        (["--runner=SparkRunner", "--parallelism=3"], "SparkRunner has its workers elsewhere"),
    ],
)
def test_what_beam_does_not_take_is_refused(words: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        BeamRunner(words)
    assert "\n" not in str(caught.value)


def test_beam_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    installs = re.escape(" -m pip install 'apache-beam>=2.77'")
    with pytest.raises(MissingDependencyError, match=f"^Apache Beam is needed .*{installs}$"):
        BeamRunner([])


def test_beam_knows_the_options_of_the_guide() -> None:
    from apache_beam.options.pipeline_options import PipelineOptions

    text = read_guide("petabyte").text.replace("\\\n", " ")
    commands = [line for line in text.splitlines() if re.search("--runner beam.* -- ", line)]
    assert len(commands) >= 4
    runners = []
    for command in commands:
        words = shlex.split(command.removeprefix("$ ").partition(" -- ")[2])
        runners.append(BeamRunner(words).name)
        of_java = [word for word in words if not word.startswith("--parallelism")]
        known = PipelineOptions(of_java).get_all_options()
        assert known == PipelineOptions(of_java).get_all_options(retain_unknown_options=True)
    assert {"DataflowRunner", "FlinkRunner", "SparkRunner", "FnApiRunner"} <= set(runners)


_NAMES = ("a", "a b\n\r\t", "ünï", "\udcff\udc80", "gs://b/a?x#y", '"\\', "\u2028")


@pytest.mark.parametrize("name", _NAMES)
def test_files_and_counts_are_lines_of_ascii(name: str) -> None:
    file = StoredFile(path=name, num_bytes=2**40, version=name)
    task = FileToCount(index=7, file=file, file_format="tfrecord", checksums=True)
    line = task_line(task)
    assert line.isascii()
    assert "\n" not in line
    assert task_of_line(line) == task
    damage = Damage(kind="data", text=name, record=3, byte=2**40)
    for contents in (
        FileContents(num_records=None, damage=damage, checked="checksums"),
        FileContents(num_records=2**40, num_bytes=5, num_bytes_read=4, compression="GZIP"),
    ):
        counted = CountedFile(index=7, contents=contents)
        assert counted_line(counted).isascii()
        assert counted_of_line(counted_line(counted)) == counted


@pytest.mark.parametrize("line", ["", "{}", "[1]", '[1, {"num_records": 3}]', '[1, {"new": 3}]'])
def test_answers_of_another_version_are_refused(line: str) -> None:
    with pytest.raises(DatasetError, match="needs shardctl of this version"):
        counted_of_line(line)
