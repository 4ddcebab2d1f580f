"""The settings that a reader within stages is read with: its own, over those of the command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.settings.table import SETTING_BY_FIELD
from shardctl.core.settings.within_stages import READER_SETTINGS, reader_arguments
from shardctl.core.stages.stages import Read


def settings_of_read(settings: ReadSettings, read: Read) -> ReadSettings:
    """Return the settings of one reader: its own, over those of the reader of the command.

    Stages are left out, and so is all that is behind a reader.

    >>> from shardctl.core.settings.read_settings import ReadSettings
    >>> settings_of_read(ReadSettings(cycle=4, block=2), Read(settings=(("block", 1),)))
    ReadSettings(cycle=4, block=1)
    """
    own = reader_arguments(read)
    # What a script does that lists files itself is all said there.
    held = _OF_SCRIPT if read.listed else _HELD
    kept = {name: getattr(settings, name) for name in held}
    _give_way(kept, own)
    return type(settings)(**kept | own)


_FOR_ALL = ("global_seed", "pass", "loop")
_OF_SCRIPT = tuple(f for f, setting in SETTING_BY_FIELD.items() if setting.name in _FOR_ALL)
_HELD = tuple(
    field
    for field, setting in SETTING_BY_FIELD.items()
    if setting.name in (*READER_SETTINGS, *_FOR_ALL)
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
