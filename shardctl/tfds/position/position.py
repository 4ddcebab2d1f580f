"""How far a training loop has come, counted and written beside its checkpoints."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Self

from shardctl.core.arguments.checked import checked
from shardctl.core.hosts.host import HostLike
from shardctl.core.order.staged import StagedOrder
from shardctl.core.resume.resume_plan import ResumePlan, settings_as_planned
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.errors import UsageError
from shardctl.files.position_file import (
    PositionRecord,
    position_of_text,
    position_text,
    read_position,
    write_position,
)
from shardctl.planning.file_formats import format_warnings, refuse_unreadable
from shardctl.planning.order import plan_order
from shardctl.planning.pinned.pinned_sources import datasets_by_ref
from shardctl.planning.resume.resume import resume_order
from shardctl.planning.resume.staged import resume_staged
from shardctl.tfds.builder_layout import Builder, dataset_of
from shardctl.tfds.position.counting import Loop, OrderCounter, RowCounter, Steps
from shardctl.tfds.position.derived import check_derived, marked
from shardctl.tfds.position.same_order import check_same_order
from shardctl.tfds.position.trackable import trackable_class
from shardctl.tfds.training.global_seed import check_global_seed
from shardctl.tfds.training.pipeline import Transform
from shardctl.tfds.training.resume import resume


class Position:
    """A place in the order of a pipeline: how many examples are handed out, all epochs counted.

    The pipeline is `shardctl.tfds.pipeline(builder, spec, settings)`, whether it was written so or
    with TFDS's own calls. A position is saved and restored by `tf.train.Checkpoint` like the
    weights beside it; `get_state` and `set_state` are for other checkpoints, `save` and `restore`
    for a file of its own. All of them hold the dataset's identity and the settings too, and refuse
    another dataset or other settings by name. `consumed` may be read at any time.

    `allow_version` takes positions in another version or config of the dataset whose files have the
    same names and lengths.

    Raises:
        UnpredictableOrderError: TensorFlow leaves the order open, so that a place means nothing.
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

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        """Return a position that is trackable too, where TensorFlow is there."""
        return object.__new__(trackable_class(cls))

    @checked
    def __init__(
        self,
        builder: Builder,
        spec: str | None = None,
        settings: ReadSettings | None = None,
        *,
        consumed: int = 0,
        allow_version: bool = False,
    ) -> None:
        self._builder, self._allow_version = builder, allow_version
        self._dataset = dataset_of(builder)
        refuse_unreadable(self._dataset)
        settings = ReadSettings() if settings is None else settings
        planned = plan_order(self._dataset, spec, settings)
        for warning in format_warnings(self._dataset, planned.ranges):
            warnings.warn(warning, stacklevel=3)  # past @checked
        self._spec, self._num_examples = planned.spec, planned.order.num_examples
        self._settings = settings_as_planned(settings, ordered=self._dataset.ordered)
        self._planned = planned.with_settings(self._settings)
        self._check_global_seed()
        self._loop: Loop | None = None  # that is counted
        self._consumed = self._sum(0, consumed)

    @property
    def consumed(self) -> int:
        """Number of examples that the training loop has received, from the start of the order."""
        return self._consumed

    @property
    def num_examples(self) -> int:
        """Number of examples of the whole order, all epochs."""
        return self._num_examples

    def __repr__(self) -> str:
        return f"<Position {self._consumed} of {self._num_examples} examples of {self._spec}>"

    @checked
    def advance(self, num_examples: int) -> None:
        """Count examples that the training loop has received some other way than by `count`.

        Raises:
            UsageError: a number below 0, or past the end of the order.
        """
        self._consumed = self._sum(self._consumed, num_examples)

    def _sum(self, consumed: int, num_examples: int) -> int:
        if num_examples < 0 or consumed + num_examples > self._num_examples:
            raise UsageError(
                f"{num_examples} examples after {consumed}: the order of {self._spec} has "
                f"{self._num_examples}; is the dataset that is counted the one of these settings?"
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
            UsageError: more examples than the order has left, or batches larger than said, or
                smaller ones in mid-epoch; elements of `dataset` that were shuffled, filtered or
                batched otherwise than they are counted; the position went elsewhere meanwhile; or
                `step` does not go up by one.
        """
        settings = self._settings
        of_order = settings.stages is not None and batch is None
        if of_order or settings.stages is None:
            check_derived(
                elements,
                batched=of_order or settings.batch is not None,
                counts_batches=of_order or (settings.batch or batch) is not None,
            )
        loop = self._loop = Loop(self._trained(), step)
        self._consumed = loop.consumed
        counter = OrderCounter if of_order else RowCounter
        width_of = counter(self._planned.order, loop, batch or settings.batch)
        try:
            for element in elements:
                self._check_is_in(loop)
                loop.ask()
                self.advance(width_of(element))
                loop.hand_out(self._consumed)
                yield element
            loop.ask()
        finally:
            if self._loop is loop:
                with suppress(Exception):  # where it cannot be told, it stays in hand
                    self._consumed, self._loop = self._trained(), None

    def _check_is_in(self, loop: Loop) -> None:
        if self._loop is not loop or self._consumed != loop.consumed:
            raise UsageError(
                f"the position went to {self._consumed} while a loop counted from "
                f"{loop.consumed}: restore it before, and count one loop at a time"
            )

    def _trained(self) -> int:
        """Return how many examples were trained on, as far as a loop says by its step."""
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
        """Return the `tf.data.Dataset` that continues from here, in exact order; see `resume`."""
        return marked(
            resume(
                self._builder,
                self.plan(),
                host=host,
                transform=transform,
                decoders=decoders,
                add_tfds_id=add_tfds_id,
            )
        )

    def plan(self) -> ResumePlan:
        """Return the plan that resumes from here, in exact order."""
        if isinstance(self._planned.order, StagedOrder):
            return resume_staged(self._planned, consumed=self._trained())
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
        write_position(path, self._record())

    @checked
    def restore(self, path: str | os.PathLike[str], *, allow_version: bool = False) -> None:
        """Go to the position in a file that `save` wrote; as `set_state` does.

        Raises:
            DatasetError, UsageError: no such file, or as for `set_state`.
        """
        self._go_to(read_position(path), allow_version=allow_version)

    def get_state(self) -> bytes:
        """Return the position as a few lines of JSON, the text of the file that `save` writes.

        It holds `consumed`, the dataset's identity, the spec and the settings.
        """
        return position_text(self._record())

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
            position_of_text(state, source="the state"),
            allow_version=allow_version,
        )

    def _record(self) -> PositionRecord:
        return PositionRecord(
            dataset=self._dataset.identity,
            spec=self._spec,
            settings=self._settings,
            consumed=self._trained(),
            sources={ref: one.identity for ref, one in datasets_by_ref(self._planned).items()},
        )

    def _go_to(self, record: PositionRecord, *, allow_version: bool) -> None:
        self._check_global_seed()
        check_same_order(
            record,
            self._spec,
            self._settings,
            self._dataset,
            datasets_by_ref(self._planned),
            allow_version=allow_version or self._allow_version,
        )
        self._consumed, self._loop = self._sum(0, record.consumed), None

    def _check_global_seed(self) -> None:
        check_global_seed(self._settings, lambda: len(self._planned.order.reads))
