"""What a shell offers after a TAB, and the scripts that make bash, zsh and fish ask for it.

A script runs shardctl with `_SHARDCTL_COMPLETE` set to `complete_bash`, `complete_zsh` or
`complete_fish` and the line up to the cursor in `_TYPER_COMPLETE_ARGS`, as Typer's own scripts do.
Each answer is a whole word on a line of its own; zsh and fish get its explanation too, and bash
what belongs in place of the text that it completes (`_SHARDCTL_COMPLETE_TEXT`). Typer's engine is
not used, since it breaks words at the `:` and the `[` of a spec.
"""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
    # Anything that fails while completing is dropped: a message would land in the user's line.
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
    # Within an open quote the rest follows as it is; outside, characters that act in a shell are
    # escaped.
    rest = word.removeprefix(incomplete)
    if _split(line)[1] in ("'", '"'):
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
    line = env["_TYPER_COMPLETE_ARGS"]
    words = split_line(line)[1:]
    # A blank at the end begins a new word, unless it is quoted or escaped: then "x" would join the
    # last word.
    if not words or (line[-1:].isspace() and split_line(f"{line}x")[-1] == "x"):
        return words, ""
    return words[:-1], words[-1]


def split_line(line: str) -> list[str]:
    """Return the words of a line as a shell reads them, a quote that is still open included.

    >>> split_line("shardctl plan 'train[4")
    ['shardctl', 'plan', 'train[4']
    """
    words, missing = _split(line)
    # A quote that is still open is closed for the parse, one missing character at a time.
    return split_line(line + missing) if missing else words


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
    at = next((i for i, word in enumerate(words) if not word.startswith("-")), None)
    if at is None:
        yield from _answers(group.shell_complete(root, incomplete))
    elif words[at] in group.commands:
        given = words[at + 1 :]
        yield from _offers(_context(group.commands[words[at]], given, root), given, incomplete)


def _answers(items: Iterable[Any]) -> Iterator[Answer]:
    return ((item.value, item.help or "") for item in items)


def _offers(ctx: Any, given: Sequence[str], incomplete: str) -> Iterator[Answer]:
    """Yield what could complete the word at the cursor, after these words of a command."""
    parameters = ctx.command.get_params(ctx)
    takes_value = {
        name: one for one in parameters for name in one.opts if name[0] == "-" and not one.is_flag
    }
    option, equals, value = incomplete.partition("=")
    if given and given[-1] in takes_value:
        yield from _values(takes_value[given[-1]], ctx, incomplete)
    elif equals and option in takes_value:
        found = _values(takes_value[option], ctx, value)
        yield from ((f"{option}={word}", meaning) for word, meaning in found)
    elif incomplete.startswith("-") and "--" not in given:
        yield from _answers(ctx.command.shell_complete(ctx, incomplete))
    else:
        for one in parameters:
            is_open = one.nargs == -1 or ctx.params.get(one.name) is None
            if one.param_type_name == "argument" and is_open:
                yield from _values(one, ctx, incomplete)


def _context(command: Any, given: Sequence[str], root: Any) -> Any:
    """Return what the words say so far, up to one that is refused."""
    # A value that is refused would end the parse, so the last words are dropped until it passes.
    for stop in range(len(given), -1, -1):
        with contextlib.suppress(UsageError):
            words = list(given[:stop])
            return command.make_context(command.name, words, root, resilient_parsing=True)
    raise AssertionError("a command has at least one word")


def _values(parameter: Any, ctx: Any, incomplete: str) -> Iterator[Answer]:
    """Yield the values of an option or an argument: its own offers, or words its metavar lists."""
    yield from _answers(parameter.shell_complete(ctx, incomplete))
    # Words in capitals in a metavar stand for values; those in lower case are values.
    if parameter.metavar and "|" in parameter.metavar:
        for word in parameter.metavar.split("|"):
            if word.islower() and word.startswith(incomplete):
                yield word, ""


# The scripts that make bash, zsh and fish ask shardctl for completions.

SHELLS = ("bash", "zsh", "fish")

_HEAD = "Written by `shardctl completion {shell}`; see `shardctl help install`."


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


def datasets(ctx: Any, incomplete: str) -> list[str]:
    """Offer the datasets under the chosen data dir and those of the catalog.

    Versions come after a `:`, configs after a `/` or once a single name is left. Paths are what a
    shell offers itself where nothing is offered here.
    """
    from shardctl.metadata.dataset_names import (
        catalog_names,
        catalog_titles,
        data_dirs,
        list_datasets,
    )
    from shardctl.metadata.project_file import find_project

    titles: list[str] = []
    with contextlib.suppress(ShardctlError, OSError):
        dirs = data_dirs(ctx.params.get("data_dir"), find_project())
        titles += map(str, list_datasets(dirs.local()))
    with contextlib.suppress(ShardctlError, OSError):
        for name in _starting(catalog_names(), re.split("[/:]", incomplete)[0]):
            titles += catalog_titles(name)
    titles = _starting(titles, incomplete)
    if ":" in incomplete:
        return sorted(set(titles))
    with_config = {title.partition(":")[0] for title in titles}
    # Without a "/": configs are offered once a single name is left.
    names = {title.partition("/")[0] for title in with_config}
    if "/" in incomplete:
        return sorted(with_config)
    return sorted(names | with_config if len(names) == 1 else names)


def splits(ctx: Any, incomplete: str) -> list[str]:
    """Offer the split names of the chosen dataset, also after a `+`."""
    from shardctl.metadata.project_file import find_project
    from shardctl.metadata.reference import choose_dataset

    before, plus, last = incomplete.rpartition("+")
    names: list[str] = []
    with contextlib.suppress(ShardctlError, OSError):
        dataset = choose_dataset(
            ctx.params.get("dataset") or (),
            project=find_project(),
            data_dir=ctx.params.get("data_dir"),
            counting="names",
            on_disk=True,
        ).dataset
        names = [split.name for split in dataset.splits]
    # Blanks after "+" belong to what the user typed.
    blanks = last[: len(last) - len(last.lstrip())]
    return [
        before + plus + blanks + name
        for name in _starting([*names, "all"], last.removeprefix(blanks))
    ]


def codes(incomplete: str) -> list[tuple[str, str]]:
    """Offer the codes of findings, each with what it finds, behind those of a list with commas."""
    from shardctl.verbs.lint.rules import LINT_RULES

    before, comma, last = incomplete.rpartition(",")
    rules = (rule for rule in LINT_RULES if rule.code.startswith(last))
    return [(before + comma + rule.code, rule.title) for rule in rules]


def stages(ctx: Any, incomplete: str) -> list[str]:
    """Offer the names of stages, at the start those of sources too, behind what is typed.

    They are the calls of the loader that is typed, else of that of the shardctl.yaml.
    """
    from shardctl.loaders.loader import READERS, calls_of
    from shardctl.metadata.project_file import find_project

    loader = ctx.params.get("loader")
    with contextlib.suppress(ShardctlError, OSError):
        loader = loader or find_project().read.get("loader")
    loader = str(loader or "tfds")
    calls = calls_of(loader if loader in READERS else "tfds")
    found = re.search(r"(?:^|[|\[])\s*([A-Za-z_]*)$", incomplete)
    if found is None:
        return []
    before = incomplete[: found.start(1)]
    # A source stands at the beginning; behind "|" only stages do.
    first = not before.rstrip().endswith("|")
    names = [name for name, call in calls.items() if call.is_offered and first >= call.is_source]
    return [before + name for name in _starting(names, found[1])]


def _starting(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if _NAME.fullmatch(name) and name.startswith(incomplete)]
