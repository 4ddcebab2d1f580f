"""How a command declares its options, and single options that several commands have."""

import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shardctl.base.text import choices, nearest_first
from shardctl.cli import completion
from shardctl.cli.output import CHOICES, OPTION, OUTPUT
from shardctl.errors import UsageError

if TYPE_CHECKING:
    from shardctl.metadata.index.beam_runner import BeamRunner

# An option is called like its parameter, unless it is given another name; what stands for its value
# and what it is are read from "Options:" in the docstring of its command or group. A parser raises
# the rule that a value breaks; `app.py` says of which option, and which value it is.
Parser = Callable[[Any], Any]


def option(*names: str, parse: Parser | None = None, offered: Any = None) -> Any:
    """Return an option with a value."""
    return typer.Option(*names or (...,), parser=parse, autocompletion=offered)


def argument(*, offered: Any = None) -> Any:
    """Return what is no option, which a docstring has under "Arguments:"."""
    return typer.Argument(autocompletion=offered)


def number(*names: str, minimum: int = 1) -> Any:
    """Return an option that takes a whole number."""
    return option(*names, parse=whole_number(minimum))


def flag(*names: str) -> Any:
    """Return an option without a value."""
    return typer.Option(*names or (...,))


def one_of(words: Sequence[str]) -> Parser:
    def parse(text: Any) -> str:
        if text not in words:
            raise UsageError(f"choose from {choices(nearest_first(text, words))}")
        return str(text)

    return parse


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


Flag = Annotated[bool, flag()]
Switch = Annotated[bool | None, flag()]
Number = Annotated[Any, number()]
Text = Annotated[str | None, option()]
Texts = Annotated[list[str] | None, option()]
Splits = Annotated[list[str] | None, argument(offered=completion.splits)]
Word = Annotated[Any, option()]  # one of those in its docstring, as python|keras-fit
SpecArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[SPEC]",
        help="What is read, as TFDS writes it [default: train].",
        autocompletion=completion.splits,
    ),
]
AllowVersionOption = Annotated[
    bool,
    typer.Option(
        "--allow-version",
        help="Take a --plan of another version or config whose files have the same names and "
        "lengths.",
    ),
]
# Of every command, and before the command too.
ColorOption = Annotated[
    str | None,
    typer.Option(
        OPTION,
        metavar="WHEN",
        parser=one_of(CHOICES),
        help="Colour always, never or auto: on a terminal, unless NO_COLOR or FORCE_COLOR is set "
        "[default: auto]",
        rich_help_panel=OUTPUT,
        autocompletion=lambda incomplete: [one for one in CHOICES if one.startswith(incomplete)],
    ),
]


# Where files are counted: on this machine, or by Beam, whose options come after `--`.

RunnerOption = Annotated[
    Any,
    typer.Option(
        "--runner",
        metavar="local|beam",
        parser=one_of(("local", "beam")),
        help="What reads the files: this machine, or a Beam pipeline with the options after --.",
    ),
]


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
