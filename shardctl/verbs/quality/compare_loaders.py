"""How does each data loader shuffle a dataset, how does an epoch end, can it be resumed?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from shardctl.base.arguments import checked
from shardctl.base.columns import Tabular
from shardctl.base.phrase import refused
from shardctl.base.text import in_short
from shardctl.dataset.dataset import Dataset, DatasetLike, as_dataset
from shardctl.errors import ShardctlError, UsageError
from shardctl.loaders.loader import LOADERS, READERS, library_of
from shardctl.order.loader_order import with_version
from shardctl.order.order import Order
from shardctl.order.plan_order import PlannedOrder, as_warnings, order_of
from shardctl.order.resolved_spec import refuse_open_splits, resolved_spec
from shardctl.order.sample import COMPLETE_LIMIT, epoch_length, sample_epoch, storage_order
from shardctl.order.sources import ask_for_one_source
from shardctl.settings.keywords import OrderSettings, Unpack
from shardctl.settings.read_settings import ReadSettings, SettingsLike, as_settings
from shardctl.settings.table import OF_EPOCHS, SETTING_BY_FIELD
from shardctl.spec.host import Host
from shardctl.spec.subsplit import Resolved
from shardctl.verbs.quality.metrics import Verdict, measured, occupancy_moments, shards_in_batch

# The ways in which people read a dataset, a row each, and the settings in force in each.

Access = Literal["in a row", "by index"]
Continued = Literal["exactly", "not by itself", "loses examples"]

DEFAULT_BATCH = 256
_BUFFERS = (1_000, 10_000)  # of tf.data, as tutorials and the guides of TFDS have them
OTHER_BUFFER = 1_000  # the default of `IterableDataset.shuffle`
_SEED, _BUFFER_SEED = 1, 2
# What the rows say themselves, or what would make one row another question than the next.
_OF_THE_ROWS = frozenset(
    {*OF_EPOCHS, "buffer", "buffer_seed", "loader", "loader_version"}
    | {"streaming", "shuffle", "shuffle_files", "shuffle_seed", "global_seed", "host_by"}
)


@dataclass(frozen=True, kw_only=True)
class Way:
    """A way to read: the data loader, its settings, and what is known before it is measured.

    reader: its name in the library. access: whether files are read in a row or by index.
    continued: what the library's own state is worth where a job stopped; by: what does it; of
        TFDS's reader that is our Position.
    held: examples that a shuffle buffer holds, which such a state may lose.
    shares: False where it knows no hosts, so that each of several reads everything.
    """

    reader: str
    settings: ReadSettings
    access: Access
    continued: Continued
    by: str | None = None
    held: int | None = None
    shares: bool = True


def ways_to_read(settings: ReadSettings, file_format: str = "parquet") -> tuple[Way, ...]:
    """Return the ways that are compared; a setting is left out where a loader does not take it.

    A given buffer replaces the usual ones, a given seed the example seeds; Hugging Face
    reads tables in place of a format that it has no reader of.

    >>> [way.reader for way in ways_to_read(ReadSettings())][:3]
    ['TFDS: files, shuffle(1,000)', 'TFDS: files, shuffle(10,000)', 'HF 4.8.5: \
shuffle(1,000)']
    """
    ways = [*_of_tfds(settings)]
    # Those that stream come first, as TFDS's reader does.
    for loader in sorted(LOADERS.values(), key=lambda loader: "streaming" not in loader.takes):
        seed = {"shuffle_seed": seed_of(settings)} if "shuffle_seed" in loader.takes else {}
        found = [*library_of(loader).ways(settings, file_format)]
        ways += found or [way(settings, loader.name, loader.title, **seed)]
    return tuple(ways)


def way(settings: ReadSettings, loader: str, reader: str, **more: Any) -> Way:
    """Return a way to read with a loader: by index, not continued, but for the fields in `more`.

    Fields of a `Way` are taken as such; the others are settings of the row.
    """
    # `more` mixes fields of the row and settings; settings are those that the table knows.
    own = {name: more.pop(name) for name in [*more] if name in SETTING_BY_FIELD}
    return Way(
        reader=reader,
        settings=settings_for(settings, loader, **own),
        **{"access": "by index", "continued": "not by itself", **more},
    )


def settings_for(settings: ReadSettings, loader: str, **own: Any) -> ReadSettings:
    """Return the settings that a loader takes, with those of the row in their place."""
    # The same loader as asked for keeps its version; another one takes its own.
    same = settings.reader is READERS[loader]
    kept = {
        name: getattr(settings, name)
        for name in SETTING_BY_FIELD
        if name not in _OF_THE_ROWS and SETTING_BY_FIELD[name].is_read_by(loader)
    }
    kept["batch"] = DEFAULT_BATCH if settings.batch is None else settings.batch
    if same:
        kept["loader_version"] = settings.loader_version
    if same and settings.reader.on_tf_data:
        kept["host_by"] = settings.host_by
    return ReadSettings(**{**kept, "loader": loader, **own})


def seed_of(settings: ReadSettings) -> int:
    """Return the seed of the files or of the examples, as given or an example."""
    return _SEED if settings.shuffle_seed is None else settings.shuffle_seed


def buffer_seed_of(settings: ReadSettings) -> int:
    """Return the seed of a buffer, as given or an example."""
    return _BUFFER_SEED if settings.buffer_seed is None else settings.buffer_seed


def _of_tfds(settings: ReadSettings) -> Iterator[Way]:
    files = not settings.reader.on_tf_data or settings.shuffle_files is not False
    for buffer in _BUFFERS if settings.buffer is None else (settings.buffer,):
        own: dict[str, Any] = {"buffer": buffer, "buffer_seed": buffer_seed_of(settings)}
        if files:
            own["shuffle_seed"] = seed_of(settings)
        if settings.deterministic is False:
            own["deterministic"] = True
        size = "whole epoch" if buffer < 0 else f"{buffer:,}"
        reader = f"TFDS: {'files, ' if files else ''}shuffle({size})"
        own |= {"access": "in a row", "continued": "exactly", "by": "Position", "held": buffer}
        yield way(settings, "tfds", reader, **own)


@dataclass(frozen=True, kw_only=True)
class LoaderComparison(Tabular):
    """All ways to read a spec, side by side.

    batch: examples in a batch of one host. uniform_shards: from how many shards a batch comes of a
    uniform permutation of all that the spec reads.
    """

    dataset: Dataset
    spec: str
    num_examples: int
    num_shards: int
    batch: int
    num_hosts: int
    uniform_shards: float
    ways: tuple[WayToRead, ...]
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        scored = [way for way in self.ways if way.mixing is not None]
        return in_short(
            self, f"{self.dataset.title} {self.spec}", f"{len(scored)} of {len(self.ways)} ways"
        )


@checked
def compare_loaders(
    dataset: DatasetLike,
    spec: str | None = None,
    settings: SettingsLike | None = None,
    **keywords: Unpack[OrderSettings],
) -> LoaderComparison:
    """Return how each data loader shuffles a spec, how an epoch ends, and whether it can resume.

    Args:
        dataset: a reference as "mnist", a path, a list of these, or a Dataset.
        spec: the split or slice, as TFDS writes it; None is `train`, else the only split.
        settings, keywords: what all of them are given; each takes the settings it has. A buffer
            replaces the usual ones (1,000; with TFDS 10,000 too). A host gives the number of hosts
            that share the examples. A missing batch is 256, and missing seeds are example seeds.

    Returns:
        A LoaderComparison; `ways` are its rows, with the reason where a loader refuses the dataset.

    Raises:
        UsageError: a bad spec; stages; fewer than 2 examples; more than 1,024 hosts.

    >>> import shardctl
    >>> found = shardctl.compare_loaders("mnist", "test")
    >>> [(way.reader, way.mixing.verdict) for way in found.ways][3:5]
    [('HF 5.2.0: shuffle(1,000)', 'weak'), ('HF: Dataset.shuffle', 'as good as uniform')]
    """
    dataset, settings = as_dataset(dataset), as_settings(settings)
    num_hosts = 1 if settings.host is None else settings.host.count
    if not settings.takes("batch"):  # which is that of every row
        raise refused(
            "{stages} are one way to read; leave them out to compare loaders{}",
            ask_for_one_source(settings),
        )
    if num_hosts > MAX_HOSTS:
        raise refused("{host}: at most {:,} hosts are compared, not {:,}", MAX_HOSTS, num_hosts)
    resolved = resolved_spec(dataset, spec)
    refuse_open_splits(resolved)
    if resolved.num_examples < 2:
        raise UsageError(
            f"loaders need at least 2 examples, and {resolved.spec} has {resolved.num_examples}"
        )
    batch = DEFAULT_BATCH if settings.batch is None else settings.batch
    # Sizes of the shards in storage order, which is the same for all rows.
    sizes = storage_order(order_of(resolved, ReadSettings()).order).shard_sizes
    ways = tuple(
        way_to_read(resolved, way, num_hosts)
        for way in ways_to_read(settings, resolved.dataset.file_format)
    )
    said = (warning for way in ways for warning in way.warnings)
    return LoaderComparison(
        dataset=resolved.dataset,
        spec=resolved.spec,
        num_examples=resolved.num_examples,
        num_shards=len(sizes),
        batch=batch,
        num_hosts=num_hosts,
        uniform_shards=occupancy_moments(sizes, min(batch, int(sizes.sum())), 1).expected,
        ways=ways,
        warnings=tuple(dict.fromkeys((*resolved.warnings, *said))),
    )


# One way to read a dataset.

# Examples up to which a row is measured whole, and about what is of longer ones.
_MEASURED = 1 << 18
_TAIL = 0.02


@dataclass(frozen=True, kw_only=True)
class Mixing:
    """How one process of a loader mixes an epoch.

    num_examples: of its epoch; num_measured of them are, none where the permutation is known to be
        uniform and too long to make: then all is as expected of one.
    shards: from how many shards a batch comes, on average; at_end: of the last 2%, a batch at
        least.
    uniform_shards: expected of a uniform permutation of what the process reads.
    """

    num_examples: int
    num_measured: int = 0
    shards: float
    at_end: float
    uniform_shards: float
    score: float
    verdict: Verdict


@dataclass(frozen=True, kw_only=True)
class WayToRead(Way):
    """A way to read: how it mixes, how it ends, and whether it can be continued.

    settings: in force, of the host that is measured; of another loader with its version.
    num_lost: examples that the library's own state loses at most, 0 where it loses none.
    refused: why this dataset is not read so; what is not known then is None.
    """

    mixing: Mixing | None
    ending: Ending | None
    num_lost: int
    refused: str | None = None
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        scored = "refused" if self.mixing is None else f"score {self.mixing.score:.3f}"
        return in_short(self, self.reader, scored)


def way_to_read(resolved: Resolved, way: Way, num_hosts: int) -> WayToRead:
    """Return what comes of a way to read a spec, or why it is refused."""
    refused: str | None = None
    planned: PlannedOrder | None = None
    mixing = ending = None
    held = 0 if way.held is None or way.continued != "loses examples" else way.held
    # Every refusal makes a row with its reason; the comparison goes on.
    try:
        if num_hosts > 1 and not way.shares:
            raise UsageError("each host reads everything; DistributedSampler shares the examples")
        # Its row says the version, so nothing is assumed of it.
        planned = order_of(resolved, with_version(way.settings))
        order = planned.order
        ending = ending_of(
            lambda other: order_of(resolved, other).order, order.settings, resolved.num_examples
        )
        mixing = _mixing(order, way.settings.batch or 1)
        held = min(held, mixing.num_examples)
    except ShardctlError as error:
        refused = error.args[0] if error.args else str(error)
        mixing = ending = None
    warnings = () if planned is None else (*planned.warnings, *as_warnings(planned.assumptions))
    return WayToRead(
        **vars(way) | {"settings": way.settings if planned is None else planned.order.settings},
        mixing=mixing,
        ending=ending,
        num_lost=held,
        refused=refused,
        warnings=warnings,
    )


def _mixing(order: Order, batch: int) -> Mixing:
    num_examples = epoch_length(order)
    if num_examples < 2:
        raise UsageError(f"a score needs 2 examples, and a process has {num_examples} here")
    window = max(2, min(batch, num_examples))
    # Making millions of positions would only confirm what is known.
    if num_examples > COMPLETE_LIMIT and order.is_uniform and order.is_made_whole:
        # A uniform permutation need not be made to know what is expected of it.
        shards = occupancy_moments(storage_order(order).shard_sizes, window, 1).expected
        return Mixing(
            num_examples=num_examples,
            shards=shards,
            at_end=shards,
            uniform_shards=shards,
            score=1.0,
            verdict="as good as uniform",
        )
    sample = sample_epoch(order, window=window, limit=_MEASURED, num_measured=_MEASURED)
    _, score, verdict = measured(order, sample, window)
    shards_in = shards_in_batch(sample, window)
    # The last 2% of the epoch, but at least one window.
    end = sample.part(1 - max(_TAIL, window / num_examples), 1.0, window)
    return Mixing(
        num_examples=num_examples,
        num_measured=sample.num_measured if not sample.complete else num_examples,
        shards=shards_in.value,
        at_end=shards_in_batch(end, window).value,
        uniform_shards=shards_in.expected,
        score=score.value,
        verdict=verdict,
    )


# How an epoch ends on all hosts: equal steps or a hang, what is repeated, what is left out.

MAX_HOSTS = 1024


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How an epoch of `num_hosts` hosts ends.

    fewest_steps, most_steps: batches of a host; a step that not all make hangs a collective.
    num_repeated: examples that are read again so that hosts are even.
    num_left_out: examples that no host gets.
    num_dropped: examples of batches that are not full and dropped, as the settings ask.
    last_batch: examples in the smallest of the last batches, None where all are full.
    """

    num_hosts: int
    fewest_steps: int
    most_steps: int
    num_repeated: int
    num_left_out: int
    num_dropped: int
    last_batch: int | None

    @property
    def hangs(self) -> bool:
        """Whether a host makes more steps than another."""
        return self.fewest_steps != self.most_steps


def ending_of(
    order_under: Callable[[ReadSettings], Order], settings: ReadSettings, num_examples: int
) -> Ending:
    """Return how an epoch of all hosts ends that share so many examples.

    A loader either repeats examples or leaves some out, and those that it repeats come last, where
    they are dropped first: their numbers follow from how many the hosts have together. Grain's
    shuffles do both besides, see `LoaderSequence.num_again`, before batches are dropped.

    Raises:
        UsageError: the loader refuses one of the hosts.
    """
    count = 1 if settings.host is None else settings.host.count
    kept, steps, last = 0, [], []
    whole: list[Order] = []
    for index in range(count):
        host = None if settings.host is None else Host(index=index, count=count)
        of_host = replace(settings, host=host)
        order = order_under(of_host)
        kept += order.num_examples
        num_steps = order.num_steps or 0
        steps.append(num_steps)
        if num_steps:
            last.append(len(order.positions_in_step(num_steps - 1)))
        whole.append(order_under(replace(of_host, drop_remainder=False)))
    smallest = min(last, default=0)
    # Without dropping, so that partial batches do not count as left out.
    left_out = max(0, num_examples - sum(order.num_examples for order in whole))
    of_loader = [order.sequence for order in whole if order.sequence is not None]
    again = of_loader[0].num_again(of_loader) if of_loader else 0
    return Ending(
        num_hosts=count,
        fewest_steps=min(steps),
        most_steps=max(steps),
        num_repeated=max(0, kept - num_examples) + again,
        num_left_out=left_out + again,
        # What is missing in all, less what no host ever got, is what batches dropped.
        num_dropped=max(0, num_examples - kept) - left_out,
        last_batch=smallest if 0 < smallest < (settings.batch or 1) else None,
    )
