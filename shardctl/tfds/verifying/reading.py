"""What TensorFlow hands out, as pieces of codes: passes over a dataset, and where it gives up."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.progress import Progress
from shardctl.core.stages.stages import (
    Batch,
    ChooseFromDatasets,
    Pipeline,
    SampleFromDatasets,
    Shared,
    Unbatch,
    Zip,
)
from shardctl.core.text import printable
from shardctl.errors import DatasetError, ShardctlError
from shardctl.tfds.imports import tensorflow

BATCH_SIZE = 1024

# What an element is: an example, a batch of such as are below, or a tuple.
Shape = tuple[str, tuple["Shape", ...]]
EXAMPLE: Shape = ("example", ())
BATCH: Shape = ("batch", (EXAMPLE,))


def shape_of(pipeline: Pipeline) -> Shape:
    """Return what the elements of a pipeline are.

    >>> from shardctl.core.stages.text import parse_stages
    >>> shape_of(parse_stages("zip(a | batch(2), b) | batch(3)"))
    ('batch', (('tuple', (('batch', (('example', ()),)), ('example', ()))),))
    """
    source = pipeline.source
    shape = EXAMPLE
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

    >>> flattened((np.array([1, 2]), np.array([3, 4])), ("batch", (("tuple", (EXAMPLE,) * 2),)))
    [1, 3, 2, 4]
    """
    kind, inner = shape
    if kind == "example":
        return [element.item() if isinstance(element, np.generic | np.ndarray) else element]
    if kind == "tuple":
        parts = zip(element, inner, strict=True)
        return [example for part, of_part in parts for example in flattened(part, of_part)]
    if inner[0] == EXAMPLE:
        values: list[Any] = element.tolist()
        return values
    tf = tensorflow()
    rows = len(tf.nest.flatten(element)[0])
    return [
        example
        for row in range(rows)
        for example in flattened(tf.nest.map_structure(lambda part: part[row], element), inner[0])  # noqa: B023
    ]


def _none_unknown(code: int) -> str:
    raise AssertionError(f"code {code}")


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A `tf.data.Dataset` of names or codes, single or within elements of a shape.

    `codes_of` makes codes (int64[n]) of a batch; `unknown` gives the name behind a code below 0.
    """

    elements: Any
    codes_of: Callable[[Any], Int64s]
    shape: Shape = EXAMPLE
    unknown: Callable[[int], str] = _none_unknown


class Pass:
    """One iteration of a reading as pieces of codes, until its end or until TensorFlow gives up.

    `reason` is then what TensorFlow says, in a line; `num_done` counts what was handed out. `size`
    examples at a time are taken from a reading of single ones: with many the pass is fast, with one
    it ends exactly where TensorFlow gave up. `stop` cuts it. With `fit_epoch` it is what Keras
    trains on in that epoch of `fit`, the earlier ones read before.
    """

    def __init__(
        self,
        reading: Reading,
        *,
        size: int = 1,
        stop: int | None,
        fit_epoch: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.unknown = reading.unknown
        self.reason: str | None = None
        self.num_done = 0
        self._reading = reading
        self._size = size
        self._stop = stop
        self._fit_epoch = fit_epoch
        self._progress = progress

    def __iter__(self) -> Iterator[Int64s]:
        try:
            for batch in self._batches():
                codes = self._reading.codes_of(batch)
                if self._stop is not None:
                    codes = codes[: self._stop - self.num_done]
                self.num_done += len(codes)
                if self._progress is not None:
                    self._progress.advance(len(codes))
                yield codes
                if self.num_done == self._stop:
                    return
        except tensorflow().errors.OpError as error:
            self.reason = reason_of(error)

    def _batches(self) -> Iterator[Any]:
        elements, shape = self._reading.elements, self._reading.shape
        if self._fit_epoch is not None:
            found = iter(fitted_epoch(elements, self._fit_epoch))
        elif shape == EXAMPLE:
            elements = elements if self._stop is None else elements.take(self._stop)
            yield from (
                elements.batch(self._size) if self._size > 1 else elements
            ).as_numpy_iterator()
            return
        else:
            found = elements.as_numpy_iterator()
        if shape == BATCH:
            yield from found
            return
        for element in found:
            yield np.array(flattened(element, shape), object)


def iterate_whole(reading: Reading, times: int) -> None:
    """Read a dataset to its end so many times, for the seeds that this uses up."""
    elements = reading.elements
    if reading.shape == EXAMPLE:
        elements = elements.batch(BATCH_SIZE)
    for _ in range(times):
        with contextlib.suppress(tensorflow().errors.OpError):
            for _ in elements:
                pass


@contextlib.contextmanager
def said_by_tensorflow(what: str) -> Iterator[None]:
    """Turn what TensorFlow and TFDS raise while a pipeline is built into a line.

    Raises:
        DatasetError: `what`, and the first line of what they say.
    """
    try:
        yield
    except ShardctlError:
        raise
    except Exception as error:
        raise DatasetError(f"{what}: {reason_of(error)}") from error


def reason_of(error: Exception) -> str:
    """Return the first line of an error without the names of TensorFlow's nodes."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    text = re.sub(r"^(\{\{[^}]*\}\} ?)+|( ?\[Op:\w+\])? ?(name: ?)?$", "", lines[0])
    return printable(text, 300)


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
