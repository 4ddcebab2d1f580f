# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""`shardctl verify`: the predicted order beside the one that TensorFlow reads."""

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shardctl.cli.options.dataset import chosen_dataset, dataset_of_plan
from shardctl.cli.options.numbers import whole_number
from shardctl.cli.options.order import OrderOptions
from shardctl.cli.options.shared import DatasetOptions, OutputOptions, SpecArgument
from shardctl.cli.output import check_format, screen, warn, write
from shardctl.cli.progress import Bar
from shardctl.errors import UsageError

if TYPE_CHECKING:
    from shardctl.planning.verify import Take, Verification


def verify(
    source: DatasetOptions,
    reading: OrderOptions,
    out: OutputOptions,
    spec: SpecArgument = None,
    take: Annotated[
        Any,
        typer.Option(
            "--take",
            metavar="N",
            parser=whole_number("--take", minimum=-1),
            help="Compare N examples, -1 for all [default: 100000 from files, 2000000 over index "
            "ranges].",
        ),
    ] = None,
    plan: Annotated[
        str | None,
        typer.Option("--plan", metavar="FILE", help="Run a plan of shardctl resume instead."),
    ] = None,
) -> None:
    """Read the order with the real TFDS and TensorFlow, and compare it with the prediction.

    Of a longer order, windows from its start to its end are compared. The examples in the files
    that are read are counted. Without files, tf.data reads index ranges. Exits with 1 if anything
    differs. Formats: table, json, yaml, csv.

    Example: shardctl verify 'train[:10%]' --shuffle-seed 32 -d ~/tensorflow_datasets/mnist/3.0.1
    """
    from shardctl.files import documents
    from shardctl.rendering import verify as rendering

    check_format(out.format, "table", "json", "yaml", "csv")
    if take == 0:
        raise UsageError("--take 0: at least 1 example has to be compared, or -1 for all")
    wanted: Take = "all" if take == -1 else take
    if plan is None:
        found = _order(source, reading, spec, wanted)
    else:
        found = _plan(plan, source, reading, spec, wanted)
    warn(found.warnings)
    chunks: Iterator[str]
    if out.format == "table":
        chunks = rendering.verify_text(found, screen(out.output))
    elif out.format == "csv":
        chunks = rendering.verify_csv(found)
    else:
        to_text = documents.to_json if out.format == "json" else documents.to_yaml
        chunks = to_text(rendering.verify_document(found))
    write(chunks, out.output)
    if not found.equal:
        raise typer.Exit(1)


def _order(
    source: DatasetOptions, reading: OrderOptions, spec: str | None, take: "Take"
) -> "Verification":
    from shardctl.planning.order import plan_order
    from shardctl.tfds.verifying.quiet import quiet_tensorflow

    dataset, settings = chosen_dataset(source), reading.settings()
    planned = plan_order(dataset, spec, settings)  # errors are said before TensorFlow is loaded
    with quiet_tensorflow(), Bar() as bar:
        from shardctl.tfds.verifying.verify import verify_order

        return verify_order(planned, take=take, watch=bar.show)


def _plan(
    path: str, source: DatasetOptions, reading: OrderOptions, spec: str | None, take: "Take"
) -> "Verification":
    from shardctl.files.plan.reader import read_plan
    from shardctl.planning.resume.check import applied
    from shardctl.tfds.verifying.quiet import quiet_tensorflow

    given = {field.name: getattr(reading, field.name) for field in fields(reading)}
    for name, value in {**given, "SPEC": spec}.items():
        if value is not None:
            option = name.removesuffix("_index").replace("_", "-")
            raise UsageError(
                f"{option if name == 'SPEC' else f'--{option}'} with --plan: the plan file holds "
                "the whole pipeline"
            )
    made = read_plan(path)
    dataset = dataset_of_plan(made, source)
    made = applied(made, dataset)
    with quiet_tensorflow(), Bar() as bar:
        from shardctl.tfds.verifying.verify_plan import verify_plan

        found = verify_plan(dataset, made, take=take, watch=bar.show)
    return replace(found, plan=path)
