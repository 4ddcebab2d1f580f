"""pyarrow is imported late, and one that the installed TensorFlow does not take is named."""

from __future__ import annotations

import sys

import pytest

from shardctl.errors import MissingDependencyError
from shardctl.metadata import loader_versions as installed
from shardctl.records.arrow import pyarrow_module


def test_a_module_is_imported_by_its_name() -> None:
    assert pyarrow_module("pyarrow.parquet", "this").__name__ == "pyarrow.parquet"


@pytest.mark.parametrize(
    ("tensorflow", "wanted"),
    [
        (None, "shardctl[files]"),
        ("2.21.0", "shardctl[files]"),
        ("2.18.1", "shardctl[files]"),
        ("2.16.2", "pyarrow<26"),  # it stays with NumPy 1
    ],
)
def test_what_is_missing_is_named_with_what_installs_it(
    tensorflow: str | None, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setattr(installed, "installed_version", {"tensorflow": tensorflow}.get)
    with pytest.raises(MissingDependencyError) as raised:
        pyarrow_module("pyarrow", "reading them")
    assert str(raised.value) == f"reading them needs a package: pip install '{wanted}'"
