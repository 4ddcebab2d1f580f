"""Pipelines after the shapes of public code: what is said of each beside what TensorFlow yields."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
import warnings
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shardctl.errors import UsageError
from shardctl.tfds import resume_like
from shardctl.tfds.inspecting.script import ScriptFunction, inspect_script
from shardctl.tfds.training.scan import Scans
from shardctl.verbs.inspect.answer import Inspection
from shardctl.verbs.inspect.cure import patch_of
from tests.corpus import arrays, images, text
from tests.corpus.world import Shape, build_world

PIPELINES = {
    name: function
    for module in (images, text, arrays)
    for name, function in vars(module).items()
    if isinstance(getattr(function, "shape", None), Shape)
}
# What cannot be done yet, and why.
MISSING = {
    "tutorial_word2vec": "lines of text behind a filter are not scanned",
    "windows_of_trajectories": "rows of arrays that flat_map takes apart are not scanned",
}
# What is resumed in another way, which the error says.
NOT_RESUMED = {"tutorial_distributed": r"experimental_distribute_dataset\(resume_like"}

NUM_PASSES = 3
MOST_RUNS = 40  # of a pipeline whose threads race, until one differs from the first
IN_EVERY_RUN = 12  # each so-many-th pipeline is taken; a slow run takes all of them


def each(names: Iterable[str]) -> Any:
    marks = {
        name: [pytest.mark.xfail(strict=True, reason=reason)] for name, reason in MISSING.items()
    }
    return pytest.mark.parametrize(
        "name", [pytest.param(name, marks=marks.get(name, ())) for name in names]
    )


@pytest.fixture(scope="module")
def world(tf: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("corpus")
    build_world(root)
    return root


@pytest.fixture(autouse=True)
def in_the_world(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(world)
    start_anew()


def start_anew() -> None:
    """Take back the global seed, as a process starts."""
    from tensorflow.python.eager import context

    context.context()._seed = None
    context.context()._rng = None


def of(name: str) -> Shape:
    shape: Shape = PIPELINES[name].shape
    return shape


def script(name: str) -> ScriptFunction:
    file = sys.modules[PIPELINES[name].__module__].__file__
    return ScriptFunction.parsed(f"{file}:{name}", of(name).words)


def inspected(
    name: str, asked: ScriptFunction | None = None, *, assume_seeds: bool = False
) -> Inspection:
    """Return the answer about a pipeline, after a scan where one is needed."""
    start_anew()
    scans = Scans(folder=Path(), runs=True) if of(name).scan else None
    (found,) = inspect_script(
        asked or script(name), only=of(name).only, scans=scans, assume_seeds=assume_seeds
    )
    return found


def made(name: str) -> Any:
    """Return what a new call of the function returns."""
    start_anew()
    asked = script(name)
    result = PIPELINES[name](*asked.arguments, **asked.named)
    return result if of(name).only is None else result[int(of(name).only or 0)]


def ids_in(element: Any, shape: Shape) -> list[int]:
    """Return the ids in an element, as tensors or as arrays."""
    import numpy as np
    import tensorflow as tf

    arrays = tf.nest.map_structure(lambda part: getattr(part, "numpy", lambda: part)(), element)
    if shape.ids is not None:
        arrays = shape.ids(arrays) if callable(shape.ids) else arrays[shape.ids]
    return [int(number) for number in np.ravel(arrays)]


def elements(pipeline: Iterable[Any], name: str, after: int = 0) -> list[list[int]]:
    """Return the ids in each element of a pass, of one without end in the first of them."""
    take = of(name).take
    stop = max(take - after, 0) if take else None
    return [ids_in(element, of(name)) for element in itertools.islice(iter(pipeline), stop)]


def flat(batches: list[list[int]]) -> list[int]:
    return [number for batch in batches for number in batch]


def predicted(found: Inspection, pass_index: int, count: int) -> list[int]:
    """Return so many ids of a pass; a name of several datasets ends with its id."""
    if found.dataset is None:
        return [int(number) for number in found.ids(pass_index)]
    order = found.order(pass_index).order
    assert order.is_endless or order.num_examples == count
    names = order.codes.names(order.read(0, count))
    return [-1 if each == "pad" else int(str(each).rpartition(":")[2]) for each in names]


def check_answer(name: str, num_passes: int) -> list[list[int]]:
    """Check what is said of a fixed order beside passes, and return the first one."""
    found, pipeline = inspected(name), made(name)
    first = elements(pipeline, name)
    once = of(name).take or hasattr(pipeline, "__next__")
    for index in range(1 if once else num_passes):
        got = flat(elements(pipeline, name) if index else first)
        assert predicted(found, index, len(got)) == got, index
    if num_passes > 1:
        assert elements(made(name), name) == first
    return first


def check_rest(name: str, first: list[list[int]], num_counts: int) -> None:
    """Check what is left after so many counts: from the middle, the start, near the end."""
    if name in NOT_RESUMED:
        with pytest.raises(UsageError, match=NOT_RESUMED[name]):
            resume_like(made(name), steps=1)
        return
    for steps in (len(first) // 2, 0, len(first) - 2)[:num_counts]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it is read again, and of random numbers
            rest = resume_like(lambda: made(name), steps=steps)
        assert elements(rest, name, steps) == first[steps:], steps


def check_open(name: str) -> None:
    """Check that an order is refused, by its cause, and that two runs have another order."""
    shape, found = of(name), inspected(name)
    said = "; ".join(f"{each.stage.call}: {each.reason}" for each in found.open)
    if shape.by_python:
        assert found.assumptions or "another dataset: the script draws" in (found.refused or "")
    else:
        assert not found.predictable
        assert re.search(shape.open, said), said
    first = elements(made(name), name)
    assert any(elements(made(name), name) != first for _ in range(MOST_RUNS))


def check_cure(name: str) -> bool:
    """Check what a patch of the script yields; return whether it could be made in its text."""
    file = Path(f"{name}.py")
    file.write_text(Path(script(name).module).read_text("utf-8"))
    copy = replace(script(name), module=str(file))
    cures = inspected(name, copy).cures
    found = inspected(name, copy, assume_seeds=True)
    assert found.predictable, cures
    if not all(cure.edit for cure in cures):
        return False
    subprocess.run(["patch", "-p0"], input="".join(patch_of(cures)), text=True, check=True)
    start_anew()
    got = flat(elements(copy.called(), name))
    assert predicted(found, 0, len(got)) == got
    return True


def check(name: str, num_passes: int, num_counts: int) -> None:
    shape = of(name)
    if shape.open or shape.by_python:
        check_open(name)
        if shape.open and shape.cure:
            check_cure(name)
    else:
        check_rest(name, check_answer(name, num_passes), num_counts)


@each(list(PIPELINES)[::IN_EVERY_RUN])
def test_a_pass_of_some(name: str) -> None:
    check(name, 1, 1)


@pytest.mark.slow
@each(PIPELINES)
def test_three_passes_and_the_rest_from_three_counts(name: str) -> None:
    check(name, NUM_PASSES, 3)
