"""What files beside record files state, where the files are not so, and which cannot be read."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

from shardctl.metadata.index.index import index
from shardctl.metadata.index.sidecars import Sidecars
from shardctl.stores.store import StoredFile
from shardctl.stores.stores import LocalStore
from tests.byte_sources import RECORDED
from tests.golden import assert_answers, assert_evaluated


def sidecars_in(folder: Path) -> Sidecars:
    return Sidecars(LocalStore().scan(str(folder)))


def stated(sidecars: Sidecars, folder: Path) -> dict[str, list[tuple[int, int | None]]]:
    return {
        Path(path).relative_to(folder).as_posix(): [(e.num_examples, e.num_bytes) for e in expected]
        for path, expected in sidecars.expected.items()
    }


@pytest.mark.parametrize("name", ["mds_plain", "mds_gz", "mds_zstd"])
def test_what_mosaicml_wrote_is_stated_of_its_files(name: str) -> None:
    folder = RECORDED / name
    found = stated(sidecars_in(folder), folder)
    there = {file.name: file.stat().st_size for file in folder.glob("shard.*")}
    assert {file: num_bytes for file in there for _, num_bytes in found[file]} == there
    assert sum(num_examples for file in there for num_examples, _ in found[file]) == 37


def test_a_shard_is_there_packed_or_not() -> None:
    folder = str(RECORDED / "mds_zstd")
    found = sidecars_in(RECORDED / "mds_zstd")
    names = {f"{folder}/shard.00000.mds", f"{folder}/shard.00001.mds.zstd", f"{folder}/index.json"}
    assert found.absent(names) == [f"{folder}/shard.00002.mds.zstd"]
    assert found.absent(set()) == found.absent({"e/shard.00000.mds"}) == []  # of another folder


def test_faulty_sidecars_are_problems_and_nothing_else(tmp_path: Path) -> None:
    def answer(question: str) -> str:
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        name, _, text = question.partition(" ")
        (folder / name).write_text(text)
        found = sidecars_in(folder)
        assert not found.expected
        assert found.disagreement(StoredFile(path=str(folder / "a"), num_bytes=3), 5) is None
        return "\n".join(found.problems).replace(str(folder), "") or "no problem"

    assert_answers(Path(__file__).parent / "golden" / "sidecars.txt", answer)


def test_counts_and_sizes_are_compared(tmp_path: Path) -> None:
    raw: dict[str, Any] = {"basename": "a", "bytes": 3}
    document = {"version": 2, "shards": [{"samples": 3, "raw_data": raw}]}
    (tmp_path / "index.json").write_text(json.dumps(document))

    def said(num_examples: int, num_bytes: int) -> str | None:
        file = StoredFile(path=str(tmp_path / "a"), num_bytes=num_bytes)
        return sidecars_in(tmp_path).disagreement(file, num_examples)

    assert_evaluated(globals(), "stated", said)


def test_index_names_the_files_that_are_not_as_is_stated(tmp_path: Path) -> None:
    folder = shutil.copytree(RECORDED / "mds_plain", tmp_path / "d")
    found = index(folder, cache=False)
    assert found.whole
    shutil.copy(folder / "shard.00000.mds", folder / "shard.00001.mds")
    (folder / "shard.00002.mds").unlink()
    found = index(folder, cache=False)
    assert [(problem.kind, problem.text) for problem in found.problems] == [
        ("sidecar", "'shard.00001.mds': holds 18 examples, and index.json says 16"),
        ("sidecar", "'shard.00002.mds' is not there"),
    ]


def test_an_index_of_merged_folders_states_what_is_below_it(tmp_path: Path) -> None:
    # streaming/base/util.py, merge_index: the basenames are paths below the index.
    shutil.copytree(RECORDED / "mds_plain", tmp_path / "0")
    document = json.loads((tmp_path / "0" / "index.json").read_text())
    (tmp_path / "0" / "index.json").unlink()
    for shard in document["shards"]:
        shard["raw_data"]["basename"] = "0/" + shard["raw_data"]["basename"]
    (tmp_path / "index.json").write_text(json.dumps(document))
    found = sidecars_in(tmp_path)
    files = sorted(LocalStore().scan(str(tmp_path / "0")), key=lambda file: file.path)
    assert [len(found.expected.get(file.path, [])) for file in files] == [1, 1, 1]
    assert found.absent([file.path for file in files[1:]]) == [files[0].path]
