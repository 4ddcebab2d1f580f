"""A plan held against the builder that is to read it."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from shardctl.core.dataset.dataset import Dataset
from shardctl.core.hosts.host import Host
from shardctl.core.instructions.instruction_columns import InstructionColumns
from shardctl.core.instructions.reads import ReadTable
from shardctl.core.instructions.subsplit import Resolved
from shardctl.core.order.example_codes import ExampleCodes
from shardctl.core.order.order import Order
from shardctl.core.resume.resume_plan import ResumePlan
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.errors import UsageError
from shardctl.files.plan.reader import read_plan
from shardctl.planning.order import order_of, resolved_spec
from shardctl.planning.resume.check import applied, table_of
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
    columns: InstructionColumns
    settings: ReadSettings

    @property
    def table(self) -> ReadTable:
        """The instructions as rows of the dataset."""
        return table_of(self.columns, self.dataset)

    @property
    def num_examples(self) -> int:
        """Number of examples of the epoch that this host is still to hand out."""
        if self.plan.hosts:
            return self.columns.num_examples
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
    columns, settings = plan.instructions, plan.settings
    if plan.hosts:
        columns = host_columns(plan, host)
        settings = replace(settings, host=Host(index=host or 0, count=len(plan.hosts)))
    elif host is not None:
        host_columns(plan, host)
    return FittedPlan(plan=plan, dataset=dataset, columns=columns, settings=settings)


def host_columns(plan: ResumePlan, host: int | None) -> InstructionColumns:
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
            f"host={host}: the plan deals to {len(plan.hosts)} hosts; "
            f"choose one of 0 to {len(plan.hosts) - 1}"
        )
    return plan.hosts[host].instructions


def further_epochs(plan: ResumePlan) -> range:
    """Return the epochs after the one that a plan begins in."""
    return range(plan.epoch + 1, plan.epoch + 1 + plan.num_further_epochs)


def epoch_table(order: Order, epoch: int) -> ReadTable:
    """Return the rows of an order as one epoch opens them."""
    return order.table.select(order.reads(epoch).opened)
