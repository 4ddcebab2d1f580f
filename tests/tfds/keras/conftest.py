"""A dataset that the tests of `fit` train on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.tfds_datasets import build_dataset


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_dataset(
        tmp_path_factory.mktemp("fit"), splits={"train": [2, 3, 4, 2, 5], "test": [3]}
    )


@pytest.fixture
def builder(folder: Path) -> Any:
    import tensorflow_datasets as tfds

    return tfds.builder_from_directory(folder)
