"""The settings that a reader within stages has of its own: `read(train, shuffle_seed=3)`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from shardctl.errors import UsageError
from shardctl.settings.names import (
    SETTING_BY_ALIAS,
    main_names,
    no_such_setting,
    settings_from_document,
)
from shardctl.settings.table import SETTING_BY_NAME, SETTINGS
from shardctl.spec.host import DEFAULT_HOST_MODE, HOST_MODES
from shardctl.stages.pipelines import with_changed
from shardctl.stages.stages import Pipeline, Read

# What a reader may have of its own; the rest is behind it, or holds for all readers of a script.
READER_SETTINGS = (
    *("cycle", "cpus", "block", "shuffle_files", "shuffle_seed", "reshuffle", "deterministic"),
    *("repeat_files", "reverse", "file_order", "host", "host_by"),
)


def with_known_settings(pipeline: Pipeline, made: Callable[..., Any]) -> Pipeline:
    """Return a pipeline whose readers have their settings by their own names, in their order.

    made: `ReadSettings`, which checks them, and itself asks for this.

    >>> from shardctl.settings.read_settings import ReadSettings
    >>> from shardctl.stages.text import parse_stages, text_of
    >>> pipeline = parse_stages("read(a, block_length=1, cycle_length=2)")
    >>> text_of(with_known_settings(pipeline, ReadSettings))
    'read(a, cycle=2, block=1)'

    Raises:
        UsageError: no setting of a reader, or a value that it does not take.
    """

    def known(read: Read) -> Read:
        return replace(read, settings=_known(read, made)) if read.settings else read

    return with_changed(pipeline, read=known)


def _known(read: Read, made: Callable[..., Any]) -> tuple[tuple[str, object], ...]:
    """Return settings of a reader by their own names, checked; values as documents have them."""
    arguments = reader_arguments(read)
    try:
        settings = made(**arguments)
    except UsageError as error:
        raise UsageError(f"read: {error}") from None
    known = []
    for setting in SETTINGS:
        if setting.field in arguments:
            value: Any = setting.kind.to_document(getattr(settings, setting.field))
            known.append((setting.name, tuple(value) if isinstance(value, list) else value))
    return tuple(known)


def reader_arguments(read: Read) -> dict[str, Any]:
    """Return the settings of a reader of its own as arguments of `ReadSettings`.

    Raises:
        UsageError: no setting of a reader, or a value of another kind.
    """
    try:
        named = main_names(dict(read.settings))
        for name in named:
            if name not in READER_SETTINGS and name in SETTING_BY_NAME:
                raise UsageError(f"{name} is no setting of a reader")
            if name not in READER_SETTINGS:
                raise no_such_setting(name, READER_SETTINGS, SETTING_BY_ALIAS)
        listed = {k: list(v) if isinstance(v, tuple) else v for k, v in named.items()}
        arguments = settings_from_document(listed)
        if HOST_MODES[arguments.get("host_by", DEFAULT_HOST_MODE)].reads_all:
            raise UsageError(f"host_by={arguments['host_by']} is shard(N, I) behind the reader")
    except UsageError as error:
        raise UsageError(f"read: {error}") from None  # text: they are no options
    return arguments
