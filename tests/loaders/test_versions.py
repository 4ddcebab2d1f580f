"""Which versions of a library count as proven."""

from __future__ import annotations

import pytest

from shardctl.loaders.hugging_face_eras import ERAS, era_of
from shardctl.loaders.loader import (
    LOADERS,
    proven_as,
    public_version,
    release_of,
    same_version,
)

PROVEN = ("3.6.0", "4.8.0", "4.8.5", "5.0.0", "5.1.0", "5.2.0")


@pytest.mark.parametrize(
    ("version", "found"),
    [
        ("4.8.5", "4.8.5"),
        ("4.8.0+cpu", "4.8.0"),
        ("4.8", "4.8.5"),  # a line is its newest
        ("4", "4.8.5"),
        ("5.1", "5.1.0"),
        ("4.8.1", None),
        ("4.8.2", None),  # however near: 4.8.0 to 4.8.2 had a fault of their own
        ("5.2.1", None),
        ("5.2.0rc1", None),
        ("5", "5.2.0"),
        ("6", None),
        ("3.60", None),
    ],
)
def test_a_version_is_proven_if_it_is_one_of_those_compared(
    version: str, found: str | None
) -> None:
    assert proven_as(PROVEN, version) == found


def test_how_a_version_was_built_does_not_matter() -> None:
    assert public_version("2.14.0.dev1+cu121") == "2.14.0.dev1"
    assert same_version("2.13", "2.13.0+cpu")
    assert same_version("2.14.0rc1", "2.14.0rc1+cpu")
    assert not same_version("2.14.0rc1", "2.14.0")
    assert release_of("2.10.0") == (2, 10)
    assert release_of("2.10.0.post1") is None


@pytest.mark.parametrize("loader", LOADERS.values(), ids=lambda loader: loader.name)
def test_each_loader_names_its_versions_ascending_and_its_source(loader: object) -> None:
    from shardctl.loaders.loader import Loader

    assert isinstance(loader, Loader)
    for proven in (loader.proven, *loader.beside.values()):
        releases = [release_of(version) for version in proven]
        assert None not in releases
        assert releases == sorted(set(releases), key=lambda release: release or ())
    assert loader.source


def test_eras_of_hugging_face_are_ascending_and_begin_before_their_first_release() -> None:
    releases = [release_of(era.since) for era in ERAS]
    assert releases == sorted(set(releases), key=lambda release: release or ())
    assert era_of("5.1.0rc1+cpu").since == "5.1.0"
