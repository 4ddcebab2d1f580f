"""The built-in catalog as datasets: the facts its users rely on, defaults as TFDS has them."""

from __future__ import annotations

import pytest

from shardctl.dataset.dataset import Dataset
from shardctl.errors import DatasetError
from shardctl.metadata import names as catalog
from shardctl.metadata.names import (
    catalog_dataset,
    catalog_names,
    catalog_titles,
    parse_dataset_name,
)


def found(name: str, config: str | None = None, version: str | None = None) -> Dataset:
    dataset = catalog_dataset(name, config, version)
    assert dataset is not None
    return dataset


def test_imagenet2012_is_as_its_publisher_states() -> None:
    dataset = found("imagenet2012")
    assert dataset.title == "imagenet2012:5.1.0"
    assert (dataset.data_dir, dataset.origin) == (None, "built-in catalog")
    facts = {s.name: (s.num_examples, s.num_shards, s.num_bytes) for s in dataset.splits}
    assert facts["train"] == (1281167, 1024, 146999114192)
    assert facts["validation"][:2] == (50000, 64)
    assert facts["test"] == (100000, 128, 13619139599)


def test_lengths_lie_between_rounded_boundaries() -> None:
    """Shard 450 of the TFDS determinism guide: ids 563013 to 564264."""
    train = found("imagenet2012").split("train")
    assert train.offsets[450:452] == (563013, 564264)
    assert train.filename(450) == "imagenet2012-train.tfrecord-00450-of-01024"


def test_mnist_has_one_shard_a_split() -> None:
    mnist = found("mnist", version="3.*.*")
    assert [(s.name, s.shard_lengths) for s in mnist.splits] == [
        ("train", (60000,)),
        ("test", (10000,)),
    ]


def test_every_entry_can_be_asked_for_by_its_title() -> None:
    for name in catalog_names():
        for title in catalog_titles(name):
            wanted = parse_dataset_name(title)
            assert wanted is not None
            assert found(wanted.name, wanted.config, wanted.version).title == title


def test_no_config_means_the_default_config_of_tfds() -> None:
    assert found("coco").config == "2014"
    assert found("coco", "2017").title == "coco/2017:1.1.0"


def test_without_a_default_the_configs_are_the_choices() -> None:
    with pytest.raises(DatasetError, match="choose one: imagenet_resized/32x32, imagenet_resized/"):
        catalog_dataset("imagenet_resized")


@pytest.mark.parametrize(
    "wanted",
    [
        ("mnist", None, "9.9.9"),
        ("mnist", "big", None),
        ("no_such", None, None),
        ("../mnist", None, None),
        ("x" * 5000, None, None),
        ("", None, None),
    ],
)
def test_what_is_not_in_the_catalog_is_none(wanted: tuple[str, str | None, str | None]) -> None:
    assert catalog_dataset(*wanted) is None


def test_the_newest_version_is_taken_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    splits = [{"name": "train", "num_examples": 3, "num_shards": 2}]
    entries = [
        {"config": None, "version": version, "splits": splits}
        for version in ("2.10.0", "2.9.0", "10.0.0")
    ]
    monkeypatch.setattr(catalog, "_catalog_document", lambda name: {"entries": entries})
    assert found("toy").version == "10.0.0"
    assert found("toy", version="2.*.*").version == "2.10.0"
    assert found("toy").splits[0].shard_lengths == (2, 1)
