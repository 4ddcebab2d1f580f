"""Pipelines of other loaders than TFDS's as Python code, whole or from where one stopped."""

from __future__ import annotations

from collections.abc import Iterator

from shardctl.core.loaders.library import library_of
from shardctl.core.order.loader_order import LoaderOrder
from shardctl.core.resume.resume_plan import ResumePlan
from shardctl.errors import UsageError
from shardctl.planning.resume.resume import order_of_plan
from shardctl.planning.simulate import Simulation
from shardctl.rendering.python.source import comment, module, order_comment


def loader_python(simulation: Simulation) -> Iterator[str]:
    """Yield code that makes the loader of a simulation and goes through its epochs."""
    order = simulation.order
    assert isinstance(order, LoaderOrder)
    code = library_of(order.loader).code(simulation.spec, order)
    yield from module(order_comment(simulation.spec, order), *code)


def resume_python(plan: ResumePlan) -> Iterator[str]:
    """Yield code that reads what is left of all epochs.

    Raises:
        UsageError: a plan from a log, or for other hosts, which is of no order.
    """
    if plan.from_seen or plan.hosts:
        what = "a log left over" if plan.from_seen else "is shared among other hosts"
        raise UsageError(
            f"code that reads what {what} is not written for other loaders than TFDS's; "
            "--format json lists the examples, by their files"
        )
    assert plan.stop is not None
    order = order_of_plan(plan)
    stopped = comment(f"stopped after {plan.consumed:,} examples, in epoch {plan.epoch}")
    code = library_of(order.loader).code_of_rest(plan.spec, order, plan.stop)
    yield from module((*order_comment(plan.spec, order), *stopped), *code)
