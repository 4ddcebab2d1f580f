"""The training scripts of the Flax guide, killed at random moments, train as if nobody did it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shardctl.guide.guides import read_guide
from shardctl.settings.read_settings import ReadSettings
from shardctl.tfds import Position, pipeline
from tests.cases import FUZZ
from tests.killed_runs import (
    Script,
    WholeRun,
    build_images,
    check_killed_runs,
    script_of_guide,
    whole_run,
)
from tests.tfds_datasets import build_dataset

LENGTHS = [400, 0, 250, 617, 300, 333, 100]  # 3 epochs are 94 batches, the last a partial one
SETTINGS = ReadSettings(shuffle_seed=32, buffer=1000, buffer_seed=7, epochs=3, batch=64)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_images(tmp_path_factory.mktemp("data"), train=LENGTHS)


@pytest.fixture(scope="module", params=["flax_train.py", "linen_train.py"])
def script(
    request: pytest.FixtureRequest, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Script:
    text = script_of_guide("flax", request.param)
    assert "shuffle_seed=32, buffer=1000, buffer_seed=7, epochs=3, batch=64" in text
    path = tmp_path_factory.mktemp("script") / "train.py"
    path.write_text(text)
    return Script(path=path, arguments=(folder,), outcome=outcome)


@pytest.fixture(scope="module")
def whole(script: Script, tmp_path_factory: pytest.TempPathFactory) -> WholeRun:
    return whole_run(script, tmp_path_factory.mktemp("whole"))


def outcome(run: Path) -> Mapping[str, Any]:
    """Return every array of the last checkpoint: the weights, and what Adam keeps of them."""
    import jax
    import orbax.checkpoint as ocp

    with ocp.CheckpointManager(run / "checkpoints") as checkpoints:
        assert checkpoints.latest_step() == 94
        state = checkpoints.restore(
            94, args=ocp.args.Composite(state=ocp.args.StandardRestore())
        ).state
    arrays = {jax.tree_util.keystr(k): v for k, v in jax.tree_util.tree_leaves_with_path(state)}
    assert len(arrays) == 8  # bias and kernel, two moments of each, and two counts of steps
    return arrays


def test_a_leaf_of_bytes_or_an_array_is_the_position(tmp_path: Path) -> None:
    import orbax.checkpoint as ocp
    import tensorflow_datasets as tfds
    from flax import serialization

    text, weights = read_guide("flax").text, np.arange(3.0)
    for words in (
        '{"weights": weights, "data": position.get_state()}',
        '`position.set_state(serialization.msgpack_restore(saved)["data"])`',
        "`np.frombuffer(position.get_state(), np.uint8)`",
        '`restored["data"].tobytes()`',
    ):
        assert words in text
    builder = tfds.builder_from_directory(build_dataset(tmp_path, splits={"train": [200, 100]}))
    position = Position(builder, "train", SETTINGS, consumed=64)
    saved = serialization.to_bytes({"weights": weights, "data": position.get_state()})
    with ocp.StandardCheckpointer() as checkpointer:
        tree = {"data": np.frombuffer(position.get_state(), np.uint8)}
        checkpointer.save(tmp_path / "arrays", tree)
        checkpointer.wait_until_finished()
        restored = checkpointer.restore(tmp_path / "arrays")
    for state in (serialization.msgpack_restore(saved)["data"], restored["data"].tobytes()):
        position.advance(64)
        position.set_state(state)
        assert position.consumed == 64


@pytest.mark.fuzz
def test_the_script_reads_what_the_pipeline_of_its_settings_reads(
    whole: WholeRun, folder: Path
) -> None:
    import tensorflow_datasets as tfds

    dataset = pipeline(
        tfds.builder_from_directory(folder),
        "train",
        SETTINGS,
        transform=lambda example: example["tfds_id"],
        add_tfds_id=True,
    )
    expected = [b" ".join(batch).decode() for batch in dataset.as_numpy_iterator()]
    assert len(expected) == 94
    assert [whole.steps[step] for step in range(1, 95)] == expected


@pytest.mark.fuzz
def test_the_script_killed_at_random_moments_ends_as_one_that_nobody_kills(
    script: Script, whole: WholeRun, tmp_path: Path
) -> None:
    kills = max(1, FUZZ // 1000)
    report = check_killed_runs(script, whole, tmp_path, kills=kills)
    print(report)
    assert len(report.kills) == kills
