"""The order of DataLoader, its own and that of DistributedSampler, as torch recorded it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.loaders.loader import LOADERS
from shardctl.loaders.torch import torch_sequence
from tests.cases import counted
from tests.loaders.agreement import check_agreement
from tests.loaders.torch.record import recorded, recorded_versions
from tests.loaders.torch.settings import asked_of


def test_the_order_is_that_of_torch() -> None:
    for case in counted(recorded("torch")):
        asked = asked_of(case["asked"])
        if case["batches"] is None:
            with pytest.raises(UsageError):
                torch_sequence(asked)
            continue
        batched = asked.batch is not None
        check_agreement(torch_sequence(asked), case["batches"], asked.num_examples, batched=batched)


def test_the_rule_is_proven_on_the_version_that_was_recorded() -> None:
    version = recorded_versions("torch")["torch"].partition("+")[0]
    assert version in LOADERS["torch"].proven


def test_workers_change_nothing() -> None:
    """As recorded with 2 and 3 of them."""
    settings = {"n": 12, "global_seed": 5, "shuffle": True, "epochs": 2, "batch": 5}
    orders = [torch_sequence(asked_of({**settings, "workers": w})) for w in range(4)]
    assert len({tuple(order.indices_at(np.arange(24)).tolist()) for order in orders}) == 1


def test_a_pass_of_several_epochs_is_those_epochs_one_after_the_other() -> None:
    for settings in (
        {"n": 11, "global_seed": 5, "shuffle": True},
        {"n": 11, "seed": 5},
        {"n": 11, "seed": 5, "shares": True, "host": 1, "num_hosts": 2},
    ):
        together = torch_sequence(asked_of({**settings, "first_epoch": 1, "epochs": 3}))
        single = [torch_sequence(asked_of({**settings, "first_epoch": e})) for e in (1, 2, 3)]
        size = single[0].num_examples
        assert together.epoch_size == size
        assert (
            together.indices_at(np.arange(3 * size)).tolist()
            == np.concatenate([one.indices_at(np.arange(size)) for one in single]).tolist()
        )
        assert (
            together.epochs_at(np.arange(3 * size)).tolist() == np.repeat(range(3), size).tolist()
        )


def test_whether_it_shuffles() -> None:
    assert torch_sequence(asked_of({"n": 9, "seed": 5})).is_uniform
    assert not torch_sequence(asked_of({"n": 9, "seed": 5, "shuffle": False})).shuffles
    assert not torch_sequence(asked_of({"n": 9, "global_seed": 5})).shuffles


@pytest.mark.parametrize(
    ("settings", "kind", "said"),
    [
        (
            {"shuffle": True},
            UnpredictableOrderError,
            "give --global-seed N where torch.manual_seed",
        ),
        ({"seed": 1, "global_seed": 2}, UsageError, "leave one out"),
        ({"n": 0, "seed": 1}, UsageError, "refuses an empty dataset"),
        ({"seed": 1 << 64}, UsageError, f"is {1 << 64}, which torch refuses as a seed"),
        ({"seed": -(1 << 63) - 1}, UsageError, "which torch refuses as a seed"),
        ({"global_seed": 1 << 64, "shuffle": True}, UsageError, "the global seed is"),
        (
            {"seed": (1 << 64) - 1, "shares": True, "epochs": 2},
            UsageError,
            f"the seed {(1 << 64) - 1} . epoch 1 is",
        ),
        ({"drop_shard_remainder": True}, UsageError, "--drop-shard-remainder needs --host I/N"),
        ({"shares": True, "global_seed": 5}, UsageError, "means nothing to DistributedSampler"),
    ],
)
def test_what_torch_refuses_or_leaves_open_is_refused(
    settings: dict[str, Any], kind: type[Exception], said: str
) -> None:
    with pytest.raises(kind, match=said):
        torch_sequence(asked_of({"n": 9, **settings}))


def test_the_last_seed_that_torch_takes_is_taken() -> None:
    asked = asked_of({"n": 9, "seed": (1 << 64) - 2, "shares": True, "epochs": 2})
    assert torch_sequence(asked).num_examples == 18
