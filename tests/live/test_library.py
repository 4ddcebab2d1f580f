"""What every real loader is asked: sources of indices, and libraries that are not there."""

from __future__ import annotations

import pickle

import pytest

from shardctl.errors import MissingDependencyError
from shardctl.loaders.loader import LOADERS, library, library_of


def test_an_index_range_is_a_list_of_its_indices_in_other_processes_too() -> None:
    source = pickle.loads(pickle.dumps(range(3)))
    assert len(source) == 3
    assert [int(index) for index in source] == [0, 1, 2]
    with pytest.raises(IndexError):
        source[3]
    with pytest.raises(IndexError):
        source[-1]


def test_a_missing_library_names_the_extra_that_brings_it() -> None:
    with pytest.raises(MissingDependencyError, match=r"pip install 'shardctl\[torch\]'"):
        library("no_such_library", LOADERS["torch"])


@pytest.mark.parametrize("name", LOADERS)
def test_each_loader_of_the_table_can_be_run(name: str) -> None:
    assert callable(library_of(LOADERS[name]).batches)
