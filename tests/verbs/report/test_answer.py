"""A report is the answers of the verbs, each as the verb alone gives it, or the verb's reason."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shardctl
from shardctl.base.phrase import phrase
from shardctl.dataset.dataset import Dataset
from shardctl.errors import UsageError
from shardctl.files.documents import to_json
from shardctl.metadata.layouts import dataset_from_layout
from shardctl.settings.read_settings import ReadSettings
from shardctl.stages.stages import Range, Read
from shardctl.verbs.report.answer import NotShown, Report, ReportQuestion, report, shown, shown_of
from shardctl.verbs.report.page import report_document
from tests.cases import check_cases
from tests.golden import assert_evaluated, listed
from tests.pipelines.random_pipelines import Habits, RandomPipeline, Sized, pipelines
from tests.strategies import error_line

TOY = dataset_from_layout(
    {
        "splits": {
            "train": {"shard_lengths": [30, 31, 0, 29, 30]},
            "test": {"shard_lengths": [20, 21]},
        }
    },
    stem="toy",
    folder=Path("/data"),
)
SETTINGS = {"shuffle_seed": 5, "buffer": 16, "buffer_seed": 2, "batch": 8}


def missing(made: Report) -> dict[str, str]:
    """Return why parts are not shown, by their names."""
    return {name: part.reason for name, part in made.parts.items() if isinstance(part, NotShown)}


def device_batch(made: Report) -> int:
    return made.evaluation.device_batch  # type: ignore[union-attr]


def test_the_strips_are_the_order_that_is_measured() -> None:
    made = report(TOY, "train", SETTINGS)  # of what is read into the buffer
    found = report_document(report(TOY, None, {"cycle": 2, "block": 3}))["strips"]
    assert not isinstance(made.strips, NotShown)
    order = shardctl.plan_order(TOY, "train", {"shuffle_seed": 5}).order
    assert made.strips.visits[0].first_id == order.read(0, 1).tolist()[0]
    assert sum(visit.count for visit in made.strips.visits) == made.strips.stop
    told = [
        number
        for visit in found["visits"]
        for number in range(visit["first_id"], visit["last_id"] + 1)
    ]
    order = shardctl.plan_order(TOY, None, {"cycle": 2, "block": 3}).order
    assert np.array_equal(told, order.read(0, found["stop"]))


def measured(settings: dict[str, Any], hosts: int | None) -> object:
    read, usage = ReadSettings(**settings), shardctl.Usage(hosts=hosts)
    asked = ReportQuestion(dataset=TOY, spec=None, settings=read, usage=usage, in_force=())
    return asked.reading.host and str(asked.reading.host), asked.num_hosts


@pytest.mark.parametrize(
    ("settings", "arguments"),
    [
        ({}, {"hosts": 3}),
        ({}, {"usage": shardctl.Usage(hosts=3)}),
        ({"host": "0/3"}, {}),
        ({"host": "0/3"}, {"hosts": 3}),
    ],
)
def test_of_several_hosts_one_is_measured(
    settings: dict[str, Any], arguments: dict[str, Any]
) -> None:
    made = report(TOY, None, {**SETTINGS, **settings}, **arguments)
    first = {**SETTINGS, "host": "0/3"}
    assert missing(made) == {}
    assert made.num_hosts == 3
    assert made.quality == shardctl.quality(TOY, None, first)
    assert made.hosts == shardctl.hosts(TOY, None, {**SETTINGS, **settings}, hosts=3)
    origins = {item.name: item.origin.source for item in made.in_force}
    assert origins["read.host"] == ("argument" if settings else "default")


def test_stages_that_pick_a_host_are_not_shared_once_more() -> None:
    stages = {"stages": "shard(4, 1) | shuffle(9, seed=3) | batch(8)"}
    made = report(TOY, None, stages, hosts=4)
    assert made.quality == shardctl.quality(TOY, None, stages)
    assert set(missing(made)) == {"hosts"}
    assert "selects one host" in missing(made)["hosts"]


def test_what_is_not_asked_for_is_not_there() -> None:
    alone = report(TOY, None, SETTINGS)
    assert (alone.hosts, alone.evaluation, alone.loaders) == (None, None, None)
    document = report_document(alone)
    assert (document["hosts"], document["eval"]) == (None, None)
    for asked in ({"hosts": 1}, {"devices": 1}, {"evaluated": "test"}):
        made = report(TOY, None, SETTINGS, **asked)
        assert (made.hosts, device_batch(made)) == (None, 8)
    assert report(TOY, None, {**SETTINGS, "host": "1/2"}).hosts is not None


def test_assumptions_are_noted() -> None:
    note = "no batch size is set, so {} is assumed; set it with --batch N"
    assert report(TOY).notes == (note.format("30"),)  # a quarter of 120 examples
    made = report(TOY, devices=1)
    assert made.notes == (note.format("30 and 256"),)
    assert (made.num_hosts, device_batch(made)) == (1, 256)
    staged = report(TOY, None, {"stages": "shuffle(9, seed=3) | batch(24)"}, devices=4)
    assert device_batch(staged) == 6
    assert staged.notes == ()
    uneven = report(TOY, None, {"batch": 10, "drop_remainder": True}, devices=4)
    assert device_batch(uneven) == 3  # 10 examples on 4 devices: 3, 3, 2 and 2
    assert getattr(uneven.evaluation, "remainder", None) == "drop"
    # A batch of stages counts also where their order is nondeterministic.
    assert device_batch(report(TOY, None, {"stages": "filter(f) | batch(16)"}, devices=2)) == 8
    assert list(uneven.notes) == [
        "a batch of 10 is no multiple of --devices 4: in the evaluation a device has 3"
    ]


def test_missing_seeds_are_replaced_by_example_seeds() -> None:
    made = report(TOY, None, {"shuffle_files": True, "buffer": 10})
    assert missing(made) == {}
    assert made.is_open is not None
    assert made.is_open.startswith("--shuffle-files without a seed")
    assert not isinstance(made.quality, NotShown)
    assert made.order is made.quality.order
    assert any("example seeds: --shuffle-seed 1" in warning for warning in made.warnings)


NOT_SHOWN: list[tuple[str | None, dict[str, Any], dict[str, str]]] = listed(
    Path(__file__).with_name("not_shown.txt"), globals()
)


@pytest.mark.parametrize(("spec", "settings", "expected"), NOT_SHOWN)
def test_a_part_that_cannot_be_had_says_why_and_the_others_are_there(
    spec: str | None, settings: dict[str, Any], expected: dict[str, str]
) -> None:
    made = report(TOY, spec, settings, hosts=2 if "hosts" in expected else None)
    found = missing(made)
    assert found.keys() == expected.keys()
    for name, reason in expected.items():
        assert reason in found[name]
        assert "\n" not in found[name]


def test_an_evaluation_needs_a_split_to_be_evaluated_on() -> None:
    alone = Dataset(name="toy", splits=TOY.splits[:1])
    assert missing(report(alone, None, SETTINGS, hosts=1)) == {
        "evaluation": "toy has no split test or validation; set what is evaluated on with "
        "--eval SPEC"
    }
    made = report(alone, None, SETTINGS, hosts=1, evaluated="train[:9]")
    assert missing(made) == {}


def test_all_loaders_are_compared_where_somebody_asks() -> None:
    made = report(TOY, None, {"batch": 8}, hosts=2, loaders=True)
    assert made.loaders == shardctl.compare_loaders(TOY, None, {"batch": 8, "host": "0/2"})
    staged = report(TOY, None, {"stages": "batch(4)"}, loaders=True)
    assert "are one way to read" in missing(staged)["loaders"]


def test_what_cannot_be_read_at_all_is_an_error() -> None:
    assert_evaluated(globals(), "not_read")


READS = (
    Read(),
    Read(spec="train[:50%]"),
    Read(spec="test", data="mnist"),
    Read(spec="train+test", settings=(("cycle", 3), ("shuffle_seed", 7))),
    Read(spec="train", settings=(("host", "0/2"),)),
    Range(stop=5),
)


def a_source(rng: random.Random) -> Sized:
    return Sized(source=rng.choices(READS, weights=[6, 4, 1, 4, 2, 1])[0], num_examples=160)


def a_report_comes_or_one_line(drawn: RandomPipeline) -> None:
    reports: list[Report] = []
    settings = ReadSettings(stages=drawn.pipeline)
    if error_line(lambda: reports.append(report(TOY, None, settings, hosts=2))) is not None:
        return
    (made,) = reports
    for reason in missing(made).values():
        assert reason
        assert reason.isprintable()
    document = json.loads("".join(to_json(report_document(made))))
    for name in ("layout", "strips", "quality", "hosts", "eval", "lint"):
        part = made.parts["evaluation" if name == "eval" else name]
        assert ("not_shown" in document[name]) == isinstance(part, NotShown)
    assert made.to_html().rstrip().endswith("</html>")


@pytest.mark.long
def test_a_report_comes_for_any_stages_or_one_line_says_why_not() -> None:
    check_cases(
        pipelines(a_source, Habits(mixtures=0.3, seedless=0.2)), a_report_comes_or_one_line, 25
    )


def test_a_spec_without_examples_is_refused() -> None:
    with pytest.raises(UsageError, match=r"'train\[:0\]' has no examples: there is nothing to"):
        report("mnist", "train[:0]")


def refuse(*_: object) -> int:
    raise UsageError(phrase("{cycle=auto} needs {cpus=N}"))


def test_what_is_made_of_a_part_is_missing_with_it() -> None:
    missing = NotShown(reason="--cycle auto needs --cpus N")
    assert shown(refuse) == missing
    assert shown_of(shown(lambda: 3), lambda part: part + 1) == 4
    assert shown_of(missing, refuse) is missing
    assert shown_of(3, refuse) == missing
    with pytest.raises(ZeroDivisionError):  # a fault of ours is no reason
        shown(lambda: 1 // 0)
