"""A plan as a `tfds.ReadConfig`, for any `tfds.load` or `builder.as_dataset`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from shardctl.core.arguments.checked import checked
from shardctl.core.hosts.host import HostLike
from shardctl.core.instructions.reads import Reads
from shardctl.core.resume.resume_plan import PlanOrPath, ResumePlan, plan_of_tfds
from shardctl.core.text import choices, quoted
from shardctl.errors import DatasetError, UsageError
from shardctl.tfds.builder_layout import Builder
from shardctl.tfds.imports import tensorflow_datasets
from shardctl.tfds.training.fitted_plan import (
    check_builder,
    epochs_that_follow,
    fitted,
    reads_of_epoch,
    reads_of_host,
)
from shardctl.tfds.training.global_seed import check_global_seed_of_plan

SortFunction = Callable[[Sequence[Any]], list[Any]]

# What the plan fixes; anything else in its place would read another order.
_OF_THE_PLAN = (
    "experimental_interleave_sort_fn",
    "interleave_cycle_length",
    "interleave_block_length",
    "shuffle_seed",
    "shuffle_reshuffle_each_iteration",
    "repeat_filenames",
    "input_context",
)


@checked
def read_config(
    plan: PlanOrPath,
    builder: Builder | None = None,
    *,
    host: int | HostLike | None = None,
    epoch: int | None = None,
    allow_version: bool = False,
    **options: Any,
) -> Any:
    """Return the `tfds.ReadConfig` with which an ordinary TFDS pipeline resumes as planned.

    `plan` is a `ResumePlan` or the path of a plan file; give the `ReadConfig` to `tfds.load` or
    `builder.as_dataset` with `split=plan.spec` and without `shuffle_files`. What is read is the
    rest of the epoch in which the plan begins, or `epoch`, one of those that follow, in its own
    file order. `host`, an index or a `Host`, chooses among the hosts of a plan for several; a plan
    for one of them is refused where this process is another, as `resume` does. What the plan has in
    `after_read` is left to the caller.

    With `builder` the plan is checked against all of its dataset at once, without it when a builder
    reads with this `ReadConfig`: name, config, version, layout, order of the folders.
    `allow_version` takes another version or config of the same layout. Either way TFDS's own file
    instructions are checked as well: every planned file must be among them, with the planned number
    of examples. `options` are fields of `ReadConfig` that leave the order
    alone, such as `add_tfds_id`; `try_autocache` is off unless asked for: a rest is read once.

    Raises:
        DatasetError: the dataset is another one or has changed; the text says how.
        UsageError: an option that the plan fixes, no such host or epoch, a plan for another host,
            `shuffle_files=True`; a global seed in force as for `resume`, now or when a builder
            reads with this; a plan in exact order through a buffer, or for a host of
            `ds.shard` whose buffer held examples, both of which `shardctl.tfds.resume` reads.
        MissingDependencyError: TensorFlow or TFDS is not installed.

        config = shardctl.tfds.read_config("plan.yaml", builder)
        dataset = builder.as_dataset(split="train", read_config=config)
    """
    _check_options(options)
    plan = plan_of_tfds(plan)
    if plan.continued_by == "shardctl.tfds":
        what = "the stages" if plan.shared is None else "the shared rest"
        raise UsageError(
            f"file instructions alone do not continue {what} of this plan; "
            "shardctl.tfds.resume does"
        )
    tfds = tensorflow_datasets()
    check_seed: Callable[[], None]
    if builder is None:
        if epoch is not None and epoch != plan.epoch:
            raise UsageError(f"epoch={epoch}: its file order needs the dataset; give the builder")
        reads, check_seed = reads_of_host(plan, host), partial(check_global_seed_of_plan, plan)
        sort = _sort_by_name(plan, reads, allow_version=allow_version)
    else:
        here = fitted(builder, plan, host, allow_version=allow_version)
        reads, check_seed = here.reads, here.check_global_seed
        if epoch is not None and epoch != plan.epoch:
            order = here.order()
            _check_epoch(plan, epoch)
            reads = reads_of_epoch(order, epoch)
        sort = _sort_by_path(plan, reads)
    if epoch in (None, plan.epoch):
        _refuse_buffered_examples(plan)
    check_seed()

    def sort_now(files: Sequence[Any]) -> list[Any]:
        _refuse_shuffled_files(sys._getframe(1))
        check_seed()  # the dataset is made here, which may be long after
        return sort(files)

    return tfds.ReadConfig(
        **{"try_autocache": False, **options},
        experimental_interleave_sort_fn=sort_now,
        interleave_cycle_length=plan.cycle_length,
        interleave_block_length=plan.settings.block,
    )


def _check_options(options: dict[str, Any]) -> None:
    taken = [name for name in options if name in _OF_THE_PLAN]
    if taken:
        raise UsageError(f"{choices(taken)}: the plan says this; leave it out")
    deterministic = getattr(options.get("options"), "deterministic", None)
    if deterministic is False:
        raise UsageError(
            "options.deterministic=False hands out examples as their decoding ends, which is not "
            "the planned order; leave it out"
        )


def _check_epoch(plan: ResumePlan, epoch: int) -> None:
    following = epochs_that_follow(plan)
    if epoch not in following:
        what = f"{plan.epoch} to {following[-1]}" if following else f"{plan.epoch} alone"
        raise UsageError(f"epoch={epoch}: the plan continues with {what}")


def _refuse_buffered_examples(plan: ResumePlan) -> None:
    settings = plan.settings
    if plan.mode == "exact-order" and plan.pending:
        raise UsageError(
            f"the buffer of this plan held {len(plan.pending)} examples that its instructions "
            "leave out, for the same buffer to continue; shardctl.tfds.resume does that, or plan "
            "with mode exactly-once"
        )
    if plan.num_pending_instructions and settings.host and settings.host_mode.reads_all:
        raise UsageError(
            "what this host's buffer held is its own, and the rest is shared by ds.shard: one "
            "reader cannot do both; shardctl.tfds.resume reads them one after the other"
        )


def _paths(reads: Reads) -> list[str]:
    splits = reads.dataset.splits
    found = []
    for split, shard in zip(reads.split.tolist(), reads.shard.tolist(), strict=True):
        folder, name = splits[split].location(shard)
        found.append(name if folder is None else os.path.join(folder, name))
    return found


def _sort_by_path(plan: ResumePlan, reads: Reads) -> SortFunction:
    paths = _paths(reads)

    def sort(files: Sequence[Any]) -> list[Any]:
        return _planned(plan, files, {os.fspath(f.filename): f for f in files}, paths, reads)

    return sort


def _sort_by_name(plan: ResumePlan, reads: Reads, *, allow_version: bool) -> SortFunction:
    def sort(files: Sequence[Any]) -> list[Any]:
        builder = _builder_that_reads(sys._getframe(1))
        paths: dict[str, set[str]] = {}
        for file in files:
            paths.setdefault(file.basename(), set()).add(os.fspath(file.filename))
        if twice := [name for name, several in paths.items() if len(several) > 1]:
            raise UsageError(
                f"{quoted(twice[0])} lies in several folders: give the builder, as in "
                "read_config(plan, builder)"
            )
        known = {file.basename(): file for file in files}
        planned = _planned(plan, files, known, reads.filenames(), reads)
        if builder is not None:
            check_builder(plan, builder, allow_version=allow_version)
        return planned

    return sort


def _planned(
    plan: ResumePlan,
    files: Sequence[Any],
    known: dict[str, Any],
    names: list[str],
    reads: Reads,
) -> list[Any]:
    """Return the planned instructions, made of those that TFDS has for the same files."""
    if not len(reads):
        return [files[0].replace(skip=0, take=0)]  # TFDS takes no empty list
    planned = []
    columns = (column.tolist() for column in (reads.skip, reads.take, reads.examples_in_shard))
    for name, skip, take, examples_in_shard in zip(names, *columns, strict=True):
        file = known.get(name)
        if file is None:
            raise DatasetError(
                f"the plan reads {quoted(name, 200)}, which is not one of the {len(files)} files "
                f"of this split; ask TFDS for split={plan.spec!r} of {plan.dataset.title}"
            )
        if file.examples_in_shard != examples_in_shard:
            raise DatasetError(
                f"the plan was made for another state of {plan.dataset.title}: "
                f"{quoted(name, 200)} had {examples_in_shard} examples, "
                f"now {file.examples_in_shard}"
            )
        planned.append(file.replace(skip=skip, take=take))
    return planned


def _builder_that_reads(caller: Any) -> Any:
    """Return the builder whose `as_dataset` calls the sort function, None where there is none.

    TFDS hands the sort function file instructions alone, so it is looked up in the calls.
    """
    kind = tensorflow_datasets().core.DatasetBuilder
    while caller is not None:
        found = caller.f_locals.get("self")
        if isinstance(found, kind):
            return found
        caller = caller.f_back
    return None


def _refuse_shuffled_files(caller: Any) -> None:
    """Refuse `shuffle_files=True`, which shuffles the instructions after they were sorted.

    TFDS tells nobody but its own reader, which calls the sort function, so it is looked up there.
    """
    if caller.f_locals.get("shuffle_files") is True:
        raise UsageError("shuffle_files=True would shuffle the plan; leave it out")
