from __future__ import annotations

import pytest

from shardctl.metadata.index.words import dataset_of_folder, valid_name


@pytest.mark.parametrize(
    ("root", "name", "version"),
    [
        ("/d/mnist/3.0.1", "mnist", "3.0.1"),
        ("/d/c4/en/3.0.1", "en", "3.0.1"),
        ("/d/mnist/train", "mnist", None),
        ("/d/mnist/data/train", "mnist", None),
        ("/data/train", "train", None),
        ("/w/parquet", "parquet", None),
        ("/home/me/tfrecords/val", "tfrecords", None),
        ("gs://bucket/FashionMNIST/1.0.0", "fashion_mnist", "1.0.0"),
        ("hf://datasets/me/my-data", "my_data", None),
        ("/", None, None),
        ("", None, None),
    ],
)
def test_names_and_versions(root: str, name: str | None, version: str | None) -> None:
    assert dataset_of_folder(root) == (name, version)


def test_a_name_that_tfds_takes() -> None:
    assert valid_name("a--b__c.d ") == "a_b_c_d"
    assert valid_name("...") is None
