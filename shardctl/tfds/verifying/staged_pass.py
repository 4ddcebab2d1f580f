"""Passes over pipelines with stages, whose elements may be batches, tuples, or batches of such."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from shardctl.core.order.staged import StagedOrder
from shardctl.core.stages.stages import (
    Batch,
    ChooseFromDatasets,
    Pipeline,
    SampleFromDatasets,
    Shared,
    Unbatch,
    Zip,
)
from shardctl.tfds.imports import tensorflow
from shardctl.tfds.verifying.reading import Pass, Reading

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
