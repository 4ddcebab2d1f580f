# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""`shardctl verify`: the predicted order beside the one that TensorFlow reads; the files alone."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shardctl.base.progress import WATCHING
from shardctl.base.text import public_url, quoted
from shardctl.cli.options import shared
from shardctl.cli.options.dataset import (
    DatasetOptions,
    chosen_dataset,
    dataset_of_snapshot,
    plan_of_file,
    project_here,
    refuse_allow_version,
    snapshot_of_file,
)
from shardctl.cli.options.order import OrderOptions, asked_for
from shardctl.cli.output import AllOption, OutputOptions, ProgressBars, formats_of, warn
from shardctl.errors import UsageError
from shardctl.files.streams import silent_libraries
from shardctl.verbs.inspect.command import ScriptOptions, names_function, refuse_beside

if TYPE_CHECKING:
    from shardctl.dataset.dataset import Dataset
    from shardctl.saved.resume_plan import ResumePlan
    from shardctl.settings.read_settings import ReadSettings
    from shardctl.verbs.verify.answer import Take, Verification

FORMATS = formats_of("verify")
_SNAPSHOTS = (".yaml", ".yml", ".json")
_OF_FILES = formats_of("verify", "verify_files")


def verify(
    ctx: typer.Context,
    source: DatasetOptions,
    reading: OrderOptions,
    script: ScriptOptions,
    out: OutputOptions,
    specs: shared.Splits = None,
    files: shared.Flag = False,
    take: Annotated[Any, shared.number(minimum=-1)] = None,
    plan: shared.Text = None,
    jobs: shared.Number = None,
    runner: shared.Word = "local",
    allow_version: shared.Flag = False,
    every_row: AllOption = False,
) -> None:
    """Read the order with the installed TFDS and TensorFlow, and compare it with the prediction.

    Of a long order only the beginning is compared. The files are first counted and checked, record
    by record. Without files, tf.data reads index ranges. Exits with 1 if anything differs.

    Of a snapshot (order.yaml) the pipeline is read again and compared with the order in the file.
    So after an upgrade of TensorFlow it finds whether your order changed, and where.

    With --loader the installed Grain, PyTorch or Hugging Face Datasets reads. A version that is not
    known yet runs 100 random settings too; if they agree, its orders are predicted from then on.

    MODULE:FUNCTION returns a tf.data.Dataset, which is iterated: the --pass-th time, as by --loop.
    Each element is compared with what the pipeline's own maps make of the predicted examples. An
    object of another loader is iterated too; its elements are named by its sources.

    With --files only the files are read: all records of all files are counted and checked. Damaged,
    missing and extra files are named. TensorFlow is not needed.

    Arguments:
      specs [SPEC]: A split or slice, a snapshot file, or MODULE:FUNCTION with arguments after --
        [default: train]; with --files, splits [default: all].

    Options:
      --files: Check all records of these splits, without TensorFlow; no order is compared.
      --take N: Compare N examples, -1 for all [default: 100000 from files, 2000000 over index
        ranges].
      --plan FILE: Resume with a plan of shardctl resume, and compare the rest; - is stdin.
      --jobs N: With --files, read with N processes [default: one a processor].

    Examples:
      # Does the real reader yield the predicted order?
      shardctl verify 'train[:10%]' --shuffle-seed 32 -d ~/tensorflow_datasets/mnist/3.0.1
      # Did an upgrade of TensorFlow change this order?
      shardctl verify order.yaml
      # Does the pipeline of a script yield the predicted order?
      shardctl verify train.py:make_dataset -- seed=7
      # Are all record files undamaged? Without TensorFlow
      shardctl verify --files -d ~/tensorflow_datasets/mnist/3.0.1
    """
    if take == 0:
        raise UsageError("--take 0: at least 1 example has to be compared, or -1 for all")
    words = specs or []
    wanted: Take = "all" if take == -1 else take
    others = {"plan": plan, "allow_version": allow_version or None}
    found: Any
    if files:
        counting = shared.chosen_runner(runner, words, ctx.obj or (), jobs=jobs)
        given = {**reading.given(), **script.given(), "take": take, **others}
        refuse_beside(given, "--files", "the files are read whole, in no order")
        from shardctl.metadata.index.bare import naming_damaged
        from shardctl.verbs.verify.verify_files import verify_files

        with ProgressBars(), naming_damaged():
            dataset = chosen_dataset(source, project_here())
            how: Any = {"jobs": jobs, "runner": counting, "watch": WATCHING.get()}
            found = verify_files(dataset, *words, **how)
        _OF_FILES.write(out, found, every_row=every_row)
        raise typer.Exit(0 if found.equal else 1)
    if runner != "local":
        raise UsageError("--runner without --files: TensorFlow reads an order on this machine")
    if jobs is not None:
        raise UsageError("--jobs without --files: TensorFlow reads an order, with its own threads")
    with ProgressBars():
        found = _compared(source, reading, script, words, others, wanted)
    warn(found.warnings)
    FORMATS.write(out, found, every_row=every_row)
    if not found.equal:
        raise typer.Exit(1)


def _compared(
    source: DatasetOptions,
    reading: OrderOptions,
    script: ScriptOptions,
    words: list[str],
    others: dict[str, Any],
    take: "Take",
) -> "Verification":
    """Return the order of a function, a spec or a plan beside the one that is predicted."""
    if names_function(script, words, "verify"):
        how = {**reading.given(), **others}
        passes, loop = how.pop("pass_index", None), how.pop("loop", None)
        because = "the function has its settings; --pass-index and --loop are how it is iterated"
        refuse_beside({**how, "dataset": source.dataset}, quoted(words[0]), because)
        from shardctl.tfds.imports import quiet_tensorflow

        with quiet_tensorflow(warn):
            from shardctl.tfds.verifying.verify_dataset import verify_script

            return verify_script(
                script.function(words[0], words[1:]),
                only=script.only,
                index=script.dataset_index,
                pass_index=passes or 0,
                loop=loop or "python",
                take=take,
            )
    spec, plan, allow_version = words[0] if words else None, others["plan"], others["allow_version"]
    if plan is None:
        refuse_allow_version(given=bool(allow_version))
        if spec is not None and (spec == "-" or spec.endswith(_SNAPSHOTS)):
            return _snapshot(source, reading.given(), spec, take)
        dataset, settings = asked_for(source, reading)
        return _read(dataset, spec, settings, take)
    given = {**reading.given(), "SPEC": spec}
    dataset, made = plan_of_file(plan, source, given, allow_version=bool(allow_version))
    return replace(_plan(dataset, made, take), plan=public_url(plan))


def _read(
    dataset: "Dataset", spec: str | None, settings: "ReadSettings", take: "Take"
) -> "Verification":
    from shardctl.order.plan_order import plan_order
    from shardctl.tfds.imports import quiet_tensorflow

    if settings.reader.calls:  # which a process of its own runs
        with silent_libraries():
            from shardctl.live.verify import verify_loader

            return verify_loader(dataset, spec, settings, take=take)
    planned = plan_order(dataset, spec, settings)  # errors are said before TensorFlow is loaded
    with quiet_tensorflow(warn):
        from shardctl.tfds.verifying.verify import verify_order

        return verify_order(planned, take=take)


def _snapshot(
    source: DatasetOptions, given: dict[str, Any], path: str, take: "Take"
) -> "Verification":
    """Return the order that is really read by the pipeline of a snapshot, beside that one."""
    from shardctl.saved.snapshot import spec_as_pinned
    from shardctl.settings.read_settings import ReadSettings
    from shardctl.verbs.diff.answer import PinnedOrder, diff, settings_to_fall_back_on
    from shardctl.verbs.snapshot.answer import snapshot
    from shardctl.verbs.verify.of_snapshot import beside_snapshot

    refuse_beside(given, quoted(path), "a snapshot has its settings; leave it out")
    pinned = snapshot_of_file(path, "shardctl verify --plan FILE reads plans of resume")
    if isinstance(pinned.pipeline.get("file_order"), str):
        raise UsageError(f"{quoted(path)} has only a hash of its long --file-order")
    dataset = dataset_of_snapshot(pinned, path, source, project_here()).dataset
    settings = ReadSettings(**settings_to_fall_back_on(pinned, dataset))
    spec = spec_as_pinned(pinned, settings)
    now = snapshot(dataset, spec, settings)
    label = "stdin" if path == "-" else path
    compared = diff(
        PinnedOrder(snapshot=pinned, label=label),
        PinnedOrder(snapshot=now.snapshot, label="the prediction", live=now.live),
    )
    return beside_snapshot(_read(dataset, spec, settings, take), compared)


def _plan(dataset: "Dataset", plan: "ResumePlan", take: "Take") -> "Verification":
    if plan.continued_by == "loader":
        with silent_libraries():
            from shardctl.live.verify import verify_loader_plan

            return verify_loader_plan(dataset, plan, take=take)
    from shardctl.tfds.imports import quiet_tensorflow

    with quiet_tensorflow(warn):
        from shardctl.tfds.verifying.verify import verify_plan

        return verify_plan(dataset, plan, take=take)
