"""All sidecars of a folder: what they say, where the files are not so, and which cannot be read."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from shardctl.metadata.index.index import index
from shardctl.metadata.index.sidecars import Sidecars
from shardctl.records.read_file import FORMATS, count_file, format_of
from shardctl.stores.store import StoredFile
from shardctl.stores.stores import LocalStore
from shardctl.verbs.index.view import summary
from tests.byte_sources import RECORDED
from tests.record_files import framed
from tests.tfds_datasets import build_dataset


def of_folder(folder: Path) -> tuple[Sidecars, list[StoredFile]]:
    """Return the sidecars of a folder, and its record files."""
    files = sorted(LocalStore().scan(str(folder)), key=lambda file: file.path)
    beside = [file for file in files if file.path.endswith(".json")]
    return Sidecars(beside), [file for file in files if file not in beside]


def differences(folder: Path) -> dict[str, str | None]:
    sidecars, files = of_folder(folder)
    found = {}
    for file in files:
        file_format = format_of(file)
        assert file_format in FORMATS
        counted = count_file(file, file_format)
        assert counted.num_records is not None
        found[Path(file.path).name] = sidecars.disagreement(file, counted.num_records)
    assert not sidecars.problems
    return found


def test_what_libraries_wrote_agrees_with_their_files() -> None:
    for name in ("mds_plain", "mds_gz", "hugging_face_cache"):
        sidecars, files = of_folder(RECORDED / name)
        assert sidecars
        assert set(differences(RECORDED / name).values()) == {None}
        for file in files:
            assert sidecars.disagreement(file, 99) is not None
            assert (
                sidecars.disagreement(file, sidecars.said.get(file.path, [])[0].num_examples)
                is None
            )
        assert sidecars.num_agreed == len(files)
        assert sidecars.absent([file.path for file in files]) == []


def test_what_was_saved_of_a_dataset_is_not_compared_with_metadata_of_all_of_it() -> None:
    folder = RECORDED / "hugging_face_saved"
    assert json.loads((folder / "dataset_info.json").read_text())["splits"]["train"]
    sidecars, files = of_folder(folder)
    assert not sidecars
    assert sidecars.disagreement(files[0], 3) is None
    assert sidecars.num_agreed == 0


def test_files_that_are_not_as_the_metadata_say_are_named(tmp_path: Path) -> None:
    folder = build_dataset(tmp_path, splits={"train": [3, 1]})
    assert set(differences(folder).values()) == {None}
    first, second = sorted(folder.glob("toy-train*"))
    shutil.copy(first, second)
    assert differences(folder) == {
        first.name: None,
        second.name: "holds 3 examples, and dataset_info.json says 1",
    }


def test_a_shard_that_is_missing_at_the_end_is_absent(tmp_path: Path) -> None:
    folder = tmp_path / "mds"
    shutil.copytree(RECORDED / "mds_plain", folder)
    (folder / "shard.00002.mds").unlink()
    sidecars, files = of_folder(folder)
    paths = [file.path for file in files]
    assert sidecars.absent(paths) == [str(folder / "shard.00002.mds")]


def test_sidecars_that_cannot_be_read_are_problems_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "index.json").write_text('{"shards": [')
    (tmp_path / "dataset_info.json").write_text('{"name": "d"}')
    (tmp_path / "a.tfrecord").write_bytes(framed(b"a"))
    sidecars, (file,) = of_folder(tmp_path)
    assert sidecars.disagreement(file, 5) is None
    assert len(sidecars.problems) == 2
    assert "is not JSON" in "".join(sidecars.problems)


def test_an_index_of_something_else_is_none(tmp_path: Path) -> None:
    (tmp_path / "index.json").write_text('{"pages": []}')
    sidecars, _ = of_folder(tmp_path)
    assert not sidecars
    assert not sidecars.problems


def test_index_names_the_files_that_are_not_as_is_said(tmp_path: Path) -> None:
    folder = shutil.copytree(RECORDED / "mds_plain", tmp_path / "d")
    found = index(folder, cache=False)
    assert (found.whole, found.num_agreed, found.said_by) == (True, 3, ("index.json",))
    assert summary(found).endswith("; 3 as index.json said")
    shutil.copy(folder / "shard.00000.mds", folder / "shard.00001.mds")
    (folder / "shard.00002.mds").unlink()
    found = index(folder, cache=False)
    assert [(problem.kind, problem.text) for problem in found.problems] == [
        ("sidecar", "'shard.00001.mds': holds 18 examples, and index.json says 16"),
        ("sidecar", "'shard.00002.mds' is not there"),
    ]
    assert not found.whole
    assert found.num_agreed == 1


def test_index_compares_hashes_where_contents_are_checked(tmp_path: Path) -> None:
    folder = shutil.copytree(RECORDED / "mds_zstd", tmp_path / "d")
    assert index(folder, cache=False, checksums=True).whole
    path = folder / "index.json"
    document = json.loads(path.read_text())
    hashes = document["shards"][1]["zip_data"]["hashes"]
    stated, hashes["sha1"] = hashes["sha1"], "0" * 40
    hashes["crc0"] = "1"
    path.write_text(json.dumps(document))
    assert index(folder, cache=False).whole
    found = index(folder, cache=False, checksums=True)
    (problem,) = found.problems
    assert problem.text == f"'shard.00001.mds.zstd': has sha1 {stated}, not '{'0' * 40}'"
    assert found.warnings == ("index.json states hashes of crc0, which cannot be compared here",)


def test_many_faulty_sidecars_are_not_all_named(tmp_path: Path) -> None:
    (tmp_path / "index.json").write_text("hello")
    (file,) = LocalStore().scan(str(tmp_path))
    problems = Sidecars([file] * 50).problems
    assert len(problems) == 21
    assert problems[-1] == "more files beside the record files cannot be read"


def test_many_folders_are_asked_for_their_own_files(tmp_path: Path) -> None:
    for number in range(30):
        shutil.copytree(RECORDED / "mds_plain", tmp_path / str(number))
    store = LocalStore()
    files = [file for folder in tmp_path.iterdir() for file in store.scan(str(folder))]
    sidecars = Sidecars([file for file in files if file.path.endswith("index.json")])
    shards = [file for file in files if file.path.endswith(".mds")]
    assert [len(sidecars.said.get(file.path, [])) for file in shards] == [1] * 90
    absent = shards.pop().path
    assert sidecars.absent([file.path for file in shards]) == [absent]


def test_an_index_of_merged_folders_says_what_is_below_it(tmp_path: Path) -> None:
    # streaming/base/util.py, merge_index: the basenames are paths below the index.
    shutil.copytree(RECORDED / "mds_plain", tmp_path / "0")
    document = json.loads((tmp_path / "0" / "index.json").read_text())
    (tmp_path / "0" / "index.json").unlink()
    for shard in document["shards"]:
        shard["raw_data"]["basename"] = "0/" + shard["raw_data"]["basename"]
    (tmp_path / "index.json").write_text(json.dumps(document))
    sidecars = Sidecars(LocalStore().scan(str(tmp_path)))
    files = sorted(LocalStore().scan(str(tmp_path / "0")), key=lambda file: file.path)
    assert [len(sidecars.said.get(file.path, [])) for file in files] == [1, 1, 1]
    assert sidecars.absent([file.path for file in files[1:]]) == [files[0].path]
