"""Scripts that leave a dataset early, and end."""

from __future__ import annotations

from pathlib import Path

from tests.forked_scripts import ForkedScripts
from tests.tfds_datasets import build_dataset

LEFT = """
import sys
import tensorflow_datasets as tfds
import shardctl.tfds
from shardctl import ReadSettings
builder = tfds.builder_from_directory(sys.argv[1])
settings = ReadSettings(stages="repeat(30) | shuffle(7, seed=2) | batch(3)")
position = shardctl.tfds.Position(builder, "train", settings, consumed=30)
elements = iter(position.count(position.dataset()))
print(len(next(elements)))
"""


def test_a_script_that_leaves_its_loop_early_ends(tmp_path: Path) -> None:
    # TFDS reads Parquet in Python, which makes the threads that read ahead slow.
    folder = build_dataset(tmp_path, splits={"train": [300, 200]}, file_format="parquet")
    script = tmp_path / "left.py"
    script.write_text(LEFT)
    with ForkedScripts(tmp_path) as scripts:
        (ran,) = scripts.run([[script, folder]], seconds=150)
    assert ran.code == 0, (ran.code, ran.out, ran.errors)
