"""What a new shardctl.yaml states, and the defaults that it shows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from shardctl.base.text import public_url
from shardctl.dataset.dataset import Dataset
from shardctl.settings.read_settings import ReadSettings
from shardctl.settings.table import SETTINGS
from shardctl.stages.pipelines import with_changed
from shardctl.stages.stages import Read
from shardctl.stores.stores import is_remote


@dataclass(frozen=True, kw_only=True)
class DraftSetting:
    """A setting of a file that is to be written: stated, or as a comment with its default.

    takes: the kind of its values, "" where the value shows it.
    """

    name: str
    value: object
    meaning: str
    takes: str = ""
    stated: bool = False


@dataclass(frozen=True, kw_only=True)
class ProjectDraft:
    """A shardctl.yaml that is to be written; `schema` is the file beside it that editors read."""

    schema: str = ""

    dataset: DraftSetting
    data_dir: DraftSetting
    read: Sequence[DraftSetting]
    lint: Sequence[DraftSetting]


def path_as_stated(path: str, folder: Path) -> str:
    """Return a path as the file states it: one that is relative here, relative to the file."""
    if is_remote(path) or os.path.isabs(path) or path.startswith("~"):
        return public_url(path)
    return Path(os.path.relpath(path, folder)).as_posix()


def read_settings(
    settings: ReadSettings,
    given: Mapping[str, Any],
    dataset: Dataset,
    folder: Path,
    ref_from: Callable[[str], str],
) -> Iterator[DraftSetting]:
    """Yield the settings of an order; `ref_from` names a dataset as seen from the file."""

    def read(read: Read) -> Read:
        return read if read.data is None else replace(read, data=ref_from(read.data))

    for setting in SETTINGS:
        value = setting.value_in_force(settings, ordered=dataset.ordered)
        # Paths and references are given from this folder, and read from that of the file.
        if setting.field == "file_order" and given.get("file_order", "-") != "-":
            value = path_as_stated(given[setting.field], folder)
        elif setting.field == "stages" and settings.stages is not None:
            stages = with_changed(
                settings.stages, read=read, kept=lambda path: path_as_stated(path, folder)
            )
            value = setting.kind.to_document(stages)
        elif setting.field in given:
            value = setting.kind.to_document(getattr(settings, setting.field))
        meaning = setting.help
        # The name in TFDS or tf.data, unless the help has it.
        if setting.stands_for.lower() not in meaning.lower():
            meaning = f"{meaning.rstrip('.')} ({setting.stands_for})."
        yield DraftSetting(
            name=setting.field,
            value=value,
            meaning=meaning,
            takes=setting.kind.metavar or "true|false",
            stated=setting.field in given,
        )
