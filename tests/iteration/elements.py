"""What nodes and pipelines hand out, as lists: an element is the list of its examples."""

from __future__ import annotations

import numpy as np

from shardctl.iteration.build import build, iteration_of_pass
from shardctl.iteration.iteration import EVERYTHING, NOTHING, Iteration, Node
from shardctl.stages.part import Stage
from shardctl.stages.stages import Pipeline, Range
from shardctl.tfdata.shuffle_seeds import Loop, ScriptSeeds

Elements = list[list[int]]


def elements_of(iteration: Iteration) -> Elements:
    """Return the elements that are pulled so far."""
    every = np.arange(iteration.pulled)
    ends = np.cumsum(iteration.widths(every))
    return [part.tolist() for part in np.split(iteration.examples(every), ends[:-1])][: len(every)]


def all_of(node: Node) -> Elements:
    """Return the elements of a new iterator, read to its end."""
    iteration = node.iterate()
    iteration.pull(EVERYTHING)
    return elements_of(iteration)


def chain(length: int, *stages: Stage) -> Pipeline:
    """Return stages behind `range(length)`."""
    return Pipeline(source=Range(stop=length), stages=stages)


def node_of(pipeline: Pipeline, global_seed: int | None = None) -> Node:
    """Return the node of a pipeline without a reader."""
    return build(pipeline, lambda read: NOTHING, seeds=ScriptSeeds(global_seed))


def pass_of(
    pipeline: Pipeline,
    pass_index: int = 0,
    *,
    loop: Loop = "python",
    global_seed: int | None = None,
) -> Iteration:
    """Return the iteration of a pass, read as far as the loop reads it.

    Raises:
        UnpredictableOrderError: its order depends on timing or on seeds nobody knows.
    """
    iteration = iteration_of_pass(node_of(pipeline, global_seed), pass_index, loop=loop)
    iteration.pull(EVERYTHING)
    iteration.check()
    return iteration


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
    backwards = places[::-1]
    assert iteration.codes_at(backwards).tolist() == examples[::-1].tolist()
    assert iteration.before(every).tolist() == starts.tolist()
    of_place, within = iteration.at(places)
    assert of_place.tolist() == np.repeat(every, widths).tolist()
    assert within.tolist() == (places - starts[of_place]).tolist()
    codes = np.unique(np.concatenate((examples, [3, 50])))
    found = [(q, p) for q, code in enumerate(codes) for p in np.flatnonzero(examples == code)]
    query, where = iteration.places_of(codes)
    assert sorted(zip(query.tolist(), where.tolist(), strict=True)) == found
    query, where = iteration.elements_of(codes)
    in_elements = sorted((q, int(of_place[p])) for q, p in found)
    assert sorted(zip(query.tolist(), where.tolist(), strict=True)) == in_elements
    return elements
