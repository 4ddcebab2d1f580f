"""From the end of a graph to its sources: whole pipelines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shardctl.stages.stages import ChooseFromDatasets, Pipeline, Range
from shardctl.stages.text import parse_stages
from shardctl.tfds.recognizing.graph import operation_of, options_in_force
from shardctl.tfds.recognizing.walk import walked


def _sets() -> Any:
    import tensorflow as tf

    return tf.data.Dataset


def _pipeline(dataset: Any) -> Pipeline:
    return walked(operation_of(dataset), options_in_force(dataset)).pipeline


PIPELINES = {
    "range(9) | batch(2)": lambda d: d.range(9).batch(2),
    "range(4)": lambda d: d.from_tensor_slices(np.ones((4, 3))),
    "range(1)": lambda d: d.from_tensors(np.ones((4, 3))),
    "range(3) | map | take(2)": lambda d: d.range(2, 8, 2).enumerate().take(2),
    "range(3) | skip(1)": lambda d: d.range(3).map(lambda n: n).skip(1),
    "range(3) | concatenate(range(2) | repeat)": lambda d: d.range(3).concatenate(
        d.range(2).repeat()
    ),
    "range(2) | skip(1)": lambda d: d.zip((d.range(3), d.range(4).batch(2))).skip(1),
    "choose_from_datasets([range(3), range(4)], choices=values(1, 0) | repeat)": (
        lambda d: d.choose_from_datasets(
            [d.range(3), d.range(4)],
            d.from_tensor_slices(np.array([1, 0], np.int64)).repeat(),
        )
    ),
}


@pytest.mark.parametrize("text", PIPELINES)
def test_pipelines_are_walked_to_their_sources(text: str) -> None:
    assert _pipeline(PIPELINES[text](_sets())) == parse_stages(text)


def test_an_object_that_is_used_twice_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    shuffled = _sets().range(4).shuffle(3, seed=1)
    pipeline = _pipeline(_sets().zip((shuffled.batch(2), shuffled)))
    inner = "range(4) | shuffle(3, seed=[87654321, 1])"
    assert pipeline == parse_stages(f"zip(shared(a, {inner}) | batch(2), shared(a, {inner}))")


def test_stages_are_told_in_their_order_with_their_depth() -> None:
    dataset = _sets().zip((_sets().range(3).batch(2), _sets().range(4))).repeat(2)
    found = walked(operation_of(dataset), options_in_force(dataset))
    assert [(stage.part.name, stage.level) for stage in found.stages] == [
        ("range", 1),
        ("batch", 1),
        ("range", 1),
        ("range", 0),  # what is zipped by its index is one source
        ("repeat", 0),
    ]


def test_a_prefetch_of_nothing_stays_where_noop_elimination_is_asked_for() -> None:
    import tensorflow as tf

    options = tf.data.Options()
    optimization = options.experimental_optimization
    optimization.apply_default_optimizations = False
    optimization.noop_elimination = optimization.shuffle_and_repeat_fusion = True
    parted = _sets().range(9).shuffle(4, seed=1).prefetch(0).skip(0).repeat(2)
    names = [stage.name for stage in _pipeline(parted.with_options(options)).stages]
    assert names == ["shuffle", "prefetch", "repeat", "with_options"]


def test_choices_of_any_number_are_not_listed() -> None:
    sets = _sets()
    for choices in (sets.range(1 << 60), sets.range(1, 1 << 60), sets.range(0, 1 << 60, 3)):
        chosen = sets.choose_from_datasets([sets.range(3)], choices.map(lambda n: n * 0))
        assert "map" in repr(_pipeline(chosen).source)
    kept = sets.choose_from_datasets([sets.range(3)], sets.range(1 << 60).take(1))
    source = _pipeline(kept).source
    assert isinstance(source, ChooseFromDatasets)
    assert source.choices.source == Range(stop=1 << 60)
