"""What does each host read where another loader than TFDS's shares the examples, its own way?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from shardctl.core.arrays import Int64s
from shardctl.core.hosts.host import Host
from shardctl.core.hosts.host_reads import HostReads, SharedReads
from shardctl.core.instructions.reads import Reads, joined
from shardctl.core.instructions.subsplit import Resolved
from shardctl.core.loaders.loader import LOADERS
from shardctl.core.order.loader_order import LoaderOrder
from shardctl.core.order.order import CHUNK_SIZE
from shardctl.core.phrase import phrase
from shardctl.core.progress import Progress
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.errors import UsageError
from shardctl.planning.order import order_of

UInt8s = npt.NDArray[np.uint8]

_MOST_ROWS = 1 << 25  # files of all hosts together
_MOST_EXAMPLES = 1 << 31
_PER_SECOND = 3_000_000  # examples whose files are found


@dataclass(frozen=True, kw_only=True, eq=False)
class Shares:
    """What the hosts of a loader hand out in one epoch, before each drops a partial batch.

    Where they share batches, a partial one that is dropped is no part of it.

    reads: what all of them share. columns: a value a host.
    batches: of the whole pass, int64[num_hosts], None without a batch size.
    num_repeated: examples that are handed out again, as padding, by any host.
    num_left_out: examples that no host hands out.
    """

    reads: Reads
    columns: HostReads
    batches: Int64s | None
    num_repeated: int
    num_left_out: int


def call_of_hosts(settings: ReadSettings) -> str:
    """Return what shares the examples among hosts.

    >>> call_of_hosts(ReadSettings(loader="torch"))
    'DistributedSampler'
    """
    return LOADERS[settings.loader].takes["host"].partition("(")[0]


def host_orders(
    resolved: Resolved, settings: ReadSettings, num_hosts: int
) -> Iterator[LoaderOrder]:
    """Yield the order of each host.

    Raises:
        UsageError, UnpredictableOrderError: as for `plan_order`.
    """
    if "host" not in LOADERS[settings.loader].takes:
        raise UsageError(phrase("{loader=} shares nothing among hosts", loader=settings.loader))
    for index in range(num_hosts):
        host = Host(index=index, count=num_hosts) if num_hosts > 1 else None
        order = order_of(resolved, replace(settings, host=host)).order
        assert isinstance(order, LoaderOrder)
        yield order


def shares_of(resolved: Resolved, settings: ReadSettings, num_hosts: int) -> Shares:
    """Return what each host hands out in an epoch, from its whole order of that epoch.

    Raises:
        UsageError: too many hosts for so many files; else as for `plan_order`.
        UnpredictableOrderError: the loader leaves the order open.
    """
    drops = settings.drop_remainder and LOADERS[settings.loader].deals_batches
    of_epoch = replace(settings, epochs=1, drop_remainder=drops)
    orders = host_orders(resolved, of_epoch, num_hosts)
    first = next(orders)
    reads = first.reads
    if num_hosts * len(reads) > _MOST_ROWS or reads.num_examples > _MOST_EXAMPLES:
        raise UsageError(
            phrase(
                "{hosts=} of {:,} examples in {:,} files each are too many to look at one by one; "
                "give fewer {hosts}, or a part of the spec",
                reads.num_examples,
                len(reads),
                hosts=num_hosts,
            )
        )
    progress = Progress(
        None,
        "examples of the hosts",
        num_hosts + first.num_examples * num_hosts,
        per_second=_PER_SECOND,
        instead=phrase("give fewer {hosts}"),
    )
    times = np.zeros(reads.num_examples, np.uint8)
    rows, hosts = [reads.select(slice(0, 0))], [np.empty(0, np.int64)]
    num_read = np.zeros(num_hosts, np.int64)
    for index, order in enumerate((first, *orders)):
        counts = _counts(order, times, progress)
        here = np.flatnonzero(counts)
        rows.append(replace(reads.select(here), skip=np.zeros_like(here), take=counts[here]))
        hosts.append(np.full(len(here), index))
        taken = order.handed_out.num_read
        num_read[index] = order.num_examples if taken is None else taken
    columns = SharedReads(joined(rows)).by_rows(np.concatenate(hosts), num_hosts)
    batches = None
    if settings.batch is not None:
        whole = host_orders(resolved, settings, num_hosts)
        batches = np.array([order.num_steps for order in whole], np.int64)
    return Shares(
        reads=reads,
        columns=replace(columns, num_read=num_read),
        batches=batches,
        num_repeated=int(columns.num_examples.sum()) - int((times > 0).sum()),
        num_left_out=int((times == 0).sum()),
    )


def _counts(order: LoaderOrder, times: UInt8s, progress: Progress) -> Int64s:
    """Return how many examples of each row an order hands out, int64[rows]; marks them in `times`.

    One that is handed out again counts again.
    """
    stops = np.cumsum(order.reads.take)
    counts = np.zeros(len(stops), np.int64)
    for start in range(0, order.num_examples, CHUNK_SIZE):
        stop = min(start + CHUNK_SIZE, order.num_examples)
        indices = order.handed_out.indices_at(np.arange(start, stop))
        times[indices] = 1
        counts += np.bincount(np.searchsorted(stops, indices, side="right"), minlength=len(stops))
        progress.advance(stop - start)
    return counts
