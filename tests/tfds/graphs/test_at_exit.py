"""Scripts that leave a dataset early, and end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.forked_scripts import forking_python
from tests.tfds_datasets import build_dataset

LEFT = """
import sys
import tensorflow_datasets as tfds
import shardctl.tfds
from shardctl import ReadSettings
builder = tfds.builder_from_directory(sys.argv[1])
stages = (
    "sample_from_datasets([train[:60%] | shuffle(9, seed=1) | repeat, read(train, shuffle_seed=3)"
    " | repeat], weights=[0.7, 0.3], seed=42) | shuffle(20, seed=3) | take(1200) | batch(7)"
)
settings = ReadSettings(stages=stages)
position = shardctl.tfds.Position(builder, None, settings, consumed=70)
elements = iter(position.count(position.dataset()))
print(len(next(elements)))
"""


@pytest.mark.slow
def test_a_script_that_leaves_its_loop_early_ends(tmp_path: Path) -> None:
    # TFDS reads Parquet in Python, which keeps the threads that read ahead busy with it.
    lengths = [300, 0, 500, 170, 160, 10, 330]
    folder = build_dataset(tmp_path, splits={"train": lengths}, file_format="parquet")
    script = tmp_path / "left.py"
    script.write_text(LEFT)
    several = forking_python().run([[script, folder]] * 2, tmp_path, seconds=150)
    assert [ran.code for ran in several] == [0, 0], several
