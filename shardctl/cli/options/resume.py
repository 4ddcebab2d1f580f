# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""The options of `resume` alone: how far a pipeline got, and which hosts continue."""

from dataclasses import dataclass, fields
from typing import Annotated, Any, get_args

import typer

from shardctl.cli.options.shared import number_option, whole_number
from shardctl.core.nearness import nearest_first
from shardctl.core.text import choices, quoted
from shardctl.errors import UsageError


def _counts(text: Any) -> tuple[int, ...]:
    whole = whole_number("--consumed", minimum=0)
    return tuple(whole(part.strip()) for part in str(text).split(","))


def _risk(text: Any) -> float:
    try:
        risk = float(text)
    except ValueError:
        risk = 0.0
    if not 0 < risk < float("inf"):  # also refuses nan
        raise UsageError(
            f"--risk {quoted(str(text))}: the number of examples that may be lost on the average "
            "is needed, above 0 and at most the size of the buffer"
        )
    return risk


@dataclass(frozen=True, kw_only=True)
class ResumeOptions:
    """Where a pipeline stopped and how it continues; None where not given."""

    consumed: Annotated[
        Any,
        typer.Option(
            "--consumed",
            metavar="N[,N..]",
            parser=_counts,
            help="Examples handed out, from the start of the whole order; with --hosts one count "
            "for all or one a host.",
        ),
    ] = None
    steps: Annotated[
        Any,
        number_option(
            "--steps",
            "The same in batches of --batch: a checkpoint's step.",
            metavar="S",
            minimum=0,
        ),
    ] = None
    seen: Annotated[
        str | None,
        typer.Option(
            "--seen",
            metavar="FILE",
            help="A log of the tfds_ids seen, a line each, or gzip; - is stdin.",
        ),
    ] = None
    mode: Annotated[
        str | None,
        typer.Option(
            "--mode",
            metavar="exactly-once|exact-order|at-most-once|at-least-once",
            help="With --buffer: any pipeline, or the same order through shardctl.tfds; where the "
            "buffer had no seed, repeat nothing, or read its last contents again "
            "[default: exactly-once; with --for exact-order].",
        ),
    ] = None
    risk: Annotated[
        Any,
        typer.Option(
            "--risk",
            metavar="R",
            parser=_risk,
            help="With --mode at-least-once: how many examples may be lost, on the average "
            "[default: 1e-06].",
        ),
    ] = None
    hosts: Annotated[Any, number_option("--hosts", "Number of hosts that stopped.")] = None
    to_hosts: Annotated[
        Any,
        number_option(
            "--to-hosts",
            "Number of hosts that continue; what is left is split evenly among them.",
            metavar="M",
        ),
    ] = None

    framework: Annotated[
        str | None,
        typer.Option(
            "--for",
            metavar="loop|keras|flax",
            help="With --format python, which it implies: a training script for TensorFlow, Keras "
            "or Flax with Orbax, whose checkpoints hold the position.",
        ),
    ] = None

    def given(self) -> dict[str, Any]:
        """Return what is given, by the names of the options."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    @property
    def says_how_far(self) -> bool:
        """Return whether it is said in one way how far the pipeline got."""
        return sum(value is not None for value in (self.consumed, self.steps, self.seen)) == 1

    def check(self) -> None:
        """Refuse what does not say how far the pipeline got, or in which mode it continues.

        Raises:
            UsageError: no way, or several, of saying how far; or a mode that there is not.
        """
        from shardctl.core.resume.resume_plan import UNSEEDED_MODES
        from shardctl.planning.resume.resume import BufferMode

        self.check_framework()
        if not self.says_how_far:
            raise UsageError(
                "say how far the pipeline got, in one way: --consumed N, --steps S with --batch "
                "B, or --seen FILE"
            )
        if self.mode is not None and self.mode not in get_args(BufferMode):
            modes = choices(nearest_first(self.mode, get_args(BufferMode)))
            raise UsageError(f"--mode {quoted(self.mode)}: choose from {modes}")
        if self.seen is None and self.hosts is None:
            return
        if self.mode == "exact-order":
            raise UsageError(
                "--mode exact-order: other hosts have another order, and a log has none"
            )
        if self.seen is not None and (self.mode in UNSEEDED_MODES or self.risk is not None):
            raise UsageError(
                f"--mode {self.mode or 'at-least-once'} is not needed where a log says what was "
                "seen"
            )

    def check_framework(self) -> None:
        """Refuse a framework for which no script is written.

        Raises:
            UsageError: there is no such framework.
        """
        from shardctl.rendering.python.frameworks import FRAMEWORKS

        if self.framework is not None and self.framework not in FRAMEWORKS:
            names = choices(nearest_first(self.framework, tuple(FRAMEWORKS)))
            raise UsageError(f"--for {quoted(self.framework)}: choose from {names}")
