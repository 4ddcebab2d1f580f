"""The training scripts of the guides on Grain and PyTorch: tf.data's batches, killed as well."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shardctl.settings.read_settings import ReadSettings
from shardctl.tfds import pipeline
from tests.cases import FUZZ
from tests.killed_runs import Script, WholeRun, check_killed_runs, script_of_guide, whole_run
from tests.late_modules import needs
from tests.tfds_datasets import build_dataset

pytestmark = [
    needs(
        "grain", "torch", reason="Grain or PyTorch is not installed: pip install 'shardctl[grain]'"
    ),
    pytest.mark.fuzz,
]

LENGTHS = [400, 0, 250, 617, 300, 333, 100]  # 3 epochs are 94 batches, the last a partial one
SETTINGS = ReadSettings(shuffle_seed=32, buffer=1000, buffer_seed=7, epochs=3, batch=64)

# Starts the script with another number of workers each time.
ON_OTHER_WORKERS = """\
import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    script, folder, run = sys.argv[1:]
    Path(run).mkdir(parents=True, exist_ok=True)
    starts = Path(run, "starts.log")
    with open(starts, "a") as log:
        print("started", file=log)
    workers = (2, 0, 3)[len(starts.read_text().splitlines()) % 3]
    sys.argv = [script, folder, str(workers), run]
    runpy.run_path(script, run_name="__main__")
"""


def features() -> Any:
    import tensorflow_datasets as tfds

    return tfds.features.FeaturesDict(
        {"image": tfds.features.Tensor(shape=(28, 28, 1), dtype=np.uint8), "label": np.int64}
    )


def example(i: int) -> dict[str, Any]:
    pixels = np.random.default_rng(i).integers(0, 256, (28, 28, 1))
    return {"image": pixels.astype(np.uint8), "label": i}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A dataset in two formats."""
    return {
        form: build_dataset(
            tmp_path_factory.mktemp(form),
            "mnist",
            {"train": LENGTHS},
            file_format=form,
            features=features(),
            example=example,
        )
        for form in ("tfrecord", "array_record")
    }


@pytest.fixture(scope="module", params=["grain", "torch"])
def script(
    request: pytest.FixtureRequest,
    folders: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Script:
    name = f"{request.param}_train.py"
    text = script_of_guide(request.param, name)
    assert "shuffle_seed=32, buffer=1000, buffer_seed=7, epochs=3, batch=64" in text
    folder = tmp_path_factory.mktemp("script")
    (folder / name).write_text(text)
    path = folder / "on_other_workers.py"
    path.write_text(ON_OTHER_WORKERS)
    outcome = {"grain": last_of_orbax, "torch": last_of_torch}[request.param]
    return Script(path=path, arguments=(folder / name, folders["array_record"]), outcome=outcome)


@pytest.fixture(scope="module")
def whole(script: Script, tmp_path_factory: pytest.TempPathFactory) -> WholeRun:
    return whole_run(script, tmp_path_factory.mktemp("whole"))


def last_of_orbax(run: Path) -> Mapping[str, Any]:
    import orbax.checkpoint as ocp

    with ocp.CheckpointManager(run / "checkpoints") as checkpoints:
        assert checkpoints.latest_step() == 94
        items = ocp.args.Composite(state=ocp.args.StandardRestore())
        return {"weights": np.asarray(checkpoints.restore(94, args=items).state["weights"])}


def last_of_torch(run: Path) -> Mapping[str, Any]:
    import torch

    checkpoint = torch.load(run / "checkpoint.pt", weights_only=True)
    assert checkpoint["step"] == 94
    return {"weights": checkpoint["weights"].numpy()}


def test_the_script_reads_what_tf_data_reads(whole: WholeRun, folders: dict[str, Path]) -> None:
    import tensorflow_datasets as tfds

    dataset = pipeline(tfds.builder_from_directory(folders["tfrecord"]), "train", SETTINGS)
    labels = [batch["label"] for batch in dataset.as_numpy_iterator()]
    assert len(labels) == 94
    assert [whole.steps[step] for step in range(1, 95)] == [
        " ".join(map(str, batch.tolist())) for batch in labels
    ]


def test_killed_at_random_moments_it_goes_on_with_other_workers(
    script: Script, whole: WholeRun, tmp_path: Path
) -> None:
    kills = max(1, FUZZ // 1000)
    report = check_killed_runs(script, whole, tmp_path, kills=kills)
    print(report)
    assert len(report.kills) == kills


def test_the_script_for_keras_runs(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = build_dataset(
        tmp_path,
        "mnist",
        {"train": [200, 130]},
        file_format="array_record",
        features=features(),
        example=lambda i: {**example(i), "label": i % 10},
    )
    script = tmp_path / "grain_fit.py"
    script.write_text(script_of_guide("grain", "grain_fit.py"))
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, script, folder],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Epoch 3/3" in done.stdout
