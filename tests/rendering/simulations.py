"""Stretches of the orders of a toy dataset, and how they look."""

from __future__ import annotations

from shardctl.core.dataset.dataset import Dataset, Split
from shardctl.core.dataset.shard_files import ShardFiles
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.planning.simulate import Simulation, simulate
from shardctl.rendering.simulate import simulate_table
from shardctl.rendering.text.tables import Screen

LENGTHS = {"train": (5, 0, 3, 6), "12": (2,), "validation_of_a_long_name_indeed": (2, 1)}


TOY = Dataset(
    name="d",
    splits=tuple(
        Split(
            name=name,
            shard_lengths=lengths,
            files=(ShardFiles(pattern=f"d-{name}-\0", num_shards=len(lengths)),),
        )
        for name, lengths in LENGTHS.items()
    ),
)


def simulated(
    spec: str = "train", *, skip: int = 0, take: int | None = None, **settings: object
) -> Simulation:
    """Return a stretch of an order of the toy dataset."""
    return simulate(TOY, spec, ReadSettings(**settings), skip=skip, take=take)  # type: ignore[arg-type]


def text(simulation: Simulation, width: int | None = None, *, color: bool = False) -> str:
    """Return the table of a stretch."""
    return "".join(simulate_table(simulation, Screen(width=width, color=color)))
