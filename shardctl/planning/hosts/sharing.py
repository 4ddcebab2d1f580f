"""What hosts share of a pipeline, and what each of them gets, for `hosts` and for `eval`.

The readers of a tf.data pipeline are shared in each of the host modes, in closed form, and what the
stages make of a share is counted once for all hosts that have as much. Another loader shares in a
way of its own, and each host's order is looked through.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, cycle
from math import prod

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.dataset.dataset import Dataset, as_dataset
from shardctl.core.hosts.host import Host
from shardctl.core.hosts.host_reads import HostReads, SharedReads
from shardctl.core.hosts.modes import HOST_MODES, HostMode
from shardctl.core.instructions.file_order import sorted_rows
from shardctl.core.instructions.reads import Reads, joined, reads_of
from shardctl.core.instructions.subsplit import Resolved
from shardctl.core.iteration.build import build
from shardctl.core.iteration.generator import ScriptSeeds
from shardctl.core.iteration.iteration import EVERYTHING, PIECE, Iteration, Node
from shardctl.core.iteration.nodes.repeat import Repeat as RepeatNode
from shardctl.core.iteration.nodes.source import Source
from shardctl.core.iteration.passes import iteration_of_pass
from shardctl.core.order.loader_order import LoaderOrder
from shardctl.core.order.order import CHUNK_SIZE
from shardctl.core.phrase import phrase
from shardctl.core.progress import Progress
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.settings.reads import settings_of_read
from shardctl.core.settings.short_form import Chain, chain_of, of_one_reader, stages_of
from shardctl.core.stages.stages import (
    Batch,
    Filter,
    Opaque,
    Pipeline,
    Read,
    Repeat,
    Shard,
    Shared,
    Unbatch,
    parts_of,
    readers_of,
)
from shardctl.core.tfds_rules import INT64_MAX
from shardctl.errors import UsageError
from shardctl.planning.file_formats import refuse_open_hosts, refuse_open_splits
from shardctl.planning.loader_version import loader_version
from shardctl.planning.order import as_read_by, as_warnings, resolved_spec
from shardctl.planning.sources import (
    in_one_dataset,
    refuse_other_sources,
    refuse_unread_spec,
    spec_of_reader,
)

_MOST_ROWS = 1 << 25  # files of all hosts of a loader together
_MOST_EXAMPLES = 1 << 31
_PER_SECOND = 3_000_000  # examples of a loader whose files are found
_RUNS_PER_SECOND = 1000  # of stages over shares of different sizes


@dataclass(frozen=True, kw_only=True, eq=False)
class Shares:
    """What hosts get of an epoch, where they share in one way.

    columns: a value a host, before it drops a partial batch; where hosts share batches, a partial
        one that is dropped is no part of it.
    batches: of the whole pass, int64[num_hosts], None where elements are no batches.
    num_repeated: examples that are handed out again, as padding, by any host.
    num_left_out: examples that no host hands out.
    refusal: why hosts cannot read so, None where they can.
    same_permutation: whether all hosts open their files in the same permutation of places, None
        where files are not shuffled or no seed fixes how.
    """

    columns: HostReads
    batches: Int64s | None
    num_repeated: int = 0
    num_left_out: int = 0
    refusal: str | None = None
    same_permutation: bool | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """What hosts hand out in batches of one size: int64[num_hosts] each.

    sizes: the different sizes of a batch. num_seen: different examples that any host hands out.
    partial_is_last: whether only the last batch of a host may be smaller than others.
    """

    num_examples: Int64s
    num_steps: Int64s
    sizes: tuple[int, ...]
    num_seen: int
    partial_is_last: bool = True


class Sharing(ABC):
    """What hosts share of a pipeline, and each way in which they can.

    settings: how it is read, in the short form where there is one. resolved: what is read.
    reads: the same as file instructions, of all hosts. ways: the names of the ways to share.
    num_readers: how many readers of a mixture are shared one by one.
    own_batch: examples of a host's batch where stages form it; `drops` says whether they drop a
        partial one. is_simple: whether a host hands out its share once, one example after the
        other, so that another batch or number of hosts is a matter of arithmetic.
    """

    settings: ReadSettings
    resolved: Resolved
    reads: Reads
    ways: tuple[str, ...]
    num_readers = 1
    own_batch: int | None = None
    drops = False
    is_simple = False

    @property
    @abstractmethod
    def judged(self) -> str:
        """The way that the settings choose."""

    @abstractmethod
    def shares(self, way: str, num_hosts: int) -> Shares:
        """Return what each host gets, batches formed as the settings say."""

    @abstractmethod
    def runs(self, way: str, num_hosts: int, batch: int, *, drop: bool) -> Run:
        """Return what each host hands out of one epoch in batches of one size.

        drop: whether a last partial batch is dropped.
        """

    @abstractmethod
    def other_epochs(self, epochs: int, num_hosts: int, batch: int) -> str:
        """Return in a sentence what becomes of further epochs, where one is counted."""

    def refusal(self, way: str, num_hosts: int) -> str | None:
        """Return why TFDS does not read this way on every host, None where it does."""
        return None

    def assumptions(self, num_hosts: int, batch: int) -> tuple[str, ...]:
        """Return as warnings what the counts depend on though nobody stated it."""
        return ()


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
    found = []
    for read in readers_of(stages):
        own = dataset if read.data is None else as_dataset(read.data)
        chosen = None if read.data is not None and not read.listed else spec
        if read.spec is not None or read.listed:
            chosen = spec_of_reader(read, own, spec)
        found.append((settings_of_read(settings, read), resolved_spec(own, chosen)))
    return OfReaders(settings if alone is None else alone[0], found)


def _refuse_one_host(stages: Pipeline) -> None:
    for part in parts_of(stages):
        if isinstance(part, Shard) and part.num_shards > 1:
            raise UsageError(
                phrase(
                    "{stages}: shard({}, {}) picks one host, and all are compared here; leave it "
                    "out, for right behind the reader it is the strategy examples",
                    part.num_shards,
                    part.index,
                )
            )
        if isinstance(part, Filter | Opaque):
            raise UsageError(
                phrase(
                    "{stages}: how many examples of a host pass {} depends on which they are; ask "
                    "simulate for one host after the other",
                    part.name if isinstance(part, Filter) else part.call,
                )
            )


class OfReaders(Sharing):
    """The readers of a tf.data pipeline, each of which hosts share in one of the host modes.

    Raises:
        UsageError: more epochs than positions can be counted of.
    """

    def __init__(
        self, settings: ReadSettings, found: Sequence[tuple[ReadSettings, Resolved]]
    ) -> None:
        """`found` are the settings of each reader, in the order of the stages, and what it reads.

        Where there is one it stands for every reader of the stages.
        """
        self.ways = tuple(HOST_MODES)
        self._own = [own for own, _ in found]
        # That some hosts shuffle apart is what is to be told of a mixture.
        told = max(self._own, key=lambda own: (own.shuffles_files, own.shuffle_seed is None))
        shuffles = {"shuffle_files": told.shuffle_files, "shuffle_seed": told.shuffle_seed}
        self.settings = replace(settings, host=None, **shuffles)  # type: ignore[arg-type]
        self._pipeline = stages_of(self.settings.followed)
        self._found = [resolved for _, resolved in found]
        whole, parts = in_one_dataset(self._found)
        reads = [
            sorted_rows(reads_of(whole, ranges), reverse=own.reverse, file_order=own.file_order)
            for own, (_, _, ranges) in zip(self._own, parts, strict=True)
        ]
        of_readers = [
            SharedReads(rows, ranges) for rows, (_, _, ranges) in zip(reads, parts, strict=True)
        ]
        self.num_readers = len(found)
        self._readers, self._all = of_readers, of_readers[0]
        self.resolved = self._found[0]
        if self.num_readers > 1:
            ranges = tuple(piece for _, _, ranges in parts for piece in ranges)
            self._all = SharedReads(joined(reads), ranges, [len(rows) for rows in reads])
            names = [
                f"{label}{one.spec}" for (_, label, _), one in zip(parts, self._found, strict=True)
            ]
            warnings = dict.fromkeys(text for one in self._found for text in one.warnings)
            self.resolved = Resolved(
                dataset=whole,
                spec=", ".join(dict.fromkeys(names)),
                ranges=ranges,
                warnings=tuple(warnings),
            )
        self.reads = self._all.reads
        if self._all.num_examples * settings.epochs > INT64_MAX:
            raise UsageError(
                phrase(
                    "{epochs=} of {} examples is too many",
                    self._all.num_examples,
                    epochs=settings.epochs,
                )
            )
        batch = _last_batch(self._pipeline)
        self.own_batch = None if batch is None else batch.size
        self.drops = batch is not None and batch.drop_remainder
        self.is_simple = batch is None and self._chain is not None and self._chain.repeat is None

    @property
    def judged(self) -> str:
        """The host mode of the settings."""
        return self.settings.host_by

    @cached_property
    def _chain(self) -> Chain | None:
        return self._chain_of(self._pipeline)

    def _chain_of(self, pipeline: Pipeline) -> Chain | None:
        """Return stages whose counts follow without playing them, None where they do not."""
        if self.num_readers > 1 or not isinstance(pipeline.source, Read):
            return None
        return chain_of(Pipeline(stages=pipeline.stages), reads_alike=True)

    def _sizes(self, mode: HostMode, num_hosts: int) -> list[Int64s]:
        """Return how many examples each host gets of each reader, int64[num_hosts] each."""
        return [mode.num_examples(reader, num_hosts) for reader in self._readers]

    def refusal(self, way: str, num_hosts: int) -> str | None:
        """Return why TFDS does not read this way on every host, None where it does."""
        mode = HOST_MODES[way]
        return self._refusal(mode, self._sizes(mode, num_hosts))

    def _refusal(self, mode: HostMode, sizes: Sequence[Int64s]) -> str | None:
        found = (
            refusal(mode, own, len(reader.reads))
            for own, reader in zip(sizes, self._readers, strict=True)
        )
        return next((text for text in found if text is not None), None)

    def shares(self, way: str, num_hosts: int) -> Shares:
        """Return what each host gets, batches formed as the settings say."""
        mode = HOST_MODES[way]
        for resolved in self._found:
            refuse_open_hosts(resolved, mode, num_hosts)
        columns = mode.host_reads(self._all, num_hosts)
        own = [columns]
        if self.num_readers > 1:
            own = [mode.host_reads(reader, num_hosts) for reader in self._readers]
        sizes = [one.num_examples for one in own]
        alike = {
            _same_permutation(one, settings)
            for one, settings in zip(own, self._own, strict=True)
            if settings.shuffles_files
        }
        return Shares(
            columns=columns,
            batches=self._batches(sizes),
            refusal=self._refusal(mode, sizes),
            same_permutation=True if True in alike else False if alike == {False} else None,
        )

    def _batches(self, sizes: Sequence[Int64s]) -> Int64s | None:
        """Return the steps of hosts that get so many examples of each reader, None without any."""
        chain = self._chain
        if chain is not None:
            return None if chain.batch is None else _handed_out(chain, sizes[0])[1]
        distinct, which = _distinct(sizes)
        steps = np.empty(len(distinct), np.int64)
        for index, node in enumerate(self._nodes(self._pipeline, distinct)):
            if node.is_infinite or not any(axis.is_batch for axis in node.shape):
                return None
            steps[index] = self._whole(node).pulled
        return steps[which]

    def _nodes(self, pipeline: Pipeline, sizes: Int64s) -> Iterator[Node]:
        """Yield the pipeline over readers of each row of sizes, int64[n, readers]."""
        # A mixture is followed example by example, other stages in a step each.
        followed = sizes.sum(axis=1) // _RUNS_PER_SECOND * (self.num_readers > 1)
        efforts = (1 + followed).tolist()
        progress = Progress(None, "sizes of hosts", sum(efforts), per_second=_RUNS_PER_SECOND)
        for row, effort in zip(sizes.tolist(), efforts, strict=True):
            yield self._node(pipeline, row)
            progress.advance(effort)

    def _node(self, pipeline: Pipeline, sizes: Sequence[int]) -> Node:
        seeds = ScriptSeeds(self.settings.global_seed)
        readers = cycle(zip(self._own, sizes, accumulate(sizes), strict=True))

        def source(_: Read) -> Node:
            own, size, stop = next(readers)
            if own.shuffles_files and own.shuffle_seed is None:
                seeds.kernel(None)  # as its shuffle of the files draws one
            found = Source(range(stop - size, stop))
            return RepeatNode(found, None) if own.is_endless else found

        return build(pipeline, source, seeds=seeds)

    def _whole(self, node: Node) -> Iteration:
        root = iteration_of_pass(node, self.settings.pass_index, loop=self.settings.loop)
        root.pull(EVERYTHING)
        return root

    def runs(self, way: str, num_hosts: int, batch: int, *, drop: bool) -> Run:
        """Return what each host hands out of one epoch in batches of one size."""
        mode = HOST_MODES[way]
        for resolved in self._found:
            refuse_open_hosts(resolved, mode, num_hosts)
        sizes, pipeline = self._sizes(mode, num_hosts), in_batches(self._pipeline, batch, drop=drop)
        chain = self._chain_of(pipeline)
        if chain is not None:
            examples, steps = _handed_out(chain, sizes[0])
            rest = examples % batch
            partial = np.unique(rest[rest > 0]).tolist()
            return Run(
                num_examples=examples,
                num_steps=steps,
                sizes=(*partial, *((batch,) if int(examples.max()) >= batch else ())),
                num_seen=int(np.minimum(sizes[0], examples).sum()),
            )
        # Without these no example comes twice.
        repeats = any(isinstance(part, Repeat | Shared) for part in parts_of(pipeline))
        distinct, which = _distinct(sizes)
        figures = np.empty((3, len(distinct)), np.int64)
        found: set[int] = set()
        partial_is_last = True
        for index, node in enumerate(self._nodes(pipeline, distinct)):
            if node.is_infinite:
                raise UsageError(
                    phrase(
                        "{stages} have no end, so the evaluation has none either: no host is ever "
                        "done; end them with take(N), or leave out the repeat"
                    )
                )
            if prod(axis.size for axis in node.shape if axis.is_batch) != batch or not all(
                axis.is_batch for axis in node.shape
            ):
                raise UsageError(
                    phrase(
                        "{stages} make elements of several examples before they batch them; an "
                        "evaluation is counted of stages that end in batches of single examples, "
                        "as in 'map | batch(64)'"
                    )
                )
            root = self._whole(node)
            seen = root.num_examples
            if repeats:
                codes = [np.unique(piece) for piece in root.chunks(0, root.pulled)]
                seen = len(np.unique(np.concatenate(codes))) if codes else 0
            figures[:, index] = root.num_examples, root.pulled, seen
            for start in range(0, root.pulled, PIECE):
                widths = root.widths(np.arange(start, min(start + PIECE, root.pulled)))
                found.update(np.unique(widths).tolist())
                last = start + len(widths) == root.pulled
                partial_is_last &= bool((widths[: len(widths) - last] == batch).all())
        examples, steps, seen_by = figures[:, which]
        return Run(
            num_examples=examples,
            num_steps=steps,
            sizes=tuple(sorted(found)),
            num_seen=int(seen_by.sum()),
            partial_is_last=partial_is_last,
        )

    def other_epochs(self, epochs: int, num_hosts: int, batch: int) -> str:
        """Return what becomes of further epochs: tf.data batches over their borders, if told to."""
        return phrase(
            "of {epochs=} one is counted, as if each were iterated by itself; batches that run "
            "from one into the next are those of {stages} 'repeat({}) | batch({})'",
            epochs,
            batch,
            epochs=epochs,
        )


def _last_batch(pipeline: Pipeline) -> Batch | None:
    """Return the batch that is around an element at the end of a row of stages."""
    around: list[Batch] = []
    for stage in pipeline.stages:
        if isinstance(stage, Unbatch):
            around = around[:-1]
        elif isinstance(stage, Batch):
            around.append(stage)
    return around[-1] if around else None


def in_batches(pipeline: Pipeline, size: int, *, drop: bool) -> Pipeline:
    """Return a pipeline whose last batch has a size; where there is none it is at the end.

    >>> from shardctl.core.stages.text import parse_stages, text_of
    >>> text_of(in_batches(parse_stages("batch(4, drop_remainder=True) | map"), 8, drop=False))
    'batch(8) | map'
    """
    batch = Batch(size=size, drop_remainder=drop)
    last = _last_batch(pipeline)
    stages = [batch if stage is last else stage for stage in pipeline.stages]
    return replace(pipeline, stages=(*stages, *([batch] if last is None else [])))


def _handed_out(chain: Chain, sizes: Int64s) -> tuple[Int64s, Int64s]:
    """Return (examples, steps) of hosts whose reader yields so many, int64[num_hosts] each."""
    times = chain.repeat.count if isinstance(chain.repeat, Repeat) else 1
    total = sizes * (times or 0)
    if chain.batch is None:
        return total, total
    whole, rest = np.divmod(total, chain.batch.size)
    if chain.batch.drop_remainder:
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
    if not settings.shuffles_files or settings.shuffle_seed is None:
        return None
    counts = columns.num_instructions[columns.num_instructions > 0]
    return len(counts) == 0 or int(counts.min()) == int(counts.max())


def call_of_hosts(settings: ReadSettings) -> str:
    """Return what shares the examples of another loader among hosts.

    >>> call_of_hosts(ReadSettings(loader="torch"))
    'DistributedSampler'
    """
    return settings.reader.takes["host"].partition("(")[0]


class OfLoader(Sharing):
    """What the processes of another loader share, in its own way.

    Raises:
        UsageError: a version of the library that nobody knows.
        UnpredictableOrderError: TFDS leaves the order of the splits open.
    """

    def __init__(self, resolved: Resolved, settings: ReadSettings) -> None:
        if "host" not in settings.reader.takes:
            raise UsageError(phrase("{loader=} shares nothing among hosts", loader=settings.loader))
        version = loader_version(settings)
        self.settings = replace(settings, host=None, loader_version=version.version)
        kept = as_read_by(resolved, settings)
        said = (*version.warnings, *as_warnings(version.assumptions))
        self.resolved = replace(kept, warnings=(*kept.warnings, *said))
        self.reads = reads_of(resolved.dataset, resolved.ranges)
        self.ways = (self.judged,)

    @property
    def judged(self) -> str:
        """The call that shares."""
        return call_of_hosts(self.settings)

    def _orders(self, num_hosts: int, **changed: object) -> Iterator[LoaderOrder]:
        """Yield the order of each host under changed settings.

        Raises:
            UsageError: too many hosts for so many files; the loader shares nothing.
            UnpredictableOrderError: the loader leaves the order open.
        """
        refuse_open_splits(self.resolved)
        reads = self.reads
        for index in range(num_hosts):
            host = Host(index=index, count=num_hosts) if num_hosts > 1 else None
            settings = replace(self.settings, host=host, **changed)  # type: ignore[arg-type]
            order = LoaderOrder(self.resolved.dataset, self.resolved.ranges, settings)
            if num_hosts * len(reads) > _MOST_ROWS or reads.num_examples > _MOST_EXAMPLES:
                raise UsageError(
                    phrase(
                        "{hosts=} of {:,} examples in {:,} files each are too many to look at one "
                        "by one; give fewer {hosts}, or a part of the spec",
                        reads.num_examples,
                        len(reads),
                        hosts=num_hosts,
                    )
                )
            yield order

    def shares(self, way: str, num_hosts: int) -> Shares:
        """Return what each host hands out of an epoch, and its batches of all epochs."""
        reads, settings = self.reads, self.settings
        drops = settings.drop_remainder and settings.reader.deals_batches
        orders = list(self._orders(num_hosts, epochs=1, drop_remainder=drops))
        stops = np.cumsum(reads.take)
        seen = np.zeros(reads.num_examples, np.bool_)
        rows, hosts = [reads.select(slice(0, 0))], [np.empty(0, np.int64)]
        num_read = np.empty(num_hosts, np.int64)
        progress = _progress(orders)
        for host, order in enumerate(orders):
            counts = np.zeros(len(stops), np.int64)
            for indices in _indices(order, progress):
                seen[indices] = True
                # One that is handed out again counts again.
                of_rows = np.searchsorted(stops, indices, side="right")
                counts += np.bincount(of_rows, minlength=len(stops))
            here = np.flatnonzero(counts)
            rows.append(replace(reads.select(here), skip=np.zeros_like(here), take=counts[here]))
            hosts.append(np.full(len(here), host))
            taken = order.handed_out.num_read
            num_read[host] = order.num_examples if taken is None else taken
        columns = SharedReads(joined(rows)).by_rows(np.concatenate(hosts), num_hosts)
        batches = None
        if settings.batch is not None:
            whole = self._orders(num_hosts)
            batches = np.array([order.num_steps for order in whole], np.int64)
        num_seen = int(seen.sum())
        return Shares(
            columns=replace(columns, num_read=num_read),
            batches=batches,
            num_repeated=int(columns.num_examples.sum()) - num_seen,
            num_left_out=len(seen) - num_seen,
            refusal=None if reads.num_examples else "there are no examples",
        )

    def runs(self, way: str, num_hosts: int, batch: int, *, drop: bool) -> Run:
        """Return what each host hands out of one epoch in batches of one size."""
        orders = list(self._orders(num_hosts, epochs=1, batch=batch, drop_remainder=drop))
        seen = np.zeros(self.reads.num_examples, np.bool_)
        progress = _progress(orders)
        for order in orders:
            for indices in _indices(order, progress):
                seen[indices] = True
        return Run(
            num_examples=np.array([order.num_examples for order in orders], np.int64),
            num_steps=np.array([order.num_steps for order in orders], np.int64),
            sizes=tuple(sorted(set().union(*map(_sizes, orders)))),
            num_seen=int(seen.sum()),
        )

    def assumptions(self, num_hosts: int, batch: int) -> tuple[str, ...]:
        """Return as warnings what the counts depend on though nobody stated it."""
        if not self.settings.reader.shares_are_assumed:
            return ()
        return as_warnings(next(self._orders(num_hosts, batch=batch)).assumptions)

    def other_epochs(self, epochs: int, num_hosts: int, batch: int) -> str:
        """Return whether further epochs have as many examples and steps on every host."""
        orders = list(self._orders(num_hosts, epochs=epochs, batch=batch, drop_remainder=False))
        found = [[_counts_before(order, epoch) for epoch in range(epochs + 1)] for order in orders]
        figures = np.array(found)  # host, epoch: examples, steps, and whether a batch is cut
        if figures[:, :, 2].any():
            return phrase(
                "of {epochs=} one is counted; iterated together, batches run from one into the "
                "next, and hosts make {} steps in all",
                _between([order.num_steps or 0 for order in orders]),
                epochs=epochs,
            )
        counts = np.diff(figures[:, :, :2], axis=1)
        others = np.flatnonzero((counts != counts[:, :1]).any(axis=(0, 2)))
        if not len(others):
            return phrase(
                "of {epochs=} one is counted; in each every host has as many examples and steps",
                epochs=epochs,
            )
        examples, steps = counts[:, others[0]].T.tolist()
        return phrase(
            "of {epochs=} the first is counted, and others differ: in epoch {:,}, counted from 0, "
            "hosts hand out {} examples in {} steps",
            int(others[0]),
            _between(examples),
            _between(steps),
            epochs=epochs,
        )


def _between(numbers: Sequence[int]) -> str:
    least, most = min(numbers), max(numbers)
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def _progress(orders: Sequence[LoaderOrder]) -> Progress:
    return Progress(
        None,
        "examples of the hosts",
        len(orders) + sum(order.num_examples for order in orders),
        per_second=_PER_SECOND,
        instead=phrase("give fewer {hosts}"),
    )


def _indices(order: LoaderOrder, progress: Progress) -> Iterator[Int64s]:
    """Yield the indices of the examples that a host hands out, piece by piece."""
    for start in range(0, order.num_examples, CHUNK_SIZE):
        stop = min(start + CHUNK_SIZE, order.num_examples)
        yield order.indices_at(np.arange(start, stop))
        progress.advance(stop - start)


def _counts_before(order: LoaderOrder, epoch: int) -> tuple[int, int, int]:
    """Return (examples, steps) before an epoch, and how many examples its first batch has by then.

    Batches may run from one epoch into the next.
    """
    positions = range(order.num_examples)
    start = bisect_left(positions, epoch, key=lambda at: int(order.epoch_of([at])[0]))
    if start == order.num_examples:
        return start, order.num_steps or 0, 0
    steps, within = order.steps_of([start])
    return start, int(steps[0]), int(within[0])


def _sizes(order: LoaderOrder) -> set[int]:
    """Return the different sizes of the batches of an order."""
    sizes: set[int] = set()
    first = rest = 0  # the batch that a piece may end in, and how much of it came before
    for start in range(0, order.num_examples, CHUNK_SIZE):
        stop = min(start + CHUNK_SIZE, order.num_examples)
        steps, _ = order.steps_of(np.arange(start, stop))
        found = np.bincount(steps - first)
        found[0] += rest
        sizes.update(np.unique(found[:-1]).tolist())
        first, rest = first + len(found) - 1, int(found[-1])
    sizes.add(rest)
    return sizes - {0}
