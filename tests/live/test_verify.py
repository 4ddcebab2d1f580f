"""A loader beside its prediction, and what is kept of a version that nobody knows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shardctl
import shardctl.live.verify as module
import shardctl.order.loader_order as versions
from shardctl.base.by_name import provided
from shardctl.errors import MissingDependencyError, UsageError
from shardctl.live.process import in_pieces
from shardctl.live.verify import first_difference
from shardctl.loaders.loader import LOADERS
from shardctl.metadata.loader_versions import verified_version
from shardctl.order.loader_order import LoaderOrder
from shardctl.order.plan_order import plan_order
from shardctl.verbs.verify.answer import FirstDifference
from tests.golden import assert_evaluated
from tests.live import toy_loaders
from tests.tfds_datasets import build_dataset


def order_of(num_examples: int, **settings: Any) -> LoaderOrder:
    settings = {"loader": "torch", "loader_version": "2.13.0", **settings}
    order = plan_order("mnist", f"train[100:{100 + num_examples}]", settings).order
    assert isinstance(order, LoaderOrder)
    return order


def difference(
    order: LoaderOrder, toy: type, take: int | None = None, **more: Any
) -> FirstDifference | None:
    pieces = in_pieces(toy(order.loader).batches(order.config))
    return first_difference(order, pieces, take or order.num_examples, **more)


@pytest.mark.parametrize(
    "settings", [{}, {"batch": 4}, {"batch": 4, "drop_remainder": True, "epochs": 3}, {"epochs": 2}]
)
def test_an_order_that_is_as_predicted_has_none(settings: dict[str, Any]) -> None:
    order = order_of(10, **settings)
    assert difference(order, toy_loaders.InOrder) is None
    assert difference(order, toy_loaders.InOrder, 3) is None


def test_the_first_example_that_differs_is_named_by_its_id() -> None:
    name = "mnist-train.tfrecord-00000-of-00001__"
    assert difference(order_of(10), toy_loaders.Swapped) == FirstDifference(
        position=2,
        expected=102,
        found=103,
        expected_tfds_id=f"{name}102",
        found_tfds_id=f"{name}103",
        read="index ranges",
    )
    assert difference(order_of(10), toy_loaders.Swapped, 2) is None


BATCH = "batch 0 has 1 example, and 4 were predicted"


def test_where_a_loader_differs_and_what_is_found_there() -> None:
    def where(found: Any) -> object:
        return found and (found.position, found.reason)

    def in_place(indices: list[int]) -> object:
        found = first_difference(order_of(4), in_pieces(iter([np.array(indices)])), 4)
        return found and (found.position, found.expected, found.found)

    assert_evaluated(globals(), "differences", where, in_place)


def test_a_batch_that_is_too_long_differs_where_it_should_have_ended() -> None:
    pieces = in_pieces(iter([np.arange(5), np.arange(5, 10)]))
    found = first_difference(order_of(10, batch=4), pieces, 10)
    assert found is not None
    assert (found.position, found.reason) == (4, "batch 0 has 5 examples, and 4 were predicted")


SETTINGS: dict[str, Any] = {"loader": "torch", "batch": 4}


class Here:
    """A machine on which a version of torch is installed, which runs a toy."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch
        self.version: str | None = "2.13.0"
        name = "shardctl.metadata.loader_versions.installed_version"
        monkeypatch.setattr(name, lambda package: self.version)

        # The source of a torch that is really installed is not that of this version.
        said = {
            "installed_version": lambda package: self.version,
            "same_source": lambda package: None,
        }

        def ours(name: str) -> Any:
            return said.get(name) or provided(name)

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
def test_files_that_are_here_are_counted_and_checked_beside_it(tmp_path: Path) -> None:
    folder = build_dataset(tmp_path, splits={"train": (3, 5)}, file_format="array_record")
    found = shardctl.verify(folder, "train", {**SETTINGS, "epochs": 2})
    assert found.equal
    assert (found.read, found.num_checked, found.num_files) == ("index ranges", 16, 2)
    (folder / "toy-train.array_record-00001-of-00002").write_bytes(b"")
    found = shardctl.verify(folder, "train", SETTINGS)
    assert (found.equal, len(found.files), found.first_difference) == (False, 1, None)


@pytest.mark.long
def test_a_library_that_is_not_there_or_another_version_is_refused(here: Here) -> None:
    here.version = None
    with pytest.raises(MissingDependencyError, match=r"pip install 'torch>=2.13'"):
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
