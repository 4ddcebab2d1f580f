"""SC091 to SC094: what streaming with Hugging Face Datasets makes of shards, hosts and workers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from shardctl.core.loaders.hugging_face.eras import era_of, streams_tables
from shardctl.core.loaders.loader import LoaderName
from shardctl.core.phrase import Argument, phrase
from shardctl.core.text import counted
from shardctl.errors import ShardctlError
from shardctl.planning.lint.context import LintContext, Read
from shardctl.planning.lint.rule import Story, Violation, rule

if TYPE_CHECKING:
    from shardctl.core.loaders.hugging_face.streaming import Streaming
    from shardctl.core.order.loader_order import LoaderOrder

_HF: tuple[LoaderName, ...] = ("hf",)
_FAR_SMALLER = 2  # times


@rule(
    "SC091",
    "hosts-read-everything",
    "warning",
    "hosts that each stream all shards",
    story=Story(
        happens="split_dataset_by_node gives hosts shards of their own where the number of shards "
        "is a multiple of theirs. Where it is not, each host streams the whole dataset and keeps "
        "one example in so many: all bytes are fetched and decoded on every host. From 4.6 on "
        "nothing says so but a line of the log. datasets 5.0.x counts the shards anew after a "
        "shuffle, those of the shortest of 10 runs, so 12 shards become 1 for any number of hosts.",
        source="datasets/iterable_dataset.py, _prepare_ex_iterable_for_iteration: `num_shards % "
        "world_size == 0`, else StepExamplesIterable.",
        fix=phrase(
            "Write a number of shards that is a multiple of the hosts; from 5.1.0 on "
            "strategy='shards', {host_by=files}, gives some hosts a shard more in place of it."
        ),
        example="shardctl lint --loader hf --loader-version 5.2.0 --arrow --hosts 3 "
        "--shuffle-seed 1 --buffer 10000 -d imagenet2012",
    ),
    loaders=_HF,
)
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


@rule(
    "SC092",
    "idle-workers",
    "warning",
    "fewer shards than worker processes",
    story=Story(
        happens="A worker of a DataLoader streams whole shards. With more workers than shards "
        "those that are left over end at once: datasets logs it and goes on with fewer. After "
        "hosts were given shards, a host's own are what counts.",
        source="datasets/iterable_dataset.py, _iter_pytorch: 'Too many dataloader workers'.",
        fix=phrase("Fewer {workers}, or more and smaller shards."),
        example="shardctl lint --loader hf --loader-version 5.2.0 --streaming --shuffle-seed 1 "
        "--workers 4 -d mnist",
    ),
    loaders=_HF,
)
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
    story=Story(
        happens="IterableDataset.shuffle mixes what is in its buffer. Up to 4.x one shard after "
        "the other fills it, from 5.0 on up to 10 in turn. A buffer that holds a small part of "
        "these mixes neighbours only, whatever the order of the shards: a batch of 256 of "
        "ImageNet's 1,024 shards holds examples of 6 shards with 4.8 and a buffer of 1,000, of "
        "12 with 5.1, of 227 in a uniform order.\n\n"
        f"The finding is made where the buffer is {_FAR_SMALLER} times smaller than the mean shard "
        "times the number of shards that fill it in turn.",
        source=phrase(
            "datasets/iterable_dataset.py, BufferShuffledExamplesIterable. `shardctl quality` "
            "measures how well an order is mixed."
        ),
        fix="A larger buffer where memory allows; or store the examples shuffled and in more, "
        "smaller shards; or read by index, Dataset.shuffle, which is a uniform permutation.",
        example="shardctl lint --loader hf --loader-version 4.8.5 --streaming --shuffle-seed 1 "
        "--buffer 500 -d imagenet2012",
    ),
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
    story=Story(
        happens="datasets 4.8.0 to 4.8.2 count the examples that a host keeps from each table "
        "anew, and a shuffle makes tables of one row: the first host gets all examples, the others "
        "none, where hosts share the examples of Parquet or Arrow files. 4.8.3 counts on.",
        source="datasets/iterable_dataset.py of these versions, StepExamplesIterable._iter_arrow.",
        fix="datasets 4.8.3 or newer, or a number of shards that is a multiple of the hosts.",
        example="shardctl lint --loader hf --loader-version 4.8.0 --arrow --hosts 3 "
        "--shuffle-seed 1 --buffer 10000 -d imagenet2012",
    ),
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
