"""Data in S3, Google Cloud Storage, on the hub and on a web server, through the command line."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Shardctl
from tests.forked_scripts import forking_commands
from tests.tfds_datasets import write_dataset

pytestmark = pytest.mark.long

LENGTHS = {"train": [30, 0, 50, 20], "test": [7, 6]}


def _slow(*values: str) -> Any:
    """Return parameters with S3 or Google: to load a client and a server takes seconds."""
    return pytest.param(*values, marks=pytest.mark.slow)


PLACES = (_slow("s3"), _slow("gcs"), "hub", "web")
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("layout", "-f", "json", "-d", "@/toy/1.0.0"),
    ("layout", "-f", "json", "-d", "@/spoilt/1.0.0"),
    ("plan", "train[:50%]+test", "--hosts", "3", "-f", "json", "-d", "@/toy/1.0.0"),
    ("simulate", "--shuffle-seed", "3", "-f", "tfds-ids", "-d", "@/toy"),
    ("quality", "--memory", "1MiB", "-f", "json", "-d", "toy", "--data-dir", "@"),
    ("verify", "--files", "-f", "json", "-d", "@/toy/1.0.0"),
    ("verify", "--files", "-f", "json", "-d", "@/spoilt/1.0.0"),
    ("verify", "--files", "-f", "json", "-d", "arrays", "--data-dir", "@"),
    ("list", "-f", "json", "--data-dir", "@"),
    ("plan", "train", "-d", "@/toy/2.0.0"),
    ("plan", "train", "-d", "tou", "--data-dir", "@"),
)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data dir as TFDS writes one; one dataset of it is not as its metadata says."""
    root = tmp_path_factory.mktemp("remote") / "tfds"
    write_dataset(root, splits=LENGTHS)
    folder = write_dataset(root, name="spoilt", splits=LENGTHS)
    (folder / "spoilt-train.tfrecord-00002-of-00004").unlink()
    (folder / "spoilt-train.tfrecord-00004-of-00005").write_bytes(b"x")
    (folder / "spoilt-test.tfrecord-00001-of-00002").write_bytes(b"no records at all, but bytes")
    write_dataset(root, name="arrays", splits=LENGTHS, file_format="array_record")
    return root


@pytest.fixture(params=PLACES)
def there(request: pytest.FixtureRequest, data: Path) -> str:
    """The URL of a copy of the data dir in a place of each kind."""
    place: Any = request.getfixturevalue(request.param)
    for file in sorted(data.rglob("*")):
        if file.is_file():
            place.put(f"tfds/{file.relative_to(data).as_posix()}", file.read_bytes())
    url: str = place.url("tfds")
    return url


Answer = tuple[str, str, int]


def answer(shardctl: Shardctl, place: str, command: tuple[str, ...]) -> Answer:
    """Return what a command says and its exit code, with @ and ~ for the folders."""
    ran = shardctl(*(word.replace("@", place) for word in command))
    out, errors = (
        text.replace(place, "@").replace(str(Path.home()), "~") for text in (ran.stdout, ran.stderr)
    )
    return out, errors, ran.exit_code


@pytest.fixture(scope="module")
def on_a_disk() -> dict[tuple[str, ...], Answer]:
    """The answers about the data on a disk, once one was asked for."""
    return {}


def test_commands_answer_as_about_the_copy_on_a_disk(
    shardctl: Shardctl, data: Path, there: str, on_a_disk: dict[tuple[str, ...], Answer]
) -> None:
    for command in COMMANDS:
        if command not in on_a_disk:
            on_a_disk[command] = answer(shardctl, str(data), command)
        assert answer(shardctl, there, command) == on_a_disk[command], command


def test_of_a_prepared_dataset_its_metadata_alone_is_asked_for(
    shardctl: Shardctl, data: Path, web: Any
) -> None:
    web.put("tfds/dataset_info.json", (data / "toy/1.0.0/dataset_info.json").read_bytes())
    for words in (["plan"], ["simulate"], ["lint"], ["snapshot"], ["resume", "--consumed", 5]):
        web.requests.clear()
        assert shardctl(*words, "train", "-d", web.url("tfds")).exit_code in (0, 1)
        assert web.requests == ["GET /tfds/dataset_info.json"]


@pytest.mark.slow
def test_few_requests_are_made(
    shardctl: Shardctl, data: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Of a prepared dataset its metadata alone is asked for, and of a folder one listing."""
    url = request.getfixturevalue("there_in_s3")  # is skipped where no client of S3 is installed
    from aiobotocore.client import AioBaseClient

    calls: list[str] = []
    send = AioBaseClient._make_api_call

    async def counted(client: Any, operation: str, asked: dict[str, Any]) -> Any:
        calls.append(operation)
        return await send(client, operation, asked)

    monkeypatch.setattr(AioBaseClient, "_make_api_call", counted)

    def asked_by(*command: str) -> dict[str, int]:
        calls.clear()
        assert shardctl(*command).exit_code in (0, 1)
        return dict(Counter(calls))

    metadata = {"HeadObject": 1, "GetObject": 1}
    folder = f"{url}/toy/1.0.0"
    for command in ("plan", "simulate", "lint", "snapshot"):
        assert asked_by(command, "train", "-d", folder) == metadata
    assert asked_by("resume", "train", "--consumed", "5", "-d", folder) == metadata
    assert asked_by("layout", "-d", folder) == {**metadata, "ListObjectsV2": 1}
    assert asked_by("hosts", "--hosts", "2", "-d", folder) == {**metadata, "ListObjectsV2": 1}
    # The default config is asked for, the versions are listed, and the newest is looked at. Of what
    # is no object s3fs asks whether it is a folder.
    by_name = {"HeadObject": 3, "GetObject": 1, "ListObjectsV2": 2}
    assert asked_by("plan", "train", "-d", "toy", "--data-dir", url) == by_name
    by_version = {"HeadObject": 2, "GetObject": 1}
    assert asked_by("plan", "train", "-d", "toy:1.0.0", "--data-dir", url) == by_version
    # Of a file of record files its bytes are asked for, which are few here, and its state before
    # and behind them.
    files = {"HeadObject": 6 + 1 + 6, "GetObject": 5 + 1, "ListObjectsV2": 1}
    assert asked_by("verify", "--files", "-d", folder) == files


@pytest.fixture
def there_in_s3(started_s3: Any, s3: Any, data: Path) -> str:
    """The URL of a copy of the data dir in S3."""
    for file in sorted(data.rglob("*")):
        if file.is_file():
            s3.put(f"counted/{file.relative_to(data).as_posix()}", file.read_bytes())
    url: str = s3.url("counted")
    return url


@pytest.mark.parametrize(
    ("place", "ref", "said"),
    [
        _slow("s3", "s3://no-such-bucket/toy", "there is no bucket of this name"),
        _slow("gcs", "gs://no-such-bucket/toy", "no bucket"),
        (
            "hub",
            "hf://datasets/nobody/nothing/toy",
            "there is no such repository, or it is private",
        ),
        _slow("s3", "s3://bucket/nothing/here", "no file or folder 's3://bucket/nothing/here'"),
        _slow("gcs", "gs://bucket/nothing/here", "no file or folder 'gs://bucket/nothing/here'"),
    ],
)
def test_what_cannot_be_read_is_one_line(
    shardctl: Shardctl, request: pytest.FixtureRequest, place: str, ref: str, said: str
) -> None:
    request.getfixturevalue(place)
    for words in (("-d", ref), ("-d", "toy", "--data-dir", ref.rpartition("/")[0])):
        ran = shardctl("plan", "train", *words)
        assert (ran.exit_code, ran.stdout) == (2, "")
        assert ran.stderr.startswith("error: ")
        assert ran.stderr.count("\n") == 1
        if words[0:2] == ("-d", ref):
            assert said in ran.stderr


@pytest.mark.parametrize(
    ("package", "ref", "extra"),
    [("s3fs", "s3://bucket/toy", "s3"), ("gcsfs", "gs://bucket/toy", "gcs")],
)
def test_a_package_that_is_not_installed_is_named(
    package: str, ref: str, extra: str, tmp_path: Path
) -> None:
    script = f"import sys; sys.modules[{package!r}] = None; from shardctl.cli.main import main"
    program = f"{script}; main({['plan', 'train', '-d', ref]!r})"
    (ran,) = forking_commands().run([["-c", program]], tmp_path, NO_GCE_CHECK="true")
    assert (ran.code, ran.out) == (2, "")
    assert ran.errors == (
        f"error: reading {extra.replace('gcs', 'gs')}:// needs a package: "
        f"pip install 'shardctl[{extra}]'\n"
    )
