"""What a shell offers after a TAB, and the scripts that make bash, zsh and fish ask for it.

A script runs shardctl with `_SHARDCTL_COMPLETE` set to `complete_bash`, `complete_zsh` or
`complete_fish` and the line up to the cursor in `_TYPER_COMPLETE_ARGS`, as Typer's own scripts do.
Each answer is a whole word on a line of its own; zsh and fish get its explanation too, and bash
what belongs in place of the text that it completes (`_SHARDCTL_COMPLETE_TEXT`). Typer's engine is
not used, since it breaks words at the `:` and the `[` of a spec.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from shardctl.base.text import choices, printable, quoted
from shardctl.errors import ShardctlError, UsageError

Answer = tuple[str, str]  # a word and what it means

# Text that a shell or a terminal would act on is not offered.
_PLAIN = re.compile(r"[\w./:@%+=,\[\]{}^-]*")
_PATTERN = re.compile(r"[\[\]{}^]")  # what acts in a shell where nothing quotes it


def answer_shell(
    instruction: str, env: Mapping[str, str], app: Callable[[Sequence[str]], Any]
) -> str:
    """Return a completion script, or the words that could complete the line, one on each line.

    Nothing is offered where something goes wrong: a message would land in the line being typed.

    Raises:
        UsageError: an unknown instruction, or a shell without a script.
    """
    verb, _, shell = instruction.partition("_")
    if shell not in SHELLS or verb not in ("source", "complete"):
        known = [f"{verb}_{shell}" for verb in ("source", "complete") for shell in SHELLS]
        raise UsageError(f"no _SHARDCTL_COMPLETE {quoted(instruction)}; it has: {choices(known)}")
    if verb == "source":
        return completion_script(shell)
    answers: list[Answer] = []
    with contextlib.suppress(Exception, SystemExit):
        words, incomplete = _line(env)
        found = offers(app(words), words, incomplete)
        answers = [one for one in found if _is_plain(one[0], incomplete)]
        if shell == "bash" and "_SHARDCTL_COMPLETE_TEXT" in env:
            line, text = env["_TYPER_COMPLETE_ARGS"], env["_SHARDCTL_COMPLETE_TEXT"]
            whole = (in_place_of(text, word, incomplete, line) for word, _ in answers)
            return "".join(f"{word}\n" for word in whole if word is not None)
    return "".join(_formatted(shell, *answer) for answer in answers)


def _is_plain(word: str, incomplete: str) -> bool:
    """Return whether a word is offered; what is typed of it already is the user's own."""
    return word.isprintable() and _PLAIN.fullmatch(word.removeprefix(incomplete)) is not None


def in_place_of(text: str, word: str, incomplete: str, line: str) -> str | None:
    """Return what bash is to put in place of `text`, the end of `line`, so that it reads `word`.

    `incomplete` is the word that the line ends with as it reads now. What is typed stays as it is,
    in its quotes; None where the rest does not follow it.

    >>> in_place_of("'train[4'", "train[40:]", "train[4", "shardctl plan 'train[4'")
    "'train[40:]'"
    >>> in_place_of("3", "mnist:3.0.1", "mnist:3", "shardctl plan -d mnist:3")
    '3.0.1'
    """
    if not word.startswith(incomplete):
        return word if text == incomplete else None
    rest = word.removeprefix(incomplete)
    if _open_quote(line):
        return text + rest
    if text[-1:] in ("'", '"') and text[-2:-1] != "\\":  # closed, and opened again
        return text[:-1] + rest + text[-1]
    return text + _PATTERN.sub(r"\\\g<0>", rest)


def _formatted(shell: str, word: str, meaning: str) -> str:
    meaning = printable(meaning)
    if shell == "bash" or not meaning:
        return (word.replace(":", "\\:") if shell == "zsh" else word) + "\n"
    if shell == "fish":
        return f"{word}\t{meaning}\n"
    return word.replace(":", "\\:") + f":{meaning}\n"


def _line(env: Mapping[str, str]) -> tuple[list[str], str]:
    """Return the whole words after the program's name, and the one at the cursor."""
    line = env.get("_TYPER_COMPLETE_ARGS")
    if line is None:  # as Typer's bash script asks
        words = split_line(env["COMP_WORDS"])
        at = int(env["COMP_CWORD"])
        return words[1:at], words[at] if at < len(words) else ""
    words = split_line(line)[1:]
    if not words or (line[-1:].isspace() and split_line(f"{line}x")[-1] == "x"):
        return words, ""
    return words[:-1], words[-1]


def split_line(line: str) -> list[str]:
    """Return the words of a line as a shell reads them, a quote that is still open included.

    >>> split_line("shardctl plan 'train[4")
    ['shardctl', 'plan', 'train[4']
    """
    words, missing = _split(line)
    return split_line(line + missing) if missing else words


def _open_quote(line: str) -> bool:
    return _split(line)[1] in ("'", '"')


def _split(line: str) -> tuple[list[str], str]:
    """Return the words of a line, or what is missing at its end: a quote, or any character."""
    lexer: Any = shlex.shlex(line, posix=True)  # typeshed has no `state`
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        return list(lexer), ""
    except ValueError:  # no closing quote, or nothing after a backslash
        return [], lexer.state or ""


def offers(group: Any, words: Sequence[str], incomplete: str) -> Iterator[Answer]:
    """Yield what could complete the word at the cursor, after these words."""
    root = group.make_context("shardctl", [], resilient_parsing=True)
    takes_value = _taking_values(root)
    at = 0  # behind the options of shardctl itself
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in takes_value else 1
    if at < len(words):
        command = group.commands.get(words[at])
        if command is not None:
            given = words[at + 1 :]
            yield from _offers(_context(command, given, root), given, incomplete)
        return
    commands = (
        (name, command.get_short_help_str())
        for name, command in group.commands.items()
        if not command.hidden
    )
    in_options = at > len(words) or incomplete.startswith("-")
    yield from (
        _offers(root, words, incomplete) if in_options else _answers_starting(commands, incomplete)
    )


def _offers(ctx: Any, given: Sequence[str], incomplete: str) -> Iterator[Answer]:
    """Yield what could complete the word at the cursor, after these words of a command."""
    takes_value = _taking_values(ctx)
    option, equals, value = incomplete.partition("=")
    own_name = _own_name(ctx, option)
    before = _own_name(ctx, given[-1]) if given and "=" not in given[-1] else ""
    if before in takes_value:
        yield from _values(takes_value[before], ctx, incomplete)
    elif equals and own_name in takes_value:
        for word, meaning in _values(takes_value[own_name], ctx, value):
            yield f"{option}={word}", meaning
    elif incomplete.startswith("-") and "--" not in given:
        yield from _answers_starting(_options(ctx, given), incomplete)
    else:
        for parameter in ctx.command.get_params(ctx):
            several = parameter.nargs == -1
            if parameter.param_type_name == "argument" and (
                several or ctx.params.get(parameter.name) is None
            ):
                yield from _values(parameter, ctx, incomplete)


def _taking_values(ctx: Any) -> dict[str, Any]:
    """Return the options of a command that take a value, by their names."""
    return {
        name: parameter
        for parameter in ctx.command.get_params(ctx)
        for name in parameter.opts
        if name.startswith("-") and not parameter.is_flag
    }


def _context(command: Any, given: Sequence[str], root: Any) -> Any:
    """Return what the words say so far, up to one that is refused."""
    for stop in range(len(given), -1, -1):
        with contextlib.suppress(UsageError):
            words = list(given[:stop])
            return command.make_context(command.name, words, root, resilient_parsing=True)
    raise AssertionError("a command has at least one word")


def _own_name(ctx: Any, word: str) -> str:
    """Return an option by its own name, as in `--data-dir` of `--data_dir=..`; any other word."""
    name = word.partition("=")[0]
    if not name.startswith("--") or ctx.token_normalize_func is None:
        return name
    return f"--{ctx.token_normalize_func(name[2:])}"


def _options(ctx: Any, given: Sequence[str]) -> Iterator[Answer]:
    """Yield the options that can still be given, the long form of each first."""
    named = {_own_name(ctx, word) for word in given}
    for parameter in ctx.command.get_params(ctx):
        names = [*parameter.opts, *parameter.secondary_opts]
        if parameter.param_type_name != "option" or parameter.hidden:
            continue
        if parameter.multiple or named.isdisjoint(names):
            for name in sorted(names, key=len, reverse=True):
                yield name, parameter.help or ""


def _values(parameter: Any, ctx: Any, incomplete: str) -> Iterator[Answer]:
    """Yield the values of an option or an argument: its own offers, or words its metavar lists."""
    for item in parameter.shell_complete(ctx, incomplete):
        yield item.value, item.help or ""
    if parameter.metavar and "|" in parameter.metavar:
        words = (word for word in parameter.metavar.split("|") if word.islower())
        yield from _answers_starting(((word, "") for word in words), incomplete)


def _answers_starting(answers: Iterator[Answer], incomplete: str) -> Iterator[Answer]:
    return (answer for answer in answers if answer[0].startswith(incomplete))


# The scripts that make bash, zsh and fish ask shardctl for completions.

SHELLS = ("bash", "zsh", "fish")

_HEAD = "Written by `_SHARDCTL_COMPLETE=source_{shell} shardctl`; see `shardctl help install`."


def completion_script(shell: str) -> str:
    """Return the completion script for one of `SHELLS`.

    >>> completion_script("zsh").splitlines()[0]
    '#compdef shardctl'
    """
    script = Path(__file__).parent.joinpath("scripts", shell).read_text("utf-8")
    return script.replace("@HEAD@", _HEAD.format(shell=shell))


# The values of options and arguments: datasets, split names, stages, codes of findings.

# Names are anyone's: none that would be an option, a pattern or a path of zsh (`=ls`) is offered.
_NAME = re.compile(r"[\w.][\w./:@%+=,-]*")
_MOST_ENTRIES = 10_000  # of a folder that are looked at after a TAB


def datasets(ctx: Any, incomplete: str) -> list[str]:
    """Offer the datasets under the chosen data dir, those of the catalog, folders and layout files.

    Versions come after a `:`, configs after a `/` or once a single name is left.
    """
    return [*dict.fromkeys((*_named(ctx, incomplete), *sorted(_paths(incomplete))))]


def _named(ctx: Any, incomplete: str) -> list[str]:
    from shardctl.metadata.names import catalog_names, catalog_titles, data_dirs, list_datasets
    from shardctl.metadata.project_file import find_project
    from shardctl.stores.stores import working_folder

    titles: list[str] = []
    with contextlib.suppress(ShardctlError, OSError):
        project = find_project(working_folder())
        dirs = data_dirs(ctx.params.get("data_dir"), os.environ, project)
        titles += map(str, list_datasets(dirs.local()))
    with contextlib.suppress(ShardctlError, OSError):
        for name in _starting(catalog_names(), re.split("[/:]", incomplete)[0]):
            titles += catalog_titles(name)
    titles = _starting(titles, incomplete)
    if ":" in incomplete:
        return sorted(set(titles))
    with_config = {title.partition(":")[0] for title in titles}
    names = {title.partition("/")[0] for title in with_config}
    if "/" in incomplete:
        return sorted(with_config)
    return sorted(names | with_config if len(names) == 1 else names)


def _paths(incomplete: str) -> Iterator[str]:
    """Yield the folders and layout files whose paths begin so, hidden ones if asked for."""
    from shardctl.metadata.project_file import PROJECT_FILENAME
    from shardctl.metadata.reference import LAYOUT_SUFFIXES

    for path, is_folder in _entries(incomplete):
        if is_folder:
            yield f"{path}/"
        elif path.endswith(LAYOUT_SUFFIXES) and os.path.basename(path) != PROJECT_FILENAME:
            yield path


def _entries(incomplete: str) -> Iterator[tuple[str, bool]]:
    """Yield what a folder has whose path begins so, hidden if asked for, and if it is a folder."""
    from shardctl.metadata.names import expand_home
    from shardctl.stores.stores import working_folder

    begun = incomplete.rpartition("/")[2]
    folder = incomplete.removesuffix(begun)
    with contextlib.suppress(OSError, ValueError):
        path = working_folder() / expand_home(folder, os.environ)
        with os.scandir(path) as entries:
            for entry in islice(entries, _MOST_ENTRIES):
                hidden = entry.name.startswith(".") and not begun.startswith(".")
                if not hidden and entry.name.startswith(begun) and _NAME.fullmatch(entry.name):
                    yield folder + entry.name, entry.is_dir()


def splits(ctx: Any, incomplete: str) -> list[str]:
    """Offer the split names of the chosen dataset, also after a `+`."""
    from shardctl.metadata.index.bare import Counting
    from shardctl.metadata.project_file import find_project
    from shardctl.metadata.reference import choose_dataset
    from shardctl.stores.stores import working_folder

    before, plus, last = incomplete.rpartition("+")
    names: list[str] = []
    with contextlib.suppress(ShardctlError, OSError):
        dataset = choose_dataset(
            ctx.params.get("dataset") or (),
            project=find_project(working_folder()),
            data_dir=ctx.params.get("data_dir"),
            env=os.environ,
            cwd=working_folder(),
            counting=Counting(names_only=True),
            on_disk=True,
        ).dataset
        names = [split.name for split in dataset.splits]
    blanks = last[: len(last) - len(last.lstrip())]
    return [
        before + plus + blanks + name
        for name in _starting([*names, "all"], last.removeprefix(blanks))
    ]


def codes(incomplete: str) -> list[tuple[str, str]]:
    """Offer the codes of findings, each with what it finds."""
    from shardctl.verbs.lint.rules import LINT_RULES

    return [(rule.code, rule.title) for rule in LINT_RULES if rule.code.startswith(incomplete)]


def code_lists(incomplete: str) -> list[tuple[str, str]]:
    """Offer the codes of findings behind those of a list, which are separated by commas."""
    before, comma, last = incomplete.rpartition(",")
    return [(before + comma + code, title) for code, title in codes(last)]


def stages(incomplete: str) -> list[str]:
    """Offer the names of stages, at the start those of sources too, behind what is typed."""
    from shardctl.stages.calls import CALLS

    found = re.search(r"(?:^|[|\[])\s*([A-Za-z_]*)$", incomplete)
    if found is None:
        return []
    before = incomplete[: found.start(1)]
    first = not before.rstrip().endswith("|")
    names = [name for name, call in CALLS.items() if call.is_offered and first >= call.is_source]
    return [before + name for name in _starting(names, found[1])]


def _starting(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if _NAME.fullmatch(name) and name.startswith(incomplete)]
