"""Every command answers about data behind a URL as about their copy on a disk."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.byte_sources import in_memory
from tests.cli.conftest import Shardctl
from tests.golden import listed
from tests.tfds_datasets import write_dataset

LENGTHS = {"train": [30, 0, 50, 20], "test": [7, 6]}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data dir: toy in two versions, of which a file is missing in one, and array records."""
    root = tmp_path_factory.mktemp("remote") / "tfds"
    write_dataset(root, splits=LENGTHS)
    folder = write_dataset(root, name="spoilt", splits=LENGTHS)
    (folder / "spoilt-train.tfrecord-00002-of-00004").unlink()
    (folder / "spoilt-train.tfrecord-00004-of-00005").touch()
    (folder / "spoilt-test.tfrecord-00001-of-00002").write_bytes(b"no records at all, but bytes")
    write_dataset(root, name="arrays", splits=LENGTHS, file_format="array_record")
    write_dataset(root, name="arrays", splits=LENGTHS, file_format="parquet", version="2.0.0")
    return root


@pytest.fixture(scope="module")
def there(data: Path) -> str:
    """The URL of a copy of the data dir."""
    return in_memory(data)


ORDER = ("--shuffle-seed", "3", "--buffer", "10", "--buffer-seed", "4", "--batch", "8")
COMMANDS = listed(Path(__file__).with_name("remote_data.txt"), globals())


def answer(shardctl: Shardctl, place: str, command: tuple[str, ...]) -> tuple[str, str, int]:
    """Return what a command says and its exit code, with @ for the folder."""
    ran = shardctl(*(word.replace("@", place) for word in command))
    stdout = ran.stdout.replace(place, "@").replace("'", "")
    stdout = re.sub(r'"digest": "sha256:\w+"', "", stdout)  # of the data dir too
    home = str(Path.home())
    return (
        stdout.replace(home, "~"),
        ran.stderr.replace(place, "@").replace(home, "~"),
        ran.exit_code,
    )


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_command_answers_as_about_the_copy_on_a_disk(
    shardctl: Shardctl, data: Path, there: str, command: tuple[str, ...]
) -> None:
    assert answer(shardctl, there, command) == answer(shardctl, str(data), command)


def _slow(*values: str) -> Any:
    """Return parameters with S3 or Google: to load a client and a server takes seconds."""
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.long
@pytest.mark.parametrize("kind", [_slow("s3"), _slow("gcs"), "hub"])
def test_each_protocol_answers_as_the_disk(
    kind: str, shardctl: Shardctl, data: Path, request: pytest.FixtureRequest
) -> None:
    place: Any = request.getfixturevalue(kind)
    for file in sorted(data.rglob("*")):
        if file.is_file():
            place.put(f"tfds/{file.relative_to(data).as_posix()}", file.read_bytes())
    for command in COMMANDS:
        if command[0] in ("layout", "plan", "list", "quality") or "--files" in command:
            here = answer(shardctl, str(data), command)
            assert answer(shardctl, place.url("tfds"), command) == here, command


def test_the_data_dir_of_an_answer_is_the_url(shardctl: Shardctl, there: str) -> None:
    code = shardctl("simulate", "-f", "python", "-d", f"{there}/toy").stdout
    assert f'builder_from_directory("{there}/toy/1.0.0")' in code
    table = shardctl("layout", "-d", f"{there}/toy").stdout
    assert table.startswith(f"toy:1.0.0: tfrecord, {there}/toy/1.0.0, bytes of the files\n")


def test_what_is_written_is_found_again_from_any_folder(
    shardctl: Shardctl, there: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = f"{there}/toy/1.0.0"
    (tmp_path / "deep" / "down").mkdir(parents=True)
    files = {
        "order.yaml": ("snapshot", "train", *ORDER, "-d", ref),
        "plan.yaml": ("resume", "train", "--consumed", "5", "--shuffle-seed", "1", "-d", ref),
        "layout.yaml": ("layout", "-d", ref),
    }
    for name, command in files.items():
        assert shardctl(*command, "-o", f"{tmp_path}/deep/{name}").exit_code == 0
    assert f"refs: ['{ref}']" in (tmp_path / "deep" / "order.yaml").read_text()
    monkeypatch.chdir(tmp_path / "deep" / "down")
    assert "matches the current order: 100 examples" in shardctl("diff", "../order.yaml").stdout
    proof = shardctl("resume", "--plan", "../plan.yaml", "--prove")
    assert (proof.exit_code, "lost 0, repeated 0" in proof.stdout + proof.stderr) == (0, True)
    again = json.loads(shardctl("layout", "-d", "../layout.yaml", "-f", "json").stdout)
    assert again == json.loads(shardctl("layout", "-d", ref, "-f", "json").stdout)


def test_passwords_and_signatures_are_in_no_answer(shardctl: Shardctl, data: Path) -> None:
    secret = f"{in_memory(data, user='KEY:SECRET@')}/toy"
    Path("shardctl.yaml").write_text(f"dataset: {secret}\n")
    commands: list[tuple[Any, ...]] = [
        ("layout", "-f", "json"),
        ("layout",),
        ("snapshot",),
        ("resume", "--consumed", "5", "-o", "plan.yaml"),
        ("config",),
        ("init", "-d", secret, "--data-dir", secret, "-o", "-"),
        ("list", "--data-dir", secret),
        ("plan", secret),
        ("plan", "train", "-d", f"{secret}/no"),
        ("plan", "train", "-d", "no", "--data-dir", secret),
        ("simulate", "-f", "json", "--stages", f"read(test, data='{secret}') | batch(3)"),
        ("simulate", "-f", "python"),
        ("verify", "--files"),
        ("index", f"{secret}/1.0.0"),
        ("index", f"{secret}/1.0.0", "-o", "counted.yaml"),
        ("index", "--check", "counted.yaml"),
        ("plan", "train", "-d", f"{secret}/1.0.0/*train*"),
        ("plan", "train", "-d", f"{secret}/1.0.0/*no*"),
    ]
    for command in commands:
        ran = shardctl(*command)
        assert "SECRET" not in ran.stdout + ran.stderr, command
    for file in ("plan.yaml", "counted.yaml"):
        assert "SECRET" not in Path(file).read_text()


def test_the_files_beside_a_layout_in_a_bucket_are_asked_with_its_password(
    shardctl: Shardctl, data: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "counted"
    shutil.copytree(data / "toy" / "1.0.0", folder)
    (folder / "dataset_info.json").unlink()
    (folder / "features.json").unlink()
    assert shardctl("index", folder, "-o", folder / "layout.yaml").exit_code == 0
    secret = f"{in_memory(folder, user='KEY:SECRET@')}/layout.yaml"
    verified = shardctl("verify", "--files", "-d", secret)
    assert (verified.exit_code, "every file holds" in verified.stdout) == (0, True)
    checked = shardctl("index", "--check", secret)
    assert (checked.exit_code, "6 files" in checked.stdout) == (0, True)
    for ran in (verified, checked):
        assert "SECRET" not in ran.stdout + ran.stderr


def test_after_a_tab_no_place_but_this_machine_is_asked(
    shardctl: Shardctl, monkeypatch: pytest.MonkeyPatch, data: Path
) -> None:
    from shardctl.stores import stores
    from shardctl.stores.stores import LocalStore, is_remote

    asked: list[str] = []

    def local_alone(path: object) -> LocalStore:
        if is_remote(str(path)):
            asked.append(str(path))
        return LocalStore()

    monkeypatch.setattr(stores, "store_of", local_alone)
    Path("shardctl.yaml").write_text("dataset: gs://bucket/toy\ndata_dir: s3://bucket\n")
    monkeypatch.setenv("TFDS_DATA_DIR", "gs://bucket")
    monkeypatch.setenv("_SHARDCTL_COMPLETE", "complete_bash")
    for line in (
        "shardctl plan -d ",
        "shardctl plan -d gs://bucket/",
        "shardctl plan ",
        "shardctl plan -d gs://bucket/toy tr",
        "shardctl plan -d toy --data-dir gs://bucket tr",
        "shardctl list ",
    ):
        monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
        shardctl()
    assert asked == []


@pytest.mark.tensorflow
def test_the_order_is_verified_over_index_ranges_where_tensorflow_has_no_way_to_the_files(
    shardctl: Shardctl, there: str
) -> None:
    ran = shardctl("verify", "-d", f"{there}/toy")
    assert ran.exit_code == 0
    assert "as predicted: 100 of 100 examples, read from index ranges" in ran.stdout
    assert (
        "TensorFlow does not read memory:// files; `shardctl verify --files` does, and"
        in ran.stdout
    )


@pytest.mark.tensorflow
def test_a_damaged_remote_file_is_named_by_verify_as_a_local_one(
    shardctl: Shardctl, data: Path, there: str
) -> None:
    here = shardctl("verify", "-f", "json", "-d", f"{data}/spoilt")
    far = shardctl("verify", "-f", "json", "-d", f"{there}/spoilt")
    one, two = (json.loads(ran.stdout) for ran in (here, far))
    assert one["files"] == two["files"]
    assert here.exit_code == far.exit_code == 1


@pytest.mark.long
def test_of_a_prepared_dataset_its_metadata_alone_is_asked_for(
    shardctl: Shardctl, data: Path, web: Any
) -> None:
    web.put("tfds/dataset_info.json", (data / "toy/1.0.0/dataset_info.json").read_bytes())
    for words in (["plan"], ["simulate"], ["lint"], ["snapshot"], ["resume", "--consumed", 5]):
        web.requests.clear()
        assert shardctl(*words, "train", "-d", web.url("tfds")).exit_code in (0, 1)
        assert web.requests == ["GET /tfds/dataset_info.json"]
    ran = shardctl("verify", "--files", "-d", web.url("tfds"))
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.startswith("error: cannot list ")
    for words in (["layout"], ["hosts", "--hosts", 2]):
        ran = shardctl(*words, "-d", web.url("tfds"))
        assert ran.exit_code == 0
        assert ran.stderr.startswith("warning: the sizes of the files are not known: cannot list ")


@pytest.mark.long
@pytest.mark.parametrize(
    ("place", "ref", "said"),
    [
        _slow("s3", "s3://no-such-bucket/toy", "there is no bucket of this name"),
        _slow("gcs", "gs://no-such-bucket/toy", "no bucket"),
        ("hub", "hf://datasets/nobody/nothing/toy", "no such repository, or it is private"),
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
