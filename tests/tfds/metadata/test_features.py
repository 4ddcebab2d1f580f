"""Features are found wherever they are named, and what is none is refused in a line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shardctl.errors import DatasetError, UsageError
from shardctl.tfds.metadata import find_features

_SCRIPT = """
import numpy as np
import tensorflow_datasets as tfds

FEATURES = tfds.features.FeaturesDict({"x": np.int64})

def make():
    return {"x": np.int64, "label": tfds.features.ClassLabel(names=["a", "b"])}

def wrong():
    return 3

def broken():
    raise ValueError("not today")

class Toys(tfds.core.GeneratorBasedBuilder):
    '''Toys of a test.'''
    VERSION = tfds.core.Version("1.0.0")

    def _info(self):
        return tfds.core.DatasetInfo(
            builder=self,
            features=tfds.features.FeaturesDict(make()),
            supervised_keys=("x", "label"),
        )

    def _split_generators(self, dl_manager):
        return {}

    def _generate_examples(self):
        yield from ()
"""


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "toys.py"
    path.write_text(_SCRIPT)
    return str(path)


@pytest.mark.tensorflow
def test_features_of_a_file_come_with_their_labels(script: str, tmp_path: Path) -> None:
    find_features(f"{script}:make").features.save_config(str(tmp_path))
    for named in (str(tmp_path), str(tmp_path / "features.json"), tmp_path):
        assert find_features(named).features["label"].names == ["a", "b"]
    other = tmp_path / "mine.json"
    (tmp_path / "features.json").rename(other)
    assert find_features(str(other)).features["label"].names == ["a", "b"]


@pytest.mark.tensorflow
def test_features_of_a_script(script: str) -> None:
    assert sorted(find_features(f"{script}:make").features) == ["label", "x"]
    assert sorted(find_features(f"{script}:FEATURES").features) == ["x"]
    found = find_features(f"{script}:Toys")
    assert sorted(found.features) == ["label", "x"]
    assert found.said["supervised_keys"] == ("x", "label")


@pytest.mark.tensorflow
def test_features_of_a_dataset_of_tfds() -> None:
    found = find_features("mnist")
    assert sorted(found.features) == ["image", "label"]
    assert "citation" in found.said


@pytest.mark.tensorflow
def test_what_names_no_features_is_refused(script: str, tmp_path: Path) -> None:
    for named, said in (
        (f"{script}:wrong", "no features of TFDS"),
        (f"{script}:broken", "failed with ValueError: not today"),
        (f"{script}:absent", "has no function 'absent'"),
        ("there/is/none.json", "no file 'there/is/none.json'"),
        ("no_such_dataset_of_tfds", "names no features"),
    ):
        with pytest.raises(UsageError, match=said):
            find_features(named)
    bad = tmp_path / "features.json"
    for text in ("{", "[]", json.dumps({"a": 1}), json.dumps({"type": "no.Such", "content": {}})):
        bad.write_text(text)
        with pytest.raises(DatasetError, match=r"features\.json"):
            find_features(str(bad))
