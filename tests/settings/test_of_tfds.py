"""What TFDS's reader alone can do, refused to others wherever it is asked for."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import shardctl
from shardctl.errors import UsageError
from shardctl.loaders.loader import LOADERS
from shardctl.settings.read_settings import ReadSettings, as_settings, refuse_loader

GIVEN = {"loader": "torch", "batch": 2}
ASKED: dict[str, Callable[[], object]] = {
    "target": lambda: shardctl.quality("mnist", "test", GIVEN, target=0.5),
    "memory": lambda: shardctl.quality("mnist", "test", GIVEN, memory="1MiB"),
}


def test_tfds_is_not_refused() -> None:
    refuse_loader(ReadSettings(), "anything", "nothing")


@pytest.mark.parametrize("loader", LOADERS)
def test_another_is_refused_by_name(loader: str) -> None:
    with pytest.raises(UsageError, match=f"^--loader {loader}: it is of TFDS.*; do that$"):
        refuse_loader(as_settings({"loader": loader}), "it", "do that")


@pytest.mark.parametrize("asked", ASKED)
def test_it_is_refused_where_it_is_asked_for(asked: str) -> None:
    with pytest.raises(UsageError) as caught:
        ASKED[asked]()
    assert str(caught.value).startswith("--loader torch: ")
    assert "PyTorch's DataLoader reads here; " in str(caught.value)
