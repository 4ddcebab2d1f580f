"""The settings that a shardctl.yaml states, with its paths as seen from the working folder."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shardctl.base.text import quoted
from shardctl.errors import UsageError
from shardctl.files.parse import decode
from shardctl.settings.names import main_names, settings_from_document
from shardctl.settings.table import stages_in
from shardctl.stores.stores import AnyPath, is_remote, read_file, working_folder

if TYPE_CHECKING:
    from shardctl.metadata.project_file import Project
    from shardctl.stages.stages import Pipeline, Read


def stated_settings(project: Project) -> dict[str, Any]:
    """Return the settings under `read:` of a project, as arguments of `ReadSettings`.

    Paths in it are relative to its file.

    Raises:
        UsageError: an unknown name, or a value of another kind; `located` says on which line.
    """
    read = main_names(project.read)
    if project.path is not None and isinstance(read.get("file_order"), str):
        # The name of a list, as the option has it.
        read["file_order"] = list(listed_files(project.path.parent / str(read["file_order"])))
    stated = settings_from_document(read)
    if project.path is not None and "stages" in stated:
        try:
            stages = stages_in(stated)
        except UsageError:
            return stated  # which the settings refuse, too
        stated["stages"] = _from_here(stages, project.path.parent)
    return stated


def _from_here(stages: Pipeline, folder: Path) -> Pipeline:
    """Return stages of a file in a folder whose paths lead from the working folder."""
    from shardctl.metadata.reference import is_fixed, ref_from
    from shardctl.stages.pipelines import with_changed

    here = working_folder()
    if folder == here:
        return stages

    def read(read: Read) -> Read:
        if read.data is None:
            return read
        return replace(read, data=ref_from(read.data, cwd=folder, folder=here))

    def kept(path: str) -> str:
        return path if is_fixed(path) or is_remote(path) else os.path.relpath(folder / path, here)

    return with_changed(stages, read=read, kept=kept)


def listed_files(path: AnyPath, data: bytes | None = None) -> tuple[str, ...]:
    """Return the names in a list of files: one a line, blank lines and `#` comments left out.

    `data` is what it holds, where it is not a file.
    """
    text = decode(read_file(path) if data is None else data, source=str(path))
    lines = (line.strip() for line in text.splitlines())
    names = tuple(line for line in lines if line and not line.startswith("#"))
    if not names:
        raise UsageError(f"the file order {quoted(path)} names no files")
    return names
