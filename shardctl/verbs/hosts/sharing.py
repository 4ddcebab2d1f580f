"""What hosts share of a pipeline, and what each of them gets, for `hosts` and for `eval`.

Another loader than TFDS's reader shares by its own rule, and each host's order is looked through.
Of the readers of a tf.data pipeline shares follow in closed form in each of the host modes, and
what the stages make of a share is played once for all hosts that have as much.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, cycle
from typing import Any, TypeAlias

import numpy as np

from shardctl.base.arrays import EqualByItems, Int64s, counting, exact_sum
from shardctl.base.phrase import refused
from shardctl.base.progress import Progress
from shardctl.base.text import counted, in_short
from shardctl.base.tfds_rules import INT64_MAX
from shardctl.dataset.dataset import Dataset, Split, as_dataset
from shardctl.order import resolved_spec, sources
from shardctl.order.loader_order import LoaderOrder, loader_version
from shardctl.order.order import Order, Origin
from shardctl.order.plan_order import as_warnings, order_of
from shardctl.order.reader_order import ReaderOrder
from shardctl.order.staged import StagedOrder
from shardctl.settings.read_settings import ReadSettings, with_stand_in_seeds
from shardctl.settings.short_form import Chain, chain_of, of_one_reader, settings_of_read, stages_of
from shardctl.spec.host import HOST_MODES, Host, HostMode
from shardctl.spec.host_reads import HostReads, SharedReads
from shardctl.spec.reads import joined, reads_of, sorted_rows
from shardctl.spec.subsplit import Resolved, SplitRange
from shardctl.stages import stages as tf_stages
from shardctl.stages.pipelines import last_batch, parts_of, readers_of, with_seeds

_EVEN = 1.01  # without a batch size hosts count as even when the busiest has 1% over the mean

OUTSTANDING = 1.0005  # times the mean: from what rounds to 0.1% over it a straggler is named


@dataclass(frozen=True, kw_only=True)
class Load:
    """How a quantity is spread over the hosts: its extremes, and the straggler.

    `straggler` is the first host that has the most; `imbalance` is max / mean over all hosts, the
    idle ones included: 1.0 where all have the same, None where there is nothing.
    """

    min: int
    max: int
    total: int
    straggler: int
    imbalance: float | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Strategy(EqualByItems):
    """One way of splitting a spec among hosts, and what it comes to.

    read_amplification: examples that all hosts take from disk over examples in the spec; None for
        a spec without examples.
    idle_hosts: number of hosts that get no examples.
    shared_files: number of files that more than one host opens.
    num_batches: of the whole pass, None without a batch size.
    same_permutation: whether all hosts open their files in the same permutation of places, None
        where files are not shuffled or no seed fixes how.
    refusal: why TFDS does not read this way, None where it does.
    columns, batches: the figures of each host, None in a sweep.
    num_repeated: examples that a loader yields again as padding; num_left_out: to no host.
    """

    name: str
    num_examples: Load
    num_bytes: Load | None
    num_files: Load
    num_batches: Load | None
    read_amplification: float | None
    shared_files: int
    idle_hosts: int
    columns: HostReads | None
    batches: Int64s | None
    refusal: str | None = None
    same_permutation: bool | None = None
    num_repeated: int = 0
    num_left_out: int = 0

    @property
    def imbalance(self) -> float | None:
        """Examples of the busiest host over those of the mean one."""
        return self.num_examples.imbalance

    @property
    def is_uneven(self) -> bool:
        """Whether hosts make different numbers of batches; by examples where no batch is given."""
        if self.num_batches is not None:
            return self.num_batches.min != self.num_batches.max
        return (self.imbalance or 1.0) > _EVEN

    def __repr__(self) -> str:
        return in_short(
            self,
            self.name,
            f"{self.num_examples.min:,} to {self.num_examples.max:,} examples a host",
            f"{counted(self.idle_hosts, 'host')} idle" if self.idle_hosts else "",
            "refused by TFDS" if self.refusal else "",
        )


def strategy_of(
    name: str, columns: HostReads, batches: Int64s | None, num_examples: int, **figures: Any
) -> Strategy:
    """Return what the hosts' shares of so many examples come to; `figures` are fields besides."""
    return Strategy(
        name=name,
        num_examples=_load(columns.num_examples),
        num_bytes=None if columns.num_bytes is None else _load(columns.num_bytes),
        num_files=_load(columns.num_files),
        num_batches=None if batches is None else _load(batches),
        read_amplification=exact_sum(columns.num_read) / num_examples if num_examples else None,
        shared_files=columns.num_shared_files,
        idle_hosts=int((columns.num_examples == 0).sum()),
        columns=columns,
        batches=batches,
        **figures,
    )


def _load(values: Int64s) -> Load:
    total = exact_sum(values)
    most = int(values.max())
    return Load(
        min=int(values.min()),
        max=most,
        total=total,
        straggler=int(values.argmax()),
        imbalance=most * len(values) / total if total else None,
    )


_MOST_ROWS = 1 << 25  # files of all hosts of a loader together
_MOST_EXAMPLES = 1 << 31
_PER_SECOND = 3_000_000  # examples of a loader whose files are found


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """What hosts yield in batches of one size: int64[num_hosts] each.

    sizes: the different sizes of a batch. num_seen: different examples that any host yields.
    partial_is_last: whether only the last batch of a host may be smaller than others.
    num_padding: padding that the stages yield, which is no example.
    """

    num_examples: Int64s
    num_steps: Int64s
    sizes: tuple[int, ...]
    num_seen: int
    partial_is_last: bool = True
    num_padding: int = 0


def run_of(
    orders: Sequence[Order], which: Int64s, num_seen: int, num_padding: Sequence[int] = (0,)
) -> Run:
    """Return what hosts yield, each of which has one of the orders, int64[num_hosts].

    num_padding: how much of each order is padding, which is no example.
    """
    padding = np.array(num_padding)
    widths = [_widths(order) for order in orders]
    most = max((int(one.max(initial=0)) for one in widths), default=0)
    # `which` gives each host its order: hosts with equal shares have one.
    return Run(
        num_examples=(np.array([one.num_examples for one in orders]) - padding)[which],
        num_steps=np.array([order.num_steps for order in orders], np.int64)[which],
        sizes=tuple(np.unique(np.concatenate(widths)).tolist()),
        num_seen=num_seen,
        partial_is_last=all(bool((one[:-1] == most).all()) for one in widths),
        num_padding=int((padding + np.zeros(len(orders), np.int64))[which].sum()),
    )


def _widths(order: Order) -> Int64s:
    """Return how many examples each batch of an order has, int64[steps]."""
    widths = np.zeros(order.num_steps or 0, np.int64)
    # In pieces, since positions are looked up as arrays; a batch may span two of them.
    for positions in counting(0, order.num_examples):
        steps, _ = order.steps_of(positions)
        # Examples of each batch in this piece, added to what the piece before had of it.
        found = np.bincount(steps - steps[0])
        widths[steps[0] : steps[0] + len(found)] += found
    return widths


def call_of_hosts(settings: ReadSettings) -> str:
    """Return what shares the examples of another loader among hosts.

    >>> call_of_hosts(ReadSettings(loader="torch"))
    'DistributedSampler'
    """
    if settings.stages is not None:
        return "--stages"
    return settings.reader.shares_by or settings.reader.title


class OfLoader:
    """What the processes of another loader share, in its own way.

    settings: how it is read, in the short form where there is one. resolved: what is read.
    reads: the same as file instructions, of all hosts. ways: the names of the ways to share, of
        which the settings choose `judged`.
    num_readers: how many readers of a mixture are shared one by one.
    own_batch: examples of a host's batch where stages form it; `drops` says whether they drop a
        partial one. is_simple: whether a host yields its share once, one example after the
        other, so that another batch or number of hosts is a matter of arithmetic.

    Raises:
        UsageError: an unknown version of the library, or it shares nothing.
    """

    num_readers = 1
    own_batch: int | None = None
    drops = is_simple = False

    def __init__(self, resolved: Resolved, settings: ReadSettings) -> None:
        if "host" not in settings.reader.takes:
            raise refused("{loader=} shares nothing among hosts", loader=settings.loader)
        self._version = version = loader_version(settings)
        self.settings = replace(settings, host=None, loader_version=version.version)
        kept = resolved_spec.as_read_by(resolved, settings)
        said = (*version.warnings, *as_warnings(version.assumptions))
        self.resolved = replace(kept, warnings=(*kept.warnings, *said))
        self.reads = reads_of(resolved.dataset, resolved.ranges)
        self.judged = call_of_hosts(settings)
        self.ways = (self.judged,)
        if settings.stages is not None:
            self.own_batch = next(self._orders(1)).batch_size

    def _orders(self, num_hosts: int, **changed: object) -> Iterator[LoaderOrder]:
        """Yield the order of each host under changed settings.

        Raises:
            UsageError: too many hosts for so many files; the loader refuses the settings.
            UnpredictableOrderError: the loader, or the order of the splits, is nondeterministic.
        """
        resolved_spec.refuse_open_splits(self.resolved)
        reads = self.reads
        for index in range(num_hosts):
            host = Host(index=index, count=num_hosts) if num_hosts > 1 else None
            settings = replace(self.settings, host=host, **changed)  # type: ignore[arg-type]
            order = order_of(self.resolved, settings, self._version).order
            assert isinstance(order, LoaderOrder)
            if order.is_endless:
                raise refused(
                    "{stages} have no end, so hosts have no share that ends; end them, as with a "
                    "repeat of a number of epochs"
                )
            if settings.stages is not None and order.epoch_size < order.num_examples:
                raise refused("hosts are compared in one epoch: leave repeat out of {stages}")
            if num_hosts * len(reads) > _MOST_ROWS or reads.num_examples > _MOST_EXAMPLES:
                raise refused(
                    "{hosts=} of {:,} examples in {:,} files each are too many to look at one "
                    "by one; give fewer {hosts}, or a part of the spec",
                    reads.num_examples,
                    len(reads),
                    hosts=num_hosts,
                )
            yield order

    def _counts(self, orders: Sequence[LoaderOrder]) -> tuple[list[Int64s], int]:
        """Return how many examples of each row the hosts yield, and how many different ones.

        int64[rows] each; one that is yielded again counts again.
        """
        progress = Progress(
            "examples of the hosts",
            len(orders) + sum(order.num_examples for order in orders),
            per_second=_PER_SECOND,
            instead="give fewer --hosts",
        )
        # Rows are consecutive ranges of indices; the row of an index is the first that ends beyond
        # it.
        stops = np.cumsum(self.reads.take)
        seen = np.zeros(self.reads.num_examples, np.bool_)
        found = []
        for order in orders:
            counts = np.zeros(len(stops), np.int64)
            for positions in counting(0, order.num_examples):
                indices = order.indices_at(positions)
                seen[indices] = True
                # side="right": an index equal to a stop belongs to the next row.
                rows = np.searchsorted(stops, indices, side="right")
                counts += np.bincount(rows, minlength=len(stops))
                progress.advance(len(positions))
            found.append(counts)
        return found, int(seen.sum())

    def strategy(self, way: str, num_hosts: int) -> Strategy:
        """Return what each host gets of an epoch, and its batches as the settings form them."""
        reads, settings = self.reads, self.settings
        # Where hosts share batches, no host has a partial one that is dropped.
        drops = settings.drop_remainder and settings.reader.deals_batches
        orders = list(self._orders(num_hosts, epochs=1, drop_remainder=drops))
        counts, num_seen = self._counts(orders)
        # Pairs (host, row) in which anything is read.
        host, row = np.nonzero(counts)
        take = np.concatenate([one[one > 0] for one in counts])
        rows = replace(reads.select(row), skip=np.zeros_like(take), take=take)
        columns = SharedReads(rows).by_rows(host, num_hosts)
        # Some loaders read more than they yield.
        taken = [(order.sequence.num_read, order.num_examples) for order in orders]
        num_read = np.array([most if read is None else read for read, most in taken], np.int64)
        has_steps = settings.batch or self.own_batch
        batches = [order.num_steps for order in self._orders(num_hosts)] if has_steps else None
        return strategy_of(
            way,
            replace(columns, num_read=num_read),
            None if batches is None else np.array(batches, np.int64),
            reads.num_examples,
            num_repeated=int(take.sum()) - num_seen,
            num_left_out=reads.num_examples - num_seen,
            refusal=None if reads.num_examples else "there are no examples",
        )

    def run(self, num_hosts: int, batch: int, *, drop: bool) -> Run:
        """Return what each host yields of one epoch in batches of one size."""
        made = {"batch": batch, "drop_remainder": drop} if self.own_batch is None else {}
        orders = list(self._orders(num_hosts, epochs=1, **made))
        if drop and not made:
            return self._without_rests(orders, batch)
        return run_of(orders, np.arange(num_hosts), self._counts(orders)[1])

    def _without_rests(self, orders: Sequence[LoaderOrder], batch: int) -> Run:
        """Return what is left of batches that a chain forms where they are cut to whole ones."""
        seen = np.zeros(self.reads.num_examples, np.bool_)
        kept = []
        for order in orders:
            widths = _widths(order)
            kept.append(widths // batch * batch)
            within = np.arange(widths.sum()) - np.repeat(np.cumsum(widths) - widths, widths)
            positions = np.flatnonzero(within < np.repeat(kept[-1], widths))
            seen[order.indices_at(positions)] = True
        return Run(
            num_examples=np.array([one.sum() for one in kept], np.int64),
            num_steps=np.array([np.count_nonzero(one) for one in kept], np.int64),
            sizes=tuple({int(size) for one in kept for size in one if size}),
            num_seen=int(seen.sum()),
        )

    def refusal(self, num_hosts: int) -> str | None:
        """Return why TFDS does not read so on every host: it does not read at all."""
        return None

    def assumptions(self, num_hosts: int, batch: int) -> tuple[str, ...]:
        """Return as warnings what the counts depend on though it is not stated."""
        if not self.settings.reader.shares_are_assumed:
            return ()
        made = {"batch": batch} if self.own_batch is None else {}
        return as_warnings(next(self._orders(num_hosts, **made)).assumptions)


# What hosts share of the readers of a tf.data pipeline: one that reads alone, or a mixture.
#
# Shares follow in closed form in each of the host modes, and what the stages make of a share is
# played once for all hosts that have as much.

_RUNS_PER_SECOND = 1000  # of stages over shares of different sizes


def sharing_of(dataset: Dataset, spec: str | None, settings: ReadSettings) -> Sharing:
    """Return what hosts share where a pipeline reads `spec` of `dataset`; a host is left out.

    Raises:
        UsageError: a bad spec, or stages in which hosts do not share what they read.
        UnpredictableOrderError: the order of the splits is nondeterministic.
    """
    sources.refuse_unread_spec(spec, settings)
    if not settings.reader.on_tf_data:
        return OfLoader(sources.resolved_reading(dataset, spec, settings), settings)
    alone, stages = of_one_reader(settings), stages_of(replace(settings, host=None))
    sources.refuse_other_sources(stages)
    _refuse_one_host(stages)
    found = {}
    for read in readers_of(stages):
        own = dataset if read.data is None else as_dataset(read.data)
        # Equal readers are one entry; a second use reads the same share again.
        resolved = resolved_spec.resolved_spec(own, sources.spec_of_reader(read, own, spec))
        found[read] = settings_of_read(settings, read), resolved
    sharing = OfReaders(settings if alone is None else alone[0], list(found.values()))
    sharing.reads_again = len(readers_of(stages)) > len(found)
    return sharing


def sharing_of_resolved(resolved: Resolved, settings: ReadSettings) -> Sharing:
    """Return what hosts share of a spec that is resolved, which each reader of stages reads."""
    if not settings.reader.on_tf_data:
        return OfLoader(resolved, settings)
    return OfReaders(settings, [(settings, resolved)])


def _refuse_one_host(stages: tf_stages.Pipeline) -> None:
    for part in parts_of(stages):
        if isinstance(part, tf_stages.Shard) and part.num_shards > 1:
            raise refused(
                "{stages}: shard({}, {}) selects one host, and all are compared here; leave it out",
                part.num_shards,
                part.index,
            )
        if isinstance(part, tf_stages.ByData | tf_stages.Opaque):
            raise refused(
                "{stages}: how many examples of a host pass {} depends on which they are; simulate "
                "the hosts one by one",
                part.called,
            )


class OfReaders:
    """The readers of a tf.data pipeline, each of which hosts share in one of the host modes.

    reads_again: whether a reader stands more than once in the stages, and so reads its part anew.

    Raises:
        UsageError: more epochs than positions can be counted of.
    """

    reads_again = False
    own_batch: int | None = None
    drops = False

    def __init__(
        self, settings: ReadSettings, found: Sequence[tuple[ReadSettings, Resolved]]
    ) -> None:
        """`found` are the settings of each reader, in the order of the stages, and what it reads.

        Readers that are alike are there once; where there is one it stands for all.
        """
        self._own, self._found = zip(*found, strict=True)
        # Of a mixture the reader whose files some hosts shuffle apart is the one to warn of.
        worst = max(self._own, key=lambda own: (own.shuffles_files, own.shuffle_seed is None))
        self.settings = replace(
            settings, host=None, shuffle_files=worst.shuffle_files, shuffle_seed=worst.shuffle_seed
        )
        self.ways, self.judged = tuple(HOST_MODES), settings.host_by
        self._pipeline = stages_of(self.settings.followed)
        whole, parts = sources.in_one_dataset(self._found)
        self._readers = []
        for own, (_, _, ranges) in zip(self._own, parts, strict=True):
            rows = reads_of(whole, ranges)
            rows = sorted_rows(rows, reverse=own.reverse, file_order=own.file_order)
            self._readers.append(SharedReads(rows, ranges))
        self._all, self.resolved = self._readers[0], self._found[0]
        self.num_readers = len(found)
        # A mixture: all readers in one dataset, for totals; each by itself, for shares.
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
        # Positions are int64.
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
        """Return why TFDS does not read so many examples on every host, None where it does.

        Source: TFDS core/splits.py and core/dataset_builder.py ("corresponds to no data!").
        """
        for each, reader in zip(sizes, self._readers, strict=True):
            if not each.any():
                return "TFDS refuses to read a spec without examples"
            # Each reader may refuse by itself.
            idle, files = int((each == 0).sum()), len(reader.reads)
            why = mode.refusal(len(each), num_idle=idle, num_files=files)
            if why is not None:
                return why
        return None

    def assumptions(self, num_hosts: int, batch: int) -> tuple[str, ...]:
        """Return nothing: all that the counts depend on is stated."""
        return ()

    def refusal(self, num_hosts: int) -> str | None:
        """Return why TFDS does not read so on every host, None where it does."""
        mode = self.settings.host_mode
        shares = [mode.host_reads(one, num_hosts) for one in self._readers]
        return self._refusal(mode, [share.num_examples for share in shares])

    def strategy(self, way: str, num_hosts: int) -> Strategy:
        """Return what each host gets of an epoch, and its batches as the settings form them.

        Raises:
            UsageError: a reader of the stages that is there more than once.
        """
        if self.reads_again:
            raise refused(
                "{stages} read the same more than once, and hosts counts each reader once; "
                "simulate {host=I/N} shows what one host reads"
            )
        mode = HOST_MODES[way]
        for resolved in self._found:
            resolved_spec.refuse_open_hosts(resolved, mode, num_hosts)
        columns = mode.host_reads(self._all, num_hosts)
        own = [columns]
        if self.num_readers > 1:
            own = [mode.host_reads(reader, num_hosts) for reader in self._readers]
        sizes = [one.num_examples for one in own]
        readers = zip(own, self._own, strict=True)
        # None: some hosts may differ for want of a seed.
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
        # Counts do not depend on seeds, except where a mixture draws among its inputs.
        pipeline, parts = self._pipeline, parts_of(self._pipeline)
        seeded = all(
            not isinstance(p, tf_stages.SampleFromDatasets) or p.seed is not None for p in parts
        )
        if seeded and self.settings.global_seed is None:
            pipeline = with_seeds(pipeline)  # no shuffle says how many there are
        # Hosts with equal shares behave alike, so each different share is followed once.
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
        progress = Progress("sizes of hosts", sum(efforts), per_second=_RUNS_PER_SECOND)
        reads = list(dict.fromkeys(readers_of(pipeline)))
        settings = replace(self.settings.bare, stages=pipeline)
        for sizes, effort in zip(shares.tolist(), efforts, strict=True):
            split = Split(name="share", shard_lengths=(sum(sizes),))
            data = Dataset(name="shares", splits=(split,))
            readers = {}
            # One made-up split; every reader gets its piece of it, of the size of its share.
            parts = zip(cycle(self._own), cycle(sizes), cycle(accumulate(sizes)))
            for read, (own, size, stop) in zip(reads, parts, strict=False):
                part = SplitRange(split=split, start=stop - size, stop=stop)
                how = with_stand_in_seeds(replace(own, host=None, pass_index=0))[0]
                readers[read] = ReaderOrder(data, [part], how)
            origin = Origin(name="share", dataset=data, spec="share")
            yield StagedOrder(data, readers, settings, origins=dict.fromkeys(reads, origin))
            progress.advance(effort)

    def run(self, num_hosts: int, batch: int, *, drop: bool) -> Run:
        """Return what each host yields of one epoch in batches of one size."""
        mode = self.settings.host_mode
        for resolved in self._found:
            resolved_spec.refuse_open_hosts(resolved, mode, num_hosts)
        sizes = [mode.host_reads(one, num_hosts).num_examples for one in self._readers]
        pipeline = in_batches(self._pipeline, batch, drop=drop)
        chain = self._chain_of(pipeline)
        if chain is not None:
            examples, steps = _handed_out(chain, sizes[0])
            # Batch sizes that occur: full ones, and what is left of a host's share.
            rest = np.unique(examples % batch)
            return Run(
                num_examples=examples,
                num_steps=steps,
                sizes=(*rest[rest > 0].tolist(), *([batch] if examples.max() >= batch else [])),
                # An example that a repeat yields again counts once.
                num_seen=int(np.minimum(sizes[0], examples).sum()),
            )
        shares, which = _distinct(sizes)
        orders, seen, padding = list(self._orders(pipeline, shares)), [], []
        for order in orders:
            if order.is_endless:
                raise refused(
                    "{stages} have no end, so the evaluation never ends; add take(N), or leave "
                    "out the repeat"
                )
            if order.shape != (batch,):
                raise refused(
                    "{stages} batch elements of several examples; an evaluation needs stages that "
                    "end in batches of single examples, as in 'map | batch(64)'"
                )
            # Different examples that are seen, per share.
            found = np.zeros(order.dataset.splits[0].num_examples, np.bool_)
            padding.append(0)
            for codes in order.chunks(0, order.num_examples):
                is_padding = order.codes.is_padding(codes)
                found[codes[~is_padding]] = True
                padding[-1] += int(is_padding.sum())
            seen.append(int(found.sum()))
        return run_of(orders, which, int(np.array(seen)[which].sum()), padding)


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
    times = chain["repeat"].count if "repeat" in chain else 1
    total = sizes * (times or 0)
    if "batch" not in chain:
        return total, total
    whole, rest = np.divmod(total, chain["batch"].size)
    if chain["batch"].drop_remainder:
        return total - rest, whole
    return total, whole + (rest > 0)


def _distinct(sizes: Sequence[Int64s]) -> tuple[Int64s, Int64s]:
    """Return the different shares of hosts, int64[n, readers], and which of them each host has."""
    # Rows of (shares of each reader): one row for each different combination.
    rows, which = np.unique(np.stack(sizes, axis=1), axis=0, return_inverse=True)
    return rows, which.reshape(-1)


def _same_permutation(columns: HostReads, settings: ReadSettings) -> bool | None:
    """Whether hosts that read shuffle their instructions by the same permutation.

    TFDS shuffles a host's list with a buffer at least as large, so that the seed and the number of
    instructions fix the permutation (TFDS core/reader.py, _read_files).
    """
    if settings.shuffle_seed is None:
        return None
    counts = columns.num_instructions[columns.num_instructions > 0]
    return len(counts) == 0 or int(counts.min()) == int(counts.max())


Sharing: TypeAlias = "OfLoader | OfReaders"
