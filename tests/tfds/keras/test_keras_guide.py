"""The script of the guide for `fit`, killed at random moments, trains as one that nobody kills."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cases import FUZZ
from tests.killed_runs import Script, check_killed_runs, script_of_guide, whole_run
from tests.tfds_datasets import build_dataset

LENGTHS = [400, 0, 250, 617, 300, 333, 100]  # 3 epochs of 32 batches, the last a partial one


def final_weights(run: Path) -> Mapping[str, Any]:
    """Return what the weights file holds that the script has written at its end."""
    import h5py  # type: ignore[import-untyped]

    found: dict[str, Any] = {}

    def keep(name: str, value: Any) -> None:
        if isinstance(value, h5py.Dataset):
            found[name] = value[()]

    with h5py.File(run / "final.weights.h5") as file:
        file.visititems(keep)
    return found


@pytest.fixture
def script(tfds: Any, tmp_path: Path) -> Script:
    import numpy as np

    features = tfds.features.FeaturesDict(
        {
            "image": tfds.features.Image(shape=(28, 28, 1)),
            "label": tfds.features.ClassLabel(num_classes=10),
        }
    )
    images = np.random.default_rng(1).integers(0, 256, (sum(LENGTHS), 28, 28, 1), np.uint8)
    folder = build_dataset(
        tmp_path / "data",
        "mnist",
        {"train": LENGTHS, "test": [100]},
        features=features,
        example=lambda i: {"image": images[i], "label": i % 10},
    )
    path = tmp_path / "fit_train.py"
    path.write_text(script_of_guide("keras", "fit_train.py"))
    return Script(path=path, arguments=(folder,), outcome=final_weights)


@pytest.mark.fuzz
def test_the_script_killed_at_random_moments_fuzzed(script: Script, tmp_path: Path) -> None:
    whole = whole_run(script, tmp_path / "whole")
    assert len(whole.steps) == 96
    print(check_killed_runs(script, whole, tmp_path / "killed", kills=max(2, FUZZ // 400)))
