"""What a host reads: its own files alone, as many examples as the plan says, one to pad with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import shardctl.tfds
from shardctl.errors import DatasetError
from shardctl.spec.host import Host
from tests.tfds_datasets import build_dataset

LENGTHS = [3, 0, 5, 4]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return build_dataset(tmp_path, splits={"test": LENGTHS, "nothing": [0, 0], "bare": []})


def evaluated(folder: Path, spec: str = "test", **arguments: Any) -> tuple[list[int], int]:
    """Return the ids of the real examples, and how many steps there are."""
    import tensorflow_datasets as tfds

    builder = tfds.builder_from_directory(folder)
    batches = shardctl.tfds.evaluation(builder, spec, **{"batch": 2, **arguments})
    elements = list(batches.as_numpy_iterator())
    return [int(i) for example, mask in elements for i in example["id"][mask]], len(elements)


def test_a_host_reads_no_file_of_another(folder: Path) -> None:
    by_files: dict[str, Any] = {"settings": {"host_by": "files"}, "hosts": 4}
    for shard in (0, 1, 2):
        (folder / f"toy-test.tfrecord-0000{shard}-of-00004").unlink()
    assert evaluated(folder, host=2, **by_files) == ([8, 9, 10, 11], 3)
    # One without examples has none to repeat, and reads nothing at all where it is told to.
    assert evaluated(folder, host=3, padding="zeros", **by_files) == ([], 3)


def test_more_hosts_than_files_or_examples(folder: Path) -> None:
    for host_by, steps in (("files", 3), ("examples", 1)):
        found = [
            evaluated(folder, settings={"host_by": host_by}, host=f"{index}/13")
            for index in (2, 12)
        ]
        assert {num_steps for _, num_steps in found} == {steps}
        first = {"files": [[8, 9, 10, 11], []]}
        assert [ids for ids, _ in found] == first.get(host_by, [[2], []])


def test_a_spec_without_examples_has_no_steps(folder: Path) -> None:
    for spec in ("test[:0]", "nothing", "bare", "nothing+bare"):
        assert evaluated(folder, spec, host="1/3", settings={"host_by": "files"}) == ([], 0)


def test_a_dataset_without_examples_says_that_nothing_is_known(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="has no examples at all"):
        evaluated(build_dataset(tmp_path, splits={"test": [0]}))


def test_files_that_hold_another_number_of_examples_fail(folder: Path, tf: Any) -> None:
    other = build_dataset(folder.parent / "other", splits={"test": [3, 0, 5, 3]})
    name = "toy-test.tfrecord-00003-of-00004"
    (other / name).rename(folder / name)
    for host_by in ("even", "files", "examples"):
        with pytest.raises(
            tf.errors.FailedPreconditionError, match="expected to contain 12 elements"
        ):
            evaluated(folder, host=str(Host(index=0, count=1)), settings={"host_by": host_by})


@pytest.mark.slow
def test_an_order_let_go_behind_it_loses_no_example(tfds: Any, tmp_path: Path, tf: Any) -> None:
    """Hosts of `ds.shard` share examples by the order of all, which decoding might not keep."""
    import numpy as np

    features = tfds.features.FeaturesDict(
        {"id": np.int64, "image": tfds.features.Image(shape=(None, None, 1))}
    )

    def example(i: int) -> Any:  # every seventh takes much longer to decode
        size = 400 if i % 7 == 0 else 2
        image = np.random.default_rng(i).integers(0, 256, (size, size, 1), np.uint8)
        return {"id": i, "image": image}

    folder = build_dataset(tmp_path, splits={"test": [50]}, features=features, example=example)
    options = tf.data.Options()
    options.deterministic = False
    found = []
    for index in range(2):
        batches = shardctl.tfds.evaluation(
            tfds.builder_from_directory(folder),
            "test",
            {"host_by": "examples"},
            batch=8,
            hosts=2,
            host=index,
            transform=lambda one: one["id"],
        )
        for ids, mask in batches.with_options(options).as_numpy_iterator():
            found += ids[mask].tolist()
    assert sorted(found) == list(range(50))
