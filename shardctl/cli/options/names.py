"""What options are called besides their own names: `-` or `_`, and the names of TFDS and tf.data.

A command asks about each word that could be an option, so nothing is loaded for its own names.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shardctl.errors import UsageError

if TYPE_CHECKING:
    import typer

    from shardctl.metadata.project_file import Project, SettingOrigins


# Of one meaning: some commands have one, some the other; TFDS's `split` is a spec.
_FORMS = {"step": "steps", "steps": "step", "split": "spec"}


def long_names(options: Iterable[str]) -> frozenset[str]:
    """Return the long ones of options, without their dashes."""
    return frozenset(option[2:] for option in options if option.startswith("--"))


def main_name(names: Collection[str], name: str) -> str:
    """Return which of a command's long options a name means, all without dashes in front.

    A name that means none stays as it is.

    >>> names = ["cycle", "shuffle-seed", "buffer-seed", "reverse", "no-reverse"]
    >>> [main_name(names, name) for name in ("shuffle_seed", "cycle_length", "no_reverse", "x")]
    ['shuffle-seed', 'cycle', 'no-reverse', 'x']

    Raises:
        UsageError: several could be meant.
    """
    if name in names or len(name) == 1:
        return name
    meant = next((other for other in _meant(name) if other in names), None)
    if meant is not None:
        return meant
    shared = _several(names, name)
    if shared is not None:
        raise UsageError(shared)
    return name


def _meant(name: str) -> Iterator[str]:
    """Yield the options that a name may stand for."""
    from shardctl.base.phrase import option_name
    from shardctl.settings.names import setting_called

    dashed = name.replace("_", "-")
    yield dashed
    off = "no-" if dashed.startswith("no-") else ""
    argument = dashed.removeprefix("no-").replace("-", "_")
    setting = setting_called(argument)
    if setting is not None:
        yield off + setting.option.removeprefix("--")
    yield off + option_name(argument).removeprefix("--")
    if argument in _FORMS:
        yield _FORMS[argument]


def _several(names: Collection[str], name: str) -> str | None:
    from shardctl.settings.names import which_is_meant
    from shardctl.settings.table import SETTINGS

    here = [s.field for s in SETTINGS if s.option.removeprefix("--") in names]
    shared = which_is_meant(name.removeprefix("no-"), here)
    return None if shared is None else f"--{name}: {shared}"


# The command that runs, as somebody would type it again with a change.


def typed_again(
    ctx: typer.Context,
    arguments: Sequence[str],
    *options: str,
    leaving_out: Collection[str] = (),
) -> str:
    """Return the running command as one line for a shell, with other arguments and more options.

    The options that were typed are there, without those named in `leaving_out`. An argument that
    would be an option is written as a path.
    """
    words = [f"./{word}" if word.startswith("-") else word for word in arguments]
    given = [word for option in _given(ctx, leaving_out) for word in option]
    return shlex.join([*ctx.command_path.split(), *words, *given, *options])


def _given(ctx: Any, leaving_out: Collection[str]) -> Iterator[list[str]]:
    """Yield the words of each option that was typed, in the order of the help page."""
    for parameter in ctx.command.params:
        names = [name for name in parameter.opts if name.startswith("--")]
        source = ctx.get_parameter_source(parameter.name)
        typed = source is not None and source.name == "COMMANDLINE"
        if not typed or not names or not set(names).isdisjoint(leaving_out):
            continue
        value = ctx.params[parameter.name]
        if isinstance(value, bool):
            yield [names[0] if value else parameter.secondary_opts[0]]
            continue
        for one in value if parameter.multiple else [value]:
            yield [names[0], *(map(str, one) if parameter.nargs > 1 else [str(one)])]


# Where settings and files are, as those are told who look at them: people, and GitHub.


def setting_origins(
    project: Project, decides: Callable[[str], bool], *, from_here: bool
) -> SettingOrigins:
    """Return where shardctl.yaml has the settings, and the dataset, that it decides.

    People open a file `from_here`, annotations name it from the root of its repository.
    """
    from shardctl.metadata.project_file import NOWHERE, SettingOrigins

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
