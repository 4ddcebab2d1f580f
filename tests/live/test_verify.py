"""A loader beside its prediction, and what is kept of a version that nobody knows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import shardctl
import shardctl.live.verify as module
import shardctl.order.loader_order as versions
from shardctl.base.hooks import provided
from shardctl.errors import MissingDependencyError, UsageError
from shardctl.loaders.loader import LOADERS
from shardctl.metadata.loader_versions import verified_version
from shardctl.order.plan_order import plan_order
from tests.live import toy_loaders
from tests.tfds_datasets import build_dataset

SETTINGS: dict[str, Any] = {"loader": "torch", "batch": 4}


class Here:
    """A machine on which a version of torch is installed, which runs a toy."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch
        self.version: str | None = "2.13.0"
        monkeypatch.setattr(module, "installed_version", lambda package: self.version)

        def ours(name: str) -> Any:
            return (lambda package: self.version) if name == "installed_version" else provided(name)

        monkeypatch.setattr(versions, "provided", ours)
        self.runs(toy_loaders.InOrder)

    def runs(self, toy: type) -> None:
        calls = f"{toy_loaders.HERE}:{toy.__name__}"
        self._patch.setitem(LOADERS, "torch", replace(LOADERS["torch"], calls=calls))


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Here:
    return Here(monkeypatch)


@pytest.mark.long
@pytest.mark.usefixtures("here")
def test_an_order_is_compared_over_indices_and_says_so() -> None:
    seen: list[tuple[str, int, int]] = []
    found = shardctl.verify("mnist", "train[:10]", SETTINGS, watch=lambda *told: seen.append(told))
    assert found.equal
    assert (found.read, found.num_checked, found.num_examples) == ("index ranges", 10, 10)
    assert found.versions == {"torch": "2.13.0"}
    assert found.pipeline["loader_version"] == "2.13.0"
    assert seen[-1] == ("examples", 10, 10)
    part = shardctl.verify("mnist", "train[:10]", SETTINGS, take=3)
    assert part.num_checked == 3
    assert "read: the first 3 of 10 examples; --take -1 reads them all" in map(str, part.notes)


@pytest.mark.usefixtures("here")
def test_records_of_real_files_are_compared(tmp_path: Path) -> None:
    folder = build_dataset(tmp_path, splits={"train": (3, 5)}, file_format="array_record")
    found = shardctl.verify(folder, "train", {**SETTINGS, "epochs": 2})
    assert found.equal
    assert (found.read, found.num_checked, found.num_files) == ("files", 16, 2)
    assert [*found.versions] == ["torch", "tensorflow_datasets"]


@pytest.mark.long
def test_what_differs_is_named(here: Here) -> None:
    here.runs(toy_loaders.Swapped)
    found = shardctl.verify("mnist", "train[:10]", {"loader": "torch"}, take="all")
    assert not found.equal
    assert found.first_difference is not None
    assert (found.first_difference.position, found.first_difference.found) == (2, 3)


@pytest.mark.long
def test_a_library_that_is_not_there_or_another_version_is_refused(here: Here) -> None:
    here.version = None
    with pytest.raises(MissingDependencyError, match=r"pip install 'shardctl\[torch\]'"):
        shardctl.verify("mnist", "train[:10]", SETTINGS)
    here.version = "2.13.0"
    with pytest.raises(UsageError, match=r"installed is torch 2\.13\.0, and verify runs what is"):
        shardctl.verify("mnist", "train[:10]", {**SETTINGS, "loader_version": "2.14.0"})
    named = {**SETTINGS, "loader_version": "2.13"}
    assert shardctl.verify("mnist", "train[:10]", named).equal


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule of one setting, which is all that the toys know."""
    monkeypatch.setattr(module, "NUM_SETTINGS", 5)
    loader = LOADERS["torch"]
    takes = ("epochs", "batch", "drop_remainder")
    known = replace(loader, takes=takes)
    monkeypatch.setitem(LOADERS, "torch", known)


@pytest.mark.long
@pytest.mark.usefixtures("few")
def test_a_version_that_agrees_is_predicted_from_then_on(here: Here) -> None:
    here.version = "9.0.0"
    with pytest.raises(UsageError, match=r"torch 9\.0\.0 is installed, and its order is known for"):
        plan_order("mnist", "train[:10]", SETTINGS)
    found = shardctl.verify("mnist", "train[:10]", SETTINGS)
    assert found.equal
    assert "torch 9.0.0 is equal in 5 random settings as well; from now on" in str(found.notes[-1])
    planned = plan_order("mnist", "train[:10]", SETTINGS)
    assert planned.order.settings.loader_version == "9.0.0"
    assert "shardctl verify found it equal here in 5 settings" in planned.warnings[0]


@pytest.mark.long
@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("toy", [toy_loaders.InOnes, toy_loaders.Refuses])
def test_a_version_that_differs_anywhere_is_not_kept(here: Here, toy: type) -> None:
    here.version = "9.0.0"
    assert shardctl.verify("mnist", "train[:10]", SETTINGS).equal
    assert verified_version("torch", "9.0.0") is not None
    here.runs(toy)
    if toy is toy_loaders.Refuses:
        with pytest.raises(UsageError, match="the library refuses these settings"):
            shardctl.verify("mnist", "train[:10]", {"loader": "torch"})
        return
    found = shardctl.verify("mnist", "train[:10]", {"loader": "torch"})
    assert found.first_difference is None  # the settings asked for are equal, others are not
    assert not found.equal
    assert found.unequal[0].startswith("ReadSettings(")
    assert verified_version("torch", "9.0.0") is None


@pytest.mark.usefixtures("here")
def test_what_tfds_hands_out_otherwise_is_unequal(tmp_path: Path) -> None:
    folder = build_dataset(tmp_path, splits={"train": (3, 5)}, file_format="parquet")
    found = shardctl.verify(folder, "train[:2]", SETTINGS)
    assert not found.equal
    assert found.unequal[0].startswith("tfds.data_source hands out 3 examples of 'train[:2]'")


@pytest.mark.long
def test_settings_with_workers_of_a_library_that_is_not_there_are_left_out(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader = LOADERS["torch"]
    takes = ("epochs", "workers")
    known = replace(loader, takes=takes)
    monkeypatch.setitem(LOADERS, "torch", known)
    monkeypatch.setattr(module, "NUM_SETTINGS", 20)
    here.version = "9.0.0"
    here.runs(toy_loaders.WithoutWorkers)
    found = shardctl.verify("mnist", "train[:10]", {"loader": "torch"})
    assert found.equal
    assert "equal in 19 random settings as well (1 with workers left out" in str(found.notes[-1])
    with pytest.raises(MissingDependencyError, match="PyTorch is needed"):
        shardctl.verify("mnist", "train[:10]", {"loader": "torch", "workers": 2})
