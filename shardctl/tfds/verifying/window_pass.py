"""A stretch in the middle of an order, read by a plan that begins there, also through a buffer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.order.order import Order
from shardctl.core.progress import Progress
from shardctl.core.resume.resume_plan import ResumePlan, ShuffleState
from shardctl.planning.verify import Window
from shardctl.tfds.calls.host_calls import examples_of_host
from shardctl.tfds.imports import tensorflow
from shardctl.tfds.training.records import kernel_shuffle
from shardctl.tfds.verifying.reading import Pass, Reading


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
        order: Order,
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
