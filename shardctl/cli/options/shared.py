"""How options are declared, what else they are called, and how a command is typed again."""

import contextlib
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shardctl.base.text import path_word, shell_line
from shardctl.cli import completion
from shardctl.errors import UsageError

if TYPE_CHECKING:
    from shardctl.metadata.index.beam_runner import BeamRunner
    from shardctl.metadata.project_file import Project, SettingOrigins

# An option is called like its parameter, unless it is given another name; what stands for its value
# and what it is are read from "Options:" in the docstring of its command or group. A parser raises
# the rule that a value breaks; `app.py` says of which option, and which value it is.
Parser = Callable[[Any], Any]


def option(*names: str, parse: Parser | None = None, offered: Any = None) -> Any:
    """Return an option; of a bool it has no value."""
    return typer.Option(*names or (...,), parser=parse, autocompletion=offered)


def argument(*, offered: Any = None) -> Any:
    """Return what is no option, which a docstring has under "Arguments:"."""
    return typer.Argument(autocompletion=offered)


def number(*names: str, minimum: int = 1) -> Any:
    """Return an option that takes a whole number."""
    return option(*names, parse=whole_number(minimum))


def whole_number(minimum: int | None = None, maximum: int | None = None) -> Callable[[Any], int]:
    """Return a parser of whole numbers; `_` may group digits, as in a spec.

    >>> whole_number()("1_000")
    1000
    """
    bounds = "" if minimum is None else f", at least {minimum},"
    bounds = bounds if maximum is None else f" from {minimum} to {maximum}"

    def parse(text: Any) -> int:
        try:
            found = int(text)
        except ValueError:
            raise UsageError(f"a whole number{bounds} is needed") from None
        if (minimum is not None and found < minimum) or (maximum is not None and found > maximum):
            raise UsageError(f"a whole number{bounds} is needed")
        return found

    return parse


def real_number(fits: Callable[[float], bool], rule: str) -> Callable[[Any], float]:
    """Return a parser of numbers that fit; nan fits nowhere."""

    def parse(text: Any) -> float:
        with contextlib.suppress(ValueError):
            if fits(float(text)):
                return float(text)
        raise UsageError(rule)

    return parse


Flag = Annotated[bool, option()]
Switch = Annotated[bool | None, option()]
Number = Annotated[Any, number()]
Text = Annotated[str | None, option()]
Texts = Annotated[list[str] | None, option()]
Splits = Annotated[list[str] | None, argument(offered=completion.splits)]
Word = Annotated[Any, option()]  # one of those in its docstring, as python|keras-fit
SpecArgument = Annotated[str | None, argument(offered=completion.splits)]


class Shared:
    """What several commands take, in the words of all of them.

    Arguments:
      spec [SPEC]: Split or slice, as TFDS writes it [default: train].

    More options:
      --allow-version: Take a --plan of another version or config whose files have the same names
        and lengths.
      --runner local|beam: Read the files on this machine, or by a Beam pipeline with the options
        after --.

    Output options:
      --all: Show every row on a terminal too, as in a pipe or a file.
      --picture: Draw pictures in the table [default: on a terminal that can show them].
      --color auto|always|never: Use colour; auto: on a terminal, unless NO_COLOR or FORCE_COLOR is
        set [default: auto].
      --help-all: Show all options, by subject.
    """


def chosen_runner(
    name: str, words: list[str], typed: Sequence[str], *, jobs: int | None
) -> "BeamRunner | None":
    """Return the runner that an option names, None for this machine, and take its words away.

    words: all words that are no options, of which those after `--` are the last; `typed` is the
    command line as it was typed.
    """
    options = list(typed[typed.index("--") + 1 :]) if "--" in typed else []
    if name == "local":
        if any(word.startswith("--") for word in options):
            raise UsageError("options of Beam, after --, need --runner beam before it")
        return None
    if jobs is not None:
        raise UsageError(
            "--jobs with --runner beam: how many workers there are is said after --, as in "
            "-- --direct_num_workers=4"
        )
    if options:
        del words[-len(options) :]
    from shardctl.metadata.index.beam_runner import BeamRunner

    return BeamRunner(options)


# What options are called besides: `-` or `_`, and the names of TFDS and tf.data.

# Of one meaning: some commands have one, some the other; TFDS's `split` is a spec.
_FORMS = {"step": "steps", "steps": "step", "split": "spec"}


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
    ctx: typer.Context, arguments: Sequence[str], *options: str, leaving_out: Collection[str] = ()
) -> str:
    """Return the running command as one line for a shell, with other arguments and more options.

    The options that were typed are there, without those named in `leaving_out`. An argument that
    would be an option is written as a path.
    """
    words = map(path_word, arguments)
    given = [word for option in _given(ctx, leaving_out) for word in option]
    return shell_line(*[*ctx.command_path.split(), *words, *given, *options])


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


# Where settings and files are, as shown to whoever reads of them: people, and GitHub.


def setting_origins(
    project: "Project", decides: Callable[[str], bool], *, from_here: bool
) -> "SettingOrigins":
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
