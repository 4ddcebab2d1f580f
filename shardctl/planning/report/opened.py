"""Which files a report shows as open: the first visits of an order, and those before its buffer."""

from __future__ import annotations

from dataclasses import replace

from shardctl.core.order.order import Order
from shardctl.planning.pictures.strips import Strips, strips

_ROUNDS = 4  # of the interleave, whose visits are shown one by one
_LONGEST = 4096  # positions
_OTHERWISE = 256  # positions, where there is no interleave to follow


def order_before_buffer(order: Order) -> Order | None:
    """Return the order in which files are read into a buffer, None where there is none to see."""
    settings = order.settings
    if settings.buffer is None or settings.stages is not None or settings.loader != "tfds":
        return None
    if not order.num_examples:
        return None
    read = replace(
        settings,
        buffer=None,
        buffer_seed=None,
        buffer_reshuffle=None,
        batch=None,
        drop_remainder=False,
    )
    return Order(order.dataset, order.ranges, read)


def first_visits(order: Order) -> Strips:
    """Return the first visits: of some rounds of the interleave, where it alone decides."""
    stop = _OTHERWISE
    if order.has_blocks:
        cycle = order.settings.cycle_length(ordered=order.dataset.ordered)
        stop = min(max(_ROUNDS * cycle * order.settings.block, stop), _LONGEST)
    return strips(order, 0, min(stop, order.num_examples))
