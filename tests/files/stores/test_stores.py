"""Which store has the files of a path."""

from __future__ import annotations

from shardctl.files.stores.local import LocalStore
from shardctl.files.stores.stores import is_remote, store_of


def test_a_scheme_makes_a_path_remote() -> None:
    assert is_remote("hf://datasets/u/d")
    assert not is_remote("./gs:/bucket")
    assert isinstance(store_of("/data/mnist"), LocalStore)
