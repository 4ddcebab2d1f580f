"""Dataset objects compared with what is predicted of them, and what is not as predicted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shardctl.tfds
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.tfds.training.edited_graph import EditedGraph
from shardctl.tfds.verifying.verify_dataset import rows_of, verify_inspected
from shardctl.verbs.inspect.answer import Inspection
from tests.forked_scripts import forking_python
from tests.tfds_datasets import build_dataset


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    splits = {"train": [5, 0, 7, 9, 4], "test": [6, 6]}
    return build_dataset(tmp_path_factory.mktemp("verified"), splits=splits)


def read(folder: Path, split: str = "train") -> Any:
    import tensorflow_datasets as tfds

    return tfds.builder_from_directory(folder).as_dataset(
        split=split, shuffle_files=True, read_config=tfds.ReadConfig(shuffle_seed=3)
    )


def own(folder: Path) -> Any:
    """Return batches of numbers that maps have changed, below and above the shuffle."""
    first = read(folder).map(lambda example: example["id"] * 3).cache()
    return first.shuffle(7, seed=1).repeat(2).batch(4).map(lambda batch: batch + 1)


@pytest.mark.parametrize(
    ("pass_index", "loop"), [(2, "python"), pytest.param(1, "keras-fit", marks=pytest.mark.slow)]
)
def test_the_very_object_is_as_predicted(folder: Path, pass_index: int, loop: Any) -> None:
    found = shardctl.tfds.verify_dataset(own(folder), pass_index=pass_index, loop=loop)
    assert found.equal
    assert (found.num_checked, found.num_files, found.spec) == (50, 4, "train")
    assert "25 are distinct" in found.notes[0]


def test_a_wrong_prediction_is_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if pass 0 were predicted with the seeds of pass 1."""
    dataset = own(folder)
    came = [(int(value) - 1) // 3 for batch in own(folder) for value in batch]
    order = Inspection.order
    predicted = order(shardctl.tfds.inspect(dataset), 1).order.read(0, 50).tolist()
    monkeypatch.setattr(Inspection, "order", lambda self, index=0: order(self, index + 1))
    first = shardctl.tfds.verify_dataset(dataset).first_difference
    at = next(i for i, (a, b) in enumerate(zip(came, predicted, strict=True)) if a != b)
    assert first is not None
    assert (first.position, first.expected) == (at, predicted[at])
    assert first.found == "another example"


@pytest.mark.slow
def test_an_object_that_was_iterated_or_ends_early_is_found(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    longer, shorter, iterated = own(folder), own(folder).take(3), own(folder)
    next(iter(iterated))  # which is in a later pass then
    assert not shardctl.tfds.verify_dataset(iterated).equal
    inspection = shardctl.tfds.inspect(longer)
    monkeypatch.setattr(
        "shardctl.tfds.training.own_elements.OwnElements._edited",
        property(lambda self: EditedGraph(longer)),
    )
    found = verify_inspected(shorter, inspection, pass_index=0, take="all")
    first = found.first_difference
    assert first is not None
    assert (first.position, first.found) == (12, None)


def test_what_cannot_be_compared_is_refused(tf: Any, folder: Path) -> None:
    assert shardctl.tfds.verify_dataset(tf.data.Dataset.range(5)).equal
    with pytest.raises(UnpredictableOrderError, match="filter"):
        shardctl.tfds.verify_dataset(read(folder).filter(lambda e: e["id"] > 2))
    with pytest.raises(UsageError, match=r"random numbers \(.*RandomUniform.*\), so what"):
        shardctl.tfds.verify_dataset(read(folder).map(lambda e: tf.random.uniform([])))
    with pytest.raises(UsageError, match="count what passes"):
        shardctl.tfds.verify_dataset(read(folder).enumerate())


@pytest.mark.slow
def test_a_function_of_a_script_is_verified(folder: Path, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import tensorflow_datasets as tfds\n"
        "def make(folder, buffer):\n"
        "    read = tfds.builder_from_directory(folder).as_dataset(split='test')\n"
        "    return read.map(lambda e: e['id'] + 5).shuffle(buffer, seed=1).repeat(2)\n"
    )
    run = ["-m", "shardctl", "verify", f"{script}:make"]
    words = ["--", str(folder), "buffer=4"]
    answer, refused = forking_python().run(
        [[*run, "-f", "json", "--pass", "1", *words], [*run, "--shuffle-seed", "1", *words]],
        tmp_path,
    )
    assert answer.code == 0, answer.errors
    document = json.loads(answer.out)
    assert (document["equal"], document["num_checked"], document["spec"]) == (True, 24, "test")
    assert refused.code == 2
    assert "the function has its settings" in refused.errors


def test_rows_of_a_batch_are_its_examples_and_another_element_is_one() -> None:
    parts = [np.zeros((3, 2)), np.zeros(3)]
    assert [len(rows_of(parts, width)) for width in (3, 4, 1)] == [3, 3, 1]
    assert len(rows_of([*parts, np.zeros(2)], 3)) == 1
