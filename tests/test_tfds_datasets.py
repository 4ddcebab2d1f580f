"""Datasets that tests write without TFDS are those of TFDS."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.tfds_datasets import WRITABLE_FORMATS, build_dataset, write_dataset


@pytest.mark.parametrize("file_format", WRITABLE_FORMATS)
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"splits": {"train": [5, 0, 130], "test": [2]}, "config": "one", "version": "2.1.0"},
        {"name": "other", "with_files": False},
    ],
)
def test_they_are_the_same_byte_for_byte(
    settings: dict[str, Any], file_format: str, tmp_path: Path
) -> None:
    def files(root: Path) -> dict[str, bytes]:
        found = (path for path in root.rglob("*") if path.is_file())
        return {str(path.relative_to(root)): path.read_bytes() for path in found}

    build_dataset(tmp_path / "built", file_format=file_format, **settings)
    write_dataset(tmp_path / "written", file_format=file_format, **settings)
    assert files(tmp_path / "written") == files(tmp_path / "built")
