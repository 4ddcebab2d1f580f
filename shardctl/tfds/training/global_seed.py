"""A `tf.random.set_seed` that is in force while a dataset is made, and the orders it changes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace

from shardctl.dataset.dataset import Dataset
from shardctl.errors import UsageError
from shardctl.order.epoch_reading import own_rows, sorted_reads
from shardctl.order.sources import resolved_reading
from shardctl.saved.resume_plan import ResumePlan
from shardctl.settings.read_settings import ReadSettings
from shardctl.settings.short_form import settings_of_read, stages_of
from shardctl.stages.part import KernelPair
from shardctl.stages.pipelines import parts_of
from shardctl.stages.stages import Read, SampleFromDatasets, Shuffle
from shardctl.tfdata.seed_generator import ScriptSeeds
from shardctl.tfds.imports import tensorflow


def seed_in_force() -> int | None:
    """Return the seed of `tf.random.set_seed` as it was given, None where none is set.

    A graph takes it over whole, where `tf.compat.v1.random.get_seed` has it modulo 2**31 - 1; and
    no number is drawn from it.
    """
    seed = tensorflow().__internal__.FuncGraph("seed_in_force").seed
    return None if seed is None else int(seed)


def check_global_seed(
    settings: ReadSettings, num_files: Callable[[], int], *, of_plan: bool = False
) -> None:
    """Refuse a global seed that is in force and with which a pipeline of settings reads otherwise.

    It counts besides an explicit seed (tensorflow/python/framework/random_seed.py), and is mostly
    set for other reasons: `keras.utils.set_random_seed` calls `tf.random.set_seed`. No seed in
    force is no sign of a wrong order, since a process that resumes need not set any; nor is one
    where nothing is shuffled: `num_files` counts the files that a shuffle of files is given.

    tf.data takes the seed when a dataset is built, so one that is set later changes nothing of it,
    and one that was in force in another process, or only while the dataset was built by hand, is
    not seen.

    Raises:
        UsageError: the order would be another one.
    """
    drawn = list(_drawn_seeds(settings))
    in_force = seed_in_force() if drawn else None
    if in_force is None:
        return
    as_said, real = (
        [seeds.kernel(seed) for seed, _ in drawn]
        for seeds in (ScriptSeeds(settings.global_seed), ScriptSeeds(in_force))
    )
    if None in as_said:
        return  # nothing fixes an order that could change
    for (_, of_files), one, other in zip(drawn, as_said, real, strict=True):
        if one != other and not (of_files and num_files() <= 1):
            raise _otherwise(settings, in_force, of_plan=of_plan)


def _otherwise(settings: ReadSettings, in_force: int, *, of_plan: bool) -> UsageError:
    said = settings.global_seed
    has = "no global_seed" if said is None else f"global_seed={said}"
    what, cure = "the settings have", f"say so with ReadSettings(global_seed={in_force})"
    if of_plan:
        what, cure = "the plan has", f"plan again with global_seed={in_force}"
    return UsageError(
        f"tf.random.set_seed({in_force}) is in force (keras.utils.set_random_seed sets it too) and "
        f"changes the order, and {what} {has}: if the pipeline was built with it, {cure}; if not, "
        f"call tf.random.set_seed({said}) before this, and set_seed({in_force}) after it again"
    )


def _drawn_seeds(settings: ReadSettings) -> Iterator[tuple[int | KernelPair | None, bool]]:
    """Yield the seed of each shuffle that changes something, and whether it is one of files."""
    for part in parts_of(stages_of(settings), choices=True):
        if isinstance(part, Read):
            reader = settings_of_read(settings, part)
            if reader.shuffles_files:
                yield reader.shuffle_seed, True
        elif isinstance(part, SampleFromDatasets) or (
            isinstance(part, Shuffle) and part.buffer != 1  # which hands out what it is given
        ):
            yield part.seed, False


def check_global_seed_of_plan(plan: ResumePlan, dataset: Dataset | None = None) -> None:
    """Refuse a global seed that is in force and with which a plan's pipeline read otherwise.

    The plan would then go on at a place in another order. What a log of examples has left is the
    same in any order. `dataset` is the plan's, where it is at hand.

    Raises:
        UsageError: the order was another one.
    """

    def num_files() -> int:
        if dataset is None:
            return 2 if plan.reader_state is None else plan.reader_state.num_files
        own = replace(plan.settings, host=None) if plan.hosts else plan.settings
        read = resolved_reading(dataset, plan.spec, plan.settings)
        given = sorted_reads(dataset, read.ranges, own)
        return len(own_rows(given, own))

    if plan.from_seen:
        return
    settings = plan.settings
    if plan.unseeded is not None:  # such a plan is one of the file order alone
        settings = replace(settings, buffer=None, buffer_seed=None, buffer_reshuffle=None)
    check_global_seed(settings, num_files, of_plan=True)


@contextlib.contextmanager
def global_seed_of(settings: ReadSettings) -> Iterator[None]:
    """Set the global seed that settings have for the block, and then what was in force before."""
    tf, before = tensorflow(), seed_in_force()
    if settings.global_seed is not None:
        tf.random.set_seed(settings.global_seed)
    try:
        yield
    finally:
        if seed_in_force() != before:
            tf.random.set_seed(before)
