"""How far a run was whose checkpoint holds the state of a Grain iterator."""

from __future__ import annotations

from shardctl.core.arguments.checked import checked
from shardctl.grain.grain_state import GrainState, elements_of_iterator, is_of_data_loader
from shardctl.grain.states import consumed_of


@checked
def consumed(state: GrainState, *, batch: int = 1) -> int:
    """Return how many examples had been handed out, by the state of an iterator.

    `state` is what `get_state` returned, or a file of Grain's checkpoint holds. That of a
    `DataLoader` over a `shardctl.grain.Sampler` says all, and counts from the order's start. That
    of an iterator behind a `MapDataset` counts elements from where the dataset began: `batch` is
    the size of its batches, and the last of them is counted as a whole one.

    >>> consumed({"next_index": 7}, batch=32)
    224

    Raises:
        DatasetError: a state of another sampler, or that is none.
    """
    if is_of_data_loader(state):
        return consumed_of(state, source="the state")
    return elements_of_iterator(state) * batch
