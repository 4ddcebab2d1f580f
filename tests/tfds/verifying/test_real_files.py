"""Files as the reader of TFDS hands them out."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import DatasetError
from shardctl.metadata.tfds_metadata import read_tfds_folder
from shardctl.order.plan_order import plan_order
from shardctl.settings.read_settings import ReadSettings
from shardctl.tfds.verifying.real_files import why_not_files
from shardctl.tfds.verifying.verify import verify
from tests.order.toy_pipelines import (
    Toys,
)
from tests.stores.servers import GcsServer, S3Server, lead_to
from tests.tfds.verifying.checked_toys import (
    tampered,
)
from tests.tfds.verifying.google_hosts import google_hosts
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


def test_an_image_is_not_decoded_where_there_is_nothing_else(tmp_path: Path) -> None:
    import tensorflow_datasets as tfds

    features = tfds.features.FeaturesDict({"image": tfds.features.Image(shape=(None, None, 3))})
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"no image at all")
    folder = build_dataset(
        tmp_path,
        splits={"train": [3, 2]},
        features=features,
        example=lambda number: {"image": str(broken)},
    )
    assert verify(read_tfds_folder(folder)).equal


def test_the_cheapest_feature_is_decoded_and_no_other(tmp_path: Path) -> None:
    import numpy as np
    import tensorflow_datasets as tfds

    features = tfds.features.FeaturesDict(
        {"a_image": tfds.features.Image(shape=(None, None, 3)), "z_label": np.int64}
    )
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"no image at all")
    folder = build_dataset(
        tmp_path,
        splits={"train": [3]},
        features=features,
        example=lambda number: {"a_image": str(broken), "z_label": number},
    )
    assert verify(read_tfds_folder(folder)).equal


@pytest.mark.slow
def test_tensorflow_reads_the_order_of_files_in_a_bucket_of_google(
    started_gcs: GcsServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    build_dataset(root, splits={"train": [30, 0, 50, 20]})
    for file in root.rglob("*"):
        if file.is_file():
            started_gcs.put(f"google/{file.relative_to(root).as_posix()}", file.read_bytes())
    settings = ReadSettings(shuffle_seed=3, buffer=10, buffer_seed=1, epochs=2)
    with google_hosts(started_gcs.endpoint, tmp_path) as environment:
        lead_to(monkeypatch, started_gcs.variables() | environment)
        monkeypatch.delenv("STORAGE_EMULATOR_HOST")
        # aiohttp reads SSL_CERT_FILE when it is imported, which it may be already.
        trusted = ssl.create_default_context(cafile=environment["CURL_CA_BUNDLE"])
        monkeypatch.setattr("aiohttp.connector._SSL_CONTEXT_VERIFIED", trusted)
        found = verify("gs://bucket/google/toy/1.0.0", "train", settings)
        assert found.files == ()
        assert (found.equal, found.num_checked, found.read) == (True, 200, "files")
        started_gcs.delete("google/toy/1.0.0/toy-train.tfrecord-00003-of-00004")
        found = verify("gs://bucket/google/toy", "train", settings)
        assert not found.equal
        assert [one.kind for one in found.files] == ["missing"]


@pytest.mark.slow
def test_where_tensorflow_has_no_way_to_the_files_the_reason_is_said(
    gcs: GcsServer, s3: S3Server
) -> None:
    for place, why in (
        (gcs, "TensorFlow reads gs:// files at Google alone, not at STORAGE_EMULATOR_HOST; "),
        (
            s3,
            "TensorFlow does not read s3:// files; `shardctl verify --files` does, and a copy ",
        ),
    ):
        place.put("unread/d-00000", b"")
        url = place.url("unread")
        files = (ShardFiles(data_dir=url, pattern="d-\0", num_shards=1),)
        split = Split(name="train", shard_lengths=(1,), files=files)
        reads = plan_order(Dataset(name="d", splits=(split,), data_dir=url), "train").order.reads
        assert str(why_not_files(reads)).startswith(why)
        place.delete("unread/d-00000")
        assert "are not on this machine" in str(why_not_files(reads))
