"""Record files without metadata as datasets: what references mean, and that nothing is mistaken."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

import shardctl
from shardctl.dataset.dataset import Dataset
from shardctl.errors import DatasetError, ShardctlError
from shardctl.metadata.index.bare import read_bare
from shardctl.metadata.reference import read_dataset, ref_from, refs_found_again
from shardctl.settings.read_settings import ReadSettings
from tests.cases import FUZZ, check_cases, fuzzed
from tests.record_files import framed
from tests.tfds_datasets import WRITABLE_FORMATS, build_dataset


def read(*refs: str | Path, cwd: Path, cache: bool = True) -> Dataset:
    return read_dataset(refs, cwd=cwd, cache=cache)


def refusal(*refs: str | Path, cwd: Path) -> str:
    with pytest.raises(DatasetError) as error:
        read(*refs, cwd=cwd)
    return str(error.value)


def write(folder: Path, lengths: dict[str, int]) -> Path:
    for name, length in lengths.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(framed(*(b"example" for _ in range(length))))
    return folder


def splits_of(dataset: Dataset) -> dict[str, tuple[int, ...]]:
    return {split.name: tuple(split.shard_lengths) for split in dataset.splits}


NAMES = {
    "train-00000-of-00003.tfrecord": 3,
    "train-00001-of-00003.tfrecord": 1,
    "train-00002-of-00003.tfrecord": 2,
    "test-00000-of-00001.tfrecord": 4,
}
TRAIN, TEST = (3, 1, 2), (4,)


class TestReferences:
    @pytest.mark.parametrize(
        ("refs", "expected"),
        [
            (["data"], {"train": TRAIN, "test": TEST}),
            (["data/"], {"train": TRAIN, "test": TEST}),
            (["./data"], {"train": TRAIN, "test": TEST}),
            (["data/train-*"], {"train": TRAIN}),
            (["data/*.tfrecord"], {"train": TRAIN, "test": TEST}),
            (["data/train-0000?-of-00003.tfrecord"], {"train": TRAIN}),
            (["data/train@3.tfrecord"], {"train": TRAIN}),
            (["data/train@3"], {"train": TRAIN}),
            (["data/train@*.tfrecord"], {"train": TRAIN}),
            (["data/train-{00000..00002}-of-00003.tfrecord"], {"train": TRAIN}),
            (["data/test-00000-of-00001.tfrecord"], {"test": TEST}),
            (["data/train-*", "data/test-*"], {"train": TRAIN, "test": TEST}),
            (["data/test-*", "data/train-*"], {"test": TEST, "train": TRAIN}),
        ],
    )
    def test_files_folders_and_patterns(
        self, tmp_path: Path, refs: list[str], expected: dict[str, tuple[int, ...]]
    ) -> None:
        write(tmp_path / "data", NAMES)
        found = read(*refs, cwd=tmp_path)
        assert splits_of(found) == expected
        assert list(splits_of(found)) == list(expected)
        assert found.is_counted
        assert found.data_dir == str(tmp_path / "data")
        assert found.file_format == "tfrecord"
        # A path is whole, so that it means the same from everywhere.
        assert splits_of(read(*(tmp_path / ref for ref in refs), cwd=Path("/"))) == expected


class TestTraps:
    def test_metadata_of_tfds_speaks_for_its_folder(self, tmp_path: Path) -> None:
        folder = build_dataset(tmp_path, "toy", {"train": [3, 2]})
        write(folder, {"toy-train.tfrecord-00002-of-00003": 9})
        found = read(folder, cwd=tmp_path)
        assert (found.origin, splits_of(found)) == ("dataset_info.json", {"train": (3, 2)})
        assert splits_of(read(folder / "toy-train.tfrecord@2", cwd=tmp_path)) == {"train": (3, 2)}

    def test_a_folder_of_files_wins_over_a_name_of_the_catalog(self, tmp_path: Path) -> None:
        write(tmp_path / "mnist", {"train-0.tfrecord": 2})
        assert splits_of(read("mnist", cwd=tmp_path)) == {"train": (2,)}
        write(tmp_path / "other", {"mnist/notes.txt": 0})
        assert read("mnist", cwd=tmp_path / "other").title == "mnist:3.0.1"

    def test_files_beside_folders_of_tfds_are_not_passed_by(self, tmp_path: Path) -> None:
        build_dataset(tmp_path / "data", "toy", {"train": [1]}, with_files=False)
        assert read("data", cwd=tmp_path).title == "toy:1.0.0"
        write(tmp_path / "data", {"train-0.tfrecord": 2})
        said = refusal("data", cwd=tmp_path)
        assert said.startswith(
            "'data' holds record files, and below it are datasets with dataset_i"
        )
        assert "toy/1.0.0; name one of these, or the files by a pattern as 'data/*'" in said
        assert splits_of(read("data/*", cwd=tmp_path)) == {"train": (2,)}

    @pytest.mark.parametrize(
        ("spoil", "said"),
        [
            (lambda path: path.write_bytes(path.read_bytes()[:-3]), "train-00001-of-00003.tfreco"),
            (lambda path: path.unlink(), "train: shard 1 of 3 is missing (train-*-of-*.tf"),
        ],
    )
    def test_what_is_wrong_is_named_with_the_way_out(
        self, tmp_path: Path, spoil: Callable[[Path], Any], said: str
    ) -> None:
        folder = write(tmp_path / "data", NAMES)
        spoil(folder / "train-00001-of-00003.tfrecord")
        line = refusal("data", cwd=tmp_path)
        assert said in line
        assert line.endswith(f"; `shardctl index {folder} --keep-going -o layout.yaml` describes "
                             "the others")  # fmt: skip


class TestCounts:
    def test_a_tab_counts_nothing(self, tmp_path: Path) -> None:
        folder = write(tmp_path / "data", NAMES)
        (folder / "train-00001-of-00003.tfrecord").write_bytes(b"no record")
        found = read_bare(str(folder), "names")
        assert [split.name for split in found.splits] == ["train", "test"]


class TestKeptReferences:
    @pytest.mark.parametrize("ref", ["data/train-*.tfrecord", "data/train@3.tfrecord", "data"])
    def test_a_file_keeps_them_as_from_its_folder(self, tmp_path: Path, ref: str) -> None:
        write(tmp_path / "data", NAMES)
        (tmp_path / "runs").mkdir()
        kept = refs_found_again([ref], cwd=tmp_path, folder=tmp_path / "runs")
        assert kept == (f"../{ref}",)
        whole = read(ref, cwd=tmp_path)
        assert read(*kept, cwd=tmp_path / "runs").fingerprint == whole.fingerprint
        assert ref_from("train-*", cwd=tmp_path, folder=tmp_path) == "train-*"
        assert refs_found_again(["mnist:3.*.*"], cwd=tmp_path, folder=tmp_path) == ()


def compare(root: Path, rng: random.Random) -> int:
    shutil.rmtree(root, ignore_errors=True)  # of a case that failed
    file_format = rng.choice(WRITABLE_FORMATS)
    longest = 40 if file_format == "parquet" else 9  # TFDS writes Parquet files of 100 rows whole
    count = rng.randint(1, 8)
    splits = {name: [rng.randrange(longest) for _ in range(count)] for name in _some_splits(rng)}
    for lengths in splits.values():
        lengths[rng.randrange(count)] += 1
    name = rng.choice(["toy", "my_data2", "a"])
    folder = build_dataset(root / "tfds", name, splits, file_format)
    bare = root / "bare"
    shutil.copytree(folder, bare)
    (bare / "dataset_info.json").unlink()
    if rng.random() < 0.5:
        (bare / "features.json").unlink()
    report, found = (read(path, cwd=root, cache=rng.random() < 0.5) for path in (folder, bare))
    assert found.fingerprint == report.fingerprint
    assert (found.name, found.file_format) == (report.name, report.file_format)
    spec = _some_spec(rng, list(splits))
    settings = ReadSettings(
        cycle=rng.randint(1, 5), block=rng.randint(1, 4), shuffle_seed=rng.choice([None, 7])
    )
    hosts = rng.choice([None, 2])
    for ask in (_rows_of(spec, hosts), _ids_of(spec, settings)):
        assert _answer(ask, found) == _answer(ask, report)
    return 2


def _some_splits(rng: random.Random) -> Sequence[str]:
    return rng.choice([["train"], ["train", "test"], ["train", "validation", "test"], ["test"]])


def _some_spec(rng: random.Random, names: list[str]) -> str:
    parts = ["{}", "{}[:50%]", "{}[1:]", "{}[:1shard]", "{}[-2:]"]
    return "+".join(
        rng.choice(parts).format(name) for name in rng.sample(names, rng.randint(1, len(names)))
    )


def _rows_of(spec: str, hosts: int | None) -> Callable[[Dataset], Any]:
    def rows(dataset: Dataset) -> Any:
        return [
            [(one.filename, one.skip, one.take, one.first_id) for one in plan.file_instructions]
            for plan in shardctl.plan(dataset, spec, hosts=hosts).plans
        ]

    return rows


def _ids_of(spec: str, settings: ReadSettings) -> Callable[[Dataset], Any]:
    def ids(dataset: Dataset) -> Any:
        order = shardctl.plan_order(dataset, spec, settings).order
        codes = order.read(0, order.num_examples)
        return [*order.codes.ids(codes), *order.codes.tfds_ids(codes)]

    return ids


def _answer(ask: Callable[[Dataset], Any], dataset: Dataset) -> Any:
    try:
        return ask(dataset)
    except ShardctlError as error:
        return str(error)


@fuzzed(12, FUZZ // 4)
def test_files_alone_answer_as_with_the_metadata_of_tfds(tmp_path: Path, num_cases: int) -> None:
    def check(rng: random.Random) -> int:
        return compare(tmp_path / "case", rng)

    check_cases(st.randoms(use_true_random=False), check, num_cases)
