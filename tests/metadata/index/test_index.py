"""Record files without metadata as a dataset: what is in them, and what is wrong with them."""

from __future__ import annotations

import gzip
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from shardctl.errors import DatasetError, UsageError
from shardctl.metadata.index.index import Index, index
from shardctl.metadata.index.workers import CountedFile, FileToCount, count_one
from shardctl.stores.stores import LocalStore
from tests.record_files import framed

LENGTHS = (3, 0, 5, 1)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    found: Counter[str] = Counter()
    real = LocalStore.open

    def noting(self: LocalStore, file: Any) -> Any:
        found[os.path.basename(file.path)] += 1
        return real(self, file)

    monkeypatch.setattr(LocalStore, "open", noting)
    return found


def written(folder: Path, lengths: tuple[int, ...] = LENGTHS, split: str = "train") -> list[Path]:
    folder.mkdir(exist_ok=True)
    files = []
    for shard, length in enumerate(lengths):
        path = folder / f"toy-{split}.tfrecord-{shard:05}-of-{len(lengths):05}"
        path.write_bytes(framed(*[b"record"] * length))
        files.append(aged(path))
    return files


def aged(path: Path) -> Path:
    ago = time.time_ns() - 10**12
    os.utime(path, ns=(ago, ago))
    return path


def lengths(found: Index) -> dict[str, tuple[int, ...]]:
    return {part.split.name: tuple(part.split.shard_lengths) for part in found.splits}


def test_files_that_are_counted_once_are_not_opened_again(
    tmp_path: Path, opened: Counter[str]
) -> None:
    files = written(tmp_path / "data")
    first = index(tmp_path / "data")
    assert (first.num_counted, first.num_known) == (4, 0)
    assert sum(opened.values()) == 4
    opened.clear()
    again = index(tmp_path / "data")
    assert not opened
    assert (again.num_counted, again.num_known) == (0, 4)
    assert lengths(again) == lengths(first) == {"train": LENGTHS}
    files[2].write_bytes(framed(b"now", b"of two"))
    aged(files[2])
    changed = index(tmp_path / "data")
    assert list(opened) == [files[2].name]
    assert lengths(changed) == {"train": (3, 0, 2, 1)}
    opened.clear()
    assert lengths(index(tmp_path / "data", cache=False)) == {"train": (3, 0, 2, 1)}
    assert sum(opened.values()) == 4


def test_the_first_broken_file_in_shard_order_is_named_whatever_is_done_first(
    tmp_path: Path,
) -> None:
    files = written(tmp_path / "data", (1,) * 50)
    for shard in (7, 20, 30):
        aged_cut(files[shard])
    os.utime(files[0], (2**33, 2**33))  # in what its clock takes for the future

    class Backwards:
        def count(self, files: Iterable[FileToCount]) -> Iterator[CountedFile]:
            yield from map(count_one, reversed(list(files)))

    for runner in (None, Backwards()):
        found = index(tmp_path / "data", runner=runner, cache=False)
        (broken,) = found.broken
        assert broken.path == files[7].name
        assert (broken.finding.kind, broken.finding.record, broken.finding.byte) == ("cut", 0, 0)
        assert found.splits == ()
        with pytest.raises(
            DatasetError, match=r"toy-train.tfrecord-00007-of-00050': record 0 at byte 0: cut off"
        ):
            _ = found.dataset
    going = index(tmp_path / "data", keep_going=True)
    assert [file.path for file in going.broken] == [files[shard].name for shard in (7, 20, 30)]
    assert going.dataset.split("train").num_shards == 47
    assert [bool(version) for version in going.splits[0].versions] == [False, *[True] * 46]
    names = going.dataset.split("train").filenames
    assert list(names) == [
        file.name for shard, file in enumerate(files) if shard not in (7, 20, 30)
    ]


def aged_cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])
    aged(file)


def test_a_gap_is_refused_before_anything_is_read(tmp_path: Path, opened: Counter[str]) -> None:
    files = written(tmp_path / "data")
    files[1].unlink()
    found = index(tmp_path / "data")
    assert not opened
    (problem,) = found.problems
    assert (problem.kind, problem.split) == ("gap", "train")
    with pytest.raises(DatasetError, match="shard 1 of 4 is missing"):
        _ = found.dataset
    going = index(tmp_path / "data", keep_going=True)
    assert going.problems == found.problems
    assert lengths(going) == {"train": (3, 5, 1)}


def test_compressed_files_are_of_one_kind(tmp_path: Path) -> None:
    files = written(tmp_path / "data")
    for file in files:
        file.write_bytes(gzip.compress(file.read_bytes()))
    found = index(tmp_path / "data")
    assert found.compression == found.dataset.compression == "GZIP"
    assert lengths(found) == {"train": LENGTHS}
    files[2].write_bytes(framed(b"plain"))
    (broken,) = index(tmp_path / "data").broken
    assert broken.finding.reason == (
        f"is not compressed, and '{files[0].name}' is compressed with GZIP; tf.data reads one kind"
    )
    assert lengths(index(tmp_path / "data", keep_going=True)) == {"train": (3, 0, 1)}


@pytest.mark.parametrize("place", [0, 2])
def test_a_file_without_bytes_is_of_any_compression(tmp_path: Path, place: int) -> None:
    files = written(tmp_path / "toy", (1, 2, 3))
    for file in files:
        aged(file).write_bytes(gzip.compress(file.read_bytes()))
    files[place].write_bytes(b"")
    aged(files[place])
    found = index(tmp_path / "toy")
    lengths = tuple(0 if shard == place else shard + 1 for shard in range(3))
    assert found.dataset.splits[0].shard_lengths == lengths
    assert found.compression == "GZIP"


def test_contents_are_read_where_they_are_asked_for(tmp_path: Path) -> None:
    (file,) = written(tmp_path / "data", (3,))
    data = bytearray(file.read_bytes())
    data[13] ^= 1
    file.write_bytes(data)
    aged(file)
    assert index(tmp_path / "data").whole
    (broken,) = index(tmp_path / "data", checksums=True).broken
    assert (broken.finding.kind, broken.finding.byte) == ("data", 0)


def test_no_cache_folder_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "data")
    monkeypatch.setenv("SHARDCTL_CACHE_DIR", "/dev/null/cache")
    (said,) = index(tmp_path / "data").warnings
    assert said == "counts are not kept in '/dev/null/cache/counts': Not a directory"


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    written(tmp_path / "data")
    with pytest.raises(UsageError, match="--jobs '0': 1 to 1000 processes can count"):
        index(tmp_path / "data", jobs=0)
    with pytest.raises(UsageError, match="--format-of-files 'zip': choose from tfrecord"):
        index(tmp_path / "data", file_format="zip")
    with pytest.raises(DatasetError, match="no path"):
        index()
    with pytest.raises(DatasetError):
        index(tmp_path / "nowhere")


def test_nothing_whole_is_no_dataset(tmp_path: Path) -> None:
    (file,) = written(tmp_path / "data", (1,))
    aged_cut(file)
    with pytest.raises(DatasetError, match=r"^no whole record file in '.*data'$"):
        _ = index(tmp_path / "data", keep_going=True).dataset
