"""The states of iterators over Grain's chains: written for a place, and read back to it.

As Grain writes them from 0.2.16 on: `get_state` and `set_state` in dataset/transformations/.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from shardctl.base.text import choices
from shardctl.errors import UsageError
from shardctl.loaders import grain_stages as ast
from shardctl.loaders.grain_rows import MergedRows, PassedRows, Rows
from shardctl.loaders.grain_stages import Reading
from shardctl.loaders.loader import release_of
from shardctl.loaders.loader_sequence import LoaderConfig
from shardctl.stages.stages import Pipeline

_FIRST = (0, 2, 16)  # before it states of windows and workers have other fields
_AS_BEFORE = (ast.Seed, ast.Map, ast.Prefetch, ast.WithOptions, ast.Workers)
# Those that count themselves, and what they call it.
_COUNTERS: dict[type[Any], str] = {
    ast.MapWithIndex: "counter",
    ast.RandomMap: "index_for_rng",
    ast.LimitIterDataset: "count_elements_read",
}
_LAST_SEEN = "last_seen_indices"


def state_of(config: LoaderConfig, elements: int, like: Mapping[str, Any] | None = None) -> Any:
    """Return the state of an iterator that has yielded so many elements.

    like: any state of the same DataLoader, whose sampler and data source it names.

    Raises:
        UsageError: what the iterator would write is not known.
    """
    chain = ast.chain_of(config)
    reading = Reading(config=config)
    if not isinstance(chain.stages[0] if chain.stages else None, ast.IndexSampler):
        if like is not None:  # it must be of this chain
            elements_of(config, like)
        return _Place(reading, chain).state(elements)
    if like is None or _LAST_SEEN not in like:
        raise UsageError(
            "a DataLoader writes what its sampler and its data source are; give state=STATE, any "
            "state of the same loader"
        )
    return dict(like) | _of_data_loader(reading, chain, elements, like["worker_count"])


def elements_of(config: LoaderConfig, state: Mapping[str, Any]) -> int:
    """Return how many elements an iterator has yielded, by its state.

    Raises:
        UsageError: it is no state of such a chain.
    """
    chain = ast.chain_of(config)
    place = _Place(Reading(config=config), chain)
    if _LAST_SEEN not in state:
        return place.elements(state)
    last = state[_LAST_SEEN]
    index, count = _shard(place.reading, chain)
    workers = max(len(last), 1)
    own = [(last[str(worker)] - index) // count for worker in range(workers)]
    states = [{"next_index": (at - worker) // workers + 1} for worker, at in enumerate(own)]
    return place.elements({"iterators_in_use_states": states} if workers > 1 else states[0])


def _of_data_loader(
    reading: Reading, chain: Pipeline, elements: int, workers: int
) -> dict[str, Any]:
    state = _Place(reading, chain).state(elements)
    states = state.get("iterators_in_use_states", [state])
    index, count = _shard(reading, chain)
    first, step = index - len(states) * count, len(states) * count
    # Of every worker the index that it has read last, as the sampler counts for all shards.
    return {
        _LAST_SEEN: {
            str(worker): first + worker * count + of["next_index"] * step
            for worker, of in enumerate(states)
        },
        "last_worker_index": state.get("next_index_in_cycle", 0) - 1,
        "worker_count": workers,
    }


def _shard(reading: Reading, chain: Pipeline) -> tuple[int, int]:
    sampler = chain.stages[0]
    assert isinstance(sampler, ast.IndexSampler)
    return sampler.shard(reading.config)


@dataclass(frozen=True)
class _Place:
    """An iterator of a chain, as one worker reads."""

    reading: Reading
    pipeline: Pipeline

    @property
    def rows(self) -> Rows:
        return self.reading.rows(self.pipeline)

    @property
    def before(self) -> _Place:
        """The iterator that this one asks."""
        return replace(self, pipeline=ast.before_last(self.pipeline))

    @property
    def _part(self) -> Any:
        stages = self.pipeline.stages
        if stages and ast.kind_of(self.pipeline) == "map":
            return None  # an iterator over a MapDataset
        return stages[-1] if stages else self.pipeline.source

    @property
    def inputs(self) -> list[_Place]:
        """The iterators that workers are, or that a mixture takes from."""
        part = self._part
        if isinstance(part, ast.Workers):
            deals = [(worker, part.workers) for worker in range(part.workers)]
            return [
                replace(self.before, reading=replace(self.reading, deal=deal))
                for deal in (deals if len(deals) > 1 else [None])
            ]
        reading, inputs = self.reading, part.inputs
        if isinstance(part, ast.InterleaveIterDataset):
            reading, inputs = part.dealt(reading)
        return [_Place(reading, one) for one in inputs]

    def state(self, count: int) -> dict[str, Any]:
        """Return the state after so many elements."""
        part, counter = self._part, _COUNTERS.get(type(self._part))
        if self._takes_turns:
            return self._turns(count)
        if self._combines:
            several = self._taken(count) if isinstance(part, ast.Mix) else count
            inputs = zip(self.inputs, np.broadcast_to(several, len(part.inputs)), strict=True)
            parents = {"parents": [one.state(int(own)) for one, own in inputs]}
            ends = {"index": count, "stop": False} if isinstance(part, ast.Mix) else {}
            return parents | ends
        if counter is not None:
            return {"parent": self.before.state(count), counter: count}
        match part:
            case ast.Batch():
                return self.before.state(min(count * part.batch_size, self.before.rows.length))
            case ast.Filter():
                return self.before.state(_read(self.rows, count))
            case ast.RepeatIterDataset():
                epoch, within = divmod(count, max(self.before.rows.length, 1))
                return {"parent": self.before.state(within), "epoch": epoch}
            case ast.WindowShuffleIterDataset():
                self._check_version(part.name)
                window, within = divmod(count, part.window_size)
                return {
                    "parent_window_start_state": self.before.state(window * part.window_size),
                    "window_index": window,
                    "pos_in_window": within,
                }
        if isinstance(part, _AS_BEFORE):
            return self.before.state(count)
        return {"next_index": _read(self._iterated, count)}

    @property
    def _takes_turns(self) -> bool:
        part = self._part
        is_workers = isinstance(part, ast.Workers) and part.workers > 0
        return is_workers or isinstance(part, ast.InterleaveIterDataset)

    @property
    def _combines(self) -> bool:
        part = self._part
        return isinstance(part, ast.Mix | ast.Zip) and part.kinds == {"iter"}

    @property
    def _iterated(self) -> Rows:
        return ast.iterated(self.rows, self.pipeline)

    def elements(self, state: Any) -> int:
        """Return after how many elements a state is."""
        try:
            found = self._elements(state)
        except (KeyError, TypeError, AttributeError, ValueError):
            known = choices(state) if isinstance(state, Mapping) else repr(state)[:40]
            raise UsageError(f"the state is of another chain than this one: {known}") from None
        if not 0 <= found <= self.rows.length:
            raise UsageError(f"the state is of another chain: {found} elements of it")
        return found

    def _elements(self, state: Any) -> int:
        part, counter = self._part, _COUNTERS.get(type(self._part))
        if self._takes_turns:
            return self._elements_in_turn(state)
        if self._combines:
            if isinstance(part, ast.Mix):
                return int(state["index"])
            return self.inputs[0].elements(state["parents"][0])
        if counter is not None:
            return int(state[counter])
        match part:
            case ast.Batch():
                size, own = part.batch_size, self.before.elements(state)
                if own % size and own != self.before.rows.length:
                    raise UsageError(f"the state is in the midst of a batch of {size}: {own}")
                return min(-(-own // size), self.rows.length)
            case ast.Filter():
                return _passed(self.rows, self.before.elements(state))
            case ast.RepeatIterDataset():
                own = self.before.elements(state["parent"])
                return int(state["epoch"]) * self.before.rows.length + own
            case ast.WindowShuffleIterDataset():
                start = self.before.elements(state["parent_window_start_state"])
                return start + int(state["pos_in_window"])
        if isinstance(part, _AS_BEFORE):
            return self.before.elements(state)
        return _passed(self._iterated, int(state["next_index"]))

    def _elements_in_turn(self, state: Any) -> int:
        self._check_turns()
        states = state["iterators_in_use_states"] or [None]
        # None is one that has not begun.
        taken = [
            0 if own is None else one.elements(own)
            for one, own in zip(self.inputs, states, strict=True)
        ]
        if taken != self._taken(sum(taken)):
            raise UsageError(f"the state is of other turns: {taken} elements of each")
        return sum(taken)

    def _taken(self, count: int) -> list[int]:
        """Return how many elements of each input are among the first `count`."""
        merged = self.rows
        if not isinstance(merged, MergedRows) or len(self.inputs) == 1:
            return [count]

        def number(place: int, own: int) -> int:
            return int(merged.number_of(place, np.array([own]))[0])

        return [
            bisect_left(range(min(row.length, count)), count, key=partial(number, place))
            for place, row in enumerate(merged.rows)
        ]

    def _turns(self, count: int) -> dict[str, Any]:
        inputs = self.inputs
        self._check_turns()
        number = len(inputs)
        merged, slot = self.rows, 0
        if isinstance(merged, MergedRows) and number > 1 and count < merged.length:
            slot = int(merged.route(np.array([count]))[0][0])
        taken = self._taken(count)
        return {
            "next_index_in_cycle": slot,
            "next_index_in_datasets": number,
            "iterators_in_use_indices": list(range(number)),
            "iterators_in_use_states": [
                one.state(own) for one, own in zip(inputs, taken, strict=True)
            ],
            "exhausted": [0] * number,
            "future_states": {},
        }

    def _check_turns(self) -> None:
        part, number = self._part, len(self.inputs)
        self._check_version(part.name)
        if getattr(part, "cycle_length", number) < number:
            raise UsageError(f"{part.name}: its state is not known of more datasets than a cycle")

    def _check_version(self, name: str) -> None:
        version = self.reading.config.version
        if (release_of(version) or _FIRST) < _FIRST:
            raise UsageError(f"{name}: its state is known of Grain 0.2.16 and newer, not {version}")


def _read(rows: Rows, count: int) -> int:
    """Return how many elements are read for the first `count` of what passes."""
    if not isinstance(rows, PassedRows):
        return count
    return int(rows.there(np.array([count - 1]))[0]) + 1 if count else 0


def _passed(rows: Rows, read: int) -> int:
    """Return how many of the elements that were read have passed."""
    return rows.before(read) if isinstance(rows, PassedRows) else read
