"""Accelerate's deal of batches, as it recorded it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.loaders.loader import LOADERS
from shardctl.loaders.torch import accelerate_sequence as sequence
from tests.cases import counted
from tests.loaders.agreement import check_agreement
from tests.loaders.torch.record import recorded, recorded_versions
from tests.loaders.torch.settings import asked_of


def test_the_order_is_that_of_accelerate() -> None:
    for case in counted(recorded("accelerate")):
        asked = asked_of(case["asked"])
        if case["batches"] is None:
            with pytest.raises((UsageError, UnpredictableOrderError)):
                sequence(asked)
            continue
        check_agreement(sequence(asked), case["batches"], asked.num_examples, batched=True)


def test_the_rule_is_proven_on_the_versions_that_were_recorded() -> None:
    versions = recorded_versions("accelerate")
    assert versions["accelerate"] in LOADERS["accelerate"].proven
    assert versions["torch"].partition("+")[0] in LOADERS["accelerate"].beside["torch"]


def test_all_processes_have_whole_batches_and_as_many_of_them() -> None:
    """Of 50 examples in batches of 8 for 4 processes: 7 batches, so 2 for each, 14 come twice."""
    parts = [
        sequence(
            asked_of({"n": 50, "batch": 8, "seed": 3, "shares": True, "host": host, "num_hosts": 4})
        )
        for host in range(4)
    ]
    assert [part.num_examples for part in parts] == [16] * 4
    times = np.bincount(np.concatenate([part.indices_at(np.arange(16)) for part in parts]))
    assert sorted(times.tolist()) == [1] * 36 + [2] * 14


def test_the_default_of_the_trainer_is_said_and_that_of_accelerate_itself_is_torchs() -> None:
    (said,) = sequence(asked_of({"n": 9, "batch": 2, "seed": 1})).assumptions
    assert "Accelerator() alone has another order, which --shuffle with --global-seed N" in said
    settings = {"n": 9, "batch": 2, "global_seed": 1, "shuffle": True, "epochs": 2}
    own, torch = (
        sequence(asked_of(settings)),
        LOADERS["torch"].sequence(asked_of(settings)),
    )
    assert own.assumptions == ()
    assert own.indices_at(np.arange(18)).tolist() == torch.indices_at(np.arange(18)).tolist()
    # What Accelerator.prepare handed out to two processes that torchrun started (torch 2.13.0).
    of_two = {"n": 37, "batch": 4, "global_seed": 11, "shuffle": True, "shares": True}
    ranks = [sequence(asked_of({**of_two, "num_hosts": 2, "host": rank})) for rank in range(2)]
    assert [rank.indices_at(np.arange(6)).tolist() for rank in ranks] == [
        [25, 35, 15, 29, 10, 19],
        [0, 4, 32, 9, 16, 6],
    ]


@pytest.mark.parametrize(
    ("settings", "kind", "said"),
    [
        ({"shuffle": True}, UnpredictableOrderError, "the data_seed or seed of the Trainer"),
        ({"seed": 1, "batch": None}, UsageError, "give --batch N of one process"),
        ({"batch": None}, UsageError, "give --batch N of one process"),
        ({"n": 0, "seed": 1}, UsageError, "refuses an empty dataset"),
        ({"seed": 1, "global_seed": 2}, UsageError, "is the data_seed or seed of the Trainer"),
        ({"seed": 1 << 64}, UsageError, "which torch refuses as a seed"),
        ({"seed": -(1 << 63) - 1, "first_epoch": 1}, UsageError, "which torch refuses as a seed"),
    ],
)
def test_what_accelerate_refuses_or_leaves_open_is_refused(
    settings: dict[str, Any], kind: type[Exception], said: str
) -> None:
    with pytest.raises(kind, match=said):
        sequence(asked_of({"n": 9, "batch": 2, **settings}))
