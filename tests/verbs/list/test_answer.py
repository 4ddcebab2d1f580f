"""Datasets that names lead to: what they are called, and which come first."""

from __future__ import annotations

import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.verbs.list.answer import DatasetList, ListedDataset, may_have


@pytest.mark.parametrize(
    ("config", "version", "title"),
    [
        (None, None, "coco"),
        ("2017", None, "coco/2017"),
        (None, "1.1.0", "coco:1.1.0"),
        ("2017", "1.1.0", "coco/2017:1.1.0"),
    ],
)
def test_a_title_is_the_name_that_leads_there(
    config: str | None, version: str | None, title: str
) -> None:
    assert ListedDataset(name="coco", config=config, version=version).title == title


def test_datasets_with_files_come_before_built_in_layouts() -> None:
    here = ListedDataset(name="mnist", config=None, version="1.0.0", path="/data/mnist/1.0.0")
    built_in = ListedDataset(name="mnist", config=None, version="3.0.1")
    listed = DatasetList(data_dirs=("/data",), in_data_dirs=(here,), built_in=(built_in,))
    assert listed.datasets == (here, built_in)
    assert [dataset.source for dataset in listed.datasets] == ["data_dir", "catalog"]


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


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["image"], ["imagenet2012", "imagenet_v2"]),
        (["image", "net", "2012"], ["imagenet2012"]),
        (["MNIST"], ["mnist", "fashion_mnist"]),
        (["top"], ["imagenet_v2"]),
        (["imagenet_v2/top:1"], ["imagenet_v2"]),
        (["record"], ["imagenet2012", "imagenet_v2", "mnist"]),
        (["array", "v2"], ["imagenet_v2"]),
        (["PARQUET"], ["fashion_mnist"]),
        (["1.0.0"], ["imagenet2012", "imagenet_v2", "mnist", "fashion_mnist"]),
        (["mnist", "imagenet"], []),
        (["built"], []),
    ],
)
def test_words_choose_what_has_them_all(words: list[str], names: list[str]) -> None:
    found = HERE.having(words)
    assert [dataset.name for dataset in found.datasets] == names
    assert found.words == tuple(words)
    for dataset in found.datasets:  # what is shown is read
        assert may_have(dataset.title, words)


def test_where_nothing_has_them_names_near_the_words_that_nobody_has_are_known() -> None:
    assert HERE.having(["fashon_mnist"]).near[0] == "fashion_mnist"
    assert HERE.having(["Fashion-MNIST"]).near[0] == "fashion_mnist"
    assert HERE.having(["mnist", "imagenet"]).near == ()  # each word is somebody's
    assert HERE.having(["zzz"]).near == ()
    assert HERE.having(["mnist"]).near == ()


def test_a_dataset_that_cannot_have_the_words_need_not_be_read() -> None:
    assert not may_have("imagenet2012:5.1.0", ["mnist"])
    assert may_have("imagenet2012:5.1.0", ["riegeli"])  # its format is not known by its title
    assert not may_have("imagenet2012:5.1.0", ["riegeli", "mnist"])
