"""How far a training loop has come, counted and written beside its checkpoints."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Self

from shardctl.core.arguments.checked import checked
from shardctl.core.hosts.host import HostLike
from shardctl.core.order.staged import StagedOrder
from shardctl.core.resume.resume_plan import ResumePlan, settings_as_planned
from shardctl.core.settings.document import settings_in_force
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.text import choices
from shardctl.errors import UsageError
from shardctl.files.position_file import (
    PositionRecord,
    position_of_text,
    position_text,
    read_position,
    write_position,
)
from shardctl.planning.file_formats import format_warnings, refuse_unreadable
from shardctl.planning.order import PlannedOrder, plan_order
from shardctl.planning.resume.resume import resume_order
from shardctl.planning.resume.same_dataset import check_same_dataset
from shardctl.planning.resume.staged import resume_staged
from shardctl.tfds.builder_layout import Builder, dataset_of, in_order_of
from shardctl.tfds.graphs.predicted import elements_of
from shardctl.tfds.imports import tensorflow
from shardctl.tfds.position.deferred import deferred
from shardctl.tfds.position.trackable import trackable_class
from shardctl.tfds.training.global_seed import check_global_seed
from shardctl.tfds.training.pipeline import Transform
from shardctl.tfds.training.resume import dataset_to_resume


class Position:
    """A place in the order of a pipeline: how many examples are handed out, all epochs counted.

    The pipeline is `shardctl.tfds.pipeline(builder, spec, settings)`, whether it was written so or
    with TFDS's own calls. `consumed` may be read at any time, to be kept in a checkpoint; `save`
    writes it to a file of its own, with the dataset's identity and the settings, from which
    `restore` resumes and refuses another dataset or other settings.

    Raises:
        UnpredictableOrderError: TensorFlow leaves the order open, so that a place means nothing.
        UsageError: a bad spec, `consumed` past the end of the order, or a global seed that is in
            force in TensorFlow, that the settings do not have and that changes the order.

        position = Position(builder, "train", settings)
        for batch in position.count(position.dataset()):
            train_step(batch)
            position.save("position.json")
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
    ) -> None:
        self._builder = builder
        self._dataset = dataset_of(builder)
        refuse_unreadable(self._dataset)
        settings = ReadSettings() if settings is None else settings
        planned = plan_order(self._dataset, spec, settings)
        for warning in format_warnings(self._dataset, planned.ranges):
            warnings.warn(warning, stacklevel=3)  # past @checked
        self._spec = planned.spec
        # Those of the pipeline, and those of the epoch of `fit` where the position is in one.
        self._settings = settings_as_planned(settings, ordered=self._dataset.ordered)
        self._now = self._settings
        self._planned = planned.with_settings(self._now)
        self._check_global_seed()
        self._consumed = 0
        self.advance(consumed)

    @property
    def consumed(self) -> int:
        """Number of examples that the training loop has received, from the start of the order."""
        return self._consumed

    @property
    def num_examples(self) -> int:
        """Number of examples of the whole order, all epochs; of an epoch of `fit`, its own."""
        return self._planned.order.num_examples

    @property
    def settings(self) -> ReadSettings:
        """The settings of the pipeline; a cycle that was "auto" is the number that it came to."""
        return self._settings

    @property
    def planned(self) -> PlannedOrder:
        """The order that this is a place in; in `fit` that of the epoch."""
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
        if num_examples < 0 or consumed + num_examples > self.num_examples:
            raise UsageError(
                f"{num_examples} examples after {consumed}: the order of {self._spec} has "
                f"{self.num_examples}; is the dataset that is counted the one of these settings?"
            )
        return consumed + num_examples

    @checked
    def count(self, elements: Iterable[Any], *, batch: int | None = None) -> Iterator[Any]:
        """Yield the elements of a dataset, counting each when the loop receives it.

        What `prefetch` has read ahead is not counted. An element is an example; or where the
        settings have `batch`, or `batch` says that the dataset is batched behind them, a
        batch, which counts as many as its first component has rows. Of stages it is what they make,
        and counts as many as the order says.

        Raises:
            UsageError: more examples than the order has left, or batches larger than said.
        """
        if self._settings.stages is not None and batch is None:
            yield from self._counted_by_order(elements)
            return
        batch = self._settings.batch if batch is None else batch
        for element in elements:
            self.advance(1 if batch is None else _num_rows(element, batch))
            yield element

    def _counted_by_order(self, elements: Iterable[Any]) -> Iterator[Any]:
        """Yield elements of stages, each counted as many examples as the order says."""
        predicted = elements_of(self._planned.order)
        step = predicted.element_after(self._consumed)
        for element in elements:
            if predicted.up_to(step + 1) == step:
                self.advance(1)  # more than the order has, which is refused
            self.advance(predicted.width_of(step))
            step += 1
            yield element

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
        checkpoint, and in `fit` with `ResumeFit`, the same dataset goes on from there. So
        TensorFlow does not know how long it is, `len` counts what is left now, and it stays in this
        process: `resume(builder, position.plan())` is one of tf.data's own calls alone. What is
        refused because of a global seed is found here; one that is set later changes nothing.
        """
        how = {"transform": transform, "decoders": decoders, "add_tfds_id": add_tfds_id}
        self._check_global_seed()

        def rest() -> Any:
            return dataset_to_resume(self._builder, self.plan(), host, checks_seed=False, **how)

        return deferred(self, rest, lambda: (self._now, self._consumed))

    @checked
    def begin_epoch_of_fit(self, epoch: int) -> None:
        """Go to the start of an epoch of Keras `fit` over the pipeline of the settings.

        It is the pass of that number with `loop="keras-fit"`, as `shardctl simulate --loop
        keras-fit --pass N` shows it, and `consumed` counts within it. `ResumeFit` calls this.

        Raises:
            UsageError: an epoch below 0.
            UnpredictableOrderError: TensorFlow leaves the order of later epochs open.
        """
        now = self._of_fit(epoch)
        self._planned, self._now, self._consumed = self._planned.with_settings(now), now, 0

    def _of_fit(self, epoch: int) -> ReadSettings:
        return replace(self._settings, pass_index=epoch, loop="keras-fit")

    def plan(self) -> ResumePlan:
        """Return the plan that resumes from here, in exact order."""
        if isinstance(self._planned.order, StagedOrder):
            return resume_staged(self._planned, consumed=self._consumed)
        return resume_order(self._planned, consumed=self._consumed, mode="exact-order")

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

        `allow_version` takes one of another version or config of the dataset whose files have the
        same names and lengths. What is refused changes nothing.

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
            settings=self._now,
            consumed=self._consumed,
        )

    def _go_to(self, record: PositionRecord, *, allow_version: bool) -> None:
        self._check_global_seed()
        then = record.dataset
        now = in_order_of(self._dataset, [split.name for split in then.splits])
        check_same_dataset(then, now, "position", allow_version=allow_version)
        # Which epoch of `fit` it is in is part of the place.
        in_fit = record.settings.loop == "keras-fit" and not self._settings.pass_index
        own = self._of_fit(record.settings.pass_index) if in_fit else self._settings
        if others := self._other_settings(record, own):
            raise UsageError(f"the position is one in another order: {choices(others)}")
        planned = self._planned.with_settings(own)
        if record.consumed > planned.order.num_examples:
            raise UsageError(
                f"the position is after {record.consumed} examples: the order of {self._spec} has "
                f"{planned.order.num_examples}"
            )
        self._planned, self._now, self._consumed = planned, own, record.consumed

    def _check_global_seed(self) -> None:
        check_global_seed(self._settings, lambda: len(self._planned.order.reads))

    def _other_settings(self, record: PositionRecord, own: ReadSettings) -> list[str]:
        old = settings_in_force(record.settings, ordered=record.dataset.ordered)
        new = settings_in_force(own, ordered=self._dataset.ordered)
        others = [f"{key} was {old[key]}, now {new[key]}" for key in new if old[key] != new[key]]
        if record.spec != self._spec:
            others.insert(0, f"SPEC was {record.spec}, now {self._spec}")
        return others


def _num_rows(batch: Any, most: int) -> int:
    components = tensorflow().nest.flatten(batch)
    shape = tuple(getattr(components[0], "shape", ())) if components else ()
    if not shape:
        raise UsageError("elements: batches are counted, and one of them has no rows")
    rows = int(shape[0])
    if rows > most:
        raise UsageError(f"a batch of {rows} examples where batches of {most} are counted")
    return rows
