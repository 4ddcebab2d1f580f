"""TensorFlow and TFDS are imported late, and what is missing is named with what installs it."""

from __future__ import annotations

import sys
import types

import pytest

from shardctl.errors import MissingDependencyError
from shardctl.tfds.imports import tensorflow, tensorflow_datasets, versions, without_autograph

INSTALLS = r"install it with: pip install 'shardctl\[tfds\]'$"


def test_what_is_missing_is_named_with_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    with pytest.raises(MissingDependencyError, match=f"^TensorFlow is needed .*{INSTALLS}"):
        tensorflow()
    # TFDS without TensorFlow says less about what is missing, so TensorFlow is asked for first.
    with pytest.raises(MissingDependencyError, match=f"^TensorFlow is needed .*{INSTALLS}"):
        tensorflow_datasets()
    monkeypatch.setitem(sys.modules, "tensorflow", types.ModuleType("tensorflow"))
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)
    with pytest.raises(MissingDependencyError, match=f"^TFDS is needed .*{INSTALLS}"):
        tensorflow_datasets()


def test_a_module_below_tfds_is_imported_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    below = types.ModuleType("tensorflow_datasets.core.fake")
    monkeypatch.setitem(sys.modules, "tensorflow", types.ModuleType("tensorflow"))
    monkeypatch.setitem(sys.modules, "tensorflow_datasets.core.fake", below)
    assert tensorflow_datasets("core.fake") is below


def test_versions_are_those_of_what_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = types.ModuleType("tensorflow")
    loaded.__version__ = "9.9"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tensorflow", loaded)
    monkeypatch.delitem(sys.modules, "tensorflow_datasets", raising=False)
    assert versions() == {"tensorflow": "9.9", "tensorflow_datasets": None}


def test_autograph_leaves_a_function_alone() -> None:
    import tensorflow as tf

    kinds: list[str] = []

    def element(number: object) -> object:
        # AutoGraph would rewrite this function into another one, and call that.
        kinds.append(sys._getframe().f_code.co_filename)
        return number

    list(tf.data.Dataset.range(2).map(without_autograph(element)))
    assert set(kinds) == {__file__}
