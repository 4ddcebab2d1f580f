"""A plan with one thing in it changed, for everything that it holds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from shardctl.core.hosts.host import Host
from shardctl.core.instructions.reads import Reads
from shardctl.core.resume.after_read import TakeCall
from shardctl.core.resume.resume_plan import MODES, ReaderState, ShuffleState
from shardctl.core.shuffle.seeds import KernelSeeds

# The field that was changed, as (class, name), where it is, and the value with it changed. Making
# the value may be refused.
Mutant = tuple[tuple[str, str], str, Callable[[], Any]]

SEEDS = KernelSeeds(seed=5, seed2=6)
# What may stand where there is nothing, and which other words there are.
INSTEAD_OF_NOTHING: dict[tuple[str, str], tuple[Any, ...]] = {
    ("DatasetIdentity", "config"): ("other",),
    ("DatasetIdentity", "version"): ("2.0.0",),
    ("DatasetIdentity", "data_dir"): ("/elsewhere",),
    ("ResumePlan", "pending"): ((), (1,)),
    ("ResumePlan", "reader_state"): (
        ReaderState(open_files=1, block_offset=0, next_file=1, num_files=1),
    ),
    ("ResumePlan", "shuffle"): (
        ShuffleState(buffer_size=2, seeds=SEEDS, num_elements=9, num_read=2, emitted=0),
    ),
    ("FurtherEpoch", "file_seeds"): (SEEDS,),
    ("FurtherEpoch", "buffer_seeds"): (SEEDS,),
    ("ShuffleCall", "seed"): (3,),
    ("ReadSettings", "cycle"): (3,),
    ("ReadSettings", "cpus"): (6,),
    ("ReadSettings", "shuffle_files"): (True, False),
    ("ReadSettings", "shuffle_seed"): (5,),
    ("ReadSettings", "reshuffle"): (True, False),
    ("ReadSettings", "deterministic"): (True, False),
    ("ReadSettings", "buffer"): (4, -2),
    ("ReadSettings", "buffer_seed"): (8,),
    ("ReadSettings", "buffer_reshuffle"): (True, False),
    ("ReadSettings", "global_seed"): (9,),
    ("ReadSettings", "file_order"): (tuple(f"toy-train-{i:05d}" for i in (2, 0, 3, 1, 4)),),
    ("ReadSettings", "host"): (Host(index=0, count=2),),
    ("ReadSettings", "batch"): (3,),
}
WORDS: dict[tuple[str, str], tuple[str, ...]] = {
    ("ResumePlan", "mode"): MODES,
    ("ResumePlan", "spec"): ("train", "test", "train[:60%]", "test+train", "train+train", "no"),
    ("ReadSettings", "host_by"): ("even", "files", "examples"),
    ("ReadSettings", "loop"): ("python", "keras-fit"),
}


def mutants(value: Any, field: tuple[str, str] = ("", ""), path: str = "") -> Iterator[Mutant]:
    """Yield a value with one thing changed, for each thing in it.

    Raises:
        AssertionError: a kind of value, or a field that may be nothing, without a case here.
    """
    for change in _changed(value, field):
        yield field, path, lambda change=change: change
    if isinstance(value, Reads):
        for name in ("split", "shard", "skip", "take"):
            for number, column in enumerate(_columns(getattr(value, name))):
                made = _replacing(value, name, column)
                yield ("Reads", name), f"{path}.{name}#{number}", made
        for number, rows in enumerate(_other_rows(len(value))):
            yield ("Reads", "rows"), f"{path}.rows#{number}", lambda r=rows: value.select(r)
    elif dataclasses.is_dataclass(value):
        kind = type(value).__name__
        for one in dataclasses.fields(value):
            inner = getattr(value, one.name)
            for where, name, make in mutants(inner, (kind, one.name), f"{path}.{one.name}"):
                yield where, name, _rebuilding(value, one.name, make)
    elif isinstance(value, tuple):
        for index, inner in enumerate(value):
            for where, name, make in mutants(inner, field, f"{path}[{index}]"):
                yield where, name, _with_entry(value, index, make)


def _columns(column: Any) -> Iterator[Any]:
    for row in sorted({0, len(column) // 2, len(column) - 1}) if len(column) else ():
        for step in (1, -1):
            other = column.copy()
            other[row] += step
            yield other


def _other_rows(count: int) -> Iterator[Any]:
    """Yield other lists of rows: one left out, one twice, two swapped, none."""
    rows = np.arange(count)
    if count:
        yield rows[1:]
        yield rows[:-1]
        yield np.append(rows, 0)
        yield rows[:0]
    if count > 1:
        yield np.array([1, 0, *range(2, count)])
        yield rows[::-1]


def _replacing(value: Any, name: str, new: Any) -> Callable[[], Any]:
    return lambda: dataclasses.replace(value, **{name: new})


def _rebuilding(value: Any, name: str, make: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: dataclasses.replace(value, **{name: make()})


def _with_entry(value: tuple[Any, ...], index: int, make: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: (*value[:index], make(), *value[index + 1 :])


def _changed(value: Any, field: tuple[str, str]) -> list[Any]:
    """Return other values of a field, of the kinds that may stand there."""
    nothing = [None] if field in INSTEAD_OF_NOTHING and value is not None else []
    if field in WORDS and isinstance(value, str):
        return [word for word in WORDS[field] if word != value]
    match value:
        case None:
            assert field in INSTEAD_OF_NOTHING, f"{field} has no case"
            return list(INSTEAD_OF_NOTHING[field])
        case bool():
            return [not value, *nothing]
        case int():
            return [value + 1, value - 1, 0 if value else 7, *nothing]
        case str():
            return [f"{value}x", *nothing]
        case tuple():
            if field == ("ResumePlan", "after_read"):
                nothing = [(*value, TakeCall(count=1))]
            others = [value[1:], (*value, value[0])] if value else []
            if len(value) > 1 and value[0] != value[1]:
                others.append((value[1], value[0], *value[2:]))
            return [*others, *nothing]
        case Reads():
            return []
        case _:
            assert dataclasses.is_dataclass(value), f"{field}: {value!r} has no case"
            return nothing
