"""The shardctl.yaml of an inspection."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from shardctl.dataset.dataset import Dataset, Split
from shardctl.errors import UsageError
from shardctl.settings.read_settings import ReadSettings, as_settings, settings_of_document
from shardctl.verbs.inspect.answer import InspectedStage, Inspection, OpenStage
from shardctl.verbs.inspect.view import layout_name, project_yaml, references

TOY = Dataset(
    name="toy",
    data_dir="/data/toy/1.0.0",
    splits=(Split(name="train", shard_lengths=(3, 4)), Split(name="test", shard_lengths=(2,))),
)
FILTER = InspectedStage(call="filter", operation="FilterDataset", reason="by data")


def _inspection(**more: Any) -> Inspection:
    given: dict[str, Any] = {
        "stages": (),
        "settings": ReadSettings(),
        "dataset": TOY,
        "spec": "train",
    }
    return Inspection(**(given | more))


def _read(inspection: Inspection) -> Any:
    return yaml.safe_load("".join(project_yaml((inspection,), "train.py:make")))


def test_settings_are_those_of_a_shardctl_yaml() -> None:
    settings = ReadSettings(shuffle_seed=3, buffer=5, buffer_seed=0, epochs=2, loop="keras-fit")
    document = _read(_inspection(settings=settings))
    assert document["dataset"] == "/data/toy/1.0.0"
    assert settings_of_document(document["read"], "read") == settings
    staged = _inspection(
        settings=as_settings({"stages": "cache | shuffle(5, seed=1)"}), spec="test"
    )
    assert _read(staged)["read"] == {
        "stages": [{"read": "test"}, "cache", {"shuffle": {"buffer": 5, "seed": 1}}]
    }


def test_where_files_repeat_tfds_caches_nothing_beside_the_stages() -> None:
    assert _read(_inspection(settings=ReadSettings(repeat_files=True)))["lint"] == {
        "autocache": False
    }
    assert "lint" not in _read(_inspection())


def test_open_stages_are_remarks() -> None:
    found = _inspection(open=(OpenStage(stage=FILTER, reason="by data"),), stages=(FILTER,))
    text = "".join(project_yaml((found,), "train.py:make"))
    assert "# Its order is open: filter: by data\n" in text


def test_record_files_are_told_by_a_layout_file() -> None:
    plain = Dataset(name="part", splits=TOY.splits[:1], origin="record files")
    assert references(plain) == [layout_name(plain)] == ["part.layout.yaml"]


def test_what_no_shardctl_yaml_says_is_refused() -> None:
    with pytest.raises(UsageError, match="reads no dataset"):
        _read(_inspection(dataset=None, spec=None))
    both = (_inspection(name="a"), _inspection(name="b"))
    with pytest.raises(UsageError, match="--only NAME: a, b"):
        "".join(project_yaml(both, "f"))
