"""Small datasets without files, and pipelines that stop somewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.saved.resume_plan import ResumePlan
from shardctl.settings.read_settings import ReadSettings, as_settings
from shardctl.verbs.resume.answer import resume
from shardctl.verbs.resume.hosts import resume_on_hosts
from tests.order.order_cases import read_settings
from tests.strategies import shard_lengths


def dataset(**splits: tuple[int, ...]) -> Dataset:
    """A dataset with these shard lengths."""
    return Dataset(
        name="toy",
        splits=tuple(
            Split(
                name=name,
                shard_lengths=lengths,
                files=(ShardFiles(pattern=f"toy-{name}-\0", num_shards=len(lengths)),),
            )
            for name, lengths in splits.items()
        ),
    )


TOY = dataset(train=(3, 5, 3), test=(4,))


def entries(plan: ResumePlan) -> list[tuple[int, int, int]]:
    """Return (shard, skip, take) of the instructions."""
    return [(int(i.filename[-5:]), i.skip, i.take) for i in plan.file_instructions]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A pipeline, and where it stops (the n-th of the places there are)."""

    dataset: Dataset
    spec: str
    settings: ReadSettings
    stop: int
    mode: Any


@st.composite
def cases(draw: st.DrawFn) -> Case:
    lengths = shard_lengths(max_shards=8, max_length=20)
    toy = dataset(train=draw(lengths.filter(any)), test=draw(lengths))
    specs = ("train", "train", "train[10%:70%]", "train+test", "train+train", "test+train[:3]")
    settings = draw(read_settings(hosts=("even", "files", "examples")))
    endless = settings.repeat_files and settings.buffer is not None  # has no rest to read once
    return Case(
        dataset=toy,
        spec=draw(st.sampled_from(specs)),
        settings=settings,
        stop=draw(st.integers(0, 10**6)),
        mode="exact-order" if endless else draw(st.sampled_from(["exactly-once", "exact-order"])),
    )


# Plans of all kinds, shown as text and as code.

OPEN = {"buffer": 3, "cycle": 1}
SEEDED = {"buffer": 3, "buffer_seed": 1, "epochs": 3}
AT_MOST: dict[str, Any] = {"mode": "at-most-once"}
AT_LEAST: dict[str, Any] = {"mode": "at-least-once"}

TORCH = {"loader_version": "2.13.0"}
# Files of 3, 5 and 3 examples, two at a time in blocks of 2: 00 11 0 11 22 1 2. Settings, and how
# far the pipeline got; with hosts, those of other hosts.
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nothing was read": ({"cycle": 2, "block": 2}, {"consumed": 0}),
    "inside a block": ({"cycle": 2, "block": 2}, {"consumed": 1}),
    "two files open": ({"cycle": 2, "block": 2}, {"consumed": 4}),
    "inside a batch": ({"cycle": 2, "block": 2, "batch": 4, "epochs": 3}, {"consumed": 6}),
    "the end of an epoch": ({"shuffle_seed": 1, "epochs": 2}, {"consumed": 11}),
    "the end": ({"batch": 4}, {"consumed": 11}),
    "steps": ({"batch": 4, "epochs": 3, "shuffle_seed": 1}, {"steps": 3}),
    "endless": (
        {"repeat_files": True, "epochs": 2, **OPEN, "buffer_seed": 1},
        {"consumed": 9, "mode": "exact-order"},
    ),
    "host of examples": ({"host": "1/2", "host_by": "examples", "cycle": 1}, {"consumed": 2}),
    "exactly once": (SEEDED, {"consumed": 2, "mode": "exactly-once"}),
    "exact order": (SEEDED, {"consumed": 2, "mode": "exact-order"}),
    "buffer of a host": ({**SEEDED, "host": "0/2", "host_by": "examples"}, {"consumed": 2}),
    "unseeded, nothing held": (OPEN, {"consumed": 0, **AT_MOST}),
    "unseeded, skipped": (OPEN, {"consumed": 2, **AT_MOST}),
    "unseeded, near the end": (OPEN, {"consumed": 10, **AT_MOST}),
    "unseeded, later epochs": ({**OPEN, "epochs": 3}, {"consumed": 10, **AT_MOST}),
    "unseeded, endless": ({"repeat_files": True, "epochs": 2, **OPEN}, {"consumed": 9, **AT_MOST}),
    "unseeded, at a risk": (OPEN, {"consumed": 6, **AT_LEAST, "risk": 2.0}),
    "unseeded, all again": (OPEN, {"consumed": 6, **AT_LEAST, "risk": 1e-6}),
    "hosts of which one is done": (
        {"cycle": 1, "batch": 2, "drop_remainder": True},
        {"hosts": 2, "to_hosts": 3, "consumed": [2, 4]},
    ),
    "hosts apart": (
        {"epochs": 3, "cycle": 1, "batch": 2, "drop_remainder": True},
        {"hosts": 2, "to_hosts": 2, "consumed": [5, 6]},
    ),
    "hosts of files": (
        {"host_by": "files", "cycle": 1},
        {"hosts": 2, "to_hosts": 3, "consumed": [4, 2]},
    ),
    "hosts of stages assumed": (
        {"stages": "cache | take(5)"},
        {"hosts": 2, "to_hosts": 1, "consumed": 1},
    ),
    "hosts by turns": (
        {"cycle": 1, "stages": "shard(2, 1) | cache | shuffle(1, seed=1) | repeat(2)"},
        {"hosts": 2, "to_hosts": 2, "consumed": [4, 2]},
    ),
    "hosts": ({"epochs": 2}, {"hosts": 2, "to_hosts": 3, "consumed": [1, 2]}),
    "hosts alike": ({}, {"hosts": 2, "to_hosts": 3, "consumed": 2}),
    "hosts, unseeded": ({"buffer": 3}, {"hosts": 2, "to_hosts": 3, "consumed": [1, 2], **AT_MOST}),
    "hosts, at a risk": (
        {"buffer": 3},
        {"hosts": 2, "to_hosts": 3, "consumed": [1, 2], **AT_LEAST, "risk": 2.0},
    ),
    "hosts that drop": (
        {"batch": 2, "drop_remainder": True},
        {"hosts": 1, "to_hosts": 4, "consumed": 2},
    ),
    "stages": ({"stages": "shuffle(4, seed=1) | take(9)"}, {"consumed": 2}),
    "stages inside a batch": (
        {"stages": "shuffle(4, seed=1) | skip(2) | batch(3)"},
        {"consumed": 4},
    ),
    "stages that cut, inside a batch": ({"stages": "skip(2) | batch(3)"}, {"consumed": 4}),
    "stages in short form": (
        {"stages": "map | shuffle(4, seed=1) | repeat(2) | batch(3)"},
        {"steps": 3},
    ),
    "stages without end": ({"stages": "map | repeat | skip(1)"}, {"consumed": 15}),
    "sources": ({"stages": "zip(train, test) | take(3)"}, {"consumed": 4}),
    "stages by instructions": ({"stages": "skip(2) | batch(3)"}, {"consumed": 3}),
    "stages of hosts": (
        {"stages": "shard(2, 0) | shuffle(4, seed=1) | batch(2)"},
        {"hosts": 2, "to_hosts": 1, "consumed": 2},
    ),
    "torch": (
        {"loader": "torch", "loader_version": "2.13.0", "shuffle_seed": 5, "batch": 2, "epochs": 2},
        {"consumed": 3},
    ),
    "torch of a process": (
        {"loader": "torch", "host": "0/2", "shuffle_seed": 5, "pass": 3, "batch": 2, **TORCH},
        {"steps": 1},
    ),
    "iterations of torch": (
        {"loader": "torch", "shuffle": True, "global_seed": 7, "epochs": 3, "batch": 2, **TORCH},
        {"steps": 7},
    ),
    "later pass of torch": ({"loader": "torch", "pass": 2, "batch": 2, **TORCH}, {"steps": 2}),
    "accelerate": (
        {"loader": "accelerate", "loader_version": "1.15.0", "shuffle_seed": 5, "batch": 3}
        | {"epochs": 2},
        {"consumed": 13},
    ),
    "grain of workers": (
        {"loader": "grain", "loader_version": "0.2.18", "epochs": 2, "batch": 2, "workers": 3},
        {"consumed": 4},
    ),
    "a stream": (
        {"loader": "hf", "loader_version": "5.2.0", "buffer": 4, "shuffle_seed": 1, "arrow": False}
        | {"pass": 1},
        {"consumed": 5},
    ),
    "by index": (
        {"loader": "hf", "loader_version": "5.2.0", "shuffle_seed": 5, "pass": 1, "batch": 2},
        {"steps": 3},
    ),
    "grain on hosts": (
        {"loader": "grain", "loader_version": "0.2.18", "shuffle_seed": 5, "epochs": 3},
        {"hosts": 2, "to_hosts": 3, "consumed": 2},
    ),
}


def plan_of(name: str) -> ResumePlan:
    settings, where = CASES[name]
    read: Any = as_settings(settings)
    spec = None if "stages" in settings else "train"
    return (resume_on_hosts if "hosts" in where else resume)(TOY, spec, read, **where)
