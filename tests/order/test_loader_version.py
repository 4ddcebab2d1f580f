"""Of which version the order of a loader is: named, installed, or the newest that is proven."""

from __future__ import annotations

from dataclasses import replace

import pytest

import shardctl.order.loader_order as module
from shardctl.errors import UsageError
from shardctl.loaders.loader import LOADERS, VerifiedVersion
from shardctl.order.loader_order import loader_version
from shardctl.order.plan_order import plan_order
from shardctl.settings.read_settings import ReadSettings

LOADER = replace(LOADERS["torch"], proven=("2.13.0", "2.15.0"), beside={"numpy": ("1.0",)})


class World:
    """What is installed and what was verified, instead of this machine."""

    def __init__(self) -> None:
        self.installed: dict[str, str] = {}
        self.verified: dict[str, VerifiedVersion] = {}

    def provided(self, name: str) -> object:
        if name == "installed_version":
            return self.installed.get
        assert name == "verified_version"
        return lambda loader, version: self.verified.get(version)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    world = World()
    monkeypatch.setattr(module, "provided", world.provided)
    monkeypatch.setattr(module, "LOADERS", {"torch": LOADER})
    return world


def settings(version: str | None = None) -> ReadSettings:
    return ReadSettings(loader="torch", loader_version=version)


def verified(version: str) -> VerifiedVersion:
    return VerifiedVersion(
        loader="torch", version=version, rule=1, num_settings=100, date="2026-11-22"
    )


def test_without_the_library_the_newest_proven_version_is_in_force(world: World) -> None:
    assert loader_version(settings()).version == "2.15.0"
    world.installed = {"numpy": "7.0"}  # matters to an installed library alone
    assert loader_version(settings()).version == "2.15.0"


def test_the_installed_version_is_in_force_and_a_named_one_before_it(world: World) -> None:
    world.installed = {"torch": "2.13.0", "numpy": "1.0"}
    assert loader_version(settings()).version == "2.13.0"
    assert loader_version(settings("2.15")).version == "2.15.0"
    assert not loader_version(settings()).warnings


@pytest.mark.parametrize("version", ["2.15.1", "2.14.1", "2.12.0", "3", "2.14.0rc1"])
def test_another_version_is_refused_with_two_ways_out(world: World, version: str) -> None:
    with pytest.raises(UsageError, match=r"2\.13\.0, 2\.15\.0; choose one of these, or install"):
        loader_version(settings(version))
    world.installed = {"torch": version}
    refused = rf"torch {version} is installed, and its order is known for 2\.13\.0, 2\.15\.0: "
    way_out = r"--loader-version 2\.15\.0 predicts that one"
    with pytest.raises(UsageError, match=refused + way_out):
        loader_version(settings())


def test_a_version_that_was_verified_here_comes_with_a_warning(world: World) -> None:
    world.installed = {"torch": "2.16.0"}
    world.verified = {"2.16.0": verified("2.16.0")}
    for found in (loader_version(settings()), loader_version(settings("2.16.0"))):
        assert found.version == "2.16.0"
        assert not found.is_proven
        (warning,) = found.warnings
        assert "found it equal here in 100 settings, on 2026-11-22" in warning


def test_a_package_beside_the_library_counts_where_both_are_installed(world: World) -> None:
    world.installed = {"torch": "2.15.0", "numpy": "7.0"}
    with pytest.raises(UsageError, match=r"torch 2\.15\.0 is installed with numpy 7\.0, and its"):
        loader_version(settings())
    assert loader_version(settings("2.15.0")).version == "2.15.0"  # the proven pair, as named
    world.verified = {"2.15.0": verified("2.15.0")}
    assert loader_version(settings()).warnings


def test_the_version_in_force_is_in_the_settings_of_the_order(world: World) -> None:
    planned = plan_order("mnist", "train[:100]", {"loader": "torch", "host": "0/2"})
    assert planned.order.settings.loader_version == "2.15.0"
    assert planned.with_settings(planned.order.settings).order.settings.loader_version == "2.15.0"
    world.installed = {"torch": "2.16.0"}
    world.verified = {"2.16.0": verified("2.16.0")}
    planned = plan_order("mnist", "train[:100]", {"loader": "torch", "host": "0/2"})
    assert [warning for warning in planned.warnings if "2.16.0" in warning]
