"""The order of a pipeline whose stages are as a script has them, mixtures of readers included."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby

import numpy as np

from shardctl.core.arguments.checked import checked
from shardctl.core.arrays import Int64s, Int64sLike
from shardctl.core.dataset.dataset import Dataset
from shardctl.core.instructions.reads import Reads, joined
from shardctl.core.iteration.build import build
from shardctl.core.iteration.generator import ScriptSeeds
from shardctl.core.iteration.iteration import Node
from shardctl.core.iteration.passes import iteration_of_pass
from shardctl.core.order.combined_codes import CombinedCodes
from shardctl.core.order.epoch_reading import EpochReading
from shardctl.core.order.flat import Flat, groups
from shardctl.core.order.order import MAX_POSITIONS, Order
from shardctl.core.order.reader_node import ReaderNode
from shardctl.core.order.tickets import Tickets
from shardctl.core.phrase import phrase
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.shuffle.buffer import ShuffleReplay
from shardctl.core.stages.readers import readers_of
from shardctl.core.stages.stages import Pipeline, Read
from shardctl.core.text import counted, in_short
from shardctl.core.tfds_rules import INT64_MAX
from shardctl.errors import UsageError

_NONE = np.empty(0, np.int64)
_PIECE = 1 << 18  # examples of whole elements that are looked up at once


class StagedOrder(Order):
    """Every example of one pass over a pipeline with stages, from 0, batches taken apart.

    `readers` are the orders of one epoch of what each reader of the stages reads, all over the
    splits of `dataset`. The epoch of an example is which reading of its reader it comes from,
    counted in this pass from 0; what a cache hands out again counts as read again. A step is an
    element of the pipeline, where elements are batches.

    A pipeline without end is followed as far as it is asked about, and `num_examples` is then a
    bound of what can be asked.

    Raises:
        UnpredictableOrderError: a stage leaves this order open; the text names it.
    """

    def __init__(
        self, dataset: Dataset, readers: Mapping[Read, Order], settings: ReadSettings
    ) -> None:
        assert settings.stages is not None
        self.dataset = dataset
        self.settings = settings
        self.pipeline: Pipeline = settings.stages
        self._readers = [readers[read] for read in readers_of(self.pipeline)]
        self._ranges = tuple(piece for reader in self._readers for piece in reader.ranges)
        self.codes = CombinedCodes(dataset, [reader.codes for reader in self._readers])
        for reader in self._readers:
            reader.codes = self.codes
        self._epoch_bases: list[int] | None = None
        self._nodes: list[ReaderNode] = []
        self._node = self._built()
        root = iteration_of_pass(self._node, settings.pass_index, loop=settings.loop)
        root.check()
        self._flat = Flat(root, is_endless=self._node.is_infinite)
        root.check()
