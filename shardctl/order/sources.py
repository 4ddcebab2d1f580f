"""What the readers of a pipeline read: which datasets, and which part of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf

from shardctl.base.by_name import provided
from shardctl.base.phrase import phrase, refused
from shardctl.base.progress import Progress
from shardctl.base.text import printable, quoted
from shardctl.base.tfds_rules import INT64_MAX
from shardctl.dataset.dataset import Dataset, as_dataset
from shardctl.dataset.folders import combined, distinct_datasets, labels_of
from shardctl.errors import NotASplitError, UsageError
from shardctl.order import resolved_spec
from shardctl.order.loader_order import LoaderOrder, LoaderVersion
from shardctl.order.order import Order, Origin
from shardctl.order.reader_order import ReaderOrder
from shardctl.order.staged import StagedOrder
from shardctl.settings.read_settings import ReadSettings
from shardctl.settings.short_form import of_one_reader, settings_of_read, stages_of
from shardctl.spec.subsplit import Resolved, SplitRange, default_spec, resolve_subsplit
from shardctl.stages import stages as ast
from shardctl.stages.pipelines import extent, parts_of, readers_of, sources_of
from shardctl.stages.text import text_of


@dataclass(frozen=True, kw_only=True)
class ResolvedSources(Resolved):
    """The ranges that all readers of a pipeline select, over one dataset that holds all of theirs.

    given: what the reader of the command was given, which holds for readers that name nothing of
        their own; the same stages under other settings are resolved from it again.
    known: datasets by the references of readers that are not looked up, then as now.
    """

    given: tuple[Dataset, str | None] = field(compare=False, repr=False)
    known: Mapping[str, Dataset] = field(default_factory=dict, compare=False, repr=False)

    @property
    def num_selected(self) -> None:
        """None, since the stages decide."""
        return None


@dataclass(frozen=True, kw_only=True)
class Sources:
    """What the readers of a pipeline read: the whole, and the part and the origin of each."""

    resolved: ResolvedSources
    origins: Mapping[ast.Read, Origin]
    parts: Mapping[ast.Read, tuple[Dataset, tuple[SplitRange, ...]]]

    def order(self, settings: ReadSettings, loader: LoaderVersion | None = None) -> Order:
        """Return the order of the pipeline under settings with these readers.

        loader: the version of the loader that reads, None of TFDS's reader.
        """
        if loader is not None:
            return LoaderOrder(
                self.resolved.dataset,
                self.resolved.ranges,
                settings,
                version=loader.version,
                assumptions=loader.assumptions,
                origins=self.origins,
                parts={read: ranges for read, (_, ranges) in self.parts.items()},
            )
        # A reader here is the order of one epoch; passes and Keras are counted by the whole
        # pipeline.
        readers = {
            read: ReaderOrder(
                *part, replace(settings_of_read(settings, read), pass_index=0, loop="python")
            )
            for read, part in self.parts.items()
        }
        sizes = {read: order.epoch_size for read, order in readers.items()}
        progress = progress_of(stages_of(settings), sizes, settings.pass_index)
        return StagedOrder(
            self.resolved.dataset,
            readers,
            settings,
            origins=self.origins,
            advance=None if progress is None else progress.advance,
        )


def sources(
    dataset: Dataset,
    spec: str | None,
    settings: ReadSettings,
    known: Mapping[str, Dataset] | None = None,
) -> Sources:
    """Return what the readers of stages read, where the command reads `spec` of `dataset`.

    known: datasets by the references of readers; others are looked up.

    Raises:
        UsageError: a bad spec, or a source whose examples no dataset has.
    """
    stages = stages_of(settings)
    refuse_other_sources(stages)
    # A reader that is written twice is looked up once; equal readers read the same.
    reads = list(dict.fromkeys(readers_of(stages)))
    known, found = known or {}, {}
    # None: a reader that names no dataset reads that of the command.
    by_ref: dict[str | None, Dataset] = {None: dataset}
    by_ref.update(known)
    for read in reads:
        if read.data is not None and read.data not in by_ref:
            by_ref[read.data] = as_dataset(read.data)
        own = by_ref[read.data]
        own_spec = spec_of_reader(read, own, spec, is_known=read.data in known)
        try:
            found[read] = resolve_subsplit(own_spec, own)
        except NotASplitError as error:
            if read.spec is None:
                raise
            # Not one of the command: it may be a dataset, for which -d would be the wrong place.
            other = f"read({default_spec(own)!r}, data={error.named!r})"
            raise refused("{stages}: {}; another dataset is {}", error, other) from None
        # A mixture fixes how readers take turns, but not the order of splits within one of them.
        resolved_spec.refuse_open_splits(found[read])
    whole, labelled = in_one_dataset(list(found.values()))
    parts: dict[ast.Read, tuple[Dataset, tuple[SplitRange, ...]]] = {}
    origins: dict[ast.Read, Origin] = {}
    warnings: list[str] = []
    for read, (own, label, ranges) in zip(reads, labelled, strict=True):
        # Whether a dataset is ordered decides how its reader reads: each part keeps its own flag.
        parts[read] = (own if own is whole else replace(whole, ordered=own.ordered), ranges)
        own_spec = found[read].spec
        origins[read] = Origin(name=f"{label}{own_spec}", dataset=own, spec=own_spec)
        warnings += found[read].warnings
        if settings.reader.on_tf_data:
            warnings += resolved_spec.format_warnings(own, found[read].ranges)
        if not read.listed and settings.reader.on_tf_data:  # which is refused instead
            # The list of files, and so this warning, may be of this reader alone.
            own_settings = settings_of_read(settings, read)
            warnings += resolved_spec.listing_warnings(own, found[read].ranges, own_settings)
    return Sources(
        resolved=ResolvedSources(
            dataset=whole,
            spec=", ".join(dict.fromkeys(origin.name for origin in origins.values())),
            ranges=tuple(piece for _, ranges in parts.values() for piece in ranges),
            warnings=tuple(dict.fromkeys(warnings)),
            given=(dataset, spec),
            known=known,
        ),
        origins=origins,
        parts=parts,
    )


def in_one_dataset(
    found: Sequence[Resolved],
) -> tuple[Dataset, list[tuple[Dataset, str, tuple[SplitRange, ...]]]]:
    """Return a dataset that holds what all specs select, and of each where it is in that.

    That is its own dataset, what its splits are called before their name, "" where all are of one
    dataset, and its ranges in the whole.
    """
    datasets = distinct_datasets(resolved.dataset for resolved in found)
    whole, names = combined(datasets), labels_of(datasets)
    parts = []
    for resolved in found:
        # By equality: two references may lead to the same dataset.
        number = next(i for i, one in enumerate(datasets) if one == resolved.dataset)
        label, ranges = "", resolved.ranges
        # In the whole each split is called "label/split", since several datasets have a "train".
        if len(datasets) > 1:
            label = f"{names[number]}/"
            ranges = tuple(
                replace(piece, split=whole.split(f"{label}{piece.split.name}")) for piece in ranges
            )
        parts.append((datasets[number], label, ranges))
    return whole, parts


def refuse_other_sources(stages: ast.Pipeline) -> None:
    """Refuse sources whose examples no dataset has.

    Raises:
        UsageError: one is no reader of TFDS.
    """
    zips = [part for part in parts_of(stages) if isinstance(part, ast.Zip)]
    zipped = [one for part in zips for inner in part.fed_by for one in sources_of(inner)]
    for source in sources_of(stages):
        # Padding beside a reader is elements of its own, but in a zip it is a part of examples.
        is_padding = isinstance(source, ast.Padding) and source not in zipped
        if not (isinstance(source, ast.Read) or (is_padding and readers_of(stages))):
            raise refused(
                "{stages}: what {} yields is not known here; read(..), range(N) and generator(N) "
                "are sources whose order is known; constant elements beside a reader are pad(N)",
                quoted(source.called),
            )


def spec_of_reader(
    read: ast.Read, dataset: Dataset, spec: str | None, *, is_known: bool = False
) -> str:
    """Return what a reader reads of its dataset, where the command is given `spec`.

    is_known: the dataset is one that was kept, whose files need not be here.

    Raises:
        UsageError: files that the script lists itself in another order, see `Read.listed`.
    """
    if read.spec is not None:
        return read.spec
    if read.listed:
        if read.data is None:  # only a file that was edited says so
            raise UsageError("read: files that the script lists itself need data, their pattern")
        listed: str = provided("listed")(read.data, dataset, look=not is_known)
        return listed
    if spec is not None and read.data is None:
        return spec
    return default_spec(dataset)


def reads_spec(settings: ReadSettings) -> bool:
    """Whether a reader reads the spec of the command, or the reader is the command's."""
    # One that names a dataset but no spec reads the default of its dataset, not the command's spec.
    return any((r.spec, r.data) == (None, None) for r in readers_of(stages_of(settings)))


def refuse_unread_spec(spec: str | None, settings: ReadSettings) -> None:
    """Refuse a spec that no reader of the stages takes.

    Raises:
        UsageError: all readers say themselves what they read.
    """
    if spec is not None and not reads_spec(settings):
        raise refused(
            "{} is not read: {stages} {} name what they read; leave it out{}",
            quoted(spec),
            printable(text_of(stages_of(settings)), 60),
            ask_for_one_source(settings),
        )


def ask_for_one_source(settings: ReadSettings) -> str:
    """Return how to ask about one source where stages mix several, "" where they do not."""
    if len(set(readers_of(stages_of(settings)))) < 2:
        return ""
    return phrase("; to ask about one source, leave out {stages} and give its data= as {dataset}")


# What a pipeline reads, for settings with stages and for settings without.


def spec_as_given(resolved: Resolved, settings: ReadSettings) -> str:
    """Return the spec of the command; where stages read none of it, what they read."""
    if not isinstance(resolved, ResolvedSources) or not reads_spec(settings):
        return resolved.spec
    dataset, spec = resolved.given
    return default_spec(dataset) if spec is None else spec


def without_stages(
    dataset: Dataset, spec: str | None, settings: ReadSettings
) -> tuple[Dataset, str | None, ReadSettings]:
    """Return what is read in settings without stages, where these say the same; else all as it is.

    Raises:
        UsageError: a spec besides that of the one reader.
    """
    short, reader = of_one_reader(settings) or (settings, None)
    if reader is None:
        return dataset, spec, settings
    # To repeat what the reader names is no contradiction.
    if spec != reader.spec:
        refuse_unread_spec(spec, settings)
    if reader.data is not None:
        dataset = as_dataset(reader.data)
        own = spec_of_reader(reader, dataset, None) if reader.listed else reader.spec
        return dataset, own, short
    return dataset, reader.spec or spec, short


def resolved_reading(dataset: Dataset, spec: str | None, settings: ReadSettings) -> Resolved:
    """Return what a pipeline reads: its spec, or what the readers of its stages select."""
    if of_one_reader(settings) is not None:
        dataset, spec, _ = without_stages(dataset, spec, settings)
        return resolved_spec.resolved_spec(dataset, spec)
    return sources(dataset, spec if reads_spec(settings) else None, settings).resolved


# How long does it take to follow a pipeline, before that is begun?

PER_SECOND = 1_000_000  # examples of a mixture or a filter, which are followed one by one

# Parts of which each example is counted.
_COUNTED = (ast.ByData, ast.SampleFromDatasets, ast.ChooseFromDatasets)
_LESS = "end the stages earlier with take(N), or read a part as train[:1%]"


def progress_of(
    stages: ast.Pipeline, sizes: Mapping[ast.Read, int], pass_index: int = 0
) -> Progress | None:
    """Return a progress report for following a pipeline; None where counting takes no time.

    `sizes` are the examples of its readers.

    Raises:
        UsageError: it would take more than a day, or has more positions than an int64 holds.
    """
    # Upper bounds suffice: this decides about a progress bar and a refusal, not about an answer.
    examples, _ = extent(stages, sizes)
    if INT64_MAX < examples < inf:
        raise refused("{stages} repeat too often: positions go up to {}", INT64_MAX)
    is_counted = any(isinstance(part, _COUNTED) for part in parts_of(stages))
    if not is_counted or examples in (0, inf):
        return None
    # To know where a later pass begins, the earlier ones are followed as well.
    total = int(examples * (pass_index + 1))
    return Progress("examples of the stages", total, per_second=PER_SECOND, instead=_LESS)
