"""`resume`, `resume_epochs` and `exact_order`: datasets that continue where a pipeline stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from shardctl.base.arguments import checked
from shardctl.base.arrays import Int64s, ranges
from shardctl.base.tfds_rules import WHOLE_DATASET
from shardctl.errors import UsageError
from shardctl.order.plan_order import plan_order
from shardctl.order.sources import reads_spec
from shardctl.saved import resume_plan
from shardctl.saved.resume_plan import PlanOrPath, ResumePlan, ShuffleState
from shardctl.settings.keywords import HostSettings, Unpack
from shardctl.settings.read_settings import ReadSettings, SettingsLike
from shardctl.spec.host import HostLike
from shardctl.spec.reads import Reads
from shardctl.tfdata.shuffle_buffer import ShuffleReplay
from shardctl.tfdata.shuffle_seeds import KernelSeeds
from shardctl.tfds.builder_layout import Builder, dataset_of
from shardctl.tfds.imports import tensorflow, without_autograph
from shardctl.tfds.training.pipeline import MakeReal, Transform, rest_of_plan, shard_of_host
from shardctl.tfds.training.read_config import (
    FittedPlan,
    check_global_seed_of_plan,
    check_host_of_plan,
    epochs_that_follow,
    fitted,
)
from shardctl.tfds.training.records import FEWER, RecordReader
from shardctl.tfds.training.shuffle_kernel import kernel_shuffle, shuffled_from
from shardctl.verbs.resume.answer import resume as plan_resume
from shardctl.verbs.resume.hosts import as_host, num_after


@checked
def resume(
    builder: Builder,
    plan: PlanOrPath,
    *,
    host: int | HostLike | None = None,
    transform: Transform | None = None,
    decoders: Any = None,
    add_tfds_id: bool = False,
    allow_version: bool = False,
) -> Any:
    """Return the `tf.data.Dataset` that a plan resumes with: all that is left, batched.

    It is what the interrupted pipeline of the plan's settings (see `pipeline`) would have yielded
    next, to the end of all its epochs: the same elements in the same order, also through a
    shuffle buffer if the plan is exact. A plan of mode "exactly-once" yields the rest of its
    epoch in another order, each example once, and the further epochs in theirs. A plan of mode
    "at-most-once" or "at-least-once" reads what it says through new buffers without a seed, the
    further epochs each whole. `host`, an index or a `Host`, chooses among the hosts of a plan for
    several; the further epochs are then read as that many hosts read them. A plan for one of
    several hosts is refused if `host`, JAX or tf.distribute names another. `host` is believed where
    hosts and processes are numbered differently. `allow_version` accepts a plan of another version
    or config whose files are the same.

    `transform`, `decoders` and `add_tfds_id` are those of `pipeline`. The dataset may be iterated
    again from its start, also by several iterators at once. A buffer holds decoded examples, as
    TFDS's own pipeline does, and `transform` follows it. Only `transform`, decoders and Parquet
    files run Python, so that the graph can be sent to another process. With stages Python predicts
    the order as it is read, so that this graph stays in its process; `transform` follows each
    reader there, as in `pipeline`.

    Raises:
        DatasetError: the dataset is another one or has changed; the text says how.
        UsageError: no such host, a host is missing, or the plan is for another host; or a global
            seed is in force in TensorFlow (`tf.random.set_seed`, `keras.utils.set_random_seed`)
            that the plan does not have and that changes the order. One that is set after this call
            changes nothing.
        UnpredictableOrderError: the order of a further epoch is nondeterministic.
        MissingDependencyError: TensorFlow or TFDS is not installed.
    """
    how = {"transform": transform, "decoders": decoders, "add_tfds_id": add_tfds_id}
    return dataset_to_resume(
        builder, resume_plan.plan_of_tfds(plan), host, allow_version=allow_version, **how
    )


def dataset_to_resume(
    builder: Any,
    plan: ResumePlan,
    host: int | HostLike | None,
    *,
    allow_version: bool = False,
    checks_seed: bool = True,
    real: MakeReal | None = None,
    **how: Any,
) -> Any:
    """Return what `resume` does; with `checks_seed` false whatever global seed is in force now.

    `real` makes the dataset of plans of one pipeline with stages, which is not read again; `how`
    are `transform`, `decoders` and `add_tfds_id`.
    """
    # A plan with stages resumes by its real dataset; all below is for TFDS's reader and the short
    # form.
    if plan.sources:
        check_host_of_plan(plan, host)
        return rest_of_plan(
            builder, plan, allow_version=allow_version, checks_seed=checks_seed, real=real, **how
        )
    here = fitted(builder, plan, host, allow_version=allow_version)
    if checks_seed:
        check_global_seed_of_plan(here.plan)
    with_ids = how.get("add_tfds_id", False)
    reader = here.reader(RecordReader, builder=builder, with_ids=with_ids)
    # Stages shared anew among other hosts: what is left of the epoch is a list, and stages follow
    # it.
    if plan.hosts and plan.has_stages:
        resumed = _Resumed(here=here, decoders=how["decoders"], reader=reader)
        return _of_listed(builder, resumed, how)
    return dataset_of_plan(here, reader, how["transform"], how["decoders"])


def _of_listed(builder: Any, resumed: _Resumed, how: dict[str, Any]) -> Any:
    """Return what a new host of stages reads: its list, then epochs of stages that are its own.

    Raises:
        UsageError: several datasets, or batches of its stages that hold examples of two epochs.
    """
    here, plan = resumed.here, resumed.here.plan
    # `is not`: the reads of several datasets are joined in a dataset made for them.
    if here.reads.dataset is not here.dataset:
        raise UsageError(
            "this plan lists the rest of several datasets, and one builder reads one of them; each "
            "host reads the instructions of its part itself"
        )
    examples = resumed.transformed(resumed.rest(), here.num_examples, how["transform"])
    # The calls that the plan states for its rest, in their order.
    for call in plan.after_read:
        if isinstance(call, resume_plan.ShuffleCall):
            examples = resumed.shuffled(examples, call.buffer_size, call.seed)
        elif isinstance(call, resume_plan.BatchCall):
            examples = examples.batch(call.batch_size, drop_remainder=call.drop_remainder)
        elif isinstance(call, resume_plan.ConcatenateCall) and here.settings.host is not None:
            # Later epochs are read as this host of the new number. `num_after` is what is left
            # after the plan's epoch, so `first` is where the next one begins.
            host, old = here.settings.host, len(plan.from_consumed)
            own = as_host(plan.settings, host.index, host.count, of=old)
            spec = plan.spec if reads_spec(own) else None
            order = plan_order(here.dataset, spec, own).order
            first = order.num_examples - num_after(order, plan.epoch)
            later = plan_resume(here.dataset, spec, own, consumed=first)
            rest = dataset_to_resume(builder, later, own.host, checks_seed=False, **how)
            examples = examples.concatenate(rest)
    return examples.prefetch(tensorflow().data.AUTOTUNE)


def dataset_of_plan(
    here: FittedPlan, reader: RecordReader, transform: Transform | None = None, decoders: Any = None
) -> Any:
    """Return the `tf.data.Dataset` of `resume`, whatever global seed is in force.

    Every shuffle in it is given the seeds of its kernel, which no global seed changes; but that of
    a plan of mode "exactly-once", whose order is free.
    """
    resumed = _Resumed(here=here, decoders=decoders, reader=reader)
    settings = here.settings
    # The further epochs come after the rest, and only then `transform` and `batch`: a batch may
    # hold examples of two epochs, as in the uninterrupted run.
    following = epochs_that_follow(here.plan)
    examples, num_examples = resumed.rest(), here.num_examples
    if following:
        examples = examples.concatenate(resumed.epochs(following))
        num_examples += len(following) * here.order.epoch_size
    examples = resumed.transformed(examples, num_examples, transform)
    if settings.batch is not None:
        examples = examples.batch(settings.batch, drop_remainder=settings.drop_remainder)
    return examples.prefetch(tensorflow().data.AUTOTUNE)


@checked
def resume_epochs(
    builder: Builder,
    plan: PlanOrPath,
    *,
    host: int | HostLike | None = None,
    transform: Transform | None = None,
    decoders: Any = None,
    add_tfds_id: bool = False,
    allow_version: bool = False,
) -> Iterator[tuple[int, Any]]:
    """Return an iterator of (epoch, `tf.data.Dataset`), from the rest of the plan's epoch on.

    For loops that go epoch by epoch. The examples are not batched: the batches of `resume` run on
    from one epoch into the next, these are the caller's. Files that repeat without end have
    no separate epochs, and come as one.

    Arguments and errors are those of `resume`.
    """
    # What is refused is refused here, not when the iterator is first used.
    plan = resume_plan.plan_of_tfds(plan)
    if plan.sources:
        raise UsageError(
            "resume_epochs goes epoch by epoch, and stages run over epochs as they say; "
            "shardctl.tfds.resume reads what is left"
        )
    here = fitted(builder, plan, host, allow_version=allow_version)
    check_global_seed_of_plan(here.plan)
    reader = here.reader(RecordReader, builder=builder, with_ids=add_tfds_id)
    resumed = _Resumed(here=here, decoders=decoders, reader=reader)
    tf, plan = tensorflow(), here.plan

    def each() -> Iterator[tuple[int, Any]]:
        examples, size = resumed.rest(), resumed.here.num_examples
        for epoch in range(plan.epoch, plan.epoch + 1 + plan.num_further_epochs):
            # The first epoch is the rest; later ones are whole.
            if epoch > plan.epoch:
                examples = resumed.epochs(range(epoch, epoch + 1))
                size = resumed.here.order.epoch_size
            examples = resumed.transformed(examples, size, transform)
            yield epoch, examples.prefetch(tf.data.AUTOTUNE)

    return each()


@checked
def exact_order(
    builder: Builder,
    spec: str | None = None,
    settings: SettingsLike | None = None,
    *,
    consumed: int,
    host: int | HostLike | None = None,
    transform: Transform | None = None,
    decoders: Any = None,
    add_tfds_id: bool = False,
    **keywords: Unpack[HostSettings],
) -> Any:
    """Return the `tf.data.Dataset` that continues in exact order after `consumed` examples.

    The plan is made here, of the builder's own layout; with a shuffle buffer in the settings the
    records that it held are read again, as many as the buffer is large, and the same stream is fed
    through it from where it was. `consumed` counts from the start of the order; `host` is that of
    `resume`.

    Raises:
        UsageError: `consumed` is past the end of the order, the settings are for another host, or
            a global seed is in force as for `resume`.
        UnpredictableOrderError, MissingDependencyError: as for `resume`.
    """
    plan = plan_resume(dataset_of(builder), spec, settings, consumed=consumed, mode="exact-order")
    how = {"transform": transform, "decoders": decoders, "add_tfds_id": add_tfds_id}
    return dataset_to_resume(builder, plan, host, **how)


@dataclass(frozen=True, kw_only=True)
class _Resumed:
    """The examples that a plan resumes with, decoded in front of a buffer as TFDS does it."""

    here: FittedPlan
    decoders: Any
    reader: RecordReader

    def rest(self) -> Any:
        """Return what is left of the epoch in which the plan begins."""
        plan, settings = self.here.plan, self.here.settings
        if not plan.exact:
            return self._once(plan, settings)
        # Shared by hosts: files are opened together in runs, of which `emitted` examples are done.
        if plan.shared is not None:
            emitted = plan.shared.size - plan.remaining
            # `files_left` returns the rows and how many of them each opened file has.
            rest = self.reader.in_files(*plan.shared.files_left(emitted))
        else:
            left = self.here.reads.select(slice(plan.num_pending_instructions, None))
            rest = shard_of_host(self.reader.read(left), self.here.settings, "examples")
        # Without a buffer, or when nothing is left, the rest is read as it is.
        if plan.shuffle is None or not plan.remaining:
            return self._decoded(rest)
        codes = self.reader.codes.of_ids(plan.pending or ())
        # `chosen` wants ascending codes, each file opened once; `codes` keep the order in which
        # they were read.
        held = self.reader.chosen(self.here.reads, np.sort(codes)) if len(codes) else None
        # Outputs of the shuffle are counted from the start of its epoch.
        stop = plan.shuffle.emitted + plan.remaining
        return replayed(rest, held, codes, plan.shuffle, stop, self._decoded)

    def epochs(self, epochs: range) -> Any:
        """Return whole epochs, one after the other, each in its own order."""
        tf, order = tensorflow(), self.here.order
        # TFDS shuffles its instructions with a buffer of all of them. One instruction has one
        # order.
        shuffles = order.settings.shuffles_files and len(order.reads) > 1
        buffer_size = order.num_buffered
        # int64[epochs, 2, 2]: for each epoch the kernel pair of the files, then that of the buffer.
        seeds = np.zeros((len(epochs), 2, 2), np.int64)
        unseeded = self.here.plan.unseeded is not None
        same = order.settings.buffer_reshuffle is False
        # For a buffer without a seed: any seeds will do, as the order was not fixed before. From 1,
        # since a pair (0, 0) means seeds of the machine.
        drawn = np.random.default_rng().integers(1, 1 << 31, size=(len(epochs), 2))
        for index, epoch in enumerate(epochs):
            if shuffles:
                seeds[index, 0] = _numbers(order.seeds.of_files(epoch))
            if buffer_size is not None:
                known = () if unseeded else _numbers(order.seeds.of_buffer(epoch))
                # With reshuffle off all epochs share one draw.
                seeds[index, 1] = known or drawn[0 if same else index]

        # `max(.., 1)`: a buffer of 0 is an error, although there is nothing to shuffle.
        rows, num_rows = self.reader.rows(order.reads), max(len(order.reads), 1)

        def epoch_of(pairs: Any) -> Any:
            # As TFDS does: files are shuffled, then interleaved, then sharded; examples are decoded
            # before the user's shuffle.
            opened = kernel_shuffle(rows, num_rows, pairs[0]) if shuffles else rows
            records = shard_of_host(self.reader.interleaved(opened), self.here.settings, "examples")
            read = self._decoded(records)
            return read if buffer_size is None else kernel_shuffle(read, buffer_size, pairs[1])

        # `flat_map` reads epoch after epoch, each built with its own seeds from the array.
        return tf.data.Dataset.from_tensor_slices(seeds).flat_map(without_autograph(epoch_of))

    def transformed(self, examples: Any, num_examples: int, transform: Transform | None) -> Any:
        """Return so many examples transformed."""
        tf = tensorflow()
        if self.here.plan.is_one_stream:
            examples = examples.take(num_examples)  # a buffer reads beyond the end of the order
        if transform is not None:
            examples = examples.map(
                transform, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True
            )
        # tf.data fails if the files hold fewer: the rest is never silently short.
        return examples.apply(tf.data.experimental.assert_cardinality(num_examples))

    def _decoded(self, records: Any) -> Any:
        return self.reader.decode(records, self.decoders)

    def _once(self, plan: ResumePlan, settings: ReadSettings) -> Any:
        """Return what a plan reads: what a buffer held, then the rest, shuffled anew."""
        num_held = plan.num_pending_instructions
        reads = self.here.reads
        rest = self._in_runs(reads.select(slice(num_held, None)))
        # With several hosts or a log, the instructions are this host's own already; otherwise
        # `ds.shard` chooses here.
        if not (plan.hosts or plan.from_seen):
            rest = shard_of_host(rest, self.here.settings, "examples")
        if num_held:
            rest = self._in_runs(reads.select(slice(0, num_held))).concatenate(rest)
        if plan.unseeded is not None and self.here.plan.is_one_stream:
            rest = rest.take(plan.remaining)
        examples = self._decoded(rest)
        if settings.buffer is None:
            return examples
        return self.shuffled(examples, settings.buffer, settings.buffer_seed)

    def shuffled(self, examples: Any, size: int, seed: int | None) -> Any:
        """Return the examples of the rest shuffled anew."""
        size = max(1, self.here.num_examples) if size == WHOLE_DATASET else size
        # reshuffle_each_iteration=False: iterating again reads the same order.
        return examples.shuffle(size, seed=seed, reshuffle_each_iteration=False)

    def _in_runs(self, reads: Reads) -> Any:
        """Return the records of instructions; a file that they read in many runs is opened once."""
        # Number of different files: unique columns of (split, shard), shape (2, rows).
        files = np.unique(np.stack([reads.split, reads.shard]), axis=1).shape[1]
        if len(reads) > 2 * files:
            # Twice as many runs as files: reading each file once is cheaper than opening it for
            # each run.
            codes = np.unique(ranges(self.reader.codes.first_codes(reads), reads.take))
            if len(codes) == reads.num_examples:  # else a sum that reads an example twice
                pieces = self.reader.chosen(reads, codes)
                return pieces.map(without_autograph(lambda records, _: records)).unbatch()
        return self.reader.read(reads)


def _numbers(seeds: KernelSeeds) -> tuple[int, int]:
    return seeds.seed, seeds.seed2


# A shuffle buffer that continues from where it was.

Decode = Callable[[Any], Any]


def replayed(
    rest: Any, held: Any, held_codes: Int64s, state: ShuffleState, stop: int, decode: Decode
) -> Any:
    """Return the dataset that a shuffle of the examples of `rest` yields from where it was.

    `held` yields pieces of the records that the buffer held, as `RecordReader.chosen` does for
    `held_codes` in ascending order, or is None; `held_codes` (int64[p]) are their codes in the
    order in which they were read. `rest` yields the records that were to be read next. A record is
    a scalar or a tuple of them; `decode` makes a dataset of examples of a dataset of
    records. Outputs [state.emitted, stop) are yielded.

    TensorFlow's own shuffle goes on from there (`shuffled_from`), to the end of the epoch.

    Memory: the buffer's records until it is filled, and its examples. Every iteration begins anew.
    """
    tf = tensorflow()
    spec = rest.element_spec
    # An element that fails if it is ever read. The files should hold all that was to be read.
    fewer = tf.data.Dataset.range(1).map(without_autograph(lambda _: _no_record(spec)))
    # `take` stops at what the shuffle still has to read, so the failing element is read only if the
    # files are short.
    inputs = decode(rest.concatenate(fewer).take(state.num_elements - state.num_read))
    num_left = stop - state.emitted
    if held is not None:
        inputs = _in_places(fewer, held, held_codes, state, decode).concatenate(inputs)
    elif state.emitted:  # a buffer of one, or nothing is left: no shuffle changes that
        return inputs.take(num_left)
    drawn = {"num_drawn": state.emitted, "num_elements": state.num_elements - state.emitted}
    outputs = shuffled_from(inputs, state.buffer_size, state.seeds, **drawn)
    # The shuffle ends by itself at the end of the epoch; otherwise the outputs are cut.
    return outputs if stop == state.num_elements else outputs.take(num_left)


def _in_places(
    fewer: Any, held: Any, held_codes: Int64s, state: ShuffleState, decode: Decode
) -> Any:
    """Return the examples that the buffer held, in the order of its places."""
    tf, num_held = tensorflow(), len(held_codes)
    # order_read[rank] = position in reading order, for `held` comes by ascending code.
    order_read = np.argsort(held_codes, kind="stable")
    replay = ShuffleReplay(
        num_elements=state.num_elements, buffer_size=state.buffer_size, seeds=state.seeds
    )
    # places[i] = position in reading order of what is at place i.
    places = np.argsort(np.argsort(replay.buffered(state.emitted)))
    fewer = tf.data.Dataset.zip((fewer, tf.data.Dataset.range(1)))

    # All within one `flat_map` of one element: each iterator gets its own records.
    def of_iterator(_: Any) -> Any:
        # All of them are there before any is decoded; files that are short fail here.
        whole = held.unbatch().concatenate(fewer).take(num_held).batch(num_held)
        records, ranks = whole.get_single_element()
        where = tf.gather(tf.argsort(tf.gather(order_read, ranks)), places)

        def record(place: Any) -> Any:
            return tf.nest.map_structure(lambda part: tf.gather(part, where[place]), records)

        return decode(tf.data.Dataset.range(num_held).map(without_autograph(record)))

    return tf.data.Dataset.from_tensors(0).flat_map(without_autograph(of_iterator))


def _no_record(spec: Any) -> Any:
    tf = tensorflow()
    # The assertion must be a dependency of the value that is returned, or TensorFlow would drop it.
    with tf.control_dependencies([tf.debugging.Assert(False, [FEWER])]):
        return tf.nest.map_structure(lambda part: tf.zeros([], part.dtype), spec)
