"""Turns any error into one line on stderr and an exit code."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import Any

from typer.exceptions import TyperException

from shardctl.base.text import either, nearest, path_word, printable, quoted, shell_line
from shardctl.cli.output import fail, say
from shardctl.errors import DatasetError, NotASplitError, ShardctlError, UnnamedDatasetError
from shardctl.settings.names import setting_called


def report(error: BaseException, arguments: Sequence[str], commands: Sequence[str]) -> int:
    """Say what went wrong, and return the exit code."""
    # For developers: the traceback comes before the line.
    if os.environ.get("SHARDCTL_TRACEBACK"):
        import traceback

        for line in "".join(traceback.format_exception(error)).splitlines():
            say(line)
    if not isinstance(error, ShardctlError):
        fail(_line(error, arguments, commands))
        return 2
    hint: ShardctlError | str | None = None
    # A pattern that the shell expanded makes the second file look like a SPEC, or spoils the
    # dataset.
    if isinstance(error, NotASplitError | DatasetError):
        hint = _spread_pattern(arguments)
    if isinstance(error, NotASplitError) and error.named.lower() in _TRUTHS:
        # The word before `named` on the command line. From the end, so that the first occurrence
        # wins.
        before = dict(pairwise(reversed(arguments))).get(error.named, "")
        hint = _no_value(before) if before.startswith("--") else None
    # A dataset without -d looks like a SPEC.
    elif isinstance(error, NotASplitError):
        hint = hint or _as_dataset(error.named, arguments)
    if isinstance(error, UnnamedDatasetError):
        here = (_as_dataset(word, arguments) for word in arguments[1:] if os.path.exists(word))
        hint = next(filter(None, here), None)
    fail(hint or error)
    return error.exit_code


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


# Typer gives errors no stable classes, so their English texts are matched.
_TYPERS_MESSAGE = re.compile(
    r"(?P<command>No such command) (?P<quote>['\"])(?P<name>.*?)(?P=quote)\..*"
    r"|(?P<extra>Got unexpected extra argument)\S* \((?P<words>.*)\)\.?"
    r"|(?P<missing>Missing argument) .*"
    r"|(?P<option>No such option): .*"
    r"|Option '(?P<valueless>.*)' requires an argument\."
    r"|Option '(?P<flag>.*)' does not take a value\.",
    re.DOTALL,
)


def _as_dataset(named: str, arguments: Sequence[str]) -> str | None:
    """Return what to type where a word names a dataset; None where it does not."""
    from shardctl.cli.options.dataset import project_here
    from shardctl.metadata.reference import choose_dataset

    words = [part for word in arguments for part in word.split("=", 1)]
    try:
        # Looking whether a word is a dataset must not count files.
        choose_dataset(
            [named],
            project=project_here(say_so=False),
            data_dir=dict(pairwise(words)).get("--data-dir"),
            counting="names",
        )
    except (ShardctlError, OSError, ValueError):
        return None
    typed = shell_line("-d", path_word(named))
    return f"{quoted(named)} is a dataset: give it with -d, as in {typed}"


def _spread_pattern(arguments: Sequence[str]) -> str | None:
    """Return what to type where a shell made several words of `-d data/*`, None where it did not.

    Then a file of records follows the one that the option has.
    """
    for option, first, second in zip(arguments, arguments[1:], arguments[2:], strict=False):
        named = option in ("-d", "--dataset") and not first.startswith("-")
        if named and os.path.isfile(first) and os.path.isfile(second):
            folder, suffix = os.path.dirname(first), os.path.splitext(first)[1]
            pattern = path_word(os.path.join(folder, f"*{suffix}"))
            return (
                f"{quoted(second, 200)} is a file, and a dataset is one word: put a pattern in "
                f"quotes, so that the shell leaves it alone, as in {shell_line('-d', pattern)}"
            )
    return None


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
        return no_such("command", match["name"], commands, "shardctl -h lists them")
    if match["extra"]:
        too_many = f"{quoted(match['words'])} is more than {meant} takes; {explained}"
        return _spread_pattern(arguments) or _as_dataset(match["words"], arguments) or too_many
    if match["missing"] and parameter is not None:
        return f"{meant} needs {parameter.metavar.rstrip('.')}: {parameter.help.partition('. ')[0]}"
    if match["option"]:
        option = str(getattr(error, "option_name", ""))
        if option in _SPEC_AS_OPTION and _takes_spec(ctx):
            return f"{option}: the spec is written without an option, as in shardctl {meant} train"
        return _no_option(option, arguments[0], commands)
    if match["valueless"]:
        return f"option {printable(match['valueless'])} needs a value; {explained}"
    if match["flag"]:
        return _no_value(match["flag"])
    return message


def _no_value(flag: str) -> str:
    """Return how a switch is written that was given a value."""
    known = setting_called(flag.removeprefix("--").removeprefix("no-"))
    name = flag if known is None else known.option
    off = "" if known is None else f", or --no-{name.removeprefix('--')}"
    return f"{printable(flag)} takes no value; write {printable(name)} alone{off}"


_TRUTHS = ("yes", "no", "true", "false", "on", "off")


# As TFDS calls it, and as shardctl does.
_SPEC_AS_OPTION = ("--split", "--splits", "--spec", "--specs", "--subsplit")


def _takes_spec(ctx: Any) -> bool:
    arguments = (p for p in ctx.command.params if p.param_type_name == "argument")
    return any(argument.name in ("spec", "specs", "splits") for argument in arguments)


def _no_option(option: str, command: str, commands: Sequence[str]) -> str:
    """Return which command has the option, or which one here is written nearly so."""
    from shardctl.cli.app import application  # all commands are imported for the answer

    known = setting_called(option.removeprefix("--"))
    meant = {option, option if known is None else known.option}
    names = {
        name: {option for one in its.params for option in (*one.opts, *one.secondary_opts)}
        for name, its in application(*commands).commands.items()
    }
    owners = [name for name in commands if meant & names[name]]
    if command not in commands and owners:
        return f"{option} belongs behind a command, as in shardctl {owners[0]} {option}"
    if command not in commands:
        return f"no option {quoted(option)}; see shardctl -h"
    if 0 < len(owners) <= _FEW:
        return f"{option} is an option of {either(owners)}, not of {command}"
    of_command = () if owners else names[command]
    return no_such("option", option, of_command, f"see shardctl {command} --help-all")


_FEW = 3  # commands that an error names
_ALIKE = 0.7  # of two words that begin alike and are one with a slip


def no_such(kind: str, name: str, names: Collection[str], otherwise: str) -> str:
    """Return that there is no such name, and the one that is written nearly so."""
    close = [one for one in nearest(name, names, 1) if _is_slip(name, one)]
    hint = f"did you mean {close[0]}?" if close else otherwise
    return f"no {kind} {quoted(name)}; {hint}"


def _is_slip(name: str, meant: str) -> bool:
    """Return whether a name is another one with a slip, or cut short, and no word of its own.

    >>> _is_slip("--lodaer", "--loader"), _is_slip("--index", "--pass-index")
    (True, False)
    """
    from difflib import SequenceMatcher

    name, meant = name.strip("-").casefold(), meant.strip("-")
    if meant.startswith(name) or name.startswith(meant):
        return True
    # Words that begin with another letter need to be more alike.
    least = _ALIKE if name[0] == meant[0] else _ALIKE + 0.1
    return SequenceMatcher(None, name, meant).ratio() >= least
