"""The settings that a reader within stages has of its own: `read(train, shuffle_seed=3)`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from shardctl.core.settings.document import no_such_setting, settings_from_document
from shardctl.core.settings.names import SETTING_BY_ALIAS, main_names
from shardctl.core.settings.table import SETTING_BY_FIELD, SETTING_BY_NAME, SETTINGS
from shardctl.core.stages.changed import with_changed
from shardctl.core.stages.stages import Pipeline, Read
from shardctl.errors import UsageError

if TYPE_CHECKING:
    from shardctl.core.settings.read_settings import ReadSettings

# What a reader may have of its own; the rest is behind it, or holds for all readers of a script.
READER_SETTINGS = (
    "cycle",
    "cpus",
    "block",
    "shuffle_files",
    "shuffle_seed",
    "reshuffle",
    "deterministic",
    "repeat_files",
    "reverse",
    "file_order",
    "host",
    "host_by",
)


def with_known_settings(pipeline: Pipeline) -> Pipeline:
    """Return a pipeline whose readers have their settings by their own names, in their order.

    >>> from shardctl.core.stages.text import parse_stages, text_of
    >>> text_of(with_known_settings(parse_stages("read(a, block_length=1, cycle_length=2)")))
    'read(a, cycle=2, block=1)'

    Raises:
        UsageError: no setting of a reader, or a value that it does not take.
    """
    return with_changed(pipeline, read=_known_read)


def _known_read(read: Read) -> Read:
    return replace(read, settings=_known(read.settings)) if read.settings else read


def _known(settings: tuple[tuple[str, object], ...]) -> tuple[tuple[str, object], ...]:
    """Return settings of a reader by their own names, checked; values as documents have them."""
    from shardctl.core.settings.read_settings import ReadSettings

    arguments = _arguments(settings)
    try:
        made = ReadSettings(**arguments)
    except UsageError as error:
        raise UsageError(f"read: {error}") from None
    known = []
    for setting in SETTINGS:
        if setting.field in arguments:
            value: Any = setting.kind.to_document(getattr(made, setting.field))
            known.append((setting.name, tuple(value) if isinstance(value, list) else value))
    return tuple(known)


def _arguments(settings: tuple[tuple[str, object], ...]) -> dict[str, Any]:
    """Return settings of a reader as arguments of `ReadSettings`."""
    try:
        named = main_names(dict(settings))
        for name in named:
            if name not in READER_SETTINGS and name in SETTING_BY_NAME:
                raise UsageError(f"{name} is no setting of a reader")
            if name not in READER_SETTINGS:
                raise no_such_setting(name, READER_SETTINGS, SETTING_BY_ALIAS)
        listed = {k: list(v) if isinstance(v, tuple) else v for k, v in named.items()}
        arguments = settings_from_document(listed)
        if arguments.get("host_by") == "examples":
            raise UsageError("host_by=examples is shard(N, I) behind the reader")
    except UsageError as error:
        raise UsageError(f"read: {error}") from None  # text: they are no options
    return arguments


def settings_of_read(settings: ReadSettings, read: Read) -> ReadSettings:
    """Return the settings of one reader: its own, over those of the reader of the command.

    Stages are left out, and so is all that is behind a reader.

    >>> from shardctl.core.settings.read_settings import ReadSettings
    >>> settings_of_read(ReadSettings(cycle=4, block=2), Read(settings=(("block", 1),)))
    ReadSettings(cycle=4, block=1)
    """
    own = _arguments(read.settings)
    kept = {name: getattr(settings, name) for name in _HELD}
    _give_way(kept, own)
    return type(settings)(**kept | own)


_HELD = tuple(
    field
    for field, setting in SETTING_BY_FIELD.items()
    if setting.name in (*READER_SETTINGS, "global_seed", "pass", "loop")
)


def _give_way(kept: dict[str, Any], own: Mapping[str, Any]) -> None:
    """Leave out what the settings of a reader of its own would contradict."""
    for name, others in {"reverse": ("file_order",), "file_order": ("reverse",)}.items():
        for other in others if own.get(name) else ():
            kept.pop(other, None)
    if own.get("cycle", "auto") != "auto":
        kept.pop("cpus", None)
    if "shuffle_seed" in own:
        kept.pop("shuffle_files", None)
