"""Turns one dataset operation of a graph into stages; what is not known becomes opaque."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from shardctl.base.tfds_rules import DEFAULT_GRAPH_SEED, SEED_MODULUS
from shardctl.iteration.build import fuses
from shardctl.stages import stages as call
from shardctl.stages.part import KernelPair, Stage
from shardctl.stages.stages import CACHE_IN_FILE, WHY_OPEN, Map, Opaque
from shardctl.tfds.inspecting import graph
from shardctl.tfds.inspecting.graph import Operation, Options

_AUTOTUNE = -1


def stages_of_operation(operation: Operation, options: Options) -> tuple[Stage, ...]:
    """Return the stages that an operation on one dataset is.

    options: those in force for the whole pipeline.
    """
    make = _STAGES.get(operation.op)
    try:
        made = opaque(operation) if make is None else make(operation, options)
        return made if isinstance(made, tuple) else (made,)
    # A value that is computed while the pipeline runs cannot be stated.
    except graph.NoConstantError as error:
        return (Opaque(call=_call(operation.op), reason=str(error)),)


def opaque(operation: Operation) -> Opaque:
    """Return the stage of an operation that says nothing about its order."""
    named = graph.call_name(operation.op)
    if operation.op in graph.INTERLEAVES and any(map(graph.has_state, operation.inputs[1:])):
        reason = "each dataset that it makes takes its turn of one that reshuffles or caches"
        return Opaque(call=named, reason=reason)
    for known in (operation.op, "from_generator" if named == "generator" else named):
        if known in WHY_OPEN:
            return Opaque(call=known, reason=WHY_OPEN[known])
    reason = f"{operation.op} is no stage that shardctl knows"
    return Opaque(call=_call(operation.op), reason=reason)


def _call(op: str) -> str:
    return re.sub(r"Dataset(V\d)?$", "", op)


def _shuffle(operation: Operation, options: Options) -> Stage:
    # None and True mean the same; None is the default of `Dataset.shuffle`.
    reshuffle = None if operation.flag("reshuffle_each_iteration") else False
    buffer = operation.number("buffer_size")
    return call.Shuffle(buffer=buffer, seed=kernel_pair(operation), reshuffle=reshuffle)


def _batch(operation: Operation, options: Options) -> Stage:
    drop_remainder = bool(operation.number("drop_remainder"))
    return call.Batch(size=operation.number("batch_size"), drop_remainder=drop_remainder)


def _shuffle_and_repeat(operation: Operation, options: Options) -> Made:
    stages = _shuffle(operation, options), call.Repeat(count=_endless(operation))
    # The script's own op is one op always; as two stages it is one only where TensorFlow fuses.
    if fuses(*stages, options.stated):
        return stages
    return Opaque(
        call="shuffle_and_repeat",
        reason="options say not to fuse shuffle and repeat, and it is both; leave them out",
    )


_WINDOWS = (
    "its elements are datasets; with flat_map(lambda window: window.batch(SIZE)) behind it they "
    "are batches"
)


def batched_window(operation: Operation) -> call.Window | None:
    """Return the windows that a flat_map makes a batch of each, None where it does otherwise."""
    function, below = operation.function, operation.inputs[0] if operation.inputs else None
    if operation.op != "FlatMapDataset" or function is None or below is None:
        return None
    if below.op != "WindowDataset" or len(function.returned) != 1:
        return None
    size, is_dropped = below.number("size"), bool(below.number("drop_remainder"))
    batch = _batch_of_window(function, function.returned[0])
    # A smaller batch cuts windows into several; a larger one without a remainder has none.
    if batch is None or batch[0] < size or (batch[0] > size and batch[1]):
        return None
    return call.Window(
        size=size,
        shift=below.number("shift"),
        stride=below.number("stride"),
        drop_remainder=is_dropped or batch[1],
    )


def _batch_of_window(function: graph.Function, name: str) -> tuple[int, bool] | None:
    """Return size and drop_remainder of the one batch that is made of the parts of a window."""
    op = function.op(name)
    # A map or a prefetch within changes elements at most.
    if op in ("MapDataset", "PrefetchDataset"):
        return _batch_of_window(function, function.inputs(name)[0])
    if op == "ZipDataset":
        # `Dataset.zip` of batches, one for each component.
        (found, *others) = (_batch_of_window(function, each) for each in function.inputs(name))
        return found if all(each == found for each in others) else None
    if op not in ("BatchDataset", "BatchDatasetV2", "ParallelBatchDataset"):
        return None
    below, size, *rest = function.inputs(name)
    parts = function.inputs(below) if function.op(below) == "ZipDataset" else (below,)
    given = function.constant(size), function.constant(rest[-1]) if rest else None
    if not set(parts) <= set(function.parameters) or given[0] is None or given[1] is None:
        return None
    return int(given[0]), bool(given[1])


_TAKES_APART = "what it takes apart is not just what a batch made"


def _unbatch(operation: Operation, options: Options) -> Stage:
    # `unbatch` undoes a batch only if its rows are the batch's own examples.
    if _splits_batches(operation.input):
        return call.Unbatch()
    why = (
        f"{_TAKES_APART}, so how many elements come of each depends on the data; behind a map, "
        "shapes show it of batches made with drop_remainder=True"
    )
    return Opaque(call="unbatch", reason=why)


def _splits_batches(below: Operation, depth: int = 1) -> bool:
    """Return whether elements are batches as they were made, whatever was done with them whole.

    depth: so many batches within each other.
    """
    # Down from the unbatch. `depth` is how many batches are still open: a batch closes one, another
    # unbatch opens one.
    while depth:
        is_batch = below.op in graph.BATCHES and not below.op.startswith("Padded")
        if is_batch or batched_window(below):
            depth -= 1
        elif below.op == "UnbatchDataset":
            depth += 1
        elif below.op in _COMBINES:
            inputs = below.inputs[_COMBINES[below.op] :]
            # All inputs of a mixture must be batches as they were made.
            return all(_splits_batches(each, depth) for each in inputs)
        elif not (
            below.op in (*graph.GUARDS, *graph.CHOOSES, "PrefetchDataset")
            or below.is_identity
            # A map may change batches but must keep their length, by its static shapes.
            or (depth == 1 and below.op in graph.MAPS and _keeps_length(below))
        ):
            return False
        below = below.input
    return True


def _keeps_length(operation: Operation) -> bool:
    """Return whether shapes say that a map makes batches of as many rows as it is given."""
    # Shapes of what the map returns and of what it gets: all first dimensions must be one known
    # number.
    shapes = [shape for each in (operation, operation.input) for shape in each.shapes]
    # The length along the first axis: none without one, -1 if unknown.
    lengths = {int(shape.dim[0].size) if shape.dim else -1 for shape in shapes}
    return len(lengths) == 1 and -1 not in lengths


def _rebatch(operation: Operation, options: Options) -> Made:
    value = operation.value("batch_sizes")
    # `rebatch` may name several sizes, which it uses in turn.
    sizes = set() if value is None else set(value.ravel().tolist())
    if len(sizes) != 1 or min(sizes) <= 0:
        return Opaque(call="rebatch", reason="its batches have several sizes")
    if not _splits_batches(operation.input):
        return Opaque(call="rebatch", reason=_TAKES_APART)
    drop_remainder = bool(operation.value("drop_remainder"))
    # To take batches apart and form them anew is the same order.
    return call.Unbatch(), call.Batch(size=sizes.pop(), drop_remainder=drop_remainder)


def _cache(operation: Operation, options: Options) -> Stage:
    if keeps_in_memory(operation):
        return call.Cache()
    return Opaque(call=CACHE_IN_FILE, reason=WHY_OPEN[CACHE_IN_FILE])


def keeps_in_memory(cache: Operation) -> bool:
    """Return whether a cache keeps nothing of an earlier run, as one in a file does."""
    filename = cache.value("filename")
    # A file name means a cache on disk, which an earlier run may have filled.
    return filename is not None and filename.size == 1 and not filename.item()


def _scan(operation: Operation, options: Options) -> Stage:
    ops = operation.graph.ops_in_functions(operation.node)
    if any("Random" in op and "Stateless" not in op for op in ops):
        return Opaque(call="scan", reason="its function draws random numbers")
    repeated = operation.input if operation.input.op == "RepeatDataset" else None
    if repeated is not None and repeated.input.op == "TensorDataset":
        return Opaque(call="scan", reason="its function makes many elements of one that repeats")
    return call.Scan()


def _parallel_map(operation: Operation, options: Options) -> Stage:
    calls = _or_auto(operation.number("num_parallel_calls"))
    in_order = None if options.op_determinism else deterministic(operation)
    return Map(calls=calls, deterministic=in_order)


def deterministic(operation: Operation) -> bool | None:
    """Return the attribute `deterministic`, None where options decide."""
    return {"true": True, "false": False}.get(operation.text("deterministic"))


def _count(operation: Operation) -> int:
    """Return a count, -1 for any that is negative, which has no end."""
    # tf.data treats every negative count alike.
    return max(-1, operation.number("count"))


def _endless(operation: Operation) -> int | None:
    """Return how often a repeat reads its input, None without end."""
    count = _count(operation)
    return None if count < 0 else count


def _repeat(operation: Operation) -> Stage:
    count = _endless(operation)
    # repeat(0) yields nothing; fused with a shuffle TensorFlow refuses it, and so does the stage.
    if count == 0 and not any(
        below.op in graph.SHUFFLES for below in operation.graph.below(operation.node)
    ):
        return call.Take(count=0)
    return call.Repeat(count=count)


def _or_auto(number: int) -> int | Literal["auto"]:
    return "auto" if number == _AUTOTUNE else number


Made = Stage | tuple[Stage, ...]
_STAGES: Mapping[str, Callable[[Operation, Options], Made]] = {
    "RepeatDataset": lambda op, _: _repeat(op),
    "ShardDataset": lambda op, _: call.Shard(
        num_shards=op.number("num_shards"), index=op.number("index")
    ),
    "TakeDataset": lambda op, _: call.Take(count=_count(op)),
    "SkipDataset": lambda op, _: call.Skip(count=_count(op)),
    "PrefetchDataset": lambda op, _: call.Prefetch(size=_or_auto(op.number("buffer_size"))),
    "AssertCardinalityDataset": lambda op, _: call.AssertCardinality(
        count=op.number("cardinality")
    ),
    # These yield what they read, and do no more than part what they are between: as does the
    # zip of `enumerate`; others are sources.
    **dict.fromkeys(("MapDataset", "FinalizeDataset", "ZipDataset"), lambda *_: Map()),
    **dict.fromkeys(("FilterDataset", "ParallelFilterDataset"), lambda *_: call.Filter()),
    **dict.fromkeys(graph.SHUFFLES, _shuffle),
    **dict.fromkeys(graph.BATCHES, _batch),
    # Examples have their places in a batch before they are mapped, and batches come in order
    # whatever options say (map_and_batch_dataset_op.cc). How far it reads ahead is its own matter.
    "MapAndBatchDataset": lambda *of: (_batch(*of), Map(calls="auto", deterministic=True)),
    **dict.fromkeys(graph.CACHES, _cache),
    # Threads of its own read ahead, and yield what is ready first, as those of a map do.
    "ParallelBatchDataset": lambda *of: (_batch(*of), _parallel_map(*of)),
    "UnbatchDataset": _unbatch,
    "RebatchDatasetV2": _rebatch,
    "ScanDataset": _scan,
    "WindowDataset": lambda *_: Opaque(call="window", reason=_WINDOWS),
    "FlatMapDataset": lambda op, _: batched_window(op) or opaque(op),
    "DenseToSparseBatchDataset": lambda op, _: call.Batch(size=op.number("batch_size")),
    "RebatchDataset": lambda *_: Opaque(
        call="rebatch", reason="tf.distribute cuts batches of unknown size into parts"
    ),
    **dict.fromkeys(("ShuffleAndRepeatDataset", "ShuffleAndRepeatDatasetV2"), _shuffle_and_repeat),
    # What it parses are the elements, as a map does.
    **dict.fromkeys(("ParallelMapDatasetV2", "ParseExampleDatasetV2"), _parallel_map),
    "OptionsDataset": lambda op, options: options.in_force(graph.options_of(op)),
}
# What combines datasets, and the first of its inputs that is not a selector.
_COMBINES = {"ConcatenateDataset": 0, "DirectedInterleaveDataset": 1}
# Seeds as TensorFlow's kernels have them, and as a script would state them.


def kernel_pair(operation: Operation) -> KernelPair | None:
    """Return the two seeds of an operation's kernel, None where it takes them from the machine."""
    pair = operation.number("seed"), operation.number("seed2")
    # Only (0, 0) makes the kernel take seeds of the machine.
    return None if pair == (0, 0) else pair


def global_seed_of(pairs: Iterable[KernelPair]) -> int | None:
    """Return the global seed under which all pairs have one seed each, None without a global seed.

    Where they were made under several, it is None, and those of another one stay pairs.

    >>> global_seed_of([(3, 1), (3, 2)]), global_seed_of([(87654321, 1)])
    (3, None)
    """
    first = {seed for seed, _ in pairs}
    # Seeds made under one global seed share their first number; 87654321 stands for "no global
    # seed".
    (only,) = first if len(first) == 1 else {DEFAULT_GRAPH_SEED}
    return only if only != DEFAULT_GRAPH_SEED and 0 <= only < SEED_MODULUS else None


def stated_seed(pair: KernelPair | None, global_seed: int | None) -> int | KernelPair | None:
    """Return the seed that a script states to get a pair; the pair itself where none does.

    >>> stated_seed((3, 7), 3), stated_seed((87654321, 7), None), stated_seed((87654321, 7), 3)
    (7, 7, (87654321, 7))
    >>> stated_seed((0, 2147483647), 0)
    0
    """
    if pair is None:
        return None
    seed, seed2 = pair
    # Made under another global seed: no single seed states it.
    if seed != (DEFAULT_GRAPH_SEED if global_seed is None else global_seed):
        return pair
    # (0, 0) is reserved, so TensorFlow writes seed 0 under global seed 0 as (0, 2**31 - 1).
    if (seed, seed2) == (0, SEED_MODULUS):
        return 0
    return seed2 if 0 <= seed2 < SEED_MODULUS else pair
