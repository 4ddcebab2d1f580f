"""The examples of one host in an evaluation, and one example to pad with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from shardctl.core.dataset.dataset import Dataset
from shardctl.core.hosts.host import Host
from shardctl.core.instructions.reads import Reads, reads_of
from shardctl.core.instructions.split_range import SplitRange
from shardctl.core.order.reads_of_host import sorted_reads
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.errors import DatasetError
from shardctl.planning.eval.eval import Evaluation
from shardctl.tfds.calls.host_calls import examples_of_host, split_of_host
from shardctl.tfds.imports import tensorflow, tensorflow_datasets
from shardctl.tfds.training.pipeline import Transform, tfds_config


@dataclass(frozen=True, kw_only=True)
class HostExamples:
    """What a host reads of the plan of an evaluation, by TFDS's own reader."""

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
        settings = self.plan.settings
        config = tfds_config(settings, self.plan.dataset, add_tfds_id=self.add_tfds_id)
        if settings.host_mode.refuses_files(len(self.plan.reads), self.host.count):
            config.experimental_interleave_sort_fn = _with_empty_rows(
                config.experimental_interleave_sort_fn, self.host.count
            )
        read = examples_of_host(self._read(self.plan.spec, settings, config), settings)
        known = tensorflow().data.experimental.assert_cardinality(self.num_examples)
        return self._transformed(read.apply(known))

    def one_example(self) -> Any:
        """Return the `tf.data.Dataset` of one example, of the files of this host if it has any."""
        settings = ReadSettings()
        config = tfds_config(settings, self.plan.dataset, add_tfds_id=self.add_tfds_id)
        config.try_autocache = False
        split, first = self._first()
        one = tensorflow_datasets().core.ReadInstruction(
            split, from_=first, to=first + 1, unit="abs"
        )
        return self._transformed(self._read(one, settings, config))

    def _read(self, spec: Any, settings: ReadSettings, config: Any) -> Any:
        return self.builder.as_dataset(
            split=split_of_host(spec, settings),
            read_config=config,
            decoders=self.decoders,
            **({"as_supervised": True} if self.as_supervised else {}),
        )

    def _transformed(self, examples: Any) -> Any:
        if self.transform is None:
            return examples
        return examples.map(
            self.transform, num_parallel_calls=tensorflow().data.AUTOTUNE, deterministic=True
        )

    def _first(self) -> tuple[str, int]:
        """Return the split and the id of the example to pad with."""
        plan = self.plan
        own = sorted_reads(plan.dataset, plan.resolved.ranges, plan.settings)
        rows = plan.settings.host_mode.own_instructions(len(own), self.host)
        own = own.select(np.arange(*rows.indices(len(own))))
        for reads in (own, plan.reads, _everything(plan.dataset)):
            filled = np.flatnonzero(reads.take)
            if len(filled):
                row = reads.select(filled[:1])
                return row.split_names[int(row.split[0])], int(row.first[0])
        raise DatasetError(
            f"{plan.dataset.title} has no examples at all, so nothing says what a batch looks like"
        )


def _everything(dataset: Dataset) -> Reads:
    whole = (SplitRange(split=s, start=0, stop=s.num_examples) for s in dataset.splits)
    return reads_of(dataset, [piece for piece in whole if piece.num_examples])


def _with_empty_rows(
    sort: Callable[[list[Any]], list[Any]] | None, num_hosts: int
) -> Callable[[list[Any]], list[Any]]:
    """Return a sort function that fills the file instructions up to one a host.

    TFDS refuses an `InputContext` with fewer, though the hosts that have one read as ever.
    """

    def filled(files: list[Any]) -> list[Any]:
        files = list(files) if sort is None else sort(files)
        return files + [files[0].replace(skip=0, take=0)] * (num_hosts - len(files))

    return filled
