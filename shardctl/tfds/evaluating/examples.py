"""The examples of one host in an evaluation, and one example to pad with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from shardctl.core.hosts.host import Host
from shardctl.core.instructions.reads import Reads, reads_of
from shardctl.core.instructions.split_range import SplitRange
from shardctl.core.order.example_codes import ExampleCodes
from shardctl.core.order.reads_of_host import sorted_reads
from shardctl.errors import DatasetError
from shardctl.planning.eval.evaluation import Evaluation
from shardctl.tfds.calls.host_calls import examples_of_host
from shardctl.tfds.imports import tensorflow
from shardctl.tfds.training.pipeline import Transform
from shardctl.tfds.training.records import RecordReader


@dataclass(frozen=True, kw_only=True)
class HostExamples:
    """What a host reads of the plan of an evaluation, as TFDS's reader reads and decodes it."""

    builder: Any
    plan: Evaluation
    host: Host
    transform: Transform | None
    decoders: Any
    add_tfds_id: bool
    as_supervised: bool

    @cached_property
    def num_examples(self) -> int:
        """Number of examples of this host, 0 where there are fewer examples than hosts."""
        return int(self.plan.num_examples[self.host.index])

    @cached_property
    def num_steps(self) -> int:
        """Number of batches that every host makes."""
        return int(self.plan.num_steps("pad")[self.host.index])

    def examples(self) -> Any:
        """Return the `tf.data.Dataset` of this host's examples, in the order of `simulate`."""
        if not self.num_examples:
            return self.one_example().take(0)
        records = examples_of_host(self._reader.read(self._own), self.plan.settings)
        return self._decoded(records, self.num_examples)

    def one_example(self) -> Any:
        """Return the `tf.data.Dataset` of one example, of the files of this host if it has any."""
        for reads in (self._own, self.plan.reads, self._readable):
            filled = np.flatnonzero(reads.take)
            if len(filled):
                first = replace(reads.select(filled[:1]), take=np.ones(1, np.int64))
                return self._decoded(self._reader.read(first), 1)
        raise DatasetError(
            f"{self.plan.dataset.title} has no examples at all, so nothing says what a batch "
            "looks like"
        )

    @cached_property
    def _own(self) -> Reads:
        """The file instructions of this host, of `ds.shard` those of all."""
        plan = self.plan
        reads = sorted_reads(plan.dataset, plan.resolved.ranges, plan.settings)
        rows = plan.settings.host_mode.own_instructions(len(reads), self.host)
        return reads.select(np.arange(*rows.indices(len(reads))))

    @cached_property
    def _readable(self) -> Reads:
        """What the spec reads; where that is nothing, whatever there is of the dataset."""
        plan = self.plan
        if plan.total:
            return plan.reads
        whole = (SplitRange(split=s, start=0, stop=s.num_examples) for s in plan.dataset.splits)
        return reads_of(plan.dataset, [piece for piece in whole if piece.num_examples])

    @cached_property
    def _reader(self) -> RecordReader:
        # Not `as_dataset`: its decoding keeps no order where a user's options let it go, and hosts
        # of `ds.shard` that read each another one would not share the examples.
        plan, reads = self.plan, self._readable
        names = [reads.split_names[split] for split in dict.fromkeys(reads.split.tolist())]
        return RecordReader(
            builder=self.builder,
            codes=ExampleCodes(plan.dataset, names, reads),
            cycle=plan.settings.cycle_length(ordered=plan.dataset.ordered),
            block=plan.settings.block,
            with_ids=self.add_tfds_id,
        )

    def _decoded(self, records: Any, num_records: int) -> Any:
        known = tensorflow().data.experimental.assert_cardinality(num_records)
        examples = self._reader.decode(records.apply(known), self.decoders)
        if self.as_supervised:
            examples = examples.map(self._supervised)
        if self.transform is None:
            return examples
        return examples.map(
            self.transform, num_parallel_calls=tensorflow().data.AUTOTUNE, deterministic=True
        )

    def _supervised(self, example: Any) -> Any:
        """Return the features that `as_supervised` of TFDS returns, in its structure."""
        keys = self.builder.info.supervised_keys
        return tensorflow().nest.map_structure(example.__getitem__, keys)
