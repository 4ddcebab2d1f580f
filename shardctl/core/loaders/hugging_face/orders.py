"""The orders of Hugging Face Datasets: a `Dataset` read by index, or an `IterableDataset`."""

from __future__ import annotations

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.loaders.asked import Asked
from shardctl.core.loaders.handed_out import (
    Batches,
    Deal,
    Dealt,
    EpochByEpoch,
    EqualBatches,
    HandedOut,
    UnequalBatches,
)
from shardctl.core.loaders.hugging_face.eras import (
    Era,
    assumed_of_streams,
    check_tables,
    era_of,
    streams_tables,
)
from shardctl.core.loaders.hugging_face.streaming import Streaming, in_turn
from shardctl.core.phrase import Argument, phrase, refused
from shardctl.core.shuffle.window import MAX_BUFFER, check_buffer
from shardctl.errors import UnpredictableOrderError, UsageError

_BYTES = 85  # of memory an example, of an epoch that is streamed


def handed_out(asked: Asked) -> HandedOut:
    """Return what one process of Hugging Face Datasets hands out.

    A `Dataset` is shuffled, then split by node, as training scripts do; the other way round is
    another order. Of an `IterableDataset` both ways are one order.

    Raises:
        UsageError: `datasets` refuses these settings, or its version does not have them.
        UnpredictableOrderError: a shuffle without a seed.
    """
    if asked.seed is not None and asked.seed < 0:
        raise refused("{}: NumPy seeds are 0 or more", Argument("shuffle_seed", asked.seed))
    if asked.streams:
        return _streamed(asked)
    return _by_index(asked)


def _by_index(asked: Asked) -> HandedOut:
    """`Dataset.shuffle(seed)`, then `split_dataset_by_node`: one run of examples a host.

    A `Dataset` has no epochs: it is read in the same order each time.
    """
    if asked.streaming is False and asked.buffer is not None:
        raise refused(
            "{streaming=False} reads by index, and {} is of a stream; leave out one of them",
            Argument("buffer", asked.buffer),
        )
    if asked.host_by != "even":
        raise refused(
            "{}: split_dataset_by_node gives each host one run of a Dataset; "
            "{host_by=even}, or {streaming=True}",
            Argument("host_by", asked.host_by),
        )
    for name in ("input_shards", "before_shuffle"):
        if getattr(asked, name) is not None:
            raise refused("{} needs {streaming=True}", Argument(name, getattr(asked, name)))
    n, world = asked.num_examples, asked.num_hosts
    start = n // world * asked.host + min(asked.host, n % world)
    size = n // world + (asked.host < n % world)
    if n and not size:
        raise refused(
            "{}: datasets raises IndexError for a host that gets none of {} examples",
            Argument("host", f"{asked.host}/{world}"),
            n,
        )
    shuffles = asked.seed is not None
    if shuffles:
        _check_size(n)

    def permutation(epoch: int) -> Int64s:
        return np.random.default_rng(asked.seed).permutation(n)

    found = Dealt(
        n,
        Deal(first=start, size=asked.whole_batches(size)),
        epochs=asked.epochs,
        permutation=permutation if shuffles else None,
        batch=asked.batch,
    )
    found.is_shuffled_once = shuffles
    return found


def _streamed(asked: Asked) -> HandedOut:
    """`IterableDataset.shuffle(seed, buffer_size)`, split by node, read by a DataLoader's workers.

    Each worker makes batches of its own, which are handed out in turn.
    """
    era = era_of(asked.version)
    _check_streaming(asked, era)
    check_tables(asked)
    streaming = Streaming(asked, era)
    block = asked.batch or 1
    drops = asked.drop_remainder
    epochs = range(asked.first_epoch, asked.first_epoch + asked.epochs)
    of_workers = [streaming.sizes(epoch) for epoch in epochs]
    _check_size(
        max(map(sum, of_workers), default=0) * (1 if streaming.shares_shards else asked.num_hosts)
    )
    kept = [[size // block * block if drops else size for size in sizes] for sizes in of_workers]
    totals = [sum(sizes) for sizes in kept]

    def epoch(number: int) -> Int64s:
        read = streaming.workers(epochs[number])
        streams = [stream[:size] for stream, size in zip(read, kept[number], strict=True) if size]
        if len(streams) < 2:
            return streams[0] if streams else np.empty(0, np.int64)
        return in_turn(streams, block)[0]

    batches: Batches | None = None
    if asked.batch is not None and not asked.workers and len(set(totals)) == 1:
        batches = EqualBatches(totals[0], block, epochs=len(totals))
    elif asked.batch is not None:
        lengths = [in_turn([np.empty(size, np.int8) for size in sizes], block)[1] for sizes in kept]
        batches = UnequalBatches(np.concatenate([np.empty(0, np.int64), *lengths]))
    shuffles = asked.seed is not None
    whole = shuffles and not asked.workers and streaming.buffer >= asked.num_examples
    found = EpochByEpoch(totals, epoch, batches=batches, shuffles=shuffles, is_uniform=whole)
    found.num_in_turn = streaming.num_in_turn
    if asked.num_hosts > 1 and streaming.shares_shards:
        found.among = streaming.indices_of_shards(epochs[0]) if epochs else None
    loses = streams_tables(asked) and era.strides_tables
    if asked.num_hosts > 1 and not streaming.shares_shards and not loses:
        found.num_read = asked.num_examples  # all of it, of which one in so many is kept
    found.assumptions = assumed_of_streams(asked)
    return found


def _check_size(num_examples: int) -> None:
    """Refuse an epoch that takes more memory than a program should take unasked."""
    if num_examples > MAX_BUFFER:
        raise UsageError(
            f"an epoch of {num_examples:,} examples takes about {num_examples * _BYTES // 10**9} "
            f"GB to shuffle or stream here, and more than {MAX_BUFFER:,} are refused; read fewer "
            "of them, some shards at a time"
        )


def _check_streaming(asked: Asked, era: Era) -> None:
    cut = asked.cut_shards
    if cut:
        raise refused(
            "Hugging Face streams whole shards, and the spec reads parts of {}; name whole "
            "shards, or read by index with {streaming=False} and no {buffer}",
            "a shard" if cut == 1 else f"{cut} shards",
        )
    if asked.buffer is not None:
        if asked.seed is None:
            raise UnpredictableOrderError(
                phrase(
                    "IterableDataset.shuffle without a seed draws another order each time; "
                    "{} needs {shuffle_seed=N}",
                    Argument("buffer", asked.buffer),
                )
            )
        if asked.buffer < 1:
            raise refused(
                "{}: the shuffle buffer holds 1 example or more", Argument("buffer", asked.buffer)
            )
        check_buffer(asked.buffer)
    if asked.input_shards is not None:
        _check_input_shards(asked, era)
    if asked.before_shuffle is not None:
        if asked.seed is None:
            given = Argument("before_shuffle", asked.before_shuffle)
            raise refused("{} is read with {shuffle_seed=N} only", given)
        if era.strides_tables:
            raise refused(
                "{}: datasets {} shares what is read of tables in a way of its own, which is "
                "not known behind a call; upgrade it, or leave the call out",
                Argument("before_shuffle", asked.before_shuffle),
                asked.version,
            )
    if asked.shares and asked.host_by != "even":
        if not era.has_strategy:
            raise refused(
                "{}: split_dataset_by_node of datasets {} has no strategy; it came with 5.1.0",
                Argument("host_by", asked.host_by),
                asked.version,
            )
        if asked.host_by == "files" and len(asked.lengths_of_shards) < asked.num_hosts:
            raise refused(
                "{host_by=files}: datasets refuses strategy='shards' for {} shards on {} "
                "hosts; {host_by=even} shares the examples",
                len(asked.lengths_of_shards),
                asked.num_hosts,
            )


def _check_input_shards(asked: Asked, era: Era) -> None:
    given = Argument("input_shards", asked.input_shards)
    if asked.seed is None:
        raise refused("{} is read with {shuffle_seed=N} only", given)
    if era.interleave == "never":
        raise refused(
            "{}: datasets {} reads one shard after the other; max_buffer_input_shards came "
            "with 5.0.0",
            given,
            asked.version,
        )
