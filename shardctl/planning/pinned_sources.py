"""What do the readers of a pinned pipeline read: then, and again from what was pinned?"""

from __future__ import annotations

from shardctl.core.dataset.dataset import Dataset
from shardctl.core.instructions.subsplit import Resolved, default_spec
from shardctl.core.order.staged import StagedOrder
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.settings.short_form import short_form
from shardctl.core.snapshot.pinned_source import PinnedSource, datasets_of
from shardctl.core.snapshot.snapshot import Snapshot
from shardctl.core.stages.readers import readers_of
from shardctl.planning.order import PlannedOrder, order_of, resolved_spec
from shardctl.planning.stages.sources import ResolvedSources, sources


def pinned_sources(live: PlannedOrder) -> tuple[PinnedSource, ...]:
    """Return the datasets that the readers of an order name; none without stages."""
    order = live.order
    if not isinstance(order, StagedOrder):
        return ()
    found: dict[str | None, PinnedSource] = {}
    for read, reader in order.readers.items():
        own = order.origins[read].dataset
        several = order.dataset is not own and order.dataset != own
        label = reader.ranges[0].split.name.rpartition("/")[0] if several else ""
        found.setdefault(
            read.data,
            PinnedSource(data=read.data, label=label, title=own.title, ordered=own.ordered),
        )
    return tuple(found.values())


def reads_spec(settings: ReadSettings) -> bool:
    """Whether a reader reads the spec of the command, or the reader is the command's."""
    if settings.stages is None:
        return True
    return any((read.spec, read.data) == (None, None) for read in readers_of(settings.stages))


def spec_as_given(resolved: Resolved, settings: ReadSettings) -> str:
    """Return the spec of the command; where stages read none of it, what they read."""
    if not isinstance(resolved, ResolvedSources) or not reads_spec(settings):
        return resolved.spec
    dataset, spec = resolved.given
    return default_spec(dataset) if spec is None else spec


def resolved_reading(dataset: Dataset, spec: str | None, settings: ReadSettings) -> Resolved:
    """Return what a pipeline reads: its spec, or what the readers of its stages select."""
    if short_form(settings).stages is None:
        return resolved_spec(dataset, spec)
    return sources(dataset, spec if reads_spec(settings) else None, settings).resolved


def order_again(pinned: Snapshot, dataset: Dataset, settings: ReadSettings) -> PlannedOrder:
    """Return the order that a snapshot pins, from what it holds; `dataset` is the pinned one.

    Raises:
        ShardctlError: this version refuses it.
    """
    if settings.stages is None:
        return order_of(resolved_spec(dataset, pinned.spec), settings)
    datasets = datasets_of(dataset, pinned.sources)
    spec = pinned.spec if reads_spec(settings) else None
    known = {data: one for data, one in datasets.items() if data is not None}
    found = sources(datasets.get(None, dataset), spec, settings, known)
    return PlannedOrder(resolved=found.resolved, order=found.order(settings))
