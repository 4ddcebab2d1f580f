"""What hosts share of the readers of a tf.data pipeline: one that reads alone, or a mixture.

Shares follow in closed form in each of the host modes, and what the stages make of a share is
played once for all hosts that have as much.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, cycle

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.base.phrase import refused
from shardctl.base.progress import Progress
from shardctl.base.tfds_rules import INT64_MAX
from shardctl.dataset.dataset import Dataset, Split, as_dataset
from shardctl.order.file_formats import refuse_open_hosts, resolved_spec
from shardctl.order.order import Origin
from shardctl.order.reader_order import ReaderOrder
from shardctl.order.sources import (
    in_one_dataset,
    refuse_other_sources,
    refuse_unread_spec,
    spec_of_reader,
)
from shardctl.order.staged import StagedOrder
from shardctl.settings.read_settings import ReadSettings, with_stand_in_seeds
from shardctl.settings.short_form import (
    Chain,
    chain_of,
    of_one_reader,
    settings_of_read,
    stages_of,
)
from shardctl.spec.host import HOST_MODES, HostMode
from shardctl.spec.host_reads import HostReads, SharedReads
from shardctl.spec.reads import joined, reads_of, sorted_rows
from shardctl.spec.subsplit import Resolved, SplitRange
from shardctl.stages import stages as tf_stages
from shardctl.stages.pipelines import last_batch, parts_of, readers_of, with_seeds
from shardctl.verbs.hosts.sharing import OfLoader, Run, Sharing, Strategy, run_of, strategy_of

_RUNS_PER_SECOND = 1000  # of stages over shares of different sizes


def sharing_of(dataset: Dataset, spec: str | None, settings: ReadSettings) -> Sharing:
    """Return what hosts share where a pipeline reads `spec` of `dataset`; a host is left out.

    Raises:
        UsageError: a bad spec, or stages in which hosts do not share what they read.
        UnpredictableOrderError: the loader leaves the order of the splits open.
    """
    if not settings.reader.shares_in_modes:
        return OfLoader(resolved_spec(dataset, spec), settings)
    refuse_unread_spec(spec, settings)
    alone, stages = of_one_reader(settings), stages_of(replace(settings, host=None))
    refuse_other_sources(stages)
    _refuse_one_host(stages)
    found = {}
    for read in readers_of(stages):
        own = dataset if read.data is None else as_dataset(read.data)
        resolved = resolved_spec(own, spec_of_reader(read, own, spec))
        found[read] = settings_of_read(settings, read), resolved
    sharing = OfReaders(settings if alone is None else alone[0], list(found.values()))
    sharing.reads_again = len(readers_of(stages)) > len(found)
    return sharing


def sharing_of_resolved(resolved: Resolved, settings: ReadSettings) -> Sharing:
    """Return what hosts share of a spec that is resolved, which each reader of stages reads."""
    if not settings.reader.shares_in_modes:
        return OfLoader(resolved, settings)
    return OfReaders(settings, [(settings, resolved)])


def _refuse_one_host(stages: tf_stages.Pipeline) -> None:
    for part in parts_of(stages):
        if isinstance(part, tf_stages.Shard) and part.num_shards > 1:
            raise refused(
                "{stages}: shard({}, {}) picks one host, and all are compared here; leave it "
                "out, for right behind the reader it is the strategy examples",
                part.num_shards,
                part.index,
            )
        if isinstance(part, tf_stages.Filter | tf_stages.Opaque):
            raise refused(
                "{stages}: how many examples of a host pass {} depends on which they are; ask "
                "simulate for one host after the other",
                part.name if isinstance(part, tf_stages.Filter) else part.call,
            )


class OfReaders(Sharing):
    """The readers of a tf.data pipeline, each of which hosts share in one of the host modes.

    reads_again: whether a reader stands more than once in the stages, and so reads its part anew.

    Raises:
        UsageError: more epochs than positions can be counted of.
    """

    reads_again = False

    def __init__(
        self, settings: ReadSettings, found: Sequence[tuple[ReadSettings, Resolved]]
    ) -> None:
        """`found` are the settings of each reader, in the order of the stages, and what it reads.

        Readers that are alike are there once; where there is one it stands for all.
        """
        self._own, self._found = zip(*found, strict=True)
        # That some hosts shuffle apart is what is to be told of a mixture.
        told = max(self._own, key=lambda own: (own.shuffles_files, own.shuffle_seed is None))
        shuffles = {"shuffle_files": told.shuffle_files, "shuffle_seed": told.shuffle_seed}
        self.settings = replace(settings, host=None, **shuffles)
        self.ways, self.judged = tuple(HOST_MODES), settings.host_by
        self._pipeline = stages_of(self.settings.followed)
        whole, parts = in_one_dataset(self._found)
        self._readers = []
        for own, (_, _, ranges) in zip(self._own, parts, strict=True):
            rows = reads_of(whole, ranges)
            rows = sorted_rows(rows, reverse=own.reverse, file_order=own.file_order)
            self._readers.append(SharedReads(rows, ranges))
        self._all, self.resolved = self._readers[0], self._found[0]
        self.num_readers = len(found)
        if self.num_readers > 1:
            ranges = tuple(piece for _, _, ranges in parts for piece in ranges)
            reads = [reader.reads for reader in self._readers]
            self._all = SharedReads(joined(reads), ranges, list(map(len, reads)))
            specs = [f"{part[1]}{one.spec}" for part, one in zip(parts, self._found, strict=True)]
            self.resolved = Resolved(
                dataset=whole,
                spec=", ".join(specs),
                ranges=ranges,
                warnings=tuple(dict.fromkeys(w for one in self._found for w in one.warnings)),
            )
        self.reads = self._all.reads
        total, epochs = self._all.num_examples, settings.epochs
        if total * epochs > INT64_MAX:
            raise refused("{epochs=} of {} examples is too many", total, epochs=epochs)
        batch, self._chain = last_batch(self._pipeline), self._chain_of(self._pipeline)
        if batch is not None:
            self.own_batch, self.drops = batch.size, batch.drop_remainder
        self.is_simple = batch is None and self._chain is not None and "repeat" not in self._chain

    def _chain_of(self, pipeline: tf_stages.Pipeline) -> Chain | None:
        """Return stages whose counts follow without playing them, None where they do not."""
        if self.num_readers > 1 or not isinstance(pipeline.source, tf_stages.Read):
            return None
        return chain_of(tf_stages.Pipeline(stages=pipeline.stages), reads_alike=True)

    def _refusal(self, mode: HostMode, sizes: Sequence[Int64s]) -> str | None:
        readers = zip(sizes, self._readers, strict=True)
        found = (refusal(mode, own, len(reader.reads)) for own, reader in readers)
        return next((text for text in found if text is not None), None)

    def refusal(self, num_hosts: int) -> str | None:
        """Return why TFDS does not read so on every host, None where it does."""
        mode = self.settings.host_mode
        return self._refusal(mode, [mode.num_examples(one, num_hosts) for one in self._readers])

    def strategy(self, way: str, num_hosts: int) -> Strategy:
        """Return what each host gets of an epoch, and its batches as the settings form them.

        Raises:
            UsageError: a reader of the stages that is there more than once.
        """
        if self.reads_again:
            raise refused(
                "{stages} read the same more than once, and hosts counts each reader once; "
                "simulate with {host} says what one host reads"
            )
        mode = HOST_MODES[way]
        for resolved in self._found:
            refuse_open_hosts(resolved, mode, num_hosts)
        columns = mode.host_reads(self._all, num_hosts)
        own = [columns]
        if self.num_readers > 1:
            own = [mode.host_reads(reader, num_hosts) for reader in self._readers]
        sizes = [one.num_examples for one in own]
        readers = zip(own, self._own, strict=True)
        alike = {_same_permutation(one, how) for one, how in readers if how.shuffles_files}
        return strategy_of(
            way,
            columns,
            self._batches(sizes),
            self._all.num_examples,
            refusal=self._refusal(mode, sizes),
            same_permutation=True if True in alike else False if alike == {False} else None,
        )

    def _batches(self, sizes: Sequence[Int64s]) -> Int64s | None:
        """Return the steps of hosts that get so many examples of each reader, None without any."""
        if self._chain is not None:
            return None if "batch" not in self._chain else _handed_out(self._chain, sizes[0])[1]
        pipeline, parts = self._pipeline, parts_of(self._pipeline)
        seeded = all(
            not isinstance(p, tf_stages.SampleFromDatasets) or p.seed is not None for p in parts
        )
        if seeded and self.settings.global_seed is None:
            pipeline = with_seeds(pipeline)  # no shuffle says how many there are
        shares, which = _distinct(sizes)
        orders = list(self._orders(pipeline, shares))
        if not all(order.has_steps and not order.is_endless for order in orders):
            return None
        return np.array([order.num_steps for order in orders], np.int64)[which]

    def _orders(self, pipeline: tf_stages.Pipeline, shares: Int64s) -> Iterator[StagedOrder]:
        """Yield the order of hosts that have so many examples of each reader, int64[n, readers]."""
        # A mixture is followed example by example, other stages in a step each.
        followed = shares.sum(axis=1) // _RUNS_PER_SECOND * (self.num_readers > 1)
        efforts = (1 + followed).tolist()
        progress = Progress(None, "sizes of hosts", sum(efforts), per_second=_RUNS_PER_SECOND)
        reads = list(dict.fromkeys(readers_of(pipeline)))
        settings = replace(self.settings.bare, stages=pipeline)
        for sizes, effort in zip(shares.tolist(), efforts, strict=True):
            split = Split(name="share", shard_lengths=(sum(sizes),))
            data = Dataset(name="shares", splits=(split,))
            readers = {}
            parts = zip(cycle(self._own), cycle(sizes), cycle(accumulate(sizes)))
            for read, (own, size, stop) in zip(reads, parts, strict=False):
                part = SplitRange(split=split, start=stop - size, stop=stop)
                how = with_stand_in_seeds(replace(own, host=None, pass_index=0))[0]
                readers[read] = ReaderOrder(data, [part], how)
            origin = Origin(name="share", dataset=data, spec="share")
            yield StagedOrder(data, readers, settings, origins=dict.fromkeys(reads, origin))
            progress.advance(effort)

    def run(self, num_hosts: int, batch: int, *, drop: bool) -> Run:
        """Return what each host hands out of one epoch in batches of one size."""
        mode = self.settings.host_mode
        for resolved in self._found:
            refuse_open_hosts(resolved, mode, num_hosts)
        sizes = [mode.num_examples(reader, num_hosts) for reader in self._readers]
        pipeline = in_batches(self._pipeline, batch, drop=drop)
        chain = self._chain_of(pipeline)
        if chain is not None:
            examples, steps = _handed_out(chain, sizes[0])
            rest = np.unique(examples % batch)
            return Run(
                num_examples=examples,
                num_steps=steps,
                sizes=(*rest[rest > 0].tolist(), *([batch] if examples.max() >= batch else [])),
                num_seen=int(np.minimum(sizes[0], examples).sum()),
            )
        shares, which = _distinct(sizes)
        orders, seen = list(self._orders(pipeline, shares)), []
        for order in orders:
            if order.is_endless:
                raise refused(
                    "{stages} have no end, so the evaluation has none either: no host is ever "
                    "done; end them with take(N), or leave out the repeat"
                )
            if order.shape != (batch,):
                raise refused(
                    "{stages} make elements of several examples before they batch them; an "
                    "evaluation is counted of stages that end in batches of single examples, "
                    "as in 'map | batch(64)'"
                )
            found = np.zeros(order.dataset.splits[0].num_examples, np.bool_)
            for codes in order.chunks(0, order.num_examples):
                found[codes] = True
            seen.append(int(found.sum()))
        return run_of(orders, which, int(np.array(seen)[which].sum()))


def in_batches(pipeline: tf_stages.Pipeline, size: int, *, drop: bool) -> tf_stages.Pipeline:
    """Return a pipeline whose last batch has a size; where there is none it is at the end.

    >>> from shardctl.stages.text import parse_stages, text_of
    >>> text_of(in_batches(parse_stages("batch(4, drop_remainder=True) | map"), 8, drop=False))
    'batch(8) | map'
    """
    batch, last = tf_stages.Batch(size=size, drop_remainder=drop), last_batch(pipeline)
    stages = [batch if stage is last else stage for stage in pipeline.stages]
    return replace(pipeline, stages=(*stages, *([batch] if last is None else [])))


def _handed_out(chain: Chain, sizes: Int64s) -> tuple[Int64s, Int64s]:
    """Return (examples, steps) of hosts whose reader yields so many, int64[num_hosts] each."""
    repeat, batch = chain.get("repeat"), chain.get("batch")
    total = sizes if repeat is None else sizes * repeat.count
    if batch is None:
        return total, total
    whole, rest = np.divmod(total, batch.size)
    if batch.drop_remainder:
        return total - rest, whole
    return total, whole + (rest > 0)


def _distinct(sizes: Sequence[Int64s]) -> tuple[Int64s, Int64s]:
    """Return the different shares of hosts, int64[n, readers], and which of them each host has."""
    rows, which = np.unique(np.stack(sizes, axis=1), axis=0, return_inverse=True)
    return rows, which.reshape(-1)


def refusal(mode: HostMode, num_examples: Int64s, num_file_instructions: int) -> str | None:
    """Return why TFDS does not read this way on every host, None where it does.

    Source: TFDS core/splits.py and core/dataset_builder.py ("corresponds to no data!").
    """
    if not num_examples.any():
        return "TFDS refuses to read a spec without examples"
    num_idle = int((num_examples == 0).sum())
    return mode.refusal(len(num_examples), num_idle=num_idle, num_files=num_file_instructions)


def _same_permutation(columns: HostReads, settings: ReadSettings) -> bool | None:
    """Whether hosts that read shuffle their instructions by the same permutation.

    TFDS shuffles a host's list with a buffer at least as large, so that the seed and the number of
    instructions fix the permutation (TFDS core/reader.py, _read_files).
    """
    if settings.shuffle_seed is None:
        return None
    counts = columns.num_instructions[columns.num_instructions > 0]
    return len(counts) == 0 or int(counts.min()) == int(counts.max())
