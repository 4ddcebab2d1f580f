"""Datasets that names lead to, and which words choose them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.verbs.list.answer import DatasetList, ListedDataset
from tests.cli.conftest import Shardctl
from tests.golden import assert_answers
from tests.tfds_datasets import write_dataset


def listed(name: str, file_format: str = "tfrecord", *, config: str | None = None) -> ListedDataset:
    splits = (
        Split(name="train", shard_lengths=(3, 4), num_bytes=100),
        Split(name="test", shard_lengths=(2,), num_bytes=7),
    )
    dataset = Dataset(name=name, config=config, splits=splits, file_format=file_format)
    return ListedDataset(name=name, config=config, version="1.0.0", dataset=dataset)


HERE = DatasetList(
    data_dirs=("/data",),
    in_data_dirs=(listed("imagenet2012"), listed("imagenet_v2", "array_record", config="Top")),
    built_in=(listed("mnist"), listed("fashion_mnist", "parquet")),
)


def test_examples_and_bytes_are_those_of_all_splits() -> None:
    assert (listed("a").num_examples, listed("a").num_bytes) == (9, 107)
    unknown = Dataset(name="a", splits=(Split(name="train", shard_lengths=(3,)),))
    found = ListedDataset(name="a", config=None, version=None, dataset=unknown)
    assert (found.num_examples, found.num_bytes, found.file_format) == (3, None, "tfrecord")
    broken = ListedDataset(name="a", config=None, version=None, path="/a", problem="no splits")
    assert (broken.num_examples, broken.num_bytes, broken.file_format) == (None, None, None)


def test_words_choose_what_has_them_all() -> None:
    def answer(words: str) -> str:
        found = HERE.having(words.split())
        assert found.words == tuple(words.split())
        return " ".join(dataset.name for dataset in found.datasets) or "none"

    assert_answers(Path(__file__).parent / "golden" / "words.txt", answer)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    root = tmp_path / "data"
    for name, config, version in [
        ("toy", None, "1.0.0"),
        ("toy", None, "1.10.0"),
        ("blocks", "red", "2.0.0"),
    ]:
        write_dataset(root, name, {"train": [1]}, config=config, version=version)
    (shard,) = (root / "toy/1.0.0").glob("*.tfrecord-*")
    assert shard.stat().st_size == 16 + 15
    (root / "downloads").mkdir()
    (root / "half" / "1.0.0").mkdir(parents=True)
    return root


def found_in(root: Path) -> list[list[str]]:
    return [  # one example in each; TFDS states its bytes without the 16 of its record
        [title, "1", "15", "B", "tfrecord", str(root / folder)]
        for title, folder in (
            ("blocks/red:2.0.0", "blocks/red/2.0.0"),
            ("toy:1.0.0", "toy/1.0.0"),
            ("toy:1.10.0", "toy/1.10.0"),
        )
    ]


_HEADINGS = ["dataset", "examples", "size", "format", "folder"]


def test_datasets_in_data_dirs_come_first_and_built_in_ones_by_name(
    shardctl: Shardctl, data: Path
) -> None:
    ran = shardctl("list", "--data-dir", data)
    assert (ran.exit_code, ran.stderr) == (0, "")
    here, built_in = ran.stdout.split("\n\n")
    assert [line.split() for line in here.splitlines()] == [_HEADINGS, *found_in(data)]
    title, names, hint = built_in.splitlines()
    assert title == "built-in layouts"
    assert {"imagenet2012", "mnist", "c4"} <= set(names.split(", "))
    assert hint == "(--all shows their configs and versions)"


def test_every_dataset_listed_is_one_that_a_command_takes(shardctl: Shardctl, data: Path) -> None:
    rows = shardctl("list", "--data-dir", data, "--all").stdout.splitlines()[1:]
    assert len(rows) > 60
    for row in rows:
        name = row.split()[0]
        ran = shardctl("layout", "-d", name, "--data-dir", data)
        assert (ran.exit_code, ran.stderr) == (0, "")
        assert ran.stdout.startswith(f"{name}: ")


def test_words_choose_in_every_format_and_finding_nothing_exits_with_1(
    shardctl: Shardctl, data: Path
) -> None:
    rows = shardctl("list", "TOY", "1.10", "--data-dir", data).stdout.splitlines()
    assert [row.split() for row in rows] == [_HEADINGS, found_in(data)[2]]
    ran = shardctl("list", "toy", "--data-dir", data, "-f", "json")
    assert [found["version"] for found in json.loads(ran.stdout)["datasets"]] == ["1.0.0", "1.10.0"]
    ran = shardctl("list", "blocs", "--data-dir", data)
    assert (ran.exit_code, ran.stderr) == (1, "")
    assert ran.stdout.endswith("has 'blocs' in its name or format\n")
    ran = shardctl("list", "blocs", "--data-dir", data, "-f", "json")
    assert (ran.exit_code, json.loads(ran.stdout)["datasets"]) == (1, [])


def test_metadata_that_is_broken_is_named_and_the_rest_listed(
    shardctl: Shardctl, data: Path
) -> None:
    broken = data / "toy/1.0.0/dataset_info.json"
    broken.write_text("{")
    ran = shardctl("list", "--data-dir", data)
    assert ran.exit_code == 0
    assert ran.stderr.startswith(f"warning: {broken}: line 1, column 2 is not JSON")
    rows = [row.split() for row in ran.stdout.splitlines()]
    assert rows[2] == ["toy:1.0.0", "damaged", "-", "-", str(broken.parent)]
    assert rows[3] == found_in(data)[2]
    # What the words leave out is not read.
    assert shardctl("list", "blocks", "--data-dir", data).stderr == ""
