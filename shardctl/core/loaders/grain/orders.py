"""Grain's own orders: DataLoader over an IndexSampler, and MapDataset, in closed form.

Sources: grain/_src/python/samplers.py, data_loader.py and dataset/transformations/.
"""

from __future__ import annotations

from shardctl.core.loaders.asked import Asked
from shardctl.core.loaders.grain.stream import NUM_SEEDS, Stream
from shardctl.core.loaders.grain.workers import GrainHandedOut, WorkerBatches
from shardctl.core.loaders.handed_out import HandedOut
from shardctl.core.loaders.versions import release_of
from shardctl.core.phrase import Argument, phrase
from shardctl.errors import UsageError

# From here on a DataLoader reads as many records on every host: what a sampler has of all epochs,
# divided by the number of hosts and rounded down (`_SamplerMapDataset`); before, all of them.
EQUAL_HOSTS_SINCE = (0, 2, 13)
# Numbers of records beyond this are none that anybody has.
_MOST = 1 << 61


def handed_out(asked: Asked) -> HandedOut:
    """Return what one process of Grain hands out.

    Hosts that share by "examples", and a shuffle of windows, are those of a MapDataset
    (`source.shuffle(seed).repeat(epochs)[host::hosts].to_iter_dataset().batch(..).mp_prefetch(..)`);
    everything else is a DataLoader over an IndexSampler.

    Raises:
        UsageError: Grain refuses these settings, or they are settings of two of its ways.
    """
    _check_seed("shuffle_seed", asked.seed)
    if asked.num_examples * asked.epochs >= _MOST:
        raise UsageError(f"Grain cannot count {asked.num_examples} examples")
    maps = asked.host_by == "examples" or asked.buffer is not None
    stream = _of_map_dataset(asked) if maps else _of_sampler(asked)
    if asked.batch is None:
        return GrainHandedOut(stream, None)
    batches = WorkerBatches(
        stream.size, asked.batch, asked.workers, drop_remainder=asked.drop_remainder
    )
    return GrainHandedOut(stream, batches)


def host_share(num_examples: int, host: int, num_hosts: int, *, drop: bool) -> range:
    """Return the examples that an IndexSampler shuffles on a host: one piece of all of them.

    Source: `even_split` in grain/_src/core/sharding.py.

    >>> [host_share(10, host, 3, drop=False) for host in range(3)]
    [range(0, 4), range(4, 7), range(7, 10)]
    """
    each, rest = divmod(num_examples, num_hosts)
    if drop:
        return range(host * each, (host + 1) * each)
    start = host * each + min(host, rest)
    return range(start, start + each + (host < rest))


def equal_hosts(version: str) -> bool:
    """Return whether all hosts of a version read equally many records of an IndexSampler.

    >>> equal_hosts("0.2.18"), equal_hosts("0.2.12")
    (True, False)
    """
    release = release_of(version)
    return release is None or release >= EQUAL_HOSTS_SINCE


def _of_sampler(asked: Asked) -> Stream:
    if asked.host_by != "even":
        raise UsageError(
            phrase(
                "Grain has no {}: its hosts share by {host_by=even} (ShardOptions) or "
                "{host_by=examples} (a slice of a MapDataset)",
                Argument("host_by", asked.host_by),
            )
        )
    if not asked.num_examples:
        raise UsageError("Grain's IndexSampler refuses to read no examples; read at least one")
    host, num_hosts, drop = asked.host, asked.num_hosts, asked.drop_shard_remainder
    share = host_share(asked.num_examples, host, num_hosts, drop=drop)
    in_sampler = asked.epochs * (len(share) * num_hosts if drop else asked.num_examples)
    if equal_hosts(asked.version):
        size = in_sampler // num_hosts
    else:
        size = len(range(host, in_sampler, num_hosts))
    if size and not share:
        raise UsageError(
            phrase(
                "host {} of {} has no example of its own, yet Grain asks its sampler for {}, and "
                "stops with a division by zero; share {} examples among fewer hosts, or leave the "
                "rest out with {drop_shard_remainder=True}",
                host,
                num_hosts,
                size,
                asked.num_examples,
            )
        )
    return Stream(size=size, share=len(share), first=share.start, seed=asked.seed)


def _of_map_dataset(asked: Asked) -> Stream:
    if asked.shares and asked.host_by != "examples":
        raise UsageError(
            phrase(
                "{buffer} is the shuffle of windows of Grain's MapDataset, whose hosts share by "
                "{host_by=examples}"
            )
        )
    if asked.drop_shard_remainder:
        raise UsageError(
            phrase(
                "{drop_shard_remainder} is of Grain's IndexSampler; a slice of a MapDataset "
                "({host_by=examples}) drops nothing"
            )
        )
    start, stride = asked.host, asked.num_hosts
    size = len(range(start, asked.num_examples * asked.epochs, stride))
    if asked.buffer is not None:
        _check_windows(asked, (start + (size - 1) * stride) // max(asked.buffer, 1) if size else 0)
    return Stream(
        size=size,
        share=asked.num_examples,
        seed=asked.seed,
        window=asked.buffer,
        window_seed=asked.buffer_seed or 0,
        start=start,
        stride=stride,
    )


def _check_windows(asked: Asked, last_window: int) -> None:
    assert asked.buffer is not None
    if asked.buffer < 1:
        raise UsageError(
            phrase(
                "{}: Grain shuffles windows of 1 example at least; {shuffle_seed=N} shuffles all",
                Argument("buffer", asked.buffer),
            )
        )
    if asked.buffer_seed is None:
        raise UsageError(
            phrase("{buffer} is WindowShuffleMapDataset, which needs a seed; give {buffer_seed=N}")
        )
    _check_seed("buffer_seed", asked.buffer_seed)
    if asked.buffer_seed + last_window >= NUM_SEEDS:
        raise UsageError(
            phrase(
                "{}: Grain adds the number of the window, up to {}, and refuses seeds beyond {}",
                Argument("buffer_seed", asked.buffer_seed),
                last_window,
                NUM_SEEDS - 1,
            )
        )


def _check_seed(name: str, seed: int | None) -> None:
    if seed is not None and not 0 <= seed < NUM_SEEDS:
        raise UsageError(
            phrase("{}: Grain takes seeds from 0 to {}", Argument(name, seed), NUM_SEEDS - 1)
        )
