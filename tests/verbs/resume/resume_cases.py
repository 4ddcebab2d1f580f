"""Small datasets without files, and pipelines that stop somewhere."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from yaml import safe_load

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.saved.resume_plan import ResumePlan
from shardctl.settings.read_settings import ReadSettings, as_settings
from shardctl.verbs.resume.answer import resume, resume_unseen
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


# Plans by name: what is read, by which settings, and how far the pipeline got; with hosts, those of
# other hosts. The files of `TOY` are read two at a time in blocks of 2: 00 11 0 11 22 1 2.
_PLANS: dict[str, dict[str, Any]] = safe_load(Path(__file__).with_name("plans.yaml").read_text())
CASES = _PLANS["of few files"]


def plan_of(name: str) -> ResumePlan:
    return planned(TOY, *CASES[name])


def plans_of_all_kinds(dataset: Dataset) -> dict[str, ResumePlan]:
    return {name: planned(dataset, *row) for name, row in _PLANS["of all kinds"].items()}


def planned(dataset: Dataset, spec: str | None, settings: Any, where: Any) -> ResumePlan:
    call: Any = resume_unseen if "seen" in where else resume
    made: ResumePlan = (resume_on_hosts if "hosts" in where else call)(
        dataset, spec, as_settings(settings), **where
    )
    return made
