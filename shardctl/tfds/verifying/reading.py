"""What TensorFlow hands out, as pieces of codes: passes over a dataset, and where it gives up."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from shardctl.core.arrays import Int64s
from shardctl.core.progress import Progress
from shardctl.core.text import printable
from shardctl.errors import DatasetError, ShardctlError
from shardctl.tfds.imports import tensorflow

BATCH_SIZE = 1024


def _none_unknown(code: int) -> str:
    raise AssertionError(f"code {code}")


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A `tf.data.Dataset` of names or codes, single or in batches.

    `codes_of` makes codes (int64[n]) of a batch; `unknown` gives the name behind a code below 0.
    """

    elements: Any
    codes_of: Callable[[Any], Int64s]
    unknown: Callable[[int], str] = _none_unknown


class Pass:
    """One iteration of a reading as pieces of codes, until its end or until TensorFlow gives up.

    `reason` is then what TensorFlow says, in a line; `num_done` counts what was handed out. `size`
    examples at a time are taken from a reading of single ones: with many the pass is fast, with one
    it ends exactly where TensorFlow gave up. `stop` cuts it.
    """

    def __init__(
        self, reading: Reading, *, size: int, stop: int | None, progress: Progress | None = None
    ) -> None:
        self.unknown = reading.unknown
        self.reason: str | None = None
        self.num_done = 0
        self._reading = reading
        self._size = size
        self._stop = stop
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
        elements = self._reading.elements
        if not elements.element_spec.shape.rank:
            if self._stop is not None:
                elements = elements.take(self._stop)
            if self._size > 1:
                elements = elements.batch(self._size)
        yield from elements.as_numpy_iterator()


class FitPass(Pass):
    """What Keras trains on in epoch `pass_index` of `fit`, the earlier epochs read before."""

    def __init__(self, reading: Reading, *, pass_index: int) -> None:
        super().__init__(reading, size=1, stop=None)
        self._pass_index = pass_index

    def _batches(self) -> Iterator[Any]:
        tf = tensorflow()
        keras = tf.keras
        epochs: list[list[Any]] = []

        class Recorder(keras.Model):  # type: ignore[misc,name-defined]  # keras is not typed
            def train_step(self, batch: Any) -> dict[str, float]:
                tf.py_function(lambda names: epochs[-1].append(names.numpy()), [batch], [])
                return {"loss": 0.0}

        class EachEpoch(keras.callbacks.Callback):  # type: ignore[misc,name-defined]
            def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
                epochs.append([])

        model = Recorder()
        model.compile(run_eagerly=True)
        model.fit(
            self._reading.elements,
            shuffle=False,
            epochs=self._pass_index + 1,
            verbose=0,
            callbacks=[EachEpoch()],
        )
        yield from epochs[self._pass_index]


def iterate_whole(reading: Reading, times: int) -> None:
    """Read a dataset to its end so many times, for the seeds that this uses up."""
    elements = reading.elements
    if not elements.element_spec.shape.rank:
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
