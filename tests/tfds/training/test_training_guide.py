"""The training script of the guide, killed again and again, trains as one that nobody kills."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import shardctl.tfds
from shardctl.settings.read_settings import ReadSettings
from tests.cases import FUZZ
from tests.killed_runs import (
    Moment,
    Script,
    WholeRun,
    build_images,
    check_killed_runs,
    script_of_guide,
    whole_run,
)
from tests.tfds_datasets import build_dataset

SOURCE = script_of_guide("training", "checkpoint_train.py")
LENGTHS = [400, 0, 250, 617, 300, 333, 100]  # 3 epochs are 94 batches, a partial one at the end


def stated_settings() -> ReadSettings:
    """Return the settings of the script."""
    (stated,) = re.findall(r"^settings = (.*)$", SOURCE, re.M)
    settings: ReadSettings = eval(stated, {"ReadSettings": ReadSettings})
    return settings


@pytest.fixture(scope="module")
def folder(tfds: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_images(tmp_path_factory.mktemp("data"), train=LENGTHS)


def last_checkpoint(run: Path) -> Mapping[str, Any]:
    """Return all that the newest checkpoint of a run holds, the position too."""
    import tensorflow as tf

    reader = tf.train.load_checkpoint(str(run))
    names = reader.get_variable_to_shape_map()
    return {name: reader.get_tensor(name) for name in names if "OBJECT_GRAPH" not in name}


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Script:
    path = tmp_path_factory.mktemp("script") / "train.py"
    path.write_text(SOURCE)
    return Script(path=path, arguments=(folder,), outcome=last_checkpoint)


@pytest.fixture(scope="module")
def whole(
    tfds: Any, tmp_path_factory: pytest.TempPathFactory, script: Script, folder: Path
) -> WholeRun:
    """Return the run that nobody killed, whose batches are those of TFDS and tf.data."""
    found = whole_run(script, tmp_path_factory.mktemp("whole") / "run")
    dataset = shardctl.tfds.pipeline(
        tfds.builder_from_directory(folder),
        "train",
        stated_settings(),
        transform=lambda example: example["tfds_id"],
        add_tfds_id=True,
    )
    batches = [b" ".join(batch).decode() for batch in dataset.as_numpy_iterator()]
    assert dict(enumerate(batches, 1)) == found.steps
    assert len(batches) == 94
    return found


@pytest.mark.slow
def test_the_script_killed_at_random_steps_trains_on_every_batch_in_order(
    script: Script, whole: WholeRun, folder: Path, tmp_path: Path
) -> None:
    assert {"weights/.ATTRIBUTES/VARIABLE_VALUE", "data/.ATTRIBUTES/py_state"} <= set(whole.outcome)
    kills = [Moment(by="steps", at=17, delay=0.01), Moment(by="files", at=5)]
    report = check_killed_runs(script, whole, tmp_path, kills=kills)
    assert report.num_resumed == 2
    # Its log says so: every example once in each epoch, in steps that no restart rolled back.
    audit = shardctl.audit(folder, "train", stated_settings(), logs=tmp_path / "run0")
    assert audit.equal
    assert [one.trained for one in audit.epochs] == 3 * [sum(LENGTHS)]
    # A restart at the very step that was due is none in a log.
    seen = [run.first_step for run in audit.runs]
    assert seen[0] == 1
    assert set(seen[1:]) <= {step for _, step in report.kills}
    assert audit.runs[0].num_rolled_back > 0


def test_a_script_that_wrote_position_files_goes_over(tf: Any, tfds: Any, tmp_path: Path) -> None:
    """By the lines of the guide, which restore both kinds of checkpoints."""
    lines = script_of_guide("training", "over.py")
    folder = build_dataset(tmp_path / "data", splits={"train": LENGTHS}, with_files=False)

    def names(consumed: int, step: int, **data: Any) -> dict[str, Any]:
        position = shardctl.tfds.Position(
            tfds.builder_from_directory(folder), "train", consumed=consumed
        )
        known = {"tf": tf, "run": tmp_path, "position": position, "step": tf.Variable(step)}
        parts = {"step": known["step"], "weights": tf.Variable(0.5)} | (data and {"data": position})
        manager = tf.train.CheckpointManager(tf.train.Checkpoint(**parts), tmp_path, 3)
        return {**known, "weights": parts["weights"], "checkpoints": manager}

    def restored() -> tuple[int, int]:
        now = names(0, 0)
        exec(lines, now)
        return int(now["step"]), now["position"].consumed

    before = names(640, 10)
    before["checkpoints"].save(checkpoint_number=10)
    with pytest.raises(AssertionError, match="Position 0 of 2000 examples"):
        restored()
    before["position"].save(tmp_path / "position-10.json")
    assert restored() == (10, 640)
    names(704, 11, data=True)["checkpoints"].save(checkpoint_number=11)
    assert restored() == (11, 704)


@pytest.mark.fuzz
def test_the_script_killed_at_random_moments_fuzzed(
    script: Script, whole: WholeRun, tmp_path: Path
) -> None:
    print(check_killed_runs(script, whole, tmp_path, kills=max(1, FUZZ // 400)))
