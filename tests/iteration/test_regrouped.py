"""Stages that the data decides, beside TensorFlow, where what they do to each example is known."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.iteration.build import build, iteration_of_pass
from shardctl.iteration.iteration import NOTHING
from shardctl.iteration.regrouped import Kept
from shardctl.stages.text import parse_stages
from shardctl.tfdata.shuffle_seeds import ScriptSeeds
from tests.cases import counted, fuzzed, random_of_a_fuzz_run

SIZE = 40


class Case:
    """A random pipeline with one stage of each kind, as text and as a dataset."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.values = np.array([draw.choice([0, 1, 1, 2, 3, 5]) for _ in range(SIZE)])
        self.until = np.array([draw.random() < 0.97 for _ in range(SIZE)])
        self.windows = {
            key: (draw.randrange(1, 7), draw.choice([-3, -2, -1, 1, 2, 3, 9])) for key in range(6)
        }
        self.call = draw.choice(["flat_map", "take_while", "group_by_window", "filter"])
        before = draw.choice(["", "shuffle(9, seed=3)", "shuffle(50, seed=4) | repeat(2)", "map"])
        behind = ["", "skip(3)", "take(11)", "shuffle(5, seed=1)", "repeat(2)", "cache", "map"]
        self.stages = [f"range({SIZE})", before, self.call, draw.choice(behind)]
        if self.call != "group_by_window" and draw.random() < 0.5:
            self.stages.append("batch(3)")
        self.stages.append(draw.choice(behind))

    @property
    def text(self) -> str:
        with_file = {self.call: f"{self.call}(kept=file)"}
        return " | ".join(with_file.get(one, one) for one in self.stages if one)

    def kept(self, stage: Any) -> Kept:
        by: Any = {"flat_map": "count", "take_while": "until", "filter": "passes"}
        values = self.until if self.call == "take_while" else self.values
        return Kept(
            by=by.get(self.call, "key"),
            values=lambda codes: values.astype(np.int64)[codes],
            most=int(values.max()) if self.call == "flat_map" else int(values.all()),
            windows=self.windows if self.call == "group_by_window" else {},
        )

    def dataset(self, tf: Any) -> Any:
        values, until = tf.constant(self.values), tf.constant(self.until)
        sizes = tf.constant([self.windows[key] for key in range(6)], tf.int64)

        def reduced(key: Any, window: Any) -> Any:
            size = sizes[key][1]
            # `drop_remainder` as a tensor, so that one function serves all keys.
            return window.batch(tf.abs(size), drop_remainder=size < 0)

        made = {
            "filter": lambda ds: ds.filter(lambda n: values[n] > 0),
            "take_while": lambda ds: ds.take_while(lambda n: until[n]),
            "flat_map": lambda ds: ds.flat_map(
                lambda n: tf.data.Dataset.from_tensors(n).repeat(values[n])
            ),
            "group_by_window": lambda ds: ds.group_by_window(
                lambda n: values[n], reduced, window_size_func=lambda key: sizes[key][0]
            ),
            "map": lambda ds: ds.map(lambda n: n + 0),
        }
        ds = tf.data.Dataset.range(SIZE)
        for stage in self.stages[1:]:
            for call in filter(None, stage.split(" | ")):
                name, _, rest = call.partition("(")
                ds = made[name](ds) if name in made else eval(f"ds.{name}({rest or ')'}")
        return ds


@fuzzed(12)
def test_elements_are_those_of_tensorflow(tf: Any, num_cases: int) -> None:
    draw = random_of_a_fuzz_run()
    for _ in counted(range(num_cases)):
        _is_as_in_tensorflow(tf, Case(draw))


def _is_as_in_tensorflow(tf: Any, case: Case) -> None:
    dataset, codes = case.dataset(tf), np.arange(SIZE)
    for index in range(3):
        expected = [np.ravel(one).tolist() for one in dataset.as_numpy_iterator()]
        node = build(
            parse_stages(case.text), lambda read: NOTHING, seeds=ScriptSeeds(), kept=case.kept
        )
        step = case.draw.choice([1, 3, 1 << 40])
        try:
            iteration = iteration_of_pass(node, index)
            while iteration.pull(step) == step:
                pass
            iteration.check()
        except UnpredictableOrderError:  # a pass that `take` or `take_while` cuts short
            assert index, case.text
            continue
        found = [iteration.examples(np.array([e])).tolist() for e in range(iteration.pulled)]
        assert found == expected, case.text
        query, places = iteration.places_of(codes)
        flat = [code for one in expected for code in one]
        assert sorted(zip(places.tolist(), query.tolist(), strict=True)) == list(enumerate(flat))
        assert node.cardinality == int(dataset.cardinality()), case.text


def test_what_a_scan_does_not_fit_is_refused() -> None:
    def node(text: str, by: Any = "count") -> Any:
        kept = Kept(by=by, values=lambda codes: codes * 0)
        return build(parse_stages(text), lambda read: NOTHING, kept=lambda stage: kept)

    for text, by, said in (
        ("range(9) | batch(2) | flat_map(kept=a)", "count", "an element holds several"),
        ("range(9) | flat_map(kept=a)", "lengths", "which a batch before it makes"),
    ):
        with pytest.raises(UsageError, match=said):
            node(text, by)
    with pytest.raises(UsageError, match="would read on indefinitely"):
        node("range(9) | repeat | flat_map(kept=a)").iterate().pull(1)
