"""A plan checked against the builder that is to read it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from operator import index
from typing import Any

from shardctl.core.dataset.dataset import Dataset
from shardctl.core.hosts.host import Host, HostLike, as_host
from shardctl.core.instructions.reads import Reads
from shardctl.core.instructions.subsplit import Resolved
from shardctl.core.order.reader_order import ReaderOrder
from shardctl.core.resume.resume_plan import PlanOrPath, ResumePlan, TakeCall, plan_of_tfds
from shardctl.core.settings.read_settings import ReadSettings, with_any_buffer_seed
from shardctl.errors import UsageError
from shardctl.planning.order import order_of
from shardctl.planning.pinned_sources import resolved_reading
from shardctl.planning.resume.apply_plan import applied, check_same_dataset
from shardctl.planning.resume.seen import codes_of
from shardctl.tfds.builder_layout import dataset_of, in_order_of
from shardctl.tfds.training.global_seed import check_global_seed_of_plan
from shardctl.tfds.training.process_host import check_host
from shardctl.tfds.training.records import RecordReader


@dataclass(frozen=True, kw_only=True)
class FittedPlan:
    """A plan whose files are found in a builder's dataset, as one host reads it.

    `settings` are those with which the host reads the epochs after the one the plan begins in: of
    a plan for other hosts, as the new host.
    """

    plan: ResumePlan
    dataset: Dataset
    reads: Reads
    settings: ReadSettings

    @property
    def num_examples(self) -> int:
        """Number of examples of the epoch that this host is still to hand out."""
        if self.plan.hosts:
            return self.reads.num_examples
        return self.plan.remaining

    @property
    def cuts_stream(self) -> bool:
        """Whether the rest is a part of a stream of files that has no end of its own."""
        return cuts_stream(self.plan)

    def order(self) -> ReaderOrder:
        """Return the order of which the further epochs are a part.

        Of a plan without a seed it is the order in which their buffers read.
        """
        settings = self.settings
        if self.plan.unseeded is not None:
            settings = with_any_buffer_seed(settings)
        return order_of(self._resolved, settings).of_reader

    def reader(self, kind: type[RecordReader], **how: Any) -> RecordReader:
        """Return what reads the records, with the codes of the spec and the plan's interleave."""
        codes = codes_of(self._resolved)  # also where nothing fixes an order
        return kind(codes=codes, cycle=self.plan.cycle_length, block=self.settings.block, **how)

    def check_global_seed(self) -> None:
        """Refuse a global seed that is in force and changes the order that the plan is of.

        Raises:
            UsageError: see `check_global_seed_of_plan`.
        """
        check_global_seed_of_plan(self.plan, self.dataset)

    @cached_property
    def _resolved(self) -> Resolved:
        return resolved_reading(self.dataset, self.plan.spec, self.plan.settings)


def cuts_stream(plan: ResumePlan) -> bool:
    """Return whether what is left is cut from a stream of files that has no end of its own."""
    return any(isinstance(call, TakeCall) for call in plan.after_read)


def fitted(
    source: Any, plan: PlanOrPath, host: int | HostLike | None, *, allow_version: bool = False
) -> FittedPlan:
    """Return a plan as host `host` reads it from the files of a builder, or of a Dataset.

    Raises:
        DatasetError: the dataset is not the one the plan was made for; the text says what changed.
        UsageError: a plan for several hosts and none is chosen, or the other way round; or a plan
            for another host, or another loader.
    """
    plan = plan_of_tfds(plan)
    dataset = dataset_for(plan, source)
    plan = applied(plan, dataset, allow_version=allow_version)
    reads, settings = reads_of_host(plan, host), plan.settings
    if plan.hosts:
        settings = replace(settings, host=_chosen(plan, host))
    return FittedPlan(plan=plan, dataset=dataset, reads=reads, settings=settings)


def check_builder(plan: ResumePlan, builder: Any, *, allow_version: bool = False) -> None:
    """Refuse a builder of another dataset than that of a plan.

    Raises:
        DatasetError: it is another one, or it has changed; the text says how.
    """
    dataset = dataset_for(plan, builder)
    check_same_dataset(plan.dataset, dataset, "plan", allow_version=allow_version)


def dataset_for(plan: ResumePlan, source: Any) -> Dataset:
    """Return the dataset of a builder with the splits in the plan's order; TFDS may have none."""
    dataset = source if isinstance(source, Dataset) else dataset_of(source)
    return in_order_of(dataset, [split.name for split in plan.dataset.splits])


def reads_of_host(plan: ResumePlan, host: int | HostLike | None) -> Reads:
    """Return what one host reads of a plan; see `check_host` for a plan that is for one alone.

    Raises:
        UsageError: see `fitted`.
    """
    if plan.hosts:
        return plan.hosts[_chosen(plan, host).index].instructions
    if plan.settings.host is not None:
        check_host(plan.settings.host, host)
    elif host is not None:
        raise UsageError(f"host={host}: this plan is for one reader; leave host out")
    return plan.instructions


def _chosen(plan: ResumePlan, host: int | HostLike | None) -> Host:
    count = len(plan.hosts)
    host = as_host(host) if isinstance(host, str) else host
    if isinstance(host, Host) and host.count == count:
        return host
    chosen = None if host is None or isinstance(host, Host) else index(host)
    if chosen is None or not 0 <= chosen < count:
        raise UsageError(
            f"host={host}: the plan is for {count} hosts; choose one of 0 to {count - 1}"
        )
    return Host(index=chosen, count=count)


def epochs_that_follow(plan: ResumePlan) -> range:
    """Return the epochs after the one that a plan begins in."""
    return range(plan.epoch + 1, plan.epoch + 1 + plan.num_further_epochs)


def reads_of_epoch(order: ReaderOrder, epoch: int) -> Reads:
    """Return the rows of an order as one epoch opens them."""
    return order.reads.select(order.reading(epoch).opened)
