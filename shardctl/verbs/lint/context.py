"""What the rules of the linter look at: a dataset, the specs a project reads, and how it does."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeVar

from shardctl.base.arguments import keep_fields
from shardctl.base.phrase import option
from shardctl.base.tfds_rules import INT64_MAX
from shardctl.dataset.dataset import Dataset, Split
from shardctl.errors import ShardctlError, UsageError
from shardctl.settings.read_settings import ReadSettings
from shardctl.settings.short_form import settings_of_read, stages_of
from shardctl.spec.host import Host
from shardctl.spec.subsplit import Resolved, SplitRange, num_read, resolve_subsplit
from shardctl.stages import stages as ast
from shardctl.stages.part import Count, Source, Stage
from shardctl.stages.pipelines import readers_of
from shardctl.stages.text import place_of, text_of_part

if TYPE_CHECKING:
    from shardctl.order.loader_order import LoaderOrder
    from shardctl.verbs.hosts.sharing import Strategy


@dataclass(frozen=True, kw_only=True)
class Usage:
    """What a project does that is not part of an order's settings; None where it is not stated.

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
        for name in ("hosts", "take", "max_open_files"):
            value = getattr(self, name)
            if value is not None and not 0 < value <= INT64_MAX:
                bound = ", at least 1," if value < 1 else f" up to {INT64_MAX}"
                raise UsageError(f"{option(name, value)}: a number{bound} is needed")


# What fields of a `Usage` are called under `lint:`.
USAGE_NAMES = {field.name: field.name for field in fields(Usage)}
USAGE_NAMES |= {"try_autocache": "autocache", "max_open_files": "open_files"}


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

    >>> from shardctl.dataset.dataset import Split
    >>> split = Split(name="train", shard_lengths=(3, 0, 4))
    >>> num_file_instructions((SplitRange(split=split, start=2, stop=7),))
    2
    """
    return sum(num_read(piece.split, piece.shards()) for piece in ranges)


@dataclass(frozen=True, kw_only=True)
class Training:
    """What one reader of a pipeline reads for training, how, and all stages behind it."""

    read: Read
    who: str
    source: ast.Read
    settings: ReadSettings
    stages: tuple[Stage, ...]


@dataclass(frozen=True)
class Seeded:
    """Something that draws random numbers: what happens in each run, its seed, and one to give."""

    what: str
    seed: object
    name: str
    fix: str
    settings: tuple[str, ...] = ()


def reshuffles_files(settings: ReadSettings) -> bool:
    """Whether a reader shuffles its files anew in each epoch."""
    return settings.shuffles_files and settings.reshuffle is not False


@dataclass(frozen=True, kw_only=True)
class LintContext:
    """A dataset, the specs a project reads of it, and how.

    settings: in their short form, where stages have one. as_written: as the project has them.
    """

    dataset: Dataset
    reads: tuple[Read, ...]
    settings: ReadSettings
    usage: Usage
    as_written: ReadSettings

    @property
    def trained(self) -> tuple[Read, ...]:
        """The specs with examples that are read for training."""
        return tuple(read for read in self.reads if not read.evaluates and read.num_examples)

    @property
    def evaluated(self) -> tuple[Read, ...]:
        """The specs with examples that are read for evaluation."""
        return tuple(read for read in self.reads if read.evaluates and read.num_examples)

    @property
    def used(self) -> tuple[Read, ...]:
        """All specs with examples."""
        return (*self.trained, *self.evaluated)

    @cached_property
    def loader_orders(self) -> dict[str, LoaderOrder | ShardctlError]:
        """The orders in which another loader reads the specs, of the host that is looked at.

        An error in its place is why there is none: it is nondeterministic, or refused.
        """
        from shardctl.order.plan_order import order_of

        # The rules look at one host: the named one, or the first of several.
        host = self.host if self.num_hosts > 1 else self.settings.host
        found: dict[str, Any] = {}
        for read in self.reads:
            try:
                planned = order_of(read.resolved, replace(self.settings, host=host))
                found[read.spec] = planned.order
            except ShardctlError as error:
                found[read.spec] = error
        return found

    @property
    def reads_data_source(self) -> bool:
        """Whether `as_data_source` reads; of array_record files nothing else does."""
        # What the project states goes before what the file format allows.
        said = self.usage.as_data_source
        reads = self.dataset.file_format == "array_record" if said is None else said
        return reads and self.settings.reader.on_tf_data

    def usage_in_force(self) -> dict[str, Any]:
        """Return what is not part of an order's settings by its name under `lint:`."""
        said = {USAGE_NAMES[name]: value for name, value in asdict(self.usage).items()}
        seen = {"hosts": self.num_hosts, "as_data_source": self.reads_data_source}
        # Some of it follows from the dataset or the settings, where it is not stated.
        return {**said, **seen, "seeds": list(self.usage.seeds)}

    @property
    def num_hosts(self) -> int:
        """Number of hosts, 1 where none is stated."""
        if self.settings.host is not None:
            return self.settings.host.count
        return self.usage.hosts or 1

    @property
    def host(self) -> Host:
        """The host that is looked at: the one named, else the first."""
        return self.settings.host or Host(index=0, count=self.num_hosts)

    @property
    def knows_length(self) -> bool:
        """Whether tf.data knows how many examples the host gets."""
        alone = self.settings.host is None and self.num_hosts == 1
        return alone or self.settings.host_mode.knows_length

    @property
    def several_epochs(self) -> bool:
        """Whether examples are read more than once."""
        settings = self.settings
        if settings.stages is not None and not settings.reader.on_tf_data:
            orders: list[Any] = [*self.loader_orders.values()]
            known = [one for one in orders if not isinstance(one, ShardctlError)]
            return any(one.num_examples > one.epoch_size for one in known)
        again = self.has_stage(repeats) or settings.epochs > 1
        return again or settings.is_endless or settings.pass_index > 0

    def has_stage(self, is_such: Callable[[Stage], bool]) -> bool:
        """Whether there is such a stage anywhere in the pipeline."""
        return any(is_such(stage) for chain in self.chains for stage in chain.pipeline.stages)

    @property
    def writes_stages(self) -> bool:
        """Whether the pipeline is written as stages."""
        return not self.as_written.takes("epochs")

    @cached_property
    def chains(self) -> tuple[Chain, ...]:
        """The chains of the pipeline, in whichever form it is written."""
        return tuple(chains(stages_of(self.as_written)))

    def stages_at(self, read: Read | None) -> Iterator[StageAt]:
        """Yield every stage with what lies around it; `read` is what a reader of no spec reads."""
        for chain in self.chains:
            yield from chain.stages(lambda source: self.count_of_read(source, read))

    def at_stages(self, kind: type[AnyStage]) -> Iterator[tuple[StageAt, AnyStage]]:
        """Yield the stages of a kind, whatever a reader of no spec reads."""
        sources = [chain.pipeline.source for chain in self.chains]
        reads: Sequence[Read | None] = [None]
        # A reader without a spec reads what is trained on, so the counts need one of these.
        if any(isinstance(one, ast.Read) and one.spec is None for one in sources):
            reads = self.trained[:1]
        for read in reads if self.writes_stages else ():
            for here in self.stages_at(read):
                if isinstance(here.stage, kind):
                    yield here, here.stage

    def shuffles_at(self) -> Iterator[tuple[str, ast.Shuffle]]:
        """Yield the shuffles, and what each is called."""
        for here in self.stages_at(None):
            if isinstance(here.stage, ast.Shuffle):
                yield self.called(here), here.stage

    def called(self, here: StageAt) -> str:
        """Return what a shuffle is called at the beginning of a sentence."""
        return f"{here}," if self.writes_stages else "the buffer"

    def seeded(self) -> Iterator[Seeded]:
        """Yield all that draws random numbers: the files, buffers and mixtures."""
        if self.settings.shuffles_files:
            name, fix = "--shuffle-seed", "--shuffle-seed N"
            what, given = "files are shuffled in another order", self.settings.shuffle_seed
            yield Seeded(what, given, name, fix, ("shuffle_files",))
        for who, stage in self.shuffles_at():
            if stage.buffer == 1:
                continue
            name, fix = "--buffer-seed", "--buffer-seed N"
            if self.writes_stages:
                name = f"the seed of {text_of_part(stage)}"
                fix = f"shuffle({stage.buffer}, seed=N)"
            yield Seeded(f"{who} shuffles in another order", stage.seed, name, fix, ("buffer",))
        for chain in self.chains:
            source = chain.pipeline.source
            if isinstance(source, ast.SampleFromDatasets):
                what, fix = f"{chain} chooses other inputs", f"seed=N in {source.name}"
                yield Seeded(what, source.seed, f"the seed of {source.name}", fix)

    def count_of_read(self, source: ast.Read, read: Read | None) -> Count:
        """Return how many examples a source yields, None where that is not known here."""
        if self.settings_of(source).is_endless:
            return float("inf")
        reads_all = self.settings.host_mode.reads_all
        # Another dataset, a share of its own, or a length that tf.data does not know.
        if source.data is not None or "host" in dict(source.settings) or not self.knows_length:
            return None
        if source.spec is not None:
            read = next((one for one in self.reads_of(source) if one.spec == source.spec), None)
        if read is None:
            return None if source.spec is not None else 0
        # `ds.shard` comes later: the reader yields everything.
        ranges = read.resolved.ranges if reads_all else self.ranges_of_host(read)
        return sum(piece.num_examples for piece in ranges)

    def settings_of(self, source: ast.Read) -> ReadSettings:
        """Return how a reader of the pipeline reads."""
        return settings_of_read(self.settings, source)

    def reshuffles_files_of(self, source: Source, *reads: Read) -> bool:
        """Whether a source gives each iteration another order of its files, of several."""
        if not isinstance(source, ast.Read) or not reshuffles_files(self.settings_of(source)):
            return False
        reads = reads or (self.trained if source.spec is None else self.reads_of(source))
        return source.data is not None or any(self.files_of_host(read) > 1 for read in reads)

    @property
    def trainings(self) -> Iterator[Training]:
        """What is read for training, by each reader of the pipeline."""
        for chain in self.chains if self.trained else ():
            source = chain.pipeline.source
            if not isinstance(source, ast.Read):
                continue
            reads: tuple[Read, ...] = self.reads_of(source)
            place = f" ({chain.place})" if chain.place else ""
            if source.data is not None:
                # Of another dataset the specs are not looked up; one of ours stands for it.
                reads, place = reads or self.trained[:1], f" of {source.data}{place}"
            for read in reads:
                if not read.evaluates:
                    yield Training(
                        read=read,
                        who=f"{source.spec or read.spec}{place}",
                        source=source,
                        settings=self.settings_of(source),
                        stages=chain.pipeline.stages + chain.behind,
                    )

    def reads_of(self, source: ast.Read) -> tuple[Read, ...]:
        """Return what a reader of the pipeline reads; nothing where another dataset decides."""
        if source.spec is None:
            return (*self.trained, *self.evaluated)
        said = tuple(read for read in self.reads if read.spec == source.spec)
        # A spec of these stages that the project does not list is resolved here.
        if said or source.data is not None:
            return said
        try:
            resolved = resolve_subsplit(source.spec, self.dataset)
        except ShardctlError:
            return ()
        return (Read(resolved=resolved, evaluates=is_evaluation(resolved)),)

    @property
    def shuffle_to_add(self) -> str:
        """A shuffle of examples, as it is added to the pipeline."""
        if self.writes_stages:
            return "shuffle(N, seed=N) among the stages"
        return "--buffer N with --buffer-seed N"

    @property
    def reshuffles_files(self) -> bool:
        """Whether the files are shuffled, anew in each epoch."""
        return reshuffles_files(self.settings)

    @property
    def races(self) -> bool:
        """Whether TFDS interleaves files as they come, for want of a shuffle seed."""
        own = self.settings
        return own.shuffles_files and own.shuffle_seed is None and own.deterministic is None

    def ranges_of_host(self, read: Read) -> Sequence[SplitRange]:
        """Return the ranges that TFDS is asked for on the host: its even part, else all."""
        if self.num_hosts == 1:
            return read.resolved.ranges
        return self.settings.host_mode.ranges(read.resolved.ranges, self.host)

    def files_asked_for(self, read: Read) -> int:
        """Return how many file instructions TFDS's reader is given on the host."""
        ranges = self.ranges_of_host(read)
        return read.num_files if ranges is read.resolved.ranges else num_file_instructions(ranges)

    def files_of_host(self, read: Read) -> int:
        """Return how many file instructions the host interleaves in an epoch."""
        num_files = self.files_asked_for(read)
        # `own_instructions` is a slice of the file instructions.
        return len(range(num_files)[self.settings.host_mode.own_instructions(num_files, self.host)])

    def cycle_of_host(self, read: Read) -> int:
        """Return how many files the host reads at a time."""
        cycle = self.settings.cycle_length(ordered=self.dataset.ordered)
        return cycle if self.settings.is_endless else min(cycle, self.files_of_host(read))

    @cached_property
    def _shares(self) -> dict[str, Strategy]:
        from shardctl.verbs.hosts.sharing import sharing_of, sharing_of_resolved

        found, settings = {}, self.settings
        # Another loader's chain of several readers is shared as a whole.
        is_mixed = settings.stages is not None and len(set(readers_of(settings.stages))) > 1
        for read in self.reads:
            try:
                if is_mixed and not settings.reader.on_tf_data:
                    sharing = sharing_of(self.dataset, None, settings)
                else:
                    sharing = sharing_of_resolved(read.resolved, settings)
                found[read.spec] = sharing.strategy(sharing.judged, self.num_hosts)
            except ShardctlError:
                # Stages of an open count: what the hosts read is known all the same.
                sharing = sharing_of_resolved(read.resolved, replace(self.settings, stages=None))
                found[read.spec] = sharing.strategy(sharing.judged, self.num_hosts)
        return found

    def shares(self, read: Read) -> Strategy:
        """Return what each host gets of a spec."""
        return self._shares[read.spec]


# Which specs are read for an evaluation, by the names of splits and files.

# Splits for evaluation, by how their names begin; files, by a word of their names.
_EVALUATION = ("test", "val", "dev", "eval")
_WORDS = re.compile(r"(?<![a-z])(tests?|val|valid|validation|dev|eval|evaluation)(?![a-z])")


def is_evaluation(resolved: Resolved) -> bool:
    """Whether all that a spec reads is named like an evaluation."""
    return all(_names_evaluation(resolved.dataset, piece.split) for piece in resolved.ranges)


def _names_evaluation(dataset: Dataset, split: Split) -> bool:
    """Whether a split is named like an evaluation; of files that a script names, the files."""
    if split.name.lower().startswith(_EVALUATION):
        return True
    # Splits with metadata have names that their authors chose; names of counted files are looked at
    # too.
    if not dataset.is_counted or "train" in split.name.lower():
        return False
    folder = PurePath(dataset.data_dir or "").name
    names = [name.lower() for name in split.filenames]
    if any(map(_WORDS.search, names)):
        # All files must look like an evaluation, if any does.
        return all(map(_WORDS.search, names))
    return _WORDS.search(folder.lower()) is not None and not any("train" in name for name in names)


# The chains of stages in a pipeline: what lies before and behind each stage, and how many come.

CountOfRead = Callable[[ast.Read], Count]
AnyStage = TypeVar("AnyStage", bound=Stage)


@dataclass(frozen=True, kw_only=True)
class StageAt:
    """A stage in its chain: `before` it lie the stages that feed it, `behind` it all that follow.

    behind: of an input of a mixture, those of the mixture follow too.
    place: where it is, "stage 2" or "stage 1 of input 0".
    num_elements: how many elements its input yields in an iteration; batches behind a batch.
    num_left: how many it yields itself.
    """

    stage: Stage
    source: Source
    before: tuple[Stage, ...]
    behind: tuple[Stage, ...]
    place: str
    num_elements: Count
    num_left: Count

    def __str__(self) -> str:
        return f"{self.place}, {text_of_part(self.stage)}"


@dataclass(frozen=True, kw_only=True)
class Chain:
    """A source and the stages behind it; `place` is "" for the pipeline, else "input 0"."""

    pipeline: ast.Pipeline
    behind: tuple[Stage, ...] = ()
    place: str = ""

    def __str__(self) -> str:
        name = self.pipeline.source.name
        return f"{name} of {self.place}" if self.place else name

    def stages(self, count_of_read: CountOfRead) -> Iterator[StageAt]:
        """Yield every stage of the chain."""
        source, inlined = _inlined(self.pipeline.source)
        stages = self.pipeline.stages
        counts = list(counts_of(self.pipeline, count_of_read))
        for index, stage in enumerate(stages):
            yield StageAt(
                stage=stage,
                source=source,
                before=inlined + stages[:index],
                behind=stages[index + 1 :] + self.behind,
                place=place_of(index, self.place),
                num_elements=counts[index],
                num_left=counts[index + 1],
            )


def _inlined(source: Source) -> tuple[Source, tuple[Stage, ...]]:
    """Return what a source is in the end, and the stages of what is shared behind that."""
    stages: tuple[Stage, ...] = ()
    # What is shared may itself begin with something shared.
    while isinstance(source, ast.Shared):
        stages = source.pipeline.stages + stages
        source = source.pipeline.source
    return source, stages


def inputs_of(pipeline: ast.Pipeline) -> Iterator[tuple[str, ast.Pipeline, tuple[Stage, ...]]]:
    """Yield what feeds a pipeline besides its source: name, pipeline, the stages behind it."""
    source = pipeline.source
    if isinstance(source, ast.Shared):
        yield f"shared {source.label}", source.pipeline, pipeline.stages
    else:
        for index, one in enumerate(source.fed_by):
            yield f"input {index}", one, pipeline.stages
    for index, stage in enumerate(pipeline.stages):
        for one in stage.fed_by:
            yield f"{stage.name}, {place_of(index)}", one, pipeline.stages[index + 1 :]


def chains(pipeline: ast.Pipeline) -> Iterator[Chain]:
    """Yield the chain of a pipeline, then those of its inputs, from the outside in.

    What is shared comes once, with what is behind its first use.
    """
    waiting = [Chain(pipeline=pipeline)]
    shared = set()
    # Breadth first, so that outer chains come before inner ones.
    while waiting:
        chain = waiting.pop(0)
        yield chain
        for name, one, behind in inputs_of(chain.pipeline):
            place = f"{name} of {chain.place}" if chain.place else name
            # A shared pipeline is a chain once, though several refer to it.
            if (
                isinstance(chain.pipeline.source, ast.Shared)
                and one is chain.pipeline.source.pipeline
            ):
                place = name
                if place in shared:
                    continue
                shared.add(place)
            waiting.append(Chain(pipeline=one, behind=behind + chain.behind, place=place))


def of_type(stages: tuple[Stage, ...], kind: type[AnyStage]) -> tuple[AnyStage, ...]:
    """Return the stages of a kind."""
    return tuple(stage for stage in stages if isinstance(stage, kind))


def shuffles(stage: Stage) -> bool:
    """Whether a stage is a shuffle that changes an order."""
    return isinstance(stage, ast.Shuffle) and stage.buffer != 1


def reshuffles(stage: Stage) -> bool:
    """Whether a stage is a shuffle that gives each iteration another order."""
    return isinstance(stage, ast.Shuffle) and stage.buffer != 1 and stage.reshuffle is not False


def repeats(stage: Stage) -> bool:
    """Whether a stage yields its input more than once."""
    return isinstance(stage, ast.Repeat) and (stage.count is None or stage.count not in (0, 1))


def count_of(pipeline: ast.Pipeline, count_of_read: CountOfRead) -> Count:
    """Return how many elements a pipeline yields in an iteration."""
    *_, last = counts_of(pipeline, count_of_read)
    return last


def counts_of(pipeline: ast.Pipeline, count_of_read: CountOfRead) -> Iterator[Count]:
    """Yield how many elements the source yields, and each stage behind it.

    >>> stages = (ast.Batch(size=64), ast.Repeat(), ast.Take(count=1000))
    >>> list(counts_of(ast.Pipeline(stages=stages), lambda read: 60_000))
    [60000, 938, inf, 1000]
    """
    source = pipeline.source
    if isinstance(source, ast.Read):
        count = count_of_read(source)
    else:
        count = source.length([count_of(one, count_of_read) for one in source.pipelines])
    yield count
    singles: list[Count] = []  # counts before the batches that lie open, for unbatch
    for stage in pipeline.stages:
        if isinstance(stage, ast.Batch):
            # A stack, with an entry for each open batch; unbatch takes its own entry back.
            singles.append(count)
        elif isinstance(stage, ast.Unbatch):
            count = singles.pop() if singles else None
            yield count
            continue
        before = count
        count = stage.length(count, [count_of(one, count_of_read) for one in stage.pipelines])
        if isinstance(stage, ast.Batch) and stage.drop_remainder and singles[-1] is not None:
            single = singles[-1]
            singles[-1] = single if math.isinf(single) else single - single % stage.size
        elif count != before and not isinstance(stage, ast.Batch):
            # Whatever changes the number of batches makes the number of examples in them unknown.
            singles = [None] * len(singles)
        yield count
