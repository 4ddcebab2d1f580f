"""The orders of Hugging Face Datasets: a `Dataset` read by index, or an `IterableDataset`.

A chain of their calls is followed call by call; plain settings stand for a chain of two.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.base.phrase import option, refused
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.loaders import hugging_face_eras as eras
from shardctl.loaders import hugging_face_stages as calls
from shardctl.loaders import hugging_face_streams as streams
from shardctl.loaders import loader_sequence
from shardctl.loaders.hugging_face_streams import Elements, Node, Stream, indices, taken_in_turn
from shardctl.loaders.loader import release_of
from shardctl.loaders.loader_sequence import LoaderConfig, LoaderSequence, LoaderSource
from shardctl.loaders.torch_generator import numbers_in
from shardctl.stages.part import Source, Stage
from shardctl.stages.pipelines import parts_of
from shardctl.stages.stages import Pipeline, Read
from shardctl.tfdata.shuffle_buffer import MAX_BUFFER, check_buffer

_BYTES = 85  # of memory an example, of an epoch that is streamed
SLICE = re.compile(r"(?:range\()?(\d*)\s*[:,]\s*(\d*)(?:\s*[:,]\s*([1-9]\d*))?\)?")
_BATCHED = (
    "map(batched=True) yields as many examples as it is given; one that yields more or fewer has "
    "another order"
)
_EPOCHS = (
    "set_epoch is called before each epoch; where it never is, all epochs are alike: "
    "shuffle(.., set_epoch=False)"
)


def hugging_face_sequence(config: LoaderConfig) -> LoaderSequence:
    """Return what one process of Hugging Face Datasets yields.

    By settings a `Dataset` is shuffled, then split by node, as training scripts do; the other way
    round is another order. Of an `IterableDataset` both ways are one order.

    Raises:
        UsageError: `datasets` refuses these settings, or its version does not have them.
        UnpredictableOrderError: a shuffle without a seed.
    """
    plain = config.stages is None
    if plain:
        _check_settings(config)
    config, pipeline = chain_of(config)
    chain = _Chain(config, plain=plain)
    return _sequence(config, chain, chain.made(pipeline), pipeline, plain=plain)


def chain_of(config: LoaderConfig) -> tuple[LoaderConfig, Pipeline]:
    """Return settings with their chain, and it: plain settings stand for one."""
    if config.stages is not None:
        return config, config.stages
    stages = list[Stage]()
    if config.seed is not None:
        buffer, shards = config.buffer, config.input_shards
        stages.append(
            calls.Shuffle(seed=config.seed, buffer_size=buffer, max_buffer_input_shards=shards)
        )
    if config.shares:
        strategy = STRATEGIES.get(config.host_by, "auto")
        stages.append(calls.SplitByNode(strategy=strategy))  # type: ignore[arg-type]
    sources, chain = {Read(): config}, Pipeline(stages=tuple(stages))
    return replace(config, streaming=config.streams, stages=chain, sources=sources), chain


# What `split_dataset_by_node` calls the ways to share.
STRATEGIES = {"files": "shards", "examples": "examples"}


def _check_settings(config: LoaderConfig) -> None:
    """Refuse settings that have no chain; what their chain has not, the chain refuses."""
    if config.seed is not None and config.seed < 0:
        raise refused("{}: NumPy seeds are 0 or more", option("shuffle_seed", config.seed))
    if config.seed is None and config.buffer is not None:
        raise UnpredictableOrderError(
            "IterableDataset.shuffle without a seed draws another order each time; "
            f"{option('buffer', config.buffer)} needs --shuffle-seed N"
        )
    if config.seed is None and config.input_shards is not None:
        given = option("input_shards", config.input_shards)
        raise refused("{} is read with {shuffle_seed=N} only", given)
    if config.host_by != "even" and not config.streams:
        raise refused(
            "{}: split_dataset_by_node gives each host one run of a Dataset; "
            "{host_by=even}, or {streaming=True}",
            option("host_by", config.host_by),
        )


def _check_size(num_examples: int) -> None:
    """Refuse an epoch that takes more memory than a program should take unasked."""
    if num_examples > MAX_BUFFER:
        raise UsageError(
            f"an epoch of {num_examples:,} examples takes about {num_examples * _BYTES // 10**9} "
            f"GB to shuffle or stream here, and more than {MAX_BUFFER:,} are refused; read fewer "
            "of them, some shards at a time"
        )


class _Chain:
    """Follows the calls of a chain, each as the library does.

    assumed: what is taken for granted on the way, a sentence each.
    """

    def __init__(self, config: LoaderConfig, *, plain: bool) -> None:
        self._config, self._plain = config, plain
        self.era, self.assumed = eras.era_of(config.version), list[str]()
        self.elements = Elements(config.num_examples)
        given = config.file_format
        # Files that `datasets` has no reader of are tables or rows, and the user says which.
        self._is_unknown = config.arrow is None and bool(given) and not eras.is_read(given)

    def made(self, pipeline: Pipeline) -> Stream:
        """Return the dataset that a pipeline makes."""
        source = pipeline.source
        if isinstance(source, Read):
            found = self._read(self._config.sources[source])
        else:
            found = self._combined(source, [self.made(one) for one in source.fed_by])
        for stage in pipeline.stages:
            if isinstance(stage, calls.Map) and stage.batched:
                self.assumed.append(_BATCHED)
            if isinstance(stage, calls.SplitByNode):
                found = self._split(stage, found)
            else:
                found = (self._of_rows if found.by_index else self._of_stream)(stage, found)
        return found

    def _rows(self, row: Int64s | range) -> Stream:
        return Stream(node=streams.Shards(era=self.era, rows=(row,)), by_index=True)

    def _read(self, source: LoaderSource) -> Stream:
        if not self._config.streams:
            return self._rows(source.indices)
        shards = source.shards
        cut = int((source.lengths != np.array([len(one) for one in shards if one])).sum())
        if cut:
            raise refused(
                "Hugging Face streams whole shards, and the spec reads parts of {}; name whole "
                "shards, or read by index with {streaming=False} and no {buffer}",
                "a shard" if cut == 1 else f"{cut} shards",
            )
        tables = self._is_unknown or eras.of_tables(self._config)
        return Stream(node=streams.Shards(era=self.era, rows=shards, of_tables=tables))

    def _combined(self, source: Source, found: list[Stream]) -> Stream:
        first, name, version = found[0], source.name, self._config.version
        never = isinstance(source, calls.Interleave) and 0 in (source.probabilities or ())
        if never and source.stopping_strategy != "first_exhausted":  # type: ignore[attr-defined]
            raise UsageError(f"{name}: an input of probability 0 never ends")
        depths = map(_depth, source.fed_by)
        if len({(one.by_index, depth) for one, depth in zip(found, depths, strict=True)}) > 1:
            raise UsageError(f"{name}: datasets combines Datasets, or streams, of one kind of rows")
        if first.by_index:
            rows = [indices(one.row) for one in found]
            whole = np.concatenate(rows)
            if isinstance(source, calls.Interleave):
                sizes = list(map(len, rows))
                sources, places = _interleaved(self._as_run(source), sizes)
                whole = whole[np.cumsum([0, *sizes])[sources] + places]
            return self._rows(whole)
        self._check_version(name)
        if not all(len(one.node.read(1)) for one in found):
            raise UsageError(f"{name}: datasets raises StopIteration for a stream without examples")
        if len({(one.rank, one.world_size, one.strategy) for one in found}) > 1:
            raise UsageError(
                f"{name}: datasets refuses inputs that are split by node in other ways"
            )
        if first.world_size and isinstance(source, calls.Concatenate) and self._before(5, 2):
            raise UsageError(f"{name}: datasets {version} forgets the split of its inputs")
        given: dict[str, Any] = {"era": self.era, "inputs": tuple(one.node for one in found)}
        node: Node = streams.Concatenated(**given)
        if isinstance(source, calls.Interleave):
            drawn = source.probabilities
            rng = None if drawn is None else np.random.default_rng(source.seed)
            strategy = source.stopping_strategy
            node = streams.Cycled(strategy=strategy, rng=rng, probabilities=drawn, **given)
        return replace(first, node=node)

    def _as_run(self, source: calls.Interleave) -> calls.Interleave:
        """Return the mixture of Datasets as the version runs it."""
        kept = source.stopping_strategy == "all_exhausted_without_replacement"
        if kept and self._before(4, 3):
            version = self._config.version
            raise UsageError(
                f"{source.name}: all_exhausted_without_replacement is known from datasets 4.3.0 "
                f"on, not of {version}"
            )
        # Without probabilities it ended with the first input (arrow_dataset.py).
        if kept and source.probabilities is None and self._before(4, 6):
            return replace(source, stopping_strategy="first_exhausted")
        return source

    def _check_version(self, name: str) -> None:
        if not self.era.epochs_add_up:
            version = self._config.version
            raise UsageError(f"{name}: known of streams from datasets 4.6.0 on, not of {version}")

    def _before(self, *version: int) -> bool:
        return (release_of(self._config.version) or version) < version

    def _part(self, name: str, count: int | None, index: int | None) -> tuple[int, int]:
        """Return which part a call keeps, and of how many: that of the host where it says none."""
        config = self._config
        if count is not None and index is not None:
            return index, count
        if not config.shares:
            self.assumed.append(
                f"{name} is called in one process, part 0 of 1; --host I/N says more"
            )
        return config.host, config.num_hosts

    def _split(self, stage: calls.SplitByNode, found: Stream) -> Stream:
        rank, count = self._part(stage.name, stage.world_size, stage.rank)
        strategy: str = stage.strategy
        version = self._config.version
        if found.by_index:
            if strategy != "auto":
                raise UsageError(f"{stage.name}: a Dataset is split by strategy='auto' only")
            return self._rows(found.row[_run_of(stage.name, len(found.row), rank, count)])
        if strategy != "auto" and not self.era.has_strategy:
            raise UsageError(
                f"strategy={strategy!r}, --host-by: it came with datasets 5.1.0, and this is "
                f"{version}; without it hosts share evenly"
            )
        if found.world_size:
            if strategy not in ("auto", found.strategy):
                raise UsageError(f"{stage.name}: datasets refuses another strategy the second time")
            rank, strategy = count * found.rank + rank, found.strategy
        total = count * (found.world_size or 1)
        split = replace(found, rank=rank, world_size=total, strategy=strategy)
        split.shares_shards()  # which refuses too few
        return split

    # A `Dataset`.

    def _of_rows(self, stage: Stage, found: Stream) -> Stream:
        row, n = found.row, len(found.row)
        match stage:
            case calls.Shuffle():
                if (stage.buffer_size, stage.max_buffer_input_shards) != (None, None):
                    raise refused(
                        "{stages}: shuffle: buffer_size and max_buffer_input_shards are of a "
                        "stream; {streaming=True}, or to_iterable_dataset before it"
                    )
                _check_size(n)
                row = _at(row, _permutation(stage.seed, n))
            case calls.Select():
                row = _at(row, _places_of(stage.indices, n))
            case calls.TrainTestSplit():
                row = _at(row, _train_test(stage, n))
            case calls.Shard():
                index, count = self._part(stage.name, stage.num_shards, stage.index)
                is_run = not self._before(3, 1) if stage.contiguous is None else stage.contiguous
                run = _run_of(stage.name, n, index, count) if is_run else slice(index, None, count)
                row = row[run]
            case calls.Skip() | calls.Take():
                is_take = isinstance(stage, calls.Take)
                most = n if is_take else n - 1
                if n and stage.n > most and (not is_take or self._before(5, 2)):
                    raise UsageError(f"{stage.name}: datasets raises IndexError: {stage.n} of {n}")
                row = row[: stage.n] if is_take else row[stage.n :]
            case calls.ToIterable():
                return self._to_stream(stage, row)
            case calls.Repeat() if stage.num_times is None or self._before(3, 6):
                raise UsageError(
                    "repeat: a Dataset has it from datasets 3.6.0 on, with an end; give num_times"
                )
            case calls.Repeat() | calls.Batch() | calls.Filter():
                _check_size(n * int(getattr(stage, "num_times", 1)))
                row = self._node(stage, found).read()
                if n and isinstance(stage, calls.Batch) and not len(row):
                    raise UsageError("batch: datasets drops nothing where no batch is whole")
        return self._rows(row)

    def _to_stream(self, stage: calls.ToIterable, row: Int64s | range) -> Stream:
        n, count = len(row), stage.num_shards
        if count > n:
            raise UsageError(
                f"to_iterable_dataset: datasets refuses {count} shards of {n} examples"
            )
        shares = (loader_sequence.even_share(n, part, count) for part in range(count))
        shards = tuple(row[one.start : one.stop] for one in shares)
        self._is_unknown = False
        return Stream(node=streams.Shards(era=self.era, rows=shards, of_tables=True))

    # An `IterableDataset`.

    def _of_stream(self, stage: Stage, found: Stream) -> Stream:
        if isinstance(stage, calls.Shuffle):
            return self._shuffled(stage, found)
        self._check_version(stage.name)
        if isinstance(stage, calls.Shard):
            index, count = self._part(stage.name, stage.num_shards, stage.index)
            node = found.node.shard(count, index, contiguous=stage.contiguous is not False)
            if any(not one.inputs for one in node.within if isinstance(one, streams.Cycled)):
                raise UsageError(f"shard: datasets raises IndexError: no part {index} of {count}")
            return replace(found, node=node)
        return replace(found, node=self._node(stage, found))

    def _node(self, stage: Stage, found: Stream) -> Node:
        """Return the node of a call that both have."""
        given: dict[str, Any] = {"era": self.era, "inputs": (found.node,)}
        match stage:
            case calls.Skip() | calls.Take():
                takes, splits = isinstance(stage, calls.Take), not found.world_size
                if not takes and found.node.has_tables and self.era.interleave == "never":
                    raise UsageError("skip: of tables known from datasets 5.0.0 on; map before it")
                return streams.Cut(n=stage.n, takes=takes, splits=splits, **given)
            case calls.Repeat():
                return streams.Repeated(times=stage.num_times, **given)
            case calls.Batch():
                drops, of = stage.drop_last_batch, self.elements
                return streams.Batched(size=stage.batch_size, drops=drops, elements=of, **given)
            case calls.Filter():
                assert self._config.kept is not None
                passes, of = self._config.kept(stage), self.elements
                return streams.Filtered(passes=passes, elements=of, **given)
            case calls.Map():
                return streams.Mapped(**given)
            case calls.WithFormat() if stage.type in ("arrow", "pandas", "polars"):
                raise UsageError(f"with_format({stage.type!r}): a stream then maps whole tables")
            case calls.Reshard() if found.node.has_tables:
                raise UsageError("reshard: how many row groups the files have is not known here")
            case calls.FlattenIndices():
                pass
            case calls.Columns() | calls.WithFormat() | calls.Reshard():
                return found.node
        raise UsageError(f"{stage.name}: a Dataset has this call, and a stream has not")

    def _shuffled(self, stage: calls.Shuffle, found: Stream) -> Stream:
        era, config = self.era, self._config
        buffer = eras.DEFAULT_BUFFER if stage.buffer_size is None else stage.buffer_size
        check_buffer(buffer)
        joined = (one for one in found.node.within if isinstance(one, streams.Concatenated))
        kinds = [{one.has_tables for one in each.inputs} for each in joined]
        if era.by_halves and {True, False} in kinds:
            raise UsageError("shuffle: of rows and tables together it depends on the tables' sizes")
        given = stage.max_buffer_input_shards
        if given is not None and era.interleave == "never":
            raise UsageError(
                f"max_buffer_input_shards={given}, --input-shards: datasets {config.version} reads "
                "one shard after the other; it came with 5.0.0"
            )
        in_turn = eras.DEFAULT_INPUT_SHARDS if given is None else given
        rng = np.random.default_rng(stage.seed)
        shuffled = found.shuffle(rng, buffer, 1 if era.interleave == "never" else in_turn)
        rows = streams.table_rows(buffer, shuffled.num_in_turn)
        tells = era.by_halves and eras.tells_tables(buffer, rows, found.node.num_shards)
        if tells and found.node.has_tables:
            if self._is_unknown:
                raise eras.refused_format(config.file_format)
            if config.arrow is None and self._plain:
                self.assumed.append(eras.ROWS)
        return shuffled


def _run_of(name: str, n: int, index: int, count: int) -> slice:
    """Return the run of a Dataset that is one part of several."""
    share = loader_sequence.even_share(n, index, count)
    if n and not share:
        raise UsageError(
            f"{name}: datasets raises IndexError for part {index} of {count}, which gets none of "
            f"{n} examples"
        )
    return slice(share.start, share.stop)


def _at(row: Int64s | range, places: Int64s | slice) -> Int64s | range:
    """Return the rows at some places."""
    if isinstance(places, slice):
        return row[places]
    # Of all rows as stored the places are the rows: hosts share one array.
    is_all = isinstance(row, range) and (row.start, row.step) == (0, 1)
    return places if is_all else indices(row)[places]


def _depth(pipeline: Pipeline) -> int:
    """Return how many batches are around an example."""
    around = sum(isinstance(stage, calls.Batch) for stage in pipeline.stages)
    return around + sum(map(_depth, pipeline.source.fed_by[:1]))


@lru_cache(1)
def _permutation(seed: int | None, n: int) -> Int64s:
    """Return the order of `Dataset.shuffle`, which is the same for every host and epoch."""
    return np.random.default_rng(seed).permutation(n)


def _interleaved(source: calls.Interleave, sizes: list[int]) -> tuple[Int64s, Int64s]:
    """Return (which Dataset, which of its rows), as `_interleave_map_style_datasets` takes them."""
    strategy, drawn = source.stopping_strategy, source.probabilities
    if 0 in sizes:
        raise UsageError(f"{source.name}: datasets refuses a Dataset without examples")
    if drawn is not None:
        return taken_in_turn(sizes, None, strategy, np.random.default_rng(source.seed), drawn)
    if strategy == "all_exhausted_without_replacement":
        return taken_in_turn(sizes, None, strategy)
    # In whole rounds, unlike a stream.
    rounds = (min if strategy == "first_exhausted" else max)(sizes)
    turns = np.arange(rounds * len(sizes))
    return turns % len(sizes), turns // len(sizes) % np.array(sizes)[turns % len(sizes)]


def _places_of(given: str | tuple[int, ...], size: int) -> Int64s | slice:
    """Return the places that `select` is given: a list, a slice, or a file of them."""
    found: Any = given
    if isinstance(given, str) and (text := SLICE.fullmatch(given)):
        start, stop, step = (int(part) if part else None for part in text.groups())
        if max(stop or 0, (start or 0) + 1) <= size:
            return slice(start, stop, step)
        found = [max(stop or 0, start or 0)]
    elif isinstance(given, str):
        try:
            found = numbers_in(given, "indices")
        except UsageError as error:
            raise UsageError(f"select: {error}; a slice is written as '100:200'") from None
    numbers = np.array(found)
    wrong = numbers[(numbers < 0) | (numbers >= size) | (numbers % 1 != 0)]
    if len(wrong):
        raise UsageError(f"select: datasets refuses index {wrong[0]:g} of {size} examples")
    return numbers.astype(np.int64)


def _train_test(stage: calls.TrainTestSplit, n: int) -> Int64s | slice:
    """Return the places of a part. Source: arrow_dataset.py, Dataset.train_test_split."""
    test, train = stage.test_size, stage.train_size
    if not n:
        return slice(None)
    test = 0.25 if test is None and train is None else test
    for size in (test, train):
        if size is not None and not 0 < size < (n if isinstance(size, int) else 1):
            raise UsageError(f"train_test_split: {size}: a share, or a part of {n}, is needed")
    num_test = math.ceil(test * n) if isinstance(test, float) else test
    num_train = math.floor(train * n) if isinstance(train, float) else train
    num_train = n - (num_test or 0) if num_train is None else num_train
    num_test = n - num_train if num_test is None else num_test
    if num_train + num_test > n or not num_train:
        raise UsageError(f"train_test_split: {num_train} and {num_test} of {n} examples: no split")
    # The test part comes first where it is shuffled, else last.
    first = num_test if stage.shuffle else 0
    part = slice(first, first + num_train)
    if stage.split == "test":
        part = slice(num_test) if stage.shuffle else slice(num_train, num_train + num_test)
    _check_size(n)
    return _permutation(stage.seed, n)[part] if stage.shuffle else part


def _sequence(
    config: LoaderConfig, chain: _Chain, stream: Stream, pipeline: Pipeline, *, plain: bool
) -> LoaderSequence:
    """Return what a DataLoader yields.

    Each worker of a stream makes batches of its own, which are yielded in turn. A Dataset has no
    epochs: it is read in the same order each time, with workers or without.
    """
    parts = list(parts_of(pipeline))
    batched = any(isinstance(part, calls.Batch) for part in parts)
    row = stream.row if stream.by_index else None
    if isinstance(row, range) and row.step == 1:  # read as stored: no example is listed
        deal = loader_sequence.Deal(first=row.start, size=config.whole_batches(len(row)))
        stored: dict[str, Any] = {"epochs": config.epochs, "permutation": None}
        return loader_sequence.Dealt(config.num_examples, deal, batch=config.batch, **stored)
    block = config.batch or 1
    never = any(isinstance(part, calls.Shuffle) and part.set_epoch is False for part in parts)
    epochs = [0 if never else config.first_epoch + number for number in range(config.epochs)]
    # Workers without shards take no turn.
    workers = [[one for one in stream.workers(each, config.workers) if one] for each in epochs]

    def read(number: int, most: int | None = None) -> tuple[Int64s, Int64s]:
        """Return the examples of an epoch, and how many of them each batch has."""
        rows = [one.read(most) for one in workers[number]]
        order, sizes = loader_sequence.dealt_by_workers(rows, block, drops=config.drop_remainder)
        examples, widths = chain.elements.examples(order)
        return examples, np.diff(np.cumsum([0, *widths])[np.cumsum([0, *sizes])])

    found: LoaderSequence
    if pipeline.never_ends:
        found = loader_sequence.Followed(
            _followed(lambda turns: read(0, turns * block)),
            epoch_size=config.num_examples,
            batches=config.batch is not None or batched,
            is_endless=True,
        )
    else:
        times = 1 if stream.shares_shards() else stream.world_size
        found = _epoch_by_epoch(config, workers, read, batched=batched, times_read=times)
    found.shuffles = any(isinstance(part, calls.Shuffle | calls.TrainTestSplit) for part in parts)
    found.shuffles |= any(getattr(part, "probabilities", None) is not None for part in parts)
    # An index, or a buffer that holds all: a uniform permutation.
    is_whole = stream.by_index or (0 < config.num_examples <= stream.buffer and not config.workers)
    keeps = calls.Shuffle | calls.SplitByNode | calls.Map | calls.Columns
    is_row = isinstance(pipeline.source, Read)
    is_row &= all(isinstance(stage, keeps) for stage in pipeline.stages)
    found.is_uniform = found.shuffles and is_whole and is_row
    found.is_shuffled_once = found.shuffles and stream.by_index
    if not stream.by_index:
        found.num_in_turn = stream.num_in_turn
        if stream.world_size > 1 and not stream.shares_shards():
            found.num_read = config.num_examples  # all of it, of which one in so many is kept
        elif stream.world_size > 1 and epochs:
            leaves = (leaf for one in workers[0] for leaf in one.within)
            rows = [row for leaf in leaves if isinstance(leaf, streams.Shards) for row in leaf.rows]
            pieces = {row for row in rows if isinstance(row, range) and row}
            found.among = sorted(pieces, key=lambda row: row.start)
    assumed = chain.assumed
    if plain and config.num_hosts > 1 and not stream.by_index:
        assumed = [*assumed, eras.BY_NODE]
    if not plain and not never and not stream.by_index and epochs not in ([], [0]):
        assumed = [*assumed, _EPOCHS]
    found.assumptions = tuple(dict.fromkeys(assumed))
    return found


def _epoch_by_epoch(
    config: LoaderConfig,
    workers: list[list[Node]],
    read: Callable[[int], tuple[Int64s, Int64s]],
    *,
    batched: bool,
    times_read: int,
) -> LoaderSequence:
    """Return epochs that have an end; only those of batches are read before they are asked for.

    times_read: how many times as many examples are read as are yielded.
    """
    block = config.batch or 1
    # Epochs may differ in size: another shuffle of the shards gives other shards to this host or
    # worker.
    sizes = [[one.count() for one in each] for each in workers]
    _check_size(max(map(sum, sizes), default=0) * times_read)
    if config.drop_remainder:
        sizes = [[size // block * block for size in each] for each in sizes]
    totals = [sum(each) for each in sizes]
    batches: loader_sequence.Batches | None = None
    # Equal epochs and no workers: batches are in closed form.
    if config.batch is not None and not batched and len(set(totals)) == 1 == max(map(len, sizes)):
        batches = loader_sequence.EqualBatches(totals[0], block, epochs=len(totals))
    elif config.batch is not None or batched:
        if batched:
            steps = [read(number)[1] for number in range(len(sizes))]
        else:  # only lengths are needed, so arrays of one byte an example stand in
            alike: Iterator[Any] = ([np.empty(n, np.int8) for n in each] for each in sizes)
            steps = [loader_sequence.in_turn(each, block)[1] for each in alike]
        batches = loader_sequence.UnequalBatches(np.concatenate([streams.NONE, *steps]))
        totals = [int(each.sum()) for each in steps]
    return loader_sequence.EpochByEpoch(totals, lambda number: read(number)[0], batches=batches)


def _followed(
    read: Callable[[int], tuple[Int64s, Int64s]],
) -> Iterator[tuple[Int64s, Int64s, Int64s]]:
    """Yield what has no end; it is read from its start again, each time twice as many turns."""
    turns, num_examples, num_steps = 1 << 10, 0, 0
    while True:
        examples, steps = read(turns)
        new, new_steps = examples[num_examples:], steps[num_steps:]
        if not len(new):
            return
        yield new, new_steps, np.zeros_like(new)
        turns, num_examples, num_steps = 2 * turns, len(examples), len(steps)


def stream_of(config: LoaderConfig) -> Stream | None:
    """Return the stream that a process reads, None of a Dataset."""
    config, chain = chain_of(config)
    found = _Chain(config, plain=False).made(chain)
    return None if found.by_index else found
