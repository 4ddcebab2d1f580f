"""A stage and a source that nobody knew: one class, one call and one node each, and every verb."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from pathlib import Path

import numpy as np
import pytest

import shardctl
from shardctl.base.arrays import Int64s
from shardctl.dataset.dataset import Dataset, as_dataset
from shardctl.iteration.build import NODES, Builder
from shardctl.iteration.iteration import Derived, Node
from shardctl.iteration.repeat import Concatenate
from shardctl.settings.read_settings import as_settings
from shardctl.stages.calls import CALLS, Call
from shardctl.stages.part import Count, Source, Stage, argument
from shardctl.stages.stages import Pipeline
from shardctl.stages.text import document_of, parse_stages, pipeline_of, text_of


class ReversePairs(Stage):
    """Hands out every second element before its neighbour; a last one alone stays where it is."""

    name = "reverse_pairs"
    effect = "swaps neighbours"


class LastFirst(Source):
    """Hands out its inputs one after the other, the last one first."""

    name = "last_first"
    inputs: tuple[Pipeline, ...] = argument(takes="pipelines")

    @property
    def never_ends(self) -> bool:
        return any(one.never_ends for one in self.inputs)

    def length(self, others: Sequence[Count]) -> Count:
        return None if None in others else sum(one or 0 for one in others)


class Swapped(Node):
    """The dataset object of `reverse_pairs`."""

    def __init__(self, child: Node) -> None:
        self.inputs, self.shape = (child,), child.shape

    def iterate(self) -> SwappedIteration:
        return SwappedIteration(self.child.iterate())


class SwappedIteration(Derived):
    """An iterator, which reads whole pairs."""

    def _advance(self, count: int) -> int:
        wanted = self.pulled + count
        self._child.pull(wanted + wanted % 2 - self._child.pulled)
        return min(wanted, self._child.pulled) - self.pulled

    def _inputs_of(self, elements: Int64s) -> Int64s:
        partners: Int64s = elements ^ 1
        return np.where(partners < self._child.pulled, partners, elements)

    def _outputs_of(self, inputs: Int64s) -> Int64s:
        return self._inputs_of(inputs)


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    for part in (ReversePairs, LastFirst):
        monkeypatch.setitem(CALLS, part.name, Call.of_part(part))
    monkeypatch.setitem(NODES, ReversePairs, lambda self, stage, node: Swapped(node))

    def node_of(self: Builder, source: LastFirst) -> Node:
        return reduce(Concatenate, map(self.node_of, source.inputs[::-1]))

    monkeypatch.setitem(NODES, LastFirst, node_of)


TEXT = "last_first([train | shuffle(5, seed=3), test]) | reverse_pairs | batch(4)"
LAYOUT = "name: toy\nsplits: {train: {shard_lengths: [8, 5, 10]}, test: {shard_lengths: [4, 2]}}"


@pytest.fixture
def toy(tmp_path: Path) -> Dataset:
    """A layout whose files have names."""
    path = tmp_path / "toy.layout.yaml"
    path.write_text(LAYOUT)
    return as_dataset(str(path))


SETTINGS = {"cycle": 2, "block": 3, "stages": TEXT}


def _ids(toy: Dataset, spec: str, **settings: object) -> list[str]:
    order = shardctl.plan_order(toy, spec, {"cycle": 2, "block": 3, **settings}).order
    return [f"{spec}:{code}" for code in order.read(0, order.num_examples).tolist()]


def _expected(toy: Dataset) -> list[str]:
    """Return what the parts are worth, put together by hand."""
    row = _ids(toy, "test") + _ids(toy, "train", buffer=5, buffer_seed=3)
    pairs = [row[i : i + 2][::-1] for i in range(0, len(row), 2)]
    return [one for pair in pairs for one in pair]


def test_text_and_document_come_from_the_class() -> None:
    pipeline = parse_stages(TEXT)
    assert text_of(pipeline) == TEXT
    assert pipeline_of(document_of(pipeline)) == as_settings({"stages": TEXT}).stages == pipeline


def test_simulate_and_locate_know_the_order(toy: Dataset) -> None:
    order, expected = shardctl.plan_order(toy, None, SETTINGS).order, _expected(toy)
    every = np.arange(order.num_examples)
    assert order.codes.names(order.read(0, 29)) == expected
    assert order.codes.names(order.codes_at(every[::-1])) == expected[::-1]
    for position in (0, 7, 28):
        (match,) = shardctl.locate(toy, None, SETTINGS, id=expected[position]).matches
        assert match.position == position
    assert [m.position for m in shardctl.locate(toy, None, SETTINGS, step=7).matches] == [28]


def test_resume_goes_on_where_it_stopped(toy: Dataset) -> None:
    plan = shardctl.resume(toy, None, SETTINGS, steps=3)
    assert plan.consumed == 12
    assert plan.remaining == 29 - 12


def test_quality_lint_and_report_look_at_it(toy: Dataset) -> None:
    found = shardctl.quality(toy, None, SETTINGS, what_if=False)
    assert found.num_examples == 29
    assert found.window == 4
    in_an_input = {**SETTINGS, "stages": TEXT.replace("shuffle(5", "shuffle(1")}
    rules = [one.rule.name for one in shardctl.lint(toy, None, in_an_input).findings]
    assert "buffer-of-one" in rules
    assert "reverse_pairs" in shardctl.report(toy, None, SETTINGS).to_html()


def test_a_snapshot_pins_it_and_diff_names_it(toy: Dataset) -> None:
    first = shardctl.snapshot(toy, None, SETTINGS)
    again = shardctl.snapshot(toy, None, SETTINGS)
    assert shardctl.diff(first, again).equal
    without = {**SETTINGS, "stages": TEXT.replace(" | reverse_pairs", "")}
    found = shardctl.diff(first, shardctl.snapshot(toy, None, without))
    assert not found.equal
    assert [(c.name, c.change, c.place) for c in found.changes if c.kind == "stage"] == [
        ("reverse_pairs", "left out", "stage 1")
    ]
    seeded = {**SETTINGS, "stages": TEXT.replace("seed=3", "seed=4")}
    found = shardctl.diff(first, shardctl.snapshot(toy, None, seeded))
    changed = [(c.name, c.actual) for c in found.changes if c.kind == "stage"]
    assert changed == [("shuffle", "shuffle(5, seed=4)")]
