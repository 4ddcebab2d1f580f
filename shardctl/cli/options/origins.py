"""Where settings and files are, as those are told who look at them: people, and GitHub."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shardctl.readers.project_file import Project
    from shardctl.rendering.text.setting_origins import SettingOrigins


def setting_origins(
    project: Project, decides: Callable[[str], bool], *, from_here: bool
) -> SettingOrigins:
    """Return where shardctl.yaml has the settings, and the dataset, that it decides.

    People open a file `from_here`, annotations name it from the root of its repository.
    """
    from shardctl.rendering.text.setting_origins import NOWHERE, SettingOrigins

    if project.path is None:
        return NOWHERE
    lines = {**project.setting_lines(), "dataset": project.lines().get("dataset")}
    return SettingOrigins(
        file=os.path.relpath(project.path) if from_here else path_from_repository(project.path),
        lines={name: at for name, at in lines.items() if at is not None and decides(name)},
    )


def path_from_repository(path: Path) -> str:
    """Return a path as annotations name it: from the root of its repository, else from here.

    It is the path as it is where no file system has such a one, or the working folder is gone.
    """
    try:
        whole = Path(os.path.abspath(path))
        for folder in whole.parents:
            if (folder / ".git").exists():
                return whole.relative_to(folder).as_posix()
        return Path(os.path.relpath(whole)).as_posix()
    except OSError:
        return path.as_posix()
