"""What nodes and pipelines hand out, as lists: an element is the list of its examples."""

from __future__ import annotations

import numpy as np

from shardctl.base.tfds_rules import Loop
from shardctl.iteration.build import build, iteration_of_pass
from shardctl.iteration.iteration import EVERYTHING, Iteration, Node, Source
from shardctl.iteration.regrouped import Kept
from shardctl.stages.stages import Pipeline
from shardctl.stages.text import parse_stages
from shardctl.tfdata.shuffle_seeds import ScriptSeeds
from tests.pipelines.real_pipelines import passes

Elements = list[list[int]]


class Watched(Source):
    """A source that keeps its iterators, and of which TensorFlow may not be told its length."""

    def __init__(self, length: int = 0, *, cardinality: int | None = None) -> None:
        super().__init__(range(length))
        self.made: list[Iteration] = []
        self._cardinality = length if cardinality is None else cardinality

    @property
    def cardinality(self) -> int:
        return self._cardinality

    def iterate(self) -> Iteration:  # type: ignore[override]
        self.made.append(super().iterate())
        return self.made[-1]

    @property
    def num_read(self) -> int:
        return sum(iteration.pulled for iteration in self.made)


def node_of(
    pipeline: Pipeline | str, global_seed: int | None = None, read: Node | None = None
) -> Node:
    """Return the node of a pipeline or of its text; `read` is that of the reader."""
    pipeline = parse_stages(pipeline) if isinstance(pipeline, str) else pipeline
    source, seeds = Watched() if read is None else read, ScriptSeeds(global_seed)
    return build(pipeline, lambda _: source, seeds=seeds, kept=lambda stage: Kept(values=passes))


def pass_of(
    pipeline: Pipeline | str, index: int = 0, *, loop: Loop = "python", seed: int | None = None
) -> Iteration:
    """Return the iteration of a pass, read as far as the loop reads it.

    Raises:
        UnpredictableOrderError: its order depends on timing or on seeds nobody knows.
    """
    iteration = iteration_of_pass(node_of(pipeline, seed), index, loop=loop)
    iteration.pull(EVERYTHING)
    iteration.check()
    return iteration


def elements_of(iteration: Iteration) -> Elements:
    """Return the elements that are pulled so far."""
    every = np.arange(iteration.pulled)
    ends = np.cumsum(iteration.widths(every))
    return [part.tolist() for part in np.split(iteration.examples(every), ends[:-1])][: len(every)]


def check_lookups(iteration: Iteration) -> Elements:
    """Check every way to look up what was pulled against the list of it, which is returned."""
    elements = elements_of(iteration)
    examples = np.array([code for element in elements for code in element], np.int64)
    widths = np.array(list(map(len, elements)), np.int64)
    starts, places = np.cumsum(widths) - widths, np.arange(len(examples))
    every = np.arange(len(elements))
    assert iteration.num_examples == len(examples)
    assert iteration.width in (None, *widths.tolist()) or not len(widths)
    for start, stop in ((0, len(every)), (len(every) // 3, len(every) // 2), (1, 1)):
        chunks = list(iteration.chunks(start, stop)) if stop <= len(every) else []
        flat = [code for element in elements[start:stop] for code in element]
        assert np.concatenate([np.empty(0, int), *chunks]).tolist() == flat
    assert iteration.codes_at(places[::-1]).tolist() == examples[::-1].tolist()
    assert iteration.before(every).tolist() == starts.tolist()
    of_place, within = iteration.at(places)
    assert of_place.tolist() == np.repeat(every, widths).tolist()
    assert within.tolist() == (places - starts[of_place]).tolist()
    codes = np.unique(np.concatenate((examples, [3, 50])))
    found = [(q, p) for q, code in enumerate(codes) for p in np.flatnonzero(examples == code)]
    query, where = iteration.places_of(codes)
    assert sorted(zip(query.tolist(), where.tolist(), strict=True)) == found
    query, where = iteration.elements_of(codes)
    in_elements = sorted({(q, int(of_place[p])) for q, p in found})
    assert sorted(set(zip(query.tolist(), where.tolist(), strict=True))) == in_elements
    return elements
