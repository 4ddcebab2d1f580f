"""Files as the reader of TFDS hands them out, and index ranges in their place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import DatasetError
from shardctl.metadata.dataset_names import catalog_dataset
from shardctl.metadata.tfds_metadata import read_tfds_folder
from shardctl.order.example_codes import ExampleCodes
from shardctl.order.plan_order import plan_order
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.spec.subsplit import resolve_subsplit
from shardctl.tfds.verifying.real_files import (
    IndexRanges,
    Reading,
    _why_unreadable_there,
    why_not_files,
)
from shardctl.tfds.verifying.verify import verify
from shardctl.verbs.resume.answer import resume
from tests.order.toy_pipelines import Toys
from tests.stores.servers import GcsServer, S3Server
from tests.tfdata.shuffle_oracles import interleave_by_hand
from tests.tfds.verifying.checked_toys import tampered
from tests.tfds_datasets import build_dataset


def test_what_tfds_cannot_open_is_trouble(toys: Toys, tmp_path: Path) -> None:
    folder = tampered(toys, tmp_path)
    (folder / "features.json").write_text("{}")
    with pytest.raises(DatasetError, match="TFDS cannot open"):
        verify(read_tfds_folder(folder), "train")


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (
            {"file_format": "webdataset"},
            "TFDS does not read webdataset files; tf.data reads index ",
        ),
        ({"compression": "GZIP"}, "TFDS reads TFRecord files as they are, and these are GZIP; "),
    ],
)
def test_what_tfds_has_no_reader_for_is_named(
    tmp_path: Path, kind: dict[str, Any], said: str
) -> None:
    (tmp_path / "a.tar").write_bytes(b"")
    files = (ShardFiles(data_dir=str(tmp_path), names=("a.tar",), num_shards=1),)
    split = Split(name="train", shard_lengths=(1,), files=files)
    reads = plan_order(Dataset(name="d", splits=(split,), **kind), "train").order.reads
    assert str(why_not_files(reads)).startswith(said)


@pytest.mark.parametrize("has_label", [False, True])
def test_the_cheapest_feature_is_decoded_and_no_other(
    tfds: Any, tmp_path: Path, has_label: bool
) -> None:
    import numpy as np

    broken = tmp_path / "broken.png"
    broken.write_bytes(b"no image at all")
    label = {"z_label": np.int64} if has_label else {}
    features = {"a_image": tfds.features.Image(shape=(None, None, 3)), **label}
    folder = build_dataset(
        tmp_path,
        splits={"train": [3]},
        features=tfds.features.FeaturesDict(features),
        example=lambda number: {"a_image": str(broken), **dict.fromkeys(label, number)},
    )
    assert verify(read_tfds_folder(folder)).equal


@pytest.mark.slow
def test_where_tensorflow_has_no_way_to_the_files_the_reason_is_said(
    gcs: GcsServer, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place, why in (
        (gcs, "TensorFlow reads gs:// files at Google alone, not at STORAGE_EMULATOR_HOST; "),
        (s3, "TensorFlow does not read s3:// files; `shardctl verify --files` does, and a copy "),
    ):
        place.put("unread/d-00000", b"")
        url = place.url("unread")
        files = (ShardFiles(data_dir=url, pattern="d-\0", num_shards=1),)
        split = Split(name="train", shard_lengths=(1,), files=files)
        reads = plan_order(Dataset(name="d", splits=(split,), data_dir=url), "train").order.reads
        assert str(why_not_files(reads)).startswith(why)
        place.delete("unread/d-00000")
        assert "are not on this machine" in str(why_not_files(reads))
    monkeypatch.delenv("STORAGE_EMULATOR_HOST", raising=False)
    assert _why_unreadable_there("gs://bucket/file") is None  # as at Google


# Index ranges in place of files.

SPLITS = tuple(
    Split(name=name, shard_lengths=lengths, files=(ShardFiles(pattern=f"{name}-\0", num_shards=2),))
    for name, lengths in (("a", (3, 4)), ("b", (2, 5)))
)
TOY = Dataset(name="toy", splits=SPLITS)
# Split b begins where a ends: its codes are those of its ids and 7.
BY_HAND = [(0, 3, 7, 9)[shard] + offset for shard, offset in interleave_by_hand([3, 4, 2, 5], 2, 2)]


def ranges_of(spec: str) -> IndexRanges:
    resolved = resolve_subsplit(spec, TOY)
    names = [piece.split.name for piece in resolved.ranges]
    return IndexRanges(resolved=resolved, codes=ExampleCodes(TOY, names))


def codes_read(reading: Reading) -> list[int]:
    return [int(code) for batch in reading.elements for code in reading.codes_of(batch.numpy())]


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        pytest.param({}, slice(None), id="all"),
        pytest.param({"batch": 4}, slice(None), id="in batches"),
        pytest.param({"batch": 4, "drop_remainder": True}, slice(12), id="whole batches"),
        pytest.param(
            {"host": Host(index=1, count=3), "host_by": "examples"}, slice(1, None, 3), id="a host"
        ),
    ],
)
def test_a_range_of_codes_stands_for_each_file(settings: dict[str, Any], kept: slice) -> None:
    reading = ranges_of("a+b").pipeline(ReadSettings(cycle=2, block=2, **settings))
    assert codes_read(reading) == BY_HAND[kept]


def test_epochs_files_and_buffers_are_those_of_the_settings() -> None:
    settings = ReadSettings(shuffle_seed=3, buffer=3, buffer_seed=5, epochs=2, cycle=2, block=1)
    read = codes_read(ranges_of("a").pipeline(settings))
    assert read == plan_order(TOY, "a", settings).order.read(0, 14).tolist()
    assert read[:7] != read[7:]
    assert sorted(read[:7]) == sorted(read[7:]) == list(range(7))


@pytest.mark.parametrize("consumed", [0, 1, 5, 14])
def test_a_plan_reads_the_rest(consumed: int) -> None:
    plan = resume(TOY, "a+b", ReadSettings(cycle=2, block=2), consumed=consumed)
    assert codes_read(ranges_of("a+b").resumed(plan, None)) == BY_HAND[consumed:]


def test_a_reader_without_cardinality_has_none_over_index_ranges() -> None:
    """So a pass that ends with the last element does not fill the cache behind it."""
    text = "read(assert_cardinality=False) | shuffle(5, seed=1) | cache | take(7)"
    assert verify(TOY, "a", {"stages": text, "pass": 1}).equal


@pytest.mark.slow
def test_the_beginning_of_imagenet_over_index_ranges() -> None:
    dataset = catalog_dataset("imagenet2012")
    assert dataset is not None
    found = verify(dataset, None, ReadSettings(shuffle_seed=32), take=50_000)
    assert (found.equal, found.num_checked, len(found.windows)) == (True, 50_000, 1)
    assert found.notes[0].startswith("the files of imagenet2012:5.1.0 are not on this machine")
