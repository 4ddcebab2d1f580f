"""What do the readers of a pinned pipeline read: then, and again from what was pinned?"""

from __future__ import annotations

from shardctl.dataset.dataset import Dataset, as_dataset
from shardctl.order.plan_order import PlannedOrder, order_of, resolved_spec
from shardctl.order.sources import (
    ResolvedSources,
    reads_spec,
    refuse_unread_spec,
    sources,
    spec_of_reader,
)
from shardctl.saved.snapshot import PinnedSource, Snapshot, datasets_of
from shardctl.settings.read_settings import ReadSettings
from shardctl.settings.short_form import of_one_reader
from shardctl.spec.subsplit import Resolved, default_spec
from shardctl.stages.pipelines import readers_of
from shardctl.stages.text import pipeline_of


def pinned_sources(live: PlannedOrder, settings: ReadSettings) -> tuple[PinnedSource, ...]:
    """Return the datasets that the readers of stages name; `live` is the order of the settings."""
    order = live.order
    plain = of_one_reader(settings)
    if plain is not None:
        one, dataset = plain[1], order.dataset
        if one is None:
            return ()
        pinned = PinnedSource(data=one.data, label="", title=dataset.title, ordered=dataset.ordered)
        return (pinned,)
    found: dict[str | None, PinnedSource] = {}
    for read, origin in order.origins.items():
        own = origin.dataset
        several = order.dataset is not own and order.dataset != own
        label = origin.name.rpartition("/")[0] if several else ""
        found.setdefault(
            read.data,
            PinnedSource(data=read.data, label=label, title=own.title, ordered=own.ordered),
        )
    return tuple(found.values())


def datasets_by_ref(live: PlannedOrder) -> dict[str, Dataset]:
    """Return the datasets that readers of stages read besides that of the command, by reference."""
    found = {read.data: origin.dataset for read, origin in live.order.origins.items()}
    return {ref: dataset for ref, dataset in found.items() if ref is not None}


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
        return resolved_spec(dataset, spec)
    return sources(dataset, spec if reads_spec(settings) else None, settings).resolved


def spec_as_pinned(pinned: Snapshot, settings: ReadSettings) -> str | None:
    """Return the spec of a snapshot for settings of today; None where stages say what is read."""
    of_command = not pinned.sources or _pins_spec(pinned)
    return pinned.spec if of_command and reads_spec(settings) else None


def _pins_spec(pinned: Snapshot) -> bool:
    """Whether a snapshot's spec is one of the command, and not what its stages say."""
    readers = readers_of(pipeline_of(pinned.pipeline.get("stages") or []))
    return any((read.spec, read.data) == (None, None) for read in readers)


def ref_as_pinned(pinned: Snapshot) -> str:
    """Return the dataset of the command that a snapshot names; of a mixture, a source of it."""
    names = {source.data: source.title for source in pinned.sources}
    return names.get(None, next((data for data in names if data is not None), pinned.title))


def dataset_as_given(live: PlannedOrder) -> Dataset:
    """Return the dataset of the command, of which a mixture may be a part."""
    resolved = live.resolved
    return resolved.given[0] if isinstance(resolved, ResolvedSources) else live.order.dataset


def order_again(pinned: Snapshot, dataset: Dataset, settings: ReadSettings) -> PlannedOrder:
    """Return the order that a snapshot pins, from what it holds; `dataset` is the pinned one.

    Raises:
        ShardctlError: this version refuses it.
    """
    datasets = datasets_of(dataset, pinned.sources)
    plain = of_one_reader(settings)
    if plain is not None:
        short, reader = plain
        own = dataset if reader is None else datasets[reader.data]
        own_spec = pinned.spec if reader is None else reader.spec or pinned.spec
        return order_of(resolved_spec(own, own_spec), short)
    spec = pinned.spec if reads_spec(settings) else None
    known = {data: one for data, one in datasets.items() if data is not None}
    found = sources(datasets.get(None, dataset), spec, settings, known)
    return PlannedOrder(resolved=found.resolved, order=found.order(settings))
