# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""Where files are counted: on this machine, or by Beam, whose options come after `--`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from shardctl.core.text import choices, nearest_first, quoted
from shardctl.errors import UsageError

if TYPE_CHECKING:
    from shardctl.readers.index.beam_runner import BeamRunner

_RUNNERS = ("local", "beam")


def _offered(incomplete: str) -> list[str]:
    return [name for name in _RUNNERS if name.startswith(incomplete)]


RunnerOption = Annotated[
    str,
    typer.Option(
        "--runner",
        metavar="RUNNER",
        help="What reads the files: local, or beam, a pipeline with the options of Beam after --.",
        autocompletion=_offered,
    ),
]


def chosen_runner(
    name: str, words: list[str], typed: Sequence[str], *, jobs: int | None
) -> "BeamRunner | None":
    """Return the runner that an option names, None for this machine, and take its words away.

    words: all words that are no options, of which those after `--` are the last; `typed` is the
    command line as it was typed.
    """
    if name not in _RUNNERS:
        known = choices(nearest_first(name, _RUNNERS))
        raise UsageError(f"no runner {quoted(name)}; choose from {known}")
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
    from shardctl.readers.index.beam_runner import BeamRunner

    return BeamRunner(options)
