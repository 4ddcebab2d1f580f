# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""The options of `resume` alone: how far a pipeline got, and which hosts continue."""

from dataclasses import dataclass, fields
from typing import Annotated, Any

import typer

from shardctl.cli.options.shared import number_option, whole_number
from shardctl.core.text import choices, quoted
from shardctl.errors import UsageError


def _counts(text: Any) -> tuple[int, ...]:
    whole = whole_number("--consumed", minimum=0)
    return tuple(whole(part.strip()) for part in str(text).split(","))


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
            metavar="exactly-once|exact-order",
            help="With --buffer: any pipeline, or the same order through shardctl.tfds "
            "[default: exactly-once].",
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

    def given(self) -> dict[str, Any]:
        """Return what is given, by the names of the options."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    def check(self) -> None:
        """Refuse what does not say how far the pipeline got, or in which mode it continues.

        Raises:
            UsageError: no way, or several, of saying how far; or a mode that there is not.
        """
        from typing import get_args

        from shardctl.planning.resume.resume import BufferMode

        if sum(value is not None for value in (self.consumed, self.steps, self.seen)) != 1:
            raise UsageError(
                "say how far the pipeline got, in one way: --consumed N, --steps S with --batch "
                "B, or --seen FILE"
            )
        if self.mode is not None and self.mode not in get_args(BufferMode):
            raise UsageError(
                f"--mode {quoted(self.mode)}: choose from {choices(get_args(BufferMode))}"
            )
        if self.mode == "exact-order" and (self.seen is not None or self.hosts is not None):
            raise UsageError(
                "--mode exact-order: other hosts have another order, and a log has none"
            )
