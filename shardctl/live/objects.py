"""Objects of other loaders, read back: what they are stage by stage, and run beside their order."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.base.progress import WATCHING
from shardctl.base.text import counted
from shardctl.dataset.dataset import as_dataset
from shardctl.errors import ShardctlError, UsageError
from shardctl.live.library import LoaderObject, leaves
from shardctl.live.process import in_pieces
from shardctl.live.verify import compared
from shardctl.loaders.loader import LOADERS, library_of
from shardctl.order.loader_order import LoaderOrder
from shardctl.order.plan_order import PlannedOrder
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.subsplit import default_spec
from shardctl.stages.part import Stage
from shardctl.stages.pipelines import open_stages, readers_of, with_changed
from shardctl.stages.stages import Pipeline, Read
from shardctl.stages.text import text_of
from shardctl.verbs.inspect.answer import InspectedStage, Inspection, OpenStage
from shardctl.verbs.verify.answer import BUDGETS, Take, Verification, check_not_nothing, check_take

# What an object is: the same answer as of a tf.data.Dataset.


def inspection(found: LoaderObject, name: str = "") -> Inspection:
    """Return the answer for an object of another loader."""
    reads = list(dict.fromkeys(readers_of(found.stages)))
    datasets = {read.data: as_dataset(read.data) for read in reads if read.data is not None}
    stages, spec = found.stages, None
    if len(datasets) == 1:  # where all read one dataset, no reader names it
        specs = {read.spec for read in reads}
        if len(specs) == 1:
            spec = specs.pop() or default_spec(*datasets.values())
        stages = with_changed(
            stages, read=lambda read: replace(read, data=None, spec=None if spec else read.spec)
        )
    said: dict[str, Any] = {"loader": found.loader, "stages": stages, **found.settings}
    settings = ReadSettings(**said)
    shown = tuple(_shown(found.stages))
    reasons = open_stages(stages, global_seed=settings.global_seed)
    by_reason = {one.reason: one for one in shown if one.reason is not None}
    made = Inspection(
        name=name,
        stages=shown,
        open=tuple(OpenStage(stage=by_reason[one.reason], reason=one.reason) for one in reasons),
        settings=settings,
        dataset=next(iter(datasets.values()), None),
        spec=spec,
        datasets={ref: one for ref, one in datasets.items() if len(datasets) > 1},
        assumptions=found.assumptions,
    )
    if made.open or made.dataset is None:
        return made
    try:
        every = (*found.assumptions, *made.order().assumptions)
        return replace(made, assumptions=tuple(dict.fromkeys(every)))
    except ShardctlError as error:
        return replace(made, refused=error.args[0] if error.args else str(error))


def _shown(pipeline: Pipeline, level: int = 0) -> Iterator[InspectedStage]:
    """Yield the stages as `inspect` shows them: inputs before what combines them."""
    for part in (pipeline.source, *pipeline.stages):
        for one in part.pipelines:
            yield from _shown(one, level + 1)
        alone = (
            Pipeline(stages=(part,)) if isinstance(part, Stage) else replace(pipeline, stages=())
        )
        several = f"{part.name}({counted(len(part.pipelines), 'input')})"
        reason = part.why_open(None, None)
        effect = part.effect
        if isinstance(part, Read):
            dataset = as_dataset(part.data or "")
            effect = f"reads {part.spec or default_spec(dataset)} of {dataset.title}"
        yield InspectedStage(
            call=several if part.pipelines else text_of(alone),
            operation=part.name,
            effect=effect if reason is None else f"nondeterministic: {reason}",
            level=level,
            reason=reason,
        )


_AT_ONCE = 4096  # positions that a rule is asked for together

# What it yields, beside that answer. Examples are named by their values, unless the library puts
# indices in the place of its sources.


def verify_object(
    value: Any, found: LoaderObject, *, pass_index: int = 0, take: Take = None
) -> Verification:
    """Iterate an object of another loader, and compare what it yields with what is predicted.

    Raises:
        UnpredictableOrderError: the order is nondeterministic.
        UsageError: its elements cannot be named.
    """
    check_take(take)
    answer = inspection(found)
    planned = answer.order(pass_index)
    order = planned.order
    assert isinstance(order, LoaderOrder)
    check_not_nothing(planned.resolved, order.num_examples, order.settings.host)
    # Following an object takes as long as reading files.
    take = BUDGETS["files"] if take is None else take
    elements = _Elements(value, found, planned)
    comparison = compared(
        planned, in_pieces(elements.indices(pass_index)), take, WATCHING.get(), elements.note
    )
    return replace(comparison, assumptions=answer.assumptions)


class _Elements:
    """What an object yields, as indices of the examples of an order."""

    def __init__(self, value: Any, found: LoaderObject, planned: PlannedOrder) -> None:
        assert isinstance(planned.order, LoaderOrder)
        self._order, self._value = planned.order, value
        self._chunk: tuple[int, Int64s] | None = None
        # The readers of the order are those that were found, in the same places.
        stages = planned.order.settings.stages
        assert stages is not None
        read = dict(zip(readers_of(stages), readers_of(found.stages), strict=True))
        parts, loader = planned.order.config.sources, LOADERS[found.loader]
        if not found.sources:
            raise UsageError(
                f"an object of {loader.title} reads files, and what it yields does not say which "
                f"examples these are; verify --loader {loader.name} runs the library over indices, "
                "by the shardctl.yaml that inspect writes"
            )
        self._sources = [(part, found.sources[read[own]]) for own, part in parts.items()]
        self._library = library_of(loader)
        over = self._library.over_indices(value, {id(s): p.indices for p, s in self._sources})
        self.note = f"elements of {loader.title} were compared by their values with the sources"
        self._is_over_indices = over is not None
        if over is not None:
            self._value = over
            self.note = (
                f"{loader.title} ran over indices in place of its sources, without the functions "
                "of the script"
            )

    def indices(self, pass_index: int) -> Iterator[Any]:
        """Yield the indices of each element that a pass yields."""
        for _ in range(pass_index):
            for _ in self._value:
                pass
        order, position, step = self._order, 0, 0
        for element in self._value:
            rows = [element]
            if self._is_over_indices:
                rows = [*leaves(element)]
            elif order.has_steps:
                there = order.num_steps is None or step < order.num_steps
                rows = rows_of(element, len(order.positions_in_step(step)) if there else 0)
            found = [self._index(position + at, row) for at, row in enumerate(rows)]
            yield np.array(found, np.int64)
            position, step = position + len(rows), step + 1

    def _index(self, position: int, row: Any) -> int:
        """Return the index of the example that is at a position; of alike ones the predicted."""
        key = _key(row)
        if position < self._order.num_examples:
            expected = self._predicted(position)
            if self._key_of(expected) == key:
                return expected
        if key in self._by_key:
            return self._by_key[key]
        raise UsageError(
            "its elements are none of the examples of its sources, so they have no names to be "
            "compared; let the function leave out what changes them"
        )

    def _predicted(self, position: int) -> int:
        """Return the index that is predicted at a position, of many that are asked for at once."""
        start = position - position % _AT_ONCE
        if self._chunk is None or self._chunk[0] != start:
            stop = min(start + _AT_ONCE, self._order.num_examples)
            self._chunk = start, self._order.sequence.indices_at(np.arange(start, stop))
        return int(self._chunk[1][position - start])

    def _key_of(self, index: int) -> Any:
        for part, source in self._sources:
            if index in part.indices:
                if self._is_over_indices:
                    return _key(index)
                return _key(self._library.example(source, index - part.first))
        raise IndexError(index)

    @cached_property
    def _by_key(self) -> dict[Any, int]:
        total = self._order.config.num_examples
        return {self._key_of(index): index for index in reversed(range(total))}


def rows_of(element: Any, width: int) -> list[Any]:
    """Return the examples of a batch, of `width` where its parts do not say how many it has.

    >>> rows_of({"a": np.arange(2), "b": [np.array([3, 4]), ("x", "y")]}, 2)
    [{'a': 0, 'b': [3, 'x']}, {'a': 1, 'b': [4, 'y']}]
    """
    if isinstance(element, Mapping):
        columns = [rows_of(each, width) for each in element.values()]
        return [dict(zip(element, row, strict=True)) for row in zip(*columns, strict=True)]
    if isinstance(element, Sequence) and not isinstance(element, str | bytes):
        # Columns each of which is a batch, else the examples themselves.
        if any(isinstance(each, str | bytes | Mapping) or not _length(each) for each in element):
            return list(element)
        columns = [rows_of(each, width) for each in element]
        if len({len(column) for column in columns}) == 1 and len(columns[0]) == width:
            return [list(row) for row in zip(*columns, strict=True)]
        return list(element)
    array = _array(element)
    if not array.ndim:
        return [element]
    # Batches of batches.
    while array.ndim > 1 and len(array) != width and array.shape[0] * array.shape[1] <= width:
        array = array.reshape(-1, *array.shape[2:])
    return [row.item() if not np.ndim(row) and hasattr(row, "item") else row for row in array]


def _length(value: Any) -> int:
    return len(value) if isinstance(value, Sequence) else int(_array(value).ndim > 0)


def _array(leaf: Any) -> Any:
    return np.asarray(leaf.detach().cpu() if hasattr(leaf, "detach") else leaf)


def _key(value: Any) -> Any:
    """Return what two examples are alike by: their parts, and the numbers in them."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = vars(value)
    if isinstance(value, Mapping):
        return tuple((name, _key(each)) for name, each in sorted(value.items()))
    if isinstance(value, list | tuple):
        return tuple(map(_key, value))
    if isinstance(value, str | bytes) or value is None:
        return value
    array = _array(value)
    if array.dtype.kind in "iub":
        return array.shape, array.astype(np.int64).tobytes()
    if array.dtype.kind == "f":
        return array.shape, array.astype(np.float64).tobytes()
    return array.shape, repr(array.tolist())
