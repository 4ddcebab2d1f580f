"""The order of `simulate` as code: the calls of TFDS and tf.data that have it."""

from __future__ import annotations

from collections.abc import Iterator

from shardctl.code import reader
from shardctl.code.pipeline import order_module
from shardctl.code.source import comment, module, order_comment
from shardctl.loaders.loader import library_of
from shardctl.order.loader_order import LoaderOrder
from shardctl.verbs.simulate.answer import Simulation


def simulate_python(simulation: Simulation) -> Iterator[str]:
    """Yield code that makes `ds`, whose iterations have the order.

    What is shown of the order (`skip`, `take`) is no part of the pipeline: a comment has it.

    Raises:
        DatasetError: `as_dataset` does not read the format.
        UsageError: a list of more files than code is to hold, or nothing to read.
    """
    order, settings = simulation.order, simulation.order.settings
    notes = order_comment(simulation.spec, order)
    if isinstance(order, LoaderOrder):
        yield from module(notes, *library_of(order.loader).code(simulation.spec, order))
        return
    if not len(order.reads):
        raise reader.nothing_to_read(simulation.spec, settings)
    yield from order_module(order, simulation.spec, notes, _how_to_read(simulation))


def _how_to_read(simulation: Simulation) -> Iterator[str]:
    settings = simulation.order.settings
    index = settings.pass_index
    if settings.loop == "keras-fit":
        yield f"# The order is that of epoch {index} of fit, counted from 0."
        yield f"model.fit(ds, epochs={index + 1})"
        return
    if index:
        times = "once" if index == 1 else f"{index} times"
        yield from comment(
            f"The order is that of iteration {index} of this very object, counted from 0: go "
            f"through all of it {times} before. Each iteration takes seeds of its own."
        )
    if not simulation.take:
        return
    last = simulation.skip + simulation.take - 1
    shape = simulation.order.shape
    if shape is None or len(shape) > 1:
        yield f"# Positions {simulation.skip:,} to {last:,} of the order count the examples in its"
        yield "# elements, one element after the other."
        return
    examples = "ds.unbatch()" if shape else "ds"
    skip = f".skip({simulation.skip})" if simulation.skip else ""
    yield f"# Positions {simulation.skip:,} to {last:,} of the order, as simulate shows them:"
    yield f"# {examples}{skip}.take({simulation.take})"
