"""Small datasets without files, and pipelines that stop somewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.saved.resume_plan import ResumePlan
from shardctl.settings.read_settings import ReadSettings
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
    return Case(
        dataset=toy,
        spec=draw(st.sampled_from(specs)),
        settings=draw(read_settings(hosts=("even", "files", "examples"))),
        stop=draw(st.integers(0, 10**6)),
        mode=draw(st.sampled_from(["exactly-once", "exact-order"])),
    )
