"""Windows of elements: cut behind every batch that is not full."""

from __future__ import annotations

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.tfds.graphs.dataset_graph import DatasetGraph
from shardctl.tfds.graphs.gather import EditedGraph, NodeSource
from shardctl.tfds.graphs.own_elements import Elements, Rest


class Given(Elements):
    """Batches of these widths over 0, 1, 2, .."""

    def __init__(self, widths: list[int]) -> None:
        self.sizes = widths

    @property
    def num_sources(self) -> int:
        return 1

    @property
    def num_elements(self) -> int:
        return len(self.sizes)

    @property
    def num_examples(self) -> int:
        return sum(self.sizes)

    def up_to(self, stop: int) -> int:
        return min(stop, len(self.sizes))

    def examples(self, start: int, stop: int) -> tuple[Int64s, Int64s, Int64s]:
        bounds = np.cumsum([0, *self.sizes])
        codes = np.arange(bounds[start], bounds[stop])
        return np.zeros_like(codes), codes, np.diff(bounds)[start:stop]

    def _position_of(self, element: int) -> int:
        return sum(self.sizes[:element])

    def place_of(self, consumed: int) -> tuple[int, int]:
        raise NotImplementedError


def test_windows_end_behind_partial_batches_and_batches_come_out_as_they_were() -> None:
    import tensorflow as tf

    graph = DatasetGraph(tf.data.Dataset.range(40).shuffle(9).batch(3).repeat(2))
    sizes = [3, 3, 1, 3, 2, 2, 3, 3, 3, 3]
    rest = Rest(
        edited=EditedGraph(graph=graph),
        sources=[NodeSource(graph=graph, leaf=graph.root.leaves[0])],
        elements=Given(sizes),
        start=1,
        window=9,
    )
    windows = [window.tolist() for window in rest.windows()]
    assert windows == [[1, 3], [3, 4], [4, 5], [5, 6], [6, 7], [7, 10]]
    made = [batch.tolist() for batch in rest.dataset().as_numpy_iterator()]
    assert [len(batch) for batch in made] == sizes[1:]
    assert [value for batch in made for value in batch] == list(range(3, 26))
