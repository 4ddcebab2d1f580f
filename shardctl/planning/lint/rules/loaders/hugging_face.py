"""SC091 to SC094: what streaming with Hugging Face Datasets makes of shards, hosts and workers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from shardctl.core.loaders.hugging_face.eras import era_of, streams_tables
from shardctl.core.phrase import Argument, phrase
from shardctl.core.text import counted
from shardctl.errors import ShardctlError
from shardctl.planning.lint.context import LintContext, Read
from shardctl.planning.lint.rule import Violation, rule

if TYPE_CHECKING:
    from shardctl.core.loaders.hugging_face.streaming import Streaming
    from shardctl.core.order.loader_order import LoaderOrder

_HF = ("hf",)
_FAR_SMALLER = 2  # times


@rule("SC091", "hosts-read-everything", "warning", "hosts that each stream all shards", loaders=_HF)
def hosts_read_everything(context: LintContext) -> Iterator[Violation]:
    """Find hosts that share examples of a stream by stride without having asked for it."""
    for read, order, streaming in _streamed(context):
        asked = order.asked
        if asked.num_hosts == 1 or asked.host_by != "even" or streaming.shares_shards:
            continue
        files, hosts = len(asked.lengths_of_shards), asked.num_hosts
        now = ""
        if streaming.num_shards != files:
            now = f" (after the shuffle they count as {streaming.num_shards:,})"
        why = (
            f"{read.spec}: {hosts:,} hosts do not share {counted(files, 'shard')}{now} evenly: "
            f"each streams all of them and keeps one example in {hosts:,}"
        )
        by_files = phrase("{host_by=files}") if era_of(order.version).has_strategy else ""
        fix = phrase("a multiple of {} as the number of shards", hosts)
        yield Violation(
            why=why,
            fix=phrase("{}, or {}", fix, by_files) if by_files and files >= hosts else fix,
            specs=(read.spec,),
            settings=("hosts", "host_by"),
        )


@rule("SC092", "idle-workers", "warning", "fewer shards than worker processes", loaders=_HF)
def idle_workers(context: LintContext) -> Iterator[Violation]:
    """Find worker processes that get no shard."""
    for read, order, streaming in _streamed(context):
        idle, workers = streaming.num_idle_workers, order.asked.workers
        if idle:
            busy = workers - idle
            yield Violation(
                why=f"{read.spec}: {idle:,} of {counted(workers, 'worker')} get no shard",
                fix=phrase("{}, or more shards", Argument("workers", busy)),
                specs=(read.spec,),
                settings=("workers",),
            )


@rule(
    "SC093",
    "small-stream-buffer",
    "warning",
    "a buffer far smaller than the shards that fill it",
    loaders=_HF,
)
def small_stream_buffer(context: LintContext) -> Iterator[Violation]:
    """Find a buffer that holds a small part of the shards that fill it."""
    for read, order, streaming in _streamed(context):
        if order.asked.seed is None:
            continue
        files = len(order.asked.lengths_of_shards)
        in_turn = min(files, streaming.num_in_turn)
        filling = read.num_examples * in_turn // files
        if streaming.buffer * _FAR_SMALLER > filling:
            continue
        shards = "one shard" if in_turn == 1 else f"{in_turn:,} shards in turn"
        yield Violation(
            why=f"{read.spec}: the buffer holds {streaming.buffer:,} examples, and {shards} with "
            f"{filling:,} fill it, so neighbours stay together",
            fix=phrase("{}, or smaller shards", Argument("buffer", filling)),
            specs=(read.spec,),
            settings=("buffer",),
        )


@rule(
    "SC094",
    "lost-stride",
    "error",
    "a version that gives all examples to the first host",
    loaders=_HF,
)
def lost_stride(context: LintContext) -> Iterator[Violation]:
    """Find hosts that get nothing for a fault of the library."""
    for read, order, streaming in _streamed(context):
        asked = order.asked
        if asked.num_hosts == 1 or streaming.shares_shards:
            continue
        if era_of(order.version).strides_tables and streams_tables(asked):
            yield Violation(
                why=f"{read.spec}: datasets {order.version} gives all examples to the first of "
                f"{asked.num_hosts:,} hosts, and none to the others",
                fix=phrase("{loader_version=4.8.3} or newer"),
                specs=(read.spec,),
                settings=("loader_version", "hosts"),
            )


def _streamed(context: LintContext) -> Iterator[tuple[Read, LoaderOrder, Streaming]]:
    from shardctl.core.loaders.hugging_face.streaming import Streaming  # NumPy

    for read in context.trained:
        order = context.loader_order(read)
        if not isinstance(order, ShardctlError) and order.asked.streams:
            yield read, order, Streaming(order.asked, era_of(order.version))
