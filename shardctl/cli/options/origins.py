"""Where settings and files are, as those are told who look at them: people, and GitHub."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shardctl.readers.project_file import Project
    from shardctl.rendering.text.setting_origins import SettingOrigins


def setting_origins(project: Project, given: Collection[str], *, from_here: bool) -> SettingOrigins:
    """Return where shardctl.yaml has the settings that no option replaces; `given` are those.

    People open a file `from_here`, annotations name it from the root of its repository.
    """
    from shardctl.rendering.text.setting_origins import NOWHERE, SettingOrigins

    if project.path is None:
        return NOWHERE
    return SettingOrigins(
        file=os.path.relpath(project.path) if from_here else path_from_repository(project.path),
        lines={name: line for name, line in project.setting_lines().items() if name not in given},
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
