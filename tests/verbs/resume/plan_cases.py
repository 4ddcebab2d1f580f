"""Plans of all kinds, of pipelines that stopped in the middle, and each with one thing changed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any, get_args

from shardctl.loaders.loader import Stop
from shardctl.saved.resume_plan import (
    CONTINUED_BY,
    Mode,
    ReaderState,
    ResumePlan,
    ShuffleState,
    TakeCall,
)
from shardctl.saved.unseeded_buffer import behind_buffer
from shardctl.spec.reads import Reads
from shardctl.tfdata.shuffle_seeds import KernelSeeds
from shardctl.verbs.resume.answer import resume
from tests.verbs.resume.resume_cases import dataset, plans_of_all_kinds

TOY = replace(dataset(train=(7, 5, 2, 9, 4), test=(6, 3)), version="1.0.0")
SEEN = [3, 11, 4, 20, 3]


@cache
def plans() -> dict[str, ResumePlan]:
    """Return the plans by what they are."""
    return plans_of_all_kinds(TOY)


# The field that was changed, as (class, name), where it is, and the value with it changed. Making
# the value may be refused.
Mutant = tuple[tuple[str, str], str, Callable[[], Any]]

SEEDS = KernelSeeds(seed=5, seed2=6)
# What may stand where there is nothing, and which other words there are.
INSTEAD_OF_NOTHING: dict[tuple[str, str], tuple[Any, ...]] = {
    ("DatasetIdentity", "config"): ("other",),
    ("DatasetIdentity", "version"): ("2.0.0",),
    ("DatasetIdentity", "data_dir"): ("/elsewhere",),
    ("SplitSize", "template"): ("x",),
    ("ResumePlan", "pending"): ((), (1,)),
    ("ResumePlan", "reader_state"): (
        ReaderState(open_files=1, block_offset=0, next_file=1, num_files=1),
    ),
    ("ResumePlan", "shuffle"): (
        ShuffleState(buffer_size=2, seeds=SEEDS, num_elements=9, num_read=2, emitted=0),
    ),
    ("ResumePlan", "unseeded"): (
        behind_buffer(buffer_size=3, emitted=5, num_elements=27, risk=None),
    ),
    ("ResumePlan", "stop"): (
        Stop(consumed=1, epoch=0, in_epoch=1, steps=None, steps_in_epoch=None, in_batch=0),
    ),
    ("Stop", "steps"): (2,),
    ("Stop", "steps_in_epoch"): (2,),
    ("UnseededBuffer", "risk"): (0.5,),
    ("FurtherEpoch", "file_seeds"): (SEEDS,),
    ("FurtherEpoch", "buffer_seeds"): (SEEDS,),
    ("ShuffleCall", "seed"): (3,),
    ("ConsumedSource", "data"): ("other",),
    ("ConsumedSource", "spec"): ("train",),
    ("ResumePlan", "shared"): (),  # it is in no file, as little as `stretches`
}
WORDS: dict[tuple[str, str], tuple[str, ...]] = {
    ("ResumePlan", "mode"): get_args(Mode),
    ("ResumePlan", "spec"): ("train", "test", "train[:60%]", "test+train", "train+train", "no"),
    ("ResumePlan", "continued_by"): CONTINUED_BY,
}


NOT_CHANGED = ("given", "settings")


def mutants(value: Any, field: tuple[str, str] = ("", ""), path: str = "") -> Iterator[Mutant]:
    """Yield a value with one thing changed, for each thing in it.

    Raises:
        AssertionError: a kind of value, or a field that may be nothing, without a case here.
    """
    for change in _changed(value, field):
        yield field, path, _given(change)
    if dataclasses.is_dataclass(value) and not isinstance(value, Reads):
        kind = type(value).__name__
        # `given` is the dataset of the command, which is in no file; a plan is planned anew of its
        # settings, and its instructions are read to their end.
        for one in filter(lambda one: one.name not in NOT_CHANGED, dataclasses.fields(value)):
            inner = getattr(value, one.name)
            for where, name, make in mutants(inner, (kind, one.name), f"{path}.{one.name}"):
                yield where, name, _rebuilding(value, one.name, make)
    elif isinstance(value, tuple):
        for index, inner in enumerate(value):
            for where, name, make in mutants(inner, field, f"{path}[{index}]"):
                yield where, name, _with_entry(value, index, make)


def _given(value: Any) -> Callable[[], Any]:
    return lambda: value


def _rebuilding(value: Any, name: str, make: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: dataclasses.replace(value, **{name: make()})


def _with_entry(value: tuple[Any, ...], index: int, make: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: (*value[:index], make(), *value[index + 1 :])


def _changed(value: Any, field: tuple[str, str]) -> list[Any]:
    """Return other values of a field, of the kinds that may stand there."""
    nothing: list[Any] = [None] if field in INSTEAD_OF_NOTHING and value is not None else []
    if field in WORDS and isinstance(value, str):
        return [word for word in WORDS[field] if word != value]
    match value:
        case None:
            assert field in INSTEAD_OF_NOTHING, f"{field} has no case"
            return list(INSTEAD_OF_NOTHING[field])
        case bool():
            return [not value, *nothing]
        case float():
            return [value * 2, value / 2, *nothing]
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
        case dict():
            return [{**value, key: value[key] + 1} for key in value]
        case _:
            assert dataclasses.is_dataclass(value), f"{field}: {value!r} has no case"
            return nothing


def is_of_another_pipeline(plan: ResumePlan) -> bool:
    """Return whether a plan is in all its fields that of its pipeline, so that nothing is wrong.

    So it may be with another cycle or block, where no block is cut. A plan file has the two again
    in `read_config`, where they are compared.
    """
    mode: Any = "exactly-once" if plan.mode == "exact" else plan.mode
    risk = None if plan.unseeded is None else plan.unseeded.risk
    made = resume(TOY, plan.spec, plan.settings, consumed=plan.consumed, mode=mode, risk=risk)
    return replace(made, settings=plan.settings) == plan
