"""Datasets that names lead to: what they are called, and which come first."""

from __future__ import annotations

import pytest

from shardctl.planning.list import DatasetList, ListedDataset


@pytest.mark.parametrize(
    ("config", "version", "title"),
    [
        (None, None, "coco"),
        ("2017", None, "coco/2017"),
        (None, "1.1.0", "coco:1.1.0"),
        ("2017", "1.1.0", "coco/2017:1.1.0"),
    ],
)
def test_a_title_is_the_name_that_leads_there(
    config: str | None, version: str | None, title: str
) -> None:
    assert ListedDataset(name="coco", config=config, version=version).title == title


def test_datasets_with_files_come_before_built_in_layouts() -> None:
    here = ListedDataset(name="mnist", config=None, version="1.0.0", path="/data/mnist/1.0.0")
    built_in = ListedDataset(name="mnist", config=None, version="3.0.1")
    listed = DatasetList(data_dirs=("/data",), in_data_dirs=(here,), built_in=(built_in,))
    assert listed.datasets == (here, built_in)
    assert [dataset.source for dataset in listed.datasets] == ["data_dir", "catalog"]
