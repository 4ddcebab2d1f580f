"""All loaders on one dataset: ImageNet's published figures, and what is refused."""

from __future__ import annotations

import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.errors import UsageError
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.quality.loaders import LoaderComparison, compare_loaders

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def imagenet() -> LoaderComparison:
    return compare_loaders("imagenet2012")


# Counted over whole epochs of the real libraries, batches of 256.
@pytest.mark.parametrize(
    ("reader", "shards"),
    [
        ("TFDS: files, shuffle(1,000)", 18.6),
        ("TFDS: files, shuffle(10,000)", 40.7),
        ("HF 4.8.5: shuffle(1,000)", 5.7),
        ("HF 5.2.0: shuffle(1,000)", 12.3),
        ("Grain: IndexSampler", 225.6),
        ("torch: DistributedSampler", 226.7),
        ("HF: Dataset.shuffle", 226.7),
    ],
)
def test_shards_in_a_batch_of_imagenet(
    imagenet: LoaderComparison, reader: str, shards: float
) -> None:
    mixing = next(way.mixing for way in imagenet.ways if way.reader == reader)
    assert mixing is not None
    assert mixing.shards_error is not None
    assert abs(mixing.shards - shards) < 0.05 + 3 * mixing.shards_error
    assert mixing.shards_error < 0.15


def test_a_uniform_permutation_of_imagenet(imagenet: LoaderComparison) -> None:
    assert imagenet.uniform_shards == pytest.approx(226.65, abs=0.05)
    assert (imagenet.num_shards, imagenet.num_examples) == (1024, 1_281_167)
    assert imagenet.batch == 256


def test_nobody_refuses_imagenet(imagenet: LoaderComparison) -> None:
    assert [way.refused for way in imagenet.ways] == [None] * 11


def test_an_ordered_dataset_is_not_shuffled_by_tfds() -> None:
    split = Split(name="train", shard_lengths=(9, 9))
    found = compare_loaders(Dataset(name="d", splits=(split,), ordered=True), "train")
    refused = [way.reader for way in found.ways if way.refused is not None]
    assert refused == ["TFDS: files, shuffle(1,000)", "TFDS: files, shuffle(10,000)"]


def test_what_cannot_be_compared() -> None:
    with pytest.raises(UsageError, match="stages are of tf"):
        compare_loaders("mnist", "train", ReadSettings(stages="batch(4)"))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="at most 1,024"):
        compare_loaders("mnist", "train", {"host": "0/2000"})
    with pytest.raises(UsageError, match="2 examples at least"):
        compare_loaders("mnist", "train[:1]")
