"""How far a training loop has come: counted, and written beside its checkpoints."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from inspect import signature
from typing import Any, Self

from shardctl.base.arguments import checked
from shardctl.errors import UsageError
from shardctl.order.plan_order import PlannedOrder, plan_order
from shardctl.order.resolved_spec import format_warnings, refuse_unreadable
from shardctl.saved import position_file
from shardctl.saved.position_file import PositionRecord
from shardctl.saved.resume_plan import ResumePlan, RunSegment, settings_as_planned
from shardctl.settings import read_settings
from shardctl.settings.keywords import OrderSettings, Unpack
from shardctl.spec.host import HostLike
from shardctl.tfds import position_counting as counting
from shardctl.tfds.builder_layout import Builder, dataset_of
from shardctl.tfds.position_counting import Loop, Steps
from shardctl.tfds.position_dataset import deferred, keep_place, place_of, trackable_class
from shardctl.tfds.training.pipeline import Transform
from shardctl.tfds.training.read_config import check_global_seed
from shardctl.tfds.training.resume import dataset_to_resume
from shardctl.verbs.resume.answer import resume_order
from shardctl.verbs.resume.stopped_hosts import SharedRun, shared_run


class Position:
    """A place in the order of a pipeline: how many examples are yielded, all epochs counted.

    The pipeline is `shardctl.tfds.pipeline(builder, spec, settings)`, whether it was written so or
    with TFDS's own calls. A position is saved and restored by `tf.train.Checkpoint` like the
    weights beside it; `get_state` and `set_state` are for other checkpoints, `save` and `restore`
    for a file of its own. All of them hold the dataset's identity and the settings too, and refuse
    another dataset or other settings by name. `consumed` may be read at any time.

    `allow_version` takes positions in another version or config of the dataset whose files have the
    same names and lengths.

    Raises:
        UnpredictableOrderError: the order is nondeterministic, so that a position means nothing.
        UsageError: a bad spec, `consumed` past the end of the order, or a global seed that is in
            force in TensorFlow, that the settings do not have and that changes the order.

        position = Position(builder, "train", settings)
        checkpoint = tf.train.Checkpoint(step=step, model=model, data=position)
        if newest := tf.train.latest_checkpoint(folder):
            checkpoint.restore(newest).assert_existing_objects_matched()
        for batch in position.count(position.dataset(), step=step):
            train_step(batch)
            step.assign_add(1)
            checkpoint.save(f"{folder}/checkpoint")
    """

    __module__ = "shardctl.tfds"  # what pickles name

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        """Return a position that is trackable too, where TensorFlow is there."""
        # TensorFlow tracks by class (`PythonState`), so an object of a subclass is returned. Python
        # calls `__init__` on it, since it is a `Position` too.
        return object.__new__(trackable_class(cls))

    @checked
    def __init__(
        self,
        builder: Builder,
        spec: str | None = None,
        settings: read_settings.SettingsLike | None = None,
        *,
        consumed: int = 0,
        allow_version: bool = False,
        **keywords: Unpack[OrderSettings],
    ) -> None:
        self._builder, self._allow_version = builder, allow_version
        self._dataset = dataset_of(builder)
        # The order of the checks: what depends on the files alone, then on the settings, then on
        # the order.
        refuse_unreadable(self._dataset)
        settings = read_settings.as_settings(settings)
        read_settings.refuse_loader(settings, "Position", "shardctl.resume(.., steps=) resumes it")
        planned = plan_order(self._dataset, spec, settings)
        for warning in format_warnings(self._dataset, planned.ranges):
            warnings.warn(warning, stacklevel=3)  # past @checked
        self._spec = planned.spec
        # Those of the pipeline, and those of the epoch of `fit` where the position is in one.
        self._settings = settings_as_planned(settings, ordered=self._dataset.ordered)
        self._now = self._settings
        self._planned = planned.with_settings(self._now)
        check_global_seed(self._settings)
        # `_run` is set after `set_states` with another number of hosts: `consumed` then counts
        # within this host's part of what was left.
        self._run: SharedRun | None = None
        self._loop: Loop | None = None  # that is counted
        self._has_ended = False  # of a loop that was counted, at the end of the order
        # Checked against the total by the same rule as `advance`; hence as a sum with 0.
        self._consumed = self._sum(0, consumed)

    # Of a class with `__new__` Python would show the arguments of that, which takes any.
    __signature__ = signature(partial(__init__, None))  # type: ignore[arg-type]

    def __reduce__(self) -> Any:
        # By public names and documents alone, so that another version reads it. Neither what
        # TensorFlow keeps in it, checkpoints that it belongs to here, nor a loop that is counted.
        document = read_settings.settings_in_force(self._settings, ordered=self._dataset.ordered)
        # Values that are None are left out: a version that does not know the setting reads the
        # pickle too.
        settings = {name: value for name, value in document.items() if value is not None}
        return (
            Position,
            (self._builder, self._spec, settings),
            (self._allow_version, self.get_state()),
        )

    def __setstate__(self, state: tuple[bool, bytes]) -> None:
        self._allow_version, position = state
        self.set_state(position)

    @property
    def consumed(self) -> int:
        """Number of examples that the training loop has received, from the start of the order.

        Of a run that was shared among other hosts (`set_states`), since it was.
        """
        return self._consumed

    @property
    def num_examples(self) -> int:
        """Number of examples of the whole order, all epochs; of an epoch of `fit`, its own.

        Of a run that was shared, of this host's part; see `consumed`.
        """
        return self._total(self._planned, self._run)

    @property
    def settings(self) -> read_settings.ReadSettings:
        """The settings of the pipeline; a cycle that was "auto" is the number that it came to."""
        return self._settings

    @property
    def is_shared(self) -> bool:
        """Whether this is a place in a host's part of a run that continued with other hosts."""
        return self._run is not None

    @property
    def planned(self) -> PlannedOrder:
        """The order that this is a place in; in `fit` that of the epoch.

        Of a run that was shared, that of the epochs behind the shared rest.
        """
        return self._planned

    def __repr__(self) -> str:
        epoch = "" if self.epoch_of_fit is None else f", epoch {self.epoch_of_fit} of fit"
        return f"<Position {self._consumed} of {self.num_examples} examples of {self._spec}{epoch}>"

    @property
    def epoch_of_fit(self) -> int | None:
        """The epoch of Keras `fit` in which `consumed` counts, None in the order of all epochs."""
        return self._now.pass_index if self._now.loop == "keras-fit" else None

    @checked
    def advance(self, num_examples: int) -> None:
        """Count examples that the training loop has received some other way than by `count`.

        Raises:
            UsageError: a number below 0, or past the end of the order.
        """
        self._consumed = self._sum(self._consumed, num_examples)

    def _sum(self, consumed: int, num_examples: int) -> int:
        # Both directions are refused: a count that goes back would repeat examples unnoticed.
        if num_examples < 0 or consumed + num_examples > self.num_examples:
            raise UsageError(
                f"{num_examples} examples after {consumed}: the order of {self._spec} has "
                f"{self.num_examples}; is the dataset that is counted the one of these settings?"
            )
        return consumed + num_examples

    @checked
    def count(
        self, elements: Iterable[Any], *, batch: int | None = None, step: Steps | None = None
    ) -> Iterator[Any]:
        """Yield the elements of a dataset, counting each when the loop receives it.

        What `prefetch` has read ahead is not counted. An element is an example; or where the
        settings have `batch`, or `batch` says that the dataset is batched behind them, a
        batch, which counts as many as its first component has rows. Of stages it is what they make,
        and counts as many as the order says.

        `step` is the number of batches that the loop has trained on, a `tf.Variable` or a function:
        it goes up by one for each. With it a state that is taken before the batch in hand was
        trained on, as where an error or a signal ends the loop, is that before the batch; without
        it, a state is to be taken after.

        Raises:
            UsageError: more examples than the order has left, or a dataset that is longer; batches
                larger than said, or smaller ones in mid-epoch; elements of `dataset` that were
                shuffled, filtered, mapped in any order or batched otherwise than they are counted;
                an iterator that continues where the position is not; the position went elsewhere
                meanwhile; or `step` does not go up by one.
        """
        # `order` is read once. Where the position moves while the loop runs, `_check_is_in` finds
        # out.
        order, size = self._planned.order, batch or self._settings.batch
        counting.check_derived(
            self,
            elements,
            batched=order.has_steps,
            counts_batches=order.has_steps or batch is not None,
        )
        # From what was trained on: a batch that an earlier loop received and did not train on is
        # counted again.
        loop = Loop(self._trained(), step)
        self._consumed, self._loop = loop.consumed, loop
        # A second loop over all epochs yields nothing, and looks like training that is very fast.
        if self._has_ended and self._consumed == self.num_examples:
            warnings.warn(
                f"an earlier loop yielded all {self.num_examples} examples of {self._spec}; all "
                "epochs of ReadSettings(epochs=N) are one loop",
                stacklevel=2,
            )
        if self._run is None:  # else epochs have other sizes
            counting.check_length(elements, counting.elements_left(order, loop.consumed, batch))
        # The sizes of batches are the order's where no one size is said of all.
        counter = counting.OrderCounter if order.has_steps and size is None else counting.RowCounter
        # The first whole epoch begins behind the shared rest.
        first = 0 if self._run is None else self._run.rest.size
        width_of = counter(order, loop, size, first)
        now, run = self._now, self._run
        # An iterator of another place would yield examples that this position does not count.
        if place_of(elements) not in (None, (now, run, loop.consumed)):
            raise UsageError(
                "elements: the position moved, or was restored, since this iterator was made; make "
                "another of position.dataset()"
            )
        try:
            for element in elements:
                # Per element: first check that nothing moved the position, then that `step` went
                # up, then count. Nothing is counted before its check.
                self._check_is_in(loop)
                loop.ask()
                consumed = self._sum(self._consumed, width_of(element))
                # The loop is set before the position: `_trained` compares the two, and a signal in
                # between finds them different and takes the old count.
                loop.hand_out(consumed)
                self._consumed = consumed
                keep_place(elements, (now, run, consumed))
                yield element
            # The last batch was trained on too, although no further one is asked for.
            loop.ask()
            self._has_ended = loop.consumed == self.num_examples
        finally:
            # Another loop may have begun meanwhile, which owns the count now.
            if self._loop is loop:
                with suppress(Exception):  # where it is unknown, it stays as it is
                    self._consumed, self._loop = self._trained(), None

    def _check_is_in(self, loop: Loop) -> None:
        # Compared by value too: `advance` and `set_state` move the position without a loop.
        if self._loop is not loop or self._consumed != loop.consumed:
            raise UsageError(
                f"the position went to {self._consumed} while a loop counted from "
                f"{loop.consumed}: restore it before, and count one loop at a time"
            )

    def _trained(self) -> int:
        """Return how many examples were trained on, as far as a loop says by its step."""
        # A loop knows what was trained on only as long as the position is where it left it.
        loop = self._loop
        if loop is None or loop.consumed != self._consumed:
            return self._consumed
        return loop.trained()

    @checked
    def dataset(
        self,
        *,
        transform: Transform | None = None,
        decoders: Any = None,
        add_tfds_id: bool = False,
        host: int | HostLike | None = None,
    ) -> Any:
        """Return the `tf.data.Dataset` that continues from here, in exact order; see `resume`.

        Each iterator begins where the position is when it is made: after `set_state` or a restored
        checkpoint, and in `fit` with `ResumeFit`, the same dataset continues from there. So
        TensorFlow does not know how long it is, `len` counts what is left now, and it stays in this
        process: `resume(builder, position.plan())` is one of tf.data's own calls alone. What is
        refused because of a global seed is found here; one that is set later changes nothing.
        """
        how = {"transform": transform, "decoders": decoders, "add_tfds_id": add_tfds_id}
        # A global seed is looked at now, where the caller can still act, and not in each iterator.
        check_global_seed(self._settings)

        def rest() -> Any:
            return dataset_to_resume(self._builder, self.plan(), host, checks_seed=False, **how)

        # (settings in force, shared run, count): equal places mean the same rest, so one dataset
        # serves.
        return deferred(self, rest, lambda: (self._now, self._run, self._trained()))

    @checked
    def begin_epoch_of_fit(self, epoch: int) -> None:
        """Go to the start of an epoch of Keras `fit` over the pipeline of the settings.

        It is the pass of that number with `loop="keras-fit"`, as `shardctl simulate --loop
        keras-fit --pass-index N` shows it, and `consumed` counts within it. `ResumeFit` calls this.

        Raises:
            UsageError: an epoch below 0, or a run that was shared and is not at its end.
            UnpredictableOrderError: the order of later epochs is nondeterministic.
        """
        # An epoch of fit is a whole pass; the rest of a shared run is not.
        if self.is_shared and self._consumed < self.num_examples:
            raise UsageError(
                "the run was shared among other hosts, and what is left of it is no epoch of fit; "
                "train on position.dataset() first, in a loop of your own"
            )
        now = self._of_fit(epoch)
        self._planned, self._now, self._consumed = self._planned.with_settings(now), now, 0
        self._loop = self._run = None  # what was shared is the rest of an epoch before

    def _of_fit(self, epoch: int) -> read_settings.ReadSettings:
        return replace(self._settings, pass_index=epoch, loop="keras-fit")

    def plan(self) -> ResumePlan:
        """Return the plan that resumes from here, in exact order."""
        # A shared run plans by itself: this host's part of the rest, then whole epochs.
        if self._run is not None:
            return self._run.plan(self._trained())
        return resume_order(self._planned, consumed=self._trained(), mode="exact-order")

    @checked
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the position to a file, atomically: the old file stays until the new one is whole.

        The folder must be there. It is for scripts whose checkpoints take neither the position
        itself nor `get_state`. A checkpoint and its position file agree whenever the machine stops
        if the position is written first, under the checkpoint's number, and the newest checkpoint
        is what one resumes from.

        Raises:
            UsageError: the file cannot be written.
        """
        position_file.write_position(path, self._record())

    @checked
    def restore(self, path: str | os.PathLike[str], *, allow_version: bool = False) -> None:
        """Go to the position in a file that `save` wrote; as `set_state` does.

        Raises:
            DatasetError, UsageError: no such file, or as for `set_state`.
        """
        self._go_to(position_file.read_position(path), allow_version=allow_version)

    def get_state(self) -> bytes:
        """Return the position as a few lines of JSON, the text of the file that `save` writes.

        It holds `consumed`, the dataset's identity, the spec and the settings.
        """
        return position_file.position_text(self._record())

    @checked
    def set_state(self, state: bytes, *, allow_version: bool = False) -> None:
        """Go to the position that `get_state` returned, here or in another process.

        `allow_version` is that of `Position`, for this call. What is refused changes nothing.

        Raises:
            DatasetError: no position, or it is of another dataset or the dataset has changed; the
                text says how.
            UsageError: it is of another spec or other settings, the text says which; or a global
                seed is in force as for `Position`.
        """
        self._go_to(
            position_file.position_of_text(state, source="the state"), allow_version=allow_version
        )

    @checked
    def set_states(self, states: Sequence[bytes], *, allow_version: bool = False) -> None:
        """Continue where a run stopped, also with another number of processes.

        `states` are what `get_state` returned in all processes of the run that stopped, in any
        order: each says which host it is of. Where there are as many hosts now, this one takes its
        own and yields the very batches. Otherwise what no host has yielded of the epoch is
        shared evenly among the hosts that there are now, and the epochs behind it are read as by so
        many: together they yield every example that is left once, also where the hosts had
        consumed different numbers or were in different epochs; but for a last batch of each that
        `drop_remainder` drops. `batch` and `host_by` may then be
        others than they were. `dataset`, `count`, `consumed` and `num_examples` are from then on
        about this host's part; `get_state` holds what the hosts before had consumed, so that it is
        restored as any other position, and shared again.

        Raises:
            DatasetError: as for `set_state`, or a state that is none; the text says which.
            UsageError: as for `set_state`; a host whose state is missing or given twice, or states
                of several runs; other hosts with `stages`, or with files that repeat.
        """
        records = counting.records_of(states)
        # Everything is checked before anything is assigned, here and in `_go_to`: a refused state
        # changes nothing.
        check_global_seed(self._settings)
        # With the same host among the states, nothing is shared anew: it resumes its own position
        # exactly.
        own = next((r for r in records if r.settings.host == self._settings.host), None)
        # One check for each different identity; a thousand hosts have the same one.
        for record in {record.dataset: record for record in records}.values():
            self._check(
                record,
                allow_version=allow_version,
                besides=("host",) if own else counting.SHAREABLE,
            )
        if own is not None:
            self._go_to(own, allow_version=allow_version)
            return
        self._check_shareable(len(records))
        now = self._settings_at(records[0])
        # Earlier sharings are kept in order: what is left follows from all of them.
        run = self._shared_run(now, (*records[0].stretches, counting.stretch_of(records)))
        self._planned, self._now, self._run, self._consumed = run.planned, now, run, 0
        self._loop = None

    def _record(self) -> PositionRecord:
        return PositionRecord(
            dataset=self._dataset.identity,
            spec=self._spec,
            settings=self._now,
            consumed=self._trained(),
            sources={ref: one.identity for ref, one in self._planned.datasets_by_ref.items()},
            stretches=() if self._run is None else self._run.stretches,
        )

    def _go_to(self, record: PositionRecord, *, allow_version: bool) -> None:
        check_global_seed(self._settings)
        self._check(record, allow_version=allow_version)
        # `now` holds pass_index and loop of fit, where the state was taken in one.
        now, run = self._settings_at(record), None
        if record.stretches:
            # The position of a shared run counts in the rest, which is planned again from its
            # segments.
            run = self._shared_run(now, record.stretches)
        planned = self._planned.with_settings(now) if run is None else run.planned
        total = self._total(planned, run)
        if record.consumed > total:
            raise UsageError(
                f"the position is after {record.consumed} examples: the order of {self._spec} has "
                f"{total}"
            )
        self._planned, self._now, self._run = planned, now, run
        self._consumed, self._loop = record.consumed, None

    def _settings_at(self, record: PositionRecord) -> read_settings.ReadSettings:
        """Return the settings at a place; which epoch of `fit` it is in is part of the place."""
        # Settings with a pass_index of their own are those of one pass; a state in `fit` does not
        # replace it.
        in_fit = record.settings.loop == "keras-fit" and not self._settings.pass_index
        return self._of_fit(record.settings.pass_index) if in_fit else self._settings

    @staticmethod
    def _total(planned: PlannedOrder, run: SharedRun | None) -> int:
        return planned.order.num_examples if run is None else run.num_examples

    def _check(
        self, record: PositionRecord, *, allow_version: bool, besides: Collection[str] = ()
    ) -> None:
        counting.check_same_order(
            record,
            self._spec,
            self._settings_at(record),
            self._dataset,
            self._planned.datasets_by_ref,
            allow_version=allow_version or self._allow_version,
            besides=besides,
        )

    def _check_shareable(self, num_hosts: int) -> None:
        # The order itself says why its examples cannot be shared anew, else None.
        why = self._planned.order.why_unshared
        if not self._settings.takes("epochs"):
            why = (
                "what other hosts are left to read is known for shard, shuffle, repeat and batch "
                "in this order, not for stages"
            )
        if why:
            host = self._settings.host
            now = "one alone" if host is None else f"host {host}"
            raise UsageError(
                f"states of {num_hosts} processes for {now}: {why}; resume with {num_hosts}, each "
                "with its own state"
            )

    def _shared_run(
        self, now: read_settings.ReadSettings, stretches: tuple[RunSegment, ...]
    ) -> SharedRun:
        if self._run is not None and (self._now, self._run.stretches) == (now, stretches):
            return self._run  # which takes its time with a thousand hosts
        return shared_run(self._planned.resolved, now, stretches)
