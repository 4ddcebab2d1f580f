"""Passes over pipelines with stages, whose elements may be batches, tuples, or batches of such."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.order.reader_order import ReaderOrder
from shardctl.core.order.staged import StagedOrder
from shardctl.core.progress import Progress
from shardctl.core.resume.resume_plan import ResumePlan, ShuffleState
from shardctl.core.stages.stages import (
    Batch,
    ChooseFromDatasets,
    Pipeline,
    SampleFromDatasets,
    Shared,
    Unbatch,
    Zip,
)
from shardctl.planning.resume.promises import BrokenPromise
from shardctl.planning.verify import Window
from shardctl.tfds.imports import tensorflow
from shardctl.tfds.stage_calls import examples_of_host
from shardctl.tfds.training.records import kernel_shuffle
from shardctl.tfds.verifying.reading import BATCH_SIZE, Pass, Reading

# What an element is: an example, a batch of such as are below, or a tuple.
Shape = tuple[str, tuple["Shape", ...]]
_EXAMPLE: Shape = ("example", ())


def shape_of(pipeline: Pipeline) -> Shape:
    """Return what the elements of a pipeline are.

    >>> from shardctl.core.stages.text import parse_stages
    >>> shape_of(parse_stages("zip(a | batch(2), b) | batch(3)"))
    ('batch', (('tuple', (('batch', (('example', ()),)), ('example', ()))),))
    """
    source = pipeline.source
    shape = _EXAMPLE
    if isinstance(source, Zip):
        shape = ("tuple", tuple(map(shape_of, source.inputs)))
    elif isinstance(source, SampleFromDatasets | ChooseFromDatasets):
        shape = shape_of(source.inputs[0])
    elif isinstance(source, Shared):
        shape = shape_of(source.pipeline)
    for stage in pipeline.stages:
        if isinstance(stage, Batch):
            shape = ("batch", (shape,))
        elif isinstance(stage, Unbatch):
            shape = shape[1][0]
    return shape


def flattened(element: Any, shape: Shape) -> list[Any]:
    """Return the examples of an element, in the order in which they went in.

    >>> flattened((np.array([1, 2]), np.array([3, 4])), ("batch", (("tuple", (_EXAMPLE,) * 2),)))
    [1, 3, 2, 4]
    """
    kind, inner = shape
    if kind == "example":
        return [element.item() if isinstance(element, np.generic | np.ndarray) else element]
    if kind == "tuple":
        parts = zip(element, inner, strict=True)
        return [example for part, of_part in parts for example in flattened(part, of_part)]
    if inner[0] == _EXAMPLE:
        values: list[Any] = element.tolist()
        return values
    tf = tensorflow()
    rows = len(tf.nest.flatten(element)[0])
    return [
        example
        for row in range(rows)
        for example in flattened(tf.nest.map_structure(lambda part: part[row], element), inner[0])  # noqa: B023
    ]


class StagedPass(Pass):
    """One iteration of a pipeline with stages, or what Keras trains on in an epoch of `fit`."""

    def __init__(
        self, reading: Reading, shape: Shape, *, fit_epoch: int | None = None, **how: Any
    ) -> None:
        super().__init__(reading, size=1, **how)
        self._shape = shape
        self._fit_epoch = fit_epoch

    def _batches(self) -> Iterator[Any]:
        elements = self._reading.elements
        if self._fit_epoch is None:
            found = elements.as_numpy_iterator()
        else:
            found = iter(fitted_epoch(elements, self._fit_epoch))
        for element in found:
            yield np.array(flattened(element, self._shape), object)


def fitted_epoch(elements: Any, epoch: int) -> list[Any]:
    """Return the elements that Keras trains on in one epoch of `fit`, the earlier ones read too."""
    tf = tensorflow()
    keras = tf.keras
    epochs: list[list[Any]] = []
    spec = elements.element_spec

    class Recorder(keras.Model):  # type: ignore[misc,name-defined]  # keras is not typed
        def train_step(self, batch: Any) -> dict[str, float]:
            def note(*parts: Any) -> None:
                values = [part.numpy() for part in parts]
                epochs[-1].append(tf.nest.pack_sequence_as(spec, values))

            tf.py_function(note, tf.nest.flatten(batch), [])
            return {"loss": 0.0}

    class EachEpoch(keras.callbacks.Callback):  # type: ignore[misc,name-defined]
        def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
            epochs.append([])

    model = Recorder()
    model.compile(run_eagerly=True)
    model.fit(elements, shuffle=False, epochs=epoch + 1, verbose=0, callbacks=[EachEpoch()])
    return epochs[epoch]


def check_names(order: StagedOrder) -> None:
    """Refuse datasets whose files have the same names, which tfds_ids do not tell apart.

    Raises:
        UsageError: two readers read such files.
    """
    firsts = order.codes.bases[
        [i for i, split in enumerate(order.dataset.splits) if split.files and split.num_examples]
    ]
    for name in order.codes.tfds_ids(np.unique(firsts)):
        order.codes.parse_tfds_id(name)


# A stretch in the middle of an order, read by a plan that begins there, also through a buffer.


def num_inputs_read(plan: ResumePlan, window: Window) -> int:
    """Return how many examples are read from the beginning of a plan to the end of a window."""
    size, state = window.stop - window.start, plan.shuffle
    if state is None:
        return size
    # The buffer takes its next input only when it is asked for the output after.
    last = min(state.num_elements, state.emitted + size - 1 + state.buffer_size)
    return max(last - state.num_read, 0)


class WindowPass(Pass):
    """The positions of a window in the epoch of a plan that begins with it.

    Through a shuffle buffer TensorFlow's own shuffle says which inputs come out. Those that are
    read within the window come from the reading; those that the buffer held before it are taken
    as predicted.
    """

    def __init__(
        self,
        reading: Reading,
        order: ReaderOrder,
        plan: ResumePlan,
        *,
        size: int,
        window: Window,
        progress: Progress | None,
    ) -> None:
        elements = examples_of_host(reading.elements, plan.settings)
        reading = replace(reading, elements=elements)
        num_inputs = num_inputs_read(plan, window)
        super().__init__(reading, size=size, stop=num_inputs, progress=progress)
        self._order = order
        self._plan = plan
        self._num_outputs = window.stop - window.start

    def __iter__(self) -> Iterator[Int64s]:
        state = self._plan.shuffle
        if state is None:
            yield from super().__iter__()
            return
        inputs = _shuffled_inputs(state, self._num_outputs)
        pieces = list(super().__iter__())
        read = np.concatenate(pieces) if pieces else np.empty(0, np.int64)
        is_new = inputs >= state.num_read
        missing = np.flatnonzero(inputs >= state.num_read + len(read))
        if len(missing):
            inputs, is_new = inputs[: missing[0]], is_new[: missing[0]]
        codes = np.empty_like(inputs)
        codes[is_new] = read[inputs[is_new] - state.num_read]
        codes[~is_new] = self._order.reading(self._plan.epoch).codes_at(inputs[~is_new])
        self.num_done = len(codes)
        yield codes


def _shuffled_inputs(state: ShuffleState, count: int) -> Int64s:
    """Return the inputs that TensorFlow's shuffle hands out next, int64[count]."""
    tf = tensorflow()
    seeds = tf.constant((state.seeds.seed, state.seeds.seed2), tf.int64)
    numbers = tf.data.Dataset.range(state.num_elements)
    shuffled = kernel_shuffle(numbers, state.buffer_size, seeds).skip(state.emitted).take(count)
    pieces = list(shuffled.batch(1 << 16).as_numpy_iterator())
    return np.concatenate(pieces) if pieces else np.empty(0, np.int64)


# What a plan hands out, beyond the epoch it begins in: its batches, and the epochs that follow.


class BatchedPass(Pass):
    """A pass over batches of `batch` examples, `total` in all, that says which is of another size.

    The last batch holds what is left. `wrong` is the first batch of another size.
    """

    def __init__(
        self,
        reading: Reading,
        *,
        batch: int,
        total: int,
        stop: int,
        progress: Progress | None = None,
    ) -> None:
        super().__init__(reading, size=1, stop=stop, progress=progress)
        self.wrong: BrokenPromise | None = None
        self._batch = batch
        self._total = total
        self._num_handed_out = 0

    def _batches(self) -> Iterator[Any]:
        several = self._reading.elements.ragged_batch(max(1, BATCH_SIZE // self._batch))
        ragged_tensor = tensorflow().RaggedTensor
        for batches in several:
            if isinstance(batches, ragged_tensor):
                self._check(batches.row_lengths().numpy())
                yield batches.flat_values.numpy()
            else:  # of one size that tf.data knows
                names = batches.numpy()
                self._check(np.full(len(names), names.shape[1]))
                yield names.ravel()

    def _check(self, sizes: Int64s) -> None:
        starts = self._num_handed_out + np.cumsum(sizes) - sizes
        expected = np.clip(self._total - starts, 0, self._batch)
        wrong = np.flatnonzero(sizes != expected)
        if wrong.size and self.wrong is None:
            at = int(wrong[0])
            self.wrong = BrokenPromise(
                name="after_read.batch",
                promised=f"{expected[at]:,} examples in batch {starts[at] // self._batch:,}",
                found=f"{sizes[at]:,}",
            )
        self._num_handed_out += int(sizes.sum())


class PassesInTurn(Pass):
    """Passes one after the other, until one gives up or hands out less than it should."""

    def __init__(self, passes: Sequence[Pass], sizes: Sequence[int]) -> None:
        self.unknown = passes[0].unknown
        self.reason: str | None = None
        self.num_done = 0
        self._passes = passes
        self._sizes = sizes

    def __iter__(self) -> Iterator[Int64s]:
        for one, size in zip(self._passes, self._sizes, strict=True):
            before = self.num_done
            for codes in one:
                self.num_done += len(codes)
                yield codes
            self.reason = one.reason
            if self.reason is not None or self.num_done - before < size:
                return
