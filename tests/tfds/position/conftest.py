"""A small dataset for the tests of positions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.tfds_datasets import build_dataset


@pytest.fixture(scope="package")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_dataset(tmp_path_factory.mktemp("positions"), splits={"train": [4, 0, 7, 6]})


@pytest.fixture
def builder(folder: Path) -> Any:
    import tensorflow_datasets as tfds

    return tfds.builder_from_directory(folder)
