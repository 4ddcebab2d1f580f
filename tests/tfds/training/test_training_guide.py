"""The training script of the guide, killed again and again, trains as one that nobody kills."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import shardctl.tfds
from shardctl.core.settings.read_settings import ReadSettings
from tests.cases import FUZZ, add_cases
from tests.tfds_datasets import build_dataset

REPOSITORY = Path(__file__).parents[3]
GUIDE = REPOSITORY / "shardctl" / "guide" / "training.md"
LENGTHS = [
    400,
    0,
    250,
    617,
    300,
    333,
    100,
]  # 3 epochs are 94 batches, with a partial one at the end
CHECKPOINT_EVERY = 10
MAX_SECONDS = 120


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the script as it is in the guide."""
    found = re.findall(r"^```python\n(# train\.py.*?)^```$", GUIDE.read_text("utf-8"), re.M | re.S)
    assert len(found) == 1
    path: Path = tmp_path_factory.mktemp("script") / "train.py"
    path.write_text(found[0])
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import numpy as np
    import tensorflow_datasets as tfds

    features = tfds.features.FeaturesDict(
        {
            "image": tfds.features.Image(shape=(28, 28, 1)),
            "label": tfds.features.ClassLabel(num_classes=10),
        }
    )

    def example(i: int) -> dict[str, Any]:
        return {"image": np.full((28, 28, 1), i % 256, np.uint8), "label": i % 10}

    return build_dataset(
        tmp_path_factory.mktemp("data"),
        "mnist",
        {"train": LENGTHS},
        features=features,
        example=example,
    )


def batches_of(folder: Path, source: str) -> list[list[str]]:
    """Return the tfds_ids of each batch of the uninterrupted pipeline, read by TFDS and tf.data."""
    import tensorflow_datasets as tfds

    settings = eval(
        re.findall(r"^settings = (.*)$", source, re.M)[0], {"ReadSettings": ReadSettings}
    )
    dataset = shardctl.tfds.pipeline(
        tfds.builder_from_directory(folder),
        "train",
        settings,
        transform=lambda example: example["tfds_id"],
        add_tfds_id=True,
    )
    return [[name.decode() for name in batch] for batch in dataset.as_numpy_iterator()]


def run_until(script: Path, folder: Path, run: Path, num_lines: int | None) -> None:
    """Run the script to its end, or kill it once it has logged so many steps in all."""
    log = run / "trained.log"
    process = subprocess.Popen(
        [sys.executable, str(script), str(folder), str(run)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
    )
    try:
        deadline = time.monotonic() + MAX_SECONDS
        while num_lines is not None and process.poll() is None and time.monotonic() < deadline:
            if log.exists() and log.read_bytes().count(b"\n") >= num_lines:
                process.send_signal(signal.SIGKILL)
                break
            time.sleep(0.002)
        _, errors = process.communicate(timeout=MAX_SECONDS)
    finally:
        process.kill()
    assert process.returncode in (0, -signal.SIGKILL), errors.decode()[-2000:]


def check(script: Path, folder: Path, run: Path, kills: list[int]) -> None:
    expected = batches_of(folder, script.read_text())
    assert len(expected) == 94
    num_lines, starts = 0, []
    for kill in [*kills, None]:
        before = num_lines
        run_until(script, folder, run, None if kill is None else before + kill)
        lines = (run / "trained.log").read_text().splitlines()
        num_lines = len(lines)
        starts += [int(line.split()[0]) for line in lines[before : before + 1]]
    trained: dict[int, list[str]] = {}
    last = 0
    for line in lines:
        step, *names = line.split()
        # What follows the last checkpoint is trained on again, from the weights of the checkpoint.
        assert int(step) == last + 1 or (int(step) % CHECKPOINT_EVERY == 1 and int(step) <= last)
        trained = {s: seen for s, seen in trained.items() if s < int(step)}
        trained[int(step)], last = names, int(step)
    assert [trained[step] for step in sorted(trained)] == expected
    assert sorted(trained) == list(range(1, 95))
    assert starts[0] == 1
    assert len(starts) == len(kills) + 1


def test_the_script_killed_at_random_steps_trains_on_every_batch_in_order(
    script: Path, folder: Path, tmp_path: Path
) -> None:
    kills = [random.Random(4).randint(12, 30) for _ in range(2)]
    check(script, folder, tmp_path / "run", kills)
    add_cases(len(kills))


@pytest.mark.fuzz
def test_the_script_killed_at_random_steps_fuzzed(
    script: Path, folder: Path, tmp_path: Path
) -> None:
    num_kills = 0
    for number in range(max(1, FUZZ // 200)):
        kills = [random.randint(1, 40) for _ in range(random.randint(1, 4))]
        check(script, folder, tmp_path / f"run{number}", kills)
        num_kills += len(kills)
    add_cases(num_kills)
