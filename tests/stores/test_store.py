"""Files as listings show them; every store and every source answers what the interface says."""

from __future__ import annotations

import inspect

import pytest

from shardctl.stores.fsspec_store import FsspecStore
from shardctl.stores.ranges import RemoteSource
from shardctl.stores.remote import PublicStore
from shardctl.stores.store import ByteSource, Store, StoredFile
from shardctl.stores.stores import LocalSource, LocalStore
from shardctl.stores.web_server import WebServerStore


def methods(interface: type) -> dict[str, list[str]]:
    """Return the public methods of a class with the names of their arguments."""
    found = inspect.getmembers(interface, inspect.isfunction)
    public = {name: method for name, method in found if not name.startswith("_")}
    return {name: list(inspect.signature(method).parameters) for name, method in public.items()}


@pytest.mark.parametrize("store", [LocalStore, PublicStore, WebServerStore, FsspecStore])
def test_every_store_answers_all_that_is_asked_of_stores(store: type) -> None:
    assert methods(Store).items() <= methods(store).items()


@pytest.mark.parametrize("source", [LocalSource, RemoteSource])
def test_every_source_answers_all_that_is_asked_of_sources(source: type) -> None:
    assert methods(ByteSource).items() <= methods(source).items()


def test_a_file_is_another_where_its_version_is() -> None:
    file = StoredFile(path="gs://b/a", num_bytes=1, version="generation:1")
    assert file == StoredFile(path="gs://b/a", num_bytes=1, version="generation:1")
    assert file != StoredFile(path="gs://b/a", num_bytes=1, version="generation:2")
    assert StoredFile(path="gs://b/a", num_bytes=1).version == ""
