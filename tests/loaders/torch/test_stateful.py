"""The order of StatefulDataLoader, as torchdata recorded it: workers change it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.loaders.loader import LOADERS
from shardctl.loaders.torch import stateful_sequence as sequence
from tests.cases import counted
from tests.loaders.agreement import check_agreement
from tests.loaders.torch.record import recorded, recorded_versions
from tests.loaders.torch.settings import asked_of


@pytest.mark.parametrize("file", ["stateful", "stateful_0.10.1"])
def test_the_order_is_that_of_torchdata(file: str) -> None:
    version = recorded_versions(file)["torchdata"]
    for case in counted(recorded(file)):
        asked = asked_of(case["asked"], version)
        if case["batches"] is None:
            with pytest.raises(UsageError):
                sequence(asked)
            continue
        batched = asked.batch is not None
        check_agreement(sequence(asked), case["batches"], asked.num_examples, batched=batched)


def test_the_rule_is_proven_on_the_versions_that_were_recorded() -> None:
    for file in ("stateful", "stateful_0.10.1"):
        versions = recorded_versions(file)
        assert versions["torchdata"] in LOADERS["stateful"].proven
        assert versions["torch"].partition("+")[0] in LOADERS["stateful"].beside["torch"]


def test_workers_change_the_order_but_not_how_many_there_are() -> None:
    def order(workers: int, epoch: int) -> list[int]:
        settings = {"n": 12, "global_seed": 5, "shuffle": True}
        asked = asked_of({**settings, "workers": workers, "first_epoch": epoch})
        found: list[int] = sequence(asked).indices_at(np.arange(12)).tolist()
        return found

    assert order(0, 0) != order(1, 0) == order(2, 0) == order(8, 0)
    # Two permutations an epoch, of which the second is read.
    assert [order(2, epoch) for epoch in range(3)] == [order(0, 2 * e + 1) for e in range(3)]


def test_before_its_seed_was_drawn_all_runs_had_one_order() -> None:
    def order(version: str, seed: int) -> list[int]:
        asked = asked_of({"n": 12, "global_seed": seed, "shuffle": True}, version)
        found: list[int] = sequence(asked).indices_at(np.arange(12)).tolist()
        return found

    assert order("0.10.1", 5) == order("0.10.1", 6) != order("0.11.0", 5) != order("0.11.0", 6)


@pytest.mark.parametrize(
    ("settings", "kind", "said"),
    [
        ({"shuffle": True}, UnpredictableOrderError, "without a seed has another order in each"),
        ({"seed": 1, "global_seed": 2}, UsageError, "leave one out"),
        ({"n": 0, "global_seed": 1, "shuffle": True}, UsageError, "refuses an empty dataset"),
        ({"shares": True, "global_seed": 5}, UsageError, "means nothing to DistributedSampler"),
    ],
)
def test_what_is_open_or_not_continued_is_refused(
    settings: dict[str, Any], kind: type[Exception], said: str
) -> None:
    with pytest.raises(kind, match=said):
        sequence(asked_of({"n": 9, **settings}))


@pytest.mark.parametrize("settings", [{"seed": 1}, {"global_seed": 1, "persistent_workers": True}])
def test_what_is_not_proven_of_an_old_version_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"are proven from torchdata 0\.11\.0 on, not of 0\.10\.1"):
        sequence(asked_of({"n": 9, "shuffle": True, "workers": 1, **settings}, "0.10.1"))
