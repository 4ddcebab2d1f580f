"""From a spec and settings to an `Order`: every command and function gets its order here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from shardctl.base.arguments import checked
from shardctl.base.text import counted, in_short
from shardctl.dataset.dataset import Dataset, DatasetLike, as_dataset
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.order import resolved_spec
from shardctl.order.order import Order
from shardctl.order.reader_order import ReaderOrder
from shardctl.settings.keywords import OrderSettings, Unpack
from shardctl.settings.read_settings import ReadSettings, SettingsLike, as_settings
from shardctl.spec.subsplit import Resolved, SplitRange

if TYPE_CHECKING:
    from shardctl.order.example_codes import SplitIds
    from shardctl.order.loader_order import LoaderVersion


@dataclass(frozen=True, kw_only=True)
class PlannedOrder:
    """The order of a spec, what the spec selects, and what surprises about the two.

    of_version: those of the warnings that are about the version of a loader.
    """

    resolved: Resolved
    order: Order
    of_version: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def spec(self) -> str:
        """The spec as it was given."""
        return self.resolved.spec

    @property
    def ranges(self) -> tuple[SplitRange, ...]:
        """The ranges of examples that the spec selects."""
        return self.resolved.ranges

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the order depends on though no setting states it."""
        return self.order.assumptions

    @property
    def dataset_as_given(self) -> Dataset:
        """The dataset of the command, of which a mixture may be a part."""
        # Only `ResolvedSources` has it. Read by name, since its module is imported for stages
        # alone.
        given = getattr(self.resolved, "given", None)
        return self.order.dataset if given is None else given[0]

    @property
    def datasets_by_ref(self) -> dict[str, Dataset]:
        """The datasets that readers of stages read besides that of the command, by reference."""
        found = {read.data: origin.dataset for read, origin in self.order.origins.items()}
        return {ref: dataset for ref, dataset in found.items() if ref is not None}

    @property
    def of_reader(self) -> ReaderOrder:
        """The same order where TFDS's reader is all that reads: no stages, no other loader."""
        assert isinstance(self.order, ReaderOrder)
        return self.order

    @property
    def splits(self) -> SplitIds:
        """The splits that the order reads."""
        return self.order.codes.splits

    @checked
    def with_settings(self, settings: SettingsLike) -> PlannedOrder:
        """Return the order of the same spec under other settings."""
        return order_of(self.resolved, as_settings(settings))

    def __repr__(self) -> str:
        total = counted(self.order.num_examples, "example")
        total = "without end" if self.order.is_endless else total
        return in_short(self, f"{self.order.dataset.title} {self.spec}", total)


@checked
def plan_order(
    dataset: DatasetLike,
    spec: str | None = None,
    settings: SettingsLike | None = None,
    **keywords: Unpack[OrderSettings],
) -> PlannedOrder:
    """Return the order in which a pipeline reads a spec, to be asked for any position of it.

    Args:
        dataset: a reference as "mnist", a path, a list of these, or a Dataset.
        spec: what is read, a subsplit as TFDS writes it; None is `train`, else the only split.
        settings, keywords: how it is read: a ReadSettings, a dict of its values, or keywords.

    Returns:
        A PlannedOrder, whose `order` answers without building the whole: `read`, `codes_at`,
        `positions_of`.

    Raises:
        UsageError: a bad spec, or settings that contradict each other or the dataset.
        UnpredictableOrderError: the order is nondeterministic.

    >>> import shardctl
    >>> order = shardctl.plan_order("mnist", "train", {"cycle": 1}).order
    >>> order.num_examples, order.codes_at([0, 59_999]).tolist()
    (60000, [0, 59999])
    """
    return order_of_version(as_dataset(dataset), spec, as_settings(settings))


def order_of_version(
    dataset: Dataset, spec: str | None, settings: ReadSettings, version: LoaderVersion | None = None
) -> PlannedOrder:
    """Return the order of `plan_order`, of a loader as a version of its library makes it.

    None is the version in force.
    """
    if settings.stages is None:  # nothing of stages is loaded
        return order_of(resolved_spec.resolved_spec(dataset, spec), settings, version)
    from shardctl.order.sources import refuse_unread_spec

    try:
        refuse_unread_spec(spec, settings)
    except UsageError as unread:
        # What the stages read, as answers and files call it, says no more than they do.
        planned = order_with_stages(dataset, None, settings, version=version)
        if planned.spec != spec:
            raise unread from None
        return planned
    return order_with_stages(dataset, spec, settings, version=version)


def order_of(
    resolved: Resolved, settings: ReadSettings, version: LoaderVersion | None = None
) -> PlannedOrder:
    """Return the order of a spec that is resolved; a command resolves each once.

    version: of a loader, see `order_of_version`.

    Raises:
        UsageError, UnpredictableOrderError: as for `plan_order`.
    """
    given = getattr(resolved, "given", None)
    if settings.stages is not None:
        dataset, spec = given or (resolved.dataset, resolved.spec)
        known = getattr(resolved, "known", None)
        return order_with_stages(dataset, spec, settings, known, version=version)
    if given is not None:
        resolved = resolved_spec.resolved_spec(*given)
    # Before the loader is looked at: `all` is nondeterministic for each of them.
    resolved_spec.refuse_open_splits(resolved)
    if not settings.reader.on_tf_data:
        from shardctl.order.loader_order import LoaderOrder, loader_version

        version = version or loader_version(settings)
        settings = replace(settings, loader_version=version.version)
        resolved = resolved_spec.as_read_by(resolved, settings)
        said = version.assumptions
        by_loader = LoaderOrder(resolved.dataset, resolved.ranges, settings, assumptions=said)
        return _planned(resolved, by_loader, of_version=version.warnings)
    order = ReaderOrder(resolved.dataset, resolved.ranges, settings)
    listed_files = resolved_spec.listing_warnings(resolved.dataset, resolved.ranges, settings)
    return _planned(resolved, order, (*_assumptions(settings), *listed_files))


def order_with_stages(
    dataset: Dataset,
    spec: str | None,
    settings: ReadSettings,
    known: Mapping[str, Dataset] | None = None,
    *,
    version: LoaderVersion | None = None,
) -> PlannedOrder:
    """Return the order of settings with stages, of those that say the same where there are such."""
    from shardctl.order.sources import sources, spec_of_reader
    from shardctl.settings.short_form import of_one_reader, stages_of
    from shardctl.stages.pipelines import open_stages
    from shardctl.stages.text import text_of_part

    # Refused before the datasets of other readers are looked up: their files need not exist for it.
    for found in open_stages(stages_of(settings), global_seed=settings.global_seed):
        raise UnpredictableOrderError(
            f"--stages: {text_of_part(found.stage)} makes the order nondeterministic: "
            f"{found.reason}"
        )
    # Stages that say no more than settings do become settings, which have a closed form. Everything
    # that is known of a reader's order then holds for them, too.
    short, reader = of_one_reader(settings) or (settings, None)
    if reader is not None:
        kept = None if reader.data is None else (known or {}).get(reader.data)
        if reader.data is not None:
            dataset = as_dataset(reader.data) if kept is None else kept
        own = spec_of_reader(reader, dataset, spec, is_known=kept is not None)
        return order_of(resolved_spec.resolved_spec(dataset, own), short)
    if not settings.reader.on_tf_data:
        from shardctl.order.loader_order import loader_version

        version = version or loader_version(settings)
        settings = replace(settings, loader_version=version.version)
    whole = sources(dataset, spec, settings, known)
    order = whole.order(settings, version)
    if version is not None:
        return _planned(whole.resolved, order, of_version=version.warnings)
    drawn: int = getattr(order, "num_drawn_seeds", 0)  # of stages of tf.data
    return _planned(whole.resolved, order, _assumptions(settings, drawn))


def as_warnings(assumptions: Iterable[str]) -> tuple[str, ...]:
    """Return what orders depend on unstated as warnings, where several orders have one answer."""
    return tuple(f"assumed: {text}" for text in assumptions)


def _planned(
    resolved: Resolved,
    order: Order,
    assumptions: Iterable[str] = (),
    of_version: tuple[str, ...] = (),
) -> PlannedOrder:
    # An empty spec has a warning of its own in `resolved`.
    empty = [order.why_empty] if resolved.num_examples and not order.num_examples else []
    said = (*resolved.warnings, *assumptions, *of_version, *empty)
    return PlannedOrder(resolved=resolved, order=order, of_version=of_version, warnings=said)


def _assumptions(settings: ReadSettings, num_in_stages: int = 0) -> Iterator[str]:
    """Say what is taken for granted of seeds that the script draws from a global one."""
    of_files = settings.shuffles_files and settings.shuffle_seed is None
    of_buffer = settings.buffer is not None and settings.buffer_seed is None
    if num_in_stages or of_files or of_buffer:
        yield (
            "missing seeds are drawn from --global-seed: this is the order if only the random ops "
            "of this pipeline are built after tf.random.set_seed, in its order; set their seeds "
            "to be sure"
        )
