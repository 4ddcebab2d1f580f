"""Records as they lie in TFDS's files, and the shuffle that takes any seeds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shardctl.order.example_codes import ExampleCodes
from shardctl.spec.reads import Reads, reads_of
from shardctl.spec.subsplit import SplitRange
from shardctl.tfdata.shuffle_seeds import shuffle_kernel_seeds
from shardctl.tfds.builder_layout import dataset_of
from shardctl.tfds.training.pipeline import kernel_shuffle
from shardctl.tfds.training.records import RecordReader
from tests.tfdata.shuffle_oracles import tf_order
from tests.tfds_datasets import build_dataset


@pytest.mark.parametrize(("num_elements", "buffer_size"), [(0, 3), (20, 1), (20, 7), (20, 99)])
@pytest.mark.parametrize("seed", [0, 7, 2**31 - 2])
def test_the_seeds_of_the_kernel_give_the_order_of_the_seed_of_a_shuffle(
    tf: Any, num_elements: int, buffer_size: int, seed: int
) -> None:
    seeds = shuffle_kernel_seeds(seed, None)
    pair = tf.constant([seeds.seed, seeds.seed2], tf.int64)
    shuffled = kernel_shuffle(tf.data.Dataset.range(num_elements), buffer_size, pair)
    expected = tf_order(num_elements, buffer_size, seed)
    together = shuffled.batch(99)
    for _ in range(2):  # every iterator has the same order
        assert [number for batch in together for number in batch.numpy().tolist()] == expected


def test_rows_of_a_file_that_are_read_together_are_interleaved_as_one_file(
    tfds: Any, tmp_path: Path
) -> None:
    builder = tfds.builder_from_directory(build_dataset(tmp_path, splits={"train": [9, 4, 7]}))
    dataset = dataset_of(builder)
    # Of ids 0-8, 9-12 and 13-19: 1, 2 and 5 of the first file, then 10, then 8 and 13, 14, 19.
    rows = [(0, 1, 2), (0, 5, 1), (1, 1, 1), (0, 8, 1), (2, 0, 2), (2, 6, 1)]
    shard, skip, take = np.array(rows, np.int64).T
    none = np.zeros_like(shard)
    reads = Reads(files=dataset, part=none, split=none, shard=shard, skip=skip, take=take)
    codes = ExampleCodes(dataset, ["train"], reads)
    reader = RecordReader(builder=builder, codes=codes, cycle=2, block=2, with_ids=True)
    records = reader.in_files(reads, np.array([2, 1, 1, 2], np.int64))
    ids = [int(example["id"]) for example in reader.decode(records)]
    names = [example["tfds_id"].numpy().decode() for example in reader.decode(records)]
    # Blocks of 2 in turn: a file that ends within its block gives its slot to the next.
    assert ids == [1, 2, 10, 5, 8, 13, 14, 19]
    assert names == codes.tfds_ids(ids)
    whole = reader.in_files(reads, np.ones(6, np.int64))
    assert sorted(int(example["id"]) for example in reader.decode(whole)) == sorted(ids)
    assert list(reader.in_files(reads.select(slice(0, 0)), np.empty(0, np.int64))) == []


@pytest.fixture(scope="module")
def pieces(tfds: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The builder of a file of several pieces, and of others."""
    splits = {"train": [2500, 0, 3, 40]}
    folder = build_dataset(tmp_path_factory.mktemp("pieces"), splits=splits)
    return tfds.builder_from_directory(folder)


@pytest.mark.parametrize("with_ids", [False, True])
def test_chosen_records_come_with_the_ranks_of_their_codes(
    tf: Any, pieces: Any, *, with_ids: bool
) -> None:
    """Of a file of several pieces, of one that is read to its end, and one of them twice."""
    dataset = dataset_of(pieces)
    train = dataset.splits[0]
    reads = reads_of(dataset, [SplitRange(split=train, start=0, stop=train.num_examples)])
    reader = RecordReader(
        builder=pieces,
        codes=ExampleCodes(dataset, ["train"]),
        cycle=16,
        block=16,
        with_ids=with_ids,
    )
    codes = [3, 4, 4, 1023, 1024, 2499, 2500, 2502, 2539]
    found = {}
    for records, ranks in reader.chosen(reads, np.array(codes)).as_numpy_iterator():
        serialized, ids = records if with_ids else (records, [b""] * len(records))
        for record, tfds_id, rank in zip(serialized, ids, ranks.tolist(), strict=True):
            assert rank not in found
            number = int(pieces.info.features.deserialize_example(record)["id"])
            found[rank] = number, tfds_id.decode()
    assert [found[rank][0] for rank in range(len(codes))] == codes
    if with_ids:
        places = [(0, 3), (0, 4), (0, 4), (0, 1023), (0, 1024), (0, 2499), (2, 0), (2, 2), (3, 36)]
        assert [found[rank][1] for rank in range(len(codes))] == [
            f"toy-train.tfrecord-{shard:05}-of-00004__{index}" for shard, index in places
        ]


def test_elements_that_are_no_tensors_are_shuffled_as_they_are(tf: Any) -> None:
    def element(number: Any) -> Any:
        ragged = tf.RaggedTensor.from_row_lengths(tf.fill([number], number), [number, 0])
        return {
            "ragged": ragged,
            "sparse": tf.sparse.from_dense([number, 0]),
            "dataset": tf.data.Dataset.range(number),
            "none": None,
        }

    elements = tf.data.Dataset.range(12).map(element)
    seeds = shuffle_kernel_seeds(7, None)
    shuffled = kernel_shuffle(elements, 5, tf.constant([seeds.seed, seeds.seed2], tf.int64))
    assert shuffled.element_spec == elements.element_spec
    for number, found in zip(tf_order(12, 5, 7), shuffled, strict=True):
        assert found["ragged"].to_list() == [[number] * number, []]
        assert tf.sparse.to_dense(found["sparse"]).numpy().tolist() == [number, 0]
        assert list(found["dataset"].as_numpy_iterator()) == list(range(number))
        assert found["none"] is None
