"""From anything that goes wrong to one line on stderr and an exit code."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from typer.exceptions import TyperException

from shardctl.cli.output import fail, say
from shardctl.core.settings.names import setting_called
from shardctl.core.text import choices, nearest, printable, quoted
from shardctl.errors import DatasetError, NotASplitError, ShardctlError, UnnamedDatasetError


def report(error: BaseException, arguments: Sequence[str], commands: Sequence[str]) -> int:
    """Say what went wrong, and return the exit code."""
    if os.environ.get("SHARDCTL_TRACEBACK"):
        import traceback

        for line in "".join(traceback.format_exception(error)).splitlines():
            say(line)
    if isinstance(error, NotASplitError):
        fail(_not_a_split(error, arguments))
        return error.exit_code
    if isinstance(error, UnnamedDatasetError):
        typed = (_as_dataset(word, arguments) for _, word in _positional(arguments))
        fail(next(filter(None, typed), error))
        return error.exit_code
    if isinstance(error, ShardctlError):
        spread = _spread_pattern(arguments) if isinstance(error, DatasetError) else None
        fail(spread or error)
        return error.exit_code
    fail(_line(error, arguments, commands))
    return 2


def _line(error: BaseException, arguments: Sequence[str], commands: Sequence[str]) -> str:
    if isinstance(error, TyperException):
        return _usage(error, arguments, commands)
    if isinstance(error, MemoryError):
        return "out of memory; ask for less, or write to a file with --output"
    if isinstance(error, RecursionError):
        return "the input is nested too deeply"
    if isinstance(error, OSError) and error.strerror:
        where = "" if error.filename is None else f"{quoted(os.fsdecode(error.filename), 200)}: "
        return f"{where}{error.strerror}"
    kind = f"{type(error).__name__}: {printable(str(error))}".removesuffix(": ")
    return f"internal error: {kind}; SHARDCTL_TRACEBACK=1 shows where; please report it"


_TYPERS_MESSAGE = re.compile(
    r"(?P<command>No such command) (?P<quote>['\"])(?P<name>.*?)(?P=quote)\..*"
    r"|(?P<extra>Got unexpected extra argument)\S* \((?P<words>.*)\)\.?"
    r"|(?P<missing>Missing argument) .*"
    r"|(?P<option>No such option): .*"
    r"|Option '(?P<valueless>.*)' requires an argument\."
    r"|Option '(?P<flag>.*)' does not take a value\.",
    re.DOTALL,
)


def _not_a_split(error: NotASplitError, arguments: Sequence[str]) -> ShardctlError | str:
    """Return what to type where the spec names a dataset, the likeliest mistake of all."""
    spread = _spread_pattern(arguments)
    if spread is not None:
        return spread
    try:
        return _dataset_for(error.named, arguments)
    except _NO_DATASET as no_dataset:
        from shardctl.files.stores.stores import is_remote

        # A file or folder is meant, which may be broken; any other name is a spec gone wrong.
        is_here = is_remote(error.named) or os.path.exists(error.named)
        return f"{error}; read as a dataset: {no_dataset}" if is_here else error


_NO_DATASET = (ShardctlError, OSError, ValueError)


def _as_dataset(named: str, arguments: Sequence[str]) -> str | None:
    """Return what to type where a word names a dataset that is here; None where it does not."""
    if not os.path.exists(named):
        return None
    try:
        return _dataset_for(named, arguments)
    except _NO_DATASET:
        return None


def _dataset_for(named: str, arguments: Sequence[str]) -> str:
    """Return what to type where a word is a dataset; raise why it is none."""
    from shardctl.cli.options.dataset import project_here
    from shardctl.files.file_text import working_folder
    from shardctl.readers.index.bare import Counting
    from shardctl.readers.reference import choose_dataset

    data_dirs, _ = _taken_out(arguments, ("--data-dir",))
    dataset = choose_dataset(
        [named],
        project=project_here(),
        data_dir=data_dirs[-1] if data_dirs else None,
        env=os.environ,
        cwd=working_folder(),
        counting=Counting(names_only=True),
    ).dataset
    names = [split.name for split in dataset.splits]
    typed = _with_dataset(arguments, named, "train" if "train" in names else names[0])
    return f"{quoted(named)} is a dataset: {shlex.join(['shardctl', *typed])}"


def _spread_pattern(arguments: Sequence[str]) -> str | None:
    """Return what to type where a shell made several words of `-d data/*`, None where it did not.

    Then a file of records follows the one that the option has.
    """
    for option, first, second in zip(arguments, arguments[1:], arguments[2:], strict=False):
        named = option in ("-d", "--dataset") and not first.startswith("-")
        if named and os.path.isfile(first) and os.path.isfile(second):
            folder, suffix = os.path.dirname(first), os.path.splitext(first)[1]
            pattern = os.path.join(folder, f"*{suffix}")
            return (
                f"{quoted(second, 200)} is a file, and a dataset is one word: put a pattern in "
                f"quotes, so that the shell leaves it alone, as in -d {quoted(pattern, 200)}"
            )
    return None


def _with_dataset(arguments: Sequence[str], named: str, split: str) -> list[str]:
    """Return the command with a dataset where it belongs that stands where a spec does.

    What else was typed stays, but for another dataset.
    """
    command = arguments[0] if arguments else ""
    words = _taken_out(arguments, ("-d", "--dataset"))[1]
    given = _positional(words)
    at = next((at for at, word in given if word == named or word.startswith(f"{named}[")), 0)
    if at and words[at] != named and command != "layout":
        words[at] = split + words[at].removeprefix(named)
    elif at:
        is_whole = command == "layout" or "--files" in words or len(given) > 1
        needs_spec = not is_whole and (command == "plan" or split != "train")
        words[at : at + 1] = [split] if needs_spec else []
    return [*words, "-d", named]


def _positional(arguments: Sequence[str]) -> list[tuple[int, str]]:
    """Return the words behind a command that are neither options nor their values, with places."""
    from shardctl.cli.app import application

    command = arguments[0] if arguments else ""
    params = application(command).commands[command].params
    valued = {
        name
        for one in params
        if not getattr(one, "is_flag", False)
        for name in getattr(one, "opts", ())
    }
    found, skips = [], False
    for at, word in enumerate(arguments):
        if not at or skips:
            skips = False
        elif word.startswith("-") and len(word) > 1:
            skips = word.replace("_", "-") in valued
        else:
            found.append((at, word))
    return found


def _taken_out(words: Sequence[str], options: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the values of some options among words of a command line, and the other words.

    >>> _taken_out(["plan", "--data_dir", "a", "x", "--data-dir=b"], ["--data-dir"])
    (['a', 'b'], ['plan', 'x'])
    >>> _taken_out(["plan", "-dmnist", "x"], ["-d"])
    (['mnist'], ['plan', 'x'])
    """
    values, others = [], []
    rest = iter(words)
    for word in rest:
        name, has_value, value = word.partition("=")
        if name.replace("_", "-") in options:
            values.append(value if has_value else next(rest, ""))
        elif word[:2] in options and not word.startswith("--"):
            values.append(word[2:])
        else:
            others.append(word)
    return values, others


def _usage(error: TyperException, arguments: Sequence[str], commands: Sequence[str]) -> str:
    """Return Typer's message in our own words: the value, the rule, the choices.

    Typer makes no promise about the classes of these errors, so their texts tell them apart.
    """
    message = error.format_message()
    match = _TYPERS_MESSAGE.fullmatch(message)
    if match is None:
        return message
    meant = arguments[0] if arguments and arguments[0] in commands else ""
    explained = f"shardctl {meant} -h".replace("  ", " ") + " explains"
    ctx: Any = getattr(error, "ctx", None)
    parameter: Any = getattr(error, "param", None)
    if match["command"]:
        return _no_such("command", match["name"], commands)
    if match["extra"]:
        too_many = f"{quoted(match['words'])} is more than {meant} takes; {explained}"
        return _spread_pattern(arguments) or _as_dataset(match["words"], arguments) or too_many
    if match["missing"] and parameter is not None:
        return f"{meant} needs {parameter.metavar.rstrip('.')}: {parameter.help}"
    if match["option"]:
        option = str(_name_of(error))
        if option in _SPEC_AS_OPTION and _takes_spec(ctx):
            return f"{option}: the spec is written without an option, as in shardctl {meant} train"
        return f"{_no_option(option, ctx, arguments, commands)}; {explained}"
    if match["valueless"]:
        return f"option {printable(match['valueless'])} needs a value; {explained}"
    if match["flag"]:
        return f"option {printable(match['flag'])} takes no value; {explained}"
    return message


# As TFDS calls it, and as shardctl does.
_SPEC_AS_OPTION = ("--split", "--splits", "--spec", "--specs", "--subsplit")


def _takes_spec(ctx: Any) -> bool:
    arguments = (p for p in ctx.command.params if p.param_type_name == "argument")
    return any(argument.name in ("spec", "specs", "splits") for argument in arguments)


def _name_of(error: TyperException) -> object:
    return getattr(error, "option_name", "")


def _no_option(option: str, ctx: Any, arguments: Sequence[str], commands: Sequence[str]) -> str:

    names = _option_names(ctx)
    elsewhere = where_it_goes(option, arguments, commands)
    if elsewhere is None:
        return _no_such("option", option, names, _other_names(names))
    near = nearest(option, names)
    return f"{elsewhere}; close options: {choices(near)}" if near else elsewhere


def _no_such(
    kind: str, name: str, names: Sequence[str], others: Mapping[str, str] | None = None
) -> str:
    """Return that there is no such name, and those near it; `others` are other names for them."""
    known = {**dict(zip(names, names, strict=True)), **(others or {})}
    near = nearest(name, known, 6)
    close = list(dict.fromkeys(known[other] for other in near))[:3]
    if close:
        return f"no {kind} {quoted(name)}; close {kind}s: {choices(close)}"
    return f"no {kind} {quoted(name)}; choose from {choices(names, 40)}"


def _other_names(options: Sequence[str]) -> dict[str, str]:
    from shardctl.cli.options.names import long_names, other_names

    return {f"--{other}": f"--{name}" for other, name in other_names(long_names(options)).items()}


def _option_names(ctx: Any) -> list[str]:
    if ctx is None:
        return []
    return [
        name
        for parameter in ctx.command.get_params(ctx)
        for name in (*parameter.opts, *parameter.secondary_opts)
        if name.startswith("--")
    ]


# An option in a place that does not know it: where it goes instead.
#
# Only an error asks, so that every command may be imported for the answer.


def where_it_goes(option: str, arguments: Sequence[str], commands: Sequence[str]) -> str | None:
    """Return where an option belongs, None where no place of the command line knows it.

    `option` is one that the place where it stands does not know: before the command where the first
    of the arguments is none, else behind it.
    """
    own, of_commands = _options(commands)
    owners = [name for name in commands if _knows(of_commands[name], option)]
    if arguments[0] in commands:
        command = arguments[0]
        if option in own:
            return f"{option} goes without a command: shardctl {option}"
        return _of_others(option, owners, command) if owners else None
    at = next((at for at, word in enumerate(arguments) if word in commands), None)
    if not owners:
        near = [] if at is None else nearest(option, sorted(of_commands[arguments[at]]))
        said = f"no option {quoted(option)}; close options of {arguments[at or 0]}: {choices(near)}"
        return said if near else None
    if at is None:
        typed = shlex.join(["shardctl", owners[0], *arguments])
        return f"{option} belongs behind a command, as in {typed}; {choices(owners, 20)} take it"
    command = arguments[at]
    if command not in owners:
        return _of_others(option, owners, command)
    typed = shlex.join(["shardctl", command, *arguments[:at], *arguments[at + 1 :]])
    return f"{option} belongs behind the command: {typed}"


def _of_others(option: str, owners: Sequence[str], command: str) -> str:
    return f"{option} is an option of {choices(owners, 20)}, not of {command}"


def _options(commands: Sequence[str]) -> tuple[set[str], dict[str, set[str]]]:
    """Return the options of shardctl itself, and of each of its commands."""
    from shardctl.cli.app import application

    group = application(*commands)
    return _names(group), {name: _names(group.commands[name]) for name in commands}


def _knows(options: Collection[str], option: str) -> bool:
    """Return whether an option is one of some, by its own name or that of TFDS for its setting."""
    setting = setting_called(option.removeprefix("--"))
    return option in options or (setting is not None and setting.option in options)


def _names(command: Any) -> set[str]:
    return {
        name
        for parameter in command.params
        if parameter.param_type_name == "option"
        for name in (*parameter.opts, *parameter.secondary_opts)
    }
