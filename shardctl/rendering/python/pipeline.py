"""The order of `simulate` as code: the calls of TFDS and tf.data that have it.

They are those of `shardctl.tfds.pipeline`, which `verify` runs, one by one.
"""

from __future__ import annotations

from collections.abc import Iterator

from shardctl.core.order.order import Order
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.tfds_rules import WHOLE_DATASET
from shardctl.planning.file_formats import refuse_unreadable
from shardctl.planning.simulate import Simulation
from shardctl.rendering.python import reader
from shardctl.rendering.python.source import (
    call,
    code_of_host,
    comment,
    keywords,
    literal,
    module,
    order_comment,
)


def simulate_python(simulation: Simulation) -> Iterator[str]:
    """Yield code that makes `ds`, whose iterations have the order.

    What is shown of the order (`skip`, `take`) is no part of the pipeline: a comment has it.

    Raises:
        DatasetError: `as_dataset` does not read the format.
        UsageError: a list of more files than code is to hold, or nothing to read.
    """
    order, settings = simulation.order, simulation.order.settings
    if settings.stages is not None:
        yield from _staged(simulation)
        return
    if settings.loader != "tfds":
        from shardctl.rendering.python.loaders import loader_python

        yield from loader_python(simulation)
        return
    refuse_unreadable(order.dataset)
    if not len(order.reads):
        raise reader.nothing_to_read(simulation.spec, settings)
    listed, sorts = reader.file_order(settings)
    made = [
        *reader.read_config(settings, ordered=order.dataset.ordered),
        *reader.as_dataset("ds", reader.split_of_host(simulation.spec, settings), settings),
        *_behind_reader(order),
    ]
    seed = list(_global_seed(settings))
    builder = list(reader.builder(order.dataset))
    yield from module(
        order_comment(simulation.spec, order),
        reader.imports([*sorts, *made, *seed, *builder]),
        listed,
        sorts,
        [*seed, *builder],
        [*reader.host(settings), *made],
        _how_to_read(simulation),
    )


def _staged(simulation: Simulation) -> Iterator[str]:
    """Yield the code of a pipeline with stages."""
    from shardctl.core.order.staged import StagedOrder
    from shardctl.rendering.python.stages import StagesCode

    order = simulation.order
    assert isinstance(order, StagedOrder)
    if not len(order.reads):
        raise reader.nothing_to_read(simulation.spec, order.settings)
    made = StagesCode(order)
    seed = list(_global_seed(order.settings))
    yield from module(
        order_comment(simulation.spec, order),
        reader.imports([*made.functions, *made.lines, *seed]),
        made.listed,
        made.functions,
        seed,
        made.lines,
        _how_to_read(simulation),
    )


def shuffle(settings: ReadSettings, *, seed: int | None, reshuffle: bool | None) -> str:
    """Return the call of `ds.shuffle` with the buffer of settings."""
    size = settings.buffer
    whole = "tf.data.UNKNOWN_CARDINALITY"  # stands for the whole dataset
    arguments = {} if seed is None else {"seed": literal(seed)}
    if reshuffle is not None:
        arguments["reshuffle_each_iteration"] = literal(reshuffle)
    buffer = whole if size == WHOLE_DATASET else literal(size)
    return f"shuffle({', '.join([buffer, *keywords(arguments)])})"


def batch(settings: ReadSettings) -> Iterator[str]:
    """Yield the call of `ds.batch`, nothing where there is none."""
    if settings.batch is not None:
        arguments = [literal(settings.batch)]
        if settings.drop_remainder:
            arguments.append("drop_remainder=True")
        yield from call("ds = ds.batch", arguments)


def _global_seed(settings: ReadSettings) -> Iterator[str]:
    if settings.global_seed is not None:
        yield "# It counts when the dataset is made, so nothing that draws a seed may come between."
        yield f"tf.random.set_seed({literal(settings.global_seed)})"
    elif settings.shuffles_files or settings.buffer not in (None, 1) or settings.stages is not None:
        yield "# With a tf.random.set_seed in force (keras.utils.set_random_seed sets it too) the"
        yield "# order is another one."


def _behind_reader(order: Order) -> Iterator[str]:
    """Yield `shard`, `shuffle`, `repeat` and `batch`, as `tfds.training.pipeline` makes them."""
    settings = order.settings
    if shard := code_of_host(settings).examples:
        yield f"ds = ds{shard}"
    if settings.buffer is not None:
        seed, reshuffle = settings.buffer_seed, settings.buffer_reshuffle
        yield f"ds = ds.{shuffle(settings, seed=seed, reshuffle=reshuffle)}"
    if settings.repeat_files:
        # The files repeat for ever.
        yield f"ds = ds.take({order.epoch_size * settings.epochs})"
    elif settings.epochs > 1:
        yield f"ds = ds.repeat({settings.epochs})"
    yield from batch(settings)


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
