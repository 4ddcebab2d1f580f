"""The order of a pipeline whose stages are as a script has them, mixtures of readers included."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from shardctl.core.arguments.checked import checked
from shardctl.core.arrays import Int64s, Int64sLike
from shardctl.core.dataset.dataset import Dataset
from shardctl.core.instructions.reads import Reads
from shardctl.core.order.epoch_reading import EpochReading
from shardctl.core.order.example_codes import ExampleCodes
from shardctl.core.order.flat import Flat
from shardctl.core.order.order import MAX_POSITIONS, Order
from shardctl.core.order.reader_node import ReaderNode
from shardctl.core.phrase import phrase
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.shuffle.buffer import ShuffleReplay
from shardctl.core.stages.stages import Pipeline, Read
from shardctl.core.text import counted, in_short
from shardctl.core.tfds_rules import INT64_MAX
from shardctl.errors import UsageError
