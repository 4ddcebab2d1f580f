# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""`shardctl locate`: where examples are in an order and on disk."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shardctl.cli.options.dataset import DatasetOptions, refuse_no_spec
from shardctl.cli.options.order import OrderOptions, asked_for, steps_of_epoch
from shardctl.cli.options.shared import SpecArgument, Texts, number
from shardctl.cli.output import OutputOptions, as_code, formats_of, warn
from shardctl.errors import UsageError

if TYPE_CHECKING:
    from shardctl.verbs.locate.answer import Query, QueryKind

FORMATS = formats_of("locate", python=as_code("verbs.locate.view:locate_python"))
_KINDS: "tuple[QueryKind, ...]" = ("position", "step", "id", "tfds-id")


def locate(
    ctx: typer.Context,
    source: DatasetOptions,
    reading: OrderOptions,
    out: OutputOptions,
    spec: SpecArgument = None,
    position: Texts = None,
    step: Texts = None,
    id: Texts = None,
    tfds_id: Texts = None,
    epoch: Annotated[Any, number(minimum=0)] = None,
) -> None:
    """Find where examples are in the order and on disk, by position, step, id or tfds_id.

    --position, --step, --id and --tfds-id can each be given several times; - reads a list from
    stdin, one a line. -f python writes code that reads these examples, and no others.

    Options:
      --position P: The example at position P, from 0.
      --step S: The examples of batch S, from 0; with --batch.
      --epoch E: Count each --step S within epoch E, both from 0.
      --id I: When is this id read? split:I for several splits.
      --tfds-id T: When is this tfds_id read?

    Examples:
      # Which examples were in the batch of step 91?
      shardctl locate --step 91 --batch 256 -d imagenet2012
      # Code that reads the examples of that batch
      shardctl locate --step 91 --batch 256 -d imagenet2012 -f python
      # When is example 250,000 read, and from which file?
      shardctl locate --id 250_000 --shuffle-seed 42 -d imagenet2012
    """
    from shardctl.order.plan_order import plan_order
    from shardctl.verbs.locate.answer import locate_in

    given: dict[QueryKind, list[str] | None]
    given = {"position": position, "step": step, "id": id, "tfds-id": tfds_id}
    if not any(given.values()):
        refuse_no_spec(spec, source)
        raise UsageError("nothing to locate: give --position P, --step S, --id I or --tfds-id T")
    queries = list(_queries(given, _options_given(ctx)))
    dataset, settings = asked_for(source, reading)
    if epoch is not None:
        if any(query.kind != "step" for query in queries):
            raise UsageError("--epoch E counts steps; give it with --step S alone")
        values = [query.value for query in queries]
        settings, steps = steps_of_epoch(epoch, values, settings, dataset, spec)
        queries = [replace(query, value=at) for query, at in zip(queries, steps, strict=True)]
    planned = plan_order(dataset, spec, settings)
    warn(planned.warnings)
    located = locate_in(planned.order, queries)
    FORMATS.write(out, located, spec=planned.spec)
    warn(located.warnings)


def _options_given(ctx: typer.Context) -> list[str]:
    """Return the long options of the command line in their order, by their own names."""
    words = [word.partition("=")[0] for word in ctx.obj or () if word.startswith("--")]
    own_name = ctx.token_normalize_func or str
    return [f"--{own_name(word[2:])}" for word in words]


def _queries(
    given: "dict[QueryKind, list[str] | None]", options: Sequence[str]
) -> Iterator["Query"]:
    """Yield what is asked for, in the order of the options on the command line."""
    from shardctl.verbs.locate.answer import Query

    values = {kind: iter(given[kind] or ()) for kind in _KINDS}
    flags: dict[str, QueryKind] = {f"--{kind}": kind for kind in _KINDS}
    in_order = [flags[name] for name in options if name in flags]
    for kind in (*in_order, *_KINDS):  # called from Python there are no arguments to order by
        for value in values[kind]:
            if value == "-":
                yield from (Query(kind=kind, value=line) for line in _stdin_lines())
            else:
                yield Query(kind=kind, value=value)
            if kind in in_order:
                break


def _stdin_lines() -> list[str]:
    if sys.stdin is None:
        raise UsageError("- is a list on stdin, which is closed; give the values themselves")
    text = sys.stdin.buffer.read().decode("utf-8", "replace")
    return [line.strip() for line in text.splitlines() if line.strip()]
