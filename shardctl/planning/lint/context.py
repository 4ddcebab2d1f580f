"""What the rules of the linter look at: a dataset, the specs a project reads, and how it does."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from shardctl.core.arguments.checked import keep_fields
from shardctl.core.dataset.dataset import Dataset, Split
from shardctl.core.hosts.host import Host
from shardctl.core.hosts.modes import HostMode
from shardctl.core.instructions.file_instruction import num_read
from shardctl.core.instructions.split_range import SplitRange
from shardctl.core.instructions.subsplit import Resolved, resolve_subsplit
from shardctl.core.loaders.loader import LoaderName
from shardctl.core.phrase import Argument, phrase
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.settings.reads import settings_of_read
from shardctl.core.settings.short_form import stages_of
from shardctl.core.stages import stages as ast
from shardctl.core.stages.part import Count
from shardctl.core.tfds_rules import INT64_MAX, WHOLE_DATASET
from shardctl.errors import ShardctlError, UsageError
from shardctl.planning.lint.chains import Chain, StageAt, chains, repeats, shuffles

if TYPE_CHECKING:
    from shardctl.core.order.loader_order import LoaderOrder
    from shardctl.planning.hosts.strategy import Strategy


@dataclass(frozen=True, kw_only=True)
class Usage:
    """What a project does that is not part of an order's settings; None where nobody said.

    hosts: how many hosts read.
    take: `ds.take(N)` on what is read.
    as_data_source: whether `as_data_source` reads, without tf.data; by the file format where None.
    assert_cardinality, try_autocache: these two of `ReadConfig`.
    seeds: seeds of several runs, which are meant to differ.
    max_open_files: how many files a process may have open.
    """

    hosts: int | None = None
    take: int | None = None
    as_data_source: bool | None = None
    assert_cardinality: bool = True
    try_autocache: bool = True
    seeds: tuple[int, ...] = ()
    max_open_files: int | None = None

    def __post_init__(self) -> None:
        keep_fields(self)
        for name, value in (
            ("hosts", self.hosts),
            ("take", self.take),
            ("max_open_files", self.max_open_files),
        ):
            if value is not None and value < 1:
                raise UsageError(
                    phrase("{}: a number, at least 1, is needed", Argument(name, value))
                )
            if value is not None and value > INT64_MAX:
                raise UsageError(
                    phrase("{}: a number up to {} is needed", Argument(name, value), INT64_MAX)
                )


@dataclass(frozen=True, kw_only=True)
class Read:
    """A spec that a project reads, for training or for evaluation."""

    resolved: Resolved
    evaluates: bool = False

    @property
    def spec(self) -> str:
        """The spec as it was written."""
        return self.resolved.spec

    @property
    def num_examples(self) -> int:
        """Number of examples in the spec."""
        return self.resolved.num_examples

    @cached_property
    def num_files(self) -> int:
        """Number of file instructions, which leave out empty shards."""
        return num_file_instructions(self.resolved.ranges)


def num_file_instructions(ranges: Sequence[SplitRange]) -> int:
    """Return how many file instructions the ranges resolve to.

    >>> from shardctl.core.dataset.dataset import Split
    >>> split = Split(name="train", shard_lengths=(3, 0, 4))
    >>> num_file_instructions((SplitRange(split=split, start=2, stop=7),))
    2
    """
    return sum(num_read(piece.split, piece.shards()) for piece in ranges)


@dataclass(frozen=True, kw_only=True)
class LintContext:
    """A dataset, the specs a project reads of it, and how.

    settings: in their short form, where stages have one; `given` as they were written.
    """

    dataset: Dataset
    reads: tuple[Read, ...]
    settings: ReadSettings
    usage: Usage
    given: ReadSettings | None = None

    @property
    def trained(self) -> tuple[Read, ...]:
        """The specs with examples that are read for training."""
        return tuple(read for read in self.reads if not read.evaluates and read.num_examples)

    @property
    def evaluated(self) -> tuple[Read, ...]:
        """The specs with examples that are read for evaluation."""
        return tuple(read for read in self.reads if read.evaluates and read.num_examples)

    @property
    def loader(self) -> LoaderName:
        """Who reads: "tfds" is TFDS's reader on tf.data."""
        return self.settings.loader

    def loader_order(self, read: Read) -> LoaderOrder | ShardctlError:
        """Return the order in which another loader reads a spec, of the host that is looked at.

        An error in its place is why there is none: the loader leaves it open, or refuses it.
        """
        found = self._loader_orders.get(read.spec)
        if found is None:
            from shardctl.core.order.loader_order import LoaderOrder  # NumPy
            from shardctl.planning.order import order_of

            host = self.host if self.num_hosts > 1 else self.settings.host
            try:
                planned = order_of(read.resolved, replace(self.settings, host=host))
                assert isinstance(planned.order, LoaderOrder)
                found = planned.order
            except ShardctlError as error:
                found = error
            self._loader_orders[read.spec] = found
        return found

    @cached_property
    def _loader_orders(self) -> dict[str, LoaderOrder | ShardctlError]:
        return {}

    @property
    def reads_data_source(self) -> bool:
        """Whether `as_data_source` reads; of array_record files nothing else does."""
        said = self.usage.as_data_source
        reads = self.dataset.file_format == "array_record" if said is None else said
        return reads and self.settings.reader.on_tf_data

    def usage_in_force(self) -> dict[str, Any]:
        """Return what is not part of an order's settings by its name under `lint:`."""
        return {
            "hosts": self.num_hosts,
            "take": self.usage.take,
            "as_data_source": self.reads_data_source,
            "assert_cardinality": self.usage.assert_cardinality,
            "autocache": self.usage.try_autocache,
            "seeds": list(self.usage.seeds),
            "open_files": self.usage.max_open_files,
        }

    @property
    def num_hosts(self) -> int:
        """Number of hosts, 1 where nobody said."""
        if self.settings.host is not None:
            return self.settings.host.count
        return self.usage.hosts or 1

    @property
    def host(self) -> Host:
        """The host that is looked at: the one named, else the first."""
        return self.settings.host or Host(index=0, count=self.num_hosts)

    @property
    def host_mode(self) -> HostMode:
        """How hosts share the examples, where there are several."""
        return self.settings.host_mode

    @property
    def knows_length(self) -> bool:
        """Whether tf.data knows how many examples the host gets."""
        alone = self.settings.host is None and self.num_hosts == 1
        return alone or self.host_mode.knows_length

    @property
    def several_epochs(self) -> bool:
        """Whether examples are read more than once."""
        settings = self.settings
        if any(repeats(stage) for chain in self.stage_chains for stage in chain.pipeline.stages):
            return True
        return settings.epochs > 1 or self.repeats_files() or settings.pass_index > 0

    def repeats_files(self, source: ast.Read | None = None) -> bool:
        """Whether a reader of the stages, or that of the command, hands out its files for ever."""
        settings = self.settings if source is None else settings_of_read(self.settings, source)
        return settings.is_endless

    @property
    def buffers(self) -> bool:
        """Whether there is a shuffle buffer that changes an order."""
        if any(shuffles(stage) for chain in self.stage_chains for stage in chain.pipeline.stages):
            return True
        return self.settings.buffer not in (None, 1)

    @property
    def writes_stages(self) -> bool:
        """Whether the pipeline is written as stages."""
        return not self.as_written.takes("epochs")

    @property
    def as_written(self) -> ReadSettings:
        """The settings as the project has them."""
        return self.given or self.settings

    @cached_property
    def chains(self) -> tuple[Chain, ...]:
        """The chains of the pipeline that is written as stages, none where it is not."""
        return tuple(chains(stages_of(self.settings))) if self.writes_stages else ()

    @property
    def stage_chains(self) -> tuple[Chain, ...]:
        """Those chains where no settings mean the same, which rules about settings do not see."""
        return () if self.settings.takes("epochs") else self.chains

    @property
    def staged_reads(self) -> tuple[Read | None, ...]:
        """The specs for training that go through stages; None where these read others alone."""
        if not self.chains:
            return ()
        sources = [chain.pipeline.source for chain in self.chains]
        if any(isinstance(one, ast.Read) and one.spec is None for one in sources):
            return self.trained
        return (None,)

    def stages_at(self, read: Read | None) -> tuple[StageAt, ...]:
        """Return every stage with what lies around it; `read` is what a reader of no spec reads."""
        return tuple(
            here
            for chain in self.chains
            for here in chain.stages(lambda source: self.count_of_read(source, read))
        )

    def count_of_read(self, source: ast.Read, read: Read | None) -> Count:
        """Return how many examples a source hands out, None where that is not known here."""
        own = dict(source.settings)
        if self.repeats_files(source):
            return float("inf")
        if source.data is not None or "host" in own:
            return None
        ranges: Sequence[SplitRange] = ()
        if source.spec is not None:
            try:
                ranges = resolve_subsplit(source.spec, self.dataset).ranges
            except ShardctlError:
                return None
        elif read is not None:
            ranges = read.resolved.ranges
        if self.num_hosts > 1 and not self.host_mode.reads_all:
            if not self.host_mode.knows_length:
                return None
            ranges = self.host_mode.ranges(ranges, self.host)
        return sum(piece.num_examples for piece in ranges)

    def reshuffles_files_of(self, source: ast.Read) -> bool:
        """Whether a reader gives each iteration another order of its files, of several."""
        own = dict(source.settings)
        if own:
            seed, switch = own.get("shuffle_seed"), own.get("shuffle_files")
            if seed is None and switch is None:
                return self.reshuffles_files
            return (seed is not None or bool(switch)) and own.get("reshuffle") is not False
        if source.spec is not None or source.data is not None:
            return self.reshuffles_files
        return self.reshuffles_files and any(self.files_of_host(read) > 1 for read in self.trained)

    def _buffers_of_examples(self, read: Read) -> Iterator[int]:
        for chain in self.stage_chains:
            source = chain.pipeline.source
            if not isinstance(source, ast.Read) or (source.spec, source.data) != (None, None):
                continue
            for stage in (*chain.pipeline.stages, *chain.behind):
                if isinstance(stage, ast.Batch):
                    break
                if isinstance(stage, ast.Shuffle) and stage.buffer != 1:
                    whole = stage.buffer == WHOLE_DATASET
                    yield read.num_examples if whole else stage.buffer

    def is_evaluated(self, source: ast.Read) -> bool:
        """Whether a reader of a spec reads what only evaluations do, as is said or named."""
        return source.spec is not None and any(read.evaluates for read in self.reads_of(source))

    def reads_of(self, source: ast.Read) -> tuple[Read, ...]:
        """Return what a reader of the stages reads; nothing where another dataset decides."""
        if source.spec is None:
            return (*self.trained, *self.evaluated)
        said = tuple(read for read in self.reads if read.spec == source.spec)
        if said or source.data is not None:
            return said
        try:
            resolved = resolve_subsplit(source.spec, self.dataset)
        except ShardctlError:
            return ()
        return (Read(resolved=resolved, evaluates=is_evaluation(resolved)),)

    def buffer_of(self, size: int) -> str:
        """Return a shuffle buffer of a size, as it is written in the pipeline."""
        return f"shuffle({size})" if self.writes_stages else phrase("{buffer=}", buffer=size)

    @property
    def shuffle_to_add(self) -> str:
        """A shuffle of examples, as it is added to the pipeline."""
        if self.writes_stages:
            return "shuffle(N, seed=N) among the stages"
        return phrase("{buffer=N} with {buffer_seed=N}")

    @property
    def reshuffles_files(self) -> bool:
        """Whether the files are shuffled, anew in each epoch."""
        return self.settings.shuffles_files and self.settings.reshuffle is not False

    @property
    def races(self) -> bool:
        """Whether TFDS interleaves files as they come, for want of a shuffle seed."""
        settings = self.settings
        return (
            settings.shuffles_files
            and settings.shuffle_seed is None
            and settings.deterministic is None
        )

    def ranges_of_host(self, read: Read) -> Sequence[SplitRange]:
        """Return the ranges that TFDS is asked for on the host: its even part, else all."""
        if self.num_hosts == 1:
            return read.resolved.ranges
        return self.host_mode.ranges(read.resolved.ranges, self.host)

    def files_asked_for(self, read: Read) -> int:
        """Return how many file instructions TFDS's reader is given on the host."""
        ranges = self.ranges_of_host(read)
        return read.num_files if ranges is read.resolved.ranges else num_file_instructions(ranges)

    def files_of_host(self, read: Read) -> int:
        """Return how many file instructions the host interleaves in an epoch."""
        num_files = self.files_asked_for(read)
        return len(range(num_files)[self.host_mode.own_instructions(num_files, self.host)])

    def cycle_of_host(self, read: Read) -> int:
        """Return how many files the host reads at a time."""
        cycle = self.settings.cycle_length(ordered=self.dataset.ordered)
        return cycle if self.repeats_files() else min(cycle, self.files_of_host(read))

    def buffer_size(self, read: Read) -> int | None:
        """Return how many examples the shuffle buffer holds, None without one.

        Of stages that read the spec it is the largest before a batch.
        """
        if self.stage_chains:
            sizes = list(self._buffers_of_examples(read))
            return max(sizes, default=None)
        return read.num_examples if self.settings.buffer == WHOLE_DATASET else self.settings.buffer

    @cached_property
    def _strategies(self) -> dict[str, Strategy]:
        from shardctl.planning.hosts.readers import sharing_of_resolved

        def shared(read: Read, settings: ReadSettings) -> Strategy:
            sharing = sharing_of_resolved(read.resolved, settings)
            return sharing.strategy(sharing.judged, self.num_hosts)

        found = {}
        for read in self.reads:
            try:
                found[read.spec] = shared(read, self.settings)
            except ShardctlError:
                # Stages of an open count: what the hosts read is known all the same.
                found[read.spec] = shared(read, replace(self.settings, stages=None))
        return found

    def shares(self, read: Read) -> Strategy:
        """Return what each host gets of a spec."""
        return self._strategies[read.spec]


# Which specs are read for an evaluation, by the names of splits and files.

# Splits that nobody trains on, by how their names begin; files, by a word of their names.
_EVALUATION = ("test", "val", "dev", "eval")
_WORDS = re.compile(r"(?<![a-z])(tests?|val|valid|validation|dev|eval|evaluation)(?![a-z])")


def is_evaluation(resolved: Resolved) -> bool:
    """Whether a spec reads only what is called as what nobody trains on."""
    return all(_names_evaluation(resolved.dataset, piece.split) for piece in resolved.ranges)


def _names_evaluation(dataset: Dataset, split: Split) -> bool:
    """Whether a split is called as what nobody trains on; of files that a script names, those."""
    if split.name.lower().startswith(_EVALUATION):
        return True
    if not dataset.is_counted or "train" in split.name.lower():
        return False
    folder = PurePath(dataset.data_dir or "").name
    names = [name.lower() for name in split.filenames]
    if any(map(_WORDS.search, names)):
        return all(map(_WORDS.search, names))
    return _WORDS.search(folder.lower()) is not None and not any("train" in name for name in names)
