"""The command that runs, as somebody would type it again with a change."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import typer


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
