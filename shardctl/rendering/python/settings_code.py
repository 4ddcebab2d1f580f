"""Settings as the `shardctl.ReadSettings` that has them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from shardctl.core.hosts.host import Host
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.stages.stages import Pipeline
from shardctl.core.stages.text import text_of
from shardctl.rendering.python.source import call, keywords, literal


def settings_code(settings: ReadSettings) -> Iterator[str]:
    """Yield what makes `settings`, without what is its default.

    >>> list(settings_code(ReadSettings(shuffle_seed=42, batch=256)))
    ['settings = shardctl.ReadSettings(shuffle_seed=42, batch=256)']
    """
    default = ReadSettings()
    said = {
        field.name: source_of(getattr(settings, field.name))
        for field in fields(settings)
        if getattr(settings, field.name) != getattr(default, field.name)
    }
    yield from call("settings = shardctl.ReadSettings", keywords(said))


def source_of(value: object) -> str:
    """Return a setting as source.

    >>> print(source_of(Host(index=1, count=8)), source_of(("a", "b")))
    shardctl.Host(index=1, count=8) ("a", "b",)
    """
    if isinstance(value, Host):
        return f"shardctl.Host(index={value.index}, count={value.count})"
    if isinstance(value, tuple):
        return f"({', '.join(map(literal, value))},)"
    if isinstance(value, Pipeline):
        return literal(text_of(value))
    assert value is None or isinstance(value, (bool, int, str))
    return literal(value)
