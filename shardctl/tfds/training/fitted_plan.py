"""A plan checked against the builder that is to read it."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from shardctl.core.dataset.dataset import Dataset
from shardctl.core.hosts.host import Host
from shardctl.core.instructions.reads import Reads
from shardctl.core.instructions.subsplit import Resolved
from shardctl.core.order.example_codes import ExampleCodes
from shardctl.core.order.order import Order
from shardctl.core.resume.resume_plan import ResumePlan
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.errors import UsageError
from shardctl.files.plan.reader import read_plan
from shardctl.planning.order import order_of, resolved_spec
from shardctl.planning.resume.apply_plan import applied
from shardctl.planning.resume.seen import codes_of
from shardctl.tfds.builder_layout import dataset_of, in_order_of

PlanOrPath = ResumePlan | str | os.PathLike[str]


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

    def order(self) -> Order:
        """Return the order of which the further epochs are a part."""
        return order_of(self._resolved, self.settings).order

    def codes(self) -> ExampleCodes:
        """Return the codes of what the spec reads, also where nothing fixes an order."""
        return codes_of(self._resolved)

    @cached_property
    def _resolved(self) -> Resolved:
        return resolved_spec(self.dataset, self.plan.spec)


def loaded(plan: PlanOrPath) -> ResumePlan:
    """Return a plan, or the one in a plan file."""
    return plan if isinstance(plan, ResumePlan) else read_plan(os.fspath(plan))


def fitted(builder: Any, plan: PlanOrPath, host: int | None) -> FittedPlan:
    """Return a plan as host `host` reads it from a builder's files.

    Raises:
        DatasetError: the dataset is not the one the plan was made for; the text says what changed.
        UsageError: a plan for several hosts and none is chosen, or the other way round.
    """
    plan = loaded(plan)
    dataset = in_order_of(dataset_of(builder), [split.name for split in plan.dataset.splits])
    plan = applied(plan, dataset)
    reads, settings = plan.instructions, plan.settings
    if plan.hosts:
        reads = reads_of_host(plan, host)
        settings = replace(settings, host=Host(index=host or 0, count=len(plan.hosts)))
    elif host is not None:
        reads_of_host(plan, host)
    return FittedPlan(plan=plan, dataset=dataset, reads=reads, settings=settings)


def reads_of_host(plan: ResumePlan, host: int | None) -> Reads:
    """Return what one host reads of a plan.

    Raises:
        UsageError: see `fitted`.
    """
    if not plan.hosts:
        if host is not None:
            raise UsageError(f"host={host}: this plan is for one reader; leave host out")
        return plan.instructions
    if host is None or not 0 <= host < len(plan.hosts):
        raise UsageError(
            f"host={host}: the plan is for {len(plan.hosts)} hosts; "
            f"choose one of 0 to {len(plan.hosts) - 1}"
        )
    return plan.hosts[host].instructions


def epochs_that_follow(plan: ResumePlan) -> range:
    """Return the epochs after the one that a plan begins in."""
    return range(plan.epoch + 1, plan.epoch + 1 + plan.num_further_epochs)


def reads_of_epoch(order: Order, epoch: int) -> Reads:
    """Return the rows of an order as one epoch opens them."""
    return order.reads.select(order.reading(epoch).opened)
