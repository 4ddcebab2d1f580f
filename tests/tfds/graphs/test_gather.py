"""Elements of sources by their places."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shardctl.metadata.tfds_metadata import read_tfds_folder
from shardctl.order.example_codes import ExampleCodes
from shardctl.tfds.graphs.dataset_graph import DatasetGraph
from shardctl.tfds.graphs.gather import FileSource, NodeSource
from tests.cases import add_cases
from tests.tfds_datasets import build_dataset


def test_records_come_in_the_order_asked_for(tmp_path: Path) -> None:
    import tensorflow as tf
    import tensorflow_datasets as tfds

    folder = build_dataset(tmp_path, splits={"train": [300, 0, 7], "test": [4]})
    builder = tfds.builder_from_directory(folder)
    decode = builder.info.features.deserialize_example
    dataset = read_tfds_folder(folder)
    codes = ExampleCodes(dataset, ["test", "train"])
    rng = random.Random(3)
    for with_ids in (False, True):
        source = FileSource(dataset=dataset, codes=codes, with_ids=with_ids)
        for _ in range(6):
            wanted = np.array([rng.randrange(311) for _ in range(rng.randrange(40))], np.int64)
            found = source.elements(wanted)
            ids = [int(decode(tf.constant(element[-1]))["id"]) for element in found]
            assert ids == codes.split_ids(wanted).tolist()
            if with_ids:
                assert [e[0].decode() for e in found] == codes.tfds_ids(wanted)
            add_cases()


def test_a_file_is_read_on_where_it_was_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = read_tfds_folder(build_dataset(tmp_path, splits={"train": [400]}))
    source = FileSource(dataset=dataset, codes=ExampleCodes(dataset, ["train"]), with_ids=False)
    opened = []
    real = FileSource._open

    def opening(self: FileSource, file: int, start: int) -> Any:
        opened.append((file, start))
        return real(self, file, start)

    monkeypatch.setattr(FileSource, "_open", opening)
    for start in range(0, 400, 100):
        source.elements(np.arange(start, start + 100))
    assert opened == [(0, 0)]


def test_elements_of_a_node_are_those_of_the_dataset() -> None:
    import tensorflow as tf

    own = tf.data.Dataset.from_tensor_slices(([5, 6, 7], ["a", "b", "c"])).shuffle(3)
    graph = DatasetGraph(own)
    source = NodeSource(graph=graph, leaf=graph.root.leaves[0])
    assert source.elements(np.array([2, 0, 2])) == [(7, b"c"), (5, b"a"), (7, b"c")]
