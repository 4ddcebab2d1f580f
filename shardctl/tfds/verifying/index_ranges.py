"""Index ranges in place of files: the pipeline in real tf.data where nothing can be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.dataset.dataset import Dataset
from shardctl.core.instructions.reads import Reads
from shardctl.core.instructions.split_range import SplitRange
from shardctl.core.instructions.subsplit import Resolved
from shardctl.core.order.example_codes import ExampleCodes
from shardctl.core.order.reader_order import ReaderOrder
from shardctl.core.order.reads_of_host import sorted_reads
from shardctl.core.resume.resume_plan import ResumePlan
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.settings.reads import settings_of_read
from shardctl.core.shuffle.seeds import KernelSeeds
from shardctl.core.stages.stages import Read
from shardctl.planning.order import order_of
from shardctl.planning.sources import ResolvedSources, sources
from shardctl.tfds.imports import tensorflow
from shardctl.tfds.stage_calls import StageCalls, examples_of_host, instructions_of_host
from shardctl.tfds.training.pipeline import behind_reader
from shardctl.tfds.training.records import kernel_shuffle
from shardctl.tfds.verifying.reading import Reading


@dataclass(frozen=True, kw_only=True)
class IndexRanges:
    """A range of codes for each file instruction; what comes out are codes, int64 scalars.

    The calls are those of TFDS core/reader.py, _read_files, with `tf.data.Dataset.range` for the
    file adapter; TFDS need not be installed.
    """

    resolved: Resolved
    codes: ExampleCodes

    @property
    def dataset(self) -> Dataset:
        """The dataset whose files the ranges stand for."""
        return self.resolved.dataset

    def pipeline(self, settings: ReadSettings) -> Reading:
        """Return the dataset that `shardctl.tfds.pipeline` would build on files."""
        tf = tensorflow()
        if settings.global_seed is not None:  # its ops without a seed are counted anew
            tf.random.set_seed(settings.global_seed)
        if isinstance(self.resolved, ResolvedSources) and settings.stages is not None:
            parts = sources(*self.resolved.given, settings).parts

            def read_of(read: Read) -> Any:
                dataset, ranges = parts[read]
                own = settings_of_read(settings, read)
                return self._read(dataset, ranges, own, asserts=read.has_cardinality)

            elements = StageCalls(reader=read_of).dataset(settings.stages)
        else:
            order = order_of(self.resolved, settings).of_reader
            read = self._read(self.dataset, self.resolved.ranges, settings)
            elements = behind_reader(read, settings, order)
        return Reading(elements=elements, codes_of=_codes)

    def _read(
        self,
        dataset: Dataset,
        ranges: Sequence[SplitRange],
        settings: ReadSettings,
        *,
        asserts: bool = True,
    ) -> Any:
        """Return what stands for the reader of ranges, behind its assertion where it has one."""
        tf = tensorflow()
        reads = sorted_reads(dataset, ranges, settings)
        rows = tf.data.Dataset.from_tensor_slices(self._columns(reads))
        rows = instructions_of_host(rows, settings)
        if settings.shuffles_files:
            rows = rows.shuffle(
                len(reads),
                seed=settings.shuffle_seed,
                reshuffle_each_iteration=settings.reshuffle,
            )
        if settings.repeat_files:
            rows = rows.repeat()
        read = _interleaved(rows, settings, ordered=dataset.ordered)
        knows_length = settings.host is None or settings.host_mode.knows_length
        if asserts and knows_length and not settings.repeat_files:
            read = read.apply(tf.data.experimental.assert_cardinality(reads.num_examples))
        return read

    def planned(self, plan: ResumePlan, reads: Reads | None = None) -> Reading:
        """Return what a fresh reader makes of the instructions of a plan, or of a part of them."""
        reads = plan.instructions if reads is None else reads
        rows = tensorflow().data.Dataset.from_tensor_slices(self._columns(reads))
        ordered = self.dataset.ordered
        return Reading(elements=_interleaved(rows, plan.settings, ordered=ordered), codes_of=_codes)

    def epoch(self, order: ReaderOrder, epoch: int) -> Reading:
        """Return what a reader reads in an epoch, by itself, with the seeds of that epoch."""
        settings = order.settings
        rows = tensorflow().data.Dataset.from_tensor_slices(self._columns(order.reads))
        if settings.shuffles_files and len(order.reads) > 1:
            rows = kernel_shuffle(rows, len(order.reads), _pair(order.seeds.of_files(epoch)))
        read = _interleaved(rows, settings, ordered=self.dataset.ordered)
        read = examples_of_host(read, settings)
        if order.num_buffered is not None:
            read = kernel_shuffle(read, order.num_buffered, _pair(order.seeds.of_buffer(epoch)))
        return Reading(elements=read, codes_of=_codes)

    def _columns(self, reads: Reads) -> tuple[Int64s, Int64s]:
        first = self.codes.first_codes(reads)
        return first, first + reads.take


def _codes(batch: Any) -> Int64s:
    codes: Int64s = np.atleast_1d(batch).astype(np.int64)
    return codes


def _pair(seeds: KernelSeeds) -> Any:
    return tensorflow().constant((seeds.seed, seeds.seed2), tensorflow().int64)


def _interleaved(rows: Any, settings: ReadSettings, *, ordered: bool) -> Any:
    tf = tensorflow()
    return rows.interleave(
        tf.data.Dataset.range,
        cycle_length=settings.cycle_length(ordered=ordered),
        block_length=settings.block,
        num_parallel_calls=tf.data.AUTOTUNE,
        deterministic=True,
    )
