"""An inspection as a value: what it answers without TensorFlow."""

from __future__ import annotations

import pytest

import shardctl
from shardctl.dataset.dataset import Dataset, Split
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.settings.read_settings import ReadSettings, as_settings
from shardctl.verbs.inspect.answer import InspectedStage, Inspection, OpenStage, SourceLine

TRAIN = Split.even(name="train", num_examples=12, num_shards=3)
TEST = Split.even(name="test", num_examples=4, num_shards=1)
TOY = Dataset(name="toy", splits=(TRAIN, TEST))
SETTINGS = ReadSettings(cycle=2, block=2, buffer=4, buffer_seed=1, batch=5)
LINE = SourceLine(file="train.py", line=7, text="ds = ds.filter(keep)")
FILTER = InspectedStage(call="filter", operation="FilterDataset", reason="by data", line=LINE)


def _inspection(**more: object) -> Inspection:
    given = {"stages": (), "settings": SETTINGS, "dataset": TOY, "spec": "train", **more}
    return Inspection(**given)  # type: ignore[arg-type]


def test_ids_are_those_of_simulate() -> None:
    for index in range(3):
        settings = {"cycle": 2, "block": 2, "buffer": 4, "buffer_seed": 1, "pass": index}
        expected = shardctl.simulate(TOY, "train", settings, take=-1).ids()
        assert _inspection().ids(index).tolist() == expected.tolist()
    several = _inspection(spec="train[:2]+test[:1]", settings=ReadSettings())
    assert several.ids() == ["train:0", "train:1", "test:0"]


def test_elements_of_a_source_without_files_are_counted() -> None:
    settings = as_settings({"stages": "range(4) | repeat(2) | batch(3)"})
    assert _inspection(settings=settings, spec=None).ids().tolist() == [0, 1, 2, 3, 0, 1, 2, 3]
    endless = _inspection(settings=as_settings({"stages": "range(4) | repeat"}), spec=None)
    with pytest.raises(UsageError, match="no end"):
        endless.ids()


def test_an_open_order_names_its_stage_and_line() -> None:
    found = _inspection(stages=(FILTER,), open=(OpenStage(stage=FILTER, reason="by data"),))
    assert not found.predictable
    assert found.open[0].line == LINE
    said = r"filter \(train.py:7\) makes the order nondeterministic: by data"
    with pytest.raises(UnpredictableOrderError, match=said):
        found.ids()
    assert repr(found) == "<Inspection toy train: 1 stage, nondeterministic at filter>"
    refused = _inspection(refused="because")
    assert not refused.predictable
    with pytest.raises(UnpredictableOrderError, match="because"):
        refused.order()


def test_findings_are_said_in_the_words_of_a_script() -> None:
    large = Dataset(name="toy", splits=(Split.even(name="train", num_examples=900, num_shards=3),))
    small = {found.rule.code: found.fix for found in _inspection(dataset=large).findings()}
    assert str(small["SC002"]).startswith("shuffle(600), ")  # two files of 300 at a time
    plain = _inspection(dataset=large, settings=ReadSettings(batch=5)).findings()
    added = {found.rule.code: found.fix for found in plain}
    assert "shuffle(N, seed=N) among the stages" in str(added["SC017"])


def test_a_project_says_what_is_read_where_that_is_not_the_default() -> None:
    assert _inspection().project_settings == SETTINGS
    other = _inspection(spec="test").project_settings
    assert other == as_settings(
        {"cycle": 2, "block": 2, "stages": "test | shuffle(4, seed=1) | batch(5)"}
    )
    order = shardctl.plan_order(TOY, None, other).order
    expected = shardctl.plan_order(TOY, "test", SETTINGS).order
    assert order.read(0, 4).tolist() == expected.read(0, 4).tolist()


def test_reprs_are_short_and_values_can_be_hashed() -> None:
    stage = InspectedStage(call="read(train)", operation="PrefetchDataset", effect="reads")
    assert repr(stage) == "<InspectedStage read(train): reads>"
    assert repr(FILTER) == "<InspectedStage filter: train.py:7, nondeterministic: by data>"
    assert repr(OpenStage(stage=FILTER, reason="by data")) == "<OpenStage filter: by data>"
    found = _inspection(stages=(stage,), datasets={"toy": TOY})
    assert hash(found) == hash(_inspection(stages=(stage,), datasets={"toy": TOY}))
