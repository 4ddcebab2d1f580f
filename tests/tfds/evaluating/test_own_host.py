"""Which host this process is: what the caller says, what runs here, and where they contradict."""

from __future__ import annotations

from typing import Any

import pytest

from shardctl.errors import UsageError
from shardctl.spec.host import Host
from shardctl.tfds import padded_evaluation as module
from shardctl.tfds.padded_evaluation import own_host
from tests.cases import add_cases

TWO_OF_8 = Host(index=2, count=8)


@pytest.fixture(autouse=True)
def said(monkeypatch: pytest.MonkeyPatch) -> dict[str, Host]:
    """What is said by what runs here: nothing, until a test puts something in."""
    found: dict[str, Host] = {}
    monkeypatch.setattr(module, "hosts_said", lambda: iter(found.items()))
    return found


def test_what_is_given_is_believed(said: dict[str, Host]) -> None:
    ways: list[tuple[Any, ...]] = [
        (8, 2, None),
        (None, "2/8", None),
        (8, "2/8", None),
        (None, TWO_OF_8, None),
        (None, None, TWO_OF_8),
        (8, None, TWO_OF_8),
        (None, 2, TWO_OF_8),
        (8, TWO_OF_8, TWO_OF_8),
    ]
    for _ in range(2):
        for given in ways:
            assert own_host(*given) == TWO_OF_8, given
            add_cases()
        assert own_host(1, None, None) == Host(index=0, count=1)
        said["JAX"] = Host(index=5, count=6)


def test_what_is_left_out_is_asked(said: dict[str, Host]) -> None:
    assert own_host(None, None, None) == Host(index=0, count=1)
    said["JAX"] = TWO_OF_8
    assert own_host(None, None, None) == TWO_OF_8
    assert own_host(8, None, None) == TWO_OF_8
    assert own_host(None, 3, None) == Host(index=3, count=8)
    said["TF_CONFIG"] = TWO_OF_8
    assert own_host(None, None, None) == TWO_OF_8


def test_what_contradicts_itself_is_refused(said: dict[str, Host]) -> None:
    def refused(words: str, *given: Any) -> None:
        with pytest.raises(UsageError, match=words):
            own_host(*given)
        add_cases()

    refused("hosts=0: a number from 1", 0, None, None)
    refused("hosts=4: the host given is 2/8", 4, "2/8", None)
    refused("hosts=4: the host given is 2/8", 4, None, TWO_OF_8)
    refused("host=3: the settings are for host 2/8", None, 3, TWO_OF_8)
    refused("host=3: the settings are for host 2/8", 8, 3, TWO_OF_8)
    refused("host=2/4: the settings are for host 2/8", None, "2/4", TWO_OF_8)
    refused("host 8 of 8: hosts count from 0 to 7", 8, 8, None)
    refused("host=3: one of how many", None, 3, None)
    refused("hosts=4: which of them is this", 4, None, None)
    said["JAX"] = TWO_OF_8
    refused("hosts=4: which of them is this.*here it is 2/8", 4, None, None)
    refused("host 8 of 8: hosts count from 0 to 7", None, 8, None)
    said["TF_CONFIG"] = Host(index=1, count=8)
    for hosts, host in ((None, None), (8, None), (None, 2)):
        refused("host 2 of 8 by JAX and 1 of 8 by TF_CONFIG; say which", hosts, host, None)
