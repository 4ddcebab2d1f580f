"""How an epoch ends on all hosts: equal steps or a hang, what is repeated, what nobody reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from shardctl.core.hosts.host import Host
from shardctl.core.order.order import Order
from shardctl.core.settings.read_settings import ReadSettings

MAX_HOSTS = 1024


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How an epoch of `num_hosts` hosts ends.

    steps: the fewest and the most batches of a host; a step that not all make hangs a collective.
    num_repeated: examples that are handed out again so that hosts are even.
    num_left_out: examples that no host gets.
    num_dropped: examples of batches that are not full and dropped, as the settings ask.
    last_batch: examples in the smallest of the last batches, None where all are full.
    """

    num_hosts: int
    steps: tuple[int, int]
    num_repeated: int
    num_left_out: int
    num_dropped: int
    last_batch: int | None

    @property
    def hangs(self) -> bool:
        """Whether a host makes more steps than another."""
        return self.steps[0] != self.steps[1]


def ending_of(
    order_under: Callable[[ReadSettings], Order], settings: ReadSettings, num_examples: int
) -> Ending:
    """Return how an epoch of all hosts ends that share so many examples.

    A loader either repeats examples or leaves some out, and those that it repeats come last, where
    they are dropped first: their numbers follow from how many the hosts have together. Grain's
    shuffles do both besides, see `HandedOut.num_again`; of these batches are dropped afterwards.

    Raises:
        UsageError: the loader refuses one of the hosts.
    """
    count = 1 if settings.host is None else settings.host.count
    kept, steps, last = 0, [], []
    whole: list[Order] = []
    for index in range(count):
        host = None if settings.host is None else Host(index=index, count=count)
        of_host = replace(settings, host=host)
        order = order_under(of_host)
        kept += order.num_examples
        num_steps = order.num_steps or 0
        steps.append(num_steps)
        if num_steps:
            last.append(len(order.positions_in_step(num_steps - 1)))
        whole.append(order_under(replace(of_host, drop_remainder=False)))
    smallest = min(last, default=0)
    left_out = max(0, num_examples - sum(order.num_examples for order in whole))
    of_loader = [order.handed_out for order in whole if order.handed_out is not None]
    again = of_loader[0].num_again(of_loader) if of_loader else 0
    return Ending(
        num_hosts=count,
        steps=(min(steps), max(steps)),
        num_repeated=max(0, kept - num_examples) + again,
        num_left_out=left_out + again,
        num_dropped=max(0, num_examples - kept) - left_out,
        last_batch=smallest if 0 < smallest < (settings.batch or 1) else None,
    )
