"""Grain's orders, beside what the real one handed out; `record.py` says how it was recorded."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shardctl.errors import UsageError
from shardctl.loaders.grain import equal_hosts, grain_sequence, host_share
from shardctl.loaders.loader import LOADERS
from shardctl.loaders.loader_sequence import LoaderSequence
from tests.cases import counted, some_of
from tests.loaders.grain.asked_cases import NEWEST, asked

RECORDED = sorted(Path(__file__).parent.glob("recorded_*.json"))


def indices_of(handed: LoaderSequence) -> list[int]:
    indices: list[int] = handed.indices_at(np.arange(handed.num_examples)).tolist()
    return indices


def batches_of(handed: LoaderSequence, indices: list[int] | None = None) -> list[list[int]]:
    indices = indices or indices_of(handed)
    if handed.batches is None:
        return [indices]
    bounds = [handed.batches.bounds(step) for step in range(handed.batches.num_batches)]
    assert all(before[1] == after[0] for before, after in pairwise(bounds))
    return [indices[slice(*bound)] for bound in bounds]


def check_both_ways(handed: LoaderSequence, indices: list[int], num_examples: int) -> None:
    query, positions = handed.positions_of(np.arange(num_examples + 2))
    found = sorted(zip(positions.tolist(), query.tolist(), strict=True))
    assert found == list(enumerate(indices))


@pytest.mark.long
@pytest.mark.parametrize("file", RECORDED, ids=lambda file: file.stem)
def test_batches_are_those_that_the_real_loader_handed_out(file: Path) -> None:
    recorded = json.loads(file.read_text(encoding="utf-8"))
    for one in counted(some_of(recorded["orders"])):
        wanted = asked(version=recorded["version"], **one["settings"])
        if "refused" in one:
            with pytest.raises(UsageError):
                grain_sequence(wanted)
        else:
            handed = grain_sequence(wanted)
            indices = indices_of(handed)
            assert batches_of(handed, indices) == one["batches"], one["settings"]
            check_both_ways(handed, indices, wanted.num_examples)


def test_both_eras_are_recorded_from_proven_versions() -> None:
    versions = [json.loads(file.read_text(encoding="utf-8"))["version"] for file in RECORDED]
    assert set(versions) <= set(LOADERS["grain"].proven)
    assert {equal_hosts(version) for version in versions} == {False, True}
    assert NEWEST in versions


def test_hosts_of_359_examples_read_179_each_whichever_is_left_over() -> None:
    """From `len(sampler) // shard_count` and `even_split` of Grain 0.2.18, by hand."""
    first, second = (grain_sequence(asked(359, seed=1, host=(host, 2))) for host in range(2))
    assert (first.num_examples, second.num_examples) == (179, 179)
    read = set(first.indices_at(np.arange(179)).tolist())
    whole = grain_sequence(asked(180, seed=1)).indices_at(np.arange(180)).tolist()
    assert set(range(180)) - read == {whole[179]}
    assert set(second.indices_at(np.arange(179)).tolist()) == set(range(180, 359))


def test_over_two_epochs_the_smaller_host_begins_a_third() -> None:
    """718 // 2 is 359 for both: one short of 2 * 180, and one more than 2 * 179."""
    first, second = (grain_sequence(asked(359, seed=1, epochs=2, host=(h, 2))) for h in range(2))
    assert (first.num_examples, second.num_examples) == (359, 359)
    assert second.epochs_at(np.array([357, 358])).tolist() == [1, 2]
    assert first.epochs_at(np.array([358])).tolist() == [1]


def test_before_0_2_13_every_host_read_its_own_share() -> None:
    sizes = [
        grain_sequence(asked(359, version="0.2.12", seed=1, host=(host, 2))).num_examples
        for host in range(2)
    ]
    assert sizes == [180, 179]


def test_shares_are_pieces_with_the_rest_on_the_first_hosts() -> None:
    assert [len(host_share(11, host, 3, drop=False)) for host in range(3)] == [4, 4, 3]
    assert [len(host_share(11, host, 3, drop=True)) for host in range(3)] == [3, 3, 3]
    assert host_share(2, 2, 3, drop=False) == range(2, 2)


REFUSED: tuple[tuple[dict[str, Any], str], ...] = (
    ({"seed": 2**32}, "--shuffle-seed 4294967296: Grain takes seeds from 0 to 4294967295"),
    ({"seed": -1}, "--shuffle-seed -1"),
    ({"host_by": "files"}, "no --host-by files"),
    ({"buffer": 3}, "give --buffer-seed N"),
    ({"buffer": -2, "buffer_seed": 1}, "--buffer -2: Grain shuffles windows of 1 example at least"),
    ({"buffer": 3, "buffer_seed": -1}, "--buffer-seed -1"),
    ({"buffer": 3, "buffer_seed": 2**32 - 3}, "number of the window, up to 3"),
    ({"buffer": 3, "buffer_seed": 1, "host": (0, 2)}, "share by --host-by examples"),
    ({"host_by": "examples", "drop_shard_remainder": True}, "drops nothing"),
    ({"host": (10, 11), "epochs": 2}, "host 10 of 11 has no example of its own"),
    ({"num_examples": 0}, "IndexSampler refuses to read no examples"),
    ({"num_examples": 2**61}, "cannot count"),
)


@pytest.mark.parametrize(("settings", "why"), REFUSED)
def test_what_grain_refuses_is_refused_with_the_setting_and_the_rule(
    settings: dict[str, Any], why: str
) -> None:
    with pytest.raises(UsageError) as refused:
        grain_sequence(asked(**{"num_examples": 10, **settings}))
    assert why in str(refused.value)


def test_the_nearest_settings_are_not_refused() -> None:
    nearest: tuple[dict[str, Any], ...] = (
        {"seed": 2**32 - 1},
        {"buffer": 3, "buffer_seed": 2**32 - 4},
        {"buffer": 3, "buffer_seed": 1, "host": (0, 2), "host_by": "examples"},
        {"host": (9, 11), "epochs": 1},
        {"host": (10, 11), "epochs": 1},
        {"host": (10, 11), "epochs": 2, "drop_shard_remainder": True},
        {"num_examples": 0, "host_by": "examples"},
    )
    for settings in nearest:
        grain_sequence(asked(**{"num_examples": 10, **settings}))


def test_workers_change_batches_and_not_single_examples() -> None:
    alone, shared = (grain_sequence(asked(23, seed=5, workers=workers)) for workers in (0, 3))
    assert batches_of(alone) == batches_of(shared)
    alone, shared = (grain_sequence(asked(23, seed=5, batch=4, workers=w)) for w in (1, 2))
    assert batches_of(alone) == batches_of(grain_sequence(asked(23, seed=5, batch=4)))
    assert batches_of(alone) != batches_of(shared)


def test_a_billion_examples_are_located_without_a_list_of_them() -> None:
    handed = grain_sequence(
        asked(10**9, seed=7, epochs=3, host=(5, 8), workers=4, batch=256, drop_remainder=True)
    )
    query, positions = handed.positions_of(np.array([700_000_000]))
    assert query.tolist() == [0, 0, 0]
    assert handed.indices_at(positions).tolist() == [700_000_000] * 3
    assert sorted(handed.epochs_at(positions).tolist()) == [0, 1, 2]
