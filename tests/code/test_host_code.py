"""Every host mode has its code; what it reads is run in tests/rendering/python/test_pipeline.py."""

from __future__ import annotations

from dataclasses import astuple
from typing import get_args

import pytest

from shardctl.code.source import HOST_CODE, HostCode, code_of_host
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import HOST_MODES, Host, HostBy


def test_every_mode_has_code_that_says_which_host_reads() -> None:
    assert set(HOST_CODE) == set(HOST_MODES)
    for word in get_args(HostBy):
        code = code_of_host(ReadSettings(host=Host(index=1, count=3), host_by=word))
        assert any("host" in text and "num_hosts" in text for text in astuple(code))
        assert code_of_host(ReadSettings(host_by=word)) == HostCode()


def test_a_mode_without_code_is_no_code_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(HOST_CODE, "files")
    with pytest.raises(KeyError):
        code_of_host(ReadSettings(host=Host(index=0, count=2), host_by="files"))
