# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""`shardctl eval`: whether an evaluation sees every example, and whether it hangs."""

from typing import Annotated, Any

from shardctl.cli import completion, output
from shardctl.cli.options.dataset import (
    DatasetOptions,
    chosen_dataset,
    project_here,
    refuse_no_spec,
)
from shardctl.cli.options.order import SharingOptions
from shardctl.cli.options.shared import Flag, Number, argument, number
from shardctl.errors import UsageError

FORMATS = output.formats_of("eval", pictures=True)


# A command is named like its module; nothing here needs the built-in of that name.
def eval(
    source: DatasetOptions,
    reading: SharingOptions,
    out: output.OutputOptions,
    spec: Annotated[str | None, argument(offered=completion.splits)] = None,
    num_hosts: Annotated[Any, number("--hosts")] = None,
    num_devices: Annotated[Any, number("--devices")] = None,
    batch: Number = None,
    batch_per_device: Number = None,
    drop_remainder: Flag = False,
    pad: Flag = False,
    check: Flag = False,
    every_row: output.AllOption = False,
    picture: output.PictureOption = None,
) -> None:
    """Say whether an evaluation sees every example, in one shape, and whether it hangs.

    Without --drop-remainder and --pad the last batch of a host is smaller than the others.
    shardctl.yaml sets the host sharding, the file order and the batch of a host, not the stages.
    With --stages that batch, leave --batch out. With --loader that library forms the batches.
    Examples yielded twice are counted; of several epochs, one is.

    Arguments:
      spec [SPEC]: Split or slice, as TFDS writes it [default: test, else validation, else train].

    Options:
      --hosts N: Number of hosts [default: 1].
      --devices N: Devices of a host [default: 1].
      --batch N: Batch size of each host, which its devices share.
      --batch-per-device B: Batch size of each device, in place of --batch.
      --drop-remainder: A host's last partial batch is dropped.
      --pad: It is padded, and batches of padding follow until every host has made the same number
        of steps (Flax's infinite padding).
      --check: Exit with 1 if the evaluation, as these options set it up, would hang or lose
        examples.

    Examples:
      # Would 8 hosts of 8 devices see all of the test split, and end?
      shardctl eval test --hosts 8 --devices 8 --batch 512 -d mnist
      # The steps of every host as a picture, to paste in a pull request
      shardctl eval test --hosts 8 --devices 8 --batch 512 -d mnist -o steps.svg
      # In CI: fail if they would hang or lose examples
      shardctl eval test --hosts 8 --devices 8 --batch 512 --pad --check -d mnist
    """
    from shardctl.verbs.eval.answer import Remainder, evaluate, of_training
    from shardctl.verbs.eval.view import problems

    given = reading.given()
    devices = num_devices or 1
    project = project_here()
    training = reading.settings(project)
    settings, said = of_training(training, {*given, "epochs"})
    if batch is None and batch_per_device is None:
        batch = training.batch
    if batch is None and batch_per_device is None and settings.stages is None:
        refuse_no_spec(spec, source)
        raise UsageError("how large is a batch? give --batch N of a host, or --batch-per-device N")
    if drop_remainder and pad:
        raise UsageError("--drop-remainder and --pad treat the last batch in two ways; choose one")
    remainder: Remainder = "drop" if drop_remainder else "pad" if pad else "ragged"
    evaluation = evaluate(
        chosen_dataset(source, project, settings=settings),
        spec,
        batch=batch,
        batch_per_device=batch_per_device,
        hosts=num_hosts or 1,
        devices=devices,
        remainder=remainder,
        settings=settings,
    )
    output.warn((*evaluation.warnings, *said))
    FORMATS.write(out, evaluation, every_row=every_row, picture=picture)
    if check:
        output.end_with(problems(evaluation))
