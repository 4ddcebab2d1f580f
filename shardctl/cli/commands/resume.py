# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""`shardctl resume`: the file instructions from which a pipeline goes on where it stopped."""

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shardctl.cli.options.dataset import chosen_dataset, dataset_of_plan
from shardctl.cli.options.numbers import whole_number
from shardctl.cli.options.order import OrderOptions
from shardctl.cli.options.shared import DatasetOptions, OutputOptions, SpecArgument
from shardctl.cli.output import check_format, say, screen, warn, write
from shardctl.core.text import choices, quoted
from shardctl.errors import (
    UnpredictableOrderError,
    UsageError,
)

if TYPE_CHECKING:
    from shardctl.core.arrays import Int64s
    from shardctl.core.dataset.dataset import Dataset
    from shardctl.core.resume.resume_plan import ResumePlan
    from shardctl.core.settings.read_settings import ReadSettings

_FORMATS = ("table", "json", "yaml", "csv")
_ENDINGS = {".json": "json", ".yaml": "yaml", ".yml": "yaml", ".csv": "csv"}
_LONG = 50_000  # instructions from which a plan's size is said
# What TFDS holds of an instruction: the object, its path, and a row of five tensors.
_BYTES_IN_TFDS = 700


def _counts(text: Any) -> tuple[int, ...]:
    whole = whole_number("--consumed", minimum=0)
    return tuple(whole(part.strip()) for part in str(text).split(","))


def resume(
    ctx: typer.Context,
    source: DatasetOptions,
    reading: OrderOptions,
    out: OutputOptions,
    spec: SpecArgument = None,
    consumed: Annotated[
        Any,
        typer.Option(
            "--consumed",
            metavar="N[,N..]",
            parser=_counts,
            help="Examples handed out, from the start of the whole order; with --hosts one count "
            "for all or one a host.",
        ),
    ] = None,
    steps: Annotated[
        Any,
        typer.Option(
            "--steps",
            metavar="S",
            parser=whole_number("--steps", minimum=0),
            help="The same in batches of --batch: a checkpoint's step.",
        ),
    ] = None,
    seen: Annotated[
        str | None,
        typer.Option(
            "--seen", metavar="FILE", help="A log of the tfds_ids seen, a line each, or gzip."
        ),
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option(
            "--mode",
            metavar="exactly-once|exact-order",
            help="With --buffer: any pipeline, or the same order through shardctl.tfds "
            "[default: exactly-once].",
        ),
    ] = None,
    hosts: Annotated[
        Any,
        typer.Option(
            "--hosts",
            metavar="N",
            parser=whole_number("--hosts", minimum=1),
            help="Number of hosts that stopped.",
        ),
    ] = None,
    to_hosts: Annotated[
        Any,
        typer.Option(
            "--to-hosts",
            metavar="M",
            parser=whole_number("--to-hosts", minimum=1),
            help="Number of hosts that go on; what is left is dealt evenly.",
        ),
    ] = None,
    plan: Annotated[
        str | None,
        typer.Option("--plan", metavar="FILE", help="Check a plan file against the dataset."),
    ] = None,
    prove: Annotated[
        bool,
        typer.Option(
            "--prove",
            help="Read the plan to its end and count what is lost, repeated and moved; exit with "
            "1 if it breaks its promise.",
        ),
    ] = False,
) -> None:
    """Print the file instructions from which a pipeline goes on where it stopped.

    Without a shuffle buffer the order goes on exactly. FILE.yaml or FILE.json after --output is the
    plan file that shardctl.tfds reads.

    Example: shardctl resume --consumed 5000 --shuffle-seed 32 -o plan.yaml -d imagenet2012
    """
    from shardctl.files.plan import writer as plan_file
    from shardctl.rendering import resume as rendering

    chosen = _format(ctx, out)
    given = {"consumed": consumed, "steps": steps, "seen": seen, "hosts": hosts}
    given |= {"to_hosts": to_hosts, "mode": mode}
    if plan is not None:
        dataset, made, log = _from_file(plan, source, reading, spec, given)
    else:
        dataset, made, log = _from_settings(source, reading.settings(), spec, given)
    warn(made.warnings)
    proof = None
    if prove:
        from shardctl.planning.resume.proof import prove as read_and_compare

        proof = read_and_compare(dataset, made, seen=log)
    extra = None if proof is None else {"proof": rendering.proof_record(proof)}
    if chosen != "table" and made.num_instructions >= _LONG:
        _say_size(made, chosen)
    if chosen == "table":
        text = rendering.resume_table(made, screen(out.output), proof)
    elif chosen == "csv":
        from shardctl.files.documents import to_csv

        text = to_csv(plan_file.CSV_HEADER, plan_file.plan_rows(made))
    else:
        write_plan = plan_file.plan_json if chosen == "json" else plan_file.plan_yaml
        text = write_plan(made, extra)
    write(text, out.output)
    if proof is not None:
        if chosen != "table" or out.output is not None:
            say(rendering.proof_line(proof))
        if not proof.holds:
            raise typer.Exit(1)


def _format(ctx: typer.Context, out: OutputOptions) -> str:
    """Return the format asked for; where none is, the ending of the output file tells."""
    check_format(out.format, *_FORMATS)
    source = ctx.get_parameter_source("format")
    if out.output is not None and (source is None or source.name == "DEFAULT"):
        return _ENDINGS.get(Path(out.output).suffix.lower(), out.format)
    return out.format


def _from_settings(
    source: DatasetOptions, settings: "ReadSettings", spec: str | None, given: dict[str, Any]
) -> "tuple[Dataset, ResumePlan, Int64s | None]":
    """Return the dataset, the plan made from the options, and the examples a log names."""
    from shardctl.planning.resume.hosts import resume_on_hosts
    from shardctl.planning.resume.resume import resume as plan_resume
    from shardctl.planning.resume.seen import resume_unseen

    consumed, steps, seen = given["consumed"], given["steps"], given["seen"]
    hosts, to_hosts = given["hosts"], given["to_hosts"]
    if sum(value is not None for value in (consumed, steps, seen)) != 1:
        raise UsageError(
            "say how far the pipeline got, in one way: --consumed N, --steps S with --batch B, or "
            "--seen FILE"
        )
    _check_mode(given["mode"], goes_on_in_order=seen is None and hosts is None)
    dataset = chosen_dataset(source)
    if seen is not None:
        if hosts is not None:
            raise UsageError("--hosts with --seen: a log says what was seen, on any host")
        log = _log(dataset, spec, seen)
        return dataset, resume_unseen(dataset, spec, settings, seen=log, to_hosts=to_hosts), log
    if (hosts is None) != (to_hosts is None):
        raise UsageError("--hosts N stopped and --to-hosts M go on: give both, or neither")
    try:
        if hosts is not None:
            plan = resume_on_hosts(
                dataset,
                spec,
                settings,
                hosts=hosts,
                to_hosts=to_hosts,
                consumed=consumed,
                steps=steps,
            )
            return dataset, plan, None
        if consumed is not None and len(consumed) > 1:
            raise UsageError(
                f"--consumed names {len(consumed)} counts: one a host is for --hosts N --to-hosts M"
            )
        plan = plan_resume(
            dataset,
            spec,
            settings,
            consumed=None if consumed is None else consumed[0],
            steps=steps,
            mode=given["mode"] or "exactly-once",
        )
    except UnpredictableOrderError as error:
        raise UnpredictableOrderError(
            f"{error}; or plan from what was logged, with --seen FILE"
        ) from error
    return dataset, plan, None


def _from_file(
    path: str,
    source: DatasetOptions,
    reading: OrderOptions,
    spec: str | None,
    given: dict[str, Any],
) -> "tuple[Dataset, ResumePlan, Int64s | None]":
    """Return the dataset as it is today, the plan of a file applied to it, and a log's examples."""
    from shardctl.files.plan.reader import read_plan
    from shardctl.planning.resume.check import applied

    own = {field.name: getattr(reading, field.name) for field in fields(reading)}
    others = {name: value for name, value in given.items() if name != "seen"}
    for name, value in {**own, **others, "SPEC": spec}.items():
        if value is not None:
            option = (
                name if name == "SPEC" else f"--{name.removesuffix('_index').replace('_', '-')}"
            )
            raise UsageError(f"{option} with --plan: the plan file holds the whole pipeline")
    plan = read_plan(path)
    dataset = dataset_of_plan(plan, source)
    applied_plan = applied(plan, dataset)
    log = None if given["seen"] is None else _log(dataset, plan.spec, given["seen"])
    return dataset, applied_plan, log


def _log(dataset: "Dataset", spec: str | None, path: str) -> "Int64s":
    from shardctl.planning.resume.seen import spec_codes
    from shardctl.readers.seen_file import read_seen

    log = read_seen(path, spec_codes(dataset, spec))
    warn(log.warnings)
    return log.codes


def _say_size(plan: "ResumePlan", chosen: str) -> None:
    from shardctl.files.plan.writer import record_size

    count = plan.num_instructions
    reads = plan.instructions if len(plan.instructions) else plan.hosts[0].instructions
    on_disk = count * record_size(reads) / 1e6
    in_memory = count * _BYTES_IN_TFDS / 1e6
    say(
        f"note: {count:,} file instructions: about {on_disk:,.0f} MB of {chosen}, "
        f"and {in_memory:,.0f} MB of memory in the program that reads with them"
    )


def _check_mode(mode: str | None, *, goes_on_in_order: bool) -> None:
    """Refuse a mode that there is not, and an order where none is left to go on in."""
    from typing import get_args

    from shardctl.planning.resume.resume import BufferMode

    if mode is None:
        return
    if mode not in get_args(BufferMode):
        raise UsageError(f"--mode {quoted(mode)}: choose from {choices(get_args(BufferMode))}")
    if mode == "exact-order" and not goes_on_in_order:
        raise UsageError("--mode exact-order: other hosts have another order, and a log has none")
