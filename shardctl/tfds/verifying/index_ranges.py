"""Index ranges in place of files: the pipeline in real tf.data where nothing can be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.dataset.dataset import Dataset
from shardctl.core.instructions.split_range import SplitRange
from shardctl.core.instructions.subsplit import Resolved
from shardctl.core.order.example_codes import ExampleCodes
from shardctl.core.order.reads_of_host import sorted_reads
from shardctl.core.resume.resume_plan import ResumePlan
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.settings.reads import settings_of_read
from shardctl.core.settings.short_form import stages_of
from shardctl.core.stages.stages import Read
from shardctl.planning.order import order_of
from shardctl.planning.sources import ResolvedSources, sources
from shardctl.tfds.imports import tensorflow
from shardctl.tfds.stage_calls import StageCalls, instructions_of_host
from shardctl.tfds.training.fitted_plan import fitted
from shardctl.tfds.training.records import RangeReader
from shardctl.tfds.training.resume import dataset_of_plan
from shardctl.tfds.verifying.reading import Reading, shape_of


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
        parts: Mapping[Read, tuple[Dataset, Sequence[SplitRange]]] = {}
        if isinstance(self.resolved, ResolvedSources):
            parts = sources(*self.resolved.given, settings).parts

        def read_of(read: Read) -> Any:
            dataset, ranges = parts.get(read, (self.dataset, self.resolved.ranges))
            own = settings_of_read(settings, read)
            return self._read(dataset, ranges, own, asserts=read.has_cardinality)

        pipeline = stages_of(settings, lambda: order_of(self.resolved, settings).order.num_examples)
        elements = StageCalls(reader=read_of).dataset(pipeline)
        return Reading(elements=elements, codes_of=_codes, shape=shape_of(pipeline))

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
        reader = self._reader(settings, ordered=dataset.ordered)
        rows = instructions_of_host(reader.rows(reads), settings)
        if settings.shuffles_files:
            rows = rows.shuffle(
                len(reads),
                seed=settings.shuffle_seed,
                reshuffle_each_iteration=settings.reshuffle,
            )
        if settings.repeat_files:
            rows = rows.repeat()
        read = reader.interleaved(rows)
        knows_length = settings.host is None or settings.host_mode.knows_length
        if asserts and knows_length and not settings.repeat_files:
            read = read.apply(tf.data.experimental.assert_cardinality(reads.num_examples))
        return read

    def planned(self, plan: ResumePlan) -> Reading:
        """Return what a fresh reader makes of the instructions of a plan."""
        reader = self._reader(plan.settings, ordered=self.dataset.ordered)
        return Reading(elements=reader.read(plan.instructions), codes_of=_codes)

    def resumed(self, plan: ResumePlan, host: int | None) -> Reading:
        """Return what `shardctl.tfds.resume` would read, to the end of all epochs."""
        here = fitted(self.dataset, plan, plan.settings.host if host is None else host)
        elements = dataset_of_plan(here, here.reader(RangeReader))
        return Reading(elements=elements, codes_of=_codes)

    def _reader(self, settings: ReadSettings, *, ordered: bool) -> RangeReader:
        cycle = settings.cycle_length(ordered=ordered)
        return RangeReader(codes=self.codes, cycle=cycle, block=settings.block)


def _codes(batch: Any) -> Int64s:
    codes: Int64s = np.atleast_1d(batch).astype(np.int64)
    return codes
