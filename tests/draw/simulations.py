"""Stretches of the orders of a toy dataset, and how they look."""

from __future__ import annotations

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.draw.tables import Screen
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.simulate.answer import Simulation, simulate
from shardctl.verbs.simulate.view import simulate_table

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
