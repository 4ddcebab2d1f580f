"""Stages that leave an order open, by what they are."""

from __future__ import annotations

import pytest

from shardctl.stages.part import Stage
from shardctl.stages.pipelines import open_stages
from shardctl.stages.stages import (
    Concatenate,
    Filter,
    Map,
    Opaque,
    Pipeline,
    SampleFromDatasets,
    Shuffle,
    WithOptions,
)
from tests.iteration.elements import chain

SEEDLESS = Shuffle(buffer=3)


@pytest.mark.parametrize(
    ("stages", "global_seed", "names"),
    [
        ((SEEDLESS,), None, ["shuffle"]),
        ((SEEDLESS,), 0, []),
        ((Shuffle(buffer=1), Shuffle(buffer=1, seed=(0, 0))), None, []),
        ((Shuffle(buffer=3, seed=0),), None, []),
        ((Shuffle(buffer=3, seed=(0, 0)),), 5, ["shuffle"]),
        ((Filter(), Filter(kept="kept.txt")), None, ["filter"]),
        ((Opaque(call="flat_map"),), None, ["opaque"]),
        ((Map(deterministic=False),), None, []),
        ((Map(calls=1, deterministic=False),), None, []),
        ((Map(calls=2, deterministic=False),), None, ["map"]),
        ((Map(calls="auto"), WithOptions(deterministic=False)), None, ["map"]),
        ((Map(calls="auto", deterministic=True), WithOptions(deterministic=False)), None, []),
        ((Concatenate(other=chain(3, SEEDLESS)), Filter()), None, ["shuffle", "filter"]),
    ],
)
def test_open_stages(stages: tuple[Stage, ...], global_seed: int | None, names: list[str]) -> None:
    found = open_stages(chain(5, *stages), global_seed=global_seed)
    assert [each.stage.name for each in found] == names
    assert all(each.reason for each in found)


def test_a_reason_of_its_own_is_given() -> None:
    stage = Opaque(call="flat_map", reason="it makes elements")
    [found] = open_stages(chain(5, stage))
    assert (found.stage, found.reason) == (stage, "it makes elements")


def test_options_leave_a_reader_open_whose_decoding_goes_by_them() -> None:
    loose, strict = WithOptions(deterministic=False), WithOptions(deterministic=True)
    assert [each.stage.name for each in open_stages(Pipeline(stages=(loose,)))] == ["read"]
    assert not open_stages(Pipeline(stages=(loose, strict)))
    assert not open_stages(chain(5, loose))


def test_inputs_come_before_what_combines_them() -> None:
    mixture = SampleFromDatasets(inputs=(chain(3, SEEDLESS), chain(3)))  # one alone is no mixture
    found = open_stages(Pipeline(source=mixture))
    assert [each.stage.name for each in found] == ["shuffle", "sample_from_datasets"]
