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
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.spec.reads import Reads
from shardctl.stages.text import parse_stages
from shardctl.tfdata.shuffle_seeds import KernelSeeds
from shardctl.verbs.resume.answer import resume, resume_unseen
from shardctl.verbs.resume.hosts import resume_on_hosts
from tests.verbs.resume.resume_cases import dataset

TOY = replace(dataset(train=(7, 5, 2, 9, 4), test=(6, 3)), version="1.0.0")
SEEN = [3, 11, 4, 20, 3]
FILES = ReadSettings(cycle=3, block=2, shuffle_seed=4)
BUFFER = ReadSettings(cycle=2, block=3, buffer=5, buffer_seed=1)


def on_host(settings: ReadSettings, mode: Any, index: int = 1, count: int = 2) -> ReadSettings:
    return replace(settings, host=Host(index=index, count=count), host_by=mode)


@cache
def plans() -> dict[str, ResumePlan]:
    """Return the plans by what they are."""
    both = replace(BUFFER, shuffle_seed=4, epochs=3, batch=4, drop_remainder=True)
    drawn = ReadSettings(
        cycle=2, block=2, shuffle_files=True, deterministic=True, global_seed=3, buffer=4, epochs=2
    )
    endless = replace(BUFFER, repeat_files=True, epochs=3)
    unknown = replace(both, buffer=4, buffer_seed=None)
    open_end = replace(endless, buffer_seed=None)
    made = {
        "exact": resume(TOY, "train", replace(FILES, epochs=3, batch=4), consumed=33),
        "back to front": resume(
            TOY, "train[10%:90%]", ReadSettings(cycle=2, block=2, reverse=True), consumed=9
        ),
        "a sum": resume(TOY, "train+test", replace(FILES, epochs=2), consumed=11),
        "exactly once": resume(TOY, "train", both, consumed=8, mode="exactly-once"),
        "in exact order": resume(TOY, "train", both, consumed=8, mode="exact-order"),
        "a sum in exact order": resume(TOY, "test+train", BUFFER, consumed=8, mode="exact-order"),
        "at the start of an epoch": resume(TOY, "train", both, consumed=27, mode="exact-order"),
        "global seed": resume(TOY, "train", drawn, consumed=8, mode="exact-order"),
        "endless": resume(TOY, "train", replace(FILES, repeat_files=True, epochs=3), consumed=40),
        "endless in exact order": resume(TOY, "train", endless, consumed=40, mode="exact-order"),
        "of fit": resume(
            TOY, "train", replace(FILES, loop="keras-fit", pass_index=1, batch=3), consumed=9
        ),
        "nothing left": resume(TOY, "train", both, consumed=80, mode="exact-order"),
        "at most once": resume(TOY, "train", unknown, consumed=8, mode="at-most-once"),
        "at most once, to the end": resume(TOY, "train", unknown, consumed=25, mode="at-most-once"),
        "at least once": resume(TOY, "train", unknown, consumed=47, mode="at-least-once", risk=0.8),
        "endless at least once": resume(
            TOY, "train", open_end, consumed=40, mode="at-least-once", risk=1.5
        ),
        "unseen": resume_unseen(TOY, "train", replace(BUFFER, batch=2), seen=SEEN),
        "unseen by files": resume_unseen(TOY, "train", on_host(BUFFER, "files"), seen=SEEN),
        "unseen to hosts": resume_unseen(TOY, "train", seen=SEEN, to_hosts=3),
        "to hosts": resume_on_hosts(
            TOY, "train", replace(both, epochs=2), hosts=2, to_hosts=3, consumed=[3, 5]
        ),
        "to hosts by examples": resume_on_hosts(
            TOY,
            "train",
            ReadSettings(host_by="examples", epochs=2),
            hosts=3,
            to_hosts=2,
            consumed=[4],
        ),
    }
    for mode in ("even", "files", "examples"):
        settings = on_host(replace(both, batch=None, drop_remainder=False), mode)
        made[f"host by {mode}"] = resume(
            TOY, "train", on_host(replace(FILES, epochs=2), mode), consumed=5
        )
        made[f"host by {mode} once"] = resume(
            TOY, "train", settings, consumed=5, mode="exactly-once"
        )
        made[f"host by {mode} at most once"] = resume(
            TOY, "train", replace(settings, buffer_seed=None), consumed=5, mode="at-most-once"
        )
        made[f"host by {mode} in exact order"] = resume(
            TOY, "train", settings, consumed=5, mode="exact-order"
        )
    for stages in ("skip(2) | batch(4) | take(5)", "shuffle(4, seed=1) | skip(2) | take(9)"):
        staged = replace(FILES, stages=parse_stages(stages))
        made[stages] = resume(TOY, "train", staged, consumed=5)
    torch = {"loader": "torch", "loader_version": "2.14.1", "host": "1/2", "pass": 2}
    stream = {"loader": "hf", "loader_version": "5.2.0", "buffer": 4, "arrow": False, "epochs": 2}
    for name, of_loader, consumed in (
        ("a loader", {**torch, "shuffle_seed": 4, "epochs": 3, "batch": 4}, 20),
        ("a loader, to the end", torch, 14),
        ("a loader's stream", {**stream, "shuffle_seed": 4}, 30),
    ):
        made[name] = resume(TOY, "train", of_loader, consumed=consumed)
    return made


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
